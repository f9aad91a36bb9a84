"""Data files of tests and benchmarks: those of tests/data, and those of a folder that a variable names.

The licenses of the latter do not let them be copied; CONTRIBUTING.md says where they are to be had.
"""

import os
from pathlib import Path

import numpy as np

DATA = Path(__file__).resolve().parent / "data"
VARIABLE = "SPCACORE_TEST_DATA"


def data_file(name):
    """The path of a file; FileNotFoundError where it is not on this machine."""
    folder = os.environ.get(VARIABLE)
    if folder and not Path(folder).is_dir():
        raise NotADirectoryError(f"{VARIABLE} names {folder!r}, which is not a folder")
    for path in (DATA / name, *([Path(folder) / name] if folder else [])):
        if path.exists():
            return path
    raise FileNotFoundError(f"needs {name}, see CONTRIBUTING.md, in the folder that {VARIABLE} names")


def arrays(name):
    """The arrays of an .npz file, which is closed."""
    with np.load(data_file(name)) as file:
        return dict(file)
