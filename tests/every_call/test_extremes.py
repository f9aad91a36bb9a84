"""What is extreme: the values that come out of it, call by call.

That nothing strange happens, in every call, is in test_bad_input.py; here are right answers: where there is
no variance, at the smallest shapes, beyond the rank, with ties. The ends of the number range are in
test_scales.py, operators that fail in test_user_code.py.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from in_turn import each_dtype, each_order
from kinds import DTYPES, untouched
from numpy.testing import assert_allclose, assert_array_equal
from oracles import normal
from small import FORMS, V0, X0, K, N, P, assert_same, ids, tolerance

from spcacore import deflate, explained_variance, renormalize, sparse_pca, tpower

# ---- nothing to find ------------------------------------------------------------------------------------


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("value", "dtype"),
    [(v, d) for v in (0.0, 1.0, 0.1, -1e6, 1e200) for d in DTYPES if abs(v) < float(np.finfo(d).max)],
)
@pytest.mark.parametrize(
    ("form", "scale"), [(f, s) for f in FORMS for s in (False, True) if not (s and f[0] == "operator")], **ids
)
def test_no_variance(value, scale, form, dtype):
    X = form[1](np.full((N, P), value, dtype))
    nothing = "no variance is left after 0 of the 2 components"
    with untouched(X), pytest.warns(RuntimeWarning, match=nothing) as said:
        out = sparse_pca(X, 2, cardinality=K, scale=scale)
    assert len(said) == 1
    assert out.n_components == 0
    assert out.loadings.shape == (P, 0)
    assert out.explained_variance.shape == (0,)
    assert out.total_variance in (0, None)
    if form[0] != "operator":
        scores = out.transform(np.full((N, P), value, dtype))
        assert scores.shape == (N, 0)
        assert_allclose(out.reconstruct(scores), np.full((N, P), value, dtype))
    with untouched(X), pytest.warns(RuntimeWarning, match="no variance"):
        x = tpower(X, K, scale=scale)
    assert x.loading.tolist() == [1, *[0] * (P - 1)]
    assert (x.value, x.cardinality) == (0, 1)
    if form[0] == "operator" and value > 1e9:
        return  # nothing is known of it but products whose rounding is itself large
    with np.errstate(all="raise"):
        rounding = 100 * P * (np.finfo(dtype).eps * min(value, 1e9)) ** 2
        assert explained_variance(X, V0, scale=scale).max() <= (rounding if form[0] == "operator" else 0)


@pytest.mark.share(4)
@each_dtype
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (7, 1), (2, 1), (2, 2), (1, 300), (300, 1)])
@pytest.mark.parametrize("form", FORMS, **ids)
def test_smallest_shapes(form, shape, dtype):
    n, p = shape
    X = normal(5, *shape).astype(dtype)
    Y = form[1](X)
    C = np.atleast_2d(np.cov(X.astype(float), rowvar=False)) if n > 1 else np.zeros((p, p))
    top = np.linalg.eigvalsh(C)[-1]
    for k in {1, p}:
        if n == 1:
            with untouched(Y), pytest.warns(RuntimeWarning, match="no variance"):
                x = tpower(Y, k)
            assert x.loading[0] == 1
            assert x.value == 0
            with pytest.warns(RuntimeWarning, match="no variance"):
                assert sparse_pca(Y, 1, cardinality=k).n_components == 0
        else:
            with untouched(Y):
                x = tpower(Y, k)
                out = sparse_pca(Y, 1, cardinality=k)
            best = top if k == p else C.diagonal().max()
            assert x.value == pytest.approx(best, rel=10 * tolerance(dtype))
            assert out.explained_variance[0] == pytest.approx(best, rel=10 * tolerance(dtype))
    assert np.isfinite(explained_variance(Y, np.ones((p, 1)))).all()
    x = renormalize(Y, np.ones(p)).astype(float)
    assert [x @ x, x @ C @ x] == pytest.approx([1, top], rel=10 * tolerance(dtype))
    if form[0] in "CF":
        assert deflate(Y, np.ones(p), kind="data").shape == shape
        assert deflate(Y, np.ones(p), "schur", kind="data").shape == shape


# ---- rank and ties --------------------------------------------------------------------------------------


@pytest.mark.share(16)
@each_dtype
@pytest.mark.parametrize("deflation", ["projection", "schur", "orthogonalized_projection"])
@pytest.mark.parametrize(
    ("form", "offset"),
    [
        (form, offset)
        for form in [*FORMS, ("covariance", lambda a: np.cov(a, rowvar=False))]
        for offset in (0.0, 100.0, 1e5)
        if not (form[0] == "operator" and offset > 0)  # it does not tell the mean from the spread
    ],
    **ids,
)
@pytest.mark.parametrize(("n", "p"), [(60, 20), (20, 60)])
@pytest.mark.parametrize("rank", [1, 3])
def test_no_component_beyond_the_rank(rank, offset, n, p, form, deflation, dtype):
    """With k = p the components are those of PCA: exactly `rank` of them carry variance."""
    rng = np.random.default_rng(rank)
    X = rng.standard_normal((n, rank)) @ rng.standard_normal((rank, p)) + offset
    kind = "covariance" if form[0] == "covariance" else "data"
    if kind == "covariance" and dtype == np.float32:
        Y = form[1](X).astype(dtype)  # the covariance is rounded, not the data
        Y = (Y + Y.T) / 2
    else:
        Y = form[1](X.astype(dtype))
    r = min(rank + 4, n, p)
    with pytest.warns(RuntimeWarning, match=f"no variance is left after {rank} of the {r}"):
        out = sparse_pca(Y, r, cardinality=p, kind=kind, deflation=deflation)
    assert out.n_components == rank
    if out.explained_variance_ratio is not None:
        lost = 1 - out.explained_variance_ratio.sum()
        assert abs(lost) < 20 * tolerance(dtype) * (1 + offset * 1e-2)


# ---- sparse ---------------------------------------------------------------------------------------------


def test_stale_canonical_flag():
    """scipy remembers that a matrix was canonical after its arrays were changed."""
    m = sp.csr_array(X0)
    assert m.has_canonical_format
    m.indices[:2] = m.indices[0]
    fresh = sp.csr_array((m.data.copy(), m.indices.copy(), m.indptr.copy()), m.shape)
    with untouched(m):
        assert_same(sparse_pca(m, 2, cardinality=K), sparse_pca(fresh.toarray(), 2, cardinality=K), 1e-12)


@pytest.mark.parametrize("shape", [(50, 8), (200, 20)])
@each_order
def test_float32_far_from_zero_is_as_float64(order, shape):
    """Whole numbers near 1e7, of which single precision has every digit, but not of their products."""
    X = np.asarray(np.random.default_rng(0).normal(1e7, 3, shape), np.float32, order=order)
    found, expected = (sparse_pca(data, 2, cardinality=3) for data in (X, X.astype(np.float64)))
    assert_array_equal(found.loadings != 0, expected.loadings != 0)
    assert_allclose(found.explained_variance, expected.explained_variance, rtol=1e-6)
