"""Resamples against explicit copies of their rows, the fast search against LAPACK."""

import itertools
from functools import partial

import numpy as np
import pytest
from calls import pca
from extras import optional
from numpy.testing import assert_allclose, assert_array_equal
from oracles import ends_at, normal, with_peak

import spcacore
from spcacore.models.variance import nonzeros_of
from spcacore.selection import resampling
from spcacore.selection.resampling import Refit, drawn_weights
from spcacore.selection.stability_result import matched, quantiles, rotated

pytestmark = pytest.mark.usefixtures("few_starts")

pandas = optional("pandas")


def spiked(n=40, p=60, cardinality=6):
    return spcacore.datasets.make_spiked(n, p, cardinality=cardinality, rng=0)


def repeated(w):
    return np.repeat(np.arange(len(w)), w.astype(int))


# ---- resamples


@pytest.mark.parametrize("n", [8, 9])
def test_weights_of_each_scheme(n):
    half = drawn_weights(n, "half", 0, None)
    pairs = drawn_weights(n, "complementary", 0, None)
    bootstrap = drawn_weights(n, "bootstrap", 0, None)
    for i in range(20):
        assert sorted(set(half(i))) == [0, 1]
        assert half(i).sum() == n // 2 == pairs(i).sum()
        assert bootstrap(i).sum() == n
        assert (pairs(i) * pairs(i ^ 1) == 0).all()
    assert (pairs(0) != pairs(2)).any()
    assert (bootstrap(0) != bootstrap(1)).any()


def test_classes_keep_their_sizes():
    labels = np.array([0] * 10 + [1] * 7)
    for scheme, sizes in (("half", [5, 3]), ("complementary", [5, 3]), ("bootstrap", [10, 7])):
        weights = drawn_weights(17, scheme, 3, labels)
        for i in range(6):
            assert [weights(i)[labels == c].sum() for c in (0, 1)] == sizes


MODELS = {
    "sparse_pca": (spcacore.sparse_pca, {"cardinality": 6}),
    "greedy": (spcacore.sparse_pca, {"cardinality": 6, "method": "greedy"}),
    "pmd": (spcacore.sparse_pca, {"method": spcacore.PMD(l1_bound=2.0)}),
    "scaled": (spcacore.sparse_pca, {"cardinality": 6, "scale": True}),
    "share": (spcacore.sparse_pca, {"cardinality": spcacore.Explained(0.8)}),
    "spca": (spcacore.spca, {"cardinality": 6}),
    "sca": (spcacore.sca, {"l1_bound": 4.0}),
    "soppca": (spcacore.soppca, {"cardinality": 6}),
}


@pytest.mark.share(6)
@pytest.mark.parametrize("resampling", ["complementary", "half", "bootstrap"])
@pytest.mark.parametrize("model", MODELS)
def test_frequencies_are_those_of_copies_of_the_rows(model, resampling):
    X, _ = spiked()
    function, options = MODELS[model]
    found = spcacore.stability(
        X,
        partial(function, **options),
        resampling=resampling,
        n_resamples=12,
        warm_start=False,
        rng=5,
    )
    weights = drawn_weights(len(X), resampling, int(np.random.default_rng(5).integers(2**63)), None)
    V = np.array([function(X[repeated(weights(i))], 1, **options).loadings[:, 0] for i in range(12)])
    assert_allclose(found.selection_frequency[:, 0], (V != 0).mean(axis=0))
    V /= np.linalg.norm(V, axis=1, keepdims=True)
    V *= np.where(V @ found.loadings < 0, -1, 1)
    low, high = np.quantile(V, [0.025, 0.975], axis=0)
    tolerance = 1e-6 if function is spcacore.sparse_pca else 2e-3  # of iterations that stop early
    assert_allclose(found.loading_interval[:, 0], np.stack([low, high], axis=1), atol=tolerance)


# ---- the search among candidates


@pytest.mark.share(6)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "treatment", [{}, {"scale": True}, {"center": False}, {"center": False, "scale": True}, {"vector": True}]
)
def test_wide_resamples_are_fixed_points_among_all_variables(monkeypatch, with_limits, treatment, dtype):
    """Supports hold the largest entries of the deflated A x, computed from a copy of the rows."""
    with_limits(resampling, RESAMPLE_CANDIDATES=1)  # so that others must enter
    rng = np.random.default_rng(3)
    n, p, k = 60, 6000, 8
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 1, p) + rng.uniform(0, 0.2, p)
    X[:, :6] += rng.standard_normal((n, 1))  # components that have variables in common
    X[:, 3:9] -= rng.standard_normal((n, 1))
    X = X.astype(dtype)
    if treatment.pop("vector", False):
        treatment = {"center": np.full(p, 0.1), "scale": np.full(p, 2.0)}
    asked = []
    original = resampling.CandidateRefits._let_enter

    def let_enter(self, resamples):
        pending = original(self, resamples)
        asked.append(len(pending))
        return pending

    monkeypatch.setattr(resampling.CandidateRefits, "_let_enter", let_enter)
    found = spcacore.stability(X, pca(2, k, **treatment), resampling="bootstrap", n_resamples=6)
    assert sum(asked) > 0
    weights = drawn_weights(n, "bootstrap", 0, None)
    for i in range(6):
        F = X[repeated(weights(i))].astype(float)
        center, scale = treatment.get("center", True), treatment.get("scale", False)
        F = F - (F.mean(axis=0) if center is True else 0 if center is False else center)
        if scale is True:
            F /= np.sqrt((F**2).sum(axis=0) / (n - 1))
        elif scale is not False:
            F /= scale
        rtol = 1e-9 if dtype == np.float64 else 1e-4
        orders = [_shares_of_fixed_points(F, n, found.chosen[i], order, rtol) for order in ((0, 1), (1, 0))]
        given = found.explained_variance_ratio[i]
        assert any(one is not None and np.allclose(one, given, rtol=rtol, atol=0) for one in orders)


@pytest.mark.parametrize("checks", [resampling.RESAMPLE_CHECKS, 0])
def test_resamples_are_not_held_at_the_components_of_all_the_data(checks, with_limits):
    """Of heavy tails, rows that are drawn often make other components best; without checks, each alone."""
    with_limits(resampling, RESAMPLE_CHECKS=checks)
    X = np.random.default_rng(0).standard_t(3, (60, 6000))
    X /= X.std(axis=0)
    found = spcacore.stability(X, pca(1, 5), resampling="bootstrap", n_resamples=6)
    for i in range(6):
        F = X[repeated(drawn_weights(60, "bootstrap", 0, None)(i))]
        best = spcacore.tpower(F, 5).value
        S = found.chosen[i][0]
        assert np.linalg.eigvalsh(np.cov(F[:, S].T))[-1] > 0.99 * best


def _shares_of_fixed_points(F, n, supports, order, rtol):
    """Additional shares of components found in this order; None where a variable outside would enter."""
    p = F.shape[1]
    D, Q, shares = F.copy(), np.zeros((p, 0)), np.zeros(2)
    for t in order:
        S = supports[t]
        x = np.zeros(p)
        x[S] = np.linalg.eigh(D[:, S].T @ D[:, S] / (n - 1))[1][:, -1]
        product = np.abs(D.T @ (D @ x))
        if product[S].min() < np.delete(product, S).max() * (1 - rtol):
            return None
        D -= np.outer(D @ x, x)
        Q, _ = np.linalg.qr(np.column_stack([Q, x]))
        shares[t] = ((F @ Q[:, -1]) ** 2).sum() / (F**2).sum()
    return shares


def test_variables_constant_in_a_resample_are_left_out(monkeypatch, rng):
    """Whatever rounding makes of their variances, by which the data are divided."""
    original, kept = resampling.CandidateRefits.resamples, []
    monkeypatch.setattr(
        resampling.CandidateRefits, "resamples",
        lambda self, weights: kept.append(original(self, weights)) or kept[-1],
    )  # fmt: skip
    X = rng.standard_normal((60, 5000))
    X[:, :400] = rng.uniform(0, 1, 400)
    X[7, :400] += 5.0
    found = spcacore.stability(X, pca(1, 5, scale=True), resampling="bootstrap", n_resamples=8)
    constant = np.array([one.weight[7] == 0 for one in kept[0]])
    assert 0 < constant.sum() < 8
    variances = np.array([one.variance[:400] for one in kept[0]])
    assert_array_equal(variances, np.where(constant, 0, 1)[:, None] * np.ones(400))
    assert all((found.chosen[i][0] >= 400).all() for i in np.flatnonzero(constant))


# ---- matching


def test_components_are_matched_as_the_best_permutation_matches_them():
    rng = np.random.default_rng(2)
    for _ in range(20):
        R, _ = np.linalg.qr(rng.standard_normal((7, 3)))
        L = rng.standard_normal((7, 3)) * rng.integers(0, 2, (7, 3))
        components, place, cosine = matched(Refit(nonzeros_of(L), None), R)
        unit = L / np.maximum(np.linalg.norm(L, axis=0), 1e-300)
        C = np.abs(R.T @ unit)
        best = max(sum(C[t, order[t]] for t in range(3)) for order in itertools.permutations(range(3)))
        assert cosine.sum() == pytest.approx(best)
        assert sorted(place.tolist()) == [0, 1, 2]
        for t, (index, entries) in enumerate(components):
            assert R[index, t] @ entries >= 0


def test_rounding_does_not_decide_what_matches():
    """Loadings of standardized data with two nonzeros each: all four cosines are 1/2, or 0."""
    X = np.random.default_rng(0).standard_normal((9, 4))
    R = np.array([[1, 1, 0, 0], [0, 0, 1, 1.0]]).T
    for L in (np.array([[1, 0, 1, 0], [0, 1, 0, 1.0]]).T, np.array([[1, -1, 0, 0], [0, 0, 1, -1.0]]).T):
        for seed in range(20):
            near = L * (1 + 1e-15 * np.random.default_rng(seed).standard_normal(L.shape))
            components, place, _ = matched(Refit(nonzeros_of(near), None), R / np.sqrt(2))
            assert place.tolist() == [0, 1]
            assert all(entries[0] > 0 for _, entries in components)
            compared = spcacore.compare([R, near], X)
            assert compared.matched[1].tolist() == [0, 1]
            assert compared.sign[1].tolist() == [1, 1]


def test_rotation_is_the_best_of_all_orthogonal_ones():
    rng = np.random.default_rng(2)
    R, _ = np.linalg.qr(rng.standard_normal((7, 2)))
    L = rng.standard_normal((7, 2))
    L /= np.linalg.norm(L, axis=0)
    near = np.zeros((7, 2))
    for t, (index, entries) in enumerate(rotated(nonzeros_of(L), R)):
        near[index, t] = entries
    angles = np.linspace(0, 2 * np.pi, 2001)
    turns = [np.array([[np.cos(a), -np.sin(a)], [np.sin(a), np.cos(a)]]) for a in angles]
    turns += [turn * [1, -1] for turn in turns]
    distance = min(np.linalg.norm(L @ turn - R) for turn in turns)
    assert np.linalg.norm(near - R) == pytest.approx(distance, abs=1e-5)
    assert np.linalg.norm(near - R) <= distance + 1e-12


def test_a_component_that_a_resample_lacks_is_empty():
    R = np.eye(4)[:, :2]
    components, place, cosine = matched(Refit(nonzeros_of(np.eye(4)[:, 1:2] * -3), None), R)
    assert place.tolist() == [-1, 0]
    assert cosine.tolist() == [0, 1]
    assert len(components[0][0]) == 0
    assert components[1][1].tolist() == [1]


def test_quantiles_of_few_variables_at_a_time(monkeypatch, rng):
    V = rng.standard_normal((9, 30)) * (rng.random((9, 30)) < 0.4)
    components = [nonzeros_of(v[:, None])[0] for v in V]
    monkeypatch.setattr("spcacore.selection.stability_result.QUANTILE_ENTRIES", 40)
    assert_allclose(quantiles(components, 30, 0.8), np.quantile(V, [0.1, 0.9], axis=0).T, atol=1e-15)


# ---- the result


def test_pairs_chosen_together():
    X, _ = spiked(20, 30, 4)
    found = spcacore.stability(X, pca(2, 4), n_resamples=10, resampling="half")
    for t in (0, 1):
        member = np.array([np.isin(np.arange(30), one[t]) for one in found.chosen], float)
        assert_allclose(found.together(t, range(30)), member.T @ member / 10)
        assert_allclose(found.together(t, [3, 1]), (member.T @ member / 10)[[3, 1]][:, [3, 1]])
        assert_allclose(found.together(t, range(30)).diagonal(), found.selection_frequency[:, t])
    assert found.false_selections(0.8, 0) == pytest.approx(4**2 / (0.6 * 30))  # without modes
    chosen = np.flatnonzero(found.loadings[:, 1])
    assert found.together(1).shape == (len(chosen),) * 2


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", ["wide", "small"])
def test_the_same_for_any_number_of_threads(kind):
    X, _ = spiked(50, 6000, 6) if kind == "wide" else spiked()
    one, two, again = (
        spcacore.stability(X, pca(2, 6), resampling="bootstrap", n_resamples=70, n_jobs=n, rng=7)
        for n in (1, 2, 3)
    )
    for other in (two, again):
        assert_array_equal(one.loading_interval, other.loading_interval)
        assert_array_equal(one.selection_frequency, other.selection_frequency)
    third = spcacore.stability(X, pca(2, 6), resampling="bootstrap", n_resamples=70, rng=8)
    assert (third.loading_interval != one.loading_interval).any()


def test_progress_and_an_early_end():
    X, _ = spiked()
    told = []
    spcacore.stability(X, pca(1, 4), n_resamples=6, callback=told.append)
    assert [(one.done, one.total) for one in told] == [(i, 6) for i in range(1, 7)]

    found = spcacore.stability(X, pca(1, 4), n_resamples=40, callback=ends_at(5))
    assert found.n_resamples == 4  # whole pairs
    whole = spcacore.stability(X, pca(1, 4), n_resamples=4)
    assert_array_equal(found.selection_frequency, whole.selection_frequency)
    with pytest.raises(RuntimeError, match="before two resamples"):
        spcacore.stability(X, pca(1, 4), n_resamples=40, callback=ends_at(1))


@pytest.mark.parametrize("resampling", ["complementary", "bootstrap"])
def test_knowledge_about_variables_is_that_of_each_resample(resampling):
    X, _ = spiked()
    options = {"n_resamples": 6, "resampling": resampling}
    found = spcacore.stability(X, pca(2, 3, include=[50], exclude=[0, 1]), **options)
    assert (found.selection_frequency[50] == 1).all()
    assert (found.selection_frequency[:2] == 0).all()
    groups = np.arange(60) // 4
    found = spcacore.stability(X, pca(2, 3, groups=groups), **options)
    frequency = found.selection_frequency.reshape(15, 4, 2)
    assert (frequency == frequency[:, :1]).all()
    for t in range(2):
        assert list(found.group_frequencies(groups, t).values()) == frequency[:, 0, t].tolist()
        assert sum(found.group_frequencies(groups, t).values()) == pytest.approx(3)
    assert list(found.group_frequencies(groups).values()) == found.any_frequency[::4].tolist()


def test_groups_are_chosen_where_one_of_their_variables_is():
    X, _ = spiked()
    found = spcacore.stability(X, pca(2, 4), n_resamples=6)
    labels = ["a", "b"] * 30
    count = {"a": [0, 0, 0], "b": [0, 0, 0]}
    for one, two in found.chosen:
        for label, odd in (("a", 0), ("b", 1)):
            here = [bool((part % 2 == odd).any()) for part in (one, two)]
            count[label] = [c + h for c, h in zip(count[label], [*here, any(here)], strict=True)]
    for t, component in enumerate((0, 1, None)):
        told = found.group_frequencies(labels, component)
        assert told == {label: pytest.approx(c[t] / 6) for label, c in count.items()}
    with pytest.raises(ValueError, match="component must be in"):
        found.group_frequencies(labels, 2)
    with pytest.raises(ValueError, match="60"):
        found.group_frequencies(["a"])


def test_nothing_of_x_is_copied():
    X = normal(0, 400, 20_000)
    before = X.copy()
    spcacore.stability(X[:, :100], pca(1, 5), n_resamples=2)  # imports
    _, peak = with_peak(lambda: spcacore.stability(X, pca(2, 5), resampling="bootstrap", n_resamples=8))
    assert peak < X.nbytes + 4 * 4096**2  # and A between some variables, with room for more
    assert_array_equal(X, before)


@pytest.mark.share(2)
@pytest.mark.filterwarnings("ignore:.*not converged:RuntimeWarning")
@pytest.mark.parametrize(("model", "options"), [("sca", {"l1_bound": 5.0}), ("soppca", {"cardinality": 5})])
def test_models_with_weights_copy_no_rows(model, options):
    fit, X = partial(getattr(spcacore, model), **options), normal(0, 300, 4000)
    spcacore.stability(X[:, :100], fit, n_resamples=2)  # imports
    _, peak = with_peak(lambda: spcacore.stability(X, partial(fit, max_iter=3), n_resamples=2))
    assert peak < (X.nbytes / 2 if model == "sca" else X.nbytes + 4 * 3072**2)  # and A between some variables


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("model", "given"),
    [
        ("sparse_pca", {"n_components": 2, "cardinality": 5}),
        ("sparse_cca", {"l1_bound": 1.5}),
        ("sparse_lda", {"cardinality": 3, "shrinkage": 0.5}),
    ],
)
def test_sparse_data_and_blocks_of_rows_agree_with_dense(model, given):
    import scipy.sparse

    X, _ = spiked()
    X[np.abs(X) < 0.5] = 0
    Y = {"sparse_cca": X[:, :8] + X[:, 8:16], "sparse_lda": np.arange(40) % 2}.get(model)
    fit, options = partial(getattr(spcacore, model), **given), {"resampling": "bootstrap", "n_resamples": 6}
    dense = spcacore.stability(X, fit, Y, **options)
    for other in (scipy.sparse.csr_array(X), scipy.sparse.csc_array(X), spcacore.row_blocks(X)):
        found = spcacore.stability(other, fit, Y, n_jobs=2, **options)
        assert_array_equal(found.selection_frequency, dense.selection_frequency)
        assert_allclose(found.loading_interval, dense.loading_interval, atol=1e-5)  # starts end within tol
        if Y is None:
            assert_allclose(found.explained_variance_ratio, dense.explained_variance_ratio, rtol=1e-9)
