"""Means of classes, and the scatter within them: as rows of which it is the product, or formed.

The shrinkage a of Ledoit and Wolf (2004), for rows z_i of mean zero, S = Z'Z/n and m = tr(S)/p, is

    a = min(1, sum_i ||z_i z_i' - S||^2 / (n^2 ||S - m I||^2)),
        sum_i ||z_i z_i' - S||^2 = sum_i ||z_i||^4 - n ||S||^2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import BLOCKS_SUBMATRIX_ORDER, NULL_DIRECTION, SUBMATRIX_ORDER
from .._records import record
from .._validation import float_type, is_sparse, raise_not_finite, real_array
from ..linalg.scaling import even_exponent, largest_magnitude
from ..operators.blocks import as_kernel_input, dense_rows, finite, naming_not_finite, sum_parts
from ..operators.partition import row_blocks
from ..operators.sparse_format import compressed
from .form import Form

__all__ = [
    "BlockScatter", "ClassOffset", "DataScatter", "WithinMatrix", "WithinRows", "ledoit_wolf_shrinkage",
]  # fmt: skip
__dir__ = __all__.copy


class DataScatter:
    """X times a power of two, so that entries are near 1; dense, or in rows of nonzeros."""

    def __init__(self, X: Any):
        if is_sparse(X):
            self.X = compressed(X).tocsr()
            entries = self.X.data
            if not np.isfinite(entries).all():
                raise_not_finite(entries, "X.data")
        else:
            self.X = real_array(X, "X", ndim=2)
            entries = self.X
        self.n, self.p = self.X.shape
        self.dtype = float_type(self.X.dtype)
        self.exponent = even_exponent(largest_magnitude(entries), self.dtype)
        self.unit = math.ldexp(1.0, -self.exponent)

    def means(self, labels: NDArray[np.intp], c: int) -> NDArray[np.float64]:
        """Of the classes, in these units."""
        out = np.empty((c, self.p))
        for j in range(c):
            rows = self.X[labels == j]
            if is_sparse(rows):
                rows = rows.tocsc().astype(np.float64) * self.unit
                out[j] = np.asarray(rows.mean(axis=0)).ravel()
                full = np.flatnonzero(np.diff(rows.indptr) == rows.shape[0])
                entries = rows[:, full].data.reshape(len(full), rows.shape[0])
                first = entries[:, :1]
                out[j, full] = first[:, 0] + (entries - first).mean(axis=1)
            else:
                first = rows[0].astype(np.float64) * self.unit
                out[j] = first + (rows * self.X.dtype.type(self.unit) - first).mean(axis=0, dtype=np.float64)
        return out

    def within(
        self, labels: NDArray[np.intp], means: NDArray[np.float64], weight: NDArray[np.float64]
    ) -> WithinRows:
        """Rows less their class means, times their weights.

        Where a sparse matrix stores all entries of a column in a class, the mean is subtracted from them, so
        that one that is large beside the deviations costs no digits.
        """
        weight = weight.astype(self.dtype)
        if not is_sparse(self.X):
            rows = self.X * self.dtype.type(self.unit)
            for j, mean in enumerate(means):
                rows[labels == j] -= mean.astype(self.dtype)
            rows *= weight[:, None]
            return WithinRows(rows, None)
        from scipy.sparse import csr_array

        X, (c, p) = self.X, means.shape
        of_class = np.repeat(labels, np.diff(X.indptr))
        place = of_class * p + X.indices[: len(of_class)]
        full = np.bincount(place, minlength=c * p) == np.repeat(np.bincount(labels), p)
        entries = X.data[: len(of_class)] * self.unit - np.where(full, means.ravel(), 0)[place]
        entries *= np.repeat(weight, np.diff(X.indptr))
        rows = csr_array((entries.astype(self.dtype), X.indices[: len(of_class)], X.indptr), shape=X.shape)
        rest = np.where(full.reshape(c, p), 0, means)
        return WithinRows(rows, ClassOffset(labels, rest, weight.astype(np.float64)))


@record
class ClassOffset:
    """Rows weight_i means[labels_i], the means zero where rows are centered in place."""

    labels: NDArray[np.intp]
    means: NDArray[np.float64]
    weight: NDArray[np.float64]

    def times(self, rows: Any) -> NDArray[np.float64]:
        """rows times their transposed."""
        return np.asarray(rows @ self.means.T)[:, self.labels] * self.weight

    def terms(self) -> NDArray[np.float64]:
        """Of the classes: the sums of the squared weights."""
        return np.bincount(self.labels, self.weight**2).astype(np.float64)


@record
class WithinRows:
    """S_w = Z'Z with Z = rows - offset, rows sparse where there is an offset."""

    rows: Any
    offset: ClassOffset | None

    @property
    def p(self) -> int:
        return self.rows.shape[1]

    def squares(self) -> NDArray[np.float64]:
        """Of the norms of the rows of Z."""
        if self.offset is None:
            return np.einsum("ij,ij->i", self.rows, self.rows, dtype=np.float64)
        o = self.offset
        own = np.asarray(self.rows.multiply(self.rows).sum(axis=1)).ravel()
        both = np.asarray(self.rows @ o.means.T)[np.arange(len(own)), o.labels]
        return own - 2 * o.weight * both + o.weight**2 * (o.means**2).sum(axis=1)[o.labels]

    def gram(self, columns: bool) -> NDArray[np.float64]:
        """Z'Z, or ZZ'."""
        R, o = self.rows, self.offset
        if o is None:
            R = R.astype(np.float64, copy=False)
            return R.T @ R if columns else R @ R.T
        if columns:  # the rows of a class have the mean that is subtracted
            return (R.T @ R).toarray() - (o.means.T * o.terms()) @ o.means
        cross = o.times(R)
        return (R @ R.T).toarray() - cross - cross.T + o.times(o.weight[:, None] * o.means[o.labels])

    def form(self, amount: float) -> Form:
        """(1 - a) S_w + a tr(S_w)/p I."""
        p = self.p
        level = amount * float(self.squares().sum()) / p
        if p <= SUBMATRIX_ORDER:
            return _shrunk(self.gram(True), amount, level)
        root = math.sqrt(1 - amount)
        ridge = np.full(p, level) if level > 0 else None
        if self.offset is None:
            return Form.of(factor=self.rows * self.rows.dtype.type(root), ridge=ridge)
        o, form = self.offset, Form.of(factor=self.rows * root, ridge=ridge)
        return form.with_term(o.means.T, -(1 - amount) * np.diag(o.terms()))


def _shrunk(matrix: NDArray[np.float64], amount: float, level: float) -> Form:
    """(1 - amount) matrix + level I, in place."""
    matrix *= 1 - amount
    return Form.with_level(matrix, level)


class BlockScatter:
    """X in blocks of rows, of which scatters are formed: times a power of two, as in `DataScatter`."""

    def __init__(self, X: Any):
        self.blocks = row_blocks(X).held()
        (self.n, self.p), self.dtype = self.blocks.shape, float_type(self.blocks.dtype)
        if self.p > BLOCKS_SUBMATRIX_ORDER:
            raise ValueError(
                f"X is in blocks of rows, of which the scatter of at most {BLOCKS_SUBMATRIX_ORDER} variables "
                f"is formed, not of {self.p}: choose variables first, or bring X into memory"
            )
        with naming_not_finite(self.blocks):
            largest = max(self.blocks.results(_largest))
        self.exponent = even_exponent(largest, self.dtype)
        self.unit = math.ldexp(1.0, -self.exponent)

    def means(self, labels: NDArray[np.intp], c: int) -> NDArray[np.float64]:
        """Of the classes, in these units."""
        each = self.blocks.split(labels)
        _, means = self.blocks.reduced(_merged_means, _class_means, c, self.unit, each=each)
        return means

    def within(
        self, labels: NDArray[np.intp], means: NDArray[np.float64], weight: NDArray[np.float64]
    ) -> WithinMatrix:
        weight = weight.astype(self.dtype).astype(np.float64)
        each = list(zip(self.blocks.split(labels), self.blocks.split(weight), strict=True))
        scatter, norms = self.blocks.reduced(sum_parts, _scatter, means, self.unit, each=each)
        return WithinMatrix(scatter, norms)


def _largest(block: Any) -> float:
    X = finite(block)
    return largest_magnitude(X.data if is_sparse(X) else X)


_Means = tuple[NDArray[np.intp], NDArray[np.float64]]


def _class_means(block: Any, labels: NDArray[np.intp], c: int, unit: float) -> _Means:
    """The numbers of rows of the classes, and their means; exact where a column is constant in a class."""
    parts = []
    for part, rows in dense_rows(as_kernel_input(block)):
        own, out = labels[part], np.zeros((c, rows.shape[1]))
        for j in np.unique(own):
            members = rows[own == j] * unit
            first = members[0].astype(np.float64)
            out[j] = first + (members - first).mean(axis=0, dtype=np.float64)
        parts.append((np.bincount(own, minlength=c), out))
    return _merged_means(parts or [(np.zeros(c, np.intp), np.zeros((c, block.shape[1])))])


def _merged_means(parts: list[_Means]) -> _Means:
    count, mean = parts[0]
    for more, other in parts[1:]:
        share = more / np.maximum(count + more, 1)
        mean = np.where(count[:, None] > 0, mean + (other - mean) * share[:, None], other)
        count = count + more
    return count, mean


def _scatter(
    block: Any, own: tuple[NDArray[np.intp], NDArray[np.float64]], means: NDArray[np.float64], unit: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Z'Z of weighted deviations from class means; the sums of their squares, and of the squares of those."""
    p = means.shape[1]
    labels, weight = own
    out, norms = np.zeros((p, p)), np.zeros(2)
    for part, rows in dense_rows(as_kernel_input(block)):
        Z = rows * unit - means[labels[part]]
        Z *= weight[part, None]
        out += Z.T @ Z
        square = np.einsum("ij,ij->i", Z, Z)
        norms += square.sum(), square @ square
    return out, norms


@record
class WithinMatrix:
    """S_w itself; the sum of the squared norms of the rows of Z, and that of their squares."""

    scatter: NDArray[np.float64]
    norms: NDArray[np.float64]

    @property
    def p(self) -> int:
        return len(self.scatter)

    def form(self, amount: float) -> Form:
        """(1 - a) S_w + a tr(S_w)/p I."""
        return _shrunk(self.scatter, amount, amount * float(self.norms[0]) / self.p)


def ledoit_wolf_shrinkage(within: WithinRows | WithinMatrix, n: int) -> float:
    """The shrinkage a."""
    p = within.p
    if isinstance(within, WithinMatrix):
        G, (trace, fourth) = within.scatter, within.norms.tolist()
    else:
        norms = within.squares()  # of z_i z_i'/n, were it squared; rows are over sqrt(n)
        G, trace, fourth = within.gram(p <= n), float(norms.sum()), float((norms**2).sum())
    square = float((G * G).sum())
    apart = square - trace**2 / p
    if not apart > NULL_DIRECTION * square:
        return 0.0
    return float(min(max((fourth - square / n) / apart, 0.0), 1.0))
