"""Exact screening: the answers of the plain product, or of NumPy, to the last bit, from fewer columns."""

from functools import partial

import flat
import numpy as np
import pytest
from hypothesis import strategies as st
from in_turn import each_dtype, each_order, examples, of_examples
from oracles import unit_vector
from threadpoolctl import threadpool_limits

import spcacore
from spcacore import _core, sparse_pca, tpower
from spcacore.operators import screening as _screening
from spcacore.operators.deflation import DEFLATIONS
from spcacore.operators.deflation import DeflatedOperator as Deflated
from spcacore.operators.inputs import as_problem

MODES = ("both", "shadow", "references")
REAL = (np.float64, np.float32)


def stored(X, dtype, order):
    X = np.asarray(X, dtype)
    return np.ascontiguousarray(X) if order == "C" else np.asfortranarray(X)


def same(a, b):
    """Two answers of `largest` or `above`, bit for bit."""
    return np.array_equal(a[0], b[0]) and a[1].tobytes() == b[1].tobytes() and a[2:] == b[2:]


# ---- many small cases -------------------------------------------------------------------------------


def _far_blocks(rng, n, p):
    X, h, c = np.zeros((n, p)), max(1, n // 2), p // 2
    X[:h, :c] = rng.standard_normal((h, c))
    X[h:, c:] = rng.standard_normal((n - h, p - c)) * 10.0 ** rng.uniform(-35, -15)
    return X


def _one_outlier(rng, n, p):
    X = rng.standard_normal((n, p))
    X[rng.integers(n, size=p), np.arange(p)] *= 10.0 ** rng.integers(0, 8)
    return X


def _constant_and_zero(rng, n, p):
    X = rng.standard_normal((n, p))
    X[:, rng.random(p) < 0.3] = 0
    X[:, rng.random(p) < 0.3] = rng.standard_normal()
    return X


def _large_row(rng, n, p):
    """One large row, which a vector whose entries add up to zero does not see."""
    X = rng.integers(-3, 4, (n, p)).astype(float)
    X[0] = 10.0 ** rng.integers(3, 7)
    return X


DATA = {
    "normal": lambda rng, n, p: rng.standard_normal((n, p)),
    "ties": lambda rng, n, p: rng.integers(-2, 3, (n, p)).astype(float),
    "signs": lambda rng, n, p: rng.choice([-1.0, 1.0], (n, p)),
    "duplicates": lambda rng, n, p: (
        rng.standard_normal((n, p))[:, rng.integers(0, 1 + p // 3, p)] * rng.choice([-1, 1], p)
    ),
    "constant and zero columns": _constant_and_zero,
    "heavy tails": lambda rng, n, p: rng.standard_cauchy((n, p)),
    "outliers": _one_outlier,
    "large means": lambda rng, n, p: rng.standard_normal((n, p)) + 1e6 * rng.standard_normal(p),
    "scales": lambda rng, n, p: rng.standard_normal((n, p)) * 10.0 ** rng.uniform(-30, 30, p),
    "zeros": lambda rng, n, p: rng.standard_normal((n, p)) * (rng.random((n, p)) < 0.1),
    "rank 1": lambda rng, n, p: np.outer(rng.standard_normal(n), rng.standard_normal(p)),
    "rank 2": lambda rng, n, p: rng.standard_normal((n, 2)) @ rng.standard_normal((2, p)),
    "factors": lambda rng, n, p: (
        3 * rng.standard_normal((n, 5)) @ rng.standard_normal((5, p)) + rng.standard_normal((n, p))
    ),
    "far blocks": _far_blocks,
    "large row": _large_row,
    "large": lambda rng, n, p: rng.standard_normal((n, p)) * 1e36,
    "small": lambda rng, n, p: rng.standard_normal((n, p)) * 1e-34,
}


def vectors(rng, p, dtype, last):
    """The next vector to ask with: an iteration, something near the last one, or a new one."""
    kind = rng.random()
    if kind < 0.5 and last is not None:
        index, value = last[:2]
    else:
        m = 2 * int(rng.integers(1, 1 + p // 8))
        index = np.sort(rng.choice(p, m, replace=False))
        value = rng.standard_normal(m) if kind < 0.75 else np.repeat([1.0, -1.0], m // 2)
        if kind > 0.97:
            index, value = None, rng.standard_normal(p)
        elif kind > 0.9:
            index, value = index[:1], np.ones(1)
    value = value.astype(np.float64)
    if kind < 0.15:
        value += 10.0 ** rng.uniform(-8, -2) * rng.standard_normal(len(value)) * np.abs(value).max()
    largest = np.abs(value).max()
    value = value / largest if largest > 0 else np.ones(len(value))
    return index, (value / np.linalg.norm(value)).astype(dtype)


def both(X, mode, **options):
    """The plain and the screened operator."""
    return [as_problem(X, screening=m, **options).operator for m in ("none", mode)]


def compare(rng, X, mode, deflation, center, scale):
    """A chain of questions and deflations, asked of the plain and of the screened operator."""
    p = X.shape[1]
    plain, screened = (as_problem(X, center=center, scale=scale, screening=m) for m in ("none", mode))
    dtype = plain.operator.dtype.type  # of float32 far from zero, float64
    a, b = (Deflated.from_problem(q, DEFLATIONS[deflation]) for q in (plain, screened))
    noise, last = partial(plain.noise, first_order=DEFLATIONS[deflation].first_order), None
    for _ in range(10):
        index, value = vectors(rng, p, dtype, last)
        k = int(rng.integers(1, 2 + p // 8))
        last = a.operator.largest(index, value, k)
        assert same(last, b.operator.largest(index, value, k))
        positive = a.operator.largest(index, value, k, True)
        assert same(positive, b.operator.largest(index, value, k, True))
        size = np.abs(last[1])
        tau = dtype(size.min() if rng.random() < 0.5 else size.max() * rng.random())
        assert same(a.operator.above(index, value, tau), b.operator.above(index, value, tau))
        tau = dtype(rng.random() * size.max() / max(np.sqrt(abs(last[2])), 1e-30))
        assert same(a.operator.above(index, value, tau, True), b.operator.above(index, value, tau, True))
        if not last[1].any():
            last = None
        elif rng.random() < 0.2 and index is not None:
            a, b = (d.deflate(index.astype(np.intp), value, noise=noise) for d in (a, b))


def sweep(kind, seeds):
    for seed in seeds:
        rng = np.random.default_rng([seed, list(DATA).index(kind)])
        n = int(rng.choice([1, 2, 3, 7, 31, 32, 33, 64, 65]))
        p = int(rng.choice([8, 16, 17, 40, 130, 300, 1100]))
        with np.errstate(under="ignore"):
            X = stored(DATA[kind](rng, n, p), REAL[rng.integers(2)], "CF"[rng.integers(2)])
        options = (
            MODES[rng.integers(3)],
            str(rng.choice(list(DEFLATIONS))),
            rng.random() < 0.6,
            rng.random() < 0.25,
        )
        try:
            as_problem(X, center=options[2], scale=options[3])
        except ValueError:  # cannot be scaled
            continue
        with np.errstate(all="ignore"):
            compare(rng, X, *options)


@pytest.mark.share(6)
@pytest.mark.parametrize("kind", DATA)
def test_small_cases(kind):
    sweep(kind, range(examples(60)))


@of_examples(
    60,
    st.integers(1, 40), st.integers(8, 60), st.integers(0, 2**32 - 1), st.sampled_from(MODES),
    st.sampled_from(REAL), st.sampled_from("CF"), st.integers(1, 3),
)  # fmt: skip
def test_integers_have_the_answer_of_numpy(n, p, seed, mode, dtype, order, largest):
    """All products are exact there, so the answer is a matter of sorting, ties to the lower index."""
    rng = np.random.default_rng(seed)
    X = rng.integers(-largest, largest + 1, (n, p))
    X[0, 0] = largest  # the range of the entries, hence no rounding by it
    operator = as_problem(stored(X, dtype, order), center=False, screening=mode).operator
    range_ = as_problem(stored(X, dtype, order), center=False).affine.range
    k = int(rng.integers(1, 1 + p // 8))
    for _ in range(8):
        m = int(rng.integers(k, min(p, 2 * k) + 1))
        index = np.sort(rng.choice(p, m, replace=False))
        v = rng.integers(-2, 3, m)
        v[0] = 1
        f = X[:, index] @ v
        # divided by n - 1, which is taken back exactly only as a power of two: so n - 1 is made one
        y = X.T @ f
        order_ = np.lexsort((np.arange(p), -np.abs(y)))[:k]
        got, value, _ = operator.largest(index, v.astype(dtype), k)
        if n - 1 in (0, 1, 2, 4, 8, 16, 32):
            assert np.array_equal(got, np.sort(order_))
            assert np.array_equal(value.astype(float) * max(n - 1, 1) / range_**4, y[got].astype(float))
            level = abs(y[got]).min()
            above = operator.above(index, v.astype(dtype), dtype(level * range_**4 / max(n - 1, 1)))[0]
            assert np.array_equal(above, np.flatnonzero(np.abs(y) > level))


# ---- whole calls ------------------------------------------------------------------------------------


@each_order
def test_reads_are_the_pass_for_the_statistics_and_the_exact_columns(order):
    """Without a shadow, and without swaps, whose supports are fitted alone."""
    X = np.asarray(family("strong", 200, 900), order=order)
    read = tpower(X, 10, options=spcacore.TPower(screening="references", swaps=False)).screening
    assert read.columns > 0
    assert read.reads == pytest.approx(1 + read.columns * X[:, 0].nbytes / X.nbytes)


def family(kind, n, p):
    """Small relatives of what screening is measured on: planted components, factors, counts, noise."""
    rng = np.random.default_rng([0, n, p])
    X = rng.standard_normal((n, p))
    if kind in ("weak", "medium", "strong"):
        size = {"weak": 0.4, "medium": 0.7, "strong": 1.2}[kind]
        for block in np.array_split(rng.permutation(p)[: p // 10], 5):
            X[:, block] += size * rng.standard_normal(n)[:, None]
    elif kind == "gene":
        X = rng.standard_t(3, (n, p)) + rng.standard_normal((n, 10)) @ rng.standard_normal((10, p))
        X *= np.exp(0.5 * rng.standard_normal(p))
    elif kind == "counts":
        X = np.log1p(rng.poisson(rng.gamma(0.3, 2, p) * np.exp(0.3 * rng.standard_normal((n, 1)))))
        X[:, : p // 20] *= np.exp(rng.standard_normal((n, 1)))
    return X


def bits(result):
    return (
        result.loadings.tobytes(), result.n_iter.tolist(), result.explained_variance.tobytes(),
        result.converged.tolist(),
    )  # fmt: skip


@pytest.mark.share(8)
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    "options",
    [
        *[
            {"method": "gpower", "penalty": p, "norm": n, "relative": True}
            for n, p in (("l1", 0.4), ("l0", 0.16))
        ],
        {"method": "gpower", "penalty": 0.2, "relative": True, "deflation": "generalized"},
        {"method": "greedy", "cardinality": 12, "strategy": "gradient"},
        {"method": "pmd", "l1_bound": 6.0, "renormalize": False},
        {"method": "pmd", "l1_bound": 3.0, "n_starts": 3, "deflation": "generalized"},
        *[{"cardinality": 15, "n_starts": 2, "deflation": name} for name in ("generalized", "orthogonal")],
        {"cardinality": 15, "n_starts": 2, "nonnegative": True},
        {"cardinality": 12, "n_starts": 2, "deflation": "schur", "scale": True},
    ],
    ids=str,
)
def test_every_search(options, mode):
    X = spcacore.datasets.make_spiked(80, 1200, cardinality=12, variances=(30, 20, 10), rng=3)[0]
    if options.get("l1_bound") == 6.0:  # some 200 nonzeros, of which rows would read all columns
        X = np.asfortranarray(X)
    results = []
    for threads, screening in ((1, "none"), (1, mode), (2, mode)):
        with threadpool_limits(threads):
            results.append(flat.sparse_pca(X, 3, screening=screening, **options))
    plain, screened, again = results
    assert bits(plain) == bits(screened) == bits(again)
    assert screened.screening.mode == mode
    assert mode != "both" or screened.screening.columns < 1200 * screened.screening.questions


# ---- the bounds themselves --------------------------------------------------------------------------


def screen_of(monkeypatch, X, mode, **options):
    """The problem, and what the screen of X was made from."""
    made = {}

    def screen(n, p, row_major, dtype, shadow, step, norm, slack, widest, *rest):
        made.update(shadow=shadow, step=step, norm=norm, slack=slack, widest=widest)
        return _core.Screen(n, p, row_major, dtype, shadow, step, norm, slack, widest, *rest)

    class Core:
        SHADOW_BLOCK, screen_bounds = _core.SHADOW_BLOCK, staticmethod(_core.screen_bounds)
        Screen = staticmethod(screen)

    monkeypatch.setattr(_screening, "_core", Core)
    return as_problem(X, screening=mode, **options), made


@each_order
@each_dtype
@pytest.mark.parametrize(
    "kind", ["normal", "heavy tails", "outliers", "large means", "scales", "ties", "large"]
)
def test_bounds_of_columns_hold(monkeypatch, kind, dtype, order):
    """Against the columns as the operator sees them, with its own mean and weight, in extended precision."""
    rng = np.random.default_rng(5)
    for n, center, scale in ((2, True, False), (33, True, True), (100, False, False), (300, True, False)):
        X = stored(DATA[kind](rng, n, 90), dtype, order)
        if scale and kind == "scales":
            continue
        plain = as_problem(X, center=center, scale=scale)
        dtype = plain.operator.dtype.type  # of float32 far from zero, float64
        Z = X.astype(np.longdouble) - (0 if plain.mean is None else plain.mean.astype(np.longdouble))
        weight = 1 if plain.affine.weight is None else plain.affine.weight
        Z = Z * np.longdouble(plain.affine.range) ** 2 * weight
        size = np.sqrt((Z**2).sum(axis=0))
        index, value = unit_vector(rng, 90, 10, dtype)
        f = plain.operator.forward(index, value) * dtype(1 / (n - 1))
        norm_f = np.sqrt((f.astype(np.longdouble) ** 2).sum())
        off = np.abs(plain.operator.apply(index, value) - Z.T @ f.astype(np.longdouble)) / norm_f
        if norm_f < (2.0**-40 if dtype == np.float32 else 2.0**-100):
            off = 0 * off  # products may underflow: not screened
        _, made = screen_of(monkeypatch, X, "references", center=center, scale=scale)
        assert (size <= made["norm"] + made["slack"] / 2).all()
        assert (off <= made["slack"] / 2).all()
        _, made = screen_of(monkeypatch, X, "shadow", center=center, scale=scale)
        q = made["shadow"].T[:n].astype(np.longdouble)
        assert (np.abs(made["shadow"].astype(int)) <= 127).all()
        assert not made["shadow"][:, n:].any()
        assert made["shadow"].ctypes.data % 64 == 0
        kept = q * made["step"]
        error = np.sqrt(((Z - kept) ** 2).sum(axis=0))
        assert (error + off <= made["slack"]).all()
        assert (np.sqrt((kept**2).sum(axis=0)) <= made["norm"]).all()
        assert np.sqrt((q**2).sum(axis=0)).max() <= made["widest"]
        if kind == "normal" and n > 2:  # and they are of use
            assert (error <= 0.02 * size).all()
            assert (made["slack"] <= 1.2 * error + 1e-4 * size).all()


# ---- what small cases would meet too rarely ---------------------------------------------------------


@pytest.mark.parametrize("mode", MODES)
def test_a_shift_of_an_indefinite_matrix(mode):
    """Truncated power then asks of A + shift I, of which the bounds know nothing."""
    raised = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n, p = int(rng.choice([3, 10, 40])), int(rng.choice([64, 100, 300]))
        k = int(rng.integers(2, p // 8 + 1))
        X = rng.standard_normal((n, p))
        a, b = both(X, mode)
        index, value = unit_vector(rng, p, 2 * k, np.float64)
        amount = a.largest(index, value, 1)[2] * rng.uniform(1, 20)
        a, b = (o.deflated("hotelling", index, value, None, amount) for o in (a, b))
        for _ in range(3):
            start = unit_vector(rng, p, k, np.float64)
            plain, screened = (o.truncated_power(*start, k, 100, 1e-8) for o in (a, b))
            assert same(plain[1:], screened[1:])
            assert plain[0] == screened[0]
            raised += plain[4] > 20
    assert raised > 20


@pytest.mark.parametrize("mode", MODES)
@each_order
def test_a_shift_of_more_than_the_answer(order, mode):
    """It moves entries of v that are no guesses; and a direction may be dense."""
    rng = np.random.default_rng(3)
    p = 200
    X = stored(rng.standard_normal((30, p)), np.float64, order)
    a, b = both(X, mode)
    _, direction = unit_vector(rng, p, p, np.float64)
    a, b = (o.deflated("projection", None, direction, o.forward(None, direction), 0.0) for o in (a, b))
    for weight in (0.0, 5.0):
        c, d = (o.with_penalty(weight) for o in (a, b))
        for k in (5, 20):
            for _ in range(3):
                for question in (
                    unit_vector(rng, p, 20, np.float64),
                    (None, unit_vector(rng, p, p, np.float64)[1]),
                ):
                    assert same(c.largest(*question, k), d.largest(*question, k))


@each_order
def test_the_mean_of_a_column_leaves_the_range(order, rng):
    """Its statistics are NaN at first; sums of the other columns must not leave int32 for that."""
    n, p = 2000, 100
    sign = rng.choice([-1, 1], (n, 1))
    X = 1e303 * rng.uniform(0.9, 1, (n, 1)) * sign * np.exp(-rng.random(p))
    X += 1e301 * rng.standard_normal((n, p))
    X[:, 0] = rng.choice([-1.6e308, 1.6e308], n)
    X = stored(X, np.float64, order)
    a, b = both(X, "shadow")
    for _ in range(4):
        index = np.sort(rng.choice(np.arange(1, p), 10, replace=False))
        value = np.full(10, 10**-0.5)
        assert same(a.largest(index, value, 10), b.largest(index, value, 10))


@pytest.mark.share(3)
@pytest.mark.parametrize("mode", MODES)
@each_dtype
def test_products_that_underflow(dtype, mode):
    """Far below the largest entry, products in float32 keep few bits, and squares of norms none."""
    for seed in range(60):
        rng = np.random.default_rng(seed)
        X = np.zeros((8, 64))
        X[0, 0] = 1
        X[1:, 1:] = rng.standard_normal((7, 63)) * 2.0 ** rng.uniform(-80, -60)
        X = stored(X, dtype, "F")
        a, b = both(X, mode, center=False)
        index, value = unit_vector(rng, 63, 4, dtype)
        index = index + 1
        for _ in range(8):
            plain = a.largest(index, value, 4)
            assert same(plain, b.largest(index, value, 4))
            tau = dtype(np.abs(plain[1]).min())
            assert same(a.above(index, value, tau), b.above(index, value, tau))
            if not plain[1].any():
                break
            index, value = plain[0], plain[1] / np.abs(plain[1]).max()


@pytest.mark.parametrize("mode", MODES)
def test_an_overflow_is_reported(mode):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((5, 400)).astype(np.float32)
    X[:, 300:] *= np.float32(5e37)
    a, b = both(X, mode, scale=True)
    reported = 0
    for size in np.resize(np.array([4, 3e38], np.float32), 40):
        index, value = unit_vector(rng, 300, 4, np.float32)
        answers = []
        for operator in (a, b):
            try:
                answers.append(operator.largest(index, size * value, 4))
            except ValueError as error:
                answers.append(error)
        reported += isinstance(answers[0], ValueError)
        assert isinstance(answers[0], ValueError) == isinstance(answers[1], ValueError)
    assert reported > 5


@pytest.mark.parametrize("mode", MODES)
def test_deflations_that_cancel(mode, rng):
    """What two directions move an entry by is far larger than the entry: in float its digits are lost."""
    X = stored(family("noise", 40, 300), np.float64, "F")
    a, b = both(X, mode)
    index, value = unit_vector(rng, 300, 200, np.float64)
    for amount in (1e10, -1e10):
        a, b = (o.deflated("hotelling", index, value, None, amount) for o in (a, b))
    for _ in range(40):
        question = *unit_vector(rng, 300, 20, np.float64), 5
        assert same(a.largest(*question), b.largest(*question))


@pytest.mark.parametrize("inside", [False, True])
def test_nearly_dependent_references(inside, rng):
    """Two directions 0.01 apart: what float keeps of their products comes out a hundred times larger.

    The question is for the direction in which they differ, or for what columns nearly in their span
    have outside of it, where Cauchy-Schwarz is sharp.
    """
    p, angle = 4000, 0.01005
    X = np.zeros((3, p))
    X[0] = 1 if inside else rng.uniform(0.8, 1, p)
    X[1] = rng.uniform(0.0099, 0.0101, p) if inside else rng.uniform(0.5, 1, p)
    X[2] = 0 if inside else rng.uniform(2e-4, 2e-3, p)
    X[:, 0], X[:, 1], X[:, 2] = (1, 0, 0), (np.cos(angle), np.sin(angle), 0), (0, inside, not inside)
    X = np.asfortranarray(np.linalg.qr(rng.standard_normal((3, 3)))[0] @ X)
    one = np.ones(1)
    plain = as_problem(X, center=False).operator
    y = np.abs(plain.apply(np.array([2]), one))
    for tau in np.quantile(y, np.linspace(0.6, 0.99, 30)):
        operator = as_problem(X, center=False, screening="references").operator
        for j in (0, 1):  # level 0: everything is read, and the direction becomes a reference
            operator.above(np.array([j]), one, 0.0)
        ask = np.array([2]), one, float(tau)
        assert same(plain.above(*ask), operator.above(*ask))


def test_columns_of_c_order_are_kept_and_evicted():
    """More columns are asked for than there is room, in lists longer than the room."""
    rng = np.random.default_rng(2)
    X = family("gene", 70, 6000)
    a, b = both(X, "shadow")
    for k in (5, 300, 40, 700, 5, 300, 12, 500) * 2:
        index, value = unit_vector(rng, 6000, k, np.float64)
        assert same(a.largest(index, value, k), b.largest(index, value, k))
        assert a.forward(index, value).tobytes() == b.forward(index, value).tobytes()
        chosen = np.sort(rng.choice(6000, 50, replace=False))
        assert a.submatrix(chosen).tobytes() == b.submatrix(chosen).tobytes()


# ---- what is read -----------------------------------------------------------------------------------


@pytest.mark.share(3)
@each_order
@pytest.mark.parametrize(("mode", "most"), [("both", 2.4), ("shadow", 7.0), ("references", 15.0)])
def test_few_columns_are_read(mode, most, order):
    X = stored(family("medium", 200, 8000), np.float64, order)
    result = sparse_pca(X, 5, cardinality=40, method=spcacore.TPower(screening=mode, n_starts=1))
    told = result.screening
    assert told.questions >= result.n_iter.sum()
    assert told.reads < most < told.questions / 2
    assert told.columns < (most - 1) * 8000


# ---- the option -------------------------------------------------------------------------------------


def test_auto_goes_by_size_and_memory(monkeypatch):
    def mode(n, p, dtype=np.float64):
        made = _screening.plan(np.zeros((n, p), dtype), "auto")
        return "none" if made is None else made.mode

    assert mode(100, 5000) == mode(60, 100_000) == "none"  # in cache; few rows
    assert mode(200, 5000) == mode(1100, 4096) == mode(500, 40_000) == "both"
    assert mode(500, 40_000, np.float32) == mode(200, 100_000) == "both"
    # the shadow of a quarter of large X, next to nearly as many other bytes, would exceed two fifths of X
    assert mode(200, 100_000, np.float32) == mode(100, 100_000) == "references"
    assert mode(200, 50_000, np.float32) == "both"
    large = np.zeros((1100, 4096))
    assert _screening.plan(large, "auto").shadow.shape == (4096, 1120)
    monkeypatch.setattr(_screening, "available_memory", lambda: 2.0 * 4096 * 1120 - 1)
    assert _screening.plan(large, "auto").mode == "references"
    assert _screening.plan(large, "both").mode == "both"
    assert _screening.plan(large, "none") is None
