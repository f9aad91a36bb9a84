"""`spcacore transform` and `spcacore compare`, and completions."""

import csv
import json
import shutil
import subprocess

import numpy as np
import pytest
from cli_tools import COMMAND, one_error_line, results, rows_of, saved
from click.shell_completion import ShellComplete

import spcacore
from spcacore.cli.options import COMMANDS, cli

P = 12  # columns of X


def table(path, X, names, order=None):
    order = range(len(names)) if order is None else order
    with open(path, "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([names[j] for j in order])
        writer.writerows([[repr(float(row[j])) for j in order] for row in X])
    return path


NAMES = [f"g{j}" for j in range(11)] + ["=x"]  # one that is quoted for spreadsheets


@pytest.mark.parametrize("kind", ["npz", "csv"])
@pytest.mark.parametrize("scale", [False, True])
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
    np.testing.assert_allclose(np.array(rows[1:], float)[:, 1:], expected, atol=1e-11)
    assert [row[0] for row in rows[1:]] == [str(i + 1) for i in range(10)]


def test_scores_by_loadings_without_means(run, tmp_path, X):
    file = table(tmp_path / "m.csv", X, NAMES)
    run("fit", file, "-n2", "-k5", "-q", "-o", tmp_path / "v.csv")
    with open(tmp_path / "v.csv", newline="") as f:
        rows = [row[:3] for row in csv.reader(f)]
    with open(tmp_path / "v.csv", "w", newline="") as f:
        csv.writer(f).writerows(rows)
    V = spcacore.sparse_pca(X, 2, cardinality=5).loadings
    for flags, Z in (
        ([], X - X.mean(axis=0)),
        (["--no-center"], X),
        (["--scale"], (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)),
    ):
        run("transform", file, "--loadings", tmp_path / "v.csv", *flags, "-o", tmp_path / "s.npz")
        np.testing.assert_allclose(results(tmp_path / "s.npz")["scores"], Z @ V, atol=1e-11)


def test_more_variables_than_the_loadings_have(run, as_json, tmp_path, X):
    table(tmp_path / "few.csv", X[:, :6], NAMES[:6])
    run("fit", tmp_path / "few.csv", "-n1", "-k3", "-q", "-o", tmp_path / "v.npz")
    file = table(tmp_path / "all.csv", X, NAMES, [7, 3, 1, 0, 11, 2, 5, 4])
    found = as_json("transform", file, "--loadings", tmp_path / "v.npz")
    V = results(tmp_path / "v.npz")["loadings"]
    np.testing.assert_allclose(found["scores"], (X[:, :6] - X[:, :6].mean(axis=0)) @ V, atol=1e-11)


def test_what_cannot_be_transformed(run, tmp_path, X):
    file = table(tmp_path / "m.csv", X, NAMES)
    run("fit", file, "-n1", "-k3", "-q", "-o", tmp_path / "v.npz")
    npz = ["--loadings", tmp_path / "v.npz"]
    for matrix, argv, words in [
        (table(tmp_path / "a.csv", X[:, 1:], NAMES[1:]), npz, "has no variable 'g0'"),
        (saved(tmp_path / "b.npy", X[:, 1:]), npz, "has 11 variables, "),
        (table(tmp_path / "c.csv", X, ["g0", *NAMES[:11]]), npz, "has no variable '=x'"),
        (
            table(tmp_path / "d.csv", np.hstack((X, X[:, :1])), [*NAMES, "g0"]),
            npz,
            "'g0' is the name of several",
        ),
        (file, [*npz, "--scale"], "argument --scale: "),
        (file, ["--loadings", tmp_path / "no.npz"], "cannot read"),
        (file, [*npz, "-o", tmp_path / "v.npz"], "it is the file of --loadings"),
        (saved(tmp_path / "e.npy", np.where(X > 2, np.nan, X)), npz, "is nan"),
        (file, [], "the following arguments are required: --loadings"),
    ]:
        assert words in one_error_line(run("transform", matrix, *argv))


def test_files_of_loadings_side_by_side(output, as_json, tmp_path, X):
    """The numbers of `compare`, in each form."""
    file = table(tmp_path / "m.csv", X, NAMES)
    V = {}
    for name, argv in {"a": ["-k3"], "b": ["-k6", "--method", "greedy"]}.items():
        output("fit", file, "-n2", "-q", *argv, "-o", tmp_path / f"{name}.csv")
        method = argv[2] if len(argv) > 1 else "tpower"
        V[name] = spcacore.sparse_pca(X, 2, cardinality=int(argv[0][2:]), method=method).loadings
    argv = ["compare", file, "--loadings", tmp_path / "a.csv", tmp_path / "b.csv", "--reference", "2"]
    expected = spcacore.compare(V, X, reference="b")
    assert str(expected) in output(*argv)
    found = as_json(*argv)
    assert found["reference"] == "b"
    for i, result in enumerate(found["results"]):
        for name, variance in result["explained_variance"].items():
            np.testing.assert_allclose(variance, expected.explained_variance[name][i], rtol=1e-12)
    np.testing.assert_allclose([m["angle"] for m in found["matched"]], np.concatenate(expected.angle))
    output(*argv, "-q", "-o", tmp_path / "c.csv")
    rows = rows_of(tmp_path / "c.csv")
    assert [row["result"] for row in rows] == ["a", "a", "b", "b"]
    np.testing.assert_allclose(
        [float(row["overlap"]) for row in rows], np.concatenate(expected.overlap), rtol=1e-12
    )
    output(*argv, "-q", "-o", tmp_path / "c.html")
    assert "<table" in (tmp_path / "c.html").read_text()


@pytest.mark.parametrize("kind", ["csv", "npz"])
@pytest.mark.parametrize(
    ("fitted", "same", "against", "words"),
    [
        (["--scale"], [], ["--no-center"], "argument --no-center: "),
        ([], [], ["--scale"], "says that its variables were not scaled"),
        (["--no-center"], ["--no-center"], None, ""),
        (["--no-center", "--scale"], ["--scale"], None, ""),
    ],
)
def test_loadings_say_what_the_fit_did(run, as_json, tmp_path, X, kind, fitted, same, against, words):
    """Without options as with those of the fit; a contradiction is refused."""
    file, path = table(tmp_path / "m.csv", X + 3, NAMES), tmp_path / f"v.{kind}"
    fit = as_json("fit", file, "-n2", "-k4", *fitted, "--certify", "-o", path)["result"]["components"]
    for argv in ([], same):
        found = [json.loads(run("certify", file, "--loadings", path, *argv, "--exact", "--json")[1])]
        found.append(json.loads(run("compare", file, "--loadings", path, *argv, "--json")[1]))
        for document in found:
            assert (document["center"], document["scale"]) == (
                "--no-center" not in fitted,
                "--scale" in fitted,
            )
        cumulative = [one["cumulative"] for one in found[0]["components"]]
        np.testing.assert_allclose(cumulative, [one["explained_variance"] for one in fit], rtol=1e-9)
        np.testing.assert_allclose(
            [one["gap"] for one in found[0]["components"]], [one["gap"] for one in fit], atol=1e-9
        )
    for command in ("certify", "compare") if against else ():
        assert words in one_error_line(run(command, file, "--loadings", path, *against))


@pytest.mark.parametrize("kind", ["csv", "npz"])
def test_loadings_say_that_they_are_of_a_covariance(as_json, pitprops, tmp_path, kind):
    path, A = tmp_path / f"v.{kind}", spcacore.datasets.load_pitprops().correlation
    as_json("fit", *pitprops, "-n2", "-k4", "-o", path)
    found = as_json("certify", pitprops[0], "--loadings", path)
    assert found["kind"] == "covariance"
    V = spcacore.sparse_pca(A, 2, cardinality=4, kind="covariance").loadings
    np.testing.assert_allclose([one["raw"] for one in found["components"]], np.diag(V.T @ A @ V))


def test_loadings_that_contradict_each_other(run, as_json, tmp_path, X):
    file = table(tmp_path / "m.csv", X, NAMES)
    for name, argv in (("a", ["--scale"]), ("b", [])):
        as_json("fit", file, "-n1", "-k3", *argv, "-o", tmp_path / f"{name}.csv")
    argv = ["compare", file, "--loadings", tmp_path / "a.csv", tmp_path / "b.csv"]
    assert "a.csv were scaled, those of" in one_error_line(run(*argv))
    assert as_json(*argv, "--scale")["scale"] is True


def test_what_cannot_be_compared(run, tmp_path, X):
    file = table(tmp_path / "m.csv", X, NAMES)
    run("fit", file, "-n1", "-k3", "-q", "-o", tmp_path / "v.csv")
    v = str(tmp_path / "v.csv")
    for argv, words in [
        (["--loadings", v, v], "--loadings: names a file twice"),
        (["--loadings", v, "--reference", "2"], "--reference: 2 is too many, of 1 files"),
        (["--loadings", v, "-o", tmp_path / "c.txt"], "unknown extension"),
        (["--loadings", tmp_path / "m.csv"], "argument --loadings"),
    ]:
        assert words in one_error_line(run("compare", file, *argv))


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", COMMANDS.keys()),
        ("t", {"transform"}),
        ("fit x.csv --orient", {"--orientation"}),
        ("fit x.csv --orientation ", {"rows", "columns"}),
        ("fit x.csv --method gre", {"greedy"}),
        ("fit --method=gre", {"greedy"}),
        ("path x.csv --criterion b", {"bic"}),
        ("--completion ", {"bash", "zsh", "fish"}),
    ],
)
def test_completions(line, words):
    """Of commands, options and choices."""
    *args, last = line.split(" ")
    found = ShellComplete(cli, {}, "spcacore", "_SPCACORE_COMPLETE").get_completions(args, last)
    assert {one.value for one in found} == set(words)


def test_files_are_completed_by_the_shell():
    complete = ShellComplete(cli, {}, "spcacore", "_SPCACORE_COMPLETE").get_completions
    for args in (["fit"], ["fit", "x.csv", "--output"], ["compare", "x.csv", "--loadings", "a.csv"]):
        assert [(one.type, one.value) for one in complete(args, "da")] == [("file", "da")]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_in_a_shell(output, tmp_path, shell):
    script = output("--completion", shell)
    assert "_SPCACORE_COMPLETE" in script
    if shell != "bash" or shutil.which(shell) is None or COMMAND[-1] == "spcacore.cli":
        return
    (tmp_path / ".script").write_text(script)
    call = 'COMP_WORDS=(spcacore fit x.csv --method gre); COMP_CWORD=4; _spcacore_completion "$1"'
    argv = ["bash", "-c", f'source .script; {call}; printf "%s\\n" "${{COMPREPLY[@]}}"', "bash", *COMMAND]
    done = subprocess.run(argv, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("greedy\n", "")


def test_completions_of_no_shell(run):
    assert "--completion: 'cmd' is not one of 'bash', 'zsh', 'fish'; see" in one_error_line(
        run("--completion", "cmd")
    )
