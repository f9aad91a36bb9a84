"""greedy against loops over all variables with explicit matrices, published tables and LAPACK."""

from itertools import pairwise

import flat
import numpy as np
import pytest
from hypothesis import strategies as st
from in_turn import SEEDS, each_kind, of_examples
from numpy.testing import assert_allclose, assert_array_equal
from oracles import covariance, data_arrays, largest_on, leading_on, normal, optimum
from scipy import sparse as sp
from scipy.linalg import eigh
from scipy.sparse.linalg import LinearOperator

import spcacore
from spcacore import _core, explained_variance, greedy, sparse_pca
from spcacore.operators import gram
from spcacore.solvers import greedy_search

PITPROPS = spcacore.datasets.load_pitprops().correlation
STRATEGIES = ["forward", "gradient", "backward", "bidirectional"]


def blocks(X):
    return spcacore.row_blocks(np.array_split(X, 3))


# ---- loops over all variables -----------------------------------------------------------------------


def top(A, S, B=None):
    """The largest eigenvalue on a support, of the pencil where there is B, possibly singular."""
    S = list(S)
    if B is None:
        return largest_on(A, S) if S else -np.inf
    square, U = np.linalg.eigh(B[np.ix_(S, S)])
    T = U[:, square > 1e-8] / np.sqrt(square[square > 1e-8])
    return np.linalg.eigvalsh(T.T @ A[np.ix_(S, S)] @ T)[-1] if T.shape[1] else -np.inf


def forward(A, K, first, B=None):
    S = [first]
    while len(S) < K:
        value = np.array([-np.inf if j in S else top(A, [*S, j], B) for j in range(len(A))])
        S.append(int(np.argmax(value >= value.max() - 1e-11 * abs(value.max()))))
    return S


def gradient(A, K, first):
    S = [first]
    while len(S) < K:
        slope = abs(A[:, S] @ leading_on(A, S))
        slope[S] = -1
        S.append(int(np.argmax(slope)))
    return S


def backward(A, B=None):
    """The variables in the order in which they are left, reversed."""
    S, left = list(range(len(A))), []
    while S:
        value = [top(A, [j for j in S if j != i], B) for i in S]
        largest = max(value)
        tied = [i for i, v in zip(S, value, strict=True) if v >= largest - 1e-11 * abs(largest)]
        S.remove(tied[-1])
        left.append(tied[-1])
    return left[::-1]


def random_matrix(seed, p, kind):
    rng = np.random.default_rng(seed)
    if kind == "indefinite":
        B = rng.standard_normal((p, p))
        return B + B.T
    B = rng.standard_normal((2 if kind == "rank 2" else p + 3, p)) * np.linspace(2, 1, p)
    A = B.T @ B
    if kind == "correlation":
        A = A / np.sqrt(np.outer(A.diagonal(), A.diagonal()))
    return A


KINDS = ["covariance", "rank 2", "indefinite", "correlation"]


def check_path(x, A):
    """Each loading is the leading eigenvector of its support, and its value the eigenvalue."""
    for k, value in enumerate(x.path_value, 1):
        part = x.at(k)
        S = np.flatnonzero(part.loading)
        assert len(S) == part.cardinality <= k
        assert part.value == value == pytest.approx(top(A, S), rel=1e-10, abs=1e-12)
        assert np.linalg.norm(part.loading) == pytest.approx(1, abs=1e-14)
        assert part.loading @ A @ part.loading == pytest.approx(value, rel=1e-10, abs=1e-12)
        assert part.loading[np.argmax(abs(part.loading))] > 0
    assert_array_equal(part.loading, x.loading)
    assert part.value == x.value


@of_examples(100, seed=SEEDS, p=st.integers(1, 10), kind=st.sampled_from(KINDS))
def test_forward_and_gradient_are_the_loops(seed, p, kind):
    A = random_matrix(seed, p, kind)
    first = int(np.random.default_rng(seed).integers(p)) if kind == "correlation" else None
    start = int(np.argmax(A.diagonal())) if first is None else first
    x = greedy(A, p, kind="covariance", first=first)
    # of a matrix of rank 2 every third variable ties, in the loop by rounding
    width = 2 if kind == "rank 2" else p
    assert_array_equal(x.order[:width], forward(A, p, start)[:width])
    check_path(x, A)
    assert x.n_iter == p
    x = flat.greedy(A, p, kind="covariance", first=first, strategy="gradient")
    assert_array_equal(x.order[:width], gradient(A, p, start)[:width])
    check_path(x, A)


@of_examples(60, seed=SEEDS, p=st.integers(1, 10), kind=st.sampled_from(KINDS))
def test_backward_is_the_loop_and_bidirectional_the_better(seed, p, kind):
    A = random_matrix(seed, p, kind)
    x = flat.greedy(A, p, kind="covariance", strategy="backward")
    if kind != "rank 2":
        assert_array_equal(x.order, backward(A))
    check_path(x, A)
    both = flat.greedy(A, p, kind="covariance", strategy="bidirectional")
    check_path(both, A)
    add = greedy(A, p, kind="covariance")
    assert_allclose(both.path_value, np.maximum(add.path_value, x.path_value), rtol=1e-11)
    assert both.n_iter == add.n_iter + x.n_iter == p + p - 1
    supports = [set(np.flatnonzero(both.at(k).loading)) for k in range(1, p + 1)]
    if kind != "rank 2":
        nested = all(a <= b for a, b in pairwise(supports))
        assert (both.order is not None) == nested


@pytest.mark.parametrize("room", [0, 1 << 25])
@pytest.mark.parametrize("store", [np.asarray, sp.csr_array, blocks], ids=["dense", "csr", "blocks"])
def test_searches_share_the_rows_of_the_matrix(store, room, monkeypatch, with_limits):
    """Each row is computed once by all searches of a component, if there is room for it."""
    with_limits(gram, ROWS_ENTRIES=room)
    rows, asked = gram.rows_of, []
    monkeypatch.setattr(
        gram, "rows_of", lambda op, S: (asked.extend(S) if op.p == 300 else 0, rows(op, S))[1]
    )
    X = normal(2, 30, 300)
    X[:, ::40] += 2 * normal(3, 30, 1)
    monkeypatch.setattr(greedy_search, "can_be_formed", lambda problem, state: False)
    x = flat.greedy(store(X), 10, strategy="forward")
    A = covariance(X)
    assert_array_equal(x.order, forward(A, 10, int(np.argmax(A.diagonal()))))
    assert set(asked) >= set(x.order)
    assert len(asked) == len(set(asked)) <= 20
    asked.clear()
    monkeypatch.setattr(greedy_search, "_begins", lambda *_: x.order[:3].tolist())
    greedy(store(X), 10)
    assert room == 0 or len(asked) == len(set(asked))


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_many_variables_as_the_loop(strategy):
    """Enough of them for several tiles, and for bounds that rule most out."""
    rng = np.random.default_rng(3)
    p = 60 if strategy in ("backward", "bidirectional") else 700
    X = rng.standard_normal((40, p))
    X[:, ::7] += 1.5 * rng.standard_normal((40, 1))
    A = covariance(X)
    x = flat.greedy(X, 12, strategy=strategy)
    start = int(np.argmax(A.diagonal()))
    if strategy == "forward":
        assert_array_equal(x.order, forward(A, 12, start))
    elif strategy == "gradient":
        assert_array_equal(x.order, gradient(A, 12, start))
    elif strategy == "backward":
        assert_array_equal(x.order, backward(A)[:12])
    check_path(x, A)


def against_forward(rng, p, k):
    """A covariance in which variables of large variance, or the best pair, are none of the best k."""
    A = np.diag(rng.uniform(0.5, 1.3, p))
    B, C = rng.permutation(p)[:k], rng.permutation(p)[:2]
    A[np.ix_(B, B)] += rng.uniform(0.15, 0.4)
    A[np.ix_(C, C)] += rng.uniform(0.4, 0.8) * (k % 2)
    return A


def test_the_default_finds_what_forward_search_misses():
    """Against enumeration, on matrices made against forward search and on others."""
    rng, misses = np.random.default_rng(9), {"forward": 0, "auto": 0}
    for i in range(40):
        p, k = int(rng.integers(9, 13)), int(rng.integers(3, 6))
        A = against_forward(rng, p, k) if i % 2 else np.cov(rng.standard_normal((15, p)).T)
        best = optimum(A, k)
        for strategy in misses:
            x = flat.greedy(A, k, kind="covariance", strategy=strategy)
            assert x.value <= best * (1 + 1e-12)
            misses[strategy] += x.value < best * (1 - 1e-9)
    assert misses["forward"] >= 4
    assert misses["auto"] == 0


@pytest.mark.share(4)
@pytest.mark.parametrize("form", ["data", "csr", "blocks", "covariance"])
def test_wide_data_are_searched_from_several_variables(form, rng):
    """A block of ten variables explains most, and hundreds of others, uncorrelated, have larger variances."""
    n, p = 200, 300
    X = rng.standard_normal((n, p))
    X[:, 290:] = 0.9 * rng.standard_normal((n, 1)) + 0.4 * rng.standard_normal((n, 10))
    A = covariance(X)
    best = np.linalg.eigvalsh(A[290:, 290:])[-1]
    given = {
        "data": (X, "data"), "csr": (sp.csr_array(X), "data"), "covariance": (A, "covariance"),
        "blocks": (spcacore.row_blocks(X, block_bytes=X.nbytes // 3), "data"),
    }  # fmt: skip
    x = greedy(given[form][0], 10, kind=given[form][1])
    assert x.value == pytest.approx(best, rel=1e-9)
    assert flat.greedy(A, 10, kind="covariance", strategy="forward").value < 0.9 * best
    grown = sparse_pca(
        given[form][0], 1, method="greedy", kind=given[form][1], cardinality=spcacore.Explained(0.99)
    )
    assert set(np.flatnonzero(grown.loadings)) >= set(range(290, 300))  # by ever more variables


# ---- published numbers ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("strategy", "deflation", "published"),
    [
        ("bidirectional", "hotelling", [22.6, 38.8, 54.1, 64.5, 72.7, 77.0]),
        ("bidirectional", "projection", [22.6, 40.1, 56.0, 66.1, 74.7, 81.2]),
        ("bidirectional", "orthogonalized_hotelling", [22.6, 38.8, 54.1, 64.3, 68.2, 71.9]),
        ("bidirectional", "orthogonalized_projection", [22.6, 40.1, 56.0, 66.1, 74.7, 81.3]),
        ("bidirectional", "generalized", [22.6, 40.1, 56.1, 66.5, 75.2, 82.2]),
        ("backward", "schur", [22.6, 38.5, 55.7, 64.4, 73.3, 79.8]),
    ],
)
def test_deflations_of_mackey_2008_table_3(strategy, deflation, published):
    result = sparse_pca(
        PITPROPS,
        6,
        cardinality=4,
        kind="covariance",
        deflation=deflation,
        method=spcacore.Greedy(strategy=strategy),
    )
    together = [
        explained_variance(PITPROPS, result.loadings[:, : t + 1], kind="covariance") for t in range(6)
    ]
    assert_allclose([100 * v.sum() / 13 for v in together], published, atol=0.051)


@pytest.mark.parametrize(("name", "k", "value"), [("geography", 10, 10.0), ("communities", 10, 8.82361576)])
def test_the_first_of_tied_variables_is_no_trap(name, k, value):
    A = data_arrays("uci_correlations.npz")[name]
    assert greedy(A, k, kind="covariance", first=0).value < 0.85 * value
    assert greedy(A, k, kind="covariance").value >= 0.92 * value


def test_a_best_pair_among_more_tied_variables_than_are_tried():
    A = np.eye(600) + 0.01 * (1 - np.eye(600))
    A[-5:, -5:] = 0.9 + 0.1 * np.eye(5)
    x = greedy(A, 5, kind="covariance")
    assert_array_equal(x.order, [595, 596, 597, 598, 599])
    assert x.value == pytest.approx(1 + 4 * 0.9, rel=1e-12)


# ---- the secular equations --------------------------------------------------------------------------

numbers = st.sampled_from([0.0, 0.0, 1.0, -1.0, 1e-8, 1e-3, 1 + 1e-12, 1e3])
numbers |= st.floats(-2, 2).map(lambda v: round(v, 12))
scales = st.sampled_from([1.0, 1e-150, 1e150, 1e-20])


@of_examples(
    600,
    poles=st.lists(numbers, min_size=1, max_size=7), data=st.data(), scale=scales, corner=numbers,
    single=st.booleans(),
)  # fmt: skip
def test_bordered_eigenvalues(poles, data, scale, corner, single):
    k = len(poles)
    size = scale if not single else 1.0
    dtype = np.float32 if single else np.float64
    pole = np.sort(poles)[::-1] * size
    C = np.array(data.draw(st.lists(numbers, min_size=k, max_size=k)))[:, None] * size
    C = np.ascontiguousarray(np.repeat(C, 3, axis=1), dtype)
    diagonal = np.array([corner, 0.0, corner + 1]) * size
    M = np.diag(np.append(pole, 0))
    M[:-1, -1] = M[-1, :-1] = C[:, 0]
    expected = []
    for a in diagonal:
        M[-1, -1] = a
        expected.append(np.linalg.eigvalsh(M / size)[-1])
    value = _core.bordered_eigenvalues(C, np.arange(3), diagonal, pole, np.eye(k, order="F"))
    tolerance = 1e-14 * max(1, np.abs(M / size).max())
    assert_allclose(value / size, expected, rtol=1e-14, atol=tolerance)
    norm = (C.astype(float) ** 2).sum(axis=0) if size == 1 else None
    some = _core.bordered_eigenvalues(C, np.arange(3), diagonal, pole, np.eye(k, order="F"), norm)
    assert some.max() == value.max()  # bounds rule out others only
    assert ((some == value) | (some == -np.inf)).all()


@of_examples(400, poles=st.lists(numbers, min_size=1, max_size=7), seed=SEEDS, scale=scales)
def test_deleted_eigenvalues(poles, seed, scale):
    rng = np.random.default_rng(seed)
    k = len(poles)
    U = np.linalg.qr(rng.standard_normal((k, k)))[0]
    if seed % 2 and k > 2:  # zeros, and tiny entries
        U = np.eye(k)
        U[:2, :2] = [[np.cos(1e-5), np.sin(1e-5)], [-np.sin(1e-5), np.cos(1e-5)]]
    pole = np.sort(poles)[::-1]
    G = (U * pole) @ U.T
    value = _core.deleted_eigenvalues(pole * scale, np.asfortranarray(U)) / scale
    expected = [top(G, [j for j in range(k) if j != i]) for i in range(k)]
    assert_allclose(value, expected, rtol=1e-13, atol=1e-13 * abs(pole).max())


@pytest.mark.parametrize("far", [1e-1, 1e-40, 1e-140])
def test_roots_next_to_a_pole_and_far_from_it(far):
    """The leading pole hides the root from iterations that start beside it, the last one from above."""
    e = np.array([far, 2**0.5, 1e-100])
    pole = np.array([0.0, -1.0, -1000.0])
    W = np.eye(3, order="F")
    value = _core.bordered_eigenvalues(e[:, None].copy(), np.array([0]), np.array([-1.0]), pole, W)
    M = np.diag([*pole, -1.0])
    M[:3, 3] = M[3, :3] = e
    assert value[0] == pytest.approx(np.linalg.eigvalsh(M)[-1], rel=1e-12)


# ---- generalized deflation and constraints ----------------------------------------------------------


@pytest.mark.parametrize("strategy", ["forward", "backward"])
@of_examples(60, seed=SEEDS, p=st.integers(4, 9), t=st.integers(1, 3), k=st.integers(1, 7))
def test_generalized_deflation_is_the_loop_over_pencils(strategy, seed, p, t, k):
    k = min(k, p)
    A = random_matrix(seed, p, "covariance")
    how = {"kind": "covariance", "method": "greedy", "deflation": "generalized", "strategy": strategy}
    result = flat.sparse_pca(A, t, cardinality=3, **how)
    more = result.extend(A, 1, cardinality=k)
    assert more.n_components == t + 1
    V = result.loadings
    Q = np.linalg.qr(V)[0]
    B = np.eye(p) - Q @ Q.T
    Z = B @ A @ B
    square = B.diagonal()
    promise = np.where(square > 1e-8, Z.diagonal() / np.where(square > 1e-8, square, 1), -np.inf)
    S = forward(Z, k, int(np.argmax(promise)), B) if strategy == "forward" else backward(Z, B)[:k]
    x = more.loadings[:, -1]
    reached = x @ Z @ x / (x @ B @ x)
    assert reached == pytest.approx(top(Z, S, B), rel=1e-7)
    assert set(np.flatnonzero(x)) <= set(S) or reached == pytest.approx(
        top(Z, np.flatnonzero(x), B), rel=1e-7
    )


@of_examples(100, seed=SEEDS, k=st.integers(1, 6), t=st.integers(1, 3), strength=st.sampled_from([-1, 9]))
def test_bordered_pencils(seed, k, t, strength):
    p = 12
    rng = np.random.default_rng(seed)
    A = random_matrix(seed, p, "indefinite")
    Q = np.linalg.qr(rng.standard_normal((p, t)) * (rng.random((p, t)) < 0.6) + 1e-3 * np.eye(p, t))[0]
    B = np.eye(p) + strength * Q @ Q.T
    S = np.sort(rng.choice(p, k, replace=False))
    if np.linalg.eigvalsh(B[np.ix_(S, S)])[0] < 1e-6:
        return
    pole, W = eigh(A[np.ix_(S, S)], B[np.ix_(S, S)])
    pole, W = pole[::-1].copy(), np.asfortranarray(W[:, ::-1])
    others = np.setdiff1d(np.arange(p), S)
    value = _core.bordered_eigenvalues(
        np.ascontiguousarray(A[S]), others, A.diagonal().copy(), pole, W, None, np.ascontiguousarray(Q.T),
        np.asfortranarray(W.T @ Q[S]), strength, 1e-8,
    )  # fmt: skip
    for j, found in zip(others, value, strict=True):
        more = [*S, j]
        if np.linalg.eigvalsh(B[np.ix_(more, more)])[0] > 1e-6:
            assert found == pytest.approx(top(A, more, B), rel=1e-8, abs=1e-8)
    for i, found in enumerate(_core.deleted_eigenvalues(pole, W)):
        if k > 1:
            assert found == pytest.approx(top(A, np.delete(S, i), B), rel=1e-8, abs=1e-8)


# ---- input ------------------------------------------------------------------------------------------


@each_kind
def test_products_alone_serve_the_gradient_only(kind):
    X = normal(8, 50, 40)
    X[:, 10:16] += normal(9, 50, 1) * 2
    M = X if kind == "data" else covariance(X)
    operator = LinearOperator(M.shape, matvec=lambda v: M @ v, rmatvec=lambda u: M.T @ u, dtype=float)
    x = flat.greedy(operator, 6, kind=kind, strategy="gradient")
    expected = flat.greedy(M, 6, kind=kind, first=int(x.order[0]), strategy="gradient")
    assert_array_equal(x.order, expected.order)
    assert_array_equal(np.sort(x.order), np.arange(10, 16))
    assert_allclose(x.path_value, expected.path_value, rtol=1e-11)
    for strategy in ("forward", "backward", "bidirectional"):
        if kind == "covariance":  # of few variables, whose entries are obtained by products
            same = flat.greedy(operator, 6, kind=kind, strategy=strategy).loading
            assert_allclose(same, flat.greedy(M, 6, kind=kind, strategy=strategy).loading, atol=1e-10)
            continue
        with pytest.raises(ValueError, match=f"'{strategy}' needs the entries"):
            flat.greedy(operator, 6, kind=kind, strategy=strategy)
        with pytest.raises(ValueError, match=f"'{strategy}' needs the entries"):
            sparse_pca(operator, 1, cardinality=6, kind=kind, method=spcacore.Greedy(strategy=strategy))
