"""Branch and bound over groups of variables, and under signs, with a proof."""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .._limits import REFIT_RISE
from ..operators.deflation import DeflatedOperator
from .exact_tree import best_on_support
from .solution import Solution

__all__ = ["State", "UnitTree"]
__dir__ = __all__.copy

State = tuple[NDArray[np.bool_], NDArray[np.bool_]]  # which units are in, and which may join


class UnitTree:
    """Sets of supports by the units that are in and that may join; the largest bound first.

    x'Ax is at most the largest eigenvalue of A on the units in or free, where x has signs also that of A
    without the entries that such x makes negative; and, A being semidefinite, at most that of the units in
    and the largest ones of single free units together.
    """

    def __init__(self, state: DeflatedOperator, A: NDArray[np.float64], k: int, best: Solution, tol: float):
        choice = state.choice
        assert choice is not None
        self.state, self.choice, self.A, self.k, self.tol = state, choice, A, k, tol
        self.incumbent, self.nodes, self.pushed = best, 0, 0
        self.matrices = [A]
        if choice.signs is not None:
            s = choice.signs.astype(np.float64)
            negative = (A * np.outer(s, s) < 0) & (np.outer(s, s) != 0)
            self.matrices.append(np.where(negative, 0, A))
        definite = np.linalg.eigvalsh(A)[0] >= -1e-10 * max(np.abs(A).max(), 1e-300)
        self.single = None
        if definite:
            members = [choice.variables(np.array([u])) for u in range(len(choice.allowed))]
            self.single = np.array([np.linalg.eigvalsh(A[np.ix_(m, m)])[-1] for m in members])
        self.heap: list[tuple[float, int, State]] = []
        self._push(choice.included.copy(), choice.allowed & ~choice.included)

    @property
    def level(self) -> float:
        """What a bound must exceed."""
        value, slack = self.incumbent.objective, REFIT_RISE.of(self.state.operator.dtype)
        return value + (self.tol + slack) * abs(value)

    def best(self) -> Solution:
        return self.incumbent

    def open(self) -> bool:
        return bool(self.heap) and -self.heap[0][0] > self.level

    def upper(self) -> float:
        """No feasible support has a larger value."""
        return max(self.level, -self.heap[0][0]) if self.heap else self.level

    def step(self, count: int, check_limits: Callable[[int], object]) -> int:
        """Divide up to `count` nodes; how many there were."""
        done = 0
        while done < count and self.open():
            check_limits(0)
            inside, free = heapq.heappop(self.heap)[2]
            done += 1
            self.nodes += 1
            both = self.choice.variables(np.flatnonzero(inside | free))
            vector = np.zeros(len(self.A))
            vector[both] = np.linalg.eigh(self.matrices[-1][np.ix_(both, both)])[1][:, -1]
            weight = np.where(free, self.choice.norms(vector), -1)
            new = int(np.argmax(weight))
            left = free.copy()
            left[new] = False
            more = inside.copy()
            more[new] = True
            self._push(more, left)
            self._push(inside, left)
        return done

    def _push(self, inside: NDArray[np.bool_], free: NDArray[np.bool_]) -> None:
        """A node that may hold something better; one support alone is tried at once."""
        size = self.choice.size
        room = self.k - int(size[inside].sum())
        free = free & (size <= room)
        if int(size[free].sum()) <= max(room, 0):
            whole = inside | free
            if whole.any():
                self._try(self.choice.variables(np.flatnonzero(whole)))
            return
        bound = self._bound(inside, free, room)
        if bound > self.level:
            self.pushed += 1
            heapq.heappush(self.heap, (-bound, -self.pushed, (inside, free)))  # ties: the newest first

    def _bound(self, inside: NDArray[np.bool_], free: NDArray[np.bool_], room: int) -> float:
        both = self.choice.variables(np.flatnonzero(inside | free))
        bound = min(float(np.linalg.eigvalsh(M[np.ix_(both, both)])[-1]) for M in self.matrices)
        if self.single is not None:
            own = self.choice.variables(np.flatnonzero(inside))
            first = float(np.linalg.eigvalsh(self.A[np.ix_(own, own)])[-1]) if len(own) else 0.0
            bound = min(bound, first + self._filled(free, room))
        return bound

    def _filled(self, free: NDArray[np.bool_], room: int) -> float:
        """The room filled with free units, the last one in part: no units that fit are more (Dantzig)."""
        assert self.single is not None
        value, size = np.maximum(self.single[free], 0), self.choice.size[free]
        order = np.argsort(-value / size)
        before = np.cumsum(size[order]) - size[order]
        part = np.clip((room - before) / size[order], 0, 1)
        return float(part @ value[order])

    def _try(self, support: NDArray[np.intp]) -> None:
        new = best_on_support(self.state, support)
        if new is not None and new.objective > self.incumbent.objective:
            self.incumbent = new
