"""What the examples in docs/examples say holds, and their pictures can be drawn."""

from functools import cache

import numpy as np
import pytest
from extras import EXAMPLES, drawn, example
from oracles import centered, data_file
from scipy.optimize import linear_sum_assignment
from scipy.stats import kurtosis

import spcacore

pytestmark = pytest.mark.slow  # `nox -s docs` runs them


@cache
def patches():
    module = example("image_patches")
    X = module.data()
    return module, X, module.analyze(X)


def test_the_measures_of_patches():
    """By pictures whose answers are known: a straight wave has one direction, a round hill all of them."""
    module = example("image_patches")
    x = np.linspace(-1, 1, 101)
    wave = np.sin(5 * (x[:, None] + 2 * x))
    hill = np.exp(-4 * (x[:, None] ** 2 + x**2))
    edge = np.zeros((101, 101))
    edge[:10] = 1
    assert module.coherence(np.stack([wave, hill])) == pytest.approx([1, 0], abs=0.01)
    assert module.half_energy(np.stack([np.ones((101, 101)), edge])) == pytest.approx([0.5, 0.05], abs=0.01)


@cache
def cells():
    module = example("marker_genes")
    X, genes = module.data(data_file("pbmc3k_counts.npz"), data_file("pbmc3k_genes.txt"))
    return module, X, genes, module.analyze(X, genes, tol=1e-3)


def test_components_have_the_markers_of_kinds_of_cells():
    module, X, genes, result = cells()
    assert X.shape == (2700, 9713)
    assert list(result.types) == list(module.MARKERS)
    assert len(set(result.types.values())) == 7
    assert np.mean(result.loadings == 0) == pytest.approx(0.97, abs=0.005)
    row = {gene: result.loadings[k] for k, gene in enumerate(genes)}
    for gene in ("CD3D", "IL7R"):
        assert abs(row[gene]).argmax() == row[gene].argmin() == result.types["B cells"]
    for kind in ("dendritic cells", "platelets"):
        has = sum(
            (X[:, [list(genes).index(marker)]] > 0).toarray().astype(int) for marker in module.MARKERS[kind]
        )
        assert 25 <= np.sum(has >= 2) <= 30
    # known markers that did not name the component, and the components that are no kind
    for kind, gene in (("CD14 monocytes", "CST3"), ("NK cells", "NKG7"), ("B cells", "TCL1A")):
        assert row[gene][result.types[kind]] > 0
    top = [set(genes[np.argsort(-y)[:8]]) for y in result.loadings.T]
    for named in (
        {"RPS12", "RPS2"},
        {"MT-CO2", "MT-ND2"},
        {"JUN", "FOS"},
        {"ACTB", "VIM"},
        {"MCM2", "STMN1"},
    ):
        assert sum(named <= genes for genes in top) == 1


@cache
def topics():
    module = example("blog_topics")
    X, terms = module.data(data_file("poliblog5k_counts.npz"), data_file("poliblog5k_terms.txt"))
    return module, X, module.analyze(X, terms)


def test_the_topics_of_blogs_are_as_written():
    module, _, found = topics()
    source = (EXAMPLES / "blog_topics.py").read_text(encoding="utf-8")
    assert module.written(found, source) == source
    assert {"mortgag", "lender", "freddi"} <= set(found.words[0])
    assert {"baghdad", "sadr", "troop"} <= set(found.words[1])


@cache
def facebook():
    module = example("graph_blocks")
    A = module.data(data_file("facebook_adjacency.npz"))
    return module, A, module.analyze(A)


def in_blocks(A, rows, columns):
    """Of the links between clustered nodes, the share in diagonal blocks, and that of random links."""
    A = A.toarray()[rows >= 0][:, columns >= 0]
    same = rows[rows >= 0][:, None] == columns[columns >= 0]
    return (A * same).sum() / A.sum(), same


def test_friends_are_in_diagonal_blocks():
    module, A, result = facebook()
    assert A.sum() / 2 == 88234
    assert np.sum(result.rows >= 0) == pytest.approx(3777, abs=5)
    assert np.all(result.rows == result.columns)  # A is symmetric
    assert len(set(result.rows)) == 11
    share, same = in_blocks(A, result.rows, result.columns)
    assert share == pytest.approx(result.inside)
    assert share == pytest.approx(0.951, abs=0.002)
    d = A.sum(axis=1)[result.rows >= 0]
    expected = d @ same @ d / d.sum() ** 2
    assert expected == pytest.approx(result.expected)
    assert expected == pytest.approx(0.133, abs=0.002)
    members = result.rows[result.row_order]
    assert np.all(np.diff(members[members >= 0]) >= 0)
    assert np.all(members[3777:] == -1)
    few = A.sum(axis=1)[result.rows < 0]
    assert np.median(few) < 0.5 * np.median(A.sum(axis=1))
    purer = module.analyze(A, sparsity=0.5)
    assert np.sum(purer.rows >= 0) == pytest.approx(1926, abs=5)
    assert purer.inside == pytest.approx(0.967, abs=0.002)


@pytest.mark.parametrize("seed", range(3))
def test_planted_blocks_of_rows_and_of_columns(seed):
    module = example("graph_blocks")
    A, rows, columns = module.planted(seed=seed)
    result = module.analyze(A, 4)
    together = [
        [
            np.sum((result.rows == k) & (rows == b)) + np.sum((result.columns == k) & (columns == b))
            for b in range(4)
        ]
        for k in range(4)
    ]
    right = np.array(together)[linear_sum_assignment(-np.array(together))].sum()
    assert right / (len(rows) + len(columns)) > 0.97
    share, _ = in_blocks(A, result.rows, result.columns)
    assert share == pytest.approx(result.inside)
    assert share > 0.97 * in_blocks(A, rows, columns)[0]  # as the planted blocks have
    assert result.expected == pytest.approx(0.25, abs=0.01)


@cache
def unmixed(seed=0):
    module = example("source_separation")
    return module, module.analyze(*module.data(seed=seed))


def test_photographs_are_found_in_their_mixtures():
    _, result = unmixed()
    assert result.correlation["sca"].min() > 0.999
    assert result.correlation["PCA"].round(2) == pytest.approx([0.76, 0.88, 0.57, 0.81], abs=0.011)
    assert result.correlation["sca of gray values"].max() < 0.81
    for photograph, found, r in zip(
        result.photographs, result.found["sca"], result.correlation["sca"], strict=True
    ):
        assert np.corrcoef(photograph.ravel(), found.ravel())[0, 1] == pytest.approx(r)
        assert kurtosis(np.diff(photograph, axis=1), axis=None) > 3 > kurtosis(photograph, axis=None)
    again = unmixed(seed=1)[1]  # other weights
    assert np.allclose(again.correlation["sca"], result.correlation["sca"], atol=1e-3)
    assert not np.allclose(again.correlation["PCA"], result.correlation["PCA"], atol=0.05)


@cache
def simulated():
    module = example("simulation")
    return module, module.analyze(20)


def test_sca_explains_more_and_changes_less_at_equal_budgets():
    module, result = simulated()
    chosen = [module.GRID.index(budget) for budget in (24, 36, 48)]
    sca, pmd = (result.variance[name][chosen] for name in ("sca", "PMD"))
    assert np.all(sca > pmd)
    assert sca.mean(axis=1) == pytest.approx([0.777, 0.823, 0.845], abs=0.006)
    assert pmd.mean(axis=1) == pytest.approx([0.617, 0.757, 0.794], abs=0.012)
    assert result.change["sca"].mean(axis=1) == pytest.approx([10, 7], abs=1)
    assert result.change["PMD"].mean(axis=1) == pytest.approx([35, 27], abs=3)
    # at as many nonzeros PMD comes closer, but not past
    gain, equal = sca - pmd, sca - result.equal
    assert np.all(equal > 0)
    assert np.all(equal.mean(axis=1) < gain.mean(axis=1))
    assert equal.mean(axis=1) == pytest.approx([0.038, 0.026, 0.014], abs=0.008)
    assert np.all(result.nonzeros["sca"][chosen] > result.nonzeros["PMD"][chosen])


def test_refined_loadings_explain_more_with_as_few_nonzeros():
    module, result = simulated()
    V = spcacore.sparse_pca(
        module.data(0), 16, cardinality=8, refine=True, method=spcacore.TPower(n_starts=1, tol=1e-3)
    ).loadings
    assert np.count_nonzero(V) == 128
    assert module.explained(module.data(0), V) == pytest.approx(0.83, abs=0.01)
    assert result.nonzeros["sca"][module.GRID.index(24), 0] > 128


@cache
def wines_and_digits():
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    module = example("plots")
    return module, module.analyze()


def shares(X, r):
    values = np.linalg.svd(centered(X), compute_uv=False) ** 2
    return values[:r] / values.sum()


def test_components_of_wines_and_of_digits():
    _, result = wines_and_digits()
    X, V = result.wines, result.components.loadings
    assert X.shape == (178, 13)
    assert X.std(axis=0, ddof=1) == pytest.approx(1)
    assert result.components.explained_variance_ratio.sum() == pytest.approx(0.49, abs=0.005)
    assert shares(X, 3).sum() == pytest.approx(0.67, abs=0.005)
    assert [{result.names[j] for j in np.flatnonzero(v)} for v in V.T] == [
        {"total_phenols", "flavanoids", "od280/od315"},
        {"alcohol", "color_intensity", "proline"},
        {"malic_acid", "alcalinity_of_ash", "hue"},
    ]
    hue = V[result.names.index("hue"), 2]
    assert hue < 0 < V[result.names.index("malic_acid"), 2]
    directions = np.linalg.svd(centered(X), full_matrices=False)[2][:2].T
    for W, right in ((V[:, :2], 0.94), (directions, 0.97)):
        scores = X @ W
        kinds = np.unique(result.cultivars)
        centers = np.array([scores[result.cultivars == kind].mean(axis=0) for kind in kinds])
        nearest = ((scores[:, None] - centers) ** 2).sum(axis=2).argmin(axis=1)
        assert np.mean(kinds[nearest] == result.cultivars) == pytest.approx(right, abs=0.005)
    assert result.pixels.cardinality.tolist() == [12] * 6
    assert result.pixels.explained_variance_ratio.sum() == pytest.approx(0.5, abs=0.005)
    assert shares(result.digits, 6).sum() == pytest.approx(0.59, abs=0.005)


def test_the_pictures_of_results():
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    module, result = wines_and_digits()
    figure = drawn(module, result)
    path = figure.axes[[ax.get_xlabel()[:11] for ax in figure.axes].index("cardinality")]
    assert "chosen: 3, 48.9 %" in [text.get_text() for text in path.get_legend().get_texts()]


def test_the_index_shows_every_example():
    index = (EXAMPLES.parent / "gallery_scripts" / "README.rst").read_text(encoding="utf-8")
    for script in EXAMPLES.glob("*.py"):
        assert f":doc:`/examples/{script.stem}`" in index
        assert script.with_suffix(".png").stat().st_size < 300_000


@cache
def estimators():
    pytest.importorskip("sklearn", reason="needs scikit-learn")
    module = example("estimators")
    curves = {"wines": module.wines(), "digits": module.digits((10,))}
    return module, curves


def simulation():
    module = example("simulation")
    return module, module.analyze(2)


@pytest.mark.parametrize("made", [patches, cells, topics, facebook, unmixed, simulation, estimators])
def test_pictures_can_be_drawn(made):
    pytest.importorskip("matplotlib", reason="needs matplotlib")
    module, *_, found = made()
    assert drawn(module, found).axes
