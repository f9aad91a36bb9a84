"""Random calls by the declared options of each function, and what holds of any answer without a reference."""

import inspect
import math

import calls
import kinds
import numpy as np
import pandas as pd

import spcacore
from spcacore.methods import METHODS
from spcacore.options import declared

DATA = {"X", "A", "Y", "B", "y", "loadings"}
COSTLY = {"time_limit", "node_limit", "n_starts", "max_iter"}  # of which few are asked for


def answerable(function):
    """Whether data and declared options are all that it needs, and its answer has loadings."""
    has = inspect.signature(function).parameters
    if {"cardinality", "l1_bound", "n_components", "loadings"}.isdisjoint(has):
        return False
    needed = {name for name, one in has.items() if one.default is one.empty}
    return needed <= DATA | set(declared(function))


FUNCTIONS = [name for name, one in inspect.getmembers(spcacore, inspect.isfunction) if answerable(one)]


# ---- what is asked for ---------------------------------------------------------------------------------


def value(rng, one, n, p):
    """Of a declared option, most of them allowed."""
    name, low, high = one.name, one.option.low or 0, one.option.high
    if one.kind == "flag":
        return bool(rng.integers(2))
    if one.kind == "words":
        return str(rng.choice(one.words))
    if one.kind == "whole":
        return int(low + rng.integers(0, 4 if name in COSTLY else max(2, min(p, 6))))
    if one.kind == "number":
        return float(
            rng.uniform(low, min(high, low + 2)) if rng.random() < 0.5 else 10.0 ** rng.uniform(-9, 0)
        )
    return OTHERS[name](rng, n, p) if name in OTHERS else one.default


def record(rng, n, p):
    """Of a method, with some of its options."""
    made = METHODS[str(rng.choice(sorted(METHODS)))]
    return made(**some(rng, declared(made), n, p, 0.25))


def some(rng, options, n, p, share, left_out=()):
    """Those that have no default, and a share of the rest."""
    given = {}
    for name, one in options.items():
        if one.default is inspect.Parameter.empty or (rng.random() < share and name not in left_out):
            given[name] = value(rng, one, n, p)
    return {name: v for name, v in given.items() if v is not inspect.Parameter.empty}


def choice(rng, n, p):
    known = {
        "include": lambda: rng.integers(0, p, 1), "exclude": lambda: rng.integers(0, p, rng.integers(0, 3)),
        "groups": lambda: rng.integers(0, max(1, p // 2), p), "signs": lambda: rng.integers(-1, 2, p),
    }  # fmt: skip
    return spcacore.Choice(**{word: make() for word, make in known.items() if rng.random() < 0.4})


def size(rng, n, p):
    """A cardinality: a number, one a component, a share or a total."""
    k = int(rng.integers(1, min(p, 6) + 1))
    return [k, k, k, [k, 1], spcacore.Explained(float(rng.uniform(0, 1))), spcacore.Total(k)][rng.integers(6)]


OTHERS = {
    "n_components": lambda rng, n, p: int(rng.integers(1, min(n, p, 4) + 1)),
    "cardinality": size,
    "l1_bound": lambda rng, n, p: float(rng.uniform(1, math.sqrt(p))),
    "sample_l1_bound": lambda rng, n, p: float(rng.uniform(1, math.sqrt(n))),
    "penalty": lambda rng, n, p: float(rng.uniform(0, 1)),
    "method": record,
    "choice": choice,
    "center": lambda rng, n, p: [False, rng.standard_normal(p)][rng.integers(2)],
    "scale": lambda rng, n, p: [True, rng.uniform(0.5, 2, p)][rng.integers(2)],
    "sample_weight": lambda rng, n, p: rng.integers(0, 4, n) * rng.choice([1.0, 0.25]),
    "start": lambda rng, n, p: ["diagonal", "eigenvector", rng.standard_normal(p)][rng.integers(3)],
    "refine": lambda rng, n, p: True,
    "support": lambda rng, n, p: str(rng.choice(["common", "disjoint"])),
    "rng": lambda rng, n, p: int(rng.integers(100)),
    "callback": lambda rng, n, p: lambda progress: None,
}


def matrices(rng, X):
    """What arguments are data, by name."""
    n, p = X.shape
    V = rng.standard_normal((p, min(2, p)))
    return {
        "X": X, "A": np.atleast_2d(np.cov(X, rowvar=False)) if n > 1 else np.eye(p), "Y": X[:, ::-1] + 1,
        "B": np.diag(rng.uniform(0.5, 2, p)), "y": np.arange(n) % 3,
        "loadings": np.where(np.arange(p)[:, None] % 3 == np.arange(V.shape[1]), V, 0),
    }  # fmt: skip


# ---- odd arrays ----------------------------------------------------------------------------------------


def nullable(X):
    """A frame whose columns are pandas' own types of numbers."""
    return pd.DataFrame(X).convert_dtypes(convert_integer=False)


LOSSY = "float16", "bool", "mixed frame"  # or that two columns are needed for
EXACT = [make for name, make, _ in kinds.GOOD if name not in LOSSY] + [nullable]
EXACT_SPARSE = [make for name, make in kinds.SPARSE if name not in ("int8", "bsr blocks")]


def odd(rng, X, sparse):
    """The matrix in another form, and the numbers that it then has."""
    forms = EXACT + (EXACT_SPARSE if sparse else [])
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        Y = forms[rng.integers(len(forms))](X)
    return Y


# ---- what holds of any answer --------------------------------------------------------------------------


def explained(A, V):
    """The variance of the span of loadings, by a decomposition of them that is not the package's."""
    U, s, _ = np.linalg.svd(np.asarray(V, np.float64), full_matrices=False)
    Q = U[:, s > 1e-9 * s.max(initial=0)]
    return float(np.trace(Q.T @ A @ Q))


def recomputed(name, result, given):
    """The values that a result reports are those of its loadings, where no units or weights are given."""
    if {"center", "scale", "sample_weight", "method", "choice"} & set(given):
        return
    X = np.asarray(given["X"], np.float64)
    if given.get("kind") == "covariance":
        A = X
    elif len(X) > 1:
        A = np.atleast_2d(np.cov(X, rowvar=False))
    else:
        return
    total = abs(np.trace(A))
    if not 1e-280 < total < 1e280:
        return
    if hasattr(result, "value") and hasattr(result, "loading") and not name.startswith("least_squares"):
        x = np.asarray(result.loading, np.float64).ravel()
        assert abs(result.value - x @ A @ x) <= 1e-4 * total, "another value than x'Ax"
    elif type(result).__name__ in ("SparsePCAResult", "SPCAResult"):
        assert abs(result.explained_variance.sum() - explained(A, result.loadings)) <= 1e-4 * total, (
            "another variance"
        )


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
    n, p = X.shape
    name = str(rng.choice(FUNCTIONS))
    function = getattr(spcacore, name)
    has = inspect.signature(function).parameters
    given = {a: v for a, v in matrices(rng, X).items() if a in has}
    given |= some(rng, declared(function), n, p, 0.15, {"kind"})
    first = next(a for a in has if a in DATA)
    if "kind" in has and first == "X" and rng.random() < 0.3:
        given |= {"X": matrices(rng, X)["A"], "kind": "covariance"}
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
    if rng.random() < 0.2:
        with spcacore.limit_threads(3):
            again = function(**given)
        a, b = calls.numbers(result), calls.numbers(again)
        assert all(a[key].tobytes() == b[key].tobytes() for key in a), "other bits by three threads"
    return f"{name}, options"
