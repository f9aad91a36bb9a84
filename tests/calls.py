"""Every public function that takes numbers, as a function of one matrix.

The tables of bad input, faults, threads and invariances, and the soak, go through it; a new function is
one line here.
"""

import dataclasses
import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import spcacore
from spcacore import (
    branch_and_bound,
    compare,
    deflate,
    dspca,
    explained_variance,
    from_loadings,
    gpower,
    greedy,
    kernel_pca,
    l1_rotation,
    l1_threshold,
    least_squares_component,
    oppca,
    optimality_bound,
    orthomax,
    pmd,
    ppca,
    prs,
    random_fourier_features,
    refine,
    renormalize,
    row_blocks,
    sca,
    sca_path,
    scotlass,
    select_n_components,
    select_prior,
    select_sparsity,
    sma,
    soft_threshold,
    soppca,
    sparse_cca,
    sparse_cca_bound,
    sparse_cca_permutation,
    sparse_dissimilarity,
    sparse_dissimilarity_gap,
    sparse_eigen,
    sparse_eigen_bound,
    sparse_kmeans,
    sparse_kmeans_gap,
    sparse_lda,
    sparse_pca,
    sparsity_path,
    spca,
    tpower,
    truncate,
    varimax,
)

N, P, R, K = 40, 12, 2, 3
NUMBERS = "biuf"  # kinds of dtype
DEFLATIONS = ["hotelling", "schur", "orthogonalized_hotelling", "orthogonalized_projection", "generalized"]
LABELS = np.arange(N) % 3
METRIC = np.diag(np.linspace(1, 2, P))
V0 = np.random.default_rng(2).standard_normal((P, R))
SPARSE = np.where(np.arange(P)[:, None] % 4 == np.arange(R), V0, 0)


def planted(n: int = N, p: int = P, seed: int = 0) -> np.ndarray:
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
    run: Callable[[Any], Any]
    takes: str = "data"
    sparse: bool = True  # scipy.sparse matrices are accepted
    random: bool = False  # takes rng
    other: str = ""  # the argument that the matrix is, where it is not the first
    of: str = ""  # of a method: the function whose result has it

    @property
    def function(self) -> str:
        return self.name.split(",")[0]

    @property
    def argument(self) -> str:
        """The name of the argument that the matrix is."""
        owner: Any = spcacore
        for part in self.function.split("."):
            owner = getattr(owner, part)
        return self.other or next(n for n in inspect.signature(owner).parameters if n != "self")

    def clean(self, dtype: Any = np.float64, order: Any = "C") -> np.ndarray:
        return CLEAN[self.takes].astype(dtype, order=order)

    def __repr__(self) -> str:
        return self.name


def data(name: str, run: Callable[[Any], Any], **options: Any) -> list[Call]:
    return [Call(name, run, **options)]


def either(name: str, run: Callable[..., Any], **options: Any) -> list[Call]:
    """A function that has `kind`."""
    return [
        Call(name, lambda X: run(X, kind="data"), "data", **options),
        Call(f"{name}, covariance", lambda X: run(X, kind="covariance"), "covariance", **options),
    ]


def several(method: str, option: str, value: Any) -> list[Call]:
    return either(
        f"sparse_pca, {method}", lambda X, kind: sparse_pca(X, R, method=method, kind=kind, **{option: value})
    )


def samples(kind: str) -> dict[str, int]:
    return {} if kind == "data" else {"n_samples": N}


def fitted(X: Any) -> Any:
    return sparse_pca(CLEAN["data"], R, cardinality=K).transform(X)


CALLS: list[Call] = [
    *either("sparse_pca", lambda X, kind: sparse_pca(X, R, cardinality=K, kind=kind)),
    *several("greedy", "cardinality", K),
    *several("branch_and_bound", "cardinality", K),
    *several("dspca", "cardinality", K),
    *several("gpower", "penalty", 0.5),
    *several("pmd", "l1_bound", 1.5),
    *several("scotlass", "l1_bound", 1.5),
    *several("least_squares", "cardinality", K),
    *several("thresholding", "cardinality", K),
    *either(
        "sparse_pca, explained",
        lambda X, kind: sparse_pca(X, 0.6, explained=0.8, objective="least_squares", kind=kind),
    ),
    *either("sparse_pca, explained variance", lambda X, kind: sparse_pca(X, R, explained=0.8, kind=kind)),
    *[
        call
        for deflation in (
            "hotelling",
            "schur",
            "orthogonalized_hotelling",
            "orthogonalized_projection",
            "orthogonalized_schur",
            "generalized",
        )
        for call in either(
            f"sparse_pca, {deflation}",
            lambda X, kind, deflation=deflation: sparse_pca(
                X, R, cardinality=K, deflation=deflation, kind=kind
            ),
        )
    ],
    *data("sparse_pca, naive", lambda X: sparse_pca(X, R, l1_bound=1.5, method="pmd", deflation="naive")),
    *either(
        "sparse_pca, orthogonal",
        lambda X, kind: sparse_pca(X, R, cardinality=K, constraint="orthogonal", kind=kind),
    ),
    *either(
        "sparse_pca, uncorrelated",
        lambda X, kind: sparse_pca(X, R, cardinality=K, constraint="uncorrelated", kind=kind),
    ),
    *either(
        "sparse_pca, refined",
        lambda X, kind: sparse_pca(X, R, cardinality=K, refine=True, certify=True, kind=kind),
    ),
    *either("sparse_pca, scale", lambda X, kind: sparse_pca(X, R, cardinality=K, scale=True, kind=kind)),
    *either("tpower", lambda X, kind: tpower(X, K, kind=kind)),
    *either("tpower, nonnegative", lambda X, kind: tpower(X, K, nonnegative=True, kind=kind)),
    *either("gpower", lambda X, kind: gpower(X, 0.3, relative=True, kind=kind)),
    *either("gpower, l0", lambda X, kind: gpower(X, 0.1, norm="l0", relative=True, kind=kind)),
    *either("pmd", lambda X, kind: pmd(X, 1.5, kind=kind)),
    *data("pmd, two-way", lambda X: pmd(X, 1.5, sample_l1_bound=3.0)),
    *either("scotlass", lambda X, kind: scotlass(X, 1.5, kind=kind)),
    *either("greedy", lambda X, kind: greedy(X, K, kind=kind)),
    *either("greedy, backward", lambda X, kind: greedy(X, K, strategy="backward", kind=kind)),
    *either("greedy, bidirectional", lambda X, kind: greedy(X, K, strategy="bidirectional", kind=kind)),
    *either("branch_and_bound", lambda X, kind: branch_and_bound(X, K, kind=kind)),
    *either("least_squares_component", lambda X, kind: least_squares_component(X, K, kind=kind)),
    *either("dspca", lambda X, kind: dspca(X, K, kind=kind)),
    *either("optimality_bound", lambda X, kind: optimality_bound(X, K, relaxation=True, kind=kind)),
    *either("refine", lambda X, kind: refine(X, SPARSE, cardinality=K, tol=1e-4, kind=kind)),
    *either("spca", lambda X, kind: spca(X, R, cardinality=K, kind=kind)),
    *either("spca, penalty", lambda X, kind: spca(X, R, penalty=0.5, tol=1e-4, kind=kind)),
    *either("sca", lambda X, kind: sca(X, R, l1_bound=3.0, kind=kind)),
    *either("sca, hard", lambda X, kind: sca(X, R, l1_bound=3.0, threshold="hard", rotation="l1", kind=kind)),
    *either("sca_path", lambda X, kind: sca_path(X, R, [2.0, 3.0, 4.0], kind=kind)),
    *data("sma", lambda X: sma(X, R, l1_bound=3.0, sample_l1_bound=6.0)),
    *either("oppca", lambda X, kind: oppca(X, R, kind=kind, **samples(kind))),
    *either("soppca", lambda X, kind: soppca(X, R, K, kind=kind, **samples(kind))),
    *either(
        "select_prior",
        lambda X, kind: select_prior(X, {"none": None}, R, cardinality=K, kind=kind, **samples(kind)),
    ),
    *either("ppca", lambda X, kind: ppca(X, R, kind=kind, **samples(kind))),
    *data("kernel_pca", lambda X: kernel_pca(X, R)),
    *data("kernel_pca, features", lambda X: kernel_pca(X, R, random_features=20), random=True),
    *data("random_fourier_features", lambda X: random_fourier_features(X, 20)),
    *data("sparse_lda", lambda X: sparse_lda(X, LABELS, cardinality=K)),
    *data("sparse_cca", lambda X: sparse_cca(X[:, :6], X[:, 6:], R, l1_bound=(1.5, 1.5))),
    *data(
        "sparse_cca, generalized",
        lambda X: sparse_cca(X[:, :6], X[:, 6:], 1, method="generalized", cardinality=(2, 2), ridge=0.1),
    ),
    *data("sparse_cca_bound", lambda X: sparse_cca_bound(X[:, :6], X[:, 6:], (2, 2), ridge=0.1)),
    *data(
        "sparse_cca_permutation",
        lambda X: sparse_cca_permutation(X[:, :6], X[:, 6:], [1.2, 1.5], n_permutations=3),
    ),
    *data("sparse_dissimilarity", lambda X: sparse_dissimilarity(X, 1.5)),
    *data("sparse_dissimilarity, absolute", lambda X: sparse_dissimilarity(X, 1.5, "absolute")),
    *data(
        "sparse_dissimilarity_gap",
        lambda X: sparse_dissimilarity_gap(X, [1.2, 2.0], n_permutations=2),
    ),
    *data("sparse_kmeans", lambda X: sparse_kmeans(X, 3, 1.5, n_init=3)),
    *data(
        "sparse_kmeans_gap",
        lambda X: sparse_kmeans_gap(X, 3, [1.2, 2.0], n_permutations=2, n_init=2),
    ),
    Call(
        "sparse_eigen",
        lambda A: sparse_eigen(A, np.diag(np.linspace(1, 2, P)), cardinality=K),
        "covariance",
    ),
    Call(
        "sparse_eigen_bound", lambda A: sparse_eigen_bound(A, np.diag(np.linspace(1, 2, P)), K), "covariance"
    ),
    *either("sparsity_path", lambda X, kind: sparsity_path(X, n_components=R, cardinality=[6, 3], kind=kind)),
    *data("select_sparsity", lambda X: select_sparsity(X, cardinality=[6, 3], n_folds=3)),
    *data(
        "select_sparsity, permutation",
        lambda X: select_sparsity(X, cardinality=[6, 3], criterion="permutation", n_permutations=3),
    ),
    *either(
        "select_sparsity, sparseness",
        lambda X, kind: select_sparsity(X, cardinality=[6, 3], criterion="sparseness", kind=kind),
    ),
    *data("select_n_components", lambda X: select_n_components(X, 3, cardinality=K, n_folds=3)),
    *either("compare", lambda X, kind: compare([SPARSE, V0], X, kind=kind), other="X"),
    *either("from_loadings", lambda X, kind: from_loadings(abs(SPARSE), X, kind=kind), other="X"),
    *either("explained_variance", lambda X, kind: explained_variance(X, V0, kind=kind)),
    *either("explained_variance, adjusted", lambda X, kind: explained_variance(X, V0, "adjusted", kind=kind)),
    *either(
        "explained_variance, regression",
        lambda X, kind: explained_variance(X, V0, "regression", kind=kind),
    ),
    *either("renormalize", lambda X, kind: renormalize(X, V0, kind=kind)),
    *either("deflate", lambda X, kind: deflate(X, V0[:, 0], kind=kind), sparse=False),
    *either("deflate, schur", lambda X, kind: deflate(X, V0[:, 0], "schur", kind=kind), sparse=False),
    *data("row_blocks", lambda X: sparse_pca(row_blocks(X, block_bytes=2048), R, cardinality=K)),
    *data("SparsePCAResult.transform", fitted),
    Call("varimax", varimax, "loadings", sparse=False),
    Call("orthomax", lambda V: orthomax(V, 0.5, normalize=True), "loadings", sparse=False),
    Call("l1_rotation", l1_rotation, "loadings", sparse=False),
    Call("prs", lambda V: prs(V, 3.0), "loadings", sparse=False),
    Call("truncate", lambda x: truncate(x, K), "vector", sparse=False),
    Call("soft_threshold", lambda x: soft_threshold(x, 0.3), "vector", sparse=False),
    Call("l1_threshold", lambda x: l1_threshold(x, 1.5), "vector", sparse=False),
]


@functools.cache
def found(function: str) -> Any:
    """What a function returns for clean input, for the methods of its result."""
    return next(c for c in CALLS if c.name == function).run(CLEAN["data"])


def method(name: str, run: Callable[[Any, Any], Any], function: str, **options: Any) -> Call:
    """A method of the result of a call of the table."""
    return Call(name, lambda X: run(found(function), X), of=function, **options)


DENSE: dict[str, Any] = {"sparse": False}
ARGUMENTS: list[Call] = [  # other arrays than the first of a function, and those of the methods of results
    *[
        Call(f"{f.__name__}, start", lambda x, f=f, o=o: f(X0, *o, start=x), "vector", other="start", **DENSE)
        for f, o in ((tpower, (K,)), (gpower, (1.0,)), (pmd, (1.5,)), (scotlass, (1.5,)))
    ],
    Call("spca, start", lambda V: spca(X0, R, cardinality=K, start=V), "loadings", other="start", **DENSE),
    Call("sca, start", lambda V: sca(X0, R, l1_bound=3.0, start=V), "loadings", other="start", **DENSE),
    Call("scotlass, earlier", lambda V: scotlass(X0, 1.5, earlier=V), "loadings", other="earlier", **DENSE),
    Call("refine, loadings", lambda V: refine(X0, V, tol=1e-4), "loadings", other="loadings", **DENSE),
    *[
        Call(f"{f.__name__}, loadings", lambda V, f=f: f(X0, V), "loadings", other="loadings", **DENSE)
        for f in (explained_variance, renormalize)
    ],
    Call("from_loadings, loadings", lambda V: from_loadings(V, X0), "loadings", **DENSE),
    Call("compare, results", lambda V: compare([V], X0), "loadings", other="loadings", **DENSE),
    Call("deflate, x", lambda x: deflate(COVARIANCE, x), "vector", other="x", **DENSE),
    Call(
        "deflate, earlier",
        lambda V: deflate(COVARIANCE, V0[:, 0], "orthogonalized_projection", earlier=V),
        "loadings", other="earlier", **DENSE,
    ),
    *[
        Call(f"oppca, {o}", lambda C, o=o: oppca(X0, R, **{o: C}), "metric", other=o)
        for o in ("prior_covariance", "prior_precision")
    ],
    Call("sparse_eigen, B", lambda B: sparse_eigen(COVARIANCE, B, K), "metric", other="B"),
    Call("sparse_eigen_bound, B", lambda B: sparse_eigen_bound(COVARIANCE, B, K), "metric", other="B"),
    Call(
        "sparse_lda, priors",
        lambda w: sparse_lda(X0, LABELS, cardinality=K, priors=w), "priors", other="priors", **DENSE,
    ),
    Call("sparse_cca, X", lambda X: sparse_cca(X, X0[:, 6:], R, l1_bound=(1.5, 1.5)), "half"),
    Call("sparse_cca, Y", lambda Y: sparse_cca(X0[:, 6:], Y, R, l1_bound=(1.5, 1.5)), "half", other="Y"),
    *[
        Call(
            f"sparse_cca, generalized {side}",
            lambda Z, swap=swap: sparse_cca(
                *(X0[:, 6:], Z)[::swap], 1, method="generalized", cardinality=(2, 2), ridge=0.1
            ),
            "half", other=side,
        )
        for side, swap in (("X", -1), ("Y", 1))
    ],
    *[
        Call(
            f"sparse_cca_bound, {side}",
            lambda Z, swap=swap: sparse_cca_bound(*(X0[:, 6:], Z)[::swap], (2, 2), ridge=0.1),
            "half", other=side,
        )
        for side, swap in (("X", -1), ("Y", 1))
    ],
    *[
        Call(
            f"sparse_cca_permutation, {side}",
            lambda Z, swap=swap: sparse_cca_permutation(*(X0[:, 6:], Z)[::swap], [1.2], n_permutations=2),
            "half", other=side,
        )
        for side, swap in (("X", -1), ("Y", 1))
    ],
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
    method("StructuredPCAResult.transform", lambda r, X: r.transform(X), "soppca"),
    method("StructuredPCAResult.extend", lambda r, X: r.extend(X, 1, cardinality=K), "soppca"),
    method("KernelPCAResult.transform", lambda r, X: r.transform(X), "kernel_pca"),
    method(
        "KernelPCAResult.inverse_transform",
        lambda _, S: kernel_pca(X0, R, ridge=1.0).inverse_transform(S), "kernel_pca", takes="scores", **DENSE,
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
READABLE = {n for n in spcacore.__all__ if hasattr(getattr(spcacore, n), "summary")}
NO_ARRAYS = {  # methods whose arguments are options
    *(f"{n}.{m}" for n in READABLE for m in ("summary", "group_contributions")),
    "GreedyComponent.at", "PPCAResult.sample", "StructuredPCAResult.posterior_covariance",
    "RowBlocks.beside", "RowBlocks.mapped", "RowBlocks.reduced", "RowBlocks.results", "RowBlocks.rows",
    "RowBlocks.split", "RowBlocks.split_or_none", "RowBlocks.stacked", "RowBlocks.taken",
}  # fmt: skip


def numbers(result: Any) -> dict[str, np.ndarray]:
    """Every array and number of a result, by name; what is not a number (names, words) is left out."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        fields = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
    elif isinstance(result, (tuple, list)):
        fields = {str(i): v for i, v in enumerate(result)}
    else:
        fields = {"": result.to_numpy() if hasattr(result, "to_numpy") else result}  # of a dataframe
    out: dict[str, np.ndarray] = {}
    for name, value in fields.items():
        if dataclasses.is_dataclass(value) or isinstance(value, (tuple, list)):
            out |= {f"{name}.{inner}": v for inner, v in numbers(value).items()}
        elif (
            isinstance(value, (np.ndarray, np.generic, int, float))
            and np.asarray(value).dtype.kind in NUMBERS
        ):
            out[name] = np.asarray(value)
    return out


SETTINGS = {"get_num_threads", "limit_threads", "set_num_threads"}  # of threads: tests/test_threads.py


def without_a_call() -> set[str]:
    """Public functions of the package that no call of the table runs."""
    functions = {n for n in spcacore.__all__ if inspect.isfunction(getattr(spcacore, n))}
    return functions - {c.function for c in CALLS} - SETTINGS - {"grid_laplacian"}


def without_an_argument() -> set[str]:
    """Methods of results with arguments that no call runs."""
    classes = [getattr(spcacore, n) for n in spcacore.__all__ if inspect.isclass(getattr(spcacore, n))]
    methods = {
        f"{c.__name__}.{n}"
        for c in classes
        for n, f in inspect.getmembers(c, inspect.isfunction)
        if not n.startswith("_") and len(inspect.signature(f).parameters) > 1
    }
    return methods - {c.function for c in (*CALLS, *ARGUMENTS)} - NO_ARRAYS
