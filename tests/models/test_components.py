"""sparse_pca against published tables, dense PCA, and explicit deflation by hand."""

import numpy as np
import pytest
import scipy.sparse
from in_turn import each_dtype
from numpy.testing import assert_allclose, assert_array_equal
from oracles import normal, products

import spcacore
from spcacore import sparse_pca, tpower
from spcacore.operators.transform import scores


def test_components_of_an_operator_are_extended():
    A = np.diag([4.0, 3, 2, 1]) + 0.1
    whole = sparse_pca(A, 3, cardinality=2, kind="covariance")
    some = sparse_pca(products(lambda v: A @ v, 4), 2, cardinality=2, kind="covariance")
    more = some.extend(products(lambda v: A @ v, 4), 1)
    assert_allclose(more.loadings, whole.loadings, atol=1e-10)


def test_shen_huang_design():
    """p = 500, n = 50, eigenvalues 400 and 300: both loadings recovered in every draw."""
    cosines = []
    for seed in range(100):
        X, V = spcacore.datasets.make_spiked(50, 500, rng=seed)
        cosines.append(abs(V.T @ sparse_pca(X, 2, cardinality=10).loadings).max(axis=1))
    assert np.min(cosines) > 0.99
    assert_allclose(np.mean(cosines, axis=0), [0.9998, 0.9997], atol=1.5e-4)


def test_a_large_mean_in_single_precision_is_no_lack_of_variance(rng):
    X = 500 * rng.standard_normal((100, 5000))
    X[:, 40:50] += 800 * rng.standard_normal((100, 1))
    expected = sparse_pca(X, 3, cardinality=10)
    got = sparse_pca((X + 101325).astype(np.float32), 3, cardinality=10)
    assert_allclose(got.explained_variance, expected.explained_variance, rtol=2e-3)
    assert_array_equal(got.loadings[:, 0] != 0, expected.loadings[:, 0] != 0)
    small = scipy.sparse.diags_array(np.r_[1, 1e-4, np.full(50, 1e-6)].astype(np.float32)).tocsr()
    diagonal = sparse_pca(small, 3, cardinality=1, kind="covariance").explained_variance
    assert_allclose(diagonal, [1, 1e-4, 1e-6], rtol=1e-5)


def test_a_component_without_variance_ends_the_search():
    """Hotelling deflation can leave rounding alone, on which a support has no eigenvector."""
    X = normal(1, 4, 8)
    with pytest.warns(RuntimeWarning, match="no variance is left"):
        result = sparse_pca(
            X, 3, cardinality=1, deflation="hotelling", method=spcacore.TPower(n_starts=1, swaps=False)
        )
    assert (result.explained_variance > 0).all()


@pytest.mark.parametrize("seed", [52, 360])
def test_rounding_that_deflations_leave_is_no_component(seed):
    """Of rank one and unit variances: each two variables are all of a component."""
    X = normal(seed, 5, 1) @ normal(seed + 1000, 1, 4)
    for same in (X, np.asfortranarray(X), scipy.sparse.csr_array(X)):
        with pytest.warns(RuntimeWarning, match="no variance is left after 2"):
            result = sparse_pca(same, 3, 2, center=False, scale=True)
        assert_allclose(result.explained_variance, [2, 2], rtol=1e-12)


def test_ties_of_low_rank_repeat():
    """Here the Lanczos iteration restarts, which SciPy does at random unless told otherwise."""
    X = [[-1, -1, -1, 1, -1, -1, -1, -1] * 5, [1, 1, -1, 1, -1, 1, -1, 1] * 5]
    found = {
        tpower(X, 1, center=False, options=spcacore.TPower(n_starts=1)).loading.tobytes() for _ in range(20)
    }
    assert len(found) == 1


@pytest.mark.share(3)
@pytest.mark.parametrize("layout", ["C", "F", "strided", "reversed"])
@each_dtype
def test_scores_by_many_loadings(layout, dtype, rng):
    """Of some columns, by more loadings than are multiplied at a time: those of long doubles. A row has those
    that it has among others, to the bit; a column that no loading uses may have NaN."""
    n, p, r = 2500, 300, 21
    X = (rng.standard_normal((n, p)) + (1e8 if dtype == np.float64 else 1e3)).astype(dtype)
    V = np.zeros((p, r), dtype)
    used = np.sort(rng.choice(p, 200, replace=False))
    V[used] = rng.standard_normal((200, r)) / 10
    X[5, np.setdiff1d(np.arange(p), used)[0]] = np.nan
    mean = np.nan_to_num(X, nan=0).mean(axis=0, dtype=np.float64).astype(dtype)
    wide = X[:, used].astype(np.longdouble) - mean[used]
    X = {
        "C": lambda: X,
        "F": lambda: np.asfortranarray(X),
        "strided": lambda: np.repeat(np.repeat(X, 2, axis=0), 2, axis=1)[::2, ::2],
        "reversed": lambda: X[::-1].copy()[::-1],
    }[layout]()
    found = scores(X, V, mean, None)
    assert_allclose(found, wide @ V[used], rtol=0, atol=1e-13 if dtype == np.float64 else 1e-4)
    for i in (0, 7, 2303, 2304, n - 1):
        assert scores(X[i : i + 1], V, mean, None).tobytes() == found[i].tobytes()
    X[8, used[3]] = np.inf
    with pytest.raises(ValueError, match="X has"):
        scores(X, V, mean, None)


def test_scores_whose_sum_overflows():
    """A product with two entries is exact here; all scores together have no finite sum."""
    X = np.full((40, 2), 2.0**1022)
    assert_array_equal(scores(X, np.array([[1.0], [0.5]]), None, None), np.full((40, 1), 1.5 * 2.0**1022))
