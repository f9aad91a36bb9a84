"""The elastic net under what the caller knows of the variables (supports/admissible).

For K = G + ridge I and products c it minimizes over b of the signs given

    b'Kb - 2 c'b + 2 t sum ||b_u||,   u the units that are not included,

by turns: proximal steps, a unit after the other, which say which entries are zero, and Newton steps for the
others, which are exact where units are single variables.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import SHAPED_NET_ROUNDS, SHAPED_NET_TOL
from .._types import Array, Index
from ..supports.admissible import Supports

__all__ = ["ShapedNet"]

_EPS = float(np.finfo(np.float64).eps)


class ShapedNet:
    """The problem for some variables, of whole units, of which K is the matrix."""

    unit: Index
    included: NDArray[np.bool_]
    size: Index
    signs: NDArray[Any]
    step: NDArray[Any]
    barred: NDArray[Any]

    def __init__(self, K: Array, choice: Supports, variables: Index):
        self.K = K
        names, self.unit = np.unique(choice.unit[variables], return_inverse=True)
        self.included, self.size = choice.included[names], choice.size[names]
        self.barred = np.zeros(len(names), bool)
        self.signs = np.zeros(len(K)) if choice.signs is None else choice.signs[variables].astype(float)
        self.members: list[Index] = [np.flatnonzero(self.unit == u) for u in range(len(names))]
        self.step = np.array([float(np.linalg.eigvalsh(K[np.ix_(u, u)])[-1]) for u in self.members])

    def norms(self, b: Array) -> Array:
        """Of the entries of each unit."""
        return np.sqrt(np.bincount(self.unit, b * b, minlength=len(self.members)))

    def projected(self, b: Array) -> Array:
        """b with zeros in the place of wrong signs, and of units that are barred."""
        return np.where((b * self.signs < 0) | self.barred[self.unit], 0.0, b)

    def objective(self, b: Array, c: Array, level: float) -> float:
        """What is minimized."""
        cost = float(self.norms(b)[~self.included].sum())
        return float(b @ (self.K @ b)) - 2 * float(c @ b) + 2 * level * cost

    def solve(self, c: Array, level: float, b: Array) -> Array:
        """The minimizer, from b."""
        b = self.projected(b)
        enough = SHAPED_NET_TOL * float(np.abs(c).max(initial=0))
        for _ in range(SHAPED_NET_ROUNDS):
            change = self._sweep(b, c, level)
            if change <= enough:
                break
            b = self._newton(b, c, level)
        return b

    def _sweep(self, b: Array, c: Array, level: float) -> float:
        """A proximal step of each unit, in place; the largest of their changes, as a product."""
        r, most = c - self.K @ b, 0.0
        steps = np.where(self.barred, 0, self.step)
        for u, step, inside in zip(self.members, steps, self.included, strict=True):
            if not step > 0:
                continue
            new = b[u] + r[u] / step
            new[new * self.signs[u] < 0] = 0
            if not inside:
                norm = math.sqrt(float(new @ new))
                new *= max(0.0, 1 - level / (step * norm)) if norm > 0 else 0.0
            moved = new - b[u]
            if moved.any():
                r -= self.K[:, u] @ moved
                b[u] = new
                most = max(most, step * float(np.abs(moved).max()))
        return most

    def _curvature(self, b: Array, S: Index, level: float) -> tuple[Array, Array]:
        """Half the Hessian of the entries S, which are not zero, and the slope b_u/||b_u|| of the norms."""
        H, slope = self.K[np.ix_(S, S)].copy(), np.zeros(len(S))
        norm, own = self.norms(b), self.unit[S]
        H[np.diag_indices(len(S))] += 8 * _EPS * len(S) * float(H.diagonal().max(initial=0))
        for u in np.unique(own):
            at = np.flatnonzero(own == u)
            if self.included[u]:
                continue
            slope[at] = direction = b[S[at]] / norm[u]
            H[np.ix_(at, at)] += level / norm[u] * (np.eye(len(at)) - np.outer(direction, direction))
        return H, slope

    def _newton(self, b: Array, c: Array, level: float) -> Array:
        """One step for the entries that are not zero, up to where the first would change its sign."""
        S = np.flatnonzero(b)
        if len(S) == 0:
            return b
        H, slope = self._curvature(b, S, level)
        d = np.linalg.solve(H, c[S] - self.K[S] @ b - level * slope)
        alone = np.bincount(self.unit, minlength=len(self.members)) == 1
        kept = (self.signs[S] != 0) | (alone & ~self.included)[self.unit[S]]
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            ends = np.where(kept & (d * b[S] < 0), -b[S] / d, np.inf)
        length, before = min(1.0, float(ends.min(initial=np.inf))), self.objective(b, c, level)
        while length > _EPS:
            new = b.copy()
            new[S] = np.where(ends <= length, 0.0, b[S] + length * d)
            if self.objective(new, c, level) <= before + 8 * _EPS * abs(before):
                return new
            length /= 2
        return b

    def sparse(self, c: Array, limit: int, b: Array, guess: float) -> tuple[Array, float]:
        """The minimizer of the lowest level that leaves at most so many units, or variables of whole units,
        included ones among them, and that level.

        A unit that has no room is barred, and the level falls further as long as another one has.
        """
        self.barred = ~self.included & (self.size > limit - int(self.size[self.included].sum()))
        best, level, more = self._lowest(c, limit, b, guess)
        while self.size.max(initial=1) > 1 and len(more):
            inside = (self.norms(best) > 0) | self.included
            without_room = ~inside & (self.size > limit - int(self.size[inside].sum()))
            without_room[more[-1]] |= not (without_room & ~self.barred).any()  # each has, but not together
            self.barred |= without_room
            if not (~inside & ~self.barred).any():
                break
            best, level, more = self._lowest(c, limit, best, level)
        self.barred = np.zeros_like(self.included)
        return best, level

    def _lowest(self, c: Array, limit: int, b: Array, guess: float) -> tuple[Array, float, Index]:
        """The same for the units that are not barred, and those that would enter beyond."""
        low, high, best = 0.0, guess, self.solve(c, guess, b)
        beyond = best
        if guess == 0 or self._count(best) > limit:
            low, high = guess, self._top(c)
            best = self.solve(c, high, np.zeros_like(b))
        while high - low > SHAPED_NET_TOL * high:
            entry = self._entry(best, c, high)
            if entry <= SHAPED_NET_TOL * high:
                new = self.solve(c, 0.0, best)
                if self._count(new) <= limit:
                    return new, 0.0, np.zeros(0, np.intp)
            near = entry * (1 + SHAPED_NET_TOL / 4), entry * (1 - SHAPED_NET_TOL / 4)
            for level in (*near, (low + high) / 2):
                if not low < level < high:
                    continue
                new = self.solve(c, level, best)
                if self._count(new) > limit:
                    low, beyond = level, new
                else:
                    best, high = new, level
        return best, high, np.flatnonzero((self.norms(beyond) > 0) & (self.norms(best) == 0) & ~self.included)

    def _count(self, b: Array) -> int:
        return int(self.size[(self.norms(b) > 0) | self.included].sum())

    def _top(self, c: Array) -> float:
        """The level beyond which nothing enters beside what is included."""
        own = np.where(self.included[self.unit], c, 0.0)
        b = self.solve(own, 1e6 * float(np.linalg.norm(c)), np.zeros_like(c))
        r = self.projected(c - self.K @ b)
        return float(self.norms(r)[~self.included].max(initial=0)) * (1 + SHAPED_NET_TOL)

    def _entry(self, b: Array, c: Array, level: float) -> float:
        """Where below this level the next unit enters, were the entries to go on along their tangent."""
        r, S = c - self.K @ b, np.flatnonzero(b)
        w = np.zeros_like(r)
        if len(S):
            H, slope = self._curvature(b, S, level)
            w = self.K[:, S] @ np.linalg.solve(H, slope)
        outside = ~self.included & (self.norms(b) == 0)
        if not outside.any():
            return 0.0
        low, high = 0.0, level
        for _ in range(60):
            middle = (low + high) / 2
            inside = self.norms(self.projected(r + (middle - level) * w))[outside].max() <= middle
            low, high = (low, middle) if inside else (middle, high)
        return high
