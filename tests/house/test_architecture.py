"""The layout that CONTRIBUTING.md draws: imports go down only, in no circle, and at the top of a module."""

import ast
import functools
import re
from pathlib import Path

import pytest

import spcacore

ROOT = Path(spcacore.__file__).parent
FLOORS = (
    "_types", "_messages", "_labels", "_records", "_limits", "_core", "_validation",
    "linalg", "options", "choice", "methods", "_asked", "_rendering", "progress",
    "datasets", "readable", "supports", "operators", "results",
    "kernels", "tools", "objectives", "solvers", "models", "generalized", "clustering",
    "selection",
    "anndata", "sklearn", "plot", "cli", "__init__",
)  # fmt: skip
# Imports inside functions, of what is seldom needed: blocks of rows, dask, tables, pictures, file formats.
LATE = {
    ("readable", "_rendering"),
    ("operators.partition", "operators.dask"),
    ("cli", "cli.options"),
    ("cli.report", "plot"),
}


def name_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


FILES = {name_of(path): path for path in sorted(ROOT.rglob("*.py"))}


@functools.cache
def tree_of(name):
    return ast.parse(FILES[name].read_text(encoding="utf-8"))


@functools.cache
def imports(name):
    """(module imported, whether at the top) for each import of the package's own modules."""
    package = FILES[name].parent.relative_to(ROOT).parts
    tree = tree_of(name)
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


def test_imports_go_down_and_stand_at_the_top():
    all_of_them = {(name, target, top) for name in MODULES for target, top in imports(name)}
    assert not {(name, target) for name, target, _ in all_of_them if floor(target) > floor(name)}
    assert {(name, target) for name, target, top in all_of_them if not top} == LATE


def test_no_circle():
    below = {name: {target for target, _ in imports(name) if target in MODULES} for name in MODULES}
    while leaves := {name for name, targets in below.items() if not targets}:
        below = {name: targets - leaves for name, targets in below.items() if name not in leaves}
    assert not below


def test_names_at_the_top_of_a_module():
    """No function has that of the module, and none is assigned twice: the second would replace the first."""
    for name in FILES:
        body = tree_of(name).body
        assert name.rpartition(".")[2] not in {n.name for n in body if isinstance(n, ast.FunctionDef)}, name
        targets = [t for node in body if isinstance(node, ast.Assign) for t in node.targets]
        names = [t.id for t in targets if isinstance(t, ast.Name)]
        assert len(names) == len(set(names)), name


def test_size():
    """No file above 600 lines, no function above 60 beside its docstring."""
    for name, path in FILES.items():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 600, name
        for node in ast.walk(tree_of(name)):
            if isinstance(node, ast.FunctionDef):
                documented = ast.get_docstring(node) is not None
                code = node.end_lineno - (node.body[0].end_lineno if documented else node.lineno)
                assert code <= 60, (name, node.name)


def test_the_build_names_every_file():
    """What Meson installs and compiles, where the tests stand in a checkout."""
    root = Path(__file__).parents[2]
    if not (root / "meson.build").exists() or not (root / "spcacore" / "_core.pyx").exists():
        pytest.skip("not in a checkout")
    named = set(
        re.findall(r"'((?:spcacore|src_c)/[^']+\.(?:py|pyi|pxd|c))'", (root / "meson.build").read_text())
    )
    there = [*root.glob("spcacore/**/*.py*"), *root.glob("src_c/**/*.c")]
    files = {path.relative_to(root).as_posix() for path in there if path.suffix in (".py", ".pyi", ".c")}
    assert {name for name in named if not name.endswith((".pxd", "externs.py", "interface.py"))} == files
