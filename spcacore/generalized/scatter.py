"""Means of classes, and the scatter within classes: as the rows that it is a product of, or formed.

Either is kept as D R D with the spreads D of the variables, so that R has a unit diagonal and no result
depends on the units of X. A variable that is constant within each class has the spread that it would have if
it separated the classes as well as the best of the others.

The shrinkage a of Ledoit and Wolf (2004), for rows z_i of mean zero, S = Z'Z/n and m = tr(S)/p, is

    a = min(1, sum_i ||z_i z_i' - S||^2 / (n^2 ||S - m I||^2)), at least 1e-6,
        sum_i ||z_i z_i' - S||^2 = sum_i ||z_i||^4 - n ||S||^2.

With weights w_i, the number of samples that a row stands for, sums over the rows are weighted, and n is the
sum of the weights. Rows without weight have the label -1.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .._limits import BLOCKS_SUBMATRIX_ORDER, NULL_DIRECTION, SUBMATRIX_ORDER
from .._records import record
from .._types import AnyArray, Array, DType, Index
from .._validation import float_type, is_row_blocks, is_sparse, stored
from ..linalg.orthogonal import inner_products
from ..linalg.scaling import divisor, exponent_of, largest_magnitude, power_of_two_scale
from ..operators.blocks import (
    RowBlocks,
    WholeRows,
    as_kernel_input,
    dense_rows,
    finite,
    naming_not_finite,
    sum_parts,
)
from ..operators.deflation import LowRank
from ..operators.partition import row_blocks
from ..operators.sparse import squared_norms
from ..operators.statistics import Statistics, merged, statistics_of
from .pencil import Form

LEAST = 1e-6  # least shrinkage, which leaves no direction without scatter


class Scatter:
    """X times a power of two, so that entries are near 1; for row blocks, scatters are formed."""

    n: int
    p: int
    dtype: DType

    def __init__(self, X: Any):
        self.here: WholeRows | None = None if is_row_blocks(X) else WholeRows(X)
        self.blocks: RowBlocks = self.here or row_blocks(X).held()
        (self.n, self.p), self.dtype = self.blocks.shape, float_type(self.blocks.dtype)
        if self.p > BLOCKS_SUBMATRIX_ORDER and self.here is None:
            raise ValueError(
                f"X is in blocks of rows, of which the scatter of at most {BLOCKS_SUBMATRIX_ORDER} variables "
                f"is formed, not of {self.p}: choose variables first, or bring X into memory"
            )
        with naming_not_finite(self.blocks):
            largest = max(self.blocks.results(_largest))
        self.exponent: int = -2 * exponent_of(power_of_two_scale(largest, self.dtype))
        self.unit: float = math.ldexp(1.0, -self.exponent)

    def means(self, labels: Index, c: int, weight: Array | None) -> Array:
        """Return the means of the classes, in these units."""
        each = self._each(labels, weight)
        found = self.blocks.reduced(_merged_by_class, _class_statistics, c, self.unit, each=each)
        return np.stack([of_class.mean for of_class in found])

    def within(
        self, labels: Index, means: Array, factor: Array, weight: Array | None, between: Array,
        shrinkage: float | None, n: float,
    ) -> tuple[Form, float]:  # fmt: skip
        """Return the scatter of the rows less their class means, times `factor` of their class, and a.

        It is (1 - a) D R D + a D D for the shrinkage a; if None, for that of Ledoit and Wolf, with n samples.
        `between` has the scatter between the class means for each variable.
        """
        p, sides = self.p, (means, factor, self.unit)
        # With many variables, the scatter stays a product of rows
        if self.here and p > SUBMATRIX_ORDER:
            Z = _centered(self.here.source, labels, weight, *sides, self.dtype)
            spread = _within_spread(Z.diagonal(), between)
            Z = Z.over(spread)
            if shrinkage is None:
                shrinkage = _ledoit_wolf(Z.gram(p <= Z.rows.shape[0]), Z.fourth(), p, n)
            ridge = np.full(p, shrinkage) if shrinkage > 0 else None
            return Z.form(1 - shrinkage, ridge).in_units(spread), shrinkage
        # Else it is formed
        each = self._each(labels, weight)
        R = self.blocks.reduced(sum_parts, _scatter, *sides, each=each, entries=p * p)
        spread = _within_spread(R.diagonal(), between)
        R /= spread[:, None]
        R /= spread
        if shrinkage is None:
            shrinkage = _ledoit_wolf(R, self.blocks.reduced(sum, _fourth, *sides, spread, each=each), p, n)
        R *= 1 - shrinkage
        return Form.of(R, shrinkage).in_units(spread), shrinkage

    def _each(self, labels: Index, weight: Array | None) -> list[_Own]:
        """Return the labels and weights of each block."""
        return list(zip(self.blocks.split(labels), self.blocks.split(weight), strict=True))


def centered_rows(
    X: Any, labels: Index, means: Array, multiple: AnyArray, unit: float = 1.0
) -> tuple[Any, ClassOffset | None]:
    """Return X times the unit, less the means of the classes, each row times its multiple; and an offset.

    The offset is what is still to be subtracted from sparse rows, None for dense ones. Where a sparse matrix
    stores all entries of a column in a class, the mean is subtracted from them, so that a mean that is large
    beside the deviations costs no digits. In other columns deviations are at least mean/sqrt(n), so this is
    not needed.
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
    """A matrix with the rows weight_i means[labels_i]; means are zero where rows are centered in place."""

    labels: Index
    means: Array
    weight: Array

    def times(self, rows: Any) -> Array:
        """Return rows @ offset'."""
        return (rows @ self.means.T)[:, self.labels] * self.weight

    def across(self, rows: Any) -> Array:
        """Return rows' @ offset."""
        from scipy.sparse import csr_array

        n = len(self.labels)
        weight = csr_array((self.weight, (self.labels, np.arange(n))), shape=(len(self.means), n))
        return (weight @ rows).T @ self.means

    def terms(self) -> Array:
        """Return the sum of the squared weights of each class."""
        return np.bincount(self.labels, self.weight**2).astype(np.float64)


@record
class Deviations:
    """Z = rows - offset, with sparse rows where there is an offset; and the weights of the samples."""

    rows: Any
    offset: ClassOffset | None
    sample_weight: Array | None

    def over(self, spread: Array) -> Deviations:
        """Return Z with its columns divided by the spreads, in place."""
        R, o = self.rows, self.offset
        if o is None:
            R /= spread.astype(R.dtype)
            return self
        R.data /= spread[R.indices].astype(R.dtype)
        return replace(self, offset=replace(o, means=o.means / spread))

    def diagonal(self) -> Array:
        """Return the diagonal of Z'Z, if Z has all rows of the classes.

        Then rows - offset has the mean zero in each class, so rows' @ offset = offset' @ offset.
        """
        own, o = squared_norms(self.rows), self.offset
        return own if o is None else own - o.terms() @ o.means**2

    def gram(self, columns: bool) -> Array:
        """Return Z'Z if `columns`, else ZZ', for any rows."""
        R, o = self.rows, self.offset
        if columns:
            G = Form.of_rows(R).block(np.arange(R.shape[1]))
            if o is None:
                return G
            cross = o.across(R)
            return G - cross - cross.T + (o.means.T * o.terms()) @ o.means
        if o is None:
            return inner_products(R.T)
        cross = o.times(R)
        return (R @ R.T).toarray() - cross - cross.T + o.times(o.weight[:, None] * o.means[o.labels])

    def form(self, factor: float, ridge: Array | None = None) -> Form:
        """Return the form of factor Z'Z + diag(ridge), if Z has all rows of the classes."""
        form, o = Form.of_rows(self.rows, factor, ridge), self.offset
        return form if o is None else form + LowRank(o.means.T, -factor * np.diag(o.terms()), o.means.T)

    def fourth(self) -> float:
        """Return the sum of the fourth powers of the norms of the rows, each as often as its weight."""
        square, o = squared_norms(self.rows, 1), self.offset
        if o is not None:
            both = (self.rows @ o.means.T)[np.arange(len(square)), o.labels]
            square = square - 2 * o.weight * both + o.weight**2 * (o.means**2).sum(axis=1)[o.labels]
        # a row has the factor 1/sqrt(n) and the root of its weight, so the fourth power of its norm has the
        # weight twice
        return float(square @ (square if self.sample_weight is None else square / self.sample_weight))


def _within_spread(squares: Array, between: Array) -> Array:
    """Return the standard deviations within classes.

    If that of a variable is rounding, it is chosen so that the variable separates the classes as well as the
    best.
    """
    varies = squares > NULL_DIRECTION * between
    if not varies.any():
        raise ValueError("the rows of each class are all the same: there is no scatter within classes")
    apart = varies & (between > 0)
    least = np.min(squares[apart] / between[apart], initial=1.0)
    square = np.where(varies, squares, least * between)
    return np.sqrt(divisor(square))


def _largest(block: Any) -> float:
    """Return the largest magnitude in a block; raise an error if an entry is not finite."""
    return largest_magnitude(stored(finite(block)))


_Own = tuple[Index, Array | None]
_Each = list[Statistics | None]  # for each class


def _parts(block: Any) -> Iterable[tuple[slice, Any]]:
    """Yield the rows of a block, dense ones a part at a time."""
    X = as_kernel_input(block)
    return [(slice(None), X.tocsr())] if is_sparse(X) else dense_rows(X)


def _class_statistics(block: Any, labels_and_weight: _Own, c: int, unit: float) -> _Each:
    """Return the statistics of the rows of each class, times the unit."""
    parts: list[_Each] = [[None] * c]
    labels, weight = labels_and_weight
    for part, rows in _parts(block):
        own, w = labels[part], None if weight is None else weight[part]
        each = (own == j for j in range(c))
        parts.append([statistics_of(rows[at] * unit, None if w is None else w[at]) for at in each])
    return _merged_by_class(parts)


def _merged_by_class(parts: Iterable[_Each]) -> _Each:
    """Merge the statistics of parts, class by class."""
    return [merged(each) for each in zip(*parts, strict=True)]


def _centered(
    X: Any, labels: Index, weight: Array | None, means: Array, factor: Array, unit: float,
    dtype: Any = np.float64,
) -> Deviations:  # fmt: skip
    """Return rows less their class means, times the factors of classes and the roots of weights."""
    if weight is not None and not weight.all():
        kept = np.flatnonzero(weight)
        X, labels, weight = X[kept], labels[kept], weight[kept]
    multiple = factor[labels] if weight is None else factor[labels] * np.sqrt(weight)
    return Deviations(*centered_rows(X, labels, means, multiple.astype(dtype), unit), weight)


def _deviations(block: Any, own: _Own, *sides: Any) -> Iterator[Deviations]:
    """Yield the deviations from class means, for one part of the rows after another."""
    labels, weight = own
    for part, rows in _parts(block):
        yield _centered(rows, labels[part], None if weight is None else weight[part], *sides)


def _scatter(block: Any, *sides: Any) -> Array:
    """Return Z'Z for the deviations of a block."""
    p = block.shape[1]
    return sum((Z.gram(True) for Z in _deviations(block, *sides)), np.zeros((p, p)))


def _fourth(block: Any, own: _Own, *sides: Any) -> float:
    """Return the sum of the fourth powers of the norms of the rows Z/spread of a block."""
    *centering, spread = sides
    return sum(Z.over(spread).fourth() for Z in _deviations(block, own, *centering))


def _ledoit_wolf(G: Array, fourth: float, p: int, n: float) -> float:
    """Return the shrinkage a of R, for n samples of p variables.

    G is R = Z'Z or, for fewer rows than variables, ZZ'; `fourth` is the sum of the fourth powers of the norms
    of the rows of Z.
    """
    trace, square = float(np.trace(G)), float((G * G).sum())
    apart = square - trace**2 / p
    if not apart > NULL_DIRECTION * square:
        return LEAST
    return float(min(max((fourth - square / n) / apart, LEAST), 1.0))
