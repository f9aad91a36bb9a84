"""Branch and bound: the best component of given cardinality, with a proof."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._limits import (
    BATCH_SECONDS,
    BLOCK_PROOF_WORK,
    BOUND_SHARE,
    BOUND_SPEED,
    BRIEF_SECONDS,
    BRIEF_TIE,
    CENTERING_LOSS,
    EXACT_ORDER,
    EXACT_SLACK,
    IN_TURN_NODES,
    SIGNED_ORDER,
    STRONG_VARIABLES,
    THRESHOLD_COLUMNS,
    THRESHOLD_WORK,
)
from .._messages import refuse_no_array
from .._records import record, replaced
from .._types import DType, Index, Kind, OperatorLike, Switch, Weights
from ..choice import Choice
from ..linalg.scaling import EPS, descending, eps_of, largest_magnitude, union
from ..methods import BranchAndBound, TPower
from ..operators.deflation import DeflatedOperator
from ..operators.gram import columns_cost, rows_of, symmetric_submatrix
from ..operators.inputs import as_problem
from ..progress import Callback
from ..results import ExactComponent
from ..supports.search import never
from .base import begun, check_start, shared_parameters
from .certificates import bounds_without_search, by_strong_variables, rounding_of_bound
from .matrix_search import Search, best_on_support, best_supports
from .solution import ProgressClock, Report, Solution, drop_zeros, ended
from .solver import Needs, Solver
from .truncated_power import TruncatedPower
from .variance import UnitTree
from .wide_bounds import BlockSearch, large_entries


@record
class ExactSearch(Solver):
    """Branch and bound: the best support of each component, within limits."""

    tol: float
    time_limit: float
    node_limit: float
    name = "branch_and_bound"
    maximizes_quotient = True
    usual_needs: ClassVar[Needs] = Needs(whole_products=True, working_set=True)

    def solve(self, state: DeflatedOperator, cardinality: int) -> Solution | None:
        proof = solve_to_optimality(state, cardinality, self, bounded=False)
        return None if proof is None else drop_zeros(proof.found)


@shared_parameters
def branch_and_bound(
    X: OperatorLike, cardinality: int, *,
    start: ArrayLike | None = None,
    options: BranchAndBound | None = None, choice: Choice | None = None,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    callback: Callback | None = None,
) -> ExactComponent:  # fmt: skip
    """The best sparse principal component of given cardinality, with a proof.

    Solves `max x'Ax` subject to `||x|| = 1` and at most `cardinality` nonzeros, where `A` is the covariance
    matrix, over all supports. The search divides the supports into ever smaller sets, and rules out each set
    that, by an upper bound, holds nothing better than the best component known. When a limit ends the search,
    the result is the best component found, and an upper bound on all others: the least of the bounds of the
    tree, of `optimality_bound`, of large covariances ("threshold" there) and of the relaxation. All but the
    first are computed after a fifth of the time. A relaxation that is ended by the time limit (or, with
    `node_limit`, after a few seconds) is a bound as well.

    Beyond 3000 variables, a covariance matrix whose variables fall into groups of up to 300, with small
    covariances between them, is searched group by group.

    The time depends on the matrix as much as on its size: a few strong variables, or a group of
    correlated ones, are proved quickly; cardinalities in the tens among many equal variables are not.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix or LinearOperator
        Data, one row per sample; with ``kind="covariance"`` a symmetric (p, p) matrix, which may be
        indefinite, or a LinearOperator. The search holds matrices of the variables that the variances and a
        few columns of A do not rule out, in float64; there may be up to 3000 of these variables. Up to that
        p, any X will do. Beyond it the matrix must be positive semidefinite, and have entries.
    cardinality : int
        Number of nonzeros, in [1, p].
    start : array-like of shape (p,), optional
        The component to improve on at first: the best one on the support of this array, truncated. Default:
        the result of `tpower`.
    options : BranchAndBound, optional
        Options of the search, which the documentation of the record explains.
    {common}

    Returns
    -------
    ExactComponent
        `loading` (p,), `value`, `upper_bound`, `gap`, `optimal`, `n_nodes`, `cardinality`, `converged`
        (no limit ended the search), `method`. For a matrix without any variance the loading is the
        first unit vector, the value 0, and a RuntimeWarning is given.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, an asymmetric covariance, an option out of range, or more than
        3000 variables that may belong to the optimum where neither limit is given.
    {type_error}

    References
    ----------
    B. Moghaddam, Y. Weiss and S. Avidan (2006). Spectral bounds for sparse PCA: exact and greedy
    algorithms. Advances in Neural Information Processing Systems 18, section 3. L. Berk and D. Bertsimas
    (2019). Certifiably optimal sparse principal component analysis. Mathematical Programming Computation
    11, 381-420, algorithm 1. A. Del Pia, D. Zhou and Y. Zhu (2025). Efficient sparse PCA via
    block-diagonalization. International Conference on Learning Representations.

    {pitprops}
    >>> x = spcacore.branch_and_bound(pitprops.correlation, 6, kind="covariance")
    >>> print(f"{x.value:.4f}", x.optimal, [name for name, w in zip(pitprops.names, x.loading) if w])
    3.7710 True ['topdiam', 'length', 'ringbut', 'bowmax', 'bowdist', 'whorls']
    """
    began = time.monotonic()
    run = begun(
        ExactSearch, options, X, cardinality, choice, callback, kind, center, scale, sample_weight
    )  # fmt: skip
    state, solver, k = run.state, run.solver, run.cardinality
    assert isinstance(solver, ExactSearch)
    problem, support = state.problem, None
    if isinstance(start, str):
        refuse_no_array(start, "start")
    if start is not None:
        support = problem.supports.truncated(check_start(problem, start, None)[0], k)
    if kind == "covariance" and problem.p > EXACT_ORDER and problem.diagonal is not None:
        as_problem(X, kind=kind, scale=scale)  # an error if the matrix is indefinite
    proof = solve_to_optimality(state, k, solver, support, began)
    found = None if proof is None else drop_zeros(proof.found)
    if found is not None:
        entries = problem.supports.sign(found.index, found.entries)
        found = replace(found, converged=True, entries=entries)
    x = replace(run, found=found).component()
    complete = proof is None or proof.complete
    upper = 0.0 if proof is None else proof.upper
    if problem.diagonal is not None:  # rounding in products in the precision of X may hide a little
        upper += rounding_of_bound(problem.data or problem, True, "blocks", k)
    upper = float(problem.in_units(upper))
    changes = {"converged": complete, "upper_bound": max(upper, x.value)}
    return ExactComponent(**vars(x) | changes, optimal=complete and solver.tol == 0, n_nodes=x.n_iter)


@record
class Proof:
    """The best component found, in the units of the operator, and the bound on all others.

    `complete` says whether no limit ended the search.
    """

    found: Solution
    upper: float
    complete: bool

    def bound(self, value: float, precision: DType) -> float:
        """Return an upper bound on all others, beside a component of this value.

        If the search was completed, that is the optimum, without the little above it that rounding may hide.
        """
        if not self.complete:
            return max(self.upper, self.found.objective)
        level = self.found.objective
        return value if value >= level * (1 - 64 * eps_of(precision)) else level


class _OutOfTime(Exception):
    """Raised inside the search when a limit ends it."""


class _TooManyVariables(ValueError):
    """The error for more variables than the tree takes, which a bound may stand in for."""


class _Limits(ProgressClock):
    """The limits of a search, the clock that reports it, and how many nodes it has divided."""

    def __init__(self, solver: ExactSearch, hook: Report | None, began: float | None):
        self.began = time.monotonic() if began is None else began
        self.seconds, self.most, self.nodes = solver.time_limit, solver.node_limit, 0
        super().__init__(hook, self.began + self.seconds)
        self.given = min(self.most, self.seconds) < math.inf

    def out_of_time(self, _: int = 0) -> bool:
        """Report progress if it is due; whether the callback or the time limit ends the search."""
        if ended(self.hook):  # ask the hook again, which raises `Ended` if the component is not wanted
            self.due = -math.inf
        return self(self.nodes)

    def check(self, _: int = 0) -> None:
        """Raise `_OutOfTime` if the search is to end."""
        if self.out_of_time():
            raise _OutOfTime


def solve_to_optimality(
    state: DeflatedOperator, k: int, solver: ExactSearch, support: Index | None = None,
    began: float | None = None, bounded: bool = True,
) -> Proof | None:  # fmt: skip
    """Return the best component, with a proof or as far as the limits allow.

    The steps are: a brief tree for few variables; a first component by `tpower`; the blocks of a large
    covariance; the variables that may belong to a better support; a tree over these. None where `tpower`
    finds no variance or nothing feasible. `support` is what to improve on at first. If `bounded` and a limit
    was given, bounds that need no tree are computed too, after a share of the time.
    """
    limits, problem = _Limits(solver, state.hook, began), state.problem
    most = state.supports.most_variables(k)
    _refuse(state, most)
    exact = solver.tol == 0 and limits.most == math.inf and limits.seconds > BRIEF_SECONDS
    if exact and (proof := _brief_proof(state, k)) is not None:
        return proof
    best = best_on_support(state, support)
    if best is None:
        finder = TruncatedPower.from_record(problem, TPower(n_starts=1))
        best = finder.find(replaced(state, hook=None), k)
    state = replaced(state, hook=limits.check)
    search: Search | UnitTree | None = None
    upper, complete = _trace_bound(state, most), False
    others, asked = math.inf, not (bounded and limits.given)

    def bound_without_search(share: float) -> None:
        """Compute the bounds that need no tree, once, after this share of the time has passed."""
        nonlocal others, asked
        if asked or time.monotonic() < limits.began + share * limits.seconds:
            return
        asked, left = True, limits.end - time.monotonic()
        for bound in bounds_without_search(replaced(state, hook=limits.out_of_time), most, left):
            others = min(others, bound)
            limits.check()
            if best is not None and others <= best.objective:
                break

    try:
        if support is None:
            best = TruncatedPower.from_record(problem).find(state, k) or best
        best = _refitted(state, best)
        if best is None:
            return None
        rounding = problem.noise(best.index, state.deflation.first_order)
        if state.operator.t > 0 and not best.objective > rounding:
            return Proof(best, upper, True)  # the earlier components left only rounding
        by_blocks = _proof_by_blocks(state, k, best, solver.tol, limits)
        if by_blocks is not None:
            best, others = by_blocks.found, by_blocks.upper
            if by_blocks.complete:
                return by_blocks
            limits.check()
        bound_without_search(BOUND_SHARE if state.p <= EXACT_ORDER else 0)
        kept = surviving_variables(state, k, best, solver.tol, limits.most, others)
        search = _tree(state, kept, k, best, solver.tol, limits)
        _grow(search, limits, partial(bound_without_search, BOUND_SHARE))
        complete = not search.open()
        if not complete:
            bound_without_search(-math.inf)
    except (_OutOfTime, _TooManyVariables) as end:
        if isinstance(end, _TooManyVariables) and (others == math.inf or not limits.given):
            raise
    if search is not None:
        best, upper = search.best(), search.upper()
    if best is None:
        return None
    upper = max(min(upper, others), best.objective)
    return Proof(replace(best, n_iter=limits.nodes, converged=complete), upper, complete)


def _refitted(state: DeflatedOperator, best: Solution | None) -> Solution | None:
    """Return the best component on a support, or on what is included where no eigenvalue is positive."""
    if best is not None:
        return best_on_support(state, best.index) or best
    included = state.supports.wanted
    negative = state.diagonal is not None and (state.diagonal[included] < 0).any()
    return best_on_support(state, included) if negative else None


def _proof_by_blocks(
    state: DeflatedOperator, k: int, best: Solution, tol: float, limits: _Limits
) -> Proof | None:
    """Return what few nodes in the blocks of a large covariance prove; None where entries take too long."""
    op, work = state.operator, min(THRESHOLD_WORK, (limits.end - time.monotonic()) * BOUND_SPEED)
    plain = op.symmetric_form and op.t == 0 and not state.supports.shapes
    if not plain or k < 2 or state.p <= EXACT_ORDER or not columns_cost(state.problem) <= work:
        return None
    slack = EXACT_SLACK.of(op.dtype) * largest_magnitude(state.variances)
    diagonal = state.variances.astype(np.float64)
    blocks = BlockSearch(op, diagonal, k, large_entries(op), best.objective, slack)
    proved = blocks.run(tol, int(min(IN_TURN_NODES, limits.most)), limits.out_of_time, BLOCK_PROOF_WORK)
    best, upper = best_on_support(state, blocks.support) or best, blocks.upper()
    return Proof(best, max(upper, best.objective) if proved else upper, proved)


def _tree(
    state: DeflatedOperator, kept: Index, k: int, best: Solution, tol: float, limits: _Limits
) -> Search | UnitTree:
    """Return the tree over supports of the variables that are kept."""
    A = symmetric_submatrix(state.operator, kept, limits.check)
    if state.supports.simple:
        return Search(A, k, np.searchsorted(kept, best.index), tol, state, kept)
    return UnitTree(state, A, k, best, tol)


def _grow(search: Search | UnitTree, limits: _Limits, bound: Callable[[], None]) -> None:
    """Take nodes of the tree, in batches of a short time, until nothing is open or a limit ends it.

    `bound` is called before each batch.
    """
    size = 1
    while search.open() and limits.nodes < limits.most:
        limits.check()
        bound()
        turn = time.monotonic()
        limits.nodes += search.step(int(min(size, limits.most - limits.nodes)), limits.check)
        size = min(256, 2 * size) if time.monotonic() - turn < BATCH_SECONDS / 2 else max(1, size // 2)


def _brief_proof(state: DeflatedOperator, k: int) -> Proof | None:
    """Return the proof by the search of a matrix that `tpower` makes for few variables, or None."""
    finder, state = TruncatedPower.from_record(state.problem), state.formed()
    A = None if state.problem.working_set is not None else finder.matrix(state)
    found = None
    if A is not None and 1 < k < state.p <= EXACT_ORDER:
        found = best_supports(A, k, finder.max_iter, finder.tol, finder.swaps, state.hook)
    if found is None or not found.proved or (best := best_on_support(state, found.supports[0])) is None:
        return None
    assert A is not None
    # The bound: the value in double precision, and at least the rounding of tree.c
    S = found.supports[0]
    value = max(best.objective, float(np.linalg.eigvalsh(A[np.ix_(S, S)].astype(np.float64))[-1]))
    size, rounding = max(abs(value), largest_magnitude(A.diagonal())), BRIEF_TIE + 64 * (k + 4) ** 2 * EPS
    return Proof(replace(best, n_iter=found.nodes), value + rounding * size, True)


# ---- what need not be searched ----------------------------------------------------------------------


def _refuse(state: DeflatedOperator, most: int) -> None:
    """Raise where elimination lacks entries or deflations, or the tree bounds or values of these supports."""
    p, choice = state.p, state.supports
    if p > EXACT_ORDER:
        limit = f"branch_and_bound takes at most {EXACT_ORDER} variables"
        if state.diagonal is None:
            raise ValueError(f"{limit} of an operator without entries, not {p}")
        if state.deflation.quotient or not state.deflation.semidefinite:
            raise ValueError(f"{limit} with deflation={state.deflation.name!r}, not {p}")
        if choice.shapes:
            raise ValueError(
                f"branch_and_bound takes include, groups and signs for at most {EXACT_ORDER} variables"
            )
    if choice.simple:
        return
    if state.quotient:
        raise ValueError("branch_and_bound takes groups and signs without deflation='generalized'")
    if choice.signs is not None and most > SIGNED_ORDER:
        raise ValueError(
            f"branch_and_bound proves loadings of given signs of at most {SIGNED_ORDER} variables, not {most}"
        )


def _trace_bound(state: DeflatedOperator, k: int) -> float:
    """Return the sum of the k largest variances, a bound if A is known to be semidefinite; else infinity."""
    indefinite = state.problem.operator.symmetric_form or not state.deflation.semidefinite
    if state.diagonal is None or indefinite or state.quotient:
        return np.inf
    return float(np.sort(state.diagonal)[-k:].sum()) * (1 + 1e-5)


def surviving_variables(
    state: DeflatedOperator, k: int, best: Solution, tol: float, node_limit: float, others: float = math.inf
) -> Index:
    """Return the variables that may belong to a better support than the best one known; all if they are few.

    `others` is another bound on all supports. If it proves the best one, only its own variables are left.
    """
    p, op = state.p, state.operator
    if p <= EXACT_ORDER:
        supports = state.supports
        return supports.available if supports.simple else np.arange(p)
    # By variances, for a support of one variable
    d = state.variances + EXACT_SLACK.of(op.dtype) * state.problem.variances
    kept = union(np.flatnonzero(d >= best.objective), best.index)
    if k == 1 and not state.constrained:
        kept = union(kept[_core.select_largest(d[kept], min(len(kept), EXACT_ORDER // 2))], best.index)
    left = len(kept) if k == 1 else p
    if left <= EXACT_ORDER:
        return kept
    # By the variables of largest variance, and by another bound
    enough = best.objective * (1 + max(tol, 64 * (k + 4) ** 2 * EPS))
    for count in STRONG_VARIABLES if k > 1 and others > enough else ():
        level = best.objective * (1 + tol)
        others, some = by_strong_variables(state, k, np.inf, node_limit, count, level)
        if others > enough and len(some) <= EXACT_ORDER:
            return union(some, best.index)
    if others <= enough:
        return np.sort(best.index)
    # By all columns of A
    if k > 1 and op.t == 0 and columns_cost(state.problem) <= THRESHOLD_WORK:
        kept = _survivors_in_turn(state, k, best, tol, node_limit)
        left = len(kept)
        if left <= EXACT_ORDER:
            return kept
    raise _TooManyVariables(
        f"{left} of {p} variables may belong to the optimum, and branch_and_bound takes at most "
        f"{EXACT_ORDER} of them"
    )


def _survivors_in_turn(
    state: DeflatedOperator, k: int, best: Solution, tol: float, node_limit: float
) -> Index:
    """Return the variables that may belong to a better support, by all columns of A.

    This serves where variances do not tell, because all are equal, for example. Let U bound x'Ax for k - 1
    nonzeros. No support with j beats the level if the sum of the k - 1 largest a_jl^2 is at most

        (level - a_jj) (level - U)

    (bordered, as in branch_and_bound.c, step 4). U comes from 2, 3, .. nonzeros in turn. Each number leaves
    so few variables that a search among them bounds x'Ax for it, and the next number needs that bound.
    """
    p, op, slack = state.p, state.operator, EXACT_SLACK.of(state.operator.dtype)
    d = state.variances + slack * state.problem.variances
    check_limits = state.hook or never
    # The sums of the 1 .. k - 1 largest a_jl^2 for each j, with what rounding may hide
    lost = np.sqrt(state.problem.known_moment) * CENTERING_LOSS.of(op.dtype)
    root = slack * np.sqrt(d)
    coupling = np.empty((k - 1, p))
    for s in range(0, p, THRESHOLD_COLUMNS):
        check_limits(0)
        block = np.arange(s, min(p, s + THRESHOLD_COLUMNS))
        W = np.abs(rows_of(op, block).T.astype(np.float64))
        W += root[:, None] * np.sqrt(d[block]) + lost[:, None] * lost[block]
        W[block, np.arange(len(block))] = 0
        coupling[:, block] = np.sort(np.partition(W, p - k + 1, axis=0)[p - k + 1 :], axis=0)[::-1] ** 2
    coupling = np.cumsum(coupling, axis=0)
    # For each number of nonzeros: a good support, the variables that are left, and a bound U among them
    fewer, order = float(d.max()), descending(np.abs(best.entries))
    for size in range(2, k + 1):
        begun = replaced(state, seed=(0, size), hook=None)
        found = TruncatedPower.from_record(state.problem).solve(begun, size)
        start = found or replace(best, index=np.sort(best.index[order[:size]]))
        if size == k and best.objective > start.objective:
            start = best
        level = start.objective * (1 + tol * (size == k))
        kept = coupling[size - 2] > (level - d) * np.maximum(level - fewer, 0.0)
        kept |= level <= d
        kept[start.index] = True
        if size == k:
            kept[best.index] = True
        index = np.flatnonzero(kept)
        if size == k or len(index) > EXACT_ORDER:
            return index
        support = np.searchsorted(index, start.index)
        search = Search(symmetric_submatrix(op, index, check_limits), size, support, state=state, kept=index)
        search.run(min(IN_TURN_NODES, node_limit), check_limits)
        fewer = search.upper() * (1 + slack)
    return np.arange(p)
