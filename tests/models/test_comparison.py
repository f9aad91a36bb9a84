"""Given loadings and comparisons, against NumPy, SciPy, enumeration of matchings, and LAPACK."""

import re
from itertools import permutations

import flat
import numpy as np
import pytest
import scipy.sparse as sp
from extras import optional, skipping
from html_tools import Columns, balanced
from numpy.testing import assert_allclose, assert_array_equal
from oracles import covariance, spanned_variance
from scipy.sparse.linalg import aslinearoperator

import spcacore
from spcacore import compare, explained_variance, from_loadings, row_blocks
from spcacore.models.variance import VARIANCE_DEFINITIONS

pd = optional("pandas")
NINE = tuple("abcdefghi")
PROPS = spcacore.datasets.load_pitprops()
A = PROPS.correlation
RNG = np.random.default_rng(11)
X = RNG.standard_normal((60, 9)) @ RNG.standard_normal((9, 9)) + 4
SETS = {
    "data": (X, {}),
    "scaled": (X, {"scale": True}),
    "uncentered": (X, {"center": False}),
    "weighted": (X, {"sample_weight": RNG.integers(0, 4, 60).astype(float)}),
    "csr": (sp.csr_array(X), {}),
    "csc": (sp.csc_array(X), {"scale": True}),
    "blocks": (row_blocks(X, block_bytes=2048), {}),
    "float32": (X.astype(np.float32), {}),
    "covariance": (covariance(X), {"kind": "covariance"}),
    "products": (aslinearoperator(covariance(X)), {"kind": "covariance"}),
    "operator": (aslinearoperator(X - X.mean(axis=0)), {"center": False}),
}
every_input = pytest.mark.parametrize("which", SETS)


def standardized(which):
    """The rows whose products are the covariance times n - 1, as NumPy makes them."""
    options = SETS[which][1]
    weight = options.get("sample_weight")
    rows = X if weight is None else np.repeat(X, weight.astype(int), axis=0)
    rows = rows - rows.mean(axis=0) if options.get("center", True) or which == "operator" else rows
    return rows / rows.std(axis=0, ddof=1) if options.get("scale") else rows


def sparse(seed, r=3):
    rng = np.random.default_rng(seed)
    V = rng.standard_normal((9, r)) * (rng.random((9, r)) < 0.6)
    V[rng.integers(9, size=r), np.arange(r)] += 2
    return V


def tolerance(which):
    return 2e-4 if which == "float32" else 1e-8


# ---- given loadings ------------------------------------------------------------------------------------


@every_input
def test_given_loadings_are_a_result(which):
    M, options = SETS[which]
    V = sparse(1) * [3, -0.1, 1]
    result = from_loadings(V, M, **options)
    U = V / np.linalg.norm(V, axis=0)
    tol = tolerance(which)
    assert_allclose(result.loadings, U, rtol=1e-6)
    Z = standardized(which)
    S = Z.T @ Z / (len(Z) - 1)
    together = [spanned_variance(S, U[:, : t + 1]) for t in range(3)]
    assert_allclose(np.cumsum(result.explained_variance), together, rtol=tol)
    assert result.cardinality.tolist() == np.count_nonzero(V, axis=0).tolist()
    if which == "operator":
        assert result.total_variance is None
        assert result.explained_variance_ratio is None
    else:
        assert result.total_variance == pytest.approx(np.trace(S), rel=tol)
        ratio = np.diff([0, *together]) / np.trace(S)
        assert_allclose(result.explained_variance_ratio, ratio, rtol=tol)
    assert result.kind == options.get("kind", "data")
    if which in ("data", "scaled", "uncentered"):
        scale = Z.std(axis=0, ddof=1) / X.std(axis=0, ddof=1) if which == "scaled" else 1
        assert_allclose(result.transform(X), Z @ U, atol=1e-10)
        weights = np.linalg.lstsq(U, Z.T, rcond=None)[0]
        rows = (U @ weights).T / scale + (X.mean(axis=0) if which != "uncentered" else 0)
        assert_allclose(result.reconstruct(result.transform(X)), rows, atol=1e-9)
        assert_allclose(result.dense_ratio, np.linalg.eigvalsh(S)[:-4:-1] / np.trace(S), rtol=1e-10)
    assert result.n_samples == (None if options.get("kind") else np.shape(X)[0])


def test_one_loading_zero_loadings_and_signs():
    result = from_loadings(-2 * np.eye(9)[0], X)
    assert result.loadings.tolist() == (-np.eye(9)[:, :1]).tolist()
    none = from_loadings(np.zeros((9, 2)), X)
    assert none.explained_variance.tolist() == [0, 0]
    assert not none.loadings.any()


def test_indefinite_matrices_are_taken():
    """As deflations leave them."""
    result = from_loadings(np.eye(4)[:, :2], np.diag([4.0, 3, 2, -1]), kind="covariance")
    assert result.explained_variance.tolist() == [4, 3]


# ---- what a comparison measures --------------------------------------------------------------------------


@pytest.mark.share(3)
@every_input
@pytest.mark.parametrize("reference", [0, 1])
def test_measures(which, reference):
    M, options = SETS[which]
    V = [sparse(3), sparse(4, r=2), sparse(5, r=4)]
    c = compare(V, M, reference=reference, **options)
    assert c.labels == ("loadings 1", "loadings 2", "loadings 3")
    assert c.reference == reference
    U = [v / np.linalg.norm(v, axis=0) for v in V]
    Z = standardized(which)
    tol = tolerance(which)
    for i, u in enumerate(U):
        for name in VARIANCE_DEFINITIONS:
            S = Z.T @ Z / (len(Z) - 1)
            expected = explained_variance(S, u, name, kind="covariance")
            assert_allclose(c.explained_variance[name][i], expected, rtol=tol)
            if which != "operator":
                assert_allclose(c.explained_variance_ratio[name][i], expected / np.trace(S), rtol=tol)
        assert c.cardinality[i].tolist() == np.count_nonzero(u, axis=0).tolist()
        w = U[reference]
        cosine = abs(u.T @ w)
        long = cosine if len(cosine) >= cosine.shape[1] else cosine.T
        best = max(
            sum(long[t, s] for s, t in enumerate(rows))
            for rows in permutations(range(len(long)), long.shape[1])
        )
        matched = [(t, s) for t, s in enumerate(c.matched[i]) if s >= 0]
        assert len(matched) == min(cosine.shape) == len({s for _, s in matched})
        assert sum(cosine[t, s] for t, s in matched) == pytest.approx(best)
        for t, s in matched:
            turned = c.sign[i][t] * u[:, t]
            assert turned @ w[:, s] == pytest.approx(cosine[t, s])
            assert np.cos(np.radians(c.angle[i][t])) == pytest.approx(cosine[t, s])
            a, b = set(np.flatnonzero(u[:, t])), set(np.flatnonzero(w[:, s]))
            assert c.shared[i][t] == len(a & b)
            assert c.overlap[i][t] == pytest.approx(len(a & b) / len(a | b))
            scores = [Z @ turned, Z @ w[:, s]]
            if options.get("center", True):
                correlation = np.corrcoef(*scores)[0, 1]
            else:  # about 0
                correlation = scores[0] @ scores[1] / np.prod([np.linalg.norm(z) for z in scores])
            assert c.correlation[i][t] == pytest.approx(correlation, abs=tol)
        for t in set(range(u.shape[1])) - {t for t, _ in matched}:
            assert (c.matched[i][t], c.angle[i][t], c.overlap[i][t], c.correlation[i][t]) == (-1, 90, 0, 0)
        assert_allclose(c.subspace_angles[i], principal_angles(u, w), atol=1e-5)
    if which != "operator":
        S = Z.T @ Z
        assert_allclose(c.dense_ratio, np.linalg.eigvalsh(S)[:-5:-1] / np.trace(S), rtol=tol)


def principal_angles(V, W):
    """By the singular values of the product of projections, in degrees."""
    P, Q = (M @ np.linalg.pinv(M) for M in (V, W))
    cosines = np.linalg.svd(P @ Q, compute_uv=False)[: min(V.shape[1], W.shape[1])]
    return np.degrees(np.arccos(np.clip(cosines, -1, 1)))[::-1]


def test_known_angles():
    """Loadings turned by small and large angles in a plane; a small one keeps its digits."""
    for degrees in (1e-9, 1e-4, 1, 45, 89.999):
        a = np.radians(degrees)
        c = compare(
            [np.array([1.0, 0, 0]), np.array([-np.cos(a), np.sin(a), 0])], np.eye(3), kind="covariance"
        )
        assert c.angle[1][0] == pytest.approx(degrees, rel=1e-7)
        assert c.sign[1][0] == -1
        assert c.subspace_angles[1][0] == pytest.approx(degrees, rel=1e-6, abs=1e-12)
        assert c.correlation[1][0] == pytest.approx(np.cos(a))


def test_scores_without_variance_and_spans_of_nothing():
    flat = np.column_stack([X, np.ones(60)])
    c = compare([np.eye(10)[:, [9]], np.zeros((10, 2)), np.eye(10)[:, [9]]], flat)
    assert [x.tolist() for x in c.correlation] == [[0], [0, 0], [0]]
    assert c.angle[2].tolist() == [0]
    assert c.subspace_angles[1].tolist() == []
    assert c.subspace_angles[2].tolist() == [0]
    assert c.angle[1].tolist() == [90, 90]
    balanced(c._repr_html_())
    assert compare([np.zeros((10, 1))], flat).summary()


# ---- how X is taken ----------------------------------------------------------------------------------------


def test_options_are_those_of_the_results():
    options = {"cardinality": 4, "scale": True}
    results = [
        flat.sparse_pca(X, 2, **options),
        flat.sparse_pca(X, 2, method="greedy", **options),
    ]
    c = compare(results, X)
    assert c.labels == ("tpower", "greedy")
    assert_allclose(c.total_variance, 9)
    for result, values in zip(results, c.explained_variance["cumulative"], strict=True):
        assert_allclose(values, result.explained_variance, rtol=1e-10)
    plain = compare([*results, sparse(9)], X, scale=False, center=False)
    assert_allclose(plain.total_variance, np.trace(covariance(X, center=False)))
    of_covariance = [
        spcacore.sparse_pca(A, 2, cardinality=4, kind="covariance"),
        spcacore.sca(A, 2, l1_bound=4, kind="covariance"),
        spcacore.spca(A, 2, cardinality=4, kind="covariance"),
        spcacore.tpower(A, 4, kind="covariance"),
        spcacore.ppca(A, 2, kind="covariance"),
    ]
    c = compare(of_covariance, A)
    assert c.kind == "covariance"
    assert c.total_variance == pytest.approx(13)
    assert c.labels == ("tpower 1", "sca", "spca", "tpower 2", "eigendecomposition")
    assert [compare([one], A).kind for one in of_covariance] == ["covariance"] * 5
    alone = compare(of_covariance[-1:], A)
    assert_allclose(alone.explained_variance["cumulative"][0], np.linalg.eigvalsh(A)[:-3:-1])


ABOUT, UNITS = np.linspace(-1, 1, 9), np.linspace(1, 3, 9)


@pytest.mark.parametrize(
    "call",
    [
        lambda *X, **how: spcacore.sparse_pca(*X, 2, 4, **how),
        lambda *X, **how: spcacore.spca(*X, 2, 4, **how),
        lambda *X, **how: spcacore.sma(*X, 2, **how),
        lambda *X, **how: spcacore.ppca(*X, 2, **how),
        lambda *X, **how: spcacore.greedy(*X, 4, **how),
        lambda *X, **how: spcacore.greedy(*X, 4, **how).at(3),
        lambda *X, **how: spcacore.gpower(*X, 1e9, **how),
        lambda *X, **how: from_loadings(sparse(3), *X, **how),
        lambda *X, **how: spcacore.sparse_pca(Columns(X[0], NINE), 2, 4, **how),
    ],
    ids=["sparse_pca", "spca", "sma", "ppca", "greedy", "at", "nothing", "from_loadings", "named"],
)
@pytest.mark.filterwarnings("ignore:the penalty is too large")
def test_vectors_that_were_given_are_used_again(call):
    """Of other rows, too, and in the order of the columns of X, against NumPy."""
    result, Y = call(X, center=ABOUT, scale=UNITS), X[:40] + 1
    c = compare([result], Y)
    assert_allclose(c.total_variance, np.sum(((Y - ABOUT) / UNITS) ** 2) / 39)
    about = call(X, center=ABOUT, scale=True)
    Z = Y - ABOUT
    assert_allclose(compare([about], Y).total_variance, 9)
    assert_allclose(compare([about], Y, scale=False).total_variance, np.sum(Z**2) / 39)
    if result.names is not None:
        c = compare([result], Columns(Y[:, ::-1], NINE[::-1]))
        assert_allclose(c.total_variance, np.sum((Z / UNITS) ** 2) / 39)
    about_zero = call(X, center=False)
    assert_allclose(compare([about_zero], Y).total_variance, np.sum(Y**2) / 39)
    in_units = call(X, center=True, scale=UNITS)
    assert_allclose(compare([in_units], Y).total_variance, ((Y / UNITS).var(axis=0, ddof=1)).sum())


def test_vectors_of_a_covariance_and_vectors_that_differ():
    halves = spcacore.tpower(A, 4, kind="covariance", scale=np.full(13, 2.0))
    assert_allclose(compare([halves, halves], A, kind="covariance").total_variance, 13 / 4)
    given = [spcacore.tpower(X, 4, center=center) for center in (ABOUT, 2 * ABOUT, True)]
    with pytest.raises(ValueError, match="'tpower 1' has center=a vector, and 'tpower 2' center=another"):
        compare(given[:2], X)
    with pytest.raises(ValueError, match="'tpower 1' has center=a vector, and 'tpower 2' center=True"):
        compare(given[::2], X)
    assert_allclose(compare(given, X, center=ABOUT).total_variance, np.sum((X - ABOUT) ** 2) / 59)


def test_options_that_differ_must_be_said():
    scaled, plain = (spcacore.sparse_pca(X, 1, cardinality=3, scale=s) for s in (True, False))
    with pytest.raises(ValueError, match=r"say scale=.* 'a' has scale=True, and 'b' scale=False"):
        compare({"a": scaled, "b": plain}, X)
    assert compare({"a": scaled, "b": plain}, X, scale=True).total_variance == pytest.approx(9)
    centered = spcacore.sma(X, 1, center=True)
    uncentered = spcacore.sma(X, 1, center=False)
    with pytest.raises(ValueError, match="'sma 1' has center=True, and 'sma 2' center=False"):
        compare([centered, uncentered], X)
    correlated = spcacore.sparse_pca(covariance(X), 1, cardinality=3, kind="covariance")
    with pytest.raises(ValueError, match="kind='data', and 'b' kind='covariance'"):
        compare({"a": plain, "b": correlated}, X)
    assert compare({"a": plain, "b": correlated}, X, kind="data").correlation[1][0] == pytest.approx(1)


# ---- tables ------------------------------------------------------------------------------------------------


def tables(text):
    """The two tables of a summary, as rows of words."""
    return [[re.split(r"  +", line) for line in block.splitlines()] for block in text.split("\n\n")[1:3]]


def example(**options):
    results = {
        "by <tpower>": spcacore.sparse_pca(A, 3, cardinality=4, kind="covariance"),
        "sca": spcacore.sca(A, 2, l1_bound=4, kind="covariance"),
        "new\nline": np.eye(13)[:, :1],
    }
    return compare(results, Columns(A, PROPS.names), **options)


def test_summary_has_the_numbers():
    c = example()
    assert str(c) == c.summary()
    assert repr(c) == "Comparison(labels=['by <tpower>', 'sca', 'new\\nline'], reference='by <tpower>')"
    each, pairs = tables(str(c))
    titles = each[0]
    assert titles[:4] == ["result", "components", "nonzeros", "variables"]
    assert titles[4:-1] == [f"{name} %" for name in VARIANCE_DEFINITIONS]
    assert [row[0] for row in each[1:]] == ["by <tpower>", "sca", "new line", "ordinary"]
    for i in range(3):
        V = c.loadings[i]
        assert each[i + 1][1:4] == [
            str(x) for x in (V.shape[1], np.count_nonzero(V), np.count_nonzero(V.any(axis=1)))
        ]
        for name, word in zip(VARIANCE_DEFINITIONS, each[i + 1][4:], strict=False):
            assert float(word) == pytest.approx(100 * c.explained_variance[name][i].sum() / 13, rel=6e-4)
    ordinary = 100 * np.linalg.eigvalsh(A)[:-4:-1].sum() / 13
    assert [float(word) for word in each[4][4:]] == pytest.approx(
        [ordinary] * len(VARIANCE_DEFINITIONS), rel=6e-4
    )
    titles = "result component matched sign nonzeros shared overlap angle correlation variance cumulative"
    assert " ".join(pairs[0]) == titles
    index, columns = c.columns()
    rows = [[index[i], *(float(column[i]) for column in [*columns.values()][:9])] for i in range(6)]
    last = {0: 4}  # without a partner
    for row, expected in zip(pairs[1:], sorted(rows, key=lambda row: last.get(row[2], row[2])), strict=True):
        assert row[0] == expected[0].replace("\n", " ")
        assert [float(word) for word in row[1:]] == pytest.approx(expected[1:], rel=6e-4)


def test_components_without_a_partner_come_last():
    pairs = tables(example(reference="sca").summary())[1]
    assert [row[2] for row in pairs[1:]] == ["1", "1", "1", "2", "2", "0"]


def test_variances_where_the_total_is_not_known():
    M, options = SETS["operator"]
    c = compare([sparse(1)], M, **options)
    assert c.explained_variance_ratio is None
    assert c.dense_ratio is None
    each = tables(c.summary())[0]
    assert each[0][4:-1] == list(VARIANCE_DEFINITIONS)
    assert float(each[1][4]) == pytest.approx(
        c.explained_variance[VARIANCE_DEFINITIONS[0]][0].sum(), rel=6e-4
    )
    with skipping():
        assert "ratio_raw" not in c.to_frame().columns


def test_frame_of_a_comparison():
    c = example()
    with skipping():
        table = c.to_frame()
    assert isinstance(table, pd.DataFrame)
    assert list(table.index) == ["by <tpower>"] * 3 + ["sca"] * 2 + ["new\nline"]
    assert table["component"].tolist() == [1, 2, 3, 1, 2, 1]
    assert table["matched"].tolist() == [m + 1 for matched in c.matched for m in matched]
    assert table["nonzeros"].tolist() == [n for counts in c.cardinality for n in counts]
    for name in ("sign", "shared", "overlap", "angle", "correlation"):
        assert_array_equal(table[name], np.concatenate(getattr(c, name)))
    for name in VARIANCE_DEFINITIONS:
        values = np.concatenate(c.explained_variance[name])
        assert_array_equal(table[f"variance_{name}"], values)
        assert_allclose(table[f"ratio_{name}"], values / 13)
