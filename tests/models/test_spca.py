"""spca against the R package elasticnet, convex solvers, and what it promises."""

import math
import warnings
from itertools import combinations

import flat
import numpy as np
import pytest
import scipy.optimize
from extras import optional
from hypothesis import given
from hypothesis import strategies as st
from in_turn import SEEDS, each_kind, of_examples
from numpy.testing import assert_allclose, assert_array_equal
from oracles import (
    centered,
    covariance,
    dense_vector,
    normal,
    optimum,
    reference,
    samples,
    spanned_variance,
)  # fmt: skip

import spcacore
from spcacore import _core, spca

cvxpy = optional("cvxpy")
PITPROPS = spcacore.datasets.load_pitprops().correlation
PENALTIES = [0.06, 0.16, 0.1, 0.5, 0.5, 0.5]


def signed(V):
    return V * np.sign(V[np.argmax(np.abs(V), axis=0), np.arange(V.shape[1])])


# ---- published tables and the R package -------------------------------------------------------------


def test_the_table_of_the_paper():
    result = spca(PITPROPS, 6, penalty=PENALTIES, ridge=1e-6, kind="covariance", tol=1e-10)
    assert result.cardinality.tolist() == [7, 4, 4, 1, 1, 1]
    assert_allclose(
        result.adjusted_variance / 13,
        [0.280066580, 0.139722575, 0.133114548, 0.074446704, 0.068021255, 0.062250211],
        atol=1e-9,
    )
    name = "pitprops_elasticnet_spca_penalty_tight1e-10"
    assert_allclose(result.loadings, signed(reference(f"{name}_loadings")), atol=1e-12)
    assert_allclose(result.adjusted_variance / 13, reference(f"{name}_pev"), atol=1e-12)


def test_by_number_of_variables():
    result = spca(
        PITPROPS, 6, cardinality=[7, 4, 4, 1, 1, 1], ridge=1e-6, refine=False, kind="covariance", tol=1e-3
    )
    theirs = reference("pitprops_elasticnet_spca_varnum_7_4_4_1_1_1_loadings")
    assert_allclose(result.loadings, signed(theirs), atol=1e-12)
    assert result.adjusted_variance.sum() / 13 == pytest.approx(0.7578, abs=5e-5)
    assert result.cardinality.tolist() == [7, 4, 4, 1, 1, 1]


def test_data():
    """Penalties are on the scale of X'X; both packages stop early."""
    X = reference("small40x12_X")
    theirs = signed(reference("small_elasticnet_spca_penalty20_lambda1_loadings"))
    result = spca(X, 3, penalty=20, ridge=1, tol=1e-8)
    assert_allclose(result.loadings, theirs, atol=1e-4)
    scaled = covariance(X) * (len(X) - 1)
    same = spca(scaled, 3, penalty=20, ridge=1, tol=1e-8, kind="covariance")
    assert_allclose(same.loadings, result.loadings, atol=1e-9)
    assert_allclose(same.objective, result.objective, rtol=1e-10)
    assert same.penalty == pytest.approx(20.0)


def test_infinite_ridge():
    """The R function's parameter is the level, half of the paper's penalty."""
    X = reference("small40x12_X")
    result = spca(X, 3, penalty=40, ridge=np.inf, tol=1e-9)
    assert_allclose(
        result.loadings, signed(reference("small_elasticnet_arrayspc_para20_loadings")), atol=1e-7
    )
    share = result.adjusted_variance / result.total_variance
    assert_allclose(share, reference("small_elasticnet_arrayspc_para20_pev"), atol=1e-7)


# ---- one elastic net --------------------------------------------------------------------------------

NOTHING = np.zeros(0, np.intp), np.zeros(0)


@of_examples(40, seed=SEEDS, ridge=st.sampled_from([0.0, 1e-6, 0.1, 3.0]), share=st.floats(0.0, 1.1))
def test_net_of_given_penalty(seed, ridge, share):
    """The optimality conditions, which prove a convex problem solved."""
    rng = np.random.default_rng(seed)
    p, n = int(rng.integers(1, 15)), int(rng.integers(2, 20))
    X = rng.standard_normal((n, p)) * rng.choice([0.1, 1, 10], p)
    if p > 3:
        X[:, 3] = X[:, 0]  # a duplicate
    if p > 5:
        X[:, 5] = X[:, 1] - 0.3 * X[:, 2] + 0.7 * X[:, 4]  # dependent but for rounding
    G, c = X.T @ X, X.T @ rng.standard_normal(n)
    floor = share * np.abs(c).max()
    status, index, value, level = _core.elastic_net(G, c, p, ridge, floor, 1e-13, *NOTHING)
    assert status == 0
    assert level == floor
    b = dense_vector(p, index, value)
    residual = c - G @ b - ridge * b
    tolerance = 1e-8 * np.abs(c).max()
    assert (np.abs(residual) <= floor + tolerance).all()
    if ridge == 0 and len(index):  # what depends on the others to rounding stays out
        assert np.linalg.matrix_rank(X[:, index]) == len(index)
    assert_allclose(residual[index], floor * np.sign(value), atol=tolerance)
    again = _core.elastic_net(G, c, p, ridge, floor, 1e-13, index, value)
    assert_array_equal(np.sort(again[1]), np.sort(index))


@of_examples(40, seed=SEEDS, ridge=st.sampled_from([1e-6, 0.1, 3.0]))
def test_net_of_given_number(seed, ridge):
    """The smallest penalty before one variable more: there a variable outside has the same product."""
    rng = np.random.default_rng(seed)
    p, n = int(rng.integers(3, 15)), 20
    X = rng.standard_normal((n, p)) @ rng.standard_normal((p, p))
    G, c = X.T @ X, X.T @ rng.standard_normal(n)
    k = int(rng.integers(1, p))
    _, index, value, level = _core.elastic_net(G, c, k, ridge, 0.0, 1e-13, *NOTHING)
    assert len(index) == k
    b = dense_vector(p, index, value)
    residual = np.abs(c - G @ b - ridge * b)
    assert_allclose(residual[index], level, rtol=1e-8)
    outside = np.delete(residual, index)
    assert outside.max() == pytest.approx(level, rel=1e-8)
    # a little less would take in another variable
    more = _core.elastic_net(G, c, p, ridge, level * (1 - 1e-6), 1e-13, *NOTHING)
    assert set(more[1]) != set(index)
    below = _core.elastic_net(G, c, p, ridge, level * (1 + 1e-6), 1e-13, *NOTHING)
    assert set(below[1]) <= set(index)
    again = _core.elastic_net(G, c, k, ridge, 0.0, 1e-13, index, value)
    assert_allclose(again[3], level, rtol=1e-9)
    few = (_core.elastic_net(G, c, 1, ridge, 0.0, 1e-13, *guess) for guess in (NOTHING, (index, value)))
    assert len({(*x[1], x[3]) for x in few}) == 1  # a guess of more than may be


# ---- the turns --------------------------------------------------------------------------------------


def test_each_turn_is_solved():
    """At the limit: B of every column by a convex solver given V, and V by the singular vectors given B."""
    X = samples(5, 40, 10)
    G = covariance(X) * 39
    ridge, penalty = 2.0, np.array([30.0, 60.0, 20.0])
    result = spca(X, 3, penalty=penalty, ridge=ridge, tol=1e-11, max_iter=10000)
    B = cvxpy.Variable((10, 3))
    U, _, Wt = np.linalg.svd(
        G @ result.loadings @ np.diag(_lengths(G, result, ridge, penalty)), full_matrices=False
    )
    V = U @ Wt
    cost = sum(
        cvxpy.sum_squares(np.linalg.cholesky(G + ridge * np.eye(10)).T @ B[:, j])
        - 2 * (G @ V[:, j]) @ B[:, j]
        + penalty[j] * cvxpy.norm1(B[:, j])
        for j in range(3)
    )
    best = cvxpy.Problem(cvxpy.Minimize(cost)).solve(solver="CLARABEL")
    assert_allclose(signed(B.value / np.linalg.norm(B.value, axis=0)), result.loadings, atol=1e-5)
    assert result.objective[-1] == pytest.approx(np.trace(G) + best, rel=1e-7)


def _lengths(G, result, ridge, penalty):
    """Of the columns of B whose directions are known: V = polar(G B), and each length is that of its net."""
    length = np.ones(result.n_components)
    for _ in range(2000):
        B = result.loadings * length
        U, _, Wt = np.linalg.svd(G @ B, full_matrices=False)
        for j, (x, v) in enumerate(zip(result.loadings.T, (U @ Wt).T, strict=True)):
            length[j] = (x @ G @ v - penalty[j] / 2 * np.abs(x).sum()) / (x @ G @ x + ridge)
    return length


@of_examples(30, seed=SEEDS, ridge=st.sampled_from([0.0, 1e-3, 1.0, np.inf]), share=st.floats(0.0, 0.8))
def test_the_objective_never_rises(seed, ridge, share):
    X = samples(seed, 25, 9)
    penalty = share * 2 * np.linalg.eigvalsh(covariance(X) * 24)[-1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        result = spca(X, 3, penalty=penalty, ridge=ridge, tol=0, max_iter=40)
    scale = abs(result.objective).max() + np.trace(covariance(X)) * 24
    assert np.diff(result.objective).max(initial=0) <= 1e-12 * scale
    assert np.isfinite(result.loadings).all()
    norms = np.linalg.norm(result.loadings, axis=0)
    assert_allclose(norms[norms > 0], 1, atol=1e-12)


@pytest.mark.parametrize("options", [{"penalty": 30.0}, {"penalty": 60.0, "ridge": 9.0}, {"cardinality": 7}])
def test_the_same_numbers_in_single_precision(options):
    """Steps are small where directions are close: what ends them must not be larger than they are."""
    X = normal(2, 100, 30).astype(np.float32)
    single, double = (spca(Z, 3, **options, refine=False) for Z in (X, X.astype(np.float64)))
    assert double.converged
    assert_allclose(single.loadings, double.loadings, atol=1e-4)


@pytest.mark.parametrize("penalty", [60.0, 69.0, 75.0])
def test_directions_that_do_not_move_do_not_end_the_iterations(penalty):
    """Loadings of one variable are unit vectors at once; their lengths go on to the best, by SciPy."""
    G = np.array([[158.0, 72, -39], [72, 94, -51], [-39, -51, 43]])
    result = spca(G, 2, penalty=penalty, ridge=1, kind="covariance")
    assert result.converged
    assert result.cardinality.tolist() == [1, 1]

    def objective(lengths):
        B = result.loadings * lengths
        parts = -2 * np.linalg.svd(G @ B, compute_uv=False).sum(), np.trace(B.T @ G @ B), np.sum(B * B)
        return np.trace(G) + sum(parts) + penalty * np.abs(B).sum()

    best = scipy.optimize.minimize(
        objective, [1, 1], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-10}
    )
    assert result.objective[-1] == pytest.approx(best.fun, rel=1e-8)


# ---- how much a given number of variables explains --------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_one_component_is_the_best_of_all_supports(seed, rng):
    p = int(rng.integers(8, 12)) if seed else 1
    A = covariance(rng.standard_normal((3 * p, p)) @ rng.standard_normal((p, p)), scale=bool(seed % 2))
    k = int(rng.integers(2, p - 2)) if seed else 1
    assert spca(A, 1, cardinality=k, kind="covariance").explained_variance[0] == pytest.approx(optimum(A, k))


def best_pair(A, k):
    """What two loadings explain, each the best of all supports given the other, from each support in turn."""
    p, best = len(A), 0.0
    supports = np.array([*combinations(range(p), k)])
    at = supports[:, :, None], supports[:, None, :]

    def other(x):
        P = np.eye(p) - np.outer(x, x) / (x @ x)
        L = np.linalg.inv(np.linalg.cholesky(P[at] + 1e-10 * np.eye(k)))
        values, vectors = np.linalg.eigh(L @ (P @ A @ P)[at] @ L.transpose(0, 2, 1))
        i, y = np.argmax(values[:, -1]), np.zeros(p)
        y[supports[i]] = L[i].T @ vectors[i][:, -1]
        return y

    for support in supports:
        y = np.zeros(p)
        y[support] = np.linalg.eigh(A[np.ix_(support, support)])[1][:, -1]
        for _ in range(3):
            x = other(y)
            y = other(x)
        best = max(best, spanned_variance(A, np.stack([x, y], axis=1)))
    return best


@pytest.mark.parametrize("seed", [3, 24])
def test_two_components_are_the_best_pair(rng):
    """No start alone, neither the elastic nets nor components in turn, leads there."""
    X = rng.standard_normal((20, 3)) @ rng.standard_normal((3, 7)) + 0.5 * rng.standard_normal((20, 7))
    A = covariance(X)
    V = spca(A, 2, 3, kind="covariance").loadings
    assert spanned_variance(A, V) >= best_pair(A, 3) * (1 - 1e-9)


def factors(seed, p):
    rng = np.random.default_rng(seed)
    F = rng.standard_normal((p, 4))
    return F @ F.T + np.diag(rng.uniform(0.5, 2, p))


@pytest.mark.share(2)
@pytest.mark.parametrize(("seed", "p", "first"), [(1, 20, 5), (3, 20, 20), (8, 20, 5), (5, 40, 40)])
def test_supports_that_alternate_are_told_and_refined(seed, p, first):
    """With a small ridge nothing settles: the best on the way counts, and then joint rounds do."""
    A = factors(seed, p)
    options = {"cardinality": [first, 5, 5], "ridge": 1e-6, "kind": "covariance"}
    with pytest.warns(RuntimeWarning, match="supports alternate"):
        plain = flat.spca(A, 3, refine=False, **options)
    assert not plain.converged
    assert plain.n_iter < 200
    for some in range(1, plain.n_iter, 20):
        with pytest.warns(RuntimeWarning, match="not converged in"):
            earlier = flat.spca(A, 3, refine=False, max_iter=some, **options)
        assert earlier.explained_variance.sum() <= plain.explained_variance.sum() * (1 + 1e-9)
    refined = flat.spca(A, 3, **options)
    assert refined.converged
    in_turn = spcacore.sparse_pca(A, 3, [first, 5, 5], kind="covariance").explained_variance.sum()
    least = max(plain.explained_variance.sum(), in_turn)
    assert refined.explained_variance.sum() >= least * (1 - 1e-9)
    usual = flat.spca(A, 3, **(options | {"ridge": None}))
    assert usual.converged
    assert usual.explained_variance.sum() >= in_turn * (1 - 1e-9)


def test_refinement_among_some_of_many_variables(monkeypatch):
    """Components in turn are sought among all variables, so that those that take part are the right ones, of
    equal variances too."""
    monkeypatch.setattr("spcacore.models.joint_search.TOGETHER_ORDER", 60)
    X, planted = spcacore.datasets.make_spiked(40, 300, cardinality=10, rng=1)
    plain, refined = (spca(X, 2, cardinality=10, refine=refine) for refine in (False, True))
    assert ((refined.loadings != 0) == (planted != 0)).all()
    assert refined.explained_variance.sum() > plain.explained_variance.sum()
    assert_allclose(refined.explained_variance, spcacore.explained_variance(X, refined.loadings), rtol=1e-9)
    X = normal(1, 30, 1500)
    found = (
        f(X, 2, cardinality=10, scale=True).explained_variance.sum() for f in (spca, spcacore.sparse_pca)
    )
    assert next(found) >= next(found) * (1 - 1e-9)


# ---- what may go wrong ------------------------------------------------------------------------------


def test_a_penalty_too_large_is_told():
    X = samples(2)
    with pytest.warns(RuntimeWarning, match="without nonzeros, the first at 0"):
        result = spca(X, 2, penalty=1e9)
    assert not result.loadings.any()
    assert result.explained_variance.tolist() == [0, 0]
    assert result.converged
    with pytest.warns(RuntimeWarning, match="1 loading without nonzeros, the first at 1"):
        one = spca(X, 2, penalty=[1.0, 1e9])
    assert one.loadings[:, 0].any()


def test_more_components_than_the_rank(rng):
    X = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 10))
    with pytest.warns(RuntimeWarning, match="only 2 of the 4 components"):
        two = spca(X, 4, penalty=[1, 2, 3, 4])
    assert two.loadings.shape == (10, 2)


@given(
    exponent=st.integers(-500, 500),
    ridge=st.integers(-1000, 1020),
    sparsity=st.sampled_from([{"cardinality": 3}, {"penalty": 0.0}]),
)
def test_loadings_have_unit_norm_in_any_units(exponent, ridge, sparsity):
    """Whatever the ridge is beside X'X; and loadings do not depend on the unit of both."""
    X = samples(6)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        result = flat.spca(np.ldexp(X, exponent), 2, ridge=math.ldexp(1.0, ridge), max_iter=3, **sparsity)
    norm = np.linalg.norm(result.loadings, axis=0)
    assert_allclose(norm[norm > 0], 1, rtol=1e-12)
    assert norm.all()
    assert result.ridge == math.ldexp(1.0, ridge)


@pytest.mark.parametrize(("scale", "ridge"), [(1.0, 1e165), (1.0, 1e300), (1e-100, 1e-6), (1e-150, 1e-6)])
def test_a_huge_ridge_is_an_infinite_one(scale, ridge):
    """Of loadings at unit length: B is the soft threshold of the products, over the ridge."""
    X = samples(6)
    limit = spca(X, 2, penalty=40, ridge=np.inf, tol=1e-9)
    result = spca(X * scale, 2, penalty=40 * scale**2, ridge=ridge, tol=1e-9)
    assert (limit.cardinality < 12).any()
    assert_allclose(result.loadings, limit.loadings, atol=1e-6)


@each_kind
def test_default_ridge(kind):
    """A millionth of the mean of the diagonal of X'X; infinite where p > n."""
    X = samples(3)
    C = centered(X)
    A = C.T @ C if kind == "covariance" else X
    result = spca(A, 2, penalty=1.0, kind=kind, tol=0.1)
    assert result.ridge == pytest.approx(1e-6 * np.mean(np.sum(C**2, axis=0)), rel=1e-12)
    assert spca(X[:10], 2, penalty=1.0, tol=0.1).ridge == np.inf


@pytest.mark.parametrize("max_iter", [1, 4])
def test_iterations_end_at_the_limit(max_iter):
    with pytest.warns(RuntimeWarning, match=f"not converged in {max_iter} iterations?$"):
        result = spca(samples(3), 2, penalty=1.0, tol=0, max_iter=max_iter)
    assert result.n_iter == len(result.objective) == max_iter
    assert not result.converged


@pytest.mark.parametrize("shape", [(8, 20), (30, 6)])
@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
def test_objective_of_an_infinite_ridge_in_units_of_the_data(shape, unit):
    """Without penalty B = X'X v and the objective is the negative square of the largest eigenvalue of X'X."""
    X = unit * normal(0, *shape)
    largest = np.linalg.norm(centered(X), 2) ** 2
    result = spca(X, 1, penalty=0.0, ridge=np.inf, tol=1e-9, max_iter=9999)
    assert result.objective[-1] == pytest.approx(-(largest**2), rel=1e-9)
