"""`spcacore path`: grids, curves, and the choice of a value."""

import decimal
import json
import re

import numpy as np
import oracles
import pytest
from calls import pca
from cli_tools import loadings_of, one_error_line, results, rows_of
from hypothesis import given, settings
from hypothesis import strategies as st
from in_turn import examples

import spcacore
from spcacore.cli import options


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3", [3]),
        ("1:5", [1, 2, 3, 4, 5]),
        ("1,2,5,10", [1, 2, 5, 10]),
        ("1:3,10:30:10", [1, 2, 3, 10, 20, 30]),
        ("1:6:2", [1, 3, 5]),
        ("4:4", [4]),
        ("1e1", [10]),
    ],
)
def test_whole_grids(text, values):
    assert options.grid(text) == values


@settings(max_examples=examples(60), deadline=None, derandomize=True)
@given(st.integers(0, 500), st.integers(0, 60), st.integers(1, 99), st.sampled_from(["1", "10", "100"]))
def test_grids_hold_the_decimals_that_they_name(first, count, step, unit):
    """0:1:0.1 holds 0.3, not 0.30000000000000004, and its last value."""
    d = decimal.Decimal
    text = ":".join(str(d(n) / d(unit)) for n in (first, first + count * step, step))
    assert options.grid(text) == [float(str(d(first + i * step) / d(unit))) for i in range(count + 1)]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["-k", "0:3"], "-k/--cardinality: must be at least 1, not 0"),
        (["-k", "5:1"], "'5:1' is a range without values"),
        (["-k", "1,,2"], "'' is neither a number"),
        (["-k", "1:x"], "'1:x' is neither a number"),
        (["-k", "1:1e9"], "more than 10000 values"),
        (["-k", "1:1e200:1e-200"], "more than 10000 values"),
        (["-k", "1:3,3"], "has a value twice"),
        (["-k", "1:4/2:5"], "-k/--cardinality: values for each component require --criterion"),
        (["-k", "1,2/3", "-n3", "--select", "cv"], "-k/--cardinality: has 2 grids for 3 components"),
        (["-k", "1,2/3,12", "--select", "cv"], "-k/--cardinality: cardinality[1] must be in [1, 9], not 12"),
        (["-n", "10"], "-n/--n-components: must be in [1, 9], not 10: "),
        (["--method", "pmd", "--l1-bound", "1:4"], "--l1-bound: must be in [1, 3], not 4.0"),
        (["--l1-bound", "1:2:0.5"], "--l1-bound: not for method tpower, which takes -k/--cardinality, "),
        (["--select", "aic"], "--criterion: 'aic' is not one of 'cv', "),
        (["--folds", "40", "--select", "cv"], "--n-folds: must be at most the number of rows, 30, not 40"),
        (["--folds", "3", "--select", "permutation"], "--n-folds: requires --criterion cv"),
        (["--permutations", "3", "--select", "cv"], "--n-permutations: requires --criterion permutation"),
        (["--select", "cv", "--covariance"], "--criterion cv needs data; for a covariance, use"),
        (["-o", "curve.txt"], "curve.txt: unknown extension; .csv and .npz"),
        (["--scores", "s.csv"], "unrecognized arguments: --scores"),
    ],
)
def test_wrong_options_of_path(run, file, argv, words):
    assert words in one_error_line(run("path", file, *argv))


def test_selection_needs_samples(run, tmp_path, X):
    np.save(tmp_path / "m.npy", X[:4])
    error = one_error_line(run("path", tmp_path / "m.npy", "--select", "cv"))
    assert "argument --n-folds: must be at most the number of rows, 4, not 5" in error
    np.save(tmp_path / "m.npy", X[:2])
    error = one_error_line(run("path", tmp_path / "m.npy", "--select", "permutation"))
    assert "at least three rows are needed for --criterion permutation, not 2" in error


PATH_FIELDS = ("values", "explained_variance_ratio", "cardinality", "index_of_sparseness", "dense_ratio")


@pytest.mark.share(3)
def with_grid(options):
    """The model of these options, and the values of its sparsity."""
    name = next(one for one in ("cardinality", "l1_bound", "penalty") if one in options)
    return pca(**{one: value for one, value in options.items() if one != name}), options[name]


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        (["-k", "1:9"], {"cardinality": range(1, 10)}),
        (["-k", "2,5", "-n3", "--scale"], {"cardinality": [2, 5], "n_components": 3, "scale": True}),
        (
            ["--method", "pmd", "--l1-bound", "1:2.5:0.3", "-n2", "--deflation", "hotelling"],
            {"l1_bound": [1, 1.3, 1.6, 1.9, 2.2, 2.5], "n_components": 2, "method": "pmd",
             "deflation": "hotelling"},
        ),
        (
            ["--method", "gpower", "--penalty", "0.1,0.2", "--relative", "--no-center"],
            {"penalty": [0.1, 0.2], "method": "gpower", "relative": True, "center": False},
        ),
        (
            ["-k", "5,3", "-n2", "--deflation", "uncorrelated"],
            {"cardinality": [3, 5], "n_components": 2, "constraint": "uncorrelated"},
        ),
        (["-k", "3,5", "-n2", "--refine"], {"cardinality": [3, 5], "n_components": 2, "refine": True}),
    ],
)  # fmt: skip
def test_path_equals_the_api_to_the_bit(run, tmp_path, file, X, argv, options):
    options = {name: list(v) if isinstance(v, range) else v for name, v in options.items()}
    expected = spcacore.sparsity_path(X, *with_grid(options))
    status, out, err = run("path", file, *argv, "-o", tmp_path / "c.npz", "--json")
    document, fields = json.loads(out, parse_constant=pytest.fail), results(tmp_path / "c.npz")
    assert (status, err) == (0, "")
    for name in PATH_FIELDS:
        np.testing.assert_array_equal(fields[name], getattr(expected, name))
        assert document[name] == np.asarray(getattr(expected, name)).tolist()
    assert document["parameter"] == fields["parameter"] == expected.parameter
    assert (document["method"], document["deflation"]) == (expected.method, expected.deflation)
    out = run("path", file, *argv, "-o", tmp_path / "c.csv")[1]
    rows = rows_of(tmp_path / "c.csv")
    table = out.split("\n\n")[2].splitlines()[2:]
    for i, (row, line) in enumerate(zip(rows, table, strict=True)):
        shares, nonzeros = expected.explained_variance_ratio[i], expected.cardinality[i]
        assert float(row[expected.parameter]) == expected.values[i]
        assert [
            float(row[f"explained_variance_ratio_{t + 1}"]) for t in range(len(shares))
        ] == shares.tolist()
        assert float(row["index_of_sparseness"]) == expected.index_of_sparseness[i]
        assert int(row["nonzeros"]) == nonzeros.sum()
        value, printed, share, index = line.split()
        assert float(value) == pytest.approx(expected.values[i])
        assert int(printed) == nonzeros.sum()
        np.testing.assert_allclose(float(share), 100 * shares.sum(), rtol=5.001e-4)
        np.testing.assert_allclose(float(index), expected.index_of_sparseness[i], rtol=5.001e-4)


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        (["-k", "2:8:2/3,5"], {"cardinality": [[2, 4, 6, 8], [3, 5]]}),
        (
            ["--method", "pmd", "--l1-bound", "1.2,2/1.5/1:2:0.5", "-n3"],
            {"l1_bound": [[1.2, 2.0], [1.5], [1.0, 1.5, 2.0]], "method": "pmd", "n_components": 3},
        ),
    ],
)
@pytest.mark.parametrize("criterion", ["cv", "sparseness"])
def test_grids_that_differ_by_component(run, tmp_path, file, X, argv, options, criterion):
    expected = spcacore.select_sparsity(X, *with_grid({"n_components": 2, **options}), criterion=criterion)
    steps = [*expected.earlier, expected]
    argv = ["path", file, *argv, "--select", criterion]
    status, out, err = run(*argv, "-o", tmp_path / "c.npz", "--json")
    document, fields = json.loads(out, parse_constant=pytest.fail), results(tmp_path / "c.npz")
    assert (status, err) == (0, "")
    assert document["chosen_by_component"] == [*expected.chosen_by_component]
    np.testing.assert_array_equal(fields["chosen_by_component"], expected.chosen_by_component)
    np.testing.assert_array_equal(fields["loadings"], expected.result.loadings)
    for t, (one, step) in enumerate(zip([*document["earlier"], document], steps, strict=True)):
        own = f"_{t + 1}" * (step is not expected)
        for name in ("values", "score", "chosen"):
            assert one[name] == np.asarray(getattr(step, name)).tolist()
            np.testing.assert_array_equal(fields[name + own], getattr(step, name))
    out = run(*argv, "-o", tmp_path / "c.csv")[1]
    rows = rows_of(tmp_path / "c.csv")
    assert [int(row["component"]) for row in rows] == [t + 1 for t, s in enumerate(steps) for _ in s.values]
    assert [float(row[expected.parameter]) for row in rows] == [v for s in steps for v in s.values]
    assert [float(row["score"]) for row in rows] == [v for s in steps for v in s.score]
    assert {row["nonzeros_2"] == "" for row in rows if row["component"] == "1"} == {True}
    for step, table in zip(steps, out.split("\n\n")[2::2], strict=False):
        lines = table.splitlines()[2:]
        assert [float(line.split()[0]) for line in lines] == pytest.approx(step.values)
        assert [float(line.split()[0]) for line in lines if "True" in line] == [step.chosen]


def test_grids_that_differ_are_drawn(run, tmp_path, file):
    pytest.importorskip("matplotlib", reason="matplotlib draws")
    argv = ["path", file, "-k", "2:8:2/3,5", "--select", "cv", "--plot", tmp_path / "c.svg"]
    assert run(*argv)[::2] == (0, "")
    assert (tmp_path / "c.svg").read_text().startswith("<?xml")


def test_path_has_default_cardinalities_up_to_all_variables(as_json, file):
    assert as_json("path", file)["values"] == [*range(1, 10)]


def test_path_by_branch_and_bound_reaches_the_optima(as_json, pitprops):
    A = spcacore.datasets.load_pitprops().correlation
    document = as_json("path", *pitprops, "-k", "1:5", "--method", "branch_and_bound")
    best = [oracles.optimum(A, k) / 13 for k in range(1, 6)]
    np.testing.assert_allclose(np.ravel(document["explained_variance_ratio"]), best, rtol=1e-9)


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        (["--select", "cv", "--folds", "3"], {"criterion": "cv", "n_folds": 3}),
        (["--select", "cv", "--rule", "best", "--seed", "4"], {"criterion": "cv", "rule": "best", "rng": 4}),
        (
            ["--select", "permutation", "--permutations", "6"],
            {"criterion": "permutation", "n_permutations": 6},
        ),
        (["--select", "sparseness", "-n2"], {"criterion": "sparseness", "n_components": 2}),
        (["--select", "cv", "--jobs", "2"], {"criterion": "cv", "n_jobs": 2}),
    ],
)  # fmt: skip
def test_selection_equals_the_api_to_the_bit(run, tmp_path, file, X, argv, options):
    options, r = dict(options), options.get("n_components", 1)
    options.pop("n_components", None)
    expected = spcacore.select_sparsity(X, pca(r), [1, 2, 4, 7], **options)
    argv = ["path", file, "-k", "1,2,4,7", *argv]
    status, out, err = run(*argv, "-o", tmp_path / "c.npz", "--json")
    document, fields = json.loads(out, parse_constant=pytest.fail), results(tmp_path / "c.npz")
    assert (status, err) == (0, "")
    for name in ("values", "score", "standard_error", "scores", "best", "one_se", "chosen", "chosen_index"):
        value = getattr(expected, name)
        if value is None:
            assert name not in fields
            assert document[name] is None
        else:
            np.testing.assert_array_equal(fields[name], value)
            assert document[name] == np.asarray(value).tolist()
    for name in PATH_FIELDS:
        assert document["path"][name] == np.asarray(getattr(expected.path, name)).tolist()
    np.testing.assert_array_equal(fields["loadings"], expected.result.loadings)
    got = loadings_of(document["result"]["components"], 9)
    np.testing.assert_array_equal(got, expected.result.loadings)
    out = run(*argv, "-o", tmp_path / "c.csv")[1]
    rows = rows_of(tmp_path / "c.csv")
    assert [float(row["score"]) for row in rows] == expected.score.tolist()
    shares = [float(row["explained_variance_ratio"]) for row in rows]
    assert shares == expected.path.explained_variance_ratio.sum(axis=1).tolist()
    assert [int(row["cardinality"]) for row in rows] == [1, 2, 4, 7]
    lines = out.split("\n\n")[2].splitlines()[2:]
    assert [line.split()[0] for line in lines if "True" in line] == [f"{expected.chosen}"]
    assert f"best={expected.best}, one_se={expected.one_se}, chosen={expected.chosen}\n" in out
    nonzeros = next(line for line in out.splitlines() if line.startswith("nonzeros")).split()[1:]
    assert nonzeros == [str(k) for k in expected.result.cardinality]


@pytest.mark.parametrize(
    ("argv", "line"),
    [
        (["path", "-k1:9"], r"\d of 9 done"),
        (["path", "-k1:9", "--select", "permutation"], r"\d+ of \d{3} done"),
        (["certify", "-k1:5"], r"cardinality [1-5]: (bounds|iteration \d+)"),
        (["certify", "-k1:5", "--exact"], r"cardinality [1-5]: (bounds|\d+ nodes)"),
    ],
)
def test_long_work_tells_how_far_it_is(run, file, slow_clock, argv, line):
    status, _, err = run(argv[0], file, *argv[1:])
    assert status == 0
    assert len(err.splitlines()) >= 2
    for said in err.splitlines():
        assert re.fullmatch(rf"spcacore: {line}, \d+ s", said)
