"""The command line: what it prints and writes against the API, how it reads files, how it fails."""

import contextlib
import csv
import gzip
import io
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st

import spcacore
from spcacore import cli
from spcacore.cli import arguments, fit, reading

SCRIPT = Path(sys.executable).parent / "spcacore"
COMMAND = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "spcacore.cli"]


@pytest.fixture
def run(capsys):
    """main() in this process: exit status, stdout, stderr."""

    def call(*argv):
        status = cli.main([str(a) for a in argv])
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def X():
    rng = np.random.default_rng(3)
    data = rng.standard_normal((30, 12)) * np.linspace(1, 3, 12) + rng.standard_normal(12)
    data[:, :4] += 3 * rng.standard_normal((30, 1))
    return data


@pytest.fixture
def counts():
    return scipy.sparse.random(40, 15, density=0.3, format="csr", random_state=4)


def saved(path, array):
    np.save(path, array)
    return path


def results(path):
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def assert_same(fields, result, names=None):
    """All that was written equals the API's result to the bit."""
    for field in ("loadings", "explained_variance", "explained_variance_ratio", "total_variance"):
        np.testing.assert_array_equal(fields[field], getattr(result, field))
        assert fields[field].dtype == np.asarray(getattr(result, field)).dtype
    for field in ("cardinality", "n_iter", "converged", "method", "deflation", "kind"):
        np.testing.assert_array_equal(fields[field], getattr(result, field))
    for field in ("mean", "scale", "n_samples"):
        if getattr(result, field) is None:
            assert field not in fields
        else:
            np.testing.assert_array_equal(fields[field], getattr(result, field))
    if names is not None:
        assert fields["names"].tolist() == list(names)


def one_error_line(outcome):
    status, out, err = outcome
    assert (status, out) == (2, "")
    assert err.startswith("spcacore: error: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err


# ---- the pit props ----------------------------------------------------------------------------------


def test_without_arguments_prints_the_pit_props_result_of_the_api(run):
    status, out, err = run()
    assert (status, err) == (0, "")
    pitprops = spcacore.datasets.load_pitprops()
    result = spcacore.sparse_pca(pitprops.correlation, 6, cardinality=[7, 4, 4, 1, 1, 1], kind="covariance")
    rows = {line[:12].strip(): line[12:].split() for line in out.splitlines()}
    for name, loadings in zip(pitprops.names, result.loadings, strict=True):
        assert [cell == "." for cell in rows[name]] == [v == 0 for v in loadings]
        printed = [0.0 if cell == "." else float(cell) for cell in rows[name]]
        np.testing.assert_allclose(printed, loadings, rtol=0, atol=5.001e-4)
    assert rows["component"] == ["1", "2", "3", "4", "5", "6"]
    assert rows["nonzeros"] == ["7", "4", "4", "1", "1", "1"]
    np.testing.assert_allclose(np.array(rows["variance"], float), result.explained_variance, rtol=5.001e-4)
    share = 100 * result.explained_variance_ratio
    np.testing.assert_allclose(np.array(rows["variance %"], float), share, atol=0.05001)
    np.testing.assert_allclose(np.array(rows["cumulative %"], float), np.cumsum(share), atol=0.05001)
    assert re.search(r"^\d+\.\d{3} s$", out, re.M)
    assert out.splitlines()[-1] == "Your own data: spcacore fit FILE      More: spcacore --help"


def test_pit_props_by_fit_reproduce_the_demonstration(run, tmp_path):
    pandas = pytest.importorskip("pandas")
    pitprops = spcacore.datasets.load_pitprops()
    path = tmp_path / "pitprops.csv"
    pandas.DataFrame(pitprops.correlation, pitprops.names, pitprops.names).to_csv(path)
    demo = run()[1].splitlines()
    status, out, err = run("fit", path, "--covariance", "-k", "7,4,4,1,1,1")
    assert (status, err) == (0, "")
    start = next(i for i, line in enumerate(demo) if line.startswith("component"))
    assert demo[start : start + 19] == out.splitlines()[2:21]
    assert out.startswith(f"Sparse PCA of {path}: 13 variables, covariance matrix\n")


# ---- every format gives the numbers of the API ------------------------------------------------------

OPTIONS = ("-n", "3", "-k", "5,3,4")


def api(matrix, **options):
    return spcacore.sparse_pca(matrix, 3, cardinality=[5, 3, 4], **options)


def write_text(path, matrix, delimiter):
    text = "".join(delimiter.join(map(repr, row)) + "\n" for row in matrix.tolist()).encode()
    path.write_bytes(gzip.compress(text) if path.suffix == ".gz" else text)


@pytest.mark.parametrize(
    ("name", "write"),
    [
        ("m.csv", lambda path, X: write_text(path, X, ",")),
        ("semicolon.CSV", lambda path, X: write_text(path, X, ";")),
        ("m.tsv", lambda path, X: write_text(path, X, "\t")),
        ("m.csv.gz", lambda path, X: write_text(path, X, ",")),
        ("m.tsv.gz", lambda path, X: write_text(path, X, "\t")),
        ("with.dots.npy", np.save),
        ("only.npz", lambda path, X: np.savez(path, whatever=X, labels=np.arange(7))),
        ("called_X.npz", lambda path, X: np.savez(path, X=X, other=X[:4])),
        ("packed.npz", lambda path, X: np.savez_compressed(path, X=X)),
        ("dense.mtx", lambda path, X: scipy.io.mmwrite(path, X, precision=17)),
    ],
)
def test_dense_formats_give_the_loadings_of_the_api(run, tmp_path, X, name, write):
    write(tmp_path / name, X)
    status, out, err = run("fit", tmp_path / name, *OPTIONS, "-o", tmp_path / "r.npz", "-q")
    assert (status, out, err) == (0, "", "")
    assert_same(results(tmp_path / "r.npz"), api(X), [f"x{j + 1}" for j in range(12)])


@pytest.mark.parametrize("format_", ["csr", "csc", "coo", "bsr", "dia"])
def test_sparse_npz(run, tmp_path, counts, format_):
    scipy.sparse.save_npz(tmp_path / "m.npz", counts.asformat(format_))
    assert run("fit", tmp_path / "m.npz", *OPTIONS, "-o", tmp_path / "r.npz", "-q") == (0, "", "")
    matrix = counts.asformat("csc") if format_ == "csc" else counts
    assert_same(results(tmp_path / "r.npz"), api(matrix))


@pytest.mark.parametrize("packed", [False, True])
def test_sparse_matrix_market(run, tmp_path, counts, packed):
    path = tmp_path / "m.mtx"
    scipy.io.mmwrite(path, counts, precision=17)
    if packed:
        (tmp_path / "m.mtx.gz").write_bytes(gzip.compress(path.read_bytes()))
        path = tmp_path / "m.mtx.gz"
    assert run("fit", path, *OPTIONS, "-o", tmp_path / "r.npz", "-q") == (0, "", "")
    assert_same(results(tmp_path / "r.npz"), api(counts))


def test_array_chooses_among_several(run, tmp_path, X):
    np.savez(tmp_path / "m.npz", a=X[:10], b=X)
    assert run("fit", tmp_path / "m.npz", "--array", "b", *OPTIONS, "-q", "-o", tmp_path / "r.npz")[0] == 0
    assert_same(results(tmp_path / "r.npz"), api(X))


def test_words_in_an_npz_are_names(run, tmp_path, X):
    genes, patients = [f"gene {j}" for j in range(12)], [f"patient {i}" for i in range(30)]
    np.savez(tmp_path / "m.npz", X=X, genes=genes, patients=patients, n=3)
    path, scores = tmp_path / "r.npz", tmp_path / "s.npz"
    assert run("fit", tmp_path / "m.npz", *OPTIONS, "-q", "-o", path, "--scores", scores)[0] == 0
    assert_same(results(path), api(X), genes)
    assert results(scores)["names"].tolist() == patients


# ---- options reach the API --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("argv", "options"),
    [
        (["--scale"], {"scale": True}),
        (["--no-center"], {"center": False}),
        (["--tol", "0.01"], {"tol": 0.01}),
        *[(["--deflation", d], {"deflation": d}) for d in arguments.DEFLATIONS],
    ],
)
def test_options_reach_the_api(run, tmp_path, X, argv, options):
    path = saved(tmp_path / "m.npy", X)
    assert run("fit", path, *OPTIONS, *argv, "-o", tmp_path / "r.npz", "-q") == (0, "", "")
    assert_same(results(tmp_path / "r.npz"), api(X, **options))


def test_seed_and_max_iter_reach_the_api(run, tmp_path, X, monkeypatch):
    options = {}
    monkeypatch.setattr(fit, "sparse_pca", lambda X, **kw: options.update(kw) or spcacore.sparse_pca(X, **kw))
    path = saved(tmp_path / "m.npy", X)
    assert run("fit", path, *OPTIONS, "--seed", "7", "--max-iter", "77", "-q")[0] == 0
    assert (options["rng"], options["max_iter"]) == (7, 77)


def test_float32_computes_in_single_precision(run, tmp_path, X, counts):
    for name, matrix in (("m.npy", X), ("s.npz", counts)):
        np.save(tmp_path / name, X) if name == "m.npy" else scipy.sparse.save_npz(tmp_path / name, counts)
        assert run("fit", tmp_path / name, *OPTIONS, "--float32", "-o", tmp_path / "r.npz", "-q")[0] == 0
        assert_same(results(tmp_path / "r.npz"), api(matrix.astype(np.float32)))


def test_defaults_fit_a_small_matrix_with_a_note(run, tmp_path, X):
    path = saved(tmp_path / "m.npy", X[:3, :7])
    status, _, err = run("fit", path, "-o", tmp_path / "r.npz")
    assert status == 0
    with pytest.warns(RuntimeWarning, match="no variance is left") as caught:
        expected = spcacore.sparse_pca(X[:3, :7], 3, cardinality=7)
    assert err.splitlines() == [
        f"spcacore: warning: {caught[0].message}",
        f"spcacore: note: 3 components instead of 5: {path} has 3 samples of 7 variables",
    ]
    assert_same(results(tmp_path / "r.npz"), expected)


def test_default_is_five_components_of_ten(run, tmp_path, X):
    path = saved(tmp_path / "m.npy", X)
    assert run("fit", path, "-q", "-o", tmp_path / "r.npz") == (0, "", "")
    assert_same(results(tmp_path / "r.npz"), spcacore.sparse_pca(X, 5, cardinality=10))


@pytest.mark.parametrize("scale", [False, True])
def test_covariance(run, tmp_path, X, scale):
    A = np.cov(X, rowvar=False)
    path = saved(tmp_path / "m.npy", A)
    argv = ["--scale"] if scale else []
    status, _, err = run("fit", path, "--covariance", *OPTIONS, *argv, "-o", tmp_path / "r.npz")
    assert (status, err) == (0, "")
    assert_same(results(tmp_path / "r.npz"), api(A, kind="covariance", scale=scale))


def test_a_symmetric_matrix_taken_for_data_is_pointed_out(run, tmp_path, X):
    A = np.corrcoef(X, rowvar=False)
    for path, matrix in ((tmp_path / "m.npy", A), (tmp_path / "m.mtx", scipy.sparse.coo_array(A))):
        np.save(path, A) if path.suffix == ".npy" else scipy.io.mmwrite(path, matrix)
        assert (
            "is symmetric; if it holds covariances or correlations, say --covariance" in run("fit", path)[2]
        )
        assert run("fit", path, "-q")[2] == ""
    assert run("fit", saved(tmp_path / "d.npy", X[:12]))[2] == ""


@pytest.mark.parametrize("kind", ["npy", "npz", "csv"])
def test_orientation_columns_transposes(run, tmp_path, X, counts, kind):
    path = tmp_path / f"m.{kind}"
    expected, names = X, [f"v{j}" for j in range(12)]
    if kind == "npy":
        np.save(path, X.T)
    elif kind == "npz":
        scipy.sparse.save_npz(path, scipy.sparse.csr_array(counts.T))
        expected, names = counts.tocsc(), [f"v{j}" for j in range(15)]
    else:
        with open(path, "w") as file:
            expected = np.asfortranarray(X)
            csv.writer(file).writerow(["", *(f"patient {i}" for i in range(30))])
            csv.writer(file).writerows([name, *row] for name, row in zip(names, X.T, strict=True))
    argv = []
    if kind != "csv":
        (tmp_path / "names.txt").write_text("\n".join(names) + "\n\n")
        argv = ["--names", tmp_path / "names.txt"]
    outputs = ["-o", tmp_path / "r.npz", "--scores", tmp_path / "s.npz", "-q"]
    assert run("fit", path, "--orientation", "columns", *OPTIONS, *argv, *outputs) == (0, "", "")
    assert_same(results(tmp_path / "r.npz"), api(expected), names)
    scores = results(tmp_path / "s.npz")
    np.testing.assert_array_equal(scores["scores"], api(expected).transform(expected))
    assert scores["names"][1] == ("patient 1" if kind == "csv" else "2")


def test_names_file_may_have_a_byte_order_mark_and_any_line_ends(run, tmp_path, X):
    path = saved(tmp_path / "m.npy", X)
    names = [f"größe {j}" for j in range(12)]
    (tmp_path / "n.txt").write_bytes("\r\n".join(names).encode("utf-8-sig"))
    assert run("fit", path, "--names", tmp_path / "n.txt", "-q", "-o", tmp_path / "r.npz")[0] == 0
    assert results(tmp_path / "r.npz")["names"].tolist() == names


# ---- headers and row names --------------------------------------------------------------------------


def read(path, *argv):
    args = arguments.make_parser().parse_args(["fit", str(path), *argv])
    args.notes = []
    return reading.read(args)


@pytest.mark.parametrize(
    ("text", "argv", "matrix", "names", "row_names"),
    [
        ("1,2\n3,4\n5,7\n", (), [[1, 2], [3, 4], [5, 7]], None, None),
        ("a,b\n1,2\n3,5\n", (), [[1, 2], [3, 5]], ("a", "b"), None),
        ("id,a,b\ns,1,2\nt,3,5\n", (), [[1, 2], [3, 5]], ("a", "b"), ("s", "t")),
        ("a,b\ns,1,2\nt,3,5\n", (), [[1, 2], [3, 5]], ("a", "b"), ("s", "t")),
        ("2001,2002\ns,1,2\nt,3,5\n", (), [[1, 2], [3, 5]], ("2001", "2002"), ("s", "t")),
        (",a,b\n1,7,2\n2,3,5\n", (), [[7, 2], [3, 5]], ("a", "b"), ("1", "2")),
        (",0,1\n0,7.5,2\n1,3,5\n", (), [[7.5, 2], [3, 5]], ("0", "1"), ("0", "1")),
        (",2001,2007\ns,1,2\nt,3,5\n", (), [[1, 2], [3, 5]], ("2001", "2007"), ("s", "t")),
        ("s,1,2\nt,3,5\n", (), [[1, 2], [3, 5]], None, ("s", "t")),
        ("1_0,1,2\n1_1,3,5\n", (), [[1, 2], [3, 5]], None, ("1_0", "1_1")),
        ("s,1,2\n7,3,5\n", (), [[1, 2], [3, 5]], None, ("s", "7")),
        ("a\n1\n2\n", (), [[1], [2]], ("a",), None),
        ("a\ns,1\nt,2\n", (), [[1], [2]], ("a",), ("s", "t")),
        ("1,2\n3,5\n", ("--header",), [[3, 5]], ("1", "2"), None),
        ("1,2\n3,5\n", ("--row-names",), [[2], [5]], None, ("1", "3")),
        ("id,1,2\n7,3,4\n", ("--header",), [[7, 3, 4]], ("id", "1", "2"), None),
        ("id,1,2\ns,3,4\n", ("--header",), [[3, 4]], ("1", "2"), ("s",)),
        ("1,2\n3,4,5\n", ("--header", "--row-names"), [[4, 5]], ("1", "2"), ("3",)),
        ("id,a\n1,2\n3,5\n", ("--row-names",), [[2], [5]], ("a",), ("1", "3")),
        ('"a,1";"b ""q"""\n"1";2\n3;5\n', (), [[1, 2], [3, 5]], ("a,1", 'b "q"'), None),
        ('a,"b\nc"\n1,2\n3,5\n', (), [[1, 2], [3, 5]], ("a", "b\nc"), None),
        ("\n \na,b\r\n\r\n1,2\r\n3,5", (), [[1, 2], [3, 5]], ("a", "b"), None),
        ("\ufeffa,b\n1,2\n3,5\n", (), [[1, 2], [3, 5]], ("a", "b"), None),
        ("\ufeff1,2\n3,5\n", (), [[1, 2], [3, 5]], None, None),
        ("a\tb\n1\t2\n", (), [[1, 2]], ("a", "b"), None),
        (" 1 , -2e3\n+3.,.5\n", (), [[1, -2000], [3, 0.5]], None, None),
    ],
)  # fmt: skip
def test_layout_of_text(tmp_path, text, argv, matrix, names, row_names):
    path = tmp_path / "m.csv"
    path.write_bytes(text.encode())
    table = read(path, *argv)
    np.testing.assert_array_equal(table.matrix, np.array(matrix, float))
    assert (table.names, table.row_names) == (names, row_names)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("1990,1991,1992,1993\n5,3,8,1\n2,9,4,2\n", "say --header"),
        ("s,1990,1991,1992,1993\nt,3,8,1,7\nu,9,4,2,0\n", "say --header"),
        ("n,a\n1,5\n2,7\n3,1\n", "say --row-names"),
        ("0,5\n1,7\n2,1\n", "say --row-names"),
        ("a,b,c\n$1,2,3\n3,4,6\n", "as row names, though 3 is a number; if it is a variable, say --no-row"),
    ],
)
def test_numbers_that_may_be_names_are_pointed_out(run, tmp_path, text, words):
    path = tmp_path / "m.csv"
    path.write_text(text)
    err = run("fit", path, "-n1", "-k1")[2]
    assert words in err
    assert err.count("\n") == 1
    flag = "--no-header" if "header" in words else "--row-names" if "$" in text else "--no-row-names"
    assert run("fit", path, "-n1", "-k1", flag)[2] == ""


label = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\ufeff"), min_size=1, max_size=8).filter(
    lambda text: reading._is_text(text) and text.strip() == text
)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=150, deadline=None)
@given(st.data())
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory, data):
    n, p = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 4))
    matrix = [[data.draw(numbers) for _ in range(p)] for _ in range(n)]
    names = data.draw(st.none() | st.tuples(*[label] * p))
    row_names = data.draw(st.none() | st.tuples(*[label] * n))
    corner = data.draw(st.sampled_from([None, "", "id"]))
    path = tmp_path_factory.getbasetemp() / f"h{data.draw(st.sampled_from(['.csv', '.tsv', '.csv.gz']))}"
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter="\t" if path.suffix == ".tsv" else ",", quoting=csv.QUOTE_ALL)
    if names:
        writer.writerow([corner, *names] if row_names and corner is not None else names)
    for i, row in enumerate(matrix):
        writer.writerow([row_names[i], *row] if row_names else row)
    content = text.getvalue().encode()
    path.write_bytes(gzip.compress(content) if path.suffix == ".gz" else content)
    table = read(path)
    np.testing.assert_array_equal(table.matrix, np.array(matrix))
    assert (table.names, table.row_names) == (names, row_names)


def test_pandas_and_this_read_a_large_table_alike(tmp_path):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        np.random.default_rng(0).standard_normal((72, 1500)),
        [f"s{i}" for i in range(72)],
        [f"g{j}" for j in range(1500)],
    )
    frame.to_csv(tmp_path / "m.csv")
    table = read(tmp_path / "m.csv")
    again = pandas.read_csv(tmp_path / "m.csv", index_col=0, dtype=str)
    np.testing.assert_array_equal(table.matrix, frame.to_numpy())
    np.testing.assert_array_equal(table.matrix, again.to_numpy().astype(float))
    assert table.names == tuple(again.columns)
    assert table.row_names == tuple(again.index)


def test_compressed_text_may_have_a_byte_order_mark(tmp_path):
    path = tmp_path / "m.tsv.gz"
    path.write_bytes(gzip.compress("a\tb\n1\t2\n".encode("utf-8-sig")))
    assert read(path).names == ("a", "b")


# ---- what is written --------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_csv_outputs_read_back_exactly(run, tmp_path, X, dtype):
    pandas = pytest.importorskip("pandas")
    path = saved(tmp_path / "m.npy", X.astype(dtype))
    names = [f'odd, "name" {j}' for j in range(12)]
    (tmp_path / "n.txt").write_text("\n".join(names))
    argv = ["--names", tmp_path / "n.txt", "-o", tmp_path / "l.csv", "--scores", tmp_path / "s.csv"]
    status, out, _ = run("fit", path, *OPTIONS, *argv)
    assert status == 0
    assert out.splitlines()[-2:] == [f"wrote {tmp_path / 'l.csv'}", f"wrote {tmp_path / 's.csv'}"]
    result = api(X.astype(dtype))
    for file, index, expected in (
        ("l.csv", names, result.loadings),
        ("s.csv", list(range(1, 31)), result.transform(X.astype(dtype))),
    ):
        frame = pandas.read_csv(tmp_path / file, index_col=0, dtype=str)
        assert list(map(str, frame.index)) == list(map(str, index))
        assert frame.columns.tolist() == ["component_1", "component_2", "component_3"]
        assert frame.index.name == ("variable" if file == "l.csv" else "sample")
        np.testing.assert_array_equal(frame.to_numpy().astype(dtype), expected)
    zeros = re.findall(r",0(?=[,\n])", (tmp_path / "l.csv").read_text())
    assert len(zeros) == np.count_nonzero(result.loadings == 0)


def test_many_variables_are_listed_by_loading(run, tmp_path):
    X, _ = spcacore.datasets.make_spiked(40, 200, cardinality=70, rng=1)
    X[:, ::3] *= -1
    np.savez(tmp_path / "m.npz", X=X, names=[f"n\x1b[31m{j}" for j in range(200)])
    status, out, err = run("fit", tmp_path / "m.npz", "-n2", "-k", "6,60")
    assert (status, err) == (0, "")
    result = spcacore.sparse_pca(X, 2, cardinality=[6, 60])
    assert (result.loadings.min(axis=0) < 0).all()
    for t, count in ((0, 6), (1, 50)):
        lines = out.split(f"component {t + 1}: ")[1].split("\n\n")[0].splitlines()
        assert lines[0] == f"{100 * result.explained_variance_ratio[t]:.1f} % of the variance"
        v = result.loadings[:, t]
        order = sorted(np.flatnonzero(v), key=lambda j: -abs(v[j]))[:count]
        expected = [[f"{v[j]:.3f}", f"n?[31m{j}"] for j in order]
        assert [line.split() for line in lines[1 : count + 1]] == expected
        assert (lines[-1] == "  and 10 more; -o FILE writes all") is (t == 1)
    summary = out.split("\n\n")[1].splitlines()
    assert summary[0].split() == ["component", "nonzeros", "variance", "variance", "%", "cumulative", "%"]
    share = 100 * result.explained_variance_ratio
    for t in range(2):
        row = [float(cell) for cell in summary[t + 1].split()]
        assert row[:2] == [t + 1, (6, 60)[t]]
        np.testing.assert_allclose(row[2], result.explained_variance[t], rtol=5.001e-4)
        np.testing.assert_allclose(row[3:], [share[t], share[: t + 1].sum()], atol=0.05001)


def test_a_constant_matrix_has_no_component(run, tmp_path):
    path = saved(tmp_path / "m.npy", np.ones((4, 3)))
    argv = ["-o", tmp_path / "l.csv", "--scores", tmp_path / "s.npz"]
    status, out, err = run("fit", path, "-n1", *argv)
    assert status == 0
    assert "no component: the variables do not vary" in out
    assert err == "spcacore: warning: no variance is left after 0 of the 1 component asked for\n"
    assert (tmp_path / "l.csv").read_text() == "variable\nx1\nx2\nx3\n"
    assert results(tmp_path / "s.npz")["scores"].shape == (4, 0)


def test_non_convergence_is_one_warning_that_counts_from_one(run, tmp_path, X):
    path = saved(tmp_path / "m.npy", X)
    status, _, err = run("fit", path, "-n2", "-k4", "--max-iter", "0", "-q")
    assert status == 0
    assert err == "spcacore: warning: components 1, 2 not converged in 0 iterations; raise --max-iter\n"


def test_version(run):
    from importlib.metadata import version

    assert run("--version") == (0, f"spcacore {version('spcacore')}\n", "")


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["fit", "--help"]])
def test_help_names_every_option_and_an_example(capsys, argv):
    with pytest.raises(SystemExit) as exit_:
        cli.main(argv)
    assert exit_.value.code == 0
    out, err = capsys.readouterr()
    assert err == ""
    words = ["spcacore fit FILE", "--version", "variance"]
    if argv[0] == "fit":
        words = [
            "--components", "--cardinality", "--deflation", "--no-center", "--scale", "--covariance",
            "--orientation", "--no-header", "--no-row-names", "--names", "--array", "--seed", "--max-iter",
            "--tol", "--float32", "--output", "--scores", "--quiet", "-k 7,4,4", ".mtx", ".npz",
        ]  # fmt: skip
    for word in words:
        assert word in out


# ---- errors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "argv", "words"),
    [
        ("", (), "m.csv is empty"),
        ("\n\n", (), "m.csv is empty"),
        ("a,b\n", (), "has a header but no rows"),
        ("s\nt\n", ("--no-header",), "line 1, column 1 is not a number: 's'"),
        ("1,2\n", ("--row-names", "--header"), "has a header but no rows"),
        ("1\n2\n", ("--row-names",), "row names only"),
        ("a,b\n1,2\n3\n", (), "line 3 has 1 cell, line 2 has 2"),
        ("1,2,3\n4,5,6\n\n7,8,9,10\n", (), "line 4 has 4 cells, line 1 has 3"),
        ("id,a,b\ns,1,2\nt,3,4,5,6\n", (), "line 3 has 5 cells, line 2 has 3"),
        ("a,b\ns,1,2\nt,3,4,5,6\n", (), "line 3 has 5 cells, line 2 has 3"),
        ("id,a,b\ns,1,2\nt,3\n", (), "line 3 has 2 cells, line 2 has 3"),
        ("a,b\n1,2,3,4\n", (), "line 2 has 4 cells, line 1 has 2"),
        ("1,2\n3,4,5\n", (), "line 2 has 3 cells, line 1 has 2"),
        ("a,b\n1,2\n3,oops\n", (), "line 3, column 2 ('b') is not a number: 'oops'"),
        ("id,a,b\ns,1,2\nt,3,x\n", (), "line 3, column 3 ('b') is not a number: 'x'"),
        ("1.5,oops,3\n4,5,6\n", (), "line 1, column 2 is not a number: 'oops'; if line 1 is a header"),
        ("1,2\nb2,4\n", (), "line 2, column 1 is not a number: 'b2'; if column 1 is row names"),
        ("a;b\n1,5;2\n", (), "line 2, column 1 ('a') is not a number: '1,5'; decimals need a point"),
        ("1,1_000\n3,4\n", (), "line 1, column 2 is not a number: '1_000'"),
        ('1,"x\ny"\n3,4\n', (), "column 2 is not a number: 'x\\ny'"),
        ("a,b\n1,\n3,NA\n4,nan\n", (), "line 2, column 2 ('b') is missing (and 2 more)"),
        ("1,\n3,4\n", (), "line 1, column 2 is missing; impute"),
        (",2.5,3\n1,2,3\n", (), "line 1, column 1 is missing"),
        ("id,a,b\ns,1,2\nt,-inf,3\n", (), "line 3, column 2 ('a') is infinite"),
        ("id,a,b\n\ns,1,2\nt,1e300,4\n", ("--float32",), "line 4, column 2 ('a') is inf in single precision"),
        (
            "id,a,b\n\ns,1,2\nt,inf,\n",
            ("--method", "pmd", "--l1-bound", "1.2"),
            "line 4, column 2 ('a') is inf; impute",
        ),
        (
            "id,a,b\ns,1,2\nt,3,NA\nu,4,3\n",
            ("--method", "pmd", "--l1-bound", "1.2", "-n1", "--scores", "s.csv"),
            "line 3, column 3 ('b') is nan; impute",
        ),
        ('a,b\n1,2\n3,"4\n', (), "line 3: unexpected end of data"),
        ("1,2\n3,4\n", ("-k", "3"), "-k/--cardinality: 3 is too many, at most 2"),
        ("1,2\n3,4\n", ("-n", "3"), "-n/--components: 3 is too many, at most 2"),
        ("1,2\n3,4\n", ("-n", "2", "-k", "1,1,1"), "-k/--cardinality: 3 numbers for 2 components"),
        ("1,2\n3,4\n", ("-k", "1,1,1"), "-n/--components: 3 is too many, at most 2"),
        ("1,2\n3,4\n", ("-k", "0"), "-k/--cardinality: '0' is not a whole number of at least 1"),
        ("1,2\n3,4\n", ("-k", "1,"), "-k/--cardinality: '' is not a whole number of at least 1"),
        ("1,2\n3,4\n", ("-n", "-1"), "-n/--components: '-1' is not a whole number"),
        ("1,2\n3,4\n", ("-n", "1.5"), "-n/--components: '1.5' is not a whole number"),
        ("1,2\n3,4\n", ("--tol", "nan"), "--tol: 'nan' is not a number of at least 0"),
        ("1,2\n3,4\n", ("--tol", "x"), "--tol: 'x' is not a number of at least 0"),
        ("1,2\n3,4\n", ("--deflation", "none"), "--deflation: invalid choice: 'none'"),
        ("1,2\n3,4\n", ("--orientation", "up"), "--orientation: invalid choice: 'up'"),
        ("1,2\n3,4\n", ("-k1", "--method", "branch_and_bound", "--tol", "2"), "--tol: tol must be in"),
        ("1,2\n3,4\n", ("--random-state=3",), "--random-state=3; do you mean --seed?; see"),
        ("1,2\n3,4\n", ("--n-components", "2"), "--n-components 2; do you mean -n?; see"),
        ("1,2\n3,4\n", ("--alpha", "1"), "--alpha 1; do you mean --penalty or -k?; see"),
        ("1,2\n3,4\n", ("--l1-bound", "1"), "takes -k/--cardinality; --l1-bound is for --method pmd or sc"),
        ("a b\n1 2\n", (), "is not a number: '1 2'; commas, semicolons or tabs must separate cells"),
        ("a,b\n1,oak\n", (), "is not a number: 'oak'; drop or encode columns of words"),
        ("1,2\n3,4\n", ("--nonsense",), "unrecognized arguments: --nonsense; see spcacore fit --help"),
        ("1,2\n3,4\n", ("--array", "X"), "--array: m.csv is not an .npz file"),
        ("1,2,3\n4,5,6\n", ("--covariance",), "m.csv: a covariance must be square, not of shape (2, 3)"),
        ("2,1\n0,2\n", ("--covariance",), "m.csv: a covariance must be symmetric"),
        ("1,2\n2,1\n", ("--covariance",), "m.csv: a covariance must be positive semidefinite"),
        ("1,2\n3,4\n", ("-o", "out.txt"), "out.txt: unknown extension; .csv and .npz can be written"),
        ("1,2\n3,4\n", ("--scores", "out"), "out: unknown extension"),
        ("1,2\n3,4\n", ("-o", "no/out.csv"), "cannot write no/out.csv: no is not a directory"),
        ("1,2\n3,4\n", ("-o", "m.csv/out.csv"), "cannot write m.csv/out.csv: m.csv is not a directory"),
        ("1,2\n3,4\n", ("-o", "dir.csv"), "cannot write dir.csv: it is a directory"),
        ("1,2\n3,4\n", ("-o", "./m.csv"), "cannot write ./m.csv: it is the file to analyse"),
        ("1,2\n3,4\n", ("-o", "a.csv", "--scores", "./a.csv"), "for both loadings and scores"),
        ("1,2\n3,4\n", ("-n1", "-k1", "-o", "full.csv"), "cannot write full.csv: No space left on device"),
        ("2,1\n1,2\n", ("--covariance", "--scores", "a.csv"), "--scores: a covariance has no samples"),
        ("1,2\n3,4\n", ("--names", "no.txt"), "cannot read no.txt: No such file"),
        ("1,2\n3,4\n5,6\n", ("--names", "m.csv"), "--names: m.csv has 3 names for 2 variables"),
    ],
)  # fmt: skip
def test_bad_text_and_arguments(run, tmp_path, monkeypatch, text, argv, words):
    monkeypatch.chdir(tmp_path)
    Path("m.csv").write_text(text)
    Path("dir.csv").mkdir()
    os.symlink("/dev/full", "full.csv")
    outcome = run("fit", "m.csv", *argv)
    assert words in one_error_line(outcome)
    assert sorted(os.listdir()) == ["dir.csv", "full.csv", "m.csv"]
    assert Path("m.csv").read_text() == text


def test_permission_is_checked_before_the_work(run, tmp_path, X, monkeypatch):
    path = saved(tmp_path / "m.npy", X)
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(fit, "sparse_pca", None)
    assert "permission denied" in one_error_line(run("fit", path, "-o", tmp_path / "r.csv"))


def raw(content):
    return lambda path: path.write_bytes(content)


def npy(array):
    return lambda path: np.save(path, array, allow_pickle=True)


def npz(**arrays):
    return lambda path: np.savez(path, **arrays)


def sparse(matrix):
    return lambda path: scipy.sparse.save_npz(path, scipy.sparse.csr_array(matrix))


def corrupt_sparse():
    matrix = scipy.sparse.csr_array(np.eye(3))
    matrix.indices[1] = 900  # scipy saves and loads it
    return lambda path: scipy.sparse.save_npz(path, matrix)


def with_entry(value, columns=1):
    a = np.random.default_rng(0).standard_normal((5, 4))
    a[2, columns] = value
    return a


def zipped(**members):
    def write(path):
        with zipfile.ZipFile(path, "w") as file:
            for name, member in members.items():
                file.writestr(name, member)

    return write


def misnamed(path):
    """An archive that names its member otherwise, in a thousand letters, in its table of contents."""
    name = "n" * 1000
    zipped(**{name: b""})(path)
    path.write_bytes(path.read_bytes().replace(name.encode(), b"X.npy" + b"\x80" * 995, 1))


MTX = b"%%MatrixMarket matrix coordinate real general\n2 2 1\n"
TRANSPOSED = ("--orientation", "columns")
PICKLED = np.array([[{}]])


@pytest.mark.parametrize(
    ("name", "write", "argv", "words"),
    [
        ("missing.csv", None, (), "cannot read missing.csv: No such file or directory"),
        ("dir.csv", Path.mkdir, (), "cannot read dir.csv: Is a directory"),
        ("m.txt", raw(b""), (), "m.txt: unknown extension; .csv, .tsv, .npy, .npz and .mtx"),
        ("m", raw(b""), (), "m: unknown extension"),
        ("m.npy.gz", raw(b""), (), "m.npy.gz: unknown extension"),
        ("m.npy", raw(b""), (), "m.npy cannot be read as .npy: "),
        ("m.npz", raw(b""), (), "m.npz is not an .npz file"),
        ("m.mtx", raw(b""), (), "m.mtx cannot be read as .mtx: "),
        ("m.csv", raw(b"a,b\n\xe9,2\n"), (), "m.csv: not UTF-8 text"),
        ("m.csv.gz", raw(b"1,2\n"), (), "cannot read m.csv.gz: Not a gzipped file"),
        ("m.csv.gz", raw(gzip.compress(b"1,2\n" * 99)[:-9]), (), "m.csv.gz cannot be read as .csv: "),
        ("m.npy", raw(b"junk" * 50), (), "m.npy cannot be read as .npy: the magic string"),
        ("m.npy", npy(PICKLED), (), "m.npy holds pickled Python objects"),
        ("m.npz", npz(X=PICKLED), (), "m.npz: array X holds pickled Python objects"),
        ("m.npz", npz(X=PICKLED, Y=np.ones(2)), ("--array", "X"), "array X holds pickled Python objects"),
        ("m.npz", npz(X=np.eye(3), Y=np.eye(2)), ("--array", "Z"), "has no array 'Z', but: X 3x3, Y 2x2"),
        ("m.npz", npz(A=np.eye(3), B=np.eye(2)), (), "choose one with --array: A 3x3, B 2x2"),
        ("m.npz", npz(a=np.ones(3), b=1.0), (), "m.npz has no matrix: a 3, b scalar"),
        ("m.npz", npz(), (), "m.npz has no matrix: it is empty"),
        ("m.npz", npz(format=PICKLED, shape=1, data=1), (), "m.npz holds pickled Python objects"),
        ("m.npz", sparse(np.eye(3)), ("--array", "X"), "argument --array: m.npz holds one sparse matrix"),
        ("m.npz", corrupt_sparse(), (), "m.npz cannot be read as .npz: "),
        (
            "m.npy",
            npy(np.ones(3)),
            (),
            "m.npy: a matrix that is not empty is needed, not an array of shape (3,)",
        ),
        ("m.npz", npz(X=np.ones((2, 3, 4))), (), "not an array of shape (2, 3, 4)"),
        ("m.npz", npz(X=np.ones((0, 4))), (), "not an array of shape (0, 4)"),
        ("m.npy", npy(np.eye(3) * 1j), (), "m.npy: real numbers are needed, not dtype complex128"),
        ("m.npy", npy(np.array([["a"]])), (), "real numbers are needed, not dtype <U1"),
        ("m.npy", npy(np.eye(3)), ("--header",), "m.npy is neither .csv nor .tsv"),
        ("m.npy", npy(with_entry(np.nan)), (), "m.npy: row 3, column 2 is nan; impute"),
        ("m.npy", npy(with_entry(-np.inf)), TRANSPOSED, "m.npy: row 3, column 2 is -inf; impute"),
        ("m.npy", npy(with_entry(np.nan, slice(1, 4))), (), "row 3, column 2 is nan (and 2 more)"),
        ("m.npz", sparse(with_entry(np.nan)), (), "m.npz: row 3, column 2 is nan; impute"),
        ("m.npz", sparse(with_entry(np.nan)), TRANSPOSED, "m.npz: row 3, column 2 is nan; impute"),
        (
            "m.npy",
            npy(with_entry(1e60)),
            ("--float32",),
            "row 3, column 2 is inf in single precision; impute",
        ),
        (
            "m.mtx",
            raw(b"%%MatrixMarket matrix coordinate real general\n2 2 1\n5 1 3\n"),
            (),
            "read as .mtx: ",
        ),
        ("m.mtx", raw(b"1 2\n3 4\n"), (), "m.mtx cannot be read as .mtx: "),
        ("m.mtx", raw(MTX + b"1 1 3\0 4\n"), (), "m.mtx cannot be read as .mtx: it has a NUL"),
        ("m.mtx.gz", raw(gzip.compress(MTX + b"1 1 3\0 4\n")), (), "read as .mtx: it has a NUL"),
        ("m.npy", raw(b"\x93NUMPY\x01\x00\x08\x00{'descr\0"), (), "m.npy cannot be read as .npy: "),
        ("m.npz", zipped(notes=b"words"), (), "m.npz has no matrix: it is empty"),
        ("m.npz", misnamed, (), "m.npz cannot be read as .npz: File name in directory 'nnn"),
    ],
)
def test_bad_files(run, tmp_path, monkeypatch, name, write, argv, words):
    monkeypatch.chdir(tmp_path)
    if write is not None:
        write(Path(name))
    line = one_error_line(run("fit", name, "-n1", "-k1", *argv))
    assert words in line
    assert len(line) < 300


@pytest.mark.parametrize("end", ["", " ", "\r", "\t ", "\n", "\r\n", "\n \n"])
@pytest.mark.parametrize("kind", [".mtx", ".mtx.gz"])
def test_the_last_line_of_matrix_market_may_end_in_any_way(tmp_path, kind, end):
    """SciPy alone reads on beyond its memory after a space that no line end follows."""
    pack = gzip.compress if kind == ".mtx.gz" else bytes
    (tmp_path / f"a{kind}").write_bytes(pack(MTX + b"2 1 3.5" + end.encode()))
    np.testing.assert_array_equal(read(tmp_path / f"a{kind}").matrix.toarray(), [[0, 0], [3.5, 0]])
    dense = b"%%MatrixMarket matrix array real general\n2 1\n1\n2" + end.encode()
    (tmp_path / f"d{kind}").write_bytes(pack(dense))
    np.testing.assert_array_equal(read(tmp_path / f"d{kind}").matrix, [[1], [2]])


@settings(derandomize=True, deadline=None, max_examples=150)
@given(
    kind=st.sampled_from([".csv", ".csv.gz", ".npy", ".npz", ".mtx", ".mtx.gz"]),
    where=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=4),
    byte=st.sampled_from(b'\0\n\r 09-.,"en\x80\xff'),
    keep=st.floats(0.2, 1),
)
def test_a_damaged_file_is_read_or_is_one_line(tmp_path_factory, kind, where, byte, keep):
    path = tmp_path_factory.mktemp("damaged") / f"m{kind}"
    matrix = np.arange(12.0).reshape(4, 3) ** 2
    if kind == ".npy":
        np.save(path, matrix)
    elif kind == ".npz":
        np.savez_compressed(path, X=matrix)
    else:
        text = io.BytesIO()
        if kind.startswith(".csv"):
            np.savetxt(text, matrix, delimiter=",", header="a,b,c", comments="")
        else:
            scipy.io.mmwrite(text, scipy.sparse.coo_array(matrix))
        path.write_bytes((gzip.compress if kind.endswith(".gz") else bytes)(text.getvalue()))
    damaged = bytearray(path.read_bytes())
    for place in where:
        damaged[int(place * len(damaged))] = byte
    path.write_bytes(damaged[: int(keep * len(damaged))])
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(["info", str(path)])
    if status == 2:
        assert err.getvalue().startswith("spcacore: error: ")
        assert err.getvalue().count("\n") == 1
    assert bool(out.getvalue()) == (status == 0)


def test_a_file_name_as_the_command_gets_the_right_advice(run):
    assert "unknown command 'data.csv'; to analyse a file: spcacore fit data.csv" in one_error_line(
        run("data.csv")
    )
    assert "arguments are required: FILE" in one_error_line(run("fit"))
    assert "unrecognized arguments: --nonsense; see spcacore --help" in one_error_line(run("--nonsense"))
    line = one_error_line(run("info", "data.csv", "--scale"))
    assert "unrecognized arguments: --scale; see spcacore info --help" in line


@pytest.mark.parametrize("argv", [["fit", "missing.csv"], ["certify", "-k0"]])
def test_without_a_stderr_errors_do_not_go_to_stdout(monkeypatch, capsys, argv):
    monkeypatch.setattr(sys, "stderr", None)
    assert cli.main(argv) == 2
    assert capsys.readouterr().out == ""


def test_nothing_in_a_file_reaches_the_terminal_as_a_command(run, tmp_path):
    path = tmp_path / "m.npz"
    np.savez(path, **{"\x1b[31mred": np.eye(3), "b\u202e": np.eye(2)})
    assert "choose one with --array: ?[31mred 3x3, b? 2x2" in one_error_line(run("fit", path))
    np.savez(path, **{"\x1b[31mred": np.eye(3)})
    out = run("info", path)[1]
    assert "?[31mred 3x3" in out
    assert "\x1b" not in out


def test_the_file_of_the_names_is_not_written_over(run, tmp_path, X):
    path, names = saved(tmp_path / "m.npy", X), tmp_path / "names.csv"
    names.write_text("\n".join("abcdefghijkl"))
    line = one_error_line(run("fit", path, "--names", names, "-o", names))
    assert "names.csv: it is the file of the names" in line
    assert one_error_line(run("path", path, "--names", names, "-o", names)) == line
    assert names.read_text() == "\n".join("abcdefghijkl")


def test_too_little_memory_is_one_line(run, tmp_path, X, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(fit, "sparse_pca", fail)
    assert "not enough memory" in one_error_line(run("fit", saved(tmp_path / "m.npy", X)))


# ---- progress, interruption, pipes ------------------------------------------------------------------


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def slow_clock(monkeypatch):
    """Each look at the clock takes a second."""
    ticks = iter(range(10**9))
    monkeypatch.setattr(time, "perf_counter", lambda: float(next(ticks)))


def test_progress_on_a_terminal_is_one_line_that_goes_away(run, tmp_path, X, slow_clock, monkeypatch):
    path = saved(tmp_path / "m.npy", X)
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert run("fit", path, *OPTIONS)[0] == 0
    shown = sys.stderr.getvalue()
    lines = shown.split("\r")
    assert "\n" not in shown
    assert re.fullmatch(r"component 1 of 3, iteration \d+, \d+ s *", lines[1])
    assert re.fullmatch(r"component 3 of 3, iteration \d+, \d+ s *", lines[-3])
    assert lines[-2].isspace()
    assert len(lines[-2]) >= len(lines[-3].rstrip())
    assert lines[-1] == ""
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert run("fit", path, *OPTIONS, "-q")[0] == 0
    assert sys.stderr.getvalue() == ""


def test_progress_elsewhere_is_a_line_now_and_then(run, tmp_path, X, slow_clock):
    err = run("fit", saved(tmp_path / "m.npy", X), "-n", "12", "-k", "5")[2].splitlines()
    assert len(err) >= 2
    for line in err:
        assert re.fullmatch(r"spcacore: component \d+ of 12, iteration \d+, \d+ s", line)
    seconds = [int(line.split()[-2]) for line in err]
    assert min(np.diff(seconds)) >= 5


def test_quick_work_shows_no_progress(run, tmp_path, X, monkeypatch):
    monkeypatch.setattr(sys, "stderr", Terminal())
    assert run("fit", saved(tmp_path / "m.npy", X), *OPTIONS)[0] == 0
    assert sys.stderr.getvalue() == ""


@pytest.mark.usefixtures("interruptible")
def test_interrupt_ends_long_work(tmp_path):
    path = tmp_path / "m.npy"
    np.save(path, np.random.default_rng(0).standard_normal((1500, 3000), dtype=np.float32))
    argv = [*COMMAND, "fit", path, "-n", "500", "-k", "300", "-o", tmp_path / "r.npz"]
    with subprocess.Popen(
        argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path
    ) as process:
        try:
            line = process.stderr.readline()  # a second after it has begun
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=60)
        finally:
            process.kill()
    assert re.fullmatch(r"spcacore: component \d+ of 500, iteration \d+, \d+ s\n", line)
    assert (process.returncode, out) == (130, "")
    assert err.splitlines()[-1] == "spcacore: interrupted"
    assert "Traceback" not in err
    assert not (tmp_path / "r.npz").exists()


@pytest.fixture(params=["buffered", "unbuffered"])
def environment(request):
    """With and without buffers, in which output waits until the command is about to exit."""
    others = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return others | ({"PYTHONUNBUFFERED": "1"} if request.param == "unbuffered" else {})


@pytest.mark.parametrize("argv", [[], ["fit", "m.npy", "-o", "r.npz"], ["--version"]])
def test_broken_pipe_is_silent_and_results_are_written(tmp_path, X, argv, environment):
    np.save(tmp_path / "m.npy", X)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, *argv], stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path, env=environment
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    if "-o" in argv:
        assert_same(results(tmp_path / "r.npz"), spcacore.sparse_pca(X, 5, cardinality=10))


def test_a_full_disk_on_stdout_is_one_line(tmp_path, environment):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            COMMAND, stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, text=True, env=environment
        )
    assert done.returncode == 2
    assert done.stderr == "spcacore: error: cannot write to the standard output: No space left on device\n"


def test_the_installed_command(tmp_path, X):
    np.save(tmp_path / "m.npy", X)
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    (tmp_path / "n.txt").write_text("\n".join(f"größe{j}" for j in range(12)), encoding="utf-8")
    argv = ["fit", "m.npy", "--names", "n.txt", "-n1", "-k3"]
    done = subprocess.run([*COMMAND, *argv], capture_output=True, cwd=tmp_path, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "gr\\xf6\\xdfe" in done.stdout
    done = subprocess.run([*COMMAND, "fit", "no.csv"], capture_output=True, cwd=tmp_path, text=True)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "spcacore: error: cannot read no.csv: No such file or directory\n"


def test_every_option_has_a_help_text():
    def lacking(parser, command):
        for action in parser._actions:
            for name, subparser in (action.choices or {}).items() if action.nargs == "A..." else ():
                yield from lacking(subparser, f"{command} {name}")
            if not action.help and action.nargs != "A...":
                yield command, action.dest

    parser = arguments.make_parser()
    assert not list(lacking(parser, "spcacore"))
    assert any(action.nargs == "A..." for action in parser._actions)
