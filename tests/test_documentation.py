"""The examples in docstrings and in the README give the output they show."""

import doctest
import importlib
import inspect
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

import spcacore

MODULES = [
    m.name for m in pkgutil.iter_modules(spcacore.__path__, "spcacore.") if not m.name.endswith("_core")
]


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


def test_every_public_function_is_documented_in_full():
    for name in spcacore.__all__:
        thing = getattr(spcacore, name)
        if inspect.isfunction(thing):
            for section in ("Parameters", "Returns", "Raises", "References", "Examples"):
                assert f"\n{section}\n---" in inspect.getdoc(thing), (name, section)
            for parameter in inspect.signature(thing).parameters:
                assert parameter in thing.__doc__, (name, parameter)


def test_readme_example():
    readme = Path(__file__).resolve().parents[1] / "README.md"
    assert doctest.testfile(str(readme), module_relative=False).attempted > 0
    assert doctest.testfile(str(readme), module_relative=False).failed == 0


def test_import_brings_in_little():
    """scipy.sparse would more than double the time of the import; before it is imported, X cannot need it."""
    script = (
        "import numpy, scipy.linalg, sys; before = set(sys.modules);"
        "import spcacore; print(*set(sys.modules) - before)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=Path(__file__).parent
    )
    modules = done.stdout.split()
    assert "spcacore._core" in modules
    assert not [m for m in modules if m.startswith(("scipy.sparse", "csv", "importlib.resources", "email"))]
    assert not {"spcacore.cca", "spcacore.clustering", "spcacore.kernel", "spcacore.structured"} & set(
        modules
    )


def test_what_is_imported_late_is_there_as_if_it_were_not():
    script = (
        "import spcacore; assert set(spcacore.__all__) <= set(dir(spcacore));"
        "before = set(vars(spcacore)); from spcacore import *; print(*set(spcacore.__all__) - before);"
        "assert sparse_lda is spcacore.sparse_lda is spcacore.lda.sparse_lda"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd="/")
    assert {"sparse_lda", "soppca", "KernelPCAResult"} <= set(done.stdout.split())
    with pytest.raises(AttributeError, match="no attribute 'sparse_pcca'"):
        spcacore.sparse_pcca  # noqa: B018
