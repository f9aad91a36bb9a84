"""The semidefinite relaxation against a general solver, published numbers, enumeration and its own dual."""

import importlib
import warnings

import flat
import numpy as np
import pytest
import scipy.sparse
from hypothesis import strategies as st
from in_turn import SEEDS, each_kind, of_examples
from numpy.testing import assert_allclose, assert_array_equal
from oracles import covariance, deflations, normal, optimum, samples

import spcacore
from spcacore import DSPCA, _core, dspca, sparse_pca
from spcacore.operators.deflation import DEFLATIONS, DeflatedOperator
from spcacore.operators.gram import symmetric_submatrix
from spcacore.operators.inputs import as_problem
from spcacore.supports.admissible import Supports

MODULE = importlib.import_module("spcacore.solvers.semidefinite")


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


@pytest.mark.share(3)
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


@pytest.mark.parametrize("seed", [1, 2, 24])
def test_of_what_hotelling_leaves_of_rank_one(seed):
    """No variance is positive, or LAPACK finds no eigenvectors of matrices of low rank."""
    w = np.exp(3 * normal(seed, 5))
    A = np.outer(w, w)
    V = sparse_pca(A, 3, 3, kind="covariance", method="dspca", deflation="hotelling").loadings
    assert V.shape[1] == 3
    for x, left in zip(V.T, deflations(A, V, "hotelling"), strict=False):
        assert x @ left @ x == pytest.approx(optimum(left, 3), rel=1e-9)


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


@of_examples(40, seed=SEEDS, share=st.floats(0.05, 0.9))
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


@pytest.mark.parametrize("columns", [False, True])
@each_kind
def test_elimination_after_deflation_is_that_of_its_matrix(kind, columns, monkeypatch):
    """A without a direction q, by rows that are asked for one by one or together."""
    if columns:
        monkeypatch.setattr(MODULE, "largest_submatrix", lambda op: 0)
    for seed in range(6):
        X = samples(seed, 12, 40) * 10 ** np.linspace(0, -1, 40)
        A, q = covariance(X), np.zeros(40)
        q[:3] = 1 / np.sqrt(3)
        problem = as_problem(X if kind == "data" else A, kind=kind)
        state = DeflatedOperator.from_problem(problem, DEFLATIONS["generalized"])
        state = state.deflate(np.arange(3), q[:3])
        rest = np.eye(40) - np.outer(q, q)
        L = rest @ A @ rest
        rho = L.diagonal().max()
        unit = float(problem.in_units(1.0))
        op = state.operator
        off = np.abs(L - np.diag(L.diagonal())).max(axis=0)
        for share in (0.02, 0.1, 0.3):
            kept = off > share * rho
            kept[L.diagonal().argmax()] = True
            found = MODULE._survivors(state, share * rho / unit)
            assert_array_equal(found, np.flatnonzero(kept))
            assert_allclose(symmetric_submatrix(op, found) * unit, L[np.ix_(found, found)], atol=1e-9 * rho)
        assert found[-1] in MODULE._survivors(state, off[found[-1]] * (1 - 3e-15) / unit)  # rounded or not


def test_elimination_for_a_cardinality_keeps_the_optimum(monkeypatch, with_limits):
    reduced = mixed = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 25)) * 10 ** np.linspace(0, -1, 25)
        X += rng.standard_normal((40, 1)) * np.linspace(3, 0, 25) ** (seed % 3 + 1)
        for k in (2, 4, 6):
            with_limits(MODULE, REDUCED_ORDER=200)
            x = quiet(X, k, tol=1e-5)
            with_limits(MODULE, REDUCED_ORDER=0, ROUGH_ITERATIONS=(100, 2)[seed % 2])  # 2: gaps that matter
            y = quiet(X, k, tol=1e-5)
            reduced += y.kept.size < x.kept.size
            assert x.kept.size == 25
            assert y.dual >= x.relaxation
            assert x.dual >= y.relaxation
            assert not y.converged or y.dual - y.relaxation <= 1e-5 * y.dual
            with monkeypatch.context() as patch:  # ended at the first penalty
                patch.setattr(MODULE, "ended", lambda hook: True)
                patch.setattr(MODULE, "PENALTY_DESCENT", 0.3)
                z = quiet(X, k, tol=1e-5)
            assert z.dual >= x.relaxation
            for found in (y, z):
                M = matrix_of(found)
                assert np.abs(M).sum() <= k + 1e-9
                assert found.relaxation == pytest.approx((covariance(X) * M).sum(), rel=1e-9)
            mixed += z.kept.size < 25 and np.abs(M).sum() == pytest.approx(k, abs=1e-9)
    assert reduced > 18
    assert mixed > 12


def test_a_wide_sparse_matrix_is_reduced(rng):
    spread = np.r_[np.full(6, 3.0), np.full(2994, 0.05)]
    X = rng.random((200, 3000)) * spread * (rng.random((200, 3000)) < 0.2)
    X[:, :6] += rng.standard_normal((200, 1))
    X = scipy.sparse.csr_array(X)
    for sparsity in ({"cardinality": 6}, {"penalty": 0.3}):
        x = flat.dspca(X, **sparsity)
        assert x.kept.size < 50
        assert_array_equal(np.flatnonzero(x.loading), np.arange(6))
        assert x.gap < 0.02
        assert x.dual >= x.relaxation
        A = covariance(X[:, x.kept].toarray())
        penalty = sparsity.get("penalty", 0) * np.abs(x.matrix).sum()
        assert x.relaxation == pytest.approx((A * x.matrix).sum() - penalty, rel=1e-9)


# ---- input ------------------------------------------------------------------------------------------


def test_a_mixture_of_loadings_leaves_no_room_unused():
    A = np.eye(
        5
    )  # the relaxation mixes all pairs of four equal variables; its first eigenvector is the fifth
    A[:4, :4] = 0.98
    best = optimum(A, 2)
    assert dspca(A, 2, kind="covariance").value == pytest.approx(best, rel=1e-12)
    # A bound is on the cardinality asked for, whatever the component uses
    for certify in ("bounds", True):
        rough = sparse_pca(A, 1, 2, method=DSPCA(renormalize=False), certify=certify, kind="covariance")
        assert rough.cardinality[0] == 1
        assert rough.upper_bound[0] >= best
        assert rough.gap[0] > 0.4


def test_of_equal_variances_the_first_variable_is_taken(rng):
    for _ in range(5):
        X, weight = rng.standard_normal((14, 4)), rng.integers(1, 4, 14).astype(float)
        for M in (X, np.asfortranarray(X), scipy.sparse.csr_array(X)):
            assert dspca(M, 1, scale=True, sample_weight=weight).loading.tolist() == [1, 0, 0, 0]


def test_not_converged_and_no_variance():
    A = covariance(samples(12, 20, 8))
    with pytest.warns(RuntimeWarning, match="not converged in 2 iterations"):
        x = flat.dspca(A, 3, kind="covariance", max_iter=2, tol=1e-9)
    assert not x.converged
    assert x.upper_bound >= optimum(A, 3)
    operator = flat.dspca(scipy.sparse.linalg.aslinearoperator(samples(12, 20, 8)), 3)
    assert optimum(A, 3) <= operator.upper_bound < 1.1 * optimum(A, 3)
    for sparsity in ({"cardinality": 2}, {"penalty": 1.0}, {"penalty": 1.0, "include": [1]}):
        with pytest.warns(RuntimeWarning, match="no variance"):
            x = flat.dspca(np.ones((5, 4)), **sparsity)
        assert (x.value, x.upper_bound, x.gap) == (0, 0, 0)
        assert x.dual == x.relaxation == -sparsity.get("penalty", 0.0)


def test_bad_matrices(with_limits):
    X = samples(2, 20, 8)
    with_limits(MODULE, RELAXATION_ORDER=4)
    with pytest.raises(ValueError, match="8 variables remain, of which dspca solves for at most 4; lower"):
        dspca(X, 2)
    with pytest.raises(ValueError, match="at this penalty 8 variables remain"):
        dspca(X, penalty=1e-3)


@pytest.mark.parametrize("one_sided", [False, True])
def test_the_bound_allows_for_rounding_of_the_products(monkeypatch, one_sided):
    """Of all variables it is the largest eigenvalue, known in extended precision.

    Of equal numbers all roundings of a sum may have one sign: those of sparse rows then reach m roundings.
    """
    monkeypatch.setattr("spcacore.operators.gram.SUBMATRIX_ENTRIES", 4000)
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


@pytest.mark.parametrize("entries", [10**6, 1000])
def test_the_margin_is_that_of_how_the_entries_come_about(entries, monkeypatch):
    """By tiles of centered columns or, of many variables, by products with columns as they are stored."""
    monkeypatch.setattr("spcacore.operators.gram.SUBMATRIX_ENTRIES", entries)
    n, X, every, half = 2000, normal(0, 2000, 5) + 30, np.arange(5), np.full(2, 0.5**0.5)
    moment, variance = (X**2).mean(axis=0), X.var(axis=0)
    problem, tiled = as_problem(X), entries > 5 * n
    state, additions = DeflatedOperator.from_problem(problem), 512 + n // 512 if tiled else n
    for found, squares, times in (
        (state, variance if tiled else moment, 1),
        (state.deflate(np.arange(2), half), moment, 2),
    ):
        for together in (np.sum, np.max):
            least = times * additions * np.finfo(float).eps / 2 * together(squares)
            assert least <= problem.in_units(MODULE._rounding(found, every, together)) <= 3 * least
    given = DeflatedOperator.from_problem(as_problem(np.cov(X.T), kind="covariance"))
    assert MODULE._lost(given, every) == 0


class EndsOnceItMoves:
    """A progress hook that is heard at once, and ends the search when it hears of an iteration."""

    ended = True

    def __init__(self):
        self.heard = []

    def __call__(self, n_iter):
        self.heard.append(n_iter)
        return n_iter > 0 or len(self.heard) == 9999


def test_what_a_hook_has_ended_is_whole():
    """The matrix is symmetric, and the iterations are those that the hook heard of."""
    A = normal(0, 120, 120)
    A, slow = A @ A.T, 2 * np.eye(400) + np.eye(400, k=1) + np.eye(400, k=-1)  # one eigenvalue near the next
    one, start = np.arange(120), normal(1, 400)
    op, rule = _core.dense(slow, True), Supports.any_of(400, 300).rule(0, 300)
    shape = one, 1 - np.eye(120), np.full(120, -2.0), None, True, 0.0
    for call, at in (
        (lambda hook: _core.dspca(A, True, 3.0, 0.0, 10**6, hook), 4),
        (lambda hook: _core.shaped(A, *shape, 10**6, 0.0, hook), 4),
        (lambda hook: op.truncated_power(np.arange(400), start, 300, 20_000, 0.0, hook), 4),
        (lambda hook: op.unit_ascend(rule, start, 20_000, 0.0, hook), 5),
    ):
        hook = EndsOnceItMoves()
        found = call(hook)
        assert (hook.heard[0], found[0]) == (0, 1)  # not converged
        assert found[at] - hook.heard[-1] in (0, 1)  # of the iteration that it ends
        assert hook.heard[-1] > 0
        if found[1].shape == A.shape:
            assert_array_equal(found[1], found[1].T)
            assert np.trace(found[1]) == pytest.approx(1)
    assert found[3] > start @ slow @ start / (start @ start)
