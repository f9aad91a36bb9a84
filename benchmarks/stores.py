"""Tall data in HDF5 and Zarr: `sparse_pca` beside one plain pass over the same file, and beside memory.

python benchmarks/stores.py [--write] [--bytes N]: a table of docs/measured/row_blocks.md, of 1 GB of float64
with 100 variables, in chunks of 16 MB, which the system has in its page cache. CPU time of one thread, minima
of three calls of each in turn: of reading every block once, of a call on the file, and of the call in memory.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import argparse
import tempfile
from pathlib import Path

import numpy as np
import pages

import spcacore

P, CHUNK, REPEATS = 100, 1 << 24, 3


def rows(n, rng):
    """Three components of 20 variables each in unit noise."""
    X = rng.standard_normal((n, P))
    for t in range(3):
        X[:, 20 * t : 20 * t + 20] += (0.6 - 0.1 * t) * rng.standard_normal((n, 1))
    return X


def plain_pass(array, step):
    """What no reader of the file can do without."""
    return sum(float(array[i : i + step][0, 0]) for i in range(0, array.shape[0], step))


def measured(size, folder):
    import h5py
    import zarr

    step = CHUNK // (8 * P)
    n = size // (8 * P) // step * step
    X = np.empty((n, P))
    rng = np.random.default_rng(0)
    for i in range(0, n, step):
        X[i : i + step] = rows(step, rng)
    lines = []
    with h5py.File(folder / "data.h5", "w") as file:
        stores = {
            "HDF5": file.create_dataset("X", data=X, chunks=(step, P)),
            "Zarr, no compression": zarr.create_array(
                folder / "plain.zarr", shape=X.shape, chunks=(step, P), dtype=X.dtype, compressors=None
            ),
        }
        stores["Zarr, no compression"][:] = X
        for name, store in stores.items():
            calls = {
                "pass": lambda store=store: plain_pass(store, step),
                "file": lambda store=store: spcacore.sparse_pca(
                    spcacore.row_blocks(store), 3, cardinality=20
                ),
                "memory": lambda: spcacore.sparse_pca(X, 3, cardinality=20),
            }
            seconds, last = dict.fromkeys(calls, np.inf), {}
            for _ in range(REPEATS):
                for what, call in calls.items():
                    time, last[what] = pages.timed(call)
                    seconds[what] = min(seconds[what], time)
            blocks = spcacore.row_blocks(store)
            result = spcacore.sparse_pca(blocks, 3, cardinality=20)
            assert np.allclose(result.loadings, last["memory"].loadings, atol=1e-6)
            more = seconds["file"] - seconds["pass"]
            lines.append(
                [
                    name,
                    blocks.passes,
                    f"{seconds['pass']:.2f}",
                    f"{seconds['memory']:.2f}",
                    f"{seconds['file']:.2f}",
                    f"{more / seconds['memory']:.2f}",
                ]
            )
    header = [
        f"{n:,} x {P}, 3 components of 20", "passes", "a plain pass, s", "the call in memory, s",
        "on the file, s", "less the pass, over memory",
    ]  # fmt: skip
    return pages.table(header, lines)


def main():
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("--write", action="store_true", help="the table into docs/measured/row_blocks.md")
    options.add_argument("--bytes", type=int, default=1 << 30, help="of the data")
    given = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        text = measured(given.bytes, Path(folder))
    print(text)
    if given.write:
        pages.rewrite("measured/row_blocks.md", "stores", text)


if __name__ == "__main__":
    main()
