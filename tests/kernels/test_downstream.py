"""The C functions of `spcacore._core`, as other packages call them: from Cython, C, C++, ctypes and numba."""

import ctypes
import doctest
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import threading
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_turn import examples
from oracles import covariance, optimum

import spcacore
from spcacore import _core, datasets, explained_variance, kernels, l1_threshold, sparse_pca

HERE = Path(__file__).resolve().parents[1]
PAGE = HERE.parent / "docs" / "developer" / "downstream.md"
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


def exported():
    """Signature by name; of the fused ones by the names that every version of Cython gives them."""
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return {name: name_of(c).decode() for name, c in _core.__pyx_capi__.items() if "[" not in name}


def frozen():
    signatures = {}
    for line in FROZEN.split("\n")[1:-1]:
        name, signature = line.split(": ")
        if not re.search(r"\bT\b", signature):
            signatures[name] = signature
        else:
            for i, real in enumerate(("float", "double")):
                signatures[f"__pyx_fuse_{i}{name}"] = re.sub(r"\bT\b", real, signature)
    return signatures


def test_signatures_are_frozen():
    assert exported() == frozen(), (
        "The C functions that other packages were compiled against have changed. Give what is new another "
        "name, and add its line to FROZEN; a line may go only with a new major version."
    )
    in_order = [line.split(":")[0].removeprefix("spca_") for line in FROZEN.split("\n")[1:-1]]
    assert list(ARGUMENTS) == in_order  # of the table in the header


def test_statuses_are_frozen():
    named = dict(re.findall(r"^    (SPCACORE_\w+) = (-?\d+)", TEXT.partition("cdef enum:\n\n")[0], re.M))
    assert {name: named[name] for name in STATUS} == {name: str(code) for name, code in STATUS.items()}


# ---- one call of a function, by the names of its arguments --------------------------------------------


GUARDED = []


def scratch(size, dtype=np.float64):
    """An array of that size, behind which nothing may be written."""
    whole = np.full(size + 100, 77, dtype)
    GUARDED.append((whole, size))
    return whole[:size]


@pytest.fixture(autouse=True)
def nothing_is_written_behind_scratch():
    GUARDED.clear()
    yield
    for whole, size in GUARDED:
        assert (whole[size:] == 77).all(), size


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
    X = np.random.default_rng(seed).standard_normal((n, p)) * np.linspace(2, 1, p) + 3
    return X.astype(dtype)


# ---- what each promises: functions x conditions --------------------------------------------------------

RNG = np.random.default_rng(0)
N, P, R = 6, 4, 2
X = RNG.standard_normal((N, P))
USUAL = {
    "X": X,
    "A": X.T @ X,
    "mean": X.mean(axis=0),
    "weight": np.array([1, 2, 0.5, 1]),
    "a": RNG.standard_normal(P),
    "x": np.array([0.6, 0.8, 0, 0]),
    "V": RNG.standard_normal((R, P)),
    "Y": RNG.standard_normal((R, P)),
}
DEFLATIONS = [name for name in CALLED if name.startswith("deflate")]
SEARCHES = [name for name in CALLED if name.startswith(("tpower", "pmd"))]
WRITTEN = {"X", "A", "x", "V", "Y"}  # where it is no input alone, which the call may not change either


def usual(name, **changed):
    """Arguments of the function that it takes, its arrays by name."""
    inputs = {
        a: v
        for a, v in USUAL.items()
        if any(a == x and ("const" in d or a in "XAxY") for x, d in ARGUMENTS[name].items())
    }
    if name == "truncate":
        inputs["x"] = USUAL["a"]
    return {**inputs, **{a: v for a, v in changed.items() if a in ARGUMENTS[name]}}


ENDED = dict.fromkeys(SEARCHES, ZERO_VECTOR)
TOLD = {name: STOPPED for name in CALLED if "stop" in ARGUMENTS[name]}
SAYS_STOP = STOP(lambda _: 1)
CONDITIONS = {  # what is changed, and the statuses that are not OK
    "nothing": ({}, {}),
    "x zero": ({"x": np.zeros(P)}, {**ENDED, "refit_covariance": ZERO_VECTOR, "refit_data": ZERO_VECTOR}),
    "x of one variable": ({"x": unit_vector(P, 1)}, {}),
    "x nearly underflows": ({"x": np.array([3e-45, 3e-45, 0, 0])}, {}),
    "A zero": ({"A": np.zeros((P, P)), "X": np.tile(USUAL["mean"], (N, 1))}, ENDED),
    "A negative": ({"A": -np.eye(P) - 1}, {}),
    "one sample": ({"X": X[:1]}, {}),
    "one sample, about itself": ({"X": X[:1], "mean": X[0], "A": np.zeros((P, P))}, ENDED),
    "entries nearly overflow": (
        {"A": 1e37 * USUAL["A"], "X": 1e18 * X, "mean": 0 * X[0], "weight": np.ones(P)},
        {},
    ),
    "entries nearly underflow": ({"A": 1e-37 * USUAL["A"], "X": 1e-18 * X, "mean": 0 * X[0]}, {}),
    "loadings zero": ({"V": np.zeros((R, P)), "Y": np.zeros((R, P))}, {}),
    "loadings in one line": ({"V": np.ones((R, P)), "Y": np.ones((R, P))}, {}),
    "no loadings": ({"V": np.zeros((0, P))}, {}),
    "all variables": ({"k": P, "bound": 9.0, "r": P, "V": np.eye(P), "Y": np.eye(P)}, {}),
    "no iteration": ({"max_iter": 0}, dict.fromkeys((*SEARCHES, "varimax"), NOT_CONVERGED)),
    "stop says so": ({"stop": SAYS_STOP}, TOLD),
}


@pytest.mark.parametrize("name", CALLED)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_status(name, condition):
    changed, promised = CONDITIONS[condition]
    for dtype in DTYPES:
        for order in "CF":
            out = run(name, dtype, order, **usual(name, **changed))
            assert out.status == promised.get(name, OK), (dtype, order)
            if out.status < 0:
                for argument in WRITTEN & set(vars(out)) & set(usual(name)):
                    np.testing.assert_array_equal(
                        getattr(out, argument), usual(name, **changed)[argument].astype(dtype)
                    )


OUT_OF_RANGE = {
    "n": [0],
    "p": [0, -1],
    "ld": [1],
    "k": [0, P + 1],
    "r": [-1, P + 1],
    "bound": [0.5, np.nan],
    "tol": [-1, np.nan],
    "max_iter": [-1],
    "level": [-1, np.nan],
    "gamma": [-1, np.inf],
    "deflation": [0, 4],
    ("truncate", "p"): [-1],
    ("truncate", "k"): [-1, P + 1],
    ("soft_threshold", "p"): [-1],
    ("varimax", "r"): [0, -1],
}


@pytest.mark.parametrize("name", CALLED)
def test_what_is_out_of_range_or_not_finite_is_refused_and_nothing_is_changed(name):
    """NaN in an entry that the function needs, wherever that is: x is not zero in the first two variables."""
    given = usual(name)
    refused = [
        ({argument: value}, INVALID)
        for argument, declared in ARGUMENTS[name].items()
        if "*" not in declared
        for value in OUT_OF_RANGE.get((name, argument), OUT_OF_RANGE.get(argument, ()))
    ]
    for argument, array in given.items():
        for bad, place in ((np.nan, 0), (np.inf, 1), (-np.inf, 0)):
            spoiled = array.copy()
            spoiled.flat[place] = bad
            refused.append(({argument: spoiled}, NONFINITE))
    assert len(refused) >= 4
    for changed, status in refused:
        for dtype in DTYPES:
            for order in "CF":
                out = run(name, dtype, order, **{**given, **changed})
                assert out.status == status, (changed, dtype, order)
                for argument, array in {**given, **changed}.items():
                    if isinstance(array, np.ndarray):
                        np.testing.assert_array_equal(getattr(out, argument), array.astype(dtype))


def test_schur_deflation_of_data_is_refused_before_a_column_is_changed():
    for order in "CF":
        out = run("deflate_data_schur", order=order, X=np.array([[3, np.nan], [3, 2]]), x=np.array([1.0, 0]))
        assert out.status == NONFINITE
        np.testing.assert_array_equal(out.X, [[3, np.nan], [3, 2]])


def stack_used(call):
    """Bytes of stack below the frame that makes a call, in a thread of its own."""
    room, near, out = 1 << 18, 2048, []
    libc = ctypes.CDLL(None)
    libc.getcontext.argtypes = [ctypes.c_void_p]

    def body():
        context = ctypes.create_string_buffer(4096)
        libc.getcontext(context)
        pointer = int.from_bytes(context.raw[160:168], sys.byteorder)  # rsp, of x86-64
        ctypes.memset(pointer - room, 0x5A, room - near)
        call()
        left = ctypes.string_at(pointer - room, room)
        out.append(room - (len(left) - len(left.lstrip(b"\x5a"))))

    before = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    return out[0]


@pytest.mark.skipif(
    not (sys.platform == "linux" and os.uname().machine == "x86_64"), reason="reads a register of x86-64"
)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", CALLED)
def test_stack(name, dtype):
    """At most 16 KB, of what searches, selections and products of every size take."""
    n, p, r = 240, 130, 4
    rng = np.random.default_rng(0)
    long, V = rng.standard_normal(20000), rng.standard_normal((r, p))
    large = {
        "X": data(n, p),
        "mean": np.ones(p),
        "weight": np.ones(p),
        "V": V,
        "Y": V,
        "a": long,
        "bound": 3.0,
    }
    large.update(A=covariance(large["X"]), x=V[0] / np.linalg.norm(V[0]), max_iter=9)
    changes = [{"k": 5}, {"k": 60, "thorough": 0}, {"k": p, "r": 1}]
    if name == "truncate":
        changes = [{"x": long[:size], "k": k} for size in (130, 3000, 20000) for k in (9, size // 4)]
    elif "a" in ARGUMENTS[name]:
        changes = [{"a": long[:size]} for size in (130, 3000, 20000)]
    elif name.startswith("refit"):
        changes = [{"x": np.where(np.arange(p) < k, large["x"], 0)} for k in (5, 60, p)]
    used = []
    for changed in changes if "k" in ARGUMENTS[name] or "x" in changes[0] or "a" in changes[0] else [{}]:
        for order in "CF" if "X" in ARGUMENTS[name] else "C":
            given = usual(name, **{**large, **changed})
            used.append(stack_used(prepared(name, dtype, order, **given)[0]))
    assert max(used) <= 16384


# ---- the functions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_component_from_every_start_is_the_optimum(dtype):
    A = datasets.load_pitprops().correlation.astype(dtype)
    p, tight = len(A), 1e-6 if dtype == np.float32 else 1e-12
    for k in (1, 4, 6):
        best = 0
        for j in range(p):
            status, value, x = found("tpower_covariance", unit_vector(p, j), dtype, A=A, k=k)
            assert status == OK
            assert np.count_nonzero(x) <= k
            assert value == pytest.approx(x @ A @ x, rel=10 * tight)
            assert x[np.argmax(abs(x))] > 0
            status, better, x = found("refit_covariance", x, dtype, A=A)
            assert status == OK
            assert better >= value * (1 - 1e-6)
            support = np.flatnonzero(x)
            assert better == pytest.approx(np.linalg.eigvalsh(A[np.ix_(support, support)])[-1], rel=1e-5)
            best = max(best, better)
        assert best == pytest.approx(optimum(A.astype(np.float64), k), rel=tight)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("scaled", [False, True])
def test_data_and_their_covariance_agree(dtype, order, scaled):
    X = data(50, 12, dtype)
    given = {"X": X, "mean": X.mean(axis=0, dtype=np.float64)}
    if scaled:
        given["weight"] = 1 / X.std(axis=0, ddof=1)
    A, tight = covariance(X, scale=scaled), 1e-5 if dtype == np.float32 else 1e-12
    for search, limit in (("tpower", {"k": 5}), ("pmd", {"bound": 1.7})):
        status, value, x = found(f"{search}_data", unit_vector(12, 3), dtype, order, **given, **limit)
        expected = found(f"{search}_covariance", unit_vector(12, 3), A=A, **limit)
        assert (status, value) == (OK, pytest.approx(expected[1], rel=100 * tight))
        np.testing.assert_array_equal(np.flatnonzero(x), np.flatnonzero(expected[2]))
    status, value, x = found("refit_data", x, dtype, order, **given)
    support = np.flatnonzero(x)
    values, vectors = np.linalg.eigh(A[np.ix_(support, support)])
    assert (status, value) == (OK, pytest.approx(values[-1], rel=tight))
    np.testing.assert_allclose(abs(x[support]), abs(vectors[:, -1]), atol=20 * tight)


SIZES = [*((np.float64, 10.0**e) for e in (-280, -140, 140, 280)), (np.float32, 1e-30), (np.float32, 1e30)]


@pytest.mark.parametrize(("dtype", "size"), SIZES)
def test_entries_of_any_size(dtype, size):
    X, size, start = data(30, 8, dtype), dtype(size), unit_vector(8, 0)
    mean, A = X.mean(axis=0), covariance(X).astype(dtype)
    status, expected, y = found("tpower_data", start, dtype, X=X, mean=mean, k=3)
    assert status == OK
    tight = 1e-4 if dtype == np.float32 else 1e-12
    status, value, x = found("tpower_data", start, dtype, X=X * size, mean=mean * size, k=3)
    with np.errstate(over="ignore", under="ignore"):
        assert (status, value) == (OK, pytest.approx(float(dtype(expected) * size * size), rel=tight, abs=0))
    np.testing.assert_allclose(x, y, rtol=tight)
    status, value, z = found("tpower_covariance", start, dtype, A=A * size, k=3)
    assert (status, value) == (OK, pytest.approx(expected * float(size), rel=tight, abs=0))
    np.testing.assert_allclose(z, y, rtol=tight)


def blocks(seed, count):
    """Symmetric matrices of small integers, of any definiteness, some of whose variables have zeros alone."""
    rng = np.random.default_rng(seed)
    for kind in range(count):
        p = int(rng.integers(1, 7))
        B = rng.integers(-2, 3, (p, p)).astype(np.float64)
        A = (B + B.T, B @ B.T, -(B @ B.T), np.zeros((p, p)))[kind % 4]
        without = rng.random(p) < 0.4
        A[without] = A[:, without] = 0
        yield A, rng.standard_normal(p) * (rng.random(p) < 0.8)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_are_the_best_of_a_support_in_any_matrix(dtype):
    tight = 1e-4 if dtype == np.float32 else 1e-10
    for A, start in blocks(0, 400):
        support = np.flatnonzero(start)
        status, value, x = found("refit_covariance", start, dtype, A=A)
        if len(support) == 0:
            assert status == ZERO_VECTOR
            continue
        best = np.linalg.eigvalsh(A[np.ix_(support, support)])[-1]
        assert (status, value) == (OK, pytest.approx(best, abs=tight))
        assert np.linalg.norm(x) == pytest.approx(1, rel=tight)
        assert x @ A @ x == pytest.approx(best, abs=tight)
        without = ~A[np.ix_(support, support)].any(axis=0)
        assert not x[start == 0].any()
        assert best <= tight or not x[support[without]].any()
    for zero in (np.diag([-1.0, 0, 0]), np.array([[-1, 0.5, 0], [0.5, -1, 0], [0, 0, 0]])):
        status, value, x = found("refit_covariance", np.ones(3), dtype, A=zero)
        assert (status, value) == (OK, 0)
        np.testing.assert_array_equal(x, np.eye(3)[1 if zero[1, 1] == 0 else 2])


@pytest.mark.parametrize("dtype", DTYPES)
def test_loadings_nearly_in_the_span_of_others(dtype):
    A = np.diag(np.array([1, 1e6, 1], dtype))
    for small in (2e-3, 1e-7, 1e-12):
        V = np.array([[1, 0, 0], [1, small, 0], [3, small, 0]])
        out = run("explained_covariance", dtype, A=A, V=V)
        assert out.status == OK
        np.testing.assert_array_equal(out.variance, [1, 1e6, 0])
        np.testing.assert_array_equal(run("orthogonal_parts", dtype, V=V).Q, [1, 0, 0, 0, 1, 0, 0, 0, 0])
    for norm in (np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max):
        V = np.array([[norm, norm, 0]], dtype)
        assert run("explained_covariance", dtype, A=A, V=V).variance == pytest.approx(
            [(1 + 1e6) / 2], rel=1e-6
        )


@pytest.mark.parametrize("dtype", DTYPES)
def test_loadings_in_the_span_of_others_but_for_rounding(dtype):
    """As many count as the rank says, of loadings of which the last are sums of the first, rounded."""
    rng, eps = np.random.default_rng(1), np.finfo(dtype).eps
    for t in range(60):
        p, r = int(rng.integers(12, 200)), int(rng.integers(2, 8))
        V = rng.standard_normal((r, p)) * (rng.random((r, p)) < (0.5, 1.0)[t % 2])
        V[1] = V[0] + eps ** rng.uniform(0, 0.6) * V[1]
        V = V.astype(dtype)
        sums = (rng.standard_normal((3, r)).astype(dtype) @ V).astype(dtype)
        out = run("explained_covariance", dtype, A=np.eye(p), V=np.vstack([V, sums]))
        assert out.status == OK
        np.testing.assert_allclose(out.variance, [1] * r + [0] * 3, atol=1e-5)


def test_one_sample():
    X, x = np.array([[3.0, 4.0]]), unit_vector(2, 0)
    assert found("tpower_data", x, X=X)[:2] == (OK, pytest.approx(25))
    assert found("refit_data", np.ones(2), X=X)[:2] == (OK, pytest.approx(25))
    assert run("explained_data", X=X, V=np.eye(2)).variance == pytest.approx([9, 16])
    assert run("explained_data", X=X, V=np.eye(2), mean=X[0]).variance == pytest.approx([0, 0])
    out = run("column_statistics", X=X)
    assert (out.mean.tolist(), out.variance.tolist()) == ([3, 4], [0, 0])


def test_nonnegative_components():
    A, x = -np.ones((6, 6)) + 7 * np.eye(6), unit_vector(6, 2)
    for name in SEARCHES[::2]:
        status, value, x = found(name, x, A=A, k=3, nonnegative=1)
        assert (status, value) == (OK, pytest.approx(6))
        assert (x >= 0).all()


def test_what_stops_a_search_and_what_goes_on():
    A, x, asked = covariance(data(40, 30)), unit_vector(30, 0), []
    for name in SEARCHES[::2]:
        first = run(name, A=A, x=x, k=10, max_iter=1)
        assert (first.status, first.n_iter) == (NOT_CONVERGED, 1)
        status, better, _ = found(name, first.x, A=A, k=10)
        assert (status, better > first.value) == (OK, True)
        asked.clear()
        at_the_third = STOP(lambda _: asked.append(1) or len(asked) == 3)
        assert found(name, x, A=A, k=10, stop=at_the_third)[0] == STOPPED
        assert len(asked) == 3


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_column_statistics(dtype, order):
    X = data(700, 9, dtype)
    X[:, 4] = 1 / 3
    out = run("column_statistics", dtype, order, X=X)
    assert out.status == OK
    np.testing.assert_allclose(out.mean, X.mean(axis=0, dtype=np.float64), rtol=1e-6)
    np.testing.assert_allclose(out.variance, X.astype(np.float64).var(axis=0, ddof=1), rtol=1e-12, atol=1e-28)
    assert out.variance[4] == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["covariance", "C", "F"])
def test_explained_variance_of_a_span(dtype, kind):
    X = data(40, 10, dtype)
    A, V = covariance(X), np.random.default_rng(1).standard_normal((10, 4))
    V[:, 2] = V[:, 0] - 2 * V[:, 1]  # adds nothing
    if kind == "covariance":
        out = run("explained_covariance", dtype, A=A, V=V.T)
    else:
        out = run("explained_data", dtype, kind, X=X, mean=X.mean(axis=0, dtype=np.float64), V=V.T)
    assert out.status == OK
    Q = np.linalg.qr(V[:, [0, 1, 3]])[0]
    expected = np.insert(np.diag(Q.T @ A @ Q), 2, 0)
    np.testing.assert_allclose(out.variance, expected, rtol=2e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_deflations(dtype):
    X = data(40, 9, dtype)
    A, B, mean = covariance(X), X.astype(np.float64), X.mean(axis=0, dtype=np.float64)
    v, tight = np.zeros(9), 1e-5 if dtype == np.float32 else 1e-13
    v[[1, 4, 8]] = np.array([2, -1, 2]) / 3
    Pv, w, u = np.eye(9) - np.outer(v, v), A @ v, (B - mean) @ v
    for name, expected in {
        "hotelling": A - v @ w * np.outer(v, v),
        "projection": Pv @ A @ Pv,
        "schur": A - np.outer(w, w) / (v @ w),
    }.items():
        out = run(f"deflate_{name}", dtype, A=A, x=v)
        assert out.status == OK
        np.testing.assert_allclose(out.A, expected, atol=tight)
    for order in "CF":
        out = run("deflate_data_projection", dtype, order, X=X, x=v)
        np.testing.assert_allclose(out.X, B @ Pv, atol=9 * tight)
        out = run("deflate_data_schur", dtype, order, X=X, x=v, mean=mean)
        np.testing.assert_allclose(out.X, B - np.outer(u, u @ B) / (u @ u), atol=9 * tight)


@pytest.mark.parametrize("data_form", [False, True])
def test_schur_deflation_removes_small_variances(data_form):
    """Down to rounding of the largest, not to a share of it."""
    size = np.array([1, 1e-4, 1e-8])
    for j in range(3):
        if data_form:
            out = run(
                "deflate_data_schur", X=np.vstack([np.diag(np.sqrt(size)), np.zeros(3)]), x=unit_vector(3, j)
            )
        else:
            out = run("deflate_schur", A=np.diag(size), x=unit_vector(3, j))
        assert out.status == OK
        left = ((out.X if data_form else out.A) != 0).any(axis=0)
        assert left.tolist() == [i != j for i in range(3)]


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.integers(1, 30), st.data())
@settings(max_examples=examples(30), derandomize=True, deadline=None)
def test_thresholds(dtype, p, draw):
    a = np.random.default_rng(draw.draw(st.integers(0, 1000))).integers(-4, 5, p).astype(dtype)
    k = draw.draw(st.integers(0, p))
    expected, kept = np.zeros(p), np.sort(np.argsort(-abs(a), kind="stable")[:k])
    expected[kept] = a[kept]
    np.testing.assert_array_equal(run("truncate", dtype, x=a, k=k).x, expected)

    out, call = a.copy(), {np.float64: kernels.float64, np.float32: kernels.float32}[dtype]
    assert call.soft_threshold(p, out, 1.5, out) == OK
    np.testing.assert_array_equal(out, np.sign(a) * np.maximum(abs(a) - 1.5, 0))

    bound = draw.draw(st.floats(1, 6))
    if a.any():
        out = run("l1_threshold", dtype, a=a, bound=bound)
        assert out.status == OK
        assert np.linalg.norm(out.w) == pytest.approx(1, rel=1e-6)
        assert abs(out.w).sum() <= min(bound, np.sqrt(p)) * (1 + 1e-6)
        best = l1_threshold(a.astype(np.float64), min(bound, np.sqrt(p)))[0]
        assert a @ out.w == pytest.approx(a @ best, rel=1e-5)
        in_place = a.copy()
        assert call.l1_threshold(p, in_place, bound, 0, scratch(p, dtype), in_place, out.level) == OK
        np.testing.assert_array_equal(in_place, out.w)


@pytest.mark.parametrize("dtype", DTYPES)
def test_varimax(dtype):
    p, r = 20, 3
    simple = np.kron(np.eye(r), np.ones((p // r + 1, 1)))[:p]
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((r, r)))[0]
    start = (simple @ turn).T.astype(dtype)
    out = run("varimax", dtype, Y=start, tol=1e-6)
    R = out.R.reshape(r, r)
    assert out.status == OK
    np.testing.assert_allclose(np.sort(abs(out.Y.T), axis=1), np.sort(simple, axis=1), atol=1e-4)
    np.testing.assert_allclose(R @ R.T, np.eye(r), atol=1e-12)
    np.testing.assert_allclose(start.T @ R.T, out.Y.T, atol=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_several_components_by_one_call(dtype):
    """Those of `sparse_pca`, of data and of their covariance; fewer where the rank is less."""
    rng, tight = np.random.default_rng(3), 1e-10 if dtype == np.float64 else 1e-4
    for shape, k in (((30, 12), 3), ((50, 60), 5), ((6, 20), 4)):
        X = rng.standard_normal(shape) * np.linspace(3, 1, shape[1])
        X = X.astype(dtype)
        A, mean, r = covariance(X).astype(dtype), X.mean(axis=0, dtype=np.float64), 7 if shape[0] == 6 else 3
        for code, deflation in enumerate(("hotelling", "projection", "schur"), 1):
            expected = sparse_pca(A, min(r, shape[0] - 1), k, kind="covariance", deflation=deflation)
            for name, matrix in (("covariance", {"A": A}), ("data", {"X": X, "mean": mean})):
                out = run(f"components_{name}", dtype, **matrix, r=r, k=k, deflation=code, max_iter=300)
                V = out.V.reshape(r, -1)
                rank = int(out.count[0])
                assert out.status == OK
                assert (V[rank:] == 0).all()
                assert rank == (min(r, shape[0] - 1) if deflation == "schur" else r)
                same = min(rank, expected.loadings.shape[1])
                np.testing.assert_allclose(V[:same].T, expected.loadings[:, :same], atol=100 * tight)
                np.testing.assert_allclose(
                    out.variance[:same], expected.explained_variance[:same], rtol=10 * tight
                )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(30, 12), (12, 30), (2, 9)])
@pytest.mark.parametrize(("deflation", "code"), [("projection", 2), ("schur", 3)])
def test_one_start_is_the_loop_of_the_page(shape, deflation, code, dtype):
    """The same from the functions of single steps, of more and of fewer samples than variables."""
    rng, (n, p), r, k = np.random.default_rng(5), shape, 3, 4
    X = (rng.standard_normal(shape) * np.linspace(3, 1, p)).astype(dtype)
    mean, weight = X.mean(axis=0, dtype=np.float64), 1 + rng.random(p)
    tight = 1e-9 if dtype == np.float64 else 1e-3
    for order in "CF":
        left = (X - mean) * weight
        given = {"X": X, "mean": mean, "weight": weight, "r": r, "k": k, "deflation": code}
        out = run("components_data", dtype, order, **given, thorough=0)
        rank = min(r, n - 1) if deflation == "schur" else r
        assert (out.status, out.count[0]) == (OK, rank)
        for v in out.V.reshape(r, p)[:rank]:
            start = unit_vector(p, np.argmax((left**2).sum(axis=0)))
            x = found("tpower_data", start, dtype, order, X=left, k=k)[2]
            x = found("refit_data", x, dtype, order, X=left)[2]
            np.testing.assert_allclose(v, x, atol=tight)
            left = run(f"deflate_data_{deflation}", dtype, order, X=left, x=x).X
        V = out.V.reshape(r, p)[:rank]
        explained = run("explained_data", dtype, order, X=X, mean=mean, weight=weight, V=V)
        np.testing.assert_allclose(out.variance[:rank], explained.variance, rtol=tight)
        spoiled = np.where(np.arange(p) == p - 1, np.nan, X)
        assert run("components_data", dtype, order, **{**given, "X": spoiled}, thorough=0).status == NONFINITE


def test_a_component_is_the_best():
    """Of few variables, the thorough search finds the optimum; from one start it is at most that."""
    for seed in range(30):
        A = covariance(data(15, 10, seed=seed))
        best = optimum(A, 3)
        out, one = (run("components_covariance", A=A, r=1, k=3, thorough=thorough) for thorough in (1, 0))
        assert out.variance[0] == pytest.approx(best, rel=1e-12)
        assert one.variance[0] <= best * (1 + 1e-12)


def test_orthogonal_deflation():
    """By the last of the orthogonal parts: what is left is orthogonal to the span of the loadings."""
    A = covariance(data(40, 8))
    x, y = np.eye(8)[:2] * 0.6 + np.eye(8)[1:3] * 0.8
    B = run("deflate_projection", A=A, x=x).A
    q = run("orthogonal_parts", V=np.array([x, y])).Q.reshape(2, 8)[1]
    C = run("deflate_projection", A=np.array(B), x=q).A
    Q = np.linalg.qr(np.array([x, y]).T)[0]
    np.testing.assert_allclose(C, (np.eye(8) - Q @ Q.T) @ A @ (np.eye(8) - Q @ Q.T), atol=1e-13)


# ---- other packages ----------------------------------------------------------------------------------


def block(language, contains):
    """The one code block of the page that contains a text."""
    (text,) = (
        b
        for b in re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
        if contains in b
    )
    return text


def test_the_page_shows_the_package_that_is_tested():
    for name, contains in (("_many", "cdef int one"), ("_starts", "on_stop")):
        source = (HERE / "downstream" / "manypca" / f"{name}.pyx").read_text(encoding="utf-8")
        assert block("cython", contains) == source
    assert block("meson", "extension_module") == (HERE / "downstream" / "meson.build").read_text(
        encoding="utf-8"
    )
    assert block("c", "PyMODINIT_FUNC") == (HERE / "downstream" / "keep.c").read_text(encoding="utf-8")
    names = set(re.findall(r"`(spca_\w+)`", PAGE.read_text(encoding="utf-8")))
    assert names == {line.split(":")[0] for line in FROZEN.split("\n") if line.startswith("spca_")}


def test_the_examples_of_the_page():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 3
    assert result.failed == 0


def test_numba():
    pytest.importorskip("numba", reason="numba is not installed")
    scope = {}
    exec(block("python", "import numba"), scope)
    rows = np.random.default_rng(0).standard_normal((50, 40))
    expected = rows.copy()
    for row in expected:
        row[np.argsort(-abs(row), kind="stable")[3:]] = 0
    for wrong in (rows.astype(np.float32), np.asfortranarray(rows), rows[:, ::2]):
        before = wrong.copy()
        with pytest.raises(TypeError, match="No matching definition"):
            scope["truncate_rows"](wrong, 3)
        np.testing.assert_array_equal(wrong, before)
    assert scope["truncate_rows"](rows, 3) == OK
    np.testing.assert_array_equal(rows, expected)
    assert scope["truncate_rows"](np.full((1, 4), np.nan), 3) == NONFINITE
    with pytest.raises(scope["numba"].TypingError, match="ArrayCTypes"):  # without a signature, too
        scope["numba"].njit(scope["truncate_rows"].py_func)(rows.astype(np.float32), 3)


def test_arrays_of_the_wrong_kind_are_refused():
    a, work = np.arange(4.0), np.zeros(4)
    constant = a.copy()
    constant.flags.writeable = False
    for wrong, message in (
        (a.astype(np.float32), "an array of float64 is needed, not one of float32"), (a[::2], "side by side"),
        (a[::-1], "side by side"), (constant, "read-only"), ([1.0, 2.0], "an array of float64 is needed"),
    ):  # fmt: skip
        with pytest.raises(ctypes.ArgumentError, match=message):
            kernels.float64.truncate(2, 1, wrong, work)
    assert kernels.float64.soft_threshold(4, constant, 1.0, work) == OK
    assert work.tolist() == [0, 0, 1, 2]
    with pytest.raises(AttributeError, match=r"no kernel 'trunkate', but .* truncate"):
        kernels.float64.trunkate  # noqa: B018


NEWER = "int (*dadded)(spcacore_int p);\n} spcacore_table;"


@pytest.mark.parametrize(
    ("compiler", "change", "works"),
    [
        ("cc", (r"", ""), True),
        ("c++", (r"", ""), True),
        ("cc", (r"    int \(\*spmd_covariance\).*?(?=\} spcacore_table)", ""), True),
        ("cc", (r"\} spcacore_table;", NEWER), False),
        ("cc", (r"TABLE_VERSION 1", "TABLE_VERSION 2"), False),
    ],
    ids=["C", "C++", "built with an older table", "built with a newer table", "of another version"],
)
def test_an_extension_in_c(compiler, change, works, tmp_path):
    """What was built with a header before some functions were added works, and what asks for more says so."""
    headers = Path(sysconfig.get_path("include"))
    if not (shutil.which(compiler) and (headers / "Python.h").exists()):
        pytest.skip(f"{compiler} and the headers of Python are needed")
    header = SCRIPT.for_c(TEXT)
    changed = re.sub(*change, header, flags=re.S) if change[0] else header
    assert (changed == header) == (change[0] == "")
    (tmp_path / "spcacore.h").write_text(changed, encoding="utf-8")
    language = ["-x", "c++"] if compiler == "c++" else ["-std=c11", "-Wpedantic"]
    built = tmp_path / f"keep{sysconfig.get_config_var('EXT_SUFFIX')}"
    command = [
        compiler,
        *language,
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-missing-field-initializers",
        "-shared",
        "-fPIC",
    ]
    paths = [f"-I{headers}", f"-I{tmp_path}", str(HERE / "downstream" / "keep.c"), "-o", str(built)]
    done = subprocess.run([*command, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    spec = importlib.util.spec_from_file_location("keep", built)
    if not works:
        with pytest.raises(ImportError, match="built for a table of spcacore of version"):
            importlib.util.module_from_spec(spec)
        return
    keep = importlib.util.module_from_spec(spec).keep
    row = np.array([3.0, -5.0, 4.0])
    assert (keep(row, 1), keep(row, 4)) == (OK, INVALID)
    assert row.tolist() == [0, -5, 0]


def test_the_header_is_where_it_says():
    """But of an editable install, which has none."""
    if Path(_core.__file__).with_name("_core.pxd").exists():
        assert (Path(kernels.get_include()) / "spcacore.h").read_text(encoding="utf-8") == SCRIPT.for_c(TEXT)
    else:
        with pytest.raises(FileNotFoundError, match="editable"):
            kernels.get_include()


# ---- many matrices -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["data", "covariance", "scaled"])
def test_components_of_each_are_those_of_one(kind, dtype):
    """Those of `sparse_pca`, and the same bits alone, among others and by any number of threads."""
    X = np.stack([data(30, 15, dtype, seed) for seed in range(20)])
    X[:, :, 3] = 0.1  # constant
    tight, options = 1e-9 if dtype == np.float64 else 1e-3, {"scale": True} if kind == "scaled" else {}
    if kind == "covariance":
        X, options = np.stack([covariance(x).astype(dtype) for x in X]), {"kind": kind}
    for thorough, method in ((True, "tpower"), (False, spcacore.TPower(start="diagonal"))):
        results = []
        for threads in (1, 2, 3):
            with spcacore.limit_threads(threads):
                results.append(kernels.sparse_pca_each(X, 3, 4, thorough=thorough, **options))
        results.append(kernels.sparse_pca_each(X[4:], 3, 4, thorough=thorough, **options))
        for result in results[1:]:
            for got, first in zip(result, results[0], strict=True):
                np.testing.assert_array_equal(got, first[-len(got) :])
        for i, x in enumerate(X if thorough or kind != "scaled" else []):  # where all variances are 1
            expected = sparse_pca(x, 3, 4, method=method, **options)
            for name in ("loadings", "explained_variance", "total_variance", "mean", "scale"):
                known, got = getattr(expected, name), getattr(results[0], name)[i]
                if known is not None:
                    np.testing.assert_allclose(got, known, rtol=tight, atol=100 * tight, err_msg=name)


def test_what_each_refuses():
    X = np.ones((3, 5, 4))
    X[:2] = data(10, 4).reshape(2, 5, 4)
    result = kernels.sparse_pca_each(X, 2)
    assert result.n_components.tolist() == [2, 2, 0]
    assert not result.loadings[2].any()
    huge = X.copy()
    huge[1, 0, 0] = 1e308
    huge[1, 1, 0] = -1e308
    for arguments, message in (
        ((X[0], 2), "X must have 3 dimensions"),
        ((X, 5), "n_components"),
        ((X, 2, 5), "cardinality"),
        ((huge, 1), "matrix 1 of X leaves"),
        ((np.full((2, 2, 2), np.nan), 1), "NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            kernels.sparse_pca_each(*arguments)
    for options, message in (({"kind": "covariance"}, "square"), ({"deflation": "naive"}, "deflation")):
        with pytest.raises(ValueError, match=message):
            kernels.sparse_pca_each(X, 1, **options)


@pytest.fixture(scope="module")
def manypca(tmp_path_factory):
    """The package in tests/downstream, built against the spcacore that is installed."""
    for module in ("mesonpy", "Cython"):
        pytest.importorskip(module, reason=f"{module} is needed to build a Cython package")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if not (shutil.which("ninja", path=path) and shutil.which("meson", path=path)):
        pytest.skip("meson and ninja are needed to build a Cython package")
    if not PXD.exists() or PXD.parent == HERE.parent / "spcacore":
        pytest.skip("Cython finds no .pxd in an editable install")
    place = tmp_path_factory.mktemp("downstream")
    source = shutil.copytree(HERE / "downstream", place / "source")
    command = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index"]
    done = subprocess.run(
        [*command, "--target", str(place / "site"), str(source)],
        capture_output=True, text=True, cwd=place, env={**os.environ, "PATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(place / "site"))
    import manypca

    yield manypca
    sys.path.remove(str(place / "site"))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
def test_a_package_that_runs_the_kernels_in_its_own_loop(manypca, dtype):
    m, n, p, k, r = 40, 40, 20, 5, 3
    X = np.stack([data(n, p, dtype, seed) for seed in range(m)])
    loadings, variance = manypca.components(X, r, k)
    assert loadings.dtype == variance.dtype == dtype
    tight = 1e-12 if dtype == np.float64 else 1e-4
    for i in range(m):
        expected = sparse_pca(X[i], r, cardinality=k, method=spcacore.TPower(start="diagonal", tol=1e-8))
        np.testing.assert_array_equal(loadings[i] != 0, expected.loadings != 0)
        np.testing.assert_allclose(loadings[i], expected.loadings, atol=tight)
        np.testing.assert_allclose(variance[i], explained_variance(X[i], loadings[i]), rtol=tight)
    for n_threads in (2, 3):
        again, variance_again = manypca.components(X, r, k, n_threads=n_threads)
        np.testing.assert_array_equal(again, loadings)
        np.testing.assert_array_equal(variance_again, variance)


@pytest.mark.slow
def test_a_package_hears_of_statuses(manypca):
    X = data(20, 6)[None].copy()
    with pytest.raises(ValueError, match="matrix 1 has no 2 components: status -2"):
        manypca.components(np.concatenate([X, np.ones_like(X)]), 2, 3)
    X[0, 3, 2] = np.nan
    with pytest.raises(ValueError, match="status -3"):
        manypca.components(X, 2, 3)


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
sys.path.insert(0, sys.argv[1])
from manypca._starts import best_value

A = np.random.default_rng(0).standard_normal((600, 600))
A = A @ A.T
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    best_value(np.kron(A, np.eye(2)), 300, int(sys.argv[2]))
except KeyboardInterrupt:
    print("interrupted", end=" ")
print(best_value(np.diag([1.0, 3.0, 2.0]), 1))
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_ends_a_package_s_loop(manypca, n_threads):
    """By the exception of the handler, in the thread that called; and the next call works."""
    site = str(Path(manypca.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, site, str(n_threads)],
        capture_output=True, text=True, timeout=60, cwd=site,  # where no source hides what is installed
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted 3.0\n", "")
