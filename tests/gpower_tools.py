"""What the tests of generalized power share."""

import warnings

import numpy as np
from in_turn import SEEDS
from oracles import centered

NORMS = ["l1", "l0"]
seeds = SEEDS


def data(seed, n=20, p=12, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * rng.uniform(0.5, 2, p)
    X += 2 * rng.standard_normal((n, 1)) * rng.uniform(-1, 1, p)
    return centered(X).astype(dtype)


def shrunk(c, gamma, norm):
    return np.where(c**2 > gamma, c, 0) if norm == "l0" else np.sign(c) * np.maximum(abs(c) - gamma, 0)


def bound(F, norm):
    return np.linalg.norm(F, axis=0).max() ** (1 + (norm == "l0"))


def unconverged(call, *args, **options):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not converged")
        return call(*args, **options)
