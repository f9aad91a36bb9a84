"""Every option once: what it means, and the numbers that it may be. Types say the rest.

Records of options are checked by this table when they are made, and the command and the documentation read
it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import (
    TYPE_CHECKING,
    Any,
    Literal,
    TypeAlias,
    TypeVar,
    Union,
    dataclass_transform,
    get_args,
    get_origin,
    get_type_hints,
)

from ._validation import LARGEST, check_bool, check_choice, integer, number


@dataclass(frozen=True)
class Option:
    """What an option means, in a line, and the least and largest number that it may be.

    `low` is None if X decides.
    """

    meaning: str
    low: float | None = 0
    high: float = math.inf


# A name with a dot belongs to one record or function, where the option differs from others of that name.
OPTIONS: dict[str, Option] = {
    "n_components": Option("how many components", 1),
    "cardinality": Option("the number of nonzeros of each component", 1),
    "l1_bound": Option("the l1 norm of each component, from 1 to the square root of the number of variables"),
    "penalty": Option("how much each component must gain by a variable"),
    "sample_l1_bound": Option("the l1 norm of the scores of each component", None),
    "method": Option("how a component is sought: a name, or a record with options"),
    "options": Option("the record of the method"),
    "choice": Option("what you know about the variables"),
    "include": Option("variables that every component must have"),
    "exclude": Option("variables that no component may have"),
    "groups": Option("variables that enter and leave together"),
    "signs": Option("variables whose loadings may not be negative (1), or not positive (-1)"),
    "count": Option("whether a cardinality counts groups or variables"),
    "Total.count": Option("the number of nonzeros of all components together", 1),
    "share": Option("how much of the variance is to be explained", 0, 1),
    "of": Option("of what it is a share"),
    "deflation": Option("how a component is removed before the next, or a constraint in place of that"),
    "support": Option("whether components share all variables, none, or are free"),
    "refine": Option("whether each component is sought again, given the others; how often"),
    "certify": Option("whether bounds show how far from the best the components may be"),
    "kind": Option("whether X has data or a covariance"),
    "center": Option("whether means are subtracted, or what is"),
    "scale": Option("whether variables are divided by their deviations, or by what"),
    "sample_weight": Option("how many samples each row stands for"),
    "callback": Option("what hears of progress; True draws a bar"),
    "start": Option("where the search begins"),
    "n_starts": Option("how many starts the search has", 1),
    "max_iter": Option("how many iterations a search may take"),
    "tol": Option("the relative change below which an iteration ends"),
    "BranchAndBound.tol": Option("how far the value may be below the optimum, as a share", 0, 1),
    "swaps": Option("whether variables are swapped after the search, as long as that helps"),
    "strategy": Option("whether variables are added, left out, or both"),
    "norm": Option("which norm is penalized"),
    "relative": Option("whether the penalty is a share of the smallest that leaves no variable"),
    "block": Option("whether all components are sought at once"),
    "mu": Option("the weights of components that are sought at once"),
    "time_limit": Option("seconds after which a proof is given up"),
    "node_limit": Option("nodes of the tree after which a proof is given up", 1),
    "renormalize": Option("whether the values are fitted again on each support"),
    "screening": Option("how reading all of X for each product is spared"),
    "rng": Option("where random numbers come from; None is a fixed seed"),
    "covariance": Option("the covariance of the prior of the loadings"),
    "precision": Option("the inverse of that covariance"),
}


Kind: TypeAlias = Literal["flag", "words", "whole", "number", "other"]
_KINDS: dict[Any, Kind] = {bool: "flag", int: "whole", float: "number"}


_Record = TypeVar("_Record")


@dataclass_transform(eq_default=False, frozen_default=True, kw_only_default=True)
def options_record(cls: type[_Record]) -> type[_Record]:
    """Make a frozen record of options that are given by name."""
    return dataclass(frozen=True, eq=False, kw_only=True)(cls)


class Checked:
    """A frozen record that checks its fields when it is made."""

    def __post_init__(self) -> None:
        for one in _checks(type(self)):  # type: ignore[arg-type]
            value = getattr(self, one.name)
            if value is not None or not one.optional:
                one.check(value)
        for refusal in self._refusals():
            raise ValueError(refusal)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any:
            record = type(self).__name__
            hint = f": a grid names records, [{record}(...), ...]" if name == "set_params" else ""
            raise AttributeError(f"{record!r} object has no attribute {name!r}{hint}", name=name, obj=self)

    def _refusals(self) -> Iterator[str]:
        """Yield a message for each combination of fields that is not possible."""
        return iter(())


@dataclass(frozen=True)
class Declared:
    """An option as declared by a function or record: its row, the words or type that it takes, its default.

    `kind` is "flag", "words", "whole", "number" or, if only the function can check the value, "other".
    """

    name: str
    option: Option
    kind: Kind
    words: tuple[str, ...]
    optional: bool
    default: Any

    def check(self, value: object) -> None:
        """Raise an error for a value that neither type nor row allow."""
        low, high = self.option.low, self.option.high
        if low is None:
            return
        if self.kind == "words":
            check_choice(value, self.name, self.words)
        elif self.kind == "flag":
            check_bool(value, self.name)
        elif self.kind == "whole":
            integer(value, self.name, int(low), LARGEST if high == math.inf else int(high))
        elif self.kind == "number":
            number(value, self.name, low, high)


def declared(thing: Callable[..., object]) -> dict[str, Declared]:
    """Return the options of a record or a function by name, in order; parameters without a row are data."""
    hints = get_type_hints(thing)
    owner = thing.__name__
    return {
        name: _declared(owner, parameter, hints.get(name, object))
        for name, parameter in signature(thing).parameters.items()
        if name in OPTIONS or f"{owner}.{name}" in OPTIONS
    }


def _declared(owner: str, parameter: Parameter, hint: Any) -> Declared:
    """Return a parameter as an option of its owner."""
    name = parameter.name
    several = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
    kinds = [one for one in several if one is not NoneType]
    words: tuple[str, ...] = ()
    kind: Kind = "other"
    if all(get_origin(one) is Literal for one in kinds):
        kind, words = "words", tuple(word for one in kinds for word in get_args(one))
    elif len(kinds) == 1:
        kind = _KINDS.get(kinds[0], "other")
    row = OPTIONS.get(f"{owner}.{name}") or OPTIONS[name]
    return Declared(name, row, kind, words, len(kinds) < len(several), parameter.default)


@cache
def _checks(record: type) -> tuple[Declared, ...]:
    """Return the options of a record that can be checked."""
    return tuple(one for one in declared(record).values() if one.kind != "other")
