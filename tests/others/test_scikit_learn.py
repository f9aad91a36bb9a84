"""scikit-learn's tests of its `SparsePCA`, as it ships them, asked of our `SPCA` under its words.

What differs on purpose: an orthonormal basis has no more components than variables, and nothing is returned
before the first step. `method` (lars or cd) has no counterpart, and `MiniBatchSparsePCA` is not asked.
"""

import inspect

import pytest

pytest.importorskip("sklearn", reason="needs scikit-learn")
from sklearn.decomposition.tests import test_sparse_pca as theirs

from spcacore.sklearn import SPCA as OURS

DIFFERENCES = {
    "correct_shapes": r"n_components must be in \[1, 10\], not 13",
    "initialization": "max_iter must be at least 1, not 0",
}
OTHERS = ("mini_batch_correct_shapes", "spca_early_stopping")


def SPCA(n_components=None, alpha=1, ridge_alpha=0.01, max_iter=1000, **_):
    return OURS(n_components, penalty=alpha, ridge=ridge_alpha, max_iter=max_iter)


def calls():
    """Each of their tests, with the values that it asks for."""
    for name, test in vars(theirs).items():
        if name.startswith("test_") and name[5:] not in OTHERS:
            rows = [{}]
            for mark in getattr(test, "pytestmark", ()):
                if mark.name == "parametrize" and mark.args[0] != "SPCA":
                    names = mark.args[0].split(", ")
                    pairs = [zip(names, v if len(names) > 1 else [v], strict=True) for v in mark.args[1]]
                    rows = [row | dict(pair) for pair in map(list, pairs) for row in rows]
            known = {"SPCA": SPCA, "global_random_seed": 42}
            more = {name: known[name] for name in inspect.signature(test).parameters if name in known}
            yield from (pytest.param(name[5:], row | more, id=name[5:]) for row in rows)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "values"), [*calls()])
def test_sparse_pca(name, values, monkeypatch):
    monkeypatch.setattr(theirs, "SparsePCA", SPCA)
    test = getattr(theirs, f"test_{name}")
    if name in DIFFERENCES:
        with pytest.raises(ValueError, match=DIFFERENCES[name]):
            test(**values)
    else:
        test(**values)


def test_all_of_them_are_known():
    assert {call.values[0] for call in calls()} >= set(DIFFERENCES)
    assert all(hasattr(theirs, f"test_{name}") for name in OTHERS)
