"""Ratios x'Mx/x'Gx: of least squares components max x'A^2 x / x'Ax, what a score explains of all variables.

A and its square are asked for by rows, two products each, and only where the search comes to them. On a
support S let W have `W'G_S W = I` and `W'M_S W = diag(lambda)`; what a variable more makes of lambda is the
root of one equation (`linalg.pencil.border`). The value is monotone in the support. Where A is too large to
be formed, of the diagonal of A^2, which that equation needs, at first only a bound is known: entries are
computed for the variables that the bound does not rule out.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from .. import _core
from .._limits import (
    LEAST_SQUARES_EXACT_ROUNDS,
    LEAST_SQUARES_ORDER,
    LEAST_SQUARES_VECTORS,
    PENCIL_NULL,
    PENCIL_SCHUR,
    RISE,
    TIE,
)
from .._records import record
from .._types import Array, Index
from ..linalg.eigen import all_eigenpairs, leading_eigenpairs, leading_eigenvectors
from ..linalg.pencil import PencilBasis, border, ties
from ..linalg.signed import signed_ratio
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from ..operators.submatrix import rows_of, whole_matrix
from ..supports.admissible import Supports, Units, with_unit
from ..supports.objective import Bound, Objective

__all__ = ["Fit", "Ratio", "RatioOfUnits", "Support"]
__dir__ = __all__.copy


@record
class Support:
    """Variables, ascending, the x there with the largest value, x'Gx = 1, and that value."""

    index: Index
    x: Array
    value: float
    n_iter: int = 0


Fit = Callable[[Index], Support | None]


class Ratio:
    """x'Mx/x'Gx by rows of M and G, in the units of the operator.

    M is A^2 or, of a single score X u, `largest^2 uu'`: the value is the share of that score that a
    regression explains, times `largest`. G is A or, with a penalty, A + weight QQ'.

    Attributes
    ----------
    largest : float
        The largest eigenvalue of A, which bounds all values; `u` is its vector.
    usable : ndarray of bool
        Variables of which the deflation has left more than rounding.
    """

    def __init__(self, problem: Problem, state: DeflatedOperator):
        assert problem.diagonal is not None
        assert state.diagonal is not None
        self.op = op = state.operator
        self.p, self.dtype = op.p, op.dtype
        self.variance = self.G_diagonal = np.maximum(np.asarray(state.diagonal, np.float64), 0)
        self.least = PENCIL_SCHUR.of(op.dtype) * np.asarray(problem.diagonal, np.float64)
        self.usable = self.variance > np.maximum(self.least, np.finfo(op.dtype).tiny)
        self.A: Array | None = None
        self.Q: Array | None = None  # the penalty, as rows
        self.single = False
        self.largest, self.u = 0.0, np.zeros(op.p)
        if self.usable.any():
            self._square()

    def _square(self) -> None:
        """The leading eigenpairs, and the diagonal of A^2 or a bound of it."""
        if self.p <= LEAST_SQUARES_ORDER:
            self.A = whole_matrix(self.op)
            self.A = (self.A + self.A.T) / 2
            values, vectors, _ = leading_eigenpairs(self.A.copy(), 1)
            self.M_diagonal, self.known = np.einsum("ij,ij->j", self.A, self.A), np.ones(self.p, bool)
        else:
            r = min(LEAST_SQUARES_VECTORS + 1, self.p - 2, self.op.m)
            values, vectors = leading_eigenvectors(self.op, r)
            values = np.maximum(values, 0)
            # (A^2)_jj = sum lambda_l^2 v_jl^2 + what is left, at most lambda_r (a_jj - sum lambda_l v_jl^2)
            square = vectors[:, :-1] ** 2
            left = np.maximum(self.variance - square @ values[:-1], 0) * values[-1]
            self.M_diagonal = square @ values[:-1] ** 2 + left
            self.known = np.zeros(self.p, bool)
        self.largest, self.u = float(values[0]), np.ascontiguousarray(vectors[:, 0])

    def penalized(self, Q: Array, weight: float) -> Ratio:
        """With `weight` times the largest variance on what of x lies in the span of Q."""
        other = self._copy()
        other.Q = np.sqrt(weight * self.variance.max()) * Q
        other.G_diagonal = self.variance + np.einsum("ij,ij->j", other.Q, other.Q)
        return other

    def of_score(self) -> Ratio:
        """Of the score of the leading eigenvector instead of all variables."""
        other = self._copy()
        other.single, other.known = True, np.ones(self.p, bool)
        other.M_diagonal = (self.largest * self.u) ** 2
        return other

    def _copy(self) -> Ratio:
        other = object.__new__(Ratio)
        other.__dict__.update(self.__dict__)
        return other

    def rows(self, S: Index) -> tuple[Array, Array]:
        """Those of M and G."""
        G = rows_of(self.op, S).astype(np.float64) if self.A is None else self.A[S]
        if self.single:
            M = np.outer(self.largest**2 * self.u[S], self.u)
        elif self.A is not None:
            M = G @ self.A
        else:
            M = self.op.apply_block(G.T.astype(self.dtype)).T.astype(np.float64)
        if self.Q is not None:
            G = G + self.Q[:, S].T @ self.Q
        return M, G

    def blocks(self, S: Index) -> tuple[Array, Array]:
        """M and G on a support."""
        if self.A is None or self.single or self.Q is not None:
            M, G = self.rows(S)
            M, G = M[:, S], G[:, S]
        else:
            M, G = self.A[S] @ self.A[:, S], self.A[np.ix_(S, S)]
        return (M + M.T) / 2, (G + G.T) / 2

    def know(self, index: Index) -> None:
        """Compute the diagonal of M there."""
        index = index[~self.known[index]]
        if len(index):
            rows = rows_of(self.op, index).astype(np.float64)
            self.M_diagonal[index], self.known[index] = np.einsum("ij,ij->i", rows, rows), True

    def basis(self, M: Array, G: Array) -> PencilBasis:
        """Of a support."""
        mu, U = all_eigenpairs((G + G.T) / 2)
        kept = mu > PENCIL_NULL.of(self.dtype) * mu[-1]
        return PencilBasis.of((M + M.T) / 2, mu, U, kept)

    def best_on(self, S: Index, rows: tuple[Array, Array] | None = None, n_iter: int = 0) -> Support:
        """The best x on a support, whose rows may be known."""
        M, G = self.rows(S) if rows is None else rows
        basis, order = self.basis(M[:, S], G[:, S]), np.argsort(S)
        return Support(S[order], basis.W[order, 0], float(basis.eigenvalues[0]), n_iter)

    def values_with(self, M: Array, G: Array, candidate: Index, basis: PencilBasis) -> Array:
        """The values with each candidate more, of which M and G have the columns; -inf for those spanned."""
        b, corner, _, usable = border(
            basis, M, G, self.M_diagonal[candidate], self.G_diagonal[candidate], self.least[candidate]
        )
        corner = np.where(usable, np.minimum(corner, self.largest), -np.inf)
        if len(basis.eigenvalues) == 0:
            return corner
        b[:, ~usable] = 0
        value = _core.bordered_eigenvalues(
            np.ascontiguousarray(b), np.arange(len(candidate)), np.where(usable, corner, 0.0),
            basis.eigenvalues, np.asfortranarray(np.eye(len(b))),
        )  # fmt: skip
        return np.where(usable, value, -np.inf)

    def best_addition(
        self, M: Array, G: Array, candidate: Index, basis: PencilBasis, more_than: float = -np.inf
    ) -> int | None:
        """The candidate with the largest value; None if none has more than `more_than`, or all are spanned.

        M and G are the rows of the support. Bounds are replaced by values, of the most promising, until a
        value is the largest.
        """
        if len(candidate) == 0:
            return None
        value = self.values_with(M[:, candidate], G[:, candidate], candidate, basis)
        for _ in range(LEAST_SQUARES_EXACT_ROUNDS):
            best = int(ties(value, TIE.of(self.dtype))[0])
            if not value[best] > more_than:
                return None
            if self.known[candidate[best]]:
                return int(candidate[best])
            open_ = np.flatnonzero(~self.known[candidate])
            open_ = open_[np.argsort(-value[open_], kind="stable")[:32]]
            some = candidate[open_]
            self.know(some)
            value[open_] = self.values_with(M[:, some], G[:, some], some, basis)
        value = np.where(self.known[candidate], value, -np.inf)
        best = int(ties(value, TIE.of(self.dtype))[0])
        return int(candidate[best]) if value[best] > more_than else None


class RatioOfUnits(Objective):
    """The largest x'Mx/x'Gx on whole units, of the signs; a unit more never lowers it.

    Parameters
    ----------
    ratio : Ratio
    supports : Supports
        With the cardinality as its room.
    fit : callable, optional
        The best feasible x on some variables, or None. The ratio then bounds its value.
    """

    slack = RISE

    def __init__(self, ratio: Ratio, supports: Supports, fit: Fit | None = None):
        super().__init__(supports)
        self.ratio, self.fit = ratio, fit
        self.exact = fit is None and supports.signs is None and bool(ratio.known.all())
        self.steepest = supports.signs is None or len(supports.allowed) <= self.most_tried
        self._kept: dict[bytes, Support | None] = {}

    def best_on(self, units: Units) -> Support | None:
        """The best x; None where no variable of the units is left, or no x is feasible."""
        key = units.tobytes()
        if key not in self._kept:
            S = self._usable(units)
            self._kept[key] = self.best_of(S) if len(S) else None
        return self._kept[key]

    def best_of(self, S: Index) -> Support | None:
        """The best x on some variables."""
        if self.fit is not None:
            return self.fit(S)
        x = self.ratio.best_on(S)
        if self.supports.signs is None:
            return x
        return Support(S, *signed_ratio(*self.ratio.blocks(S), self.supports.signs[S], x.x), x.n_iter)

    def value(self, units: Units) -> float:
        x = self.best_on(units)
        if x is not None:
            return x.value
        return -np.inf if len(self._usable(units)) else 0.0

    def most(self, sets: list[Units]) -> Array:
        """Whatever the signs, from the rows of all of them."""
        used = self._usable(np.any(sets, axis=0)) if sets else np.zeros(0, np.intp)
        M, G = self.ratio.blocks(used)
        out = np.zeros(len(sets))
        for i, units in enumerate(sets):
            at = np.flatnonzero(units[self.supports.unit[used]])
            if len(at):
                out[i] = self.ratio.basis(M[np.ix_(at, at)], G[np.ix_(at, at)]).eigenvalues[0]
        return np.minimum(out, self.ratio.largest)

    def with_each(self, units: Units, others: Index) -> Array:
        if self.supports.grouped:
            return self.most([with_unit(units, add=unit) for unit in others])
        return self._with_variables(self._usable(units), others)

    def _with_variables(self, S: Index, others: Index) -> Array:
        """By one secular equation each; those that the others span add nothing."""
        M, G = self.ratio.rows(S)
        basis = self.ratio.basis(M[:, S], G[:, S]) if len(S) else PencilBasis.empty(0)
        least = basis.eigenvalues[0] if len(S) else 0.0
        values = np.full(len(others), least)
        usable = self.ratio.usable[others]
        some = others[usable]
        values[usable] = np.maximum(self.ratio.values_with(M[:, some], G[:, some], some, basis), least)
        return values

    def without_each(self, units: Units, members: Index) -> Array:
        if self.supports.grouped:
            return self.most([with_unit(units, drop=unit) for unit in members])
        return self._without_variables(units)[1][members]

    def _without_variables(self, units: Units) -> tuple[float, Array]:
        """The value, and that without each variable, by one root each."""
        S = self._usable(units)
        if len(S) == 0:
            return 0.0, np.zeros(len(units))
        basis = self.ratio.basis(*self.ratio.blocks(S))
        value = min(float(basis.eigenvalues[0]), self.ratio.largest)
        values = np.full(len(units), value)
        values[S] = basis.without_each() if len(S) > 1 else 0.0
        return value, values

    def promise(self, units: Units) -> Array:
        """With one variable more of a unit, or the variance of its part of x."""
        S, outside = self._usable(units), np.flatnonzero(~units[self.supports.unit] & self.ratio.usable)
        most = np.full(len(units), -np.inf)
        np.maximum.at(most, self.supports.unit[outside], self._with_variables(S, outside))
        if len(S):
            x = np.zeros(self.ratio.p)
            x[S] = self.ratio.best_on(S).x
            most[units] = self.supports.per_unit(x * x * self.ratio.variance)[units]
        return most

    def bound(self, inside: Units, free: Units) -> Bound:
        """Of all units that may be in; and without each, as none exceeds those that hold it."""
        units, members = inside | free, np.flatnonzero(free)
        if self.supports.grouped:
            value = float(self.most([units])[0])
            without = np.full(len(units), value)
            without[members] = self.without_each(units, members)
        else:
            value, without = self._without_variables(units)
        return Bound(value, value - without, without)

    def _usable(self, units: Units) -> Index:
        S = self.supports.index(units)
        return S[self.ratio.usable[S]]
