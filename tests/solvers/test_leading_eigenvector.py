"""Simple thresholding against NumPy: the leading eigenvector, truncated, with deflations and constraints."""

import flat
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from oracles import centered, covariance, deflated, leading_on

from spcacore import sparse_pca

SIZES = [4, 5, 3]


def data(seed, n=60, p=20):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) * np.linspace(1, 3, p) + rng.standard_normal((n, 1)) + 4


def truncated(A, k, renormalize):
    """The k largest entries of the leading eigenvector; the leading eigenvector there."""
    leading = np.linalg.eigh(A)[1][:, -1]
    support = np.argsort(-np.abs(leading))[:k]
    x = np.zeros(len(A))
    x[support] = leading_on(A, support) if renormalize else leading[support]
    return x / np.linalg.norm(x) * np.sign(x[np.argmax(np.abs(x))])


def expected(A, renormalize, deflation):
    loadings = []
    for k in SIZES:
        loadings.append(truncated(A, k, renormalize))
        A = deflated(A, loadings[-1], deflation, loadings[:-1])
    return np.column_stack(loadings)


@pytest.mark.parametrize("renormalize", [True, False])
@pytest.mark.parametrize("deflation", ["hotelling", "projection", "schur", "orthogonalized_projection"])
@pytest.mark.parametrize("how", ["dense", "float32", "csr", "covariance"])
def test_against_numpy(how, deflation, renormalize):
    X = data(1)
    given = {
        "dense": X,
        "float32": X.astype(np.float32),
        "csr": sp.csr_matrix(X),
        "covariance": covariance(X),
    }
    options = {"renormalize": renormalize, "deflation": deflation, "method": "thresholding"}
    kind = "covariance" if how == "covariance" else "data"
    result = flat.sparse_pca(given[how], 3, cardinality=SIZES, kind=kind, **options)
    wanted = expected(covariance(X), renormalize, deflation)
    assert_allclose(result.loadings, wanted, atol=1e-3 if how == "float32" else 1e-8)
    assert result.converged.all()


def test_many_variables(rng):
    """More than are decomposed whole: the eigenvector comes from products."""
    X = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 5000)) + 0.1 * rng.standard_normal((50, 5000))
    leading = np.linalg.svd(centered(X), full_matrices=False)[2][0]
    result = sparse_pca(X, 1, cardinality=30, method="thresholding")
    assert set(np.flatnonzero(result.loadings)) == set(np.argsort(-np.abs(leading))[:30])
