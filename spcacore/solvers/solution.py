"""What solvers return, and the hooks that they report to."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np

from .._limits import CALLBACK_SECONDS, TALLY_TIE
from .._records import record, replaced
from .._types import AnyArray, Index
from .._validation import Hook
from ..linalg.orthogonal import fix_sign
from ..progress import Progress

Report = Callable[[int], object]  # told the number of iterations


class Ended(Exception):
    """The callback ended the search, and the component under way is not wanted."""


@record
class ProgressHook:
    """Reports of component t of r, by numbers of iterations; True where the search is to end.

    Of components found in turn only finished ones are returned: with `whole` it raises `Ended` instead.
    """

    hook: Hook
    t: int
    r: int
    whole: bool = False

    @property
    def ended(self) -> bool:
        return self.hook.ended

    def __call__(self, n_iter: int, value: float | None = None) -> bool:
        ended = self.hook(Progress(self.t, self.r, n_iter, value))
        if ended and self.whole:
            raise Ended
        return ended


def ended(hook: Report | None) -> bool:
    """Whether the callback has ended the search."""
    return isinstance(hook, ProgressHook) and hook.ended


class ProgressClock:
    """Reports progress, twenty times a second at most; True where the search is to end, or the time is up."""

    def __init__(self, hook: Report | None, end: float = math.inf):
        self.hook: Report | None = hook
        self.end: float = end
        self.due: float = time.monotonic() + CALLBACK_SECONDS

    def __call__(self, n_iter: int) -> bool:
        now = time.monotonic()
        if self.hook is not None and now >= self.due:
            self.hook(n_iter)
            self.due = now + CALLBACK_SECONDS
        return ended(self.hook) or now > self.end


class Tally(NamedTuple):
    """How many starts there were, runs that went to their ends, and runs that ended at the best value."""

    starts: int = 1
    ends: int = 1
    best: int = 1


def agreeing(runs: Iterable[tuple[float, int]], best: float) -> int:
    """How many runs ended at the best value, of so many that ended at each value."""
    return sum(count for value, count in runs if value >= best - TALLY_TIE * abs(best))


@record
class Solution:
    """One component in the units of the operator."""

    index: Index
    entries: AnyArray
    objective: float
    n_iter: int
    converged: bool
    upper_bound: float | None = None
    tally: Tally = Tally()
    proved: bool = False  # that no other of as many variables is better

    def moved_to(self, other: Solution) -> Solution:
        """With the variables and values of another."""
        return replaced(self, index=other.index, entries=other.entries, objective=other.objective)


def drop_zeros(found: Solution | None) -> Solution | None:
    """Without entries that are zero, and with its sign; None if nothing is left."""
    if found is None or not found.objective > -np.inf:
        return None
    (kept,) = found.entries.nonzero()
    if len(kept) == 0:  # a deflated matrix may be zero, and yet no product with it, by rounding
        return None
    return replaced(
        found,
        index=found.index[kept],
        entries=fix_sign(found.entries[kept]),
        objective=float(found.objective),
    )


@record
class Begin:
    """A start of a search: of the likely variables first, and with a known component that it may end at."""

    x: Solution
    likely: Index
    known: Solution | None
