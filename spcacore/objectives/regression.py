"""What a few variables explain in a regression: g_S'(K_S)^-1 g_S, of products g and a semidefinite K.

This is the largest (g'u)^2/u'Ku over u on the support S, so the best side of a pair whose other side is
given. Less log det K_S it is what a normal prior of precision K leaves to the evidence of a support. Rows of
W'K for W'K_S W = I, and what is left of g and of the diagonal of K for all variables, make of one unit more a
step of Cholesky's factorization.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .._records import record
from .._types import Array, Index
from ..linalg.pencil import whitening
from ..operators.submatrix import KeptRows
from ..supports.admissible import Supports, Unit, Units, with_unit
from ..supports.objective import Objective, kept


@record
class _Explained:
    """Rows of W'K, what these leave of g and of the diagonal of K, and the value."""

    units: Units
    rows: Array
    rest: Array
    left: Array
    value: float = 0.0


@record
class Regression(Objective):
    """The explained part of g; a unit more never lowers it, without `volume`.

    Parameters
    ----------
    K : KeptRows
        The rows of a semidefinite matrix.
    diagonal : ndarray of shape (p,)
    g : ndarray of shape (p,)
    supports : Supports
        With the cardinality as its room.
    least : float
        Eigenvalues of what is left of K up to this are rounding.
    volume : bool
        Whether log det K_S is taken away.
    fit : callable, optional
        The best u on some variables, as where it has signs: it minimizes u'Ku - 2 g'u.
    """

    K: KeptRows
    diagonal: Array
    g: Array
    supports: Supports
    least: float = 0.0
    volume: bool = False
    fit: Callable[[Index], Array] | None = None

    def __post_init__(self) -> None:
        super().__init__(self.supports)
        g, supports = self.g, self.supports
        self.exact: bool = self.fit is None
        self.steepest: bool = self.fit is not None or supports.grouped
        if self.exact and not supports.grouped:
            self.most_tried: int = len(supports.allowed)
        none = np.zeros(len(supports.allowed), bool)
        self.none: _Explained = _Explained(none, np.zeros((0, len(g))), g.astype(np.float64), self.diagonal)
        self.last: _Explained = self.none

    def _explained(self, units: Units) -> _Explained:
        """From the last one asked for, where that has some of these units and no others."""
        at = self.none if (self.last.units & ~units).any() else self.last
        S = self.supports.index(units & ~at.units)
        if len(S) == 0:
            return at
        new, T, gain = self._with(at, S)
        rows = T.T @ new
        left = at.left - np.einsum("ij,ij->j", rows, rows)
        rest = at.rest - (T.T @ at.rest[S]) @ rows
        self.last = _Explained(units.copy(), np.vstack([at.rows, rows]), rest, left, at.value + gain)
        return self.last

    def _with(self, at: _Explained, S: Index) -> tuple[Array, Array, float]:
        """What is left of the rows S of K, what whitens it on S, and by how much the value rises."""
        new = self.K.between(S)[0] - at.rows[:, S].T @ at.rows
        mu, U = np.linalg.eigh(new[:, S])
        T = whitening(mu, U, mu > self.least)
        volume = float(np.log(mu).sum()) if self.volume else 0.0
        return new, T, float(np.sum((T.T @ at.rest[S]) ** 2)) - volume

    @kept()
    def fit_on(self, units: Units) -> Array:
        """The best u, for all variables."""
        S, u = self.supports.index(units), np.zeros(len(self.g))
        if self.fit is None:
            u[S] = np.linalg.lstsq(self.K.between(S, S)[0], self.g[S], rcond=None)[0]
        else:
            u[S] = self.fit(S)
        return u

    def value(self, units: Units) -> float:
        return self._explained(units).value if self.fit is None else float(self.fit_on(units) @ self.g)

    def with_each(self, units: Units, others: Index) -> Array:
        """The values, whatever the signs."""
        at = self._explained(units)

        def gain(unit: Unit) -> float:
            return self._with(at, self.supports.index(with_unit(self.none.units, add=unit)))[2]

        if self.supports.grouped:
            return at.value + np.array([gain(unit) for unit in others])
        left = np.where(at.left > self.least, at.left, np.inf)[others]
        return at.value + at.rest[others] ** 2 / left - (np.log(left) if self.volume else 0.0)

    def promise(self, units: Units) -> Array:
        """What each variable by itself would add, of the signs."""
        at, rest = self._explained(units), self.g
        if self.exact:
            rest = at.rest
        elif len(S := np.flatnonzero(u := self.fit_on(units))):
            rest = self.g - u[S] @ self.K.between(S)[0]
        left = np.where(at.left > self.least, at.left, np.inf)
        most = self.supports.per_unit(self.supports.projected(rest) ** 2 / left)
        return np.where(units, self.shares(units), most)

    def shares(self, units: Units) -> Array:
        return self.supports.per_unit(self.fit_on(units) ** 2)
