"""Estimators: sparse components in pipelines and grid searches of scikit-learn.

Each curve is the share of held-out rows classified correctly, by the number of variables in each component.

Wines: two components of `SparsePCA`, then a logistic regression. Three of thirteen measurements in each
component give 97 %, and no number of measurements gives more. The likelihood of wines held out, which `score`
computes, answers another question. It is largest with twelve of thirteen, because all measurements of these
wines go together.

Leukemias: `SparseLDA` tells acute lymphoblastic from acute myeloid leukemia by few of 3571 genes. One gene
classifies 89 % of the patients held out, and twenty genes 96 %.

Digits: twelve components of ten of the 64 pixels, then a logistic regression, give 93.5 %. Twelve principal
components of all pixels give 93.8 %.

Everything is done within each fold: nothing is standardized or chosen with the rows held out. Expression is
prepared as in `dendrograms.py`. The data of the leukemias are from Golub et al. (1999), Science 286,
531-537, as an .npz with X, genes and labels:

    python estimators.py --data golub_leukemia.npz
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import spcacore
from spcacore.sklearn import SparseLDA, SparsePCA

COUNTS = {"wines": tuple(range(1, 14)), "leukemias": (1, 2, 5, 10, 20), "digits": (1, 2, 3, 6, 10)}


@dataclass(frozen=True)
class Curve:
    """Mean accuracy of the rows held out for each number of variables, and with dense components."""

    counts: tuple
    accuracy: np.ndarray
    dense: float | None = None
    likeliest: int | None = None


def wines(counts=COUNTS["wines"]):
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), SparsePCA(), LogisticRegression())
    grid = {"sparsepca__cardinality": counts}
    search = GridSearchCV(model, grid, cv=StratifiedKFold(5, shuffle=True, random_state=0)).fit(X, y)
    plain = make_pipeline(StandardScaler(), SparsePCA())
    likelihood = GridSearchCV(plain, grid, cv=KFold(5, shuffle=True, random_state=0)).fit(X)
    likeliest = likelihood.best_params_["sparsepca__cardinality"]
    return Curve(counts, search.cv_results_["mean_test_score"], likeliest=likeliest)


def genes(file):
    """Logarithms of the expression of genes that vary, and the diagnoses."""
    with np.load(file) as archive:
        X, labels = archive["X"], archive["labels"]
    X = np.clip(X, 100, 16000).astype(float)
    varied = (X.max(axis=0) > 5 * X.min(axis=0)) & (np.ptp(X, axis=0) > 500)
    return np.log10(X[:, varied]), labels


def leukemias(X, labels, counts=COUNTS["leukemias"]):
    model = make_pipeline(
        StandardScaler(), SparseLDA(shrinkage=0.1, options=spcacore.RatioSearch(swaps=False))
    )
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(model, {"sparselda__cardinality": counts}, cv=folds).fit(X, labels)
    return Curve(counts, search.cv_results_["mean_test_score"])


def digits(counts=COUNTS["digits"]):
    X, y = load_digits(return_X_y=True)
    rest = StandardScaler(), LogisticRegression(max_iter=500)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    model = make_pipeline(SparsePCA(12), *rest)
    search = GridSearchCV(model, {"sparsepca__cardinality": counts}, cv=folds).fit(X, y)
    dense = cross_val_score(make_pipeline(PCA(12), *rest), X, y, cv=folds).mean()
    return Curve(counts, search.cv_results_["mean_test_score"], dense)


def picture(curves):
    from matplotlib.figure import Figure
    from matplotlib.ticker import MultipleLocator, PercentFormatter, ScalarFormatter

    titles = {
        "wines": "wines: 2 components of 13 measurements",
        "leukemias": "leukemias: 1 direction of 3571 genes",
        "digits": "digits: 12 components of 64 pixels",
    }
    figure = Figure(figsize=(11, 3.4), dpi=130, layout="constrained")
    for axes, (name, curve) in zip(figure.subplots(1, len(curves), sharey=True), curves.items(), strict=True):
        axes.plot(curve.counts, curve.accuracy, "o-", color="#2f6f73", label="sparse")
        if curve.dense is not None:
            axes.axhline(curve.dense, color="#8c2d4f", linestyle="--", label="principal components")
            axes.legend(frameon=False, loc="lower right")
        axes.set_xscale("log")
        axes.set_xticks(curve.counts if len(curve.counts) < 8 else (1, 2, 3, 6, 13))
        axes.xaxis.set_major_formatter(ScalarFormatter())
        axes.minorticks_off()
        axes.set_title(titles[name], fontsize=10)
        axes.set_xlabel("variables in each")
        axes.yaxis.set_major_locator(MultipleLocator(0.05))
        axes.yaxis.set_major_formatter(PercentFormatter(1, decimals=0))
        axes.spines[["top", "right"]].set_visible(False)
    figure.axes[0].set_ylabel("held-out rows classified rightly")
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True)
    arguments = parser.parse_args()
    curves = {"wines": wines(), "leukemias": leukemias(*genes(arguments.data)), "digits": digits()}
    for name, curve in curves.items():
        print(name, dict(zip(curve.counts, curve.accuracy.round(3).tolist(), strict=True)), curve.dense)
    picture(curves).savefig(Path(__file__).with_suffix(".png"))


if __name__ == "__main__":
    main()
