"""Supports of several components chosen together, against enumeration of all that are allowed."""

from itertools import combinations

import flat
import numpy as np
import pytest
import scipy.sparse
from in_turn import examples
from numpy.testing import assert_allclose
from oracles import covariance, leading_on, normal, planted, reference, samples
from solvers.test_joint_bound import disjoint

import spcacore
from spcacore import explained_variance, sparse_pca

PITPROPS = spcacore.datasets.load_pitprops().correlation


def random_covariance(seed, p):
    return covariance(samples(seed, p + 3, p))


def leading(A, S, r=1):
    return np.linalg.eigvalsh(A[np.ix_(S, S)])[::-1][:r].sum()


def best_common(A, k, r):
    return max(leading(A, S, r) for S in combinations(range(len(A)), k))


def supports(result):
    return [tuple(np.flatnonzero(v)) for v in result.loadings.T]


@pytest.mark.slow
@pytest.mark.parametrize("limit", ["SUPPORTS", "NODES"])
def test_disjoint_supports_of_more_variables_are_searched_and_bounded_by_the_relaxation(monkeypatch, limit):
    monkeypatch.setattr(f"spcacore.supports.tree.DISJOINT_{limit}", 0)
    for seed in range(examples(8)):
        A = random_covariance(seed, 10)
        x = sparse_pca(A, 2, cardinality=[4, 3], support="disjoint", kind="covariance", certify="jointly")
        best = disjoint(A, (4, 3))
        assert best * 0.95 <= x.explained_variance.sum() <= best * (1 + 1e-12)
        assert best * (1 - 1e-9) <= x.joint_bound < best * 1.5
        plain = sparse_pca(A, 2, cardinality=[4, 3], support="disjoint", kind="covariance")
        assert plain.joint_bound is None


@pytest.mark.slow
def test_a_total_explains_more_than_its_even_split_and_no_less_than_nscumcomp():
    A = PITPROPS
    even = sparse_pca(A, 3, cardinality=4, kind="covariance", refine=True).explained_variance.sum()
    x = sparse_pca(A, 3, kind="covariance", cardinality=spcacore.Total(12))
    assert x.cardinality.sum() <= 12
    assert x.explained_variance.sum() >= even * (1 - 1e-9)
    X = reference("small40x12_X")
    theirs = reference("small_nscumcomp_k12_rotation")
    assert np.count_nonzero(theirs) == 12
    ours = sparse_pca(X, theirs.shape[1], cardinality=spcacore.Total(12))
    assert ours.explained_variance.sum() >= explained_variance(X, theirs).sum() * (1 - 1e-9)


def test_a_total_explains_no_less_than_any_way_to_divide_it():
    A, known = np.cov(normal(11, 30, 8), rowvar=False), {"kind": "covariance"}
    divided = (sparse_pca(A, 2, cardinality=[k, 6 - k], refine=True, **known) for k in (1, 2, 3))
    x = sparse_pca(A, 2, cardinality=spcacore.Total(6), **known)
    best = max(one.explained_variance.sum() for one in divided)
    assert x.explained_variance.sum() >= best * (1 - 1e-9)


@pytest.mark.share(2)
@pytest.mark.parametrize("sparse", [False, True])
def test_of_wide_data_planted_supports_are_found_without_the_matrix(sparse):
    X = planted(60, 3000, 6, r=2, signal=6.0)
    X = scipy.sparse.csc_array(np.where(abs(X) > 1, X, 0)) if sparse else X
    first, second = tuple(range(6)), tuple(range(6, 12))
    x = sparse_pca(X, 2, cardinality=12, support="common")
    assert set(np.flatnonzero(x.loadings.any(axis=1))) == {*first, *second}
    for options in ({"cardinality": 6, "support": "disjoint"}, {"total_cardinality": 12}):
        x = flat.sparse_pca(X, 2, **options)
        assert x.cardinality.sum() == 12
        assert {*supports(x)[0], *supports(x)[1]} == {*first, *second}
        assert {frozenset(s) for s in supports(x)} == {frozenset(first), frozenset(second)}


@pytest.mark.parametrize(("support", "k"), [("common", 5), ("disjoint", 3)])
def test_candidates_suffice(monkeypatch, support, k):
    A = random_covariance(3, 30)
    whole = sparse_pca(A, 2, cardinality=k, support=support, kind="covariance")
    monkeypatch.setattr("spcacore.models.joint_supports.ACROSS_ORDER", 12)
    monkeypatch.setattr(
        "spcacore.models.joint_supports.promising", lambda *_: np.arange(12)
    )  # few that are good
    few = sparse_pca(A, 2, cardinality=k, support=support, kind="covariance", certify="jointly")
    assert few.joint_bound >= whole.explained_variance.sum()
    products = np.abs(A @ few.loadings)
    inside = few.loadings != 0
    if support == "common":
        norm, used = np.linalg.norm(products, axis=1), inside.any(axis=1)
        assert norm[~used].max() <= norm[used].min() * (1 + 1e-9)
    else:
        free = ~inside.any(axis=1)
        for t in range(2):
            assert products[free, t].max() <= products[inside[:, t], t].min() * (1 + 1e-9)
    assert few.explained_variance.sum() <= whole.explained_variance.sum() * (1 + 1e-9)
    assert few.explained_variance.sum() >= whole.explained_variance.sum() * 0.8


@pytest.mark.parametrize("limit", [{"node_limit": 1}, {"time_limit": 0.0}])
def test_a_search_that_is_cut_short_still_has_a_bound(limit):
    A = random_covariance(1, 12)
    with pytest.warns(RuntimeWarning, match="not converged"):
        x = flat.sparse_pca(
            A, 3, cardinality=5, support="common", method="branch_and_bound", kind="covariance", **limit
        )
    best = best_common(A, 5, 3)
    assert x.joint_bound >= best * (1 - 1e-12)
    assert x.joint_gap > 0


def test_no_more_exchanges_than_max_iter():
    with pytest.warns(RuntimeWarning, match="not converged in 1 iteration"):
        x = sparse_pca(
            PITPROPS,
            3,
            cardinality=4,
            support="disjoint",
            kind="covariance",
            method=spcacore.TPower(max_iter=1),
        )
    assert x.n_iter.max() == 1
    assert not x.converged.any()


def test_where_no_variance_is_left_there_are_fewer_components():
    A = np.zeros((6, 6))
    A[:3, :3] = 1
    for options in ({"support": "common", "cardinality": 4}, {"support": "disjoint", "cardinality": 3}):
        with pytest.warns(RuntimeWarning, match="no variance is left after 1 of the 2 components"):
            x = flat.sparse_pca(A, 2, kind="covariance", **options)
        assert_allclose(x.explained_variance, [3.0], rtol=1e-12)
    with pytest.warns(RuntimeWarning, match="no variance is left after 0 of"):
        assert (
            sparse_pca(np.zeros((4, 4)), 2, kind="covariance", cardinality=2, support="common").n_components
            == 0
        )


def alternating(A, r, k, starts):
    """The most that r loadings of k other variables each explain: power steps on one, given the others."""
    rng, best = np.random.default_rng(0), 0.0
    for _ in range(starts):
        x, value = np.zeros((r, len(A))), -1.0
        for t in range(r):
            x[t, rng.choice(np.flatnonzero(~x.any(axis=0)), k, replace=False)] = 1
        for _ in range(60):
            before = value
            for t in range(r):
                free = ~np.delete(x, t, axis=0).any(axis=0)
                for _ in range(20):
                    S = np.argsort(-np.abs(A @ x[t]) * free, kind="stable")[:k]
                    same = set(S) == set(np.flatnonzero(x[t]))
                    x[t] = 0
                    x[t, S] = leading_on(A, S)
                    if same:
                        break
            value = np.einsum("ti,ij,tj", x, A, x)
            if value <= before * (1 + 1e-9):
                break
        best = max(best, value)
    return best


@pytest.mark.share(2)
@pytest.mark.parametrize(("seed", "r", "k"), [(0, 3, 6), (4, 2, 9)])
def test_disjoint_supports_of_many_variables(r, k, rng):
    """Hardly below twenty alternating searches from random supports; of 233 and of 210 variables."""
    p, q = int(rng.integers(80, 260)), int(rng.integers(5, 30))
    X = rng.standard_normal((150, q)) * rng.gamma(1.0, 1.0, q) @ rng.standard_normal((q, p))
    A = np.cov((X + rng.standard_normal((150, p)) * 2).T)
    L = sparse_pca(A, r, k, kind="covariance", support="disjoint").loadings
    assert np.einsum("it,ij,jt", L, A, L) >= alternating(A, r, k, 20) * (1 - 3e-3)
