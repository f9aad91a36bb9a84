"""Where searches for the support of a direction of a pencil begin."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence

import numpy as np

from .._limits import (
    PENCIL_BACKWARD_ORDER,
    PENCIL_ENTERING,
    PENCIL_ENUMERATED,
    PENCIL_PAIRS,
    PENCIL_START_WORK,
    PENCIL_STARTS,
    PENCIL_SWAP_WORK,
    USUAL_BACKWARD_ORDER,
)
from ..objectives.ratio import RatioOfUnits
from ..supports.admissible import Supports, Units
from ..supports.search import Clock, backward, forward
from .form import Array
from .pencil import Pencil, Unbounded

__all__ = ["best_pairs", "greedy_searches", "ratio_of", "single_variables"]


def ratio_of(pencil: Pencil, supports: Supports) -> RatioOfUnits:
    """The largest value of the pencil on a support of variables that are not constant."""
    objective = RatioOfUnits(pencil, supports.among(pencil.usable))
    objective.most_tried = max(PENCIL_ENTERING, int(PENCIL_SWAP_WORK / (4.0 * supports.room**3)))
    return objective


def greedy_searches(objective: RatioOfUnits, pencil: Pencil, strategy: str, clock: Clock) -> Iterator[Units]:
    """The supports that the searches of a strategy find."""
    k, n = objective.supports.room, len(pencil.active)
    if strategy != "backward":
        yield forward(objective, clock=clock)
    if strategy in ("backward", "bidirectional"):
        yield backward(objective, clock)
    if strategy != "auto" or k == 1:
        return
    if math.comb(n, k) <= PENCIL_ENUMERATED:
        sets = [objective.supports.mask(np.array(S)) for S in itertools.combinations(pencil.active, k)]
        yield sets[int(np.argmax(objective.most(sets)))]
        return
    if n <= USUAL_BACKWARD_ORDER:
        # the ratio of all variables may have no bound where that of a few has
        with contextlib.suppress(Unbounded):
            yield backward(objective, clock)
    affordable = int(PENCIL_START_WORK / (4 / 3 * k**3 * n))
    starts: Sequence[Sequence[int]]
    if k > 2 and n <= PENCIL_BACKWARD_ORDER:
        starts = best_pairs(pencil, min(PENCIL_PAIRS, affordable))
    else:
        starts = [[first] for first in single_variables(objective, min(PENCIL_STARTS, affordable))]
    for start in starts:
        with contextlib.suppress(Unbounded):
            yield forward(objective, objective.supports.mask(np.array(start)), clock)


def single_variables(objective: RatioOfUnits, count: int) -> list[int]:
    """Those of the largest ratios, each by itself."""
    active = np.flatnonzero(objective.supports.allowed)
    ratio = objective.with_each(np.zeros_like(objective.supports.allowed), active)
    return [*active[np.argsort(-ratio, kind="stable")[:count]]]


def best_pairs(pencil: Pencil, count: int, apart: Array | None = None) -> list[tuple[int, int]]:
    """The pairs of variables with the largest values, each variable in two of them at most.

    Where variables are of two parts, `apart`, each pair has one of each.  The values are the larger roots of
    det(A - v B) = 0 on the pairs.
    """
    active = pencil.active
    A, B = pencil.A.block(active), pencil.B.block(active)
    a, b = A.diagonal(), B.diagonal()
    square = np.multiply.outer(b, b) - B * B
    middle = np.multiply.outer(a, b) / 2 + np.multiply.outer(b, a) / 2 - A * B
    last = np.multiply.outer(a, a) - A * A
    root = np.sqrt(np.maximum(middle * middle - square * last, 0))
    regular = square > pencil.least * np.multiply.outer(b, b)
    value = np.where(regular, (middle + root) / np.where(regular, square, 1), -np.inf)
    first, second = np.triu_indices(len(active), 1)
    if apart is not None:
        across = apart[active[first]] != apart[active[second]]
        first, second = first[across], second[across]
    value, used, chosen = value[first, second], np.zeros(len(active), int), list[tuple[int, int]]()
    for place in np.argsort(-value, kind="stable"):
        pair = [first[place], second[place]]
        if len(chosen) == count or not value[place] > -np.inf:
            break
        if (used[pair] < 2).all():
            used[pair] += 1
            chosen.append((int(active[pair[0]]), int(active[pair[1]])))
    return chosen
