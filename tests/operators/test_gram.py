"""A formed as a matrix from tall data: against NumPy, extended precision, and the search on the data."""

import flat
import numpy as np
import pytest
import scipy.sparse as sp
from in_turn import each_dtype, each_order, scaled_or_not
from numpy.testing import assert_allclose, assert_array_equal
from oracles import normal, products

import spcacore
from spcacore import _core, sparse_pca
from spcacore._limits import BLOCKS_SUBMATRIX_ORDER
from spcacore.operators import gram
from spcacore.operators.inputs import as_problem

P = 24


def planted(n=3000, p=P):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p)) * (1 + 0.02 * np.arange(p))
    for strength, block in ((3, slice(0, 5)), (2.2, slice(5, 10)), (1.6, slice(10, 15))):
        X[:, block] += strength * rng.standard_normal((n, 1))
    return X


def counts(n, p, density):
    rng = np.random.default_rng(0)
    return np.where(rng.random((n, p)) < density, rng.integers(1, 9, (n, p)), 0).astype(float)


def stored(X, kind):
    if kind in ("C", "F"):
        return np.array(X, order=kind)
    S = sp.csr_matrix(X) if kind.startswith("csr") else sp.csc_matrix(X)
    if kind.endswith("64"):
        S.indices, S.indptr = S.indices.astype(np.int64), S.indptr.astype(np.int64)
    return S


# ---- the kernel


SPARSE = "csr", "csc", "csr64", "csc64"
FORMED = [  # samples, variables, density, storage, how many variables, rows of these
    # less than a block, and several: pairs, dense strips, dense rows
    *[(n, 13, share, kind, *part) for n in (1, 7, 9001) for share in (0.04, 0.15, 0.6)
      for kind in ("C", "F", *SPARSE) for part in ((13, 13), (4, 4), (6, 4), (3, 1))],
    # one tile of the dense product, a column more, and several
    *[(1300, p, 0.6, kind, k, rows) for kind in "CF" for p in (96, 97, 211)
      for k, rows in ((p, p), (p // 2 + 1, p // 4))],
    # a strip and several, in blocks of 256
    *[(700, 60, 0.125, kind, k, rows) for kind in SPARSE[1::2] for k in (15, 16, 17, 45)
      for rows in (k, k // 2 + 1)],
    # few columns with most entries, and more than one pass has sums for; a group of rows, several, two blocks
    *[(n, p, None, kind, k, k) for n in (40, 3000, 5000) for p in (100, 500) for kind in SPARSE[::2]
      for k in (p, p - 7)],
    # one vector of 4, 8 or 16 rows, several passes; made dense in blocks of 4096
    *[(5000, 200, 0.03, kind, 165, rows) for kind in ("csr", *SPARSE[1::2])
      for rows in (1, 3, 4, 7, 8, 15, 16, 40)],
]  # fmt: skip


@pytest.mark.share(24)
@each_dtype
@pytest.mark.parametrize(("n", "p", "density", "kind", "k", "rows"), FORMED)
def test_matrix_is_that_of_numpy(n, p, density, kind, k, rows, dtype):
    rng = np.random.default_rng([n, p, k])
    if density is None:
        density = np.where(rng.random(p) < 0.2, 0.5, 0.02)
        density[:2] = 0.5, 0
    X, scale = counts(n, p, density), rng.random(p) + 0.5
    X[n // 2], X[256:512, 3], X[:, 5] = 0, 0, 0  # without entries: a row, a variable in a block and in all
    index = None if k == rows == p else rng.permutation(p)[:k]
    some = np.arange(p) if index is None else index
    for weight, center in ((None, True), (None, False), (rng.random(n) + 1.1, True)):
        problem = as_problem(stored(X.astype(dtype), kind), center=center, scale=scale, sample_weight=weight)
        G = problem.operator.gram(index, None, rows) * 2.0**problem.exponent
        each = np.ones(n) if weight is None else weight
        F = (X - (np.average(X, axis=0, weights=each) if center else 0)) / scale
        expected = ((F * each[:, None]).T @ F / problem.degrees)[np.ix_(some[:rows], some)]
        size = (each @ F**2).max() / problem.degrees or 1
        assert_allclose(G, expected, rtol=0, atol=(1e-13 if dtype == np.float64 else 5e-6) * size)
        assert_array_equal(G[:, :rows], G[:, :rows].T)
        if "s" in kind:
            G = problem.operator.rough_gram(some) * 2.0**problem.exponent
            assert_allclose(G[:rows], expected, rtol=0, atol=5e-6 * size)


def test_single_precision_adds_up_in_double():
    """The same row 300,000 times: sums in single precision would lose two digits more."""
    X = np.ones((300_000, 3), np.float32) * np.float32([0.1, 0.2, 0.3])
    for kind in ("C", "csr"):
        problem = as_problem(stored(X, kind), center=False)
        expected = np.outer(*[X[0].astype(float)] * 2) * (300_000 / 299_999)
        assert_allclose(problem.operator.gram() * 2.0**problem.exponent, expected, rtol=5e-6)


def _products_of_deviations(X):
    exact = X.astype(np.longdouble)
    exact -= exact.mean(axis=0)
    products = (exact.T @ exact).astype(float)
    return products, np.sqrt(np.outer(products.diagonal(), products.diagonal()))


@each_order
def test_large_means_leave_the_digits_of_small_variances(order, rng):
    X = np.array(1e8 + rng.standard_normal((5000, 6)) * [1, 1, 2, 3, 1e-3, 1], order=order)
    expected, size = (M / (len(X) - 1) for M in _products_of_deviations(X))
    problem = as_problem(X)
    G = problem.operator.gram() * 2.0**problem.exponent
    assert (np.abs(G - expected) / size).max() < 1e-9  # the mean itself is rounded to 1e-8
    assert (np.abs(G - expected) / size)[:4, :4].max() < 1e-13


def _rows_of_many_means(n, name):
    """Columns of large means, drifts and jumps along the rows, one constant, and outliers in the first."""
    rng = np.random.default_rng(n)
    X = rng.standard_normal((n, 7))
    if name == "means":
        X += [0, 1, 1e3, 1e8, -1e8, 3, 0]
    elif name == "drifts":
        X += np.arange(n)[:, None] * [1, -1, 0.01, 10, 0, 0, 1e-4]
        X[n // 2 :, 5] += 1e6
    else:
        X[0] *= 1e6
        X[n // 3] += 1e4
    X[:, 6] = 1e7
    return X


@each_order
@pytest.mark.parametrize("name", ["means", "drifts", "outliers"])
@pytest.mark.parametrize("n", [1, 2, 300, 2048, 5000, 30_001])  # a group of rows, a span, and several
def test_one_read_loses_no_digits(order, name, n):
    """By long doubles: each product to some roundings of the deviations; what is constant has none."""
    X = np.array(_rows_of_many_means(n, name), order=order)
    (mean, square, low, high), M = _core.dense(X, False).moments()
    expected, size = _products_of_deviations(X)
    assert (np.abs(M - expected) <= 1e-13 * size).all()
    assert (M.diagonal() == square).all()
    means = X.mean(axis=0, dtype=np.longdouble).astype(float)
    assert_allclose(mean, means, rtol=1e-14, atol=1e-11)
    assert_allclose([low, high], [X.min(axis=0), X.max(axis=0)], rtol=1e-15, atol=1e-9)
    assert square[6] == 0
    assert low[6] == high[6] == mean[6] == 1e7


@each_order
def test_one_read_in_single_precision(order):
    X = np.array(_rows_of_many_means(30_001, "outliers"), np.float32, order=order)
    (_, square, _, _), M = _core.dense(X, False).moments()
    expected, size = _products_of_deviations(X)
    assert (np.abs(M - expected) <= 1e-5 * size).all()  # 512 products are added in single precision
    assert_allclose(square, expected.diagonal(), rtol=1e-7)


@pytest.mark.parametrize("row", [0, 255, 256, 4097, 29_999])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_one_read_says_where_an_entry_is_not_finite(row, value):
    X = planted(30_000)
    X[row, 20] = value
    with pytest.raises(ValueError, match=rf"first at \({row}, 20\)"):
        as_problem(X, form=True, screening="auto")


@pytest.mark.parametrize("size", [1e-170, 1e170, 1.0])
def test_squares_beyond_the_number_range_take_a_second_read(size):
    X = planted(30_000)
    with np.errstate(all="ignore"):
        problem = as_problem(X * size, form=True, screening="auto")
    assert problem.form == (size != 1)
    G = gram.formed(problem).operator.submatrix(np.arange(P))
    assert_allclose(G / G.max(), np.cov(X.T) / np.cov(X.T).max(), atol=1e-13)


def given_as(X, how):
    dtype, kind = how.split()
    if kind == "blocks":
        return spcacore.row_blocks(X.astype(dtype), block_bytes=40_000)
    return np.array(X, dtype, order=kind)


@pytest.mark.share(6)
@scaled_or_not
@pytest.mark.parametrize(
    "highest", [2, 40_000, *(pytest.param(h, marks=pytest.mark.slow) for h in (250, 2047))]
)
def test_whole_numbers_have_one_answer(highest, scale):
    """Of the exact matrix, to the bit: in any type and order, in blocks, and by any number of threads."""
    rng, n, p = np.random.default_rng(0), 6001, 100
    X = rng.binomial(highest, 0.2 + 0.5 * rng.random((n, 1)) * (np.arange(p) < 12), (n, p))
    expected = None
    dtypes = [name for name in ("int8", "uint8", "int16", "uint16") if np.iinfo(name).max >= X.max()]
    ways = [f"{name} {kind}" for name in dtypes for kind in ("C", "F", "blocks")]
    if highest < 2048:
        ways += ["float64 C", "float64 F"]
    for threads in (1, 2):
        with spcacore.limit_threads(threads):
            for how in ways:
                problem = as_problem(given_as(X, how), scale=scale, screening="auto", form=True)
                A = problem.operator.columns(np.arange(p)) / problem.affine.range**4
                expected = A if expected is None else expected
                assert_array_equal(A, expected)
    D = X.astype(np.longdouble) - X.astype(np.longdouble).mean(axis=0)
    C = D.T @ D / (n - 1)
    C = C / np.sqrt(np.outer(C.diagonal(), C.diagonal())) if scale else C
    assert_allclose(expected, C.astype(float), rtol=1e-13, atol=1e-13 * float(C.max()))


def test_what_has_no_matrix_says_so():
    problem = as_problem(planted(50))
    deflated = problem.operator.deflated("hotelling", np.array([0]), np.ones(1), None, 1.0)
    covariance = as_problem(np.eye(3), kind="covariance").operator
    unknown = as_problem(products(lambda v: v, 2000), kind="covariance").operator
    for operator in (deflated, covariance, unknown):
        with pytest.raises(TypeError, match="data in memory"):
            operator.gram()
    sparse = as_problem(sp.csr_array(np.eye(50)), screening="none").operator
    deflated = sparse.deflated("projection", np.array([0]), np.ones(1), np.ones(50), 1.0)
    assert sparse.rough_gram(np.arange(2)).shape == (2, 2)
    for operator in (deflated, problem.operator, covariance, unknown):
        with pytest.raises(TypeError, match="compressed data, without deflation"):
            operator.rough_gram(np.arange(2))


# ---- when


def test_wide_data_are_searched_without_the_matrix():
    for X in (planted(10), normal(0, 80, 7000)):
        assert X.shape[0] < X.shape[1]
        assert sparse_pca(X, 2, cardinality=4).screening.mode != "gram"


@pytest.mark.parametrize("kind", ["C", "csr", "csc"])
def test_tall_data_form_the_matrix(kind):
    X = planted(40_000, 16)
    if kind != "C":
        X = counts(40_000, 16, 0.7) * (X > 0)
    Y = stored(X, kind)
    found, plain = (
        sparse_pca(Y, 3, cardinality=5, method=spcacore.TPower(n_starts=2, screening=m))
        for m in ("auto", "none")
    )
    assert (found.screening.mode, found.screening.reads) == ("gram", 1.0 if kind == "C" else 2.0)
    assert plain.screening.mode == "none"
    for t in range(1, 4):  # what the first of them explain together
        assert found.explained_variance[:t].sum() >= plain.explained_variance[:t].sum() * (1 - 1e-10)
    assert found.n_samples == len(X)
    assert_allclose(found.mean, X.mean(axis=0), rtol=1e-12)
    eigenvalues = [np.linalg.eigvalsh(np.cov(X[:, v != 0], rowvar=False))[-1] for v in found.loadings.T[:1]]
    assert_allclose(found.explained_variance[:1], eigenvalues, rtol=1e-10)


def test_sparse_columns_far_from_zero_are_left_as_data():
    X = counts(40_000, 16, 0.7) * (planted(40_000, 16) > 0)
    X[:, 15] = 1e3 + normal(0, 40_000)
    S = sp.csr_matrix(X)
    found, plain = (
        sparse_pca(S, 2, cardinality=3, method=spcacore.TPower(n_starts=2, screening=m))
        for m in ("auto", "none")
    )
    assert found.screening.mode == "none"
    assert (found.loadings == plain.loadings).all()
    with pytest.raises(ValueError, match="whose mean hides their variance"):
        sparse_pca(S, 2, cardinality=3, method=spcacore.TPower(screening="gram"))


def test_refusals():
    wide = np.ones((3, BLOCKS_SUBMATRIX_ORDER + 1))
    with pytest.raises(ValueError, match="for at most 16384 variables, not 16385"):
        sparse_pca(wide, 1, cardinality=2, method=spcacore.TPower(screening="gram"))


# ---- the same components


@each_dtype
def test_components_below_the_rounding_of_the_matrix_come_from_the_data(dtype, rng):
    """Two variables that differ by 1e-9 (float32: 1e-4) of their size."""
    X = rng.standard_normal((300, 3))
    small = 1e-9 if dtype == np.float64 else 1e-4
    X = np.column_stack([X, X[:, 0] + small * rng.standard_normal(300)]).astype(dtype)
    formed, plain = (
        sparse_pca(X, 4, cardinality=4, method=spcacore.TPower(screening=m)) for m in ("gram", "none")
    )
    assert formed.n_components == plain.n_components == 4
    singular = np.linalg.svd(X.astype(float) - X.astype(float).mean(axis=0), compute_uv=False)
    expected = singular**2 / 299
    assert_allclose(formed.explained_variance, expected, rtol=1e-5 if dtype == np.float64 else 1e-2)


# ---- while it runs


class _Clock:
    """Raises, or ends the search, the first time that it is asked."""

    def __init__(self, error):
        self.error = error

    def __call__(self, n_iter):
        if self.error is not None:
            raise self.error
        return True

    ended = True  # so that it is asked at once


def test_a_callback_that_raises_or_ends_stops_the_pass():
    problem = as_problem(planted(300), screening="gram", form=True, sample_weight=np.ones(300))
    with pytest.raises(KeyboardInterrupt):
        problem.operator.gram(None, _Clock(KeyboardInterrupt()))
    assert problem.operator.gram(None, _Clock(None)) is None
    assert gram.formed(problem, _Clock(None)) is problem


def test_not_finite_sums_raise():
    X = np.full((4, 2), 1e200)
    with pytest.raises(ValueError, match="not finite"):
        _core.dense(X, False).gram()


# ---- blocks of rows


@pytest.mark.parametrize("kind", ["C", "csr"])
@each_dtype
def test_blocks_of_rows_are_read_once(kind, dtype):
    X, w = counts(3000, 14, 0.5) * (planted(3000, 14) > 0), np.random.default_rng(3).integers(0, 3, 3000)
    Y = stored(X.astype(dtype), kind)
    for options in (
        {},
        {"center": False},
        {"center": np.full(14, 0.5), "scale": True},
        {"scale": np.arange(1.0, 15)},
        {"sample_weight": w, "scale": True},
    ):
        blocks = spcacore.row_blocks(Y, block_bytes=20_000)
        assert blocks.n_blocks > 3
        found = flat.sparse_pca(blocks, 3, cardinality=5, screening="gram", **options)
        assert blocks.passes == 1
        assert (found.screening.mode, found.screening.reads) == ("gram", 1.0)
        exact = flat.sparse_pca(X, 3, cardinality=5, screening="gram", **options)
        tolerance = 1e-9 if dtype == np.float64 else 1e-4
        assert_allclose(found.loadings, exact.loadings, atol=tolerance)
        assert_allclose(found.explained_variance, exact.explained_variance, rtol=tolerance)


def test_blocks_keep_the_digits_of_small_variances(rng):
    """Each block is centered about its own mean, which is rounded to 1e-8."""
    X = 1e8 + np.arange(4000)[:, None] * 1e-3 + rng.standard_normal((4000, 5))
    expected = _products_of_deviations(X)[0] / 3999
    problem = as_problem(spcacore.row_blocks(X, block_bytes=40_000), screening="gram", form=True)
    assert problem.operator.dense
    G = problem.operator.submatrix(np.arange(5)) * 2.0**problem.exponent
    assert_allclose(G, expected, rtol=1e-7)


def test_blocks_of_extreme_entries_are_passed_over_again():
    X = planted(600) * 1e-200
    blocks = spcacore.row_blocks(X, block_bytes=20_000)
    with pytest.warns(RuntimeWarning):
        found = sparse_pca(blocks, 2, cardinality=5, method=spcacore.TPower(screening="gram"))
    assert found.screening.mode == "none"
    expected = sparse_pca(planted(600), 2, cardinality=5)
    assert_allclose(found.loadings, expected.loadings, atol=1e-9)
