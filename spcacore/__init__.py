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
from .gpower import gpower
from .greedy import greedy
from .kernel import KernelPCAResult, RandomFeatures, kernel_pca, random_fourier_features
from .pmd import pmd
from .refinement import refine
from .rotated import prs, sca, sca_path, sma
from .rotation import l1_rotation, orthomax, varimax
from .scotlass import scotlass
from .spca import spca
from .threshold import l1_threshold, soft_threshold, truncate
from .tpower import tpower
from .variance import explained_variance, renormalize

__all__ = [
    "DSPCAComponent",
    "ExactComponent",
    "GapStatistic",
    "GreedyComponent",
    "KernelPCAResult",
    "OptimalityBound",
    "PMDComponent",
    "Progress",
    "RandomFeatures",
    "RotatedResult",
    "SPCAResult",
    "SparseComponent",
    "SparseDissimilarity",
    "SparseKMeans",
    "SparsePCAResult",
    "branch_and_bound",
    "datasets",
    "deflate",
    "dspca",
    "explained_variance",
    "gpower",
    "greedy",
    "kernel_pca",
    "l1_rotation",
    "l1_threshold",
    "optimality_bound",
    "orthomax",
    "pmd",
    "prs",
    "random_fourier_features",
    "refine",
    "renormalize",
    "sca",
    "sca_path",
    "scotlass",
    "sma",
    "soft_threshold",
    "sparse_dissimilarity",
    "sparse_dissimilarity_gap",
    "sparse_kmeans",
    "sparse_kmeans_gap",
    "sparse_pca",
    "spca",
    "tpower",
    "truncate",
    "varimax",
]
