"""The semidefinite relaxation against a general solver, published numbers, enumeration and its own dual."""

import importlib
import warnings

import flat
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from in_turn import examples
from numpy.testing import assert_array_equal
from oracles import covariance, optimum, samples

import spcacore
from spcacore import _core, dspca

MODULE = importlib.import_module("spcacore.solvers.semidefinite")
PITPROPS = spcacore.datasets.load_pitprops().correlation


def solved(A, cardinality=None, penalty=None):
    """The optimum of the relaxation by a general conic solver."""
    cvxpy = pytest.importorskip("cvxpy")
    M = cvxpy.Variable(A.shape, PSD=True)
    l1 = cvxpy.sum(cvxpy.abs(M))
    constraints = [cvxpy.trace(M) == 1]
    objective = cvxpy.trace(A @ M)
    if penalty is None:
        constraints.append(l1 <= cardinality)
    else:
        objective -= penalty * l1
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return cvxpy.Problem(cvxpy.Maximize(objective), constraints).solve(solver="CLARABEL")


def matrix_of(x):
    """M over all variables, after checking that it is one."""
    M = np.zeros((x.loading.size,) * 2)
    M[np.ix_(x.kept, x.kept)] = x.matrix
    assert_array_equal(M, M.T)
    assert np.trace(M) == pytest.approx(1, abs=1e-12)
    assert np.linalg.eigvalsh(M)[0] > -1e-12
    return M


def quiet(*args, **kwargs):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return flat.dspca(*args, **kwargs)


# ---- the optimum ------------------------------------------------------------------------------------


@pytest.mark.parametrize("p", [3, 8, 20])
def test_against_a_conic_solver(p):
    A = covariance(samples(p, p + 3, p))
    for k in (2, 3, p // 2 + 1):
        x = flat.dspca(A, k, kind="covariance", tol=1e-6, max_iter=5000)
        expected = solved(A, cardinality=k)
        assert x.relaxation * (1 - 1e-6) <= expected * (1 + 1e-6)
        assert x.dual >= expected * (1 - 1e-6)
        assert x.dual - x.relaxation <= 1e-6 * x.dual
        M = matrix_of(x)
        assert np.abs(M).sum() <= k + 1e-9
        assert np.sum(A * M) == pytest.approx(x.relaxation, rel=1e-10)
    for rho in np.array([0.02, 0.2, 0.6]) * A.diagonal().max():
        x = flat.dspca(A, penalty=rho, kind="covariance", tol=1e-6, max_iter=5000)
        expected, size = solved(A, penalty=rho), A.diagonal().max()
        assert x.relaxation <= expected + 1e-6 * size
        assert x.dual >= expected - 1e-6 * size
        assert x.dual - x.relaxation <= 1e-6 * (x.dual + rho)
        M = matrix_of(x)
        assert np.sum(A * M) - rho * np.abs(M).sum() == pytest.approx(x.relaxation, abs=1e-10 * size)


def test_the_kernel_bounds_indefinite_matrices_too():
    rng = np.random.default_rng(3)
    for _ in range(20):
        A = rng.standard_normal((6, 6))
        A = A + A.T
        A[0, 0] = abs(A[0, 0])
        _, M, primal, dual, _ = _core.dspca(A, True, 2.0, 1e-5, 2000)
        assert dual >= optimum(A, 3) * (1 - 1e-13)
        assert np.sum(A * M) == pytest.approx(primal, rel=1e-9)
        assert dual - primal <= 1e-5 * dual


# ---- elimination ------------------------------------------------------------------------------------


def test_a_small_variance_alone_eliminates_nothing():
    """Variable 1 has a variance below the penalty, and yet a loading."""
    A = np.array([[4.0, 2.0], [2.0, 1.0]])
    x = flat.dspca(A, penalty=1.5, kind="covariance", tol=1e-8)
    assert x.cardinality == 2
    angles = np.linspace(0, np.pi, 100001)
    u = np.stack([np.cos(angles), np.sin(angles)])
    best = (np.sum(u * (A @ u), axis=0) - 1.5 * np.abs(u).sum(axis=0) ** 2).max()
    assert best > 4 - 1.5 + 0.05
    assert x.relaxation == pytest.approx(best, abs=1e-6)
    assert dspca(A, penalty=2.0, kind="covariance").cardinality == 1


@given(seed=st.integers(0, 2**32), share=st.floats(0.05, 0.9))
@settings(max_examples=examples(40), deadline=None, derandomize=True)
def test_elimination_by_covariances_keeps_the_optimum(seed, share):
    rng = np.random.default_rng(seed)
    X = samples(seed, 12, 15) * 10 ** rng.uniform(-2, 0, 15)
    A = covariance(X)
    rho = share * A.diagonal().max()
    x = quiet(X, penalty=rho, tol=1e-6)
    off = np.abs(A - np.diag(A.diagonal())).max(axis=0)
    keep = off > rho
    keep[np.argmax(A.diagonal())] = True
    assert_array_equal(x.kept, np.flatnonzero(keep))
    _, _, primal, dual, _ = _core.dspca(A, False, rho, 1e-6, 5000)  # over all variables
    size = 1e-6 * dual
    assert x.relaxation + rho <= dual + size
    assert x.dual + rho >= primal - size


@pytest.mark.parametrize("kind", ["data", "covariance"])
def test_elimination_by_columns_and_by_submatrix_agree(kind, monkeypatch):
    X = samples(7, 12, 40) * 10 ** np.linspace(0, -2, 40)
    M = X if kind == "data" else covariance(X)
    rho = 0.2 * covariance(X).max()
    x = dspca(M, penalty=rho, kind=kind)
    monkeypatch.setattr(MODULE, "largest_submatrix", lambda op: 0)
    y = dspca(M, penalty=rho, kind=kind)
    assert 2 < x.kept.size < 40
    assert_array_equal(x.kept, y.kept)
    assert x.dual == pytest.approx(y.dual, rel=1e-9)


def test_elimination_for_a_cardinality_keeps_the_optimum(monkeypatch):
    reduced = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 25)) * 10 ** np.linspace(0, -1, 25)
        X += rng.standard_normal((40, 1)) * np.linspace(3, 0, 25) ** (seed % 3 + 1)
        for k in (2, 4, 6):
            monkeypatch.setattr(MODULE, "REDUCED_ORDER", 200)
            x = quiet(X, k, tol=1e-5)
            monkeypatch.setattr(MODULE, "REDUCED_ORDER", 0)
            y = quiet(X, k, tol=1e-5)
            reduced += y.kept.size < x.kept.size
            assert x.kept.size == 25
            assert y.dual >= x.relaxation
            assert x.dual >= y.relaxation
            assert not y.converged or y.dual - y.relaxation <= 1e-5 * y.dual
            assert np.abs(matrix_of(y)).sum() <= k + 1e-9
    assert reduced > 18


def test_a_wide_sparse_matrix_is_reduced():
    rng = np.random.default_rng(0)
    spread = np.r_[np.full(6, 3.0), np.full(2994, 0.05)]
    X = rng.random((200, 3000)) * spread * (rng.random((200, 3000)) < 0.2)
    X[:, :6] += rng.standard_normal((200, 1))
    X = scipy.sparse.csr_array(X)
    for sparsity in ({"cardinality": 6}, {"penalty": 0.3}):
        x = flat.dspca(X, **sparsity)
        assert x.kept.size < 50
        assert_array_equal(np.flatnonzero(x.loading), np.arange(6))
        assert x.gap < 0.02


# ---- input ------------------------------------------------------------------------------------------


def test_not_converged_and_no_variance():
    A = covariance(samples(12, 20, 8))
    with pytest.warns(RuntimeWarning, match="not converged in 2 iterations"):
        x = flat.dspca(A, 3, kind="covariance", max_iter=2, tol=1e-9)
    assert not x.converged
    assert x.upper_bound >= optimum(A, 3)
    for sparsity in ({"cardinality": 2}, {"penalty": 1.0}, {"penalty": 1.0, "include": [1]}):
        with pytest.warns(RuntimeWarning, match="no variance"):
            x = flat.dspca(np.ones((5, 4)), **sparsity)
        assert (x.value, x.upper_bound, x.gap) == (0, 0, 0)
        assert x.dual == x.relaxation == -sparsity.get("penalty", 0.0)


def test_bad_matrices(monkeypatch):
    X = samples(2, 20, 8)
    monkeypatch.setattr(MODULE, "RELAXATION_ORDER", 4)
    with pytest.raises(ValueError, match="8 variables remain, of which dspca solves for at most 4; lower"):
        dspca(X, 2)
    with pytest.raises(ValueError, match="at this penalty 8 variables remain"):
        dspca(X, penalty=1e-3)


@pytest.mark.parametrize("one_sided", [False, True])
def test_the_bound_allows_for_rounding_of_the_products(monkeypatch, one_sided):
    """Of all variables it is the largest eigenvalue, known in extended precision.

    Of equal numbers all roundings of a sum may have one sign: those of sparse rows then reach m roundings.
    """
    monkeypatch.setattr("spcacore.operators.submatrix.SUBMATRIX_ENTRIES", 4000)
    for seed in range(20):
        rng, dtype = np.random.default_rng(seed), np.float32 if seed % 2 or one_sided else np.float64
        X = rng.standard_normal((200, 4)) * [1, 2, 3, 10]
        X = (np.full((20_000, 4), rng.uniform(1, 2)) if one_sided else X).astype(dtype)
        F = X.astype(np.longdouble) - (0 if one_sided else X.astype(np.longdouble).mean(axis=0))
        A = F.T @ F / (len(X) - 1)
        v = np.linalg.eigh(A.astype(np.float64))[1][:, -1].astype(np.longdouble)
        stored, best = scipy.sparse.csr_array(X) if one_sided else X, v @ A @ v / (v @ v)
        assert dspca(stored, 4, center=not one_sided).upper_bound >= best
        bounds = spcacore.optimality_bound(stored, 4, center=not one_sided, relaxation=True).bounds
        assert min(bounds.values()) >= best


class EndsTheSecondTime:
    """A progress hook that is heard at once, and once more some time later."""

    ended = True

    def __init__(self):
        self.heard = []

    def __call__(self, n_iter):
        self.heard.append(n_iter)
        return len(self.heard) == 2


def test_what_a_hook_has_ended_is_whole():
    """The matrix is symmetric, and the iterations are those that the hook heard of."""
    rng, hook = np.random.default_rng(0), EndsTheSecondTime()
    A = rng.standard_normal((120, 120))
    _, M, _, _, n_iter = _core.dspca(A @ A.T, True, 3.0, 0.0, 10**6, hook)
    assert (len(hook.heard), n_iter) == (2, hook.heard[-1])
    assert n_iter > 0
    assert_array_equal(M, M.T)
    assert np.trace(M) == pytest.approx(1)
