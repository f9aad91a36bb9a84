"""Groups as a whole, where the cardinality counts their variables, against enumeration."""

import itertools

import numpy as np
import pytest
from test_choice import signed_optimum

import spcacore
from spcacore.operators.choice import Choice, knowledge
from spcacore.solvers.unit_tree import UnitTree

GROUPS = np.array([0, 0, 0, 1, 1, 2, 2, 3, 4, 4])
P = len(GROUPS)
SIGNS = np.array([1, 1, -1, 0, 1, -1, 0, 1, 1, 1])
MIXTURES = [{}, {"include": [3]}, {"exclude": [7]}, {"include": [9], "exclude": [0, 1, 2]}]


def covariance(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, P)) @ (np.eye(P) + 0.4 * rng.standard_normal((P, P)))
    return np.cov(X, rowvar=False)


def optimum(A, k, include=(), exclude=(), nonnegative=None):
    """By enumeration of all sets of groups that have room."""
    allowed, wanted, most = set(GROUPS) - set(GROUPS[list(exclude)]), set(GROUPS[list(include)]), -np.inf
    for n in range(1, len(allowed) + 1):
        for chosen in itertools.combinations(sorted(allowed), n):
            S = np.flatnonzero(np.isin(GROUPS, chosen))
            if len(S) <= k and wanted <= set(chosen):
                B = A[np.ix_(S, S)]
                value = (
                    np.linalg.eigvalsh(B)[-1] if nonnegative is None else signed_optimum(B, nonnegative[S])
                )
                most = max(most, value)
    return most


def assert_feasible(v, k, include=(), exclude=()):
    used = set(GROUPS[v != 0]) | set(GROUPS[list(include)])
    assert sum((g == GROUPS).sum() for g in used) <= k
    assert not v[list(exclude)].any()


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("k", [4, 5, 7])
def test_branch_and_bound_proves_the_optimum(mixture, k):
    for seed in range(2):
        A = covariance(seed)
        x = spcacore.branch_and_bound(A, k, kind="covariance", groups=GROUPS, count="variables", **mixture)
        best = optimum(A, k, **mixture)
        assert x.optimal
        np.testing.assert_allclose([x.value, x.upper_bound], best, rtol=1e-9)
        assert_feasible(x.loading, k, **mixture)


def test_with_signs():
    for seed in range(3):
        A = covariance(seed)
        known = {"groups": GROUPS, "count": "variables", "nonnegative": SIGNS}
        x = spcacore.branch_and_bound(A, 5, kind="covariance", **known)
        assert x.optimal
        np.testing.assert_allclose(x.value, optimum(A, 5, nonnegative=SIGNS), rtol=1e-9)
        assert_feasible(x.loading, 5)
        assert (x.loading * SIGNS >= 0).all()


@pytest.mark.filterwarnings("ignore:not converged in 0 iterations")
@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("options", [{}, {"max_iter": 0}, {"swaps": False, "n_starts": 1}])
def test_truncated_power_keeps_to_the_room(mixture, options):
    found, best = [], []
    for seed in range(3):
        A = covariance(10 + seed)
        x = spcacore.tpower(A, 5, kind="covariance", groups=GROUPS, count="variables", **mixture, **options)
        assert_feasible(x.loading, 5, **mixture)
        found.append(x.value)
        best.append(optimum(A, 5, **mixture))
    assert (np.array(found) <= np.array(best) * (1 + 1e-9)).all()
    if not options:  # the tree that ends the search
        np.testing.assert_allclose(found, best, rtol=1e-9)


def test_a_group_without_room_that_is_alone():
    """Each start in the large group leads nowhere else."""
    A = np.diag([9.0, 9, 9, 1, 1, 2, 2, 3, 1, 1])
    A[:3, :3] += 1
    for method in (spcacore.tpower, spcacore.branch_and_bound):
        x = method(A, 2, kind="covariance", groups=GROUPS, count="variables")
        assert x.value == pytest.approx(3)
        assert_feasible(x.loading, 2)
    x = spcacore.tpower(A, 2, kind="covariance", groups=GROUPS, count="variables", n_starts=1, swaps=False)
    assert x.value > 0
    assert_feasible(x.loading, 2)


@pytest.mark.parametrize("exactly", [True, False])
def test_the_largest_norms_that_have_room(monkeypatch, exactly):
    if not exactly:
        monkeypatch.setattr("spcacore.operators.choice.KNAPSACK_CELLS", 0)
    rng = np.random.default_rng(0)
    for room in range(1, 16):
        unit = rng.permutation(np.repeat(np.arange(7), [1, 1, 2, 2, 3, 4, 5]))
        choice = Choice.checked(len(unit), None, **knowledge(None, None, unit, False, "variables"))
        norms, size = choice.norms(rng.standard_normal(len(unit))), choice.size
        kept = choice.largest(norms, room)
        ways = (list(S) for n in range(8) for S in itertools.combinations(range(7), n))
        best = max((norms[S] ** 2).sum() for S in ways if size[S].sum() <= room)
        assert size[kept].sum() <= room
        value = (norms[kept] ** 2).sum()
        assert value == pytest.approx(best) if exactly else value >= best / 2


def test_groups_of_one_variable_and_equal_groups_are_as_before():
    A = covariance(3)
    for solve in (spcacore.tpower, spcacore.branch_and_bound):
        one = solve(A, 4, kind="covariance", groups=np.arange(P), count="variables")
        np.testing.assert_array_equal(
            one.loading, solve(A, 4, kind="covariance", groups=np.arange(P)).loading
        )
        pairs = np.arange(P) // 2
        two = solve(A, 5, kind="covariance", groups=pairs, count="variables")
        assert two.value == pytest.approx(solve(A, 2, kind="covariance", groups=pairs).value)


@pytest.mark.parametrize("solve", [spcacore.tpower, spcacore.branch_and_bound])
@pytest.mark.parametrize(
    ("k", "known", "message"),
    [
        (1, {"exclude": [7]}, r"cardinality must be in \[2, 9\], not 1: the smallest group has 2 variables"),
        (2, {"include": [0]}, r"cardinality must be in \[3, 10\], not 2: 1 group included, of 3 variables"),
        (2, {"count": "units"}, "count must be one of 'groups', 'variables', not 'units'"),
    ],
)
def test_what_cannot_be_met_is_refused(solve, k, known, message):
    with pytest.raises(ValueError, match=message):
        solve(covariance(0), k, kind="covariance", groups=GROUPS, **{"count": "variables"} | known)


def test_a_room_that_is_filled_in_part_is_no_less_than_any_groups():
    """And a component has at most as many variables as its cardinality."""
    rng = np.random.default_rng(0)
    choice = Choice.checked(P, None, **knowledge(None, None, GROUPS, False, "variables"))
    assert choice.most_variables(4) == 4
    tree = UnitTree.__new__(UnitTree)
    tree.choice = choice
    for room in range(1, P + 1):
        tree.single = rng.random(5)
        ways = (list(S) for n in range(6) for S in itertools.combinations(range(5), n))
        best = max(tree.single[S].sum() for S in ways if choice.size[S].sum() <= room)
        assert tree._filled(np.ones(5, bool), room) >= best - 1e-12
