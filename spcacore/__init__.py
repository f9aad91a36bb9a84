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

    source: bool = (Path(__file__).parents[1] / "meson.build").exists()  # no file of what is installed
    if source and find_spec(f"{__name__}._core") is None:
        raise ImportError(
            f"this is the source of spcacore, in {Path(__file__).parents[1]}, which has no compiled core and "
            "hides the installed package: start Python in another directory"
        ) from _error
    raise
from ._messages import meant, with_advice

if TYPE_CHECKING:  # each name twice, which says that it is public
    from . import anndata as anndata
    from . import datasets as datasets
    from . import plot as plot
    from . import sklearn as sklearn
    from .choice import Choice as Choice
    from .choice import Explained as Explained
    from .choice import Prior as Prior
    from .choice import Total as Total
    from .clustering.dissimilarity import SparseDissimilarity as SparseDissimilarity
    from .clustering.dissimilarity import sparse_dissimilarity as sparse_dissimilarity
    from .clustering.gap import GapStatistic as GapStatistic
    from .clustering.gap import sparse_dissimilarity_gap as sparse_dissimilarity_gap
    from .clustering.gap import sparse_kmeans_gap as sparse_kmeans_gap
    from .clustering.kmeans import SparseKMeans as SparseKMeans
    from .clustering.kmeans import sparse_kmeans as sparse_kmeans
    from .generalized.cca import SparseCCAResult as SparseCCAResult
    from .generalized.cca import sparse_cca as sparse_cca
    from .generalized.cca import sparse_cca_bound as sparse_cca_bound
    from .generalized.cca_permutation import CCAPermutation as CCAPermutation
    from .generalized.cca_permutation import sparse_cca_permutation as sparse_cca_permutation
    from .generalized.eigen import SparseEigenResult as SparseEigenResult
    from .generalized.eigen import sparse_eigen as sparse_eigen
    from .generalized.eigen import sparse_eigen_bound as sparse_eigen_bound
    from .generalized.lda import SparseLDAResult as SparseLDAResult
    from .generalized.lda import sparse_lda as sparse_lda
    from .linalg.threads import get_num_threads as get_num_threads
    from .linalg.threads import limit_threads as limit_threads
    from .linalg.threads import set_num_threads as set_num_threads
    from .methods import DSPCA as DSPCA
    from .methods import PMD as PMD
    from .methods import BranchAndBound as BranchAndBound
    from .methods import GPower as GPower
    from .methods import Greedy as Greedy
    from .methods import LeastSquares as LeastSquares
    from .methods import Method as Method
    from .methods import RatioSearch as RatioSearch
    from .methods import SCoTLASS as SCoTLASS
    from .methods import Thresholding as Thresholding
    from .methods import TPower as TPower
    from .models.comparison import Comparison as Comparison
    from .models.comparison import compare as compare
    from .models.components import SparsePCAResult as SparsePCAResult
    from .models.components import sparse_pca as sparse_pca
    from .models.elastic_net import SPCAResult as SPCAResult
    from .models.elastic_net import spca as spca
    from .models.kernel import KernelPCAResult as KernelPCAResult
    from .models.kernel import kernel_pca as kernel_pca
    from .models.priors import grid_laplacian as grid_laplacian
    from .models.probabilistic import PPCAResult as PPCAResult
    from .models.probabilistic import ppca as ppca
    from .models.random_features import RandomFeatures as RandomFeatures
    from .models.random_features import random_fourier_features as random_fourier_features
    from .models.refinement import refine as refine
    from .models.rotated import RotatedResult as RotatedResult
    from .models.rotated import prs as prs
    from .models.rotated import sca as sca
    from .models.rotated import sma as sma
    from .models.structured import StructuredPCAResult as StructuredPCAResult
    from .models.structured import oppca as oppca
    from .models.structured import soppca as soppca
    from .models.variance import GivenLoadings as GivenLoadings
    from .models.variance import explained_variance as explained_variance
    from .models.variance import from_loadings as from_loadings
    from .models.variance import renormalize as renormalize
    from .operators.blocks import RowBlocks as RowBlocks
    from .operators.moments import Moments as Moments
    from .operators.partition import row_blocks as row_blocks
    from .progress import Progress as Progress
    from .progress import SelectionProgress as SelectionProgress
    from .results import DSPCAComponent as DSPCAComponent
    from .results import ExactComponent as ExactComponent
    from .results import GreedyComponent as GreedyComponent
    from .results import PMDComponent as PMDComponent
    from .results import SparseComponent as SparseComponent
    from .selection.criteria import SparsitySelection as SparsitySelection
    from .selection.criteria import select_n_components as select_n_components
    from .selection.criteria import select_sparsity as select_sparsity
    from .selection.criteria import sparsity_path as sparsity_path
    from .selection.eigenvalues import CrossValidatedEigenvalues as CrossValidatedEigenvalues
    from .selection.eigenvalues import cross_validated_eigenvalues as cross_validated_eigenvalues
    from .selection.stability_result import Stability as Stability
    from .selection.stable_variables import stability as stability
    from .selection.tuning import PriorSelection as PriorSelection
    from .selection.tuning import SparsityPath as SparsityPath
    from .selection.tuning import select_prior as select_prior
    from .solvers.certificates import OptimalityBound as OptimalityBound
    from .solvers.certificates import optimality_bound as optimality_bound
    from .solvers.exact import branch_and_bound as branch_and_bound
    from .solvers.generalized_power import gpower as gpower
    from .solvers.greedy_search import greedy as greedy
    from .solvers.l1_bounded import pmd as pmd
    from .solvers.l1_bounded import scotlass as scotlass
    from .solvers.least_squares import least_squares_component as least_squares_component
    from .solvers.semidefinite import dspca as dspca
    from .solvers.truncated_power import tpower as tpower
    from .tools.rotation import ObliqueRotation as ObliqueRotation
    from .tools.rotation import l1_rotation as l1_rotation
    from .tools.rotation import oblimin as oblimin
    from .tools.rotation import orthomax as orthomax
    from .tools.rotation import promax as promax
    from .tools.rotation import varimax as varimax
    from .tools.steps import deflate as deflate
    from .tools.steps import l1_threshold as l1_threshold
    from .tools.steps import soft_threshold as soft_threshold
    from .tools.steps import truncate as truncate

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
    "models.rotated": "RotatedResult prs sca sma",
    "models.structured": "StructuredPCAResult oppca soppca",
    "models.variance": "GivenLoadings explained_variance from_loadings renormalize",
    "operators.blocks": "RowBlocks",
    "operators.partition": "row_blocks",
    "operators.moments": "Moments",
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
    "solvers.l1_bounded": "pmd scotlass",
    "solvers.least_squares": "least_squares_component",
    "solvers.semidefinite": "dspca",
    "solvers.truncated_power": "tpower",
    "tools.rotation": "ObliqueRotation l1_rotation oblimin orthomax promax varimax",
    "tools.steps": "deflate l1_threshold soft_threshold truncate",
}
__version__: str
_PARTS = ("anndata", "plot", "progress", "sklearn")
_HOME = {name: module for module, names in _MODULES.items() for name in names.split()}


def _attribute(name: str) -> Any:
    """Import and return a name when it is first asked for."""
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
    __all__ = sorted([*_HOME, "datasets"])
    __getattr__ = _attribute


def __dir__() -> list[str]:
    return sorted([*_HOME, *_PARTS, "datasets", "__version__"])
