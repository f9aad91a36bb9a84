"""Bounds of false selections against a linear program over all distributions that they hold for."""

from typing import get_args

import numpy as np
import pytest
from scipy.optimize import linprog

from spcacore._types import Assumption
from spcacore.selection.stability_result import false_selections, least_threshold


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


@pytest.mark.parametrize("threshold", [0.55, 0.6, 0.75, 0.9, 1.0])
def test_bounds_fall_with_what_is_assumed(threshold):
    for q, p, count in ((5, 100, 100), (70, 100, 100), (3, 50, 10), (10, 5000, 100)):
        none, unimodal = (false_selections(threshold, q, p, count, one) for one in get_args(Assumption))
        assert 0 < unimodal <= none


def test_least_threshold_is_the_first_that_keeps_the_bound():
    level, bound = least_threshold(20.0, 1000, 100, "unimodal", 1.0)
    values = [false_selections(i / 100, 20.0, 1000, 100, "unimodal") for i in range(51, 101)]
    assert bound <= 1
    assert level == 0.51 + 0.01 * next(i for i, v in enumerate(values) if v <= 1)
    assert least_threshold(50.0, 60, 100, "none", 1.0) == (np.inf, 0.0)
