from collections.abc import Callable, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import disjoint_base

_Real = NDArray[Any]
_Index = NDArray[np.intp]
_Double = NDArray[np.float64]
_Hook = Callable[[int], object] | None

SHADOW_BLOCK: int
__pyx_capi__: dict[str, Any]
table: Any

def clones() -> tuple[str, ...]: ...
def clone() -> str: ...
def set_threads(threads: int) -> None: ...
def threads() -> int: ...
def shares_loops() -> int: ...
def limit_own(threads: int) -> int: ...
def end_threads() -> None: ...

@disjoint_base
class Call:
    def __new__(cls, progress: _Hook = None) -> Self: ...

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

def screen_bounds(
    n: int,
    single: bool,
    range: float,
    statistics: _Double,
    size: NDArray[np.float32] | None,
    mean: _Double | None,
    weight: _Double | None,
    diagonal: _Double,
    moment: _Double,
) -> tuple[NDArray[np.float32] | None, NDArray[np.float32], NDArray[np.float32], float, float, float]: ...

@disjoint_base
class UnitRule:
    def __init__(
        self,
        unit: _Index,
        size: _Index,
        allowed: NDArray[np.uint8],
        included: NDArray[np.uint8],
        signs: NDArray[np.int8] | None = None,
        step: int = 0,
        count: int = 0,
        level: float = 0,
        Q: _Double | None = None,
    ) -> None: ...
    def largest(self, norm: _Double) -> NDArray[np.bool_]: ...
    def step(self, y: _Double, quadratic: float) -> tuple[_Double, NDArray[np.bool_]]: ...

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
    by_passes: bool
    factored: bool
    reads_columns: bool
    factor: float
    dtype: np.dtype[Any]
    def unit_ascend(
        self, rule: UnitRule, start: _Double, max_iter: int, tol: float, progress: _Hook = None
    ) -> tuple[int, _Double, NDArray[np.bool_], float, float, int]: ...
    def screened(self, screen: Screen) -> Operator: ...
    def unscreened(self) -> Operator: ...
    def with_quotient(self) -> Operator: ...
    def with_penalty(self, weight: float) -> Operator: ...
    def forward(self, index: _Index | None, value: _Real) -> _Real: ...
    def apply(self, index: _Index | None, value: _Real) -> _Real: ...
    def row_weighted(self, weight: _Real, centered: bool = False) -> Operator: ...
    def apply_at(self, index: _Index, value: _Real, columns: _Index, image: _Real | None = None) -> _Real: ...
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
    def columns(self, index: _Index, out: _Real | None = None) -> _Real: ...
    def gram(
        self, index: _Index | None = None, progress: _Hook = None, rows: int | None = None
    ) -> _Double | None: ...  # fmt: skip
    def rough_gram(self, index: _Index) -> NDArray[np.float32]: ...
    def moments(self) -> tuple[_Double, _Double]: ...
    def outer(self) -> _Real: ...
    def deflated(
        self, method: str, index: _Index, value: _Real, image: _Real | None, coefficient: float
    ) -> Operator: ...
    def truncated_power(
        self, index: _Index, value: _Real, k: int, max_iter: int, tol: float, progress: _Hook = None,
        nonnegative: bool = False,
    ) -> tuple[int, _Index, _Real, float, int]: ...  # fmt: skip
    def gpower(
        self,
        index: _Index,
        value: _Real,
        l0: bool,
        gamma: float,
        max_iter: int,
        tol: float,
        progress: _Hook = None,
    ) -> tuple[int, _Index, _Real, float, float, int]: ...
    def pmd(
        self,
        index: _Index,
        value: _Real,
        bound: float,
        sample_bound: float,
        max_iter: int,
        tol: float,
        progress: _Hook = None,
        nonnegative: bool = False,
    ) -> tuple[int, _Index, _Real, float, int]: ...
    def scotlass(
        self, start: _Real, Q: _Real, bound: float, max_iter: int, tol: float, progress: _Hook = None
    ) -> tuple[int, _Real, float, int]: ...

def dense(
    X: _Real,
    symmetric_form: bool,
    mean: _Real | None = None,
    weight: _Real | None = None,
    range_: float = 1,
    factor: float = 1,
) -> Operator: ...
def operator(
    X: Any,
    symmetric_form: bool = False,
    mean: _Real | None = None,
    weight: _Real | None = None,
    range_: float = 1.0,
    factor: float = 1.0,
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
def components_of_each(
    X: Any,
    covariance: bool,
    center: bool,
    scale: bool,
    r: int,
    k: int,
    deflation: int,
    thorough: bool,
    max_iter: int,
    tol: float,
) -> tuple[Any, Any, Any, Any, Any, Any, Any]: ...
def leading_eigenvector(G: _Real) -> tuple[float, _Real]: ...
def tridiagonal(A: _Real) -> tuple[_Real, _Real, _Real]: ...
def untridiagonal(A: _Real, tau: _Real, V: _Real) -> None: ...
def dense_statistics(
    X: _Real, center: bool, shadow: NDArray[np.int8] | None = None
) -> tuple[_Double, NDArray[np.float32]]: ...
def compressed_statistics(
    n: int, p: int, row_major: bool, data: _Real, indices: NDArray[Any], indptr: NDArray[Any]
) -> _Double: ...
def weighted_statistics(X: _Real, weight: _Double) -> _Double: ...
def weighted_compressed(
    p: int, row_major: bool, data: _Real, indices: NDArray[Any], indptr: NDArray[Any], weight: _Double
) -> _Double: ...
def statistics(X: Any, weight: _Double | None = None) -> Any: ...
def fill_missing(X: _Real, center: bool, scale: bool) -> tuple[_Double, _Double, _Real, int]: ...
def symmetry(A: Any) -> tuple[float, float, float]: ...
def dense_symmetry(A: _Real) -> tuple[float, float, float]: ...
def compressed_symmetry(
    data: _Real, indices: NDArray[Any], indptr: NDArray[Any]
) -> tuple[float, float, float]: ...
def line_order(length: int, stored: int, indptr: NDArray[Any], indices: NDArray[Any]) -> int: ...
def scores(X: _Real, index: _Index | None, mean: _Real, V: _Real, out: _Real) -> None: ...
def fingerprint(X: NDArray[Any], keys: NDArray[np.uint64], sums: NDArray[np.uint64]) -> None: ...
def whole_moments(
    X: NDArray[Any],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]] | None: ...
def orthogonal_parts(V: _Real, epsilon: float) -> _Real: ...
def select_largest(x: _Real, k: int) -> _Index: ...
def truncate(x: _Real, k: int) -> None: ...
def soft_threshold(a: _Real, level: float, out: _Real) -> None: ...
def l1_threshold(a: _Real, bound: float, nonnegative: int, w: _Real) -> float | None: ...
def l1_ball_level(a: _Real, bound: float, start: float = 0) -> float: ...
def l1_kept_level(a: _Real, bound: float) -> float: ...
def bordered_eigenvalues(
    C: _Real,
    candidate: _Index,
    diagonal: _Double,
    eigenvalues: _Double,
    W: _Double,
    norm: _Double | None = None,
    Q: _Double | None = None,
    R: _Double | None = None,
    strength: float = 0,
    least: float = 0,
) -> _Double: ...
def exchange(
    C: _Real,
    leaving: _Index,
    candidate: _Index,
    diagonal: _Double,
    eigenvalues: _Double,
    U: _Double,
    level: float,
    slack: float,
    tie: float,
) -> tuple[int, int, float] | None: ...
def truncated_power_of_matrix(
    A: _Real, index: _Index, value: _Real, k: int, max_iter: int, tol: float, progress: _Hook = None
) -> tuple[_Index, _Real, _Real, _Index, NDArray[np.intc]]: ...

@disjoint_base
class Population:
    spent: float
    def __init__(
        self,
        A: _Real,
        size: _Index,
        room: int,
        members: int,
        starts: Sequence[Sequence[tuple[_Index, _Real]]],
        bits: int,
        seed: int,
        moved: int,
        constraint: int,
        rule: UnitRule | None = None,
    ) -> None: ...
    def go_on(self, moves: int, patience: int, limit: float, given: int = 0) -> bool: ...
    def best(self, count: int) -> list[tuple[float, list[tuple[_Index, _Double]]]]: ...

def swap(
    A: _Real,
    support: _Index,
    diagonal: _Double,
    rise: float,
    gap: float,
    slack: float,
    tie: float,
    most: int,
) -> tuple[_Index, _Double, float, bool]: ...
def search(
    A: _Real,
    k: int,
    plan: tuple[Any, ...],
    score: _Real | None = None,
    known: bool = False,
    progress: _Hook = None,
) -> tuple[_Index, _Double, _Index, tuple[int, int, int, int, bool]]: ...
def signed_vector(
    G: _Double, signs: NDArray[np.int8], begin: _Double | None = None
) -> tuple[_Double, float]: ...
def small_eigen(A: _Double) -> tuple[_Double, _Double]: ...
def deleted_eigenvalues(eigenvalues: _Double, W: _Double) -> _Double: ...
def dspca(
    A: _Double, constrained: bool, limit: float, tol: float, max_iter: int, progress: _Hook = None
) -> tuple[int, _Double, float, float, int]: ...
def shaped(
    A: _Double,
    unit: _Index,
    weight: _Double,
    diagonal: _Double,
    signs: NDArray[np.int8] | None,
    constrained: bool,
    penalty: float,
    max_iter: int,
    tol: float,
    progress: _Hook = None,
) -> tuple[int, _Double, float, float, int, _Double]: ...
def elastic_net(
    G: _Double,
    c: _Double,
    limit: int,
    ridge: float,
    floor: float,
    least: float,
    index: _Index,
    value: _Double,
) -> tuple[int, _Index, _Double, float]: ...
def unit_net(
    rule: UnitRule, K: _Double, c: _Double, start: _Double, near: float = 0.0
) -> tuple[_Double, float, _Double]: ...
def best_pairs(A: _Double, B: _Double, least: float, most: int, part: _Index | None = None) -> _Index: ...
def prior_support(indptr: _Index, indices: _Index, data: _Double, r: _Double, a: float, k: int) -> _Index: ...
def branch(
    N: _Real,
    k: int,
    pool: NDArray[np.uint8],
    which: _Index,
    empty: _Index,
    work: _Real,
    progress: _Hook = None,
) -> tuple[_Index, _Real]: ...
def branch_work(p: int, k: int) -> int: ...
def add_distances(T: _Real, w: _Real, squared: bool, D: _Double) -> None: ...
def matrix_product(A: _Real, B: _Real | None, factor: float, out: _Real) -> None: ...
def largest_norms(A: _Real, rows: _Index, k: int) -> _Real: ...
def principal_submatrix(A: _Real, index: _Index) -> _Real: ...
def absolute_products(T: _Real, u: _Real) -> _Double: ...
def orthomax(Y: _Real, gamma: float, max_iter: int, tol: float) -> tuple[int, _Double, int]: ...
def l1_sweeps(Y: _Real, max_iter: int, tol: float, R: _Double) -> tuple[int, int]: ...
def deflate_covariance(method: str, A: _Real, index: _Index, value: _Real) -> bool: ...
def deflate_data(method: str, X: _Real, index: _Index, value: _Real, mean: _Real | None) -> bool: ...
