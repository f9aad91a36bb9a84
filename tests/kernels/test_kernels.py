"""The kernels by themselves, against NumPy: at every size where a loop, a block or a tile ends.

Quick, since tests/mutants.py runs these first.
"""

import numpy as np
import pytest
import scipy.sparse as sp
from in_turn import each_dtype, each_order
from numpy.testing import assert_allclose, assert_array_equal
from reference import check_dual

from spcacore import _core

# ---- selection --------------------------------------------------------------------------------------


def select_vectors(rng, p):
    normal = rng.standard_normal(p)
    few = rng.integers(-2, 3, p).astype(float)
    stride = max(-(-p // 1024), 1)  # of the sample of a long vector
    sampled = np.arange(p) // stride % stride == np.arange(p) % stride
    return {
        "cauchy": rng.standard_cauchy(p),
        "small sample": np.where(sampled, 1e-3 * normal, 1),
        "low sample": np.where(sampled, 0, normal),
        "high sample": np.where(sampled, 10 + normal, normal),
        "few values beside the sample": np.where(sampled, 0.5, few),
        "normal": normal,
        "few values": few,
        "equal": np.full(p, -1.5),
        "sorted": np.sort(normal),
        "rare": normal * (rng.random(p) < 0.05),
        "one above": np.where(np.arange(p) == p - 1, 2.0, few / 2),
        "infinite": np.where(rng.random(p) < 0.1, np.inf, normal),
    }


@each_dtype
def test_selection_at_the_ends_of_blocks(dtype, rng):
    lengths = [*range(1, 12), 127, 128, 129, 255, 256, 257, 511, 513, 1025, 4095, 4096, 4097, 5000]
    for p in (*lengths, 9001, 30000):
        for x in select_vectors(rng, p).values():
            x = x.astype(dtype)
            order = np.lexsort((np.arange(p), -np.abs(x)))
            ends = np.cumsum(np.unique(-np.abs(x), return_counts=True)[1])[:6]  # of ties
            sizes = {0, 1, 2, 1000, p // 8, p // 2, p - 1, p, int(rng.integers(p + 1)), *ends, *(ends + 1)}
            for k in sizes & set(range(p + 1)):
                assert np.array_equal(_core.select_largest(x, k), np.sort(order[:k]))
                kept, expected = x.copy(), np.zeros_like(x)
                _core.truncate(kept, k)
                expected[order[:k]] = x[order[:k]]
                assert np.array_equal(kept, expected)


@each_dtype
def test_selection_stays_inside_its_arrays(dtype):
    """What lies beyond the vector would be chosen if it were read; where ranks are few, so would the end."""
    rng = np.random.default_rng(1)
    for p in (1, 7, 127, 128, 129, 300, 4095, 4100, 6000):
        room = np.full(p + 600, 9.0, dtype)
        x = room[300 : 300 + p]
        x[:] = rng.integers(-3, 4, p)
        order = np.lexsort((np.arange(p), -np.abs(x)))
        for k in {1, p // 2, p}:
            assert np.array_equal(_core.select_largest(x, k), np.sort(order[:k])), k
        _core.truncate(x, p // 2)
        assert (room[:300] == 9).all()
        assert (room[300 + p :] == 9).all()


# ---- the level of the l1 norm -----------------------------------------------------------------------


@each_dtype
def test_threshold_at_the_ends_of_blocks(dtype):
    rng = np.random.default_rng(2)
    for p in (1, 2, 3, 15, 63, 64, 65, 127, 128, 129, 255, 256, 257, 600, 1023, 1024, 1025, 2049, 9000):
        for a in (
            rng.standard_normal(p),
            rng.standard_cauchy(p),
            np.round(2 * rng.standard_normal(p)),
            rng.standard_normal(p) * (rng.random(p) < 0.1),
            1 + 1e-3 * rng.random(p),
            np.where(np.arange(p) < p // 2 + 1, 1.0, rng.random(p)),
        ):
            a = a.astype(dtype)
            a[0] = a[0] or 1
            for share in (0.0, 0.02, 0.3, 0.8, 1.0):
                bound = 1 + share * (np.sqrt(p) - 1)
                w = np.full(p + 200, 7, dtype)
                for nonnegative, b in ((0, a), (1, np.maximum(a, 0)), (2, np.maximum(a, 0))):
                    if b.any():
                        given = a if nonnegative else b
                        level = _core.l1_threshold(given, bound, nonnegative, w[100 : 100 + p])
                        check_dual(b, bound, w[100 : 100 + p], level)
                        in_place = given.copy()
                        assert _core.l1_threshold(in_place, bound, nonnegative, in_place) == level
                        assert np.array_equal(in_place, w[100 : 100 + p])
                assert (w[:100] == 7).all()
                assert (w[100 + p :] == 7).all()


@each_dtype
def test_threshold_where_what_is_inside_stands_together(dtype):
    """What is collected is collected from again, in place."""
    rng = np.random.default_rng(8)
    for p in rng.integers(1000, 40000, 24):
        a = np.sort(rng.standard_normal(p) ** 2)[:: rng.choice([-1, 1])].astype(dtype)
        a[rng.random(p) < 0.3 * (p % 2)] *= -1
        for share in (0.05, 0.3, 0.6, 0.9):
            w, bound = np.empty(p, dtype), 1 + share * (np.sqrt(p) - 1)
            check_dual(a, bound, w, _core.l1_threshold(a, bound, 0, w))


@each_dtype
def test_threshold_levels_of_sums(dtype):
    """The levels of an l1 ball and of what is kept, against sorting."""
    rng = np.random.default_rng(3)
    for p in (1, 2, 7, 8, 9, 17, 100, 4095, 4096, 4097, 4104, 4105):
        normal = rng.standard_normal(p)
        for a in (normal, np.round(3 * normal), np.full(p, 0.25), normal * np.exp(4 * normal[::-1])):
            a = a.astype(dtype)
            size = np.sort(np.abs(a.astype(float)))[::-1]
            total, sums = size.sum(), np.cumsum(size)
            for bound in (*(total * np.array([0.001, 0.1, 0.5, 0.99, 1.0, 1.5])), size[0], 2.0):
                if bound == 0:
                    continue
                roots = (sums - bound) / np.arange(1, p + 1)
                level = max(roots.max(), 0)
                for start in (0.0, level / 2, level, 2 * level, size[0], 2 * size[0], -1.0, np.inf, np.nan):
                    got = _core.l1_ball_level(a, bound, start)
                    assert abs(got - level) <= 1e-13 * size[0] * np.sqrt(p), (p, bound, start)
                kept = _core.l1_kept_level(a, bound)
                above, near = (sums > bound * (1 + slack) for slack in (1e-13, -1e-13))
                low, high = (size[np.argmax(a)] if a.any() else 0 for a in (above, near))
                assert low <= kept <= high
                assert kept in (0, *size)


# ---- statistics -------------------------------------------------------------------------------------


def table(rng, n, p, dtype, order, apart=0):
    """A matrix inside a larger one of NaN, so that what is read beyond it shows."""
    shape = (n, p + apart) if order == "C" else (n + apart, p)
    X = np.full(shape, np.nan, dtype, order=order)[:n, :p]
    X[:] = rng.standard_normal((n, p)) * rng.uniform(0.1, 10, p) + rng.integers(-1000, 1000, p)
    X[:, p // 2] = rng.integers(-5, 6)
    X[n // 2, 0] = -2000  # the lowest, neither first nor last
    X[n // 3, -1] = 3000
    return X


SHAPES = [
    (1, 1), (1, 5), (2, 3), (3, 3), (4, 2), (5, 7), (15, 2), (16, 2), (17, 3), (31, 33), (32, 32), (33, 31),
    (40, 257), (100, 300), (255, 3), (256, 5), (257, 4), (258, 3), (511, 2), (513, 3), (700, 600), (1030, 2),
    (2, 4400),
]  # fmt: skip


@each_order
@each_dtype
def test_statistics_and_shadow_of_dense_data(dtype, order):
    rng = np.random.default_rng(5)
    for n, p in SHAPES:
        for apart, center in ((0, True), (3, False)):
            X = table(rng, n, p, dtype, order, apart)
            exact = X.astype(np.longdouble)
            ld = -(-n // _core.SHADOW_BLOCK) * _core.SHADOW_BLOCK
            shadow = np.full((p, ld), 99, np.int8)
            plain, _ = _core.dense_statistics(X, center)
            sums, size = _core.dense_statistics(X, center, shadow)
            assert np.array_equal(plain, sums[:4])
            mean = exact.mean(axis=0)
            squares = ((exact - mean) ** 2).sum(axis=0)
            assert_allclose(sums[0], mean.astype(float), rtol=1e-14, atol=1e-12)
            assert_allclose(sums[1], squares.astype(float), rtol=1e-11, atol=1e-300)
            assert np.array_equal(sums[2], X.min(axis=0))
            assert np.array_equal(sums[3], X.max(axis=0))
            off = 2.0**-16 if dtype is np.float64 else 2.0**-12
            check_shadow(exact, sums[0] if center else 0 * sums[0], shadow, sums[4], sums[5], size, off)


def check_shadow(exact, mean, shadow, step, error, size, off=2.0**-16):
    """q are the nearest integers to (x - mean)/step, up to the float that holds the quotient."""
    n = len(exact)
    Z = exact - mean
    largest = np.abs(Z).max(axis=0)
    q = shadow[:, :n].T.astype(np.longdouble)
    assert not shadow[:, n:].any()
    constant = largest == 0
    assert_allclose(step, (largest / 127).astype(float), rtol=1e-14, atol=0)
    quotient = Z / np.where(constant, 1, step)
    assert (np.abs(quotient - q) <= 0.5 + off).all()
    missed = np.sqrt(((Z - q * step) ** 2).sum(axis=0))
    assert (missed <= error).all()
    assert (error <= missed * (1 + 2e-4) + step * np.sqrt(n) * off).all()
    norm = np.sqrt((q**2).sum(axis=0))
    assert (norm <= size).all()
    assert (size <= norm * (1 + 2.0**-19)).all()


@each_order
def test_shadow_of_columns_that_cannot_be_divided(order):
    """Of subnormal numbers, 127 over the largest overflows: then nothing is kept, and all is missed."""
    for n in (1, 20, 40, 600):
        X = np.zeros((n, 4), order=order)
        X[:, 1] = np.where(np.arange(n) % 2, 1.0, -1.0) * 1e-320
        X[:, 2] = 1e-310
        X[:, 3] = np.arange(n) % 5
        shadow = np.full((4, -(-n // 32) * 32), 99, np.int8)
        sums, size = _core.dense_statistics(X, False, shadow)
        largest = np.abs(X).max(axis=0)
        assert not shadow[:3].any()
        assert np.array_equal(sums[4, :3], np.zeros(3))
        assert not size[:3].any()
        assert_allclose(sums[5, :3], np.sqrt(n) * largest[:3], rtol=1e-12)
        check_shadow(X[:, 3:].astype(np.longdouble), 0, shadow[3:], sums[4, 3:], sums[5, 3:], size[3:])


@each_dtype
@pytest.mark.parametrize("wide", [False, True])
def test_statistics_of_compressed_data(dtype, wide):
    """spread is 0 exactly where a column is constant, whether its entries are stored or not."""
    rng = np.random.default_rng(6)
    for n, p in ((1, 1), (1, 4), (3, 2), (7, 9), (60, 25)):
        for density in (0.0, 0.3, 1.0):
            stored = rng.random((n, p)) < density
            stored[:, p // 2] = True
            X = np.where(stored, rng.choice([0, -2, 0.5, 3], (n, p)) + 1e-3 * (density > 0.5), 0).astype(
                dtype
            )
            X[:, p // 2] = 2.5
            X[:, -1] = 0.1 * stored[:, -1]
            X[:, 0] = stored[:, 0]
            exact = X.astype(np.longdouble)
            mean = exact.mean(axis=0)
            squares = ((exact - mean) ** 2).sum(axis=0).astype(float)
            for M in (sp.csr_array(stored), sp.csc_array(stored)):  # zeros are stored too
                integers = np.int64 if wide else np.int32
                arrays = X[M.tocoo().coords], M.indices.astype(integers), M.indptr.astype(integers)
                got = _core.compressed_statistics(n, p, M.format == "csr", *arrays)
                assert_allclose(got[0], mean.astype(float), rtol=1e-13, atol=1e-15)
                assert_allclose(got[1], squares, rtol=1e-11, atol=1e-28)
                constant = (X[0] == X).all(axis=0)
                assert np.array_equal(got[2] == 0, constant)
                largest = np.abs(X).max(axis=0)
                assert (got[2] >= np.where(constant, 0, largest)).all()
                assert (got[2] <= 2 * largest).all()


def test_statistics_of_what_is_read_in_more_than_one_go():
    """Every 2^22 entries it is asked whether to stop."""
    X = np.zeros((4200, 1100), np.float32)  # pages that are not written are shared
    X[-1, -1], X[0, 1] = 4200, 8400
    for A in (X, X.reshape(1100, 4200).T):
        j = np.nonzero(A)[1]
        mean, square, low, high = _core.dense_statistics(A, True)[0]
        assert not low.any()
        assert np.array_equal(np.flatnonzero(high), np.sort(j))
        assert np.array_equal(np.flatnonzero(mean), np.sort(j))
        assert np.array_equal(np.flatnonzero(square), np.sort(j))
    n, p = 1 << 16, 70
    ones, indptr = np.ones(n * p, np.float32), np.arange(0, n * p + 1, p, dtype=np.int32)
    index = np.tile(np.arange(p, dtype=np.int32), n)
    for got in (
        _core.compressed_statistics(n, p, True, ones, index, indptr),
        _core.compressed_statistics(p, n, False, ones, index, indptr),
    ):
        assert (got[0] == 1).all()
        assert not got[1:].any()


@pytest.mark.share(4)
@each_order
@each_dtype
def test_statistics_of_symmetry(dtype, order):
    rng = np.random.default_rng(7)
    for p in (1, 2, 5, 255, 256, 257, 600):
        for _ in range(4):
            A = np.full((p + 2, p + 2), 1e9, dtype, order=order)[:p, :p]
            B = rng.standard_normal((p, 3))
            A[:] = B @ B.T + np.diag(rng.random(p) - 0.2)
            A[:] = np.triu(A) + np.triu(A, 1).T
            i, j = rng.integers(p, size=2)
            A[i, j] += rng.choice([-4, 4])
            root = np.sqrt(np.maximum(A.diagonal().astype(float), 0))
            largest = np.maximum(np.abs(A), np.abs(A.T)).astype(float)
            expected = (
                largest.max(),
                np.abs(A.astype(float) - A.T.astype(float)).max(),
                max((largest - np.outer(root, root)).max(), 0),
            )
            assert_allclose(_core.symmetry(A), expected, rtol=1e-12, atol=1e-15)
            few = np.where(rng.random((p, p)) < 0.2, A, 0).astype(dtype)
            few += np.triu(few, 1).T * (rng.random((p, p)) < 0.9)
            for form, integers in ((sp.csr_array, np.int32), (sp.csc_array, np.int64)):
                M = form(few)
                arrays = M.data, M.indices.astype(integers), M.indptr.astype(integers)
                assert _core.compressed_symmetry(*arrays) == _core.symmetry(few)
                assert _core.line_order(p, M.nnz, *arrays[:0:-1]) == 2
                falls = M.nnz > 0 and (np.diff(M.indptr) > 1).any()
                assert _core.line_order(p, M.nnz, arrays[2], arrays[1][::-1].copy()) in (1, 2 - falls)
            for value in (np.nan, np.inf, -np.inf):
                A[i, j] = value
                assert np.isnan(_core.symmetry(A)[0])
                assert np.isnan(_core.symmetry(sp.csr_array(A))[0])


# ---- small matrices and matrices in memory ----------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 4, 7, 20, 33, 64])
def test_eigenpairs_of_small_matrices(k):
    """Against LAPACK: distinct eigenvalues, many equal ones, none but zero, and sizes near both ends."""
    rng = np.random.default_rng(k)
    X = rng.standard_normal((k, k))
    block = np.kron(np.eye(k // 2 + 1), np.ones((2, 2)))[:k, :k]
    for A in (X + X.T, X @ X.T, np.ones((k, k)), np.diag(X[0]), block, np.zeros((k, k))):
        for size in (1.0, 2.0**-1060, 1e-200, 1e200):
            values, vectors = _core.small_eigen(size * A)
            near = 2e-16 * k * size * max(np.linalg.norm(A), 1) + 1e-323 * k
            assert_allclose(values, np.linalg.eigvalsh(size * A)[::-1], rtol=0, atol=near)
            assert_allclose(vectors @ vectors.T, np.eye(k), atol=1e-14)
            if size == 1:
                assert_allclose((vectors.T * values) @ vectors, A, atol=4 * near)
    with pytest.raises(np.linalg.LinAlgError):
        _core.small_eigen(np.full((k, k), np.nan))


@each_dtype
def test_more_nonzeros_than_variables_are_refused(dtype):
    x = np.ones(5, dtype)
    for call in (
        lambda: _core.select_largest(x, 6),
        lambda: _core.dense(np.eye(5, dtype=dtype), True).truncated_power(np.arange(5), x, 6, 9, 1e-8),
        lambda: _core.dense(np.eye(5, dtype=dtype), True).truncated_power(np.arange(5), x, 0, 9, 1e-8),
    ):
        with pytest.raises(ValueError, match=r"[06] nonzeros of 5 variables"):
            call()


def test_arguments_stay_and_sums_of_nothing_are_zero():
    A, start, none = np.diag(np.arange(6.0)), np.full(6, 6**-0.5), np.zeros(0, np.intp)
    op = _core.dense(A, True)
    for call in (
        lambda A, _: _core.small_eigen(A),
        lambda _, start: op.scotlass(start, np.zeros((6, 0), order="F"), 1.5, 9, 1e-9),
    ):
        given = A.copy(), start.copy()
        call(*given)
        assert_array_equal(given[0], A)
        assert_array_equal(given[1], start)
    scores, sums = np.full((6, 2), np.nan), np.ones(2, np.uint64)
    _core.scores(A, none, none.astype(float), np.zeros((0, 2)), scores)
    _core.fingerprint(np.zeros((0, 2), np.uint64), none.astype(np.uint64), sums)
    assert not scores.any()
    assert not sums.any()
    with pytest.raises(ValueError, match=r"out has the shape \(3, 6\), not \(2, 6\)"):
        op.columns(np.arange(2), np.empty((3, 6)))


def test_a_start_without_an_image_ends_no_other():
    A = np.diag([0.0, 1.0, 2.0])
    for order in ([0, 1, 2], [2, 1, 0]):
        starts = np.array(order)[:, None], np.ones((3, 1))
        _, _, objective, _, _ = _core.truncated_power_of_matrix(A, *starts, 1, 9, 1e-9)
        assert objective[order].tolist() == [-np.inf, 1, 2]
        with pytest.raises(ValueError, match="not finite"):
            _core.truncated_power_of_matrix(np.full((3, 3), np.inf), *starts, 2, 9, 1e-9)


@pytest.mark.share(6)
@pytest.mark.parametrize("k", [1, 2, 5, 12, 30])
@each_dtype
def test_truncated_power_of_a_matrix_in_memory(k, dtype):
    """The bits of products by an operator, from variables and from supports, and ends that no step leaves."""
    rng, near = np.random.default_rng(k), 40 * np.finfo(dtype).eps ** 0.5  # where rounding hides a gain
    for p, signal, shift in ((2 * k, 0.0, 0.0), (150, 0.0, 0.0), (150, 1.0, 0.0), (60, 0.5, 1.5)):
        X = rng.standard_normal((60, p))
        X[:, : p // 4] += signal * rng.standard_normal((60, 1))
        A = np.ascontiguousarray(np.cov(X.T) - shift * np.eye(p)).astype(dtype)
        op = _core.dense(A, True)
        index, value = np.arange(p)[:, None], np.ones((p, 1), dtype)
        for steps in (1, 3, 6, 200):
            found = _core.truncated_power_of_matrix(A, index, value, k, steps, 1e-8)
            for i, (S, x) in enumerate(zip(index, value, strict=True)):
                plain = op.truncated_power(S, x, k, steps, 1e-8)
                for got, want in zip(found[:4], plain[1:], strict=True):
                    assert_array_equal(got[i], want)
            index, value = found[0], found[1]
        if shift == 0:  # ended: no step leads elsewhere
            for S, x in zip(index, value.astype(float), strict=True):
                y = A[:, S].astype(float) @ x
                assert np.abs(y[S]).min() >= np.abs(np.delete(y, S)).max(initial=0) * (1 - near)
                assert_allclose(y[S] / np.linalg.norm(y[S]), x, atol=0.05)


def test_truncated_power_of_few_variables():
    """As by an operator, where any variable may be the one that a bound keeps out, the first one too."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        p = int(rng.integers(3, 6))
        B = rng.standard_normal((p, p)) * np.exp(rng.standard_normal(p))
        A, index, value = B.T @ B, np.arange(p)[:, None], np.ones((p, 1))
        for steps in (2, 200):
            found = _core.truncated_power_of_matrix(A, index, value, 2, steps, 1e-8)
            for S, x, *got in zip(index, value, *found[:4], strict=True):
                plain = _core.dense(A, True).truncated_power(S, x, 2, steps, 1e-8)
                for ours, theirs in zip(got, plain[1:], strict=True):
                    assert_array_equal(ours, theirs)
            index, value = found[0], found[1]
