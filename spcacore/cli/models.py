"""What each method takes, by the signatures of functions and records, and the call that options make."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from .._messages import listed
from .._types import ShareOf
from .._validation import TAKES_MISSING
from ..choice import Choice, Explained, Prior, Total
from ..methods import METHODS, RatioSearch
from ..models.components import sparse_pca
from ..models.probabilistic import ppca
from ..selection.model import FITTING, SPARSITY_WORDS
from .source import Arguments, UserError

_FUNCTIONS = {name: one for name, (one, _) in FITTING.items()} | {"ppca": ppca}
FIT = (*METHODS, "spca", "sca", "sma", "ppca", "oppca", "soppca")
RESAMPLED = (*METHODS, "spca", "sca", "soppca", "sparse_cca", "sparse_lda")
SPARSITY = (*SPARSITY_WORDS, "explained", "total")
_NO_FLAGS = re.compile(  # data, records, and arrays that no word stands for
    "return|[XYy]|grid|model|kind|method|options|choice|prior|callback|sample_weight|start|mu|priors|covariance|"
    "precision"
)
FILES = {"sparse_cca": "other", "sparse_lda": "labels"}  # besides FILE


class Option(NamedTuple):
    """The argument in whose record it is, "" for one of the function; and its type."""

    place: str
    type: Any


def options_of(source: Callable[..., object], place: str = "") -> dict[str, Option]:
    """The parameters of a function or the fields of a record that may be flags."""
    own, types = inspect.signature(source).parameters, get_type_hints(source)
    return {name: Option(place, types[name]) for name in own if not _NO_FLAGS.fullmatch(name)}


def _share(
    explained: float | None = None, explained_of: ShareOf = "variance", total: int | None = None
) -> Explained | Total:
    return Total(total) if explained is None else Explained(explained, explained_of)  # type: ignore[arg-type]


@cache
def _records(method: str) -> Mapping[str, Callable[..., Any]]:
    """What has the options of a method: by the argument for which it stands, "" for the function itself."""
    function = _FUNCTIONS.get(method, sparse_pca)
    own, found = inspect.signature(function).parameters, {"": function}
    if "prior" in own:
        found["prior"] = Prior
    if "choice" in own and method not in FILES:
        found["choice"] = Choice
    if method == "sparse_lda":
        found["options"] = RatioSearch
    if method in METHODS:
        found["method"] = METHODS[method]
        if METHODS[method].sparsity == "cardinality":
            found["cardinality"] = _share
    return found


@cache
def takes(method: str) -> Mapping[str, Option]:
    """The options of a method."""
    records = _records(method)
    found = {name: one for place, by in records.items() for name, one in options_of(by, place).items()}
    if method in METHODS and "cardinality" not in records:
        del found["cardinality"]
    if method in FILES:
        found[FILES[method]] = Option("file", str)
    if "kind" in inspect.signature(records[""]).parameters:
        found["covariance"] = Option("", bool)
    return found


def call_of(args: Arguments) -> tuple[Callable[..., Any], dict[str, Any], dict[str, Any]]:
    """The function, its keywords by the options, and what becomes its choice of variables."""
    records = _records(args.method)
    parts: dict[str, dict[str, Any]] = {"": {}, "choice": {}}
    for name, value in args.of_model.items():
        if name not in takes(args.method):
            refuse(args, name)
        parts.setdefault(takes(args.method)[name].place, {})[name] = value
    several = [long_flag(name) for name in SPARSITY if name in args.of_model]
    if len(several) > 1:
        raise UserError(f"argument {several[1]}: not with {several[0]}")
    keywords: dict[str, Any] = {"method": args.method} if args.method in METHODS else {}
    keywords |= parts.pop("")
    choice = parts.pop("choice")
    try:
        keywords |= {place: records[place](**part) for place, part in parts.items() if place in records}
    except (TypeError, ValueError) as error:
        raise refusal(args, error) from None
    if keywords.pop("covariance", False):
        keywords["kind"] = "covariance"
    own = inspect.signature(records[""]).parameters
    for name in ("center", "scale"):
        if getattr(args, name) is None:
            setattr(args, name, own[name].default if name in own else True)
    return records[""], keywords, choice


def refuse(args: Arguments, name: str) -> None:
    """Raise for an option that the method does not take."""
    others = [method for method in args.methods if name in takes(method)]
    instead = [long_flag(one) for one in SPARSITY if one in takes(args.method)] if name in SPARSITY else []
    which = f", which takes {listed(instead)}" if instead else ""
    flag = long_flag(f"no_{name}" if getattr(args, name) is False else name)
    raise UserError(f"argument {flag}: not for method {args.method}{which}, but {listed(others)}")


def refusal(args: Arguments, error: Exception) -> UserError:
    """What the library says of an option or the data, in the words of the command."""
    files = {"X": str(args.source or args.file), "Y": args.other, "y": args.labels}
    said = re.sub(r"\b[XYy]\b", lambda m: files[m[0]] or m[0], in_flags(str(error)))
    said += "; --impute fills or drops" * (TAKES_MISSING in str(error))
    word = re.split(r"\W", said, maxsplit=1)[0]
    name = {"grid": args.grid_of, "share": "explained", "Total": "total"}.get(word, word)
    if name in vars(args):
        rest = re.sub(rf"^(grid\S*|{word}) ", "", said)
        return UserError(f"argument {long_flag(name)}: {rest}")
    said = re.sub(r"at \((\d+), (\d+)\)", r"in row \1, column \2", said)
    said = re.sub(r"\b(row|column) (\d+)", lambda m: f"{m[1]} {int(m[2]) + 1}", said)  # not from 0
    return UserError(said if said.startswith(files["X"]) else f"{files['X']}: {said}")


def long_flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def in_flags(text: str) -> str:
    """What the library says of options, in the flags of the command."""
    text = re.sub(r"cardinality=(Explained|Total)\(\.\.\.\)", lambda m: f"--{m[1].lower()}", text)
    text = re.sub(r"\b\w+=\(?[A-Z]\w+\((\w+=[^()]*)\)", r"\1", text)
    text = text.replace("kind='covariance'", "covariance=True").replace("kind='data'", "--no-covariance")
    flags = re.sub(
        r"\b([a-z]\w*)=('\w+'|[\w.-]*\w|\.\.\.)", lambda m: f"{long_flag(m[1])} {m[2]}".replace("'", ""), text
    )
    return re.sub(r" (True|\.\.\.)", "", flags)
