"""The kernels as C functions, for ctypes, numba and C, and components of many small matrices by one call.

`float64.truncate` and `float32.truncate` are ``spca_truncate`` of `_core.pxd`, which is their manual, and so
on. Arrays are passed as they are in ctypes, and as ``a.ctypes`` in numba; both read the types from the
prototypes.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable
from enum import IntEnum
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from . import _core
from ._messages import counted
from ._types import AnyArray, Array, Index, Kind
from ._validation import (
    check_bool,
    check_choice,
    default_cardinality,
    integer,
    iteration_limits,
    real_array,
    refuse_not_finite,
)
from .linalg.scaling import divisor

__all__ = ["Kernels", "ManyComponents", "Status", "float32", "float64", "get_include", "sparse_pca_each"]
__dir__: Callable[[], list[str]] = __all__.copy


class Status(IntEnum):
    """What a kernel returns; a negative number means that there is no result."""

    OK = 0
    NOT_CONVERGED = 1
    STOPPED = -1
    ZERO_VECTOR = -2
    NONFINITE = -3
    LAPACK_FAILED = -5
    INVALID = -6


_SCALARS: dict[str, Any] = {
    "int": ctypes.c_int,
    "Py_ssize_t": ctypes.c_ssize_t,
    "float": ctypes.c_float,
    "double": ctypes.c_double,
}
_OTHERS: dict[str, Any] = {"void *": ctypes.c_void_p, "int (*)(void *)": ctypes.c_void_p}


def _pointer(scalar: Any, constant: bool) -> Any:
    """Return the ctypes type of a pointer, which takes an array of one type, or None."""
    dtype = np.dtype(scalar)

    def from_param(cls: Any, value: Any) -> Any:
        if value is None:
            return cls()
        if isinstance(value, cls):
            return value
        if not isinstance(value, np.ndarray):
            raise TypeError(f"an array of {dtype} is needed")
        apart = [stride for stride, length in zip(value.strides, value.shape, strict=True) if length > 1]
        if value.dtype != dtype:
            raise TypeError(f"an array of {dtype} is needed, not one of {value.dtype}")
        if value.size and min(apart, default=dtype.itemsize) != dtype.itemsize:
            raise TypeError("the entries of an array must stand side by side, in rows or in columns")
        if not (constant or value.flags.writeable):
            raise TypeError("an array that is written to is read-only")
        return ctypes.cast(value.ctypes.data, cls)

    name = f"{'const ' if constant else ''}{dtype} *"
    return type(name, (ctypes._Pointer,), {"_type_": scalar, "from_param": classmethod(from_param)})


_POINTERS = {(name, const): _pointer(_SCALARS[name], const) for name in _SCALARS for const in (False, True)}


def _prototype(signature: str) -> Any:
    """Return the type of a function, from its signature in C."""
    result, arguments = re.fullmatch(r"(\w+) \((.*)\)", signature).groups()  # type: ignore[union-attr]
    types = []
    for argument in arguments.split(", "):
        name, *rest = argument.split()
        plain = _OTHERS.get(argument) or _SCALARS[name]
        types.append(_POINTERS[name, "const" in rest] if rest and argument not in _OTHERS else plain)
    return ctypes.CFUNCTYPE(_SCALARS[result], *types)


class Kernels:
    """The kernels of one precision, as functions of ctypes."""

    def __init__(self, precision: int):
        name_of, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
        name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        for name, capsule in sorted(_core.__pyx_capi__.items()):
            found = re.fullmatch(rf"(__pyx_fuse_{precision})?spca_(\w+)", name)
            if found:
                signature = name_of(capsule)
                setattr(self, found[2], _prototype(signature.decode())(pointer(capsule, signature)))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no kernel {name!r}, but {', '.join(vars(self))}")


float32: Kernels = Kernels(0)
float64: Kernels = Kernels(1)


def get_include() -> str:
    """The folder of `spcacore.h`."""
    folder = Path(__file__).parent / "include"
    if not folder.exists():
        raise FileNotFoundError(f"{folder} is not there: an editable install of spcacore has no header")
    return str(folder)


class ManyComponents(NamedTuple):
    """Components of m matrices, from `sparse_pca_each`; of matrix i `n_components[i]`, and zeros behind.

    Attributes
    ----------
    loadings : ndarray of shape (m, p, r)
    explained_variance : ndarray of shape (m, r)
        Additional variances, as in `sparse_pca`.
    total_variance : ndarray of shape (m,)
    mean, scale : ndarray of shape (m, p)
        What was subtracted from the columns of data, and what they were divided by.
    n_components : ndarray of shape (m,), int
    """

    loadings: AnyArray
    explained_variance: AnyArray
    total_variance: Array
    mean: AnyArray
    scale: AnyArray
    n_components: Index


def sparse_pca_each(
    X: ArrayLike, n_components: int, cardinality: int | None = None, *, thorough: bool = True,
    deflation: str = "projection", kind: str = "data", center: bool = True, scale: bool = False,
    max_iter: int = 1000, tol: float = 1e-8,
) -> ManyComponents:  # fmt: skip
    """Sparse principal components of many small matrices: of permutations, sliding windows or sets of genes.

    Matrices are divided among the threads of `limit_threads`. The answer for a matrix has the same bits
    whatever others stand beside it, for any number of threads. It is that of `sparse_pca` but for rounding,
    ties, and warnings.

    Parameters
    ----------
    X : array-like of shape (m, n, p), or (m, p, p) with ``kind="covariance"``
        The covariance matrix of each is formed: it is meant for a few hundred variables.
    n_components : int
        At most p. Where nothing but rounding is left before that, the others are zero.
    cardinality : int, optional
        The number of nonzeros. Default: the square root of the number of variables, rounded up.
    thorough : bool, default True
        Search as `sparse_pca` does by default. False: once, from the variable of largest variance, as with
        ``method=TPower(start="diagonal")``, in a small part of the time.
    deflation : {"projection", "hotelling", "schur"}, default "projection"
    kind, center, scale
        As in `sparse_pca`, but the same for all.
    max_iter : int, default 1000
        Of truncated power iteration.
    tol : float, default 1e-8
        Relative change of the variance at which an iteration ends.

    Returns
    -------
    ManyComponents

    Raises
    ------
    ValueError
        For input that is not finite, or an option out of range. That covariances are symmetric and
        semidefinite is not checked.

    Examples
    --------
    >>> import numpy as np
    >>> from spcacore.kernels import sparse_pca_each
    >>> X = np.random.default_rng(0).standard_normal((1000, 40, 20))  # what is found in noise?
    >>> sparse_pca_each(X, 1, 5).explained_variance.max().round(1)
    np.float64(3.1)
    """
    covariance = check_choice(kind, "kind", Kind) == "covariance"
    a = np.ascontiguousarray(real_array(X, "X", ndim=3, finite=covariance))
    n, p = a.shape[1:]
    if covariance and n != p:
        raise ValueError(
            f"a covariance is square, and X has matrices of {counted(n, 'row')} and {counted(p, 'column')}"
        )
    scale = check_bool(scale, "scale")
    own = None
    if covariance and scale:
        own = divisor(np.sqrt(np.diagonal(a, axis1=1, axis2=2))).astype(a.dtype)
        a = a / own[:, :, None] / own[:, None, :]
    r = integer(n_components, "n_components", 1, p)
    k = default_cardinality(p) if cardinality is None else integer(cardinality, "cardinality", 1, p)
    updates = ("hotelling", "projection", "schur")
    update = updates.index(check_choice(deflation, "deflation", updates))
    V, variance, mean, weight, spread, count, status = _core.components_of_each(
        a,
        covariance,
        check_bool(center, "center"),
        scale and not covariance,
        r,
        k,
        update + 1,
        check_bool(thorough, "thorough"),
        *iteration_limits(max_iter, tol),
    )
    if (status < 0).any():
        refuse_not_finite(a, "X")
        worst = int(status.argmin())
        raise ValueError(
            f"matrix {worst} of X leaves the range of numbers: its status is {Status(status[worst])!r}"
        )
    if own is None:
        own = np.divide(1, weight, where=weight > 0, out=np.ones_like(weight))
    return ManyComponents(V.transpose(0, 2, 1), variance, spread.sum(axis=1), mean, own, count)
