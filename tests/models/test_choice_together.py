"""What is known of the variables in several components, certificates, elastic nets and estimators."""

import itertools
import warnings
from functools import partial
from pathlib import Path

import flat
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from extras import skipping
from in_turn import examples
from known_variables import (
    EACH,
    LABELS,
    MIXED,
    P,
    allowed,
    components,
    convex,
    covariance,
    data,
    optimum,
    supports_of,
)
from numpy.testing import assert_allclose
from oracles import normal

import spcacore
from spcacore import _core, sparse_pca
from spcacore.models.net_steps import Thresholds, Wanted

pytestmark = pytest.mark.usefixtures("few_starts")

# ---- several components, paths, resamples


def test_refined_loadings_of_given_signs_are_nearly_the_best():
    """Of two loadings of two variables each, by a grid of their directions."""
    angles = np.linspace(0, np.pi / 2, 31)
    for seed in range(3):
        A = covariance(90 + seed, 6)
        columns = []
        for i, j in itertools.combinations(range(6), 2):
            x = np.zeros((31, 6))
            x[:, i], x[:, j] = np.cos(angles), np.sin(angles)
            columns.append(x)
        V = np.unique(np.concatenate(columns).round(12), axis=0)
        G, H = V @ A @ V.T, V @ V.T
        rest = 1 - H**2
        with np.errstate(divide="ignore", invalid="ignore"):
            both = (G.diagonal()[:, None] + G.diagonal() - 2 * G * H) / rest
        best = both[rest > 1e-6].max()
        found = sparse_pca(
            A, 2, cardinality=2, kind="covariance", refine=True, choice=spcacore.Choice(signs=1)
        )
        assert found.explained_variance.sum() >= 0.998 * best
        assert (found.loadings >= 0).all()


def test_rounds_of_loadings_of_given_signs_end():
    """Though they near each other, which explains ever more; a callback is asked on the way."""
    X, rounds = normal(3, 17, 8), []
    signs = np.array([1, 1, -1, 1, 0, 1, -1, 1])
    choice = spcacore.Choice(signs=signs)
    begun = sparse_pca(X, 3, cardinality=4, choice=choice)
    found = sparse_pca(X, 3, cardinality=4, refine=True, choice=choice, callback=rounds.append)
    assert 3 < len(rounds) < 60
    assert found.explained_variance.sum() > 1.05 * begun.explained_variance.sum()
    assert (found.loadings * signs[:, None] >= 0).all()


def test_refinement_makes_wrong_signs_zero():
    A, choice = covariance(12), spcacore.Choice(signs=1)
    free = sparse_pca(A, 2, cardinality=5, kind="covariance").loadings  # explain more than can be reached
    assert (free.min(axis=0) < 0).all()
    V, turned = (spcacore.refine(A, U, kind="covariance", choice=choice) for U in (free, -free))
    for W in (V, turned):
        assert (W >= 0).all()
        assert_allclose(np.linalg.norm(W, axis=0), 1)
        assert W[:, 0] @ W[:, 1] < 1 - 1e-3  # not nearly the same loading twice
    variances = [spcacore.explained_variance(A, W, kind="covariance").sum() for W in (V, turned)]
    assert variances[0] == pytest.approx(variances[1], rel=1e-3)


@pytest.mark.share(3)
@pytest.mark.parametrize("known", [{}, {"groups": [0, 0, 1, 1, 2, 2, 3, 3]}, {"include": [2]}])
def test_refined_orthogonal_loadings(known):
    """Beside all pairs of supports: the best loading on one, and the best orthogonal to it on the other."""
    shares = []
    for seed in range(examples(6)):
        A = np.cov(normal(seed, 12, 8), rowvar=False)
        unit, k = np.array(known.get("groups", range(8))), 2 if "groups" in known else 3
        supports = [[*S] for S, _ in allowed(k, p=8, full=True, **known)]
        best = 0.0
        for S, T in itertools.product(supports, repeat=2):
            first, V = np.linalg.eigh(A[np.ix_(S, S)])
            x = np.zeros(8)
            x[S] = V[:, -1]
            N = scipy.linalg.null_space(x[None, T])
            best = max(best, first[-1] + np.linalg.eigvalsh(N.T @ A[np.ix_(T, T)] @ N)[-1])
        found = sparse_pca(
            A, 2, k, kind="covariance", deflation="orthogonal", refine=True, choice=spcacore.Choice(**known)
        )
        V = found.loadings
        assert abs(V[:, 0] @ V[:, 1]) < 1e-9
        assert V[known.get("include", [])].any(axis=1).all()  # one may be zero there, if they share no other
        for v in V.T:
            assert len(np.unique(unit[np.flatnonzero(v)])) <= k
        shares.append(np.trace(V.T @ A @ V) / best)
    assert min(shares) > 0.9
    assert np.mean(shares) > 0.98
    with pytest.raises(ValueError, match="signs"):
        spcacore.refine(A, V, kind="covariance", constraint="orthogonal", choice=spcacore.Choice(signs=1))


def test_a_bound_counts_what_is_included_though_it_is_zero():
    """Thresholding is rarely the best, so that the bound is not just what was found."""
    for seed in range(examples(60)):
        A, j = np.cov(normal(seed, 6, 12)), seed % 6
        A[j] = A[:, j] = 0
        A[j, j] = 0.1
        for k, groups in ((2, None), (3, None), (2, np.array([0, 0, 1, 2, 3, 3]))):
            known = {"include": [j], "groups": groups}
            result = components(A, "thresholding", cardinality=k, certify=True, **known)
            assert optimum(A, k, **known) <= result.upper_bound[0] * (1 + 1e-9)


def test_certificates_know_of_signs_and_of_what_is_included():
    A = np.full((6, 6), -0.15) + np.diag([1.15, 1.15, 1.15, 1.15, 1.15, 4])
    options = {"cardinality": 3, "kind": "covariance", "certify": True, "exclude": [5]}
    positive = flat.sparse_pca(A, 1, nonnegative=np.ones(6), **options)
    assert_allclose(positive.upper_bound[0], 1)  # no two variables go together
    assert flat.sparse_pca(A, 1, **options).upper_bound[0] > 1.1
    given = flat.sparse_pca(A, 1, include=[0, 1, 2], **(options | {"exclude": None}))
    assert_allclose(given.upper_bound[0], 1.15)
    assert_allclose(given.explained_variance[0], 1.15)


def test_a_share_takes_as_many_variables_as_it_needs_beside_what_is_included():
    A = np.diag([10.0, 1, 1, 1, 1])
    A[0, 1] = A[1, 0] = 0.1
    x = sparse_pca(
        A, 1, kind="covariance", cardinality=spcacore.Explained(0.9), choice=spcacore.Choice(include=[1])
    )
    assert np.flatnonzero(x.loadings[:, 0]).tolist() == [0, 1]


def _spca_of_few(X, r=2, **options):
    with warnings.catch_warnings(action="ignore"):
        return flat.spca(X, r, ridge=3.0, tol=0, **options)


@pytest.mark.parametrize("how", [{"penalty": 60.0, "max_iter": 10}, {"cardinality": 3, "max_iter": 2}])
@pytest.mark.parametrize("knowledge", [*EACH, {"groups": LABELS, "include": [8], "nonnegative": MIXED}])
def test_elastic_nets_among_some_variables(how, knowledge, monkeypatch):
    X = data(22, n=12)
    whole = _spca_of_few(X, **how, **knowledge)
    monkeypatch.setattr("spcacore.models.net_steps.WORKING_SET_VARIABLES", 3)
    monkeypatch.setattr("spcacore.models.net_steps.JOINING_VARIABLES", 1)
    assert_allclose(_spca_of_few(X, **how, **knowledge).loadings, whole.loadings, atol=1e-6)


@pytest.mark.parametrize("knowledge", [{"include": [2]}, {"groups": LABELS}, {"nonnegative": MIXED}])
def test_an_elastic_net_is_solved(knowledge):
    cp = pytest.importorskip("cvxpy")
    choice, rng = supports_of(knowledge), np.random.default_rng(4)
    for n, ridge, level in ((20, 1e-6, 0.5), (6, 1e-4, 0.05), (0, 1.0, 0.4)):
        F, c = rng.standard_normal((n, P)), rng.standard_normal(P)
        K, c = F.T @ F / max(n, 1) + ridge * np.eye(P), F.T @ F @ c / n if n else c
        b, start = cp.Variable(P), np.zeros(P)
        found = _core.unit_net(choice.rule(2, level=level), K, c, start)[0]
        assert not start.any()
        if n == 0:  # what an infinite ridge leaves
            found = Thresholds((Wanted(P, level),), choice).solve(c[:, None])[0][:, 0]
        sums, signs = convex(choice, b)
        value = cp.quad_form(b, cp.psd_wrap(K)) - 2 * c @ b + 2 * level * sum(sums)
        cp.Problem(cp.Minimize(value), signs).solve(solver="CLARABEL")
        assert_allclose(found, b.value, atol=2e-4)
        cost = choice.norms(found)[~choice.included].sum()
        assert found @ K @ found - 2 * c @ found + 2 * level * cost <= value.value + 1e-12


@pytest.mark.parametrize("kind", ["spca", "cca"])
def test_estimators_know_variables_by_name(kind):
    """As the function does, which is told of the same variables by their indices."""
    with skipping():
        import pandas as pd

        from spcacore import sklearn as estimators
    X, names = data(19), [f"v{j}" for j in range(P)]
    frame, by_name = pd.DataFrame(X, columns=names), dict(zip(names, LABELS.tolist(), strict=True))
    named = {"include": ["v8"], "exclude": ["v0"], "groups": by_name | {"v0": "none"}}
    known = {"include": [8], "exclude": [0], "groups": [named["groups"][name] for name in names]}
    if kind == "spca":
        found = (
            estimators.SPCA(2, **flat.recorded("SPCA", {**named, "cardinality": 2, "nonnegative": True}))
            .fit(frame)
            .components_
        )
        expected = flat.spca(X, 2, cardinality=2, nonnegative=True, **known).loadings.T
    else:
        x, y = ({f"{side}_{name}": v for name, v in named.items()} for side in "xy")
        model = estimators.SparseCCA(
            **flat.recorded(
                "SparseCCA", {**x, **y, "l1_bound": 1.5, "x_nonnegative": True, "y_nonnegative": MIXED}
            )
        )
        other = frame[::-1].reset_index(drop=True)  # rows are matched by their labels
        model.fit(frame, other)
        x, y = ({f"{side}_{name}": v for name, v in known.items()} for side in "xy")
        pair = flat.sparse_cca(X, X[::-1], l1_bound=1.5, x_nonnegative=True, y_nonnegative=MIXED, **x, **y)
        found = np.vstack((model.components_, model.y_components_))
        expected = np.vstack((pair.loadings_x.T, pair.loadings_y.T))
        with pytest.raises(ValueError, match="groups of Y must have every variable; it lacks 'v0'"):
            estimators.SparseCCA(choice=(None, spcacore.Choice(groups={"v1": 0}))).fit(frame, other)
    assert_allclose(found, expected, rtol=1e-6)  # a frame may lie in another order, by which iterations end


# ---- the table of the guide


def by_choice(function, *arguments, **known):
    return function(*arguments, choice=flat.choice_of(known))


def test_the_table_of_the_guide_says_who_takes_what():
    page = (Path(__file__).parents[2] / "docs/developer/choice.md").read_text()
    rows = page.split("<!-- served -->")[1].split("<!-- end -->")[0].strip().split("\n")
    names = [cell.strip() for cell in rows[0].split("|")[2:-1]]
    given = {"exclude": [3, 4], "include": [0], "groups": [0, 0, 1, 2, 2, 3, 4, 5, 6], "signs": MIXED}
    given |= {"count": "variables"}
    X, A, pair, classes = data(30), covariance(32), (data(30), data(31)[:, :6]), np.arange(30) % 2
    begun = sparse_pca(A, 2, 3, kind="covariance", choice=spcacore.Choice(exclude=[3, 4])).loadings
    calls = {
        "tpower": (flat.tpower, X, 3), "gpower": (flat.gpower, X, 1.0), "pmd": (flat.pmd, X, 1.5),
        "branch_and_bound": (flat.branch_and_bound, X, 3),
        "greedy": (partial(flat.sparse_pca, method="greedy"), X, 1, 3),
        "thresholding": (partial(flat.sparse_pca, method="thresholding"), X, 1, 3),
        "dspca": (flat.dspca, X, 3), "scotlass": (flat.scotlass, X, 1.5),
        "least_squares_component": (flat.least_squares_component, X, 3),
        "optimality_bound": (flat.optimality_bound, X, 3),
        "refine": (partial(flat.refine, kind="covariance", max_iter=1), A, begun),
        "spca": (flat.spca, X, 1, 3), "soppca": (flat.soppca, X, 1, 3),
        "sparse_eigen": (partial(by_choice, spcacore.sparse_eigen), A, np.eye(P), 1, 3),
        "sparse_lda": (partial(by_choice, spcacore.sparse_lda), X, classes, 1, 3),
        'sparse_cca, "pmd"': (partial(flat.sparse_cca, l1_bound=1.5), *pair),
        'sparse_cca, "generalized"': (partial(flat.sparse_cca, method="generalized", cardinality=2), *pair),
    }  # fmt: skip
    said, true = {}, {}
    for row in rows[2:]:
        cells = [cell.strip() for cell in row.split("|")[1:-1]]
        functions = [cells[0].replace("`", "")] if '"' in cells[0] else cells[0].replace("`", "").split(", ")
        for function in functions:
            said |= {(function, name): cell.split()[0] for name, cell in zip(names, cells[1:], strict=True)}
    for function, name in said:
        known = {"nonnegative" if name == "signs" else name: given[name]}
        known |= {"groups": given["groups"]} if name == "count" else {}
        try:
            with warnings.catch_warnings(action="ignore"):
                call, *arguments = calls[function]
                side = "x_" if "cca" in function else ""
                call(*arguments, **{side + word: value for word, value in known.items()})
            true[function, name] = "yes"
        except (TypeError, ValueError) as error:
            refused = any(word in str(error) for word in (name, *known))
            true[function, name] = "no" if refused else str(error)
    assert said == true
    assert {function for function, _ in said} == set(calls)
