"""What asv needs of the benchmarks."""

import importlib
import json
import re
import shlex
import tomllib
import warnings
from pathlib import Path

import pytest
from processes import output_of

ROOT = Path(__file__).resolve().parents[2]
BENCHMARKS = ROOT / "benchmarks"
CONFIG = json.loads((BENCHMARKS / "asv.conf.json").read_text())
PAGE = (ROOT / "docs" / "measured" / "benchmarks.md").read_text()
ALLOWED = {"spcacore"} | {name.lower() for name in CONFIG["matrix"]["req"]}
IMPORT = """
import importlib, sys
from importlib.metadata import packages_distributions

for package, owners in packages_distributions().items():
    if not {{owner.lower() for owner in owners}} & {allowed!r}:
        sys.modules[package] = None  # as if it were not installed
import spcacore  # what is installed, before the sources are found

sys.path.insert(0, {root!r})
for name in {names!r}:
    importlib.import_module("benchmarks." + name)
"""
SMALL = {  # instead of the constants of these names
    "SHAPE": (40, 1200), "SHAPES": {"data": (40, 300), "covariance": (80, 60)}, "P": 1200,
    "R": 2, "WIDE": (20, 300), "TALL": (100, 120), "BOUNDS": [1.0, 30.0], "VALUES": [3, 6],
}  # fmt: skip
SMALL_PARAMETERS = {
    "shape": {str: "40x1200", tuple: (40, 300)}, "loadings": {str: "200x4"},
    "n": {int: 60}, "k": {int: 100}, "p": {int: 13},
}  # fmt: skip


@pytest.mark.slow
def test_every_file_is_imported_with_what_the_environment_has(tmp_path):
    """As asv does when it looks for benchmarks; one file that cannot be imported ends them all."""
    pytest.importorskip("threadpoolctl")
    names = [path.stem for path in BENCHMARKS.glob("*.py") if path.stem != "__init__"]
    script = IMPORT.format(allowed=ALLOWED, root=str(ROOT), names=names)
    output_of(script, cwd=tmp_path)
    timed = [name for name in names if re.search("^def (time|timeraw|track|mem)_", source(name), re.M)]
    assert timed == [name for name in timed if name.startswith("bench_")]  # asv takes all for its own


def source(name):
    return (BENCHMARKS / f"{name}.py").read_text()


def small(name, value):
    return SMALL_PARAMETERS.get(name, {}).get(type(value), value)


def run_once(benchmark, method):
    """With the first and the last of all sets of parameters, as small as SMALL has them."""
    function = getattr(benchmark, method, None)
    if method.startswith("timeraw_"):
        exec(function(), {})
        return
    params, names = getattr(benchmark, "params", ()), getattr(benchmark, "param_names", ())
    lists = [params] if params and not isinstance(params[0], (list, tuple)) else list(params)
    lists = [
        list(dict.fromkeys(small(name, v) for v in values)) for name, values in zip(names, lists, strict=True)
    ]
    benchmark.params = tuple(lists)
    cache = [benchmark.setup_cache()] if hasattr(benchmark, "setup_cache") else []
    for chosen in dict.fromkeys((tuple(v[0] for v in lists), tuple(v[-1] for v in lists))):
        try:
            if hasattr(benchmark, "setup"):
                benchmark.setup(*cache, *chosen)
        except NotImplementedError:  # so asv is told to leave it out
            continue
        result = function(*cache, *chosen)
        assert result is None or method.startswith("time_") or result >= 0


@pytest.mark.share(5)
@pytest.mark.parametrize("path", sorted(BENCHMARKS.glob("bench_*.py")), ids=lambda path: path.stem)
def test_every_benchmark_runs(path, monkeypatch):
    """On smaller arrays than those that asv times."""
    monkeypatch.syspath_prepend(ROOT)
    module = importlib.import_module(f"benchmarks.{path.stem}")
    for name in SMALL.keys() & vars(module).keys():
        if type(vars(module)[name]) is type(SMALL[name]):
            monkeypatch.setattr(module, name, SMALL[name])
    owners = [module, *(value for value in vars(module).values() if isinstance(value, type))]
    runs = [(o, name) for o in owners for name in dir(o) if re.match("(time|timeraw|track)_", name)]
    assert runs
    for owner, name in runs:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            run_once(owner() if isinstance(owner, type) else owner, name)


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
