"""Passes, bytes and CPU time of data that are read by blocks, beside what others do with such data.

python benchmarks/beyond_memory.py [--write]: n and p doubled three times, in one run of one thread. All read
the same memory map through the same lazy dask array, whose blocks are counted as they are read; what the
scheduler hands to the caller is counted too. The largest n is run once more for the memory that Python and
NumPy take meanwhile.
"""

import sys
import tempfile
import tracemalloc
from functools import partial
from pathlib import Path

import numpy as np
import pages

import spcacore

if __name__ == "__main__":  # asv imports this file where they are not installed
    import dask
    import dask.array as da
    from dask_ml.decomposition import PCA
    from sklearn.decomposition import IncrementalPCA

R, K, ROWS = 5, 20, 1000
MOST = 32_000, 500
SIZES = [(4000 * 2**i, 500) for i in range(4)] + [(4000, 500 * 2**i) for i in range(1, 4)]
MB = 1e6


class Counted:
    """The rows of a memory map, and how many bytes of them have been read."""

    ndim = 2

    def __init__(self, X):
        self.X, self.shape, self.dtype, self.read, self.brought = X, X.shape, X.dtype, 0, 0

    def __getitem__(self, rows):
        part = np.array(self.X[rows])
        self.read += part.nbytes
        return part

    def get(self, graph, keys, **options):
        """The scheduler: tasks in turn in this thread, and what they return is counted."""
        found = dask.get(graph, keys, **options)
        self.brought += size(found)
        return found

    def lazy(self):
        meta = np.empty((0, 0), self.dtype)
        return da.from_array(self, (ROWS, self.shape[1]), name=False, asarray=False, meta=meta)


def size(found):
    if isinstance(found, (list, tuple)):
        return sum(map(size, found))
    return getattr(found, "nbytes", 0)


def stored(path, n, p):
    """Five signals of 20 variables each, of variance 12 to 8 in unit noise; float32."""
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, p))
    for start in range(0, n, ROWS):
        rng = np.random.default_rng([2, start])
        rows = 1 + rng.standard_normal((ROWS, p), dtype=np.float32)
        for t in range(R):
            size = np.sqrt(np.float32((12 - t) / K))
            rows[:, K * t : K * t + K] += size * rng.standard_normal((ROWS, 1), dtype=np.float32)
        X[start : start + ROWS] = rows
    X.flush()


def by_spcacore(X, **options):
    blocks = spcacore.row_blocks(X, persist=False)
    return spcacore.sparse_pca(blocks, R, K, **options).loadings


def by_svd_compressed(X):
    mean = X.mean(axis=0).compute()
    return da.linalg.svd_compressed(X - mean, R, n_power_iter=2, compute=True, seed=0)[2].compute().T


def by_dask_ml(X):
    return PCA(R, svd_solver="randomized", iterated_power=2, random_state=0).fit(X).components_.T


def by_increments(X):
    model = IncrementalPCA(R)
    for block in X.blocks:
        model.partial_fit(block.compute())
    return model.components_.T


WAYS = {
    "spcacore, 20 of each": by_spcacore,
    "dask, svd_compressed": by_svd_compressed,
    "dask-ml, randomized PCA": by_dask_ml,
    "scikit-learn, IncrementalPCA": by_increments,
}


def explained(X, loadings):
    """Share of the variance that the components explain, together."""
    deviations = X - X.mean(axis=0, dtype=np.float64)
    scores = deviations @ np.linalg.qr(loadings.astype(float))[0]
    return float((scores**2).sum() / (deviations**2).sum())


def peak(way, X):
    """MB in use at most, apart from the map of the file."""
    source = Counted(X)
    tracemalloc.start()
    with dask.config.set(scheduler=source.get):
        way(source.lazy())
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return f"{held / MB:,.0f}"


def rows_of(n, p, folder):
    path = Path(folder) / "X.npy"
    stored(path, n, p)
    X = np.load(path, mmap_mode="r")
    for name, way in WAYS.items():
        source = Counted(X)
        with dask.config.set(scheduler=source.get):
            seconds, loadings = pages.timed(partial(way, source.lazy()))
        held = peak(way, X) if (n, p) == MOST else ""
        yield (
            f"{n:,} x {p:,}", name, f"{source.read / X.nbytes:.1f}", f"{source.read / MB:,.0f}",
            f"{source.brought / MB:,.2f}", f"{seconds:.2f}", f"{100 * explained(X, loadings):.2f} %", held,
        )  # fmt: skip


def main():
    by_spcacore(da.from_array(np.eye(300, 40)))  # what is imported counts for none
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for n, p in SIZES:
            rows += rows_of(n, p, folder)
            print(*rows[-len(WAYS) :], sep="\n", flush=True)
    head = ["n x p", "method", "passes", "MB read", "MB to the caller", "CPU s", "variance explained"]
    head.append("MB in memory")
    text = pages.table(head, rows)
    if "--write" in sys.argv:
        pages.rewrite("measured/row_blocks.md", "beyond", text)


if __name__ == "__main__":
    main()
