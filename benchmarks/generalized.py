"""Classification by few variables: shares of samples held out that `sparse_lda` classifies correctly.

python benchmarks/generalized.py --write: tables of docs/measured/generalized.md. Data and folds are those of
tests/generalized/test_lda.py, which needs pytest and scikit-learn.
"""

import sys

import pages


def table(what, X, y, folds, counts, **options):
    from test_lda import accuracy

    shares = [accuracy(X, y, folds, cardinality=k, **options) for k in counts]
    return "\n".join(
        [
            *pages.head(what, *counts),
            "| classified correctly, % | " + " | ".join(f"{100 * share:.0f}" for share in shares) + " |",
        ]
    )


def main():
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
