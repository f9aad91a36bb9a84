"""Joint refinement against the published best, enumeration and its own promises."""

import warnings
from dataclasses import replace

import flat
import numpy as np
import pytest
from calls import pca
from hypothesis import strategies as st
from in_turn import SEEDS, each_kind, examples, of_examples
from numpy.testing import assert_allclose, assert_array_equal
from oracles import best_quotient, covariance, data_arrays, largest_on, normal, optimum, spanned_variance
from scipy.optimize import minimize
from starts import few

import spcacore
from spcacore import refine, sparse_pca, sparsity_path
from spcacore.models import alternation
from spcacore.models.joint_search import in_places
from spcacore.selection import plans

PITPROPS = spcacore.datasets.load_pitprops().correlation


def autoregressive(p, rng):
    A = 0.9 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    return A * np.outer(*[1 + 0.3 * rng.random(p)] * 2)


def walks(p, rng):
    return np.cov(np.cumsum(rng.standard_normal((p // 2 + 5, p)), axis=1), rowvar=False)


def factors(p, rng):
    L = rng.standard_normal((p, 4)) * 10.0 ** (1.5 * rng.random((p, 1)))
    return np.cov(rng.standard_normal((3 * p, 4)) @ L.T + rng.standard_normal((3 * p, p)), rowvar=False)


MATRICES = {
    "pit props": lambda: PITPROPS,
    "communities": lambda: data_arrays("uci_correlations.npz")["communities"],
    "drosophila": lambda: np.corrcoef(data_arrays("drosophila_atlas.npz")["X"].astype(float).T),
    "stocks": lambda: data_arrays("snp500_correlation.npz")["A"],
    "autoregressive": lambda: autoregressive(100, np.random.default_rng(0)),
    "walks": lambda: walks(14, np.random.default_rng(0)),
}


# The best known, from hundreds of restarts and generations of many starts, and the share of it that is
# reached: of pit props on average over orders of the variables, of which one is lucky and another .7 % short.
# Of stocks .1113 of the trace was published, with nearly orthogonal loadings. Rounds in turn from several
# starts come to 24.46 (autoregressive), where penalties alone come to 22.25, and to 119.18 (walks), where
# they come to 116.26.
@pytest.mark.share(9)
@pytest.mark.parametrize(
    ("matrix", "rule", "r", "k", "best", "reached"),
    [
        ("pit props", "generalized", 4, 3, 8.3459, 0.9999),
        ("pit props", "generalized", 3, 4, 7.3364, 0.9998),
        ("pit props", "generalized", 3, 5, 7.8962, 0.9998),
        ("pit props", "generalized", 4, 4, 8.9978, 0.9998),
        pytest.param("pit props", "generalized", 6, 3, 10.9316, 0.9998, marks=pytest.mark.slow),
        ("communities", "generalized", 6, 10, 45.5902, 0.995),
        ("drosophila", "generalized", 4, 5, 15.3464, 0.998),
        ("drosophila", "generalized", 6, 5, 21.9502, 0.997),
        ("pit props", "orthogonal", 6, 4, 10.7471, 0.996),
        ("pit props", "orthogonal", 6, 5, 11.0331, 0.995),
        ("pit props", "orthogonal", 3, 10, 8.4695, 1),
        ("walks", "orthogonal", 3, 4, 119.18, 0.9999),
        pytest.param("stocks", "orthogonal", 4, 30, 30.4138, 0.9999, marks=pytest.mark.slow),
        ("autoregressive", "uncorrelated", 3, 8, 24.7942, 0.99),
    ],
)
def test_near_the_best_known(matrix, rule, r, k, best, reached):
    A, values = MATRICES[matrix](), []
    for seed in range(examples(4) if matrix == "pit props" else 1):
        order = np.random.default_rng(seed).permutation(len(A)) if matrix == "pit props" else range(len(A))
        B = A[np.ix_(order, order)]
        V = sparse_pca(B, r, k, kind="covariance", refine=True, deflation=rule).loadings
        values.append(spanned_variance(B, V) if rule == "generalized" else np.trace(V.T @ B @ V))
        assert (np.count_nonzero(V, axis=0) <= k).all()
        if rule != "generalized":
            C = V.T @ V if rule == "orthogonal" else V.T @ B @ V / np.trace(B)
            assert np.abs(np.triu(C, 1)).max() < 1e-10
    assert reached * best <= np.mean(values) <= max(values) <= best * 1.002


def test_a_path_does_not_fall_where_refinement_did(monkeypatch):
    """Loadings of fewer variables, refined, are a start for those of more."""
    refine_all, calls = plans.refine_all, []

    def worse(problem, found, request, *args, **options):
        calls.append(request.cardinality)
        if len(calls) > 2:
            return refine_all(problem, found, request, *args, **options)
        lowest = [
            replace(x, index=np.arange(4) + 4 * t, entries=np.full(4, 0.5)) for t, x in enumerate(found)
        ]
        return lowest if request.cardinality == (4, 4) else found

    for module in (alternation, plans):
        monkeypatch.setattr(module, "refine_all", worse)
    path = sparsity_path(PITPROPS, pca(2, kind="covariance", refine=True), [3, 4])
    assert calls == [(4, 4), (3, 3), (4, 4)]
    sparser, denser = (spanned_variance(PITPROPS, x.loadings) for x in path.results)
    assert denser >= sparser


def test_restarts_of_sparse_pca():
    options = {"kind": "covariance", "method": spcacore.TPower(rng=1)}
    once, again = (sparse_pca(PITPROPS, 3, 4, refine=attempts, **options) for attempts in (True, 3))
    V = sparse_pca(PITPROPS, 3, cardinality=4, kind="covariance", method=spcacore.TPower(rng=1)).loadings
    assert_array_equal(again.loadings, refine(PITPROPS, V, kind="covariance", n_restarts=2, rng=1))
    assert again.explained_variance.sum() >= once.explained_variance.sum() * (1 - 1e-12)


def test_no_better_values_on_the_supports_it_returns():
    """On fixed supports a general optimizer finds nothing above."""
    X = normal(3, 20, 10) @ normal(4, 10, 10)
    A = covariance(X)
    W = refine(X, sparse_pca(X, 3, cardinality=4).loadings)
    used = W != 0

    def loss(values):
        V = np.zeros(W.shape)
        V[used] = values
        return -spanned_variance(A, V)

    assert minimize(loss, W[used], method="BFGS").fun >= -spanned_variance(A, W) * (1 + 1e-5)


@pytest.mark.parametrize(
    "method", [{}, {"method": "thresholding"}, {"method": "greedy", "strategy": "gradient"}]
)
def test_one_component_is_refined_to_the_best(method):
    """Of a search that misses some, by enumeration."""
    options = method or {"start": "diagonal", "swaps": False}
    missed = 0
    for seed in range(12):
        A = covariance(normal(seed, 8, 11))
        best = optimum(A, 4)
        before, after = (
            flat.sparse_pca(A, 1, cardinality=4, kind="covariance", refine=wanted, **options)
            for wanted in (False, True)
        )
        missed += before.explained_variance[0] < best * (1 - 1e-9)
        assert after.explained_variance[0] == pytest.approx(best, rel=1e-9)
    assert missed


@pytest.mark.filterwarnings("ignore:refinement not converged")
@of_examples(
    20,
    seed=SEEDS,
    p=st.integers(4, 7),
    k=st.integers(2, 4),
    start=st.sampled_from(["any", "near", "orthogonal"]),
)
@few()
def test_no_round_lowers_the_variance(seed, p, k, start):
    """From loadings that are nearly dependent, too."""
    rng = np.random.default_rng(seed)
    A = covariance(rng.standard_normal((9, p)) * 2.0 ** rng.integers(-2, 3, p))
    rule = "orthogonal" if start == "orthogonal" else None
    V = sparse_pca(A, 2, cardinality=k, kind="covariance", deflation=rule).loadings.copy()
    if start != "orthogonal":
        V[:, 1] = V[:, 0] + 1e-4 * V[:, 1] if start == "near" else np.roll(V[:, 1], 1)
    seen = []
    W = refine(
        A, V, kind="covariance", constraint=rule, n_restarts=0, max_iter=20,
        callback=lambda progress: seen.append(progress.value),
    )  # fmt: skip
    given, least = spanned_variance(A, V), 1 - (1e-6 if start == "near" else 1e-9)
    assert spanned_variance(A, W) >= max([given, *seen]) * least
    assert all(later >= earlier * least for earlier, later in zip([given, *seen], seen, strict=False))


@pytest.mark.filterwarnings("ignore:component 1 not converged")
@pytest.mark.parametrize("rule", ["orthogonal", pytest.param("uncorrelated", marks=pytest.mark.slow)])
def test_a_constraint_costs_nothing_of_what_loadings_in_turn_explain(rule):
    for seed in {*range(examples(15) - 1), 31}:
        rng = np.random.default_rng(seed)
        p, r, k = [(14, 3, 4), (30, 2, 5), (24, 3, 5), (100, 3, 8)][seed % 4]
        A = (autoregressive, walks, factors)[seed % 3](p, rng)
        turn, V = (
            sparse_pca(A, r, k, kind="covariance", refine=refined, deflation=rule).loadings
            for refined in (False, True)
        )
        C = np.eye(p) if rule == "orthogonal" else A
        assert np.abs(np.triu(V.T @ C @ V, 1)).max() < 1e-9 * np.abs(C).max()
        assert np.trace(V.T @ A @ V) >= np.trace(turn.T @ A @ turn) * (1 - 1e-12)


@pytest.mark.parametrize("constraint", ["generalized", pytest.param("orthogonal", marks=pytest.mark.slow)])
def test_certified_and_extended(constraint):
    """The bound of each component is the best given those before it, among all supports."""
    proved, count = 0, examples(20)
    for seed in range(count):
        rng = np.random.default_rng(seed)
        A = covariance(rng.standard_normal((12, 7)) * 2.0 ** rng.integers(-1, 2, 7))
        result = sparse_pca(
            A, 3, cardinality=2, kind="covariance", deflation=constraint, refine=True, certify=True
        )
        V = result.loadings
        best = np.array([best_quotient(A, np.linalg.qr(V[:, :t])[0], 2) for t in range(3)])
        assert_allclose(result.upper_bound, best, rtol=1e-12)
        assert_allclose(result.gap, 1 - result.explained_variance / best, atol=1e-12)
        proved += np.count_nonzero(result.gap == 0)
    assert proved >= 0.75 * count
    with pytest.raises(ValueError, match="all of them at once"):
        result.extend(PITPROPS, 1)


def test_certified_loadings_nearly_in_the_span_of_others(monkeypatch):
    """Of two variables, whose plane any two loadings explain whole."""
    x, y = np.array([0.6, 0.8]), np.array([0.6, 0.8]) + 1e-5 * np.array([0.8, -0.6])
    both = [(np.arange(2), v / np.linalg.norm(v)) for v in (x, y)]
    monkeypatch.setattr("spcacore.models.alternation.refined", lambda *_: (both, True))
    A = np.array([[1.0, 0.25], [0.25, 0.5]])
    result = sparse_pca(A, 2, cardinality=2, kind="covariance", refine=True, certify=True)
    assert_allclose(result.explained_variance, [x @ A @ x, 1.5 - x @ A @ x], rtol=1e-4)
    assert_allclose(1 - result.explained_variance / result.upper_bound, result.gap, atol=1e-6)
    assert result.gap[1] < 1e-6


@pytest.mark.share(3)
@pytest.mark.parametrize("call", ["refine", "sparse_pca", "sparsity_path"])
def test_who_is_told_that_it_did_not_end(call, monkeypatch):
    monkeypatch.setattr("spcacore.models.alternation.REFINEMENT_ROUNDS", 1)
    X = normal(4, 15, 8)
    V = sparse_pca(X, 4, cardinality=2).loadings
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if call == "refine":
            refine(X, V, max_iter=1)
        elif call == "sparse_pca":
            assert not sparse_pca(X, 4, cardinality=2, refine=True).converged.any()
        else:
            path = spcacore.sparsity_path(X, pca(4, refine=True), [2])
            assert not path[0].converged.any()
    rounds = "refinement not converged in 1 rounds" if call == "refine" else "not converged"
    assert len(caught) == 1
    assert rounds in str(caught[0].message)
    assert caught[0].filename == __file__


def test_callback_ends_it():
    V = sparse_pca(PITPROPS, 6, cardinality=4, kind="covariance").loadings
    seen = []

    def enough(progress):
        seen.append(progress.value)
        if len(seen) == 2:
            raise StopIteration

    W = refine(PITPROPS, V, kind="covariance", callback=enough)
    assert spanned_variance(PITPROPS, W) == pytest.approx(max(seen), rel=1e-6)

    seen.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        sparse_pca(
            PITPROPS, 3, cardinality=4, kind="covariance", refine=True, callback=lambda p: seen.append(p)
        )
    assert len([p for p in seen if p.value is not None]) > 3  # the rounds besides the components


@pytest.mark.share(4)
@pytest.mark.parametrize("constraint", [None, "orthogonal"])
@pytest.mark.parametrize("n_restarts", [0, 1, 3])
@few()
def test_attempts(n_restarts, constraint):
    """As many as asked for, and a callback is told which; the best of all is returned."""
    V = sparse_pca(PITPROPS, 3, cardinality=4, kind="covariance", deflation=constraint).loadings
    seen = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        W = refine(
            PITPROPS, V, kind="covariance", constraint=constraint, n_restarts=n_restarts, max_iter=3,
            callback=seen.append,
        )  # fmt: skip
    assert sorted({p.component for p in seen}) == list(range(n_restarts + 1))
    assert {p.n_components for p in seen} == {n_restarts + 1}
    assert spanned_variance(PITPROPS, W) >= max(p.value for p in seen) * (1 - 1e-9)


@few()
def test_more_nonzeros_than_variables_that_vary():
    """Of eight variables three are constant, of five nonzeros and more none is one of these."""
    X = normal(1, 20, 8)
    X[:, [0, 3, 7]] = 2.0
    A = covariance(X)
    best = np.linalg.eigvalsh(A)[::-1][:2].sum()
    for k in (5, 6, 8):
        for V in (np.eye(8)[:, [1, 2]], np.eye(8)[:, [0, 3]]):
            W = refine(X, V, k)
            assert spanned_variance(A, W) == pytest.approx(best, rel=1e-9)


@each_kind
@few()
def test_variables_join_that_would_enter(kind, monkeypatch, rng):
    """Of many variables the search has some at first: here a few of two groups."""
    monkeypatch.setattr("spcacore.models.joint_search.TOGETHER_ORDER", 12)
    X = rng.standard_normal((200, 60))
    X[:, :20] += np.repeat(rng.standard_normal((200, 2)), 10, axis=1)
    A = covariance(X)
    V = np.zeros((60, 2))
    V[:4, 0] = V[10:14, 1] = 0.5
    W = refine(A if kind == "covariance" else X, V, 10, kind=kind)
    groups = [range(10), range(10, 20)]
    assert sorted(map(tuple, (np.flatnonzero(w) for w in W.T))) == [tuple(group) for group in groups]
    tops = [largest_on(A, group) for group in groups]
    assert spanned_variance(A, W) == pytest.approx(sum(tops), rel=1e-9)


def test_loadings_without_variance_end():
    """Orthogonal ones are found by penalties that grow from a share of the variance: here from zero."""
    X, V = np.ones((8, 5)), np.eye(5)[:, :2]
    found = refine(X, V, constraint="orthogonal")
    assert_allclose(found.T @ found, np.eye(2), atol=1e-12)


@pytest.mark.share(3)
@pytest.mark.parametrize(("seed", "twice"), [(4, False), (9, False), (1, True), (2, True), (4, True)])
def test_last_bits_decide_nothing(twice, rng):
    """Of a search of many steps: rows in another order, and the last bit of each entry, up or down.

    Of columns that are there twice, last bits say which is the larger.
    """
    p = int(rng.integers(10, 60 if twice else 150))
    X = rng.standard_normal((80, 8)) @ rng.standard_normal((8, p)) + rng.standard_normal((80, p))
    if twice:
        X[:, p // 2 : p // 2 * 2] = X[:, : p // 2]
    found = sparse_pca(X, 3, 5, refine=True)
    for _ in range(examples(6)):
        Y = np.nextafter(X, np.where(rng.random(X.shape) < 0.5, np.inf, -np.inf))[rng.permutation(80)]
        again = sparse_pca(Y, 3, 5, refine=True)
        assert np.array_equal(again.loadings != 0, found.loadings != 0)
        assert_allclose(again.explained_variance, found.explained_variance, rtol=1e-8)


@pytest.mark.parametrize("rule", ["orthogonal", "uncorrelated"])
def test_cardinalities_above_the_number_of_variables_that_vary(rule):
    """Two components of all variables, of which one is constant: the two leading eigenvectors."""
    for seed in range(3):
        X = normal(seed, 10, 6)
        X[:, 0] = 3
        result = sparse_pca(X, 2, 6, refine=True, deflation=rule)
        most = np.linalg.eigvalsh(covariance(X))[-2:].sum()
        assert_allclose(result.explained_variance.sum(), most, rtol=1e-3)


def test_as_many_loadings_as_variables_of_which_one_is_constant():
    """A loading that adds nothing to the others: no quotient of zeros."""
    for seed in range(8, 12):
        X = normal(seed, 8, 4)
        X[:, 2] = 3
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", "no variance is left|found only")
            result = sparse_pca(X, 4, refine=True)
        assert result.explained_variance.sum() <= result.total_variance * (1 + 1e-12)


@pytest.mark.slow
def test_counts_of_starts_are_of_the_components_they_led_to():
    """Refined components whose variables changed come from no single search; proofs change none."""
    plain, refined, proved = (
        sparse_pca(PITPROPS, 4, 5, kind="covariance", **options)
        for options in ({}, {"refine": True}, {"refine": True, "certify": True})
    )
    changed = ((plain.loadings != 0) != (refined.loadings != 0)).any(axis=0)
    assert changed.any()
    expected = np.where(changed, 1, [plain.n_starts, plain.n_ends, plain.n_best])
    assert_array_equal([refined.n_starts, refined.n_ends, refined.n_best], expected)
    assert_array_equal(proved.loadings, refined.loadings)


@pytest.mark.parametrize("r", [2, 3])
def test_loadings_of_all_variables_are_those_of_pca(r):
    """What they explain together leaves the basis of their span open: rounding must not choose it."""
    for seed in range(3):
        A = covariance(normal(seed, 9, 3))
        V = np.linalg.eigh(A)[1][:, ::-1][:, :r]
        for found in (
            sparse_pca(A, r, 3, refine=True, kind="covariance").loadings, refine(A, V, kind="covariance"),
            spcacore.spca(A, r, 3, kind="covariance").loadings,
        ):  # fmt: skip
            assert_allclose(np.abs((found * V).sum(axis=0)), 1, rtol=1e-7)


def test_components_of_equal_variance_keep_their_order():
    assert in_places([1, 1 + 1e-12, 1e-6], [2, 2, 2]) == [0, 1, 2]
    assert in_places([1, 3, 2, 5], [2, 4, 2, 4]) == [2, 3, 0, 1]
