"""The linear algebra of all floors against LAPACK, long doubles and closed forms."""

import numpy as np
import pytest
import scipy.linalg
from hypothesis import example, given
from hypothesis import strategies as st
from in_turn import each_dtype
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import LinearOperator

from spcacore.linalg import eigen, orthogonal, scaling


def symmetric(p, values, rng):
    """A matrix with the eigenvalues, and its eigenvectors."""
    V = np.linalg.qr(rng.standard_normal((p, p)))[0]
    return (V * values) @ V.T, V


def aligned(U, V):
    """|U'V| is the identity."""
    assert_allclose(np.abs(U.T @ V), np.eye(U.shape[1]), atol=1e-6)


# ---- eigenpairs -------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [12, 40])
def test_a_step_of_jacobi_and_davidson_solves_the_bordered_system(n):
    """Where Q grows; for the a of the decomposition and beside it."""
    rng = np.random.default_rng(n)
    p, theta = 30, np.linspace(1, 5, 30)
    Y = rng.standard_normal((p, n))
    G, Q = Y @ Y.T, np.linalg.qr(rng.standard_normal((p, 3)))[0]
    inverse = eigen.ShiftedInverse(
        0, lambda: Y, lambda a, V: V / (a + theta.reshape(-1, *[1] * (V.ndim - 1)))
    )
    x = orthogonal.project_out(rng.standard_normal(p), Q)
    for q in (0, 2, 3):
        inverse.step(2.0, x, G @ x, theta * x, Q[:, :q], 10)
        inverse.order = 10**6  # no other decomposition
    known, gain = 2 + theta, x @ G @ x
    for a in (2.0, 2.5):
        K = a + theta
        step = inverse.step(a, x, G @ x, theta * x, Q, 10)
        border = np.column_stack([Q, K * x])
        shifted = G - np.diag(gain / (x @ (known * x)) * known)
        whole = np.block([[shifted, border], [border.T, np.zeros((4, 4))]])
        exact = np.linalg.solve(whole, np.r_[G @ x - gain / (x @ (K * x)) * K * x, np.zeros(4)])[:p]
        cosine = abs(step @ exact) / np.linalg.norm(step) / np.linalg.norm(exact)
        assert cosine > 1 - 1e-12


@each_dtype
@pytest.mark.parametrize("lanczos", [False, True])
def test_leading_eigenpairs_of_a_matrix(lanczos, dtype):
    rng = np.random.default_rng(1)
    A, V = symmetric(60, np.r_[7, 4, np.linspace(1, -6, 58)], rng)
    A = A.astype(dtype)
    lower = np.tril(A)  # LAPACK reads no more
    values, vectors, found = eigen.leading_eigenpairs(
        lower.copy(), 2, A if lanczos else None, v0=np.ones(60, dtype), maxiter=100
    )
    assert found is lanczos
    assert_allclose(values, [7, 4], rtol=1e-5)
    assert_allclose(np.abs(vectors.T @ V[:, :2]), np.eye(2), atol=1e-4)


SPECTRA = {
    "apart": np.linspace(3, -1, 230), "low rank": np.r_[np.arange(9, 0, -1), np.zeros(221)],
    "clusters": np.repeat([5, 4, 4 - 1e-12, -2], [1, 20, 3, 206]), "zero": np.zeros(230),
}  # fmt: skip


@pytest.mark.share(3)
@each_dtype
@pytest.mark.parametrize("exponent", [0, -900, 900])
@pytest.mark.parametrize("name", [*SPECTRA, "diagonal"])
def test_the_tridiagonal_form_of_a_matrix_has_its_eigenpairs(name, exponent, dtype):
    """Those that it was made of; LAPACK's of half of them and of all."""
    A = symmetric(230, SPECTRA.get(name, SPECTRA["apart"]), np.random.default_rng(3))[0]
    A = np.diag(A.diagonal()) if name == "diagonal" else A
    exponent = exponent if dtype == np.float64 else exponent // 10
    A = np.ldexp((A + A.T) / 2, exponent).astype(dtype)
    expected, limit = np.linalg.eigvalsh(A.astype(np.float64)), 100 * np.finfo(dtype).eps
    for r in (1, 8, 230):
        values, V = (np.asarray(a, np.float64) for a in eigen.upper_eigenpairs(np.tril(A), r))
        size = np.abs(expected).max() or 1.0
        assert_allclose(values / size, expected[-r:] / size, atol=limit)
        assert_allclose(V.T @ V, np.eye(r), atol=100 * limit)
        assert_allclose((A.astype(np.float64) / size) @ V, V * (values / size), atol=limit)


def test_lapack_takes_over_from_arpack():
    A = np.diag(np.linspace(1, 1.0001, 200))
    values, vectors, found = eigen.leading_eigenpairs(A.copy(), 5, A, v0=np.ones(200), maxiter=1)
    assert not found
    assert_allclose(values, np.diag(A)[:-6:-1], rtol=1e-14)
    aligned(vectors, np.eye(200)[:, :-6:-1])


def test_largest_eigenpairs_repeat():
    """Restarts of ARPACK in an invariant space are random, but for a generator of one's own."""
    A = np.diag([3.0] * 10 + [1.0] * 90)
    product = LinearOperator(A.shape, matvec=lambda v: A @ v, dtype=float)
    first, second = (eigen.largest_eigenpairs(product, 4, v0=np.eye(100)[0]) for _ in range(2))
    for a, b in zip(first, second, strict=True):
        assert_array_equal(a, b)
    assert_allclose(first[0], 3)


# ---- orthonormal bases ------------------------------------------------------------------------------


def exact_part(x, Q):
    """x less its projection on the span of Q, normalized, in long doubles."""
    x, Q = x.astype(np.longdouble), Q.astype(np.longdouble)
    for _ in range(3):
        x = x - Q @ (Q.T @ x)
    return (x / np.sqrt((x * x).sum())).astype(float)


@pytest.mark.parametrize("scale", [1.0, 1e-160, 1e160])
@pytest.mark.parametrize("angle", [1.0, 1e-5])
def test_orthogonal_part(angle, scale, rng):
    Q = np.linalg.qr(rng.standard_normal((30, 6)))[0]
    x = Q @ rng.standard_normal(6) + angle * rng.standard_normal(30)
    q = orthogonal.orthogonal_part(scale * x, list(Q.T))
    assert_allclose(np.abs(Q.T @ q).max(), 0, atol=1e-15)
    assert_allclose(q, exact_part(x, Q), atol=1e-14 / angle)


def test_what_lies_in_the_span_is_rounding():
    rng = np.random.default_rng(1)
    Q = np.linalg.qr(rng.standard_normal((30, 6)))[0]
    inside = Q @ rng.standard_normal(6)
    assert orthogonal.orthogonal_part(inside, list(Q.T)) is None
    assert orthogonal.orthogonal_part(np.zeros(30), []) is None
    assert len(orthogonal.orthonormal_basis([inside, 2 * inside])) == 1
    assert not orthogonal.orthonormal(np.column_stack([inside, -3 * inside]))[:, 1].any()


def test_bases_span_what_is_given():
    rng = np.random.default_rng(2)
    V = rng.standard_normal((20, 5))
    V[:, 3] = V[:, 0] + V[:, 2]
    kept = [0, 1, 2, 4]
    expected = scipy.linalg.qr(V[:, kept], mode="economic")[0]
    Q = orthogonal.orthonormal(V)
    assert not Q[:, 3].any()
    assert_allclose(Q[:, kept], expected * np.sign((expected * V[:, kept]).sum(axis=0)), atol=1e-13)
    assert_allclose(np.stack(orthogonal.orthonormal_basis(V.T), axis=1), Q[:, kept], atol=1e-15)
    assert_allclose(orthogonal.project_out(V, expected), 0, atol=1e-14)
    many = rng.standard_normal((300, 250))
    many[:, 0] = many[:, 1] + 1e-6 * many[:, 0]
    Q, expected = (
        orthogonal.orthonormal(np.c_[many, many @ rng.standard_normal((250, 3))]),
        scipy.linalg.qr(many, mode="economic")[0],
    )
    assert not Q[:, 250:].any()
    assert_allclose(Q[:, :250] * np.sign((expected * Q[:, :250]).sum(axis=0)), expected, atol=1e-8)
    assert_allclose(Q.T @ Q, np.diag([1.0] * 250 + [0] * 3), atol=1e-14)


@given(st.lists(st.floats(-1e3, 1e3, allow_subnormal=False), min_size=1, max_size=8), st.booleans())
@example([1.9999999999998863, -2.0], True)
@example([2.0, -1.9999999999998863], False)
def test_signs(entries, tied):
    """The first of the largest is positive, where 1e-12 of a magnitude is a tie."""
    a = np.array([*entries, (1 - 1e-13) * entries[0]] if tied else entries)
    size = abs(a)
    first = next(i for i in range(len(a)) if size[i] >= (1 - 1e-12) * max(size))
    fixed = orthogonal.fix_sign(a)
    assert fixed[first] == max(size) == max(abs(fixed))
    assert_allclose(fixed, (-1 if a[first] < 0 else 1) * a, rtol=1e-12)
    assert orthogonal.sign_of(a) == (-1 if a[first] < 0 else 1)


# ---- polar factors ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "ratio"), [(40, 1.0), (40_000, 1.0), (40_000, 1e-2), (40_000, 1e-6)])
@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e200])
def test_polar_factor(n, ratio, scale, rng):
    """The orthonormal factor is that of SciPy's; a large matrix by its Gram matrix where that suffices."""
    U, V = (np.linalg.qr(rng.standard_normal((m, 3)))[0] for m in (n, 3))
    M = (U * [1, 0.5, ratio]) @ V.T * scale
    assert_allclose(orthogonal.polar_factor(M), U @ V.T, atol=1e-9)
    factor = symmetric(3, [2, 1, 0.5], rng)[0]
    expected = scipy.linalg.polar((U * [1, 0.5, ratio]) @ V.T @ factor)[0]
    assert_allclose(orthogonal.polar_factor(M, factor), expected, atol=1e-9)


@pytest.mark.parametrize("rank", [0, 1, 3])
def test_procrustes_of_any_rank(rank):
    """V'V = I and Tr V'M the nuclear norm, also where a component has no nonzeros."""
    rng = np.random.default_rng(rank)
    M = rng.standard_normal((9, rank)) @ rng.standard_normal((rank, 3))
    old = np.linalg.qr(rng.standard_normal((9, 3)))[0]
    V, nuclear = orthogonal.procrustes(M, old)
    assert_allclose(V.T @ V, np.eye(3), atol=1e-13)
    assert np.trace(V.T @ M) == pytest.approx(np.linalg.norm(M, "nuc"), rel=1e-12)
    assert nuclear == pytest.approx(np.linalg.norm(M, "nuc"), rel=1e-12)
    if rank == 0:
        assert_allclose(V, old, atol=1e-13)


def test_inverse_root():
    rng = np.random.default_rng(5)
    G, V = symmetric(6, [4, 3, 2, 1, 0.5, 0], rng)
    expected = (V[:, :5] / np.sqrt([4, 3, 2, 1, 0.5])) @ V[:, :5].T
    G = (V[:, :5] * [4, 3, 2, 1, 0.5]) @ V[:, :5].T
    root = orthogonal.inverse_root(G + 1e-17)
    assert_allclose(root @ G @ root, V[:, :5] @ V[:, :5].T, atol=1e-10)
    assert_allclose(root, expected, atol=1e-6)


# ---- the pencil on a support ------------------------------------------------------------------------


def test_pencil_basis_is_that_of_lapack():
    rng = np.random.default_rng(6)
    A = symmetric(7, rng.standard_normal(7), rng)[0]
    B = symmetric(7, rng.uniform(0.5, 2, 7), rng)[0]
    mu, U = np.linalg.eigh(B)
    basis = eigen.PencilBasis.of(A, mu, U, mu > 0)
    assert_allclose(basis.eigenvalues, scipy.linalg.eigh(A, B)[0][::-1], atol=1e-12)
    assert_allclose(basis.W.T @ B @ basis.W, np.eye(7), atol=1e-12)
    assert_allclose(basis.W.T @ A @ basis.W, np.diag(basis.eigenvalues), atol=1e-12)
    assert not basis.in_null_space.any()
    expected = []
    for i in range(7):
        rest = np.ix_(*[np.delete(np.arange(7), i)] * 2)
        expected.append(scipy.linalg.eigh(A[rest], B[rest], eigvals_only=True)[-1])
    assert_allclose(basis.without_each(), expected, atol=1e-10)


def test_directions_that_count_for_nothing():
    """B maps e_0 - e_1 to zero: either of the two variables can go without loss."""
    B = np.eye(4)
    B[:2, :2] = 1
    A = np.diag([0.0, 0, 3, 1])
    A[:2, :2] = 2
    mu, U = np.linalg.eigh(B)
    basis = eigen.PencilBasis.of(A, mu, U, mu > 1e-12)
    assert_allclose(basis.eigenvalues, [3, 2, 1], atol=1e-14)
    assert basis.in_null_space.tolist() == [True, True, False, False]
    assert_allclose(basis.without_each(), [3, 3, 2, 3], atol=1e-12)
    nothing = eigen.PencilBasis.empty(3)
    assert_array_equal(nothing.without_each(), 0)


# ---- powers of two ----------------------------------------------------------------------------------


@given(st.floats(0, allow_nan=False, allow_infinity=False, exclude_min=True))
def test_powers_of_two(largest):
    scale = scaling.power_of_two_scale(largest)
    mantissa, exponent = np.frexp(scale)
    assert mantissa == 0.5
    assert scaling.exponent_of(scale) == exponent - 1
    assert scale <= 2.0**511
    assert np.isfinite(np.float32(scaling.power_of_two_scale(largest, np.float32)) ** 2)
    assert 0.5 <= np.ldexp(largest, -scaling.exponent_above(largest)) < 1
    if largest > 1e-300:
        assert 0.25 <= largest * scale * scale < 2
    assert scaling.power_of_two_scale(0.0) == 1


@given(st.lists(st.lists(st.integers(0, 20), max_size=8), max_size=4), st.lists(st.integers(0, 20)))
def test_variables_of_several_sets(sets, others):
    """By the sets of Python."""
    found, every = scaling.union(*(np.array(one, np.intp) for one in sets)), set().union(*sets)
    assert found.tolist() == sorted(every)
    assert scaling.are_among(np.array(others, np.intp), found).tolist() == [j in every for j in others]
