"""Means of classes, and the scatter within them: as rows of which it is the product, or formed.

Either is kept as D R D with the spreads D of the variables, so that R has a unit diagonal and no result
depends on the units of X. A variable that is constant within each class has the spread that it would have if
it separated the classes as well as the best of the others.

The shrinkage a of Ledoit and Wolf (2004), for rows z_i of mean zero, S = Z'Z/n and m = tr(S)/p, is

    a = min(1, sum_i ||z_i z_i' - S||^2 / (n^2 ||S - m I||^2)), at least 1e-6,
        sum_i ||z_i z_i' - S||^2 = sum_i ||z_i||^4 - n ||S||^2.

With weights w_i, how many samples a row stands for, sums over the rows are weighted, and n is their sum. Rows
without weight have the label -1.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .._limits import BLOCKS_SUBMATRIX_ORDER, NULL_DIRECTION, SUBMATRIX_ORDER
from .._records import record
from .._types import AnyArray, Array, Index
from .._validation import float_type, is_sparse, stored
from ..linalg.orthogonal import inner_products
from ..linalg.scaling import even_exponent, largest_magnitude
from ..operators.block_tasks import as_kernel_input, dense_rows, finite, sum_parts
from ..operators.blocks import naming_not_finite
from ..operators.deflation import LowRank
from ..operators.partition import row_blocks
from ..operators.sparse import as_finite, squared_norms
from .pencil import Form

LEAST = 1e-6  # shrinkage, which leaves no direction without scatter


def class_sizes(labels: Index, weight: Array | None, c: int) -> Array:
    """How many samples each class has."""
    own = labels >= 0
    return np.bincount(labels[own], None if weight is None else weight[own], c).astype(np.float64)


def _average(rows: AnyArray, weight: Array | None) -> Array:
    """Of rows near zero."""
    if weight is None:
        return np.asarray(rows.mean(axis=0, dtype=np.float64))
    return np.asarray(weight / weight.sum() @ rows)


class DataScatter:
    """X times a power of two, so that entries are near 1; dense, or in rows of nonzeros."""

    n: int
    p: int
    dtype: np.dtype[Any]

    def __init__(self, X: Any):
        self.X = as_finite(X)
        (self.n, self.p), self.dtype = self.X.shape, self.X.dtype
        self.exponent: int = even_exponent(largest_magnitude(stored(self.X)), self.dtype)
        self.unit: float = math.ldexp(1.0, -self.exponent)

    def means(self, labels: Index, c: int, weight: Array | None) -> Array:
        """Of the classes, in these units."""
        if not is_sparse(self.X):
            return _class_means(self.X, (labels, weight), c, self.unit)[1]
        out = np.empty((c, self.p))
        for j in range(c):
            own = labels == j
            rows, w = (
                self.X[own].tocsc().astype(np.float64) * self.unit,
                None if weight is None else weight[own],
            )
            out[j] = np.ravel(rows.mean(axis=0) if w is None else w / w.sum() @ rows)
            full = np.flatnonzero(np.diff(rows.indptr) == rows.shape[0])
            entries = rows[:, full].data.reshape(len(full), rows.shape[0]).T
            out[j, full] = entries[0] + _average(entries - entries[0], w)
        return out

    def within(
        self, labels: Index, means: Array, factor: Array, weight: Array | None, between: Array
    ) -> WithinRows:
        """Rows with weight less their class means, times factors of their classes and roots of weights."""
        X = self.X
        if weight is not None:
            kept = np.flatnonzero(labels >= 0)
            X, labels, weight = X[kept], labels[kept], weight[kept]
        multiple = factor[labels] if weight is None else factor[labels] * np.sqrt(weight)
        rows, offset = centered_rows(X, labels, means, multiple.astype(self.dtype), self.unit)
        if offset is None:
            spread = _within_spread(squared_norms(rows), between)
            rows /= spread.astype(self.dtype)
            return WithinRows(rows, None, weight, spread)
        spread = _within_spread(squared_norms(rows) - offset.terms() @ offset.means**2, between)
        rows.data /= spread[rows.indices].astype(self.dtype)
        return WithinRows(rows, replace(offset, means=offset.means / spread), weight, spread)


def centered_rows(
    X: Any, labels: Index, means: Array, multiple: AnyArray, unit: float = 1.0
) -> tuple[Any, ClassOffset | None]:
    """X times the unit, less the means of the classes of its rows, times their multiples.

    With what is still to be subtracted, where rows are sparse.

    Where a sparse matrix stores all entries of a column in a class, the mean is subtracted from them, so
    that one that is large beside the deviations costs no digits. Others deviate by at least mean/sqrt(n).
    """
    dtype = multiple.dtype
    if not is_sparse(X):
        rows = np.multiply(X, dtype.type(unit), order="C")
        for j, mean in enumerate(means):
            rows[labels == j if len(means) > 1 else slice(None)] -= mean.astype(dtype)
        rows *= multiple[:, None]
        return rows, None
    from scipy.sparse import csr_array

    c, p = means.shape
    of_class = np.repeat(labels, np.diff(X.indptr))
    indices = X.indices[: len(of_class)]
    place = of_class * p + indices
    full = np.bincount(place, minlength=c * p) == np.repeat(np.bincount(labels, minlength=c), p)
    entries = X.data[: len(of_class)] * unit - np.where(full, means.ravel(), 0)[place]
    entries *= np.repeat(multiple, np.diff(X.indptr))
    rows = csr_array((entries.astype(dtype), indices, X.indptr), shape=X.shape)
    offset = np.where(full.reshape(c, p), 0, means)
    return rows, ClassOffset(labels, offset, multiple.astype(np.float64))


@record
class ClassOffset:
    """Rows weight_i means[labels_i], the means zero where rows are centered in place."""

    labels: Index
    means: Array
    weight: Array

    def times(self, rows: Any) -> Array:
        """rows times their transposed."""
        return np.asarray(rows @ self.means.T)[:, self.labels] * self.weight

    def terms(self) -> Array:
        """Of the classes: the sums of the squared weights."""
        return np.bincount(self.labels, self.weight**2).astype(np.float64)


@record
class WithinRows:
    """R = Z'Z with Z = rows - offset, rows sparse where there is an offset; their weights; the spreads."""

    rows: Any
    offset: ClassOffset | None
    sample_weight: Array | None
    spread: Array

    @property
    def p(self) -> int:
        return self.rows.shape[1]

    def squares(self) -> Array:
        """Of the norms of the rows of Z."""
        own, o = squared_norms(self.rows, 1), self.offset
        if o is None:
            return own
        both = np.asarray(self.rows @ o.means.T)[np.arange(len(own)), o.labels]
        return own - 2 * o.weight * both + o.weight**2 * (o.means**2).sum(axis=1)[o.labels]

    def gram(self, columns: bool) -> Array:
        """Z'Z, or ZZ'."""
        R, o = self.rows, self.offset
        if columns:
            return self._multiple(1.0).block(np.arange(self.p))
        if o is None:
            return inner_products(R.T)
        cross = o.times(R)
        return (R @ R.T).toarray() - cross - cross.T + o.times(o.weight[:, None] * o.means[o.labels])

    def fourth(self) -> float:
        """The sum of the fourth powers of the norms of the rows, each as often as its weight."""
        square = self.squares()  # of z_i z_i'/n, were it squared; rows are over sqrt(n)
        return float(square @ (square if self.sample_weight is None else square / self.sample_weight))

    def form(self, amount: float) -> Form:
        """(1 - a) S_w + a D D."""
        if self.p <= SUBMATRIX_ORDER:
            return _shrunk(self.gram(True), amount, self.spread)
        form = self._multiple(1 - amount, np.full(self.p, amount) if amount > 0 else None)
        return form.in_units(self.spread)

    def _multiple(self, factor: float, ridge: Array | None = None) -> Form:
        """Z'Z times the factor, and a ridge."""
        form, o = Form.of_rows(self.rows, factor, ridge), self.offset
        return form if o is None else form + LowRank(o.means.T, -factor * np.diag(o.terms()), o.means.T)


def _within_spread(squares: Array, between: Array) -> Array:
    """Standard deviations within classes; where those are rounding, as of that which separates best."""
    varies = squares > NULL_DIRECTION * between
    if not varies.any():
        raise ValueError("the rows of each class are all the same: there is no scatter within classes")
    apart = varies & (between > 0)
    least = np.min(squares[apart] / between[apart], initial=1.0)
    square = np.where(varies, squares, least * between)
    return np.sqrt(np.where(square > 0, square, 1))


def _shrunk(matrix: Array, amount: float, spread: Array) -> Form:
    """D ((1 - amount) matrix + amount I) D, in place."""
    matrix *= 1 - amount
    return Form.of(matrix, amount).in_units(spread)


class BlockScatter:
    """X in blocks of rows, of which scatters are formed: times a power of two, as in `DataScatter`."""

    n: int
    p: int
    dtype: np.dtype[Any]

    def __init__(self, X: Any):
        self.blocks: Any = row_blocks(X).held()
        (self.n, self.p), self.dtype = self.blocks.shape, float_type(self.blocks.dtype)
        if self.p > BLOCKS_SUBMATRIX_ORDER:
            raise ValueError(
                f"X is in blocks of rows, of which the scatter of at most {BLOCKS_SUBMATRIX_ORDER} variables "
                f"is formed, not of {self.p}: choose variables first, or bring X into memory"
            )
        with naming_not_finite(self.blocks):
            largest = max(self.blocks.results(_largest))
        self.exponent: int = even_exponent(largest, self.dtype)
        self.unit: float = math.ldexp(1.0, -self.exponent)

    def means(self, labels: Index, c: int, weight: Array | None) -> Array:
        """Of the classes, in these units."""
        each = self._each(labels, weight)
        _, means = self.blocks.reduced(_merged_means, _class_means, c, self.unit, each=each)
        return means

    def within(
        self, labels: Index, means: Array, factor: Array, weight: Array | None, between: Array
    ) -> WithinMatrix:
        factor = factor.astype(self.dtype).astype(np.float64)
        each = self._each(labels, weight)
        (scatter,) = self.blocks.reduced(
            sum_parts, _scatter, means, factor, self.unit, each=each, entries=self.p**2
        )  # fmt: skip
        spread = _within_spread(scatter.diagonal(), between)
        scatter /= spread[:, None]
        scatter /= spread

        def fourth() -> float:
            return self.blocks.reduced(sum, _fourth, means, factor, self.unit, spread, each=each)

        return WithinMatrix(scatter, spread, fourth)

    def _each(self, labels: Index, weight: Array | None) -> list[_Own]:
        return list(zip(self.blocks.split(labels), self.blocks.split_or_none(weight), strict=True))


def _largest(block: Any) -> float:
    return largest_magnitude(stored(finite(block)))


_Own = tuple[Index, Array | None]
_Means = tuple[Array, Array]


def _class_means(block: Any, labels_and_weight: _Own, c: int, unit: float) -> _Means:
    """The sizes of the classes, and their means; exact where a column is constant in a class."""
    parts = []
    labels, weight = labels_and_weight
    for part, rows in dense_rows(as_kernel_input(block)):
        own, out = labels[part], np.zeros((c, rows.shape[1]))
        w = None if weight is None else weight[part]
        for j in np.unique(own[own >= 0]):
            members = rows[own == j] * unit
            first = members[0].astype(np.float64)
            out[j] = first + _average(members - first, None if w is None else w[own == j])
        parts.append((class_sizes(own, w, c), out))
    return _merged_means(parts or [(np.zeros(c), np.zeros((c, block.shape[1])))])


def _merged_means(parts: Iterable[_Means]) -> _Means:
    each = iter(parts)
    count, mean = next(each)
    for more, other in each:
        both = count + more
        share = more / np.where(both > 0, both, 1)
        mean = np.where(count[:, None] > 0, mean + (other - mean) * share[:, None], other)
        count = both
    return count, mean


def _deviations(
    block: Any, own: _Own, means: Array, factor: Array, unit: float
) -> Iterator[tuple[Array, Array | None]]:
    """From class means, of part after part of the rows; and their weights."""
    labels, weight = own
    for part, rows in dense_rows(as_kernel_input(block)):
        Z = rows * unit - means[labels[part]]
        Z *= factor[labels[part], None]
        yield Z, None if weight is None else weight[part]


def _scatter(block: Any, own: _Own, means: Array, factor: Array, unit: float) -> tuple[Array]:
    """Z'Z of deviations from class means."""
    out = np.zeros((means.shape[1], means.shape[1]))
    for Z, weight in _deviations(block, own, means, factor, unit):
        out += Z.T @ Z if weight is None else (Z.T * weight) @ Z
    return (out,)


def _fourth(block: Any, own: _Own, means: Array, factor: Array, unit: float, spread: Array) -> float:
    """The sum of the fourth powers of the norms of the rows Z/spread."""
    total = 0.0
    for Z, weight in _deviations(block, own, means, factor, unit):
        square = np.einsum("ij,ij,j->i", Z, Z, spread**-2)
        total += float(square @ (square if weight is None else weight * square))
    return total


@record
class WithinMatrix:
    """R itself, the spreads, and what `WithinRows.fourth` is, for which the rows are read again."""

    scatter: Array
    spread: Array
    fourth: Callable[[], float]

    @property
    def p(self) -> int:
        return len(self.scatter)

    def gram(self, columns: bool) -> Array:
        return self.scatter

    def form(self, amount: float) -> Form:
        """(1 - a) S_w + a D D."""
        return _shrunk(self.scatter, amount, self.spread)


def ledoit_wolf_shrinkage(within: WithinRows | WithinMatrix, n: float) -> float:
    """The shrinkage a of R, of n samples."""
    p = within.p
    few = isinstance(within, WithinRows) and p > within.rows.shape[0]
    G, fourth = within.gram(not few), within.fourth()
    trace, square = float(np.trace(G)), float((G * G).sum())
    apart = square - trace**2 / p
    if not apart > NULL_DIRECTION * square:
        return LEAST
    return float(min(max((fourth - square / n) / apart, LEAST), 1.0))
