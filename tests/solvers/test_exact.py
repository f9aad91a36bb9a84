"""branch_and_bound against enumeration, published optima, and its own limits."""

from dataclasses import replace
from itertools import product

import flat
import numpy as np
import pytest
import scipy.sparse
from in_turn import each_dtype, examples
from oracles import (
    UCI_OPTIMA,
    WINE_COVARIANCE_OPTIMA,
    WINE_OPTIMA,
    covariance,
    data_arrays,
    leading_on,
    normal,
    optimum,
    products,
)
from solvers.test_tpower import PITPROPS, PITPROPS_OPTIMA, wine

import spcacore
from spcacore import branch_and_bound, optimality_bound, sparse_pca, tpower
from spcacore.operators.deflation import DeflatedOperator
from spcacore.operators.inputs import as_problem
from spcacore.solvers import certificates, exact, matrix_search, solution, truncated_power, wide_bounds

KINDS = ("wishart", "rounded", "duplicated", "scaled", "correlation", "indefinite", "shifted", "zeros")


def matrix(kind, rng, p):
    B = rng.standard_normal((int(rng.integers(1, p + 2)), p))
    if kind == "duplicated":
        B[:, p // 2] = B[:, 0]
    elif kind == "scaled":
        B *= np.exp(3 * rng.standard_normal(p))
    elif kind == "zeros":
        B[:, rng.random(p) < 0.4] = 0
    A = B.T @ B
    if kind == "rounded":  # many ties
        A = np.round(A)
    elif kind == "correlation":
        A = np.corrcoef(rng.standard_normal((p + 2, p)).T).reshape(p, p)
    elif kind == "indefinite":
        A = rng.standard_normal((p, p))
        A = A + A.T
    elif kind == "shifted":
        A -= rng.exponential(3) * np.eye(p)
    return A


def check(A, k, x, best, limited=False):
    """The bound holds always; without a limit the value is the optimum, and said to be."""
    size = np.abs(A).max()
    assert x.value <= best + 1e-13 * size
    assert x.upper_bound >= best - 1e-14 * size
    assert np.linalg.norm(x.loading) == pytest.approx(1, abs=1e-13)
    assert np.count_nonzero(x.loading) == x.cardinality <= k
    assert x.loading @ A @ x.loading == pytest.approx(x.value, abs=1e-13 * size)
    if not limited:
        assert x.optimal
        assert x.converged
        assert x.gap == 0
        assert abs(x.value - best) <= 1e-12 * size
        assert abs(x.upper_bound - best) <= 1e-10 * size


@pytest.mark.share(4)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.filterwarnings("ignore:X has no variance", "ignore:no component was found:RuntimeWarning")
def test_optimum_and_bound_of_small_matrices(kind):
    """From the support of tpower and from a random one, which the tree has to leave."""
    for seed in range(examples(40)):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        p = int(rng.integers(1, 9))
        A = matrix(kind, rng, p)
        for k in range(1, p + 1):
            best, start = optimum(A, k), rng.permutation(np.arange(1.0, p + 1))
            check(A, k, branch_and_bound(A, k, kind="covariance"), best)
            check(A, k, branch_and_bound(A, k, kind="covariance", start=start), best)
            for node_limit in (1, 2, 5):
                x = flat.branch_and_bound(A, k, kind="covariance", start=start, node_limit=node_limit)
                assert x.n_nodes <= node_limit
                check(A, k, x, best, limited=not x.optimal)
        p = int(rng.integers(9, 15))  # deeper trees
        A, k, start = matrix(kind, rng, p), int(rng.integers(2, p)), rng.standard_normal(p)
        x = flat.branch_and_bound(A, k, kind="covariance", start=start, node_limit=[None, 1, 5, 20][seed % 4])
        check(A, k, x, optimum(A, k), limited=seed % 4 > 0 and not x.optimal)


# ---- published optima -------------------------------------------------------------------------------

PUBLISHED = [
    *(("pitprops", k, value, 1e-9) for k, value in enumerate(PITPROPS_OPTIMA, 1)),
    *(("wine, correlation", k, value, 1e-8) for k, value in enumerate(WINE_OPTIMA, 1)),
    *(("wine", k, value, 1e-4) for k, value in WINE_COVARIANCE_OPTIMA),
    *((name, k, value, 1e-8) for name, k, value in UCI_OPTIMA),
]


@pytest.mark.parametrize(("name", "k", "value", "off"), PUBLISHED)
def test_published_optima_are_found_and_proved(name, k, value, off):
    if name == "pitprops":
        A = PITPROPS.correlation
    else:
        A = wine("correlation" in name) if "wine" in name else data_arrays("uci_correlations.npz")[name]
    x = tpower(A, k, kind="covariance")
    assert x.value == pytest.approx(value, abs=off)
    assert x.loading @ A @ x.loading == pytest.approx(x.value, rel=1e-13)
    y = flat.branch_and_bound(A, k, kind="covariance", node_limit=50)
    assert y.value == pytest.approx(value, abs=off)
    assert y.optimal
    assert y.upper_bound == pytest.approx(y.value, rel=1e-10)


def test_included_variables_of_a_negative_matrix():
    """The optimum of a diagonal matrix is its largest entry, whatever else must be there."""
    for signs, included in product((None, 1, [1, -1, 0]), range(3)):
        known = spcacore.Choice(include=[included], signs=signs)
        x = spcacore.branch_and_bound(np.diag([-3.0, -2, -1]), 2, kind="covariance", choice=known)
        assert (x.value, x.optimal) == (-1, True)


# ---- rounding ---------------------------------------------------------------------------------------


def test_the_bound_is_above_the_optimum_of_single_precision():
    """As enumeration in double precision finds it, of the same entries; and not by much."""
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = (rng.standard_normal((40, 9)) @ rng.standard_normal((9, 9))).astype(np.float32)
        best = optimum(covariance(X.astype(np.float64)), 3)
        x = spcacore.branch_and_bound(X, 3)
        assert best <= x.upper_bound <= best * (1 + 1e-4)
        assert (x.optimal, x.gap) == (True, 0)
        A = covariance(X).astype(np.float32)
        best = optimum(A.astype(np.float64), 3)
        assert best <= branch_and_bound(A, 3, kind="covariance").upper_bound <= best * (1 + 1e-6)


def above_by_extended_precision(A, x):
    """x'Ax of a unit x in extended precision: no more than the optimum, and nearer to it than a double."""
    x = np.asarray(x, np.longdouble)
    return x @ np.asarray(A, np.longdouble) @ x / (x @ x)


@pytest.mark.parametrize("nearly_equal", [False, True])
def test_the_bound_is_above_the_optimum_to_the_last_digit(nearly_equal):
    """The computed optimum is below the true one as often as above; the proof allows for that.

    Where the value differs little from all variances, its own rounding decides.
    """
    below = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        p = 6 if nearly_equal else int(rng.integers(2, 9))
        k, B = int(rng.integers(1, p + 1)), rng.standard_normal((p, p))
        A = rng.uniform(0.5, 1) * np.eye(6) + 1e-10 * (B + B.T) if nearly_equal else B.T @ B
        x = branch_and_bound(A, k, kind="covariance")
        S = np.flatnonzero(x.loading)
        v = leading_on(A, S)
        true = above_by_extended_precision(A[np.ix_(S, S)], v)
        below += x.value < true
        assert x.upper_bound >= true
    assert below > 5


@each_dtype
def test_the_bound_of_a_search_without_time_allows_for_rounding(dtype):
    """Equal columns, so that the sum of their variances is the optimum itself."""
    for seed in range(20):
        u = normal(seed, 30).astype(dtype)
        x = flat.branch_and_bound(np.repeat(u[:, None], 5, axis=1), 5, time_limit=0)
        c = u.astype(np.longdouble)
        c -= c.mean()
        assert x.upper_bound >= 5 * (c @ c) / 29


# ---- limits -----------------------------------------------------------------------------------------


def hard():
    """Twenty of a hundred equal variables: far beyond what can be proved."""
    B = normal(0, 100, 100)
    return B.T @ B, 20


class Clock:
    """Tells a hundredth of a second more each time that it is asked."""

    asked = 0

    def monotonic(self):
        self.asked += 1
        return self.asked / 100


@pytest.fixture
def clock(monkeypatch):
    """The time of the search, however fast or busy the machine is."""
    clock = Clock()
    for module in (exact, solution):
        monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.mark.share(3)
@pytest.mark.parametrize("kind", ["wishart", "duplicated", "scaled", "correlation", "zeros"])
def test_no_limited_search_reports_what_another_bound_improves(kind):
    """One node is not enough for most; then the bounds that need no search hold, the relaxation too."""
    for seed in range(8):
        rng = np.random.default_rng([seed, KINDS.index(kind)])
        A = matrix(kind, rng, 12)
        for k in (3, 6):
            x = flat.branch_and_bound(A, k, kind="covariance", node_limit=1)
            other = optimality_bound(A, k, kind="covariance", relaxation=True).bound
            assert x.upper_bound <= max(other, x.value) * (1 + 1e-12)
            assert x.upper_bound >= optimum(A, k) * (1 - 1e-12)


def test_a_hard_correlation_matrix_within_five_percent():
    """k = 60 of 320: one node leaves 15 %, the relaxation 4 %."""
    A = data_arrays("uci_correlations.npz")["gait"]
    x = flat.branch_and_bound(A, 60, kind="covariance", node_limit=1)
    assert not x.optimal
    assert x.value <= x.upper_bound < 1.045 * x.value


def test_a_relaxation_out_of_time_leaves_its_bound(monkeypatch):
    """Any of its iterations bounds the optimum."""
    A, k = hard()
    calls = []
    monkeypatch.setattr(certificates, "upper_bounds", lambda *args: {"none": np.inf})

    def stop(n_iter):
        calls.append(n_iter)
        return len(calls) > 25

    problem = as_problem(A, kind="covariance")
    state = DeflatedOperator.from_problem(problem)
    found = list(certificates.bounds_without_search(replace(state, hook=stop), k, np.inf))
    best = tpower(A, k, kind="covariance").value
    assert best < problem.in_units(found[-1]) < 1.4 * best


def test_no_relaxation_bounds_an_indefinite_matrix():
    """It leaves out variables without variance, which the optimum of a semidefinite matrix does without."""
    A = np.diag([0.0, 0.0, 0.5, 0.1])
    A[0, 1] = A[1, 0] = 1
    problem = as_problem(A, kind="covariance", definite=False)
    bounds = list(certificates.bounds_without_search(DeflatedOperator.from_problem(problem), 2, np.inf))
    assert problem.in_units(min(bounds)) >= 1


def test_large_covariances_bound_a_matrix_without_a_search():
    """lambda_1(S(A, rho)) + rho (k - 1), S the soft threshold, for the best of many levels rho."""
    rng, k = np.random.default_rng(1), 20
    A = np.kron(np.eye(25), np.full((10, 10), 0.8)) + 0.2 * np.eye(250)
    noise = rng.uniform(0, 0.1, A.shape)
    A += (noise + noise.T) / 2
    problem = as_problem(A, kind="covariance", definite=False)
    state = DeflatedOperator.from_problem(problem)
    state = replace(state, hook=lambda n: True)
    _, bound, *_ = certificates.bounds_without_search(state, k, np.inf)
    off, by_level = A * (1 - np.eye(250)), []
    for rho in (0.05, 0.08, 0.09, 0.1):
        largest = np.linalg.eigvalsh(A - np.clip(off, -rho, rho))[-1]
        by_level.append(largest + rho * (k - 1))
    assert problem.in_units(bound) == pytest.approx(min(by_level), rel=0.02)
    # Of data, with what sums over all variables lose
    problem = as_problem(normal(0, 3, 250))
    state = replace(DeflatedOperator.from_problem(problem), hook=lambda n: True)
    _, bound, *_ = certificates.bounds_without_search(state, k, np.inf)
    margin = bound - wide_bounds.threshold_bound(state.diagonal, k, wide_bounds.large_entries(state.operator))
    assert 4 * 250 * np.finfo(float).eps * state.diagonal.sum() < margin < 1e-11 * state.diagonal.sum()
    assert problem.in_units(bound) >= tpower(A, k, kind="covariance").value


def test_time_limit(clock):
    A, k = hard()
    A /= 2.0**10
    x = flat.branch_and_bound(A, k, kind="covariance", time_limit=0.5)
    assert 52 <= clock.asked <= 54  # asked first at the start; a turn of the search asks three times
    assert not x.optimal
    assert not x.converged
    assert 0.05 < x.gap < 0.5
    assert x.upper_bound == pytest.approx(x.value / (1 - x.gap))
    assert "within" in repr(x)
    assert flat.branch_and_bound(A, k, kind="covariance", time_limit=0).upper_bound >= x.value


def test_a_bound_that_time_ends_counts(clock, monkeypatch):
    """It is told to end, and what it has by then bounds the optimum."""

    def late(state, k, seconds):
        while not state.hook(0):
            pass
        yield certificates.dual_bound(replace(state, hook=None), k)

    monkeypatch.setattr(exact, "bounds_without_search", late)
    A, k = hard()
    x = flat.branch_and_bound(A, k, kind="covariance", time_limit=0.5)
    other = optimality_bound(A, k, kind="covariance", relaxation=True).bound
    assert x.upper_bound == pytest.approx(other, rel=1e-9)


def test_more_nodes_never_loosen_the_bound(monkeypatch):
    monkeypatch.setattr(exact, "bounds_without_search", lambda *args: [])  # which are tighter here
    A, k = hard()
    bounds = [
        flat.branch_and_bound(A, k, kind="covariance", node_limit=n).upper_bound for n in (1, 4, 16, 64)
    ]
    assert (np.diff(bounds) <= 0).all()
    assert bounds[-1] < bounds[0]


def test_tolerance():
    A = hard()[0][:40, :40]
    exactly = branch_and_bound(A, 8, kind="covariance")
    for tol in (0.3, 0.1, 0.01, 1e-4):
        x = flat.branch_and_bound(A, 8, kind="covariance", tol=tol)
        assert x.converged
        assert not x.optimal
        assert x.gap <= tol
        assert x.value <= exactly.value * (1 + 1e-12)
        assert x.upper_bound >= exactly.value
        assert x.value >= (1 - tol) * exactly.value
    assert flat.branch_and_bound(A, 8, kind="covariance", tol=0.1).n_nodes < exactly.n_nodes / 2


def test_callback(clock):
    A, k = hard()
    seen, at = [], []

    def note(progress):
        seen.append(progress)
        at.append(clock.asked / 100)

    x = flat.branch_and_bound(A, k, kind="covariance", callback=note, time_limit=0.4)
    assert seen[-1].value == x.value
    assert seen[-1].n_iter == x.n_nodes
    assert 2 < len(seen) <= 10  # eight twentieths of a second, the first and the last
    assert (np.diff([p.n_iter for p in seen]) >= 0).all()
    assert np.diff(at)[:-1].min() > 0.045  # a twentieth of a second, but for the end


def test_a_crowded_frontier_is_searched_depth_first(with_limits):
    A = hard()[0][:14, :14]
    with_limits(matrix_search, FRONTIER_BYTES=0)
    start = np.arange(14.0)
    check(A, 6, branch_and_bound(A, 6, kind="covariance", start=start), optimum(A, 6))
    for limit in (1, 3, 6):
        x = flat.branch_and_bound(A, 6, kind="covariance", start=start, node_limit=limit)
        check(A, 6, x, optimum(A, 6), limited=not x.optimal)


# ---- many variables ---------------------------------------------------------------------------------


def test_variables_ruled_out_without_their_columns(monkeypatch, with_limits):
    """The elimination of large problems, on small ones that can be enumerated."""
    with_limits(exact, EXACT_ORDER=13, STRONG_VARIABLES=(2, 5), THRESHOLD_WORK=0)  # not by all columns
    with_limits(wide_bounds, STRONG_NODES=0)  # nor by a proof among the strong ones
    surviving, left, refused, n = exact.surviving_variables, [], 0, 2 * examples(60)

    def note(*arguments):
        left.append(surviving(*arguments))
        return left[-1]

    monkeypatch.setattr(exact, "surviving_variables", note)
    for seed in range(n):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((30, 14)) * np.exp(1.5 * rng.standard_normal(14))
        X[:, 9:] *= 0.05
        X[:, :9] += rng.standard_normal((30, 1)) * (rng.random(9) < 0.6) * 2
        A, k = covariance(X), int(rng.integers(1, 6))
        try:
            x = branch_and_bound(X, k, start=rng.standard_normal(14) if seed % 2 else None)
        except ValueError:
            refused += 1
            continue
        check(A, k, x, optimum(A, k))
    assert refused < 0.8 * n
    assert max(map(len, left)) < 14
    assert max(map(len, left)) > 5


def test_too_many_that_may_belong_to_the_optimum(with_limits):
    with_limits(exact, EXACT_ORDER=30, THRESHOLD_WORK=0, STRONG_VARIABLES=())
    X = normal(0, 40, 40)
    with pytest.raises(ValueError, match="40 of 40 variables may belong to the optimum"):
        branch_and_bound(X, 3)


@pytest.mark.share(2)
@each_dtype
def test_few_strong_variables_of_many(dtype):
    X = normal(0, 100, 5000)
    X[:, 40:52] *= 10
    best = optimum(covariance(X[:, 40:52]), 4)
    x = branch_and_bound(X.astype(dtype), 4)
    assert x.optimal
    assert x.loading.dtype == dtype
    assert x.value == pytest.approx(best, rel=1e-10 if dtype == np.float64 else 1e-5)


def test_what_is_too_large():
    p = exact.EXACT_ORDER + 1
    with pytest.raises(ValueError, match="at most 3000 variables of an operator without entries"):
        branch_and_bound(products(lambda v: v, p), 2, kind="covariance")
    X = scipy.sparse.random_array((40, p), density=0.1, rng=np.random.default_rng(0)).tocsr()
    with pytest.raises(ValueError, match="at most 3000 variables with deflation='hotelling'"):
        sparse_pca(X, 2, cardinality=2, method="branch_and_bound", deflation="hotelling")
    with pytest.raises(ValueError, match="takes include, groups and signs for at most 3000 variables"):
        branch_and_bound(X, 2, choice=spcacore.Choice(include=[0]))


# ---- several components -----------------------------------------------------------------------------


def test_rounding_left_by_the_earlier_components_is_not_searched():
    """The Schur complement of rank 2 is nothing but that after two components."""
    X = normal(1, 30, 2) @ normal(2, 2, 100)
    seen = []
    with pytest.warns(RuntimeWarning, match="no variance is left after 2 of the 3"):
        sparse_pca(X, 3, cardinality=20, method="branch_and_bound", deflation="schur", callback=seen.append)
    assert sum(progress.component == 2 for progress in seen) < 5  # some forty where it is searched


def test_limits_for_each_component():
    A, k = hard()
    with pytest.warns(RuntimeWarning, match="components 0, 1 not converged in the limits given"):
        result = sparse_pca(
            A, 2, cardinality=k, kind="covariance", method=spcacore.BranchAndBound(node_limit=3)
        )
    assert (result.n_iter <= 3).all()
    assert not result.converged.any()
    assert result.explained_variance[0] >= tpower(A, k, kind="covariance").value * (1 - 1e-12)
    with pytest.raises(ValueError, match="needs renormalize=True"):
        sparse_pca(A, 2, cardinality=k, kind="covariance", method=spcacore.BranchAndBound(renormalize=False))


def test_too_many_variables_are_bounded_where_a_limit_is_given(monkeypatch, with_limits):
    """Of standardized noise none is left out: that is refused, but with a limit all trees are small."""
    with_limits(exact, EXACT_ORDER=20, STRONG_VARIABLES=())
    monkeypatch.setattr(truncated_power, "brief_search", lambda state, x, k: x)
    X, k = normal(0, 40, 24), 5
    with pytest.raises(ValueError, match="24 of 24 variables may belong"):
        flat.branch_and_bound(X, k, scale=True, start=np.arange(24.0), screening="none")
    x = flat.branch_and_bound(X, k, scale=True, start=np.arange(24.0), node_limit=1, screening="none")
    best = optimum(np.corrcoef(X.T), k)
    assert not x.optimal
    assert x.value <= best <= x.upper_bound
    assert x.upper_bound <= optimality_bound(X, k, scale=True, relaxation=True).bound * (1 + 1e-9)


def test_variables_of_equal_variance_are_left_out_in_turn(monkeypatch, with_limits):
    """Standardized data, of which the largest variances tell nothing."""
    with_limits(exact, EXACT_ORDER=30, STRONG_VARIABLES=(4,))
    left = []
    turns = exact._survivors_in_turn

    def watched(*arguments):
        kept = turns(*arguments)
        left.append(len(kept))
        return kept

    monkeypatch.setattr(exact, "_survivors_in_turn", watched)
    for seed in range(12):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, 45))
        X[:, :7] += rng.uniform(1.5, 3, 7) * rng.standard_normal((40, 1))
        k = 2 + seed % 3
        x = branch_and_bound(X, k, scale=True, start=np.eye(45)[40])
        C = np.corrcoef(X.T)
        assert x.optimal
        assert x.value == pytest.approx(optimum(C[:12, :12], k), rel=1e-9)
    assert left
    assert max(left) <= 30
