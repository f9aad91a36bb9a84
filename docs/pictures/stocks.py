"""Six sparse components of stock returns, each with its industry: for a light page and for a dark one.

The README shows copies in docs/_static, which are drawn by this script too.
"""

import matplotlib.pyplot as plt
import numpy as np

import spcacore

INDUSTRIES = (
    "electric\nutilities", "real\nestate", "food and\nhousehold", "oil\nand gas", "banks",
    "semi-\nconductors",
)  # fmt: skip
STOCKS = 4  # of each component, the strongest

stocks = spcacore.datasets.load_stocks()
result = spcacore.sparse_pca(stocks.correlation, 6, cardinality=20, kind="covariance")
rows = np.concatenate([np.argsort(-abs(v))[:STOCKS] for v in result.loadings.T])
shown = np.ma.masked_equal(abs(result.loadings[rows]), 0)

for name, ink, colors in ("light", "#1f2328", "Blues"), ("dark", "#e6edf3", "YlGnBu_r"):
    with plt.rc_context({"text.color": ink, "xtick.color": ink, "ytick.color": ink}):
        figure, axis = plt.subplots(figsize=(6.4, 4), layout="constrained")
        axis.pcolormesh(shown, cmap=colors, vmin=0, vmax=0.4, edgecolor="none")
        axis.set_xticks(np.arange(6) + 0.5, INDUSTRIES, fontsize=11)
        axis.set_yticks(np.arange(len(rows)) + 0.5, [stocks.names[j] for j in rows], fontsize=8)
        axis.hlines(range(0, len(rows) + 1, STOCKS), 0, 6, color=ink, alpha=0.25, linewidth=0.6)
        axis.tick_params(length=0)
        axis.xaxis.tick_top()
        axis.spines[:].set_visible(False)
        axis.invert_yaxis()
        figure.savefig(f"stocks-{name}.png", transparent=True, dpi=130)
        plt.close(figure)
