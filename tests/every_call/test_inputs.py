"""What each function takes, as docs/developer/inputs.md says: with the same answer, or refused by name."""

import functools
import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from calls import ARGUMENTS, CALLS, CLEAN, answer, numbers
from extras import optional
from numpy.testing import assert_allclose
from oracles import normal
from scipy.sparse.linalg import aslinearoperator

import spcacore

pytestmark = pytest.mark.usefixtures("few_starts")

PAGE = Path(__file__).parents[2] / "docs" / "developer" / "inputs.md"
from_array = optional("dask.array", "from_array")


def missing(a):
    a = a.copy()
    a[1] = np.nan
    return a


KINDS = {
    "sparse": sp.csr_array,
    "row blocks": lambda a: spcacore.row_blocks(a, block_bytes=a.nbytes // 3),
    "store": lambda a: optional("zarr").array(a, chunks=(max(1, len(a) // 3), a.shape[1])),
    "matrices": lambda a: [a[: len(a) // 3], a[len(a) // 3 :]],
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
}  # take no operator, however small
DRAWN = ("gap", "permutation")  # by other permutations for sparse matrices
MATRICES = [
    call
    for call in (*CALLS, *ARGUMENTS)
    if call.takes not in SMALL and not (call in CALLS and call.function in OWN)
]


READ = (
    "deflate",
    "sparse_eigen",
    "oppca, prior",
    "PPCAResult.impute",
)  # read a store whole
COLUMN = {"store": "row blocks", "matrices": "row blocks"}  # of the table, where it is not the kind itself


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
    assert all(set(row) == {*KINDS, "covariance"} - set(COLUMN) for row in TABLE.values())
    assert all(cell in ("yes", "no") for row in TABLE.values() for cell in row.values())


@pytest.mark.parametrize("call", MATRICES, ids=repr)
def test_the_covariance(call):
    others = {c.name for c in CALLS if c.takes == "covariance"}
    takes = call.takes == "covariance" or f"{call.name}, covariance" in others
    assert stated(call)["covariance"] == ("yes" if takes else "no")


@pytest.mark.share(24)
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
        formed |= kind == "store" and call.name.startswith(READ)
        if stated(call)[COLUMN.get(kind, kind)] == "yes" or formed:
            same(call, kind, call.run(given), answer(call))
            return
        with pytest.raises((TypeError, ValueError)) as refused:
            call.run(given)
    words = str(refused.value)
    assert re.search(rf"\b{call.argument}\b|\boperator\b", words)
    assert re.search(r"need|must|offers|does not tell|replace or drop|pass its", words), words


OTHER_STARTS = {"sparse_pca, uncorrelated", "SparsePCAResult.extend"}  # from products alone
FLAT = {
    "scotlass": 1e-3,
    "pmd": 1e-4,
    "oppca": 1e-7,
    "sparse_cca": 1e-8,
}  # maxima, near which rounding ends the iteration


def same(call, kind, result, expected):
    if kind == "NaN" or any(word in call.name for word in DRAWN):
        return  # other models, other permutations
    if kind == "operator" and call.name in OTHER_STARTS:
        return
    result, expected = (
        {"": np.asarray(r)} if hasattr(r, "__array__") else numbers(r) for r in (result, expected)
    )
    for name, value in expected.items():
        if (
            name in result
            and value.dtype.kind == "f"
            and not re.search("^_|trace|path|gap|bound|screening|free_energy", name)
        ):
            atol = FLAT.get(call.function, 1e-9) * np.abs(value).max(initial=0)
            assert_allclose(result[name], value, rtol=0, atol=atol, err_msg=name)


@pytest.mark.share(4)
@pytest.mark.parametrize("kind", ["sparse", "row blocks", "dask", "operator"])
@pytest.mark.parametrize(
    "call", [c for c in (*CALLS, *ARGUMENTS) if c.takes in SMALL and c.clean().ndim == 2], ids=repr
)
def test_small_arrays_must_be_in_memory(call, kind):
    with pytest.raises(TypeError, match=rf"{call.argument} is .* where .* is needed"):
        call.run(KINDS[kind](call.clean()))


def takes_kind(call):
    owner = spcacore
    for part in call.function.split("."):
        owner = getattr(owner, part)
    kind = inspect.signature(owner).parameters.get("kind")
    return kind is not None and kind.default in ("data", None)


BY_KIND = [
    call for call in CALLS if call.takes == "data" and hasattr(spcacore, call.function) and takes_kind(call)
]
SYMMETRIC = "X is symmetric, as a covariance or correlation matrix is, and is taken as 12 samples"


def told(run, X):
    """Whether a call says that its data look like a covariance."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run(X)
    return any(w.category is UserWarning and str(w.message).startswith(SYMMETRIC) for w in caught)


@pytest.mark.share(4)
@pytest.mark.parametrize("call", BY_KIND, ids=repr)
def test_a_covariance_without_its_kind_is_told(call):
    X = call.clean()
    assert told(call.run, np.corrcoef(X.T))
    assert not told(call.run, X[:12])


@pytest.mark.parametrize("storage", ["dense", "frame", "sparse", "row blocks", "single"])
def test_what_looks_like_a_covariance(storage):
    """Symmetric, and with no entry beyond what the diagonal allows: an adjacency or a distance is data."""
    make = {**KINDS, "dense": np.asarray, "single": np.float32, "frame": optional("pandas", "DataFrame")}[
        storage
    ]
    run = functools.partial(spcacore.sparse_pca, n_components=1, cardinality=2)
    X = normal(0, 20, 12)
    C = np.corrcoef(X.T)
    adjacency = (np.abs(C) > 0.1) - np.eye(12)
    turned = C.copy()
    turned[3, 4] += 0.01
    for matrix, expected in (
        (C, True), (np.cov(X.T) * 1e-9, True), (X.T @ X, True), (adjacency, False), (turned, False),
        (X[:12], False), (-C, False),
    ):  # fmt: skip
        assert told(run, make(matrix)) == expected
    assert not told(functools.partial(run, kind="covariance"), make(C))


def scaled(call):
    """Whether it may divide the variables, and does not yet."""
    owner = getattr(spcacore, call.function, None)
    return call in BY_KIND and "scale" in inspect.signature(owner).parameters and "scale" not in call.name


@pytest.mark.share(8)
@pytest.mark.parametrize("call", [call for call in CALLS if scaled(call)], ids=repr)
def test_a_constant_column_is_not_divided(call):
    X = CLEAN["data"].copy()
    X[:, 4] = 7
    deviation = X.std(axis=0, ddof=1)
    deviation[4] = 1
    frame = optional("pandas", "DataFrame")(X, columns=[f"v{j}" for j in range(12)])
    with pytest.warns(UserWarning, match="scale=True leaves 1 constant column undivided: 'v4'"):
        found = call.run(frame, scale=True)
    for name in ("loadings", "loading", "explained_variance", "upper_bound", ""):
        if name in numbers(found):
            expected = numbers(call.run(X / deviation))[name]
            assert_allclose(numbers(found)[name], expected, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize(
    "call",
    [
        lambda X: spcacore.sparse_pca(X, 2, 3),
        lambda X: spcacore.sparse_pca(X, 2, center=False, method=spcacore.PMD(l1_bound=1.5)),
        lambda X: spcacore.spca(X, 2, 3, scale=True),
        lambda X: spcacore.sca(X, 2),
    ],
)
def test_missing_entries_are_counted_and_rows_with_them_transformed(call):
    X = missing(CLEAN["data"])
    X[3, 4] = np.nan
    result = call(X)
    assert result.missing_entries == 13
    assert "13 missing entries" in repr(result)
    assert "13 missing entries" in result.summary().splitlines()[0]
    assert_allclose(result.transform(X), result.scores, atol=1e-10)
    mean = 0 if result.mean is None else result.mean
    filled = np.where(np.isnan(X), mean, X)
    assert_allclose(result.transform(X), result.transform(filled), atol=1e-10)
    with pytest.raises(ValueError, match=r"1 entry that is NaN .*'tpower', 'pmd'.* ppca"):
        call(filled).transform(X[3:4])
