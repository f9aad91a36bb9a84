"""Dense data with missing entries."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._records import record

__all__ = ["MissingData"]


@record
class MissingData:
    """Data with missing entries, which a private copy, centered and scaled, has as zeros.

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
