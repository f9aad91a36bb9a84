"""The standard input, other marks in text, missing entries, and files that appear whole or not at all."""

import contextlib
import io
import os
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse
from cli_tools import COMMAND, one_error_line, read, results, saved

import spcacore
from spcacore.cli import report

P = 12  # columns of X


def piped(monkeypatch, data):
    """These bytes on the standard input."""
    stream = SimpleNamespace(buffer=io.BytesIO(data), isatty=lambda: False)
    monkeypatch.setattr(sys, "stdin", stream)


def packed(save, *args):
    stream = io.BytesIO()
    save(stream, *args)
    return stream.getvalue()


def test_the_standard_input_in_each_format(run, tmp_path, X, monkeypatch):
    text = "\n".join(",".join(map(repr, row)) for row in X.tolist()).encode()
    expected = spcacore.sparse_pca(X, 2, cardinality=3)
    for data, argv in [
        (text, []),
        (text.replace(b",", b"\t"), ["--format", "tsv"]),
        (packed(np.save, X), ["--format", "npy"]),
        (packed(np.savez, X), ["--format", "npz"]),
    ]:
        piped(monkeypatch, data)
        assert run("fit", "-", "-n2", "-k3", "-q", "-o", tmp_path / "r.npz", *argv) == (0, "", "")
        np.testing.assert_allclose(results(tmp_path / "r.npz")["loadings"], expected.loadings, atol=1e-12)


def test_compressed_text_on_the_standard_input(output, X, monkeypatch):
    import gzip

    piped(monkeypatch, gzip.compress("\n".join(",".join(map(str, row)) for row in X).encode()))
    out = output("fit", "-", "-n1", "-k3")
    assert "Sparse PCA of standard input: 30 samples, 12 variables" in out


def test_a_terminal_is_no_standard_input(run, monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    assert "nothing is piped" in one_error_line(run("info", "-"))


def test_bad_standard_input_is_named_as_such(run, monkeypatch):
    piped(monkeypatch, b"")
    assert "standard input is empty" in one_error_line(run("fit", "-"))
    piped(monkeypatch, b"1,2\n3,x\n")
    assert "standard input: line 2, column 2" in one_error_line(run("fit", "-"))
    piped(monkeypatch, b"1,2\n3,4\n")
    assert "standard input is not an .npz file" in one_error_line(run("fit", "-", "--format", "npz"))


def test_a_pipe_through_the_installed_command(tmp_path, X):
    np.savetxt(tmp_path / "m.csv", X, delimiter=",")
    done = subprocess.run(
        [*COMMAND, "info", "-", "--json"],
        input=(tmp_path / "m.csv").read_bytes(), capture_output=True, cwd=tmp_path, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stderr) == (0, b"")
    assert b'"samples": 30, "variables": 12' in done.stdout
    assert b'"bytes_on_disk": null' in done.stdout


@pytest.fixture
def pipe():
    """What a shell makes of <(..): a path that gives its bytes once."""
    with contextlib.ExitStack() as stack:

        def made(data):
            reader, writer = os.pipe()
            stack.callback(os.close, reader)
            thread = threading.Thread(target=write_all, args=(writer, data))
            thread.start()
            stack.callback(thread.join)
            return f"/dev/fd/{reader}"

        yield made


def write_all(descriptor, data):
    with open(descriptor, "wb") as file:
        file.write(data)


def test_a_pipe_gives_all_its_bytes_to_every_option_that_names_a_file(run, as_json, tmp_path, pipe, X):
    X = np.tile(X, (70, 1)) + 1e-3 * np.random.default_rng(0).standard_normal((2100, 12))
    text = "\n".join(",".join(map(repr, row)) for row in X.tolist()).encode()
    for data, argv in (
        (text, ()),
        (text.replace(b",", b"\t"), ("--format", "tsv")),
        (packed(np.save, X), ()),
    ):
        assert as_json("info", pipe(data), *argv)["samples"] == 2100
    (tmp_path / "m.csv").write_bytes(text)
    np.save(tmp_path / "m.npy", X)
    names = [f"{'n' * 400}{j}" for j in range(12)]
    groups = [f"{'g' * 400}{j % 3}" for j in range(12)]
    lines = {"names": names, "groups": groups}
    found = as_json(
        "fit", tmp_path / "m.npy", "-n1", "-k1",
        *(part for name, words in lines.items() for part in (f"--{name}", pipe("\n".join(words).encode()))),
    )  # fmt: skip
    expected = spcacore.sparse_pca(X, 1, cardinality=1, choice=spcacore.Choice(groups=groups))
    assert found["names"] == names
    chosen = [names[j] for j in np.flatnonzero(expected.loadings[:, 0])]
    assert [one["variable"] for one in found["result"]["components"][0]["loadings"]] == chosen
    labels = np.repeat(["aaaa", "bbbb"], 1050)
    np.save(tmp_path / "half.npy", X[:, :5])
    common = ["stability", tmp_path / "half.npy", "-n1", "-k2", "--resamples", "4"]
    piped_labels = pipe("\n".join(labels).encode())
    assert as_json(*common, "--method", "sparse_lda", "--labels", piped_labels)["components"]
    assert as_json(*common, "--method", "sparse_cca", "--other", pipe(text))["other_variables"] == 12
    for kind in ("csv", "npz"):
        path = tmp_path / f"l.{kind}"
        run("fit", tmp_path / "m.npy", "-n2", "-k3", "--names", pipe("\n".join(names).encode()), "-o", path)
        of_names = ["--names", pipe("\n".join(names).encode())]
        certified = as_json("certify", tmp_path / "m.npy", "--loadings", pipe(path.read_bytes()), *of_names)
        assert len(certified["components"]) == 2
        scored = as_json("transform", tmp_path / "m.npy", "--loadings", pipe(path.read_bytes()))
        assert len(scored["scores"]) == 2100


def test_the_format_of_a_file_with_another_name(run, tmp_path, X):
    path = tmp_path / "matrix.dat"
    np.savetxt(path, X, delimiter=",")
    assert "--format says what another name holds" in one_error_line(run("fit", path))
    np.testing.assert_allclose(read(path, "--format", "csv").matrix, X, rtol=1e-15)


@pytest.mark.parametrize(
    ("text", "argv", "expected", "names"),
    [
        ("a;b\n1,5;2\n-0,25;3e2\n", ["--decimal", ","], [[1.5, 2], [-0.25, 300]], ("a", "b")),
        ("1,5\t2\n3\t,5\n", ["--decimal", ","], [[1.5, 2], [3, 0.5]], None),
        ("a|b\n1.5|2\n", ["--delimiter", "|"], [[1.5, 2]], ("a", "b")),
        ("1.5:2\n3:4\n", ["--delimiter", ":"], [[1.5, 2], [3, 4]], None),
        ("x,y\t2\n3\t4\n", ["--delimiter", "tab", "--header"], [[3, 4]], ("x,y", "2")),
        ("v1.5;v2,5\n1;2\n", ["--decimal", ","], [[1, 2]], ("v1.5", "v2,5")),
    ],
)
def test_delimiters_and_decimals(tmp_path, text, argv, expected, names):
    (tmp_path / "m.csv").write_text(text)
    table = read(tmp_path / "m.csv", *argv)
    assert table.matrix.tolist() == expected
    assert table.names == names


def test_marks_of_text_for_other_files(run, tmp_path, X):
    path = saved(tmp_path / "m.npy", X)
    for argv in (["--decimal", ","], ["--delimiter", ";"]):
        assert "is neither .csv nor .tsv" in one_error_line(run("fit", path, *argv))


def with_holes(X):
    X = X.copy()
    X[[0, 3, 3, 17], [2, 2, 7, 11]] = np.nan
    return X


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("how", ["mean", "drop-rows", "drop-columns"])
def test_missing_entries(tmp_path, X, how, sparse):
    """Against NumPy: nanmean of the column, or what is complete."""
    holes = with_holes(np.where(abs(X) > 0.5, X, 0)) if sparse else with_holes(X)
    path = tmp_path / ("m.npz" if sparse else "m.npy")
    if sparse:
        scipy.sparse.save_npz(path, scipy.sparse.csc_matrix(holes))
    else:
        np.save(path, holes)
    expected = {
        "mean": np.where(np.isnan(holes), np.nanmean(holes, axis=0), holes),
        "drop-rows": holes[~np.isnan(holes).any(axis=1)],
        "drop-columns": holes[:, ~np.isnan(holes).any(axis=0)],
    }[how]
    found = read(path, "--impute", how).matrix
    np.testing.assert_allclose(found.toarray() if sparse else found, expected, rtol=1e-14)


def test_names_and_lines_go_with_what_is_left(run, tmp_path):
    (tmp_path / "m.csv").write_text("id,a,b,c\nr,1,2,3\ns,4,,6\nt,7,9,8\nu,1,5,2\n")
    rows = read(tmp_path / "m.csv", "--impute", "drop-rows")
    assert (rows.row_names, rows.names) == (("r", "t", "u"), ("a", "b", "c"))
    assert rows.cell(1, 0) == "line 4, column 2 ('a')"
    columns = read(tmp_path / "m.csv", "--impute", "drop-columns")
    assert (columns.row_names, columns.names) == (("r", "s", "t", "u"), ("a", "c"))
    status, out, err = run("fit", tmp_path / "m.csv", "--impute", "drop-rows", "-n1", "-k2")
    assert (status, err) == (0, "spcacore: note: 1 sample dropped, with 1 missing entry\n")
    assert "3 samples, 3 variables" in out
    err = run("fit", tmp_path / "m.csv", "--impute", "mean", "-n1", "-k2")[2]
    assert err == "spcacore: note: 1 missing entry of 1 variable replaced by means\n"


def test_a_file_is_whole_or_not_there(tmp_path):
    path = tmp_path / "out.csv"

    def fails(part):
        with open(part, "w") as file:
            file.write("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(report.UserError, match=r"cannot write .*out.csv: No space left on device"):
        report.write(str(path), fails)
    assert os.listdir(tmp_path) == []
    path.write_text("before")
    path.chmod(0o640)
    with pytest.raises(report.UserError):
        report.write(str(path), fails)
    assert path.read_text() == "before"
    (tmp_path / "link.csv").symlink_to(path)
    report.write(str(tmp_path / "link.csv"), lambda part: Path(part).write_text("a\n"))
    assert path.read_text() == "a\n"
    assert path.stat().st_mode & 0o777 == 0o640
    assert sorted(os.listdir(tmp_path)) == ["link.csv", "out.csv"]


def test_a_pipe_is_written_to(run, tmp_path, file):
    os.mkfifo(tmp_path / "pipe.csv")
    reader = os.open(tmp_path / "pipe.csv", os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert run("fit", file, "-n1", "-k3", "-q", "-o", tmp_path / "pipe.csv") == (0, "", "")
        assert os.read(reader, 100).startswith(b"variable,component_1,center,scale,kind\n")
    finally:
        os.close(reader)


def test_reading_a_large_file_tells_progress(run, tmp_path, slow_clock):
    (tmp_path / "m.csv").write_text("1.25,2.5\n" * 60_000)
    err = run("info", tmp_path / "m.csv")[2].splitlines()
    assert err[0].startswith("spcacore: read ")
    assert " % of 1 MB, " in err[0]
    shares = [int(line.split()[2]) for line in err]
    assert shares == sorted(shares)
    assert shares[-1] > 50


def test_other_methods_are_the_functions_of_that_name(run, output, tmp_path, X):
    path = saved(tmp_path / "m.npy", X)
    calls = {
        "spca": (["-k4"], spcacore.spca(X, 2, cardinality=4)),
        "sca": (["--l1-bound", "3"], spcacore.sca(X, 2, l1_bound=3)),
        "sma": (
            ["--l1-bound", "3", "--sample-l1-bound", "6"],
            spcacore.sma(X, 2, l1_bound=3, sample_l1_bound=6),
        ),
        "ppca": ([], spcacore.ppca(X, 2)),
        "oppca": (["--max-iter", "50"], spcacore.oppca(X, 2, max_iter=50)),
        "soppca": (["-k", "4,3"], spcacore.soppca(X, 2, [4, 3])),
    }
    for method, (argv, expected) in calls.items():
        files = ["-o", tmp_path / "r.npz", "--scores", tmp_path / "s.npz"]
        out = output("fit", path, "-n2", "--method", method, *argv, *files)
        assert "2 components" in out or "component" in out
        fields = results(tmp_path / "r.npz")
        np.testing.assert_array_equal(fields["loadings"], expected.loadings)
        np.testing.assert_array_equal(results(tmp_path / "s.npz")["scores"], expected.transform(X))
        run("transform", path, "--loadings", tmp_path / "r.npz", "-o", tmp_path / "t.npz")
        np.testing.assert_allclose(results(tmp_path / "t.npz")["scores"], expected.transform(X), atol=1e-11)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--method", "ppca", "-k3"], "-k/--cardinality: not for method ppca"),
        (["--method", "spca", "-k3", "--penalty", "1"], "--penalty: not with -k/--cardinality"),
        (["--method", "sca", "--l1-bound", "2,3"], "--l1-bound: must be a number, not [2.0, 3.0]"),
        (["--method", "sma", "--covariance"], "--covariance: not for method sma"),
        (["--method", "spca", "-n", "0.5"], "-n/--n-components: must be an integer, not 0.5"),
        (["--ridge", "1"], "--ridge: not for method tpower"),
        (["--method", "sca", "--ridge", "1"], "--ridge: not for method sca, but spca"),
    ],
)
def test_options_of_other_methods(run, tmp_path, X, argv, words):
    assert words in one_error_line(run("fit", saved(tmp_path / "m.npy", X), *argv))


def test_ppca_takes_missing_entries(output, tmp_path, X):
    path = saved(tmp_path / "m.npy", with_holes(X))
    output("fit", path, "--method", "ppca", "-n2", "-q", "-o", tmp_path / "r.npz")
    expected = spcacore.ppca(with_holes(X), 2).loadings
    np.testing.assert_array_equal(results(tmp_path / "r.npz")["loadings"], expected)
