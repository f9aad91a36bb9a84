"""tpower against enumeration, published optima and the paper's own iteration."""

import flat
import numpy as np
import pytest
from extras import optional
from in_turn import each_dtype, each_kind, each_order
from numpy.testing import assert_allclose
from oracles import (
    centered,
    covariance,
    largest_on,
    normal,
    power_iteration,
)

import spcacore
from spcacore import _core, tpower
from spcacore.linalg.eigen import PencilBasis
from spcacore.operators.deflation import DeflatedOperator as Deflated
from spcacore.operators.inputs import as_problem
from spcacore.solvers.refitting import fitted_on
from spcacore.solvers.variance import swap_search, within_reach

load_wine = optional("sklearn.datasets", "load_wine")
PITPROPS = spcacore.datasets.load_pitprops()
# Exact optima of x'Ax by cardinality, by enumeration elsewhere
PITPROPS_OPTIMA = [
    1, 1.954, 2.4753313532, 2.9374789467, 3.4061549468, 3.7709595523, 3.9961896449, 4.0686073272,
    4.1386469071, 4.1726376616, 4.2082759543, 4.2182451865, 4.2186328533,
]  # fmt: skip


def wine(correlation):
    X = load_wine().data
    return np.corrcoef(X.T) if correlation else np.cov(X.T)


@pytest.mark.share(4)
@each_dtype
@each_kind
def test_no_exchange_of_two_variables_helps(kind, dtype):
    gained = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((14, 16)) * (1 if seed % 2 else 3.0 ** rng.integers(-1, 2, 16))
        A = covariance(X)
        M = (X if kind == "data" else A).astype(dtype)
        options = {"kind": kind, "n_starts": 1}
        plain = flat.tpower(M, 5, swaps=False, **options)
        x = flat.tpower(M, 5, **options)
        assert x.value == flat.tpower(M, 5, swaps=True, **options).value
        assert x.value >= plain.value * (1 - 1e-12)
        gained += x.value > plain.value * (1 + 1e-9)
        tolerance = 1e-8 if dtype == np.float64 else 1e-4
        S = np.flatnonzero(x.loading)
        others = np.setdiff1d(np.arange(16), S)
        assert exchanges(A, S.tolist(), others).max() <= x.value * (1 + tolerance)
    assert gained > 5


def exchanges(A, S, others):
    """The largest eigenvalue with each of the others in the place of each variable of S."""
    rest = [[j for j in S if j != i] for i in S]
    return np.array([[np.linalg.eigvalsh(A[np.ix_([*R, j], [*R, j])])[-1] for j in others] for R in rest])


def exchange(A, k, leaving, candidate, level, slack=1e-9, tie=1e-12):
    """What the kernel says of the first k variables of A."""
    values, U = np.linalg.eigh(A[:k, :k])
    C = np.ascontiguousarray(A[:k])
    basis = values[::-1].copy(), np.asfortranarray(U[:, ::-1])
    diagonal = np.ascontiguousarray(np.diag(A))
    return _core.exchange(C, leaving, candidate, diagonal, *basis, level, slack, tie)


@pytest.mark.share(12)
@pytest.mark.parametrize("excess", [1e-10, 0.1, 0.3])
@pytest.mark.parametrize(("k", "p"), [(2, 12), (5, 12), (6, 150)])
def test_the_first_exchange_that_exceeds_a_level(k, p, excess):
    """By enumeration: the place, the variable and the eigenvalue; with more variables than one tile too."""
    found = 0
    for seed in range(20):
        rng = np.random.default_rng([k, seed])
        A = covariance(rng.standard_normal((12, p)) * 2 ** rng.uniform(-1, 1, p))
        leaving = rng.permutation(k)[: k - seed % 2]
        candidate = np.sort(rng.permutation(np.arange(k, p))[: p - k - seed % 3])
        level = np.linalg.eigvalsh(A[:k, :k])[-1] * (1 + excess)
        values = exchanges(A, np.arange(k), candidate)[leaving]
        assert (np.abs(values / level - 1) > 1e-8).all()
        exceeding = np.flatnonzero((values > level).any(axis=1))
        for slack in (1e-9, 0.2):  # with more of it, places in vain are looked at closely before
            got = exchange(A, k, leaving, candidate, level, slack)
            if len(exceeding) == 0:
                assert got is None
                continue
            best = np.argmax(values[exceeding[0]])
            assert got[:2] == (exceeding[0], candidate[best])
            assert_allclose(got[2], values[exceeding[0], best], rtol=1e-12)
            found += 1
    assert found > 4


def test_exchanges_for_a_variable_without_weight_in_the_leading_eigenvector():
    """Bounds would divide by its weight; others gain nothing in its place, or something."""
    A = covariance(normal(0, 9, 6))
    A[0, 1:3] = A[1:3, 0] = 0
    A[0, 0] = 0.5 * np.linalg.eigvalsh(A[1:3, 1:3])[-1]
    level = np.linalg.eigvalsh(A[:3, :3])[-1] * (1 + 1e-10)
    value, best = max((np.linalg.eigvalsh(A[np.ix_([1, 2, j], [1, 2, j])])[-1], j) for j in range(3, 6))
    place, entering, got = exchange(A, 3, np.array([0]), np.arange(3, 6), level)
    assert (place, entering) == (0, best)
    assert_allclose(got, value, rtol=1e-12)
    assert exchange(A, 3, np.array([0]), np.arange(3, 6), value * (1 + 1e-9)) is None


def test_equal_exchanges_take_the_first_variable():
    A = np.eye(8)
    A[:2, :2] = [[1, 0.2], [0.2, 1]]
    A[0, 2:] = A[2:, 0] = [0.1, 0.5, 0.3, 0.5, 0.5, 0.4]
    level = 1.2 * (1 + 1e-10)
    assert exchange(A, 2, np.array([0, 1]), np.arange(2, 8), level)[:2] == (1, 3)
    assert exchange(A, 2, np.array([1]), np.array([2, 4, 5, 6]), level)[:2] == (0, 5)
    nearly = [exchange(A, 2, np.array([1]), np.array([4, 5]), level, tie=tie)[1] for tie in (0.1, 0.2)]
    assert nearly == [5, 4]  # 1.3, and 1.5
    assert exchange(A, 2, np.array([0]), np.arange(2, 8), level) is None
    assert exchange(A, 2, np.array([], np.intp), np.arange(2, 8), level) is None


def swap(A, S, most=1000):
    limits = (1e-9, 1e-12) if A.dtype == np.float64 else (1e-4, 1e-12)
    return _core.swap(A, S, np.ascontiguousarray(np.diag(A), float), 1e-10, 1e-8, *limits, most)


@pytest.mark.share(2)
@each_dtype
@pytest.mark.parametrize(("k", "p"), [(2, 12), (5, 12), (6, 150)])
def test_swaps_end_where_no_other_raises_the_eigenvalue(k, p, dtype):
    """By enumeration; one by one, too: the smallest entry leaves that any may replace, for the best one."""
    made, near = 0, 1e-9 if dtype == np.float64 else 1e-4
    for seed in range(20):
        rng = np.random.default_rng([k, seed])
        A = covariance(rng.standard_normal((12, p)) * 2 ** rng.uniform(-1, 1, p)).astype(dtype)
        B, S = A.astype(float), np.sort(rng.permutation(p)[:k])
        index, vector, value, ended = swap(A, S)
        assert ended
        assert_allclose(B[np.ix_(index, index)] @ vector, value * vector, atol=1e-12 * value)
        assert_allclose(value, largest_on(B, index), rtol=1e-12)
        assert exchanges(B, index, np.setdiff1d(np.arange(p), index)).max() <= value * (1 + near)
        while dtype == np.float64 and not np.array_equal(S, index):
            values, U = np.linalg.eigh(B[np.ix_(S, S)])
            others, leaving = np.setdiff1d(np.arange(p), S), np.argsort(np.abs(U[:, -1]))
            table = exchanges(B, S.tolist(), others)[leaving]
            place = np.flatnonzero((table > values[-1] * (1 + 1e-10)).any(axis=1))[0]
            wanted = np.sort(np.append(np.delete(S, leaving[place]), others[np.argmax(table[place])]))
            S = swap(A, S, 1)[0]
            assert np.array_equal(S, wanted)
            made += 1
    assert made > 20 or dtype == np.float32


@each_dtype
def test_swaps_from_a_largest_eigenvalue_of_zero(dtype):
    """Of indefinite matrices of small integers, whose first two variables have none above it."""
    for seed in range(60):
        A = np.random.default_rng(seed).integers(-2, 3, (3, 3)).astype(dtype)
        A = np.tril(A) + np.tril(A, -1).T
        A[:2, :2] = np.diag([0, -1 - seed % 2])
        assert spcacore.renormalize(A, [0.6, 0.8, 0], kind="covariance").tolist() == [1, 0, 0]
        index, _, value, ended = swap(A, np.array([0, 1]))
        if ended:
            assert exchanges(A.astype(float), index, np.setdiff1d(np.arange(3), index)).max() <= value + 1e-3


def test_swaps_are_not_judged_where_two_eigenvalues_are_equal():
    A = np.eye(5)
    index, vector, value, ended = swap(A, np.array([1, 3]))
    assert not ended
    assert index.tolist() == [1, 3]
    assert (value, np.abs(vector).max()) == (1, 1)
    assert flat.tpower(A, 2, kind="covariance", start=None).value == 1


@each_order
@each_dtype
def test_a_formed_covariance_is_the_deflated_one(order, dtype, rng):
    A = covariance(rng.standard_normal((30, 20)) * 2 ** rng.uniform(-3, 3, 20))
    problem = as_problem(np.asarray(A, dtype, order=order), kind="covariance", scale=True)
    state, wanted = Deflated.from_problem(problem), A / np.sqrt(np.outer(np.diag(A), np.diag(A)))
    for S in (np.arange(4), np.arange(2, 9)):  # which overlap
        x = rng.standard_normal(len(S))
        x = np.ascontiguousarray(x / np.linalg.norm(x), dtype)
        state, P = state.deflate(S, x, noise=lambda _: 0.0), np.eye(20)
        P[np.ix_(S, S)] -= np.outer(x, x)
        wanted = P @ wanted @ P
        formed = state.formed()
        assert_allclose(
            formed.matrix * problem.in_units(1.0), wanted, atol=1e-14 if dtype == np.float64 else 1e-6
        )
        assert np.array_equal(formed.operator.submatrix(np.arange(20)), formed.submatrix(np.arange(20)))
        more = [one.deflate(S, x, noise=lambda _: 0.0).formed().matrix for one in (formed, state)]
        assert np.array_equal(*more)


@each_dtype
@pytest.mark.parametrize("excess", [1e-10, 0.1])
def test_variables_out_of_reach_come_in_no_exchange(dtype, excess):
    """By enumeration, of data from which a component was removed too."""
    out = named = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = (rng.standard_normal((30, 40)) * 2.0 ** rng.integers(-2, 1, 40)).astype(dtype)
        X[:, :8] += 2 * rng.standard_normal((30, 1)).astype(dtype)
        state = Deflated.from_problem(as_problem(X))
        if seed % 2:
            state = state.deflate(np.arange(3), np.full(3, 3**-0.5, dtype), noise=lambda _: 0.0)
        A, diagonal = state.operator.submatrix(np.arange(40)).astype(float), np.asarray(state.diagonal, float)
        S = np.sort(rng.permutation(40)[:4]) if seed % 3 else np.arange(4, 8)
        basis = PencilBasis.ordinary(A[np.ix_(S, S)])
        level = basis.eigenvalues[0] * (1 + excess)
        others = np.setdiff1d(np.arange(40), S)
        within = within_reach(state, basis, S, diagonal, level)[others]
        above = (exchanges(A, S.tolist(), others) > level * (1 + 1e-6)).any(axis=0)
        assert within[above].all()
        x = swap_search(state, fitted_on(state, S), np.inf)
        others = np.setdiff1d(np.arange(40), x.index)
        assert exchanges(A, x.index.tolist(), others).max() <= x.objective * (1 + 1e-6)
        out, named = out + (~within).sum(), named + above.sum()
    assert out > 100
    assert named > 20


def test_a_variable_along_the_second_eigenvector_is_within_reach():
    """In place of the first variable it makes the eigenvalue 1.9 of 1.8, though its product with x is 0."""
    X = np.zeros((8, 5))
    X[:2, 0] = X[:2, 1] = 0.45**0.5, -(0.45**0.5)
    X[2:4, 2] = 0.5**0.5, -(0.5**0.5)
    X[2:4, 3] = 0.45**0.5, -(0.45**0.5)
    X[4:6, 4] = 0.4, -0.4
    state = Deflated.from_problem(as_problem(X * 7**0.5))
    A = covariance(X * 7**0.5)
    basis = PencilBasis.ordinary(A[:3, :3])
    assert_allclose(basis.eigenvalues, [1.8, 1, 0], atol=1e-12)
    assert np.linalg.eigvalsh(A[1:4, 1:4])[-1] > 1.89
    within = within_reach(state, basis, np.arange(3), np.diag(A), 1.8 * (1 + 1e-10))
    assert within[3]
    assert not within[4]


@each_dtype
@pytest.mark.parametrize("k", [1, 3, 8])
def test_the_paper_iteration_from_a_given_start(dtype, k):
    X = normal(3, 30, 20) * np.linspace(2, 1, 20)
    A = covariance(X)
    start = normal(4, 20)
    x = flat.tpower(X.astype(dtype), k, start=start, tol=0, max_iter=3000, renormalize=False)
    truncated = np.where(abs(start) >= np.sort(abs(start))[-k], start, 0)
    reference = power_iteration(A, truncated, k, 3000)
    reference *= np.sign(reference[np.argmax(abs(reference))])
    assert x.loading.dtype == dtype
    assert_allclose(x.loading, reference, atol=1e-6 if dtype == np.float64 else 2e-3)


@pytest.mark.parametrize("k", [12, 5000])
def test_full_cardinality_is_the_leading_principal_component(k):
    """k = 5000 takes the route that never forms a submatrix."""
    X = normal(5, 60, k) + 3
    X[:, :4] += normal(6, 60, 1) * 5
    x = tpower(X, k)
    _, s, Vt = np.linalg.svd(centered(X), full_matrices=False)
    v = Vt[0] * np.sign(Vt[0][np.argmax(abs(Vt[0]))])
    assert_allclose(x.loading, v, atol=1e-9)
    assert x.value == pytest.approx(s[0] ** 2 / 59, rel=1e-10)


class EndedAtOnce:
    ended = True

    def __call__(self, n_iter):
        return True


def test_starts_that_a_hook_cut_off_come_last():
    """Whatever was in the memory of the answer before."""
    A = np.cov(normal(0, 40, 300), rowvar=False)
    index, value = np.arange(300)[:, None], np.ones((300, 1))
    for _ in range(5):
        np.full(300, 7.0)  # whose memory the next array of this size has
        objective = _core.truncated_power_of_matrix(A, index, value, 6, 4, 1e-8, EndedAtOnce())[2]
        assert (objective == -np.inf).all()
