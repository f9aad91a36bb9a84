"""Penalized and bounded components from a working set: steps of the plain iteration over all columns."""

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oracles import covariance, deflated
from scipy.optimize import minimize_scalar
from test_working_set import STORAGES, draw

import spcacore
from spcacore.operators import inputs, working_set
from spcacore.operators.deflation import DEFLATIONS
from spcacore.solvers import base, generalized_power, lasso_component, penalized_decomposition

OPTIONS = {
    "l1": {"method": "gpower", "norm": "l1", "relative": True},
    "l0": {"method": "gpower", "norm": "l0", "relative": True},
    "pmd": {"method": "pmd"},
    "scotlass": {"method": "scotlass"},
}
SOLVERS = {
    "l1": generalized_power.GeneralizedPower,
    "l0": generalized_power.GeneralizedPower,
    "pmd": penalized_decomposition.PenalizedDecomposition,
    "scotlass": lasso_component.LassoComponent,
}


@pytest.fixture(scope="module", autouse=True)
def small_sets():
    """Working sets for small matrices too, which begin with few variables."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "WORKING_SET_COST", 0)
        patch.setattr(generalized_power, "WORKING_SET_START", 4)
        patch.setattr(penalized_decomposition, "WORKING_SET_FACTOR", 2)
        patch.setattr(lasso_component, "WORKING_SET_FACTOR", 2)
        yield


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


def check_step(A, x, method, given, largest, n, earlier):
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
        assert most(y, bound, earlier if method == "scotlass" else []) <= x @ y * (1 + 1e-5)
        if method == "scotlass" and earlier:
            assert np.abs(np.column_stack(earlier).T @ x).max() < 1e-6


def check(X, result, method, given, deflation="projection", scale=False, A=None):
    A = covariance(X, scale=scale) if A is None else A
    earlier = []
    for x in result.loadings.T.astype(float):
        check_step(A, x, method, given, A.diagonal().max(), len(X), earlier)
        A = deflated(A, x, deflation, earlier)
        earlier.append(x)


def fit(X, method, given, r=2, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # where fewer components are left
        return spcacore.sparse_pca(X, r, renormalize=False, **OPTIONS[method], **given, **options)


@pytest.mark.parametrize("kind", ["planted", "late", "dominant", "ties", "sparse", "noise"])
@pytest.mark.parametrize("method", OPTIONS)
@given(
    st.integers(0, 10**6), st.integers(10, 60), st.integers(20, 120), st.floats(0.1, 1),
    st.sampled_from(sorted(STORAGES)), st.booleans(),
)  # fmt: skip
@settings(max_examples=15)
def test_steps_over_all_columns_take_in_no_variable(kind, method, seed, n, p, amount, storage, scale):
    X, given = draw(np.random.default_rng(seed), n, p, kind), sparsity(method, amount)
    result = fit(STORAGES[storage](X), method, given, scale=scale)
    assert result.screening.working_set > 0
    check(X, result, method, given, scale=scale)
