"""The search of a matrix in memory, by kernels: a race from its columns (search.c), and branch and bound."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import (
    BRIEF_HOPELESS,
    BRIEF_NODES,
    BRIEF_ORDER,
    BRIEF_WORK,
    DEEP_RACE,
    FIELD_TIE,
    FRONTIER_BYTES,
    NODE_CHILDREN,
    QUICKLY_SWAPPED_ENDS,
    RACE,
    RACE_ALL,
    RACE_ENDS,
    RACE_EXACT,
    RACE_MOST_STEPS,
    RACE_STARTS,
    RISE,
    SWAP_GAP,
    SWAP_SLACK,
    SWAPPED_ENDS,
    TALLY_TIE,
    TIE,
    TREE_PENALTY,
)
from .._types import AnyArray, Array, DType, Index
from ..linalg.scaling import EPS, largest_magnitude
from ..operators.deflation import DeflatedOperator
from ..operators.field import Field
from ..supports.tree import OpenNodes
from .refitting import fitted_on
from .solution import Report, Solution, Tally, ended

# ---- a race, by one call --------------------------------------------------------------------------------

Plan = tuple[Any, ...]  # what _core.search takes


class End(NamedTuple):
    """The variables, ascending, where runs of a race ended, their value, and how many runs did."""

    index: Index  # type: ignore[assignment]  # of tuples a method
    value: float
    runs: int


class BestSupports(NamedTuple):
    """The best supports of a matrix, by decreasing value, and what is known of the first."""

    supports: Index
    swapped: bool
    tally: Tally
    n_iter: int
    nodes: int
    proved: bool


def best_supports(
    A: AnyArray, k: int, max_iter: int, tol: float, swaps: float, hook: Report | None
) -> BestSupports | None:
    """The best supports of k variables of a symmetric matrix, proved to be that where it is cheap.

    Variables of the best ends are swapped, if that costs less than `swaps`.
    """
    p = len(A)
    swapped = SWAPPED_ENDS if 20.0 * k**4 <= swaps else 0
    nodes = 0 if not swapped or p > BRIEF_ORDER else min(BRIEF_NODES, int(BRIEF_WORK / (p * k) ** 2))
    hopeless = BRIEF_HOPELESS * math.log2(nodes + 1)
    tie = TIE.of(A.dtype)
    plan = _plan(p, A.dtype, k, True, p <= RACE_ALL, RACE_STARTS, max_iter, tol, RACE_ENDS, swapped, tie)
    supports, values, runs, told = _core.search(A, k, (*plan, nodes, hopeless), progress=hook)
    starts, ends, n_iter, divided, proved = told
    if len(values) == 0:
        return None
    reached = int(runs[values >= values[0] - TALLY_TIE * abs(values[0])].sum())
    supports = supports[: 1 if swapped else SWAPPED_ENDS]
    return BestSupports(supports, swapped > 0, Tally(starts, ends, reached), n_iter, divided, proved)


@lru_cache(maxsize=8)  # of one component after another
def _plan(
    p: int, dtype: DType, k: int, whole: bool, deep: bool, count: int, max_iter: int, tol: float,
    ends: int, swapped: int, tie: float,
) -> Plan:  # fmt: skip
    """Starts, rounds, and the rest but for the tree; more runs go on where these are few, or a signal may be
    weak.  A part of A has few variables of a support: more nonzeros than k would be others."""
    tried = QUICKLY_SWAPPED_ENDS if swapped else 0
    starts, least = min(count, p), max(ends, 1)
    rounds = [
        (steps, max(int(keep * starts if keep < 1 else keep), least), int(width * k) if whole else k)
        for steps, keep, width in (DEEP_RACE if deep else RACE)
    ]
    limits = RISE, SWAP_GAP, SWAP_SLACK.of(dtype), tie
    return starts, rounds, max_iter, tol, ends, tried, swapped, limits, RACE_EXACT


def can_be_swapped(k: int, p: int, swaps: float) -> bool:
    """Whether k of p variables can be swapped at a cost below `swaps`, which a race then does."""
    return 20.0 * k**4 <= swaps and 1 < k < p


def ends_on_field(
    field: Field, k: int, count: int, most: int, swaps: float, tol: float, hook: Report | None
) -> tuple[list[End], int, int]:  # fmt: skip
    """The different ends of a race, the best first, how many starts it had, and the steps to the best.

    It has `count` starts, and `most` runs go to their ends.  Where a signal may be weak, the count is 0: then
    every column starts.  Ends whose variables can be swapped at a cost below `swaps` have been.
    """
    A, w = field.matrix, len(field.index)
    if k > w or ended(hook):  # no support is within the field, or none is wanted any more
        return [], 0, 0
    deep, swapped = count == 0, SWAPPED_ENDS if can_be_swapped(k, w, swaps) else 0
    starts = w if deep else count
    deep = deep or w <= RACE_ALL
    plan = _plan(w, A.dtype, k, field.whole, deep, starts, RACE_MOST_STEPS, tol, most, swapped, FIELD_TIE)
    score, known = field.norms(k) if starts < w else (None, False)
    supports, values, runs, told = _core.search(A, k, (*plan, 0, 0.0), score, known, hook)
    ends = [
        End(np.sort(field.index[S]), value, n_runs)
        for S, value, n_runs in zip(supports, values.tolist(), runs.tolist(), strict=True)
    ]
    return ends, told[0], told[2]


# ---- the tree of branch and bound over sets of supports -------------------------------------------------


class Search(OpenNodes):
    """A tree whose nodes are rows of a byte a variable (branch_and_bound.c).

    It begins with what is known of a support, given by positions in A, whose variables are `kept`.

    Nodes wait in a heap, the largest bound first; beyond `FRONTIER_BYTES` on a stack that is taken first, so
    that their number stops growing.
    """

    heap: list[tuple[Any, ...]]
    pruning_level: float
    tol: float
    k: int
    index: Index
    vector: AnyArray
    value: float

    def __init__(
        self, A: Array, k: int, support: Index, tol: float = 0.0, state: DeflatedOperator | None = None,
        kept: Index | None = None, check_limits: Callable[[], object] = lambda: None,
    ):  # fmt: skip
        q = len(A)
        self.A, self.tol, self.k = A, tol, min(k, q)
        self.kept: Index = np.arange(q) if kept is None else kept
        self.state: Any = state  # None of a matrix alone
        self.plain: bool = state is None or not (state.quotient or state.constrained)
        self.gain: float = 1.0 if self.plain else np.inf  # of a bound by what exceeds the level
        root = np.ones(q, np.uint8)
        bound = self._root_bound(check_limits)
        self.heap = []
        self.queue(bound, root)
        if state is not None:
            wanted = np.searchsorted(self.kept, state.supports.wanted)
            root[wanted] = 2
            if len(wanted) == self.k:  # there is nothing to divide
                self.heap = []
        self.work: Array = np.empty(_core.branch_work(q, self.k))
        self.index, self.vector, self.value = self.kept[support], np.zeros(len(support)), -np.inf
        self._update_incumbent(support)
        self._set_level()

    def best(self) -> Solution:
        return Solution(self.index, self.vector.astype(self.state.operator.dtype), self.value, 0, True)

    def require(self, value: float) -> None:
        """Leave out all that does not exceed a value, too."""
        if value > self.value:
            self.value = value
            self._set_level()

    def step(self, count: int = 1, check_limits: Callable[[int], object] = lambda _: None) -> int:
        nodes: list[tuple[Any, ...]] = []
        while len(nodes) < count and self.heap:
            node = heapq.heappop(self.heap)
            if node[2] > self.pruning_level:
                nodes.append(node)
        if not nodes:
            return 0
        n = len(nodes)
        pool = np.empty((n * (1 + NODE_CHILDREN), len(self.A)), np.uint8)
        pool[:n] = [row for *_, row in nodes]
        empty = np.arange(n, len(pool)).reshape(n, NODE_CHILDREN)
        try:
            n_children, excess = _core.branch(
                self.N, self.k, pool, np.arange(n), empty, self.work, check_limits
            )
        except BaseException:
            for node in nodes:  # whose children are not known
                heapq.heappush(self.heap, node)
            raise
        found = [
            self._keep(node[2], pool[places[:m]], more[:m])
            for node, places, m, more in zip(nodes, empty, n_children, excess, strict=True)
        ]
        if any(found):
            self._set_level()
        return n

    def _keep(self, bound: float, rows: NDArray[np.uint8], excess: Array) -> bool:
        """Queue the children of a node, and try those that are a single support; whether one is better."""
        improved = False
        many = len(self.heap) * len(self.A) >= FRONTIER_BYTES
        for row, e in zip(rows, excess.tolist(), strict=True):
            if e < 0:
                improved |= self._update_incumbent(np.flatnonzero(row == 2))
                continue
            above = min(bound, self.pruning_level + e * self.gain) if self.gain < np.inf else bound
            self.queue(above, row, first=many)
        return improved

    def _update_incumbent(self, support: Index) -> bool:
        """Whether the best values on a support make it the incumbent."""
        if self.plain:
            values, vectors = np.linalg.eigh(self.A[np.ix_(support, support)])
            value, vector = float(values[-1]), vectors[:, -1]
            unused = ~self.A[np.ix_(support, support)].any(axis=0)
            vector[unused] = 0
        else:
            found = best_on_support(self.state, self.kept[support])
            if found is None:
                return False
            value, vector = found.objective, found.entries
        if not value > self.value:
            return False
        self.index, self.vector, self.value = self.kept[support], vector, value
        return True

    def _set_level(self) -> None:
        """N, definite on the supports that do not beat the level, but for rounding.

        Under a constraint level I - A + penalty QQ', which is definite only if x'Ax is at most the level
        wherever Q'x = 0; under generalized deflation level (I - QQ') - A.
        """
        level = self.value + self.tol * abs(self.value)
        N, diagonal = -self.A, np.diag_indices_from(self.A)
        if not self.plain:
            Q = np.stack([b[self.kept] for b in self.state.basis], axis=1)
            N += (-level if self.state.quotient else TREE_PENALTY * abs(level)) * Q @ Q.T
        N[diagonal] += level
        size = max(largest_magnitude(N[diagonal]), abs(level))  # the level itself is rounded too
        margin = 16 * (self.k + 4) ** 2 * EPS * size
        N[diagonal] += margin
        self.N, self.pruning_level = N, level + 2 * margin

    def _root_bound(self, check_limits: Callable[[], object]) -> float:
        """The largest sum of k magnitudes in a row, the diagonal's sign kept (Gershgorin)."""
        if not self.plain:
            return np.inf
        q, most = len(self.A), -np.inf
        first = q - self.k + 1
        for rows in (np.arange(s, min(s + 256, q)) for s in range(0, q, 256)):
            check_limits()
            size = np.abs(self.A[rows])
            size[np.arange(len(rows)), rows] = 0
            rest = np.partition(size, min(first, q - 1), axis=1)[:, first:].sum(axis=1)
            most = max(most, float((self.A[rows, rows] + rest).max()))
        return most + abs(most) * q * EPS  # decides for no matrix: the margin of the level is larger


def best_on_support(state: DeflatedOperator, support: Index | None) -> Solution | None:
    """The best values on a support; None where there is none, or no feasible ones."""
    if support is None:
        return None
    best = fitted_on(state, support)
    return best if best.objective > -np.inf else None
