"""The models that other functions run: a fitting function with keywords, and what sets its sparsity.

`as_model` reads a function of the package, a partial of one, or an estimator. The names of keywords are
checked here; their values are checked by the function itself.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from .._asked import SPARSITY, as_method, sparsity_asked, with_sparsity
from .._labels import matched, symmetric
from .._limits import GRID_CARDINALITY, GRID_VALUES
from .._messages import brief, counted, elsewhere, instead_of, listed
from .._records import record, replaced
from .._types import AnyArray, Names
from .._validation import (
    column_names,
    group_labels,
    integer,
    is_row_blocks,
    is_sequence,
    is_sparse,
    number,
    real_array,
    refuse_products,
    require_memory,
    several,
)
from ..choice import Choice, Prior
from ..generalized.cca import sparse_cca
from ..generalized.lda import sparse_lda
from ..methods import Method
from ..models.alternation import prepare
from ..models.components import sparse_pca
from ..models.elastic_net import elastic_nets, spca
from ..models.rotated import sca, sma
from ..models.structured import oppca, soppca
from ..models.variance import GivenLoadings, from_loadings
from ..operators.partition import row_blocks
from ..operators.sparse import compressed
from ..supports.admissible import variables_of

# The functions that fit, each with the parameters that say how sparse its loadings are; the first is the
# default.
FITTING: dict[str, tuple[Callable[..., Any], tuple[str, ...]]] = {
    "sparse_pca": (sparse_pca, tuple(SPARSITY)),
    "spca": (spca, ("cardinality", "penalty")),
    "sca": (sca, ("l1_bound",)),
    "sma": (sma, ("l1_bound",)),
    "oppca": (oppca, ()),
    "soppca": (soppca, ("cardinality",)),
    "sparse_cca": (sparse_cca, ("l1_bound", "cardinality")),
    "sparse_lda": (sparse_lda, ("cardinality",)),
}
_TOGETHER = ("sca", "sma")  # their bound is on all components together
_SEEDED = ("method", "prior")  # records that may have a source of random numbers
OF_VARIABLES = ("center", "scale", "start", "choice", "prior")  # about single variables
SPARSITY_WORDS = tuple(SPARSITY)  # one of these says how sparse
_DATA = ("X", "Y", "y")
_REFUSED = {
    "callback": "give it to {0} itself",
    "sample_weight": "resamples, folds and permutations weigh the rows",
}


@record
class Model:
    """A function with its keywords; `parameter` names what sets the sparsity."""

    name: str
    function: Callable[..., Any]
    keywords: dict[str, Any]
    n_components: Any
    parameters: tuple[str, ...] = ()
    has_defaults: bool = False  # it is an estimator of this package

    @property
    def is_foreign(self) -> bool:
        """Whether the model is an estimator of another package."""
        return isinstance(self.function, FittedToRows)

    @property
    def method(self) -> Method:
        """The record of the method, for `sparse_pca`."""
        return as_method(self.keywords.get("method", "tpower"))

    @property
    def parameter(self) -> str:
        """The name of the parameter that sets the sparsity: the one given, else the default."""
        if self.name == "sparse_pca":
            return self.method.sparsity
        if self.name == "sparse_cca" and self.keywords.get("method") == "generalized":
            return "cardinality"
        return next((name for name in self.parameters if self.given(name)), self.parameters[0])

    def given(self, *names: str) -> bool:
        """Whether the model has a value other than None for any of these names."""
        of_method = self.method if self.name == "sparse_pca" else None
        return any(
            self.keywords.get(name) is not None
            or (name in SPARSITY and getattr(of_method, name, None) is not None)
            for name in names
        )

    def keyword(self, name: str, otherwise: Any) -> Any:
        """Return a keyword or its default; `otherwise` if the function does not take it."""
        one = inspect.signature(self.function).parameters.get(name)
        return otherwise if one is None else self.keywords.get(name, one.default)

    def of(self, n_components: int) -> Model:
        """Return the model with this number of components."""
        return replaced(self, n_components=n_components)

    def having(self, **keywords: Any) -> Model:
        """Return the model with other keywords; an l1 bound or penalty of `sparse_pca` is the method's."""
        if self.name == "sparse_pca" and self.parameter != "cardinality" and self.parameter in keywords:
            keywords["method"] = with_sparsity(self.method, keywords.pop(self.parameter))
        return replaced(self, keywords={**self.keywords, **keywords})

    def by_place(self, names: Names, p: int) -> Model:
        """Return the model for rows without names: keywords about variables are in the order of `names`."""
        known = {name: self.keywords[name] for name in OF_VARIABLES if name in self.keywords}
        return self.having(**by_place(known, names, p))

    def weighted(self, sample_weight: Any) -> Model:
        """Return the model with weights of the rows."""
        if "sample_weight" not in inspect.signature(self.function).parameters:
            raise TypeError(f"sample_weight is not for {self.name}, which takes none")
        return self.having(sample_weight=sample_weight)

    def begun_at(self, V: Any) -> Model:
        """Return the model with a search that begins at loadings V."""
        begun = self.having(start=V)
        return replaced(begun, function=elastic_nets) if self.name == "spca" else begun

    @property
    def has_seed(self) -> bool:
        """Whether it has a source of random numbers of its own."""
        return any(getattr(self.keywords.get(name), "rng", None) is not None for name in _SEEDED)

    def seeded(self, rng: Any) -> Model:
        """Return the model with this source of random numbers, unless it has one or needs none."""
        if rng is None or self.has_seed:
            return self
        if self.name == "sparse_pca":
            of: Any = self.method
            return self.having(method=replace(of, rng=rng)) if hasattr(of, "rng") else self
        if self.name in ("oppca", "soppca"):
            return self.having(prior=replace(self.keywords.get("prior") or Prior(), rng=rng))
        return self

    def fit(self, *data: Any, **more: Any) -> Any:
        """Fit the model and return the result; `more` are further keywords."""
        return self.function(*data, self.n_components, **self.keywords, **more)

    def prepared(self, X: Any, choices: Sequence[Any] | None = None) -> Any:
        """Return the problem, solver, r and requests of `sparse_pca`, one for each value of the sparsity."""
        options = dict(self.keywords)
        given = [sparsity_asked(self.method, options.pop("cardinality", None))]
        if choices is not None:
            options["method"], given = with_sparsity(self.method, None), [*choices]
        return prepare(X, self.n_components, given, **options)


def by_place(known: dict[str, Any], names: Names, p: int) -> dict[str, Any]:
    """Return options about variables in the order of `names`, without labels of their own."""
    found = {}
    for name, given in known.items():
        if given is not None and name.endswith(("include", "exclude")):
            given = variables_of(given, name, p, names)
        elif given is not None and name.endswith("groups"):
            given = group_labels(given, names, p, name)
        elif isinstance(given, Prior):
            parts = {word: getattr(given, word) for word in ("covariance", "precision")}
            given = replace(given, **{word: symmetric(one, names, word) for word, one in parts.items()})
        elif isinstance(given, Choice):
            words = ("include", "exclude", "groups", "signs")
            given = replace(given, **by_place({word: getattr(given, word) for word in words}, names, p))
        else:
            given = matched(given, names, name)
        found[name] = given
    return found


class FittedToRows:
    """Wraps an estimator as a function of rows: it fits a copy, and returns its `components_` as loadings."""

    def __init__(self, estimator: Any):
        self.estimator = estimator

    def __call__(
        self, X: Any, n_components: Any = None, *, callback: object = None, **changes: Any
    ) -> GivenLoadings:
        require_memory(X, f"{type(self.estimator).__name__} needs")
        one = deepcopy(self.estimator)
        if n_components is not None:
            changes["n_components"] = n_components
        if changes:
            one.set_params(**changes)
        one.fit(X if is_sparse(X) else np.asarray(X))
        if not hasattr(one, "components_"):
            raise TypeError(
                f"{type(one).__name__} has no components_ once it is fitted, as a model must have"
            )
        return from_loadings(np.transpose(one.components_), X, label=type(one).__name__)


def as_model(
    given: Any, place: str, allowed: Collection[str], *, estimators: bool = False, n_components: Any = 1,
    refused: Mapping[str, str] = _REFUSED,
) -> Model:  # fmt: skip
    """Return what the function `place` was given as a `Model`.

    `allowed` has the names of the fitting functions that it takes; with `estimators`, any estimator too.
    `n_components` is the default for a partial that does not say. `refused` maps keywords that have no use
    here to the reason.
    """
    if isinstance(given, Model):
        return given
    # Any estimator
    own = getattr(given, "__spcacore_model__", None)
    if own is None and not isinstance(given, type) and hasattr(given, "fit"):
        if not estimators:
            raise TypeError(f"model={type(given).__name__} is not for {place}, which takes {listed(allowed)}")
        options = given.get_params(deep=False) if hasattr(given, "get_params") else {}
        count = options.pop("n_components", None)  # which is not a sparsity
        return Model(type(given).__name__, FittedToRows(given), {}, count, tuple(options))
    # A fitting function, a partial of it, or an estimator of this package
    whole: Any = given if own is None or isinstance(given, type) else own(allowed)
    function = whole.func if isinstance(whole, partial) else whole
    name = _name_of(function)
    if name is None:
        kinds = f"a fitting function ({listed(allowed)}), a partial of one with keywords, as in partial("
        kinds += f"{next(iter(allowed))}, n_components=2){', or an estimator' * estimators}"
        raise TypeError(f"model must be {kinds}, not {_described(given, place)}")
    if name not in allowed:
        raise TypeError(f"model={name} is not for {place}, which takes {listed(allowed)}")
    function, parameters = FITTING[name]
    keywords = _checked(whole, name, place, refused) if isinstance(whole, partial) else {}
    count = keywords.pop("n_components", n_components)
    return Model(name, function, keywords, count, parameters, own is not None)


def _name_of(function: Any) -> str | None:
    """Return the name of the fitting function, with or without its decorator; None for any other object."""
    plain = getattr(function, "__wrapped__", function)
    name = getattr(plain, "__name__", None)
    if name not in FITTING or not inspect.isfunction(function):
        return None
    known = FITTING[name][0]
    ours = getattr(known, "__wrapped__", known) is plain and function.__globals__ is known.__globals__
    return name if ours else None


def _described(given: Any, place: str) -> str:
    """Return words for an object that is not a model, and what to pass instead."""
    if isinstance(given, str):
        return f"the string {given!r}" + f"; pass the function spcacore.{given} itself" * (given in FITTING)
    if isinstance(given, type):
        fits = hasattr(given, "fit")
        return f"the class {given.__name__}" + f"; pass an estimator, {given.__name__}(...)" * fits
    if isinstance(given, (int, np.integer)) and not isinstance(given, bool):
        return f"{given}; the number of components belongs to the model, partial(..., n_components={given})"
    if hasattr(given, "loadings") or hasattr(given, "loadings_x"):
        return f"a {type(given).__name__}, which is fitted already; pass the function that made it"
    if isinstance(given, partial):
        return f"a partial of {_described(given.func, place)}"
    if callable(given):
        name = getattr(given, "__name__", type(given).__name__)
        if getattr(given, "__globals__", {}).get("__name__", "").startswith("spcacore."):
            return f"{name}, which is not for {place}"
        return f"{name}, a function of your own; an object with fit and components_ may be one"
    return f"{brief(repr(given))} of type {type(given).__name__}"


def _checked(given: partial[Any], name: str, place: str, refused: Mapping[str, str]) -> dict[str, Any]:
    """Return the keywords of a partial; raise TypeError for one that the function does not take."""
    function = FITTING[name][0]
    known = inspect.signature(function).parameters
    # A function with **keywords explains those that it does not take by itself
    tells = inspect.unwrap(function).__code__.co_flags & inspect.CO_VARKEYWORDS
    if given.args:
        raise TypeError(
            f"the model has what goes by place: leave the data out, and name the rest, as in partial({name}, "
            "n_components=2)"
        )
    for option in given.keywords:
        if option in _DATA:
            raise TypeError(f"{option} of the model cannot be used here: data are given to {place} itself")
        if option in refused and given.keywords[option] is not None:
            raise TypeError(f"{option} of the model cannot be used here: {refused[option].format(place)}")
        if option not in known and not tells:
            clause = elsewhere(option, known, given.keywords.get("method"))
            raise TypeError(f"{option} is no option of {name}{clause}")
    return {option: value for option, value in given.keywords.items() if option not in refused}


# ---- options that go with the model --------------------------------------------------------------------


def takes_model(*names: str) -> Callable[[Callable[..., Any]], Any]:
    """Mark a function that runs one of these models, so that errors say where the model's options go.

    If a caller gives such an option to the function itself, `with_advice` adds the advice to the error.
    """

    def advised(function: Callable[..., Any]) -> Any:
        function.advice = partial(_call_with_model, function, names)  # type: ignore[attr-defined]
        return function

    return advised


def _call_with_model(
    function: Callable[..., Any], names: Collection[str], given: Collection[Any], options: Mapping[str, Any]
) -> str:
    """Return the advice: the call with the model's options moved into the model; empty if there are none."""
    own = inspect.signature(function).parameters
    taken = {name: inspect.signature(FITTING[name][0]).parameters for name in names}
    of_model = {n: _shown(x) for n, x in options.items() if n not in own}
    able = [name for name in names if of_model.keys() <= taken[name].keys()]
    if not of_model:
        return ""
    if not able:
        known = {
            n: f"{n} of the model, partial({name}, {n}=...)" for name in [*names][::-1] for n in taken[name]
        }
        return instead_of(next(n for n in of_model if n not in known), {**known, **{n: n for n in own}})
    # Which model, and its options
    said = options.get("model")
    name = said if said in able else _name_of(said) or able[0]
    of_grid = [n for n in FITTING[name][1] if n in of_model and "grid" in own][:1]
    grid = "".join(f", grid={of_model.pop(n)}" for n in of_grid)
    number = next((x for x in [*given][1:] if isinstance(x, int) and "n_components" not in own), None)
    if number is not None:
        of_model = {"n_components": str(number), **of_model}
    model = f"partial({name}, {', '.join(f'{n}={x}' for n, x in of_model.items())})" if of_model else name
    return f"; options of the model go with it: model={model}{grid}"


def _shown(value: Any) -> str:
    """Return a value as it is written in a call, or "..." if it is long."""
    text = repr(value) if isinstance(value, (int, float, str, list, tuple, dict, type(None))) else "..."
    return text if len(text) <= 40 else "..."


# ---- data whose rows can be weighed or taken, with the names of their columns ---------------------------


@record
class NamedArray:
    """An array with the names of its columns."""

    array: AnyArray
    columns: Names

    @property
    def shape(self) -> tuple[int, ...]:
        return self.array.shape

    def __array__(self, dtype: Any = None, copy: Any = None) -> AnyArray:
        return self.array


def as_rows(X: Any, name: str, needed: str, finite: bool = True) -> Any:
    """Return X as an array with names, a CSR matrix or row blocks; `needed` says for what, in errors."""
    refuse_products(X, name, needed)
    if is_row_blocks(X):
        return row_blocks(X)
    if is_sparse(X):
        return compressed(X).tocsr()
    return NamedArray(real_array(X, name, ndim=2, finite=finite), column_names(X))


def plain_rows(X: Any) -> Any:
    """Return the rows without names, so that they can be taken by index."""
    return X.array if isinstance(X, NamedArray) else X


# ---- values of the sparsity that are tried: of all components, or of each given the choices for earlier ones


Grid = tuple[str, AnyArray, list[AnyArray] | None]


def refuse_nested(grid: Any) -> None:
    """Raise TypeError for a grid for each component, where only one grid for all is possible."""
    values = next(iter(grid.values()), ()) if isinstance(grid, Mapping) else grid
    if _is_nested(values):
        raise TypeError("grid must be a sequence of numbers, of all components; select_sparsity takes grids")


def _is_nested(grid: Any) -> bool:
    """Whether a grid has a grid for each component."""
    return is_sequence(grid) and any(map(is_sequence, grid))


def grid_of(model: Model, grid: Any, X: Any) -> Grid:
    """Return the parameter that a grid is for, its values, and a list of grids if each component has one.

    Values go from the sparsest to the densest. `grid` may be None, a sequence, a sequence of sequences, or a
    mapping that names the parameter.
    """
    # The parameter that the values belong to
    parameter, name = None, "grid"
    if isinstance(grid, Mapping):
        if len(grid) != 1:
            named = listed([*map(str, grid)] or ["none"], "and")
            raise TypeError(f"grid must have the values of one parameter, not of {named}")
        ((parameter, grid),) = grid.items()
        name = f"grid[{parameter!r}]"
        takes = (model.parameter,) if model.name == "sparse_pca" else model.parameters
        if parameter not in takes:
            what = f"method {model.method.name!r}" if model.name == "sparse_pca" else model.name
            raise TypeError(f"{name}: {what} takes {listed(takes or ['nothing'])}, not {parameter}")
    elif model.is_foreign:
        raise TypeError(
            f"grid of {model.name} must be a mapping that says of what, as in {{'alpha': [1, 2]}}"
        )
    for one in SPARSITY:
        if model.given(one):
            raise TypeError(
                f"{one} of the model must be left out: grid has the values of the sparsity to try"
            )
    parameter = model.parameter if parameter is None else parameter
    # The values
    if grid is None:
        return parameter, _default(model, parameter, X), None
    if not _is_nested(grid):
        return parameter, _checked_value(grid, name, parameter), None
    # A grid for each component
    parts = list(grid)
    if model.name in _TOGETHER:
        raise TypeError(f"l1_bound of {model.name} is of all components together: give one grid")
    if len(parts) != integer(model.n_components, "n_components", 1):
        raise ValueError(
            f"{name} has {counted(len(parts), 'grid')} for {counted(model.n_components, 'component')}"
        )
    each = [_checked_value(one, f"{name}[{t}]", parameter) for t, one in enumerate(parts)]
    return parameter, np.zeros(1), each


def _default(model: Model, parameter: str, X: Any) -> AnyArray:
    """Return the default grid of a parameter."""
    if parameter == "penalty":
        raise TypeError("grid must be given: a sequence of numbers, the penalties")
    most = min(_variables(X), GRID_CARDINALITY)
    if parameter == "l1_bound":
        r = model.n_components if model.name in _TOGETHER else 1
        return np.geomspace(r, r * math.sqrt(most), GRID_VALUES if most > 1 else 1)
    return np.unique(np.geomspace(1, most, GRID_VALUES).round().astype(np.intp))


def _checked_value(values: Any, name: str, parameter: str) -> AnyArray:
    """Return the values in order, from the sparsest to the densest; each may occur once."""
    values = several(values, name, "numbers, one for each choice", ": there is nothing to choose from")
    whole = parameter == "cardinality"
    for i, value in enumerate(values):
        number(value, f"{name}[{i}]", 0)
        if whole:
            integer(value, f"{name}[{i}]", 1)
    array = np.array(values, np.intp if whole else np.float64 if parameter in SPARSITY else None)
    array = np.sort(array)[:: 1 if parameter in ("cardinality", "l1_bound") else -1]
    if (array[1:] == array[:-1]).any():
        raise ValueError(f"{name} has a value twice: {array[1:][array[1:] == array[:-1]][0]:g}")
    return array


def _variables(X: Any) -> int:
    """Return the number of variables; 1 if X is not a matrix, which leads to an error later."""
    try:
        shape = np.shape(X)
    except ValueError:  # ragged
        return 1
    p = shape[1] if len(shape) == 2 else 1
    return int(p) if isinstance(p, (int, np.integer)) and p > 0 else 1
