"""The `spcacore` command: sparse PCA of a matrix in a file, or of the embedded pit props."""

from __future__ import annotations

import contextlib
import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module

from .._messages import instead_of
from . import completion
from .arguments import make_parser
from .console import say
from .fit import show_pitprops
from .table import UserError

__all__ = ["COMMANDS", "FLAGS", "main"]
__dir__ = __all__.copy


FLAGS = {
    "cardinality": "-k", "n_components": "-n", "l1_bound": "--l1-bound", "penalty": "--penalty",
    "scale": "--scale", "center": "--no-center", "rng": "--seed", "tol": "--tol", "max_iter": "--max-iter",
    "method": "--method", "nonnegative": "--nonnegative", "include": "--include",
    "exclude": "--exclude", "groups": "--groups", "count": "--count",
}  # fmt: skip
COMMANDS = ("fit", "path", "stability", "certify", "transform", "compare", "info")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command with these arguments (default: those of the process); the exit status."""
    try:
        _run(sys.argv[1:] if argv is None else list(argv))
        if sys.stdout is not None:
            sys.stdout.flush()
        return 0
    except UserError as error:
        return _fail(str(error))
    except MemoryError:
        return _fail("not enough memory for this matrix")
    except BrokenPipeError:
        _abandon_stdout()
        return 0
    except OSError as error:  # files are dealt with where they are opened
        _abandon_stdout()
        if sys.platform == "win32" and error.errno == errno.EINVAL:  # a pipe that nobody reads
            return 0
        return _fail(f"cannot write to the standard output: {error.strerror}")
    except KeyboardInterrupt:
        say("interrupted")
        return 130


def _abandon_stdout() -> None:
    """Let the interpreter, which flushes it once more at exit, do so in vain."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(argv: list[str]) -> None:
    if argv and argv[0] not in COMMANDS and not argv[0].startswith("-"):
        raise UserError(f"unknown command {argv[0]!r}; to analyze a file: spcacore fit {argv[0]}")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    args, others = make_parser().parse_known_args(argv)
    if others:
        program = f"spcacore {args.command}" if args.command else "spcacore"
        hint = instead_of(others[0].lstrip("-").split("=")[0].replace("-", "_"), FLAGS)
        raise UserError(f"unrecognized arguments: {' '.join(others)}{hint}; see {program} --help")
    if args.version:
        from importlib.metadata import version

        print(f"spcacore {version('spcacore')}")
    elif args.completion is not None:
        print(completion.script(args.completion, make_parser()), end="")
    elif args.command is None:
        show_pitprops()
    else:
        args.notes = []  # printed only if all goes well, so that an error is alone
        import_module(f".{args.command}", __name__).run(args)  # imports what no other command needs


def _fail(message: str) -> int:
    say(f"error: {message}")
    return 2
