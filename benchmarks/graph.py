"""`sca` and `sma` at the scale of graphs: a bipartite stochastic block model with unequal degrees.

python benchmarks/graph.py [--rows 200000] [--columns 300000] [--nonzeros 20000000] [--components 20]
                           [--methods sca,sma] [--format csr] [--save FILE]

Each method runs in a process of its own, and prints the CPU time of an iteration, that per nonzero and
component, the peak of memory beyond the matrix, and how well the blocks are recovered.
"""

import argparse
import json
import os
import sys
import time
import warnings

import memory
import numpy as np


def block_model(n, p, nonzeros, k, *, inside=0.8, seed=0, dtype=np.float64):
    """A CSR matrix of edges between n rows and p columns of k blocks each, and both block vectors.

    Rows draw edges in proportion to a lognormal degree: a share `inside` of them to columns of the block
    of the same number, the rest to any, and columns in proportion to a degree of their own.  A pair drawn
    twice counts once.  Rows are drawn some at a time, straight into the arrays of the result.
    """
    import scipy.sparse

    rng = np.random.default_rng(seed)
    row_block, column_block = rng.integers(k, size=n), rng.integers(k, size=p)
    degree = rng.lognormal(sigma=0.5, size=n)
    count = np.maximum(1, np.rint(degree * (nonzeros / degree.sum()))).astype(np.int64)
    by_block = np.argsort(column_block, kind="stable").astype(np.int32)
    weight = rng.lognormal(sigma=0.5, size=p)[by_block]
    cumulated = np.concatenate([[0.0], np.cumsum(weight)])
    ends = np.searchsorted(column_block[by_block], np.arange(k + 1))
    indices = np.empty(int(count.sum()), np.int32)
    indptr = np.zeros(n + 1, np.int32)
    step = max(1, 1_000_000 * n // nonzeros)
    for first in range(0, n, step):
        part = slice(first, min(first + step, n))
        row = np.repeat(np.arange(part.start, part.stop), count[part])
        block = row_block[row]
        own = rng.random(len(row)) < inside
        low, high = (np.where(own, cumulated[ends[block + a]], cumulated[a * p]) for a in (0, 1))
        place = np.searchsorted(cumulated, low + rng.random(len(row)) * (high - low), "right") - 1
        code = np.unique(row * np.int64(p) + by_block[np.minimum(place, p - 1)])
        start = indptr[part.start]
        indices[start : start + len(code)] = code % p
        found = np.bincount(code // p - part.start, minlength=part.stop - part.start)
        indptr[part.start + 1 : part.stop + 1] = start + np.cumsum(found)
    indices = indices[: indptr[-1]].copy()
    X = scipy.sparse.csr_array((np.ones(len(indices), dtype), indices, indptr), (n, p))
    return X, row_block, column_block


def accuracy(loadings, block, k):
    """Share of the nonempty rows of the loadings whose largest entry is that of their block, matched."""
    from scipy.optimize import linear_sum_assignment

    used = loadings.any(axis=1)
    table = np.zeros((k, loadings.shape[1]))
    np.add.at(table, (block[used], np.abs(loadings[used]).argmax(axis=1)), 1)
    return table[linear_sum_assignment(-table)].sum() / len(block)


def one(method, n, p, nonzeros, k, order, scale):
    import spcacore

    function = getattr(spcacore, method)
    small, _, _ = block_model(2000, 3000, 60000, k)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        function(small, k, max_iter=2, scale=scale)  # libraries are loaded, BLAS has its buffers
    X, row_block, column_block = block_model(n, p, nonzeros, k)
    X = X.asformat(order)
    size = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes
    times = [time.process_time()]
    options = {"scale": scale, "center": False, "callback": lambda _: times.append(time.process_time())}
    above, result = memory.above(lambda: function(X, k, **options))
    whole = time.process_time() - times[0]
    steps = np.diff(times)
    return {
        "method": method, "format": order, "scale": scale, "n": n, "p": p, "nnz": int(X.nnz), "k": k,
        "matrix MB": size / 1e6, "above MB": above / 1e6, "above/matrix": above / size,
        "above/(n+p)k": above / (8 * k * (n + p)),
        "seconds": whole, "before the second step": float(steps[0]), "iteration": float(np.median(steps[1:])),
        "ns": float(1e9 * np.median(steps[1:]) / X.nnz / k), "n_iter": result.n_iter,
        "accuracy": accuracy(result.loadings, column_block, k),
        "row accuracy": accuracy(result.scores, row_block, k), "pve": float(result.pve[-1]),
        "nonzeros": int(np.count_nonzero(result.loadings)),
    }  # fmt: skip


def run(*arguments):
    freed = os.environ | {"MALLOC_MMAP_THRESHOLD_": "131072"}  # what is freed leaves the process
    return json.loads(memory.in_process(__file__, "--one", *arguments, env=freed).splitlines()[-1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--columns", type=int, default=300_000)
    parser.add_argument("--nonzeros", type=int, default=20_000_000)
    parser.add_argument("--components", type=int, default=20)
    parser.add_argument("--methods", default="sca,sma")
    parser.add_argument("--format", default="csr", choices=("csr", "csc"))
    parser.add_argument("--no-degree", action="store_true", help="without scale='degree'")
    parser.add_argument("--save", help="append the measurements to this file, a JSON object a line")
    o = parser.parse_args()
    for method in o.methods.split(","):
        m = run(method, o.rows, o.columns, o.nonzeros, o.components, o.format, 0 if o.no_degree else 1)
        for key, value in m.items():
            print(f"{key:>24}  {value:.4g}" if isinstance(value, float) else f"{key:>24}  {value}")
        print()
        if o.save:
            with open(o.save, "a") as file:
                file.write(json.dumps(m) + "\n")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--one"]:
        method, *sizes, order, degree = sys.argv[2:]
        print(json.dumps(one(method, *map(int, sizes), order, "degree" if degree == "1" else False)))
    else:
        main()
