"""A race of truncated power from the columns of a matrix in memory: where the best of them end."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import (
    DEEP_RACE,
    DEEP_SUBSET,
    FIELD_TIE,
    RACE,
    RACE_ALL,
    RACE_MOST_STEPS,
    RISE,
    SWAP_GAP,
    SWAP_SLACK,
    SWAPS_AT_A_TIME,
)
from .._types import Index
from ..operators.field import Field
from .solution import Report, ended

__all__ = ["End", "Runs", "best_supports", "ends_on_field", "race_rounds", "survivors"]
__dir__ = __all__.copy

Runs = tuple[
    NDArray[np.intp], NDArray[Any], NDArray[Any], NDArray[np.intp]
]  # index, value, objective, n_iter


class End(NamedTuple):
    """The variables, ascending, where runs of a race ended, their value, and how many runs did."""

    index: Index  # type: ignore[assignment]  # of tuples a method
    value: float
    runs: int


def survivors(
    A: NDArray[Any], starts: Index, k: int, rounds: tuple[tuple[int, float], ...], least: int, tol: float,
    hook: Report | None,
) -> Runs:  # fmt: skip
    """The best runs from single variables after rounds of (steps, runs of different supports that go on).

    The number that goes on is a share of the starts where it is below 1; never fewer than `least` do.
    """
    count = len(starts)
    index, value = starts[:, None], np.ones((count, 1), A.dtype)
    objective, made = np.zeros(count, A.dtype), np.zeros(count, np.intp)
    for steps, keep in rounds:
        most = max(int(keep * count if keep < 1 else keep), least)
        if len(index) <= most or ended(hook):
            continue
        index, value, objective, n_iter, _ = _core.truncated_power_of_matrix(
            A, index, value, k, steps, tol, hook
        )
        kept = best_supports(index, objective, most)
        index, value, objective, made = index[kept], value[kept], objective[kept], (made + n_iter)[kept]
    return index, value, objective, made


def best_supports(index: NDArray[np.intp], objective: NDArray[Any], most: int) -> NDArray[np.intp]:
    """The best runs of different supports, by decreasing objective; none that failed."""
    order = np.argsort(-objective, kind="stable")
    order = order[objective[order] > -np.inf]
    supports, size = index[order].tobytes(), index.itemsize * index.shape[1]
    first: dict[bytes, int] = {}
    for i in range(len(order)):
        first.setdefault(supports[i * size : (i + 1) * size], i)
        if len(first) == most:
            break
    return order[list(first.values())]


def race_rounds(p: int, deep: bool = False) -> tuple[tuple[int, float], ...]:
    """Of a race between so many variables; more runs go on where these are few, or a signal may be weak."""
    return DEEP_RACE if deep or p <= RACE_ALL else RACE


def ends_on_field(
    field: Field, k: int, count: int, most: int, swaps: float, tol: float, hook: Report | None
) -> tuple[list[End], int]:  # fmt: skip
    """The different ends of a race, the best first, and how many starts it had.

    It has `count` starts, and `most` runs go to their ends.  Where a signal may be weak, the count is 0: then
    every column starts, also among the variables of largest variance alone, since those of a signal are more
    often among them.  Ends whose variables can be swapped at a cost below `swaps` have been.
    """
    A, w = field.matrix, len(field.index)
    if k > w:  # no support is within the field
        return [], 0
    deep = count == 0
    rounds = race_rounds(w, deep)
    places = [(A, np.arange(w), np.arange(w) if deep else field.promising(k, count))]
    if deep and field.whole and k <= min(DEEP_SUBSET, w // 2):
        B, at = field.of_largest_variance(min(DEEP_SUBSET, w // 2))
        places.append((B, at, np.arange(len(at))))
    found: dict[bytes, End] = {}
    diagonal = np.ascontiguousarray(A.diagonal(), np.float64)
    for matrix, at, starts in places:
        index, value, *_ = survivors(matrix, starts, k, rounds, most, tol, hook)
        if len(index) == 0 or ended(hook):
            continue
        index, value, objective, *_ = _core.truncated_power_of_matrix(
            matrix, index, value, k, RACE_MOST_STEPS, tol, hook
        )
        for i in best_supports(index, objective, most):
            support, reached = np.sort(at[index[i]]), float(objective[i])
            if 20.0 * k**4 <= swaps and 1 < k < w and not ended(hook):
                limits = RISE, SWAP_GAP, SWAP_SLACK.of(A.dtype), FIELD_TIE, SWAPS_AT_A_TIME
                support, _, reached, _ = _core.swap(A, support, diagonal, *limits)
            key = support.tobytes()
            found[key] = End(support, reached, 1 + (found[key].runs if key in found else 0))
    order = sorted(found.values(), key=lambda end: (-end.value, tuple(end.index)))
    ends = [end._replace(index=np.sort(field.index[end.index])) for end in order]
    return ends, sum(len(starts) for *_, starts in places)
