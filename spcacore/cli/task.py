"""What the commands that compute have in common."""

from __future__ import annotations

import re
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from typing import Any

from .._messages import counted
from ..choice import Choice
from .console import Work, say
from .models import SPARSITY, call_of, in_flags, refusal
from .reading import read, read_lines
from .report import check_outputs, print_json, write
from .table import Arguments, UserError

__all__ = ["Task"]

_MISSING = ("pmd", "ppca")  # methods that take NaN; for tpower --impute makes explicit what becomes of them


class Task:
    """A file that was read, and what is to be done with it."""

    done: Work
    warnings: list[str]

    def __init__(self, args: Arguments):
        self.call = call_of(args) if args.methods else None
        if args.covariance and args.scores:
            raise UserError("argument --scores: a covariance has no samples to score")
        check_outputs(args)
        args.nan = args.method in _MISSING and args.command in ("fit", "path") and not args.scores
        started = time.perf_counter()
        self.args, self.table = args, read(args)
        self.reading: float = time.perf_counter() - started
        self.names, self.matrix = self.table.variables(), self.table.matrix
        self.n, self.p = self.matrix.shape
        kind = "covariance" if args.covariance else "data"  # how all functions are to take the matrix
        center, scale = args.center is not False, bool(args.scale)
        self.treatment: dict[str, Any] = {"kind": kind, "center": center, "scale": scale}

    def choice(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What is known of the variables, by their places, as an argument."""
        known = dict(given)
        for name in ("include", "exclude"):
            for one in known.get(name, ()):
                if self.names.count(one) != 1:
                    many = "more than one variable is" if one in self.names else "no variable is"
                    raise UserError(f"argument --{name}: {many} called {one!r}")
                if name == "exclude" and one in given.get("include", ()):
                    raise UserError(f"argument --exclude: {one!r} is in --include too")
            if name in known:
                known[name] = list(map(self.names.index, known[name]))
        if "groups" in known:
            known["groups"] = read_lines(self.args, "groups", self.p)
        return {"choice": Choice(**known)} if known else {}

    def model(self, default: int) -> Any:
        """The function with its options; how many components, else as many as numbers say how sparse."""
        assert self.call is not None
        function, keywords, known = self.call
        several = [v for name in SPARSITY if isinstance(v := self.args.of_model.get(name), list)]
        by_numbers = several and self.args.method != "sparse_cca"
        r = len(several[0]) if by_numbers else min(default, self.n, self.p)
        return partial(function, **{"n_components": r} | keywords | self.choice(known))

    @contextmanager
    def work(self) -> Iterator[Work]:
        """Time it, and turn what is wrong with the matrix or the options into one line."""
        try:
            with Work(self.args.quiet) as self.done:
                yield self.done
        except (TypeError, ValueError) as error:
            raise refusal(self.args, error) from None
        self.warnings = list(map(_reworded, self.done.warnings))
        lines = [f"warning: {one}" for one in self.warnings] + [f"note: {one}" for one in self.args.notes]
        for line in lines[: len(self.warnings) if self.args.quiet else None]:
            say(line)

    def report(
        self, title: str, fields: Mapping[str, Any], show: Callable[[], object],
        draw: Callable[[Any], object] | None = None, width: float = 7,
    ) -> None:  # fmt: skip
        """Draw, and print what was found."""
        args = self.args
        if args.plot and draw:
            from matplotlib.figure import Figure  # no window is opened, whatever the settings of matplotlib

            figure = Figure(figsize=(width, 5), layout="constrained")
            with warnings.catch_warnings(action="ignore"):  # of letters that the font lacks
                draw(figure)
                write(args.plot, lambda path: figure.savefig(path, dpi=150))
        if args.json:
            print_json(self.document(fields))
        elif not args.quiet:
            print(f"{title} of {args.source}: {self._matrix()}\n")
            show()
            print(f"\nread in {self.reading:.2f} s, computed in {self.done.seconds:.2f} s")
            for path in filter(None, (args.output, args.scores, args.plot)):
                print(f"wrote {path}")

    def _matrix(self) -> str:
        args, variables = self.args, counted(self.p, "variable")
        if args.covariance:
            return f"{variables}, {'correlation' if args.scale else 'covariance'} matrix"
        treatment = f"{'not ' * (args.center is False)}centered, {'not ' * (not args.scale)}scaled"
        return f"{counted(self.n, 'sample')}, {variables}, {treatment}"

    def document(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        args = self.args
        return {
            "command": args.command, "file": args.file, "samples": self.n, "variables": self.p,
            **self.treatment, "names": self.names if self.table.names else None, **fields,
            "warnings": self.warnings, "notes": args.notes,
            "seconds": {"reading": self.reading, "computing": self.done.seconds},
        }  # fmt: skip


def _reworded(message: str) -> str:
    """A warning of the library, which counts components from 0, in the words of the command."""
    missed = re.fullmatch(r"(components? )([\d, ]+)( not converged in (.*))", message)
    if missed is None:
        return in_flags(message)
    some = ", ".join(str(int(t) + 1) for t in missed[2].split(","))
    flag = "--max-iter" if missed[4].endswith("iterations") else "--time-limit"
    return f"{missed[1]}{some}{missed[3]}; raise {flag}"
