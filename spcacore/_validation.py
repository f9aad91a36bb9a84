"""Validation: what the caller gives becomes an aligned float32 or float64 array, or a clear error."""

from __future__ import annotations

import math
import numbers
import operator
import sys
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from ._labels import aligned_columns, columns_of, has_coordinates, matched, wrong_labels
from ._limits import CHUNK, MOST_SAMPLES, slices
from ._messages import counted, first_of, meant, refuse_no_array, warn_repeated
from ._types import AnyArray, Array, DType, Index, Names

_NUMBERS = (int, float, np.floating, np.integer)
_NO_NUMBERS = (complex, np.complexfloating, np.ndarray, np.datetime64, np.timedelta64)
_KINDS = {"U": "strings", "S": "strings", "T": "strings", "M": "dates", "m": "durations", "V": "records"}
LARGEST = sys.maxsize
_EXACT = 2**53  # up to it every integer is a double
TAKES_MISSING = (
    "NaN is missing for sparse_pca ('tpower', 'pmd'; also in sparsity_path and select_sparsity), spca, "
    "sca and ppca, of dense data"
)


# scipy.sparse takes as long to import as all of this package. Before anybody has imported it, X cannot be one
# of its objects, so it is not imported to find out.
def _if_imported(module: str, name: str) -> Any:
    """Return what a module holds under a name, or None if it is not imported.

    While another thread imports the module, it has no names yet; then, too, X cannot be one of its objects.
    """
    return getattr(sys.modules.get(module), name, None)


def is_sparse(x: Any) -> bool:
    """Whether x is a matrix or array of scipy.sparse."""
    issparse = _if_imported("scipy.sparse", "issparse")
    return issparse is not None and bool(issparse(x))


def is_operator(x: Any) -> bool:
    """Whether x is a scipy `LinearOperator`."""
    operator_type = _if_imported("scipy.sparse.linalg", "LinearOperator")
    return operator_type is not None and isinstance(x, operator_type)


def has_only_products(x: Any) -> bool:
    """Whether x is an operator, or a function that makes products: it has no entries to read."""
    return is_operator(x) or (callable(x) and not hasattr(x, "__array__") and not is_sparse(x))


def stored(X: Any) -> Any:
    """The entries of an array, or those that a sparse matrix stores."""
    return X.data if is_sparse(X) else X


def as_dense(X: Any) -> Any:
    """A sparse matrix as an array; an array as it is."""
    return X.toarray() if is_sparse(X) else X


def is_row_blocks(x: Any) -> bool:
    """Whether x is read by blocks of rows: made by `row_blocks`, a dask collection, or a store of rows."""
    return _is_distributed(x) or _is_store(x)


def _is_distributed(x: Any) -> bool:
    """Whether x was made by `row_blocks`, or is a dask collection."""
    return hasattr(x, "__row_blocks__") or (hasattr(x, "__dask_graph__") and x.__dask_graph__() is not None)


def _is_elsewhere(x: Any) -> bool:
    """Whether x is a matrix that must not become an array in memory.

    It is in row blocks, or a list of matrices; but a dask collection of one dimension may become one.
    """
    return len(_shape(x)) != 1 and (_is_distributed(x) or (isinstance(x, (list, tuple)) and _is_store(x)))


def _is_store(x: Any) -> bool:
    """Whether x is a matrix in a file whose slices are read, or a list of matrices one below the other.

    Files are those of h5py, zarr, parquet and a backed AnnData.
    """
    if isinstance(x, (list, tuple)):
        return len(x) > 0 and all(len(_shape(part)) == 2 for part in x)
    if hasattr(x, "get_fragments") or hasattr(x, "read_row_group"):  # parquet, as pyarrow has it
        return True
    if isinstance(x, np.ndarray) or len(_shape(x)) != 2 or not hasattr(x, "dtype") or is_sparse(x):
        return False
    in_file = getattr(x, "chunks", None) is not None or hasattr(x, "to_memory")  # dask or anndata
    return in_file or type(x).__module__.partition(".")[0] == "h5py"


def _shape(x: Any) -> tuple[int, ...]:
    """Return the shape of x, or () if it has none."""
    shape = getattr(x, "shape", ())
    return shape if isinstance(shape, tuple) else ()


def real_array(
    x: Any, name: str, *, ndim: int | tuple[int, ...], shape: tuple[int | str, ...] | None = None,
    finite: bool = True, empty: bool = False, labels: Any = None,
) -> AnyArray:  # fmt: skip
    """Return `x` as an aligned native float array, by reference wherever the dtype allows it.

    float32 and float64 stay; float16 becomes float32; every other real dtype becomes float64, and integers
    that this would round are refused. Where the variables of X have `labels`, so may the rows of `x`, which
    are then taken in that order.
    """
    x = matched(x, labels, name)
    if type(x) is not np.ndarray:
        _refuse_others(x, name)
    try:
        a = np.asarray(x)
    except ValueError as error:
        raise ValueError(f"{name} is not a rectangular array of numbers: {_uneven(x) or error}") from None
    except (TypeError, RuntimeError) as error:  # a tensor with a gradient raises RuntimeError
        why = str(error).split(". This")[0]
        raise TypeError(f"{name} cannot become an array of numbers: {why}") from None
    if a.dtype == object:
        a = _from_objects(x, a, name)
    if a.dtype.kind not in "fiub":
        what = _KINDS.get(a.dtype.kind, "complex numbers")
        advice = {
            "strings": "; astype(float) makes them numbers, if it can",
            "records": f"; pandas.DataFrame({name}) has a column for each field",
        }.get(what, "")
        raise TypeError(f"{name} holds {what} (dtype {a.dtype}) where real numbers are needed{advice}")
    allowed = (ndim,) if isinstance(ndim, int) else ndim
    if a.ndim not in allowed:
        needed = f"{' or '.join(map(str, allowed))} dimension{'s' * (allowed != (1,))}"
        advice = (
            f"; one row is {name}[None], one column {name}[:, None]"
            if allowed == (2,) and a.ndim == 1
            else ""
        )
        raise ValueError(f"{name} must have {needed}, not shape {a.shape}{advice}")
    if a.size == 0 and not empty:
        raise ValueError(f"{name} is empty: shape {a.shape}")
    a = as_floats(a, name)
    if finite:
        refuse_not_finite(a, name)
    if shape is not None:
        check_shape(a, name, *shape)
    return a


def _refuse_others(x: Any, name: str) -> None:
    """Raise TypeError for what is a matrix but no array in memory."""
    if not isinstance(x, np.ndarray):
        refuse_no_array(x, name)
    rows = x if isinstance(x, (list, tuple)) else ()
    if isinstance(x, np.ma.MaskedArray) or any(isinstance(row, np.ma.MaskedArray) for row in rows):
        raise TypeError(
            f"{name} is a masked array, whose mask would be lost; fill or drop the masked entries"
        )
    if hasattr(x, "__dlpack_device__") and not isinstance(x, np.ndarray) and x.__dlpack_device__()[0] != 1:
        raise TypeError(f"{name} is on a device; move it to the CPU first")
    for is_one, kind, needed in (
        (is_sparse, "a sparse matrix", "a dense array"),
        (_is_elsewhere, "in blocks of rows", "an array in memory"),
        (is_operator, "a LinearOperator, which offers only products,", "an array"),
    ):
        if is_one(x):
            raise TypeError(f"{name} is {kind} where {needed} is needed")


def check_shape(a: Any, name: str, *needed: int | str) -> None:
    """Raise ValueError for another shape; a word among `needed` stands for any number."""
    if len(a.shape) != len(needed) or any(n not in (m, str(n)) for m, n in zip(a.shape, needed, strict=True)):
        raise ValueError(f"{name} has shape {a.shape} where ({', '.join(map(str, needed))}) is needed")


def require_real(dtype: DType, what: str = "X has", kinds: str = "fiub") -> None:
    """Raise TypeError for a type of numbers that are not real."""
    if dtype.kind not in kinds:
        raise TypeError(f"{what} dtype {dtype}; real numbers are needed")


def refuse_products(X: Any, name: str, needed: str = "entries") -> None:
    """Raise TypeError for an operator, which has no entries."""
    if has_only_products(X):
        raise TypeError(f"{name} must have {needed}; an operator offers only products")


def require_memory(X: Any, what: str, name: str = "X", instead: str = "") -> None:
    """Raise TypeError for row blocks, where the data are needed in memory."""
    if is_row_blocks(X):
        raise TypeError(f"{what} the data in memory, and {name} is in blocks of rows{instead}")


def require_entries(problem: Any, what: str, instead: str = "") -> None:
    """Raise ValueError for a problem that only products are known of, where the diagonal is needed."""
    if problem.diagonal is None:
        raise ValueError(f"{what} needs the entries of X; an operator offers only products{instead}")


def _may_be_number(entry: Any) -> bool:
    """Whether an object becomes a real number by float()."""
    return (isinstance(entry, _NUMBERS) or hasattr(entry, "__float__")) and not isinstance(entry, _NO_NUMBERS)


def _is_missing(entry: Any) -> bool:
    """Whether an entry is None, or the NA of pandas."""
    return entry is None or type(entry).__name__ == "NAType"


def without_label(labels: Iterable[Any]) -> list[int]:
    """Return where labels are None, NaN, NaT or the NA of pandas."""
    return [i for i, one in enumerate(labels) if _is_missing(one) or bool(one != one)]


def _from_objects(x: Any, a: AnyArray, name: str) -> Array:
    """Return objects that are numbers as floats, with NaN where an entry is missing."""
    if a.ndim == 0:
        raise TypeError(f"{name} is of type {type(x).__name__}; an array of numbers is needed")
    # Entries that are no numbers, and not missing either
    odd = [i for i, entry in enumerate(a.flat) if not _may_be_number(entry)]
    strange = [i for i in odd if not _is_missing(a.flat[i])]
    if strange:
        first = np.unravel_index(strange[0], a.shape)
        where = f", {a.flat[strange[0]]!r:.60} at {tuple(map(int, first))}"
        names = columns_of(x)
        if names is not None and a.ndim == 2:
            columns = [repr(names[j]) for j in sorted({i % a.shape[1] for i in strange})]
            where += f": drop or encode column{'s' * (len(columns) > 1)} {first_of(columns)}"
        if isinstance(a.flat[strange[0]], str) and _is_number(a.flat[strange[0]]):
            where += "; astype(float) makes them numbers, if it can"
        raise TypeError(f"{name} holds objects that are not numbers{where}")
    # Conversion; integers that float64 would round are refused
    if odd:
        a = a.copy()
        a.flat[odd] = math.nan
    try:
        found = a.astype(np.float64)
    except OverflowError:
        raise ValueError(f"{name} has integers beyond the number range of float64") from None
    except (TypeError, ValueError):
        raise TypeError(f"{name} holds objects that are not numbers") from None
    far = np.abs(found) >= _EXACT
    if far.any():
        whole = [isinstance(one, numbers.Integral) and int(one) != int(float(one)) for one in a[far]]
        _refuse_rounded(np.argwhere(far)[whole], a, name)
    return found


def as_floats(a: AnyArray, name: str) -> AnyArray:
    """Return numbers in the type that they are computed in, aligned.

    Integers that this type would round are refused.
    """
    dtype = float_type(a.dtype)
    if a.dtype == dtype and a.flags.aligned:
        return a
    wide = a.dtype.kind in "iu" and a.dtype.itemsize == 8 and a.size > 0
    if wide and (a.max() > _EXACT or a.min() < -_EXACT):
        far = (a > _EXACT) | (a < -_EXACT)
        some = a[far]
        spare = np.maximum(np.frexp(some.astype(np.float64))[1] - 53, 0).astype(a.dtype)  # bits beyond 53
        _refuse_rounded(np.argwhere(far)[(some >> spare) << spare != some], a, name)
    with np.errstate(over="ignore", under="ignore"):  # long doubles may exceed the range
        return np.require(a, dtype, ["A"])


def _refuse_rounded(where: Index, a: AnyArray, name: str) -> None:
    """Raise ValueError for the integers at these positions, which no double equals."""
    if len(where):
        at = tuple(map(int, where[0]))
        raise ValueError(
            f"{name} has {counted(len(where), 'integer')} beyond 2**53 that float64 would round, the first "
            f"{a[at]} at {at[0] if len(at) == 1 else at}: subtract what they share, or round by astype(float)"
        )


def _is_number(word: str) -> bool:
    """Whether a word is a number."""
    try:
        return not math.isnan(float(word))
    except ValueError:
        return False


def _uneven(x: Any) -> str:
    """Return words for the first row of nested lists that is longer or shorter than the first; or nothing."""
    if not isinstance(x, (list, tuple)) or not all(isinstance(row, (list, tuple, np.ndarray)) for row in x):
        return ""
    shapes = [row.shape if isinstance(row, np.ndarray) else (len(row),) for row in x]
    i = next((i for i, shape in enumerate(shapes) if shape != shapes[0]), None)
    return "" if i is None else f"row 0 has shape {shapes[0]}, row {i} has {shapes[i]}"


def column_names(X: Any) -> Names:
    """Return the column names of a dataframe as strings, with a warning if two are the same."""
    names = columns_of(X)
    warn_repeated(names)
    return names


def aligned(X: Any, names: Names, name: str = "X") -> Any:
    """Return X with its columns in the order of `names`, those of the fit; as it is if either has none."""
    given = columns_of(X)
    if given is None or names is None or given == names:  # the fit has warned of repeated names
        return X
    warn_repeated(given)
    wrong = wrong_labels(given, names)
    if wrong:
        raise ValueError(
            f"{name} must have the {counted(len(names), 'column')} of the fit, in any order; "
            f"it has {len(given)}, {wrong}"
        )
    place = {n: j for j, n in enumerate(given)}
    return aligned_columns(X, [place[n] for n in names], name)


def framed(X: Any, values: Any, names: Sequence[str] | None = None) -> Any:
    """Return `values`, one row for each row of X, as a dataframe if X is one of pandas or polars.

    A dataframe of pandas gets the index of X. The columns are `names`, or component_1, component_2, ...
    """
    for kind in type(X).__mro__:
        library = kind.__module__.partition(".")[0]
        if kind.__name__ != "DataFrame" or library not in ("pandas", "polars"):
            continue
        if names is None:
            names = [f"component_{t + 1}" for t in range(values.shape[1])]
        maker: Any = kind
        if library == "pandas":
            return maker(values, index=X.index, columns=list(names))
        return maker(values, schema=list(names))
    return values


def float_type(dtype: DType) -> DType:
    """Return the type in which numbers of this type are computed, in native byte order."""
    return np.dtype(np.float32 if dtype.kind == "f" and dtype.itemsize <= 4 else np.float64)


def refuse_not_finite(a: Any, name: str) -> None:
    """Raise ValueError if an entry is NaN or infinite, or stored so; the error says how many, and where.

    A few rows are checked at a time, so that large arrays need no large mask.
    """
    if is_sparse(a):
        a, name = a.data, f"{name}.data"
    count, first = 0, None
    for part in slices(len(a), a.size // max(1, len(a)), CHUNK):
        finite = np.isfinite(a[part])
        if finite.all():
            continue
        bad = np.argwhere(~finite)
        first = first or (int(bad[0][0]) + part.start, *map(int, bad[0][1:]))
        count += len(bad)
    if first is not None:
        where = first[0] if len(first) == 1 else first
        missing = f"; {TAKES_MISSING}" if name == "X" and np.isnan(a[first]) else ""
        raise ValueError(
            f"{name} has {counted(count, 'entry')} that {'is' if count == 1 else 'are'} NaN or infinite, "
            f"the first at {where}; replace or drop {'it' if count == 1 else 'them'}{missing}"
        )


def is_flag(value: object) -> bool:
    """Whether a value is True or False, of Python or NumPy; these would pass for numbers."""
    return isinstance(value, (bool, np.bool_))


def integer(
    value: Any, name: str, low: int, high: int | None = None, why: str | Callable[[], str] = ""
) -> int:
    """Return a whole number in [low, high]; booleans and floats are refused. `why` says what limits it."""
    if is_flag(value):
        raise TypeError(f"{name} must be an integer, not {value!r}")
    try:
        number = operator.index(value)
    except TypeError:
        why = "; select_n_components finds how many" if value is None and name == "n_components" else ""
        raise TypeError(f"{name} must be an integer, not {value!r}{why}") from None
    if number < low or (high is not None and number > high):
        allowed = f"at least {low}" if high in (None, LARGEST) else f"in [{low}, {high}]"
        raise ValueError(f"{name} must be {allowed}, not {number}{why if isinstance(why, str) else why()}")
    return number


def number(value: Any, name: str, low: float, high: float = math.inf) -> float:
    """Return a real number in [low, high]; NaN is refused."""
    if is_flag(value) or not isinstance(value, numbers.Real):
        raise TypeError(f"{name} must be a number, not {value!r}")
    try:
        result = float(value)
    except OverflowError:
        raise ValueError(f"{name} is beyond the number range of float64") from None
    if not low <= result <= high:
        at_least = "a number" if low == -math.inf else f"at least {low:g}"
        allowed = at_least if high == math.inf else f"in [{low:g}, {high:g}]"
        raise ValueError(f"{name} must be {allowed}, not {value!r}{as_share(result, high)}")
    return result


def positive(value: Any, name: str, high: float = math.inf, *, closed: bool = False) -> float:
    """Return a finite number above zero and below `high`; with `closed`, it may also equal `high`."""
    result = number(value, name, -math.inf) if value == value else math.nan
    if not (0 < result < high or (closed and result == high)):
        rest = "finite" if high == math.inf else f"{'at most' if closed else 'below'} {high:g}"
        raise ValueError(f"{name} must be positive and {rest}, not {value!r}{as_share(result, high)}")
    return result


def iteration_limits(
    max_iter: Any, tol: Any, usual: float | None = None, least: int = 1, most: int | None = None
) -> tuple[int, float]:
    """Return the largest number of iterations, and their tolerance, by default the usual one."""
    return integer(max_iter, "max_iter", least, most), number(usual if tol is None else tol, "tol", 0)


def check_l1_bound(value: Any, name: str, size: int) -> float:
    """Return a bound on the l1 norm of a unit vector with `size` entries, in [1, sqrt(size)].

    A number that exceeds the square root only by rounding becomes the square root.
    """
    root = math.sqrt(size)
    return min(number(value, name, 1.0, root * (1 + 1e-12)), root)


def is_sequence(x: Any) -> bool:
    """Whether x may be a sequence of numbers or names, rather than a single one."""
    return np.iterable(x) and not isinstance(x, (str, bytes, dict))


def several(values: Any, name: str, what: str = "numbers", why: str = "") -> list[Any]:
    """Return the members of a sequence; there must be at least one."""
    if not is_sequence(values):
        raise TypeError(f"{name} must be a sequence of {what}, not {values!r}")
    if len(found := list(values)) == 0:
        raise ValueError(f"{name} is empty{why}")
    return found


def as_share(value: float, high: float) -> str:
    """Return a clause about a percentage that was given where a share is needed, or nothing."""
    return f"; {value:g} % is {value / 100:g}" if high == 1 < value <= 100 else ""


def default_cardinality(p: int) -> int:
    """Return the usual number of nonzeros: the square root of the number of variables, rounded up."""
    return math.isqrt(p - 1) + 1


def check_choice(value: Any, name: str, allowed: Any) -> str:
    """Return one of the allowed words; these may be given as a Literal type."""
    allowed = getattr(allowed, "__args__", allowed)
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(map(repr, allowed))
        raise ValueError(f"{name} must be one of {words}, not {value!r}{meant(name, value, allowed)}")
    return value


AFTER_ERRORS: list[Callable[[], None]] = []  # what must not wait until the traceback of an error is gone


class Hook:
    """The caller's callback for one call, or none.

    A call of the hook returns True as soon as the callback has raised StopIteration, and from then on.
    """

    def __init__(self, callback: Callable[..., object] | None):
        self.callback: Callable[..., object] | None = callback
        self.ended: bool = False

    def __call__(self, progress: Any) -> bool:
        if not (self.ended or self.callback is None):
            try:
                self.callback(progress)
            except StopIteration:
                self.ended = True
            except BaseException:
                # Called before an error leaves, as its traceback keeps objects alive
                for release in AFTER_ERRORS:
                    release()
                raise
        return self.ended


def as_seed(rng: Any, name: str = "rng") -> int:
    """Return a number that fixes every random choice of a call; None means 0, so that results repeat."""
    if rng is None:
        return 0
    if is_flag(rng):
        raise TypeError(f"{name} must be None, an integer or a numpy Generator, not {rng!r}")
    if isinstance(rng, numbers.Integral) and rng < 0:
        raise ValueError(f"{name} must not be negative: {rng!r}")
    try:
        return int(np.random.default_rng(rng).integers(2**63))
    except (TypeError, ValueError):
        raise TypeError(f"{name} must be None, an integer or a numpy Generator, not {rng!r}") from None


def check_bool(value: Any, name: str) -> bool:
    """Return True or False; nothing else passes for one of them."""
    if not is_flag(value):
        raise TypeError(f"{name} must be True or False, not {value!r}")
    return bool(value)


def check_flag_or_vector(value: Any, name: str) -> bool | Array:
    """Return True, False, or one finite number for each variable; numbers of `scale` are positive."""
    if is_flag(value):
        return bool(value)
    if not is_sequence(value):
        raise TypeError(f"{name} must be True or False, or have one number for each variable, not {value!r}")
    vector = real_array(value, name, ndim=1).astype(np.float64)
    if name == "scale" and not (vector > 0).all():
        j = int(np.argmin(vector > 0))
        raise ValueError(f"scale must be positive, and scale[{j}] is {vector[j]:g}")
    return vector


def check_weights(value: Any, n: int) -> Array | None:
    """Return the weights of n rows, or None."""
    if value is None:
        return None
    weight = real_array(value, "sample_weight", ndim=1).astype(np.float64)
    if len(weight) != n:
        raise ValueError(f"sample_weight has {counted(len(weight), 'entry')} for {counted(n, 'row')}")
    if (weight < 0).any():
        i = int(np.argmax(weight < 0))
        raise ValueError(f"sample_weight must not be negative, and sample_weight[{i}] is {weight[i]:g}")
    return weight


def check_sample_weight(value: Any, n: int) -> Array | None:
    """Return how many samples each of n rows stands for, or None."""
    weight = check_weights(value, n)
    if weight is None:
        return None
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    if total == 0:
        raise ValueError("sample_weight has only zeros")
    if not 1 < total <= MOST_SAMPLES:
        raise ValueError(
            "sample_weight says how many samples each row stands for; its sum must be above 1 and at most "
            f"{MOST_SAMPLES:g}, not {total:g}"
        )
    return weight


def per_component(
    value: Any, name: str, n_components: int, check: Callable[[Any, str], Any]
) -> tuple[Any, ...]:
    """Return one checked value for each component, given a single value or a sequence."""
    if isinstance(value, (str, bytes, dict)) or value is None:
        raise TypeError(f"{name} must be a number or one number per component, not {value!r}")
    if not hasattr(value, "__getitem__") or getattr(value, "ndim", 1) == 0:
        return (check(value, name),) * n_components
    values = list(value)
    if len(values) != n_components:
        raise ValueError(
            f"{name} has {counted(len(values), 'entry')} for {counted(n_components, 'component')}"
        )
    return tuple(check(v, f"{name}[{i}]") for i, v in enumerate(values))


def group_labels(groups: Any, names: Names, p: int, name: str = "groups") -> list[Hashable]:
    """Return the group of each variable, given a sequence of labels or a mapping of names."""
    if isinstance(groups, Mapping):
        variables = [f"x{j + 1}" for j in range(p)] if names is None else names
        lacking = [one for one in variables if one not in groups]
        if lacking:
            shown = first_of(map(repr, lacking))
            raise ValueError(f"{name} must have every variable; it lacks {shown}")
        labels = [groups[one] for one in variables]
    else:
        groups = matched(groups, names, name)
        if isinstance(groups, (str, bytes)) or not hasattr(groups, "__len__") or np.ndim(groups) > 1:
            raise TypeError(f"{name} must be a sequence of labels or a mapping of names, not {groups!r}")
        if len(groups) != p:
            raise ValueError(f"{name} has {counted(len(groups), 'label')} for {counted(p, 'variable')}")
        array = isinstance(groups, np.ndarray) or has_coordinates(groups)
        labels = np.asarray(groups).tolist() if array else list(groups)
    bad = without_label(labels)
    if bad:
        raise ValueError(
            f"{name} has no label for {counted(len(bad), 'variable')}, the first at {bad[0]};"
            " a variable that goes with no other needs a label of its own"
        )
    return labels


def group_places(groups: Any, names: Names, p: int) -> tuple[Index, list[Hashable]]:
    """Return the position of the group of each variable, and the groups in the order of first appearance."""
    place: dict[Hashable, int] = {}
    index = [place.setdefault(label, len(place)) for label in group_labels(groups, names, p)]
    return np.array(index, np.intp), list(place)
