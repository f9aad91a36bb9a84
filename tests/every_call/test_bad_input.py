"""Every kind of bad array in every call is refused by the name of its argument, and stays as it was.

calls.py has the calls, bad_kinds.py the kinds; options are in test_options.py, good arrays in
test_layouts.py.
"""

import itertools
import re
import warnings

import calls
import numpy as np
import pytest
import scipy.sparse as sp
from bad_kinds import BAD, BROKEN, bad_cells
from every_call.test_inputs import MATRICES, stated
from every_call.test_layouts import SLICED, TAKES, among, each, eighths
from extras import optional
from in_turn import each_dtype, each_order, in_turn
from kinds import DTYPES, SPARSE, every_second, ids, is_covariance, read_only, unaligned, untouched
from numpy.testing import assert_array_equal
from oracles import largest_on, normal
from small import CLEAN, KINDS, MAKERS, P

import spcacore
from spcacore import deflate, sparse_pca, tpower
from spcacore._validation import refuse_not_finite

pytestmark = pytest.mark.usefixtures("few_starts")

pd = optional("pandas")
ONE_OR_SEVERAL = [f"{f}, loadings" for f in ("renormalize", "refine", "from_loadings")] + ["compare, results"]
USED = {
    "SparseLDAResult", "SparseCCAResult", "SparsePCAResult", "SPCAResult", "StructuredPCAResult",
    "RotatedResult", "GivenLoadings", *(name for name, _ in calls.COMPONENTS),
}  # fmt: skip
NOT_FINITE = re.compile(r"has \d+ entr(y that is|ies that are) NaN or infinite, the first at")


def takes_nan(call):
    """Whether the page says that NaN is a missing entry."""
    return call in MATRICES and stated(call)["NaN"] == "yes"


def allows_none(call):
    """A second argument that may be left out."""
    return call.other not in ("", "x", "Y", "B", "loadings") or call.function in ("RandomFeatures.kernel",)


def applies(call, kind):
    """Rules for leaving out a pair of a call and a kind."""
    if kind[0] == "None":
        return not allows_none(call) and call.function != "PPCAResult.posterior_covariance"
    if call.name in ONE_OR_SEVERAL and kind[0] == "one dimension less":
        return False  # one loading
    return call.other != "earlier" or kind[0] != "no columns"  # no earlier loadings


def check_refused(call, kind, dtype):
    name, make, error, message = kind
    X = make(call.clean(dtype))
    if call.function in SLICED:  # needs slices before it needs numbers, and takes the path of a file
        error, message = (TypeError, ValueError, FileNotFoundError), None
    if call.other == "start" and isinstance(X, str):  # a word that is unknown
        error, message = (TypeError, ValueError), "must be one of|is the string"
    if name == "operator, complex":
        error = (TypeError, ValueError)  # where entries are needed, an operator of any kind is wrong
    with untouched(X):
        try:
            call.run(X)
        except error as refusal:
            said = str(refusal)
        else:
            raise AssertionError("accepted")
    assert re.search(rf"\b{call.argument}\b", said), said
    assert message is None or "sparse" in said or re.search(message, said), said


@pytest.mark.share(8)
@pytest.mark.parametrize(("call", "shares"), list(eighths(TAKES)))
def test_refused(call, shares):
    each(check_refused, call, among([k for k in BAD if applies(call, k)], shares))


def check_finite(call, cells, dtype):
    """Refused, or not looked at: then nothing depends on it."""
    name, X = cells
    with untouched(X):
        try:
            out = call.run(X)
        except (TypeError, ValueError) as error:
            said = str(error)
            assert re.search(rf"\b{call.argument}\b", said), said
            if isinstance(error, TypeError):
                assert call.function in SLICED, said
                assert "dtype" in said, said
                return
            assert NOT_FINITE.search(said) or takes_nan(call), said
            return
    if name.startswith("nan") and takes_nan(call):
        assert not any(np.isnan(v).any() for v in calls.numbers(out).values())
        return
    assert call.function.split(".")[0] in USED, "accepted"
    for value, clean in zip(
        calls.numbers(out).values(), calls.numbers(call.run(call.clean(dtype))).values(), strict=True
    ):
        assert_array_equal(value, clean)


@pytest.mark.share(12)
@pytest.mark.parametrize(("call", "dtype"), in_turn(TAKES, DTYPES[::-1]))
def test_not_finite(call, dtype):
    each(check_finite, call, [(k, dtype) for k in bad_cells(call.clean(dtype))])


TAKE_SPARSE = [c for c in TAKES if c.sparse and c.clean().ndim == 2]


def check_broken(call, kind, dtype):
    X = kind[1](call.clean(dtype))
    with untouched(X), pytest.raises(ValueError, match=rf"\b{call.argument} is a corrupt sparse matrix"):
        call.run(X)


@pytest.mark.share(12)
@pytest.mark.parametrize(("call", "dtype"), in_turn(TAKE_SPARSE, DTYPES[::-1]))
def test_broken_structure_is_refused_before_it_is_followed(call, dtype):
    each(check_broken, call, [(k, dtype) for k in BROKEN])


def check_sparse_not_finite(call, kind, dtype):
    a = call.clean(dtype)
    a[1, 1] = np.nan
    with np.errstate(invalid="ignore"):
        X = kind[1](a)
    with untouched(X), pytest.raises(ValueError, match=NOT_FINITE) as info:
        call.run(X)
    assert re.search(rf"\b{call.argument}\b", str(info.value))


@pytest.mark.share(24)
@pytest.mark.parametrize(("call", "dtype"), in_turn(TAKE_SPARSE, DTYPES[::-1]))
def test_sparse_not_finite(call, dtype):
    each(check_sparse_not_finite, call, [(k, dtype) for k in SPARSE if k[0] != "int8"])


# ---- what has no answer, or hardly one ------------------------------------------------------------------


def whole_numbers(dtype):
    """Of as many bits as a double has and more, odd and with zeros at the end; both ends of the range."""
    rng, wide = np.random.default_rng(5), 64 - (dtype is np.int64)
    odd = [int(rng.integers(2**50)) << bits - 51 | 1 << bits - 1 | 1 for bits in range(51, wide + 1)]
    ends = [2**53 - 1, 2**53, 2**53 + 1, 2**54 - 2, 2**wide - 1, 2**wide - 2**11]
    some = [one >> zeros << zeros for one in odd for zeros in (0, 5, 9)] + ends
    return some if dtype is np.uint64 else [*some, *(-one for one in some), -(2**63)]


@pytest.mark.parametrize("dtype", [np.int64, np.uint64])
def test_integers_that_a_double_would_round(dtype):
    """Python compares integers with doubles exactly."""
    forms = itertools.cycle(
        [
            lambda X: X,
            lambda X: X.astype(object),
            lambda X: X.astype(X.dtype.newbyteorder()),
            sp.coo_array,
            lambda X: spcacore.row_blocks(X, block_bytes=16),
        ]
    )
    for one, form in zip(whole_numbers(dtype), forms, strict=False):
        X = form(np.array([[0, 1], [one, 0], [3, 4]], dtype))
        if one == float(one):
            spcacore.explained_variance(X, np.eye(2))
            continue
        with pytest.raises(ValueError, match=rf"\bX(\.data)? has 1 integer beyond 2\*\*53 .* {one} at"):
            spcacore.explained_variance(X, np.eye(2))


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("index", [-1, 10**6])
def test_a_single_entry_outside_of_a_sparse_matrix(axis, index):
    X = sp.coo_array(([1.0], ([1], [2])), shape=(6, 5))
    X.coords = tuple(np.array([index]) if i == axis else c for i, c in enumerate(X.coords))
    with pytest.raises(ValueError, match="corrupt"):
        spcacore.tpower(X, 2)


def test_rows_of_millions_of_entries_are_looked_through():
    """More than a row at a time is looked at, but never less than one."""
    a = np.zeros((2, (1 << 22) + 3), np.float32)
    refuse_not_finite(a, "a")
    a[1, -1] = np.nan
    with pytest.raises(
        ValueError, match=r"a has 1 entry that is NaN or infinite, the first at \(1, 4194306\)"
    ):
        refuse_not_finite(a, "a")


def replaced(a, index, value):
    a = a.copy()
    a[index] = value
    return a


def degenerate(a):
    """Of the smallest shapes, without variance, of low rank, at the ends of the number range."""
    yield "one entry", a[(slice(1),) * a.ndim]
    yield "constant", np.full_like(a, 3)
    yield "zero", np.zeros_like(a)
    single = a.dtype == np.float32
    for c in (1e30, 1e-30, 1e-38, 1e-43) if single else (1e300, 1e160, 1e-160, 1e-300, 1e-310):
        with np.errstate(all="ignore"):
            yield f"times {c}", a * a.dtype.type(c)
    if is_covariance(a):
        yield "indefinite", a - a.dtype.type(2 * np.trace(a) / len(a)) * np.eye(len(a), dtype=a.dtype)
        yield "diagonal", np.eye(len(a), dtype=a.dtype)
        yield "asymmetric", replaced(a, (0, 1), a.max())
        yield "not square", a[:-1]
    elif a.ndim == 2:
        yield "one row", a[:1]
        yield "two rows", a[:2]
        yield "one column", a[:, :1]
        yield "equal rows", np.repeat(a[:1], len(a), axis=0)
        yield "broadcast rows", np.broadcast_to(a[:1], a.shape)
        yield "constant column", replaced(a, (slice(None), 1), 7)
        yield "twice the same column", replaced(a, (slice(None), 1), a[:, 0])
        yield "broadcast columns", np.broadcast_to(a[:, :1], a.shape)
        yield "rank one", a[:, :1] @ a[:1]
        ends = np.ones(a.shape[1], a.dtype)
        ends[:2] = (1e30, 1e-30) if single else (1e300, 1e-300)
        yield "large and small columns", a * ends


REFUSED = {"asymmetric": "symmetric", "not square": "square|shape"}


def check_degenerate(call, kind, dtype):
    name, X = kind
    with warnings.catch_warnings(record=True) as told, untouched(X):
        warnings.simplefilter("always")
        try:
            out, said = calls.numbers(call.run(X)), "accepted"
        except (TypeError, ValueError) as error:
            out, said = {}, str(error)
    assert not [n for n, v in out.items() if np.isnan(v).any()]
    assert re.search(REFUSED.get(name, ""), said), said
    for w in told:  # the library's own words, and never those of numpy
        assert w.category is RuntimeWarning or "scale=True leaves" in str(w.message), w.message
        assert not re.search("encountered|Mean of empty|Degrees of freedom", str(w.message)), w.message


@pytest.mark.share(32)
@pytest.mark.parametrize(("call", "dtype"), in_turn(TAKES, DTYPES[::-1]))
def test_degenerate_input_has_an_answer_or_a_clear_error(call, dtype):
    each(check_degenerate, call, [(k, dtype) for k in degenerate(call.clean(dtype))])


# ---- refused at some place, in some call ---------------------------------------------------------------


def with_value(a, value, *cells):
    a = a.astype(np.float64)
    for cell in cells:
        a[cell] = value
    return a


def test_not_finite_past_the_first_tiles():
    """Positions far from the start, in both orders, by the streaming pass."""
    X = normal(0, 300, 700)
    for i, j in ((299, 699), (64, 256), (150, 511)):
        Y = X.copy()
        Y[i, j] = np.inf
        for Z in (Y, np.asfortranarray(Y), Y[:, ::-1], Y.astype(np.float32)):
            at = (i, 699 - j) if Z.strides[1] < 0 else (i, j)
            with pytest.raises(ValueError, match=re.escape(f"the first at {at}")):
                tpower(Z, 3)


@pytest.mark.parametrize(
    "call", [c for c in calls.ARGUMENTS if c.clean().ndim == 2 and "half" not in c.takes], ids=repr
)
def test_wrong_number_of_columns(call):
    """Of what goes with other data: one column less, or one row of loadings."""
    a = call.clean()
    X = a[:-1] if call.takes == "loadings" else a[:, :-1]
    with untouched(X), pytest.raises(ValueError, match=r"rows|entries|shape|column|samples|came from"):
        call.run(X)


# ---- matrices that are no covariance --------------------------------------------------------------------


@pytest.mark.share(4)
@pytest.mark.parametrize("call", [c for c in calls.CALLS if c.takes == "covariance"], ids=repr)
def test_what_is_no_covariance_in_any_storage(call):
    """Not square, or not symmetric by more than rounding, at any scale; NaN in one triangle."""
    A = call.clean()
    rounded = A * (1 + 1e-13 * np.triu(np.ones(A.shape), 1))
    for make in (np.asfortranarray, *((sp.csr_array, sp.csc_array) if call.sparse else ())):
        for scale in (1.0, 1e-30, 1e30):
            X = make(replaced(A, (0, 1), 1.5 * A.max()) * scale)
            with untouched(X), pytest.raises(ValueError, match="symmetric"):
                call.run(X)
        with pytest.raises(ValueError, match=r"square|shape"):
            call.run(make(A[:-1]))
        call.run(make(rounded))
    for i, j in ((4, 1), (1, 4)):
        with pytest.raises(ValueError, match=rf"1 entry.*\({i}, {j}\)"):
            call.run(replaced(A, (i, j), np.nan))


@each_dtype
@pytest.mark.parametrize("make", MAKERS, ids=ids)
def test_indefinite_covariance(make, dtype):
    """sparse_pca refuses it; tpower, a single step of which Hotelling deflation is the next, does not."""
    negative = np.diag([3.0, 2, 1, -1])
    minor = np.array([[1.0, 5, 0, 0], [5, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    hollow = np.ones((4, 4)) - np.eye(4)
    for A in (negative, minor, hollow):
        B = make[1](A.astype(dtype))
        with untouched(B), pytest.raises(ValueError, match="semidefinite"):
            sparse_pca(B, 2, cardinality=2, kind="covariance")
        x = tpower(B, 2, kind="covariance")
        assert x.value == pytest.approx(
            max(largest_on(A, s) for s in itertools.combinations(range(4), 2)),
            rel=1e-5,
        )
    beyond_minors = 0.4 * np.eye(4) + 0.6 * np.ones((4, 4))
    beyond_minors[0, 1] = beyond_minors[1, 0] = -0.6
    assert np.linalg.eigvalsh(beyond_minors)[0] < -0.1
    with pytest.raises(ValueError, match="semidefinite"):
        sparse_pca(make[1](beyond_minors.astype(dtype)), 2, cardinality=2, kind="covariance")
    slightly = CLEAN["covariance"] - 1e-10 * np.eye(P)
    slightly[:, 0] = slightly[0] = 0
    assert sparse_pca(make[1](slightly), 2, cardinality=2, kind="covariance").n_components == 2


@pytest.mark.parametrize("form", [np.ascontiguousarray, sp.csr_array])
def test_covariance_too_large_for_a_factorization(form):
    """There the 2 x 2 minors alone tell."""
    A = np.diag(np.linspace(2, 1, 1600))
    A[0, 1] = A[1, 0] = 1
    out = sparse_pca(form(A), 1, cardinality=2, kind="covariance", method=spcacore.TPower(n_starts=1))
    assert np.flatnonzero(out.loadings).tolist() == [0, 1]
    A[0, 1] = A[1, 0] = 3
    with pytest.raises(ValueError, match="semidefinite"):
        sparse_pca(form(A), 1, cardinality=2, kind="covariance")


def test_correlation_of_a_negative_variance():
    with pytest.raises(ValueError, match="scale"):
        tpower(np.diag([3.0, 2, -1]), 2, kind="covariance", scale=True)
    with pytest.raises(ValueError, match="scale"):
        tpower(sp.csr_array(np.diag([3.0, 2, 1])) * np.array([1, 1, -1.0]), 2, kind="covariance", scale=True)


# ---- working in place -----------------------------------------------------------------------------------


@each_dtype
@pytest.mark.parametrize("kind", KINDS)
@each_order
def test_overwrite_touches_nothing_when_it_fails(order, kind, dtype):
    good = CLEAN[kind].astype(dtype, order=order)
    for A, x, options in (
        (good, np.zeros(P), {}),
        (good, np.full(P, np.nan), {}),
        (good, np.ones(P - 1), {}),
        (with_value(good, np.nan, (1, 1)).astype(dtype, order=order), np.ones(P), {}),
        (good, np.ones(P), {"method": "nothing"}),
        (good, np.ones(P), {"earlier": np.ones((P, 1))}),
        (good, np.ones(P), {"method": "orthogonalized_projection", "earlier": np.ones((P + 1, 1))}),
    ):
        with untouched(A), pytest.raises(ValueError):
            deflate(A, x, kind=kind, overwrite=True, **options)
    for A in (
        read_only(good), every_second(good), unaligned(good), good.astype(good.dtype.newbyteorder(">")),
        good.astype(np.float16), good.astype(int), np.broadcast_to(good[:1] * 0, good.shape),
    ):  # fmt: skip
        with untouched(A), pytest.raises(ValueError, match="overwrite=True needs A"):
            deflate(A, np.ones(P), kind=kind, overwrite=True)
    with pytest.raises(ValueError, match="overwrite=True needs A"):
        deflate(good.tolist(), np.ones(P), kind=kind, overwrite=True)


def test_overwrite_does_not_touch_a_frame():
    frame = pd.DataFrame(CLEAN["covariance"])
    with untouched(frame), pytest.raises(ValueError, match="overwrite=True needs A"):
        deflate(frame, np.ones(P), overwrite=True)


@pytest.mark.parametrize("method", ["hotelling", "projection", "schur"])
def test_overwrite_with_a_direction_inside_of_the_matrix(method):
    A = CLEAN["covariance"].copy()
    expected = deflate(A, A[0].copy(), method)
    out = deflate(A, A[0], method, overwrite=True)
    assert out is A
    assert_array_equal(out, expected)
