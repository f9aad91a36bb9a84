"""Random Fourier features: maps whose products approximate the Gaussian kernel.

exp(-||x - y||^2 / (2 sigma^2)) is the mean of 2 cos(w'x + b) cos(w'y + b) over w ~ N(0, I / sigma^2) and b
uniform in [0, 2 pi) (Rahimi and Recht 2007). With m draws as the features Z of all rows, the kernel matrix is
nearly ZZ', whose components are those of the m x m matrix Z'HZ, H = I - 11'/n, a sum over blocks of rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import blas

from .._docstrings import filled
from .._types import MatrixLike, RandomSource
from .._validation import (
    aligned,
    as_seed,
    column_names,
    float_type,
    framed,
    integer,
    is_row_blocks,
    is_sparse,
)
from ..readable import Result
from .gram import blocks
from .kernel_inputs import as_rows, column_means, median_distance, of_block, positive, sample_rows

__all__ = [
    "Moments", "RandomFeatures", "drawn_features", "feature_moments", "feature_scores", "map_rows",
    "merge_moments", "random_fourier_features",
]  # fmt: skip


@filled(
    {
        "example": (
            "Examples\n"
            "--------\n"
            ">>> import spcacore\n"
            ">>> features = spcacore.random_fourier_features(3, 100, bandwidth=2.0, rng=0)"
        ),
    }
)
@dataclass(frozen=True, eq=False, repr=False)
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

    weights: NDArray[np.float64]
    offset: NDArray[np.float64]
    shift: NDArray[np.float64]
    bandwidth: float
    names: tuple[str, ...] | None = None

    @property
    def n_features(self) -> int:
        """Number m of features."""
        return self.weights.shape[1]

    def transform(self, X: MatrixLike) -> NDArray[Any]:
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
        features = map_rows(self, _feature_matrix, X, "X", self.n_features)
        return framed(X, features, [f"feature_{j + 1}" for j in range(self.n_features)])

    def kernel(self, X: MatrixLike, Y: MatrixLike | None = None) -> NDArray[Any]:
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
        Z = map_rows(self, _feature_matrix, X, "X", self.n_features)
        return Z @ (Z if Y is None else map_rows(self, _feature_matrix, Y, "Y", self.n_features)).T

    def _write(self, rows: Any, out: NDArray[Any]) -> None:
        """out = sqrt(2 / m) cos((rows - shift) weights + offset)."""
        fits = np.abs(self.weights).max() < np.finfo(out.dtype).max
        with np.errstate(under="ignore"):
            weights = self.weights.astype(out.dtype if fits else np.float64)
            if is_sparse(rows):
                out[...] = rows @ weights
                out += (self.offset - self.shift @ self.weights).astype(out.dtype)
            else:
                np.matmul((rows - self.shift).astype(weights.dtype, copy=False), weights, out=out)
                out += self.offset.astype(out.dtype)
        np.cos(out, out=out)
        out *= math.sqrt(2 / self.n_features)

    def _facts(self) -> list[str]:
        p, m = self.weights.shape
        return [f"p={p}", f"n_features={m}", f"bandwidth={self.bandwidth:.6g}"]


def map_rows(
    features: RandomFeatures, task: Callable[..., Any], X: Any, name: str, width: int, *arguments: Any
) -> Any:
    """`task` of the rows of X and these features, block by block where X is in blocks."""
    rows = as_rows(aligned(X, features.names, name), len(features.weights), name)
    if not is_row_blocks(rows):
        return task(rows, features, *arguments)
    return rows.mapped(of_block, (width,), float_type(rows.dtype), task, features, *arguments)


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
    X: Any, n_features: Any, bandwidth: Any, rng: Any, sample_weight: NDArray[np.float64] | None = None
) -> RandomFeatures:
    """The same, where the rows of X may have weights."""
    m = integer(n_features, "n_features", 1)
    sigma = None if bandwidth is None else positive(bandwidth, "bandwidth")
    rng = np.random.default_rng(as_seed(rng))
    if isinstance(X, (int, np.integer)):
        p = integer(X, "X", 1)
        if sigma is None:
            raise ValueError("bandwidth is needed where X is the number of variables")
        shift = np.zeros(p)
    else:
        rows = as_rows(X)
        p = rows.shape[1]
        sample, weight = sample_rows(rows, rng, sample_weight)
        shift = column_means(sample, weight)
        if sigma is None:
            sigma = median_distance(sample, 0, weight)
    with np.errstate(over="ignore"):
        weights = rng.standard_normal((p, m)) / sigma
    if not np.isfinite(weights).all():
        raise ValueError(f"bandwidth is too small: {sigma:g}")
    return RandomFeatures(weights, rng.uniform(0, 2 * np.pi, m), shift, sigma, column_names(X))


def _feature_blocks(rows: Any, features: RandomFeatures) -> Iterator[tuple[slice, NDArray[Any]]]:
    """Blocks of rows, and their features in one buffer."""
    parts = list(blocks(rows.shape[0], max(features.weights.shape)))
    buffer = np.empty((parts[0].stop if parts else 0, features.n_features), rows.dtype)
    for part in parts:
        Z = buffer[: part.stop - part.start]
        features._write(rows[part], Z)
        yield part, Z


Moments = tuple[float, NDArray[np.float64], NDArray[np.float64]]


def feature_moments(rows: Any, features: RandomFeatures, weight: Any = None) -> Moments:
    """The number of rows, or the sum of their weights, the mean of their features, and the upper triangle of
    Z'HZ, in one pass."""
    n, m = float(rows.shape[0] if weight is None else weight.sum()), features.n_features
    syrk = blas.dsyrk if rows.dtype == np.float64 else blas.ssyrk
    C, total, near = np.zeros((m, m), order="F"), np.zeros(m), np.zeros(m)
    for part, Z in _feature_blocks(rows, features):
        if part.start == 0:  # moments about the mean of the first block, so that little cancels below
            near = Z.mean(axis=0)
        Z -= near
        if weight is None:
            total += Z.sum(axis=0, dtype=np.float64)
        else:
            total += weight[part] @ Z
            Z *= np.sqrt(weight[part, None]).astype(Z.dtype)
        if Z.dtype == np.float64:
            C = syrk(1.0, Z.T, beta=1.0, c=C, overwrite_c=True, lower=0)
        else:
            C += syrk(1.0, Z.T, lower=0)
    total /= n or 1.0
    C -= n * np.outer(total, total)
    return n, near + total, C


def merge_moments(parts: Iterable[Moments]) -> Moments:
    """The moments of all rows, from those of parts of them."""
    each = iter(parts)
    n, mean, C = next(each)
    C = C.copy(order="F")
    for size, other, more in each:
        difference, whole = other - mean, (n + size) or 1.0
        mean = mean + difference * (size / whole)
        C += more
        C += np.outer(difference, difference * (n * (size / whole)))
        n += size
    return n, mean, C


def _feature_matrix(rows: Any, features: RandomFeatures) -> NDArray[Any]:
    """Z of all rows."""
    out = np.empty((rows.shape[0], features.n_features), rows.dtype)
    for part in blocks(len(out), max(features.weights.shape)):
        features._write(rows[part], out[part])
    return out


def feature_scores(
    rows: Any, features: RandomFeatures, mean: NDArray[Any], coefficients: NDArray[Any]
) -> NDArray[Any]:
    """(Z - mean) @ coefficients."""
    mean, coefficients = mean.astype(rows.dtype), coefficients.astype(rows.dtype)
    out = np.empty((rows.shape[0], coefficients.shape[1]), rows.dtype)
    for part, Z in _feature_blocks(rows, features):
        Z -= mean
        np.matmul(Z, coefficients, out=out[part])
    return out
