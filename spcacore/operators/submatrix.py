"""Columns of A, rows that searches ask for again and again, and how large a submatrix may be formed."""

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
from .._types import AnyArray, Array, Index
from .problem import Problem

__all__ = ["KeptRows", "Rows", "columns_cost", "columns_of", "largest_submatrix", "rows_of", "whole_matrix"]

_SPARE_ROWS = 256  # beside those of a support, which may leave it and come back


def largest_submatrix(op: _core.Operator) -> int:
    """The largest order at which A[S, S] is formed rather than applied."""
    if op.symmetric_form:
        return SUBMATRIX_ORDER
    return min(SUBMATRIX_ORDER, SUBMATRIX_ENTRIES // op.m, int((SUBMATRIX_WORK / op.m) ** 0.5))


def columns_of(op: _core.Operator, index: Index) -> AnyArray:
    """A[:, index]; of a stored matrix each column by itself, since products would read all of it."""
    if op.symmetric_form and not op.by_passes:
        W, one = np.empty((op.p, len(index)), op.dtype, order="F"), np.ones(1, op.dtype)
        for i in range(len(index)):
            W[:, i] = op.apply(index[i : i + 1], one)
        return W
    V = np.zeros((op.p, len(index)), op.dtype, order="F")
    V[index, np.arange(len(index))] = 1
    return op.apply_block(V)


def columns_cost(problem: Problem) -> float:
    """Of all columns of A, in multiplications."""
    p = float(problem.p)
    return COLUMN_PASSES * p * p if problem.operator.symmetric_form else 2.0 * p * problem.cost


def rows_of(op: _core.Operator, S: Index) -> AnyArray:
    """A[S, :]."""
    C = np.empty((len(S), op.p), op.dtype)
    step = max(len(S), 1) if op.by_passes else 1 if op.symmetric_form else 4  # of data, four in one read
    for start in range(0, len(S), step):
        part = S[start : start + step]
        if len(part) == 1:  # reads less, with the same bits
            C[start] = op.apply(part, np.ones(1, op.dtype))
            continue
        V = np.zeros((op.p, len(part)), op.dtype, order="F")
        V[part, np.arange(len(part))] = 1
        C[start : start + step] = op.apply_block(V).T
    return C


class Rows:
    """Rows of A, each computed once as long as they fit a bound."""

    def __init__(self, op: _core.Operator) -> None:
        self.op, self._known = op, dict[int, AnyArray]()

    def would_read(self, S: Index) -> bool:
        """Whether more of them would be computed from data than one product costs."""
        return not self.op.symmetric_form and len(self._known.keys() & S.tolist()) < len(S) - 4

    def of(self, S: Index) -> AnyArray:
        """A[S, :]."""
        new = [j for j in S.tolist() if j not in self._known]
        if (len(self._known) + len(new)) * self.op.p > ROWS_ENTRIES:
            self._known = {j: self._known[j] for j in S.tolist() if j in self._known}
        self._known |= zip(new, rows_of(self.op, np.array(new, np.intp)), strict=True)
        return np.stack([self._known[j] for j in S.tolist()])


def whole_matrix(op: _core.Operator) -> Array:
    """A, from its products a few at a time where it is large."""
    if op.p <= largest_submatrix(op):
        return op.submatrix(np.arange(op.p)).astype(np.float64)
    A = np.empty((op.p, op.p))
    for start in range(0, op.p, 32):
        A[:, start : start + 32] = op.apply_block(np.eye(op.p, min(32, op.p - start), -start))
    return A


class KeptRows:
    """Rows of matrices of order p, kept once they were asked for."""

    def __init__(self, rows: Callable[[Index], tuple[Array, ...]], p: int):
        self.rows, self.all = rows, np.arange(p)
        self.kept: dict[int, tuple[Array, ...]] = {}

    def between(self, S: Index, T: Index | None = None) -> list[Array]:
        """Rows S, columns T or all, of each of the matrices."""
        members = S.tolist()
        new = [j for j in members if j not in self.kept]
        if new or not members:
            if len(self.kept) > len(members) + _SPARE_ROWS:
                self.kept, new = {}, members
            parts = self.rows(np.array(new, np.intp))
            self.kept.update(zip(new, zip(*parts, strict=True), strict=True))
            if not members:
                return [part[:, self.all if T is None else T] for part in parts]
        each = zip(*(self.kept[j] for j in members), strict=True)
        return [np.array(rows if T is None else [row[T] for row in rows]) for rows in each]
