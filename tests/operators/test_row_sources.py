"""Data in blocks of rows from any source: arrays, sparse blocks, files."""

import os
import pickle
import signal
import threading

import flat
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from oracles import covariance
from row_block_tools import METHODS, N, P, Rows, dask_array, data, same, spoiled
from scipy.sparse.linalg import LinearOperator

import spcacore
from spcacore.operators.inputs import as_problem

pytestmark = [
    pytest.mark.filterwarnings("ignore:scale=True leaves"),  # the one column that is constant
    pytest.mark.usefixtures("never_formed"),  # many passes
]

# ---- any source ------------------------------------------------------------------------------------


STORED = {
    "dense": np.asarray,
    "single": np.float32,
    "Fortran": np.asfortranarray,
    "csr": lambda X: sp.csr_matrix(np.where(np.abs(X) > 3, X, 0)),
    "csc": lambda X: sp.csc_matrix(np.where(np.abs(X) > 3, X, 0)),
    "integers": lambda X: np.rint(4 * X).astype(np.int16),
}


@pytest.mark.share(24)
@pytest.mark.parametrize("kind", STORED)
@pytest.mark.parametrize("name", METHODS)
def test_the_same_result_as_in_memory(name, kind):
    if kind != "dense" and name not in ("tpower", "gpower", "pmd", "schur"):
        pytest.skip("the same search by the same sums")
    X = STORED[kind](data())
    blocks = spcacore.row_blocks(X, block_bytes=107 * P * X.dtype.itemsize)
    expected, result = (flat.sparse_pca(Y, 2, **METHODS[name]) for Y in (X, blocks))
    # the tolerance of refine, or rounding
    same(result, expected, 1e-6 if kind == "single" else 1e-7 if name == "refined" else 1e-12)
    if name == "certified":
        assert_allclose(result.upper_bound, expected.upper_bound, rtol=1e-6)
        assert (result.gap >= 0).all()
    assert pickle.loads(pickle.dumps(result)).n_samples == N


@pytest.mark.parametrize("kept", [0, 7, 45, P])
def test_where_columns_of_the_covariance_do_not_all_fit(kept, with_limits):
    """Fewer are kept than are used, so that some are fetched again."""
    import spcacore.operators.block_operator as module

    X = data()
    A = covariance(X)
    with_limits(module, KEPT_BYTES=kept * P * 8)
    problem = as_problem(spcacore.row_blocks(X, block_bytes=X.nbytes // 2))
    op, rng = problem.operator, np.random.default_rng(0)
    for _ in range(60):
        index = np.sort(rng.choice(P, rng.integers(1, 60), replace=False))
        value = rng.standard_normal(len(index))
        got = problem.in_units(op.apply(index, value))
        assert_allclose(got, A[:, index] @ value, atol=1e-11)
        got = problem.in_units(op.submatrix(index))
        assert_allclose(got, A[np.ix_(index, index)], atol=1e-11)


def test_few_passes():
    """One for the statistics, one for the start, and then only where variables are new."""
    X = data()
    for r, most in ((1, 6), (3, 12)):
        blocks = spcacore.row_blocks(X, block_bytes=X.nbytes // 4)
        result = spcacore.sparse_pca(blocks, r, cardinality=8, method=spcacore.TPower(n_starts=1))
        assert 3 <= blocks.passes <= most < 3 * result.n_iter.sum() + 6 * r


def test_one_pass_for_what_a_search_begins_with():
    """The sample that tells of noise, the variables of the first race, and the candidates of swaps."""
    rng = np.random.default_rng(0)
    shared = rng.standard_normal((80, 10)) * np.linspace(3, 1, 10)
    few = rng.standard_normal((10, 6000)) * (rng.random((10, 6000)) < 0.1)
    X = shared @ few + rng.standard_normal((80, 6000)) * rng.gamma(2, 0.5, 6000)
    blocks = spcacore.row_blocks(X, block_bytes=X.nbytes // 4)
    same(spcacore.sparse_pca(blocks, 2, cardinality=10), spcacore.sparse_pca(X, 2, cardinality=10), 1e-10)
    assert blocks.passes <= 9


@pytest.mark.parametrize(("kept", "most"), [(5, 12), (1.2, 16), (0.95, 28), (0.1, 70)])
def test_few_passes_where_components_are_noise(kept, most, monkeypatch):
    """And what memory finds: A is formed at once or in parts, or has some columns.

    With limits of a tenth, 600 variables are searched as 6,000 or 20,000 are.
    """
    import spcacore.operators.block_operator as module
    from spcacore.solvers import field_search, truncated_power

    sizes = {
        "FIELD_PROBE": 64,
        "FIELD_PROBE_EACH": 1,
        "FIELD_SOME": 128,
        "FIELD_ORDER": 700 if kept > 1 else 256,
    }
    for name, value in (sizes | {"FIELD_AT_ONCE": 100, "BRIEF_ORDER": 100}).items():
        for where in (module, field_search, truncated_power):
            monkeypatch.setattr(where, name, value, raising=False)
    for name in ("block_operator", "blocks"):
        monkeypatch.setattr(f"spcacore.operators.{name}.KEPT_BYTES", int(kept * 8 * 600**2))
    X, _ = spcacore.datasets.make_spiked(300, 600, cardinality=10, variances=(12, 8), rng=0)
    blocks = spcacore.row_blocks(X, block_bytes=X.nbytes // 4)
    result = spcacore.sparse_pca(blocks, 6, cardinality=10)
    same(result, spcacore.sparse_pca(X, 6, cardinality=10), 1e-10)
    assert blocks.passes <= most


def test_what_blocks_do_not_give():
    blocks = spcacore.row_blocks(data(), block_bytes=data().nbytes // 4, names=[f"v{j}" for j in range(P)])
    assert spcacore.pmd(blocks, 2.0, options=spcacore.PMD(renormalize=False)).sample_loading is None
    assert spcacore.sca(blocks, 2, l1_bound=4.0).scores is None
    result = spcacore.sparse_pca(blocks, 1, cardinality=8)
    assert result.names[:2] == ("v0", "v1")
    same(result.extend(blocks, 1), spcacore.sparse_pca(blocks, 2, cardinality=8), 1e-12)


@pytest.mark.usefixtures("interruptible")
def test_callbacks_and_interrupts():
    X = data()
    told = []
    spcacore.sparse_pca(spcacore.row_blocks(X), 2, cardinality=8, callback=told.append)
    assert [t.component for t in told if t.value is not None] == [0, 1]

    class Interrupted(Rows):
        reads = 0

        def __getitem__(self, rows):
            self.reads += 1
            if self.reads == 5:
                os.kill(os.getpid(), signal.SIGINT)
            return super().__getitem__(rows)

    source = Interrupted(X)
    with pytest.raises(KeyboardInterrupt):
        spcacore.sparse_pca(spcacore.row_blocks(source, block_bytes=X.nbytes // 3), 2, cardinality=8)
    assert source.reads <= 6


class Elsewhere(Rows):
    """Rows of a source that notes which thread reads each block, and whether it is read in time."""

    def __init__(self, X, fails=None):
        super().__init__(X)
        self.readers, self.read, self.fails = [], threading.Semaphore(0), fails

    def __getitem__(self, rows):
        self.readers.append(threading.current_thread())
        self.read.release()
        if len(self.readers) == self.fails:
            raise OSError("gone")
        return super().__getitem__(rows)


def test_the_next_block_is_read_while_one_is_used():
    """By a thread, of which none is left, and which reads no further."""
    source, threads = Elsewhere(data()), set(threading.enumerate())
    blocks = spcacore.row_blocks(source, block_bytes=source.X.nbytes // 6)

    def sum_of(block):
        assert sums or source.read.acquire(timeout=30)  # this one
        assert last or source.read.acquire(timeout=30)  # the next is begun before this one is done
        return block.sum()

    sums = []
    last = False
    for total in blocks.results(sum_of):
        sums.append(total)
        last = len(sums) == blocks.n_blocks - 1
        assert len(source.readers) <= len(sums) + 1
    assert np.isclose(sum(sums), source.X.sum())
    assert source.readers[0] is threading.main_thread()
    assert threading.main_thread() not in source.readers[1:]
    assert not set(threading.enumerate()) - threads


@pytest.mark.parametrize("fails", ["a read", "a task", "the caller"])
def test_no_thread_is_left_where_a_pass_ends_early(fails):
    source, threads = Elsewhere(data(), 3 if fails == "a read" else None), set(threading.enumerate())
    blocks = spcacore.row_blocks(source, block_bytes=source.X.nbytes // 6)

    def task(block):
        if fails == "a task" and len(source.readers) > 2:
            raise KeyboardInterrupt
        return block.sum()

    def use():
        for i, _ in enumerate(blocks.results(task)):
            if fails == "the caller" and i == 2:
                raise KeyboardInterrupt

    with pytest.raises((OSError, KeyboardInterrupt)) as raised:
        use()
    if fails == "a read":
        assert raised.value.__notes__ == ["block 2 of X (rows 140 to 209) could not be read, in pass 1"]
    if fails == "the caller":
        del raised  # which keeps the pass
    assert not set(threading.enumerate()) - threads
    assert len(source.readers) <= 4


def misplaced():
    X = sp.csr_array(ONES)
    X.indices[12] = 10**6
    return X


ONES = np.ones((5, 5))


def fewer_each_time(X):
    left = [len(X), len(X), 100]
    return lambda: iter([X[: left.pop(0)]])


def text_in_parquet(folder):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    as_table(data()[:, :3], "pandas").assign(text="some").to_parquet(folder / "X.parquet")
    return parquet.ParquetFile(folder / "X.parquet")


BLOCKS = spcacore.row_blocks
BAD = {
    "NaN": (
        lambda tmp: BLOCKS(spoiled(np.nan, 333, 17), block_bytes=10**5),
        ValueError, r"1 entry that is NaN or infinite, the first at \(333, 17\)",
    ),
    "infinity, sparse": (
        lambda tmp: BLOCKS(sp.csr_matrix(spoiled(np.inf, 333, 17)), block_bytes=10**5),
        ValueError, r"the first at \(333, 17\)",
    ),
    "NaN, dask": (lambda tmp: dask_array(spoiled(np.nan, 333, 17)), ValueError, r"first at \(333, 17\)"),
    "corrupt": (lambda tmp: BLOCKS(misplaced(), block_bytes=100), ValueError, "corrupt sparse"),
    "no array": (lambda tmp: [[1.0]], TypeError, "shape, dtype and slices of rows"),
    "operator": (lambda tmp: LinearOperator((3, 3), matvec=lambda v: v), TypeError, "slices of rows"),
    "one dimension, dask": (lambda tmp: dask_array(data())[0], ValueError, "2 dimensions"),
    "no array, dask": (
        lambda tmp: pytest.importorskip("dask.bag", reason="needs dask").from_sequence([[1.0]]),
        TypeError, "must be a dask array or dataframe, not Bag",
    ),
    "unknown sizes": (
        lambda tmp: dask_array(data())[dask_array(data())[:, 0] > 0], ValueError, "chunks of unknown sizes",
    ),
    "block_bytes, dask": (
        lambda tmp: BLOCKS(dask_array(data()), block_bytes=10),
        TypeError, "block_bytes is not for dask arrays",
    ),
    "persist": (lambda tmp: BLOCKS(ONES, persist=True), TypeError, "persist is for dask arrays"),
    "twice": (lambda tmp: BLOCKS(BLOCKS(ONES), names="abcde"), TypeError, "made by row_blocks already"),
    "no file": (lambda tmp: tmp / "none.npy", FileNotFoundError, "no such file"),
    "another file": (lambda tmp: __file__, ValueError, r"must be \.npy or \.parquet"),
    "an empty folder": (lambda tmp: tmp, ValueError, "or in a folder"),
    "no blocks": (lambda tmp: lambda: iter(()), ValueError, "no block of rows"),
    "no iterator": (lambda tmp: lambda: 3, TypeError, "function without arguments"),
    "an argument": (lambda tmp: lambda v: v, TypeError, "function without arguments"),
    "numbers": (lambda tmp: lambda: iter([1.0]), TypeError, "blocks of two dimensions"),
    "other columns": (lambda tmp: lambda: iter([ONES, ONES[:, :2]]), ValueError, r"of columns \[2, 5\]"),
    "fewer": (lambda tmp: fewer_each_time(data()), ValueError, "X returned 100 rows, and 420 when"),
    "words": (lambda tmp: as_table(data().astype(str), "pandas"), TypeError, r"not numbers.*'v0'|strings"),
    "text": (text_in_parquet, TypeError, r"no numbers: drop or encode 'text' \("),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name, tmp_path):
    make, error, message = BAD[name]
    with pytest.raises(error, match=message):
        spcacore.sparse_pca(
            spcacore.row_blocks(make(tmp_path)), 1, cardinality=1, method=spcacore.TPower(screening="none")
        )


class Changed(Rows):
    """A source whose blocks from some read on are not what its shape and dtype say."""

    def __init__(self, X, change, first):
        super().__init__(X)
        self.change, self.left = change, first

    def __getitem__(self, rows):
        self.left -= 1
        block = super().__getitem__(rows)
        return block if self.left >= 0 else self.change(block)


def checked_later(X, change, kind, first):
    """The same as a dask array, whose second block alone is changed, in every pass."""
    if kind != "dask":
        return spcacore.row_blocks(
            Changed(sp.csr_array(X) if kind == "sparse" else X, change, first), block_bytes=X.nbytes // 3
        )
    lazy = dask_array(X, rows=len(X) // 3)
    return spcacore.row_blocks(
        lazy.map_blocks(
            lambda block, block_id: change(block) if block_id == (1, 0) else block, meta=np.empty((0, 0))
        ),
        persist=first > 1,
    )


SHAPE = r"block 1 of X \(rows 140 to 279\) has shape {}, not \(140, 300\)"
CHANGES = {
    "short": (lambda block: block[:-1], ValueError, SHAPE.format(r"\(139, 300\)")),
    "long": (
        lambda block: (sp.vstack if sp.issparse(block) else np.vstack)([block, block[:1]]),
        ValueError, SHAPE.format(r"\(141, 300\)"),
    ),
    "narrow": (lambda block: block[:, :-1], ValueError, SHAPE.format(r"\(140, 299\)")),
    "wide": (
        lambda block: (sp.hstack if sp.issparse(block) else np.hstack)([block, block[:, :1]]),
        ValueError, SHAPE.format(r"\(140, 301\)"),
    ),
    "empty": (lambda block: block[:0], ValueError, SHAPE.format(r"\(0, 300\)")),
    "one dimension": (lambda block: np.ones(300), ValueError, SHAPE.format(r"\(300,\)")),
    "precision": (lambda block: block.astype(np.float32), ValueError, "block 1 .* float32, not float64"),
    "complex": (lambda block: block * 1j, TypeError, r"block 1 .* has dtype complex128; real numbers"),
    "objects": (lambda block: np.full((140, 300), "x", object), TypeError, r"block 1 .* holds objects"),
    "nothing": (lambda block: None, TypeError, r"block 1 of X \(rows 140 to 279\) is NoneType, not an array"),
    "list": (lambda block: [[1.0] * 300] * 140, TypeError, "block 1 .* is list, not an array"),
}  # fmt: skip


@pytest.mark.share(3)
@pytest.mark.parametrize("kind", ["dense", "sparse", "dask"])
@pytest.mark.parametrize("first", [1, 4])  # reads of blocks before: in the first pass, in the second
@pytest.mark.parametrize("change", CHANGES)
def test_blocks_that_are_not_what_their_source_says(kind, first, change):
    alter, error, message = CHANGES[change]
    source = checked_later(data(), alter, kind, first)
    with pytest.raises(error, match=message):
        spcacore.sparse_pca(source, 1, cardinality=8)


def test_blocks_without_rows_and_of_both_storages():
    da = pytest.importorskip("dask.array", reason="needs dask")
    X = data()
    expected = spcacore.sparse_pca(X, 2, cardinality=8)
    for storage in (np.asarray, sp.csr_array):
        for rows in ((0, 200, 0, 220), (420, 0)):
            array = da.from_array(X, chunks=(rows, P)).map_blocks(
                lambda block, block_id, storage=storage: storage(block) if block_id[0] % 2 else block,
                meta=np.empty((0, 0)),
            )
            same(spcacore.sparse_pca(array, 2, cardinality=8), expected, 1e-12)


def test_what_needs_the_data_in_memory_says_so(with_limits):
    import spcacore.operators.block_operator as module

    blocks = spcacore.row_blocks(data())
    with pytest.raises(ValueError, match="sample_l1_bound needs the data in memory"):
        spcacore.sparse_pca(blocks, 1, method=spcacore.PMD(l1_bound=2.0, sample_l1_bound=3.0))
    with pytest.raises(TypeError, match="scale='degree' needs the data in memory"):
        spcacore.sca(blocks, 1, l1_bound=2.0, scale="degree")
    with pytest.raises(TypeError, match="criterion='permutation' needs the data in memory"):
        spcacore.select_sparsity(blocks, spcacore.sparse_pca, [2, 4], criterion="permutation")
    with_limits(module, BLOCKS_SUBMATRIX_ORDER=200, KEPT_BYTES=0)
    with pytest.raises(ValueError, match="covariance of 300 variables at once"):
        spcacore.sparse_pca(blocks, 1, cardinality=3, method=spcacore.Greedy(strategy="backward"))


# ---- recipes ---------------------------------------------------------------------------------------


class Framed(Rows):
    """Slices that are dataframes, whatever the dtype of their columns."""

    def __getitem__(self, rows):
        pd = pytest.importorskip("pandas", reason="needs pandas")
        return pd.DataFrame(self.X[rows]).astype(f"Float{8 * self.X.itemsize}")


def as_table(X, library):
    frame = pytest.importorskip("pandas", reason="needs pandas").DataFrame(X)
    frame.columns = [f"v{j}" for j in range(X.shape[1])]
    if library == "pyarrow":
        return pytest.importorskip("pyarrow", reason="needs pyarrow").Table.from_pandas(frame)
    return frame if library == "pandas" else pytest.importorskip("polars").DataFrame(dict(frame))


def test_matrices_one_below_the_other():
    X = data()
    X[np.abs(X) < 2] = 0
    parts = [X[:7], sp.csr_array(X[7:200]), sp.csc_array(X[200:201]), X[201:]]
    blocks = spcacore.row_blocks(parts, block_bytes=X.nbytes // 5)
    assert blocks.starts == [0, 7, 91, 175, 201, 285, 369]  # 84 rows at most, and at the cuts where they can
    assert np.array_equal(sp.csr_array(blocks.whole()).toarray(), X)
    same(spcacore.sparse_pca(blocks, 2, cardinality=8), spcacore.sparse_pca(X, 2, cardinality=8), 1e-12)
    mixed = [X[:200].astype(np.float32), X[200:]]
    blocks, X = spcacore.row_blocks(mixed, block_bytes=X.nbytes // 5), np.concatenate(mixed)
    assert blocks.dtype == np.float64
    same(spcacore.sparse_pca(blocks, 1, cardinality=3), spcacore.sparse_pca(X, 1, cardinality=3), 1e-12)


def stored_by_rows(X, how, tmp_path):
    pieces = np.split(X, [100, 250])
    if how in ("file", "files", "folder"):
        for i, rows in enumerate([X] if how == "file" else pieces):
            np.save(tmp_path / f"{i}.npy", rows)
        return {"file": tmp_path / "0.npy", "folder": str(tmp_path)}.get(how, sorted(tmp_path.glob("*.npy")))
    if how == "frames":
        return Framed(X)
    if how in LIBRARIES:
        return as_table(X, how)
    if how == "function":
        return lambda: (sp.csr_array(rows) if i == 1 else rows for i, rows in enumerate(pieces))
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs pyarrow")
    path = tmp_path / "X.parquet"
    parquet.write_table(as_table(X, "pyarrow"), path, row_group_size=100)
    if how == "ParquetFile":
        return parquet.ParquetFile(path)
    return path if how == "parquet" else pytest.importorskip("pyarrow.dataset").dataset(tmp_path)


LIBRARIES = ["pandas", "polars", "pyarrow"]
NAMED = [*LIBRARIES, "parquet", "ParquetFile", "dataset"]
HELD = [*LIBRARIES, "file", "files", "folder", "frames", "function", "parquet", "ParquetFile", "dataset"]


@pytest.mark.share(4)
@pytest.mark.parametrize("how", HELD)
def test_files_and_functions(how, tmp_path):
    X = data()
    given = stored_by_rows(X, how, tmp_path)
    for size in (90, 300):
        blocks = spcacore.row_blocks(given, block_bytes=X.nbytes * size // N)
        assert blocks.shape == X.shape
        assert (blocks.names is None) == (how not in NAMED)
        assert_array_equal(blocks.rows(np.array([299, 0, 101])), X[[299, 0, 101]])
        same(spcacore.sparse_pca(blocks, 2, cardinality=8), spcacore.sparse_pca(X, 2, cardinality=8), 1e-12)
    if how in ("ParquetFile", "dataset"):
        same(spcacore.sparse_pca(given, 1, cardinality=8), spcacore.sparse_pca(X, 1, cardinality=8), 1e-12)


@pytest.mark.parametrize("stored", ["dense", "csr"])
@pytest.mark.filterwarnings("ignore")  # anndata's own
def test_backed_anndata(tmp_path, stored):
    anndata = pytest.importorskip("anndata", reason="needs anndata")
    X = np.maximum(data() - 3, 0)
    anndata.AnnData(sp.csr_matrix(X) if stored == "csr" else X).write_h5ad(tmp_path / "X.h5ad")
    backed = anndata.read_h5ad(tmp_path / "X.h5ad", backed="r")
    try:
        blocks = spcacore.row_blocks(backed.X, block_bytes=X.nbytes // 3, names=backed.var_names)
        result = spcacore.sparse_pca(blocks, 2, cardinality=8)
    finally:
        backed.file.close()
    same(result, spcacore.sparse_pca(X, 2, cardinality=8), 1e-12)
    assert result.names == tuple(backed.var_names)


@pytest.mark.parametrize(
    ("n", "p", "rows"),
    [
        (10**6, 100, 2**24 // 800),
        (10**6, 362, 2**24 // (8 * 362)),
        (10**6, 363, 2**27 // (8 * 363)),
        (10**6, 2**25, 1),
        (2000, 10_000, 250),
        (1500, 10_000, 2**24 // 80_000),
    ],
)
def test_the_rows_of_a_block(n, p, rows):
    """16 MB where these are 16 rows for a variable or an eighth of X, else 128 MB or that; whole chunks."""

    class Source:
        shape, dtype, chunks = (n, p), np.dtype(float), None

        def __getitem__(self, rows):
            raise AssertionError("nothing is read")

    assert spcacore.row_blocks(Source()).starts[1] == rows
    Source.chunks = (1000, p)
    assert spcacore.row_blocks(Source()).starts[1] == max(rows // 1000, 1) * 1000
