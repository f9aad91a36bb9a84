"""What a solver is, and two searches that any solver can be used for: in a working set, and for a share.

A working set holds some of the variables. The solver searches among these until no other variable would
enter. A share of the variance asks for the fewest variables that explain that much of the ordinary component.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from .._limits import (
    GRAM_LEFT,
    SHARE_ROUNDING,
    WORKING_SET_ALL,
    WORKING_SET_CHECKS,
    WORKING_SET_DENSE,
    WORKING_SET_ENTRANTS,
    WORKING_SET_NOISE,
)
from .._messages import warn
from .._records import record, replaced
from .._types import Index
from ..choice import Explained
from ..linalg.eigen import leading_eigenvectors
from ..linalg.scaling import EPS, descending, eps_of, union
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from ..operators.working_set import WorkingSet
from ..supports.admissible import Supports
from .refitting import refit, same_support
from .solution import ProgressHook, Report, Solution, drop_zeros, ended
from .starts import begin_among
from .variance import swap_search


class Needs(NamedTuple):
    """What the steps of a solver need, with given options.

    `whole_products`: all entries of A x, not only the largest. `samples`: the data themselves, not only A.
    `working_set`: whether the solver can search among some of the variables.
    """

    whole_products: bool = False
    samples: bool = False
    working_set: bool = False


@record
class Solver(ABC):
    """A method of finding one sparse component; the fields of an instance are its validated options.

    Attributes
    ----------
    name : str
        The name that `method=` takes.
    sparsity : {"cardinality", "l1_bound", "penalty"}
        The quantity that sets how sparse a component is.
    objective : {"variance", "least_squares"}
        What is maximized: x'Ax, or the variance of all variables that the score explains.
    default_deflation : str
        The deflation that suits the objective.
    maximizes_quotient : bool
        Whether it maximizes x'Ax/x'Bx itself; of others the entries are re-fitted on the supports found.
    relaxed : bool
        Whether the relaxation bounds what it finds, where bounds are asked for.
    orthogonal : bool
        Whether its loadings are orthogonal to the earlier ones, so that there may be none.
    missing : bool
        Whether dense data may have NaN entries.
    usual_needs : Needs
        What its steps ask, whatever the options.
    takes_share : bool
        Whether `solve` takes `Explained` in place of a cardinality.
    nonnegative_kernel : bool
        Whether its kernels take signs of 1 for all variables.
    forms : bool
        Whether a small matrix in memory is deflated itself, and not implicitly.
    start : str, ndarray, Solution or None
        Where it starts, if that was given; or a component of a similar problem, to start from too.
    n_starts : int or None
        How many starts there are, if that was given; beside a component 0 if it is the only one.
    sample_l1_bound : float or None
        A bound on the l1 norm of the vector of samples.
    renormalize : bool
        Whether values are re-fitted on the supports found.
    swaps : float
        What swapping variables may cost, in multiplications, if they are swapped.
    """

    _: KW_ONLY
    start: Any = None
    n_starts: int | None = None
    sample_l1_bound: float | None = None
    renormalize: bool = True
    swaps: float = 0.0

    name: ClassVar[str]
    sparsity: ClassVar[str] = "cardinality"
    objective: ClassVar[str] = "variance"
    default_deflation: ClassVar[str] = "projection"
    maximizes_quotient: ClassVar[bool] = False
    relaxed: ClassVar[bool] = False
    orthogonal: ClassVar[bool] = False
    missing: ClassVar[bool] = False
    usual_needs: ClassVar[Needs] = Needs()
    takes_share: ClassVar[bool] = False
    nonnegative_kernel: ClassVar[bool] = False
    forms: ClassVar[bool] = False

    @classmethod
    def from_record(cls, problem: Problem, record: Any) -> Self:
        """Return the solver with the options of a record, checked against the problem.

        A limit that is None is infinite.
        """
        known: Any = cls
        own = {name: value for name, value in vars(record).items() if name in known.__dataclass_fields__}
        none = {name: math.inf for name in ("time_limit", "node_limit") if own.get(name, 0) is None}
        return known(**{n: float(x) if isinstance(x, np.floating) else x for n, x in (own | none).items()})

    @classmethod
    def needs(cls, record: Any) -> Needs:
        """Return what its steps need with the options of this record."""
        return cls.usual_needs

    @property
    def nearby(self) -> Solution | None:
        """The component of a similar problem that it starts from, if `start` is one."""
        return self.start if isinstance(self.start, Solution) else None

    def near(self, x: Solution, others: int | None = None) -> Self:
        """Return the solver that also starts from x, a component of a similar problem.

        `others` is how many other starts it takes; None leaves their number as it is. With 0 it starts from x
        alone, whatever start the caller gave. Otherwise a start that the caller gave is kept.
        """
        if others == 0:
            return replaced(self, start=x, n_starts=0)
        if self.start is not None and self.nearby is None:
            return self
        return replaced(self, start=x, n_starts=others if self.n_starts is None else self.n_starts)

    @abstractmethod
    def solve(self, state: DeflatedOperator, sparsity: Any) -> Solution | None:
        """Return a component of the deflated operator; None where no variance, or nothing feasible, is left.

        Some of its entries may be zero, and it may have either sign.
        """

    def among_some(self, state: DeflatedOperator, sparsity: Any) -> tuple[Solver, Any] | None:
        """Return the solver that searches among some of the variables, and its sparsity; None if it cannot.

        That solver need not re-fit values. What it finds among some variables must be a component of all of
        them as soon as no |A x| outside exceeds the `level`.
        """
        return None

    def level(self, state: DeflatedOperator, x: Solution, sparsity: Any) -> float | None:
        """Return what |A x| must exceed at a variable outside to enter; None if x does not tell."""
        raise NotImplementedError

    def path(self, state: DeflatedOperator, most: int) -> Iterator[Solution] | None:
        """Return components of ever more variables, if one search passes through them all; else None."""
        return None

    def find(self, state: DeflatedOperator, sparsity: Any) -> Solution | None:
        """Return what `solve` finds, by a search in the working set where that can tell.

        If a start that was given leads nowhere, for example because A maps it to zero, search from the
        default starts.
        """
        x = search_in_working_set(self, state, sparsity)
        x = self.solve(state, sparsity) if x is None else x
        if self.orthogonal or state.constraint == "orthogonal":
            x = _without_rounding(state, x)
        x = _admissible(state.supports, drop_zeros(x))
        infeasible = self.orthogonal and state.loadings
        if x is not None or infeasible or not isinstance(self.start, np.ndarray):
            return x
        x = replaced(self, start=None).find(state, sparsity)
        if x is not None:
            warn("no component was found from start: the default starts were taken")
        return x

    def together(
        self, problem: Problem, sparsities: Sequence[Any], seed: list[int], hook: ProgressHook | None
    ) -> list[Solution] | None:
        """Return all components, if the solver finds them at once; else None."""
        return None


def _without_rounding(state: DeflatedOperator, x: Solution | None) -> Solution | None:
    """Return x without entries that orthogonality to the earlier loadings makes zero but for rounding."""
    if x is None:
        return None
    removed = np.zeros(state.problem.p)
    for index, entries in state.loadings:
        removed[index] = np.maximum(removed[index], np.abs(entries))
    rounding = np.abs(x.entries) <= 16 * EPS * removed[x.index]
    return replaced(x, entries=np.where(rounding, x.entries.dtype.type(0), x.entries))


def _admissible(supports: Supports, x: Solution | None) -> Solution | None:
    """Return x without entries of excluded variables, and with the asked signs; None if no entry is left.

    A search that makes no step returns its start, which may have such entries.
    """
    if x is None or supports.plain:
        return x
    entries = np.where(supports.excluded[x.index], x.entries.dtype.type(0), x.entries)
    if not entries.any():
        return None
    if np.count_nonzero(entries) < np.count_nonzero(x.entries):
        entries = entries / np.linalg.norm(entries)
    kept = np.flatnonzero(entries)
    index = x.index[kept]
    return replaced(x, index=index, entries=supports.sign(index, entries[kept]))


# ---- the search in the working set ----------------------------------------------------------------------

Inner = tuple[Solver, Any]  # what `among_some` returns: the solver for some of the variables, its sparsity


def _inner(solver: Solver, state: DeflatedOperator, sparsity: Any) -> Inner | None:
    """Return the solver for the working set, and its sparsity; None without a set that it can use."""
    return None if state.problem.working_set is None else solver.among_some(state, sparsity)


def search_in_working_set(solver: Solver, state: DeflatedOperator, sparsity: Any) -> Solution | None:
    """Return the best component found in the working set, once no variable outside would enter.

    None if there is no working set, or if it cannot tell; the caller then searches among all variables.
    """
    inner = _inner(solver, state, sparsity)
    if inner is None:
        return None
    given, likely = solver.nearby, begin_among(state, solver.sparsity, sparsity)
    active = union(likely, _removed(state), *([] if given is None else [given.index]))
    if not state.problem.working_set.admit(active):
        return None
    x = _converged_runs(inner, state, active, {0: given}, True).get(0)
    return None if x is None else _finished(solver, inner[0], state, x)


def found_from_each(
    solver: Solver, state: DeflatedOperator, sparsity: Any, known: Solution | None, starts: list[Solution]
) -> Iterator[Solution | None]:
    """Yield what the solver finds from each start alone.

    It searches in the working set where there is one that can tell, and among all variables otherwise. A
    search in the set that ends on the support of `known` yields that component.
    """
    inner = _inner(solver, state, sparsity)
    found: list[Solution | None] = [None] * len(starts)
    if inner is not None:
        found = search_from_each(inner, solver, state, known, starts)
    for x, start in zip(found, starts, strict=True):
        yield solver.near(start, 0).solve(state, sparsity) if x is None else x


def search_from_each(
    inner: Inner, solver: Solver, state: DeflatedOperator, known: Solution | None, starts: list[Solution]
) -> list[Solution | None]:
    """Return what is found from each start alone in the working set; None where it cannot tell.

    All runs share the checks of the columns, in a set that must have room for all starts.
    """
    working_set: WorkingSet = state.problem.working_set
    out: list[Solution | None] = [None] * len(starts)
    active = union(_removed(state), *(x.index for x in starts))
    if WORKING_SET_ALL * len(working_set.index) ** 2 <= state.problem.cost:
        active = union(active, working_set.index)
    if not working_set.admit(active):
        return out
    for i, x in _converged_runs(inner, state, active, dict(enumerate(starts))).items():
        same = known is not None and np.array_equal(x.index, known.index)
        out[i] = replaced(known, n_iter=x.n_iter) if same else _finished(solver, inner[0], state, x)
    return out


def _converged_runs(
    inside: Inner, state: DeflatedOperator, active: Index,
    under_way: Mapping[int, Solution | None], anew: bool = False,
) -> dict[int, Solution]:  # fmt: skip
    """Search between the active variables, and let others join, until none would enter: what each run found.

    `under_way` has the component from which each run starts, or None for the solver's own starts. A run for
    which the check of all columns cannot tell is left out of the answer.

    With `anew` the first turn takes all starts. Later turns go on from the last component alone until nothing
    enters; then all starts are taken again in the larger set, until they find nothing new.
    """
    (inner, among), working_set = inside, state.problem.working_set
    everywhere, removed = anew, _removed(state)  # `everywhere`: this turn takes all starts
    rested: dict[int, Solution] = {}
    for turn in range(WORKING_SET_CHECKS):
        # Search in the set: the same problem for the active variables alone
        restricted = working_set.restricted(state, active)
        rounding = WORKING_SET_NOISE * eps_of(restricted.operator.dtype)
        noise = rounding * float(restricted.problem.variances.max())  # what deflation leaves is no more
        reached: dict[int, tuple[Solution, float]] = {}
        for i, x in under_way.items():
            near = None if x is None else _renumbered(x, np.searchsorted(active, x.index))
            way = inner if near is None else inner.near(near, None if anew and everywhere else 0)
            new = drop_zeros(way.solve(restricted, among))
            level = None if new is None or new.objective <= noise else inner.level(restricted, new, among)
            if new is None or level is None:
                continue
            tally = new.tally if x is None or everywhere or not anew else x.tally
            new = replaced(_renumbered(new, active[new.index]), proved=False, tally=tally)
            before = x if everywhere and turn > 0 else None
            still = before is not None and same_support(before, new) and (before.entries == new.entries).all()
            if still or ended(state.hook):
                rested[i] = new
            else:
                reached[i] = new, level
        if not reached:
            break
        # Check all columns: which variables outside have |A x| above the level?
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
        # Let these variables join
        under_way = going
        used = union(removed, *(x.index for x in going.values()))
        everywhere = not any(map(len, joining))
        grown = active if everywhere else working_set.grown(active, used, np.concatenate(joining))
        if grown is None:
            break
        active = grown
    return rested


def _finished(solver: Solver, inner: Solver, state: DeflatedOperator, x: Solution) -> Solution | None:
    """Return x with what the inner solver left out: its objective, re-fitted values and swaps, from the data.

    None if no entry is left.
    """
    if not solver.renormalize:
        return replaced(x, objective=state.quadratic(x.index, x.entries))
    state = state.orthogonal() if solver.orthogonal else state
    least = GRAM_LEFT.of(state.operator.dtype) * float(state.problem.variances.max())
    fitted = inner.renormalize and x.objective > least  # already in the set, with enough digits
    return drop_zeros(swap_search(state, x if fitted else refit(state, x), solver.swaps))


def _removed(state: DeflatedOperator) -> Index:
    """Return the variables of earlier components.

    All must be in the set, because deflation changes their rows of A.
    """
    return union(*(index for index, _ in state.loadings))


def _entrants(
    inner: Solver, state: DeflatedOperator, active: Index, reached: list[tuple[Solution, float]]
) -> list[Index | None]:
    """Return, for each run, the variables that would enter: the largest, at most as many as its support has.

    None where the level is fixed and so many exceed it that the component is not sparse.
    """
    vectors = [(x.index, np.ascontiguousarray(x.entries), level) for x, level in reached]
    out: list[Index | None] = []
    each = state.problem.working_set.entrants(state, active, vectors)
    for found, (x, level) in zip(each, reached, strict=True):
        fixed = inner.sparsity == "penalty" or level == 0
        many = fixed and len(found) > WORKING_SET_DENSE * state.p
        out.append(None if many else found[: WORKING_SET_ENTRANTS * len(x.index)])
    return out


def _renumbered(x: Solution, index: Index) -> Solution:
    """Return x with other numbers for the same variables, in the same order."""
    return replaced(x, index=np.ascontiguousarray(index, np.intp))


# ---- the fewest variables for a share of the variance ---------------------------------------------------

SolveAt = Callable[[int, Solution | None], Solution | None]  # of a cardinality and a component to start near


def least_share(explained: Explained, state: DeflatedOperator) -> float:
    """Return the share that a component is to explain, less what may be rounding."""
    return float(explained.share) * (1 - SHARE_ROUNDING.of(state.operator.dtype))


def fewest_variables(solver: Solver, state: DeflatedOperator, share: Explained) -> Solution | None:
    """Return the component of the fewest variables, of those that the solver finds, that explains the share.

    The share refers to the largest eigenvalue of the deflated A, or it is the squared correlation with the
    score of its eigenvector (`Explained.of`). The cardinality is found on the path of one search, or by
    bisection, where each search starts from the last component that sufficed.
    """
    if solver.takes_share:
        return solver.solve(state, share)
    # Cardinalities between which the answer lies, from the ordinary component alone
    least = least_share(share, state)
    ordinary = _OrdinaryComponent(state)
    if not ordinary.value > state.problem.noise(np.arange(1), state.deflation.first_order):
        return None
    low, high, first = ordinary.bracket(share.of, least)
    if not state.supports.plain:  # the truncated vector may have other variables, and be no bound
        fewest, high = state.supports.bounds
        low, first = min(max(low, fewest), high) if not state.supports.grouped else fewest, None
    if state.supports.positive:  # nor does it have these signs
        high, first = state.p, None
    # The first component of a path that suffices
    path = solver.path(state, high)
    if path is not None:
        last = first
        for x in path:
            if x.objective > -np.inf and ordinary.share(share.of, x) >= least:
                return drop_zeros(x)
            last = x if first is None else first
        return drop_zeros(last)

    # Or bisection, with a search for each cardinality
    def solve_at(k: int, near: Solution | None) -> Solution | None:
        return (solver if near is None else solver.near(near)).find(state, k)

    return bisect(solve_at, lambda x: ordinary.share(share.of, x) >= least, low, high, state.hook, first)


def bisect(
    solve_at: SolveAt, reaches: Callable[[Solution], bool], low: int, high: int, hook: Report | None,
    near: Solution | None = None,
) -> Solution | None:  # fmt: skip
    """Return the component of the smallest k in [low, high] for which `reaches` is true.

    If it is true for none, return the component of `high`. `near` is a component that may suffice for `high`,
    and from which the first search starts.
    """
    best = solve_at(high, near)
    if near is not None and (best is None or not reaches(best)):
        best = near
    while best is not None and low < high and not ended(hook):
        k = (low + high) // 2
        x = solve_at(k, best)
        if x is not None and reaches(x):
            best, high = x, min(k, len(x.index))
        else:
            low = k + 1
    return best


class _OrdinaryComponent:
    """The ordinary component of the deflated A: its vector u, its eigenvalue l, and the second one, m."""

    def __init__(self, state: DeflatedOperator):
        self.state, self.p = state, state.p
        op = state.operator
        start = np.random.default_rng(0).standard_normal(op.p).astype(op.dtype)
        if not op.apply(None, start).any():  # ARPACK cannot start
            values, vectors = np.zeros(2), np.zeros((op.p, 2))
        else:
            values, vectors = leading_eigenvectors(op, min(2, op.p))
        self.value, self.second = float(values[0]), max(float(values[-1]), 0.0)
        self.vector = np.ascontiguousarray(vectors[:, 0], np.float64)

    def share(self, of: str, x: Solution) -> float:
        """Return the share that x explains: x'Ax / l, or the squared correlation of the scores."""
        if of == "variance":
            return x.objective / self.value
        # corr(X x, X u)^2 = lambda (x'u)^2 / x'Ax
        variance = self.state.quadratic(x.index, x.entries)
        return self.value * float(self.vector[x.index] @ x.entries) ** 2 / variance if variance > 0 else 0.0

    def bracket(self, of: str, least: float) -> tuple[int, int, Solution | None]:
        """Return the smallest cardinality that may suffice, one that does, and a component of it or None.

        With k variables, c^2 = (x'u)^2 is at most the sum of the k largest u_j^2, which rules out small k
        because

            x'Ax <= l c^2 + m (1 - c^2).

        The k largest entries of u make a component, which shows that a k suffices; its values are re-fitted
        where the truncated vector is not feasible.
        """
        plain = not (self.state.quotient or self.state.constrained)
        order = descending(np.abs(self.vector))
        c = np.cumsum(self.vector[order] ** 2)
        low, high = 1, self.p
        if plain and of == "variance" and least * self.value > self.second:
            needed = (least * self.value - self.second) / (self.value - self.second)
            low = 1 + int(np.searchsorted(c, needed * (1 - 1e-6)))
        first, bottom = None, low
        while bottom < high:
            k = (bottom + high) // 2
            index = np.sort(order[:k])
            entries = self.vector[index] / np.linalg.norm(self.vector[index])
            entries = entries.astype(self.state.operator.dtype)
            x = Solution(index, entries, self.state.quadratic(index, entries))
            x = x if plain else refit(self.state, x)
            if self.share(of, x) >= least:
                first, high = x, k
            else:
                bottom = k + 1
        return min(low, high), high, first
