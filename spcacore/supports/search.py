"""Forward, backward and swap search over supports, for any objective.

There is one rule for ties: if values differ by no more than rounding, the first unit joins and the last one
leaves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from .._types import Array
from ..linalg.eigen import ties
from ..linalg.scaling import descending, roots
from .admissible import Units, with_unit
from .objective import Objective

Clock = Callable[[int], bool]  # is told the number of steps, 0 at first; returns True to end the search


@dataclass
class Steps:
    """A clock that several searches share: it counts their steps, and ends them after `most`.

    `report` is told the number of steps, and returns True to end the searches.
    """

    report: Clock
    most: float = math.inf
    done: int = 0
    ended: bool = False

    @property
    def over(self) -> bool:
        return self.ended or self.done >= self.most

    def __call__(self, steps: int) -> bool:
        """Count one more step, unless a search only begins; whether to stop."""
        if steps:
            self.done += 1
            self.ended = self.report(self.done) or self.ended
        return self.over


def never(_: int) -> bool:
    """A clock that ends nothing."""
    return False


def forward(
    objective: Objective, begin: Units | None = None, clock: Clock = never, by_size: bool = False
) -> Units:
    """Add units one by one while there is room, each time the one of the largest value.

    The search begins with `begin`, or with what is included. Where several first units tie, as in a
    correlation matrix, the one of the best pair is taken. With `by_size`, units are chosen by their gain over
    their size.
    """
    found = objective.supports.included if begin is None else begin
    for steps, units in enumerate(growing(objective, found, by_size), 1):
        found = units
        if clock(steps):
            break
    return found


def forward_ways(objective: Objective, clock: Clock = never) -> list[Units]:
    """Return what forward search finds and, where units differ in size, what it finds by gain over size."""
    ways = (False, True) if objective.supports.counts_variables else (False,)
    return [forward(objective, None, clock, by_size) for by_size in ways]


def growing(objective: Objective, units: Units, by_size: bool = False) -> Iterator[Units]:
    """Yield the supports of a forward search, one after another."""
    if not units.any():
        units = _first(objective, units, by_size)
        if units.any():
            yield units
    while found := objective.best_addition(units, objective.first_to_enter(units), by_size=by_size):
        units = with_unit(units, add=found[1])
        yield units


def _first(objective: Objective, none: Units, by_size: bool) -> Units:
    """Return the first unit of a forward search, as a mask."""
    others = objective.first_to_enter(none)
    if len(others) == 0:
        return none
    values = objective.values_with(none, others)
    values = values / objective.supports.size[others] if by_size else values
    if not values.max() > -np.inf:
        return none
    tied = others[ties(values, objective.tie)]
    if len(tied) > objective.starts:
        tied = tied[descending(objective.promise(none)[tied])[: objective.starts]]
    best = ties(objective.pairs(tied), objective.tie)[0] if len(tied) > 1 else 0
    return with_unit(none, add=tied[best])


def shrinking(objective: Objective, units: Units) -> Iterator[Units]:
    """Yield these units, and then what is left with one unit less each time, of the least loss."""
    yield units
    while len(members := np.flatnonzero(objective.supports.leaving(units))):
        values = objective.without_each(units, members)
        units = with_unit(units, drop=members[ties(values, objective.tie)[-1]])
        yield units


def backward(objective: Objective, clock: Clock = never, begin: Units | None = None) -> Units:
    """Drop units one by one until the rest has room, each time the one of the least loss.

    The search begins with `begin`, or with all units that are allowed. Where sizes differ, dropping a unit
    may leave room, which forward search fills. When the clock ends the search, the units that add most stay.
    """
    units = objective.supports.allowed if begin is None else begin
    for steps, rest in enumerate(shrinking(objective, units)):
        units, over = rest, steps > 0 and clock(steps)
        if objective.supports.left(units) >= 0:
            break
        if over:
            return _of_largest(objective, np.where(units, objective.shares(units), 0))
    return forward(objective, units)


def _of_largest(objective: Objective, weight: Array) -> Units:
    """Return the units of the largest weights that have room."""
    return objective.supports.largest(roots(weight), objective.supports.room)


def swap(objective: Objective, units: Units, clock: Clock = never) -> tuple[float, Units]:
    """Swap units one for one until no swap raises the value; return the value and the units.

    The units of the least loss are tried first. The first of them that another unit can replace at a larger
    value leaves.
    """
    value, steps = objective.value(units), 0
    while not clock(steps):
        new = _swapped(objective, units, value) or _traded(objective, units, value)
        if new is None:
            break
        units = forward(objective, new[1])
        value = new[0] if units is new[1] else objective.value(units)
        steps += 1
    return value, units


def ascend(objective: Objective, units: Units) -> Units:
    """Replace the units by those of the largest promise while that raises the value.

    This is orthogonal iteration with truncated vectors.
    """
    value = objective.value(units)
    while True:
        new = _of_largest(objective, objective.promise(units))
        more = objective.value(new)
        if not more > value + objective.rise * abs(value):
            return units
        units, value = new, more


def best_of(objective: Objective, starts: Iterable[Units], clock: Clock = never) -> tuple[float, Units]:
    """Return the best value that swaps lead to from several starts, and its units.

    Each start ascends first; then the most promising ends are swapped first. Of ends that tie, the one with
    the first units is taken.
    """
    ends = {units.tobytes(): units for units in (ascend(objective, start) for start in starts)}
    found = sorted(((objective.value(units), units) for units in ends.values()), key=lambda one: -one[0])
    tied = ties(np.array([value for value, _ in found]), objective.tie)
    best = min((found[i] for i in tied), key=lambda one: np.flatnonzero(one[1]).tolist())
    for _, units in found:
        if clock(0):
            break
        new = swap(objective, units, clock)
        if new[0] > best[0] + objective.rise * abs(best[0]):
            best = new
    return best


def _swapped(objective: Objective, units: Units, value: float) -> tuple[float, Units] | None:
    """Return a better value with one unit in the place of another, and these units; None if there is none."""
    supports, enough = objective.supports, value + objective.rise * abs(value)
    members = np.flatnonzero(supports.leaving(units))
    if len(members) == 0:
        return None
    # Units that have room when some member leaves
    room = supports.left(units) + int(supports.size[members].max())
    others = np.flatnonzero(supports.allowed & ~units & (supports.size <= room))
    others = objective.entering(units, others)
    # The best one to join in the place of each member, the least valuable member first
    order, best = np.argsort(objective.shares(units)[members], kind="stable"), None
    for member in members[order]:
        if objective.exhausted:
            break
        rest = with_unit(units, drop=member)
        fit = others[supports.joining(rest)[others]]
        found = objective.best_addition(rest, fit, enough)
        if found is None:
            continue
        new = with_unit(rest, add=found[1])
        more = objective.value(new) if objective.exact else found[0]
        if more > enough:
            best, enough = (more, new), more
            if not objective.steepest:
                break
    return best


def _traded(objective: Objective, units: Units, value: float) -> tuple[float, Units] | None:
    """Return a better value by one of the objective's trades, and its units; None if there is none."""
    enough = value + objective.rise * abs(value)
    for most, new in objective.trades(units):
        if not most > enough:
            return None
        more = objective.value(new)
        if more > enough:
            return more, new
    return None
