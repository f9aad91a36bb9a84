"""Sums over rows: statistics of columns and products of rows, computed where the rows are, and added."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._labels import joined
from .._limits import BLOCKS_SUBMATRIX_ORDER, CACHED_ENTRIES, slices
from .._messages import counted
from .._types import AnyArray, Array, DType, Index, MatrixLike, Weights
from .._validation import check_weights, float_type, is_row_blocks, number, real_array, stored
from ..linalg.orthogonal import symmetrized
from .blocks import RowBlocks, as_kernel_input, locate_not_finite
from .dense import is_small
from .partition import row_blocks
from .row_sources import own_names
from .sparse import Covariance
from .statistics import (
    Statistics,
    from_whole,
    in_range,
    merged,
    statistics_of,
)
from .transform import squares_of_scores

OUT_OF_RANGE = "X has entries whose squares exceed the number range: rescale it"


WHOLE = 2.0**53  # a double holds every integer up to this


def statistics(block: Any, weight: Array | None = None, *scaled: Any) -> Statistics | None:
    """Return `statistics_of` a block; None where its rows have no weight."""
    X = as_kernel_input(block)
    found = statistics_of(X, weight, *scaled)
    plain = np.may_share_memory(stored(X), stored(block))
    return None if found is None else replace(found, plain=plain)


def moments_of(block: Any, weight: Array | None) -> tuple[Statistics | None, Array | None]:
    """Return `statistics`, and (X - 1 mean')' diag(weight) (X - 1 mean') with the means of the block.

    The latter is None where squares in the precision of X leave the number range.
    """
    found = statistics(block, weight)
    if found is None or not in_range(found, float_type(block.dtype)):
        return found, None
    X = as_kernel_input(block)
    mean = found.mean.astype(X.dtype)
    op = _core.operator(X, False, mean)
    if weight is not None:
        op = op.row_weighted(np.sqrt(weight).astype(X.dtype), True)
    M = op.gram()
    assert M is not None
    rest = found.mean - mean
    for part in slices(len(M), len(M), CACHED_ENTRIES):
        M[part] -= found.n * np.multiply.outer(rest[part], rest)
    return found, M


def whole_sums(block: Any) -> tuple[AnyArray, ...] | None:
    """Return lowest and highest entries, sums, and sums of products, of columns of whole numbers.

    The sums are exact, as int64. None where an entry is not a whole number, or where doubles do not hold a
    sum.
    """
    small: tuple[AnyArray, ...] | None = _core.whole_moments(block) if is_small(block) else None
    if small is not None:
        return small
    found, X = statistics(block), as_kernel_input(block)
    if found is None or max(found.high.max(), -found.low.min()) >= WHOLE**0.5:
        return None
    M = _core.operator(X.astype(np.float64)).gram()
    assert M is not None
    if M.diagonal().max() >= WHOLE:
        return None
    total = np.asarray(X.sum(axis=0), np.int64).ravel()
    return found.low, found.high, total, M.astype(np.int64)


def added(parts: Iterable[Any]) -> Any:
    """Return the `whole_sums` of all rows, from those of parts; None where doubles do not hold them."""
    each = iter(parts)
    out = next(each)
    for other in each:
        if out is not None and other is not None:
            low, high = np.minimum(out[0], other[0]), np.maximum(out[1], other[1])
            out = low, high, out[2] + other[2], out[3] + other[3]
        else:
            out = None
    return out if out is not None and out[3].diagonal().max() < WHOLE else None


def all_moments(blocks: Any, weight: Array | None) -> tuple[Any, Any, tuple[AnyArray, ...] | None]:
    """Return statistics of all rows, their moments about the means, and `whole_sums` if these are exact."""
    (rows, p), whole = blocks.shape, None
    if blocks.dtype.kind in "iub" and weight is None:
        whole = blocks.reduced(added, whole_sums, entries=p * p)
    if whole is not None:
        return *from_whole(rows, whole), whole
    each = blocks.split(weight)
    return *blocks.reduced(merged_moments, moments_of, each=each, entries=p * p), None


def merged_moments(parts: Iterable[Any]) -> tuple[Statistics | None, Array | None]:
    """Return the `moments_of` all rows, from those of parts, as `merged` does."""
    each = iter(parts)
    found, M = next(each)
    apart: list[Array] = []  # what the distances of means add: u u' for each
    for other, N in each:
        if found is None or other is None:
            found, M = (other, N) if found is None else (found, M)
            continue
        both: Any = merged([found, other])
        if M is not None and N is not None and in_range(both, np.dtype(np.float64)):
            M = np.add(M, N, out=M if apart else None)
            apart.append((other.mean - found.mean) * np.sqrt(found.n * (other.n / both.n)))
        else:
            M = None
        found = both
    if M is not None and apart:
        U = np.stack(apart)
        for part in slices(len(M), len(M), CACHED_ENTRIES):
            M[part] += U[:, part].T @ U
    return found, M


def column_means(X: Any, weight: Array | None = None) -> Array:
    """Return the means of an array, a sparse matrix or blocks of rows; each row counts by its weight."""
    found: Any
    if is_row_blocks(X):
        found = row_blocks(X).reduced(merged, statistics, each=row_blocks(X).split(weight))
    else:
        found = statistics(X, weight)
    return np.asarray(found.mean)


class Moments(RowBlocks):
    """Number, means and scatter of rows: all that a function of a covariance matrix needs of them.

    Pass it in place of X. The functions center and scale as they do the rows, their results know the means
    and the number of samples, and `transform` takes rows. What needs single rows (folds, bootstraps,
    clusters) refuses it. Add the moments of other rows with `+`, in any order, on any machine; they can be
    pickled. Up to rounding, the sum does not depend on how the rows were divided; of integers it is exact,
    and the same to the last bit, while no sum of squares exceeds 2**53.

    Parameters
    ----------
    n_samples : int or float
        Number of rows, or the sum of their weights.
    mean : array-like of shape (p,)
        Means of the columns.
    scatter : array-like of shape (p, p)
        `sum_i (x_i - mean)(x_i - mean)'`, that is the covariance matrix times `n_samples - 1`.
    names : sequence of str, optional
        Names of the variables, by which sums are matched. Moments without names are matched with these by
        position.

    Attributes
    ----------
    n_samples : float
    mean : ndarray of shape (p,)
    scatter : ndarray of shape (p, p)
    names : tuple of str or None

    Raises
    ------
    ValueError
        Where shapes do not fit, a number is not finite, or `scatter` is not symmetric or not positive
        semidefinite, or has no variance for one sample; from `+` for other variables.

    References
    ----------
    Sums are merged about their means as in T. F. Chan, G. H. Golub and R. J. LeVeque (1983). Algorithms for
    computing the sample variance. The American Statistician 37, 242-247.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> X, _ = spcacore.datasets.make_spiked(300, 40, cardinality=5, rng=0)
    >>> total = spcacore.Moments.of(X[:100]) + spcacore.Moments.of(X[100:])
    >>> result = spcacore.sparse_pca(total, 2, 5)
    >>> scores = result.transform(X)
    >>> result.n_samples, bool(np.allclose(scores, spcacore.sparse_pca(X, 2, 5).transform(X)))
    (300, True)
    """

    summed, together = True, 0

    def __init__(
        self, n_samples: float, mean: ArrayLike, scatter: ArrayLike, *, names: Iterable[str] | None = None
    ) -> None:
        total = number(n_samples, "n_samples", 1)
        mean = np.array(real_array(mean, "mean", ndim=1), np.float64)
        M = np.array(real_array(scatter, "scatter", ndim=2), np.float64)
        if M.shape != (len(mean), len(mean)):
            raise ValueError(f"scatter has shape {M.shape} for {counted(len(mean), 'mean')}")
        size = np.abs(M).max(initial=0)
        if np.abs(M - M.T).max(initial=0) > 1e-8 * size:
            raise ValueError("scatter must be symmetric")
        square = np.diag(M).copy()
        if (square < 0).any():
            raise ValueError("scatter has a negative diagonal entry")
        if total <= 1 and size > 0:
            raise ValueError("n_samples must exceed 1 where scatter is not 0")
        if size > 0:
            Covariance(M / size, definite=True).largest()  # an error if it is not semidefinite
        deviation = np.sqrt(square / total)
        found = Statistics(total, M.size, mean, square, mean - deviation, mean + deviation)
        self._take(max(int(total), 1), found, symmetrized(M), None, np.dtype(np.float64), names)

    def _take(
        self, rows: int, found: Statistics, M: Array, whole: tuple[Array, ...] | None, dtype: DType,
        names: Iterable[str] | None,
    ) -> None:  # fmt: skip
        """Set the fields; `whole` has extremes of integers, and exact sums of these and of their products."""
        super().__init__((rows, len(M)), dtype, [0], names)
        self.found: Statistics = found
        self.scatter: Array = M
        self._whole = whole
        for a in (self.mean, self.scatter):
            a.flags.writeable = False

    @property
    def n_samples(self) -> float:
        """Number of rows, or the sum of their weights."""
        return self.found.n

    @property
    def mean(self) -> Array:
        """Means of the columns."""
        return self.found.mean

    @classmethod
    def of(cls, X: MatrixLike, *, sample_weight: Weights = None) -> Moments:
        """The moments of some rows.

        Parameters
        ----------
        X : array-like of shape (n, p), sparse matrix, dataframe, RowBlocks or dask array
            Rows, read once; at most 16,384 variables. Without rows, the sum is 0.
        sample_weight : array-like of shape (n,), optional
            How many samples each row stands for.

        Returns
        -------
        Moments
        """
        shape: Any = getattr(X, "shape", ())
        if len(shape) == 2 and shape[0] == 0 < shape[1]:
            if sample_weight is not None and np.size(sample_weight):
                check_weights(sample_weight, 0)
            return cls._of_nothing(0, shape[1], np.dtype(np.float64), own_names(X))
        blocks = row_blocks(X)
        rows, p = blocks.shape
        if p > BLOCKS_SUBMATRIX_ORDER:
            raise ValueError(
                f"moments are a matrix of p x p, for at most {BLOCKS_SUBMATRIX_ORDER} variables, and X has "
                f"{counted(p, 'variable')}"
            )
        weight = check_weights(joined(X, sample_weight, "sample_weight"), rows)
        found, M, whole = all_moments(blocks, weight)
        if found is None:
            return cls._of_nothing(rows, p, float_type(blocks.dtype), blocks.names)
        if not np.isfinite(found.mean).all():
            locate_not_finite(blocks)
        if M is None:
            raise ValueError(OUT_OF_RANGE)
        return cls._made(rows, found, M, whole, float_type(blocks.dtype), blocks.names)

    @classmethod
    def _of_nothing(cls, rows: int, p: int, dtype: DType, names: Any) -> Moments:
        """Return the moments of rows without weight, or of none: added to others, they change nothing."""
        none = np.zeros(p)
        found = Statistics(0.0, 0, none, none.copy(), none, none)
        return cls._made(rows, found, np.zeros((p, p)), None, dtype, names)

    @classmethod
    def _made(cls, *of: Any) -> Moments:
        """Return moments with these fields, unchecked."""
        out = cls.__new__(cls)
        out._take(*of)
        return out

    def __add__(self, other: object) -> Moments:
        if not isinstance(other, Moments):
            return NotImplemented
        if self.names and other.names and self.names != other.names:
            other = other._in_order(self.names)
        if self.shape[1] != other.shape[1] or None is not self.names != other.names is not None:
            raise ValueError("moments of different variables cannot be added")
        names = self.names or other.names
        for one, rest in ((self, other), (other, self)):
            if not one.n_samples:
                return self._made(rest.shape[0], rest.found, rest.scatter, rest._whole, rest.dtype, names)
        rows, dtype = self.shape[0] + other.shape[0], np.promote_types(self.dtype, other.dtype)
        if self._whole is not None and other._whole is not None:
            whole = added([self._whole, other._whole])
            if whole is not None:
                return self._made(rows, *from_whole(rows, whole), whole, dtype, names)
        found, M = merged_moments([(one.found, one.scatter) for one in (self, other)])
        assert found is not None
        if M is None or not np.isfinite(found.mean).all():
            raise ValueError(OUT_OF_RANGE)
        return self._made(rows, found, M, None, dtype, names)

    def __radd__(self, other: object) -> Moments:
        """Return the moments for `sum`, which begins with 0."""
        return self if isinstance(other, int) and other == 0 else NotImplemented

    def _in_order(self, names: tuple[str, ...]) -> Moments:
        """Return the same moments with the variables in this order; as they are if these are others."""
        if self.names is None or len(set(names)) < len(names) or set(names) != set(self.names):
            return self
        at = np.array([self.names.index(name) for name in names])
        f, each = self.found, np.ix_(at, at)
        found = replace(f, mean=f.mean[at], square=f.square[at], low=f.low[at], high=f.high[at])
        whole = self._whole
        if whole is not None:
            whole = *(a[at] for a in whole[:3]), whole[3][each]
        return self._made(self.shape[0], found, self.scatter[each], whole, self.dtype, names)

    def reduced(self, combine: Any, task: Any, *arguments: Any, each: Any = None, entries: int = 0) -> Any:
        """Return what `RowBlocks.reduced` does, if the moments are enough for it."""
        weighted = any(one is not None for one in each or ())
        if task is moments_of and not weighted:
            return self.found, self.scatter.copy()
        if task is statistics and not arguments:
            return self.found
        if task is squares_of_scores and not weighted:
            loadings, mean, scale = arguments
            V = loadings if scale is None else loadings / scale[:, None]
            away = (self.mean if mean is None else self.mean - mean) @ V
            return V.T @ (self.scatter @ V) + self.n_samples * np.outer(away, away)
        return super().reduced(combine, task, *arguments, each=each, entries=entries)

    def _refused(self, *_: Any, **__: Any) -> Any:
        """Refused, because the rows are not known."""
        raise TypeError(
            "this needs the rows of X, and X has their moments alone; weights of rows go to Moments.of"
        )

    results = beside = _parted_like = _refused

    def taken(self, rows: Index) -> RowBlocks:
        """Refused, because the rows are not known."""
        return self._refused()

    def rows(self, index: Index) -> AnyArray:
        """Refused, because the rows are not known."""
        return self._refused()

    def __repr__(self) -> str:
        return f"Moments({self.n_samples:.10g} x {self.shape[1]}, {self.dtype})"
