"""One X has one answer, whatever holds it: the same supports by default, of weak signals and of words too."""

import flat
import numpy as np
import pytest
import scipy.sparse as sp
from in_turn import each_dtype, examples, scaled_or_not
from numpy.testing import assert_allclose
from oracles import data_file, normal
from row_block_tools import bytes_of, dask_array

import spcacore

HELD = {
    "csr": sp.csr_array,
    "csc": sp.csc_array,
    "F": np.asfortranarray,
    "blocks": lambda X: spcacore.row_blocks(X, block_bytes=X.nbytes // 5),
    "matrices": lambda X: [X[: len(X) // 3], X[len(X) // 3 :]],
}
SHAPES = {  # rows, variables, cardinality: of noise, of which many supports are nearly as good as the best
    "tall": (2000, 300, 20),
    "many variables": (800, 500, 20),
    "small": (600, 80, 5),
    "tiny": (100, 30, 4),
    "wide": (40, 400, 20),
    "few rows": (12, 310, 5),
    "at once": (60, 1000, 12),
}


def answers(X, cardinality, **options):
    covariance = np.cov(X.T.astype(np.float64)).astype(X.dtype)
    if options.get("scale"):
        covariance /= np.sqrt(np.outer(covariance.diagonal(), covariance.diagonal()))
    yield "covariance", spcacore.sparse_pca(covariance, 5, cardinality=cardinality, kind="covariance")
    for name, hold in HELD.items():
        yield (name, flat.sparse_pca(hold(X), 5, cardinality=cardinality, **options))


TIED = {  # of standardized variables each pair has entries of one magnitude, to rounding
    "components": lambda X: spcacore.sparse_pca(X, 3, cardinality=2, scale=True).loadings,
    "path": lambda X: spcacore.greedy(X, 3, scale=True).path_loading[1:3, None],
    "elastic net": lambda X: spcacore.spca(X, 1, cardinality=2, scale=True).loadings,
    "probabilistic": lambda X: spcacore.ppca(X[:, :2], 1, scale=True).loadings,
}


@pytest.mark.share(3)
@pytest.mark.parametrize("name", TIED)
def test_sign_of_entries_that_tie(name):
    """The first of them is positive, and as large as any, whatever rounding says."""
    for seed in range(examples(60)):
        X = normal(seed, 12, 7)
        for hold in (np.asarray, sp.csc_array, np.asfortranarray):
            for v in TIED[name](hold(X)).T:
                tied = abs(v) > (1 - 1e-9) * abs(v).max()
                assert v[tied.argmax()] == abs(v).max(), seed


@pytest.mark.share(12)
@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 10))])
@each_dtype
@pytest.mark.parametrize("shape", SHAPES)
def test_noise(shape, dtype, seed):
    n, p, cardinality = SHAPES[shape]
    X = normal(seed, n, p).astype(dtype)
    expected = spcacore.sparse_pca(X, 5, cardinality=cardinality)
    for name, found in answers(X, cardinality):
        assert np.array_equal(found.loadings != 0, expected.loadings != 0), name
        assert_allclose(
            found.explained_variance, expected.explained_variance, rtol=1e-10 if dtype == np.float64 else 1e-4
        )


@pytest.mark.parametrize("seed", [0, *(pytest.param(i, marks=pytest.mark.slow) for i in range(1, 10))])
@pytest.mark.parametrize(("n", "p"), [(300, 3200), pytest.param(150, 8400, marks=pytest.mark.slow)])
def test_weak_components_of_blocks_that_become_no_matrix(n, p, rng):
    """Two factors, and two components of noise: the search in passes ends where that in memory does."""
    X = rng.standard_normal((n, p))
    for a, size in enumerate((1.2, 0.8)):
        X[:, 10 * a : 10 * a + 10] += size * rng.standard_normal((n, 1))
    blocks = spcacore.row_blocks(X, block_bytes=X.nbytes // 3)
    expected, found = (spcacore.sparse_pca(Y, 4, 10) for Y in (X, blocks))
    assert np.array_equal(found.loadings != 0, expected.loadings != 0)
    assert_allclose(found.explained_variance, expected.explained_variance, rtol=1e-10)
    assert blocks.passes <= 24


@pytest.mark.parametrize("seed", [4, 7])
def test_variances_that_tie(seed):
    """Of standardized data, whose variances are equal to rounding, which no storage shares with another."""
    X = normal(seed, 60, 200)
    X[:, 1:] += 0.8 * X[:, :-1]
    X /= X.std(axis=0)
    signs = spcacore.Choice(signs=np.where(np.arange(200) % 2, 1, -1))
    three = spcacore.GPower(0.3, relative=True, n_starts=3)
    for options in ({"cardinality": 6, "choice": signs}, {"method": three}):
        expected = spcacore.sparse_pca(X, 2, **options).loadings
        for held in (
            np.asfortranarray(X),
            sp.csr_array(X),
            spcacore.row_blocks(X, block_bytes=X.nbytes // 4),
        ):
            assert np.array_equal(spcacore.sparse_pca(held, 2, **options).loadings != 0, expected != 0)


SINGLE = {
    "tpower": {},
    "branch_and_bound": {"method": "branch_and_bound"},
    "disjoint": {"support": "disjoint"},
    "total": {"cardinality": spcacore.Total(2)},
}


@pytest.mark.parametrize("name", SINGLE)
def test_single_variables_of_variances_that_tie(name):
    """One after another, as all are as good, whichever of them rounding makes larger."""
    for seed in (11, 24, 38):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((40, rng.integers(2, 9)))
        weight = rng.integers(1, 4, 40) * 1.0
        for hold in (np.asarray, sp.csc_array, lambda X: spcacore.row_blocks(X, block_bytes=2000)):
            options = {"cardinality": 1, "scale": True, "sample_weight": weight} | SINGLE[name]
            found = spcacore.sparse_pca(hold(X), 2, **options)
            assert np.array_equal(found.loadings, np.eye(X.shape[1])[:, :2])


TOGETHER = {  # components that are found together: how many variables, and the seed of a case for each
    "common": (66, 1, {"cardinality": 6, "support": "common"}),
    "disjoint": (66, 3, {"cardinality": 6, "support": "disjoint"}),
    "total": (66, 3, {"cardinality": spcacore.Total(8)}),
    "block": (20, 3, {"method": spcacore.GPower(0.2, relative=True, block=True)}),
}


@pytest.mark.parametrize(
    "name", ["common", "block", *(pytest.param(one, marks=pytest.mark.slow) for one in ("disjoint", "total"))]
)
def test_components_found_together_of_variances_that_tie(name):
    """Of standardized noise, in which rounding would choose where a search begins."""
    p, seed, options = TOGETHER[name]
    X = np.random.default_rng(seed).standard_normal((60, p))
    expected = spcacore.sparse_pca(np.corrcoef(X.T), 2, **options, kind="covariance")
    for hold in (np.asarray, np.asfortranarray, sp.csr_array, HELD["blocks"]):
        found = spcacore.sparse_pca(hold(X), 2, **options, scale=True)
        assert np.array_equal(found.loadings != 0, expected.loadings != 0)
        np.testing.assert_allclose(found.loadings, expected.loadings, atol=1e-6)


@pytest.mark.parametrize("seed", [3, *(pytest.param(i, marks=pytest.mark.slow) for i in range(5))])
def test_rare_counts(rng):
    """Dense data whose entries are few are searched as sparse data are, whose products cost less."""
    X = rng.poisson(0.03, (600, 8400)).astype(float)
    X[:60, :40] += rng.poisson(0.1, (60, 40))
    for held, stored in (
        (X, sp.csr_array),
        (np.asfortranarray(X), sp.csc_array),
        (X.astype(np.int16), sp.csr_array),
    ):
        expected = spcacore.sparse_pca(stored(X), 2, cardinality=25)
        found = spcacore.sparse_pca(held, 2, cardinality=25)
        assert np.array_equal(found.loadings, expected.loadings)


READ_ONCE = {
    "sparse_pca": lambda X: spcacore.sparse_pca(X, 10, cardinality=20),
    "spca": lambda X: spcacore.spca(X, 2, cardinality=20),
    "sca": lambda X: spcacore.sca(X, 2, l1_bound=6.0),
    "oppca": lambda X: spcacore.oppca(X, 2),
    "soppca": lambda X: spcacore.soppca(X, 2, 20),
}


@pytest.mark.share(3)
@pytest.mark.parametrize("name", READ_ONCE)
def test_blocks_are_read_once_for_any_number_of_components(name):
    X = normal(0, 900, 600)
    X[:, :20] += normal(1, 900, 1)
    blocks = spcacore.row_blocks(X, block_bytes=X.nbytes // 5)
    found = READ_ONCE[name](blocks)
    assert blocks.passes == 1
    assert_allclose(found.loadings, READ_ONCE[name](X).loadings, atol=1e-4)


def test_k_means_sends_labels_once():
    """Every other pass returns sums of clusters and a few points: fewer bytes than half of the labels."""
    dask = pytest.importorskip("dask", reason="needs dask")
    most = []
    for n in (120, 240):
        came = []

        def counted(graph, keys, came=came, **options):
            found = dask.get(graph, keys, **options)
            came.append(bytes_of(found))
            return found

        X = normal(0, n, 20)
        X[: n // 3, :5] += 2
        with dask.config.set(scheduler=counted):
            result = spcacore.sparse_kmeans(dask_array(X, n // 4, 20), 3, 2.0, n_init=2)
        came.remove(result.labels.nbytes)
        most.append(max(came))
    assert most[1] < most[0] + 120 * 8 / 2


@pytest.mark.slow
@scaled_or_not
def test_words(scale):
    words = sp.load_npz(data_file("poliblog5k_counts.npz")).astype(float)
    X = np.log1p(np.asarray(words.todense()))
    expected = spcacore.sparse_pca(X, 5, cardinality=20, scale=scale)
    for name, found in answers(X, 20, scale=scale):
        assert np.array_equal(found.loadings != 0, expected.loadings != 0), name
