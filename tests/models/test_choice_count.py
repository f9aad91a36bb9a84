"""Groups as a whole, where the cardinality counts their variables, against enumeration."""

import itertools
import math

import flat
import numpy as np
import pytest
from in_turn import examples
from known_variables import allowed, assert_feasible, optimum
from models.test_structured import objective
from numpy.testing import assert_allclose

import spcacore
from spcacore.models.elastic_net import elastic_nets
from spcacore.models.net_steps import sparse_net
from spcacore.models.priors import Isotropic, Spectral, chosen_support, log_supports
from spcacore.supports.admissible import Supports

pytestmark = pytest.mark.usefixtures("few_starts")

GROUPS = np.array([0, 0, 0, 1, 1, 2, 2, 3, 4, 4])
P = len(GROUPS)
SIGNS = np.array([1, 1, -1, 0, 1, -1, 0, 1, 1, 1])
COUNTED = {"groups": GROUPS, "count": "variables"}
MIXTURES = [{}, {"include": [3]}, {"exclude": [7]}, {"include": [9], "exclude": [0, 1, 2]}]


def full_sets(k, **mixture):
    """Sets of whole groups of at most k variables, to which no group can be added."""
    return [list(S) for S, _ in allowed(k, full=True, **COUNTED, **mixture)]


def covariance(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((30, P)) @ (np.eye(P) + 0.4 * rng.standard_normal((P, P)))
    return np.cov(X, rowvar=False)


def test_a_group_without_room_that_is_alone():
    """Each start in the large group leads nowhere else."""
    A = np.diag([9.0, 9, 9, 1, 1, 2, 2, 3, 1, 1])
    A[:3, :3] += 1
    for method in (spcacore.tpower, spcacore.branch_and_bound):
        x = method(A, 2, kind="covariance", choice=spcacore.Choice(groups=GROUPS, count="variables"))
        assert x.value == pytest.approx(3)
        assert_feasible(x.loading, 2, **COUNTED)
    x = spcacore.tpower(
        A,
        2,
        kind="covariance",
        options=spcacore.TPower(n_starts=1, swaps=False),
        choice=spcacore.Choice(groups=GROUPS, count="variables"),
    )
    assert x.value > 0
    assert_feasible(x.loading, 2, **COUNTED)


@pytest.mark.parametrize("room", [1, 7, 40, 90, 400])
def test_the_largest_norms_of_many_groups(room):
    """By the best value of each room, also where an exact search would take long."""
    rng = np.random.default_rng(room)
    size = rng.integers(1, 9, 60)
    choice = Supports.checked(size.sum(), None, groups=np.repeat(np.arange(60), size), count="variables")
    norms, best = choice.norms(rng.standard_normal(size.sum())), np.zeros(room + 1)
    for value, m in zip(norms**2, size, strict=True):
        best[m:] = np.maximum(best[m:], best[: max(room + 1 - m, 0)] + value)
    kept = choice.largest(norms, room)
    assert size[kept].sum() <= room
    assert (norms[kept] ** 2).sum() == pytest.approx(best[-1])


def test_the_fewest_variables_of_whole_groups():
    for seed in range(examples(8)):
        A = covariance(40 + seed)
        enough = 0.6 * np.linalg.eigvalsh(A)[-1]
        k = next(k for k in range(1, P + 1) if optimum(A, k, **COUNTED) >= enough)
        options = {"kind": "covariance", "method": "branch_and_bound", **COUNTED}
        result = flat.sparse_pca(A, 1, explained=0.6, **options)
        assert_feasible(result.loadings[:, 0], k, **COUNTED)
        assert_allclose(result.explained_variance[0], optimum(A, k, **COUNTED), rtol=1e-9)


# ---- components with a prior


@pytest.mark.share(16)
@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("kind", ["isotropic", "dense"])
def test_supports_under_a_prior_have_room(mixture, kind):
    rng, ratios, searched = np.random.default_rng(0), [], 0
    for _ in range(60):
        Z, r, a = rng.standard_normal((P, P)), 3 * rng.standard_normal(P), float(np.exp(rng.uniform(-2, 2)))
        L = np.eye(P) if kind == "isotropic" else Z @ Z.T / P + 0.1 * np.eye(P)
        prior = Isotropic(np.ones(P)) if kind == "isotropic" else Spectral.of(L)
        choice = Supports.checked(
            P, None, mixture.get("include"), mixture.get("exclude"), GROUPS, None, "variables"
        )
        k = int(rng.integers(4, 8))
        values = {tuple(S): objective(S, r, a * np.eye(P) + L) for S in full_sets(k, **mixture)}
        found = values[tuple(chosen_support(prior, choice.within(k), r, a))]
        best, worst = max(values.values()), min(values.values())
        ratios.append((found - worst) / (best - worst) if best > worst else 1)
        searched += len(values) > 1
    assert searched > 40  # where there is a choice
    assert np.mean(np.array(ratios) > 1 - 1e-9) >= (0.97 if kind == "isotropic" else 0.9)
    assert np.mean(ratios) >= 0.95


def test_supports_of_equal_size():
    rng = np.random.default_rng(1)
    choice = Supports.checked(P, None, [3], None, GROUPS, None, "variables")
    S = np.flatnonzero(np.isin(GROUPS, [1, 3, 2, 0]))
    sizes = [3, 2, 1, 2]  # of the groups that are not included
    ways = sum(sum(way) == 6 for n in range(5) for way in itertools.combinations(sizes, n))
    assert ways == 2
    assert log_supports(choice, S, 8) == pytest.approx(np.log(ways))
    unit = rng.permutation(np.repeat(np.arange(300), 3))
    choice = Supports.checked(900, None, None, None, unit, None, "variables")
    groups = Supports.checked(900, None, None, None, unit, None)
    S = np.flatnonzero(unit < 50)
    assert log_supports(choice, S, 150) == pytest.approx(log_supports(groups, S, 50))
    assert log_supports(groups, S, 50) == pytest.approx(np.log(float(math.comb(300, 50))))


# ---- elastic nets


@pytest.mark.parametrize("mixture", [*MIXTURES, {"nonnegative": SIGNS}])
def test_thresholds_keep_what_is_largest_and_has_room(mixture):
    """With an infinite ridge b is the best of its cardinality, given the direction that it gives."""
    signs, known = mixture.get("nonnegative"), {k: v for k, v in mixture.items() if k != "nonnegative"}
    for seed in range(6):
        A, out = covariance(70 + seed), mixture.get("exclude", [])
        A[out] = A[:, out] = 0
        k = 4 + seed % 3
        result = flat.spca(
            A, 1, cardinality=k, refine=False, kind="covariance", tol=1e-12, **COUNTED, **mixture
        )
        x = result.loadings[:, 0]
        assert_feasible(x, k, **COUNTED, **known)
        v = A @ x / np.linalg.norm(A @ x)
        c = A @ v if signs is None else np.where(A @ v * signs < 0, 0, A @ v)
        best = max(np.linalg.norm(c[S]) for S in full_sets(k, **known))
        kept = np.where(x != 0, c, 0)
        assert_allclose(np.linalg.norm(kept), best, rtol=1e-9)
        assert_allclose(x, kept / np.linalg.norm(kept), atol=1e-7)
        if signs is None:  # what is maximized is x'AAx
            values = [np.linalg.eigvalsh((A @ A)[np.ix_(S, S)])[-1] for S in full_sets(k, **known)]
            assert 0.9 * max(values) <= x @ A @ A @ x <= max(values) * (1 + 1e-9)


@pytest.mark.share(2)
@pytest.mark.parametrize("mixture", [*MIXTURES, {"nonnegative": SIGNS}])
def test_an_elastic_net_has_room_and_is_solved(mixture):
    """Of those groups that are in; and no other one has room, unless nothing is left to explain."""
    signs, known = mixture.get("nonnegative"), {k: v for k, v in mixture.items() if k != "nonnegative"}
    included = np.isin(GROUPS, GROUPS[list(mixture.get("include", ()))])
    size, full = np.bincount(GROUPS), 0
    for seed in range(12):
        rng, A, k = np.random.default_rng(seed), covariance(80 + seed), 4 + seed % 4
        choice = Supports.checked(
            P, None, mixture.get("include"), mixture.get("exclude"), GROUPS,
            signs, "variables",
        )  # fmt: skip
        kept = choice.available
        K, c = A[np.ix_(kept, kept)] + 1e-3 * np.eye(len(kept)), rng.standard_normal(len(kept))
        b = np.zeros(P)
        b[kept], level = sparse_net(choice.on(kept), K, c, k, np.zeros(len(kept)), 0.0)
        assert_feasible(b / np.linalg.norm(b), k, **COUNTED, **known)
        assert signs is None or (b * signs >= 0).all()
        used = np.unique(GROUPS[(b != 0) | included])
        r = np.zeros(P)
        r[kept] = c - K @ b[kept]
        for g in used:
            own = np.flatnonzero(g == GROUPS)
            norm = np.linalg.norm(b[own])
            slope = r[own] - (0 if included[own[0]] or norm == 0 else level * b[own] / norm)
            if signs is not None:  # at zero the sign may not change
                slope = np.where((b[own] == 0) & (slope * signs[own] < 0), 0, slope)
            assert_allclose(slope, 0, atol=1e-6)
        room = k - size[used].sum()
        others = [g for g in np.unique(GROUPS[kept]) if g not in used and size[g] <= room]
        full += not others
        if level == 0:
            assert not others or signs is not None
    assert full >= 9


def test_a_group_without_room_is_passed_over():
    """The first group has the largest product, and four variables."""
    A = np.diag([9.0, 9, 9, 9, 4, 4, 1])
    A[:4, :4] += 5
    groups = [0, 0, 0, 0, 1, 1, 2]
    for ridge in (0.1, np.inf):
        choice = spcacore.Choice(groups=groups, count="variables")
        options = {"ridge": ridge, "kind": "covariance", "choice": choice}
        with pytest.warns(RuntimeWarning, match="not converged in 1 iteration"):
            result = elastic_nets(A, 1, 3, start=np.ones((7, 1)), refine=False, max_iter=1, **options)
        x = result.loadings[:, 0]
        assert np.flatnonzero(x).tolist() == [4, 5, 6]
    with pytest.raises(ValueError, match="says what a cardinality counts; leave it out with a penalty"):
        spcacore.spca(A, 1, penalty=1.0, **options)


@pytest.mark.parametrize("method", [spcacore.branch_and_bound, spcacore.tpower, spcacore.dspca])
def test_where_no_group_that_fits_has_variance(method):
    """Of one variable there is only the group of the last, whose variance is 0: no half of another."""
    A = np.zeros((5, 5))
    A[np.ix_([0, 1, 3], [0, 1, 3])] = [[4, 2, 2], [2, 2, 1], [2, 1, 1]]
    choice = spcacore.Choice(groups=[0, 0, 2, 2, 1], count="variables")
    with pytest.warns(RuntimeWarning):
        found = method(A, 1, choice=choice, kind="covariance")
    assert np.flatnonzero(found.loading).tolist() == [4]
    assert found.value == 0
