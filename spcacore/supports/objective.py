"""The contract of what is maximized over supports.

To define an objective, write `value`; that is enough for all searches, though slow. The other methods make it
faster, in this order: `with_each` (a secular equation in place of an eigenproblem for each unit), `promise`
(so that only a few of many units are tried), `bound` (the default, the value of all free units together, is
seldom close), and `without_each`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import wraps
from typing import Any, TypeVar

import numpy as np

from .._limits import CHOICE_STARTS, CHOICE_SWAPS, RISE, TIE
from .._records import record
from .._types import Array, Index
from ..linalg.eigen import ties
from ..linalg.scaling import descending
from .admissible import Supports, Units, with_unit


@record
class Bound:
    """An upper bound on the supports of a node of the tree: the units inside, and some of the free ones.

    Attributes
    ----------
    value : float
        No support of the node has a larger value.
    weight : ndarray of shape (number of units,)
        What each unit adds to the bound: the tree divides by the free unit that adds most.
    without : ndarray of shape (number of units,), or None
        Bounds on the supports that lack each free unit, if these come at once. A unit is forced in if no
        support without it is better. A node then has a child for each unit that may be missing, as Furnival
        and Wilson (1974) divide the regressions.
    """

    value: float
    weight: Array
    without: Array | None = None


_T = TypeVar("_T", bound="Objective")
_R = TypeVar("_R")


def kept(most: int = 1 << 16) -> Callable[[Callable[[_T, Units], _R]], Callable[[_T, Units], _R]]:
    """Decorate a method so that its answers are kept by units; all are dropped when there are `most`."""

    def decorated(method: Callable[[_T, Units], _R]) -> Callable[[_T, Units], _R]:
        @wraps(method)
        def answer(objective: _T, units: Units) -> _R:
            known = objective.answers.setdefault(method.__name__, {})
            key = units.tobytes()
            if key not in known:
                if len(known) >= most:
                    known.clear()
                known[key] = method(objective, units)
            return known[key]

        return answer

    return decorated


class Objective:
    """What is maximized over supports. A unit more never lowers the value.

    Attributes
    ----------
    supports : Supports
        With the cardinality as its `room`.
    exact : bool
        Whether `with_each` and `without_each` return values. If False they return upper bounds. The searches
        then ask for `value` in the order of the bounds, until no bound is above the best value.
    steepest : bool
        Whether a swap is the best of all, rather than the first one that helps.
    rise, slack, tie : float
        The share by which a value must rise to count for a search, what proofs leave to rounding, and the
        share by which values that tie may differ.
    most_tried : int
        How many units a step asks the values of: those of the largest promise.
    at_once : int
        How many units `added` is asked about at once.
    starts : int
        How many first units that tie are compared by their best pairs.
    """

    exact = True
    steepest = False
    rise = RISE
    slack: float = 1e-12
    tie: float = TIE.double
    most_tried = CHOICE_SWAPS
    at_once = 1
    starts: int = CHOICE_STARTS

    def __init__(self, supports: Supports):
        self.supports = supports
        self.answers: dict[str, dict[bytes, Any]] = {}

    def value(self, units: Units) -> float:
        """Return the value of the best x on these units; 0 without units, -inf where no x is feasible."""
        raise NotImplementedError

    def values(self, sets: Iterable[Units]) -> Array:
        """Return the values of several supports."""
        return np.array([self.value(units) for units in sets], np.float64)

    def most(self, sets: list[Units]) -> Array:
        """Return upper bounds of the values of several supports, where bounds are quicker."""
        return self.values(sets)

    def with_each(self, units: Units, others: Index) -> Array:
        """Return the values of these units with each of the others, or bounds if not `exact`."""
        return self.most([with_unit(units, add=unit) for unit in others])

    def added(self, units: Units, others: Index) -> Array:
        """Return the values of these units with each of the others; never bounds."""
        return self.values(with_unit(units, add=unit) for unit in others)

    def without_each(self, units: Units, members: Index) -> Array:
        """Return the values of these units without each of these members, or bounds if not `exact`."""
        return self.most([with_unit(units, drop=unit) for unit in members])

    def promise(self, units: Units) -> Array:
        """Return how much each unit may add to these, or adds if it is one of them; only the order counts."""
        return np.zeros(len(units))

    def shares(self, units: Units) -> Array:
        """Return how much each of these units adds, as `promise` does: the order in which they may leave."""
        return self.promise(units)

    @property
    def exhausted(self) -> bool:
        """Whether swaps have cost as much as they may."""
        return False

    def bound(self, inside: Units, free: Units) -> Bound:
        """Return a bound on the supports that hold the units inside and some of the free ones.

        A unit more never lowers the value. So no support exceeds all these units together, and none that
        lacks a unit exceeds the others together.
        """
        units, members = inside | free, np.flatnonzero(free)
        value = float(self.most([units])[0])
        without = np.full(len(units), value)
        without[members] = self.without_each(units, members)
        return Bound(value, value - without, without)

    def entering(self, units: Units, others: Index) -> Index:
        """Return the others that a step tries: all, or where they are many, those of the largest promise."""
        if len(others) <= self.most_tried:
            return others
        order = descending(self.promise(units)[others])
        return np.sort(others[order[: self.most_tried]])

    def best_addition(
        self, units: Units, others: Index, enough: float = -np.inf, by_size: bool = False
    ) -> tuple[float, int] | None:
        """Return the largest value with one of the others, and that unit; None where none exceeds `enough`.

        With `by_size`, the unit is the one of the largest gain over its size.
        """
        if len(others) == 0:
            return None
        values = self.values_with(units, others, enough)
        gains = (values - self.value(units)) / self.supports.size[others] if by_size else values
        best = int(ties(gains, self.tie)[0])
        if not values[best] > enough:
            return None
        return float(values[best]), int(others[best])

    def values_with(self, units: Units, others: Index, enough: float = -np.inf) -> Array:
        """Return the values with each of the others.

        If `with_each` has only bounds, these are replaced by values while they may be the largest, and the
        rest by -inf.
        """
        bounds = self.with_each(units, others)
        if self.exact:
            return bounds
        values, most = np.full(len(bounds), -np.inf), -np.inf
        order = descending(bounds)[: self.most_tried]
        while len(order) and bounds[order[0]] > enough and bounds[order[0]] >= most:
            some, order = order[: self.at_once], order[self.at_once :]
            values[some] = self.added(units, others[some])
            most = max(most, float(values[some].max()))
        return values

    def first_to_enter(self, units: Units) -> Index:
        """Return the units that a step of a search tries: what is included, or else others that have room."""
        others = np.flatnonzero(self.supports.joining(units))
        wanted = others[self.supports.included[others]]
        return wanted if len(wanted) or not len(others) else self.entering(units, others)

    def pairs(self, starts: Index) -> Array:
        """Return, for each of these units, the value of the best pair with it."""
        alone = [with_unit(np.zeros(len(self.supports.allowed), bool), add=unit) for unit in starts]
        found = [self.best_addition(units, self.first_to_enter(units)) for units in alone]
        return np.array([-np.inf if one is None else one[0] for one in found])

    def trades(self, _units: Units) -> Iterable[tuple[float, Units]]:
        """Return changes other than swaps of one unit, each after a bound of its value, the best first."""
        return ()


def of_each_size(sets: list[Index]) -> Iterator[tuple[Index, Index]]:
    """Yield the positions of the supports of each size, and their variables, one support in each row."""
    count = np.array([len(S) for S in sets], np.intp)
    for size in np.unique(count[count > 0]):
        at = np.flatnonzero(count == size)
        yield at, np.stack([sets[i] for i in at])
