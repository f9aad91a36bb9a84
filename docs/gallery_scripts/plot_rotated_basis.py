"""
A rotated basis: heat maps at three budgets
===========================================

What do loadings look like if the basis may be rotated before it is made sparse, and if it may not? Chen and
Rohe compare both at three bounds on the sum of the magnitudes of all loadings, γ = 24, 36 and 48.
"""

# %%
# The data are 100 samples of 100 variables. Sixteen loadings, with ten nonzeros each, and noise of a fifth of
# the variance.

import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import linear_sum_assignment
from sklearn.decomposition import FastICA

import spcacore

R = 16
rng = np.random.default_rng(0)
planted = np.zeros((100, R))
for y in planted.T:
    y[rng.choice(100, 10, replace=False)] = rng.standard_normal(10)
planted /= np.linalg.norm(planted, axis=0)
X = rng.standard_normal((100, R)) @ planted.T + 0.2 * rng.standard_normal((100, 100))

# %%
# ``sca`` rotates. The penalized matrix decomposition finds one component after another, in the basis of the
# singular vectors, with a sixteenth of the budget for each. Independent component analysis rotates as well,
# towards components that are far from normal; here its samples are the variables, so that the sources are
# loadings. It has no budget.


def deflation(budget):
    method = spcacore.PMD(budget / R, renormalize=False, n_starts=1)
    return spcacore.sparse_pca(X, R, method=method, deflation="naive")


def matched(V):
    """In the order of the planted loadings, with their signs, and how near they are."""
    cosines = planted.T @ (V / np.linalg.norm(V, axis=0))
    rows, columns = linear_sum_assignment(-abs(cosines))
    near = cosines[rows, columns]
    return V[:, columns] * np.sign(near), abs(near).mean()


independent = FastICA(R, whiten="unit-variance", max_iter=1000, tol=1e-3, random_state=0).fit_transform(X.T)
share = spcacore.explained_variance(X, independent, ratio=True).sum()
print(f"FastICA      : {100 * share:.1f} % explained, mean cosine {matched(independent)[1]:.2f}")
maps = {}
for budget in (24, 36, 48):
    for name, result in ("sca", spcacore.sca(X, R, l1_bound=budget)), ("deflation", deflation(budget)):
        share = spcacore.explained_variance(X, result.loadings, ratio=True).sum()
        maps[name, budget], near = matched(result.loadings)
        steps = np.sum(result.n_iter)
        print(f"{name:9} {budget}: {100 * share:.1f} % explained, mean cosine {near:.2f}, {steps} iterations")

# %%
# Rows are variables, columns are components, matched with those planted. As the budget grows, components by
# deflation change, because each has to repair what the earlier ones left, while ``sca`` only adds small
# loadings, and needs far fewer iterations for all sixteen components. Independent components are nearest to
# those planted, but they have no zeros.

fig, axes = plt.subplots(2, 3, figsize=(9, 8), layout="constrained", sharex=True, sharey=True)
for ax, ((name, budget), V) in zip(axes.T.ravel(), maps.items(), strict=True):
    image = ax.imshow(V, cmap="RdBu_r", vmin=-0.7, vmax=0.7, aspect="auto", interpolation="nearest")
    ax.set_title(f"{name}, γ = {budget}", fontsize="medium")
fig.supxlabel("component")
fig.supylabel("variable")
fig.colorbar(image, ax=axes, label="loading", shrink=0.5)
plt.show()
