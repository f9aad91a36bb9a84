"""How directions of a pencil are sought: options, and where searches begin."""

from __future__ import annotations

import contextlib
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .._asked import as_record
from .._limits import (
    PENCIL_BACKWARD_ORDER,
    PENCIL_ENTERING,
    PENCIL_ENUMERATED,
    PENCIL_GREEDY_WORK,
    PENCIL_PAIRS,
    PENCIL_START_WORK,
    PENCIL_STARTS,
    PENCIL_SUPPORT,
    PENCIL_SWAP_WORK,
    USUAL_BACKWARD_ORDER,
)
from .._records import record
from .._types import Array
from .._validation import check_bool, check_choice, default_cardinality, integer, per_component
from ..methods import RatioSearch
from ..objectives.ratio import RatioOfUnits
from ..operators.deflation import DEFLATIONS as ALL_DEFLATIONS
from ..supports.admissible import Supports, Units, knowledge, with_unit
from ..supports.search import Clock, backward, forward, forward_ways
from .pencil import Pencil, Unbounded
from .ratio_bounds import refuse_many

DEFLATIONS = {name: one for name, one in ALL_DEFLATIONS.items() if not one.residual}


@record
class Options:
    """How directions are sought."""

    supports: Supports
    cardinality: tuple[int, ...]
    strategy: str
    swaps: bool
    deflation: str
    certify: bool


def check_options(
    p: int, names: tuple[str, ...] | None, cardinality: Any, n_components: Any, choice: Any, options: Any,
    deflation: Any, certify: Any,
) -> Options:  # fmt: skip
    """Validate what `sparse_eigen` and `sparse_lda` share."""
    given, supports = as_record(options, RatioSearch), Supports.checked(p, names, **knowledge(choice))
    r = integer(n_components, "n_components", 1, p)
    least, most = supports.bounds
    most = min(most, PENCIL_SUPPORT)
    k = per_component(
        min(max(default_cardinality(p), least), most) if cardinality is None else cardinality, "cardinality",
        r, lambda v, name: integer(v, name, least, most, "" if supports.plain else supports.why()),
    )  # fmt: skip
    removal = check_choice(deflation, "deflation", DEFLATIONS)
    if supports.signs is not None and DEFLATIONS[removal].quotient:
        raise ValueError(f"signs cannot be combined with deflation={deflation!r}: leave one out")
    if given.strategy in ("backward", "bidirectional") and p > PENCIL_BACKWARD_ORDER:
        raise ValueError(
            f"strategy={given.strategy!r} takes at most {PENCIL_BACKWARD_ORDER} variables, not {p}: "
            "use strategy='forward'"
        )
    if check_bool(certify, "certify"):
        refuse_many(p)
    return Options(supports, k, given.strategy, given.swaps, removal, bool(certify))


# ---- where searches begin -----------------------------------------------------------------------------


def ratio_of(pencil: Pencil, supports: Supports) -> RatioOfUnits:
    """The largest value of the pencil on a support of variables that are not constant."""
    objective = RatioOfUnits(pencil, supports.among(supports.mask(np.flatnonzero(pencil.usable))))
    objective.most_tried = max(PENCIL_ENTERING, int(PENCIL_SWAP_WORK / (4.0 * supports.room**3)))
    return objective


def strategy_of(pencil: Pencil, k: int, options: Options) -> str:
    """What "auto" stands for where forward search would take too long."""
    costly = 4 / 3 * k**3 * len(pencil.active) > PENCIL_GREEDY_WORK
    return "rough" if costly and options.strategy == "auto" else options.strategy


def greedy_searches(objective: RatioOfUnits, pencil: Pencil, strategy: str, clock: Clock) -> Iterator[Units]:
    """The supports that the searches of a strategy find."""
    supports = objective.supports
    k, n = supports.room, len(pencil.active)
    if strategy == "rough":
        yield _rough(objective, clock)
        return
    if strategy != "backward":
        yield from forward_ways(objective, clock)
    if strategy in ("backward", "bidirectional"):
        yield backward(objective, clock)
    if strategy != "auto" or k == 1:
        return
    if supports.plain and math.comb(n, k) <= PENCIL_ENUMERATED:
        sets = [supports.mask(np.array(S)) for S in itertools.combinations(pencil.active, k)]
        yield sets[int(np.argmax(objective.most(sets)))]
        return
    if n <= USUAL_BACKWARD_ORDER:
        # the ratio of all variables may have no bound where that of a few has
        with contextlib.suppress(Unbounded):
            yield backward(objective, clock)
    affordable = int(PENCIL_START_WORK / (4 / 3 * k**3 * n))
    starts: Sequence[Sequence[int]]
    if supports.plain and k > 2 and n <= PENCIL_BACKWARD_ORDER:
        starts = best_pairs(pencil, min(PENCIL_PAIRS, affordable))
    else:
        starts = [[first] for first in single_units(objective, min(PENCIL_STARTS, affordable))]
    for start in starts:
        units = supports.included.copy()
        units[list(start)] = True
        with contextlib.suppress(Unbounded):
            yield forward(objective, units, clock)


def _rough(objective: RatioOfUnits, clock: Clock) -> Units:
    """Forward search, a seventh more at a time: those of the largest ratios beside what there is."""
    supports, steps = objective.supports, 0
    units = supports.included
    while len(others := np.flatnonzero(supports.joining(units))) and not clock(steps):
        order = np.argsort(-objective.with_each(units, others), kind="stable")
        for unit in others[order[: 1 + np.count_nonzero(units) // 7]]:
            if supports.joining(units)[unit]:
                units = with_unit(units, add=unit)
        steps += 1
    return units


def single_units(objective: RatioOfUnits, count: int) -> list[int]:
    """Those of the largest ratios, each beside what is included."""
    supports = objective.supports
    begin = np.array(supports.included)
    active = np.flatnonzero(supports.joining(begin))
    ratio = objective.with_each(begin, active) if len(active) else np.zeros(0)
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
