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
from dataclasses import replace
from pathlib import Path
from typing import Any

from .._records import record
from .console import ProgressLine
from .table import UserError

__all__ = ["COMPRESSED", "STDIN", "Source", "source_of"]
__dir__ = __all__.copy

STDIN = "-"
_SMALL = 100_000  # bytes of a file whose reading needs no progress
COMPRESSED = (".csv", ".tsv", ".mtx")  # formats that may be read through what packs them
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
            raw: Any = open(self.path, "rb") if self.content is None else io.BytesIO(self.content)  # noqa: SIM115
            if self.progress is not None and self.content is None and os.path.getsize(self.path) > _SMALL:
                raw = _Watched(raw, self.progress)
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
    if len(suffixes) > 1 and suffixes[-1] in _UNPACK and suffixes[-2] in COMPRESSED:
        del suffixes[-1]
    kind = f".{kind}" if kind else suffixes[-1] if suffixes else ""
    source = Source(path, name, kind, content, progress)
    if kind or content is None:
        return source
    with source.open_bytes() as stream:
        head = stream.peek(9)
    return replace(
        source, kind=next((kind for magic, kind in _MAGIC.items() if head.startswith(magic)), ".csv")
    )
