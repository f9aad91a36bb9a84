"""A call of a C function of `spcacore._core` by the names of its arguments; and their frozen list."""

import ctypes
import importlib.util
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
from oracles import normal

from spcacore import _core, kernels

HERE = Path(__file__).resolve().parent
PXD = Path(_core.__file__).with_name("_core.pxd")
PXD = PXD if PXD.exists() else HERE.parent / "spcacore" / "_core.pxd"  # of an editable install

# Name and signature of each function; T is float or double. Packages compiled against an earlier version of
# this list must go on to work, so within a major version lines may be added at its end, never changed.
FROZEN = """
spca_truncate: int (Py_ssize_t, Py_ssize_t, T *, T *)
spca_soft_threshold: int (Py_ssize_t, T const *, T, T *)
spca_l1_threshold: int (Py_ssize_t, T const *, double, int, T *, T *, double *)
spca_varimax: int (Py_ssize_t, Py_ssize_t, double, Py_ssize_t, double, int (*)(void *), void *, T *, double *, double *, Py_ssize_t *)
spca_varimax_work: Py_ssize_t (Py_ssize_t, Py_ssize_t)
spca_deflate_hotelling: int (Py_ssize_t, T *, Py_ssize_t, T const *, T *, Py_ssize_t *)
spca_deflate_projection: int (Py_ssize_t, T *, Py_ssize_t, T const *, T *, Py_ssize_t *)
spca_deflate_schur: int (Py_ssize_t, T *, Py_ssize_t, T const *, T *, Py_ssize_t *)
spca_deflate_data_projection: int (Py_ssize_t, Py_ssize_t, T *, Py_ssize_t, int, T const *, T *, Py_ssize_t *)
spca_deflate_data_schur: int (Py_ssize_t, Py_ssize_t, T *, Py_ssize_t, int, T const *, T const *, T *, Py_ssize_t *)
spca_column_statistics: int (Py_ssize_t, Py_ssize_t, T const *, Py_ssize_t, int, double *, T *, double *)
spca_tpower_covariance: int (Py_ssize_t, T const *, Py_ssize_t, Py_ssize_t, int, Py_ssize_t, T, int (*)(void *), void *, T *, T *, Py_ssize_t *, T *, Py_ssize_t *)
spca_tpower_data: int (Py_ssize_t, Py_ssize_t, T const *, Py_ssize_t, int, T const *, T const *, Py_ssize_t, int, Py_ssize_t, T, int (*)(void *), void *, T *, T *, Py_ssize_t *, T *, Py_ssize_t *)
spca_refit_covariance: int (Py_ssize_t, T const *, Py_ssize_t, T *, T *, Py_ssize_t *, T *)
spca_refit_data: int (Py_ssize_t, Py_ssize_t, T const *, Py_ssize_t, int, T const *, T const *, T *, T *, Py_ssize_t *, T *)
spca_explained_covariance: int (Py_ssize_t, T const *, Py_ssize_t, Py_ssize_t, T const *, T *, T *)
spca_explained_data: int (Py_ssize_t, Py_ssize_t, T const *, Py_ssize_t, int, T const *, T const *, Py_ssize_t, T const *, T *, T *)
spca_pmd_covariance: int (Py_ssize_t, T const *, Py_ssize_t, double, int, Py_ssize_t, T, int (*)(void *), void *, T *, T *, Py_ssize_t *, T *, Py_ssize_t *)
spca_pmd_data: int (Py_ssize_t, Py_ssize_t, T const *, Py_ssize_t, int, T const *, T const *, double, int, Py_ssize_t, T, int (*)(void *), void *, T *, T *, Py_ssize_t *, T *, Py_ssize_t *)
spca_orthogonal_parts: int (Py_ssize_t, Py_ssize_t, T const *, T *, T *)
spca_components_covariance: int (Py_ssize_t, T const *, Py_ssize_t, Py_ssize_t, Py_ssize_t, int, int, Py_ssize_t, T, int (*)(void *), void *, void *, T *, T *, Py_ssize_t *)
spca_components_data: int (Py_ssize_t, Py_ssize_t, T const *, Py_ssize_t, int, T const *, T const *, Py_ssize_t, Py_ssize_t, int, int, Py_ssize_t, T, int (*)(void *), void *, void *, T *, T *, Py_ssize_t *)
spca_components_work: Py_ssize_t (Py_ssize_t, Py_ssize_t, Py_ssize_t, Py_ssize_t, int)
"""  # noqa: E501
STATUS = {f"SPCACORE_{status.name}": status.value for status in kernels.Status}
OK, NOT_CONVERGED, STOPPED, ZERO_VECTOR, NONFINITE, _, INVALID = kernels.Status
STOP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
DTYPES = [np.float64, np.float32]


def made_from_pxd():
    """The script that writes the header, and what it reads there."""
    spec = importlib.util.spec_from_file_location("interface", HERE.parent / "src_c" / "interface.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script, PXD.read_text(encoding="utf-8")


SCRIPT, TEXT = made_from_pxd()
ARGUMENTS = {
    name: {a.split()[-1].strip("*"): a for a in " ".join(arguments.split()).split(", ")}
    for _, _, name, arguments in SCRIPT.functions(TEXT)
}
CALLED = [name for name in ARGUMENTS if not name.endswith("_work")]


GUARDED = []


def scratch(size, dtype=np.float64):
    """An array of that size, behind which nothing may be written."""
    whole = np.full(size + 100, 77, dtype)
    GUARDED.append((whole, size))
    return whole[:size]


def padded(a, order, extra=3):
    """The matrix with lines `extra` entries further apart, as one flat array, and the leading dimension."""
    lines = a if order == "C" else a.T
    wide = np.full((lines.shape[0], lines.shape[1] + extra), np.nan, a.dtype)
    wide[:, : lines.shape[1]] = lines
    return wide


def work_sizes(name, n, p, k, r, varimax):
    """Lengths of `work` and `iwork`, as the .pxd says."""
    return {
        "truncate": (p, 0),
        "l1_threshold": (p, 0),
        "varimax": (varimax, 0),
        "orthogonal_parts": (p * r, 0),
        "deflate_hotelling": (p, p),
        "deflate_projection": (3 * p, p),
        "deflate_schur": (2 * p, p),
        "deflate_data_projection": (n + p, p),
        "deflate_data_schur": (n + 2 * p, p),
        "column_statistics": (3 * p, 0),
        "tpower_covariance": (6 * p, 2 * p),
        "tpower_data": (n + 5 * p, 2 * p),
        "pmd_covariance": (5 * p, 2 * p),
        "pmd_data": (n + 4 * p, 2 * p),
        "refit_covariance": (k * k + 28 * k + 2 * p, p + 12 * k),
        "refit_data": (k * k + 28 * k + n * k + p, p + 12 * k),
        "explained_covariance": (p * (2 * r + 2), 0),
        "explained_data": (p * (2 * r + 1) + n, 0),
    }.get(name, (0, 0))


DOUBLE = "column_statistics", "varimax"  # whose scratch is double in both precisions


def prepared(name, dtype=np.float64, order="C", **given):
    """A call that gives the status, and its arrays by name; arguments that are not given are usual ones.

    X (n, p) and A (p, p) are given as matrices, and V and Y by rows, r of them.
    """
    library = kernels.float64 if dtype == np.float64 else kernels.float32
    rows = given.get("V", given.get("Y"))
    n, p = (
        len(given.get("X", ())),
        next(given[a] for a in ("X", "A", "x", "a", "V", "Y") if a in given).shape[-1],
    )
    sizes = {
        "n": n,
        "p": p,
        "k": 2,
        "r": 2 if rows is None else len(rows),
        "ld": 0,
        "stop": None,
        "ctx": None,
    }
    values = {
        **sizes, "tol": 1e-14 if dtype == np.float64 else 1e-6, "max_iter": 1000, "nonnegative": 0,
        "row_major": order == "C", "gamma": 1.0, "deflation": 2, "thorough": 1, "level": 0.5, "bound": 1.5,
        **{argument: value for argument, value in given.items() if not isinstance(value, np.ndarray)},
    }  # fmt: skip
    k, r = np.count_nonzero(given["x"]) if name.startswith("refit") else values["k"], max(values["r"], 0)
    work, iwork = work_sizes(name, n, p, k, r, library.varimax_work(p, r))
    variances = p if name == "column_statistics" else r
    lengths = {
        "work": work,
        "iwork": iwork,
        "R": r * r,
        "Q": p * r,
        "V": p * r,
        "mean": p,
        "variance": variances,
        "out": p,
        "w": p,
    }
    out = SimpleNamespace()
    for argument, declared in ARGUMENTS[name].items():
        if declared == "void *work":
            size = library.components_work(n, p, r, min(max(k, 1), p), values["thorough"])
            values[argument] = scratch(-(-size // 8)).ctypes.data
        elif argument in ("X", "A"):
            wide = values[argument] = padded(np.asarray(given[argument], dtype), order)
            values["ld"] = given.get("ld", wide.shape[1])
            vars(out)[argument] = wide[:, :-3] if order == "C" else wide[:, :-3].T
        elif given.get(argument) is not None and "*" in declared and argument != "stop":
            values[argument] = vars(out)[argument] = np.array(given[argument], dtype, order="C")
        elif argument in ("mean", "weight") and "const" in declared:
            values[argument] = None
        elif "*" in declared and argument != "ctx":
            double = declared.startswith("double") or (
                argument == "work" and name in ("column_statistics", "varimax")
            )
            real = np.intp if declared.startswith("Py") else np.float64 if double else dtype
            values[argument] = vars(out)[argument] = scratch(lengths.get(argument, 1), real)
    return partial(getattr(library, name), *(values[argument] for argument in ARGUMENTS[name])), out


def run(name, *args, **given):
    """The arrays, and the status."""
    call, out = prepared(name, *args, **given)
    out.status = call()
    return out


def found(name, x, *args, **given):
    """(status, value, x) of a search from x."""
    out = run(name, *args, x=x, **given)
    return out.status, float(out.value[0]), out.x


def unit_vector(p, j):
    return np.eye(p)[j]


def data(n, p, dtype=np.float64, seed=0):
    X = normal(seed, n, p) * np.linspace(2, 1, p) + 3
    return X.astype(dtype)
