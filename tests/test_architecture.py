"""The layout that CONTRIBUTING.md draws: imports go down only, in no circle, and at the top of a module."""

import ast
import functools
import re
from pathlib import Path

import pytest

import spcacore

ROOT = Path(spcacore.__file__).parent
FLOORS = (
    "_messages", "_labels", "_docstrings", "_types", "_records", "_limits", "_core", "_validation",
    "options", "choice", "methods", "_asked", "_rendering", "progress",
    "datasets", "readable", "linalg", "supports", "operators", "results",
    "tools", "objectives", "solvers", "models", "generalized", "clustering",
    "selection",
    "anndata", "sklearn", "plot", "cli", "__init__",
)  # fmt: skip
# Imports inside functions, of what is seldom needed: blocks of rows, dask, tables, pictures, file formats.
LATE = {
    ("readable", "_rendering"),
    ("operators.inputs", "operators.partition"),
    ("operators.partition", "operators.dask"),
    ("operators.transform", "operators.partition"),
    ("cli", "cli.options"),
    ("cli.compare", "plot"),
    ("cli.fit", "plot"),
    ("cli.path", "plot"),
    ("cli.stability", "plot"),
}


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


FILES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


@functools.cache
def imports(name):
    """(module imported, whether at the top) for each import of the package's own modules."""
    package = FILES[name].parent.relative_to(ROOT).parts
    tree = ast.parse(FILES[name].read_text(encoding="utf-8"))
    typing = {
        id(inner)
        for node in ast.walk(tree)
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
        for inner in ast.walk(node)
    }
    found = set()
    for node in ast.walk(tree):
        if not isinstance(node, ast.ImportFrom) or not node.level or id(node) in typing:
            continue
        base = package[: len(package) - node.level + 1] + tuple((node.module or "").split("."))
        for alias in node.names:
            parts = tuple(part for part in (*base, alias.name) if part)
            while parts and ".".join(parts) not in FILES and parts != ("_core",):
                parts = parts[:-1]
            target = ".".join(parts) or "__init__"
            if target != name:
                found.add((target, node.col_offset == 0))
    return found


MODULES = sorted(name for name in FILES if name != "__init__")


def floor(name):
    return FLOORS.index(name.split(".")[0])


@pytest.mark.parametrize("name", MODULES)
def test_imports_go_down_and_stand_at_the_top(name):
    assert not {target for target, _ in imports(name) if floor(target) > floor(name)}
    assert not {target for target, top in imports(name) if not top and (name, target) not in LATE}


def test_no_circle():
    below = {name: {target for target, _ in imports(name) if target in MODULES} for name in MODULES}
    while leaves := {name for name, targets in below.items() if not targets}:
        below = {name: targets - leaves for name, targets in below.items() if name not in leaves}
    assert not below


def test_late_imports_exist():
    assert {(name, target) for name in MODULES for target, top in imports(name) if not top} == LATE


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_module_is_not_named_as_a_function_that_it_holds(name):
    tree = ast.parse(FILES[name].read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert name.rpartition(".")[2] not in functions


@pytest.mark.parametrize("name", sorted(FILES))
def test_size(name):
    """No file above 600 lines, no function above 80 beside its docstring."""
    text = FILES[name].read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 600
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef):
            documented = ast.get_docstring(node) is not None
            code = node.end_lineno - (node.body[0].end_lineno if documented else node.lineno)
            assert code <= 80, node.name


def test_the_build_names_every_file():
    """What Meson installs and compiles, where the tests stand in a checkout."""
    root = Path(__file__).parents[1]
    if not (root / "meson.build").exists() or not (root / "spcacore" / "_core.pyx").exists():
        pytest.skip("not in a checkout")
    named = set(
        re.findall(r"'((?:spcacore|src_c)/[^']+\.(?:py|pyi|pxd|c))'", (root / "meson.build").read_text())
    )
    there = [*root.glob("spcacore/**/*.py*"), *root.glob("src_c/**/*.c")]
    files = {path.relative_to(root).as_posix() for path in there if path.suffix in (".py", ".pyi", ".c")}
    assert {name for name in named if not name.endswith((".pxd", "externs.py"))} == files


@pytest.mark.parametrize("name", sorted(FILES))
def test_no_name_is_assigned_twice(name):
    """At the top of a module: the second would silently replace the first."""
    body = ast.parse(FILES[name].read_text(encoding="utf-8")).body
    names = [
        t.id for node in body if isinstance(node, ast.Assign) for t in node.targets if isinstance(t, ast.Name)
    ]
    assert len(names) == len(set(names))
