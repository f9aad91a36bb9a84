"""What several components explain together, on one set of variables or on sets without a common variable.

`LeadingSum` is the sum of the r largest eigenvalues of A[S, S]: what r orthogonal components on one set S
explain.

For any level t >= 0 write A = B + C, where B has the eigenvalues min(l, t), l those of A, and C what they
exceed t by. Both are semidefinite. The r largest eigenvalues of B[S, S] are at most those of B, and those of
C[S, S] add up to at most its trace. So the sum is at most

    sum_(q <= r) min(l_q, t) + sum_(i in S) c_i,    c_i = sum_q max(l_q - t, 0) v_qi^2.

The largest c_i that fill the room, with those of units inside, make a bound for all S.

With r = 1 entries may have given signs. Then x'Ax is also at most x'Mx, where M lacks the entries of A that
such x makes negative.

`Partition` is for sets without a common variable, one for each component: the sum of the values of another
objective. Loadings without a common variable are orthogonal, so the sum of the largest eigenvalues of their
submatrices is the variance that they explain together. A place is a unit in a component. What is chosen are
places, of which a unit takes one at most, so that the searches over supports serve as they are.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import ACROSS_BISECTIONS, ACROSS_ENTERING, ACROSS_WORK, CHOICE_SWAPS
from .._records import record
from .._types import Array, Index
from ..linalg.eigen import signed_vector
from ..linalg.scaling import beyond_range, descending
from ..supports.admissible import Supports, Units, with_unit
from ..supports.objective import Bound, Objective, kept, of_each_size


def leading_sum(A: Array, S: Index, r: int) -> float:
    """Return the sum of the r largest eigenvalues of A[S, S]."""
    if len(S) <= r:
        return float(A.diagonal()[S].sum())
    return float(np.linalg.eigvalsh(A[np.ix_(S, S)])[-r:].sum())


@record
class LeadingSum(Objective):
    """The sum of the r largest eigenvalues on a support, for a semidefinite A in memory.

    `bounding` has matrices whose eigenvalues are bounds: A and, if entries have signs, one more.
    """

    A: Array
    supports: Supports
    r: int = 1

    def __post_init__(self) -> None:
        super().__init__(self.supports)
        A = self.A
        self.diagonal: Array = A.diagonal().copy()
        self.signs: NDArray[np.int8] | None = self.supports.signs if self.r == 1 else None
        self.exact: bool = self.signs is None
        self.most_tried: int = ACROSS_ENTERING if self.exact else CHOICE_SWAPS
        self.bounding: tuple[Array, ...] = (A,)
        if self.signs is not None:
            self.bounding = A, np.where(A * np.outer(self.signs, self.signs) < 0, 0, A)

    def value(self, units: Units) -> float:
        if self.signs is not None:
            return self.loading(units)[2]
        return leading_sum(self.A, self.supports.index(units), self.r)

    def values(self, sets: Iterable[Units]) -> Array:
        return super().values(sets) if self.signs is not None else self.most([*sets])

    def most(self, sets: list[Units]) -> Array:
        index = [self.supports.index(units) for units in sets]
        return np.minimum.reduce([self._sums(A, index) for A in self.bounding])

    @kept()
    def loading(self, units: Units) -> tuple[Index, Array, float]:
        """Return the variables of the units, the best x on them with the asked signs, and x'Ax."""
        S = self.supports.index(units)
        G = self.A[np.ix_(S, S)]
        if len(S) == 0:
            return S, np.zeros(0), 0.0
        if self.signs is not None:
            return S, *signed_vector(G, self.signs[S])
        values, V = np.linalg.eigh(G)
        return S, V[:, -1], float(values[-1])

    def with_each(self, units: Units, others: Index) -> Array:
        """Return the values with each of the others; bounds of them if entries have signs."""
        S = self.supports.index(units)
        if self.supports.grouped:
            return super().with_each(units, others)
        if len(S) < self.r:
            return self.diagonal[S].sum() + self.diagonal[others]
        return np.minimum.reduce([self._bordered(A, S, others) for A in self.bounding])

    def _bordered(self, A: Array, S: Index, others: Index) -> Array:
        """Return the sums for S with each of the others, by bordered matrices.

        In the eigenbasis of A[S, S] a bordered matrix has the eigenvalues l_q and a number d on its diagonal,
        and z_q beside d. Its own eigenvalues are the roots of d - x + sum_q z_q^2 / (x - l_q), one between
        any two l_q, which bisection finds.
        """
        values, W = np.linalg.eigh(A[np.ix_(S, S)])
        values, W, d = values[::-1].copy(), np.asfortranarray(W[:, ::-1]), self.diagonal[others]
        if self.r == 1:
            C = np.ascontiguousarray(A[S])
            return _core.bordered_eigenvalues(C, others, self.diagonal, values, W, None, None, None, 0.0, 0.0)
        square = (W.T @ A[np.ix_(S, others)]) ** 2
        upper = np.maximum(values[0], d) + np.sqrt(square.sum(axis=0))
        total = np.zeros(len(others))
        for q in range(self.r):
            low = np.full(len(others), values[q])
            high = upper if q == 0 else np.full(len(others), values[q - 1])
            for _ in range(ACROSS_BISECTIONS):
                x = (low + high) / 2
                with beyond_range():
                    above = d - x + (square / (x - values[:, None])).sum(axis=0) > 0
                low, high = np.where(above, x, low), np.where(above, high, x)
            total += (low + high) / 2
        return total

    def entering(self, units: Units, others: Index) -> Index:
        order = len(self.supports.index(units))
        if not self.supports.grouped and order**2 * len(others) * min(self.r, order) <= ACROSS_WORK:
            return others
        return super().entering(units, others)

    def promise(self, units: Units) -> Array:
        """Return the squares of A V for the leading eigenvectors V; without units, variances."""
        S = self.supports.index(units)
        if len(S) == 0:
            return self.supports.per_unit(self.diagonal)
        if self.signs is not None:
            x = self.loading(units)[1]
            return self.supports.per_unit(self.supports.projected(self.A[:, S] @ x) ** 2)
        V = np.linalg.eigh(self.A[np.ix_(S, S)])[1][:, -self.r :]
        return self.supports.per_unit(np.square(self.A[:, S] @ V).sum(axis=1))

    def bound(self, inside: Units, free: Units) -> Bound:
        """Return the least bound: by a level, or by diagonal blocks."""
        supports, own = self.supports, self.supports.index(inside)
        index, room = supports.index(inside | free), supports.left(inside)
        matrices = [A[np.ix_(index, index)] for A in self.bounding]
        each = [self._level_bound(G, index, inside, free, room) for G in matrices]
        best = min(each, key=lambda one: one.value)
        if not self.definite:
            return best
        # The eigenvalues of a semidefinite matrix are at most the sums of those of its diagonal blocks
        blocks = leading_sum(self.A, own, self.r) + float(supports.filled(self.alone, free, room))
        return Bound(min(best.value, blocks), best.weight)

    @cached_property
    def definite(self) -> bool:
        """Whether A has no negative eigenvalues, but for rounding."""
        return bool(np.linalg.eigvalsh(self.A)[0] >= -1e-10 * max(np.abs(self.A).max(), 1e-300))

    @cached_property
    def alone(self) -> Array:
        """The value of each unit by itself."""
        units = np.eye(len(self.supports.allowed), dtype=bool)
        return self._sums(self.A, [self.supports.index(unit) for unit in units])

    def _level_bound(self, G: Array, index: Index, inside: Units, free: Units, room: int) -> Bound:
        """Return the least bound over several levels t, for G, a matrix between the variables of `index`."""
        values, V = np.linalg.eigh(G)
        values = np.maximum(values, 0)
        levels = np.concatenate([[0.0], values, (values[1:] + values[:-1]) / 2])
        share = self.supports.per_unit(np.square(V) @ np.maximum(values[:, None] - levels, 0), index)
        bounds = np.minimum(values[-self.r :, None], levels).sum(axis=0) + share[inside].sum(axis=0)
        bounds += self.supports.filled(share, free, room)
        at = int(np.argmin(bounds))
        return Bound(float(bounds[at]), share[:, at])

    def _sums(self, A: Array, sets: list[Index]) -> Array:
        """Return the sum for each set; sets of one size share a call of LAPACK."""
        out = np.zeros(len(sets))
        for at, S in of_each_size(sets):
            values = np.linalg.eigvalsh(A[S[:, :, None], S[:, None, :]])
            out[at] = values[:, -self.r :].sum(axis=1)
        return out


PARTITION_TABLES = 1024  # tables that are kept, each with a number for each unit


@record
class Places(Supports):
    """The places that the units of one record `one` may take in components of these sizes.

    A place is unit i of component t, at position t n + i. `sizes` are the cardinalities. With `total` only
    their sum is kept, and no component is empty.
    """

    one: Supports | None = None
    sizes: tuple[int, ...] = ()
    total: bool = False

    @classmethod
    def of(cls, one: Supports, sizes: tuple[int, ...], total: bool) -> Places:
        """Return the places for supports of one component."""
        r, n = len(sizes), len(one.allowed)
        allowed, size = np.tile(one.allowed, r), np.tile(one.size, r)
        none = np.zeros(r * n, bool)
        return cls(np.arange(r * n), allowed, none, None, False, size, False, sum(sizes), one, sizes, total)

    def joining(self, units: Units) -> Units:
        """Return the places that may be taken: of units in no component, in a component that has room.

        Enough room must be left for components that are empty.
        """
        sets = units.reshape(len(self.sizes), -1)
        size = self.size[: sets.shape[1]]
        free, filled = self.allowed[: len(size)] & ~sets.any(axis=0), sets.any(axis=1)
        left = np.array(self.sizes) - sets @ size
        if self.total:
            left[:] = left.sum()
        fits = free & (size <= left[:, None])
        if not filled.all():
            fits &= self._leaves_enough(free, filled, int(left[0]))
        return fits.ravel()

    def _leaves_enough(self, free: Units, filled: Units, left: int) -> Units:
        """Return, for each component, the units that leave room for a unit in each of the empty ones.

        These would be the smallest of the other units.
        """
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
    """The sum, over components with sets of their own, of an objective of one component."""

    steepest = True  # a swap changes few components, and the values of the others are known
    one: Objective
    sizes: tuple[int, ...]
    total: bool

    def __post_init__(self) -> None:
        one = self.one
        super().__init__(Places.of(one.supports, self.sizes, self.total))
        self.exact: bool = one.exact
        self.most_tried: int = one.most_tried

    def sets(self, units: Units) -> list[Units]:
        """Return the units of each component."""
        return [*units.reshape(len(self.sizes), -1)]

    def value(self, units: Units) -> float:
        return sum(map(self._part, self.sets(units)))

    @kept()
    def _part(self, units: Units) -> float:
        """Return the value of one component."""
        return self.one.value(units) if units.any() else 0.0

    @kept(PARTITION_TABLES)
    def _table(self, units: Units) -> Array:
        """Return the values of a component with each unit more that it tries; -inf for other units."""
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
        return others  # `_table` chooses for each component

    def promise(self, units: Units) -> Array:
        sets = self.sets(units)
        return np.concatenate([self.one.promise(one) / (self._part(one) or 1.0) for one in sets])

    def trades(self, units: Units) -> Iterable[tuple[float, Units]]:
        """Yield trades of a unit between two components, each after a bound of its value, the best first."""
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
