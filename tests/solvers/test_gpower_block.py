"""gpower for several components at once against the iteration of the paper in sample space."""

import warnings
from dataclasses import replace

import flat
import numpy as np
import pytest
from gpower_tools import NORMS, bound, data, seeds, shrunk, unconverged
from hypothesis import strategies as st
from in_turn import of_examples
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse.linalg import aslinearoperator

import spcacore
from spcacore import sparse_pca
from spcacore.operators.inputs import as_problem
from spcacore.solvers import generalized_power as module


def polar(M):
    P, _, Q = np.linalg.svd(M, full_matrices=False)
    return P @ Q


def block_in_sample_space(F, U, gamma, mu, norm, n_iter):
    """Algorithms 4 and 5 as printed, with the objective of every U."""
    values = []
    for _ in range(n_iter):
        gradient = np.zeros(U.shape)
        total = 0.0
        for j in range(U.shape[1]):
            for a in F.T:
                c = mu[j] * (a @ U[:, j])
                if norm == "l1":
                    excess = max(abs(c) - gamma[j], 0)
                    total += excess**2
                    gradient[:, j] += mu[j] * excess * np.sign(c) * a
                else:
                    total += max(c**2 - gamma[j], 0)
                    gradient[:, j] += mu[j] ** 2 * (c**2 > gamma[j]) * (a @ U[:, j]) * a
        values.append(total)
        U = polar(gradient)
    return U, np.array(values)


def block_objective(F, U, gamma, mu, norm):
    C = mu * (F.T @ U)
    excess = np.maximum(C**2 - gamma, 0) if norm == "l0" else np.maximum(abs(C) - gamma, 0) ** 2
    return excess.sum()


@pytest.mark.parametrize("norm", NORMS)
@pytest.mark.parametrize("mu", [None, [1.0, 0.7, 0.4]])
@pytest.mark.parametrize("start", ["diagonal", "eigenvector"])
def test_block_iterates_are_those_of_the_paper(norm, mu, start):
    F = data(21)
    weights = np.ones(3) if mu is None else np.array(mu)
    gamma = 0.2 * weights ** (1 + (norm == "l0")) * bound(F, norm)
    if start == "eigenvector":
        U = np.linalg.svd(F, full_matrices=False)[0][:, :3]
    else:  # the columns of largest norm, each given those before
        W, rest = [], F.copy()
        for _ in range(3):
            j = int(np.argmax(np.linalg.norm(rest, axis=0)))
            W.append(F[:, j])
            u = rest[:, j] / np.linalg.norm(rest[:, j])
            rest = rest - np.outer(u, u @ rest)
        U = polar(np.column_stack(W))
    previous = 0
    for n_iter in range(6):
        V = unconverged(
            sparse_pca, F, 3, method=spcacore.GPower(
                gamma, norm=norm, block=True, mu=mu, start=start, max_iter=n_iter, tol=0, renormalize=False
            ),
        ).loadings  # fmt: skip
        last, values = block_in_sample_space(F, U, gamma, weights, norm, n_iter)
        Z = weights * shrunk(weights * (F.T @ last), gamma, norm)
        assert_allclose(abs(V), abs(Z / np.linalg.norm(Z, axis=0)), atol=1e-7)
        value = block_objective(F, last, gamma, weights, norm)
        assert value >= previous * (1 - 1e-12)
        assert (np.diff(values) >= -1e-12).all()
        previous = value


@of_examples(
    60,
    seed=seeds, share=st.floats(0, 0.7), m=st.integers(1, 5), rank=st.integers(1, 12),
    norm=st.sampled_from(NORMS),
)  # fmt: skip
def test_block_objective_never_decreases(seed, share, m, norm, rank):
    """Also where F has lower rank than there are components, and where columns vanish."""
    F = data(seed) * (np.arange(12) < rank)
    rng = np.random.default_rng(seed)
    mu = rng.uniform(0.2, 1, m)
    gamma = share * mu ** (1 + (norm == "l0")) * bound(F, norm)
    values = []

    def step(C):
        assert np.linalg.norm(C, 2) <= np.linalg.norm(F, 2) * (1 + 1e-9)
        excess = shrunk(mu * C, gamma, norm)
        values.append((excess**2 - (gamma * (excess != 0) if norm == "l0" else 0)).sum())
        return mu * excess, values[-1]

    problem = as_problem(F, center=False)
    solver = module.GeneralizedPower.from_record(problem, spcacore.GPower(block=True, tol=0, max_iter=20))
    op = spcacore._core.dense(F, False)
    module._ascend(op, rng.standard_normal((12, m)), step, solver, None)
    assert len(values) > 1
    assert (np.diff(values) >= -1e-10 * bound(F, "l0")).all()


@pytest.mark.parametrize("norm", NORMS)
def test_block_values_are_re_fitted_together(norm):
    """A fixed point of Z <- pattern of F'U mu, U <- polar of F Z mu, with more of what that maximizes."""
    F, mu = data(14), np.array([1.0, 0.8])
    options = {"method": "gpower", "penalty": 0.25, "norm": norm, "relative": True, "block": True, "mu": mu}
    raw = flat.sparse_pca(F, 2, renormalize=False, **options)
    V = flat.sparse_pca(F, 2, tol=1e-14, **options).loadings
    assert_array_equal(V != 0, raw.loadings != 0)
    Z = np.where(V != 0, mu * (F.T @ polar(F @ V * mu)), 0)
    assert_allclose(abs(Z / np.linalg.norm(Z, axis=0)), abs(V), atol=1e-5)
    nuclear = [np.linalg.norm(F @ W * mu, "nuc") for W in (raw.loadings, V)]
    assert nuclear[1] >= nuclear[0] * (1 - 1e-12)


@pytest.mark.parametrize("norm", NORMS)
def test_relative_penalties_of_a_block_do_not_depend_on_the_size_of_weights(norm):
    """They are shares of what the heaviest variable can contribute, which grows with the weight."""
    X = data(5)
    expected = sparse_pca(X, 2, method=spcacore.GPower(block=True, penalty=0.2, norm=norm, relative=True))
    for size in (0.25, 3.0):
        result = sparse_pca(
            X, 2, method=spcacore.GPower(block=True, penalty=0.2, norm=norm, relative=True, mu=[size, size])
        )
        assert_allclose(result.loadings, expected.loadings, atol=1e-8)
    both = sparse_pca(
        X, 2, method=spcacore.GPower(block=True, penalty=0.2, norm=norm, relative=True, mu=[3, 1.5])
    )
    halved = sparse_pca(
        X, 2, method=spcacore.GPower(block=True, penalty=0.2, norm=norm, relative=True, mu=[1, 0.5])
    )
    assert_allclose(both.loadings, halved.loadings, atol=1e-8)


def test_the_best_of_several_starts_of_a_block(monkeypatch):
    """In the objective, to rounding; the same as one that starts there alone."""
    climbed, chosen = [], []
    ascend, components = module._ascend, module._components

    def note(*arguments):
        climbed.append(ascend(*arguments))
        return climbed[-1]

    monkeypatch.setattr(module, "_ascend", note)
    monkeypatch.setattr(
        module, "_components", lambda problem, best: chosen.append(best) or components(problem, best)
    )
    worse = 0
    for seed in range(6):
        climbed.clear()
        options = {"penalty": 0.3, "relative": True, "n_starts": 6, "renormalize": False, "rng": seed}
        flat.sparse_pca(data(seed), 3, method="gpower", block=True, **options)
        objectives = [run.objective for run in climbed]
        assert len(objectives) == 6
        assert chosen[-1].objective == pytest.approx(max(objectives), rel=1e-12)
        worse += objectives[-1] < max(objectives) * (1 - 1e-6)
    assert worse > 1


def test_block_columns_that_vanish_are_left_out():
    F = data(15)
    with pytest.warns(RuntimeWarning, match="1 of the 3 components vanished"):
        result = sparse_pca(F, 3, method=spcacore.GPower(penalty=[0.1, 1, 0.1], relative=True, block=True))
    assert result.loadings.shape == (12, 2)
    with pytest.warns(RuntimeWarning, match="3 of the 3 components vanished"):
        result = sparse_pca(F, 3, method=spcacore.GPower(penalty=1, relative=True, block=True))
    assert result.loadings.shape == (12, 0)
    thin = np.outer(np.arange(10.0), np.arange(1.0, 6))
    with pytest.warns(RuntimeWarning, match="vanished"):
        result = sparse_pca(thin, 3, method=spcacore.GPower(penalty=0.1, relative=True, block=True))
    assert result.explained_variance.sum() <= np.trace(np.cov(thin.T)) * (1 + 1e-12)


def test_block_where_little_is_known_or_left():
    F = data(22, 30, 80)
    options = {"method": "gpower", "norm": "l0", "block": True}
    gamma = 0.1 * bound(F, "l0")
    known = flat.sparse_pca(F, 2, penalty=gamma, start="eigenvector", **options)
    products = flat.sparse_pca(aslinearoperator(F), 2, penalty=gamma, **options)
    assert_allclose(products.loadings, known.loadings, atol=1e-6)
    for X in (np.ones((20, 5)), np.ones((20, 100))):
        with pytest.warns(RuntimeWarning, match="2 of the 2 components vanished"):
            assert flat.sparse_pca(X, 2, penalty=0, **options).n_components == 0


@pytest.mark.parametrize("ended", [(True, True), (True, False), (False, True)])
def test_a_block_has_converged_where_both_searches_have(ended, monkeypatch):
    """For the support, and for the values on it."""
    ascend, states = module._ascend, iter(ended)
    monkeypatch.setattr(module, "_ascend", lambda *a: replace(ascend(*a), converged=next(states)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        result = sparse_pca(
            data(5), 2, method=spcacore.GPower(block=True, penalty=0.2, relative=True, start="diagonal")
        )
    assert result.converged.tolist() == [all(ended)] * 2
