"""What rotated components are: sparse loadings that are not of unit length."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .._messages import convergence
from .._types import AnyArray, Array, Index
from ..operators.degrees import degree_weight
from ..results import LoadingsResult

__all__ = ["RotatedResult"]


@dataclass(frozen=True, eq=False, repr=False)
class RotatedResult(LoadingsResult):
    """Sparse loadings of a rotated basis, from `sca` or `sma`.

    `transform` gives the weighted sums of the variables of each row; for `sma` these are not Z. `reconstruct`
    is the projection onto the loadings. With ``scale="degree"``, `transform` first divides each row by the
    square root of its sum plus `row_shift`, and `reconstruct` returns rows that are divided in this way.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        The thresholded loadings; columns are not of unit length.
    scores : ndarray of shape (n, r) or None
        For `sca`: the centered and scaled data times the loadings; None for a covariance, and for rows in
        blocks. For `sma`: the sparse matrix Z.
    pve : ndarray of shape (r,)
        Proportion of the variance explained: cumulative, after each loading.
    n_iter : int
    converged : bool
    method : {"sca", "sma"}
    missing_entries : int
        How many entries of X were NaN.
    names : tuple of str or None
        Names of the variables, if the input had any.
    middle : ndarray of shape (r, r) or None
        For `sma`: B = Z'XY.
    mean, scale : ndarray of shape (p,) or None
        What was subtracted from each column, and what then divided it. None if not applied.
    total_variance : float
        Trace of the covariance matrix of the centered and scaled data.
    row_shift : float or None
        tau of ``scale="degree"``.
    dense_ratio : ndarray of shape (r,) or None
        As in `SparsePCAResult`.
    kind : {"data", "covariance"}

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
    >>> result = spcacore.sca(X, 2, l1_bound=4)
    >>> result.scores.shape, result.pve.round(1).tolist()
    ((100, 2), [0.5, 0.9])
    """

    loadings: AnyArray
    scores: AnyArray | None
    pve: Array
    n_iter: int
    converged: bool
    method: str
    names: tuple[str, ...] | None
    middle: Array | None = None
    mean: AnyArray | None = None
    scale: AnyArray | None = None
    total_variance: float = 0.0
    row_shift: float | None = None
    dense_ratio: Array | None = None
    kind: str = "data"
    missing_entries: int = 0

    @property
    def cardinality(self) -> Index:
        """Number of nonzeros of each loading, (r,)."""
        return np.count_nonzero(self.loadings, axis=0)

    @property
    def explained_variance_ratio(self) -> Array:
        """What each component adds to `pve`, (r,)."""
        return np.diff(self.pve, prepend=0.0)

    @property
    def explained_variance(self) -> Array:
        """Additional variance of each component given the earlier ones, (r,), as in `SparsePCAResult`."""
        return self.explained_variance_ratio * self.total_variance

    def _row_weight(self, X: Any) -> AnyArray | None:
        return None if self.row_shift is None else degree_weight(X, self.row_shift)

    def _facts(self) -> list[str]:
        share = f"{100 * float(self.pve[-1]):.1f} % of the variance explained"
        return [f"method={self.method!r}", *self._sizes(), share, convergence(self.converged, self.n_iter)]
