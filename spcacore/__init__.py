"""Sparse principal component analysis: sparse loadings, dense or sparse data."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import datasets
from ._result import (
    DSPCAComponent,
    ExactComponent,
    GreedyComponent,
    PMDComponent,
    Progress,
    RotatedResult,
    SelectionProgress,
    SparseComponent,
    SparsePCAResult,
    SPCAResult,
)
from .certificates import OptimalityBound, optimality_bound
from .components import sparse_pca
from .deflation import deflate
from .dspca import dspca
from .exact import branch_and_bound
from .gpower import gpower
from .greedy import greedy
from .pmd import pmd
from .refinement import refine
from .rotated import prs, sca, sca_path, sma
from .rotation import l1_rotation, orthomax, varimax
from .scotlass import scotlass
from .spca import spca
from .threshold import l1_threshold, soft_threshold, truncate
from .tpower import tpower
from .variance import explained_variance, renormalize

if TYPE_CHECKING:
    from ._blocks import RowBlocks, row_blocks
    from .cca import CCAPermutation, SparseCCAResult, sparse_cca, sparse_cca_permutation
    from .clustering import (
        GapStatistic,
        SparseDissimilarity,
        SparseKMeans,
        sparse_dissimilarity,
        sparse_dissimilarity_gap,
        sparse_kmeans,
        sparse_kmeans_gap,
    )
    from .generalized import SparseEigenResult, sparse_eigen
    from .kernel import KernelPCAResult, RandomFeatures, kernel_pca, random_fourier_features
    from .lda import SparseLDAResult, sparse_lda
    from .probabilistic import PPCAResult, ppca
    from .selection import (
        SparsityPath,
        SparsitySelection,
        select_n_components,
        select_sparsity,
        sparsity_path,
    )
    from .structured import StructuredPCAResult, grid_laplacian, oppca, soppca

_LATER = {  # imported when first asked for: together they take longer than all the rest
    "_blocks": ("RowBlocks", "row_blocks"),
    "cca": ("CCAPermutation", "SparseCCAResult", "sparse_cca", "sparse_cca_permutation"),
    "clustering": (
        "GapStatistic",
        "SparseDissimilarity",
        "SparseKMeans",
        "sparse_dissimilarity",
        "sparse_dissimilarity_gap",
        "sparse_kmeans",
        "sparse_kmeans_gap",
    ),
    "generalized": ("SparseEigenResult", "sparse_eigen"),
    "kernel": ("KernelPCAResult", "RandomFeatures", "kernel_pca", "random_fourier_features"),
    "lda": ("SparseLDAResult", "sparse_lda"),
    "probabilistic": ("PPCAResult", "ppca"),
    "selection": (
        "SparsityPath",
        "SparsitySelection",
        "select_n_components",
        "select_sparsity",
        "sparsity_path",
    ),
    "structured": ("StructuredPCAResult", "grid_laplacian", "oppca", "soppca"),
}
_HOME = {name: module for module, names in _LATER.items() for name in names}

__all__ = [
    "CCAPermutation",
    "DSPCAComponent",
    "ExactComponent",
    "GapStatistic",
    "GreedyComponent",
    "KernelPCAResult",
    "OptimalityBound",
    "PMDComponent",
    "PPCAResult",
    "Progress",
    "RandomFeatures",
    "RotatedResult",
    "RowBlocks",
    "SPCAResult",
    "SelectionProgress",
    "SparseCCAResult",
    "SparseComponent",
    "SparseDissimilarity",
    "SparseEigenResult",
    "SparseKMeans",
    "SparseLDAResult",
    "SparsePCAResult",
    "SparsityPath",
    "SparsitySelection",
    "StructuredPCAResult",
    "branch_and_bound",
    "datasets",
    "deflate",
    "dspca",
    "explained_variance",
    "gpower",
    "greedy",
    "grid_laplacian",
    "kernel_pca",
    "l1_rotation",
    "l1_threshold",
    "oppca",
    "optimality_bound",
    "orthomax",
    "pmd",
    "ppca",
    "prs",
    "random_fourier_features",
    "refine",
    "renormalize",
    "row_blocks",
    "sca",
    "sca_path",
    "scotlass",
    "select_n_components",
    "select_sparsity",
    "sma",
    "soft_threshold",
    "soppca",
    "sparse_cca",
    "sparse_cca_permutation",
    "sparse_dissimilarity",
    "sparse_dissimilarity_gap",
    "sparse_eigen",
    "sparse_kmeans",
    "sparse_kmeans_gap",
    "sparse_lda",
    "sparse_pca",
    "sparsity_path",
    "spca",
    "tpower",
    "truncate",
    "varimax",
]


def __getattr__(name: str) -> Any:
    if name == "__version__":  # importlib.metadata takes as long as the rest of the import
        from importlib.metadata import version

        return version(__name__)
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f".{_HOME[name]}", __name__), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})
