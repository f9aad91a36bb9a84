"""The mark `share`: which cases are run by default."""

import functools
import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
TABLES = """
import pytest

@pytest.mark.share(4)
@pytest.mark.parametrize("a", range(200))
def test_one(a): ...

@pytest.mark.share(1000)
@pytest.mark.parametrize(("a", "more"), [(a, 0) for a in range(12)])
@pytest.mark.parametrize("b", "xyz")
def test_each(a, more, b): ...

@pytest.mark.share(1000)
@pytest.mark.parametrize("a", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_first(a): ...
"""


@pytest.fixture(scope="module")
def collected(tmp_path_factory):
    """The names of the tests that options choose."""
    path = tmp_path_factory.mktemp("shares") / "test_tables.py"

    @functools.cache
    def collect(*options, text=TABLES, case=""):
        path.write_text(text)
        command = "-P", "-m", "pytest", "-q", "--collect-only", "-c", TESTS.parent / "pyproject.toml"
        where = "-p", "no:cacheprovider", "--rootdir", path.parent, "--confcutdir", path.parent
        done = subprocess.run(
            [sys.executable, *command, *where, "-p", "conftest", *options, f"{path}{case}"],
            capture_output=True, text=True, check=False, cwd=TESTS,
            env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(TESTS)},
        )  # fmt: skip
        names = [line.split("::")[1] for line in done.stdout.splitlines() if "::" in line]
        assert names, done.stdout + done.stderr
        return names

    return collect


def test_by_default_and_slow_are_all_once(collected):
    by_default, slow = collected(), collected("-m", "slow")
    assert {*by_default}.isdisjoint(slow)
    assert sorted(by_default + slow) == sorted(collected("-m", "slow or not slow"))
    assert len(by_default + slow) == 200 + 36 + 3
    assert sorted(collected("--all-cases")) == sorted({*by_default, *slow} - {"test_first[3]"})


def test_one_in_n_and_each_value_of_each_parameter(collected):
    names = collected()
    assert sum(name.startswith("test_one") for name in names) == 50
    pairs = [name[10:-1].split("-") for name in names if name.startswith("test_each")]
    assert {a for _, a, _ in pairs} == {*map(str, range(12))}
    assert {b for b, _, _ in pairs} == {*"xyz"}
    assert len(pairs) < 15
    assert sum(name.startswith("test_first") for name in names) == 1


def test_a_case_that_is_named_is_run(collected):
    name = collected("-m", "slow")[0]
    assert collected(case=f"::{name}") == [name]
    turned = TABLES.replace("range(200)", "range(199, -1, -1)")
    assert sorted(collected(text=turned)) == sorted(collected())  # whatever the order of the cases
