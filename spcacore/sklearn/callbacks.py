"""scikit-learn's callbacks, since its version 1.9: they hear of components or iterations during a fit."""

from __future__ import annotations

from typing import Any

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # before scikit-learn 1.9

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """No callbacks."""

    def with_callbacks(method: Any) -> Any:
        return method


__all__ = ["FitTasks", "fit_tasks"]


class FitTasks:
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


def fit_tasks(estimator: Any, X: Any, n_components: int | None = None) -> FitTasks | None:
    """None where no callback was set, so that a fit costs what it does without."""
    heard = hasattr(estimator, "_skl_callbacks") or hasattr(estimator, "_parent_callback_ctx")
    return FitTasks(estimator, X, n_components) if heard else None
