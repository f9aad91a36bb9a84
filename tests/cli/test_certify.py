"""`spcacore certify`: bounds and searches."""

import numpy as np
import oracles
import pytest
from cli_tools import loadings_of, one_error_line
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


def test_wrong_options_of_certify(run, pitprops):
    for argv, words in (
        ([], "Missing option '--cardinality' / '-k'"),
        (["-k", "14"], "--cardinality: must be in [1, 13], not 14"),
        (["-k", "3", "--include", "x"], "argument --include: has the name 'x'"),
    ):
        assert words in one_error_line(run("certify", *pitprops, *argv))
