"""What the command says on stderr: errors, warnings, notes, and progress of long work."""

from __future__ import annotations

import contextlib
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, TextIO

from .._rendering import printable
from ..progress import Progress

__all__ = ["ProgressLine", "Work", "say"]
__dir__ = __all__.copy


def say(message: str) -> None:
    """One line on stderr, whatever is in the message; nothing without a stderr."""
    if sys.stderr is None:  # print would take the standard output for it
        return
    with contextlib.suppress(OSError):
        print(f"spcacore: {printable(' '.join(message.split()))}", file=sys.stderr)


_PATIENCE = 1.0  # seconds before the first line


class ProgressLine:
    """A `callback` that says on stderr what is under way once that takes over a second."""

    def __init__(self, stream: TextIO | None, quiet: bool):
        self.stream, self.quiet = stream, quiet or stream is None
        self.terminal = stream is not None and stream.isatty()
        self.started = time.perf_counter()
        self.next = self.started + _PATIENCE
        self.width = 0
        self.task = ""  # said first

    def __call__(self, progress: Any) -> None:
        now = time.perf_counter()
        if self.quiet or now < self.next:
            return
        line = f"{self.task}{_under_way(progress)}, {now - self.started:.0f} s"
        if self.terminal:
            self.next = now + 0.1
            self._put("\r" + line.ljust(self.width))
            self.width = len(line)
        else:
            self.next = now + 5
            self._put(f"spcacore: {line}\n")

    def clear(self) -> None:
        if self.width:
            self._put("\r" + " " * self.width + "\r")

    def _put(self, text: str) -> None:
        assert self.stream is not None
        with contextlib.suppress(OSError):
            self.stream.write(text)
            self.stream.flush()


def _under_way(progress: Any) -> str:
    if isinstance(progress, str):
        return progress
    if isinstance(progress, Progress):
        return f"component {progress.component + 1} of {progress.n_components}, iteration {progress.n_iter}"
    return f"{progress.done} of {progress.total} done"


class Work:
    """Long work with progress on stderr; afterwards its duration, and what it warned of."""

    def __init__(self, quiet: bool):
        self.quiet = quiet
        self.seconds = 0.0
        self.warnings: list[str] = []

    @contextlib.contextmanager
    def __call__(self) -> Iterator[ProgressLine]:
        progress = ProgressLine(sys.stderr, self.quiet)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("ignore")
            warnings.simplefilter("always", RuntimeWarning)
            try:
                yield progress
            finally:
                progress.clear()
        self.seconds = time.perf_counter() - progress.started
        self.warnings = list(dict.fromkeys(str(w.message) for w in caught))

    def warn(self, reworded: Callable[[str], str | None] = lambda message: message) -> list[str]:
        """Say the warnings, in the words of the command; None is left out."""
        self.warnings = [m for m in map(reworded, self.warnings) if m is not None]
        for message in self.warnings:
            say(f"warning: {message}")
        return self.warnings
