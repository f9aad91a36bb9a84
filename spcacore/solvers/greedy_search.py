"""Greedy search: a component for every cardinality, one variable more or less at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial, reduce
from itertools import pairwise
from typing import Self

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._asked import as_record, seed_of
from .._limits import (
    BACKWARD_ORDER,
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
    TIE_TOLERANCE,
    TIE_WORK,
    TIED_VARIABLES,
    USUAL_BACKWARD_ORDER,
)
from .._records import record
from .._types import AnyArray, Array, Index, Kind, OperatorLike, Switch, Weights
from .._validation import as_seed, integer, require_entries
from ..choice import Choice
from ..linalg.orthogonal import fix_sign
from ..linalg.pencil import ties
from ..methods import Greedy
from ..operators.deflation import DeflatedOperator
from ..operators.field import Ground, can_be_formed
from ..operators.gram import formed
from ..operators.inputs import as_problem
from ..operators.problem import Problem
from ..operators.submatrix import (
    KeptRows,
    kept_rows,
    largest_submatrix,
    rows_at_once,
    rows_together,
    whole_matrix,
)
from ..progress import Callback
from ..results import GreedyComponent
from .base import Run, Solver, choice_options, drop_zeros, progress_hook, shared_parameters
from .matrix_search import ends_on_field
from .refitting import is_better, refit
from .solution import ProgressClock, Report, Solution, ended
from .starts import power_start
from .swaps import Pencil, swap_search
from .unit_search import brief_search, greedy_by_units

Search = Callable[..., Iterator[Solution]]


@record
class GreedySearch(Solver):
    """Greedy search, one variable more or less at a time."""

    strategy: str
    name = "greedy"
    maximizes_quotient = True
    chooses = True

    @classmethod
    def from_record(cls, problem: Problem, record: Greedy) -> Self:
        strategy = record.strategy
        if strategy != "gradient":
            require_entries(problem, f"strategy={strategy!r}", ": use strategy='gradient'")
        if strategy in ("backward", "bidirectional") and problem.p > BACKWARD_ORDER:
            raise ValueError(
                f"strategy={strategy!r} takes at most {BACKWARD_ORDER} variables, not {problem.p}: "
                "use strategy='forward'"
            )
        whole = not problem.supports.simple and strategy != "gradient"  # units, one after another
        if strategy not in ("auto", "forward") and problem.supports.shapes and not whole:
            raise ValueError(f"{problem.supports.shaping} requires strategy='forward', not {strategy!r}")
        return cls(strategy)

    @classmethod
    def needs_whole_products(cls, record: Greedy) -> bool:
        return record.strategy != "gradient"

    def searches(
        self, problem: Problem, state: DeflatedOperator, K: int, seed: list[int], first: int | None = None
    ) -> tuple[Search, ...]:  # fmt: skip
        """Those of the strategy, which share the rows of A."""
        forward = partial(_forward, kept_rows(state.operator))
        one: Search = partial(forward, first)
        others: dict[str, tuple[Search, ...]] = {
            "gradient": (partial(_gradient, first),),
            "backward": (_backward,),
            "bidirectional": (one, _backward),
        }
        if self.strategy != "auto" or state.supports.shapes or problem.p == K:
            return others.get(self.strategy, (one,))
        begun = [partial(forward, j) for j in _begins(problem, state, K, seed)]
        backward = (_backward,) if problem.p <= USUAL_BACKWARD_ORDER else ()
        return (one, *begun, *backward)

    def solve(
        self, problem: Problem, state: DeflatedOperator, cardinality: int, seed: list[int],
        hook: Report | None,
    ) -> Solution | None:  # fmt: skip
        best = None
        n_iter, clock = 0, ProgressClock(hook)
        if not state.supports.simple:
            return self._by_units(problem, state, cardinality, seed, clock, hook)
        strengths = GREEDY_PENALTIES if state.constrained else (-1.0,) if state.quotient else (0.0,)
        for pencil in (Pencil.of(state, strength) for strength in strengths):
            for search in self.searches(problem, state, cardinality, seed):
                if ended(hook):
                    break
                steps = search(state, pencil, cardinality, seed, clock)
                new = next((new for new in steps if len(new.index) == cardinality), None)
                if new is None:
                    continue
                n_iter += new.n_iter
                new = refit(state, replace(new, entries=new.entries.astype(state.operator.dtype)))
                if (
                    state.constrained
                ):  # which variables go together with a constraint, the penalty says roughly
                    new = swap_search(problem, state, new, SWAP_WORK, hook)
                if new.objective > -np.inf and (best is None or is_better(state, new, best, 0)):
                    best = new
        if best is not None and state.constrained:
            best = brief_search(state, best, cardinality, hook)
        return None if best is None else drop_zeros(replace(best, n_iter=n_iter))

    def _by_units(
        self, problem: Problem, state: DeflatedOperator, cardinality: int, seed: list[int],
        clock: ProgressClock, hook: Report | None,
    ) -> Solution | None:  # fmt: skip
        """Under a constraint the supports that grow with it and without it, after swaps."""
        ways = [state, replace(state, constraint=None)] if state.constrained else [state]
        found = [greedy_by_units(way, cardinality, self.strategy, seed, clock) for way in ways]
        ends = [refit(state, x) for x in found if x is not None]
        if state.constrained:
            ends = [swap_search(problem, state, x, SWAP_WORK, hook) for x in ends]
        return drop_zeros(max(ends, key=lambda x: x.objective, default=None))

    def path(
        self, problem: Problem, state: DeflatedOperator, most: int, seed: list[int], hook: Report | None
    ) -> Iterator[Solution] | None:
        if state.supports.shapes or state.constrained or self.strategy in ("backward", "bidirectional"):
            return None
        pencil, clock = Pencil.of(state, -1.0 if state.quotient else 0.0), ProgressClock(hook)
        upwards = [search for search in self.searches(problem, state, most, seed) if search is not _backward]
        runs = (search(state, pencil, most, seed, clock) for search in upwards)
        dtype = state.operator.dtype
        return (
            refit(state, replace(new, entries=new.entries.astype(dtype)))
            for new in (reduce(partial(_better, state), found) for found in zip(*runs, strict=False))
        )


def greedy_or(
    problem: Problem, state: DeflatedOperator, x: Solution | None, size: int, seed: list[int],
    hook: Report | None, more: int = 0,
) -> Solution | None:  # fmt: skip
    """x, or what greedy search finds of this size, if that is better, under a constraint.

    What chose the support of x knows of that only roughly. If none of its size is feasible, one by at most
    `more` variables larger is.
    """
    if not state.constrained or state.diagonal is None or ended(hook):
        return x
    if x is None or x.objective == -np.inf:
        x = None
    else:
        x, more = swap_search(problem, state, x, SWAP_WORK, hook), 0
    sizes = range(size, min(size + more, problem.n_variables) + 1)
    found = (GreedySearch("auto").solve(problem, state, k, seed, hook) for k in sizes)
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
    strategy, known = record.strategy, choice_options(GreedySearch, choice)
    if known and (known.get("groups") is not None or known.get("signs") is not None):
        raise ValueError(
            "greedy has a path with one variable more in each step, which groups and signs do not allow: "
            "sparse_pca(X, 1, cardinality, method='greedy', choice=...)"
        )
    problem = as_problem(
        X, kind, center, scale, sample_weight, definite=False,
        screening=GreedySearch.checked_screening(record),
        columnwise=strategy == "gradient", form=True,
        choice=known,
    )  # fmt: skip
    K = GreedySearch.check_sparsity(cardinality, "cardinality", problem)
    if strategy == "auto" and first is not None:
        record = replace(record, strategy="forward")
    solver = GreedySearch.from_record(problem, record)
    if first is not None:
        first = integer(first, "first", 0, problem.p - 1)
        if strategy == "backward":
            raise ValueError("first is for the strategies that add variables, not for 'backward'")
    hook = progress_hook(callback)
    problem = formed(problem, hook)
    seed, state = [as_seed(seed_of(record)), 0], DeflatedOperator.from_problem(problem)
    clock = ProgressClock(hook)
    path: list[Solution | None] = [None] * K
    n_iter = 0
    for search in solver.searches(problem, state, K, seed, first):
        steps = 0
        for new in search(state, Pencil.of(state), K, seed, clock):
            steps, k = max(steps, new.n_iter), len(new.index) - 1
            old = path[k]
            path[k] = new if old is None else _better(state, old, new)
        n_iter += steps
        if ended(hook):
            break
    dtype = state.operator.dtype
    found = [replace(new, entries=new.entries.astype(dtype)) for new in path if new is not None]
    found[-1] = replace(refit(state, found[-1]), n_iter=n_iter)
    last = drop_zeros(found[-1])
    if last is None or abs(last.objective) <= problem.noise(last.index):  # as `single` says
        nothing = [np.eye(1, k + 1, dtype=dtype)[0] for k in range(K)]
        found = [Solution(np.arange(k + 1), nothing[k], 0.0, 0, True) for k in range(K)]
    x = Run(problem, state, solver, seed, hook, last, K).component()
    values = np.array([new.objective for new in found], np.float64)
    return GreedyComponent(
        **x._as_fields(),
        path_value=np.asarray(problem.in_units(values)),
        order=_order([new.index for new in found]),
        path_index=np.concatenate([new.index for new in found]),
        path_loading=np.concatenate([fix_sign(new.entries) for new in found]),
    )  # fmt: skip


def _order(supports: list[Index]) -> Index | None:
    """What each support adds to the one before; None if that is not one variable."""
    added = [supports[0], *(np.setdiff1d(new, old) for old, new in pairwise(supports))]
    return np.concatenate(added) if all(len(new) == 1 for new in added) else None


def _better(state: DeflatedOperator, old: Solution, new: Solution) -> Solution:
    return new if is_better(state, new, old, 0) else old


def _begins(problem: Problem, state: DeflatedOperator, K: int, seed: list[int]) -> list[int]:
    """Variables that forward search may begin with: those that lead furthest on a field, at some cardinality.

    They are sought among those that lead the ends of a race, and those whose columns have the largest norms
    of their k largest entries, each without those that an earlier one leads to at once.
    """
    if K == 1 or state.constrained or state.quotient or not can_be_formed(problem, state):
        return []
    ground = Ground() if problem.ground is None else problem.ground
    most = FIELD_ORDER if problem.p <= FIELD_ORDER else FIELD_SOME
    field = ground.field(problem, state, most, False, seed)
    if field is None:
        return []
    k, A, inside = min(K, GREEDY_RANKED, len(field.index)), field.matrix, field.as_state()
    rows = kept_rows(inside.operator)
    passed, values = np.zeros(len(A), bool), {}
    leaders: list[int] = []  # the two largest entries of each of the best ends of a race
    tol = SOLVER_TOL.of(A.dtype)
    for end in ends_on_field(field, k, RACE_STARTS, RACE_ENDS, 0.0, tol, None)[0][:GREEDY_BEGINS]:
        S = np.flatnonzero(np.isin(field.index, end.index))
        _, x = _core.leading_eigenvector(_core.principal_submatrix(A, S))
        leaders += S[np.argsort(-np.abs(x).round(3), kind="stable")[:2]].tolist()
    for j in dict.fromkeys([*leaders, *field.promising(k, RACE_STARTS).tolist()]):
        if not A[j, j] > 0 or (passed[j] and j not in leaders):
            continue
        passed[_core.select_largest(A[j], k)] = True
        steps = _forward(rows, int(j), inside, Pencil.of(inside), k, seed, ProgressClock(None))
        values[int(field.index[j])] = [x.objective for x in steps]
        if len(values) == GREEDY_STARTS:
            break
    best = Counter(
        [list(values)[i] for i in np.argmax(list(values.values()), axis=0)[::-1]] if values else []
    )
    return [j for j, _ in best.most_common(GREEDY_BEGINS)]


def _forward(
    rows: KeptRows, first: int | None, state: DeflatedOperator, pencil: Pencil, K: int, seed: list[int],
    clock: ProgressClock,
) -> Iterator[Solution]:  # fmt: skip
    """Up to cardinality K, by the largest eigenvalue."""
    op, diagonal = state.operator, np.ascontiguousarray(state.diagonal, np.float64)
    C = np.empty((K, op.p), op.dtype)
    norm = np.zeros(op.p) if pencil.Q is None else None
    support, free = np.empty(K, np.intp), np.ones(op.p, bool)
    wanted = np.zeros(op.p, bool)  # what is included comes first
    if state.supports.shapes:
        wanted[state.supports.wanted] = True
        if first is None or not wanted[first]:
            first = int(np.argmax(np.where(wanted, diagonal, -np.inf)))
    new = first if first is not None else _first(state, pencil, seed)
    next_to: Callable[[int], Index] | None = None
    for k in range(K):
        if new is None:
            return
        support[k], free[new] = new, False
        (C[k : k + 1],) = rows.between(support[k : k + 1], None, next_to)
        if norm is not None:
            norm += C[k].astype(np.float64) ** 2
        S = support[: k + 1]
        G = C[: k + 1, S].astype(np.float64)
        ascending = np.argsort(S)
        yield pencil.leading(G[np.ix_(ascending, ascending)], S[ascending], k + 1)
        if clock(k + 1):
            return
        if k + 1 < K:
            basis = pencil.basis(G, S)
            if rows_at_once(op):
                next_to = partial(_steepest, C[: k + 1], basis.W[:, 0], free, K - k - 2)
            candidate = np.flatnonzero(free & wanted)
            candidate = candidate if len(candidate) else np.flatnonzero(free)
            value = pencil.bordered_eigenvalues(C[: k + 1], S, candidate, diagonal, basis, norm)
            new = int(candidate[ties(value)[0]])


def _steepest(C: AnyArray, x: Array, free: NDArray[np.bool_], wanted: int, most: int) -> Index:
    """Free variables with the largest entries of Ax, so many, where C has the rows of A on the support."""
    count = min(wanted, most)
    return (
        _core.select_largest(np.where(free, x.astype(C.dtype) @ C, 0), count)
        if count
        else np.empty(0, np.intp)
    )


def _gradient(
    first: int | None, state: DeflatedOperator, pencil: Pencil, K: int, seed: list[int], clock: ProgressClock
) -> Iterator[Solution]:
    """Up to cardinality K, by the largest slope of x'Ax/x'Bx."""
    op, one = state.operator, np.ones(1, state.operator.dtype)
    # the submatrix at once, or a column of A a step: m K^3/6 multiplications, or m p K
    whole = state.diagonal is not None and not op.symmetric_form and 6 * op.p >= K * K
    whole = whole and largest_submatrix(op) >= K
    G = np.empty((K, K))
    support = np.empty(K, np.intp)
    new = first if first is not None else _first(state, pencil, seed)
    for k in range(K):
        if new is None:
            return
        support[k] = new
        S = support[: k + 1]
        ascending = np.argsort(S)
        index = S[ascending]
        if whole:
            part = op.submatrix(index).astype(np.float64)
        else:
            G[: k + 1, k] = G[k, : k + 1] = op.apply(S[k:], one)[S]
            part = G[np.ix_(ascending, ascending)]
        here = pencil.leading(part, index, k + 1)
        yield here
        if clock(k + 1):
            return
        if k + 1 < K:
            running = op
            if pencil.strength < 0:
                running = op.with_quotient()
            elif pencil.strength > 0 and here.objective > 0:
                running = op.with_penalty(pencil.strength * here.objective)
            position, entry, _ = running.largest(index, here.entries.astype(op.dtype), k + 2)
            outside = ~np.isin(position, index)
            new = int(position[outside][np.argmax(np.abs(entry[outside]))])


def _backward(
    state: DeflatedOperator, pencil: Pencil, K: int, seed: list[int], clock: ProgressClock
) -> Iterator[Solution]:
    """From all variables, yielding from cardinality K downwards."""
    op = state.operator
    A = whole_matrix(op)
    S = np.arange(op.p)
    for removed in range(op.p):
        G = A[np.ix_(S, S)]
        basis = pencil.basis(G, S)
        if len(basis.eigenvalues) == 0:
            S = S[:-1]
            continue
        if len(S) <= K:
            yield pencil.leading(G, S, removed)
        if clock(removed) and len(S) > K:  # at once to the K that weigh most
            S = np.sort(S[_core.select_largest(np.ascontiguousarray(basis.W[:, 0]), K)])
            continue
        S = np.delete(S, ties(basis.without_each())[-1])


def _first(state: DeflatedOperator, pencil: Pencil, seed: list[int]) -> int | None:
    """The variable that explains most by itself or, of several, together with another; None if none does."""
    op = state.operator
    if state.diagonal is None:
        return int(np.argmax(np.abs(power_start(op, np.random.default_rng(seed)))))
    diagonal, square = np.ascontiguousarray(state.diagonal, np.float64), pencil.diagonal(op.p)
    counts = square > pencil.least
    if not counts.any():
        return None
    promise = np.where(counts, diagonal / np.where(counts, square, 1), -np.inf)
    tied = ties(promise, TIE_TOLERANCE if op.dtype == np.float64 else 1e-6)
    if len(tied) == 1 or promise[tied[0]] == 0:
        return int(tied[0])
    room = max(16, min(TIED_VARIABLES, int(TIE_WORK / ((1 if op.symmetric_form else op.m) * op.p))))
    if len(tied) > room:
        weight = np.abs(power_start(op, np.random.default_rng(seed)))
        tied = np.sort(tied[_core.select_largest(weight[tied], room)])
    chosen, best = int(tied[0]), -np.inf
    for start in range(0, len(tied), 4):
        part = tied[start : start + 4]
        for i, row in zip(part, rows_together(op, part), strict=True):
            one, others = np.array([i]), np.delete(np.arange(op.p), i)
            basis, C = pencil.basis(diagonal[[[i]]], one), np.ascontiguousarray(row[None])
            pair = pencil.bordered_eigenvalues(C, one, others, diagonal, basis).max()
            if pair > best + TIE_TOLERANCE * abs(best) or best == -np.inf:
                chosen, best = int(i), pair
    return chosen
