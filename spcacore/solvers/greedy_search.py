"""Greedy search: a component for every cardinality, one variable more or less at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from functools import partial, reduce
from itertools import chain, pairwise, product, takewhile
from typing import Self

import numpy as np

from .. import _core
from .._asked import as_record
from .._limits import (
    BACKWARD_ORDER,
    CHOICE_COLUMNS,
    CHOICE_ORDER,
    FIELD_ORDER,
    FIELD_SOME,
    GREEDY_BEGINS,
    GREEDY_PENALTIES,
    GREEDY_RANKED,
    GREEDY_STARTS,
    RACE_ENDS,
    RACE_STARTS,
    SOLVER_TOL,
    SWAP_WORK,
    USUAL_BACKWARD_ORDER,
)
from .._records import record
from .._types import Index, Kind, OperatorLike, Switch, Weights
from .._validation import integer, require_entries
from ..choice import Choice
from ..linalg.orthogonal import fix_sign
from ..linalg.scaling import are_among, descending
from ..methods import Greedy
from ..operators.deflation import DeflatedOperator
from ..operators.field import can_be_formed, ground_of
from ..operators.gram import KeptRows, kept_rows
from ..operators.problem import Problem, of_matrix
from ..progress import Callback
from ..results import GreedyComponent
from ..supports.admissible import Units, knowledge, with_unit
from ..supports.search import Clock, ascend, backward, growing, never, shrinking
from .base import (
    begun,
    refuse_costly,
    shared_parameters,
)
from .matrix_search import ends_on_field
from .refitting import is_better, refit
from .solution import ProgressClock, Solution, drop_zeros, ended
from .solver import Needs, Solver
from .starts import AllowedEntries, Columns, promising_columns
from .variance import LeadingEigenvalue, Slopes, Variance, improved, swap_search

_ALL = -1  # where a backward search begins, in place of a first variable


@record
class GreedySearch(Solver):
    """Greedy search: a support grows, or shrinks, by one variable at a time."""

    strategy: str
    name = "greedy"
    maximizes_quotient = True

    @classmethod
    def from_record(cls, problem: Problem, record: Greedy) -> Self:
        strategy = record.strategy
        if strategy != "gradient":
            require_entries(problem, f"strategy={strategy!r}", ": use strategy='gradient'")
        refuse_costly(strategy, problem.p, BACKWARD_ORDER)
        whole = not problem.supports.simple and strategy != "gradient"  # whole units join and leave
        if strategy not in ("auto", "forward") and problem.supports.shapes and not whole:
            raise ValueError(f"{problem.supports.shaping} requires strategy='forward', not {strategy!r}")
        return super().from_record(problem, record)

    @classmethod
    def needs(cls, record: Greedy) -> Needs:
        return Needs(whole_products=record.strategy != "gradient")

    def searches(self, state: DeflatedOperator, K: int, first: int | None = None) -> list[int | None]:
        """Return where the searches of the strategy begin: with a variable, with None, or with `_ALL`.

        None stands for the variable that promises most.
        """
        plain = self.strategy == "auto" and not state.supports.shapes and state.p != K
        found = [] if self.strategy == "backward" else [first]
        if plain:
            found += _begins(state, K)
        elif self.rises(state):
            found += _promising_units(state, K)
        most = USUAL_BACKWARD_ORDER if state.supports.simple else CHOICE_ORDER
        tried = plain or not (state.supports.simple or self.rises(state))
        few = tried and len(state.supports.allowed) <= most
        if self.strategy in ("backward", "bidirectional") or (self.strategy == "auto" and few):
            found.append(_ALL)
        return found

    def rises(self, state: DeflatedOperator) -> bool:
        """Whether several searches add units, whose ends rise by power steps: beyond what a tree ends."""
        bare = not (
            state.supports.simple or state.supports.included.any() or state.constrained or state.quotient
        )
        return self.strategy == "auto" and bare and state.p > CHOICE_ORDER

    def maximized(
        self, state: DeflatedOperator, K: int, strength: float, rows: KeptRows | None
    ) -> LeadingEigenvalue | Variance:
        """Return the objective of the searches, where `strength` is the one of B = I + strength QQ'."""
        if not state.supports.simple:
            return Variance(state if strength else replace(state, constraint=None), K)
        if self.strategy == "gradient":
            return Slopes(state, K, strength)
        return LeadingEigenvalue(state, K, strength, rows)

    def solve(self, state: DeflatedOperator, cardinality: int) -> Solution | None:
        """Return the best component of this cardinality that the searches of the strategy find.

        They run once for each strength of B = I + strength QQ'.
        """
        best, n_iter, clock = None, 0, ProgressClock(state.hook)
        simple, rows = state.supports.simple, kept_rows(state.operator)
        strengths = _strengths(state)
        if state.constrained and not simple:  # without the constraint, and with it as it is
            strengths = (0.0, 1.0)
        for objective in (self.maximized(state, cardinality, s, rows) for s in strengths):
            rises = self.rises(state)
            ways = (False, True) if rises and state.supports.counts_variables else (False,)
            for first, by_size in product(self.searches(state, cardinality), ways):
                steps = _walk(objective, first, clock, by_size)
                full = (units for units in steps if not objective.supports.joining(units).any())
                units = None if ended(state.hook) else next(full, None)
                if units is None:
                    continue
                n_iter += _changed(objective, units, first)
                units = ascend(objective, units) if rises else units
                new = refit(state, objective.solution(units))
                if state.constrained:  # the penalty chose variables that suit the constraint only roughly
                    new = swap_search(state, new, SWAP_WORK)
                if new.objective > -np.inf and (best is None or is_better(state, new, best, 0)):
                    best = new
        chosen = state.supports.shapes and self.strategy == "auto"
        if best is not None and (chosen or (state.constrained and simple)):
            best = improved(state, best, cardinality)
        return None if best is None else drop_zeros(replace(best, n_iter=n_iter))

    def path(self, state: DeflatedOperator, most: int) -> Iterator[Solution] | None:
        if state.supports.shapes or state.constrained or self.strategy in ("backward", "bidirectional"):
            return None
        clock, rows = ProgressClock(state.hook), kept_rows(state.operator)
        upwards = [first for first in self.searches(state, most) if first != _ALL]
        each = [self.maximized(state, most, _strengths(state)[0], rows) for _ in upwards]
        runs = (
            map(objective.solution, _walk(objective, first, clock))
            for objective, first in zip(each, upwards, strict=True)
        )
        return (
            refit(state, new)
            for new in (reduce(partial(_better, state), found) for found in zip(*runs, strict=False))
        )


def greedy_or(state: DeflatedOperator, x: Solution | None, size: int, more: int = 0) -> Solution | None:
    """Return x, or the component of this size that greedy search finds, if that is better.

    Without a constraint or quotient it is x. With them, the search that chose the support of x respects them
    only roughly. If no support of this size is feasible, one that is larger by at most `more` variables will
    do.
    """
    if not (state.constrained or state.quotient) or state.diagonal is None or ended(state.hook):
        return x
    if x is None or x.objective == -np.inf:
        x = None
    else:
        x, more = drop_zeros(swap_search(state, x, SWAP_WORK)), 0
    sizes = range(size, min(size + more, state.problem.n_variables) + 1)
    found = (GreedySearch("auto").solve(state, k) for k in sizes)
    new = next((y for y in found if y is not None), None)
    return x if new is None or (x is not None and not is_better(state, new, x, 0)) else new


@shared_parameters
def greedy(
    X: OperatorLike, cardinality: int, *,
    first: int | None = None,
    options: Greedy | None = None, choice: Choice | None = None,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    callback: Callback | None = None,
) -> GreedyComponent:  # fmt: skip
    """Sparse principal components of cardinality 1, ..., K by greedy search.

    Searches `max x'Ax` subject to `||x|| = 1` and at most k nonzeros, where `A` is the covariance matrix, for
    every k up to `cardinality` at once. Each support differs from the one before by one variable, and x is
    the leading eigenvector on the support.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix or LinearOperator
        Data, one row per sample; with ``kind="covariance"`` a symmetric (p, p) matrix, which may be
        indefinite, or a LinearOperator. If X offers only products, use the strategy "gradient".
    cardinality : int
        K, in [1, p].
    first : int, optional
        The variable to begin with. Default: the one of largest variance and, where several tie, as in a
        correlation matrix, the one of the best pair; up to 256 are tried. Not for "backward".
    options : Greedy, optional
        Options of the search, which the documentation of the record explains.
    {common}

    Returns
    -------
    GreedyComponent
        The component of cardinality K: `loading` (p,), `value`, `cardinality`, `n_iter` (variables added or
        removed), `method`; and the path: `path_value` (K,), `order` (K,) or None, and `.at(k)` for the
        component of cardinality k. For a matrix without any variance the loading is the first unit vector,
        the value 0, and a RuntimeWarning is given.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, an asymmetric covariance, an option out of range, or a strategy that
        does not suit X.
    {type_error}

    References
    ----------
    A. d'Aspremont, F. Bach and L. El Ghaoui (2008). Optimal solutions for sparse principal component
    analysis. Journal of Machine Learning Research 9, 1269-1294, algorithms 1 (forward) and 2 (gradient).
    B. Moghaddam, Y. Weiss and S. Avidan (2006). Spectral bounds for sparse PCA: exact and greedy
    algorithms. Advances in Neural Information Processing Systems 18 (backward and bidirectional).

    {pitprops}
    >>> x = spcacore.greedy(pitprops.correlation, 6, kind="covariance")
    >>> x.path_value.round(3)
    array([1.   , 1.954, 2.475, 2.937, 3.406, 3.771])
    >>> [pitprops.names[j] for j in x.order]
    ['topdiam', 'length', 'bowdist', 'whorls', 'ringbut', 'bowmax']
    >>> x.at(2).loading[:2].round(4)
    array([0.7071, 0.7071])
    """
    record = as_record(options, Greedy)
    strategy, known = record.strategy, knowledge(choice)
    if known and (known["groups"] is not None or known["signs"] is not None):
        raise ValueError(
            "greedy has a path with one variable more in each step, which groups and signs do not allow: "
            "sparse_pca(X, 1, cardinality, method='greedy', choice=...)"
        )
    if strategy == "auto" and first is not None:
        record = replace(record, strategy="forward")
    run = begun(GreedySearch, record, X, cardinality, choice, callback, kind, center, scale, sample_weight)
    state, solver, K = run.state, run.solver, run.cardinality
    assert isinstance(solver, GreedySearch)
    problem, hook = state.problem, state.hook
    if first is not None:
        first = integer(first, "first", 0, problem.p - 1)
        if strategy == "backward":
            raise ValueError("first is for the strategies that add variables, not for 'backward'")
    # All searches, and the best component of each cardinality on their way
    clock = ProgressClock(hook)
    path: list[Solution | None] = [None] * K
    n_iter = 0
    objective = solver.maximized(state, K, 0.0, None)
    for start in solver.searches(state, K, first):
        steps = 0
        for units in _walk(objective, start, clock):
            new, steps = objective.solution(units), max(steps, _changed(objective, units, start))
            k = len(new.index) - 1
            path[k] = _better(state, path[k] or new, new)
        n_iter += steps
        if ended(hook):
            break
    # The last one re-fitted, or unit vectors where there is no variance
    found = [new for new in path if new is not None]
    found[-1] = replace(refit(state, found[-1]), n_iter=n_iter)
    last = drop_zeros(found[-1])
    if last is None or abs(last.objective) <= problem.noise(last.index):
        nothing = [np.eye(1, k + 1, dtype=state.operator.dtype)[0] for k in range(K)]
        found = [Solution(np.arange(k + 1), nothing[k], 0.0, 0, True) for k in range(K)]
    x = replace(run, found=last).component()
    values = np.array([new.objective for new in found], np.float64)
    return GreedyComponent(
        **vars(x),
        path_value=np.asarray(problem.in_units(values)),
        order=_order([new.index for new in found]),
        path_index=np.concatenate([new.index for new in found]),
        path_loading=np.concatenate([fix_sign(new.entries) for new in found]),
    )  # fmt: skip


def _order(supports: list[Index]) -> Index | None:
    """Return the variable that each support adds to the one before, or None if it is not always one."""
    added = [supports[0], *(np.setdiff1d(new, old) for old, new in pairwise(supports))]
    return np.concatenate(added) if all(len(new) == 1 for new in added) else None


def _better(state: DeflatedOperator, old: Solution, new: Solution) -> Solution:
    """Return the better of two components."""
    return new if is_better(state, new, old, 0) else old


def _begins(state: DeflatedOperator, K: int) -> list[int]:
    """Return variables that forward search may begin with: those that lead furthest on a field.

    For each cardinality one of them is best. They are sought in two groups: variables that lead the ends of a
    race, and variables whose columns have the largest norms of their k largest entries. In the second group,
    variables that an earlier one leads to at once are left out.
    """
    if K == 1 or state.constrained or state.quotient or not can_be_formed(state):
        return []
    ground = ground_of(state)
    most = FIELD_ORDER if state.p <= FIELD_ORDER else FIELD_SOME
    field = ground.field(state, most, False)
    if field is None:
        return []
    # The variables with the two largest entries in each of the best ends of a race
    k, A = min(K, GREEDY_RANKED, len(field.index)), field.matrix
    inside = DeflatedOperator.from_problem(of_matrix(state.problem, A))
    objective = LeadingEigenvalue(replace(inside, seed=state.seed), k)
    passed = np.zeros(len(A), bool)
    values: dict[int, list[float]] = {}  # for each cardinality, by where a search begins
    leaders: list[int] = []
    for end in ends_on_field(field, k, RACE_STARTS, RACE_ENDS, 0.0, SOLVER_TOL, None)[0][:GREEDY_BEGINS]:
        S = np.flatnonzero(are_among(field.index, end.index))
        _, x = _core.leading_eigenvector(_core.principal_submatrix(A, S))
        leaders += S[descending(np.abs(x).round(3))[:2]].tolist()
    # Forward searches on the field from these and from the variables of promising columns
    for j in dict.fromkeys([*field.promising(k, RACE_STARTS).tolist(), *leaders]):
        if A[j, j] > 0 and (j in leaders or (not passed[j] and len(values) < GREEDY_STARTS)):
            passed[_core.select_largest(A[j], k)] = True
            values[int(field.index[j])] = [*map(objective.value, _walk(objective, int(j), never))]
    if not values:
        return []
    best = [list(values)[i] for i in np.argmax(list(values.values()), axis=0)[::-1]]  # the largest K first
    return [*dict.fromkeys([best[0], *(j for j, _ in Counter(best).most_common())])][:GREEDY_BEGINS]


def _promising_units(state: DeflatedOperator, K: int) -> list[int]:
    """Return units that a search may begin with: those of the columns of A that promise most."""
    columns = Columns.of(state) if state.p <= CHOICE_COLUMNS else None
    if columns is None:
        return []
    supports = state.supports.on(columns.among).within(K)
    chosen = columns.among[promising_columns(columns.matrix, AllowedEntries(supports), GREEDY_BEGINS)]
    units, fit = state.supports.unit[chosen], state.supports.within(K).joining(state.supports.included)
    return [*dict.fromkeys(units[fit[units]].tolist())]


def _strengths(state: DeflatedOperator) -> tuple[float, ...]:
    """Return the strengths of B = I + strength QQ' that a search takes in turn."""
    return GREEDY_PENALTIES if state.constrained else (-1.0,) if state.quotient else (0.0,)


def _walk(
    objective: LeadingEigenvalue | Variance, first: int | None, clock: Clock, by_size: bool = False
) -> Iterator[Units]:
    """Yield ever larger supports from a variable or what is included, or ever smaller ones from all."""
    supports = objective.supports
    if first == _ALL:
        yield from takewhile(np.any, shrinking(objective, backward(objective, clock)))
        return
    begin = np.zeros_like(supports.included) if supports.simple else supports.included
    if first is not None and (supports.included[first] or not supports.included.any()):
        begin = with_unit(begin, add=first)
    found = growing(objective, begin, by_size)
    for steps, units in enumerate(chain([begin], found) if begin.any() else found, 1):
        yield units
        if clock(steps):
            return


def _changed(objective: LeadingEigenvalue | Variance, units: Units, first: int | None) -> int:
    """Return how many units have joined, or have left."""
    return int(np.count_nonzero(objective.supports.allowed & ~units if first == _ALL else units))
