"""Paragraphs that docstrings share: all are filled in, and each parameter is described."""

import importlib
import inspect
import re

import pytest
from extras import skipping

import spcacore
from spcacore._records import filled


@filled({"size": "size : int\n    In [1, p].", "end": "Returns\n-------\nint"})
class Example:
    """A class.

    Parameters
    ----------
    {size}
    kind : {"a", "b"}
    """

    size: int = 1

    def method(self):
        """A method.

        {end}
        """


def test_lines_become_paragraphs_at_their_indentation():
    assert inspect.getdoc(Example).endswith('size : int\n    In [1, p].\nkind : {"a", "b"}')
    assert inspect.getdoc(Example.method) == "A method.\n\nReturns\n-------\nint"


def test_a_paragraph_must_be_there():
    with pytest.raises(KeyError, match="size"):
        filled({})(type("Wrong", (), {"__doc__": "    {size}"}))


def described(doc):
    """The names in the section of the parameters."""
    section = re.search(r"Parameters\n-+\n(.*?)(?=\n\n\w[\w ]*\n-{3,}\n|\Z)", doc, re.DOTALL)
    names = re.findall(r"(?m)^(\w+(?:, \w+)*)(?= :|$)", section[1]) if section else []
    return [name for group in names for name in group.split(", ")]


@pytest.mark.parametrize("module", ["spcacore.sklearn", "spcacore.plot"])
def test_every_parameter_is_described(module):
    with skipping():
        module = importlib.import_module(module)
    for name in module.__all__:
        thing = getattr(module, name)
        assert thing.__module__ == module.__name__
        assert sorted(described(inspect.getdoc(thing))) == sorted(inspect.signature(thing).parameters)
        for method, function in inspect.getmembers(thing, inspect.isfunction):
            if method.startswith("_") or not function.__module__.startswith("spcacore"):
                continue
            doc = inspect.getdoc(function)
            assert not re.search(r"(?m)^ *\{\w+\}$", doc)
            given = list(inspect.signature(function).parameters)[1:]
            assert sorted(described(doc)) == sorted(given), f"{name}.{method}"


def test_every_paragraph_is_filled_in():
    """A line `{name}` that has other words too is no paragraph, and would be shown as it is."""
    for name in spcacore.__all__:
        assert not re.search(r"(?m)^\s*\{\w+\}", inspect.getdoc(getattr(spcacore, name)) or ""), name
