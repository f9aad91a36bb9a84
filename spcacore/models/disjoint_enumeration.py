"""The best disjoint supports of few variables, by enumeration of supports in the order of their values."""

from __future__ import annotations

from itertools import combinations
from math import comb

import numpy as np

from .._limits import DISJOINT_NODES, DISJOINT_SUPPORTS, RISE
from .bordered_sums import Array, Index

__all__ = ["Enumeration", "Sets", "enumerated", "splits_of"]
__dir__ = __all__.copy

Sets = list[Index]


def splits_of(total: int, r: int, most: int) -> list[tuple[int, ...]]:
    """All ways to write the total as a sum of r numbers in [1, most], descending."""
    if r == 1:
        return [(total,)] if 1 <= total <= most else []
    return [
        (first, *rest)
        for first in range(min(most, total - r + 1), 0, -1)
        for rest in splits_of(total - first, r - 1, first)
    ]


class Enumeration:
    """Supports of each size as bits, by decreasing value."""

    def __init__(self, A: Array, sizes: set[int]):
        self.bits: dict[int, Index] = {}
        self.values: dict[int, Array] = {}
        for k in sizes:
            S = np.array(list(combinations(range(len(A)), k)))
            values = np.linalg.eigvalsh(A[S[:, :, None], S[:, None, :]])[:, -1]
            order = np.argsort(-values, kind="stable")
            self.values[k], self.bits[k] = values[order], (1 << S).sum(axis=1)[order]
        self.nodes = 0

    @classmethod
    def serves(cls, p: int, sizes: set[int]) -> bool:
        """Whether there are so few supports that all are tried."""
        return p <= 62 and sum(comb(p, k) for k in sizes) <= DISJOINT_SUPPORTS

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
            own = float(self.values[k][i])
            rest = sum(min(first[size], own) if size == k else first[size] for size in after)
            if value + own + rest <= self.most * (1 + RISE):
                break
            self.nodes += 1
            if self.nodes > DISJOINT_NODES:
                return False
            following = int(i) + 1 if after and after[0] == k else 0
            chosen.append(int(self.bits[k][i]))
            complete = self._extend(chosen, used | chosen[-1], value + own, following)
            chosen.pop()
            if not complete:
                return False
        return True


def enumerated(A: Array, splits: list[tuple[int, ...]], best: Sets, value: float) -> tuple[Sets, bool]:
    """Better disjoint sets of one of the splits, and whether nothing is better than what is returned.

    The sizes of a split descend; the sets keep the places of the sizes of `best` where these are the same.
    """
    sizes = {k for split in splits for k in split}
    if not Enumeration.serves(len(A), sizes):
        return best, False
    search, places = Enumeration(A, sizes), [len(S) for S in best]
    for split in splits:
        value, found, complete = search.better(split, value)
        if found is not None:
            sets = [np.flatnonzero((bits >> np.arange(len(A))) & 1) for bits in found]
            if sorted(split) == sorted(places):
                order = np.argsort(np.argsort([-k for k in places], kind="stable"), kind="stable")
                sets = [sets[i] for i in order]
            best = sets
        if not complete:
            return best, False
    return best, True
