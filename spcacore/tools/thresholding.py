"""Truncation to k entries, the soft threshold, and the soft threshold at a bound on the l1 norm."""

from __future__ import annotations

import math
import sys
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._docstrings import filled
from .._limits import CHUNK
from .._types import AnyArray
from .._validation import check_bool, integer, number, real_array, refuse_not_finite
from ..linalg.eigen import interruptible
from ..linalg.scaling import eps_of

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
    """The array a kernel may write to: a copy of `a`, or with overwrite the caller's own `x`."""
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
    """Where a kernel that reads `a` and may write over it writes to."""
    return output_array(x, a, "a", True, "C") if check_bool(overwrite, "overwrite") else np.empty_like(a)
