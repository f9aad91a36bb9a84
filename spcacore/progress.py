"""What a callback receives, and a progress bar: of tqdm or rich if one is installed, else a line of text."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Literal, TypeAlias

from ._validation import Hook

__all__ = ["Progress", "ProgressBar", "SelectionProgress"]
__dir__: Callable[[], list[str]] = __all__.copy


@dataclass(frozen=True)
class Progress:
    """What a `callback` receives.

    Attributes
    ----------
    component : int
        Index of the component that is in progress or just finished, from 0.
    n_components : int
    n_iter : int
        Iterations from the present start; for a finished component, its number of iterations.
    value : float or None
        Variance of a finished component; None before. During a refinement, the variance explained so far.
    refining : bool
        Whether a refinement goes on, so that `value` may still rise.

    Notes
    -----
    A callback that raises StopIteration ends the search early. It is not called again, and the call returns
    what was found so far:

    * components found one after another (`sparse_pca`, `oppca`, `soppca`, `extend`): those that are
      finished, perhaps none. Directions (`sparse_eigen`, `sparse_lda`) and pairs (`sparse_cca`): at least
      the first one, perhaps from an unfinished search, with ``converged=False``;
    * one component, or several found together: the best point so far, with ``converged=False``; a bound:
      the least so far;
    * `sparsity_path`: the values that are finished;
    * `select_sparsity`, `select_n_components`: the choice by the folds or permutations that are finished;
      a RuntimeError if there are fewer than two.

    ``callback=True`` draws a progress bar, see `spcacore.progress.ProgressBar`.

    Any other exception reaches the caller. StopIteration from an operator that is given as X is an error.

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
    >>> seen = []
    >>> result = spcacore.sparse_pca(X, 2, cardinality=5, callback=seen.append)
    >>> [state.component for state in seen if state.value is not None]
    [0, 1]
    """

    component: int
    n_components: int
    n_iter: int
    value: float | None = None
    refining: bool = False


@dataclass(frozen=True)
class SelectionProgress:
    """What a `callback` of a path or a selection receives.

    Attributes
    ----------
    done, total : int
        Number of searches that are finished, and of all searches.
    value : int or float
        The sparsity, or the number of components, of the search that has just finished.

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
    >>> seen = []
    >>> path = spcacore.sparsity_path(X, spcacore.sparse_pca, [5, 10], callback=seen.append)
    >>> [(state.done, state.total) for state in seen]
    [(1, 2), (2, 2)]
    """

    done: int
    total: int
    value: float


Callback: TypeAlias = Callable[[Progress], object] | Literal[True]
SelectionCallback: TypeAlias = Callable[[SelectionProgress], object] | Literal[True]


def check_callback(callback: Callback | SelectionCallback | Hook | None) -> Hook:
    """Return the hook for a callback: True stands for a progress bar, None for no callback."""
    if isinstance(callback, Hook):
        return callback
    if not (callback is None or callback is True or callable(callback)):
        raise TypeError(f"callback must be callable, True or None, not {callback!r}")
    return Hook(ProgressBar() if callback is True else callback)


@dataclass(eq=False)
class ProgressCounter:
    """Counts finished searches, and tells the hook their number."""

    hook: Hook
    total: int
    done: int = 0

    @property
    def ended(self) -> bool:
        return self.hook.ended

    def __call__(self, value: float) -> bool:
        self.done += 1
        return self.hook(SelectionProgress(self.done, self.total, value))


def refuse_ended(done: int, what: str, least: int = 2) -> None:
    """Raise RuntimeError if the callback has ended a selection before there was enough to choose by."""
    if done < least:
        raise RuntimeError(f"the callback ended the selection before two {what} were done: nothing is chosen")


class _Line:
    """A line of text that is written again and again."""

    _width = 0

    def show(self, done: int, total: int, text: str) -> None:
        """Show how many of all are done, and a text."""
        line = f"{done}/{total}, {text}" if done else text
        print(f"\r{line:{self._width}}", end="", file=sys.stderr, flush=True)
        self._width = len(line)

    def close(self) -> None:
        print(file=sys.stderr)


class _Tqdm(_Line):
    """The same by tqdm."""

    def __init__(self, **options: Any):
        from tqdm.auto import tqdm

        self._bar = tqdm(**options)

    def show(self, done: int, total: int, text: str) -> None:
        self._bar.total = total if done else None
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(done - self._bar.n)
        self._bar.refresh()

    def close(self) -> None:
        self._bar.close()


class _Rich(_Line):
    """The same by rich."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import Progress as RichProgress

        self._bar = RichProgress(console=Console(stderr=True))
        self._task = self._bar.add_task("", total=None)
        self._bar.start()

    def show(self, done: int, total: int, text: str) -> None:
        text = f"{done}/{total}, {text}" if done else text
        self._bar.update(self._task, total=total if done else None, completed=done, description=text)

    def close(self) -> None:
        self._bar.stop()


class ProgressBar:
    """A `callback` that draws a progress bar on standard error; ``callback=True`` makes one for the call.

    It is a bar of tqdm (``pip install tqdm``) or of rich where one of them is installed, and else a line that
    is written again. It counts components, or the searches of `sparsity_path`, `stability` and the
    selections, and shows the current iteration or value. It has no end as long as none is finished, as where
    components are found together (`spca`, `sca`). One bar can be used for several calls, one after
    another; `with` closes it at the end.

    Parameters
    ----------
    **options
        Options of `tqdm.tqdm`: `desc`, `file`, `leave`, `disable`, `mininterval`, ...

    Raises
    ------
    ImportError
        If there are options, and tqdm is not installed.

    Examples
    --------
    >>> import io, spcacore
    >>> from spcacore.progress import ProgressBar
    >>> X, planted = spcacore.datasets.make_spiked(100, 200, rng=0)
    >>> with ProgressBar(desc="path", file=io.StringIO()) as bar:
    ...     path = spcacore.sparsity_path(X, spcacore.sparse_pca, [5, 10, 20], callback=bar)
    """

    _bar: _Line | None = None
    _total = _done = 0  # of the bar that is shown

    def __init__(self, **options: Any):
        if options and not _is_installed("tqdm.auto"):
            raise ImportError(
                'options of a progress bar are those of tqdm: pip install tqdm, or ".[progress]" from the '
                "source directory"
            )
        self._options = options

    def _new(self) -> _Line:
        if _is_installed("tqdm.auto"):
            return _Tqdm(**self._options)
        return _Rich() if _is_installed("rich.progress") else _Line()

    def __call__(self, progress: Progress | SelectionProgress) -> None:
        if isinstance(progress, Progress):
            finished = progress.value is not None and not progress.refining
            done, total = progress.component + finished, progress.n_components
            text = f"iteration {progress.n_iter}"
        else:
            done, total, text = progress.done, progress.total, f"{progress.value:g}"
        if self._bar is None or self._total != total or done < self._done:
            self.close()
            self._bar = self._new()
        self._total, self._done = total, done
        self._bar.show(done, total, text)

    def close(self) -> None:
        """End the bar that is shown."""
        bar, self._bar = self._bar, None
        if bar is not None:
            bar.close()

    __del__ = close

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()


def _is_installed(module: str) -> bool:
    """Whether a module can be imported."""
    try:
        import_module(module)
    except ImportError:
        return False
    return True
