"""Every kind of input that means no numbers: sparse matrices with a corrupt structure, and all else.

`BROKEN` and `BAD` make each from a float array of one or two dimensions; a new kind is one line here, and
then goes through every call of calls.py.
"""

import io
from pathlib import Path

import numpy as np
import scipy.sparse as sp
from kinds import Array, frame, ids, pa, pd, pl, wide_indices
from scipy.sparse.linalg import aslinearoperator


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
    ("None", lambda a: None, (TypeError, ValueError), None),
    ("complex", lambda a: a.astype(complex), TypeError, "complex"),
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
    ("one date among objects", lambda a: with_object(a, np.datetime64("2020")), TypeError, "not numbers"),
    ("one list among objects", lambda a: with_object(a, [1.0]), TypeError, "not numbers"),
    ("one NaT among objects", lambda a: with_object(a, pd.NaT), TypeError, "not numbers"),
    ("strings", lambda a: a.astype(str).tolist(), TypeError, "strings"),
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
    ("lazy frame", lambda a: pl.DataFrame(np.atleast_2d(a)).lazy(), TypeError, r"LazyFrame; pass \w+\.col"),
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
    ("records", lambda a: np.zeros(len(a), [("x", float)]), TypeError, "records.*; pandas.DataFrame"),
    ("masked", lambda a: np.ma.masked_less(a, 0), TypeError, "masked"),
    ("masked, nothing hidden", np.ma.array, TypeError, "masked"),
    ("masked rows", masked_rows, TypeError, "masked"),
    ("device", Device, TypeError, "device"),
    ("cupy", Cupy, TypeError, "device"),
    ("ragged", ragged, ValueError, "rectangular"),
    ("dict", lambda a: {"a": 1.0}, TypeError, "is a dict"),
    ("set", lambda a: {1.0, 2.0}, TypeError, "is a set"),
    ("generator", lambda a: (row for row in a), TypeError, "read only once"),
    ("string", lambda a: "X", TypeError, "is the string"),
    ("name of a file", lambda a: "data.csv", TypeError, "'data.csv'; read the file"),
    ("beyond float64", lambda a: a.astype(np.longdouble) * np.longdouble("1e4000"), ValueError, "infinite"),
    *[
        (
            f"too many digits, {kind.__name__}",
            lambda a, kind=kind: with_object(abs(a), 2**53 + 1).astype(kind),
            ValueError,
            r"1 integer beyond 2\*\*53 that float64 would round, the first 9007199254740993 at",
        )
        for kind in (np.int64, np.uint64, object)
    ],
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
