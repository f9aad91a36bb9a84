"""Sets without a common variable, one for each component: the sum of the values of another objective.

Loadings without a common variable are orthogonal, so that the sum of the largest eigenvalues of their
submatrices is the variance that they explain together. A place is a unit in a component: what is chosen are
places, of which a unit takes one at most, so that the searches over supports serve as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from .._records import record
from .._types import Array, Index
from ..linalg.scaling import descending
from ..supports.admissible import Supports, Units, with_unit
from ..supports.objective import Objective, kept

PARTITION_TABLES = 1024  # kept of components with a unit more: a number a unit


@record
class Places(Supports):
    """Places of the units of one record in components of these cardinalities.

    With `total` only the sum of the cardinalities is kept, and no component is empty.
    """

    one: Supports | None = None
    sizes: tuple[int, ...] = ()
    total: bool = False

    @classmethod
    def of(cls, one: Supports, sizes: tuple[int, ...], total: bool) -> Places:
        r, n = len(sizes), len(one.allowed)
        allowed, size = np.tile(one.allowed, r), np.tile(one.size, r)
        none = np.zeros(r * n, bool)
        return cls(np.arange(r * n), allowed, none, None, False, size, False, sum(sizes), one, sizes, total)

    def joining(self, units: Units) -> Units:
        """Units in no component that have room in one, so that enough is left for those that are empty."""
        sets = units.reshape(len(self.sizes), -1)
        size = self.size[: sets.shape[1]]
        free, filled = self.allowed[: len(size)] & ~sets.any(axis=0), np.asarray(sets.any(axis=1))
        left = np.array(self.sizes) - sets @ size
        if self.total:
            left[:] = left.sum()
        fits = free & (size <= left[:, None])
        if not filled.all():
            fits &= self._leaves_enough(free, filled, int(left[0]))
        return np.asarray(fits.ravel())

    def _leaves_enough(self, free: Units, filled: Units, left: int) -> Units:
        """Of each component, the units beside which the smallest others fit into those that are empty."""
        size, out = self.size[: len(free)], np.zeros((len(filled), len(free)), bool)
        sizes = np.sort(size[free])
        for t in range(len(filled)):
            room = np.sort(np.delete(self.sizes, t)[~np.delete(filled, t)])
            for one in np.unique(sizes):
                others = np.delete(sizes, np.searchsorted(sizes, one))[: len(room)]
                fit = others.sum() + one <= left if self.total else np.all(others <= room[: len(others)])
                out[t, size == one] = len(others) == len(room) and fit
        return out


@record
class Partition(Objective):
    """The sum over components of an objective of one."""

    steepest = True  # values of the components that a swap leaves alone are known
    one: Objective
    sizes: tuple[int, ...]
    total: bool

    def __post_init__(self) -> None:
        one = self.one
        super().__init__(Places.of(one.supports, self.sizes, self.total))
        self.exact: bool = one.exact
        self.most_tried: int = one.most_tried

    def sets(self, units: Units) -> list[Units]:
        """The units of each component."""
        return [*units.reshape(len(self.sizes), -1)]

    def value(self, units: Units) -> float:
        return sum(map(self._part, self.sets(units)))

    @kept()
    def _part(self, units: Units) -> float:
        return self.one.value(units) if units.any() else 0.0

    @kept(PARTITION_TABLES)
    def _table(self, units: Units) -> Array:
        """What a component is worth with each unit more, of those that it tries; -inf of the others."""
        others = self.one.entering(units, np.flatnonzero(self.one.supports.allowed & ~units))
        table = np.full(len(units), -np.inf)
        table[others] = self.one.with_each(units, others)
        return table

    def with_each(self, units: Units, others: Index) -> Array:
        sets, out = self.sets(units), np.empty(len(others))
        component, unit = np.divmod(others, len(sets[0]))
        parts = np.array([*map(self._part, sets)])
        for t in np.unique(component):
            at = component == t
            out[at] = parts.sum() - parts[t] + self._table(sets[t])[unit[at]]
        return out

    def entering(self, _units: Units, others: Index) -> Index:
        return others  # each component tries some

    def promise(self, units: Units) -> Array:
        sets = self.sets(units)
        return np.concatenate([self.one.promise(one) / (self._part(one) or 1.0) for one in sets])

    def trades(self, units: Units) -> Iterable[tuple[float, Units]]:
        """Two components trade a unit."""
        sets, whole = self.sets(units), self.value(units)
        size, ways = self.one.supports.size, []
        left = [k - int(size[one].sum()) for k, one in zip(self.sizes, sets, strict=True)]
        members = [np.flatnonzero(one) for one in sets]
        tables = [
            np.array([self._table(with_unit(one, drop=i)) for i in own]).reshape(-1, len(one))
            for one, own in zip(sets, members, strict=True)
        ]
        for t, s in combinations(range(len(sets)), 2):
            i, j = members[t], members[s]
            most = tables[t][:, j] + tables[s][:, i].T + (whole - self._part(sets[t]) - self._part(sets[s]))
            if not self.total:
                more = size[j] - size[i][:, None]
                most[(more > left[t]) | (-more > left[s])] = -np.inf
            order = descending(most.ravel())[: self.most_tried]
            ways += [(float(most.flat[way]), t, s, i[way // len(j)], j[way % len(j)]) for way in order]
        for value, t, s, i, j in sorted(ways, key=lambda way: -way[0])[: self.most_tried]:
            new = units.reshape(len(sets), -1).copy()
            new[[t, s], [i, j]], new[[s, t], [i, j]] = False, True
            yield value, new.ravel()
