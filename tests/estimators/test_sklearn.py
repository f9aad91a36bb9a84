"""The estimators: scikit-learn's checks, its PCA, CCA and LDA as oracles, the functions to the bit."""

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from numpy.testing import assert_allclose
from oracles import normal

import spcacore
from spcacore.datasets import make_spiked

pytest.importorskip("sklearn", reason="needs scikit-learn")
from sklearn.datasets import load_wine
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import LinearRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.utils.estimator_checks import parametrize_with_checks
from sklearn_tools import ALL

from spcacore.sklearn import (
    PPCA,
    SCA,
    SPCA,
    KernelPCA,
    SparseCCA,
    SparseHierarchical,
    SparseKMeans,
    SparseLDA,
    SparsePCA,
    StabilitySelector,
    StructuredPCA,
)


def fitted(estimator, X):
    """With the classes or the second matrix that it needs."""
    y = None
    if isinstance(estimator, SparseLDA):
        y = np.asarray(X[:, [0]].sum(axis=1)).ravel() > np.asarray(X[:, [0]].mean())
    if isinstance(estimator, SparseCCA):
        y = normal(1, X.shape[0], 4)
    return estimator.fit(X, y)


# ---- scikit-learn's checks --------------------------------------------------------------------------

OTHERS = [
    SparsePCA(None, cardinality=1, center=False),
    SparsePCA(1, method=spcacore.GPower(penalty=0.1, relative=True)),
    SparsePCA(2, scale=True, method=spcacore.PMD(renormalize=False)),
    SparsePCA(2, method="greedy", deflation="schur", refine=True),
    SPCA(1, penalty=0.1, ridge=1.0),
    SPCA(2, scale=True, ridge=np.inf),
    SCA(1, rotation="l1", threshold="hard"),
    SCA(2, scale=True, center=False),
    PPCA(1, scale=True, ddof=0),
    SparseLDA(cardinality=1, shrinkage=None),
    SparseLDA(shrinkage=0.2, options=spcacore.RatioSearch(strategy="rough", swaps=False)),
    SparseCCA(method="generalized", ridge=0.1),
    SparseCCA(l1_bound=1.0, scale=False),
    KernelPCA(kernel="precomputed"),
    KernelPCA(kernel="linear", ridge=0.1),
    KernelPCA(random_features=20),
    StructuredPCA(1, cardinality=1),
    SparseKMeans(3, n_init=2),
    SparseHierarchical(3, metric="absolute", linkage="average"),
    StabilitySelector(),
]


MORE = (KernelPCA, SparseHierarchical, SparseKMeans, StructuredPCA)


CHECKED = [E() for E in (*ALL, *MORE)]


@pytest.mark.share(12)
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([*CHECKED, StabilitySelector(n_resamples=4)])
def test_scikit_learn_checks(estimator, check):
    if isinstance(estimator, StructuredPCA) and "sample_weight_equivalence" in str(check):
        pytest.skip("it asks for 1e-9, and rounding ends the iteration 1e-8 from the optimum")
    checked(estimator, check)


def checked(estimator, check):
    """By scikit-learn, unless what it asks for cannot hold."""
    if "sample_weight_equivalence" in str(check):
        if isinstance(estimator, SparseKMeans):
            pytest.skip("it shuffles the rows, so that the starts, and the local optimum, are others")
        if getattr(estimator, "n_components", 0) is None:
            pytest.skip("as many components as rows, which are others if they are repeated")
    check(estimator)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks(OTHERS)
def test_scikit_learn_checks_with_other_parameters(estimator, check):
    unbounded = "weights_not_overwritten", "weights_shape"
    if getattr(estimator, "shrinkage", 0) is None and any(name in str(check) for name in unbounded):
        pytest.skip("its second variable is constant within classes: the ratio has no bound")
    checked(estimator, check)


# ---- the functions ----------------------------------------------------------------------------------


@pytest.mark.share(5)
@pytest.mark.parametrize("layout", ["C", "F", "csr", "csc", "float32"])
def test_the_estimators_give_what_the_functions_give(layout):
    dense = make_spiked(60, 40, cardinality=5, variances=(9, 6, 4), rng=0)[0]
    X = {
        "C": lambda: dense, "F": lambda: np.asfortranarray(dense), "csr": lambda: sp.csr_array(dense),
        "csc": lambda: sp.csc_matrix(dense), "float32": lambda: dense.astype(np.float32),
    }[layout]()  # fmt: skip
    grid = spcacore.Prior(precision=spcacore.grid_laplacian(40))
    y, Y = np.arange(60) % 3, dense[:, ::-1][:, :7] + dense[:, :7]
    for E, given, defaults in (
        (SparsePCA, {"n_components": 3, "cardinality": [4, 5, 6], "deflation": "schur"}, {}),
        (SparsePCA, {}, {"n_components": 2, "cardinality": 7}),
        (SparsePCA, {"method": "pmd"}, {"n_components": 2, "method": spcacore.PMD(l1_bound=7**0.5)}),
        (SPCA, {"n_components": 3, "penalty": 20.0, "ridge": 5.0, "scale": True}, {}),
        (SPCA, {}, {"n_components": 2, "cardinality": 7}),
        (SCA, {"n_components": 3, "l1_bound": 8.0, "center": False}, {}),
        (PPCA, {"n_components": 3, "scale": True}, {}),
        (StructuredPCA, {"n_components": 1, "cardinality": 6, "prior": grid}, {}),
        (SparseLDA, {"shrinkage": 0.1}, {"cardinality": 7}),
    ):
        others = (y,) if E is SparseLDA else ()
        function = spcacore.soppca if E is StructuredPCA else E._function
        model, result = E(**given).fit(X, *others), function(X, *others, **(given | defaults))
        assert np.array_equal(model.components_, result.loadings.T)
        assert model.components_.dtype == X.dtype
        assert np.array_equal(model.mean_, result.mean) or result.mean is model.mean_ is None
        expected = result.scores if isinstance(model, SCA) else result.transform(X)
        assert np.array_equal(model.transform(X), expected)
        if hasattr(result, "explained_variance"):
            assert np.array_equal(model.explained_variance_, result.explained_variance)
    model = SparseCCA(2, l1_bound=(2, 1.5)).fit(X, Y)
    result = spcacore.sparse_cca(X, Y, 2, l1_bound=(2, 1.5))
    assert np.array_equal(model.components_, result.loadings_x.T)
    assert np.array_equal(model.transform(X, Y)[1], result.scores_y)
    assert np.array_equal(model.correlations_, result.correlations)


# ---- two sides, classes -----------------------------------------------------------------------------


@pytest.mark.parametrize("container", [np.asarray, sp.csr_array, sp.csc_matrix])
def test_the_score_and_prediction_of_pairs(container, rng):
    X, Y = rng.standard_normal((90, 12)), 100 + rng.standard_normal((90, 9))
    Y[:, :3] += X[:, :3]
    Y[:, 4:6] -= 2 * X[:, 7:8]
    model = SparseCCA(2, l1_bound=2.0).fit(container(X[:60]), container(Y[:60]))
    new = container(X[60:]), container(Y[60:])
    first, second = model.transform(*new)
    each = [np.corrcoef(a, b)[0, 1] for a, b in zip(first.T, second.T, strict=True)]
    assert model.score(*new) == pytest.approx(np.mean(each), abs=1e-10)
    assert model.score(new[0], -new[1]) == pytest.approx(-np.mean(each), abs=1e-10)
    line = LinearRegression().fit(model.transform(X[:60]), Y[:60])
    assert_allclose(model.predict(new[0]), line.predict(first), rtol=1e-9)
    far = SparseCCA(2, l1_bound=2.0).fit(X[:60] + 1e7, Y[:60] + 1e7).predict(X[60:] + 1e7) - 1e7
    assert_allclose(far, model.predict(new[0]), atol=1e-5)
    assert np.array_equal(model.fit_transform(X, Y), model.transform(X))
    single = SparseCCA().fit(X, Y[:, 0])
    assert single.predict(X).shape == (90,)
    assert single.transform(X, Y[:, 0])[1].shape == (90, 1)
    assert cross_val_score(SparseCCA(l1_bound=1.5), X, Y, scoring="r2").shape == (5,)


def test_a_grid_search_finds_the_variables_in_common(rng):
    X, Y = rng.standard_normal((60, 100)), rng.standard_normal((60, 80))
    common = 1.5 * rng.standard_normal(60)
    X[:, :4] += common[:, None]
    Y[:, 5:8] -= common[:, None]
    search = GridSearchCV(SparseCCA(), {"l1_bound": [1, (2, 3**0.5), 4, 8]}).fit(X, Y)
    assert search.best_params_ == {"l1_bound": (2, 3**0.5)}
    assert set(np.argsort(-abs(search.best_estimator_.components_[0]))[:4]) == {0, 1, 2, 3}


def test_discriminant_scores_give_no_rows_back(rng):
    assert not hasattr(SparseLDA(), "inverse_transform")
    X = rng.standard_normal((40, 9))
    model = SparseCCA(2, l1_bound=2.0).fit(X, X[:, :5] + rng.standard_normal((40, 5)))
    Z = model.transform(X)
    assert_allclose(model.transform(model.inverse_transform(Z)), Z, atol=1e-10)


@pytest.mark.parametrize("priors", [None, [0.2, 0.3, 0.5]])
def test_with_all_variables_it_is_discriminant_analysis(priors):
    X, y = load_wine(return_X_y=True)
    X, names = X[::2], np.array(["a", "b", "c"])[y[::2]]
    oracle = LinearDiscriminantAnalysis(solver="eigen", priors=priors).fit(X, names)
    model = SparseLDA(cardinality=13, priors=priors, shrinkage=None).fit(X, names)
    assert model.classes_.tolist() == ["a", "b", "c"]
    assert_allclose(model.predict_proba(X), oracle.predict_proba(X), atol=1e-6)
    assert_allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
    assert np.array_equal(model.predict(X), oracle.predict(X))
    two = names != "c"
    oracle = LinearDiscriminantAnalysis(solver="eigen").fit(X[two], names[two])
    model = SparseLDA(cardinality=13, shrinkage=None).fit(X[two], names[two])
    assert_allclose(model.decision_function(X), oracle.decision_function(X), atol=1e-5)


# ---- as transformers --------------------------------------------------------------------------------


def test_random_states():
    X = normal(0, 20, 600)  # equal variances say nothing of where to start
    method = spcacore.TPower(n_starts=1, max_iter=2, swaps=False)

    def components(state):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            return SparsePCA(1, 10, method=method, scale=True, random_state=state).fit(X).components_

    assert np.array_equal(components(None), components(None))
    assert np.array_equal(components(5), components(5))
    state = np.random.RandomState
    assert np.array_equal(components(state(1)), components(state(1)))
    assert len({components(state(i)).tobytes() for i in range(5)}) > 1


def frames():
    wine = load_wine()
    names = [name.replace("/", "_") for name in wine.feature_names]
    for library in ("pandas", "polars"):
        module = pytest.importorskip(library, reason=f"needs {library}")
        data = dict(zip(names, wine.data.T, strict=True))
        yield library, names, module.DataFrame(data), wine.target


@pytest.mark.parametrize("E", ALL)
def test_names_go_in_and_out(E):
    for library, names, X, y in frames():
        model = E().set_output(transform=library)
        side = X if E is SparseCCA else y
        Z = model.fit_transform(X, side)
        assert type(Z) is type(X)
        r = model.n_components_
        assert list(Z.columns) == [f"{E.__name__.lower()}{t}" for t in range(r)]
        assert model.get_feature_names_out().tolist() == list(Z.columns)
        assert model.feature_names_in_.tolist() == names
        plain = E().fit(np.asarray(X), np.asarray(X) if E is SparseCCA else y)
        assert np.array_equal(np.asarray(Z), plain.transform(np.asarray(X)))
        if E is SparseCCA:
            assert list(model.result_.names_x) == list(model.result_.names_y) == names
            assert np.array_equal(model.predict(X), plain.predict(np.asarray(X)))
            assert model.score(X, X) == plain.score(np.asarray(X), np.asarray(X))
        else:
            assert list(model.result_.names) == names
            assert list(model.result_.to_frame().index) == names
        with pytest.raises(ValueError, match="feature names"):
            model.transform(X[names[::-1]])


@pytest.mark.parametrize("E", [SparseKMeans, SparseHierarchical])
def test_names_of_weights(E):
    for _, names, X, _ in frames():
        assert list(E().fit(X).result_.names) == names


def test_fewer_components_than_asked_for_are_kept(rng):
    X = rng.standard_normal((30, 2)) @ rng.standard_normal((2, 8))
    for model in (SparsePCA(4, cardinality=8), SPCA(4, cardinality=8), SCA(4, l1_bound=8.0)):
        with pytest.warns(RuntimeWarning, match=r"after 2 of the 4|only 2 of the 4"):
            model.fit(X)
        assert model.n_components_ == 2
        assert model.transform(X).shape == (30, 2)
        assert len(model.get_feature_names_out()) == 2
        assert_allclose(model.inverse_transform(model.transform(X)), X, atol=1e-8)


# ---- bad input --------------------------------------------------------------------------------------

X = make_spiked(30, 8, cardinality=3, variances=(9, 6), rng=0)[0]


BAD = [
    (SparsePCA(9), ValueError, "n_components must be in"),
    (SparsePCA(1.5), TypeError, "n_components must be an integer"),
    (SparsePCA(cardinality=[2, 3, 4]), ValueError, "3 entries for 2"),
    (SparsePCA(method=spcacore.TPower), TypeError, "call it"),
    (SparsePCA(choice={"include": [0]}), TypeError, "choice must be Choice"),
    (SparsePCA(random_state="x"), TypeError, "random_state must be"),
    (SparseKMeans(3, random_state=-1), ValueError, "random_state must not be"),
    (SCA(scale="degree"), TypeError, "scale must be True or False"),
    (SparseLDA(2), ValueError, "classes - 1"),
    (SparseCCA(scale="no"), TypeError, "scale"),
]


@pytest.mark.parametrize(("estimator", "error", "message"), BAD)
def test_bad_parameters(estimator, error, message):
    with pytest.raises(error, match=message):
        fitted(estimator, X)


@pytest.mark.parametrize("E", ALL)
def test_bad_data(E):
    model = fitted(E(), X)
    with pytest.raises(ValueError, match="infinit"):
        model.transform(np.where(X.max() == X, np.inf, X))
    if hasattr(model, "inverse_transform"):
        with pytest.raises(ValueError, match="columns for"):
            model.inverse_transform(X)
    if E is SparseCCA:
        with pytest.raises(ValueError, match="y has shape"):
            model.score(X, X)
        with pytest.raises(ValueError, match="score needs y"):
            model.score(X, None)
        with pytest.raises(ValueError, match="inconsistent numbers of samples"):
            model.fit(X, X[:5])
