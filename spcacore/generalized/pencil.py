"""The pencil (A, B): its leading x on a support, its deflation, and a bound on all of its values.

All work is done in units in which the diagonals of B are near 1: with a diagonal D of powers of two,
`x = Dy` has the support of y, and the pencil (DAD, DBD) its values.

On a support S let the columns of W have `W'B_S W = I` and `W'A_S W = diag(lambda)`. With `b = W'A_Sj`,
`d = W'B_Sj` and `sigma = B_jj - d'd`, the pencil on S and j is, by one step of a Cholesky factorization, the
bordered matrix

    diag(lambda)  e         e = (b - lambda d)/sqrt(sigma)
    e'            corner    corner = (a_jj - 2 d'b + sum lambda d^2)/sigma,

whose largest eigenvalue is a root of one equation (greedy.c).  Where sigma is 0 the direction `e_j - Wd` has
x'Bx = 0; it must be one that A maps to zero.

Deflation (operators/deflation) never enters A or B.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .. import _core
from .._limits import (
    CHOLESKY_ORDER,
    CHUNK,
    CROSS_COLUMNS,
    IN_SPAN,
    NAMED_WEIGHT,
    PENCIL_DEFLATED_NULL,
    PENCIL_ENTERING,
    PENCIL_NULL,
    PENCIL_ROUNDING,
    PENCIL_SCHUR,
    PENCIL_SLACK,
    SUBMATRIX_ORDER,
    slices,
)
from .._records import record
from .._types import AnyArray, Array, DType, Index, Mask
from .._validation import is_sparse
from ..linalg.eigen import all_eigenpairs
from ..linalg.orthogonal import symmetrized
from ..linalg.pencil import PencilBasis, largest_value, whitening
from ..linalg.scaling import below_range, beyond_range, eps_of, largest_magnitude, with_entries
from ..objectives.ratio import Quotient
from ..operators.base import Affine
from ..operators.deflation import Deflation, LowRank
from ..operators.dense import blas_layout
from ..operators.sparse import is_indefinite, squared_norms
from ..operators.statistics import entries
from ..operators.submatrix import rows_of
from ..solvers.solution import Solution


class Unbounded(ValueError):
    """B maps a direction to zero that A does not."""


def unbounded(index: Index, direction: Array, advice: str) -> Unbounded:
    """Names the variables of that direction."""
    weight = np.abs(direction)
    named = index[weight > NAMED_WEIGHT * weight.max()]
    shown = ", ".join(map(str, named[:8].tolist())) + ", ..." * (len(named) > 8)
    return Unbounded(
        f"x'Bx = 0 where A x is not 0, for an x on the variables {shown}: the ratio has no bound; {advice}"
    )


class Pencil(Quotient):
    """Both forms in units in which B has diagonals near 1, without what was found so far; a `Quotient`."""

    p: int
    dtype: DType
    usable: Mask
    known: AnyArray
    entering: int = PENCIL_ENTERING
    advice: str
    least: float
    null: float
    slack: float

    def __init__(self, A: Form, B: Form, *, dtype: DType, advice: str = "add to the diagonal of B"):
        self.dtype, self.advice = dtype, advice
        self.least, self.null, self.slack = (
            precision.of(dtype) for precision in (PENCIL_SCHUR, PENCIL_NULL, PENCIL_SLACK)
        )
        variance = B.diagonal()
        if variance.min() < -self.slack * variance.max():
            raise ValueError("B must be positive semidefinite; it has a negative diagonal entry")
        used = variance > 0
        exponent = np.where(used, np.round(np.log2(np.where(used, variance, 1.0)) / 2), 0.0)
        unit = np.ldexp(1.0, -exponent.astype(int))
        self.p, self.usable, self.known = B.p, used, np.ones(B.p, bool)
        self.active: Index = np.flatnonzero(used)
        self._refuse_unused(A, B, ~used)
        if not used.any():
            raise ValueError("B is zero")
        self.B = self.B0 = B.in_units(np.where(used, unit, 0.0))
        self.unit: AnyArray = np.where(used, unit, 0.0)
        self.removed: list[tuple[Array, Array]] = []
        self._numerator(A)
        self._whiten: Array | None = None
        self._whitened = False
        self._refuse_indefinite()

    def _numerator(self, A: Form) -> None:
        """Set A, with its largest entry near 1."""
        A = A.in_units(self.unit)
        self.exponent: int = 0
        with beyond_range():
            largest = largest_magnitude(A.diagonal())
            if A.op.symmetric_form:  # otherwise it is on the diagonal
                largest = max(largest, *(float(size.max(initial=0)) for size, _, _ in A.magnitudes()))
        if not math.isfinite(largest):
            raise ValueError("A is so large beside B that x'Ax / x'Bx exceeds the number range; rescale one")
        if largest > 0:
            self.exponent = 2 * round(math.log2(largest) / 2)
        self.A = self.A0 = A.in_units(np.full(A.p, math.ldexp(1.0, -self.exponent // 2)))
        self._diagonals()

    def _refuse_unused(self, A: Form, B: Form, unused: Mask) -> None:
        for start in range(0, np.count_nonzero(unused), CROSS_COLUMNS):
            S = np.flatnonzero(unused)[start : start + CROSS_COLUMNS]
            if B.rows(S).any():
                raise ValueError("B must be positive semidefinite; a row with diagonal entry 0 is not zero")
            wrong = A.rows(S).any(axis=1)
            if wrong.any():
                raise unbounded(S[wrong][:1], np.ones(1), self.advice)

    def _refuse_indefinite(self) -> None:
        """By Cholesky factorization where B is small and given, else by its 2 x 2 minors."""
        if not self.B.op.symmetric_form:
            return
        if len(self.active) <= CHOLESKY_ORDER:
            bad = is_indefinite(self.B.block(self.active), self.slack)
        else:
            root = np.sqrt(self.G_diagonal)
            bad = any((x > root[i] * root[j] + self.slack).any() for x, i, j in self.B.magnitudes())
        if bad:
            raise ValueError("B must be positive semidefinite, and is not")

    def _diagonals(self) -> None:
        self.M_diagonal: Array = self.A.diagonal()
        self.G_diagonal: Array = self.B.diagonal()

    def rows(self, S: Index) -> tuple[Array, Array]:
        return self.A.rows(S), self.B.rows(S)

    def blocks(self, S: Index) -> tuple[Array, Array]:
        return self.A.block(S), self.B.block(S)

    def basis(self, GA: Array, GB: Array, index: Index) -> PencilBasis:
        if self.B is self.B0 and (basis := PencilBasis.definite(GA, GB)) is not None:
            return basis
        mu, U = all_eigenpairs(GB)
        top = float(mu[-1])
        if top <= self.least:
            return PencilBasis.empty(len(index))
        if mu[0] < -self.slack * (top if self.B is self.B0 else max(top, 1.0)):
            raise ValueError("B must be positive semidefinite, and is not")
        kept = mu > self.cut(top)
        if not kept.all():
            if self.A is self.A0:
                self._refuse_unbounded(GA, U[:, ~kept], index)
            else:
                self._refuse_unbounded_on(index)
        return PencilBasis.of(GA, mu, U, kept)

    def cut(self, top: Any) -> Any:
        """Eigenvalues of B_S up to this are rounding; of a deflated B, the largest may be, too."""
        deflated = 0.0 if self.B is self.B0 else max(self.least, PENCIL_DEFLATED_NULL)
        return np.maximum(self.null * top, deflated)

    def _refuse_unbounded(self, GA: Array, N: Array, index: Index) -> None:
        product = np.abs(GA @ N).max(axis=0, initial=0)
        if product.max(initial=0) > self.slack * np.abs(GA).max():
            raise unbounded(index, N[:, np.argmax(product)], self.advice)

    def _refuse_unbounded_on(self, S: Index) -> None:
        """Judged before deflation, which leaves only rounding of A where its rank is used up."""
        mu, U = all_eigenpairs(self.B0.block(S))
        self._refuse_unbounded(self.A0.block(S), U[:, mu <= self.null * mu[-1]], S)

    def leading(self, S: Index) -> Solution:
        """The leading x on a support."""
        basis = self.basis(*self.blocks(S), S)
        if len(basis.eigenvalues) == 0:
            return Solution(S, np.zeros(len(S)), -np.inf, 0, True)
        return Solution(S, basis.W[:, 0], float(basis.eigenvalues[0]), 0, True)

    def least_norm(self, x: Solution) -> Solution:
        """Of all x that differ by what deflation has made B map to zero, the one with least x'B_0 x."""
        if self.B is self.B0:
            return x
        mu, U = all_eigenpairs(self.B.block(x.index))
        N = U[:, mu <= self.cut(float(mu[-1]))]
        if not N.shape[1]:
            return x
        BN = self.B0.block(x.index) @ N
        y = x.entries - N @ np.linalg.lstsq(N.T @ BN, BN.T @ x.entries, rcond=self.null)[0]
        return replace(x, entries=y)

    def _refuse_null(self, size: Array, d: Array, candidate: Index, basis: PencilBasis, S: Index) -> None:
        """x'Bx = 0 for e_j - W d: A must map it to zero, too."""
        worst = int(np.argmax(size))
        if size[worst] > self.slack * max(1.0, float(np.abs(basis.eigenvalues).max(initial=0))):
            support = np.append(S, candidate[worst])
            if self.A is self.A0:
                raise unbounded(support, np.append(-basis.W @ d[:, worst], 1.0), self.advice)
            self._refuse_unbounded_on(support)

    def rounding(self, x: Solution) -> float:
        """Of the x'Ax that deflation has left."""
        return PENCIL_ROUNDING * float(np.abs(x.entries) @ np.abs(self.A0.block(x.index)) @ np.abs(x.entries))

    def ratio(self, x: Solution) -> tuple[float, float]:
        """x'Ax/x'Bx of the caller's pencil, and x'Bx as it is there."""
        v = x.entries
        square = float(v @ (self.B0.block(x.index) @ v))
        with below_range():
            return float(np.ldexp(v @ (self.A0.block(x.index) @ v) / square, self.exponent)), square

    def remove(self, x: Solution, deflation: Deflation) -> None:
        """Deflate by x."""
        q = with_entries(self.B.p, x.index, x.entries)
        z = self.B0.matvec(x.entries, x.index)
        if deflation.orthogonalized:
            before = math.sqrt(q @ z)
            for _ in range(2):
                for other, z in self.removed:
                    q = q - other * (z @ q)
            z = self.B0.matvec(q)
            if not float(q @ z) > (IN_SPAN * before) ** 2:
                return
        size = math.sqrt(q @ z)
        q, z = q / size, z / size
        self.removed.append((q, z))
        w = self.A.matvec(q)
        self.A += LowRank.removal(deflation.update, float(q @ w), (z, w))
        if deflation.quotient:
            self.B += LowRank.removal("hotelling", 1.0, (z, z))
        self._diagonals()

    def bound(self) -> float | None:
        """The largest value of the whole pencil; None where that is not computed, or has no bound."""
        if len(self.active) > SUBMATRIX_ORDER:
            return None
        if not self._whitened:
            self._whitened, self._whiten = True, self._whitening()
        return None if self._whiten is None else largest_value(self.A.block(self.active), self._whiten)

    def _whitening(self) -> Array | None:
        """T with T'BT = I for the whole of B; None where A does not map to zero what B does."""
        mu, U = all_eigenpairs(self.B0.block(self.active))
        kept = mu > self.null * mu[-1]
        GA = self.A0.block(self.active)
        product = GA @ U[:, ~kept]
        large = np.abs(GA).max()
        rounding = 16 * len(GA) * eps_of(self.dtype)
        if np.abs(product).max(initial=0) > self.slack * large:
            return None
        if np.abs(U[:, ~kept].T @ product).max(initial=0) > rounding * large:
            return None
        return whitening(mu, U, kept)


@record
class Form:
    """diag(unit) (A + diag(ridge)) diag(unit) + terms, A an operator, of which nothing large is copied.

    The terms are in the units of the product. `sparse` has those of a matrix of which few are stored.
    """

    op: Any
    own: Array  # the diagonal of A + diag(ridge)
    ridge: Array | None
    unit: Array
    terms: LowRank
    sparse: Any = None

    @classmethod
    def of_operator(cls, op: Any, diagonal: AnyArray, ridge: Array | None = None, sparse: Any = None) -> Form:
        own = diagonal.astype(np.float64) + (0 if ridge is None else ridge)
        return cls(op, own, ridge, np.ones(len(own)), LowRank.none(len(own)), sparse)

    @classmethod
    def of_storage(cls, A: Any) -> Form:
        """A symmetric matrix, where it is."""
        sparse = A.matrix if is_sparse(A.matrix) else None
        return cls.of_operator(A.operator(Affine()), A.diagonal(), sparse=sparse)

    @classmethod
    def of(cls, A: AnyArray, level: Array | float = 0.0) -> Form:
        """A + diag(level), in place."""
        if np.any(level):
            A[np.diag_indices(len(A))] += level
        return cls.of_operator(_core.dense(blas_layout(A), True), A.diagonal())

    @classmethod
    def of_rows(cls, F: Any, factor: float = 1.0, ridge: Array | None = None) -> Form:
        """F'F factor + diag(ridge), F dense or sparse."""
        op = _core.operator(F, False, None, None, 1.0, factor)
        return cls.of_operator(op, factor * squared_norms(F), ridge)

    @property
    def p(self) -> int:
        return len(self.unit)

    def __add__(self, term: LowRank) -> Form:
        return replace(self, terms=self.terms + term)

    def in_units(self, unit: Array) -> Form:
        return replace(self, unit=self.unit * unit, terms=self.terms.in_units(unit))

    def diagonal(self) -> Array:
        return self.own * self.unit * self.unit + self.terms.diagonal()

    def magnitudes(self) -> Iterator[tuple[Array, Index, Any]]:
        """Of the entries of a matrix without terms, some at a time, with their rows and columns."""
        if self.sparse is not None:
            for x, i, j in entries(self.sparse):
                yield np.abs(x) * self.unit[i] * self.unit[j], i, j
            return
        for part in slices(self.p, self.p, CHUNK):
            S = np.arange(part.start, part.stop)
            yield np.abs(self.rows(S)), S[:, None], slice(None)

    def rows(self, S: Index) -> Array:
        """Those of the variables S, (k, p)."""
        A = self.op.columns(S) if self.op.symmetric_form else rows_of(self.op, S)
        out = A.astype(np.float64)
        if self.ridge is not None:
            out[np.arange(len(S)), S] += self.ridge[S]
        out *= self.unit[S, None]
        out *= self.unit
        return out + self.terms.rows(S) if self.terms else out

    def block(self, S: Index) -> Array:
        """Rows and columns S."""
        A = self.op.submatrix(S) if self.op.symmetric_form else self.op.gram(S)
        out = A.astype(np.float64)
        if self.ridge is not None:
            out[np.diag_indices(len(S))] += self.ridge[S]
        out *= self.unit[S, None]
        out *= self.unit[S]
        out += self.terms.rows(S, S)
        return symmetrized(out)

    def matvec(self, x: Array, S: Index | None = None) -> Array:
        """The product with a vector, or with one that has the entries x on S only."""
        at = slice(None) if S is None else S
        z = self.unit[at] * x
        y = self.op.apply(S, z.astype(self.op.dtype)).astype(np.float64)
        if self.ridge is not None:
            y[at] += self.ridge[at] * z
        y *= self.unit
        return y + self.terms.times(x, S) if self.terms else y
