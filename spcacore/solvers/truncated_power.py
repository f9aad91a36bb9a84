"""Truncated power iteration: one sparse component of given cardinality."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, Self

import numpy as np

from .. import _core
from .._limits import (
    BRIEF_FORMING,
    BRIEF_ORDER,
    CHOICE_COLUMNS,
    CHOICE_ENDS,
    CHOICE_STARTS,
    NOISE_DEPENDENT,
    RACE_ALL,
    RACE_ITERATIONS,
    SUBMATRIX_ORDER,
    SWAP_WORK,
    SWAPPED_ENDS,
    TIE,
    WORKING_SET_FACTOR,
)
from .._records import record, replaced
from .._types import AnyArray, Index, Kind, OperatorLike, Switch, Weights
from .._validation import require_entries
from ..choice import Choice
from ..linalg.eigen import ties
from ..methods import TPower
from ..operators.deflation import DeflatedOperator
from ..operators.field import can_be_formed, ground_of
from ..operators.gram import largest_submatrix
from ..operators.problem import Problem
from ..progress import Callback
from ..results import SparseComponent
from .base import IterativeSolver, run_one, shared_parameters
from .field_search import FieldSearch, noise_of, rises_above_noise
from .matrix_search import best_supports
from .refitting import Step, Steps, best_run, fitted_on, is_better, penalty_continuation, refit
from .solution import Solution, Tally, agreeing, drop_zeros, ended
from .solver import Solver
from .starts import AllowedEntries, Columns, Start, search_starts
from .variance import brief_search, swap_search


@record
class TruncatedPower(IterativeSolver):
    """Truncated power iteration: x <- T_k(Ax) / ||T_k(Ax)||, where T_k keeps the k largest magnitudes."""

    name = "tpower"
    missing = True
    nonnegative_kernel = True
    forms = True

    @classmethod
    def from_record(cls, problem: Problem, record: TPower | None = None) -> Self:
        record = TPower() if record is None else record
        swaps, affordable, positive = record.swaps, math.inf, problem.supports.positive
        if swaps is None:
            swaps = record.renormalize and not positive and record.start is None
            affordable = SWAP_WORK
        elif swaps:
            if positive or not record.renormalize:
                raise ValueError("swaps=True requires renormalize=True, and does not allow signs")
            require_entries(problem, "swaps=True")
        return replaced(super().from_record(problem, record), swaps=affordable if swaps else 0.0)

    def solve(self, state: DeflatedOperator, cardinality: int) -> Solution | None:
        """Return the best component of the runs from all starts, or of a search of A as a matrix."""
        if self.nearby is not None and self.n_starts == 0:
            return self._from_one(state, self.nearby, cardinality)
        A = self.matrix(state)
        if A is not None:
            return self._best_of_matrix(state, A, cardinality)
        running = _running(state)
        ends: dict[bytes, list[Solution]] = {}

        def run(
            index: Index, entries: AnyArray, path: tuple[int, ...]
        ) -> Solution | None:  # fmt: skip
            x = self._run(state, running, index, entries, path)
            if x is not None:
                ends.setdefault(x.index.tobytes(), []).append(x)
            return x

        # The best run, or under a constraint the best few, with values re-fitted and variables swapped
        best = best_run(state, self._begin(state, cardinality), run, self.tol if self.renormalize else 0)
        if best is None:
            return None
        few = [[best] * best.tally.best]
        if self.swaps > 0 and state.constrained:
            few = sorted(ends.values(), key=lambda runs: -runs[0].objective)[:SWAPPED_ENDS]
        x, reached = None, []
        for runs in few:
            y = self._improved(state, runs[0])
            if y is not None:
                x = y if x is None or is_better(state, y, x, 0) else x
                reached.append((y.objective, len(runs)))
        if x is None:
            return None
        tally = Tally(best.tally.starts, best.tally.ends, agreeing(reached, x.objective))
        x = replaced(x, n_iter=best.n_iter)
        last = x if self.swaps == 0 else drop_zeros(brief_search(state, x, cardinality))
        return None if last is None else replaced(last, tally=tally)

    def _begin(self, state: DeflatedOperator, k: int) -> Iterator[Start]:
        """Yield the starts; for few variables with groups or signs, also the ends of runs on A in memory."""
        known = state.supports.shapes or state.supports.positive
        few = known and state.p <= CHOICE_COLUMNS and self._starts_are_ours()
        columns = Columns.of(state) if few else None
        yield from search_starts(state, k, self.start, self.n_starts)
        if columns is None:
            return
        supports = state.supports.on(columns.among).within(k)
        steps = Steps(supports, Step.TRUNCATION, k)
        ends = columns.ends(AllowedEntries(supports), CHOICE_STARTS, steps, self.max_iter, state.hook)
        yield from ends[:CHOICE_ENDS]

    def matrix(self, state: DeflatedOperator) -> AnyArray | None:
        """Return A if it is in memory, or quickly formed of few variables; else, or without a race, None."""
        if not self._chooses_starts(state) or state.supports.shapes or state.constrained or state.quotient:
            return None
        op, p = state.operator, state.p
        if (
            state.matrix is not None
            or state.diagonal is None
            or p > BRIEF_ORDER
            or state.problem.filled is not None
        ):
            return state.matrix
        cheap = op.symmetric_form or float(op.m) * p**2 <= BRIEF_FORMING
        return op.submatrix(np.arange(p)) if cheap and p <= largest_submatrix(op) else None

    def _best_of_matrix(self, state: DeflatedOperator, A: AnyArray, cardinality: int) -> Solution | None:
        """Return the better of what a search of A finds, re-fitted, and what `nearby` leads to."""
        near = self.nearby
        best = None if near is None else self._from_one(state, near, cardinality)
        found = best_supports(A, cardinality, self.max_iter, self.tol, self.swaps, state.hook)
        if found is None:
            return best
        for support in found.supports:
            going = not ended(state.hook)
            x = fitted_on(state, support, found.n_iter, going)
            if not self.renormalize:
                run = self._run_from(state, x, cardinality)
                x = x if run is None else run
            elif not found.swapped:
                x = swap_search(state, x, self.swaps)
            better = drop_zeros(x)
            if better is not None and (best is None or is_better(state, better, best, 0)):
                best = replaced(better, tally=found.tally, proved=found.proved and self.renormalize)
        return best

    def find(self, state: DeflatedOperator, sparsity: Any) -> Solution | None:
        """Search in three steps, and stop where the later ones cannot find anything better.

        1. Find a component by a race, in A or in a field, or from one start.
        2. Ask whether that is enough: samples and columns, the comparison with noise, and a small race tell.
        3. If not, race among all variables, or from all columns where the signal is weak.

        If the last component was no stronger than noise, a race from all columns comes first.
        """
        state = state.formed()
        if sparsity == 1 and self._chooses_starts(state) and (best := _largest_variance(state)) is not None:
            return best
        by_default = self._chooses_starts(state) and sparsity < state.p
        if not (by_default and can_be_formed(state)):
            return super().find(state, sparsity)
        blocks: Any = state.problem.operator
        if blocks.by_passes and blocks.gram.formed:  # A is formed: search all variables, as in memory
            state = state.with_problem(working_set=None)
        ground = ground_of(state)
        wide = ground.wide
        near = state if self.among_some(state, sparsity) else state.with_problem(working_set=None)
        search = FieldSearch(self, near, sparsity, ground, self.swaps)
        best, working_set = None, near.problem.working_set
        formed = state.matrix is not None  # then the search of the matrix races from all columns
        asked = working_set is not None and working_set.asked
        at_once = not (formed or asked) and self.start is None and search.at_once()
        may_be_weak = self.swaps > 0 and state.constraint is None and not state.quotient and sparsity > 2
        deeper = may_be_weak and (formed or at_once) and search.all_race()
        if deeper and ground.weak:
            best = search.deeper(None)
            if best is not None:
                ground.weak = not rises_above_noise(near, best)
                return best
        # 1. A first component
        A = None if working_set is not None or not state.supports.plain else self.matrix(state)
        if A is not None:
            best = self._best_of_matrix(near, A, sparsity)
        elif at_once:
            best = search.raced(None)
        if best is None and A is None:
            few = formed or state.p <= BRIEF_ORDER or self.start is not None or asked
            first = self if few else replaced(self, n_starts=1)
            search.expect()
            everywhere = not few and not wide and state.problem.working_set is not None
            if everywhere and WORKING_SET_FACTOR * sparsity <= SUBMATRIX_ORDER:  # else a set costs more
                everywhere = not noise_of(state)[1] > NOISE_DEPENDENT  # in noise a set misses the best
            all_columns = state.with_problem(working_set=None) if everywhere else state
            best = super(TruncatedPower, first).find(all_columns, sparsity)
        if best is None and state.constrained and not formed and not ended(state.hook):
            best = super().find(state, sparsity)  # with the other starts too
        if best is None or best.proved or ended(state.hook) or not best.objective > 0:
            return best
        # 2. Is it enough?
        weak = may_be_weak and not (A is not None and state.p <= RACE_ALL)  # there a deep race has run
        best, weak = search.elsewhere(best, weak, A is None and not formed)
        ground.weak = weak
        if not weak:
            best, enough = (best, True) if formed or at_once else search.probed(best)
            if best is None or enough:
                return best
        # 3. A race
        if blocks.by_passes and not blocks.gram.formed and blocks.form(weak):
            ground.wide = wide  # begin anew, now that A is formed
            return self.find(state, sparsity)
        if weak:
            found = search.deeper(None if deeper else best)
            return best if found is None else found
        return search.raced(best)

    def _chooses_starts(self, state: DeflatedOperator) -> bool:
        """Whether the starts are ours to choose, and a race may choose them."""
        ours = self._starts_are_ours()
        return ours and self.max_iter >= RACE_ITERATIONS and not state.supports.positive

    def _starts_are_ours(self) -> bool:
        """Whether the caller leaves the starts to us; a component of a similar problem may be one of them."""
        return self.n_starts is None and (self.start is None or self.nearby is not None)

    def _from_one(self, state: DeflatedOperator, x: Solution, cardinality: int) -> Solution | None:
        """Return what the iteration from x alone finds, re-fitted and with variables swapped."""
        best = self._run_from(state, x, cardinality)
        return None if best is None else self._improved(state, best)

    def _improved(self, state: DeflatedOperator, best: Solution) -> Solution | None:
        """Return the component with values re-fitted and variables swapped.

        None if no vector on its support is feasible.
        """
        if self.renormalize:
            best = refit(state, best)
        return drop_zeros(swap_search(state, best, self.swaps))

    def among_some(self, state: DeflatedOperator, cardinality: int) -> tuple[Solver, int] | None:
        """Return this solver: it re-fits values and takes quotients among some variables as among all."""
        whole = super().among_some(replaced(state, basis=()), cardinality)
        return None if whole is None else (self, cardinality)

    def level(self, state: DeflatedOperator, x: Solution, cardinality: int) -> float:
        product = _running(state).apply(x.index, np.ascontiguousarray(x.entries))[x.index]
        return float(np.abs(product).min()) if len(x.index) == cardinality else 0.0

    def _run_from(self, state: DeflatedOperator, x: Solution, cardinality: int) -> Solution | None:
        return self._run(state, _running(state), x.index, x.entries, (cardinality,))

    def _run(
        self, state: DeflatedOperator, running: _core.Operator, index: Index, entries: AnyArray,
        path: tuple[int, ...],
    ) -> Solution | None:  # fmt: skip
        """Iterate from a start through these cardinalities; None where A maps a vector to zero."""
        supports, limits = state.supports, (self.max_iter, self.tol, state.hook)

        def steps(
            op: _core.Operator, index: Index, entries: AnyArray, width: int = path[-1]
        ) -> Solution | None:
            return Steps(supports, Step.TRUNCATION, width).ascend(op, index, entries, *limits)[0]

        x = None
        for width in path[-1:] if supports.shapes else path:
            x = steps(running, index, entries, width)
            if x is None:
                return None
            index, entries = x.index, x.entries
        return None if x is None else penalty_continuation(state, x, steps)


def _largest_variance(state: DeflatedOperator) -> Solution | None:
    """Return the variable of largest variance, the best component of one variable; of a tie, the first.

    None where a single variable is not judged by its variance: with groups, signs, a constraint or a
    quotient.
    """
    diagonal, other = state.diagonal, state.supports.shapes or state.constrained or state.quotient
    if diagonal is None or other or state.problem.filled is not None or not diagonal.max() > 0:
        return None
    found = fitted_on(state, ties(diagonal, TIE.of(state.operator.dtype))[:1])
    return replaced(found, proved=True)


def _running(state: DeflatedOperator) -> _core.Operator:
    """Return the operator whose quadratic form the iteration raises."""
    return state.operator.with_quotient() if state.quotient else state.operator


@shared_parameters
def tpower(
    X: OperatorLike, cardinality: int, *,
    options: TPower | None = None, choice: Choice | None = None,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    callback: Callback | None = None,
) -> SparseComponent:  # fmt: skip
    """One sparse principal component by the truncated power method.

    Searches `max x'Ax` subject to `||x|| = 1` and at most `cardinality` nonzeros, where `A` is the
    covariance matrix, by `x <- T_k(Ax)/||T_k(Ax)||` from several starts. The objective never
    decreases along a run; the best run is returned.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix or LinearOperator
        Data, one row per sample; with ``kind="covariance"`` a symmetric (p, p) matrix, which may be
        indefinite (the iteration then works on a shifted matrix), or a LinearOperator, see `sparse_pca`.
        float32 and float64 arrays in C or Fortran order, and CSR and CSC matrices, are not copied. Dense
        data may have NaN entries, which are left out of all sums, as in `pmd`; such data are copied once.
    cardinality : int
        Number of nonzeros, in [1, p].
    options : TPower, optional
        Options of the search, which the documentation of the record explains.
    {common}

    Returns
    -------
    SparseComponent
        `loading` (p,), `value`, `cardinality`, `n_iter`, `converged`, `method`. For a matrix without
        any variance the loading is the first unit vector, the value 0, and a RuntimeWarning is given.

    Raises
    ------
    ValueError
        For infinite or empty input, NaN other than in dense data, a column without any observed entry, an
        asymmetric covariance, or an option out of range.
    {type_error}

    References
    ----------
    X.-T. Yuan and T. Zhang (2013). Truncated power method for sparse eigenvalue problems. Journal of
    Machine Learning Research 14, 899-925, algorithm 1.

    {pitprops}
    >>> x = spcacore.tpower(pitprops.correlation, 6, kind="covariance")
    >>> print(f"{x.value:.4f}", [name for name, w in zip(pitprops.names, x.loading) if w])
    3.7710 ['topdiam', 'length', 'ringbut', 'bowmax', 'bowdist', 'whorls']
    """
    return run_one(
        TruncatedPower, options, X, cardinality, choice, callback, kind, center, scale, sample_weight
    ).component()  # fmt: skip
