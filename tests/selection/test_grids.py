"""Grids that differ by component, against selections of one grid where both must agree, and closed forms."""

from functools import partial

import flat
import numpy as np
import pytest
from calls import pca
from extras import optional
from numpy.testing import assert_allclose
from oracles import ends_at

import spcacore
from spcacore import select_sparsity
from spcacore.solvers.truncated_power import TruncatedPower

pandas = optional("pandas")
CRITERIA = ("cv", "permutation", "correlation", "sparseness", "bic", "stability")
FEW = {"n_folds": 3, "n_permutations": 3, "n_resamples": 4}


def planted(n=120, p=40, sizes=(4, 15)):
    """Components of different sizes without a common variable."""
    rng, V, start = np.random.default_rng(0), np.zeros((p, len(sizes))), 0
    for t, k in enumerate(sizes):
        V[start : start + k, t] = 1 / np.sqrt(k)
        start += k
    return rng.standard_normal((n, len(sizes))) * np.sqrt([14, 8]) @ V.T + rng.standard_normal((n, p))


@pytest.mark.share(12)
@pytest.mark.parametrize("model", ["sparse_pca", "spca", "soppca"])
@pytest.mark.parametrize("criterion", CRITERIA)
def test_steps_are_selections_of_one_grid_where_these_try_the_same(model, criterion):
    """The first step has one component; in the second, the value chosen before stands for both."""
    X, options = planted(n=60, p=24, sizes=(4, 6)), {"criterion": criterion, "rng": 3, **FEW}
    function = getattr(spcacore, model)
    two = partial(function, n_components=2)
    found = select_sparsity(X, two, [[9, 4], [2, 4, 9, 12]], **options)
    (first,) = found.earlier
    alone = select_sparsity(X, function, [4, 9], **options)
    assert_allclose(first.score, alone.score, rtol=1e-12)
    assert (first.best, first.one_se, first.chosen) == (alone.best, alone.one_se, alone.chosen)
    both = select_sparsity(X, two, [first.chosen], **options)
    place = found.values.tolist().index(first.chosen)
    score = both.score[0]
    if criterion == "correlation":  # of the last component, or the mean of both
        score = 2 * score - first.score[first.values.tolist().index(first.chosen)]
    assert_allclose(found.score[place], score, rtol=1e-6)
    assert found.chosen_by_component == (first.chosen, found.chosen)
    assert found.result.cardinality.tolist() == [first.chosen, found.chosen]


OPTIONS = {
    "pmd": {"method": "pmd", "l1_bound": [[1.5, 2.5], [1.2, 3.0]]},
    "gpower": {"method": "gpower", "penalty": [[0.3, 0.1], [0.2, 0.1]]},
    "refined": {"cardinality": [[3, 5], [2, 6]], "refine": True},
    "disjoint": {"cardinality": [[3, 5], [2, 6]], "support": "disjoint"},
    "groups": {"cardinality": [[1, 3], [2, 4]], "groups": np.arange(24) // 3},
    "hotelling": {"cardinality": [[3, 5], [2, 6]], "deflation": "hotelling", "scale": True},
    "elastic nets": {"penalty": [[8, 2.0], [1, 4.0]]},
}


@pytest.mark.share(6)
@pytest.mark.parametrize("name", OPTIONS)
def test_the_result_is_that_of_its_sparsities(name):
    options = dict(OPTIONS[name])
    parameter = next(one for one in ("cardinality", "l1_bound", "penalty") if one in options)
    grids, X = options.pop(parameter), planted(n=60, p=24, sizes=(4, 6))
    function = "spca" if name == "elastic nets" else "sparse_pca"
    model = partial(getattr(spcacore, function), n_components=2, **flat.recorded(function, options))
    found = select_sparsity(X, model, {parameter: grids}, criterion="bic")
    assert found.parameter == parameter
    assert [one in grid for one, grid in zip(found.chosen_by_component, grids, strict=True)] == [True, True]
    V = getattr(flat, function)(X, 2, **{parameter: list(found.chosen_by_component)}, **options).loadings
    assert_allclose(found.result.loadings, V, atol=1e-6)


def test_earlier_components_are_searched_once_for_all_values(monkeypatch):
    searched, find = [], TruncatedPower.find

    def counted(self, state, sparsity):
        searched.append(sparsity)
        return find(self, state, sparsity)

    monkeypatch.setattr(TruncatedPower, "find", counted)
    X = planted(n=60, p=24, sizes=(4, 6))
    select_sparsity(X, pca(2), [[3], [2, 6, 9]], criterion="bic")
    assert searched == [3, 3, 9, 6, 2]


def test_progress_counts_all_grids_and_ends():
    X, told = planted(n=60, p=24, sizes=(4, 6)), []
    arguments = pca(3), [[3, 5], [2, 4, 6], [2]]
    select_sparsity(X, *arguments, n_folds=3, callback=told.append)
    assert [one.done for one in told] == [*range(1, 25)]
    assert {one.total for one in told} == {24}
    whole = select_sparsity(X, *arguments, n_folds=3).chosen_by_component
    for stop, count in ((9, 1), (17, 2), (24, 3)):
        ended = select_sparsity(X, *arguments, n_folds=3, callback=ends_at(stop))
        assert ended.chosen_by_component[: count - 1] == whole[: count - 1]
        assert ended.result.n_components == len(ended.chosen_by_component) == count
    with pytest.raises(RuntimeError, match="before two folds"):
        select_sparsity(X, *arguments, n_folds=3, callback=ends_at(3))


def test_grids_are_for_selections_alone():
    X = planted(n=40, p=24, sizes=(4, 6))
    with pytest.raises(TypeError, match="of all components; select_sparsity takes grids"):
        spcacore.sparsity_path(X, pca(2), [[1, 2], [2, 3]])
