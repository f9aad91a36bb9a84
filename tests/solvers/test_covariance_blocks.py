"""Bounds and searches by blocks of variables, against enumeration and closed forms."""

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse
from oracles import covariance, optimum
from solvers.test_certificates import matrices

from spcacore import branch_and_bound, optimality_bound, tpower
from spcacore.operators.deflation import DeflatedOperator
from spcacore.operators.inputs import as_problem
from spcacore.solvers import certificates, covariance_blocks, exact, semidefinite
from spcacore.solvers.covariance_blocks import BlockSearch, block_bound, large_entries


def grouped(rng):
    """Up to ten variables, in threes that go together more or less."""
    p = int(rng.integers(2, 11))
    X = rng.standard_normal((p + 2, p))
    for s in range(0, p, 3):
        X[:, s : s + 3] += rng.exponential(1.5) * rng.standard_normal((p + 2, 1))
    return np.cov(X.T).reshape(p, p)


@pytest.mark.parametrize(
    "seeds", [range(50), pytest.param(range(50, 10_150), marks=pytest.mark.slow)], ids=str
)
def test_no_support_is_above_the_bound_of_blocks(seeds, monkeypatch):
    """Semidefinite or not; where all trees end, the bound is the optimum."""
    proved = 0
    for seed in seeds:
        rng = np.random.default_rng([seed, 12])
        A = grouped(rng) if seed % 2 else covariance(matrices(rng))
        A = A / (A.max() or 1)
        if seed % 5 == 0:
            A -= rng.exponential(2) * np.eye(len(A))
        k, p = int(rng.integers(1, len(A) + 1)), len(A)
        monkeypatch.setattr(covariance_blocks, "BLOCK_ORDER", int(rng.integers(1, 6)))
        monkeypatch.setattr(covariance_blocks, "THRESHOLD_ENTRIES", int(rng.integers(p, p * p + 1)))
        problem = as_problem(A, kind="covariance", definite=False)
        large = large_entries(problem.operator)
        best, diagonal = optimum(A, k), problem.operator.submatrix(np.arange(p)).diagonal().copy()
        begin = best - rng.exponential(0.1) if seed % 3 else -np.inf
        search = BlockSearch(
            problem.operator, diagonal, k, large, begin / problem.in_units(1.0), slack=0.02 * (seed % 7 == 0)
        )
        complete = search.run(0.0, (1, 1000)[seed % 2], None)
        upper = float(problem.in_units(search.upper()))
        assert upper >= best - 1e-13, seed
        if search.support is not None:
            S = search.support
            value = np.linalg.eigvalsh(A[np.ix_(S, S)])[-1]
            assert len(S) <= k
            assert value == pytest.approx(problem.in_units(search.value), abs=1e-12)
            assert value <= best + 1e-12
        if complete:
            assert upper == pytest.approx(max(best, begin), abs=1e-10), seed
        proved += complete
    assert proved > 0.2 * len(seeds)


@pytest.mark.parametrize(("k", "value"), [(1, 1.0), (2, 1.5), (3, 1.6), (4, 1.7)])
def test_two_pairs(k, value, monkeypatch):
    """Correlations .5 in two pairs, .1 between them: f(2) + .1 (k - 2), which all four variables reach."""
    monkeypatch.setattr(covariance_blocks, "BLOCK_ORDER", 2)
    A = np.full((4, 4), 0.1)
    A[:2, :2] = A[2:, 2:] = 0.5
    np.fill_diagonal(A, 1)
    problem = as_problem(A, kind="covariance")
    op = problem.operator
    diagonal = np.full(4, 1 / problem.in_units(1.0))
    bound = block_bound(op, diagonal, k, large_entries(op), None)
    assert problem.in_units(bound) == pytest.approx(value, rel=1e-12)
    assert optimum(A, 4) == pytest.approx(1.7)


def many_blocks(p, weak, seed=0):
    """Correlations of one factor in blocks of up to eight; others of at most `weak`, few a variable."""
    rng = np.random.default_rng(seed)
    blocks = []
    while (left := p - sum(map(len, blocks))) > 0:
        v = rng.uniform(0.3, 0.9, min(left, int(rng.integers(2, 9)))) * rng.choice([-1, 1])
        blocks.append(np.outer(v, v) + np.diag(1 - v**2))
    A = scipy.sparse.block_diag([scipy.sparse.coo_array(block) for block in blocks], format="csr")
    label = np.repeat(np.arange(len(blocks)), [len(B) for B in blocks])
    i, j = rng.integers(0, p, (2, p))
    i, j = i[label[i] < label[j]], j[label[i] < label[j]]
    E = scipy.sparse.coo_array((rng.uniform(-weak, weak, len(i)), (i, j)), (p, p))
    E = E + E.T
    return scipy.sparse.csr_array(A + E + 0.5 * scipy.sparse.eye_array(p)), blocks


@pytest.mark.parametrize(("form", "p"), [("csr", 3200), ("dense", 400)])
def test_many_variables_are_proved(form, p, monkeypatch):
    """Each block by enumeration: no component of four variables of two blocks is better."""
    monkeypatch.setattr(exact, "EXACT_ORDER", 100)
    monkeypatch.setattr(certificates, "BOUND_ORDER", 100)
    A, blocks = many_blocks(p, 0.01)
    best = max(optimum(B, 4) for B in blocks if len(B) >= 4) + 0.5
    M = A if form == "csr" else A.toarray()
    bound = optimality_bound(M, 4, kind="covariance")
    assert bound.which == "blocks"
    assert bound.upper_bound == pytest.approx(best, rel=1e-9)
    monkeypatch.setattr(exact, "surviving_variables", None)
    x = branch_and_bound(M, 4, kind="covariance", start=np.arange(float(p)))  # far from the best
    assert x.optimal
    assert x.value == pytest.approx(best, rel=1e-12)
    assert x.upper_bound == pytest.approx(best, rel=1e-9)
    assert tpower(M, 4, kind="covariance").value <= x.value * (1 + 1e-12)


def test_looking_for_variables_to_leave_out_ends_where_it_is_told_to(monkeypatch):
    """Of noise the relaxation leaves none out, and each level of covariances takes more columns of A."""
    X = np.random.default_rng(0).standard_normal((20, 300)) * np.linspace(1, 3, 300)
    problem = as_problem(X, kind="data", center=True, scale=False)
    state = DeflatedOperator.from_problem(problem)
    formed, keep = [], semidefinite.rows_of
    monkeypatch.setattr(semidefinite, "rows_of", lambda op, i: formed.append(len(i)) or keep(op, i))
    monkeypatch.setattr(semidefinite, "largest_submatrix", lambda op: 0)
    monkeypatch.setattr(semidefinite, "RELAXATION_ORDER", 50)
    counts = []
    few = {"work": 1e9, "column": 1e9 / 40}
    for hook, limits in ((None, {}), (None, few), (lambda n: True, {})):
        formed.clear()
        with pytest.raises(ValueError, match="of which dspca solves for at most 50"):
            semidefinite.dual_bound(replace(state, hook=hook), 5, **limits)
        counts.append(sum(formed))
    assert counts[0] > 200
    assert 0 < counts[1] <= 40
    assert counts[2] <= 40  # of the few variables of the first level
