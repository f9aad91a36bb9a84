"""From the caller's matrix to the operator that solvers see; the matrix itself is never copied.

Dense arrays in C or Fortran order, CSR and CSC matrices, `LinearOperator`s and callables all become
one `_core.Operator` for the covariance matrix `A`; what has entries also gets its diagonal.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from . import _core
from ._input import choice, flag, integer, raise_not_finite, real_array

_LARGEST_CHOLESKY = 1500
_TINY = 1e-280  # below this a sum of squares has lost terms to underflow
_CHUNK = 1 << 22  # entries copied at a time where a pass has to be repeated


@dataclass(frozen=True)
class Problem:
    """An operator with what Python needs to know of it.

    Attributes
    ----------
    operator : _core.Operator
    n_samples : int or None
        None for a covariance.
    diagonal : ndarray of shape (p,) or None
        Of the operator, in its own units; None where only products are known.
    unit : float
        A value of the operator times `unit` is a variance in the caller's units.
    noise : float
        Variance, in the operator's units, that rounding alone may leave.
    mean, scale : ndarray of shape (p,) or None
        What is subtracted from, then divides, each column.
    names : tuple of str or None
    cost : int
        Multiplications of one product, for deciding how many starts to afford.
    """

    operator: _core.Operator
    n_samples: int | None
    diagonal: NDArray[Any] | None
    unit: float
    noise: float
    mean: NDArray[Any] | None
    scale: NDArray[Any] | None
    names: tuple[str, ...] | None
    cost: int

    @property
    def p(self) -> int:
        return self.operator.p

    @property
    def total_variance(self) -> float | None:
        """The trace of A in the caller's units."""
        return None if self.diagonal is None else self.in_units(self.diagonal.sum())

    def in_units(self, value: Any) -> Any:
        """Operator values as the caller's variances; inf or 0 where those leave the number range."""
        with np.errstate(over="ignore", under="ignore"):
            return value * self.unit


def as_problem(
    X: Any,
    *,
    kind: str = "data",
    center: bool = True,
    scale: bool = False,
    n_features: int | None = None,
    definite: bool = True,
) -> Problem:
    """Validate the caller's matrix and wrap it; `definite` refuses an indefinite covariance."""
    covariance = choice(kind, "kind", ("data", "covariance")) == "covariance"
    center, scale = flag(center, "center"), flag(scale, "scale")
    if scipy.sparse.issparse(X):
        return _from_sparse(X, covariance, center, scale, definite)
    if isinstance(X, LinearOperator) or (callable(X) and not hasattr(X, "__array__")):
        return _from_products(X, covariance, center, scale, n_features)
    return _from_dense(X, covariance, center, scale, definite)


# ---- scaling ----------------------------------------------------------------------------------------


def _range(largest: float) -> float:
    """The power of two whose square brings `largest` near 1."""
    return 2.0 ** -(math.frexp(largest)[1] // 2) if largest > 0 else 1.0


@dataclass(frozen=True)
class _Columns:
    """Mean, and root mean square about it (or about 0) with n - 1, of each column as float64.

    `deviation` is 0 exactly where a column is constant (or zero, when not centred).
    """

    mean: NDArray[np.float64]
    deviation: NDArray[np.float64]


def _column_statistics(
    n: int,
    center: bool,
    statistics: NDArray[np.float64],
    columns: Callable[[NDArray[np.intp]], NDArray[Any]],
    locate: Callable[[], None],
) -> _Columns:
    """From the sums of one pass; columns whose squares left the number range are summed again, scaled."""
    mean, square, spread = statistics
    degrees = max(n - 1, 1)
    if not center:
        square = square + n * mean**2
        spread = np.maximum(spread, np.abs(mean))
    deviation = np.sqrt(square / degrees)
    if not (np.isfinite(mean).all() and np.isfinite(square).all()):
        locate()
    deviation[spread == 0] = 0
    odd = np.flatnonzero(~np.isfinite(square) | ~np.isfinite(mean) | ((square < _TINY) & (spread > 0)))
    step = max(1, _CHUNK // n)
    for block in (odd[i : i + step] for i in range(0, len(odd), step)):
        x = columns(block).astype(np.float64)
        unit = np.array([_range(size) for size in np.abs(x).max(axis=0)])
        x = x * unit * unit
        mean[block] = x.mean(axis=0)
        deviation[block] = np.sqrt(np.sum((x - mean[block] * center) ** 2, axis=0) / degrees)
        for a in (mean, deviation):
            a[block] = a[block] / unit / unit
    return _Columns(mean, deviation)


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
    p = len(columns.mean)
    zero = columns.deviation == 0
    weight = None
    if scale:
        weight = np.zeros(p)
        np.divide(1.0, columns.deviation, out=weight, where=~zero)
        weight = weight.astype(dtype)
        if not np.isfinite(weight).all():
            j = int(np.argmin(np.isfinite(weight)))
            raise ValueError(f"column {j} varies too little to be divided by its standard deviation")
    elif center and zero.any():  # a constant column must not return as rounding noise
        weight = np.where(zero, 0, 1).astype(dtype)
    largest = max(float(np.abs(columns.mean).max()), float(columns.deviation.max()))
    range_ = 1.0 if scale else _range(largest)
    diagonal = np.where(zero, 0.0, 1.0) if scale else (columns.deviation * range_ * range_) ** 2
    mean = columns.mean.astype(dtype) if center else None
    factor = 1.0 / max(n - 1, 1)
    operator = make(mean, weight, range_, factor)
    spread = diagonal.sum()
    if center:
        with np.errstate(over="ignore", under="ignore"):
            offset = columns.mean * range_ * range_
            spread += float(np.sum((offset if weight is None else offset * weight) ** 2))
    eps = np.finfo(dtype).eps
    return Problem(
        operator=operator,
        n_samples=n,
        diagonal=diagonal,
        unit=1.0 if scale else _power(range_, -4),
        noise=4 * eps**2 * max(n, p) * spread,
        mean=mean,
        scale=np.where(zero, 1, columns.deviation).astype(dtype) if scale else None,
        names=names,
        cost=cost,
    )


def _power(range_: float, exponent: int) -> float:
    """range_**exponent, inf or 0 where that leaves the number range."""
    try:
        return range_**exponent
    except OverflowError:
        return math.inf


def _covariance_problem(
    diagonal: NDArray[Any],
    largest: float,
    dtype: np.dtype,
    scale: bool,
    names: tuple[str, ...] | None,
    cost: int,
    make: Callable[..., _core.Operator],
) -> Problem:
    p = len(diagonal)
    deviation = np.sqrt(np.maximum(diagonal, 0)).astype(np.float64)
    weight = None
    range_ = 1.0
    if scale:
        zero = deviation == 0
        weight = np.where(zero, 0, 1 / np.where(zero, 1, deviation)).astype(dtype)
        diagonal = np.where(zero, 0.0, 1.0)
    else:
        range_ = _range(largest)
        diagonal = diagonal.astype(np.float64) * range_ * range_
    return Problem(
        operator=make(None, weight, range_, 1.0),
        n_samples=None,
        diagonal=diagonal,
        unit=_power(range_, -2),
        noise=float(np.finfo(dtype).eps * p * diagonal.max()),
        mean=None,
        scale=np.where(zero, 1, deviation).astype(dtype) if scale else None,
        names=names,
        cost=cost,
    )


# ---- dense ------------------------------------------------------------------------------------------


def _from_dense(X: Any, covariance: bool, center: bool, scale: bool, definite: bool) -> Problem:
    names = column_names(X)
    a = real_array(X, "X", ndim=2, finite=False)
    a = strided(a)
    if not covariance:
        n, p = a.shape
        columns = _column_statistics(
            n, center, _core.dense_statistics(a), lambda block: a[:, block], lambda: raise_not_finite(a, "X")
        )
        return _data_problem(
            columns, n, a.dtype, center, scale, names, n * p, lambda *s: _core.dense(a, False, *s)
        )
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"a covariance must be square, not of shape {a.shape}")
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


def refuse_indefinite(a: NDArray[Any] | None, largest: float, excess: float, tolerance: float) -> None:
    """Raise unless a covariance is positive semidefinite to rounding.

    By Cholesky factorization of `a` where it is small, and by its 2 x 2 minors otherwise.
    """
    bad = excess > tolerance
    if not bad and largest > 0 and a is not None:
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


def column_names(X: Any) -> tuple[str, ...] | None:
    """The column names of any dataframe, as strings."""
    columns = getattr(X, "columns", None)
    if columns is None or isinstance(X, np.ndarray) or callable(columns):
        return None
    return tuple(str(name) for name in columns)


# ---- sparse -----------------------------------------------------------------------------------------


def _from_sparse(X: Any, covariance: bool, center: bool, scale: bool, definite: bool) -> Problem:
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X must have 2 dimensions and not be empty: shape {X.shape}")
    if X.dtype.kind not in "fiub":
        raise TypeError(f"X has dtype {X.dtype}; real numbers are needed")
    if X.format not in ("csr", "csc"):
        X = X.tocsr()
    row_major = X.format == "csr"
    n, p = X.shape
    _check_compressed(X, (n, p) if row_major else (p, n))
    if not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    data = np.require(X.data, np.float32 if X.dtype in (np.float16, np.float32) else np.float64, ["C", "A"])
    wide = np.int64 if np.int64 in (X.indices.dtype, X.indptr.dtype) else np.int32
    indices, indptr = np.require(X.indices, wide, ["C", "A"]), np.require(X.indptr, wide, ["C", "A"])
    arrays = (data, indices, indptr)

    def locate() -> None:
        raise_not_finite(data, "X.data")

    if not covariance:
        columns = _column_statistics(
            n,
            center,
            _core.compressed_statistics(n, p, row_major, *arrays),
            lambda block: X[:, block].toarray(),
            locate,
        )
        return _data_problem(
            columns, n, data.dtype, center, scale, None, max(data.size, p),
            lambda *s: _core.compressed(n, p, row_major, *arrays, False, *s),
        )  # fmt: skip
    if n != p:
        raise ValueError(f"a covariance must be square, not of shape {X.shape}")
    if not np.isfinite(data).all():
        locate()
    largest = float(np.abs(data).max(initial=0))
    probe = np.random.default_rng(0).standard_normal(p)  # A'v = Av for every v, without a transposed copy
    asymmetry = float(np.abs(X @ probe - X.T @ probe).max())
    if asymmetry > largest * (1e-8 if data.dtype == np.float64 else 1e-5) * math.sqrt(p):
        raise ValueError(f"a covariance must be symmetric; X @ v and X.T @ v differ by up to {asymmetry:.3g}")
    diagonal = X.diagonal()
    if definite:
        tolerance = largest * (1e-8 if data.dtype == np.float64 else 1e-5)
        entries = X.toarray() if p <= _LARGEST_CHOLESKY else None
        refuse_indefinite(entries, largest, _minor_excess(arrays, diagonal), tolerance)
    return _covariance_problem(
        diagonal, largest, data.dtype, scale, None, max(data.size, p),
        lambda *s: _core.compressed(n, p, row_major, *arrays, True, *s),
    )  # fmt: skip


def _minor_excess(arrays: tuple[NDArray[Any], ...], diagonal: NDArray[Any]) -> float:
    """The largest |a_ij| - sqrt(a_ii a_jj), or -a_ii, some lines at a time."""
    data, indices, indptr = arrays
    root = np.sqrt(np.maximum(diagonal, 0).astype(np.float64))
    excess = float(-diagonal.min())
    first = 0
    while first < len(diagonal):
        last = max(first + 1, int(np.searchsorted(indptr, indptr[first] + _CHUNK, side="right")) - 1)
        entries = slice(indptr[first], indptr[last])
        bound = np.repeat(root[first:last], np.diff(indptr[first : last + 1])) * root[indices[entries]]
        excess = max(excess, float((np.abs(data[entries]) - bound).max(initial=0)))
        first = last
    return excess


def _check_compressed(X: Any, shape: tuple[int, int]) -> None:
    """Refuse arrays that a kernel would follow out of bounds; scipy accepts them."""
    lines, length = shape
    ptr, idx, data = X.indptr, X.indices, X.data
    sound = (
        ptr.shape == (lines + 1,)
        and ptr[0] == 0
        and (np.diff(ptr) >= 0).all()
        and ptr[-1] <= min(len(idx), len(data))
        and (len(idx) == 0 or (idx.min() >= 0 and idx.max() < length))
    )
    if not sound:
        raise ValueError("X is a corrupt sparse matrix: its indices or indptr point outside of it")


# ---- operators known by their products --------------------------------------------------------------


class _Products:
    """F v and F'f by the caller's products, with the mean removed and the range brought near 1."""

    def __init__(self, matvec: Any, rmatvec: Any, n: int, p: int, dtype: np.dtype, center: bool):
        self.matvec, self.rmatvec, self.shape, self.dtype = matvec, rmatvec, (n, p), dtype
        self.mean: NDArray[Any] | None = None
        self.range = 1.0
        if center:
            self.mean = self._checked(rmatvec(np.ones(n, dtype)), p) / n
        sample = self.forward(np.random.default_rng(0).standard_normal(p).astype(dtype) / math.sqrt(p))
        largest = float(np.abs(sample).max())
        if not math.isfinite(largest):
            raise ValueError("the operator returned NaN or infinity")
        self.range = _range(largest) ** 2

    def _checked(self, y: Any, length: int) -> NDArray[Any]:
        y = np.asarray(y)
        if y.dtype.kind not in "fiu":
            raise TypeError(f"the operator returned dtype {y.dtype}; real numbers are needed")
        if y.size != length or y.ndim > 2:
            raise ValueError(f"the operator returned shape {y.shape} where ({length},) is needed")
        return np.ascontiguousarray(y.reshape(length), self.dtype)

    def forward(self, v: NDArray[Any]) -> NDArray[Any]:
        f = self._checked(self.matvec(v), self.shape[0])
        if self.mean is not None:
            f = f - self.mean @ v
        return np.asarray(f * self.dtype.type(self.range), self.dtype)

    def backward(self, f: NDArray[Any]) -> NDArray[Any]:
        y = self._checked(self.rmatvec(f), self.shape[1])
        if self.mean is not None:
            y = y - f.sum() * self.mean
        return np.asarray(y * self.dtype.type(self.range), self.dtype)


def _from_products(X: Any, covariance: bool, center: bool, scale: bool, n_features: int | None) -> Problem:
    if scale:
        raise ValueError("scale=True needs the entries of X; an operator offers only products")
    if isinstance(X, LinearOperator):
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
            raise TypeError("a callable must be a covariance product v -> A v: pass kind='covariance'")
        if n_features is None:
            raise TypeError("a callable has no shape: pass n_features")
        n = p = integer(n_features, "n_features", 1)
        matvec, rmatvec, dtype = X, None, np.dtype(np.float64)
    single = dtype in (np.float16, np.float32)
    dtype = np.dtype(np.float32 if single else np.float64)
    owner = _Products(matvec, rmatvec, n, p, dtype, center and not covariance)
    factor = 1.0 if covariance else 1.0 / max(n - 1, 1)
    eps = float(np.finfo(dtype).eps)
    return Problem(
        operator=_core.products(owner, n, p, covariance, factor, single),
        n_samples=None if covariance else n,
        diagonal=None,
        unit=owner.range**-1 if covariance else owner.range**-2,
        noise=eps * p if covariance else 4 * eps**2 * max(n, p),
        mean=owner.mean,
        scale=None,
        names=None,
        cost=n * p,
    )


def scores(
    X: Any, loadings: NDArray[Any], mean: NDArray[Any] | None, scale: NDArray[Any] | None
) -> NDArray[Any]:
    """((X - mean) / scale) @ loadings, reading only the columns that some loading uses."""
    p = len(loadings)
    used = np.flatnonzero(loadings.any(axis=1))
    V = loadings[used]
    if scale is not None:
        V = V / scale[used, None]
    if scipy.sparse.issparse(X) or isinstance(X, LinearOperator):
        if X.ndim != 2 or X.shape[1] != p:
            raise ValueError(f"X has shape {X.shape} where (m, {p}) is needed")
        full = np.zeros_like(loadings)
        full[used] = V
        result = np.asarray(X @ full)
        if not np.isfinite(result).all():
            raise ValueError("X has entries that are NaN or infinite")
        return result if mean is None else result - mean[used] @ V
    a = real_array(X, "X", ndim=2, finite=False)
    if a.shape[1] != p:
        raise ValueError(f"X has shape {a.shape} where (m, {p}) is needed")
    part = a[:, used]
    if not np.isfinite(part).all():
        raise_not_finite(a, "X")
    return (part if mean is None else part - mean[used]) @ V
