"""The search of a matrix in memory, by kernels: a race from its columns (race.c), and branch and bound.

A race starts a run of truncated power from each of many columns. After each round only the most promising
runs go on, and few run to their ends. Swaps then improve the best ends.
"""

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
    EXACT_SLACK,
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

Plan = tuple[Any, ...]  # the fields of spca_search_plan (spca.h), as _core.search takes them


class End(NamedTuple):
    """A support where runs of a race ended, ascending, its value, and how many runs ended there."""

    index: Index  # type: ignore[assignment]  # tuples have a method of this name
    value: float
    runs: int


class BestSupports(NamedTuple):
    """The best supports of a matrix, by decreasing value.

    `swapped` says whether their variables have been swapped. `tally`, `n_iter` and `proved` are about the
    first one; `nodes` is how many nodes of a tree were divided for the proof.
    """

    supports: Index
    swapped: bool
    tally: Tally
    n_iter: int
    nodes: int
    proved: bool


def best_supports(
    A: AnyArray, k: int, max_iter: int, tol: float, swaps: float, hook: Report | None
) -> BestSupports | None:
    """Return the best supports of k variables of a symmetric matrix; None if no run found any.

    A brief tree tries to prove the first one, where that is cheap. Variables of the best ends are swapped if
    that costs less than `swaps` multiplications.
    """
    p = len(A)
    swapped = SWAPPED_ENDS if 20.0 * k**4 <= swaps else 0
    nodes = 0 if not swapped or p > BRIEF_ORDER else min(BRIEF_NODES, int(BRIEF_WORK / (p * k) ** 2))
    hopeless = BRIEF_HOPELESS * math.log2(nodes + 1)
    plan = _plan(p, A.dtype, k, True, p <= RACE_ALL, RACE_STARTS, max_iter, tol, RACE_ENDS, swapped)
    supports, values, runs, told = _core.search(A, k, (*plan, nodes, hopeless), progress=hook)
    starts, ends, n_iter, divided, proved = told
    if len(values) == 0:
        return None
    reached = int(runs[values >= values[0] - TALLY_TIE * abs(values[0])].sum())
    supports = supports[: 1 if swapped else SWAPPED_ENDS]
    return BestSupports(supports, swapped > 0, Tally(starts, ends, reached), n_iter, divided, proved)


@lru_cache(maxsize=8)  # the same for one component after another
def _plan(
    p: int, dtype: DType, k: int, whole: bool, deep: bool, count: int, max_iter: int, tol: float,
    ends: int, swapped: int,
) -> Plan:  # fmt: skip
    """Return the plan of a race, without the numbers of the tree.

    With `deep`, more runs go on in each round, because there are few or a signal may be weak. `whole` says
    that A is between all variables: runs may then have more than k nonzeros at first. A part of A has few
    variables of a support, so that more nonzeros would be other variables.
    """
    tried = QUICKLY_SWAPPED_ENDS if swapped else 0
    starts, least = min(count, p), max(ends, 1)
    rounds = [
        (steps, max(int(keep * starts if keep < 1 else keep), least), int(width * k) if whole else k)
        for steps, keep, width in (DEEP_RACE if deep else RACE)
    ]
    limits = RISE, SWAP_GAP, EXACT_SLACK.of(dtype), TIE.of(dtype)
    return starts, rounds, max_iter, tol, ends, tried, swapped, limits, RACE_EXACT


def can_be_swapped(k: int, p: int, swaps: float) -> bool:
    """Whether k of p variables can be swapped at a cost below `swaps`, which a race then does."""
    return 20.0 * k**4 <= swaps and 1 < k < p


def ends_on_field(
    field: Field, k: int, count: int, most: int, swaps: float, tol: float, hook: Report | None
) -> tuple[list[End], int, int]:  # fmt: skip
    """Return the different ends of a race on a field, its number of starts, and the steps to the best end.

    The best end comes first. The race has `count` starts, and `most` runs go to their ends. With a count of
    0, for weak signals, every column starts. Variables of the ends are swapped if that costs less than
    `swaps` multiplications.
    """
    A, w = field.matrix, len(field.index)
    if k > w or ended(hook):  # the field is too small for a support, or the search is over
        return [], 0, 0
    deep, swapped = count == 0, SWAPPED_ENDS if can_be_swapped(k, w, swaps) else 0
    starts = w if deep else count
    deep = deep or w <= RACE_ALL
    plan = _plan(w, A.dtype, k, field.whole, deep, starts, RACE_MOST_STEPS, tol, most, swapped)
    score, known = field.norms(k) if starts < w else (None, False)
    supports, values, runs, told = _core.search(A, k, (*plan, 0, 0.0), score, known, hook)
    ends = [
        End(np.sort(field.index[S]), value, n_runs)
        for S, value, n_runs in zip(supports, values.tolist(), runs.tolist(), strict=True)
    ]
    return ends, told[0], told[2]


# ---- the tree of branch and bound over sets of supports -------------------------------------------------


class Search(OpenNodes):
    """Branch and bound over the supports of single variables; a kernel divides nodes (branch_and_bound.c).

    A node is a row of q bytes, one for each variable of A: 0 if it is out, 1 if it may join, 2 if it is in.
    The best support so far and the value that others must exceed prune the nodes.

    A may be between some variables only, which are `kept`; a support is given by positions in A. Nodes wait
    in a heap, the largest bound first. If they take more than `FRONTIER_BYTES`, the newest go first, so that
    their number stops growing.
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
        kept: Index | None = None,
    ):  # fmt: skip
        q = len(A)
        self.A, self.tol, self.k = A, tol, min(k, q)
        self.kept: Index = np.arange(q) if kept is None else kept
        self.state: Any = state  # None for a matrix alone
        self.plain: bool = state is None or not (state.quotient or state.constrained)
        self.gain: float = 1.0 if self.plain else np.inf  # of a bound, per excess over the level
        # The root: every variable may join
        root = np.ones(q, np.uint8)
        self.heap = []
        self.queue(self._root_bound(), root)
        if state is not None:  # what is included is in
            wanted = np.searchsorted(self.kept, state.supports.wanted)
            root[wanted] = 2
            if len(wanted) == self.k:  # there is nothing to divide
                self.heap = []
        # The incumbent: the best support so far
        self.work: Array = np.empty(_core.branch_work(q, self.k))
        self.index, self.vector, self.value = self.kept[support], np.zeros(len(support)), -np.inf
        self._update_incumbent(support)
        self._set_level()

    def best(self) -> Solution:
        """Return the best component so far."""
        return Solution(self.index, self.vector.astype(self.state.operator.dtype), self.value)

    def require(self, value: float) -> None:
        """Prune all supports that do not exceed a value, although none is known that has it."""
        if value > self.value:
            self.value = value
            self._set_level()

    def step(self, count: int = 1, check_limits: Callable[[int], object] = lambda _: None) -> int:
        # Take nodes that may still hold something better
        nodes: list[tuple[Any, ...]] = []
        while len(nodes) < count and self.heap:
            node = heapq.heappop(self.heap)
            if node[2] > self.pruning_level:
                nodes.append(node)
        if not nodes:
            return 0
        # Divide them by one call; their children are rows of the same pool
        n = len(nodes)
        pool = np.empty((n * (1 + NODE_CHILDREN), len(self.A)), np.uint8)
        pool[:n] = [row for *_, row in nodes]
        empty = np.arange(n, len(pool)).reshape(n, NODE_CHILDREN)
        try:
            n_children, excess = _core.branch(
                self.N, self.k, pool, np.arange(n), empty, self.work, check_limits
            )
        except BaseException:
            for node in nodes:  # their children are not known: they wait again
                heapq.heappush(self.heap, node)
            raise
        found = [
            self._queue_children(node[2], pool[places[:m]], more[:m])
            for node, places, m, more in zip(nodes, empty, n_children, excess, strict=True)
        ]
        if any(found):
            self._set_level()
        return n

    def _queue_children(self, bound: float, rows: NDArray[np.uint8], excess: Array) -> bool:
        """Queue the children of a node, and try those that are a single support; whether one is the best.

        `excess` is by how much the bound of each child exceeds the level; it is negative for a single
        support.
        """
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
        """Make a support the incumbent if its best value is larger; whether it is."""
        vector, value = self._best_on(support)
        if not value > self.value:
            return False
        self.index, self.vector, self.value = self.kept[support], vector, value
        return True

    def _best_on(self, support: Index) -> tuple[AnyArray, float]:
        """Return the best vector on a support, and its value; -inf where no vector is feasible."""
        if not self.plain:
            found = fitted_on(self.state, self.kept[support])
            return found.entries, found.objective
        G = self.A[np.ix_(support, support)]
        values, vectors = np.linalg.eigh(G)
        vector = vectors[:, -1]
        vector[~G.any(axis=0)] = 0
        return vector, float(values[-1])

    def _set_level(self) -> None:
        """Form N = level I - A, which is definite on a support unless that beats the level, but for rounding.

        Under a constraint N = level I - A + penalty QQ'. It is definite only if x'Ax is at most the level
        wherever Q'x = 0. Under generalized deflation N = level (I - QQ') - A.
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

    def _root_bound(self) -> float:
        """Return the largest a_jj plus the k - 1 largest magnitudes beside it in row j (Gershgorin)."""
        if not self.plain:
            return np.inf
        q, most = len(self.A), -np.inf
        first = q - self.k + 1
        for rows in (np.arange(s, min(s + 256, q)) for s in range(0, q, 256)):
            size = np.abs(self.A[rows])
            size[np.arange(len(rows)), rows] = 0
            rest = np.partition(size, min(first, q - 1), axis=1)[:, first:].sum(axis=1)
            most = max(most, float((self.A[rows, rows] + rest).max()))
        return most + abs(most) * q * EPS  # its rounding prunes nothing: the margin of the level is larger


def best_on_support(state: DeflatedOperator, support: Index | None) -> Solution | None:
    """Return the component of the best values on a support.

    None without a support, or where no vector on it is feasible.
    """
    if support is None:
        return None
    best = fitted_on(state, support)
    return best if best.objective > -np.inf else None
