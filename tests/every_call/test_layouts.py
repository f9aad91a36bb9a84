"""Every kind of good array in every call gives the numbers of a clean copy and stays as it was."""

import functools

import calls
import numpy as np
import pytest
from calls import ARGUMENTS, CALLS
from extras import skipping
from html_tools import Columns
from kinds import (
    DTYPES,
    GOOD,
    NO_ARRAYS,
    SPARSE,
    assert_same,
    ids,
    is_covariance,
    outcome,
    pa,
    pd,
    pl,
    reference,
    untouched,
)

pytestmark = pytest.mark.usefixtures("few_starts")

TAKES = [c for c in (*CALLS, *ARGUMENTS) if not c.name.startswith("sparse_cca") or c in ARGUMENTS]
SLICED = {
    "row_blocks"
}  # takes what has shape, dtype and slices; blocks are of bytes, so dtypes differ in them
PERMUTED = {
    "select_sparsity, permutation",
    "sparse_dissimilarity_gap",
    "sparse_kmeans_gap",
}  # of sparse data, other draws
LOOSE = {"scotlass": (3e-2, 1e-8), "pmd": (3e-2, 1e-8), "oppca": (1e-2, 1e-6)}  # their maxima are flat
VALUES = {  # kinds whose numbers an argument does not allow: then the error is that of the clean copy
    "sparse_lda, priors": {
        "int8", "int16", "int32", "int64", ">i8", "uint8", "uint16", "uint32", "uint64", "bool",
        "integer objects", "overlapping",
    },
    "sparse_eigen, B": {"bool"}, "sparse_eigen_bound, B": {"bool"}, "oppca, prior_covariance": {"bool"},
}  # fmt: skip


def applies(call, good):
    """Rules for leaving out a pair of a call and a kind."""
    if call.function in SLICED:
        return good[0] not in NO_ARRAYS
    return call.clean().ndim == 2 or good[0] != "matrix"  # of a line, np.matrix makes a table


@functools.cache
def expected(call, numbers, dtype, shape):
    return outcome(call.run, np.frombuffer(numbers, dtype).reshape(shape).copy())


def of_clean(call, a):
    return expected(call, a.tobytes(), a.dtype.str, a.shape)


def among(kinds, shares):
    """The kinds of some shares, each with its dtype."""
    return [(kind, dtype) for dtype, part in shares for kind in kinds[part::4]]


def each(check, call, pairs):
    """Check one kind of a dtype after another, and tell of all that fail."""
    failed = []
    for kind, dtype in pairs:
        try:
            with skipping():
                check(call, kind, np.dtype(dtype))
        except pytest.skip.Exception:
            continue
        except AssertionError as error:
            failed.append(f"{kind[0]}, {ids(dtype)}: {error}"[:300])
    assert not failed, "\n".join(failed)


def eighths(calls):
    """Each call in one of the two dtypes and for every fourth kind by default, in turn; the rest is slow."""
    for i, call in enumerate(calls):
        some, rest = [], []
        for d, dtype in enumerate(DTYPES):
            for part in range(4):
                (some if (d, part) == (i % 2, i // 2 % 4) else rest).append((dtype, part))
        yield pytest.param(call, some, id=repr(call))
        yield pytest.param(call, rest, id=f"{call}-rest", marks=pytest.mark.slow)


def same(call, out, a, exact):
    clean = of_clean(call, a)
    single, double = LOOSE.get(call.name, (1e-2, 1e-8))
    assert_same(out, clean, 0 if exact else single if a.dtype == np.float32 else double)
    return clean


def check_dense(call, good, dtype):
    name, make, exact = good
    X = make(call.clean(dtype))
    with untouched(X):
        out = outcome(call.run, X)
    clean = same(call, out, reference(X), exact and call.function not in SLICED)
    assert isinstance(clean[0], dict) or name in VALUES.get(call.name, ())


@pytest.mark.share(48)
@pytest.mark.parametrize(("call", "shares"), list(eighths(TAKES)))
def test_same_numbers_as_a_clean_copy(call, shares):
    each(check_dense, call, among([k for k in GOOD if applies(call, k)], shares))


def check_sparse(call, form, dtype):
    a = call.clean(dtype)
    if not is_covariance(a):
        a[np.abs(a) < 0.5] = 0
    X = form[1](a)
    a = np.rint(4 * a.astype(np.float64)) if form[0] == "int8" else a
    if form[0] == "longdouble":
        a = a.astype(np.float64)
    with untouched(X):
        out = outcome(call.run, X)
    assert isinstance(same(call, out, a, False)[0], dict)


@pytest.mark.share(32)
@pytest.mark.parametrize(
    ("call", "shares"),
    list(eighths([c for c in TAKES if c.sparse and c.clean().ndim == 2 and c.name not in PERMUTED])),
)
def test_sparse_equals_dense(call, shares):
    each(check_sparse, call, among(SPARSE, shares))


@pytest.mark.share(3)
@pytest.mark.parametrize("call", [c for c in TAKES if not c.sparse and c.clean().ndim == 2], ids=repr)
def test_sparse_is_refused_where_entries_are_needed(call):
    for _, make in SPARSE:
        X = make(call.clean())
        with untouched(X), pytest.raises(TypeError, match=rf"\b{call.argument} is a sparse"):
            call.run(X)


FRAMES = {
    "the least": Columns,
    "pandas": lambda a, names: pd.DataFrame(a, columns=names, index=names if is_covariance(a) else None),
    "polars": lambda a, names: pl.DataFrame(a, schema=names),
    "arrow": lambda a, names: pa.table(dict(zip(names, a.T, strict=True))),
}


@pytest.mark.share(4)
@pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)
def test_names_are_kept(frame):
    """By every function whose result has names."""
    names = ["alpha", "b$eta", "gamma_2", "δ", *(f"gene{j}" for j in range(4, calls.P))]
    for call in CALLS:
        a = call.clean()
        if a.shape[-1:] != (calls.P,) or a.ndim < 2 or call.function in SLICED or call not in TAKES:
            continue
        out = call.run(frame(a, names))
        if hasattr(out, "names") and call.function != "select_prior":  # whose names are those of priors
            assert out.names == tuple(names), call
            if frame is Columns:  # once for all of them
                assert call.run(a).names is None, call
