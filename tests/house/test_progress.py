"""The progress bar shows what it is told."""

import inspect
import io
import re
import sys
from functools import partial
from pathlib import Path

import pytest
from oracles import normal

import spcacore
from spcacore.progress import ProgressBar

X = normal(0, 40, 30)


def drawn(call):
    pytest.importorskip("tqdm", reason="needs tqdm")
    file = io.StringIO()
    with ProgressBar(desc="work", file=file, ncols=80, mininterval=0) as bar:
        call(bar)
    return [line.strip() for line in file.getvalue().replace("\r", "\n").split("\n") if line.strip()]


def test_components():
    lines = drawn(lambda bar: spcacore.sparse_pca(X, 4, cardinality=3, callback=bar))
    counts = [line.split("|")[2].split()[0] for line in lines if "|" in line]
    assert set(counts) >= {"1/4", "2/4", "3/4", "4/4"}
    assert counts[-1] == "4/4"
    assert all(line.startswith("work:") for line in lines)
    assert "iteration" in lines[-1]


def test_one_bar_for_several_calls():
    def calls(bar):
        for _ in range(2):
            spcacore.sparsity_path(X, spcacore.sparse_pca, [2, 5], callback=bar)

    lines = drawn(calls)
    assert sum("2/2" in line for line in lines) >= 2
    assert lines[-1].endswith(", 2]")


@pytest.mark.parametrize("kind", ["tqdm", "rich", "a line"])
def test_true_draws_with_what_is_installed(kind, monkeypatch, capsys):
    """A bar of one call, which ends with it; a line where neither is there."""
    for name, module in (("tqdm", "tqdm.auto"), ("rich", "rich.progress")):
        if kind == name:
            pytest.importorskip(module, reason=f"needs {name}")
            break
        monkeypatch.setitem(sys.modules, module, None)
    model = partial(spcacore.sparse_pca, cardinality=2)
    for call, shown in (
        (lambda: spcacore.sparse_pca(X, 4, 3, callback=True), "4/4"),
        (lambda: spcacore.sparse_pca(X, 2, 3, refine=2, callback=True), "2/2"),
        (lambda: spcacore.sparsity_path(X, spcacore.sparse_pca, [2, 5, 9], callback=True), "3/3"),
        (lambda: spcacore.stability(X, model, n_resamples=2, callback=True), "2/2"),
        (lambda: spcacore.sparse_kmeans_gap(X, 2, [1.5], n_permutations=3, callback=True), "3/3"),
        (lambda: spcacore.sparse_cca_permutation(X, X, [1.5], n_permutations=2, callback=True), "3/3"),
        (lambda: spcacore.sparse_kmeans(X, 2, 1.5, callback=True), "1/1"),
        (lambda: spcacore.spca(X, 3, 4, callback=True), "iteration "),  # of all components together
        (lambda: spcacore.sca(X, 3, callback=True), "iteration "),
    ):  # fmt: skip
        capsys.readouterr()
        call()
        said = capsys.readouterr()
        assert not said.out
        assert shown in said.err
        assert not re.search(r"(\D0/|\b0%)[^\r\n]*\s*$", said.err)  # at its end
        assert said.err.endswith("\n")


def test_a_refinement_is_not_at_its_end_before_its_end():
    lines = drawn(lambda bar: spcacore.sparse_pca(X, 2, 3, refine=True, callback=bar))
    rounds = [line for line in lines if "1/1" in line]
    assert len(rounds) < len(lines) / 2
    assert "1/1" in lines[-1]
    assert "iteration 5" in "".join(line for line in lines if "/1" not in line)


def test_options_need_tqdm(monkeypatch):
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    with pytest.raises(ImportError, match=r'pip install tqdm, or "\.\[progress\]" from the source directory'):
        ProgressBar(desc="work")


def test_the_page_says_which_searches_take_no_callback():
    """What computes in one step, or handles threads and blocks, is no search."""
    page = (Path(__file__).parents[2] / "docs" / "reference" / "index.rst").read_text()
    said = set(re.findall(r"``(\w+)``", page.partition("draws a bar. Only")[2].partition("rotations")[0]))
    steps = {
        "compare", "deflate", "explained_variance", "from_loadings", "get_num_threads", "grid_laplacian",
        "l1_rotation", "l1_threshold", "limit_threads", "oblimin", "orthomax", "promax", "prs",
        "random_fourier_features", "renormalize", "row_blocks", "set_num_threads", "soft_threshold",
        "truncate", "varimax",
    }  # fmt: skip
    functions = {name for name in spcacore.__all__ if inspect.isfunction(getattr(spcacore, name))}
    without = {
        name for name in functions if "callback" not in inspect.signature(getattr(spcacore, name)).parameters
    }
    assert said == without - steps
