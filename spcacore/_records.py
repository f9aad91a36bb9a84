"""Records that the package keeps to itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeVar, dataclass_transform

__all__ = ["record", "replaced"]

_Class = TypeVar("_Class")


@dataclass_transform(eq_default=False, frozen_default=True)
def record(cls: type[_Class]) -> type[_Class]:
    """A dataclass that the type checker keeps frozen; to freeze it at run time takes 0.2 ms of the import."""
    return dataclass(eq=False, repr=False)(cls)


def replaced(given: _Class, **changes: object) -> _Class:
    """A record with some fields changed, as `dataclasses.replace`, which looks at each field."""
    new = object.__new__(type(given))
    new.__dict__.update(given.__dict__, **changes)
    return new
