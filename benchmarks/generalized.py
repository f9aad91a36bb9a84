"""Classification by few variables: shares of samples held out that `sparse_lda` classifies correctly.

python benchmarks/generalized.py --write: tables of docs/measured/generalized.md. Data and folds are those of
tests/generalized/test_lda.py, which needs pytest and scikit-learn.

python benchmarks/generalized.py --starts: how far the first direction and the first pair of real data are
below the best that forward searches from all variables, or the hundred best pairs, and exchanges find.
"""

import sys

import numpy as np
import pages
import real_sets
import scipy.sparse


def table(what, X, y, folds, counts, **options):
    from test_lda import accuracy

    shares = [accuracy(X, y, folds, cardinality=k, **options) for k in counts]
    return "\n".join(
        [
            *pages.head(what, *counts),
            "| classified correctly, % | " + " | ".join(f"{100 * share:.0f}" for share in shares) + " |",
        ]
    )


def from_all_starts():
    from default_searches import discriminant_short, pair_short
    from files import arrays
    from sklearn.datasets import load_breast_cancer, load_digits

    golub = arrays("golub_leukemia.npz")
    genes = np.log(np.maximum(golub["X"].astype(float), 20))
    genes = genes[:, np.argsort(-genes.var(axis=0), kind="stable")[:300]]
    pixels, digits = load_digits(return_X_y=True)
    pixels = pixels[:, pixels.std(axis=0) > 0]
    for name, X, y in (
        ("leukemia", genes, golub["labels"]), ("digits", pixels, digits),
        ("tumors", *load_breast_cancer(return_X_y=True)),
    ):  # fmt: skip
        for k in (5, 10, 20)[: 3 if X.shape[1] > 30 else 2]:
            print(f"sparse_lda, {name}, {k} variables: {discriminant_short(X, y, k):+.3f} %", flush=True)
    blogs = scipy.sparse.csc_array(real_sets.blogs())
    common = np.argsort(-np.diff(blogs.indptr), kind="stable")[:200]
    for name, X, ridge in (
        ("leukemia", genes[:, :200], 0.3), ("digits", pixels, 0.0), ("blogs", blogs[:, common].toarray(), 0.0)
    ):  # fmt: skip
        for k in (5, 10, 20)[: 3 if name == "blogs" else 2]:
            print(f"sparse_cca, {name}, {k} variables: {pair_short(X, k, ridge):+.3f} %", flush=True)


def main():
    if "--starts" in sys.argv:
        return from_all_starts()
    from sklearn.datasets import load_digits
    from test_lda import golub, wine

    digits = load_digits(return_X_y=True)
    texts = {
        "leukemia": table("genes", *golub(), 4, (1, 2, 5, 10, 20, 50), shrinkage="auto"),
        "wine": table("measurements a direction", *wine(), 5, (1, 2, 3, 4, 6, 13)),
        "digits": table(
            "pixels a direction", *digits, 3, (1, 2, 3, 4, 6, 10, 20, 64), shrinkage=0.01, swaps=False
        ),
    }
    for name, text in texts.items():
        print(text)
        if "--write" in sys.argv:
            pages.rewrite("measured/generalized.md", name, text)


if __name__ == "__main__":
    main()
