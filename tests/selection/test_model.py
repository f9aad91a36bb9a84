"""What functions that run a model take: a function, a partial, estimators of this and other packages."""

import inspect
from functools import partial, wraps

import flat
import numpy as np
import pytest
from calls import pca
from extras import optional
from numpy.testing import assert_allclose, assert_array_equal
from oracles import normal

import spcacore
from spcacore.methods import METHODS
from spcacore.selection.model import FITTING, as_model

sklearn = optional("sklearn")
estimators = optional("spcacore.sklearn")
X, _ = spcacore.datasets.make_spiked(40, 20, cardinality=4, variances=(16, 9), rng=0)
LABELS = np.arange(40) % 3
Y = X[:, :6] + normal(1, 40, 6)
FEW = {"n_resamples": 6, "rng": 3}


class Leading:
    """The columns of largest variance: an estimator that knows of nothing but rows."""

    def __init__(self, n_components=1, size=3, center=True):
        self.n_components, self.size, self.center = n_components, size, center

    def get_params(self, deep=True):
        return vars(self).copy()

    def set_params(self, **params):
        vars(self).update(params)
        return self

    def fit(self, X):
        order, sizes = np.argsort(-X.var(axis=0)), np.broadcast_to(self.size, self.n_components)
        self.components_ = np.zeros((self.n_components, X.shape[1]))
        for row, end, size in zip(self.components_, np.cumsum(sizes), sizes, strict=True):
            row[order[end - size : end]] = 2.0
        return self


def same(one, other):
    """Two results of `stability`, selections or paths."""
    names = (
        "selection_frequency",
        "loading_interval",
        "score",
        "scores",
        "explained_variance_ratio",
        "values",
    )
    compared = [name for name in names if hasattr(one, name)]
    for name in compared:
        assert_array_equal(getattr(one, name), getattr(other, name))
    assert compared


# ---- a function, a partial and an estimator are one model -----------------------------------------------


def test_a_partial_says_what_the_function_does_not():
    plain = partial(spcacore.sparse_pca, cardinality=4)
    same(spcacore.stability(X, plain, **FEW), spcacore.stability(X, partial(plain, n_components=1), **FEW))
    path = spcacore.sparsity_path(X, spcacore.sparse_pca, [2, 4])
    same(path, spcacore.sparsity_path(X, pca(), [2, 4]))
    weights = LABELS + 1
    rows = spcacore.sparsity_path(np.repeat(X, weights, axis=0), pca(), [2, 4]).explained_variance_ratio
    found = spcacore.sparsity_path(X, pca(), [2, 4], sample_weight=weights).explained_variance_ratio
    assert_allclose(found, rows, rtol=1e-12)
    assert (abs(found / path.explained_variance_ratio - 1) > 1e-3).all()


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("name", "arguments", "options", "others"),
    [
        ("SparsePCA", (2, 4), {"scale": True}, ()),
        ("SparsePCA", (2,), {"method": spcacore.PMD(2.0, tol=1e-6)}, ()),
        ("SPCA", (2, 4), {"ridge": 1.0}, ()),
        ("SCA", (2,), {"l1_bound": 3.0}, ()),
        ("StructuredPCA", (1, 4), {}, ()),
        ("SparseCCA", (1,), {"l1_bound": 1.5}, (Y,)),
        ("SparseLDA", (2, 4), {"shrinkage": 0.5}, (LABELS,)),
    ],
)
def test_an_estimator_is_its_function_with_its_parameters(name, arguments, options, others):
    estimator = getattr(estimators, name)(*arguments, **options)
    functions = {"SparsePCA": "sparse_pca", "StructuredPCA": "soppca", "SparseCCA": "sparse_cca"}
    function = getattr(spcacore, functions.get(name, "sparse_lda" if name == "SparseLDA" else name.lower()))
    given = dict(zip(("n_components", "cardinality"), arguments, strict=False)) | options
    before = estimator.get_params()
    found = spcacore.stability(X, estimator, *others, **FEW)
    same(found, spcacore.stability(X, partial(function, **given), *others, **FEW))
    assert found.model == function.__name__
    assert estimator.get_params() == before
    assert not hasattr(estimator, "components_")


def test_an_estimator_without_a_sparsity_has_that_of_its_fit():
    assert estimators.SparsePCA(2).fit(X).result_.cardinality.tolist() == [5, 5]
    same(spcacore.stability(X, estimators.SparsePCA(2), **FEW), spcacore.stability(X, pca(2, 5), **FEW))
    count = spcacore.select_n_components(X, estimators.SparsePCA(3), rng=1)
    same(count, spcacore.select_n_components(X, pca(3, 5), rng=1))
    one, other = (spcacore.select_sparsity(X, m, [2, 5]) for m in (estimators.SparsePCA(2), pca(2)))
    same(one, other)
    found = spcacore.stability(X, estimators.SparseCCA(1), Y, **FEW)
    fitted = estimators.SparseCCA(1).fit(X, Y).result_
    assert_array_equal(found.result.loadings_x, fitted.loadings_x)


def test_a_seed_of_the_model_is_that_of_its_fits_alone():
    noise = normal(0, 40, 60)
    one, other = (
        spcacore.stability(
            noise,
            partial(spcacore.soppca, cardinality=4, prior=spcacore.Prior(rng=1)),
            n_resamples=6,
            rng=seed,
        )
        for seed in (3, 4)
    )
    result = spcacore.soppca(noise, 1, 4, prior=spcacore.Prior(rng=1))
    for found in (one, other):
        assert_array_equal(found.result.loadings, result.loadings)
    assert (one.selection_frequency != other.selection_frequency).any()  # of other resamples
    models = pca(rng=1), pca(), partial(spcacore.spca, n_components=1)  # which takes none
    asked = [as_model(model, "here", FITTING).seeded(3).keywords for model in models]
    assert [getattr(given.get("method"), "rng", None) for given in asked] == [1, 3, None]
    path = spcacore.sparsity_path(X, estimators.SparsePCA(random_state=3), [2, 4])
    same(path, spcacore.sparsity_path(X, pca(2, rng=3), [2, 4]))


def test_priors_of_an_estimator():
    priors = {"none": None, "smooth": spcacore.Prior(precision=spcacore.grid_laplacian((20,)))}
    for estimator, model in (
        (estimators.StructuredPCA(1), partial(spcacore.oppca, n_components=1)),
        (estimators.StructuredPCA(1, 4), partial(spcacore.soppca, n_components=1, cardinality=4)),
    ):
        found = spcacore.select_prior(X, estimator, priors)
        assert_array_equal(found.evidence, spcacore.select_prior(X, model, priors).evidence)


# ---- estimators of other packages ----------------------------------------------------------------------


@pytest.mark.parametrize("resampling", ["complementary", "half", "bootstrap"])
def test_any_estimator_is_fitted_to_the_rows_of_each_resample(resampling):
    """The frequencies are those of the largest variances, of rows as often as they are drawn."""
    from spcacore.selection.resampling import drawn_weights

    model = Leading()
    found = spcacore.stability(X, model, resampling=resampling, n_resamples=8, rng=2)
    weights = drawn_weights(40, resampling, spcacore._validation.as_seed(2), None)
    count = np.zeros(20)
    for i in range(8):
        rows = X[np.repeat(np.arange(40), weights(i).astype(int))]
        count[np.argsort(-rows.var(axis=0))[:3]] += 1
    assert_array_equal(found.selection_frequency[:, 0], count / 8)
    assert found.model == "Leading"
    assert not hasattr(model, "components_")
    same(found, spcacore.stability(X, model, resampling=resampling, n_resamples=8, rng=2, n_jobs=2))


@pytest.mark.parametrize("criterion", ["cv", "permutation", "correlation", "sparseness", "bic", "stability"])
def test_any_estimator_has_a_grid_of_what_the_mapping_says(criterion):
    X, V = spcacore.datasets.make_spiked(60, 30, cardinality=5, variances=(40,), rng=1)
    few = {"n_folds": 3, "n_permutations": 3, "n_resamples": 6}
    found = spcacore.select_sparsity(X, Leading(), {"size": [10, 2, 5]}, criterion=criterion, **few)
    assert found.parameter == "size"
    assert sorted(found.values.tolist()) == [2, 5, 10]
    for value, result in zip(found.values, found.path, strict=True):
        assert np.count_nonzero(result.loadings) == value
        assert_allclose(result.loadings[result.loadings != 0], value**-0.5)
    share = spcacore.explained_variance(X, found.path[0].loadings, ratio=True)
    assert_allclose(found.path.explained_variance_ratio[0], share)
    if criterion != "stability":
        assert set(np.flatnonzero(found.result.loadings)) <= set(np.flatnonzero(V)) or found.chosen == 10


def test_grids_by_component_of_any_estimator():
    found = spcacore.select_sparsity(X, Leading(2), {"size": [[2, 4], [1, 3]]}, criterion="bic")
    alone = spcacore.select_sparsity(X, Leading(1), {"size": [2, 4]}, criterion="bic")
    assert_array_equal(found.earlier[0].score, alone.score)
    first, second = found.chosen_by_component
    order = np.argsort(-X.var(axis=0))
    for v, chosen in zip(
        found.result.loadings.T, (order[:first], order[first : first + second]), strict=True
    ):
        assert set(np.flatnonzero(v)) == set(chosen)


def test_sparse_pca_of_scikit_learn():
    model = sklearn.decomposition.SparsePCA(2, alpha=2.0, random_state=0, max_iter=30)
    found = spcacore.stability(X, model, n_resamples=4)
    V = model.fit(X).components_.T
    V = V / np.linalg.norm(V, axis=0)
    assert_allclose(found.result.loadings, V, atol=1e-12)
    path = spcacore.sparsity_path(X, model, {"alpha": [1.0, 3.0]})
    assert path.values.tolist() == [3.0, 1.0]  # the sparsest first
    assert path.cardinality.sum(axis=1)[0] < path.cardinality.sum(axis=1)[1]


# ---- what is no model ----------------------------------------------------------------------------------


@wraps(inspect.unwrap(spcacore.sparse_pca))
def mine(X, n_components, **options):
    return flat.sparse_pca(X[::2], n_components, **options)


class Clusters:
    def fit(self, X):
        return self


BAD = [
    ("spca", "the string 'spca'; pass the function spcacore.spca itself"),
    (2, r"belongs to the model, partial\(..., n_components=2\)"),
    (None, "not None of type NoneType"),
    (lambda X: X, "not <lambda>, a function of your own; an object with fit and components_ may be one"),
    (mine, "sparse_pca, a function of your own"),
    (spcacore.oppca, "model=oppca is not for stability, which takes sparse_pca, spca, sca"),
    (spcacore.sparse_pca(X, 1, 3), "a SparsePCAResult, which is fitted already"),
    (partial(spcacore.sparse_pca, X, 2), "leave the data out"),
    (pca(1, 3, callback=print), "callback of the model cannot be used here: give it to stability itself"),
    (pca(1, 3, sample_weight=np.ones(40)), "sample_weight of the model cannot be used here: resamples"),
    (pca(1, 3, X=X), "X of the model cannot be used here: data are given to stability itself"),
    (pca(1, k=3), "k is no option of .*; do you mean cardinality?"),
    (Leading, "the class Leading; pass an estimator"),
    (Clusters(), "Clusters has no components_ once it is fitted"),
]


@pytest.mark.parametrize(("model", "words"), BAD, ids=[words for _, words in BAD])
def test_what_is_no_model(model, words):
    with pytest.raises(TypeError, match=words):
        spcacore.stability(X, model)


def test_estimators_of_other_packages_where_they_cannot_be():
    with pytest.raises(TypeError, match="mapping that says of what"):
        spcacore.sparsity_path(X, Leading(), [1, 2])
    for name in ("alpha", "n_components"):
        with pytest.raises(TypeError, match=f"takes size or center, not {name}"):
            spcacore.sparsity_path(X, Leading(), {name: [1, 2]})
    with pytest.raises(TypeError, match="Clusters takes nothing, not alpha"):
        spcacore.sparsity_path(X, Clusters(), {"alpha": [1, 2]})
    with pytest.raises(TypeError, match="Leading is not for select_n_components, which takes sparse_pca"):
        spcacore.select_n_components(X, Leading(), 3)
    with pytest.raises(TypeError, match="needs the data in memory"):
        spcacore.stability(spcacore.row_blocks(X), Leading())


# ---- options of the model -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: spcacore.stability(X, 2, cardinality=20, n_resamples=50),
            ": model=partial(sparse_pca, n_components=2, cardinality=20)",
        ),
        (
            lambda: spcacore.stability(X, 2, model="spca", cardinality=20),
            ": model=partial(spca, n_components=2, cardinality=20)",
        ),
        (
            lambda: spcacore.select_sparsity(X, cardinality=[2, 5], n_components=2, scale=True, rng=1),
            ": model=partial(sparse_pca, n_components=2, scale=True), grid=[2, 5]",
        ),
        (
            lambda: spcacore.select_n_components(X, 4, cardinality=5),
            ": model=partial(sparse_pca, cardinality=5)",
        ),
        (
            lambda: spcacore.select_prior(X, {"none": None}, cardinality=3),
            ": model=partial(soppca, cardinality=3)",
        ),
        (
            lambda: spcacore.stability(X, pca(), k=3),
            "do you mean cardinality of the model, partial(sparse_pca,",
        ),
        (lambda: spcacore.stability(X, pca(), seed=3), "do you mean rng?"),
    ],
)
def test_a_call_with_options_of_the_model_says_where_they_go(call, words):
    with pytest.raises(TypeError) as caught:
        call()
    assert words in str(caught.value)


def test_every_fitting_function_has_its_parameters_of_sparsity():
    for name, (function, parameters) in FITTING.items():
        assert inspect.unwrap(getattr(spcacore, name)) is inspect.unwrap(function)
        taken = set(inspect.signature(function).parameters)
        if name == "sparse_pca":  # whose methods have records
            taken |= {field for one in METHODS.values() for field in inspect.signature(one).parameters}
        assert set(parameters) <= taken
        read = as_model(partial(function, n_components=3), "here", FITTING)
        assert (read.name, read.n_components, read.keywords) == (name, 3, {})
