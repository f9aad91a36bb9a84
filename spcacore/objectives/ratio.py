"""Ratios x'Mx/x'Gx, where M is a matrix or of rank one; and what a regression explains.

`RatioOfUnits` is the largest ratio on a support. For least squares components it is max x'A^2 x / x'Ax, what
a score explains of all variables. A and its square are asked for by rows, at two products each, and only
where the search comes to them. On a support S let W have `W'G_S W = I` and `W'M_S W = diag(lambda)`; the
largest eigenvalue with one variable more is the root of one equation (`linalg.eigen.border`). The value never
falls when a variable joins. The equation needs the diagonal of A^2. Where A is too large to be formed, only a
bound on that is known at first: entries are computed for variables that the bound does not rule out.

`Regression` is g_S'(K_S)^-1 g_S, for products g and a semidefinite K: what a few variables explain. It is the
largest (g'u)^2/u'Ku over u on the support S, so the best side of a pair whose other side is given. Less log
det K_S it is what a normal prior of precision K leaves to the evidence of a support. It keeps the rows of W'K
for W'K_S W = I, and what these leave of g and of the diagonal of K. With them, one unit more is one step of
Cholesky's factorization.
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
from .._records import record, replaced
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
_KEPT_BASES = 64  # for supports that a step of a search asks about again


@record
class Support:
    """Variables, ascending, the x on them with the largest value, scaled to x'Gx = 1, and that value."""

    index: Index
    x: Array
    value: float
    n_iter: int = 0


Fit = Callable[[Index], Support | None]  # returns the best feasible x on a support, or None


class Quotient:
    """x'Mx/x'Gx by rows of M and G: what `RatioOfUnits` asks for."""

    p: int
    dtype: DType
    usable: Mask  # the variables that may have a loading
    known: AnyArray = np.ones(1, bool)  # whether `values_with` has values of each variable, not just bounds
    M_diagonal: Any
    G_diagonal: AnyArray
    least: Any  # up to this, what a support leaves of the diagonal of G is rounding
    nothing: float = -np.inf  # the value without variables
    largest: float = np.inf  # no value exceeds it
    entering: int  # how many variables a swap tries: those that would add most

    def rows(self, S: Index) -> tuple[Array, Array]:
        """Return the rows S of M and G."""
        raise NotImplementedError

    def blocks(self, S: Index) -> tuple[Array, Array]:
        """Return M and G on a support."""
        raise NotImplementedError

    def know(self, index: Index) -> None:
        """Compute the diagonal of M at these variables, if it is not known."""

    def cut(self, top: Any) -> Any:
        """Return the size up to which eigenvalues of G are rounding, where `top` is the largest one."""
        return PENCIL_NULL.of(self.dtype) * top

    def basis(self, M: Array, G: Array, S: Index) -> PencilBasis:
        """Return the eigenpairs of the pencil (M, G) on a support S."""
        if (basis := PencilBasis.definite(M, G)) is not None:
            return basis
        mu, U = all_eigenpairs(symmetrized(G))
        return PencilBasis.of(symmetrized(M), mu, U, mu > self.cut(mu[-1]))

    def values_with(self, M: Array, G: Array, candidate: Index, basis: PencilBasis, S: Index) -> Array:
        """Return the largest value on a support with each candidate more.

        M and G have the columns of the candidates, at the rows of the support.
        """
        least = np.broadcast_to(self.least, self.p)[candidate]
        diagonals = self.M_diagonal[candidate], self.G_diagonal[candidate]
        e, corner, d, usable = border(basis, M, G, *diagonals, least)
        if not usable.all():
            size = np.maximum(np.abs(corner), np.abs(e).max(axis=0, initial=0)) * ~usable
            self._refuse_null(size, d, candidate, basis, S)
        return np.minimum(bordered_values(basis, e, np.minimum(corner, self.largest), usable), self.largest)

    def _refuse_null(self, size: Array, d: Array, candidate: Index, basis: PencilBasis, S: Index) -> None:
        """Refuse what M makes of vectors that G maps to zero; here nothing is refused."""


class Ratio(Quotient):
    """x'Mx/x'Gx by rows of M and G, in the units of the operator.

    M is A^2 or, for the single score X u, `largest^2 uu'`: the value is then the share of that score that a
    regression explains, times `largest`. G is A or, with a penalty, A + weight QQ'.

    Attributes
    ----------
    largest : float
        The largest eigenvalue of A, which bounds all values; `u` is its vector.
    usable : ndarray of bool
        Variables for which deflation has left more than rounding.
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
        """Set the leading eigenpair, and the diagonal of A^2 or a bound on it."""
        if self.p <= LEAST_SQUARES_ORDER:
            self.A = symmetric_submatrix(self.op)
            values, vectors, _ = leading_eigenpairs(self.A.copy(), 1)
            self.M_diagonal = np.einsum("ij,ij->j", self.A, self.A)
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

    def penalized(self, Q: Array | None, weight: float) -> Ratio:
        """Return the ratio with a penalty on what of x lies in the span of Q.

        It is `weight` times the largest variance.
        """
        if Q is None or weight == 0:
            return self
        Q = np.sqrt(weight * self.variance.max()) * Q
        return replaced(self, Q=Q, G_diagonal=self.variance + np.einsum("ij,ij->j", Q, Q))

    def of_score(self) -> Ratio:
        """Return the ratio for the score of the leading eigenvector instead of all variables."""
        known, diagonal = np.ones(self.p, bool), (self.largest * self.u) ** 2
        return replaced(self, single=True, known=known, M_diagonal=diagonal)

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
    """The largest x'Mx/x'Gx on whole units, with the asked signs; a unit more never lowers it.

    Parameters
    ----------
    quotient : Quotient
    supports : Supports
        With the cardinality as its room.
    fit : callable, optional
        Returns the best feasible x on a support, or None. The ratio then bounds its value.
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
        self.work: float = np.inf  # multiplications that swaps may still take
        self._rows = KeptRows(quotient.rows, quotient.p)

    @kept(_KEPT_BASES)
    def _basis(self, units: Units) -> tuple[Index, PencilBasis]:
        """Return the variables of some units, and the pencil's eigenpairs on them, whatever the signs."""
        S = self.usable(units)
        return S, self.quotient.basis(*self._block(S, S), S) if len(S) else PencilBasis.empty(0)

    def _block(self, S: Index, T: Index) -> tuple[Array, Array]:
        """Return M and G between variables; if these are few, by rows that are kept."""
        if S is T and len(S) > 2 * self.supports.room:
            return self.quotient.blocks(S)
        M, G = self._rows.between(S, T)
        return M, G

    @kept()
    def best_on(self, units: Units) -> Support | None:
        """Return the best x; None where no variable of the units is usable, or no x is feasible."""
        S = self.usable(units)
        if len(S) == 0:
            return None
        return self.best_of(S) if self.bounded else self._support(*self._basis(units))

    def best_of(self, S: Index) -> Support | None:
        """Return the best x on some variables."""
        if self.fit is not None:
            return self.fit(S)
        M, G = self.quotient.blocks(S)
        basis = self.quotient.basis(M, G, S)
        x = self._support(S, basis)
        if self.supports.signs is None or len(basis.eigenvalues) == 0:
            return x
        # With signs, ascend from x; M is made semidefinite first if it is not
        least = float(basis.eigenvalues.min())
        if least > -self.slack * basis.eigenvalues.max():
            return Support(S, *signed_ratio(M, G, self.supports.signs[S], x.x), x.n_iter)
        y, value = signed_ratio(M - least * G, G, self.supports.signs[S], x.x)
        return Support(S, y, value + least, x.n_iter)

    def _support(self, S: Index, basis: PencilBasis) -> Support:
        """Return the leading vector of the pencil and its value."""
        if len(basis.eigenvalues) == 0:
            return Support(S, np.zeros(len(S)), self.quotient.nothing)
        return Support(S, basis.W[:, 0], min(float(basis.eigenvalues[0]), self.quotient.largest))

    def value(self, units: Units) -> float:
        x = self.best_on(units)
        if x is not None:
            return x.value
        return -np.inf if self.bounded and len(self.usable(units)) else self.quotient.nothing

    def most(self, sets: list[Units]) -> Array:
        """Return the values whatever the signs; sets of one size share a call of LAPACK."""
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
            below = 1 + np.abs(H).sum(axis=(1, 2))  # puts vectors that G maps to zero below all others
            H -= (np.where(kept, 0, below[:, None])[:, :, None]) * np.eye(S.shape[1])
            out[at] = np.where(kept.any(axis=1), np.linalg.eigvalsh(H)[:, -1], self.quotient.nothing)
        return np.minimum(out, self.quotient.largest)

    def with_each(self, units: Units, others: Index) -> Array:
        if self.supports.grouped:
            return super().with_each(units, others)
        S, basis = self._basis(units)
        self.work -= 25.0 * len(S) ** 3 + 2.0 * len(S) ** 2 * len(others)
        return self._with_variables(S, basis, others)

    def _with_variables(self, S: Index, basis: PencilBasis, others: Index) -> Array:
        """Return the values with each of the others, by one secular equation each.

        Variables that the support spans add nothing.
        """
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
        """Return the values without each of these members, by one root each."""
        if self.supports.grouped:
            return super().without_each(units, members)
        S, basis = self._basis(units)
        values = np.full(len(units), self._support(S, basis).value)
        values[S] = basis.without_each() if len(S) > 1 else self.quotient.nothing
        return np.minimum(values, self.quotient.largest)[members]

    def promise(self, units: Units) -> Array:
        """Return the largest value with one variable more of each unit or, for units in it, `shares`."""
        S, basis = self._basis(units)
        outside = np.flatnonzero(~units[self.supports.unit] & self.quotient.usable)
        most = np.full(len(units), -np.inf)
        np.maximum.at(most, self.supports.unit[outside], self._with_variables(S, basis, outside))
        most[units] = self.shares(units)[units]
        return most

    def shares(self, units: Units) -> Array:
        """Return the part of x'Gx that each unit has on the diagonal of G."""
        S, basis = self._basis(units)
        x = with_entries(self.quotient.p, S, self._support(S, basis).x)
        return self.supports.per_unit(x * x * self.quotient.G_diagonal)

    @property
    def exhausted(self) -> bool:
        return not self.work > 0

    def entering(self, units: Units, others: Index) -> Index:
        """Return all others in a search that adds one; in swaps those of the largest promise."""
        if self.supports.simple and self.supports.left(units) > 0:
            return others
        return super().entering(units, others)

    def usable(self, units: Units) -> Index:
        """Return the variables of these units that may have a loading."""
        S = self.supports.index(units)
        return S[self.quotient.usable[S]]


# ---- regressions --------------------------------------------------------------------------------------


@record
class _Explained:
    """A state of the factorization for some units: the rows W'K, and what they leave.

    They leave `rest` of g and `left` of the diagonal of K. `value` is what the units explain.
    """

    units: Units
    rows: Array
    rest: Array
    left: Array
    value: float = 0.0


@record
class Regression(Objective):
    """The explained part of g, g_S'(K_S)^-1 g_S; a unit more never lowers it, without `volume`.

    Parameters
    ----------
    K : KeptRows
        The rows of a semidefinite matrix.
    diagonal : ndarray of shape (p,)
        The diagonal of K.
    g : ndarray of shape (p,)
    supports : Supports
        With the cardinality as its room.
    least : float
        Up to this, eigenvalues of what is left of K are rounding.
    volume : bool
        Whether log det K_S is subtracted.
    fit : callable, optional
        Returns the best u on some variables, for example with signs: it minimizes u'Ku - 2 g'u.
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
        """Return the state for some units.

        It goes on from the last state that was asked for, if that has no other units.
        """
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
        """Return what is left of the rows S of K, what whitens it on S, and by how much the value rises."""
        new = self.K.between(S)[0] - at.rows[:, S].T @ at.rows
        mu, U = np.linalg.eigh(new[:, S])
        T = whitening(mu, U, mu > self.least)
        volume = float(np.log(mu).sum()) if self.volume else 0.0
        return new, T, float(np.sum((T.T @ at.rest[S]) ** 2)) - volume

    @kept()
    def fit_on(self, units: Units) -> Array:
        """Return the best u on these units, with an entry for each variable."""
        S, u = self.supports.index(units), np.zeros(len(self.g))
        if self.fit is None:
            u[S] = np.linalg.lstsq(self.K.between(S, S)[0], self.g[S], rcond=None)[0]
        elif len(S):
            u[S] = self.fit(S)
        return u

    def value(self, units: Units) -> float:
        return self._explained(units).value if self.fit is None else float(self.fit_on(units) @ self.g)

    def with_each(self, units: Units, others: Index) -> Array:
        """Return the values with each of the others, whatever the signs."""
        at = self._explained(units)

        def gain(unit: Unit) -> float:
            return self._with(at, self.supports.index(with_unit(self.none.units, add=unit)))[2]

        if self.supports.grouped:
            return at.value + np.array([gain(unit) for unit in others])
        left = np.where(at.left > self.least, at.left, np.inf)[others]
        return at.value + at.rest[others] ** 2 / left - (np.log(left) if self.volume else 0.0)

    def promise(self, units: Units) -> Array:
        """Return what each unit's variables would add one by one, with the asked signs.

        For units that are in it, return `shares`.
        """
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
