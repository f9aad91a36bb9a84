"""The best support of a least squares component, by branch and bound, with a proof.

The value of a support is at most that of any that holds it. A node is a set T of variables that are allowed,
some of them forced, and its bound the value of T. The bounds v_i without each of the others in turn come from
one decomposition. In the order of v_i, ascending, the children exclude the j-th and force those before it, as
Furnival and Wilson (1974) do for regressions: what is worth most is forced soon.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from .._limits import RISE
from .._records import record
from ..linalg.pencil import PencilBasis
from .least_squares_search import Index, Ratio, Support

__all__ = ["Proof", "Refit", "prove"]
__dir__ = __all__.copy

Refit = Callable[[Index], Support | None]


@record
class Proof:
    """The best support found, and what no other exceeds."""

    best: Support
    upper: float
    complete: bool
    n_nodes: int


def prove(
    ratio: Ratio,
    refit: Refit,
    k: int,
    best: Support,
    tol: float,
    node_limit: float,
    stop: Callable[[int], bool],
) -> Proof:
    """Branch and bound from a support that is known; `refit` gives the best feasible x on a support."""
    usable = np.flatnonzero(ratio.usable)
    M, G = ratio.blocks(usable)
    tree = _Tree(ratio, M, G, usable, refit, min(k, len(usable)), best, tol)
    root = ratio.basis(M, G)
    tree.push(float(root.eigenvalues[0]), np.zeros(len(usable), bool), np.ones(len(usable), bool))
    n_nodes = 0
    while tree.heap and n_nodes < node_limit and not stop(n_nodes):
        tree.expand()
        n_nodes += 1
    bounds = [-bound for bound, *_ in tree.heap]
    return Proof(tree.best, max([tree.level(), *bounds]), not tree.heap, n_nodes)


class _Tree:
    def __init__(
        self, ratio: Ratio, M: NDArray[np.float64], G: NDArray[np.float64], usable: Index, refit: Refit,
        k: int, best: Support, tol: float,
    ):  # fmt: skip
        self.ratio, self.M, self.G, self.usable, self.refit = ratio, M, G, usable, refit
        self.k, self.best, self.tol = k, best, max(tol, RISE)
        self.heap: list[tuple[float, int, NDArray[np.bool_], NDArray[np.bool_]]] = []
        self.count = 0

    def level(self) -> float:
        """What a bound must exceed."""
        return self.best.value * (1 + self.tol)

    def push(self, bound: float, forced: NDArray[np.bool_], allowed: NDArray[np.bool_]) -> None:
        if bound > self.level():
            self.count += 1
            heapq.heappush(self.heap, (-bound, self.count, forced, allowed))

    def expand(self) -> None:
        """Take the node of the largest bound, and put its children in its place."""
        bound, _, forced, allowed = heapq.heappop(self.heap)
        if -bound <= self.level():
            self.heap.clear()
            return
        T = np.flatnonzero(allowed)
        if len(T) <= self.k:
            self._try(T)
            return
        value = self._basis(T).without_each()
        forced = forced.copy()
        forced[T[value <= self.level()]] = True
        room = self.k - int(np.count_nonzero(forced))
        open_ = ~forced[T]
        if room == 0:
            self._try(np.flatnonzero(forced))
        elif room == 1:
            self._last(np.flatnonzero(forced), T[open_])
        elif room > 1:
            order = np.argsort(value[open_], kind="stable")[:room]
            for i, without in zip(T[open_][order], value[open_][order], strict=True):
                rest = allowed.copy()
                rest[i] = False
                self.push(float(without), forced.copy(), rest)
                forced[i] = True
            self._try(np.flatnonzero(forced))

    def _basis(self, S: Index) -> PencilBasis:
        return self.ratio.basis(self.M[np.ix_(S, S)], self.G[np.ix_(S, S)])

    def _last(self, forced: Index, candidate: Index) -> None:
        """All supports of one variable more, of which only those are tried that may be better."""
        basis = self._basis(forced) if len(forced) else PencilBasis.empty(0)
        part = np.ix_(forced, candidate)
        value = self.ratio.values_with(self.M[part], self.G[part], self.usable[candidate], basis)
        for j in np.argsort(-value, kind="stable"):
            if not value[j] > self.level():
                return
            self._try(np.append(forced, candidate[j]))

    def _try(self, S: Index) -> None:
        new = self.refit(self.usable[np.sort(S)])
        if new is not None and new.value > self.best.value:
            self.best = new
