"""What a callback receives, and a progress bar by tqdm (``pip install tqdm``)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

__all__ = ["Progress", "ProgressBar", "SelectionProgress"]
__dir__ = __all__.copy


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
        Variance of a finished component; None before.

    Notes
    -----
    A callback that raises StopIteration ends the search early. It is not called again, and the call returns
    what was found so far:

    * components found one after another (`sparse_pca`, `oppca`, `soppca`, `extend`): those that are
      finished, perhaps none. Directions (`sparse_eigen`, `sparse_lda`) and pairs (`sparse_cca`): at least
      the first one, perhaps from an unfinished search, with ``converged=False``;
    * one component, or several found together: the best point so far, with ``converged=False``;
    * `sparsity_path`: the values that are finished. `sca_path`: all values; each value that was not reached
      gets one iteration from the one before;
    * `select_sparsity`, `select_n_components`: the choice by the folds or permutations that are finished;
      a RuntimeError if there are fewer than two.

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


Callback = Callable[[Progress], object]


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


class ProgressBar:
    """A `callback` that draws a progress bar.

    The bar counts components, or the searches of `sparsity_path` and the selections. It shows the current
    iteration or value. One bar can be used for several calls, one after another; `with` closes it at the end.

    Parameters
    ----------
    **options
        Options of `tqdm.tqdm`: `desc`, `file`, `leave`, `disable`, `mininterval`, ...

    Raises
    ------
    ImportError
        If tqdm is not installed.

    Examples
    --------
    >>> import io, spcacore
    >>> from spcacore.progress import ProgressBar
    >>> X, planted = spcacore.datasets.make_spiked(100, 200, rng=0)
    >>> with ProgressBar(desc="path", file=io.StringIO()) as bar:
    ...     path = spcacore.sparsity_path(X, spcacore.sparse_pca, [5, 10, 20], callback=bar)
    """

    def __init__(self, **options: Any):
        try:
            from tqdm.auto import tqdm
        except ImportError:
            raise ImportError(
                'a progress bar needs tqdm: pip install tqdm, or ".[progress]" from the source directory'
            ) from None
        self._new = lambda total: tqdm(total=total, **options)
        self._bar: Any = None

    def __call__(self, progress: Progress | SelectionProgress) -> None:
        if isinstance(progress, Progress):
            done, total = progress.component + (progress.value is not None), progress.n_components
            text = f"iteration {progress.n_iter}"
        else:
            done, total, text = progress.done, progress.total, f"{progress.value:g}"
        if self._bar is None or self._bar.total != total or done < self._bar.n:
            self.close()
            self._bar = self._new(total)
        self._bar.set_postfix_str(text, refresh=False)
        self._bar.update(done - self._bar.n)
        self._bar.refresh()

    def close(self) -> None:
        """End the bar that is shown."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
