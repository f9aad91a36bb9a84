"""Bounds of false selections against a linear program over all distributions that they hold for."""

import numpy as np
import pytest
from calls import pca
from scipy.optimize import brentq, linprog

import spcacore
from spcacore.selection import stability_result
from spcacore.selection.stability_result import false_selections, largest_tails, least_threshold
from spcacore.selection.stable_variables import ASSUMPTIONS


def test_bound_of_half_samples():
    assert false_selections(0.9, 20, 1000, 100, "none") == pytest.approx(20**2 / (0.8 * 1000))
    assert false_selections(0.6, 5, 50, 100, "none") == pytest.approx(25 / (0.2 * 50))


def _unimodal_tail(pairs, mean, level):
    """The largest P(Y >= level) of a unimodal Y on 0, 1/B, ..., 1 of at most this mean."""
    y = np.arange(pairs + 1) / pairs
    best = 0.0
    for mode in range(pairs + 1):
        rows = []
        for i in range(pairs):
            row = np.zeros(pairs + 1)
            row[i], row[i + 1] = (1, -1) if i < mode else (-1, 1)
            rows.append(row)
        solved = linprog(
            -(y >= level - 1e-12).astype(float), A_ub=np.array([*rows, y]),
            b_ub=np.array([0.0] * pairs + [mean]), A_eq=np.ones((1, pairs + 1)), b_eq=[1.0],
        )  # fmt: skip
        if solved.status == 0:
            best = max(best, -solved.fun)
    return best


@pytest.mark.share(3)
@pytest.mark.parametrize("threshold", [0.6, 0.7, 0.75, 0.8, 0.9, 1.0])
def test_bound_of_complementary_pairs_holds_for_every_unimodal_frequency(threshold):
    """Both of a pair choose a variable in a share of at least 2 tau - 1, with an expectation of theta^2."""
    p, pairs = 100, 20
    for q in (5.0, 20.0):
        bound = false_selections(threshold, q, p, 2 * pairs, "unimodal")
        sharp = p * _unimodal_tail(pairs, (q / p) ** 2, 2 * threshold - 1)
        assert sharp <= bound * (1 + 1e-9)
        assert bound <= 1.3 * sharp
        assert bound <= false_selections(threshold, q, p, 2 * pairs, "none")


# Printed by version 0.7 of the R package stabs, in the output of its tests: 100 variables, 50 pairs, a
# threshold of 0.6, and from 1 to 10 variables chosen
R_CONCAVE = (
    0.006971364, 0.03342845, 0.08691176, 0.1637231, 0.2605329,
    0.3820466, 0.5295188, 0.7042719, 0.9077127, 1.141338,
)  # fmt: skip


def test_r_concave_bounds_are_those_of_the_package_of_its_authors_formulas():
    """It ends its search within 1e-4 of the best a, and so a little below the largest tail."""
    for q, printed in enumerate(R_CONCAVE, 1):
        bound = false_selections(0.6, q, 100, 100, "r-concave")
        assert printed * (1 - 1e-6) <= bound <= printed * (1.004 if q == 1 else 1.001)
    for q, threshold, printed in ((6, 0.6, 0.174), (7, 0.6, 0.248), (7, 0.61, 0.219), (7, 0.62, 0.196)):
        bound = false_selections(threshold, q, 200, 100, "r-concave")
        assert bound == pytest.approx(printed, abs=0.0006)
    assert least_threshold(7, 200, 100, "r-concave", 0.2) == (0.62, pytest.approx(0.196, abs=5e-4))
    assert least_threshold(7, 200, 100, "unimodal", 0.2)[0] == 0.81  # of the same output


@pytest.mark.parametrize("power", [2, 4])
def test_largest_tail_of_two_by_its_equation(power):
    """On 0, 1, 2 with f(1) + 2 f(2) = m, f(2) is largest where f(1)^r is the mean of the others."""
    for mean in (0.01, 0.1, 0.2):

        def gap(x, m=2 * mean):
            one = m - 2 * x
            return 2 * one ** (-1 / power) - (1 - one - x) ** (-1 / power) - x ** (-1 / power)

        assert largest_tails(mean, 2, power)[2] == pytest.approx(brentq(gap, 1e-12, mean - 1e-12), rel=1e-8)


@pytest.mark.parametrize(
    ("size", "mean", "power"), [(12, 0.07, 4), (25, 0.004, 2), (30, 0.21, 2), (40, 0.05, 4)]
)
def test_largest_tail_is_that_of_all_points_of_the_path(monkeypatch, size, mean, power):
    """The path of the module's description, 40 points from each a_k to the next, for every t."""
    m, i = mean * size, np.arange(size + 1)
    first = int(np.ceil(2 * m)) + 1

    def flat(a, k):
        return np.where(i <= k, (1 + i / a) ** -power, 0)

    start = {
        k: brentq(lambda a, k=k: flat(a, k) @ (i - m), 1e-4, 1e6, xtol=1e-14) for k in range(first, size + 1)
    }
    best = np.zeros(size + 1)
    for k in range(first, size):
        for a in np.geomspace(start[k + 1], start[k], 40):
            f = flat(a, k)
            f[k + 1] = f @ (m - i) / (k + 1 - m)
            assert -1e-9 <= f[k + 1] <= (1 + (k + 1) / a) ** -power + 1e-9
            best = np.maximum(best, f[::-1].cumsum()[::-1] / f.sum())
    tails = largest_tails(mean, size, power)
    assert (tails[:first] == 1).all()
    np.testing.assert_allclose(tails[first:], best[first:], rtol=1e-7)
    monkeypatch.setattr(stability_result, "TAIL_ENTRIES", 3 * size)
    np.testing.assert_allclose(largest_tails.__wrapped__(mean, size, power), tails, rtol=1e-12)


@pytest.mark.parametrize("threshold", [0.55, 0.6, 0.75, 0.9, 1.0])
def test_bounds_fall_with_what_is_assumed(threshold):
    for q, p, count in ((5, 100, 100), (70, 100, 100), (3, 50, 10), (10, 5000, 100)):
        none, unimodal, concave = (false_selections(threshold, q, p, count, one) for one in ASSUMPTIONS)
        assert 0 < concave <= unimodal <= none


def test_least_threshold_is_the_first_that_keeps_the_bound():
    level, bound = least_threshold(20.0, 1000, 100, "unimodal", 1.0)
    values = [false_selections(i / 100, 20.0, 1000, 100, "unimodal") for i in range(51, 101)]
    assert bound <= 1
    assert level == 0.51 + 0.01 * next(i for i, v in enumerate(values) if v <= 1)
    assert least_threshold(50.0, 60, 100, "none", 1.0) == (np.inf, 0.0)


@pytest.mark.slow
@pytest.mark.parametrize("resampling", ["half", "complementary"])
def test_on_noise_false_selections_stay_below_the_bound(resampling):
    rng = np.random.default_rng(1)
    count, bounds = [], []
    for _ in range(12):
        X = rng.standard_normal((30, 40))
        found = spcacore.stability(
            X, pca(1, 4, method="thresholding"), resampling=resampling, n_resamples=40, threshold=0.6
        )
        count.append(found.stable.sum())
        bounds.append(found.expected_false[0])
    assert np.mean(count) <= np.mean(bounds)
    assert found.false_selections(0.6) == pytest.approx(found.expected_false[0])
    assert found.false_selections(0.6, 0) == pytest.approx(found.expected_false[0])
