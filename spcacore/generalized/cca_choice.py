"""What the caller knows of the variables of a side (supports/admissible), in the search for pairs.

For given v and g = Cv the best u on a support maximizes (g'u)^2/u'Bu; under signs it is the minimizer of
u'Bu - 2 g'u of these signs, a convex problem. Supports grow by units, first those that are included, and
are then changed a unit at a time.
"""

from __future__ import annotations

import math

import numpy as np

from .._limits import CCA_CHOICE_TURNS, CHOICE_SWAPS, RISE
from ..linalg.pencil import whitening
from ..models.shaped_net import ShapedNet
from ..supports.admissible import Supports
from .form import Array, Index
from .pencil import Pencil, Solution

__all__ = ["Chosen", "best_values"]
__dir__ = __all__.copy


class Chosen:
    """One side, in the units of its pencil."""

    def __init__(self, pencil: Pencil, choice: Supports, count: int):
        self.pencil, self.choice, self.count = pencil, choice, count

    def members(self, units: Index) -> Index:
        """Their variables that are not constant."""
        return np.intersect1d(self.choice.variables(units), self.pencil.active)

    def values(self, S: Index, g: Array) -> tuple[Array, float]:
        """The best values on a support, u'Bu = 1, and g'u; the values are zero where that is not positive."""
        B = self.pencil.B.block(S)
        if self.choice.signs is None:
            mu, U = np.linalg.eigh(B)
            W = whitening(mu, U, mu > self.pencil.cut(float(mu[-1])))
            u = W @ (W.T @ g[S])
        else:
            u = ShapedNet(B, self.choice, S).solve(g[S], 0.0, np.zeros(len(S)))
        size = float(u @ (B @ u))
        if not size > 0:
            return np.zeros(len(S)), 0.0
        u = u / math.sqrt(size)
        return u, float(u @ g[S])

    def solution(self, units: Index, g: Array) -> Solution:
        """The best values of these units."""
        S = self.members(units)
        u, value = self.values(S, g) if len(S) else (np.zeros(0), 0.0)
        return Solution(S, u, value, 0, True)

    def search(self, g: Array, earlier: Index | None, swaps: bool) -> Solution:
        """Of up to so many units the best that are found, with g in the units of the pencil."""
        units = np.flatnonzero(self.choice.included)
        x = self.solution(units, g)
        found = [self._grown(g, units, x)]
        if self.choice.counts_variables:
            found.append(self._grown(g, units, x, True))
        if earlier is not None:
            found.append(self.solution(self.choice.units(earlier), g))
        if swaps:
            found = [self._swapped(x, g) for x in found]
        return max(found, key=lambda x: x.objective)

    def _candidates(self, x: Solution, units: Index, g: Array, kept: Index | None = None) -> Index:
        """Other units that have room, beside those kept, by their products with what is not explained."""
        r = g.copy()
        if len(x.index):
            r -= x.objective * (x.value @ self.pencil.B.rows(x.index))
        spread = np.sqrt(np.where(self.pencil.Bd > 0, self.pencil.Bd, 1))
        inside = np.isin(np.arange(len(self.choice.allowed)), units if kept is None else kept)
        norms = self.choice.norms(self.choice.projected(r / spread))
        norms[~self.choice.fitting(inside, self.count)] = -1
        norms[units] = -1
        order = np.argsort(-norms, kind="stable")[:CHOICE_SWAPS]
        return order[norms[order] > 0]

    def _grown(self, g: Array, units: Index, x: Solution, relative: bool = False) -> Solution:
        """x with one unit more as long as one has room, that of the largest value, or gain over size."""
        while len(others := self._candidates(x, units, g)):
            found = [self.solution(np.append(units, u), g) for u in others]
            gains = np.array([y.objective - x.objective for y in found])
            best = int(np.argmax(gains / self.choice.size[others] if relative else gains))
            units, x = np.append(units, others[best]), found[best]
        return x

    def _swapped(self, x: Solution, g: Array) -> Solution:
        """With one unit in the place of another, and more where they have room, as long as that helps."""
        for _ in range(CHOICE_SWAPS):
            units = np.union1d(self.choice.units(x.index), np.flatnonzero(self.choice.included))
            ways = []
            for unit in units[~self.choice.included[units]]:
                rest = units[units != unit]
                y = self.solution(rest, g)
                others = self._candidates(y, units, g, rest)
                ways += [(np.append(rest, u), self.solution(np.append(rest, u), g)) for u in others]
            if self.choice.counts_variables:
                ways = [(way, self._grown(g, way, y)) for way, y in ways]
            best = max((y for _, y in ways), key=lambda y: y.objective, default=x)
            if not best.objective > x.objective * (1 + RISE):
                break
            x = best
        return x


def best_values(sides: list[Chosen], S: Index, T: Index, C: Array, v: Array) -> tuple[Array, Array, float]:
    """u and v on two supports, C between them, from v and from the singular vectors, by turns.

    Where no side has signs the singular vectors are the best values.
    """
    W = []
    x, y = sides
    for side, index in ((x, S), (y, T)):
        mu, U = np.linalg.eigh(side.pencil.B.block(index))
        W.append(whitening(mu, U, mu > side.pencil.cut(float(mu[-1]))))
    left, value, right = np.linalg.svd(W[0].T @ C @ W[1], full_matrices=False)
    best = W[0] @ left[:, 0], W[1] @ right[0], float(value[0])
    if x.choice.signs is None and y.choice.signs is None:
        return best
    found = [_turns(x, y, S, T, C, start) for start in (v, best[1], -best[1])]
    return max(found, key=lambda one: one[2])


def _turns(x: Chosen, y: Chosen, S: Index, T: Index, C: Array, v: Array) -> tuple[Array, Array, float]:
    """u for v and v for u, as long as that helps."""
    p, q = x.pencil.B.p, y.pencil.B.p
    u, most = np.zeros(len(S)), 0.0
    for _ in range(CCA_CHOICE_TURNS):
        new, _ = x.values(S, _scattered(C @ v, S, p))
        other, value = y.values(T, _scattered(C.T @ new, T, q))
        if not value > most * (1 + RISE):
            break
        u, v, most = new, other, value
    return u, v, most


def _scattered(values: Array, index: Index, p: int) -> Array:
    out = np.zeros(p)
    out[index] = values
    return out
