"""A search in the working set: of some variables, until no other would enter."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from .._limits import (
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
from ..operators.problem import Problem
from ..operators.working_set import WorkingSet
from .solution import Begin, Report, Solution, ended


class Restrictable(ABC):
    """What a working set asks of a solver for which searching some variables will do."""

    sparsity: ClassVar[str] = "cardinality"

    @abstractmethod
    def solve(
        self, problem: Problem, state: DeflatedOperator, sparsity: Any, seed: list[int],
        hook: Report | None,
    ) -> Solution | None:  # fmt: skip
        """A component of the deflated operator; None where no variance, or nothing feasible, is left."""

    def near(self, x: Solution, only: bool) -> Self:
        """The solver that starts from a component of a similar problem too, or from it and one more."""
        return self

    def restrictable(self, state: DeflatedOperator) -> bool:
        """Whether a component of some variables is one of all where no |A x| outside exceeds its level."""
        return False

    def candidates(self, problem: Problem, state: DeflatedOperator, sparsity: Any, seed: list[int]) -> Index:
        """The variables to begin with."""
        raise NotImplementedError

    def among_some(
        self, problem: Problem, state: DeflatedOperator, sparsity: Any
    ) -> tuple[Restrictable, Any]:
        """The solver for some of these variables, without what `finish` does, and its sparsity."""
        return self, sparsity

    def resume(
        self, problem: Problem, state: DeflatedOperator, x: Solution, sparsity: Any, hook: Report | None
    ) -> Solution | None:
        """As `solve`, from x alone."""
        raise NotImplementedError

    def level(self, problem: Problem, state: DeflatedOperator, x: Solution, sparsity: Any) -> float | None:
        """What |A x| must exceed at a variable outside of the support to enter; None if x does not tell."""
        raise NotImplementedError

    def finish(
        self, problem: Problem, state: DeflatedOperator, x: Solution, hook: Report | None
    ) -> Solution | None:
        """x with its objective, and where values are re-fitted these, from the data themselves."""
        raise NotImplementedError

    def nearby(self) -> Solution | None:
        """The component of a similar problem that it starts from."""
        return None


def search_in_working_set(
    working_set: WorkingSet, solver: Restrictable, problem: Problem, state: DeflatedOperator, sparsity: Any,
    seed: list[int], hook: Report | None,
) -> Solution | None:  # fmt: skip
    """The best found in the working set, once no variable outside would enter; None if it cannot tell."""
    given, removed = solver.nearby(), _removed(state)
    likely = solver.candidates(problem, state, sparsity, seed)
    active = np.unique(np.concatenate([likely, removed, *([] if given is None else [given.index])]))
    if not working_set.admit(active):
        return None
    inner, among = solver.among_some(problem, state, sparsity)
    x: Solution | None = None
    everywhere = True  # whether to search from all starts
    searched = active[:0]  # where that was done
    for _ in range(WORKING_SET_CHECKS):
        inside, restricted = working_set.restricted(problem, state, active)
        last = given if x is None else x
        near = None if last is None else _at(last, np.searchsorted(active, last.index))
        if near is None or everywhere:
            way = inner if near is None else inner.near(near, False)
            found, searched = way.solve(inside, restricted, among, seed, hook), active
        else:
            found = inner.resume(inside, restricted, near, among, hook)
        level = _level(inner, inside, restricted, found, among)
        if found is None or level is None:
            return None
        tally = found.tally if x is None or everywhere else x.tally
        before, x = x, replaced(_at(found, active[found.index]), proved=False, tally=tally)
        if ended(hook) or (everywhere and before is not None and _same(before, x)):
            break
        (entrants,) = _entrants(working_set, solver, problem, state, active, [(x, level)])
        if entrants is None:
            return None
        everywhere = len(entrants) == 0
        if everywhere and np.array_equal(searched, active):
            break
        if not everywhere:
            grown = working_set.grown(active, np.union1d(x.index, removed), entrants)
            if grown is None:
                return None
            active = grown
    else:
        return None
    return solver.finish(problem, state, x, hook)


def search_from_each(
    working_set: WorkingSet, solver: Restrictable, problem: Problem, state: DeflatedOperator, sparsity: Any,
    hook: Report | None, begins: list[Begin],
) -> list[Solution | None]:  # fmt: skip
    """The same from each start alone, which share the checks of all columns."""
    out: list[Solution | None] = [None] * len(begins)
    removed, likely = _removed(state), [working_set.index]
    if WORKING_SET_ALL * len(working_set.index) ** 2 > problem.cost:
        likely = [begin.likely for begin in begins]
    active = np.unique(np.concatenate([*likely, removed, *(begin.x.index for begin in begins)]))
    if not working_set.admit(active):
        if len(begins) == 1:
            return out
        each = (search_from_each(working_set, solver, problem, state, sparsity, hook, [b]) for b in begins)
        return [x for found in each for x in found]
    inner, among = solver.among_some(problem, state, sparsity)
    under_way = {i: begin.x for i, begin in enumerate(begins)}
    at_rest: dict[int, Solution] = {}
    for _ in range(WORKING_SET_CHECKS):
        inside, restricted = working_set.restricted(problem, state, active)
        reached: dict[int, tuple[Solution, float]] = {}
        for i, x in under_way.items():
            near = _at(x, np.searchsorted(active, x.index))
            new = inner.resume(inside, restricted, near, among, hook)
            level = _level(inner, inside, restricted, new, among)
            if new is not None and level is not None:
                reached[i] = replaced(_at(new, active[new.index]), proved=False), level
        if ended(hook):
            at_rest |= {i: x for i, (x, _) in reached.items()}
            break
        entrants = _entrants(working_set, solver, problem, state, active, list(reached.values()))
        under_way, joining = {}, []
        for (i, (x, _)), found in zip(reached.items(), entrants, strict=True):
            if found is not None and len(found) == 0:
                at_rest[i] = x
            elif found is not None:
                under_way[i] = x
                joining.append(found)
        if not under_way:
            break
        used = np.unique(np.concatenate([removed, *(x.index for x in under_way.values())]))
        grown = working_set.grown(active, used, np.concatenate(joining))
        if grown is None:
            break
        active = grown
    for i, x in at_rest.items():
        known = begins[i].known
        same = known is not None and np.array_equal(x.index, known.index)
        out[i] = replaced(known, n_iter=x.n_iter) if same else solver.finish(problem, state, x, hook)
    return out


def _removed(state: DeflatedOperator) -> Index:
    """The variables of earlier components, each of which must be in the set."""
    return np.unique(np.concatenate([*(index for index, _ in state.loadings), np.empty(0, np.intp)]))


def _level(
    inner: Restrictable, inside: Problem, restricted: DeflatedOperator, found: Solution | None, sparsity: Any
) -> float | None:
    """The level of what was found in the set; None if it is rounding or does not tell."""
    if found is None or found.objective <= _rounding(inside):
        return None
    return inner.level(inside, restricted, found, sparsity)


def _entrants(
    working_set: WorkingSet, solver: Restrictable, problem: Problem, state: DeflatedOperator, active: Index,
    reached: list[tuple[Solution, float]],
) -> list[Index | None]:  # fmt: skip
    """The largest that would enter each, as many as it has; None where so many would that they will stay."""
    vectors = [(x.index, np.ascontiguousarray(x.entries), level) for x, level in reached]
    out: list[Index | None] = []
    for found, (x, level) in zip(working_set.entrants(state, active, vectors), reached, strict=True):
        fixed = solver.sparsity == "penalty" or level == 0
        many = fixed and len(found) > WORKING_SET_DENSE * problem.p
        out.append(None if many else found[: WORKING_SET_ENTRANTS * len(x.index)])
    return out


def _at(x: Solution, index: Index) -> Solution:
    """x with its variables at other, ascending, places."""
    return replaced(x, index=np.ascontiguousarray(index, np.intp))


def _same(x: Solution, y: Solution) -> bool:
    return np.array_equal(x.index, y.index) and np.array_equal(x.entries, y.entries)


def _rounding(inside: Problem) -> float:
    """Below this, what is left of a variance by deflating a Gram matrix is rounding."""
    eps = eps_of(inside.operator.dtype)
    return WORKING_SET_NOISE * eps * float(inside.variances.max())
