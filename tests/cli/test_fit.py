"""`spcacore fit`: what it prints and writes against the API."""

import csv
import re

import numpy as np
import pytest
import scipy.io
import scipy.sparse
from cli_tools import OPTIONS, api, assert_same, results, saved

import spcacore

P = 12  # columns of X


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


def test_pit_props_by_fit_reproduce_the_demonstration(run, output, tmp_path):
    pandas = pytest.importorskip("pandas")
    pitprops = spcacore.datasets.load_pitprops()
    path = tmp_path / "pitprops.csv"
    pandas.DataFrame(pitprops.correlation, pitprops.names, pitprops.names).to_csv(path)
    demo = run()[1].splitlines()
    out = output("fit", path, "--covariance", "-k", "7,4,4,1,1,1")
    start = next(i for i, line in enumerate(demo) if line.startswith("component"))
    assert demo[start : start + 19] == out.splitlines()[2:21]
    assert out.startswith(f"Sparse PCA of {path}: 13 variables, covariance matrix\n")


def test_float32_computes_in_single_precision(run, tmp_path, X, counts):
    for name, matrix in (("m.npy", X), ("s.npz", counts)):
        np.save(tmp_path / name, X) if name == "m.npy" else scipy.sparse.save_npz(tmp_path / name, counts)
        assert run("fit", tmp_path / name, *OPTIONS, "--float32", "-o", tmp_path / "r.npz", "-q")[0] == 0
        assert_same(results(tmp_path / "r.npz"), api(matrix.astype(np.float32)))


def test_defaults_fit_a_small_matrix_with_a_note(run, tmp_path, X):
    path = saved(tmp_path / "m.npy", X[:3, :7])
    status, _, err = run("fit", path, "-k7", "-o", tmp_path / "r.npz")
    assert status == 0
    with pytest.warns(RuntimeWarning, match="no variance is left") as caught:
        expected = spcacore.sparse_pca(X[:3, :7], 3, cardinality=7)
    assert err.splitlines() == [
        f"spcacore: warning: {caught[0].message}",
        f"spcacore: note: 3 components instead of 5: {path} has 3 samples of 7 variables",
    ]
    assert_same(results(tmp_path / "r.npz"), expected)


def test_default_is_five_components_of_the_root_of_the_variables(run, tmp_path, file, X):
    assert run("fit", file, "-q", "-o", tmp_path / "r.npz") == (0, "", "")
    assert_same(results(tmp_path / "r.npz"), spcacore.sparse_pca(X, 5))


@pytest.mark.parametrize("scale", [False, True])
def test_covariance(output, tmp_path, X, scale):
    A = np.cov(X, rowvar=False)
    path = saved(tmp_path / "m.npy", A)
    argv = ["--scale"] if scale else []
    output("fit", path, "--covariance", *OPTIONS, *argv, "-o", tmp_path / "r.npz")
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
        record = frame[[name for name in ("center", "scale", "kind") if name in frame]]
        frame = frame.drop(columns=record.columns)
        assert frame.columns.tolist() == ["component_1", "component_2", "component_3"]
        if file == "l.csv":
            np.testing.assert_array_equal(record["center"].astype(dtype), result.mean)
            assert (set(record["scale"]), set(record["kind"])) == ({"1.0"}, {"data"})
        assert frame.index.name == ("variable" if file == "l.csv" else "sample")
        np.testing.assert_array_equal(frame.to_numpy().astype(dtype), expected)
    zeros = re.findall(r",0\.0(?=[,\n])", (tmp_path / "l.csv").read_text())
    assert len(zeros) == np.count_nonzero(result.loadings == 0)


def test_many_variables_are_listed_by_loading(output, tmp_path):
    X, _ = spcacore.datasets.make_spiked(40, 200, cardinality=70, rng=1)
    X[:, ::3] *= -1
    np.savez(tmp_path / "m.npz", X=X, names=[f"n\x1b[31m{j}" for j in range(200)])
    out = output("fit", tmp_path / "m.npz", "-n2", "-k", "6,60")
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
    assert err == "spcacore: warning: no variance is left after 0 of the 1 component requested\n"
    assert (tmp_path / "l.csv").read_text().splitlines()[1:] == [f"x{j},1.0,1.0,data" for j in (1, 2, 3)]
    assert results(tmp_path / "s.npz")["scores"].shape == (4, 0)


def test_non_convergence_is_one_warning_that_counts_from_one(run, file):
    status, _, err = run("fit", file, "-n2", "-k4", "--max-iter", "0", "-q")
    assert status == 0
    assert err == "spcacore: warning: components 1, 2 not converged in 0 iterations; raise --max-iter\n"
