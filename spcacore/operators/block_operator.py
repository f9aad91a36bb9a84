"""The covariance of data in blocks of rows as an operator, with the columns of A that are kept."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _core
from .._limits import (
    BLOCKS_SUBMATRIX_ORDER,
    COLUMNS_AT_A_TIME,
    DOUBLE_ORDER,
    FETCH_ALL_ORDER,
    FETCHED_NONZEROS,
    FIELD_ORDER,
    FIELD_PROBE,
    FIELD_SOME,
    FORMING_PASSES,
    KEPT_BYTES,
    LIKELY_BYTES,
    MEMBERS_WORK,
    PASS_COLUMNS,
    RECENT_PRODUCTS,
)
from .._records import record
from .._types import AnyArray, Array, DType, Index, Mask
from ..linalg.orthogonal import symmetrized
from ..linalg.scaling import beyond_range, eps_of, with_entries
from .base import Affine
from .block_tasks import backward, extreme_rows_of, forward, in_runs_of, products, submatrix, sum_parts
from .blocks import RowBlocks
from .deflation import DeflatedOperator, LowRank
from .problem import Problem, Screening
from .statistics import most_extreme
from .working_set import Vector, WorkingSet


@record
class Gram:
    """A without deflation: products, columns and submatrices from passes over the blocks.

    It belongs to one call of a solver, which changes what it keeps.
    """

    blocks: RowBlocks
    dtype: DType
    affine: Affine

    def __post_init__(self) -> None:
        affine = self.affine
        self.range: float = affine.range
        self.factor: float = affine.factor
        self.row_weight: AnyArray | None = affine.row_weight
        dtype, p = self.dtype, self.blocks.shape[1]
        self.p: int = p
        self.each: list[Any] = self.blocks.placed(self.row_weight)
        self.mean: AnyArray = np.zeros(p, dtype) if affine.mean is None else affine.mean
        self.weight: AnyArray = np.ones(p, dtype) if affine.weight is None else affine.weight
        self.diagonal: AnyArray = np.zeros(p, dtype)
        self.promise: AnyArray = self.diagonal  # of the variables, to be used soon
        self.column: dict[int, AnyArray] = {}  # those kept,
        self.known: Mask = np.zeros(p, bool)  # of these variables
        self.matrix: AnyArray | None = None  # A, once it is formed
        self.noise = False  # whether a component was no stronger, so that races ask for many columns
        self.members: Index = np.empty(0, np.intp)  # some variables,
        self.part: tuple[Index, AnyArray] = (
            np.full(p, -1, np.intp),
            np.empty((0, 0), dtype),
        )  # where each is, and A between them
        self.stored: float = float(p)  # entries of a row
        self.keeping: bool = True  # whether products may bring columns to keep,
        self.alone: bool = False  # but for the next one
        kept = min(max(1, LIKELY_BYTES // (p * dtype.itemsize)), RECENT_PRODUCTS)
        self.recent: deque[tuple[Index, AnyArray, AnyArray]] = deque(maxlen=kept)
        self.capacity: int = min(p, KEPT_BYTES // (p * dtype.itemsize))
        self.cost: float = 0.0  # of the passes so far, in columns of A
        self.debt: int = 0  # products that kept columns would have saved

    @contextmanager
    def by_products(self) -> Iterator[None]:
        """No columns are kept meanwhile, but the last products: those of a working set are seldom of the same
        variables, though what it ends with is asked for again."""
        self.keeping = False
        try:
            yield
        finally:
            self.keeping, self.alone = True, True

    def _is_alone(self, index: Index) -> bool:
        """Whether this may be the only product between two checks of a working set, of several variables."""
        alone, self.alone = self.alone, False
        return alone and len(index) > 1

    def forward(self, v: AnyArray) -> AnyArray:
        """A v, as the kernels ask for it."""
        y = self.block(v[:, None])[:, 0]
        self.promise = np.abs(y)
        return np.ascontiguousarray(y)

    def block(self, V: AnyArray) -> AnyArray:
        """A V, as the kernels ask for it."""
        index = np.flatnonzero(V.any(axis=1))
        return self._multiply(index, V[index])

    def _multiply(self, index: Index, V: AnyArray) -> AnyArray:
        """A[:, index] V."""
        if len(index) == 0:
            return np.zeros((self.p, V.shape[1]), self.dtype)
        apart = 4 * eps_of(self.dtype) * np.abs(V).max()  # where rounding may have it
        for known, values, Y in self.recent if V.shape[1] == 1 else ():
            if np.array_equal(known, index) and np.abs(values - V).max() <= apart:
                return Y.copy()
        if not self.known[index].all() and (not self.keeping or self._is_alone(index)):
            Y = self._times(index, V)
            if V.shape[1] == 1:
                self.recent.append((index, V, Y.copy()))
            return Y
        if self.ensure_columns(index):
            return (V.T @ self._rows(index)).T
        self.cost += PASS_COLUMNS * V.shape[1]
        joining = self._heaviest(index, V)
        if len(joining):
            unit = np.zeros((len(index), len(joining)), self.dtype)
            unit[np.searchsorted(index, joining), np.arange(len(joining))] = 1
            V = np.hstack((V, unit))
        Y = self._times(index, V)
        self._keep(joining, joining, Y[:, V.shape[1] - len(joining) :])
        return Y[:, : V.shape[1] - len(joining)]

    def products(self, vectors: list[tuple[Index, AnyArray]]) -> AnyArray:
        """A V by the nonzeros of each column of V, in one pass; each is among the last products then."""
        index = np.unique(np.concatenate([used for used, _ in vectors]))
        V = np.zeros((len(index), len(vectors)), self.dtype)
        for c, (used, v) in enumerate(vectors):
            V[np.searchsorted(index, used), c] = v
        with self.by_products():
            Y = self._multiply(index, V)
        for c, (used, _) in enumerate(vectors):
            entries = V[np.searchsorted(index, used), c : c + 1]
            self.recent.append((used, entries, Y[:, c : c + 1].copy()))
        return Y

    def _heaviest(self, index: Index, V: AnyArray) -> Index:
        """Variables of large weight in a single vector: where a step of a solver leads to, as a rule."""
        if V.shape[1] > 1 or len(index) > min(FETCHED_NONZEROS, self.capacity):
            return index[:0]
        count = -(-(len(index) // 4 + 1) // COLUMNS_AT_A_TIME) * COLUMNS_AT_A_TIME - 1
        count = min(count, len(index), LIKELY_BYTES // (self.p * self.dtype.itemsize))
        chosen = index[_core.select_largest(np.ascontiguousarray(V[:, 0]), count)] if count else index[:0]
        return chosen[~self.known[chosen]]

    def _weighted(self, index: Index, V: AnyArray) -> tuple[Index | None, AnyArray, AnyArray]:
        """What the blocks need for F[:, index] V."""
        W = V * (self.weight[index] * self.dtype.type(self.range))[:, None]
        few = 4 * len(index) <= self.p
        if not few:
            full = np.zeros((self.p, V.shape[1]), self.dtype, order="F")
            full[index] = W
        return index if few else None, W if few else full, self.mean[index] @ W

    def _times(self, index: Index, V: AnyArray) -> AnyArray:
        """A[:, index] V from the blocks."""
        return self._product(*self._weighted(index, V))

    def data_forward(self, V: AnyArray) -> AnyArray:
        """F V, (n, b)."""
        index = np.flatnonzero(V.any(axis=1))
        f = np.asarray(self.blocks.stacked(forward, *self._weighted(index, V[index]), self.range))
        return f if self.row_weight is None else f * self.row_weight[:, None]

    def data_backward(self, U: AnyArray) -> AnyArray:
        """F'U factor, (p, b)."""
        U = U * U.dtype.type(self.range) * U.dtype.type(self.factor)
        if self.row_weight is not None:
            U *= self.row_weight[:, None]
        return self._centered(*self.blocks.reduced(sum_parts, backward, each=self.blocks.split(U)))

    def _product(self, index: Index | None, W: AnyArray, shift: AnyArray) -> AnyArray:
        """Of the blocks, in one pass."""
        sides = index, W, shift, self.range, self.factor
        entries = self.p * len(shift)
        return self._centered(
            *self.blocks.reduced(sum_parts, products, *sides, each=self.each, entries=entries)
        )

    def _centered(self, Y: Array, total: Array) -> AnyArray:
        """Of what the blocks return, without their means, in the units of A."""
        with beyond_range():
            Y -= np.multiply.outer(self.mean.astype(np.float64), total)
            Y *= self.weight[:, None]
            Y *= self.range
            return np.asarray(Y, self.dtype)

    def ensure_columns(self, index: Index) -> bool:
        """Whether these columns are kept, after a pass where that pays."""
        missing = index[~self.known[index]]
        if len(missing) == 0:
            return True
        if self.maybe_form_gram():
            return True
        if len(index) > min(FETCHED_NONZEROS, self.capacity):
            return False
        if len(missing) > COLUMNS_AT_A_TIME + 16 * self.debt:
            self.debt += 1
            return False
        self.debt = 0
        self._fetch(index, missing)
        return True

    def maybe_form_gram(self) -> bool:
        """Form A where it is small, or would have cost no more than the passes so far."""
        p = self.p
        if self.capacity < p or (p > FETCH_ALL_ORDER and self.cost < p):
            return False
        return self._form()

    def form(self) -> bool:
        """Form A, if there is room for it; whether it is formed."""
        return self.matrix is not None or (self.p <= self.capacity and self._form())

    def _form(self) -> bool:
        """Form A, some rows of its upper half in a pass where the blocks have no room for all at once."""
        everything, p = np.arange(self.p), self.p
        passes = next((m for m in FORMING_PASSES if self.blocks.has_room(8 * p * -(-p // m))), None)
        if passes is None:
            return False
        step = -(-p // passes)
        self.column, self.known[:] = {}, False
        whole = np.empty((p, p) if passes > 1 else (0, 0), self.dtype)
        for first in range(0, p, step):
            A = self._submatrix(everything[first:], min(step, p - first))
            if passes == 1:
                whole = A
                break
            rows, square = slice(first, first + step), A[:, : len(A)]
            square[:] = symmetrized(square)
            whole[rows, first:], whole[first:, rows] = A, A.T
        self.matrix, self.known[:] = whole, True
        self._forget()
        return True

    def _fetch(self, index: Index, missing: Index) -> None:
        """Keep the missing columns of these variables, and some more while they cost little."""
        more = min(-len(missing) % COLUMNS_AT_A_TIME, LIKELY_BYTES // (self.p * self.dtype.itemsize))
        free = np.setdiff1d(np.flatnonzero(~self.known), missing)
        if 0 < more <= min(len(free), self.capacity - len(index)):
            likely = _core.select_largest(self.promise[free], more)
            missing = np.union1d(missing, free[likely])
        W = self.weight[missing] * self.dtype.type(self.range)
        self.cost += 3 * PASS_COLUMNS + len(missing)
        self._keep(index, missing, self._product(missing, W, self.mean[missing] * W))

    def _keep(self, index: Index, joining: Index, columns: AnyArray) -> None:
        """These columns, and those of `index` that are kept already."""
        if len(self.column) + len(joining) > self.capacity:  # the others go
            self.column = {j: self.column[j] for j in index.tolist() if j in self.column}
        self.column |= {j: column.copy() for j, column in zip(joining.tolist(), columns.T, strict=True)}
        self.known[:] = False
        self.known[list(self.column)] = True

    def _rows(self, index: Index, columns: Index | slice = slice(None)) -> AnyArray:
        """A[index, columns], of columns that are kept."""
        if self.matrix is None:
            return np.stack([self.column[j][columns] for j in index.tolist()])
        whole = len(index) == self.p
        return (self.matrix if whole else self.matrix[index])[:, columns]

    def submatrix(self, index: Index) -> AnyArray:
        """A[index, index]; without a pass where the columns are kept."""
        place = self.part[0][index]
        if (place >= 0).all():
            return _core.principal_submatrix(self.part[1], place)
        if not self._have_columns(index):
            self._join(index)
            return _core.principal_submatrix(self.part[1], self.part[0][index])
        if self.matrix is not None:
            return _core.principal_submatrix(self.matrix, index)
        G = self._rows(index, index)
        return symmetrized(G)

    def between(self, new: Index, index: Index) -> AnyArray:
        """A[new, index], in one pass; `index` ends with `new`."""
        if self._have_columns(index):
            return self._rows(new, index)
        self._join(index)
        position, known = self.part
        return known[np.ix_(position[new], position[index])]

    def in_runs(self, sorts: Index) -> AnyArray:
        """A between the variables of each run of each sort, in one pass."""
        entries = sorts.size * sorts.shape[2]
        sides = self.affine, sorts
        (G,) = self.blocks.reduced(sum_parts, in_runs_of, *sides, each=self.each, entries=entries)
        return np.asarray(G, np.float32)

    def _have_columns(self, index: Index) -> bool:
        """Whether these columns are kept, after a pass where they serve more than to be A[index, index].

        The next products of a search need no pass where the columns of its fields are kept.
        """
        missing = index[~self.known[index]]
        if len(missing) == 0:
            return True
        if (
            self._form() if len(index) == self.p <= self.capacity
            else self.p <= FETCH_ALL_ORDER and self.maybe_form_gram()
        ):  # fmt: skip
            return True
        few = len(missing) <= COLUMNS_AT_A_TIME // 4 and len(index) <= min(FETCHED_NONZEROS, self.capacity)
        field = FIELD_PROBE < len(index) <= self.capacity and self.races
        field = field and (self.noise or 2 * len(index) > self.p)
        if not few and not (field and self.blocks.has_room(8 * self.p * len(missing))):
            return False
        self._fetch(index, missing)
        return True

    @property
    def races(self) -> bool:
        """Whether there is room for the columns of all variables among which a search runs races."""
        return self.capacity >= min(self.p, 2 * FIELD_SOME)

    def _join(self, index: Index) -> None:
        """Let variables join those between which A is kept, after a pass where some are new.

        A few bring others of large variance: of a search, which asks again, as many as cost little beside its
        products.
        """
        position, known = self.part
        new, searching = index[position[index] < 0], len(self.members) > 0
        if len(new) == 0:
            return
        if len(index) <= FETCHED_NONZEROS:
            count = (
                min(FIELD_SOME, int(math.sqrt(MEMBERS_WORK * self.stored)))
                if searching
                else len(index) * 3 // 2
            )
            likely = _core.select_largest(self.diagonal, min(count, self.p))
            new = np.union1d(new, likely[position[likely] < 0])
        if len(self.members) + len(new) > FIELD_ORDER:
            self._forget()
            position, known = self.part
            new = index
        w, total = len(self.members), len(self.members) + len(new)
        rows = self._submatrix(np.concatenate((new, self.members)), len(new))
        A = np.empty((total, total), self.dtype)
        A[:w, :w] = known
        A[w:, :w] = rows[:, len(new) :]
        A[:w, w:] = A[w:, :w].T
        A[w:, w:] = (rows[:, : len(new)] + rows[:, : len(new)].T) / 2
        position[new] = np.arange(w, total)
        self.members, self.part = np.concatenate((self.members, new)), (position, A)

    def _forget(self) -> None:
        """Keep A between no variables."""
        self.members = self.members[:0]
        self.part = np.full(self.p, -1, np.intp), np.empty((0, 0), self.dtype)

    def _submatrix(self, index: Index, count: int) -> AnyArray:
        """The first rows of A[index, index]."""
        k = len(index)
        if k > BLOCKS_SUBMATRIX_ORDER:
            raise ValueError(
                f"this needs the covariance of {k} variables at once, and X is in blocks of rows, of which "
                f"that of at most {BLOCKS_SUBMATRIX_ORDER} is formed"
            )
        W = self.weight[index] * self.dtype.type(self.range)
        double = self.dtype == np.float64 or k <= DOUBLE_ORDER
        sides = index, count, W, self.mean[index] * W, self.range, double
        (G,) = self.blocks.reduced(sum_parts, submatrix, *sides, each=self.each, entries=count * k)
        G *= self.factor
        return np.asarray(G, self.dtype)


@record
class BlockOperator:
    """What solvers see: `_core.Operator` for the products, and A[S, S] or blocks of products in one pass.

    `symmetric_form` is True: it acts on vectors of length p alone. `n` is the number of samples.
    """

    gram: Gram
    inner: _core.Operator
    removed: LowRank
    dense: bool = False
    symmetric_form: bool = True
    by_passes: bool = True

    @property
    def n(self) -> int:
        return self.gram.blocks.shape[0]

    def __getattr__(self, name: str) -> Any:
        if name in ("outer", "row_weighted", "screened"):
            raise TypeError("this needs the data in memory, and X is in blocks of rows")
        return getattr(self.inner, name)

    @property
    def formed(self) -> bool:
        """Whether products need no pass."""
        return self.gram.matrix is not None

    def form(self, noise: bool) -> bool:
        """Make it so, if there is room, for races among all variables; of noise these ask for all columns."""
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
        inner = self.inner.deflated(method, index, value, image, amount)
        z = with_entries(self.p, index, value)
        w = z if image is None else np.asarray(image, np.float64)
        if method == "projection":  # the image lacks what earlier projections take of the product
            w = self.apply(index, value).astype(np.float64)
            amount = float(z @ w)
        term = LowRank.removal(method, amount, (z, w))
        return replace(self, inner=inner, removed=self.removed + term)

    def forward_block(self, V: AnyArray) -> AnyArray:
        """F V (n, b), of data that are not deflated, in one pass."""
        return self.gram.data_forward(np.asarray(V, self.dtype))

    def backward_block(self, U: AnyArray) -> AnyArray:
        """F'U times factor (p, b), of data that are not deflated, in one pass."""
        return self.gram.data_backward(np.asarray(U, self.dtype, order="F"))

    def extreme_rows(self, index: Index, k: int, levels: Array) -> tuple[Array, AnyArray]:
        """Those of all blocks, of data that are not deflated, in one pass."""
        gram = self.gram
        sides = gram.affine, index, k, levels
        return gram.blocks.reduced(most_extreme, extreme_rows_of, *sides, each=gram.each)

    def submatrix(self, index: Index) -> AnyArray:
        """A[S, S], S = index, of the deflated operator."""
        G = self.gram.submatrix(index)
        if not self.removed:
            return G
        G = G + self.removed.rows(index, index)
        return (symmetrized(G)).astype(self.dtype)


class BlocksWorkingSet(WorkingSet):
    """The same of data in blocks of rows, without columns: the blocks form the Gram matrix of the set.

    A check is one pass, for the products of several vectors with all columns.
    """

    operator: Any

    def __init__(self, problem: Problem):
        super().__init__(problem)
        self._drop_columns()
        self.before: int = self.operator.gram.blocks.passes - 1  # but for the statistics

    def report(self, screening: Callable[[], Screening]) -> Screening:
        passes = self.operator.gram.blocks.passes - self.before
        return replace(super().report(screening), reads=float(passes))

    def _products(self, w: int, new: Index, out: AnyArray) -> None:
        out[...] = self.operator.gram.between(new, self.index)

    def entrants(self, state: DeflatedOperator, active: Index, vectors: Sequence[Vector]) -> list[Index]:
        """The same; only where none is among the variables between which A is known, after a pass."""
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
        gram = self.operator.gram
        if not state.by_loadings:
            with gram.by_products():
                return super()._above(operator, state, vectors)
        pairs = [vector[:2] for vector in vectors]
        plain = [self._without_loadings(state, *pair) for pair in pairs]
        changed = [pair for pair, (_, v) in zip(pairs, plain, strict=True) if not np.array_equal(pair[1], v)]
        Y = gram.products([*plain, *changed])  # deflation asks for A x itself
        large = [np.flatnonzero(np.abs(y) > level) for y, (_, _, level) in zip(Y.T, vectors, strict=False)]
        return [(index, Y[index, i]) for i, index in enumerate(large)]

    def _without_loadings(
        self, state: DeflatedOperator, index: Index, entries: AnyArray
    ) -> tuple[Index, Array]:
        """(I - x_1 x_1') .. (I - x_t x_t') x."""
        v = with_entries(len(self.index), self.position[index], entries)
        for variables, loading in reversed(state.loadings):
            at = self.position[variables]
            v[at] -= loading * (loading @ v[at])
        used = np.flatnonzero(v)
        used = used[np.argsort(self.index[used])]
        return self.index[used], v[used]
