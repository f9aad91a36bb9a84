"""
Text: words that go together
============================

Each help page of Python is a row of word counts. A sparse component is a short list of words that are used
on the same pages: a topic.
"""

# %%
# The matrix is sparse, and it stays sparse: means are subtracted implicitly.

from functools import partial

import matplotlib.pyplot as plt
import numpy as np

import spcacore

pages = spcacore.datasets.load_help_topics()
result = spcacore.sparse_pca(pages.data, 4, cardinality=8)
scores = result.transform(pages.data)
for t, loading in enumerate(result.loadings.T):
    words = [pages.names[j] for j in np.argsort(-abs(loading))[:8]]
    page = pages.samples[np.argmax(abs(scores[:, t]))]
    print(f"topic {t + 1}: {', '.join(words)} (page: {page})")

# %%
# How many words should a topic have? A path tries several numbers, and shows what each one costs.

model = partial(spcacore.sparse_pca, n_components=2)
path = spcacore.sparsity_path(pages.data, model, [2, 4, 8, 16, 32, 64])
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
spcacore.plot.path(path, ax=ax)
plt.show()
