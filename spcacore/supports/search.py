"""Forward, backward and swap search over supports, for any objective.

One rule for ties: of units whose values differ by no more than rounding the first joins, and the last leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np

from .._types import Array
from ..linalg.eigen import ties
from ..linalg.scaling import descending, roots
from .admissible import Units, with_unit
from .objective import Objective

Clock = Callable[[int], bool]  # told the number of steps, 0 at first; True ends the search


@dataclass
class Steps:
    """A clock of several searches: steps made, of `most`; `report` is told their number, True to end."""

    most: int
    report: Clock
    done: int = 0
    ended: bool = False

    @property
    def over(self) -> bool:
        return self.ended or self.done >= self.most

    def __call__(self, steps: int) -> bool:
        """One more, unless it is the beginning; whether to stop."""
        if steps:
            self.done += 1
            self.ended = self.report(self.done) or self.ended
        return self.over


def never(_: int) -> bool:
    return False


def forward(
    objective: Objective, begin: Units | None = None, clock: Clock = never, by_size: bool = False
) -> Units:
    """From what is included, or begun with, one unit more while there is room: of the largest value.

    Where several first units tie, as in a correlation matrix, that of the best pair. `by_size`: of the
    largest gain over its size.
    """
    found = objective.supports.included if begin is None else begin
    for steps, units in enumerate(growing(objective, found, by_size), 1):
        found = units
        if clock(steps):
            break
    return found


def forward_ways(objective: Objective, clock: Clock = never) -> list[Units]:
    """Forward search and, where units of different size share the room, that by gain over size."""
    ways = (False, True) if objective.supports.counts_variables else (False,)
    return [forward(objective, None, clock, by_size) for by_size in ways]


def growing(objective: Objective, units: Units, by_size: bool = False) -> Iterator[Units]:
    """The supports of a forward search, one after another."""
    if not units.any():
        units = _first(objective, units, by_size)
        if units.any():
            yield units
    while found := objective.best_addition(units, objective.first_to_enter(units), by_size=by_size):
        units = with_unit(units, add=found[1])
        yield units


def _first(objective: Objective, none: Units, by_size: bool) -> Units:
    """The first unit, in a mask."""
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
    """These units, and then with one unit less, each time of the least loss, those that are left."""
    yield units
    while len(members := np.flatnonzero(objective.supports.leaving(units))):
        values = objective.without_each(units, members)
        units = with_unit(units, drop=members[ties(values, objective.tie)[-1]])
        yield units


def backward(objective: Objective, clock: Clock = never, begin: Units | None = None) -> Units:
    """From all that are allowed, or begun with, one unit less until the rest has room: of the least loss.

    Where sizes differ there may be room again, which forward search fills. When the clock ends it, those that
    add most stay.
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
    """The units of the largest weights that have room."""
    return objective.supports.largest(roots(weight), objective.supports.room)


def swap(objective: Objective, units: Units, clock: Clock = never) -> tuple[float, Units]:
    """The value and the units where no swap of one for another raises the value.

    The units of the least loss are tried first, and the first one whose place another fills better goes.
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
    """The units of the largest promise in place of these, as long as the value rises: one step of orthogonal
    iteration, truncated."""
    value = objective.value(units)
    while True:
        new = _of_largest(objective, objective.promise(units))
        more = objective.value(new)
        if not more > value + objective.rise * abs(value):
            return units
        units, value = new, more


def best_of(objective: Objective, starts: Iterable[Units], clock: Clock = never) -> tuple[float, Units]:
    """The best that swaps lead to from several starts, after each has ascended; the most promising first.

    Of ends that tie the one of the first units.
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
    """The units with one in the place of another, and their value, where that is larger."""
    supports, enough = objective.supports, value + objective.rise * abs(value)
    members = np.flatnonzero(supports.leaving(units))
    if len(members) == 0:
        return None
    room = supports.left(units) + int(supports.size[members].max())
    others = np.flatnonzero(supports.allowed & ~units & (supports.size <= room))
    others = objective.entering(units, others)
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
    """Another change of the units that raises the value."""
    enough = value + objective.rise * abs(value)
    for most, new in objective.trades(units):
        if not most > enough:
            return None
        more = objective.value(new)
        if more > enough:
            return more, new
    return None
