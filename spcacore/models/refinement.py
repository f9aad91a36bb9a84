"""Joint refinement: each loading solved again, given all the others.

The variance that loadings explain together is Tr(Q'AQ), where Q is an orthonormal basis of their span. Let
Q_t be such a basis for all but the loading x, and P = I - Q_tQ_t'. Then the variance is Tr(Q_t'AQ_t) +
x'PAPx/x'Px. So x solves the problem of generalized deflation, with the later components removed as well as
the earlier ones. The search is in models/joint_search.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from .._limits import REFIT_RISE
from .._messages import warn
from .._types import AnyArray, Kind, MatrixLike, RandomSource, Switch, Weights
from .._validation import Hook, as_seed, check_choice, integer, per_component
from ..choice import Choice
from ..linalg.orthogonal import fix_sign
from ..linalg.scaling import with_entries
from ..methods import TPower
from ..operators.deflation import DeflatedOperator
from ..operators.inputs import as_problem
from ..operators.problem import Problem
from ..progress import Callback, Progress, check_callback
from ..solvers.base import shared_parameters
from ..solvers.refitting import refit
from ..solvers.solution import Solution
from ..solvers.truncated_power import TruncatedPower
from ..supports.admissible import knowledge
from .joint_search import Loading, Loadings, Sizes, as_matrix, ascended, in_places, in_turn, searched
from .request import CONSTRAINTS
from .variance import checked_loadings, nonzeros_of, operator_variances

NOT_CONVERGED = "refinement not converged in {} rounds"
BRIEF_MOVES = 160  # moves of a brief refinement, which take about as long as the elastic nets of `spca`


@shared_parameters
def refine(
    X: MatrixLike, loadings: object, cardinality: int | ArrayLike | None = None, *,
    constraint: Literal["orthogonal", "uncorrelated"] | None = None,
    choice: Choice | None = None,
    n_restarts: int = 0,
    max_iter: int = 500,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    rng: RandomSource = None, callback: Callback | None = None,
) -> AnyArray:  # fmt: skip
    """Improve several loadings together: solve for each again, given all the others.

    Maximizes the variance that the loadings explain together, `Tr(A V (V'V)^-1 V')`, over loadings V of the
    given cardinalities. Each loading in turn ascends given the others, by truncated power on the generalized
    problem `max x'PAPx / x'Px`, where P is the projection away from the others, and by exchanges of
    variables, until none gains. A search for other loadings follows: one or more are sought again, some
    variables are replaced, loadings are rotated within their span and truncated, or taken from different
    results; each such change ascends too. Several searches begin from random loadings. The search ends when
    twenty of them end at the same value, or after a fixed amount of work. A single loading is sought as
    `sparse_pca` seeks one by default, from itself and from all other starts.

    The result explains at least as much as the given loadings. There are two exceptions: loadings that must
    first be made orthogonal may lose variance by that; and for uncorrelated components the sum of their
    variances does not fall, but what they explain together may.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix
        Data; with ``kind="covariance"`` a symmetric positive semidefinite (p, p) matrix.
    loadings : array-like of shape (p, r), result or fitted estimator
        The loadings to begin with. No column may be zero.
    cardinality : int or sequence of r int, optional
        Nonzeros of the loadings: one number for all, or one for each. No loading may get fewer than it has.
        Default: the numbers that they have.
    constraint : {None, "orthogonal", "uncorrelated"}, default None
        "orthogonal": `V'V = I` up to rounding. "uncorrelated": the components are, `V'AV` is diagonal, and
        the sum of their variances is raised. The search is the same: each loading ascends given the others
        under a penalty on what the constraint forbids. As it grows, loadings come near the constraint. Then
        the values on all supports are chosen together, so that they meet it, and variables are exchanged.
        It begins, too, from loadings without the constraint, and seeks some again from random ones, each
        orthogonal to the others, or uncorrelated with them. If no loadings are found that meet the
        constraint, as with too few variables, a ValueError is raised.
    choice : Choice, optional
        What you know about the variables. All but signs can be combined with a constraint. If a loading lacks
        an included variable, that variable first replaces one with a small entry; entries of a wrong sign
        become zero.
    n_restarts : int, default 0
        Further attempts: the whole search with other random numbers. The best result of all is returned.
    max_iter : int, default 500
        Largest number of rounds, of forty changes each.
    {matrix}
    rng : None, int or numpy Generator, optional
        For the search. None is a fixed seed.
    callback : callable or True, optional
        Called with a `Progress` after each round and each attempt: `component` is the number of the attempt,
        `value` the variance explained. Raising StopIteration ends the search early, see `Progress`.

    Returns
    -------
    ndarray of shape (p, r)
        Unit columns in the order of the given ones. In each the entry of largest magnitude is positive.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, an indefinite covariance, a zero loading, supports on which no
        orthogonal loadings exist, or an option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    L. Mackey (2008). Deflation methods for sparse PCA. Advances in Neural Information Processing Systems 21,
    section 3.3, for the problem of one loading given others. R. Cory-Wright and J. Pauphilet (2022).
    Sparse PCA with multiple components. arXiv:2209.14790, algorithm 2, for the penalty.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> V = spcacore.sparse_pca(A, 4, cardinality=4, kind="covariance").loadings
    >>> W = spcacore.refine(A, V, kind="covariance")
    >>> [float(spcacore.explained_variance(A, U, kind="covariance").sum().round(2)) for U in (V, W)]
    [8.59, 9.0]
    """
    # X, the loadings and their cardinalities
    problem = as_problem(X, kind, center, scale, sample_weight, choice=knowledge(choice))
    V = checked_loadings(loadings, problem.p, problem.names)
    r = V.shape[1]
    counts = np.count_nonzero(V, axis=0)
    if not counts.all():
        raise ValueError(f"column {int(np.argmin(counts))} of loadings is zero")
    if V[problem.supports.excluded].any():
        raise ValueError("loadings has nonzeros for variables in exclude")
    counts = np.array([problem.supports.cardinality_of(np.flatnonzero(v)) for v in V.T])
    if cardinality is None:
        sizes = tuple(max(int(k), problem.supports.bounds[0]) for k in counts)
    else:
        sizes = per_component(cardinality, "cardinality", r, problem.supports.count)
        if (short := np.array(sizes) < counts).any():
            t = int(np.argmax(short))
            raise ValueError(f"cardinality must not be below the {counts[t]} nonzeros that loading {t} has")
    # The search
    if constraint is not None:
        check_choice(constraint, "constraint", CONSTRAINTS)
        refuse_constraint(problem)
    n_restarts = integer(n_restarts, "n_restarts", 0)
    max_iter = integer(max_iter, "max_iter", 1)
    seed = as_seed(rng)
    hook = check_callback(callback)
    start = nonzeros_of(V.astype(problem.operator.dtype))
    best, converged = refined(problem, start, sizes, constraint, n_restarts, max_iter, seed, hook)
    if not (converged or hook.ended):
        warn(NOT_CONVERGED.format(max_iter))
    V = as_matrix(problem, [(index, with_sign(problem, value)) for index, value in best])
    return V.astype(problem.operator.dtype)


def with_sign(problem: Problem, value: AnyArray) -> AnyArray:
    """Return the entries with the largest magnitude positive; where the caller gave signs, unchanged."""
    return fix_sign(value) if problem.supports.signs is None else value


def refuse_constraint(problem: Problem) -> None:
    """Raise ValueError if the loadings have given signs, which go with no constraint."""
    if problem.supports.signs is not None:
        raise ValueError(
            "a constraint cannot be combined with signs in refinement: loadings of the same signs are "
            "orthogonal only where they share no variable, as with support='disjoint'"
        )


def _made_feasible(problem: Problem, loadings: Loadings, sizes: Sizes) -> Loadings:
    """Return loadings on supports that are allowed: with the included variables, signs and cardinalities.

    Where a loading lacks an included variable, or has no entry left, its values are fitted anew on the
    support.
    """
    choice, state = problem.supports, DeflatedOperator.from_problem(problem)
    if not choice.shapes:
        return loadings
    out: Loadings = []
    for (index, value), size in zip(loadings, sizes, strict=True):
        x = with_entries(problem.p, index, value, value.dtype)
        support = choice.truncated(x, size)
        if choice.signs is not None:
            x = choice.oriented(x)
        if not np.isin(choice.wanted, index).all() or not x[support].any():
            x[support] = refit(state, Solution(support, x[support], 0.0)).entries
        out.append((support, np.ascontiguousarray(x[support])))
    return out


def refined(
    problem: Problem,
    start: Loadings,
    sizes: Sizes,
    constraint: str | None,
    n_restarts: int,
    max_iter: int,
    seed: int,
    hook: Hook,
) -> tuple[Loadings, bool]:
    """Return the best loadings of all attempts, and whether the first attempt came to its end.

    There are 1 + `n_restarts` attempts, of at most `max_iter` rounds each. The result explains at least as
    much as `start`, if that meets the constraint; else at least as much as components found one after
    another.
    """
    start = _made_feasible(problem, start, sizes)
    if problem.diagonal is not None and not problem.diagonal.any():
        return start, True  # no variance: nothing to raise
    if len(start) == 1:
        return _alone(problem, start[0], sizes[0], 1 + n_restarts, seed, hook), True
    # Never less than at the start
    best, converged = searched(problem, start, sizes, 1 + n_restarts, max_iter, seed, hook, constraint)
    how = "raw" if constraint == "uncorrelated" else "cumulative"  # these variances add up
    value = partial(joint_variance, problem, definition=how)
    begun = start if _meet(problem, start, constraint) else in_turn(problem, sizes, seed, constraint)
    whole = len(begun) == len(sizes)
    if not best or (whole and not value(best) > value(begun) * (1 + _rounding(problem))):
        best = begun  # where supports leave the basis of a span open, that of the start is kept
    if len(best) < len(sizes):
        raise ValueError(f"no {constraint} loadings of these cardinalities were found; allow more variables")
    return _ordered(problem, best, sizes), converged


def _meet(problem: Problem, loadings: Loadings, constraint: str | None) -> bool:
    """Whether V'V, or V'AV for uncorrelated components, is diagonal up to rounding."""
    V = np.asfortranarray(as_matrix(problem, loadings), problem.operator.dtype)
    G = V.T @ (problem.operator.apply_block(V) if constraint == "uncorrelated" else V)
    d = np.sqrt(np.abs(G.diagonal()))
    off = np.abs(G - np.diag(G.diagonal()))
    return constraint is None or bool((off <= _rounding(problem) * np.outer(d, d)).all())


def quickly_refined(problem: Problem, start: Loadings, sizes: Sizes) -> tuple[Loadings, float]:
    """Let the loadings ascend, each given the others, without a further search.

    Return the better of these and `start`, and the variance that it explains.
    """
    value = joint_variance(problem, start)
    if not value > 0:
        return start, value
    new, more = ascended(problem, [start], sizes)
    return (new, more) if more > value * (1 + _rounding(problem)) else (start, value)


def refined_from(problem: Problem, starts: list[Loadings], sizes: Sizes) -> Loadings:
    """Let the loadings of each start ascend, then make some moves; return the best, in order of variance."""
    feasible = [_made_feasible(problem, start, sizes) for start in starts]
    best, _ = ascended(problem, feasible, sizes, BRIEF_MOVES)
    value, *known = (joint_variance(problem, one) for one in (best, *feasible))
    if not value > max(known) * (1 + _rounding(problem)):
        best = feasible[int(np.argmax(known))]
    return _ordered(problem, best, sizes)


def _ordered(problem: Problem, loadings: Loadings, sizes: Sizes) -> Loadings:
    """Return the loadings so that, among those of the same cardinality, the variances descend."""
    state = DeflatedOperator.from_problem(problem)
    return [loadings[t] for t in in_places([state.quadratic(*x) for x in loadings], sizes)]


def _alone(problem: Problem, now: Loading, size: int, attempts: int, seed: int, hook: Hook) -> Loadings:
    """Search again for a single loading, from itself and from the usual starts of one component.

    `size` is its cardinality. The attempts differ in their random numbers.
    """
    state, solver = DeflatedOperator.from_problem(problem), TruncatedPower.from_record(problem, TPower())
    index, value = now[0], now[1] / np.linalg.norm(now[1])
    start, best = as_matrix(problem, [now])[:, 0], Solution(index, value, 0.0)
    best, fitted = (
        replace(x, objective=state.objective(x.index, x.entries)) for x in (best, refit(state, best))
    )
    for attempt in range(attempts):
        ways = [solver] if attempt else [replace(solver, start=start), solver]
        state = replace(state, seed=(seed, attempt))
        for new in (fitted, *(way.find(state, size) for way in ways)):
            if new is not None and new.objective > best.objective * (1 + _rounding(problem)):
                best = new
        told = Progress(attempt, attempts, 1, float(problem.in_units(best.objective)))
        if hook(told):
            break
    return [(best.index, best.entries)]


def _rounding(problem: Problem) -> float:
    """Return the relative gain up to which one value is not better than another, as rounding may make it."""
    return REFIT_RISE.of(problem.operator.dtype)


def joint_variance(problem: Problem, loadings: Loadings, definition: str = "cumulative") -> float:
    """Return what the loadings explain together in the operator's units: Tr(Q'AQ), or another definition."""
    return float(operator_variances(problem, as_matrix(problem, loadings), definition).sum())
