"""What the tests of the command share: ways to run it, and a matrix in a file."""

import csv
import json
from importlib.util import find_spec

import numpy as np
import pytest
import scipy.io
import scipy.sparse

import spcacore
from spcacore import cli

if any(find_spec(package) is None for package in ("click", "pandas")):
    collect_ignore_glob = ["test_*.py"]
else:
    from cli_tools import made


@pytest.fixture
def run(capsys):
    """main() in this process: exit status, stdout, stderr."""

    def call(*argv):
        status = cli.main([str(a) for a in argv])
        return status, *capsys.readouterr()

    return call


@pytest.fixture
def counts():
    return scipy.sparse.random(40, 15, density=0.3, format="csr", random_state=4)


@pytest.fixture
def output(run):
    """What a command that succeeds in silence has printed."""

    def call(*argv):
        status, out, err = run(*argv)
        assert (status, err) == (0, "")
        return out

    return call


@pytest.fixture
def as_json(output):
    def call(*argv):
        out = output(*argv, "--json")
        assert out.count("\n") == 1
        return json.loads(out, parse_constant=pytest.fail)

    return call


@pytest.fixture
def X(request):
    return made(getattr(request.module, "P", 9))


@pytest.fixture
def file(tmp_path, X):
    np.save(tmp_path / "m.npy", X)
    return tmp_path / "m.npy"


@pytest.fixture
def pitprops(tmp_path):
    """The correlations as a file with names, and how to read it."""
    data = spcacore.datasets.load_pitprops()
    with open(tmp_path / "pitprops.csv", "w") as f:
        writer = csv.writer(f)
        writer.writerow(["", *data.names])
        writer.writerows(
            [name, *row] for name, row in zip(data.names, data.correlation.tolist(), strict=True)
        )
    return tmp_path / "pitprops.csv", "--covariance"
