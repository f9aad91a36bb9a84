"""Cross-validated eigenvalues: laws of thinned noise, planted ranks, and what the authors' package prints."""

import math

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse
from extras import optional
from numpy.testing import assert_allclose, assert_array_equal
from oracles import ends_at
from scipy.integrate import quad

import spcacore
from spcacore.selection import eigenvalues

pandas = optional("pandas")
cve = spcacore.cross_validated_eigenvalues


def unequal_degrees(n, blocks, ratio, degree, exponent, rng):
    """A degree-corrected block model: node i has edges in proportion to t_i, of density t^-exponent."""
    block, t = rng.integers(blocks, size=n), (1 - rng.random(n)) ** (-1 / (exponent - 1))
    P = np.where(block[:, None] == block, ratio, 1.0) * t[:, None] * t
    P *= degree / P.sum(axis=1).mean()
    A = np.triu(rng.random((n, n)) < P, 1).astype(float)
    return scipy.sparse.csr_array(A + A.T)


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("degree", "exponent", "scale", "all_found"),
    [
        (60, 5, "degree", True),
        (60, 3, "degree", True),  # degrees without a variance
        (60, 3, False, False),  # nodes of high degree come before the blocks
        (8, 5, "degree", False),  # below what any method detects
    ],
)
def test_the_rank_of_block_models_with_unequal_degrees(degree, exponent, scale, all_found):
    for seed in range(2):
        A = unequal_degrees(1000, 5, 3.0, degree, exponent, np.random.default_rng(seed))
        chosen = cve(A, 8, kind="graph", scale=scale, level=1e-3, n_splits=4, rng=seed).chosen
        assert chosen == 5 if all_found else chosen < 5


def noise(kind, rng):
    if kind == "normal":
        return 3 * rng.standard_normal((40, 30))
    if kind == "few":
        return 3 * rng.standard_normal((4, 30))
    X = rng.poisson(6.0, (40, 40 if kind == "graph" else 30))
    return np.triu(X) + np.triu(X, 1).T if kind == "graph" else X


@pytest.mark.parametrize("exponent", [1000, -1000, 600, -600])
def test_the_unit_of_normal_data_does_not_matter(exponent):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((30, 1)) * 3 @ rng.standard_normal((1, 12)) + rng.standard_normal((30, 12))
    for options in ({}, {"noise": 1.0}):
        ref = cve(X, 3, kind="normal", **options)
        if options:
            options = {"noise": 2.0**exponent}
        with np.errstate(all="raise"):
            found = cve(np.ldexp(X, exponent), 3, kind="normal", **options)
        assert found.chosen == ref.chosen == 1
        assert_allclose(found.statistic, ref.statistic, rtol=1e-12)
        assert_allclose(found.values, np.ldexp(ref.values, exponent), rtol=1e-12)
        assert found.noise == pytest.approx(math.ldexp(ref.noise, exponent))


@pytest.mark.share(3)
@pytest.mark.parametrize("kind", ["counts", "graph", "normal", "few"])
def test_statistics_of_noise_are_standard_normal(kind):
    """But for the first of counts, their mean: each split tests independent data."""
    rng, scores = np.random.default_rng(5), []
    for seed in range(150):
        X = noise(kind, rng)
        options = {"noise": 3.0, "kind": "normal"} if kind in ("normal", "few") else {"kind": kind}
        share = 0.9 if kind == "few" else 0.3  # then the mean of what is added is as large as the rest
        result = cve(X, min(5, len(X) - 1), n_splits=1, share=share, rng=seed, **options)
        scores.append(result.scores[0, 1:])
    scores = np.array(scores)
    assert abs(scores.mean()) < 4 / math.sqrt(scores.size)
    assert abs(scores.var() - 1) < 4 * math.sqrt(2 / scores.size)
    assert (np.abs(scores) > 1.96).mean() < 0.09


@pytest.mark.parametrize("sparse", [False, True])
def test_both_parts_of_a_split_are_counts(sparse, rng):
    X = rng.poisson(2.0, (30, 20)).astype(float)
    G = X[:20] + X[:20].T
    to = scipy.sparse.csr_array if sparse else np.asarray
    total = np.zeros((30, 20))
    for _ in range(300):
        test = eigenvalues._thinned(to(X), "counts", 0.25, rng)
        test = test.toarray() if sparse else test
        assert ((test >= 0) & (test <= X) & (test == np.floor(test))).all()
        total += test
    assert (np.abs(total / 300 - X / 4) <= 5 * np.sqrt(X * 0.25 * 0.75 / 300)).all()
    test = eigenvalues._thinned(to(G), "graph", 0.25, rng)
    test = test.toarray() if sparse else test
    assert_array_equal(test, test.T)
    assert ((test >= 0) & (test <= G)).all()
    assert np.diag(test).sum() == pytest.approx(np.trace(G) / 4, abs=5 * math.sqrt(np.trace(G) * 3 / 16))


@pytest.mark.parametrize("sparse", [False, True])
def test_directions_of_unequal_degrees(sparse, rng):
    X = rng.poisson(1.0, (20, 15)).astype(float)
    d, g = X.sum(axis=1), X.sum(axis=0)
    scaled = X / np.sqrt(np.outer(d + d.mean(), g + g.mean()))
    found = eigenvalues._degree_scaled(scipy.sparse.csr_array(X) if sparse else X)
    assert_allclose(found.toarray() if sparse else found, scaled, rtol=1e-14)


def test_values_are_those_of_the_data_in_directions_that_did_not_see_it(rng):
    """Of all but noise the values are near the singular values, without the bias of noise."""
    U, V = np.linalg.qr(rng.standard_normal((80, 2)))[0], np.linalg.qr(rng.standard_normal((60, 2)))[0]
    signal = U @ np.diag([300.0, 200]) @ V.T
    signal -= signal.mean(axis=0)
    X = signal + rng.standard_normal((80, 60))
    found = cve(X, 4, kind="normal", noise=1.0)
    assert_allclose(found.values[:2], np.linalg.svd(signal)[1][:2], rtol=0.02)
    assert np.abs(found.values[2:]).max() < 5


def test_values_of_counts_are_those_of_their_expectations(rng):
    U = np.repeat(np.eye(2), [30, 50], axis=0)
    mean = U @ np.diag([20.0, 5]) @ U.T
    G = np.tril(rng.poisson(mean))
    for X, kind in ((rng.poisson(mean), "counts"), (G + np.tril(G, -1).T, "graph")):
        found = cve(X, 3, kind=kind, n_splits=20)
        assert_allclose(found.values[:2], np.linalg.svd(mean)[1][:2], rtol=0.03)
        assert abs(found.values[2]) < 15  # the third singular value of X itself is about 50


def test_p_values_of_statistics(monkeypatch):
    z = np.array([3.0, 1.0, 2.5])
    p = np.array([0.0013498980316301035, 0.15865525393145707, 0.006209665325776132])
    for sign, level, chosen in ((1, 0.05, 1), (1, 0.2, 3), (-1, 0.2, 0)):
        monkeypatch.setattr(eigenvalues, "_split_scores", lambda *_, sign=sign: (z, sign * z))
        found = cve(np.ones((5, 5)), 3, n_splits=2, level=level)
        assert_allclose(found.p_value, p if sign > 0 else 1 - p, rtol=1e-12)
        assert found.chosen == chosen


def test_repeats_progress_and_an_early_end():
    X = np.random.default_rng(0).poisson(1.0, (30, 20))
    before, told = X.copy(), []
    one = cve(X, 3, n_splits=4, callback=told.append)
    assert [(t.done, t.total) for t in told] == [(1, 4), (2, 4), (3, 4), (4, 4)]
    assert_array_equal(one.statistic, cve(X, 3, n_splits=4).statistic)
    assert (one.statistic != cve(X, 3, n_splits=4, rng=1).statistic).any()
    assert_array_equal(X, before)
    assert_array_equal(cve(X, 3, n_splits=4, callback=ends_at(2)).scores, one.scores[:2])
    assert "chosen=" in repr(one)


def test_a_loop_is_one_entry_of_a_graph():
    """Of loops alone the value is a binomial count of one of them, whose error is known."""
    X, share = np.diag([1000.0, 10, 10, 10]), 0.25
    value, score = eigenvalues._split_scores(X, "graph", 1, share, None, False, np.random.default_rng(0))
    assert value[0] == pytest.approx(np.round(value[0] * share) / share)
    assert score[0] == pytest.approx(value[0] * share / math.sqrt(share * 1000))


def test_noise_of_six_rows():
    """By the median of three squared singular values over that of the law for the ratio 3/5."""
    rng, beta = np.random.default_rng(0), 3 / 5
    U = np.linalg.qr(np.column_stack([np.ones(6), rng.standard_normal((6, 3))]))[0][:, 1:]
    X = U @ np.diag([3.0, 2, 1]) @ np.linalg.qr(rng.standard_normal((3, 3)))[0]
    low, high = (1 - math.sqrt(beta)) ** 2, (1 + math.sqrt(beta)) ** 2
    density = lambda x: math.sqrt((high - x) * (x - low)) / (2 * math.pi * beta * x)  # noqa: E731
    median = scipy.optimize.brentq(lambda m: quad(density, low, m)[0] - 0.5, low, high)
    assert eigenvalues._noise_of(X) == pytest.approx(2 / math.sqrt(5 * median), rel=1e-3)
