"""Ratios x'Mx/x'Gx, by a matrix M or of rank one, in which a vector is given: what a regression explains.

Of least squares components the ratio is max x'A^2 x / x'Ax, what a score explains of all variables.

A and its square are asked for by rows, two products each, and only where the search comes to them. On a
support S let W have `W'G_S W = I` and `W'M_S W = diag(lambda)`; what a variable more makes of lambda is the
root of one equation (`linalg.eigen.border`). The value is monotone in the support. Where A is too large to
be formed, of the diagonal of A^2, which that equation needs, at first only a bound is known: entries are
computed for the variables that the bound does not rule out.

What a few variables explain in a regression: g_S'(K_S)^-1 g_S, of products g and a semidefinite K.

This is the largest (g'u)^2/u'Ku over u on the support S, so the best side of a pair whose other side is
given. Less log det K_S it is what a normal prior of precision K leaves to the evidence of a support. Rows of
W'K for W'K_S W = I, and what is left of g and of the diagonal of K for all variables, make of one unit more a
step of Cholesky's factorization.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from .. import _core
from .._limits import (
    LEAST_SQUARES_ENTERING,
    LEAST_SQUARES_ORDER,
    LEAST_SQUARES_VECTORS,
    PENCIL_NULL,
    PENCIL_SCHUR,
    RISE,
    TIE,
)
from .._records import record
from .._types import AnyArray, Array, DType, Index, Mask
from ..linalg.eigen import (
    PencilBasis,
    all_eigenpairs,
    border,
    bordered_values,
    leading_eigenpairs,
    leading_eigenvectors,
    signed_ratio,
    whitening,
)
from ..linalg.orthogonal import symmetrized
from ..linalg.scaling import with_entries
from ..operators.deflation import DeflatedOperator
from ..operators.gram import KeptRows, rows_of, symmetric_submatrix
from ..supports.admissible import Supports, Unit, Units, with_unit
from ..supports.objective import Objective, kept, of_each_size

_STEEPEST = 8  # units up to which the best swap of all is sought, and beyond which the first that helps
_KEPT_BASES = 64  # of the supports that a step of a search asks for again


@record
class Support:
    """Variables, ascending, the x there with the largest value, x'Gx = 1, and that value."""

    index: Index
    x: Array
    value: float
    n_iter: int = 0


Fit = Callable[[Index], Support | None]


class Quotient:
    """x'Mx/x'Gx by rows of M and G: what `RatioOfUnits` asks of it."""

    p: int
    dtype: DType
    usable: Mask  # the variables that may have a loading
    known: AnyArray  # those of which `values_with` are values, and not bounds of them
    M_diagonal: Any
    G_diagonal: AnyArray
    least: Any  # what is left of the diagonal of G up to this is rounding
    nothing: float = -np.inf  # the value of no variable
    largest: float = np.inf  # no value exceeds it
    entering: int  # variables, at most, that may enter by a swap: those that would add most

    def rows(self, S: Index) -> tuple[Array, Array]:
        """Those of M and G."""
        raise NotImplementedError

    def blocks(self, S: Index) -> tuple[Array, Array]:
        """M and G on a support."""
        raise NotImplementedError

    def know(self, index: Index) -> None:
        """Compute the diagonal of M there, if it is not known."""

    def cut(self, top: Any) -> Any:
        """Eigenvalues of G up to this are rounding, where this is the largest one."""
        return PENCIL_NULL.of(self.dtype) * top

    def basis(self, M: Array, G: Array, S: Index) -> PencilBasis:
        """Of a support on which the matrices are M and G."""
        if (basis := PencilBasis.definite(M, G)) is not None:
            return basis
        mu, U = all_eigenpairs(symmetrized(G))
        return PencilBasis.of(symmetrized(M), mu, U, mu > self.cut(mu[-1]))

    def values_with(self, M: Array, G: Array, candidate: Index, basis: PencilBasis, S: Index) -> Array:
        """The largest value on a support with each candidate more, of which M and G have the columns."""
        least = np.broadcast_to(self.least, self.p)[candidate]
        diagonals = self.M_diagonal[candidate], self.G_diagonal[candidate]
        e, corner, d, usable = border(basis, M, G, *diagonals, least)
        if not usable.all():
            size = np.maximum(np.abs(corner), np.abs(e).max(axis=0, initial=0)) * ~usable
            self._refuse_null(size, d, candidate, basis, S)
        return np.minimum(bordered_values(basis, e, np.minimum(corner, self.largest), usable), self.largest)

    def _refuse_null(self, size: Array, d: Array, candidate: Index, basis: PencilBasis, S: Index) -> None:
        """Of what G maps to zero, M may not make so much."""


class Ratio(Quotient):
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

    nothing: float = 0.0
    entering: int = LEAST_SQUARES_ENTERING
    p: int
    dtype: DType
    op: _core.Operator
    variance: AnyArray
    u: Array
    largest: float
    known: AnyArray
    M_diagonal: Array
    G_diagonal: AnyArray

    def __init__(self, state: DeflatedOperator):
        self.op = op = state.operator
        self.p, self.dtype = op.p, op.dtype
        self.variance = self.G_diagonal = np.maximum(np.asarray(state.variances, np.float64), 0)
        self.least: Array = PENCIL_SCHUR.of(op.dtype) * np.asarray(state.problem.variances, np.float64)
        self.usable: Mask = self.variance > np.maximum(self.least, np.finfo(op.dtype).tiny)
        self.A: Array | None = None
        self.Q: Array | None = None  # the penalty, as rows
        self.single = False
        self.largest, self.u, self.known = 0.0, np.zeros(op.p), np.ones(op.p, bool)
        if self.usable.any():
            self._square()

    def _square(self) -> None:
        """The leading eigenpairs, and the diagonal of A^2 or a bound of it."""
        if self.p <= LEAST_SQUARES_ORDER:
            self.A = symmetric_submatrix(self.op)
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
        if self.A is None or self.single or self.Q is not None:
            M, G = self.rows(S)
            M, G = M[:, S], G[:, S]
        else:
            M, G = self.A[S] @ self.A[:, S], self.A[np.ix_(S, S)]
        return symmetrized(M), symmetrized(G)

    def know(self, index: Index) -> None:
        index = index[~self.known[index]]
        if len(index):
            rows = rows_of(self.op, index).astype(np.float64)
            self.M_diagonal[index], self.known[index] = np.einsum("ij,ij->i", rows, rows), True


@record
class RatioOfUnits(Objective):
    """The largest x'Mx/x'Gx on whole units, of the signs; a unit more never lowers it.

    Parameters
    ----------
    quotient : Quotient
    supports : Supports
        With the cardinality as its room.
    fit : callable, optional
        The best feasible x on some variables, or None. The ratio then bounds its value.
    """

    slack = RISE
    at_once = 32
    quotient: Quotient
    supports: Supports
    fit: Fit | None = None

    def __post_init__(self) -> None:
        super().__init__(self.supports)
        quotient, supports = self.quotient, self.supports
        self.tie: float = TIE.of(quotient.dtype)
        self.bounded: bool = self.fit is not None or supports.signs is not None
        self.exact: bool = not self.bounded and bool(quotient.known.all())
        few = supports.signs is None or len(supports.allowed) <= self.most_tried
        self.steepest: bool = few and supports.room <= _STEEPEST
        if supports.simple:
            self.most_tried: int = quotient.entering
        self.work: float = np.inf  # multiplications left to swaps
        self._rows = KeptRows(quotient.rows, quotient.p)

    @kept(_KEPT_BASES)
    def _basis(self, units: Units) -> tuple[Index, PencilBasis]:
        """The variables of some units, and the pencil on them whatever the signs."""
        S = self.usable(units)
        return S, self.quotient.basis(*self._block(S, S), S) if len(S) else PencilBasis.empty(0)

    def _block(self, S: Index, T: Index) -> tuple[Array, Array]:
        """M and G between variables: of a few, by rows that are kept."""
        if S is T and len(S) > 2 * self.supports.room:
            return self.quotient.blocks(S)
        M, G = self._rows.between(S, T)
        return M, G

    @kept()
    def best_on(self, units: Units) -> Support | None:
        """The best x; None where no variable of the units is left, or no x is feasible."""
        S = self.usable(units)
        if len(S) == 0:
            return None
        return self.best_of(S) if self.bounded else self._support(*self._basis(units))

    def best_of(self, S: Index) -> Support | None:
        """The best x on some variables."""
        if self.fit is not None:
            return self.fit(S)
        M, G = self.quotient.blocks(S)
        basis = self.quotient.basis(M, G, S)
        x = self._support(S, basis)
        if self.supports.signs is None or len(basis.eigenvalues) == 0:
            return x
        least = float(basis.eigenvalues.min())
        if least > -self.slack * basis.eigenvalues.max():
            return Support(S, *signed_ratio(M, G, self.supports.signs[S], x.x), x.n_iter)
        y, value = signed_ratio(M - least * G, G, self.supports.signs[S], x.x)
        return Support(S, y, value + least, x.n_iter)

    def _support(self, S: Index, basis: PencilBasis) -> Support:
        if len(basis.eigenvalues) == 0:
            return Support(S, np.zeros(len(S)), self.quotient.nothing)
        return Support(S, basis.W[:, 0], min(float(basis.eigenvalues[0]), self.quotient.largest))

    def value(self, units: Units) -> float:
        x = self.best_on(units)
        if x is not None:
            return x.value
        return -np.inf if self.bounded and len(self.usable(units)) else self.quotient.nothing

    def most(self, sets: list[Units]) -> Array:
        """Whatever the signs, from the blocks of all of them: those of one size by one call of LAPACK."""
        out = np.full(len(sets), self.quotient.nothing)
        used = self.usable(np.any(sets, axis=0)) if sets else np.zeros(0, np.intp)
        M, G = self._block(used, used)
        unit = self.supports.unit[used]
        for at, S in of_each_size([np.flatnonzero(units[unit]) for units in sets]):
            rows, columns = S[:, :, None], S[:, None, :]
            mu, U = np.linalg.eigh(G[rows, columns])
            kept = mu > self.quotient.cut(mu[:, -1:])
            T = U * np.where(kept, 1 / np.sqrt(np.where(kept, mu, 1)), 0)[:, None, :]
            H = T.transpose(0, 2, 1) @ M[rows, columns] @ T
            below = 1 + np.abs(H).sum(axis=(1, 2))  # what G maps to zero is no larger than all else
            H -= (np.where(kept, 0, below[:, None])[:, :, None]) * np.eye(S.shape[1])
            out[at] = np.where(kept.any(axis=1), np.linalg.eigvalsh(H)[:, -1], self.quotient.nothing)
        return np.minimum(out, self.quotient.largest)

    def with_each(self, units: Units, others: Index) -> Array:
        if self.supports.grouped:
            return self.most([with_unit(units, add=unit) for unit in others])
        S, basis = self._basis(units)
        self.work -= 25.0 * len(S) ** 3 + 2.0 * len(S) ** 2 * len(others)
        return self._with_variables(S, basis, others)

    def _with_variables(self, S: Index, basis: PencilBasis, others: Index) -> Array:
        """By one secular equation each; those that the others span add nothing."""
        least = basis.eigenvalues[0] if len(basis.eigenvalues) else self.quotient.nothing
        usable = self.quotient.usable[others]
        some = others[usable]
        values = np.full(len(others), least)
        values[usable] = np.maximum(self.quotient.values_with(*self._block(S, some), some, basis, S), least)
        return values

    def added(self, units: Units, others: Index) -> Array:
        if self.bounded:
            return super().added(units, others)
        self.quotient.know(self.supports.index(with_unit(np.zeros_like(units), add=others)))
        return self.with_each(units, others)

    def without_each(self, units: Units, members: Index) -> Array:
        """By one root each."""
        if self.supports.grouped:
            return self.most([with_unit(units, drop=unit) for unit in members])
        S, basis = self._basis(units)
        values = np.full(len(units), self._support(S, basis).value)
        values[S] = basis.without_each() if len(S) > 1 else self.quotient.nothing
        return np.minimum(values, self.quotient.largest)[members]

    def promise(self, units: Units) -> Array:
        """With one variable more of a unit, or the variance of its part of x."""
        S, basis = self._basis(units)
        outside = np.flatnonzero(~units[self.supports.unit] & self.quotient.usable)
        most = np.full(len(units), -np.inf)
        np.maximum.at(most, self.supports.unit[outside], self._with_variables(S, basis, outside))
        most[units] = self.shares(units)[units]
        return most

    def shares(self, units: Units) -> Array:
        S, basis = self._basis(units)
        x = with_entries(self.quotient.p, S, self._support(S, basis).x)
        return self.supports.per_unit(x * x * self.quotient.G_diagonal)

    @property
    def exhausted(self) -> bool:
        return not self.work > 0

    def entering(self, units: Units, others: Index) -> Index:
        """All others in a search that adds one, and in swaps those of the largest promise."""
        if self.supports.simple and self.supports.left(units) > 0:
            return others
        return super().entering(units, others)

    def usable(self, units: Units) -> Index:
        """The variables of these units that may have a loading."""
        S = self.supports.index(units)
        return S[self.quotient.usable[S]]


# ---- regressions --------------------------------------------------------------------------------------


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
