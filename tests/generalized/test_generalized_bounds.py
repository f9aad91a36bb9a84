"""Upper bounds on generalized Rayleigh quotients and canonical correlations, against enumeration."""

from contextlib import suppress
from itertools import combinations, product

import numpy as np
import pytest
from generalized.test_generalized import optimum, value_on
from oracles import centered, normal

from spcacore import sparse_cca, sparse_cca_bound, sparse_eigen, sparse_eigen_bound
from spcacore.generalized import eigen
from spcacore.generalized import pencil as pencils


def pencil(rng):
    """A of full or low rank, or indefinite; B badly scaled."""
    p = int(rng.integers(2, 7))
    G = rng.standard_normal((p, p))
    A = [G + G.T, G[:2].T @ G[:2], G.T @ G, -G.T @ G][rng.integers(4)]
    H = rng.standard_normal((p + 3, p)) * 10.0 ** rng.integers(-2, 3, p)
    return A * 10.0 ** rng.integers(-8, 8), H.T @ H


def best_correlation(X, Y, kx, ky):
    X, Y = centered(X), centered(Y)
    bases = [
        [np.linalg.qr(M[:, S])[0] for S in combinations(range(M.shape[1]), k)] for M, k in ((X, kx), (Y, ky))
    ]
    return max(np.linalg.norm(Q.T @ R, 2) for Q in bases[0] for R in bases[1])


@pytest.mark.parametrize(
    "seeds", [range(10), pytest.param(range(10, 10_030), marks=pytest.mark.slow)], ids=str
)
def test_no_support_has_a_ratio_above_the_bound(seeds):
    for seed in seeds:
        rng = np.random.default_rng([seed, 1])
        A, B = pencil(rng)
        k = int(rng.integers(1, len(A) + 1))
        best = optimum(A, B, k)
        for nodes in (1, 2000):
            result = sparse_eigen_bound(A, B, k, node_limit=nodes)
            for name, bound in result.bounds.items():
                assert bound >= best - 1e-10 * abs(best), (seed, name, nodes)
            assert result.bound == min(result.bounds.values()) == result.bounds[result.which]
            assert set(result.bounds) - {"relaxation"} == {"spectral", "search"}
            assert result.bounds.get("relaxation", 0) <= result.bounds["spectral"] or best < 0
        assert "relaxation" not in result.bounds  # the search has ended
        rounding = 1e-9 * float((np.abs(A.diagonal()) / B.diagonal()).max())
        assert result.bounds["search"] == pytest.approx(best, rel=1e-5, abs=rounding)
        assert result.bounds["spectral"] == pytest.approx(
            value_on(A, B, range(len(A))), rel=1e-5, abs=rounding
        )


@pytest.mark.parametrize("unit", [1, 2.0**-10])
def test_no_ratio_exceeds_the_bound_of_a_tree_that_is_cut_off(unit, monkeypatch, with_limits):
    """From any support; the smaller B, the more a ratio may exceed what the form of a node says."""
    monkeypatch.setattr(pencils, "_relaxed", lambda A, B, k, known, bound, *_: bound)
    with_limits(pencils, CERTIFIED_TREES=0)
    for seed in range(8):
        rng = np.random.default_rng([seed, 7])
        H, G = rng.standard_normal((10, 7)), rng.standard_normal((7, 7))
        A, B, begin = G @ G.T, H.T @ H * unit, np.sort(rng.permutation(7)[:3])
        for nodes in (1, 2, 4, 8, 16):
            bounds = pencils.bounds_of(A, B, 3, None, nodes, None, begin)
            assert min(bounds.values()) >= optimum(A, B, 3) * (1 - 1e-10), (seed, nodes)


def test_no_rounding_lowers_a_ratio_that_is_attained():
    """Of matrices of whole numbers, positive and negative, whose optimum is one; with B singular, too."""
    rng, eps = np.random.default_rng(0), np.finfo(float).eps
    for c, k in product((1.0, 7.0, 1e6 + 1), range(2, 7)):
        whole = np.kron(np.eye(12 // k), np.full((k, k), c))
        v = rng.integers(1, 9, k + 1)
        for A, best in ((whole, k * c), (-c * np.eye(k + 1) - np.outer(v, v), -c)):
            for nodes, unit in product((1, 2000), (2.0**-20, 2.0**20)):
                args = (A, unit * np.eye(len(A)), k, None, nodes, None)
                more = min(pencils.bounds_of(*args).values()) * unit - best
                assert k * (k + 1) * eps * c <= more <= 1e-9 * c, (c, k)  # no less than Cholesky may lose
        poor = np.kron(np.diag([1.0, 0.0]), np.full((k, k), c)), np.eye(2 * k), k, np.arange(k, 2 * k), k * c
        many = np.full((200, 200), c), np.eye(200), 200, None, 200 * c
        for (A, B, m, begin, best), nodes in product((poor, many), (1, 2000)):  # poor: from the value 0
            more = min(pencils.bounds_of(A, B, m, None, nodes, None, begin).values()) - best
            assert more >= m * (m + 1) * eps * c, (c, m)
        u, singular = np.array([c, c, k]) / 3, np.array([[1.0, 1, 0], [1, 1, 0], [0, 0, 1]])
        for A, best in ((c * singular, c), (-np.outer(u, u), 0.0)):
            assert sparse_eigen_bound(A, singular, 2).bound >= best, (c, k)


def test_eigenvalues_are_off_by_all_that_is_allowed(monkeypatch):
    """LAPACK's of B and of T'AT, with the products of which that is made."""
    p, eps, known = 64, np.finfo(float).eps, []

    def off(B):
        values, vectors = np.linalg.eigh(B)
        return values + len(B) * eps * values[-1], vectors

    class Tree(pencils._Tree):
        def open(self):
            known.append(self.least)

    monkeypatch.setattr(pencils, "all_eigenpairs", off)
    monkeypatch.setattr(pencils, "_Tree", Tree)
    for top, most in ((2.0**-10, 2.0**10), (2.0**10, 2.0**10)):
        B = np.diag([1 / most, *np.full(p - 2, min(2 / most, top)), top])
        lost = p * eps * most * (1.5 * p + top * most)
        monkeypatch.setattr(pencils, "largest_value", lambda A, T, v=most - lost: v)
        bounds = pencils.bounds_of(np.eye(p), B, 1, None, 0, None, np.array([0]))
        assert bounds["spectral"] >= most
        assert 0.999 <= known[-1] * most <= 1


@pytest.mark.parametrize("seeds", [range(6), pytest.param(range(6, 10_012), marks=pytest.mark.slow)], ids=str)
def test_no_pair_is_more_correlated_than_the_bound(seeds):
    for seed in seeds:
        rng = np.random.default_rng([seed, 2])
        p, q = rng.integers(2, 5, 2)
        X, Y = rng.standard_normal((20, p)) * 10.0 ** rng.integers(-2, 3, p), rng.standard_normal((20, q))
        Y[:, 0] += X @ rng.standard_normal(p) / 10
        kx, ky = int(rng.integers(1, p + 1)), int(rng.integers(1, q + 1))
        best = best_correlation(X, Y, kx, ky)
        for nodes in (1, 2000):
            bounds = sparse_cca_bound(X, Y, (kx, ky), node_limit=nodes).bounds
            assert min(bounds.values()) >= best * (1 - 1e-10), (seed, nodes)
            assert max(bounds.values()) <= 1
        assert bounds["search"] == pytest.approx(best, rel=1e-6)
        assert bounds["spectral"] == pytest.approx(best_correlation(X, Y, p, q), rel=1e-6)


def test_few_variables_of_one_side_are_not_more_of_the_other(rng):
    """One of X and three of Y: two and two would be more correlated."""
    X, Y = rng.standard_normal((60, 4)), rng.standard_normal((60, 5))
    Y[:, 0] += X[:, 0] + X[:, 1]
    best = best_correlation(X, Y, 1, 3)
    assert best < 0.9 * best_correlation(X, Y, 2, 2)
    assert set(sparse_cca_bound(X, X, 1).bounds.values()) == {1.0}
    assert sparse_cca_bound(X, Y, (1, 3)).bound == pytest.approx(best, rel=1e-9)


def test_the_relaxation_is_that_of_sparse_components_where_b_is_the_identity():
    """Published: 1.525 % above the optimum of pit props at five variables."""
    import spcacore

    A = spcacore.datasets.load_pitprops().correlation
    assert sparse_eigen_bound(A, np.eye(13), 5).bounds["search"] == pytest.approx(3.4061549468, rel=1e-9)
    bounds = sparse_eigen_bound(A, np.eye(13), 4, node_limit=2).bounds  # and trees at larger ratios
    assert 2.9374885 <= bounds["search"] < 2.946 < bounds["relaxation"]
    bounds = sparse_eigen_bound(A, np.eye(13), 5, node_limit=1).bounds
    assert 1.01525 - 1e-5 <= bounds["relaxation"] / 3.4061549468 <= 1.0165


def test_certified_pairs():
    rng = np.random.default_rng(4)
    X, Y = rng.standard_normal((50, 5)), rng.standard_normal((50, 4))
    Y[:, :2] += X[:, 1:3]
    result = sparse_cca(X, Y, 2, method="generalized", cardinality=(2, 2), certify=True)
    assert result.upper_bound[0] == pytest.approx(best_correlation(X, Y, 2, 2), rel=1e-9)
    assert (result.upper_bound >= result.strengths).all()
    assert result.upper_bound[1] < result.upper_bound[0]
    ridged = sparse_cca_bound(X, Y, 2, ridge=0.5).bound
    found = sparse_cca(X, Y, method="generalized", cardinality=2, ridge=0.5, certify=True)
    assert found.upper_bound[0] == pytest.approx(ridged, rel=1e-9)
    assert found.strengths[0] <= ridged < result.upper_bound[0]
    assert sparse_cca(X, Y, l1_bound=1.2).upper_bound is None


def test_a_matrix_of_zeros_has_the_bound_zero():
    assert abs(sparse_eigen_bound(np.zeros((16, 16)), np.eye(16), 5).bound) < 1e-9


def test_a_singular_b_has_the_spectral_bound_alone():
    A, B = np.diag([2.0, 1.0, 0.0]), np.diag([1.0, 1.0, 0.0])
    assert 2 <= sparse_eigen_bound(A, B, 1).bound <= 2 * (1 + 1e-12)
    for value in (1e6, -1e6):  # off by as much as LAPACK's may be
        bound = sparse_eigen_bound(value * np.diag([1.0, 1.0, 0.0]), B, 1).bound
        assert value + 6 * np.finfo(float).eps * 1e6 <= bound <= value + 1e-6
    for p in (300, 3):
        w = np.ones((1, p))
        result = sparse_eigen_bound(w.T @ w, w.T @ w, 2)
        assert set(result.bounds) == {"spectral"}
        assert result.bound == pytest.approx(1)
    X = normal(0, 5, 8)
    assert sparse_cca_bound(X, X[:, :2], 2).bounds == {"spectral": 1.0}
    assert sparse_cca_bound(np.zeros((5, 2)), X, 1).bound == 0
    with pytest.raises(ValueError, match="ratio has no bound"):
        sparse_eigen_bound(np.eye(3), w.T @ w, 2)


def test_rounding_lowers_no_bound_if_b_is_nearly_singular():
    """Exact matrices with the ratio 1 - |Wx|^2/x'Bx, where W maps one vector u to 0: the optimum is 1."""
    for seed in range(16):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(2, 8))
        u, B, W = rng.integers(1, 8, p), 2.0 ** -(16 + seed) * np.eye(p), np.zeros((p, p))
        for i, j in combinations(range(p), 2):
            w = np.zeros(p)
            w[i], w[j] = u[j], -u[i]
            B, W = B + rng.integers(2, 9) * np.outer(w, w), W + np.outer(w, w)
        for certify in (False, True):
            bound = sparse_eigen(B - W, B, 1, p, certify=certify).upper_bound
            assert bound is None or bound[0] >= 1, seed
        with suppress(ValueError):  # the ratio has no bound, for all that rounding tells
            assert sparse_eigen_bound(B - W, B, p).bound >= 1, seed


def test_many_variables_are_refused(with_limits):
    A, B, X = np.eye(4), np.eye(4), normal(0, 9, 3)
    with_limits(pencils, CERTIFIED_ORDER=4)
    assert sparse_eigen_bound(A, B, 2).bound == pytest.approx(1)
    with_limits(pencils, CERTIFIED_ORDER=3)
    assert eigen.refuse_many is pencils.refuse_many
    for call in (
        lambda: sparse_eigen_bound(A, B, 2),
        lambda: sparse_eigen(A, B, 1, 2, certify=True),
        lambda: sparse_cca_bound(X, X, 2),
        lambda: sparse_cca(X, X, method="generalized", cardinality=2, certify=True),
    ):
        with pytest.raises(ValueError, match="a certificate takes at most 3 variables"):
            call()
