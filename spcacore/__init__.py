"""Sparse principal component analysis: sparse loadings, dense or sparse data."""

from . import datasets
from ._result import (
    DSPCAComponent,
    ExactComponent,
    GreedyComponent,
    PMDComponent,
    Progress,
    RotatedResult,
    SparseComponent,
    SparsePCAResult,
    SPCAResult,
)
from .cca import CCAPermutation, SparseCCAResult, sparse_cca, sparse_cca_permutation
from .certificates import OptimalityBound, optimality_bound
from .clustering import (
    GapStatistic,
    SparseDissimilarity,
    SparseKMeans,
    sparse_dissimilarity,
    sparse_dissimilarity_gap,
    sparse_kmeans,
    sparse_kmeans_gap,
)
from .components import sparse_pca
from .deflation import deflate
from .dspca import dspca
from .exact import branch_and_bound
from .generalized import SparseEigenResult, sparse_eigen
from .gpower import gpower
from .greedy import greedy
from .kernel import KernelPCAResult, RandomFeatures, kernel_pca, random_fourier_features
from .lda import SparseLDAResult, sparse_lda
from .pmd import pmd
from .probabilistic import PPCAResult, ppca
from .refinement import refine
from .rotated import prs, sca, sca_path, sma
from .rotation import l1_rotation, orthomax, varimax
from .scotlass import scotlass
from .spca import spca
from .structured import StructuredPCAResult, grid_laplacian, oppca, soppca
from .threshold import l1_threshold, soft_threshold, truncate
from .tpower import tpower
from .variance import explained_variance, renormalize

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
    "SPCAResult",
    "SparseCCAResult",
    "SparseComponent",
    "SparseDissimilarity",
    "SparseEigenResult",
    "SparseKMeans",
    "SparseLDAResult",
    "SparsePCAResult",
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
    "sca",
    "sca_path",
    "scotlass",
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
    "spca",
    "tpower",
    "truncate",
    "varimax",
]
