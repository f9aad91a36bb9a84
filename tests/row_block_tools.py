"""What the tests of data in blocks of rows share: data, options of sparse_pca, and a source."""

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose

import spcacore

N, P = 420, 300
METHODS = {
    "tpower": {"cardinality": 8},
    "tpower, many variables": {"cardinality": 60},
    "tpower, scaled": {"cardinality": 8, "scale": True},
    "tpower, not centered": {"cardinality": 8, "center": False},
    "tpower, nonnegative": {"cardinality": 8, "nonnegative": True},
    "gpower": {"method": "gpower", "penalty": 4.0},
    "gpower, block": {"method": "gpower", "penalty": 4.0, "block": True},
    "pmd": {"method": "pmd", "l1_bound": 2.5},
    "greedy": {"method": "greedy", "cardinality": 6},
    "greedy gradient": {"method": "greedy", "cardinality": 6, "strategy": "gradient"},
    "scotlass": {"method": "scotlass", "l1_bound": 2.0},
    "dspca": {"method": "dspca", "cardinality": 4},
    "branch_and_bound": {"method": "branch_and_bound", "cardinality": 3},
    "hotelling": {"cardinality": 8, "deflation": "hotelling"},
    "schur": {"cardinality": 8, "deflation": "schur"},
    "generalized": {"cardinality": 8, "deflation": "generalized"},
    "orthogonalized": {"cardinality": 8, "deflation": "orthogonalized_projection"},
    "orthogonal": {"cardinality": 8, "constraint": "orthogonal"},
    "uncorrelated": {"cardinality": 8, "constraint": "uncorrelated"},
    "refined": {"cardinality": 8, "refine": True},
    "certified": {"cardinality": 8, "certify": True},
}


STORED = {  # the same rows as solvers may have them
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "blocks": lambda X: spcacore.row_blocks(X, block_bytes=X.nbytes // 3),
}


def data(n=N, p=P, seed=0, dtype=np.float64):
    """Three factors of unequal strength on overlapping variables, means away from 0, one constant column."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p))
    for a, size in enumerate((3.0, 2.2, 1.7)):
        columns = np.arange(6 * a, 6 * a + 8)
        X[:, columns] += size * rng.standard_normal((n, 1)) * np.linspace(1, 0.5, 8)
    X *= np.linspace(1.2, 1, p)
    X[:, -1] = 0
    return (X + np.arange(p) % 7).astype(dtype)


def same(result, expected, tol):
    assert np.array_equal(result.loadings != 0, expected.loadings != 0)
    assert_allclose(result.loadings, expected.loadings, rtol=0, atol=tol)
    assert_allclose(result.explained_variance, expected.explained_variance, rtol=tol)
    assert_allclose(result.total_variance, expected.total_variance, rtol=tol)
    assert result.n_samples == expected.n_samples
    assert result.loadings.dtype == expected.loadings.dtype
    for name in ("mean", "scale"):
        a, b = getattr(result, name), getattr(expected, name)
        assert (a is None) == (b is None)
        if a is not None:
            assert_allclose(a, b, rtol=max(tol, 1e-12), atol=1e-12)


class Rows:
    """The least that is asked of a source."""

    def __init__(self, X):
        self.X, self.shape, self.dtype = X, X.shape, X.dtype

    def __getitem__(self, rows):
        assert isinstance(rows, slice)
        return self.X[rows]


def spoiled(value, row, column):
    X = data()
    X[row, column] = value
    return X


def dask_array(X, rows=150, columns=P):
    da = pytest.importorskip("dask.array", reason="needs dask")
    return da.from_array(X, chunks=(rows, columns))


def bytes_of(found):
    if isinstance(found, (list, tuple)):
        return sum(map(bytes_of, found))
    return getattr(found, "nbytes", 0)
