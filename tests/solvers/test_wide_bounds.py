"""Bounds of wide data, by few strong variables and by blocks, against enumeration and closed forms."""

from dataclasses import replace
from fractions import Fraction

import flat
import numpy as np
import pytest
import scipy.sparse
from in_turn import examples
from oracles import covariance, largest_on, normal, optimum
from solvers.test_certificates import matrices

from spcacore import branch_and_bound, datasets, optimality_bound, sparse_pca, tpower
from spcacore.operators.deflation import DeflatedOperator
from spcacore.operators.inputs import as_problem
from spcacore.solvers import certificates, exact, semidefinite, wide_bounds
from spcacore.solvers.wide_bounds import BlockSearch, large_entries, strong_variables_bound

# ---- strong variables ---------------------------------------------------------------------------------


class Matrix:
    """What the bound asks of an operator."""

    symmetric_form, by_passes, in_memory, t, m = True, False, True, 0, 1
    dtype = np.dtype(np.float64)

    def __init__(self, A):
        self.A, self.p = A, len(A)

    def submatrix(self, index):
        return self.A[np.ix_(index, index)]

    def apply(self, index, x):
        return self.A[:, index] @ x


def bounded(A, k, rounding=0.0, below=np.inf, hook=None, **search):
    """The bound of a matrix, and the variables that are not left out."""
    d = A.diagonal().copy()
    return strong_variables_bound(Matrix(A), d, np.sqrt(d), k, rounding, below, hook, **search)


def scatter(rng):
    """A semidefinite matrix of up to twelve variables, of which some are strong, or go together."""
    p, n = int(rng.integers(2, 13)), int(rng.integers(1, 20))
    X = rng.standard_normal((n, p)) * np.exp(rng.uniform(0, 2) * rng.standard_normal(p))
    for _ in range(rng.integers(3)):
        some = rng.permutation(p)[: rng.integers(1, p + 1)]
        X[:, some] += rng.exponential(1.5) * rng.standard_normal((n, 1)) * rng.choice([-1, 1], len(some))
    A = X.T @ X
    return A / A.max()


@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, 5060), marks=pytest.mark.slow)], ids=str)
def test_no_support_is_above_the_bound(seeds, with_limits):
    """Whichever variables are strong, and however short the tree; some bounds are the optimum itself, and
    some variables are left out on the way, more if the optimum is known."""
    proved, between, outside, known = 0, 0, 0, 0
    for seed in seeds:
        rng = np.random.default_rng([seed, 31])
        A = scatter(rng)
        p = len(A)
        k = int(rng.integers(2, p + 1))
        with_limits(
            wide_bounds,
            STRONG_VARIABLES=(int(rng.integers(1, p)),),
            STRONG_NODES=int(rng.choice([0, 1, 2000])),
            STRONG_CHUNK=int(rng.integers(1, 5)),
            STRONG_STEPS=int(rng.integers(1, 4)),
            STRONG_GROUPS=int(rng.integers(1, 4)),
            THRESHOLD_COLUMNS=int(rng.integers(1, 4)),
        )
        best = optimum(A, k)
        bound, kept = bounded(A, k)
        outside += p - len(kept)
        assert bound >= best * (1 - 1e-13), seed
        proved += bound <= best * (1 + 1e-10)
        most = min(np.linalg.eigvalsh(A)[-1], np.sort(np.diag(A))[-k:].sum())
        between += best * (1 + 1e-10) < bound < most * 0.999
        bound, kept = bounded(A, k, known=best)
        assert bound >= best * (1 - 1e-13), seed
        known += p - len(kept)
    assert proved > 0.2 * len(seeds)
    assert outside > 15 + 0.15 * len(seeds)
    assert known > 1.2 * outside
    assert between > 0.02 * len(seeds)


def test_weak_variables_that_have_little_in_common(with_limits):
    """One of variance 4 by itself, and others, of which five explain 5 - 4 (1 - .05) = 1.2."""
    A = np.full((30, 30), 0.05) + 0.95 * np.eye(30)
    A[0], A[:, 0] = 0, 0
    A[0, 0] = 4
    with_limits(wide_bounds, STRONG_VARIABLES=(1,))
    for below in (np.inf, 4.5):
        assert bounded(A, 5, below=below)[0] == pytest.approx(4, rel=0.01)
    assert bounded(A, 5, below=1.1)[0] == np.inf
    pair = np.diag([1.5, 1, 1, 1])  # of two weak ones alone, which no step finds
    pair[2, 3] = pair[3, 2] = -0.9
    assert bounded(pair, 2)[0] == pytest.approx(1.9)
    with_limits(wide_bounds, STRONG_WORK=0)  # where that takes too long
    assert bounded(A, 5, below=4.5)[0] == np.inf
    assert bounded(A, 5)[0] == pytest.approx(5, rel=0.01)


def test_strong_variables_alone(monkeypatch, with_limits):
    """By trees, and from the worst eigenpairs that LAPACK may return; steps end where none climbs."""
    with_limits(wide_bounds, STRONG_STEPS=50)
    eigh = np.linalg.eigh
    for seed in range(examples(20)):
        A = scatter(np.random.default_rng([seed, 41]))
        k = 1 + seed % len(A)
        value, found = wide_bounds._climb(Matrix(A), np.arange(k))
        best, vectors = (M[..., -1] for M in eigh(A[np.ix_(found, found)]))
        after = np.argsort(-np.abs(A[:, found] @ vectors))[:k]
        assert value == best >= largest_on(A, after) * (1 - 1e-13), seed
        f, _ = wide_bounds._by_strong_variables(A, found, k, 2000, None, True)
        for j in range(2, k + 1):
            assert f[j] == pytest.approx(optimum(A, j), rel=1e-9), seed
        assert f[0] == 0
    one, eps = np.diag(np.append(1.0, np.full(127, 1e-3))), np.finfo(float).eps

    def off(A):
        values, vectors = eigh(A)
        return values - len(A) * eps / 2 * values[-1], vectors * (1 - len(A) * eps)

    monkeypatch.setattr(np.linalg, "eigh", off)
    f, _ = wide_bounds._by_strong_variables(one, np.arange(2), 2, 0, None, False)
    assert f[1] >= 1


@pytest.mark.parametrize("unit", [25.0, 0.04])
@pytest.mark.parametrize("k", [2, 4, 6])
def test_entries_are_off_by_all_that_is_told(k, unit, with_limits):
    """The best support is half of strong and half of weak variables: the bound is above it by a square."""
    with_limits(wide_bounds, STRONG_STEPS=1, STRONG_VARIABLES=(k,), STRONG_GROUPS=k)
    h, share = k // 2, 1e-3
    A = np.diag(np.append(1 + 1e-9 * np.arange(k, 0, -1), np.ones(8 - h)))
    A[:h, k : k + h] = A[k : k + h, :h] = 0.5 / h
    A *= unit
    error = np.sqrt(np.diag(A) * share)
    best = optimum(A + np.outer(error, error), k)
    assert best <= bounded(A, k, share)[0] <= best * (1 + k * share**2)


@pytest.mark.parametrize(("k", "low", "strong"), [(100, 5, 100), (200, 7, 200), (200, 1, 200), (100, 5, 199)])
def test_a_bound_whose_sums_are_rounded_down(k, low, strong, with_limits):
    """k equal variables have the largest value, k (1 + low 2^-26)^2, whose last bits their sum loses.

    All are weak, or nearly all strong.
    """
    with_limits(wide_bounds, STRONG_NODES=0, STRONG_VARIABLES=(strong,))
    variance = (1 + low * 2.0**-26) ** 2
    assert Fraction(variance) == (1 + Fraction(low, 2**26)) ** 2
    A = np.zeros((2 * k, 2 * k))
    A[k:, k:] = variance
    A[range(k), range(k)] = 1.5
    bound, _ = bounded(A, k)
    assert k * Fraction(variance) <= Fraction(bound) <= k * Fraction(variance) * (1 + Fraction(1, 10**11))
    assert bounded(A * 2.0**-40, k)[0] == bound * 2.0**-40  # margins are shares of the matrix


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("variance", "dtype"), [(400.0, np.float64), (100.0, np.float32), (30.0, np.float64), (30.0, np.float32)]
)
def test_a_planted_component_is_proved(variance, dtype, with_limits):
    """Where the covariances of all variables would take too long, the other bounds are above it."""
    with_limits(certificates, THRESHOLD_WORK=0)
    with_limits(exact, THRESHOLD_WORK=0)
    X, _ = datasets.make_spiked(200, 4000, cardinality=20, variances=(variance,), dtype=dtype, rng=0)
    value, best = tpower(X, 20).value, optimality_bound(X, 20)
    limit = 1e-8 if dtype == np.float64 else 2e-3
    assert best.which == "strong variables"
    assert value * (1 - 1e-6) <= best.upper_bound <= value * (1 + limit)
    assert min(bound for name, bound in best.bounds.items() if name != best.which) > 1.003 * value
    assert sparse_pca(X, 1, cardinality=20, certify=True).gap[0] <= limit
    assert flat.branch_and_bound(X, 20, node_limit=1).upper_bound <= value * (1 + limit)


def test_equal_variances_need_no_columns(monkeypatch, with_limits):
    """Where covariances of the others show that these may explain as much: each has its like."""
    monkeypatch.setattr(wide_bounds, "_coupling", None)
    with_limits(certificates, BOUND_ORDER=100, THRESHOLD_WORK=0)
    X = np.tile(normal(0, 30, 150), 2)
    assert "strong variables" not in optimality_bound(X, 5, scale=True).bounds


def test_it_ends_where_the_hook_says_so():
    A = np.diag(1 / np.arange(1.0, 301))
    assert bounded(A, 3, hook=lambda n: n == 0)[0] == np.inf
    assert bounded(A, 3)[0] == pytest.approx(1)


# ---- blocks of variables ------------------------------------------------------------------------------


def grouped(rng):
    """Up to ten variables, in threes that go together more or less."""
    p = int(rng.integers(2, 11))
    X = rng.standard_normal((p + 2, p))
    for s in range(0, p, 3):
        X[:, s : s + 3] += rng.exponential(1.5) * rng.standard_normal((p + 2, 1))
    return np.cov(X.T).reshape(p, p)


@pytest.mark.parametrize(
    "seeds", [range(50), pytest.param(range(50, 10_150), marks=pytest.mark.slow)], ids=str
)
def test_no_support_is_above_the_bound_of_blocks(seeds, with_limits):
    """Semidefinite or not; where all trees end, the bound is the optimum."""
    proved = 0
    for seed in seeds:
        rng = np.random.default_rng([seed, 12])
        A = grouped(rng) if seed % 2 else covariance(matrices(rng))
        A = A / (A.max() or 1)
        if seed % 5 == 0:
            A -= rng.exponential(2) * np.eye(len(A))
        k, p = int(rng.integers(1, len(A) + 1)), len(A)
        with_limits(
            wide_bounds,
            BLOCK_ORDER=int(rng.integers(1, 6)),
            THRESHOLD_ENTRIES=int(rng.integers(p, p * p + 1)),
        )
        problem = as_problem(A, kind="covariance", definite=False)
        large = large_entries(problem.operator)
        best, diagonal = optimum(A, k), problem.operator.submatrix(np.arange(p)).diagonal().copy()
        begin = best - rng.exponential(0.1) if seed % 3 else -np.inf
        search = BlockSearch(
            problem.operator, diagonal, k, large, begin / problem.in_units(1.0), slack=0.02 * (seed % 7 == 0)
        )
        complete = search.run(0.0, (1, 1000)[seed % 2], None)
        upper = float(problem.in_units(search.upper()))
        assert upper >= best - 1e-13, seed
        if search.support is not None:
            S = search.support
            value = largest_on(A, S)
            assert len(S) <= k
            assert value == pytest.approx(problem.in_units(search.value), abs=1e-12)
            assert value <= best + 1e-12
        if complete:
            assert upper == pytest.approx(max(best, begin), abs=1e-10), seed
        proved += complete
    assert proved > 0.2 * len(seeds)


@pytest.mark.parametrize(("k", "value"), [(1, 1.0), (2, 1.5), (3, 1.6), (4, 1.7)])
def test_two_pairs(k, value, with_limits):
    """Correlations .5 in two pairs, .1 between them: f(2) + .1 (k - 2), which all four variables reach."""
    with_limits(wide_bounds, BLOCK_ORDER=2)
    A = np.full((4, 4), 0.1)
    A[:2, :2] = A[2:, 2:] = 0.5
    np.fill_diagonal(A, 1)
    problem = as_problem(A, kind="covariance")
    op = problem.operator
    diagonal = np.full(4, 1 / problem.in_units(1.0))
    search = BlockSearch(op, diagonal, k, large_entries(op))
    search.run(0.0, 2000, None)
    assert problem.in_units(search.upper()) == pytest.approx(value, rel=1e-12)
    assert optimum(A, 4) == pytest.approx(1.7)


def many_blocks(p, weak, seed=0):
    """Correlations of one factor in blocks of up to eight; others of at most `weak`, few a variable."""
    rng = np.random.default_rng(seed)
    blocks = []
    while (left := p - sum(map(len, blocks))) > 0:
        v = rng.uniform(0.3, 0.9, min(left, int(rng.integers(2, 9)))) * rng.choice([-1, 1])
        blocks.append(np.outer(v, v) + np.diag(1 - v**2))
    A = scipy.sparse.block_diag([scipy.sparse.coo_array(block) for block in blocks], format="csr")
    label = np.repeat(np.arange(len(blocks)), [len(B) for B in blocks])
    i, j = rng.integers(0, p, (2, p))
    i, j = i[label[i] < label[j]], j[label[i] < label[j]]
    E = scipy.sparse.coo_array((rng.uniform(-weak, weak, len(i)), (i, j)), (p, p))
    E = E + E.T
    return scipy.sparse.csr_array(A + E + 0.5 * scipy.sparse.eye_array(p)), blocks


@pytest.mark.parametrize(("form", "p"), [("csr", 3200), ("dense", 400)])
def test_many_variables_are_proved(form, p, monkeypatch, with_limits):
    """Each block by enumeration: no component of four variables of two blocks is better."""
    with_limits(exact, EXACT_ORDER=100)
    with_limits(certificates, BOUND_ORDER=100)
    A, blocks = many_blocks(p, 0.01)
    best = max(optimum(B, 4) for B in blocks if len(B) >= 4) + 0.5
    M = A if form == "csr" else A.toarray()
    bound = optimality_bound(M, 4, kind="covariance")
    assert bound.which == "blocks"
    assert bound.upper_bound == pytest.approx(best, rel=1e-9)
    monkeypatch.setattr(exact, "surviving_variables", None)
    x = branch_and_bound(M, 4, kind="covariance", start=np.arange(float(p)))  # far from the best
    assert x.optimal
    assert x.value == pytest.approx(best, rel=1e-12)
    assert x.upper_bound == pytest.approx(best, rel=1e-9)
    assert tpower(M, 4, kind="covariance").value <= x.value * (1 + 1e-12)


def test_looking_for_variables_to_leave_out_ends_where_it_is_told_to(monkeypatch, with_limits):
    """Of noise the relaxation leaves none out, and each level of covariances takes more columns of A."""
    X = normal(0, 20, 300) * np.linspace(1, 3, 300)
    problem = as_problem(X, kind="data", center=True, scale=False)
    state = DeflatedOperator.from_problem(problem)
    formed, keep = [], semidefinite.rows_of
    monkeypatch.setattr(semidefinite, "rows_of", lambda op, i: formed.append(len(i)) or keep(op, i))
    monkeypatch.setattr(semidefinite, "largest_submatrix", lambda op: 0)
    with_limits(semidefinite, RELAXATION_ORDER=50)
    counts = []
    few = {"work": 1e9, "column": 1e9 / 40}
    for hook, limits in ((None, {}), (None, few), (lambda n: True, {})):
        formed.clear()
        with pytest.raises(ValueError, match="of which dspca solves for at most 50"):
            semidefinite.dual_bound(replace(state, hook=hook), 5, **limits)
        counts.append(sum(formed))
    assert counts[0] > 200
    assert 0 < counts[1] <= 40
    assert counts[2] <= 40  # of the few variables of the first level
