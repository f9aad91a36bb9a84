"""Dendrograms before and after: ten genes tell two leukemias apart where thousands do not.

Hierarchical clustering adds up the differences of two samples over all variables. If only a few variables
differ between the groups, the noise of the others hides them. `sparse_dissimilarity` finds weights of the
variables, few of them nonzero, that make the dissimilarities as large as possible. SciPy's `linkage` takes
these dissimilarities. `sparse_dissimilarity_gap` chooses how many variables have weight. It uses permutations
and no labels.

The data are bone marrow samples of 72 patients with acute leukemia, 47 lymphoblastic (ALL) and 25 myeloid
(AML). Expression is cut to [100, 16000] and its logarithm is taken. The 3571 genes with a range of more than
5-fold and 500 are kept. They are not scaled, so genes that vary more count more. Linkage is average.

With all genes, the first branch separates two samples from the other 70. Its adjusted Rand index with the
diagnoses is -0.02, where 0 is chance. The diagnoses are in that tree, but behind outliers: only a cut into
six shows them, with 24 AML, 44 ALL and four samples by themselves. The gap statistic is largest at a bound of
2.64, where ten genes have weight. The first branch of their tree has an index of 0.78: 21 AML on one side,
all 47 ALL and four AML on the other. The silhouette, which needs no tree, says the same: for the diagnoses it
rises from 0.17 to 0.63, where 1 means that groups lie far apart.

Hematologists know these ten genes. Myeloid cells express CST3 (M27891), CFD (M84526), S100A9 (M26311), MPO
(M19507), ELANE (M20203) and CXCL8 (twice: Y00787, M28130); early lymphocytes express TCL1A (X82240), VPREB1
(D88270) and DNTT (M11722). No diagnosis was used.

The linkage matters too. Complete linkage finds the diagnoses with all genes (0.78), but with the ten genes it
separates the ALL with TCL1A from all other samples (0.30). With the 146 genes of a bound of 8.63, average,
complete and weighted linkage agree (0.78).

In the picture: branches are blue where all samples below are ALL, orange for AML. The curve is the gap
statistic, with one standard deviation. Below is the expression of the ten genes, relative to their means, the
gene of largest weight first.

The data are from Golub et al. (1999), Science 286, 531-537, as an .npz with X, genes and labels:

    python dendrograms.py --data golub_leukemia.npz
"""

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.cluster.hierarchy import dendrogram, fcluster, leaves_list, linkage
from scipy.spatial.distance import pdist, squareform

import spcacore

COLORS = {"ALL": "#0072B2", "AML": "#D55E00"}
MIXED = "0.55"
NAMES = {
    "X82240_rna1_at": "TCL1A", "M27891_at": "CST3", "M84526_at": "CFD", "Y00787_s_at": "CXCL8",
    "M26311_s_at": "S100A9", "D88270_at": "VPREB1", "M19507_at": "MPO", "M28130_rna1_s_at": "CXCL8 (2)",
    "M11722_at": "DNTT", "M20203_s_at": "ELANE",
}  # fmt: skip


@dataclass(frozen=True)
class Tree:
    """A linkage, how its two branches agree with the labels, and how far apart these are without it."""

    linkage: np.ndarray
    rand_index: float
    branches: np.ndarray
    silhouette: float


@dataclass(frozen=True)
class Trees:
    """By all variables and by the chosen ones; values (n, few) of the latter about their means."""

    labels: np.ndarray
    before: Tree
    after: Tree
    gap: spcacore.GapStatistic
    n_genes: int
    genes: np.ndarray
    values: np.ndarray


def data(file):
    """Logarithms of the expression of genes that vary, their names, and the diagnoses."""
    with np.load(file) as archive:
        X, genes, labels = archive["X"], archive["genes"], archive["labels"]
    X = np.clip(X, 100, 16000).astype(float)
    varied = (X.max(axis=0) > 5 * X.min(axis=0)) & (np.ptp(X, axis=0) > 500)
    return np.log10(X[:, varied]), genes[varied], labels


def analyze(X, genes, labels, method="average", n_jobs=1):
    gap = spcacore.sparse_dissimilarity_gap(X, n_jobs=n_jobs)
    few = spcacore.sparse_dissimilarity(X, gap.l1_bound)
    before = tree(pdist(X, "sqeuclidean"), labels, method)
    after = tree(few.dissimilarity, labels, method)
    values = X[:, few.selected] - X[:, few.selected].mean(axis=0)
    return Trees(labels, before, after, gap, len(genes), genes[few.selected], values)


def tree(dissimilarity, labels, method):
    joined = linkage(dissimilarity, method)
    branch = fcluster(joined, 2, "maxclust") - 1
    _, group = np.unique(labels, return_inverse=True)
    table = np.zeros((2, 2), int)
    np.add.at(table, (branch, group), 1)
    return Tree(joined, rand_index(table), table, silhouette(squareform(dissimilarity), labels))


def rand_index(table):
    """Of Hubert and Arabie (1985): pairs on which both partitions agree, adjusted for chance."""

    def pairs(counts):
        return (counts * (counts - 1) / 2).sum()

    rows, columns = pairs(table.sum(axis=1)), pairs(table.sum(axis=0))
    chance = rows * columns / pairs(table.sum(keepdims=True))
    return (pairs(table) - chance) / ((rows + columns) / 2 - chance)


def silhouette(distance, labels):
    """Mean over samples of (to the other group - to one's own)/(the larger of both), two groups."""
    same = labels[:, None] == labels
    own = (distance * same).sum(axis=1) / (same.sum(axis=1) - 1)
    other = (distance * ~same).sum(axis=1) / (~same).sum(axis=1)
    return np.mean((other - own) / np.maximum(other, own))


def picture(result):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 7.2), layout="constrained")
    grid = figure.add_gridspec(3, 2, height_ratios=(3.2, 0.18, 2.6), hspace=0.02, wspace=0.05)
    titles = (f"all {result.n_genes} genes", f"{len(result.genes)} genes, by sparse_dissimilarity")
    for column, (title, one) in enumerate(zip(titles, (result.before, result.after), strict=True)):
        ax = figure.add_subplot(grid[0, column])
        draw_tree(ax, one.linkage, result.labels)
        ax.set_title(
            f"{title}\nadjusted Rand index {one.rand_index:.2f}, silhouette {one.silhouette:.2f}",
            loc="left", fontsize=11,
        )  # fmt: skip
        strip = figure.add_subplot(grid[1, column])
        draw_labels(strip, result.labels[leaves_list(one.linkage)])
    draw_gap(figure.add_subplot(grid[2, 0]), result.gap)
    ax = figure.add_subplot(grid[2, 1])
    image = draw_values(ax, result, leaves_list(result.after.linkage))
    figure.colorbar(image, ax=ax, pad=0.01, aspect=30, label="log10 expression about the mean")
    return figure


def draw_tree(ax, joined, labels):
    """Branches in the color of the label of all samples below."""
    from matplotlib.collections import LineCollection

    below = [{label} for label in labels]
    for a, b in joined[:, :2].astype(int):
        below.append(below[a] | below[b])
    colors = [COLORS[min(group)] if len(group) == 1 else MIXED for group in below]
    drawn = dendrogram(joined, no_plot=True, link_color_func=lambda k: colors[k])
    lines = [np.column_stack(link) for link in zip(drawn["icoord"], drawn["dcoord"], strict=True)]
    ax.add_collection(LineCollection(lines, colors=drawn["color_list"], linewidths=1.4))
    ax.set_xlim(0, 10 * len(labels))
    ax.set_ylim(0, 1.03 * joined[-1, 2])
    ax.set_xticks([])
    ax.tick_params(labelsize=8, length=2, colors="0.4")
    ax.spines[["top", "right", "bottom"]].set_visible(False)
    ax.spines["left"].set_color("0.7")
    ax.set_ylabel("dissimilarity", fontsize=9, color="0.3")


def draw_labels(ax, labels):
    ax.bar(np.arange(len(labels)), 1, 1, color=[COLORS[label] for label in labels], edgecolor="white", lw=0.6)
    ax.set_xlim(-0.5, len(labels) - 0.5)
    ax.set_ylim(0, 1)
    ax.set_axis_off()


def draw_gap(ax, gap):
    from matplotlib.lines import Line2D

    ax.errorbar(
        gap.l1_bounds, gap.gap, gap.deviation, fmt="o-", color="0.25", ms=4.5, lw=1.2, elinewidth=1, capsize=2
    )
    best = int(np.argmax(gap.gap))
    ax.plot(gap.l1_bound, gap.gap[best], "o", ms=11, mfc="none", mec="#009E73", mew=2.2)
    for x, y, count in zip(gap.l1_bounds, gap.gap, gap.cardinality, strict=True):
        ax.annotate(
            f"{count}", (x, y), (-7 if x < gap.l1_bound else 5, 8), textcoords="offset points",
            fontsize=8.5, ha="right" if x < gap.l1_bound else "left",
            color="#009E73" if x == gap.l1_bound else "0.4",
            weight="bold" if x == gap.l1_bound else "normal",
        )  # fmt: skip
    ax.set_xscale("log")
    ax.set_xticks([1, 2, 5, 10, 20, 40], ["1", "2", "5", "10", "20", "40"])
    ax.minorticks_off()
    ax.margins(x=0.07, y=0.17)
    ax.set_ylim(0)
    ax.set_xlabel("bound on the sum of the weights (with the number of genes)", fontsize=9)
    ax.set_ylabel("gap statistic", fontsize=9)
    ax.tick_params(labelsize=8.5)
    ax.spines[["top", "right"]].set_visible(False)
    handles = [Line2D([], [], color=color, lw=6, label=label) for label, color in COLORS.items()]
    ax.legend(handles=handles, title="diagnosis", frameon=False, loc="upper right", fontsize=9)


def draw_values(ax, result, order):
    limit = np.abs(result.values).max()
    image = ax.imshow(
        result.values[order].T, aspect="auto", cmap="RdBu_r", vmin=-limit, vmax=limit, interpolation="nearest"
    )
    ax.set_yticks(range(len(result.genes)), [NAMES.get(gene, gene) for gene in result.genes], fontsize=9)
    ax.set_xticks([])
    ax.tick_params(length=0)
    ax.spines[:].set_visible(False)
    return image


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="an .npz with X, genes and labels")
    options = parser.parse_args()
    X, genes, labels = data(options.data)
    result = analyze(X, genes, labels)
    print(result.gap)
    for name, one in (("all genes", result.before), (f"{len(result.genes)} genes", result.after)):
        print(f"{name}: adjusted Rand index {one.rand_index:.2f}, silhouette {one.silhouette:.2f}")
    for bound in (result.gap.l1_bound, result.gap.l1_bounds[5]):
        D = spcacore.sparse_dissimilarity(X, bound).dissimilarity
        found = {
            m: round(float(tree(D, labels, m).rand_index), 2) for m in ("average", "complete", "weighted")
        }
        print(f"bound {bound:.2f}:", found)
    print(
        "all genes, complete:", round(float(tree(pdist(X, "sqeuclidean"), labels, "complete").rand_index), 2)
    )
    picture(result).savefig(Path(__file__).with_suffix(".png"), dpi=90)


if __name__ == "__main__":
    main()
