"""What a call asks of a method: its record, the options in it, and how sparse components are to be."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

from ._messages import FIELDS, IN_RECORDS, listed, meant
from ._types import RandomSource
from ._validation import check_choice
from .methods import METHODS, Method, RatioSearch

__all__ = [
    "SPARSITY", "as_method", "as_ratio_search", "methods_of", "options_of", "record_of", "seed_of",
    "sparsity_asked", "sparsity_given", "with_sparsity",
]  # fmt: skip
__dir__ = __all__.copy

SPARSITY = {
    "cardinality": "the number of nonzeros of each component",
    "l1_bound": "the l1 norm of each component, between 1 and the root of the number of variables",
    "penalty": "how much each component must gain by a variable",
}


def options_of(record: Method) -> dict[str, Any]:
    """What only this method takes, where it is given."""
    apart = ("renormalize", "screening", "rng", "l1_bound", "penalty")
    given = {f.name: getattr(record, f.name) for f in fields(record) if f.name not in apart}
    optional = {f.name for f in fields(record) if f.default is None}
    return {name: value for name, value in given.items() if value is not None or name not in optional}


def seed_of(record: Any) -> RandomSource:
    """What random numbers come from."""
    source: RandomSource = getattr(record, "rng", None)
    return source


def sparsity_given(record: Method, value: Any) -> Any:
    """How sparse components are: the value of a call, or that of the record, of which there is one."""
    own = getattr(record, record.sparsity, None)
    if own is not None and value is not None:
        raise TypeError(f"{record.sparsity} is given twice: by {type(record).__name__}, and in the call")
    return own if value is None else value


def sparsity_asked(record: Method, cardinality: Any) -> Any:
    """The same, where a call has a cardinality or the record has what the method takes."""
    if cardinality is not None and record.sparsity != "cardinality":
        raise TypeError(
            f"method {record.name!r} takes {record.sparsity}, not cardinality: "
            f"method={type(record).__name__}({record.sparsity}=...)"
        )
    return sparsity_given(record, cardinality)


def with_sparsity(record: Method, value: Any) -> Method:
    """The record with another l1 bound or penalty."""
    return record if record.sparsity == "cardinality" else replace(record, **{record.sparsity: value})


def as_ratio_search(given: Any) -> RatioSearch:
    """A record, or that of a name."""
    if isinstance(given, str):
        name: Any = check_choice(given, "method", ("auto", "greedy", "rayleigh_flow"))
        return RatioSearch(method=name)
    if not isinstance(given, RatioSearch):
        raise TypeError(f"method must be the name of a method or RatioSearch(...), not {given!r}")
    return given


def as_method(given: Any, name: str = "method", only: str | None = None) -> Method:
    """The record of a method: itself, or of a name, that with its defaults."""
    allowed = [only] if only is not None else [*METHODS]
    if isinstance(given, str) and only is None:
        return METHODS[check_choice(given, name, METHODS)]()
    if given is None and only is not None:
        return METHODS[only]()
    if isinstance(given, Method) and given.name in allowed:
        return given
    records = listed(f"{METHODS[one].__name__}(...)" for one in allowed)
    if isinstance(given, type) and issubclass(given, Method):
        raise TypeError(f"{name} is the class {given.__name__}: call it, {given.__name__}()")
    what = f"{type(given).__name__}(...)" if isinstance(given, Method) else repr(given)
    advice = meant(name, given, METHODS)
    words = "" if only else "the name of a method or "
    raise TypeError(f"{name} must be {words}{records}, not {what}{advice}")


def record_of(method: str, **options: Any) -> Method:
    """The record of a method by name, with options by name; each is refused where the method has none."""
    record = METHODS[check_choice(method, "method", METHODS)]
    takes = {name: [f.name for f in fields(one)] for name, one in METHODS.items()}
    for name in options:
        if name not in takes[method]:
            others = [repr(other) for other in takes if name in takes[other]]
            of = f", but of {listed(others, 'and')}" if others else ""
            raise TypeError(f"{name} is no option of method {method!r}{of}")
    return record(**options)


def methods_of(sparsity: str) -> str:
    """The methods that take a sparsity, for a message."""
    return listed(repr(name) for name, one in METHODS.items() if one.sparsity == sparsity)


FIELDS |= {one.__name__: tuple(f.name for f in fields(one)) for one in METHODS.values()}
IN_RECORDS |= {
    field: f"method={record}({field}=...)" for record, names in reversed(FIELDS.items()) for field in names
}
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
