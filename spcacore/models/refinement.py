"""Joint refinement: each loading solved again, given all the others.

The variance that loadings explain together is Tr(Q'AQ), Q an orthonormal basis of their span. Given the
others, with basis Q_t, it is theirs plus x'PAPx/x'Px of the remaining one, P = I - Q_tQ_t': the problem of
generalized deflation, with the later components removed as well as the earlier. A loading is replaced only
where that variance, computed for both, rises; the sweep ends where the search improves no single loading.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._limits import ORTHOGONAL_STARTS, REFINEMENT_RISE, UNCORRELATED_STARTS
from .._messages import warn
from .._records import record
from .._types import Kind, MatrixLike, RandomSource, Switch, Weights
from .._validation import Hook, as_seed, check_choice, integer, number, per_component
from ..choice import Choice
from ..linalg.orthogonal import fix_sign, orthogonal_part
from ..methods import TPower
from ..operators.deflation import DEFLATIONS, DeflatedOperator
from ..operators.inputs import as_problem
from ..operators.problem import Problem
from ..progress import Callback, Progress, check_callback
from ..solvers.base import shared_parameters
from ..solvers.refitting import refit
from ..solvers.solution import Solution
from ..solvers.truncated_power import TruncatedPower
from ..supports.admissible import knowledge
from .joint_search import ascended, searched
from .orthogonal_search import (
    Loading,
    Supports,
    as_matrix,
    in_turn,
    on_supports,
    penalized_supports,
    supports_of,
    swapped,
)
from .variance import checked_loadings, operator_variances

__all__ = [
    "NOT_CONVERGED", "additional_variance", "joint_variance", "quickly_refined", "refine", "refined",
    "refined_from", "refuse_constraint", "with_sign",
]  # fmt: skip

_ORDER_DIGITS = 9  # of variances, of which equal ones keep their order
NOT_CONVERGED = "refinement not converged in {} rounds"


@shared_parameters
def refine(
    X: MatrixLike, loadings: object, cardinality: int | ArrayLike | None = None, *,
    constraint: Literal["orthogonal", "uncorrelated"] | None = None,
    choice: Choice | None = None,
    n_restarts: int = 0,
    max_iter: int = 500, tol: float = 1e-7,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    rng: RandomSource = None, callback: Callback | None = None,
) -> NDArray[Any]:  # fmt: skip
    """Improve several loadings together: solve for each again, given all the others.

    Maximizes the variance that the loadings explain together, `Tr(A V (V'V)^-1 V')`, over loadings V of the
    given cardinalities. Each loading in turn ascends given the others, by truncated power on the generalized
    problem `max x'PAPx / x'Px`, where P is the projection away from the others, and by exchanges of
    variables, until none gains. Without a constraint, a search of other loadings follows: one or more are
    sought again, some variables are replaced, loadings are rotated within their span and truncated, or taken
    from different results; each such change ascends too. Several searches begin from random loadings. The
    search ends when three of them come to the same loadings, or after a fixed amount of work. A single
    loading is sought as `sparse_pca` seeks one by default, from itself and from all other starts.

    The result explains at least as much as the given loadings. There is one exception: loadings that must
    first be made orthogonal may lose variance by that.

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
        "orthogonal": `V'V = I` up to rounding. The search starts from the best of several orthogonal
        loadings: the given ones (or orthogonal ones near them on their supports), the best values on these
        supports, the same for loadings refined without the constraint, and supports met on the way as a
        growing penalty makes loadings orthogonal. After each round it chooses all values together, and swaps
        variables. If the supports have too few variables for orthogonal loadings, a ValueError is raised.
        "uncorrelated": the components are, `V'AV` is diagonal, and the sum of their variances is raised.
    choice : Choice, optional
        What is known of the variables. All but signs can be combined with a constraint.
        If a loading lacks an included variable, that variable first replaces one with a small entry; entries
        of a wrong sign become zero. Of the choices, only `exclude` leaves the search of other loadings.
    n_restarts : int, default 0
        Further attempts: the whole search with other random numbers or, with a constraint or a choice, from
        the best loadings with some drawn at random. The best result of all is returned.
    max_iter : int, default 500
        Largest number of rounds: over all loadings or, of the search of other loadings, of twenty changes.
    tol : float, default 1e-7
        With a constraint, or a choice that is not only `exclude`: when a round gains no more than this
        fraction, the search tries all of its starts, and ends if these do not gain more either. With signs at
        least 1e-4, because loadings of given signs may near each other without end, which explains ever more.
    {matrix}
    rng : None, int or numpy Generator, optional
        For the search. None is a fixed seed.
    callback : callable or True, optional
        Called with a `Progress` after each round: `component` is the number of the attempt, `value` the
        variance explained. Raising StopIteration ends the search early, see `Progress`.

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
    problem = as_problem(
        X, kind=kind, center=center, scale=scale, sample_weight=sample_weight, choice=knowledge(choice)
    )
    V = checked_loadings(loadings, problem.p, problem.names)
    r = V.shape[1]
    counts = np.count_nonzero(V, axis=0)
    if not counts.all():
        raise ValueError(f"column {int(np.argmin(counts))} of loadings is zero")
    if V[problem.supports.excluded].any():
        raise ValueError("loadings has nonzeros for variables in exclude")
    counts = np.array([problem.supports.cardinality_of(np.flatnonzero(v)) for v in V.T])
    least, most = problem.supports.bounds
    if cardinality is None:
        sizes = tuple(max(int(k), least) for k in counts)
    else:
        sizes = per_component(
            cardinality, "cardinality", r, lambda value, name: integer(value, name, least, most)
        )
        if (np.array(sizes) < counts).any():
            t = int(np.argmax(np.array(sizes) < counts))
            raise ValueError(f"cardinality must not be below the {counts[t]} nonzeros that loading {t} has")
    if constraint is not None:
        check_choice(constraint, "constraint", ("orthogonal", "uncorrelated"))
        refuse_constraint(problem)
    n_restarts = integer(n_restarts, "n_restarts", 0)
    max_iter = integer(max_iter, "max_iter", 1)
    tol = number(tol, "tol", 0)
    seed = as_seed(rng)
    hook = check_callback(callback)
    start = [(np.flatnonzero(v), v[v != 0].astype(problem.operator.dtype)) for v in V.T]
    best, converged = refined(problem, start, sizes, constraint, n_restarts, max_iter, tol, seed, hook)
    if not (converged or (hook is not None and hook.ended)):
        warn(NOT_CONVERGED.format(max_iter))
    V = as_matrix(problem.p, [(index, with_sign(problem, index, value)) for index, value in best])
    return V.astype(problem.operator.dtype)


def with_sign(problem: Problem, index: NDArray[np.intp], value: NDArray[Any]) -> NDArray[Any]:
    """The entry of largest magnitude positive, unless signs are given."""
    return fix_sign(value) if problem.supports.signs is None else value


def refuse_constraint(problem: Problem) -> None:
    """Raise where loadings under a constraint would have to have given signs."""
    if problem.supports.signs is not None:
        raise ValueError(
            "a constraint cannot be combined with signs in refinement: loadings of the same signs are "
            "orthogonal only where they share no variable, as with support='disjoint'"
        )


def _made_feasible(problem: Problem, loadings: list[Loading], sizes: tuple[int, ...]) -> list[Loading]:
    """With what is included, on supports of so many units."""
    choice, state = problem.supports, DeflatedOperator.from_problem(problem)
    if not choice.shapes:
        return loadings
    out: list[Loading] = []
    for (index, value), size in zip(loadings, sizes, strict=True):
        x = np.zeros(problem.p, value.dtype)
        x[index] = value
        support = choice.truncated(x, size)
        if choice.signs is not None:
            x = choice.oriented(x)
        if not np.isin(choice.wanted, index).all() or not x[support].any():
            x[support] = refit(state, Solution(support, x[support], 0.0, 0, True)).entries
        out.append((support, np.ascontiguousarray(x[support])))
    return out


def refined(
    problem: Problem,
    start: list[Loading],
    sizes: tuple[int, ...],
    constraint: str | None,
    n_restarts: int,
    max_iter: int,
    tol: float,
    seed: int,
    hook: Hook | None,
) -> tuple[list[Loading], bool]:
    """The best loadings over all attempts, and whether the first, without restarts, came to its end."""
    start = _made_feasible(problem, start, sizes)
    if problem.diagonal is not None and not problem.diagonal.any():
        return start, True  # no variance: nothing to raise
    if constraint is None and len(start) > 1:
        most = joint_variance(problem, start)
        best, converged = searched(problem, start, sizes, 1 + n_restarts, max_iter, seed, hook)
        best = best if joint_variance(problem, best) >= most * (1 - _rounding(problem)) else start
        return _ordered(problem, best, sizes), converged
    rng = np.random.default_rng(seed)
    rise = max(tol, _rounding(problem))
    rounds = _Rounds(problem, sizes, constraint, max_iter, rise, 1 + n_restarts, hook, rng)
    if constraint == "orthogonal":
        start = _orthogonal_start(problem, start, sizes, max_iter, tol, seed)
    elif constraint is not None:
        start = _uncorrelated_start(rounds, start, seed)
    best, most, converged = rounds.ascend([*start], rounds.value(start), 0)
    for attempt in range(1, 1 + n_restarts):
        if rounds.ended:
            break
        new, value, _ = rounds.ascend(_some_dropped(best, rng), -np.inf, attempt)
        if value > most * (1 + _rounding(problem)):
            best, most = new, value
    return _ordered(problem, best, sizes), converged


def quickly_refined(
    problem: Problem, start: list[Loading], sizes: tuple[int, ...]
) -> tuple[list[Loading], float]:
    """The loadings to which these ascend, each given the others, and what they explain."""
    value = joint_variance(problem, start)
    if not value > 0:
        return start, value
    new, more = ascended(problem, [start], sizes)
    return (new, more) if more > value else (start, value)


def refined_from(problem: Problem, starts: list[list[Loading]], sizes: tuple[int, ...]) -> list[Loading]:
    """The best loadings to which some ascend."""
    feasible = [_made_feasible(problem, start, sizes) for start in starts]
    return _ordered(problem, ascended(problem, feasible, sizes)[0], sizes)


def _ordered(problem: Problem, loadings: list[Loading], sizes: tuple[int, ...]) -> list[Loading]:
    """Loadings of as many nonzeros by decreasing variance, so that their order does not hang on rounding."""
    op = problem.operator
    variances = [float(v @ op.apply(index, np.ascontiguousarray(v))[index]) for index, v in loadings]
    out, top = [*loadings], max(variances)
    for size in set(sizes):
        places = [t for t, k in enumerate(sizes) if k == size]
        order = sorted(places, key=lambda t: -round(variances[t] / top, _ORDER_DIGITS) if top > 0 else 0)
        for place, t in zip(places, order, strict=True):
            out[place] = loadings[t]
    return out


@record
class _Rounds:
    """Rounds over all loadings, each solved again given the others; `attempts` is what a callback is told."""

    problem: Problem
    sizes: tuple[int, ...]
    constraint: str | None
    max_iter: int
    tol: float
    attempts: int
    hook: Hook | None
    rng: np.random.Generator

    @property
    def ended(self) -> bool:
        """Whether the callback has ended the search."""
        return self.hook is not None and self.hook.ended

    def value(self, loadings: list[Loading]) -> float:
        """What loadings explain together: of uncorrelated ones the sum of their variances."""
        if self.constraint != "uncorrelated":
            return joint_variance(self.problem, loadings)
        V = as_matrix(self.problem.p, loadings)
        return float(operator_variances(self.problem, V, "raw").sum())

    def ascend(
        self, loadings: list[Loading | None], value: float, attempt: int
    ) -> tuple[list[Loading], float, bool]:
        """The best loadings of all rounds, what they explain, and whether the last gained next to nothing.

        `value` is what is explained before.
        """
        r = len(loadings)
        best = [x for x in loadings if x is not None]
        previous, wide = -np.inf, False
        for n_iter in range(self.max_iter):
            for t in range(r) if attempt == 0 else self.rng.permutation(r):
                loadings[t] = _again(
                    self.problem, loadings, int(t), self.sizes[t], self.constraint, wide, self.rng
                )
            whole = [x for x in loadings if x is not None]
            if self.constraint == "orthogonal" and len(whole) == r:
                whole = loadings[:] = _together(self.problem, whole, self.sizes, wide)
            explained = self.value(whole)
            if len(whole) == r and explained > value:
                best, value = whole, explained
            if self.hook is not None:
                told = float(self.problem.in_units(explained))
                if self.hook(Progress(attempt, self.attempts, n_iter + 1, told)):
                    return best, value, False
            stalled = not explained - previous > self.tol * explained
            if stalled and wide:
                return best, value, True
            previous, wide = explained, stalled
        return best, value, False


def _orthogonal_start(
    problem: Problem, start: list[Loading], sizes: tuple[int, ...], max_iter: int, tol: float, seed: int
) -> list[Loading]:
    """The best orthogonal loadings on the supports given, on those refined freely, or on others nearby; on
    the first two alone where supports are of groups, or have included variables."""
    free = _ordered(problem, searched(problem, start, sizes, 1, max_iter, seed, None)[0], sizes)
    if problem.supports.shapes:
        ways = [way(problem, x) for x in (start, free) for way in (on_supports, _fitted_in_turn)]
        return _best_feasible(problem, [x for x in ways if x is not None])
    turn = in_turn(problem, sizes, seed)
    begin = list({supports_of(x): x for x in (turn, free, start) if len(x) == len(start)}.values())
    on_the_way: dict[Supports, list[Loading]] = {}
    for x in begin:
        on_the_way |= penalized_supports(problem, x, sizes, seed)
    nearby = [_fitted_in_turn(problem, x) for x in begin]
    nearby += [on_supports(problem, x) for x in (*begin, *nearby, *on_the_way.values()) if x is not None]
    feasible = [x for x in nearby if x is not None]
    _best_feasible(problem, feasible)
    few = {round(joint_variance(problem, x), 9): x for x in feasible}
    for key in sorted(few, reverse=True)[:ORTHOGONAL_STARTS]:
        better = swapped(problem, few[key], sizes)
        feasible += [] if better is None else [better]
    return _best_feasible(problem, feasible)


def _uncorrelated_start(rounds: _Rounds, start: list[Loading], seed: int) -> list[Loading]:
    """The best end of ascents from these supports, from loadings in turn, and from others at random.

    Several of the last, because a loading alone can hardly change its variables beside the others.
    """
    problem, r = rounds.problem, len(start)
    quiet = replace(rounds, hook=None, attempts=1, rng=np.random.default_rng(seed))
    feasible = [_fitted_in_turn(problem, start, "uncorrelated")]
    feasible.append(in_turn(problem, rounds.sizes, seed, "uncorrelated"))
    ends = [quiet.ascend([*x], quiet.value(x), 0)[:2] for x in feasible if x is not None and len(x) == r]
    if not ends:
        raise ValueError("no uncorrelated loadings of these cardinalities were found; allow more variables")
    best, most = max(ends, key=lambda end: end[1])
    for attempt in range(1, UNCORRELATED_STARTS + 1):
        if rounds.ended:
            break
        new, value, _ = quiet.ascend(_some_dropped(best, quiet.rng), -np.inf, attempt)
        if value > most * (1 + _rounding(problem)):
            best, most = new, value
    return best


def _best_feasible(problem: Problem, found: list[list[Loading]]) -> list[Loading]:
    if not found:
        raise ValueError("no orthogonal loadings exist on the supports given; allow more variables")
    return max(found, key=lambda x: joint_variance(problem, x))


def _together(problem: Problem, loadings: list[Loading], sizes: tuple[int, ...], wide: bool) -> list[Loading]:
    """Orthogonal loadings with all values chosen together; wide: variables exchanged too."""
    ways = [on_supports(problem, loadings)]
    if wide and not problem.supports.shapes:
        ways.append(swapped(problem, ways[0] or loadings, sizes))
    return max((x for x in (loadings, *ways) if x is not None), key=lambda x: joint_variance(problem, x))


def _again(
    problem: Problem,
    loadings: list[Loading | None],
    t: int,
    cardinality: int,
    constraint: str | None,
    wide: bool,
    rng: np.random.Generator,
) -> Loading | None:
    """Loading t solved again given the others: from itself, or at random; wide: from all starts too.

    Without others that is the search of one component, with its race and swaps.
    """
    deflation = DEFLATIONS["projection" if constraint else "generalized"]
    state = DeflatedOperator.from_problem(problem, deflation, constraint)
    for i, x in enumerate(loadings):
        if i != t and x is not None:
            state = state.deflate(*x, problem.noise)
    start, best, most, now = rng.standard_normal(problem.p), None, 0.0, loadings[t]
    alone = len(loadings) == 1
    solver = TruncatedPower.from_record(problem, TPower(swaps=alone))
    if now is not None:
        best, most = now, additional_variance(problem, state, *now)
        start[:] = 0
        start[now[0]] = now[1]
        fitted = refit(state, Solution(*now, 0.0, 0, True))
        if (explained := additional_variance(problem, state, fitted.index, fitted.entries)) > most:
            best, most = (fitted.index, fitted.entries), explained
    for way in (replace(solver, start=start), solver)[: 1 + (wide or now is None)]:
        new = (way.find if alone else way.solve)(problem, state, cardinality, [0, t], None)
        if new is not None:
            explained = additional_variance(problem, state, new.index, new.entries)
            if explained > most * (1 + _rounding(problem)):
                best, most = (new.index, new.entries), explained
        if now is None and best is not None:
            break
    return best


def _rounding(problem: Problem) -> float:
    """A relative gain that may be rounding alone."""
    return REFINEMENT_RISE.of(problem.operator.dtype)


def additional_variance(
    problem: Problem, state: DeflatedOperator, index: NDArray[np.intp], value: NDArray[Any]
) -> float:
    """q'Aq, q the normalized part of a loading that is orthogonal to those the state has removed; of an
    uncorrelated one its variance."""
    if state.constraint == "uncorrelated":
        return max(state.objective(index, value / np.linalg.norm(value)), 0.0)
    x = np.zeros(problem.p)
    x[index] = value
    q = orthogonal_part(x, list(state.basis))
    return 0.0 if q is None else float(operator_variances(problem, q[:, None], "raw")[0])


def _fitted_in_turn(
    problem: Problem, loadings: list[Loading], constraint: str = "orthogonal"
) -> list[Loading] | None:
    """The best values on the same supports, each beside the earlier ones; None if there are none."""
    state, out = DeflatedOperator.from_problem(problem, constraint=constraint), []
    for index, value in loadings:
        x = refit(state, Solution(index, value, 0.0, 0, True))
        if x.objective == -np.inf:
            return None
        out.append((index, x.entries))
        state = state.deflate(index, x.entries, problem.noise)
    return out


def joint_variance(problem: Problem, loadings: list[Loading]) -> float:
    """Tr(Q'AQ), Q an orthonormal basis of the loadings, in the operator's units."""
    return float(operator_variances(problem, as_matrix(problem.p, loadings), "cumulative").sum())


def _some_dropped(loadings: list[Loading], rng: np.random.Generator) -> list[Loading | None]:
    """Without some of the loadings, or any."""
    r = len(loadings)
    count = r if rng.random() < 0.5 else int(rng.integers(1, r + 1))
    dropped = set(rng.choice(r, count, replace=False).tolist())
    return [None if t in dropped else x for t, x in enumerate(loadings)]
