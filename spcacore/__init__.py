"""Sparse principal component analysis: sparse loadings, dense or sparse data.

Start with ``sparse_pca(X, 3, 20)``: three components of 20 variables each; rows of X are samples.

several components   sparse_pca, spca, sca, sma; refine improves them, compare sets results side by side
one component        tpower, greedy, branch_and_bound, dspca, gpower, pmd, scotlass, least_squares_component
what is asked for    TPower, Greedy, GPower, PMD, ... (options of a method), Choice, Explained, Total, Prior
how sparse, how many select_sparsity, select_n_components, sparsity_path, cross_validated_eigenvalues
how sure             stability, optimality_bound, ``certify=True`` of sparse_pca
other models         ppca, oppca, soppca, kernel_pca; sparse_cca, sparse_lda, sparse_eigen; sparse_kmeans
data                 row_blocks (files, clusters), datasets, spcacore.anndata
tools                explained_variance, renormalize, from_loadings, deflate, varimax, oblimin, limit_threads
elsewhere            spcacore.sklearn (estimators), spcacore.plot (pictures), `spcacore --help` (a command)
"""

from importlib import import_module
from inspect import isfunction
from typing import TYPE_CHECKING, Any

try:
    from . import _core  # noqa: F401  a core that does not load says so at once
except ImportError as _error:
    from importlib.util import find_spec
    from pathlib import Path

    source = (Path(__file__).parents[1] / "meson.build").exists()  # no file of what is installed
    if source and find_spec(f"{__name__}._core") is None:
        raise ImportError(
            f"this is the source of spcacore, in {Path(__file__).parents[1]}, which has no compiled core and "
            "hides the installed package: start Python in another directory"
        ) from _error
    raise
from ._messages import meant, with_advice

if TYPE_CHECKING:
    from . import anndata as anndata
    from . import datasets
    from . import plot as plot
    from . import sklearn as sklearn
    from .choice import Choice, Explained, Prior, Total
    from .clustering.dissimilarity import SparseDissimilarity, sparse_dissimilarity
    from .clustering.gap import GapStatistic, sparse_dissimilarity_gap, sparse_kmeans_gap
    from .clustering.kmeans import SparseKMeans, sparse_kmeans
    from .generalized.cca import SparseCCAResult, sparse_cca, sparse_cca_bound
    from .generalized.cca_permutation import CCAPermutation, sparse_cca_permutation
    from .generalized.eigen import SparseEigenResult, sparse_eigen, sparse_eigen_bound
    from .generalized.lda import SparseLDAResult, sparse_lda
    from .linalg.threads import get_num_threads, limit_threads, set_num_threads
    from .methods import (
        DSPCA,
        PMD,
        BranchAndBound,
        GPower,
        Greedy,
        LeastSquares,
        Method,
        RatioSearch,
        SCoTLASS,
        Thresholding,
        TPower,
    )
    from .models.comparison import Comparison, compare
    from .models.components import SparsePCAResult, sparse_pca
    from .models.elastic_net import SPCAResult, spca
    from .models.kernel import KernelPCAResult, kernel_pca
    from .models.priors import grid_laplacian
    from .models.probabilistic import PPCAResult, ppca
    from .models.random_features import RandomFeatures, random_fourier_features
    from .models.refinement import refine
    from .models.rotated import RotatedResult, prs, sca, sca_path, sma
    from .models.structured import StructuredPCAResult, oppca, soppca
    from .models.under_prior import information_projection
    from .models.variance import GivenLoadings, explained_variance, from_loadings, renormalize
    from .operators.blocks import RowBlocks
    from .operators.moments import Moments
    from .operators.partition import row_blocks
    from .progress import Progress, SelectionProgress
    from .results import DSPCAComponent, ExactComponent, GreedyComponent, PMDComponent, SparseComponent
    from .selection.criteria import SparsitySelection, select_n_components, select_sparsity, sparsity_path
    from .selection.eigenvalues import CrossValidatedEigenvalues, cross_validated_eigenvalues
    from .selection.stability_result import Stability
    from .selection.stable_variables import stability
    from .selection.tuning import PriorSelection, SparsityPath, select_prior
    from .solvers.certificates import OptimalityBound, optimality_bound
    from .solvers.exact import branch_and_bound
    from .solvers.generalized_power import gpower
    from .solvers.greedy_search import greedy
    from .solvers.lasso_component import scotlass
    from .solvers.least_squares import least_squares_component
    from .solvers.penalized_decomposition import pmd
    from .solvers.semidefinite import dspca
    from .solvers.truncated_power import tpower
    from .tools.deflating import deflate
    from .tools.rotation import ObliqueRotation, l1_rotation, oblimin, orthomax, promax, varimax
    from .tools.thresholding import l1_threshold, soft_threshold, truncate

_MODULES = {  # each is imported when a name of it is first asked for
    "choice": "Choice Explained Prior Total",
    "clustering.dissimilarity": "SparseDissimilarity sparse_dissimilarity",
    "clustering.gap": "GapStatistic sparse_dissimilarity_gap sparse_kmeans_gap",
    "clustering.kmeans": "SparseKMeans sparse_kmeans",
    "generalized.cca": "SparseCCAResult sparse_cca sparse_cca_bound",
    "generalized.cca_permutation": "CCAPermutation sparse_cca_permutation",
    "generalized.eigen": "SparseEigenResult sparse_eigen sparse_eigen_bound",
    "generalized.lda": "SparseLDAResult sparse_lda",
    "linalg.threads": "get_num_threads limit_threads set_num_threads",
    "methods": (
        "DSPCA PMD BranchAndBound GPower Greedy LeastSquares Method RatioSearch SCoTLASS Thresholding TPower"
    ),
    "models.comparison": "Comparison compare",
    "models.components": "SparsePCAResult sparse_pca",
    "models.elastic_net": "SPCAResult spca",
    "models.kernel": "KernelPCAResult kernel_pca",
    "models.priors": "grid_laplacian",
    "models.probabilistic": "PPCAResult ppca",
    "models.random_features": "RandomFeatures random_fourier_features",
    "models.refinement": "refine",
    "models.rotated": "RotatedResult prs sca sca_path sma",
    "models.structured": "StructuredPCAResult oppca soppca",
    "models.under_prior": "information_projection",
    "models.variance": "GivenLoadings explained_variance from_loadings renormalize",
    "operators.blocks": "RowBlocks",
    "operators.moments": "Moments",
    "operators.partition": "row_blocks",
    "progress": "Progress SelectionProgress",
    "results": "DSPCAComponent ExactComponent GreedyComponent PMDComponent SparseComponent",
    "selection.criteria": "SparsitySelection select_n_components select_sparsity sparsity_path",
    "selection.tuning": "PriorSelection SparsityPath select_prior",
    "selection.eigenvalues": "CrossValidatedEigenvalues cross_validated_eigenvalues",
    "selection.stability_result": "Stability",
    "selection.stable_variables": "stability",
    "solvers.certificates": "OptimalityBound optimality_bound",
    "solvers.exact": "branch_and_bound",
    "solvers.generalized_power": "gpower",
    "solvers.greedy_search": "greedy",
    "solvers.lasso_component": "scotlass",
    "solvers.least_squares": "least_squares_component",
    "solvers.penalized_decomposition": "pmd",
    "solvers.semidefinite": "dspca",
    "solvers.truncated_power": "tpower",
    "tools.deflating": "deflate",
    "tools.rotation": "ObliqueRotation l1_rotation oblimin orthomax promax varimax",
    "tools.thresholding": "l1_threshold soft_threshold truncate",
}
__version__: str
_PARTS = ("anndata", "plot", "progress", "sklearn")
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = [
    "DSPCA",
    "PMD",
    "BranchAndBound",
    "CCAPermutation",
    "Choice",
    "Comparison",
    "CrossValidatedEigenvalues",
    "DSPCAComponent",
    "ExactComponent",
    "Explained",
    "GPower",
    "GapStatistic",
    "GivenLoadings",
    "Greedy",
    "GreedyComponent",
    "KernelPCAResult",
    "LeastSquares",
    "Method",
    "Moments",
    "ObliqueRotation",
    "OptimalityBound",
    "PMDComponent",
    "PPCAResult",
    "Prior",
    "PriorSelection",
    "Progress",
    "RandomFeatures",
    "RatioSearch",
    "RotatedResult",
    "RowBlocks",
    "SCoTLASS",
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
    "Stability",
    "StructuredPCAResult",
    "TPower",
    "Thresholding",
    "Total",
    "branch_and_bound",
    "compare",
    "cross_validated_eigenvalues",
    "datasets",
    "deflate",
    "dspca",
    "explained_variance",
    "from_loadings",
    "get_num_threads",
    "gpower",
    "greedy",
    "grid_laplacian",
    "information_projection",
    "kernel_pca",
    "l1_rotation",
    "l1_threshold",
    "least_squares_component",
    "limit_threads",
    "oblimin",
    "oppca",
    "optimality_bound",
    "orthomax",
    "pmd",
    "ppca",
    "promax",
    "prs",
    "random_fourier_features",
    "refine",
    "renormalize",
    "row_blocks",
    "sca",
    "sca_path",
    "scotlass",
    "select_n_components",
    "select_prior",
    "select_sparsity",
    "set_num_threads",
    "sma",
    "soft_threshold",
    "soppca",
    "sparse_cca",
    "sparse_cca_bound",
    "sparse_cca_permutation",
    "sparse_dissimilarity",
    "sparse_dissimilarity_gap",
    "sparse_eigen",
    "sparse_eigen_bound",
    "sparse_kmeans",
    "sparse_kmeans_gap",
    "sparse_lda",
    "sparse_pca",
    "sparsity_path",
    "spca",
    "stability",
    "tpower",
    "truncate",
    "varimax",
]


def _attribute(name: str) -> Any:
    """What is imported when it is first asked for."""
    if name == "__version__":
        from importlib.metadata import version

        return version(__name__)
    if name == "datasets" or name in _PARTS:
        try:
            return import_module(f".{name}", __name__)
        except ImportError as error:
            raise AttributeError(f"{__name__}.{name} is not there: {error}") from error
    if name not in _HOME:
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}{meant('', name, [*_HOME, *_PARTS])}"
        )
    module = import_module(f".{_HOME[name]}", __name__)
    value = getattr(module, name)
    if isfunction(value) and not hasattr(value, "__wrapped__"):
        value = with_advice(value)
        setattr(module, name, value)  # pickles look there
    globals()[name] = value
    return value


if not TYPE_CHECKING:  # so that a type checker knows which names there are
    __getattr__ = _attribute


def __dir__() -> list[str]:
    return sorted([*__all__, *_PARTS, "__version__"])
