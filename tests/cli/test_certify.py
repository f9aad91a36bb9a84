"""`spcacore certify`: bounds and searches."""

import re
from pathlib import Path

import numpy as np
import oracles
import pytest
from cli_tools import loadings_of, one_error_line
from known_variables import optimum
from numpy.testing import assert_allclose

import spcacore


def test_certify_bounds_the_optimum(as_json, output, pitprops):
    A = spcacore.datasets.load_pitprops().correlation
    rows = as_json("certify", *pitprops, "-k", "2,4,6")["components"]
    printed = output("certify", *pitprops, "-k", "2,4,6").splitlines()[2:6]
    for row, line in zip(rows, printed[1:], strict=True):
        k = row["cardinality"]
        best, expected = (
            oracles.optimum(A, k),
            spcacore.optimality_bound(A, k, kind="covariance", relaxation=True),
        )
        assert row["value"] <= best * (1 + 1e-12)
        assert row["upper_bound"] >= best * (1 - 1e-12)
        assert {name: row[name] for name in expected.bounds} == expected.bounds
        assert row["upper_bound"] == expected.bound
        assert row["gap"] == 1 - row["value"] / row["upper_bound"]
        v = loadings_of([row["loadings"]], 13)[:, 0]
        assert v @ A @ v == pytest.approx(row["value"])
        assert np.count_nonzero(v) == k
        numbers = [*expected.bounds.values(), expected.bound, row["value"]]
        assert_allclose(np.array(line.split()[1:-2], float), numbers, rtol=5.001e-4)
    assert printed[0].split("  ")[:4] == [" cardinality", "spectral", "row sums", "knapsack"]
    for flag, has in (("--no-relaxation", False), ("--relaxation", True)):
        assert ("relaxation" in as_json("certify", *pitprops, "-k3", flag)["components"][0]) is has


def test_the_best_component_is_proved_by_a_fit(as_json, output, file, X):
    argv = ["fit", file, "-n1", "--method", "branch_and_bound", "--certify"]
    for k in range(1, 6):
        found = as_json(*argv, "-k", k)["result"]
        assert found["upper_bound"] == pytest.approx(found["explained_variance"], rel=1e-12)
        assert found["explained_variance"][0] == pytest.approx(oracles.optimum(oracles.covariance(X), k))
    text = output(*argv, "-k", "3", "--scale")
    x = spcacore.branch_and_bound(X, 3, scale=True).loading
    shown = dict(line.split() for line in text.splitlines() if re.match(r"x\d+ ", line))
    assert shown == {f"x{j + 1}": f"{x[j]:.3f}" for j in np.flatnonzero(x)}


def test_what_is_known_of_the_variables(as_json, file, X, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    groups = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4])
    Path("sets.txt").write_text("\n".join(map(str, groups)))
    known = {"groups": groups, "include": [5], "exclude": [8], "nonnegative": np.ones(9)}
    best = optimum(oracles.covariance(X), 2, **known)
    argv = ["-k2", "--groups", "sets.txt", "--include", "x6", "--exclude", "x9", "--signs", "1"]
    (row,) = as_json("certify", file, *argv)["components"]
    assert row["value"] <= best * (1 + 1e-9)
    assert best <= row["upper_bound"] * (1 + 1e-9)


def test_wrong_options_of_certify(run, pitprops):
    for argv, words in (
        ([], "Missing option '--cardinality' / '-k'"),
        (["-k", "14"], "--cardinality: must be in [1, 13], not 14"),
        (["-k", "3", "--include", "x"], "argument --include: has the name 'x'"),
    ):
        assert words in one_error_line(run("certify", *pitprops, *argv))
