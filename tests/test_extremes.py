"""What is extreme: the values that come out of it, call by call.

That nothing strange happens, in every call, is in test_bad_input.py; here are right answers: where there is
no variance, at the smallest shapes, beyond the rank, with ties, at every scale, and of operators that fail.
"""

import contextlib
import functools
import itertools
import re
import sys
import time
import warnings
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from extras import optional
from kinds import DTYPES, SPARSE, every_second, read_only, stored_zeros, unaligned, untouched
from scipy.sparse.linalg import LinearOperator, aslinearoperator

import spcacore
from spcacore import deflate, explained_variance, gpower, greedy, renormalize, sparse_pca, tpower

pd = optional("pandas")

N, P, K = 12, 6, 3
X0 = np.random.default_rng(1).integers(-3, 4, (N, P)).astype(np.float64)
CLEAN = {"data": X0, "covariance": X0.T @ X0}  # small integers: exact in every dtype from int8 up
V0 = np.random.default_rng(2).standard_normal((P, 2))
KINDS = ["data", "covariance"]


def tolerance(dtype):
    return 2e-5 if dtype == np.float32 else 1e-12


@functools.cache
def result(kind):
    """Two components whose loadings use every variable."""
    return sparse_pca(CLEAN[kind], 2, cardinality=[K, P], kind=kind)


# (name, call): call(X, kind) runs a public function on a matrix of P variables
CALLS = [
    ("sparse_pca", lambda X, kind: sparse_pca(X, 2, cardinality=K, kind=kind)),
    ("tpower", lambda X, kind: tpower(X, K, kind=kind)),
    ("gpower", lambda X, kind: gpower(X, 1.0, kind=kind)),
    ("greedy", lambda X, kind: greedy(X, K, kind=kind, strategy="bidirectional")),
    ("explained_variance", lambda X, kind: explained_variance(X, V0, kind=kind)),
    ("adjusted_variance", lambda X, kind: explained_variance(X, V0, "adjusted", kind=kind)),
    ("renormalize", lambda X, kind: renormalize(X, V0, kind=kind)),
    ("deflate", lambda X, kind: deflate(X, V0[:, 0], kind=kind)),
    ("deflate_schur", lambda X, kind: deflate(X, V0[:, 0], "schur", kind=kind)),
    ("transform", lambda X, kind: result(kind).transform(X)),
    ("extend", lambda X, kind: result(kind).extend(X, 1, cardinality=K)),
]
DENSE_ONLY = {"deflate", "deflate_schur"}
SOLVERS = [c for c in CALLS if c[0] in ("sparse_pca", "tpower", "greedy")]
ids = {"ids": lambda v: v[0] if isinstance(v, tuple) else getattr(v, "__name__", None)}


def numbers_of(out):
    """Everything in a result that has a numerical value."""
    if isinstance(out, np.ndarray):
        return [out]
    names = ("loadings", "explained_variance", "total_variance", "loading", "value", "cardinality")
    return [np.asarray(getattr(out, a)) for a in names if getattr(out, a, None) is not None]


def assert_same(out, expected, tol):
    for a, b in zip(numbers_of(out), numbers_of(expected), strict=True):
        assert a.shape == b.shape
        if tol == 0:
            assert a.tobytes() == b.tobytes()
        else:
            np.testing.assert_allclose(a, b, rtol=tol, atol=tol * (np.abs(b).max(initial=0) + 1e-300))


# ---- a clean call -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("call", CALLS, **ids)
def test_a_clean_call_is_right(call):
    """The reference of all comparisons above, from dense numpy alone."""
    name, function = call
    C = np.cov(X0, rowvar=False)
    out = function(X0, "data")
    supports = [list(s) for s in itertools.combinations(range(P), K)]
    values = [np.linalg.eigvalsh(C[np.ix_(s, s)])[-1] for s in supports]
    best, second = np.argsort(values)[[-1, -2]]
    assert values[best] > values[second] * 1.01
    if name in ("sparse_pca", "tpower", "greedy"):
        x = out.loadings[:, 0] if name == "sparse_pca" else out.loading
        assert np.flatnonzero(x).tolist() == supports[best]
        assert x @ C @ x == pytest.approx(values[best], rel=1e-12)
    elif name == "gpower":
        s = np.flatnonzero(out.loading)
        F = X0 - X0.mean(axis=0)
        u = F @ gpower(X0, 1.0, renormalize=False, tol=0).loading
        np.testing.assert_array_equal(s, np.flatnonzero(abs(F.T @ u) > np.linalg.norm(u)))
        assert out.value == pytest.approx(np.linalg.eigvalsh(C[np.ix_(s, s)])[-1], rel=1e-12)
    elif name == "explained_variance":
        assert out.sum() == pytest.approx(np.trace(np.linalg.pinv(V0) @ C @ V0), rel=1e-12)
    elif name == "adjusted_variance":
        R = np.linalg.qr((X0 - X0.mean(axis=0)) @ (V0 / np.linalg.norm(V0, axis=0)), mode="r")
        np.testing.assert_allclose(out, np.diag(R) ** 2 / (N - 1), rtol=1e-12)
    elif name == "renormalize":
        lead = np.linalg.eigh(C)[1][:, -1]
        np.testing.assert_allclose(np.abs(out.T @ lead), 1, rtol=1e-12)
    elif name == "deflate":
        v = V0[:, 0] / np.linalg.norm(V0[:, 0])
        np.testing.assert_allclose(out, X0 - np.outer(X0 @ v, v), atol=1e-12)
    elif name == "deflate_schur":
        u = (X0 - X0.mean(axis=0)) @ V0[:, 0]
        np.testing.assert_allclose(out, X0 - np.outer(u, u @ X0) / (u @ u), atol=1e-12)
    elif name == "transform":
        r = result("data")
        np.testing.assert_allclose(out, (X0 - X0.mean(axis=0)) @ r.loadings, atol=1e-12)
    else:
        at_once = sparse_pca(X0, 3, cardinality=[K, P, K])
        np.testing.assert_array_equal(out.loadings, at_once.loadings)


# ---- inputs that must be refused -----------------------------------------------------------------------


def with_value(a, value, *cells):
    a = a.astype(np.float64)
    for cell in cells:
        a[cell] = value
    return a


def test_not_finite_in_one_triangle_alone():
    A = CLEAN["covariance"].copy()
    for i, j in ((4, 1), (1, 4), (5, 5)):
        B = A.copy()
        B[i, j] = np.nan
        for B_ in (B, np.asfortranarray(B), B.astype(np.float32)):
            for _, call in CALLS:
                with untouched(B_), pytest.raises(ValueError, match=rf"1 entry.*\({i}, {j}\)"):
                    call(B_, "covariance")


def test_not_finite_past_the_first_tiles():
    """Positions far from the start, in both orders, by the streaming pass."""
    X = np.random.default_rng(0).standard_normal((300, 700))
    for i, j in ((299, 699), (64, 256), (150, 511)):
        Y = X.copy()
        Y[i, j] = np.inf
        for Z in (Y, np.asfortranarray(Y), Y[:, ::-1], Y.astype(np.float32)):
            at = (i, 699 - j) if Z.strides[1] < 0 else (i, j)
            with pytest.raises(ValueError, match=re.escape(f"the first at {at}")):
                tpower(Z, 3)


@pytest.mark.parametrize("call", [c for c in CALLS if c not in SOLVERS and c[0] != "gpower"], **ids)
def test_wrong_number_of_columns(call):
    for X in (X0[:, :-1], sp.csr_array(X0[:, :-1]), aslinearoperator(X0[:, :-1])):
        if call[0] not in DENSE_ONLY or isinstance(X, np.ndarray):
            with pytest.raises(ValueError, match=r"rows|entries|shape|samples"):
                call[1](X, "data")
    with pytest.raises(ValueError, match=r"rows|entries|shape|samples"):
        call[1](CLEAN["covariance"][:-1, :-1], "covariance")
    if call[0] == "extend":
        with pytest.raises(ValueError, match="samples"):
            call[1](X0[:-1], "data")


# ---- options --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ValueError), (-1, ValueError), (P + 1, ValueError), (2.0, TypeError), (True, TypeError),
     (None, TypeError), ("2", TypeError), (10**30, ValueError)],
)  # fmt: skip
def test_number_of_components(value, error):
    with pytest.raises(error, match="n_components"):
        sparse_pca(X0, value, cardinality=K)
    with pytest.raises(error, match="more"):
        result("data").extend(X0, value)


def test_number_of_components_is_limited_by_rows():
    with pytest.raises(ValueError, match=r"n_components must be in \[1, 4\]"):
        sparse_pca(X0[:4], 5, cardinality=K)
    assert sparse_pca(X0[:4], 3, cardinality=P).n_components == 3


@pytest.mark.parametrize(
    ("value", "error"),
    [([K], ValueError), ([K, K, K], ValueError), ([], ValueError), ([K, 0], ValueError),
     ([K, P + 1], ValueError),
     ([K, 2.0], TypeError), ([K, True], TypeError), ([[K, K]], (TypeError, ValueError)), ({K, 4}, TypeError),
     ((k for k in (K, K)), TypeError), (np.array([3.0, 3.0]), TypeError), ("33", TypeError),
     ([[K], [K]], TypeError), ([K, [K]], (TypeError, ValueError))],
)  # fmt: skip
def test_cardinality_per_component(value, error):
    with pytest.raises(error, match="cardinality"):
        sparse_pca(X0, 2, cardinality=value)


@pytest.mark.parametrize("value", [K, np.int8(K), np.array(K), [K, K], (K, K), np.array([K, K], np.uint8)])
def test_every_form_of_cardinality(value):
    out = sparse_pca(X0, 2, cardinality=value)
    assert_same(out, sparse_pca(X0, 2, cardinality=K), 0)
    assert out.cardinality.tolist() == [K, K]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("max_iter", [0, 1])
@pytest.mark.parametrize("kind", KINDS)
def test_few_iterations_are_reported(max_iter, kind, dtype):
    A = CLEAN[kind].astype(dtype)
    with pytest.warns(RuntimeWarning, match=f"not converged in {max_iter} iterations?"):
        x = tpower(A, K, max_iter=max_iter, tol=0, kind=kind, n_starts=1, renormalize=False)
    assert not x.converged
    assert x.n_iter == max_iter
    assert x.cardinality <= (P if max_iter == 0 else K)
    assert np.linalg.norm(x.loading.astype(float)) == pytest.approx(1, rel=tolerance(dtype))
    with pytest.warns(RuntimeWarning, match="components 0, 1 not converged"):
        out = sparse_pca(A, 2, cardinality=K, max_iter=0, kind=kind)
    assert not out.converged.any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("max_iter", [0, 1])
@pytest.mark.parametrize("renormalize", [True, False])
def test_cardinality_holds_even_without_iterations(max_iter, renormalize, dtype):
    """A result has at most the nonzeros asked for, however early the iteration is cut."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        for start in (None, "eigenvector", "diagonal", np.ones(P)):
            out = tpower(X0.astype(dtype), 2, max_iter=max_iter, start=start, renormalize=renormalize)
            assert out.cardinality <= 2


@pytest.mark.parametrize("tol", [0, 0.0, 1e-300, np.float32(0.1), 1, np.inf, Fraction(1, 3)])
def test_any_tolerance_ends(tol):
    assert tpower(X0, K, tol=tol).converged


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "raised", [ValueError("mine"), KeyboardInterrupt(), SystemExit(3), RuntimeError("x")]
)
def test_what_a_callback_raises_arrives(raised, kind):
    def callback(progress):
        raise raised

    for call in (
        lambda: sparse_pca(CLEAN[kind], 2, cardinality=K, kind=kind, callback=callback),
        lambda: tpower(CLEAN[kind], K, kind=kind, callback=callback),
        lambda: result(kind).extend(CLEAN[kind], 1, cardinality=K, callback=callback),
    ):
        with untouched(CLEAN[kind]), pytest.raises(type(raised)) as info:
            call()
        assert info.value is raised


@pytest.mark.parametrize("after", [0, 1, 2])
def test_stop_iteration_returns_what_is_finished(after):
    def callback(progress):
        if progress.value is not None and progress.component == after:
            raise StopIteration

    out = sparse_pca(X0, 4, cardinality=K, callback=callback)
    assert out.n_components == after + 1
    whole = sparse_pca(X0, 4, cardinality=K)
    np.testing.assert_array_equal(out.loadings, whole.loadings[:, : after + 1])
    np.testing.assert_array_equal(out.explained_variance, whole.explained_variance[: after + 1])


def test_stop_iteration_before_anything_is_finished():
    calls = []

    def slow(v):
        return X0.T @ (X0 @ v)

    def callback(progress):
        calls.append(progress)
        raise StopIteration

    def slower(v):
        time.sleep(0.02)
        return slow(v)

    out = sparse_pca(slower, 2, cardinality=K, kind="covariance", n_features=P, callback=callback)
    assert len(calls) == 1
    assert out.n_components <= 1


def test_stop_iteration_of_an_operator_is_an_error():
    """Only the callback may end the search; an operator that raises StopIteration has failed."""
    for fatal, kind in [*((i, "data") for i in range(25)), *((i, "covariance") for i in range(P + 1))]:
        count = itertools.count()

        def failing(y, count=count, fatal=fatal):
            if next(count) == fatal:
                raise StopIteration("from the operator")
            return y

        X = operator(lambda v, failing=failing: failing(X0 @ v), lambda f: X0.T @ f)
        options = {"cardinality": K, "kind": kind}
        if kind == "covariance":
            X, options["n_features"] = (lambda v, failing=failing: failing(covariance(v))), P
        with pytest.raises(RuntimeError, match="X, an operator, raised StopIteration: from the operator"):
            sparse_pca(X, 2, callback=lambda progress: None, **options)


# ---- covariances that are none --------------------------------------------------------------------------

COVARIANCE_CALLS = [c for c in CALLS if c[0] != "transform"]
MAKERS = [
    ("C", np.ascontiguousarray), ("F", np.asfortranarray), ("csr", sp.csr_array), ("csc", sp.csc_matrix),
    ("coo", sp.coo_array), ("list", lambda a: a.tolist()),
]  # fmt: skip


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", MAKERS, **ids)
@pytest.mark.parametrize("call", COVARIANCE_CALLS, **ids)
def test_asymmetric_covariance(call, make, dtype):
    for i, j in ((0, 1), (5, 2)):
        for scale in (1.0, 1e-30, 1e30):
            A = (CLEAN["covariance"] * scale).astype(dtype)
            A[i, j] *= 1.5
            B = make[1](A)
            if call[0] in DENSE_ONLY and sp.issparse(B):
                continue
            with untouched(B), pytest.raises(ValueError, match="symmetric"):
                call[1](B, "covariance")
    A = CLEAN["covariance"] * (1 + 1e-13 * np.triu(np.ones((P, P)), 1))  # rounding is tolerated
    B = make[1](A.astype(dtype))
    if not (call[0] in DENSE_ONLY and sp.issparse(B)):
        call[1](B, "covariance")


@pytest.mark.parametrize("call", COVARIANCE_CALLS, **ids)
def test_covariance_must_be_square(call):
    for A in (X0, sp.csr_array(X0), aslinearoperator(X0)):
        if call[0] in DENSE_ONLY and not isinstance(A, np.ndarray):
            continue
        with pytest.raises(ValueError, match="square"):
            call[1](A, "covariance")


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("make", MAKERS, **ids)
def test_indefinite_covariance(make, dtype):
    """sparse_pca refuses it; tpower, a single step of which Hotelling deflation is the next, does not."""
    negative = np.diag([3.0, 2, 1, -1])
    minor = np.array([[1.0, 5, 0, 0], [5, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    hollow = np.ones((4, 4)) - np.eye(4)
    for A in (negative, minor, hollow):
        B = make[1](A.astype(dtype))
        with untouched(B), pytest.raises(ValueError, match="semidefinite"):
            sparse_pca(B, 2, cardinality=2, kind="covariance")
        x = tpower(B, 2, kind="covariance")
        assert x.value == pytest.approx(
            max(np.linalg.eigvalsh(A[np.ix_(s, s)])[-1] for s in itertools.combinations(range(4), 2)),
            rel=1e-5,
        )
    beyond_minors = 0.4 * np.eye(4) + 0.6 * np.ones((4, 4))
    beyond_minors[0, 1] = beyond_minors[1, 0] = -0.6
    assert np.linalg.eigvalsh(beyond_minors)[0] < -0.1
    with pytest.raises(ValueError, match="semidefinite"):
        sparse_pca(make[1](beyond_minors.astype(dtype)), 2, cardinality=2, kind="covariance")
    slightly = CLEAN["covariance"] - 1e-10 * np.eye(P)
    slightly[:, 0] = slightly[0] = 0
    assert sparse_pca(make[1](slightly), 2, cardinality=2, kind="covariance").n_components == 2


@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
def test_covariance_too_large_for_a_factorization(form):
    """There the 2 x 2 minors alone tell."""
    A = np.diag(np.linspace(2, 1, 1600))
    A[0, 1] = A[1, 0] = 1
    out = sparse_pca(form(A), 1, cardinality=2, kind="covariance", n_starts=1)
    assert np.flatnonzero(out.loadings).tolist() == [0, 1]
    A[0, 1] = A[1, 0] = 3
    with pytest.raises(ValueError, match="semidefinite"):
        sparse_pca(form(A), 1, cardinality=2, kind="covariance")


def test_correlation_of_a_negative_variance():
    with pytest.raises(ValueError, match="scale"):
        tpower(np.diag([3.0, 2, -1]), 2, kind="covariance", scale=True)
    with pytest.raises(ValueError, match="scale"):
        tpower(sp.csr_array(np.diag([3.0, 2, 1])) * np.array([1, 1, -1.0]), 2, kind="covariance", scale=True)


# ---- nothing to find ------------------------------------------------------------------------------------

FORMS = [
    ("C", np.ascontiguousarray), ("F", np.asfortranarray), ("csr", sp.csr_array), ("csc", sp.csc_array),
    ("csr with stored zeros", stored_zeros), ("operator", aslinearoperator),
]  # fmt: skip


@pytest.mark.parametrize(
    ("value", "dtype"),
    [(v, d) for v in (0.0, 1.0, 0.1, -1e6, 1e200) for d in DTYPES if abs(v) < float(np.finfo(d).max)],
)
@pytest.mark.parametrize(
    ("form", "scale"), [(f, s) for f in FORMS for s in (False, True) if not (s and f[0] == "operator")], **ids
)
def test_no_variance(value, scale, form, dtype):
    X = form[1](np.full((N, P), value, dtype))
    with untouched(X), pytest.warns(RuntimeWarning, match="no variance is left after 0 of the 2 components"):
        out = sparse_pca(X, 2, cardinality=K, scale=scale)
    assert out.n_components == 0
    assert out.loadings.shape == (P, 0)
    assert out.explained_variance.shape == (0,)
    assert out.total_variance in (0, None)
    if form[0] != "operator":
        scores = out.transform(np.full((N, P), value, dtype))
        assert scores.shape == (N, 0)
        np.testing.assert_allclose(out.reconstruct(scores), np.full((N, P), value, dtype))
    with untouched(X), pytest.warns(RuntimeWarning, match="no variance"):
        x = tpower(X, K, scale=scale)
    assert x.loading.tolist() == [1, *[0] * (P - 1)]
    assert (x.value, x.cardinality) == (0, 1)
    if form[0] == "operator" and value > 1e9:
        return  # nothing is known of it but products whose rounding is itself large
    with np.errstate(all="raise"):
        rounding = 100 * P * (np.finfo(dtype).eps * min(value, 1e9)) ** 2
        assert explained_variance(X, V0, scale=scale).max() <= (rounding if form[0] == "operator" else 0)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS, **ids)
def test_zero_covariance(form, dtype):
    A = form[1](np.zeros((P, P), dtype))
    with pytest.warns(RuntimeWarning, match="no variance"):
        assert sparse_pca(A, 2, cardinality=K, kind="covariance").n_components == 0
    with pytest.warns(RuntimeWarning, match="no variance"):
        x = tpower(A, K, kind="covariance")
    assert x.loading.tolist() == [1, *[0] * (P - 1)]
    assert x.value == 0
    assert not explained_variance(A, V0, kind="covariance").any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    ("form", "scale", "constant"),
    [
        (form, scale, constant)
        for form in FORMS
        for scale in (False, True)
        for constant in (0.0, 0.1, 1e3, 1e7)
        if not (form[0] == "operator" and (scale or constant > 1))  # which does not tell its columns
    ],
    **ids,
)
def test_constant_columns_are_never_selected(constant, scale, form, dtype):
    X = X0.copy()
    X[:, [1, 4]] = constant
    X = X.astype(dtype)
    Y = form[1](X)
    moving = [0, 2, 3, 5]
    for k in (2, 4, P):
        x = tpower(Y, k, scale=scale)
        out = sparse_pca(Y, 2, cardinality=k, scale=scale)
        if form[0] != "operator":
            assert not x.loading[[1, 4]].any()
            assert not out.loadings[[1, 4]].any()
        C = np.corrcoef(X0[:, moving].T) if scale else np.cov(X0[:, moving].T)
        if k >= 4:
            assert x.value == pytest.approx(np.linalg.eigvalsh(C)[-1], rel=tolerance(dtype))
    A = np.cov(X0.T)
    A[[1, 4]] = A[:, [1, 4]] = 0
    out = sparse_pca(form[1](A.astype(dtype)), 2, cardinality=P, kind="covariance", scale=scale)
    assert not out.loadings[[1, 4]].any()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (7, 1), (2, 1), (2, 2), (1, 300), (300, 1)])
@pytest.mark.parametrize("form", FORMS, **ids)
def test_smallest_shapes(form, shape, dtype):
    n, p = shape
    X = np.random.default_rng(5).standard_normal(shape).astype(dtype)
    Y = form[1](X)
    C = np.atleast_2d(np.cov(X.astype(float), rowvar=False)) if n > 1 else np.zeros((p, p))
    top = np.linalg.eigvalsh(C)[-1]
    for k in {1, p}:
        if n == 1:
            with untouched(Y), pytest.warns(RuntimeWarning, match="no variance"):
                x = tpower(Y, k)
            assert x.loading[0] == 1
            assert x.value == 0
            with pytest.warns(RuntimeWarning, match="no variance"):
                assert sparse_pca(Y, 1, cardinality=k).n_components == 0
        else:
            with untouched(Y):
                x = tpower(Y, k)
                out = sparse_pca(Y, 1, cardinality=k)
            best = top if k == p else C.diagonal().max()
            assert x.value == pytest.approx(best, rel=10 * tolerance(dtype))
            assert out.explained_variance[0] == pytest.approx(best, rel=10 * tolerance(dtype))
    assert np.isfinite(explained_variance(Y, np.ones((p, 1)))).all()
    assert renormalize(Y, np.ones(p)).shape == (p,)
    if form[0] in "CF":
        assert deflate(Y, np.ones(p), kind="data").shape == shape
        assert deflate(Y, np.ones(p), "schur", kind="data").shape == shape


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("value", [3.0, 0.0])
def test_one_by_one_covariance(value, dtype):
    A = np.full((1, 1), value, dtype)
    if value:
        assert tpower(A, 1, kind="covariance").value == value
        assert sparse_pca(A, 1, cardinality=1, kind="covariance").explained_variance.tolist() == [value]
    else:
        with pytest.warns(RuntimeWarning):
            assert tpower(A, 1, kind="covariance").value == 0
    assert deflate(A, [1.0]).tolist() == [[0]]
    for method in ("hotelling", "schur"):
        assert deflate(A, [2.0], method).tolist() == [[0]]


# ---- rank and ties --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("deflation", ["projection", "schur", "orthogonalized_projection"])
@pytest.mark.parametrize(
    ("form", "offset"),
    [
        (form, offset)
        for form in [*FORMS, ("covariance", lambda a: np.cov(a, rowvar=False))]
        for offset in (0.0, 100.0, 1e5)
        if not (form[0] == "operator" and offset > 0)  # it does not tell the mean from the spread
    ],
    **ids,
)
@pytest.mark.parametrize(("n", "p"), [(60, 20), (20, 60)])
@pytest.mark.parametrize("rank", [1, 3])
def test_no_component_beyond_the_rank(rank, offset, n, p, form, deflation, dtype):
    """With k = p the components are those of PCA: exactly `rank` of them carry variance."""
    rng = np.random.default_rng(rank)
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p)) + offset
    kind = "covariance" if form[0] == "covariance" else "data"
    if kind == "covariance" and dtype == np.float32:
        Y = form[1](X).astype(dtype)  # the covariance is rounded, not the data
        Y = (Y + Y.T) / 2
    else:
        Y = form[1](X.astype(dtype))
    r = min(rank + 4, n, p)
    with pytest.warns(RuntimeWarning, match=f"no variance is left after {rank} of the {r}"):
        out = sparse_pca(Y, r, cardinality=p, kind=kind, deflation=deflation)
    assert out.n_components == rank
    if out.explained_variance_ratio is not None:
        lost = 1 - out.explained_variance_ratio.sum()
        assert abs(lost) < 20 * tolerance(dtype) * (1 + offset * 1e-2)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS[:5], **ids)
@pytest.mark.parametrize("k", [2, 4])
def test_sparse_components_of_a_low_rank_matrix_carry_variance(k, form, dtype):
    rng = np.random.default_rng(9)
    X = rng.standard_normal((40, 3)) @ rng.standard_normal((3, 12)) + 10
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        out = sparse_pca(form[1](X.astype(dtype)), 12, cardinality=k)
    assert out.n_components == 12 or any("no variance" in str(w.message) for w in told)
    span = np.linalg.matrix_rank(out.loadings)
    total = np.linalg.eigvalsh(np.cov(X.T)).sum()
    assert span >= 3
    assert out.explained_variance.sum() <= total * (1 + 1e-5)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS[:5], **ids)
@pytest.mark.parametrize("kind", KINDS)
def test_ties_go_to_the_lowest_index(kind, form, dtype):
    rng = np.random.default_rng(11)
    for trial in range(20):
        B = rng.integers(-4, 5, (9, 5)).astype(float)  # uncentred: products without rounding, so exact ties
        copies = np.concatenate([np.arange(5), rng.permutation(5), rng.permutation(5)])
        X = B[:, rng.permutation(copies)]
        A = X if kind == "data" else X.T @ X
        x = tpower(form[1](A.astype(dtype)), 1, kind=kind, center=False)
        first = int(np.argmax((X**2).sum(axis=0)))
        assert np.flatnonzero(x.loading).tolist() == [first], trial
        x = tpower(form[1](X.astype(dtype)), 1)  # centred: rounding may prefer another copy
        (chosen,) = np.flatnonzero(x.loading)
        variance = X.var(axis=0)
        assert variance[chosen] == pytest.approx(variance.max(), rel=tolerance(dtype))
    identity = form[1](np.eye(P, dtype=dtype))
    assert np.flatnonzero(tpower(identity, 1, kind="covariance").loading).tolist() == [0]
    assert np.flatnonzero(tpower(identity, 1, center=False).loading).tolist() == [0]
    out = sparse_pca(identity, P, cardinality=1, kind="covariance")
    np.testing.assert_array_equal(out.loadings, np.eye(P))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("form", FORMS[:5], **ids)
def test_one_column_repeated(form, dtype):
    X = np.repeat(X0[:, :1], 9, axis=1).astype(dtype)
    for k in (1, 2, 5):
        x = tpower(form[1](X), k)
        assert x.cardinality == k
        assert x.value == pytest.approx(k * np.var(X0[:, 0], ddof=1), rel=10 * tolerance(dtype))


# ---- sparse ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [False, True])
@pytest.mark.parametrize("center", [False, True])
@pytest.mark.parametrize("form", [f for f in SPARSE if f[0] != "int8"], **ids)
def test_sparse_centred_and_scaled(form, center, scale):
    X = form[1](X0)
    out = sparse_pca(X, 3, cardinality=K, center=center, scale=scale)
    assert_same(out, sparse_pca(X0, 3, cardinality=K, center=center, scale=scale), 1e-12)
    np.testing.assert_allclose(
        out.transform(X),
        sparse_pca(X0, 3, cardinality=K, center=center, scale=scale).transform(X0),
        atol=1e-12,
    )


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("fmt", [sp.csr_array, sp.csc_array, sp.coo_array, sp.csr_matrix, sp.lil_array])
def test_no_stored_entries(fmt, dtype):
    X = fmt((N, P), dtype=dtype)
    with pytest.warns(RuntimeWarning, match="no variance"):
        assert sparse_pca(X, 2, cardinality=K).n_components == 0
    assert not explained_variance(X, V0).any()
    np.testing.assert_allclose(result("data").transform(X), result("data").transform(np.zeros((N, P))))
    A = fmt((P, P), dtype=dtype)
    with pytest.warns(RuntimeWarning, match="no variance"):
        assert sparse_pca(A, 2, cardinality=K, kind="covariance").n_components == 0


def test_stale_canonical_flag():
    """scipy remembers that a matrix was canonical after its arrays were changed."""
    m = sp.csr_array(X0)
    assert m.has_canonical_format
    m.indices[:2] = m.indices[0]
    fresh = sp.csr_array((m.data.copy(), m.indices.copy(), m.indptr.copy()), m.shape)
    with untouched(m):
        assert_same(sparse_pca(m, 2, cardinality=K), sparse_pca(fresh.toarray(), 2, cardinality=K), 1e-12)


# ---- scales ---------------------------------------------------------------------------------------------

SCALES = {np.float64: [1e300, 1e-300, 1e160, 1e-160, 1e-310, 1e100], np.float32: [1e30, 1e-30, 1e20, 1e-38]}
SCALE_CASES = [(d, c) for d, cs in SCALES.items() for c in cs]


def scaled(c, dtype, shape=(40, 8)):
    """Data whose spread is known to the last digit at either scale: integers times a power of two."""
    rng = np.random.default_rng(17)
    X = rng.integers(-1000, 1001, shape) * np.array([8, 5, 1, 7, 3, 6, 2, 4])[: shape[1]]
    exponent = int(np.floor(np.log2(c)))
    X = X.astype(dtype)
    Y = np.ldexp(X, exponent - 12)
    return X, Y, exponent - 12


def strictly(form):
    """No floating-point exception in the package's own arithmetic; an operator's belongs to its maker."""
    return np.errstate(all="ignore" if form[0] == "operator" else "raise")


@contextlib.contextmanager
def told_of_range(expected=1.0):
    """Of variances that should be `expected`, were numbers without bounds: inf and 0 are told, no others."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield
    assert all(issubclass(w.category, RuntimeWarning) and "number range" in str(w.message) for w in told), [
        str(w.message) for w in told
    ]
    assert bool(told) == (not (np.isfinite(expected) & (np.asarray(expected) != 0)).all())


@pytest.mark.parametrize(("dtype", "c"), SCALE_CASES)
@pytest.mark.parametrize("form", FORMS, **ids)
@pytest.mark.parametrize("center", [True, False])
def test_data_of_any_scale(center, form, dtype, c):
    X, Y, exponent = scaled(c, dtype)
    lost = not np.array_equal(np.ldexp(Y, -exponent), X)  # denormal numbers have fewer digits
    tol = {True: 1e-3 if dtype == np.float32 else 1e-6, False: tolerance(dtype)}[lost]
    out, ref = None, sparse_pca(form[1](X), 3, cardinality=3, center=center)
    with np.errstate(all="ignore"):
        expected = np.ldexp(ref.explained_variance, 2 * exponent)
    with strictly(form), told_of_range(expected):
        out = sparse_pca(form[1](Y), 3, cardinality=3, center=center)
    np.testing.assert_allclose(out.loadings, ref.loadings, atol=tol)
    np.testing.assert_allclose(out.explained_variance, expected, rtol=10 * tol)
    if out.explained_variance_ratio is not None:
        np.testing.assert_allclose(out.explained_variance_ratio, ref.explained_variance_ratio, rtol=10 * tol)
    with told_of_range(expected[:1]):
        x = tpower(form[1](Y), 3, center=center)
    np.testing.assert_allclose(x.loading, ref.loadings[:, 0], atol=tol)
    assert x.value == pytest.approx(expected[0], rel=10 * tol)
    zero_too = np.column_stack([ref.loadings, np.zeros(8)])
    with told_of_range(expected):
        v = explained_variance(form[1](Y), zero_too, center=center)
    np.testing.assert_allclose(v, [*expected, 0], rtol=10 * tol)
    w = renormalize(form[1](Y), ref.loadings, center=center)
    np.testing.assert_allclose(
        np.abs(w.T @ w), np.abs(renormalize(X, ref.loadings, center=center).T @ w), atol=tol
    )


@pytest.mark.parametrize(("dtype", "c"), SCALE_CASES)
@pytest.mark.parametrize("form", FORMS, **ids)
def test_covariance_of_any_scale(form, dtype, c):
    X, _, _ = scaled(1.0, np.float64)
    A = np.cov(X.T).astype(dtype)
    exponent = int(np.floor(np.log2(c))) - 24
    B = np.ldexp(A, exponent)
    lost = not np.array_equal(np.ldexp(B, -exponent), A)
    tol = {True: 1e-2 if dtype == np.float32 else 1e-6, False: tolerance(dtype)}[lost]
    ref = sparse_pca(form[1](A), 3, cardinality=3, kind="covariance")
    with strictly(form), told_of_range():
        out = sparse_pca(form[1](B), 3, cardinality=3, kind="covariance")
        x = tpower(form[1](B), 3, kind="covariance")
    np.testing.assert_allclose(out.loadings, ref.loadings, atol=tol)
    np.testing.assert_allclose(x.loading, ref.loadings[:, 0], atol=tol)
    np.testing.assert_allclose(
        out.explained_variance, np.ldexp(ref.explained_variance, exponent), rtol=10 * tol
    )
    if form[0] in "CF":
        for method in ("hotelling", "projection", "schur"):
            D = deflate(B, ref.loadings[:, 0], method)
            E = np.ldexp(deflate(A, ref.loadings[:, 0], method).astype(float), exponent)
            np.testing.assert_allclose(D, E, atol=tol * float(np.abs(B).max()))


@pytest.mark.parametrize(("dtype", "c"), SCALE_CASES)
@pytest.mark.parametrize("form", FORMS[:5], **ids)
def test_scaled_columns_of_any_scale(form, dtype, c):
    """With scale=True every column may have its own scale."""
    X, Y, exponent = scaled(c, dtype)
    if (X.std(axis=0, ddof=1) * 2.0**exponent).min() < 1 / float(np.finfo(dtype).max):
        with pytest.raises(ValueError, match="varies too little"):
            sparse_pca(form[1](Y), 3, cardinality=3, scale=True)
        return
    ref = sparse_pca(X, 3, cardinality=3, scale=True)
    mixed = X.copy()
    mixed[:, ::2] = Y[:, ::2]
    for Z in (Y, mixed):
        with np.errstate(all="raise"):
            out = sparse_pca(form[1](Z), 3, cardinality=3, scale=True)
        np.testing.assert_allclose(out.loadings, ref.loadings, atol=tolerance(dtype))
        np.testing.assert_allclose(out.explained_variance, ref.explained_variance, rtol=10 * tolerance(dtype))
        np.testing.assert_allclose(out.transform(Z), ref.transform(X), atol=100 * tolerance(dtype))


@pytest.mark.parametrize("form", FORMS[:5], **ids)
def test_largest_and_smallest_columns_together(form):
    X, _, _ = scaled(1.0, np.float64)
    big, small = 2.0**985, 2.0**-985
    Y = X * np.array([big, small, 1, big, small, 1, 2.0**500, 2.0**-500])
    with np.errstate(all="raise"):
        out = sparse_pca(form[1](Y), 3, cardinality=3, scale=True)
    ref = sparse_pca(X, 3, cardinality=3, scale=True)
    np.testing.assert_allclose(out.loadings, ref.loadings, atol=1e-12)
    np.testing.assert_allclose(out.explained_variance, ref.explained_variance, rtol=1e-12)
    np.testing.assert_allclose(out.transform(Y), ref.transform(X), rtol=1e-10, atol=1e-12)
    back = out.reconstruct(out.transform(Y)) / (Y[0] / X[0])
    np.testing.assert_allclose(back, ref.reconstruct(ref.transform(X)), rtol=1e-9, atol=1e-9)
    with np.errstate(all="raise"), told_of_range(np.inf):
        plain = sparse_pca(form[1](Y), 1, cardinality=2)
    assert np.flatnonzero(plain.loadings[:, 0]).tolist() == [0, 3]
    C = np.cov(X[:, [0, 3]].T)
    np.testing.assert_allclose(
        np.abs(plain.loadings[[0, 3], 0]), np.abs(np.linalg.eigh(C)[1][:, -1]), atol=1e-12
    )
    assert plain.explained_variance.tolist() == [np.inf]
    assert plain.explained_variance_ratio[0] == pytest.approx(
        np.linalg.eigvalsh(C)[-1] / np.trace(C), rel=1e-12
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_entries_at_the_end_of_the_number_range(dtype):
    top = np.finfo(dtype).max
    X = np.where(X0 > 0, top, np.where(X0 < 0, -top, 0)).astype(dtype)
    ref = sparse_pca(np.sign(X0), 2, cardinality=K)
    beyond = dtype == np.float64  # variances are float64
    with np.errstate(all="raise"), told_of_range(np.inf if beyond else 1.0):
        out = sparse_pca(X, 2, cardinality=K)
    np.testing.assert_allclose(np.abs(out.loadings), np.abs(ref.loadings), atol=tolerance(dtype))
    two = np.array([[top, top], [-top, -top]], dtype)  # their standard deviation is above the range
    with contextlib.suppress(ValueError), told_of_range(np.inf if beyond else 1.0):
        np.testing.assert_allclose(tpower(two, 2).loading, np.sqrt([0.5, 0.5]), rtol=tolerance(dtype))


def test_extreme_loadings_and_starts():
    """Directions count, lengths do not."""
    for c in (1e300, 1e-300, 1e-310, 5e-324):
        W = np.sign(V0) * c
        with np.errstate(all="raise"):
            np.testing.assert_allclose(
                explained_variance(X0, W), explained_variance(X0, np.sign(V0)), rtol=1e-12
            )
            np.testing.assert_allclose(renormalize(X0, W), renormalize(X0, np.sign(V0)), atol=1e-12)
            x = tpower(X0, K, start=W[:, 0])
            np.testing.assert_allclose(x.loading, tpower(X0, K, start=np.sign(V0[:, 0])).loading, atol=1e-12)
            for method in ("hotelling", "projection", "schur"):
                A = CLEAN["covariance"]
                D = deflate(A, W[:, 0], method)
                np.testing.assert_allclose(D, deflate(A, np.sign(V0[:, 0]), method), atol=1e-11)


# ---- operators that misbehave ---------------------------------------------------------------------------


def operator(matvec, rmatvec=None, dtype=np.float64, shape=(N, P)):
    return LinearOperator(shape, matvec=matvec, rmatvec=rmatvec or (lambda f: X0.T @ f), dtype=dtype)


def covariance(v):
    return X0.T @ (X0 @ v)


class Broken(Exception):
    pass


def explode(v):
    raise Broken("inside the product")


PRODUCTS = [
    ("complex", lambda v: covariance(v) + 0j, TypeError, "complex"),
    ("strings", lambda v: np.array(["a"] * P), TypeError, "dtype"),
    ("objects", lambda v: np.array([object()] * P), TypeError, "dtype"),
    ("None", lambda v: None, TypeError, "dtype"),
    ("too short", lambda v: covariance(v)[:-1], ValueError, "shape"),
    ("too long", lambda v: np.append(covariance(v), 0), ValueError, "shape"),
    ("scalar", lambda v: 3.0, ValueError, "shape"),
    ("3-d", lambda v: covariance(v)[None, None], ValueError, "shape"),
    ("NaN", lambda v: covariance(v) * np.nan, ValueError, "NaN or inf"),
    ("inf", lambda v: covariance(v) + np.inf, ValueError, "NaN or inf"),
    ("raises", explode, Broken, "inside"),
    ("sparse", lambda v: sp.csr_array(covariance(v)[None]), TypeError, "dtype"),
]
OPERATOR_CALLS = [c for c in CALLS if c[0] not in (*DENSE_ONLY, "transform")]


@pytest.mark.parametrize("product", PRODUCTS, **ids)
@pytest.mark.parametrize("late", [0, 1, 3, 6])
@pytest.mark.parametrize("solver", ["sparse_pca", "tpower", "explained_variance", "renormalize"])
def test_callable_that_fails_at_some_call(product, late, solver):
    """Whether the first product is wrong or a later one, the error arrives and names the operator."""
    _, wrong, error, message = product
    count = itertools.count()

    def A(v):
        return covariance(v) if next(count) < late else wrong(v)

    options = {"kind": "covariance", "n_features": P}
    calls = {
        "sparse_pca": lambda: sparse_pca(A, 3, cardinality=K, **options),
        "tpower": lambda: tpower(A, K, **options),
        "explained_variance": lambda: explained_variance(A, V0[:, [0, 1] * 5], "raw", **options),
        "renormalize": lambda: renormalize(A, V0[:, [0, 1] * 5], **options),
    }
    with pytest.raises(error, match=message):
        calls[solver]()


@pytest.mark.parametrize(
    "product", [p for p in PRODUCTS if p[0] in ("complex", "NaN", "raises", "objects")], **ids
)
@pytest.mark.parametrize("late", range(0, 30, 3))
@pytest.mark.parametrize("side", ["forward", "backward"])
def test_linear_operator_that_fails_at_some_call(product, late, side):
    _, wrong, error, message = product
    count = itertools.count()
    if product[0] in ("complex", "NaN", "objects"):
        wrong = {
            "complex": lambda y: y + 0j, "NaN": lambda y: np.append(y[:-1], np.nan),
            "objects": lambda y: np.array([object()] * y.size),
        }[product[0]]  # fmt: skip

    def tamper(y):
        return y if next(count) < late else wrong(y)

    forward = side == "forward"
    X = operator(
        lambda v: tamper(X0 @ v) if forward else X0 @ v, lambda f: X0.T @ f if forward else tamper(X0.T @ f)
    )
    with pytest.raises(error, match=message):
        sparse_pca(X, 6, cardinality=K)


def test_operator_may_change_its_argument_and_reuse_its_result():
    buffer = np.empty(P)

    def A(v):
        np.matmul(CLEAN["covariance"], v, out=buffer)
        v[:] = np.nan
        return buffer

    options = {"kind": "covariance", "n_features": P}
    out = sparse_pca(A, 3, cardinality=K, **options)
    assert_same(out, sparse_pca(lambda v: CLEAN["covariance"] @ v, 3, cardinality=K, **options), 0)
    identity = sparse_pca(lambda v: v, 3, cardinality=1, **options)
    np.testing.assert_array_equal(identity.loadings.sum(axis=0), 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
def test_operator_of_any_dtype(dtype):
    X = aslinearoperator(X0.astype(dtype))
    out = sparse_pca(X, 2, cardinality=K)
    single = dtype in (np.float32, np.float16)
    assert out.loadings.dtype == (np.float32 if single else np.float64)
    np.testing.assert_allclose(
        out.loadings, sparse_pca(X0, 2, cardinality=K).loadings, atol=2e-5 if single else 1e-12
    )


def test_operator_without_a_transpose():
    X = LinearOperator((N, P), matvec=lambda v: X0 @ v)
    with pytest.raises(NotImplementedError):
        sparse_pca(X, 2, cardinality=K)


def test_operator_that_calls_the_solver():
    inner = []

    def A(v):
        inner.append(sparse_pca(X0, 2, cardinality=K, callback=lambda p: None).loadings)
        with pytest.raises(ValueError, match="NaN"):
            tpower(X0 * np.nan, K)
        return covariance(v)

    options = {"kind": "covariance", "n_features": P}
    out = sparse_pca(A, 2, cardinality=K, **options)
    assert_same(out, sparse_pca(covariance, 2, cardinality=K, **options), 0)
    expected = sparse_pca(X0, 2, cardinality=K).loadings
    assert all(np.array_equal(V, expected) for V in inner)


def test_callback_that_calls_the_solver():
    seen = []
    out = sparse_pca(X0, 3, cardinality=K, callback=lambda p: seen.append(sparse_pca(X0, 3, cardinality=K)))
    assert_same(out, seen[0], 0)


def test_callables_need_their_shape_and_kind():
    with pytest.raises(TypeError, match="kind"):
        sparse_pca(covariance, 2, cardinality=K, n_features=P)
    with pytest.raises(TypeError, match="n_features"):
        sparse_pca(covariance, 2, cardinality=K, kind="covariance")
    for value, error in ((0, ValueError), (2.0, TypeError), (True, TypeError)):
        with pytest.raises(error, match="n_features"):
            sparse_pca(covariance, 2, cardinality=1, kind="covariance", n_features=value)
    with pytest.raises(ValueError, match="scale"):
        sparse_pca(lambda v: v, 2, cardinality=K, kind="covariance", n_features=257, scale=True)
    with pytest.raises(TypeError, match="X"):
        result("data").transform(covariance)


# ---- working in place -----------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("order", ["C", "F"])
def test_overwrite_touches_nothing_when_it_fails(order, kind, dtype):
    good = CLEAN[kind].astype(dtype, order=order)
    for A, x, options in (
        (good, np.zeros(P), {}),
        (good, np.full(P, np.nan), {}),
        (good, np.ones(P - 1), {}),
        (with_value(good, np.nan, (1, 1)).astype(dtype, order=order), np.ones(P), {}),
        (good, np.ones(P), {"method": "nothing"}),
        (good, np.ones(P), {"earlier": np.ones((P, 1))}),
        (good, np.ones(P), {"method": "orthogonalized_projection", "earlier": np.ones((P + 1, 1))}),
    ):
        with untouched(A), pytest.raises(ValueError):
            deflate(A, x, kind=kind, overwrite=True, **options)
    for A in (
        read_only(good), every_second(good), unaligned(good), good.astype(good.dtype.newbyteorder(">")),
        good.astype(np.float16), good.astype(int), np.broadcast_to(good[:1] * 0, good.shape),
    ):  # fmt: skip
        with untouched(A), pytest.raises(ValueError, match="overwrite=True needs A"):
            deflate(A, np.ones(P), kind=kind, overwrite=True)
    with pytest.raises(ValueError, match="overwrite=True needs A"):
        deflate(good.tolist(), np.ones(P), kind=kind, overwrite=True)


def test_overwrite_does_not_touch_a_frame():
    frame = pd.DataFrame(CLEAN["covariance"])
    with untouched(frame), pytest.raises(ValueError, match="overwrite=True needs A"):
        deflate(frame, np.ones(P), overwrite=True)


@pytest.mark.parametrize("method", ["hotelling", "projection", "schur"])
def test_overwrite_with_a_direction_inside_of_the_matrix(method):
    A = CLEAN["covariance"].copy()
    expected = deflate(A, A[0].copy(), method)
    out = deflate(A, A[0], method, overwrite=True)
    assert out is A
    np.testing.assert_array_equal(out, expected)


def test_floating_point_flags_stay_as_they_were():
    """Neither a call nor the import may leave flush-to-zero or another rounding mode behind."""
    with np.errstate(all="raise"):
        for _, call in CALLS:
            for kind in KINDS:
                call(CLEAN[kind], kind)
    tiny = np.array([5e-324])
    assert (tiny * 1.0)[0] == 5e-324
    assert (np.array([2.0**-1022]) / 4)[0] == 2.0**-1024
    assert 1.0 + 2.0**-53 == 1.0
    assert 1.0 - 2.0**-54 == 1.0
    assert sys.float_info.rounds == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda X: sparse_pca(X, 1, cardinality=K),
        lambda X: tpower(X, K),
        lambda X: spcacore.pmd(X, 1.5),
        lambda X: spcacore.spca(X, 1, cardinality=K),
        lambda X: spcacore.ppca(X, 1),
        lambda X: spcacore.oppca(X, 1),
        lambda X: spcacore.kernel_pca(X, 1, kernel="linear"),
        lambda X: spcacore.explained_variance(X, np.eye(P, 1)),
        lambda X: spcacore.sparsity_path(X, cardinality=[K]),
        lambda X: spcacore.select_n_components(X, 1, cardinality=K, n_folds=2, rule="best"),
    ],
)
def test_variances_below_the_number_range_are_told(call):
    """They are 0 where the ratios are not, and said to be so, once."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call(np.round(8 * X0) * 1e-170)
    assert [str(w.message) for w in caught] == ["a variance is below the number range and is given as 0"]
    assert caught[0].filename == __file__
