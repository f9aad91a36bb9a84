"""Rows of A, kept for searches that ask for them again and again, and how large a submatrix may be formed."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import _core
from .._limits import (
    COLUMN_PASSES,
    ROWS_ENTRIES,
    SUBMATRIX_ENTRIES,
    SUBMATRIX_ORDER,
    SUBMATRIX_WORK,
)
from .._records import record
from .._types import AnyArray, Array, Index
from ..linalg.orthogonal import symmetrized
from ..linalg.scaling import eps_of
from .problem import Problem

_SPARE_ROWS = 256  # beside those of a support, which may leave it and come back
_ROWS_AT_A_TIME = 32  # of data in memory
_MET = 16  # rows that had come before, as if they had been asked for, at first


def largest_submatrix(op: _core.Operator) -> int:
    """The largest order at which A[S, S] is formed rather than applied."""
    if op.symmetric_form:
        return SUBMATRIX_ORDER
    return min(SUBMATRIX_ORDER, SUBMATRIX_ENTRIES // op.m, int((SUBMATRIX_WORK / op.m) ** 0.5))


def product_error(op: _core.Operator, k: int = 0) -> float:
    """gamma of `rows_of`: an entry of A = F'F is off by at most gamma |F_i|'|F_j| (Higham 2002, section 3.5).

    Each is a sum of m products, of rows in turn; low-rank terms and a further sum of k numbers are added.
    """
    sums = op.m + 64 + k + op.p // 64
    return (1 + op.t) * sums * eps_of(op.dtype)


def formed_error(op: _core.Operator) -> float:
    """gamma of `Operator.submatrix`, likewise: of rows in tiles, whose sums are then added (tile.c).

    A sum has at most 512 products, and of these there are at most m / 128 + 1.
    """
    sums = min(op.m, 512) + op.m // 128 + 16
    return (1 + op.t) * sums * eps_of(op.dtype)


def columns_cost(problem: Problem) -> float:
    """Of all columns of A, in multiplications."""
    p = float(problem.p)
    return COLUMN_PASSES * p * p if problem.operator.symmetric_form else 2.0 * p * problem.cost


def rows_at_once(op: _core.Operator) -> bool:
    """Whether several rows of A cost little more than one."""
    return op.by_passes or (op.in_memory and op.dense and not (op.symmetric_form or op.t))


def rows_of(op: _core.Operator, S: Index) -> AnyArray:
    """A[S, :]; of a stored matrix each row by itself, since products would read all of it."""
    C = np.empty((len(S), op.p), op.dtype)
    step = max(len(S), 1) if op.by_passes else 1 if op.symmetric_form else _ROWS_AT_A_TIME
    for start in range(0, len(S), step):
        part = S[start : start + step]
        if len(part) == 1:
            C[start] = op.apply(part, np.ones(1, op.dtype))
        elif rows_at_once(op) and not op.by_passes:
            C[start : start + step] = op.backward_block(op.columns(part).T).T
        else:
            V = np.zeros((op.p, len(part)), op.dtype, order="F")
            V[part, np.arange(len(part))] = 1
            C[start : start + step] = op.apply_block(V).T
    return C


def symmetric_submatrix(
    op: _core.Operator, index: Index | None = None, check: Callable[[int], object] = lambda _: None
) -> Array:
    """A between some variables, or all, in double precision, and symmetric to the last bit.

    Of many columns of data it comes in blocks, so that these are not all copied; `check` may end it before
    each.
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
            both, count = op.submatrix(np.append(index[rows], index[columns])), len(index[rows])
            A[rows, columns] = both[:count, count:]
            A[columns, rows] = A[rows, columns].T
    return symmetrized(A)


@record
class KeptRows:
    """Rows of matrices of order p, kept once they were asked for; some beside those of the last support."""

    rows: Callable[[Index], tuple[AnyArray, ...]]
    p: int
    spare: int = _SPARE_ROWS

    def __post_init__(self) -> None:
        self.all: Index = np.arange(self.p)
        self.kept: dict[int, tuple[AnyArray, ...]] = {}
        self.met: int = _MET

    def lacking(self, S: Index) -> list[int]:
        """Those of S that would be computed."""
        return [j for j in S.tolist() if j not in self.kept]

    def between(
        self, S: Index, T: Index | None = None, next_to: Callable[[int], Index] | None = None
    ) -> list[AnyArray]:
        """Rows S, columns T or all, of each of the matrices.

        Those likely to be asked for next may come with them: twice as many as have been since the last time.
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
    """Those of A."""
    return KeptRows(lambda S: (rows_of(op, S),), op.p, ROWS_ENTRIES // op.p)
