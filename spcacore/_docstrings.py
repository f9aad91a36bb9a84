"""What `help` shows: paragraphs that several docstrings share, and options that are handed on."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Mapping
from typing import TypeVar

__all__ = ["NO_PANDAS", "filled", "hands_on"]
__dir__ = __all__.copy

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


def hands_on(keys: type) -> Callable[[_Documented], _Documented]:
    """A decorator that shows the keys of a TypedDict for `**options`."""

    def show(function: _Documented) -> _Documented:
        own = inspect.signature(function)
        shown = [one for one in own.parameters.values() if one.kind is not one.VAR_KEYWORD]
        of = inspect.Parameter.KEYWORD_ONLY
        for name, one in keys.__annotations__.items():  # as they are written
            text = str(getattr(one, "__forward_arg__", one))
            shown.append(inspect.Parameter(name, of, default=None, annotation=text))
        function.__signature__ = own.replace(parameters=shown)  # type: ignore[attr-defined]
        return function

    return show
