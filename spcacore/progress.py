"""A progress bar for anything that takes a `callback`, by tqdm (``pip install "spcacore[progress]"``)."""

from __future__ import annotations

from typing import Any

from ._result import Progress, SelectionProgress


class ProgressBar:
    """A `callback` that draws a progress bar.

    It counts components, or the searches of `sparsity_path` and the selections, and shows the iteration or
    the value under way. One bar may serve several calls, one after another; `with` closes it at the end.

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
            told = f"iteration {progress.n_iter}"
        else:
            done, total, told = progress.done, progress.total, f"{progress.value:g}"
        if self._bar is None or self._bar.total != total or done < self._bar.n:
            self.close()
            self._bar = self._new(total)
        self._bar.set_postfix_str(told, refresh=False)
        self._bar.update(done - self._bar.n)
        self._bar.refresh()

    def close(self) -> None:
        """End the bar that is under way."""
        if self._bar is not None:
            self._bar.close()
            self._bar = None

    def __enter__(self) -> ProgressBar:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()
