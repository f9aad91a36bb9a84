"""At every scale of the numbers: the same loadings, and variances that are right or out of range."""

import contextlib
import warnings

import flat
import numpy as np
import pytest
from in_turn import each_dtype
from numpy.testing import assert_allclose
from small import CLEAN, V0, X0, K, tolerance

import spcacore
from spcacore import deflate, explained_variance, renormalize, sparse_pca, tpower


@contextlib.contextmanager
def range_warning(expected=1.0):
    """Of variances that would be `expected` without bounds on numbers: inf and 0 warn, no others."""
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        yield
    assert all(issubclass(w.category, RuntimeWarning) and "number range" in str(w.message) for w in warned), [
        str(w.message) for w in warned
    ]
    assert bool(warned) == (not (np.isfinite(expected) & (np.asarray(expected) != 0)).all())


@each_dtype
def test_entries_at_the_end_of_the_number_range(dtype):
    top = np.finfo(dtype).max
    X = np.where(X0 > 0, top, np.where(X0 < 0, -top, 0)).astype(dtype)
    ref = sparse_pca(np.sign(X0), 2, cardinality=K)
    beyond = dtype == np.float64  # variances are float64
    with np.errstate(all="raise"), range_warning(np.inf if beyond else 1.0):
        out = sparse_pca(X, 2, cardinality=K)
    assert_allclose(np.abs(out.loadings), np.abs(ref.loadings), atol=tolerance(dtype))
    two = np.array([[top, top], [-top, -top]], dtype)  # their standard deviation is above the range
    with contextlib.suppress(ValueError), range_warning(np.inf if beyond else 1.0):
        assert_allclose(tpower(two, 2).loading, np.sqrt([0.5, 0.5]), rtol=tolerance(dtype))


@pytest.mark.parametrize("size", [1e-160, 1e160])
def test_blocks_of_one_row_at_either_end_of_the_number_range(size):
    """No block tells that squares leave the range; where columns are constant, those of their means do."""
    X = size * np.random.default_rng(0).standard_normal((4, 5))
    part = spcacore.row_blocks(X, block_bytes=X[0].nbytes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # variances out of range
        for options in ({}, {"scale": True}, {"center": False}):
            out, ref = sparse_pca(part, 2, 2, **options), sparse_pca(X / size, 2, 2, **options)
            assert_allclose(out.explained_variance_ratio, ref.explained_variance_ratio, rtol=1e-9)
    with pytest.raises(ValueError, match="rescale it"):
        spcacore.Moments.of(X[:1]) + spcacore.Moments.of(X[1:2])
    X /= size
    X[:, 0] = 1
    value = np.linalg.norm(X / np.linalg.norm(X, axis=0), 2) ** 2
    X[:, 0] = size
    for same in (X, spcacore.row_blocks(X), np.tile(X, (27_000, 1))):
        assert_allclose(tpower(same, 5, center=False, scale=True).value, value, rtol=1e-9)


def test_extreme_loadings_and_starts():
    """Directions count, lengths do not."""
    for c in (1e300, 1e-300, 1e-310, 5e-324):
        W = np.sign(V0) * c
        with np.errstate(all="raise"):
            assert_allclose(explained_variance(X0, W), explained_variance(X0, np.sign(V0)), rtol=1e-12)
            assert_allclose(renormalize(X0, W), renormalize(X0, np.sign(V0)), atol=1e-12)
            x = tpower(X0, K, options=spcacore.TPower(start=W[:, 0]))
            assert_allclose(
                x.loading, tpower(X0, K, options=spcacore.TPower(start=np.sign(V0[:, 0]))).loading, atol=1e-12
            )
            for method in ("hotelling", "projection", "schur"):
                A = CLEAN["covariance"]
                D = deflate(A, W[:, 0], method)
                assert_allclose(D, deflate(A, np.sign(V0[:, 0]), method), atol=1e-11)


@pytest.mark.parametrize(("size", "given"), [(1e300, np.inf), (1e-300, 0.0)])
def test_strengths_of_pairs_beyond_the_number_range(size, given):
    options = {"l1_bound": 1.5, "scale": False}
    ref = flat.sparse_cca(X0, X0[:, ::-1] + X0[:, :1], 1, **options)
    with pytest.warns(RuntimeWarning, match="strengths are beyond the number range"):
        out = flat.sparse_cca(size * X0, size * (X0[:, ::-1] + X0[:, :1]), 1, **options)
    assert out.strengths.tolist() == [given]
    assert_allclose(out.loadings_x, ref.loadings_x, atol=1e-9)
    assert_allclose(out.correlations, ref.correlations, atol=1e-12)
