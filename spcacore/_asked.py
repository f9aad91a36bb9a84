"""What a call says about the method: its record, the options in the record, and the sparsity.

Also the tables by which errors say where an option belongs.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import Any, TypeVar

from ._messages import FIELDS, IN_RECORDS, listed, meant
from ._validation import as_seed, check_choice
from .methods import METHODS, Method, RatioSearch
from .options import OPTIONS, Checked

_Record = TypeVar("_Record", bound=Checked)
SPARSITY = {word: OPTIONS[word].meaning for word in ("cardinality", "l1_bound", "penalty")}


def seed_of(record: Any) -> int:
    """Return the seed by the source of random numbers in a record; 0 where it has none."""
    return as_seed(getattr(record, "rng", None))


def sparsity_given(record: Method, value: Any) -> Any:
    """Return the sparsity, from the call or from the record; raise TypeError if both have one."""
    own = getattr(record, record.sparsity, None)
    if own is not None and value is not None:
        raise TypeError(f"{record.sparsity} is given twice: by {type(record).__name__}, and in the call")
    return own if value is None else value


def sparsity_asked(record: Method, cardinality: Any) -> Any:
    """Return the sparsity for a method, given the `cardinality` of the call.

    Some methods take another quantity instead, which is in the record.
    """
    if cardinality is not None and record.sparsity != "cardinality":
        raise TypeError(
            f"method {record.name!r} takes {record.sparsity}, not cardinality: "
            f"method={type(record).__name__}({record.sparsity}=...)"
        )
    return sparsity_given(record, cardinality)


def with_sparsity(record: Method, value: Any) -> Method:
    """Return the record with another l1 bound or penalty."""
    return record if record.sparsity == "cardinality" else replace(record, **{record.sparsity: value})


def as_method(given: object) -> Method:
    """Return the record of a method, given a record, or a name that stands for its defaults."""
    if isinstance(given, str):
        return METHODS[check_choice(given, "method", METHODS)]()
    if isinstance(given, Method):
        return given
    raise _no_record(given, "method", "the name of a method or ", METHODS.values())


def as_record(given: _Record | None, kind: type[_Record]) -> _Record:
    """Return the options of a function that has one method: a record of this kind, by default a new one."""
    if given is None:
        return kind()
    if isinstance(given, kind):
        return given
    raise _no_record(given, "options", "", [kind])


def _no_record(given: object, name: str, others: str, kinds: Iterable[type[Checked]]) -> TypeError:
    """Return the error for something that is not a record."""
    if isinstance(given, type) and issubclass(given, Checked):
        return TypeError(f"{name} is the class {given.__name__}: call it, {given.__name__}()")
    what = f"{type(given).__name__}(...)" if isinstance(given, Checked) else repr(given)
    records = listed(f"{one.__name__}(...)" for one in kinds)
    return TypeError(f"{name} must be {others}{records}, not {what}{meant(name, given, METHODS)}")


def methods_of(sparsity: str) -> str:
    """Return the names of the methods that take this quantity, for a message."""
    return listed(repr(name) for name, one in METHODS.items() if one.sparsity == sparsity)


FIELDS |= {one.__name__: tuple(f.name for f in fields(one)) for one in METHODS.values()}
IN_RECORDS |= {
    field: f"method={record}({field}=...)" for record, names in reversed(FIELDS.items()) for field in names
}
FIELDS["RatioSearch"] = tuple(f.name for f in fields(RatioSearch))
_KNOWN = ("include", "exclude", "groups", "signs", "count")
IN_RECORDS |= {word: f"choice=Choice({word}=...)" for word in _KNOWN}
IN_RECORDS |= {
    "nonnegative": "choice=Choice(signs=1)",
    "explained": "cardinality=Explained(...)",
    "total_cardinality": "cardinality=Total(...)",
    "constraint": "deflation='orthogonal' or 'uncorrelated'",
    "objective": "method='least_squares'",
    "n_restarts": "refine=the number of attempts",
    "prior_covariance": "prior=Prior(covariance=...)",
    "prior_precision": "prior=Prior(precision=...)",
    **{f"{side}_{word}": f"choice=(Choice(...), Choice(...)), for X and Y, with {word}"
       for side in "xy" for word in (*_KNOWN, "nonnegative")},
    **{f"{side}_{word}": f"{word}=(one of X, one of Y)"
       for side in "xy" for word in ("cardinality", "l1_bound")},
}  # fmt: skip
