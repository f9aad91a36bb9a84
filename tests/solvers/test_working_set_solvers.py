"""Components of the other solvers from a working set: steps of the plain iteration over all columns."""

import itertools
import warnings
from functools import partial

import flat
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from operators.test_working_set import draw
from oracles import assert_stationary, centered, covariance, deflations, normal
from row_block_tools import STORED
from scipy.linalg import block_diag
from scipy.optimize import minimize_scalar

import spcacore
from spcacore import _limits
from spcacore.operators import inputs, working_set
from spcacore.operators.deflation import DEFLATIONS, DeflatedOperator
from spcacore.solvers import (
    generalized_power,
    l1_bounded,
    solver,
    starts,
    truncated_power,
)
from spcacore.supports.admissible import Supports

OPTIONS = {
    "l1": {"method": "gpower", "norm": "l1", "relative": True},
    "l0": {"method": "gpower", "norm": "l0", "relative": True},
    "pmd": {"method": "pmd"},
    "scotlass": {"method": "scotlass"},
}
SOLVERS = {
    "l1": generalized_power.GeneralizedPower,
    "l0": generalized_power.GeneralizedPower,
    "pmd": l1_bounded.PenalizedDecomposition,
    "scotlass": l1_bounded.LassoComponent,
}
SEMIDEFINITE = [name for name in DEFLATIONS if "hotelling" not in name and name != "generalized"]


@pytest.fixture(scope="module", autouse=True)
def smaller_sets(small_sets):
    small_sets.setattr(starts, "WORKING_SET_START", 4)
    small_sets.setattr(starts, "WORKING_SET_PROBES", 1)


@pytest.fixture
def no_search_of_all(monkeypatch):
    """Where a search gives way to one among all columns, the test fails."""

    def refuse(method, p):
        whole = method.solve

        def solve(self, problem, *rest):
            assert problem.p < p, "the search gave way"
            return whole(self, problem, *rest)

        monkeypatch.setattr(method, "solve", solve)

    return refuse


def sparsity(method, amount):
    """From an amount between 0, for one variable or few, and 1."""
    if method in ("l1", "l0"):
        return {"penalty": (0.7 if method == "l1" else 0.5) * (1 - amount) + 0.1}
    return {"l1_bound": 1 + 2 * amount}


def soft(y, level):
    return np.sign(y) * np.maximum(np.abs(y) - level, 0)


def bounded(y, bound):
    """The largest y'w of a unit vector of bounded l1 norm, by the least of its dual over the level."""
    return least(lambda level: np.linalg.norm(soft(y, level)) + level * bound, 0, np.abs(y).max())


def most(y, bound, earlier):
    """The same of the vectors orthogonal to an earlier one, by the least over its multiplier."""
    if len(earlier) == 0:
        return bounded(y, bound)
    (q,) = earlier
    size = np.linalg.norm(y)
    return least(lambda mu: bounded(y - mu * q, bound), -size, size)


def least(convex, low, high):
    found = minimize_scalar(convex, bounds=(low, high), method="bounded", options={"xatol": 1e-10 * high})
    return min(found.fun, convex(low), convex(high))


def check_step(A, x, method, given, largest, earlier):
    """One more step over all columns gains nothing and takes in no variable."""
    y = A @ x
    if method in ("l1", "l0"):
        share = given["penalty"]
        level = np.sqrt(x @ y) * (share * np.sqrt(largest) if method == "l1" else np.sqrt(share * largest))
        outside = np.abs(y[x == 0]).max(initial=0)
        assert outside <= level * (1 + 1e-9)
        new = soft(y, level) if method == "l1" else np.where(np.abs(y) > level, y, 0)
        new /= np.linalg.norm(new)
        assert new @ x > 1 - 1e-4
    else:
        bound = given["l1_bound"]
        assert np.abs(x).sum() <= bound * (1 + 1e-9)
        assert np.linalg.norm(x) == pytest.approx(1)
        if method != "scotlass":
            earlier = earlier[:0]
        assert most(y, bound, earlier) <= x @ y * (1 + 1e-5)
        assert np.abs(earlier @ x).max(initial=0) < 1e-6


def check(X, result, method, given, deflation="projection", scale=False):
    A, V = covariance(X, scale=scale), result.loadings.astype(float)
    for t, (x, left) in enumerate(zip(V.T, deflations(A, V, deflation), strict=False)):
        check_step(left, x, method, given, left.diagonal().max(), V.T[:t])


def fit(X, method, given, r=2, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where fewer components are left
        return flat.sparse_pca(X, r, renormalize=False, **OPTIONS[method], **given, **options)


@pytest.mark.share(48)
@pytest.mark.parametrize("kind", ["planted", "late", "dominant", "ties", "sparse", "noise"])
@pytest.mark.parametrize("method", OPTIONS)
@given(
    st.integers(0, 10**6), st.integers(10, 60), st.integers(20, 120), st.floats(0.1, 1),
    st.sampled_from(sorted(STORED)), st.booleans(), st.sampled_from(SEMIDEFINITE),
)  # fmt: skip
@settings(max_examples=8)
def test_a_step_over_all_columns_takes_in_no_variable(
    kind, method, seed, n, p, amount, storage, scale, deflation
):
    X, given = draw(np.random.default_rng(seed), n, p, kind), sparsity(method, amount)
    result = fit(STORED[storage](X), method, given, scale=scale, deflation=deflation)
    assert result.screening.working_set > 0
    check(X, result, method, given, deflation, scale)


@pytest.mark.parametrize("method", ["pmd", "scotlass"])
def test_a_vector_on_the_same_support_is_asked_for_too(method):
    """Here the last search among some finds another one, which lets in a variable."""
    X, given = draw(np.random.default_rng(571), 20, 40, "noise"), {"l1_bound": 2.375}
    check(X, fit(X, method, given), method, given)


@pytest.mark.share(16)
@pytest.mark.parametrize("storage", STORED)
@pytest.mark.parametrize("method", OPTIONS)
def test_the_search_ends_in_the_set(method, storage, no_search_of_all):
    """Also where the correlated columns have less variance than all others."""
    no_search_of_all(SOLVERS[method], 100)
    for seed in range(5):
        for kind, amount in (("planted", 0.5), ("late", 0.7)):
            X, given = draw(np.random.default_rng(seed), 50, 100, kind), sparsity(method, amount)
            r = 2 if method == "scotlass" else 1
            check(X, fit(STORED[storage](X), method, given, r), method, given)


FAST = ("l0", "sparse"), ("scotlass", "noise")  # of seconds, not of many


@pytest.mark.parametrize(
    ("method", "kind"),
    [
        pytest.param(*case, marks=[] if case in FAST else pytest.mark.slow)
        for case in itertools.product(OPTIONS, ("noise", "sparse"))
    ],
)
def test_no_component_falls_below_those_of_all_columns(method, kind, monkeypatch, with_limits):
    """By what the solver maximizes, with sets as large as they are."""
    for name in ("WORKING_SET_START", "WORKING_SET_PROBES"):
        monkeypatch.setattr(starts, name, getattr(_limits, name))
    with_limits(starts, WORKING_SET_FACTOR=_limits.WORKING_SET_FACTOR)
    values = []
    for seed in (2, 3):
        X = draw(np.random.default_rng(seed), 60, 4000 if kind == "sparse" else 3000, kind)
        X = sp.csr_array(X) if kind == "sparse" else X
        given = sparsity(method, 0.3 + 0.2 * seed)
        both = [fit(X, method, given, 1, screening=mode) for mode in ("none", "auto")]
        assert [found.screening.working_set > 0 for found in both] == [False, True]
        Z = X.toarray() if kind == "sparse" else X
        Z = centered(Z) / np.sqrt(len(Z) - 1)
        most = np.square(Z).sum(axis=0).max()
        for x in (found.loadings[:, 0] for found in both):
            value = np.sum(np.square(Z @ x))
            if method == "l1":
                value = np.sqrt(value) - given["penalty"] * np.sqrt(most) * np.abs(x).sum()
            elif method == "l0":
                value -= given["penalty"] * most * np.count_nonzero(x)
            values.append(value)
    lowest = 0.95 if method in ("l1", "l0") else 1 - 1e-6  # local optima of noise
    ratio = np.array(values[1::2]) / values[::2]
    assert ratio.min() > lowest
    assert ratio.mean() > 0.98


def test_nonnegative_loadings_take_in_no_positive_product():
    pmd, tpower = partial(flat.pmd, l1_bound=1.8), partial(spcacore.tpower, cardinality=5)
    for seed in range(30):
        X = draw(np.random.default_rng(seed), 40, 80, ["planted", "noise"][seed % 2])
        x, some = (fit(X, choice=spcacore.Choice(signs=1)) for fit in (pmd, tpower))
        for found in (x, some):
            assert found.screening.working_set > 0
            assert found.loading.min() >= 0
        y, z = (covariance(X) @ found.loading for found in (x, some))
        assert bounded(np.maximum(y, 0), 1.8) <= x.loading @ y * (1 + 1e-5)
        if some.cardinality == 5:
            assert z[some.loading == 0].max() <= z[some.loading > 0].min() * (1 + 1e-6)


def test_entrants_come_by_their_products_and_where_it_matters_by_sign():
    X = draw(np.random.default_rng(0), 40, 30, "noise")
    problem = inputs.as_problem(X, screening="working_set", restrictable=True)
    state, product = DeflatedOperator.from_problem(problem), covariance(X)[0]
    first, one = np.zeros(1, np.intp), np.ones(1)
    for positive in (False, True):
        state = state.with_problem(supports=Supports.any_of(30, positive=positive))
        (found,) = problem.working_set.entrants(state, first, [(first, one, 0.0)])
        size = product if positive else np.abs(product)
        order = np.argsort(-size)[1:]
        assert_array_equal(found, order[size[order] > 0])


# ---- when memory is short ----------------------------------------------------------------------------


def room_for(with_limits, variables, n):
    with_limits(working_set, WORKING_SET_BYTES=8 * variables * (2 * variables + n))


@pytest.mark.parametrize("method", OPTIONS)
def test_variables_that_are_not_used_make_room(method, monkeypatch, with_limits, no_search_of_all):
    """Correlated columns, of which some have less variance than the others, enter a set that is full."""
    no_search_of_all(SOLVERS[method], 200)
    room_for(with_limits, 46, 40)
    with_limits(starts, WORKING_SET_START=20)
    given = {"l1": {"penalty": 0.45}, "l0": {"penalty": 0.3}}.get(method, {"l1_bound": 2.6})
    dropped = []
    keep = working_set.WorkingSet._keep
    monkeypatch.setattr(working_set.WorkingSet, "_keep", lambda *one: (dropped.append(1), keep(*one))[1])
    for seed in range(8):
        X = draw(np.random.default_rng(seed), 40, 200, "noise")
        X[:, ::8] = normal(seed, 40, 1) + 0.3 * X[:, ::8]
        X[:, ::8] *= np.linspace(0.8, 1.25, 25)
        result = fit(X, method, given, 1)
        assert 0 < result.screening.working_set <= 46
        check(X, result, method, given)
    assert dropped


@pytest.mark.parametrize(("factor", "room"), [(2, 20), (1, 11)])
def test_variables_that_are_not_used_make_room_for_a_cardinality(factor, room, with_limits, no_search_of_all):
    """With room for all that enter, and for three of them."""
    no_search_of_all(truncated_power.TruncatedPower, 100)
    with_limits(starts, WORKING_SET_FACTOR=factor)
    room_for(with_limits, room, 40)
    for seed in range(10):
        X = draw(np.random.default_rng(seed), 40, 100, "noise")
        x = spcacore.tpower(X, 8)
        assert 8 <= x.screening.working_set <= room
        assert_stationary(covariance(X), x.loading)


def test_starts_search_one_set(monkeypatch, with_limits, no_search_of_all):
    """Supports that were swapped are fitted alone."""
    no_search_of_all(truncated_power.TruncatedPower, 100)
    with_limits(solver, WORKING_SET_ALL=np.inf)
    room_for(with_limits, 24, 40)
    together, search = [], solver.search_from_each

    def seen(*given):
        together.append(len(given[-1]))
        return search(*given)

    monkeypatch.setattr(solver, "search_from_each", seen)
    for seed in range(6):
        Y = draw(np.random.default_rng(seed), 20, 50, "noise")
        Y -= Y.mean(axis=0)
        X = block_diag(Y, Y * (1 - 1e-6))  # two ends of nearly one value
        x = flat.tpower(X, 8, swaps=False)
        assert 8 <= x.screening.working_set <= 24
        assert_stationary(covariance(X), x.loading)
    assert max(together) == 2
    assert 1 in together


@pytest.mark.parametrize(
    ("options", "room"),
    [
        *((OPTIONS[method] | sparsity(method, 0.5), 0) for method in OPTIONS),
        ({"cardinality": 5}, 0),
        *(({"method": "gpower", "relative": True, "penalty": penalty}, 12) for penalty in (0.0, 0.02)),
    ],
)
def test_without_room_all_columns_are_searched(options, room, with_limits):
    """Nor does a set grow to all variables, by ever more columns, where a penalty keeps many."""
    if room == 0:
        with_limits(working_set, WORKING_SET_BYTES=0)
    X = draw(np.random.default_rng(0), 30, 90, "noise")
    r = 1 if room else 2
    results = [flat.sparse_pca(X, r, screening=mode, **options) for mode in ("none", "auto")]
    assert results[1].screening.working_set <= room
    assert_array_equal(results[1].loadings, results[0].loadings)


# ---- who takes part ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "options",
    [
        {"method": "gpower", "penalty": 0.2, "relative": True},
        {"method": "pmd", "l1_bound": 2},
        {"method": "scotlass", "l1_bound": 2},
        {"method": "branch_and_bound", "cardinality": 2},
    ],
)
def test_a_set_can_be_asked_for(options, with_limits):
    X = draw(np.random.default_rng(0), 30, 40, "planted")
    with_limits(inputs, WORKING_SET_COST=10**9)
    assert flat.sparse_pca(X, 1, **options).screening.working_set == 0
    assert flat.sparse_pca(X, 1, screening="working_set", **options).screening.working_set > 0


def test_the_variables_of_many_earlier_components_are_in_the_set(no_search_of_all):
    """Half of all in the end."""
    no_search_of_all(truncated_power.TruncatedPower, 120)
    X = draw(np.random.default_rng(0), 60, 120, "noise")
    result = spcacore.sparse_pca(
        sp.csr_array(X), 9, cardinality=8, method=spcacore.TPower(screening="working_set")
    )
    used = result.loadings.any(axis=1).sum()
    assert 60 <= used <= result.screening.working_set


def test_the_function_of_scotlass_takes_part():
    X = draw(np.random.default_rng(0), 40, 90, "planted")
    first = flat.scotlass(X, 2)
    second = flat.scotlass(X, 2, earlier=first.loading[:, None])
    assert first.screening.working_set > 0
    assert second.screening.working_set > 0
    assert abs(first.loading @ second.loading) < 1e-10
    among_all = flat.scotlass(X, 2, earlier=np.ones((90, 1)))
    assert among_all.screening.working_set == 90
    assert abs(among_all.loading.sum()) < 1e-9
    with pytest.raises(ValueError, match="screening"):
        flat.scotlass(X, 2, screening="both")
