"""Least squares components of groups of variables, with what is included, and of given signs.

The value x'Mx/x'Gx of a support does not fall with a unit more, a group or a variable, and signs never raise
it. So the value of all units that may be in bounds that of any of them, as in `least_squares_exact`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from .._limits import CHOICE_SWAPS, LEAST_SQUARES_SWAP_WORK, RISE
from ..linalg.pencil import PencilBasis, ties
from ..linalg.signed import Vector, signed_ratio
from ..supports.admissible import Supports, Units, with_unit
from .least_squares_exact import Proof, Refit
from .least_squares_search import Index, Ratio, Support
from .solution import ProgressClock

__all__ = ["UnitSearch", "prove_units"]
__dir__ = __all__.copy


class UnitSearch:
    """Supports of whole units for a cardinality, each with the best x of the signs."""

    def __init__(self, ratio: Ratio, choice: Supports, k: int, clock: ProgressClock):
        self.ratio, self.choice, self.k, self.clock = ratio, choice, k, clock
        self.count = 0

    def forward(self, ratio: Ratio | None = None, begin: Units | None = None) -> Units:
        """The units that are included, or begun with, and one more after another, which makes the value
        largest."""
        search = self if ratio is None else UnitSearch(ratio, self.choice, self.k, self.clock)
        units = self.choice.included if begin is None else begin
        while not self.clock(self.count):
            outside = np.flatnonzero(self.choice.fitting(units, self.k))
            outside = search.promising(units, outside)
            ways = [with_unit(units, add=u) for u in outside]
            values = search.values(ways)
            if len(ways) == 0 or not values.max() > -np.inf:
                break
            self.count += 1
            units = ways[int(np.argmax(values))]
        return units

    def backward(self) -> Units:
        """From all units that are not excluded, without that which costs least, whatever the signs."""
        units = self.choice.allowed.copy()
        while self.choice.size[units].sum() > self.k and not self.clock(self.count):
            free = np.flatnonzero(units & ~self.choice.included)
            if self.choice.grouped:
                value = self.values([with_unit(units, drop=u) for u in free], signed=False)
            else:
                S = self._usable(units)
                value = np.full(len(units), self.ratio.largest)  # of what adds nothing
                value[S] = self.ratio.basis(*self.ratio.blocks(S)).without_each()
                value[~self.ratio.usable] = np.inf
                value = value[free]
            units = with_unit(units, drop=free[int(ties(value)[-1])])
            self.count += 1
        return units

    def improved(self, units: Units) -> Support | None:
        """The support where no swap of one unit for another explains more."""
        best = self.on(units)
        while best is not None and not self.clock(self.count):
            new = self._swapped(units, best.value * (1 + RISE))
            if new is None:
                break
            units = self.forward(begin=new)
            best = self.on(units)
            self.count += 1
        return best if best is None else replace(best, n_iter=self.count)

    def _swapped(self, units: Units, enough: float) -> Units | None:
        """The best units after a swap, of those that are tried, where they explain more."""
        choice = self.choice
        inside = np.flatnonzero(units & ~choice.included)
        room = self.k - int(choice.size[units].sum()) + int(choice.size[inside].max(initial=0))
        outside = self.promising(units, np.flatnonzero(choice.allowed & ~units & (choice.size <= room)))
        ways = []
        for u in inside:
            rest = with_unit(units, drop=u)
            ways += [with_unit(rest, add=v) for v in outside if choice.fitting(rest, self.k)[v]]
        order = max(len(self._usable(units)), 1)
        ways = ways[: 1 + int(LEAST_SQUARES_SWAP_WORK / (50.0 * order**3))]
        values = self.values(ways, signed=False)
        best = np.argsort(-values, kind="stable")
        best = best[values[best] > enough]
        if choice.signs is not None and len(best):
            best = best[:CHOICE_SWAPS]
            signed = self.values([ways[i] for i in best])
            best = best[np.argsort(-signed, kind="stable")][: np.count_nonzero(signed > enough)]
        return ways[int(best[0])] if len(best) else None

    def promising(self, units: Units, outside: Index) -> Index:
        """Of other units those of which one variable would add most."""
        if len(outside) <= CHOICE_SWAPS:
            return outside
        S = self._usable(units)
        M, G = self.ratio.rows(S)
        basis = self.ratio.basis(M[:, S], G[:, S]) if len(S) else PencilBasis.empty(0)
        candidate = self.choice.variables(outside)
        candidate = candidate[self.ratio.usable[candidate]]
        most = np.full(len(units), -np.inf)
        value = self.ratio.values_with(M[:, candidate], G[:, candidate], candidate, basis)
        np.maximum.at(most, self.choice.unit[candidate], value)
        order = np.argsort(-most[outside], kind="stable")[:CHOICE_SWAPS]
        return np.sort(outside[order])

    def values(self, ways: list[Units], signed: bool = True) -> Vector:
        """Of each set of units; -inf where no variable of it is left."""
        if not ways:
            return np.zeros(0)
        used = self._usable(np.any(ways, axis=0))
        M, G = self.ratio.blocks(used)
        out = np.full(len(ways), -np.inf)
        for i, units in enumerate(ways):
            at = np.flatnonzero(units[self.choice.unit[used]])
            if len(at):
                part = np.ix_(at, at)
                out[i] = self._best(used[at], M[part], G[part], signed).value
        return out

    def on(self, units: Units) -> Support | None:
        """The best x on some units; None where no variable of them is left."""
        S = self._usable(units)
        return self._best(S, *self.ratio.blocks(S), True) if len(S) else None

    def _best(self, S: Index, M: Vector, G: Vector, signed: bool) -> Support:
        basis = self.ratio.basis(M, G)
        x, value = basis.W[:, 0], float(basis.eigenvalues[0])
        if signed and self.choice.signs is not None:
            x, value = signed_ratio(M, G, self.choice.signs[S], x)
        return Support(S, x, value)

    def _usable(self, units: Units) -> Index:
        S = self.choice.variables(np.flatnonzero(units))
        return S[self.ratio.usable[S]]


def prove_units(
    ratio: Ratio, choice: Supports, refit: Refit, k: int, best: Support, node_limit: float,
    stop: Callable[[int], bool],
) -> Proof:  # fmt: skip
    """Branch and bound over units from a support that is known."""
    tree = _UnitTree(ratio, choice, refit, k, best)
    tree.push(np.inf, choice.included.copy(), choice.allowed.copy())
    n_nodes = 0
    while tree.heap and n_nodes < node_limit and not stop(n_nodes):
        tree.expand()
        n_nodes += 1
    bounds = [min(-bound, ratio.largest) for bound, *_ in tree.heap]
    return Proof(tree.best, max([tree.level, *bounds]), not tree.heap, n_nodes)


class _UnitTree:
    """Sets of units that are in, among those that may be."""

    def __init__(self, ratio: Ratio, choice: Supports, refit: Refit, k: int, best: Support):
        self.ratio, self.choice, self.refit, self.k, self.best = ratio, choice, refit, k, best
        self.index = np.flatnonzero(ratio.usable)
        self.M, self.G = ratio.blocks(self.index)
        self.heap: list[tuple[float, int, Units, Units]] = []
        self.pushed = 0

    @property
    def level(self) -> float:
        """What a bound must exceed."""
        return self.best.value * (1 + RISE)

    def push(self, bound: float, forced: Units, allowed: Units) -> None:
        if bound > self.level:
            self.pushed += 1
            heapq.heappush(self.heap, (-bound, self.pushed, forced, allowed))

    def expand(self) -> None:
        """Take the node of the largest bound; the j-th child lacks the j-th unit and has those before it."""
        bound, _, forced, allowed = heapq.heappop(self.heap)
        if -bound <= self.level:
            self.heap.clear()
            return
        size = self.choice.size
        room = self.k - int(size[forced].sum())
        allowed = allowed & (forced | (size <= room))
        if int(size[allowed].sum()) <= self.k:
            self._try(allowed)
            return
        for value, u in sorted(self._without(forced, allowed)):
            if size[u] <= room:
                rest = with_unit(allowed, drop=u)
                self.push(value, forced, rest)
                forced, room = with_unit(forced, add=u), room - int(size[u])
            else:
                allowed = with_unit(allowed, drop=u)
        self._try(forced)

    def _without(self, forced: Units, allowed: Units) -> Iterator[tuple[float, int]]:
        """The value without each unit that may go."""
        for u in np.flatnonzero(allowed & ~forced).tolist():
            yield self._value(with_unit(allowed, drop=u)), u

    def _value(self, units: Units) -> float:
        at = np.flatnonzero(units[self.choice.unit[self.index]])
        if len(at) == 0:
            return -np.inf
        part = np.ix_(at, at)
        return float(self.ratio.basis(self.M[part], self.G[part]).eigenvalues[0])

    def _try(self, units: Units) -> None:
        S = self.index[units[self.choice.unit[self.index]]]
        new = self.refit(S) if len(S) else None
        if new is not None and new.value > self.best.value:
            self.best = new
