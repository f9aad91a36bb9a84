"""What is known of the variables of both sides of a canonical correlation, against enumeration."""

from itertools import combinations

import flat
import numpy as np
import pytest
from in_turn import examples
from numpy.testing import assert_allclose
from oracles import centered, normal
from scipy.optimize import nnls

import spcacore
from spcacore import sparse_cca

P, Q = 7, 6
GROUPS_X = np.array([0, 0, 1, 1, 2, 3, 3])
GROUPS_Y = np.array([0, 1, 1, 2, 2, 3])
SIGNS_X = np.array([1, -1, 0, 1, 1, -1, 1])
SIGNS_Y = np.array([1, 1, -1, 0, 1, 1])
KNOWN = [
    {},
    {"x_include": [0], "y_include": [5]},
    {"x_exclude": [1, 2], "y_exclude": [0]},
    {"x_groups": GROUPS_X},
    {"x_groups": GROUPS_X, "x_include": [6], "y_groups": GROUPS_Y, "y_exclude": [5]},
    {"x_nonnegative": True, "y_nonnegative": True},
    {"x_nonnegative": SIGNS_X, "y_include": [1]},
    {"x_nonnegative": SIGNS_X, "y_nonnegative": SIGNS_Y, "x_groups": GROUPS_X},
]
SETS_X, SETS_Y = np.array([0, 0, 0, 1, 1, 2, 3]), np.array([0, 1, 1, 2, 2, 2])
COUNTED = [
    {"x_groups": SETS_X, "x_count": "variables"},
    {"x_groups": SETS_X, "x_count": "variables", "y_groups": SETS_Y, "y_count": "variables"},
    {"x_groups": SETS_X, "x_count": "variables", "x_include": [5], "y_groups": SETS_Y, "y_count": "variables",
     "y_exclude": [1, 2]},
    {"x_groups": SETS_X, "x_count": "variables", "x_nonnegative": SIGNS_X, "y_nonnegative": True},
]  # fmt: skip


def both(seed, n=40):
    rng = np.random.default_rng(seed)
    X, Y = rng.standard_normal((n, P)), rng.standard_normal((n, Q))
    common = rng.standard_normal((n, 2))
    X += common @ rng.standard_normal((2, P))
    Y += common @ rng.standard_normal((2, Q))
    return X @ (np.eye(P) + 0.3 * rng.standard_normal((P, P))), Y


def of(side, known):
    """What is known of a side: include, exclude, groups, signs."""
    p, name = (P, "x") if side == 0 else (Q, "y")
    groups = known.get(f"{name}_groups", np.arange(p))
    signs = known.get(f"{name}_nonnegative", np.zeros(p))
    signs = np.ones(p) if signs is True else signs
    return known.get(f"{name}_include", []), known.get(f"{name}_exclude", []), groups, signs


def supports(side, known, k):
    include, exclude, groups, _ = of(side, known)
    units = [u for u in np.unique(groups) if not np.isin(np.flatnonzero(groups == u), exclude).any()]
    counted = f"{'xy'[side]}_count" in known
    for n in range(1, len(units) + 1) if counted else [k]:
        for some in combinations(units, n):
            S = np.flatnonzero(np.isin(groups, some))
            if set(groups[include]) <= set(some) and (not counted or len(S) <= k):
                yield S


def signed_optimum(C, Bx, By, sx, sy):
    """The largest u'Cv of these signs: where no entry is zero it is a canonical correlation of the rest."""
    most = 0.0
    for i in range(1, len(Bx) + 1):
        for S in map(list, combinations(range(len(Bx)), i)):
            for j in range(1, len(By) + 1):
                for T in map(list, combinations(range(len(By)), j)):
                    K = np.linalg.solve(Bx[np.ix_(S, S)], C[np.ix_(S, T)])
                    M = np.linalg.solve(By[np.ix_(T, T)], C[np.ix_(S, T)].T) @ K
                    values, vectors = np.linalg.eig(M)
                    v = vectors[:, np.argmax(values.real)].real
                    u = K @ v
                    for sign in (1, -1):
                        if (sign * u * sx[S]).min() >= -1e-9 and (sign * v * sy[T]).min() >= -1e-9:
                            most = max(most, float(np.sqrt(values.real.max())))
    return most


def optimum(C, Bx, By, known, k):
    most, signs = 0.0, (of(0, known)[3], of(1, known)[3])
    for S in supports(0, known, k[0]):
        for T in supports(1, known, k[1]):
            parts = C[np.ix_(S, T)], Bx[np.ix_(S, S)], By[np.ix_(T, T)]
            if signs[0].any() or signs[1].any():
                most = max(most, signed_optimum(*parts, signs[0][S], signs[1][T]))
                continue
            left, right = (np.linalg.inv(np.linalg.cholesky(B)) for B in parts[1:])
            most = max(most, np.linalg.svd(left @ parts[0] @ right.T, compute_uv=False)[0])
    return most


def assert_feasible(result, known, k=None):
    for side, V in enumerate((result.loadings_x, result.loadings_y)):
        include, exclude, groups, signs = of(side, known)
        for v in V.T:
            assert not v[exclude].any()
            assert (v * signs >= 0).all()
            assert not np.signbit(v[v == 0]).any()
            used = set(groups[v != 0]) | set(groups[include])
            counted = f"{'xy'[side]}_count" in known
            assert k is None or (np.isin(groups, [*used]).sum() if counted else len(used)) <= k[side]
            assert v[include].all() or signs.any()


def matrices(X, Y):
    x, y = (centered(Z) / Z.std(axis=0, ddof=1) for Z in (X, Y))
    n = len(X) - 1
    return x.T @ y / n, x.T @ x / n, y.T @ y / n


@pytest.mark.share(6)
@pytest.mark.parametrize("known", [*KNOWN, *COUNTED])
def test_generalized_finds_nearly_the_optimum(known):
    """Against all pairs of supports, of groups or of as many variables of groups as have room."""
    ratios, counted = [], "x_count" in known
    for seed in range(examples(8) if counted and "x_nonnegative" not in known else 2):
        X, Y = both(seed)
        k = (3 + seed % 3, 2 + seed // 3) if counted else (2, 2)
        found = flat.sparse_cca(X, Y, method="generalized", cardinality=k, certify=True, **known)
        assert_feasible(found, known, k)
        assert_allclose(found.strengths, found.correlations, rtol=1e-8)
        best = optimum(*matrices(X, Y), known, k)
        assert best <= found.upper_bound[0] * (1 + 1e-9)
        ratios.append(found.strengths[0] / best)
    assert max(ratios) <= 1 + 1e-8
    assert min(ratios) > 0.98
    assert max(ratios) > 1 - 1e-6


@pytest.mark.share(3)
@pytest.mark.parametrize("known", KNOWN)
def test_penalized_decompositions_end_where_no_step_helps(known, monkeypatch):
    monkeypatch.setattr("spcacore.generalized.cca.CCA_TOL", 0)
    cp = pytest.importorskip("cvxpy")
    X, Y = both(7)
    found = flat.sparse_cca(X, Y, l1_bound=(1.4, 1.3), max_iter=3000, **known)
    assert_feasible(found, known)
    C = matrices(X, Y)[0]
    u, v = found.loadings_x[:, 0], found.loadings_y[:, 0]
    assert_allclose(found.strengths[0], u @ C @ v, rtol=1e-8)
    for side, slope, bound in ((0, C @ v, 1.4), (1, C.T @ u, 1.3)):
        include, exclude, groups, signs = of(side, known)
        w = cp.Variable(len(slope))
        free = [g for g in np.unique(groups) if g not in groups[include]]
        limits = [cp.norm(w) <= 1, cp.multiply(signs, w) >= 0]
        limits += [sum(cp.norm(w[groups == g]) for g in free) <= bound] + [w[j] == 0 for j in exclude]
        problem = cp.Problem(cp.Maximize(slope @ w), limits)
        problem.solve(solver="CLARABEL")
        assert_allclose(found.strengths[0], problem.value, rtol=1e-5)


def test_signed_values_are_those_of_nonnegative_least_squares():
    X, Y = both(5)
    everything = {"cardinality": (P, 1), "method": "generalized"}
    found = flat.sparse_cca(X, Y, x_nonnegative=True, y_include=[2], **everything)
    x, y = (centered(Z) / Z.std(axis=0) for Z in (X, Y[:, 2]))
    w, v = (
        max((nnls(x, s * y)[0] for s in (1, -1)), key=lambda w: np.linalg.norm(x @ w)),
        found.loadings_x[:, 0],
    )
    assert_allclose(v, w / np.linalg.norm(w), atol=1e-7)


def test_a_start_of_the_wrong_sign_is_turned(monkeypatch):
    monkeypatch.setattr("spcacore.generalized.cca_alternation.pair_starts", lambda *_: [-np.ones(2)])
    x = normal(0, 20, 2)
    found = sparse_cca(
        x + x.sum(1)[:, None], x, l1_bound=1.2, choice=(spcacore.Choice(signs=1), spcacore.Choice(signs=1))
    )
    assert found.strengths[0] > 0.5


def test_signs_of_columns_that_are_equal(rng):
    """Any of them does as well; the other side is then the best regression on two of its variables."""
    z = rng.standard_normal(30)
    Y = np.column_stack([z + rng.standard_normal(30), rng.standard_normal((30, 3))])
    signed = spcacore.Choice(signs=np.ones(20, int)), None
    found = sparse_cca(np.tile(z[:, None], 20), Y, 1, cardinality=2, ridge=(0.1, 0), choice=signed)
    own, Z = centered(z), centered(Y)
    left = [np.linalg.lstsq(Z[:, S], own)[1][0] for S in combinations(range(4), 2)]
    assert_allclose(found.correlations, np.sqrt(1 - min(left) / (own @ own)))


def test_signs_that_no_pair_has():
    x = np.arange(10.0)[:, None]
    with pytest.warns(RuntimeWarning, match="nothing in common"):
        found = sparse_cca(x, -x, l1_bound=1, choice=(spcacore.Choice(signs=1), spcacore.Choice(signs=1)))
    assert found.n_components == 0
