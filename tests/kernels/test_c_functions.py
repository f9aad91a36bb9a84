"""The C functions of `spcacore._core` compute what their formulas say."""

import numpy as np
import pytest
from c_functions import (
    NONFINITE,
    NOT_CONVERGED,
    OK,
    STOP,
    STOPPED,
    ZERO_VECTOR,
    data,
    found,
    run,
    scratch,
    unit_vector,
)  # fmt: skip
from in_turn import each_dtype, each_order
from numpy.testing import assert_allclose, assert_array_equal
from oracles import covariance, largest_on, normal, optimum

from spcacore import datasets, kernels, l1_threshold, soft_threshold, truncate


@each_dtype
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
            assert better == pytest.approx(largest_on(A, support), rel=1e-5)
            best = max(best, better)
        assert best == pytest.approx(optimum(A.astype(np.float64), k), rel=tight)


@each_dtype
@each_order
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
        assert_array_equal(np.flatnonzero(x), np.flatnonzero(expected[2]))
    status, value, x = found("refit_data", x, dtype, order, **given)
    support = np.flatnonzero(x)
    values, vectors = np.linalg.eigh(A[np.ix_(support, support)])
    assert (status, value) == (OK, pytest.approx(values[-1], rel=tight))
    assert_allclose(abs(x[support]), abs(vectors[:, -1]), atol=20 * tight)


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
    assert_allclose(x, y, rtol=tight)
    status, value, z = found("tpower_covariance", start, dtype, A=A * size, k=3)
    assert (status, value) == (OK, pytest.approx(expected * float(size), rel=tight, abs=0))
    assert_allclose(z, y, rtol=tight)


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


@each_dtype
def test_values_are_the_best_of_a_support_in_any_matrix(dtype):
    tight = 1e-4 if dtype == np.float32 else 1e-10
    for A, start in blocks(0, 400):
        support = np.flatnonzero(start)
        status, value, x = found("refit_covariance", start, dtype, A=A)
        if len(support) == 0:
            assert status == ZERO_VECTOR
            continue
        best = largest_on(A, support)
        assert (status, value) == (OK, pytest.approx(best, abs=tight))
        assert np.linalg.norm(x) == pytest.approx(1, rel=tight)
        assert x @ A @ x == pytest.approx(best, abs=tight)
        without = ~A[np.ix_(support, support)].any(axis=0)
        assert not x[start == 0].any()
        assert best <= tight or not x[support[without]].any()
    for zero in (np.diag([-1.0, 0, 0]), np.array([[-1, 0.5, 0], [0.5, -1, 0], [0, 0, 0]])):
        status, value, x = found("refit_covariance", np.ones(3), dtype, A=zero)
        assert (status, value) == (OK, 0)
        assert_array_equal(x, np.eye(3)[1 if zero[1, 1] == 0 else 2])


@each_dtype
def test_loadings_nearly_in_the_span_of_others(dtype):
    A = np.diag(np.array([1, 1e6, 1], dtype))
    for small in (2e-3, 1e-7, 1e-12):
        V = np.array([[1, 0, 0], [1, small, 0], [3, small, 0]])
        out = run("explained_covariance", dtype, A=A, V=V)
        assert out.status == OK
        assert_array_equal(out.variance, [1, 1e6, 0])
        assert_array_equal(run("orthogonal_parts", dtype, V=V).Q, [1, 0, 0, 0, 1, 0, 0, 0, 0])
    for norm in (np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max):
        V = np.array([[norm, norm, 0]], dtype)
        assert run("explained_covariance", dtype, A=A, V=V).variance == pytest.approx(
            [(1 + 1e6) / 2], rel=1e-6
        )


@each_dtype
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
        assert_allclose(out.variance, [1] * r + [0] * 3, atol=1e-5)


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
    for name in ("tpower_covariance", "pmd_covariance"):
        status, value, x = found(name, x, A=A, k=3, nonnegative=1)
        assert (status, value) == (OK, pytest.approx(6))
        assert (x >= 0).all()


def test_what_stops_a_search_and_what_goes_on():
    A, x, asked = covariance(data(40, 30)), unit_vector(30, 0), []
    for name in ("tpower_covariance", "pmd_covariance"):
        first = run(name, A=A, x=x, k=10, max_iter=1)
        assert (first.status, first.n_iter) == (NOT_CONVERGED, 1)
        status, better, _ = found(name, first.x, A=A, k=10)
        assert (status, better > first.value) == (OK, True)
        asked.clear()
        at_the_third = STOP(lambda _: asked.append(1) or len(asked) == 3)
        assert found(name, x, A=A, k=10, stop=at_the_third)[0] == STOPPED
        assert len(asked) == 3


@each_dtype
@each_order
def test_column_statistics(dtype, order):
    X = data(700, 9, dtype)
    X[:, 4] = 1 / 3
    out = run("column_statistics", dtype, order, X=X)
    assert out.status == OK
    assert_allclose(out.mean, X.mean(axis=0, dtype=np.float64), rtol=1e-6)
    assert_allclose(out.variance, X.astype(np.float64).var(axis=0, ddof=1), rtol=1e-12, atol=1e-28)
    assert out.variance[4] == 0


@each_dtype
@pytest.mark.parametrize("kind", ["covariance", "C", "F"])
def test_explained_variance_of_a_span(dtype, kind):
    X = data(40, 10, dtype)
    A, V = covariance(X), normal(1, 10, 4)
    V[:, 2] = V[:, 0] - 2 * V[:, 1]  # adds nothing
    if kind == "covariance":
        out = run("explained_covariance", dtype, A=A, V=V.T)
    else:
        out = run("explained_data", dtype, kind, X=X, mean=X.mean(axis=0, dtype=np.float64), V=V.T)
    assert out.status == OK
    Q = np.linalg.qr(V[:, [0, 1, 3]])[0]
    expected = np.insert(np.diag(Q.T @ A @ Q), 2, 0)
    assert_allclose(out.variance, expected, rtol=2e-5 if dtype == np.float32 else 1e-12)
    parts = run("orthogonal_parts", dtype, V=V.T).Q.reshape(4, 10)[[0, 1, 3]]
    assert_allclose(parts.T @ parts, Q @ Q.T, atol=1e-5)


@each_dtype
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
        assert_allclose(out.A, expected, atol=tight)
    for order in "CF":
        out = run("deflate_data_projection", dtype, order, X=X, x=v)
        assert_allclose(out.X, B @ Pv, atol=9 * tight)
        out = run("deflate_data_schur", dtype, order, X=X, x=v, mean=mean)
        assert_allclose(out.X, B - np.outer(u, u @ B) / (u @ u), atol=9 * tight)


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


@each_dtype
@pytest.mark.parametrize("p", [1, 2, 9, 30])
def test_thresholds(dtype, p):
    """Those of the functions, which have tests of their own."""
    a = np.random.default_rng(p).integers(-4, 5, p).astype(dtype)
    a[0], call = 3, {np.float64: kernels.float64, np.float32: kernels.float32}[dtype]
    for k in {0, p // 2, p}:
        assert_array_equal(run("truncate", dtype, x=a, k=k).x, truncate(a, k))
    for bound in (1.0, 1.7, 9.0):
        out, in_place = run("l1_threshold", dtype, a=a, bound=bound), a.copy()
        assert out.status == OK
        assert_array_equal(out.w, l1_threshold(a, min(bound, np.sqrt(p)))[0])
        assert call.l1_threshold(p, in_place, bound, 0, scratch(p, dtype), in_place, out.level) == OK
        assert_array_equal(in_place, out.w)
    expected = soft_threshold(a, 1.5)
    assert call.soft_threshold(p, a, 1.5, a) == OK
    assert_array_equal(a, expected)


@each_dtype
def test_varimax(dtype):
    p, r = 20, 3
    simple = np.kron(np.eye(r), np.ones((p // r + 1, 1)))[:p]
    turn = np.linalg.qr(normal(0, r, r))[0]
    start = (simple @ turn).T.astype(dtype)
    out = run("varimax", dtype, Y=start, tol=1e-6)
    R = out.R.reshape(r, r)
    assert out.status == OK
    assert_allclose(np.sort(abs(out.Y.T), axis=1), np.sort(simple, axis=1), atol=1e-4)
    assert_allclose(R @ R.T, np.eye(r), atol=1e-12)
    assert_allclose(start.T @ R.T, out.Y.T, atol=1e-5)


@each_dtype
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
            assert_allclose(v, x, atol=tight)
            left = run(f"deflate_data_{deflation}", dtype, order, X=left, x=x).X
        V = out.V.reshape(r, p)[:rank]
        explained = run("explained_data", dtype, order, X=X, mean=mean, weight=weight, V=V)
        assert_allclose(out.variance[:rank], explained.variance, rtol=tight)
        spoiled = np.where(np.arange(p) == p - 1, np.nan, X)
        assert run("components_data", dtype, order, **{**given, "X": spoiled}, thorough=0).status == NONFINITE
