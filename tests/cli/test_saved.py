"""`spcacore transform` and `spcacore compare`: loadings in files."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest
from cli_tools import one_error_line, results, rows_of, saved
from in_turn import scaled_or_not
from numpy.testing import assert_allclose
from oracles import centered

import spcacore

P = 12  # columns of X
NAMES = [f"g{j}" for j in range(11)] + ["=x"]  # one that is quoted for spreadsheets


def table(path, X, names, order=None):
    order = range(len(names)) if order is None else order
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([names[j] for j in order])
        writer.writerows([[repr(float(row[j])) for j in order] for row in X])
    return path


@pytest.mark.parametrize("kind", ["npz", "csv"])
@scaled_or_not
def test_scores_of_new_samples(run, output, tmp_path, X, scale, kind):
    """(x - mean) / scale times the loadings, with the mean and scale of the fit; columns by their names."""
    old, new = X[:20], X[20:]
    file = table(tmp_path / "old.csv", old, NAMES)
    flags = ["--scale"] if scale else []
    assert run("fit", file, *flags, "-n2", "-k3", "-q", "-o", tmp_path / f"v.{kind}") == (0, "", "")
    order = np.random.default_rng(0).permutation(12)
    fresh = table(tmp_path / "new.csv", new, NAMES, order)
    out = output("transform", fresh, "--loadings", tmp_path / f"v.{kind}")
    rows = list(csv.reader(out.splitlines()))
    assert rows[0] == ["sample", "component_1", "component_2"]
    V = spcacore.sparse_pca(old, 2, cardinality=3, scale=scale).loadings
    divisor = old.std(axis=0, ddof=1) if scale else 1
    expected = ((new - old.mean(axis=0)) / divisor) @ V
    assert_allclose(np.array(rows[1:], float)[:, 1:], expected, atol=1e-11)
    assert [row[0] for row in rows[1:]] == [str(i + 1) for i in range(10)]


def test_scores_by_loadings_without_means(run, tmp_path, X):
    file = table(tmp_path / "m.csv", X, NAMES)
    V = spcacore.sparse_pca(X, 2, cardinality=5).loadings
    rows = [",".join([name, *map(repr, v.tolist())]) for name, v in zip(NAMES, V, strict=True)]
    (tmp_path / "v.csv").write_text("\n".join(["variable,a,b", *rows]))
    for flags, Z in (
        ([], centered(X)),
        (["--no-center"], X),
        (["--scale"], centered(X) / X.std(axis=0, ddof=1)),
    ):
        run("transform", file, "--loadings", tmp_path / "v.csv", *flags, "-o", tmp_path / "s.npz")
        assert_allclose(results(tmp_path / "s.npz")["scores"], Z @ V, atol=1e-11)


def test_what_can_and_cannot_be_transformed(run, as_json, tmp_path, X):
    file = table(tmp_path / "m.csv", X, NAMES)
    few = table(tmp_path / "few.csv", X[:, :6], NAMES[:6])
    run("fit", few, "-n1", "-k3", "-q", "-o", tmp_path / "few.npz")
    found = as_json(
        "transform",
        table(tmp_path / "all.csv", X, NAMES, [7, 3, 1, 0, 11, 2, 5, 4]),
        "--loadings",
        tmp_path / "few.npz",
    )
    V = results(tmp_path / "few.npz")["loadings"]
    assert_allclose(found["scores"], (X[:, :6] - X[:, :6].mean(axis=0)) @ V, atol=1e-11)
    run("fit", file, "-n1", "-k3", "-q", "-o", tmp_path / "v.npz")
    npz = ["--loadings", tmp_path / "v.npz"]
    for matrix, argv, words in [
        (few, npz, "few.csv does not have the variables of"),
        (saved(tmp_path / "b.npy", X[:, 1:]), npz, "has 11 variables, "),
        (table(tmp_path / "c.csv", X, ["g0", *NAMES[:11]]), npz, "without '=x', with more than one 'g0'"),
        (file, [*npz, "--scale"], "argument --scale: "),
        (file, ["--loadings", tmp_path / "no.npz"], "cannot read"),
        (file, [*npz, "-o", tmp_path / "v.npz"], "another argument names it, too"),
        (saved(tmp_path / "e.npy", np.where(X > 2, np.inf, X)), npz, "that are NaN or infinite"),
        (file, [], "Missing option '--loadings'"),
    ]:
        assert words in one_error_line(run("transform", matrix, *argv))


def test_files_of_loadings_side_by_side(output, as_json, tmp_path, X):
    """The numbers of `compare`, in each form."""
    file = table(tmp_path / "m.csv", X, NAMES)
    V = {}
    for name, (k, method) in {"a": (3, "tpower"), "b": (6, "greedy")}.items():
        output("fit", file, "-n2", "-q", "-k", k, "--method", method, "-o", tmp_path / f"{name}.csv")
        V[name] = spcacore.sparse_pca(X, 2, cardinality=k, method=method).loadings
    argv = ["compare", file, "--loadings", tmp_path / "a.csv", tmp_path / "b.csv", "--reference", "2"]
    expected = spcacore.compare(V, X, reference="b")
    assert str(expected) in output(*argv)
    found = as_json(*argv)
    assert found["reference"] == "b"
    output(*argv, "-q", "-o", tmp_path / "c.csv")
    index, columns = expected.columns()
    for rows in (found["components"], rows_of(tmp_path / "c.csv")):
        assert [row["result"] for row in rows] == index
        for name, values in columns.items():
            assert_allclose([float(row[name]) for row in rows], values, rtol=1e-12)
    output(*argv, "-q", "-o", tmp_path / "c.html")
    assert "<table" in (tmp_path / "c.html").read_text()


@pytest.mark.share(2)
@pytest.mark.parametrize("kind", ["csv", "npz"])
@pytest.mark.parametrize(
    ("fitted", "same", "against", "words"),
    [
        (["--scale"], [], ["--no-center"], "argument --no-center: "),
        ([], [], ["--scale"], "was fitted with --no-scale"),
        (["--no-center"], ["--no-center"], None, ""),
        (["--no-center", "--scale"], ["--scale"], None, ""),
        (["--scale", "--method", "ppca"], ["--scale"], ["--no-scale"], "was fitted with --scale"),
    ],
)
def test_loadings_say_what_the_fit_did(run, as_json, tmp_path, X, kind, fitted, same, against, words):
    """Without options as with those of the fit; a contradiction is refused."""
    file, path = table(tmp_path / "m.csv", X + 3, NAMES), tmp_path / f"v.{kind}"
    sparse = [] if "ppca" in fitted else ["-k4"]
    fit = as_json("fit", file, "-n2", *sparse, *fitted, "-o", path)["result"]
    for argv in ([], same):
        document = json.loads(run("compare", file, "--loadings", path, *argv, "--json")[1])
        assert document["center"] is ("--no-center" not in fitted)
        assert document["scale"] is ("--scale" in fitted)
        cumulative = [one["variance_cumulative"] for one in document["components"]]
        assert_allclose(cumulative, fit["explained_variance"], rtol=1e-9)
    if against:
        assert words in one_error_line(run("compare", file, "--loadings", path, *against))


@pytest.mark.parametrize("kind", ["csv", "npz"])
@pytest.mark.parametrize("method", ["ppca", "oppca", "soppca"])
def test_scores_of_a_model_come_from_both_files(run, as_json, tmp_path, X, kind, method):
    """Posterior means, by NumPy for `ppca`: those that the fit wrote, and not products with the loadings."""
    file, path, scores = table(tmp_path / "m.csv", X, NAMES), tmp_path / f"v.{kind}", tmp_path / "s.npz"
    fit = as_json("fit", file, "-n2", "--scale", "--method", method, "-o", path, "--scores", scores)["result"]
    found = np.array(as_json("transform", file, "--loadings", path)["scores"])
    assert_allclose(found, results(scores)["scores"], atol=1e-10)
    if method == "ppca":
        Z = centered(X) / X.std(axis=0, ddof=1)
        W = spcacore.ppca(X, 2, scale=True).loadings
        M = W.T @ W + fit["noise_variance"] * np.eye(2)
        assert_allclose(found, np.linalg.solve(M, W.T @ Z.T).T, atol=1e-10)
    document = as_json("compare", file, "--loadings", path)
    assert len(document["components"]) == 2


def test_missing_entries_count_as_the_mean_where_the_fit_had_some(run, tmp_path, X):
    path, hole = tmp_path / "v.npz", np.where(np.arange(X.size).reshape(X.shape) % 7, X, np.nan)
    file, whole = saved(tmp_path / "m.npy", hole), saved(tmp_path / "w.npy", X)
    run("fit", file, "-n2", "-k4", "-o", path)
    assert run("transform", file, "--loadings", path, "-q", "-o", tmp_path / "s.npz") == (0, "", "")
    expected = np.nan_to_num(hole - np.nanmean(hole, axis=0)) @ results(path)["loadings"]
    assert_allclose(results(tmp_path / "s.npz")["scores"], expected, atol=1e-10)
    run("fit", whole, "-n2", "-k4", "-o", path)
    assert "NaN" in one_error_line(run("transform", file, "--loadings", path))


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_loadings_say_that_they_are_of_a_covariance(as_json, pitprops, tmp_path, kind):
    path, A = tmp_path / f"v.{kind}", spcacore.datasets.load_pitprops().correlation
    as_json("fit", *pitprops, "-n2", "-k4", "-o", path)
    found = as_json("compare", pitprops[0], "--loadings", path)
    assert found["kind"] == "covariance"
    V = spcacore.sparse_pca(A, 2, cardinality=4, kind="covariance").loadings
    assert_allclose([one["variance_raw"] for one in found["components"]], np.diag(V.T @ A @ V))


def test_what_cannot_be_compared(run, as_json, tmp_path, X):
    file = table(tmp_path / "m.csv", X, NAMES)
    for name, argv in (("a", ["--scale"]), ("b", [])):
        as_json("fit", file, "-n1", "-k3", *argv, "-o", tmp_path / f"{name}.csv")
    a, b = str(tmp_path / "a.csv"), str(tmp_path / "b.csv")
    for argv, words in [
        (["--loadings", a, a], "--loadings: names a file twice"),
        (["--loadings", a, "--reference", "2"], "--reference: must be in [1, 1], not 2"),
        (["--loadings", a, "--reference", "0"], "--reference: must be in [1, 1], not 0"),
        (["--loadings", a, "-o", tmp_path / "c.txt"], "unknown extension"),
        (["--loadings", tmp_path / "m.csv"], "m.csv does not have the variables of"),
        (["--loadings", a, b], "a.csv was fitted with --scale, "),
        (["--loadings", a, "--loadings", b], "a.csv was fitted with --scale, "),
    ]:
        assert words in one_error_line(run("compare", file, *argv))
    assert as_json("compare", file, "--loadings", a, b, "--scale")["scale"] is True


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("short.csv", ""),
        ("other.csv", "does not have the variables of other.csv: it is without 'x'"),
        ("twice.csv", "variables of twice.csv: it is with more than one 'length'"),
        ("words.csv", "words.csv: loadings must be finite numbers"),
        ("m.npz", "argument --loadings: m.npz has no array 'loadings', but: X"),
    ],
)
def test_files_of_other_loadings(run, pitprops, tmp_path, monkeypatch, name, words):
    """In any order; a variable that is not there has the loading 0."""
    monkeypatch.chdir(tmp_path)
    props = spcacore.datasets.load_pitprops()
    names = {"short": props.names[4:1:-1], "other": ["x", *props.names[1:]]}
    for one in ("short", "other", "twice", "words"):
        here = names.get(one, [props.names[1], *props.names[1:]])
        rows = [f"{known},{'many' if one == 'words' else j - 1}" for j, known in enumerate(here)]
        Path(f"{one}.csv").write_text("\n".join(["variable,component_1", *rows]))
    np.savez("m.npz", X=np.eye(2))
    outcome = run("compare", *pitprops, "--loadings", name, "--json")
    if words:
        assert words in one_error_line(outcome)
        return
    v, A = np.zeros(13), props.correlation
    v[[4, 2]] = -1, 1
    (row,) = json.loads(outcome[1])["components"]
    assert_allclose([row["variance_raw"], row["nonzeros"]], [v @ A @ v / 2, 2])


def test_names_that_occur_twice_are_told_and_matched_in_their_order_only(run, as_json, tmp_path, X):
    np.savez(tmp_path / "m.npz", X=X[:, :9], names=["a", "a", *"cdefghi"])
    note = "several variables have the same name: 'a'; a name does not tell them apart"
    said = run("fit", tmp_path / "m.npz", "-k3", "-n1", "-o", tmp_path / "l.csv")[2]
    assert said == f"spcacore: note: {note}\n"
    assert as_json("info", tmp_path / "m.npz")["notes"] == [note]
    argv = ["compare", tmp_path / "m.npz", "--loadings", tmp_path / "l.csv"]
    status, _, said = run(*argv)
    assert (status, said) == (0, f"spcacore: note: {note}\n")
    first, *lines = (tmp_path / "l.csv").read_text().splitlines()
    (tmp_path / "l.csv").write_text("\n".join([first, *lines[::-1]]))
    assert "it is with more than one 'a'" in one_error_line(run(*argv))
