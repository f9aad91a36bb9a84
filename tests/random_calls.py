"""What holds of any answer to a random call (`drawn_calls.py`), without a reference."""

import inspect
import itertools
import math
import pickle
import re

import calls
import kinds
import numpy as np
import pandas as pd
import scipy.sparse as sp
from drawn_calls import DATA, OTHERS, drawn, generic, some

import spcacore
import spcacore.sklearn as estimators
from spcacore.cli.options import COMMANDS
from spcacore.options import declared

# ---- odd arrays ----------------------------------------------------------------------------------------


def nullable(X):
    """A frame whose columns are pandas' own types of numbers."""
    return pd.DataFrame(X).astype(f"Float{8 * X.itemsize}")


LOSSY = "float16", "bool", "mixed frame"  # or that two columns are needed for
EXACT = [make for name, make, _ in kinds.GOOD if name not in LOSSY] + [nullable]
EXACT_SPARSE = [make for name, make in kinds.SPARSE if name not in ("int8", "bsr blocks")]


def odd(rng, X, sparse):
    """The matrix in another form, and the numbers that it then has."""
    forms = EXACT + (EXACT_SPARSE if sparse else []) if X.size else [np.asarray]
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        Y = forms[rng.integers(len(forms))](X)
    return Y


# ---- what holds of any answer --------------------------------------------------------------------------


def explained(A, V):
    """The variance of the span of loadings, by a decomposition of them that is not the package's."""
    U, s, _ = np.linalg.svd(np.asarray(V, np.float64), full_matrices=False)
    Q = U[:, s > 1e-9 * s.max(initial=0)]
    return float(np.trace(Q.T @ A @ Q))


def covariance(given):
    """Of what a call is given, by NumPy alone; None of rounding, or where its squares may leave the range."""
    X, weight = np.asarray(given["X"], np.float64), given.get("sample_weight")
    center, scale = given.get("center", True), given.get("scale", False)
    if given.get("kind") == "covariance":
        A = X
    else:
        weight = np.ones(len(X)) if weight is None else np.asarray(weight, np.float64)
        if weight.sum() <= 1:
            return None
        mean = 0 if center is False else weight @ X / weight.sum() if center is True else np.asarray(center)
        with np.errstate(over="ignore", invalid="ignore"):
            A = (X - mean).T @ (weight[:, None] * (X - mean)) / (weight.sum() - 1)
            if not np.trace(A) > 1e-24 * np.square(X).max(initial=0):
                return None
    if scale is not False:
        variance = np.diag(A) if scale is True else np.square(scale)
        unit = np.sqrt(np.where(variance > 1e-20 * variance.max(initial=0), variance, np.inf))
        A = A / unit / unit[:, None]
    return A if 1e-150 < np.trace(A) < 1e150 else None


def recomputed(name, result, given):
    """The values that a result reports are those of its loadings, in the units that were asked for."""
    A = covariance(given)
    if A is None or "least_squares" in (name, getattr(result, "method", name), name.rpartition("_")[0]):
        return
    exclude = given.get("choice", spcacore.Choice()).exclude
    total = np.delete(np.diag(A), [] if exclude is None else exclude).sum()
    if hasattr(result, "value") and hasattr(result, "loading"):
        x = np.asarray(result.loading, np.float64).ravel()
        assert abs(result.value - x @ A @ x) <= 1e-4 * total, "another value than x'Ax"
    elif type(result).__name__ in ("SparsePCAResult", "SPCAResult"):
        sum_of = result.explained_variance.sum()
        assert abs(sum_of - explained(A, result.loadings)) <= 1e-4 * total, "another variance"
        assert abs(result.total_variance - total) <= 1e-5 * np.trace(A), "another total variance"
        most = given.get("cardinality")
        most = most if isinstance(most, int) and "choice" not in given else len(A)
        assert result.cardinality.max(initial=0) <= most, "more variables than asked for"
    enumerated(name, result, given, A)


TRIED = 4000  # supports


def admissible(given, p):
    """All supports of the size that is asked for; none where they are many, or signs and groups decide."""
    k, choice = given.get("cardinality"), given.get("choice", spcacore.Choice())
    if not isinstance(k, int) or math.comb(p, min(k, p)) > TRIED or "nonnegative" in given:
        return []
    if choice.groups is not None or choice.signs is not None:
        return []
    known = [
        () if part is None else np.atleast_1d(part).tolist() for part in (choice.include, choice.exclude)
    ]
    left = [j for j in range(p) if j not in known[1]]
    found = map(list, itertools.combinations(left, min(k, len(left))))
    return [one for one in found if set(known[0]) <= set(one)]


def enumerated(name, result, given, A):
    """No support of that size is above the bound, the value is not above all, and a proof finds the best."""
    one = hasattr(result, "value") or getattr(result, "n_components", 0) == 1 == given.get("n_components")
    explained = getattr(result, "value", getattr(result, "explained_variance", None))
    asked = name == "optimality_bound" or (one and explained is not None)  # not the ratio of discriminants
    supports = admissible(given, len(A)) if asked else []
    if not supports:
        return
    best = np.linalg.eigvalsh(np.stack([A[np.ix_(one, one)] for one in supports]))[:, -1].max()
    bound, slack = getattr(result, "upper_bound", None), 1e-9 * abs(np.trace(A))
    assert bound is None or np.atleast_1d(bound)[0] >= best - slack, "a support is above the bound"
    if explained is not None:
        value = np.atleast_1d(explained)[0]
        assert value <= best + slack, "above the best of all supports"
        assert not getattr(result, "optimal", False) or value >= best * (1 - 1e-4) - slack, "not the best"


# ---- what two calls have in common ---------------------------------------------------------------------


OF_NOISE = "gain|free_energy|noise|posterior|means"  # which components of full rank leave to rounding
STORAGES = [sp.csr_array, sp.csc_array, np.asfortranarray, lambda X: spcacore.row_blocks(X, block_bytes=256)]


def stored_otherwise(rng, name, function, given, first):
    """Dense, sparse and in blocks: the same numbers, where steps end within their tolerance."""
    if not generic(given[first]) or len(given.keys() & DATA) > 1:
        return
    store = STORAGES[rng.integers(2 if given.get("kind") == "covariance" else len(STORAGES))]
    result = function(**given | {first: store(given[first])})
    if not np.all(getattr(result, "converged", True)):
        return
    out, expected = ({key: one[key] for key in one if not re.match(OF_NOISE, key)}
                     for one in map(calls.numbers, (result, function(**given))))  # fmt: skip
    kinds.assert_same((out, []), (expected, []), 1e-5)


def in_another_unit(rng, name, function, given, first):
    """Up to the ends of the range: not a bit of a loading changes; variances have the square of the unit."""
    X = given[first]
    in_units = {"center", "penalty"} & set(given) or hasattr(given.get("method"), "penalty")
    if in_units or not X.any() or len(given.keys() & DATA) > 1:
        return
    dtype, end = [(np.float64, 1e150), (np.float32, 1e30)][rng.integers(2)]
    squared = 2 if given.get("kind") == "covariance" else 1
    shift, back = (4 * squared * int(np.log2(one) / (4 * squared))
                   for one in (end ** rng.uniform(-1, 1), np.abs(X).max()))  # fmt: skip
    with np.errstate(under="ignore"):
        plain = np.ldexp(X, -back).astype(dtype)
        scaled = np.ldexp(plain, shift)
        if (np.ldexp(scaled, -shift) != plain).any():
            return
    out, expected = (calls.numbers(function(**given | {first: one})) for one in (scaled, plain))
    for key in {"loadings", "loading", "loadings_x", "loadings_y", "cardinality", "rotation"} & out.keys():
        if name != "ppca":  # whose loadings have the unit
            assert out[key].tobytes() == expected[key].tobytes(), f"other {key} at 2^{shift}"
    for key in {"explained_variance", "value"} & out.keys():
        power = expected[key].astype(np.float64)
        if given.get("scale") is not True:
            power = np.ldexp(power, shift * 2 // squared)
        low = 0 if dtype is np.float64 else 1e-37
        assert np.allclose(out[key].astype(np.float64), power, rtol=1e-5, atol=low), f"{key} at 2^{shift}"


def by_threads(rng, name, function, given, first):
    """Three threads give the bits of one."""
    a = calls.numbers(function(**given))
    with spcacore.limit_threads(3):
        b = calls.numbers(function(**given))
    assert all(a[key].tobytes() == b[key].tobytes() for key in a), "other bits by three threads"


RELATIONS = stored_otherwise, in_another_unit, by_threads


def methods(result, given):
    """What needs no argument, and the scores of the data."""
    for name, method in inspect.getmembers(result, inspect.ismethod):
        wanted = [
            p
            for p in inspect.signature(method).parameters.values()
            if p.default is p.empty and p.kind not in (p.VAR_KEYWORD, p.VAR_POSITIONAL)
        ]
        if (not wanted and not name.startswith("_")) or name in ("__repr__", "_repr_html_"):
            method()
        elif name == "transform" and len(wanted) == 1 and given.get("kind") != "covariance":
            method(given["X"])


def ask(rng, X, check):
    """A function with random options, on the matrix in some form; what it was."""
    name, function, given, first = drawn(rng, X)
    plain = given[first]
    given[first] = odd(rng, plain, sparse=first not in ("loadings", "B"))
    with kinds.untouched(*given.values()):
        result = function(**given)
        check(result)
        if rng.random() < 0.3 and hasattr(result, "summary"):
            methods(result, given)
    dtype = getattr(given[first], "dtype", None)
    if first == "X" and dtype == np.float64:
        odd_X = given["X"]
        recomputed(name, result, given | {"X": odd_X.toarray() if hasattr(odd_X, "toarray") else odd_X})
    if rng.random() < 0.5 and plain.dtype == np.float64:
        relation = RELATIONS[rng.integers(len(RELATIONS))]
        relation(rng, name, function, given | {first: plain}, first)
    return f"{name}, options"


def ask_an_estimator(rng, X, check):
    """With random options it finds what its function finds, and transforms so after it was pickled, too."""
    made = [one for one in map(estimators.__dict__.get, estimators.__all__) if hasattr(one, "_function")]
    kind = made[rng.integers(len(made))]
    options = declared(kind._function)
    known = {one: options[one] for one in inspect.signature(kind).parameters if one in options}
    given = some(rng, known, *X.shape, 0.2, {"callback", "kind", "sample_weight"})
    given |= {one: OTHERS[one](rng, *X.shape) for one in ("n_components", "cardinality") if one in known}
    y = {"SparseLDA": np.arange(len(X)) % 3, "SparseCCA": X[:, ::-1] ** 2}.get(kind.__name__)
    with kinds.untouched(X):
        model = kind(**given).fit(X, y)
        Z = model.transform(X)
    check((model.result_, Z))
    answer = kind._function(*(X,) if y is None else (X, y), **given)
    expected, found = calls.numbers(answer), calls.numbers(model.result_)
    assert all(found[one].tobytes() == expected[one].tobytes() for one in ("loadings",) if one in found)
    again = pickle.loads(pickle.dumps(model))
    assert again.transform(X).tobytes() == Z.tobytes(), "another transform after pickling"
    assert len(model.get_feature_names_out()) == Z.shape[1]
    return f"sklearn.{kind.__name__}"


OF_FILES = {  # flags of the command that are not drawn
    "output", "plot", "scores", "build", "help", "array", "format", "header", "delimiter", "decimal",
    "comment", "thousands", "index_column", "row_names", "loadings", "time_limit", "reference",
}  # fmt: skip
VALUES = "1", "2", "2", "3", "0.5", "1,2", "0", "-1", "1:3", "x"


def flags(rng, task):
    """Some of the command's own, most of them with values that they may have, and often its method."""
    share = 0.08 if rng.random() < 0.5 else 0.02
    for option in COMMANDS[task].params:
        drawn = rng.random() < (0.4 if option.name == "method" else share)
        if drawn and option.param_type_name == "option" and option.name not in OF_FILES:
            yield str(rng.choice([*option.opts, *option.secondary_opts]))
            if not option.is_flag:
                yield str(rng.choice(getattr(option.type, "choices", VALUES)))
