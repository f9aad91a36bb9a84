"""Knowledge about variables: which must be in, may not be, go together, and with which sign."""

import itertools
from functools import partial

import flat
import numpy as np
import pytest
from calls import numbers
from in_turn import examples
from known_variables import (
    CASES,
    CHOOSING,
    LABELS,
    METHODS,
    MIXED,
    SPARSITY,
    P,
    components,
    covariance,
    data,
    optimum,
)
from numpy.testing import assert_allclose, assert_array_equal
from oracles import largest_on

import spcacore
from spcacore import sparse_pca

pytestmark = pytest.mark.usefixtures("few_starts")


@pytest.mark.parametrize("method", ["greedy", "dspca"])
def test_small_problems_end_at_the_optimum(method):
    """Of all supports; greedy search of plain variables promises less."""
    counted = [({"groups": LABELS, "count": "variables"}, k) for k in (3, 4, 5)]
    unequal = np.repeat(np.arange(10), [1, 1, 2, 2, 3, 3, 4, 6, 9, 11])  # too many variables for a tree
    more = [({}, 4)] if method == "dspca" else [({"groups": unequal, "count": "variables"}, 8)]
    for (knowledge, k), seed in itertools.product([*CASES, *counted, *more], range(examples(4))):
        A = covariance(seed, p=len(knowledge.get("groups", LABELS)))
        x = flat.sparse_pca(A, 1, cardinality=k, method=method, kind="covariance", **knowledge)
        assert_allclose(x.explained_variance[0], optimum(A, k, **knowledge), rtol=1e-9)


# ---- greedy search by groups and signs


def test_greedy_begins_with_the_best_pair_where_all_tie():
    A = spcacore.datasets.load_pitprops().correlation[::-1, ::-1]
    for known in ({"groups": np.arange(13)}, {"nonnegative": np.ones(13)}):
        x = flat.sparse_pca(A, 1, cardinality=2, method="greedy", kind="covariance", **known)
        best = optimum(A, 2) if "groups" in known else 1 + np.triu(A, 1).max()
        assert_allclose(x.explained_variance, best, rtol=1e-9)


def test_greedy_adds_what_gains_nothing_yet():
    """The first variable has no covariances; two others explain more together."""
    A = np.diag([3.0, 0.1, 0.1, 0.1, 0.1])
    A[1:, 1:] += 1.9
    method, choice = spcacore.Greedy(strategy="forward"), spcacore.Choice(groups=np.arange(5))
    x = sparse_pca(A, 1, cardinality=3, method=method, kind="covariance", choice=choice)
    assert np.flatnonzero(x.loadings[:, 0]).tolist() == [1, 2]


def test_greedy_tries_the_most_promising_of_many():
    A = np.eye(200)
    A[-5:, -5:] += 0.5 + 0.5 * np.eye(5)
    tied = A.copy()
    tied[np.diag_indices(200)] = 1  # variances that tie
    for matrix, best in ((A, np.linalg.eigvalsh(A[-3:, -3:])[-1]), (tied, 2)):
        choice = spcacore.Choice(groups=np.arange(200))
        x = sparse_pca(matrix, 1, cardinality=3, method="greedy", kind="covariance", choice=choice)
        assert_allclose(x.explained_variance[0], best, rtol=1e-9)


# ---- excluded: as if they were not there


def pairs(X, exclude=(), **options):
    return flat.sparse_cca(X, X**2, 2, x_exclude=exclude, y_exclude=exclude, **options)


FITS = {
    **{
        f"{method}, {kind}": partial(components, method=method, r=2, kind=kind)
        for method in METHODS
        for kind in ("data", "covariance")
    },
    **{
        f"soppca, {deflation}": partial(flat.soppca, n_components=2, cardinality=4, deflation=deflation)
        for deflation in ("orthogonal", "naive", "constrained")
    },
    "sparse_cca": partial(pairs, l1_bound=1.5),
    "sparse_cca, generalized": partial(pairs, method="generalized", cardinality=3, ridge=0.2),
    "sparse_lda": lambda X, exclude=(): spcacore.sparse_lda(
        X, np.arange(30) % 3, 2, 3, shrinkage=0.3, choice=spcacore.Choice(exclude=exclude)
    ),
}


@pytest.mark.parametrize("name", FITS)
def test_excluding_is_leaving_out(name):
    X, left = data(3), [0, 4]
    X, fewer = (np.cov(Z.T) if "covariance" in name else Z for Z in (X, np.delete(X, left, axis=1)))
    ours, theirs = numbers(FITS[name](X, exclude=left)), numbers(FITS[name](fewer))
    for one, value in ours.items():
        if one.startswith(
            ("loadings", "explained_variance", "total_variance", "correlations", "gain", "values")
        ):
            if value.shape[:1] == (P,):
                assert not value[left].any()
                value = np.delete(value, left, axis=0)
            assert_allclose(value, theirs[one], atol=1e-7, err_msg=one)


@pytest.mark.parametrize("method", [name for name in CHOOSING if name not in SPARSITY])
def test_the_signs_of_the_leading_vector_leave_nothing_of_what_is_included(method):
    A, choice = np.array([[1.0, -0.9], [-0.9, 2]]), spcacore.Choice(include=[0], signs=np.ones(2))
    found = sparse_pca(A, 1, cardinality=1, kind="covariance", method=method, choice=choice)
    assert_array_equal(found.loadings, [[1], [0]])


@pytest.mark.parametrize(
    "knowledge", [{"include": [2, 7]}, {"groups": LABELS}, {"include": [2], "groups": LABELS}]
)
def test_an_l0_penalty_is_of_units_that_are_not_included(knowledge):
    """Against all unions: the largest eigenvalue less the penalty of each unit that costs."""
    groups = knowledge.get("groups", np.arange(P))
    wanted = set(groups[knowledge.get("include", [])])
    for seed in range(3):
        A = covariance(30 + seed)
        penalty = 0.1 * np.trace(A)
        most, best = -np.inf, None
        for chosen in itertools.chain.from_iterable(
            itertools.combinations(range(groups.max() + 1), size) for size in range(1, groups.max() + 2)
        ):
            if wanted <= set(chosen):
                S = np.flatnonzero(np.isin(groups, chosen))
                value = largest_on(A, S) - penalty * (len(chosen) - len(wanted))
                if value > most:
                    most, best = value, S
        x = flat.gpower(A, penalty, norm="l0", kind="covariance", **knowledge)
        assert_array_equal(np.flatnonzero(x.loading), best)


@pytest.mark.parametrize("knowledge", [{"include": [1, 5]}, {"groups": LABELS}, {"nonnegative": MIXED}])
def test_an_l1_penalty_ends_where_its_step_does(knowledge):
    """z is the threshold of A z / sqrt(z'Az), by groups, without wrong signs, and not of what is included."""
    A = covariance(33)
    penalty = 0.15 * np.sqrt(np.trace(A))
    options = {"kind": "covariance", "renormalize": False, "tol": 0, "max_iter": 5000}
    z = flat.gpower(A, penalty, **options, **knowledge).loading
    a = A @ z / np.sqrt(z @ A @ z)
    a[a * knowledge.get("nonnegative", np.zeros(P)) < 0] = 0
    for group in range(P):
        at = knowledge.get("groups", np.arange(P)) == group
        size = np.linalg.norm(a[at])
        if size > 0 and group not in knowledge.get("include", []):
            a[at] *= max(1 - penalty / size, 0)
    assert_allclose(z, a / np.linalg.norm(a), atol=1e-6)
    assert np.count_nonzero(z) < P


def test_a_group_is_found_that_none_of_its_variables_shows():
    A = np.eye(P)
    A[2:5, 2:5] += 0.5 * (1 - np.eye(3))
    x = spcacore.gpower(
        A, 1.8, kind="covariance", options=spcacore.GPower(norm="l0"), choice=spcacore.Choice(groups=LABELS)
    )
    assert np.flatnonzero(x.loading).tolist() == [2, 3, 4]


@pytest.mark.parametrize(
    ("known", "n", "seed"),
    [({"include": [9]}, 60, 0), ({"groups": np.arange(300) // 4}, 60, 0), ({"signs": 1}, 200, 18)],
)
def test_where_all_variances_tie_random_starts_find_no_more(known, n, rng):
    X = rng.standard_normal((n, 300))
    X[:, 1:] += 0.8 * X[:, :-1]
    A, groups = np.corrcoef(X.T), np.asarray(known.get("groups", np.arange(300)))
    k, signed, best = (2 if "groups" in known else 5), "signs" in known, 0.0
    for x in rng.standard_normal((20, 300)):
        for _ in range(20):
            y = np.maximum(A @ np.abs(x), 0) if signed else A @ x
            weight = np.bincount(groups, y**2)
            weight[known.get("include", [])] = np.inf
            support = np.flatnonzero(np.isin(groups, np.argsort(weight)[-k:]))
            values, vectors = np.linalg.eigh(A[np.ix_(support, support)])
            x = np.zeros(300)
            x[support] = vectors[:, -1]
        if not signed or (x >= 0).all() or (x <= 0).all():
            best = max(best, values[-1])
    found = sparse_pca(X, 1, k, choice=spcacore.Choice(**known), scale=True)
    assert found.explained_variance[0] > 0.99 * best
