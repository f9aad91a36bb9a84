"""
A graph: communities of stocks
==============================

Connect two stocks if their daily returns have a correlation above 0.35. Which groups does this graph have?
Sparse components of its adjacency matrix are groups of well connected nodes.
"""

# %%
# Each row and column is divided by the square root of the number of neighbors, so that popular stocks do
# not decide everything.

import matplotlib.pyplot as plt
import numpy as np

import spcacore

stocks = spcacore.datasets.load_stocks()
A = (stocks.correlation > 0.35).astype(float)
np.fill_diagonal(A, 0)
connected = A.sum(axis=0) > 2
A, names = A[np.ix_(connected, connected)], np.array(stocks.names)[connected]
degree = A.sum(axis=0) + A.sum(axis=0).mean()
print(f"{len(A)} stocks, {int(A.sum() / 2)} links")

# %%
# ``sma`` looks for sparse components of rows and columns together. A stock belongs to the component of its
# largest loading.

result = spcacore.sma(A / np.sqrt(np.outer(degree, degree)), 4)
loadings = abs(result.loadings)
group = np.where(loadings.max(axis=1) > 0, loadings.argmax(axis=1), 4)
for t in range(4):
    members = np.flatnonzero(group == t)
    leading = members[np.argsort(-loadings[members, t])][:8]
    print(f"group {t + 1}, {len(members)} stocks:", ", ".join(names[leading]))

# %%
# In the order of the groups, the links lie in blocks on the diagonal.

order = np.argsort(group, kind="stable")
fig, axes = plt.subplots(1, 2, figsize=(9, 4.5), layout="constrained")
for ax, rows, title in zip(axes, (np.arange(len(A)), order), ("alphabetical", "by group"), strict=True):
    ax.imshow(A[np.ix_(rows, rows)], cmap="Greys", interpolation="nearest")
    ax.set(title=title, xticks=[], yticks=[])
inside = A[group[:, None] == group].sum() / A.sum()
print(f"{100 * inside:.0f} % of the links are inside a group")
plt.show()
