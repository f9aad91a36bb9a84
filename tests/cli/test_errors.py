"""Bad files and arguments: one line that says what is wrong."""

import contextlib
import gzip
import io
import os
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from cli_tools import one_error_line, read, saved
from hypothesis import given, settings
from hypothesis import strategies as st
from in_turn import examples

from spcacore import cli
from spcacore.cli import task

P = 12  # columns of X


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
        ("1,2\n3,4\n", ("-k", "3"), "-k/--cardinality: must be in [1, 2], not 3: m.csv has 2 variables"),
        ("1,2\n3,4\n", ("-n", "3"), "-n/--n-components: must be in [1, 2], not 3: m.csv has 2 rows of 2"),
        ("1,2\n3,4\n", ("-n", "2", "-k", "1,1,1"), "-k/--cardinality: has 3 entries for 2 components"),
        ("1,2\n3,4\n", ("-k", "0"), "-k/--cardinality: must be in [1, 2], not 0"),
        ("1,2\n3,4\n", ("-k", "1,"), "-k/--cardinality: '' is not a whole number; see"),
        ("1,2\n3,4\n", ("--tol", "x"), "--tol: 'x' is not a number; see spcacore fit --help"),
        ("1,2\n3,4\n", ("--deflation", "none"), "--deflation: 'none' is not one of 'orthogonal', "),
        ("1,2\n3,4\n", ("--random-state=3",), "--random-state; do you mean --rng?; see"),
        ("1,2\n3,4\n", ("--ncomp", "2"), "--ncomp; do you mean -n?; see"),
        ("1,2\n3,4\n", ("--alpha", "1"), "--alpha; do you mean --penalty or -k?; see"),
        ("1,2\n3,4\n", ("--l1-bound", "1"), "--l1-bound: not for method tpower, which takes -k/"),
        ("a b\n1 2\n", (), "is not a number: '1 2'; commas, semicolons or tabs must separate cells"),
        ("a\noak\nelm\n", ("--header", "--no-row-names"), "is not a number: 'oak'"),
        ("a,b\n1,2\n3,oops\n", (), "is not a number: 'oops'; correct it, or leave the column out: --drop b"),
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
        ("1,2\n3,4\n", ("-o", "./m.csv"), "cannot write ./m.csv: it is the file to analyze"),
        ("1,2\n3,4\n", ("-o", "a.csv", "--scores", "./a.csv"), "it is named for both --output and --scores"),
        ("1,2\n3,4\n", ("-n1", "-k1", "-o", "full.csv"), "cannot write full.csv: No space left on device"),
        ("2,1\n1,2\n", ("--covariance", "--scores", "a.csv"), "--scores: a covariance has no samples"),
        ("1,2\n3,4\n", ("--names", "no.txt"), "cannot read no.txt: No such file"),
        ("1,2\n3,4\n5,6\n", ("--names", "m.csv"), "--names: m.csv has 3 names for 2 variables"),
        ("1.5;2\n3;4\n", ("--decimal", ","), "not a number: '1.5'; with --decimal , a number has no point"),
        ("1;2\n1.234,5;4\n", ("--decimal", ","), "not a number: '1.234,5'; with --decimal ,"),
        ("1,2\n", ("--thousands", "."), "argument --thousands: '.' is the decimal mark"),
        ("1;10,50\n2;3\n", ("--thousands", ","), "line 1, column 2 is not a number: '10,50'"),
        ("1,2\n", ("--drop", "b"), "argument --drop: m.csv has no column 'b'"),
        ("1,2\n", ("--index-column", "3"), "argument --index-column: m.csv has no column '3'"),
        ("!made,by,r\na,b\n1,2\n", (), "line 1 has 3; if ! begins a comment, say --comment '!'"),
        ("1,2\n", ("--decimal", ",", "--delimiter", ","), "a comma separates cells or decimals, not both"),
        ("1,2\n", ("--delimiter", "ab"), "--delimiter: 'ab' is not one character"),
        ("1,2\n", ("--delimiter", "1"), "--delimiter: '1' is not one character"),
        ("1,\n,2\n", ("--impute", "drop-rows"), "every sample has a missing entry"),
        ("1,\n,2\n", ("--impute", "drop-columns"), "every variable has a missing entry"),
        ("1,\n2,\n", ("--impute", "mean"), "variable x2 has no entry to take the mean of"),
        ("1,\n2,3\n", ("--impute", "mean", "--covariance"), "--impute: not with --covariance"),
        ("1,inf\n2,\n", ("--impute", "mean"), "line 1, column 2 is inf"),
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


def test_permission_is_checked_before_the_work(run, tmp_path, file, monkeypatch):
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(task, "read", None)
    assert "permission denied" in one_error_line(run("fit", file, "-o", tmp_path / "r.csv"))


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
        ("dir.csv", Path.mkdir, (), "cannot read dir.csv: it is a directory"),
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


@settings(derandomize=True, deadline=None, max_examples=examples(150))
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
    assert "unknown command 'data.csv'; to analyze a file: spcacore fit data.csv" in one_error_line(
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
    assert "names.csv: it is the file of --names" in line
    assert one_error_line(run("path", path, "--names", names, "-o", names)) == line
    assert names.read_text() == "\n".join("abcdefghijkl")


def test_too_little_memory_is_one_line(run, tmp_path, X, monkeypatch):
    def fail(*_, **__):
        raise MemoryError

    monkeypatch.setattr(task, "read", fail)
    assert "not enough memory" in one_error_line(run("fit", saved(tmp_path / "m.npy", X)))
