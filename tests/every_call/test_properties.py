"""What the mathematics promises of any matrix: properties on 20 examples each, of `nox -s slow` on 100.

`pytest tests/every_call/test_properties.py --hypothesis-profile thorough --hypothesis-seed 7` draws others.
"""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from in_turn import SEEDS
from numpy.testing import assert_allclose
from oracles import covariance

import spcacore

pytestmark = pytest.mark.usefixtures("few_starts")

seeds = SEEDS
FAMILIES = ("normal", "integers", "low rank", "sizes", "copies", "offset", "outliers")


@st.composite
def data(draw, n=(3, 14), p=(2, 8), families=FAMILIES):
    rng = np.random.default_rng(draw(seeds))
    n, p, family = draw(st.integers(*n)), draw(st.integers(*p)), draw(st.sampled_from(families))
    X = rng.standard_normal((n, p))
    if family == "integers":
        X = np.round(2 * X)
    elif family == "low rank":
        X = X[:, :2] @ rng.standard_normal((2, p)) if p > 2 else X
    elif family == "sizes":
        X = X * 10.0 ** rng.integers(-3, 4, p)
    elif family == "copies":
        X = X[:, rng.integers(0, p, p)]
    elif family == "offset":
        X = X + 100 * rng.standard_normal(p)
    elif family == "outliers":
        X = rng.standard_t(1.5, (n, p))
    assume(np.ptp(X, axis=0).max() > 0)
    return X


def some(X, *, of=0):
    """A generator that belongs to the matrix."""
    return np.random.default_rng([X.shape[0], X.shape[-1], of, int(np.abs(X).sum() * 1e3) % 2**31])


def top(A, r=1):
    return np.linalg.eigvalsh(A)[::-1][:r].sum()


# ---- deflation and several components -------------------------------------------------------------------


@given(data(), st.integers(1, 3))
def test_definitions_of_explained_variance_are_ordered(X, r):
    A = covariance(X)
    r = min(r, *X.shape)
    V = some(X).standard_normal((len(A), r))
    raw, adjusted = (spcacore.explained_variance(X, V, d) for d in ("raw", "adjusted"))
    assert (adjusted <= raw * (1 + 1e-9) + 1e-12 * np.trace(A)).all()
    dense = np.linalg.eigh(A)[1][:, ::-1][:, :r]
    for definition in ("raw", "adjusted", "cumulative"):
        got = spcacore.explained_variance(X, dense, definition)
        assert_allclose(got, np.linalg.eigvalsh(A)[::-1][:r], rtol=1e-7, atol=1e-9 * top(A))
