"""The C functions of `spcacore._core`, as other packages call them: by cimport, ctypes and numba."""

import ctypes
import doctest
import os
import re
import shutil
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from in_turn import examples
from oracles import covariance, optimum

import spcacore
from spcacore import _core, datasets, explained_variance, l1_threshold, sparse_pca

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "developer" / "downstream.md"
PXD = Path(_core.__file__).with_name("_core.pxd")
PXD = PXD if PXD.exists() else HERE.parent / "spcacore" / "_core.pxd"  # of an editable install

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
    iwork, value = scratch(p + 12 * k, np.intp), np.empty(1, X.dtype)
    matrix = (p, wide, ld) if kind == "covariance" else (n, p, wide, ld, order == "C", mean, weight)
    status = function(f"spca_refit_{kind}", X.dtype)(*matrix, x, work, iwork, value)
    return status, float(value[0])


def explained(X, kind, V, *, order="C", mean=None):
    """(status, variances) of the rows of V."""
    (n, p), r = X.shape, len(V)
    wide, ld = padded(X, order, 1)
    work = scratch({"covariance": p * (2 * r + 2), "data": p * (2 * r + 1) + n}[kind], X.dtype)
    matrix = (p, wide, ld) if kind == "covariance" else (n, p, wide, ld, order == "C", mean, None)
    variance = scratch(r, X.dtype)
    status = function(f"spca_explained_{kind}", X.dtype)(*matrix, r, np.ascontiguousarray(V), work, variance)
    return status, variance


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
    for A, x in blocks(0, 400):
        x, support, before = x.astype(dtype), np.flatnonzero(x), x.astype(dtype)
        status, value = refit(A.astype(dtype), "covariance", x)
        if len(support) == 0:
            assert status == ZERO_VECTOR
            continue
        best = np.linalg.eigvalsh(A[np.ix_(support, support)])[-1]
        assert (status, value) == (OK, pytest.approx(best, abs=tight))
        assert np.linalg.norm(x) == pytest.approx(1, rel=tight)
        assert x @ A @ x == pytest.approx(best, abs=tight)
        assert not x[before == 0].any()
    for zero in (np.diag([-1.0, 0, 0]), np.array([[-1, 0.5, 0], [0.5, -1, 0], [0, 0, 0]])):
        x = np.array([1.0, 1, 1], dtype)
        assert refit(zero.astype(dtype), "covariance", x) == (OK, 0)
        np.testing.assert_array_equal(x, np.eye(3)[1 if zero[1, 1] == 0 else 2])


@pytest.mark.parametrize("dtype", DTYPES)
def test_loadings_nearly_in_the_span_of_others(dtype):
    A = np.diag(np.array([1, 1e6, 1], dtype))
    for small in (2e-3, 1e-7, 1e-12):
        V = np.array([[1, 0, 0], [1, small, 0], [3, small, 0]], dtype)
        status, variance = explained(A, "covariance", V)
        assert status == OK
        np.testing.assert_array_equal(variance, [1, 1e6, 0])
    for norm in (np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max):
        V = np.array([[norm, norm, 0]], dtype)
        assert explained(A, "covariance", V)[1] == pytest.approx([(1 + 1e6) / 2], rel=1e-6)


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
        status, variance = explained(np.eye(p, dtype=dtype), "covariance", np.vstack([V, sums]))
        assert status == OK
        np.testing.assert_allclose(variance, [1] * r + [0] * 3, atol=1e-5)


def test_one_sample():
    X, V = np.array([[3.0, 4.0]]), np.eye(2)
    x, y = unit_vector(2, 0), unit_vector(2, 0)
    assert tpower(X, "data", x, 2)[:2] == (OK, pytest.approx(25))
    assert tpower(X, "data", y, 2, mean=X[0])[0] == ZERO_VECTOR
    assert refit(X, "data", x) == (OK, pytest.approx(25))
    assert explained(X, "data", V)[1] == pytest.approx([9, 16])
    assert explained(X, "data", V, mean=X[0])[1] == pytest.approx([0, 0])
    mean, variance = np.empty(2), np.empty(2)
    assert function("spca_column_statistics")(1, 2, X, 2, 1, scratch(6), mean, variance) == OK
    assert (mean.tolist(), variance.tolist()) == ([3, 4], [0, 0])


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
    loadings, mean = np.ascontiguousarray(V.T, dtype), X.mean(axis=0, dtype=np.float64).astype(dtype)
    if kind == "covariance":
        status, variance = explained(A.astype(dtype), kind, loadings)
    else:
        status, variance = explained(X, "data", loadings, order=kind, mean=mean)
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


@pytest.mark.parametrize("data_form", [False, True])
def test_schur_deflation_removes_small_variances(data_form):
    """Down to rounding of the largest, not to a share of it."""
    size = np.array([1, 1e-4, 1e-8])
    for j in range(3):
        x, work, iwork = unit_vector(3, j), scratch(10), scratch(3, np.intp)
        if data_form:
            A = np.vstack([np.diag(np.sqrt(size)), np.zeros(3)])
            done = function("spca_deflate_data_schur")(4, 3, A, 3, 1, None, x, work, iwork)
        else:
            A = np.diag(size)
            done = function("spca_deflate_schur")(3, A, 3, x, work, iwork)
        assert done == OK
        left = (A != 0).any(axis=0)
        assert left.tolist() == [i != j for i in range(3)]


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


def finite_arguments():
    """Of each function: arguments that it takes, and the positions of arrays that must be finite."""
    rng = np.random.default_rng(0)
    n, p, r = 6, 4, 2
    X, V, Y = rng.standard_normal((n, p)), rng.standard_normal((r, p)), rng.standard_normal((r, p))
    A, a, x, m = X.T @ X, rng.standard_normal(p), np.array([0.6, 0.8, 0, 0]), X.mean(axis=0)

    def work():
        return np.zeros(300)

    def places():
        return np.zeros(100, np.intp)

    search = (2, 0, 9, 1e-8, NO_STOP, None, x, work(), places(), work(), places())
    varimax = (p, r, 1.0, 9, 1e-6, NO_STOP, None, Y, work(), work(), places())
    yield "spca_truncate", (p, 2, a, work()), [2]
    yield "spca_soft_threshold", (p, a, 0.5, work()), [1]
    yield "spca_soft_threshold", (p, a, 0.5, a), [1]
    yield "spca_l1_threshold", (p, a, 1.2, 0, work(), work(), work()), [1]
    yield "spca_l1_threshold", (p, a, 1.2, 1, work(), a, work()), [1]
    yield "spca_varimax", varimax, [7]
    yield "spca_varimax", (p, 1, *varimax[2:]), [7]
    for update in ("hotelling", "projection", "schur"):
        yield f"spca_deflate_{update}", (p, A, p, x, work(), places()), [1, 3]
    for order, ld in ((1, p), (0, n)):
        F = X if order else np.ascontiguousarray(X.T)
        yield "spca_deflate_data_projection", (n, p, F, ld, order, x, work(), places()), [2, 5]
        yield "spca_deflate_data_schur", (n, p, F, ld, order, m, x, work(), places()), [2, 5, 6]
        yield "spca_column_statistics", (n, p, F, ld, order, work(), work(), work()), [2]
        yield "spca_tpower_data", (n, p, F, ld, order, m, m, *search), [2, 5, 6, 13]
        yield "spca_refit_data", (n, p, F, ld, order, m, m, x, work(), places(), work()), [2, 5, 6, 7]
        yield "spca_explained_data", (n, p, F, ld, order, m, m, r, V, work(), work()), [2, 5, 6, 8]
    yield "spca_tpower_covariance", (p, A, p, *search), [1, 9]
    yield "spca_refit_covariance", (p, A, p, x, work(), places(), work()), [1, 3]
    yield "spca_explained_covariance", (p, A, p, r, V, work(), work()), [1, 4]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("name", "arguments", "places"),
    [pytest.param(*case, id=f"{i}-{case[0]}") for i, case in enumerate(finite_arguments())],
)
def test_what_is_not_finite_is_refused_and_nothing_is_changed(name, arguments, places, bad, dtype):
    """In an entry that the function needs, wherever that is: x is not zero in the first two variables."""
    doubles = {"spca_column_statistics": [5, 7], "spca_l1_threshold": [6], "spca_varimax": [8, 9]}.get(
        name, []
    )

    def fresh():
        return {
            id(a): a.copy() if a.dtype != np.float64 or i in doubles else a.astype(dtype)
            for i, a in enumerate(arguments)
            if isinstance(a, np.ndarray)
        }

    call, copies = function(name, dtype), fresh()
    assert call(*[copies.get(id(a), a) for a in arguments]) >= 0  # as they are
    for place in places:
        for j in range(2):
            copies = fresh()
            copies[id(arguments[place])].flat[j] = bad
            before = {key: a.copy() for key, a in copies.items()}
            assert call(*[copies.get(id(a), a) for a in arguments]) == NONFINITE
            for i in places:
                key = id(arguments[i])
                np.testing.assert_array_equal(copies[key], before[key])


def test_schur_deflation_of_data_is_refused_before_a_column_is_changed():
    X, x = np.array([[3, np.nan], [3, 2]]), np.array([1.0, 0])
    before, work = X.copy(), scratch(6)
    for order in (1, 0):
        F = X if order else np.ascontiguousarray(X.T)
        done = function("spca_deflate_data_schur")(2, 2, F, 2, order, None, x, work, scratch(2, np.intp))
        assert done == NONFINITE
        np.testing.assert_array_equal(F if order else F.T, before)


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
def test_stack(dtype):
    """At most 16 KB, of what searches, selections and products of every size take."""
    n, p, r = 240, 130, 4
    X, V = data(n, p, dtype), data(r, p, dtype)
    A, x = covariance(X).astype(dtype), data(1, p, dtype)[0]
    unit = (x / np.linalg.norm(x)).astype(dtype)
    long, work, iwork = data(1, 20000, dtype)[0], np.zeros(40000, dtype), np.zeros(400, np.intp)
    level, iterations = np.zeros(1), np.zeros(1, np.intp)
    mean, doubles = np.zeros(p, dtype), np.zeros(function("spca_varimax_work")(p, r) + 4 * p)

    def run(name, *arguments):
        return lambda: function(f"spca_{name}", dtype)(*arguments)

    calls = [
        run("truncate", size, k, long[:size].copy(), work)
        for size in (130, 3000, 20000)
        for k in (9, size // 4)
    ]
    calls += [
        run("l1_threshold", size, long, 3.0, 0, work[20000:], work, level) for size in (130, 3000, 20000)
    ]
    calls += [run("soft_threshold", 20000, long, 0.5, work)]
    calls += [
        run("varimax", p, r, 1.0, 9, 1e-6, NO_STOP, None, V.copy(), doubles, doubles[-16:].copy(), iterations)
    ]
    calls += [
        run(f"deflate_{m}", p, A.copy(), p, unit, work, iwork) for m in ("hotelling", "projection", "schur")
    ]
    calls += [run("deflate_data_projection", n, p, X.copy(), p, 1, unit, work, iwork)]
    calls += [run("deflate_data_schur", n, p, X.copy(), p, 1, None, unit, work, iwork)]
    for order in ("C", "F"):
        F, ld = padded(X, order, 0)
        calls += [run("column_statistics", n, p, F, ld, order == "C", doubles, mean, doubles[-p:])]
        for k in (5, 60, p):
            y = np.where(np.arange(p) < k, x, 0).astype(dtype)
            calls += [lambda y=y, order=order: refit(X, "data", y, order=order)]
            calls += [lambda k=k, order=order: tpower(X, "data", x.copy(), k, order=order)]
        calls += [lambda order=order: explained(X, "data", V, order=order)]
    calls += [lambda: refit(A, "covariance", x.copy()), lambda: tpower(A, "covariance", x.copy(), 9)]
    calls += [lambda: explained(A, "covariance", V)]
    assert max(stack_used(call) for call in calls) <= 16384


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
    for wrong in (rows.astype(np.float32), np.asfortranarray(rows), rows[:, ::2]):
        before = wrong.copy()
        with pytest.raises(TypeError, match="No matching definition"):
            scope["truncate_rows"](wrong, 3)
        np.testing.assert_array_equal(wrong, before)
    assert scope["truncate_rows"](rows, 3) == OK
    np.testing.assert_array_equal(rows, expected)
    assert scope["truncate_rows"](np.full((1, 4), np.nan), 3) == NONFINITE


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
        [sys.executable, "-c", INTERRUPTED, site, str(n_threads)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted 3.0\n", "")
