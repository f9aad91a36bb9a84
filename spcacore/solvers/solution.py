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
    """Raised where the callback ends the search and the component under way is not returned."""


@record
class ProgressHook:
    """Reports the iterations of component t of r to the callback; True where the search is to end.

    If components are found in turn, an unfinished one is not returned. With `whole` the hook raises `Ended`
    instead.
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
    """Reports progress at most twenty times a second; True if the callback or the time ends the search.

    `end` is that time, as `time.monotonic` tells it.
    """

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
    """How many starts there were, how many runs went to their end, and how many ended at the best value."""

    starts: int = 1
    ends: int = 1
    best: int = 1


def agreeing(runs: Iterable[tuple[float, int]], best: float) -> int:
    """Return how many runs ended at the best value, but for rounding.

    `runs` has pairs of a value and the number of runs that ended there.
    """
    return sum(count for value, count in runs if value >= best - TALLY_TIE * abs(best))


@record
class Solution:
    """One component, in the units of the operator: the variables of its support, and their entries."""

    index: Index
    entries: AnyArray
    objective: float
    n_iter: int = 0
    converged: bool = True
    upper_bound: float | None = None
    tally: Tally = Tally()
    proved: bool = False  # whether no other support of this cardinality is better

    def moved_to(self, other: Solution) -> Solution:
        """Return this record with the variables, values and objective of another."""
        return replaced(self, index=other.index, entries=other.entries, objective=other.objective)


def drop_zeros(found: Solution | None) -> Solution | None:
    """Return the component without entries that are zero, with its sign fixed; None if nothing is left."""
    if found is None or not found.objective > -np.inf:
        return None
    (kept,) = found.entries.nonzero()
    if len(kept) == 0:  # even if A is zero after deflation: rounding may give products that are not
        return None
    return replaced(
        found,
        index=found.index[kept],
        entries=fix_sign(found.entries[kept]),
        objective=float(found.objective),
    )
