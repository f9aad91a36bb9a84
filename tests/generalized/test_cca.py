"""Sparse canonical correlation against LAPACK, scikit-learn and a loop of its own."""

import flat
import numpy as np
import pytest
import scipy.sparse as sp
from extras import drawn, example, optional
from numpy.testing import assert_allclose, assert_array_equal
from oracles import centered, normal
from reference import l1_threshold

from spcacore import sparse_cca, sparse_cca_permutation
from spcacore.generalized import canonical_sides

CCA = optional("sklearn.cross_decomposition", "CCA")


def standardized(M):
    return centered(M) / M.std(axis=0, ddof=1)


def data(n, p, q, rng, pairs=2):
    """Pair t is carried by three variables of each side."""
    X, Y = rng.standard_normal((n, p)), rng.standard_normal((n, q))
    for t in range(pairs):
        common = rng.standard_normal(n) * (2.0 - 0.5 * t)
        X[:, 3 * t : 3 * t + 3] += common[:, None]
        Y[:, 3 * t : 3 * t + 3] += common[:, None] * [1, -1, 1]
    return X, Y


def canonical(X, Y, ridge=0.0):
    """Canonical correlations and vectors, by singular values of the whitened cross-covariance."""
    X, Y = standardized(X), standardized(Y)
    n = len(X) - 1
    inverse = []
    for M in (X, Y):
        values, vectors = np.linalg.eigh(M.T @ M / n + ridge * np.eye(M.shape[1]))
        inverse.append(vectors / np.sqrt(values) @ vectors.T)
    U, s, Vt = np.linalg.svd(inverse[0] @ (X.T @ Y / n) @ inverse[1])
    return s, inverse[0] @ U[:, : len(s)], inverse[1] @ Vt[: len(s)].T


@pytest.mark.share(4)
@pytest.mark.parametrize(("n", "p", "q"), [(40, 12, 9), (30, 80, 100)])
@pytest.mark.parametrize("bounds", [(1.5, 2.0), (2.5, 1.7)])
def test_pmd_is_the_loop_of_the_paper(n, p, q, bounds, monkeypatch):
    monkeypatch.setattr("spcacore.generalized.cca.CCA_TOL", 1e-14)
    X, Y = data(n, p, q, np.random.default_rng(0))
    result = sparse_cca(X, Y, 3, l1_bound=bounds)
    C = standardized(X).T @ standardized(Y) / (n - 1)
    for t in range(3):
        runs = []
        for v in (np.linalg.svd(C)[2][0], np.eye(q)[np.argmax(abs(C).max(axis=0))]):
            for _ in range(60):
                u = l1_threshold(C @ v, bounds[0])[0].astype(float)
                v = l1_threshold(C.T @ u, bounds[1])[0].astype(float)
            runs.append((u @ C @ v, u, v))
        _, u, v = max(runs, key=lambda run: run[0])
        d = u @ C @ v
        C = C - d * np.outer(u, v)
        ours = result.loadings_x[:, t], result.loadings_y[:, t]
        sign = np.sign(ours[0] @ u)
        assert_allclose(ours[0], sign * u, atol=1e-5)
        assert_allclose(ours[1], sign * v, atol=1e-5)
        assert_allclose(result.strengths[t], d, rtol=1e-7)
        score = standardized(X) @ u, standardized(Y) @ v
        assert_allclose(result.correlations[t], np.corrcoef(*score)[0, 1], atol=1e-6)
        assert_allclose(result.scores_x[:, t], sign * score[0], atol=1e-4)
    assert (abs(result.loadings_x).sum(axis=0) <= bounds[0] * (1 + 1e-9)).all()
    assert (abs(result.loadings_y).sum(axis=0) <= bounds[1] * (1 + 1e-9)).all()


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", [4, 32, 61, 66, 96])
def test_pmd_reaches_the_best_of_random_starts(rng):
    """From two starts it is 1.6 to 7.8 % short on these."""
    X, Y = rng.standard_normal((20, 8)), rng.standard_normal((20, 6))
    C, best = standardized(X).T @ standardized(Y) / 19, 0.0
    for v in rng.standard_normal((12, 6)):
        for _ in range(12):
            u = l1_threshold(C @ v, 1.6)[0].astype(float)
            v = l1_threshold(C.T @ u, 1.4)[0].astype(float)
        best = max(best, u @ C @ v)
    assert sparse_cca(X, Y, l1_bound=(1.6, 1.4)).strengths[0] > best * 0.999


@pytest.mark.parametrize("formed", [True, False])
@pytest.mark.parametrize("ridge", [0.0, 0.4])
def test_all_variables_are_canonical_correlation(ridge, formed, with_limits):
    if not formed:  # the metrics are products with the data
        with_limits(canonical_sides, SUBMATRIX_ORDER=2)
    X, Y = data(60, 9, 7, np.random.default_rng(2))
    s, U, V = canonical(X, Y, ridge)
    result = sparse_cca(X, Y, 4, method="generalized", cardinality=(9, 7), ridge=ridge)
    assert_allclose(result.strengths, s[:4], rtol=1e-7)
    for ours, theirs in ((result.loadings_x, U), (result.loadings_y, V)):
        theirs = theirs[:, :4] / np.linalg.norm(theirs[:, :4], axis=0)
        assert_allclose(abs((ours * theirs).sum(axis=0)), 1, atol=1e-6)
    if ridge == 0:
        assert_allclose(result.correlations, s[:4], rtol=1e-7)
        a, b = CCA(4, max_iter=5000, tol=1e-10).fit_transform(X, Y)
        for t in range(4):
            assert abs(np.corrcoef(a[:, t], result.scores_x[:, t])[0, 1]) > 1 - 1e-5
            assert abs(np.corrcoef(b[:, t], result.scores_y[:, t])[0, 1]) > 1 - 1e-5


@pytest.mark.share(3)
@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("method", ["pmd", "generalized"])
def test_means_of_sparse_data_cost_no_digits(method, scale):
    X, Y = data(60, 8, 6, np.random.default_rng(0))
    X, Y = np.round(X * 64) / 64, np.round(Y * 64) / 64
    units = 2.0 ** np.arange(-4, 4)
    options = {"l1_bound": 2.0} if method == "pmd" else {"cardinality": 3}
    plain = flat.sparse_cca(X * units, Y, 2, method=method, scale=scale, **options)
    far = sp.csr_array(X * units + 2.0**27), sp.csc_array(Y - 2.0**27)
    result = flat.sparse_cca(*far, 2, method=method, scale=scale, **options)
    assert_allclose(result.strengths, plain.strengths, rtol=1e-6)
    assert_allclose(result.loadings_x, plain.loadings_x, atol=1e-5)
    assert_allclose(result.loadings_y, plain.loadings_y, atol=1e-5)


def test_a_constant_column_takes_no_part():
    X, Y = data(60, 6, 5, np.random.default_rng(6), pairs=1)
    expected = sparse_cca(X, Y, method="generalized", cardinality=(6, 5))
    X = np.insert(X, 2, 1.0, axis=1)
    result = sparse_cca(X, Y, method="generalized", cardinality=(7, 5))
    assert_allclose(result.strengths, expected.strengths)
    assert_allclose(result.loadings_x, np.insert(expected.loadings_x, 2, 0, axis=0), atol=1e-9)


def test_permuted_rows_have_the_pairs_of_their_data():
    X, Y = data(60, 10, 8, np.random.default_rng(6), pairs=1)
    permuted = X[np.random.default_rng(np.random.default_rng(1).integers(2**63)).permutation(60)]
    result = sparse_cca_permutation(X, Y, [1.7], n_permutations=2, rng=1)
    assert_allclose(result.permuted[0, 0], sparse_cca(permuted, Y, l1_bound=1.7).correlations[0], rtol=1e-6)


@pytest.mark.slow
def test_permutation_finds_the_bound_of_the_planted_pair():
    X, Y = data(60, 100, 80, np.random.default_rng(6), pairs=1)
    bounds = [1.2, (1.7, 1.7), 4.0, (10.0, np.sqrt(80))]
    result = sparse_cca_permutation(X, Y, bounds, n_permutations=20, rng=1)
    assert result.l1_bound in ((1.2, 1.2), (1.7, 1.7))
    assert result.p_values[result.best] == 1 / 21
    assert result.z[result.best] > 3 + result.z[-1]
    for i, bound in enumerate(bounds):
        assert_allclose(result.correlations[i], sparse_cca(X, Y, l1_bound=bound).correlations[0], rtol=1e-9)
        z = np.arctanh(result.permuted[i])
        assert_allclose(result.z[i], (np.arctanh(result.correlations[i]) - z.mean()) / z.std(ddof=1))


@pytest.mark.slow
def test_what_the_example_says():
    module = example("canonical_pairs")
    result = module.analyze(*module.data())
    assert (np.count_nonzero(result.pixels[:, :, :4], axis=(1, 2)) == 5).all()
    assert (np.count_nonzero(result.pixels[:, :, 4:], axis=(1, 2)) == 5).all()
    assert_allclose(result.held_out[:2], [0.75, 0.69], atol=0.006)
    assert_allclose(result.dense[:2], [0.78, 0.77], atol=0.006)
    assert len(drawn(module, result).axes) == 8


def test_nothing_in_common():
    X = normal(8, 10, 3)
    for options in ({"l1_bound": 1.0}, {"method": "generalized", "cardinality": 1}):
        with pytest.warns(RuntimeWarning, match="nothing in common"):
            assert flat.sparse_cca(X, np.ones((10, 2)), **options).n_components == 0


X0, Y0 = (normal(s, 9, p) for s, p in ((0, 5), (1, 4)))


def test_how_sparse_where_nothing_is_said():
    """The l1 norm of as many equal nonzeros as the root of the number of variables, rounded up."""
    bounded = sparse_cca(X0, Y0, l1_bound=(np.sqrt(3), np.sqrt(2)))
    assert_array_equal(sparse_cca(X0, Y0).loadings_x, bounded.loadings_x)


def test_one_turn_gives_a_pair_already(rng):
    X = rng.standard_normal((60, 12))
    Y = X[:, :10] @ rng.standard_normal((10, 10)) * 0.3 + rng.standard_normal((60, 10))
    one = sparse_cca(X, Y, 1, cardinality=3, max_iter=1)
    u, v = one.loadings_x[:, 0], one.loadings_y[:, 0]
    assert np.count_nonzero(u) == np.count_nonzero(v) == 3
    assert np.corrcoef(X @ (u / X.std(axis=0)), Y @ (v / Y.std(axis=0)))[0, 1] == pytest.approx(
        one.correlations[0], rel=1e-9
    )
