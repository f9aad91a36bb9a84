"""Removing the components found, implicitly, inside the solvers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..linalg.orthogonal import orthogonal_part
from .missing import MissingData
from .problem import Problem

METHODS = (
    "hotelling", "projection", "schur", "orthogonalized_hotelling", "orthogonalized_projection",
    "generalized", "naive",
)  # fmt: skip


def orthogonalizes(method: str) -> bool:
    """Whether q, not x, is removed."""
    return method == "generalized" or method.startswith("orthogonalized_")


def matrix_update(method: str) -> str:
    """The update of the matrix that a method makes: Hotelling, projection or Schur."""
    return "projection" if method in ("generalized", "naive") else method.removeprefix("orthogonalized_")


@dataclass(frozen=True, eq=False, repr=False)
class DeflatedOperator:
    """An operator with the components found so far removed.

    Attributes
    ----------
    operator : _core.Operator
    diagonal : ndarray of shape (p,) or None
    method : str
        The deflation.
    constraint : None, "orthogonal" or "uncorrelated"
    basis : tuple of ndarray of shape (p,)
        Orthonormal, of what the earlier components span, where the method or the constraint needs it: Q.
    original : _core.Operator
        Before any deflation.
    loadings : tuple of (ndarray, ndarray)
        The nonzeros, as positions and values, of each loading removed.
    filled : Filled or None
        Where entries of the data are missing.
    """

    operator: _core.Operator
    diagonal: NDArray[Any] | None
    method: str
    constraint: str | None
    basis: tuple[NDArray[Any], ...]
    original: _core.Operator
    loadings: tuple[tuple[NDArray[np.intp], NDArray[Any]], ...] = ()
    filled: MissingData | None = None

    @classmethod
    def nothing(
        cls, problem: Problem, method: str = "projection", constraint: str | None = None
    ) -> DeflatedOperator:
        """Before the first component."""
        return cls(
            problem.operator, problem.diagonal, method, constraint, (), problem.operator, (), problem.filled
        )

    @property
    def quotient(self) -> bool:
        """Whether x'Ax/x'Bx, B = I - QQ', is to be maximized rather than x'Ax/x'x."""
        return self.method == "generalized" and bool(self.basis)

    @property
    def constrained(self) -> bool:
        """Whether Q'x must be zero."""
        return self.constraint is not None and bool(self.basis)

    def without(
        self,
        index: NDArray[np.intp],
        value: NDArray[Any],
        noise: Callable[[NDArray[np.intp]], float],
        image: NDArray[Any] | None = None,
    ) -> DeflatedOperator:
        """Remove one more loading, by its nonzeros; nothing changes where its variance is only noise.

        `image` is what takes the place of F x in the residual F - F x x' of data ("naive").
        """
        op, diagonal, basis = self.operator, self.diagonal, self.basis
        after = replace(self, loadings=(*self.loadings, (index, value)))
        step = matrix_update(self.method)
        if self.constraint is not None or orthogonalizes(self.method):
            if self.constraint == "uncorrelated":
                direction = self.original.apply(index, np.ascontiguousarray(value)).astype(np.float64)
            else:
                direction = np.zeros(op.p)
                direction[index] = value
            q = orthogonal_part(direction, list(basis))
            if q is None:
                return after
            q[np.abs(q) < np.finfo(op.dtype).eps / 4] = 0  # rounding must not make q dense
            basis = (*basis, q)
            index = np.flatnonzero(q)
            value = q[index].astype(op.dtype)
        value = np.ascontiguousarray(value)
        w = op.apply(index, value) if step == "schur" else _products_on_support(op, index, value)
        on_support = w[index] if len(w) == op.p else w
        variance = float(value @ on_support)
        if step != "hotelling" and self.constraint is None and not abs(variance) > noise(index):
            return replace(after, basis=basis)
        if self.method == "naive" and not op.covariance and (image is not None or self.filled is not None):
            return replace(after, **self._residual(index, value, image))
        amount = variance
        if step != "hotelling":
            image = op.image(index, value)
            amount = math.copysign(1.0, variance) if op.covariance else 1.0
            if step == "schur":  # of unit size, since the inverse of a tiny variance may overflow
                size = math.sqrt(abs(variance)) if op.covariance else np.linalg.norm(image.astype(float))
                image = (image.astype(np.float64) / size).astype(op.dtype)
        if diagonal is not None:
            diagonal = diagonal.copy()
            if step == "schur":
                diagonal -= w.astype(np.float64) ** 2 / variance
            elif step == "projection":
                diagonal[index] -= (2 * on_support - variance * value) * value
            else:
                diagonal[index] -= variance * value**2
            if step != "hotelling":
                np.maximum(diagonal, 0, out=diagonal)
        return replace(
            after, operator=op.deflated(step, index, value, image, amount), diagonal=diagonal, basis=basis
        )

    def _residual(
        self, index: NDArray[np.intp], value: NDArray[Any], image: NDArray[Any] | None
    ) -> dict[str, Any]:
        """Operator and diagonal of F - g x', without the entries that are missing."""
        op, diagonal = self.operator, self.diagonal
        g = op.image(index, value) if image is None else np.ascontiguousarray(image, op.dtype)
        diagonal = None if diagonal is None else diagonal.copy()
        if self.filled is not None:
            variances = self.filled.subtract(g, index, value)
            if diagonal is not None:
                diagonal[index] = variances
            return {"diagonal": diagonal}
        if diagonal is not None:
            size = float(g.astype(np.float64) @ g) / max(op.n - 1, 1)
            diagonal[index] += (size * value - 2 * op.apply_transposed(g)[index]) * value
            np.maximum(diagonal, 0, out=diagonal)
        return {"operator": op.deflated("projection", index, value, g, 1.0), "diagonal": diagonal}


def _products_on_support(op: _core.Operator, index: NDArray[np.intp], value: NDArray[Any]) -> NDArray[Any]:
    """(A x) on the support of x, without a pass over X where that is small."""
    from .submatrix import largest_submatrix

    if not op.covariance and len(index) <= largest_submatrix(op):
        return op.submatrix(index) @ value
    return op.apply(index, value)[index]
