"""
DSPCA and SPCA side by side
===========================

Two classical methods answer the same question in different ways. DSPCA (d'Aspremont et al. 2007) solves a
convex relaxation for one component at a time. SPCA (Zou, Hastie and Tibshirani 2006) solves regressions for
all components together.
"""

# %%
# Both are given the same numbers of nonzeros on the pit props, the data of both papers.

import matplotlib.pyplot as plt
import numpy as np

import spcacore

props = spcacore.datasets.load_pitprops()
counts = [7, 4, 4, 1, 1, 1]
A = props.correlation
results = {
    "dspca": spcacore.sparse_pca(A, 6, counts, method="dspca", kind="covariance"),
    "spca": spcacore.spca(A, 6, counts, kind="covariance"),
    "tpower": spcacore.sparse_pca(A, 6, counts, kind="covariance"),
}

# %%
# Does DSPCA explain more than SPCA, as lectures say? It depends on the matrix, the numbers of nonzeros, how
# SPCA ends, and how overlapping components are counted. "SPCA" is the published iteration, which ends without
# a final search; ``spca`` improves its loadings by default.

stocks = spcacore.datasets.load_stocks().correlation[:60, :60]
expression = spcacore.datasets.load_blood_cells().data[:, :60].toarray()
cases = {
    "pit props, 7 4 4 1 1 1": (A, counts),
    "pit props, 6 2 3 1 1 1": (A, [6, 2, 3, 1, 1, 1]),
    "pit props, 4 each": (A, [4] * 6),
    "60 stocks, 8 each": (stocks, [8] * 4),
    "60 genes, 8 each": (np.cov(expression.T), [8] * 4),
}
print(f"{'% explained':24}{'cumulative':>24}{'adjusted':>24}")
print(f"{'':24}{'DSPCA':>8}{'SPCA':>8}{'spca':>8}" + f"{'DSPCA':>8}{'SPCA':>8}{'spca':>8}")
for name, (B, sizes) in cases.items():
    found = (
        spcacore.sparse_pca(B, len(sizes), sizes, method="dspca", kind="covariance"),
        spcacore.spca(B, len(sizes), sizes, kind="covariance", refine=False),
        spcacore.spca(B, len(sizes), sizes, kind="covariance"),
    )
    shares = [
        100 * spcacore.explained_variance(B, x.loadings, way, ratio=True, kind="covariance").sum()
        for way in ("cumulative", "adjusted")
        for x in found
    ]
    print(f"{name:24}" + "".join(f"{share:8.1f}" for share in shares))

# %%
# ``compare`` measures all of them on the same data, and matches their components.

comparison = spcacore.compare(results, props.correlation, kind="covariance")
print(comparison)

# %%
# These are the loadings, side by side. Gray or white cells are zeros.

fig, axes = plt.subplots(1, 3, figsize=(11, 4.5), layout="constrained")
for ax, (name, result) in zip(axes, results.items(), strict=True):
    spcacore.plot.heatmap(result, names=props.names, order="given", ax=ax)
    ax.set_title(name)

# %%
# This is the variance that the first components explain together.

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
spcacore.plot.comparison(comparison, ax=ax)
plt.show()
