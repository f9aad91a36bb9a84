"""What public functions take, in types; `tests/house/test_signatures.py` compares the words with the code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray


class SparseMatrix(Protocol):
    """A matrix or an array of scipy.sparse, which is not imported for its name."""

    @property
    def nnz(self) -> int: ...
    def tocsr(self) -> Any: ...


class LinearOperator(Protocol):
    """As scipy.sparse.linalg has it."""

    @property
    def shape(self) -> tuple[int, ...]: ...
    def matvec(self, x: Any) -> Any: ...


class Blocks(Protocol):
    """`RowBlocks`, and what makes one."""

    @property
    def shape(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...


class Estimator(Protocol):
    """What has `components_` once it is fitted, as scikit-learn has them."""

    def fit(self, X: Any) -> Any: ...


AnyArray = NDArray[Any]  # of either precision, or of integers
Array = NDArray[np.float64]
Index = NDArray[np.intp]
Mask = NDArray[np.bool_]
DType: TypeAlias = np.dtype[Any]  # in which numbers are stored, or products computed

MatrixLike: TypeAlias = ArrayLike | SparseMatrix | Blocks
OperatorLike: TypeAlias = MatrixLike | LinearOperator | Callable[[AnyArray], AnyArray]
Switch: TypeAlias = bool | ArrayLike  # for all variables, or a value for each
Weights: TypeAlias = ArrayLike | None
Variables: TypeAlias = ArrayLike | None
Names: TypeAlias = tuple[str, ...] | None  # of variables or samples, where they have some
Groups: TypeAlias = ArrayLike | Mapping[str, object] | None
Counted: TypeAlias = Literal["groups", "variables"]
StartLike: TypeAlias = str | ArrayLike | None
RandomSource: TypeAlias = int | np.random.Generator | None
RandomState: TypeAlias = RandomSource | np.random.RandomState  # as scikit-learn takes them
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
