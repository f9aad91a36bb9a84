"""Help texts, and what the command imports."""

import inspect
import re

import pytest
from processes import output_of

import spcacore
from spcacore import cli
from spcacore.cli import help, options
from spcacore.methods import METHODS

RECORDS = (*METHODS.values(), spcacore.Choice)  # whose fields are options of the command


def test_version(run):
    from importlib.metadata import version

    assert run("--version") == (0, f"spcacore {version('spcacore')}\n", "")


@pytest.mark.parametrize("argv", [["--help"], ["-h"], ["fit", "--help"]])
def test_help_names_every_option_and_an_example(capsys, argv):
    assert cli.main(argv) == 0
    out, err = capsys.readouterr()
    assert err == ""
    words = ["spcacore fit FILE", "--version", "variance"]
    if argv[0] == "fit":
        words = [
            "--components", "--cardinality", "--deflation", "--no-center", "--scale", "--covariance",
            "--orientation", "--no-header", "--no-row-names", "--names", "--array", "--seed", "--max-iter",
            "--tol", "--float32", "--output", "--scores", "--quiet", "-k 7,4,4", ".mtx", ".npz",
        ]  # fmt: skip
    for word in words:
        assert word in out


def test_every_option_has_a_help_text_and_the_name_that_python_has():
    known = {"file", "help", "json", "quiet", "output"}
    for command in options.COMMANDS.values():
        for param in command.params:
            assert param.name == "file" or param.param_type_name == "argument" or param.help
    shared = {
        "fit": spcacore.sparse_pca, "path": spcacore.select_sparsity, "stability": spcacore.stability,
    }  # fmt: skip
    for name, function in shared.items():
        there = {param.name for param in options.COMMANDS[name].params}
        taken = {*inspect.signature(function).parameters, *inspect.signature(spcacore.sparse_pca).parameters}
        taken |= {field for record in RECORDS for field in inspect.signature(record).parameters}
        assert len(there & taken) > 12
        assert not there & {"components", "seed", "jobs", "folds", "select", "resamples"} - known


@pytest.mark.parametrize("command", options.COMMANDS)
def test_help_of_each_command(capsys, command):
    assert cli.main([command, "--help"]) == 0
    out = capsys.readouterr().out
    for word in (f"usage: spcacore {command} FILE [options]", ".parquet", ".h5ad", "--json", "--orientation"):
        assert word in out
    assert max(map(len, out.split("file formats:")[1].splitlines())) <= 110


def test_help_names_every_field_of_the_json(capsys, as_json, file, tmp_path):
    """And those that it names are there."""
    as_json("fit", file, "-k3", "-n1", "-o", tmp_path / "l.csv")
    described = set(re.findall(r"[a-z]\w*", help.PAGES["json.matrix"]))
    for command, text, calls in (
        ("fit", help.PAGES["fit.json"] + help.PAGES["json.result"], [("-k3", "-n1", "--certify")]),
        (
            "path",
            help.PAGES["path.json"] + help.PAGES["json.result"],
            [("-k1:3",), ("-k1:3", "--select", "cv"), ("-k2/3", "--select", "cv")],
        ),
        (
            "stability",
            help.PAGES["stability.json"] + help.PAGES["json.result"],
            [
                ("-k3", "-n1", "--resamples", "4"),
                ("--method", "sparse_cca", "--other", file, "--l1-bound", "1.5", "--resamples", "4"),
            ],
        ),
        ("certify", help.PAGES["certify.json"], [("-k3", "--exact"), ("--loadings", tmp_path / "l.csv")]),
        ("transform", help.PAGES["transform.json"], [("--loadings", tmp_path / "l.csv")]),
        ("compare", help.PAGES["compare.json"], [("--loadings", tmp_path / "l.csv")]),
        ("info", help.PAGES["info.json"], [()]),
    ):
        words, found = described | set(re.findall(r"[a-z]\w*", text)), set()
        for argv in calls:
            fields(as_json(command, file, *argv), found)
        if command == "info":
            fields(as_json("info", "--build"), found)
        assert found - {"reading", "computing", "branch and bound"} <= words
        named = {word for word in words if "_" in word} - {"l1_bound"}
        assert named <= found | (set() if command != "path" else {"n_iter"})
    capsys.readouterr()


def fields(value, found):
    """The names of all fields, however deep."""
    if isinstance(value, dict):
        found |= set(value)
    for entry in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        fields(entry, found)


def test_help_lists_the_commands(capsys):
    assert cli.main(["--help"]) == 0
    out = capsys.readouterr().out
    assert [line.split()[1] for line in out.splitlines() if "FILE  " in line] == [
        "info",
        "fit",
        "path",
        "stability",
        "certify",
        "transform",
        "compare",
    ]


def test_the_command_imports_what_it_needs_and_no_more():
    script = (
        "import sys; from spcacore.cli import options;"
        "print(*{'matplotlib', 'pandas', 'pyarrow', 'h5py', 'spcacore.plot', "
        "'spcacore.cli.info'} & set(sys.modules))"
    )
    assert output_of(script) == "\n"
