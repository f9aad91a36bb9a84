"""What the tests of pictures share: a clean matplotlib, loadings with zeros, and what was drawn."""

import numpy as np
import pytest

import spcacore

matplotlib = pytest.importorskip("matplotlib", reason="needs matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot  # noqa: E402

PROPS = spcacore.datasets.load_pitprops()
NASTY = ("$a_1$ b$", "_under_score", "größe λ ∑", "line\nbreak", "%d \\frac{ $\\frac{$", "x" * 60)


@pytest.fixture(autouse=True)
def closed_figures():
    pyplot.close("all")  # what others left open is not counted
    with matplotlib.style.context("default"):
        yield
    pyplot.close("all")


def sparse(seed, p, r, share=0.4):
    """Loadings with zeros, of which some variables have nothing else."""
    rng = np.random.default_rng(seed)
    V = rng.standard_normal((p, r)) * (rng.random((p, r)) < share)
    V[rng.integers(p)] = 0
    V[0, 0] = 1.5
    return V


def texts(labels):
    return [label.get_text() for label in labels]


def drawn(ax):
    """The picture as numbers in [0, 1]; a warning while drawing is an error."""
    ax.figure.canvas.draw()
    return np.asarray(ax.figure.canvas.buffer_rgba())[..., :3] / 255


def stand_in(values=(1, 2, 4, 8, 16, 32, 64), **more):
    values = np.array(values)
    shares = np.outer(1 - np.exp(-values / 6), [0.3, 0.2])
    fields = {"explained_variance_ratio": shares, "dense_ratio": np.array([0.32, 0.21])}
    return made_of(spcacore.SparsityPath, {"parameter": "cardinality", "values": values, **fields, **more})


def made_of(kind, fields):
    """A result with some of its fields."""
    found = object.__new__(kind)
    found.__dict__.update(fields)
    return found


def selection(**more):
    values = np.array([1, 2, 4, 8, 16])
    score = np.array([0.1, 0.3, 0.36, 0.4, 0.37])
    fields = {"criterion": "cv", "score": score, "standard_error": np.full(5, 0.05), "best": 8, "one_se": 4}
    known = {"parameter": "cardinality", "values": values, "scores": None, "chosen": 4, **fields, **more}
    return made_of(spcacore.SparsitySelection, known)


def heights(ax):
    return {bars.get_label(): np.array([bar.get_height() for bar in bars]) / 100 for bars in ax.containers}


def eigenvalue_shares(A, r):
    return np.linalg.eigvalsh(A)[::-1][:r] / np.trace(A)
