"""Leading eigenvalues of the covariance of data, and the sum of the others, to the digits that these need."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .._limits import COPIED_ENTRIES, LANCZOS_SHARE, LAPACK_ORDER, PPCA_ORDER
from .._types import Array
from .._validation import is_operator, is_sparse, real_array
from ..linalg.eigen import largest_eigenpairs, leading_eigenpairs, products_of
from ..linalg.lapack import interruptible
from ..operators.problem import Problem

__all__ = ["leading_and_rest"]


def leading_and_rest(problem: Problem, X: Any, r: int, total: float) -> tuple[Array, Array, float]:
    """The r leading eigenvalues (operator's units), their vectors, and the sum of all others.

    The eigenvalues of X'X or XX' have errors of eps times the largest. Where that is too inaccurate, the
    products of dense data are computed in float64, and if need be the singular values of X.
    """
    op, p = problem.operator, problem.p
    eps = float(np.finfo(op.dtype).eps)
    dense = not (op.symmetric_form or is_sparse(X) or is_operator(X))
    order = p if op.symmetric_form else min(op.n, p)
    if order > PPCA_ORDER or not (dense or p == order):
        values, U = _by_lanczos(op, r)
    elif not dense:
        values, U = _eigenvectors(op.submatrix(np.arange(p)).astype(np.float64), r)
    else:
        values, U = _by_products(problem, X, r, op.dtype)
    rest, exact = total - float(values.sum()), 10 * eps * order

    def inaccurate(eps: float, digits: float) -> bool:
        return dense and order <= PPCA_ORDER and min(values[-1], rest) < digits * eps * values[0]

    if op.single and inaccurate(eps, 1e5):
        eps = float(np.finfo(np.float64).eps)
        values, U = _by_products(problem, X, r, np.dtype(np.float64))
        rest, exact = total - float(values.sum()), 10 * eps * order
    if inaccurate(eps, 1e6) and not (op.single and eps > 1e-10):
        F = _centered(problem, X, slice(None), slice(None), np.dtype(np.float64))
        _, s, Vt = interruptible(
            lambda: linalg.svd(F, full_matrices=False, overwrite_a=True, check_finite=False)
        )
        squares = s**2 / max(op.n - 1, 1)
        values, U, rest = squares[:r], Vt[:r].T, float(squares[r:].sum())
        exact = (eps * max(op.n, p)) ** 2
        assert problem.moment is not None  # the mean that was subtracted may be larger than the rest
        exact += 16 * float(np.finfo(op.dtype).eps) ** 2 * float(problem.moment.sum() / values[0])
    rank = int(np.count_nonzero(values > exact * values[0]))
    if rank < r:
        raise ValueError(f"X has rank {rank}, so n_components must be at most {rank}, not {r}")
    if r == p or rest <= exact * values[0] * (order - r + 1):
        rest = 0.0
    return values, U, rest


def _eigenvectors(A: NDArray[Any], r: int) -> tuple[Array, Array]:
    """The r largest eigenvalues and their vectors: by Lanczos where they are few of many, else by LAPACK."""
    m = len(A)
    few = m > LANCZOS_SHARE * r and m > LAPACK_ORDER
    start = np.random.default_rng(0).standard_normal(m).astype(A.dtype)
    values, U, _ = leading_eigenpairs(A, r, A if few else None, v0=start, maxiter=60)
    return np.maximum(values, 0), U


def _by_products(problem: Problem, X: Any, r: int, dtype: np.dtype[Any]) -> tuple[Array, Array]:
    """By the smaller of F'F and FF', a sum in float64 of blocks that are multiplied in `dtype`."""
    n, p = problem.operator.n, problem.p
    all_, step = slice(None), max(1, COPIED_ENTRIES // min(n, p))
    G = np.zeros((min(n, p),) * 2)
    if p <= n:
        for start in range(0, n, step):
            F = _centered(problem, X, slice(start, start + step), all_, dtype)
            G += interruptible(partial(np.matmul, F.T, F))
        G /= n - 1
        return _eigenvectors(G.astype(dtype), r)
    blocks = [slice(start, start + step) for start in range(0, p, step)]
    for columns in blocks:
        F = _centered(problem, X, all_, columns, dtype)
        G += interruptible(partial(np.matmul, F, F.T))
    G /= n - 1
    values, Z = _eigenvectors(G.astype(dtype), r)
    U = np.empty((p, r))
    for columns in blocks:
        if len(blocks) > 1:
            F = _centered(problem, X, all_, columns, dtype)
        U[columns] = F.T @ Z.astype(dtype)
    norm = np.linalg.norm(U, axis=0)
    return values, U / np.where(norm > 0, norm, 1)


def _by_lanczos(op: Any, r: int) -> tuple[Array, Array]:
    """By ARPACK from products with the operator."""
    if r >= op.p - 1:
        raise ValueError(f"n_components must be below {op.p - 1} for so large a matrix, not {r}")
    start = np.random.default_rng(0).standard_normal(op.p).astype(op.dtype)
    values, U = largest_eigenpairs(products_of(op), r, v0=start)
    return values[::-1].astype(np.float64), U[:, ::-1].astype(np.float64)


def _centered(problem: Problem, X: Any, rows: slice, columns: slice, dtype: np.dtype[Any]) -> NDArray[Any]:
    """Rows and columns of F, the centered and scaled data whose covariance the operator multiplies by."""
    a = real_array(X, "X", ndim=2, finite=False)[rows, columns].astype(dtype)
    with np.errstate(under="ignore"):
        if problem.mean is not None:
            a -= problem.mean[columns]
        if problem.weight is not None:
            a *= problem.weight[columns]
        if problem.range != 1:
            a *= problem.range
            a *= problem.range
        if problem.row_weight is not None:
            a *= problem.row_weight[rows, None]
    return a
