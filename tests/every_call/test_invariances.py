"""Units, order and layout of what comes in: every call of the table on data of another scale or order.

A call that begins to fail here depends on something that its mathematics does not.
"""

import functools
import re
import warnings

import calls
import numpy as np
import pytest
import scipy.sparse as sp
from calls import CALLS, CLEAN, K, N, P, R, answer, numbers
from in_turn import in_turn
from laws import LAWS
from numpy.testing import assert_allclose, assert_array_equal

import spcacore
from spcacore import (
    branch_and_bound,
    compare,
    deflate,
    explained_variance,
    from_loadings,
    refine,
    renormalize,
    soft_threshold,
    sparse_eigen,
    sparse_eigen_bound,
    sparse_lda,
    sparse_pca,
    spca,
    tpower,
)
from spcacore.models.priors import _symmetric

pytestmark = pytest.mark.usefixtures("few_starts")

DTYPES = [np.float64, np.float32]
ids = {"ids": lambda v: getattr(v, "__name__", None) or repr(v)}
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-4}

COUNTED = ("n_iter", "n_starts", "n_ends", "n_best")  # on the way to the result


@functools.cache
def clean_numbers(call, dtype):
    return numbers(answer(call, dtype))


def quietly(run, *args):
    """The numbers of a call that may say, and say nothing else than, that variances are out of range."""
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        out = numbers(run(*args))
    assert all(issubclass(w.category, RuntimeWarning) and "number range" in str(w.message) for w in told), [
        str(w.message) for w in told
    ]
    assert len({str(w.message) for w in told}) == len(told)  # each is said once
    return out


# ---- scale ----------------------------------------------------------------------------------------------

# Where X is in another unit, or a covariance in its square: calls some of whose options are, too.
IN_UNITS = {
    "sparse_pca, gpower": lambda X, c: sparse_pca(X, R, method=spcacore.GPower(penalty=0.5 * c)),
    "sparse_pca, gpower, covariance": lambda X, c: sparse_pca(
        X, R, kind="covariance", method=spcacore.GPower(penalty=0.5 * c)
    ),
    "spca, penalty": lambda X, c: spca(X, R, penalty=0.5 * c * c, tol=1e-4),
    "spca, penalty, covariance": lambda X, c: spca(X, R, penalty=0.5 * c * c, tol=1e-4, kind="covariance"),
    "soft_threshold": lambda x, c: soft_threshold(x, 0.3 * c),
    "SparsePCAResult.transform": lambda X, c: sparse_pca(CLEAN["data"] * c, R, cardinality=K).transform(X),
}
DISTANCES = ("sparse_dissimilarity", "sparse_kmeans")  # of which sums and squares must be in range

# The power of the unit of X that a number is proportional to, 0 where nothing is said; before the others
# those of one call. A result that is one array has the name "".
POWERS = {
    **dict.fromkeys(["mean", "mean_x", "mean_y", "scale_x", "scale_y", "means", "centroids", "centers"], 1),
    **dict.fromkeys(["scale", "middle", "strength", "bandwidth", "shift", "scores"], 1),
    **dict.fromkeys(["explained_variance", "adjusted_variance", "total_variance", "value", "upper_bound"], 2),
    **dict.fromkeys(["path_value", "noise_variance", "noise_variances", "bound", "relaxation", "dual"], 2),
    **dict.fromkeys(["penalty", "ridge", "objective", "values", "deflated_values", "trace", "permuted"], 2),
    **dict.fromkeys(["weights", "scalings", "factor"], -1),
}
POWERS_OF = {
    "sparse_pca, gpower": {"options.method.penalty": 1, "options.sparsity.0": 1, "options.sparsity.1": 1},
    **{name: {"means": 0} for name in ("oppca", "soppca", "select_prior")},
    **{name: {"scores": 0} for name in ("kernel_pca", "sma", "select_sparsity", "select_n_components")},
    "ppca": {"loadings": 1, "scores": 0},
    "spca": {"objective": 4},  # with an infinite ridge
    "spca, penalty": {"objective": 2},
    "sparse_pca, scale": {"explained_variance": 0, "total_variance": 0, "scores": 0},
    "sparse_lda": {"centroids": 0, "values": 0, "upper_bound": 0},
    "sparse_cca_bound": {"upper_bound": 0, "bounds": 0},
    "sparse_cca_permutation": {"permuted": 0},
    "sparse_dissimilarity": {"dissimilarity": 2, "weights": 0},
    "sparse_dissimilarity, absolute": {"dissimilarity": 1, "weights": 0, "objective": 1, "trace": 1},
    "sparse_dissimilarity_gap": {"weights": 0},
    "sparse_kmeans": {"weights": 0},
    "sparse_kmeans_gap": {"weights": 0},
    "explained_variance": {"": 2},
    "deflate": {"": 1},
    "deflate, covariance": {"": 2},
    "deflate, schur": {"": 1},
    "deflate, schur, covariance": {"": 2},
    "SparsePCAResult.transform": {"": 1},
    "varimax": {"0": 1},
    "orthomax": {"0": 1},
    "l1_rotation": {"0": 1},
    **{name: {"pattern": 1, "structure": 1, "variance": 2} for name in ("promax", "oblimin")},
    "truncate": {"": 1},
    "soft_threshold": {"": 1},
    "l1_threshold": {"1": 1},
}
LOGARITHMS = {"log_likelihood": -1, "free_energy": -1, "bic": 2}  # of densities: times log(c^(n p))


def power(call, name):
    names = (call.name, call.name.removesuffix(", covariance"), call.function)
    own = next((POWERS_OF[n] for n in names if n in POWERS_OF), {})
    parts = [part for part in name.split(".") if not part.isdigit()] or [name]
    return own.get(name, own.get(parts[-1], POWERS.get(parts[-1], 0)))


def expressible(call, dtype, c):
    """Whether squares of distances, which are refused otherwise, and a penalty are in the number range."""
    if call.name == "row_blocks":  # else A is not formed in one pass, by other roundings
        return 2 * abs(np.log2(c)) < np.finfo(dtype).maxexp - 16
    if call.name.startswith(DISTANCES):
        return 4 * abs(np.log2(c)) < np.finfo(dtype).maxexp
    return call.name != "spca, penalty" or 0 < c * c < np.inf


def in_units(call, dtype, c):
    """What the call gives where the unit of X is 1/c, and what it should give."""
    run = IN_UNITS.get(call.name, lambda X, _: call.run(X))
    with np.errstate(under="ignore"):
        X = call.clean(dtype) * dtype(c * c if call.takes == "covariance" else c)
    out = quietly(run, X, c)
    expected = {}
    for name, value in clean_numbers(call, dtype).items():
        with np.errstate(over="ignore", under="ignore"):
            factor = np.longdouble(c) ** power(call, name)
            expected[name] = (value * factor).astype(value.dtype) if value.dtype.kind == "f" else value
    return out, expected


def logarithm(name):
    return next((v for k, v in LOGARITHMS.items() if k in name.split(".")), None)


# Of data a power of 4, since an operator brings entries near 1 by such; a covariance has the square.
EXACT = {
    np.float64: {"data": (2.0**996, 2.0**-996, 2.0**200), "covariance": (2.0**498, 2.0**-498, 0.5)},
    np.float32: {"data": (2.0**100, 2.0**-100, 0.25), "covariance": (2.0**58, 2.0**-58, 0.5)},
}
ANY = {
    np.float64: {"data": (1e300, 1e-300, 3.0, 1e-310), "covariance": (1e150, 1e-150, 3.0, 1e-155)},
    np.float32: {"data": (1e36, 1e-36, 3.0), "covariance": (1e18, 1e-18, 3.0)},
}


def among(table, call, dtype):
    units = table[dtype]["covariance" if call.takes == "covariance" else "data"]
    units = [c for c in units if expressible(call, dtype, c)]
    return [c for c in units if not 1e-3 < c < 1e100] or units  # those near 1 where no other can be


@pytest.mark.share(10)
@pytest.mark.parametrize(("call", "dtype"), in_turn(CALLS, DTYPES))
def test_a_power_of_two_changes_no_bit(call, dtype):
    for c in among(EXACT, call, dtype):
        out, expected = in_units(call, dtype, c)
        assert list(out) == list(expected)
        for name, value in expected.items():
            if (shift := logarithm(name)) is not None:
                shift *= N * P * np.log(c)
                assert_allclose(out[name] - shift, clean_numbers(call, dtype)[name], rtol=1e-6)
            else:
                assert_array_equal(out[name], value, f"{name} at {c}")


@pytest.mark.share(10)
@pytest.mark.parametrize(("call", "dtype"), in_turn(CALLS, DTYPES))
def test_any_unit(call, dtype):
    for c in among(ANY, call, dtype):
        try:
            out, expected = in_units(call, dtype, c)
        except ValueError as error:  # the inverse of a deviation, or of a bandwidth
            if c == 1e-310 and re.search("varies too little|is too small", str(error)):
                continue
            raise
        for name, value in expected.items():
            if logarithm(name) is None and not name.endswith((*COUNTED, "trace")):
                close(out[name], value, call, dtype, name, lost=c in (1e-310, 1e-155))


def close(out, expected, call, dtype, what, lost=False):
    """Relative to the largest entry; where an iteration ends, or digits are lost, as exactly as can be."""
    tol = TOLERANCE[dtype]
    if dtype == np.float32 and (call.function == "oppca" or power(call, what) != 2):
        tol = 1e-2
    elif call.function == "oppca":
        tol = 1e-7
    elif call.function == "spca" or "total" in call.name:  # which end where supports are refined
        tol = max(tol, 1e-9)
    if lost or what == "upper_bound":  # entries near 1e-310 have 14 digits; a bound adds what rounding may do
        tol = max(tol, 1e-9)
    if expected.dtype.kind == "f" and np.isfinite(expected).all():
        size = np.abs(expected).max(initial=0)
        tol = max(tol * size, float(np.finfo(expected.dtype).smallest_subnormal))
        assert_allclose(out, expected, rtol=0, atol=tol, err_msg=what)
    else:
        assert_array_equal(out, expected, what)


OF_COLUMNS = [
    c for c in CALLS
    if c.takes in ("data", "covariance")
    # which add up all columns
    and not c.name.startswith(DISTANCES)
]  # fmt: skip


@pytest.mark.share(10)
@pytest.mark.parametrize("call", OF_COLUMNS, ids=repr)
def test_columns_of_very_different_size(call):
    """No NaN, and the leading component is that of the largest columns."""
    e = 498 if call.takes == "covariance" else 990
    for big in (e, e // 2):
        units = np.where(np.arange(P) < K, 2.0**big, 2.0**-big)
        X = call.clean() * (np.outer(units, units) if call.takes == "covariance" else units)
        out = quietly(call.run, X)
        for name, value in out.items():
            assert not np.isnan(value).any(), name
        if call.function in ("sparse_pca", "tpower", "greedy", "branch_and_bound", "dspca") and (
            # disjoint components explain most together where each has some of the large columns
            not {"pmd", "gpower", "scotlass", "naive", "scale", "nonnegative", "explained", "disjoint"}
            & set(call.name.split(", "))
        ):
            v = out.get("loadings", out.get("loading", out.get("")))
            v = v[:, 0] if v.ndim == 2 else v
            leading = np.linalg.eigh(CLEAN["covariance"][:K, :K])[1][:, -1]
            assert_allclose(np.abs(v), np.r_[np.abs(leading), np.zeros(P - K)], atol=1e-12)


# ---- order ----------------------------------------------------------------------------------------------

ROWS, COLUMNS = (np.random.default_rng(5).permutation(m) for m in (N, P))
APART = np.r_[np.argsort(COLUMNS[:6]), 6 + np.argsort(COLUMNS[6:])]  # within each of the two sets of a CCA
NOT_BY_ORDER = (*COUNTED, "trace", "labels", "centers", "dissimilarity", "unit")  # paths to the result; names
BY_INDEX = (
    "order",
    "path_index",
    "path_loading",
    "kept",
    "matrix",
    "variables",
    "size",
)  # lists of columns, ascending or not, and of units of columns, which are numbered as they come
IN_ORDER = {  # calls some of whose options have the order of the rows, or of the columns
    "sparse_lda": lambda X, rows, columns: sparse_lda(X, calls.LABELS[rows], cardinality=K),
    "sparse_eigen": lambda A, rows, columns: sparse_eigen(
        A, calls.METRIC[np.ix_(columns, columns)], cardinality=K
    ),
    "sparse_eigen_bound": lambda A, rows, columns: sparse_eigen_bound(
        A, calls.METRIC[np.ix_(columns, columns)], K
    ),
    "SparsePCAResult.transform": lambda X, rows, columns: sparse_pca(
        CLEAN["data"][:, columns], R, cardinality=K
    ).transform(X),
    **{
        f"{name}{', covariance' * (kind == 'covariance')}": functools.partial(
            lambda X, rows, columns, run, kind: run(X, columns, kind), run=run, kind=kind
        )
        for kind in ("data", "covariance")
        for name, run in {
            "tpower, chosen": lambda X, c, kind: tpower(
                X,
                K,
                kind=kind,
                choice=spcacore.Choice(
                    include=np.flatnonzero(c == 3), exclude=np.flatnonzero(c == 5), groups=calls.GROUPS[c]
                ),
            ),
            "sparse_pca, chosen": lambda X, c, kind: sparse_pca(
                X,
                R,
                cardinality=K,
                kind=kind,
                choice=spcacore.Choice(groups=calls.GROUPS[c], count="variables"),
            ),
            "branch_and_bound, chosen": lambda X, c, kind: branch_and_bound(
                X, K, kind=kind, choice=spcacore.Choice(exclude=np.flatnonzero(c == 5), signs=calls.SIGNS[c])
            ),
            "refine": lambda X, c, kind: refine(X, calls.SPARSE[c], cardinality=K, kind=kind),
            "compare": lambda X, c, kind: compare([calls.SPARSE[c], calls.V0[c]], X, kind=kind),
            "from_loadings": lambda X, c, kind: from_loadings(abs(calls.SPARSE[c]), X, kind=kind),
            "explained_variance": lambda X, c, kind: explained_variance(X, calls.V0[c], kind=kind),
            **{
                f"explained_variance, {definition}": lambda X, c, kind, definition=definition: (
                    explained_variance(X, calls.V0[c], definition, kind=kind)
                )
                for definition in ("adjusted", "regression")
            },
            "renormalize": lambda X, c, kind: renormalize(X, calls.V0[c], kind=kind),
            "deflate": lambda X, c, kind: deflate(X, calls.V0[c, 0], kind=kind),
            "deflate, schur": lambda X, c, kind: deflate(X, calls.V0[c, 0], "schur", kind=kind),
        }.items()
    },
}


def reordered(call, rows, columns):
    """What the call gives on rows and columns in another order, and what it should give."""
    run = IN_ORDER.get(call.name, lambda X, rows, columns: call.run(X))
    X = call.clean()[columns if call.takes != "data" else rows]
    X = np.ascontiguousarray(X[:, columns] if call.takes in ("data", "covariance") else X)
    out = numbers(run(X, rows, columns))
    for name, value in clean_numbers(call, np.float64).items():
        if name.split(".")[-1] in NOT_BY_ORDER or "free_energy" in name:
            continue
        if name.split(".")[-1] in BY_INDEX and (columns != np.arange(P)).any():
            continue
        for axis, size in enumerate(value.shape):
            order = {N: rows, P: columns}.get(size)
            if call.function == "sparse_cca" and size == P // 2:
                order = columns[:6] if name.endswith("_x") else columns[6:] - 6
            if order is not None:
                value = np.take(value, order, axis)
        yield name, out[name], value


IN_ANY_ORDER = [
    *[("rows", c) for c in LAWS["order of rows"].calls()],
    *[("columns", c) for c in LAWS["order of columns"].calls()],
]


@pytest.mark.share(16)
@pytest.mark.parametrize(("which", "call"), IN_ANY_ORDER, ids=repr)
def test_order_of_rows_and_columns(which, call):
    rows, columns = (ROWS, np.arange(P)) if which == "rows" else (np.arange(N), COLUMNS)
    if call.function in ("sparse_cca", "sparse_cca_bound") and which == "columns":
        columns = APART
    for name, out, expected in reordered(call, rows, columns):
        close(out, expected, call, np.float64, name)


SELECTING = [
    c for c in CALLS
    if c.function in ("sparse_pca", "tpower", "greedy", "branch_and_bound", "gpower", "pmd", "scotlass")
    and c.name != "pmd, two-way"
    and "thresholding" not in c.name  # of what LAPACK chooses in the eigenspace
    and "chosen" not in c.name
]  # fmt: skip


@pytest.mark.share(5)
@pytest.mark.parametrize("call", SELECTING, ids=repr)
def test_columns_that_tie_are_taken_from_the_left(call):
    """Orthogonal columns of variance 1, exactly: any support is as good, and any vector on it."""
    hadamard = np.ones((1, 1))
    for _ in range(4):
        hadamard = np.block([[hadamard, hadamard], [hadamard, -hadamard]])
    X = np.vstack([hadamard[:, 1 : P + 1], np.zeros(P)]) if call.takes == "data" else np.eye(P)
    out = numbers(call.run(X))
    v = out["loadings"][:, 0] if "loadings" in out else out["loading"]
    assert np.flatnonzero(v).max() < K
    assert np.linalg.norm(v) == pytest.approx(1, rel=1e-12)


@pytest.mark.share(5)
@pytest.mark.parametrize("call", SELECTING, ids=repr)
def test_a_copy_of_a_column_is_not_preferred(call):
    """Columns 0 to 5 and exact copies of them: where one of each is taken, it is the first."""
    X = calls.X0[:, :6] * np.array([9.0, 1, 1, 1, 1, 1])  # one column that outweighs the others
    X = np.round(X * 64)[:, [0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5]]
    X -= np.round(X.mean(axis=0))
    out = numbers(call.run(X.T @ X if call.takes == "covariance" else X))
    V = np.abs(out["loadings"] if "loadings" in out else out["loading"][:, None])
    first, copy = V[:6], V[6:]
    elsewhere = first.any(axis=1) & ("disjoint" in repr(call))
    assert (first[:, 0] >= copy[:, 0] * (1 - 1e-9))[~elsewhere].all()


def test_scaled_models_answer_in_the_units_of_the_data():
    """What a model of Z = (X - mean) / sd says of X, by hand."""
    sd, mean = calls.X0.std(axis=0, ddof=1), calls.X0.mean(axis=0)
    scaled, plain = spcacore.ppca(calls.X0, R, scale=True), spcacore.ppca((calls.X0 - mean) / sd, R)
    assert_allclose(scaled.sample(5, rng=0), mean + sd * plain.sample(5, rng=0), rtol=1e-9)
    some = calls.X0[:4].copy()
    some[1, 2] = np.nan
    filled = mean + sd * plain.impute((some - mean) / sd)
    assert_allclose(scaled.impute(some), filled, rtol=1e-9)


def test_a_sparse_penalty_is_scaled_as_a_dense_one():
    L = np.array([[4.0, -1.0], [-1.0, 2.0]])
    (dense, largest), (sparse, same) = (_symmetric(M, "penalty", 2, None) for M in (L, sp.csr_array(L)))
    assert_array_equal(dense, sparse.toarray())
    assert_array_equal(dense * largest, L)
    assert largest == same == 4
