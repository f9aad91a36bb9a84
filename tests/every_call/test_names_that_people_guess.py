"""Attributes and methods by the names that users of other packages look for."""

import ast
import importlib.util
import inspect
import pickle
import shutil
import subprocess
import sys
from functools import partial
from graphlib import TopologicalSorter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from extras import optional
from numpy.testing import assert_allclose, assert_array_equal
from oracles import normal

import spcacore
from spcacore._messages import with_advice

USUAL = [
    *("cardinality", "l1_bound", "penalty", "start", "method", "choice", "deflation", "max_iter", "tol"),
    *("kind", "center", "scale", "sample_weight", "n_jobs", "rng", "callback"),
]


def _own(f):
    """Its parameters, without those that it hands on to another function."""
    shown = inspect.signature(f).parameters.values()
    code = getattr(inspect.unwrap(f), "__code__", None)
    return shown if code is None else [p for p in shown if p.name in code.co_varnames[: _count(code)]]


def _count(code):
    return code.co_argcount + code.co_kwonlyargcount


def test_options_stand_in_one_order():
    """A cycle would name two options that stand in one order here, and in another there."""
    public = [getattr(spcacore, name) for name in spcacore.__all__]
    callables = [f for f in public if inspect.isfunction(f)]
    if importlib.util.find_spec("sklearn"):
        sklearn = importlib.import_module("spcacore.sklearn")
        callables += [getattr(sklearn, name) for name in sklearn.__all__]
    lists = [[p.name for p in _own(f) if p.kind is p.KEYWORD_ONLY] for f in callables]
    order: TopologicalSorter[str] = TopologicalSorter()
    for names in [USUAL, *lists]:
        for before, after in pairwise(name.replace("random_state", "rng") for name in names):
            order.add(after, before)
    assert len(tuple(order.static_order())) > 60  # a CycleError says which


@pytest.fixture(scope="module")
def fit():
    X = spcacore.datasets.make_spiked(40, 15, cardinality=4, rng=0)[0]
    return X, spcacore.sparse_pca(X, 2, cardinality=4)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("components_", "loadings has the components"),
        ("x", "scores has those of the data"),
        ("explained_variance_", "explained_variance has no underscore here"),
        ("mean_", "mean has no underscore here"),
        ("prop_expl_var", "explained_variance_ratio has"),
        ("vexp", "explained_variance_ratio has"),
        ("v", "loadings has the components"),
        ("plot", r"spcacore\.plot\.heatmap\(result\)"),
        ("to_csv", r"to_frame\(\) gives a dataframe"),
        ("save", "pickle keeps it"),
        ("sdev", "roots of explained_variance"),
        ("bound", "upper_bound"),
    ],
)
def test_an_error_says_where_it_is(fit, name, words):
    with pytest.raises(AttributeError, match=f"no attribute '{name}': .*{words}"):
        getattr(fit[1], name)


@pytest.mark.parametrize("name", ["foo", "_x_", "__array__", "__array_interface__", "_repr_png_", "foo_"])
def test_other_names_are_not_there(fit, name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'$"):
        getattr(fit[1], name)


def test_inverse_transform_projects(fit):
    X, result = fit
    V, mean = result.loadings, X.mean(axis=0)
    projected = (X - mean) @ V @ np.linalg.pinv(V) + mean
    assert_allclose(result.inverse_transform(result.transform(X)), projected, atol=1e-10)
    model = spcacore.ppca(X, 2)
    Z = model.transform(X)
    assert_allclose(model.inverse_transform(Z), Z @ model.loadings.T + mean, atol=1e-10)


def test_scores_of_a_model_are_posterior_means(fit):
    X = fit[0]
    result = spcacore.ppca(X, 2)
    assert_allclose(result.scores, result.transform(X), atol=1e-12)
    assert spcacore.ppca(np.cov(X.T), 2, kind="covariance").scores is None
    X = X.copy()
    X[3, 2] = np.nan
    missing = spcacore.ppca(X, 2)
    assert_allclose(missing.scores, missing.transform(X), atol=1e-12)
    with pytest.raises(AttributeError, match="times the loadings gives them"):
        spcacore.tpower(fit[0], 4).scores  # noqa: B018


def test_scores_after_more_components_are_of_all(fit):
    longer = fit[1].extend(fit[0], 1)
    assert longer.scores.shape == (40, 3)
    assert_array_equal(longer.scores[:, :2], fit[1].scores)


@pytest.mark.parametrize(
    ("method", "name", "pair"), [("generalized", "cardinality", (3, 2)), ("pmd", "l1_bound", (1.5, 1.2))]
)
def test_the_two_of_a_pair_apart(fit, method, name, pair):
    X, Y = fit[0][:, :8], fit[0][:, 8:]
    one = spcacore.sparse_cca(X, Y, method=method, **{name: pair})
    other = spcacore.sparse_cca(X, Y, method=method, **{name: np.array(pair)})
    assert_array_equal(one.loadings_x, other.loadings_x)
    assert_array_equal(one.loadings_y, other.loadings_y)
    turned = spcacore.sparse_cca(Y, X, method=method, **{name: pair[::-1]})
    assert_allclose(np.abs(turned.loadings_y), np.abs(one.loadings_x), atol=1e-5)
    same = spcacore.sparse_cca(X, Y, method=method, **{name: 1})
    assert not np.array_equal(one.loadings_y, same.loadings_y)
    for side in "xy":
        with pytest.raises(TypeError, match=rf"'{side}_{name}'; say {name}=\(one of X, one of Y\)"):
            spcacore.sparse_cca(X, Y, method=method, **{f"{side}_{name}": 1})
    with pytest.raises((TypeError, ValueError), match=rf"\b{name}\b"):
        spcacore.sparse_cca(X, Y, method=method, **{name: (1, None)})


X = normal(0, 30, 8)
Y = X[:, :4] + normal(1, 30, 4)
OPTIONS = [  # of sparse_pca, and the words that help
    ("kind", "correlation", "kind='covariance'.*scale=True"),
    ("method", "spca", "function spcacore.spca"),
    ("method", "lars", "function spcacore.spca"),
    ("method", "tpwer", "do you mean 'tpower'"),
    ("method", "PMD", "do you mean 'pmd'"),
    ("nonzeros", 3, "mean cardinality"),
    ("zero_center", False, "mean center"),
    ("weights", np.ones(30), "mean sample_weight"),
    ("rotate", "varimax", "varimax, promax and oblimin rotate"),
    ("names", "abc", r"dataframe's columns are kept; .*set_axis"),
    ("n_jobs", 2, "SPCACORE_NUM_THREADS or limit_threads"),
    ("method", "SPC", "do you mean 'pmd'"),
    ("use_highly_variable", True, "spcacore.anndata.sparse_pca .*mask_var"),
]
WRONG = [  # a call of a user of another package, and the words that help
    *[(partial(spcacore.sparse_pca, X, 2, **{name: value}), words) for name, value, words in OPTIONS],
    (lambda: spcacore.sparse_pca(X, 2, 5, 6), "after place 3 goes by name"),
    (
        lambda: spcacore.sparse_lda(X, np.arange(30) % 2, 1, 3, 0.1),
        "after place 4 goes by name, as in priors=",
    ),
    (
        lambda: spcacore.sparse_cca(X, Y, method="pmd", cardinality=3),
        "cardinality is for method='generalized'",
    ),
    (lambda: spcacore.sparse_cca(X, Y, method="generalized", l1_bound=2), "l1_bound is for method='pmd'"),
    (lambda: spcacore.sparse_cca(X, Y, penaltyx=0.3), "mean l1_bound"),
    (lambda: spcacore.sparse_pca(X, None, cardinality=3), "integer, not None; select_n_components"),
    (lambda: spcacore.sparse_pca(X, 95.0, cardinality=3), "95 % is 0.95"),
    (lambda: spcacore.sparse_pca(X, 2, cardinality=spcacore.Explained(95)), "95 % is 0.95"),
    (lambda: spcacore.least_squares_component(X, cardinality=spcacore.Explained(80)), "80 % is 0.8"),
    (lambda: spcacore.tpower(X, 3, kind="covarience"), "do you mean 'covariance'"),
    (lambda: spcacore.sparse_pca(X, npcs=2), "mean n_components"),
    (lambda: spcacore.spca(X, 2, para=[3, 3]), "mean penalty or cardinality"),
    (lambda: spcacore.spca(X, 2, 3, lambda_=1e-6), "mean ridge or penalty"),
    (lambda: spcacore.spca(X, 2, K=3), "mean n_components"),
    (lambda: spcacore.spca(X, 2, 3, type="Gram"), "mean kind"),
    (lambda: spcacore.select_sparsity(X, spcacore.sparse_pca, [2, 3], cv=3), "mean n_folds"),
    (lambda: spcacore.sparse_kmeans(X, 3, 2, kind="covariance"), "data, and sparse_pca a covariance"),
    (lambda: spcacore.gpower(X, gamma=0.1), "mean penalty"),
    (lambda: spcacore.pmd(X, sumabsv=2, options=spcacore.PMD(renormalize=False)), "mean l1_bound"),
    (lambda: spcacore.sparse_kmeans(X, 3, wbounds=2), "mean l1_bound"),
    (lambda: spcacore.sparse_kmeans_gap(X, 3, wbounds=[2, 3]), "mean l1_bounds"),
    (lambda: spcacore.tpower(X, k=3), "mean cardinality"),
    (lambda: spcacore.sparse_pcaa, "do you mean 'sparse_pca'"),
    (lambda: spcacore.nothing, "module 'spcacore' has no attribute 'nothing'"),
    (lambda: spcacore.TPower().set_params, r"a grid names records, \[TPower\(\.\.\.\), \.\.\.\]"),
    (lambda: spcacore.certify, "'certify'; do you mean certify=True of sparse_pca"),
    (lambda: spcacore.ncPCA, "'ncPCA'; do you mean sparse_eigen"),
    (lambda: spcacore.prcomp, "'prcomp'; do you mean sparse_pca"),
    (lambda: spcacore.SparsePCA, "estimators are in spcacore.sklearn"),
    (lambda: spcacore.sparse_pca(X, 2, 3).loading, "loadings has the components"),
    (lambda: spcacore.greedy(np.where(X > 2, np.nan, X), 3), "NaN is missing for .*select_sparsity.*ppca"),
    (lambda: spcacore.spca(X[:1], 1, 2), "single sample.*at least 2"),
    (lambda: spcacore.sca(X[:1], 1), "single sample.*at least 2"),
]


@pytest.mark.parametrize(("call", "words"), WRONG, ids=lambda one: one if isinstance(one, str) else "")
def test_a_wrong_call_is_told_what_is_meant(call, words):
    with pytest.raises((TypeError, ValueError, AttributeError), match=words):
        call()


@pytest.mark.parametrize(
    ("name", "option", "words"),
    [
        ("SparsePCA", "alpha", r"mean method=GPower\(penalty=\.\.\.\) or cardinality"),
        ("SPCA", "ridge_alpha", "mean ridge"),
        ("SparseKMeans", "wbounds", "mean l1_bound"),
        ("StructuredPCA", "k", "mean cardinality"),
        ("SparseCCA", "n_comps", "mean n_components"),
    ],
)
def test_options_of_estimators(name, option, words):
    pytest.importorskip("sklearn")
    estimator = getattr(optional("spcacore.sklearn"), name)
    with pytest.raises(TypeError, match=f"unexpected keyword argument '{option}'; do you {words}"):
        estimator(**{option: 1})
    with pytest.raises(TypeError, match="goes by name"):
        estimator(2, 3, 4, 5)
    if hasattr(estimator, "set_callbacks"):  # since scikit-learn 1.9
        for wanted in ("callback", "verbose"):
            with pytest.raises(TypeError, match=rf"'{wanted}'; call its set_callbacks\(ProgressBar\(\)\)"):
                estimator(**{wanted: True})


def test_a_function_with_advice_is_the_function():
    for name in ("sparse_pca", "spca", "truncate"):
        function = getattr(spcacore, name)
        assert pickle.loads(pickle.dumps(function)) is function
        assert function.__globals__ is vars(inspect.getmodule(function))
    with pytest.raises(TypeError, match=r"^can only|^unsupported") as caught:  # not of the call: as it is
        with_advice(lambda a: a + "")(1)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("n", [1, 2])
def test_one_row_is_told(n):
    with pytest.warns(RuntimeWarning, match="no variance is left after 0 of the 1 component") as caught:
        spcacore.sparse_pca(np.repeat(X[:1], n, axis=0), 1, 2)
    assert ("single sample, and no variance about its mean" in str(caught[0].message)) == (n == 1)
    found = spcacore.tpower(X[:1], 2, center=False)  # about zero there is variance
    assert found.value > 0


def test_the_source_directory_says_so(tmp_path):
    """As Python finds it there, without what is compiled."""
    source = Path(spcacore.__file__).parent
    shutil.copytree(source, tmp_path / "spcacore", ignore=shutil.ignore_patterns("_core*.so", "_core*.pyd"))
    start = f"import sys; sys.path.insert(0, {str(tmp_path)!r}); import spcacore"
    command = [sys.executable, "-I", "-S", "-c", start]  # without what is installed
    told = {"meson.build": "start Python in another directory", "other": "cannot import name '_core'"}
    for file, words in told.items():
        (tmp_path / file).touch()
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode
        assert words in done.stderr.splitlines()[-1]
        (tmp_path / file).unlink()


def test_type_checkers_see_which_names_there_are():
    """`__getattr__` would let any name pass: it is there only when the package runs."""
    tree = ast.parse(Path(spcacore.__file__).read_text())
    top = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert "__dir__" in top
    assert "__getattr__" not in top
    typed = {
        node.target.id: ast.unparse(node.annotation) for node in tree.body if isinstance(node, ast.AnnAssign)
    }
    assert typed["__version__"] == "str"
