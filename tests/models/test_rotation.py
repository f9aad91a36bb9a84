"""Orthomax rotations against closed forms, exhaustive angles, R's stats::varimax and planted structure."""

import itertools
import signal
import warnings

import numpy as np
import pytest
from extras import skipping
from in_turn import each_dtype
from numpy.testing import assert_allclose, assert_array_equal
from oracles import normal, reference

import spcacore
from spcacore import orthomax, varimax

PRECISION = {np.float32: 1e-5, np.float64: 1e-12}


def criterion(y, gamma=1.0):
    """The definition, term by term, in extended precision."""
    square = np.asarray(y, np.longdouble) ** 2
    return float((square**2).sum() - gamma / len(square) * (square.sum(axis=0) ** 2).sum())


def level(y, gamma=1.0):
    """What rounding of the criterion is relative to."""
    return (1 + gamma) * float(((np.asarray(y, np.longdouble) ** 2).sum(axis=1) ** 2).sum())


def turned(y, angle):
    c, s = np.cos(angle), np.sin(angle)
    return y @ np.array([[c, -s], [s, c]])


def unit(y, scale=None):
    """y over its largest entry, in double, so that its fourth powers exist."""
    return np.asarray(y, np.float64) / (scale or np.abs(y).max() or 1)


def random_orthogonal(rng, r):
    return np.linalg.qr(rng.standard_normal((r, r)))[0]


def assert_same_columns(y, expected, atol):
    """Equal up to the order and the signs of the columns."""
    length = np.linalg.norm(y, axis=0)[:, None] * np.linalg.norm(expected, axis=0)
    match = np.abs(y.T @ expected / length).argmax(axis=1)
    assert sorted(match) == list(range(y.shape[1]))
    expected = expected[:, match] * np.sign((y * expected[:, match]).sum(axis=0))
    assert_allclose(y, expected, rtol=0, atol=atol)


# ---- the maximum -----------------------------------------------------------------------------------


@pytest.mark.share(4)
@each_dtype
@pytest.mark.parametrize("gamma", [0, 1, 2.5, 40])
@pytest.mark.parametrize("shape", [(1, 2), (23, 2), (40, 6), (5, 9), (3000, 4), (4999, 5)])
def test_no_rotation_of_two_columns_improves_the_result(dtype, gamma, shape):
    rng = np.random.default_rng(shape[0])
    y = (rng.standard_normal(shape) ** 3).astype(dtype)
    rotated, _ = orthomax(y, gamma)
    rotated = rotated.astype(np.float64)
    slack = {np.float32: 1e-6, np.float64: 2e-12}[dtype] * (1 + gamma)
    for a, b in itertools.combinations(range(shape[1]), 2):
        pair = rotated[:, [a, b]]
        here = criterion(pair, gamma)
        for angle in [*np.linspace(-np.pi / 4, np.pi / 4, 41), 1e-3, -1e-3, 1e-5, -1e-5]:
            assert criterion(turned(pair, angle), gamma) <= here + slack * level(pair, 0)


@pytest.mark.parametrize("normalize", [False, True])
def test_agrees_with_r_stats_varimax(normalize):
    x = reference("small40x12_X")[:, :5]
    expected = reference(f"small_stats_varimax_X15_normalize{str(normalize).upper()}_eps1e-12_loadings")
    rotated, rotation = varimax(x, normalize=normalize, tol=1e-10)
    # R stops once its linearly converging iteration gains 1e-12, some 1e-6 away from the maximum
    assert_same_columns(rotated, expected, 1e-5 * np.abs(expected).max())
    assert_allclose(rotated, x @ rotation, atol=1e-12)
    length = np.linalg.norm(x, axis=1, keepdims=True) if normalize else 1
    ours, theirs = criterion(rotated / length), criterion(expected / length)
    assert theirs * (1 - 1e-13) <= ours <= theirs * (1 + 1e-9)
    for order in "CF":
        Y = np.array(x, order=order)
        filled, same = varimax(Y, normalize=normalize, tol=1e-10, overwrite=True)
        assert filled is Y
        assert_array_equal(Y, rotated)
        assert_array_equal(same, rotation)


# ---- many rows: all pairs at once ------------------------------------------------------------------


def svd_varimax(y):
    """R from the SVD of Y'(Z^3 - Z diag(Z'Z)/p), Z = Y R, until it rises no more."""
    rotation, before = np.eye(y.shape[1]), 0.0
    for _ in range(5000):
        z = y @ rotation
        u, s, vt = np.linalg.svd(y.T @ (z**3 - z * np.square(z).mean(axis=0)))
        rotation = u @ vt
        if s.sum() <= before * (1 + 1e-15):
            break
        before = s.sum()
    return y @ rotation


def many_rows(kind, p, r, seed=0):
    rng = np.random.default_rng(seed)
    if kind == "one entry a row":
        y = 0.1 * rng.standard_normal((p, r))
        y[np.arange(p), rng.integers(r, size=p)] += rng.standard_normal(p)
    elif kind == "sparse":
        y = rng.standard_normal((p, r)) * (rng.random((p, r)) < 0.1) + 0.05 * rng.standard_normal((p, r))
    elif kind == "heavy tails":
        y = rng.standard_t(2, size=(p, r))
    elif kind == "counts":
        y = rng.exponential(size=(p, r)) * rng.exponential(size=(p, 1)) * np.linspace(1.5, 0.7, r)
    elif kind == "orthonormal":
        y = np.linalg.qr(rng.standard_t(4, size=(p, r)))[0]
    return y @ random_orthogonal(rng, r)


@pytest.mark.share(3)
@each_dtype
@pytest.mark.parametrize("shape", [(4096, 2), (6000, 7), (5000, 20)])
@pytest.mark.parametrize("kind", ["one entry a row", "sparse", "heavy tails", "counts", "orthonormal"])
def test_many_rows_reach_a_maximum_of_the_svd_iteration(dtype, shape, kind):
    y = many_rows(kind, *shape)
    rotated, rotation = varimax(y.astype(dtype), tol=1e-9 if dtype is np.float64 else 1e-6)
    assert_allclose(rotation.T.astype(float) @ rotation, np.eye(shape[1]), atol=PRECISION[dtype])
    assert_allclose(rotated, y @ rotation, rtol=0, atol=PRECISION[dtype] * np.abs(y).max())
    # the iteration started there, which only ascends, finds nothing above
    further = svd_varimax(y @ rotation.astype(float))
    slack = {np.float32: 1e-6, np.float64: 1e-12}[dtype]
    assert criterion(rotated) >= criterion(further) - slack * level(y)
    if kind in ("one entry a row", "sparse", "heavy tails"):  # one maximum that all find
        cold = svd_varimax(y)
        assert_same_columns(
            rotated.astype(float), cold, {np.float32: 1e-4, np.float64: 1e-6}[dtype] * np.abs(y).max()
        )


def test_the_largest_rows_may_mislead(rng):
    """A twentieth of the rows, a little longer than the others, has its simple structure 45 degrees away."""
    p, r = 5000, 4
    misled = np.zeros((p, r))
    misled[np.arange(p), rng.integers(r, size=p)] = rng.choice([-1, 1], p)
    large = rng.random(p) < 0.06
    misled[large] *= 1.01
    misled[large, :2] = turned(misled[large, :2], np.pi / 4)
    rotated, rotation = varimax(misled)
    assert_allclose(rotation, np.eye(r), atol=1e-3)
    assert criterion(rotated) >= criterion(misled)
    # the columns 0 and 1 start at a minimum that only a turn by 45 degrees leaves, the others far away
    away = np.hstack([turned(misled[:, :2], np.pi / 4), turned(2 * misled[:, 2:], 0.5)])
    assert_same_columns(varimax(away)[0], misled * [1, 1, 2, 2], 1e-4)


@pytest.mark.parametrize("scale", [2.0**200, 2.0**60, 1])
def test_one_row_among_many_may_outweigh_all(scale):
    """The start looks at some of so many rows, and not at this one."""
    y = np.zeros((110_000, 3)) if scale == 1 else normal(0, 110_000, 3)
    y[300] = scale * np.array([1, -2, 2])
    rotated, _ = varimax(y)
    assert_allclose(np.sort(np.abs(rotated[300])), [0, 0, 3 * scale], atol=1e-5 * scale)


@each_dtype
@pytest.mark.parametrize(
    "kind",
    ["zero", "zero columns", "rank one", "rank two", "equal columns", "equal rows", "graded", "one row"],
)
def test_degenerate_columns_of_many_rows(dtype, kind):
    rng = np.random.default_rng(4)
    p, r = 4500, 5
    y = rng.standard_normal((p, r)) ** 3
    if kind == "zero":
        y[:] = 0
    elif kind == "zero columns":
        y[:, [1, 3]] = 0
    elif kind == "rank one":
        y = y[:, :1] * rng.integers(-1, 2, r)
    elif kind == "rank two":
        y = y[:, :2] @ rng.standard_normal((2, r))
    elif kind == "equal columns":
        y[:] = y[:, :1]
    elif kind == "equal rows":
        y[:] = y[0]
    elif kind == "graded":
        y = y * 10.0 ** -np.arange(r) @ random_orthogonal(rng, r)
    elif kind == "one row":
        y[np.arange(p) != 77] = 0
    for scale in [1e-18, 1, 1e8] if dtype is np.float32 else [1e-150, 1, 1e150]:
        given = (y * scale).astype(dtype)
        rotated, rotation = varimax(given)
        assert_allclose(rotation.T.astype(float) @ rotation, np.eye(r), atol=PRECISION[dtype])
        top = np.abs(given).max() or 1
        start, end = unit(given, top), unit(rotated, top)
        assert_allclose(end, start @ rotation, rtol=0, atol=r * PRECISION[dtype])
        assert criterion(end) >= criterion(start) - 10 * r * PRECISION[dtype] * level(start)


def test_columns_far_below_the_others_are_rotated_too_in_many_rows():
    rng = np.random.default_rng(2)
    small = rng.standard_normal((4500, 3)) ** 3
    expected = criterion(varimax(small, tol=1e-10)[0])
    for exponent in (-400, -60):
        y = np.hstack([small * 2.0**exponent, rng.standard_normal((4500, 1))])
        rotated, rotation = varimax(y, tol=1e-8)
        assert_allclose(np.abs(rotation[3, 3]), 1)
        assert criterion(rotated[:, :3] / 2.0**exponent) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("y", [[[3.0]], [[0.0]], [[1.0], [2.0]], [[5.0, 0, 0]], [[0.0, 0.0]] * 3])
def test_nothing_to_rotate(y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rotated, rotation = varimax(y, max_iter=1)
    assert_array_equal(rotated, y)
    assert_array_equal(rotation, np.eye(len(y[0])))


def test_kaiser_normalization_ignores_the_lengths_of_rows():
    rng = np.random.default_rng(7)
    y = rng.standard_normal((30, 4)) ** 3
    y[[3, 8]] = 0
    length = np.linalg.norm(y, axis=1, keepdims=True)
    direction = np.divide(y, length, where=length > 0, out=np.zeros_like(y))
    _, expected = varimax(direction, tol=1e-10)
    weight = 2.0 ** rng.integers(-200, 200, (30, 1))
    rotated, rotation = varimax(y * weight, normalize=True, tol=1e-10)
    assert_allclose(rotation, expected, atol=1e-9)
    assert_array_equal(rotated[[3, 8]], 0)
    assert_allclose(rotated / weight, y @ rotation, atol=1e-12 * length.max())
    assert np.abs(rotation - varimax(y)[1]).max() > 1e-3


# ---- the interface ---------------------------------------------------------------------------------


def test_entries_whose_rotation_overflows_are_an_error():
    huge = np.finfo(np.float64).max
    with pytest.raises(ValueError, match="too large"):
        orthomax([[huge, huge], [huge, huge], [huge, 0]], 0)


def test_too_few_sweeps_warn_and_leave_a_rotation():
    y = normal(0, 30, 6)
    with pytest.warns(RuntimeWarning, match="did not converge in 1 iteration;"):
        rotated, rotation = varimax(y, max_iter=1)
    assert_allclose(rotation.T @ rotation, np.eye(6), atol=1e-12)
    assert criterion(rotated) > criterion(y)
    with pytest.warns(RuntimeWarning, match="0 iterations") as caught:
        rotated, rotation = varimax(y, max_iter=0)
    assert caught[0].filename == __file__
    assert_array_equal(rotated, y)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no interval timers here")
def test_an_interrupt_at_any_stage_ends_the_call():
    class Alarm(Exception):
        pass

    def ring(*_):
        raise Alarm

    before = signal.signal(signal.SIGALRM, ring)
    try:
        for p in (40_000, 80_000, 120_000, 160_000, 200_000):  # each is at another stage when it looks
            y = np.asfortranarray(normal(0, p, 24))
            signal.setitimer(signal.ITIMER_REAL, 0.03)
            with pytest.raises(Alarm):
                varimax(y, tol=0, max_iter=50, overwrite=True)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def eigenvectors(name, r):
    """Loadings of r principal components of a correlation matrix."""
    data = spcacore.datasets
    A = data.load_pitprops().correlation if name == "pit props" else data.load_stocks().correlation[:30, :30]
    values, vectors = np.linalg.eigh(A)
    return vectors[:, -r:] * np.sqrt(values[-r:])


def crossed(P):
    """The quartimin criterion, four times."""
    squares = P**2
    return (squares.sum(axis=1) ** 2).sum() - (squares**2).sum()


@pytest.mark.share(12)
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("method", ["promax", "oblimin"])
@pytest.mark.parametrize(
    ("name", "r"), [("pit props", 3), ("stocks", 4), pytest.param("pit props", 5, marks=pytest.mark.slow)]
)
def test_oblique_rotations(name, r, method, normalize):
    """Against factor_analyzer, whose varimax ends earlier, and whose oblimin does not normalize."""
    rotator = pytest.importorskip("factor_analyzer.rotator", reason="needs factor-analyzer")
    L = eigenvectors(name, r)
    found = getattr(spcacore, method)(L, normalize=normalize)
    rows = np.linalg.norm(L, axis=1, keepdims=True)
    own = normalize and method == "oblimin"
    theirs = rotator.Rotator(method=method, normalize=normalize, power=4, max_iter=500, tol=1e-9)
    other = theirs.fit_transform(L / rows if own else L) * (rows if own else 1)
    places = abs(other.T @ found.pattern).argmax(axis=0)
    signs = np.sign((other[:, places] * found.pattern).sum(axis=0))
    assert_allclose(other[:, places] * signs, found.pattern, atol=1e-4)
    phi = theirs.phi_[np.ix_(places, places)] * np.outer(signs, signs)
    assert_allclose(phi, found.correlations, atol=1e-4)


@pytest.mark.parametrize("method", ["promax", "oblimin"])
def test_laws_of_oblique_rotations(method, rng):
    """Whatever the factors, they say the same of the variables, and have the variance 1."""
    for p, r in ((3, 1), (6, 3), (40, 8)):
        L = rng.standard_normal((p, r)) ** 3
        found = getattr(spcacore, method)(L)
        P, C = found.pattern, found.correlations
        assert_allclose(P @ C @ P.T, L @ L.T, atol=1e-9 * (L**2).sum())
        assert_allclose(C.diagonal(), 1)
        assert_allclose(P, L @ found.rotation)
        assert_allclose(found.structure, P @ C)
        assert_allclose(found.variance.sum(), (L**2).sum())
        assert (np.diff(found.variance) <= 0).all()
        assert (P[abs(P).argmax(axis=0), range(r)] > 0).all()
    with skipping():
        assert found.to_frame().cumulative.iloc[-1] == pytest.approx(1)


@pytest.mark.parametrize("method", ["promax", "oblimin"])
@pytest.mark.parametrize("share", [1e-4, 1e-7, 1e-10])
def test_oblique_factors_of_a_faint_column(method, share):
    """They have unit variance and explain what the loadings do, to rounding (PCP' = LL')."""
    for seed in range(3):
        L = np.random.default_rng(seed).standard_normal((15, 3)) * [1, 1, share]
        found = getattr(spcacore, method)(L)
        assert_allclose(found.correlations.diagonal(), 1, rtol=1e-10)
        assert_allclose(found.pattern @ found.correlations @ found.pattern.T, L @ L.T, atol=1e-9)


def test_oblimin_finds_simple_structure_and_no_neighbor_is_better():
    rng = np.random.default_rng(1)
    simple = np.kron(np.eye(3), [[0.9], [0.8], [0.7], [0.6]])
    C = np.array([[1, 0.5, 0.3], [0.5, 1, 0.4], [0.3, 0.4, 1]])
    found = spcacore.oblimin(simple @ np.linalg.cholesky(C) @ np.linalg.qr(rng.standard_normal((3, 3)))[0])
    assert crossed(found.pattern) < 1e-12  # 0 is the least possible
    assert_allclose(np.sort(found.correlations[np.triu_indices(3, 1)]), [0.3, 0.4, 0.5], atol=1e-6)
    L = eigenvectors("stocks", 4)
    best = spcacore.oblimin(L)
    T = np.linalg.inv(best.rotation).T
    for _ in range(200):
        near = T + 1e-3 * rng.standard_normal((4, 4))
        near /= np.linalg.norm(near, axis=0)
        assert crossed(L @ np.linalg.inv(near).T) > crossed(best.pattern)


def test_dependent_columns_have_no_oblique_rotation():
    for L in (np.ones((5, 2)), np.eye(2, 3), np.zeros((3, 2))):
        for rotate in (spcacore.promax, spcacore.oblimin):
            with pytest.raises(ValueError, match="independent columns"):
                rotate(L)


def test_oblimin_that_ends_early_says_so():
    with pytest.warns(RuntimeWarning, match="did not converge in 1 step"):
        spcacore.oblimin(eigenvectors("stocks", 4), max_iter=1)
