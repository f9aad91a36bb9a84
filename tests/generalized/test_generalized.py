"""Sparse generalized eigenproblems against enumeration, LAPACK, and greedy searches by brute force."""

from itertools import chain, combinations, product

import flat
import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose, assert_array_equal
from oracles import deflated, normal
from scipy.linalg import eigh

from spcacore import Choice, sparse_eigen
from spcacore.generalized import eigen
from spcacore.generalized.eigen import DEFLATIONS
from spcacore.generalized.pencil import Form, Pencil
from spcacore.objectives.ratio import Quotient
from spcacore.solvers.solution import Solution


def value_on(A, B, S):
    """The largest ratio of a support; what B maps to zero does not count."""
    S = list(S)
    unit = np.sqrt(np.diag(B)[S])
    a, b = (M[np.ix_(S, S)] / np.outer(unit, unit) for M in (A, B))
    mu, U = np.linalg.eigh(b)
    T = U[:, mu > 1e-11 * mu[-1]] / np.sqrt(mu[mu > 1e-11 * mu[-1]])
    return np.linalg.eigvalsh(T.T @ a @ T)[-1]


def optimum(A, B, k):
    """As the largest `value_on` of all supports."""
    supports = np.array(list(combinations(range(len(A)), k)))
    at = supports[:, :, None], supports[:, None, :]
    unit = np.sqrt(np.diag(B))[supports]
    a, b = (M[at] / (unit[:, :, None] * unit[:, None, :]) for M in (A, B))
    mu, U = np.linalg.eigh(b)
    kept = mu > 1e-11 * mu[:, -1:]
    T = U * np.where(kept, 1 / np.sqrt(np.where(kept, mu, 1)), 0)[:, None, :]
    inside = T.swapaxes(1, 2) @ a @ T
    below = -1 - np.abs(inside).sum(axis=(1, 2))  # where b is singular
    inside += np.where(kept, 0, below[:, None])[:, :, None] * np.eye(k)
    return np.linalg.eigvalsh(inside)[:, -1].max()


def pencil(kind, rng):
    p = int(rng.integers(5, 12))
    F, H = rng.standard_normal((rng.integers(1, 2 * p), p)), rng.standard_normal((3 * p, p))
    A, B = F.T @ F, H.T @ H
    if kind == "units":
        s = 10.0 ** rng.integers(-4, 5, p)
        A, B = A * np.outer(s, s), B * np.outer(s, s)
    elif kind == "correlated":
        B = np.cov(H[: p + 2], rowvar=False)
    elif kind == "indefinite":
        A = A - np.diag(5 * p * rng.random(p))
    elif kind == "singular":  # both map the same two directions to zero
        P = np.eye(p) - np.outer(*[np.linalg.qr(rng.standard_normal((p, 1)))[0].ravel()] * 2)
        P = P @ P
        A, B = P @ A @ P, P @ B @ P
    elif kind == "duplicates":
        Z, y = rng.standard_normal((40, p)), rng.standard_normal((40, 2))
        Z[:, 1] = Z[:, 0]
        A, B = Z.T @ y @ y.T @ Z, Z.T @ Z
    return A, B


KINDS = ["definite", "units", "correlated", "indefinite", "singular", "duplicates"]
CASES = [(kind, seed) for kind in KINDS for seed in range(30)]


@pytest.mark.parametrize("step", [4, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("strategy", ["auto", "rough"])
def test_optimum_by_enumeration(strategy, step):
    """No value above the optimum, no bound below it; and at least 97 % are optimal."""
    reached = []
    for i, (kind, seed) in [*enumerate(CASES)][::step]:
        rng = np.random.default_rng([i, seed])
        A, B = pencil(kind, rng)
        k = int(rng.integers(1, 5))
        best = optimum(A, B, k)
        result = flat.sparse_eigen(A, B, 1, k, strategy=strategy)
        x = result.loadings[:, 0]
        assert np.count_nonzero(x) <= k
        assert_allclose(np.linalg.norm(x), 1, rtol=1e-12)
        assert_allclose(x @ A @ x / (x @ B @ x), result.values[0], rtol=1e-8)
        assert_allclose(np.sqrt(x @ B @ x), result.metric_norm[0], rtol=1e-8)
        assert result.values[0] <= best + 1e-8 * abs(best)
        assert result.upper_bound[0] >= best - 1e-8 * abs(best)
        reached.append(result.values[0] >= best - 1e-7 * abs(best))
    assert np.mean(reached) >= (0.97 if strategy == "auto" else 0.9)


@pytest.mark.share(2)
@pytest.mark.parametrize("singly", [False, True])
def test_pairs_of_variables_to_begin_with(singly, with_limits):
    """Where too many supports are to be tried, against enumeration; single variables miss some."""
    if singly:
        with_limits(eigen, PENCIL_BACKWARD_ORDER=0)
    missed = 0
    for seed in range(12):
        rng = np.random.default_rng(seed)
        p, k = 15, 5
        A, B = np.cov(rng.standard_normal((9, p)).T), np.cov(rng.standard_normal((p + 2, p)).T)
        missed += sparse_eigen(A, B, 1, k).values[0] < optimum(A, B, k) * (1 - 1e-9)
    assert missed == 0 if not singly else missed > 0


def test_the_best_pairs_of_variables_come_first():
    for seed in range(4):
        A, B = pencil("units", np.random.default_rng(seed))
        wanted = []
        for pair in sorted(combinations(range(len(A)), 2), key=lambda pair: -value_on(A, B, pair)):
            if all(sum(j in earlier for earlier in wanted) < 2 for j in pair):
                wanted.append(pair)
        both = Pencil(Form.of(A), Form.of(B), dtype=A.dtype, advice="")
        assert_array_equal(eigen.best_pairs(both, 3), wanted[:3])
        assert_array_equal(eigen.best_pairs(both, 100), wanted)


@pytest.mark.share(8)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(5))
def test_greedy_paths_by_brute_force(kind, seed):
    A, B = pencil(kind, np.random.default_rng([seed, 7]))
    p, S, forward = len(A), [], {}
    regular = kind not in ("singular", "duplicates")  # else several variables add the same, or nothing

    def found(strategy, k):
        return flat.sparse_eigen(A, B, 1, k, strategy=strategy, swaps=False)

    for k in range(1, p if regular else 4):
        S.append(max(set(range(p)) - set(S), key=lambda j: value_on(A, B, [*S, j])))
        result = found("forward", k)
        forward[k] = result.values[0]
        assert_allclose(forward[k], value_on(A, B, S), rtol=1e-8)
        assert not regular or np.flatnonzero(result.loadings[:, 0]).tolist() == sorted(S)
    S = list(range(p))
    for k in range(p - 1, 0, -1) if regular else ():
        S.remove(max(S, key=lambda j: value_on(A, B, [i for i in S if i != j])))
        result = found("backward", k)
        assert result.n_iter.tolist() == [p - k]
        assert np.flatnonzero(result.loadings[:, 0]).tolist() == sorted(S)
        both = found("bidirectional", k).values[0]
        assert_allclose(both, max(forward[k], result.values[0]), rtol=1e-9)


def check_deflated(A, B, result, deflation, sizes=()):
    """The quotients of the caller's pencil and of the deflated, whitened one, and what no support exceeds."""
    mu, U = np.linalg.eigh(B)
    W = U[:, mu > 1e-10 * mu[-1]] * np.sqrt(mu[mu > 1e-10 * mu[-1]])  # B = WW'
    inverse = np.linalg.pinv(W)
    whitened, earlier, Q = inverse @ A @ inverse.T, [], np.zeros((W.shape[1], 0))
    for t, x in enumerate(result.loadings.T):
        square, y = x @ B @ x, W.T @ x
        assert square > 1e-9 * np.diag(B).max()
        assert_allclose(result.values[t], x @ A @ x / square, rtol=1e-7, atol=1e-12 * result.values[0])
        y = y / np.sqrt(square)
        metric = np.eye(len(y)) - Q @ Q.T if deflation == "generalized" else np.eye(len(y))
        expected = y @ whitened @ y / (y @ metric @ y)
        assert_allclose(result.deflated_values[t], expected, rtol=1e-6, atol=1e-8 * result.values[0])
        if len(sizes):  # every direction is then optimal but for greed
            best = optimum(W @ whitened @ W.T, W @ metric @ W.T, sizes[t])
            assert 0.999 * best <= result.deflated_values[t] <= best * (1 + 1e-8)
            assert result.upper_bound[t] >= best * (1 - 1e-9)
        whitened = deflated(whitened, y, deflation, earlier)
        earlier.append(y)
        Q = np.linalg.qr(np.column_stack(earlier))[0]


@pytest.mark.share(4)
@pytest.mark.parametrize("deflation", DEFLATIONS)
@pytest.mark.parametrize("seed", range(4))
def test_deflation_is_that_of_the_whitened_matrix(deflation, rng):
    F, H = rng.standard_normal((20, 8)), rng.standard_normal((25, 8))
    A, B = F.T @ F, H.T @ H
    check_deflated(A, B, sparse_eigen(A, B, 3, [3, 4, 2], deflation=deflation), deflation, [3, 4, 2])


def planted(p, k, rng):
    """B with blocks of decreasing correlation, A of rank one but for noise, x on every p/k-th variable."""
    block = 0.5 ** abs(np.subtract.outer(np.arange(20), np.arange(20)))
    H = (rng.standard_normal((4 * p // 5, p // 20, 20)) @ np.linalg.cholesky(block).T).reshape(-1, p)
    B = H.T @ H / len(H) + 0.1 * np.eye(p)
    x = np.zeros(p)
    x[:: p // k] = rng.choice([-1, 1], len(x[:: p // k]))
    image = B @ (x / np.sqrt(x @ B @ x))
    noise = rng.standard_normal((p, p))
    return 2 * np.outer(image, image) + 0.01 * (noise + noise.T), B, x


def test_rough_search_recovers_a_planted_support():
    A, B, x = planted(2000, 10, np.random.default_rng(0))
    rough = flat.sparse_eigen(A, B, 1, 10, strategy="rough", swaps=False)
    assert np.array_equal(rough.loadings[:, 0] != 0, x != 0)
    greedy = flat.sparse_eigen(A, B, 1, 10, strategy="forward", swaps=False)
    assert_allclose(greedy.values, rough.values, rtol=1e-9)


def test_no_bound_below_the_optimum_where_B_is_nearly_singular():
    A, B = np.array([[1.0, 1], [1, 1 + 4e-8]]), np.array([[1.0, 1], [1, 1 + 1e-13]])
    result = sparse_eigen(A, B, 1, 1)
    assert result.upper_bound is None
    assert sparse_eigen(np.ones((2, 2)), np.ones((2, 2)), 1, 1).upper_bound[0] >= 1 - 1e-12


def test_what_nothing_is_said_of():
    """Variables that both matrices leave out do not enter; directions end where the rank does."""
    rng = np.random.default_rng(2)
    H = rng.standard_normal((20, 6))
    B = H.T @ H
    f = B @ np.array([1, 0, 1, 0, 0, 0])
    A = np.outer(f, f)
    A[5] = A[:, 5] = B[5] = B[:, 5] = 0
    result = sparse_eigen(A, B, 1, 6)
    assert result.loadings[5, 0] == 0
    assert result.cardinality[0] == 5
    with pytest.warns(RuntimeWarning, match="only 1 of 3 directions"):
        assert sparse_eigen(A, B, 3, 2).n_components == 1
    assert sparse_eigen(np.zeros((3, 3)), np.eye(3), 1, 2).values[0] == 0


@pytest.mark.share(16)
@pytest.mark.filterwarnings("ignore:found only .* directions")
@pytest.mark.parametrize("strategy", ["auto", "rough"])
@pytest.mark.parametrize("deflation", DEFLATIONS)
@pytest.mark.parametrize("singular", [False, True])
def test_directions_of_deficient_pencils(singular, deflation, strategy):
    """Until nothing is left."""
    for rank, k in product(range(1, 6), (2, 5)):
        rng = np.random.default_rng([rank, k])
        H = rng.standard_normal((3 if singular else 8, 5))
        F = rng.standard_normal((rank, 3)) @ H if singular else rng.standard_normal((rank, 5))
        A, B = F.T @ F, H.T @ H
        result = flat.sparse_eigen(A, B, 5, k, deflation=deflation, strategy=strategy)
        check_deflated(A, B, result, deflation)


@pytest.mark.share(16)
@pytest.mark.parametrize("p", [12, 300, 1100])
@pytest.mark.parametrize("options", [{}, {"strategy": "rough"}, {"deflation": "generalized"}])
def test_sparse_matrices(p, options):
    rng = np.random.default_rng(p)
    L = sp.random_array((p, p), density=min(0.3, 3 / p), rng=rng, format="csr")
    A = (L + L.T + sp.diags_array(rng.uniform(0, 3, p))).toarray()
    B = (L @ L.T + sp.diags_array(rng.uniform(1, 4, p))).toarray()
    expected = flat.sparse_eigen(A, B, 2, 4, **options)
    for a, b in ((sp.csr_array(A), sp.csc_matrix(B)), (A, sp.coo_array(B)), (sp.csr_array(A), B)):
        result = flat.sparse_eigen(a, b, 2, 4, **options)
        assert_allclose(result.loadings, expected.loadings, atol=1e-10)
        assert_allclose(result.values, expected.values, rtol=1e-10)


@pytest.mark.parametrize("p", [5, 1600])
def test_sparse_matrices_that_are_refused(p):
    one, off = sp.eye_array(p, format="csr"), sp.eye_array(p, k=1, format="csr")
    for A, B, words in (
        (one + off, one, "A must be symmetric; it differs from its transpose by up to 1"),
        (one, one + 2 * (off + off.T), "B must be positive semidefinite"),
        (one, np.nan * one, "B.data has"),
        (one[:, 1:], one, "A must be square"),
    ):
        with pytest.raises(ValueError, match=words):
            sparse_eigen(sp.csr_array(A), sp.csr_array(B), 1, 2)


# ---- what is known of the variables


@pytest.mark.parametrize("seed", range(8))
def test_given_signs_of_an_indefinite_matrix(rng):
    """The largest ratio of these signs is an eigenvalue of a part whose vector has them."""
    p, signs = 5, rng.choice([-1, 1], 5)
    A, B = rng.standard_normal((p, p)), np.cov(rng.standard_normal((p, p + 6)))
    A, best = A + A.T, -np.inf
    for S in map(list, chain(*(combinations(range(p), m + 1) for m in range(p)))):
        values, V = eigh(A[np.ix_(S, S)], B[np.ix_(S, S)])
        same = (V * V[0] * signs[S[0]] * np.array(signs[S])[:, None] >= 0).all(axis=0)
        best = max(best, *values[same], -np.inf)
    result = sparse_eigen(A, B, 1, p, choice=Choice(signs=signs))
    assert (result.loadings[:, 0] * signs >= 0).all()
    assert result.values[0] == pytest.approx(best, rel=1e-9)


@pytest.mark.parametrize("deflation", ["orthogonalized_schur", "generalized"])
def test_what_a_direction_adds_to_the_earlier_ones_is_removed(deflation):
    """And no more than that, as long as it is not rounding."""
    pencil = Pencil(Form.of(np.diag([3.0, 2, 1])), Form.of(np.eye(3)), dtype=np.dtype(float))
    for angle, j, known in ((np.pi / 2, 0, 1), (1e-5, 1, 2), (1e-8, 2, 2)):
        x = np.cos(angle) * np.eye(3)[0] + np.sin(angle) * np.eye(3)[j]
        pencil.remove(Solution(np.arange(3), x, 0.0, 0, True), DEFLATIONS[deflation])
        assert len(pencil.removed) == known
    assert_allclose(pencil.removed[1][0], np.eye(3)[1], atol=1e-15)


def test_a_candidate_that_b_does_not_tell_apart_is_refused():
    """Where A tells it apart by one product alone: n'An = 0 for the n that B maps to zero."""
    A, B = np.array([[1.0, 0, 1], [0, 1, 1], [1, 1, 1]]), np.array([[1.0, 0, 1], [0, 1, 0], [1, 0, 1]])
    pencil, S = Pencil(Form.of(A.copy()), Form.of(B.copy()), dtype=np.dtype(float)), np.arange(2)
    basis = pencil.basis(*pencil.blocks(S), S)
    with pytest.raises(ValueError, match="has no bound"):
        pencil.values_with(A[:2, 2:], B[:2, 2:], np.array([2]), basis, S)


def test_a_quotient_of_rank_one_has_one_eigenvalue():
    quotient = Quotient()
    quotient.dtype = np.dtype(float)
    for p in range(2, 20):
        v = normal(p, p)
        G = np.outer(v, v)
        assert_allclose(quotient.basis(3 * G, G, np.arange(p)).eigenvalues, [3])


def test_a_callback_hears_of_each_direction_once_it_is_found():
    heard, (A, B) = [], (np.cov(normal(seed, 30, 8), rowvar=False) for seed in (0, 1))
    x = sparse_eigen(A, B, 2, 3, callback=heard.append)
    for t in range(2):
        last = [progress for progress in heard if progress.component == t][-1]
        assert (last.n_iter, last.value) == (x.n_iter[t], pytest.approx(x.values[t]))
