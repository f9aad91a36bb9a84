"""Sparse principal components by elastic nets (Zou, Hastie and Tibshirani 2006).

Two steps alternate: elastic nets for B given V, and V = the polar factor of X'X B given B (net_steps).
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._limits import ALTERNATIONS, LARGEST_RIDGE, ROUND_RISE
from .._messages import convergence, counted, warn
from .._records import frozen_record, record
from .._types import Array, Kind, OperatorLike, Switch, Weights
from .._validation import (
    LARGEST,
    Hook,
    check_bool,
    integer,
    iteration_limits,
    number,
    per_component,
    real_array,
    require_entries,
)
from ..choice import Choice
from ..linalg.orthogonal import fix_signs, procrustes, unit_columns
from ..linalg.scaling import below_range, beyond_range
from ..operators.gram import leading_vectors
from ..operators.inputs import as_problem
from ..operators.problem import Problem, usual_cardinality
from ..progress import Callback, Progress, check_callback
from ..readable import when_asked
from ..solvers.base import shared_parameters
from ..supports.admissible import knowledge, refuse_count
from .joint_search import Sizes, as_matrix, in_turn
from .net_steps import ElasticNets, Space, Thresholds, Wanted, space_of
from .refinement import refined_from
from .variance import VariancesResult, nonzeros_of, operator_variances


@frozen_record(kw_only=True)
class SPCAResult(VariancesResult):
    """Sparse principal components by elastic nets, from `spca`.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        Columns of unit length, or zero. In each column the entry of largest magnitude is positive.
    explained_variance, explained_variance_ratio : ndarray of shape (r,)
        As in `SparsePCAResult`.
    adjusted_variance : ndarray of shape (r,)
        Variance that each score adds to the earlier scores (`explained_variance`, definition "adjusted").
    total_variance : float or None
    cardinality : ndarray of shape (r,), int
    penalty : ndarray of shape (r,)
        The penalty on the l1 norm of each loading: as given, or as found for a given `cardinality` by the
        elastic nets, before `refine`.
    ridge : float
    objective : ndarray of shape (n_iter,)
        After each iteration; without the constant `Tr X'X` if that is unknown. With ``ridge=inf`` in the
        squared units of X'X.
    mean, scale : ndarray of shape (p,) or None
    given : tuple of str
        As in `SparsePCAResult`.
    n_iter : int
    converged : bool
    method, kind : str
    n_samples : int or None
    missing_entries : int
        How many entries of X were NaN.
    names : tuple of str or None
    dense_ratio : ndarray of shape (r,) or None
    scores : ndarray of shape (n, r) or None
        As in `SparsePCAResult`.

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
    >>> result = spcacore.spca(X, 2, cardinality=5)
    >>> result.cardinality.tolist(), result.explained_variance_ratio.round(2).tolist()
    ([5, 5], [0.53, 0.41])
    """

    adjusted_variance: Array
    penalty: Array
    ridge: float
    objective: Array
    n_iter: int
    converged: bool
    dense_ratio: Array | None = when_asked()
    missing_entries: int = 0

    def _facts(self) -> list[str]:
        return [*self._sizes(), *self._share(), convergence(self)]


@shared_parameters
def spca(
    X: OperatorLike, n_components: int, cardinality: int | ArrayLike | None = None, *,
    penalty: float | ArrayLike | None = None,
    ridge: float | None = None,
    choice: Choice | None = None, refine: bool = True, max_iter: int = 1000, tol: float | None = None,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    callback: Callback | None = None,
) -> SPCAResult:  # fmt: skip
    """Sparse principal components by elastic nets, all at once.

    Minimizes over B (p, r) and V (p, r) with `V'V = I`, for the centered rows `x_i` of X,

        sum_i ||x_i - V B'x_i||^2 + ridge sum_j ||b_j||^2 + sum_j penalty_j ||b_j||_1

    by alternation. For fixed V, B solves r elastic nets, exactly, by the path of their penalty. For fixed B,
    V is the polar factor of `X'X B`. The loadings are the columns of B at unit length. The search begins with
    the leading principal components.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, LinearOperator
        Data; with ``kind="covariance"`` a symmetric positive semidefinite (p, p) matrix (covariance,
        correlation, Gram) that takes the place of X'X. Not copied, except dense data with NaN entries,
        which are left out of all sums, as in `pmd`.
    n_components : int
        r, in [1, min(n, p)].
    cardinality : int or sequence of r ints, optional
        Nonzeros of each loading, in [1, p]. Default, without a penalty: the square root of the number of
        variables, rounded up. Each iteration keeps the k largest products as they are, which is the best
        `b_j` with k nonzeros for an infinite ridge. With a finite ridge it takes the smallest penalty before
        one more variable would join.
    penalty : float or sequence of r floats
        Instead of `cardinality`: the penalty on the l1 norms, at least 0, in the units of X'X.
    ridge : float, optional
        At least 0, in the units of X'X. Default: ``numpy.inf`` with `cardinality`, and for data of fewer
        samples than columns, where weights count samples; else 1e-6 of the mean of the diagonal of X'X. With
        an infinite ridge the elastic nets are soft thresholds of `X'X v_j`, and
        `-2 Tr(V'X'XB) + sum_j ||b_j||^2 + sum_j penalty_j ||b_j||_1` is minimized. The authors advise this
        for p >> n, where a small ridge fits the few rows instead of the directions. The R package's default
        is ``ridge=1e-6``, whose loadings of a given number of nonzeros often explain much less.
    choice : Choice, optional
        What you know about the variables. The penalty then applies to the norms of groups, but not to
        included variables, and `cardinality` counts groups, or variables. A group that does not fit is
        skipped.
    refine : bool, default True
        With `cardinality`: improve the loadings at the end, jointly, by the rounds of the function `refine`,
        from the loadings found and from components found in turn. No step lowers the variance that the
        loadings explain together. Values are then those that explain most on their supports, and loadings
        with equally many nonzeros are in order of variance. With more than 2048 variables, only the most
        promising ones take part in the rounds. False: the elastic nets alone, which is needed if X offers
        only products.
    max_iter : int, default 1000
    tol : float, optional
        Stop when no entry of a unit loading changes by more than this and, with a penalty, no largest entry
        of a b_j by more than this share of it. Default: 1e-5; for `cardinality` with a finite
        ridge 1e-3, as in the authors' program.
    {matrix}
    {each_iteration}

    Returns
    -------
    SPCAResult
        `loadings` (p, r), `adjusted_variance` as in the paper, `explained_variance` as everywhere,
        `penalty` (r,), `objective` after each iteration.

    Raises
    ------
    ValueError
        For infinite or empty input, NaN except in dense data, X without variance, an indefinite covariance,
        neither or both of `penalty` and `cardinality`, or an option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    Warns
    -----
    RuntimeWarning
        If the rank of X is below r, which gives fewer components, or if a penalty leaves a loading without
        nonzeros.

    Notes
    -----
    The objective never rises, except with `cardinality` and a finite ridge. There the penalties change from
    one iteration to the next, and loadings may drift or alternate between supports instead of converging. The
    iterations end once supports have changed 60 times without a gain; if they have not converged, the iterate
    that explains most is returned. Memory grows with the square of the number of variables in use.

    References
    ----------
    H. Zou, T. Hastie and R. Tibshirani (2006). Sparse principal component analysis. Journal of
    Computational and Graphical Statistics 15, 265-286: equation 3.12, algorithm 1, and section 4 for
    ``ridge=numpy.inf``.

    Examples
    --------
    >>> import spcacore
    >>> props = spcacore.datasets.load_pitprops()
    >>> penalty = [0.06, 0.16, 0.1, 0.5, 0.5, 0.5]
    >>> result = spcacore.spca(props.correlation, 6, penalty=penalty, kind="covariance")
    >>> result.cardinality.tolist(), (100 * result.adjusted_variance / 13).round(1).tolist()
    ([7, 4, 4, 1, 1, 1], [28.0, 14.0, 13.3, 7.4, 6.8, 6.2])
    """
    return elastic_nets(
        X, n_components, cardinality, penalty=penalty, ridge=ridge, refine=refine, max_iter=max_iter,
        tol=tol, choice=choice, callback=callback, kind=kind, center=center, scale=scale,
        sample_weight=sample_weight,
    )  # fmt: skip


def elastic_nets(
    X: Any, n_components: Any, cardinality: Any = None, *, start: Any = None, penalty: Any = None,
    ridge: Any = None, refine: Any = True, max_iter: Any = 1000, tol: Any = None,
    choice: Choice | None = None, callback: Callback | None = None, kind: Any = "data", **treatment: Any,
) -> SPCAResult:  # fmt: skip
    """Do what `spca` does, from loadings `start` of shape (p, r) or, if None, from the leading eigenvectors.

    `treatment` says how columns are centered and scaled, and rows weighted.
    """
    # Data and options
    known = knowledge(choice)
    if penalty is not None:
        refuse_count(known, "leave it out with a penalty")
    problem = as_problem(X, kind=kind, missing=True, choice=known, form=True, **treatment)
    op = problem.operator
    r = integer(n_components, "n_components", 1, problem.most_components)
    if cardinality is None and penalty is None:
        cardinality = usual_cardinality(problem)
    wanted = _wanted(problem, r, penalty, cardinality)
    lam = _ridge(problem, ridge, cardinality is not None)
    refine = check_bool(refine, "refine") and cardinality is not None
    if refine:
        require_entries(problem, "refine=True", ": use refine=False")
    usual = 1e-3 if cardinality is not None and lam < math.inf else 1e-5
    max_iter, tol = iteration_limits(max_iter, tol, usual, most=LARGEST)
    hook = check_callback(callback)
    V = leading_vectors(problem, r) if start is None else _start(problem, r, start)

    # The search
    space = space_of(problem)
    supports = problem.supports
    if supports.shapes:
        V = V * np.where([supports.sides(c) for c in op.apply_block(V).T.astype(np.float64)], 1, -1)
    nets = Thresholds(wanted, supports) if lam == math.inf else ElasticNets(op, space, wanted, lam, supports)
    found = _alternated(problem, V, space, nets, lam, max_iter, tol, hook)
    if refine and not hook.ended:
        found = _refined(problem, found, tuple(w.limit for w in wanted[: V.shape[1]]), start is None)
    if lam == math.inf:  # B has the units of X'X, and not those of loadings
        found = replace(found, objective=_from_operator_units(problem, found.objective))
    return _result(problem, X, found, lam, ridge)


# ---- the search -------------------------------------------------------------------------------------


@record
class _Found:
    """Unit loadings, and how the iteration ended.

    `levels` has half of each penalty, `objective` its value after each iteration. `alternating`: it ended
    because supports alternate.
    """

    B: Array
    levels: Array
    objective: Any
    converged: bool
    alternating: bool = False


def _alternated(
    problem: Problem, V: Array, space: Space, nets: Thresholds | ElasticNets, ridge: float,
    max_iter: int, tol: float, hook: Hook,
) -> _Found:  # fmt: skip
    """Alternate B and V; return what is found.

    If the objective may rise, the iteration need not converge, and the loadings that explain most on the way
    are returned. It ends if supports change for a number of iterations without any gain, because they would
    go on to do so.
    """
    penalized = all(w.limit == problem.p for w in nets.wanted)
    monotone = ridge == math.inf or penalized
    trace = 0.0 if ridge == math.inf or problem.diagonal is None else problem.trace
    objective: list[float] = []
    C, best, most, unit_B = space.begin(V), None, -math.inf, np.zeros_like(V)
    largest: Array = np.zeros(V.shape[1])
    supports: deque[bytes] = deque(maxlen=ALTERNATIONS)  # since the last gain
    for n_iter in range(1, max_iter + 1):
        # B for given V, then V for given B
        B, levels = nets.solve(C)
        f = space.forward(B)
        C, nuclear = space.turn(f)
        # The objective: Tr(G) - 2 Tr(V'GB) + Tr(B'GB) + ridge |B|^2 + penalties
        square = float(np.sum(B * B))
        inner = space.inner(B, f) if ridge < math.inf else np.empty((0, 0))
        quadratic = square if ridge == math.inf else float(np.trace(inner)) + ridge * square
        costs = [problem.supports.cost(b) for b in B.T] if levels.any() else 0 * levels
        with below_range():
            objective.append(trace - 2 * nuclear + quadratic + 2 * float(levels @ costs))
        # Converged, or alternating without a gain
        before, unit_B = unit_B, unit_columns(B)
        last, largest = largest, np.abs(B).max(axis=0)
        converged = bool(np.abs(unit_B - before).max() <= tol)
        if penalized:  # lengths may move supports after directions have stopped
            converged &= bool((np.abs(largest - last) <= tol * largest).all())
        if not monotone and not converged:
            supports.append(np.packbits(unit_B != 0).tobytes())
            if (value := _explained(B, unit_B, inner)) > most:
                if value > most + ROUND_RISE * abs(most):
                    supports.clear()
                best, most = _Found(unit_B, levels, objective, False), value
        alternating = len(supports) == ALTERNATIONS and len({*supports}) > 1
        if hook(Progress(0, V.shape[1], n_iter)) or converged or alternating:
            break
    if best is None or converged:
        return _Found(unit_B, levels, objective, converged)
    return replace(best, alternating=alternating)


def _explained(B: Array, unit_B: Array, inner: Array) -> float:
    """Return what loadings explain together, Tr(B'GB (B'B)^+) at unit length, from B'GB."""
    with beyond_range():
        by = 1 / np.linalg.norm(B, axis=0)
        inside = np.where(np.isfinite(by), inner * by * by[:, None], 0)
    inside = np.where(np.isfinite(inside), inside, 0)
    return float(np.trace(np.linalg.pinv(unit_B.T @ unit_B, hermitian=True) @ inside))


def _refined(problem: Problem, found: _Found, sizes: Sizes, anew: bool) -> _Found:
    """Return the best loadings after joint refinement of these and, if `anew`, of loadings in turn."""
    if not found.B.any(axis=0).all():
        return found
    starts = [nonzeros_of(found.B.astype(problem.operator.dtype))]
    if anew:
        starts.append(in_turn(problem, sizes, 0))
    loadings = refined_from(problem, [s for s in starts if len(s) == len(sizes)], sizes)
    ended = found.converged or found.alternating
    return replace(found, B=as_matrix(problem, loadings), converged=ended, alternating=False)


# ---- what comes in and goes out ---------------------------------------------------------------------


def _wanted(problem: Problem, r: int, penalty: Any, cardinality: Any) -> tuple[Wanted, ...]:
    """Return how sparse each loading is to be, from a cardinality or a penalty."""
    if (penalty is None) == (cardinality is None):
        raise ValueError("give either penalty or cardinality")
    p = problem.p
    if cardinality is not None:
        counts = per_component(cardinality, "cardinality", r, problem.supports.count)
        return tuple(Wanted(k, 0.0) for k in counts)
    penalties = per_component(penalty, "penalty", r, lambda v, name: number(v, name, 0, np.finfo(float).max))
    return tuple(Wanted(p, _to_operator_units(problem, value / 2)) for value in penalties)


def _to_operator_units(problem: Problem, value: float) -> float:
    """Return a number in the units of X'X in those of the operator's covariance, clipped to the range."""
    with beyond_range():
        inside = np.ldexp(value, -problem.exponent) / problem.degrees
    return float(min(inside, np.finfo(float).max / 4))


def _from_operator_units(problem: Problem, value: Any) -> Any:
    """Return the inverse; inf or 0 where that is out of range."""
    with beyond_range():
        return problem.in_units(np.asarray(value) * problem.degrees)


def _ridge(problem: Problem, ridge: Any, counted: bool) -> float:
    """Return the ridge in the operator's units.

    Default: inf with a cardinality or fewer samples than variables, else a millionth of the mean variance.
    """
    if ridge is not None:
        ridge = number(ridge, "ridge", 0)
        return ridge if ridge == math.inf else min(_to_operator_units(problem, ridge), LARGEST_RIDGE)
    p = problem.n_variables
    if counted or (problem.n_samples is not None and problem.degrees + 1 < p):
        return math.inf
    if problem.diagonal is None:
        raise ValueError("ridge must be given: an operator does not provide the mean of the diagonal of X'X")
    return 1e-6 * problem.trace / p


def _start(problem: Problem, r: int, start: Any) -> Array:
    """Return the polar factor of a start, checked."""
    S = real_array(start, "start", ndim=2, shape=(problem.p, r), labels=problem.names).astype(np.float64)
    S = S / (np.abs(S).max() or 1)
    if np.linalg.matrix_rank(S) < r:
        raise ValueError(f"start must have {r} linearly independent columns")
    return procrustes(S, S)[0]


def _result(problem: Problem, X: Any, found: _Found, ridge: float, given: Any) -> SPCAResult:
    """Return the result, with warnings about empty loadings and convergence."""
    B, objective, converged = found.B, found.objective, found.converged
    signed = problem.supports.signs is not None
    loadings = (B if signed else fix_signs(B)) + 0.0  # no zero with a sign
    empty = np.flatnonzero(~loadings.any(axis=0))
    if len(empty):
        warn(f"the penalty leaves {counted(len(empty), 'loading')} without nonzeros, the first at {empty[0]}")
    if found.alternating:
        warn("not converged: supports alternate, of which those that explain most are returned")
    elif not converged:
        warn(f"not converged in {counted(len(objective), 'iteration')}")
    variances = [operator_variances(problem, loadings, how) for how in ("cumulative", "adjusted")]
    return SPCAResult.of(
        problem,
        loadings,
        variances[0],
        X,
        adjusted_variance=problem.in_units(variances[1]),
        penalty=_from_operator_units(problem, 2 * found.levels),
        ridge=float(_from_operator_units(problem, ridge) if given is None else given),
        objective=_from_operator_units(problem, objective),
        n_iter=len(objective),
        converged=converged,
        method="spca",
    )
