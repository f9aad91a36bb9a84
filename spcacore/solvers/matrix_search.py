"""The search of a matrix in memory, by one call of a kernel (search.c), which races from its columns."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from .. import _core
from .._limits import (
    BRIEF_HOPELESS,
    BRIEF_NODES,
    BRIEF_ORDER,
    BRIEF_WORK,
    DEEP_RACE,
    FIELD_TIE,
    QUICKLY_SWAPPED_ENDS,
    RACE,
    RACE_ALL,
    RACE_ENDS,
    RACE_EXACT,
    RACE_MOST_STEPS,
    RACE_STARTS,
    RISE,
    SWAP_GAP,
    SWAP_SLACK,
    SWAPPED_ENDS,
    TALLY_TIE,
    TIE,
)
from .._types import AnyArray, DType, Index
from ..operators.field import Field
from .solution import Report, Tally, ended

Plan = tuple[Any, ...]  # what _core.search takes


class End(NamedTuple):
    """The variables, ascending, where runs of a race ended, their value, and how many runs did."""

    index: Index  # type: ignore[assignment]  # of tuples a method
    value: float
    runs: int


class BestSupports(NamedTuple):
    """The best supports of a matrix, by decreasing value, and what is known of the first."""

    supports: Index
    swapped: bool
    tally: Tally
    n_iter: int
    nodes: int
    proved: bool


def best_supports(
    A: AnyArray, k: int, max_iter: int, tol: float, swaps: float, hook: Report | None
) -> BestSupports | None:
    """The best supports of k variables of a symmetric matrix, proved to be that where it is cheap.

    Variables of the best ends are swapped, if that costs less than `swaps`.
    """
    p = len(A)
    swapped = SWAPPED_ENDS if 20.0 * k**4 <= swaps else 0
    nodes = 0 if not swapped or p > BRIEF_ORDER else min(BRIEF_NODES, int(BRIEF_WORK / (p * k) ** 2))
    hopeless = BRIEF_HOPELESS * math.log2(nodes + 1)
    tie = TIE.of(A.dtype)
    plan = _plan(p, A.dtype, k, True, p <= RACE_ALL, RACE_STARTS, max_iter, tol, RACE_ENDS, swapped, tie)
    supports, values, runs, told = _core.search(A, k, (*plan, nodes, hopeless), progress=hook)
    starts, ends, n_iter, divided, proved = told
    if len(values) == 0:
        return None
    reached = int(runs[values >= values[0] - TALLY_TIE * abs(values[0])].sum())
    supports = supports[: 1 if swapped else SWAPPED_ENDS]
    return BestSupports(supports, swapped > 0, Tally(starts, ends, reached), n_iter, divided, proved)


@lru_cache(maxsize=8)  # of one component after another
def _plan(
    p: int, dtype: DType, k: int, whole: bool, deep: bool, count: int, max_iter: int, tol: float,
    ends: int, swapped: int, tie: float,
) -> Plan:  # fmt: skip
    """Starts, rounds, and the rest but for the tree; more runs go on where these are few, or a signal may be
    weak.  A part of A has few variables of a support: more nonzeros than k would be others."""
    tried = QUICKLY_SWAPPED_ENDS if swapped else 0
    starts, least = min(count, p), max(ends, 1)
    rounds = [
        (steps, max(int(keep * starts if keep < 1 else keep), least), int(width * k) if whole else k)
        for steps, keep, width in (DEEP_RACE if deep else RACE)
    ]
    limits = RISE, SWAP_GAP, SWAP_SLACK.of(dtype), tie
    return starts, rounds, max_iter, tol, ends, tried, swapped, limits, RACE_EXACT


def can_be_swapped(k: int, p: int, swaps: float) -> bool:
    """Whether k of p variables can be swapped at a cost below `swaps`, which a race then does."""
    return 20.0 * k**4 <= swaps and 1 < k < p


def ends_on_field(
    field: Field, k: int, count: int, most: int, swaps: float, tol: float, hook: Report | None
) -> tuple[list[End], int, int]:  # fmt: skip
    """The different ends of a race, the best first, how many starts it had, and the steps to the best.

    It has `count` starts, and `most` runs go to their ends.  Where a signal may be weak, the count is 0: then
    every column starts.  Ends whose variables can be swapped at a cost below `swaps` have been.
    """
    A, w = field.matrix, len(field.index)
    if k > w or ended(hook):  # no support is within the field, or none is wanted any more
        return [], 0, 0
    deep, swapped = count == 0, SWAPPED_ENDS if can_be_swapped(k, w, swaps) else 0
    starts = w if deep else count
    deep = deep or w <= RACE_ALL
    plan = _plan(w, A.dtype, k, field.whole, deep, starts, RACE_MOST_STEPS, tol, most, swapped, FIELD_TIE)
    score, known = field.norms(k) if starts < w else (None, False)
    supports, values, runs, told = _core.search(A, k, (*plan, 0, 0.0), score, known, hook)
    ends = [
        End(np.sort(field.index[S]), value, n_runs)
        for S, value, n_runs in zip(supports, values.tolist(), runs.tolist(), strict=True)
    ]
    return ends, told[0], told[2]
