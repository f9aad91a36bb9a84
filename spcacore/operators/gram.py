"""A as a matrix, formed in one pass over tall data: the problem that has it.

Also here: leading eigenvectors of operators, and rows and submatrices of A.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

from .. import _core
from .._limits import (
    ALL_VECTORS_ORDER,
    COLUMN_PASSES,
    DENSE_WORK,
    GRAM_CANCELLATION,
    GRAM_LEFT,
    GROUP_BYTES,
    ROUNDING_LEFT,
    ROWS_ENTRIES,
    SAMPLES_BY_PRODUCT,
    SUBMATRIX_ENTRIES,
    SUBMATRIX_ORDER,
    SUBMATRIX_WORK,
    WIDE_SAMPLES,
)
from .._messages import counted, warn
from .._records import record, replaced
from .._types import AnyArray, Array, Index
from ..linalg.eigen import leading_eigenpairs, leading_eigenvectors
from ..linalg.orthogonal import orthonormal, symmetrized, unit_columns
from ..linalg.scaling import eps_of
from .problem import Problem, Screening
from .statistics import Standardization, Statistics


def hides_variance(problem: Problem, most: float, index: Index | slice = slice(None)) -> bool:
    """Whether one of these variables has a second moment of more than `most` times its variance.

    The square of the mean is subtracted from the moment, so that the variance loses digits.
    """
    variance = problem.variances[index]
    return bool(((problem.known_moment[index] > most * variance) & (variance > 0)).any())


def keeps_digits(problem: Problem, dense: bool, screening: str) -> bool:
    """Whether A would have the digits of X, so that it may be formed.

    It would not, if entries are missing, or if some variance of sparse X is much smaller than the second
    moment from which the square of the mean is subtracted. With screening="gram", where A must be formed,
    that is an error.
    """
    digits = dense or not hides_variance(problem, GRAM_CANCELLATION)
    if screening == "gram" and not (digits and problem.filled is None):
        what = "NaN entries" if digits else "columns whose mean hides their variance"
        raise ValueError(f"screening='gram' cannot be combined with X, which has {what}: leave it out")
    return digits and problem.filled is None


def with_matrix(problem: Problem, A: AnyArray, passes: int) -> Problem:
    """Return the problem of data with the matrix A as its operator."""
    A = np.ascontiguousarray(A, problem.operator.dtype)
    told = partial(Screening, "gram", float(passes))
    operator = _core.dense(A, True)
    return replaced(problem, operator=operator, cost=problem.p, screening=told, form=False, data=problem)


def with_moments(problem: Problem, found: Statistics, M: Array, treatment: Standardization) -> Problem:
    """Return the problem with A formed from M, the products of rows about their means."""
    if not treatment.center or treatment.mean is not None:
        d = found.mean if treatment.mean is None else found.mean - treatment.mean
        M = M + found.n * np.multiply.outer(d, d)
    weight = np.full(problem.p, problem.affine.range**2)
    if problem.affine.weight is not None:
        weight *= problem.affine.weight
    return with_matrix(problem, M / treatment.degrees * weight * weight[:, None], 1)


def formed(problem: Problem, report: Callable[[int], object] | None = None) -> Problem:
    """Return the problem with A formed, if it is to be; as it is if the callback ends that."""
    A = problem.operator.gram(None, report) if problem.form else None
    return problem if A is None else with_matrix(problem, A, 2)


def is_rounding(problem: Problem, variance: float) -> bool:
    """Whether a variance is too small for A to tell it well, while the data know more of it."""
    if problem.data is None:
        return False
    return not variance > GRAM_LEFT.of(problem.operator.dtype) * float(problem.variances.max())


# ---- leading eigenvectors of an operator ----------------------------------------------------------------


def leading_vectors(problem: Problem, r: int) -> Array:
    """Return the r leading eigenvectors of the operator; fewer, with a warning, where its rank is smaller."""
    if problem.diagonal is not None and not problem.diagonal.any():
        raise ValueError(problem.emptiness)
    op = problem.operator
    values, vectors = leading_pairs(op, r)
    rank = int(np.count_nonzero(values > negligible(problem, values[0])))
    if rank == 0:
        raise ValueError(problem.emptiness)
    if rank < r:
        warn(f"X has rank {rank}: found only {rank} of the {counted(r, 'component')} requested")
    return np.asfortranarray(vectors[:, :rank])


def leading_pairs(op: _core.Operator, r: int) -> tuple[Array, Array]:
    """Return the r largest eigenvalues of an operator, and their vectors; by FF' where samples are few."""
    if not _has_few_samples(op, r):
        return leading_eigenvectors(op, r)
    samples = _core.dense(op.unscreened().outer().astype(np.float64), True)  # FF' has the same eigenvalues
    values, vectors = leading_eigenvectors(samples, r)
    # v = F'u / ||F'u||
    V = op.backward_block(np.asfortranarray(vectors, op.dtype)).astype(np.float64, copy=False)
    return values, np.asfortranarray(orthonormal(unit_columns(V)))


def _has_few_samples(op: _core.Operator, r: int) -> bool:
    """Whether FF' costs less than the products with A that ARPACK would ask for."""
    if op.symmetric_form or not op.in_memory or not op.dense or op.t > 0 or op.p <= ALL_VECTORS_ORDER:
        return False
    return op.n <= min(op.p, WIDE_SAMPLES, SAMPLES_BY_PRODUCT * max(2 * r + 1, 20))


def negligible(problem: Problem, first: float = 0.0) -> float:
    """Return the variance below which rounding may be all.

    It is a share of the total variance or, if that is not known, of `first`, the largest one.
    """
    total = first if problem.diagonal is None else float(problem.diagonal.sum())
    return ROUNDING_LEFT.of(problem.operator.dtype) * total


def dense_shares(problem: Problem, r: int) -> Callable[[], Array]:
    """Return a function that returns the shares of the total variance of the r leading ordinary components.

    They are 0 beyond the rank. The function keeps no more of the data than products of variables or of
    samples.
    """
    total = float(problem.variances.sum())
    if not total > 0:
        return lambda: np.zeros(r)

    def shares(values: Array) -> Array:
        out = np.zeros(r)
        out[: len(values)] = np.maximum(values, 0) / total
        return out

    op = problem.operator.unscreened()
    square = op.symmetric_form or op.n > min(op.p, WIDE_SAMPLES)
    if square and op.p > ALL_VECTORS_ORDER:
        values = leading_eigenvectors(op, min(r, op.p))[0]
        return lambda: shares(values)
    products = op.submatrix(np.arange(op.p)) if square else op.outer()
    return lambda: shares(leading_eigenpairs(products.astype(np.float64), min(r, len(products)))[0])


def shares_when_asked(problem: Problem, r: int) -> Callable[[], Array] | None:
    """Return `dense_shares`, if these take only milliseconds; else None."""
    order = problem.most_components
    entries = problem.cost if order == problem.p else order * problem.p  # products of rows fill sparse ones
    in_memory = not problem.operator.by_passes
    cheap = order <= ALL_VECTORS_ORDER and entries * order <= DENSE_WORK
    return dense_shares(problem, r) if cheap and in_memory and problem.diagonal is not None else None


# ---- rows of A, kept for searches that ask again and again, and how large a submatrix may be ----------

_SPARE_ROWS = 256  # kept beside those of a support, because variables may leave it and come back
_ROWS_AT_A_TIME = 32  # computed from data in memory
_MET = 16  # the first value of `met`, so that the first rows bring others too


def largest_submatrix(op: _core.Operator) -> int:
    """Return the largest order at which A[S, S] is formed; beyond it only products with A are used."""
    if op.symmetric_form:
        return SUBMATRIX_ORDER
    return min(SUBMATRIX_ORDER, SUBMATRIX_ENTRIES // op.m, int((SUBMATRIX_WORK / op.m) ** 0.5))


def product_error(op: Any, k: int = 0) -> float:
    """Return gamma such that an entry of A = F'F by `rows_of` is off by at most gamma |F_i|'|F_j|.

    Each entry is a sum of products, of rows in order (Higham 2002, section 3.5). Low-rank terms and a further
    sum of k numbers are added. The sums of blocks of rows are added in double precision.
    """
    sums = (op.block_rows if op.by_passes else op.m) + 64 + k + op.p // 64
    return (1 + op.t) * sums * eps_of(op.dtype)


def formed_error(op: _core.Operator) -> float:
    """Return the same gamma for `Operator.submatrix`, which adds the sums of tiles of rows (tile.c).

    A sum has at most 512 products, and there are at most m / 128 + 1 sums.
    """
    sums = min(op.m, 512) + op.m // 128 + 16
    return (1 + op.t) * sums * eps_of(op.dtype)


def is_given(op: _core.Operator) -> bool:
    """Whether A is a covariance of the caller, whose entries are not computed from data."""
    return bool(op.symmetric_form and not op.by_passes)


def columns_cost(problem: Problem) -> float:
    """Return what all columns of A cost, in multiplications."""
    p = float(problem.p)
    return COLUMN_PASSES * p * p if problem.operator.symmetric_form else 2.0 * p * problem.cost


def rows_at_once(op: _core.Operator) -> bool:
    """Whether several rows of A cost less together than one by one, as a product serves them all."""
    return op.by_passes or (op.in_memory and op.factored)


def rows_of(op: _core.Operator, S: Index) -> AnyArray:
    """Return A[S, :]. A stored matrix gives each row by itself, since products would read all of it."""
    C = np.empty((len(S), op.p), op.dtype)
    step = max(len(S), 1) if op.by_passes else 1 if op.symmetric_form else _ROWS_AT_A_TIME
    for start in range(0, len(S), step):
        part = S[start : start + step]
        if len(part) == 1:
            C[start] = op.apply(part, np.ones(1, op.dtype))
        elif not op.by_passes and op.in_memory and op.factored:
            C[start : start + step] = op.backward_block(op.columns(part).T).T
        else:
            V = np.zeros((op.p, len(part)), op.dtype, order="F")
            V[part, np.arange(len(part))] = 1
            C[start : start + step] = op.apply_block(V).T
    return C


def symmetric_submatrix(
    op: _core.Operator, index: Index | None = None, check: Callable[[int], object] = lambda _: None
) -> Array:
    """Return A between some variables, or all, in double precision, and symmetric to the last bit.

    Of many columns of data it comes in blocks, so that these are not all copied at once. `check` is called
    before each block, and may raise to end it.
    """
    index = np.arange(op.p) if index is None else index
    q, most = len(index), max(64, largest_submatrix(op))
    step = q if op.symmetric_form or q <= most else most // 2
    A, blocks = np.empty((q, q)), [slice(s, s + step) for s in range(0, q, max(step, 1))]
    for b, rows in enumerate(blocks):
        for columns in blocks[b:]:
            check(0)
            if rows is columns:
                A[rows, rows] = op.submatrix(index[rows])
                continue
            square, count = op.submatrix(np.append(index[rows], index[columns])), len(index[rows])
            A[rows, columns] = square[:count, count:]
            A[columns, rows] = A[rows, columns].T
    return symmetrized(A)


def product_of_columns(count: int, factor: float, most: int, parts: Iterable[AnyArray]) -> AnyArray:
    """Return the first `count` rows of A[index, index] from columns of all blocks, which come as rows.

    Those of small blocks are multiplied together: one product of many rows is faster than many of few rows,
    and leaves fewer sums to be added in double precision.
    """
    total: AnyArray | None = None
    for C in _in_lots(parts, most):
        rows = np.empty((count, len(C)), C.dtype)
        _core.matrix_product(C[:count], None, factor, rows[:, :count])
        _core.matrix_product(C[:count], C[count:], factor, rows[:, count:])
        del C  # before the next is read
        if total is None:
            total = rows
        else:
            total = np.add(total, rows, out=total if total.dtype == np.float64 else None, dtype=np.float64)
    assert total is not None
    return total


def _in_lots(parts: Iterable[AnyArray], most: int) -> Iterator[AnyArray]:
    """Yield these matrices side by side, so many that they have `most` columns or `GROUP_BYTES`."""
    held: list[AnyArray] = []
    for part in parts:
        held.append(part)
        del part
        if sum(one.shape[1] for one in held) >= most or sum(one.nbytes for one in held) >= GROUP_BYTES:
            yield _side_by_side(held)
    if held:
        yield _side_by_side(held)


def _side_by_side(held: list[AnyArray]) -> AnyArray:
    """Return these matrices side by side, and forget them."""
    out = held[0] if len(held) == 1 else np.concatenate(held, axis=1)
    held.clear()
    return out


@record
class KeptRows:
    """Rows of matrices of order p, kept once they were asked for.

    `rows` computes them, for several matrices at once. `spare` rows are kept beside those of the last
    support. `met` counts how often all rows that were asked for were known.
    """

    rows: Callable[[Index], tuple[AnyArray, ...]]
    p: int
    spare: int = _SPARE_ROWS

    def __post_init__(self) -> None:
        self.all: Index = np.arange(self.p)
        self.kept: dict[int, tuple[AnyArray, ...]] = {}
        self.met: int = _MET

    def lacking(self, S: Index) -> list[int]:
        """Return the variables of S whose rows are not kept."""
        return [j for j in S.tolist() if j not in self.kept]

    def between(
        self, S: Index, T: Index | None = None, next_to: Callable[[int], Index] | None = None
    ) -> list[AnyArray]:
        """Return the rows S, and columns T or all, of each of the matrices.

        If rows must be computed, others that are likely to be asked for next come with them: `next_to(most)`
        names these. Their number is twice the number of questions since the last time.
        """
        members, new = S.tolist(), self.lacking(S)
        if next_to is not None:
            self.met += not new
        if new and next_to is not None:
            likely = self.lacking(next_to(min(2 * self.met, self.spare)))
            new, self.met = [*dict.fromkeys(new + likely)], 0
        if new or not members:
            if len(self.kept) > len(members) + self.spare:
                self.kept = {j: self.kept[j] for j in members if j in self.kept}
            parts = self.rows(np.array(new, np.intp))
            self.kept.update(zip(new, zip(*parts, strict=True), strict=True))
            if not members:
                return [part[:, self.all if T is None else T] for part in parts]
        each = zip(*(self.kept[j] for j in members), strict=True)
        return [np.array(rows if T is None else [row[T] for row in rows]) for rows in each]


def kept_rows(op: _core.Operator) -> KeptRows:
    """Return the `KeptRows` of A."""
    return KeptRows(lambda S: (rows_of(op, S),), op.p, ROWS_ENTRIES // op.p)
