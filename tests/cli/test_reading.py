"""Files as matrices: arrays, text, headers and row names."""

import csv
import gzip
import importlib
import io

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from cli_tools import OPTIONS, api, assert_same, one_error_line, read, read_and_told, results
from hypothesis import given, settings
from hypothesis import strategies as st
from in_turn import examples

import spcacore
from spcacore.cli.text import number

P = 12  # columns of X


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
    lambda text: number(text) is None and text.strip() == text
)


numbers = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=examples(80), deadline=None)
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


NOT = np.nan
INDEX = "was read as row names; if it is a variable, say --no-row-names"


@pytest.mark.parametrize(
    ("text", "argv", "matrix", "names", "row_names", "told"),
    [
        # a comma at the end of each row, of the header, or of both
        ("a,b,c\n1,9,3,\n4,5,6,\n", (), [[1, 9, 3], [4, 5, 6]], ("a", "b", "c"), None, ""),
        ("a,b\n1,9,,\n4,5,,\n", (), [[1, 9], [4, 5]], ("a", "b"), None, ""),
        ("a,b,\n1,9\n4,5\n", (), [[1, 9], [4, 5]], ("a", "b"), None, ""),
        ("a,b,,\n1,9,,\n4,5,,\n", (), [[1, 9], [4, 5]], ("a", "b"), None, ""),
        ("id,a,b\ns,1,2,\nt,3,4,\n", (), [[1, 2], [3, 4]], ("a", "b"), ("s", "t"), ""),
        ("a;b\n1;9;\n4;5;\n", (), [[1, 9], [4, 5]], ("a", "b"), None, ""),
        ("a,b\n7,1,2\n9,3,4\n", (), [[1, 2], [3, 4]], ("a", "b"), ("7", "9"), ""),
        # thousands, and decimals beside them
        ('a,b\n"10,500",870\n"1,234.5",2\n', ("--thousands", ","), [[10500, 870], [1234.5, 2]], ("a", "b"),
         None, ""),
        ("a;b\n10.500;870\n1.234,5;2\n", ("--thousands", ".", "--decimal", ","), [[10500, 870], [1234.5, 2]],
         ("a", "b"), None, ""),
        ("a\tb\n10 500\t1\n-2\u00a0000\t3\n", ("--thousands", " "), [[10500, 1], [-2000, 3]], ("a", "b"),
         None, ""),
        ("a;b\n1'234'567;1\n2;3\n", ("--thousands", "'"), [[1234567, 1], [2, 3]], ("a", "b"), None, ""),
        ("a;b\n12,34,567;1\n2;3\n", ("--thousands", ","), [[1234567, 1], [2, 3]], ("a", "b"), None, ""),
        # columns of words
        ("a,site,b\n1,north,2\n3,south,4\n", (), [[1, 2], [3, 4]], ("a", "b"), None, "'site' ('north')"),
        ("s,a\nx,1\ny,2\n", (), [[1], [2]], ("a",), ("x", "y"), ""),
        ("a,b,day\n1,2,2020-01-31\n3,4,2020-02-28\n", (), [[1, 2], [3, 4]], ("a", "b"), None, "'day'"),
        ("1,x,2\n3,y,4\n", (), [[1, 2], [3, 4]], None, None, "'column 2' ('x')"),
        ("a,site,b\n1,north,2\n3,south,4\n", ("--drop", "site"), [[1, 2], [3, 4]], ("a", "b"), None, ""),
        ("a,site,b\n1,north,2\n3,south,4\n", ("--drop", "2,b"), [[1], [3]], ("a",), None, ""),
        ("a,site,b\n1,north,2\n3,south,4\n", ("--index-column", "site"), [[1, 2], [3, 4]], ("a", "b"),
         ("north", "south"), ""),
        ("a,room\n1,4b\n2,7\n3,9c\n", (), [[1], [2], [3]], ("a",), None, "'room' ('4b')"),
        ("a,room\n1,2\n2,7\n3,oops\n", ("--drop", "room"), [[1], [2], [3]], ("a",), None, ""),
        ("a,ok\n1,True\n2,False\n3,\n", ("--method", "pmd", "--l1-bound", "1", "--impute", "drop-rows"),
         [[1, 1], [2, 0]], ("a", "ok"), None, ""),
        # a first column that numbers the rows
        ("id,a\n1001,5\n1002,7\n1003,1\n1004,2\n1005,9\n", (), [[5], [7], [1], [2], [9]], ("a",),
         ("1001", "1002", "1003", "1004", "1005"), INDEX),
        ("n,a\n0,5\n1,7\n2,1\n3,2\n4,9\n", (), [[5], [7], [1], [2], [9]], ("a",), ("0", "1", "2", "3",
         "4"), INDEX),
        ("day,a\n20200130,5\n20200131,7\n20200201,1\n20200202,2\n20200203,9\n", (),
         [[5], [7], [1], [2], [9]], ("a",), tuple(map(str, (20200130, 20200131, 20200201, 20200202,
         20200203))), INDEX),
        ("patientID,a\n0093,5\n0012,7\n0045,1\n0002,2\n0001,9\n", (), [[5], [7], [1], [2], [9]], ("a",),
         ("0093", "0012", "0045", "0002", "0001"), INDEX),
        ("2001,5\n2003,7\n2005,1\n2007,2\n2010,9\n", (), [[5], [7], [1], [2], [9]], None,
         ("2001", "2003", "2005", "2007", "2010"), INDEX),
        ("id,a\n1,5\n2,7\n3,1\n4,2\n5,9\n", ("--no-row-names",), [[1, 5], [2, 7], [3, 1], [4, 2], [5, 9]],
         ("id", "a"), None, ""),
        ("dose,a\n1,5\n2,7\n5,1\n10,2\n20,9\n", (), [[1, 5], [2, 7], [5, 1], [10, 2], [20, 9]], ("dose",
         "a"), None,
         "if it is not a variable, say --row-names or --index-column 1"),
        ("acid,a\n9,5\n4,7\n3,1\n8,2\n6,9\n", (), [[9, 5], [4, 7], [3, 1], [8, 2], [6, 9]], ("acid", "a"),
         None, ""),
        ("id,a\n1,5\n1,7\n2,1\n2,2\n3,9\n", (), [[1, 5], [1, 7], [2, 1], [2, 2], [3, 9]], ("id", "a"),
         None, ""),
        ("day,a\n2020-01-01,5\n2020-01-02,7\n", (), [[5], [7]], ("a",), ("2020-01-01", "2020-01-02"), ""),
        ("iso,a\nNA,5\nFR,7\n", (), [[5], [7]], ("a",), ("NA", "FR"), ""),
        # comments
        ("# made by hand\na,b\n1,2\n", (), [[1, 2]], ("a", "b"), None, ""),
        ("# Constructed\n#OTU ID\ts1\ts2\ng1\t1\t2\ng2\t3\t4\n", (), [[1, 2], [3, 4]], ("s1", "s2"), ("g1",
         "g2"), ""),
        ("# a,b\n1,2\n", (), [[1, 2]], ("a", "b"), None, ""),
        ("a;b\n% a comment\n1;2 % another\n", ("--comment", "%"), [[1, 2]], ("a", "b"), None, ""),
        ("a,b\n1,\u22122\n3,1.#INF\n", ("--impute", "mean"), [[1, -2], [3, np.inf]], ("a", "b"), None, ""),
    ],
)  # fmt: skip
def test_tables_of_other_programs(tmp_path, text, argv, matrix, names, row_names, told):
    (tmp_path / "m.csv").write_text(text, encoding="utf-8")
    table, notes = read_and_told(tmp_path / "m.csv", *argv)
    np.testing.assert_array_equal(table.matrix, np.array(matrix, float))
    assert (table.names, table.row_names) == (names, row_names)
    assert told in notes
    assert bool(told) == bool(notes) or "dropped" in notes


@pytest.mark.parametrize(
    "word",
    [
        "#N/A", "#DIV/0!", "<NA>", "\\N", "1.#QNAN", "N.A.", "NaT", "(null)", "", " ", "NA", "nan", "NaN",
        "null", "NULL",
        "None", "?", "-", ".", "..", "#VALUE!", "#REF!", "#NAME?", "#NUM!", "-1.#IND", "-nan", "n/a",
        "N/A", "--", "missing",
        " NA ",
    ],
)  # fmt: skip
@pytest.mark.parametrize("place", [0, 1])
def test_spellings_of_missing(tmp_path, word, place):
    cells = [["1.5", "2"], ["3", "4"], ["5", "7"]]
    cells[1][place] = word
    (tmp_path / "m.csv").write_text("a,b\n" + "\n".join(map(",".join, cells)))
    expected = np.array([[1.5, 2], [3, 4], [5, 7]])
    expected[1, place] = expected[[0, 2], place].mean()
    np.testing.assert_array_equal(read(tmp_path / "m.csv", "--impute", "mean").matrix, expected)


@pytest.mark.parametrize(
    ("text", "argv", "words"),
    [
        ("a\tb\n10,500\t870\n", (), "say --thousands ,; if the comma is the decimal mark, say --decimal ,"),
        ("a\tb\n1,5\t870\n", (), "decimals need a point, or say --decimal ,"),
        ("a;b\n1.234.567;1\n", (), "if . separates thousands, say --thousands . --decimal ,"),
        ("a;b\n1 234;1\n", (), "if ' ' separates thousands, say --thousands ' '"),
        (
            "a;b\n1.234,5;1\n",
            ("--decimal", ","),
            "a number has no point; if . separates thousands, say --thousands .",
        ),
        ("a;b\n1,5;1\n", ("--thousands", ","), "'1,5'"),
        ("a;b\n1,23;1\n", ("--thousands", ","), "'1,23'"),
        ("a,b\n1,2,\n3,4,5\n", (), "line 2, column 3 ('b') is missing"),
    ],
)
def test_what_may_be_read_in_two_ways_is_refused(run, tmp_path, text, argv, words):
    (tmp_path / "m.csv").write_text(text)
    assert words in one_error_line(run("fit", tmp_path / "m.csv", "-n1", "-k1", *argv))


def test_info_lists_columns_of_words_and_goes_on(run, as_json, tmp_path):
    (tmp_path / "m.csv").write_text("a,site,b,c\n1,north,2,3\n3,south,4,oops\n5,east,1,2\n")
    facts = as_json("info", tmp_path / "m.csv")
    assert (facts["names"], facts["columns_of_words"]) == (["a", "b"], ["site", "c"])
    assert "2 (site, c), left out" in run("info", tmp_path / "m.csv")[1]


@pytest.mark.parametrize("pack", ["gzip", "bz2", "lzma"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_packed_text_in_other_encodings(tmp_path, pack, encoding):
    path = tmp_path / f"m.csv.{ {'gzip': 'gz', 'bz2': 'bz2', 'lzma': 'xz'}[pack] }"
    path.write_bytes(importlib.import_module(pack).compress("größe;b\n1;2\n".encode(encoding)))
    assert read(path).names == ("größe", "b")


def test_names_of_10x(run, tmp_path, X):
    """Identifier, symbol and kind of each gene, of which the symbol is the name; groups in any order."""
    lines = [f"ENSG{j:05d}\tgene{j}\tGene Expression\n" for j in range(12)]
    (tmp_path / "features.tsv.gz").write_bytes(gzip.compress("".join(lines).encode()))
    np.save(tmp_path / "m.npy", X)
    table, notes = read_and_told(tmp_path / "m.npy", "--names", tmp_path / "features.tsv.gz")
    assert table.names == tuple(f"gene{j}" for j in range(12))
    assert "column 2 of" in notes
    groups = [f"x{j}\tset {j % 3}\n" for j in range(12, 0, -1)]
    (tmp_path / "groups.tsv").write_text("".join(groups))
    argv = ["-n1", "-k1", "--groups", tmp_path / "groups.tsv", "-q", "-o", tmp_path / "r.npz"]
    assert run("fit", tmp_path / "m.npy", *argv)[0] == 0
    labels = [f"set {j % 3}" for j in range(1, 13)]
    expected = spcacore.sparse_pca(X, 1, cardinality=1, choice=spcacore.Choice(groups=labels))
    np.testing.assert_array_equal(results(tmp_path / "r.npz")["loadings"], expected.loadings)
