"""Where a search starts."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import numpy as np

from .. import _core
from .._limits import (
    CHOICE_STARTS,
    EXTREME_ENTRIES,
    EXTREME_LEAST,
    EXTREME_SHARES,
    KRYLOV_WORK,
    START_STEPS,
    START_WORK,
    VARIANCE_TIE,
)
from .._types import AnyArray, Index
from .._validation import require_entries
from ..linalg.eigen import largest_eigenpairs, products_of
from ..linalg.scaling import below_range, descending
from ..operators.deflation import DeflatedOperator
from ..operators.field import Field, can_be_formed, variances_tie
from ..operators.statistics import extreme_rows
from ..operators.submatrix import largest_submatrix
from .refitting import leading_vector
from .solution import Solution

Start = tuple[Index, AnyArray, tuple[int, ...]]


def search_starts(state: DeflatedOperator, k: int, start: Any, n_starts: int | None) -> Iterator[Start]:
    """Nonzeros of each start, and the cardinalities to run through from there.

    A solution of a problem nearby, as `start`, comes before the default ones.
    """
    op, diagonal = state.operator, variance_alone(state)
    p, dtype = op.p, op.dtype
    rng = cache(lambda: np.random.default_rng(state.seed))
    if isinstance(start, Solution):
        yield start.index, start.entries, (k,)
        start = None
    if isinstance(start, np.ndarray):
        index = _core.select_largest(start, k)
        yield index, start[index].astype(dtype), (k,)
    elif start == "diagonal":
        require_entries(state.problem, "start='diagonal'")
        assert diagonal is not None
        yield np.array([np.argmax(diagonal)]), np.ones(1, dtype), (k,)
    elif start == "eigenvector":
        vector, _ = leading_vector(op, np.arange(p), power_start(op, rng()))
        yield np.arange(p), vector, tuple(min(c * k, p) for c in (8, 4, 2, 1))
    else:
        if variances_tie(diagonal, min(4 * k, p)):  # then dense vectors say what is promising
            dense, directions = _dense_directions(state, rng())
            yield _leading_start(state, dense, k)
            del dense
            yield _leading_start(state, directions[0], k)
            index = _core.select_largest(directions[0], k)
            yield index, directions[0][index], (k,)
            for j in sorted({int(np.argmax(np.abs(direction))) for direction in directions}):
                yield np.array([j]), np.ones(1, dtype), (k,)
            del directions
        else:
            yield _leading_start(state, diagonal, k)
        if n_starts is None:
            # a product that reads the data costs the same for a sparse vector
            by_rows = state.problem.n_samples is not None and not state.problem.is_matrix
            runs = 0 if diagonal is None else START_WORK / (20 * state.problem.cost * (1 if by_rows else k))
            n_starts = 1 + min(CHOICE_STARTS if state.supports.shapes else p, int(runs))
        singles = 0
        if diagonal is not None and n_starts > 1:
            singles = min(n_starts - 1, p)
            order = largest_alone(diagonal, singles, rng)
            yield from ((order[i : i + 1], np.ones(1, dtype), (k,)) for i in range(len(order)))
        for _ in range(n_starts - 1 - singles):
            yield np.arange(p), rng().standard_normal(p).astype(dtype), (k,)


def variance_alone(state: DeflatedOperator) -> AnyArray | None:
    """What each variable explains by itself; as the largest if they tie, so that no rounding chooses."""
    if state.diagonal is None:
        return None
    promise = np.maximum(state.diagonal, 0)  # an indefinite matrix may have negative entries there
    if state.quotient:
        outside = 1 - sum(q**2 for q in state.basis)
        kept = outside > 1e-3
        promise = np.where(kept, promise / np.where(kept, outside, 1), 0)
    largest = promise.max()
    return np.where(promise >= (1 - VARIANCE_TIE) * largest, largest, promise)


def largest_alone(promise: AnyArray, count: int, rng: Callable[[], np.random.Generator]) -> Index:
    """So many variables that promise most, the best first.

    Of more than one, where more tie, any: the first of them may be neighbors, which tell the same.
    """
    chosen = _core.select_largest(promise, count)
    tied = np.flatnonzero(promise == promise.max())
    if 1 < count < len(tied):
        return rng().choice(tied, count, replace=False)
    return chosen[descending(promise[chosen])]


def _leading_start(state: DeflatedOperator, promise: AnyArray | None, k: int) -> Start:
    """Nearly the leading eigenvector of the submatrix of the 4k most promising variables."""
    op = state.operator
    width = min(op.p, 4 * k, largest_submatrix(op))
    if width < k or promise is None:
        return np.arange(op.p), np.ones(op.p, op.dtype), (k,)
    index = _core.select_largest(promise, width)
    multiply, diagonal = _products_inside(state, index)
    vector = np.zeros(width, diagonal.dtype)
    vector[np.argmax(diagonal >= (1 - VARIANCE_TIE) * diagonal.max())] = 1  # the first of a tie
    with below_range():
        vector = multiply(vector)
        for _ in range(START_STEPS):  # a whole decomposition would cost several products
            vector /= math.sqrt(vector.dot(vector)) or 1
            vector = multiply(vector)
    if not vector.any():
        vector = np.ones(width, op.dtype)
    return index, np.ascontiguousarray(vector, op.dtype), (k,)


def _products_inside(
    state: DeflatedOperator, index: Index
) -> tuple[Callable[[AnyArray], AnyArray], AnyArray]:
    """Products with A[index, index] or a multiple, in any precision, and its diagonal."""
    op, deflation = state.operator, state.deflation
    small = len(index) <= 4 * START_STEPS
    if small or op.symmetric_form or not deflation.semidefinite:
        G = state.submatrix(index)
        return G.dot, G.diagonal()
    if op.in_memory and not op.dense and can_be_formed(state):
        removed = [variables for variables, _ in state.loadings]
        field = Field(state.problem, np.unique(np.concatenate([index, *removed])))
        if field.without(state):
            G = field.among(index)
            return G.dot, G.diagonal()
    C = op.columns(index).astype(np.float32, copy=False)
    return lambda v: C @ (v @ C), np.einsum("ij,ij->i", C, C)


def _dense_directions(state: DeflatedOperator, rng: np.random.Generator) -> tuple[AnyArray, AnyArray]:
    """A `power_start`, and as rows the leading eigenvectors of the operator to a few digits; at least one."""
    op = state.operator
    start = power_start(op, rng)
    if op.p < 32:
        return start, start[None]
    from scipy.sparse.linalg import ArpackError

    count, basis = (8, 20) if state.problem.cost <= KRYLOV_WORK else (1, 4)
    try:
        vectors = largest_eigenpairs(products_of(op), count, v0=start, tol=1e-2, maxiter=5, ncv=basis)[1]
    except ArpackError:  # not converged, or no variance: the power steps will do
        return start, start[None]
    return start, np.ascontiguousarray(vectors.T[::-1], op.dtype)


def power_start(op: _core.Operator, rng: np.random.Generator) -> AnyArray:
    """A dense vector near the leading eigenspace, by eight power steps from a random one."""
    v = rng.standard_normal(op.p).astype(op.dtype)
    for _ in range(8):
        norm = np.linalg.norm(v)
        if norm == 0:
            break
        v = op.apply(None, np.ascontiguousarray(v / norm, op.dtype))
    return v if v.any() else np.ones(op.p, op.dtype)


def promising_variables(state: DeflatedOperator, count: int) -> Index:
    """The variables of largest variance or, where these tie, of largest weight in dense leading vectors."""
    op, diagonal = state.operator, variance_alone(state)
    count = min(count, op.p)
    if diagonal is not None and not variances_tie(diagonal, count):
        return _core.select_largest(diagonal, count)
    dense, directions = _dense_directions(state, np.random.default_rng(state.seed))
    return np.union1d(
        *(_core.select_largest(np.ascontiguousarray(v), count // 2) for v in (dense, directions[0]))
    )


def extreme_samples(state: DeflatedOperator, k: int, value: float) -> Iterator[Index]:
    """The k variables with the largest entries of samples in which these may explain most of `value`.

    As a variable leads in one step to the largest entries of its column of A, a sample x_i leads to those of
    its own, which explain by themselves the sum of the k largest s_ij = x_ij^2 / (n - 1). Of rare counts and
    of heavy tails that may be most of a component, and no other variables tell of it. Samples are chosen by
    the least of two bounds, k t + sum_j (s_ij - t)_+ for a level t: the nearer t is to the k-th largest s_ij,
    the better. Variables of earlier components do not count.
    """
    op: Any = state.problem.operator
    if state.problem.extreme is None or not (op.by_passes or op.in_memory):
        return
    op, extreme = op.unscreened(), state.problem.extreme().copy()
    before = [variables for variables, _ in state.loadings]
    for variables in before:
        extreme[variables] = 0
    levels, most = np.array(EXTREME_SHARES) * value / k, min(EXTREME_ENTRIES // op.n, op.p)
    if extreme[_core.select_largest(extreme, min(k, most))].sum() < k * levels[0]:
        return
    largest = _core.select_largest(extreme, most)
    index = largest[extreme[largest] >= levels[0]]
    find = op.extreme_rows if op.by_passes else partial(extreme_rows, op)
    for square in find(index, k, levels)[1]:
        for variables in before:
            square[variables] = 0
        support = _core.select_largest(square, k)
        if square[support].sum() >= EXTREME_LEAST * value:
            yield support
