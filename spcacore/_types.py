"""The types of arguments of public functions.

`tests/house/test_signatures.py` compares their words with the values that the code takes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray


class SparseMatrix(Protocol):
    """A matrix or array of scipy.sparse; the protocol spares the import of scipy.sparse."""

    @property
    def nnz(self) -> int: ...
    def tocsr(self) -> Any: ...


class LinearOperator(Protocol):
    """A `scipy.sparse.linalg.LinearOperator`."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def matvec(self, x: Any) -> Any: ...


class Blocks(Protocol):
    """`RowBlocks`, or something that can be read as row blocks."""

    @property
    def shape(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...


class Estimator(Protocol):
    """An estimator with `components_` once it is fitted, as in scikit-learn."""

    def fit(self, X: Any) -> Any: ...


AnyArray = NDArray[Any]  # float32, float64 or integers
Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]
DType: TypeAlias = np.dtype[Any]  # the type of stored numbers, or of products

MatrixLike: TypeAlias = ArrayLike | SparseMatrix | Blocks
OperatorLike: TypeAlias = MatrixLike | LinearOperator | Callable[[AnyArray], AnyArray]
Switch: TypeAlias = bool | ArrayLike  # one answer for all variables, or a value for each
Weights: TypeAlias = ArrayLike | None
Variables: TypeAlias = ArrayLike | None
Names: TypeAlias = tuple[str, ...] | None  # names of variables or samples, if there are any
Groups: TypeAlias = ArrayLike | Mapping[str, object] | None
Counted: TypeAlias = Literal["groups", "variables"]
StartLike: TypeAlias = str | ArrayLike | None
RandomSource: TypeAlias = int | np.random.Generator | None
RandomState: TypeAlias = RandomSource | np.random.RandomState  # what scikit-learn takes
ModelLike: TypeAlias = Callable[..., object] | Estimator  # a partial is a callable, too
Grid: TypeAlias = Sequence[float] | Sequence[Sequence[float]] | AnyArray | Mapping[str, ArrayLike]

Kind: TypeAlias = Literal["data", "covariance"]
ShareOf: TypeAlias = Literal["variance", "score"]
Definition: TypeAlias = Literal["cumulative", "adjusted", "raw", "regression"]
Rotation: TypeAlias = Literal["varimax", "l1", "none"]
ThresholdRule: TypeAlias = Literal["soft", "hard"]
Metric: TypeAlias = Literal["sqeuclidean", "absolute", "precomputed"]
Rule: TypeAlias = Literal["one_se", "best"]
Criterion: TypeAlias = Literal["cv", "permutation", "correlation", "sparseness", "bic", "stability"]
CountCriterion: TypeAlias = Literal["cv", "permutation"]
Assumption: TypeAlias = Literal["none", "unimodal"]
Alignment: TypeAlias = Literal["assignment", "procrustes"]
Support: TypeAlias = Literal["free", "common", "disjoint"]
Bounded: TypeAlias = Literal["bounds", "jointly"]
EigenSolver: TypeAlias = Literal["lapack", "lanczos"]
Resampling: TypeAlias = Literal["complementary", "half", "bootstrap"]
ScreeningMode: TypeAlias = Literal["auto", "gram", "working_set", "both", "shadow", "references", "none"]
MethodName: TypeAlias = Literal[
    "tpower", "gpower", "greedy", "pmd", "scotlass", "dspca", "branch_and_bound", "least_squares",
    "thresholding",
]  # fmt: skip
Deflation: TypeAlias = Literal[
    "hotelling", "projection", "schur", "orthogonalized_hotelling", "orthogonalized_projection",
    "orthogonalized_schur", "generalized", "naive", "orthogonal", "uncorrelated",
]  # fmt: skip
