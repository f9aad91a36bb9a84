"""Sparse principal component analysis: sparse loadings, dense or sparse data."""

from . import datasets
from ._result import Progress, SparseComponent, SparsePCAResult
from .components import sparse_pca
from .deflation import deflate
from .rotation import orthomax, varimax
from .tpower import tpower
from .variance import explained_variance, renormalize

__all__ = [
    "Progress",
    "SparseComponent",
    "SparsePCAResult",
    "datasets",
    "deflate",
    "explained_variance",
    "orthomax",
    "renormalize",
    "sparse_pca",
    "tpower",
    "varimax",
]
