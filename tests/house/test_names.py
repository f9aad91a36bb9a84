"""What users import lists its names, for tab completion, `help` and `from module import *`."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest
from extras import skipping

PACKAGE = Path(__file__).resolve().parents[2] / "spcacore"
FILES = [path for path in sorted(PACKAGE.rglob("*.py")) if path.name != "__main__.py"]
USERS = {"anndata", "choice", "datasets", "kernels", "methods", "progress", "results"}  # which tab completes
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


@pytest.mark.parametrize("part", sorted({path.relative_to(PACKAGE).parts[0] for path in FILES}))
def test_names_of_a_module(part):
    """A module that users import lists what it defines; a package shows no name of another."""
    for path in FILES:
        if path.relative_to(PACKAGE).parts[0] != part:
            continue
        with skipping():
            module = importlib.import_module(dotted(path))
        if path.name == "__init__.py":
            for name in dir(module):
                if not name.startswith("_") and hasattr(module, name):
                    value = getattr(module, name)
                    home = (
                        value.__name__
                        if inspect.ismodule(value)
                        else getattr(value, "__module__", "spcacore")
                    )
                    assert home.startswith("spcacore"), (path, name)
        elif hasattr(module, "__all__") or (path.stem in USERS and path.parent == PACKAGE):
            listed = set(module.__all__)
            assert len(listed) == len(module.__all__), path
            assert listed <= defined(path), path
            assert listed == defined(path) or path.stem in CHOSEN, path
            assert path.stem not in USERS or path.parent != PACKAGE or dir(module) == sorted(listed), path
