"""Objective x supports x search, against enumeration of all supports that are allowed."""

import itertools
from functools import cache

import numpy as np
import pytest
import scipy.linalg
import scipy.optimize
from known_variables import signed_optimum, signed_ratio_optimum
from numpy.testing import assert_allclose, assert_array_equal

import spcacore
from spcacore import _core
from spcacore.generalized.pencil import Form, Pencil
from spcacore.objectives.eigenvalue_sum import LeadingSum, Partition
from spcacore.objectives.ratio import Ratio, RatioOfUnits, Regression
from spcacore.operators.deflation import DeflatedOperator
from spcacore.operators.gram import KeptRows
from spcacore.operators.inputs import as_problem
from spcacore.supports.admissible import Supports
from spcacore.supports.search import ascend, backward, best_of, forward, growing, swap
from spcacore.supports.tree import enumerated, prove, splits_of

SEEDS = range(16)


def groups(rng, p):
    return rng.permutation(np.arange(p) % (p // 2 + 1))


KNOWN = {
    "plain": lambda rng, p: {},
    "include": lambda rng, p: {"include": rng.choice(p, 2, replace=False)},
    "exclude": lambda rng, p: {"exclude": rng.choice(p, 2, replace=False)},
    "both": lambda rng, p: {"include": [0], "exclude": [p - 1]},
    "groups": lambda rng, p: {"groups": groups(rng, p)},
    "groups of variables": lambda rng, p: {"groups": groups(rng, p), "count": "variables"},
    "groups of variables, include": lambda rng, p: {
        "groups": groups(rng, p),
        "count": "variables",
        "include": [int(rng.integers(p))],
    },
    "groups, include": lambda rng, p: {"groups": groups(rng, p), "include": [int(rng.integers(p))]},
    "signs": lambda rng, p: {"signs": rng.integers(-1, 2, p)},
    "nonnegative, include": lambda rng, p: {"signs": np.ones(p), "include": [1]},
    "signs, groups": lambda rng, p: {"signs": rng.integers(-1, 2, p), "groups": groups(rng, p)},
}


def least_squares(A, supports):
    problem = as_problem(A, kind="covariance")
    return RatioOfUnits(Ratio(DeflatedOperator.from_problem(problem)), supports)


def metric(A):
    """A matrix of another order of variables, and products with them."""
    return A[::-1, ::-1] + np.diag(np.arange(1.0, len(A) + 1)), A[:, 0] - A[:, 1]


def pencil(A):
    return Pencil(Form.of(A.copy()), Form.of(metric(A)[0]), dtype=A.dtype)


def regression(A, supports):
    K, g = metric(A)

    def fit(S):
        return _core.unit_net(supports.on(S).rule(2), K[np.ix_(S, S)], g[S], np.zeros(len(S)))[0]

    rows = KeptRows(lambda S: (K[S],), len(A))
    return Regression(rows, K.diagonal(), g, supports, fit=None if supports.signs is None else fit)


def posterior(A, supports):
    """What a support leaves of the evidence under a normal prior; a unit more may lower it."""
    K, g = metric(A)
    return Regression(KeptRows(lambda S: (K[S],), len(A)), K.diagonal(), g, supports, volume=True)


def posterior_on(A, S):
    K, g = metric(A)
    return g[S] @ np.linalg.solve(K[np.ix_(S, S)], g[S]) - np.linalg.slogdet(K[np.ix_(S, S)])[1]


def regression_on(A, S, signs):
    """What a regression on some variables explains, by nonnegative least squares where signs are given."""
    K, g = metric(A)
    L = np.linalg.cholesky(K[np.ix_(S, S)])
    y = scipy.linalg.solve_triangular(L, g[S], lower=True)
    if signs is None:
        return y @ y
    columns = np.hstack([L.T * np.where(signs == 0, 1, signs), -L.T[:, signs == 0]])
    return y @ y - scipy.optimize.nnls(columns, y)[1] ** 2


OBJECTIVES = {
    "pencil": lambda A, supports: RatioOfUnits(pencil(A), supports),
    "regression": regression,
    "posterior": posterior,
    "least squares": least_squares,
    "variance": lambda A, supports: LeadingSum(A, supports),
    "sum of 2": lambda A, supports: LeadingSum(A, supports, 2),
    "sum of 3": lambda A, supports: LeadingSum(A, supports, 3),
}
SEARCHES = {
    "forward": lambda objective: forward(objective),
    "backward": lambda objective: backward(objective),
    "swap": lambda objective: swap(objective, forward(objective))[1],
    "starts": lambda objective: best_of(objective, [forward(objective), backward(objective)])[1],
    "ascend": lambda objective: ascend(objective, forward(objective)),
    "prove": lambda objective: prove(objective, forward(objective)).units,
}


def value_of(A, supports, name):
    """By LAPACK or, with signs, by the leading eigenvectors of all parts of the support."""
    if name == "least squares":
        scale = as_problem(A, kind="covariance").in_units(1.0)
        return cache(lambda units: ratio_on(A @ A, A, np.array(units), supports) / scale)
    if name == "pencil":
        scale = np.ldexp(1.0, pencil(A).exponent)
        return cache(lambda units: ratio_on(A, metric(A)[0], np.array(units), supports) / scale)
    if name == "posterior":
        return cache(lambda units: posterior_on(A, np.flatnonzero(np.array(units)[supports.unit])))
    if name == "regression":
        signs = supports.signs

        def explained(units):
            S = np.flatnonzero(np.array(units)[supports.unit])
            return regression_on(A, S, None if signs is None else signs[S])

        return cache(explained)
    r = {"variance": 1, "sum of 2": 2, "sum of 3": 3}[name]

    def value(units):
        S = np.flatnonzero(np.array(units)[supports.unit])
        G = A[np.ix_(S, S)]
        if r == 1 and supports.signs is not None:
            return signed_optimum(G, supports.signs[S])
        return np.linalg.eigvalsh(G)[-r:].sum()

    return cache(value)


def ratio_on(M, G, units, supports):
    """The largest x'Mx/x'Gx: with signs of a part of the support where its eigenvector has them."""
    S = np.flatnonzero(units[supports.unit])
    if supports.signs is None:
        return scipy.linalg.eigh(M[np.ix_(S, S)], G[np.ix_(S, S)], eigvals_only=True)[-1]
    return signed_ratio_optimum(M[np.ix_(S, S)], G[np.ix_(S, S)], supports.signs[S])


def all_allowed(supports):
    for chosen in itertools.product([False, True], repeat=len(supports.allowed)):
        units = np.array(chosen)
        size = int(supports.size[units].sum())
        if units.any() and size <= supports.room and is_allowed(supports, units):
            yield chosen


def is_allowed(supports, units):
    return not (units & ~supports.allowed).any() and not (supports.included & ~units).any()


def a_matrix(seed, known):
    """A covariance matrix, and what is known of its variables."""
    rng = np.random.default_rng([seed, *known.encode()])
    p = int(rng.integers(5, 10))
    A = np.cov(rng.standard_normal((p + 3, p)), rowvar=False)
    if seed % 8 == 7:  # blocks that repeat leave both branches of a node with one bound
        B = rng.integers(-2, 3, (3, 3))
        A = np.kron(np.eye(3), B.T @ B + np.eye(3))[:p, :p]
    return A, KNOWN[known](rng, p)


def a_case(seed, known):
    rng = np.random.default_rng([seed, 1])
    A, choice = a_matrix(seed, known)
    supports = Supports.checked(len(A), None, **choice)
    least, most = supports.bounds
    return A, supports.within(int(rng.integers(least, min(most, least + 4) + 1)))


@pytest.mark.share(32)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("seed", SEEDS)
def test_searches_against_enumeration(seed, known, objective):
    """None finds more than the best, `prove` no less, and its bound holds, cut short too."""
    A, supports = a_case(seed, known)
    monotone = objective != "posterior"  # which bounds of supports with more units need
    if not monotone and supports.signs is not None:
        pytest.skip("normal posteriors have no signs")
    value = value_of(A, supports, objective)
    best = max(map(value, all_allowed(supports)))
    for name, search in SEARCHES.items():
        if name == "prove" and not monotone:
            continue
        given = OBJECTIVES[objective](A, supports)
        units = search(given)
        assert is_allowed(supports, units), name
        assert supports.size[units].sum() <= supports.room, name
        found = value(tuple(units.tolist()))
        assert found <= best + 1e-12 * abs(best), name
        assert given.value(units) == pytest.approx(found, rel=1e-9), name
        if name == "prove":
            assert found == pytest.approx(best, rel=1e-9)
    begin = forward(given)
    if not monotone:
        return
    for first in (begin, np.zeros_like(begin)):  # of no units, nothing is known
        proof = prove(given, first)
        assert not proof.open()
        assert value(tuple(proof.units.tolist())) == pytest.approx(best, rel=1e-9)
        assert best * (1 - 1e-12) <= proof.upper() <= best * (1 + 1e-9)
    for limit in (0, 1, 3):
        assert prove(given, begin, node_limit=limit).upper() >= best * (1 - 1e-12)


CALLS = {  # with the objective, and the least share of the best that is found
    "branch_and_bound": ("variance", 1),
    "tpower": ("variance", 0.999),
    "greedy": ("variance", 0.9),
    "dspca": ("variance", 0.7),
    "thresholding": ("variance", 0.2),
    "common by branch_and_bound": ("sum of 2", 1),
    "common": ("sum of 2", 0.9),
    "sparse_eigen": ("pencil", 1 - 1e-7),
    "exact": ("least squares", 1),
    "auto": ("least squares", 0.999),
    **dict.fromkeys(("forward", "backward", "bidirectional", "projection"), ("least squares", 0.8)),
}


def called(call, A, k, choice):
    """The loadings, their value and a bound of it."""
    how = {"kind": "covariance", "choice": spcacore.Choice(**choice)}
    if call.startswith("common"):
        method = "branch_and_bound" if "by" in call else "tpower"
        x = spcacore.sparse_pca(A, 2, k, support="common", method=method, certify="jointly", **how)
        return x.loadings, x.explained_variance.sum(), x.joint_bound
    if call == "sparse_eigen":
        x = spcacore.sparse_eigen(A, metric(A)[0], 1, k, choice=how["choice"], certify=True)
        return x.loadings, x.values[0], x.upper_bound[0]
    if CALLS[call][0] == "least squares":
        x = spcacore.least_squares_component(A, k, options=spcacore.LeastSquares(strategy=call), **how)
        return x.loading[:, None], x.value, np.inf if x.upper_bound is None else x.upper_bound
    if call in ("greedy", "thresholding"):
        x = spcacore.sparse_pca(A, 1, k, method=call, certify="bounds", **how)
        return x.loadings, x.explained_variance[0], x.upper_bound[0]
    x = getattr(spcacore, call)(A, k, **how)
    bound = getattr(x, "upper_bound", None)
    return x.loading[:, None], x.value, np.inf if bound is None else bound


@pytest.mark.share(24)
@pytest.mark.filterwarnings("ignore:no variance is left after 1 of the 2")  # one variable is the best set
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("seed", range(8))
def test_calls_against_enumeration(seed, known, call):
    A, choice = a_matrix(seed, known)
    objective, least = CALLS[call]
    if objective == "sum of 2" and "signs" in choice:
        pytest.skip("orthogonal loadings on one set cannot all have given signs")
    supports = a_case(seed, known)[1]
    kept = ~supports.excluded
    B = A * np.outer(kept, kept)  # what is excluded is not explained either
    B = B if objective == "least squares" else A
    value = value_of(B, supports, objective)
    unit = {
        "least squares": as_problem(B, kind="covariance").in_units(1.0),
        "pencil": np.ldexp(1.0, pencil(A).exponent),
    }.get(objective, 1.0)
    if objective == "sum of 2" and supports.most_variables(supports.room) < 2:
        pytest.skip("two components need two variables")
    best = unit * max(map(value, all_allowed(supports)))
    V, found, bound = called(call, A, supports.room, choice)
    units = supports.mask(np.flatnonzero(V.any(axis=1))) | supports.included
    assert is_allowed(supports, units)
    assert supports.size[units].sum() <= supports.room
    assert supports.signs is None or (V * supports.signs[:, None] >= 0).all()
    assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-9)
    variance = np.trace(V.T @ A @ V)
    ratios = {
        "least squares": np.sum((B @ V) ** 2) / variance,
        "pencil": variance / np.trace(V.T @ metric(A)[0] @ V),
    }
    assert found == pytest.approx(ratios.get(objective, variance), rel=1e-9)
    assert least * best * (1 - 1e-9) <= found <= best * (1 + 1e-9)
    assert bound >= best * (1 - (1e-9 if objective == "pencil" else 1e-12))
    if least > 0.9999:  # exact
        assert found == pytest.approx(best, rel=2e-7)
        assert bound == pytest.approx(best, rel=1e-9)


def all_partitions(supports, sizes, total):
    """Two sets without a common unit, of these cardinalities or of this total."""
    some = [(np.array(units), int(supports.size[list(units)].sum())) for units in all_allowed(supports)]
    for (one, j), (other, k) in itertools.product(some, repeat=2):
        room = j + k <= sum(sizes) if total else j <= sizes[0] and k <= sizes[1]
        if room and not (one & other).any():
            yield tuple(one.tolist()), tuple(other.tolist())


PARTS = "variance", "sum of 2", "pencil", "least squares", "regression"


@pytest.mark.share(24)
@pytest.mark.parametrize("objective", PARTS)
@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("known", [name for name in KNOWN if "include" not in name and name != "both"])
@pytest.mark.parametrize("seed", SEEDS)
def test_partitions_against_enumeration(seed, known, total, objective):
    """Searches find no more than the best, and enumeration finds it from a poor choice."""
    A, supports = a_case(seed, known)
    least = int(supports.size[supports.allowed].min())
    sizes = (least + 1, least)
    supports = supports.within(sum(sizes) if total else max(sizes))
    value = value_of(A, supports, objective)
    best = max(value(one) + value(other) for one, other in all_partitions(supports, sizes, total))
    one = OBJECTIVES[objective](A, supports)
    whole = Partition(one, sizes, total)
    for search in (forward, lambda given: swap(given, forward(given))[1]):
        sets = whole.sets(search(whole))
        assert not (sets[0] & sets[1]).any()
        assert not (np.any(sets, axis=0) & ~supports.allowed).any()
        used = [int(supports.size[units].sum()) for units in sets]
        assert sum(used) <= sum(sizes)
        assert total or (used[0] <= sizes[0] and used[1] <= sizes[1])
        found = sum(value(tuple(units.tolist())) for units in sets if units.any())
        assert all(units.any() for units in sets)
        assert found <= best * (1 + 1e-12)
        assert found == pytest.approx(whole.value(np.concatenate(sets)), rel=1e-9)
        traded = [whole.sets(new) for most, new in whole.trades(np.concatenate(sets)) if most > -np.inf]
        assert total or all((np.array(one) @ supports.size <= sizes).all() for one in traded)
    splits = splits_of(sum(sizes), 2, int(supports.size.sum())) if total else [sizes]
    sets, found, complete = enumerated(one, splits, sizes, sets, 0.5 * found)
    assert complete
    assert not (sets[0] & sets[1]).any()
    assert total or all(supports.size[units].sum() <= k for units, k in zip(sets, sizes, strict=True))
    assert sum(value(tuple(units.tolist())) for units in sets) == pytest.approx(best, rel=1e-9)
    assert found == pytest.approx(best, rel=1e-9)
    if objective == "variance":
        x = spcacore.sparse_pca(
            A, 2, spcacore.Total(sum(sizes)) if total else sizes, support="disjoint", kind="covariance",
            certify="jointly", choice=spcacore.Choice(**a_matrix(seed, known)[1]),
        )  # fmt: skip
        assert not x.loadings.all(axis=1).any()
        assert supports.signs is None or (x.loadings * supports.signs[:, None] >= 0).all()
        assert_allclose([x.explained_variance.sum(), x.joint_bound], best, rtol=1e-9)


@pytest.mark.share(4)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("deflation", ["orthogonal", "uncorrelated"])
def test_groups_under_a_constraint_are_proved(seed, deflation):
    """The second component against all supports of groups, within the span that the constraint leaves."""
    rng, k, unit = np.random.default_rng(seed), 2 + seed % 2, np.arange(9) % 5
    A = np.cov(rng.standard_normal((14, 9)), rowvar=False)
    x = spcacore.sparse_pca(
        A, 2, k, kind="covariance", method="branch_and_bound", deflation=deflation,
        choice=spcacore.Choice(groups=unit),
    )  # fmt: skip
    first, second = x.loadings.T
    given, best = first if deflation == "orthogonal" else A @ first, 0.0
    for chosen in itertools.combinations(range(5), k):
        S = np.flatnonzero(np.isin(unit, chosen))
        q = given[S] / (np.linalg.norm(given[S]) or 1)
        P = np.eye(len(S)) - np.outer(q, q)
        best = max(best, np.linalg.eigvalsh(P @ A[np.ix_(S, S)] @ P)[-1])
    assert x.converged.all()
    assert given @ second == pytest.approx(0, abs=1e-9)
    assert second @ A @ second == pytest.approx(best, rel=1e-9)


def an_objective(seed, known, objective):
    A, supports = a_case(seed, known)
    if objective == "posterior" and supports.signs is not None:
        pytest.skip("normal posteriors have no signs")
    return supports, value_of(A, supports, objective), OBJECTIVES[objective](A, supports)


@pytest.mark.share(3)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("known", KNOWN)
def test_a_unit_more_or_less_makes_of_the_value_what_enumeration_says(known, objective):
    supports, value, given = an_objective(99, known, objective)
    allowed = [np.array(units) for units in all_allowed(supports)]
    for units in allowed[:: max(1, len(allowed) // 5)]:
        others, members = np.flatnonzero(supports.allowed & ~units), np.flatnonzero(units)
        each = np.eye(len(units), dtype=bool)
        added = [value(tuple((units | each[j]).tolist())) for j in others]
        none = given.value(np.zeros(len(units), bool))
        kept = [value(tuple((units & ~each[j]).tolist())) if len(members) > 1 else none for j in members]
        for found, expected in (
            (given.with_each(units, others), added),
            (given.without_each(units, members), kept),
        ):
            if given.exact:
                assert_allclose(found, expected, rtol=1e-9)
            else:
                assert (found >= np.array(expected) * (1 - 1e-12) - 1e-15).all()
        if isinstance(given, RatioOfUnits) and not given.bounded:  # which promises one variable of a unit
            promise = given.promise(units)[others]
            least = [value(tuple(units.tolist()))] * len(others) if supports.grouped else added
            assert (promise >= np.array(least) * (1 - 1e-9)).all()
            assert (promise <= np.array(added) * (1 + 1e-9)).all()


@pytest.mark.share(3)
@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("known", KNOWN)
def test_each_step_is_the_best_one(known, objective):
    """Forward of the units that have room, and backward of those that need not be there."""
    supports, value, given = an_objective(98, known, objective)
    each = np.eye(len(supports.allowed), dtype=bool)
    path = [supports.included, *growing(given, supports.included)]
    for before, after in itertools.pairwise(path):
        best = max(value(tuple(before | each[j])) for j in np.flatnonzero(supports.joining(before)))
        assert value(tuple(after)) == pytest.approx(best, rel=1e-9)
    assert not supports.joining(path[-1]).any()
    units, steps = supports.allowed, 0
    while given.exact and supports.left(units) < 0:
        before, steps = units, steps + 1
        units = backward(given, lambda done, steps=steps: done == steps)
        best = max(value(tuple(before & ~each[j])) for j in np.flatnonzero(supports.leaving(before)))
        if supports.left(units) < 0:  # else it may be filled again
            assert value(tuple(units)) == pytest.approx(best, rel=1e-9)


def test_of_units_that_tie_the_first_joins_and_the_last_leaves():
    objective = LeadingSum(np.eye(6), Supports.any_of(6, 3))
    assert_array_equal(np.flatnonzero(forward(objective)), [0, 1, 2])
    assert_array_equal(np.flatnonzero(backward(objective)), [0, 1, 2])
    assert_array_equal(swap(objective, np.arange(6) > 2)[1], np.arange(6) > 2)


def test_what_fills_a_room_is_no_less_than_what_fits(rng):
    for _ in range(20):
        unit = np.repeat(np.arange(6), rng.integers(1, 4, 6))
        supports = Supports.checked(len(unit), None, groups=unit, count="variables")
        value, room = rng.random((6, 3)), int(rng.integers(1, 9))
        ways = [list(w) for w in itertools.product([False, True], repeat=6)]
        best = np.max([value[w].sum(axis=0) for w in ways if supports.size[w].sum() <= room], axis=0)
        filled = supports.filled(value, np.ones(6, bool), room)
        assert (filled >= best - 1e-12).all()
        assert (filled <= best + value.max()).all()
