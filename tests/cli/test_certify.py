"""`spcacore certify`: bounds, searches, given loadings."""

import re
from pathlib import Path

import numpy as np
import oracles
import pytest
from cli_tools import loadings_of, one_error_line
from known_variables import optimum

import spcacore
from spcacore import cli


def test_certify_bounds_the_optimum(as_json, output, pitprops):
    A = spcacore.datasets.load_pitprops().correlation
    rows = as_json("certify", *pitprops, "-k", "2,4,6")["components"]
    printed = output("certify", *pitprops, "-k", "2,4,6").splitlines()[2:6]
    for row, line in zip(rows, printed[1:], strict=True):
        k = row["cardinality"]
        best, expected = (
            oracles.optimum(A, k),
            spcacore.optimality_bound(A, k, kind="covariance", relaxation=True),
        )
        assert row["value"] <= best * (1 + 1e-12)
        assert row["upper_bound"] >= best * (1 - 1e-12)
        assert {name: row[name] for name in expected.bounds} == expected.bounds
        assert row["upper_bound"] == expected.bound
        assert row["gap"] == 1 - row["value"] / row["upper_bound"]
        v = loadings_of([row["loadings"]], 13)[:, 0]
        assert v @ A @ v == pytest.approx(row["value"])
        assert np.count_nonzero(v) == k
        numbers = [*expected.bounds.values(), expected.bound, row["value"]]
        np.testing.assert_allclose(np.array(line.split()[1:-2], float), numbers, rtol=5.001e-4)
    assert printed[0].split("  ")[:4] == [" cardinality", "spectral", "row sums", "knapsack"]
    for flag, has in (("--no-relaxation", False), ("--relaxation", True)):
        assert ("relaxation" in as_json("certify", *pitprops, "-k3", flag)["components"][0]) is has


def test_the_best_component_is_proved_by_a_fit(as_json, output, file, X):
    argv = ["fit", file, "-n1", "--method", "branch_and_bound", "--certify"]
    for k in range(1, 6):
        found = as_json(*argv, "-k", k)["result"]
        assert found["upper_bound"] == pytest.approx(found["explained_variance"], rel=1e-12)
        assert found["explained_variance"][0] == pytest.approx(oracles.optimum(oracles.covariance(X), k))
    text = output(*argv, "-k", "3", "--scale")
    x = spcacore.branch_and_bound(X, 3, scale=True).loading
    shown = dict(line.split() for line in text.splitlines() if re.match(r"x\d+ ", line))
    assert shown == {f"x{j + 1}": f"{x[j]:.3f}" for j in np.flatnonzero(x)}


SETS = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4])
KNOWN = [
    (["--exclude", "x1,x5"], {"exclude": [0, 4]}, 3),
    (["--include", "x7"], {"include": [6]}, 3),
    (["--signs", "1"], {"nonnegative": np.ones(9)}, 3),
    (["--groups", "sets.txt"], {"groups": SETS}, 2),
    (["--groups", "sets.txt", "--include", "x6", "--signs", "1"],
     {"groups": SETS, "include": [5], "nonnegative": np.ones(9)}, 2),
]  # fmt: skip


@pytest.fixture
def sets(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("sets.txt").write_text("\n".join(map(str, SETS)))


@pytest.mark.usefixtures("sets")
@pytest.mark.parametrize(("argv", "known", "k"), KNOWN)
def test_what_is_known_of_the_variables(as_json, file, X, argv, known, k):
    best = optimum(oracles.covariance(X), k, **known)
    (row,) = as_json("certify", file, "-k", k, *argv)["components"]
    assert row["value"] <= best * (1 + 1e-9)
    assert best <= row["upper_bound"] * (1 + 1e-9)


def test_variances_of_given_loadings(as_json, output, tmp_path, pitprops):
    """In three definitions, by QR decompositions of explicit matrices; whatever their length and order."""
    names, A = spcacore.datasets.load_pitprops().names, spcacore.datasets.load_pitprops().correlation
    rng = np.random.default_rng(5)
    V = rng.standard_normal((13, 3)) * (rng.random((13, 3)) < 0.4)
    lines = [",".join([names[j], *map(repr, V[j].tolist())]) for j in rng.permutation(13)]
    (tmp_path / "l.csv").write_text("\n".join(["variable,a,b,c", *lines]))
    argv = ["certify", *pitprops, "--loadings", tmp_path / "l.csv"]
    document = as_json(*argv)
    components = document["components"]
    U, root = V / np.linalg.norm(V, axis=0), np.linalg.cholesky(A).T
    spanned = [oracles.spanned_variance(A, U[:, : t + 1]) for t in range(3)]
    expected = {
        "raw": np.einsum("jt,ji,it->t", U, A, U),
        "adjusted": np.diag(np.linalg.qr(root @ U)[1]) ** 2,
        "cumulative": np.diff(spanned, prepend=0),
    }
    for name, values in expected.items():
        np.testing.assert_allclose([c[name] for c in components], values, rtol=1e-10)
    value, sizes = expected["cumulative"].sum(), np.count_nonzero(V, axis=0)
    bound = spcacore.optimality_bound(A, sizes, 3, kind="covariance", relaxation=True).upper_bound
    assert [document["value"], document["upper_bound"]] == pytest.approx([value, bound])
    assert document["gap"] == pytest.approx(1 - value / bound)
    assert f", {100 * value / 13:.1f} % of the variance, at most {100 * document['gap']:.2g}" in output(*argv)


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "give either -k/--cardinality or --loadings"),
        (["--loadings", "both.csv", "--exclude", "length"], "--exclude: requires --cardinality"),
        (["-k", "14"], "--cardinality: must be in [1, 13], not 14"),
        (["--loadings", "short.csv"], "short.csv has 2 variables, "),
        (["--loadings", "other.csv"], "does not have the variables of other.csv: it is without 'x'"),
        (["--loadings", "twice.csv"], "variables of twice.csv: it is with more than one 'length'"),
        (["--loadings", "zero.csv"], "component 2 of zero.csv has no loading that is not zero"),
        (["--loadings", "words.csv"], "words.csv: loadings must be finite numbers"),
        (["--loadings", "m.npz"], "argument --loadings: m.npz has no array 'loadings', but: X"),
    ],
)
def test_wrong_options_of_certify(run, pitprops, tmp_path, monkeypatch, argv, words):
    monkeypatch.chdir(tmp_path)
    names = spcacore.datasets.load_pitprops().names
    files = {"short": names[:2], "other": ["x", *names[1:]], "twice": [names[1], *names[1:]]}
    second = {"zero": 0, "words": "many", "both": 1}
    for name in (*files, *second):
        rows = [f"{one},{(-1) ** j},{second.get(name, 2)}" for j, one in enumerate(files.get(name, names))]
        Path(f"{name}.csv").write_text("\n".join(["variable,component_1,component_2", *rows]))
    np.savez("m.npz", X=np.eye(2))
    assert words in one_error_line(run("certify", *pitprops, *argv))


def test_names_that_occur_twice_are_told_and_matched_in_their_order_only(run, as_json, tmp_path, X):
    np.savez(tmp_path / "m.npz", X=X, names=["a", "a", *"cdefghi"])
    note = "several variables have the same name: 'a'; a name does not tell them apart"
    said = run("fit", tmp_path / "m.npz", "-k3", "-n1", "-o", tmp_path / "l.csv")[2]
    assert said == f"spcacore: note: {note}\n"
    assert as_json("info", tmp_path / "m.npz")["notes"] == [note]
    argv = ["certify", tmp_path / "m.npz", "--loadings", tmp_path / "l.csv"]
    status, out, said = run(*argv)
    assert (status, said) == (0, f"spcacore: note: {note}\n")
    assert re.search("regression$", out, re.M)
    first, *lines = (tmp_path / "l.csv").read_text().splitlines()
    (tmp_path / "l.csv").write_text("\n".join([first, *lines[::-1]]))
    assert "it is with more than one 'a'" in one_error_line(run(*argv))


def test_a_total_beyond_the_numbers_leaves_out_the_shares(tmp_path, capfd):
    np.save(tmp_path / "m.npy", 1e200 * np.random.default_rng(0).standard_normal((9, 3)))
    np.savez(tmp_path / "l.npz", loadings=np.eye(3)[:, :2])
    assert cli.main(["certify", str(tmp_path / "m.npy"), "--loadings", str(tmp_path / "l.npz")]) == 0
    out, err = capfd.readouterr()
    assert "together inf" in out
    assert err == "spcacore: warning: a variance exceeds the number range and is given as inf\n"
