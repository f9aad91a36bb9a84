"""
Gene expression: cell division and estrogen in breast tumors
============================================================

Which genes go together in tumors, and what do they tell about a tumor? The data are the expression of 76
genes in 198 breast tumors (Desmedt et al. 2007, GEO accession GSE7390).
"""

# %%
# The table comes with scikit-survival. Its columns are probes of a microarray, as logarithms, and what
# doctors knew of the patient, which we leave aside. We ask for two components of six probes. Division by
# standard deviations (``scale=True``) gives all genes the same weight.

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from sksurv.datasets import load_breast_cancer

import spcacore

patients = load_breast_cancer()[0]
expression = patients.filter(regex="_at$")
result = spcacore.sparse_pca(expression, 2, cardinality=6, scale=True)
print(result.summary(n_variables=6))

# %%
# The probes of the first component belong to genes of cell division, among them SMC4 (201663, 201664),
# CCNE2 (205034) and CENPU (218883). So its score should be larger in tumors that grow fast. Pathologists
# judge that by the grade of a tumor, from well to poorly differentiated.

scores = np.asarray(result.transform(expression))
for grade in ("well", "intermediate", "poorly"):
    of_grade = patients["grade"].str.startswith(grade)
    print(f"{grade:13} {of_grade.sum():3} tumors, mean score of division {scores[of_grade, 0].mean():5.2f}")

# %%
# The second component has two probes of DUSP4 (204014, 204015) against genes of cell division. Most tumors
# with receptors for estrogen, which decide about treatment, have a positive score, and most of the others a
# negative one. Neither grades nor receptors were used to find the components.

receptor = np.where(patients["er"] == "positive", "estrogen receptor", "no estrogen receptor")
for kind in np.unique(receptor):
    print(f"{kind}: {100 * np.mean(scores[receptor == kind, 1] > 0):.0f} % have a positive second score")
fig, ax = plt.subplots(figsize=(7, 5), layout="constrained")
spcacore.plot.biplot(result, expression, labels=receptor, n_variables=6, ax=ax)

# %%
# How sure are the genes? ``stability`` repeats the search in 100 random halves of the patients, and counts
# how often each probe is chosen.

model = partial(spcacore.sparse_pca, n_components=2, cardinality=6, scale=True)
again = spcacore.stability(expression, model, rng=0)
for t in range(2):
    order = np.argsort(-again.selection_frequency[:, t])[:6]
    chosen = (f"{expression.columns[j]} {100 * again.selection_frequency[j, t]:.0f} %" for j in order)
    print(f"component {t + 1}:", ", ".join(chosen))
plt.show()
