"""sparsity_path against enumeration, single calls and LAPACK."""

import flat
import numpy as np
import pytest
import scipy.sparse
from calls import pca
from numpy.testing import assert_allclose
from oracles import centered, planted

import spcacore


@pytest.mark.parametrize(
    ("method", "name", "values"),
    [
        ("pmd", "l1_bound", [1.2, 2.0, 3.0]),
        ("scotlass", "l1_bound", [1.2, 2.0, 3.0]),
        ("gpower", "penalty", [0.5, 0.1, 0.3]),
        ("greedy", "cardinality", [2, 5, 9]),
        ("branch_and_bound", "cardinality", [2, 5, 9]),
        ("dspca", "cardinality", [2, 5, 9]),
    ],
)
def test_path_of_every_method(method, name, values):
    A = spcacore.datasets.load_pitprops().correlation
    path = spcacore.sparsity_path(A, pca(2, kind="covariance", method=method), values)
    nonzeros = path.cardinality.sum(axis=1)
    assert np.all(np.diff(nonzeros) >= 0)
    for value, result in zip(path.values.tolist(), path, strict=True):
        alone = flat.sparse_pca(A, 2, kind="covariance", method=method, **{name: value})
        assert result.explained_variance[0] >= alone.explained_variance[0] * (1 - 1e-6)


def test_index_of_sparseness_and_dense_shares():
    X = planted(50, 30, 5)
    path = spcacore.sparsity_path(X, pca(3), [2, 5, 30])
    roots = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    dense = roots[:3] / roots.sum()
    assert_allclose(path.dense_ratio, dense, rtol=1e-9)
    for i, k in enumerate([2, 5, 30]):
        share = spcacore.explained_variance(X, path[i].loadings).sum() / roots.sum()
        assert path.index_of_sparseness[i] == pytest.approx(share * dense.sum() * (1 - k / 30), abs=1e-9)
    wide = planted(20, 300, 5)
    shares = spcacore.sparsity_path(wide, pca(3), [5]).dense_ratio
    squares = np.linalg.svd(centered(wide), compute_uv=False) ** 2
    assert_allclose(shares, squares[:3] / squares.sum(), rtol=1e-9)
    selection = spcacore.select_sparsity(X, pca(3), [2, 5, 30], criterion="sparseness")
    assert selection.chosen == path.values[np.argmax(path.index_of_sparseness)]
    assert selection.standard_error is None


def test_path_default_values_reach_from_one_to_all():
    path = spcacore.sparsity_path(planted(20, 12, 3), spcacore.sparse_pca)
    assert path.values[0] == 1
    assert path.values[-1] == 12
    bounds = spcacore.sparsity_path(planted(20, 12, 3), pca(method="pmd")).values
    assert bounds[[0, -1]].tolist() == pytest.approx([1, np.sqrt(12)])


def test_path_goes_on_where_no_variance_is_left():
    X = np.outer(np.arange(5.0), np.ones(4))
    with pytest.warns(RuntimeWarning, match="fewer than 2 components are left at cardinality 4"):
        path = spcacore.sparsity_path(X, pca(2), [1, 4])
    assert_allclose(path.explained_variance_ratio, [[0.25, 0.25], [1, 0]], atol=1e-12)
    assert path.cardinality.tolist() == [[1, 1], [4, 0]]


def test_path_of_an_operator_knows_no_shares():
    X = planted(40, 60, 6)
    operator = scipy.sparse.linalg.aslinearoperator(centered(X))
    path = spcacore.sparsity_path(operator, pca(center=False), [3, 6])
    assert path.explained_variance_ratio is None
    own = spcacore.sparsity_path(X, spcacore.sparse_pca, [3, 6])
    for a, b in zip(path, own, strict=True):
        assert_allclose(a.loadings, b.loadings, atol=1e-6)
