"""Which columns of sparse data need be read, to see whose product with a vector exceeds a level."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import COLUMN_REFERENCES
from .._types import Array, Index

if TYPE_CHECKING:
    from .problem import Problem

__all__ = ["ColumnBounds"]


class ColumnBounds:
    """Bounds on the products F_j'f of data in CSC; they belong to one call, and every product sharpens them.

    By Cauchy and Schwarz |F_j'f| <= |c| |F_j'd| + ||F_j|| ||f - c d||, c = d'f, for any unit vector d: here
    that of the last vector with which column j was multiplied, or 0. All of F and f is times the root of the
    operator's factor, so that ||F_j||^2 is the variance of a variable. What rounding may do to the product of
    a column with m entries is at most 4 (m + n/16 + 64) eps times its norm about 0 and that of f.

    Attributes
    ----------
    direction : ndarray of shape (1 + COLUMN_REFERENCES, n) or fewer
        The last vectors, after a zero vector.
    last : ndarray of shape (p,), int
        Which of these each column was last multiplied with.
    product : ndarray of shape (p,)
        And the magnitude of the product.
    """

    entries: Index
    last: Index
    product: Array
    read: int
    made: int

    def __init__(self, problem: Problem, entries: Index):
        operator, n = problem.operator, problem.operator.n
        assert problem.diagonal is not None
        assert problem.moment is not None
        self.made, self.read, self.entries = 0, 0, entries
        self.norm: Array = np.sqrt(problem.diagonal) * (1 + 1e-9)
        rounding = 4 * float(np.finfo(operator.dtype).eps) * (entries + n / 16 + 64)
        self.slack: Array = rounding * np.sqrt(problem.moment)
        self.reach: Array = self.norm + self.slack
        kept = min(COLUMN_REFERENCES, max(1, problem.cost // (4 * n)))  # not much beside the data
        self.direction: Array = np.zeros((1 + kept, n))
        self.last, self.product = np.zeros(operator.p, np.intp), np.zeros(operator.p)

    def above(
        self, operator: _core.Operator, inside: Index, index: Index, entries: NDArray[Any], level: float
    ) -> tuple[Index, NDArray[Any]]:
        """Positions and values of the entries |A x| above the level, but for those inside.

        The operator is that of the data with some components removed, whose supports are inside.
        """
        image = operator.forward(index, entries)
        f = image.astype(np.float64)
        f *= math.sqrt(operator.factor)
        size = math.sqrt(f.dot(f))
        bound = self.reach * size
        bound[inside] = 0
        columns = np.flatnonzero(~(bound <= level))  # of the others no direction need be asked
        columns = columns[~(self._bounds(columns, f, size) <= level)]
        value = operator.apply_at(index, entries, columns, image)
        self.read += int(self.entries[index].sum() + self.entries[columns].sum())
        if size > 0:
            self._remember(f / size, columns, value / size)
        found = np.abs(value) > level
        return columns[found], value[found]

    def taken(self) -> float:
        """What was read since this was asked last, of all entries."""
        share = self.read / max(int(self.entries.sum()), 1)
        self.read = 0
        return share

    def _bounds(self, columns: Index, f: NDArray[np.float64], size: float) -> NDArray[np.float64]:
        c = np.abs(self.direction @ f)
        rest = np.sqrt(np.maximum(size**2 - c**2, 0) + 1e-10 * size**2)  # the second term: rounding of c
        last = self.last[columns]
        bound = c[last] * self.product[columns]
        bound += self.norm[columns] * rest[last]
        bound += self.slack[columns] * size
        return bound

    def _remember(self, direction: NDArray[np.float64], columns: Index, product: NDArray[Any]) -> None:
        """In the place of the oldest."""
        place = 1 + self.made % (len(self.direction) - 1)
        self.made += 1
        old = self.last == place
        self.last[old] = self.product[old] = 0
        self.direction[place] = direction
        self.last[columns], self.product[columns] = place, np.abs(product)
