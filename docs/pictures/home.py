"""Six components of the pit props: ordinary ones, and sparse ones."""

import matplotlib.pyplot as plt
import numpy as np

import spcacore

props = spcacore.datasets.load_pitprops()
values, vectors = np.linalg.eigh(props.correlation)
dense = vectors[:, ::-1][:, :6]
dense *= np.sign(dense[abs(dense).argmax(axis=0), range(6)])
sparse = spcacore.sparse_pca(
    props.correlation, 6, cardinality=4, kind="covariance", deflation="generalized", refine=True
)
by_variance = (sparse.loadings * (props.correlation @ sparse.loadings)).sum(axis=0).argsort()[::-1]
order = np.argsort(abs(dense[:, 0]))[::-1]
shares = values[::-1][:6].sum() / 13, sparse.explained_variance_ratio.sum()

figure, axes = plt.subplots(1, 2, figsize=(8, 4), sharey=True, layout="constrained")
parts = ("principal components", dense), ("sparse components", sparse.loadings[:, by_variance])
for axis, (name, loadings), share in zip(axes, parts, shares, strict=True):
    image = axis.pcolormesh(loadings[order], cmap="RdBu_r", vmin=-1, vmax=1, edgecolor="w", linewidth=1)
    nonzeros = (loadings != 0).sum()
    axis.set_title(f"{name}\n{nonzeros} nonzeros, {100 * share:.1f} % of the variance", fontsize=10)
    axis.set_xticks(np.arange(6) + 0.5, range(1, 7))
    axis.set_yticks(np.arange(13) + 0.5, [props.names[j] for j in order])
    axis.tick_params(length=0)
    axis.spines[:].set_visible(False)
axes[0].invert_yaxis()
figure.colorbar(image, ax=axes, shrink=0.7, label="loading").outline.set_visible(False)
figure.savefig("home.png")
