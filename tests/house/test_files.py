"""Where data are looked for, and that the lists of them are whole."""

import re
from fnmatch import fnmatch
from pathlib import Path

import files
import oracles
import pytest

ROOT = Path(__file__).resolve().parents[2]


def table_entries(text):
    """What the first columns of a page's tables have between backticks."""
    return re.findall(r"`([^`]+)`", " ".join(re.findall(r"(?m)^\| ([^|]*) \|", text)))


def test_files_are_here_or_obtained_as_contributing_says():
    text = "".join(p.read_text() for f in ("tests", "benchmarks") for p in (ROOT / f).rglob("*.py"))
    wanted = set(re.findall(r'(?:data_file|arrays)\("([^"]+)"\)', text))
    absent = {name for name in wanted if not (files.DATA / name).exists()}
    assert len(wanted) > len(absent) > 0
    listed = {name for name in table_entries((ROOT / "CONTRIBUTING.md").read_text()) if "." in name}
    assert absent == listed


def test_the_readme_has_a_row_for_each_file():
    patterns = [p.rstrip("/") for p in table_entries((files.DATA / "README.md").read_text())]
    names = [p.name.removesuffix(".csv") for p in files.DATA.iterdir() if p.name != "README.md"]
    for name in names:
        assert any(fnmatch(name, p.removesuffix(".csv")) for p in patterns), name
    for pattern in patterns:
        if "_" in pattern:
            assert any(fnmatch(name, pattern.removesuffix(".csv")) for name in names), pattern


def test_every_target_of_the_fuzzer_has_a_corpus():
    core = ROOT / "tests" / "core"
    text = (core / "checks.h").read_text()
    rare = int(re.search(r"RARE = (\d+)", text)[1])
    targets = {name for name, percent in re.findall(r"ROW\((\w+), (\d+)\)", text) if int(percent) > rare}
    assert targets == {folder.name for folder in (core / "corpus").iterdir() if any(folder.iterdir())}


def test_a_folder_of_ones_own(tmp_path, monkeypatch):
    mine = "mine.npz"
    (tmp_path / mine).touch()
    monkeypatch.delenv(files.VARIABLE, raising=False)
    with pytest.raises(FileNotFoundError, match=r"needs mine.npz, see CONTRIBUTING.md"):
        files.data_file(mine)
    monkeypatch.setenv(files.VARIABLE, str(tmp_path))
    assert files.data_file(mine) == tmp_path / "mine.npz"
    assert files.data_file("uci_correlations.npz").parent == files.DATA
    for read in (oracles.data_file, oracles.data_arrays):
        with pytest.raises(pytest.skip.Exception, match="no_such_file"):
            read("no_such_file.npz")
    monkeypatch.setenv(files.VARIABLE, str(tmp_path / "nowhere"))
    with pytest.raises(NotADirectoryError, match="nowhere"):
        files.data_file(mine)
