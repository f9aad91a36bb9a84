"""The best disjoint supports of few units, by enumeration of supports in the order of their values."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations
from math import comb

import numpy as np

from .._limits import DISJOINT_NODES, DISJOINT_SUPPORTS, RISE
from .._types import Array, Index
from .admissible import Units
from .objective import Objective

__all__ = ["Sets", "enumerated", "splits_of"]

Sets = list[Units]


def splits_of(total: int, r: int, most: int) -> list[tuple[int, ...]]:
    """All ways to write the total as a sum of r numbers in [1, most], descending."""
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
    """Better disjoint sets of one of the splits, their value, and whether nothing is better.

    The sizes of a split descend; the sets have those of `places` in turn where these are the same.
    """
    sizes, size = {k for split in splits for k in split}, objective.supports.size
    units = np.flatnonzero(objective.supports.allowed)
    counts = sizes if (size == 1).all() else range(1, len(units) + 1)  # a unit more is no worse
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
    return ((bits >> np.arange(n)) & 1).astype(bool)


class _Enumeration:
    """Supports that have room in each cardinality as bits, by decreasing value."""

    def __init__(self, objective: Objective, units: Index, counts: Iterable[int], sizes: set[int]):
        size, sets = objective.supports.size, []
        for n in counts:
            for chosen in combinations(units.tolist(), n):
                one = np.zeros(len(size), bool)
                one[[*chosen]] = True
                sets.append(one)
        table = np.array(sets)
        count, values = table @ size, objective.most(sets)
        order = np.argsort(-values, kind="stable")
        bits = (table * (1 << np.arange(len(size)))).sum(axis=1)[order]
        count, values = count[order], values[order]
        exactly = bool((size == 1).all())
        self.bits: dict[int, Index] = {}
        self.values: dict[int, Array] = {}
        for k in sizes:
            fits = count == k if exactly else count <= k
            self.bits[k], self.values[k] = bits[fits], values[fits]
        self.objective, self.nodes = objective, 0
        self.known: dict[int, float] = {}

    def _value(self, bits: int) -> float:
        if bits not in self.known:
            self.known[bits] = self.objective.value(_mask(bits, len(self.objective.supports.size)))
        return self.known[bits]

    def better(self, sizes: tuple[int, ...], value: float) -> tuple[float, list[int] | None, bool]:
        """The best supports if they exceed a value, that, and whether nothing can be better."""
        self.sizes, self.most = sizes, value
        self.found: list[int] | None = None
        complete = self._extend([], 0, 0.0, 0)
        return self.most, self.found, complete

    def _extend(self, chosen: list[int], used: int, value: float, start: int) -> bool:
        """Supports for the next place, as long as they and the best of the rest may exceed the best."""
        t, r = len(chosen), len(self.sizes)
        if t == r:
            self.most, self.found = value, [*chosen]
            return True
        k, after = self.sizes[t], self.sizes[t + 1 :]
        free = {size: np.flatnonzero((self.bits[size] & used) == 0) for size in {k, *after}}
        if any(len(index) == 0 for index in free.values()):
            return True
        first = {size: float(self.values[size][index[0]]) for size, index in free.items()}
        for i in free[k][np.searchsorted(free[k], start) :]:
            own, bits = float(self.values[k][i]), int(self.bits[k][i])
            rest = sum(min(first[size], own) if size == k else first[size] for size in after)
            if value + own + rest <= self.most * (1 + RISE):
                break
            self.nodes += 1
            if self.nodes > DISJOINT_NODES:
                return False
            if not self.objective.exact:
                own = self._value(bits)
                if value + own + rest <= self.most * (1 + RISE):
                    continue
            following = int(i) + 1 if after and after[0] == k else 0
            chosen.append(bits)
            complete = self._extend(chosen, used | bits, value + own, following)
            chosen.pop()
            if not complete:
                return False
        return True
