"""Steps of iterations, for users who write their own: truncation, soft thresholds, deflation in place."""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._labels import columns_of, symmetric
from .._limits import CHUNK, SYMMETRY
from .._messages import counted
from .._records import filled
from .._types import AnyArray, Array, Deflation, Index, Kind, MatrixLike, Names
from .._validation import (
    check_bool,
    check_choice,
    integer,
    number,
    real_array,
    refuse_not_finite,
)
from ..linalg.eigen import interruptible
from ..linalg.orthogonal import orthogonal_part, orthonormal_basis, unit
from ..linalg.scaling import below_range, eps_of, with_entries
from ..operators.deflation import DEFLATIONS
from ..operators.dense import blas_layout

_filled = filled(
    {
        "vector": "a : (p,) array_like\n"
        "    A vector of finite real numbers. float32 stays float32; other dtypes become float64.",
        "overwrite": "overwrite : bool, default False\n"
        "    Work in the array given, which must be a contiguous, writable float32 or float64 array.",
        "raises": "Raises\n------\nValueError, TypeError\n    As `truncate`, of all arguments.",
    }
)


@_filled
def truncate(x: ArrayLike, k: int, *, overwrite: bool = False) -> AnyArray:
    """Keep the k entries of largest magnitude and set the others to zero.

    Ties go to the lower index.

    Parameters
    ----------
    x : (p,) array_like
        A vector of finite real numbers. float32 stays float32; other dtypes become float64.
    k : int
        How many entries to keep, 0 to p.
    {overwrite}

    Returns
    -------
    (p,) ndarray
        The truncated vector; `x` itself when `overwrite` is true.

    Raises
    ------
    ValueError
        If `x` is empty, not one-dimensional or not finite, `k` is out of range, or `overwrite` is requested
        for an array that cannot be written to.
    TypeError
        If `x` does not hold real numbers, or `k` is not an integer.

    References
    ----------
    Yuan, X.-T. & Zhang, T. (2013). Truncated power method for sparse eigenvalue problems. Journal of
    Machine Learning Research 14, 899-925.

    Examples
    --------
    >>> import spcacore
    >>> spcacore.truncate([3.0, -5.0, 1.0, 3.0], 2)
    array([ 3., -5.,  0.,  0.])
    """
    a = real_array(x, "x", ndim=1)
    k = integer(k, "k", 0, a.size)
    out = output_array(x, a, "x", overwrite, "C")
    _core.truncate(out, k)
    return out


@_filled
def soft_threshold(a: ArrayLike, level: float, *, overwrite: bool = False) -> AnyArray:
    """Shrink every entry towards zero by `level`: sign(a) max(abs(a) - level, 0).

    Parameters
    ----------
    {vector}
    level : float
        By how much to shrink; finite, at least 0. It is rounded to the precision of `a`.
    {overwrite}

    Returns
    -------
    (p,) ndarray
        The shrunk vector; `a` itself when `overwrite` is true.

    {raises}

    References
    ----------
    Donoho, D. L. & Johnstone, I. M. (1994). Ideal spatial adaptation by wavelet shrinkage. Biometrika
    81(3), 425-455.

    Examples
    --------
    >>> import spcacore
    >>> spcacore.soft_threshold([3.0, -1.5, 0.5], 1.0)
    array([ 2. , -0.5,  0. ])
    """
    source = np.ascontiguousarray(real_array(a, "a", ndim=1))
    level = number(level, "level", 0.0, sys.float_info.max)
    out = _output(a, source, overwrite)
    _core.soft_threshold(source, min(level, float(np.finfo(source.dtype).max)), out)
    return out


@_filled
def l1_threshold(
    a: ArrayLike, bound: float, *, nonnegative: bool = False, overwrite: bool = False
) -> tuple[AnyArray, float]:
    """Maximize w'a subject to ``||w||_2 <= 1`` and ``||w||_1 <= bound``.

    The solution is the soft threshold of `a` at some level, scaled to unit length; the level is 0 when
    the bound on the l1 norm does not bind. It is found exactly, by a search over the magnitudes of
    `a`, in time proportional to p.

    Parameters
    ----------
    {vector}
    bound : float
        The bound on the l1 norm, 1 to sqrt(p).
    nonnegative : bool, default False
        Also require ``w >= 0``: `a` is replaced by its positive part.
    {overwrite}

    Returns
    -------
    w : (p,) ndarray
        The maximizer; `a` itself when `overwrite` is true. Zero if `a` (or its positive part) is zero.
    level : float
        ``w = soft_threshold(a, level)`` up to scale and rounding. An exception: when m entries tie for the
        largest magnitude and ``bound < sqrt(m)``, no level is feasible. The optimum is then not unique. The
        function returns one of unit length, whose first tied entry is the largest and whose other tied
        entries are equal; `level` is the largest magnitude.

    {raises}

    References
    ----------
    Witten, D. M., Tibshirani, R. & Hastie, T. (2009). A penalized matrix decomposition, with
    applications to sparse principal components and canonical correlation analysis. Biostatistics
    10(3), 515-534, lemma 2.2.

    Examples
    --------
    >>> import spcacore
    >>> w, level = spcacore.l1_threshold([4.0, -3.0, 0.0], 1.2)
    >>> w.round(4)
    array([ 0.9742, -0.2258,  0.    ])
    >>> round(level, 4)
    2.6982
    """
    nonnegative = check_bool(nonnegative, "nonnegative")
    # The kernel meets every NaN and infinity by itself.
    source = np.ascontiguousarray(real_array(a, "a", ndim=1, finite=False))
    root = math.sqrt(source.size)
    rounding = 4 * eps_of(source.dtype)
    bound = min(number(bound, "bound", 1.0, root * (1 + rounding)), root)
    out = _output(a, source, overwrite)
    level = _core.l1_threshold(source, bound, 2 if nonnegative else 0, out)
    if level is None:
        refuse_not_finite(source, "a")
    assert level is not None
    return out, level


def output_array(
    x: Any, a: AnyArray, name: str, overwrite: bool, layout: Literal["C", "F", "K"] = "K"
) -> AnyArray:
    """Return the array that a kernel writes to: a copy of `a` or, to overwrite, the caller's own `x`."""
    if not check_bool(overwrite, "overwrite"):
        copied = partial(a.copy, layout)
        return copied() if a.size <= CHUNK else interruptible(copied)  # type: ignore[no-any-return]
    if a is not x and not (isinstance(x, np.ndarray) and a.base is x):
        raise ValueError(f"overwrite=True needs {name} to be an aligned float32 or float64 ndarray")
    if not a.flags.writeable:
        raise ValueError(f"overwrite=True needs {name} to be writable")
    if not (a.flags.c_contiguous or (a.flags.f_contiguous and layout != "C")):
        raise ValueError(f"overwrite=True needs {name} to be contiguous")
    return a


def _output(x: Any, a: AnyArray, overwrite: bool) -> AnyArray:
    """Return the array that a kernel writes to, which reads `a` and may write over it."""
    return output_array(x, a, "a", True, "C") if check_bool(overwrite, "overwrite") else np.empty_like(a)


# ---- deflation ----------------------------------------------------------------------------------------


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
    # Options and arrays
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
    # The direction that is removed
    plain = blas_layout(a)
    if deflation.orthogonalized:
        direction = with_entries(p, index, value)
        q = orthogonal_part(direction, _basis(earlier, p, names))
        index = np.flatnonzero(q) if q is not None else index[:0]
        value = direction[index] if q is None else q[index]
    # The matrix without this direction
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
    """Return an orthonormal basis of the span of the earlier loadings."""
    if earlier is None:
        return []
    E = real_array(earlier, "earlier", ndim=2, shape=(p, "t"), empty=True, labels=names)
    return orthonormal_basis(E.T.astype(np.float64))


def _check(a: AnyArray, update: str, covariance: bool, touched: Index | None) -> None:
    """Raise ValueError if A is not finite or symmetric: as a whole, or where deflation changes it."""
    if not covariance:
        if touched is None:  # else the kernel checks
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
