"""Some columns of the data with their Gram matrix, on which a search costs no product with the data."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from .. import _core
from .._limits import WORKING_SET_BYTES, WORKING_SET_PAIRS
from .._records import replaced
from .._types import AnyArray, Index
from ..linalg.scaling import descending, union
from .gram import keeps_digits
from .problem import Problem, Screening, of_matrix

if TYPE_CHECKING:
    from .deflation import DeflatedOperator


Vector = tuple[Index, AnyArray, float]  # the nonzeros of x, and a level of |A x|


class WorkingSet:
    """The columns F_W of data in memory and their Gram matrix A[W, W], before any deflation.

    It grows as variables join, and belongs to one call, whose components, paths and restarts share it.

    Attributes
    ----------
    index : ndarray of shape (w,), int
        The variables W, in the order of joining; those that join together ascend.
    position : ndarray of shape (p,), int
        Where each variable stands in it; -1 outside.
    asked : bool
        Whether the caller asked for it.
    checks : int
        How often all columns were asked whether one outside of W matters.
    reads : float
        How often the bytes of X were read for it: statistics, columns that join, and checks but for what a
        screen counts.
    noise : float or None
        The standard deviation of correlations that are noise, as it was last estimated.
    """

    asked = False

    reads: float = 1.0  # for the statistics
    noise: float | None = None
    operator: _core.Operator
    checks: int

    def __init__(self, problem: Problem):
        operator = problem.operator.unscreened()
        n, dtype, self._screened = operator.n, operator.dtype, operator is not problem.operator
        self.operator, self.checks = operator, 0
        self.index: Index = np.empty(0, np.intp)
        self.position: Index = np.full(operator.p, -1, np.intp)
        self._columns, self._gram = np.empty((0, n), dtype), np.empty((0, 0), dtype)
        self._last: tuple[weakref.ref[DeflatedOperator], Index, DeflatedOperator] | None = None

    @property
    def most(self) -> int:
        """How many variables w memory allows: w (2w + n) numbers."""
        return self._most_with(self._columns.shape[1])

    def _most_with(self, n: int) -> int:
        return int((math.sqrt(n * n + 8 * WORKING_SET_BYTES / self.operator.dtype.itemsize) - n) / 4)

    def grown(self, active: Index, used: Index, entrants: Index) -> Index | None:
        """The active variables with the entrants, which come by decreasing weight; all of them in W.

        Where memory does not allow it, the used ones and as many entrants as go in; None where none does.
        """
        both = union(active, entrants)
        if len(both) > self.most:
            both = union(used, entrants[: max(self.most - len(used), 0)])
            if len(both) == len(used):
                return None
        return both if self.admit(both) else None

    def admit(self, index: Index) -> bool:
        """Let variables join, in the place of others if memory asks for it; False if it has no room."""
        new = np.sort(index[self.position[index] < 0])
        if len(self.index) + len(new) > self.most:
            if len(index) > self.most:
                return False
            self._keep(self.position[index])
        if len(new) > 0:
            self._add(new)
        return True

    def _keep(self, positions: Index) -> None:
        """Only these variables, of which some may not be in W."""
        kept = np.sort(positions[positions >= 0])
        self._columns[: len(kept)] = self._columns[kept]
        self._gram[: len(kept), : len(kept)] = self._gram[np.ix_(kept, kept)]
        self.index = self.index[kept]
        self.position[:] = -1
        self.position[self.index] = np.arange(len(kept))

    def _add(self, new: Index) -> None:
        w, total = len(self.index), len(self.index) + len(new)
        self._reserve(total)
        self.index = np.concatenate((self.index, new))
        self.position[new] = np.arange(w, total)
        gram = self._gram[:total, :total]
        self._products(w, new, gram[w:])
        gram[:w, w:] = gram[w:, :w].T
        self.reads += self._share(new)

    def _share(self, index: Index) -> float:
        """Of the bytes of X, those that are read for these columns."""
        return len(index) / len(self.position)

    def _products(self, w: int, new: Index, out: AnyArray) -> None:
        """A[new, W], of which `new` are the last."""
        self.operator.columns(new, self._columns[w : len(self.index)])
        self._multiply(w, self.operator.factor, out)

    def _multiply(self, w: int, factor: float, out: AnyArray) -> None:
        """A[new, W] of the columns that have joined."""
        columns = self._columns[: len(self.index)]
        _core.matrix_product(columns[w:], columns[:w], factor, out[:, :w])
        _core.matrix_product(columns[w:], None, factor, out[:, w:])

    def _drop_columns(self) -> None:
        self._columns = np.empty((len(self._columns), 0), self.operator.dtype)

    def report(self, screening: Callable[[], Screening]) -> Screening:
        """What has been read so far, by the screened operator too."""
        told = replace(screening(), working_set=len(self.index), checks=self.checks)
        if len(self.index) == 0:
            return told
        screened = 0.0 if told.reads is None else told.reads - 1
        return replace(told, mode="working_set", reads=self.reads + screened)

    def _reserve(self, total: int) -> None:
        """Make room for so many variables."""
        if total > len(self._gram):
            n, dtype, w = self._columns.shape[1], self.operator.dtype, len(self.index)
            room = min(2 * total, self._most_with(n))
            columns, gram = np.empty((room, n), dtype), np.empty((room, room), dtype)
            columns[:w], gram[:w, :w] = self._columns[:w], self._gram[:w, :w]
            self._columns, self._gram = columns, gram

    def restricted(self, state: DeflatedOperator, active: Index) -> DeflatedOperator:
        """The same problem of some variables of W alone, from which the same components have been removed.

        They ascend, and are those of these components among others. The last answer is kept: a search often
        asks for the same once more.
        """
        last = self._last
        if last is None or last[0]() is not state or not np.array_equal(last[1], active):
            self._last = None  # its memory is free before the next is made
            self._last = last = (weakref.ref(state), active, self._restricted(state, active))
        return last[2]

    def _restricted(self, state: DeflatedOperator, active: Index) -> DeflatedOperator:
        at, known = self.position[active], len(self.index)
        gram = _core.principal_submatrix(self._gram[:known, :known], at)
        problem = state.problem
        cost = min(gram.size, problem.cost)  # of what gram becomes
        inside = replaced(of_matrix(problem, gram), cost=cost, screening=Screening)
        among = tuple((np.searchsorted(active, index), entries) for index, entries in state.loadings)
        for index, entries in among if state.by_loadings else ():
            if not _core.deflate_covariance("projection", gram, index, entries):
                raise FloatingPointError("a product is not finite")
        restricted = type(state).from_problem(inside, state.deflation, state.constraint)
        restricted = replaced(restricted, seed=state.seed, hook=state.hook)
        if state.by_loadings:
            return replaced(restricted, diagonal=np.maximum(gram.diagonal(), 0), loadings=among, matrix=gram)
        for index, entries in among:
            restricted = restricted.deflate(
                index, entries, None, lambda at: problem.noise(active[at], state.deflation.first_order)
            )
        return restricted

    def entrants(self, state: DeflatedOperator, active: Index, vectors: Sequence[Vector]) -> list[Index]:
        """Of each x the other variables where |A x|, if not A x, exceeds its level, by decreasing excess."""
        operator = state.operator.with_quotient() if state.quotient else state.operator
        self.checks += len(vectors)
        return self._outside(state, active, self._above(operator, state, vectors))

    def _outside(
        self, state: DeflatedOperator, active: Index, above: list[tuple[Index, AnyArray]]
    ) -> list[Index]:
        """Of what is above a level the variables that are not active, by decreasing value."""
        out = []
        for found, value in above:
            if len(found) > 0:
                outside = active[np.searchsorted(active[:-1], found)] != found  # they ascend
                if state.supports.positive:
                    outside &= value > 0
                found, value = found[outside], value[outside]
            out.append(found[descending(np.abs(value))])
        return out

    def _above(
        self, operator: _core.Operator, state: DeflatedOperator, vectors: Sequence[Vector]
    ) -> list[tuple[Index, AnyArray]]:
        """Of each x the variables where |A x| exceeds its level, and A x there."""
        if not self._screened:
            self.reads += len(vectors)
        return [operator.above(*x) for x in vectors]


class CompressedWorkingSet(WorkingSet):
    """The same of compressed data: without columns, from pairs of entries, where few entries of the first
    columns are stored, or memory has no room for columns. Not where that would cost digits."""

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self._matrix, self._digits = problem.compressed, keeps_digits(problem, False, "auto")

    @property
    def most(self) -> int:
        return self._most_with(0) if self._digits else super().most

    def _add(self, new: Index) -> None:
        n, total = self._columns.shape[1], len(self.index) + len(new)
        if self._digits and n > 0 and (total > self._most_with(n) or self._is_sparse(new)):
            self._drop_columns()
        super()._add(new)

    def _share(self, index: Index) -> float:
        if self._matrix.format == "csr":
            return 1.0
        return float(np.diff(self._matrix.indptr)[index].sum()) / max(self._matrix.nnz, 1)

    def _is_sparse(self, first: Index) -> bool:
        """Whether the first columns have few entries; by rows that is not known, since columns do not fit."""
        if len(self.index) > 0:
            return False
        if self._matrix.format == "csr":
            return True
        stored = np.diff(self._matrix.indptr)[first].sum(dtype=np.float64)
        return bool(stored < WORKING_SET_PAIRS * self.operator.n * len(first))

    def _products(self, w: int, new: Index, out: AnyArray) -> None:
        if self._columns.shape[1] > 0:
            return super()._products(w, new, out)
        gram = self.operator.gram(np.concatenate((new, self.index[:w])), None, len(new))
        assert gram is not None  # no callback can have ended it
        out[:, :w], out[:, w:] = gram[:, len(new) :], gram[:, : len(new)]
