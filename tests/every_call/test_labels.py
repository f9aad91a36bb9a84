"""Tables with labels that meet: another order is the call with arrays in order, other labels are refused."""

from functools import partial

import numpy as np
import pytest
from extras import optional
from numpy.testing import assert_allclose

import spcacore

pd = pytest.importorskip("pandas")
pytest.importorskip("sklearn")
estimators = optional("spcacore.sklearn")

N, P = 40, 6
NAMES = ["gene f", "indexes", "gene a", "gene d", "column_names", "gene e"]  # two are attributes elsewhere
ROWS = [f"cell {i}" for i in range(N)]
RNG = np.random.default_rng(7)
X = RNG.standard_normal((N, P)) @ np.diag([3, 2.5, 2, 1.5, 1, 0.8]) + RNG.standard_normal((N, 1))
Y = X[:, :4] @ RNG.standard_normal((4, 3)) + RNG.standard_normal((N, 3))
CLASSES = np.array(["b", "a", "c"])[np.arange(N) % 3]
X[CLASSES == "a", 1] += 4
X[CLASSES == "b", 2] -= 4
A = np.cov(X.T)
V = np.linalg.qr(RNG.standard_normal((P, 2)))[0]
V[:3, 0] = V[4:, 1] = 0
WEIGHT = RNG.integers(1, 4, N).astype(float)
VECTOR = 1 + RNG.random(P)
POSITIVE = np.array([1, 0, 0, 1, 0, 0])
GROUPS = np.array([0, 0, 1, 1, 2, 2])
PRIOR = A + np.eye(P)


def rows(a):
    """Belongs to the rows of X."""
    return pd.Series(a, ROWS) if a.ndim == 1 else pd.DataFrame(a, ROWS, [f"y{j}" for j in range(a.shape[1])])


def variables(a):
    """Belongs to its columns."""
    return pd.Series(a, NAMES) if a.ndim == 1 else pd.DataFrame(a, NAMES)


def square(a):
    return pd.DataFrame(a, NAMES, NAMES)


def data(a):
    return pd.DataFrame(a, ROWS, NAMES)


def fit(name, **options):
    """An estimator as a function."""

    def call(X, y=None, *, of=lambda model, X, y: model.result_, weight=None, **more):
        model = getattr(estimators, name)(**options, **more)
        model.fit(X, y, **({} if weight is None else {"sample_weight": weight}))
        return of(model, X, y)

    return call


def fitted(name, method, **options):
    """A method of an estimator of X in order, for rows that come later."""

    def call(X_, y):
        model = getattr(estimators, name)(**options).fit(X_, CLASSES if "LDA" in name else Y)
        return getattr(model, method)(X_, y)

    return call


pca = partial(spcacore.sparse_pca, n_components=2)
COVARIANCE = {"kind": "covariance"}
LABELED = [  # another table, how it is labeled, and calls of X and that table
    (
        V,
        variables,
        {
            "explained_variance": spcacore.explained_variance,
            "renormalize": spcacore.renormalize,
            "refine": spcacore.refine,
            "from_loadings": lambda X, v: spcacore.from_loadings(v, X),
            "compare": lambda X, v: spcacore.compare({"a": v, "b": V}, X),
            "sca, start": lambda X, v: spcacore.sca(X, 2, l1_bound=2, start=v),
            "explained_variance of a covariance": lambda X, v: spcacore.explained_variance(
                cov(X), v, **COVARIANCE
            ),
        },
    ),
    (
        V[:, 0],
        variables,
        {
            "deflate": lambda X, v: spcacore.deflate(cov(X), v),
            "deflate, data": lambda X, v: spcacore.deflate(X, v, "schur", kind="data"),
        },
    ),
    (
        V[:, 1],
        variables,
        {
            "tpower, start": lambda X, v: spcacore.tpower(X, 2, options=spcacore.TPower(start=v)),
            "gpower, start": lambda X, v: spcacore.gpower(X, 0.1, options=spcacore.GPower(start=v)),
            "scotlass, start": lambda X, v: spcacore.scotlass(
                X, 1.2, options=spcacore.SCoTLASS(start=v, renormalize=False)
            ),
            "branch_and_bound, start": lambda X, v: spcacore.branch_and_bound(X, 2, start=v),
        },
    ),
    (
        V[:, :1],
        variables,
        {
            "scotlass, earlier": lambda X, v: spcacore.scotlass(
                X, 1.5, earlier=v, options=spcacore.SCoTLASS(renormalize=False)
            ),
            "deflate, earlier": lambda X, v: spcacore.deflate(
                cov(X), V[:, 1], "orthogonalized_schur", earlier=v
            ),
        },
    ),
    (
        VECTOR,
        variables,
        {
            "center": lambda X, c: pca(X, cardinality=3, center=c),
            "scale": lambda X, s: pca(X, cardinality=3, scale=s),
            "ppca, center": lambda X, c: spcacore.ppca(X, 2, center=c),
            "scale of a covariance": lambda X, s: pca(cov(X), cardinality=3, scale=s, **COVARIANCE),
            "SparsePCA, center": lambda X, c: fit("SparsePCA")(X, center=c),
            "partial_fit, center": lambda X, c: estimators.SparsePCA(2, center=c).partial_fit(X).result_,
        },
    ),
    (
        WEIGHT,
        rows,
        {
            "sample_weight": lambda X, w: pca(X, cardinality=3, sample_weight=w),
            "sparse_cca, weights": lambda X, w: spcacore.sparse_cca(X, Y, l1_bound=1.3, sample_weight=w),
            "sparse_lda, weights": lambda X, w: spcacore.sparse_lda(
                X, CLASSES, cardinality=2, shrinkage=0.1, sample_weight=w
            ),
            "SparsePCA, weights": lambda X, w: fit("SparsePCA")(X, weight=w),
            "partial_fit": lambda X, w: estimators.SparsePCA(2).partial_fit(X, sample_weight=w).result_,
            "SparseCCA, weights": lambda X, w: fit("SparseCCA")(X, Y, weight=w),
        },
    ),
    (
        GROUPS,
        variables,
        {
            "groups": lambda X, g: pca(X, cardinality=1, choice=spcacore.Choice(groups=g)),
            "contributions": lambda X, g: pca(X, cardinality=3).group_contributions(g),
            "sparse_cca, groups": lambda X, g: spcacore.sparse_cca(
                X, Y, l1_bound=1.3, choice=(spcacore.Choice(groups=g), None)
            ),
            "select_sparsity": lambda X, g: spcacore.select_sparsity(
                X, partial(pca, choice=spcacore.Choice(groups=g)), [1, 2], n_folds=2
            ),
            "optimality_bound": lambda X, g: spcacore.optimality_bound(
                X, 1, choice=spcacore.Choice(groups=g)
            ),
            "StabilitySelector": lambda X, g: fit("StabilitySelector", n_resamples=4)(
                X, model=partial(pca, cardinality=1, choice=spcacore.Choice(groups=g))
            ),
        },
    ),
    (POSITIVE, variables, {"signs": lambda X, s: pca(X, cardinality=3, choice=spcacore.Choice(signs=s))}),
    (
        PRIOR,
        square,
        {
            "oppca, covariance": lambda X, C: spcacore.oppca(X, 2, prior=spcacore.Prior(covariance=C)),
            "soppca, precision": lambda X, C: spcacore.soppca(X, 2, 3, prior=spcacore.Prior(precision=C)),
            "posterior": lambda X, C: spcacore.oppca(
                X, 2, prior=spcacore.Prior(covariance=C)
            ).posterior_covariance(1),
            "sparse_eigen": lambda X, B: spcacore.sparse_eigen(cov(X), B, 1, 3),
            "sparse_eigen_bound": lambda X, B: spcacore.sparse_eigen_bound(cov(X), B, 3),
            "soppca, folds": lambda X, C: spcacore.select_sparsity(
                X, partial(spcacore.soppca, prior=spcacore.Prior(covariance=C)), [1, 3], n_folds=2
            ),
            "StructuredPCA": lambda X, C: fit("StructuredPCA")(X, prior=spcacore.Prior(covariance=C)),
        },
    ),
    (
        Y,
        rows,
        {
            "sparse_cca": lambda X, Y: spcacore.sparse_cca(X, Y, l1_bound=1.3),
            "sparse_cca, generalized": lambda X, Y: spcacore.sparse_cca(
                X, Y, cardinality=2, method="generalized"
            ),
            "sparse_cca_bound": lambda X, Y: spcacore.sparse_cca_bound(X, Y, 2, ridge=0.1),
            "sparse_cca_permutation": lambda X, Y: spcacore.sparse_cca_permutation(
                X, Y, [1.1, 1.5], n_permutations=3
            ),
            "SparseCCA": fit("SparseCCA"),
            "SparseCCA, score": fitted("SparseCCA", "score"),
        },
    ),
    (
        CLASSES,
        rows,
        {
            "sparse_lda": lambda X, y: spcacore.sparse_lda(X, y, cardinality=2, shrinkage=0.1),
            "sparse_lda, score": lambda X, y: spcacore.sparse_lda(
                np.asarray(X), CLASSES, cardinality=2, shrinkage=0.1
            ).score(X, y),
            "stability": lambda X, y: (
                spcacore.stability(
                    X, partial(spcacore.sparse_lda, cardinality=2, shrinkage=0.1), y, n_resamples=4
                ).any_frequency
            ),
            "SparseLDA": fit("SparseLDA", shrinkage=0.1),
            "SparseLDA, score": fitted("SparseLDA", "score", shrinkage=0.1),
        },
    ),
    (
        np.array([0.2, 0.3, 0.5]),
        lambda a: pd.Series(a, ["a", "b", "c"]),
        {
            "sparse_lda, priors": lambda X, w: spcacore.sparse_lda(
                X, CLASSES, cardinality=2, shrinkage=0.1, priors=w
            )
        },
    ),
]
CASES = {name: (call, array, label) for array, label, calls in LABELED for name, call in calls.items()}


def cov(X):
    X = X.to_pandas() if hasattr(X, "to_pandas") else X
    return X.cov() if hasattr(X, "cov") else np.cov(X.T)


def numbers(found):
    """All numbers of what a call returned."""
    if isinstance(found, dict):
        found = list(found.values())
    if isinstance(found, (list, tuple)):
        return [one for part in found for one in numbers(part)]
    if hasattr(found, "__dataclass_fields__"):
        parts = [getattr(found, name) for name in found.__dataclass_fields__ if name != "options"]
        return [one for part in parts for one in numbers(part)]
    if hasattr(found, "iloc"):
        found = found.to_numpy()
    if isinstance(found, np.ndarray) and found.dtype.kind in "fiub":
        return [found.astype(float)]
    return [np.array(float(found))] if isinstance(found, (int, float, np.number)) else []


def permuted(table, order):
    return table.iloc[order, order] if table.shape == (P, P) else table.iloc[order]


def same(found, right):
    found, right = numbers(found), numbers(right)
    assert len(found) == len(right) > 0
    return all(np.allclose(a, b, atol=1e-7, equal_nan=True) for a, b in zip(found, right, strict=True))


@pytest.mark.share(12)
@pytest.mark.parametrize("kind", ["frame", "reversed frame", "DataArray"])
@pytest.mark.parametrize("case", CASES)
def test_labels_decide_what_goes_together(case, kind):
    call, array, label = CASES[case]
    order = np.roll(np.arange(len(array)), 1)[:: 1 if kind == "frame" else -1]
    table, X_ = permuted(label(array), order), data(X)
    assert not np.array_equal(table.to_numpy(), array)
    if kind == "DataArray":
        table, X_ = map(optional("xarray").DataArray, (table, X_))
    assert same(call(X_, table), call(X.copy(), array))


@pytest.mark.share(3)
@pytest.mark.parametrize("wrong", ["unknown", "twice", "missing"])
@pytest.mark.parametrize("case", CASES)
def test_other_labels_are_refused_by_name(case, wrong):
    call, array, label = CASES[case]
    table = permuted(label(array), np.arange(len(array))[::-1])
    first, last = table.index[0], table.index[-1]
    if wrong == "missing":
        table, named = table.iloc[:-1] if table.shape != (P, P) else table.iloc[:-1, :-1], last
    else:
        named = "unheard of" if wrong == "unknown" else first
        table = table.rename(index={last: named})
        if table.shape == (P, P):
            table = table.rename(columns={last: named})
    with pytest.raises(ValueError, match=f"'{named}'"):
        call(data(X), table)


def test_rows_of_a_covariance_go_with_its_columns():
    C, order = square(A), [3, 1, 0, 5, 4, 2]
    right = pca(A, cardinality=3, **COVARIANCE)
    assert same(pca(C.iloc[order], cardinality=3, **COVARIANCE), right)
    extended = pca(C, n_components=1, cardinality=3, **COVARIANCE).extend(C.iloc[order, order[::-1]], 1)
    assert same(extended.loadings, right.loadings)
    with pytest.raises(ValueError, match="'unheard of'"):
        pca(C.rename(index={NAMES[2]: "unheard of"}), cardinality=3, **COVARIANCE)


def test_numbers_from_zero_are_no_labels_beside_others():
    frame, y = pd.DataFrame(X), pd.Series(CLASSES)
    call = partial(spcacore.sparse_lda, cardinality=2, shrinkage=0.1)
    right = call(X, CLASSES)
    assert same(call(frame, y[::-1]), right)
    assert same(call(data(X), y), right)
    assert same(call(frame, rows(CLASSES)), right)
    assert same(call(frame.iloc[10:], y[10:]), call(X[10:], CLASSES[10:]))
    assert same(call(pd.DataFrame(X[20:]), y[20:].set_axis(range(120, 140))), call(X[20:], CLASSES[20:]))
    with pytest.raises(ValueError, match=r"rows of X.* without 0, 1, .*unknown 40, .*to_numpy"):
        call(frame, y.set_axis(range(5, 45)))
    right = spcacore.explained_variance(X, V)
    for table, loadings in ((data(X), pd.DataFrame(V)), (frame, variables(V)), (X, variables(V)[::-1][::-1])):
        assert same(spcacore.explained_variance(table, loadings), right)
    assert same(spcacore.explained_variance(frame, pd.DataFrame(V)[::-1]), right)


def test_scores_in_another_order_of_components():
    result = pca(data(X), cardinality=3)
    scores = result.transform(data(X))
    assert same(result.reconstruct(scores[["component_2", "component_1"]]), result.reconstruct(scores))
    model = estimators.SparsePCA(2).set_output(transform="pandas").fit(data(X))
    scores = model.transform(data(X))
    assert same(model.inverse_transform(scores.iloc[:, ::-1]), model.inverse_transform(scores))


def test_results_of_other_orders_are_compared_by_name():
    order = [4, 2, 0, 1, 5, 3]
    a, b = pca(data(X), cardinality=3), pca(data(X).iloc[:, order], cardinality=3)
    for given, table in (((a, b), data(X)), ((b, a), data(X).iloc[:, order[::-1]])):
        found = spcacore.compare(given, table)
        assert_allclose(np.concatenate(found.correlation), 1)
        assert_allclose(found.loadings[0], found.loadings[1])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_of_two_frames(library):
    module = optional(library)
    order = ["c", "a", "b"]
    A3, B3 = A[:3, :3], PRIOR[2:5, 2:5]

    def frame(a):
        return module.DataFrame({name: a[:, j] for j, name in enumerate("abc")})

    B = frame(B3)[order]
    B = B.iloc[[2, 0, 1]].set_axis(order, axis=0) if library == "pandas" else B[[2, 0, 1]]
    assert same(spcacore.sparse_eigen(frame(A3), B, 1, 2), spcacore.sparse_eigen(A3, B3, 1, 2))
    result = spcacore.sparse_cca(frame(X[:, :3]), frame(X[:, 3:]), cardinality=2, method="generalized")
    model = estimators.SparseCCA(cardinality=2, method="generalized").fit(frame(X[:, :3]), frame(X[:, 3:]))
    turned = frame(X[:, 3:])[order]
    right = result.transform(X[:, :3], X[:, 3:])
    for found in (result.transform(frame(X[:, :3])[order], turned), model.transform(frame(X[:, :3]), turned)):
        assert same([np.asarray(one) for one in found], right)
