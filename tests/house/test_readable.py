"""Results to be read: contributions, summaries and tables in HTML, against NumPy and an HTML parser."""

import dataclasses
import re
from dataclasses import fields, replace
from functools import partial

import numpy as np
import pytest
import scipy.sparse as sp
from calls import CLEAN, LABELS, pca
from html_tools import Columns, balanced
from in_turn import each_dtype
from numpy.testing import assert_allclose, assert_array_equal
from oracles import centered, covariance, normal, optimum

import spcacore
from spcacore import _limits, choice, methods, row_blocks

NAMES = ("topdiam", "<script>alert('&1')</script>", "länge", "a\nb\x1b[31m", "e", '"f" & g', "g" * 60, "h")
RNG = np.random.default_rng(5)
X = RNG.standard_normal((50, 8)) @ RNG.standard_normal((8, 8)) + 7


RESULTS = {
    "sparse_pca": lambda: spcacore.sparse_pca(Columns(X, NAMES), 3, cardinality=[5, 3, 2], certify=True),
    "covariance": lambda: spcacore.sparse_pca(covariance(X), 3, cardinality=4, kind="covariance"),
    "spca": lambda: spcacore.spca(Columns(X, NAMES), 3, cardinality=4),
    "sca": lambda: spcacore.sca(Columns(X, NAMES), 3, l1_bound=3.5),
    "sma": lambda: spcacore.sma(X, 2, l1_bound=3.0, sample_l1_bound=8.0),
    "ppca": lambda: spcacore.ppca(Columns(X, NAMES), 2),
    "oppca": lambda: spcacore.oppca(X, 2),
    "soppca": lambda: spcacore.soppca(Columns(X, NAMES), 2, 4),
    "sparse_lda": lambda: spcacore.sparse_lda(CLEAN["data"], LABELS, cardinality=3),
    "sparse_eigen": lambda: spcacore.sparse_eigen(covariance(X), np.eye(8), 1, 3),
    "tpower": lambda: spcacore.tpower(Columns(covariance(X), NAMES), 3, kind="covariance"),
    "greedy": lambda: spcacore.greedy(X, 3),
    "branch_and_bound": lambda: spcacore.branch_and_bound(X, 3),
}
Y = X[:, :5] + RNG.standard_normal((50, 5))
MANY = RNG.standard_normal((90, 60))  # of many components
LONG = [f"{i} {'name ' * 60}" for i in range(60)]
TABLES = {  # what else functions return
    "sparse_cca": lambda: spcacore.sparse_cca(Columns(X, NAMES), Y, 2, l1_bound=1.5),
    "sparse_cca_permutation": lambda: spcacore.sparse_cca_permutation(X, Y, [1.2, 1.7], n_permutations=3),
    "sparsity_path": lambda: spcacore.sparsity_path(X, pca(2), [2, 4]),
    "select_sparsity": lambda: spcacore.select_sparsity(X, spcacore.sparse_pca, [2, 4]),
    "select_n_components": lambda: spcacore.select_n_components(X, pca(1, 4), 2),
    "gap": lambda: spcacore.sparse_kmeans_gap(X, 2, [1.5, 2], n_permutations=2),
    "sparse_kmeans": lambda: spcacore.sparse_kmeans(Columns(X, NAMES), 2, 2.0),
    "sparse_dissimilarity": lambda: spcacore.sparse_dissimilarity(X, 2.0),
    "kernel_pca": lambda: spcacore.kernel_pca(X, 2),
    "stability": lambda: spcacore.stability(Columns(X, NAMES), pca(2, 4), n_resamples=4),
    "select_prior": lambda: spcacore.select_prior(
        X, partial(spcacore.oppca, n_components=1), {"<none>": None}
    ),
    "cross_validated_eigenvalues": lambda: spcacore.cross_validated_eigenvalues(RNG.poisson(3, (30, 8)), 3),
    "optimality_bound": lambda: spcacore.optimality_bound(X, 3),
    "random_fourier_features": lambda: spcacore.random_fourier_features(3, 100, bandwidth=2.0),
    "oblimin": lambda: spcacore.oblimin(X[:, :3]),
    "compare": lambda: spcacore.compare({"<b>": np.eye(8)[:, :2], "c": np.eye(8)}, X),
}


def repeated(result):
    """With each component many times."""
    arrays = {f.name: getattr(result, f.name) for f in fields(result)}
    r = result.n_components
    return replace(
        result,
        **{
            name: np.repeat(a, 30, axis=-1)
            for name, a in arrays.items()
            if isinstance(a, np.ndarray) and a.shape[-1] == r
        },
    )


MORE = {  # also of many components, values or long names
    "pmd": lambda: spcacore.pmd(X, l1_bound=2.0, options=spcacore.PMD(renormalize=False)),
    "dspca": lambda: spcacore.dspca(covariance(X), 3, kind="covariance"),
    "from_loadings": lambda: spcacore.from_loadings(np.eye(60), Columns(MANY, LONG), label="mine"),
    "ppca, many": lambda: spcacore.ppca(MANY, 50),
    **{f"{n}, many": lambda n=n: repeated(RESULTS[n]()) for n in ("soppca", "sparse_lda", "sparse_eigen")},
    "cca, many": lambda: repeated(TABLES["sparse_cca"]()),
    "kernel_pca, many": lambda: spcacore.kernel_pca(MANY, 50),
    "path, many": lambda: spcacore.sparsity_path(MANY, pca(2, method="thresholding"), range(1, 60)),
    "kmeans, many": lambda: spcacore.sparse_kmeans(MANY, 50, 3.0, n_init=1),
    "stability, many": lambda: spcacore.stability(MANY, pca(20, 30, method="thresholding"), n_resamples=2),
    "prior, many": lambda: spcacore.PriorSelection(
        tuple(LONG), np.linspace(0, 1, 60), (RESULTS["oppca"](),) * 60
    ),
    "compare, many": lambda: spcacore.compare(dict.fromkeys(LONG, np.eye(60)[:, :5]), MANY),
}
NOT_RESULTS = {"Progress", "SelectionProgress", "RowBlocks", "Moments"}  # given to callbacks; data
each = pytest.mark.parametrize("make", RESULTS.values(), ids=RESULTS)


def loadings(result):
    V = getattr(result, "loadings", None)
    return (result.loading[:, None] if V is None else V).astype(float)


# ---- scores and rows of every result with components -------------------------------------------------


def rows_by_least_squares(result, X):
    """The best approximation of the rows of X by sums of loadings, in X's units."""
    mean = 0 if result.mean is None else result.mean
    scale = 1 if result.scale is None else result.scale
    Z = (X - mean) / scale
    weights = np.linalg.lstsq(result.loadings.astype(float), Z.T, rcond=None)[0]
    return (result.loadings @ weights).T * scale + mean


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_array])
@each_dtype
def test_scores_of_a_graph(container, dtype):
    """Rows are divided by the root of their degree plus the mean degree of the fit, also new ones."""
    G, new = RNG.poisson(1.0, (30, 12)).astype(dtype), RNG.poisson(2.0, (7, 12)).astype(dtype)
    result = spcacore.sca(container(G), 2, scale="degree", center=True, l1_bound=3.0)
    tol = 1e-12 if dtype == np.float64 else 1e-5
    d, g = G.sum(axis=1), G.sum(axis=0)
    divided, width = new / np.sqrt(new.sum(axis=1) + d.mean())[:, None], np.sqrt(g + g.mean())
    mean = (G / np.sqrt(d + d.mean())[:, None] / width).mean(axis=0)
    scores, rows = result.transform(container(new)), rows_by_least_squares(result, divided)
    assert_allclose(scores, (divided / width - mean) @ result.loadings, atol=tol)
    assert_allclose(result.reconstruct(scores), rows, atol=tol)
    with pytest.raises(ValueError, match="nonnegative"):
        result.transform(-new)


def test_rows_of_a_graph_in_blocks_are_refused():
    result = spcacore.sca(RNG.poisson(1.0, (30, 12)).astype(float), 2, scale="degree")
    with pytest.raises(TypeError, match="in memory"):
        result.transform(row_blocks(np.ones((4, 12))))


@pytest.mark.parametrize("function", [spcacore.oppca, lambda X, r: spcacore.soppca(X, r, 4)])
def test_rows_of_a_posterior_mean(function):
    """X is modeled by weights times means."""
    result = function(X, 2)
    expected = result.scores @ result.means.T + X.mean(axis=0)
    assert_allclose(result.reconstruct(result.transform(X)), expected, atol=1e-10)


def test_no_scores_where_no_component_is_chosen():
    found = replace(TABLES["select_n_components"](), result=None)
    assert found.names is None
    with pytest.raises(ValueError, match="no component was chosen"):
        found.transform(X)


def test_scores_of_both_sides_of_what_is_stable():
    """By the sums of products; rows of one side are no scores of pairs."""
    Y = X[:, :3] + np.sin(X[:, :3])
    pairs = spcacore.stability(
        X, partial(spcacore.sparse_cca, n_components=1, cardinality=(2, 2)), Y=Y, n_resamples=4
    )
    x, y = pairs.result.loadings_x, pairs.result.loadings_y
    for side, V, scores in zip((X, Y), (x, y), pairs.transform(X, Y), strict=True):
        Z = centered(side)
        assert_allclose(scores, Z / Z.std(axis=0, ddof=1) @ V, atol=1e-10)
    for found, sides in ((pairs, (X,)), (TABLES["stability"](), (X, Y))):
        with pytest.raises(TypeError, match="Y must be given, as the other side, for canonical"):
            found.transform(*sides)


# ---- contributions ------------------------------------------------------------------------------------


@each
def test_contributions(make):
    result = make()
    V = loadings(result)
    total = abs(V).sum(axis=0)
    shares = result.contributions()
    assert_allclose(shares, 100 * V / np.where(total > 0, total, 1), rtol=1e-6, atol=1e-12)
    groups = [f"g{j % 3}" for j in range(len(V))]
    for signed in (False, True):
        sums = result.group_contributions(groups, signed=signed)
        assert list(sums) == ["g0", "g1", "g2"]
        for g, name in enumerate(sums):
            members = shares[g::3] if signed else abs(shares[g::3])
            assert_allclose(sums[name], members.sum(axis=0), atol=1e-10)
    assert_allclose(sum(result.group_contributions(groups).values()), 100.0 * (total > 0))


def test_groups_by_name():
    result = RESULTS["sparse_pca"]()
    by_name = {name: len(name) > 3 for name in NAMES}
    named, listed = map(result.group_contributions, (by_name, [*by_name.values()]))
    assert list(listed) == list(named) == [True, False]
    assert_array_equal([*named.values()], [*listed.values()])
    assert list(result.group_contributions(np.arange(8) % 2)) == [0, 1]
    unnamed = RESULTS["covariance"]()
    assert list(unnamed.group_contributions({f"x{j + 1}": "one" for j in range(8)})) == ["one"]


@pytest.mark.parametrize(
    ("groups", "error", "message"),
    [
        (["a"] * 7, ValueError, "7 labels for 8 variables"),
        (["a"] * 7 + [None], ValueError, "no label for 1 variable, the first at 7"),
        (np.r_[np.zeros(6), np.nan, np.nan], ValueError, "no label for 2 variables, the first at 6"),
        (dict.fromkeys(NAMES, np.datetime64("NaT", "D")), ValueError, "no label for 8 variables"),
        ({"topdiam": 1}, ValueError, "lacks .<script>"),
        ("abcdefgh", TypeError, "sequence of labels"),
        (3, TypeError, "sequence of labels"),
        (np.zeros((8, 1)), TypeError, "sequence of labels"),
    ],
)
def test_wrong_groups(groups, error, message):
    with pytest.raises(error, match=message):
        RESULTS["sparse_pca"]().group_contributions(groups)


# ---- the summary, read back -----------------------------------------------------------------------------


def table_of(summary):
    """The table of components, by its titles."""
    lines = summary.split("\n\n")[1].splitlines()
    titles = re.split(r"  +", lines[0])
    rows = [re.split(r"  +", line) for line in lines[1:] if line[0].isdigit()]
    assert all(len(row) == len(titles) for row in rows)
    return {title: [float(row[i]) for row in rows] for i, title in enumerate(titles)}


def led_by(summary):
    """Variables and percentages of each component."""
    lines = summary.split("\n\n")[2].splitlines()[1:]
    return [re.findall(r"(\S.*?) (-?[\d.]+)(?:, |$)", line.partition(": ")[2]) for line in lines]


@pytest.mark.parametrize("name", ["sparse_pca", "covariance", "spca", "sca", "sma"])
def test_summary_has_the_numbers(name):
    result = RESULTS[name]()
    A = X.T @ X / (len(X) - 1) if name == "sma" else covariance(X)
    V = result.loadings.astype(float)
    Q = np.linalg.qr(V)[0]
    variances = np.diag(Q.T @ A @ Q)
    ordinary = np.linalg.eigvalsh(A)[::-1][: V.shape[1]]
    table = table_of(result.summary())
    assert table["component"] == list(range(1, V.shape[1] + 1))
    assert table["nonzeros"] == np.count_nonzero(V, axis=0).tolist()
    assert_allclose(table["variance"], variances, rtol=6e-4)
    assert_allclose(table["%"], 100 * variances / np.trace(A), atol=0.051)
    assert_allclose(table["cumulative %"], 100 * np.cumsum(variances) / np.trace(A), atol=0.051)
    assert_allclose(table["ordinary, cumulative %"], 100 * np.cumsum(ordinary) / np.trace(A), atol=0.051)
    assert f"{100 * variances.sum() / np.trace(A):.1f} % of the variance" in result.summary()


def test_summary_has_the_certificate():
    result = RESULTS["sparse_pca"]()
    table = table_of(result.summary())
    assert_allclose(table["upper bound"], result.upper_bound, rtol=6e-4)
    assert_allclose(table["gap %"], 100 * result.gap, rtol=0.06, atol=1e-12)
    assert "upper bound" not in RESULTS["covariance"]().summary()
    for deflation in ("projection", "generalized"):  # only of the whole matrix are bounds of the variance
        result = spcacore.sparse_pca(X, 2, 3, deflation=deflation, certify=True)
        assert ("deflated" in result.summary()) is (deflation == "projection")
        if deflation == "generalized":
            assert (result.explained_variance <= result.upper_bound * (1 + 1e-12)).all()
    proved = table_of(RESULTS["branch_and_bound"]().summary())
    assert proved["gap %"] == [0]
    assert proved["value"] == [pytest.approx(optimum(covariance(X), 3), rel=6e-4)]


def test_summary_names_the_leading_variables():
    result = RESULTS["spca"]()
    shares = result.contributions()
    for t, (*found, (rest, left)) in enumerate(led_by(result.summary(n_variables=2))):
        order = np.argsort(-abs(shares[:, t]), kind="stable")
        assert [float(x) for _, x in found] == pytest.approx(shares[order[:2], t], abs=0.051)
        assert rest == f"{np.count_nonzero(shares[:, t]) - 2} more"
        assert float(left) == pytest.approx(abs(shares[order[2:], t]).sum(), abs=0.051)
        assert [name[:3] for name, _ in found] == [" ".join(NAMES[j].split())[:3] for j in order[:2]]
    assert len(result.summary(n_variables=0).split("\n\n")) == 2
    assert list(map(len, led_by(result.summary(8)))) == np.count_nonzero(shares, axis=0).tolist()
    for value in (-1, 2.5, True):
        with pytest.raises((TypeError, ValueError), match="n_variables"):
            result.summary(value)


def test_names_in_a_summary_are_one_printable_line():
    text = spcacore.sparse_pca(Columns(X, NAMES), 2, cardinality=8).summary(8)
    assert "a b?[31m" in text
    assert "\x1b" not in text
    assert "g" * 60 not in text
    assert all(line.isprintable() for line in text.splitlines())


def test_a_summary_says_what_did_not_converge():
    with pytest.warns(RuntimeWarning, match="not converged"):
        result = spcacore.sca(X, 2, l1_bound=2.0, max_iter=1)
    assert "\nnot converged" in result.summary()
    assert "not converged" in result._repr_html_()
    result = dataclasses.replace(RESULTS["sparse_pca"](), converged=np.array([True, False]))
    assert "not converged: component 2\n" in result.summary()


def test_no_component_and_no_variable():
    with pytest.warns(RuntimeWarning):
        none = spcacore.sparse_pca(np.ones((5, 4)), 1, cardinality=2)
    assert none.n_components == 0
    assert none.summary().startswith("SparsePCAResult by tpower: 0 components of 4 variables")
    assert balanced(none._repr_html_()).tables == 1
    assert none.contributions().shape == (4, 0)
    result = replace(RESULTS["sca"](), loadings=np.eye(8)[:, :3] * [1, 0, 1])
    assert "\n2: no variable\n" in result.summary()
    balanced(result._repr_html_())


ALL = {**RESULTS, **TABLES, **MORE}


def test_every_class_of_results_is_tried():
    classes = {n for n in spcacore.__all__ if isinstance(getattr(spcacore, n), type)} - NOT_RESULTS
    classes -= {*methods.__all__, *choice.__all__}  # records of what is asked
    assert classes == {type(make()).__name__ for name, make in ALL.items() if not name.endswith("many")}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("make", ALL.values(), ids=ALL)
def test_every_result_is_a_line_a_summary_a_page_and_a_frame(make):
    """Whatever the number of components, values and letters."""
    result = make()
    line, text, name = repr(result), result.summary(), type(result).__name__
    assert line.startswith(f"{name}(")
    assert len(line) < 500
    assert "array(" not in line
    assert "\n" not in line
    assert "\x1b" not in text
    assert len(text) < 30_000
    assert len(text.splitlines()) < 150
    page = balanced(result._repr_html_())
    assert "<script" not in result._repr_html_()
    assert len(result._repr_html_()) < 200_000
    assert page.tables >= (0 if name == "RandomFeatures" else 1)
    if name == "RandomFeatures":
        return
    pytest.importorskip("pandas")
    frames = result.to_frame()
    for frame in frames if isinstance(frames, tuple) else (frames,):
        assert frame.index.name
        assert frame.shape[1]


@pytest.mark.parametrize("name", TABLES)
def test_a_table_is_that_of_the_frame(name):
    """Each number of the frame stands in the summary, in its row, to four digits."""
    pytest.importorskip("pandas")
    result = TABLES[name]()
    if name in ("sparse_cca", "random_fourier_features", "compare"):
        return
    frame = result.to_frame()
    _, *rows = [line.split() for line in result.summary().split("\n\n")[-1].splitlines()]
    if name.startswith("sparse_") and "weight" in frame:
        frame = frame[frame["weight"] > 0].sort_values("weight", ascending=False)
    assert len(rows) == len(frame)
    percents = {"explained_variance_ratio", "frequency"}
    for row, (_, values) in zip(rows, frame.iterrows(), strict=True):
        expected = [
            100 * v if column in percents else v
            for column, v in values.items()
            if isinstance(v, (int, float, np.number)) and not isinstance(v, (bool, np.bool_))
        ]
        marked = [v for v in values if isinstance(v, (bool, np.bool_))]
        found = [word for word in row if word != "yes"][-len(expected) :]
        assert_allclose([float(x) for x in found], expected, rtol=6e-4, atol=0.051)
        assert ("yes" in row) == any(marked)


# ---- HTML ---------------------------------------------------------------------------------------------


def test_html_has_the_loadings_and_their_bars():
    result = RESULTS["sparse_pca"]()
    page = balanced(result._repr_html_())
    header = next(i for i, row in enumerate(page.rows) if row[0] == "variable")
    assert page.rows[header] == ["variable", "1", "2", "3"]
    rows = page.rows[header + 1 :]
    V = result.loadings
    assert len(rows) == np.count_nonzero(V.any(axis=1))
    shown = np.array([[float(cell or 0) for cell in row[1:]] for row in rows])
    selected = V[V.any(axis=1)]
    assert_allclose(np.sort(shown, axis=0), np.sort(selected, axis=0), rtol=6e-4)
    first = abs(V[:, 0]).argmax()
    assert shown[0, 0] == pytest.approx(V[first, 0], rel=6e-4)
    bars = [s for s in page.styles if s.get("class") in ("above", "below")]
    assert len(bars) == np.count_nonzero(V)
    sizes = abs(V).max(axis=0)
    expected = sorted((100 * abs(V) / sizes)[V != 0])
    widths = sorted(float(re.search(r"--size:([\d.]+)%", s["style"])[1]) for s in bars)
    assert_allclose(widths, expected, atol=0.051)
    assert sum(s["class"] == "below" for s in bars) == np.count_nonzero(V < 0)


def test_rows_are_led_by_the_components_in_turn():
    """The most important first within each; a variable of two stands with the one that it leads more."""
    V = np.zeros((9, 2))
    V[[4, 1, 7, 2], 0] = 0.9, -0.3, 0.25, 0.1
    V[[0, 8, 3, 2], 1] = -0.5, 0.6, 0.45, 0.55
    page = balanced(
        replace(
            RESULTS["sca"](),
            loadings=V[:, [0, 1]],
            names=None,
            explained_variance_ratio=np.full(2, 0.1),
            explained_variance=np.full(2, 0.1),
            cardinality=np.full(2, 4),
            dense_ratio=None,
        )._repr_html_()
    )
    header = next(i for i, row in enumerate(page.rows) if row[0] == "variable")
    order = [4, 1, 7, 8, 2, 0, 3]
    assert [row[0] for row in page.rows[header + 1 :]] == [f"x{j + 1}" for j in order]


def test_html_has_shares_beside_the_ordinary_ones():
    result = RESULTS["covariance"]()
    widths = re.findall(r'<i( class="dense")? style="width:([\d.]+)%">', result._repr_html_())
    A = covariance(X)
    ordinary = np.linalg.eigvalsh(A)[::-1][:3] / np.trace(A)
    largest = max(ordinary.max(), result.explained_variance_ratio.max())
    sparse = [float(w) for dense, w in widths if not dense]
    dense = [float(w) for dense, w in widths if dense]
    assert_allclose(sparse, 100 * result.explained_variance_ratio / largest, atol=0.051)
    assert_allclose(dense, 100 * ordinary / largest, atol=0.051)
    page = balanced(RESULTS["sparse_pca"]()._repr_html_())
    assert {"upper bound", "gap %"} <= set(page.rows[0])


@pytest.mark.parametrize(("p", "r"), [(100_000, 3), (300, 40)])
def test_html_is_bounded(p, r):
    V = normal(1, p, r)
    V[::7] = 0
    V /= np.linalg.norm(V, axis=0)
    result = spcacore.SparseEigenResult(
        loadings=V, cardinality=np.full(r, p), upper_bound=None, method="greedy", deflation="projection",
        **dict.fromkeys(("values", "deflated_values", "metric_norm", "n_iter", "converged"), np.ones(r, int)),
    )  # fmt: skip
    html = result._repr_html_()
    page = balanced(html)
    assert len(html) < 200_000
    header = next(i for i, row in enumerate(page.rows) if row[0] == "variable")
    rows = page.rows[header + 1 :]
    assert len(rows) == _limits.READ_VARIABLES
    shown = min(r, _limits.READ_COMPONENTS)
    left = np.count_nonzero(V[:, :shown].any(axis=1)) - len(rows)
    assert page.paragraphs[-1] == f"and {left} more variables with nonzero loadings"
    names = [int(row[0][1:]) - 1 for row in rows]
    for t in range(shown):  # each component has its most important ones, in their order
        order = np.argsort(-abs(V[:, t]), kind="stable")[: len(rows) // r]
        place = [names.index(j) for j in order]
        assert place == sorted(place)
    if r > shown:
        assert f"and {r - shown} more components" in page.paragraphs
        assert f"and {r - shown} more components" in result.summary()
        assert len(table_of(result.summary())["component"]) == shown
