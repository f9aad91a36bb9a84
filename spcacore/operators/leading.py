"""Leading eigenvectors of an operator."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import ALL_VECTORS_ORDER, DENSE_WORK, SAMPLES_BY_PRODUCT, WIDE_SAMPLES
from .._messages import counted, warn
from ..linalg.eigen import leading_eigenvectors
from ..linalg.lapack import interruptible
from ..linalg.orthogonal import orthonormal, unit_columns
from .problem import Problem

__all__ = ["cheap_dense_shares", "dense_shares", "leading_vectors", "negligible", "shares_when_asked"]


def leading_vectors(problem: Problem, r: int) -> NDArray[np.float64]:
    """The r leading eigenvectors of the operator; fewer, with a warning, where its rank is smaller."""
    if problem.diagonal is not None and not problem.diagonal.any():
        raise ValueError(problem.emptiness)
    op = problem.operator
    by_samples = _has_few_samples(op, r)
    values, vectors = leading_eigenvectors(_of_samples(op) if by_samples else op, r)
    rank = int(np.count_nonzero(values > negligible(problem, values[0])))
    if rank == 0:
        raise ValueError(problem.emptiness)
    if rank < r:
        warn(f"X has rank {rank}: found only {rank} of the {counted(r, 'component')} requested")
    if by_samples:  # F'u / ||F'u||
        V = op.backward_block(np.asfortranarray(vectors[:, :rank], op.dtype)).astype(np.float64, copy=False)
        return np.asfortranarray(orthonormal(unit_columns(V)))
    return np.asfortranarray(vectors[:, :rank])


def _has_few_samples(op: _core.Operator, r: int) -> bool:
    """Whether FF' costs less than the products with A for which ARPACK would ask."""
    if op.symmetric_form or not op.in_memory or not op.dense or op.t > 0 or op.p <= ALL_VECTORS_ORDER:
        return False
    return op.n <= min(op.p, WIDE_SAMPLES, SAMPLES_BY_PRODUCT * max(2 * r + 1, 20))


def _of_samples(op: _core.Operator) -> _core.Operator:
    """FF', with the eigenvalues of A = F'F."""
    return _core.dense(op.unscreened().outer().astype(np.float64), True, None, None, 1.0, 1.0)


def negligible(problem: Problem, first: float = 0.0) -> float:
    """A variance that may be rounding alone, given the largest one where the total is not known."""
    total = first if problem.diagonal is None else float(problem.diagonal.sum())
    return 1e3 * float(np.finfo(problem.operator.dtype).eps) * total


def dense_shares(problem: Problem, r: int) -> NDArray[np.float64]:
    """Shares of the total variance of the r leading ordinary components; 0 beyond the rank."""
    return _shares_of(problem, r)()


def _shares_of(problem: Problem, r: int) -> Callable[[], NDArray[np.float64]]:
    """The same as a function, which keeps no more than products of variables or of samples."""
    assert problem.diagonal is not None
    total = float(problem.diagonal.sum())
    if not total > 0:
        return lambda: np.zeros(r)
    op = problem.operator.unscreened()
    square = op.symmetric_form or op.n > min(op.p, WIDE_SAMPLES)
    if square and op.p > ALL_VECTORS_ORDER:
        values = leading_eigenvectors(op, min(r, op.p))[0]
        return lambda: _shares(values, total, r)
    products = op.submatrix(np.arange(op.p)) if square else op.outer()

    def eigenvalues() -> NDArray[np.float64]:
        ascending = np.asarray(np.linalg.eigvalsh(products.astype(np.float64)), np.float64)
        return ascending[: -r - 1 : -1]

    small = len(products) <= ALL_VECTORS_ORDER  # which takes less than a thread of its own
    return lambda: _shares(eigenvalues() if small else interruptible(eigenvalues), total, r)


def _shares(values: NDArray[np.float64], total: float, r: int) -> NDArray[np.float64]:
    shares = np.zeros(r)
    shares[: len(values)] = np.maximum(values, 0) / total
    return shares


def cheap_dense_shares(problem: Problem, r: int) -> NDArray[np.float64] | None:
    """The same where they take some milliseconds, else None."""
    later = shares_when_asked(problem, r)
    return None if later is None else later()


def shares_when_asked(problem: Problem, r: int) -> Callable[[], NDArray[np.float64]] | None:
    """What computes them, where that takes some milliseconds, else None."""
    order = min(problem.p, problem.n_samples or problem.p)
    entries = problem.cost if order == problem.p else order * problem.p  # products of rows fill sparse ones
    in_memory = not problem.operator.by_passes
    cheap = order <= ALL_VECTORS_ORDER and entries * order <= DENSE_WORK
    return _shares_of(problem, r) if cheap and in_memory and problem.diagonal is not None else None
