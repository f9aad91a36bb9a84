"""What `help` shows: paragraphs that several docstrings share, and options that are handed on, by name."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Callable, Collection, Mapping
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


def hands_on(
    *others: Callable[..., object] | type, leaves_out: Collection[str] = ()
) -> Callable[[_Documented], _Documented]:
    """A decorator that shows the keywords of other functions, or the keys of a TypedDict, for `**options`.

    In the docstring a line `{options}` becomes their names, as many a line as it has room for. What only a
    later function takes has None for a default: that of the function.
    """

    def show(function: _Documented) -> _Documented:
        own = inspect.signature(function)
        shown = {name: one for name, one in own.parameters.items() if one.kind is not one.VAR_KEYWORD}
        before = len(shown)
        for i, other in enumerate(others):
            for one in _keywords(other):
                if one.name not in leaves_out:
                    shown.setdefault(one.name, one if i == 0 else _without_default(one))
        function.__signature__ = own.replace(parameters=[*shown.values()])  # type: ignore[attr-defined]
        names = textwrap.wrap(", ".join([*shown][before:]), 80)
        of = "its method" if isinstance(others[0], type) else f"`{others[0].__name__}`"
        of += ", or the function of another model" if others[1:] else ""
        paragraph = "\n".join(f"{line.rstrip(',')} : optional\n    As in {of}." for line in names)
        return filled({"options": paragraph})(function)

    return show


def _keywords(other: Callable[..., object] | type) -> list[inspect.Parameter]:
    if isinstance(other, type):
        of = inspect.Parameter.KEYWORD_ONLY
        return [inspect.Parameter(n, of, default=None, annotation=a) for n, a in _words(other).items()]
    shown = inspect.signature(other).parameters.values()
    by_name = [one for one in shown if one.kind is one.KEYWORD_ONLY or one.default is not one.empty]
    return [one.replace(kind=one.KEYWORD_ONLY) for one in by_name]


def _without_default(one: inspect.Parameter) -> inspect.Parameter:
    annotation = one.annotation if "None" in str(one.annotation) else f"{one.annotation} | None"
    return one.replace(default=None, annotation=annotation)


def _words(keys: type) -> dict[str, str]:
    """The annotations of a TypedDict as they are written."""
    return {n: str(getattr(one, "__forward_arg__", one)) for n, one in keys.__annotations__.items()}
