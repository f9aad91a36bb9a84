"""A block of vectors at once: against explicit NumPy matrices, and every column alike."""

import numpy as np
import pytest
import scipy.sparse
from in_turn import each_dtype, each_order
from numpy.testing import assert_allclose, assert_array_equal
from oracles import covariance, deflated, normal, sparse_direction

from spcacore.operators.deflation import DEFLATIONS
from spcacore.operators.deflation import DeflatedOperator as Deflated
from spcacore.operators.inputs import as_problem

# rows in one block and in many, in tiles and lines that are cut short, too many or too long to be cached
SHAPES = [(40, 23), (1, 5), (7, 1), (3, 2501), (131, 517), (701, 1300), (5003, 600), (30, 160001)]


def data(n, p, dtype, order):
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, p), np.float32)
    X += rng.integers(-2, 3, p).astype(np.float32)
    X[:, p // 2] = 4.5  # a constant column
    return np.asarray(X.astype(dtype), order=order)


def tolerance(dtype, A_v):
    return (1e-11 if dtype == np.float64 else 2e-4) * np.abs(A_v).max()


def columns(op, V):
    return np.stack([op.apply(None, np.ascontiguousarray(v)) for v in V.T], axis=1)


def check_halves(op, V, U):
    """The bits of one column at a time."""
    f, y = op.forward_block(V), op.backward_block(U)
    for c in range(V.shape[1]):
        assert_array_equal(f[:, c], op.forward(None, np.ascontiguousarray(V[:, c])))
        assert_array_equal(y[:, c], op.backward(np.ascontiguousarray(U[:, c])))


@pytest.mark.share(8)
@each_dtype
@each_order
@pytest.mark.parametrize(("n", "p"), SHAPES)
def test_dense(n, p, order, dtype):
    X = data(n, p, dtype, order)
    Z = X.astype(np.float64, copy=True)
    Z -= Z.mean(axis=0)
    problem = as_problem(X)
    small = n * p < 1e6
    V = normal(1, p, 30 if small else 6).astype(dtype)
    expected = Z.T @ (Z @ V) / max(n - 1, 1)
    Y = problem.operator.apply_block(V)
    assert Y.dtype == dtype
    assert_allclose(problem.unit * Y, expected, atol=tolerance(dtype, expected) + 1e-300)
    for b in range(0, 30) if small else (1, 2, 3):  # the same bits whatever the other columns
        assert_array_equal(problem.operator.apply_block(V[:, :b]), Y[:, :b])
        assert_array_equal(problem.operator.apply_block(V[:, b : b + 1]), Y[:, b : b + 1])
    assert_array_equal(columns(problem.operator, V[:, :5]), Y[:, :5])
    if (n, p) != SHAPES[-1]:
        U = normal(2, n, 6).astype(dtype)
        check_halves(problem.operator, V[:, :6], U)


@pytest.mark.share(8)
@pytest.mark.parametrize("method", DEFLATIONS)
@each_dtype
@each_order
@pytest.mark.parametrize(("n", "p"), [(131, 517), (5003, 300)])
def test_deflations(n, p, order, dtype, method):
    X, scale = data(n, p, dtype, order), order == "F"
    A = covariance(X, not scale, scale)
    problem = as_problem(X, center=not scale, scale=scale)
    state = Deflated.from_problem(problem, DEFLATIONS[method])
    rng = np.random.default_rng(2)
    earlier = []
    for _ in range(3):
        x = sparse_direction(rng, p, dtype)
        A = deflated(A, x.astype(np.float64), method, earlier)
        earlier.append(x.astype(np.float64))
        state = state.deflate(np.flatnonzero(x), x[x != 0])
    V, U = (rng.standard_normal((size, 6)).astype(dtype) for size in (p, n))
    Y = state.operator.apply_block(V)
    assert_allclose(problem.unit * Y, A @ V, atol=tolerance(dtype, A @ V))
    assert_array_equal(Y, columns(state.operator, V))
    check_halves(state.operator, V, U)


@pytest.mark.share(4)
@each_dtype
@pytest.mark.parametrize("wide", [np.int32, np.int64])
@pytest.mark.parametrize("order", ["csr", "csc"])
def test_compressed(order, wide, dtype, rng):
    """One read of the data for many columns, with the bits of one column at a time."""
    for n, p in ((70, 40), (301, 517)):
        Z = (rng.random((n, p)) < 0.2) * rng.standard_normal((n, p))
        Z[3] = Z[:, 5] = 0
        X = scipy.sparse.csr_array(Z.astype(dtype)).asformat(order)
        X.indices, X.indptr = X.indices.astype(wide), X.indptr.astype(wide)
        for options in ({}, {"scale": True}, {"center": False}):
            A = covariance(Z, **options)
            op = as_problem(X, **options).operator
            unit = as_problem(X, **options).unit
            V, U = (rng.standard_normal((size, 90)).astype(dtype) for size in (p, n))
            for b in (0, 1, 3, 4, 8, 13, 20, 21, 40, 90):
                Y = op.apply_block(V[:, :b])
                assert_allclose(unit * Y, A @ V[:, :b], atol=tolerance(dtype, A @ V))
                assert_array_equal(Y, columns(op, V[:, :b]) if b else Y)
                check_halves(op, V[:, :b], U[:, :b])


def test_more_lines_than_are_read_at_a_time(rng):
    n, p = 300001, 5
    Z = (rng.random((n, p)) < 0.2) * rng.integers(-3, 4, (n, p)).astype(float)
    problem = as_problem(scipy.sparse.csr_array(Z), center=False)
    expected = Z.T @ Z / (n - 1)
    V = rng.standard_normal((p, 3))
    assert_allclose(problem.unit * problem.operator.apply_block(V), expected @ V)
    assert_allclose(problem.unit * problem.operator.submatrix(np.arange(p)), expected)
    assert_allclose(problem.unit * columns(problem.operator, V), expected @ V)


@each_order
def test_overflow_and_wrong_shapes(order):
    op = as_problem(data(40, 23, np.float64, order)).operator
    V = np.ones((23, 5))
    V[3, 4] = np.inf
    with pytest.raises(ValueError, match="not finite"):
        op.apply_block(V)
    with pytest.raises(ValueError, match="24 rows for 23 variables"):
        op.apply_block(np.ones((24, 2)))
    with pytest.raises(ValueError, match="rows"):
        op.backward_block(np.ones((41, 2)))
    assert op.apply_block(np.ones((23, 0))).shape == (23, 0)
