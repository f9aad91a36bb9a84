"""What the estimators share: checks of their input, scores, and rows from scores."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from inspect import signature
from numbers import Integral
from typing import Any, Self, TypeVar, dataclass_transform

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils import check_array, column_or_1d
from sklearn.utils.validation import (
    _check_n_features,
    _check_sample_weight,
    check_is_fitted,
    validate_data,
)

from .._asked import as_method
from .._labels import has_coordinates, joined
from .._limits import BLOCKS_SUBMATRIX_ORDER
from .._messages import counted
from .._records import filled
from .._types import AnyArray, Array, MatrixLike, Names, Weights
from .._validation import TAKES_MISSING, as_seed, column_names, integer, is_row_blocks
from ..operators.blocks import RowBlocks
from ..operators.moments import Moments
from ..operators.partition import row_blocks
from ..results import check_scores, to_data_units
from ..selection.model import OF_VARIABLES, by_place
from ..selection.tuning import MODELS

_Class = TypeVar("_Class")

# ---- what the estimators are given: arrays by the checks of scikit-learn, blocks of rows as they are ----


def checked_input(estimator: Any, X: Any, *y: Any, reset: bool = True, least: int = 1, **checks: Any) -> Any:
    """Return X, or X and y, as `validate_data` returns them; row blocks are not computed.

    X must have `least` rows or more. With `reset`, the estimator is fitted to X.
    """
    X = X.to_pandas() if has_coordinates(X) else X  # scikit-learn does not read the names of a DataArray
    if not any(map(is_row_blocks, (X, *y))):
        return validate_data(
            estimator, X, *y, reset=reset, accept_sparse=("csr", "csc"), dtype=(np.float64, np.float32),
            ensure_min_samples=least, **checks,
        )  # fmt: skip
    if is_row_blocks(X):
        rows = row_blocks(X)
        _check_columns(estimator, rows, reset)
        if rows.shape[0] < least:
            raise ValueError(
                f"X has {counted(rows.shape[0], 'row')}, and {type(estimator).__name__} needs {least}"
            )
        rows = rows.held() if reset else rows
    else:
        finite = checks["ensure_all_finite"]
        rows = checked_input(estimator, X, reset=reset, least=least, ensure_all_finite=finite)
    if not y:
        return rows
    if y[0] is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")
    several = checks.get("multi_output", False)
    other = second_side(y[0]) if several else column_or_1d(np.asarray(y[0]))
    if other.shape[0] != rows.shape[0]:
        raise ValueError(f"y has {counted(other.shape[0], 'row')}, and X has {rows.shape[0]}")
    return rows, other


def second_side(y: Any) -> Any:
    """Return a second matrix or a single variable, checked; row blocks stay so."""
    if is_row_blocks(y):
        return row_blocks(y) if getattr(y, "ndim", 2) == 2 else np.asarray(y)
    return check_array(y, accept_sparse=("csr", "csc"), ensure_2d=False, input_name="y")


def _check_columns(estimator: Any, rows: RowBlocks, reset: bool) -> None:
    """Keep or compare the number of columns and their names, as scikit-learn does."""
    names = rows.names
    _check_n_features(estimator, rows, reset)
    if reset:
        estimator.__dict__.pop("feature_names_in_", None)
        if names is not None:
            estimator.feature_names_in_ = np.asarray(names, object)
    elif names is not None and names_seen(estimator) not in (None, names):
        raise ValueError(
            "The feature names should match those that were passed during fit, in the same order"
        )


def names_seen(estimator: Any) -> tuple[Any, ...] | None:
    """Return the names of the variables of the fit, or None."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(names)


_ROWS = "Parameters\n----------\nX : array-like or sparse matrix of shape (m, p)\n"
_SPIKED = """\
Examples
--------
>>> from spcacore.datasets import make_spiked
>>> from spcacore.sklearn import {0}
>>> X, planted = make_spiked(100, 30, cardinality=5, rng=0)
>>> model = {0}(2).fit(X)"""
_NO_MATRIX = """\
Raises
------
ValueError
    If there are too many variables for a p x p matrix (use `fit`), or if X has NaN."""
PARAGRAPHS = {
    "count": "n_components : int or None, default 2\n    In [1, min(n, p)]. None: the largest possible "
    "number, `min(n - 1, p)` (without centering, `min(n, p)`).",
    "center_scale": """\
center : bool or array-like of shape (p,), default True
    Subtract the means of the variables, or these numbers.
scale : bool or array-like of shape (p,), default False
    Divide each variable by its standard deviation, or by these positive numbers.""",
    "random_state": "random_state : int, RandomState or None, default None\n"
    "    For random starts. None is a fixed seed here, so that results repeat.",
    "features": "n_features_in_ : int\nfeature_names_in_ : ndarray of shape (p,)",
    "noise_variance": "noise_variance_ : float\n"
    "    Noise variance of the model that `score` uses: the mean variance in all other directions.",
    "spca_example": _SPIKED.format("SparsePCA"),
    "ppca_example": _SPIKED.format("PPCA"),
    "structured_example": _SPIKED.format("StructuredPCA"),
    "wine_example": """\
Examples
--------
>>> from sklearn.datasets import load_wine
>>> from spcacore.sklearn import SparseLDA
>>> X, y = load_wine(return_X_y=True)
>>> model = SparseLDA(cardinality=3).fit(X, y)""",
    "halves_example": """\
Examples
--------
>>> from sklearn.datasets import load_digits
>>> from spcacore.sklearn import SparseCCA
>>> images = load_digits().images
>>> X, y = images[:, :, :4].reshape(-1, 32), images[:, :, 4:].reshape(-1, 32)
>>> model = SparseCCA(l1_bound=2).fit(X, y)""",
    "circles_example": """\
Examples
--------
>>> from sklearn.datasets import make_circles
>>> from spcacore.sklearn import KernelPCA
>>> X, y = make_circles(200, factor=0.3, noise=0.05, random_state=0)
>>> model = KernelPCA(2, bandwidth=0.5, ridge=1e-3).fit(X)""",
    "clusters_example": """\
Examples
--------
>>> import numpy as np
>>> from spcacore.sklearn import SparseHierarchical, SparseKMeans
>>> X = np.random.default_rng(0).standard_normal((30, 200))
>>> X[20:, :10] += 3""",
    "fit": """\
Parameters
----------
X : array-like or sparse matrix of shape (n, p)
    CSR and CSC matrices are not made dense; float32 stays float32. Nothing is copied.
y : ignored
sample_weight : array-like of shape (n,), optional
    How many samples each row stands for, as in the function.

Returns
-------
self""",
    "fit_rows": """\
Parameters
----------
X : array-like or sparse matrix of shape (n, p)
y : ignored

Returns
-------
self""",
    "two_sides": """\
Parameters
----------
X : array-like or sparse matrix of shape (n, p)
y : array-like or sparse matrix of shape (n, q) or (n,)

Returns
-------""",
    "weighted_sides": """\
Parameters
----------
X : array-like or sparse matrix of shape (n, p)
y : array-like or sparse matrix of shape (n, q) or (n,)
sample_weight : array-like of shape (n,), optional
    How many samples each row stands for, as in the function.

Returns
-------""",
    "rows_to": f"{_ROWS}\nReturns\n-------",
    "scores_to_rows": """\
Parameters
----------
X : array-like of shape (m, r)

Returns
-------
ndarray of shape (m, p)""",
    "batches": "Only the mean and the covariance of the rows are kept, p x p numbers. Batches of any size,\n"
    "in any order, give the result of `fit` for all rows, up to rounding. `fit` forgets earlier batches.",
    "no_matrix": _NO_MATRIX,
    "covariance": "Returns\n-------\nndarray of shape (p, p)",
}


@dataclass_transform(eq_default=False)
def estimator(cls: type[_Class]) -> type[_Class]:
    """Make a class whose fields are the parameters of an estimator, and fill in its docstrings."""
    return filled(PARAGRAPHS)(dataclass(eq=False, repr=False)(cls))


def as_rng(random_state: Any) -> Any:
    """Return a random state as functions take it: None is a fixed seed, a RandomState gives a number."""
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if not isinstance(random_state, np.random.Generator):  # a check would draw from a Generator
        as_seed(random_state, "random_state")
    return random_state


def with_seed(record: Any, random_state: Any) -> Any:
    """Return a record with the random state of the estimator, if it takes one and has none."""
    if random_state is None or not hasattr(record, "rng") or record.rng is not None:
        return record
    return replace(record, rng=as_rng(random_state))


def options_of(estimator: Any, function: Callable[..., Any]) -> dict[str, Any]:
    """Return the parameters of an estimator that are options of its function."""
    takes = signature(function).parameters
    params = estimator.get_params(deep=False)
    return {name: given for name, given in params.items() if name in takes and name != "n_components"}


class TakesSparse(BaseEstimator):
    """An estimator of dense or sparse matrices."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


@filled(PARAGRAPHS)
class Transformer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, TakesSparse):
    """An estimator whose `transform` gives scores of components."""

    n_components: Any
    _function: Callable[..., Any]  # the function that `fit` calls
    _takes_missing = False

    def __spcacore_model__(self, allowed: Collection[str]) -> partial[Any]:
        """Return what `fit` calls, with the parameters that are not the default."""
        function, default = self._model_function(allowed), signature(type(self)).parameters
        params = options_of(self, function)
        given = {name: value for name, value in params.items() if value is not default[name].default}
        seed = getattr(self, "random_state", None)
        if seed is not None:
            given |= self._seeded(seed)
        return partial(function, **given, n_components=self.n_components)

    def _seeded(self, seed: Any) -> dict[str, Any]:
        """Return the record that gets the random state of the estimator."""
        return {"method": with_seed(as_method(self.method), seed)}

    def _model_function(self, allowed: Collection[str]) -> Callable[..., Any]:
        """Return the function that `fit` calls, one of those allowed."""
        return type(self)._function

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        tags.input_tags.allow_nan = self._takes_missing
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def _checked(self, X: Any, *y: Any, finite: Any = True, **checks: Any) -> Any:
        """Return the input, checked; an error about NaN says which methods take it."""
        try:
            return checked_input(self, X, *y, ensure_all_finite=finite, **checks)
        except ValueError as error:
            if "X contains NaN" not in str(error):
                raise
            where = "partial_fit" if self._takes_missing else type(self).__name__
            raise ValueError(
                f"Input X contains NaN, which {where} does not take: impute it. "
                f"{TAKES_MISSING}, and for the estimator PPCA"
            ) from None

    def _training(self, X: Any, *y: Any, **checks: Any) -> Any:
        """Return the X of a fit, not copied."""
        return self._checked(X, *y, finite=self._refuses_missing(), least=2, **checks)

    def _refuses_missing(self) -> bool:
        """Return whether NaN is refused before the function is called, which most do themselves."""
        return False

    def _new(self, X: Any) -> Any:
        """Return new rows, checked."""
        check_is_fitted(self)
        return self._checked(X, finite=not self._takes_missing, reset=False)

    def _count(self, n: int, p: int) -> Any:
        """Return how many components to look for."""
        return self.n_components

    def _fit_to(self, *data: Any, names: Names, sample_weight: Any, **more: Any) -> None:
        """Call the function, and keep what it finds."""
        model, (n, p) = self.__spcacore_model__(MODELS), data[0].shape
        given = model.keywords | {"n_components": self._count(n, p)} | more
        known = {name: given[name] for name in OF_VARIABLES if name in given}
        given |= by_place(known, names_seen(self), p)  # the checked X has no names
        result = model.func(*data, **given, sample_weight=sample_weight)
        self._set(replace(result, names=names))

    def _set(self, result: Any) -> None:
        """Set the attributes that all results with one matrix of loadings have."""
        self.result_ = result
        self.components_: AnyArray = result.loadings.T
        self.n_components_: int = result.loadings.shape[1]
        self._set_iterations(result)

    def _set_iterations(self, result: Any) -> None:
        """Set the number of iterations."""
        self.n_iter_: int = max(1, int(np.max(result.n_iter, initial=1)))

    def transform(self, X: MatrixLike) -> AnyArray:
        """Scores of the rows of X, as the method of the same name of `result_` gives them.

        They are the centered and scaled rows times the loadings or, of discriminants, the scalings; the
        posterior means of probabilistic components, from the observed entries; and expansions in a kernel. If
        that is "precomputed", X is the kernel between these rows and the training rows, (m, n).

        {rows_to}
        ndarray of shape (m, r)

        {spca_example}
        >>> model.transform(X[:5]).shape
        (5, 2)
        """
        X = self._new(X)
        return self.result_.transform(X)


@filled(PARAGRAPHS)
class Invertible(Transformer):
    """An estimator whose scores give rows back."""

    def _set(self, result: Any) -> None:
        super()._set(result)
        self.mean_: AnyArray | None = result.mean
        self.scale_: AnyArray | None = result.scale
        self.explained_variance_: Array = result.explained_variance
        self.explained_variance_ratio_: Array | None = getattr(result, "explained_variance_ratio", None)

    def inverse_transform(self, X: MatrixLike) -> AnyArray:
        """Rows from their scores.

        For the scores `transform(X)` they are the projection of X onto the span of the components.

        {scores_to_rows}

        {spca_example}
        >>> model.inverse_transform(model.transform(X)).shape
        (100, 30)
        """
        check_is_fitted(self)
        S = self._scores(X)
        rows: AnyArray = S @ np.linalg.pinv(self.components_.T).astype(S.dtype, copy=False)
        return to_data_units(rows, self.mean_, self.scale_)

    def _scores(self, X: Any) -> AnyArray:
        """Return scores, checked."""
        return check_scores(X, self._n_features_out, self.get_feature_names_out())


# ---- fits of all rows, of which callbacks hear, and from the moments of rows that come in batches --------


try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """In place of scikit-learn's class: no callbacks."""

    def with_callbacks(method: Any) -> Any:
        return method


@filled(PARAGRAPHS)
class Batches(CallbackSupportMixin, Invertible):
    """An estimator whose fit depends on the mean and the covariance of the rows alone."""

    _moments: Moments
    _in_turn = False  # a callback has a task for each component, else for each iteration
    _of_rank = False  # at most as many components as the rows about their mean can have

    @with_callbacks
    def fit(self, X: MatrixLike, y: object = None, sample_weight: Weights = None) -> Self:
        """Find the components of X.

        {fit}

        {spca_example}
        >>> model.components_.shape
        (2, 30)
        """
        self.__dict__.pop("_moments", None)  # forget earlier batches
        names, sample_weight = column_names(X), joined(X, sample_weight, "sample_weight")
        rows = self._training(X)
        r = self._count(*rows.shape)
        in_turn = self._in_turn and not getattr(self, "refine", False) and isinstance(r, Integral)
        with fit_tasks(self, rows, int(r) if in_turn else None) as callback:
            self._fit_rows(rows, sample_weight, names, callback)
        return self

    def partial_fit(self, X: MatrixLike, y: object = None, sample_weight: Weights = None) -> Self:
        """Fit to these rows together with the rows of earlier calls.

        {batches}

        {fit}

        {no_matrix}

        {spca_example}
        >>> parts = SparsePCA(2).partial_fit(X[:60]).partial_fit(X[60:])
        >>> bool(abs(parts.components_ - model.components_).max() < 1e-6)
        True
        """
        fresh = not hasattr(self, "_moments")
        given = joined(X, sample_weight, "sample_weight")
        rows = self._checked(X, reset=fresh)
        if rows.shape[1] > BLOCKS_SUBMATRIX_ORDER:
            raise ValueError(
                f"partial_fit keeps a matrix of p x p, for at most {BLOCKS_SUBMATRIX_ORDER} variables, and X "
                f"has {counted(rows.shape[1], 'variable')}: use fit, which also takes rows in blocks"
            )
        weight = None
        if given is not None:
            weight = _check_sample_weight(given, rows, dtype=np.float64, ensure_non_negative=True)
        total = Moments.of(rows, sample_weight=weight)
        if not fresh:
            total = self._moments + total
        least = integer(self.n_components, "n_components", 1, rows.shape[1]) + 1 if self._of_rank else 2
        if total.n_samples > 1 and total.shape[0] >= least:  # else collect more rows
            self._fit_rows(total, None, names_seen(self))
            self.n_samples_seen_: int = total.shape[0]
        self._moments = total
        return self

    def _fit_rows(self, X: Any, sample_weight: Any, names: Any, callback: Any = None) -> None:
        """Fit these rows, or their moments."""
        self._fit_to(X, names=names, sample_weight=sample_weight, callback=callback)
        self._density = self._model_of(X, sample_weight)
        self.noise_variance_: float = self._density.noise_variance

    def _model_of(self, X: Any, sample_weight: Any) -> Any:
        """Return the probabilistic model of the rows."""
        return self.result_


@contextmanager
def fit_tasks(estimator: Any, X: Any, n_components: int | None) -> Iterator[Callable[[Any], None] | None]:
    """Give a `callback` that tells the callbacks of a scikit-learn estimator, or None if it has none.

    There is a task for each component or, if `n_components` is None, for each iteration. If a callback asks
    for the end of the fit, the search ends and keeps what it has found.
    """
    if not (hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")):
        yield None
        return
    told, each = {"estimator": estimator, "X": X}, n_components is not None
    context = estimator._init_callback_context(max_subtasks=n_components)
    context.call_on_fit_task_begin(**told)
    task, component = None, -1

    def end() -> bool:
        """End the task in progress; return whether the fit is to end, too."""
        nonlocal task
        ended, task = task, None
        return ended is not None and bool(ended.call_on_fit_task_end(**told))

    def tell(progress: Any) -> None:
        """Begin a task when a component or iteration begins, and end it when that is done."""
        nonlocal task, component
        if not each or progress.component != component:
            end()
            component = progress.component
            task = context.subcontext(task_name="component" if each else "iteration")
            task.call_on_fit_task_begin(**told)
        if (not each or progress.value is not None) and end():
            raise StopIteration

    yield tell
    end()
    context.call_on_fit_task_end(**told)
