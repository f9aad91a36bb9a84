"""Where the numbers of the command come from, a file or a pipe, and the table that they make."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from .._limits import ERROR_LETTERS
from .._records import record, replaced
from .._rendering import printable
from .._types import Names
from ..readable import labels

STDIN = "-"
_UNPACK: dict[str, Any] = {".gz": gzip.decompress, ".bz2": bz2.decompress, ".xz": lzma.decompress}


def say(message: str) -> None:
    """Write a message as one line on stderr; nothing if there is no stderr."""
    if sys.stderr is not None:
        with contextlib.suppress(OSError):
            print(f"spcacore: {printable(' '.join(message.split()))}", file=sys.stderr, flush=True)


class Arguments(SimpleNamespace):
    """The options of a call; an option that a command does not have is None."""

    def __getattr__(self, name: str) -> Any:
        return None


class UserError(Exception):
    """An error that the user can put right; the message is one line."""


@record
class Source:
    """A file to read: its name in messages, its path, and its format as an extension.

    `content` has the bytes of a file that is packed or can be read only once, else None.
    """

    name: str
    path: str
    kind: str
    content: bytes | None

    def __str__(self) -> str:
        return self.name

    def file(self) -> Any:
        """Return what a library can open."""
        return self.path if self.content is None else io.BytesIO(self.content)

    def bytes(self) -> bytes:
        """Return the content."""
        return Path(self.path).read_bytes() if self.content is None else self.content

    def lines(self) -> io.TextIOWrapper:
        """Return the lines with their ends; a byte order mark says their encoding, else it is UTF-8."""
        content = self.bytes()
        wide = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        return io.TextIOWrapper(io.BytesIO(content), "utf-16" if wide else "utf-8-sig", newline="")


def source_of(path: str, kind: str | None = None) -> Source:
    """Return the source that an argument names.

    Pipes, the standard input (`-`) and packed files are read here, once.
    """
    name, content, suffixes = path, None, Path(path.lower()).suffixes
    unpack = _UNPACK.get(suffixes[-1]) if suffixes else None
    if path == STDIN:
        if sys.stdin is None or sys.stdin.isatty():
            raise UserError("FILE is -, and nothing is piped into the standard input")
        name, content = "standard input", sys.stdin.buffer.read()
    elif unpack or not os.path.isfile(path):
        content = Path(path).read_bytes()
    if unpack:
        content = unpack(content)
        suffixes.pop()
    return Source(name, path, f".{kind}" if kind else [".csv", *suffixes][-1], content)


@contextlib.contextmanager
def refusing(source: object) -> Iterator[None]:
    """Turn what goes wrong while a file is read into one line that names it."""
    try:
        yield
    except (UserError, MemoryError):
        raise
    except UnicodeError:
        raise UserError(f"{source}: not UTF-8 text; save it as UTF-8") from None
    except ImportError as error:
        package = error.name or "pyarrow"
        raise UserError(f"{source}: reading such files needs {package}; pip install {package}") from None
    except OSError as error:
        raise UserError(f"cannot read {source}: {error.strerror or error}") from None
    except Exception as error:  # whatever the library that reads a damaged file raises
        raise UserError(f"cannot read {source}: {error!s:.{ERROR_LETTERS}}") from None


# ---- columns of a file as a matrix ------------------------------------------------------------------


@record
class Table:
    """A matrix with the names of its columns and rows, where these are known."""

    matrix: Any
    names: Names = None
    row_names: Names = None

    def transposed(self) -> Table:
        return replaced(self, matrix=self.matrix.T, names=self.row_names, row_names=self.names)

    def variables(self, letter: str = "x") -> list[str]:
        """Return a name for each column."""
        plain = labels(None, self.matrix.shape[1], letter)
        return [own.strip() or name for own, name in zip(self.names or plain, plain, strict=True)]

    def samples(self) -> list[str]:
        """Return a name for each row."""
        return self.transposed().variables("")


def picked(names: Names, index: Iterable[int]) -> Names:
    """Return the names at these positions, if there are any names."""
    return names and tuple(names[j] for j in index)


def place(source: object, wanted: str, names: Sequence[str] | None, width: int, option: str) -> int:
    """Return the position of a column, given its name or its number from 1."""
    if names and wanted in names:
        return list(names).index(wanted)
    if wanted.isdecimal() and 1 <= int(wanted) <= width:
        return int(wanted) - 1
    raise UserError(f"argument --{option}: {source} has no column {wanted!r}")
