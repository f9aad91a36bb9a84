"""Probabilistic PCA measured: held-out variance, time and memory.

Writes docs/measured/probabilistic.md: python benchmarks/probabilistic.py -o docs/measured/probabilistic.md.
It needs the package iris-sample-data;
with --large also the part on 1669 x 65,598 (some ten minutes, 2 GB).
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import resource
import time
from functools import partial

import numpy as np
import pages
from real_sets import package

import spcacore
from spcacore import grid_laplacian

DEFLATIONS = (
    "hotelling", "projection", "schur", "orthogonalized_hotelling", "orthogonalized_projection",
    "generalized",
)  # fmt: skip


def held_out(test, V):
    """Percent of the variance of centered rows that the span of V explains."""
    test = test - test.mean(axis=0)
    Q = np.linalg.qr(np.asarray(V, test.dtype))[0]
    return 100 * float(np.sum((test @ Q) ** 2, dtype=np.float64) / np.sum(test**2, dtype=np.float64))


def likelihood(train, test, V):
    """The log-likelihood of a held-out entry, in nats: normal rows with a covariance in the span of V, and
    one variance outside, that fit the training rows best."""
    (n, p), mean = train.shape, train.mean(axis=0)
    Q = np.linalg.qr(V)[0]
    Z, z = (train - mean) @ Q, (test - mean) @ Q
    D, r = Z.T @ Z / n, Q.shape[1]
    noise = (np.sum((train - mean) ** 2) - np.sum(Z**2)) / (n * (p - r))
    outside = np.sum((test - mean) ** 2) - np.sum(z**2)
    inside = np.sum(np.linalg.solve(D, z.T) * z.T)
    constant = p * np.log(2 * np.pi) + np.linalg.slogdet(D)[1] + (p - r) * np.log(noise)
    return -0.5 * float(constant + (inside + outside / noise) / len(test)) / p


def median_time(*calls, repeats=5):
    """Median seconds of each call, taken in turn."""
    times = [[] for _ in calls]
    for _ in range(repeats):
        for call, out in zip(calls, times, strict=True):
            start = time.perf_counter()
            call()
            out.append(time.perf_counter() - start)
    return [float(np.median(t)) for t in times]


# ---- the source's figure 4 --------------------------------------------------------------------------


def resting_state(seed=0, shape=(25, 40), n=120):
    """Networks of a few smooth regions each, slow courses in time, and smooth noise besides white noise."""
    rng = np.random.default_rng(seed)
    at = np.indices(shape).reshape(2, -1).T
    maps = []
    for _ in range(10):
        regions = rng.uniform([2, 2], np.array(shape) - 3, (rng.integers(1, 4), 2))
        maps.append(np.exp(-0.5 * np.sum((at[:, None] - regions) ** 2, axis=2) / 2.5**2).max(axis=1))
    maps = np.stack([np.where(m > 0.2, m, 0) / np.linalg.norm(m) for m in maps])
    time_courses = rng.standard_normal((n, 10)) * np.linspace(7, 3, 10)
    return time_courses @ maps + rng.standard_normal((n, len(at)))


def by_cardinality(fit, low, high, k):
    """The loadings of `fit(option)` whose mean cardinality is nearest to k, by bisection."""
    best = None
    for _ in range(14):
        middle = (low * high) ** 0.5
        V = fit(middle)
        size = np.count_nonzero(V) / max(V.shape[1], 1)
        if best is None or abs(size - k) < best[0]:
            best = abs(size - k), V
        low, high = (middle, high) if size < k else (low, middle)
    return best[1]


def in_turn(X, r, k, support):
    """Components on the supports that `support(T, k)` finds, each removed from T before the next."""
    T, V = X - X.mean(axis=0), []
    for _ in range(r):
        S, w = support(T, k), np.zeros(T.shape[1])
        w[S] = np.linalg.svd(T[:, S], full_matrices=False)[2][0]
        V.append(w)
        T = T - np.outer(T @ w, w)
    return np.array(V).T


def expectation_maximization(T, k):
    """emPCA (Sigg and Buhmann 2008): EM without noise, and the threshold that leaves k variables."""
    w = np.random.default_rng(0).standard_normal(T.shape[1])
    for _ in range(500):
        y = T @ w
        z = T.T @ y / (y @ y)
        new = spcacore.soft_threshold(z, np.partition(abs(z), -k - 1)[-k - 1])
        new /= np.linalg.norm(new)
        if np.linalg.norm(new - w) < 1e-6:
            break
        w = new
    return np.flatnonzero(new)


def low_rank(T, k, rank=3, samples=2000):
    """LRPCA (Papailiopoulos et al. 2013): the best of the supports of the k largest of a leading subspace."""
    values, vectors = np.linalg.svd(T, full_matrices=False)[1:]
    B = vectors[:rank].T * values[:rank]
    directions = np.random.default_rng(0).standard_normal((rank, samples))
    leading = np.argpartition(-abs(B @ directions), k, axis=0)[:k]
    supports = np.unique(np.sort(leading, axis=0), axis=1).T
    return max(supports, key=lambda S: np.linalg.norm(B[S], 2))


def clustered(Y, shape, d):
    """Means over d regions (Ward's clustering of neighbors), and the prior that near regions are alike."""
    from sklearn.cluster import FeatureAgglomeration
    from sklearn.feature_extraction.image import grid_to_graph

    regions = FeatureAgglomeration(d, connectivity=grid_to_graph(*shape)).fit(Y[::2])
    at = regions.transform(np.indices(shape).reshape(2, -1).astype(float)).T
    apart = np.square(at[:, None] - at).sum(axis=2)
    C = np.exp(-0.5 * apart / 2.5**2) + 0.1 * np.eye(d)
    Z = regions.transform(Y)
    return Z[::2], Z[1::2], spcacore.Prior(covariance=C)


def methods(X, r, k, prior, by_bisection=True):
    """Loadings of every method from the training half."""
    ways = {"": "orthogonal", ", means orthogonal": "constrained", ", naive deflation": "naive"}
    for name, deflation in ways.items():
        yield f"soPPCA, prior{name}", spcacore.soppca(X, r, k, prior=prior, deflation=deflation).loadings
    yield "soPPCA, C = I", spcacore.soppca(X, r, k).loadings
    for deflation in DEFLATIONS:
        name = "TPower, " + deflation.replace("_", " ")
        yield name, spcacore.sparse_pca(X, r, k, deflation=deflation).loadings
    for strategy in ("forward", "gradient"):
        method = spcacore.Greedy(strategy=strategy)
        yield f"greedy path, {strategy}", spcacore.sparse_pca(X, r, k, method=method).loadings

    def pmd(bound, deflation="projection"):
        return spcacore.sparse_pca(X, r, deflation=deflation, method=spcacore.PMD(bound, tol=1e-5)).loadings

    def gpower(gamma):
        return spcacore.sparse_pca(X, r, method=spcacore.GPower(1 / gamma, relative=True)).loadings

    yield "emPCA", in_turn(X, r, k, expectation_maximization)
    yield "LRPCA, rank 3", in_turn(X, r, k, low_rank)
    if not by_bisection:
        return
    yield "PMD", by_cardinality(pmd, 1.0, np.sqrt(X.shape[1]) / 2, k)
    yield "PMD, naive deflation", by_cardinality(lambda c: pmd(c, "naive"), 1.0, np.sqrt(X.shape[1]) / 2, k)
    yield "GPower, l1 penalty", by_cardinality(gpower, 1.01, 20.0, k)


def figure_4():
    data = {}
    Y, L = resting_state(), grid_laplacian((25, 40))
    data["synthetic maps, 120×1000"] = (Y[::2], Y[1::2], spcacore.Prior(precision=L @ L))
    X = np.log(np.maximum(pages.arrays("golub_leukemia.npz")["X"], 20).astype(np.float64))
    X = X[:, np.argsort(-X.var(axis=0))[:1000]]
    train, test = X[::2], X[1::2]
    C = 0.5 * np.corrcoef(train.T) + 0.5 * np.eye(1000)
    data["leukemia, 72×1000"] = (train, test, spcacore.Prior(covariance=C))
    shape = (60, 80)
    Y = resting_state(shape=shape)
    for d in (100, 1000):
        data[f"maps of {d} regions"] = clustered(Y, shape, d)
    table, sizes = {}, {"maps of 100 regions": (10,), "maps of 1000 regions": (10, 20)}
    columns = [(name, k) for name in data for k in sizes.get(name, (10, 20, 60))]
    for name, (train, test, prior) in data.items():
        for k in sizes.get(name, (10, 20, 60)):
            for method, V in methods(train, 6, k, prior):
                cell = f"{held_out(test, V):.2f}"
                used = np.count_nonzero(V) / max(V.shape[1], 1)
                table.setdefault(method, {})[name, k] = cell + (
                    f" ({used:.0f})" if abs(used - k) > 0.5 else ""
                )
    lines = pages.head("", *(f"{name}, k = {k}" for name, k in columns))
    lines += [f"| {m} | " + " | ".join(row.get(c, "") for c in columns) + " |" for m, row in table.items()]
    return lines


# ---- public maps ----------------------------------------------------------------------------------------


def surface_temperatures():
    """Maps of 145 x 192 points, less their mean in each month: 13 forecasts (GloSea4) of six months.

    The package iris-sample-data of PyPI carries them; records of its files have a header of 256 bytes.
    """
    of_month = {}
    for file in sorted(package("iris_sample_data", "sample_data/GloSea4").glob("*.pp")):
        words = np.fromfile(file, ">i4")
        for first in range(0, len(words), 68 + 145 * 192):
            month = tuple(words[first + 1 : first + 3])
            values = words[first + 67 : first + 67 + 145 * 192].view(">f4")
            of_month.setdefault(month, []).append(values.astype(np.float64))
    maps = [np.stack(of_month[month]) for month in sorted(of_month)]
    return np.concatenate([values - values.mean(axis=0) for values in maps])


def regions_of(Y, shape, d):
    """Means over d regions (Ward), and the sparse precision of a prior: regions side by side are alike."""
    from scipy import sparse
    from sklearn.cluster import FeatureAgglomeration
    from sklearn.feature_extraction.image import grid_to_graph

    grid = grid_to_graph(*shape).tocoo()
    found = FeatureAgglomeration(d, connectivity=grid).fit(Y[::2])
    labels, Z = found.labels_, found.transform(Y)
    beside = sparse.coo_array((np.ones(grid.nnz), (labels[grid.row], labels[grid.col])), (d, d)).tocsr()
    beside.data[:] = 1
    beside.setdiag(0)
    beside.eliminate_zeros()
    near = beside.sum(axis=1)
    L = sparse.diags_array(near) - beside
    L = L / near.mean() + 0.1 * sparse.eye_array(d)
    return Z[::2], Z[1::2], spcacore.Prior(precision=L.tocsr())


ABOUT_MAPS = (
    "Maps of the temperature of the surface, 145×192 points: 13 forecasts of six months (GloSea4, in",
    "the package iris-sample-data of PyPI), less the mean of each month. As in the paper, Ward's",
    "clustering makes of them 100, 1000 and 10,000 regions, here in the training half. The rest is as",
    "above. The precision of the prior is the Laplacian of regions side by side, and a tenth of I.",
    "Methods whose penalty is sought by bisection take minutes with 10,000 regions, and were left out",
    "there.",
)
ABOUT_LIKELIHOOD = (
    "The log-likelihood of the held-out half, in nats an entry; higher is better. Rows are normal, with",
    "any covariance in the span of the loadings and one variance outside of it, as the training half has",
    "them.",
)


def public_maps():
    Y, tables = surface_temperatures(), ({}, {})
    columns = [(100, 10), (1000, 10), (1000, 20), (10000, 20)]
    for d in (100, 1000, 10000):
        train, test, prior = regions_of(Y, (145, 192), d)
        for k in (k for other, k in columns if other == d):
            for method, V in methods(train, 6, k, prior, d < 10000):
                used = np.count_nonzero(V) / max(V.shape[1], 1)
                more = f" ({used:.0f})" if abs(used - k) > 0.5 else ""
                cells = f"{held_out(test, V):.2f}{more}", f"{likelihood(train, test, V):.4f}"
                for table, cell in zip(tables, cells, strict=True):
                    table.setdefault(method, {})[d, k] = cell
    head = pages.head("", *(f"{d} regions, k = {k}" for d, k in columns))
    variances, likelihoods = (
        [f"| {m} | " + " | ".join(row.get(c, "") for c in columns) + " |" for m, row in table.items()]
        for table in tables
    )
    return [*head, *variances, "", *ABOUT_LIKELIHOOD, "", *head, *likelihoods]


# ---- time -------------------------------------------------------------------------------------------


def linear_time():
    rng = np.random.default_rng(0)
    n, p = 500, 1000
    U = np.linalg.qr(rng.standard_normal((p, 60)))[0]
    T = rng.standard_normal((n, 60)) * 40 * 0.95 ** np.arange(60) @ U.T
    T += rng.standard_normal((n, p))
    T -= T.mean(axis=0)
    i = np.arange(p)
    C = np.exp(-0.5 * ((i[:, None] - i) / 3.0) ** 2) + 0.1 * np.eye(p)
    Vt = np.linalg.svd(T, full_matrices=False)[2]
    prior = spcacore.Prior(covariance=C)
    ways = {"oPPCA, C = I": {}, "joint EM, C = I": {"deflation": "joint"}, "oPPCA, dense C": {"prior": prior},
            "joint EM, dense C": {"deflation": "joint", "prior": prior}}  # fmt: skip
    lines = pages.head("components", *ways, "error of oPPCA", "error of joint EM")
    for r in (1, 2, 5, 10, 20, 40):
        calls = [partial(spcacore.oppca, T, r, tol=1e-4, **options) for options in ways.values()]
        times, sines = median_time(*calls, repeats=3), []
        for call in calls[:2]:
            V = np.linalg.qr(call().loadings)[0]
            sines.append(np.linalg.norm(V - Vt[:r].T @ (Vt[:r] @ V), 2))
        cells = [f"{t:.2f} s" for t in times] + [f"{s:.4f}" for s in sines]
        lines.append(f"| {r} | " + " | ".join(cells) + " |")
    return lines


def beside_scikit_learn():
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(0)
    lines = ["| shape | type | `ppca` | `PCA` | ratio |", "| --- | --- | ---: | ---: | ---: |"]
    for n, p in ((500, 2000), (2000, 500), (200, 20000)):
        for dtype in (np.float64, np.float32):
            X = rng.standard_normal((n, 10)) @ rng.standard_normal((10, p)) + rng.standard_normal((n, p))
            X = X.astype(dtype)
            ours, theirs = median_time(
                lambda X=X: spcacore.ppca(X, 10), lambda X=X: PCA(10, random_state=0).fit(X), repeats=15
            )
            lines.append(
                f"| {n}×{p} | {dtype.__name__} | {1e3 * ours:.0f} ms | {1e3 * theirs:.0f} ms "
                f"| {theirs / ours:.1f} |"
            )
    return lines


# ---- 1669 x 65,598 ----------------------------------------------------------------------------------


def brain(n=1669, more=400, side=(50, 58, 45), p=65598):
    """An ellipsoid of p points in a grid, six smooth sparse maps, and images; float32."""
    rng = np.random.default_rng(0)
    at = np.indices(side).reshape(3, -1).T
    middle = (np.array(side) - 1) / 2
    mask = np.zeros(len(at), bool)
    mask[np.argsort(np.linalg.norm((at - middle) / middle, axis=1), kind="stable")[:p]] = True
    at = at[mask]
    W = np.stack([np.exp(-0.5 * np.sum((at - at[rng.integers(p)]) ** 2, axis=1) / 9) for _ in range(6)])
    W = np.where(W > 0.1, W, 0).astype(np.float32)
    W /= np.linalg.norm(W, axis=1)[:, None]
    weights = rng.standard_normal((n + more, 6), dtype=np.float32)
    weights *= np.sqrt(np.array([60, 50, 40, 35, 30, 25], np.float32))
    X = rng.standard_normal((n + more, p), dtype=np.float32)
    for start in range(0, len(X), 200):
        X[start : start + 200] += weights[start : start + 200] @ W
    return X[:n], X[n:], W.T, grid_laplacian(side, mask.reshape(side))


def large():
    train, test, W, L = brain()
    k = int(np.count_nonzero(W) / 6)
    lines = [
        "| | time | held-out variance | least cosine with a map | peak memory |",
        "| --- | ---: | ---: | ---: | ---: |",
    ]
    calls = {
        "oPPCA, C = I": lambda: spcacore.oppca(train, 6),
        "oPPCA, smooth prior": lambda: spcacore.oppca(train, 6, prior=spcacore.Prior(precision=L)),
        f"soPPCA, C = I, k = {k}": lambda: spcacore.soppca(train, 6, k),
        f"soPPCA, smooth prior, k = {k}": lambda: spcacore.soppca(
            train, 6, k, prior=spcacore.Prior(precision=L)
        ),
    }
    for name, call in calls.items():
        start = time.perf_counter()
        V = call().loadings
        took = time.perf_counter() - start
        least = np.abs(W.T @ V).max(axis=1).min()
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        lines.append(f"| {name} | {took:.0f} s | {held_out(test, V):.3f} % | {least:.3f} | {peak:.1f} GB |")
    lines.append(f"| *the maps themselves* | | {held_out(test, W):.3f} % | 1 | |")
    return lines


IN_SHORT = """\
## Summary

* If you know that loadings are smooth, say so by a prior: it finds maps that are closer to the true ones. A
  prior helps more when maps are weak and have many variables. With 10 of 1000 variables it adds nothing.
  Among 65,598 points it adds much: without it, a dense component is mostly noise.
* Without a prior, `soppca` is truncated power with orthogonalized projection deflation, and explains nearly
  the same. A prior made from the correlations of 36 samples adds next to nothing.
* Greedy paths explain less on the genes and the regions, and about as much on the single points of maps. EM
  with a threshold (emPCA) and supports from a subspace of rank 3 (LRPCA) explain less everywhere.
* On the public maps the prior and the deflation hardly matter, where the paper reports 20 % to 50 %: few
  points of a large smooth pattern are alike. Of 10,000 regions, the Schur complement and forward search
  explain the most.
* Loadings that are both sparse and orthogonal explain less. So do those after Hotelling's deflation or the
  Schur complement; after naive deflation they do not.
* GPower chooses how many variables each component has, within the same total. This puts it ahead in some
  columns.
* Taken one at a time, components that reach into noise take longer than others under a prior: with 25
  planted in 500×1000, 40 components take 2.3 times as long as 20, and 80 take 2.0 (C = I) or 2.2 times (dense
  C) as long as 40; in 2000×300 with a dense C, 2.4 times each. With a sparse precision of 1600 points of a
  grid, 20 take 1.9 times as long as 10, which are planted; with `soppca` in 2000×300, 40 take twice the
  iterations of 20. Joint EM finds all at once, from principal components on; of ten and more it takes about
  half of the time. One at a time, you need not know beforehand how many you want.
"""


def main():
    parser = pages.parser(__doc__)
    parser.add_argument("--large", action="store_true", help="also the part on 1669 x 65,598")
    options = parser.parse_args()
    known = options.output and options.output.exists()
    old = options.output.read_text(encoding="utf-8") if known else ""
    text = [
        "# Probabilistic components", "",
        IN_SHORT,
        "## Variance explained of the held-out half",
        "",
        "Six components of k variables were found in half of the rows. The table has the percentage of",
        "the variance of the other half that they explain, as in figure 4 of Khanna et al. Higher is",
        "better.",
        "",
        "The synthetic rows mix ten maps of a few smooth regions each, with white noise. The precision of",
        "the prior is the squared Laplacian of the grid. The gene expression is in logarithms, of the",
        "1000 genes that vary most; its prior covariance is half the identity and half the correlation of",
        "the training half. PMD and GPower take a bound or a penalty and no cardinality; it was chosen to",
        "come near k, and parentheses show what was reached.",
        "",
        "The last columns are maps of 60×80 points, averaged over regions that Ward's clustering of",
        "neighbors finds in the training half. The prior says that near regions are alike.",
        "",
        *figure_4(), "",
        "## Regions of public maps", "",
        *ABOUT_MAPS, "",
        *public_maps(), "",
        "## Time by the number of components", "",
        "500 samples of 1000 variables, whose 60 components have standard deviations 40, 38, 36.1, and so",
        "on. Times are of one thread, until a step changes a direction, or the joint weights, by less than",
        "1e-4. The dense C says that neighbors are alike, which they are not here; its eigenvectors are",
        "found first. The error is the sine of the largest angle to the principal subspace, for C = I.",
        "Joint EM is `oppca(..., deflation=\"joint\")`.",
        "",
        *linear_time(), "",
        "## Beside scikit-learn", "",
        "Ten components, one thread, `PCA` with its default solver, which here is a randomized one; medians "
        "of 15 calls in turn.", "",
        *beside_scikit_learn(), "",
    ]  # fmt: skip
    marker = "## 1669 images of 65,598 points"
    if options.large:
        text += [
            marker, "",
            "float32, six smooth sparse maps in white noise, one thread; 400 further images are held out. "
            "The data take 0.4 GB, those held out 0.1 GB.", "",
            *large(), "",
        ]  # fmt: skip
    elif marker in old:
        text += [old[old.index(marker) :].partition("*Written by")[0].rstrip(), ""]
    text += [pages.origin("probabilistic", "probabilistic"), ""]
    pages.write("\n".join(text), options.output)


if __name__ == "__main__":
    main()
