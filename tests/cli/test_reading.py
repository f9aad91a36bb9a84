"""Files as matrices: arrays, text, headers and row names."""

import csv
import gzip
import io

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from cli_tools import OPTIONS, api, assert_same, read, results
from hypothesis import given, settings
from hypothesis import strategies as st
from in_turn import examples

from spcacore.cli.text import _is_text

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
    lambda text: _is_text(text) and text.strip() == text
)


numbers = st.floats(allow_nan=False, allow_infinity=False)


@settings(max_examples=examples(150), deadline=None)
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
