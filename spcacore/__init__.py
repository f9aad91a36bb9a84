"""Sparse principal component analysis: sparse loadings, dense or sparse data."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from . import datasets
from .linalg.cores import get_num_threads, set_num_threads
from .models.components import SparsePCAResult, sparse_pca
from .models.elastic_net import SPCAResult, spca
from .models.refinement import refine
from .models.rotated import RotatedResult, prs, sca, sca_path, sma
from .models.variance import explained_variance, renormalize
from .progress import Progress, SelectionProgress
from .results import DSPCAComponent, ExactComponent, GreedyComponent, PMDComponent, SparseComponent
from .solvers.certificates import OptimalityBound, optimality_bound
from .solvers.exact import branch_and_bound
from .solvers.generalized_power import gpower
from .solvers.greedy_search import greedy
from .solvers.lasso_component import scotlass
from .solvers.penalized_decomposition import pmd
from .solvers.semidefinite import dspca
from .solvers.truncated_power import tpower
from .tools.deflating import deflate
from .tools.rotation import l1_rotation, orthomax, varimax
from .tools.thresholding import l1_threshold, soft_threshold, truncate

if TYPE_CHECKING:
    from .clustering.dissimilarity import SparseDissimilarity, sparse_dissimilarity
    from .clustering.gap import GapStatistic, sparse_dissimilarity_gap, sparse_kmeans_gap
    from .clustering.kmeans import SparseKMeans, sparse_kmeans
    from .generalized.cca import SparseCCAResult, sparse_cca
    from .generalized.cca_permutation import CCAPermutation, sparse_cca_permutation
    from .generalized.eigen import SparseEigenResult, sparse_eigen
    from .generalized.lda import SparseLDAResult, sparse_lda
    from .models.kernel import KernelPCAResult, kernel_pca
    from .models.priors import grid_laplacian
    from .models.probabilistic import PPCAResult, ppca
    from .models.random_features import RandomFeatures, random_fourier_features
    from .models.structured import StructuredPCAResult, oppca, soppca
    from .operators.blocks import RowBlocks
    from .operators.partition import row_blocks
    from .selection.criteria import SparsitySelection, select_n_components, select_sparsity, sparsity_path
    from .selection.tuning import SparsityPath

_LATER = {  # imported when first asked for: together they take longer than all the rest
    "clustering.dissimilarity": ("SparseDissimilarity", "sparse_dissimilarity"),
    "clustering.gap": ("GapStatistic", "sparse_dissimilarity_gap", "sparse_kmeans_gap"),
    "clustering.kmeans": ("SparseKMeans", "sparse_kmeans"),
    "generalized.cca": (
        "SparseCCAResult",
        "sparse_cca",
    ),
    "generalized.cca_permutation": (
        "CCAPermutation",
        "sparse_cca_permutation",
    ),
    "generalized.eigen": (
        "SparseEigenResult",
        "sparse_eigen",
    ),
    "generalized.lda": (
        "SparseLDAResult",
        "sparse_lda",
    ),
    "models.kernel": ("KernelPCAResult", "kernel_pca"),
    "models.priors": ("grid_laplacian",),
    "models.probabilistic": ("PPCAResult", "ppca"),
    "models.random_features": ("RandomFeatures", "random_fourier_features"),
    "models.structured": ("StructuredPCAResult", "oppca", "soppca"),
    "operators.blocks": ("RowBlocks",),
    "operators.partition": ("row_blocks",),
    "selection.criteria": (
        "SparsitySelection",
        "select_n_components",
        "select_sparsity",
        "sparsity_path",
    ),
    "selection.tuning": ("SparsityPath",),
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
    "get_num_threads",
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
    "set_num_threads",
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
