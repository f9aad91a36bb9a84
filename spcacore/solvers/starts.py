"""Where a search starts: from vectors, from samples, and from single variables.

The column of A of a single variable tells how much one step from there promises. From the variable j a search
comes in one step to the sparse vector that suits y = A e_j / sqrt(A_jj) best. What that promises is a lower
bound on the objective there. With k nonzeros x'Ax >= (x'y)^2, the sum of the k largest y_i^2; with
generalized power the bound is the objective itself at y. Variances alone do not tell where all are equal, as
in a correlation matrix.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import cache
from operator import itemgetter
from typing import Any

import numpy as np

from .. import _core
from .._limits import (
    CHOICE_STARTS,
    COLUMN_BLOCK,
    COLUMN_ORDER,
    COLUMN_STARTS_LEAST,
    COLUMN_WORK,
    EXTREME_ENTRIES,
    EXTREME_LEAST,
    EXTREME_SHARES,
    FIELD_ROUNDING,
    KRYLOV_WORK,
    PART_ENTRIES,
    RANDOM_ENTRIES,
    RANDOM_LEAST,
    RANDOM_LEFT,
    RANDOM_SINGLE,
    SAME_ENDS,
    SOLVER_TOL,
    START_STEPS,
    START_WORK,
    VARIANCE_TIE,
    WORKING_SET_FACTOR,
    WORKING_SET_PROBES,
    WORKING_SET_START,
    slices,
)
from .._records import record
from .._types import AnyArray, Array, DType, Index
from .._validation import require_entries
from ..linalg.eigen import largest_eigenpairs, products_of
from ..linalg.scaling import below_range, columns_with_entries, descending, roots, union
from ..operators.deflation import DeflatedOperator
from ..operators.field import Field, can_be_formed, ground_of, variances_tie
from ..operators.gram import largest_submatrix
from ..operators.statistics import extreme_rows, most_extreme
from ..supports.admissible import Supports
from .refitting import Steps, leading_vector
from .solution import Report, Solution

Start = tuple[Index, AnyArray, tuple[int, ...]]  # nonzeros by index and entries; cardinalities to run through


def from_variable(j: Any, dtype: DType, *path: int) -> Start:
    """Return the start from a single variable."""
    return np.array([j]), np.ones(1, dtype), path


def search_starts(state: DeflatedOperator, k: int, start: Any, n_starts: int | None) -> Iterator[Start]:
    """Yield the nonzeros of each start, and the cardinalities to run through from there.

    If `start` is the component of a similar problem, it comes before the default starts; with 0 of these it
    is the only one.
    """
    op, diagonal = state.operator, variance_alone(state)
    p, dtype = op.p, op.dtype
    rng = cache(lambda: np.random.default_rng(state.seed))
    if isinstance(start, Solution):
        yield start.index, start.entries, (k,)
        if n_starts == 0:
            return
        start = None
    if isinstance(start, np.ndarray):
        index = _core.select_largest(start, k)
        yield index, start[index].astype(dtype), (k,)
    elif start == "diagonal":
        require_entries(state.problem, "start='diagonal'")
        assert diagonal is not None
        yield from_variable(np.argmax(diagonal), dtype, k)
    elif start == "eigenvector":
        vector, _ = leading_vector(op, np.arange(p), power_start(op, rng()))
        yield np.arange(p), vector, tuple(min(c * k, p) for c in (8, 4, 2, 1))
    else:
        # The submatrix of the most promising variables: by variances or, where these tie, by dense vectors
        if variances_tie(diagonal, min(4 * k, p)):
            dense, directions = _dense_directions(state, rng())
            yield _leading_start(state, dense, k)
            del dense
            yield _leading_start(state, directions[0], k)
            index = _core.select_largest(directions[0], k)
            yield index, directions[0][index], (k,)
            for j in sorted({int(np.argmax(np.abs(direction))) for direction in directions}):
                yield from_variable(j, dtype, k)
            del directions
        else:
            yield _leading_start(state, diagonal, k)
        if n_starts is None:
            # As many more as cost little; a product that reads the data costs the same for a sparse vector
            by_rows = state.problem.n_samples is not None and not state.problem.is_matrix
            runs = 0 if diagonal is None else START_WORK / (20 * state.problem.cost * (1 if by_rows else k))
            n_starts = 1 + min(CHOICE_STARTS if state.supports.shapes else p, int(runs))
        # Single variables of large variance, then random vectors
        singles = 0
        if diagonal is not None and n_starts > 1:
            singles = min(n_starts - 1, p)
            yield from (from_variable(j, dtype, k) for j in largest_alone(diagonal, singles, rng))
        for _ in range(n_starts - 1 - singles):
            yield np.arange(p), rng().standard_normal(p).astype(dtype), (k,)


def variance_alone(state: DeflatedOperator) -> AnyArray | None:
    """Return what each variable explains by itself, or None if variances are not known.

    Those that tie with the largest are made equal to it, so that no rounding chooses among them.
    """
    if state.diagonal is None:
        return None
    promise = np.maximum(state.diagonal, 0)  # an indefinite matrix may have negative entries there
    if state.quotient:
        outside = 1 - sum(q**2 for q in state.basis)
        kept = outside > 1e-3
        promise = np.where(kept, promise / np.where(kept, outside, 1), 0)
    return tied(promise)


def tied(promise: AnyArray) -> AnyArray:
    """Return these numbers, with those that tie with the largest, but for rounding, made equal to it."""
    largest = promise.max()
    return np.where(promise >= (1 - VARIANCE_TIE) * largest, largest, promise)


def largest_alone(promise: AnyArray, count: int, rng: Callable[[], np.random.Generator]) -> Index:
    """Return the `count` variables that promise most, the best first.

    Where more than `count` tie, return any of them: the first ones may be neighbors, which tell the same.
    """
    chosen = _core.select_largest(promise, count)
    equal = np.flatnonzero(promise == promise.max())
    if 1 < count < len(equal):
        return rng().choice(equal, count, replace=False)
    return chosen[descending(promise[chosen])]


def _leading_start(state: DeflatedOperator, promise: AnyArray | None, k: int) -> Start:
    """Return the start near the leading eigenvector of the 4k most promising variables."""
    op = state.operator
    width = min(op.p, 4 * k, largest_submatrix(op))
    if width < k or promise is None:
        return np.arange(op.p), np.ones(op.p, op.dtype), (k,)
    index = _core.select_largest(promise, width)
    multiply, diagonal = _products_inside(state, index)
    vector = np.zeros(width, diagonal.dtype)
    vector[np.argmax(tied(diagonal))] = 1  # the first of a tie
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
    """Return a function that multiplies by a multiple of A[index, index], and the diagonal of that multiple.

    The function may compute in any precision.
    """
    op, deflation = state.operator, state.deflation
    small = len(index) <= 4 * START_STEPS
    if small or op.symmetric_form or not deflation.semidefinite:
        G = state.submatrix(index)
        return G.dot, G.diagonal()
    if op.in_memory and not op.dense and can_be_formed(state):
        removed = [variables for variables, _ in state.loadings]
        field = Field(state.problem, union(index, *removed))
        if field.without(state):
            G = field.among(index)
            return G.dot, G.diagonal()
    C = op.columns(index).astype(np.float32, copy=False)
    return lambda v: C @ (v @ C), np.einsum("ij,ij->i", C, C)


def _dense_directions(state: DeflatedOperator, rng: np.random.Generator) -> tuple[AnyArray, AnyArray]:
    """Return a `power_start`, and as rows the leading eigenvectors of A to a few digits; at least one."""
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
    """Return a dense vector near the leading eigenspace, by eight power steps from a random one."""
    v = rng.standard_normal(op.p).astype(op.dtype)
    for _ in range(8):
        norm = np.linalg.norm(v)
        if norm == 0:
            break
        v = op.apply(None, np.ascontiguousarray(v / norm, op.dtype))
    return v if v.any() else np.ones(op.p, op.dtype)


def promising_variables(state: DeflatedOperator, count: int) -> Index:
    """Return the variables of largest variance or, where these tie, of largest weight in dense vectors."""
    op, diagonal = state.operator, variance_alone(state)
    count = min(count, op.p)
    if diagonal is not None and not variances_tie(diagonal, count):
        return _core.select_largest(diagonal, count)
    dense, directions = _dense_directions(state, np.random.default_rng(state.seed))
    return union(*(_core.select_largest(np.ascontiguousarray(v), count // 2) for v in (dense, directions[0])))


def extreme_samples(state: DeflatedOperator, k: int, value: float) -> Iterator[Index]:
    """Yield the k variables with the largest entries of samples in which these may explain most of `value`.

    As a variable leads in one step to the largest entries of its column of A, a sample x_i leads to its own
    largest entries. By themselves these explain the sum of the k largest s_ij = x_ij^2 / (n - 1). For rare
    counts and heavy tails that may be most of a component, and other variables do not tell of it.

    Samples are chosen by the lesser of two bounds k t + sum_j (s_ij - t)_+, for two levels t. The nearer t is
    to the k-th largest s_ij, the better the bound. Variables of earlier components do not count.
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
    given = index, k, levels
    found = op.gram.asked(most_extreme, extreme_rows, *given) if op.by_passes else extreme_rows(op, *given)
    for square in found[1]:
        for variables in before:
            square[variables] = 0
        support = _core.select_largest(square, k)
        if square[support].sum() >= EXTREME_LEAST * value:
            yield support


def ends_of_columns(state: DeflatedOperator, k: int, index: Index) -> list[tuple[Index, float]]:
    """Return the supports to which three steps from each of these columns of A lead, with bounds; best first.

    All variables take part in a step, from x to T_k(y), y = A x. So one column tells of a support that it
    belongs to, although the others are not known. The next x'Ax is at least ||T_k(y)||^2 / x'y, as in the
    first step, from e_j. Those of different supports for which that is largest go on, fewer in each step.
    """
    op: Any = state.operator.unscreened()
    factored = op.in_memory and op.dense and not op.symmetric_form
    factored &= state.deflation.semidefinite or not state.loadings
    images = _images if factored else _products
    one, width = np.ones(1, op.dtype), max(1, RANDOM_ENTRIES // (state.p if factored else 2 * state.p))
    found = [(0.0, index[i : i + 1], one) for i in range(len(index))]
    for share in RANDOM_LEFT:
        left = found[: max(RANDOM_LEAST, round(share * len(index)))]
        reached: dict[bytes, tuple[float, Index, AnyArray]] = {}
        for first in range(0, len(left), width):
            vectors = [(S, x) for _, S, x in left[first : first + width]]
            for (S, x), y in zip(vectors, images(op, vectors), strict=True):
                T = _core.select_largest(y, k)
                square, product = float(y[T] @ y[T]), float(x @ y[S])
                if square > 0 and product > 0:
                    new = (y[T] / math.sqrt(square)).astype(op.dtype, copy=False)
                    reached[T.tobytes()] = square / product, T, new
            del y  # a row, which keeps all of them in memory
        found = sorted(reached.values(), key=itemgetter(0), reverse=True)
    return [(S, bound) for bound, S, _ in found]


def _products(op: Any, vectors: list[tuple[Index, AnyArray]]) -> AnyArray:
    """Return A x, as rows, for these sparse vectors."""
    return np.ascontiguousarray(op.apply_block(columns_with_entries(op.p, vectors, op.dtype)).T)


def _images(op: Any, vectors: list[tuple[Index, AnyArray]]) -> AnyArray:
    """Return the same where A = F'F for dense F in memory; many in single precision."""
    U = np.stack([x @ op.columns(S) for S, x in vectors])
    if len(U) < RANDOM_SINGLE:
        return np.ascontiguousarray(op.backward_block(U.T).T)
    U = (U * op.factor).astype(np.float32)
    Y = np.empty((len(U), op.p), np.float32)
    for part in slices(op.p, op.m, PART_ENTRIES):
        Y[:, part] = U @ op.columns(np.arange(part.start, part.stop)).astype(np.float32).T
    return Y


@record
class LargestEntries:
    """The promise of columns where a unit vector of `count` nonzeros is sought."""

    count: int

    def values(self, Y: Array) -> Array:
        """Return the lower bound on the objective from each row of Y."""
        return np.square(_core.largest_norms(Y, np.arange(len(Y)), min(self.count, Y.shape[1])))

    def reached(self, y: Array) -> Index:
        """Return the variables to which a step leads."""
        return _core.select_largest(np.ascontiguousarray(y), min(self.count, len(y)))


@record
class ThresholdedEntries:
    """The promise of columns for generalized power at a threshold, by the l0 or the l1 norm."""

    l0: bool
    threshold: float

    def values(self, Y: Array) -> Array:
        if self.l0:
            return np.maximum(Y * Y - self.threshold, 0).sum(axis=1)
        excess = np.maximum(np.abs(Y) - self.threshold, 0)
        return np.einsum("ij,ij->i", excess, excess)

    def reached(self, y: Array) -> Index:
        return np.flatnonzero((y * y if self.l0 else np.abs(y)) > self.threshold)


@record
class AllowedEntries:
    """The promise of columns where a unit vector on an allowed support is sought."""

    supports: Supports

    def values(self, Y: Array) -> Array:
        """Return the lower bound from each row of Y or from its negative, whichever is larger."""
        values = self._values(Y)
        return values if self.supports.signs is None else np.maximum(values, self._values(-Y))

    def _values(self, Y: Array) -> Array:
        """Return the lower bound from each row of Y, by its entries of the asked signs."""
        supports = self.supports
        weight = supports.per_unit(np.square(supports.projected(Y)).T)
        free = supports.fitting(supports.included, supports.room)
        return weight[supports.included].sum(axis=0) + supports.filled(
            weight, free, supports.left(supports.included)
        )

    def reached(self, y: Array) -> Index:
        return self.supports.truncated(y, self.supports.room)


Promise = LargestEntries | ThresholdedEntries | AllowedEntries


def promising_columns(A: Array, promise: Promise, count: int) -> Index:
    """Return variables of a symmetric matrix by decreasing promise; none is reached from an earlier one.

    Those that are reached from an earlier one would mostly lead to the same end.
    """
    # The promise of each row y = A e_j / sqrt(a_jj)
    diagonal = np.maximum(A.diagonal(), 0)
    unit = np.zeros_like(diagonal)
    np.divide(1, np.sqrt(diagonal), out=unit, where=diagonal > 0)
    value = np.zeros(len(A))
    for start in range(0, len(A), COLUMN_BLOCK):
        rows = slice(start, start + COLUMN_BLOCK)
        value[rows] = promise.values(A[rows] * unit[rows, None])
    # The best ones, without those that a step from a better one reaches
    chosen: list[int] = []
    passed = ~(value > 0)
    for j in descending(value):
        if len(chosen) == count or passed[j]:
            if len(chosen) == count:
                break
            continue
        chosen.append(int(j))
        passed[promise.reached(A[j] * unit[j])] = True
    return np.array(chosen, np.intp)


@record
class Columns:
    """A, deflated, between the variables whose columns are compared as starts."""

    matrix: Array
    among: Index
    dtype: DType  # the operator's, which the matrix need not have

    @classmethod
    def of(cls, state: DeflatedOperator) -> Columns | None:
        """Return A between all variables, or between as many as it is quickly formed for.

        None if only products with A are known. Unless A is a matrix in memory already, it is a field where
        that is possible: in single precision, and formed once in a call.
        """
        op, p = state.operator, state.p
        if state.diagonal is None or op.by_passes or state.problem.filled is not None:
            return None
        formed = op.dense and not op.symmetric_form
        order = min(COLUMN_ORDER, int((COLUMN_WORK / op.m) ** 0.5)) if formed else COLUMN_ORDER
        ground = ground_of(state)
        if p <= order and op.symmetric_form:
            every = np.arange(p)
            return cls(state.submatrix(every) if state.matrix is None else state.matrix, every, op.dtype)
        field = ground.field(state, order, False) if can_be_formed(state) else None
        if field is not None:
            return cls(field.matrix, field.index, op.dtype)
        among = np.arange(p) if p <= order else ground.some(state, order, False)
        return cls(state.submatrix(among), among, op.dtype)

    def neighbors(self, promise: Promise, count: int) -> Index:
        """Return promising variables, and those to which a step from each of them leads."""
        unit = roots(self.matrix.diagonal())
        chosen = promising_columns(self.matrix, promise, count)
        steps = (promise.reached(self.matrix[j] / unit[j]) for j in chosen)
        return self.among[union(chosen, *steps)]

    def ends(
        self,
        promise: Promise,
        count: int,
        steps: Steps,
        max_iter: int,
        hook: Report | None = None,
    ) -> list[Start]:
        """Return starts where runs from promising columns end, the best first.

        The runs are in this matrix alone. A search that starts from these ends reads the data for few runs.
        Ends with equal objectives, but for rounding, are one, and count by the best of them: supports of
        hundreds of variables differ in a few.
        """
        operator = _core.dense(np.ascontiguousarray(self.matrix), True)
        limits = max_iter, SOLVER_TOL, hook
        found: list[tuple[float, Solution, int]] = []  # objectives, ends and how many runs came there
        for j in promising_columns(self.matrix, promise, count):
            side = np.full(1, 1 if steps.supports.sides(self.matrix[j]) else -1, operator.dtype)
            x, objective = steps.ascend(operator, np.array([j]), side, *limits)
            if x is None or len(x.index) == 0:
                continue
            new, times = (objective, x), 1
            for i, (value, end, runs) in enumerate(found):
                if abs(objective - value) <= FIELD_ROUNDING * value:
                    new, times = max(new, (value, end), key=itemgetter(0)), runs + 1
                    del found[i]
                    break
            found.append((*new, times))
            found.sort(key=itemgetter(0), reverse=True)
            if found[0][2] > SAME_ENDS:
                break
        orders = ((end, np.argsort(self.among[end.index])) for _, end, _ in found)
        return [
            (self.among[end.index[o]], end.entries[o].astype(self.dtype), (steps.count,)) for end, o in orders
        ]


def fewest_nonzeros(l1_bound: float) -> int:
    """Return the least number of nonzeros of a unit vector with this l1 norm: its square, rounded up."""
    return math.ceil(l1_bound**2 - 1e-9)


def begin_among(state: DeflatedOperator, kind: str, sparsity: Any) -> Index:
    """Return the variables with which a working set begins, ascending.

    `kind` says whether `sparsity` is a cardinality, an l1 bound or a penalty. The set begins with the most
    promising variables. If the cardinality is not known, it also has the variables that a step from a few of
    them leads to, and those that a step from the most promising columns leads to.
    """
    if kind == "cardinality":
        return promising_variables(state, WORKING_SET_FACTOR * sparsity)
    op, count = state.operator, WORKING_SET_START
    if kind == "l1_bound":
        count = max(count, WORKING_SET_FACTOR * fewest_nonzeros(sparsity))
    count = min(count, state.p)
    chosen, one = [promising_variables(state, count)], np.ones(1, op.dtype)
    probes = min(WORKING_SET_PROBES, int(START_WORK / (20 * state.problem.cost)))
    variances = state.variances[chosen[0]]
    for j in chosen[0][descending(variances)[:probes]]:
        y = op.apply(np.array([j]), one)
        chosen.append(_core.select_largest(y, -(-count // WORKING_SET_PROBES)))
    columns = Columns.of(state)
    if columns is not None:
        largest = LargestEntries(-(-count // COLUMN_STARTS_LEAST))
        chosen.append(columns.neighbors(largest, COLUMN_STARTS_LEAST))
    return union(*chosen)
