"""Parquet and .h5ad files."""

import decimal
import sys

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from cli_tools import loadings_of, one_error_line, results

import spcacore


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
    for other in (
        words, pa.array([1, 2, 3], pa.timestamp("ms")), pa.array([[1], [2], [3]]), words.dictionary_encode(),
    ):  # fmt: skip
        pyarrow.parquet.write_table(arrow_table(pa, c=other), path)
        assert "left out a column of" in run("fit", path, "-n1", "-k1")[2]
        assert "variables  2 (a, b)" in run("info", path)[1]
        assert as_json("fit", path, "-n1", "-k1", "--drop", "c")["names"] == ["a", "b"]
    third = pa.array([decimal.Decimal("0.5"), decimal.Decimal("7.25"), decimal.Decimal("3")])
    names, V = loadings(arrow_table(pa, c=third))
    np.testing.assert_array_equal(V, expected(np.column_stack([matrix, [0.5, 7.25, 3]])))
    for table, message in (
        (arrow_table(pa, c=pa.array([1.5, None, 2])), "row 2, column 3 ('c') is nan; impute"),
        (arrow_table(pa, c=pa.array([1, None, 2])), "row 2, column 3 ('c') is nan; impute"),
        (pa.table({"who": words}), "row 1, column 1 ('who') is not a number: 'x'"),
    ):  # fmt: skip
        pyarrow.parquet.write_table(table, path)
        assert message in one_error_line(run("fit", path, "-n1", "-k1"))
    path.write_bytes(b"PAR1junkPAR1")
    assert "m.parquet" in one_error_line(run("fit", path))


def annotated(X, gene="gene", **more):
    anndata = pytest.importorskip("anndata", reason="anndata writes the file")
    pandas = pytest.importorskip("pandas", reason="pandas makes the names")
    genes = pandas.DataFrame(index=[f"{gene}{j}" for j in range(X.shape[1])])
    cells = pandas.DataFrame({"type": ["a"] * X.shape[0]}, index=[f"cell{i}" for i in range(X.shape[0])])
    return anndata.AnnData(X=X, var=genes, obs=cells, **more)


def test_parquet_with_numbers_of_the_rows(run, as_json, tmp_path, X):
    pandas = pytest.importorskip("pandas", reason="pandas writes the file")
    pytest.importorskip("pyarrow", reason="pyarrow writes the file")
    frame = pandas.DataFrame(X, columns=[f"v{j}" for j in range(9)]).astype({"v3": "Float64"})
    frame.insert(0, "sample_id", np.random.default_rng(0).permutation(30) + 1001)
    frame.to_parquet(tmp_path / "m.parquet", index=False)
    err = run("fit", tmp_path / "m.parquet", "-k3", "-n2", "-o", tmp_path / "r.npz")[2]
    assert "looks like numbers of the rows" in err
    expected = spcacore.sparse_pca(np.asfortranarray(X), 2, cardinality=3)
    np.testing.assert_array_equal(results(tmp_path / "r.npz")["loadings"], expected.loadings)
    found = as_json("fit", tmp_path / "m.parquet", "-k3", "-n2", "--no-row-names")
    assert found["names"][0] == "sample_id"
    found = as_json("fit", tmp_path / "m.parquet", "-k3", "-n2", "--index-column", "sample_id")
    assert_loadings(found, np.asfortranarray(X), [f"v{j}" for j in range(9)])


@pytest.mark.share(3)
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


@pytest.mark.parametrize("kind", ["categorical", "nullable", "reference", "nullable categories"])
def test_h5ad_with_names_of_other_kinds(as_json, tmp_path, X, kind):
    h5py = pytest.importorskip("h5py", reason="h5py reads the file")
    names = [f"g{j}" for j in range(9)]
    with h5py.File(tmp_path / "m.h5ad", "w") as f:
        f["X"], words = X, h5py.string_dtype()
        f.create_group("var").attrs["_index"] = "who"
        if kind == "reference":  # version 0.7
            f["var/__categories/who"] = np.array(names[::-1], dtype=words)
            f["var/who"] = np.arange(8, -1, -1, dtype=np.int8)
            f["var/who"].attrs["categories"] = f["var/__categories/who"].ref
        elif "categorical" in kind or "categories" in kind:
            place = "var/who/categories" + "/values" * (kind != "categorical")
            f[place] = np.array(names[::-1], dtype=words)
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
