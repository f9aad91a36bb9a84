"""The covariance of data in blocks of rows as an operator, with the columns of A that are kept.

`Gram` is A before any deflation. It answers from columns and submatrices that it keeps, or by a pass over the
blocks. `BlockOperator` adds the deflations, and `BlocksWorkingSet` is the working set of such data.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .. import _core
from .._limits import (
    BLOCKS_SUBMATRIX_ORDER,
    COLUMNS_AT_A_TIME,
    FETCH_ALL_ORDER,
    FETCHED_NONZEROS,
    FIELD_ORDER,
    FIELD_PROBE,
    FIELD_SOME,
    FORMING_PASSES,
    GRAM_BLOCKS_ORDER,
    KEPT_BYTES,
    LIKELY_BYTES,
    MEMBERS_WORK,
    PASS_COLUMNS,
    RECENT_PRODUCTS,
    SUBMATRIX_ORDER,
)
from .._records import record
from .._types import AnyArray, Array, DType, Index, Mask, Names
from .._validation import float_type, is_sparse
from ..linalg.orthogonal import symmetrized
from ..linalg.scaling import columns_with_entries, eps_of, union, with_entries
from . import gram
from .base import DataStorage
from .blocks import Combine, RowBlocks, as_kernel_input, concatenated, locate_not_finite, sum_parts
from .deflation import DeflatedOperator, LowRank
from .dense import DenseData
from .field import in_runs, variances_tie
from .moments import all_moments, statistics
from .partition import row_blocks
from .problem import Affine, Problem, Screening
from .sparse import CompressedData
from .statistics import Standardization, Statistics, merged
from .working_set import Vector, WorkingSet

# ---- questions to the operator of one block, which is an operator of data in memory


Question = Callable[..., Any]  # called with an operator, and what else the question needs


def _answer(block: Any, own: tuple[Any, ...], affine: Affine, question: Question, *given: Any) -> Any:
    """Return the answer of the operator of some rows in memory.

    `own` has the weights of these rows, and then arrays whose rows go with them.
    """
    row_weight, *rows = own
    return question(affine._replace(row_weight=row_weight).operator(as_kernel_input(block)), *rows, *given)


def _products(op: _core.Operator, index: Index, V: AnyArray | None) -> AnyArray:
    """Return A[:, index] V, or A[:, index] without V."""
    if V is not None and V.shape[1] == 1:
        return op.apply(index, np.ascontiguousarray(V[:, 0]))[:, None]
    if 4 * len(index) <= op.p:
        C = op.columns(index)
        return op.backward_block((C if V is None else V.T @ C).T)
    full = np.zeros((op.p, len(index) if V is None else V.shape[1]), op.dtype, order="F")
    full[index] = np.eye(len(index)) if V is None else V
    return op.apply_block(full)


def _first_rows(op: _core.Operator, index: Index, count: int) -> AnyArray:
    """Return the first `count` rows of A[index, index]."""
    C, rows = op.columns(index), np.empty((count, len(index)), op.dtype)
    _core.matrix_product(C[:count], None, op.factor, rows[:, :count])
    _core.matrix_product(C[:count], C[count:], op.factor, rows[:, count:])
    return rows


def _runs(op: _core.Operator, sorts: Index) -> AnyArray:
    """Return A between the variables of each run of each sort, as one array."""
    return np.stack([A.copy() for A in in_runs(op, sorts)])


@record
class Gram:
    """A without deflation: products, columns and submatrices from passes over the blocks.

    It belongs to one call of a solver, and what it keeps changes during the call.
    """

    blocks: RowBlocks
    dtype: DType
    affine: Affine

    def __post_init__(self) -> None:
        dtype, p = self.dtype, self.blocks.shape[1]
        self.p: int = p
        self.each: list[Any] = self.blocks.placed(self.affine.row_weight)
        self.diagonal: AnyArray = np.zeros(p, dtype)
        self.promise: AnyArray = self.diagonal  # of variables, to be asked for soon
        self.column: dict[int, AnyArray] = {}  # the columns of A that are kept,
        self.known: Mask = np.zeros(p, bool)  # and for which variables
        self.expected: Index = np.empty(0, np.intp)  # variables that will be asked for after the first,
        self.noise = False  # whether a component was no stronger, so that races ask for many columns
        self._forget()
        self.formed: bool = False  # whether all of A is kept
        self.stored: float = float(p)  # entries of a row
        self.alone: int = 0  # how many products bring no columns to keep
        column = p * dtype.itemsize
        self.capacity: int = min(p, KEPT_BYTES // column)
        self.few: int = min(FETCHED_NONZEROS, self.capacity)  # nonzeros of a vector whose columns may be kept
        self.likely: int = LIKELY_BYTES // column  # columns that cost little beside what is asked for
        kept = min(max(1, self.likely), RECENT_PRODUCTS)
        self.recent: deque[tuple[Index, AnyArray, AnyArray]] = deque(maxlen=kept)
        self.cost: float = 0.0  # what the passes so far have cost, in columns of A
        self.debt: int = 0  # products that kept columns would have saved

    def _forget(self) -> None:
        """Keep A between no variables."""
        self.members: Index = np.empty(0, np.intp)  # some variables,
        self.part: tuple[Index, AnyArray] = (  # the position of each among them, and A between them
            np.full(self.p, -1, np.intp),
            np.empty((0, 0), self.dtype),
        )

    def forward(self, v: AnyArray) -> AnyArray:
        """Return A v, as the kernels ask for it."""
        y = self.block(v[:, None])[:, 0]
        self.promise = np.abs(y)
        return np.ascontiguousarray(y)

    def block(self, V: AnyArray) -> AnyArray:
        """Return A V, as the kernels ask for it."""
        # By recent products, by columns that are kept, or by a pass
        index = np.flatnonzero(V.any(axis=1))
        V = V[index]
        if len(index) == 0:
            return np.zeros((self.p, V.shape[1]), self.dtype)
        apart = 4 * eps_of(self.dtype) * np.abs(V).max()  # how far rounding may move the same vector
        for known, values, Y in self.recent if V.shape[1] == 1 else ():
            if np.array_equal(known, index) and np.abs(values - V).max() <= apart:
                return Y.copy()
        keep, self.alone = self.alone == 0, max(self.alone - 1, 0)
        if self.known[index].all() or (keep and self.ensure_columns(index)):
            return (V.T @ self._rows(index)).T
        self.cost += PASS_COLUMNS * V.shape[1]
        if keep and V.shape[1] == 1 and len(index) <= min(self.few, 2 * COLUMNS_AT_A_TIME):
            return self._with_heaviest(index, V)
        Y = self._times(index, V)
        if V.shape[1] <= RECENT_PRODUCTS:
            self._remember(index, V, Y)
        return Y

    def _remember(self, index: Index, V: AnyArray, Y: AnyArray) -> None:
        """Keep the products Y with the columns of V, which a solver may ask for again."""
        for c in range(V.shape[1]):
            used = np.flatnonzero(V[:, c])
            self.recent.append((index[used], V[used, c : c + 1], Y[:, c : c + 1].copy()))

    def _with_heaviest(self, index: Index, v: AnyArray) -> AnyArray:
        """Return A[:, index] v, and keep columns of its largest entries, which come in the same pass.

        A step of a solver leads to these variables, so that their columns are likely to be asked for.
        """
        count = min(COLUMNS_AT_A_TIME // 2 - 1, len(index), self.likely)
        chosen = index[_core.select_largest(np.ascontiguousarray(v[:, 0]), count)] if count else index[:0]
        joining = chosen[~self.known[chosen]]
        Y = self._times(index, np.hstack((v, (index[:, None] == joining).astype(self.dtype))))
        self._keep(joining, joining, Y[:, 1:])
        self._remember(index, v, Y)
        return Y[:, :1]

    def asked(
        self, combine: Combine, question: Question, *given: Any, rows: Any = (), entries: int = 0
    ) -> Any:
        """Return what the operators of all blocks answer to a question, combined, in one pass.

        `rows` has arrays of n rows; each block gets its part of them. `entries` is the size of an answer.
        """
        sides = self.affine._replace(row_weight=None), question, *given
        each = list(zip(self.each, *map(self.blocks.split, rows), strict=True))
        return self.blocks.reduced(combine, _answer, *sides, each=each, entries=entries)

    def summed(self, question: Question, *given: Any, rows: Any = (), entries: int = 0) -> AnyArray:
        """Return the sum of the answers."""
        total = self.asked(sum_parts, question, *given, rows=rows, entries=entries)
        return np.asarray(total, self.dtype)

    def _times(self, index: Index, V: AnyArray | None) -> AnyArray:
        """Return A[:, index] V, or A[:, index] without V, by one pass."""
        count = len(index) if V is None else V.shape[1]
        return self.summed(_products, index, V, entries=self.p * count)

    def ensure_columns(self, index: Index) -> bool:
        """Whether these columns are kept, after a pass for them if that pays."""
        missing = index[~self.known[index]]
        if len(missing) == 0:
            return True
        if (self.p <= FETCH_ALL_ORDER or self.cost >= self.p) and self.form():
            return True
        if len(index) > self.few:
            return False
        if len(missing) > COLUMNS_AT_A_TIME + 4 * self.debt:
            self.debt += 1
            return False
        self.debt = 0
        self._fetch(index, missing)
        return True

    def form(self) -> bool:
        """Form A if there is room for it; whether it is formed.

        If blocks have no room for all of it, each pass forms some rows of its upper half.
        """
        everything, p = np.arange(self.p), self.p
        passes = next((m for m in FORMING_PASSES if self.blocks.has_room(8 * p * -(-p // m))), None)
        if self.formed or passes is None or p > self.capacity:
            return self.formed
        step = -(-p // passes)
        self.column, self.known[:] = {}, False
        whole = np.empty((p, p) if passes > 1 else (0, 0), self.dtype)
        for first in range(0, p, step):
            A = self.first_rows(everything[first:], min(step, p - first))
            if passes == 1:
                whole = A
                break
            rows = slice(first, first + step)
            whole[rows, first:], whole[first:, rows] = A, A.T
        self.formed = self.known[:] = True
        self.members, self.part = everything, (everything, whole)
        return True

    def _fetch(self, index: Index, missing: Index) -> None:
        """Keep the missing columns of these variables, and more of promise while they cost little."""
        more = min(-len(missing) % (COLUMNS_AT_A_TIME // 2), self.likely)
        free = np.setdiff1d(np.flatnonzero(~self.known), missing)
        if 0 < more <= min(len(free), self.capacity - len(index)):
            likely = _core.select_largest(self.promise[free], more)
            missing = union(missing, free[likely])
        self.cost += 3 * PASS_COLUMNS + len(missing)
        self._keep(index, missing, self._times(missing, None))

    def _keep(self, index: Index, joining: Index, columns: AnyArray) -> None:
        """Keep these columns of the joining variables, and those of `index` that are kept already."""
        if len(self.column) + len(joining) > self.capacity:  # the others go
            self.column = {j: self.column[j] for j in index.tolist() if j in self.column}
        self.column |= {j: column.copy() for j, column in zip(joining.tolist(), columns.T, strict=True)}
        self.known[:] = False
        self.known[list(self.column)] = True

    def _rows(self, index: Index, columns: Index | slice = slice(None)) -> AnyArray:
        """Return A[index, columns] from columns that are kept."""
        if self.formed:
            A = self.part[1]
            return A if len(index) == self.p else A[index]
        return np.stack([self.column[j][columns] for j in index.tolist()])

    def between(self, new: Index, index: Index) -> AnyArray:
        """Return A[new, index], by one pass unless this is known; `index` ends with `new`."""
        if (self.part[0][index] < 0).any() and self._have_columns(index) and not self.formed:
            rows = self._rows(new, index)
            return symmetrized(rows) if len(new) == len(index) else rows
        self._join(index)
        position, known = self.part
        if new is index:
            return _core.principal_submatrix(known, position[index])
        return known[np.ix_(position[new], position[index])]

    def in_runs(self, sorts: Index) -> AnyArray:
        """Return A between the variables of each run of each sort, by one pass."""
        return np.asarray(self.summed(_runs, sorts, entries=sorts.size * sorts.shape[2]), np.float32)

    def _have_columns(self, index: Index) -> bool:
        """Whether these columns are kept, after a pass for them if they serve more than A[index, index].

        They do if the next products of a search need no pass because the columns of its fields are kept.
        """
        missing = index[~self.known[index]]
        if len(missing) == 0:
            return True
        if (len(index) == self.p or self.p <= FETCH_ALL_ORDER) and self.form():
            return True
        # Columns pay if few are missing, or if the variables are those of a field in which searches race
        few = len(missing) <= COLUMNS_AT_A_TIME // 4 and len(index) <= self.few
        field = len(index) > FIELD_PROBE and self.capacity >= min(self.p, 2 * FIELD_SOME)
        field = field and (self.noise or 2 * len(index) > self.p)
        if not few and not (field and self.blocks.has_room(8 * self.p * len(missing))):
            return False
        self._fetch(index, missing)
        return True

    def _join(self, index: Index) -> None:
        """Let variables join those between which A is kept, after a pass for their rows if some are new.

        The first bring those that are expected. A few variables bring others of large variance with them: if
        more questions follow, as many as cost little beside the products of a search.
        """
        position, known = self.part
        new = index[position[index] < 0]
        if len(new) == 0:
            return
        if len(self.expected):
            new, self.expected = union(new, self.expected), self.expected[:0]
        elif len(index) <= FETCHED_NONZEROS:
            searching = len(self.members) > 0
            count = int(math.sqrt(MEMBERS_WORK * self.stored)) if searching else len(index) * 3 // 2
            if not variances_tie(self.diagonal, count):
                likely = _core.select_largest(self.diagonal, min(count, FIELD_SOME, self.p))
                new = union(new, likely[position[likely] < 0])
        # Begin anew if they become too many
        if len(self.members) + len(new) > FIELD_ORDER:
            self._forget()
            position, known = self.part
            new = index
        # The rows of the new variables, below and beside what is known
        rows = self.first_rows(np.concatenate((new, self.members)), len(new))
        square, beside = np.split(rows, [len(new)], axis=1)
        A = np.block([[known, beside.T], [beside, square]]) if len(known) else square
        self.members = np.concatenate((self.members, new))
        position[self.members] = np.arange(len(A))
        self.part = position, A

    def first_rows(self, index: Index, count: int) -> AnyArray:
        """Return the first `count` rows of A[index, index], by one pass."""
        k = len(index)
        if k > BLOCKS_SUBMATRIX_ORDER:
            raise ValueError(
                f"this needs the covariance of {k} variables at once, and X is in blocks of rows, of which "
                f"that of at most {BLOCKS_SUBMATRIX_ORDER} is formed"
            )
        if not self.blocks.together:
            return self.summed(_first_rows, index, count, entries=count * k)
        product = partial(gram.product_of_columns, count, self.affine.factor, self.blocks.together)
        return np.asarray(self.asked(product, _core.Operator.columns, index), self.dtype)


@record
class BlockOperator:
    """The operator that solvers see: `inner` for products, and `gram` with `removed` for submatrices.

    It is in symmetric form, since it acts on vectors of length p alone.
    """

    gram: Gram
    inner: _core.Operator
    removed: LowRank
    by_passes = True

    @property
    def block_rows(self) -> int:
        """The largest number of rows that are summed in the precision of the data."""
        blocks = self.gram.blocks
        return int(np.diff([*blocks.starts, self.n]).max()) + blocks.together

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def form(self, noise: bool) -> bool:
        """Form A if there is room for it, so that races may have all variables; whether it is formed.

        `noise` says that a component was no stronger than noise: races then ask for all columns.
        """
        self.gram.noise |= noise
        return (noise or self.p <= FIELD_ORDER) and self.gram.form()

    def unscreened(self) -> BlockOperator:
        return self

    def with_quotient(self) -> BlockOperator:
        return replace(self, inner=self.inner.with_quotient())

    def with_penalty(self, weight: float) -> BlockOperator:
        return replace(self, inner=self.inner.with_penalty(weight))

    def deflated(
        self, method: str, index: Index, value: AnyArray, image: AnyArray | None, amount: float
    ) -> BlockOperator:
        """Return the operator with one more term removed, from `inner` and from submatrices."""
        self.gram.debt = 0  # other variables follow
        inner = self.inner.deflated(method, index, value, image, amount)
        z = with_entries(self.p, index, value)
        w = z if image is None else np.asarray(image, np.float64)
        if method == "projection":  # the image does not have what earlier projections subtract from A z
            w = self.apply(index, value).astype(np.float64)
            amount = float(z @ w)
        term = LowRank.removal(method, amount, (z, w))
        return replace(self, inner=inner, removed=self.removed + term)

    def forward_block(self, V: AnyArray) -> AnyArray:
        """Return F V (n, b) by one pass, for data that are not deflated."""
        return self.gram.asked(concatenated, _core.Operator.forward_block, V)

    def backward_block(self, U: AnyArray) -> AnyArray:
        """Return F'U times factor (p, b) by one pass, for data that are not deflated."""
        return self.gram.summed(_core.Operator.backward_block, rows=(U,))

    def first_rows(self, index: Index, count: int) -> AnyArray:
        """Return the first `count` rows of A[index, index], deflated, which are not kept."""
        few, (_, A) = index[:count], self.gram.part
        G = A[np.ix_(few, index)] if self.gram.formed else self.gram.first_rows(index, count)
        return G + self.removed.rows(few, index)

    def submatrix(self, index: Index) -> AnyArray:
        """Return A[index, index], deflated."""
        G = self.gram.between(index, index)
        if not self.removed:
            return G
        G = G + self.removed.rows(index, index)
        return symmetrized(G).astype(self.dtype)


class BlocksWorkingSet(WorkingSet):
    """The working set of data in blocks of rows, without columns: passes form its Gram matrix.

    One check is one pass, for the products of several vectors with all columns.
    """

    operator: Any

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self._drop_columns()
        self.before: int = self.operator.gram.blocks.passes - 1  # passes before the one for the statistics

    def report(self, screening: Callable[[], Screening]) -> Screening:
        passes = self.operator.gram.blocks.passes - self.before
        return replace(super().report(screening), reads=float(passes))

    def _products(self, w: int, new: Index, out: AnyArray) -> None:
        out[...] = self.operator.gram.between(new, self.index)

    def entrants(self, state: DeflatedOperator, active: Index, vectors: Sequence[Vector]) -> list[Index]:
        """Return the variables that would enter, from those between which A is known, if there are any.

        Only if there are none does a pass check all columns.
        """
        members, (place, A) = self.operator.gram.members, self.operator.gram.part
        known = []
        for *x, level in vectors if state.by_loadings else ():
            used, v = self._without_loadings(state, *x)
            if (place[used] < 0).any():
                return super().entrants(state, active, vectors)
            y = A[place[used]].T @ v
            large = np.flatnonzero(np.abs(y) > level)
            known.append((members[large], y[large]))
        found = self._outside(state, active, known)
        return found if any(map(len, found)) else super().entrants(state, active, vectors)

    def _above(
        self, operator: _core.Operator, state: DeflatedOperator, vectors: Sequence[Vector]
    ) -> list[tuple[Index, AnyArray]]:
        """Return what `WorkingSet._above` does, by one pass for all vectors."""
        given = [(index, x) for index, x, _ in vectors]
        self.operator.gram.alone = 2  # this product and the next, for deflation, need not keep columns
        Y = operator.apply_block(columns_with_entries(operator.p, given, operator.dtype))
        large = [np.flatnonzero(np.abs(y) > level) for y, (*_, level) in zip(Y.T, vectors, strict=True)]
        return [(index, Y[index, c]) for c, index in enumerate(large)]

    def _without_loadings(
        self, state: DeflatedOperator, index: Index, entries: AnyArray
    ) -> tuple[Index, Array]:
        """Return (I - x_1 x_1') .. (I - x_t x_t') x by its nonzeros."""
        v = with_entries(len(self.index), self.position[index], entries)
        for variables, loading in reversed(state.loadings):
            at = self.position[variables]
            v[at] -= loading * (loading @ v[at])
        used = np.flatnonzero(v)
        used = used[np.argsort(self.index[used])]
        return self.index[used], v[used]


# ---- the storage


class BlockData(DataStorage):
    """Data in blocks of rows. Passes may run wherever the blocks are."""

    shape: tuple[int, int]
    dtype: DType
    names: Names
    cost: int

    def __init__(self, X: Any) -> None:
        self.blocks: RowBlocks = row_blocks(X)
        self.shape, self.dtype = self.blocks.shape, float_type(self.blocks.dtype)
        self.names, self.cost = self.blocks.names, self.shape[1]
        self.working_set: type[BlocksWorkingSet] | None = None if self.blocks.summed else BlocksWorkingSet

    def statistics(self, weight: Array | None, *scaled: Any) -> Statistics:
        self.blocks = self.blocks.held()
        found: Statistics = self.blocks.reduced(merged, statistics, *scaled, each=self.blocks.split(weight))
        return found if scaled else self._read(found)

    def _read(self, found: Statistics) -> Statistics:
        """Take what else the first pass tells, and return its statistics."""
        if not found.plain:
            self.blocks = self.blocks.aligned()
        self.cost = max(found.stored, self.shape[1])
        return found

    def gram_pays(self) -> bool:
        p = self.shape[1]
        return p <= GRAM_BLOCKS_ORDER and self.blocks.has_room(8 * p**2)

    def resembles_covariance(self) -> bool:
        n, p = self.shape
        if n != p or p > SUBMATRIX_ORDER or self.blocks.summed:
            return False
        X = self.blocks.whole()
        return (CompressedData(X) if is_sparse(X) else DenseData(X)).resembles_covariance()

    def raise_not_finite(self) -> None:
        locate_not_finite(self.blocks)

    def operator(self, affine: Affine) -> Any:
        columns = Gram(self.blocks, self.dtype, affine)
        inner = _core.products(columns, *self.shape, True, 1.0, self.dtype == np.float32)
        return BlockOperator(columns, inner, LowRank.none(columns.p))

    def problem(self, treatment: Standardization) -> Problem:
        """Return the problem; the pass for the statistics forms A too, if that is wanted."""
        if self.blocks.summed:
            if not self.blocks.n_samples:
                raise ValueError("X are the moments of no rows, or of rows without weight")
            treatment = replace(treatment, known_weight=self.blocks.n_samples)
        elif self.form is None:
            return super().problem(treatment)
        self.blocks = self.blocks.held()
        found, M, whole = all_moments(self.blocks, treatment.sample_weight)
        problem = self.problem_with(self._read(found), treatment)
        dense = whole is not None or found.stored == math.prod(self.shape)
        if self.blocks.summed:
            return replace(gram.with_moments(problem, found, M, treatment), data=None)
        if M is None or self.form is None or not gram.keeps_digits(problem, dense, self.form):
            return problem
        return gram.with_moments(problem, found, M, treatment)

    def made(self, affine: Affine, treatment: Standardization, **known: Any) -> Problem:
        problem = super().made(affine, treatment, **known)
        operator: Any = problem.operator
        operator.gram.stored = self.cost / self.shape[0]
        operator.gram.diagonal = operator.gram.promise = problem.variances.astype(self.dtype)
        return problem
