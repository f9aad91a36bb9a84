"""What asv needs of the benchmarks."""

import json
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BENCHMARKS = ROOT / "benchmarks"
CONFIG = json.loads((BENCHMARKS / "asv.conf.json").read_text())
PAGE = (ROOT / "docs" / "benchmarks.md").read_text()
IMPORT = """
import importlib.util, sys
from importlib.metadata import packages_distributions

for package, owners in packages_distributions().items():
    if not {{owner.lower() for owner in owners}} & {allowed!r}:
        sys.modules[package] = None  # as if it were not installed
spec = importlib.util.spec_from_file_location(
    "benchmarks", {init!r}, submodule_search_locations=[{folder!r}]
)
sys.modules["benchmarks"] = importlib.util.module_from_spec(spec)
for name in {names!r}:
    importlib.import_module("benchmarks." + name)
"""


def test_every_file_is_imported_with_what_the_environment_has(tmp_path):
    """As asv does when it looks for benchmarks; one file that cannot be imported ends them all."""
    pytest.importorskip("threadpoolctl")
    script = IMPORT.format(
        allowed={"spcacore"} | {name.lower() for name in CONFIG["matrix"]["req"]},
        init=str(BENCHMARKS / "__init__.py"),
        folder=str(BENCHMARKS),
        names=[path.stem for path in BENCHMARKS.glob("*.py") if path.stem != "__init__"],
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_the_build_has_what_it_requires():
    """The build is not isolated, nor are its dependencies checked."""
    (command,) = CONFIG["build_command"]
    assert "--no-isolation" in shlex.split(command)
    with open(ROOT / "pyproject.toml", "rb") as file:
        project = tomllib.load(file)
    wanted = [*project["build-system"]["requires"], *project["project"]["dependencies"]]
    names = {requirement.partition(">=")[0] for requirement in wanted}
    assert names <= set(CONFIG["matrix"]["req"])


def test_every_file_is_on_the_page():
    for path in BENCHMARKS.glob("bench_*.py"):
        assert f"`{path.name}`" in PAGE
