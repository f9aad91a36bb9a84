"""Single variables to start from, by their columns of A: how much one step from each promises.

From the variable j a search comes in one step to the sparse vector that suits y = A e_j / sqrt(A_jj) best,
and what it promises there is a bound from below on the objective: with k nonzeros x'Ax >= (x'y)^2, the sum of
the k largest y_i^2; of generalized power the objective itself. Variances alone do not tell where all are
equal, as in a correlation matrix.
"""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from .. import _core
from .._limits import (
    COLUMN_BLOCK,
    COLUMN_ORDER,
    COLUMN_STARTS_LEAST,
    COLUMN_WORK,
    SAME_ENDS,
    SOLVER_TOL,
    START_WORK,
    WORKING_SET_FACTOR,
    WORKING_SET_PROBES,
    WORKING_SET_START,
)
from .._records import record
from .._types import AnyArray, Array, DType, Index
from ..linalg.scaling import descending, roots
from ..operators.deflation import DeflatedOperator
from ..operators.field import can_be_formed, ground_of
from ..supports.admissible import Supports
from .refitting import Steps
from .solution import Report
from .starts import promising_variables


@record
class LargestEntries:
    """A unit vector of so many nonzeros is sought."""

    count: int

    def values(self, Y: Array) -> Array:
        """The bound on the objective from each row of Y."""
        return np.square(_core.largest_norms(Y, np.arange(len(Y)), min(self.count, Y.shape[1])))

    def reached(self, y: Array) -> Index:
        """The variables to which a step leads."""
        return _core.select_largest(np.ascontiguousarray(y), min(self.count, len(y)))


@record
class ThresholdedEntries:
    """The same of generalized power at a threshold, by the l0 or the l1 norm."""

    l0: bool
    threshold: float

    def values(self, Y: Array) -> Array:
        if self.l0:
            return np.maximum(Y * Y - self.threshold, 0).sum(axis=1)
        excess = np.maximum(np.abs(Y) - self.threshold, 0)
        return np.einsum("ij,ij->i", excess, excess)

    def reached(self, y: Array) -> Index:
        return np.flatnonzero((y * y if self.l0 else np.abs(y)) > self.threshold)


@record
class AllowedEntries:
    """A unit vector on a support that is allowed is sought."""

    supports: Supports

    def values(self, Y: Array) -> Array:
        """The same from each row of Y or its negative, whichever has more of the signs."""
        values = self._values(Y)
        return values if self.supports.signs is None else np.maximum(values, self._values(-Y))

    def _values(self, Y: Array) -> Array:
        supports = self.supports
        weight = supports.per_unit(np.square(supports.projected(Y)).T)
        free = supports.fitting(supports.included, supports.room)
        return weight[supports.included].sum(axis=0) + supports.filled(
            weight, free, supports.left(supports.included)
        )

    def reached(self, y: Array) -> Index:
        return self.supports.truncated(y, self.supports.room)


Promise = LargestEntries | ThresholdedEntries | AllowedEntries


def promising_columns(A: Array, promise: Promise, count: int) -> Index:
    """Variables of a symmetric matrix by decreasing promise, of which none is reached from an earlier one.

    Those that are reached would mostly lead to the same end.
    """
    diagonal = np.maximum(A.diagonal(), 0)
    unit = np.zeros_like(diagonal)
    np.divide(1, np.sqrt(diagonal), out=unit, where=diagonal > 0)
    value = np.zeros(len(A))
    for start in range(0, len(A), COLUMN_BLOCK):
        rows = slice(start, start + COLUMN_BLOCK)
        value[rows] = promise.values(A[rows] * unit[rows, None])
    chosen: list[int] = []
    passed = ~(value > 0)
    for j in descending(value):
        if len(chosen) == count or passed[j]:
            if len(chosen) == count:
                break
            continue
        chosen.append(int(j))
        passed[promise.reached(A[j] * unit[j])] = True
    return np.array(chosen, np.intp)


@record
class Columns:
    """A, deflated, between the variables whose columns are compared."""

    matrix: Array
    among: Index
    dtype: DType  # of the operator

    @classmethod
    def of(cls, state: DeflatedOperator) -> Columns | None:
        """Of all variables, or of so many as A is quickly formed of; None where only products are known.

        Those of all columns are in single precision, and formed once in a call, unless A is known already.
        """
        op, p = state.operator, state.p
        if state.diagonal is None or op.by_passes or state.problem.filled is not None:
            return None
        formed = op.dense and not op.symmetric_form
        order = min(COLUMN_ORDER, int((COLUMN_WORK / op.m) ** 0.5)) if formed else COLUMN_ORDER
        ground = ground_of(state)
        if p <= order and op.symmetric_form:
            every = np.arange(p)
            return cls(state.submatrix(every) if state.matrix is None else state.matrix, every, op.dtype)
        field = ground.field(state, order, False) if can_be_formed(state) else None
        if field is not None:
            return cls(field.matrix, field.index, op.dtype)
        among = np.arange(p) if p <= order else ground.some(state, order, False)
        return cls(state.submatrix(among), among, op.dtype)

    def neighbors(self, promise: Promise, count: int) -> Index:
        """The variables to which a step from each of these leads."""
        unit = roots(self.matrix.diagonal())
        chosen = promising_columns(self.matrix, promise, count)
        steps = (promise.reached(self.matrix[j] / unit[j]) for j in chosen)
        return self.among[np.unique(np.concatenate([chosen, *steps]))]

    def ends(
        self,
        promise: Promise,
        count: int,
        steps: Steps,
        max_iter: int,
        hook: Report | None = None,
    ) -> list[tuple[Index, AnyArray]]:
        """Where steps from there end, in this matrix alone, the best first: variables and entries of each.

        Data are then read for few runs.
        """
        operator = _core.dense(np.ascontiguousarray(self.matrix), True)
        limits = max_iter, SOLVER_TOL.of(operator.dtype), hook
        found: dict[bytes, tuple[Index, AnyArray, float]] = {}
        times: Counter[bytes] = Counter()
        for j in promising_columns(self.matrix, promise, count):
            side = np.full(1, 1 if steps.supports.sides(self.matrix[j]) else -1, operator.dtype)
            x, objective = steps.ascend(operator, np.array([j]), side, *limits)
            if x is None or len(x.index) == 0:
                continue
            variables, entries = self.among[x.index], x.entries.astype(self.dtype)
            order = np.argsort(variables)
            found.setdefault(x.index.tobytes(), (variables[order], entries[order], objective))
            times[x.index.tobytes()] += 1
            if times[max(found, key=lambda key: found[key][2])] > SAME_ENDS:
                break
        best = sorted(found.values(), key=lambda end: -end[2])
        return [(index, entries) for index, entries, _ in best]


def fewest_nonzeros(l1_bound: float) -> int:
    """`l1_bound**2`: of a unit vector that has no smaller l1 norm."""
    return math.ceil(l1_bound**2 - 1e-9)


def begin_among(state: DeflatedOperator, kind: str, sparsity: Any) -> Index:
    """The variables among which a search begins, by what is given: a cardinality, an l1 bound or a penalty.

    They are the most promising ones, and, where the cardinality is not given, of single ones of them those
    that a step from there would come to.

    As many single variables as a search among all columns would start from, and some whose columns promise
    most.
    """
    if kind == "cardinality":
        return promising_variables(state, WORKING_SET_FACTOR * sparsity)
    op, count = state.operator, WORKING_SET_START
    if kind == "l1_bound":
        count = max(count, WORKING_SET_FACTOR * fewest_nonzeros(sparsity))
    count = min(count, state.p)
    chosen, one = [promising_variables(state, count)], np.ones(1, op.dtype)
    probes = min(WORKING_SET_PROBES, int(START_WORK / (20 * state.problem.cost)))
    variances = state.variances[chosen[0]]
    for j in chosen[0][descending(variances)[:probes]]:
        y = op.apply(np.array([j]), one)
        chosen.append(_core.select_largest(y, -(-count // WORKING_SET_PROBES)))
    columns = Columns.of(state)
    if columns is not None:
        largest = LargestEntries(-(-count // COLUMN_STARTS_LEAST))
        chosen.append(columns.neighbors(largest, COLUMN_STARTS_LEAST))
    return np.unique(np.concatenate(chosen))
