"""The semidefinite relaxation under what is known of the variables: a convex solver, and enumeration."""

import itertools

import flat
import numpy as np
import pytest
from known_variables import CASES, LABELS, MIXED, P, assert_feasible, covariance, optimum
from numpy.testing import assert_allclose
from oracles import normal

import spcacore
from spcacore import dspca

FINE = {"kind": "covariance", "tol": 1e-6, "max_iter": 20000}
SIZES = {"groups": LABELS, "count": "variables"}
COUNTED = [
    (SIZES, 4),
    (SIZES | {"include": [8]}, 4),
    (SIZES | {"exclude": [0, 1]}, 5),
    (SIZES | {"nonnegative": MIXED}, 4),
    (SIZES | {"nonnegative": MIXED, "include": [5], "exclude": [8]}, 4),
]


def relaxed(A, k=None, penalty=None, include=(), exclude=(), groups=None, nonnegative=None, count="groups"):
    """The optimum by a convex solver."""
    cp = pytest.importorskip("cvxpy")
    groups = np.arange(P) if groups is None else np.asarray(groups)
    size = {u: (groups == u).sum() if count == "variables" else 1 for u in np.unique(groups)}
    inside = set(groups[list(include)])
    room = 0 if k is None else k - sum(size[u] for u in inside)
    fits = {u for u in size if u in inside or k is None or size[u] <= room}
    kept = np.array([j for j in range(P) if j not in exclude and groups[j] in fits])
    A, groups = A[np.ix_(kept, kept)], groups[kept]
    members = {u: np.flatnonzero(groups == u) for u in np.unique(groups)}
    M, free = cp.Variable(A.shape, symmetric=True), [u for u in members if u not in inside]
    l1 = sum(
        np.sqrt(size[u] * size[v]) * cp.norm2(cp.vec(M[np.ix_(members[u], members[v])], order="F"))
        for u, v in itertools.product(free, free)
        if u != v
    )
    l1 = l1 + sum((size[u] - room) * cp.trace(M[np.ix_(members[u], members[u])]) for u in free)
    constraints = [M >> 0, cp.trace(M) == 1]
    if nonnegative is not None:
        s = np.asarray(nonnegative, float)[kept]
        constraints.append(cp.multiply(np.outer(s, s), M) >= 0)
    cost = 0 if penalty is None else penalty * l1
    if penalty is None and free:
        constraints.append(l1 <= 0)
    return cp.Problem(cp.Maximize(cp.trace(A @ M) - cost), constraints).solve(solver="CLARABEL")


@pytest.mark.share(4)
@pytest.mark.parametrize(("known", "k"), [*CASES, *COUNTED])
def test_the_relaxation_is_solved(known, k):
    A = covariance(3)
    x = flat.dspca(A, k, **FINE, **known)
    if not set(known) - {"exclude"}:
        return
    assert_allclose([x.relaxation, x.dual], relaxed(A, k, **known), rtol=1e-5)
    best = optimum(A, k, **known)
    assert x.value <= best * (1 + 1e-9)
    assert best <= x.upper_bound * (1 + 1e-9)
    assert x.value >= 0.95 * best
    assert_feasible(x.loading, k, **known)
    bounds = flat.optimality_bound(A, k, kind="covariance", relaxation=True, **known).bounds
    assert best * (1 - 1e-9) <= bounds["relaxation"] <= x.dual * 1.002  # solved to 0.001
    M = np.zeros((P, P))
    M[np.ix_(x.kept, x.kept)] = x.matrix
    assert np.linalg.eigvalsh(M)[0] >= -1e-9
    assert_allclose([np.trace(M), np.sum(A * M)], [1, x.relaxation], rtol=1e-6)


@pytest.mark.share(9)
@pytest.mark.parametrize(
    "known",
    [
        {"include": [1]},
        {"groups": LABELS},
        {"nonnegative": MIXED},
        {"groups": LABELS, "include": [8], "exclude": [0, 1], "nonnegative": MIXED},
    ],
)
def test_a_penalty(known):
    """It bounds each component by the number of its groups that are not included."""
    A = covariance(4)
    x = flat.dspca(A, penalty=1.5, **FINE, **known)
    assert_allclose([x.relaxation, x.dual], relaxed(A, penalty=1.5, **known), rtol=1e-5)
    assert_feasible(x.loading, None, **known)
    groups = known.get("groups", np.arange(P))
    used = set(groups[x.loading != 0]) - set(groups[known.get("include", [])])
    assert_allclose(x.upper_bound, x.dual + 1.5 * len(used), rtol=1e-9)
    k = len(used) + len(known.get("include", []))
    assert optimum(A, k, **known) <= x.upper_bound * (1 + 1e-9)


def test_too_many_variables_are_refused(monkeypatch):
    monkeypatch.setattr("spcacore.solvers.semidefinite.SHAPED_ORDER", 9)
    X = normal(0, 20, 10)
    with pytest.raises(
        ValueError, match="include requires at most 9 variables in dspca, not 10: exclude some"
    ):
        dspca(X, 3, choice=spcacore.Choice(include=[0]))
    assert dspca(X, 3, choice=spcacore.Choice(include=[0], exclude=[1])).loading[0] != 0
    bounds = spcacore.optimality_bound(X, 3, relaxation=True, choice=spcacore.Choice(include=[0])).bounds
    assert np.isfinite(bounds["relaxation"])


@pytest.mark.filterwarnings("ignore:not converged")
@pytest.mark.parametrize("scale", [1.0, 1e-250])
@pytest.mark.parametrize("penalty", [10.0**e for e in (-6, 1, 8, 12, 16, 30, 100)])
def test_bounds_keep_their_digits_however_large_the_penalty(penalty, scale):
    """An included variable alone costs nothing; the bound is neither lost in the penalty nor below it."""
    A = np.cov(normal(0, 30, 8), rowvar=False)
    known = spcacore.Choice(include=[3])
    x = spcacore.dspca(A * scale, penalty=penalty * scale, choice=known, kind="covariance")
    assert x.upper_bound >= max(x.value, A[3, 3] * scale) * (1 - 1e-12)
    assert A[3, 3] * scale * (1 - 1e-12) <= x.dual <= np.linalg.eigvalsh(A)[-1] * scale * (1 + 1e-11)
