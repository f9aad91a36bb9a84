"""Where the numbers come from: a file, or what can be read once alone, as bytes with what they are."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .._records import record
from .console import ProgressLine
from .table import UserError

__all__ = ["STDIN", "Source", "source_of"]
__dir__ = __all__.copy

STDIN = "-"
_SMALL = 100_000  # bytes of a file whose reading needs no progress
_TEXT = (".csv", ".tsv", ".mtx")  # formats that may be read through what packs them
_UNPACK: dict[str, tuple[bytes, Any]] = {
    ".gz": (b"\x1f\x8b", gzip.open), ".bz2": (b"BZh", bz2.open), ".xz": (b"\xfd7zXZ\0", lzma.open),
}  # fmt: skip
_MAGIC = {
    b"\x93NUMPY": ".npy", b"PK\3\4": ".npz", b"\x89HDF": ".h5ad", b"PAR1": ".parquet", b"%%MatrixM": ".mtx",
}  # fmt: skip


@record
class Source:
    """A file on disk, or the bytes of one that can be read only once; its name in messages, and its format,
    as an extension."""

    path: str
    name: str
    kind: str
    content: bytes | None = None
    progress: ProgressLine | None = None

    def __str__(self) -> str:
        return self.name

    def file(self) -> Any:
        """What a library may open."""
        return self.path if self.content is None else io.BytesIO(self.content)

    @contextlib.contextmanager
    def open_bytes(self) -> Iterator[io.BufferedReader]:
        """The file as it is unpacked."""
        with contextlib.ExitStack() as stack:
            raw: Any = io.BytesIO(self.content or b"")
            if self.content is None:
                raw = _Watched(self.path, self.progress)
            stream: Any = stack.enter_context(io.BufferedReader(raw))
            for extension, (magic, unpack) in _UNPACK.items():
                if stream.peek(9).startswith(magic) or self.name.lower().endswith(extension):
                    stream = io.BufferedReader(stack.enter_context(unpack(stream)))
                    break
            yield stream

    @contextlib.contextmanager
    def open_text(self) -> Iterator[io.TextIOWrapper]:
        """Its lines, with their ends; a byte order mark says which encoding, else it is UTF-8."""
        with self.open_bytes() as stream:
            wide = stream.peek(2).startswith((b"\xff\xfe", b"\xfe\xff"))
            with io.TextIOWrapper(stream, "utf-16" if wide else "utf-8-sig", newline="") as text:
                yield text


class _Watched(io.FileIO):
    """A file that tells how far it was read."""

    def __init__(self, path: str, progress: ProgressLine | None):
        super().__init__(path)
        self.size, self.progress = os.path.getsize(path), progress

    def readinto(self, buffer: Any) -> int | None:
        count = super().readinto(buffer)
        if self.progress is not None and self.size > _SMALL:
            share = 100 * self.tell() // self.size
            self.progress(f"read {share} % of {self.size / 1e6:.0f} MB")
        return count


def source_of(path: str, kind: str | None = None, progress: ProgressLine | None = None) -> Source:
    """What an option names: pipes, devices and the standard input (`-`) are read here, once."""
    name, content = path, None
    if path == STDIN:
        if sys.stdin is None or sys.stdin.isatty():
            raise UserError("FILE is -, and nothing is piped into the standard input")
        name, content = "standard input", sys.stdin.buffer.read()
    elif os.path.isdir(path):
        raise UserError(f"cannot read {path}: it is a directory")
    else:
        with open(path, "rb") as file:
            content = None if os.path.isfile(path) else file.read()
    suffixes = [suffix.lower() for suffix in Path(path).suffixes[-2:]]
    if len(suffixes) > 1 and suffixes[-1] in _UNPACK and suffixes[-2] in _TEXT:
        del suffixes[-1]
    kind = f".{kind}" if kind else suffixes[-1] if suffixes else ""
    if content is not None and not kind:
        with Source(path, name, kind, content).open_bytes() as stream:
            head = stream.peek(9)
        kind = next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), ".csv")
    return Source(path, name, kind, content, progress)
