"""Mean and deviation of each column, also where squares leave the number range, and what is made of them."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cached_property
from typing import Any

import numpy as np

from .. import _core
from .._limits import CHUNK, EXTREME_COLUMNS, EXTREME_LEAST, EXTREME_SAMPLES, slices
from .._messages import counted
from .._records import record
from .._types import AnyArray, Array, DType, Index, Mask
from .._validation import as_dense, check_sample_weight, stored
from ..linalg.scaling import below_range, beyond_range


@record
class Standardization:
    """How data become the matrix F whose covariance `A = F'F / (n - 1)` solvers see.

    Attributes
    ----------
    n_samples : int
        Rows of X.
    center, scale : bool
        Whether something is subtracted from, or divides, the columns.
    mean, deviation : ndarray of shape (p,) or None
        What the caller gave for these; None where it comes from the data, or is not applied.
    sample_weight : ndarray of shape (n,) or None
        How many samples each row stands for.
    excluded : ndarray of shape (p,), bool, or None
        Columns that become zero.
    known_weight : float or None
        The sum of the weights of rows that are no longer there.
    """

    n_samples: int
    center: bool = False
    scale: bool = False
    mean: Array | None = None
    deviation: Array | None = None
    sample_weight: Array | None = None
    excluded: Mask | None = None
    known_weight: float | None = None

    @classmethod
    def checked(
        cls, shape: tuple[int, int], center: Any, scale: Any, sample_weight: Any = None
    ) -> Standardization:
        """Return the standardization that the caller asks for, for data of this shape."""
        n, p = shape
        mean, deviation = (None if isinstance(value, bool) else value for value in (center, scale))
        for name, vector in (("center", mean), ("scale", deviation)):
            if vector is not None and len(vector) != p:
                raise ValueError(f"{name} has {counted(len(vector), 'entry')} for {counted(p, 'variable')}")
        weight = check_sample_weight(sample_weight, n)
        return cls(n, center is not False, scale is not False, mean, deviation, weight)

    @property
    def given(self) -> tuple[str, ...]:
        """Which of `center` and `scale` the caller gave as a vector."""
        return ("center",) * (self.mean is not None) + ("scale",) * (self.deviation is not None)

    @cached_property
    def total_weight(self) -> float:
        """The number of samples that the rows stand for: n, or the sum of the weights."""
        if self.sample_weight is not None:
            return float(self.sample_weight.sum())
        return self.n_samples if self.known_weight is None else self.known_weight

    @property
    def degrees(self) -> float:
        """The divisor of the covariance."""
        return self.total_weight - 1 if self.sample_weight is not None else max(self.total_weight - 1, 1)

    def without_excluded(self, weight: AnyArray | None, dtype: DType) -> AnyArray | None:
        """Return what multiplies each column, with 0 for columns that are excluded; None stands for ones."""
        if self.excluded is None:
            return weight
        return np.where(self.excluded, 0, 1 if weight is None else weight).astype(dtype)

    def row_weight(self, dtype: DType) -> AnyArray | None:
        """Return u of F = diag(u) (X - 1 mean'): with `u^2 = w (n - 1) / degrees`, A = F'F / (n - 1)."""
        if self.sample_weight is None:
            return None
        with below_range():
            share = self.sample_weight / self.degrees
            return np.sqrt(share * max(self.n_samples - 1, 1)).astype(dtype)


@record
class Statistics:
    """Statistics of some rows.

    Attributes
    ----------
    n : float
        The number of rows, or the sum of their weights.
    stored : int
        The number of stored entries.
    mean, square, low, high : ndarray of shape (p,)
        The mean, the sum of squared deviations, and the lowest and highest entry of each column. For sparse
        rows the last two only bound the magnitude, and tell whether a column is constant.
    plain : bool
        Whether all of it was read in place.
    """

    n: float
    stored: int
    mean: Array
    square: Array
    low: Array
    high: Array
    plain: bool = True


def merged(parts: Iterable[Statistics | None]) -> Statistics | None:
    """Return the statistics of all rows from those of parts (Chan, Golub and LeVeque 1983; statistics.c)."""
    out: Statistics | None = None
    for b in parts:
        a = out
        if a is None or b is None:
            out = b if a is None else a
            continue
        with beyond_range():
            n, d = a.n + b.n, b.mean - a.mean
            out = Statistics(
                n,
                a.stored + b.stored,
                a.mean + d * (b.n / n),
                a.square + (b.square + d * d * (a.n * (b.n / n))),
                np.minimum(a.low, b.low),
                np.maximum(a.high, b.high),
                a.plain and b.plain,
            )
    return out


def deviations(
    found: Statistics,
    treatment: Standardization,
    index: Index | slice = slice(None),
    unit: Array | float = 1.0,
) -> tuple[Array, Array, Mask]:
    """Return mean and deviation of the columns `index`, and whether an entry differs from what is subtracted.

    The statistics are those of these columns multiplied by `unit`^2.
    """
    square, varies = found.square, found.high > found.low
    if not treatment.center or treatment.mean is not None:
        given = 0.0 if treatment.mean is None else treatment.mean[index] * unit * unit
        square = square + treatment.total_weight * (found.mean - given) ** 2
        varies = varies | (found.mean != given)
    return found.mean / unit / unit, np.sqrt(square / treatment.degrees) / unit / unit, varies


def statistics_of(X: Any, weight: Array | None = None, *scaled: Any) -> Statistics | None:
    """Return the statistics of the rows of an array, CSR or CSC; None without rows, or without any weight.

    An entry that is not finite counts whatever its weight. `scaled` may have some columns and their units:
    then the statistics are of these columns, multiplied twice by their unit.
    """
    data, n = stored(X), X.shape[0] if weight is None else float(weight.sum())
    if n:
        sums = _scaled_sums(X, weight, *scaled) if scaled else _core.statistics(X, weight)
        return Statistics(n, data.size, *sums)
    nothing = np.full(X.shape[1], np.nan)
    finite = weight is None or np.isfinite(data).all()
    return None if finite else Statistics(n, data.size, nothing, nothing, nothing, nothing)


def _scaled_sums(X: Any, weight: Array | None, index: Index, unit: Array) -> Iterable[Array]:
    """Return sums of the columns `index`, which are copied, a few at a time.

    They are copied in the layout of X, so that sums have the same bits.
    """
    parts, by_columns = [], stored(X) is X and X.strides[1] != X.itemsize
    for part in slices(len(index), X.shape[0], CHUNK):
        x = np.array(as_dense(X[:, index[part]]), np.float64, order="F" if by_columns else "C")
        x *= unit[part]
        x *= unit[part]
        parts.append(_core.statistics(x, weight))
    return map(np.concatenate, zip(*parts, strict=True))


def from_whole(rows: int, whole: tuple[AnyArray, ...]) -> tuple[Statistics, Array]:
    """Return statistics and (X - 1 mean')' (X - 1 mean') = (n X'X - s s') / n of whole numbers.

    `whole` has the lowest and highest entries, and the exact sums s and X'X. Columns are first shifted by
    the whole numbers c nearest to their means, exactly modulo 2^64: where n X'X is rounded, no digits cancel.
    """
    low, high, s, G = whole
    mean = s.astype(np.float64) / rows
    c = np.rint(mean).astype(np.int64)
    rest = s - rows * c
    G = G - np.multiply.outer(c, s) - np.multiply.outer(rest, c)
    wide: Any = np.int64 if rows * float(G.diagonal().max()) < 2.0**63 else np.longdouble
    rest = rest.astype(wide)
    M: Array = (np.asarray(rows * G.astype(wide) - np.multiply.outer(rest, rest)) / rows).astype(np.float64)
    ends = np.asarray(low, np.float64), np.asarray(high, np.float64)
    return Statistics(rows, rows * len(G), mean, M.diagonal().copy(), *ends), M


def in_range(found: Statistics, dtype: DType) -> bool:
    """Whether the squares of all columns that vary have all their digits."""
    most = 1e25 if dtype == np.float32 else 1e250
    varies = found.square[found.high > found.low]
    return bool(np.isfinite(found.mean).all() and ((varies < most) & (varies > 1 / most)).all())


def extreme_rows(op: Any, index: Index, k: int, levels: Array) -> tuple[Array, AnyArray]:
    """Return bounds on what k variables explain by single rows of F, and s_ij = x_ij^2 / (n - 1) there.

    A bound is the least of k t + sum_j (s_ij - t)_+ over all levels t, where j are the variables of `index`.
    Only rows that may reach a share of k times the largest level are returned, those of the largest bounds.
    """
    bounds = np.outer(k * levels, np.ones(op.m))
    for first in range(0, len(index), EXTREME_COLUMNS):
        square = float(op.factor) * np.square(op.columns(index[first : first + EXTREME_COLUMNS]))
        for sums, level in zip(bounds, levels, strict=True):
            sums += np.maximum(square - level, 0).sum(axis=0)
    bound = bounds.min(axis=0)
    chosen = _core.select_largest(bound, min(EXTREME_SAMPLES, op.m))
    chosen = chosen[bound[chosen] >= EXTREME_LEAST * k * levels.max()]
    unit = np.zeros((op.m, len(chosen)), op.dtype, order="F")
    unit[chosen, np.arange(len(chosen))] = 1
    return bound[chosen], np.square(op.backward_block(unit).T) / op.dtype.type(op.factor)


def most_extreme(parts: Iterable[tuple[Array, AnyArray]]) -> tuple[Array, AnyArray]:
    """Return the `extreme_rows` of all rows, from those of parts."""
    bounds, rows = (np.concatenate(each) for each in zip(*parts, strict=True))
    chosen = _core.select_largest(bounds, min(EXTREME_SAMPLES, len(bounds)))
    return bounds[chosen], rows[chosen]


def entries(X: Any) -> Any:
    """Yield the stored entries of CSR or CSC with their rows and columns, a few lines at a time."""
    indptr, first, lines = X.indptr, 0, len(X.indptr) - 1
    while first < lines:
        last = max(first + 1, int(np.searchsorted(indptr, indptr[first] + CHUNK // 4, "right")) - 1)
        part = slice(indptr[first], indptr[last])
        line = np.repeat(np.arange(first, last), np.diff(indptr[first : last + 1]))
        other = X.indices[part]
        yield X.data[part].astype(np.float64), *((line, other) if X.format == "csr" else (other, line))
        first = last
