"""Knowledge about variables: which must be in, may not be, go together, and with which sign."""

import itertools

import numpy as np
import pytest

import spcacore
from spcacore import sparse_pca

P, K = 9, 4
LABELS = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4])
MIXED = np.array([1, 1, -1, 0, 1, -1, 0, 1, 1])
METHODS = {
    "tpower": 4, "greedy": 4, "branch_and_bound": 4, "thresholding": 4, "dspca": 4, "least_squares": 4,
    "gpower": 1.5, "pmd": 1.7, "scotlass": 1.7,
}  # fmt: skip
SPARSITY = {"gpower": "penalty", "pmd": "l1_bound", "scotlass": "l1_bound"}
INCLUDING = ["tpower", "greedy", "branch_and_bound", "thresholding", "gpower", "pmd"]
CHOOSING = ["tpower", "branch_and_bound", "thresholding", "gpower", "pmd"]


def data(seed, n=30, p=P):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) @ rng.standard_normal((p, p)) + rng.standard_normal((n, 1))


def covariance(seed, p=P):
    return np.cov(data(seed, p=p), rowvar=False)


def components(M, method, r=1, kind="covariance", **options):
    sparsity = {SPARSITY.get(method, "cardinality"): METHODS[method]}
    return sparse_pca(M, r, method=method, kind=kind, **sparsity | options)


def signed_optimum(A, signs):
    """The largest x'Ax of unit x with these signs: on some support, its leading eigenvector has them."""
    most = -np.inf
    for size in range(1, len(A) + 1):
        for S in map(list, itertools.combinations(range(len(A)), size)):
            values, vectors = np.linalg.eigh(A[np.ix_(S, S)])
            x = vectors[:, -1] * signs[S]
            if x.min() >= -1e-9 or x.max() <= 1e-9 or not signs[S].any():
                most = max(most, values[-1])
            elif (signs[S] == 0).any():
                kept = signs[S] != 0
                if x[kept].min() >= -1e-9 or x[kept].max() <= 1e-9:
                    most = max(most, values[-1])
    return most


def optimum(A, k, include=(), exclude=(), groups=None, nonnegative=None):
    """By enumeration of all supports."""
    groups = np.arange(len(A)) if groups is None else groups
    allowed = [g for g in np.unique(groups) if not np.isin(np.flatnonzero(groups == g), exclude).any()]
    wanted = set(groups[list(include)])
    most = -np.inf
    for chosen in itertools.combinations(allowed, min(k, len(allowed))):
        if wanted <= set(chosen):
            S = np.flatnonzero(np.isin(groups, chosen))
            B = A[np.ix_(S, S)]
            value = np.linalg.eigvalsh(B)[-1] if nonnegative is None else signed_optimum(B, nonnegative[S])
            most = max(most, value)
    return most


CASES = [
    ({"include": [0, 5]}, 4),
    ({"exclude": [2, 3]}, 4),
    ({"include": [8], "exclude": [2, 3, 4]}, 3),
    ({"include": [1, 2, 3]}, 3),
    ({"groups": LABELS}, 2),
    ({"groups": LABELS, "include": [8]}, 2),
    ({"groups": LABELS, "exclude": [6, 7]}, 3),
    ({"nonnegative": np.ones(P)}, 4),
    ({"nonnegative": MIXED}, 4),
    ({"nonnegative": MIXED, "groups": LABELS}, 2),
    ({"nonnegative": MIXED, "exclude": [0]}, 3),
]


@pytest.mark.parametrize(("knowledge", "k"), CASES)
@pytest.mark.parametrize("kind", ["data", "covariance"])
def test_branch_and_bound_proves_the_optimum(knowledge, k, kind):
    for seed in range(4):
        X = data(seed)
        A = np.cov(X, rowvar=False)
        x = spcacore.branch_and_bound(X if kind == "data" else A, k, kind=kind, **knowledge)
        best = optimum(A, k, **knowledge)
        assert x.optimal
        np.testing.assert_allclose(x.value, best, rtol=1e-9)
        assert best <= x.upper_bound * (1 + 1e-12)
        np.testing.assert_allclose(x.loading @ A @ x.loading, x.value, rtol=1e-10)
        assert_feasible(x.loading, k, **knowledge)


def assert_feasible(v, k, include=(), exclude=(), groups=None, nonnegative=None):
    groups = np.arange(len(v)) if groups is None else groups
    used = set(groups[v != 0]) | set(groups[list(include)])
    assert not v[list(exclude)].any()
    assert k is None or len(used) <= k
    if nonnegative is not None:
        assert (v * nonnegative >= 0).all()
    np.testing.assert_allclose(np.linalg.norm(v), 1)


@pytest.mark.parametrize("method", ["tpower", "greedy"])
def test_searches_find_nearly_the_optimum(method):
    ratios = []
    for knowledge, k in CASES:
        if method == "greedy" and not set(knowledge) <= {"include", "exclude"}:
            continue
        for seed in range(10, 16):
            A = covariance(seed)
            options = {name: v for name, v in knowledge.items() if name != "nonnegative"}
            if "nonnegative" in knowledge:
                options["nonnegative"] = knowledge["nonnegative"]
            x = getattr(spcacore, method)(A, k, kind="covariance", **options)
            assert_feasible(x.loading, k, **knowledge)
            ratios.append(x.value / optimum(A, k, **knowledge))
    assert max(ratios) <= 1 + 1e-9
    assert np.quantile(ratios, 0.05) > (0.999 if method == "tpower" else 0.93)
