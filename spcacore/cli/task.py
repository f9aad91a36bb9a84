"""What the commands that compute have in common: a file, what is done with it, and what is said of it."""

from __future__ import annotations

import contextlib
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from .._messages import counted
from .._records import replaced
from ..choice import Choice
from ..selection.model import by_place
from .options import SPARSITY, call_of, in_flags, refusal
from .reading import adopt, read, read_lines, read_saved
from .report import Draw, Files, check_outputs, print_json, write_all
from .source import Arguments, Table, UserError, say


class Task:
    """A file that was read, and what is to be done with it."""

    table: Table
    names: list[str]
    matrix: Any
    n: Any
    p: Any
    warnings: list[str]

    def __init__(self, args: Arguments):
        self.call: Any = call_of(args) if args.methods else None
        if args.covariance and args.scores:
            raise UserError("argument --scores: a covariance has no samples to score")
        self.saved = [read_saved(path) for path in args.loadings]
        adopt(args, self.saved)
        check_outputs(args)
        self.args, self.table = args, read(args)
        self.names, self.matrix = self.table.variables(), self.table.matrix
        self.n, self.p = self.matrix.shape
        kind = "covariance" if args.covariance else "data"  # how all functions are to take the matrix
        self.treatment: dict[str, Any] = {"kind": kind, "center": args.center, "scale": args.scale}
        watched = sys.stderr is not None and sys.stderr.isatty()
        self.callback: Any = True if watched and not args.quiet else None  # a bar for who sits there

    def choice(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """What is known of the variables, by their places, as an argument."""
        groups = {"groups": read_lines(self.args, "groups", self.p)} if "groups" in given else {}
        known = by_place({**given, **groups}, tuple(self.names), self.p)
        return {"choice": Choice(**known)} if known else {}

    def run(self, default: int, runs: Any = None, *more: Any, **options: Any) -> Any:
        """The result of the model, or of what runs it."""
        with self.work():
            model = self.model(default)
            call = partial(runs, self.matrix, model, *more) if runs else partial(model, self.matrix)
            return self.named(call(callback=self.callback, **options))

    def named(self, result: Any) -> Any:
        """The result with the names of the variables, if it has room for them."""
        return replaced(result, names=tuple(self.names)) if hasattr(result, "names") else result

    def model(self, default: int) -> Any:
        """The function with its options; how many components, else as many as numbers say how sparse."""
        function, keywords, known = self.call
        several = [v for name in SPARSITY if isinstance(v := self.args.of_model.get(name), list)]
        r = len(several[0]) if several else min(default, self.n, self.p)
        return partial(function, **{"n_components": r} | keywords | self.choice(known))

    @contextlib.contextmanager
    def work(self) -> Iterator[None]:
        """Keep what it warns of, and turn what is wrong with matrix or options into one line."""
        try:
            with warnings.catch_warnings(record=True) as log:
                warnings.simplefilter("ignore")
                warnings.simplefilter("always", RuntimeWarning)
                yield
        except (TypeError, ValueError) as error:
            raise refusal(self.args, error) from None
        self.warnings = [_reworded(said) for said in dict.fromkeys(str(w.message) for w in log)]
        lines = [f"warning: {one}" for one in self.warnings] + [f"note: {one}" for one in self.args.notes]
        for line in lines[: len(self.warnings) if self.args.quiet else None]:
            say(line)

    def finish(
        self, title: str, text: str, fields: Mapping[str, Any], files: Files, draw: Draw | None = None,
        width: float = 7,
    ) -> None:  # fmt: skip
        """Write, draw and print what was found."""
        args = self.args
        paths = write_all(args, files, draw, width)
        if args.json:
            print_json(self._document(fields), self.names)
        elif not args.quiet and title:
            print(f"{title} of {args.source}: {self._matrix()}\n\n{text}")
            print("".join(f"\nwrote {path}" for path in paths))
        elif not args.output and not title:
            print(text, end="")

    def _matrix(self) -> str:
        args, variables = self.args, counted(self.p, "variable")
        if args.covariance:
            return f"{variables}, {'correlation' if args.scale else 'covariance'} matrix"
        treatment = f"{'not ' * (not args.center)}centered, {'not ' * (not args.scale)}scaled"
        return f"{counted(self.n, 'sample')}, {variables}, {treatment}"

    def _document(self, fields: Mapping[str, Any]) -> dict[str, Any]:
        args = self.args
        return {
            "command": args.command, "file": args.file, "samples": self.n, "variables": self.p,
            **self.treatment, "names": self.names if self.table.names else None, **fields,
            "warnings": self.warnings, "notes": args.notes,
        }  # fmt: skip


def _reworded(message: str) -> str:
    """A warning of the library, which counts components from 0, in the words of the command."""
    missed = re.fullmatch(r"(components? [\d, ]+ )?(not converged in .*?)(iterations?)?", message)
    if missed is None:
        return in_flags(message)
    some = re.sub(r"\d+", lambda t: str(int(t[0]) + 1), missed[1] or "")
    return f"{some}{missed[2]}{missed[3] or ''}; raise {'--max-iter' if missed[3] else '--time-limit'}"
