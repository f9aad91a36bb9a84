"""A small matrix of whole numbers, the calls on it, and its forms: for right answers of what is extreme."""

import functools

import numpy as np
import scipy.sparse as sp
from kinds import stored_zeros
from scipy.sparse.linalg import aslinearoperator

import spcacore
from spcacore import deflate, explained_variance, gpower, greedy, renormalize, sparse_pca, tpower

N, P, K = 12, 6, 3
X0 = np.random.default_rng(1).integers(-3, 4, (N, P)).astype(np.float64)
CLEAN = {"data": X0, "covariance": X0.T @ X0}  # small integers: exact in every dtype from int8 up
V0 = np.random.default_rng(2).standard_normal((P, 2))
KINDS = ["data", "covariance"]


def tolerance(dtype):
    return 2e-5 if dtype == np.float32 else 1e-12


@functools.cache
def result(kind):
    """Two components whose loadings use every variable."""
    return sparse_pca(CLEAN[kind], 2, cardinality=[K, P], kind=kind)


# (name, call): call(X, kind) runs a public function on a matrix of P variables
CALLS = [
    ("sparse_pca", lambda X, kind: sparse_pca(X, 2, cardinality=K, kind=kind)),
    ("tpower", lambda X, kind: tpower(X, K, kind=kind)),
    ("gpower", lambda X, kind: gpower(X, 1.0, kind=kind)),
    ("greedy", lambda X, kind: greedy(X, K, kind=kind, options=spcacore.Greedy(strategy="bidirectional"))),
    ("explained_variance", lambda X, kind: explained_variance(X, V0, kind=kind)),
    ("adjusted_variance", lambda X, kind: explained_variance(X, V0, "adjusted", kind=kind)),
    ("renormalize", lambda X, kind: renormalize(X, V0, kind=kind)),
    ("deflate", lambda X, kind: deflate(X, V0[:, 0], kind=kind)),
    ("deflate_schur", lambda X, kind: deflate(X, V0[:, 0], "schur", kind=kind)),
    ("transform", lambda X, kind: result(kind).transform(X)),
    ("extend", lambda X, kind: result(kind).extend(X, 1, cardinality=K)),
]
DENSE_ONLY = {"deflate", "deflate_schur"}
SOLVERS = [c for c in CALLS if c[0] in ("sparse_pca", "tpower", "greedy")]
COVARIANCE_CALLS = [c for c in CALLS if c[0] != "transform"]
MAKERS = [
    ("C", np.ascontiguousarray), ("F", np.asfortranarray), ("csr", sp.csr_array), ("csc", sp.csc_matrix),
    ("coo", sp.coo_array), ("list", lambda a: a.tolist()),
]  # fmt: skip
FORMS = [
    ("C", np.ascontiguousarray), ("F", np.asfortranarray), ("csr", sp.csr_array), ("csc", sp.csc_array),
    ("csr with stored zeros", stored_zeros), ("operator", aslinearoperator),
]  # fmt: skip
ids = {"ids": lambda v: v[0] if isinstance(v, tuple) else getattr(v, "__name__", None)}


def numbers_of(out):
    """Everything in a result that has a numerical value."""
    if isinstance(out, np.ndarray):
        return [out]
    names = ("loadings", "explained_variance", "total_variance", "loading", "value", "cardinality")
    return [np.asarray(getattr(out, a)) for a in names if getattr(out, a, None) is not None]


def assert_same(out, expected, tol):
    for a, b in zip(numbers_of(out), numbers_of(expected), strict=True):
        assert a.shape == b.shape
        if tol == 0:
            assert a.tobytes() == b.tobytes()
        else:
            np.testing.assert_allclose(a, b, rtol=tol, atol=tol * (np.abs(b).max(initial=0) + 1e-300))
