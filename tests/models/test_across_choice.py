"""Supports chosen together that respect what is known of the variables, against enumeration."""

from itertools import product

import flat
import numpy as np
import pytest
from in_turn import examples
from known_variables import allowed
from numpy.testing import assert_array_less
from oracles import covariance, samples
from solvers.test_joint_bound import best_on

import spcacore
from spcacore import sparse_pca

P = 8
LABELS = np.array([0, 0, 1, 1, 1, 2, 3, 4])
BY_SIZE = {"groups": LABELS, "count": "variables"}


def random_covariance(seed, p=P):
    return covariance(samples(seed, p + 3, p))


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("known", "k"),
    [({"include": [1]}, 3), ({"groups": LABELS}, 2), ({"groups": LABELS, "include": [5]}, 2), (BY_SIZE, 4),
     (BY_SIZE | {"exclude": [0, 1]}, 3)],
)  # fmt: skip
def test_refined_loadings_are_the_best_that_are_allowed(known, k):
    best, found = [], []
    for seed in range(examples(20)):
        A = random_covariance(40 + seed)
        some = [S for S, _ in allowed(k, p=P, full=True, **known)]
        best.append(best_on(A, [(S, T) for S, T in product(some, some) if S <= T], np.random.default_rng(0)))
        options = {**known, "cardinality": k, "kind": "covariance", "refine": True}
        x = flat.sparse_pca(A, 2, **options)
        assert all(any(set(np.flatnonzero(v)) <= set(S) for S in some) for v in x.loadings.T)
        found.append(x.explained_variance.sum())
    assert_array_less(0.99 * np.array(best), found)


@pytest.mark.share(6)
@pytest.mark.parametrize(
    ("known", "total"),
    [
        ({}, 4),
        ({}, 5),
        ({"include": [1]}, 4),
        ({"exclude": [0]}, 3),
        ({"groups": [0, 0, 1, 2, 3]}, 3),
        ({"groups": [0, 0, 1, 2, 3], "count": "variables"}, 4),
    ],
)
def test_a_total_is_divided_as_well_as_is_allowed(known, total):
    for seed in range(2):
        A = random_covariance(seed, 5)
        some = [*allowed(total, p=5, **known)]
        pairs = [(S, T) for (S, j), (T, k) in product(some, some) if j + k <= total and S <= T]
        best = best_on(A, pairs, np.random.default_rng(0), 2000 if "include" in known else 6)
        x = flat.sparse_pca(A, 2, total_cardinality=total, kind="covariance", certify="jointly", **known)
        assert x.explained_variance.sum() <= best * (1 + 1e-6)
        assert x.explained_variance.sum() >= best * (0.98 if known else 1 - 1e-5)
        assert best <= x.joint_bound * (1 + 1e-9)
        used = [set(np.flatnonzero(v)) for v in x.loadings.T]
        assert any(
            sum(k for S, k in pair) <= total
            for pair in product(*([one for one in some if u <= set(one[0])] for u in used))
        )


def test_many_variables_are_refused_before_any_work(monkeypatch):
    monkeypatch.setattr("spcacore.models.joint_supports.ACROSS_ORDER", 5)
    with pytest.raises(ValueError, match="groups with supports chosen together is for at most 5 variables"):
        sparse_pca(
            random_covariance(0),
            2,
            kind="covariance",
            support="common",
            cardinality=2,
            choice=spcacore.Choice(groups=LABELS),
        )
