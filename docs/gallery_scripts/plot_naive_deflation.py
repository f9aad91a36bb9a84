"""
How naive deflation fails
=========================

To find a second component, the first one has to be removed. For ordinary components, two formulas do that
exactly: Hotelling's subtracts ``value * x x'`` from the covariance matrix, where x is an eigenvector, and the
other subtracts ``d u x'`` from the data, where u and x are singular vectors. Sparse vectors are neither, and
the same formulas go wrong: L. Mackey (2008), *Deflation methods for sparse PCA*, NIPS 21.
"""

# %%
# From the matrix
# ---------------
#
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
# From the data
# -------------
#
# ``deflation="naive"`` subtracts the component from the data. Where u is the normalized score ``X x``, that
# is the projection, and both find the same components. But ``pmd`` can make u sparse too, by a bound on its
# l1 norm. Then a part of the variance along x stays in the data, and the next component finds it again. The
# data are counts of 250 genes in 700 blood cells.

cells = spcacore.datasets.load_blood_cells()
X = cells.data.toarray()
X -= X.mean(axis=0)
x = spcacore.pmd(X, 3, center=False, options=spcacore.PMD(sample_l1_bound=8, renormalize=False))
left = X - x.strength * np.outer(x.sample_loading, x.loading)
share = np.sum((left @ x.loading) ** 2) / np.sum((X @ x.loading) ** 2)
print(f"after naive deflation, {100 * share:.0f} % of the variance along the first loading is left")

for bound in (None, 8):
    for way in ("naive", "projection"):
        found = spcacore.sparse_pca(
            X, 6, deflation=way, center=False, method=spcacore.PMD(l1_bound=3, sample_l1_bound=bound)
        )
        cosine = np.abs(np.triu(found.loadings.T @ found.loadings, 1)).max()
        explained = 100 * found.explained_variance_ratio.sum()
        print(
            f"{way}, {'any' if bound is None else 'few'} samples: "
            f"{explained:.1f} % explained, largest cosine of two loadings {cosine:.2f}"
        )

# %%
# The default is ``deflation="projection"``. With ``"generalized"`` each component maximizes the variance
# that it adds to the earlier ones.

found = spcacore.sparse_pca(A, 6, cardinality=3, deflation="generalized", kind="covariance")
print(f"generalized: {100 * found.explained_variance_ratio.sum():.1f} % explained")
plt.show()
