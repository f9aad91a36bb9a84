"""Products of matrices in every shape: up to two tiles, whatever is left over beside whole vectors.

Of small integers, so that sums are exact in both precisions, and what is left out or not written shows.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from in_turn import each_dtype, each_order
from numpy.testing import assert_allclose

from spcacore import _core

TILE = 96
AROUND = [size + more for size in (TILE, 2 * TILE) for more in (-1, 0, 1)]
DEPTHS = (1, 3, 8, 17, 65, 129, 515)  # of no whole vector, and of several stretches of a tile's depth
EVERY = range(1, 2 * TILE + 3)


def integers(rng, shape, dtype):
    return rng.integers(-9, 10, shape).astype(dtype)


def exact(A, B):
    """No sum reaches 2^53, so that BLAS rounds none, in whatever order."""
    return A.astype(float) @ B.astype(float).T


def data(X, kind):
    """An operator of X (n x p), and whether what is beside its columns in memory is NaN."""
    if kind == "C":
        wide = np.full((len(X), X.shape[1] + 5), np.nan, X.dtype)
        wide[:, : X.shape[1]] = X
        return _core.dense(wide[:, : X.shape[1]], False)
    if kind == "F":
        tall = np.full((len(X) + 5, X.shape[1]), np.nan, X.dtype, order="F")
        tall[: len(X)] = X
        return _core.dense(tall[: len(X)], False)
    return _core.operator(sp.csr_array(X).asformat(kind))


@pytest.mark.share(3)
@each_dtype
@pytest.mark.parametrize("m", [*range(1, 18), 23, 24, 25, 47, 49, *AROUND])
def test_product_of_two(m, dtype):
    """Of any number of rows of the second; those of the result lie in a wider array, of NaN."""
    rng = np.random.default_rng(m)
    for n in EVERY if m in (4, 13) else [*range(1, 51), *AROUND]:
        depth = DEPTHS[(m + n) % len(DEPTHS)]
        A, B = integers(rng, (m, depth), dtype), integers(rng, (n, depth), dtype)
        out = np.full((m, n + 3), np.nan, dtype)
        _core.matrix_product(A, B, 2.0, out[:, :n])
        assert (out[:, :n] == 2 * exact(A, B)).all(), (n, depth)
        assert np.isnan(out[:, n:]).all(), (n, depth)


@pytest.mark.share(3)
@each_dtype
@pytest.mark.parametrize("depth", DEPTHS)
def test_product_with_itself(depth, dtype):
    """And of all rows but one with all."""
    rng = np.random.default_rng(depth)
    for m in EVERY:
        A, out = integers(rng, (m, depth), dtype), np.full((m, m + 3), np.nan, dtype)
        _core.matrix_product(A, None, 1.0, out[:, :m])
        assert (out[:, :m] == exact(A, A)).all(), m
        assert np.isnan(out[:, m:]).all(), m
        out[:] = np.nan
        _core.matrix_product(A[1:], A, 1.0, out[1:, :m])
        _core.matrix_product(A[:-1], A, 1.0, out[:-1, :m])
        assert (out[:, :m] == exact(A, A)).all() or m == 1, m
        assert np.isnan(out[:, m:]).all(), m


@pytest.mark.share(6)
@pytest.mark.parametrize("kind", ["C", "F", "csr", "csc"])
@each_dtype
@pytest.mark.parametrize("density", [1, 0.2])
def test_gram_matrix(kind, dtype, density):
    """Of all columns, of some in any order, and some rows of that."""
    rng = np.random.default_rng(3)
    for p in EVERY:
        n = DEPTHS[p % len(DEPTHS)]
        X = integers(rng, (n, p), dtype) * (rng.random((n, p)) < density)
        X[0, 0] = 1  # else there might be no entry
        op, expected = data(X.astype(dtype), kind), exact(X.T, X.T)
        assert (op.gram() == expected).all(), (p, n)
        k = 1 + p * 2 // 3
        index = rng.permutation(p)[:k]
        for rows in {1, k // 2 + 1, k}:
            assert (op.gram(index, None, rows) == expected[np.ix_(index[:rows], index)]).all(), (p, n, rows)


@pytest.mark.parametrize("kind", ["csr", "csc"])
@pytest.mark.parametrize("density", [0.4, 0.01])
def test_gram_matrix_of_more_variables_than_16_bits_count(kind, density):
    S = sp.random_array((4, 65600), density=density, format=kind, rng=np.random.default_rng(8))
    S.data = np.ceil(9 * S.data)
    op = _core.operator(S)
    index = np.arange(65600)[::-1].copy()
    assert (op.gram(index, None, 50) == (S.T.tocsr()[index[:50]] @ S).toarray()[:, index]).all()


@each_order
@each_dtype
def test_gram_matrix_by_one_read(order, dtype):
    """Each column and its negative: the means are 0, about which sums are taken."""
    rng = np.random.default_rng(4)
    for p in EVERY:
        half = integers(rng, (DEPTHS[p % len(DEPTHS)], p), dtype)
        X = np.vstack([half, -half])
        sums, G = data(X, order).moments()
        assert np.abs(sums[0]).max() < 1e-15  # so that singles need not be whole numbers
        assert_allclose(G, exact(X.T, X.T), rtol=0, atol=1e-10 if dtype == np.float64 else 2e-2)


@each_order
@each_dtype
def test_scores(order, dtype):
    """Of any number of rows, columns and vectors."""
    rng = np.random.default_rng(5)
    for n in EVERY:
        p, r = 1 + n * 7 % 67, 1 + n % 19
        X, V = np.array(integers(rng, (n, p), dtype), order=order), integers(rng, (p, r), dtype)
        index = np.sort(rng.permutation(p)[: p // 2 + 1])
        for some in (None, index):
            chosen, W = (X, V) if some is None else (X[:, some], V[: len(some)].copy())
            out = np.full((n, r), np.nan, dtype)
            _core.scores(X, some, np.zeros(W.shape[0], dtype), W, out)
            assert (out == exact(chosen, W.T)).all(), (n, p, r)


@pytest.mark.parametrize("kind", ["C", "F", "csr", "csc"])
@each_dtype
def test_products_with_blocks_of_vectors(kind, dtype):
    rng = np.random.default_rng(6)
    for count in [*range(1, 26), 47, 48, 49]:
        n, p = 1 + count * 11 % 131, 1 + count * 17 % 193
        X = integers(rng, (n, p), dtype)
        X[0, 0] = 1
        op, V, W = data(X, kind), integers(rng, (p, count), dtype), integers(rng, (n, count), dtype)
        assert (op.forward_block(V) == exact(X, V.T)).all(), (n, p, count)
        assert (op.backward_block(W) == exact(X.T, W.T)).all(), (n, p, count)
