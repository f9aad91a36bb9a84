"""Removing a found component: in place on the caller's matrix, or implicitly inside the solvers."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import _core
from ._input import choice, flag, output_array, raise_not_finite, real_array, refuse_not_finite
from ._messages import counted
from ._operator import Filled, Problem, strided

METHODS = (
    "hotelling", "projection", "schur", "orthogonalized_hotelling", "orthogonalized_projection",
    "generalized", "naive",
)  # fmt: skip


def deflate(
    A: Any,
    x: Any,
    method: str = "projection",
    *,
    kind: str = "covariance",
    earlier: Any = None,
    center: bool = True,
    overwrite: bool = False,
) -> NDArray[Any]:
    """Remove the component `x` from a covariance matrix or from data.

    ============================  =====================================  ===========================
    method                        covariance                             data
    ============================  =====================================  ===========================
    "hotelling"                   `A - x x'Ax x'`                        none (not a Gram matrix)
    "projection"                  `(I - xx') A (I - xx')`                `X (I - xx')`
    "schur"                       `A - A xx'A / x'Ax`                    `(I - uu') X`, u ~ `X x`
    "orthogonalized_hotelling"    Hotelling with q                       none
    "orthogonalized_projection"   projection with q                      `X (I - qq')`
    "generalized"                 the same, where x solved               `X (I - qq')`
                                  `max x'Ax, x'Bx = 1, B = I - QQ'`
    "naive"                       of the residual of data                `X - (X x) x'`
    ============================  =====================================  ===========================

    with `q` the normalized part of x orthogonal to the `earlier` loadings, and Q an orthonormal basis of
    these. Hotelling touches a k x k block, projection k rows and columns, where k is the number of
    nonzeros of x (or q). The residual `X - d u x'` with `d u = X x` is the projection; the two differ
    where a solver makes u sparse or leaves out missing entries, see `pmd`.

    Parameters
    ----------
    A : array-like of shape (p, p), or (n, p) with ``kind="data"``
        A symmetric matrix, or data.
    x : array-like of shape (p,)
        The loading; normalized here.
    method : str, default "projection"
    kind : {"covariance", "data"}, default "covariance"
    earlier : array-like of shape (p, t), optional
        Loadings already removed, for the orthogonalized and generalized methods only.
    center : bool, default True
        Data only: take the covariance about the column means. It matters for "schur" alone.
    overwrite : bool, default False
        Work in place; A must then be a writable contiguous float32 or float64 array, and is returned.
        Hotelling and projection then read, and check, only what the support of x reaches.

    Returns
    -------
    ndarray of the shape and dtype of A
        Unchanged where nothing is left to remove: x in the span of the earlier loadings, or
        `x'Ax = 0` in the Schur complement.

    Raises
    ------
    ValueError
        For an asymmetric matrix, a zero or non-finite x, a method without a data form, or `earlier`
        with a method that does not use it.
    TypeError
        For input that is not real numbers.

    References
    ----------
    L. Mackey (2008). Deflation methods for sparse PCA. Advances in Neural Information Processing
    Systems 21, sections 2 and 3.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> A = np.array([[2.0, 1.0], [1.0, 1.0]])
    >>> spcacore.deflate(A, [1.0, 0.0])
    array([[0., 0.],
           [0., 1.]])
    >>> spcacore.deflate(A, [1.0, 0.0], "hotelling")  # no longer positive semidefinite
    array([[0., 1.],
           [1., 1.]])
    """
    choice(method, "method", METHODS)
    covariance = choice(kind, "kind", ("covariance", "data")) == "covariance"
    center, overwrite = flag(center, "center"), flag(overwrite, "overwrite")
    orthogonalized = _orthogonalizes(method)
    step = _step(method)
    if step == "hotelling" and not covariance:
        raise ValueError(f"{method!r} deflation of data does not exist: the result is no Gram matrix")
    if earlier is not None and not orthogonalized:
        raise ValueError(f"earlier goes with the orthogonalized methods, not with {method!r}")
    a = real_array(A, "A", ndim=2, finite=False)
    p = a.shape[1]
    if covariance and a.shape[0] != p:
        raise ValueError(f"a covariance must be square, not of shape {a.shape}")
    v = real_array(x, "x", ndim=1, finite=False)
    if v.size != p:
        raise ValueError(f"x has {counted(v.size, 'entry')} for {counted(p, 'variable')}")
    index = np.flatnonzero(v != 0)  # several times faster than on floats
    if not np.isfinite(v[index]).all():
        raise_not_finite(v, "x")
    value = unit(v[index].astype(np.float64)) if len(index) else None
    if value is None:
        raise ValueError("x is the zero vector")
    plain = strided(a)
    if orthogonalized:
        direction = np.zeros(p)
        direction[index] = value
        q = orthogonal_part(direction, _basis(earlier, p))
        index = np.flatnonzero(q) if q is not None else index[:0]
        value = direction[index] if q is None else q[index]
    _check(plain, step, covariance, index if overwrite and step != "schur" else None)
    out = output_array(A, plain, "A", overwrite)
    if len(index) == 0:
        return out
    value = value.astype(a.dtype)
    if covariance:
        done = _core.deflate_covariance(step, out, index, value)
    else:
        with np.errstate(under="ignore"):
            mean = out.mean(axis=0, dtype=np.float64).astype(a.dtype) if center and step == "schur" else None
        done = _core.deflate_data(step, out, index, value, mean)
    if not done:
        refuse_not_finite(out[:, index], "A, where x is not zero,")
        raise ValueError("A is too large: A x is not finite")
    return out


def _orthogonalizes(method: str) -> bool:
    """Whether q, not x, is removed."""
    return method == "generalized" or method.startswith("orthogonalized_")


def _step(method: str) -> str:
    """The update of the matrix that a method makes: Hotelling, projection or Schur."""
    return "projection" if method in ("generalized", "naive") else method.removeprefix("orthogonalized_")


def _basis(earlier: Any, p: int) -> list[NDArray[np.float64]]:
    """An orthonormal basis of the span of the earlier loadings."""
    basis: list[NDArray[np.float64]] = []
    if earlier is None:
        return basis
    E = real_array(earlier, "earlier", ndim=2)
    if E.shape[0] != p:
        raise ValueError(f"earlier has shape {E.shape} where ({p}, t) is needed")
    for column in E.T.astype(np.float64):
        q = orthogonal_part(column, basis)
        if q is not None:
            basis.append(q)
    return basis


def _check(a: NDArray[Any], step: str, covariance: bool, touched: NDArray[np.intp] | None) -> None:
    """Refuse what is not finite or not symmetric, in the whole matrix or where it will be touched."""
    if not covariance:
        if touched is None:  # else the kernel sees to it
            refuse_not_finite(a, "A")
        return
    if touched is None or len(touched) > len(a) // 8:
        largest, asymmetry, _ = _core.symmetry(a)
        if not np.isfinite(largest):
            raise_not_finite(a, "A")
    else:
        part = a[np.ix_(touched, touched)] if step == "hotelling" else a[:, touched]
        refuse_not_finite(part, "A, where x is not zero,")
        across = part if step == "hotelling" else a[touched]
        largest, asymmetry = np.abs(part).max(initial=0), np.abs(part - across.T).max(initial=0)
    if asymmetry > largest * (1e-8 if a.dtype == np.float64 else 1e-5):
        raise ValueError(f"a covariance must be symmetric; A differs from its transpose by {asymmetry:.3g}")


def unit(x: NDArray[Any]) -> NDArray[Any] | None:
    """x over its norm, at any scale; None for the zero vector."""
    largest = np.abs(x).max(initial=0)
    if largest == 0:
        return None
    x = x / largest
    return x / np.linalg.norm(x)


def orthogonal_part(x: NDArray[Any], basis: list[NDArray[Any]]) -> NDArray[Any] | None:
    """The normalized part of x orthogonal to an orthonormal basis; None if that is only rounding."""
    q = unit(x)
    if q is None:
        return None
    for _ in range(2):
        for b in basis:
            q = q - b * (b @ q)
        norm = np.linalg.norm(q)
        if norm < 1e-7:
            return None
        q = q / norm
    return q


# ---- implicit ---------------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False, repr=False)
class Deflated:
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
    filled: Filled | None = None

    @classmethod
    def nothing(cls, problem: Problem, method: str = "projection", constraint: str | None = None) -> Deflated:
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
    ) -> Deflated:
        """Remove one more loading, by its nonzeros; nothing changes where its variance is only noise.

        `image` is what takes the place of F x in the residual F - F x x' of data ("naive").
        """
        op, diagonal, basis = self.operator, self.diagonal, self.basis
        after = replace(self, loadings=(*self.loadings, (index, value)))
        step = _step(self.method)
        if self.constraint is not None or _orthogonalizes(self.method):
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
    from ._search import largest_submatrix

    if not op.covariance and len(index) <= largest_submatrix(op):
        return op.submatrix(index) @ value
    return op.apply(index, value)[index]
