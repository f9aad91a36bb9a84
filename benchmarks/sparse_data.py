"""Sparse data: `sparse_pca` beside the loop that an expert writes with SciPy, on the same array.

Writes docs/measured/sparse_data.md: python benchmarks/sparse_data.py -o docs/measured/sparse_data.md. Blood
cells of 10x Genomics, 2700 cells of 32,738 genes, and political blogs, 5000 posts of 2632 words, as counts
and as logarithms; words of 60,000 random texts. Ten components of 50 variables from default calls. CPU time
of one thread, minima of five calls of each in turn; g is one product `X.T @ u`. Then five components by other
methods, from default calls and from those that search among all columns.
"""

import os
from dataclasses import replace
from functools import partial

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pages
import scipy.sparse
from files import data_file

import spcacore

R, K, REPEATS = 10, 50, 5
METHODS = {
    "gpower": (None, spcacore.GPower(0.1, relative=True)),
    "gpower, l0": (None, spcacore.GPower(0.02, relative=True, norm="l0")),
    "pmd": (None, spcacore.PMD(5)),
    "scotlass": (None, spcacore.SCoTLASS(5)),
    "greedy": (50, spcacore.Greedy()),
}


def matrices():
    cells = scipy.sparse.load_npz(data_file("pbmc3k_counts.npz")).astype(np.float64)
    blogs = scipy.sparse.load_npz(data_file("poliblog5k_counts.npz")).astype(np.float64)
    scaled = scipy.sparse.diags_array(1e4 / np.asarray(cells.sum(axis=1)).ravel()) @ cells
    return {
        "blood cells, counts": cells,
        "blood cells, logarithms of counts in 10,000": scaled.log1p(),
        "political blogs, counts": blogs,
        "political blogs, logarithms": blogs.log1p(),
        "words of 60,000 random texts": texts(),
    }


def texts(n=60_000, p=30_000, topics=20):
    """Counts of words by Zipf's law, 90 of each text, and 8 more of the 40 words of its topic."""
    rng = np.random.default_rng(0)
    frequency = np.arange(1, p + 1) ** -1.05
    own = np.array([rng.choice(np.arange(50, 3000), 40, replace=False) for _ in range(topics)])
    every, more = (np.repeat(np.arange(n), rng.poisson(mean, n)) for mean in (90, 8))
    words = rng.choice(p, len(every), p=frequency / frequency.sum())
    others = own[rng.integers(topics, size=n)[more], rng.integers(40, size=len(more))]
    row, column = np.concatenate([every, more]), np.concatenate([words, others])
    return scipy.sparse.coo_array((np.ones(len(row)), (row, column)), (n, p)).tocsr()


def plain(X, r=R, k=K, tol=1e-8):
    """Truncated power with implicit centering and projection deflation, from the k largest variances."""
    n, p = X.shape
    mean = np.asarray(X.mean(axis=0)).ravel()
    variance = np.asarray(X.multiply(X).sum(axis=0)).ravel() - n * mean**2
    V = np.zeros((p, r))

    def product(x, t):
        x = x - V[:, :t] @ (V[:, :t].T @ x)
        f = X @ x - mean @ x
        y = X.T @ f - mean * f.sum()
        return y - V[:, :t] @ (V[:, :t].T @ y)

    def truncated(y):
        index = np.argpartition(np.abs(y), p - k)[p - k :]
        x = np.zeros(p)
        x[index] = y[index]
        return x / np.linalg.norm(x)

    for t in range(r):
        x, before = truncated(np.sqrt(np.maximum(variance, 0))), 0.0
        while True:
            y = product(x, t)
            objective, after = x @ y, truncated(y)
            if objective - before <= tol * objective and np.array_equal(after != 0, x != 0):
                break
            x, before = after, objective
        V[:, t] = x
        variance = variance * (1 - x**2)
    return V


def row(name, X, kind):
    X = X.asformat(kind)
    u = np.ones(X.shape[0])
    calls = {
        "g": lambda: X.T @ u,
        "ours": lambda: spcacore.sparse_pca(X, R, cardinality=K),
        "plain": lambda: plain(X),
    }
    seconds, last = dict.fromkeys(calls, np.inf), {}
    for _ in range(REPEATS):
        for what, call in calls.items():
            time, last[what] = pages.timed(call)
            seconds[what] = min(seconds[what], time)
    ours = last["ours"]
    both = [spcacore.explained_variance(X, V).sum() for V in (ours.loadings, last["plain"])]
    return [
        name, kind.upper(), f"{1e3 * seconds['g']:.2f}", f"{1e3 * seconds['ours']:.0f}",
        f"{seconds['ours'] / seconds['g']:.0f}", f"{1e3 * seconds['plain']:.0f}",
        f"{seconds['plain'] / seconds['ours']:.1f}", f"{both[0] / both[1]:.4f}",
        ours.screening.checks, ours.screening.working_set,
    ]  # fmt: skip


def dense():
    """Ten groups of 60 correlated variables among 20,000, with 500 samples."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((500, 20_000))
    for t in range(10):
        X[:, 60 * t : 60 * t + 60] += (2 - 0.1 * t) * rng.standard_normal((500, 1)) * rng.choice([-1, 1], 60)
    return X


def other_methods():
    """The table of the other methods."""
    cells, _, blogs, *_ = matrices().values()
    inputs = {
        "blood cells, CSR": cells.tocsr(), "blood cells, CSC": cells.tocsc(),
        "political blogs, CSR": blogs.tocsr(), "political blogs, CSC": blogs.tocsc(),
        "dense, 500×20,000": dense(),
    }  # fmt: skip
    rows = []
    for name, X in inputs.items():
        for name_of_method, (k, method) in METHODS.items():
            whole = isinstance(X, np.ndarray) and name_of_method != "greedy"
            mode = "working_set" if whole else "auto"
            seconds, found = {}, {}
            for how in ("none", mode):
                seconds[how], found[how] = pages.timed(
                    partial(spcacore.sparse_pca, X, 5, k, method=replace(method, screening=how))
                )
            both = [spcacore.explained_variance(X, found[how].loadings).sum() for how in (mode, "none")]
            screening = found[mode].screening
            rows.append([
                name, name_of_method, f"{1e3 * seconds['none']:.0f}", f"{1e3 * seconds[mode]:.0f}",
                f"{seconds['none'] / seconds[mode]:.1f}", f"{both[0] / both[1]:.4f}", screening.checks,
                screening.working_set,
            ])  # fmt: skip
    header = [
        "data", "method", "all columns, ms", "working set, ms", "times faster", "variance over that",
        "checks", "columns",
    ]  # fmt: skip
    return pages.table(header, rows)


def page():
    rows = [row(name, X, kind) for name, X in matrices().items() for kind in ("csr", "csc")]
    header = [
        "data", "", "g, ms", "sparse_pca, ms", "in g", "plain SciPy, ms", "times ours",
        "variance over its", "checks", "columns",
    ]  # fmt: skip
    assert all(float(row[7]) >= 1 for row in rows)
    faster, more = ([float(row[column]) for row in rows] for column in (6, 7))
    return f"""# Sparse data

On these counts, `sparse_pca` is {min(faster)} to {max(faster)} times as fast as a loop of SciPy products
written by hand, and its components explain up to {100 * (max(more) - 1):.1f} % more of the variance, nowhere
less. No dense copy is made.

Each row below is one call with default options, which finds ten components of 50 variables. The loop centers
and deflates implicitly, as `sparse_pca` does. Times are CPU times of one thread. The unit g is one product
`X.T @ u`. The search runs in a [working set](../glossary.md#working-set). "Checks" says how often all columns
were asked whether another one should enter it, and "columns" how many it had at the end.

{pages.table(header, rows)}

## Other methods

Other methods search in a working set as well. The column "times faster" says what it saves: least on the
small matrix of blogs, where many words enter the set, and nothing for "greedy", which has none.

Each row finds five components twice: with `screening="none"`, and with the working set, which is the default
for sparse data and `screening="working_set"` for dense data. "gpower" maximizes the variance less a penalty,
so a better component may explain less variance.

{other_methods()}

{pages.origin("sparse_data", "sparse_data")}
"""


if __name__ == "__main__":
    pages.main(page, __doc__)
