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
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .._limits import ERROR_LETTERS
from .._records import record

STDIN = "-"
_PACKED = (".gz", ".bz2", ".xz")
_UNPACK: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
_MAGIC = {
    b"\x93NUMPY": ".npy", b"PK\3\4": ".npz", b"\x89HDF": ".h5ad", b"PAR1": ".parquet", b"%%MatrixM": ".mtx",
}  # fmt: skip
PICKLED = "{} holds pickled Python objects, which are not loaded, for safety; save an array of numbers"


class Arguments(SimpleNamespace):
    """What was given; an option that a command does not have was not."""

    def __getattr__(self, name: str) -> Any:
        return None


class UserError(Exception):
    """Something the user can put right; the message is one line."""


@record
class Source:
    """A file on disk, or the bytes of one that can be read only once; its name in messages, and its format,
    as an extension."""

    name: str
    path: str
    kind: str
    content: bytes | None

    def __str__(self) -> str:
        return self.name

    def file(self) -> Any:
        """What a library may open."""
        return self.path if self.content is None else io.BytesIO(self.content)

    @contextlib.contextmanager
    def open_bytes(self) -> Iterator[Any]:
        """The file as it is unpacked."""
        with contextlib.ExitStack() as stack:
            raw: Any = io.FileIO(self.path) if self.content is None else io.BytesIO(self.content)
            stream = stack.enter_context(io.BufferedReader(raw))
            unpack = _by_start(stream, _UNPACK)
            yield stream if unpack is None else stack.enter_context(unpack(stream))

    @contextlib.contextmanager
    def open_text(self) -> Iterator[io.TextIOWrapper]:
        """Its lines, with their ends; a byte order mark says which encoding, else it is UTF-8."""
        with self.open_bytes() as stream:
            wide = stream.peek(2).startswith((b"\xff\xfe", b"\xfe\xff"))
            with io.TextIOWrapper(stream, "utf-16" if wide else "utf-8-sig", newline="") as text:
                yield text


def _by_start(stream: Any, known: dict[bytes, Any]) -> Any:
    """What stands for the first bytes of a stream."""
    head = stream.peek(9)
    return next((what for start, what in known.items() if head.startswith(start)), None)


def source_of(path: str, kind: str | None = None) -> Source:
    """What an option names: pipes, devices and the standard input (`-`) are read here, once.

    What a file is, its first bytes say or, of text, its name.
    """
    name, content = path, None
    if path == STDIN:
        if sys.stdin is None or sys.stdin.isatty():
            raise UserError("FILE is -, and nothing is piped into the standard input")
        name, content = "standard input", sys.stdin.buffer.read()
    elif not os.path.isfile(path):
        content = Path(path).read_bytes()
    suffixes = [suffix for suffix in Path(path.lower()).suffixes if suffix not in _PACKED]
    source = Source(name, path, f".{kind}" if kind else [".csv", *suffixes][-1], content)
    with source.open_bytes() as stream:
        known = None if kind else _by_start(stream, _MAGIC)
    return source if known is None else Source(name, path, known, content)


def needed(source: Source, package: str) -> Any:
    """The package that reads such files."""
    try:
        return import_module(package)
    except ImportError:
        raise UserError(f"{source}: reading such files needs {package}; pip install {package}") from None


@contextlib.contextmanager
def refusing(source: object) -> Iterator[None]:
    """What goes wrong with a file, as one line that names it."""
    try:
        yield
    except (UserError, MemoryError):
        raise
    except UnicodeError:
        raise UserError(f"{source}: not UTF-8 text; save it as UTF-8") from None
    except OSError as error:
        raise UserError(f"cannot read {source}: {error.strerror or error}") from None
    except Exception as error:  # of a damaged file, whatever the library that reads it comes upon
        why = str(error)  # with data in it
        if "Python objects" in why or "allow_pickle" in why:
            raise UserError(PICKLED.format(source)) from None
        raise UserError(f"cannot read {source}: {why:.{ERROR_LETTERS}}") from None
