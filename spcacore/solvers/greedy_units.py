"""Forward greedy search over groups of variables, and under signs."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import CHOICE_STARTS, GREEDY_UNITS, TIE
from .._types import Index
from ..linalg.pencil import ties
from ..operators.deflation import DeflatedOperator
from ..supports.admissible import Supports
from .refitting import refit
from .solution import ProgressClock, Solution
from .starts import power_start

__all__ = ["forward_by_units"]
__dir__ = __all__.copy


def forward_by_units(
    state: DeflatedOperator, K: int, seed: list[int], clock: ProgressClock
) -> Solution | None:
    """From what is included, one unit more while there is room: that of the largest objective.

    Where several first units tie, as in a correlation matrix, the one of the best pair.
    """
    choice = state.choice
    assert choice is not None
    units, x, n_iter = np.flatnonzero(choice.included), None, 0
    if len(units):
        x = _fitted(state, choice, [units], np.zeros(state.operator.p))[0]
    while ways := _ways(state, choice, units, x, K, seed):
        if len(ways) > 1 and x is None:
            further = [_ways(state, choice, *way, K, seed) for way in ways[:CHOICE_STARTS]]
            pairs = np.array([found[0][1].objective if found else -np.inf for found in further])
            ways = [ways[int(np.argmax(pairs))]]
        units, x = ways[0]
        n_iter += 1
        if clock(n_iter):
            break
    return None if x is None else replace(x, n_iter=n_iter)


def _ways(
    state: DeflatedOperator, choice: Supports, units: Index, x: Solution | None, K: int, seed: list[int]
) -> list[tuple[Index, Solution]]:
    """The units with one more, and their components, where the objective is largest; to rounding."""
    free = choice.allowed & (choice.size <= K - choice.cardinality(units))
    free[units] = False
    others = np.flatnonzero(free)
    if len(others) == 0:
        return []
    y = np.zeros(state.operator.p)
    if x is not None:
        entries = np.ascontiguousarray(x.entries)
        y = choice.projected(state.operator.apply(x.index, entries).astype(np.float64))
    if x is None and len(others) > CHOICE_STARTS:
        others = others[_by_promise(state, choice, others, seed)[:GREEDY_UNITS]]
    elif len(others) > GREEDY_UNITS:
        others = np.sort(others[np.argsort(-choice.norms(y)[others], kind="stable")[:GREEDY_UNITS]])
    if x is not None:
        y[x.index] += x.entries
    more = [np.append(units, other) for other in others]
    found = _fitted(state, choice, more, y)
    best = ties(np.array([new.objective for new in found]), TIE.of(state.operator.dtype))
    return [(more[i], found[i]) for i in best]


def _by_promise(state: DeflatedOperator, choice: Supports, others: Index, seed: list[int]) -> Index:
    """The order of units by variance and, where these tie, by their part of the leading eigenvector."""
    assert state.diagonal is not None
    variance = choice.norms(np.sqrt(np.maximum(state.diagonal, 0)))[others]
    dense = power_start(state.operator, np.random.default_rng(seed)).astype(np.float64)
    part = choice.norms(choice.oriented(dense))[others]
    return np.lexsort((-part, -np.round(variance / (variance.max() or 1), 6)))


def _fitted(state: DeflatedOperator, choice: Supports, ways: list[Index], y: NDArray[Any]) -> list[Solution]:
    """The best values on each of these."""
    found = []
    for units in ways:
        S = choice.variables(units)
        start = y[S]
        if not start.any():
            start = np.ones(len(S)) if choice.signs is None else choice.signs[S] + (choice.signs[S] == 0.0)
        start = (start / np.linalg.norm(start)).astype(state.operator.dtype)
        found.append(refit(state, Solution(S, start, -np.inf, 0, True)))
    return found
