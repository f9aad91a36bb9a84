"""The caller's own functions: operators that fail, at first or later, and callbacks that end the search."""

import itertools

import flat
import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from oracles import products
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from small import CLEAN, V0, X0, K, N, P, assert_same, ids

from spcacore import explained_variance, renormalize, sparse_pca, tpower


class Broken(Exception):
    pass


def explode(v):
    raise Broken("inside the product")


def operator(matvec, rmatvec=None, dtype=np.float64, shape=(N, P)):
    return LinearOperator(shape, matvec=matvec, rmatvec=rmatvec or (lambda f: X0.T @ f), dtype=dtype)


def covariance(v):
    return X0.T @ (X0 @ v)


PRODUCTS = [
    ("complex", lambda v: covariance(v) + 0j, TypeError, "complex"),
    ("strings", lambda v: np.array(["a"] * P), TypeError, "dtype"),
    ("objects", lambda v: np.array([object()] * P), TypeError, "dtype"),
    ("None", lambda v: None, ValueError, "reshape"),  # says scipy's LinearOperator
    ("too short", lambda v: covariance(v)[:-1], ValueError, "shape"),
    ("too long", lambda v: np.append(covariance(v), 0), ValueError, "shape"),
    ("scalar", lambda v: 3.0, ValueError, "shape"),
    ("NaN", lambda v: covariance(v) * np.nan, ValueError, "NaN or inf"),
    ("inf", lambda v: covariance(v) + np.inf, ValueError, "NaN or inf"),
    ("raises", explode, Broken, "inside"),
]


# ---- operators ------------------------------------------------------------------------------------------


@pytest.mark.share(4)
@pytest.mark.parametrize("product", PRODUCTS, **ids)
@pytest.mark.parametrize("late", [0, 1, 3, P - 1])  # of the P products that give the entries
@pytest.mark.parametrize(
    "solver", ["sparse_pca", "tpower", "explained_variance", "renormalize", "transposed"]
)
def test_callable_that_fails_at_some_call(product, late, solver):
    """Whether the first product is wrong or a later one, the error arrives and names the operator."""
    _, wrong, error, message = product
    count = itertools.count()

    def A(v):
        return covariance(v) if next(count) < late else wrong(v)

    def transposed(f):
        return X0.T @ f if next(count) < late else wrong(np.ones(P))

    A, options = products(A, P), {"kind": "covariance"}
    calls = {
        "sparse_pca": lambda: flat.sparse_pca(A, 3, cardinality=K, **options),
        "tpower": lambda: flat.tpower(A, K, **options),
        "explained_variance": lambda: explained_variance(A, V0[:, [0, 1] * 5], "raw", **options),
        "renormalize": lambda: renormalize(A, V0[:, [0, 1] * 5], **options),
        "transposed": lambda: flat.sparse_pca(operator(lambda v: X0 @ v, transposed), 6, cardinality=K),
    }
    with pytest.raises(error, match=message):
        calls[solver]()


def test_operator_may_change_its_argument_and_reuse_its_result():
    buffer = np.empty(P)

    def A(v):
        np.matmul(CLEAN["covariance"], v, out=buffer)
        v[:] = np.nan
        return buffer

    out = sparse_pca(products(A, P), 3, K, kind="covariance")
    plain = products(lambda v: CLEAN["covariance"] @ v, P)
    assert_same(out, sparse_pca(plain, 3, K, kind="covariance"), 0)
    identity = sparse_pca(products(lambda v: v, P), 3, 1, kind="covariance")
    assert_array_equal(identity.loadings.sum(axis=0), 1)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.float16, np.int32])
def test_operator_of_any_dtype(dtype):
    X = aslinearoperator(X0.astype(dtype))
    out = sparse_pca(X, 2, cardinality=K)
    single = dtype in (np.float32, np.float16)
    assert out.loadings.dtype == (np.float32 if single else np.float64)
    assert_allclose(out.loadings, sparse_pca(X0, 2, cardinality=K).loadings, atol=2e-5 if single else 1e-12)


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

    out = sparse_pca(products(A, P), 2, K, kind="covariance")
    assert_same(out, sparse_pca(products(covariance, P), 2, K, kind="covariance"), 0)
    expected = sparse_pca(X0, 2, cardinality=K).loadings
    assert all(np.array_equal(V, expected) for V in inner)


def test_functions_have_no_shape():
    for kind in ("data", "covariance"):
        with pytest.raises(TypeError, match=r"LinearOperator\(shape, matvec=X\)"):
            sparse_pca(covariance, 2, cardinality=K, kind=kind)
    with pytest.raises(ValueError, match="scale"):
        sparse_pca(products(lambda v: v, 300), 2, cardinality=K, kind="covariance", scale=True)
    with pytest.raises(TypeError, match="X"):
        sparse_pca(CLEAN["data"], 2, K).transform(covariance)


# ---- callbacks ------------------------------------------------------------------------------------------


def test_stop_iteration_of_an_operator_is_an_error():
    """Only the callback may end the search; an operator that raises StopIteration has failed."""
    for fatal, kind in [*((i, "data") for i in range(25)), *((i, "covariance") for i in range(P))]:
        count = itertools.count()

        def failing(y, count=count, fatal=fatal):
            if next(count) == fatal:
                raise StopIteration("from the operator")
            return y

        X = operator(lambda v, failing=failing: failing(X0 @ v), lambda f: X0.T @ f)
        options = {"cardinality": K, "kind": kind}
        if kind == "covariance":
            X = products(lambda v, failing=failing: failing(covariance(v)), P)
        with pytest.raises(RuntimeError, match="X, an operator, raised StopIteration: from the operator"):
            flat.sparse_pca(X, 2, callback=lambda progress: None, **options)
