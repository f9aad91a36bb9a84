"""One set of variables for all components that has given ones, or whole groups.

The bound of `common_support` holds with the shares c_i of a group added up: at most those fit that fill the
room, the last one in part (Dantzig 1957).
"""

from __future__ import annotations

import heapq
import math
import time

import numpy as np

from .._limits import ACROSS_ENTERING, ACROSS_RANDOM, RISE, SMALL_ORDER
from ..supports.admissible import Supports, Units, with_unit
from .bordered_sums import Array, Index, Steps, leading_sum
from .common_support import CommonProof

__all__ = ["CommonUnits", "filled", "per_unit"]
__dir__ = __all__.copy


def per_unit(choice: Supports, weight: Array) -> Array:
    """The sum over the variables of each unit."""
    return np.asarray(np.bincount(choice.unit, weight, minlength=len(choice.allowed)), np.float64)


def filled(value: Array, size: Index, room: int) -> float:
    """The most that things of these values and sizes add up to, the last one in part."""
    order = np.argsort(-value / size, kind="stable")
    before = np.cumsum(size[order]) - size[order]
    return float(np.clip((room - before) / size[order], 0, 1) @ np.maximum(value[order], 0))


class CommonUnits:
    """Sets of units of a cardinality, by the sum of the r largest eigenvalues of A on their variables."""

    def __init__(self, A: Array, choice: Supports, k: int, r: int, steps: Steps):
        self.A, self.choice, self.k, self.r, self.steps = A, choice, k, r, steps

    def value(self, units: Units) -> float:
        return leading_sum(self.A, self.variables(units), self.r)

    def variables(self, units: Units) -> Index:
        return self.choice.variables(np.flatnonzero(units))

    def best(self, seed: int) -> Units:
        """The best set that exchanges of one unit lead to, from a few starts, some random."""
        values, V = np.linalg.eigh(self.A)
        leading = np.square(V[:, -self.r :]) @ np.maximum(values[-self.r :], 0)
        weights = [per_unit(self.choice, w) for w in (self.A.diagonal(), leading)]
        rng, n = np.random.default_rng(seed), len(self.choice.allowed)
        if len(self.A) <= SMALL_ORDER:
            weights += [rng.random(n) for _ in range(ACROSS_RANDOM)]
        starts = [self.extended(self.choice.included), *map(self._largest, weights)]
        ends = [self.exchanged(units) for units in {one.tobytes(): one for one in starts}.values()]
        return max(ends, key=self.value)

    def _largest(self, weight: Array) -> Units:
        units = np.zeros(len(weight), bool)
        units[self.choice.largest(np.sqrt(np.maximum(weight, 0)), self.k)] = True
        return self.extended(units & self.choice.allowed)

    def extended(self, units: Units) -> Units:
        """One unit more after another, that which raises the sum most, while there is room."""
        while len(others := self._promising(units, self.choice.fitting(units, self.k))):
            ways = [with_unit(units, add=u) for u in others]
            units = max(ways, key=self.value)
        return units

    def exchanged(self, units: Units) -> Units:
        """The units where no exchange of one that is tried raises the sum."""
        value = self.value(units)
        while not self.steps.over:
            ways = []
            for u in np.flatnonzero(units & ~self.choice.included):
                rest = with_unit(units, drop=u)
                fits = self.choice.fitting(rest, self.k) & ~units
                ways += [with_unit(rest, add=v) for v in self._promising(units, fits)]
            new = max(ways, key=self.value, default=units)
            if not self.value(new) > value * (1 + RISE):
                break
            units = self.extended(new)
            value = self.value(units)
            self.steps()
        return units

    def _promising(self, units: Units, others: Units) -> Index:
        """Of other units those of the largest products with the leading eigenvectors."""
        index = np.flatnonzero(others)
        if len(index) <= ACROSS_ENTERING:
            return index
        S = self.variables(units)
        weight = self.A.diagonal()
        if len(S):
            V = np.linalg.eigh(self.A[np.ix_(S, S)])[1][:, -self.r :]
            weight = np.square(self.A[:, S] @ V).sum(axis=1)
        order = np.argsort(-per_unit(self.choice, weight)[index], kind="stable")
        return np.sort(index[order[:ACROSS_ENTERING]])

    def prove(
        self, begin: Units, *, tol: float, seconds: float = math.inf, nodes: float | None = None
    ) -> CommonProof:
        """Branch and bound over all sets of units, the most promising one first."""
        end, slack = time.monotonic() + seconds, max(tol, 1e-12)
        best, most = begin, self.value(begin)
        root = self.choice.included.copy(), self.choice.allowed & ~self.choice.included
        open_nodes, number = [(-self.bound(*root)[0], 0, root)], 1
        while open_nodes and -open_nodes[0][0] > most * (1 + slack):
            upper = -open_nodes[0][0]
            out = nodes is not None and number > nodes
            if out or time.monotonic() > end or self.steps.report(number):
                return CommonProof(self.variables(best), upper, False)
            inside, free = heapq.heappop(open_nodes)[2]
            u = int(np.argmax(np.where(free, self.bound(inside, free)[1], -1)))
            left = with_unit(free, drop=u)
            for more in (with_unit(inside, add=u), inside):
                fits = left & self.choice.fitting(more, self.k)
                if int(self.choice.size[more | fits].sum()) <= self.k:  # all that is left
                    value = self.value(more | fits) if (more | fits).any() else 0.0
                    if value > most:
                        most, best = value, more | fits
                    continue
                bound = min(upper, self.bound(more, fits)[0])
                if bound > most * (1 + slack):
                    heapq.heappush(open_nodes, (-bound, number, (more, fits)))
                    number += 1
        upper = max(most, -open_nodes[0][0]) if open_nodes else most
        return CommonProof(self.variables(best), upper * (1 + 1e-12), True)

    def bound(self, inside: Units, free: Units) -> tuple[float, Array]:
        """A bound on the sum over sets of those inside and some free ones; what each unit adds to it."""
        choice, own = self.choice, self.variables(inside)
        index = self.variables(inside | free)
        room = self.k - int(choice.size[inside].sum())
        G = self.A[np.ix_(index, index)]
        values, V = np.linalg.eigh(G)
        values = np.maximum(values, 0)
        bound, weight = math.inf, np.zeros(len(free))
        for level in np.concatenate([[0.0], values, (values[1:] + values[:-1]) / 2]):
            share = np.zeros(len(self.A))
            share[index] = np.square(V) @ np.maximum(values - level, 0)
            units = per_unit(choice, share)
            least = np.minimum(values[-self.r :], level).sum() + units[inside].sum()
            one = float(least) + filled(units[free], choice.size[free], room)
            if one < bound:
                bound, weight = one, units
        traces = per_unit(choice, np.maximum(self.A.diagonal(), 0))
        both = leading_sum(self.A, own, self.r) + filled(traces[free], choice.size[free], room)
        return min(bound, both), weight
