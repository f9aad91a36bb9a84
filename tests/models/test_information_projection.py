"""Restricted normal distributions: against densities of SciPy, all supports and all sets of zeros."""

from itertools import combinations

import numpy as np
import pytest
from in_turn import examples
from numpy.testing import assert_allclose, assert_array_equal
from scipy.stats import multivariate_normal

import spcacore
from spcacore import information_projection


def drawn(seed, p=5):
    rng = np.random.default_rng(seed)
    G = rng.standard_normal((p, p + 2))
    return rng.standard_normal(p), G @ G.T, rng.standard_normal((p, 2))


@pytest.mark.parametrize("k", [1, 3, 5])
@pytest.mark.parametrize("vectors", [0, 1, 2])
def test_the_density_is_the_given_one_on_the_subspace(k, vectors):
    """Up to a factor, which the divergence tells: their ratio is one constant."""
    for seed in range(examples(12)):
        mean, C, Q = drawn(seed)
        Q = Q[:, :vectors]
        if k <= vectors:
            with pytest.raises(ValueError, match="nothing but 0"):
                information_projection(mean, C, k, earlier=Q)
            continue
        a, B, divergence = information_projection(mean, C, k, earlier=Q if vectors else None)
        assert np.count_nonzero(B.diagonal()) <= k
        assert_allclose(np.c_[a, B].T @ Q, 0, atol=1e-9)
        values, U = np.linalg.eigh(B)
        N = U[:, -(k - vectors) :]
        assert values[: -(k - vectors)].max(initial=0) < 1e-9 * values[-1] < values[-(k - vectors)]
        points = a + np.random.default_rng(seed).standard_normal((6, k - vectors)) @ N.T
        inside = multivariate_normal(N.T @ a, N.T @ B @ N).logpdf(points @ N)
        given = multivariate_normal(mean, C).logpdf(points)
        assert_allclose(given - inside, -divergence, atol=1e-7)


def test_the_support_of_least_divergence():
    """Of all: greedy search finds most of them, and none that is better than the best."""
    found = 0
    for seed in range(40):
        mean, C, _ = drawn(seed)
        divergence, support = {}, 0
        for S in combinations(range(5), 2):
            others = np.setdiff1d(range(5), S)  # which are zero
            divergence[S] = -multivariate_normal(mean[others], C[np.ix_(others, others)]).logpdf(np.zeros(3))
        a, _, support = information_projection(mean, C, 2)
        assert support == pytest.approx(divergence[tuple(np.flatnonzero(a))])
        found += support <= min(divergence.values()) + 1e-9
    assert found >= 36


@pytest.mark.parametrize("signs", [1, -1, [1, -1, 0, 1, 0]])
def test_the_mode_of_given_signs(signs):
    """Of all sets of zeros that leave the signs as given; of 10 the solver's entries pass 0 by rounding."""
    for seed in {*range(examples(12)), 10}:
        mean, C, _ = drawn(seed)
        a, B, _ = information_projection(mean, C, signs=signs)
        assert_allclose(B, C)
        best, K = np.inf, np.linalg.inv(C)
        for size in range(6):
            for S in map(list, combinations(range(5), size)):
                x = np.zeros(5)
                x[S] = np.linalg.solve(K[np.ix_(S, S)], (K @ mean)[S])
                if (x * signs >= 0).all():
                    best = min(best, (x - mean) @ K @ (x - mean))
        assert (a * signs >= 0).all()
        assert (a - mean) @ K @ (a - mean) == pytest.approx(best)


def test_the_posteriors_of_a_component():
    """Those of `oppca` are restricted to the complement of the earlier means, as the paper says."""
    X, _ = spcacore.datasets.make_spiked(60, 8, cardinality=3, rng=0)
    result = spcacore.oppca(X, 2)
    C = np.eye(8) / (result.posterior_precision[1] + 1)  # the prior is N(0, I)
    a, B, _ = information_projection(result.means[:, 1], C, earlier=result.means[:, 0])
    assert_allclose(a, result.means[:, 1], atol=1e-8)
    assert_allclose(B, result.posterior_covariance(1), atol=1e-8)


@pytest.mark.parametrize("exponent", [-400, 1, 300])
def test_a_power_of_two_in_the_unit_changes_no_bit(exponent):
    """But for the divergence, to which each variable that is left out adds the logarithm of the unit."""
    mean, C, _ = drawn(0)
    a, B, divergence = information_projection(mean, C, 2)
    moved = information_projection(np.ldexp(mean, exponent), np.ldexp(C, 2 * exponent), 2)
    assert_array_equal(moved[0], np.ldexp(a, exponent))
    assert_array_equal(moved[1], np.ldexp(B, 2 * exponent))
    assert_allclose(moved[2], divergence + 3 * exponent * np.log(2), rtol=1e-12)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"mean": np.ones(4)}, "mean has 4 entries for 5 variables"),
        ({"covariance": np.ones((5, 4))}, "covariance must be square"),
        ({"mean": np.full(5, 1e200), "covariance": 1e-200 * np.eye(5)}, "beyond the number range"),
        ({"covariance": np.ones((5, 5))}, "covariance must be positive definite"),
        ({"covariance": np.triu(np.ones((5, 5)))}, "covariance must be a symmetric matrix"),
        ({"cardinality": 6}, r"cardinality must be in \[1, 5\]"),
        ({"earlier": np.ones(4)}, "earlier has 4 rows for 5 variables"),
        ({"earlier": np.eye(5)}, "nothing but 0 of 5 variables"),
        ({"earlier": np.ones(5), "signs": 1}, "signs cannot be combined with earlier"),
        ({"signs": [1, 2, 0, 0, 0]}, "signs must have only"),
    ],
)
def test_what_is_refused(change, words):
    with pytest.raises(ValueError, match=words):
        information_projection(**{"mean": np.ones(5), "covariance": np.eye(5), **change})
