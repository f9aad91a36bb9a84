"""What is known of nine variables, and the best component that respects it, by enumeration."""

import itertools

import flat
import numpy as np
import pytest
import scipy.linalg
from numpy.testing import assert_allclose

from spcacore.supports.admissible import Supports

P = 9
LABELS = np.array([0, 0, 1, 1, 1, 2, 3, 3, 4])
MIXED = np.array([1, 1, -1, 0, 1, -1, 0, 1, 1])
METHODS = {
    "tpower": 4, "greedy": 4, "branch_and_bound": 4, "thresholding": 4, "dspca": 4, "least_squares": 4,
    "gpower": 1.5, "pmd": 1.7, "scotlass": 1.7,
}  # fmt: skip
SPARSITY = {"gpower": "penalty", "pmd": "l1_bound", "scotlass": "l1_bound"}
CHOOSING = ["tpower", "greedy", "branch_and_bound", "thresholding", "dspca", "gpower", "pmd"]


def data(seed, n=30, p=P):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, p)) @ rng.standard_normal((p, p)) + rng.standard_normal((n, 1))


def covariance(seed, p=P):
    return np.cov(data(seed, p=p), rowvar=False)


def components(M, method, r=1, kind="covariance", **options):
    sparsity = {SPARSITY.get(method, "cardinality"): METHODS[method]}
    return flat.sparse_pca(M, r, method=method, kind=kind, **(sparsity | options))


def signed_ratio_optimum(M, G, signs):
    """The largest x'Mx/x'Gx of these signs: where it is not zero, x is an eigenvector of a support."""
    most = -np.inf
    for size in range(1, len(M) + 1):
        for S in map(list, itertools.combinations(range(len(M)), size)):
            values, V = scipy.linalg.eigh(M[np.ix_(S, S)], G[np.ix_(S, S)])
            x = V[:, -1] * signs[S]
            if x.min() >= -1e-9 or x.max() <= 1e-9:
                most = max(most, values[-1])
    return most


def signed_optimum(A, signs):
    """The largest x'Ax of unit x with these signs."""
    return signed_ratio_optimum(A, np.eye(len(A)), signs)


def allowed(k, include=(), exclude=(), groups=None, count="groups", p=P, full=False):
    """Supports with their cardinality, at most k; the `full` ones have no room for another unit."""
    groups = np.arange(p) if groups is None else np.asarray(groups)
    size = {u: 1 if count == "groups" else int((groups == u).sum()) for u in np.unique(groups)}
    units = {u for u in size if not np.isin(np.flatnonzero(groups == u), exclude).any()}
    wanted = set(groups[list(include)])
    for n in range(1, len(units) + 1):
        for chosen in map(set, itertools.combinations(sorted(units), n)):
            room = k - sum(size[u] for u in chosen)
            more = any(size[u] <= room for u in units - chosen)
            if room >= 0 and wanted <= chosen and not (full and more):
                yield tuple(np.flatnonzero(np.isin(groups, [*chosen])).tolist()), k - room


def best_value(A, S, nonnegative=None):
    """The largest x'Ax of unit x on a support."""
    B = A[np.ix_(S, S)]
    return (
        np.linalg.eigvalsh(B)[-1] if nonnegative is None else signed_optimum(B, np.array(nonnegative)[[*S]])
    )


def optimum(A, k, nonnegative=None, **known):
    """By enumeration of all supports."""
    return max(best_value(A, S, nonnegative) for S, _ in allowed(k, p=len(A), full=True, **known))


EACH = [{"include": [1]}, {"exclude": [1]}, {"groups": LABELS}, {"nonnegative": MIXED}]
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


def assert_feasible(v, k, include=(), exclude=(), groups=None, nonnegative=None, count="groups"):
    groups = np.arange(len(v)) if groups is None else groups
    used = set(groups[v != 0]) | set(groups[list(include)])
    assert not v[list(exclude)].any()
    assert k is None or (len(used) if count == "groups" else np.isin(groups, [*used]).sum()) <= k
    if nonnegative is not None:
        assert (v * np.asarray(nonnegative) >= 0).all()
    assert_allclose(np.linalg.norm(v), 1)


def supports_of(known):
    """What is known, as the searches have it."""
    nothing = {"include": None, "exclude": None, "groups": None, "nonnegative": False}
    return Supports.checked(P, None, **flat.known(nothing | known))


def convex(choice, w):
    """For a convex solver: the norms of the units that cost something, and the signs as constraints."""
    cp = pytest.importorskip("cvxpy")
    sums = [cp.norm(w[choice.unit == u]) for u in np.flatnonzero(~choice.included)]
    return sums, [] if choice.signs is None else [cp.multiply(choice.signs, w) >= 0]
