"""`spcacore stability`: the library's numbers on the screen, as JSON and in files."""

import numpy as np
import pytest
from cli_tools import one_error_line, rows_of, saved
from extras import optional

import spcacore

optional_figure = optional("matplotlib.figure")


@pytest.fixture
def planted(tmp_path):
    X, _ = spcacore.datasets.make_spiked(40, 30, cardinality=4, rng=0)
    return saved(tmp_path / "X.npy", X), X


def test_what_the_library_finds(planted, as_json, output, tmp_path):
    path, X = planted
    found = spcacore.stability(X, 2, cardinality=4, n_resamples=10, rng=3)
    argv = [path, "-n2", "-k4", "--resamples", "10", "--seed", "3"]
    told = as_json("stability", *argv, "-o", tmp_path / "f.csv")
    assert told["resamples"] == 10
    assert told["average_any"] == found.average_any
    for t, component in enumerate(told["components"]):
        assert component["threshold"] == found.threshold[t]
        assert component["expected_false"] == found.expected_false[t]
        assert component["explained_interval"] == found.explained_interval[t].tolist()
        ever = np.flatnonzero(found.selection_frequency[:, t])
        assert sorted(one["index"] for one in component["variables"]) == ever.tolist()
        for one in component["variables"]:
            j = one["index"]
            assert one["variable"] == f"x{j + 1}"
            assert one["frequency"] == found.selection_frequency[j, t]
            assert one["interval"] == found.loading_interval[j, t].tolist()
            assert one["stable"] == found.stable[j, t]
    rows = rows_of(tmp_path / "f.csv")
    assert len(rows) == np.count_nonzero(found.selection_frequency)
    assert {(int(r["component"]), r["variable"]) for r in rows if r["stable"] == "1"} == {
        (t + 1, f"x{j + 1}") for j, t in np.argwhere(found.stable)
    }
    text = output("stability", *argv, "-o", tmp_path / "f.npz")
    assert text.count(" *") == found.stable.sum()
    assert "4 stable variables" in text
    with np.load(tmp_path / "f.npz") as arrays:
        np.testing.assert_array_equal(arrays["loading_interval"], found.loading_interval)
        assert arrays["names"][0] == "x1"


def test_a_bootstrap_promises_no_number_of_false_variables(planted, as_json, output):
    argv = [planted[0], "-k4", "-n1", "--resampling", "bootstrap", "--resamples", "5", "--level", "0.5"]
    told = as_json("stability", *argv, "--threshold", "0.9")
    assert told["components"][0]["expected_false"] is None
    assert told["components"][0]["threshold"] == 0.9
    assert told["level"] == 0.5
    assert "expected to be false" not in output("stability", *argv)


def test_picture(planted, output, tmp_path):
    assert optional_figure.Figure
    output("stability", planted[0], "-k4", "--resamples", "4", "--plot", tmp_path / "p.svg")
    assert (tmp_path / "p.svg").stat().st_size > 1000


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--resamples", "5"], "--resamples: 5 is odd"),
        (["--resamples", "1"], "'1' is not a whole number of at least 2"),
        (["--threshold", "1.5"], "--threshold: 1.5 is not more than 0, and at most 1"),
        (["--max-false", "0"], "--max-false: 0 is not more than 0"),
        (["--level", "1"], "--level: less than 1"),
        (["--assumption", "unimodal", "--resampling", "half"], "--assumption: unimodal requires"),
        (["-n", "21"], "-n/--components: 21 is too many, at most 20 of a resample"),
        (["-k", "31"], "-k/--cardinality: 31 is too many"),
        (["--covariance"], "unrecognized arguments: --covariance"),
        (["-o", "x.txt"], "x.txt: unknown extension"),
    ],
)
def test_wrong_arguments(planted, run, argv, words):
    assert words in one_error_line(run("stability", planted[0], *argv))
