"""The C functions of `spcacore._core`, as other packages call them: by cimport, ctypes and numba."""

import ctypes
import doctest
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_turn import examples
from oracles import covariance, optimum

from spcacore import _core, datasets, explained_variance, l1_threshold, sparse_pca

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "downstream.md"
PXD = Path(_core.__file__).with_name("_core.pxd")

# Name and signature of each function; T is float or double. Packages compiled against an earlier version of
# this list must go on to work, so within a major version lines may be added to it, never changed or removed.
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
"""  # noqa: E501
STATUS = {
    "SPCACORE_OK": 0,
    "SPCACORE_NOT_CONVERGED": 1,
    "SPCACORE_STOPPED": -1,
    "SPCACORE_ZERO_VECTOR": -2,
    "SPCACORE_NONFINITE": -3,
    "SPCACORE_LAPACK_FAILED": -5,
    "SPCACORE_INVALID": -6,
}
OK, NOT_CONVERGED, STOPPED, ZERO_VECTOR, NONFINITE, _, INVALID = STATUS.values()

capsule_name = ctypes.pythonapi.PyCapsule_GetName
capsule_name.restype, capsule_name.argtypes = ctypes.c_char_p, [ctypes.py_object]
capsule_pointer = ctypes.pythonapi.PyCapsule_GetPointer
capsule_pointer.restype, capsule_pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
STOP = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
NO_STOP = ctypes.cast(None, STOP)
DTYPES = [np.float64, np.float32]


def exported():
    """Signature by name; of the fused ones by the names that every version of Cython gives them."""
    api = _core.__pyx_capi__
    return {name: capsule_name(c).decode() for name, c in api.items() if "[" not in name}


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


def test_statuses_are_frozen():
    text = PXD.read_text(encoding="utf-8")
    assert {
        name: int(code) for name, code in re.findall(r"^    (SPCACORE_\w+) = (-?\d+)", text, re.M)
    } == STATUS


def function(name, dtype=np.float64):
    """The C function as ctypes sees it; arrays are passed as they are."""
    fused = f"__pyx_fuse_{int(dtype == np.float64)}{name}"
    capsule = _core.__pyx_capi__[fused if fused in _core.__pyx_capi__ else name]
    signature = capsule_name(capsule)
    result, arguments = re.fullmatch(r"(\w+) \((.*)\)", signature.decode()).groups()
    plain = {
        "int": ctypes.c_int,
        "Py_ssize_t": ctypes.c_ssize_t,
        "double": ctypes.c_double,
        "float": ctypes.c_float,
    }
    types = [
        STOP if a == "int (*)(void *)" else ctypes.c_void_p if a.endswith("*") else plain[a]
        for a in arguments.split(", ")
    ]
    address = capsule_pointer(capsule, signature)
    call = ctypes.CFUNCTYPE(plain[result], *types)(address)

    def run(*values):
        return call(*[v.ctypes.data if isinstance(v, np.ndarray) else v for v in values])

    return run


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


def padded(a, order, extra):
    """The matrix with lines `extra` entries further apart, as one flat array, and the leading dimension."""
    lines = a if order == "C" else a.T
    wide = np.full((lines.shape[0], lines.shape[1] + extra), np.nan, a.dtype)
    wide[:, : lines.shape[1]] = lines
    return wide, wide.shape[1]


def back(wide, order, length):
    lines = wide[:, :length]
    return lines if order == "C" else lines.T


def tpower(X, kind, x, k, *, order="C", mean=None, weight=None, nonnegative=0, max_iter=1000, stop=NO_STOP):
    """(status, value, n_iter); x is overwritten."""
    n, p = X.shape
    wide, ld = padded(X, order, 3)
    size = {"covariance": 6 * p, "data": n + 5 * p}[kind]
    work, iwork = scratch(size, X.dtype), scratch(2 * p, np.intp)
    value, n_iter = np.empty(1, X.dtype), np.empty(1, np.intp)
    matrix = (p, wide, ld) if kind == "covariance" else (n, p, wide, ld, order == "C", mean, weight)
    tol = 1e-14 if X.dtype == np.float64 else 1e-6
    status = function(f"spca_tpower_{kind}", X.dtype)(
        *matrix, k, nonnegative, max_iter, tol, stop, None, x, work, iwork, value, n_iter
    )
    return status, float(value[0]), int(n_iter[0])


def refit(X, kind, x, *, order="C", mean=None, weight=None):
    n, p = X.shape
    k = np.count_nonzero(x)
    wide, ld = padded(X, order, 2)
    work = scratch(k * k + 28 * k + {"covariance": 2 * p, "data": n * k + p}[kind], X.dtype)
    iwork, value = scratch(p + 13 * k, np.intp), np.empty(1, X.dtype)
    matrix = (p, wide, ld) if kind == "covariance" else (n, p, wide, ld, order == "C", mean, weight)
    status = function(f"spca_refit_{kind}", X.dtype)(*matrix, x, work, iwork, value)
    return status, float(value[0])


def unit_vector(p, j, dtype=np.float64):
    x = np.zeros(p, dtype)
    x[j] = 1
    return x


def data(n, p, dtype=np.float64, seed=0):
    X = np.random.default_rng(seed).standard_normal((n, p)) * np.linspace(2, 1, p) + 3
    return X.astype(dtype)


# ---- the functions -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
def test_one_component_from_every_start_is_the_optimum(dtype):
    A = datasets.load_pitprops().correlation.astype(dtype)
    p = len(A)
    for k in (1, 4, 6):
        best = 0
        for j in range(p):
            x = unit_vector(p, j, dtype)
            status, value, _ = tpower(A, "covariance", x, k)
            assert status == OK
            assert np.count_nonzero(x) <= k
            assert value == pytest.approx(x @ A @ x, rel=1e-5 if dtype == np.float32 else 1e-13)
            assert x[np.argmax(abs(x))] > 0
            status, better = refit(A, "covariance", x)
            assert status == OK
            assert better >= value * (1 - 1e-6)
            support = np.flatnonzero(x)
            assert better == pytest.approx(np.linalg.eigvalsh(A[np.ix_(support, support)])[-1], rel=1e-5)
            best = max(best, better)
        assert best == pytest.approx(
            optimum(A.astype(np.float64), k), rel=1e-6 if dtype == np.float32 else 1e-12
        )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("scaled", [False, True])
def test_data_and_their_covariance_agree(dtype, order, scaled):
    X = data(50, 12, dtype)
    mean = X.mean(axis=0, dtype=np.float64).astype(dtype)
    weight = (1 / X.std(axis=0, ddof=1)).astype(dtype) if scaled else None
    A = covariance(X, scale=scaled)
    x, y = unit_vector(12, 3, dtype), unit_vector(12, 3)
    status, value, _ = tpower(X, "data", x, 5, order=order, mean=mean, weight=weight)
    expected = tpower(A, "covariance", y, 5)
    tight = 1e-5 if dtype == np.float32 else 1e-12
    assert (status, value) == (OK, pytest.approx(expected[1], rel=tight))
    np.testing.assert_array_equal(np.flatnonzero(x), np.flatnonzero(y))
    status, value = refit(X, "data", x, order=order, mean=mean, weight=weight)
    support = np.flatnonzero(x)
    values, vectors = np.linalg.eigh(A[np.ix_(support, support)])
    assert (status, value) == (OK, pytest.approx(values[-1], rel=tight))
    np.testing.assert_allclose(abs(x[support]), abs(vectors[:, -1]), atol=20 * tight)


SIZES = [*((np.float64, 10.0**e) for e in (-280, -140, 140, 280)), (np.float32, 1e-30), (np.float32, 1e30)]


@pytest.mark.parametrize(("dtype", "size"), SIZES)
def test_entries_of_any_size(dtype, size):
    X, size = data(30, 8, dtype), dtype(size)
    mean, A = X.mean(axis=0), covariance(X).astype(dtype)
    x, y, z = (unit_vector(8, 0, dtype) for _ in range(3))
    status, expected, _ = tpower(X, "data", y, 3, mean=mean)
    assert status == OK
    tight = 1e-4 if dtype == np.float32 else 1e-12
    status, value, _ = tpower(X * size, "data", x, 3, mean=mean * size)
    with np.errstate(over="ignore", under="ignore"):
        assert (status, value) == (OK, pytest.approx(float(dtype(expected) * size * size), rel=tight, abs=0))
    np.testing.assert_allclose(x, y, rtol=tight)
    status, value, _ = tpower(A * size, "covariance", z, 3)
    assert (status, value) == (OK, pytest.approx(expected * float(size), rel=tight, abs=0))
    np.testing.assert_allclose(z, y, rtol=tight)


def test_variables_without_variance_get_no_loading():
    rng = np.random.default_rng(0)
    for _ in range(100):  # LAPACK leaves rounding there in one of three
        A = covariance(rng.standard_normal((8, 7)))
        without = rng.permutation(7)[: rng.integers(1, 6)]
        A[without] = A[:, without] = 0
        x = rng.standard_normal(7)
        status, value = refit(A, "covariance", x)
        assert (status, value) == (OK, pytest.approx(np.linalg.eigvalsh(A)[-1]))
        assert not x[without].any()


def test_nonnegative_components():
    A = -np.ones((6, 6)) + 7 * np.eye(6)
    x = unit_vector(6, 2)
    status, value, _ = tpower(A, "covariance", x, 3, nonnegative=1)
    assert (status, value) == (OK, pytest.approx(6))
    assert (x >= 0).all()


def test_what_stops_a_search_and_what_goes_on():
    A = covariance(data(40, 30))
    x = unit_vector(30, 0)
    status, value, n_iter = tpower(A, "covariance", x, 10, max_iter=1)
    assert (status, n_iter) == (NOT_CONVERGED, 1)
    status, better, _ = tpower(A, "covariance", x, 10)  # from there
    assert (status, better > value) == (OK, True)
    asked = []

    def at_the_third(_):
        asked.append(1)
        return len(asked) == 3

    assert tpower(A, "covariance", unit_vector(30, 0), 10, stop=STOP(at_the_third))[0] == STOPPED
    assert len(asked) == 3


def test_zero_and_not_finite():
    A = covariance(data(40, 10))
    for matrix, start in ((A, np.zeros(10)), (np.zeros((10, 10)), unit_vector(10, 0))):
        x = start.copy()
        assert tpower(matrix, "covariance", x, 3)[0] == ZERO_VECTOR
        np.testing.assert_array_equal(x, start)
    assert refit(A, "covariance", np.zeros(10))[0] == ZERO_VECTOR
    for bad in (np.nan, np.inf):
        B = A.copy()
        B[0, 1] = B[1, 0] = bad
        x = unit_vector(10, 0)
        assert tpower(B, "covariance", x, 3)[0] == NONFINITE
        X = data(20, 10)
        X[4, 0] = bad
        assert tpower(X, "data", x, 3)[0] == NONFINITE
        wide, ld = padded(X, "C", 0)
        mean, variance, work = np.empty(10), np.empty(10), np.empty(30)
        assert function("spca_column_statistics")(20, 10, wide, ld, 1, work, mean, variance) == NONFINITE


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_column_statistics(dtype, order):
    n = 700
    X = data(n, 9, dtype)
    X[:, 4] = 1 / 3
    wide, ld = padded(X, order, 5)
    mean, variance, work = scratch(9, dtype), scratch(9), scratch(27)
    assert function("spca_column_statistics", dtype)(n, 9, wide, ld, order == "C", work, mean, variance) == OK
    np.testing.assert_allclose(mean, X.mean(axis=0, dtype=np.float64), rtol=1e-6)
    np.testing.assert_allclose(variance, X.astype(np.float64).var(axis=0, ddof=1), rtol=1e-12, atol=1e-28)
    assert variance[4] == 0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", ["covariance", "C", "F"])
def test_explained_variance_of_a_span(dtype, kind):
    X = data(40, 10, dtype)
    A = covariance(X)
    V = np.random.default_rng(1).standard_normal((10, 4))
    V[:, 2] = V[:, 0] - 2 * V[:, 1]  # adds nothing
    loadings, variance = np.ascontiguousarray(V.T, dtype), np.empty(4, dtype)
    if kind == "covariance":
        wide, ld = padded(A.astype(dtype), "C", 1)
        work = scratch(10 * 6, dtype)
        status = function("spca_explained_covariance", dtype)(10, wide, ld, 4, loadings, work, variance)
    else:
        wide, ld = padded(X, kind, 1)
        mean, work = X.mean(axis=0, dtype=np.float64).astype(dtype), scratch(10 * 5 + 40, dtype)
        status = function("spca_explained_data", dtype)(
            40, 10, wide, ld, kind == "C", mean, None, 4, loadings, work, variance
        )
    assert status == OK
    Q = np.linalg.qr(V[:, [0, 1, 3]])[0]
    expected = np.insert(np.diag(Q.T @ A @ Q), 2, 0)
    np.testing.assert_allclose(variance, expected, rtol=2e-5 if dtype == np.float32 else 1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("method", ["hotelling", "projection", "schur"])
def test_deflated_covariance(method, dtype):
    A = covariance(data(40, 9)).astype(dtype)
    x = np.zeros(9, dtype)
    x[[1, 4, 8]] = np.array([2, -1, 2]) / 3
    wide, ld = padded(A, "C", 2)
    lengths = {"hotelling": 9, "projection": 27, "schur": 18}
    work, iwork = scratch(lengths[method], dtype), scratch(9, np.intp)
    assert function(f"spca_deflate_{method}", dtype)(9, wide, ld, x, work, iwork) == OK
    B, v = A.astype(np.float64), x.astype(np.float64)
    P = np.eye(9) - np.outer(v, v)
    expected = {
        "hotelling": B - v @ B @ v * np.outer(v, v),
        "projection": P @ B @ P,
        "schur": B - np.outer(B @ v, B @ v) / (v @ B @ v),
    }[method]
    np.testing.assert_allclose(back(wide, "C", 9), expected, atol=1e-5 if dtype == np.float32 else 1e-13)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("order", ["C", "F"])
def test_deflated_data(order, dtype):
    X = data(30, 7, dtype)
    x = np.zeros(7, dtype)
    x[[0, 6]] = 0.6, -0.8
    B, v, mean = X.astype(np.float64), x.astype(np.float64), X.mean(axis=0)
    tight = 1e-5 if dtype == np.float32 else 1e-13
    work, iwork = scratch(30 + 7, dtype), scratch(7, np.intp)
    wide, ld = padded(X, order, 1)
    call = function("spca_deflate_data_projection", dtype)
    assert call(30, 7, wide, ld, order == "C", x, work, iwork) == OK
    length = 7 if order == "C" else 30
    np.testing.assert_allclose(back(wide, order, length), B - np.outer(B @ v, v), atol=tight * 9)
    wide, ld = padded(X, order, 1)
    call, work = function("spca_deflate_data_schur", dtype), scratch(30 + 14, dtype)
    assert call(30, 7, wide, ld, order == "C", mean, x, work, iwork) == OK
    u = (B - B.mean(axis=0)) @ v
    u /= np.linalg.norm(u)
    np.testing.assert_allclose(back(wide, order, length), B - np.outer(u, u @ B), atol=tight * 9)


@pytest.mark.parametrize("dtype", DTYPES)
@given(st.integers(1, 30), st.data())
@settings(max_examples=examples(30), derandomize=True, deadline=None)
def test_thresholds(dtype, p, draw):
    seed = draw.draw(st.integers(0, 1000))
    a = np.random.default_rng(seed).integers(-4, 5, p).astype(dtype)
    k, work = draw.draw(st.integers(0, p)), scratch(p, dtype)
    x = a.copy()
    assert function("spca_truncate", dtype)(p, k, x, work) == OK
    kept = np.sort(np.argsort(-abs(a), kind="stable")[:k])
    expected = np.zeros(p)
    expected[kept] = a[kept]
    np.testing.assert_array_equal(x, expected)

    out = a.copy()
    assert function("spca_soft_threshold", dtype)(p, out, 1.5, out) == OK
    np.testing.assert_array_equal(out, np.sign(a) * np.maximum(abs(a) - 1.5, 0))

    bound, level, w = draw.draw(st.floats(1, 6)), np.empty(1), np.empty(p, dtype)
    if a.any():
        assert function("spca_l1_threshold", dtype)(p, a, bound, 0, work, w, level) == OK
        assert np.linalg.norm(w) == pytest.approx(1, rel=1e-6)
        assert abs(w).sum() <= min(bound, np.sqrt(p)) * (1 + 1e-6)
        best = l1_threshold(a.astype(np.float64), min(bound, np.sqrt(p)))[0]
        assert a @ w == pytest.approx(a @ best, rel=1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
def test_varimax(dtype):
    p, r = 20, 3
    simple = np.kron(np.eye(r), np.ones((p // r + 1, 1)))[:p]
    turn = np.linalg.qr(np.random.default_rng(0).standard_normal((r, r)))[0]
    Y, R = np.ascontiguousarray((simple @ turn).T, dtype), np.empty((r, r))
    n_iter, start = np.empty(1, np.intp), Y.T.astype(np.float64)
    work = scratch(function("spca_varimax_work")(p, r))
    call = function("spca_varimax", dtype)
    assert call(p, r, 1.0, 100, 1e-6, NO_STOP, None, Y, work, R, n_iter) == OK
    np.testing.assert_allclose(np.sort(abs(Y.T), axis=1), np.sort(simple, axis=1), atol=1e-4)
    np.testing.assert_allclose(R @ R.T, np.eye(r), atol=1e-12)
    np.testing.assert_allclose(start @ R.T, Y.T, atol=1e-5)
    assert call(p, r, 1.0, 0, 1e-6, NO_STOP, None, Y, work, R, n_iter) in (OK, NOT_CONVERGED)


A1, X1, BUFFER, INDEX = np.eye(4), np.ones((5, 4)), np.ones(500), np.empty(100, np.intp)
REST = (9, 1e-8, NO_STOP, None, BUFFER, BUFFER, INDEX, BUFFER, INDEX)
BAD = [
    ("spca_truncate", (4, 5, BUFFER, BUFFER)),
    ("spca_truncate", (4, -1, BUFFER, BUFFER)),
    ("spca_soft_threshold", (4, BUFFER, -1.0, BUFFER)),
    ("spca_soft_threshold", (4, BUFFER, np.nan, BUFFER)),
    ("spca_l1_threshold", (4, BUFFER, 0.5, 0, BUFFER, BUFFER, BUFFER)),
    ("spca_l1_threshold", (0, BUFFER, 1.5, 0, BUFFER, BUFFER, BUFFER)),
    ("spca_varimax", (4, 0, 1.0, 9, 1e-6, NO_STOP, None, BUFFER, BUFFER, BUFFER, INDEX)),
    ("spca_varimax", (4, 1, -1.0, 9, 1e-6, NO_STOP, None, BUFFER, BUFFER, BUFFER, INDEX)),
    ("spca_varimax", (4, 1, np.inf, 9, 1e-6, NO_STOP, None, BUFFER, BUFFER, BUFFER, INDEX)),
    *[(f"spca_deflate_{m}", (4, A1, 3, BUFFER, BUFFER, INDEX)) for m in ("hotelling", "projection", "schur")],
    ("spca_deflate_data_projection", (5, 4, X1, 4, 0, BUFFER, BUFFER, INDEX)),
    ("spca_deflate_data_schur", (5, 4, X1, 3, 1, None, BUFFER, BUFFER, INDEX)),
    ("spca_column_statistics", (0, 4, X1, 4, 1, BUFFER, BUFFER, BUFFER)),
    (
        "spca_tpower_covariance",
        (4, A1, 4, 0, 0, *REST),
    ),
    (
        "spca_tpower_covariance",
        (4, A1, 4, 5, 0, *REST),
    ),
    (
        "spca_tpower_covariance",
        (4, A1, 4, 2, 0, 9, -1.0, *REST[2:]),
    ),
    ("spca_tpower_data", (5, 4, X1, 3, 1, None, None, 2, 0, *REST)),
    ("spca_refit_covariance", (4, A1, 2, BUFFER, BUFFER, INDEX, BUFFER)),
    ("spca_refit_data", (5, 4, X1, 4, 0, None, None, BUFFER, BUFFER, INDEX, BUFFER)),
    ("spca_explained_covariance", (4, A1, 4, 5, BUFFER, BUFFER, BUFFER)),
    ("spca_explained_data", (5, 4, X1, 4, 1, None, None, -1, BUFFER, BUFFER, BUFFER)),
]


@pytest.mark.parametrize(("name", "arguments"), BAD, ids=[name for name, _ in BAD])
def test_sizes_out_of_range_are_refused_before_anything_is_done(name, arguments):
    assert function(name)(*arguments) == INVALID
    assert (BUFFER == 1).all()
    assert (np.eye(4) == A1).all()


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
    source = (HERE / "downstream" / "manypca" / "_many.pyx").read_text(encoding="utf-8")
    assert block("cython", "cdef int one") == source
    assert block("meson", "extension_module") == (HERE / "downstream" / "meson.build").read_text(
        encoding="utf-8"
    )
    names = set(re.findall(r"`(spca_\w+)`", PAGE.read_text(encoding="utf-8")))
    assert names == {line.split(":")[0] for line in FROZEN.split("\n") if line.startswith("spca_")}


def test_the_examples_of_the_page():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 3
    assert result.failed == 0


def test_numba():
    pytest.importorskip("numba", reason="numba is not installed")
    scope = {}
    exec(block("python", "get_cython_function_address"), scope)
    rows = np.random.default_rng(0).standard_normal((50, 40))
    expected = rows.copy()
    for row in expected:
        row[np.argsort(-abs(row), kind="stable")[3:]] = 0
    scope["truncate_rows"](rows, 3)
    np.testing.assert_array_equal(rows, expected)


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
        expected = sparse_pca(X[i], r, cardinality=k, start="diagonal", tol=1e-8)
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
