"""A small matrix of whole numbers, the calls on it, and its forms: for right answers of what is extreme."""

import numpy as np
import scipy.sparse as sp
from kinds import stored_zeros
from numpy.testing import assert_allclose
from oracles import normal
from scipy.sparse.linalg import aslinearoperator

N, P, K = 12, 6, 3
X0 = np.random.default_rng(1).integers(-3, 4, (N, P)).astype(np.float64)
CLEAN = {"data": X0, "covariance": X0.T @ X0}  # small integers: exact in every dtype from int8 up
V0 = normal(2, P, 2)
KINDS = ["data", "covariance"]


def tolerance(dtype):
    return 2e-5 if dtype == np.float32 else 1e-12


# (name, call): call(X, kind) runs a public function on a matrix of P variables


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
            assert_allclose(a, b, rtol=tol, atol=tol * (np.abs(b).max(initial=0) + 1e-300))
