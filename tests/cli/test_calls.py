"""`spcacore fit`, `path` and `stability`: what they print and write against the API, and what they refuse."""

import csv
import decimal
import json
import os
import re
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from calls import pca
from cli_tools import (
    OPTIONS,
    api,
    loadings_of,
    one_error_line,
    parsed,
    results,
    rows_of,
    saved,
)  # fmt: skip
from hypothesis import strategies as st
from in_turn import each_dtype, of_examples
from numpy.testing import assert_allclose, assert_array_equal
from oracles import normal

import spcacore
from spcacore.cli import options, report, runs
from spcacore.cli.options import FIT, RESAMPLED, call_of, takes
from spcacore.methods import METHODS
from spcacore.selection import stable_variables


def recorded(text, p=9):
    """The result in JSON, and its loadings."""
    found = json.loads(text, parse_constant=pytest.fail)["result"]
    return found, loadings_of(found["loadings"], p)


# ---- what is printed --------------------------------------------------------------------------------


def test_without_arguments_prints_the_pit_props_result_of_the_api(run, output, pitprops):
    status, out, err = run()
    assert (status, err) == (0, "")
    props = spcacore.datasets.load_pitprops()
    result = spcacore.sparse_pca(props.correlation, 6, cardinality=[7, 4, 4, 1, 1, 1], kind="covariance")
    assert result.summary(0).split("\n\n")[1] in out
    rows = {line[:8].strip(): line[8:].split() for line in out.splitlines()}
    for name, loadings in zip(props.names, result.loadings, strict=True):
        assert rows[name] == [f"{v:.3f}" if v else "." for v in loadings]
    assert out.splitlines()[-1] == "Your own data: spcacore fit FILE      More: spcacore --help"
    text = output("fit", *pitprops, "-k", "7,4,4,1,1,1")
    assert text.splitlines()[2:24] == out.splitlines()[3:25]
    assert text.startswith(f"Sparse PCA of {pitprops[0]}: 13 variables, covariance matrix\n")


def test_chosen_variables_are_printed_and_many_are_listed(output, tmp_path, file, X):
    out = output("fit", file, "-n2", "-k3", "--certify")
    result = spcacore.sparse_pca(X, 2, 3, certify=True)
    used = np.flatnonzero(result.loadings.any(axis=1))
    assert result.summary(0).partition("\n\n")[2] in out
    assert re.findall(r"^x(\d)", out, re.M) == [str(j + 1) for j in used]
    assert "contributions" not in out
    X, _ = spcacore.datasets.make_spiked(40, 200, cardinality=70, rng=1)
    X[:, ::3] *= -1
    np.savez(tmp_path / "m.npz", X=X, names=[f"n\x1b[31m{j}" for j in range(200)])
    out = output("fit", tmp_path / "m.npz", "-n2", "-k", "6,60")
    result = spcacore.sparse_pca(X, 2, cardinality=[6, 60])
    for t, count in ((0, 6), (1, 20)):
        v = result.loadings[:, t]
        order = sorted(np.flatnonzero(v), key=lambda j: -abs(v[j]))[:count]
        (line,) = re.findall(rf"^{t + 1}: (.*)$", out, re.M)
        assert [words.split()[0] for words in line.split(", ")[:count]] == [f"n?[31m{j}" for j in order]
        assert (", 40 more " in line) is (t == 1)


@pytest.mark.parametrize(
    ("matrix", "argv", "said"),
    [
        (np.ones((4, 3)), ["-n1"], "warning: no variance is left after 0 of the 1 component requested"),
        (None, ["-n2", "-k4", "--max-iter", "0"],
         "warning: components 1, 2 not converged in 0 iterations; raise --max-iter"),
        (None, ["-n2", "-k4", "--max-iter", "1"],
         "warning: components 1, 2 not converged in 1 iteration; raise --max-iter"),
        (None, ["--method", "spca", "-k4", "--max-iter", "1"],
         "warning: not converged in 1 iteration; raise --max-iter"),
        (normal(0, 60, 60),
         ["--method", "branch_and_bound", "-k", "12", "-n1", "--time-limit", "0"],
         "warning: component 1 not converged in the limits given; raise --time-limit"),
        (np.corrcoef(normal(0, 9, 30)), [],
         "note: m.npy is symmetric; if it holds covariances or correlations, say --covariance"),
    ],
)  # fmt: skip
def test_warnings_and_notes(run, tmp_path, monkeypatch, X, matrix, argv, said):
    monkeypatch.chdir(tmp_path)
    np.save("m.npy", X if matrix is None else matrix)
    status, out, err = run("fit", "m.npy", *argv, "--json")
    document = json.loads(out)
    lines = [*(f"warning: {w}" for w in document["warnings"]), *(f"note: {n}" for n in document["notes"])]
    assert status == 0
    assert [f"spcacore: {line}" for line in lines] == err.splitlines()
    assert said in lines
    assert "note: " not in run("fit", "m.npy", *argv, "-q")[2]


def test_a_constant_matrix_has_no_component(run, tmp_path):
    path = saved(tmp_path / "m.npy", np.ones((4, 3)))
    status, out, _ = run("fit", path, "-n1", "-o", tmp_path / "l.csv", "--scores", tmp_path / "s.npz")
    assert status == 0
    assert "no component: the variables do not vary" in out
    assert (tmp_path / "l.csv").read_text().splitlines()[1:] == [f"x{j},1.0,data" for j in (1, 2, 3)]
    assert results(tmp_path / "s.npz")["scores"].shape == (4, 0)


# ---- fit against the API ----------------------------------------------------------------------------


def sample(param):
    """A value of an option, in words and as it is read."""
    if param.secondary_opts:
        return [param.secondary_opts[0]], False
    words = param.type.choices[1] if hasattr(param.type, "choices") else "1"
    return [param.opts[0], words], param.type_cast_value(None, words)


@pytest.mark.parametrize("method", FIT)
def test_every_option_of_every_method_is_a_flag_that_reaches_it(method):
    """Fields of records and parameters of functions; but arrays, and files, which other tests read."""
    flags = {param.name: param for param in options.COMMANDS["fit"].params}
    named = {"explained", "explained_of", "total", "covariance", "include", "exclude", "groups", "count"}
    named |= {"renormalize"}  # which some take only as it is by default
    assert takes(method).keys() <= flags.keys()
    for name in takes(method).keys() - named:
        argv, value = sample(flags[name])
        exact = ["--strategy", "exact"] * (method == "least_squares" and name.endswith("_limit"))
        args = parsed("fit", "x.csv", "--method", method, *argv, *exact)
        _, keywords, choice = call_of(args)
        records = [keywords, choice, *(vars(one) for one in keywords.values() if hasattr(one, "__dict__"))]
        assert value in [one[name] for one in records if name in one], name


def test_every_method_is_offered():
    others = {"sparse_pca", "sparse_cca", "sparse_lda"}  # which the command does not fit
    assert {*RESAMPLED} == {*METHODS, *stable_variables.RESAMPLED} - others


def fit(cardinality=4, method="tpower", **options):
    """The function with these options."""
    return lambda X: spcacore.sparse_pca(X, 2, cardinality, method=method, **options)


LABELS = [*"aabbbcdde"]
GROUPS = ("--include", "x2", "--exclude", "x6", "--groups", "groups.txt")


def known(count, **more):
    """Two groups, or as many variables."""
    choice = spcacore.Choice(include=[1], exclude=[5], groups=LABELS, count=count, **more)
    return fit(5 if count == "variables" else 2, choice=choice)


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("argv", "call"),
    [
        (["-k4", "--include", "x2", "--exclude", "x1,x5"],
         fit(choice=spcacore.Choice(include=[1], exclude=[0, 4]))),
        (["-k4", "--method", "greedy", "--strategy", "backward"],
         fit(method=spcacore.Greedy(strategy="backward"))),
        (["--method", "pmd", "--l1-bound", "1.7,1.5"], fit(None, spcacore.PMD([1.7, 1.5]))),
        (["--method", "gpower", "--penalty", "0.1", "--relative", "--norm", "l0"],
         fit(None, spcacore.GPower(0.1, relative=True, norm="l0"))),
        (["--explained", "0.95,0.9", "--method", "least_squares"],
         fit(spcacore.Explained([0.95, 0.9]), "least_squares")),
        (["-k4", "--scale"], fit(scale=True)),
        (["-k2", *GROUPS, "--signs", "1"], known("groups", signs=1)),
        (["-k5", *GROUPS, "--count", "variables"], known("variables")),
        (["--method", "sma", "--l1-bound", "3", "--sample-l1-bound", "6"],
         lambda X: spcacore.sma(X, 2, l1_bound=3, sample_l1_bound=6)),
        (["--method", "soppca", "-k", "4,3"], lambda X: spcacore.soppca(X, 2, [4, 3])),
        (["--float32", "-k4"], lambda X: spcacore.sparse_pca(X.astype(np.float32), 2, cardinality=4)),
    ],
)  # fmt: skip
def test_fits_scores_and_transforms_as_the_function(run, tmp_path, monkeypatch, X, argv, call):
    monkeypatch.chdir(tmp_path)
    Path("groups.txt").write_text("\n".join(f"x{j + 1},{LABELS[j]}" for j in range(9)[::-1]))
    np.save("m.npy", X)
    expected, x = call(X), X.astype(np.float32) if "--float32" in argv else X
    status, out, _ = run("fit", "m.npy", "-n2", *argv, "-o", "r.npz", "--scores", "s.npz", "--json")
    assert status == 0
    found, V = recorded(out)
    assert_array_equal(V, expected.loadings)
    for name in ("explained_variance", "total_variance", "upper_bound", "n_iter", "converged"):
        value = vars(expected).get(name)
        assert found.get(name) == (None if value is None else np.asarray(value).tolist())
        assert_array_equal(results("r.npz").get(name), value)
    assert results("r.npz")["loadings"].dtype == expected.loadings.dtype
    assert_array_equal(results("r.npz")["loadings"], expected.loadings)
    assert_array_equal(results("s.npz")["scores"], expected.scores)
    run("transform", "m.npy", "--loadings", "r.npz", "-o", "t.npz")
    tolerance = 1e-4 if "--float32" in argv else 1e-11
    assert_allclose(results("t.npz")["scores"], expected.transform(x), atol=tolerance)


def test_json_has_this_form(run, as_json, pitprops, tmp_path, X):
    document = as_json("fit", *pitprops, "-k", "3,1", "-o", tmp_path / "l.csv", "-q")
    assert (tmp_path / "l.csv").exists()
    found, names = document.pop("result"), list(spcacore.datasets.load_pitprops().names)
    assert document == {
        "spcacore": document["spcacore"], "schema": 5, "command": "fit", "file": str(pitprops[0]),
        "samples": 13, "variables": 13, "kind": "covariance", "center": True, "scale": False,
        "names": names, "warnings": [], "notes": [],
    }  # fmt: skip
    [[entry]] = found["loadings"][1:]
    assert entry == {"index": names.index(entry["variable"]), "variable": entry["variable"], "loading": 1.0}
    out = run("fit", saved(tmp_path / "m.npy", X * 1e160), "-k4", "-n1", "--json")[1]
    found, _ = recorded(out)  # what is beyond the range is null
    assert found["explained_variance"] == [None]
    assert found["explained_variance_ratio"][0] > 0


@each_dtype
def test_csv_outputs_read_back_exactly(run, tmp_path, X, dtype):
    X, names = X.astype(dtype), [f'odd, "name" {j}' for j in range(9)]
    path = saved(tmp_path / "m.npy", X)
    (tmp_path / "n.txt").write_text("\n".join(names))
    files = {"l.csv": "-o", "s.csv": "--scores"}
    argv = [part for name, flag in files.items() for part in (flag, tmp_path / name)]
    out = run("fit", path, *OPTIONS, "--names", tmp_path / "n.txt", *argv)[1]
    assert out.splitlines()[-2:] == [f"wrote {tmp_path / name}" for name in files]
    result = api(X)
    expected = {
        "l.csv": ("variable", names, np.column_stack([result.loadings, result.mean])),
        "s.csv": ("sample", [str(i + 1) for i in range(30)], result.transform(X)),
    }
    for name, (title, index, values) in expected.items():
        first, *rows = csv.reader((tmp_path / name).read_text().splitlines())
        more = ["center", "kind"] * (name == "l.csv")
        assert first == [title, "component_1", "component_2", "component_3", *more]
        assert [row[0] for row in rows] == index
        numbers = [row[1 : values.shape[1] + 1] for row in rows]
        assert_array_equal(np.array(numbers, float).astype(dtype), values.astype(dtype))


@pytest.mark.parametrize("command", ["fit", "path", "stability"])
@pytest.mark.parametrize(("extension", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
@pytest.mark.share(6)
def test_pictures(output, tmp_path, file, command, extension, start):
    pytest.importorskip("matplotlib", reason="matplotlib draws")
    path = tmp_path / f"f.{extension}"
    argv = {"fit": ["-n2", "-k4"], "path": ["-k1:4"], "stability": ["-k3", "--resamples", "4"]}[command]
    out = output(command, file, *argv, "--plot", path)
    assert out.splitlines()[-1] == f"wrote {path}"
    assert path.read_bytes().startswith(start)


def test_pictures_of_other_data(run, output, tmp_path, pitprops, X):
    pytest.importorskip("matplotlib", reason="matplotlib draws")
    path, props = tmp_path / "f.svg", spcacore.datasets.load_pitprops()
    output("fit", *pitprops, "-n2", "-k4", "--plot", path)
    used = spcacore.sparse_pca(props.correlation, 2, cardinality=4, kind="covariance").loadings.any(axis=1)
    svg = path.read_text()  # where words are curves, with the words as comments
    assert [f"<!-- {name} -->" in svg for name in props.names] == used.tolist()
    err = run("fit", saved(tmp_path / "c.npy", np.ones((4, 3))), "-n1", "--plot", path)[2]
    assert "there is no component to draw" in err
    X[0, 0] = np.nan
    argv = ["--method", "pmd", "--l1-bound", "2", "-n2", "--plot", path]
    assert run("fit", saved(tmp_path / "g.npy", X), *argv)[0] == 0


# ---- path -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("3", [3]), ("1:5", [1, 2, 3, 4, 5]), ("1,2,5,10", [1, 2, 5, 10]), ("4:4", [4]), ("1e1", [10]),
        ("1:3,10:30:10", [1, 2, 3, 10, 20, 30]), ("1:6:2", [1, 3, 5]),
    ],
)  # fmt: skip
def test_grids(text, values):
    assert options.grid(text) == values


@of_examples(
    60, st.integers(0, 500), st.integers(0, 60), st.integers(1, 99), st.sampled_from(["1", "10", "100"])
)
def test_grids_hold_the_decimals_that_they_name(first, count, step, unit):
    """0:1:0.1 holds 0.3, not 0.30000000000000004, and its last value."""
    d = decimal.Decimal
    text = ":".join(str(d(n) / d(unit)) for n in (first, first + count * step, step))
    assert options.grid(text) == [float(str(d(first + i * step) / d(unit))) for i in range(count + 1)]


def with_grid(options):
    """The model of these options, and the values of its sparsity."""
    name = next(one for one in ("cardinality", "l1_bound", "penalty") if one in options)
    return pca(**{one: value for one, value in options.items() if one != name}), options[name]


CURVE = ("values", "explained_variance_ratio", "cardinality", "index_of_sparseness", "dense_ratio")


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("argv", "options", "choosing"),
    [
        ([], {"cardinality": [*range(1, 10)]}, {}),
        (["-k", "2,5", "-n3", "--scale"], {"cardinality": [2, 5], "n_components": 3, "scale": True}, {}),
        (["--method", "pmd", "--l1-bound", "1:2.5:0.5", "-n2", "--deflation", "hotelling"],
         {"l1_bound": [1, 1.5, 2, 2.5], "n_components": 2, "method": "pmd", "deflation": "hotelling"}, {}),
        (["-k", "1,2,4,7", "--select", "cv", "--folds", "3"], {"cardinality": [1, 2, 4, 7]},
         {"criterion": "cv", "n_folds": 3}),
        (["-k", "1,2,4,7", "--select", "cv", "--rule", "best", "--seed", "4", "--jobs", "2"],
         {"cardinality": [1, 2, 4, 7]}, {"criterion": "cv", "rule": "best", "rng": 4}),
        (["--method", "pmd", "--l1-bound", "1:2:0.5", "-n3", "--select", "sparseness"],
         {"l1_bound": [1.0, 1.5, 2.0], "method": "pmd", "n_components": 3}, {"criterion": "sparseness"}),
    ],
)  # fmt: skip
def test_path_equals_the_api_to_the_bit(run, tmp_path, file, X, argv, options, choosing):
    function = spcacore.select_sparsity if choosing else spcacore.sparsity_path
    expected = function(X, *with_grid(options), **choosing)
    status, out, err = run("path", file, *argv, "-o", tmp_path / "c.npz", "--json")
    document, fields = json.loads(out, parse_constant=pytest.fail), results(tmp_path / "c.npz")
    assert (status, err) == (0, "")
    result = document["result"]
    curves = [(expected, result)]
    if choosing:
        for name in (
            "values",
            "score",
            "standard_error",
            "scores",
            "best",
            "one_se",
            "chosen",
            "chosen_index",
        ):
            value = getattr(expected, name)
            assert result[name] == (None if value is None else np.asarray(value).tolist())
            assert_array_equal(fields.get(name), value)
        assert_array_equal(fields["loadings"], expected.result.loadings)
        assert_array_equal(loadings_of(document["chosen"]["loadings"], 9), expected.result.loadings)
        curves = [(expected.path, document["path"])]
    for curve, found in curves:
        for name in CURVE:
            assert found[name] == np.asarray(getattr(curve, name)).tolist()
    out = run("path", file, *argv, "-o", tmp_path / "c.csv")[1]
    rows, frame = rows_of(tmp_path / "c.csv"), expected.to_frame()
    for name in frame:
        assert [row[name] for row in rows] == [str(value) for value in frame[name].tolist()]
    for shown in (expected, *([expected.path] if choosing else [])):
        assert shown.summary() in out


# ---- stability --------------------------------------------------------------------------------------


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("argv", "model"),
    [
        (["-k4"], pca(2, 4)),
        (["--method", "spca", "--penalty", "0.1", "--tol", "0.001", "--no-center"],
         partial(spcacore.spca, n_components=2, penalty=0.1, tol=0.001, center=False)),
        (["--method", "sca", "--l1-bound", "3", "--scale"],
         partial(spcacore.sca, n_components=2, l1_bound=3.0, scale=True)),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("ignore:component")
def test_every_model_as_the_function_finds_it(tmp_path, monkeypatch, as_json, output, argv, model):
    monkeypatch.chdir(tmp_path)
    X, _ = spcacore.datasets.make_spiked(40, 30, cardinality=4, rng=0)
    np.save("X.npy", X)
    found = spcacore.stability(X, model, n_resamples=6, rng=3)
    argv = ["X.npy", *argv, "--resamples", "6", "--seed", "3"]
    told = as_json("stability", *argv, "-o", "f.npz")
    assert (told["result"]["model"], told["variables"]) == (found.model, 30)
    assert_array_equal(
        np.array(told["result"]["threshold"], float),
        np.where(np.isinf(found.threshold), np.nan, found.threshold),
    )
    frequency, stable = np.zeros((2, 30, 2))
    for one in told["frequencies"]:
        place = int(one["variable"][1:]) - 1, one["component"] - 1
        frequency[place], stable[place] = one["frequency"], one["stable"]
    assert_array_equal(frequency, found.selection_frequency)
    assert_array_equal(stable, found.stable)
    assert_array_equal(loadings_of(told["result"]["loadings"], 30), found.loadings)
    arrays = results("f.npz")
    assert_array_equal(arrays["loading_interval"], found.loading_interval)
    assert arrays["names"].tolist() == [f"x{j + 1}" for j in range(30)]
    text = output("stability", *argv, "-o", "f.csv")
    assert "frequency %" in text
    assert len(re.findall("yes$", text, re.M)) == found.stable.sum()
    assert sum(int(row["stable"]) for row in rows_of("f.csv")) == found.stable.sum()


# ---- what is refused --------------------------------------------------------------------------------


WRONG = [
    ("fit", ["-k", "10"], "--cardinality: must be in [1, 9], not 10: m.npy has 9 variables"),
    ("fit", ["-k", "1,"], "--cardinality: cardinality[1] must be an integer, not ''"),
    ("fit", ["--covariance"], "must be square, not of shape (30, 9); use --no-covariance for data"),
    ("fit", ["--tol", "x"], "argument --tol: must be a number, not 'x'"),
    ("fit", ["--deflation", "none"], "for '--deflation': 'none' is not one of 'hotelling', "),
    ("fit", ["--random-state=3"], "--random-state; do you mean --rng?; see spcacore fit --help"),
    ("fit", ["--alpha", "1"], "--alpha; do you mean --penalty or --cardinality?; see"),
    ("fit", ["--constraint", "orthogonal"], "say --deflation orthogonal or 'uncorrelated'; see"),
    ("fit", ["--nonnegative"], "--nonnegative; say --signs 1; see spcacore fit --help"),
    ("fit", ["--l1-bound", "1"], "--l1-bound: not for method tpower, which takes --cardinality, --explain"),
    ("fit", ["--method", "pmd", "-k", "3"], "not for method pmd, which takes --l1-bound, but tpower, greedy"),
    ("fit", ["--method", "pmd", "--l1-bound", "0.5,2"], "--l1-bound: l1_bound[0] must be in [1, 3], not 0.5"),
    ("fit", ["--method", "sca", "--signs", "1"], "--signs: not for method sca, but tpower, "),
    ("fit", ["--total", "9", "-k", "3"], "--total: not with --cardinality"),
    ("fit", ["--deflation", "orthogonal", "--signs", "1"], "--deflation orthogonal cannot be met by loading"),
    ("fit", ["--explained", "0.9,1.1"], "--explained: share[1] must be positive and at most 1, not 1.1"),
    ("fit", ["--explained-of", "score"], "--explained-of: requires --explained"),
    ("fit", ["--method", "least_squares", "--refine"], "--refine requires a method that maximizes the varia"),
    ("fit", ["--include", "zz"], "--include: has the name 'zz', which no variable of m.npy has"),
    ("fit", ["--names", "twice.txt", "--exclude", "a"], "--exclude: has the name 'a', which more than one"),
    ("fit", ["--include", "x1", "--exclude", "x2,x1"], "m.npy: the variable 1 is in include and in exclude"),
    ("fit", ["--count", "groups"], "argument --count: requires --groups"),
    ("fit", ["--groups", "labels.txt"], "argument --groups: labels.txt has 4 groups for 9 variables"),
    ("fit", ["--plot", "picture.gif"], "picture.gif: unknown extension; .png, .pdf and .svg can be written"),
    ("fit", ["-o", "out.txt"], "out.txt: unknown extension; .csv and .npz can be written"),
    ("fit", ["-o", "no/out.csv"], "cannot write no/out.csv: "),
    ("fit", ["-o", "dir.csv"], "cannot write dir.csv: it is a directory, "),
    ("fit", ["-o", "./twice.csv", "--names", "twice.csv"], "another argument names it, too"),
    ("fit", ["-o", "a.csv", "--scores", "./a.csv"], "cannot write ./a.csv: it is a directory, or ano"),
    ("fit", ["-n1", "-k1", "-o", "full.csv"], "cannot write full.csv: No space left on device"),
    ("path", ["-k", "0:3"], "--cardinality: must be at least 1, not 0"),
    ("path", ["-k", "2:1"], "'2:1' is neither a number nor a range of some"),
    ("path", ["-k", "1:1e200:1e-200"], "more than 10000 values"),
    ("path", ["--folds", "40", "--select", "cv"], "--n-folds: must be at most the number of rows, 30, not 4"),
    ("path", ["--folds", "3", "--select", "permutation"], "--n-folds: requires --criterion cv or corr"),
    ("path", ["--method", "pmd", "-k", "1:3"], "--cardinality: method 'pmd' takes l1_bound, not cardinality"),
    ("path", ["--explained", "0.9"], "--cardinality: of the model must be left out: grid has the values"),
    ("path", ["--select", "cv", "--covariance"], "--criterion cv needs data; for a covariance, use"),
    ("stability", ["--assumption", "unimodal", "--resampling", "half"], "--assumption unimodal is for compl"),
    ("stability", ["--covariance"], "there is no option --covariance"),
]  # fmt: skip


@pytest.mark.parametrize(("command", "argv", "words"), WRONG)
def test_wrong_arguments(run, tmp_path, monkeypatch, X, command, argv, words):
    monkeypatch.chdir(tmp_path)
    np.save("m.npy", X)
    Path("labels.txt").write_text("a\n" * 4)
    for name in ("twice.txt", "twice.csv"):
        Path(name).write_text("\n".join("aabcdefgh"))
    Path("dir.csv").mkdir()
    os.symlink("/dev/full", "full.csv")
    before = sorted(os.listdir())
    assert words in one_error_line(run(command, "m.npy", *argv))
    assert sorted(os.listdir()) == before


def test_what_is_written_is_checked_before_the_work(run, tmp_path, file, monkeypatch):
    monkeypatch.setattr(runs, "read", None)
    with monkeypatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        assert "permission is denied" in one_error_line(run("fit", file, "-o", tmp_path / "r.csv"))
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    error = one_error_line(run("path", file, "--plot", "f.png"))
    assert "argument --plot: drawing needs matplotlib; pip install matplotlib" in error


def test_a_file_is_whole_or_not_there(tmp_path):
    path = tmp_path / "out.csv"

    def fails(part):
        Path(part).write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(report.UserError, match=r"cannot write .*out.csv: No space left on device"):
        report.write(str(path), fails)
    assert os.listdir(tmp_path) == []
    path.write_text("before")
    with pytest.raises(report.UserError):
        report.write(str(path), fails)
    assert path.read_text() == "before"
    (tmp_path / "link.csv").symlink_to(path)
    report.write(str(tmp_path / "link.csv"), lambda part: Path(part).write_text("a\n"))
    assert path.read_text() == "a\n"
    assert sorted(os.listdir(tmp_path)) == ["link.csv", "out.csv"]


def test_a_pipe_is_written_to(run, tmp_path, file):
    os.mkfifo(tmp_path / "pipe.csv")
    reader = os.open(tmp_path / "pipe.csv", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run("fit", file, "-n1", "-k3", "-q", "-o", tmp_path / "pipe.csv") == (0, "", "")
        assert os.read(reader, 100).startswith(b"variable,component_1,center,kind\n")
    finally:
        os.close(reader)
