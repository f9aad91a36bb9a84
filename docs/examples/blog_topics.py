"""Topics of blogs: components of word counts name what political blogs write about.

Five thousand posts of political blogs of 2008, and how often each of 2632 word stems occurs in each. What
do they write about? Counts are replaced by log(1 + x), and each word is divided by its standard deviation,
so that rare words count as much as common ones. Each sparse component is twelve words that come together in
the same posts.

These are the words of the first eight components, as `--write` put them here, with the shares of the
variance.

<!-- topics -->
1. fanni freddi mae mac mortgag loan lender subprim lend borrow financi market (0.19 %)
2. iraqi basra sadr maliki militia almaliki baghdad iraq shiit armi troop forc (0.17 %)
3. tax economi billion econom invest pay cut afford dollar spend job cost (0.15 %)
4. detaine tortur interrog guantanamo detent techniqu bay prison cia abu method legal (0.15 %)
5. laden bin osama pakistan taliban afghanistan qaeda pakistani terrorist afghan terror alqaeda (0.15 %)
6. linktocommentspostcount postcounttb think thing like know digbi peopl right just way realli (0.15 %)
7. treasuri bailout bank homeown wall street crisi taxpay paulson rescu bail credit (0.15 %)
8. iran nuclear iranian weapon enrich ahmadinejad tehran sanction threat israel program missil (0.14 %)
<!-- end -->

No label, no list of stop words and no model of topics is used. The start matters: from the leading
eigenvector, where other programs begin, the first component ends at *america american countri prosper peopl
centuri* and the like, with a variance of 3.51. The words about mortgages have 5.08, since the default
starts from many columns of the covariance matrix.

In the picture: the words of each component by their loadings.

The data are poliblog5k of R's package stm, as a SciPy sparse matrix and a list of terms:

    python blog_topics.py --data poliblog5k_counts.npz --terms poliblog5k_terms.txt --write
"""

import argparse
import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy import sparse

import spcacore


@dataclass(frozen=True)
class Topics:
    """Words of each component, largest loading first, their loadings, and the share of the variance."""

    words: list
    loadings: list
    shares: np.ndarray


def data(counts, terms):
    """Logarithms of counts, and the words."""
    X = sparse.csr_array(sparse.load_npz(counts)).astype(float).log1p()
    return X, np.loadtxt(terms, dtype=str)


def analyze(X, terms, n_components=8, cardinality=12):
    result = spcacore.sparse_pca(X, n_components, cardinality=cardinality, scale=True)
    order = np.argsort(-np.abs(result.loadings), axis=0, kind="stable")[:cardinality].T
    return Topics(
        [terms[index].tolist() for index in order],
        [v[index] for v, index in zip(result.loadings.T, order, strict=True)],
        result.explained_variance_ratio,
    )


def text(topics):
    """A numbered list of the words."""
    return "\n".join(
        f"{t}. {' '.join(words)} ({100 * share:.2f} %)"
        for t, (words, share) in enumerate(zip(topics.words, topics.shares, strict=True), 1)
    )


def written(topics, source):
    """A script whose docstring has the words."""
    part = r"(?s)(<!-- topics -->\n).*?(<!-- end -->)"
    return re.sub(part, lambda m: f"{m[1]}{text(topics)}\n{m[2]}", source, count=1)


def picture(topics):
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5.6), layout="constrained")
    axes = figure.subplots(2, -(-len(topics.words) // 2), squeeze=False)
    for t, (ax, words, loadings) in enumerate(zip(axes.flat, topics.words, topics.loadings, strict=False), 1):
        ax.barh(words, loadings, color="#0072B2")
        ax.invert_yaxis()
        ax.set_title(f"component {t}", loc="left")
        ax.tick_params(labelsize=8, length=0)
        ax.set_xticks([])
        ax.spines[:].set_visible(False)
    return figure


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="counts, posts x words, a SciPy .npz")
    parser.add_argument("--terms", type=Path, required=True, help="the words, one a line")
    parser.add_argument("--write", action="store_true", help="put the words into the story of this script")
    options = parser.parse_args()
    topics = analyze(*data(options.data, options.terms))
    print(text(topics))
    script = Path(__file__)
    if options.write:
        script.write_text(written(topics, script.read_text(encoding="utf-8")), encoding="utf-8")
    picture(topics).savefig(script.with_suffix(".png"), dpi=90)


if __name__ == "__main__":
    main()
