"""Matrices on which several loadings are sought together: made ones of ten kinds, and real ones.

Half of them are for tuning; the others are held back, to judge. A made matrix depends on its kind, order and
seed alone.
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pages
import real_sets


@dataclass(frozen=True)
class JointProblem:
    """A matrix, by the function that makes it, and how many loadings of how many nonzeros are sought."""

    name: str
    make: object
    r: int
    k: int
    held_back: bool


def _of(X):
    return np.cov(X, rowvar=False)


def _correlation(A):
    d = np.sqrt(np.diag(A))
    return A / np.outer(d, d)


def factors(p, rng, spread=0.0, sparse=0.0):
    """Several factors and noise; scales over so many powers of ten; a share of the loadings is zero."""
    q = max(3, p // 12)
    L = rng.standard_normal((p, q)) * np.geomspace(1.5, 0.4, q) * (rng.random((p, q)) >= sparse)
    A = _of(rng.standard_normal((4 * p, q)) @ L.T + rng.standard_normal((4 * p, p)))
    d = 10.0 ** (spread * (rng.random(p) - 0.5))
    return _correlation(A) if spread == 0 else A * np.outer(d, d)


def autoregressive(p, rng):
    A = 0.9 ** np.abs(np.subtract.outer(np.arange(p), np.arange(p)))
    d = 1 + 0.3 * rng.random(p)
    return A * np.outer(d, d)


def blocks(p, rng):
    """Groups of unequal size, correlated within and a little across."""
    group = rng.choice(max(4, p // 15), p, p=None)
    A = np.where(group[:, None] == group, 0.6, 0.15)
    np.fill_diagonal(A, 1)
    X = rng.multivariate_normal(np.zeros(p), A, 2 * p, method="cholesky")
    return _correlation(_of(X))


def walks(p, rng):
    return _of(np.cumsum(rng.standard_normal((p // 2 + 5, p)), axis=1))


def wishart(p, rng, rows=1.0):
    return _of(rng.standard_normal((max(8, int(rows * p)), p)))


def curves(p, rng):
    x = np.linspace(0, 1, p)
    K = np.exp(-(np.subtract.outer(x, x) ** 2) / 0.005) * np.outer(1 + x, 1 + x)
    L = np.linalg.cholesky(K + 1e-8 * np.eye(p))
    return _of((L @ rng.standard_normal((p, 60))).T + 0.3 * rng.standard_normal((60, p)))


def spikes(p, rng):
    """Sparse directions that overlap, near the noise of as many rows as half the variables."""
    V = np.where(rng.random((8, p)) < 20 / p, rng.choice([-1, 1], (8, p)), 0) / np.sqrt(20)
    n = max(60, p // 2)
    return _of(rng.standard_normal((n, p)) + (rng.standard_normal((n, 8)) * np.linspace(3, 1.5, 8)) @ V)


MADE = {
    "factors": factors,
    "factors of many scales": lambda p, rng: factors(p, rng, 3.0),
    "sparse factors": lambda p, rng: factors(p, rng, 0.8, 0.7),
    "autoregressive": autoregressive,
    "blocks": blocks,
    "random walks": walks,
    "Wishart": wishart,
    "Wishart, few rows": lambda p, rng: wishart(p, rng, 0.2),
    "curves": curves,
    "spikes": spikes,
}  # order, number of loadings, nonzeros: the first two for tuning, the others held back
SIZES = {
    "factors": ((40, 4, 6), (500, 8, 20), (120, 5, 10), (1000, 6, 30)),
    "factors of many scales": ((100, 5, 8), (300, 6, 15), (60, 3, 5), (500, 4, 10)),
    "sparse factors": ((60, 6, 5), (1000, 5, 20), (30, 4, 4), (400, 8, 15)),
    "autoregressive": ((50, 3, 8), (200, 6, 10), (100, 8, 6), (400, 4, 25)),
    "blocks": ((80, 5, 7), (500, 10, 20), (150, 7, 12), (300, 3, 40)),
    "random walks": ((30, 2, 5), (150, 5, 12), (80, 4, 10), (500, 3, 20)),
    "Wishart": ((25, 4, 4), (100, 5, 10), (50, 3, 8), (200, 6, 8)),
    "Wishart, few rows": ((60, 5, 6), (500, 5, 20), (120, 4, 15), (2000, 3, 20)),
    "curves": ((100, 4, 10), (300, 8, 12), (60, 6, 5), (500, 5, 30)),
    "spikes": ((100, 4, 20), (1000, 8, 20), (400, 5, 20), (2000, 10, 20)),
}


def _uci(name):
    return lambda: pages.arrays("uci_correlations.npz")[name]


def _drosophila(scaled):
    def make():
        A = np.cov(pages.arrays("drosophila_atlas.npz")["X"].astype(float).T)
        return _correlation(A) if scaled else A

    return make


def _of_set(folder, name, p, scaled):
    """The covariance or correlation matrix of the p variables of largest variance."""

    def make():
        X = real_sets.load(name, folder)
        X = np.asarray(X.todense() if hasattr(X, "todense") else X, float)
        variance = X.var(axis=0)
        few = np.sort(np.argsort(-variance, kind="stable")[:p])
        A = _of(X[:, few[variance[few] > 0]])
        return _correlation(A) if scaled else A

    return make


def made():
    out = []
    for number, (kind, sizes) in enumerate(SIZES.items()):
        for place, (p, r, k) in enumerate(sizes):

            def make(kind=kind, p=p, seed=(number, place)):
                return MADE[kind](p, np.random.default_rng(seed))

            out.append(JointProblem(f"{kind}, {p}", make, r, k, place > 1))
    return out


def real(folder):
    """Of the literature, and of the sets of `real_sets.py` that the folder holds."""
    from spcacore.datasets import load_pitprops

    def stocks():
        return pages.arrays("snp500_correlation.npz")["A"]

    out = [
        JointProblem("pit props", lambda: load_pitprops().correlation, 4, 3, False),
        JointProblem("pit props, 6", lambda: load_pitprops().correlation, 6, 4, True),
        JointProblem("geography", _uci("geography"), 5, 6, False),
        JointProblem("geography, 3", _uci("geography"), 3, 12, True),
        JointProblem("communities", _uci("communities"), 6, 10, True),
        JointProblem("communities, 3", _uci("communities"), 3, 5, False),
        JointProblem("gait", _uci("gait"), 5, 10, True),
        JointProblem("Drosophila, correlation", _drosophila(True), 6, 5, False),
        JointProblem("Drosophila, covariance", _drosophila(False), 4, 10, True),
        JointProblem("S&P 500", stocks, 4, 30, False),
        JointProblem("S&P 500, 8", stocks, 8, 10, True),
    ]
    sets = (
        ("golub", 500, 5, 20, True, False),
        ("blogs", 1000, 5, 10, False, False),
        ("molecules", 300, 4, 8, True, False),
        ("blood pressure", 500, 3, 15, False, False),
        ("microsatellites", 500, 6, 12, False, True),
        ("more molecules", 300, 5, 6, True, True),
        ("appliances", 500, 4, 20, False, True),
        ("mixed cells", 1000, 6, 15, False, True),
        ("microbes", 400, 5, 10, True, True),
        ("doc strings", 2000, 4, 20, False, True),
    )
    for name, p, r, k, scaled, held_back in sets:
        if (Path(folder) / f"{name}.npz").exists():
            title = f"{name}, {p}{', scaled' * scaled}"
            out.append(JointProblem(title, _of_set(Path(folder), name, p, scaled), r, k, held_back))
    return out
