"""Every kind of input is the same operator: against explicit NumPy matrices."""

import time

import numpy as np
import pytest
import scipy.sparse
from hypothesis import strategies as st
from in_turn import each_dtype, of_examples
from numpy.testing import assert_allclose, assert_array_equal
from oracles import covariance, deflated, normal, products, sparse_direction
from row_block_tools import STORED
from scipy.sparse.linalg import LinearOperator

from spcacore import _core, row_blocks
from spcacore.operators.deflation import DEFLATIONS
from spcacore.operators.deflation import DeflatedOperator as Deflated
from spcacore.operators.gram import rows_of
from spcacore.operators.inputs import as_problem

N, P = 40, 23


def data(dtype=np.float64):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((N, P)) * np.linspace(3, 1, P) + rng.integers(-2, 3, P)
    X[rng.random((N, P)) < 0.5] = 0
    X[:, 7] = 4.5  # a constant column
    return X.astype(dtype)


def inputs(X, A):
    """name -> matrix, kind; X data, A its covariance."""
    wide = scipy.sparse.csr_array(X)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    padded = np.zeros((N + 3, P + 5), X.dtype)
    padded[2:-1, 3:-2] = X
    A = A.astype(X.dtype)
    return {
        "C": (np.ascontiguousarray(X), "data"),
        "F": (np.asfortranarray(X), "data"),
        "C rows apart": (padded[2:-1, 3:-2], "data"),
        "F columns apart": (np.asfortranarray(padded)[2:-1, 3:-2], "data"),
        "every other column": (np.repeat(X, 2, axis=1)[:, ::2], "data"),
        "csr": (scipy.sparse.csr_array(X), "data"),
        "csr int64": (wide, "data"),
        "csc": (scipy.sparse.csc_array(X), "data"),
        "coo": (scipy.sparse.coo_matrix(X), "data"),
        "blocks": (row_blocks(X, block_bytes=X.nbytes // 3), "data"),
        "linear operator": (
            LinearOperator(X.shape, matvec=lambda v: X @ v, rmatvec=lambda u: X.T @ u, dtype=X.dtype),
            "data",
        ),
        "covariance C": (A, "covariance"),
        "covariance F": (np.asfortranarray(A), "covariance"),
        "covariance csr": (scipy.sparse.csr_array(A), "covariance"),
        "covariance csc": (scipy.sparse.csc_array(A), "covariance"),
        "covariance operator": (LinearOperator(A.shape, matvec=lambda v: A @ v, dtype=X.dtype), "covariance"),
    }


NAMES = tuple(inputs(data(), covariance(data())))


@pytest.mark.share(4)
@each_dtype
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("center", "scale"), [(True, False), (False, False), (True, True), (False, True)])
def test_products_and_submatrices(name, dtype, center, scale):
    X = data(dtype)
    A = covariance(X, center, scale)
    M, kind = inputs(X, A)[name]
    if "operator" in name and kind == "data" and scale:
        with pytest.raises(ValueError, match="scale=True needs the entries"):
            as_problem(M, kind=kind, scale=True)
        return
    problem = as_problem(M, kind=kind, center=center, scale=scale)
    op, u = problem.operator, problem.unit
    tolerance = (
        {"rtol": 1e-12, "atol": 1e-12 * A.max()}
        if dtype == np.float64
        else {"rtol": 1e-5, "atol": 1e-5 * A.max()}
    )
    rng = np.random.default_rng(1)
    index = np.sort(rng.choice(P, 4, replace=False))
    v = np.zeros(P, dtype)
    v[index] = rng.standard_normal(4)
    dense = rng.standard_normal(P).astype(dtype)
    assert_allclose(u * op.apply(index, v[index]), A @ v, **tolerance)
    assert_allclose(u * op.apply(None, dense), A @ dense, **tolerance)
    V = rng.standard_normal((P, 6)).astype(dtype)
    for W in (V, np.asfortranarray(V), np.repeat(V, 2, axis=1)[:, ::2]):
        assert_allclose(u * op.apply_block(W), A @ V, rtol=0, atol=10 * tolerance["atol"])
    S = np.array([0, 3, 7, 8, 22])
    assert_allclose(u * op.submatrix(S), A[np.ix_(S, S)], **tolerance)
    if problem.diagonal is not None:
        assert_allclose(u * problem.diagonal, A.diagonal(), **tolerance)

    y = A @ v
    positions, values, quadratic = op.largest(index, v[index], 5)
    assert_array_equal(positions, np.sort(np.argsort(-abs(y), kind="stable")[:5]))
    assert_allclose(u * values, y[positions], **tolerance)
    assert_allclose(u * quadratic, v @ A @ v, **tolerance)
    level = (np.sort(abs(y))[-6] + np.sort(abs(y))[-7]) / 2
    positions, values = op.above(index, v[index], dtype(level / u))
    assert_array_equal(positions, np.flatnonzero(abs(y) > level))


@pytest.mark.share(8)
@each_dtype
@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("coo", "csr int64", "every other column")])
@pytest.mark.parametrize(
    ("method", "constraint"),
    [(method, None) for method in DEFLATIONS]
    + [("projection", "orthogonal"), ("projection", "uncorrelated")],
)
def test_implicit_deflation_is_explicit_deflation(name, dtype, method, constraint):
    """A component in the span of earlier ones changes nothing, and no component what was before it."""
    X = data(dtype)
    A = start = covariance(X)
    M, kind = inputs(X, A)[name]
    problem = as_problem(M, kind=kind)
    state = Deflated.from_problem(problem, DEFLATIONS[method], constraint)
    rng = np.random.default_rng(2)
    earlier = []
    atol = A.max() * (1e-12 if dtype == np.float64 else 2e-5)
    for _ in range(4):
        x = sparse_direction(rng, P, dtype)
        y = start @ x if constraint == "uncorrelated" else x.astype(np.float64)
        A = deflated(A, y, "orthogonalized_projection" if constraint else method, earlier)
        earlier.append(y)
        before, diagonal = state, None if state.diagonal is None else state.diagonal.copy()
        state = state.deflate(np.flatnonzero(x), x[x != 0])
        assert_array_equal(before.diagonal, diagonal)
        v = rng.standard_normal(P).astype(dtype)
        assert_allclose(problem.unit * state.operator.apply(None, v), A @ v, atol=10 * atol)
        V = np.stack([v, x, -2 * v], axis=1)
        assert_allclose(problem.unit * state.operator.apply_block(V), A @ V, atol=30 * atol)
        index = np.array([1, 4, 7, 20])
        assert_allclose(
            problem.unit * state.operator.apply(index, v[index]), A[:, index] @ v[index], atol=10 * atol
        )
        assert_allclose(
            problem.unit * state.operator.submatrix(index), A[np.ix_(index, index)], atol=10 * atol
        )
        if not state.operator.symmetric_form and state.deflation.semidefinite:
            C = state.operator.columns(index).astype(np.float64) * problem.unit**0.5
            assert_allclose(C @ C.T / (N - 1), A[np.ix_(index, index)], atol=10 * atol)
            u = rng.standard_normal(N).astype(dtype)
            back = problem.unit**0.5 * state.operator.backward(u)[index]
            assert_allclose(back, C @ u / (N - 1), atol=10 * atol)
        if state.diagonal is not None:
            assert_allclose(problem.unit * state.diagonal, A.diagonal(), atol=10 * atol)
    if len(state.basis):
        Q = np.stack(state.basis, axis=1)
        assert_allclose(Q.T @ Q, np.eye(4), atol=1e-12)
        assert_allclose(Q @ (Q.T @ np.transpose(earlier)), np.transpose(earlier), atol=10 * atol)
        again = state.deflate(np.flatnonzero(x), x[x != 0])
        assert again.operator is state.operator
        assert len(again.loadings) == 5


@pytest.mark.parametrize("layout", ["C", "F", "csr", "csc"])
@of_examples(
    60,
    n=st.integers(1, 700),
    offset=st.sampled_from([0.0, 1.0, 1e8, -1e12]),
    size=st.sampled_from([1.0, 1e-3, 1e160, 1e-160, 1e-300, 1e290]),
    seed=st.integers(0, 2**31),
)
def test_statistics_at_any_mean_and_scale(layout, n, offset, size, seed):
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, 5)) + offset) * size
    X[:, 2] = X[0, 2]
    X[rng.random(n) < 0.3, 3] = 0
    problem = as_problem(STORED[layout](X))
    exact = X.astype(np.longdouble)
    mean = exact.mean(axis=0)
    square = ((exact - mean) ** 2).sum(axis=0) / max(n - 1, 1)
    assert_allclose(problem.mean, mean.astype(float), rtol=1e-13, atol=1e-14 * abs(X).max())
    scale = problem.diagonal.sum() or 1
    expected = (square / (square.sum() or 1)).astype(float)
    assert_allclose(problem.diagonal / scale, expected, rtol=1e-9 if abs(offset) < 1e9 else 1e-3, atol=1e-14)
    assert problem.diagonal[2] == 0


def test_the_range_does_not_depend_on_signs():
    for offset in (0.0, 1e10, 1e100):
        X = data() + offset
        assert as_problem(X).affine.range == as_problem(-X).affine.range
    assert as_problem(data() + 1e100).affine.range < 1


@pytest.mark.parametrize("k", [1, 2, 5, 40])
@each_dtype
def test_leading_eigenvector(k, dtype):
    B = normal(k, k, k)
    G = (B + B.T).astype(dtype)
    value, vector = _core.leading_eigenvector(G.copy())
    reference = np.linalg.eigvalsh(G.astype(float))
    tolerance = 1e-12 if dtype == np.float64 else 1e-5
    assert_allclose(value, reference[-1], rtol=tolerance, atol=tolerance)
    assert_allclose(G.astype(float) @ vector, value * vector, atol=10 * k * tolerance)


def test_the_largest_eigenvalue_of_two_equal_variables_to_the_last_bit():
    for a, b in np.random.default_rng(1).integers(1, 2**20, (40, 2)) / 2**20:
        exact = 8 + a + b / 16
        value, _ = _core.leading_eigenvector(np.array([[8 + a, b / 16], [b / 16, 8 + a]]))
        assert abs(value - exact) <= 1.5 * np.finfo(float).eps * exact


@each_dtype
def test_eigenvectors_of_what_is_not_finite_are_an_error(dtype):
    with pytest.raises(ValueError, match="not finite"):
        _core.leading_eigenvector(np.full((5, 5), np.nan, dtype))


def test_statistics_of_columns_that_look_constant():
    """Zeros and ones in sparse storage, and columns constant within each tile but not across tiles."""
    X = np.zeros((1000, 4))
    X[::3, 0] = 1
    X[300:, 1] = 2.5
    X[:, 2] = 1
    X[:512, 3] = -7
    for M in (X, np.asfortranarray(X), scipy.sparse.csr_array(X), scipy.sparse.csc_array(X)):
        problem = as_problem(M)
        assert_allclose(problem.unit * problem.diagonal, X.var(axis=0, ddof=1), rtol=1e-12)


def test_products_may_come_in_any_form():
    """As a column, of another type, or from a strided array."""
    A = np.round(10 * covariance(data()))
    p = len(A)
    expected = as_problem(A, kind="covariance").operator
    v = np.round(np.linspace(-3, 3, p))
    forms = {
        "column": lambda w: (A @ w)[:, None],
        "row": lambda w: (A @ w)[None],
        "strided": lambda w: np.repeat(A @ w, 2)[::2],
        "single": lambda w: (A @ w).astype(np.float32),
        "list": lambda w: (A @ w).tolist(),
    }
    for name, form in forms.items():
        problem = as_problem(products(form, p), kind="covariance")
        y = problem.operator.apply(None, v) * problem.unit
        assert_allclose(y, A @ v, rtol=1e-6, err_msg=name)
        assert y.dtype == expected.apply(None, v).dtype


@pytest.mark.parametrize("make", [scipy.sparse.csr_array, scipy.sparse.csc_array])
def test_stored_zeros_make_no_column_constant(make):
    """A column whose entries are all stored, some of them zeros and the others equal."""
    X = np.array([[-1.0, 2], [0, 2], [0, 2], [-1, 2]])
    M = make(X + 4)
    M.data -= 4
    assert M.nnz == X.size
    problem = as_problem(M)
    assert_allclose(problem.unit * problem.diagonal, X.var(axis=0, ddof=1), rtol=1e-15)


@pytest.mark.parametrize("covariance", [False, True])
@each_dtype
def test_what_goes_wrong_in_a_product_ends_the_call(dtype, covariance):
    """A wrong length, an error, and a hook that raises while products go on."""
    F = np.diag(np.arange(1, 7)).astype(dtype)

    class Products:
        def forward(self, v):
            return F @ v

        backward = forward

    def operator(**products):
        owner = Products()
        vars(owner).update(products)
        return _core.products(owner, 6, 6, covariance, 1.0, dtype == np.float32)

    def fail(*_):
        raise KeyError("mine")

    def slow(v):
        time.sleep(0.06)
        return F @ v

    v = np.full(6, 0.5, dtype)
    assert_array_equal(operator().apply(None, v), F @ v if covariance else F @ F @ v)
    for name in ("forward",) if covariance else ("forward", "backward"):
        with pytest.raises(ValueError, match="a product of the operator has the wrong length"):
            operator(**{name: lambda v: v[:-1]}).apply(None, v)
        with pytest.raises(KeyError, match="mine"):
            operator(**{name: fail}).apply(None, v)
    with pytest.raises(KeyError, match="mine"):
        operator(forward=slow).truncated_power(np.arange(6), v, 3, 1000, 0.0, fail)


@each_dtype
def test_products_of_rows(dtype):
    X = normal(0, 9, 5).astype(dtype)
    Z = X.astype(float) - X.mean(axis=0, dtype=float)
    op = as_problem(X).operator
    assert_allclose(op.outer(), Z @ Z.T / 8, atol=1e-6 if dtype == np.float32 else 1e-14)
    assert op.dense
    assert not as_problem(scipy.sparse.csr_array(X)).operator.dense


@each_dtype
@pytest.mark.parametrize("name", ["C", "F", "csr", "csc"])
@pytest.mark.parametrize("centered", [True, False])
def test_row_weights(name, dtype, centered):
    """F = diag(u) (X - 1 mean') diag(w), or (diag(u) X - 1 mean') diag(w), in every product."""
    rng = np.random.default_rng(6)
    X, u, mean, w = data(dtype), rng.uniform(0, 2, N), rng.standard_normal(P), rng.uniform(0.5, 2, P)
    u[3] = 0
    F = (u[:, None] * (X - mean) if centered else u[:, None] * X - mean) * w
    A = F.T @ F / (N - 1)
    mean, w, u = mean.astype(dtype), w.astype(dtype), u.astype(dtype)
    op = _core.operator(STORED[name](X), False, mean, w, 1.0, 1 / (N - 1)).row_weighted(u, centered)
    tolerance = {"rtol": 0, "atol": A.max() * (1e-12 if dtype == np.float64 else 2e-5)}
    S, x = np.array([0, 3, 7, 8, 22]), rng.standard_normal(5)
    x /= np.linalg.norm(x)
    V, U = rng.standard_normal((P, 6)), rng.standard_normal((N, 6))
    assert_allclose(op.forward_block(V.astype(dtype)), F @ V, **tolerance)
    assert_allclose(op.backward_block(U.astype(dtype)), F.T @ U / (N - 1), **tolerance)
    assert_allclose(op.outer(), F @ F.T / (N - 1), **tolerance)
    for method in ("", "hotelling", "projection", "schur"):
        state, B = op, A
        if method:
            value, image = x.astype(dtype), op.forward(S, x.astype(dtype))
            amount = float(x @ A[np.ix_(S, S)] @ x) if method == "hotelling" else 1.0
            if method == "schur":
                image = image / np.linalg.norm(image).astype(dtype)
            state = op.deflated(method, S, value, image, amount)
            full = np.zeros(P)
            full[S] = x
            B = deflated(A, full, method, [])
        assert_allclose(state.apply(S, x.astype(dtype)), B[:, S] @ x, **tolerance)
        assert_allclose(state.apply_block(V.astype(dtype)), B @ V, **tolerance)
        assert_allclose(state.submatrix(S), B[np.ix_(S, S)], **tolerance)
        assert_allclose(rows_of(state, S), B[S], **tolerance)
        for b in range(6):
            v = np.ascontiguousarray(V[:, b], dtype)
            assert_array_equal(state.apply(None, v), state.apply_block(V[:, b : b + 1])[:, 0], strict=True)


@each_dtype
@pytest.mark.parametrize("name", ["C", "F", "csr", "csc"])
def test_row_weights_of_a_large_mean(name, dtype):
    """Whole numbers that take all digits of the type: weighted after they are centered, F and A are exact."""
    rng, middle = np.random.default_rng(2), 1 / np.finfo(dtype).eps
    Z, u = rng.integers(-3, 4, (9, 4)), rng.integers(0, 8, 9)
    X, F = (middle + Z).astype(dtype), u[:, None] * Z
    op = _core.operator(STORED[name](X), False, np.full(4, middle, dtype)).row_weighted(u.astype(dtype), True)
    index = np.array([0, 2, 3])
    assert_array_equal(op.columns(index), F[:, index].T)
    assert_array_equal(op.submatrix(index), F[:, index].T @ F[:, index])
    assert_array_equal(op.gram(), F.T @ F)


def test_row_weights_need_data_in_memory():
    A = np.eye(4)
    with pytest.raises(TypeError, match="row weights need data in memory"):
        _core.dense(A, True).row_weighted(np.ones(4))
    owner = type("Owner", (), {"forward": lambda self, v: v, "backward": lambda self, f: f})()
    with pytest.raises(TypeError, match="row weights need data in memory"):
        _core.products(owner, 4, 4, False, 1.0, False).row_weighted(np.ones(4))
    screen = _core.Screen(4, 4, True, A.dtype, None, None, *np.ones((2, 4), np.float32), 1, 1, 1, False)
    with pytest.raises(TypeError, match="without row weights"):
        _core.dense(A, False).row_weighted(np.ones(4)).screened(screen)


def test_a_product_may_keep_its_argument():
    seen, vectors = [], normal(4, 3, 5)
    owner = type("Owner", (), {"forward": lambda self, v: seen.append(v) or v})()
    for v in vectors:
        _core.products(owner, 5, 5, True, 1.0, False).apply(None, v)
    assert_array_equal(seen, vectors)
