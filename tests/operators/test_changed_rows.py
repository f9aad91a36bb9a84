"""Passes see the same rows, or the call says which rows changed, and in which pass."""

import re

import flat
import numpy as np
import pytest
import scipy.sparse as sp
from in_turn import each_dtype
from row_block_tools import METHODS, N, P, Rows, data

import spcacore
from spcacore.operators.row_sources import _keys, _sums, _words, fingerprint

pytestmark = [
    pytest.mark.filterwarnings("ignore:scale=True leaves"),  # the one column that is constant
    pytest.mark.usefixtures("never_formed"),  # many passes
]

BLOCK = 105  # rows; four blocks
LABELS = np.arange(N) % 3
STRUCTURED = spcacore.soppca(data(), 1, 3)


def scaled(X):
    return X * 1.5


def permuted(X):
    return X[:, ::-1].copy()


def zeroed(X):
    X = X.copy()
    X[len(X) // 2 :] = 0
    return X


def one_entry(X):
    X = X.copy()
    X[7, 11] *= 1 + 1e-3
    return X


def one_bit(X):
    X = X.copy()
    X[3, 5] = np.nextafter(X[3, 5], np.inf)
    return X


def rows_exchanged(X):
    return X[::-1].copy()


CHANGES = [scaled, permuted, zeroed, one_entry, one_bit, rows_exchanged]


class Counted(Rows):
    """A source whose block 2 changes from a pass on; `passes` says how often that block was read."""

    ndim, at = 2, 2 * BLOCK

    def __init__(self, X, change, first, storage=np.asarray):
        super().__init__(storage(X))
        self.data, self.change, self.first, self.passes, self.storage = X, change, first, 0, storage

    def __getitem__(self, rows):
        if isinstance(rows, tuple):  # as dask asks
            rows = rows[0]
        if rows.start != self.at or rows.stop - rows.start == 1:  # which no block vouches for
            return super().__getitem__(rows)
        self.passes += 1
        part = self.data[rows]
        return self.storage(self.change(part) if self.passes >= self.first else part)


CALLS = {
    **{
        name: lambda X, options=options: flat.sparse_pca(X, 2, **options) for name, options in METHODS.items()
    },
    "sma": lambda X: spcacore.sma(X, 2, l1_bound=4.0),
    "spca": lambda X: spcacore.spca(X, 2, cardinality=5),
    "sca": lambda X: spcacore.sca(X, 2, l1_bound=4.0),
    "random features": lambda X: spcacore.kernel_pca(X, 2, random_features=20, rng=1),
    "sparse_lda": lambda X: spcacore.sparse_lda(X, LABELS, cardinality=3),
    "sparse_cca": lambda X: spcacore.sparse_cca(X, data()[:, :9], 1, l1_bound=2.0),
    "sparse_cca, second": lambda X: spcacore.sparse_cca(data()[:, :9], X, 1, l1_bound=2.0),
    "sparse_kmeans": lambda X: spcacore.sparse_kmeans(X, 3, 2.5, n_init=2),
    "select_sparsity": lambda X: spcacore.select_sparsity(X, spcacore.sparse_pca, [2, 4], n_folds=3),
    "ppca": lambda X: spcacore.ppca(X, 2),
    "soppca, extended": lambda X: STRUCTURED.extend(X, 1),
    "fit and scores": lambda X: spcacore.sparse_pca(X, 1, cardinality=3).transform(X),
}


def changed(X, change, first, kind):
    """Blocks of it, and what counts the reads of the block that changes."""
    if kind == "dask":
        da = pytest.importorskip("dask.array", reason="needs dask")
        source = Counted(X, change, first)
        lazy = da.from_array(source, chunks=(BLOCK, P), asarray=False)
        return spcacore.row_blocks(lazy, persist=False), source
    if kind == "list":  # as it is, in one block
        source = Counted(X[2 * BLOCK :], change, first)
        source.at = 0
        return [Rows(X[: 2 * BLOCK]), source], source
    storage = {"dense": np.asarray, "csr": sp.csr_array, "Fortran": np.asfortranarray}[kind]
    source = Counted(X, change, first, storage)
    width = X.dtype.itemsize * P
    if kind == "csr":  # as far as a source that is not SciPy's tells
        width = np.dtype(X.dtype).itemsize * P
    return spcacore.row_blocks(source, block_bytes=BLOCK * width), source


@pytest.mark.share(96)
@pytest.mark.parametrize("kind", ["dense", "csr", "dask", "Fortran", "list"])
@pytest.mark.parametrize("change", CHANGES, ids=lambda change: change.__name__)
@pytest.mark.parametrize("name", CALLS)
def test_a_call_that_reads_changed_rows_says_so(name, change, kind):
    """Whichever pass they change in: it ends with an error, or it never read them."""
    first = 2 + (len(name) + len(change.__name__)) % 2
    if (name, kind) == ("fit and scores", "list"):
        first = 2  # since two calls with a list know nothing of each other
    blocks, source = changed(data(), change, first, kind)
    side = "Y" if name.endswith("second") else "X"
    said = None
    try:
        CALLS[name](blocks)
    except ValueError as error:
        said = str(error)
    assert (said is not None) == (source.passes >= first)
    if said is not None:
        block, pass_ = ("0", r"\d+") if kind == "list" else ("2", blocks.passes)
        rows = "0 to 419" if kind == "list" else "210 to 314"
        where = rf"block {block} of {side} \(rows {rows}\) holds other numbers in pass {pass_} "
        assert re.search(where, said), said


def test_random_numbers_that_are_drawn_anew():
    da = pytest.importorskip("dask.array", reason="needs dask")
    generator = np.random.default_rng(0)
    lazy = da.zeros((N, P), chunks=(BLOCK, P)).map_blocks(lambda part: generator.standard_normal(part.shape))
    with pytest.raises(ValueError, match=r"block \d of X .* holds other numbers in pass 2.*persist=True"):
        spcacore.sparse_pca(spcacore.row_blocks(lazy, persist=False), 1, cardinality=3)
    spcacore.sparse_pca(spcacore.row_blocks(lazy, persist=True), 1, cardinality=3)
    scores = spcacore.sparse_cca(lazy, data()[:, :9], 1, l1_bound=2.0).scores_x
    with pytest.raises(ValueError, match="holds other numbers"):  # of rows that were not fitted
        scores.compute()


def test_blocks_that_dask_computes_anew_for_two_results_are_compared():
    """A pass that is lost and done again sees the same block, or the task says so."""
    X = data()
    blocks, source = changed(X, scaled, 10**9, "dense")
    spcacore.sparse_pca(blocks, 1, cardinality=3)
    source.first = 0  # between two calls with the same blocks
    with pytest.raises(ValueError, match="call row_blocks again"):
        spcacore.sparse_pca(blocks, 1, cardinality=3)
    spcacore.sparse_pca(spcacore.row_blocks(source, block_bytes=BLOCK * P * 8), 1, cardinality=3)


# ---- the number itself -------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["f4", "f8", "u1", "i2", "i4", "u8", "?", ">f4", "f2"])
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (5, 3), (67, 33), (8, 2500), (0, 4)])
def test_the_sums_by_whole_numbers(shape, dtype, rng):
    """Of Python, in every layout; what is not written would show."""
    X = (rng.standard_normal(shape) * 50).astype(dtype)
    words = _words(X)
    keys = [divmod(int(key), 2**32) for key in _keys(shape[0])]
    halves = [[divmod(int(word), 2**32) for word in column] for column in words.T]
    expected = [
        sum(a * c + b * d for (a, b), (c, d) in zip(column, keys, strict=True)) % 2**64 for column in halves
    ]
    assert _sums(words).tolist() == expected
    padded = np.zeros((2 * shape[0] + 1, 3 * shape[1]), X.dtype)
    padded[: 2 * shape[0] : 2, ::3] = X
    shifted = np.zeros(X.nbytes + 3, np.uint8)[3:].view(X.dtype).reshape(shape)
    shifted[...] = X
    for other in (np.asfortranarray(X), padded[: 2 * shape[0] : 2, ::3], X[::-1, ::-1][::-1, ::-1], shifted):
        assert fingerprint(other) == fingerprint(X)


@pytest.mark.share(16)
@pytest.mark.parametrize("offset", [0.0, 1.0, 1e4, 1e8])
@each_dtype
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array, sp.csc_array, sp.coo_array])
def test_what_changes_is_noticed_and_what_does_not_is_not(storage, dtype, offset):
    """Whatever is far from zero, and in columns of very different size."""
    rng = np.random.default_rng(1)
    for _ in range(60):
        n, p = rng.integers(2, 60, 2)
        X = rng.standard_normal((n, p)) * 10.0 ** rng.integers(-9, 3, p)
        X[:, ::2] += offset
        X = X.astype(dtype)
        first = fingerprint(storage(X))
        assert first == fingerprint(storage(X.copy(order="F")))
        i, j = rng.integers(n), rng.integers(p)
        Y = X.copy()
        Y[i, j] *= dtype(1 + 1e-3)
        assert fingerprint(storage(Y)) != first
        for factor in (2, -1, 0.5, 1 + 1e-3):
            assert fingerprint(storage(X * dtype(factor))) != first
        assert fingerprint(storage(X[:, ::-1])) != first
        assert fingerprint(storage(X[::-1])) != first


@pytest.mark.parametrize("size", [4096, 8192])
def test_powers_of_two_do_not_cancel(size):
    """Sums modulo 2^64 of bits of the exponent alone: many rows, all columns alike."""
    X = np.ones((size, 64))
    assert len({fingerprint(X * 2.0**e) for e in range(-8, 9)}) == 17
