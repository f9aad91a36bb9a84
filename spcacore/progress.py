"""What a callback receives, and a progress bar by tqdm (``pip install "spcacore[progress]"``)."""

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
        Index of the component in progress, or just finished, from 0.
    n_components : int
    n_iter : int
        Iterations of the present start, or of the component once finished.
    value : float or None
        Its variance once finished; None before.

    Notes
    -----
    A callback that raises StopIteration ends the search early. It is not called again, and the call returns
    what was found so far:

    * components found one after another (`sparse_pca`, `oppca`, `soppca`, `extend`): those that are
      finished, perhaps none; directions (`sparse_eigen`, `sparse_lda`) and pairs (`sparse_cca`): at least
      the first one, from a search cut short, with ``converged=False``;
    * one component, or several found together: the best point so far, with ``converged=False``;
    * `sparsity_path`: the values that are finished; `sca_path`: all values, where those not yet reached
      get one iteration from the one before;
    * `select_sparsity`, `select_n_components`: the choice by the folds or permutations that are finished;
      RuntimeError if fewer than two are.

    Any other exception reaches the caller. StopIteration from an operator that is given as X is an error.
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
        Searches finished, and all that there will be.
    value : int or float
        The sparsity, or number of components, of the one just finished.
    """

    done: int
    total: int
    value: float


class ProgressBar:
    """A `callback` that draws a progress bar.

    It counts components, or the searches of `sparsity_path` and the selections, and shows the iteration or
    the value in progress. One bar may serve several calls, one after another; `with` closes it at the end.

    Parameters
    ----------
    **options
        Of `tqdm.tqdm`: `desc`, `file`, `leave`, `disable`, `mininterval`, ...

    Raises
    ------
    ImportError
        Without tqdm.

    Examples
    --------
    >>> import io, spcacore
    >>> from spcacore.progress import ProgressBar
    >>> X, planted = spcacore.datasets.make_spiked(100, 200, rng=0)
    >>> with ProgressBar(desc="path", file=io.StringIO()) as bar:
    ...     path = spcacore.sparsity_path(X, cardinality=[5, 10, 20], callback=bar)
    """

    def __init__(self, **options: Any):
        try:
            from tqdm.auto import tqdm
        except ImportError:
            raise ImportError('a progress bar needs tqdm: pip install "spcacore[progress]"') from None
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
