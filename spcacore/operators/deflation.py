"""Deflation: the removal of the components found from A, as low-rank terms beside it."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from .. import _core
from .._limits import FORMED_ORDER, QUOTIENT_NULL
from .._records import record, replaced
from .._types import AnyArray, Array, Index
from ..linalg.orthogonal import orthogonal_part, orthonormal_basis
from ..linalg.scaling import eps_of, with_entries
from ..supports.admissible import Supports
from .gram import largest_submatrix
from .problem import Problem


@record
class LowRank:
    """A term of low rank, L K R', beside a matrix: what deflation adds to it, while the matrix itself stays.

    Let A belong to the problem max x'Ax/x'Bx, or C to max u'Cv/sqrt(u'B_x u v'B_y v). With y = B^(1/2)x the
    first one is the problem of sparse principal components for B^(-1/2) A B^(-1/2), which deflation changes
    as in Mackey (2008). In terms of A, with x'Bx = 1, z = Bx and w = Ax, that is

        Hotelling      A - (x'w) zz'
        projection     (I - zx') A (I - xz') = A - zw' - wz' + (x'w) zz'
        Schur          A - ww'/(x'w)

    C changes in the same way, with B_x u, Cv on the left and B_y v, C'u on the right; the Schur complement
    lowers its rank (Wedderburn 1934). Each of these terms is [z w] K [z w]'.
    """

    left: Array
    middle: Array
    right: Array

    @classmethod
    def none(cls, p: int, q: int | None = None) -> Self:
        """Return the term without columns, for a p x q matrix."""
        return cls(np.zeros((p, 0)), np.zeros((0, 0)), np.zeros((p if q is None else q, 0)))

    @classmethod
    def removal(
        cls, update: str, value: float, left: tuple[Array, Array], right: tuple[Array, Array] | None = None
    ) -> Self:
        """Return what a deflation adds: `value` is x'Ax or u'Cv, and each side has its z and w."""
        K = np.zeros((2, 2))
        if update == "hotelling":
            K[0, 0] = -value
        elif update == "projection":
            K[0, 0], K[0, 1], K[1, 0] = value, -1, -1
        elif abs(value) > 0:
            K[1, 1] = -1 / value
        used = np.flatnonzero(K.any(axis=0))
        L, R = (
            np.stack([side[i] for i in used], axis=1) if len(used) else np.zeros((len(side[0]), 0))
            for side in (left, right or left)
        )
        return cls(L, K[np.ix_(used, used)], R)

    def __bool__(self) -> bool:
        return len(self.middle) > 0

    def __add__(self, other: LowRank) -> LowRank:
        s, t = len(self.middle), len(other.middle)
        K = np.zeros((s + t, s + t))
        K[:s, :s], K[s:, s:] = self.middle, other.middle
        return LowRank(np.hstack([self.left, other.left]), K, np.hstack([self.right, other.right]))

    @property
    def T(self) -> LowRank:
        return LowRank(self.right, self.middle.T, self.left)

    def times(self, V: Array, S: Index | None = None) -> Array:
        """Return the product with vectors V; with S, V has their entries on S, and the others are zero."""
        return self.left @ (self.middle @ ((self.right if S is None else self.right[S]).T @ V))

    def diagonal(self) -> Array:
        return np.einsum("ij,ij->i", self.left @ self.middle, self.right)

    def rows(self, S: Index, columns: Index | slice = slice(None)) -> Array:
        return (self.left[S] @ self.middle) @ self.right[columns].T

    def in_units(self, unit: Array) -> LowRank:
        """Return diag(unit) L K R' diag(unit)."""
        return LowRank(self.left * unit[:, None], self.middle, self.right * unit[:, None])


@record
class Deflation:
    """How a component is removed from A. Code asks the fields of this record, not its name.

    Attributes
    ----------
    name : str
    update : {"hotelling", "projection", "schur"}
        With the direction z: A - zz'Az z', (I - zz')A(I - zz') or A - Azz'A/z'Az. The cases in C go by it.
    orthogonalized : bool
        Whether z is the normalized part of the loading orthogonal to the earlier ones, not the loading.
    quotient : bool
        Whether the next component maximizes x'Ax/x'Bx, B = I - QQ', rather than x'Ax/x'x.
    residual : bool
        Whether data become F - g x', with the g of the solver in the place of F x.
    first_order : bool
        Whether rounding may leave variances of the order of the precision, also for data.
    """

    name: str
    update: str
    orthogonalized: bool = False
    quotient: bool = False
    residual: bool = False
    first_order: bool = True

    @property
    def semidefinite(self) -> bool:
        """Whether a semidefinite matrix stays so.

        Otherwise the deflated matrix is F'F of no data F, so that there is no Gram matrix.
        """
        return self.update != "hotelling"


DEFLATIONS = {
    one.name: one
    for one in (
        Deflation("hotelling", "hotelling"),
        Deflation("projection", "projection", first_order=False),
        Deflation("schur", "schur"),
        Deflation("orthogonalized_hotelling", "hotelling", orthogonalized=True),
        Deflation("orthogonalized_projection", "projection", orthogonalized=True, first_order=False),
        Deflation("orthogonalized_schur", "schur", orthogonalized=True),
        Deflation("generalized", "projection", orthogonalized=True, quotient=True),
        Deflation("naive", "projection", residual=True),
    )
}
PROJECTION = DEFLATIONS["projection"]  # the default


@record
class DeflatedOperator:
    """An operator with the components found so far removed, and all that the search for the next one needs.

    Attributes
    ----------
    problem : Problem
        The problem before any deflation.
    operator : _core.Operator
        A, deflated.
    diagonal : ndarray of shape (p,) or None
        The variances that are left; None where only products with A are known.
    deflation : Deflation
    constraint : None, "orthogonal" or "uncorrelated"
        What the next component must be to the earlier ones.
    basis : tuple of ndarray of shape (p,)
        The columns of Q: an orthonormal basis of what the earlier components span, where the deflation or the
        constraint needs it.
    loadings : tuple of (ndarray, ndarray)
        The nonzeros, as positions and values, of each loading removed.
    matrix : ndarray of shape (p, p) or None
        A itself with the components removed, where it is formed.
    seed : tuple of int
        The seed of what is random in the search.
    hook : callable or None
        Called with the number of iterations; the search ends where it returns true.
    """

    problem: Problem
    operator: _core.Operator
    diagonal: AnyArray | None
    deflation: Deflation
    constraint: str | None
    basis: tuple[AnyArray, ...] = ()
    loadings: tuple[tuple[Index, AnyArray], ...] = ()
    matrix: AnyArray | None = None
    seed: tuple[int, ...] = (0, 0)
    hook: Callable[..., object] | None = None

    @classmethod
    def from_problem(
        cls, problem: Problem, deflation: Deflation = PROJECTION, constraint: str | None = None
    ) -> DeflatedOperator:
        """Return the state of a search before the first component."""
        return cls(problem, problem.operator, problem.diagonal, deflation, constraint)

    def with_problem(self, **changes: object) -> DeflatedOperator:
        """Return the state with some fields of its problem changed."""
        return replaced(self, problem=replaced(self.problem, **changes))

    @property
    def p(self) -> int:
        return self.operator.p

    @property
    def supports(self) -> Supports:
        """The supports that are allowed; the operator has zeros for variables that are excluded."""
        return self.problem.supports

    @property
    def variances(self) -> AnyArray:
        """The diagonal of A, which must be known."""
        assert self.diagonal is not None
        return self.diagonal

    @property
    def quotient(self) -> bool:
        """Whether x'Ax/x'Bx, B = I - QQ', is to be maximized rather than x'Ax/x'x."""
        return self.deflation.quotient and bool(self.basis)

    @property
    def constrained(self) -> bool:
        """Whether Q'x must be zero."""
        return self.constraint is not None and bool(self.basis)

    def orthogonal(self) -> DeflatedOperator:
        """Return the state where the next component has to be orthogonal to the earlier loadings."""
        if self.constraint is not None:
            return self
        basis = tuple(orthonormal_basis(self.dense(*x) for x in self.loadings))
        return replaced(self, constraint="orthogonal", basis=basis)

    def reach(self, k: int) -> int:
        """Return the largest number of nonzeros of Bx for x with k: more than k only where x overlaps with Q.

        A = BAB after deflation. So what bounds x'Ax over unit vectors with that many nonzeros bounds
        x'Ax/x'Bx over vectors with k.
        """
        if not self.quotient:
            return k
        touched = np.any([q != 0 for q in self.basis], axis=0)
        return min(self.operator.p, k + max(int(touched.sum()) - 1, 0))

    def quadratic(self, index: Index, entries: AnyArray) -> float:
        """Return x'Ax, for the x with these nonzeros."""
        x = np.ascontiguousarray(entries, self.operator.dtype)
        return float(x @ self.operator.apply(index, x)[index])

    def objective(self, index: Index, entries: AnyArray) -> float:
        """Return x'Ax of a unit vector, or x'Ax/x'Bx; -inf where the quotient is not defined."""
        x, value = entries.astype(self.operator.dtype), self.quadratic(index, entries)
        if not self.quotient:
            return value
        outside = 1 - sum(float(q[index] @ x) ** 2 for q in self.basis)
        return value / outside if outside > QUOTIENT_NULL.of(self.operator.dtype) else -math.inf

    @property
    def by_loadings(self) -> bool:
        """Whether the loadings themselves have been removed, by projections of A."""
        special = self.deflation.orthogonalized or self.deflation.residual or self.constraint is not None
        return self.deflation.update == "projection" and not special

    def formed(self) -> DeflatedOperator:
        """Return the state with A formed and deflated as a matrix, if A is small and in memory.

        A search then sees a matrix without deflations.
        """
        op = self.operator
        small = op.symmetric_form and op.dense and op.p <= FORMED_ORDER
        if not small or not self.by_loadings or self.matrix is not None:
            return self
        A = self.problem.operator.columns(np.arange(self.p))
        for index, entries in self.loadings:
            _core.deflate_covariance("projection", A, index, entries)
        return self._of_matrix(A)

    def _of_matrix(self, A: AnyArray, **changes: Any) -> DeflatedOperator:
        return replaced(self, operator=_core.dense(A, True), matrix=A, **changes)

    def dense(self, index: Index, entries: AnyArray) -> Array:
        """Return a loading as a vector, without its entries at excluded variables."""
        x = with_entries(self.operator.p, index, entries)
        x[self.supports.excluded] = 0
        return x

    def submatrix(self, index: Index) -> AnyArray:
        """Return A[index, index]."""
        if self.matrix is None:
            return self.operator.submatrix(index)
        return _core.principal_submatrix(self.matrix, np.ascontiguousarray(index, np.intp))

    def deflate(
        self,
        index: Index,
        entries: AnyArray,
        image: AnyArray | None = None,
        noise: Callable[[Index], float] | None = None,
    ) -> DeflatedOperator:
        """Return the state with one more loading removed, which is given by its nonzeros.

        A does not change where the variance of the loading is only noise. For a deflation with `residual`,
        `image` takes the place of F x in F - F x x'. `noise` takes the place of the problem's, and tells the
        variance that is noise.
        """
        op, diagonal, basis, update = self.operator, self.diagonal, self.basis, self.deflation.update
        noise = noise or self.problem.noise
        loadings = (*self.loadings, (index, entries))
        if self.matrix is not None:  # it is deflated itself, by the loading
            A = self.matrix.copy()
            _core.deflate_covariance("projection", A, index, entries)
            return self._of_matrix(
                A, loadings=loadings, diagonal=np.maximum(A.diagonal(), 0, dtype=np.float64)
            )
        after = replaced(self, loadings=loadings)
        # The direction z: the loading, or what it adds to the basis Q
        if self.constraint is not None or self.deflation.orthogonalized:
            if self.constraint == "uncorrelated":
                direction = self.problem.operator.apply(index, np.ascontiguousarray(entries)).astype(
                    np.float64
                )
            elif self.constraint is not None:
                direction = self.dense(index, entries)
            else:
                direction = with_entries(op.p, index, entries)
            q = orthogonal_part(direction, list(basis))
            if q is None:
                return after
            q[np.abs(q) < eps_of(op.dtype) / 4] = 0  # rounding must not make q dense
            basis = (*basis, q)
            index = np.flatnonzero(q)
            entries = q[index].astype(op.dtype)
        # w = A z, and the variance z'Az
        z = np.ascontiguousarray(entries)
        forward = op.forward(index, z) if op.reads_columns and update != "schur" else None
        w = op.apply(index, z) if update == "schur" else _products_on_support(op, index, z, forward)
        on_support = w[index] if update == "schur" else w
        variance = float(z @ on_support)
        if update != "hotelling" and self.constraint is None and not abs(variance) > noise(index):
            return replaced(after, basis=basis)
        if (
            self.deflation.residual
            and not op.symmetric_form
            and (image is not None or self.problem.filled is not None)
        ):
            return replaced(after, **self._residual(index, z, image))
        # The operator and its diagonal
        coefficient = variance
        if update != "hotelling":
            image = op.forward(index, z) if forward is None else forward
            coefficient = math.copysign(1.0, variance) if op.symmetric_form else 1.0
            if update == "schur":  # of unit size, since the inverse of a tiny variance may overflow
                size = math.sqrt(abs(variance)) if op.symmetric_form else np.linalg.norm(image.astype(float))
                image = (image.astype(np.float64) / size).astype(op.dtype)
        if diagonal is not None:
            diagonal = diagonal.copy()
            touched = slice(None) if update == "schur" else index
            sides = z.astype(np.float64), (w if update == "schur" else on_support).astype(np.float64)
            diagonal[touched] += LowRank.removal(update, variance, sides).diagonal()
            if update != "hotelling":
                np.maximum(diagonal, 0, out=diagonal)
        operator = op.deflated(update, index, z, image, coefficient)
        return replaced(after, operator=operator, diagonal=diagonal, basis=basis)

    def _residual(self, index: Index, x: AnyArray, image: AnyArray | None) -> dict[str, Any]:
        """Return operator and diagonal of F - g x', in which missing entries stay zero."""
        op, diagonal = self.operator, self.diagonal
        g = op.forward(index, x) if image is None else np.ascontiguousarray(image, op.dtype)
        diagonal = None if diagonal is None else diagonal.copy()
        if self.problem.filled is not None:
            variances = self.problem.filled.subtract(g, index, x)
            if diagonal is not None:
                diagonal[index] = variances
            return {"diagonal": diagonal}
        if diagonal is not None:
            size = float(g.astype(np.float64) @ g) / max(op.n - 1, 1)
            diagonal[index] += (size * x - 2 * op.backward(g)[index]) * x
            np.maximum(diagonal, 0, out=diagonal)
        return {"operator": op.deflated("projection", index, x, g, 1.0), "diagonal": diagonal}


def _products_on_support(op: _core.Operator, index: Index, x: AnyArray, forward: AnyArray | None) -> AnyArray:
    """Return (A x) on the support of x, without a pass over X where the support is small.

    `forward` is F x, if it is known.
    """
    if forward is not None:
        return op.apply_at(index, x, index, forward)
    if not op.symmetric_form and len(index) <= largest_submatrix(op):
        return op.submatrix(index) @ x
    return op.apply(index, x)[index]
