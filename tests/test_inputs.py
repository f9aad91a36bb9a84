"""What each function takes, as docs/guide/inputs.md states it: with the same answer, or refused by name."""

import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from calls import ARGUMENTS, CALLS, numbers
from extras import optional
from scipy.sparse.linalg import aslinearoperator

import spcacore

PAGE = Path(__file__).parents[1] / "docs" / "guide" / "inputs.md"
from_array = optional("dask.array", "from_array")


def missing(a):
    a = a.copy()
    a[1] = np.nan
    return a


KINDS = {
    "sparse": sp.csr_array,
    "row blocks": lambda a: spcacore.row_blocks(a, block_bytes=a.nbytes // 3),
    "dask": lambda a: from_array(a, chunks=(max(1, len(a) // 3), 5)),
    "operator": aslinearoperator,
    "NaN": missing,
}
OWN = {  # take slices of the matrix, here or in calls.py
    "row_blocks", "sparse_cca", "sparse_cca_bound", "sparse_cca_permutation",
}  # fmt: skip
SMALL = {"loadings", "scores", "vector", "priors"}  # few numbers, which must be in memory
ENTRIES = {
    "deflate",
    "sparse_eigen",
    "sparse_eigen_bound",
    "sca",
    "sca_path",
}  # take no operator, however small
DRAWN = ("gap", "permutation")  # by other permutations for sparse matrices
MATRICES = [
    call
    for call in (*CALLS, *ARGUMENTS)
    if call.takes not in SMALL and not (call in CALLS and call.function in OWN)
]


def label(call):
    return call.name.replace(", covariance", "")


def table():
    """The answers of the page, by the name of the call."""
    rows = [
        [cell.strip() for cell in line.strip("|").split("|")]
        for line in PAGE.read_text(encoding="utf-8").split("## What blocks of rows cost")[0].splitlines()
        if line.startswith("| ") and not line.startswith("| ---")
    ]
    head = rows[0][1:]
    return {row[0].replace("`", ""): dict(zip(head, row[1:], strict=True)) for row in rows[1:]}


TABLE = table()


def stated(call):
    """Of the variant, or else of the function."""
    return TABLE.get(label(call)) or TABLE[call.function]


def test_every_line_of_the_table_is_checked():
    assert set(TABLE) == {label(c) if label(c) in TABLE else c.function for c in MATRICES}
    assert all(set(row) == {*KINDS, "covariance"} for row in TABLE.values())
    assert all(cell in ("yes", "no") for row in TABLE.values() for cell in row.values())


@pytest.mark.parametrize("call", MATRICES, ids=repr)
def test_the_covariance(call):
    others = {c.name for c in CALLS if c.takes == "covariance"}
    takes = call.takes == "covariance" or f"{call.name}, covariance" in others
    assert stated(call)["covariance"] == ("yes" if takes else "no")


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("call", MATRICES, ids=repr)
def test_taken_or_refused(call, kind):
    if kind == "NaN" and call.name.endswith(", covariance"):
        pytest.skip("of data alone")
    clean = call.clean()
    given = KINDS[kind](clean)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        formed = kind == "operator" and call.takes == "covariance" and call.function not in ENTRIES
        if stated(call)[kind] == "yes" or formed:
            same(call, kind, call.run(given), call.run(clean))
            return
        with pytest.raises((TypeError, ValueError)) as refused:
            call.run(given)
    words = str(refused.value)
    assert re.search(rf"\b{call.argument}\b|\boperator\b", words)
    assert re.search(r"need|must|offers|does not tell|impute or drop|pass its", words), words


def same(call, kind, result, expected):
    if kind in ("NaN", "operator") or any(word in call.name for word in DRAWN):
        return  # other models, other starts, other permutations
    result, expected = (
        {"": np.asarray(r)} if hasattr(r, "__array__") else numbers(r) for r in (result, expected)
    )
    for name, value in expected.items():
        if (
            name in result
            and value.dtype.kind == "f"
            and not re.search("^_|trace|path|gap|bound|screening|free_energy", name)
        ):
            np.testing.assert_allclose(result[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("kind", ["sparse", "row blocks", "dask", "operator"])
@pytest.mark.parametrize(
    "call", [c for c in (*CALLS, *ARGUMENTS) if c.takes in SMALL and c.clean().ndim == 2], ids=repr
)
def test_small_arrays_must_be_in_memory(call, kind):
    with pytest.raises(TypeError, match=rf"{call.argument} is .* where .* is needed"):
        call.run(KINDS[kind](call.clean()))
