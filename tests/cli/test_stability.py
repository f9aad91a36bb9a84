"""`spcacore stability`: the library's numbers on the screen, as JSON and in files."""

import re
from functools import partial

import numpy as np
import pytest
from calls import pca
from cli_tools import one_error_line, rows_of, saved
from extras import optional

import spcacore
from spcacore.cli.models import RESAMPLED
from spcacore.methods import METHODS
from spcacore.selection import stable_variables

optional_figure = optional("matplotlib.figure")


@pytest.fixture
def planted(tmp_path):
    X, _ = spcacore.datasets.make_spiked(40, 30, cardinality=4, rng=0)
    return saved(tmp_path / "X.npy", X), X


def test_what_the_library_finds(planted, as_json, output, tmp_path):
    path, X = planted
    found = spcacore.stability(X, pca(2, 4), n_resamples=10, rng=3)
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
    assert len(re.findall("yes$", text, re.M)) == found.stable.sum()
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
        (["--resamples", "5"], "--n-resamples: must be even for complementary pairs, not 5"),
        (
            ["--assumption", "unimodal", "--resampling", "half"],
            "--assumption unimodal is for compl",
        ),
        (["-n", "21"], "-n/--n-components: must be in [1, 20], not 21: that many rows has a resample of 40"),
        (["--covariance"], "unrecognized arguments: --covariance"),
    ],
)
def test_wrong_arguments(planted, run, argv, words):
    assert words in one_error_line(run("stability", planted[0], *argv))


# ---- other models -----------------------------------------------------------------------------------


@pytest.fixture
def sides(tmp_path):
    """A file, another of the same samples, and their classes."""
    X, _ = spcacore.datasets.make_spiked(40, 30, cardinality=4, rng=0)
    rng = np.random.default_rng(1)
    Y = np.round(X[:, :2] @ rng.standard_normal((2, 6)) + rng.standard_normal((40, 6)), 3)
    labels = np.where(X[:, 0] > 0, "up", "down")
    header = ",".join(f"b{j}" for j in range(6))
    np.savetxt(tmp_path / "Y.csv", Y, delimiter=",", header=header, comments="", fmt="%.3f")
    (tmp_path / "labels.txt").write_text("\n".join(labels) + "\n", encoding="utf-8")
    return saved(tmp_path / "X.npy", X), X, Y, labels, tmp_path


@pytest.mark.share(5)
@pytest.mark.parametrize(
    ("argv", "options"),
    [
        (["--method", "spca", "-k", "4,3", "--ridge", "0.5"], {"cardinality": [4, 3], "ridge": 0.5}),
        (["--method", "spca", "-k4", "--include", "x9"], {"cardinality": 4, "include": [8]}),
        (
            ["--method", "spca", "--penalty", "0.1", "--tol", "0.001", "--no-center"],
            {"penalty": 0.1, "tol": 0.001, "center": False},
        ),
        (["--method", "sca", "--scale"], {"scale": True}),
        (["--method", "sca", "--l1-bound", "3"], {"l1_bound": 3.0}),
        (["--method", "soppca", "--max-iter", "50"], {"max_iter": 50}),
        (["--method", "sparse_cca", "--l1-bound", "2,1.5"], {"l1_bound": [2, 1.5]}),
        (
            ["--method", "sparse_cca", "-k", "4,2", "--scale", "--ridge", "0.1"],
            {"cardinality": [4, 2], "method": "generalized", "ridge": 0.1},
        ),
        (["--method", "sparse_lda", "-k3"], {"cardinality": 3}),
        (["--method", "sparse_lda", "--shrinkage", "auto"], {"shrinkage": "auto"}),
    ],
)
@pytest.mark.filterwarnings("ignore:component")
def test_every_model_as_the_function_finds_it(sides, as_json, output, argv, options):
    path, X, Y, labels, folder = sides
    model, r, other = argv[1], 2, None
    names = [f"x{j + 1}" for j in range(30)]
    if model == "sparse_cca":
        argv, other = [*argv, "--other", folder / "Y.csv"], Y
        names += [f"b{j}" for j in range(6)]
    elif model == "sparse_lda":
        argv, other, r = [*argv, "--labels", folder / "labels.txt"], labels, 1
    found = spcacore.stability(
        X, partial(getattr(spcacore, model), n_components=r, **options), other, n_resamples=6, rng=3
    )
    argv = [path, *argv, "--resamples", "6", "--seed", "3"]
    told = as_json("stability", *argv, "-o", folder / "f.npz")
    assert told["model"] == model
    assert len(told["components"]) == len(told["result"]["components"]) == r
    frequency, stable = np.zeros((2, len(names), r))
    for t, component in enumerate(told["components"]):
        for one in component["variables"]:
            frequency[one["index"], t] = one["frequency"]
            stable[one["index"], t] = one["stable"]
            assert one["variable"] == names[one["index"]]
    np.testing.assert_array_equal(frequency, found.selection_frequency)
    np.testing.assert_array_equal(stable, found.stable)
    assert {one["variable"] for c in told["result"]["components"] for one in c["loadings"]} == {
        names[j] for j in np.flatnonzero(found.loadings.any(axis=1))
    }
    with np.load(folder / "f.npz") as arrays:
        np.testing.assert_array_equal(arrays["loading_interval"], found.loading_interval)
        assert arrays["names"].tolist() == names
    text = output("stability", *argv)
    assert "frequency %" in text


def test_the_command_knows_every_model_of_the_function():
    assert {*RESAMPLED} == {*METHODS, *stable_variables.RESAMPLED} - {"sparse_pca"}


def test_variables_of_both_sides_have_names_of_their_own(sides, as_json, output):
    path, _, Y, _, folder = sides
    named = folder / "named.csv"
    np.savetxt(named, Y, delimiter=",", header="x1,x2,c,d,e,f", comments="")
    argv = [
        path,
        "--method",
        "sparse_cca",
        "-n1",
        "--l1-bound",
        "2,2.4",
        "--resamples",
        "4",
        "--other",
        named,
    ]
    told = as_json("stability", *argv)
    assert (told["other"], told["other_variables"]) == (str(named), 6)
    assert told["other_names"] == ["x1", "x2", "c", "d", "e", "f"]
    known = {one["index"]: one["variable"] for one in told["components"][0]["variables"]}
    for j, name in ((0, "x1"), (30, "x1 (other)"), (31, "x2 (other)"), (32, "c")):
        assert known.get(j, name) == name
    assert "x1 (other)" in output("stability", *argv)
    told = as_json("stability", *argv[:-1], saved(folder / "Y.npy", Y))
    assert told["other_names"] is None
    assert {one["variable"] for one in told["components"][0]["variables"] if one["index"] >= 30} <= {
        f"y{j + 1}" for j in range(6)
    }


def test_picture_of_both_sides(sides, output):
    assert optional_figure.Figure
    path, *_, folder = sides
    argv = ["--method", "sparse_cca", "--l1-bound", "2", "--resamples", "4", "--other", folder / "Y.csv"]
    output("stability", path, *argv, "--plot", folder / "p.svg")
    assert (folder / "p.svg").stat().st_size > 1000


CCA, LDA = ("--method", "sparse_cca"), ("--method", "sparse_lda")


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--ridge", "1"], "--ridge: not for method tpower, but spca or sparse_cca"),
        (["--other", "Y.csv"], "--other: not for method tpower, but sparse_cca"),
        (["--method", "sca", "-k3"], "-k/--cardinality: not for method sca"),
        (["--method", "sca", "--l1-bound", "3,4"], "--l1-bound: must be a number, not [3.0, 4.0]"),
        (["--method", "spca", "-k3", "--penalty", "1"], "--penalty: not with -k/--cardinality"),
        (["--method", "spca", "-k3,4", "-n3"], "-k/--cardinality: has 2 entries for 3 components"),
        (["--method", "soppca", "-k31"], "-k/--cardinality: must be in [1, 30], not 31"),
        (["--method", "soppca", "--signs", "1"], "--signs: cannot be combined with soppca"),
        (["--method", "ppca"], "--method: 'ppca' is not one of 'tpower', "),
        ([*CCA, "-k3"], "--other: method sparse_cca needs it"),
        ([*CCA, "-k3", "--other", "-"], "--other: a file is needed, not the standard input"),
        (
            [*CCA, "-k3,2,1", "--other", "Y.csv"],
            "-k/--cardinality: must be one for both sides or a pair, for X.npy an",
        ),
        ([*CCA, "-k3,7", "--other", "Y.csv"], "-k/--cardinality: of Y.csv must be in [1, 6], not 7"),
        (
            [*CCA, "--l1-bound", "2,3", "--other", "Y.csv"],
            "--l1-bound: of Y.csv must be in [1, 2.44949]",
        ),
        ([*CCA, "--l1-bound", "2", "--ridge", "1", "--other", "Y.csv"], "--ridge: requires"),
        ([*CCA, "-k2", "-n7", "--other", "Y.csv"], "-n/--n-components: must be in [1, 6], not 7"),
        (
            [*CCA, "-k2", "--no-center", "--other", "Y.csv"],
            "--no-center: not for method sparse_cca, but ",
        ),
        ([*CCA, "-k2", "--include", "x1", "--other", "Y.csv"], "--include: not for method sparse_cca"),
        (
            [*CCA, "-k2", "--impute", "drop-rows", "--other", "Y.csv"],
            "--impute: drop-rows would leave no row",
        ),
        ([*CCA, "-k2", "--other", "short.npy"], "--other: short.npy has 39 samples, X.npy has 40"),
        ([*CCA, "-k2", "--other", "gap.csv"], "gap.csv: line 3, column 1 ('b1') is missing"),
        ([*CCA, "-k2", "--other", "inf.npy"], "--other: inf.npy: row 3, column 2 is inf"),
        ([*CCA, "-k2", "--other", "Y.csv", "-o", "Y.csv"], "cannot write Y.csv: it is the file of --other"),
        ([*LDA, "-k3"], "--labels: method sparse_lda needs it"),
        ([*LDA, "-k3", "--labels", "Y.csv"], "--labels: Y.csv has 41 labels for 40 samples"),
        ([*LDA, "-k3", "--labels", "one.txt"], "one.txt has one class only, a; at least two are needed"),
        ([*LDA, "-k3", "--labels", "few.txt"], "half-samples need four rows of each class, and one has 3"),
        (
            [*LDA, "-k3", "-n2", "--labels", "labels.txt"],
            "-n/--n-components: must be at most classes - 1 = 1, not 2",
        ),
        ([*LDA, "-k3", "--scale", "--labels", "labels.txt"], "--scale: not for method sparse_lda"),
        (
            [*LDA, "-k3", "--shrinkage", "2", "--labels", "labels.txt"],
            "--shrinkage: must be in [0, 1], not",
        ),
        (
            [*LDA, "-k25", "--shrinkage", "0", "--labels", "labels.txt"],
            "X.npy: B is the scatter within classes, and",
        ),
    ],
)
def test_what_a_model_does_not_take(sides, run, monkeypatch, argv, words):
    *_, Y, _, folder = sides
    monkeypatch.chdir(folder)
    saved(folder / "short.npy", Y[1:])
    saved(folder / "inf.npy", np.where(np.arange(240).reshape(40, 6) == 13, np.inf, Y))
    (folder / "gap.csv").write_text("b1,b2\n" + "1,2\n,2\n" + "3,1\n" * 38, encoding="utf-8")
    (folder / "one.txt").write_text("a\n" * 40, encoding="utf-8")
    (folder / "few.txt").write_text("a\n" * 37 + "b\n" * 3, encoding="utf-8")
    assert words in one_error_line(run("stability", "X.npy", *argv))


def test_samples_of_both_sides_are_the_same(sides, run):
    path, X, Y, _, folder = sides
    for name, data, first in (("left.csv", X, "s1"), ("right.csv", Y, "s0")):
        samples = [first, *(f"s{i + 1}" for i in range(1, 40))]
        lines = [",".join([sample, *map(str, row)]) for sample, row in zip(samples, data, strict=True)]
        head = ",".join(["", *(f"{name[0]}{j}" for j in range(data.shape[1]))])
        (folder / name).write_text("\n".join([head, *lines]), encoding="utf-8")
    argv = [*CCA, "--l1-bound", "2", "--resamples", "4", "--other", folder / "right.csv"]
    error = one_error_line(run("stability", folder / "left.csv", *argv))
    assert "sample 1 of" in error
    assert "is 's0', that of" in error
    assert run("stability", path, *argv)[0] == 0  # whose samples have no names
