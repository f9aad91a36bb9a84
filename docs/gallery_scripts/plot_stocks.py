"""
Stocks: industries from daily returns
=====================================

Stocks of one industry rise and fall together. Sparse components of the correlations of their returns find
the industries, although nobody told the program which company makes what.
"""

# %%
# A correlation matrix is enough: ``kind="covariance"`` says that X is not the data but their covariance.

import matplotlib.pyplot as plt
import numpy as np

import spcacore

stocks = spcacore.datasets.load_stocks()
result = spcacore.sparse_pca(stocks.correlation, 5, cardinality=10, kind="covariance")
for t, loading in enumerate(result.loadings.T):
    order = np.argsort(-abs(loading))[:10]
    print(f"component {t + 1}:", ", ".join(stocks.names[j] for j in order))

# %%
# The same components as a table of colors. Red loadings are positive.

fig, ax = plt.subplots(figsize=(6, 8), layout="constrained")
spcacore.plot.heatmap(result, names=stocks.names, ax=ax)

# %%
# How far can these be from the best components of ten stocks? ``certify=True`` computes an upper bound on
# the variance of each. A gap of 0 would be a proof that no ten stocks do better.

proved = spcacore.sparse_pca(stocks.correlation, 2, cardinality=10, kind="covariance", certify=True)
for t in range(2):
    print(f"component {t + 1}: variance {proved.explained_variance[t]:.2f}, gap {100 * proved.gap[t]:.1f} %")
plt.show()
