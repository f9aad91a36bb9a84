"""A search in the working set: of some variables, until no other would enter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .._limits import (
    GRAM_LEFT,
    WORKING_SET_ALL,
    WORKING_SET_CHECKS,
    WORKING_SET_DENSE,
    WORKING_SET_ENTRANTS,
    WORKING_SET_NOISE,
)
from .._records import replaced
from .._types import Index
from ..linalg.scaling import eps_of
from ..operators.deflation import DeflatedOperator
from ..operators.working_set import WorkingSet
from .column_starts import begin_among
from .refitting import refit
from .solution import Begin, Solution, drop_zeros, ended
from .swaps import swap_search

if TYPE_CHECKING:
    from .base import Solver

Inner = tuple["Solver", Any]  # what `among_some` says


def _inner(solver: Solver, state: DeflatedOperator, sparsity: Any) -> Inner | None:
    return None if state.problem.working_set is None else solver.among_some(state, sparsity)


def search_in_working_set(solver: Solver, state: DeflatedOperator, sparsity: Any) -> Solution | None:
    """The best found in the working set, once no variable outside would enter; None if it cannot tell."""
    inner = _inner(solver, state, sparsity)
    if inner is None:
        return None
    given, likely = solver.nearby, begin_among(state, solver.sparsity, sparsity)
    active = np.unique(np.concatenate([likely, _removed(state), *([] if given is None else [given.index])]))
    if not state.problem.working_set.admit(active):
        return None
    x = _at_rest(inner, state, active, {0: given}, True).get(0)
    return None if x is None else _finished(solver, inner[0], state, x)


def found_from_each(
    solver: Solver, state: DeflatedOperator, begins: list[Begin], sparsity: Any
) -> Iterator[Solution | None]:
    """What is found from each start alone, in the working set where there is one that can tell."""
    inner = _inner(solver, state, sparsity)
    found: list[Solution | None] = [None] * len(begins)
    if inner is not None:
        found = search_from_each(inner, solver, state, begins)
    for x, begin in zip(found, begins, strict=True):
        yield solver.near(begin.x, 0).solve(state, sparsity) if x is None else x


def search_from_each(
    inner: Inner, solver: Solver, state: DeflatedOperator, begins: list[Begin]
) -> list[Solution | None]:
    """The same from each start alone, which share the checks of all columns."""
    working_set: WorkingSet = state.problem.working_set
    out: list[Solution | None] = [None] * len(begins)
    likely = [working_set.index]
    if WORKING_SET_ALL * len(working_set.index) ** 2 > state.problem.cost:
        likely = [begin.likely for begin in begins]
    active = np.unique(np.concatenate([*likely, _removed(state), *(begin.x.index for begin in begins)]))
    if not working_set.admit(active):
        if len(begins) == 1:
            return out
        each = (search_from_each(inner, solver, state, [b]) for b in begins)
        return [x for found in each for x in found]
    starts = {i: begin.x for i, begin in enumerate(begins)}
    found = _at_rest(inner, state, active, starts)
    for i, x in found.items():
        known = begins[i].known
        same = known is not None and np.array_equal(x.index, known.index)
        out[i] = replaced(known, n_iter=x.n_iter) if same else _finished(solver, inner[0], state, x)
    return out


def _at_rest(
    inside: Inner, state: DeflatedOperator, active: Index,
    under_way: Mapping[int, Solution | None], anew: bool = False,
) -> dict[int, Solution]:  # fmt: skip
    """Where the runs under way end, of which no variable outside of the set would enter.

    `anew`: they begin from all starts in the set, and once nothing enters do so again, until that is no news.
    """
    (inner, among), working_set = inside, state.problem.working_set
    everywhere, removed = anew, _removed(state)
    rested: dict[int, Solution] = {}
    for turn in range(WORKING_SET_CHECKS):
        restricted = working_set.restricted(state, active)
        reached: dict[int, tuple[Solution, float]] = {}
        for i, x in under_way.items():
            near = None if x is None else _at(x, np.searchsorted(active, x.index))
            way = inner if near is None else inner.near(near, None if anew and everywhere else 0)
            new = drop_zeros(way.solve(restricted, among))
            level = _level(inner, restricted, new, among)
            if new is None or level is None:
                continue
            tally = new.tally if x is None or everywhere or not anew else x.tally
            new = replaced(_at(new, active[new.index]), proved=False, tally=tally)
            if ended(state.hook) or (everywhere and turn > 0 and x is not None and _same(x, new)):
                rested[i] = new
            else:
                reached[i] = new, level
        if not reached:
            break
        entrants = _entrants(inner, state, active, list(reached.values()))
        going: dict[int, Solution] = {}
        joining: list[Index] = []
        for (i, (x, _)), found in zip(reached.items(), entrants, strict=True):
            if found is not None and len(found) == 0 and (everywhere or not anew):
                rested[i] = x
            elif found is not None:
                going[i] = x
                joining.append(found)
        if not going:
            break
        under_way = going
        used = np.unique(np.concatenate([removed, *(x.index for x in going.values())]))
        everywhere = not any(map(len, joining))
        grown = active if everywhere else working_set.grown(active, used, np.concatenate(joining))
        if grown is None:
            break
        active = grown
    return rested


def _finished(solver: Solver, inner: Solver, state: DeflatedOperator, x: Solution) -> Solution | None:
    """x with its objective, and where values are re-fitted and variables swapped these, from the data."""
    if not solver.renormalize:
        return replaced(x, objective=state.quadratic(x.index, x.entries))
    state = state.orthogonal() if solver.orthogonal else state
    least = GRAM_LEFT.of(state.operator.dtype) * float(state.problem.variances.max())
    fitted = inner.renormalize and x.objective > least  # in the set, with enough digits
    return drop_zeros(swap_search(state, x if fitted else refit(state, x), solver.swaps))


def _removed(state: DeflatedOperator) -> Index:
    """The variables of earlier components, each of which must be in the set."""
    return np.unique(np.concatenate([*(index for index, _ in state.loadings), np.empty(0, np.intp)]))


def _level(
    inner: Solver, restricted: DeflatedOperator, found: Solution | None, sparsity: Any
) -> float | None:
    """The level of what was found in the set; None if it is rounding or does not tell."""
    if found is None or found.objective <= _rounding(restricted):
        return None
    return inner.level(restricted, found, sparsity)


def _entrants(
    inner: Solver, state: DeflatedOperator, active: Index, reached: list[tuple[Solution, float]]
) -> list[Index | None]:
    """The largest that would enter each, as many as it has; None where so many would that they will stay."""
    vectors = [(x.index, np.ascontiguousarray(x.entries), level) for x, level in reached]
    out: list[Index | None] = []
    each = state.problem.working_set.entrants(state, active, vectors)
    for found, (x, level) in zip(each, reached, strict=True):
        fixed = inner.sparsity == "penalty" or level == 0
        many = fixed and len(found) > WORKING_SET_DENSE * state.p
        out.append(None if many else found[: WORKING_SET_ENTRANTS * len(x.index)])
    return out


def _at(x: Solution, index: Index) -> Solution:
    """x with its variables at other, ascending, places."""
    return replaced(x, index=np.ascontiguousarray(index, np.intp))


def _same(x: Solution, y: Solution) -> bool:
    return np.array_equal(x.index, y.index) and np.array_equal(x.entries, y.entries)


def _rounding(restricted: DeflatedOperator) -> float:
    """Below this, what is left of a variance by deflating a Gram matrix is rounding."""
    eps = eps_of(restricted.operator.dtype)
    return WORKING_SET_NOISE * eps * float(restricted.problem.variances.max())
