"""The value of a component is x'Ax of the loading that is returned, whatever the matrix and the start."""

import flat
import numpy as np
import pytest
from in_turn import examples
from kernels.test_c_functions import blocks
from numpy.testing import assert_array_equal
from oracles import covariance, optimum

import spcacore
from spcacore import _core, branch_and_bound, greedy, pmd, scotlass, tpower

SEARCHES = {
    "tpower": (tpower, 2), "greedy": (greedy, 2), "branch_and_bound": (branch_and_bound, 2),
    "pmd": (pmd, 1.3), "scotlass": (scotlass, 1.3), "gpower": (spcacore.gpower, 0.1),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:X has no variance")
def test_any_symmetric_matrix_against_enumeration():
    """Indefinite, semidefinite, negative and zero ones, and variables with zeros alone."""
    for A, _ in blocks(3, examples(60)):
        for k in range(1, len(A) + 1):
            best = optimum(A, k)
            for search in (tpower, greedy, branch_and_bound):
                x = search(A, k, kind="covariance")
                assert np.linalg.norm(x.loading) == pytest.approx(1)
                assert np.count_nonzero(x.loading) <= k
                assert x.value == pytest.approx(x.loading @ A @ x.loading, abs=1e-12)
                assert x.value <= best + 1e-12
                assert x.value >= A.diagonal().max() - 1e-12
                if search is branch_and_bound:
                    assert x.value == pytest.approx(best, abs=1e-12)


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
    X = np.random.default_rng(0).standard_normal((20, 7))
    call, sparsity = SEARCHES[search]
    options = {"choice": spcacore.Choice(exclude=[0])} if where == "excluded" else {}
    if where == "constant":
        X[:, 0] = 3
    with pytest.warns(RuntimeWarning, match="no component was found from start"):
        x = call(X, sparsity, options=flat.record(search, start=np.eye(7)[0]), **options)
    assert_array_equal(x.loading, call(X, sparsity, **options).loading)
    assert x.value == pytest.approx(x.loading @ covariance(X) @ x.loading)


def test_one_start_of_many_without_image_ends_only_itself():
    A = np.diag([0.0, 2, 3])
    index, value = np.array([[0], [1], [2]]), np.ones((3, 1))
    index, value, objective, _, ends = _core.truncated_power_of_matrix(A, index, value, 1, 9, 0.0)
    assert (objective.tolist(), ends.tolist()) == ([-np.inf, 2, 3], [-2, 0, 0])
    assert index[1:].tolist() == [[1], [2]]


@pytest.mark.parametrize("seed", range(10))
def test_orthogonal_to_earlier_loadings_without_the_variables_excluded(seed):
    rng = np.random.default_rng(seed)
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
