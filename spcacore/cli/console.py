"""What the command says on stderr: errors, warnings, notes, and progress of long work."""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from typing import Any

from .._rendering import printable
from ..progress import Progress

_PATIENCE = 1.0  # seconds before the first line of progress


def say(message: str) -> None:
    """One line on stderr, whatever is in the message; nothing without a stderr."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(f"spcacore: {printable(' '.join(message.split()))}", file=sys.stderr, flush=True)


class Work:
    """Long work: a `callback` that says what is under way once that takes over a second, the time that it
    took, and what it warned of."""

    started: float
    seconds: float
    warnings: list[str]
    next: float

    def __init__(self, quiet: bool):
        self.quiet = quiet
        self.task = ""  # said first
        self.caught: Any = warnings.catch_warnings(record=True)

    def __enter__(self) -> Work:
        self.started = time.perf_counter()
        self.next = self.started + _PATIENCE
        self.log: Any = self.caught.__enter__()
        warnings.simplefilter("ignore")
        warnings.simplefilter("always", RuntimeWarning)
        return self

    def __exit__(self, *exception: object) -> None:
        self.caught.__exit__(*exception)  # type: ignore[arg-type]
        self.seconds = time.perf_counter() - self.started
        self.warnings = list(dict.fromkeys(str(w.message) for w in self.log))

    def __call__(self, progress: Any) -> None:
        now = time.perf_counter()
        if self.quiet or now < self.next:
            return
        if isinstance(progress, Progress):
            which = f"component {progress.component + 1} of {progress.n_components}"
            progress = f"{which}, iteration {progress.n_iter}"
        elif not isinstance(progress, str):
            progress = f"{progress.done} of {progress.total} done"
        say(f"{self.task}{progress}, {now - self.started:.0f} s")
        self.next = now + 5
