"""Every kind of array that a caller may have and that means numbers; bad_kinds.py has those that mean none.

`GOOD` and `SPARSE` make each from a float array of one or two dimensions; a new kind of input is one line
here, and then goes through every call of calls.py.
"""

import contextlib
import hashlib
import warnings
from fractions import Fraction

import numpy as np
import scipy.sparse as sp
from calls import numbers
from extras import optional
from numpy.testing import assert_allclose
from oracles import normal

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
    if hasattr(X, "A"):  # an operator of a matrix
        return parts(X.A)
    try:
        return [np.asarray(X)] if hasattr(X, "__array__") else []
    except (TypeError, RuntimeError):  # of a device, or of columns that have nothing in common
        return []


def fingerprint(X):
    if isinstance(X, dict):
        X = [*X.items()]
    if isinstance(X, (list, tuple)):
        if all(isinstance(x, (float, int, str, np.generic, type(None))) for x in X):
            return type(X), repr(X)
        inner = (list, tuple, dict)
        return type(X), [fingerprint(x) if isinstance(x, inner) or parts(x) else repr(x) for x in X]
    digest = hashlib.sha1()
    for a in parts(X):
        digest.update(f"{a.dtype} {a.shape}".encode())
        digest.update(repr(a.tolist()).encode() if a.dtype.hasobject else np.ascontiguousarray(a).tobytes())
    return digest.hexdigest()


@contextlib.contextmanager
def untouched(*arrays):
    """Not a byte of the arrays changes, whatever happens inside."""
    before = [fingerprint(a) for a in arrays]
    try:
        yield
    finally:
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


STEPS = {
    "n_iter",
    "n_starts",
    "n_ends",
    "n_best",
    "n_nodes",
    "objective",
    "free_energy",
    "columns",
    "questions",
    "reads",
}


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
            assert_allclose(value, b[name], rtol=tolerance, atol=tolerance * (size + 1e-300), err_msg=name)


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
    line = normal(3, sum(a.shape)).astype(a.dtype)
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
