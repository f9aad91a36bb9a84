"""What errors say: numbers with their nouns, words of other packages, names that occur twice."""

import ast
import re
from functools import partial
from pathlib import Path

import calls
import numpy as np
import pytest

import spcacore

SOURCES = sorted(Path(spcacore.__file__).parent.rglob("*.py"))
X = calls.X0
PLURALS = {
    "cells", "classes", "columns", "components", "directions", "entries", "features", "iterations", "labels",
    "nodes", "numbers", "observations", "pairs", "pixels", "rows", "samples", "values", "variables",
}  # fmt: skip


def uncounted(source):
    """The numbers that are followed by a plural in the same string, whatever they are."""
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.JoinedStr):
            continue
        for number, text in zip(node.values, node.values[1:], strict=False):
            word = re.match(r" (\w+)", text.value) if isinstance(text, ast.Constant) else None
            constant = isinstance(number, ast.FormattedValue) and (
                isinstance(number.value, ast.Name) and number.value.id.isupper()
            )
            if isinstance(number, ast.FormattedValue) and word and word[1] in PLURALS and not constant:
                yield re.findall(r"\w+", ast.unparse(number.value))[-1], word[1]


MANY = {  # the last name of an expression that is never 1, or that is a list of numbers
    ("names", "columns"), ("n", "nodes"), ("n_iter", "nodes"), ("total", "entries"), ("labels", "samples"),
    ("8", "entries"), ("k", "variables"), ("p", "variables"), ("kept", "variables"), ("kinds", "classes"),
    ("first", "columns"), ("most", "variables"),
}  # fmt: skip


def test_numbers_agree_with_their_nouns():
    for path in SOURCES:
        assert not set(uncounted(path.read_text())) - MANY, path
    assert list(uncounted('f"{n} entries"')) == [("n", "entries")]
    assert not list(uncounted("f\"{counted(n, 'entry')} and {n} of {MOST} entries\""))


BOUND, PENALTY, RNG, ITERATIONS, TOL = (
    re.escape(word)
    for word in (
        "method=PMD(l1_bound=...)", "method=GPower(penalty=...)", "method=TPower(rng=...)",
        "method=TPower(max_iter=...)", "method=TPower(tol=...)",
    )
)  # fmt: skip
WORDS = {
    "alpha": f"{PENALTY} or cardinality", "para": f"{PENALTY} or cardinality",
    **dict.fromkeys(("k", "n_nonzero", "n_nonzero_coefs", "varnum", "keepX", "cardinalty"), "cardinality"),
    **dict.fromkeys(("sumabs", "sumabsv"), BOUND),
    "lambda_": PENALTY, "gamma": f"{PENALTY} or {BOUND}",
    **dict.fromkeys(("random_state", "seed"), RNG),
    **dict.fromkeys(("standardize", "scaling"), "scale"),
    **dict.fromkeys(("n_iter", "max_iters"), ITERATIONS), "n_pcs": "n_components", "verbose": "callback",
    "centre": "center", "positive": re.escape("choice=Choice(signs=...)"), "tolerance": TOL,
}  # fmt: skip
CALLERS = {
    "sparse_pca": lambda **o: spcacore.sparse_pca(X, 2, **o),
    "sparsity_path": lambda **o: spcacore.sparsity_path(X, partial(spcacore.sparse_pca, **o)),
    "select_sparsity": lambda **o: spcacore.select_sparsity(X, partial(spcacore.sparse_pca, **o)),
    "select_n_components": lambda **o: spcacore.select_n_components(
        X, partial(spcacore.sparse_pca, n_components=1, cardinality=2, **o), 3
    ),
}


@pytest.mark.parametrize("call", CALLERS.values(), ids=CALLERS)
def test_words_of_other_packages(call):
    for word, ours in WORDS.items():
        with pytest.raises(TypeError, match=rf"\b{word}\b.*; do you mean {ours}\?$"):
            call(**{word: 1})


@pytest.mark.parametrize("call", CALLERS.values(), ids=CALLERS)
@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"whiten": True}, r"whiten\b.*: divide the scores by the roots of explained_variance"),
        ({"copy": True}, r"copy\b.*: X is never changed"),
        ({"ridge_alpha": 0.1}, r"ridge_alpha\b.*: the function spca takes it, as ridge"),
        ({"relative": True}, r"relative.*; say method=GPower\(relative=\.\.\.\)$"),
        ({"time_limit": 1}, r"time_limit.*; say method=BranchAndBound\(time_limit=\.\.\.\)$"),
        ({"n_starts": 1}, r"n_starts.*; say method=TPower\(n_starts=\.\.\.\)$"),
        ({"include": [1]}, r"include.*; say choice=Choice\(include=\.\.\.\)$"),
        ({"nonnegative": True}, r"nonnegative.*; say choice=Choice\(signs=1\)$"),
        ({"explained": 0.9}, r"explained.*; say cardinality=Explained\(\.\.\.\)$"),
        ({"total_cardinality": 9}, r"total_cardinality.*; say cardinality=Total\(\.\.\.\)$"),
        ({"constraint": "orthogonal"}, "constraint.*; say deflation='orthogonal' or 'uncorrelated'$"),
        ({"objective": "least_squares"}, "objective.*; say method='least_squares'$"),
        ({"n_restarts": 3}, "n_restarts.*; say refine=the number of attempts$"),
        ({"penalty": 1}, r"penalty.*; say method=GPower\(penalty=\.\.\.\)$"),
        ({"l1_bound": 2}, r"l1_bound.*; say method=PMD\(l1_bound=\.\.\.\)$"),
        ({"l1_bound": 2, "method": "scotlass"}, r"l1_bound.*; say method=SCoTLASS\(l1_bound=\.\.\.\)$"),
        (
            {"n_starts": 2, "method": spcacore.PMD(l1_bound=2)},
            r"n_starts.*; say method=PMD\(n_starts=\.\.\.\)$",
        ),
    ],
)
def test_options_that_are_elsewhere(call, options, message):
    with pytest.raises(TypeError, match=message):
        call(**options)


class Columns:
    """The least that a dataframe is, with two columns of the same name."""

    columns = ["a", "b", "a", *"defghijklmnop"][: X.shape[1]]

    def __array__(self, dtype=None, copy=None):
        return np.asarray(X, dtype)


TWICE = "^several variables have the same name: 'a'; a name does not tell them apart$"


@pytest.mark.parametrize(
    "run",
    [
        lambda X: spcacore.sparse_pca(X, 2, cardinality=3),
        lambda X: spcacore.tpower(X, 3),
        lambda X: spcacore.spca(X, 2, cardinality=3),
        lambda X: spcacore.sca(X, 2),
        lambda X: spcacore.ppca(X, 2),
        lambda X: spcacore.sparse_lda(X, calls.LABELS, cardinality=2),
        lambda X: spcacore.sparse_kmeans(X, 2, 1.5, n_init=1),
    ],
)
def test_names_that_occur_twice_are_told_where_the_caller_stands(run):
    with pytest.warns(RuntimeWarning, match=TWICE) as told:
        assert run(Columns()).names.count("a") == 2
    assert [w.filename for w in told] == [__file__]


def test_names_of_row_blocks_that_occur_twice_are_told():
    with pytest.warns(RuntimeWarning, match=TWICE):
        spcacore.row_blocks(X, names=Columns.columns)
