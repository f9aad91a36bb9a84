"""Weights of samples, and given vectors for center and scale, against repeated rows and NumPy."""

from functools import partial
from typing import Any

import flat
import numpy as np
import pytest
from in_turn import each_dtype
from numpy.testing import assert_allclose
from oracles import normal
from row_block_tools import STORED
from scipy.sparse.linalg import aslinearoperator

import spcacore
from spcacore import _core
from spcacore.operators.inputs import as_problem

N, P = 40, 12
of_entries = pytest.mark.parametrize("layout", ["C", "F", "csr", "csc", "blocks"])
LAYOUTS = ("C", "F", "strided", "csr", "csc", "blocks", "dask", "operator")


def stored(X: np.ndarray, layout: str) -> Any:
    if layout == "strided":
        wide = np.zeros((2 * len(X), X.shape[1]), X.dtype)
        wide[::2] = X
        return wide[::2]
    if layout == "dask":
        return pytest.importorskip("dask.array").from_array(X, chunks=(9, X.shape[1]))
    if layout == "blocks":
        return spcacore.row_blocks(X, block_bytes=7 * X[0].nbytes)
    return aslinearoperator(X) if layout == "operator" else STORED[layout](X)


def data(seed: int = 0, dtype: Any = np.float64) -> np.ndarray:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((N, P)) @ np.diag(np.linspace(3, 1, P))
    X[:, :4] += 4 * rng.standard_normal((N, 1))
    X[rng.random(X.shape) < 0.2] = 0
    return (X + 3.0 * (np.arange(P) % 3 == 0)).astype(dtype)


def counts(seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 4, N)


def matrix(problem: Any) -> np.ndarray:
    """A in the caller's units, by products with unit vectors."""
    A = problem.operator.apply_block(np.eye(problem.p, dtype=problem.operator.dtype))
    return np.ldexp(A.astype(np.float64), problem.exponent)


@pytest.mark.share(8)
@pytest.mark.parametrize("layout", LAYOUTS)
@each_dtype
@pytest.mark.parametrize("center", [True, False, "given"])
@pytest.mark.parametrize("scale", [True, False, "given"])
def test_any_weights_center_and_scale_in_explicit_arrays(layout, dtype, center, scale):
    """F = diag(sqrt(w)) (X - mean) / scale, as an array; scale=True: root mean square about the center."""
    if layout == "operator" and scale is True:
        pytest.skip("needs entries")
    given, rng = data(2, dtype=dtype), np.random.default_rng(3)
    X, w = given.astype(np.float64), rng.random(N) * 3
    w[rng.random(N) < 0.2] = 0
    vectors = {"center": rng.standard_normal(P) * 3, "scale": np.exp(rng.standard_normal(P))}
    mean = {True: np.average(X, axis=0, weights=w), False: np.zeros(P), "given": vectors["center"]}[center]
    F = np.sqrt(w / (w.sum() - 1))[:, None] * (X - mean)
    spread = {True: np.linalg.norm(F, axis=0), False: np.ones(P), "given": vectors["scale"]}[scale]
    F /= spread
    problem = as_problem(
        stored(given, layout),
        center=vectors["center"] if center == "given" else center,
        scale=vectors["scale"] if scale == "given" else scale,
        sample_weight=w,
    )
    A, tol, S = F.T @ F, 1e-11 if dtype == np.float64 else 1e-5, np.array([0, 3, 5, 11])
    assert_allclose(matrix(problem), A, rtol=0, atol=tol * A.max())
    if problem.diagonal is not None:
        assert_allclose(problem.in_units(problem.diagonal), A.diagonal(), rtol=tol)
        assert_allclose(problem.in_units(problem.operator.submatrix(S)), A[np.ix_(S, S)], atol=tol * A.max())
    for found, expected, asked in ((problem.mean, mean, center), (problem.scale, spread, scale)):
        assert (found is None) == (asked is False)
        if found is not None:
            assert_allclose(found, expected, rtol=tol, atol=tol)


def test_a_model_without_weights_refuses_them():
    model = partial(spcacore.sma, n_components=1)
    with pytest.raises(TypeError, match="sample_weight is not for sma"):
        spcacore.sparsity_path(data(), model, [2.0], sample_weight=counts())


def close(one, all_, but=(), **tolerance):
    """Every number of two results."""
    for name, value in vars(all_).items():
        if name not in but and np.asarray(value).dtype.kind == "f":
            assert_allclose(getattr(one, name), value, **tolerance, err_msg=name)


@pytest.mark.share(12)
@pytest.mark.parametrize("layout", ["C", "F", "csr", "csc", "blocks", "dask"])
@pytest.mark.parametrize(
    "options",
    [
        {"l1_bound": (1.5, 1.3)},
        {"l1_bound": (1.5, 1.3), "scale": False},
        {"method": "generalized", "cardinality": (3, 2), "ridge": 0.1},
        {"method": "generalized", "cardinality": (3, 2), "scale": False, "certify": True},
    ],
    ids=str,
)
def test_pairs_of_repeated_rows(options, layout):
    X, w = data(12), counts()
    X[:, 9:] = 2.0 + X[:, 9:] + X[:, :3]
    X[:, 4] += 9.0  # a column that a sparse matrix stores in full
    two = [np.repeat(Z, w, axis=0) for Z in (X[:, :7], X[:, 7:])]
    all_ = flat.sparse_cca(*two, 2, **options)
    sides = stored(X[:, :7], layout), stored(X[:, 7:], layout)
    one = flat.sparse_cca(*sides, 2, sample_weight=w, **options)
    close(one, all_, ("scores_x", "scores_y"), rtol=1e-7, atol=1e-9)
    for own, other, V, Z in (
        (one.scores_x, all_.scores_x, one.loadings_x, X[:, :7]),
        (one.scores_y, all_.scores_y, one.loadings_y, X[:, 7:]),
    ):
        assert own.shape == (N, 2)
        assert V.shape[0] == Z.shape[1]
        assert_allclose(np.repeat(np.asarray(own), w, axis=0), other, atol=1e-8)


@pytest.mark.parametrize("layout", ["C", "csr"])
def test_wide_pairs_and_discriminants_of_repeated_rows(layout):
    """Covariances of more than 1024 variables are not formed."""
    rng = np.random.default_rng(14)
    X, w, y = rng.standard_normal((N, 1100)), counts(), np.arange(N) % 2
    X[rng.random(X.shape) < 0.5] = 0
    X[:, :3] += 2 * y[:, None] + 1
    rows, Z = (stored(A, layout) for A in (np.repeat(X, w, axis=0), X))
    options = {"cardinality": 3, "shrinkage": "auto"}
    one, all_ = (
        flat.sparse_lda(A, b, **options, **more)
        for A, b, more in ((Z, y, {"sample_weight": w}), (rows, np.repeat(y, w), {}))
    )
    close(one, all_, rtol=1e-8, atol=1e-10)
    options = {"method": "generalized", "cardinality": (3, 2), "ridge": 0.5}
    one, all_ = (
        flat.sparse_cca(A, b, **options, **more)
        for A, b, more in ((Z, X[:, :3], {"sample_weight": w}), (rows, np.repeat(X[:, :3], w, axis=0), {}))
    )
    close(one, all_, ("scores_x", "scores_y"), rtol=1e-8, atol=1e-9)


@pytest.mark.filterwarnings("ignore:scale=True leaves")
@pytest.mark.parametrize("layout", ["C", "csr", "blocks"])
def test_classes_and_columns_without_weight(layout):
    X, y = data(15), np.arange(N) % 3
    w = np.where(y == 1, 0.0, 1.5)
    X[:, 2] = np.where(w > 0, 0.1, np.arange(N))  # constant in the rows that count
    kept = w > 0
    options = {"cardinality": 3, "shrinkage": 0.1}
    one = flat.sparse_lda(stored(X, layout), y, sample_weight=w, **options)
    close(
        one,
        flat.sparse_lda(X[kept], y[kept], **options),
        rtol=1e-8,
        atol=1e-10,
    )
    assert one.classes.tolist() == [0, 2]
    assert (one.means[:, 2] == 0.1).all()
    pair = spcacore.sparse_cca(stored(X[:, :7], layout), X[:, 7:], l1_bound=1.4, sample_weight=w)
    assert pair.loadings_x[2] == 0
    with pytest.raises(ValueError, match="one class only among the rows of positive sample_weight, 2"):
        flat.sparse_lda(stored(X, layout), y, sample_weight=np.where(y == 2, 1, 0), **options)


@of_entries
def test_means_far_from_zero_lose_no_digits(layout):
    """Deviations of some powers of two about 1e8 are exact, weighted or not."""
    rng = np.random.default_rng(8)
    D = rng.integers(-8, 8, (N, P)).astype(float)
    w = counts()
    exact = np.cov(D.T, fweights=w)
    problem = as_problem(stored(D + 1e8, layout), sample_weight=w)
    rtol = 1e-7 if layout == "blocks" else 1e-14  # the mean of each block is rounded
    assert_allclose(problem.in_units(problem.diagonal), exact.diagonal(), rtol=rtol)


@of_entries
@pytest.mark.parametrize("size", [1e-250, 1e250])
def test_squares_out_of_the_number_range(layout, size):
    X, w = data(9), counts()
    usual = as_problem(stored(X, layout), sample_weight=w, scale=True)
    problem = as_problem(stored(X * size, layout), sample_weight=w, scale=True)
    assert_allclose(problem.scale / size, usual.scale, rtol=1e-12)
    assert_allclose(matrix(problem), matrix(usual), rtol=1e-10, atol=1e-10)


@of_entries
def test_a_column_that_varies_in_dropped_rows_alone_is_constant(layout):
    X, w = data(10), counts()
    X[:, 2] = np.where(w > 0, 0.1, np.arange(N))
    X[:, 5] = np.where(w > 0, 0.0, 7.0)
    problem = as_problem(stored(X, layout), sample_weight=w)
    assert (np.flatnonzero(problem.diagonal == 0) == [2, 5]).all()
    assert not matrix(problem)[[2, 5]].any()
    at = as_problem(stored(X, layout), center=np.full(P, 0.1), sample_weight=w)
    assert (np.flatnonzero(at.diagonal == 0) == [2]).all()


@pytest.mark.parametrize("layout", ["C", "F", "csr", "csc"])
@pytest.mark.parametrize("entry", [np.nan, np.inf])
def test_an_entry_that_is_not_finite_beside_equal_ones(layout, entry):
    """With a weight or without: the mean of the column is NaN, and X is refused by the place of the entry."""
    X, weight = data(), np.arange(N) % 3 + 0.0
    X[:, 2] = 2.0
    X[3 if entry == np.inf else 4, 2] = entry  # of weights 0 and 1
    mean = _core.statistics(stored(X, layout), weight)[0]
    assert np.flatnonzero(np.isnan(mean)).tolist() == [2]
    with pytest.raises(ValueError, match=r"^X(.data)? has (NaN entries|1 entry)"):
        spcacore.sparse_pca(stored(X, layout), 1, 3, sample_weight=weight)


@pytest.mark.parametrize("name", ["SparsePCA", "SPCA", "SCA", "PPCA", "KernelPCA"])
def test_sklearns_own_check_of_equivalence(name):
    pytest.importorskip("sklearn", "1.6")
    from sklearn.utils import estimator_checks

    from spcacore import sklearn as estimators

    estimator = getattr(estimators, name)(n_components=2)
    estimator_checks.check_sample_weight_equivalence_on_dense_data(name, estimator)
    estimator_checks.check_sample_weight_equivalence_on_sparse_data(name, estimator)


W = np.ones(N)
BAD = (
    ({"sample_weight": W[1:]}, ValueError, "sample_weight has 39 entries for 40 rows"),
    ({"sample_weight": -W}, ValueError, "must not be negative, and sample_weight\\[0\\] is -1"),
    ({"sample_weight": 0 * W}, ValueError, "sample_weight has only zeros"),
    ({"sample_weight": W / N}, ValueError, "its sum must be above 1 and at most 1e\\+100, not 1"),
    ({"sample_weight": np.where(W, np.nan, 1)}, ValueError, "sample_weight has 40 entries that are NaN"),
    ({"sample_weight": W * 1e308}, ValueError, "at most 1e\\+100, not inf"),
    ({"sample_weight": W * 1e250}, ValueError, "at most 1e\\+100, not 4e\\+251"),
    ({"sample_weight": ["a"] * N}, TypeError, "sample_weight holds strings"),
    ({"sample_weight": np.ones((N, 1))}, ValueError, "sample_weight must have 1 dimension"),
    ({"center": np.ones(P - 1)}, ValueError, "center has 11 entries for 12 variables"),
    ({"scale": np.ones(P + 1)}, ValueError, "scale has 13 entries for 12 variables"),
    ({"center": [np.inf] * P}, ValueError, "center has 12 entries that are NaN or infinite"),
    ({"scale": np.arange(P)}, ValueError, "scale must be positive, and scale\\[0\\] is 0"),
    ({"scale": np.full(P, 1e-320)}, ValueError, "scale\\[0\\] is too small for float64"),
    ({"center": 1.5}, TypeError, "center must be True or False, or have one number for each variable"),
    ({"scale": "yes"}, TypeError, "scale must be True or False"),
    ({"center": None}, TypeError, "center must be True or False"),
)


@pytest.mark.share(3)
@pytest.mark.parametrize("layout", ["C", "csr", "blocks", "operator"])
@pytest.mark.parametrize(("options", "kind", "message"), BAD, ids=lambda x: x if isinstance(x, str) else "")
def test_bad_weights_and_vectors_are_refused(layout, options, kind, message):
    with pytest.raises(kind, match=message):
        flat.sparse_pca(stored(data(), layout), 1, cardinality=3, **options)


@pytest.mark.share(2)
@pytest.mark.parametrize("layout", ["C", "F"])
def test_the_data_are_not_copied(layout):
    tracemalloc = pytest.importorskip("tracemalloc")
    X = stored(normal(0, 3000, 2000), layout)
    w = np.random.default_rng(1).random(3000) * 2
    tracemalloc.start()
    try:
        problem = as_problem(X, sample_weight=w, scale=True)
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert problem.p == 2000
    assert kept < X.nbytes / 50


@pytest.mark.parametrize("layout", ["C", "F", "csr", "csc"])
def test_a_zero_of_little_weight(layout):
    """Beside ones of the weight W together, a zero of weight w leaves the sum of squares W w / (W + w)."""
    X, weight = np.ones((11, 1)), np.full(11, 0.1)
    X[7], weight[7] = 0, 2.0**-60
    assert_allclose(_core.statistics(stored(X, layout), weight)[1], 2.0**-60, rtol=1e-14)
