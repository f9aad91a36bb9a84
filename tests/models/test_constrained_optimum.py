"""The last component under a constraint, and a single one, against enumeration of all supports."""

from itertools import combinations

import numpy as np
import pytest
from in_turn import examples
from oracles import covariance

from spcacore import GPower, sparse_pca

CONSTRAINTS = ("orthogonal", "uncorrelated")


def random_case(seed):
    rng = np.random.default_rng(seed)
    p, k = int(rng.integers(6, 11)), int(rng.integers(3, 6))
    return (
        covariance(rng.standard_normal((15, p)) @ rng.standard_normal((p, p))),
        k,
        int(rng.integers(2, min(k, 4))),
    )


def constrained_optimum(A, forbidden, k):
    """max x'Ax over unit x with k nonzeros and forbidden' x = 0."""
    best = 0.0
    for support in combinations(range(len(A)), k):
        left, size, _ = np.linalg.svd(forbidden[list(support)])
        free = left[:, np.count_nonzero(size > 1e-9 * max(1.0, size[0])) :]
        if free.shape[1]:
            best = max(best, np.linalg.eigvalsh(free.T @ A[np.ix_(support, support)] @ free)[-1])
    return best


def shortfalls(constraint, method, seeds):
    out = []
    for seed in seeds:
        A, k, r = random_case(seed)
        options = {"method": method, "cardinality": k}
        if method == "gpower":
            r, options = 2, {"method": GPower(penalty=0.3 * np.sqrt(A.diagonal().max()))}
        V = sparse_pca(A, r, kind="covariance", deflation=constraint, **options).loadings
        if method == "gpower":  # of how many variables, its penalty says
            k = np.count_nonzero(V[:, -1])
        earlier, v = V[:, :-1], V[:, -1]
        forbidden = earlier if constraint == "orthogonal" else A @ earlier
        assert V.shape[1] == r
        assert np.abs(forbidden.T @ v).max() < 1e-8 * np.abs(A).max()
        assert np.count_nonzero(v) <= k
        out.append(1 - v @ A @ v / constrained_optimum(A, forbidden, k))
    assert min(out) > -1e-9
    return np.array(out)


@pytest.mark.share(8)
@pytest.mark.parametrize("constraint", CONSTRAINTS)
@pytest.mark.parametrize("method", ["tpower", "greedy", "dspca", "gpower", "branch_and_bound"])
def test_the_constrained_optimum_is_found(constraint, method):
    assert shortfalls(constraint, method, range(examples(40))).max() < 1e-9


def test_an_end_with_fewer_nonzeros_than_it_may_have_is_improved():
    """Where a variable of the support would have to be zero; other supports of four explain 38 % more."""
    rng = np.random.default_rng(38)
    p, k, n = int(rng.integers(8, 12)), int(rng.integers(3, 6)), int(rng.integers(9, 40))
    X = rng.standard_normal((n, p)) @ np.diag(rng.uniform(0.5, 2, p))
    A = covariance(X @ (np.eye(p) + 0.3 * rng.standard_normal((p, p))))
    V = sparse_pca(A, 3, cardinality=k, kind="covariance", deflation="orthogonal").loadings
    best = constrained_optimum(A, V[:, :2], k)
    assert V[:, 2] @ A @ V[:, 2] == pytest.approx(best, rel=1e-9)
