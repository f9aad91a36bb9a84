"""Files as matrices: text in every layout, arrays, stores, pipes; and what is said of bad ones."""

import contextlib
import csv
import gzip
import io
import os
import sys
import threading
import zipfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from cli_tools import one_error_line, read, read_and_told
from hypothesis import strategies as st
from in_turn import of_examples
from numpy.testing import assert_array_equal
from oracles import normal

from spcacore import cli
from spcacore.cli.reading import number

P = 12  # columns of X
AB = ("a", "b")
TWO = [[1, 2], [3, 5]]


@pytest.mark.parametrize(
    ("text", "argv", "matrix", "names", "row_names", "told"),
    [
        # headers and row names
        ("1,2\n3,4\n5,7\n", (), [[1, 2], [3, 4], [5, 7]], None, None, ""),
        ("1,2.5\n3,5\n", (), [[1, 2.5], [3, 5]], None, None, ""),
        ("a,b\n1,2\n3,5\n", (), TWO, AB, None, ""),
        ("id,a,b\ns,1,2\nt,3,5\n", (), TWO, AB, ("s", "t"), ""),
        ("2001,2002\ns,1,2\nt,3,5\n", (), TWO, ("2001", "2002"), ("s", "t"), ""),
        (",a,b\n1,7,2\n2,3,5\n", (), [[7, 2], [3, 5]], AB, ("1", "2"), ""),
        (",0,1\n0,7.5,2\n1,3,5\n", (), [[7.5, 2], [3, 5]], ("0", "1"), ("0", "1"), ""),
        ("1,2_0\n3,5\n", (), [[3, 5]], ("1", "2_0"), None, ""),
        ("a\n1\n2\n", (), [[1], [2]], ("a",), None, ""),
        ("a,b\nTrue,2\nFALSE,5\n", (), [[1, 2], [0, 5]], AB, None, ""),
        ("1,2\n3,5\n", ("--header",), [[3, 5]], ("1", "2"), None, ""),
        ("1,2\n3,5\n", ("--row-names",), [[2], [5]], None, ("1", "3"), ""),
        ("1,2\n3,4,5\n", ("--header", "--row-names"), [[4, 5]], ("1", "2"), ("3",), ""),
        ('"a,1";"b ""q"""\n"1";2\n3;5\n', (), TWO, ("a,1", 'b "q"'), None, ""),
        ('a,"b\nc"\n1,2\n3,5\n', (), TWO, ("a", "b\nc"), None, ""),
        ("\n \na,b\r\n\r\n1,2\r\n3,5", (), TWO, AB, None, ""),
        ("\ufeffa,b\n1,2\n3,5\n", (), TWO, AB, None, ""),
        (" 1 , -2e-3\n+3.,.5\n", (), [[1, -0.002], [3, 0.5]], None, None, ""),
        ("day,a\n2020-01-01,5\n2020-01-02,7\n", (), [[5], [7]], ("a",), ("2020-01-01", "2020-01-02"), ""),
        ("a,b\n1,2,\n3,5,\n", (), TWO, AB, None, ""),
        ("a,b,\n1,2\n3,5\n", (), TWO, AB, None, ""),
        ("a,b,\n1,2,\n3,5,\n", (), TWO, AB, None, ""),
        # other marks
        ('a,b\n"10,500",870\n"1,234.5",2\n', ("--thousands", ","), [[10500, 870], [1234.5, 2]], AB, None, ""),
        ("a;b\n10.500;870\n1.234,5;2\n", ("--thousands", ".", "--decimal", ","),
         [[10500, 870], [1234.5, 2]], AB, None, ""),
        ("a\tb\n10 500\t1\n-2\u00a0000\t3\n", ("--thousands", " "), [[10500, 1], [-2000, 3]], AB, None, ""),
        ("a;b\n12,34,567;9\n2;3\n", ("--thousands", ","), [[1234567, 9], [2, 3]], AB, None, ""),
        ("a;b\n1,5;2\n-0,25;3e2\n", ("--decimal", ","), [[1.5, 2], [-0.25, 300]], AB, None, ""),
        ("1,5\t2,5\n3\t,5\n", ("--decimal", ","), [[1.5, 2.5], [3, 0.5]], None, None, ""),
        ('a,b\n"1,5",2\n"-0,25",3e2\n', ("--decimal", ","), [[1.5, 2], [-0.25, 300]], AB, None, ""),
        ('"a","b"\n"1,5","2,5"\n3,",5"\n', ("--decimal", ","), [[1.5, 2.5], [3, 0.5]], AB, None, ""),
        ('"1,5"\n"2,5"\n', ("--decimal", ","), [[1.5], [2.5]], None, None, ""),
        ("a|b\n1.5|2\n", ("--delimiter", "|"), [[1.5, 2]], AB, None, ""),
        ("x,y\t2\n3\t4\n", ("--delimiter", "tab", "--header"), [[3, 4]], ("x,y", "2"), None, ""),
        # columns of words
        ("a,site,b\n1,north,2\n3,south,5\n", (), TWO, AB, None, "'site' ('north'); --index-column"),
        ("1,x,2.5\n3,y,5\n", (), [[1, 2.5], [3, 5]], None, None, "'2' ('x')"),
        ("a,site,b\n1,north,2\n3,south,5\n", ("--drop", "2,b"), [[1], [3]], ("a",), None, ""),
        ("a,site,b\n1,north,2\n3,south,5\n", ("--index-column", "site"), TWO, AB, ("north", "south"), ""),
        ("a,room\n1,2\n2,7\n3,oops\n", ("--drop", "room"), [[1], [2], [3]], ("a",), None, ""),
        ("a,ok\n1,True\n2,False\n3,\n", (), [[1, 1], [2, 0], [3, np.nan]], ("a", "ok"), None,
         "1 missing entry, left out by the method"),
        # a first column of numbers
        ("id,a\n1,5\n2,7\n3,1\n", (), [[1, 5], [2, 7], [3, 1]], ("id", "a"), None, ""),
        ("id,a\n1,5\n2,7\n3,1\n", ("--row-names",), [[5], [7], [1]], ("a",), ("1", "2", "3"), ""),
        # comments
        ("# by\nID\ts1\ts2\ng1\t1\t2\ng2\t3\t5\n", ("--comment", "#"), TWO, ("s1", "s2"), ("g1", "g2"), ""),
        ("#ID\ts1\ts2\ng1\t1\t2\ng2\t3\t5\n", (), TWO, ("s1", "s2"), ("g1", "g2"), ""),
        ("a;b\n% a comment\n1;2 % another\n", ("--comment", "%"), [[1, 2]], AB, None, ""),
    ],
)  # fmt: skip
def test_text(tmp_path, monkeypatch, text, argv, matrix, names, row_names, told):
    monkeypatch.chdir(tmp_path)
    Path("m.csv").write_text(text, encoding="utf-8", newline="")
    table, notes = read_and_told("m.csv", *argv)
    assert_array_equal(table.matrix, np.array(matrix, float))
    assert (table.names, table.row_names) == (names, row_names)
    assert told in notes
    assert bool(told) == bool(notes)


SPELLED = "#N/A|#DIV/0!|<NA>|\\N|1.#QNAN|N.A.|NaT|(null)|NULL|None|?|-|..|-1.#IND|-nan|n/a|--|missing|| | NA "


def test_spellings_of_missing(tmp_path):
    words = SPELLED.split("|")
    (tmp_path / "m.csv").write_text("a,b\n1.5,2\n" + "".join(f"{word},{word}\n" for word in words) + "5,7\n")
    matrix = read(tmp_path / "m.csv").matrix
    assert_array_equal(matrix, [[1.5, 2], *[[np.nan, np.nan]] * len(words), [5, 7]])


label = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\ufeff"), min_size=1, max_size=8).filter(
    lambda text: (
        number(text) is None and text.strip() == text and text[0] not in "#$€£%" and text[-1] not in "€£%$"
    )
)
numbers = st.floats(allow_nan=False, allow_infinity=False)


@of_examples(60, st.data())
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
    assert_array_equal(table.matrix, np.array(matrix))
    assert (table.names, table.row_names) == (names, row_names)


# ---- arrays and stores ------------------------------------------------------------------------------


def packed_mtx(path, matrix):
    text = io.BytesIO()
    scipy.io.mmwrite(text, matrix, precision=17)
    path.write_bytes(gzip.compress(text.getvalue()))


@pytest.mark.parametrize(
    ("name", "write", "argv"),
    [
        ("m.csv", lambda path, X: np.savetxt(path, X, delimiter=",", fmt="%.17g"), ()),
        ("m.dat", lambda path, X: np.savetxt(path, X, delimiter="\t", fmt="%.17g"), ("--format", "tsv")),
        ("with.dots.npy", np.save, ()),
        ("any.name", lambda path, X: path.write_bytes(packed(np.save, X)), ("--format", "npy")),
        ("only.npz", lambda path, X: np.savez(path, whatever=X, labels=np.arange(7)), ()),
        ("called_X.npz", lambda path, X: np.savez_compressed(path, X=X, other=X[:4]), ()),
        ("chosen.npz", lambda path, X: np.savez(path, a=X[:10], b=X), ("--array", "b")),
        ("dense.mtx", lambda path, X: scipy.io.mmwrite(path, X, precision=17), ()),
        ("turned.npy", lambda path, X: np.save(path, X.T), ("--orientation", "columns")),
    ],
)
def test_dense_formats(tmp_path, X, name, write, argv):
    write(tmp_path / name, X)
    assert_array_equal(read(tmp_path / name, *argv).matrix, X)


@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr", "dia"])
@pytest.mark.parametrize("kind", ["npz", "mtx", "mtx.gz"])
def test_sparse_formats(tmp_path, counts, form, kind):
    path, matrix = tmp_path / f"m.{kind}", counts.asformat(form)
    if kind == "npz":
        scipy.sparse.save_npz(path, matrix)
    else:
        scipy.io.mmwrite(path, matrix, precision=17) if kind == "mtx" else packed_mtx(path, matrix)
    found = read(path).matrix
    assert found.format == ("csc" if (form, kind) == ("csc", "npz") else "csr")
    assert_array_equal(found.toarray(), counts.toarray())


def test_words_in_an_npz_are_names(tmp_path, X):
    genes, patients = [f"gene {j}" for j in range(12)], [f"patient {i}" for i in range(30)]
    np.savez(tmp_path / "m.npz", X=X, genes=genes, patients=patients, n=3)
    table = read(tmp_path / "m.npz")
    assert (table.names, table.row_names) == (tuple(genes), tuple(patients))
    table = read(tmp_path / "m.npz", "--orientation", "columns")
    assert (table.names, table.row_names) == (tuple(patients), tuple(genes))


def test_names_of_10x(tmp_path, X):
    """Identifier, symbol and kind of each gene, of which the symbol is the name."""
    lines = [f"ENSG{j:05d}\tgene{j}\tGene Expression\n" for j in range(12)]
    (tmp_path / "features.tsv.gz").write_bytes(gzip.compress("".join(lines).encode()))
    np.save(tmp_path / "m.npy", X)
    table = read(tmp_path / "m.npy", "--names", tmp_path / "features.tsv.gz")
    assert table.names == tuple(f"gene{j}" for j in range(12))
    (tmp_path / "n.txt").write_bytes("\r\n".join(f"größe {j}" for j in range(12)).encode("utf-8-sig"))
    assert read(tmp_path / "m.npy", "--names", tmp_path / "n.txt").names[1] == "größe 1"


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.uint8, np.bool_])
def test_parquet(tmp_path, X, dtype):
    pandas = pytest.importorskip("pandas", reason="pandas writes the file")
    pytest.importorskip("pyarrow", reason="pyarrow reads the file")
    data = (X * 4 > 3) if dtype is np.bool_ else np.abs(X * 4).astype(dtype)
    names, patients = [f"v{j}" for j in range(P)], [f"p{i}" for i in range(30)]
    for index, columns in ((None, {}), (patients, {}), (None, {"who": patients})):
        frame = pandas.DataFrame(data, index, names)
        for place, (name, column) in enumerate(columns.items()):
            frame.insert(place, name, column)
        frame.to_parquet(tmp_path / "m.parquet")
        table = read(tmp_path / "m.parquet")
        assert_array_equal(table.matrix, data.astype(np.float64))
        assert table.names == tuple(names)
        assert table.row_names == (tuple(patients) if index or columns else None)
    frame.assign(day=pandas.Timestamp(0)).to_parquet(tmp_path / "m.parquet")
    assert "left out 1 column" in read_and_told(tmp_path / "m.parquet")[1]


@pytest.mark.share(6)
@pytest.mark.filterwarnings("ignore")  # of anndata
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csc_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_h5ad(run, tmp_path, X, form, dtype):
    anndata = pytest.importorskip("anndata", reason="anndata writes and reads the file")
    data = np.where(np.abs(X) > 1, X * 4, 0).astype(dtype)
    file, raw = anndata.AnnData(form(data)), anndata.AnnData(form(data[:, ::-1].copy()))
    file.var_names, raw.var_names = ([f"{name}{j}" for j in range(P)] for name in ("gene", "raw"))
    file.obs_names = [f"cell{i}" for i in range(30)]
    file.layers["counts"], file.raw = form(data * 2), raw
    file.write_h5ad(tmp_path / "m.h5ad")
    for array, matrix, gene in (
        (None, data, "gene"),
        ("counts", data * 2, "gene"),
        ("raw", data[:, ::-1], "raw"),
    ):
        table = read(tmp_path / "m.h5ad", *(["--array", array] if array else []))
        found = table.matrix if form is np.asarray else table.matrix.toarray()
        assert_array_equal(found, matrix)
        assert (table.names[3], table.row_names[7]) == (f"{gene}3", "cell7")
    error = one_error_line(run("fit", tmp_path / "m.h5ad", "--array", "spliced"))
    assert "m.h5ad has no matrix 'spliced'; --array chooses among: X, counts, raw" in error


# ---- pipes ------------------------------------------------------------------------------------------


def packed(save, *args):
    stream = io.BytesIO()
    save(stream, *args)
    return stream.getvalue()


def test_the_standard_input_in_each_format(run, X, monkeypatch):
    text = "\n".join(",".join(map(repr, row)) for row in X.tolist()).encode()
    for data, argv in [
        (text, []), (text.replace(b",", b"\t"), ["--format", "tsv"]),
        (packed(np.save, X), ["--format", "npy"]), (packed(np.savez, X), ["--format", "npz"]),
    ]:  # fmt: skip
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data), isatty=lambda: False))
        assert_array_equal(read("-", *argv).matrix, X)
    for data, argv, words in [
        (b"", [], "standard input is empty"),
        (b"1,2\n3,x\n", [], "standard input: row 2, column '2'"),
        (b"1,2\n3,4\n", ["--format", "npz"], "cannot read -: File is not a zip file"),
    ]:
        monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(data), isatty=lambda: False))
        assert words in one_error_line(run("fit", "-", *argv))
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(isatty=lambda: True))
    assert "nothing is piped" in one_error_line(run("info", "-"))


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
    X = np.tile(X, (70, 1)) + 1e-3 * normal(0, 2100, 12)
    text = "\n".join(",".join(map(repr, row)) for row in X.tolist()).encode()
    for data, kind in ((text, "csv"), (packed(np.save, X), "npy")):
        assert as_json("info", pipe(data), "--format", kind)["samples"] == 2100
    path = tmp_path / "m.npy"
    np.save(path, X)
    names = "\n".join(f"{'n' * 400}{j}" for j in range(12)).encode()
    found = as_json("fit", path, "-n1", "-k1", "--names", pipe(names))
    assert found["names"] == names.decode().splitlines()
    run("fit", path, "-n2", "-k3", "--names", pipe(names), "-o", tmp_path / "l.csv")
    argv = ["compare", path, "--loadings", pipe((tmp_path / "l.csv").read_bytes()), "--names", pipe(names)]
    assert len(as_json(*argv)["components"]) == 2


# ---- what is wrong ----------------------------------------------------------------------------------

BAD_TEXT = [
    ("", (), "m.csv is empty"),
    ("a,b\n", (), "has a header but no rows"),
    ("s\nt\n", ("--no-header",), "m.csv has no column of numbers, but of words: '1' ('s'); --header"),
    ("1,2,3\n4,5,6\n\n7,8,9,10\n", (), "m.csv: Expected 3 fields in line 4, saw 4; --comment says how"),
    ("a,b\n1,2,3,4\n", (), "m.csv: Length of header or names does not match length of data; --comment says"),
    ("a,b\n1,2,\n3,5,7\n", (), "m.csv: Length of header or names does not match"),
    ("!made,by\na,b,c\n1,2,3\n", (), "row 1, column '!made' is not a number: 'b'"),
    ('a,b\n1,2\n3,"4\n', (), "m.csv: EOF inside string"),
    ("a,b\n1,2\n3,oops\n", (), "row 2, column 'b' is not a number: 'oops'; correct it, or leave the "),
    ("a,room\n1,4b\n2,7\n3,9c\n", (), "row 1, column 'room' is not a number: '4b'; correct it, or leave"),
    ("1.5,oops,3\n4,5,6\n", (), "row 1, column '2' is not a number: 'oops'; correct it, or leave"),
    ("1,2\nb2,4\n", (), "row 2, column '1' is not a number: 'b2'; correct it, or leave the column out by --"),
    ("a,b\n$1,2\n$3,4\n", (), "row 1, column 'a' is not a number: '$1'; correct it, or leave"),
    ("a b\n1 2\n", (), "column 'a b' is not a number: '1 2'; correct"),
    ("a;b\n1,5;2\n", (), "column 'a' is not a number: '1,5'; "),
    ("a\tb\n10,500\t870\n", (), "--decimal and --thousands say how numbers are written"),
    ("a;b\n1.234.567;1\n", ("--decimal", ","), "row 1, column 'a' is not a number: '1.234.567'"),
    ("a;b\n1,5;1\n", ("--thousands", ","), "'1,5'"),
    ("a,b\n1,\n2,3\n5,1\n", ("--method", "greedy"), "replace or drop it; NaN is missing for sparse_pca"),
    ("a,b\n1,\n3,NA\n4,nan\n", (), "column 2 of m.csv has only NaN entries"),
    ("a,b\n1,2\n-inf,3\n", (), "the first in row 2, column 1; replace or drop it"),
    ("id,a,b\n\ns,1,2\nt,1e300,4\n", ("--float32",), "the first in row 2, column 1; replace or drop it"),
    ("1,2\n", ("--thousands", "."), "argument --thousands: '.' is the decimal mark"),
    ("1,2\n", ("--decimal", ",", "--delimiter", ","), "argument --delimiter: ',' is the decimal mark"),
    ("1,2\n", ("--delimiter", "ab"), '"delimiter" must be a 1-character string'),
    ("1,2\n", ("--drop", "b"), "argument --drop: m.csv has no column 'b'"),
    ("1,2\n", ("--index-column", "3"), "argument --index-column: m.csv has no column '3'"),
    ("1,2\n3,4\n", ("--array", "X"), "--array: m.csv is not .npz or .h5ad"),
    ("1,2,3\n4,5,6\n", ("--covariance",), "m.csv: a covariance must be square, not of shape (2, 3)"),
    ("1,2\n3,4\n", ("--names", "no.txt"), "cannot read no.txt: No such file"),
    ("1,2\n3,4\n5,6\n", ("--names", "m.csv"), "--names: m.csv has 3 names for 2 variables"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "argv", "words"), BAD_TEXT)
def test_bad_text(run, tmp_path, monkeypatch, text, argv, words):
    monkeypatch.chdir(tmp_path)
    Path("m.csv").write_text(text)
    assert words in one_error_line(run("fit", "m.csv", *argv))
    assert os.listdir() == ["m.csv"]


def raw(content):
    return lambda path: path.write_bytes(content)


def npy(array):
    return lambda path: np.save(path, array, allow_pickle=True)


def npz(**arrays):
    return lambda path: np.savez(path, **arrays)


def sparse(matrix, index=1):
    matrix = scipy.sparse.csr_array(matrix)
    matrix.indices[1] = index  # scipy saves and loads any
    return lambda path: scipy.sparse.save_npz(path, matrix)


def with_entry(value):
    a = normal(0, 5, 4)
    a[2, 1] = value
    return a


def misnamed(path):
    """An archive that names its member otherwise, in a thousand letters, in its table of contents."""
    name = "n" * 1000
    with zipfile.ZipFile(path, "w") as file:
        file.writestr(name, b"")
    path.write_bytes(path.read_bytes().replace(name.encode(), b"X.npy" + b"\x80" * 995, 1))


MTX = b"%%MatrixMarket matrix coordinate real general\n2 2 1\n"
PICKLED = np.array([[{}]])


@pytest.mark.parametrize(
    ("name", "write", "argv", "words"),
    [
        ("missing.csv", None, (), "cannot read missing.csv: No such file or directory"),
        ("dir.csv", Path.mkdir, (), "cannot read dir.csv: Is a directory"),
        ("m.txt", raw(b""), (), "m.txt: unknown extension; .csv, .tsv, .npy, .npz, .mtx, .parquet and .h5ad"),
        ("m.npy", raw(b""), (), "cannot read m.npy: "),
        ("m.h5ad", raw(b"\x89HDF\r\n\x1a\n" + b"junk" * 50), (), "m.h5ad"),
        ("m.parquet", raw(b"PAR1junkPAR1"), (), "m.parquet"),
        ("m.mtx", raw(MTX + b"5 1 3\n"), (), "cannot read m.mtx: "),
        ("m.mtx", raw(MTX + b"1 1 3\0 4\n"), (), "cannot read m.mtx: it has a NUL"),
        ("m.csv", raw(b"a,b\n\xe9,2\n"), (), "m.csv: not UTF-8 text"),
        ("m.csv.gz", raw(gzip.compress(b"1,2\n" * 99)[:-9]), (), "cannot read m.csv.gz: "),
        ("m.npy", raw(b"junk" * 50), (), "cannot read m.npy: the magic string"),
        ("m.npy", npy(PICKLED), (), "cannot read m.npy: Array can't be memory-mapped: Python objects"),
        ("m.pkl", raw(b""), (), "m.pkl: unknown extension"),
        ("m.npz", npz(X=PICKLED, Y=np.ones(2)), ("--array", "X"), "cannot read m.npz: Object arrays cannot"),
        ("m.npz", npz(format=PICKLED, shape=1, data=1), (), "cannot read m.npz: Object arrays cannot"),
        ("m.npz", npz(X=np.eye(3), Y=np.eye(2)), ("--array", "Z"), "no matrix 'Z'; --array chooses among: X"),
        ("m.npz", npz(A=np.eye(3), B=np.eye(2)), (), "no matrix 'X'; --array chooses among: A, B"),
        ("m.npz", npz(**{"\x1b[31mred": np.eye(3), "b\u202e": np.eye(2)}), (), "among: ?[31mred, b?"),
        ("m.npz", sparse(np.eye(3), 900), (), "cannot read m.npz: "),
        ("m.npz", misnamed, (), "cannot read m.npz: File name in directory 'nnn"),
        ("m.npy", npy(np.ones(3)), (), "a matrix that is not empty is needed, not an array of shape (3,)"),
        ("m.npz", npz(X=np.ones((0, 4))), (), "not an array of shape (0, 4)"),
        ("m.npy", npy(np.eye(3) * 1j), (), "m.npy: real numbers are needed, not dtype complex128"),
        ("m.npy", npy(np.eye(3)), ("--header",), "--header: m.npy is not .csv or .tsv"),
        ("m.npy", npy(with_entry(np.inf)), ("--orientation", "columns"), "the first in row 2, column 3"),
        ("m.npz", sparse(with_entry(np.nan)), (), "has 1 entry that is NaN or infinite"),
    ],
)  # fmt: skip
def test_bad_files(run, tmp_path, monkeypatch, name, write, argv, words):
    monkeypatch.chdir(tmp_path)
    if write is not None:
        write(Path(name))
    line = one_error_line(run("fit", name, "-n1", "-k1", *argv))
    assert words in line
    assert len(line) < 300


@pytest.mark.parametrize(("name", "package"), [("m.h5ad", "anndata"), ("m.parquet", "pyarrow")])
def test_packages_that_are_not_installed(run, tmp_path, monkeypatch, name, package):
    monkeypatch.setitem(sys.modules, package, None)
    (tmp_path / name).write_bytes(b"")
    assert f"needs {package}; pip install {package}" in one_error_line(run("fit", tmp_path / name))


@pytest.mark.parametrize("end", ["", " ", "\r", "\t ", "\n", "\r\n", "\n \n"])
def test_the_last_line_of_matrix_market_may_end_in_any_way(tmp_path, end):
    """SciPy alone reads on beyond its memory after a space that no line end follows."""
    (tmp_path / "a.mtx").write_bytes(MTX + b"2 1 3.5" + end.encode())
    assert_array_equal(read(tmp_path / "a.mtx").matrix.toarray(), [[0, 0], [3.5, 0]])


@of_examples(
    100,
    kind=st.sampled_from([".csv", ".csv.gz", ".npy", ".npz", ".mtx", ".mtx.gz"]),
    where=st.lists(st.floats(0, 1, exclude_max=True), min_size=1, max_size=4),
    byte=st.sampled_from(b'\0\n\r 09-.,"en\x80\xff'),
    keep=st.floats(0.2, 1),
)
def test_a_damaged_file_is_read_or_is_one_line(tmp_path_factory, kind, where, byte, keep):
    path = tmp_path_factory.mktemp("damaged") / f"m{kind}"
    matrix, text = np.arange(12.0).reshape(4, 3) ** 2, io.BytesIO()
    if kind.startswith(".csv"):
        np.savetxt(text, matrix, delimiter=",", header="a,b,c", comments="")
    elif kind.startswith(".mtx"):
        scipy.io.mmwrite(text, scipy.sparse.coo_array(matrix))
    else:
        (np.save if kind == ".npy" else np.savez_compressed)(text, matrix)
    damaged = bytearray((gzip.compress if kind.endswith(".gz") else bytes)(text.getvalue()))
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
