"""
Single cells: a few genes for each kind of cell
===============================================

A droplet with one blood cell gives the expression of many genes. Each sparse component names a few genes
that vary together, and those genes say which kind of cell the component stands for. No label is used to find
them.
"""

# %%
# The data are 700 blood cells and 250 genes, and come with the package. A data frame brings the names of
# the genes. We ask for four components of ten genes each.

import matplotlib.pyplot as plt
import pandas as pd

import spcacore

cells = spcacore.datasets.load_blood_cells()
genes = pd.DataFrame(cells.data.toarray(), columns=cells.names)
result = spcacore.sparse_pca(genes, 4, cardinality=10)
print(result.summary())

# %%
# Bars show the same loadings.

fig, axes = plt.subplots(2, 2, figsize=(9, 7), layout="constrained")
for component, ax in enumerate(axes.flat):
    spcacore.plot.bars(result, component, ax=ax)

# %%
# The labels that experts gave to the cells were not used. They show that the first two components separate
# monocytes from lymphocytes.

kinds = [kind if kind in ("CD14+ Monocyte", "CD19+ B", "CD56+ NK") else "other" for kind in cells.samples]
fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
spcacore.plot.biplot(result, genes, labels=kinds, n_variables=6, ax=ax)
plt.show()
