"""What `help` shows: paragraphs that several docstrings share."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import TypeVar

NO_PANDAS = "Raises\n------\nImportError\n    If pandas is not installed."

_Documented = TypeVar("_Documented", bound=Callable[..., object])


def filled(paragraphs: Mapping[str, str]) -> Callable[[_Documented], _Documented]:
    """A decorator of functions, and classes with their methods: a line `{name}` becomes that paragraph."""

    def paragraph(line: str) -> str:
        name = line.strip()
        if name[:1] + name[-1:] != "{}" or not name[1:-1].isidentifier():
            return line
        return textwrap.indent(paragraphs[name[1:-1]], line[: line.index("{")])

    def fill(documented: _Documented) -> _Documented:
        for part in (documented, *vars(documented).values()):
            if (inspect.isfunction(part) or inspect.isclass(part)) and part.__doc__:
                part.__doc__ = "\n".join(map(paragraph, part.__doc__.split("\n")))
        return documented

    return fill
