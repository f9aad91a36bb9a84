"""Every method of sparse_pca with every deflation and constraint, and what other packages publish of them."""

import warnings

import flat
import numpy as np
import pytest
from hypothesis import given, settings
from in_turn import SEEDS, each_dtype, each_kind, examples
from known_variables import signed_ratio_optimum
from models.test_constrained_optimum import constrained_optimum
from numpy.testing import assert_allclose, assert_array_equal
from oracles import (
    best_quotient,
    covariance,
    deflated,
    deflations,
    leading_on,
    normal,
    products,
    quotient,
    reference,
    samples,
    spanned_variance,
)
from scipy.sparse.linalg import aslinearoperator

import spcacore
from spcacore import explained_variance, sparse_pca, tpower
from spcacore.models.request import CONSTRAINTS
from spcacore.operators.deflation import DEFLATIONS
from spcacore.operators.deflation import DeflatedOperator as Deflated
from spcacore.operators.inputs import as_problem
from spcacore.solvers.refitting import refit
from spcacore.solvers.solution import Solution
from spcacore.solvers.starts import variance_alone as _promise
from spcacore.solvers.table import SOLVERS

PITPROPS = spcacore.datasets.load_pitprops().correlation
SPARSITY = {
    "cardinality": {"cardinality": 4},
    "l1_bound": {"l1_bound": 1.7},
    "penalty": {"penalty": 0.3, "relative": True},
}


PAIRS = [
    (method, deflation)
    for method in SOLVERS
    for deflation in DEFLATIONS
    if DEFLATIONS[deflation].semidefinite or SOLVERS[method].objective == "variance"
]


def sparse(method, **more):
    return {"method": method, **SPARSITY[SOLVERS[method].sparsity], **more}


def quiet(*args, **kwargs):
    """Without warnings, of too few iterations or of no variance left."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return flat.sparse_pca(*args, **kwargs)


# ---- the table of deflations ------------------------------------------------------------------------


def seeds(count):
    """So many seeds of samples."""
    return lambda test: given(seed=SEEDS)(settings(max_examples=count, deadline=None, derandomize=True)(test))


@pytest.mark.share(16)
@pytest.mark.parametrize(("method", "deflation"), PAIRS)
@seeds(8)
def test_what_each_deflation_promises_of_each_method(method, deflation, seed):
    X = samples(seed)
    A = covariance(X)
    result = quiet(X, 3, deflation=deflation, **sparse(method))
    V = result.loadings
    assert V.shape[1] >= 1
    assert_allclose(np.linalg.norm(V, axis=0), 1, atol=1e-12)
    assert (V[np.argmax(np.abs(V), axis=0), np.arange(V.shape[1])] > 0).all()
    size = A.max()
    for x, after in zip(V.T, deflations(A, V, deflation)[1:], strict=True):
        if deflation != "orthogonalized_hotelling":
            assert abs(x @ after @ x) < 1e-9 * size
        if "hotelling" not in deflation:
            assert np.abs(after @ x).max() < 1e-9 * size
            assert np.linalg.eigvalsh(after)[0] > -1e-9 * size
    if deflation in ("schur", "orthogonalized_projection", "orthogonalized_schur", "generalized"):
        assert np.abs(after @ V).max() < 1e-9 * size
    together = explained_variance(X, V).sum()
    if SOLVERS[method].objective == "variance":
        assert together == pytest.approx(result.explained_variance.sum(), rel=1e-13)
    assert together == pytest.approx(spanned_variance(A, V), rel=1e-9)
    assert together <= np.linalg.eigvalsh(A)[-V.shape[1] :].sum() * (1 + 1e-12)


@pytest.mark.share(8)
@pytest.mark.parametrize(("method", "deflation"), PAIRS)
def test_extending_is_the_same_as_asking_at_once(method, deflation):
    X = samples(6)
    whole = quiet(X, 4, deflation=deflation, **sparse(method))
    part = quiet(X, 2, deflation=deflation, **sparse(method))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        longer = part.extend(X, 2)
    assert_allclose(longer.loadings, whole.loadings, atol=1e-10)


@pytest.mark.parametrize("method", ["tpower", "gpower", "pmd", "scotlass", "thresholding"])
def test_values_are_the_leading_eigenvector_of_their_support(method):
    A = covariance(samples(11))
    raw, found = (
        quiet(A, 1, kind="covariance", renormalize=values, **sparse(method)).loadings[:, 0]
        for values in (False, True)
    )
    S = np.flatnonzero(found)
    assert_array_equal(np.flatnonzero(raw), S)
    x = leading_on(A, S)
    assert_allclose(abs(found[S]), abs(x), atol=1e-9)


# ---- generalized deflation and constraints, by brute force ------------------------------------------


@pytest.mark.share(2)
@pytest.mark.parametrize("method", [m for m, one in SOLVERS.items() if one.maximizes_quotient])
def test_generalized_deflation_nearly_always_finds_the_largest_quotient(method):
    """Of as many variables; with penalties and bounds of norms, less often."""
    ratios = []
    for seed in range(25):
        A = covariance(samples(seed, 20, 8))
        how = sparse(method, kind="covariance", deflation="generalized")
        V = quiet(A, 3, **how | ({"cardinality": 3} if "cardinality" in how else {})).loadings
        for t in range(1, V.shape[1]):
            Q = np.linalg.qr(V[:, :t])[0]
            ratios.append(quotient(A, Q, V[:, t]) / best_quotient(A, Q, np.count_nonzero(V[:, t])))
    assert max(ratios) < 1 + 1e-9
    least = {"branch_and_bound": 0.99, "tpower": 0.95, "greedy": 0.85, "dspca": 0.85}.get(method, 0.5)
    assert np.mean(np.array(ratios) > 1 - 1e-9) > least
    assert min(ratios) > 0.8


@pytest.mark.parametrize(("constraint", "least"), [("orthogonal", 0.943), ("uncorrelated", 0.95)])
def test_growing_penalties_settle_a_single_start(constraint, least):
    """Of the enumerated optimum, on average; without penalties .935 and .922."""
    ratios = []
    for seed in range(20):
        A = covariance(samples(seed, 20, 8))
        options = {"kind": "covariance", "n_starts": 1, "swaps": False}
        V = quiet(A, 3, cardinality=4, constraint=constraint, **options).loadings
        for t in range(1, V.shape[1]):
            C = V[:, :t] if constraint == "orthogonal" else A @ V[:, :t]
            ratios.append(V[:, t] @ A @ V[:, t] / constrained_optimum(A, C, 4))
    assert len(ratios) == 40
    assert max(ratios) < 1 + 1e-9
    assert np.mean(ratios) > least


@pytest.mark.parametrize("method", ["tpower", "dspca"])
def test_nothing_feasible(method):
    """One variable a component cannot be uncorrelated with the others' components."""
    A = covariance(samples(1))
    with pytest.warns(RuntimeWarning, match="nothing feasible is left after 1 of the 3"):
        result = sparse_pca(A, 3, cardinality=1, kind="covariance", deflation="uncorrelated", method=method)
    assert result.n_components == 1
    V = sparse_pca(A, 3, cardinality=1, kind="covariance", deflation="orthogonal").loadings
    assert_array_equal(np.sort(np.argmax(V, axis=0)), np.sort(np.argsort(A.diagonal())[-3:]))


@pytest.mark.parametrize(
    ("method", "seed", "n", "p"),
    [
        (spcacore.Thresholding(), 2, 6, 3),
        (spcacore.LeastSquares(), 49, 6, 3),
        (spcacore.GPower(0.3, relative=True), 32, 8, 4),
    ],
)
def test_what_orthogonality_makes_zero_is_no_loading(method, seed, n, p):
    """Next to x = (0, a, b), a loading of variables 0 and 1 can only be (1, 0, 0), without rounding."""
    k = 2 if method.sparsity == "cardinality" else None
    V = sparse_pca(samples(seed, n, p), 3, k, method=method, deflation="orthogonal").loadings
    assert_allclose(V.T @ V, np.eye(3), atol=1e-14)
    assert np.abs(V[V != 0]).min() > 1e-6


@pytest.mark.share(8)
@each_dtype
@pytest.mark.parametrize("method", SOLVERS)
def test_the_end_of_the_rank(method, dtype):
    """Where rounding is all that is left, nothing more is found and nothing fails."""
    dense = {"cardinality": {"cardinality": 6}, "l1_bound": {"l1_bound": 2.4}, "penalty": {"penalty": 0.0}}
    for seed in range(examples(3)):
        rng = np.random.default_rng(seed)
        n, rank = int(rng.integers(3, 9)), int(rng.integers(1, 3))
        X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, 6))
        if seed == 0:
            X[:, rng.integers(6)] = 1.0
        A = covariance(X).astype(dtype)
        # Of what least squares finds, other loadings of no more variables may have the same scores.
        most = np.linalg.matrix_rank(covariance(X)) if SOLVERS[method].objective == "variance" else 3
        for rule in (*(d for m, d in PAIRS if m == method), *CONSTRAINTS):
            options = {"method": method, "deflation": rule, **dense[SOLVERS[method].sparsity]}
            result = quiet(A, 3, kind="covariance", **options)
            assert 1 <= result.n_components <= most
            assert np.isfinite(result.loadings).all()
            assert result.explained_variance_ratio.sum() < 1 + (1e-3 if dtype == np.float32 else 1e-9)


# ---- other packages ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["6_2_2_1_1_1", "7_4_4_1_1_1"])
def test_not_below_the_authors_truncated_power(name):
    """Each component, on the matrix that their earlier loadings leave."""
    A, theirs = PITPROPS, reference(f"pitprops_TPower_card{name}_V")
    for x in theirs.T:
        x = x / np.linalg.norm(x)
        ours = tpower(A, np.count_nonzero(x), kind="covariance")
        assert ours.value >= x @ A @ x - 1e-8
        A = deflated(A, x, "projection")


def test_published_rows_of_truncated_power():
    """Yuan & Zhang (2013), tables 2 and 3."""
    options = {"kind": "covariance"}
    one = flat.sparse_pca(PITPROPS, 6, cardinality=[6, 2, 1, 2, 1, 1], start="diagonal", **options).loadings
    two = flat.sparse_pca(
        PITPROPS, 6, cardinality=[7, 2, 4, 3, 5, 4], start="eigenvector", **options
    ).loadings
    share = [explained_variance(PITPROPS, V, "raw", **options).sum() / 13 for V in (one, two)]
    assert_allclose(share, [0.7978, 0.8887], atol=5e-5)
    share = [explained_variance(PITPROPS, one, d, **options).sum() / 13 for d in ("adjusted", "cumulative")]
    assert_allclose(share, [0.7202, 0.7700], atol=5e-5)


# ---- the operator -----------------------------------------------------------------------------------


def dense_of(op):
    return np.stack([op.apply(None, e) for e in np.eye(op.p, dtype=op.dtype)], axis=1)


@each_kind
@pytest.mark.parametrize(("dtype", "near"), [(np.float64, 1e-12), (np.float32, 1e-5)])
def test_the_operator_of_the_quotient(kind, dtype, near):
    X = samples(9).astype(dtype)
    A = covariance(X)
    problem = as_problem(X if kind == "data" else A.astype(dtype), kind=kind)
    state, rng = Deflated.from_problem(problem, DEFLATIONS["generalized"]), np.random.default_rng(0)
    for _ in range(2):
        x = np.zeros(12)
        x[rng.choice(12, 3, replace=False)] = 1 / np.sqrt(3)
        state = state.deflate(np.flatnonzero(x), x[x != 0])
    Q = np.stack(state.basis, axis=1)
    P = np.eye(12) - Q @ Q.T
    B = P @ A @ P / problem.unit
    assert_allclose(dense_of(state.operator), B, atol=near * B.max())
    assert_allclose(_promise(state), np.diagonal(B) / np.diagonal(P), atol=near * B.max())
    heavy = state.operator.with_penalty(3.0)
    assert_allclose(dense_of(heavy), B + 3 * P, atol=near * B.max())
    v = rng.standard_normal(12)
    v = (v / np.linalg.norm(v)).astype(dtype)
    rho = v @ B @ v / (v @ P @ v)
    y = (B + rho * Q @ Q.T) @ v
    quotient = state.operator.with_quotient()
    assert_allclose(quotient.apply(None, v), y, atol=near * B.max())
    index, value, objective = quotient.largest(None, v, 4)
    assert_allclose(value, y[index], atol=near * B.max())
    assert objective == pytest.approx(rho, rel=near)
    tau = 0.5 * np.abs(B @ v).max() / np.sqrt(v @ B @ v)
    index, value = state.operator.above(None, 5 * v, tau, relative=True)
    assert_array_equal(index, np.flatnonzero(np.abs(B @ v) > tau * np.sqrt(v @ B @ v)))
    assert 0 < len(index) < np.count_nonzero(5 * np.abs(B @ v) > tau)


def test_the_quotient_on_a_support_with_signs():
    """It is a value of a vector of these signs, and most often their largest, by enumeration."""
    best = 0
    for seed in range(20):
        rng, A = np.random.default_rng(seed), covariance(samples(seed, 20, 8))
        signs = rng.choice([-1, 1], 8)
        problem = as_problem(A, kind="covariance", choice={"signs": signs})
        q = np.array([0.6, 0.64, -0.48])
        state, P = Deflated.from_problem(problem, DEFLATIONS["generalized"]), np.eye(8)
        state = state.deflate(np.arange(3), q)
        P[:3, :3] -= np.outer(q, q)
        S = np.sort(rng.choice(8, 4, replace=False))
        M, G = (P @ A @ P)[np.ix_(S, S)], P[np.ix_(S, S)]
        x = refit(state, Solution(S, signs[S] / 2, 0.0, 1, True))
        assert (x.entries * signs[S] >= 0).all()
        value = x.entries @ M @ x.entries / (x.entries @ G @ x.entries)
        assert problem.in_units(x.objective) == pytest.approx(value, rel=1e-9)
        best += value > (1 - 1e-6) * signed_ratio_optimum(M, G, signs[S])
    assert best >= 16


@pytest.mark.parametrize("holes", [False, True])
def test_operator_and_diagonal_of_a_naive_residual(holes):
    """F - g x' for any g, in the entries that are not missing."""
    X = samples(9)
    if holes:
        X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    seen = ~np.isnan(X)
    problem = as_problem(X, missing=True)
    F = np.where(seen, X - np.nanmean(X, axis=0), 0)
    state = Deflated.from_problem(problem, DEFLATIONS["naive"])
    for x in (np.eye(12)[2] * 0.6 + np.eye(12)[5] * 0.8, np.full(12, 12**-0.5)):
        index = np.flatnonzero(x)
        g = 0.7 * state.operator.forward(index, x[index])
        atol = 1e-12 * np.sum(F**2)
        assert_allclose(g * np.sqrt(problem.unit), 0.7 * F @ x, atol=atol)
        state = state.deflate(index, x[index], g)
        F = F - np.where(seen, np.outer(0.7 * F @ x, x), 0)
        A = F.T @ F / 29
        assert_allclose(dense_of(state.operator) * problem.unit, A, atol=atol)
        assert_allclose(state.diagonal * problem.unit, np.diagonal(A), atol=atol)
    for j in range(12):  # of a variable that is removed only rounding is left, which is no variance below 0
        one, e = np.array([j]), np.ones(1)
        removed = Deflated.from_problem(problem, DEFLATIONS["naive"]).deflate(
            one, e, problem.operator.forward(one, e)
        )
        assert 0 <= removed.diagonal[j] <= 1e-14 * problem.diagonal[j]
        assert np.delete(removed.diagonal, j).min() > 0


# ---- bad input --------------------------------------------------------------------------------------


CALLABLE = np.cov(normal(5, 40, 14) * np.linspace(1, 3, 14), rowvar=False)


@pytest.mark.share(8)
@pytest.mark.parametrize("deflation", DEFLATIONS)
@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("tpower", {"cardinality": 4}),
        ("greedy", {"cardinality": 4}),
        ("gpower", {"penalty": 0.3, "relative": True}),
        ("pmd", {"l1_bound": 1.8}),
        ("dspca", {"cardinality": 4}),
    ],
)
def test_a_callable_of_few_variables_is_its_matrix(method, options, deflation):
    """To the bit, with all that needs entries; so is a LinearOperator, and nearly one of rounded products."""
    if deflation == "naive" and method != "pmd":
        pytest.skip("of pmd alone")
    options = options | {"kind": "covariance", "method": method, "deflation": deflation, "certify": True}
    options |= {"scale": True}
    noise = np.random.default_rng(0)

    def rounded(v):
        return (CALLABLE @ v) * (1 + 1e-9 * noise.standard_normal(14))

    matrix, of_products, operator, rough = (
        flat.sparse_pca(A, 3, **options)
        for A in (
            CALLABLE,
            products(CALLABLE.__matmul__, 14),
            aslinearoperator(CALLABLE),
            products(rounded, 14),
        )
    )
    for other in (of_products, operator):
        assert_array_equal(other.loadings, matrix.loadings)
        assert_array_equal(other.explained_variance_ratio, matrix.explained_variance_ratio)
    assert_allclose(np.abs(rough.loadings), np.abs(matrix.loadings), atol=1e-4)
