"""SCoTLASS, least squares components and refined ones that respect what is known of the variables."""

import warnings

import flat
import numpy as np
import pytest
from known_variables import (
    LABELS,
    MIXED,
    P,
    assert_feasible,
    convex,
    covariance,
    data,
    supports_of,
)
from numpy.testing import assert_allclose

import spcacore
from spcacore import sparse_pca
from spcacore.solvers.refitting import Step

KNOWN = [
    {"include": [1, 5]},
    {"exclude": [2], "include": [3]},
    {"groups": LABELS},
    {"nonnegative": MIXED},
    {"nonnegative": np.ones(P)},
    {"groups": LABELS, "include": [8], "nonnegative": MIXED},
]


def cost(choice, v):
    """The sum of the norms of the units that a bound counts."""
    return sum(np.linalg.norm(v[choice.unit == u]) for u in np.flatnonzero(~choice.included))


# ---- SCoTLASS


@pytest.mark.share(3)
@pytest.mark.parametrize("known", KNOWN)
def test_a_step_under_an_l1_bound_is_the_convex_optimum(known):
    """Of SCoTLASS, and where no loading was found before."""
    cp = pytest.importorskip("cvxpy")
    choice, solved, rng = supports_of(known), 0, np.random.default_rng(0)
    for t in (0, 1, 1, 2, 3):
        a, bound = rng.standard_normal(P), rng.uniform(1.1, 2.5)
        E = rng.standard_normal((P, t)) * (rng.random((P, t)) < 0.5)
        E[rng.permutation(P)[:t], np.arange(t)] += 1
        Q = np.linalg.qr(E)[0]
        w = cp.Variable(P)
        sums, signs = convex(choice, w)
        limits = [cp.norm(w) <= 1, sum(sums) <= bound, Q.T @ w == 0, w[choice.excluded] == 0, *signs]
        best = cp.Problem(cp.Maximize(a @ w), limits).solve(solver="CLARABEL")
        rule = choice.rule(Step.L1_BOUND, level=bound, Q=Q if t else None)
        x, _ = rule.step(a if t else choice.projected(a), 1.0)
        if np.linalg.norm(w.value) < 1 - 1e-3:
            assert not x.any()  # the maximum is not attained on the sphere
        elif x.any():
            solved += 1
            x /= np.linalg.norm(x)
            assert a @ x == pytest.approx(best, rel=1e-6)
            assert np.abs(Q.T @ x).max(initial=0) < 1e-10
            assert cost(choice, x) <= bound * (1 + 1e-9)
            assert choice.signs is None or (x * choice.signs >= 0).all()
            assert not x[choice.excluded].any()
    assert solved >= 3


@pytest.mark.share(6)
@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("renormalize", [True, False])
def test_scotlass_is_orthogonal_and_feasible(known, renormalize):
    X = data(41)
    with warnings.catch_warnings(action="ignore"):
        x = flat.sparse_pca(
            X, 3, method="scotlass", l1_bound=1.7, renormalize=renormalize, n_starts=3, **known
        )
    V, choice, level = x.loadings, supports_of(known), 1.7
    assert V.shape[1] >= 2
    assert_allclose(V.T @ V, np.eye(V.shape[1]), atol=1e-10)
    for v in V.T:
        assert_feasible(v, None, **known)
        assert renormalize or cost(choice, v) <= 1.7 * (1 + 1e-9)
    # no other loading of the same knowledge, orthogonal to the first, is better in a small step from there
    A = np.cov(X, rowvar=False)
    if renormalize and "nonnegative" in known:  # on the same variables, without the bound
        choice, level = choice.only(np.flatnonzero(V[:, 1])), P**0.5
    if not renormalize or level > 1.7:
        again, _ = choice.rule(Step.L1_BOUND, level=level, Q=V[:, :1]).step(A @ V[:, 1], 1.0)
        assert_allclose(again / np.linalg.norm(again), V[:, 1], atol=1e-3)


def test_nonnegative_orthogonal_loadings_share_no_variable():
    with pytest.warns(RuntimeWarning, match="nothing feasible is left after 2 of the 3 components"):
        x = sparse_pca(
            covariance(3),
            3,
            kind="covariance",
            method=spcacore.SCoTLASS(l1_bound=1.7, n_starts=9),
            choice=spcacore.Choice(signs=1),
        )
    assert not (x.loadings[:, 0] * x.loadings[:, 1]).any()
    assert (x.loadings >= 0).all()


# ---- refinement


@pytest.mark.filterwarnings("ignore:refinement not converged")
def test_orthogonal_loadings_that_leave_out_an_included_variable_have_no_more_room():
    """Of two variables, one of which is included: all supports by hand, and a loading may be zero there."""
    for seed in range(4):
        A = np.cov(np.random.default_rng(seed).standard_normal((5, 20)))
        pairs = [np.linalg.eigvalsh(A[np.ix_([0, a], [0, a])]) for a in range(1, 5)]
        alone = [np.delete(A.diagonal()[1:], a).max() for a in range(4)]
        best = max(max(pair.sum(), pair[1] + other) for pair, other in zip(pairs, alone, strict=True))
        start = np.eye(5)[:, :2] + [[0, -0.1], [0.1, 0], [0, 0], [0, 0], [0, 0]]
        V = spcacore.refine(
            A, start, 2, constraint="orthogonal", choice=spcacore.Choice(include=[0]), kind="covariance",
            max_iter=1,
        )  # fmt: skip
        assert_allclose(V.T @ V, np.eye(2), atol=1e-12)
        assert (np.count_nonzero(V[1:], axis=0) <= 1).all()
        assert np.trace(V.T @ A @ V) == pytest.approx(best, rel=1e-12)
