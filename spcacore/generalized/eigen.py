"""Sparse generalized eigenproblems: `max x'Ax/x'Bx` with few nonzeros.

All work is done in units in which the diagonals of B are near 1: with a diagonal D of powers of two,
`x = Dy` has the support of y, and the pencil (DAD, DBD) its values.

Greedy search.  On a support S let the columns of W have `W'B_S W = I` and `W'A_S W = diag(pole)`. With
`b = W'A_Sj`, `d = W'B_Sj` and `sigma = B_jj - d'd`, the pencil on S and j is, by one step of a Cholesky
factorization, the matrix

    diag(pole)  e         e = (b - pole d)/sqrt(sigma)
    e'          corner    corner = (a_jj - 2 d'b + sum pole d^2)/sigma,

whose largest eigenvalue is a root of one equation (greedy.c); so all variables that may join are judged by
two products of matrices and one root each, and those that may leave by one root each (Moghaddam, Weiss and
Avidan 2006).  Where sigma is 0 the direction `e_j - Wd` has x'Bx = 0; it must be one that A maps to zero.

Truncated Rayleigh flow (Tan, Wang, Liu and Zhang 2018).  `x <- x + eta (Ax/rho - Bx)`, rho = x'Ax/x'Bx,
of which the k largest entries are kept; each step raises rho if `eta lambda_max(B) < 1` and k is large
enough.

Further directions.  With y = B^(1/2)x the problem is that of sparse principal components, and what deflates
`B^(-1/2) A B^(-1/2)` there (Mackey 2008) is here, with x'Bx = 1, z = Bx and w = Ax,

    Hotelling      A - (x'w) zz'
    projection     (I - zx') A (I - xz') = A - zw' - wz' + (x'w) zz'
    Schur          A - ww'/(x'w)

and with x replaced by its part B-orthogonal to the earlier ones in the orthogonalized forms; generalized
deflation takes zz' of that part from B, too.  These are terms of low rank and never enter A or B.
"""

from __future__ import annotations

import contextlib
import copy
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import (
    GRADIENT_SUPPORT,
    PENCIL_ALL_SWAPS_WORK,
    PENCIL_BACKWARD_ORDER,
    PENCIL_GREEDY_WORK,
    PENCIL_START_WORK,
    PENCIL_STARTS,
    PENCIL_SUPPORT,
    PENCIL_SWAP_ROUNDS,
    PENCIL_SWAP_WORK,
    PENCIL_TIED_VARIABLES,
    SUBMATRIX_ORDER,
    UNINTERRUPTED_ORDER,
    USUAL_BACKWARD_ORDER,
)
from .._messages import counted
from .._validation import (
    LARGEST,
    Hook,
    as_seed,
    check_bool,
    check_callback,
    check_choice,
    column_names,
    float_type,
    integer,
    is_sparse,
    number,
    raise_not_finite,
    real_array,
    refuse_not_finite,
)
from ..linalg.eigen import largest_eigenpairs
from ..linalg.lapack import interruptible
from ..linalg.orthogonal import fix_sign
from ..operators.deflation import DEFLATIONS as ALL_DEFLATIONS
from ..operators.deflation import Deflation
from ..operators.dense import blas_layout
from ..operators.sparse_format import compressed
from ..progress import Callback, Progress
from ..results import Named
from ..solvers.base import Ended, ProgressHook, ended, hook_of_component
from ..solvers.greedy_search import ties

DEFLATIONS = {name: one for name, one in ALL_DEFLATIONS.items() if not one.residual}
SOLVERS = ("auto", "greedy", "rayleigh_flow")
STRATEGIES = ("auto", "forward", "backward", "bidirectional")
Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True, eq=False)
class SparseEigenResult(Named):
    """Sparse generalized eigenvectors, in the order in which they were found.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        Columns of unit 2-norm; in each, the entry of largest magnitude is positive.
    values : ndarray of shape (r,)
        `x'Ax/x'Bx` of each.
    deflated_values : ndarray of shape (r,)
        The same in the deflated pencil, which is what was maximized; of the first it is the value.
    metric_norm : ndarray of shape (r,)
        `sqrt(x'Bx)`: `loadings / metric_norm` has `x'Bx = 1`.
    upper_bound : ndarray of shape (r,) or None
        No x at all has a larger ratio in the deflated pencil: its largest generalized eigenvalue. None
        where that was not computed, with more than 1024 variables, or where B is singular along a
        direction that A does not map to zero.
    cardinality : ndarray of shape (r,), int
        Nonzeros of each loading.
    n_iter : ndarray of shape (r,), int
        Supports, or iterations of the flow, that were looked at.
    converged : ndarray of shape (r,), bool
        Whether exchanges of variables ended at a support that none improves, among those considered, and
        the flow within `max_iter`.
    method, deflation : str
        "greedy" or "rayleigh_flow", that of the largest cardinality.
    names : tuple of str or None
        Names of the variables, when A had any.
    """

    loadings: NDArray[Any]
    values: NDArray[np.float64]
    deflated_values: NDArray[np.float64]
    metric_norm: NDArray[np.float64]
    upper_bound: NDArray[np.float64] | None
    cardinality: NDArray[np.intp]
    n_iter: NDArray[np.intp]
    converged: NDArray[np.bool_]
    method: str
    deflation: str
    names: tuple[str, ...] | None = None

    def __repr__(self) -> str:
        p, r = self.loadings.shape
        values = ", ".join(f"{value:.6g}" for value in self.values)
        return (
            f"SparseEigenResult(method={self.method!r}, p={p}, {counted(r, 'direction')}, "
            f"cardinality={self.cardinality.tolist()}, values=[{values}])"
        )


def sparse_eigen(
    A: Any,
    B: Any,
    cardinality: Any,
    *,
    n_components: int = 1,
    method: str = "auto",
    strategy: str = "auto",
    swaps: bool = True,
    deflation: str = "projection",
    max_iter: int = 1000,
    tol: float = 1e-8,
    rng: Any = None,
    callback: Callback | None = None,
) -> SparseEigenResult:
    """Sparse generalized eigenvectors of a symmetric pencil.

    Searches `max x'Ax/x'Bx` over x with at most `cardinality` nonzeros, for B positive semidefinite and
    possibly singular, and then the same of the deflated pencil, `n_components` times.

    Parameters
    ----------
    A : array-like or sparse matrix of shape (p, p)
        Symmetric; it may be indefinite. float32 and float64 are not copied; a sparse matrix stays sparse.
    B : array-like or sparse matrix of shape (p, p)
        Symmetric positive semidefinite. Where x'Bx = 0, Ax must be 0 too: such directions count for
        nothing. Otherwise the ratio has no bound, and a search that meets such a direction raises.
    cardinality : int or sequence of n_components ints
        k, in [1, p], at most 4000.
    n_components : int, default 1
        In [1, p].
    method : {"auto", "greedy", "rayleigh_flow"}, default "auto"
        "greedy": one variable more, or less, at a time; `4/3 k^3 p` multiplications forward. "rayleigh_flow":
        the truncated flow from several starts, some ten to a hundred products with k columns of A and B
        each. "auto": greedy, unless that takes more than 4e10 multiplications.
    strategy : {"auto", "forward", "backward", "bidirectional"}, default "auto"
        Of greedy: "forward" from the best variable; "backward" from all of them, at most 1000;
        "bidirectional" both, of which the better is kept. "auto": forward; for at most 150 variables, if B
        bounds the ratio of them all, backward too; and forward from up to eight other variables, where that
        takes no more than 2e8 multiplications.
    swaps : bool, default True
        Then exchange one variable for another as long as that raises the ratio. Where a round of exchanges
        would cost more than 1e9 multiplications, only the most promising variables may enter. Exchanges end
        after 2e10 multiplications from each start, of greedy after twice those of its search if these are
        more.
    deflation : str, default "projection"
        As in `deflate`, in the metric of B: "hotelling", "projection", "schur",
        "orthogonalized_hotelling", "orthogonalized_projection", "orthogonalized_schur" or "generalized".
    max_iter : int, default 1000
        Steps of the flow from each start.
    tol : float, default 1e-8
        The flow ends when its support is stable and the ratio rises by a smaller fraction.
    rng : None, int or numpy Generator, optional
        For the starting vector of the estimate of the largest eigenvalue of B that the flow needs.
    callback : callable, optional
        Called with a `Progress` after each step, and with the value once a direction is found.
        Raising StopIteration ends the search early, see `Progress`.

    Returns
    -------
    SparseEigenResult
        `loadings` (p, r) of unit 2-norm, `values` (r,), `metric_norm` (r,), `upper_bound` (r,), ... Fewer
        directions, and a RuntimeWarning, where the deflated pencil has nothing left.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, matrices that are not square, symmetric or of one size, B not
        positive semidefinite, a ratio without bound, or an option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    B. Moghaddam, Y. Weiss and S. Avidan (2006). Generalized spectral bounds for sparse LDA. Proceedings of
    the 23rd International Conference on Machine Learning, 641-648.

    K. M. Tan, Z. Wang, H. Liu and T. Zhang (2018). Sparse generalized eigenvalue problem: optimal
    statistical rates via truncated Rayleigh flow. Journal of the Royal Statistical Society B 80, 1057-1086,
    algorithm 1.

    L. Mackey (2008). Deflation methods for sparse PCA. Advances in Neural Information Processing Systems 21.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> A = np.diag([4.0, 3.0, 2.0, 1.0])
    >>> B = np.diag([4.0, 1.0, 1.0, 1.0])
    >>> A[1, 2] = A[2, 1] = 1
    >>> result = spcacore.sparse_eigen(A, B, 2)
    >>> np.flatnonzero(result.loadings[:, 0]), result.values.round(4)
    (array([1, 2]), array([3.618]))
    """
    forms, dtype = _read(A, B)
    p = forms[0].p
    options = check_options(
        p, cardinality, n_components, method, strategy, swaps, deflation, max_iter, tol, rng, dtype
    )
    found = directions(Pencil(*forms, dtype=dtype), options, check_callback(callback))
    return replace(found, names=column_names(A))


# ---- matrices as they are given ---------------------------------------------------------------------


@dataclass(frozen=True)
class Form:
    """diag(unit) (matrix, or F'F + diag(ridge)) diag(unit) + U K U', of which nothing large is copied.

    Matrix and F may be sparse. U is in the units of the product.
    """

    matrix: Any
    factor: Any
    ridge: Array | None
    unit: Array
    U: Array
    K: Array

    @classmethod
    def of(cls, matrix: Any = None, factor: Any = None, ridge: Any = None) -> Form:
        p = (matrix if matrix is not None else factor).shape[1]
        return cls(matrix, factor, ridge, np.ones(p), np.zeros((p, 0)), np.zeros((0, 0)))

    @property
    def p(self) -> int:
        return len(self.unit)

    def with_term(self, U: Array, K: Array) -> Form:
        """With U K U' more."""
        s, t = len(self.K), len(K)
        whole = np.zeros((s + t, s + t))
        whole[:s, :s], whole[s:, s:] = self.K, K
        return replace(self, U=np.hstack([self.U, U]), K=whole)

    def in_units(self, unit: Array) -> Form:
        return replace(self, unit=self.unit * unit, U=self.U * unit[:, None])

    def diagonal(self) -> Array:
        if self.matrix is not None:
            d = self.matrix.diagonal().astype(np.float64) * self.unit * self.unit
        else:
            d = _column_squares(self.factor, self.unit)
            if self.ridge is not None:
                d = d + self.ridge * self.unit * self.unit
        return d + np.einsum("ij,jk,ik->i", self.U, self.K, self.U)

    def stored(self) -> tuple[Array, Index, Index]:
        """Magnitudes of the entries of a sparse matrix, and their rows and columns."""
        M = self.matrix.tocoo()
        row, column = M.coords
        size = np.abs(M.data).astype(np.float64)
        size *= self.unit[row]
        size *= self.unit[column]
        return size, row, column

    def rows(self, S: Index) -> Array:
        """Those of the variables S, (k, p)."""
        if self.matrix is not None:
            part = self.matrix[S]
            out = np.array(part.toarray() if _sparse(part) else part, np.float64, order="C")
            out *= self.unit[S, None]
        else:
            part = self.factor[:, S] * self.unit[S]
            out = np.asarray((part.T @ self.factor).todense() if _sparse(part) else part.T @ self.factor)
            out = out.astype(np.float64)
            if self.ridge is not None:
                out[np.arange(len(S)), S] += self.ridge[S] * self.unit[S]
        out *= self.unit
        if len(self.K):
            out += (self.U[S] @ self.K) @ self.U.T
        return out

    def block(self, S: Index) -> Array:
        """Rows and columns S."""
        unit = self.unit[S]
        if self.matrix is not None:
            part = self.matrix[S][:, S].toarray() if _sparse(self.matrix) else self.matrix[np.ix_(S, S)]
            out = part.astype(np.float64)
            out *= unit[:, None]
            out *= unit
        else:
            part = self.factor[:, S]
            part = (part.toarray() if _sparse(part) else part).astype(np.float64) * unit
            out = part.T @ part
            if self.ridge is not None:
                out[np.diag_indices(len(S))] += self.ridge[S] * unit * unit
        out = out + (self.U[S] @ self.K) @ self.U[S].T
        return (out + out.T) / 2

    def apply(self, x: Array, S: Index | None = None) -> Array:
        """The product with a vector, or with one that has the entries x on S only."""
        s = self.unit if S is None else self.unit[S]
        z = s * x
        if self.matrix is not None:
            z = z.astype(self.matrix.dtype)
            if _sparse(self.matrix):
                y = self.matrix @ z if S is None else self.matrix[S].T @ z
            elif S is None:  # in blocks that are copied unless rows are contiguous, for the same bits always
                step = max(1, (1 << 20) // self.p)
                blocks = (self.matrix[start : start + step] for start in range(0, self.p, step))
                y = np.concatenate([np.ascontiguousarray(block) @ z for block in blocks])
            else:
                y = z @ np.ascontiguousarray(self.matrix[S])
            y = y.astype(np.float64)
        else:
            part = self.factor if S is None else self.factor[:, S]
            y = np.asarray(self.factor.T @ (part @ z), np.float64)
            if self.ridge is not None:
                if S is None:
                    y += self.ridge * z
                else:
                    y[S] += self.ridge[S] * z
        y *= self.unit
        if len(self.K):
            y += self.U @ (self.K @ ((self.U if S is None else self.U[S]).T @ x))
        return y


def _eigh(G: Array) -> tuple[Array, Array]:
    if len(G) <= UNINTERRUPTED_ORDER:
        return np.linalg.eigh(G)
    return interruptible(lambda: np.linalg.eigh(G))


def _sparse(a: Any) -> bool:
    return not (a is None or isinstance(a, np.ndarray))


def _column_squares(F: Any, unit: Array) -> Array:
    if _sparse(F):
        scaled = F.multiply(unit).tocsr()
        return np.asarray(scaled.multiply(scaled).sum(axis=0)).ravel()
    return np.einsum("ij,ij->j", F * unit, F * unit, dtype=np.float64)


def _read(A: Any, B: Any) -> tuple[tuple[Form, Form], np.dtype]:
    """Validate both matrices."""
    arrays = []
    for x, name in ((A, "A"), (B, "B")):
        if is_sparse(x):
            a = compressed(x, name).tocsr()
            a = a.astype(float_type(a.dtype), copy=False)
        else:
            a = blas_layout(real_array(x, name, ndim=2, finite=False))
        if a.shape[0] != a.shape[1]:
            raise ValueError(f"{name} must be square, not of shape {a.shape}")
        if is_sparse(a):
            refuse_not_finite(a.data, f"{name}.data")
            largest = float(np.abs(a.data).max(initial=0))
            asymmetry = float(np.abs((a - a.T).data).max(initial=0))
        else:
            largest, asymmetry, _ = _core.symmetry(a)
        if not math.isfinite(largest):
            raise_not_finite(a, name)
        if asymmetry > largest * (1e-8 if a.dtype == np.float64 else 1e-5):
            raise ValueError(
                f"{name} must be symmetric; it differs from its transpose by up to {asymmetry:.3g}"
            )
        arrays.append(a)
    if arrays[0].shape != arrays[1].shape:
        raise ValueError(f"A and B must be of one size, not {arrays[0].shape} and {arrays[1].shape}")
    single = all(a.dtype == np.float32 for a in arrays)
    return (Form.of(arrays[0]), Form.of(arrays[1])), np.dtype(np.float32 if single else np.float64)


@dataclass(frozen=True)
class Options:
    """How directions are sought."""

    cardinality: tuple[int, ...]
    method: str
    strategy: str
    swaps: bool
    deflation: str
    max_iter: int
    tol: float
    seed: int


def check_options(
    p: int, cardinality: Any, n_components: Any, method: Any, strategy: Any, swaps: Any, deflation: Any,
    max_iter: Any, tol: Any, rng: Any, dtype: np.dtype,
) -> Options:  # fmt: skip
    """Validate what `sparse_eigen` and `sparse_lda` share."""
    from .._validation import per_component

    r = integer(n_components, "n_components", 1, p)
    k = per_component(
        cardinality, "cardinality", r, lambda v, name: integer(v, name, 1, min(p, PENCIL_SUPPORT))
    )
    check_choice(method, "method", SOLVERS)
    check_choice(strategy, "strategy", STRATEGIES)
    if strategy in ("backward", "bidirectional") and p > PENCIL_BACKWARD_ORDER:
        raise ValueError(
            f"strategy={strategy!r} takes at most {PENCIL_BACKWARD_ORDER} variables, not {p}: "
            "use strategy='forward'"
        )
    if strategy != "auto" and method == "rayleigh_flow":
        raise ValueError("strategy goes with the greedy method, not with method='rayleigh_flow'")
    return Options(
        k, method, strategy, check_bool(swaps, "swaps"), check_choice(deflation, "deflation", DEFLATIONS),
        integer(max_iter, "max_iter", 1, LARGEST), number(tol, "tol", 0), as_seed(rng),
    )  # fmt: skip


# ---- the pencil -------------------------------------------------------------------------------------


class Unbounded(ValueError):
    """B maps a direction to zero that A does not."""


def _unbounded(index: Index, direction: Array, advice: str) -> Unbounded:
    """Names the variables of that direction."""
    weight = np.abs(direction)
    named = index[weight > 1e-6 * weight.max()]
    shown = ", ".join(map(str, named[:8].tolist())) + ", ..." * (len(named) > 8)
    return Unbounded(
        f"x'Bx = 0 where A x is not 0, for an x on the variables {shown}: the ratio has no bound; {advice}"
    )


@dataclass(frozen=True)
class _Basis:
    """W with W'B_S W = I and W'A_S W = diag(pole), descending.

    `loose` marks the variables that can be made zero by adding what B maps to zero.
    """

    pole: Array
    W: Array
    loose: NDArray[np.bool_]


@dataclass(frozen=True)
class Solution:
    """x on its support, in units of the pencil, with x'Bx = 1."""

    index: Index
    value: Array
    objective: float
    n_iter: int
    converged: bool


class Pencil:
    """Both forms in units in which B has diagonals near 1, with what was found so far removed."""

    def __init__(self, A: Form, B: Form, *, dtype: np.dtype, advice: str = "add to the diagonal of B"):
        self.dtype, self.advice = dtype, advice
        double = dtype == np.float64
        self.least = 1e-10 if double else 1e-5  # sigma that is only rounding
        self.null = 1e-12 if double else 1e-6  # eigenvalues of B_S that are, of the largest
        self.slack = 1e-7 if double else 1e-3  # entries of A, or negative ones of B, that are
        variance = B.diagonal()
        if variance.min() < -self.slack * variance.max():
            raise ValueError("B must be positive semidefinite; it has a negative diagonal entry")
        used = variance > 0
        exponent = np.where(used, np.round(np.log2(np.where(used, variance, 1.0)) / 2), 0.0)
        unit = np.ldexp(1.0, -exponent.astype(int))
        self.active = np.flatnonzero(used)
        self._refuse_unused(A, B, ~used)
        if not used.any():
            raise ValueError("B is zero")
        self.B = self.B0 = B.in_units(np.where(used, unit, 0.0))
        self.unit = np.where(used, unit, 0.0)
        self.basis: list[tuple[Array, Array]] = []
        self._numerator(A)
        self._whiten: Array | None = None
        self._whitened = False
        self._refuse_indefinite()

    def _numerator(self, A: Form) -> None:
        """Set A, with its largest entry near 1."""
        A = A.in_units(self.unit)
        self.exponent = 0
        with np.errstate(over="ignore", invalid="ignore"):
            largest = float(np.abs(A.diagonal()).max())
            if _sparse(A.matrix):
                largest = max(largest, float(A.stored()[0].max(initial=0)))
            elif A.matrix is not None:
                step = max(1, (1 << 22) // A.p)
                for start in range(0, A.p, step):
                    rows = A.rows(np.arange(start, min(A.p, start + step)))
                    largest = max(largest, float(np.abs(rows).max()))
        if not math.isfinite(largest):
            raise ValueError("A is so large beside B that x'Ax / x'Bx exceeds the number range; rescale one")
        if largest > 0:
            self.exponent = 2 * round(math.log2(largest) / 2)
        self.A = self.A0 = A.in_units(np.full(A.p, math.ldexp(1.0, -self.exponent // 2)))
        self._diagonals()

    def with_numerator(self, A: Form) -> Pencil:
        """The same B with another A."""
        other = copy.copy(self)
        other._numerator(A)
        return other

    def _refuse_unused(self, A: Form, B: Form, unused: NDArray[np.bool_]) -> None:
        for start in range(0, np.count_nonzero(unused), 64):
            S = np.flatnonzero(unused)[start : start + 64]
            if B.rows(S).any():
                raise ValueError("B must be positive semidefinite; a row with diagonal entry 0 is not zero")
            wrong = A.rows(S).any(axis=1)
            if wrong.any():
                raise _unbounded(S[wrong][:1], np.ones(1), self.advice)

    def _refuse_indefinite(self) -> None:
        """By Cholesky factorization where B is small and given, else by its 2 x 2 minors."""
        if self.B.matrix is None:
            return
        bad, p = False, self.B.p
        if len(self.active) <= 1500:
            block = self.B.block(self.active)
            block[np.diag_indices(len(block))] += self.slack * np.abs(block).sum(axis=0).max()
            try:
                np.linalg.cholesky(block)
            except np.linalg.LinAlgError:
                bad = True
        elif _sparse(self.B.matrix):
            root = np.sqrt(self.Bd)
            size, row, column = self.B.stored()
            bad = bool((size > root[row] * root[column] + self.slack).any())
        else:
            root = np.sqrt(self.Bd)
            for start in range(0, p, step := max(1, (1 << 22) // p)):
                S = np.arange(start, min(p, start + step))
                bad = bad or bool((np.abs(self.B.rows(S)) > root[S, None] * root + self.slack).any())
        if bad:
            raise ValueError("B must be positive semidefinite, and is not")

    def _diagonals(self) -> None:
        self.Ad, self.Bd = self.A.diagonal(), self.B.diagonal()

    def basis_of(self, GA: Array, GB: Array, index: Index) -> _Basis:
        """Of a support on which the matrices are GA and GB."""
        mu, U = _eigh(GB)
        top = float(mu[-1])
        if top <= self.least:
            return _Basis(np.zeros(0), np.zeros((len(index), 0), order="F"), np.ones(len(index), bool))
        if mu[0] < -self.slack * (top if self.B is self.B0 else max(top, 1.0)):
            raise ValueError("B must be positive semidefinite, and is not")
        kept = mu > self.cut(top)
        N = U[:, ~kept]
        if N.shape[1]:
            if self.A is self.A0:
                self._refuse_unbounded(GA, N, index)
            else:
                self._refuse_unbounded_on(index)
        T = U[:, kept] / np.sqrt(mu[kept])
        G = T.T @ GA @ T
        pole, Y = _eigh((G + G.T) / 2)
        W = np.asfortranarray(T @ Y[:, ::-1])
        return _Basis(pole[::-1].copy(), W, (N**2).sum(axis=1) > 1e-8)

    def cut(self, top: float) -> float:
        """Eigenvalues of B_S up to this are rounding; of a deflated B, the largest may be, too."""
        return self.null * top if self.B is self.B0 else max(self.null * top, self.least, 1e-8)

    def _refuse_unbounded(self, GA: Array, N: Array, index: Index) -> None:
        image = np.abs(GA @ N).max(axis=0, initial=0)
        if image.max(initial=0) > self.slack * np.abs(GA).max():
            raise _unbounded(index, N[:, np.argmax(image)], self.advice)

    def _refuse_unbounded_on(self, S: Index) -> None:
        """Judged before deflation, which leaves only rounding of A where its rank is used up."""
        mu, U = _eigh(self.B0.block(S))
        self._refuse_unbounded(self.A0.block(S), U[:, mu <= self.null * mu[-1]], S)

    def on(self, S: Index) -> _Basis:
        return self.basis_of(self.A.block(S), self.B.block(S), S)

    def leading(self, S: Index, n_iter: int, converged: bool = True, basis: _Basis | None = None) -> Solution:
        """The best x on a support."""
        order = np.argsort(S)
        basis = self.on(S) if basis is None else basis
        if len(basis.pole) == 0:
            return Solution(S[order], np.zeros(len(S)), -np.inf, n_iter, converged)
        return Solution(S[order], basis.W[order, 0], float(basis.pole[0]), n_iter, converged)

    def parted(self, x: Solution) -> Solution:
        """Of all x that differ by what deflation has made B map to zero, the one with least x'B_0 x."""
        if self.B is self.B0:
            return x
        mu, U = _eigh(self.B.block(x.index))
        N = U[:, mu <= self.cut(float(mu[-1]))]
        if not N.shape[1]:
            return x
        image = self.B0.block(x.index) @ N
        y = x.value - N @ np.linalg.lstsq(N.T @ image, image.T @ x.value, rcond=self.null)[0]
        return replace(x, value=y)

    def joined(
        self, rows_A: Array, rows_B: Array, basis: _Basis, index: Index, candidate: Index, rough: bool = True
    ) -> Array:
        """The largest value with each candidate more; -inf where, if `rough`, it cannot be the best."""
        w = len(basis.pole)
        b, d = basis.W.T @ rows_A, basis.W.T @ rows_B
        if len(candidate) != rows_A.shape[1]:
            b, d = b[:, candidate], d[:, candidate]
        sigma = self.Bd[candidate] - np.einsum("ij,ij->j", d, d)
        b -= basis.pole[:, None] * d
        corner = self.Ad[candidate] - np.einsum("ij,ij->j", d, 2 * b + basis.pole[:, None] * d)
        usable = sigma > self.least
        if not usable.all():  # nothing that S does not have already
            size = np.maximum(np.abs(corner), np.abs(b).max(axis=0, initial=0)) * ~usable
            limit = self.slack * max(1.0, float(np.abs(basis.pole).max(initial=0)))
            if (worst := int(np.argmax(size))) >= 0 and size[worst] > limit:
                whole = np.append(index, candidate[worst])
                if self.A is self.A0:
                    raise _unbounded(whole, np.append(-basis.W @ d[:, worst], 1.0), self.advice)
                self._refuse_unbounded_on(whole)
        root = np.sqrt(np.where(usable, sigma, 1.0))
        corner /= root
        corner /= root
        if w == 0:
            return np.where(usable, corner, -np.inf)
        b /= root
        b = np.ascontiguousarray(b)
        norm = np.einsum("ij,ij->j", b, b) if rough else None
        if norm is not None:
            norm[~usable], corner[~usable] = 0, basis.pole[0]
            b[:, ~usable] = 0
        value = _core.bordered_eigenvalues(
            b, np.arange(len(candidate)), corner, basis.pole, np.asfortranarray(np.eye(w)), norm
        )
        value[~usable] = basis.pole[0]
        return value

    def rounding(self, x: Solution) -> float:
        """Of the x'Ax that deflation has left."""
        return 1e-13 * float(np.abs(x.value) @ np.abs(self.A0.block(x.index)) @ np.abs(x.value))

    def ratio(self, x: Solution) -> tuple[float, float]:
        """x'Ax/x'Bx of the caller's pencil, and x'Bx as it is there."""
        v = x.value
        square = float(v @ (self.B0.block(x.index) @ v))
        with np.errstate(under="ignore"):
            return float(np.ldexp(v @ (self.A0.block(x.index) @ v) / square, self.exponent)), square

    def remove(self, x: Solution, deflation: Deflation) -> None:
        """Deflate by x."""
        q = np.zeros(self.B.p)
        q[x.index] = x.value
        z = self.B0.apply(x.value, x.index)
        if deflation.orthogonalized:
            before = math.sqrt(q @ z)
            for _ in range(2):
                for other, image in self.basis:
                    q = q - other * (image @ q)
            z = self.B0.apply(q)
            if not float(q @ z) > (1e-7 * before) ** 2:
                return
        size = math.sqrt(q @ z)
        q, z = q / size, z / size
        self.basis.append((q, z))
        w = self.A.apply(q)
        value = float(q @ w)
        if deflation.update == "hotelling":
            self.A = self.A.with_term(z[:, None], np.array([[-value]]))
        elif deflation.update == "projection":
            self.A = self.A.with_term(np.stack([z, w], axis=1), np.array([[value, -1.0], [-1.0, 0.0]]))
        elif abs(value) > 0:
            self.A = self.A.with_term(w[:, None], np.array([[-1 / value]]))
        if deflation.quotient:
            self.B = self.B.with_term(z[:, None], np.array([[-1.0]]))
        self._diagonals()

    def bound(self) -> float | None:
        """The largest value of the whole pencil; None where that is not computed, or has no bound."""
        if len(self.active) <= SUBMATRIX_ORDER:
            if not self._whitened:
                self._whitened = True
                mu, U = _eigh(self.B0.block(self.active))
                kept = mu > self.null * mu[-1]
                GA = self.A0.block(self.active)
                image = GA @ U[:, ~kept]
                large = np.abs(GA).max()
                rounding = 16 * len(GA) * float(np.finfo(self.dtype).eps)
                if (
                    np.abs(image).max(initial=0) <= self.slack * large
                    and np.abs(U[:, ~kept].T @ image).max(initial=0) <= rounding * large
                ):
                    self._whiten = U[:, kept] / np.sqrt(mu[kept])
            if self._whiten is None:
                return None
            G = self._whiten.T @ self.A.block(self.active) @ self._whiten
            return float(np.linalg.eigvalsh((G + G.T) / 2)[-1])
        return self._small_bound()

    def _small_bound(self) -> float | None:
        """Where A = G'NG has few rows and B = H'H + diag(ridge) too: the eigenvalues of N G inv(B) G'."""
        A, B = self.A, self.B0
        if A.factor is None or B.factor is None or B.ridge is None or _sparse(B.factor):
            return None
        if A.ridge is not None or len(B.K) or len(B.factor) > SUBMATRIX_ORDER or not (B.ridge > 0).all():
            return None
        G = np.vstack([A.factor * A.unit, A.U.T])[:, self.active]
        N = np.eye(len(G))
        N[len(A.factor) :, len(A.factor) :] = A.K
        H = (B.factor * B.unit)[:, self.active]
        R = (B.ridge * B.unit * B.unit)[self.active]
        inner = np.linalg.solve(np.eye(len(H)) + (H / R) @ H.T, (H / R) @ G.T)
        small = (G / R) @ G.T - (G / R) @ H.T @ inner
        values, vectors = np.linalg.eigh((small + small.T) / 2)
        root = (vectors * np.sqrt(np.maximum(values, 0))) @ vectors.T
        return float(np.linalg.eigvalsh(root @ N @ root)[-1])


def directions(pencil: Pencil, options: Options, tell: Hook | None) -> SparseEigenResult:
    """One direction after another."""
    r, p = len(options.cardinality), pencil.A.p
    found: list[Solution] = []
    bounds: list[float | None] = []
    for t, k in enumerate(options.cardinality):
        try:
            x = search(
                pencil, min(k, len(pencil.active)), options, hook_of_component(tell, t, r, whole=t > 0)
            )
        except Ended:
            break
        floor = 1e-10 if pencil.dtype == np.float64 else 1e-5
        if found and not x.objective > max(floor * abs(found[0].objective), pencil.rounding(x)):
            warnings.warn(
                f"only {t} of {counted(r, 'direction')}: nothing is left", RuntimeWarning, stacklevel=3
            )
            break
        bound = pencil.bound()
        bounds.append(None if bound is None else max(bound, x.objective))
        found.append(x)
        if tell is not None and tell.ended:
            found[-1] = replace(x, converged=False)
            break
        if tell is not None and tell(Progress(t, r, x.n_iter, pencil.ratio(x)[0])):
            break
        if t + 1 < r:
            pencil.remove(x, DEFLATIONS[options.deflation])
    loadings = np.zeros((p, len(found)), pencil.dtype, order="F")
    values, norms = np.zeros(len(found)), np.zeros(len(found))
    for t, x in enumerate(found):
        exponents = np.frexp(pencil.unit[x.index])[1]
        v = fix_sign(np.ldexp(x.value, exponents - exponents.max()))
        size = float(np.linalg.norm(v))
        loadings[x.index, t] = v / size
        values[t], square = pencil.ratio(x)
        norms[t] = math.sqrt(square) / size / math.ldexp(1.0, int(exponents.max()) - 1)
    scale = np.ldexp(1.0, pencil.exponent)
    known = [bound for bound in bounds if bound is not None]
    with np.errstate(under="ignore"):
        deflated = np.array([x.objective for x in found]) * scale
        upper_bound = np.array(known) * scale if len(known) == len(found) else None
    return SparseEigenResult(
        loadings=loadings, values=values,
        deflated_values=deflated, metric_norm=norms, upper_bound=upper_bound,
        cardinality=np.count_nonzero(loadings, axis=0), n_iter=np.array([x.n_iter for x in found]),
        converged=np.array([x.converged for x in found]),
        method=_method(pencil, max(options.cardinality), options), deflation=options.deflation,
    )  # fmt: skip


def _method(pencil: Pencil, k: int, options: Options) -> str:
    """What "auto" stands for."""
    if options.method != "auto":
        return options.method
    costly = 4 / 3 * k**3 * len(pencil.active) > PENCIL_GREEDY_WORK
    return "rayleigh_flow" if costly and options.strategy == "auto" else "greedy"


def search(pencil: Pencil, k: int, options: Options, told: ProgressHook | None) -> Solution:
    """The best support of k variables that the searches find."""
    active = pencil.active
    if k == len(active):
        return pencil.parted(pencil.leading(active, 1))
    flow = _method(pencil, k, options) == "rayleigh_flow"
    runs = _flows(pencil, k, options, told) if flow else _greedy(pencil, k, options, told)
    best, n_iter, seen = None, 0, set()
    for x in runs:
        n_iter += x.n_iter
        if x.index.tobytes() in seen:
            continue
        seen.add(x.index.tobytes())
        if options.swaps and k < len(active) and not ended(told):
            x = swap_search(pencil, x, told, PENCIL_ALL_SWAPS_WORK if flow else None)
            n_iter += x.n_iter
            seen.add(x.index.tobytes())
        if best is None or x.objective > best.objective + 1e-12 * abs(best.objective):
            best = x
        if ended(told):
            break
    assert best is not None
    best = pencil.parted(best)
    kept = best.value != 0
    return replace(best, index=best.index[kept], value=best.value[kept], n_iter=n_iter)


# ---- greedy search ----------------------------------------------------------------------------------


def _greedy(pencil: Pencil, k: int, options: Options, told: ProgressHook | None) -> Iterator[Solution]:
    if options.strategy != "backward":
        yield forward_search(pencil, k, told)
    if options.strategy in ("backward", "bidirectional"):
        yield _backward(pencil, k, told)
    if options.strategy != "auto" or k == 1:
        return
    if len(pencil.active) <= USUAL_BACKWARD_ORDER:
        # the ratio of all variables may have no bound where that of a few has
        with contextlib.suppress(Unbounded):
            yield _backward(pencil, k, told)
    starts = min(
        PENCIL_STARTS, len(pencil.active), int(PENCIL_START_WORK / (4 / 3 * k**3 * len(pencil.active)))
    )
    ratio = _ratios(pencil)
    chosen = pencil.active[_core.select_largest(ratio - ratio.min(), starts)] if starts > 0 else ()
    for first in chosen:
        yield forward_search(pencil, k, told, int(first))


def _ratios(pencil: Pencil) -> Array:
    """Of the active variables, each by itself; the least of all where earlier directions span it."""
    A, B = pencil.Ad[pencil.active], pencil.Bd[pencil.active]
    counts = pencil.least < B
    ratio = np.where(counts, A / np.where(counts, B, 1), np.inf)
    return np.where(counts, ratio, ratio[counts].min(initial=0.0))


def _first(pencil: Pencil) -> int:
    """The variable with the largest ratio or, of several, that with the best partner."""
    active = pencil.active
    tied = active[ties(_ratios(pencil), 1e-12 if pencil.dtype == np.float64 else 1e-6)][
        :PENCIL_TIED_VARIABLES
    ]
    if len(tied) == 1 or len(active) == 1:
        return int(tied[0])
    pairs = []
    for i in tied:
        S = np.array([i])
        basis = pencil.on(S)
        others = np.delete(active, np.searchsorted(active, i))
        pairs.append(pencil.joined(pencil.A.rows(S), pencil.B.rows(S), basis, S, others).max())
    return int(tied[ties(np.array(pairs))[0]])


def forward_search(pencil: Pencil, K: int, told: ProgressHook | None, first: int | None = None) -> Solution:
    """Up to cardinality K, by the largest value."""
    p = pencil.A.p
    RA, RB = np.empty((K, p)), np.empty((K, p))
    S, free = np.empty(K, np.intp), np.zeros(p, bool)
    free[pencil.active] = True
    new = _first(pencil) if first is None else first
    for k in range(K):
        S[k], free[new] = new, False
        RA[k], RB[k] = pencil.A.rows(S[k : k + 1])[0], pencil.B.rows(S[k : k + 1])[0]
        here = S[: k + 1]
        basis = pencil.basis_of(RA[: k + 1, here], RB[: k + 1, here], here)
        if told is not None:
            told(k + 1)
        if k + 1 < K:
            candidate = np.flatnonzero(free)
            value = pencil.joined(RA[: k + 1], RB[: k + 1], basis, here, candidate)
            new = int(candidate[ties(value)[0]])
    return pencil.leading(S, K, basis=basis)


def _backward(pencil: Pencil, K: int, told: ProgressHook | None) -> Solution:
    """From all variables, down to cardinality K."""
    S = pencil.active
    GA, GB = pencil.A.block(S), pencil.B.block(S)
    removed = 0
    while True:
        basis = pencil.basis_of(GA, GB, S)
        if len(S) == K:
            return pencil.leading(S, removed, basis=basis)
        if len(basis.pole) == 0:
            worst = len(S) - 1
        else:
            value = _core.deleted_eigenvalues(basis.pole, basis.W)
            value[basis.loose] = basis.pole[0]
            worst = int(ties(value)[-1])
        S = np.delete(S, worst)
        GA, GB = (np.delete(np.delete(G, worst, 0), worst, 1) for G in (GA, GB))
        removed += 1
        if told is not None:
            told(removed)


def swap_search(
    pencil: Pencil, x: Solution, told: ProgressHook | None, work: float | None = None
) -> Solution:
    """Variables exchanged, one for one, for as long as that raises the value and costs no more than work."""
    S, k = x.index.copy(), len(x.index)
    if not x.objective > -np.inf:
        return replace(x, n_iter=0)
    RA, RB = pencil.A.rows(S), pencil.B.rows(S)
    room = int(PENCIL_SWAP_WORK / (4.0 * k**3))
    best, n_iter, unchanged, i = x, 0, 0, 0
    order = np.argsort(np.abs(x.value), kind="stable")
    candidates = _promising(pencil, RA, RB, S, room)
    if len(candidates) == 0:
        return replace(x, n_iter=0)
    p = len(pencil.active)
    if work is None:
        work = max(PENCIL_ALL_SWAPS_WORK, 2 * (4 / 3 * k**3 * p + 6 * k**4))
    decomposition, refreshment = 25.0 * k**3, 25.0 * k**3 + 2.0 * k**2 * p
    reading = sum(50.0 * form.factor.shape[0] * p for form in (pencil.A, pencil.B) if form.factor is not None)
    stale = False
    while unchanged < k and n_iter < PENCIL_SWAP_ROUNDS * k and work > 0 and not ended(told):
        if stale and i % k == 0:
            candidates, stale = _promising(pencil, RA, RB, S, room), False
            work -= refreshment
        work -= decomposition + 2.0 * k**2 * len(candidates)
        place = order[i % k]
        i += 1
        n_iter += 1
        rest = np.delete(np.arange(k), place)
        if k == 1:
            basis = _Basis(np.zeros(0), np.zeros((0, 0), order="F"), np.zeros(0, bool))
        else:
            basis = pencil.basis_of(RA[np.ix_(rest, S[rest])], RB[np.ix_(rest, S[rest])], S[rest])
        outside = candidates[~np.isin(candidates, S)]
        if len(outside) == 0:
            break
        part = np.ix_(rest, outside)
        value = pencil.joined(RA[part], RB[part], basis, S[rest], outside)
        new = int(outside[ties(value)[0]])
        unchanged += 1
        if value.max() > best.objective + 1e-10 * abs(best.objective):
            trial = S.copy()
            trial[place] = new
            one = np.array([new])
            row = pencil.A.rows(one)[0], pencil.B.rows(one)[0]
            before = RA[place].copy(), RB[place].copy()
            RA[place], RB[place] = row
            work -= decomposition + reading
            again = pencil.leading(trial, 0, basis=pencil.basis_of(RA[:, trial], RB[:, trial], trial))
            if again.objective > best.objective + 1e-10 * abs(best.objective):
                S, best, unchanged = trial, again, 0
                if told is not None:
                    told(n_iter)
                stale = room < p
            else:
                RA[place], RB[place] = before
    return replace(best, n_iter=n_iter, converged=x.converged and unchanged >= k)


def _promising(pencil: Pencil, RA: Array, RB: Array, S: Index, room: int) -> Index:
    """The variables outside a support that may enter: those that would add most, at least 64."""
    free = np.zeros(pencil.A.p, bool)
    free[pencil.active] = True
    free[S] = False
    outside = np.flatnonzero(free)
    room = max(room, 64)
    if len(outside) <= room:
        return outside
    basis = pencil.basis_of(RA[:, S], RB[:, S], S)
    value = pencil.joined(RA, RB, basis, S, outside, rough=False)
    return np.sort(outside[_core.select_largest(value - value.min(), room)])


# ---- truncated Rayleigh flow ------------------------------------------------------------------------


def _flows(pencil: Pencil, k: int, options: Options, told: ProgressHook | None) -> Iterator[Solution]:
    """From single variables, from what a gradient search selects, and from a dense vector."""
    active = pencil.active
    step = 0.9 / _largest_eigenvalue(pencil.B0, active, options.seed)
    ratio = _ratios(pencil)
    largest = np.sort(active[_core.select_largest(ratio - ratio.min(), k)])
    yield _refined(pencil, largest, None, k, step, options, told)
    if k <= GRADIENT_SUPPORT:
        yield _refined(pencil, _gradient(pencil, k), None, k, step, options, told)
    v = _dense_start(pencil, options.seed)
    S = active
    total = 0
    for size in (8 * k, 4 * k, 2 * k):
        if size >= len(active):
            continue
        S, v, n_iter, _ = _flow(pencil, S, v, size, step, 100, 1e-4, told)
        total += n_iter
    x = _refined(pencil, S, v, k, step, options, told)
    yield replace(x, n_iter=x.n_iter + total)


def _refined(
    pencil: Pencil,
    S: Index,
    v: Array | None,
    k: int,
    step: float,
    options: Options,
    told: ProgressHook | None,
) -> Solution:
    """The flow, then the best values on its support, from which it runs again, while that pays."""
    best: Solution | None = pencil.leading(S, 0) if v is None else None
    total = 0
    for _ in range(10):
        if best is not None:
            S, v = best.index, best.value
        assert v is not None
        S, v, n_iter, done = _flow(pencil, S, v, k, step, options.max_iter, options.tol, told)
        total += n_iter
        new = pencil.leading(S, total, done)
        if best is not None and not new.objective > best.objective * (1 + 1e-10):
            return replace(best, n_iter=total, converged=best.converged and done)
        best = new
    assert best is not None
    return best


def _flow(
    pencil: Pencil,
    S: Index,
    v: Array,
    k: int,
    least: float,
    max_iter: int,
    tol: float,
    told: ProgressHook | None,
) -> tuple[Index, Array, int, bool]:
    """Steps of at least `least`; longer ones for as long as they raise the ratio."""
    v = v / (np.linalg.norm(v) or 1.0)
    Av, Bv = pencil.A.apply(v, S), pencil.B.apply(v, S)
    least_square = 1e-14 if pencil.B is pencil.B0 else pencil.least
    rho = _quotient(v, S, Av, Bv, least_square)
    if rho == -np.inf:  # deflation has left nothing of B there
        kept = np.sort(_core.select_largest(v, min(k, len(v))))
        return S[kept], v[kept], 0, True
    eta = least
    for n_iter in range(1, max_iter + 1):
        direction = Av - rho * Bv
        scale = abs(rho) if abs(rho) > 1e-8 else 1.0
        while True:
            y = (eta / scale) * direction
            y[S] += v
            T = np.sort(_core.select_largest(y, k))
            T = T[y[T] != 0]
            if not len(T):
                return S, v, n_iter, True
            u = y[T] / np.linalg.norm(y[T])
            Au, Bu = pencil.A.apply(u, T), pencil.B.apply(u, T)
            new = _quotient(u, T, Au, Bu, least_square)
            if new >= rho or eta <= least:
                break
            eta = max(eta / 4, least)
        same = np.array_equal(S, T)
        rise = new - rho
        if rise < 0 and len(S) <= k:
            return S, v, n_iter, True
        if new == -np.inf:
            return T, u, n_iter, True
        S, v, Av, Bv, rho = T, u, Au, Bu, new
        eta *= 2
        if told is not None and told(n_iter) and len(S) <= k:
            return S, v, n_iter, False
        if same and rise <= tol * abs(rho):
            return S, v, n_iter, True
    return S, v, max_iter, False


def _quotient(v: Array, S: Index, Av: Array, Bv: Array, least_square: float) -> float:
    square = float(v @ Bv[S])
    return float(v @ Av[S]) / square if square > least_square else -np.inf


def _gradient(pencil: Pencil, K: int) -> Index:
    """Up to cardinality K, by the largest slope of the ratio."""
    p = pencil.A.p
    RA, RB = np.empty((K, p)), np.empty((K, p))
    S, free = np.empty(K, np.intp), np.zeros(p, bool)
    free[pencil.active] = True
    new = _first(pencil)
    for k in range(K):
        S[k], free[new] = new, False
        RA[k], RB[k] = pencil.A.rows(S[k : k + 1])[0], pencil.B.rows(S[k : k + 1])[0]
        here = S[: k + 1]
        basis = pencil.basis_of(RA[: k + 1, here], RB[: k + 1, here], here)
        x, value = (basis.W[:, 0], basis.pole[0]) if len(basis.pole) else (np.ones(k + 1), 0.0)
        slope = np.abs(x @ RA[: k + 1] - value * (x @ RB[: k + 1]))
        slope = np.where(free, slope / np.sqrt(np.maximum(pencil.Bd, 1e-3)), -1.0)
        new = int(np.argmax(slope))
    return np.sort(S)


def _largest_eigenvalue(B: Form, active: Index, seed: int) -> float:
    """A little above that of B, by Lanczos iteration."""
    if len(active) <= 32:
        return float(np.linalg.eigvalsh(B.block(active))[-1])
    from scipy.sparse.linalg import LinearOperator

    v = np.random.default_rng(seed).standard_normal(B.p)
    operator = LinearOperator((B.p, B.p), dtype=np.float64, matvec=lambda x: B.apply(x.ravel()))
    values, _ = largest_eigenpairs(operator, 1, v0=v, tol=1e-2)
    return 1.02 * float(values[0])


def _dense_start(pencil: Pencil, seed: int) -> Array:
    """Nearly the leading eigenvector of A, in units in which B has diagonals near 1."""
    v = np.random.default_rng([seed, 1]).standard_normal(pencil.A.p)
    for _ in range(20):
        w = pencil.A.apply(v)
        if not w[pencil.active].any():
            break
        v = w / np.linalg.norm(w)
    return v[pencil.active]
