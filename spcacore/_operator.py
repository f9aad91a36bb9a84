"""From the caller's matrix to the operator that solvers see; the matrix itself is never copied.

Dense arrays in C or Fortran order, CSR and CSC matrices, `LinearOperator`s and callables all become
one `_core.Operator` for the covariance matrix `A`; what has entries also gets its diagonal.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core, _screening
from ._input import (
    LARGEST,
    choice,
    column_names,
    flag,
    float_type,
    integer,
    is_operator,
    is_row_blocks,
    is_sparse,
    raise_not_finite,
    real_array,
)
from ._messages import counted
from ._result import Screening

_LARGEST_CHOLESKY = 1500
_FEW_PRODUCTS = 256  # of a callable, for its entries: no more than one search makes from its starts
_TINY = 1e-280  # below this a sum of squares has lost terms to underflow
_CHUNK = 1 << 22  # entries looked at, or copied, at a time
OUT_OF_RANGE = "a variance exceeds the number range and is given as inf"
BELOW_RANGE = "a variance is below the number range and is given as 0"


@dataclass(frozen=True, eq=False, repr=False)
class Filled:
    """Data with missing entries, which a private copy, centred and scaled, has as zeros.

    Attributes
    ----------
    source : ndarray of shape (n, p)
        The caller's, which says where entries are missing.
    array : ndarray of shape (n, p)
        The copy, which the operator reads.
    range : float
        Its square times the copy is what the operator multiplies by.
    replaced : dict
        Columns of the copy by their number, as they were before `subtract` changed them.
    """

    source: NDArray[Any]
    array: NDArray[Any]
    range: float
    replaced: dict[int, NDArray[Any]]

    def subtract(self, image: NDArray[Any], index: NDArray[np.intp], value: NDArray[Any]) -> NDArray[Any]:
        """Take `image value'` from the observed entries; the new variances of these columns are returned."""
        variances = np.empty(len(index))
        unit = self.range * self.range
        for a, j in enumerate(index):
            column = self.array[:, j]
            self.replaced.setdefault(int(j), column.copy())
            column -= np.where(np.isnan(self.source[:, j]), 0, image * (value[a] / unit)).astype(column.dtype)
            variances[a] = np.sum((column.astype(np.float64) * unit) ** 2) / max(len(column) - 1, 1)
        return variances

    def restore(self) -> None:
        """Undo all that `subtract` did."""
        for j, column in self.replaced.items():
            self.array[:, j] = column
        self.replaced.clear()


@dataclass(frozen=True, eq=False, repr=False)
class Problem:
    """An operator with what Python needs to know of it.

    Attributes
    ----------
    operator : _core.Operator
    n_samples : int or None
        None for a covariance.
    diagonal : ndarray of shape (p,) or None
        Of the operator, in its own units; None where only products are known.
    exponent : int
        A value of the operator times `2**exponent` is a variance in the caller's units.
    moment : ndarray of shape (p,) or None
        Second moment about 0 of each column as it is stored, in the operator's units; of a covariance
        the diagonal.
    floor : float
        Where there are no entries: variance that rounding alone may leave.
    mean, scale : ndarray of shape (p,) or None
        What is subtracted from, then divides, each column.
    names : tuple of str or None
    cost : int
        Multiplications of one product, for deciding how many starts to afford.
    weight : ndarray of shape (p,) or None
        What the operator multiplies each centred column by, besides `range`**2.
    row_weight : ndarray of shape (n,) or None
        What it multiplies each row by, before it is centred.
    range : float
    screening : callable
        Says what has been read so far.
    filled : Filled or None
        Where entries are missing.
    """

    operator: _core.Operator
    n_samples: int | None
    diagonal: NDArray[Any] | None
    exponent: int
    moment: NDArray[Any] | None
    floor: float
    mean: NDArray[Any] | None
    scale: NDArray[Any] | None
    names: tuple[str, ...] | None
    cost: int
    weight: NDArray[Any] | None = None
    row_weight: NDArray[Any] | None = None
    range: float = 1.0
    screening: Callable[[], Screening] = Screening
    filled: Filled | None = None

    @property
    def p(self) -> int:
        return self.operator.p

    @property
    def total_variance(self) -> float | None:
        """The trace of A in the caller's units."""
        return None if self.diagonal is None else self.in_units(self.diagonal.sum())

    @property
    def unit(self) -> float:
        """The variance in the caller's units that 1 stands for; inf or 0 out of range."""
        return float(self.in_units(1.0))

    def noise(self, index: NDArray[np.intp], deflation: str = "projection") -> float:
        """Variance, in the operator's units, that rounding alone may leave along k variables.

        Of data, entries with errors of eps leave eps^2. A covariance leaves eps, and so do the
        deflations that subtract a variance rather than a column.
        """
        eps, k = float(np.finfo(self.operator.dtype).eps), len(index)
        first_order = self.operator.covariance or not deflation.endswith("projection")
        if self.moment is None or self.diagonal is None:
            return math.sqrt(self.floor) if first_order and not self.operator.covariance else self.floor
        noise = 4 * eps * k * float(self.diagonal[index].max()) if first_order else 0.0
        return noise if self.operator.covariance else noise + 4 * eps**2 * k * float(self.moment[index].sum())

    def unscreened(self) -> Problem:
        """The same with the plain operator."""
        return replace(self, operator=self.operator.unscreened(), screening=Screening)

    def in_units(self, value: Any) -> Any:
        """Operator values as the caller's variances; inf or 0 where those leave the number range."""
        with np.errstate(over="ignore", under="ignore"):
            return np.ldexp(value, self.exponent)


def warn_out_of_range(inside: Any, given: Any, stacklevel: int) -> None:
    """Where a variance is not what it is in the operator's units, but inf or 0."""
    given = np.asarray(given)
    if not np.isfinite(given).all():
        warnings.warn(OUT_OF_RANGE, RuntimeWarning, stacklevel=stacklevel + 1)
    if ((given == 0) & (np.asarray(inside) != 0)).any():
        warnings.warn(BELOW_RANGE, RuntimeWarning, stacklevel=stacklevel + 1)


def as_problem(
    X: Any,
    *,
    kind: str = "data",
    center: bool = True,
    scale: bool = False,
    n_features: int | None = None,
    definite: bool = True,
    screening: str = "none",
    missing: bool = False,
) -> Problem:
    """Validate the caller's matrix and wrap it.

    `definite` refuses an indefinite covariance; `missing` allows dense data to have NaN entries.
    """
    choice(screening, "screening", _screening.MODES)
    covariance = choice(kind, "kind", ("data", "covariance")) == "covariance"
    center, scale = flag(center, "center"), flag(scale, "scale")
    if n_features is not None:
        n_features = integer(n_features, "n_features", 1)
    if is_row_blocks(X):
        from . import _blocks

        if not covariance:
            return _of_width(n_features, _blocks.problem_of(X, center, scale))
        X = _blocks.row_blocks(X).whole()
    if is_sparse(X):
        problem = _from_sparse(X, covariance, center, scale, definite)
    elif is_operator(X) or (callable(X) and not hasattr(X, "__array__")):
        problem = _from_products(X, covariance, center, scale, n_features, definite)
    else:
        problem = _from_dense(X, covariance, center, scale, definite, screening, missing)
    return _of_width(n_features, problem)


def _of_width(n_features: int | None, problem: Problem) -> Problem:
    if n_features not in (None, problem.p):
        raise ValueError(f"n_features is {n_features}, and X has {counted(problem.p, 'column')}")
    return problem


# ---- scaling ----------------------------------------------------------------------------------------


def _range(largest: float, dtype: Any = np.float64) -> float:
    """The power of two whose square brings `largest` near 1, or as near as that square can be had."""
    most = np.finfo(dtype).maxexp // 2 - 1
    return 2.0 ** min(-(math.frexp(largest)[1] // 2), most) if largest > 0 else 1.0


def _exponent(range_: float) -> int:
    """The logarithm of a power of two."""
    return math.frexp(range_)[1] - 1


@dataclass(frozen=True, eq=False, repr=False)
class _Columns:
    """Mean, and root mean square about it (or about 0) with n - 1, of each column as float64.

    `deviation` is 0 exactly where a column is constant (or zero, when not centred).
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]


def _column_statistics(
    n: int,
    center: bool,
    statistics: tuple[NDArray[np.float64], ...],
    again: Callable[[NDArray[np.intp]], tuple[NDArray[np.float64], NDArray[np.float64]]],
    locate: Callable[[], None],
) -> _Columns:
    """From the sums of one pass; `again` gives mean and deviation where squares left the number range."""
    mean, square, spread = statistics
    degrees = max(n - 1, 1)
    with np.errstate(over="ignore", under="ignore"):
        if not center:
            square = square + n * mean**2
            spread = np.maximum(spread, np.abs(mean))
        deviation = np.sqrt(square / degrees)
    if not (np.isfinite(mean).all() and np.isfinite(square).all()):
        locate()
    deviation[spread == 0] = 0
    odd = np.flatnonzero(~np.isfinite(square) | ~np.isfinite(mean) | ((square < _TINY) & (spread > 0)))
    if len(odd):
        mean = mean.copy()
        with np.errstate(over="ignore", under="ignore"):
            mean[odd], deviation[odd] = again(odd)
    return _Columns(mean, deviation)


def _summed_again(
    columns: Callable[[NDArray[np.intp]], NDArray[Any]], n: int, center: bool, odd: NDArray[np.intp]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Mean and deviation of columns, scaled by powers of two; to the bit those of data of another scale."""
    mean, deviation, step = np.empty(len(odd)), np.empty(len(odd)), max(1, _CHUNK // n)
    for part in (slice(i, i + step) for i in range(0, len(odd), step)):
        x = columns(odd[part])
        unit = np.array([_range(size) for size in np.abs(x).max(axis=0)])
        x *= unit
        x *= unit
        sums, _ = _core.dense_statistics(x, center)
        mean[part] = sums[0]
        deviation[part] = np.sqrt((sums[1] + (0 if center else n * sums[0] ** 2)) / max(n - 1, 1))
        for a in (mean, deviation):
            a[part] = a[part] / unit / unit
    return mean, deviation


def _data_problem(
    columns: _Columns,
    n: int,
    dtype: np.dtype,
    center: bool,
    scale: bool,
    names: tuple[str, ...] | None,
    cost: int,
    make: Callable[..., _core.Operator],
) -> Problem:
    zero = columns.deviation == 0
    weight = deviation = None
    if scale:
        with np.errstate(over="ignore", under="ignore", divide="ignore"):
            deviation = np.where(zero, 1, columns.deviation).astype(dtype)
            weight = np.where(zero, 0, 1 / deviation).astype(dtype)
        for wrong, much in ((~np.isfinite(weight), "little"), (~np.isfinite(deviation), "much")):
            if wrong.any():
                j = int(np.argmax(wrong))
                raise ValueError(f"column {j} of X varies too {much} to be divided by its standard deviation")
    elif center and zero.any():  # a constant column must not return as rounding noise
        weight = np.where(zero, 0, 1).astype(dtype)
    largest = max(float(np.abs(columns.mean).max()), float(columns.deviation.max()))
    range_ = 1.0 if scale else _range(largest, dtype)
    with np.errstate(under="ignore"):
        diagonal = np.where(zero, 0.0, 1.0) if scale else (columns.deviation * range_ * range_) ** 2
    with np.errstate(under="ignore"):
        mean = columns.mean.astype(dtype) if center else None
    factor = 1.0 / max(n - 1, 1)
    operator = make(mean, weight, range_, factor)
    moment = diagonal
    if center:
        with np.errstate(over="ignore", under="ignore"):
            offset = columns.mean * range_ * range_
            moment = diagonal + (offset if weight is None else offset * weight) ** 2
    return Problem(
        operator=operator,
        n_samples=n,
        diagonal=diagonal,
        exponent=0 if scale else -4 * _exponent(range_),
        moment=moment,
        floor=0.0,
        mean=mean,
        scale=deviation,
        names=names,
        cost=cost,
        weight=weight,
        range=range_,
    )


def _covariance_problem(
    diagonal: NDArray[Any],
    largest: float,
    dtype: np.dtype,
    scale: bool,
    names: tuple[str, ...] | None,
    cost: int,
    make: Callable[..., _core.Operator],
) -> Problem:
    deviation = np.sqrt(np.maximum(diagonal, 0)).astype(np.float64)
    weight = None
    range_ = 1.0
    if scale:
        if (diagonal < -1e-8 * largest).any():
            raise ValueError("scale=True needs variances, and X has a negative diagonal entry")
        zero = deviation == 0
        weight = np.where(zero, 0, 1 / np.where(zero, 1, deviation)).astype(dtype)
        diagonal = np.where(zero, 0.0, 1.0)
    else:
        range_ = _range(largest, dtype)
        diagonal = diagonal.astype(np.float64) * range_ * range_
    return Problem(
        operator=make(None, weight, range_, 1.0),
        n_samples=None,
        diagonal=diagonal,
        exponent=-2 * _exponent(range_),
        moment=diagonal,
        floor=0.0,
        mean=None,
        scale=np.where(zero, 1, deviation).astype(dtype) if scale else None,
        names=names,
        cost=cost,
    )


# ---- dense ------------------------------------------------------------------------------------------


def _from_dense(
    X: Any, covariance: bool, center: bool, scale: bool, definite: bool, screening: str, missing: bool = False
) -> Problem:
    names = column_names(X)
    a = real_array(X, "X", ndim=2, finite=False)
    a = strided(a)
    if not covariance:
        n, p = a.shape
        plan = _screening.plan(a, screening)
        sums, size = _core.dense_statistics(a, center, None if plan is None else plan.shadow)
        with np.errstate(over="ignore", invalid="ignore"):
            statistics = sums[0], sums[1], sums[3] - sums[2]
        if missing and np.isnan(a[:, np.isnan(sums[0])]).any():
            return _from_missing(a, center, scale, names)
        columns = _column_statistics(
            n, center, statistics, partial(_summed_again, lambda block: _copied(a, block), n, center),
            lambda: raise_not_finite(a, "X"),
        )  # fmt: skip
        problem = _data_problem(
            columns, n, a.dtype, center, scale, names, n * p, lambda *s: _core.dense(a, False, *s)
        )
        return problem if plan is None else _screening.screened(problem, plan, a, sums, size)
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"a covariance must be square, not of shape {a.shape}; data go with kind='data'")
    largest, asymmetry, excess = _core.symmetry(a)
    if not math.isfinite(largest):
        raise_not_finite(a, "X")
    tolerance = largest * (1e-8 if a.dtype == np.float64 else 1e-5)
    if asymmetry > tolerance:
        raise ValueError(
            f"a covariance must be symmetric; X differs from its transpose by up to {asymmetry:.3g}"
        )
    if definite:
        refuse_indefinite(a if len(a) <= _LARGEST_CHOLESKY else None, largest, excess, tolerance)
    return _covariance_problem(
        a.diagonal(), largest, a.dtype, scale, names, len(a), lambda *s: _core.dense(a, True, *s)
    )


def _from_missing(a: NDArray[Any], center: bool, scale: bool, names: tuple[str, ...] | None) -> Problem:
    """Data with NaN entries: centred and scaled by what is observed, then 0 where nothing is."""
    n, p = a.shape
    mean, deviation = np.zeros(p), np.ones(p)
    filled = np.empty((n, p), a.dtype, order="F")
    step = max(1, _CHUNK // n)
    for block in (slice(start, start + step) for start in range(0, p, step)):
        x = a[:, block].astype(np.float64)
        missing = np.isnan(x)
        count = n - missing.sum(axis=0)
        if not count.all():
            raise ValueError(f"column {block.start + int(np.argmin(count))} of X has no entry but NaN")
        if np.isinf(x).any():
            raise_not_finite(np.where(np.isnan(a), 0, a), "X")
        first = x[np.argmin(missing, axis=0), np.arange(len(count))]
        constant = (missing | (x == first)).all(axis=0)
        x[missing] = 0
        unit = np.array([_range(size) for size in np.abs(x).max(axis=0)])
        x *= unit
        x *= unit
        if center:
            mean[block] = x.sum(axis=0) / count
            x -= mean[block]
            x[missing | constant] = 0
        if scale:
            square = np.sum(x**2, axis=0) / np.maximum(count - 1, 1)
            deviation[block] = np.sqrt(np.where(square == 0, 1, square))
            x /= deviation[block]
            deviation[block] *= np.where(square == 0, unit * unit, 1)
        with np.errstate(over="ignore", under="ignore"):
            for part in (mean[block], deviation[block], *(() if scale else (x,))):
                part /= unit
                part /= unit
            filled[:, block] = x
    problem = _from_dense(filled, False, False, False, True, "none")
    with np.errstate(under="ignore"):
        return replace(
            problem,
            mean=mean.astype(a.dtype) if center else None,
            scale=deviation.astype(a.dtype) if scale else None,
            names=names,
            filled=Filled(a, filled, problem.range, {}),
        )


def refuse_indefinite(a: Any, largest: float, excess: float, tolerance: float) -> None:
    """Raise unless `a` is positive semidefinite to rounding.

    By Cholesky factorization of `a` where it is small, and by its 2 x 2 minors otherwise.
    """
    bad = excess > tolerance
    if not bad and largest > 0 and a is not None:
        with np.errstate(under="ignore"):
            scaled = a.astype(np.float64) / largest
        scaled[np.diag_indices(len(a))] += tolerance / largest * np.abs(scaled).sum(axis=0).max()
        try:
            np.linalg.cholesky(scaled)
        except np.linalg.LinAlgError:
            bad = True
    if bad:
        raise ValueError("a covariance must be positive semidefinite, and X is not")


def strided(a: NDArray[Any]) -> NDArray[Any]:
    """`a` itself where rows or columns are contiguous and apart, else a copy."""
    size = a.itemsize
    for inner, outer in ((1, 0), (0, 1)):
        apart = a.strides[outer] >= size * a.shape[inner] and a.strides[outer] % size == 0
        if a.strides[inner] == size and (apart or a.shape[outer] == 1):
            return a
    return np.ascontiguousarray(a)


def _copied(a: NDArray[Any], columns: Any = slice(None)) -> NDArray[np.float64]:
    """Columns as float64 in the order of `a`."""
    return np.array(a[:, columns], np.float64, order="C" if a.strides[1] == a.itemsize else "F")


# ---- sparse -----------------------------------------------------------------------------------------


def _from_sparse(X: Any, covariance: bool, center: bool, scale: bool, definite: bool) -> Problem:
    X, arrays = _canonical_arrays(X)
    data = arrays[0]
    row_major = X.format == "csr"
    n, p = X.shape

    def locate() -> None:
        raise_not_finite(data, "X.data")

    if not covariance:
        columns = _column_statistics(
            n,
            center,
            tuple(_core.compressed_statistics(n, p, row_major, *arrays)),
            partial(_summed_again, lambda block: _copied(X[:, block].toarray()), n, center),
            locate,
        )
        return _data_problem(
            columns, n, data.dtype, center, scale, None, max(data.size, p),
            lambda *s: _core.compressed(n, p, row_major, *arrays, False, *s),
        )  # fmt: skip
    if n != p:
        raise ValueError(f"a covariance must be square, not of shape {X.shape}")
    if not all(np.isfinite(data[s : s + _CHUNK]).all() for s in range(0, data.size, _CHUNK)):
        locate()
    largest = max(float(data.max(initial=0)), -float(data.min(initial=0)))
    relative = 1e-8 if data.dtype == np.float64 else 1e-5
    range_ = _range(largest, data.dtype)  # A'v = Av for every v, without a transposed copy
    probe = np.random.default_rng(0).standard_normal(p) * range_
    asymmetry = float(np.abs(X @ probe - X.T @ probe).max()) * range_
    if asymmetry > largest * range_ * range_ * relative * math.sqrt(p):
        with np.errstate(over="ignore"):
            apart = np.ldexp(asymmetry, -2 * _exponent(range_))
        raise ValueError(f"a covariance must be symmetric; X @ v and X.T @ v differ by up to {apart:.3g}")
    diagonal = X.diagonal().astype(data.dtype)
    if definite:
        tolerance = largest * relative
        excess = _excess(diagonal, *arrays)
        refuse_indefinite(X.toarray() if p <= _LARGEST_CHOLESKY else None, largest, excess, tolerance)
    return _covariance_problem(
        diagonal, largest, data.dtype, scale, None, max(data.size, p),
        lambda *s: _core.compressed(n, p, row_major, *arrays, True, *s),
    )  # fmt: skip


def _canonical_arrays(X: Any) -> tuple[Any, tuple[NDArray[Any], NDArray[Any], NDArray[Any]]]:
    """CSR or CSC with ascending indices, and (data, indices, indptr) as the kernels read them."""
    X = compressed(X)
    with np.errstate(over="ignore", under="ignore"):  # of long doubles
        data = np.require(X.data, float_type(X.dtype), ["C", "A"])
    wide = np.int64 if np.int64 in (X.indices.dtype, X.indptr.dtype) else np.int32
    indices, indptr = np.require(X.indices, wide, ["C", "A"]), np.require(X.indptr, wide, ["C", "A"])
    return X, (data, indices, indptr)


class _Corrupt(Exception):
    """Indices or indptr point outside of the matrix."""


def compressed(X: Any, name: str = "X") -> Any:
    """A sparse matrix as CSR or CSC with sound indices, each line ascending, and nothing after the last.

    scipy follows unsound indices out of bounds; its own answer to whether they ascend may be out of date.
    """
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"{name} must have 2 dimensions and not be empty: shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {X.dtype}; real numbers are needed")
    try:
        if X.format not in ("csr", "csc"):
            _check_before_conversion(X)
            X = X.tocsr()
        n, p = X.shape
        _check_indices(X.indptr, X.indices, X.data, *((n, p) if X.format == "csr" else (p, n)))
    except _Corrupt:
        raise ValueError(
            f"{name} is a corrupt sparse matrix: its indices or indptr point outside of it"
        ) from None
    stored = int(X.indptr[-1])
    if stored < max(len(X.data), len(X.indices)) or not X.dtype.isnative:
        data = X.data[:stored].astype(X.dtype.newbyteorder("="), copy=False)
        X = type(X)((data, X.indices[:stored], X.indptr), shape=X.shape)
    if not _canonical(X):
        X = X.copy()
        X.sum_duplicates()
    return X


def _sound(condition: Any) -> None:
    if not condition:
        raise _Corrupt


def _check_indices(ptr: Any, idx: Any, data: Any, lines: int, length: int, data_ndim: int = 1) -> None:
    _sound(ptr.dtype.kind in "iu" and idx.dtype.kind in "iu" and idx.ndim == 1 and data.ndim == data_ndim)
    _sound(ptr.shape == (lines + 1,) and ptr[0] == 0 and (ptr[1:] >= ptr[:-1]).all())
    _sound(ptr[-1] <= min(len(idx), len(data)))
    idx = idx[: ptr[-1]]
    _sound(len(idx) == 0 or (idx.min() >= 0 and idx.max() < length))


def _check_before_conversion(X: Any) -> None:
    """What `tocsr` itself would follow out of bounds."""
    n, p = X.shape
    if X.format == "coo":
        for c, size in zip(X.coords, X.shape, strict=True):
            _sound(c.shape == X.data.shape and c.ndim == 1 and c.dtype.kind in "iu")
            _sound(len(c) == 0 or (c.min() >= 0 and c.max() < size))
    elif X.format == "bsr":
        r, c = X.blocksize
        _sound(r > 0 and c > 0 and n % r == 0 and p % c == 0)
        _check_indices(X.indptr, X.indices, X.data, n // r, p // c, 3)
    elif X.format == "lil":
        _sound(len(X.rows) == len(X.data) == n)
        _sound(all(len(row) == len(values) for row, values in zip(X.rows, X.data, strict=True)))
    elif X.format == "dia":
        _sound(X.data.ndim == 2 and X.offsets.shape == X.data.shape[:1])


def _canonical(X: Any) -> bool:
    """Whether the indices of each line ascend strictly."""
    ptr, idx = X.indptr, X.indices
    for s in range(0, len(idx) - 1, _CHUNK):
        part = idx[s : s + _CHUNK + 1]
        falls = np.flatnonzero(part[1:] <= part[:-1]) + (s + 1)
        if (ptr[np.searchsorted(ptr, falls)] != falls).any():
            return False
    return True


def permuted_columns(X: Any, generator: np.random.Generator) -> Any:
    """The entries of each column in a random order."""
    if not is_sparse(X):
        return generator.permuted(X, axis=0)
    from scipy.sparse import csc_array

    X = X.tocsc()
    indices, n = np.empty_like(X.indices), X.shape[0]
    for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        indices[start:end] = generator.choice(n, end - start, replace=False)
    return csc_array((X.data, indices, X.indptr), shape=X.shape)


def _excess(diagonal: Any, data: Any, indices: Any, indptr: Any) -> float:
    """The largest excess |a_ij| - sqrt(a_ii a_jj) of a 2 x 2 minor that is not semidefinite."""
    root = np.sqrt(np.maximum(diagonal, 0).astype(np.float64))
    most, first, lines = 0.0, 0, len(diagonal)
    while first < lines:
        last = max(first + 1, int(np.searchsorted(indptr, indptr[first] + _CHUNK, "right")) - 1)
        part = slice(indptr[first], indptr[last])
        with np.errstate(under="ignore"):
            bound = np.repeat(root[first:last], np.diff(indptr[first : last + 1])) * root[indices[part]]
        most = max(most, float((np.abs(data[part]) - bound).max(initial=0)))
        first = last
    return most


# ---- by degrees -------------------------------------------------------------------------------------


def degree_problem(X: Any, *, center: bool) -> Problem:
    """The operator of `X_ij / sqrt((d_i + tau) (g_j + tau'))` for nonnegative X.

    d and g are the row and column sums, tau and tau' their means.
    """
    names = column_names(X)
    if is_row_blocks(X):
        raise ValueError("scale='degree' needs the data in memory, and X is in blocks of rows")
    make: Callable[..., _core.Operator]
    if is_sparse(X):
        X, arrays = _canonical_arrays(X)
        row_major, data = X.format == "csr", arrays[0]
        n, p = X.shape
        make = lambda *s: _core.compressed(n, p, row_major, *arrays, False, *s)  # noqa: E731
        sums, name = partial(_compressed_sums, row_major, (n, p), *arrays), "X.data"
    else:
        data = strided(real_array(X, "X", ndim=2, finite=False))
        n, p = data.shape
        make = lambda *s: _core.dense(data, False, *s)  # noqa: E731
        sums, name = partial(_dense_sums, data), "X"
    with np.errstate(over="ignore", invalid="ignore"):
        low, row, column, _ = sums(np.ones(n))
    if not (np.isfinite(row).all() and np.isfinite(column).all()):
        raise_not_finite(data, name)
        raise ValueError("the row and column sums of X exceed the number range")
    if low < 0:
        raise ValueError(f"scale='degree' needs nonnegative entries, and X has {low:.6g}")
    if not row.any():
        raise ValueError("X has no entry but zeros")
    row_weight = (1 / np.sqrt(row + row.mean())).astype(data.dtype)
    weight = (1 / np.sqrt(column + column.mean())).astype(data.dtype)
    _, _, mean, square = sums(row_weight.astype(np.float64))
    mean /= n
    spread = square - n * mean**2 if center else square
    zero = spread <= 1e-13 * square  # constant to rounding
    weight[zero] = 0
    moment = square * weight.astype(np.float64) ** 2 / max(n - 1, 1)
    means = mean.astype(data.dtype) if center else None
    return Problem(
        operator=make(means, weight, 1.0, 1.0 / max(n - 1, 1)).row_weighted(row_weight),
        n_samples=n,
        diagonal=np.where(zero, 0, spread) * weight.astype(np.float64) ** 2 / max(n - 1, 1),
        exponent=0,
        moment=moment,
        floor=0.0,
        mean=means,
        scale=np.sqrt(column + column.mean()).astype(data.dtype),
        names=names,
        cost=data.size,
        weight=weight,
        row_weight=row_weight,
    )


_Sums = tuple[float, NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]


def _dense_sums(a: NDArray[Any], weight: NDArray[np.float64]) -> _Sums:
    """The lowest entry, the sum of each row; of each column sum and squares, the rows weighted."""
    (n, p), low = a.shape, np.inf
    row, column, square = np.empty(n), np.zeros(p), np.zeros(p)
    step = max(1, _CHUNK // 4 // p)
    for part in (slice(s, s + step) for s in range(0, n, step)):
        x = a[part].astype(np.float64)
        low = min(low, float(x.min()))
        row[part] = x.sum(axis=1)
        x *= weight[part, None]
        column += x.sum(axis=0)
        square += np.einsum("ij,ij->j", x, x)
    return low, row, column, square


def _compressed_sums(
    row_major: bool, shape: tuple[int, int], data: Any, indices: Any, indptr: Any, weight: NDArray[np.float64]
) -> _Sums:
    row, column, square = np.zeros(shape[0]), np.zeros(shape[1]), np.zeros(shape[1])
    low = float(data.min(initial=0))
    first, lines = 0, len(indptr) - 1
    while first < lines:
        last = max(first + 1, int(np.searchsorted(indptr, indptr[first] + _CHUNK // 4, "right")) - 1)
        part = slice(indptr[first], indptr[last])
        x, other = data[part].astype(np.float64), indices[part]
        line = np.repeat(np.arange(last - first), np.diff(indptr[first : last + 1]))
        if row_major:
            row[first:last] = np.bincount(line, x, last - first)
            x *= weight[first + line]
            column += np.bincount(other, x, shape[1])
            square += np.bincount(other, x * x, shape[1])
        else:
            row += np.bincount(other, x, shape[0])
            x *= weight[other]
            column[first:last] = np.bincount(line, x, last - first)
            square[first:last] = np.bincount(line, x * x, last - first)
        first = last
    return low, row, column, square


# ---- operators known by their products --------------------------------------------------------------


class _Products:
    """F v and F'f by the caller's products, with the mean removed and the range brought near 1."""

    def __init__(self, matvec: Any, rmatvec: Any, n: int, p: int, dtype: np.dtype, center: bool):
        self.matvec, self.rmatvec, self.shape, self.dtype = matvec, rmatvec, (n, p), dtype
        self.mean: NDArray[Any] | None = None
        self.range = 1.0
        if center:
            self.mean = self._checked(rmatvec, np.ones(n, dtype), p) / n
        sample = self.forward(np.random.default_rng(0).standard_normal(p).astype(dtype) / math.sqrt(p))
        largest = float(np.abs(sample).max())
        if self.mean is not None:  # below this, the sample is rounding alone
            largest = max(largest, float(np.finfo(dtype).eps * np.abs(self.mean).max()))
        self.range = _range(largest, dtype)

    def _checked(self, product: Any, v: NDArray[Any], length: int) -> NDArray[Any]:
        try:
            y = np.asarray(product(v))
        except StopIteration as error:  # which would end a generator, or a search, without a word
            raise RuntimeError(f"X, an operator, raised StopIteration: {error}") from error
        if y.dtype.kind not in "fiu":
            raise TypeError(f"X, an operator, returned dtype {y.dtype}; real numbers are needed")
        if y.size != length or y.ndim > 2:
            raise ValueError(f"X, an operator, returned shape {y.shape} where ({length},) is needed")
        with np.errstate(over="ignore", under="ignore"):
            y = np.ascontiguousarray(y.reshape(length), self.dtype)
        if not np.isfinite(y).all():
            raise ValueError("X, an operator, returned NaN or infinity")
        return y

    def _scaled(self, v: NDArray[Any]) -> NDArray[Any]:
        with np.errstate(under="ignore"):
            return v * self.dtype.type(self.range)

    def forward(self, v: NDArray[Any]) -> NDArray[Any]:
        v = self._scaled(v)
        shift = 0 if self.mean is None else self.mean @ v
        return self._scaled(self._checked(self.matvec, v, self.shape[0]) - shift)

    def backward(self, f: NDArray[Any]) -> NDArray[Any]:
        f = self._scaled(f)
        shift = 0 if self.mean is None else f.sum() * self.mean
        return self._scaled(self._checked(self.rmatvec, f, self.shape[1]) - shift)


def _entries(owner: _Products) -> NDArray[Any]:
    """The symmetric matrix, by its product with each unit vector; as it is where it is far from symmetric."""
    p = owner.shape[1]
    A = np.empty((p, p), owner.dtype, order="F")
    for j in range(p):
        A[:, j] = owner._checked(owner.matvec, np.eye(1, p, j, owner.dtype)[0], p)
    with np.errstate(over="ignore", under="ignore"):
        rounded = np.abs(A - A.T).max() <= 1e-5 * np.abs(A).max()
        return A / 2 + A.T / 2 if rounded else A


def _from_products(
    X: Any, covariance: bool, center: bool, scale: bool, n_features: int | None, definite: bool
) -> Problem:
    small = covariance and (X.shape[1] if is_operator(X) else n_features or LARGEST) <= _FEW_PRODUCTS
    if scale and not small:
        raise ValueError("scale=True needs the entries of X; an operator offers only products")
    if is_operator(X):
        n, p = X.shape
        matvec, rmatvec, dtype = X.matvec, X.rmatvec, np.dtype(X.dtype)
        if dtype.kind not in "fiub":
            raise TypeError(f"X has dtype {dtype}; real numbers are needed")
        if n == 0 or p == 0:
            raise ValueError(f"X is empty: shape {X.shape}")
        if covariance and n != p:
            raise ValueError(f"a covariance must be square, not of shape {X.shape}")
    else:
        if not covariance:
            raise TypeError(
                "X is a callable, which must be a covariance product v -> A v: pass kind='covariance'"
            )
        if n_features is None:
            raise TypeError("X is a callable, which has no shape: pass n_features")
        n = p = n_features
        matvec, rmatvec, dtype = X, None, np.dtype(np.float64)
    dtype = float_type(dtype)
    owner = _Products(matvec, rmatvec, n, p, dtype, center and not covariance)
    if small:
        return _from_dense(_entries(owner), True, center, scale, definite, "none")
    factor = 1.0 if covariance else 1.0 / max(n - 1, 1)
    eps = float(np.finfo(dtype).eps)
    size = 1.0  # of A: its products are about that
    if owner.mean is not None:  # what was subtracted may have been larger
        with np.errstate(over="ignore", under="ignore"):
            size += float(np.sum((owner.mean.astype(np.float64) * owner.range * owner.range) ** 2))
    return Problem(
        operator=_core.products(owner, n, p, covariance, factor, dtype == np.float32),
        n_samples=None if covariance else n,
        diagonal=None,
        exponent=(-2 if covariance else -4) * _exponent(owner.range),
        moment=None,
        floor=eps * p if covariance else 4 * eps**2 * max(n, p) * size,
        mean=owner.mean,
        scale=None,
        names=None,
        cost=n * p,
    )


def scores(
    X: Any,
    loadings: NDArray[Any],
    mean: NDArray[Any] | None,
    scale: NDArray[Any] | None,
    row_weight: NDArray[Any] | None = None,
) -> NDArray[Any]:
    """((diag(row_weight) X - mean) / scale) @ loadings, reading only the columns that some loading uses."""
    p = len(loadings)
    if is_row_blocks(X):
        from . import _blocks

        return _blocks.scores(X, loadings, mean, scale)
    if row_weight is not None:
        result = row_weight[:, None] * scores(X, loadings, None, scale)
        if mean is not None:
            result -= mean @ (loadings if scale is None else loadings / scale[:, None])
        return result
    used = np.flatnonzero(loadings.any(axis=1))
    V = loadings[used]
    if scale is not None:
        V = V / scale[used, None]
    if is_sparse(X) or is_operator(X):
        if is_sparse(X):
            X = compressed(X)
        if X.shape[1] != p:
            raise ValueError(f"X has shape {X.shape} where (m, {p}) is needed")
        full = np.zeros_like(loadings)
        full[used] = V
        result = np.asarray(X @ full)
        if result.dtype.kind not in "fiu":
            raise TypeError(f"X, an operator, returned dtype {result.dtype}; real numbers are needed")
        if not np.isfinite(result).all():
            if is_sparse(X):
                raise_not_finite(X.data, "X.data")
            raise ValueError("X, an operator, returned NaN or infinity")
        return result if mean is None else result - mean[used] @ V
    a = real_array(X, "X", ndim=2, finite=False)
    if a.shape[1] != p:
        raise ValueError(f"X has shape {a.shape} where (m, {p}) is needed")
    out = np.empty((len(a), V.shape[1]), np.result_type(a, V))
    step = max(1, _CHUNK // max(1, len(used)))
    for start in range(0, len(a), step):  # rows of the columns in use are copied, some at a time
        part = a[start : start + step, used]
        if not np.isfinite(part).all():
            raise_not_finite(a, "X")
        with np.errstate(under="ignore"):
            out[start : start + step] = (part if mean is None else part - mean[used]) @ V
    return out
