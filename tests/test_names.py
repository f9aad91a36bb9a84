"""Every module lists its names, for tab completion, `help` and `from module import *`."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest
from extras import skipping

PACKAGE = Path(__file__).resolve().parents[1] / "spcacore"
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__main__.py"]
CHOSEN = {"progress"}  # which a user imports: not every name of it is for users


def dotted(path):
    parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def defined(path):
    """Names without an underscore that the module itself defines."""
    names = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            names.add(node.name)
        elif isinstance(node, ast.Assign):
            stored = (name for target in node.targets for name in ast.walk(target))
            names |= {
                name.id for name in stored if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
            }
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return {name for name in names if not name.startswith("_")}


@pytest.mark.parametrize("path", [path for path in FILES if path.name != "__init__.py"], ids=dotted)
def test_a_module_lists_what_it_defines(path):
    with skipping():
        module = importlib.import_module(dotted(path))
    listed = set(module.__all__)
    assert len(listed) == len(module.__all__)
    assert listed <= defined(path)
    assert listed == defined(path) or path.stem in CHOSEN
    assert dir(module) == sorted(listed)


@pytest.mark.parametrize("path", [path for path in FILES if path.name == "__init__.py"], ids=dotted)
def test_a_package_shows_no_name_of_another(path):
    with skipping():
        package = importlib.import_module(dotted(path))
    shown = [name for name in dir(package) if not name.startswith("_") and hasattr(package, name)]
    for name in shown:
        value = getattr(package, name)
        home = value.__name__ if inspect.ismodule(value) else getattr(value, "__module__", "spcacore")
        assert home.startswith("spcacore"), name
