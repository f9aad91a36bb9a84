"""Random Fourier features: maps whose products approximate the Gaussian kernel.

exp(-||x - y||^2 / (2 sigma^2)) is the mean of 2 cos(w'x + b) cos(w'y + b) over w ~ N(0, I / sigma^2) and b
uniform in [0, 2 pi) (Rahimi and Recht 2007). With m draws as the features Z of all rows, the kernel matrix is
nearly ZZ', whose components are those of the m x m matrix Z'HZ, H = I - 11'/n, a sum over blocks of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from .._labels import columns_of
from .._limits import BANDWIDTH_ROWS, COPIED_ENTRIES, slices
from .._records import filled, frozen_record
from .._types import AnyArray, Array, MatrixLike, Names, RandomSource
from .._validation import (
    aligned,
    as_seed,
    check_shape,
    float_type,
    framed,
    integer,
    is_operator,
    is_row_blocks,
    is_sparse,
    positive,
    real_array,
)
from ..linalg.orthogonal import matrix_product
from ..linalg.scaling import EPS, below_range, beyond_range, exponent_above, largest_magnitude
from ..operators.blocks import RowBlocks, finite, naming_not_finite
from ..operators.moments import column_means, merged_moments, moments_of
from ..operators.partition import row_blocks
from ..operators.sparse import as_finite
from ..readable import Result

# ---- rows as kernels read them: arrays, CSR matrices, blocks, or anything that is sliced ----------------


def finite_rows(X: Any, square: bool = False, name: str = "X") -> Any:
    """Return X as a finite float array or CSR matrix, by reference where possible."""
    if is_operator(X):
        raise TypeError(f"{name} is a LinearOperator, and a kernel needs its rows")
    a = real_array(X, name, ndim=2) if square else as_finite(X, name)
    if square and a.shape[0] != a.shape[1]:
        raise ValueError(f"a precomputed kernel matrix must be square, not of shape {a.shape}")
    return a


def median_distance(a: Any, weight: Array | None) -> float:
    """Return the median distance between rows of a that differ, each pair as often as the weights say."""
    a = a.toarray().astype(np.float64) if is_sparse(a) else a.astype(np.float64)
    exponent = exponent_above(largest_magnitude(a))
    a = np.ldexp(a, -exponent)
    a -= a.mean(axis=0)
    square = np.einsum("ij,ij->i", a, a)
    sums = square[:, None] + square
    distance = sums - 2 * matrix_product(a)
    distance[distance <= (16 + a.shape[1]) * EPS * sums] = 0
    pairs = np.tri(len(a), k=-1, dtype=bool) & (distance > 0)
    times = None if weight is None else np.outer(weight, weight)[pairs]
    distance = distance[pairs]
    if not len(distance) or (times is not None and not times.any()):
        raise ValueError("X has no variance: all rows are equal, and bandwidth has no default")
    middle = np.median(np.sqrt(distance)) if times is None else _weighted_median(np.sqrt(distance), times)
    return math.ldexp(float(middle), exponent)


def _weighted_median(values: Array, weight: Array) -> float:
    """Return the median of values that each stand for `weight` values."""
    order = np.argsort(values, kind="stable")
    total = np.cumsum(weight[order])
    low, high = (np.searchsorted(total, total[-1] / 2, side) for side in ("left", "right"))
    return float(values[order[low]] + values[order[min(high, len(order) - 1)]]) / 2


def as_rows(X: Any, p: int | None = None, name: str = "X") -> RowBlocks:
    """Return X as row blocks; what cannot be sliced is converted at once."""
    by_slices = isinstance(getattr(X, "dtype", None), np.dtype) and X.dtype.kind in "fiub"
    by_slices &= hasattr(X, "__getitem__") and not isinstance(X, np.ma.MaskedArray)
    by_slices &= type(X) is not np.ndarray or X.dtype not in (np.int64, np.uint64)  # which may be refused
    names = None
    if is_sparse(X) or is_operator(X):
        X = finite_rows(X, name=name)
    elif not (is_row_blocks(X) or (by_slices and len(X.shape) == 2 and min(X.shape) > 0)):
        names, X = columns_of(X), real_array(X, name, ndim=2, finite=False)
    rows = row_blocks(X, names=names)
    rows.called = name
    if p is not None:
        check_shape(rows, name, "n", p)
    return rows


def sampled_rows(rows: RowBlocks, rng: np.random.Generator, weight: Array | None) -> tuple[Any, Array | None]:
    """Return at most `BANDWIDTH_ROWS` random rows, in their order, and their weights."""
    n, sample = rows.shape[0], rows
    if n > BANDWIDTH_ROWS:
        chosen = np.sort(rng.choice(n, BANDWIDTH_ROWS, replace=False))
        sample, weight = rows.taken(chosen), None if weight is None else weight[chosen]
    with naming_not_finite(rows):
        return finite_rows(sample.whole()), weight


def of_block(block: Any, task: Callable[..., Any], *arguments: Any) -> Any:
    """`task` of a block of rows, which must be finite."""
    rows = finite(block)
    return task(rows.tocsr() if is_sparse(rows) else rows, *arguments)


@filled(
    {
        "example": """\
Examples
--------
>>> import spcacore
>>> features = spcacore.random_fourier_features(3, 100, bandwidth=2.0, rng=0)""",
    }
)
@frozen_record
class RandomFeatures(Result):
    """A map to m features whose products approximate the Gaussian kernel.

    The features of x are `sqrt(2 / m) cos(weights' (x - shift) + offset)`.

    Attributes
    ----------
    weights : ndarray of shape (p, m)
        Independent normal entries with standard deviation `1 / bandwidth`.
    offset : ndarray of shape (m,)
        Uniform in [0, 2 pi).
    shift : ndarray of shape (p,)
        A point near the middle of the data. The kernel does not depend on it; it reduces rounding errors.
    bandwidth : float
        sigma in `exp(-||x - y||^2 / (2 sigma^2))`.
    names : tuple of str or None
        Names of the variables, if the data had any.

    {example}
    >>> features.weights.shape, features.n_features
    ((3, 100), 100)
    """

    weights: Array
    offset: Array
    shift: Array
    bandwidth: float
    names: Names = None

    @property
    def n_features(self) -> int:
        """Number m of features."""
        return self.weights.shape[1]

    def transform(self, X: MatrixLike) -> AnyArray:
        """The features of the rows of X, computed in blocks of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p), or anything with `shape` that gives rows by slices

        Returns
        -------
        ndarray of shape (n, m)
            float32 for float32 rows, else float64. For a dataframe of pandas or polars, a dataframe with its
            index, and columns feature_1, feature_2, ...

        {example}
        >>> features.transform([[0.0, 1.0, 2.0]]).shape
        (1, 100)
        """
        return framed(X, self._matrix(X, "X"), [f"feature_{j + 1}" for j in range(self.n_features)])

    def kernel(self, X: MatrixLike, Y: MatrixLike | None = None) -> AnyArray:
        """The approximate kernel between the rows of X and the rows of Y.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, p)
        Y : array-like or sparse matrix of shape (l, p), optional
            Default: X.

        Returns
        -------
        ndarray of shape (n, l)

        Examples
        --------
        >>> import spcacore
        >>> features = spcacore.random_fourier_features(3, 10000, bandwidth=2.0, rng=0)
        >>> features.kernel([[0.0, 0.0, 0.0]], [[1.0, 1.0, 1.0]]).round(1)  # exp(-3 / 8) = 0.69
        array([[0.7]])
        """
        return matrix_product(self._matrix(X, "X"), None if Y is None else self._matrix(Y, "Y"))

    def _matrix(self, X: Any, name: str) -> Any:
        """Return the features of all rows, computed block by block."""
        rows = as_rows(aligned(X, self.names, name), len(self.weights), name)
        return rows.mapped(of_block, (self.n_features,), float_type(rows.dtype), _feature_matrix, self)

    def _write(self, rows: Any, out: AnyArray) -> None:
        """Write sqrt(2 / m) cos((rows - shift) weights + offset) to `out`."""
        fits = np.abs(self.weights).max() < np.finfo(out.dtype).max
        with below_range():
            weights = self.weights.astype(out.dtype if fits else np.float64)
            if is_sparse(rows):
                out[...] = rows @ weights
                out += (self.offset - matrix_product(self.shift[None], self.weights.T)[0]).astype(out.dtype)
            else:
                out[...] = matrix_product((rows - self.shift).astype(weights.dtype, copy=False), weights.T)
                out += self.offset.astype(out.dtype)
        np.cos(out, out=out)
        out *= math.sqrt(2 / self.n_features)

    def _facts(self) -> list[str]:
        p, m = self.weights.shape
        return [f"p={p}", f"n_features={m}", f"bandwidth={self.bandwidth:.6g}"]


def random_fourier_features(
    X: MatrixLike, n_features: int, *, bandwidth: float | None = None, rng: RandomSource = None
) -> RandomFeatures:
    """Random features whose products approximate the Gaussian kernel.

    `z(x)'z(y)` has mean `exp(-||x - y||^2 / (2 bandwidth^2))` and a standard deviation of at most
    `1 / sqrt(m)` over the draws of m features `sqrt(2 / m) cos(w'x + b)`, `w ~ N(0, I / bandwidth^2)`,
    `b ~ U(0, 2 pi)`.

    Parameters
    ----------
    X : array-like or sparse matrix of shape (n, p), anything that gives rows by slices, or int
        Data; at most 1000 rows are read. Or only the number p of variables.
    n_features : int
        m, at least 1.
    bandwidth : float, optional
        Positive, in the units of X. Default: the median distance between the rows that are read. Required if
        X is a number.
    rng : None, int or numpy Generator, optional
        None is a fixed seed: every call gives the same features.

    Returns
    -------
    RandomFeatures
        With `weights` (p, m), `offset` (m,), `transform(X)` and `kernel(X, Y)`.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, for rows that are all equal, or for an option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    Notes
    -----
    Two misprints are common in lecture notes: this kernel without its minus sign, and `w ~ N(0, 2 I /
    bandwidth^2)` beside it. That covariance belongs to `exp(-||x - y||^2 / bandwidth^2)`.

    References
    ----------
    A. Rahimi and B. Recht (2007). Random features for large-scale kernel machines. Advances in Neural
    Information Processing Systems 20, algorithm 1.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> features = spcacore.random_fourier_features(3, 10000, bandwidth=2.0, rng=0)
    >>> approximate = features.kernel([[0.0, 0.0, 0.0]], [[1.0, 1.0, 1.0]])
    >>> print(approximate.round(2), np.exp(-3 / 8).round(2))
    [[0.69]] 0.69
    """
    return drawn_features(X, n_features, bandwidth, rng)


def drawn_features(
    X: Any, n_features: Any, bandwidth: Any, rng: Any, sample_weight: Array | None = None
) -> RandomFeatures:
    """Return random features, as `random_fourier_features` does; the rows of X may have weights."""
    m = integer(n_features, "n_features", 1)
    sigma = None if bandwidth is None else positive(bandwidth, "bandwidth")
    rng = np.random.default_rng(as_seed(rng))
    if isinstance(X, (int, np.integer)):
        p = integer(X, "X", 1)
        if sigma is None:
            raise ValueError("bandwidth is needed where X is the number of variables")
        shift, names = np.zeros(p), None
    else:
        rows = as_rows(X)
        p, names = rows.shape[1], rows.names
        sample, weight = sampled_rows(rows, rng, sample_weight)
        shift = column_means(sample, weight)
        if sigma is None:
            sigma = median_distance(sample, weight)
    with beyond_range():
        weights = rng.standard_normal((p, m)) / sigma
    if not np.isfinite(weights).all():
        raise ValueError(f"bandwidth is too small: {sigma:g}")
    return RandomFeatures(weights, rng.uniform(0, 2 * np.pi, m), shift, sigma, names)


def _feature_blocks(rows: Any, features: RandomFeatures) -> Iterator[tuple[slice, AnyArray]]:
    """Yield parts of the rows, with their features in a buffer that the next part reuses."""
    parts = list(slices(rows.shape[0], max(features.weights.shape), COPIED_ENTRIES))
    buffer = np.empty((parts[0].stop, features.n_features), rows.dtype)
    for part in parts:
        Z = buffer[: part.stop - part.start]
        features._write(rows[part], Z)
        yield part, Z


def feature_moments(rows: Any, features: RandomFeatures, weight: Any = None) -> Any:
    """Return `moments_of` the features of the rows."""
    parts = _feature_blocks(rows, features)
    return merged_moments(moments_of(Z, None if weight is None else weight[part]) for part, Z in parts)


def _feature_matrix(rows: Any, features: RandomFeatures) -> AnyArray:
    """Return the features Z of all rows."""
    out = np.empty((rows.shape[0], features.n_features), rows.dtype)
    for part, Z in _feature_blocks(rows, features):
        out[part] = Z
    return out


def feature_scores(features: RandomFeatures, rows: Any, mean: AnyArray, coefficients: AnyArray) -> AnyArray:
    """Return (Z - mean) @ coefficients."""
    mean, coefficients = mean.astype(rows.dtype), coefficients.astype(rows.dtype)
    out = np.empty((rows.shape[0], coefficients.shape[1]), rows.dtype)
    for part, Z in _feature_blocks(rows, features):
        Z -= mean
        out[part] = matrix_product(Z, coefficients.T)
    return out
