"""
A questionnaire: four traits of voters
======================================

In 1996, 944 Americans told the National Election Study about themselves and about the candidates. Which
answers go together? Each sparse component is a trait: a few answers with a common theme.
"""

# %%
# Six answers are opinions: how liberal or conservative the voter is (1 to 7), and where the voter places
# Clinton and Dole on the same scale; the party; the vote; and how often the voter watches news on
# television. The others are age, education and income. The data are in the public domain and come with
# statsmodels. The answers have different scales, so we divide each by its standard deviation.

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
from statsmodels.datasets import anes96

import spcacore

questions = {
    "selfLR": "self: conservative",
    "ClinLR": "Clinton: conservative",
    "DoleLR": "Dole: conservative",
    "PID": "party: Republican",
    "vote": "vote for Dole",
    "TVnews": "watches news",
    "age": "age",
    "educ": "education",
    "income": "income",
}
answers = anes96.load_pandas().data[list(questions)].rename(columns=questions)
result = spcacore.sparse_pca(answers, 4, cardinality=[3, 2, 2, 2], support="disjoint", scale=True)
for name, loadings in result.to_frame().items():
    chosen = loadings[loadings != 0]
    print(f"{name}:", ", ".join(f"{answer} {value:+.2f}" for answer, value in chosen.items()))

# %%
# ``support="disjoint"`` puts each answer into one component at most. The first component is the political
# stance. The second is age: older voters watch more news. The third is education and income. The fourth is
# how far apart the voter sees the two candidates. Four ordinary components, each of all nine answers,
# explain only a little more.

ordinary = np.linalg.eigvalsh(answers.corr())[-4:].sum() / 9
print(f"sparse:   {100 * result.explained_variance_ratio.sum():.0f} % of the variance")
print(f"ordinary: {100 * ordinary:.0f} % of the variance")

fig, ax = plt.subplots(figsize=(6, 5), layout="constrained")
spcacore.plot.heatmap(result, order="given", ax=ax)

# %%
# Would other voters give the same first trait? ``stability`` fits the model to 50 random halves of the
# voters, and counts how often each answer is chosen.

model = partial(spcacore.sparse_pca, cardinality=3, scale=True)
again = spcacore.stability(answers, model, n_resamples=50, rng=0)
for answer, frequency in zip(answers.columns, again.selection_frequency[:, 0], strict=True):
    print(f"{answer:22} {100 * frequency:3.0f} %")
plt.show()
