"""Single columns of sparse data; the matrix of a working set without components found."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import strategies as st
from in_turn import of_examples
from numpy.testing import assert_allclose, assert_array_equal
from oracles import covariance, deflated, dense_vector, unit_vector

from spcacore.operators.deflation import DeflatedOperator
from spcacore.operators.inputs import as_problem

seeds = st.integers(0, 10**6)

pytestmark = pytest.mark.usefixtures("small_sets")


def counts(rng, n, p, dtype=np.float64):
    """Sparse counts about four factors, the variances of which span four decades."""
    rates = np.exp(rng.normal(-2, 1.5, p)) * np.exp(rng.normal(0, 1, (n, 4)) @ rng.normal(0, 0.5, (4, p)))
    return sp.csc_array(np.minimum(rng.poisson(rates), 10000).astype(dtype))


def searched(X, **options):
    return as_problem(X, screening="working_set", restrictable=True, **options)


def removed(problem, rng, loadings, variables):
    """A state without so many loadings of these variables."""
    state = DeflatedOperator.from_problem(problem)
    for _ in range(loadings):
        state = state.deflate(*unit_vector(rng, variables, 4, problem.operator.dtype))
    return state


@of_examples(
    25, seeds, st.sampled_from([np.float32, np.float64]), st.booleans(), st.booleans(), st.integers(0, 3)
)
def test_entries_of_products(seed, dtype, scale, weighted, loadings):
    rng = np.random.default_rng(seed)
    n, p = rng.integers(5, 60), rng.integers(10, 80)
    weight = rng.integers(0, 3, n) + (np.arange(n) < 3) if weighted else None
    X = counts(rng, n, p, dtype)
    problem = searched(X, scale=scale, sample_weight=weight)
    state = removed(problem, rng, loadings, p)
    index, value = unit_vector(rng, p, 5, dtype)
    columns = np.flatnonzero(rng.random(p) < rng.random())
    whole = state.operator.apply(index, value)
    assert_array_equal(state.operator.apply_at(index, value, columns), whole[columns])
    image = state.operator.forward(index, value)
    assert_array_equal(state.operator.apply_at(index, value, columns, image), whole[columns])
    with pytest.raises(ValueError, match="rows"):
        state.operator.apply_at(index, value, np.arange(1), image[1:])
    if loadings == 0:
        repeated = X.toarray() if weight is None else np.repeat(X.toarray(), weight, axis=0)
        want = covariance(repeated.astype(np.float64), scale=scale) @ dense_vector(p, index, value)
        tol = 1e-4 if dtype == np.float32 else 1e-10
        assert_allclose(problem.in_units(whole.astype(float)), want, rtol=tol, atol=tol * abs(want).max())


def test_entries_of_products_are_for_columns():
    problem = searched(sp.csr_array(np.eye(5)))
    row_major = as_problem(sp.csr_array(np.eye(5))).operator
    index, value = np.arange(1), np.ones(1)
    assert problem.operator.reads_columns  # of a copy
    assert not row_major.reads_columns
    with pytest.raises(TypeError, match="CSC"):
        row_major.apply_at(index, value, index)


@of_examples(25, seeds, st.sampled_from([np.float32, np.float64]))
def test_the_matrix_without_components_is_brought_up_to_date(seed, dtype):
    rng = np.random.default_rng(seed)
    X = counts(rng, 50, 60, dtype)
    problem = searched(X)
    working_set, state = problem.working_set, DeflatedOperator.from_problem(problem)
    active = np.arange(8)
    A = covariance(X.toarray().astype(float)) / problem.unit
    removed_from = A.copy()
    for _ in range(8):
        active = np.union1d(active, rng.choice(60, 5))
        assert working_set.admit(active)
        restricted = working_set.restricted(state, active)
        got = restricted.operator.submatrix(np.arange(len(active)))
        tol = (1e-4 if dtype == np.float32 else 1e-10) * A.diagonal().max()
        assert_allclose(got, removed_from[np.ix_(active, active)], atol=tol)
        assert_allclose(restricted.diagonal, removed_from.diagonal()[active], atol=tol)
        assert_allclose(restricted.problem.diagonal, A.diagonal()[active], atol=tol)
        if rng.random() < 0.2:  # another path through the same working set
            state, removed_from = DeflatedOperator.from_problem(problem), A.copy()
        index, value = unit_vector(rng, active, 4, dtype)
        x = dense_vector(60, index, value)
        state, removed_from = (
            state.deflate(index, value),
            deflated(removed_from, x, "projection", []),
        )


@of_examples(60, seeds, st.booleans(), st.booleans())
def test_the_largest_entries_from_the_last_support(seed, ties, nonnegative):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 400))
    k = int(rng.integers(1, p + 1))
    A = rng.integers(-2, 3, (p, p)).astype(float) if ties else rng.standard_normal((p, p))
    A = A + A.T
    op = as_problem(A, kind="covariance", definite=False).operator
    index = np.sort(rng.choice(p, k, replace=False))
    value = rng.integers(1, 3, k).astype(float) if ties else rng.standard_normal(k)
    y = op.apply(index, value)
    size = np.maximum(y, 0) if nonnegative else np.abs(y)
    want = np.sort(np.argsort(-size, kind="stable")[:k])
    got, entries, _ = op.largest(index, value, k, nonnegative)
    assert_array_equal(got, want)
    assert_array_equal(entries, np.maximum(y, 0)[want] if nonnegative else y[want])
