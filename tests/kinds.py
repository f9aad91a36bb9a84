"""Every kind of array that a caller may have: what means numbers, and what means none.

`GOOD`, `SPARSE`, `BAD` and `BROKEN` make each from a float array of one or two dimensions; a new kind of
input is one line here, and then goes through every call of calls.py.
"""

import contextlib
import hashlib
import io
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from calls import numbers
from extras import optional
from scipy.sparse.linalg import aslinearoperator

DTYPES = [np.float32, np.float64]
pa, pd, pl = optional("pyarrow"), optional("pandas"), optional("polars")


def ids(v):
    return v[0] if isinstance(v, tuple) else getattr(v, "__name__", None)


# ---- the input stays as it was --------------------------------------------------------------------------


def parts(X):
    """Every piece of memory that belongs to X."""
    if sp.issparse(X):
        names = ("data", "indices", "indptr", "row", "col", "offsets", "rows")
        return [np.asarray(getattr(X, a)) for a in names if hasattr(X, a)]
    if isinstance(X, np.ma.MaskedArray):
        return [X.data, np.ma.getmaskarray(X)]
    if hasattr(X, "iloc"):
        return [np.asarray(X), np.asarray(X.index)]
    if isinstance(X, np.ndarray):
        return [np.asarray(X), *([X.base] if isinstance(X.base, np.ndarray) else [])]
    try:
        return [np.asarray(X)] if hasattr(X, "__array__") else []
    except (TypeError, RuntimeError):  # of a device, or of columns that have nothing in common
        return []


def fingerprint(X):
    digest = hashlib.sha1()
    for a in parts(X):
        digest.update(f"{a.dtype} {a.shape}".encode())
        digest.update(repr(a.tolist()).encode() if a.dtype.hasobject else np.ascontiguousarray(a).tobytes())
    if isinstance(X, (list, tuple, dict)):
        digest.update(repr(X).encode())
    return digest.hexdigest()


@contextlib.contextmanager
def untouched(*arrays):
    before = [fingerprint(a) for a in arrays]
    yield
    assert [fingerprint(a) for a in arrays] == before


# ---- what a call answers --------------------------------------------------------------------------------


def outcome(run, X):
    """The numbers of a result, or the error; and what was warned of."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            out = numbers(run(X))
        except (TypeError, ValueError) as error:
            out = f"{type(error).__name__}: {error}"
    return out, sorted({str(w.message) for w in told})


STEPS = {"n_iter", "n_nodes", "objective", "free_energy", "columns", "questions", "reads"}


def assert_same(out, expected, tolerance):
    """Equal to the bit where the tolerance is 0; else but for the steps it took and what is private."""
    (a, told), (b, told_too) = out, expected
    assert told == told_too
    assert type(a) is type(b), (a, b)
    if isinstance(a, str):
        assert a == b
        return
    same = a.keys() & b.keys() if tolerance else a.keys() | b.keys()
    assert same
    for name in same:
        value = a[name]
        if tolerance and (STEPS & set(name.split(".")) or name.startswith("_")):
            continue
        assert value.shape == b[name].shape, name
        if tolerance == 0:
            assert value.tobytes() == b[name].tobytes(), name
        else:
            size = np.abs(b[name], where=np.isfinite(b[name]), out=np.zeros(b[name].shape)).max(initial=0)
            np.testing.assert_allclose(
                value, b[name], rtol=tolerance, atol=tolerance * (size + 1e-300), err_msg=name
            )


def reference(X):
    """The same numbers in a clean array of the dtype that they are computed in, by numpy alone."""
    a = np.asarray(X)
    return np.array(a, np.float32 if a.dtype.kind == "f" and a.itemsize <= 4 else np.float64, order="C")


# ---- what means numbers ---------------------------------------------------------------------------------


class Named(np.ndarray):
    """A subclass, as other libraries have."""


class Array:
    """Something that is no array and can become one."""

    def __init__(self, a):
        self.a = a

    def __array__(self, dtype=None, copy=None):
        return np.array(self.a, dtype)


class OnCPU(Array):
    def __dlpack_device__(self):
        return (1, 0)


def matrix(a):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PendingDeprecationWarning)
        return np.asmatrix(a)


def unaligned(a):
    buffer = np.zeros(a.nbytes + 1, np.uint8)
    out = buffer[1:].view(a.dtype).reshape(a.shape)
    out[:] = a
    assert not out.flags.aligned
    return out


def read_only(a):
    a = a.copy()
    a.flags.writeable = False
    return a


def memory_map(a):
    """In memory that a file lends, for reading alone."""
    import mmap

    file = mmap.mmap(-1, a.nbytes)
    file.write(a.tobytes())
    out = np.frombuffer(memoryview(file).toreadonly(), a.dtype).reshape(a.shape)
    assert not out.flags.writeable
    return out


def embedded(a):
    """A block inside of a larger array."""
    big = np.full([n + 5 for n in a.shape], np.nan, a.dtype)
    inner = big[(slice(2, -3),) * a.ndim]
    inner[:] = a
    return inner


def every_second(a):
    big = np.full([2 * n for n in a.shape], np.nan, a.dtype)
    inner = big[(slice(None, None, 2),) * a.ndim]
    inner[:] = a
    return inner


def padded_records(a):
    """Fields of packed records: strides that are no multiple of the item size."""
    records = np.zeros(a.shape, [("tag", "u1"), ("x", a.dtype)])
    records["x"] = a
    return records["x"]


def last_of_one_more(a, order):
    out = np.zeros((*a.shape, 2), a.dtype, order=order)
    out[..., 1] = a
    return out[..., 1]


def backward(a):
    back = (slice(None, None, -1),) * a.ndim
    return a[back].copy()[back]


def whole(a, dtype):
    """Whole numbers; a covariance stays definite."""
    return np.rint(4 * a).astype(dtype)


def is_covariance(a):
    return a.ndim == 2 and a.shape[0] == a.shape[1]


def nonnegative(a, dtype):
    if is_covariance(a):
        return (np.ones(a.shape) + np.diag(np.arange(1, len(a) + 1))).astype(dtype)
    return np.rint(4 * np.abs(a)).astype(dtype)


def boolean(a):
    return np.kron(np.eye(len(a) // 3), np.ones((3, 3))) > 0 if is_covariance(a) else a > 0


def overlapping(a):
    """Each row is that before, moved by one."""
    if is_covariance(a):
        n = len(a)
        line = np.maximum(0, 3 - np.abs(np.arange(1 - n, n))).astype(a.dtype)
        return np.lib.stride_tricks.sliding_window_view(line, n)[::-1]
    line = np.random.default_rng(3).standard_normal(sum(a.shape)).astype(a.dtype)
    return np.lib.stride_tricks.as_strided(line, a.shape, line.strides * a.ndim)


def frame(a, dtype=None):
    return pd.Series(a, dtype=dtype) if a.ndim == 1 else pd.DataFrame(a, dtype=dtype)


def mixed_frame(a):
    return frame(a) if a.ndim == 1 else frame(whole(a, float)).astype({0: int, 1: "float32"})


def polars(a):
    return pl.Series(a) if a.ndim == 1 else pl.from_numpy(np.ascontiguousarray(a))


def arrow(a):
    return (
        pa.array(a)
        if a.ndim == 1
        else pa.table([pa.array(c.copy()) for c in a.T], [*map(str, range(a.shape[1]))])
    )


def fractions(a):
    out = np.empty(a.shape, object)
    out.flat = [Fraction(float(x)) for x in a.flat]
    return out


EXACT, ROUNDED = True, False  # the same order of the entries means the same bits
GOOD = [
    ("read-only", read_only, EXACT),
    ("memory map", memory_map, EXACT),
    ("subclass", lambda a: a.view(Named), EXACT),
    ("array interface", Array, EXACT),
    ("dlpack of the CPU", OnCPU, EXACT),
    ("matrix", matrix, EXACT),
    ("unaligned", unaligned, EXACT),
    ("negative strides", backward, EXACT),
    ("every second", every_second, EXACT),
    ("record field", padded_records, EXACT),
    ("last axis of one more, C", lambda a: last_of_one_more(a, "C"), EXACT),
    ("last axis of one more, F", lambda a: last_of_one_more(a, "F"), ROUNDED),
    ("embedded", embedded, ROUNDED),
    ("embedded, F", lambda a: embedded(a.T).T, ROUNDED),
    ("F order", np.asfortranarray, ROUNDED),
    ("overlapping", overlapping, EXACT),
    ("big-endian", lambda a: a.astype(a.dtype.newbyteorder(">")), EXACT),
    ("float16", lambda a: a.astype(np.float16), EXACT),
    ("longdouble", lambda a: a.astype(np.longdouble), EXACT),
    *[(t, lambda a, t=t: whole(a, t), EXACT) for t in ("int8", "int16", "int32", "int64", ">i8")],
    *[(t, lambda a, t=t: nonnegative(a, t), EXACT) for t in ("uint8", "uint16", "uint32", "uint64")],
    ("bool", boolean, EXACT),
    ("objects", lambda a: a.astype(object), EXACT),
    ("integer objects", lambda a: whole(a, int).astype(object), EXACT),
    ("fractions", fractions, EXACT),
    ("list", lambda a: a.tolist(), EXACT),
    ("tuple of tuples", lambda a: tuple(map(tuple, a.tolist())) if a.ndim == 2 else tuple(a), EXACT),
    ("list of arrays", list, EXACT),
    ("frame", frame, ROUNDED),
    ("mixed frame", mixed_frame, ROUNDED),
    ("object frame", lambda a: frame(a).astype(object), ROUNDED),
    ("polars", polars, ROUNDED),
    ("arrow", arrow, ROUNDED),
]  # fmt: skip

NO_ARRAYS = {"array interface", "dlpack of the CPU", "objects", "integer objects", "fractions"} | {
    name for name, *_ in GOOD[[name for name, *_ in GOOD].index("list") :]
}  # of numbers

# ---- sparse matrices ------------------------------------------------------------------------------------


def stored_zeros(a):
    n, p = a.shape
    return sp.csr_array((a.ravel(), np.tile(np.arange(p), n), np.arange(0, n * p + 1, p)), a.shape)


def unsorted(a):
    m = sp.csr_array(a)
    for i in range(m.shape[0]):
        s = slice(m.indptr[i], m.indptr[i + 1])
        m.indices[s], m.data[s] = m.indices[s][::-1].copy(), m.data[s][::-1].copy()
    m.has_sorted_indices = False
    return m


def duplicated(a, fmt=sp.csr_array):
    """Every entry stored as two parts."""
    m = sp.coo_array(a)
    row, col = np.repeat(m.row, 2), np.repeat(m.col, 2)
    data = np.stack([m.data / 2, m.data / 2], axis=1).ravel()
    c = sp.coo_array((data, (row, col)), a.shape)
    if fmt is sp.coo_array:
        return c
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=a.shape[0]))])
    order = np.argsort(row, kind="stable")
    return fmt((data[order], col[order], indptr), a.shape)


def wide_indices(m):
    m.indices, m.indptr = m.indices.astype(np.int64), m.indptr.astype(np.int64)
    return m


def mixed_indices(m):
    m.indptr = m.indptr.astype(np.int64)
    return m


def slack(a):
    """Arrays longer than the last pointer says."""
    m = sp.csr_array(a)
    m.data = np.concatenate([m.data, np.full(3, np.nan, m.data.dtype)])
    m.indices = np.concatenate([m.indices, np.full(3, 10**6, m.indices.dtype)])
    return m


def frozen(m):
    for part in (m.data, m.indices, m.indptr):
        part.flags.writeable = False
    return m


def with_dtype(m, dtype):
    m.data = m.data.astype(dtype)
    return m


FORMATS = ("csr", "csc", "coo", "lil", "bsr", "dia", "dok")
SPARSE = [
    *[(f"{f}_array", getattr(sp, f"{f}_array")) for f in FORMATS],
    *[(f"{f}_matrix", getattr(sp, f"{f}_matrix")) for f in FORMATS],
    ("bsr blocks", lambda a: sp.bsr_array(a, blocksize=(2, a.shape[1] // 2))),
    ("stored zeros", stored_zeros),
    ("unsorted", unsorted),
    ("duplicates", duplicated),
    ("duplicates, coo", lambda a: duplicated(a, sp.coo_array)),
    ("int64 csr", lambda a: wide_indices(sp.csr_array(a))),
    ("int64 csc", lambda a: wide_indices(sp.csc_array(a))),
    ("int64 indptr alone", lambda a: mixed_indices(sp.csr_array(a))),
    ("slack", slack),
    ("frozen", lambda a: frozen(sp.csr_array(a))),
    ("frozen, unsorted", lambda a: frozen(unsorted(a))),
    ("int8", lambda a: sp.csr_array(whole(a, np.int8))),
    ("longdouble", lambda a: sp.csr_array(a.astype(np.longdouble))),
    ("big-endian", lambda a: with_dtype(sp.csr_array(a), a.dtype.newbyteorder(">"))),
]


def set_item(array_name, position, value):
    def change(m):
        getattr(m, array_name)[position] = value
        return m

    return change


def set_array(array_name, make):
    def change(m):
        setattr(m, array_name, make(getattr(m, array_name)))
        return m

    return change


_BROKEN = [
    ("index too large", set_item("indices", 3, 10**6)),
    ("index just too large", set_item("indices", -1, 40)),
    ("negative index", set_item("indices", 0, -1)),
    ("most negative index", set_item("indices", 0, -(2**31))),
    ("indptr decreases", set_item("indptr", 2, 0)),
    ("indptr beyond the end", set_item("indptr", -1, 10**6)),
    ("indptr negative", set_item("indptr", 1, -5)),
    ("indptr does not start at 0", set_item("indptr", 0, 1)),
    ("indptr too short", set_array("indptr", lambda a: a[:-1])),
    ("indptr too long", set_array("indptr", lambda a: np.append(a, a[-1]))),
    ("indices too short", set_array("indices", lambda a: a[:-2])),
    ("data too short", set_array("data", lambda a: a[:-2])),
    ("float indices", set_array("indices", lambda a: a + 0.5)),
    ("2-d indices", set_array("indices", lambda a: a[:, None])),
    ("2-d data", set_array("data", lambda a: a[:, None])),
    ("empty indptr", set_array("indptr", lambda a: a[:0])),
]


def broken_coo(a, which, value):
    m = sp.coo_array(a)
    coords = [c.copy() for c in m.coords]
    coords[which][3] = value
    m.coords = tuple(coords)
    return m


def broken_bsr(a, name, position, value):
    m = sp.bsr_array(a, blocksize=(2, 3))
    getattr(m, name)[position] = value
    return m


def broken_lil(a, change):
    m = sp.lil_array(a)
    change(m.rows[2])
    return m


BROKEN = [
    *[
        (f"{name}, {ids((fmt.__name__,))}{', int64' * wide}",
         lambda a, fmt=fmt, change=change, wide=wide: change(wide_indices(fmt(a)) if wide else fmt(a)))
        for name, change in _BROKEN for fmt in (sp.csr_array, sp.csc_matrix) for wide in (False, True)
    ],
    *[
        (f"coo {w} {v}", lambda a, w=w, v=v: broken_coo(a, w, v))
        for w in (0, 1) for v in (-1, 10**6, 2**31 - 1)
    ],
    ("bsr index", lambda a: broken_bsr(a, "indices", 1, 10**6)),
    ("bsr negative index", lambda a: broken_bsr(a, "indices", 1, -4)),
    ("bsr indptr", lambda a: broken_bsr(a, "indptr", -1, 10**6)),
    ("lil index", lambda a: broken_lil(a, lambda row: row.__setitem__(0, 10**6))),
    ("lil negative index", lambda a: broken_lil(a, lambda row: row.__setitem__(0, -30))),
    ("lil uneven", lambda a: broken_lil(a, lambda row: row.pop())),
]  # fmt: skip

# ---- what means no numbers ------------------------------------------------------------------------------


class Device:
    """What lies on a GPU, as dlpack tells."""

    def __init__(self, a):
        self.shape = a.shape

    def __dlpack_device__(self):
        return (2, 0)


class Cupy(Device):
    """It refuses to become a numpy array by itself, and is no callable."""

    def __array__(self, dtype=None, copy=None):
        raise TypeError("implicit conversion to a NumPy array is not allowed")


class AnnData:
    """As the class of this name: a matrix among others, with rows that can be taken."""

    obs = var = layers = None

    def __init__(self, a):
        self.X = a

    def __len__(self):
        return 1

    def __getitem__(self, index):
        return self


class Dataset(dict):
    """As that of xarray, a mapping of arrays."""

    def __init__(self, a):
        super().__init__(x=a.tolist())

    def to_array(self):
        raise AssertionError("left to the user")


class Spark:
    columns = ("x", "y")

    def __init__(self, a):
        pass

    def toPandas(self):
        raise AssertionError("left to the user")


class Gradient(Array):
    """A tensor of torch that requires its gradient."""

    def __array__(self, dtype=None, copy=None):
        raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy()")


def with_category(a):
    return pd.DataFrame(a).assign(w=pd.Categorical(["setosa"] * len(a)))


def struct(a):
    out = np.zeros(a.shape, [("x", float)])
    out["x"] = a
    return out


def with_object(a, value):
    a = a.astype(object)
    a[(1,) * a.ndim] = value
    return a


def ragged(a):
    return [*a.tolist()[:-1], [1.0]]


def masked_rows(a):
    return [np.ma.masked_less(row, 0) for row in np.atleast_2d(a)]


BAD = [
    ("no rows", lambda a: a[:0], ValueError, "empty|has shape"),
    ("no columns", lambda a: a[..., :0], ValueError, "empty"),
    ("nothing", lambda a: a[(slice(0),) * a.ndim], ValueError, "empty|has shape"),
    ("empty list", lambda a: [], ValueError, "dimension|empty"),
    ("number", lambda a: a.dtype.type(3), ValueError, "dimension"),
    ("0-d", lambda a: np.array(3.0), ValueError, "dimension"),
    ("one dimension less", lambda a: a[0], ValueError, "dimension"),
    ("one dimension more", lambda a: a[None], ValueError, "dimension"),
    ("two dimensions more", lambda a: a[None, None], ValueError, "dimension"),
    ("None", lambda a: None, (TypeError, ValueError), None),
    ("complex", lambda a: a.astype(complex), TypeError, "complex"),
    ("complex64", lambda a: a.astype(np.complex64), TypeError, "complex"),
    ("datetime", lambda a: a.astype("datetime64[s]"), TypeError, "datetime"),
    ("timedelta", lambda a: a.astype("timedelta64[s]"), TypeError, "timedelta"),
    ("str", lambda a: a.astype(str), TypeError, "dtype"),
    ("bytes", lambda a: a.astype("S8"), TypeError, "dtype"),
    ("variable-width str", lambda a: a.astype(np.dtypes.StringDType()), TypeError, "dtype"),
    ("structured", struct, TypeError, "dtype"),
    ("objects", lambda a: np.full(a.shape, object()), TypeError, "not numbers"),
    ("one string among objects", lambda a: with_object(a, "1.5"), TypeError, "not numbers"),
    ("one bytes among objects", lambda a: with_object(a, b"1.5"), TypeError, "not numbers"),
    ("one complex among objects", lambda a: with_object(a, 1 + 2j), TypeError, "not numbers"),
    ("one complex64 among objects", lambda a: with_object(a, np.complex64(1j)), TypeError, "not numbers"),
    ("one date among objects", lambda a: with_object(a, np.datetime64("2020")), TypeError, "not numbers"),
    ("one list among objects", lambda a: with_object(a, [1.0]), TypeError, "not numbers"),
    ("one NaT among objects", lambda a: with_object(a, pd.NaT), TypeError, "not numbers"),
    ("strings", lambda a: a.astype(str).tolist(), TypeError, "strings"),
    ("frame of strings", lambda a: frame(a.astype(str)), TypeError, "not numbers|strings"),
    ("frame with dates", lambda a: pd.DataFrame(a).assign(d=pd.Timestamp(0)), TypeError, "column 'd'"),
    ("frame of dates", lambda a: frame(a.astype("datetime64[s]")), TypeError, "dates"),
    ("frame with words", lambda a: pd.DataFrame(a).assign(w="setosa"), TypeError, "'setosa'.*column 'w'"),
    ("frame with a category", with_category, TypeError, "'setosa'.*column 'w'"),
    ("frame with frames", lambda a: pd.DataFrame(a).assign(w=[pd.DataFrame()] * len(a)), TypeError, "'w'"),
    (
        "polars with words",
        lambda a: pl.DataFrame(np.atleast_2d(a)).with_columns(w=pl.lit("setosa")),
        TypeError,
        "'setosa'.*column 'w'",
    ),
    (
        "table with words",
        lambda a: pa.table({"v": a.ravel(), "w": ["setosa"] * a.size}),
        TypeError,
        "'setosa'.*column 'w'",
    ),
    (
        "lazy frame",
        lambda a: pl.DataFrame(np.atleast_2d(a)).lazy(),
        TypeError,
        r"LazyFrame; pass \w+\.col",
    ),
    ("AnnData", AnnData, TypeError, "adata.X or adata.layers"),
    ("dataset of xarray", Dataset, TypeError, "to_array"),
    ("frame of Spark", Spark, TypeError, "toPandas"),
    ("with a gradient", Gradient, TypeError, "detach"),
    ("object", lambda a: object(), TypeError, "type object"),
    ("class", lambda a: pd.DataFrame, TypeError, "is the class"),
    ("path", lambda a: Path("data.csv"), TypeError, "data.csv.*read the file"),
    ("class with an array interface", lambda a: np.ndarray, TypeError, "is the class"),
    ("data and labels", lambda a: (np.atleast_2d(a), np.arange(len(a))), ValueError, "shape.* row 1 has"),
    (
        "table of dates",
        lambda a: pa.table({"d": pa.array([0], pa.date32()), "v": [1]}),
        TypeError,
        "promoted",
    ),
    ("file", lambda a: io.StringIO("1,2"), TypeError, "read only once"),
    ("zip", lambda a: zip([1, 2], [3, 4], strict=True), TypeError, "is a zip"),
    ("module", lambda a: np, TypeError, "type module"),
    ("frame of numbers as words", lambda a: frame(a.astype(str)), TypeError, r"astype\(float\)"),
    ("list of dicts", lambda a: [{"x": 1.0}] * len(a), TypeError, "not numbers.*'x'"),
    ("list of names", lambda a: ["x", "y"], TypeError, "strings"),
    ("masked", lambda a: np.ma.masked_less(a, 0), TypeError, "masked"),
    ("masked, nothing hidden", np.ma.array, TypeError, "masked"),
    ("masked rows", masked_rows, TypeError, "masked"),
    ("device", Device, TypeError, "device"),
    ("cupy", Cupy, TypeError, "device"),
    ("ragged", ragged, ValueError, "rectangular"),
    ("dict", lambda a: {"a": 1.0}, TypeError, "is a dict"),
    ("set", lambda a: {1.0, 2.0}, TypeError, "is a set"),
    ("frozenset", lambda a: frozenset([1.0, 2.0]), TypeError, "is a frozenset"),
    ("generator", lambda a: (row for row in a), TypeError, "read only once"),
    ("string", lambda a: "X", TypeError, "is the string"),
    ("name of a file", lambda a: "data.csv", TypeError, "'data.csv'; read the file"),
    ("beyond float64", lambda a: a.astype(np.longdouble) * np.longdouble("1e4000"), ValueError, "infinite"),
    ("huge integer", lambda a: np.full(a.shape, 10**400, object).tolist(), ValueError, "number range"),
    ("sparse, complex", lambda a: sp.csr_array(np.atleast_2d(a).astype(complex)), TypeError, None),
    ("sparse, no rows", lambda a: sp.csr_array((0, a.shape[-1])), (ValueError, TypeError), None),
    ("sparse, 1-d", lambda a: sp.coo_array(a.ravel()), (ValueError, TypeError), None),
    ("operator, complex", lambda a: aslinearoperator(np.atleast_2d(a).astype(complex)), TypeError, None),
]


def bad_cells(a):
    """NaN and infinities in the first, a middle and the last cell, in several, and everywhere."""
    cells = {
        "first": (0,) * a.ndim, "middle": tuple(n // 2 for n in a.shape), "last": (-1,) * a.ndim,
        "column": (..., 2 % a.shape[-1]), "all": ...,
    }  # fmt: skip
    for value in (np.nan, np.inf, -np.inf):
        for name, cell in cells.items():
            bad = a.copy()
            bad[cell] = value
            yield f"{value} {name}", bad
    yield "nan as None", with_object(a, None)
    nullable = frame(a).astype("Float64")
    nullable.iloc[(1,) * a.ndim] = pd.NA
    yield "nan as NA", nullable
