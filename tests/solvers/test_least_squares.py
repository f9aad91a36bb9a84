"""Least squares components, and the fewest variables that explain a share, against enumeration and LAPACK."""

from itertools import combinations

import flat
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse
from in_turn import SEEDS, each_dtype, of_examples
from numpy.testing import assert_allclose, assert_array_equal
from oracles import centered, covariance, deflated, deflations, largest_on, normal, samples
from scipy.sparse.linalg import aslinearoperator

import spcacore
from spcacore import explained_variance, least_squares_component, sparse_pca
from spcacore.objectives import ratio as ratios


def regressed(X, V):
    """The variance of the centered X that a regression on the scores X V explains, by LAPACK."""
    X = centered(X)
    T = X @ V
    fitted = T @ np.linalg.lstsq(T, X, rcond=None)[0]
    return (fitted**2).sum() / (len(X) - 1)


def value_on(A, S, C=None):
    """The largest x'A^2x/x'Ax on a support, with C'x = 0; 0 where there is no such x."""
    S = list(S)
    M, G = (A @ A)[np.ix_(S, S)], A[np.ix_(S, S)]
    N = np.eye(len(S)) if C is None else scipy.linalg.null_space(C[S].T, rcond=1e-10)
    if N.shape[1] == 0:
        return 0.0
    return scipy.linalg.eigh(N.T @ M @ N, N.T @ G @ N, eigvals_only=True)[-1]


def enumerated(A, k, C=None):
    return max(value_on(A, S, C) for S in combinations(range(len(A)), k))


def score_share(A, x):
    """The squared correlation of a score with that of the first principal component."""
    values, vectors = np.linalg.eigh(A)
    return values[-1] * (vectors[:, -1] @ x) ** 2 / (x @ A @ x)


# ---- one component ----------------------------------------------------------------------------------


def test_projection_selects_variables_for_the_dense_score():
    X = samples(5, 40, 10)
    A, p = covariance(X), X.shape[1]
    u = np.linalg.eigh(A)[1][:, -1]

    def r_squared(S):
        b = A[S] @ u
        return b @ np.linalg.solve(A[np.ix_(S, S)], b)

    S = []
    for _ in range(4):
        S.append(max(set(range(p)) - set(S), key=lambda j: r_squared([*S, j])))
    x = flat.least_squares_component(X, 4, strategy="projection", swaps=False)
    assert_array_equal(np.flatnonzero(x.loading), sorted(S))


def test_auto_is_the_best_of_its_searches():
    X = samples(11, 40, 20)
    value = {
        strategy: flat.least_squares_component(X, 2, strategy=strategy, swaps=False).value
        for strategy in ("forward", "backward", "projection", "auto")
    }
    assert value["projection"] > 1.05 * max(value["forward"], value["backward"])
    assert value["auto"] == max(value.values())


@pytest.mark.parametrize("k", [1, 3, 6])
def test_large_matrices_are_searched_by_rows_with_the_same_result(with_limits, k):
    """Where A is not formed, and bounds stand for the diagonal of its square."""
    X = samples(1, 60, 300)
    X *= np.exp(-np.arange(300) / 60)
    options = {"strategy": "forward"}
    whole = flat.least_squares_component(X, k, **options)
    with_limits(ratios, LEAST_SQUARES_ORDER=100)
    for M in (X, scipy.sparse.csr_array(X), X.astype(np.float32)):
        by_rows = flat.least_squares_component(M, k, **options)
        assert_allclose(by_rows.loading, whole.loading, atol=1e-3 if M.dtype == np.float32 else 1e-7)
    by_rows = flat.least_squares_component(covariance(X), k, kind="covariance", **options)
    assert_allclose(by_rows.loading, whole.loading, atol=1e-7)


def test_columns_too_small_for_the_dtype_are_not_used():
    """Beside large ones their variance is zero in float32, or has no digits."""
    for seed in range(3):
        X = samples(seed, 40, 6).astype(np.float32)
        X *= np.where(np.arange(6) < 2, 1e18, 1e-18).astype(np.float32)
        x = least_squares_component(X, 4)
        assert_array_equal(np.flatnonzero(x.loading), [0, 1])


def test_bounds_do_not_pass_for_values(monkeypatch):
    """A flat spectrum, bounded by its largest eigenvalue alone, leaves the choice to what is computed."""
    for seed in range(3):
        X = normal(seed, 150, 120)
        whole = flat.least_squares_component(X, 3, strategy="forward")
        with monkeypatch.context() as patch:
            patch.setattr(ratios, "LEAST_SQUARES_ORDER", 50)
            patch.setattr(ratios, "LEAST_SQUARES_VECTORS", 1)
            by_rows = flat.least_squares_component(X, 3, strategy="forward")
        assert_allclose(by_rows.loading, whole.loading, atol=1e-7)


def test_spanned_variables_are_not_used():
    """Of multiples of others, or where there are few samples, no more variables are used than count."""
    X = samples(4, 30, 4)
    X = np.hstack([X, 2 * X, X[:, :1] - X[:, 1:2]])
    for strategy in ("auto", "forward", "backward", "exact"):
        x = flat.least_squares_component(X, 8, strategy=strategy)
        assert x.cardinality <= 4
        assert x.value == pytest.approx(np.linalg.eigvalsh(covariance(X))[-1], rel=1e-9)
    few = least_squares_component(samples(1, 5, 30), 20)
    assert few.cardinality == 4


def test_limits_of_the_exact_search_leave_a_bound():
    X = samples(0, 200, 24)
    x = flat.least_squares_component(X, 8, strategy="auto")
    with pytest.warns(RuntimeWarning, match="not converged"):
        limited = flat.least_squares_component(X, 8, strategy="exact", node_limit=2)
    assert not limited.converged
    assert x.value * (1 - 1e-9) <= limited.value <= limited.upper_bound
    assert limited.upper_bound <= np.linalg.eigvalsh(covariance(X))[-1] * (1 + 1e-9)
    full = flat.least_squares_component(X, 8, strategy="exact")
    assert full.value <= limited.upper_bound


# ---- several components -----------------------------------------------------------------------------


def test_uncorrelated_components_against_enumeration():
    for seed in range(3):
        A = covariance(samples(seed, 30, 8))
        V = sparse_pca(
            A,
            2,
            cardinality=4,
            kind="covariance",
            deflation="uncorrelated",
            method=spcacore.LeastSquares(strategy="exact"),
        ).loadings
        assert abs(V[:, 0] @ A @ V[:, 1]) < 1e-9 * A.max()
        v = A @ V[:, 1]
        assert v @ v / (V[:, 1] @ v) == pytest.approx(enumerated(A, 4, A @ V[:, :1]), rel=1e-8)


def test_any_deflation_maximizes_on_the_deflated_matrix():
    """Under Schur's, the default, values add up to what a regression on all scores explains."""
    X = samples(7, 40, 8)
    exact = spcacore.LeastSquares(strategy="exact")
    assert sparse_pca(X, 1, 2, method=exact).deflation == "schur"
    for deflation in ("schur", "projection", "orthogonalized_projection", "orthogonalized_schur", "naive"):
        result = sparse_pca(X, 2, 2, deflation=deflation, method=exact)
        V = result.loadings
        name = "projection" if deflation == "naive" else deflation
        after = deflated(covariance(X), V[:, 0], name, [])
        v = after @ V[:, 1]
        most = max(
            value_on(after, S)
            for S in combinations(range(8), 2)
            if np.linalg.eigvalsh(after[np.ix_(S, S)])[0] > 1e-6
        )
        assert v @ v / (V[:, 1] @ v) == pytest.approx(most, rel=1e-6)
        if deflation == "schur":
            assert result.explained_variance.sum() == pytest.approx(regressed(X, V), rel=1e-9)


# ---- the fewest variables that explain a share ------------------------------------------------------


def fewest(A, share, value):
    """The smallest k with a support of that value, by enumeration."""
    least = share * np.linalg.eigvalsh(A)[-1] * (1 - 1e-9)
    return next(
        k
        for k in range(1, len(A) + 1)
        if max(value(A, list(S)) for S in combinations(range(len(A)), k)) >= least
    )


def variance_on(A, S):
    return largest_on(A, S)


@pytest.mark.share(3)
@pytest.mark.parametrize("share", [0.3, 0.8, 0.9, 0.95, 0.99, 1.0])
def test_fewest_variables_against_enumeration(share):
    for seed in range(2):
        A = covariance(samples(seed, 30, 9))
        k = sparse_pca(
            A, 1, method="branch_and_bound", kind="covariance", cardinality=spcacore.Explained(share)
        ).cardinality[0]
        assert k == fewest(A, share, variance_on)
        x = flat.least_squares_component(
            A, cardinality=spcacore.Explained(share), kind="covariance", strategy="exact"
        )
        assert x.cardinality == fewest(A, share, value_on)
        assert x.value >= share * np.linalg.eigvalsh(A)[-1] * (1 - 1e-9)


@pytest.mark.parametrize("method", ["tpower", "greedy", "dspca", "thresholding", "least_squares"])
def test_fewest_variables_reach_the_share_in_each_component(method):
    A = covariance(samples(3, 40, 12))
    shares = [0.9, 0.8, 0.7]
    result = sparse_pca(A, 3, method=method, kind="covariance", cardinality=spcacore.Explained(shares))
    V = result.loadings
    for x, share, after in zip(V.T, shares, deflations(A, V, result.deflation), strict=False):
        square = after @ x
        value = square @ square / (x @ square) if method == "least_squares" else x @ square
        assert value >= share * np.linalg.eigvalsh(after)[-1] * (1 - 1e-8)


def test_fewest_variables_for_the_score():
    for seed in range(4):
        A = covariance(samples(seed, 40, 10))
        for method in ("tpower", "least_squares"):
            x = sparse_pca(
                A, 1, method=method, kind="covariance", cardinality=spcacore.Explained(0.9, "score")
            ).loadings[:, 0]
            assert score_share(A, x) >= 0.9 * (1 - 1e-9)
        # of least squares the regression of the score on the variables itself: the fewest, by enumeration
        u = np.linalg.eigh(A)[1][:, -1]

        def r_squared(A, S, u=u):
            return (A[S] @ u) @ np.linalg.solve(A[np.ix_(S, S)], A[S] @ u)

        projected = flat.least_squares_component(
            A, cardinality=spcacore.Explained(0.9, "score"), kind="covariance", strategy="projection"
        )
        assert score_share(A, projected.loading) >= 0.9 * (1 - 1e-9)
        exact = flat.least_squares_component(
            A, cardinality=spcacore.Explained(0.9, "score"), kind="covariance", strategy="exact"
        )
        assert exact.cardinality == fewest(A, 0.9, r_squared)
        assert score_share(A, exact.loading) >= 0.9 * (1 - 1e-9)
        square = A @ exact.loading
        assert exact.value == pytest.approx(square @ square / (exact.loading @ square), rel=1e-9)


def test_one_variable_less_does_not_reach_the_score():
    for seed in range(4):
        A = covariance(samples(seed, 40, 12))
        options = {"method": "thresholding", "renormalize": False, "kind": "covariance"}
        k = flat.sparse_pca(A, 1, explained=0.9, explained_of="score", **options).cardinality[0]
        shares = [
            score_share(
                A,
                flat.sparse_pca(A, 1, cardinality=j, **options).loadings[:, 0],
            )
            for j in (k - 1, k)
        ]
        assert shares[0] < 0.9 <= shares[1]


def test_of_products_alone():
    X = samples(2, 40, 30) * np.exp(-np.arange(30) / 8)
    X = centered(X)
    of_entries = sparse_pca(X, 1, cardinality=spcacore.Explained(0.8))
    of_products = sparse_pca(aslinearoperator(X), 1, center=False, cardinality=spcacore.Explained(0.8))
    assert of_products.cardinality[0] == of_entries.cardinality[0]


@pytest.mark.parametrize("p", [5, 600])
def test_no_share_of_nothing(p):
    with pytest.warns(RuntimeWarning, match="no variance is left after 0"):
        assert sparse_pca(np.ones((10, p)), 1, cardinality=spcacore.Explained(0.9)).n_components == 0
    X = np.ones((10, p))
    X[:, 1] = np.arange(10)
    for method in ("tpower", "greedy", "least_squares"):
        with pytest.warns(RuntimeWarning, match="no variance is left after 1"):
            result = sparse_pca(X, 2, method=method, cardinality=spcacore.Explained(0.9))
        assert_array_equal(np.flatnonzero(result.loadings[:, 0]), [1])


# ---- as many components as explain a share of the total ---------------------------------------------


@pytest.mark.parametrize(
    ("method", "definition"), [("tpower", "cumulative"), ("least_squares", "regression")]
)
def test_as_many_components_as_explain_a_share_of_the_total(method, definition):
    X = samples(10, 50, 12)
    for share in (0.5, 0.8, 0.95):
        for kind, M in (("data", X), ("covariance", covariance(X))):
            result = sparse_pca(M, share, cardinality=3, kind=kind, method=method)
            explained = explained_variance(M, result.loadings, definition, kind=kind, ratio=True)
            assert_allclose(result.explained_variance_ratio, explained, rtol=1e-9)
            assert explained[:-1].sum() < share <= explained.sum()


def test_components_that_do_not_explain_the_share():
    A = covariance(samples(1, 40, 10))
    with pytest.warns(
        RuntimeWarning, match=r"nothing feasible is left after 1 component: they explain 0\.\d+"
    ):
        sparse_pca(A, 0.9, cardinality=1, kind="covariance", deflation="uncorrelated")
    with pytest.warns(RuntimeWarning, match=r"0 components: they explain 0 of the total, not 0\.5$"):
        sparse_pca(np.ones((6, 4)), 0.5)


def test_no_more_components_than_the_rank_allows():
    with pytest.warns(RuntimeWarning, match="there are no more than 3 components: they explain 0"):
        result = sparse_pca(samples(0, 3, 10), 0.999, cardinality=1)
    assert result.n_components == 3


@each_dtype
@pytest.mark.parametrize("seed", [4, 45, 48])
def test_no_component_of_rounding_alone(dtype, rng):
    """Three rows have two components, the first of which may have little variance of its own."""
    p = int(rng.integers(3, 9))
    A = np.corrcoef(rng.standard_normal((3, p)), rowvar=False).astype(dtype)
    with pytest.warns(RuntimeWarning, match="no variance is left after 2 of the 3 components"):
        assert sparse_pca(A, 3, p, method="least_squares", kind="covariance").n_components == 2


@pytest.mark.parametrize("deflation", ["projection", "orthogonalized_projection", "orthogonal"])
def test_components_after_two_of_one_score(deflation):
    """Of four rows two loadings of three variables have the same score, which ends only Schur's deflation."""
    X = samples(55, 4, 6)
    V = sparse_pca(X, 3, 3, method="least_squares", deflation=deflation).loadings
    T = centered(X) @ V[:, :2]
    assert abs(np.corrcoef(T.T)[0, 1]) == pytest.approx(1, rel=1e-9)
    assert V.shape[1] == 3
    if deflation != "orthogonal":
        left = deflations(covariance(X), V[:, :2], deflation)[-1]
        v = left @ V[:, 2]
        assert v @ v / (V[:, 2] @ v) == pytest.approx(enumerated(left, 3), rel=1e-7)


# ---- the definition ---------------------------------------------------------------------------------


@of_examples(20, seed=SEEDS)
def test_variance_by_regression_is_that_of_least_squares(seed):
    X = samples(seed, 40, 10)
    A = covariance(X)
    V = normal(seed, 10, 4)
    V[np.abs(V) < 0.7] = 0
    V[0, :] += 0.1
    V = np.column_stack([V, V[:, 0] - V[:, 1]])
    for M, kind in ((X, "data"), (A, "covariance"), (scipy.sparse.csr_array(X), "data")):
        parts = explained_variance(M, V, "regression", kind=kind)
        for t in range(1, 5):
            assert parts[:t].sum() == pytest.approx(regressed(X, V[:, :t]), rel=1e-8)
        assert parts[4] == 0
        assert parts.sum() >= explained_variance(M, V, kind=kind).sum() * (1 - 1e-9)
        assert parts.sum() <= np.linalg.eigvalsh(A)[-4:].sum() * (1 + 1e-9)
