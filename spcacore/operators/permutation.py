"""Data with the entries of each column in another order."""

from __future__ import annotations

from typing import Any

import numpy as np

from .._validation import is_sparse

__all__ = ["permuted_columns"]


def permuted_columns(X: Any, generator: np.random.Generator) -> Any:
    """The entries of each column in a random order, the same for each format of a sparse matrix."""
    if not is_sparse(X):
        return generator.permuted(X, axis=0)
    from scipy.sparse import csc_array

    X = X.tocsc()
    if not X.data.all():  # which zeros are stored must not decide
        X = X.copy()
        X.eliminate_zeros()
    indices, n = np.empty_like(X.indices), X.shape[0]
    for start, end in zip(X.indptr[:-1], X.indptr[1:], strict=True):
        indices[start:end] = generator.choice(n, end - start, replace=False)
    return csc_array((X.data, indices, X.indptr), shape=X.shape)
