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
# ``compare`` measures all of them on the same data, and matches their components.

comparison = spcacore.compare(results, props.correlation, kind="covariance")
print(comparison)

# %%
# The loadings beside each other. Gray or white cells are zeros.

fig, axes = plt.subplots(1, 3, figsize=(11, 4.5), layout="constrained")
for ax, (name, result) in zip(axes, results.items(), strict=True):
    spcacore.plot.heatmap(result, names=props.names, order="given", ax=ax)
    ax.set_title(name)

# %%
# And the variance that the first components explain together.

fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
spcacore.plot.comparison(comparison, ax=ax)
plt.show()
