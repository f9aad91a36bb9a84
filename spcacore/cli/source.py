"""Where the numbers come from: a file, or the standard input, as bytes with what they are."""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._records import record
from .console import ProgressLine
from .table import UserError

__all__ = ["COMPRESSED", "STDIN", "Source", "kind_of", "opened"]
__dir__ = __all__.copy

STDIN = "-"
COMPRESSED = (".csv", ".tsv", ".mtx")  # formats that may be read through gzip


@record
class Source:
    """A file on disk, what messages call it, and its format, as an extension."""

    path: str
    name: str
    kind: str
    progress: ProgressLine | None = None

    def __str__(self) -> str:
        return self.name

    def open_bytes(self) -> Any:
        """The file as it is decompressed."""
        raw: Any = open(self.path, "rb")  # noqa: SIM115
        if self.progress is not None:
            raw = io.BufferedReader(_Watched(raw, self.progress))
        if self.name.lower().endswith(".gz") or _is_gzip(self.path):
            import gzip

            class Unpacked(gzip.GzipFile):
                def close(self) -> None:  # which leaves a file that it was given open
                    super().close()
                    raw.close()

            return Unpacked(fileobj=raw, mode="rb")
        return raw

    def open_text(self) -> Any:
        return io.TextIOWrapper(self.open_bytes(), encoding="utf-8-sig", newline="")


class _Watched(io.RawIOBase):
    """A file that tells how far it was read."""

    def __init__(self, file: Any, progress: ProgressLine):
        self.file, self.progress = file, progress
        self.size, self.done = max(os.fstat(file.fileno()).st_size, 1), 0

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        count: int = self.file.readinto(buffer)
        self.done += count
        self.progress(f"read {100 * self.done // self.size} % of {self.size / 1e6:.0f} MB")
        return count

    def close(self) -> None:
        self.file.close()
        super().close()


def _is_gzip(path: str) -> bool:
    with open(path, "rb") as file:
        return file.read(2) == b"\x1f\x8b"


def kind_of(path: str) -> str:
    """The extension that says how to read the file; `.gz` counts for text only."""
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    if len(suffixes) > 1 and suffixes[-1] == ".gz" and suffixes[-2] in COMPRESSED:
        return suffixes[-2]
    return suffixes[-1] if suffixes else ""


@contextlib.contextmanager
def opened(args: argparse.Namespace, progress: ProgressLine | None = None) -> Iterator[Source]:
    """The source that the arguments name; the standard input lies in a temporary file meanwhile."""
    kind = "" if args.format is None else f".{args.format}"
    if args.file != STDIN:
        yield Source(args.file, args.file, kind or kind_of(args.file), progress)
        return
    if sys.stdin is None or sys.stdin.isatty():
        raise UserError("FILE is -, and nothing is piped into the standard input")
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "stdin")
        with open(path, "wb") as file:
            shutil.copyfileobj(sys.stdin.buffer, file)
        yield Source(path, "standard input", kind or ".csv", progress)
