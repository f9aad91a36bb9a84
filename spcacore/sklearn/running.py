"""`partial_fit` from the moments of rows that come in batches."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import _check_sample_weight

from .._docstrings import filled
from .._labels import joined
from .._limits import BLOCKS_SUBMATRIX_ORDER
from .._messages import counted
from .._types import MatrixLike, Weights
from .._validation import integer
from ..operators.moments import Moments
from .base import PARAGRAPHS, Transformer

__all__ = ["Batches", "WeightedBatches", "fit_tasks"]


class Batches(Transformer):
    """Estimators whose fit depends on the mean and the covariance of the rows alone."""

    _moments: Moments

    def _take(self, X: Any, sample_weight: Any) -> Self:
        """Fit these rows and all of earlier batches."""
        fresh = not hasattr(self, "_moments")
        sample_weight = joined(X, sample_weight, "sample_weight")
        X = self._checked(X, reset=fresh)
        if X.shape[1] > BLOCKS_SUBMATRIX_ORDER:
            raise ValueError(
                f"partial_fit keeps a matrix of p x p, for at most {BLOCKS_SUBMATRIX_ORDER} variables, and X "
                f"has {counted(X.shape[1], 'variable')}: use fit, which also takes rows in blocks"
            )
        weight = None
        if sample_weight is not None:
            weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        total = Moments.of(X, sample_weight=weight)
        if not fresh:
            total = self._moments + total
        if total.n_samples > 1 and total.shape[0] >= self._least_rows(X.shape[1]):  # else go on collecting
            names = getattr(self, "feature_names_in_", None)
            self._fit_rows(total, None, None if names is None else tuple(names))
            self.n_samples_seen_: int = total.shape[0]
        self._moments = total
        return self

    def _least_rows(self, p: int) -> int:
        """From how many rows on there is something to fit."""
        return 2

    def _fit_rows(self, X: Any, sample_weight: Any, names: Any, callback: Any = None) -> None:
        """Fit these rows, or their moments."""
        raise NotImplementedError

    def _rows_of_rank(self, p: int, n_components: Any) -> int:
        """Rows about their mean that can have so many components."""
        return integer(n_components, "n_components", 1, p) + 1

    def _afresh(self) -> None:
        """Forget the batches."""
        self.__dict__.pop("_moments", None)


@filled(PARAGRAPHS)
class WeightedBatches(Batches):
    """The same, of rows that may have weights."""

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
        return self._take(X, sample_weight)


# ---- scikit-learn's callbacks, since its version 1.9: they hear of components or iterations during a fit


try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """No callbacks."""

    def with_callbacks(method: Any) -> Any:
        return method


class _FitTasks:
    """A `callback` of the functions that tells the callbacks of an estimator: a task for each component, or,
    where all are found together, for each iteration.

    A callback that asks for the end of the fit ends the search, which keeps what it has found.
    """

    def __init__(self, estimator: Any, X: Any, n_components: int | None):
        self.estimator, self.X, self.each = estimator, X, n_components is not None
        self.context: Any = estimator._init_callback_context(max_subtasks=n_components)
        self.context.call_on_fit_task_begin(estimator=estimator, X=X)
        self.task: Any = None
        self.component: int = -1

    def __call__(self, progress: Any) -> None:
        if not self.each or progress.component != self.component:
            self._end()
            self.component = progress.component
            name = "component" if self.each else "iteration"
            self.task = self.context.subcontext(task_name=name)
            self.task.call_on_fit_task_begin(estimator=self.estimator, X=self.X)
        if (not self.each or progress.value is not None) and self._end():
            raise StopIteration

    def _end(self) -> bool:
        """End the task in progress; whether the fit is to end, too."""
        task, self.task = self.task, None
        return task is not None and bool(task.call_on_fit_task_end(estimator=self.estimator, X=self.X))

    def close(self) -> None:
        self._end()
        self.context.call_on_fit_task_end(estimator=self.estimator, X=self.X)


def fit_tasks(estimator: Any, X: Any, n_components: int | None = None) -> _FitTasks | None:
    """None where no callback was set, so that a fit costs what it does without."""
    heard = hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")
    return _FitTasks(estimator, X, n_components) if heard else None
