"""What each method takes, by the signatures of functions and records, and the call that options make."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, NamedTuple, get_type_hints

from .._messages import listed
from .._types import ShareOf
from ..choice import Choice, Explained, Prior, Total
from ..methods import METHODS, RatioSearch
from ..models.components import sparse_pca
from ..models.probabilistic import ppca
from ..selection.model import FITTING, SPARSITY_WORDS
from .table import Arguments, UserError

__all__ = [
    "FILES", "FIT", "RESAMPLED", "SPARSITY", "Call", "Option", "call_of", "flag_of", "in_flags", "long_flag",
    "options_of", "refusal", "refuse", "takes",
]  # fmt: skip

_FUNCTIONS = {name: one for name, (one, _) in FITTING.items()} | {"ppca": ppca}
FIT = (*METHODS, "spca", "sca", "sma", "ppca", "oppca", "soppca")
RESAMPLED = (*METHODS, "spca", "sca", "soppca", "sparse_cca", "sparse_lda")
SPARSITY = (*SPARSITY_WORDS, "explained", "total")
_NO_FLAGS = re.compile(  # data, records, and arrays that no word stands for
    "[XYy]|grid|model|kind|method|choice|prior|callback|sample_weight|start|mu|priors"
)
_SHORT = {"cardinality": "-k/", "n_components": "-n/"}
FILES = {"sparse_cca": "other", "sparse_lda": "labels"}  # besides FILE


class Option(NamedTuple):
    """The argument in whose record it is, "" for one of the function; and its type."""

    place: str
    type: Any


def options_of(source: Callable[..., object], place: str = "") -> dict[str, Option]:
    """The parameters of a function or the fields of a record that may be flags."""
    types = get_type_hints(source)
    return {
        name: Option(place, types[name])
        for name in inspect.signature(source).parameters
        if not _NO_FLAGS.fullmatch(name)
    }


def _function(method: str) -> Callable[..., Any]:
    return _FUNCTIONS.get(method, sparse_pca)


def _share(explained: Any = None, explained_of: Any = "variance", total: Any = None) -> Explained | Total:
    return Total(total) if explained is None else Explained(explained, explained_of)


@cache
def takes(method: str) -> Mapping[str, Option]:
    """The options of a method."""
    function = _function(method)
    own, found = inspect.signature(function).parameters, options_of(function)
    if method in METHODS:
        record = METHODS[method]
        found |= options_of(record, "method")
        if record.sparsity == "cardinality":
            found |= {"explained": Option("cardinality", float), "total": Option("cardinality", int)}
            found["explained_of"] = Option("cardinality", ShareOf)
        else:
            del found["cardinality"]
    elif method == "sparse_lda":
        found |= options_of(RatioSearch, "method")
    if "prior" in own:
        found["rng"] = options_of(Prior, "prior")["rng"]
    if method in FILES:
        found[FILES[method]] = Option("file", str)
    elif "choice" in own:
        found |= options_of(Choice, "choice")
    if "kind" in own:
        found["covariance"] = Option("", bool)
    return found


class Call(NamedTuple):
    """A function with keywords, and what is to become its choice of variables."""

    function: Callable[..., Any]
    keywords: dict[str, Any]
    choice: dict[str, Any]


def call_of(args: Arguments) -> Call:
    """The call of the method with the options that were given, of which it has each."""
    method, function = args.method, _function(args.method)
    parts: dict[str, dict[str, Any]] = defaultdict(dict, {"method": {}} if method in METHODS else {})
    for name, value in args.of_model.items():
        if name not in takes(method):
            refuse(args, name)
        parts[takes(method)[name].place][name] = value
    several = [flag_of(name) for name in SPARSITY if name in args.of_model]
    if len(several) > 1:
        raise UserError(f"argument {several[1]}: not with {several[0]}")
    records = {"cardinality": _share, "method": METHODS.get(method, RatioSearch), "prior": Prior}
    try:
        keywords = parts[""] | {
            name: record(**parts[name]) for name, record in records.items() if name in parts
        }
    except (TypeError, ValueError) as error:
        raise refusal(args, error) from None
    if keywords.pop("covariance", False):
        keywords["kind"] = "covariance"
    own = inspect.signature(function).parameters
    for name in ("center", "scale"):
        if getattr(args, name) is None:
            setattr(args, name, own[name].default if name in own else True)
    return Call(function, keywords, parts["choice"])


def refuse(args: Arguments, name: str) -> None:
    """Raise for an option that the method does not take."""
    others = [method for method in args.methods if name in takes(method)]
    instead = [flag_of(one) for one in SPARSITY if one in takes(args.method)] if name in SPARSITY else []
    which = f", which takes {listed(instead)}" if instead else ""
    flag = flag_of(f"no_{name}" if getattr(args, name) is False else name)
    raise UserError(f"argument {flag}: not for method {args.method}{which}, but {listed(others)}")


def refusal(args: Arguments, error: Exception) -> UserError:
    """What the library says of an option or the data, in the words of the command."""
    source, said = args.source or args.file, str(error)
    files = {"X": source, "Y": args.other, "y": args.labels}
    word = re.split(r"\W", said, maxsplit=1)[0]
    name = {"grid": args.grid_of, "share": "explained", "Total": "total"}.get(word, word)
    subject = str(source)
    if name in vars(args):
        subject, said = f"argument {flag_of(name)}", re.sub(rf"^(grid\S*|{word}) ", "", said)
    said = re.sub(r"\b[XYy]\b", lambda m: str(files[m[0]] or m[0]), in_flags(said))
    return UserError(f"{subject}: {said}")


def long_flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def flag_of(name: str) -> str:
    """The flag as messages have it."""
    return _SHORT.get(name, "") + long_flag(name)


def in_flags(text: str) -> str:
    """What the library says of options, in the flags of the command."""
    text = re.sub(r"cardinality=(Explained|Total)\(\.\.\.\)", lambda m: f"--{m[1].lower()}", text)
    text = re.sub(r"\b\w+=\(?[A-Z]\w+\((\w+=[^()]*)\)", r"\1", text)
    text = text.replace("kind='covariance'", "covariance=True").replace("n_components", "-n")

    def flag(match: re.Match[str]) -> str:
        value = match[2].strip("'")
        return long_flag(match[1]) + ("" if value in ("True", "...") else f" {value}")

    return re.sub(r"\b([a-z]\w*)=('\w+'|[\w.-]*\w|\.\.\.)", flag, text)
