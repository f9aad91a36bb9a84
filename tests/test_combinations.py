"""Combinations of candidate loadings against enumeration of all of them."""

from itertools import combinations, permutations

import numpy as np
import pytest
from oracles import covariance, dense_vector, spanned_variance

from spcacore.models.combinations import Candidates, _Products
from spcacore.operators.inputs import as_problem


def random_candidates(seed, sizes, count=9, p=8, kind="covariance"):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((12, p)) * 2.0 ** rng.integers(-1, 2, p)
    A = covariance(X)
    problem = as_problem(A if kind == "covariance" else X, kind=kind, center=True, scale=False)
    loadings = []
    for size in rng.choice(sizes, count):
        index = np.sort(rng.choice(p, size, replace=False))
        value = rng.standard_normal(size)
        loadings.append((index, value / np.linalg.norm(value)))
    return A, problem, loadings


def as_columns(p, loadings):
    return np.column_stack([dense_vector(p, *loading) for loading in loadings])


@pytest.mark.parametrize("kind", ["covariance", "data"])
def test_what_candidates_add(kind):
    for seed in range(5):
        A, problem, loadings = random_candidates(seed, [2, 3], kind=kind)
        products = _Products.of(problem, loadings, (3, 3, 3))
        unit = problem.unit
        V = as_columns(8, loadings)
        rest = products.given([0, 1])
        alone = spanned_variance(A, V[:, :2])
        assert np.trace(rest.M) * unit == pytest.approx(alone, rel=1e-10)
        for j in range(2, 9):
            if rest.left[j] > 1e-2:
                more = spanned_variance(A, V[:, [0, 1, j]]) - alone
                assert rest.gain()[j] * unit == pytest.approx(more, rel=1e-8)
        few = np.array([2, 3])
        after = rest.after(products, few)
        for row, i in zip(after, few, strict=True):
            for j in range(4, 9):
                both = spanned_variance(A, V[:, [0, 1, i, j]]) - spanned_variance(A, V[:, [0, 1, i]])
                if row[j] > 0:
                    assert row[j] * unit == pytest.approx(both, rel=1e-6)


@pytest.mark.parametrize("sizes", [(3, 3, 3), (3, 2, 2)])
def test_the_best_of_all_combinations(sizes):
    """One and two exchanges at a time find the best of three, or nearly."""
    short = []
    for seed in range(12):
        A, problem, loadings = random_candidates(seed, [2, 3])
        products = _Products.of(problem, loadings, sizes)
        V, best = as_columns(8, loadings), 0.0
        counts = [len(index) for index, _ in loadings]
        for T in combinations(range(9), 3):
            fits = any(
                all(counts[j] <= k for j, k in zip(order, sizes, strict=True)) for order in permutations(T)
            )
            if fits and products.independent(list(T)):
                best = max(best, spanned_variance(A, V[:, T]))
        candidates = Candidates(problem, sizes)
        candidates.add(loadings)
        chosen = candidates.combinations([])
        values = [spanned_variance(A, as_columns(8, x)) for x in chosen]
        for x in chosen:
            assert all(len(index) <= k for (index, _), k in zip(x, sizes, strict=True))
        assert values == sorted(values, reverse=True)
        assert max(values) <= best * (1 + 1e-9)
        short.append(1 - max(values) / best)
    assert max(short) < 0.06
    assert np.median(short) < 1e-9


def test_loadings_that_leave_a_variable():
    A, problem, loadings = random_candidates(3, [3])
    candidates = Candidates(problem, (3, 3))
    for i, value, (index, entries) in candidates.without(loadings[:1], loadings[1], 3):
        assert i in loadings[1][0]
        assert i not in index
        assert len(candidates.found) <= 3
        V = as_columns(8, [loadings[0], (index, entries)])
        more = spanned_variance(A, V) - spanned_variance(A, V[:, :1])
        assert value * problem.unit == pytest.approx(more, rel=0.2)


def test_a_loading_with_one_nonzero_cannot_lose_it():
    """What is left of it, zeros that are stored, is no start."""
    problem = as_problem(np.diag([4.0, 3.0, 2.0]), kind="covariance")
    zero_and_one = np.array([0, 2]), np.array([0.0, 1.0])
    found = Candidates(problem, (2,)).without([], zero_and_one, 2)
    assert [i for i, _, _ in found] == [0]
