"""`spcacore fit`: methods and their options, JSON, pictures."""

import csv
import json
import sys

import flat
import numpy as np
import pytest
from cli_tools import loadings_of, one_error_line, parsed, results

import spcacore
from spcacore.cli import options
from spcacore.cli.models import FIT, call_of, takes
from spcacore.methods import METHODS

METHOD_OPTIONS = [
    (["-k", "4", "-n3", "--signs", "1"], {"cardinality": 4, "nonnegative": True}),
    (
        ["-k", "4", "-n3", "--include", "x2", "--exclude", "x1,x5"],
        {"cardinality": 4, "include": [1], "exclude": [0, 4]},
    ),
    (["-k", "4,3,2", "--certify"], {"cardinality": [4, 3, 2], "certify": True}),
    (["-k", "4", "-n3", "--refine"], {"cardinality": 4, "refine": True}),
    (["-k", "4", "-n3", "--deflation", "orthogonal"], {"cardinality": 4, "constraint": "orthogonal"}),
    (
        ["--method", "greedy", "-k4", "-n3", "--strategy", "backward"],
        {"cardinality": 4, "strategy": "backward"},
    ),
    (
        ["--method", "branch_and_bound", "-k3", "-n3", "--time-limit", "60"],
        {"cardinality": 3, "time_limit": 60.0},
    ),
    (["--method", "dspca", "-k3", "-n3", "--tol", "0.01"], {"cardinality": 3, "tol": 0.01}),
    (["--method", "pmd", "--l1-bound", "1.7,1.5,1.3"], {"l1_bound": [1.7, 1.5, 1.3]}),
    (["--method", "scotlass", "--l1-bound", "1.7", "-n3"], {"l1_bound": 1.7}),
    (["--method", "thresholding", "-k4", "-n3"], {"cardinality": 4}),
    (["--method", "least_squares", "--explained", "0.9,0.8,0.7"], {"explained": [0.9, 0.8, 0.7]}),
    (
        ["--method", "gpower", "--penalty", "0.1", "-n3", "--relative", "--norm", "l0"],
        {"penalty": 0.1, "relative": True, "norm": "l0"},
    ),
]  # fmt: skip


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
        call = call_of(args, args.of_model)
        records = [call.keywords, *(vars(one) for one in call.keywords.values() if hasattr(one, "__dict__"))]
        assert value in [one[name] for one in [*records, call.choice] if name in one], name


@pytest.mark.share(2)
@pytest.mark.parametrize(("argv", "options"), METHOD_OPTIONS)
def test_methods_and_their_options_reach_the_api_to_the_bit(output, tmp_path, file, X, argv, options):
    method = argv[1] if argv[0] == "--method" else "tpower"
    expected = spcacore.sparse_pca(X, 3, **flat.recorded("sparse_pca", {**options, "method": method}))
    out = output("fit", file, *argv, "-o", tmp_path / "r.npz", "--json")
    fields, document = results(tmp_path / "r.npz"), json.loads(out, parse_constant=pytest.fail)["result"]
    assert document["method"] == fields["method"] == method
    names = ("explained_variance", "explained_variance_ratio", "cardinality", "upper_bound", "gap", "n_iter")
    for name in (*names, "converged"):
        value = getattr(expected, name)
        assert [c[name] for c in document["components"]] == ([None] * 3 if value is None else value.tolist())
        if value is None:
            assert name not in fields
        else:
            np.testing.assert_array_equal(fields[name], value)
    np.testing.assert_array_equal(fields["loadings"], expected.loadings)
    np.testing.assert_array_equal(loadings_of(document["components"], 9), expected.loadings)
    assert document["total_variance"] == expected.total_variance


def test_every_method_is_tested_and_offered():
    assert {argv[1] if argv[0] == "--method" else "tpower" for argv, _ in METHOD_OPTIONS} == set(METHODS)


def test_shares_reach_the_api_to_the_bit(run, tmp_path, file, X):
    argv = ("-n", "0.8", "--explained", "0.95", "--method", "least_squares", "-o", tmp_path / "r.npz")
    assert run("fit", file, *argv)[::2] == (0, "")
    expected = spcacore.sparse_pca(X, 0.8, cardinality=spcacore.Explained(0.95), method="least_squares")
    fields = results(tmp_path / "r.npz")
    assert (fields["method"], fields["deflation"]) == ("least_squares", "schur")
    np.testing.assert_array_equal(fields["loadings"], expected.loadings)
    np.testing.assert_array_equal(fields["explained_variance"], expected.explained_variance)


def test_certify_adds_two_rows(output, pitprops):
    rows = {
        line[:12].strip(): line[12:].split()
        for line in output("fit", *pitprops, "-k4", "-n3", "--certify").splitlines()
    }
    A = spcacore.datasets.load_pitprops().correlation
    expected = spcacore.sparse_pca(A, 3, cardinality=4, kind="covariance", certify=True)
    np.testing.assert_allclose(np.array(rows["upper bound"], float), expected.upper_bound, rtol=5.001e-4)
    np.testing.assert_allclose(np.array(rows["gap %"], float), 100 * expected.gap, rtol=0.05001, atol=1e-9)
    assert "upper bound" not in output("fit", *pitprops, "-k4", "-n3")


def test_json_of_a_fit_has_this_form(as_json, pitprops, tmp_path):
    document = as_json("fit", *pitprops, "-k", "3,1", "-o", tmp_path / "l.csv", "-q")
    assert (tmp_path / "l.csv").exists()
    seconds = document.pop("seconds")
    assert set(seconds) == {"reading", "computing"}
    assert min(seconds.values()) >= 0
    [first, second] = document.pop("result")["components"]
    names = list(spcacore.datasets.load_pitprops().names)
    assert document == {
        "spcacore": document["spcacore"], "schema": 1, "command": "fit", "file": str(pitprops[0]),
        "samples": None, "variables": 13, "kind": "covariance", "center": False, "scale": False,
        "names": names, "cardinality": [3, 1], "warnings": [], "notes": [],
    }  # fmt: skip
    assert set(first) == {
        "index", "cardinality", "explained_variance", "explained_variance_ratio", "upper_bound", "gap",
        "n_iter", "converged", "loadings",
    }  # fmt: skip
    assert (first["index"], second["index"]) == (0, 1)
    [entry] = second["loadings"]
    assert entry == {"index": names.index(entry["variable"]), "variable": entry["variable"], "loading": 1.0}


def test_json_of_single_precision_reads_back_exactly(as_json, file, X):
    document = as_json("fit", file, "-k4", "-n2", "--float32")
    expected = spcacore.sparse_pca(X.astype(np.float32), 2, cardinality=4)
    assert document["names"] is None
    got = loadings_of(document["result"]["components"], 9)
    np.testing.assert_array_equal(got.astype(np.float32), expected.loadings)
    np.testing.assert_array_equal(got, expected.loadings.astype(np.float64))


def test_json_says_null_where_a_number_is_beyond_the_range(run, tmp_path, X):
    np.save(tmp_path / "m.npy", X * 1e160)
    status, out, err = run("fit", tmp_path / "m.npy", "-k4", "-n1", "--json")
    document = json.loads(out, parse_constant=pytest.fail)
    assert status == 0
    assert document["result"]["components"][0]["explained_variance"] is None
    assert document["result"]["components"][0]["explained_variance_ratio"] > 0
    assert [f"spcacore: warning: {text}" for text in document["warnings"]] == err.splitlines()


def test_notes_and_warnings_are_in_the_json(run, tmp_path, X):
    np.save(tmp_path / "m.npy", X[:4])
    status, out, err = run("fit", tmp_path / "m.npy", "--max-iter", "0", "-k3", "--json")
    document = json.loads(out)
    assert status == 0
    lines = [*(f"warning: {w}" for w in document["warnings"]), *(f"note: {n}" for n in document["notes"])]
    assert [f"spcacore: {line}" for line in lines] == err.splitlines()
    assert len(document["notes"]) == 1
    assert any(w.endswith("not converged in 0 iterations; raise --max-iter") for w in document["warnings"])
    _, out, err = run("fit", tmp_path / "m.npy", "--max-iter", "0", "-k3", "--json", "-q")
    assert json.loads(out)["result"] == document["result"]
    assert "note: " not in err


def test_pmd_leaves_missing_entries_out(run, as_json, tmp_path, X):
    X[2, 3] = X[7, 1] = np.nan
    np.save(tmp_path / "m.npy", X)
    with open(tmp_path / "m.csv", "w") as f:
        csv.writer(f).writerows([["NA" if np.isnan(v) else repr(v) for v in row] for row in X.tolist()])
    expected = spcacore.sparse_pca(X, 2, method=spcacore.PMD(l1_bound=1.6))
    argv = ("--method", "pmd", "--l1-bound", "1.6", "-n2")
    for name in ("m.npy", "m.csv"):
        got = as_json("fit", tmp_path / name, *argv)["result"]["components"]
        np.testing.assert_array_equal(loadings_of(got, 9), expected.loadings)
        outcome = run("fit", tmp_path / name, *argv, "--scores", tmp_path / "s.csv")
        assert "--scores: " in (error := one_error_line(outcome))
        assert f"{'line' if name == 'm.csv' else 'row'} 3, column 4 is nan (and 1 more)" in error
    X[5, 0] = np.inf
    np.save(tmp_path / "m.npy", X)
    assert "row 6, column 1 is inf; impute" in one_error_line(run("fit", tmp_path / "m.npy", *argv))


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (
            ["--method", "pmd", "-k", "3"],
            "-k/--cardinality: not for method pmd, which takes --l1-bound, but tpower, greedy, ",
        ),
        (
            ["--method", "gpower", "--l1-bound", "2"],
            "--l1-bound: not for method gpower, which takes --penalty, but pmd, ",
        ),
        (
            ["--penalty", "2"],
            "--penalty: not for method tpower, which takes -k/--cardinality, --ex",
        ),
        (
            ["--method", "gpower"],
            "'gpower' needs penalty, how much each component must gain by",
        ),
        (["--method", "lasso"], "argument --method: 'lasso' is not one of 'tpower', "),
        (["--method", "pmd", "--l1-bound", "3.5"], "--l1-bound: must be in [1, 3], not 3.5"),
        (["--method", "pmd", "--l1-bound", "0.5,2"], "--l1-bound: l1_bound[0] must be in [1, 3], not 0.5"),
        (["--method", "gpower", "--penalty", "2", "--relative"], "--penalty: must be in [0, 1], not 2.0"),
        (["--method", "sca", "--signs", "1"], "--signs: not for method sca, but tpower, "),
        (["--constraint", "orthogonal"], "--constraint; say --deflation orthogonal or 'uncorrelated'; see"),
        (["--nonnegative"], "--nonnegative; say --signs 1; see spcacore fit --help"),
        (["--total-cardinality", "9"], "--total-cardinality; say --total; see"),
        (["--objective", "least_squares"], "--objective; say --method least_squares; see"),
        (["--total", "9", "-k", "3"], "--total: not with -k/--cardinality"),
        (["--total", "2", "-n", "3"], "--total: must be in [3, 27], not 2"),
        (["--total", "9", "--certify"], "--certify"),
        (["--strategy", "forward"], "--strategy: not for method tpower, but greedy"),
        (["--method", "greedy", "--max-iter", "3"], "--max-iter: not for method greedy, but tpower, gpower"),
        (
            ["--deflation", "orthogonal", "--signs", "1"],
            "--deflation orthogonal cannot be met by loadings",
        ),
        (
            ["--deflation", "uncorrelated", "--refine"],
            "--refine requires --renormalize, and no --deflation un",
        ),
        (
            ["--method", "gpower", "--penalty", "1", "--block", "--certify"],
            "--certify bounds one component after another; --block finds all at once",
        ),
        (["--explained", "0.9", "-k", "3"], "--explained: not with -k/--cardinality"),
        (["--explained", "0.9,1.1"], "--explained: share[1] must be in [0, 1], not 1.1"),
        (["--explained", "0.9,0.8", "-n", "0.8"], "must be one number when -n is a share"),
        (["--explained-of", "score"], "--explained-of: requires --explained"),
        (
            ["--method", "pmd", "--explained", "0.9"],
            "--explained: not for method pmd, which takes --l1-bound, but tpower, ",
        ),
        (
            ["--method", "least_squares", "--refine"],
            "--refine requires a method that maximizes the variance",
        ),
        (
            ["--method", "least_squares", "--deflation", "hotelling"],
            "--deflation hotelling cannot be combined",
        ),
        (["--plot", "picture.gif"], "picture.gif: unknown extension; .png, .pdf and .svg can be written"),
    ],
)
def test_wrong_options_of_fit(run, file, argv, words):
    assert words in one_error_line(run("fit", file, *argv))


def test_a_search_that_ran_out_of_time_says_so(run, tmp_path):
    rng = np.random.default_rng(0)
    np.save(tmp_path / "m.npy", rng.standard_normal((60, 60)))
    argv = ("--method", "branch_and_bound", "-k", "12", "-n1", "--time-limit", "0")
    status, _, err = run("fit", tmp_path / "m.npy", *argv)
    assert status == 0
    assert err == "spcacore: warning: component 1 not converged in the limits given; raise --time-limit\n"


def test_plot_shows_the_selected_variables(output, pitprops, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib draws")
    out = output("fit", *pitprops, "-n2", "-k4", "--plot", tmp_path / "f.svg")
    assert out.splitlines()[-1] == f"wrote {tmp_path / 'f.svg'}"
    A, names = spcacore.datasets.load_pitprops().correlation, spcacore.datasets.load_pitprops().names
    used = spcacore.sparse_pca(A, 2, cardinality=4, kind="covariance").loadings.any(axis=1)
    svg = (tmp_path / "f.svg").read_text()  # where words are curves, with the words as comments
    assert [f"<!-- {name} -->" in svg for name in names] == used.tolist()


@pytest.mark.share(3)
@pytest.mark.parametrize(("extension", "start"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("svg", b"<?xml")])
def test_plot_writes_pictures_of_any_data(output, tmp_path, file, extension, start):
    pytest.importorskip("matplotlib", reason="matplotlib draws")
    path = tmp_path / f"f.{extension}"
    assert output("fit", file, "-n2", "-k4", "--plot", path, "-q") == ""
    assert path.read_bytes().startswith(start)
    assert output("path", file, "-k1:4", "--plot", path, "-q") == ""
    assert path.read_bytes().startswith(start)
    assert output("path", file, "-k1:4", "--plot", path, "-q", "--select", "sparseness") == ""


def test_plot_without_a_component_or_with_missing_entries(run, output, tmp_path, X):
    pytest.importorskip("matplotlib", reason="matplotlib draws")
    np.save(tmp_path / "m.npy", np.ones((4, 3)))
    status, _, err = run("fit", tmp_path / "m.npy", "-n1", "--plot", tmp_path / "f.png")
    assert status == 2
    assert "there is no component to draw" in err
    X[0, 0] = np.nan
    np.save(tmp_path / "m.npy", X)
    argv = ("--method", "pmd", "--l1-bound", "2", "-n2", "--plot", tmp_path / "f.png", "-q")
    assert output("fit", tmp_path / "m.npy", *argv) == ""


@pytest.mark.parametrize("command", ["fit", "path"])
def test_without_matplotlib_the_error_comes_before_the_work(run, command, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    error = one_error_line(run(command, "no_such_file.csv", "--plot", "f.png"))
    assert "argument --plot: drawing needs matplotlib; pip install matplotlib" in error


@pytest.mark.parametrize("method", ["sparse_pca", "spca", "soppca"])
def test_knowledge_of_all_components_together(output, tmp_path, file, X, method):
    labels = [*"aabbbcdde"]
    (tmp_path / "groups.txt").write_text("\n".join(labels))
    named = ["--method", method] * (method != "sparse_pca")
    argv = ["-k2", "-n2", "--include", "x2", "--exclude", "x6", "--groups", tmp_path / "groups.txt"]
    known = {"include": [1], "exclude": [5], "groups": labels}
    if method != "soppca":
        argv += ["--signs", "1"]
        known["signs"] = 1
    output("fit", file, *named, *argv, "-o", tmp_path / "r.npz")
    expected = getattr(spcacore, method)(X, 2, cardinality=2, choice=spcacore.Choice(**known))
    np.testing.assert_array_equal(results(tmp_path / "r.npz")["loadings"], expected.loadings)
    if method == "spca":
        return
    argv[0] = "-k5"
    output("fit", file, *argv, *named, "--count", "variables", "-o", tmp_path / "v.npz")
    choice = spcacore.Choice(count="variables", **known)
    expected = getattr(spcacore, method)(X, 2, cardinality=5, choice=choice)
    np.testing.assert_array_equal(results(tmp_path / "v.npz")["loadings"], expected.loadings)


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--include", "zz"], "argument --include: there is no variable 'zz'"),
        (["--include", "x1", "--exclude", "x2,x1"], "argument --exclude: 'x1' is in --include too"),
        (["--include", "x1", "--method", "sca"], "argument --include: not for method sca"),
        (["--signs", "1", "--method", "soppca", "-k3"], "argument --signs: cannot be combined with soppca"),
        (["--count", "variables"], "argument --count: requires --groups"),
    ],
)
def test_knowledge_that_cannot_be_met(run, file, argv, message):
    assert message in one_error_line(run("fit", file, *argv))


@pytest.mark.parametrize("option", ["--include", "--exclude"])
def test_a_name_that_occurs_twice_says_no_variable(run, tmp_path, option):
    """As `Choice` refuses it; a name that occurs once beside them is clear."""
    path = tmp_path / "twice.csv"
    path.write_text("a,a,b\n1,2,3\n2,9,5\n4,4,1\n0,7,2\n")
    status, _, errors = run("fit", path, "-n1", "-k1", option, "a")
    assert status == 2
    assert f"argument {option}: more than one variable is called 'a'" in errors
    assert run("fit", path, "-n1", "-k1", option, "b")[0] == 0
