"""Help texts, and what the command imports."""

import inspect
import re
import sys

import pytest
from cli_tools import one_error_line
from click.shell_completion import ShellComplete

import spcacore
from spcacore import cli
from spcacore.cli import help, options
from spcacore.methods import METHODS

RECORDS = (*METHODS.values(), spcacore.Choice)  # whose fields are options of the command


def test_version(run):
    from importlib.metadata import version

    assert run("--version") == (0, f"spcacore {version('spcacore')}\n", "")


@pytest.mark.parametrize("command", options.COMMANDS)
def test_help_names_the_command_every_option_and_every_format(capsys, command):
    out = ""
    for argv in (["-h"], [command, "--help"]):
        assert cli.main(argv) == 0
        out += capsys.readouterr().out
    flags = [param.opts[-1] for param in options.COMMANDS[command].params]
    for word in (f"Usage: spcacore {command} [OPTIONS] FILE", ".parquet", ".h5ad", ".npz", *flags[1:]):
        assert word in out
    assert re.search(rf"^  {command}  +[A-Z][^.]*[.]$", out, re.M)
    assert max(map(len, out.split("file formats:")[1].splitlines())) <= 112  # two before each


def test_every_option_has_a_help_text_and_the_name_that_python_has():
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
        assert not there & {"components", "seed", "jobs", "folds", "select", "resamples"}


@pytest.mark.parametrize(
    ("command", "calls"),
    [
        ("path", [("-k1:3",), ("-k1:3", "--select", "cv"), ("-k2", "--select", "cv")]),
        ("certify", [("-k3",)]),
        ("transform", [("--loadings", "l.csv")]),
        ("info", [()]),
    ],
)
def test_help_names_every_field_of_the_json(as_json, file, tmp_path, monkeypatch, command, calls):
    """And those that it names are there."""
    monkeypatch.chdir(tmp_path)
    as_json("fit", file, "-k3", "-n1", "-o", "l.csv")
    found = set().union(*(as_json(command, file, *argv) for argv in calls))
    if command == "path":
        found |= set().union(*(as_json(command, file, *argv)["result"] for argv in calls))
    text = help.PAGES["json.matrix"] + help.PAGES[f"{command}.json"] + "result"
    assert found <= set(re.findall(r"[a-z]\w*", text))
    assert {*re.findall(r"[a-z]\w*_\w+", help.PAGES[f"{command}.json"])} <= found | {"upper_bound"}


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", options.COMMANDS.keys()),
        ("t", {"transform"}),
        ("fit x.csv --orient", {"--orientation"}),
        ("fit x.csv --orientation ", {"rows", "columns"}),
        ("fit --method=gre", {"greedy"}),
        ("path x.csv --criterion b", {"bic"}),
        ("fit da", {"da"}),  # a file, which the shell completes
        ("compare x.csv --loadings a.csv da", {"da"}),
    ],
)
def test_completions(line, words):
    """Of commands, options and choices."""
    *args, last = line.split(" ")
    found = ShellComplete(options.cli, {}, "spcacore", "_SPCACORE_COMPLETE").get_completions(args, last)
    assert {one.value for one in found} == set(words)


def test_the_script_of_completions_for_a_shell(run, monkeypatch):
    monkeypatch.setenv("_SPCACORE_COMPLETE", "bash_source")
    assert "_SPCACORE_COMPLETE" in run()[1]


def test_a_file_name_as_the_command_gets_the_right_advice(run):
    for argv, words in (
        (["data.csv"], "No such command 'data.csv'; to analyze a file: spcacore fit FILE"),
        (["fit"], "Missing argument 'FILE'; see spcacore fit --help"),
        (["--nonsense"], "there is no option --nonsense; see spcacore --help"),
        *(
            (["fit", "data.csv", f"--{theirs}"], f"no option --{theirs}; do you mean --{here}?")
            for theirs, here in (
                ("sep", "delimiter"),
                ("dec", "decimal"),
                ("index-col", "index-column"),
                ("index", "index-column"),
                ("transpose", "orientation"),
                ("out", "output"),
                ("correlation", "covariance"),
            )
        ),
        (["info", "data.csv", "--scale"], "there is no option --scale; see spcacore info --help"),
    ):
        assert words in one_error_line(run(*argv))


@pytest.mark.parametrize("argv", [["fit", "missing.csv"], ["certify", "-k0"]])
def test_without_a_stderr_errors_do_not_go_to_stdout(monkeypatch, capsys, argv):
    monkeypatch.setattr(sys, "stderr", None)
    assert cli.main(argv) == 2
    assert capsys.readouterr().out == ""
