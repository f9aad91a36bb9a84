"""Random calls by the declared options of each function; as a program, what some of them answer."""

import hashlib
import inspect
import json
import math
import sys
import warnings

import calls
import numpy as np
from oracles import centered

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
    if name == "time_limit":  # of which the clock decides nothing
        return float(rng.choice([0, 60]))
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


def structured(rng, n, p):
    """Clusters and sparse directions, and now and then what is hard: ranks, ties, zeros, magnitudes."""
    if n * p == 0:
        return np.zeros((n, p))
    X = calls.planted(n, p, seed=int(rng.integers(2**31))) if p >= 6 else rng.standard_normal((n, p))
    which = rng.integers(12)
    if which == 0:
        X[:, rng.integers(p)] = 3
    elif which == 1:
        X[:, rng.integers(p)] = X[:, 0]
    elif which == 2:
        X = np.outer(rng.standard_normal(n), rng.standard_normal(p))
    elif which == 3:
        X = np.round(X)
    elif which == 4:
        X = np.zeros((n, p)) if rng.random() < 0.2 else X * (rng.random((n, p)) < 0.2)
    elif which == 5:
        X *= 10.0 ** rng.uniform(-150, 150)
    elif which == 6:
        X *= 10.0 ** rng.uniform(-3, 3, p)
    return X


def drawn(rng, X):
    """A function, what it is given, and which of that is its first matrix."""
    n, p = X.shape
    name = str(rng.choice(FUNCTIONS))
    function = getattr(spcacore, name)
    has = inspect.signature(function).parameters
    given = {a: v for a, v in matrices(rng, X).items() if a in has}
    given |= some(rng, declared(function), n, p, 0.15, {"kind"})
    first = next(a for a in has if a in DATA)
    if "kind" in has and first == "X" and rng.random() < 0.3:
        given |= {"X": matrices(rng, X)["A"], "kind": "covariance"}
    return name, function, given, first


# ---- answers -------------------------------------------------------------------------------------------


def generic(X):
    """Whether nothing is decided by rounding: no ties, full rank, and eigenvalues apart."""
    Z = np.ldexp(X, -int(np.frexp(np.abs(X).max(initial=1e-300))[1]))
    Z = centered(Z)
    norm = np.linalg.norm(Z, axis=0)
    s = np.linalg.svd(Z, compute_uv=False)[: min(len(X) - 1, X.shape[1])] if norm.all() else np.zeros(1)
    apart = np.diff(np.sort(norm)).min(initial=np.inf) > 1e-3 * norm.max(initial=0)
    return len(s) > 1 and apart and s[-1] > 1e-2 * s[0] and -np.diff(s).max() > 1e-2 * s[0]


def answers(seed, start, stop):
    """Of those calls: a digest of all bits, the supports and the values, or the refusal."""
    for number in range(start, stop):
        rng = np.random.default_rng([seed, number])
        X = structured(rng, *rng.integers(6, 25, 2))
        try:
            name, function, given, _ = drawn(rng, X)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                out = calls.numbers(function(**given))
        except (TypeError, ValueError) as error:
            yield [str(error), False, type(error).__name__, [], []]
            continue
        bits = hashlib.sha1(b"".join(out[one].tobytes() for one in sorted(out))).hexdigest()
        V = next((out[one] for one in ("loadings", "loading", "loadings_x") if one in out), np.zeros(0))
        values = [float(out[one].sum()) for one in ("explained_variance", "value", "values") if one in out]
        yield [name, bool(generic(X)), bits, (V != 0).astype(int).tolist(), values]


if __name__ == "__main__":
    print(json.dumps(list(answers(*map(int, sys.argv[1:4])))))
