"""The kernels as C functions, for ctypes, numba and C: `float64.truncate`, `float32.truncate`, `get_include`.

They are those of `_core.pxd`, which is their manual, without the prefix ``spca_``. Arrays are passed as they are, in ctypes,
and as ``a.ctypes`` in numba, which read the types from the prototypes.
"""

from __future__ import annotations

import ctypes
import re
from enum import IntEnum
from pathlib import Path
from typing import Any

import numpy as np

from . import _core

__all__ = ["Kernels", "Status", "float32", "float64", "get_include"]
__dir__ = __all__.copy


class Status(IntEnum):
    """What a kernel returns; where it is negative, there is no result."""

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
    """The type of a pointer, as which an array of one type, or None, is taken."""
    dtype = np.dtype(scalar)

    def from_param(cls: Any, value: Any) -> Any:
        if value is None:
            return cls()
        if not isinstance(value, np.ndarray):
            return value
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


_POINTERS = {(name, constant): _pointer(_SCALARS[name], constant) for name in _SCALARS for constant in (0, 1)}


def _prototype(signature: str) -> Any:
    """The type of a function, from its signature in C."""
    result, arguments = re.fullmatch(r"(\w+) \((.*)\)", signature).groups()  # type: ignore[union-attr]
    types = []
    for argument in arguments.split(", "):
        name, *rest = argument.split()
        plain = _OTHERS.get(argument) or _SCALARS[name]
        types.append(_POINTERS[name, "const" in rest] if rest and argument not in _OTHERS else plain)
    return ctypes.CFUNCTYPE(_SCALARS[result], *types)


class Kernels:
    """The kernels of one precision, as functions of ctypes; `ctypes.cast(function, ctypes.c_void_p)` is its address."""

    def __init__(self, precision: int):
        name_of, pointer = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
        name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
        pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
        for name, capsule in _core.__pyx_capi__.items():
            found = re.fullmatch(rf"(__pyx_fuse_{precision})?spca_(\w+)", name)
            if found:
                signature = name_of(capsule)
                setattr(self, found[2], _prototype(signature.decode())(pointer(capsule, signature)))

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"there is no kernel {name!r}, but {', '.join(vars(self))}")


float32 = Kernels(0)
float64 = Kernels(1)


def get_include() -> str:
    """The folder of `spcacore.h`."""
    folder = Path(__file__).parent / "include"
    if not folder.exists():
        raise FileNotFoundError(f"{folder} is not there: an editable install of spcacore has no header")
    return str(folder)
