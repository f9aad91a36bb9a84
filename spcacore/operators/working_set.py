"""The working set: some columns of the data with their Gram matrix, so that a search reads no data."""

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


Vector = tuple[Index, AnyArray, float]  # the nonzeros of x by index and entries, and a level for |A x|


class WorkingSet:
    """The columns F_W of data in memory and their Gram matrix A[W, W], before any deflation.

    It grows as variables join. It belongs to one call, whose components, paths and restarts share it.

    Attributes
    ----------
    index : ndarray of shape (w,), int
        The variables W, in the order of joining; those that join together ascend.
    position : ndarray of shape (p,), int
        The position of each variable in `index`; -1 for variables outside.
    asked : bool
        Whether the caller asked for a working set.
    checks : int
        How often all columns were checked for variables that would enter.
    reads : float
        How often the bytes of X were read for it: for the statistics, for columns that join, and for checks,
        except for what a screen counts.
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
        """The largest number of variables w for which memory has room: w (2w + n) numbers."""
        return self._most_with(self._columns.shape[1])

    def _most_with(self, n: int) -> int:
        """Return the largest w with columns of n entries."""
        return int((math.sqrt(n * n + 8 * WORKING_SET_BYTES / self.operator.dtype.itemsize) - n) / 4)

    def grown(self, active: Index, used: Index, entrants: Index) -> Index | None:
        """Return the active variables with the entrants, all of which are then in W.

        The entrants come by decreasing weight. Where memory does not allow all of that, return the used
        variables with as many entrants as it allows, or None if it allows none.
        """
        larger = union(active, entrants)
        if len(larger) > self.most:
            larger = union(used, entrants[: max(self.most - len(used), 0)])
            if len(larger) == len(used):
                return None
        return larger if self.admit(larger) else None

    def admit(self, index: Index) -> bool:
        """Let variables join, in the place of others if memory needs it; False if there is no room."""
        new = np.sort(index[self.position[index] < 0])
        if len(self.index) + len(new) > self.most:
            if len(index) > self.most:
                return False
            self._keep(self.position[index])
        if len(new) > 0:
            self._add(new)
        return True

    def _keep(self, positions: Index) -> None:
        """Drop all variables but those at these positions; -1 stands for a variable that is not in W."""
        kept = np.sort(positions[positions >= 0])
        self._columns[: len(kept)] = self._columns[kept]
        self._gram[: len(kept), : len(kept)] = self._gram[np.ix_(kept, kept)]
        self.index = self.index[kept]
        self.position[:] = -1
        self.position[self.index] = np.arange(len(kept))

    def _add(self, new: Index) -> None:
        """Let new variables join: read their columns, and compute their rows of A[W, W]."""
        w, total = len(self.index), len(self.index) + len(new)
        self._reserve(total)
        self.index = np.concatenate((self.index, new))
        self.position[new] = np.arange(w, total)
        gram = self._gram[:total, :total]
        self._products(w, new, gram[w:])
        gram[:w, w:] = gram[w:, :w].T
        self.reads += self._share(new)

    def _share(self, index: Index) -> float:
        """Return the share of the bytes of X that is read for these columns."""
        return len(index) / len(self.position)

    def _products(self, w: int, new: Index, out: AnyArray) -> None:
        """Write A[new, W] into `out`. The new variables are the last of W; w were there before."""
        columns, factor = self._columns[: len(self.index)], self.operator.factor
        self.operator.columns(new, columns[w:])
        _core.matrix_product(columns[w:], columns[:w], factor, out[:, :w])
        _core.matrix_product(columns[w:], None, factor, out[:, w:])

    def _drop_columns(self) -> None:
        self._columns = np.empty((len(self._columns), 0), self.operator.dtype)

    def report(self, screening: Callable[[], Screening]) -> Screening:
        """Return what has been read so far, by the screened operator too."""
        told = replace(screening(), working_set=len(self.index), checks=self.checks)
        if len(self.index) == 0:
            return told
        screened = 0.0 if told.reads is None else told.reads - 1
        return replace(told, mode="working_set", reads=self.reads + screened)

    def _reserve(self, total: int) -> None:
        """Make room for `total` variables, and for more to come."""
        if total > len(self._gram):
            n, dtype, w = self._columns.shape[1], self.operator.dtype, len(self.index)
            room = min(2 * total, self._most_with(n))
            columns, gram = np.empty((room, n), dtype), np.empty((room, room), dtype)
            columns[:w], gram[:w, :w] = self._columns[:w], self._gram[:w, :w]
            self._columns, self._gram = columns, gram

    def restricted(self, state: DeflatedOperator, active: Index) -> DeflatedOperator:
        """Return the same problem for some variables of W alone, with the same components removed.

        The variables ascend, and include those of these components. The last answer is kept, because a search
        often asks for the same variables once more.
        """
        last = self._last
        if last is None or last[0]() is not state or not np.array_equal(last[1], active):
            self._last = None  # its memory is free before the next is made
            self._last = last = (weakref.ref(state), active, self._restricted(state, active))
        return last[2]

    def _restricted(self, state: DeflatedOperator, active: Index) -> DeflatedOperator:
        """Return what `restricted` does, anew."""
        at, known = self.position[active], len(self.index)
        # The problem of A between these variables
        gram = _core.principal_submatrix(self._gram[:known, :known], at)
        problem = state.problem
        cost = min(gram.size, problem.cost)
        inside = replaced(of_matrix(problem, gram), cost=cost, screening=Screening)
        # The same deflation: of the matrix itself, or step by step as of the state
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
        """Return, for each x, the inactive variables where |A x| exceeds its level, by decreasing |A x|.

        Under positive signs A x itself must exceed it.
        """
        operator = state.operator.with_quotient() if state.quotient else state.operator
        self.checks += len(vectors)
        return self._outside(state, active, self._above(operator, state, vectors))

    def _outside(
        self, state: DeflatedOperator, active: Index, above: list[tuple[Index, AnyArray]]
    ) -> list[Index]:
        """Return, from the variables above each level, those that are not active, by decreasing magnitude."""
        out = []
        for found, value in above:
            if len(found) > 0:
                outside = active[np.searchsorted(active[:-1], found)] != found  # `active` ascends
                if state.supports.positive:
                    outside &= value > 0
                found, value = found[outside], value[outside]
            out.append(found[descending(np.abs(value))])
        return out

    def _above(
        self, operator: _core.Operator, state: DeflatedOperator, vectors: Sequence[Vector]
    ) -> list[tuple[Index, AnyArray]]:
        """Return, for each x, the variables where |A x| exceeds its level, and A x there."""
        if not self._screened:
            self.reads += len(vectors)
        return [operator.above(*x) for x in vectors]


class CompressedWorkingSet(WorkingSet):
    """The working set of compressed data, which may do without columns.

    A[W, W] is then summed from pairs of entries. It is if the first columns have few stored entries, or if
    memory has no room for columns, but not where that would cost digits.
    """

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
        """Whether the first columns have few stored entries.

        For CSR it is assumed: how many entries a column has is not known there.
        """
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
