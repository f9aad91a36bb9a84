"""Components without a common variable, of whole groups or with given signs."""

from __future__ import annotations

from itertools import combinations

import numpy as np

from .._limits import (
    ACROSS_RANDOM,
    BUDGET_TRIALS,
    CHOICE_SWAPS,
    DISJOINT_SUPPORTS,
    RISE,
    SIGNED_ORDER,
    SMALL_ORDER,
)
from ..linalg.signed import signed_vector
from ..supports.admissible import Supports, Units, with_unit
from .bordered_sums import Array, Index, Steps
from .common_units import per_unit
from .disjoint_enumeration import Enumeration, splits_of
from .orthogonal_search import Loading

__all__ = ["DisjointUnits", "Sets"]
__dir__ = __all__.copy

Sets = list[Units]


class DisjointUnits:
    """Sets of units for components of these cardinalities, of which with `total` only the sum is kept."""

    def __init__(self, A: Array, choice: Supports, sizes: tuple[int, ...], total: bool, steps: Steps):
        self.A, self.choice, self.sizes, self.total, self.steps = A, choice, sizes, total, steps
        self.known: dict[bytes, tuple[float, Index, Array]] = {}

    def loading(self, units: Units) -> tuple[float, Index, Array]:
        """The largest x'Ax on the variables of some units, those, and x."""
        key = units.tobytes()
        if key not in self.known:
            S = self.choice.variables(np.flatnonzero(units))
            G = self.A[np.ix_(S, S)]
            if len(S) == 0:
                self.known[key] = 0.0, S, np.zeros(0)
            elif self.choice.signs is None:
                values, V = np.linalg.eigh(G)
                self.known[key] = float(values[-1]), S, V[:, -1]
            else:
                x, value = signed_vector(G, self.choice.signs[S])
                self.known[key] = value, S, x
        return self.known[key]

    def value(self, sets: Sets) -> float:
        return sum(self.loading(units)[0] for units in sets)

    def fits(self, sets: Sets) -> bool:
        """Whether the cardinalities are kept, and no set is empty."""
        counts = [int(self.choice.size[units].sum()) for units in sets]
        if min(counts) == 0:
            return False
        if self.total:
            return sum(counts) <= sum(self.sizes)
        return all(count <= size for count, size in zip(counts, self.sizes, strict=True))

    def best(self, seed: int) -> tuple[list[Loading], bool]:
        """Loadings of the best sets that moves of units lead to, and whether none are better."""
        rng, small = np.random.default_rng(seed), len(self.A) <= SMALL_ORDER
        orders = [np.arange(len(self.sizes))]
        orders += [rng.permutation(len(self.sizes)) for _ in range(ACROSS_RANDOM if small else 1)]
        ends = [self._moved(self._in_turn(order.tolist())) for order in orders]
        best, proved = max(ends, key=self.value), False
        if small and not self.steps.over:
            best, proved = self._enumerated(best)
        return [self.loading(units)[1:] for units in best], proved

    def _in_turn(self, order: list[int]) -> Sets:
        """One component after another, one unit after another, among those left that others can spare."""
        sets = [np.zeros(len(self.choice.allowed), bool) for _ in self.sizes]
        for place, t in enumerate(order):
            later = len(order) - place - 1
            while not self.steps.over:
                free = self.choice.fitting(sets[t], self.sizes[t]) & ~np.any(sets, axis=0)
                if int(free.sum()) <= later and sets[t].any():
                    break
                new = [with_unit(sets[t], add=u) for u in self._promising(sets[t], free)]
                if not new:
                    break
                sets[t] = max(new, key=lambda units: self.loading(units)[0])
        return sets

    def _promising(self, units: Units, others: Units) -> Index:
        """Of other units those of the largest products with the loading."""
        index = np.flatnonzero(others)
        if len(index) <= CHOICE_SWAPS:
            return index
        return np.sort(index[np.argsort(-self._gain(units)[index], kind="stable")[:CHOICE_SWAPS]])

    def _gain(self, units: Units) -> Array:
        """What each unit more may add: squares of A x, or variances beside no unit."""
        value, S, x = self.loading(units)
        if len(S) == 0 or not value > 0:
            return per_unit(self.choice, self.A.diagonal())
        return per_unit(self.choice, self.choice.projected(self.A[:, S] @ x) ** 2) / value

    def _moved(self, sets: Sets) -> Sets:
        """Sets where no move that is tried raises the value."""
        value = self.value(sets)
        while not self.steps.over:
            ways = [new for new in self._moves(sets) if self.fits(new)][: CHOICE_SWAPS * BUDGET_TRIALS]
            new = max(ways, key=self.value, default=sets)
            if not self.value(new) > value * (1 + RISE):
                break
            sets, value = new, self.value(new)
            self.steps()
        return sets

    def _moves(self, sets: Sets) -> list[Sets]:
        """A unit that joins, leaves for another, or goes to another component; by what that may gain."""
        r, ways = len(sets), []
        gain = [self._gain(units) for units in sets]
        loss = []
        for units in sets:
            value, S, x = self.loading(units)
            dense = np.zeros(len(self.A))
            dense[S] = x
            loss.append(value * self.choice.norms(dense) ** 2)
        free = self.choice.allowed & ~np.any(sets, axis=0)
        for t in range(r):
            joining = self._promising(sets[t], free)
            ways += [(gain[t][v], {t: with_unit(sets[t], add=v)}) for v in joining]
            for s in range(r):
                for u in np.flatnonzero(sets[s]):
                    without = with_unit(sets[s], drop=u)
                    if s == t:
                        ways += [(gain[t][v] - loss[t][u], {t: with_unit(without, add=v)}) for v in joining]
                        continue
                    ways.append((gain[t][u] - loss[s][u], {s: without, t: with_unit(sets[t], add=u)}))
                    ways += [
                        (gain[t][v] - loss[s][u], {s: without, t: with_unit(sets[t], add=v)})
                        for v in (joining if self.total else ())
                    ]
                    ways += [
                        (
                            gain[t][u] + gain[s][v] - loss[s][u] - loss[t][v],
                            {s: with_unit(sets[s], add=v, drop=u), t: with_unit(sets[t], add=u, drop=v)},
                        )
                        for v in (np.flatnonzero(sets[t]) if s < t else ())
                    ]
        ways.sort(key=lambda way: -way[0])
        return [[new.get(t, units) for t, units in enumerate(sets)] for _, new in ways]

    def _enumerated(self, best: Sets) -> tuple[Sets, bool]:
        """Better sets, of all, and whether nothing is better; or the same where there are too many."""
        n, r = int(self.choice.allowed.sum()), len(self.sizes)
        splits = [tuple(sorted(self.sizes, reverse=True))]
        if self.total:
            splits = splits_of(sum(self.sizes), r, int(self.choice.size[self.choice.allowed].sum()))
        if 2**n > DISJOINT_SUPPORTS:
            return best, False
        search, value = _Supports(self), self.value(best)
        most = max(self.choice.most_variables(k) for k in {k for split in splits for k in split})
        sure = self.choice.signs is None or most <= SIGNED_ORDER
        for split in splits:
            value, found, complete = search.better(split, value)
            if found is not None:
                sets = [((bits >> np.arange(len(self.choice.allowed))) & 1).astype(bool) for bits in found]
                order = np.argsort(np.argsort([-k for k in self.sizes], kind="stable"), kind="stable")
                best = sets if self.total else [sets[i] for i in order]
            if not complete:
                return best, False
        return best, sure


class _Supports(Enumeration):
    """Sets of units up to each cardinality as bits, by decreasing value."""

    def __init__(self, search: DisjointUnits):
        allowed, size = np.flatnonzero(search.choice.allowed), search.choice.size
        bits, values, counts = [], [], []
        for n in range(1, len(allowed) + 1):
            for chosen in combinations(allowed.tolist(), n):
                units = np.zeros(len(size), bool)
                units[list(chosen)] = True
                bits.append(sum(1 << u for u in chosen))
                values.append(search.loading(units)[0])
                counts.append(int(size[units].sum()))
        order = np.argsort(-np.array(values), kind="stable")
        count = np.array(counts)[order]
        self.bits, self.values = {}, {}
        for k in range(1, int(count.max()) + 1):
            some = order[count <= k]
            self.bits[k], self.values[k] = np.array(bits)[some], np.array(values)[some]
        self.nodes = 0
