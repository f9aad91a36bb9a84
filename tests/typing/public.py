"""What a type checker knows of the public names. `nox -s types` asks mypy and pyright; it is never run."""

from typing import Any, assert_type

import numpy as np
from numpy.typing import NDArray

import spcacore
from spcacore import kernels

X, labels = np.zeros((20, 6)), np.zeros(20, int)

version: str = spcacore.__version__
number: int = spcacore.__version__  # type: ignore[assignment]
spcacore.sparse_pcaa(X)  # type: ignore[attr-defined]
spcacore.sparse_pca(X, 2, 3, method="tpow")  # type: ignore[arg-type]
spcacore.sparse_pca(X, 2, 3, deflate="schur")  # type: ignore[call-arg]

result = spcacore.sparse_pca(X, 2, 3, method=spcacore.TPower(n_starts=5), choice=spcacore.Choice(exclude=[0]))
assert_type(result, spcacore.SparsePCAResult)
assert_type(result.loadings, NDArray[Any])  # of the type of X
assert_type(result.explained_variance, NDArray[np.float64])
assert_type(result.explained_variance_ratio, NDArray[np.float64] | None)
assert_type(result.cardinality, NDArray[np.intp])
assert_type(result.converged, NDArray[np.bool_])
assert_type(result.total_variance, float | None)
assert_type(result.method, str)
assert_type(result.summary(), str)
assert_type(result.extend(X, 1), spcacore.SparsePCAResult)

assert_type(spcacore.branch_and_bound(X, 3), spcacore.ExactComponent)
assert_type(spcacore.spca(X, 2, 3), spcacore.SPCAResult)
assert_type(spcacore.sparse_lda(X, labels, 1, 3), spcacore.SparseLDAResult)
assert_type(spcacore.explained_variance(X, result), NDArray[np.float64])

many = kernels.sparse_pca_each(np.zeros((3, 20, 6)), 2, 3)
assert_type(many, kernels.ManyComponents)
assert_type(many.n_components, NDArray[np.intp])
