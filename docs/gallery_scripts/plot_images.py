"""
Images: parts of handwritten digits
===================================

The variables are the pixels of handwritten digits. Ordinary components use every pixel. Sparse ones are
parts of a digit: strokes and gaps.
"""

# %%
# We draw six components of twelve pixels each, and six ordinary components beside them.

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits

import spcacore

X = load_digits().data
result = spcacore.sparse_pca(X, 6, cardinality=12)
ordinary = np.linalg.eigh(np.cov(X.T))[1][:, :-7:-1]
print(f"variance explained by the sparse components:   {100 * result.explained_variance_ratio.sum():.0f} %")
share = spcacore.explained_variance(X, ordinary, ratio=True).sum()
print(f"variance explained by the ordinary components: {100 * share:.0f} %")

# %%
# Red pixels are positive, blue ones negative, and white ones are not used.

fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
spcacore.plot.images(result, (8, 8), ax=axes[0])
axes[0].set_title("sparse")
spcacore.plot.images(spcacore.from_loadings(ordinary, X), (8, 8), ax=axes[1])
axes[1].set_title("ordinary")
plt.show()
