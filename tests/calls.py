"""Every public function that takes numbers, as a function of one matrix.

The tables of bad input, faults, threads and invariances, and the soak, go through it; a new function is
one line here.
"""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

import spcacore
from spcacore import (
    branch_and_bound,
    deflate,
    dspca,
    explained_variance,
    gpower,
    greedy,
    kernel_pca,
    l1_rotation,
    l1_threshold,
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
    select_sparsity,
    sma,
    soft_threshold,
    soppca,
    sparse_cca,
    sparse_cca_permutation,
    sparse_dissimilarity,
    sparse_dissimilarity_gap,
    sparse_eigen,
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
CLEAN = {"data": X0, "covariance": COVARIANCE, "loadings": V0, "vector": V0[:, 0].copy()}


@dataclasses.dataclass(frozen=True)
class Call:
    """`run(matrix)` calls a public function, whose name `name` starts with; `takes` is a key of CLEAN."""

    name: str
    run: Callable[[Any], Any]
    takes: str = "data"
    sparse: bool = True  # scipy.sparse matrices are accepted
    random: bool = False  # takes rng

    @property
    def function(self) -> str:
        return self.name.split(",")[0]

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
    *[
        call
        for deflation in (
            "hotelling",
            "schur",
            "orthogonalized_hotelling",
            "orthogonalized_projection",
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
    *data("sparse_pca, scale", lambda X: sparse_pca(X, R, cardinality=K, scale=True)),
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
    *either("dspca", lambda X, kind: dspca(X, K, kind=kind)),
    *either("optimality_bound", lambda X, kind: optimality_bound(X, K, relaxation=True, kind=kind)),
    *either("refine", lambda X, kind: refine(X, SPARSE, cardinality=K, kind=kind)),
    *either("spca", lambda X, kind: spca(X, R, cardinality=K, kind=kind)),
    *either("spca, penalty", lambda X, kind: spca(X, R, penalty=0.5, tol=1e-4, kind=kind)),
    *either("sca", lambda X, kind: sca(X, R, l1_bound=3.0, kind=kind)),
    *either("sca, hard", lambda X, kind: sca(X, R, l1_bound=3.0, threshold="hard", rotation="l1", kind=kind)),
    *data("sca_path", lambda X: sca_path(X, R, [2.0, 3.0, 4.0])),
    *data("sma", lambda X: sma(X, R, l1_bound=3.0, sample_l1_bound=6.0)),
    *either("oppca", lambda X, kind: oppca(X, R, kind=kind, **samples(kind))),
    *either("soppca", lambda X, kind: soppca(X, R, K, kind=kind, **samples(kind))),
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
    *data(
        "sparse_cca_permutation",
        lambda X: sparse_cca_permutation(X[:, :6], X[:, 6:], [1.2, 1.5], n_permutations=3),
    ),
    *data("sparse_dissimilarity", lambda X: sparse_dissimilarity(X, 1.5)),
    *data("sparse_dissimilarity, absolute", lambda X: sparse_dissimilarity(X, 1.5, "absolute")),
    *data("sparse_dissimilarity_gap", lambda X: sparse_dissimilarity_gap(X, [1.2, 2.0], n_permutations=2)),
    *data("sparse_kmeans", lambda X: sparse_kmeans(X, 3, 1.5, n_init=3)),
    *data("sparse_kmeans_gap", lambda X: sparse_kmeans_gap(X, 3, [1.2, 2.0], n_permutations=2, n_init=2)),
    Call(
        "sparse_eigen",
        lambda A: sparse_eigen(A, np.diag(np.linspace(1, 2, P)), cardinality=K),
        "covariance",
        sparse=False,
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
    *either("explained_variance", lambda X, kind: explained_variance(X, V0, kind=kind)),
    *either("explained_variance, adjusted", lambda X, kind: explained_variance(X, V0, "adjusted", kind=kind)),
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


def numbers(result: Any) -> dict[str, np.ndarray]:
    """Every array and number of a result, by name; what is not a number (names, words) is left out."""
    if dataclasses.is_dataclass(result) and not isinstance(result, type):
        fields = {f.name: getattr(result, f.name) for f in dataclasses.fields(result)}
    elif isinstance(result, (tuple, list)):
        fields = {str(i): v for i, v in enumerate(result)}
    else:
        fields = {"": result}
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


def without_a_call() -> set[str]:
    """Public functions of the package that no call of the table runs."""
    functions = {n for n in spcacore.__all__ if inspect.isfunction(getattr(spcacore, n))}
    return functions - {c.function for c in CALLS} - {"grid_laplacian"}
