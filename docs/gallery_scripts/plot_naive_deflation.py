"""
How naive deflation fails
=========================

To find a second component, the first one has to be removed from the covariance matrix. For ordinary
components, Hotelling's deflation does that exactly: it subtracts ``value * x x'``, and x is an eigenvector.
A sparse x is not, and the same formula goes wrong: L. Mackey (2008), *Deflation methods for sparse PCA*,
NIPS 21.
"""

# %%
# We find six sparse components of the correlations of the pit props, in three ways, and remove one after
# the other from the matrix. A covariance matrix has no negative variances, so its smallest eigenvalue
# should stay at zero or above. After Hotelling's deflation it does not: the matrix is no covariance matrix
# any more, and what the next component maximizes is not a variance.

import matplotlib.pyplot as plt
import numpy as np

import spcacore

pitprops = spcacore.datasets.load_pitprops()
A = pitprops.correlation
fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
for way, style in {"hotelling": "o-", "projection": "s-", "schur": "^--"}.items():
    found = spcacore.sparse_pca(A, 6, cardinality=3, deflation=way, kind="covariance")
    rest, smallest = A, []
    for x in found.loadings.T:
        rest = spcacore.deflate(rest, x, way)
        smallest.append(np.linalg.eigvalsh(rest)[0])
    ax.plot(range(1, len(smallest) + 1), smallest, style, label=way)
    print(f"{way}: smallest eigenvalue after six components {round(min(smallest), 2) + 0.0:.2f}")
ax.set(xlabel="components removed", ylabel="smallest eigenvalue")
ax.legend()

# %%
# The variances in the deflated matrices are wrong as well. After Hotelling's deflation, their sum is more
# than what the components explain together in the data. After the other two it never is.

for way in ("hotelling", "projection", "schur"):
    found = spcacore.sparse_pca(A, 6, cardinality=3, deflation=way, kind="covariance")
    rest, said = A, 0.0
    for x in found.loadings.T:
        said += x @ rest @ x / len(A)
        rest = spcacore.deflate(rest, x, way)
    explained = found.explained_variance_ratio.sum()
    print(f"{way}: {100 * said:.1f} % by the deflated matrices, {100 * explained:.1f} % explained")

# %%
# The default is ``deflation="projection"``. With ``"generalized"`` each component maximizes the variance
# that it adds to the earlier ones.

found = spcacore.sparse_pca(A, 6, cardinality=3, deflation="generalized", kind="covariance")
print(f"generalized: {100 * found.explained_variance_ratio.sum():.1f} % explained")
plt.show()
