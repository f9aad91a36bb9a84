"""The mean and scatter of rows that come in batches, and `partial_fit` from them."""

from __future__ import annotations

from copy import deepcopy
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import _check_sample_weight

from .._docstrings import filled
from .._labels import joined
from .._limits import BLOCKS_SUBMATRIX_ORDER, CHUNK
from .._messages import counted
from .._types import MatrixLike, Weights
from .._validation import check_flag_or_vector, float_type, integer, is_row_blocks, is_sparse
from ..operators.block_tasks import merged_moments, moments
from ..operators.blocks import RowBlocks, locate_not_finite
from ..operators.partition import row_blocks
from ..operators.standardization import Standardization
from .base import PARAGRAPHS, Transformer

__all__ = ["Batches", "RunningScatter", "WeightedBatches"]
__dir__ = __all__.copy


class RunningScatter:
    """Of all rows so far: their number, mean and scatter `sum w (x - mean)(x - mean)'`, p x p, in float64.

    Batches are merged about their means (Chan, Golub and LeVeque 1983), so that digits survive large means,
    and that any order and size of batches gives the same up to rounding.
    """

    def __init__(self, p: int, dtype: Any):
        if p > BLOCKS_SUBMATRIX_ORDER:
            raise ValueError(
                f"partial_fit keeps a matrix of p x p, for at most {BLOCKS_SUBMATRIX_ORDER} variables, and X "
                f"has {counted(p, 'variable')}: use fit, which also takes rows in blocks"
            )
        self.n_rows, self.weight, self.dtype = 0, 0.0, np.dtype(dtype)
        self.mean, self.scatter = np.zeros(p), np.zeros((p, p))

    def add(self, X: Any, sample_weight: NDArray[np.float64] | None) -> None:
        """Take some more rows in."""
        n, p = X.shape
        if is_row_blocks(X):
            return self._add_blocks(row_blocks(X), sample_weight)
        self.dtype = np.promote_types(self.dtype, X.dtype)
        step = max(1, CHUNK // p)
        for start in range(0, n, step):
            rows = slice(start, start + step)
            self._add(X[rows], None if sample_weight is None else sample_weight[rows])

    def _add(self, X: Any, weight: NDArray[np.float64] | None) -> None:
        n = X.shape[0]
        total = float(n) if weight is None else float(weight.sum())
        self.n_rows += n
        if total == 0:
            return
        w = np.ones(n) if weight is None else weight
        mean = np.asarray(X.T @ w, np.float64).ravel() / total
        if is_sparse(X):
            Z = X.astype(np.float64)
            scaled = Z if weight is None else Z.multiply(w[:, None]).tocsr()
            scatter = (Z.T @ scaled).toarray() - total * np.outer(mean, mean)
        else:
            D = (X - mean) * np.sqrt(w)[:, None]
            scatter = D.T @ D
        self._merge(total, mean, scatter)

    def _merge(self, total: float, mean: NDArray[np.float64], scatter: NDArray[np.float64]) -> None:
        """Take in rows of this total weight, this mean and this scatter about it."""
        both = self.weight + total
        shift = mean - self.mean
        self.scatter += scatter + np.outer(shift, shift) * (self.weight * total / both)
        self.mean += shift * (total / both)
        self.weight = both

    def _add_blocks(self, blocks: RowBlocks, weight: NDArray[np.float64] | None) -> None:
        """Rows in blocks, of which only the sums come here."""
        self.dtype = np.promote_types(self.dtype, float_type(blocks.dtype))
        found, scatter = blocks.reduced(
            merged_moments, moments, each=blocks.split_or_none(weight), entries=blocks.shape[1] ** 2
        )
        self.n_rows += blocks.shape[0]
        if found is None:  # no row has weight
            return
        if not np.isfinite(found.mean).all():
            locate_not_finite(blocks)
        if scatter is None:
            raise ValueError("X has entries whose squares exceed the number range: rescale it, or use fit")
        self._merge(found.n, found.mean, scatter)

    def moment(self, center: Any) -> tuple[NDArray[Any], NDArray[Any] | None]:
        """The covariance about what is subtracted, and that: the mean, nothing, or given numbers."""
        given = Standardization.checked((1, len(self.mean)), check_flag_or_vector(center, "center"), False)
        about = given.mean if given.mean is not None else self.mean if given.center else None
        A = self.scatter
        if about is not self.mean:
            offset = self.mean if about is None else self.mean - about
            A = A + self.weight * np.outer(offset, offset)
        A = A / max(self.weight - 1, 1)
        return A.astype(self.dtype), None if about is None else about.astype(self.dtype)


class Batches(Transformer):
    """Estimators whose fit depends on the mean and the covariance of the rows alone."""

    center: Any
    _running: RunningScatter

    def _take(self, X: Any, sample_weight: Any) -> Self:
        """Fit these rows and all of earlier batches."""
        fresh = not hasattr(self, "_running")
        sample_weight = joined(X, sample_weight, "sample_weight")
        X = self._checked(X, reset=fresh)
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        running = deepcopy(self._running) if not fresh else RunningScatter(X.shape[1], float_type(X.dtype))
        running.add(X, weight)
        if running.weight > 1 and running.n_rows >= self._least_rows(X.shape[1]):  # else go on collecting
            names = getattr(self, "feature_names_in_", None)
            A, mean = running.moment(self._by_place(X.shape[1], center=self.center)["center"])
            self._fit_moments(A, mean, running, None if names is None else tuple(names))
            self.n_samples_seen_ = running.n_rows
        self._running = running
        return self

    def _least_rows(self, p: int) -> int:
        """From how many rows on there is something to fit."""
        return 2

    def _fit_moments(
        self, A: NDArray[Any], mean: NDArray[Any] | None, running: RunningScatter, names: Any
    ) -> None:
        """Fit the rows of this covariance A about the mean."""
        raise NotImplementedError

    def _rows_of_rank(self, p: int, n_components: Any) -> int:
        """Rows about their mean that can have so many components."""
        return integer(n_components, "n_components", 1, p) + 1

    def _afresh(self) -> None:
        """Forget the batches."""
        self.__dict__.pop("_running", None)


@filled(PARAGRAPHS)
class WeightedBatches(Batches):
    """The same, of rows that may have weights."""

    def partial_fit(self, X: MatrixLike, y: object = None, sample_weight: Weights = None) -> Self:
        """Fit to these rows together with those of earlier calls.

        {batches}

        {fit}

        {no_matrix}

        {spca_example}
        >>> parts = SparsePCA(2).partial_fit(X[:60]).partial_fit(X[60:])
        >>> bool(abs(parts.components_ - model.components_).max() < 1e-6)
        True
        """
        return self._take(X, sample_weight)
