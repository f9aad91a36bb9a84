"""Every public function that takes numbers, as a function of one matrix.

The tables of bad input, faults, threads and invariances, and the soak, go through it; a new function is
one line here.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from functools import partial
from typing import Any

import flat
import numpy as np
from oracles import normal

import spcacore
from spcacore import sparse_pca

N, P, R, K = 40, 12, 2, 3
NUMBERS = "biuf"  # kinds of dtype
DEFLATIONS = [
    "hotelling", "schur", "orthogonalized_hotelling", "orthogonalized_projection", "orthogonalized_schur",
    "generalized",
]  # fmt: skip
LABELS = np.arange(N) % 3
GROUPS, SIGNS = np.r_[0, 0, 1 : P - 1], np.r_[[1] * 4, 0, 0, [-1] * (P - 6)]
METRIC = np.diag(np.linspace(1, 2, P))
V0 = normal(2, P, R)
SPARSE = np.where(np.arange(P)[:, None] % 4 == np.arange(R), V0, 0)


def planted(n=N, p=P, seed=0):
    """Three clusters of rows, two sparse directions, columns of different variance."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, p)) * np.linspace(1, 2, p)
    X[:, :3] += 3 * (np.arange(n) % 3)[:, None] + 2 * rng.standard_normal((n, 1))
    X[:, 3:6] -= 2 * rng.standard_normal((n, 1))
    return X


X0 = planted()
COVARIANCE = np.cov(X0, rowvar=False)
CLEAN = {
    "data": X0,
    "covariance": COVARIANCE,
    "loadings": V0,
    "vector": V0[:, 0].copy(),
    "half": X0[:, :6].copy(),
    "metric": METRIC,
    "scores": X0 @ V0,
    "priors": np.array([0.5, 0.25, 0.25]),
}


@dataclasses.dataclass(frozen=True)
class Call:
    """`run(matrix)` calls a public function, whose name `name` starts with; `takes` is a key of CLEAN."""

    name: str
    run: Callable[..., Any]  # further options, too, where the function has some that laws are about
    takes: str = "data"
    sparse: bool = True  # scipy.sparse matrices are accepted
    other: str = ""  # the argument that the matrix is, where it is not the first
    of: str = ""  # of a method: the function whose result has it

    @property
    def function(self):
        return self.name.split(",")[0]

    @functools.cached_property
    def argument(self):
        """The name of the argument that the matrix is."""
        owner = spcacore
        for part in self.function.split("."):
            owner = getattr(owner, part)
        return self.other or next(n for n in inspect.signature(owner).parameters if n != "self")

    def clean(self, dtype=np.float64, order="C"):
        return CLEAN[self.takes].astype(dtype, order=order)

    def __repr__(self):
        return self.name


def named(name):
    """The function that the name of a call begins with."""
    return getattr(spcacore, name.split(",")[0])


def pca(n_components=1, cardinality=None, **options):
    """A model: `sparse_pca` with these options, as functions take it that run a model."""
    given = {"cardinality": cardinality} if cardinality is not None else {}
    return partial(sparse_pca, n_components=n_components, **flat.recorded("sparse_pca", given | options))


def data(name, *arguments, **options):
    """This function of a matrix and these arguments."""
    given = flat.recorded(name.split(",")[0], options)
    return [Call(name, lambda X, **more: named(name)(X, *arguments, **given, **more))]


def either(name, *arguments, **options):
    """The same of one that has `kind`."""
    given = flat.recorded(name.split(",")[0], options)
    return both(name, lambda X, kind, **more: named(name)(X, *arguments, kind=kind, **given, **more))


def both(name, run, **options):
    """Of data and of a covariance."""
    return [
        Call(name, lambda X, **more: run(X, kind="data", **more), "data", **options),
        Call(f"{name}, covariance", lambda X: run(X, kind="covariance"), "covariance", **options),
    ]


def sides(name, *arguments, **options):
    """A function of two sides, which are halves of the matrix."""
    given = flat.recorded(name.split(",")[0], options)
    return [Call(name, lambda X, **more: named(name)(X[:, :6], X[:, 6:], *arguments, **given, **more))]


def samples(kind):
    return {} if kind == "data" else {"n_samples": N}


def fitted(X):
    return sparse_pca(CLEAN["data"], R, cardinality=K).transform(X)


DENSE = {"sparse": False}
CALLS = [
    *either("sparse_pca", R, cardinality=K),
    *either("sparse_pca, greedy", R, method="greedy", cardinality=K),
    *either("sparse_pca, branch_and_bound", R, method="branch_and_bound", cardinality=K),
    *either("sparse_pca, dspca", R, method="dspca", cardinality=K),
    *either("sparse_pca, gpower", R, method="gpower", penalty=0.5),
    *either("sparse_pca, pmd", R, method="pmd", l1_bound=1.5),
    *either("sparse_pca, scotlass", R, method="scotlass", l1_bound=1.5),
    *either("sparse_pca, least_squares", R, method="least_squares", cardinality=K),
    *either("sparse_pca, thresholding", R, method="thresholding", cardinality=K),
    *either("sparse_pca, explained", 0.6, explained=0.8, objective="least_squares"),
    *either("sparse_pca, explained variance", R, explained=0.8),
    *[call for d in DEFLATIONS for call in either(f"sparse_pca, {d}", R, cardinality=K, deflation=d)],
    *data("sparse_pca, naive", R, l1_bound=1.5, method="pmd", deflation="naive"),
    *either("sparse_pca, orthogonal", R, cardinality=K, constraint="orthogonal"),
    *either("sparse_pca, uncorrelated", R, cardinality=K, constraint="uncorrelated"),
    *either("sparse_pca, refined", R, cardinality=K, refine=True, certify=True),
    *either("sparse_pca, common", R, cardinality=K, support="common"),
    *either("sparse_pca, disjoint", R, cardinality=K, support="disjoint"),
    *either("sparse_pca, total_cardinality", R, total_cardinality=2 * K),
    *either("sparse_pca, scale", R, cardinality=K, scale=True),
    *either("tpower", K),
    *either("tpower, nonnegative", K, nonnegative=True),
    *either("tpower, chosen", K, include=[3], exclude=[5], groups=GROUPS),
    *either("sparse_pca, chosen", R, cardinality=K, groups=GROUPS, count="variables"),
    *either("branch_and_bound, chosen", K, exclude=[5], nonnegative=SIGNS),
    *either("gpower", 0.3, relative=True),
    *either("gpower, l0", 0.1, norm="l0", relative=True),
    *either("pmd", 1.5),
    *data("pmd, two-way", 1.5, sample_l1_bound=3.0),
    *either("scotlass", 1.5),
    *either("greedy", K),
    *either("greedy, backward", K, strategy="backward"),
    *either("greedy, bidirectional", K, strategy="bidirectional"),
    *either("branch_and_bound", K),
    *either("least_squares_component", K),
    *either("dspca", K),
    *either("optimality_bound", K, relaxation=True),
    *either("refine", SPARSE, cardinality=K),
    *either("spca", R, cardinality=K),
    *either("spca, penalty", R, penalty=0.5, tol=1e-4),
    *either("sca", R, l1_bound=3.0),
    *either("sca, hard", R, l1_bound=3.0, threshold="hard", rotation="l1"),
    *either("sca, l1", R, l1_bound=3.0, rotation="l1"),
    *data("sma", R, l1_bound=3.0, sample_l1_bound=6.0),
    *both("oppca", lambda X, kind, **more: flat.oppca(X, R, kind=kind, **samples(kind), **more)),
    *both(
        "oppca, joint",
        lambda X, kind, **more: flat.oppca(X, R, deflation="joint", kind=kind, **samples(kind), **more),
    ),
    *both("soppca", lambda X, kind, **more: flat.soppca(X, R, K, kind=kind, **samples(kind), **more)),
    *both(
        "select_prior",
        lambda X, kind: spcacore.select_prior(
            X,
            partial(spcacore.soppca, n_components=R, cardinality=K, kind=kind, **samples(kind)),
            {"none": None},
        ),
    ),
    *both("ppca", lambda X, kind, **more: spcacore.ppca(X, R, kind=kind, **samples(kind), **more)),
    *data("kernel_pca", R),
    *data("kernel_pca, features", R, random_features=20),
    *data("random_fourier_features", 20),
    *data("sparse_lda", LABELS, cardinality=K),
    *sides("sparse_cca", R, l1_bound=(1.5, 1.5)),
    *sides("sparse_cca, generalized", 1, method="generalized", cardinality=(2, 2), ridge=0.1),
    *sides("sparse_cca_bound", (2, 2), ridge=0.1),
    *sides("sparse_cca_permutation", [1.2, 1.5], n_permutations=3),
    *data("sparse_dissimilarity", 1.5),
    *data("sparse_dissimilarity, absolute", 1.5, "absolute"),
    *data("sparse_dissimilarity_gap", [1.2, 2.0], n_permutations=2),
    *data("sparse_kmeans", 3, 1.5, n_init=3),
    *data("sparse_kmeans_gap", 3, [1.2, 2.0], n_permutations=2, n_init=2),
    Call("sparse_eigen", lambda A: spcacore.sparse_eigen(A, METRIC, cardinality=K), "covariance"),
    Call("sparse_eigen_bound", lambda A: spcacore.sparse_eigen_bound(A, METRIC, K), "covariance"),
    *both(
        "sparsity_path", lambda X, kind, **more: spcacore.sparsity_path(X, pca(R, kind=kind), [6, 3], **more)
    ),
    *data("select_sparsity", sparse_pca, [6, 3], n_folds=3),
    *data("select_sparsity, correlation", sparse_pca, [6, 3], criterion="correlation", n_folds=3),
    *data("select_sparsity, permutation", sparse_pca, [6, 3], criterion="permutation", n_permutations=3),
    *both(
        "select_sparsity, sparseness",
        lambda X, kind: spcacore.select_sparsity(X, pca(kind=kind), [6, 3], criterion="sparseness"),
    ),
    *data("select_n_components", pca(3, K), n_folds=3),
    *both("compare", lambda X, kind, **more: spcacore.compare([SPARSE, V0], X, kind=kind, **more), other="X"),
    *both(
        "from_loadings",
        lambda X, kind, **more: spcacore.from_loadings(abs(SPARSE), X, kind=kind, **more),
        other="X",
    ),
    *either("explained_variance", V0),
    *either("explained_variance, adjusted", V0, "adjusted"),
    *either("explained_variance, regression", V0, "regression"),
    *either("renormalize", V0),
    *both("deflate", lambda A, kind: spcacore.deflate(A, V0[:, 0], kind=kind), **DENSE),
    *both("deflate, schur", lambda A, kind: spcacore.deflate(A, V0[:, 0], "schur", kind=kind), **DENSE),
    Call("row_blocks", lambda X: sparse_pca(spcacore.row_blocks(X, block_bytes=2048), R, cardinality=K)),
    Call("SparsePCAResult.transform", fitted),
    Call("varimax", spcacore.varimax, "loadings", **DENSE),
    Call("orthomax", lambda V: spcacore.orthomax(V, 0.5, normalize=True), "loadings", **DENSE),
    Call("l1_rotation", spcacore.l1_rotation, "loadings", **DENSE),
    Call("promax", spcacore.promax, "loadings", **DENSE),
    Call("oblimin", lambda V: spcacore.oblimin(V, normalize=True), "loadings", **DENSE),
    Call("prs", lambda V: spcacore.prs(V, 3.0), "loadings", **DENSE),
    Call("truncate", lambda x: spcacore.truncate(x, K), "vector", **DENSE),
    Call("soft_threshold", lambda x: spcacore.soft_threshold(x, 0.3), "vector", **DENSE),
    Call("l1_threshold", lambda x: spcacore.l1_threshold(x, 1.5), "vector", **DENSE),
]


@functools.cache
def answer(call, dtype=np.float64):
    """What a call returns for clean input."""
    return call.run(call.clean(dtype))


@functools.cache
def found(function):
    """What a function returns for clean input, for the methods of its result."""
    return next(c for c in CALLS if c.name == function).run(CLEAN["data"])


def method(name, run, function, **options):
    """A method of the result of a call of the table."""
    return Call(name, lambda X: run(found(function), X), of=function, **options)


COMPONENTS = (  # the results of one
    ("SparseComponent", "tpower"), ("GreedyComponent", "greedy"), ("PMDComponent", "pmd"),
    ("ExactComponent", "branch_and_bound"), ("DSPCAComponent", "dspca"),
)  # fmt: skip


def each_side(name, *arguments, **options):
    """A function of two sides, of either beside one that stays."""
    word = "" if "," in name else ","
    return [
        Call(
            f"{name}{word} {side}",
            lambda Z, swap=swap: named(name)(*(X0[:, 6:], Z)[::swap], *arguments, **options),
            "half", other=other,
        )
        for side, other, swap in (("X", "", -1), ("Y", "Y", 1))
    ]  # fmt: skip


def option(
    name, takes, *arguments, sparse = False, said = "", **options
):  # fmt: skip
    """The option that the name ends with, of a function of X0; `said`: what messages call it."""
    function, other = name.split(", ")

    def run(V):
        return named(name)(X0, *arguments, **flat.recorded(function, {**options, other: V}))

    return Call(name, run, takes, sparse, other=said or other)


ARGUMENTS = [  # other arrays than the first of a function, and those of the methods of results
    option("tpower, start", "vector", K),
    option("gpower, start", "vector", 1.0),
    option("pmd, start", "vector", 1.5),
    option("scotlass, start", "vector", 1.5),
    option("sca, start", "loadings", R, l1_bound=3.0),
    option("scotlass, earlier", "loadings", 1.5),
    option("refine, loadings", "loadings"),
    option("explained_variance, loadings", "loadings"),
    option("renormalize, loadings", "loadings"),
    Call("from_loadings, loadings", lambda V: spcacore.from_loadings(V, X0), "loadings", **DENSE),
    Call("compare, results", lambda V: spcacore.compare([V], X0), "loadings", other="loadings", **DENSE),
    Call("deflate, x", lambda x: spcacore.deflate(COVARIANCE, x), "vector", other="x", **DENSE),
    Call(
        "deflate, earlier",
        lambda V: spcacore.deflate(COVARIANCE, V0[:, 0], "orthogonalized_projection", earlier=V),
        "loadings", other="earlier", **DENSE,
    ),
    option("oppca, prior_covariance", "metric", R, sparse=True, said="covariance of the prior"),
    option("oppca, prior_precision", "metric", R, sparse=True, said="precision of the prior"),
    Call("sparse_eigen, B", lambda B: spcacore.sparse_eigen(COVARIANCE, B, 1, K), "metric", other="B"),
    Call(
        "sparse_eigen_bound, B",
        lambda B: spcacore.sparse_eigen_bound(COVARIANCE, B, K), "metric", other="B",
    ),
    option("sparse_lda, priors", "priors", LABELS, cardinality=K),
    *each_side("sparse_cca", R, l1_bound=(1.5, 1.5)),
    *each_side("sparse_cca, generalized", 1, method="generalized", cardinality=(2, 2), ridge=0.1),
    *each_side("sparse_cca_bound", (2, 2), ridge=0.1),
    *each_side("sparse_cca_permutation", [1.2], n_permutations=2),
    method("SparsePCAResult.extend", lambda r, X: r.extend(X, 1, cardinality=K), "sparse_pca"),
    method("SPCAResult.transform", lambda r, X: r.transform(X), "spca"),
    method("RotatedResult.transform", lambda r, X: r.transform(X), "sca"),
    method("GivenLoadings.transform", lambda r, X: r.transform(X), "from_loadings"),
    *[
        method(f"{c}.reconstruct", lambda r, S: r.reconstruct(S), f, takes="scores", **DENSE)
        for c, f in (
            ("SparsePCAResult", "sparse_pca"), ("SPCAResult", "spca"), ("RotatedResult", "sma"),
            ("StructuredPCAResult", "soppca"), ("PPCAResult", "ppca"), ("GivenLoadings", "from_loadings"),
        )
    ],
    *[method(f"{c}.transform", lambda r, X: r.transform(X), f) for c, f in COMPONENTS],
    method("StructuredPCAResult.transform", lambda r, X: r.transform(X), "soppca"),
    method("StructuredPCAResult.extend", lambda r, X: r.extend(X, 1, cardinality=K), "soppca"),
    method("KernelPCAResult.transform", lambda r, X: r.transform(X), "kernel_pca"),
    method(
        "KernelPCAResult.inverse_transform",
        lambda _, S: spcacore.kernel_pca(X0, R, ridge=1.0).inverse_transform(S),
        "kernel_pca", takes="scores", **DENSE,
    ),
    method("RandomFeatures.transform", lambda r, X: r.transform(X), "random_fourier_features"),
    method("RandomFeatures.kernel", lambda r, X: r.kernel(X), "random_fourier_features"),
    method("RandomFeatures.kernel, Y", lambda r, Y: r.kernel(X0, Y), "random_fourier_features", other="Y"),
    *[
        method(f"PPCAResult.{m}", lambda r, X, m=m: getattr(r, m)(X), "ppca", sparse=m != "impute")
        for m in ("transform", "score", "score_samples", "impute", "posterior_covariance")
    ],
    *[
        method(f"SparseLDAResult.{m}", lambda r, X, m=m: getattr(r, m)(X), "sparse_lda")
        for m in ("transform", "predict", "decision_function")
    ],
    method("SparseLDAResult.score", lambda r, X: r.score(X, LABELS), "sparse_lda"),
    method("SparseCCAResult.transform", lambda r, X: r.transform(X, X0[:, 6:]), "sparse_cca", takes="half"),
    method(
        "SparseCCAResult.transform, Y",
        lambda r, Y: r.transform(X0[:, 6:], Y), "sparse_cca", takes="half", other="Y",
    ),
]  # fmt: skip
READABLE = {n for n in spcacore.__all__ if hasattr(getattr(spcacore, n), "group_contributions")}
RESULTS = {n for n in spcacore.__all__ if hasattr(getattr(spcacore, n), "summary")}
NO_ARRAYS = {  # methods whose arguments are options
    *(f"{n}.summary" for n in RESULTS),
    *(f"{n}.{m}" for n in READABLE for m in ("group_contributions", "inverse_transform")),
    "Stability.false_selections", "Stability.together", "Stability.to_frame", "Stability.group_frequencies",
    "GreedyComponent.at", "PPCAResult.sample", "StructuredPCAResult.posterior_covariance",
    *(f"{c}.reconstruct" for c, _ in COMPONENTS),  # of one score, as of several above
    "PriorSelection.transform", "SparsitySelection.transform", "Stability.transform",  # of their result's
    *(
        f"{c}.{m}" for c in ("RowBlocks", "Moments")
        for m in (
            "beside", "has_room", "mapped", "placed", "reduced", "results", "rows", "split", "split_or_none",
            "stacked", "taken",
        )
    ),
}  # fmt: skip


def numbers(result):
    """Every array and number of a result, by name; what is not a number (names, words) is left out."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        fields = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
    elif isinstance(result, (tuple, list)):
        fields = {str(i): v for i, v in enumerate(result)}
    else:
        fields = {"": result.to_numpy() if hasattr(result, "to_numpy") else result}  # of a dataframe
    out = {}
    for name, value in fields.items():
        if dataclasses.is_dataclass(value) or isinstance(value, (tuple, list)):
            out |= {f"{name}.{inner}": v for inner, v in numbers(value).items()}
        elif (
            isinstance(value, (np.ndarray, np.generic, int, float))
            and np.asarray(value).dtype.kind in NUMBERS
        ):
            out[name] = np.asarray(value)
    return out


SETTINGS = {"get_num_threads", "limit_threads", "set_num_threads"}  # of the process: test_threads.py
APART = {"cross_validated_eigenvalues", "stability"}  # with tables of their own, in files of that name


def without_a_call():
    """Public functions of the package that no call of the table runs."""
    functions = {n for n in spcacore.__all__ if inspect.isfunction(getattr(spcacore, n))}
    return functions - {c.function for c in CALLS} - SETTINGS - APART - {"grid_laplacian"}


def without_an_argument():
    """Methods of results with arguments that no call runs."""
    classes = [getattr(spcacore, n) for n in spcacore.__all__ if inspect.isclass(getattr(spcacore, n))]
    methods = {
        f"{c.__name__}.{n}"
        for c in classes
        for n, f in inspect.getmembers(c, inspect.isfunction)
        if not n.startswith("_") and len(inspect.signature(f).parameters) > 1
    }
    return methods - {c.function for c in (*CALLS, *ARGUMENTS)} - NO_ARRAYS
