"""`spcacore certify`: bounds, searches, given loadings."""

import csv
import itertools
import re

import numpy as np
import oracles
import pytest
from cli_tools import loadings_of, one_error_line
from known_variables import optimum

import spcacore
from spcacore import cli
from spcacore.cli import report


def test_certify_bounds_the_optimum(as_json, output, pitprops):
    A = spcacore.datasets.load_pitprops().correlation
    rows = as_json("certify", *pitprops, "-k", "2,4,6")["components"]
    for row in rows:
        k = row["cardinality"]
        best = oracles.optimum(A, k)
        assert row["value"] <= best * (1 + 1e-12)
        assert row["upper_bound"] >= best * (1 - 1e-12)
        expected = spcacore.optimality_bound(A, k, kind="covariance", relaxation=True)
        assert row["bounds"] == expected.bounds
        assert row["upper_bound"] == expected.bound
        assert row["gap"] == 1 - row["value"] / row["upper_bound"]
        v = loadings_of([row], 13)[:, 0]
        assert v @ A @ v == pytest.approx(row["value"])
        assert np.count_nonzero(v) == k
    lines = {
        line[:14].strip(): line[14:].split()
        for line in output("certify", *pitprops, "-k", "2,4,6").splitlines()
    }
    assert lines["cardinality"] == ["2", "4", "6"]
    for name, key in (("upper bound", "upper_bound"), ("variance found", "value")):
        np.testing.assert_allclose(np.array(lines[name], float), [row[key] for row in rows], rtol=5.001e-4)
    for name in rows[0]["bounds"]:
        np.testing.assert_allclose(
            np.array(lines[name], float), [row["bounds"][name] for row in rows], rtol=5.001e-4
        )


def test_certify_by_search_finds_the_optimum(as_json, output, file, X):
    A = oracles.covariance(X)
    for row in as_json("certify", file, "-k", "1:5", "--exact")["components"]:
        assert row["optimal"] is True
        assert row["gap"] == 0
        assert row["value"] == pytest.approx(oracles.optimum(A, row["cardinality"]), rel=1e-9)
    text = output("certify", file, "-k", "3", "--exact", "--scale")
    assert "the component found, optimal, proved" in text
    assert re.search(r"^gap % +0$", text, re.M)
    x = spcacore.branch_and_bound(X, 3, scale=True).loading
    order = np.argsort(-np.abs(x))[:3]
    assert [line.split() for line in text.split("proved\n")[1].splitlines()[:3]] == [
        [f"{x[j]:.3f}", f"x{j + 1}"] for j in order
    ]


SETS = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4])
KNOWN = [
    (["--exclude", "x1,x5"], {"exclude": [0, 4]}, 3),
    (["--include", "x7"], {"include": [6]}, 3),
    (["--signs", "1"], {"nonnegative": np.ones(9)}, 3),
    (["--groups", "sets.txt"], {"groups": SETS}, 2),
    (["--groups", "sets.txt", "--include", "x6", "--signs", "1"],
     {"groups": SETS, "include": [5], "nonnegative": np.ones(9)}, 2),
]  # fmt: skip


@pytest.mark.parametrize(("argv", "known", "k"), KNOWN)
def test_what_is_known_of_the_variables(as_json, file, X, tmp_path, monkeypatch, argv, known, k):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sets.txt").write_text("\n".join(map(str, SETS)))
    A = oracles.covariance(X)
    best = optimum(A, k, **known)
    (row,) = as_json("certify", file, "-k", k, *argv)["components"]
    assert row["value"] <= best * (1 + 1e-9)
    assert best <= row["upper_bound"] * (1 + 1e-9)
    (free,) = as_json("certify", file, "-k", 5 if "groups" in known else k)["components"]
    assert row["upper_bound"] <= free["upper_bound"] * (1 + 1e-9)
    (row,) = as_json("certify", file, "-k", k, "--exact", *argv)["components"]
    assert row["optimal"] is True
    assert row["value"] == pytest.approx(best, rel=1e-9)
    fit = as_json("fit", file, "-n2", "-k", k, "-o", "l.csv", "--certify", *argv)["result"]["components"]
    given = as_json("certify", file, "--loadings", "l.csv", *argv)["components"]
    proved = as_json("certify", file, "--loadings", "l.csv", "--exact", *argv)["components"]
    assert given[0]["upper_bound"] >= best * (1 - 1e-9)
    assert proved[0]["upper_bound"] == pytest.approx(best, rel=1e-9)
    for one, other, exact in zip(fit, given, proved, strict=True):
        assert one["upper_bound"] >= exact["upper_bound"] * (1 - 1e-9)
        if "groups" not in known and "nonnegative" not in known:  # then fit searched, too
            assert one["upper_bound"] == pytest.approx(exact["upper_bound"], rel=1e-9)
        assert exact["value"] == other["value"] <= exact["upper_bound"] <= other["upper_bound"] * (1 + 1e-9)


def test_variables_of_whole_groups(as_json, file, X, tmp_path):
    (tmp_path / "sets.txt").write_text("\n".join(map(str, SETS)))
    argv = ["--groups", tmp_path / "sets.txt", "--count", "variables"]
    (row,) = as_json("certify", file, "-k4", "--exact", *argv)["components"]
    A, S = oracles.covariance(X), [[0, 1], [2, 3, 4], [5], [6, 7], [8]]
    ways = (list(itertools.chain(*way)) for n in range(1, 5) for way in itertools.combinations(S, n))
    best = max(np.linalg.eigvalsh(A[np.ix_(w, w)])[-1] for w in ways if len(w) <= 4)
    assert row["optimal"] is True
    assert [row["value"], row["upper_bound"]] == pytest.approx([best, best], rel=1e-9)
    (row,) = as_json("certify", file, "-k4", *argv)["components"]
    assert row["upper_bound"] >= best * (1 - 1e-9)
    as_json("fit", file, "-n1", "-k4", "-o", tmp_path / "l.csv", *argv)
    (row,) = as_json("certify", file, "--loadings", tmp_path / "l.csv", "--exact", *argv)["components"]
    assert row["gap"] == 0


def test_an_included_variable_counts_though_its_loading_is_zero(as_json, tmp_path):
    """x1 and x2 of 0.3 in place of x3: of two variables, none of which is x3, the bound would be less."""
    A = np.diag([1.0, 1, 0.3])
    A[0, 1] = A[1, 0] = 0.9
    np.save(tmp_path / "A.npy", A)
    (tmp_path / "l.csv").write_text("variable,component_1\nx1,1\nx2,0\nx3,0")
    argv = ["certify", tmp_path / "A.npy", "--covariance", "--loadings", tmp_path / "l.csv"]
    for exact in ([], ["--exact"]):
        (row,) = as_json(*argv, "--include", "x3", *exact)["components"]
        assert row["upper_bound"] >= 1
        (row,) = as_json(*argv, "--include", "x2", *exact)["components"]
        assert row["upper_bound"] >= 1.9


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--exclude", "x2"], "argument --exclude: component 1 of l.csv has 'x2'"),
        (["--signs", "1"], "argument --signs: component 2 of l.csv has both signs"),
        (["--exclude", "x10"], "argument --exclude: there is no variable 'x10'"),
        (["--count", "variables"], "argument --count: requires --groups"),
    ],
)
def test_given_loadings_that_do_not_respect_it(run, file, tmp_path, monkeypatch, argv, words):
    monkeypatch.chdir(tmp_path)
    rows = [f"x{j},{-1 if j < 3 else 0},{(-1) ** j}" for j in range(1, 10)]
    (tmp_path / "l.csv").write_text("\n".join(["variable,component_1,component_2", *rows]))
    assert words in one_error_line(run("certify", file, "--loadings", "l.csv", *argv))


def test_relaxation_can_be_asked_for_and_declined(as_json, pitprops):
    assert (
        "relaxation" not in as_json("certify", *pitprops, "-k3", "--no-relaxation")["components"][0]["bounds"]
    )
    assert "relaxation" in as_json("certify", *pitprops, "-k3", "--relaxation")["components"][0]["bounds"]


@pytest.mark.parametrize("extension", ["csv", "npz"])
@pytest.mark.parametrize("deflation", ["projection", "hotelling", "schur", "generalized"])
def test_loadings_that_fit_wrote_have_the_bounds_that_fit_gave(
    as_json, file, tmp_path, X, extension, deflation
):
    path, argv = tmp_path / f"l.{extension}", ("--deflation", deflation)
    fit = as_json("fit", file, "-k", "4,3,3", *argv, "--certify", "-o", path)["result"]["components"]
    document = as_json("certify", file, "--loadings", path, "--exact", *argv)
    quick = as_json("certify", file, "--loadings", path, *argv)["components"]
    for before, after, unsearched in zip(fit, document["components"], quick, strict=True):
        assert unsearched["upper_bound"] >= after["upper_bound"] * (1 - 1e-9)
        assert after["upper_bound"] == pytest.approx(before["upper_bound"], rel=1e-9)
        assert after["gap"] == pytest.approx(before["gap"], abs=1e-9)
        assert after["cardinality"] == before["cardinality"]
        assert after["cumulative"] == pytest.approx(before["explained_variance"], rel=1e-9)


def test_variances_of_given_loadings(as_json, output, tmp_path, pitprops):
    """In three definitions, by QR decompositions of explicit matrices; whatever their length and order."""
    names, A = spcacore.datasets.load_pitprops().names, spcacore.datasets.load_pitprops().correlation
    rng = np.random.default_rng(5)
    V = rng.standard_normal((13, 3)) * (rng.random((13, 3)) < 0.4)
    order = rng.permutation(13)
    with open(tmp_path / "l.csv", "w") as f:
        csv.writer(f).writerow(["variable", "a", "b", "c"])
        csv.writer(f).writerows([names[j], *V[j].tolist()] for j in order)
    components = as_json("certify", *pitprops, "--loadings", tmp_path / "l.csv")["components"]
    U = V / np.linalg.norm(V, axis=0)
    root = np.linalg.cholesky(A).T
    spanned = [oracles.spanned_variance(A, U[:, : t + 1]) for t in range(3)]
    expected = {
        "raw": np.einsum("jt,ji,it->t", U, A, U),
        "adjusted": np.diag(np.linalg.qr(root @ U)[1]) ** 2,
        "cumulative": np.diff(spanned, prepend=0),
    }
    for name, values in expected.items():
        np.testing.assert_allclose([c[name] for c in components], values, rtol=1e-10)
    B = A.copy()
    for t, component in enumerate(components):
        assert component["value"] == pytest.approx(U[:, t] @ B @ U[:, t])
        best = oracles.optimum(B, component["cardinality"])
        assert component["upper_bound"] >= best * (1 - 1e-12)
        exact = as_json("certify", *pitprops, "--loadings", tmp_path / "l.csv", "--exact")["components"][t]
        assert exact["upper_bound"] == pytest.approx(best, rel=1e-9)
        assert exact["gap"] == pytest.approx(1 - exact["value"] / best, rel=1e-6)
        B = oracles.deflated(B, U[:, t], "projection")
    lines = output("certify", *pitprops, "--loadings", tmp_path / "l.csv").splitlines()
    printed = next(line for line in lines if line.startswith("adjusted variance")).split()[2:]
    values = [*expected["adjusted"], expected["adjusted"].sum()]
    np.testing.assert_allclose(np.array(printed, float), values, rtol=5.001e-4)


def test_the_optimum_given_as_loadings_has_no_gap(as_json, tmp_path, pitprops):
    argv = ("--method", "branch_and_bound", "-k4", "-n2", "-o", tmp_path / "l.csv", "-q")
    as_json("fit", *pitprops, *argv)
    document = as_json("certify", *pitprops, "--loadings", tmp_path / "l.csv", "--exact")
    assert [component["gap"] for component in document["components"]] == [0, 0]


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        ([], "give either -k/--cardinality or --loadings"),
        (["-k", "3", "--loadings", "l.csv"], "give either -k/--cardinality or --loadings"),
        (["-k", "3", "--time-limit", "3"], "--time-limit: requires --exact"),
        (["-k", "3", "--deflation", "schur"], "--deflation: requires --loadings"),
        (["-k", "3", "--exact", "--relaxation"], "--relaxation: not with --exact"),
        (["-k", "14"], "-k/--cardinality: must be in [1, 13], not 14"),
        (["--loadings", "none.csv"], "cannot read none.csv: No such file or directory"),
        (["--loadings", "l.txt"], "--loadings: l.txt is neither .csv nor .npz"),
        (["--loadings", "short.csv"], "short.csv has 2 variables, "),
        (["--loadings", "other.csv"], "other.csv has no variable 'topdiam', as "),
        (["--loadings", "twice.csv"], "twice.csv has no variable 'topdiam', as "),
        (["--loadings", "zero.csv"], "component 2 of zero.csv has no loading that is not zero"),
        (["--loadings", "m.npz"], "argument --array: m.npz has no array 'loadings', but: X 2x2"),
    ],
)
def test_wrong_options_of_certify(run, pitprops, tmp_path, monkeypatch, argv, words):
    monkeypatch.chdir(tmp_path)
    names = spcacore.datasets.load_pitprops().names
    files = {
        "short": names[:2], "other": ["x", *names[1:]], "twice": [names[1], *names[1:]], "zero": names,
    }  # fmt: skip
    for name, variables in files.items():
        rows = [f"{variable},1,{0 if name == 'zero' else 2}" for variable in variables]
        (tmp_path / f"{name}.csv").write_text("\n".join(["variable,component_1,component_2", *rows]))
    np.savez(tmp_path / "m.npz", X=np.eye(2))
    (tmp_path / "l.txt").touch()
    assert words in one_error_line(run("certify", *pitprops, *argv))


def test_names_that_occur_twice_are_told_and_matched_in_their_order_only(run, as_json, tmp_path, X):
    names = ["a", "a", *"cdefghi"]
    np.savez(tmp_path / "m.npz", X=X, names=names)
    note = "several variables have the same name: 'a'; a name does not tell them apart"
    said = run("fit", tmp_path / "m.npz", "-k3", "-n1", "-o", tmp_path / "l.csv")[2]
    assert said == f"spcacore: note: {note}\n"
    assert as_json("info", tmp_path / "m.npz")["notes"] == [note]
    status, out, said = run("certify", tmp_path / "m.npz", "--loadings", tmp_path / "l.csv")
    assert (status, said) == (0, f"spcacore: note: {note}\n")
    assert "gap %" in out
    first, *lines = (tmp_path / "l.csv").read_text().splitlines()
    (tmp_path / "l.csv").write_text("\n".join([first, *lines[::-1]]))
    error = one_error_line(run("certify", tmp_path / "m.npz", "--loadings", tmp_path / "l.csv"))
    assert "variables cannot be matched: 'a' is the name of several" in error


FORMULAS = ["=SUM(A1)", "+1", "-1", "@x", "'=SUM(A1)", "''@x", "'quoted", "plain", "a=b"]


@pytest.mark.parametrize("raw", [False, True])
@pytest.mark.parametrize("turned", [1, -1])
def test_names_that_are_formulas_are_quoted_and_found_again(output, as_json, tmp_path, X, raw, turned):
    np.savez(tmp_path / "m.npz", X=X, names=FORMULAS)
    argv = ["-k9", "-n1", "-q", "-o", tmp_path / "l.csv"]
    output("fit", tmp_path / "m.npz", *argv, *["--raw-names"] * raw)
    with open(tmp_path / "l.csv", newline="") as file:
        first, *rows = csv.reader(file)
    written = [name for name, *_ in rows]
    assert written == (FORMULAS if raw else [f"'{name}" for name in FORMULAS[:6]] + FORMULAS[6:])
    with open(tmp_path / "l.csv", "w", newline="") as file:
        csv.writer(file).writerows([first, *rows[::turned]])
    found = as_json("certify", tmp_path / "m.npz", "--loadings", tmp_path / "l.csv")
    leading = np.linalg.eigvalsh(np.cov(X.T))[-1]
    np.testing.assert_allclose(found["components"][0]["raw"], leading, rtol=1e-6)


def test_names_of_samples_that_are_formulas_are_quoted(output, tmp_path, X):
    labels = ["=1+1", "+", "-x", "@", *(f"s{i}" for i in range(26))]
    lines = [",".join([label, *map(str, row)]) for label, row in zip(labels, X, strict=True)]
    (tmp_path / "m.csv").write_text("\n".join([",a,b,c,d,e,f,g,h,i", *lines]))
    for flags, mark in (([], "'"), (["--raw-names"], "")):
        output("fit", tmp_path / "m.csv", "-k3", "-q", "--scores", tmp_path / "s.csv", *flags)
        with open(tmp_path / "s.csv", newline="") as file:
            written = [row[0] for row in csv.reader(file)][1:]
        assert written == [mark + label for label in labels[:4]] + labels[4:]


@pytest.mark.parametrize("first", ["\t", "\r", "=", "+", "-", "@"])
@pytest.mark.parametrize("before", ["", "'", "''"])
def test_what_starts_a_formula_is_quoted(tmp_path, first, before):
    name = f"{before}{first}cmd"
    report.write_matrix(tmp_path / "l.csv", "variable", [name], np.ones((1, 1)), False)
    with open(tmp_path / "l.csv", newline="") as file:
        assert list(csv.reader(file))[1] == ["'" + name, "1.0"]


def test_a_total_beyond_the_numbers_leaves_out_the_shares(tmp_path, capfd):
    np.save(tmp_path / "m.npy", 1e200 * np.random.default_rng(0).standard_normal((9, 3)))
    np.savez(tmp_path / "l.npz", loadings=np.eye(3)[:, :2])
    assert cli.main(["certify", str(tmp_path / "m.npy"), "--loadings", str(tmp_path / "l.npz")]) == 0
    out, err = capfd.readouterr()
    assert "raw variance" in out
    assert "raw %" not in out
    assert err == "spcacore: warning: a variance exceeds the number range and is given as inf\n"
