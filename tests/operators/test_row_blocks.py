"""Sums and products by blocks of rows: the answers of the data in memory, in less of it."""

import functools
import re

import calls
import flat
import numpy as np
import pytest
import scipy.sparse as sp
from calls import pca
from extras import optional
from numpy.testing import assert_allclose, assert_array_equal
from oracles import with_peak

import spcacore
from spcacore.operators.blocks import TakenRows, as_kernel_input, sum_parts
from spcacore.operators.moments import statistics

pytestmark = [
    pytest.mark.filterwarnings("ignore:scale=True leaves"),  # the one column that is constant
    pytest.mark.usefixtures("never_formed"),  # many passes
]

N, P, Q = 1300, 30, 9  # more rows than the bandwidth looks at
from_array = optional("dask.array", "from_array")
LABELS = np.array(["c", "a", "b"])[np.random.default_rng(1).integers(0, 3, N)]


def data(n=N, p=P):
    """Three classes by rows that lie anywhere, two factors, mostly zeros, means away from 0."""
    rng = np.random.default_rng(0)
    X = np.where(rng.random((n, p)) < 0.4, rng.standard_normal((n, p)) * np.linspace(1, 2, p), 0)
    X[:, :4] += 3.0 * (LABELS[:n, None] == "a") - 2.0 * (LABELS[:n, None] == "b")
    X[:, 5:9] += 2 * rng.standard_normal((n, 1))
    X[:, 12:15] -= 3 * rng.standard_normal((n, 1))
    X[:, -1] = 7
    return (X * 4).round() / 4  # exact in float32 too


KINDS = {
    "slices": lambda a: spcacore.row_blocks(a, block_bytes=a.nbytes // 4),
    "one row at a time": lambda a: spcacore.row_blocks(a, block_bytes=1),
    "csr": lambda a: spcacore.row_blocks(sp.csr_array(a), block_bytes=a.nbytes // 3),
    "csc": lambda a: spcacore.row_blocks(sp.csc_array(a), block_bytes=a.nbytes // 3),
    "dask": lambda a: from_array(a, chunks=((0, 700, 1, len(a) - 701), 17)),
    "sparse dask": lambda a: from_array(a, chunks=(500, -1)).map_blocks(sp.csr_matrix),
}
CALLS = {
    "sma": lambda X: spcacore.sma(X, 2, l1_bound=4.0, sample_l1_bound=30.0),
    "sma, centered and scaled": lambda X: spcacore.sma(X, 3, center=True, scale=True, rotation="none"),
    "random features": lambda X: spcacore.kernel_pca(X, 3, random_features=40, rng=5),
    "sparse_lda": lambda X: spcacore.sparse_lda(X, LABELS, cardinality=3),
    "sparse_lda, shrunk": lambda X: spcacore.sparse_lda(
        X, LABELS, cardinality=5, shrinkage="auto", priors=[0.5, 0.2, 0.3]
    ),
    "sparse_kmeans": lambda X: spcacore.sparse_kmeans(X, 3, 2.5, n_init=4),
    "cv": lambda X: spcacore.select_sparsity(X, pca(2), [2, 4, 8], n_folds=3),
    "cv, scaled": lambda X: spcacore.select_sparsity(
        X, pca(method="pmd", scale=True), [1.2, 2.0], n_folds=3, n_repeats=2, n_jobs=2
    ),
    "number of components": lambda X: spcacore.select_n_components(X, pca(1, 4), 3, n_folds=3),
}
MANY_PASSES = ("random features", "sparse_lda, shrunk")  # few of them


@functools.cache
def in_memory(name):
    return calls.numbers(CALLS[name](data()))


@pytest.mark.share(40)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CALLS)
def test_the_same_result_as_in_memory(name, kind):
    if kind == "one row at a time" and name not in MANY_PASSES:
        pytest.skip("as many passes as of any other kind, each of 1300 blocks")
    found = calls.numbers(CALLS[name](KINDS[kind](data())))
    for field, value in in_memory(name).items():
        if field in found and not re.search("^_|trace|free_energy|n_iter", field):
            atol = 1e-9 * max(1, np.abs(value).max(initial=0)) if value.dtype.kind == "f" else 0
            assert_allclose(found[field], value, rtol=0, atol=atol, err_msg=field)


@pytest.mark.share(48)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "options",
    [{"l1_bound": 1.5}, {"l1_bound": 2.0, "scale": False},
     {"method": "generalized", "cardinality": (3, 2), "ridge": 0.1}],
    ids=["pmd", "not scaled", "generalized"],
)  # fmt: skip
def test_canonical_pairs(kind, options):
    """Sides of any two kinds, whose blocks need not match."""
    X, Y = data()[:, :-Q], data()[:, -Q - 8 : -8] + data()[:, :Q]
    expected = flat.sparse_cca(X, Y, 2, **options)
    make, few = KINDS[kind], lambda Y: spcacore.row_blocks(Y, block_bytes=Y.nbytes // 7)
    for x, y in ((make(X), Y), (X, make(Y)), (make(X), few(Y))) if kind != "one row at a time" else ():
        result = flat.sparse_cca(x, y, 2, **options)
        for name in ("loadings_x", "loadings_y", "scores_x", "scores_y", "correlations", "mean_x", "scale_y"):
            a, b = getattr(result, name), getattr(expected, name)
            assert (a is None) == (b is None)
            if b is not None:
                assert_allclose(np.asarray(a), b, rtol=0, atol=1e-9, err_msg=name)


@pytest.mark.share(3)
@pytest.mark.parametrize("kind", [k for k in KINDS if k != "one row at a time"])
def test_new_rows(kind):
    X = data()
    exact, features = spcacore.kernel_pca(X[:200], 2), spcacore.random_fourier_features(X, 15, rng=2)
    model = spcacore.ppca(X, 2)
    for call in (
        exact.transform, spcacore.kernel_pca(X[:300], 2, random_features=15).transform, features.transform,
        model.transform, model.score_samples, model.posterior_covariance, model.score,
        lambda M: spcacore.random_fourier_features(M, 15, rng=2).transform(M),
    ):  # fmt: skip
        expected, result = call(X), call(KINDS[kind](X))
        if kind.endswith("dask") and np.ndim(expected):
            assert hasattr(result, "compute")  # when asked for
            assert result.shape == expected.shape
            assert result.dtype == expected.dtype
        assert_allclose(np.asarray(result), expected, rtol=1e-9, atol=1e-11)


@pytest.mark.share(3)
@pytest.mark.parametrize("name", [name for name in CALLS if not name.startswith("number")])
@pytest.mark.parametrize("kind", ["slices", "csr", "dask"])
def test_what_is_not_finite_is_named_by_its_place_in_the_whole(name, kind):
    X = data()
    X[1204, 3] = np.nan
    with pytest.raises(ValueError, match=r"1 entry that is NaN or infinite, the first at \(1204, 3\)"):
        CALLS[name](KINDS[kind](X))


class Rows:
    """Standard normal rows and one factor, made when they are asked for; how many at a time is noted."""

    def __init__(self, n, p):
        self.shape, self.dtype, self.most = (n, p), np.dtype(np.float64), 0

    def __getitem__(self, part):
        start, stop, _ = part.indices(self.shape[0])
        self.most = max(self.most, stop - start)
        rng = np.random.default_rng(start)
        X = rng.standard_normal((stop - start, self.shape[1]))
        X[:, :3] += 3 * (np.arange(start, stop)[:, None] % 3)
        return X


@pytest.mark.share(6)
@pytest.mark.parametrize(
    ("call", "passes"),
    [
        (lambda X: spcacore.kernel_pca(X, 2, random_features=20, bandwidth=9.0), 3),
        (lambda X: spcacore.sparse_lda(X, np.arange(X.shape[0]) % 3, cardinality=3), 4),
        (lambda X: spcacore.sparse_kmeans(X, 3, 1.7, n_init=1), 80),
        (lambda X: spcacore.sparse_cca(X, X, 1, l1_bound=2), 7),
        (lambda X: spcacore.sma(X, 2, tol=0.1), 60),
        (lambda X: spcacore.select_sparsity(X, spcacore.sparse_pca, [2, 4], n_folds=2), 200),
    ],
    ids=["random features", "sparse_lda", "sparse_kmeans", "sparse_cca", "sma", "cv"],
)
def test_memory_holds_a_block(call, passes, with_limits):
    """Of 6 MB in 24 blocks half at most, with what belongs to the rows: labels, scores, products.

    Columns that are kept between passes have a limit of their own, of which these would be a small part.
    """
    from spcacore.operators import working_set

    with_limits(working_set, WORKING_SET_BYTES=1 << 17)
    rows = Rows(12_000, 64)
    blocks = spcacore.row_blocks(rows, block_bytes=500 * 64 * 8)
    call(spcacore.row_blocks(Rows(1000, 64), block_bytes=500 * 64 * 8))  # what is imported on the way
    _, peak = with_peak(lambda: call(blocks))
    assert rows.most == 500
    assert blocks.passes <= passes
    assert peak < rows.shape[0] * rows.shape[1] * 8 / 2


def test_refusals(with_limits):
    from spcacore.generalized import canonical_sides, scatter

    X = data()
    blocks = KINDS["slices"](X)
    with_limits(scatter, BLOCKS_SUBMATRIX_ORDER=20)
    with pytest.raises(ValueError, match="scatter of at most 20 variables is formed, not of 30"):
        spcacore.sparse_lda(blocks, LABELS, cardinality=3)
    with_limits(canonical_sides, KEPT_BYTES=1000)
    with pytest.raises(ValueError, match="products of p q <= 125 entries are formed, not of 30 x 30"):
        spcacore.sparse_cca(blocks, X, 1, l1_bound=2)
    with pytest.raises(ValueError, match="same number of rows, not 1300 and 1299"):
        spcacore.sparse_cca(blocks, X[1:], 1, l1_bound=2)
    with pytest.raises(ValueError, match="at least two rows"):
        spcacore.sparse_kmeans(spcacore.row_blocks(X[:1]), 2, 1.5)
    with pytest.raises(ValueError, match="all its rows are equal"):
        spcacore.sparse_kmeans(spcacore.row_blocks(np.ones((9, 3))), 2, 1.5)
    with pytest.raises(ValueError, match=r"\(1300, 30\) where \(n, 4\) is needed"):
        spcacore.random_fourier_features(4, 5, bandwidth=1.0).transform(blocks)
    with pytest.raises(ValueError, match="infinite"):
        spcacore.ppca(X, 2).transform(spcacore.row_blocks(np.where(X.max() == X, np.inf, X)))


def test_names_of_a_dask_dataframe():
    frames, pandas = optional("dask.dataframe", "from_pandas"), optional("pandas", "DataFrame")
    X, names = data(40, 6), tuple("abcdef")
    frame = frames(pandas(X, columns=names), npartitions=3)
    assert spcacore.sparse_lda(frame, LABELS[:40], cardinality=2).names == names
    assert spcacore.sparse_kmeans(frame, 2, 1.5).names == names
    assert spcacore.sparse_cca(frame, X, 1, l1_bound=1.5).names_x == names


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "one row at a time"])
def test_rows_that_are_taken(kind):
    X = data()
    blocks = spcacore.row_blocks(KINDS[kind](X))
    rows = np.array([0, 3, 650, 651, 1299])
    taken = blocks.taken(rows)
    assert isinstance(taken, TakenRows)
    whole = taken.whole()
    assert_array_equal(whole.toarray() if sp.issparse(whole) else whole, X[rows])
    assert_array_equal(blocks.rows(rows[::-1]), X[rows[::-1]])
    assert sum(part.n for part in taken.results(statistics) if part is not None) == 5
    ones = taken.reduced(sum_parts, _column_sums, each=taken.split(np.ones(5)))
    assert_allclose(ones, X[rows].sum(axis=0))


def _column_sums(block, weight):
    return np.asarray(block.T @ weight)


def test_sparse_kmeans_keeps_sparse_matrices_sparse():
    X = sp.random_array((4000, 3000), density=0.002, rng=np.random.default_rng(0), format="csr")
    X = (X + sp.csr_array(([5.0] * 2000, (range(2000), [7] * 2000)), X.shape)).tocsr()
    result, peak = with_peak(lambda: spcacore.sparse_kmeans(X, 2, 3.0, n_init=2))
    assert 7 in result.selected
    assert peak < 4000 * 3000 * 8 / 8


def test_blocks_of_sparse_rows_are_as_large_as_what_they_store_and_are_not_copied():
    X = sp.random_array((1000, 500), density=0.02, format="csr", rng=0)
    stored = X.data.nbytes + X.indices.nbytes
    blocks = spcacore.row_blocks(X, block_bytes=stored // 4)
    assert 4 <= blocks.n_blocks <= 5

    def addresses(block):
        read = as_kernel_input(block)
        return [np.shares_memory(getattr(read, name), getattr(X, name)) for name in ("data", "indices")]

    assert list(blocks.results(addresses)) == [[True, True]] * blocks.n_blocks
