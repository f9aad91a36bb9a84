"""Priors of sparse precision in soppca and oppca, against their dense decompositions."""

import flat
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from oracles import centered, normal

import spcacore
from spcacore import grid_laplacian, oppca
from spcacore.models import priors
from spcacore.models.priors import chosen_support
from spcacore.supports.admissible import Supports


def maps(seed, shape=(26, 40), n=40):
    """Two blobs and noise, and the blobs."""
    rng = np.random.default_rng(seed)
    at = np.indices(shape).reshape(2, -1).T
    W = np.exp(-0.5 * np.sum((at[:, None] - [[8, 10], [18, 28]]) ** 2, axis=2) / 9)
    W = np.where(W > 0.1, W, 0) / np.linalg.norm(W, axis=0)
    X = rng.standard_normal((n, 2)) * [6, 5] @ W.T + rng.standard_normal((n, len(W)))
    return X, W


def test_a_large_support_is_that_of_the_dense_search(rng):
    """Blobs and scattered variables; rows only where they may differ from zero."""
    a = 0.01
    L = (grid_laplacian((20, 30)) + 0.02 * sp.eye_array(600)).tocsr()
    at = np.indices((20, 30)).reshape(2, -1).T
    r = 4 * np.exp(-0.5 * np.sum((at - [8, 10]) ** 2, axis=1) / 20) + rng.standard_normal(600)
    sparse, dense = priors.Sparse.of(L, 0), priors.Spectral.of(L.toarray())
    for k in (1, 40, 150):
        assert (
            sparse.support(r, a, k).tolist() == chosen_support(dense, Supports.any_of(600, k), r, a).tolist()
        )


@pytest.mark.share(3)
@pytest.mark.parametrize("deflation", ["orthogonal", "naive", "constrained"])
def test_supports_larger_than_the_samples(deflation):
    """By the columns of the data and by the covariance, which has none."""
    X, _ = maps(3, (15, 22), 25)
    options = {"prior_precision": grid_laplacian((15, 22)) + 0.05 * sp.eye_array(330), "deflation": deflation}
    data = flat.soppca(X, 2, 60, **options)
    A = flat.soppca(np.cov(X.T), 2, 60, kind="covariance", n_samples=25, **options)
    assert_allclose(data.loadings, A.loadings, atol=1e-6)
    for ours, theirs in zip(data.free_energy, A.free_energy, strict=True):
        assert ours[-1] == pytest.approx(theirs[-1], abs=1e-6)
    S = np.flatnonzero(data.means[:, 0])  # K_SS m = Z'x/s2, to more than the digits of a rough end
    x, K = data.scores[:, 0], options["prior_precision"].toarray()[np.ix_(S, S)]
    right = centered(X).T @ x / data.noise_variances[0]
    m = np.linalg.solve(K + x @ x / data.noise_variances[0] * np.eye(len(S)), right[S])
    assert_allclose(data.means[S, 0], m, atol=1e-6 * np.abs(m).max())


def test_an_estimated_determinant_of_a_prior(with_limits):
    """By quadrature, also where the earlier means are left out."""
    with_limits(priors, SPECTRAL_ORDER=500)
    X, _ = maps(1, (18, 30))
    L = grid_laplacian((18, 30)) + 0.02 * sp.eye_array(540)
    many = oppca(X, 2, prior=spcacore.Prior(precision=L))
    dense = oppca(X, 2, prior=spcacore.Prior(covariance=np.linalg.inv(L.toarray())))
    for t in range(2):
        assert many.free_energy[t][-1] == pytest.approx(dense.free_energy[t][-1], abs=20)
        assert many.gain[t] > 100


@pytest.mark.parametrize("work", [0, 1 << 26])
def test_solves_traces_and_determinants(work, with_limits):
    """By conjugate gradients, and by a factor in bands, of points in any order."""
    with_limits(priors, BAND_WORK=work)
    mixed = np.random.default_rng(1).permutation(600)
    L = sp.csr_array(grid_laplacian((20, 30)))[mixed][:, mixed]
    exact, sparse = priors.Spectral.of(L.toarray()), priors.Sparse.of(L, 0)
    V = normal(0, 600, 3)
    assert (sparse.factor is None) == (work == 0)
    for a in (0.3, 1.0, 100.0):
        assert_allclose(sparse.solve(a, V), exact.solve(a, V), rtol=1e-8, atol=1e-10)
        assert sparse.trace(a) == pytest.approx(exact.rotated.trace(a), rel=0.02)
        assert sparse.logdet(a) == pytest.approx(exact.rotated.logdet(a), rel=0.02, abs=20)
        step = 1e-6 * a  # Tr K^-1 is the derivative of log det K
        slope = (sparse.logdet(a + step) - sparse.logdet(a - step)) / (2 * step)
        assert sparse.trace(a) == pytest.approx(slope, rel=1e-5)


def test_a_precision_without_a_stored_diagonal():
    """An empty row of the precision: a variable the prior says nothing of."""
    L = sp.csr_array(grid_laplacian((5,)).toarray() * np.outer([1, 1, 1, 1, 0], [1, 1, 1, 1, 0]))
    L.eliminate_zeros()
    chooser = priors.Sparse.of(L, 0)
    r = np.array([1.0, 0.5, 0.2, 2, 3])
    dense = priors.Spectral.of(L.toarray())
    for k in range(1, 6):
        assert (
            chooser.support(r, 0.7, k).tolist()
            == chosen_support(dense, Supports.any_of(5, k), r, 0.7).tolist()
        )


def test_the_grid_laplacian():
    mask = np.array([[True, True, False], [True, True, True]])
    L = grid_laplacian((2, 3), mask)
    w = np.arange(5.0) ** 2
    pairs = [(0, 1), (2, 3), (3, 4), (0, 2), (1, 3)]
    assert w @ (L @ w) == sum((w[i] - w[j]) ** 2 for i, j in pairs)
    assert grid_laplacian((7, 3, 4)).sum() == 0
    for options, error, match in (
        (((2, 0),), ValueError, "shape"),
        (((2, 3), np.ones((3, 2), bool)), ValueError, "mask has shape"),
        (((2, 3), np.ones((2, 3))), TypeError, "boolean"),
        (((2, 3), np.zeros((2, 3), bool)), ValueError, "no points"),
        ((2.5,), TypeError, "shape"),
    ):
        with pytest.raises(error, match=match):
            grid_laplacian(*options)
