"""Deflations of canonical pairs, in the metrics of their sides, against explicit matrices and enumeration."""

from itertools import combinations
from pathlib import Path

import flat
import numpy as np
import pytest
from generalized.test_cca import data
from in_turn import examples
from oracles import centered, deflations
from scipy.linalg import sqrtm

from spcacore import sparse_cca
from spcacore.generalized import cca_alternation
from spcacore.generalized.eigen import DEFLATIONS


def deflated_pairs(C, Bx, By, U, V, deflation):
    """C and both metrics before each pair and after the last, in the coordinates in which B is I."""
    left, right = (np.linalg.inv(sqrtm(B).real) for B in (Bx, By))
    C, u_basis, v_basis = left @ C @ right, [], []
    out = [(C, np.eye(len(Bx)), np.eye(len(By)))]
    for u, v in zip(U.T, V.T, strict=True):
        u, v = np.linalg.solve(left, u), np.linalg.solve(right, v)
        u, v = u / np.linalg.norm(u), v / np.linalg.norm(v)
        if deflation.startswith("orthogonalized") or deflation == "generalized":
            for w, basis in ((u, u_basis), (v, v_basis)):
                w -= sum((q * (q @ w) for q in basis), np.zeros_like(w))
                w /= np.linalg.norm(w)
                basis.append(w)
        if "hotelling" in deflation:
            C = C - (u @ C @ v) * np.outer(u, v)
        elif "schur" in deflation:
            C = C - np.outer(C @ v, u @ C) / (u @ C @ v)
        else:
            C = (np.eye(len(u)) - np.outer(u, u)) @ C @ (np.eye(len(v)) - np.outer(v, v))
        metrics = [np.eye(len(w)) for w in (u, v)]
        if deflation == "generalized":
            for M, basis in zip(metrics, (u_basis, v_basis), strict=True):
                M -= np.array(basis).T @ np.array(basis)
        out.append((C, *metrics))
    return out, left, right


@pytest.mark.share(12)
@pytest.mark.parametrize("method", ["pmd", "generalized"])
@pytest.mark.parametrize("deflation", DEFLATIONS)
def test_pairs_of_a_deflated_matrix(deflation, method):
    """Each value is that of the explicitly deflated matrix, in the explicit metrics."""
    if (method, deflation) == ("pmd", "generalized"):
        pytest.skip("bounds of the l1 norm need a norm")
    for seed in range(examples(8)):
        rng = np.random.default_rng(seed)
        X, Y = data(50, 8, 6, rng)
        X, Y = X @ rng.standard_normal((8, 8)), Y @ rng.standard_normal((6, 6))  # so that supports overlap
        if seed % 2:  # units that the search takes out
            X, Y = X * 7.0 ** np.arange(-4, 4), Y * 5.0 ** np.arange(6)
        x, y = centered(X), centered(Y)
        C = x.T @ y / 49
        if method == "pmd":
            result = sparse_cca(X, Y, 3, l1_bound=(1.7, 1.5), deflation=deflation, scale=False)
            Bx, By = np.eye(8), np.eye(6)
        else:
            how = {"cardinality": (3, 2), "ridge": 1e-3, "deflation": deflation, "scale": False}
            result = flat.sparse_cca(X, Y, 3, method="generalized", **how)
            Bx, By = (M.T @ M / 49 for M in (x, y))
            Bx, By = (B + 1e-3 * B.diagonal().mean() * np.eye(len(B)) for B in (Bx, By))
        assert result.deflation == deflation
        steps, left, right = deflated_pairs(C, Bx, By, result.loadings_x, result.loadings_y, deflation)
        for t in range(3):
            M, Px, Py = steps[t]
            u = np.linalg.solve(left, result.loadings_x[:, t])
            v = np.linalg.solve(right, result.loadings_y[:, t])
            value = u @ M @ v / np.sqrt((u @ Px @ u) * (v @ Py @ v))
            assert result.strengths[t] == pytest.approx(value, rel=1e-6)


def best_pair(C, Bx, By, counts):
    """The largest u'Cv/sqrt(u'B_x u v'B_y v) over supports, by enumeration."""
    best = 0.0

    def roots(B, k):
        for S in combinations(range(len(B)), k):
            h, E = np.linalg.eigh(B[np.ix_(S, S)])
            W = np.zeros((len(B), np.count_nonzero(h > 1e-7)))
            W[list(S)] = (E / np.sqrt(np.maximum(h, 1e-300)))[:, h > 1e-7]
            yield W

    for W in roots(Bx, counts[0]):
        for Z in roots(By, counts[1]):
            best = max(best, np.linalg.svd(W.T @ C @ Z)[1].max(initial=0))
    return best


@pytest.mark.share(2)
@pytest.mark.parametrize("tried", [3000, 0])
def test_first_pairs_against_enumeration(tried, with_limits):
    """With few samples, so that many supports are nearly as good; whether all are tried, or none."""
    with_limits(cca_alternation, PENCIL_ENUMERATED=tried)
    for seed in range(examples(16)):
        rng = np.random.default_rng(1000 + seed)
        p, q, n = *rng.integers(5, 9, 2), int(rng.integers(12, 50))
        X, Y = rng.standard_normal((n, p)), rng.standard_normal((n, q))
        if seed % 3:
            X, Y = X @ rng.standard_normal((p, p)), Y @ rng.standard_normal((q, q))
        x, y = centered(X), centered(Y)
        result = sparse_cca(X, Y, method="generalized", cardinality=(3, 2), ridge=0.0, scale=False)
        best = best_pair(x.T @ y, x.T @ x, y.T @ y, (3, 2))
        assert result.strengths[0] == pytest.approx(best, rel=1e-9)


# What docs/measured/generalized.md says of each, of pairs and of sparse_eigen and sparse_lda. Of pairs:
# that the value of the one removed is 0; so are Cv and C'u; also of all earlier; no singular value
# grows; the rank falls by one
OF_PAIRS = {
    "hotelling": (True, False, False, False, False),
    "projection": (True, True, False, True, False),
    "schur": (True, True, True, False, True),
    "orthogonalized_hotelling": (False, False, False, False, False),
    "orthogonalized_projection": (True, True, True, True, False),
    "orthogonalized_schur": (True, True, True, False, True),
    "generalized": (True, True, True, True, False),
}
# x'Ax = 0; Ax = 0; the same of all earlier ones; A stays semidefinite; its rank falls by one
OF_ONE = OF_PAIRS | dict.fromkeys(["schur", "orthogonalized_schur"], (True,) * 5)


def sparse_directions(p, rng):
    W = np.zeros((p, 3))
    for t in range(3):
        W[rng.choice(p, 3, replace=False), t] = rng.standard_normal(3)
    return W


def vanishing(first, before, after, U, V):
    """u'Cv, Cv and C'u of the last, all earlier; singular values that do not grow; the rank."""
    zero = 1e-9 * np.linalg.norm(first, 2)
    u, v = U[:, -1], V[:, -1]
    last = [np.abs(after @ v).max(), np.abs(u @ after).max()]
    every = [np.abs(after @ V).max(), np.abs(U.T @ after).max()]
    values = [np.linalg.svd(M)[1] for M in (before, after)]
    fewer = np.count_nonzero(values[1] > zero) == np.count_nonzero(values[0] > zero) - 1
    grown = (values[1] > values[0] + zero).any()
    return abs(u @ after @ v) < zero, max(last) < zero, max(every) < zero, not grown, fewer


@pytest.mark.parametrize("deflation", DEFLATIONS)
@pytest.mark.parametrize("table", [OF_PAIRS, OF_ONE], ids=["pairs", "one matrix"])
def test_the_tables_of_the_page(table, deflation):
    """What is said to hold does on all draws, and what is not fails on some: of explicit matrices."""
    seen = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        if table is OF_PAIRS:
            Bx, By = (np.cov(rng.standard_normal((30, p)), rowvar=False) for p in (9, 8))
            C = rng.standard_normal((9, 5)) @ rng.standard_normal((5, 8))
            U, V = sparse_directions(9, rng), sparse_directions(8, rng)
            steps, left, right = deflated_pairs(C, Bx, By, U, V, deflation)
            matrices = steps[0][0], steps[-2][0], steps[-1][0]
            seen.append(vanishing(*matrices, np.linalg.solve(left, U), np.linalg.solve(right, V)))
            continue
        F, X = rng.standard_normal((5, 8)), sparse_directions(8, rng)
        first, _, before, A = deflations(F.T @ F, X / np.linalg.norm(X, axis=0), deflation)
        one, last, every, _, fewer = vanishing(first, before, A, X, X)
        semidefinite = np.linalg.eigvalsh(A)[0] > -1e-9 * np.linalg.norm(first, 2)
        seen.append((one, last, every, semidefinite, fewer))
    assert tuple(np.all(seen, axis=0).tolist()) == table[deflation]
    answers = " | ".join("yes" if holds else "no" for holds in table[deflation])
    assert f'| `"{deflation}"` | {answers} |' in PAGE


PAGE = (Path(__file__).parents[2] / "docs" / "measured" / "generalized.md").read_text(encoding="utf-8")
