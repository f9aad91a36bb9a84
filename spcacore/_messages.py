"""The words of errors: numbers with their nouns, and what to do instead of what was given."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

__all__ = [
    "brief",
    "convergence",
    "counted",
    "few",
    "instead_of",
    "listed",
    "quiet",
    "refuse_no_array",
    "repeated",
    "warn",
    "warn_repeated",
]
__dir__ = __all__.copy

_WITHIN = ("spcacore", "sklearn")  # whose lines are not the user's
_UNSAID: ContextVar[tuple[str, ...]] = ContextVar("unsaid", default=())

# What other packages call an option: the names that it has here, or a sentence.
_INSTEAD: dict[str, tuple[str, ...] | str] = {
    **dict.fromkeys(
        ("k", "keepx", "n_nonzero", "n_nonzero_coefs", "n_nonzeros", "nnz", "sparsity", "varnum"),
        ("cardinality",),
    ),
    **dict.fromkeys(("alpha", "l1_ratio", "para", "threshold"), ("penalty", "cardinality")),
    **dict.fromkeys(("lambda_", "lambda1", "lam", "gamma", "rho"), ("penalty",)),
    **dict.fromkeys(("sumabs", "sumabsv", "sumabss"), ("l1_bound",)),
    "sumabsu": ("sample_l1_bound",),
    **dict.fromkeys(("ridge_alpha", "ridge"), "the function spca takes it, as ridge"),
    **dict.fromkeys(("random_state", "seed"), ("rng",)),
    **dict.fromkeys(("standardize", "standardise", "scaling", "cor", "corr", "with_std"), ("scale",)),
    **dict.fromkeys(("centre", "centering", "with_mean"), ("center",)),
    **dict.fromkeys(("max_iters", "max_iterations", "maxiter", "niter", "n_iter"), ("max_iter",)),
    **dict.fromkeys(("eps", "epsilon", "eps_conv", "tolerance", "thr"), ("tol",)),
    **dict.fromkeys(("n_init", "nstart", "nstarts", "restarts"), ("n_starts",)),
    **dict.fromkeys(("init", "v_init", "v0"), ("start",)),
    **dict.fromkeys(
        ("ncomp", "ncomps", "n_comps", "n_pcs", "n_factors", "rank", "r", "n_components"), ("n_components",)
    ),
    **dict.fromkeys(("positive", "nonneg", "vpos"), ("nonnegative",)),
    **dict.fromkeys(("verbose", "trace", "progress"), ("callback",)),
    **dict.fromkeys(("svd_solver", "algorithm", "solver"), ("method",)),
    "copy": "X is never changed",
    "whiten": "divide the scores by the roots of explained_variance",
}
_ITSELF = {  # what the type or its module is called: what to pass instead
    "AnnData": "adata.X or adata.layers[...], or adata.to_df() for the names of the variables too",
    "MuData": "the matrix of one modality, mdata.mod[...].X",
    "LazyFrame": "{x}.collect()",
    "Dataset": "one of its variables, or {x}.to_array()",
}


def convergence(converged: object, n_iter: int) -> str:
    return f"{'converged' if converged else 'not converged'} in {counted(n_iter, 'iteration')}"


def brief(text: str) -> str:
    return text if len(text) <= 40 else f"{text[:39]}…"


def few(values: Iterable[object]) -> str:
    """[1, 2, 3], or the first ones and the last of many."""
    words = [f"{value:.6g}" if isinstance(value, float) else brief(str(value)) for value in values]
    return f"[{', '.join(words if len(words) <= 8 else [*words[:6], '...', words[-1]])}]"


def counted(number: int, noun: str) -> str:
    """1 entry, 2 entries."""
    if number == 1:
        return f"{number} {noun}"
    if noun.endswith("y"):
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}{'es' if noun.endswith('s') else 's'}"


def listed(words: Iterable[str], last: str = "or") -> str:
    """a, b or c."""
    *first, final = words
    return f"{', '.join(first)} {last} {final}" if first else final


def instead_of(word: str, allowed: Mapping[str, str]) -> str:
    """A clause on what an option that is not allowed is called here, or nothing."""
    found = _INSTEAD.get(word.lower(), ())
    if isinstance(found, str):
        return f": {found}"
    names = [name for name in found if name in allowed]
    if not names and not found:
        from difflib import get_close_matches

        names = [name for name in get_close_matches(word, allowed, 1, 0.75) if name != word]
    return f"; do you mean {listed(allowed[name] for name in names)}?" if names else ""


def refuse_no_array(x: Any, name: str) -> None:
    """Raise for what is no array and cannot become one, with what to pass instead."""
    kind = type(x).__name__
    if x is None:
        raise TypeError(f"{name} is None; an array of numbers is needed")
    if isinstance(x, (str, bytes)):
        advice = (
            "read the file first and pass its array" if "." in str(x) else "an array of numbers is needed"
        )
        raise TypeError(f"{name} is the string {x!r:.60}; {advice}")
    if isinstance(x, os.PathLike):
        raise TypeError(f"{name} is the path {str(x)!r:.60}; read the file first, and pass its array")
    if isinstance(x, type):
        raise TypeError(f"{name} is the class {x.__name__}; an array of numbers is needed")
    if kind in _ITSELF and not hasattr(x, "__array__"):
        raise TypeError(f"{name} is of type {kind}; pass {_ITSELF[kind].format(x=name)}")
    if (
        hasattr(x, name) and not hasattr(x, "__array__") and not hasattr(x, "shape")
    ):  # as a result has loadings
        raise TypeError(f"{name} is of type {kind}, and numbers are needed: pass its attribute {name}")
    for convert in ("to_pandas", "toPandas", "df"):
        if callable(getattr(x, convert, None)) and not hasattr(x, "__array__"):
            raise TypeError(f"{name} is of type {kind}; pass {name}.{convert}()")
    if isinstance(x, Mapping) and not hasattr(x, "tocsr"):  # a sparse matrix may be one
        raise TypeError(f"{name} is a {kind}; pass a dataframe, or an array with its values as columns")
    if isinstance(x, Set):
        raise TypeError(f"{name} is a {kind}, which has no order; pass an array of numbers")
    if hasattr(x, "__next__"):
        raise TypeError(
            f"{name} is a {kind}, which can be read only once; pass an array or a list of its rows"
        )


def warn(message: str) -> None:
    """A RuntimeWarning of the line that called the package, unless a caller within it is `quiet`."""
    if not any(message.startswith(beginning) for beginning in _UNSAID.get()):
        warnings.warn(message, RuntimeWarning, stacklevel=_outside())


@contextmanager
def quiet(beginning: str = "") -> Iterator[None]:
    """Leave out warnings that begin so, in this thread and its tasks.

    `warnings.catch_warnings` would silence other threads of the program, too.
    """
    token = _UNSAID.set((*_UNSAID.get(), beginning))
    try:
        yield
    finally:
        _UNSAID.reset(token)


def warn_repeated(names: tuple[str, ...] | None) -> None:
    """Warn of names that several variables have, as which a result cannot tell apart."""
    if names is None or len(set(names)) == len(names):
        return
    warn(repeated(names))


def repeated(names: Collection[str]) -> str:
    """The sentence about names that several variables have."""
    seen: set[str] = set()
    twice = list(dict.fromkeys(n for n in names if n in seen or seen.add(n)))  # type: ignore[func-returns-value]
    shown = ", ".join(map(repr, twice[:3])) + ", ..." * (len(twice) > 3)
    return f"several variables have the same name: {shown}; a name does not tell them apart"


def _outside() -> int:
    """How far up the stack the caller of the package is, for a warning of the function that asks."""
    depth, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _WITHIN:
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    return depth
