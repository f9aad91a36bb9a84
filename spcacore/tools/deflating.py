"""Removing a component in place from the caller's matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._labels import columns_of, symmetric
from .._limits import SYMMETRY
from .._messages import counted
from .._types import AnyArray, Array, Deflation, Index, Kind, MatrixLike, Names
from .._validation import (
    check_bool,
    check_choice,
    real_array,
    refuse_not_finite,
)
from ..linalg.orthogonal import orthogonal_part, orthonormal_basis, unit
from ..linalg.scaling import below_range
from ..operators.deflation import DEFLATIONS
from ..operators.dense import blas_layout
from .thresholding import output_array


def deflate(
    A: MatrixLike,
    x: ArrayLike,
    method: Deflation = "projection",
    *,
    earlier: ArrayLike | None = None,
    kind: Kind = "covariance",
    center: bool = True,
    overwrite: bool = False,
) -> AnyArray:
    """Remove the component `x` from a covariance matrix or from data.

    ============================  =====================================  ===========================
    method                        covariance                             data
    ============================  =====================================  ===========================
    "hotelling"                   `A - x x'Ax x'`                        none (not a Gram matrix)
    "projection"                  `(I - xx') A (I - xx')`                `X (I - xx')`
    "schur"                       `A - A xx'A / x'Ax`                    `(I - uu') X`, u ~ `X x`
    "orthogonalized_hotelling"    Hotelling with q                       none
    "orthogonalized_projection"   projection with q                      `X (I - qq')`
    "orthogonalized_schur"        Schur complement with q                `(I - uu') X`, u ~ `X q`
    "generalized"                 projection with q, where x solved      `X (I - qq')`
                                  `max x'Ax, x'Bx = 1, B = I - QQ'`
    "naive"                       of the residual of data                `X - (X x) x'`
    ============================  =====================================  ===========================

    with `q` the normalized part of x orthogonal to the `earlier` loadings, and Q an orthonormal basis of
    these. Hotelling touches a k x k block, projection k rows and columns, where k is the number of nonzeros
    of x (or q). Where Schur complements have removed the earlier loadings too, x and q give the same
    complement. The residual `X - d u x'` with `d u = X x` is the projection; the two differ where a solver
    makes u sparse or leaves out missing entries, see `pmd`.

    Parameters
    ----------
    A : array-like of shape (p, p), or (n, p) with ``kind="data"``
        A symmetric matrix, or data.
    x : array-like of shape (p,)
        The loading; normalized here.
    method : str, default "projection"
    earlier : array-like of shape (p, t), optional
        Loadings that were removed before, for the orthogonalized and generalized methods only.
    kind : {"covariance", "data"}, default "covariance"
    center : bool, default True
        For data only: take the covariance about the column means. It matters only for the Schur complements.
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
    deflation = DEFLATIONS[check_choice(method, "method", DEFLATIONS)]
    update = deflation.update
    covariance = check_choice(kind, "kind", ("covariance", "data")) == "covariance"
    center, overwrite = check_bool(center, "center"), check_bool(overwrite, "overwrite")
    if not (covariance or deflation.semidefinite):
        raise ValueError(f"{method!r} deflation of data does not exist: the result is no Gram matrix")
    if earlier is not None and not deflation.orthogonalized:
        raise ValueError(f"earlier is for the orthogonalized methods, not for {method!r}")
    names = columns_of(A)
    a = real_array(symmetric(A, None, "A") if covariance else A, "A", ndim=2, finite=False)
    p = a.shape[1]
    if covariance and a.shape[0] != p:
        raise ValueError(f"a covariance must be square, not of shape {a.shape}")
    v = real_array(x, "x", ndim=1, labels=names)
    if v.size != p:
        raise ValueError(f"x has {counted(v.size, 'entry')} for {counted(p, 'variable')}")
    index = np.flatnonzero(v != 0)  # several times faster than on floats
    value = unit(v[index].astype(np.float64))
    if value is None:
        raise ValueError("x is the zero vector")
    plain = blas_layout(a)
    if deflation.orthogonalized:
        direction = np.zeros(p)
        direction[index] = value
        q = orthogonal_part(direction, _basis(earlier, p, names))
        index = np.flatnonzero(q) if q is not None else index[:0]
        value = direction[index] if q is None else q[index]
    _check(plain, update, covariance, index if overwrite and update != "schur" else None)
    out = output_array(A, plain, "A", overwrite)
    if len(index) == 0:
        return out
    value = value.astype(a.dtype)
    if covariance:
        done = _core.deflate_covariance(update, out, index, value)
    else:
        with below_range():
            mean = (
                out.mean(axis=0, dtype=np.float64).astype(a.dtype) if center and update == "schur" else None
            )
        done = _core.deflate_data(update, out, index, value, mean)
    if not done:
        refuse_not_finite(out[:, index], "A, where x is not zero,")
        raise ValueError("A is too large: A x is not finite")
    return out


def _basis(earlier: Any, p: int, names: Names) -> list[Array]:
    """An orthonormal basis of the span of the earlier loadings."""
    if earlier is None:
        return []
    E = real_array(earlier, "earlier", ndim=2, shape=(p, "t"), empty=True, labels=names)
    return orthonormal_basis(E.T.astype(np.float64))


def _check(a: AnyArray, update: str, covariance: bool, touched: Index | None) -> None:
    """Refuse what is not finite or not symmetric, in the whole matrix or where it will be touched."""
    if not covariance:
        if touched is None:  # else the kernel sees to it
            refuse_not_finite(a, "A")
        return
    if touched is None or len(touched) > len(a) // 8:
        largest, asymmetry, _ = _core.symmetry(a)
        if not np.isfinite(largest):
            refuse_not_finite(a, "A")
    else:
        part = a[np.ix_(touched, touched)] if update == "hotelling" else a[:, touched]
        refuse_not_finite(part, "A, where x is not zero,")
        across = part if update == "hotelling" else a[touched]
        largest, asymmetry = np.abs(part).max(initial=0), np.abs(part - across.T).max(initial=0)
    if asymmetry > largest * SYMMETRY.of(a.dtype):
        raise ValueError(f"a covariance must be symmetric; A differs from its transpose by {asymmetry:.3g}")
