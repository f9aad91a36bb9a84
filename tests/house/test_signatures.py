"""`help`, `inspect.signature` and tab completion: types, options by name, and names of this package alone."""

import importlib
import inspect
import re
import sys
import typing

import pytest
from extras import skipping

import spcacore
from spcacore import _types, methods
from spcacore.models import request
from spcacore.operators import deflation
from spcacore.solvers import table

MODULES = [
    "spcacore",
    *(f"spcacore.{name}" for name in ("anndata", "datasets", "plot", "progress", "sklearn")),
]
OPEN = {
    ("ProgressBar", "options"),  # those of tqdm, whatever its version has
    ("SparseCCA.transform", "return"),  # one array or two, as scikit-learn asks
}
BLOCKS = {"results", "reduced", "stacked", "mapped", "split", "split_or_none", "beside", "whole"}  # plumbing


def public(module):
    """(name, function or class) of all that users call, methods as well."""
    with skipping():
        module = importlib.import_module(module)
    for name in module.__all__:
        thing = getattr(module, name)
        if inspect.isclass(thing):
            yield name, thing
            for method, function in inspect.getmembers(thing, inspect.isfunction):
                ours = function.__module__.startswith("spcacore") and not method.startswith("_")
                if ours and not (name in {"RowBlocks", "Moments"} and method in BLOCKS):
                    yield f"{name}.{method}", function
        elif callable(thing):
            yield name, thing


def untyped(annotation):
    """Whether a value may be anything: `Any` outside of brackets, or no annotation at all."""
    if annotation is inspect.Signature.empty:
        return True
    text = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))
    while (shorter := re.sub(r"\[[^\[\]]*\]", "", text)) != text:
        text = shorter
    return re.search(r"\bAny\b", text) is not None


@pytest.mark.parametrize("module", MODULES)
def test_signatures_have_types_and_options_by_name(module):
    wrong = []
    for name, thing in public(module):
        signature = inspect.signature(thing)
        for option, one in signature.parameters.items():
            if option == "self" or (name, option) in OPEN:
                continue
            if one.kind in (one.VAR_KEYWORD, one.VAR_POSITIONAL):
                wrong.append(f"{name} hides its options behind {one}")
            elif untyped(one.annotation) and not (inspect.isclass(thing) and not hasattr(thing, "fit")):
                wrong.append(f"{name}: {option} may be anything")
        answer = signature.return_annotation
        if not inspect.isclass(thing) and untyped(answer) and (name, "return") not in OPEN:
            wrong.append(f"{name} returns anything")
    assert not wrong, "\n".join(wrong)


def test_what_counts_as_a_type():
    assert all(map(untyped, ("Any", "Any | None", inspect.Signature.empty)))
    assert not any(map(untyped, ("NDArray[Any]", "dict[str, tuple[Any, int]] | None")))


def test_functions_that_run_a_function_have_few_options():
    for name in ("stability", "sparsity_path", "select_sparsity", "select_n_components", "select_prior"):
        assert [*inspect.signature(getattr(spcacore, name)).parameters][:2] == ["X", "model"]
        assert len(inspect.signature(getattr(spcacore, name)).parameters) <= 14


@pytest.mark.parametrize(
    ("words", "choices"),
    [
        (_types.MethodName, table.SOLVERS),
        (_types.MethodName, methods.METHODS),
        (_types.Deflation, [*deflation.DEFLATIONS, *request.CONSTRAINTS]),
    ],
)
def test_words_of_types_are_those_that_are_checked(words, choices):
    assert set(typing.get_args(words)) == set(choices)


@pytest.mark.parametrize("module", MODULES)
def test_tab_completion_offers_what_is_public(module):
    with skipping():
        module = importlib.import_module(module)
    offered = set(dir(module))
    more = {"__version__", "anndata", "plot", "progress", "sklearn"} if module is spcacore else set()
    assert offered == set(module.__all__) | more
    for name in offered - {"plot", "sklearn"}:  # which need other packages
        assert getattr(module, name) is not None


def test_what_needs_a_package_says_so(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("spcacore.sklearn")]:
        monkeypatch.delitem(sys.modules, name)
    for name in [name for name in sys.modules if name.partition(".")[0] == "sklearn"] or ["sklearn"]:
        monkeypatch.setitem(sys.modules, name, None)
    if "sklearn" in vars(spcacore):
        monkeypatch.delattr(spcacore, "sklearn")
    assert not hasattr(spcacore, "sklearn")
    with pytest.raises(AttributeError, match=r"spcacore\.sklearn is not there: .*sklearn"):
        _ = spcacore.sklearn
