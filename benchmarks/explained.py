"""How many variables a component needs to explain 90 and 95 %: of its own variance, and of all variables.

Writes docs/measured/explained.md: python benchmarks/explained.py -o docs/measured/explained.md. The leukemia
data of Golub et al. (1999), 72 samples of 7129 genes, and 2700 blood cells of 10x Genomics, of 32,738 genes.
"""

import numpy as np
import pages
import scipy.sparse
from files import data_file

import spcacore

OBJECTIVES = {"variance": "tpower", "least squares": "least_squares"}
DEFINITIONS = {"variance": "cumulative", "least_squares": "regression"}
SHARES = (0.9, 0.95)


def matrices():
    X = pages.arrays("golub_leukemia.npz")["X"].astype(np.float64)
    counts = scipy.sparse.load_npz(data_file("pbmc3k_counts.npz")).tocsr().astype(np.float64)
    cells = scipy.sparse.diags_array(1e4 / np.asarray(counts.sum(axis=1)).ravel()) @ counts
    cells.data = np.log1p(cells.data)
    return {
        "Leukemia, 72 × 7129, as they are": X,
        "Leukemia, logarithms": np.log(np.maximum(X, 20)),
        "Blood cells, 2700 × 32,738, counts": counts,
        "Blood cells, logarithms of counts in 10,000": cells.tocsr(),
    }


def pit_props():
    A = spcacore.datasets.load_pitprops().correlation
    rows = []
    for k in (1, 2, 3, 5, 8):
        row = [k]
        for method in OBJECTIVES.values():
            v = spcacore.sparse_pca(A, 1, k, method=method, kind="covariance").loadings
            row += [
                f"{spcacore.explained_variance(A, v, d, kind='covariance')[0]:.3f}"
                for d in DEFINITIONS.values()
            ]
        rows.append(row)
    header = ["variables", "variance: x'Ax", "of all", "least squares: x'Ax", "of all"]
    return pages.table(header, rows)


def rows_of(X, r=2):
    """Genes of r components, and what all of them explain, by both definitions, in percent of the total."""
    for share in SHARES:
        for objective, method in OBJECTIVES.items():
            seconds, result = pages.timed(
                lambda share=share, method=method: spcacore.sparse_pca(
                    X, r, spcacore.Explained(share), method=method
                )
            )
            explained = [
                f"{100 * spcacore.explained_variance(X, result.loadings, d, ratio=True).sum():.1f}"
                for d in DEFINITIONS.values()
            ]
            genes = (f"{k:,}" for k in result.cardinality)
            yield [f"{100 * share:.0f} %", objective, *genes, *explained, f"{seconds:.2g}"]


def page():
    lines = [
        "# How many variables for 95 %",
        "",
        INTRODUCTION,
        "## Pit props",
        "",
        "One component of 13 correlated variables. The ordinary component has 4.219 in every column.",
        "",
        pit_props(),
        "",
        "## Genes",
        "",
        "Each component has as few genes as explain 90 or 95 % of what the ordinary component explains,",
        "after the component before it (`sparse_pca(X, 2, Explained(0.95), method=..)`). The last",
        "columns say what both components explain together, in percent of the total variance: by the",
        "projection onto the loadings, and by a regression of all genes on the scores. For ordinary",
        "components the two are equal.",
        "",
    ]
    header = ["share", "objective", "genes of 1st", "of 2nd", "projection", "regression", "seconds"]
    for name, X in matrices().items():
        dense = spcacore.sparse_pca(X, 2, method="thresholding", cardinality=X.shape[1])
        rows = [["100 %", "ordinary", *[f"{X.shape[1]:,}"] * 2]]
        rows[0] += [f"{100 * dense.explained_variance_ratio.sum():.1f}"] * 2 + [""]
        lines += [f"### {name}", "", pages.table(header, [*rows, *rows_of(X)]), ""]
    return "\n".join([*lines, pages.origin("explained", "explained")]) + "\n"


INTRODUCTION = """How many variables does a component need? You can ask for it in two ways. With the objective
"variance", its score has much variance. With "least_squares", its score predicts all variables well. [What
components explain](../guide/explained.md) has the mathematics.

## Summary

* A few genes carry the score of a component: of many genes that vary together, one is enough. To summarize
  all genes, or to measure the score anew from a few of them, ask for least squares. A regression on such
  scores explains the share that you asked for, with far fewer genes.
* To name all genes that vary together, ask for variance: its loadings have them all. Least squares loadings
  are weights. The projection onto them explains little; what they tell about a gene is its regression on the
  score.
"""


if __name__ == "__main__":
    pages.main(page, __doc__)
