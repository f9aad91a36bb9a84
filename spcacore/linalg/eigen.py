"""Leading eigenpairs by LAPACK, or by ARPACK from products."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import ALL_VECTORS_ORDER


def leading_eigenvectors(op: _core.Operator, r: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The r largest eigenvalues, descending, and their vectors: by LAPACK, or by ARPACK from products."""
    if op.p <= ALL_VECTORS_ORDER or r >= op.p - 1:
        values, vectors = np.linalg.eigh(op.submatrix(np.arange(op.p)).astype(np.float64))
        return values[::-1][:r], vectors[:, ::-1][:, :r]
    start = np.random.default_rng(0).standard_normal(op.p).astype(op.dtype)
    values, vectors = largest_eigenpairs(
        products_of(op), r, v0=start, tol=1e-8 if op.dtype == np.float64 else 1e-4
    )
    return values[::-1].astype(np.float64), vectors[:, ::-1].astype(np.float64)


def products_of(op: Any) -> Any:
    """The operator as a `LinearOperator` of SciPy."""
    from scipy.sparse.linalg import LinearOperator

    return LinearOperator(
        (op.p, op.p), dtype=op.dtype,
        matvec=lambda v: op.apply(None, np.ascontiguousarray(v.ravel(), op.dtype)),
    )  # fmt: skip


def largest_eigenpairs(A: Any, count: int, **options: Any) -> tuple[NDArray[Any], NDArray[Any]]:
    """The largest eigenvalues and their vectors, the same at each call: SciPy may restart at random."""
    from scipy.sparse.linalg import eigsh

    if "rng" in inspect.signature(eigsh).parameters:
        options["rng"] = np.random.default_rng(0)
    return eigsh(A, count, which="LA", **options)
