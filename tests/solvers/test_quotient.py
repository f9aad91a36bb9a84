"""Generalized deflation in the methods of l1 bounds, of penalties and of the semidefinite relaxation.

They search x'Ax/x'Bx, B = I - QQ', which is the additional variance of x. Against enumeration of the
supports, and in three variables against a grid of all directions.
"""

import warnings
from itertools import combinations

import flat
import numpy as np
import pytest
from in_turn import each_dtype, examples
from oracles import best_quotient, centered, covariance, dense_vector, largest_on, normal, quotient, samples

from spcacore.operators.deflation import DEFLATIONS, DeflatedOperator
from spcacore.operators.inputs import as_problem
from spcacore.solvers.certificates import upper_bounds
from spcacore.solvers.refitting import best_of_bounded
from spcacore.solvers.semidefinite import dual_bound
from spcacore.solvers.solution import Solution

NEAR_ORTHOGONAL = 1e-8


def generalized(X, r, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return flat.sparse_pca(X, r, deflation="generalized", **options)


def sphere(p, count):
    X = normal(0, p, count)
    for support in combinations(range(p), 2):  # sparse directions, which a grid would miss
        angle = np.linspace(0, np.pi, 4000)
        edge = np.zeros((p, len(angle)))
        edge[list(support)] = np.cos(angle), np.sin(angle)
        X = np.column_stack([X, edge])
    X = np.column_stack([X, np.eye(p)])
    return X / np.linalg.norm(X, axis=0)


def state_of(problem, x):
    """One component removed."""
    state = DeflatedOperator.from_problem(problem, DEFLATIONS["generalized"])
    index = np.flatnonzero(x)
    return state.deflate(index, np.ascontiguousarray(x[index]))


# ---- the searches -----------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [False, True])
def test_gpower_l0_against_enumeration(data):
    """max x'Ax/x'Bx - penalty ||x||_0, over all supports."""
    exact = []
    for seed in range(12):
        X = samples(seed, 20, 8)
        A = covariance(X)
        penalty = 0.08 * A.diagonal().max()
        how = {"method": "gpower", "norm": "l0"}
        if data:
            result = generalized(X, 2, penalty=19 * penalty, **how)
        else:
            result = generalized(A, 2, penalty=penalty, kind="covariance", **how)
        V = result.loadings
        if V.shape[1] < 2:
            continue
        Q = V[:, :1] / np.linalg.norm(V[:, 0])
        reached = quotient(A, Q, V[:, 1]) - penalty * np.count_nonzero(V[:, 1])
        best = max(best_quotient(A, Q, k) - penalty * k for k in range(1, 9))
        assert reached <= best * (1 + 1e-9)
        exact.append(reached >= best * (1 - 1e-9))
    assert len(exact) >= 10
    assert np.mean(exact) > 0.8


@pytest.mark.share(3)
@pytest.mark.parametrize(
    "how",
    [
        {"method": "gpower", "penalty": 0.1},
        {"method": "gpower", "penalty": 0.3},
        *({"method": method, "l1_bound": c} for method in ("pmd", "scotlass") for c in (1.1, 1.4)),
    ],
)
def test_l1_norms_against_all_directions(how):
    """max (sqrt(x'Ax) - gamma ||x||_1)/sqrt(x'Bx), or max x'Ax/x'Bx over unit x with ||x||_1 <= bound."""
    grid, reached = sphere(3, 150_000), []
    for seed in range(12):
        A = covariance(samples(seed, 12, 3))
        given = how | {"kind": "covariance", "renormalize": False}
        gamma = given["penalty"] = how.get("penalty", 0.0) * np.sqrt(A.diagonal().max())
        if not gamma:
            del given["penalty"]
        V = generalized(A, 2, **given).loadings
        if V.shape[1] < 2:
            continue
        B = np.eye(3) - np.outer(V[:, 0], V[:, 0])

        def criterion(x, B=B, A=A, gamma=gamma):
            outside = np.einsum("ij,ij->j", x, B @ x)
            size = np.abs(x).sum(axis=0)
            kept = (outside > NEAR_ORTHOGONAL) & (size <= how.get("l1_bound", 2) * (1 + 1e-9))
            root = np.sqrt(np.maximum(np.einsum("ij,ij->j", x, B @ A @ B @ x), 0))
            return np.where(kept, root - gamma * size, -1.0) / np.sqrt(np.where(kept, outside, 1.0))

        reached.append(criterion(V[:, 1:])[0] / criterion(grid).max())
    assert len(reached) >= 10
    assert max(reached) < 1 + 2e-3  # what a grid may miss
    assert min(reached) > 0.75
    assert np.mean(reached) > 0.95
    assert np.median(reached) > 1 - 1e-3


@pytest.mark.parametrize("method", ["tpower", "branch_and_bound"])
def test_equal_columns(method):
    """Where two variables stand twice, swaps meet supports in the span of what was removed."""
    X = np.repeat(samples(0, 6, 2), 2, axis=1)
    A = covariance(X)
    V = generalized(X, 4, cardinality=3, method=method).loadings
    assert V.shape[1] >= 2
    for t in range(V.shape[1]):
        Q = np.linalg.qr(V[:, :t])[0]
        assert quotient(A, Q, V[:, t]) == pytest.approx(best_quotient(A, Q, 3), rel=1e-9)


def largest_product(f, bound):
    """max u'f over ||u|| <= 1, ||u||_1 <= bound, by its dual: min over t of ||S(f, t)|| + bound t."""
    levels = np.linspace(0, np.abs(f).max(), 2001)
    soft = np.maximum(np.abs(f)[:, None] - levels, 0)
    return np.min(np.sqrt((soft**2).sum(axis=0)) + bound * levels)


def test_two_way_pmd_against_all_directions():
    """max u'Xv/sqrt(v'Bv) over both bounds."""
    grid = sphere(3, 1500)
    grid = grid[:, np.abs(grid).sum(axis=0) <= 1.4][:, ::4]
    reached = []
    for seed in range(examples(12)):
        X = samples(seed, 6, 3)
        X = centered(X)
        how = {"l1_bound": 1.4, "sample_l1_bound": 1.8, "renormalize": False}
        V = generalized(X, 2, method="pmd", **how).loadings
        q = V[:, 0] / np.linalg.norm(V[:, 0])
        B = np.eye(3) - np.outer(q, q)

        def criterion(v, B=B, X=X):
            return largest_product(X @ B @ v, 1.8) / np.sqrt(v @ B @ v)

        best = max(criterion(v) for v in grid.T if v @ B @ v > NEAR_ORTHOGONAL)
        reached.append(criterion(V[:, 1]) / best)
    assert max(reached) < 1.01
    assert np.median(reached) > 0.995


@each_dtype
@pytest.mark.parametrize("form", ["data", "covariance"])
@pytest.mark.parametrize("l0", [False, True])
def test_the_objective_never_falls(l0, form, dtype):
    """Of the l1 and l0 penalties of a quotient, computed from the iterates."""
    rose = 0
    for seed in range(10):
        X = samples(seed, 15, 9)
        A = covariance(X)
        given = X if form == "data" else A
        problem = as_problem(given.astype(dtype), kind=form)
        x = np.zeros(9, dtype)
        x[:4] = normal(seed, 4)
        state = state_of(problem, x / np.linalg.norm(x))
        running = state.operator.with_quotient()
        q = x.astype(float) / np.linalg.norm(x.astype(float))
        B = np.eye(9) - np.outer(q, q)
        A = A / problem.unit
        gamma = 0.01 * A.diagonal().max() if l0 else 0.2 * np.sqrt(A.diagonal().max())
        start = normal(seed, 9).astype(dtype)
        path = []
        for steps in range(12):
            status, index, value, objective, variance, _ = running.gpower(
                np.arange(9), start, l0, dtype(gamma), steps, dtype(0)
            )
            assert status >= 0
            v = dense_vector(9, index, value)
            expected = (v @ B @ A @ B @ v) / (v @ B @ v)
            assert variance == pytest.approx(expected, rel=1e-4 if dtype == np.float32 else 1e-9)
            root = np.sqrt(expected) - gamma * np.abs(v).sum() / np.sqrt(v @ B @ v)
            expected = expected - gamma * np.count_nonzero(v) if l0 else root
            assert objective == pytest.approx(expected, rel=1e-3 if dtype == np.float32 else 1e-8)
            path.append(expected)
        scale = abs(path[-1]) * (1e-5 if dtype == np.float32 else 1e-12)
        assert (np.diff(path) >= -scale).all()
        rose += path[-1] > path[0]
    assert rose > 5


# ---- certificates -----------------------------------------------------------------------------------


def test_bounds_hold_of_additional_variance():
    """Against enumeration, of one and of two earlier components; those of A alone would not."""
    sharper, exceeded = 0, 0
    for seed in range(15):
        rng = np.random.default_rng(seed)
        A = covariance(samples(seed, 12, 9))
        problem = as_problem(A, kind="covariance")
        state = DeflatedOperator.from_problem(problem, DEFLATIONS["generalized"])
        for _ in range(2):
            index = np.sort(rng.choice(9, 2, replace=False))
            state = state.deflate(index, rng.permutation([0.96, 0.28]))
            Q = np.stack(state.basis, axis=1)
            for k in (1, 2, 4):
                best = best_quotient(A, Q, k) / problem.unit
                bounds = upper_bounds(state, k)
                relaxed = dual_bound(state, k)
                assert relaxed >= best * (1 - 1e-12)
                assert min(bounds.values()) >= best * (1 - 1e-12)
                sharper += min(relaxed, *bounds.values()) < bounds["spectral"] * (1 - 1e-6)
                plain = state.operator.submatrix(np.arange(9))
                exceeded += best > max(largest_on(plain, S) for S in combinations(range(9), k)) * (1 + 1e-9)
    assert sharper > 30
    assert exceeded > 20


def test_no_run_starts_from_what_is_not_feasible():
    """Of a support within the span of the earlier loadings nothing is left: zeros, no start."""
    A = np.diag([3.0, 2.0, 1.0])
    problem = as_problem(A, kind="covariance")
    state = DeflatedOperator.from_problem(problem, DEFLATIONS["generalized"])
    for j in (0, 1):
        state = state.deflate(np.array([j]), np.ones(1))
    started = []

    def run(op, index, entries, path):
        started.append(np.array(entries))
        return Solution(np.array([0, 1]), np.array([0.6, 0.8]), 0.0, 1, True)

    best_of_bounded(state, lambda: [(np.array([0]), np.ones(1), ())], run, True)
    assert len(started) == 2
    assert all(entries.any() for entries in started)
