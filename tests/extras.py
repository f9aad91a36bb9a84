"""Packages that some tests compare with and the library does not need: a test that lacks one is skipped."""

import importlib
import importlib.util
import sys
from contextlib import contextmanager
from functools import cache
from pathlib import Path

import numpy as np
import pytest

EXAMPLES = Path(__file__).resolve().parents[1] / "docs" / "examples"
PACKAGES = {  # what is imported: what is installed
    "anndata": "anndata",
    "click": "click",
    "cvxpy": "cvxpy",
    "dask": "dask",
    "distributed": "distributed",
    "factor_analyzer": "factor-analyzer",
    "h5py": "h5py",
    "matplotlib": "matplotlib",
    "pandas": "pandas",
    "polars": "polars",
    "pyarrow": "pyarrow",
    "scanpy": "scanpy",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "tqdm": "tqdm",
    "xarray": "xarray",
    "zarr": "zarr",
}


def lacking(error):
    """The package for want of which an import failed, or None if the error is another."""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and error.name in PACKAGES:
            return PACKAGES[error.name]
        error = error.__context__
    return None


@contextmanager
def skipping():
    """Skips the test where what is done needs a package that is not installed."""
    try:
        yield
    except ImportError as error:
        package = lacking(error)
        if package is None:
            raise
        pytest.skip(f"needs {package}")


class Absent:
    """What is not installed: its first use skips the test."""

    def __init__(self, package):
        self._package = package

    def __call__(self, *args, **kwargs):
        pytest.skip(f"needs {self._package}")

    def __getattr__(self, name):
        if name.startswith("_"):  # pytest looks for marks
            raise AttributeError(name)
        pytest.skip(f"needs {self._package}")


def optional(module, name=None):
    """A module, or what it has of that name; a stand-in where its package is not installed."""
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != module.partition(".")[0] and not module.startswith("spcacore."):
            raise  # it is there, but something that it needs is not
        return Absent(PACKAGES[error.name])
    return found if name is None else getattr(found, name)


@cache
def example(name):
    """A script of docs/examples as a module."""
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with skipping():
        spec.loader.exec_module(module)
    return module


def drawn(module, result, ink=0.01):
    """The picture of an example, drawn; warnings are errors."""
    FigureCanvasAgg = optional("matplotlib.backends.backend_agg", "FigureCanvasAgg")
    with skipping():
        figure = module.picture(result)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    assert np.mean(np.asarray(canvas.buffer_rgba())[..., :3].min(axis=2) < 200) > ink  # something is on it
    return figure
