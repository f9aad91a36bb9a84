"""Paths over the sparsity, and its choice by left-out entries, permutations and the index of sparseness."""

import itertools
import threading
import warnings
from functools import partial

import numpy as np
import pytest
import scipy.sparse
from calls import pca
from hypothesis import strategies as st
from in_turn import of_examples, scaled_or_not
from numpy.testing import assert_allclose, assert_array_equal
from oracles import ends_at, planted

import spcacore
from spcacore._validation import as_seed
from spcacore.operators.sparse import permuted_columns
from spcacore.selection.plans import left_out_error


def conditional_errors(Y, C):
    """Errors of each entry predicted from the others of its row under N(0, C), by solving for each."""
    out = np.zeros_like(Y)
    for i, y in enumerate(Y):
        seen = np.flatnonzero(~np.isnan(y))
        for j in seen:
            others = seen[seen != j]
            guess = C[j, others] @ np.linalg.solve(C[np.ix_(others, others)], y[others]) if len(others) else 0
            out[i, j] = y[j] - guess
    return out


# ---- left-out entries --------------------------------------------------------------------------------


@of_examples(40, st.integers(0, 10**6), st.booleans())
def test_left_out_errors_are_those_of_conditional_expectations(seed, missing):
    rng = np.random.default_rng(seed)
    m, p, r = rng.integers(1, 5), rng.integers(2, 8), rng.integers(1, 4)
    W, noise = rng.standard_normal((p, r)), float(rng.uniform(0.1, 2))
    Y = rng.standard_normal((m, p))
    if missing:
        Y[rng.random((m, p)) < 0.3] = np.nan
    expected = np.sum(conditional_errors(Y, W @ W.T + noise * np.eye(p)) ** 2)
    assert left_out_error(Y, W, noise) == pytest.approx(expected, rel=1e-9)


SIZES, BOUNDS = {"cardinality": [2, 3, 6]}, {"l1_bound": [2.0, 3.0, 4.5]}
MODELS = {
    "sparse_pca": (spcacore.sparse_pca, SIZES, {}),
    "scaled": (spcacore.sparse_pca, SIZES, {"scale": True}),
    "spca": (spcacore.spca, SIZES, {"ridge": np.inf}),
    "sca": (spcacore.sca, BOUNDS, {}),
    "sma": (spcacore.sma, BOUNDS, {"center": True}),
    "soppca": (spcacore.soppca, SIZES, {}),
}


@pytest.mark.share(8)
@pytest.mark.parametrize("name", MODELS)
def test_scores_of_leaving_out_each_row(name):
    """With a fold for each row nothing is random, so the whole score can be computed by other means."""
    X, (function, grid, options) = planted(12, 9, 3, seed=2), MODELS[name]
    model, ((parameter, values),) = partial(function, n_components=2, **options), grid.items()
    found = spcacore.select_sparsity(X, model, grid, n_folds=12)
    expected = np.zeros((12, 3))
    for (j, row), (i, value) in itertools.product(enumerate(X), enumerate(values)):
        rest = np.delete(X, j, axis=0)
        V = model(rest, **{parameter: value}).loadings
        unit = rest.std(axis=0, ddof=1) if name == "scaled" else np.ones(9)
        y, rest = (row - rest.mean(axis=0)) / unit, rest / unit
        V = V / np.linalg.norm(V, axis=0)
        variances = spcacore.explained_variance(rest, V, "cumulative")
        noise = (rest.var(axis=0, ddof=1).sum() - variances.sum()) / 7
        W = V * np.sqrt(np.maximum(variances - noise, 0))
        errors = conditional_errors(y[None], W @ W.T + noise * np.eye(9))
        expected[j, i] = 1 - np.sum(errors**2) / np.sum(y**2)
    assert_allclose(found.score, expected.mean(axis=0), atol=1e-6)
    assert_allclose(np.sort(found.scores, axis=0), np.sort(expected, axis=0), atol=1e-6)
    se = expected.std(axis=0, ddof=1) / np.sqrt(12)
    assert_allclose(found.standard_error, se, atol=1e-6)
    assert found.best == values[int(np.argmax(expected.mean(axis=0)))]
    assert_array_equal(found.result.loadings, model(X, **{parameter: found.one_se}).loadings)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array, spcacore.row_blocks])
@scaled_or_not
def test_correlations_of_scores_of_left_out_rows(scale, form):
    """By NumPy, on the folds that the generator draws; 0 of a fold whose scores are constant."""
    X = planted(12, 9, 3, seed=2)
    X[:, 0] = 5 * np.isin(np.arange(12), np.arange(3))  # the only one of the first component, in fold or not
    model, ks = pca(2, scale=scale), [2 if scale else 1, 4]
    found = spcacore.select_sparsity(form(X), model, ks, criterion="correlation", n_folds=4, rng=5)
    expected = np.zeros((4, 2))
    folds = np.array_split(np.random.default_rng([as_seed(5), 0]).permutation(12), 4)
    for (row, fold), (i, k) in itertools.product(enumerate(folds), enumerate(ks)):
        whole = spcacore.sparse_pca(X, 2, k, scale=scale).transform(X[fold])
        others = spcacore.sparse_pca(np.delete(X, fold, axis=0), 2, k, scale=scale).transform(X[fold])
        for a, b in zip(whole.T, others.T, strict=True):
            if np.ptp(a) > 1e-9 and np.ptp(b) > 1e-9:
                expected[row, i] += abs(np.corrcoef(a, b)[0, 1]) / 2
    assert (expected[:, 0] < 0.99).any()
    assert_allclose(np.sort(found.scores, axis=0), np.sort(expected, axis=0), atol=1e-6)


def test_scores_by_number_of_components_are_those_of_separate_selections():
    X = planted(40, 30, 5, r=3)
    counted = spcacore.select_n_components(X, pca(1, 5), 4)
    assert counted.values.tolist() == [0, 1, 2, 3, 4]
    assert counted.score[0] == 0
    for r in (1, 3):
        alone = spcacore.select_sparsity(X, pca(r), [5])
        assert_allclose(alone.scores[:, 0], counted.scores[:, r], atol=1e-9)


@pytest.mark.parametrize("rule", ["one_se", "best"])
def test_components_of_one_variable_tell_nothing_of_other_variables(rule):
    """So that they predict no entry better than none, and rounding counts none of them."""
    for seed in range(6):
        X = np.random.default_rng(seed).standard_normal((20, 7))
        for held in (X, scipy.sparse.csc_array(X)):
            count = spcacore.select_n_components(held, pca(1, 1), 3, n_folds=3, rule=rule)
            assert count.best == count.chosen == 0
            assert count.result is None


def test_rules():
    X = planted(80, 60, 6, signal=1.2, seed=4)
    selection = spcacore.select_sparsity(X, spcacore.sparse_pca, range(1, 30, 2), rule="best", n_repeats=3)
    top = np.argmax(selection.score)
    within = selection.score >= selection.score[top] - selection.standard_error[top]
    assert selection.best == selection.chosen == selection.values[top]
    assert selection.one_se == selection.values[np.flatnonzero(within)[0]]
    assert selection.one_se < selection.best
    assert selection.scores.shape == (15, 15)
    assert_allclose(selection.scores.mean(axis=0), selection.score)
    deviations = [np.var(selection.scores[i : i + 5], axis=0, ddof=1) for i in (0, 5, 10)]
    assert_allclose(selection.standard_error, np.sqrt(np.mean(deviations, axis=0) / 5))


def dense_shares(X):
    """Eigenvalues as shares of the trace: what components of all variables explain."""
    values = np.linalg.eigvalsh(np.cov(X.T))[::-1]
    return values / values.sum()


def permuted_shares(X, count):
    return [dense_shares(permuted_columns(X, np.random.default_rng([0, 1, i]))) for i in range(1, count + 1)]


def test_permutation_scores_and_errors_by_their_formulas():
    """Of components of all variables, whose shares are eigenvalues."""
    X = planted(40, 8, 4, signal=1.0)
    selection = spcacore.select_sparsity(X, pca(2), [3, 8], criterion="permutation", n_permutations=6)
    own = np.log(dense_shares(X)[:2].sum())
    permuted = np.log([shares[:2].sum() for shares in permuted_shares(X, 6)])
    assert_allclose(selection.scores[:, 1], permuted, rtol=1e-8)
    assert selection.score[1] == pytest.approx(own - permuted.mean(), rel=1e-8)
    error = np.std(selection.scores, axis=0, ddof=1) * np.sqrt(1 + 1 / 6)
    assert_allclose(selection.standard_error, error, rtol=1e-12)


def test_permuted_data_are_searched_as_data_are():
    """Of heavy tails, what is best of more variables leads to less than what a search anew finds."""
    X = np.random.default_rng(0).standard_t(3, (60, 1000))
    X /= X.std(axis=0)
    scores = spcacore.select_sparsity(X, pca(1), [5, 50], criterion="permutation", n_permutations=3).scores
    for i in range(3):
        Y = permuted_columns(X, np.random.default_rng([0, 1, i + 1]))
        anew = spcacore.sparse_pca(Y, 1, 5).explained_variance_ratio.sum()
        assert scores[i, 0] > np.log(0.99 * anew)


def deflated_shares(X, r, scale, count):
    """Logarithms of the shares of what earlier components leave, for X and for permuted columns, by NumPy.

    Column j of the permuted X gets the variance that is left over 1 - sum of V_js^2.
    """
    A = np.corrcoef(X.T) if scale else np.cov(X.T)
    values, V = np.linalg.eigh(A)
    values, V = values[::-1], V[:, ::-1]
    out = np.zeros((1 + count, r))
    for t in range(r):
        left = A - (V[:, :t] * values[:t]) @ V[:, :t].T
        deviations = np.sqrt(left.diagonal() / (1 - (V[:, :t] ** 2).sum(axis=1)))
        out[0, t] = values[t]
        for i in range(count):
            R = np.corrcoef(permuted_columns(X, np.random.default_rng([0, 1, i + 1])).T)
            out[1 + i, t] = np.linalg.eigvalsh(deviations[:, None] * R * deviations)[-1]
        out[:, t] /= left.trace()
    return np.log(out)


@scaled_or_not
def test_parallel_analysis_by_its_formulas(scale):
    """Each share of what the earlier components leave; two errors above what permutations give."""
    ratios = []
    for seed in range(12):
        X = planted(40, 8, 4, signal=0.9, seed=seed)
        selection, best = (
            spcacore.select_n_components(
                X, pca(1, 8, scale=scale), 3, criterion="permutation", n_permutations=5, rule=rule
            )
            for rule in ("one_se", "best")
        )
        own, *permuted = deflated_shares(X, 3, scale, 5)
        permuted = np.array(permuted)
        assert_allclose(selection.scores[:, 1:], permuted, rtol=1e-6)
        assert_allclose(selection.score[1:], own - permuted.mean(axis=0), atol=1e-6)
        error = permuted.std(axis=0, ddof=1) * np.sqrt(1 + 1 / 5)
        assert_allclose(selection.standard_error[1:], error, rtol=1e-5)
        assert selection.score[0] == selection.standard_error[0] == 0
        ratio = (own - permuted.mean(axis=0)) / error
        assert selection.chosen == np.argmin([*(ratio > 2), False])
        assert best.chosen == np.argmin([*(ratio > 0), False])
        ratios.append(ratio[selection.chosen] if selection.chosen < 3 else 3)
        ratios.append(ratio[: selection.chosen].min(initial=np.inf))
    assert any(1 < ratio < 2 for ratio in ratios)  # so that neither one error nor three would do
    assert any(2 < ratio < 3 for ratio in ratios)


@pytest.mark.share(4)
@scaled_or_not
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
@pytest.mark.parametrize(
    ("p", "strengths", "options"),
    [
        (40, (1.5, 1.3, 1), {}),
        (40, (4, 1.5, 0.8), {}),
        (18, (1.5, 1.3, 1), {}),  # no variable without a factor
        (40, (1.5, 1.3, 1), {"cardinality": 10}),
        pytest.param(40, (1.5, 1.3, 1), {"method": "least_squares"}, marks=pytest.mark.slow),
        (100, (2, 2), {}),
        (40, (), {}),
    ],
)
def test_as_many_components_as_were_planted_are_more_than_chance(p, strengths, options, form, scale):
    """Factors of six variables each, strong and weak ones beside each other."""
    rng = np.random.default_rng(2)
    X = rng.standard_normal((120, p))
    for i, strength in enumerate(strengths):
        X[:, 6 * i : 6 * i + 6] += strength * rng.standard_normal((120, 1))
    model = partial(spcacore.sparse_pca, **{"cardinality": 6, "scale": scale, **options})
    found = spcacore.select_n_components(form(X), model, 5, criterion="permutation", n_permutations=12)
    assert found.chosen == len(strengths)


def test_regressions_of_few_samples_leave_no_more_than_chance():
    """Each score takes one of seven degrees of freedom."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 24))
    X[:, :6] += 4 * rng.standard_normal((8, 1))
    model = partial(spcacore.sparse_pca, cardinality=6, method="least_squares")
    found = spcacore.select_n_components(X, model, 4, criterion="permutation", n_permutations=4)
    assert found.chosen == 1
    assert found.score[2:].max() < 0


def test_missing_entries_are_left_out():
    X = planted(60, 40, 6, r=1, signal=4)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    for scale in (False, True):
        model = pca(1, method=spcacore.PMD(l1_bound=2.4), scale=scale)
        assert spcacore.select_n_components(X, model, 3, criterion="permutation").chosen == 1
    selection = spcacore.select_sparsity(X, pca(method="pmd", renormalize=False), [1, 1.7, 2.4, 5])
    assert selection.chosen == 2.4  # the planted loading has a norm of 2.45
    with pytest.raises(ValueError, match="NaN"):
        spcacore.select_sparsity(X, pca(method="greedy"), [2, 6])


def test_variables_without_variance_outside_of_a_fold_have_no_unit():
    """Divided by its deviation, such a variable is left out; else its one entry would be all there is."""
    X = planted(60, 30, 5, seed=2)
    rare = np.insert(X, 7, 0, axis=1)
    rare[11, 7] = 1e6
    model, sizes = pca(2, scale=True), [2, 5, 20]
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # in X it is not constant
        own, other = (spcacore.select_sparsity(Z, model, sizes).scores for Z in (X, rare))
    others = np.sort(own, axis=0)[:, 1], np.sort(other, axis=0)[:, 1]
    assert_allclose(*others, atol=0.1)
    assert other[:, 1].min() > 0.1
    sparse = spcacore.select_sparsity(scipy.sparse.csr_array(rare), model, sizes).scores
    assert_allclose(sparse, other, atol=1e-9)
    rare[11, 7] = 0
    with pytest.warns(UserWarning, match="1 constant column undivided: 7") as said:
        spcacore.select_n_components(rare, model, criterion="permutation", n_permutations=3)
    assert len(said) == 1  # and not once more for each permutation


def test_left_out_rows_far_beyond_the_others():
    X = planted(40, 20, 5)
    X[3] *= 1e200
    with pytest.warns(RuntimeWarning, match="exceeds the number range"):  # of all the data
        selection = spcacore.select_sparsity(X, spcacore.sparse_pca, [2, 5, 20])
    assert np.isfinite(selection.scores).all()
    assert selection.scores.max() <= 1


# ---- the same for all kinds of input -------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_permutation_keeps_the_entries_of_each_column(sparse):
    X = np.where(np.random.default_rng(0).random((30, 20)) < 0.5, np.arange(600.0).reshape(30, 20), 0)
    out = permuted_columns(scipy.sparse.csr_array(X) if sparse else X, np.random.default_rng(3))
    out = out.toarray() if sparse else out
    assert_array_equal(np.sort(out, axis=0), np.sort(X, axis=0))
    moved = [not np.array_equal(out[:, j], X[:, j]) for j in range(20)]
    assert sum(moved) > 15
    assert abs(np.corrcoef(out.T)[np.triu_indices(20, 1)]).mean() < 0.3


def test_permutations_do_not_depend_on_which_zeros_a_sparse_matrix_stores():
    rng = np.random.default_rng(5)
    X = scipy.sparse.random_array((20, 8), density=0.3, format="csr", rng=rng) * 9
    stored = scipy.sparse.bsr_array(X, blocksize=(2, 4))
    count = stored.nnz
    for call in (
        lambda X: (
            spcacore.select_sparsity(
                X, spcacore.sparse_pca, [2, 4], criterion="permutation", n_permutations=3
            ).scores
        ),
        lambda X: spcacore.sparse_kmeans_gap(X, 2, [1.5, 2], n_permutations=2, n_init=2).permuted,
        lambda X: spcacore.sparse_dissimilarity_gap(X, [1.5, 2], n_permutations=2).permuted,
    ):
        assert_allclose(call(stored), call(X), rtol=1e-9)
    assert stored.nnz == count > X.nnz


# ---- threads, seeds, progress, interruption ------------------------------------------------------------


@pytest.mark.share(2)
@pytest.mark.parametrize("criterion", ["cv", "permutation"])
def test_threads_do_not_change_the_result(criterion):
    X = planted(40, 50, 5)
    select = partial(spcacore.select_sparsity, X, pca(), [2, 5, 9], criterion=criterion, n_permutations=4)
    one = select()
    for n_jobs in (3, -1):
        assert_array_equal(select(n_jobs=n_jobs).scores, one.scores)
    assert_array_equal(select(rng=None).scores, one.scores)
    assert not np.array_equal(select(rng=7).scores, one.scores)
    generators = [np.random.default_rng(7) for _ in range(2)]
    a, b = (select(rng=g).scores for g in generators)
    assert_array_equal(a, b)


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_progress_is_told_in_the_callers_thread(n_jobs):
    seen, threads = [], set()

    def callback(progress):
        seen.append(progress)
        threads.add(threading.get_ident())

    spcacore.select_sparsity(
        planted(30, 20, 4), spcacore.sparse_pca, [2, 4], n_jobs=n_jobs, callback=callback
    )
    assert [p.done for p in seen] == list(range(1, 13))
    assert {p.total for p in seen} == {12}
    assert {p.value for p in seen} == {2, 4}
    assert threads == {threading.get_ident()}
    seen.clear()
    spcacore.select_n_components(planted(30, 20, 4), pca(1, 3), 2, n_jobs=n_jobs, callback=callback)
    assert [p.done for p in seen] == [1, 2, 3, 4, 5, 6]
    assert {p.total for p in seen} == {6}
    seen.clear()
    spcacore.sparsity_path(planted(30, 20, 4), spcacore.sparse_pca, [3, 1, 2], callback=callback)
    assert [(p.done, p.total, p.value) for p in seen] == [(1, 3, 3), (2, 3, 2), (3, 3, 1)]


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_what_a_callback_raises_ends_the_call(n_jobs):
    before = set(threading.enumerate())

    def callback(progress):
        if progress.done == 4:
            raise KeyError("enough")

    with pytest.raises(KeyError, match="enough"):
        spcacore.select_sparsity(
            planted(30, 20, 4), spcacore.sparse_pca, [2, 4], n_jobs=n_jobs, callback=callback
        )
    assert not set(threading.enumerate()) - before


def test_unfinished_searches_are_told_once():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        spcacore.select_sparsity(planted(30, 20, 4), pca(max_iter=0, swaps=False), [2, 4])
    assert [str(w.message) for w in caught] == ["not converged at cardinality 2, 4"]
    assert caught[0].filename == __file__


@pytest.mark.parametrize("call", ["path", "select", "count"])
def test_variances_beyond_the_number_range_are_told_once(call):
    X = planted(30, 20, 4) * 1e170
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        if call == "path":
            spcacore.sparsity_path(X, spcacore.sparse_pca, [2, 4, 8])
        elif call == "select":
            spcacore.select_sparsity(X, spcacore.sparse_pca, [2, 4, 8], n_jobs=2)
        else:
            spcacore.select_n_components(X, pca(1, 4), 2)
    assert [str(w.message) for w in caught] == ["a variance exceeds the number range and is given as inf"]
    assert caught[0].filename == __file__


# ---- bad input -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("n_jobs", [1, 3])
@pytest.mark.parametrize(("criterion", "runs"), [("cv", 4), ("permutation", 4)])
def test_stop_iteration_leaves_the_runs_that_are_done(criterion, runs, n_jobs):
    """Two values: the whole data, three folds (or the data and three permutations), half of the next."""
    X = planted(40, 20, 4)
    options = {"criterion": criterion, "n_folds": 8, "n_permutations": 8}
    whole = spcacore.select_sparsity(X, pca(), [2, 5], **options)
    count = 2 + 2 * runs + (1 if n_jobs == 1 else 7)  # of three runs at a time, some are not done then
    part = None
    while part is None:
        try:
            part = spcacore.select_sparsity(
                X, pca(), [2, 5], callback=ends_at(count), n_jobs=n_jobs, **options
            )
        except RuntimeError:  # the thread of an early run waited for all others
            if n_jobs == 1:
                raise
    done = len(part.scores)
    assert_allclose(part.scores, whole.scores[:done])
    assert done == runs - (criterion == "permutation") if n_jobs == 1 else 2 <= done <= 8
    assert part.score.shape == part.standard_error.shape == (2,)
    if criterion == "cv":  # the standard error of a mean, from so many folds
        expected = part.scores.std(axis=0, ddof=1) / np.sqrt(done)
        assert_allclose(part.standard_error, expected)


def test_stop_iteration_leaves_the_values_that_are_done():
    X = planted(40, 20, 4)
    path = spcacore.sparsity_path(X, spcacore.sparse_pca, [2, 5, 9], callback=ends_at(2))
    assert path.values.tolist() == [5, 9]
    assert [r.cardinality.tolist() for r in path.results] == [[5], [9]]
    assert len(path.index_of_sparseness) == 2
    least = spcacore.select_sparsity(
        X, spcacore.sparse_pca, [2, 5, 9], criterion="sparseness", callback=ends_at(2)
    )
    assert least.values.tolist() == [5, 9]
