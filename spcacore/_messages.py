"""The words of errors: numbers with their nouns, and what to do instead of what was given."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from inspect import Parameter, signature
from types import FunctionType
from typing import Any

_WITHIN = ("spcacore", "sklearn")  # whose lines are not the user's
_UNSAID: ContextVar[tuple[str, ...]] = ContextVar("unsaid", default=())

_PROGRESS = ("callback", "progress", "trace", "verbose")
# What other packages call an option: the names that it has here, or a sentence.
_NAMES = (
    ("k", ("cardinality", "n_clusters")),
    ("keepx nonzeros n_nonzero n_nonzero_coefs n_nonzeros nnz sparsity varnum", ("cardinality",)),
    ("alpha l1_ratio para threshold", ("penalty", "cardinality")),
    ("lambda1 lam rho", ("penalty",)),
    ("gamma", ("penalty", "l1_bound")),  # of GPower, and of R's epca
    ("lambda_", ("ridge", "penalty")),  # of R's elasticnet, and of others
    ("sumabs sumabsv sumabss wbounds wbound", ("l1_bound", "l1_bounds")),
    ("sumabsu", ("sample_l1_bound",)),
    ("penaltyx penaltyz", ("l1_bound",)),
    ("ridge_alpha ridge", "the function spca takes it, as ridge"),
    ("random_state seed", ("rng",)),
    ("standardize standardise scaling cor corr with_std", ("scale",)),
    ("centre centering with_mean zero_center", ("center",)),
    ("max_iters max_iterations maxiter niter n_iter", ("max_iter",)),
    ("eps epsilon eps_conv tolerance thr", ("tol",)),
    ("n_init nstart nstarts restarts", ("n_starts",)),
    ("init v_init v0", ("start",)),
    ("ncomp ncomps n_comps n_pcs n_factors rank r n_components", ("n_components",)),
    ("positive nonneg nneg vpos", ("signs",)),
    (" ".join(_PROGRESS), ("callback",)),
    ("svd_solver algorithm solver", ("method",)),
    ("type input_type", ("kind",)),
    ("correlation", ("covariance",)),  # these of the command
    ("sep separator", ("delimiter",)),
    ("dec", ("decimal",)),
    ("index index_col", ("index_column",)),
    ("transpose transposed", ("orientation",)),
    ("out outfile", ("output",)),
    ("kind", "it takes data, and sparse_pca a covariance"),
    ("covariance cov", "say kind='covariance'"),
    ("weights row_w obs_weights", ("sample_weight",)),
    ("cv nfolds n_splits", ("n_folds",)),
    ("rotate rotation", "varimax, promax and oblimin rotate loadings"),
    ("names feature_names", "the names of a dataframe's columns are kept"),
    ("n_jobs threads n_threads num_threads", "SPCACORE_NUM_THREADS or limit_threads sets it"),
    ("use_highly_variable", "spcacore.anndata.sparse_pca takes it, as mask_var='highly_variable', or None"),
    ("copy", "X is never changed"),
    ("whiten", "divide the scores by the roots of explained_variance"),
)
_INSTEAD: dict[str, tuple[str, ...] | str] = {one: here for theirs, here in _NAMES for one in theirs.split()}
_ROTATES = "rotates a basis: that mixes all variables, and no support or sign that is given lasts"
_NO_CHOICE = {  # why what is known of the variables has no meaning
    **dict.fromkeys(("sca", "sma"), _ROTATES),
    **dict.fromkeys(("ppca", "oppca"), "has dense loadings, with normal posteriors: soppca takes a choice"),
    "kernel_pca": "has no loadings of variables",
}
IN_RECORDS: dict[str, str] = {}  # what is given inside of another argument, and how that is written
FIELDS: dict[str, tuple[str, ...]] = {}  # of each record of a method
_BY_LETTER = {"K": ("n_components", "n_clusters")}  # of R, where case tells it from k
_MEANT = {  # values and functions of other packages, and what they are here
    "": {
        **dict.fromkeys(("prcomp", "princomp", "nsprcomp", "pca"), "do you mean sparse_pca?"),
        **dict.fromkeys(("principal", "fa"), "do you mean varimax or ObliqueRotation?"),
        "SPC": "do you mean pmd?",
        **dict.fromkeys(
            ("SparsePCA", "MiniBatchSparsePCA", "SparseLDA"), "estimators are in spcacore.sklearn"
        ),
        "PCA": "do you mean sparse_pca, or SparsePCA of spcacore.sklearn?",
    },
    "kind": dict.fromkeys(
        ("correlation", "correlations", "corr", "cor", "cov", "Gram", "gram"),
        "a correlation matrix is the covariance of scaled data, so say kind='covariance'; for the "
        "correlations of data, say scale=True",
    ),
    "method": {
        "SPC": "do you mean 'pmd'?",
        **dict.fromkeys(("spca", "elastic_net", "elasticnet", "lasso"), "that is the function spcacore.spca"),
        **dict.fromkeys(("lars", "cd"), "these are ways to solve what the function spcacore.spca solves"),
        **{
            name: f"that is the function spcacore.{name}"
            for name in ("sca", "sma", "ppca", "oppca", "soppca")
        },
    },
}
_ITSELF = {  # what the type or its module is called: what to pass instead
    "AnnData": "adata to spcacore.anndata.sparse_pca, or adata.X, adata.layers[...] or adata.to_df()",
    "MuData": "one modality, {x}['rna'], to spcacore.anndata.sparse_pca",
    "SpatialData": "one table, {x}['table'], to spcacore.anndata.sparse_pca",
    "LazyFrame": "{x}.collect()",
    "Correlation": "{x}.correlation, with kind='covariance'",
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
    found = _BY_LETTER.get(word, _INSTEAD.get(word.lower(), ()))
    if isinstance(found, str):
        here = word.rpartition("_")[0]
        return f"; do you mean {allowed[here]}?" if here in allowed else f": {found}"
    names = [name for name in found if name in allowed]
    if not names and not found:
        from difflib import get_close_matches

        names = [name for name in get_close_matches(word, allowed, 1, 0.75) if name != word]
    return f"; do you mean {listed(allowed[name] for name in names)}?" if names else ""


def meant(name: str, value: Any, allowed: Collection[str]) -> str:
    """A clause on what a value that is not allowed is here, or nothing."""
    from difflib import get_close_matches

    if not isinstance(value, str):
        return ""
    near = get_close_matches(value, allowed, 1, 0.75)
    known = _MEANT.get(name, {}).get(value)
    return f"; {known}" if known else f"; do you mean {near[0]!r}?" if near else ""


def with_advice(function: Callable[..., Any]) -> Any:
    """The same function, which says of options that it does not have what they are called here."""

    first = next(iter(signature(function).parameters), "")
    advice, refuse, itself = _advice, refuse_no_array, () if first == "adata" else _ITSELF

    def call(*given: Any, **options: Any) -> Any:
        try:
            return function(*given, **options)
        except TypeError as error:
            if given and type(given[0]).__name__ in itself:  # which is what is wrong, whatever else is
                refuse(given[0], first)
            trace = error.__traceback__
            if trace is None or trace.tb_next is not None:  # of what the function does
                raise
            message = advice(function, given, options)
            if not message:
                raise
            said = str(error).partition(". Did you mean")[0]  # as Python 3.13 guesses
            raise TypeError(f"{said}{message}") from None

    own = FunctionType(call.__code__, function.__globals__, closure=call.__closure__)  # where doctest looks
    return wraps(function)(own)


def elsewhere(word: str, parameters: Mapping[str, Parameter]) -> str:
    """A clause on an option that a function of these parameters does not have."""
    has = {name for name in parameters if name != "method" or "Method" in str(parameters[name].annotation)}
    inside = {name: call for name, call in IN_RECORDS.items() if call.partition("=")[0] in has}
    if "options" in parameters:
        record = str(parameters["options"].annotation).partition(" ")[0]
        inside |= {name: f"options={record}({name}=...)" for name in FIELDS.get(record, ())}
    if word in inside:
        return f"; say {inside[word]}"
    return instead_of(word, inside | {name: name for name in parameters})


def _advice(function: Callable[..., Any], given: Collection[Any], options: Mapping[str, Any]) -> str:
    """A clause on what is wrong with a call."""
    if hasattr(function, "advice"):  # of options that belong to its model
        found = function.advice(given, options)
        if found:
            return str(found)
    parameters = signature(function).parameters
    unknown = next((name for name in options if name not in parameters), None)
    known = unknown == "choice" or IN_RECORDS.get(unknown or "", "").startswith("choice=")
    if known and function.__name__ in _NO_CHOICE:
        return f": it {_NO_CHOICE[function.__name__]}; to exclude variables, leave them out of X"
    if unknown in _PROGRESS and hasattr(next(iter(given), None), "set_callbacks"):  # of scikit-learn 1.9
        return "; call its set_callbacks(ProgressBar()), with ProgressBar of sklearn.callback"
    if unknown is not None:
        return elsewhere(unknown, parameters)
    names = [name for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY]
    places = len(parameters) - len(names)
    many = len(given) > places and names
    return f"; what comes after place {places} goes by name, as in {names[0]}=" if many else ""


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
        variable = name if name.isidentifier() else "it"
        raise TypeError(f"{name} is of type {kind}; pass {_ITSELF[kind].format(x=variable)}")
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


def warn(message: str, category: type[Warning] = RuntimeWarning) -> None:
    """A warning of the line that called the package, unless a caller within it is `quiet`.

    A RuntimeWarning is about the result, a UserWarning about what was given.
    """
    if not any(message.startswith(beginning) for beginning in _UNSAID.get()):
        warnings.warn(message, category, stacklevel=_outside())


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
