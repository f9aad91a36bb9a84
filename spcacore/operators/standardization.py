"""What is subtracted from each column, what divides it, and how much each row counts."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._messages import counted
from .._records import record
from .._validation import check_sample_weight

__all__ = ["Standardization"]


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
    mean: NDArray[np.float64] | None = None
    deviation: NDArray[np.float64] | None = None
    sample_weight: NDArray[np.float64] | None = None
    excluded: NDArray[np.bool_] | None = None
    known_weight: float | None = None

    @classmethod
    def checked(
        cls, shape: tuple[int, int], center: Any, scale: Any, sample_weight: Any = None
    ) -> Standardization:
        """From what the caller gave for data of this shape."""
        n, p = shape
        vectors: dict[str, NDArray[np.float64] | None] = {}
        for name, value in (("center", center), ("scale", scale)):
            vectors[name] = checked = None if isinstance(value, bool) else value
            if checked is not None and len(checked) != p:
                raise ValueError(f"{name} has {counted(len(checked), 'entry')} for {counted(p, 'variable')}")
        weight = check_sample_weight(sample_weight, n)
        return cls(n, center is not False, scale is not False, vectors["center"], vectors["scale"], weight)

    @cached_property
    def total_weight(self) -> float:
        """Samples that the rows stand for: n, or the sum of the weights."""
        if self.sample_weight is not None:
            return float(self.sample_weight.sum())
        return self.n_samples if self.known_weight is None else self.known_weight

    @property
    def degrees(self) -> float:
        """Divisor of the covariance."""
        return self.total_weight - 1 if self.sample_weight is not None else max(self.total_weight - 1, 1)

    def without_excluded(self, weight: NDArray[Any] | None, dtype: np.dtype[Any]) -> NDArray[Any] | None:
        """What multiplies each column, 0 for those that are excluded; None stands for ones."""
        if self.excluded is None:
            return weight
        return np.where(self.excluded, 0, 1 if weight is None else weight).astype(dtype)

    def row_weight(self, dtype: np.dtype[Any]) -> NDArray[Any] | None:
        """u of F = diag(u) (X - 1 mean'): with `u^2 = w (n - 1) / degrees`, A = F'F / (n - 1)."""
        if self.sample_weight is None:
            return None
        with np.errstate(under="ignore"):
            share = self.sample_weight / self.degrees
            return np.sqrt(share * max(self.n_samples - 1, 1)).astype(dtype)
