from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

_Real = NDArray[Any]
_Index = NDArray[np.intp]

SHADOW_BLOCK: int
__pyx_capi__: dict[str, Any]

def set_threads(threads: int) -> None: ...
def threads() -> int: ...
def shares_loops() -> int: ...
def limit_own(threads: int) -> int: ...
def end_threads() -> None: ...

@disjoint_base
class Call:
    def __new__(cls, progress: Callable[[int], object] | None = None) -> Self: ...

@disjoint_base
class Screen:
    shadow_bytes: int
    ld: int
    counts: tuple[int, int, int]
    def __new__(
        cls,
        n: int,
        p: int,
        row_major: bool,
        dtype: np.dtype[Any],
        shadow: NDArray[np.int8] | None,
        step: NDArray[np.float32] | None,
        norm: NDArray[np.float32],
        slack: NDArray[np.float32],
        widest: float,
        smallest: float,
        greatest: float,
        references: bool,
    ) -> Self: ...

@disjoint_base
class Operator:
    single: bool
    dense: bool
    n: int
    p: int
    m: int
    t: int
    symmetric_form: bool
    in_memory: bool
    reads_columns: bool
    factor: float
    dtype: np.dtype[Any]
    def screened(self, screen: Screen) -> Operator: ...
    def unscreened(self) -> Operator: ...
    def with_quotient(self) -> Operator: ...
    def with_penalty(self, weight: float) -> Operator: ...
    def forward(self, index: _Index | None, value: _Real) -> _Real: ...
    def apply(self, index: _Index | None, value: _Real) -> _Real: ...
    def row_weighted(self, weight: _Real, centered: bool = False) -> Operator: ...
    def apply_at(self, index: _Index, value: _Real, columns: _Index) -> _Real: ...
    def apply_block(self, V: _Real) -> _Real: ...
    def forward_block(self, V: _Real) -> _Real: ...
    def backward_block(self, U: _Real) -> _Real: ...
    def backward(self, u: _Real) -> _Real: ...
    def largest(
        self, index: _Index | None, value: _Real, k: int, nonnegative: bool = False
    ) -> tuple[_Index, _Real, float]: ...
    def above(
        self, index: _Index | None, value: _Real, tau: float, relative: bool = False
    ) -> tuple[_Index, _Real]: ...
    def submatrix(self, index: _Index) -> _Real: ...
    def columns(self, index: _Index) -> _Real: ...
    def gram(
        self, index: _Index | None = None, progress: Callable[[int], object] | None = None
    ) -> NDArray[np.float64] | None: ...
    def outer(self) -> _Real: ...
    def deflated(
        self, method: str, index: _Index, value: _Real, image: _Real | None, coefficient: float
    ) -> Operator: ...
    def truncated_power_each(
        self,
        index: NDArray[np.intp],
        value: _Real,
        k: int,
        max_iter: int,
        tol: float,
        progress: Callable[[int], object] | None = None,
        nonnegative: bool = False,
    ) -> tuple[_Index, _Real, _Real, _Index]: ...
    def truncated_power(
        self,
        index: _Index,
        value: _Real,
        k: int,
        max_iter: int,
        tol: float,
        progress: Callable[[int], object] | None = None,
        nonnegative: bool = False,
    ) -> tuple[int, _Index, _Real, float, int]: ...
    def gpower(
        self,
        index: _Index,
        value: _Real,
        l0: bool,
        gamma: float,
        max_iter: int,
        tol: float,
        progress: Callable[[int], object] | None = None,
    ) -> tuple[int, _Index, _Real, float, float, int]: ...
    def pmd(
        self,
        index: _Index,
        value: _Real,
        bound: float,
        sample_bound: float,
        max_iter: int,
        tol: float,
        progress: Callable[[int], object] | None = None,
        nonnegative: bool = False,
    ) -> tuple[int, _Index, _Real, float, int]: ...
    def scotlass(
        self,
        start: _Real,
        Q: _Real,
        bound: float,
        max_iter: int,
        tol: float,
        progress: Callable[[int], object] | None = None,
    ) -> tuple[int, _Real, float, int]: ...

def dense(
    X: _Real, symmetric_form: bool, mean: _Real | None, weight: _Real | None, range_: float, factor: float
) -> Operator: ...
def compressed(
    n: int,
    p: int,
    row_major: bool,
    data: _Real,
    indices: NDArray[Any],
    indptr: NDArray[Any],
    symmetric_form: bool,
    mean: _Real | None,
    weight: _Real | None,
    range_: float,
    factor: float,
) -> Operator: ...
def products(owner: Any, n: int, p: int, symmetric_form: bool, factor: float, single: bool) -> Operator: ...
def leading_eigenvector(G: _Real) -> tuple[float, _Real]: ...
def dense_statistics(
    X: _Real, center: bool, shadow: NDArray[np.int8] | None = None
) -> tuple[NDArray[np.float64], NDArray[np.float32]]: ...
def compressed_statistics(
    n: int, p: int, row_major: bool, data: _Real, indices: NDArray[Any], indptr: NDArray[Any]
) -> NDArray[np.float64]: ...
def symmetry(A: _Real) -> tuple[float, float, float]: ...
def select_largest(x: _Real, k: int) -> _Index: ...
def truncate(x: _Real, k: int) -> None: ...
def soft_threshold(a: _Real, level: float, out: _Real) -> None: ...
def l1_threshold(a: _Real, bound: float, nonnegative: int, w: _Real) -> float | None: ...
def l1_ball_level(a: _Real, bound: float, start: float = 0) -> float: ...
def l1_kept_level(a: _Real, bound: float) -> float: ...
def bordered_eigenvalues(
    C: _Real,
    candidate: _Index,
    diagonal: NDArray[np.float64],
    eigenvalues: NDArray[np.float64],
    W: NDArray[np.float64],
    norm: NDArray[np.float64] | None = None,
    Q: NDArray[np.float64] | None = None,
    R: NDArray[np.float64] | None = None,
    strength: float = 0,
    least: float = 0,
) -> NDArray[np.float64]: ...
def deleted_eigenvalues(eigenvalues: NDArray[np.float64], W: NDArray[np.float64]) -> NDArray[np.float64]: ...
def dspca(
    A: NDArray[np.float64],
    constrained: bool,
    limit: float,
    tol: float,
    max_iter: int,
    progress: Callable[[int], object] | None = None,
) -> tuple[int, NDArray[np.float64], float, float, int]: ...
def elastic_net(
    G: NDArray[np.float64],
    c: NDArray[np.float64],
    limit: int,
    ridge: float,
    floor: float,
    least: float,
    index: _Index,
    value: NDArray[np.float64],
) -> tuple[int, _Index, NDArray[np.float64], float]: ...
def branch(
    N: _Real,
    k: int,
    pool: NDArray[np.uint8],
    which: _Index,
    empty: _Index,
    work: _Real,
    progress: Callable[[int], object] | None = None,
) -> tuple[_Index, _Real]: ...
def branch_work(p: int, k: int) -> int: ...
def add_distances(T: _Real, w: _Real, squared: bool, D: NDArray[np.float64]) -> None: ...
def absolute_products(T: _Real, u: _Real) -> NDArray[np.float64]: ...
def orthomax(Y: _Real, gamma: float, max_iter: int, tol: float) -> tuple[int, NDArray[np.float64], int]: ...
def l1_sweeps(Y: _Real, max_iter: int, tol: float, R: NDArray[np.float64]) -> tuple[int, int]: ...
def deflate_covariance(method: str, A: _Real, index: _Index, value: _Real) -> bool: ...
def deflate_data(method: str, X: _Real, index: _Index, value: _Real, mean: _Real | None) -> bool: ...
