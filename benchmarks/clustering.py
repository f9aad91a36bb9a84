"""Sparse clustering: time, memory, and what it finds.

python benchmarks/clustering.py -o docs/measured/clustering.md: 500 x 20,000, and planted clusters. One BLAS
thread.
"""

import argparse
import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import statistics
import time

import memory
import numpy as np
import pages

import spcacore

N, P = 500, 20000
CALLS = {
    "sqeuclidean": lambda X, c: spcacore.sparse_dissimilarity(X, c),
    "absolute": lambda X, c: spcacore.sparse_dissimilarity(X, c, "absolute"),
    "K-means, 3 clusters": lambda X, c: spcacore.sparse_kmeans(X, 3, c),
}


def planted(n, p, k, shift, dtype=np.float64, seed=0):
    """Three clusters that differ in k variables."""
    rng = np.random.default_rng(seed)
    y = np.arange(n) * 3 // n
    X = rng.standard_normal((n, p), dtype)
    X[:, :k] += dtype(shift) * (y[:, None] - 1).astype(dtype)
    return X, y


def one(what, dtype, bound):
    """CPU seconds, peak of memory beyond X in MB, variables and iterations, in this process."""
    CALLS[what](planted(40, 60, 5, 1.0)[0], 3.0)  # libraries are loaded, BLAS has its buffers
    X, _ = planted(N, P, 100, 1.0, np.dtype(dtype).type)
    peak, (seconds, result) = memory.above(lambda: pages.timed(lambda: CALLS[what](X, float(bound))))
    print(seconds, peak / 1e6, result.cardinality, result.n_iter)


def measured(what, dtype, bound, repeats=3):
    outputs = (memory.in_process(__file__, "--one", what, dtype, bound) for _ in range(repeats))
    runs = [[float(value) for value in output.split()] for output in outputs]
    return [statistics.median(column) for column in zip(*runs, strict=True)]


def explicit(X, bound, tol=1e-6):
    """The iteration as written, with the matrix of all pairs i < i'."""
    i, j = np.triu_indices(len(X), 1)
    D = (X[i] - X[j]) ** 2
    w = np.full(X.shape[1], X.shape[1] ** -0.5)
    while True:
        new, _ = spcacore.l1_threshold(D.T @ (D @ w), bound, nonnegative=True)
        if abs(new - w).sum() <= tol * w.sum():
            return new
        w = new


def beside_explicit(n=150, p=2000, bound=8.0):
    """Seconds of either, taken in turns, and the largest difference of their weights."""
    X, _ = planted(n, p, 50, 1.0)
    times = []
    for _ in range(3):
        start = time.process_time()
        theirs = explicit(X, bound)
        middle = time.process_time()
        ours = spcacore.sparse_dissimilarity(X, bound)
        times.append((middle - start, time.process_time() - middle))
    slow, fast = np.median(times, axis=0)
    return n, p, slow, fast, n * (n - 1) / 2 * p * 8 / 1e6, np.abs(ours.weights - theirs).max()


def recovered(repeats=10):
    """Rows: shift, then means over data sets of AUC and adjusted Rand indices."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import pdist
    from sklearn.cluster import KMeans
    from sklearn.metrics import adjusted_rand_score, roc_auc_score

    def cut(D):
        return fcluster(linkage(D, "average"), 3, "maxclust")

    for shift in (0.7, 1.0, 1.5):
        rows = []
        for seed in range(repeats):
            X, y = planted(60, 500, 50, shift, seed=seed)
            squares, absolute = (spcacore.sparse_dissimilarity(X, 6, m) for m in ("sqeuclidean", "absolute"))
            kmeans = spcacore.sparse_kmeans(X, 3, 6)
            areas = [roc_auc_score(np.arange(500) < 50, r.weights) for r in (squares, absolute, kmeans)]
            labels = [
                cut(D) for D in (pdist(X, "sqeuclidean"), squares.dissimilarity, absolute.dissimilarity)
            ]
            labels += [KMeans(3, n_init=20, random_state=0).fit(X).labels_, kmeans.labels]
            rows.append(areas + [adjusted_rand_score(y, found) for found in labels])
        yield shift, np.mean(rows, axis=0)


def curve(n_permutations=2):
    """Seconds of the gap statistic at ten bounds."""
    X, _ = planted(N, P, 100, 1.0, np.float32)
    seconds, gap = pages.timed(lambda: spcacore.sparse_dissimilarity_gap(X, n_permutations=n_permutations))
    return seconds / (n_permutations + 1), gap


def page():
    lines = [
        "# Sparse clustering",
        "",
        "When only a few of many variables separate clusters, weighting variables finds clusters that a",
        "tree or K-means of all variables misses. The second table shows it on clusters that were",
        "planted. The first shows what it costs: seconds, and little memory beside the data.",
        "",
        "`sparse_dissimilarity` gives the variables weights under which the dissimilarities of all pairs",
        "of samples are as large as possible; `scipy.cluster.hierarchy.linkage` takes the result.",
        "`sparse_kmeans` does so for the sums of squares between clusters. Their `_gap` functions choose",
        "the bound on the weights by permutations. See [clustering by few",
        "variables](../guide/clustering.md), and an example with a picture:",
        "[dendrograms](../examples/dendrograms.py).",
        "",
        f"## {N} samples of {P:,} variables",
        "",
        f"Three clusters that differ in 100 variables. The matrix of all pairs would take"
        f" {N * (N - 1) / 2 * P * 8 / 1e9:.0f} GB in float64; X takes {N * P * 8 / 1e6:.0f} MB.",
        "",
        "| | dtype | bound | s | MB beyond X | variables | iterations |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for what in CALLS:
        for dtype in ("float64", "float32"):
            for bound in (8, 30) if dtype == "float64" else (8,):
                seconds, peak, variables, n_iter = measured(what, dtype, bound)
                counts = f"{variables:.0f} | {n_iter:.0f}"
                lines.append(f"| {what} | {dtype} | {bound} | {seconds:.1f} | {peak:.0f} | {counts} |")
    each, gap = curve()
    n, p, slow, fast, size, error = beside_explicit()
    lines += [
        "",
        f"`sparse_dissimilarity_gap` at ten bounds takes {each:.0f} s for the data and for each permutation"
        f" (float32); here it chose {gap.l1_bound:.1f}, with"
        f" {gap.cardinality[list(gap.l1_bounds).index(gap.l1_bound)]} variables.",
        "",
        "The same iteration in NumPy, with the matrix of all pairs, takes"
        f" {slow / fast:.0f} times as long at {n} × {p} ({slow:.2f} s, and {fast:.2f} s here). That matrix"
        f" alone takes {size:.0f} MB. The weights agree to {error:.0e}.",
        "",
        "## Planted clusters",
        "",
        "60 samples are in three clusters, shifted by -s, 0 and s in 50 of 500 variables. The bound is 6,",
        "and average linkage is cut into three. AUC says how well the weights tell the 50 variables from",
        "the others (1 is perfect, 0.5 is chance). The other columns are adjusted Rand indices: 1 where",
        'the clusters are found exactly, 0 where it is chance. "All variables" means SciPy\'s `pdist` and',
        "scikit-learn's `KMeans`. Each row is the mean of ten data sets.",
        "",
        "| s | AUC, squares | AUC, absolute | AUC, K-means | tree of all variables | tree, squares"
        " | tree, absolute | K-means of all variables | sparse K-means |",
        "| ---: " * 9 + "|",
    ]
    for shift, values in recovered():
        lines.append(f"| {shift} | " + " | ".join(f"{v:.2f}" for v in values) + " |")
    lines += [
        "",
        "At s = 0.7 the clusters are too near each other for average linkage, whatever the weights. K-means,"
        " which looks for three clusters, finds most of them.",
        "",
        "Times are CPU times of one thread, medians of three runs, each in a process of its own.",
        "",
        pages.origin("clustering", "clustering"),
        "",
    ]
    return "\n".join(lines)


def main():
    parser = pages.parser(__doc__)
    parser.add_argument("--one", nargs=3, metavar=("WHAT", "DTYPE", "BOUND"), help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.one:
        one(*args.one)
    else:
        pages.write(page(), args.output)


if __name__ == "__main__":
    main()
