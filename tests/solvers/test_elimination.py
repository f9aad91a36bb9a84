"""The bound by strong variables, against enumeration and a planted component."""

from fractions import Fraction

import flat
import numpy as np
import pytest
from in_turn import examples
from oracles import optimum

from spcacore import datasets, optimality_bound, sparse_pca, tpower
from spcacore.solvers import certificates, elimination, exact
from spcacore.solvers.elimination import strong_variables_bound


class Matrix:
    """What the bound asks of an operator."""

    symmetric_form, by_passes, in_memory, t, m = True, False, True, 0, 1
    dtype = np.dtype(np.float64)

    def __init__(self, A):
        self.A, self.p = A, len(A)

    def submatrix(self, index):
        return self.A[np.ix_(index, index)]

    def apply(self, index, x):
        return self.A[:, index] @ x


def bounded(A, k, rounding=0.0, below=np.inf, hook=None, **search):
    """The bound of a matrix, and the variables that are not left out."""
    d = A.diagonal().copy()
    return strong_variables_bound(Matrix(A), d, np.sqrt(d), k, rounding, below, hook, **search)


def scatter(rng):
    """A semidefinite matrix of up to twelve variables, of which some are strong, or go together."""
    p, n = int(rng.integers(2, 13)), int(rng.integers(1, 20))
    X = rng.standard_normal((n, p)) * np.exp(rng.uniform(0, 2) * rng.standard_normal(p))
    for _ in range(rng.integers(3)):
        some = rng.permutation(p)[: rng.integers(1, p + 1)]
        X[:, some] += rng.exponential(1.5) * rng.standard_normal((n, 1)) * rng.choice([-1, 1], len(some))
    A = X.T @ X
    return A / A.max()


@pytest.mark.parametrize("seeds", [range(60), pytest.param(range(60, 5060), marks=pytest.mark.slow)], ids=str)
def test_no_support_is_above_the_bound(seeds, monkeypatch):
    """Whichever variables are strong, and however short the tree; some bounds are the optimum itself, and
    some variables are left out on the way, more if the optimum is known."""
    proved, between, outside, known = 0, 0, 0, 0
    for seed in seeds:
        rng = np.random.default_rng([seed, 31])
        A = scatter(rng)
        p = len(A)
        k = int(rng.integers(2, p + 1))
        monkeypatch.setattr(elimination, "STRONG_VARIABLES", (int(rng.integers(1, p)),))
        monkeypatch.setattr(elimination, "STRONG_NODES", int(rng.choice([0, 1, 2000])))
        monkeypatch.setattr(elimination, "STRONG_CHUNK", int(rng.integers(1, 5)))
        monkeypatch.setattr(elimination, "STRONG_STEPS", int(rng.integers(1, 4)))
        monkeypatch.setattr(elimination, "STRONG_GROUPS", int(rng.integers(1, 4)))
        monkeypatch.setattr(elimination, "THRESHOLD_COLUMNS", int(rng.integers(1, 4)))
        best = optimum(A, k)
        bound, kept = bounded(A, k)
        outside += p - len(kept)
        assert bound >= best * (1 - 1e-13), seed
        proved += bound <= best * (1 + 1e-10)
        most = min(np.linalg.eigvalsh(A)[-1], np.sort(np.diag(A))[-k:].sum())
        between += best * (1 + 1e-10) < bound < most * 0.999
        bound, kept = bounded(A, k, known=best)
        assert bound >= best * (1 - 1e-13), seed
        known += p - len(kept)
    assert proved > 0.2 * len(seeds)
    assert outside > 15 + 0.15 * len(seeds)
    assert known > 1.2 * outside
    assert between > 0.02 * len(seeds)


def test_weak_variables_that_have_little_in_common(monkeypatch):
    """One of variance 4 by itself, and others, of which five explain 5 - 4 (1 - .05) = 1.2."""
    A = np.full((30, 30), 0.05) + 0.95 * np.eye(30)
    A[0], A[:, 0] = 0, 0
    A[0, 0] = 4
    monkeypatch.setattr(elimination, "STRONG_VARIABLES", (1,))
    for below in (np.inf, 4.5):
        assert bounded(A, 5, below=below)[0] == pytest.approx(4, rel=0.01)
    assert bounded(A, 5, below=1.1)[0] == np.inf
    pair = np.diag([1.5, 1, 1, 1])  # of two weak ones alone, which no step finds
    pair[2, 3] = pair[3, 2] = -0.9
    assert bounded(pair, 2)[0] == pytest.approx(1.9)
    monkeypatch.setattr(elimination, "STRONG_WORK", 0)  # where that takes too long
    assert bounded(A, 5, below=4.5)[0] == np.inf
    assert bounded(A, 5)[0] == pytest.approx(5, rel=0.01)


def test_strong_variables_alone(monkeypatch):
    """By trees, and from the worst eigenpairs that LAPACK may return; steps end where none climbs."""
    monkeypatch.setattr(elimination, "STRONG_STEPS", 50)
    eigh = np.linalg.eigh
    for seed in range(examples(20)):
        A = scatter(np.random.default_rng([seed, 41]))
        k = 1 + seed % len(A)
        value, found = elimination._climb(Matrix(A), np.arange(k))
        best, vectors = (M[..., -1] for M in eigh(A[np.ix_(found, found)]))
        after = np.argsort(-np.abs(A[:, found] @ vectors))[:k]
        assert value == best >= np.linalg.eigvalsh(A[np.ix_(after, after)])[-1] * (1 - 1e-13), seed
        f, _ = elimination._by_strong_variables(A, found, k, 2000, None, True)
        for j in range(2, k + 1):
            assert f[j] == pytest.approx(optimum(A, j), rel=1e-9), seed
        assert f[0] == 0
    one, eps = np.diag(np.append(1.0, np.full(127, 1e-3))), np.finfo(float).eps

    def off(A):
        values, vectors = eigh(A)
        return values - len(A) * eps / 2 * values[-1], vectors * (1 - len(A) * eps)

    monkeypatch.setattr(np.linalg, "eigh", off)
    f, _ = elimination._by_strong_variables(one, np.arange(2), 2, 0, None, False)
    assert f[1] >= 1


@pytest.mark.parametrize("unit", [25.0, 0.04])
@pytest.mark.parametrize("k", [2, 4, 6])
def test_entries_are_off_by_all_that_is_told(k, unit, monkeypatch):
    """The best support is half of strong and half of weak variables: the bound is above it by a square."""
    monkeypatch.setattr(elimination, "STRONG_STEPS", 1)
    monkeypatch.setattr(elimination, "STRONG_VARIABLES", (k,))
    monkeypatch.setattr(elimination, "STRONG_GROUPS", k)
    h, share = k // 2, 1e-3
    A = np.diag(np.append(1 + 1e-9 * np.arange(k, 0, -1), np.ones(8 - h)))
    A[:h, k : k + h] = A[k : k + h, :h] = 0.5 / h
    A *= unit
    error = np.sqrt(np.diag(A) * share)
    best = optimum(A + np.outer(error, error), k)
    assert best <= bounded(A, k, share)[0] <= best * (1 + k * share**2)


@pytest.mark.parametrize(("k", "low", "strong"), [(100, 5, 100), (200, 7, 200), (200, 1, 200), (100, 5, 199)])
def test_a_bound_whose_sums_are_rounded_down(k, low, strong, monkeypatch):
    """k equal variables have the largest value, k (1 + low 2^-26)^2, whose last bits their sum loses.

    All are weak, or nearly all strong.
    """
    monkeypatch.setattr(elimination, "STRONG_NODES", 0)
    monkeypatch.setattr(elimination, "STRONG_VARIABLES", (strong,))
    variance = (1 + low * 2.0**-26) ** 2
    assert Fraction(variance) == (1 + Fraction(low, 2**26)) ** 2
    A = np.zeros((2 * k, 2 * k))
    A[k:, k:] = variance
    A[range(k), range(k)] = 1.5
    bound, _ = bounded(A, k)
    assert k * Fraction(variance) <= Fraction(bound) <= k * Fraction(variance) * (1 + Fraction(1, 10**11))
    assert bounded(A * 2.0**-40, k)[0] == bound * 2.0**-40  # margins are shares of the matrix


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("variance", "dtype"), [(400.0, np.float64), (100.0, np.float32), (30.0, np.float64), (30.0, np.float32)]
)
def test_a_planted_component_is_proved(variance, dtype, monkeypatch):
    """Where the covariances of all variables would take too long, the other bounds are above it."""
    monkeypatch.setattr(certificates, "THRESHOLD_WORK", 0)
    monkeypatch.setattr(exact, "THRESHOLD_WORK", 0)
    X, _ = datasets.make_spiked(200, 4000, cardinality=20, variances=(variance,), dtype=dtype, rng=0)
    value, best = tpower(X, 20).value, optimality_bound(X, 20)
    limit = 1e-8 if dtype == np.float64 else 2e-3
    assert best.which == "strong variables"
    assert value * (1 - 1e-6) <= best.upper_bound <= value * (1 + limit)
    assert min(bound for name, bound in best.bounds.items() if name != best.which) > 1.003 * value
    assert sparse_pca(X, 1, cardinality=20, certify=True).gap[0] <= limit
    assert flat.branch_and_bound(X, 20, node_limit=1).upper_bound <= value * (1 + limit)


def test_equal_variances_need_no_columns(monkeypatch):
    """Where covariances of the others show that these may explain as much: each has its like."""
    monkeypatch.setattr(elimination, "_coupling", None)
    monkeypatch.setattr(certificates, "BOUND_ORDER", 100)
    monkeypatch.setattr(certificates, "THRESHOLD_WORK", 0)
    X = np.tile(np.random.default_rng(0).standard_normal((30, 150)), 2)
    assert "strong variables" not in optimality_bound(X, 5, scale=True).bounds


def test_it_ends_where_the_hook_says_so():
    A = np.diag(1 / np.arange(1.0, 301))
    assert bounded(A, 3, hook=lambda n: n == 0)[0] == np.inf
    assert bounded(A, 3)[0] == pytest.approx(1)
