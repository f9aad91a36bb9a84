"""The words of errors: numbers with their nouns, and what to do instead of what was given."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Set
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, partial, wraps
from inspect import Parameter, signature
from types import FunctionType
from typing import Any

from ._types import Names

_WITHIN = ("spcacore", "sklearn")  # packages whose lines a warning does not point to
_UNSAID: ContextVar[tuple[str, ...]] = ContextVar("unsaid", default=())

_PROGRESS = ("callback", "progress", "trace", "verbose")
IN_RECORDS: dict[str, str] = {}  # options inside another argument, and how to write them
FIELDS: dict[str, tuple[str, ...]] = {}  # the options of each record


@cache
def other_words(of: str) -> dict[str, Any]:
    """Return what is said here about words of other packages; the file is read when an error needs it."""
    import tomllib  # no other call needs it
    from importlib.resources import files

    with (files(__package__) / "words.toml").open("rb") as file:
        rows = tomllib.load(file).get(of, {})
    return {one: here for theirs, here in rows.items() for one in theirs.split()}


def warn_not_converged(converged: Iterable[bool], limit: str) -> None:
    """Warn which components have not converged, if any; `limit` says in what."""
    some = [str(t) for t, one in enumerate(converged) if not one]
    if some:
        warn(f"component{'s' * (len(some) > 1)} {', '.join(some)} not converged in {limit}")


def convergence(result: Any) -> str:
    """Return words for whether a result has converged, and in how many iterations."""
    return f"{'converged' if result.converged else 'not converged'} in {counted(result.n_iter, 'iteration')}"


def brief(text: str) -> str:
    """Shorten a text to 40 letters."""
    return text if len(text) <= 40 else f"{text[:39]}…"


def few(values: Iterable[object]) -> str:
    """Write values as a list, [1, 2, 3]; of many only the first and the last."""
    words = [f"{value:.6g}" if isinstance(value, float) else brief(str(value)) for value in values]
    return f"[{', '.join(words if len(words) <= 8 else [*words[:6], '...', words[-1]])}]"


def first_of(words: Iterable[str], most: int = 5) -> str:
    """Write words as a list, "a, b, ..."."""
    known = list(words)
    return ", ".join([*known[:most], *["..."] * (len(known) > most)])


def counted(number: int, noun: str) -> str:
    """Write a number with its noun: 1 entry, 2 entries."""
    if number == 1:
        return f"{number} {noun}"
    if noun.endswith("y"):
        return f"{number} {noun[:-1]}ies"
    return f"{number} {noun}{'es' if noun.endswith('s') else 's'}"


def listed(words: Iterable[str], last: str = "or") -> str:
    """Write words as a list with "or" or another word before the last: a, b or c."""
    *first, final = words
    return f"{', '.join(first)} {last} {final}" if first else final


def instead_of(word: str, allowed: Mapping[str, str]) -> str:
    """Return a clause that says what an option is called here, if it is not allowed; or nothing."""
    found = other_words("letters").get(word, other_words("options").get(word.lower(), ()))
    if isinstance(found, str):
        here = word.rpartition("_")[0]
        return f"; do you mean {allowed[here]}?" if here in allowed else f": {found}"
    names = [name for name in found if name in allowed]
    if not names and not found:
        from difflib import get_close_matches

        names = [name for name in get_close_matches(word, allowed, 1, 0.75) if name != word]
    return f"; do you mean {listed(allowed[name] for name in names)}?" if names else ""


def meant(name: str, value: Any, allowed: Collection[str]) -> str:
    """Return a clause that says what a value means here, if it is not allowed; or nothing."""
    from difflib import get_close_matches

    if not isinstance(value, str):
        return ""
    near = get_close_matches(value, allowed, 1, 0.75) or get_close_matches(value.lower(), allowed, 1, 0.75)
    known = other_words(f"values of {name}" if name else "functions").get(value)
    return f"; {known}" if known else f"; do you mean {near[0]!r}?" if near else ""


def with_advice(function: Callable[..., Any]) -> Any:
    """Return the function with better errors for wrong options: they say what these are called here."""

    first = next(iter(signature(function).parameters), "")
    advice, refuse, types = _advice, refuse_no_array, partial(other_words, "types")

    def call(*given: Any, **options: Any) -> Any:
        try:
            return function(*given, **options)
        except TypeError as error:
            if given and first != "adata" and type(given[0]).__name__ in types():  # whatever else is wrong
                refuse(given[0], first)
            inside = error.__traceback__ is None or error.__traceback__.tb_next is not None
            if inside:  # raised by the function itself; to name its traceback would make a reference cycle
                raise
            message = advice(function, given, options)
            if not message:
                raise
            said = str(error).partition(". Did you mean")[0]  # Python 3.13 adds a guess
            raise TypeError(f"{said}{message}") from None

    # Doctest looks for it in this module
    own = FunctionType(call.__code__, function.__globals__, closure=call.__closure__)
    return wraps(function)(own)


def elsewhere(word: str, parameters: Mapping[str, Parameter], method: Any = None) -> str:
    """Return a clause about an option that a function with these parameters does not have.

    It names the record of the method that is asked for, if that has the option.
    """
    name = str(getattr(method, "name", method)).replace("_", "")
    for record, fields in FIELDS.items():
        if record.lower() == name and word in fields:
            return f"; say method={record}({word}=...)"
    has = {name for name in parameters if name != "method" or "Method" in str(parameters[name].annotation)}
    inside = {name: call for name, call in IN_RECORDS.items() if call.partition("=")[0] in has}
    if "options" in parameters:
        record = str(parameters["options"].annotation).partition(" ")[0]
        inside |= {name: f"options={record}({name}=...)" for name in FIELDS.get(record, ())}
    if word in inside:
        return f"; say {inside[word]}"
    return instead_of(word, inside | {name: name for name in parameters})


def _advice(function: Callable[..., Any], given: Collection[Any], options: Mapping[str, Any]) -> str:
    """Return a clause about what is wrong with a call, or nothing."""
    if hasattr(function, "advice"):  # options that belong to its model
        found = function.advice(given, options)
        if found:
            return str(found)
    parameters = signature(function).parameters
    unknown = next((name for name in options if name not in parameters), None)
    known = unknown == "choice" or IN_RECORDS.get(unknown or "", "").startswith("choice=")
    if known and (why := other_words("no_choice").get(function.__name__)):
        return f": it {why}; to exclude variables, leave them out of X"
    # Estimators have callbacks since scikit-learn 1.9
    if unknown in _PROGRESS and hasattr(next(iter(given), None), "set_callbacks"):
        return "; call its set_callbacks(ProgressBar()), with ProgressBar of sklearn.callback"
    if unknown is not None:
        return elsewhere(unknown, parameters, options.get("method"))
    names = [name for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY]
    places = len(parameters) - len(names)
    many = len(given) > places and names
    return f"; what comes after place {places} goes by name, as in {names[0]}=" if many else ""


def refuse_no_array(x: Any, name: str) -> None:
    """Raise for what is no array and cannot become one, with what to pass instead."""
    kind = type(x).__name__
    if x is None:
        raise TypeError(f"{name} is None; an array of numbers is needed")
    if isinstance(x, (str, bytes)):
        advice = (
            "read the file first and pass its array" if "." in str(x) else "an array of numbers is needed"
        )
        raise TypeError(f"{name} is the string {x!r:.60}; {advice}")
    if isinstance(x, os.PathLike):
        raise TypeError(f"{name} is the path {str(x)!r:.60}; read the file first, and pass its array")
    if isinstance(x, type):
        raise TypeError(f"{name} is the class {x.__name__}; an array of numbers is needed")
    other = not (isinstance(x, (list, tuple)) or hasattr(x, "__array__"))
    if other and kind in other_words("types"):
        variable = name if name.isidentifier() else "it"
        raise TypeError(f"{name} is of type {kind}; pass {other_words('types')[kind].format(x=variable)}")
    if other and hasattr(x, name) and not hasattr(x, "shape"):  # a result has loadings, for one
        raise TypeError(f"{name} is of type {kind}, and numbers are needed: pass its attribute {name}")
    for convert in ("to_pandas", "toPandas", "df"):
        if other and callable(getattr(x, convert, None)):
            raise TypeError(f"{name} is of type {kind}; pass {name}.{convert}()")
    if isinstance(x, Mapping) and not hasattr(x, "tocsr"):  # a sparse matrix may be a mapping
        raise TypeError(f"{name} is a {kind}; pass a dataframe, or an array with its values as columns")
    if isinstance(x, Set):
        raise TypeError(f"{name} is a {kind}, which has no order; pass an array of numbers")
    if hasattr(x, "__next__"):
        raise TypeError(
            f"{name} is a {kind}, which can be read only once; pass an array or a list of its rows"
        )


def warn(message: str, category: type[Warning] = RuntimeWarning) -> None:
    """Warn at the line that called the package, unless a caller in the package is `quiet` about this message.

    A RuntimeWarning is about the result, a UserWarning about what was given.
    """
    if not any(message.startswith(beginning) for beginning in _UNSAID.get()):
        warnings.warn(message, category, stacklevel=_outside())


@contextmanager
def quiet(beginning: str = "") -> Iterator[None]:
    """Leave out warnings that begin with these words, in this thread and the tasks that it starts.

    `warnings.catch_warnings` would silence other threads of the program, too.
    """
    token = _UNSAID.set((*_UNSAID.get(), beginning))
    try:
        yield
    finally:
        _UNSAID.reset(token)


def warn_repeated(names: Names) -> None:
    """Warn if several variables have the same name, because results cannot tell them apart."""
    if names is None or len(set(names)) == len(names):
        return
    warn(repeated(names))


def repeated(names: Collection[str]) -> str:
    """The sentence about names that several variables have."""
    seen: set[str] = set()
    twice = list(dict.fromkeys(n for n in names if n in seen or seen.add(n)))  # type: ignore[func-returns-value]
    shown = first_of(map(repr, twice), 3)
    return f"several variables have the same name: {shown}; a name does not tell them apart"


def _outside() -> int:
    """Return how far up the stack the caller of the package is, so that a warning points there."""
    depth, frame = 1, sys._getframe(1)
    while frame is not None and frame.f_globals.get("__name__", "").split(".")[0] in _WITHIN:
        depth, frame = depth + 1, frame.f_back  # type: ignore[assignment]
    return depth
