"""What the tests of the command share: how it is called, and what it wrote."""

import csv
import sys
from pathlib import Path

import flat
import numpy as np

from spcacore.cli import options, reading

SCRIPT = Path(sys.executable).parent / "spcacore"
COMMAND = [str(SCRIPT)] if SCRIPT.exists() else [sys.executable, "-m", "spcacore.cli"]


def saved(path, array):
    np.save(path, array)
    return path


def results(path):
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def rows_of(path):
    """The lines of a table below its first, by the names in that."""
    with open(path, encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def one_error_line(outcome):
    status, out, err = outcome
    assert (status, out) == (2, "")
    assert err.startswith("spcacore: error: ")
    assert err.endswith("\n")
    assert err.count("\n") == 1
    return err


OPTIONS = ("-n", "3", "-k", "5,3,4")


def api(matrix, **options):
    return flat.sparse_pca(matrix, 3, cardinality=[5, 3, 4], **options)


def loadings_of(components, p):
    """Of lists of the nonzero entries of each component."""
    V = np.zeros((p, len(components)))
    for t, component in enumerate(components):
        for entry in component:
            V[entry["index"], t] = entry["loading"]
    return V


def made(p):
    """30 samples of p variables, of which the first four go together."""
    rng = np.random.default_rng(3)
    data = rng.standard_normal((30, p)) * np.linspace(1, 3, p) + rng.standard_normal(p)
    data[:, :4] += 3 * rng.standard_normal((30, 1))
    return data


def read(path, *argv):
    """A file as the command reads it."""
    return read_and_told(path, *argv)[0]


def parsed(command, *argv):
    """What the command makes of these arguments."""
    one = options.COMMANDS[command]
    return options.arguments(one, one.make_context(command, list(map(str, argv))).params)


def read_and_told(path, *argv):
    """A file as the command reads it, and the notes on it."""
    args = parsed("fit", path, *argv)
    return reading.read(args), " ".join(args.notes)
