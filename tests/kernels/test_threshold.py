import math
from fractions import Fraction

import numpy as np
import pytest
import reference
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from in_turn import each_dtype
from numpy.testing import assert_allclose, assert_array_equal
from oracles import normal
from reference import check_dual

from spcacore import _core, l1_threshold, soft_threshold, truncate

DTYPES = [np.float32, np.float64]


def vectors(dtype):
    """Ties, zeros, heavy tails, near-ties and every scale."""
    tiny, huge = (-300, 300) if dtype == np.float64 else (-30, 30)
    sizes = st.integers(1, 40)
    integers = hnp.arrays(np.int8, sizes, elements=st.integers(-3, 3)).map(lambda a: a.astype(dtype))
    reals = hnp.arrays(dtype, sizes, elements=st.floats(-1, 1, width=np.dtype(dtype).itemsize * 8))
    steps = hnp.arrays(np.int8, sizes, elements=st.integers(0, 4))
    near = steps.map(lambda a: (1 + a * np.finfo(dtype).eps).astype(dtype))
    seeds = st.tuples(st.integers(0, 2**32 - 1), st.integers(1, 3000), st.sampled_from([1, 2, 3, 1000]))
    drawn = seeds.map(lambda t: np.random.default_rng(t[0]).standard_t(t[2], t[1]).astype(dtype))
    scales = st.sampled_from([0, 0, tiny, huge, tiny // 2, huge // 2])
    pairs = st.tuples(st.one_of(integers, reals, near, drawn), scales)
    return pairs.map(
        lambda t: t[0] if t[1] == 0 else (t[0] / np.abs(t[0]).max(initial=1e-30) * dtype(10.0) ** t[1])
    )


cases = st.sampled_from(DTYPES).flatmap(vectors)
shares = st.one_of(st.floats(0, 1), st.sampled_from([0.0, 1e-9, 0.5, 1 - 1e-12, 1.0]))


def bound_at(a, share):
    return 1 + share * (math.sqrt(a.size) - 1)


@given(cases, shares, st.booleans())
def test_l1_threshold_is_feasible_and_optimal(a, share, nonnegative):
    bound = bound_at(a, share)
    w, level = l1_threshold(a, bound, nonnegative=nonnegative)
    effective = np.maximum(a, 0) if nonnegative else a
    if nonnegative:
        assert (w >= 0).all()
    if not effective.any():
        assert not w.any()
        assert level == 0
        return
    check_dual(effective, bound, w, level)
    assert (w * np.sign(effective) >= 0).all()
    assert not np.signbit(w[w == 0]).any()


@each_dtype
@pytest.mark.parametrize("nonnegative", [False, True])
def test_an_l1_bound_of_one_leaves_the_largest_entry(dtype, nonnegative):
    """However its square is rounded."""
    for p in (*range(1, 40), 3000):
        a = normal(p, p).astype(dtype)
        a[p // 2] = 5 if nonnegative else -5
        expected = np.zeros(p, dtype)
        expected[p // 2] = np.sign(a[p // 2])
        for scale in (0.1, 0.3, 1, 3.7):
            w, level = l1_threshold(a * dtype(scale), 1, nonnegative=nonnegative)
            assert_allclose(w, expected, rtol=1e-6)
            assert 0 <= level < 5 * scale


def unlike_their_sample(p, rng):
    """Vectors that a few of their entries say little or the wrong thing about."""
    outlier = rng.standard_normal(p)
    outlier[p // 3] = 1e6
    place, stride = np.arange(p), (p - 1) // 4096 + 1
    unseen = place // stride % stride != place % stride  # by a sample with the jittered stride of the kernel
    far = rng.standard_normal(p)
    far[np.flatnonzero(unseen)[p // 3 : p // 3 + 1]] = 1e30
    outliers = rng.standard_normal(p)
    outliers[rng.integers(0, p, 30)] *= 1e3
    return {
        "pareto": rng.pareto(1, p) + 1,
        "any magnitude": 10 ** rng.uniform(-12, 12, p),
        "sparse": rng.standard_cauchy(p) * (rng.random(p) < 0.1),
        "very sparse": rng.standard_normal(p) * (rng.random(p) < 0.001),
        "rounded": np.round(3 * rng.laplace(size=p)),
        "two values": rng.integers(1, 3, p),
        "sorted": np.sort(rng.standard_cauchy(p)),
        "pieces": np.repeat(rng.standard_cauchy(p // 100), 100),
        "outlier": outlier,
        "far outlier": far,
        "unseen": unseen * np.linspace(1, 2, p),
        "outliers": outliers,
        "alternating": np.where(np.arange(p) % 2, 1, 1e-3) * rng.uniform(1, 2, p),
    }


@pytest.mark.share(16)
@each_dtype
@pytest.mark.parametrize("kind", unlike_their_sample(100, np.random.default_rng(0)))
def test_l1_threshold_of_vectors_unlike_their_sample(dtype, kind):
    a = unlike_their_sample(100003, np.random.default_rng(7))[kind].astype(dtype)
    magnitude = np.abs(a.astype(float))
    inactive = magnitude.sum() / np.linalg.norm(magnitude)
    for bound in (1.01, 4.0, 20.0, *(1 + share * (inactive - 1) for share in (0.3, 0.9, 0.999))):
        check_dual(a, bound, *l1_threshold(a, bound))
    w, level = l1_threshold(a, inactive * 1.001)
    assert level == 0
    half, long = (float(np.finfo(t).eps) / 2 for t in (dtype, np.float64))
    # Squares are added 128 at a time in the precision of a, these sums in double; a root halves the error.
    rounding = (128 * half + a.size / 128 * long) / 2 + 4 * half
    assert_allclose(w, a / reference.norm(a), rtol=rounding)


@pytest.mark.share(4)
@each_dtype
@pytest.mark.parametrize("common", [0.0, 1.0, "tiny"])
@pytest.mark.parametrize("rare", ["tiny", "huge"])
def test_l1_threshold_of_a_range_few_entries_have(dtype, common, rare):
    """A few entries far smaller or larger than all others, wherever they are."""
    sizes = {"tiny": 1e-300, "huge": 1e300} if dtype == np.float64 else {"tiny": 1e-38, "huge": 1e38}
    rng = np.random.default_rng(3)
    for _ in range(5):
        a = np.full(70001, sizes.get(common, common), dtype)
        a[rng.integers(0, a.size, 3)] = np.multiply([1.0, -2.0, 3.0], sizes[rare], dtype=dtype)
        for bound in (1.2, 1.6, 3.0, 100.0):
            check_dual(a, bound, *l1_threshold(a, bound))


@each_dtype
@pytest.mark.parametrize("p", [3, 255, 20001])
def test_l1_kernel_may_ignore_what_is_not_positive(dtype, p):
    a = normal(p, p).astype(dtype)
    a[0] = -1
    out, expected = np.empty_like(a), np.empty_like(a)
    level = _core.l1_threshold(np.maximum(a, 0), 1.2, 0, expected)
    a[a < 0] = np.resize([np.nan, -np.inf], np.count_nonzero(a < 0))
    assert _core.l1_threshold(a, 1.2, 1, out) == pytest.approx(level, rel=8 * float(np.finfo(dtype).eps))
    assert_allclose(out, expected, atol=8 * float(np.finfo(dtype).eps))
    assert _core.l1_threshold(a, 1.2, 2, out) is None


@pytest.mark.share(3)
@each_dtype
@pytest.mark.parametrize(("m", "rest"), [(2, 0), (3, 4), (7, 20), (400, 5000)])
def test_l1_threshold_ties(dtype, m, rest):
    rng = np.random.default_rng(m)
    a = np.concatenate([np.full(m, 2.0), rng.uniform(-1, 1, rest)]) * rng.choice([-1, 1], m + rest)
    a = rng.permutation(a).astype(dtype)
    tied = np.flatnonzero(np.abs(a) == 2)
    for bound in (1.0, 1 + 0.3 * (math.sqrt(m) - 1), math.sqrt(m) * (1 - 1e-6)):
        w, level = l1_threshold(a, bound)
        check_dual(a, bound, w, level)
        assert level == 2
        assert not np.delete(w, tied).any()
        magnitude = np.abs(w[tied])
        assert magnitude[0] == magnitude.max()
        assert (magnitude[1:] == magnitude[1]).all()
        assert np.linalg.norm(w.astype(float)) == pytest.approx(
            1, abs=4 * float(np.finfo(dtype).eps) * math.sqrt(m)
        )


def test_l1_threshold_near_ties_keep_their_digits():
    ulp = 2.0**-52
    for scale in (1.0, 2.0**900, 2.0**-1000):
        a = (1 + np.array([0, 1, 2, 5]) * ulp) * scale
        w, _ = l1_threshold(a, 1.3)
        expected, _ = l1_threshold(np.array([0.0, 1.0, 2.0, 5.0]), 1.3)
        assert_allclose(w, expected, rtol=1e-13, atol=1e-15)


@each_dtype
def test_l1_threshold_of_denormals(dtype):
    a = np.array([1, 2, 5, 9, 0], dtype)
    expected, level = l1_threshold(a, 1.3)
    tiny = np.finfo(dtype).smallest_subnormal
    w, tiny_level = l1_threshold(a * tiny, 1.3)
    assert_allclose(w, expected, rtol=8 * float(np.finfo(dtype).eps))
    assert tiny_level == pytest.approx(level * float(tiny), abs=1e-323)


@given(cases, st.floats(0, 2))
def test_soft_threshold_is_its_formula(a, share):
    level = float(a.dtype.type(share * min(np.abs(a).max().astype(float), 1e300)))
    out = soft_threshold(a, level)
    assert out.dtype == a.dtype
    assert_array_equal(out, reference.soft_threshold(a, a.dtype.type(level)))
    assert not np.signbit(out[out == 0]).any()


def test_soft_threshold_level_beyond_the_dtype():
    assert not soft_threshold(np.array([1, -3e38], np.float32), 1e300).any()


TOOLS = {
    "truncate": lambda a, **k: truncate(a, 2, **k),
    "soft_threshold": lambda a, **k: soft_threshold(a, 0.5, **k),
    "l1_threshold": lambda a, **k: l1_threshold(a, 1.2, **k)[0],
    "l1_threshold nonnegative": lambda a, **k: l1_threshold(a, 1.2, nonnegative=True, **k)[0],
}


@pytest.fixture(params=TOOLS)
def tool(request):
    return TOOLS[request.param]


@each_dtype
def test_overwrite_is_the_only_way_to_change_the_input(tool, dtype):
    a = normal(0, 5000).astype(dtype)
    before = a.tobytes()
    out = tool(a)
    assert a.tobytes() == before
    assert not np.shares_memory(a, out)
    assert tool(a, overwrite=True) is a
    assert_array_equal(a, out)


@pytest.mark.share(4)
@each_dtype
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("p", [3, 300, 40000])
def test_entries_that_are_not_finite(tool, dtype, value, p):
    for position in (0, p // 2, p - 1):
        a = normal(0, p).astype(dtype)
        a[position] = value
        before = a.tobytes()
        with pytest.raises(ValueError, match=f"1 entry that is NaN or infinite, the first at {position}"):
            tool(a, overwrite=True)
        assert a.tobytes() == before


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda a: truncate(a, 5), ValueError),
        (lambda a: soft_threshold(a, -1e-300), ValueError),
        (lambda a: l1_threshold(a, 1 - 1e-15), ValueError),
        (lambda a: l1_threshold(a, 2 + 1e-14), ValueError),
    ],
)
def test_bad_parameters(call, error):
    with pytest.raises(error):
        call(np.array([1.0, 2, 3, 4]))


def test_bound_may_be_a_rounded_root():
    for p in range(1, 200):
        for dtype in DTYPES:
            a = np.ones(p, dtype)
            w, level = l1_threshold(a, np.sqrt(dtype(p)) if p > 1 else 1)
            check_dual(a, math.sqrt(p), w, level)


@pytest.mark.parametrize(
    "make",
    [
        lambda a: a.tolist(),
        lambda a: a.astype(int),
        lambda a: np.repeat(a, 2)[::2],
        lambda a: a.astype(">f8"),
        lambda a: np.lib.stride_tricks.as_strided(a, writeable=False),
    ],
)
def test_overwrite_needs_a_plain_array(tool, make):
    with pytest.raises(ValueError, match="overwrite"):
        tool(make(np.array([1.0, 2, 3])), overwrite=True)


@pytest.mark.parametrize("overwrite", [False, True])
def test_ties_at_the_smallest_bound_also_in_place(overwrite):
    for a, options, expected in (
        ([1.0, 1.0], {}, [1, 0]), ([-2.0, 1.0, 2.0], {}, [-1, 0, 0]),
        ([-1.0, 2.0, 2.0], {"nonnegative": True}, [0, 1, 0]),
    ):  # fmt: skip
        w, level = l1_threshold(np.array(a), 1.0, overwrite=overwrite, **options)
        assert_array_equal(w, expected)
        assert level == np.abs(a).max()


@pytest.mark.parametrize("size", [12, 17, 100])
def test_a_level_at_the_rounding_of_the_sum_ends(size):
    """From a start above it, where the bound is the sum of equal entries but for rounding."""
    a = np.full(size, 1 / np.sqrt(size))
    total = a.sum()
    for bound in (np.sqrt(size), *(total * (1 + k * 1e-16) for k in range(-8, 9))):
        for start in (0.0, 1e-18, 1e-17, 1e-16, 1e-3, np.inf):
            level = _core.l1_ball_level(a, float(bound), start)
            assert 0 <= level <= 1e-15


def test_a_level_among_near_ties_ends():
    """Entries within rounding of the level; the level by fractions.  Newton's steps went back and forth."""
    a = np.abs([0.80536502, 0.44441076, 0.84004068, 1.38586943, 2.41531665, 0.35567608, 0.1206199])
    for seed in range(40):
        rng = np.random.default_rng(seed)
        tie = 10.0 ** rng.uniform(-4, -1)
        x = np.append(a, tie * (1 + 2.2e-16 * rng.integers(-20, 21, 8)))
        bound = float(np.maximum(x - tie, 0).sum())
        size = sorted(map(Fraction, x), reverse=True)
        level = max((sum(size[:k]) - Fraction(bound)) / k for k in range(1, len(size) + 1))
        for start in (0.0, tie, tie / 2, 2 * tie):
            assert abs(_core.l1_ball_level(x, bound, start) - float(level)) <= 1e-15


def test_what_is_kept_where_the_bound_is_a_sum_but_for_rounding():
    """The sum of what is above the level meets the bound, which one entry more exceeds, by fractions."""
    for seed in range(200):
        rng = np.random.default_rng(seed)
        near = np.append(1 + 2.2e-16 * rng.integers(-3, 4, 4), np.full(8, 0.1))
        tenths = np.sort(rng.choice(9, 6, replace=False) + 1)[::-1] / 10
        for x, bound in (near, 4.0), (tenths, float(tenths[: rng.integers(1, 6)].sum())):
            x = rng.permutation(x)
            level = _core.l1_kept_level(x, bound)
            assert sum(map(Fraction, x[x > level])) <= bound * (1 + 2.3e-16)
            assert sum(map(Fraction, x[x >= level])) >= bound * (1 - 2.3e-16)


@pytest.mark.parametrize("apart", [1e-6, 1e-9])
def test_a_level_between_entries_that_are_close_is_exact(apart):
    """What is above the level sums to the bound, to rounding, not to the distance of the entries."""
    a = 1 + apart * np.arange(50.0)
    for count in (3, 20, 49):
        level = 1 + apart * (49.5 - count)
        bound = float(np.maximum(a - level, 0).sum())
        for start in (0.0, 1.0, level * (1 - 1e-7), level * (1 + 1e-7)):
            assert abs(_core.l1_ball_level(a, bound, start) - level) <= 1e-14
