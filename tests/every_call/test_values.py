"""The value of a component is x'Ax of the loading that is returned, whatever the matrix and the start."""

import flat
import numpy as np
import pytest
from numpy.testing import assert_array_equal
from oracles import covariance, normal

import spcacore
from spcacore import branch_and_bound, greedy, pmd, scotlass, tpower

SEARCHES = {
    "tpower": (tpower, 2), "greedy": (greedy, 2), "branch_and_bound": (branch_and_bound, 2),
    "pmd": (pmd, 1.3), "scotlass": (scotlass, 1.3), "gpower": (spcacore.gpower, 0.1),
}  # fmt: skip


@pytest.mark.parametrize("search", ["tpower", "greedy", "branch_and_bound"])
@pytest.mark.parametrize(
    "A", [np.diag([-1.0, 0, 0]), np.array([[-1, 0.5, 0], [0.5, -1, 0], [0, 0, 0]])], ids=["diagonal", "block"]
)
def test_no_variance_is_better_than_a_negative_one(search, A):
    x = SEARCHES[search][0](A, 2, kind="covariance")  # and no warning: this is the best
    assert x.value == 0
    assert_array_equal(x.loading, np.eye(3)[1 if A[1, 1] == 0 else 2])


@pytest.mark.parametrize("search", ["tpower", "pmd", "scotlass", "gpower"])
@pytest.mark.parametrize("where", ["excluded", "constant"])
def test_a_start_without_image_does_not_end_the_search(search, where):
    X = normal(0, 20, 7)
    call, sparsity = SEARCHES[search]
    options = {"choice": spcacore.Choice(exclude=[0])} if where == "excluded" else {}
    if where == "constant":
        X[:, 0] = 3
    with pytest.warns(RuntimeWarning, match="no component was found from start"):
        x = call(X, sparsity, options=flat.record(search, start=np.eye(7)[0]), **options)
    assert_array_equal(x.loading, call(X, sparsity, **options).loading)
    assert x.value == pytest.approx(x.loading @ covariance(X) @ x.loading)


@pytest.mark.parametrize("seed", range(10))
def test_orthogonal_to_earlier_loadings_without_the_variables_excluded(rng):
    X, E = rng.standard_normal((20, 7)), rng.standard_normal((7, 2))
    options = {
        "options": spcacore.SCoTLASS(renormalize=False), "choice": spcacore.Choice(exclude=[0])
    }  # fmt: skip
    x = scotlass(X, 1.8, earlier=E, **options)
    assert x.loading[0] == 0
    assert np.abs(E.T @ x.loading).max() < 1e-9
    assert x.value == pytest.approx(x.loading @ covariance(X) @ x.loading)
    alone = scotlass(X, 1.8, earlier=np.eye(7)[:, :1], **options)  # which asks for nothing more
    assert_array_equal(alone.loading, scotlass(X, 1.8, **options).loading)
