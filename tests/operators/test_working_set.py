"""Searches among some columns: what comes back is a fixed point of the iteration over all of them."""

import flat
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st
from in_turn import each_dtype, of_examples
from numpy.testing import assert_allclose, assert_array_equal
from oracles import covariance, deflated, largest_on, normal, products
from row_block_tools import STORED

import spcacore
from spcacore.operators import block_operator, working_set
from spcacore.operators.deflation import DeflatedOperator
from spcacore.operators.inputs import as_problem

pytestmark = pytest.mark.usefixtures("small_sets")


def draw(rng, n, p, kind):
    """Few distinct columns stand out, or all tie, or one dominates, or the best have small variance."""
    X = rng.standard_normal((n, p))
    if kind == "planted":
        X[:, : p // 4] += 2 * rng.standard_normal((n, 1))
    elif kind == "late":  # correlated columns, of less variance than the others
        X[:, : p // 4] = 0.5 * rng.standard_normal((n, 1)) + 0.1 * X[:, : p // 4]
    elif kind == "dominant":
        X[:, p // 2] *= 20
    elif kind == "ties":
        X = rng.integers(-1, 2, (n, p)).astype(float)
        X[:, p // 2 :] = X[:, : p - p // 2]
    elif kind == "sparse":
        X = np.where(rng.random((n, p)) < 0.2, rng.poisson(3, (n, p)), 0).astype(float)
    return X


def check_fixed_points(A, V, k):
    """Each loading is the best on its support, and no product outside is larger than one inside."""
    for x in V.T.astype(float):
        support = np.flatnonzero(x)
        assert len(support) <= k
        assert x @ A @ x == pytest.approx(largest_on(A, support), rel=1e-6)
        y = np.abs(A @ x)
        outside = np.delete(y, support)
        if len(support) == k < len(A):
            assert outside.max() <= y[support].min() * (1 + 1e-6) + 1e-9 * y.max()
        A = deflated(A, x, "projection")


@pytest.mark.share(8)
@pytest.mark.parametrize("kind", ["planted", "late", "dominant", "ties", "sparse", "noise"])
@pytest.mark.parametrize("storage", STORED)
@of_examples(
    15, st.integers(0, 10**6), st.integers(5, 60), st.integers(20, 120), st.integers(1, 8), st.booleans()
)
def test_fixed_points_of_the_iteration_over_all_columns(kind, storage, seed, n, p, k, scale):
    X = draw(np.random.default_rng(seed), n, p, kind)
    method = spcacore.TPower(n_starts=1 if seed % 2 else None, swaps=seed % 4 > 1)
    result = spcacore.sparse_pca(STORED[storage](X), min(3, n - 1), cardinality=k, scale=scale, method=method)
    assert result.screening.working_set > 0 or k == 1
    check_fixed_points(covariance(X, scale=scale), result.loadings, k)


@pytest.mark.share(6)
@pytest.mark.parametrize("storage", STORED)
def test_components_added_later_are_those_found_at_once(storage, with_limits):
    """A search begins with variables that depend on the components before it, not on how these were found."""
    with_limits(block_operator, KEPT_BYTES=80 * 80 * 8)  # less than A
    for seed in range(10):
        X = STORED[storage](draw(np.random.default_rng(seed), 40, 90, "noise"))
        whole = spcacore.sparse_pca(X, 4, cardinality=4)
        added = spcacore.sparse_pca(X, 2, cardinality=4).extend(X, 2)
        assert whole.screening.working_set > 0
        assert added.screening.working_set > 0
        assert_allclose(added.loadings, whole.loadings, atol=1e-9)


@pytest.mark.parametrize("storage", ["csr", "csc"])
@pytest.mark.parametrize("kind", ["sparse", "ties", "planted"])
def test_the_columns_of_sparse_data_need_no_room(storage, kind, with_limits):
    """Their products come from the entries alone: few columns or none fit, but their Gram matrix does."""
    X = draw(np.random.default_rng(1), 60, 120, kind)
    X[::3] = 0
    A = covariance(X)
    plain = spcacore.sparse_pca(STORED[storage](X), 3, cardinality=5)
    for room in (16 * 120**2, 8 * 12 * (2 * 12 + 60)):  # of all variables; of twelve with their columns
        with_limits(working_set, WORKING_SET_BYTES=room)
        result = spcacore.sparse_pca(STORED[storage](X), 3, cardinality=5)
        assert result.screening.working_set > 12
        check_fixed_points(A, result.loadings, 5)
        assert_array_equal(result.loadings != 0, plain.loadings != 0)


@pytest.mark.parametrize("stored", [np.array, sp.csr_array])
def test_blocks_are_asked_for_one_product_a_check(stored, monkeypatch, with_limits):
    """What the last check of a component has shown is not asked for again, and no whole column of A is."""
    asked, asks = [], block_operator.Gram.asked

    def seen(self, combine, question, *given, **others):
        asked.append((question.__name__, [x.shape for x in given if isinstance(x, np.ndarray)]))
        return asks(self, combine, question, *given, **others)

    monkeypatch.setattr(block_operator.Gram, "asked", seen)
    with_limits(block_operator, KEPT_BYTES=300 * 400 * 8)  # less than A
    X = draw(np.random.default_rng(3), 60, 400, "planted")
    X[:, 300:320] += normal(4, 60, 1)
    rows = spcacore.row_blocks(stored(X), block_bytes=X.nbytes // 3)
    result = spcacore.sparse_pca(
        rows, 3, cardinality=6, method=spcacore.TPower(screening="working_set", swaps=False)
    )
    checks = [shapes for name, shapes in asked if name == "_products" and len(shapes) == 2]
    assert 2 < len(checks) <= result.screening.checks  # several starts share one
    assert all(shapes[1][1] <= 2 for shapes in checks)
    assert rows.passes == 1 + len(asked) <= 2 * result.screening.checks + 5  # one for the statistics
    check_fixed_points(covariance(X), result.loadings, 6)


@pytest.mark.share(4)
@each_dtype
@pytest.mark.parametrize("stored", [np.array, sp.csr_array, sp.csc_array])
@pytest.mark.parametrize("weighted", [False, True])
def test_what_joins_a_set_of_blocks(dtype, stored, weighted):
    """A in the set and the entrants of two vectors, of A in double precision: known ones, or after a pass."""
    rng, n, p, k, mean = np.random.default_rng(0), 60, 300, 5, 30.0
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2, p) + mean * (rng.random(p) < 0.2)
    X[:, :40] += 3 * rng.standard_normal((n, 1))
    X = np.where(rng.random((n, 1)) < 0.7, X, 0).astype(dtype)
    w = rng.uniform(0.5, 2, n) if weighted else np.ones(n)
    D = (X - np.average(X.astype(float), 0, w)) * np.sqrt(w / (w.sum() - 1))[:, None]
    A = D.T @ D
    blocks = spcacore.row_blocks(stored(X), block_bytes=X.nbytes // 3)
    given = {"sample_weight": w} if weighted else {}
    problem = as_problem(blocks, screening="working_set", restrictable=True, **given)
    some, state = problem.working_set, DeflatedOperator.from_problem(problem)
    A *= 2 ** np.rint(np.log2(problem.diagonal.max() / A.diagonal().max()))  # the operator's units
    off = 100 * np.finfo(dtype).eps * (1 + mean) * A.diagonal().max()
    for index in (np.arange(20, 80), np.arange(80)):
        assert some.admit(index)
        inside, before = some.index, blocks.passes
        known = some._gram[: len(inside), : len(inside)]
        assert_allclose(known, A[np.ix_(inside, inside)], rtol=0, atol=off)
        some_of_them = np.sort(inside[1:9])
        G = problem.operator.submatrix(some_of_them)
        assert_allclose(G, A[np.ix_(some_of_them, some_of_them)], rtol=0, atol=off)
        assert blocks.passes == before
    for _ in range(3):
        index, x = np.sort(rng.choice(60, k, replace=False)), rng.standard_normal(k)
        x = (x / np.linalg.norm(x)).astype(dtype)
        state = state.deflate(index, x, noise=lambda _: 0.0)
        P = np.eye(p)
        P[np.ix_(index, index)] -= np.outer(x, x) / (x.astype(float) @ x)
        A = P @ A @ P
        index, vectors = np.sort(rng.choice(60, k, replace=False)), []
        for z in (x, x[::-1].copy()):
            y = np.abs(A[60:][:, index] @ z)
            vectors.append((index, z, float(rng.choice([np.quantile(y, 0.9), 0.98 * y.max()]))))
        members = problem.operator.gram.members  # between which A is known
        for active in (np.arange(60), np.union1d(members, np.arange(60))):
            before = blocks.passes
            found = some.entrants(state, active, vectors)
            asked = blocks.passes - before
            assert asked == all(np.isin(entrants, members).sum() == 0 for entrants in found)
            among = np.setdiff1d(np.arange(p) if asked else members, active)
            for (_, z, level), entrants in zip(vectors, found, strict=True):
                y = np.abs(A[among][:, index] @ z)
                must, may = among[y > level + off], among[y > level - off]
                assert set(must) <= set(entrants) <= set(may)


def test_what_was_read_is_counted():
    """Of blocks the passes, of data in memory all of X for each check, and columns that join."""
    X = draw(np.random.default_rng(0), 60, 90, "noise")
    dense = spcacore.sparse_pca(
        X, 2, cardinality=5, method=spcacore.TPower(screening="working_set")
    ).screening
    assert dense.mode == "working_set"
    assert dense.reads == pytest.approx(1 + dense.checks + dense.working_set / 90)
    wide = spcacore.datasets.make_spiked(50, 3000, rng=0)[0]  # which searches by default race without a set
    asked = spcacore.sparse_pca(wide, 1, 10, method=spcacore.TPower(screening="working_set"))
    assert asked.screening.mode == "working_set"
    blocks = STORED["blocks"](X)
    assert spcacore.sparse_pca(blocks, 2, cardinality=5).screening.reads == blocks.passes


def test_sparse_columns_far_from_zero_keep_their_digits(rng):
    """The products of pairs of entries near 1e7 have none of a variance of 1: the columns themselves do."""
    X = np.where(rng.random((200, 90)) < 0.05, rng.standard_normal((200, 90)), 0)
    X[:, 0] = 1e7 + rng.standard_normal(200)
    problem = as_problem(sp.csc_array(X), screening="working_set", restrictable=True)
    assert problem.working_set.admit(np.arange(40))
    gram = problem.working_set._gram[:40, :40] * 2.0**problem.exponent
    assert_allclose(gram, np.cov(X[:, :40].T), atol=1e-6)


def test_no_set_where_the_rank_is_used_up(rng):
    X = rng.standard_normal((8, 60))
    with pytest.warns(RuntimeWarning, match="no variance"):
        result = spcacore.sparse_pca(X[:3], 3, cardinality=60, deflation="schur")
    assert result.n_components == 2


def test_large_dense_data_are_screened_and_searched_in_a_set_if_asked_to(rng):
    X = rng.standard_normal((100, 6000))
    X[:, ::100] += rng.standard_normal((100, 1))
    assert spcacore.tpower(X, 20).screening.working_set == 0
    x = spcacore.tpower(X, 20, options=spcacore.TPower(screening="working_set"))
    assert x.screening.working_set > 0
    assert x.screening.mode == "working_set"
    assert 0 < x.screening.columns < 6000  # of what the checks ask, too
    centered = X - X.mean(axis=0)
    y = np.abs(centered.T @ (centered @ x.loading))
    assert y[x.loading == 0].max() <= y[x.loading != 0].min() * (1 + 1e-9)


def test_a_set_is_refused_where_it_does_not_help():
    X = normal(0, 20, 30)
    for name, options in (
        ("n_starts", {"n_starts": 3}), ("start", {"start": "eigenvector"}), ("max_iter", {"max_iter": 0}),
        ("deflation", {"constraint": "orthogonal"}), ("deflation", {"deflation": "hotelling"}),
        ("groups", {"groups": np.arange(30) // 2}), ("include", {"include": [3]}),
        ("NaN", {"X": np.where(np.eye(20, 30), np.nan, X)}),
    ):  # fmt: skip
        given = {"X": X, "n_components": 2, "cardinality": 3, "screening": "working_set"} | options
        with pytest.raises(ValueError, match=f"working_set' .*{name}"):
            flat.sparse_pca(**given)
    with pytest.raises(ValueError, match=r"working_set' .*start"):
        spcacore.tpower(X, 3, options=spcacore.TPower(start=np.ones(30), screening="working_set"))
    with pytest.raises(ValueError, match="entries"):
        spcacore.tpower(
            products(lambda v: v, 500), 2, kind="covariance", options=spcacore.TPower(screening="working_set")
        )
