"""The `spcacore` command: sparse PCA of a matrix in a file, or of the embedded pit props."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Callable, Sequence
from importlib.util import find_spec

from .source import UserError, say

__all__ = ["main"]
__dir__: Callable[[], list[str]] = __all__.copy


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (default: what the shell passed); return the exit status."""
    # What is needed, and completion in the shell
    lacking = [package for package in ("click", "pandas") if find_spec(package) is None]
    if lacking:
        say(f"the command needs {' and '.join(lacking)}: pip install {' '.join(lacking)}")
        return 1
    import click
    from click.shell_completion import shell_complete

    from .options import cli, in_words

    instruction = os.environ.get("_SPCACORE_COMPLETE")
    if instruction:
        return shell_complete(cli, {}, "spcacore", "_SPCACORE_COMPLETE", instruction)
    # The command; each error becomes one line
    try:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")
        with cli.make_context("spcacore", sys.argv[1:] if argv is None else list(argv)) as context:
            cli.invoke(context)
        if sys.stdout is not None:
            sys.stdout.flush()
        return 0
    except click.exceptions.Exit as done:
        return done.exit_code
    except UserError as error:
        return _fail(str(error))
    except click.UsageError as error:
        return _fail(in_words(error))
    except MemoryError:
        return _fail("not enough memory for this matrix")
    except BrokenPipeError:
        _abandon_stdout()
        return 0
    except OSError as error:  # errors of files are handled where these are opened
        _abandon_stdout()
        if sys.platform == "win32" and error.errno == errno.EINVAL:  # a pipe that nobody reads
            return 0
        return _fail(f"cannot write to the standard output: {error.strerror}")
    except KeyboardInterrupt:
        pass  # the search ends, and its progress bar
    if sys.stderr is not None and sys.stderr.isatty():
        print(file=sys.stderr)  # the line has ^C, and perhaps a part of a bar
    say("interrupted")
    return 130


def _abandon_stdout() -> None:
    """Redirect the standard output to nowhere, because the interpreter flushes it once more at exit."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fail(message: str) -> int:
    """Write an error and return the exit status."""
    say(f"error: {message}")
    return 2
