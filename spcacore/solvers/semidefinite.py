"""The semidefinite relaxation of sparse PCA: one component, and a bound on what any could explain."""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import ClassVar

import numpy as np

from .. import _core
from .._asked import as_record
from .._limits import (
    COLUMNS_AT_A_TIME,
    NEGLIGIBLE_ENTRY,
    PENALTY_DESCENT,
    REDUCED_ORDER,
    RELAXATION_LEAST,
    RELAXATION_ORDER,
    ROUGH_ITERATIONS,
    ROUGH_TOLERANCE,
    SHAPED_ORDER,
)
from .._messages import counted
from .._records import record
from .._types import AnyArray, Array, Index, Kind, OperatorLike, Switch, Weights
from .._validation import number
from ..choice import Choice
from ..linalg.scaling import beyond_range, largest_magnitude, roots, with_entries
from ..methods import DSPCA
from ..operators.deflation import DeflatedOperator
from ..operators.gram import (
    formed_error,
    is_given,
    largest_submatrix,
    product_error,
    rows_of,
    symmetric_submatrix,
)
from ..operators.inputs import as_problem
from ..progress import Callback
from ..results import DSPCAComponent
from ..supports.admissible import Supports, refuse_count
from .base import (
    Run,
    check_sparsity,
    checked_screening,
    choice_options,
    progress_hook,
    shared_parameters,
)
from .greedy_search import greedy_or
from .refitting import refit
from .solution import Report, Solution, drop_zeros, ended
from .solver import Needs, Solver
from .variance import improved


@record
class _Relaxed:
    """A solved relaxation over the variables `kept`, in the units of the operator.

    `matrix` is M, `primal` its objective, and `dual` an upper bound of the optimum. With a penalty and
    without groups or signs, both lack what the diagonal of M costs.
    """

    kept: Index
    matrix: Array
    primal: float
    dual: float
    n_iter: int
    converged: bool


@record
class SemidefiniteRelaxation(Solver):
    """The semidefinite relaxation; the loading is the leading eigenvector of its solution, truncated."""

    max_iter: int
    tol: float
    work: float = math.inf  # limit of iterations of one relaxation, times the cube of its order,
    column: float = 0.0  # where a column of A counts as this much
    name = "dspca"
    usual_needs: ClassVar[Needs] = Needs(whole_products=True)
    maximizes_quotient = True
    relaxed = True

    def solve(self, state: DeflatedOperator, cardinality: int) -> Solution | None:
        relaxed = _relaxation(state, cardinality, 0.0, self)
        best = None if relaxed is None else _loading(state, relaxed, cardinality, self)
        return greedy_or(state, best, cardinality) if self.renormalize else best


@shared_parameters
def dspca(
    X: OperatorLike, cardinality: int | None = None, *,
    penalty: float | None = None,
    options: DSPCA | None = None, choice: Choice | None = None,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    callback: Callback | None = None,
) -> DSPCAComponent:  # fmt: skip
    """One sparse principal component by semidefinite relaxation, with an upper bound on all others.

    Solves, where `A` is the covariance matrix and `1'|M|1` the sum of magnitudes, the convex problem

        maximize Tr(AM)  subject to  Tr M = 1,  1'|M|1 <= cardinality,  M positive semidefinite

    or, given a penalty, `maximize Tr(AM) - penalty 1'|M|1`. The loading is the leading eigenvector of M.
    Variables that are proved not to be in the solution are left out beforehand, so that p may be large
    where few variables have large covariances: at most 2000 may remain.

    With `M = xx'` these are `max x'Ax` over unit x with `||x||_1^2 <= cardinality`, which holds of
    every x with that many nonzeros, and `max x'Ax - penalty ||x||_1^2`. So the dual bounds what any
    loading can reach.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix or LinearOperator
        Data, one row per sample; with ``kind="covariance"`` a symmetric positive semidefinite (p, p)
        matrix, or a LinearOperator. The relaxation is solved in float64.
    cardinality : int, optional
        In [1, p].
    penalty : float, optional
        At least 0, in the units of A. Use this instead of a cardinality. A variable whose covariances with
        all others are at most `penalty` in magnitude is not in the solution, unless it is the one of largest
        variance. If the penalty is at least the largest variance, the solution is that one variable.
    options : DSPCA, optional
        Options of the solver, which the documentation of the record explains.
    choice : Choice, optional
        What you know about the variables; at most 500 may then remain after exclusion. See the notes.
    {matrix}
    {callback}

    Returns
    -------
    DSPCAComponent
        In addition to what every component has: `relaxation` and `dual`, the objective of the matrix found
        and an upper bound of the optimum; `upper_bound` of `x'Ax` at this cardinality, hence `gap`; `kept`
        and `matrix`. The loading keeps the `cardinality` entries of the eigenvector largest in magnitude,
        without those below 0.001 of the largest. With a cardinality, and unless ``renormalize=False``,
        a brief branch and bound then looks for more, and variables that are in no group are swapped, one for
        one, as long as that helps. Bounds allow for rounding: the order of the matrix times the precision
        times its Frobenius norm, and, of data, what forming A may have lost. A RuntimeWarning is given when
        `tol` is not reached; the bounds are valid even then.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, a covariance that is not symmetric positive semidefinite, an
        option out of range, or more than 2000 variables to solve for.
    TypeError
        For input that is not real numbers, an option of the wrong type, or not just one of cardinality
        and penalty.

    Notes
    -----
    With groups, M also meets a constraint that `M = xx'` meets for whole groups u and v, where m_u is what
    group u counts in the cardinality, and k is what the included groups, which are not in the sums, leave of
    the cardinality: `sum_(u!=v) sqrt(m_u m_v) ||M_uv||_F <= sum_u (k - m_u) Tr M_uu`; and with signs s, `s_i
    s_j M_ij >= 0`. Each bound is the value of a dual matrix (alternating directions, Boyd et al. 2011), and
    `matrix` meets the constraints to `tol`. The loading has the groups in which the eigenvector is largest. A
    penalty applies to the sum of the norms of groups that are not included.

    References
    ----------
    A. d'Aspremont, L. El Ghaoui, M. I. Jordan and G. R. G. Lanckriet (2007). A direct formulation for
    sparse PCA using semidefinite programming. SIAM Review 49, 434-448, equations 2.4 and 2.7.
    Y. Zhang and L. El Ghaoui (2011). Large-scale sparse principal component analysis with application to
    text data. Advances in Neural Information Processing Systems 24 (elimination of variables before
    solving; by variances for a penalty on the number of nonzeros, here by covariances for the l1 norm).

    {pitprops}
    >>> x = spcacore.dspca(pitprops.correlation, 5, kind="covariance", options=spcacore.DSPCA(tol=1e-5))
    >>> print(f"{x.value:.4f} of at most {x.upper_bound:.4f}")
    3.4062 of at most 3.4581
    >>> x = spcacore.dspca(pitprops.correlation, penalty=0.5, kind="covariance")
    >>> x.cardinality, x.kept.size
    (5, 9)
    """
    if (cardinality is None) == (penalty is None):
        raise TypeError("dspca takes either cardinality or penalty")
    record = as_record(options, DSPCA)
    checked_screening(SemidefiniteRelaxation, record)
    known = choice_options(SemidefiniteRelaxation, choice)
    if penalty is not None:
        refuse_count(known, "leave it out with a penalty")
    problem = as_problem(X, kind, center, scale, sample_weight, choice=known)
    solver = SemidefiniteRelaxation.from_record(problem, record)
    state = replace(DeflatedOperator.from_problem(problem), hook=progress_hook(callback))
    k, charge = problem.p, 0.0
    # The relaxation, and the loading that it leads to
    if cardinality is not None:
        k = check_sparsity(SemidefiniteRelaxation, cardinality, "cardinality", problem)
        relaxed = _relaxation(state, k, 0.0, solver)
    else:
        charge = number(penalty, "penalty", 0, float(np.finfo(np.float64).max))
        with beyond_range():
            relaxed = _relaxation(state, None, float(np.ldexp(charge, -problem.exponent)), solver)
    whole = None if cardinality is None and state.supports.shapes else k
    found = None if relaxed is None else _loading(state, relaxed, whole, solver)
    component = Run(state, solver, found, k).component()
    # The bounds, with what the penalty counts: nonzeros, or units that are not included
    supports, free = state.supports, int(not state.supports.shapes)
    counted = int(np.count_nonzero(supports.leaving(supports.mask(np.flatnonzero(component.loading)))))
    if relaxed is None or found is None:
        relaxed, counted, free = _Relaxed(np.zeros(1, np.intp), np.ones((1, 1)), 0.0, 0.0, 0, True), 1, 1
    dual = float(problem.in_units(relaxed.dual))
    return DSPCAComponent(
        **vars(component) | {"upper_bound": dual + charge * (counted - free)},
        relaxation=float(problem.in_units(relaxed.primal)) - charge * free,
        dual=dual - charge * free,
        kept=relaxed.kept,
        matrix=relaxed.matrix,
    )


def shaped_bound(state: DeflatedOperator, cardinality: int) -> float:
    """Return the `dual_bound` for these supports, with the cardinality as they count it.

    Infinite where their variables are too many, or under generalized deflation.
    """
    if not state.supports.shapes or state.quotient or len(_candidates(state, cardinality)) > SHAPED_ORDER:
        return math.inf
    relaxed = _shaped(state, cardinality, 0.0, SemidefiniteRelaxation(1000, 1e-3))
    return 0.0 if relaxed is None else relaxed.dual


def own_bound(state: DeflatedOperator, cardinality: int) -> float:
    """Return `shaped_bound` or `dual_bound`, whichever holds; infinite if too many variables remain."""
    if state.supports.shapes:
        return shaped_bound(state, cardinality)
    with suppress(ValueError):
        return dual_bound(state, cardinality)
    return math.inf


def dual_bound(
    state: DeflatedOperator, cardinality: int, work: float = math.inf, column: float = 0.0
) -> float:
    """Return an upper bound of x'Ax, or x'Ax/x'Bx, over vectors of this cardinality, in the operator's units.

    A ValueError if a relaxation takes more than `work` before it tells anything.
    """
    cardinality, state = state.reach(cardinality), state.with_problem(supports=Supports.any_of(state.p))
    relaxed = _relaxation(state, cardinality, 0.0, SemidefiniteRelaxation(1000, 1e-3, work, column))
    return 0.0 if relaxed is None else relaxed.dual


def _loading(
    state: DeflatedOperator, relaxed: _Relaxed, k: int | None, solver: SemidefiniteRelaxation,
) -> Solution | None:  # fmt: skip
    """Return the component of the leading eigenvector of M, truncated to k units and improved.

    Where the eigenvector has fewer, the others are those with the largest M_jj: M may be a mixture, and its
    other eigenvectors may be worth more. If k is None, it has all of M's eigenvector, and is not improved.
    """
    supports, leading = state.supports, _core.leading_eigenvector(relaxed.matrix.copy())[1]
    vector = supports.oriented(with_entries(state.p, relaxed.kept, leading))
    norms = np.round(supports.norms(vector), 12)  # so that the first of equal variables is chosen
    least = NEGLIGIBLE_ENTRY * norms.max()
    used = supports.allowed & ((norms > least) | supports.included)
    fills = solver.renormalize and k is not None and k < state.p
    if fills:
        share = with_entries(state.p, relaxed.kept, roots(relaxed.matrix.diagonal()))
        norms = np.where(used, norms, least * np.round(supports.norms(share), 12))
    units = used if k is None else supports.largest(norms, k)
    index = supports.index(units if fills or supports.shapes else units & used)
    if len(index) == 0:
        return None
    entries = vector[index]
    if not entries.any():  # the other units have no room
        entries = supports.ones(index)
    entries = (entries / np.linalg.norm(entries)).astype(state.operator.dtype)
    x = Solution(index, entries, 0.0, relaxed.n_iter, relaxed.converged)
    x = refit(state, x) if solver.renormalize else replace(x, objective=state.objective(index, entries))
    if solver.renormalize and k is not None:
        x = improved(state, x, k)
    found = drop_zeros(x)
    return None if found is None else replace(found, entries=supports.sign(found.index, found.entries))


# ---- the relaxations --------------------------------------------------------------------------------


def _relaxation(
    state: DeflatedOperator, k: int | None, penalty: float, solver: SemidefiniteRelaxation
) -> _Relaxed | None:
    """Return the relaxation for a cardinality k, over as few variables as penalties leave, or for a penalty.

    None if they have no variance.
    """
    if state.supports.shapes:
        return _shaped(state, k, penalty, solver)
    if k is None:
        kept = _survivors(state, penalty)
        _check_order(len(kept), "at this penalty", "raise it")
        return _relax(state, kept, False, penalty, solver)
    kept, limit = _with_variance(state), float(k - 1)
    if len(kept) > REDUCED_ORDER and state.diagonal is not None and _definite(state):
        reduced = _by_penalties(state, len(kept), limit, solver)
        if isinstance(reduced, _Relaxed):
            return reduced
        kept = kept if reduced is None else reduced
    _check_order(len(kept), "of this cardinality", "lower it, or leave out the smallest variances")
    if RELAXATION_LEAST * len(kept) ** 3 > solver.work:
        raise ValueError(f"{counted(len(kept), 'variable')} take more work than is allowed")
    return _relax(state, kept, True, limit, solver)


def _check_order(order: int, where: str, remedy: str) -> None:
    """Refuse to solve for too many variables."""
    if order > RELAXATION_ORDER:
        raise ValueError(
            f"{where} {counted(order, 'variable')} remain, of which dspca solves for at most "
            f"{RELAXATION_ORDER}; {remedy}"
        )


def _by_penalties(
    state: DeflatedOperator, p: int, limit: float, solver: SemidefiniteRelaxation
) -> _Relaxed | Index | None:
    """Return the constrained relaxation, or fewer variables with the same optimum, if penalties tell.

    None if they do not. Let s(M) be the sum of magnitudes off the diagonal. The optimum h(r) subject to
    s(M) <= r is concave. A penalty rho, solved to M with a gap g, shows one of two things.

    - If s(M) <= r, M is feasible, and h(r) is above its objective by at most g + rho (r - s(M)).
    - If s(M) > r, h(s(M)) - h(r) >= rho (s(M) - r) - g. So the multiplier at r is at least
      rho - g / (s(M) - r), and variables that this penalty eliminates are not needed.
    """
    most = RELAXATION_ORDER if p > RELAXATION_ORDER else p // 2
    rough = replace(solver, max_iter=ROUGH_ITERATIONS, tol=ROUGH_TOLERANCE)
    fine = replace(solver, tol=solver.tol / 4)
    rho = float(state.variances.max())
    while rho > 0:
        rho *= PENALTY_DESCENT
        if solver.column * np.count_nonzero(state.variances > rho) > solver.work:
            break
        survivors = _survivors(state, rho)
        if len(survivors) > most or RELAXATION_LEAST * len(survivors) ** 3 > solver.work:
            break
        relaxed = _relax(state, survivors, False, rho, rough)
        if relaxed is None:
            break
        excess = _off_diagonal(relaxed) - limit
        if ended(state.hook):
            return _within(relaxed, state, rho, limit)
        if excess > 0:
            multiplier = rho - (relaxed.dual - relaxed.primal) / excess
            if multiplier > PENALTY_DESCENT * rho:
                survivors = _survivors(state, multiplier * (1 - 1e-9))
                return survivors if len(survivors) <= most else None
        elif -rho * excess <= fine.tol * (relaxed.dual + rho * limit):
            relaxed = _relax(state, survivors, False, rho, fine)
            assert relaxed is not None
            off = _off_diagonal(relaxed)
            primal, dual = relaxed.primal + rho * off, relaxed.dual + rho * limit
            if off <= limit and dual - primal <= solver.tol * dual:
                return replace(relaxed, primal=primal, dual=dual, converged=True)
    return None


def _within(relaxed: _Relaxed, state: DeflatedOperator, rho: float, limit: float) -> _Relaxed:
    """Return a matrix of the penalized relaxation as one with s(M) <= limit, and the bounds that it gives."""
    M, off = relaxed.matrix, _off_diagonal(relaxed)
    primal = relaxed.primal + rho * off
    if off > limit:  # mix it with its diagonal, which is feasible
        own = float(symmetric_submatrix(state.operator, relaxed.kept).diagonal() @ M.diagonal())
        primal = own + (primal - own) * limit / off
        M = M * (limit / off) + np.diag(M.diagonal()) * (1 - limit / off)
    dual = relaxed.dual + rho * limit
    return replace(relaxed, matrix=M, primal=primal, dual=dual, converged=False)


def _off_diagonal(relaxed: _Relaxed) -> float:
    """Return s(M), the sum of magnitudes off the diagonal."""
    return float(np.abs(relaxed.matrix).sum()) - 1


def _relax(
    state: DeflatedOperator, kept: Index, constrained: bool, limit: float, solver: SemidefiniteRelaxation
) -> _Relaxed | None:
    """Return the relaxation over these variables; None where they have no variance."""
    A = _block(state.operator, kept)
    if A is None:
        return None
    most = int(min(solver.max_iter, solver.work / len(kept) ** 3))
    top, shift = A.diagonal().max(), 0.0
    if not top > 0:  # A that Hotelling's deflation left indefinite: as Tr M = 1, A + shift I has the same M
        shift = largest_magnitude(A) - top
        A = A + shift * np.eye(len(A))
    status, M, primal, dual, n_iter = _core.dspca(A, constrained, limit, solver.tol, most, state.hook)
    dual += _lost(state, kept) - shift
    return _Relaxed(kept, M, primal - shift, dual, n_iter, status == 0)


def _block(op: _core.Operator, kept: Index) -> Array | None:
    """Return A between these variables, unless it is zero."""
    A = symmetric_submatrix(op, kept) if len(kept) else None
    return A if A is not None and A.any() else None


def _rounding(state: DeflatedOperator, index: Index, together: Callable[[AnyArray], float]) -> float:
    """Return how much rounding may change A = F'F between variables, as it is formed.

    An entry is off by at most gamma |F_i| |F_j|, and |F|'|F| has a norm of at most the sum of squares of F.
    `together` makes of these squares what counts: the largest, or the sum. A is formed from centered columns,
    or by products with all rows.
    """
    op, square, gamma = state.operator, state.diagonal, formed_error
    by_products = op.by_passes or (not op.symmetric_form and len(index) > largest_submatrix(op))
    if by_products or (not op.symmetric_form and op.t):
        square = state.problem.moment
    if by_products:
        gamma = product_error
    squares = symmetric_submatrix(op, index).diagonal() if square is None else square[index]
    return gamma(op) * float(together(squares))


def _lost(state: DeflatedOperator, kept: Index) -> float:
    """Return by how much rounding of A may have lowered a bound."""
    return 0.0 if is_given(state.operator) else _rounding(state, kept, np.sum)


def _candidates(state: DeflatedOperator, k: int | None) -> Index:
    """Return the variables of units that have room."""
    choice = state.supports
    fits = choice.allowed if k is None else choice.included | choice.fitting(choice.included, k)
    return choice.index(fits)


def _shaped(
    state: DeflatedOperator, k: int | None, penalty: float, solver: SemidefiniteRelaxation
) -> _Relaxed | None:
    """Return the relaxation with groups, included variables or signs, for a cardinality or a penalty."""
    choice = state.supports
    if state.quotient:
        raise ValueError("dspca takes include, groups and signs without deflation='generalized'")
    kept = _candidates(state, k)
    if len(kept) > SHAPED_ORDER:  # a step would take too long
        raise ValueError(
            f"{choice.shaping} requires at most {SHAPED_ORDER} variables in dspca, not {len(kept)}: exclude "
            "some"
        )
    A = _block(state.operator, kept)
    if A is None:
        return None
    relaxed, _ = solve_shaped(A, choice, kept, k, penalty, solver.max_iter, solver.tol, state.hook)
    return replace(relaxed, dual=relaxed.dual + _lost(state, kept))


def solve_shaped(
    A: Array, choice: Supports, kept: Index, k: int | None, penalty: float, max_iter: int, tol: float,
    hook: Report | None,
) -> tuple[_Relaxed, Array]:  # fmt: skip
    """Return the relaxation by shaped.c, and the matrix A - Y whose largest eigenvalue is its bound.

    Let x = (x_u) by units u, of size m_u as the cardinality counts them, let I be the units that are
    included, and K what k leaves for the others. By Cauchy and Schwarz (sum sqrt(m_u) ||x_u||)^2 <= K sum
    ||x_u||^2 over u not in I, which is the constraint on M = xx' there. For a penalty on (sum ||x_u||)^2 each
    m_u is 1, and K is 0.
    """
    names, place = np.unique(choice.unit[kept], return_inverse=True)
    free = ~choice.included[names]
    size = choice.size[names].astype(float)
    room = 0.0 if k is None else float(k - int(choice.size[choice.included].sum()))
    root = np.where(free, np.sqrt(size), 0)
    weights = np.outer(root, root)
    np.fill_diagonal(weights, 0)
    signs = None if choice.signs is None else np.ascontiguousarray(choice.signs[kept])
    unit = largest_magnitude(np.linalg.eigvalsh(A)) or 1.0
    status, M, primal, dual, n_iter, lowest = _core.shaped(
        np.ascontiguousarray(A / unit), place.astype(np.intp), weights, np.where(free, size - room, 0)[place],
        signs, k is not None, penalty / unit, max_iter, tol, hook,
    )  # fmt: skip
    return _Relaxed(kept, M, min(primal, dual) * unit, dual * unit, n_iter, status == 0), lowest * unit


def _definite(state: DeflatedOperator) -> bool:
    """Whether |A_ij|^2 <= A_ii A_jj is known to hold; Hotelling deflation may leave A indefinite."""
    return state.operator.t == 0 or state.deflation.semidefinite


def _with_variance(state: DeflatedOperator) -> Index:
    """Return the variables with variance.

    Others are in no solution, because the trace that they would take serves more elsewhere.
    """
    if state.diagonal is None or not _definite(state):
        return np.arange(state.p)
    return np.flatnonzero(state.diagonal != 0)


def _survivors(state: DeflatedOperator, rho: float) -> Index:
    """Return the variables with a covariance above rho in magnitude, and the one of largest variance.

    Let Y_ij = A_ij in the rows of all other variables. These rows of A - Y are zero except for A_ii, which is
    at most the largest variance, hence at most the optimum over the survivors: so their dual bound holds for
    all. As |A_ij|^2 <= A_ii A_jj, one of i and j has a variance above rho. If the hook returns true, return
    all that this leaves.
    """
    op, diagonal = state.operator, state.diagonal
    if diagonal is None:
        return np.arange(op.p)
    largest = diagonal.max()
    level = max(rho - _rounding(state, np.arange(op.p), np.max), 0.0)
    possible = np.sqrt(diagonal) * math.sqrt(largest) > level
    kept = np.zeros(op.p, bool)
    kept[np.argmax(diagonal)] = True
    index = np.flatnonzero(possible)
    if len(index) <= largest_submatrix(op):
        A = np.abs(op.submatrix(index))
        np.fill_diagonal(A, 0)
        kept[index] |= (level < A).any(axis=0)
        return np.flatnonzero(kept)
    large = index[diagonal[index] > level]
    for start in range(0, len(large), COLUMNS_AT_A_TIME):
        stopped = state.hook is not None and state.hook(0)
        if stopped and not ended(state.hook):  # if the callback ended it, go on: there is no bound otherwise
            return index
        block = large[start : start + COLUMNS_AT_A_TIME]
        W = np.abs(rows_of(op, block).T)
        W[block, np.arange(len(block))] = 0
        above = (level < W) & possible[:, None]
        kept |= above.any(axis=1)
        kept[block] |= above.any(axis=0)
    return np.flatnonzero(kept)
