"""The best support with a proof: branch and bound over units that are in, and units that may join."""

from __future__ import annotations

import heapq
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import cache
from itertools import chain, combinations
from math import comb
from typing import Any

import numpy as np

from .._limits import DISJOINT_NODES, DISJOINT_SUPPORTS, RISE
from .._types import Array, Index
from ..linalg.scaling import descending, with_entries
from .admissible import Supports, Units, with_unit
from .objective import Bound, Objective
from .search import Clock


def prove(
    objective: Objective, begin: Units, *, tol: float = 0.0, node_limit: float = np.inf,
    clock: Clock = lambda _: False,
) -> Tree:  # fmt: skip
    """Return a tree, searched from units that are known, the nodes of the largest bound first.

    `tol` is the share of the value that the answer may miss. `clock` is told the number of nodes, and may end
    it.
    """
    tree = Tree(objective, begin, tol)
    tree.n_nodes = tree.run(node_limit, clock, 1)
    return tree


class OpenNodes(ABC):
    """Nodes that wait in a heap, the largest bound first.

    An entry has its place in the order, a number that settles ties, the bound that none of its supports
    exceeds, and then what the subclass needs of the node.
    """

    heap: list[tuple[Any, ...]]
    pruning_level: float  # a node whose bound does not exceed this is dropped
    turn: int = 0

    @abstractmethod
    def step(self, count: int = 1, check_limits: Callable[[int], object] = lambda _: None) -> int:
        """Take up to `count` nodes, and return how many; what `check_limits` raises ends the step."""

    def open(self) -> bool:
        """Whether a node is left that may hold something better."""
        return bool(self.heap and -self.heap[0][0] > self.pruning_level)

    def upper(self) -> float:
        """Return the bound that no support exceeds."""
        return max([self.pruning_level, *(node[2] for node in self.heap)])

    def run(self, nodes: float, stop: Callable[[int], object] | None = None, at_a_time: int = 16) -> int:
        """Take up to `nodes` nodes, a few at a time, and return how many there were.

        Before each few, `stop` is told how many were taken, and may end the run.
        """
        done = 0
        while done < nodes and self.open() and not (stop is not None and stop(done)):
            done += self.step(int(min(at_a_time, nodes - done)))
        return done

    def queue(self, bound: float, *node: object, first: bool = False) -> None:
        """Let a node wait; of nodes that tie, the newest goes first."""
        self.turn -= 1
        heapq.heappush(self.heap, (-np.inf if first else -bound, self.turn, bound, *node))


class Tree(OpenNodes):
    """The open nodes of a search, and the best units so far with their value.

    A node has the supports that hold the units inside and some of the free ones. Its `Bound` is None until it
    was asked for.
    """

    heap: list[tuple[Any, ...]]
    pruning_level: float
    objective: Objective
    supports: Supports
    tol: float
    units: Units
    value: float
    n_nodes: int = 0

    def __init__(self, objective: Objective, begin: Units, tol: float):
        self.objective, self.supports, self.tol = objective, objective.supports, max(tol, objective.slack)
        self.heap = []
        self._improve(begin, objective.value(begin) if begin.any() else -np.inf)
        self._push(np.inf, self.supports.included, self.supports.allowed & ~self.supports.included)

    def step(self, count: int = 1, check_limits: Callable[[int], object] = lambda _: None) -> int:
        done = 0
        while done < count and self.open():
            check_limits(0)
            done += 1
            # Bound the node of the largest bound, or divide it if its own bound is known
            _, _, value, inside, free, bound = heapq.heappop(self.heap)
            if bound is None:
                bound = self.objective.bound(inside, free)
                self._complete(inside, free, bound)
                self._push(min(value, bound.value), inside, free, bound)
            else:
                self._divide(inside, free, value, bound)
        return done

    def _push(self, value: float, inside: Units, free: Units, bound: Bound | None = None) -> None:
        """Queue a node if it may hold something better.

        If it is a single support, or one unit short of that, its supports are tried at once instead.
        """
        if not value > self.pruning_level:
            return
        if bound is None:
            free = free & self.supports.joining(inside)
            size, left = np.sort(self.supports.size[free]), self.supports.left(inside)
            if int(size.sum()) <= left:
                return self._try(inside | free)
            if int(size[:2].sum()) > left:
                return self._try_each(inside, np.flatnonzero(free))
        self.queue(value, inside, free, bound)

    def _divide(self, inside: Units, free: Units, value: float, bound: Bound) -> None:
        """Divide a node: child j lacks the j-th free unit and has those before it; the last has them all.

        Units without which no support is better are forced in first.
        """
        without = np.full(len(free), value) if bound.without is None else np.minimum(bound.without, value)
        if bound.without is not None:
            forced = free & (without <= self.pruning_level)
            inside, free = inside | forced, free & ~forced
            if self.supports.left(inside) < 0:
                return
            free = free & self.supports.joining(inside)
        by_weight = np.flatnonzero(free)[np.lexsort((-bound.weight[free], without[free]))]
        for unit in by_weight if bound.without is not None else by_weight[:1]:
            if not self.supports.joining(inside)[unit]:
                free = with_unit(free, drop=unit)
                continue
            free = with_unit(free, drop=unit)
            self._push(float(without[unit]), inside, free)
            inside = with_unit(inside, add=unit)
        self._push(value, inside, free)

    def _complete(self, inside: Units, free: Units, bound: Bound) -> None:
        """Try the units inside with those free ones of the largest weights that have room."""
        for unit in np.flatnonzero(free)[descending(bound.weight[free])]:
            if self.supports.left(inside) <= 0:
                break
            if self.supports.joining(inside)[unit]:
                inside = with_unit(inside, add=unit)
        self._try(inside)

    def _try(self, units: Units) -> None:
        """Make these units the best if their value is larger."""
        value = self.objective.value(units) if units.any() else -np.inf
        if value > self.value:
            self._improve(units, value)

    def _improve(self, units: Units, value: float) -> None:
        """Set the best units, and what a bound must exceed from now on."""
        self.units, self.value = units, value
        self.pruning_level = value + self.tol * abs(value) if value > -np.inf else value

    def _try_each(self, inside: Units, others: Index) -> None:
        """Try the units inside with each other one that may be better."""
        values = self.objective.with_each(inside, others)
        for i in descending(values):
            if not values[i] > self.pruning_level:
                return
            self._try(with_unit(inside, add=others[i]))
            if self.objective.exact:
                return


# ---- the best disjoint supports of few units, by enumeration of supports in the order of their values ---


Sets = list[Units]  # disjoint supports


def splits_of(total: int, r: int, most: int) -> list[tuple[int, ...]]:
    """Return all ways to write the total as a sum of r numbers in [1, most], descending."""
    if r == 1:
        return [(total,)] if 1 <= total <= most else []
    return [
        (first, *rest)
        for first in range(min(most, total - r + 1), 0, -1)
        for rest in splits_of(total - first, r - 1, first)
    ]


def enumerated(
    objective: Objective, splits: list[tuple[int, ...]], places: tuple[int, ...], best: Sets, value: float
) -> tuple[Sets, float, bool]:
    """Return the best disjoint sets whose sizes are one of the splits, their value, and whether it is proved.

    `best` and `value` are known before; they are returned where nothing is better, or where there are too
    many supports to enumerate. The sizes of a split descend. If they are those of `places`, the sets come in
    the order of `places`.
    """
    sizes, size = {k for split in splits for k in split}, objective.supports.size
    units = np.flatnonzero(objective.supports.allowed)
    counts = sizes if (size == 1).all() else range(1, len(units) + 1)  # a unit more never lowers the value
    if len(size) > 62 or sum(comb(len(units), n) for n in counts) > DISJOINT_SUPPORTS:
        return best, value, False
    search = _Enumeration(objective, units, counts, sizes)
    for split in splits:
        value, found, complete = search.better(split, value)
        if found is not None:
            best = [_mask(bits, len(size)) for bits in found]
            if sorted(split) == sorted(places):
                order = np.argsort(np.argsort([-k for k in places], kind="stable"), kind="stable")
                best = [best[i] for i in order]
        if not complete:
            return best, value, False
    return best, value, True


def _mask(bits: int, n: int) -> Units:
    """Return the units of these bits, as a mask."""
    return ((bits >> np.arange(n)) & 1).astype(bool)


class _TooManyNodes(Exception):
    """Raised where the enumeration takes too long."""


class _Enumeration:
    """For each cardinality the supports that have room in it, as bits of integers, by decreasing value."""

    def __init__(self, objective: Objective, units: Index, counts: Iterable[int], sizes: set[int]):
        size = objective.supports.size
        every = chain.from_iterable(combinations(units, n) for n in counts)
        sets = [with_entries(len(size), np.array(chosen), True, bool) for chosen in every]
        table = np.array(sets)
        count, values = table @ size, objective.most(sets)
        order = descending(values)
        bits = (table * (1 << np.arange(len(size)))).sum(axis=1)[order]
        count, values = count[order], values[order]
        exactly = bool((size == 1).all())
        self.bits: dict[int, Index] = {}
        self.values: dict[int, Array] = {}
        for k in sizes:
            fits = count == k if exactly else count <= k
            self.bits[k], self.values[k] = bits[fits], values[fits]
        self.objective, self.nodes = objective, 0
        self.value: Callable[[int], float] = cache(lambda bits: objective.value(_mask(bits, len(size))))

    def better(self, sizes: tuple[int, ...], value: float) -> tuple[float, tuple[int, ...] | None, bool]:
        """Return the largest total value, its supports if better than before, and whether it is proved."""
        self.sizes, self.most = sizes, value
        self.found: tuple[int, ...] | None = None
        with suppress(_TooManyNodes):
            self._extend((), 0, 0.0, 0)
        return self.most, self.found, self.nodes <= DISJOINT_NODES

    def _extend(self, chosen: tuple[int, ...], used: int, value: float, start: int) -> None:
        """Try supports for the next place while they may, with the best of the later places, be the best."""
        t = len(chosen)
        if t == len(self.sizes):
            self.most, self.found = value, chosen
            return
        k, after = self.sizes[t], self.sizes[t + 1 :]
        free = {size: np.flatnonzero((self.bits[size] & used) == 0) for size in {k, *after}}
        if any(len(index) == 0 for index in free.values()):
            return
        first = {size: float(self.values[size][index[0]]) for size, index in free.items()}
        for i in free[k][np.searchsorted(free[k], start) :]:
            own, bits = float(self.values[k][i]), int(self.bits[k][i])
            rest = sum(min(first[size], own) if size == k else first[size] for size in after)
            if value + own + rest <= self.most * (1 + RISE):
                break
            self.nodes += 1
            if self.nodes > DISJOINT_NODES:
                raise _TooManyNodes
            if not self.objective.exact:
                own = self.value(bits)
                if value + own + rest <= self.most * (1 + RISE):
                    continue
            following = int(i) + 1 if after and after[0] == k else 0
            self._extend((*chosen, bits), used | bits, value + own, following)
