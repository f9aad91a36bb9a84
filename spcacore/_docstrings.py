"""Paragraphs that several docstrings share, written once and filled in at import."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from typing import TypeVar

_Documented = TypeVar("_Documented", bound=Callable[..., object])
_PLACE = re.compile(r"^( *)\{(\w+)\}$", re.MULTILINE)


def filled(paragraphs: Mapping[str, str]) -> Callable[[_Documented], _Documented]:
    """A decorator of functions, and classes with their methods: a line `{name}` becomes that paragraph."""

    def paragraph(place: re.Match[str]) -> str:
        return textwrap.indent(paragraphs[place[2]], place[1])

    def fill(documented: _Documented) -> _Documented:
        for part in (documented, *vars(documented).values()):
            if (inspect.isfunction(part) or inspect.isclass(part)) and part.__doc__:
                part.__doc__ = _PLACE.sub(paragraph, part.__doc__)
        return documented

    return fill
