"""The command beyond a plain fit: methods, JSON, pictures, Parquet and .h5ad, path, certify, info."""

import csv
import decimal
import json
import re
import subprocess
import sys
import time

import numpy as np
import oracles
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import spcacore
from spcacore import cli
from spcacore.cli import arguments, help, info, report
from spcacore.solvers.table import SOLVERS


@pytest.fixture
def run(capsys):
    """main() in this process: exit status, stdout, stderr."""

    def call(*argv):
        status = cli.main([str(a) for a in argv])
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def output(run):
    """What a command that succeeds in silence has printed."""

    def call(*argv):
        status, out, err = run(*argv)
        assert (status, err) == (0, "")
        return out

    return call


@pytest.fixture
def as_json(output):
    def call(*argv):
        out = output(*argv, "--json")
        assert out.count("\n") == 1
        return json.loads(out, parse_constant=pytest.fail)

    return call


@pytest.fixture
def X():
    rng = np.random.default_rng(3)
    data = rng.standard_normal((30, 9)) * np.linspace(1, 3, 9) + rng.standard_normal(9)
    data[:, :4] += 3 * rng.standard_normal((30, 1))
    return data


@pytest.fixture
def file(tmp_path, X):
    np.save(tmp_path / "m.npy", X)
    return tmp_path / "m.npy"


@pytest.fixture
def pitprops(tmp_path):
    """The correlations as a file with names, and how to read it."""
    data = spcacore.datasets.load_pitprops()
    with open(tmp_path / "pitprops.csv", "w") as f:
        writer = csv.writer(f)
        writer.writerow(["", *data.names])
        writer.writerows(
            [name, *row] for name, row in zip(data.names, data.correlation.tolist(), strict=True)
        )
    return tmp_path / "pitprops.csv", "--covariance"


def results(path):
    with np.load(path, allow_pickle=False) as f:
        return dict(f)


def one_error_line(outcome):
    status, out, err = outcome
    assert (status, out) == (2, "")
    assert err.startswith("spcacore: error: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err


def loadings_of(components, p):
    V = np.zeros((p, len(components)))
    for t, component in enumerate(components):
        for entry in component["loadings"]:
            V[entry["index"], t] = entry["loading"]
    return V


# ---- fit --------------------------------------------------------------------------------------------

METHOD_OPTIONS = [
    (["-k", "4", "-n3"], {"cardinality": 4}),
    (["-k", "4", "-n3", "--nonnegative"], {"cardinality": 4, "nonnegative": True}),
    (["-k", "4,3,2", "--certify"], {"cardinality": [4, 3, 2], "certify": True}),
    (["-k", "4", "-n3", "--refine"], {"cardinality": 4, "refine": True}),
    (["-k", "4", "-n3", "--constraint", "orthogonal"], {"cardinality": 4, "constraint": "orthogonal"}),
    (["-k", "4", "-n3", "--constraint", "uncorrelated"], {"cardinality": 4, "constraint": "uncorrelated"}),
    (["--method", "greedy", "-k", "4", "-n3"], {"cardinality": 4}),
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
    (
        ["--method", "pmd", "--l1-bound", "1.7", "-n3", "--nonnegative"],
        {"l1_bound": 1.7, "nonnegative": True},
    ),
    (["--method", "scotlass", "--l1-bound", "1.7", "-n3"], {"l1_bound": 1.7}),
    (["--method", "thresholding", "-k4", "-n3"], {"cardinality": 4}),
    (["--method", "gpower", "--penalty", "3.5", "-n3"], {"penalty": 3.5}),
    (
        ["--method", "gpower", "--penalty", "0.1", "-n3", "--relative", "--norm", "l0"],
        {"penalty": 0.1, "relative": True, "norm": "l0"},
    ),
    (["--method", "gpower", "--penalty", "2", "-n3", "--block"], {"penalty": 2.0, "block": True}),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "options"), METHOD_OPTIONS)
def test_methods_and_their_options_reach_the_api_to_the_bit(run, tmp_path, file, X, argv, options):
    method = argv[1] if argv[0] == "--method" else "tpower"
    expected = spcacore.sparse_pca(X, 3, method=method, **options)
    status, out, err = run("fit", file, *argv, "-o", tmp_path / "r.npz", "--json")
    assert (status, err) == (0, "")
    fields, document = results(tmp_path / "r.npz"), json.loads(out, parse_constant=pytest.fail)["result"]
    assert document["method"] == fields["method"] == method
    assert document["constraint"] == options.get("constraint")
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
    assert {argv[1] if argv[0] == "--method" else "tpower" for argv, _ in METHOD_OPTIONS} == set(SOLVERS)


def test_certify_adds_two_rows(output, pitprops):
    rows = {
        line[:12].strip(): line[12:].split()
        for line in output("fit", *pitprops, "-k4", "-n3", "--certify").splitlines()
    }
    A = spcacore.datasets.load_pitprops().correlation
    expected = spcacore.sparse_pca(A, 3, cardinality=4, kind="covariance", certify=True)
    np.testing.assert_allclose(np.array(rows["upper bound"], float), expected.upper_bound, rtol=5.001e-4)
    np.testing.assert_allclose(np.array(rows["gap %"], float), 100 * expected.gap, rtol=0.05001)
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
    expected = spcacore.sparse_pca(X, 2, method="pmd", l1_bound=1.6)
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
        (["--method", "pmd", "-k", "3"], "argument -k/--cardinality: method pmd takes --l1-bound"),
        (["--method", "gpower", "--l1-bound", "2"], "argument --l1-bound: method gpower takes --penalty"),
        (["--penalty", "2"], "argument --penalty: method tpower takes -k/--cardinality"),
        (["--method", "scotlass"], "method scotlass needs --l1-bound"),
        (["--method", "gpower"], "method gpower needs --penalty"),
        (["--method", "lasso"], "argument --method: invalid choice: 'lasso'"),
        (["--method", "pmd", "--l1-bound", "3.5"], "--l1-bound: 3.5 is not between 1 and 3, the root of the"),
        (["--method", "pmd", "--l1-bound", "0.5,2"], "--l1-bound: 0.5 is not between 1 and 3"),
        (["--method", "pmd", "--l1-bound", "2,2", "-n3"], "--l1-bound: 2 numbers for 3 components"),
        (["--method", "pmd", "--l1-bound", "x"], "--l1-bound: 'x' is not a number of at least 0"),
        (
            ["--method", "gpower", "--penalty", "-1"],
            "'-1' is not a number of at least 0; see spcacore fit --help",
        ),
        (["--method", "gpower", "--penalty", "2", "--relative"], "penalty must be in [0, 1], not 2.0"),
        (["--method", "greedy", "--nonnegative"], "--nonnegative: not for method greedy, but tpower, pmd"),
        (["--strategy", "forward"], "--strategy: not for method tpower, but greedy"),
        (["--relative"], "--relative: not for method tpower, but gpower"),
        (["--block"], "--block: not for method tpower, but gpower"),
        (["--time-limit", "3"], "--time-limit: not for method tpower, but branch_and_bound"),
        (["--method", "greedy", "--max-iter", "3"], "--max-iter: not for method greedy, but tpower, gpower"),
        (["--constraint", "orthogonal", "--deflation", "schur"], "--constraint: not with --deflation"),
        (["--constraint", "orthogonal", "--nonnegative"], "--constraint: not with --nonnegative"),
        (["--constraint", "uncorrelated", "--refine"], "--refine: not with --constraint uncorrelated"),
        (["--refine", "--nonnegative"], "--refine: not with --nonnegative"),
        (["--method", "gpower", "--penalty", "1", "--block", "--certify"], "--block: not with --certify"),
        (["--plot", "picture.gif"], "picture.gif: unknown extension; .png, .pdf and .svg can be written"),
        (["--plot", "no/picture.png"], "cannot write no/picture.png: no is not a directory"),
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


# ---- pictures ---------------------------------------------------------------------------------------


def test_plot_shows_the_selected_variables(output, pitprops, tmp_path):
    pytest.importorskip("matplotlib", reason="matplotlib draws")
    out = output("fit", *pitprops, "-n2", "-k4", "--plot", tmp_path / "f.svg")
    assert out.splitlines()[-1] == f"wrote {tmp_path / 'f.svg'}"
    A, names = spcacore.datasets.load_pitprops().correlation, spcacore.datasets.load_pitprops().names
    used = spcacore.sparse_pca(A, 2, cardinality=4, kind="covariance").loadings.any(axis=1)
    svg = (tmp_path / "f.svg").read_text()  # where words are curves, with the words as comments
    assert [f"<!-- {name} -->" in svg for name in names] == used.tolist()


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


# ---- Parquet ----------------------------------------------------------------------------------------


def fitted(as_json, path, *argv):
    return as_json("fit", path, "-k3", "-n2", *argv)


def assert_loadings(document, X, names=None):
    expected = spcacore.sparse_pca(X, 2, cardinality=3)
    got = loadings_of(document["result"]["components"], X.shape[1])
    np.testing.assert_array_equal(got, expected.loadings.astype(np.float64))
    assert document["names"] == names


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.uint8, np.bool_])
def test_parquet_of_pandas(as_json, output, tmp_path, X, dtype):
    pandas = pytest.importorskip("pandas", reason="pandas writes the file")
    pytest.importorskip("pyarrow", reason="pyarrow reads the file")
    data = (X * 4 > 3) if dtype is np.bool_ else np.abs(X * 4).astype(dtype)
    names = [f"v{j}" for j in range(9)]
    pandas.DataFrame(data, columns=names).to_parquet(tmp_path / "m.parquet")
    wide = data.astype(np.float32 if dtype in (np.float16, np.float32) else np.float64, order="F")
    assert_loadings(fitted(as_json, tmp_path / "m.parquet"), wide, names)
    patients = [f"p{i}" for i in range(30)]
    pandas.DataFrame(data, patients, names).to_parquet(tmp_path / "m.parquet")
    argv = ("--scores", tmp_path / "s.npz", "-o", tmp_path / "r.npz", "-q")
    assert output("fit", tmp_path / "m.parquet", "-k3", "-n2", *argv) == ""
    assert results(tmp_path / "s.npz")["names"].tolist() == patients
    np.testing.assert_array_equal(
        results(tmp_path / "r.npz")["loadings"], spcacore.sparse_pca(wide, 2, cardinality=3).loadings
    )


def arrow_table(pa, **columns):
    return pa.table({"a": [1.0, 2.0, 4.0], "b": [1, 5, 2], **columns})


def test_parquet_of_others(run, as_json, tmp_path):
    pa = pytest.importorskip("pyarrow", reason="pyarrow reads the file")
    import pyarrow.parquet

    path, matrix = tmp_path / "m.parquet", np.array([[1.0, 1], [2, 5], [4, 2]])

    def loadings(table):
        pyarrow.parquet.write_table(table, path)
        document = as_json("fit", path, "-n2", "-k2")
        return document["names"], loadings_of(document["result"]["components"], document["variables"])

    def expected(matrix):
        return spcacore.sparse_pca(np.asfortranarray(matrix), 2, cardinality=2).loadings

    words = pa.array(["x", None, "z"])
    for labels in (words, words.dictionary_encode(), words.cast(pa.large_string())):
        names, V = loadings(pa.table({"who": labels, "a": [1.0, 2.0, 4.0], "b": [1, 5, 2]}))
        assert names == ["a", "b"]
        np.testing.assert_array_equal(V, expected(matrix))
    pandas = pytest.importorskip("pandas", reason="pandas makes the table")
    frame = pandas.DataFrame({"who": ["x", "y", "z"], "a": [1.0, 2.0, 4.0], "b": [1, 5, 2]})
    np.testing.assert_array_equal(loadings(pa.Table.from_pandas(frame))[1], expected(matrix))
    frame = frame.set_index(["who", "a"])
    assert loadings(pa.Table.from_pandas(frame.assign(c=[3, 4, 9])))[0] == ["b", "c"]
    third = pa.array([decimal.Decimal("0.5"), decimal.Decimal("7.25"), decimal.Decimal("3")])
    names, V = loadings(arrow_table(pa, c=third))
    np.testing.assert_array_equal(V, expected(np.column_stack([matrix, [0.5, 7.25, 3]])))
    for table, message in (
        (arrow_table(pa, c=words), "column 'c' holds words, not numbers; drop it, or put it first"),
        (arrow_table(pa, c=pa.array([1, 2, 3], pa.timestamp("ms"))), "holds timestamp[ms], not numbers"),
        (arrow_table(pa, c=pa.array([[1], [2], [3]])), "column 'c' holds list<"),
        (arrow_table(pa, c=pa.array([1.5, None, 2])), "row 2, column 3 ('c') is nan; impute"),
        (arrow_table(pa, c=pa.array([1, None, 2])), "row 2, column 3 ('c') is nan; impute"),
        (pa.table({"who": words}), "not an array of shape (3, 0)"),
    ):  # fmt: skip
        pyarrow.parquet.write_table(table, path)
        assert message in one_error_line(run("fit", path, "-n1", "-k1"))
    path.write_bytes(b"PAR1junkPAR1")
    assert "m.parquet" in one_error_line(run("fit", path))


# ---- .h5ad ------------------------------------------------------------------------------------------


def annotated(X, gene="gene", **more):
    anndata = pytest.importorskip("anndata", reason="anndata writes the file")
    pandas = pytest.importorskip("pandas", reason="pandas makes the names")
    genes = pandas.DataFrame(index=[f"{gene}{j}" for j in range(X.shape[1])])
    cells = pandas.DataFrame({"type": ["a"] * X.shape[0]}, index=[f"cell{i}" for i in range(X.shape[0])])
    return anndata.AnnData(X=X, var=genes, obs=cells, **more)


@pytest.mark.filterwarnings("ignore")  # of anndata
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_h5ad(as_json, run, tmp_path, X, form, dtype):
    data = np.where(np.abs(X) > 1, X * 4, 0).astype(dtype)
    file = annotated(form(data), layers={"counts": form(data * 2)})
    file.raw = annotated(form(data[:, ::-1].copy()), "raw")
    file.write_h5ad(tmp_path / "m.h5ad")
    for argv, matrix, gene in (
        ((), data, "gene"), (("--array", "counts"), data * 2, "gene"),
        (("--array", "raw"), data[:, ::-1].copy(), "raw"),
    ):  # fmt: skip
        names = [f"{gene}{j}" for j in range(9)]
        assert_loadings(fitted(as_json, tmp_path / "m.h5ad", *argv), form(matrix), names)
    argv = ("--scores", tmp_path / "s.csv", "-k3", "-n1")
    assert run("fit", tmp_path / "m.h5ad", *argv, "-q") == (0, "", "")
    assert (tmp_path / "s.csv").read_text().splitlines()[1].startswith("cell0,")
    error = one_error_line(run("fit", tmp_path / "m.h5ad", "--array", "spliced"))
    assert "m.h5ad has no X, or 'spliced' among its layers; --array chooses among: X, counts, raw" in error


def test_h5ad_of_older_versions(as_json, tmp_path, X):
    h5py = pytest.importorskip("h5py", reason="h5py reads the file")
    matrix = scipy.sparse.csr_matrix(np.where(np.abs(X) > 1, X, 0))
    with h5py.File(tmp_path / "m.h5ad", "w") as f:
        group = f.create_group("X")
        group.attrs["h5sparse_format"], group.attrs["h5sparse_shape"] = "csr", matrix.shape
        for part in ("data", "indices", "indptr"):
            group[part] = getattr(matrix, part)
        f["var"] = np.array([(f"g{j}".encode(), j) for j in range(9)], [("index", "S5"), ("n", int)])
    assert_loadings(fitted(as_json, tmp_path / "m.h5ad"), matrix, [f"g{j}" for j in range(9)])


@pytest.mark.parametrize("kind", ["categorical", "nullable"])
def test_h5ad_with_names_of_other_kinds(as_json, tmp_path, X, kind):
    h5py = pytest.importorskip("h5py", reason="h5py reads the file")
    names = [f"g{j}" for j in range(9)]
    with h5py.File(tmp_path / "m.h5ad", "w") as f:
        f["X"], words = X, h5py.string_dtype()
        f.create_group("var").attrs["_index"] = "who"
        if kind == "categorical":
            f["var/who/categories"] = np.array(names[::-1], dtype=words)
            f["var/who/codes"] = [8 - j for j in range(9)]
        else:
            f["var/who/values"], f["var/who/mask"] = np.array(names, dtype=words), np.zeros(9, bool)
    assert_loadings(fitted(as_json, tmp_path / "m.h5ad"), X, names)


def h5(f, place, value):
    f[place] = value


def csr_group(f, place, matrix, encoding="csr_matrix", **parts):
    for part in ("data", "indices", "indptr"):
        f[f"{place}/{part}"] = parts.get(part, getattr(matrix, part))
    f[place].attrs.update({"encoding-type": encoding, "shape": matrix.shape})


EYE = scipy.sparse.csr_matrix(np.eye(3))


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda f, words: None, "has no X; --array chooses among: nothing"),
        (lambda f, words: h5(f, "X", np.ones(3)), "not an array of shape (3,)"),
        (lambda f, words: h5(f, "X", np.array(["a", "b"], dtype=words)), "X holds dtype object; real"),
        (lambda f, words: h5(f, "X", np.eye(3) * 1j), "X holds dtype complex128; real numbers"),
        (lambda f, words: f.create_group("X"), "X is a group; a dense, CSR or CSC matrix is needed"),
        (lambda f, words: csr_group(f, "X", EYE, "dataframe"), "X is dataframe; a dense, CSR or CSC"),
        (lambda f, words: csr_group(f, "X", EYE, indices=[0, 1, 900]), "cannot be read as .h5ad: "),
        (lambda f, words: csr_group(f, "X", EYE, indices=[0, 1, -1]), "cannot be read as .h5ad: "),
        (lambda f, words: csr_group(f, "X", EYE, data=np.array(["1", "2", "3"], dtype=words)), "X/data"),
        (
            lambda f, words: (h5(f, "X", np.eye(3)), h5(f, "var/_index", np.array(["a"], dtype=words))),
            "var has 1 names for 3",
        ),
        (
            lambda f, words: (h5(f, "X", np.eye(3)), h5(f, "var/_index", np.array([0.5, 1, 2]))),
            "var/_index holds dtype float64; names must be words",
        ),
    ],
)  # fmt: skip
def test_wrong_h5ad(run, tmp_path, write, words):
    h5py = pytest.importorskip("h5py", reason="h5py reads the file")
    with h5py.File(tmp_path / "m.h5ad", "w") as f:
        write(f, h5py.string_dtype())
    assert words in one_error_line(run("fit", tmp_path / "m.h5ad", "-n1", "-k1"))


def test_damaged_h5ad(run, tmp_path):
    pytest.importorskip("h5py", reason="h5py reads the file")
    (tmp_path / "m.h5ad").write_bytes(b"\x89HDF\r\n\x1a\n" + b"junk" * 50)
    assert "cannot read" in one_error_line(run("fit", tmp_path / "m.h5ad"))


@pytest.mark.parametrize(
    ("name", "modules", "words"),
    [
        ("m.h5ad", ["h5py"], "m.h5ad: reading such files needs h5py; pip install h5py"),
        ("m.parquet", ["pyarrow", "pyarrow.parquet"], "needs pyarrow; pip install pyarrow"),
        ("m.pkl", [], "m.pkl holds pickled Python objects, which are not loaded, for safety"),
        ("m.feather", [], "unknown extension"),
    ],
)
def test_files_that_cannot_be_read_here(run, tmp_path, monkeypatch, name, modules, words):
    for module in modules:
        monkeypatch.setitem(sys.modules, module, None)
    (tmp_path / name).write_bytes(b"")
    assert words in one_error_line(run("fit", tmp_path / name))


def test_one_matrix_in_every_format(as_json, tmp_path):
    """Counts and their negatives, with a number before each name."""
    pandas = pytest.importorskip("pandas", reason="pandas writes the files")
    pytest.importorskip("pyarrow", reason="pyarrow reads the file")
    h5py = pytest.importorskip("h5py", reason="h5py reads the file")
    rng = np.random.default_rng(0)
    X = np.trunc(100 * rng.lognormal(size=(72, 1)) * rng.standard_t(2, (72, 1000)))
    genes = [f"{j} G{j}_at" for j in range(1000)]
    frame = pandas.DataFrame(X, columns=genes)
    frame.to_parquet(tmp_path / "m.parquet")
    frame.to_csv(tmp_path / "m.csv", index=False)
    np.savez(tmp_path / "m.npz", X=X, genes=genes)
    with h5py.File(tmp_path / "m.h5ad", "w") as f:
        f["X"], f["var/_index"] = X, np.array(genes, dtype=h5py.string_dtype())
    for name in ("m.parquet", "m.csv", "m.npz", "m.h5ad"):
        matrix = np.asfortranarray(X) if name == "m.parquet" else X
        expected = spcacore.sparse_pca(matrix, 2, cardinality=[20, 10])
        document = as_json("fit", tmp_path / name, "-k", "20,10")
        np.testing.assert_array_equal(loadings_of(document["result"]["components"], 1000), expected.loadings)
        assert document["names"] == genes


# ---- path -------------------------------------------------------------------------------------------


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
    assert arguments.whole_grid(text) == values


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.integers(0, 500), st.integers(0, 60), st.integers(1, 99), st.sampled_from(["1", "10", "100"]))
def test_grids_hold_the_decimals_that_they_name(first, count, step, unit):
    """0:1:0.1 holds 0.3, not 0.30000000000000004, and its last value."""
    d = decimal.Decimal
    text = ":".join(str(d(n) / d(unit)) for n in (first, first + count * step, step))
    assert arguments.grid(text) == [float(str(d(first + i * step) / d(unit))) for i in range(count + 1)]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["-k", "0:3"], "'0:3' has values that are not whole numbers of at least 1"),
        (["-k", "1:2:0.5"], "not whole numbers of at least 1"),
        (["-k", "5:1"], "'5:1' is a range without values"),
        (["-k", "1:5:0"], "'1:5:0' is a range without values"),
        (["-k", "1:2:3:4"], "'1:2:3:4' is neither a number of at least 0 nor a range"),
        (["-k", "1,,2"], "'' is neither a number"),
        (["-k", "1:x"], "'1:x' is neither a number"),
        (["-k", "nan"], "'nan' is neither a number"),
        (["-k", "1:1e9"], "more than 10000 values"),
        (["-k", "1:1e200:1e-200"], "more than 10000 values"),
        (["-k", "1:3,3"], "has a value twice"),
        (["-k", "5:12"], "-k/--cardinality: 12 is too many, at most 9"),
        (["-n", "10"], "-n/--components: 10 is too many, at most 9"),
        (["--method", "pmd"], "method pmd needs --l1-bound"),
        (["--method", "pmd", "--l1-bound", "1:4"], "--l1-bound: 4 is not between 1 and 3"),
        (["--l1-bound", "1:2:0.5"], "--l1-bound: method tpower takes -k/--cardinality"),
        (["--select", "aic"], "--select: invalid choice: 'aic'"),
        (["--folds", "3"], "--folds: goes with --select cv"),
        (["--folds", "40", "--select", "cv"], "--folds: 40 is too many, at most 30"),
        (["--folds", "1", "--select", "cv"], "--folds: '1' is not a whole number of at least 2"),
        (["--constraint", "orthogonal", "--deflation", "schur"], "--constraint: not with --deflation"),
        (["--folds", "3", "--select", "permutation"], "--folds: goes with --select cv"),
        (["--permutations", "3", "--select", "cv"], "--permutations: goes with --select permutation"),
        (["--rule", "best"], "--rule: goes with --select"),
        (["--jobs", "2"], "--jobs: goes with --select"),
        (["--select", "cv", "--covariance"], "--select: a covariance has no samples to divide into folds"),
        (["--select", "permutation", "--covariance"], "--select: a covariance has no samples to permute"),
        (["-o", "curve.txt"], "curve.txt: unknown extension; .csv and .npz"),
        (["--plot", "curve.jpg"], "curve.jpg: unknown extension; .png, .pdf and .svg"),
        (["--scores", "s.csv"], "unrecognized arguments: --scores"),
    ],
)
def test_wrong_options_of_path(run, file, argv, words):
    assert words in one_error_line(run("path", file, *argv))


def test_selection_needs_samples(run, tmp_path, X):
    np.save(tmp_path / "m.npy", X[:4])
    error = one_error_line(run("path", tmp_path / "m.npy", "--select", "cv"))
    assert "argument --folds: 5 is too many, at most 4" in error
    np.save(tmp_path / "m.npy", X[:2])
    error = one_error_line(run("path", tmp_path / "m.npy", "--select", "permutation"))
    assert "argument --select: at least 3 samples are needed" in error


PATH_FIELDS = ("values", "explained_variance_ratio", "cardinality", "index_of_sparseness", "dense_ratio")


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
            ["-k", "5,3", "-n2", "--constraint", "uncorrelated"],
            {"cardinality": [3, 5], "n_components": 2, "constraint": "uncorrelated"},
        ),
        (["-k", "3,5", "-n2", "--refine"], {"cardinality": [3, 5], "n_components": 2, "refine": True}),
    ],
)  # fmt: skip
def test_path_equals_the_api_to_the_bit(run, tmp_path, file, X, argv, options):
    options = {name: list(v) if isinstance(v, range) else v for name, v in options.items()}
    expected = spcacore.sparsity_path(X, **options)
    status, out, err = run("path", file, *argv, "-o", tmp_path / "c.npz", "--json")
    document, fields = json.loads(out, parse_constant=pytest.fail), results(tmp_path / "c.npz")
    assert (status, err) == (0, "")
    for name in PATH_FIELDS:
        np.testing.assert_array_equal(fields[name], getattr(expected, name))
        assert document[name] == np.asarray(getattr(expected, name)).tolist()
    assert document["parameter"] == fields["parameter"] == expected.parameter
    assert (document["method"], document["deflation"]) == (expected.method, expected.deflation)
    out = run("path", file, *argv, "-o", tmp_path / "c.csv")[1]
    with open(tmp_path / "c.csv") as f:
        rows = list(csv.DictReader(f))
    table = out.split("\n\n")[1].splitlines()[1:]
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
        assert printed.split("+") == [str(k) for k in nonzeros]
        np.testing.assert_allclose(float(share), 100 * shares.sum(), atol=0.05001)
        np.testing.assert_allclose(float(index), expected.index_of_sparseness[i], atol=5.001e-4)


def test_path_has_default_cardinalities_up_to_all_variables(as_json, file):
    assert as_json("path", file)["values"] == [1, 2, 3, 4, 5, 7]


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
    expected = spcacore.select_sparsity(X, cardinality=[1, 2, 4, 7], **options)
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
    with open(tmp_path / "c.csv") as f:
        rows = list(csv.DictReader(f))
    assert [float(row["score"]) for row in rows] == expected.score.tolist()
    shares = [float(row["explained_variance_ratio"]) for row in rows]
    assert shares == expected.path.explained_variance_ratio.sum(axis=1).tolist()
    assert [int(row["cardinality"]) for row in rows] == [1, 2, 4, 7]
    lines = out.split("\n\n")[1].splitlines()[1:]
    marked = {word: [line.split()[0] for line in lines if word in line] for word in ("best", "chosen")}
    assert marked == {"best": [f"{expected.best}"], "chosen": [f"{expected.chosen}"]}
    assert f"cardinality {expected.chosen}\n" in out
    nonzeros = next(line for line in out.splitlines() if line.startswith("nonzeros")).split()[1:]
    assert nonzeros == [str(k) for k in expected.result.cardinality]


@pytest.fixture
def slow_clock(monkeypatch):
    """Each look at the clock takes a second."""
    ticks = iter(range(10**9))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))


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


# ---- certify ----------------------------------------------------------------------------------------


def test_certify_bounds_the_optimum(as_json, output, pitprops):
    A = spcacore.datasets.load_pitprops().correlation
    rows = as_json("certify", *pitprops, "-k", "2,4,6")["components"]
    for row in rows:
        k = row["cardinality"]
        best = oracles.optimum(A, k)
        assert row["value"] <= best * (1 + 1e-12)
        assert row["upper_bound"] >= best * (1 - 1e-12)
        expected = spcacore.optimality_bound(A, k, kind="covariance", relaxation=True)
        assert row["bounds"] == expected.bounds
        assert row["upper_bound"] == expected.bound
        assert row["gap"] == 1 - row["value"] / row["upper_bound"]
        v = loadings_of([row], 13)[:, 0]
        assert v @ A @ v == pytest.approx(row["value"])
        assert np.count_nonzero(v) == k
    lines = {
        line[:14].strip(): line[14:].split()
        for line in output("certify", *pitprops, "-k", "2,4,6").splitlines()
    }
    assert lines["cardinality"] == ["2", "4", "6"]
    for name, key in (("upper bound", "upper_bound"), ("variance found", "value")):
        np.testing.assert_allclose(np.array(lines[name], float), [row[key] for row in rows], rtol=5.001e-4)
    for name in rows[0]["bounds"]:
        np.testing.assert_allclose(
            np.array(lines[name], float), [row["bounds"][name] for row in rows], rtol=5.001e-4
        )


def test_certify_by_search_finds_the_optimum(as_json, output, file, X):
    A = oracles.covariance(X)
    for row in as_json("certify", file, "-k", "1:5", "--exact")["components"]:
        assert row["optimal"] is True
        assert row["gap"] == 0
        assert row["value"] == pytest.approx(oracles.optimum(A, row["cardinality"]), rel=1e-9)
    text = output("certify", file, "-k", "3", "--exact", "--scale")
    assert "the component found, optimal, proved" in text
    assert re.search(r"^gap % +0$", text, re.M)
    x = spcacore.branch_and_bound(X, 3, scale=True).loading
    order = np.argsort(-np.abs(x))[:3]
    assert [line.split() for line in text.split("proved\n")[1].splitlines()[:3]] == [
        [f"{x[j]:.3f}", f"x{j + 1}"] for j in order
    ]


def test_relaxation_can_be_asked_for_and_declined(as_json, pitprops):
    assert (
        "relaxation" not in as_json("certify", *pitprops, "-k3", "--no-relaxation")["components"][0]["bounds"]
    )
    assert "relaxation" in as_json("certify", *pitprops, "-k3", "--relaxation")["components"][0]["bounds"]


@pytest.mark.parametrize("extension", ["csv", "npz"])
@pytest.mark.parametrize("deflation", ["projection", "hotelling", "schur", "generalized"])
def test_loadings_that_fit_wrote_have_the_bounds_that_fit_gave(
    as_json, file, tmp_path, X, extension, deflation
):
    path, argv = tmp_path / f"l.{extension}", ("--deflation", deflation)
    fit = as_json("fit", file, "-k", "4,3,3", *argv, "--certify", "-o", path)["result"]["components"]
    document = as_json("certify", file, "--loadings", path, *argv)
    for before, after in zip(fit, document["components"], strict=True):
        assert after["upper_bound"] == pytest.approx(before["upper_bound"], rel=1e-9)
        assert after["gap"] == pytest.approx(before["gap"], abs=1e-9)
        assert after["cardinality"] == before["cardinality"]
        assert after["cumulative"] == pytest.approx(before["explained_variance"], rel=1e-9)


def test_variances_of_given_loadings(as_json, output, tmp_path, pitprops):
    """In three definitions, by QR decompositions of explicit matrices; whatever their length and order."""
    names, A = spcacore.datasets.load_pitprops().names, spcacore.datasets.load_pitprops().correlation
    rng = np.random.default_rng(5)
    V = rng.standard_normal((13, 3)) * (rng.random((13, 3)) < 0.4)
    order = rng.permutation(13)
    with open(tmp_path / "l.csv", "w") as f:
        csv.writer(f).writerow(["variable", "a", "b", "c"])
        csv.writer(f).writerows([names[j], *V[j].tolist()] for j in order)
    components = as_json("certify", *pitprops, "--loadings", tmp_path / "l.csv")["components"]
    U = V / np.linalg.norm(V, axis=0)
    root = np.linalg.cholesky(A).T
    spanned = [oracles.spanned_variance(A, U[:, : t + 1]) for t in range(3)]
    expected = {
        "raw": np.einsum("jt,ji,it->t", U, A, U),
        "adjusted": np.diag(np.linalg.qr(root @ U)[1]) ** 2,
        "cumulative": np.diff(spanned, prepend=0),
    }
    for name, values in expected.items():
        np.testing.assert_allclose([c[name] for c in components], values, rtol=1e-10)
    B = A.copy()
    for t, component in enumerate(components):
        assert component["value"] == pytest.approx(U[:, t] @ B @ U[:, t])
        best = oracles.optimum(B, component["cardinality"])
        assert component["upper_bound"] >= best * (1 - 1e-12)
        exact = as_json("certify", *pitprops, "--loadings", tmp_path / "l.csv", "--exact")["components"][t]
        assert exact["upper_bound"] == pytest.approx(best, rel=1e-9)
        assert exact["gap"] == pytest.approx(1 - exact["value"] / best, rel=1e-6)
        B = oracles.deflated(B, U[:, t], "projection")
    lines = output("certify", *pitprops, "--loadings", tmp_path / "l.csv").splitlines()
    printed = next(line for line in lines if line.startswith("adjusted variance")).split()[2:]
    values = [*expected["adjusted"], expected["adjusted"].sum()]
    np.testing.assert_allclose(np.array(printed, float), values, rtol=5.001e-4)


def test_the_optimum_given_as_loadings_has_no_gap(as_json, tmp_path, pitprops):
    argv = ("--method", "branch_and_bound", "-k4", "-n2", "-o", tmp_path / "l.csv", "-q")
    as_json("fit", *pitprops, *argv)
    document = as_json("certify", *pitprops, "--loadings", tmp_path / "l.csv", "--exact")
    assert [component["gap"] for component in document["components"]] == [0, 0]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "give either -k/--cardinality or --loadings"),
        (["-k", "3", "--loadings", "l.csv"], "give either -k/--cardinality or --loadings"),
        (["-k", "3", "--time-limit", "3"], "--time-limit: goes with --exact"),
        (["-k", "3", "--deflation", "schur"], "--deflation: goes with --loadings"),
        (["-k", "3", "--exact", "--relaxation"], "--relaxation: goes with -k/--cardinality, without --exact"),
        (["-k", "14"], "-k/--cardinality: 14 is too many, at most 13"),
        (["--loadings", "none.csv"], "cannot read none.csv: No such file or directory"),
        (["--loadings", "l.txt"], "--loadings: l.txt is neither .csv nor .npz"),
        (["--loadings", "short.csv"], "short.csv has 2 variables, "),
        (["--loadings", "other.csv"], "other.csv has no variable 'topdiam', as "),
        (["--loadings", "twice.csv"], "twice.csv has no variable 'topdiam', as "),
        (["--loadings", "zero.csv"], "component 2 of zero.csv has no loading that is not zero"),
        (["--loadings", "m.npz"], "argument --array: m.npz has no array 'loadings', but: X 2x2"),
    ],
)
def test_wrong_options_of_certify(run, pitprops, tmp_path, monkeypatch, argv, words):
    monkeypatch.chdir(tmp_path)
    names = spcacore.datasets.load_pitprops().names
    files = {
        "short": names[:2], "other": ["x", *names[1:]], "twice": [names[1], *names[1:]], "zero": names,
    }  # fmt: skip
    for name, variables in files.items():
        rows = [f"{variable},1,{0 if name == 'zero' else 2}" for variable in variables]
        (tmp_path / f"{name}.csv").write_text("\n".join(["variable,component_1,component_2", *rows]))
    np.savez(tmp_path / "m.npz", X=np.eye(2))
    assert words in one_error_line(run("certify", *pitprops, *argv))


def test_names_that_occur_twice_are_told_and_matched_in_their_order_only(run, as_json, tmp_path, X):
    names = ["a", "a", *"cdefghi"]
    np.savez(tmp_path / "m.npz", X=X, names=names)
    note = "several variables have the same name: 'a'; a name does not tell them apart"
    said = run("fit", tmp_path / "m.npz", "-k3", "-n1", "-o", tmp_path / "l.csv")[2]
    assert said == f"spcacore: note: {note}\n"
    assert as_json("info", tmp_path / "m.npz")["notes"] == [note]
    status, out, said = run("certify", tmp_path / "m.npz", "--loadings", tmp_path / "l.csv")
    assert (status, said) == (0, f"spcacore: note: {note}\n")
    assert "gap %" in out
    first, *lines = (tmp_path / "l.csv").read_text().splitlines()
    (tmp_path / "l.csv").write_text("\n".join([first, *lines[::-1]]))
    error = one_error_line(run("certify", tmp_path / "m.npz", "--loadings", tmp_path / "l.csv"))
    assert "l.csv names variables twice" in error


FORMULAS = ["=SUM(A1)", "+1", "-1", "@x", "'=SUM(A1)", "''@x", "'quoted", "plain", "a=b"]


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("turned", [1, -1])
def test_names_that_are_formulas_are_quoted_and_found_again(output, as_json, tmp_path, X, raw, turned):
    np.savez(tmp_path / "m.npz", X=X, names=FORMULAS)
    argv = ["-k9", "-n1", "-q", "-o", tmp_path / "l.csv"]
    output("fit", tmp_path / "m.npz", *argv, *["--raw-names"] * raw)
    with open(tmp_path / "l.csv", newline="") as file:
        first, *rows = csv.reader(file)
    written = [name for name, _ in rows]
    assert written == (FORMULAS if raw else [f"'{name}" for name in FORMULAS[:6]] + FORMULAS[6:])
    with open(tmp_path / "l.csv", "w", newline="") as file:
        csv.writer(file).writerows([first, *rows[::turned]])
    found = as_json("certify", tmp_path / "m.npz", "--loadings", tmp_path / "l.csv")
    leading = np.linalg.eigvalsh(np.cov(X.T))[-1]
    np.testing.assert_allclose(found["components"][0]["raw"], leading, rtol=1e-6)


def test_names_of_samples_that_are_formulas_are_quoted(output, tmp_path, X):
    labels = ["=1+1", "+", "-x", "@", *(f"s{i}" for i in range(26))]
    lines = [",".join([label, *map(str, row)]) for label, row in zip(labels, X, strict=True)]
    (tmp_path / "m.csv").write_text("\n".join([",a,b,c,d,e,f,g,h,i", *lines]))
    for flags, mark in (([], "'"), (["--raw-names"], "")):
        output("fit", tmp_path / "m.csv", "-k3", "-q", "--scores", tmp_path / "s.csv", *flags)
        with open(tmp_path / "s.csv", newline="") as file:
            written = [row[0] for row in csv.reader(file)][1:]
        assert written == [mark + label for label in labels[:4]] + labels[4:]


@pytest.mark.parametrize("first", ["\t", "\r", "=", "+", "-", "@"])
@pytest.mark.parametrize("before", ["", "'", "''"])
def test_what_starts_a_formula_is_quoted(tmp_path, first, before):
    name = f"{before}{first}cmd"
    report.write_matrix(tmp_path / "l.csv", "variable", [name], np.ones((1, 1)), False)
    with open(tmp_path / "l.csv", newline="") as file:
        assert list(csv.reader(file))[1] == ["'" + name, "1.0"]


def test_a_total_beyond_the_numbers_leaves_out_the_shares(tmp_path, capfd):
    np.save(tmp_path / "m.npy", 1e200 * np.random.default_rng(0).standard_normal((9, 3)))
    np.savez(tmp_path / "l.npz", loadings=np.eye(3)[:, :2])
    assert cli.main(["certify", str(tmp_path / "m.npy"), "--loadings", str(tmp_path / "l.npz")]) == 0
    out, err = capfd.readouterr()
    assert "raw variance" in out
    assert "raw %" not in out
    assert err == "spcacore: warning: a variance exceeds the number range and is given as inf\n"


# ---- info -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("orientation", ["rows", "columns"])
@pytest.mark.parametrize("form", ["dense", "fortran", "csr", "csc"])
def test_info_counts_what_numpy_counts(as_json, output, tmp_path, X, form, orientation, monkeypatch):
    monkeypatch.setattr(info, "BLOCK", 40)
    X[np.abs(X) < 1] = 0
    X[:, 5] = X[1:, 6] = 2.5
    X[0, 6] = 0
    X[3, 2] = X[4, 7] = X[2, 7] = np.nan
    X[6, 0] = -np.inf
    X[:, 8] = np.nan
    if form in ("csr", "csc"):
        path = tmp_path / "m.npz"
        scipy.sparse.save_npz(path, scipy.sparse.csr_array(X).asformat(form))
    else:
        path = tmp_path / "m.npy"
        np.save(path, np.asfortranarray(X) if form == "fortran" else X)
    facts = as_json("info", path, "--orientation", orientation)
    X = X.T if orientation == "columns" else X
    known = np.ma.masked_invalid(X)
    count = known.count(axis=0)
    low, high = known.min(axis=0).filled(np.nan), known.max(axis=0).filled(np.nan)
    assert (facts["samples"], facts["variables"]) == X.shape
    assert facts["missing"] == np.isnan(X).sum()
    assert facts["infinite"] == np.isinf(X).sum() == 1
    assert facts["first_not_finite"] == np.argwhere(~np.isfinite(X))[0].tolist()
    assert facts["nonzeros"] == np.count_nonzero(X)
    assert facts["constant_variables"] == np.flatnonzero((low == high) & (count > 0)).tolist()
    assert facts["empty_variables"] == np.flatnonzero(count == 0).tolist()
    variances = known.var(axis=0, ddof=1).filled(np.nan)[(count > 1) & (low != high)]
    for name, function in (("smallest", np.min), ("median", np.median), ("largest", np.max)):
        assert facts[f"{name}_variance"] == pytest.approx(function(variances), rel=1e-12)
    assert facts["bytes_on_disk"] == path.stat().st_size
    assert facts["sparse"] == (None if form in ("dense", "fortran") else facts["sparse"])
    text = output("info", path, "--orientation", orientation)
    i, j = facts["first_not_finite"]
    assert f"the first: sample {i + 1}, variable x{j + 1}\n" in text
    assert "Missing entries must be filled in or dropped" in text


@pytest.mark.parametrize("size", [1e-150, 1, 1e150])
def test_info_of_numbers_of_any_size(as_json, tmp_path, X, size):
    np.save(tmp_path / "m.npy", X * size + 1e6 * size)
    facts = as_json("info", tmp_path / "m.npy")
    variance = np.var(X + 1e6, axis=0, ddof=1).max()
    assert facts["largest_variance"] == pytest.approx(variance * size * size, rel=1e-6)
    assert facts["smallest_variance"] > 0


def test_info_advises(output, pitprops, tmp_path, X):
    text = output("info", pitprops[0])
    assert "symmetric  yes" in text
    assert "if it holds correlations, say --covariance" in text
    assert "variables  13 (topdiam, length, moist, testsg, ovensg, ...)" in text
    X[:, 4] *= 100
    np.save(tmp_path / "m.npy", X)
    variances = np.var(X, axis=0, ddof=1)
    text = output("info", tmp_path / "m.npy")
    assert f"The largest variance is {variances.max() / np.median(variances):.2g} times the median" in text
    assert "--scale" in text
    np.savez(tmp_path / "m.npz", X=X, names=[f"n{j}" for j in range(9)], other=3)
    assert "contents   X 30x9, names 9, other scalar" in output("info", tmp_path / "m.npz")


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.data())
def test_info_never_fails_on_numbers(tmp_path_factory, data):
    """Whatever finite and other numbers a matrix holds."""
    n, p = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    cells = st.floats(width=64) | st.sampled_from([0.0, 1.0, np.nan, np.inf, 1.7e308, 5e-324])
    X = np.array([[data.draw(cells) for _ in range(p)] for _ in range(n)])
    path = tmp_path_factory.getbasetemp() / "numbers.npy"
    np.save(path, X)
    facts = info._facts(info.Table(X), arguments.parser().parse_args(["info", str(path)]))
    assert facts["missing"] + facts["infinite"] == np.count_nonzero(~np.isfinite(X))
    assert cli.main(["info", str(path)]) == 0
    assert cli.main(["info", str(path), "--json"]) == 0


def test_info_of_text_with_missing_entries(as_json, tmp_path):
    (tmp_path / "m.csv").write_text("id,a,b\ns,1,NA\nt,inf,4\n")
    facts = as_json("info", tmp_path / "m.csv")
    assert (facts["missing"], facts["infinite"], facts["first_not_finite"]) == (1, 1, [0, 1])
    assert facts["names"] == ["a", "b"]
    assert facts["sample_names"] == ["s", "t"]


# ---- the command itself -----------------------------------------------------------------------------


@pytest.mark.parametrize("command", cli.COMMANDS)
def test_help_of_each_command(capsys, command):
    with pytest.raises(SystemExit) as exit_:
        cli.main([command, "--help"])
    assert exit_.value.code == 0
    out = capsys.readouterr().out
    for word in (f"usage: spcacore {command} FILE [options]", ".parquet", ".h5ad", "--json", "--orientation"):
        assert word in out
    assert max(map(len, out.split("file formats:")[1].splitlines())) <= 110


def test_info_of_a_constant_matrix(output, as_json, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((5, 3)))
    assert output("info", tmp_path / "x.npy").splitlines()[-1] == "No variable varies."
    assert as_json("info", tmp_path / "x.npy")["constant_variables"] == [0, 1, 2]


def test_info_times_a_product(as_json, tmp_path, monkeypatch):
    monkeypatch.setattr(info, "TIMED", 10)
    np.save(tmp_path / "x.npy", np.random.default_rng(0).standard_normal((5, 3)))
    assert 0 < as_json("info", tmp_path / "x.npy")["seconds_per_product"] < 60
    np.save(tmp_path / "x.npy", np.full((5, 3), np.nan))
    assert as_json("info", tmp_path / "x.npy")["seconds_per_product"] is None


def test_help_names_every_field_of_the_json(capsys, as_json, file, tmp_path):
    """And those that it names are there."""
    as_json("fit", file, "-k3", "-n1", "-o", tmp_path / "l.csv")
    described = set(re.findall(r"[a-z]\w*", help.JSON_MATRIX))
    for command, text, calls in (
        ("fit", help.JSON_FIT + help.JSON_RESULT, [("-k3", "-n1", "--certify")]),
        ("path", help.JSON_PATH + help.JSON_RESULT, [("-k1:3",), ("-k1:3", "--select", "cv")]),
        ("certify", help.JSON_CERTIFY, [("-k3", "--exact"), ("--loadings", tmp_path / "l.csv")]),
        ("info", help.JSON_INFO, [()]),
    ):
        words, found = described | set(re.findall(r"[a-z]\w*", text)), set()
        for argv in calls:
            fields(as_json(command, file, *argv), found)
        assert found - {"reading", "computing", "branch and bound"} <= words
        named = {word for word in words if "_" in word} - {"l1_bound"}
        assert named <= found | (set() if command != "path" else {"n_iter"})
    capsys.readouterr()


def fields(value, found):
    """The names of all fields, however deep."""
    if isinstance(value, dict):
        found |= set(value)
    for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        fields(entry, found)


def test_help_lists_the_commands(capsys):
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    out = capsys.readouterr().out
    assert [line.split()[1] for line in out.splitlines() if "FILE  " in line] == [
        "info",
        "fit",
        "path",
        "certify",
    ]


def test_the_command_imports_what_it_needs_and_no_more():
    script = (
        "import sys; from spcacore.cli import arguments; arguments.parser();"
        "print(*{'matplotlib', 'pandas', 'pyarrow', 'h5py', 'spcacore.plot', 'spcacore.selection', "
        "'spcacore.cli.stores', 'spcacore.cli.info'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd="/")
    assert done.stdout == "\n"
