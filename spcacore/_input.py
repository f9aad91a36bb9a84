"""Validation: whatever the caller has becomes an aligned float32 or float64 array, or a clear error."""

from __future__ import annotations

import math
import numbers
import operator
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

_NUMBERS = (int, float, np.floating, np.integer)
_NO_NUMBERS = (complex, np.complexfloating, np.ndarray, np.datetime64, np.timedelta64)
LARGEST = sys.maxsize


# scipy.sparse takes as long to import as all of this package, and before that X is neither of the two.


def is_sparse(x: Any) -> bool:
    module = sys.modules.get("scipy.sparse")
    return module is not None and bool(module.issparse(x))


def is_operator(x: Any) -> bool:
    """Whether x is a scipy `LinearOperator`."""
    module = sys.modules.get("scipy.sparse.linalg")
    return module is not None and isinstance(x, module.LinearOperator)


def is_row_blocks(x: Any) -> bool:
    """Whether x is read by blocks of rows: made by `row_blocks`, or a dask collection."""
    if isinstance(x, np.ndarray) or not (hasattr(x, "__row_blocks__") or hasattr(x, "__dask_graph__")):
        return False
    return hasattr(x, "__row_blocks__") or x.__dask_graph__() is not None


def real_array(
    x: Any, name: str, *, ndim: int | tuple[int, ...], finite: bool = True, empty: bool = False
) -> NDArray[Any]:
    """Return `x` as an aligned native float array, by reference wherever the dtype allows it.

    float32 and float64 stay; float16 becomes float32; every other real dtype becomes float64.
    """
    rows = x if isinstance(x, (list, tuple)) else ()
    if isinstance(x, np.ma.MaskedArray) or any(isinstance(row, np.ma.MaskedArray) for row in rows):
        raise TypeError(
            f"{name} is a masked array, whose mask would be lost; fill or drop the masked entries"
        )
    if hasattr(x, "__dlpack_device__") and not isinstance(x, np.ndarray) and x.__dlpack_device__()[0] != 1:
        raise TypeError(f"{name} lies on a device; move it to the CPU first")
    for is_one, kind, needed in (
        (is_sparse, "a sparse matrix", "a dense array"),
        (is_row_blocks, "in blocks of rows", "an array in memory"),
        (is_operator, "a LinearOperator, which offers only products,", "an array"),
    ):
        if is_one(x):
            raise TypeError(f"{name} is {kind} where {needed} is needed")
    try:
        a = np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name} is not a rectangular array of numbers: {error}") from None
    if a.dtype == object:
        no_numbers = f"{name} holds objects that are not numbers"
        if not all(map(_may_be_number, a.flat)):
            raise TypeError(no_numbers + _in_which_columns(x, a))
        try:
            a = a.astype(np.float64)
        except OverflowError:
            raise ValueError(f"{name} has integers beyond the number range of float64") from None
        except (TypeError, ValueError):
            raise TypeError(no_numbers) from None
    if a.dtype.kind not in "fiub":
        raise TypeError(f"{name} has dtype {a.dtype}; real numbers are needed")
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    if a.ndim not in allowed:
        needed = " or ".join(map(str, allowed)) + " dimension" + "s" * (allowed != (1,))
        raise ValueError(f"{name} must have {needed}, not shape {a.shape}")
    if a.size == 0 and not empty:
        raise ValueError(f"{name} is empty: shape {a.shape}")
    with np.errstate(over="ignore", under="ignore"):  # of long doubles
        a = np.require(a, float_type(a.dtype), ["A"])
    if finite:
        refuse_not_finite(a, name)
    return a


def _may_be_number(entry: Any) -> bool:
    return (isinstance(entry, _NUMBERS) or hasattr(entry, "__float__")) and not isinstance(entry, _NO_NUMBERS)


def _in_which_columns(x: Any, a: NDArray[Any]) -> str:
    """The columns of a dataframe that hold something other than numbers, for a message."""
    names = column_names(x)
    if names is None or a.ndim != 2:
        return ""
    bad = [repr(n) for n, column in zip(names, a.T, strict=True) if not all(map(_may_be_number, column))]
    return f": column{'s' * (len(bad) != 1)} {', '.join(bad[:5])}{', ...' * (len(bad) > 5)}" if bad else ""


def column_names(X: Any) -> tuple[str, ...] | None:
    """The column names of any dataframe, as strings."""
    columns = getattr(X, "column_names", None)  # of pyarrow, whose `columns` are the data
    if columns is None:
        columns = getattr(X, "columns", None)
    if columns is None or isinstance(X, np.ndarray) or callable(columns):
        return None
    return tuple(str(name) for name in columns)


def float_type(dtype: np.dtype) -> np.dtype:
    """What numbers of this dtype are computed in, whatever their byte order."""
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64)


def refuse_not_finite(a: NDArray[Any], name: str) -> None:
    """Raise if an entry is NaN or infinite; some rows at a time, so that large arrays need no mask."""
    step = max(1, (1 << 22) // max(1, a[0].size)) if len(a) else 1
    if not all(np.isfinite(a[start : start + step]).all() for start in range(0, len(a), step)):
        raise_not_finite(a, name)


def raise_not_finite(a: NDArray[Any], name: str) -> None:
    """Say how many entries are not finite, and where the first is."""
    count, first = 0, None
    for start in range(0, len(a), step := max(1, (1 << 22) // max(1, a[0].size))):
        bad = np.argwhere(~np.isfinite(a[start : start + step]))
        if len(bad) and first is None:
            first = (int(bad[0][0]) + start, *map(int, bad[0][1:]))
        count += len(bad)
    if first is not None:
        where = first[0] if len(first) == 1 else first
        raise ValueError(
            f"{name} has {count} {'entry that is' if count == 1 else 'entries that are'} NaN or infinite, "
            f"the first at {where}; impute or drop {'it' if count == 1 else 'them'}"
        )


def integer(value: Any, name: str, low: int, high: int | None = None) -> int:
    """A whole number in [low, high]; booleans and floats are refused."""
    if isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} must be an integer, not {value!r}") from None
    if number < low or (high is not None and number > high):
        allowed = f"at least {low}" if high is None else f"in [{low}, {high}]"
        raise ValueError(f"{name} must be {allowed}, not {number}")
    return number


def number(value: Any, name: str, low: float, high: float = math.inf) -> float:
    """A real number in [low, high]; NaN is refused."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, not {value!r}")
    try:
        result = float(value)
    except OverflowError:
        raise ValueError(f"{name} is beyond the number range of float64") from None
    if not low <= result <= high:
        allowed = f"at least {low:g}" if high == math.inf else f"in [{low:g}, {high:g}]"
        raise ValueError(f"{name} must be {allowed}, not {value!r}")
    return result


def choice(value: Any, name: str, allowed: tuple[str, ...]) -> str:
    """One of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, not {value!r}")
    return value


def hook(callback: Any) -> Callable[..., object] | None:
    """A callback, or None."""
    if callback is not None and not callable(callback):
        raise TypeError(f"callback must be callable or None, not {callback!r}")
    return callback


def output_array(x: Any, a: NDArray[Any], name: str, overwrite: bool, layout: str = "A") -> NDArray[Any]:
    """The array a kernel may write to: a copy of `a`, or with overwrite the caller's own `x`."""
    if not flag(overwrite, "overwrite"):
        return a.copy(order="C" if layout == "C" else "F" if layout == "F" else "K")
    if a is not x and not (isinstance(x, np.ndarray) and a.base is x):
        raise ValueError(f"overwrite=True needs {name} to be an aligned float32 or float64 ndarray")
    if not a.flags.writeable:
        raise ValueError(f"overwrite=True needs {name} to be writable")
    if not (a.flags.c_contiguous or (a.flags.f_contiguous and layout != "C")):
        raise ValueError(f"overwrite=True needs {name} to be contiguous")
    return a


def seed_of(rng: Any) -> int:
    """A number that fixes every random choice of a call; None means 0, so results repeat by default."""
    if rng is None:
        return 0
    if isinstance(rng, (bool, np.bool_)):
        raise TypeError(f"rng must be None, an integer or a numpy Generator, not {rng!r}")
    if isinstance(rng, numbers.Integral) and rng < 0:
        raise ValueError(f"rng must not be negative: {rng!r}")
    try:
        return int(np.random.default_rng(rng).integers(2**63))
    except (TypeError, ValueError):
        raise TypeError(f"rng must be None, an integer or a numpy Generator, not {rng!r}") from None


def flag(value: Any, name: str) -> bool:
    """True or False, and nothing that merely looks like it."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def per_component(
    value: Any, name: str, n_components: int, check: Callable[[Any, str], Any]
) -> tuple[Any, ...]:
    """One value per component, each checked, from a number or a sequence."""
    if isinstance(value, (str, bytes, dict)) or value is None:
        raise TypeError(f"{name} must be a number or one number per component, not {value!r}")
    if not hasattr(value, "__getitem__") or getattr(value, "ndim", 1) == 0:
        return (check(value, name),) * n_components
    values = list(value)
    if len(values) != n_components:
        raise ValueError(f"{name} has {len(values)} entries for {n_components} components")
    return tuple(check(v, f"{name}[{i}]") for i, v in enumerate(values))
