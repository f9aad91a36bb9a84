"""Sparse canonical correlation: few variables of X and few of Y whose combinations go together.

Penalized matrix decomposition (Witten, Tibshirani and Hastie 2009).  With the covariance within each side
taken for the identity, `max u'Cv` over `||u|| <= 1, ||v|| <= 1, ||u||_1 <= c_x, ||v||_1 <= c_y` for
C = X'Y/(n - 1), by turns: u <- the soft threshold of Cv at the bound, v <- that of C'u, from the leading
singular vector and from the largest entry of C, of which the better is kept.  C is applied as X'(Yv); further
pairs are those of `C - sum d uv'`.

Generalized eigenproblem.  `max u'Cv` over `u'B_x u = v'B_y v = 1` and the cardinalities, B the covariance of
a side and a ridge; this is the pencil ([0 C; C' 0], [B_x 0; 0 B_y]).  For a given v the best u is that of the
pencil (gg', B_x), g = Cv, of rank one, whose supports are searched as in generalized.py; then v likewise;
then both on their supports, from the singular vectors of W_x'CW_y with W'BW = I.  Turns go on while that
raises the value, by forward search from every start, and with exchanges too from the best three of these.
Further pairs are those of `(I - z_x u') C (I - v z_y')`, z = Bu and Bv.
"""

from __future__ import annotations

import math
import re
import threading
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import (
    CCA_REFINED_STARTS,
    CCA_ROUNDS,
    CCA_START_WORK,
    CCA_STARTS,
    KEPT_BYTES,
    PAIR_WORK,
    SUBMATRIX_ORDER,
)
from .._messages import counted
from .._validation import (
    LARGEST,
    aligned,
    as_seed,
    check_bool,
    check_callback,
    check_choice,
    column_names,
    framed,
    integer,
    is_operator,
    is_row_blocks,
    is_sparse,
    number,
    real_array,
)
from ..linalg.eigen import largest_eigenpairs
from ..linalg.threads import Report, check_jobs, in_threads
from ..operators.blocks import RowBlocks, added, dense_rows, prepared
from ..operators.inputs import as_problem
from ..operators.partition import row_blocks
from ..operators.problem import Problem
from ..operators.sparse_format import compressed
from ..operators.transform import scores
from ..progress import Callback, Progress
from ..results import frame, labels
from ..solvers.base import Ended, ProgressHook, ended, hook_of_component
from .form import Form
from .pencil import Pencil, Solution
from .search import forward_search, swap_search

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SparseCCAResult:
    """Pairs of sparse canonical vectors.

    Attributes
    ----------
    loadings_x, loadings_y : ndarray of shape (p, r) and (q, r)
        Columns of unit 2-norm, for the centred and scaled variables. In each of X the entry of largest
        magnitude is positive; those of Y have the sign that makes the covariance of the scores positive.
    scores_x, scores_y : ndarray of shape (n, r)
        The centred and scaled data times the loadings.
    correlations : ndarray of shape (r,)
        Of the scores of each pair.
    strengths : ndarray of shape (r,)
        What was maximized: of "pmd" the covariance `u'Cv`, of "generalized" `u'Cv` over
        `sqrt(u'B_x u v'B_y v)`, C without the earlier pairs.
    cardinality_x, cardinality_y : ndarray of shape (r,), int
    mean_x, mean_y, scale_x, scale_y : ndarray of shape (p,) or (q,), or None
        Subtracted from, then divide, each column.
    n_iter : ndarray of shape (r,), int
    converged : ndarray of shape (r,), bool
    method : {"pmd", "generalized"}
    names_x, names_y : tuple of str or None
        Names of the variables, when the input had any.
    """

    loadings_x: NDArray[Any]
    loadings_y: NDArray[Any]
    scores_x: NDArray[Any]
    scores_y: NDArray[Any]
    correlations: NDArray[np.float64]
    strengths: NDArray[np.float64]
    cardinality_x: NDArray[np.intp]
    cardinality_y: NDArray[np.intp]
    mean_x: NDArray[Any] | None
    mean_y: NDArray[Any] | None
    scale_x: NDArray[Any] | None
    scale_y: NDArray[Any] | None
    n_iter: NDArray[np.intp]
    converged: NDArray[np.bool_]
    method: str
    names_x: tuple[str, ...] | None
    names_y: tuple[str, ...] | None

    @property
    def n_components(self) -> int:
        """Number of pairs."""
        return self.loadings_x.shape[1]

    def transform(self, X: Any, Y: Any) -> tuple[NDArray[Any], NDArray[Any]]:
        """Scores of further rows of both sides.

        Parameters
        ----------
        X, Y : array-like or sparse matrix of shape (m, p) and (m, q)

        Returns
        -------
        tuple of ndarray of shape (m, r), or of dataframes with the indices of X and Y where they are some
        """
        X_, Y_ = aligned(X, self.names_x), aligned(Y, self.names_y, "Y")
        return (
            framed(X, scores(X_, self.loadings_x, self.mean_x, self.scale_x)),
            framed(Y, _of_y(lambda: scores(Y_, self.loadings_y, self.mean_y, self.scale_y))),
        )

    def to_frame(self) -> tuple[Any, Any]:
        """The loadings of each side as a pandas DataFrame, with the names of the variables.

        Returns
        -------
        tuple of pandas.DataFrame of shape (p, r) and (q, r)
            The indices have the names, or x1, x2, ...; the columns are component_1, component_2, ...

        Raises
        ------
        ImportError
            Without pandas.
        """
        x, y = (
            frame(
                {f"component_{t + 1}": v for t, v in enumerate(loadings.T)}, labels(names, len(loadings)),
                "variable",
            )
            for loadings, names in ((self.loadings_x, self.names_x), (self.loadings_y, self.names_y))
        )  # fmt: skip
        return x, y

    def __repr__(self) -> str:
        r = self.n_components
        pairs = list(zip(self.cardinality_x.tolist(), self.cardinality_y.tolist(), strict=True))
        found = self.correlations.round(3).tolist()
        return (
            f"SparseCCAResult(method={self.method!r}, p={len(self.loadings_x)}, q={len(self.loadings_y)}, "
            f"{counted(r, 'pair')}, cardinality={pairs}, correlations={found})"
        )


@dataclass(frozen=True, eq=False)
class CCAPermutation:
    """How much larger correlations are than those of permuted rows, for each choice of the bounds.

    Attributes
    ----------
    l1_bounds : ndarray of shape (m, 2)
        Of each choice, for X and for Y.
    correlations : ndarray of shape (m,)
        Of the first pair.
    permuted : ndarray of shape (m, n_permutations)
        The same with the rows of X permuted.
    z : ndarray of shape (m,)
        `(f(correlation) - mean f(permuted)) / sd f(permuted)`, f = artanh.
    p_values : ndarray of shape (m,)
        `(1 + number of permuted correlations at least as large) / (1 + n_permutations)`.
    best : int
        Where z is largest.
    """

    l1_bounds: Array
    correlations: Array
    permuted: Array
    z: Array
    p_values: Array
    best: int

    @property
    def l1_bound(self) -> tuple[float, float]:
        """The bounds chosen, as `sparse_cca` takes them."""
        return float(self.l1_bounds[self.best, 0]), float(self.l1_bounds[self.best, 1])

    def __repr__(self) -> str:
        x, y = self.l1_bound
        return (
            f"CCAPermutation({len(self.z)} choices, {self.permuted.shape[1]} permutations, "
            f"l1_bound=({x:.4g}, {y:.4g}), z={self.z[self.best]:.3g}, p={self.p_values[self.best]:.3g})"
        )


def sparse_cca(
    X: Any,
    Y: Any,
    n_components: int = 1,
    *,
    method: str = "pmd",
    l1_bound: Any = None,
    cardinality: Any = None,
    ridge: Any = 0.0,
    scale: bool = True,
    max_iter: int = 1000,
    tol: float | None = None,
    callback: Callback | None = None,
) -> SparseCCAResult:
    """Sparse canonical correlation analysis.

    "pmd" searches `max u'X'Yv` over u and v of unit 2-norm with `||u||_1 <= c_x` and `||v||_1 <= c_y`.
    "generalized" searches `max u'X'Yv / sqrt(u'B_x u v'B_y v)` over u and v with at most k_x and k_y
    nonzeros, with the covariances of both sides, to which a ridge may be added. The columns are centred. No
    product of X and Y is formed as a matrix, nor, for more than 1024 variables, a covariance, unless a side
    is in blocks of rows.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, RowBlocks or dask array
        CSR and CSC matrices are centred implicitly; dense data are copied once. float32 stays float32. Where
        either side is in blocks of rows, both are read so, X'Y is formed (p q at most 2^27), and of
        "generalized" both covariances (at most 16,384 variables). Blocks of the two need not match.
    Y : array-like of shape (n, q), sparse matrix, RowBlocks or dask array
    n_components : int, default 1
        r, in [1, min(n, p, q)].
    method : {"pmd", "generalized"}, default "pmd"
    l1_bound : float or pair of floats
        Of "pmd": c_x in [1, sqrt(p)] and c_y in [1, sqrt(q)]. `sparse_cca_permutation` chooses among several.
    cardinality : int or pair of ints
        Of "generalized": k_x in [1, p] and k_y in [1, q].
    ridge : float or pair of floats, default 0
        Of "generalized": added to the diagonals of the covariances, times their mean diagonal entry.
    scale : bool, default True
        Divide each column by its standard deviation.
    max_iter : int, default 1000
        Iterations of each pair of "pmd"; of "generalized", turns, of which at most 100 are made.
    tol : float, optional
        A pair is found when an iteration raises the objective by a smaller fraction. Default 1e-10 for
        float64, 1e-5 for float32.
    callback : callable, optional
        Called with a `Progress` after each iteration, and with the correlation once a pair is found.
        Raising StopIteration ends the search early, see `Progress`.

    Returns
    -------
    SparseCCAResult
        `loadings_x` (p, r), `loadings_y` (q, r), `scores_x`, `scores_y` (n, r), `correlations` (r,), ...
        Fewer pairs, and a RuntimeWarning, where nothing is left to correlate.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, sides with different numbers of rows, fewer than two rows, or an
        option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    D. M. Witten, R. Tibshirani and T. Hastie (2009). A penalized matrix decomposition, with applications to
    sparse principal components and canonical correlation analysis. Biostatistics 10(3), 515-534, section 3.

    K. M. Tan, Z. Wang, H. Liu and T. Zhang (2018). Sparse generalized eigenvalue problem: optimal
    statistical rates via truncated Rayleigh flow. Journal of the Royal Statistical Society B 80, 1057-1086,
    section 2.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.standard_normal((200, 300)), rng.standard_normal((200, 200))
    >>> common = rng.standard_normal(200)
    >>> X[:, :4] += common[:, None]
    >>> Y[:, 5:8] -= common[:, None]
    >>> result = spcacore.sparse_cca(X, Y, method="generalized", cardinality=(4, 3))
    >>> result
    SparseCCAResult(method='generalized', p=300, q=200, 1 pair, cardinality=[(4, 3)], correlations=[0.783])
    >>> np.flatnonzero(result.loadings_x), np.flatnonzero(result.loadings_y)
    (array([0, 1, 2, 3]), array([5, 6, 7]))
    """
    check_choice(method, "method", ("pmd", "generalized"))
    check_bool(scale, "scale")
    sides = _sides(X, Y, scale)
    x, y = sides
    r = integer(n_components, "n_components", 1, min(x.n, x.p, y.p))
    max_iter = integer(max_iter, "max_iter", 1, LARGEST)
    single = x.dtype == y.dtype == np.float32
    tol = (1e-5 if single else 1e-10) if tol is None else number(tol, "tol", 0)
    tell = check_callback(callback)
    given = {"l1_bound": l1_bound, "cardinality": cardinality}
    needed, other = ("l1_bound", "cardinality") if method == "pmd" else ("cardinality", "l1_bound")
    if given[other] is not None:
        raise ValueError(f"{other} goes with the other method; method={method!r} takes {needed}")
    if given[needed] is None:
        raise TypeError(f"method={method!r} needs {needed}")
    ridges = _pair(ridge, "ridge", lambda v, name, _: number(v, name, 0), sides)
    solver: _PMD | _Generalized
    if method == "pmd":
        if any(ridges):
            raise ValueError("ridge goes with method='generalized'")
        solver = _PMD(x, y, _pair(l1_bound, "l1_bound", _bound, sides), max_iter, tol)
    else:
        counts = _pair(cardinality, "cardinality", lambda v, name, s: integer(v, name, 1, s.p), sides)
        solver = _Generalized(x, y, counts, ridges, min(max_iter, CCA_ROUNDS), tol)
    found, correlations = list[_Pair](), list[float]()
    for t in range(r):
        try:
            pair = solver.next(hook_of_component(tell, t, r, whole=t > 0))
        except Ended:
            break
        if pair is None:
            if t == 0:
                warnings.warn("X and Y have nothing in common", RuntimeWarning, stacklevel=2)
            else:
                warnings.warn(
                    f"only {t} of {counted(r, 'pair')}: nothing is left", RuntimeWarning, stacklevel=2
                )
            break
        found.append(pair)
        correlations.append(_correlation(x.image(pair.u), y.image(pair.v)))
        if tell is not None and tell.ended:
            found[-1] = replace(pair, converged=False)
            break
        if tell is not None and tell(Progress(t, r, pair.n_iter, correlations[-1])):
            break
    dtype = np.dtype(np.float32 if single else np.float64)
    loadings = [
        np.array([w / np.linalg.norm(w) for w in side]).reshape(len(found), s.p).T.astype(dtype, order="F")
        for side, s in (([f.u for f in found], x), ([f.v for f in found], y))
    ]
    own = [scores(M, V, s.mean, s.scale) for M, V, s in zip((X, Y), loadings, sides, strict=True)]
    unit = math.ldexp(1.0, x.exponent + y.exponent) if method == "pmd" else 1.0
    return SparseCCAResult(
        loadings_x=loadings[0], loadings_y=loadings[1], scores_x=own[0], scores_y=own[1],
        correlations=np.array(correlations),
        strengths=np.array([f.strength for f in found]) * unit,
        cardinality_x=np.count_nonzero(loadings[0], axis=0),
        cardinality_y=np.count_nonzero(loadings[1], axis=0),
        mean_x=x.mean, mean_y=y.mean, scale_x=x.scale, scale_y=y.scale,
        n_iter=np.array([f.n_iter for f in found], np.intp),
        converged=np.array([f.converged for f in found], bool), method=method,
        names_x=_names(X), names_y=_names(Y),
    )  # fmt: skip


def sparse_cca_permutation(
    X: Any,
    Y: Any,
    l1_bounds: Sequence[Any],
    *,
    n_permutations: int = 25,
    scale: bool = True,
    max_iter: int = 1000,
    tol: float | None = None,
    rng: Any = None,
    n_jobs: int = 1,
) -> CCAPermutation:
    """Choose the bounds of `sparse_cca` by permutation.

    For each choice the correlation of the first pair, `max u'X'Yv` under the bounds, is compared with those
    found after the rows of X are permuted, and the choice for which it stands out most is taken.

    Parameters
    ----------
    X : array-like of shape (n, p), or sparse matrix
        In memory, since rows are permuted.
    Y : array-like of shape (n, q), or sparse matrix
    l1_bounds : sequence of floats or of pairs of floats
        Choices of `l1_bound`.
    n_permutations : int, default 25
        At least 2. All choices see the same permutations.
    scale, max_iter, tol
        As in `sparse_cca`.
    rng : None, int or numpy Generator, optional
        For the permutations; None is a fixed seed.
    n_jobs : int, default 1
        Threads; -1: one for each processor. The result does not depend on it.

    Returns
    -------
    CCAPermutation
        `z` (m,), `p_values` (m,), `correlations` (m,), `permuted` (m, n_permutations), `best`, and
        `l1_bound`, the choice itself.

    Raises
    ------
    ValueError
        For what `sparse_cca` refuses, no choice at all, or fewer than two permutations.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    D. M. Witten and R. J. Tibshirani (2009). Extensions of sparse canonical correlation analysis with
    applications to genomic data. Statistical Applications in Genetics and Molecular Biology 8(1), 28,
    section 3.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.standard_normal((60, 100)), rng.standard_normal((60, 80))
    >>> common = 1.5 * rng.standard_normal(60)
    >>> X[:, :4] += common[:, None]
    >>> Y[:, 5:8] -= common[:, None]
    >>> spcacore.sparse_cca_permutation(X, Y, [1.5, 2, 4, 7])
    CCAPermutation(4 choices, 25 permutations, l1_bound=(1.5, 1.5), z=7.66, p=0.0385)
    """
    check_bool(scale, "scale")
    for M, name in ((X, "X"), (Y, "Y")):
        if is_row_blocks(M):
            raise TypeError(f"permutations need the data in memory, and {name} is in blocks of rows")
    sides = _sides(X, Y, scale)
    x, y = sides
    if isinstance(l1_bounds, (str, bytes)) or not hasattr(l1_bounds, "__len__"):
        raise TypeError(f"l1_bounds must be a sequence of bounds, not {l1_bounds!r}")
    if len(l1_bounds) == 0:
        raise ValueError("l1_bounds is empty")
    bounds = [_pair(b, f"l1_bounds[{i}]", _bound, sides) for i, b in enumerate(l1_bounds)]
    count = integer(n_permutations, "n_permutations", 2)
    max_iter = integer(max_iter, "max_iter", 1, LARGEST)
    single = x.dtype == y.dtype == np.float32
    tol = (1e-5 if single else 1e-10) if tol is None else number(tol, "tol", 0)
    threads = check_jobs(n_jobs)
    generator = np.random.default_rng(as_seed(rng))
    orders = [None, *(generator.permutation(x.n) for _ in range(count))]

    def permuted_by(order: NDArray[np.intp] | None, report: Report) -> list[float]:
        side, stop = x if order is None else x.permuted(order), report.stop
        starts = _starts(_Cross(side, y, stop))
        values = []
        for bound in bounds:
            pair = _PMD(side, y, bound, max_iter, tol, stop).next(None, starts)
            values.append(0.0 if pair is None else _correlation(side.image(pair.u), y.image(pair.v)))
        return values

    table = np.array(in_threads(permuted_by, orders, threads)).T
    own, permuted = table[:, 0], table[:, 1:]
    fisher = np.arctanh(np.clip(table, -1 + 1e-12, 1 - 1e-12))
    deviation = fisher[:, 1:].std(axis=1, ddof=1)
    apart = fisher[:, 0] - fisher[:, 1:].mean(axis=1)
    z = np.where(deviation > 1e-12, apart / np.where(deviation > 1e-12, deviation, 1), 0.0)
    p_values = (1 + (permuted >= own[:, None] - 1e-12).sum(axis=1)) / (1 + count)
    return CCAPermutation(np.array(bounds), own, permuted, z, p_values, int(np.argmax(z)))


def _bound(value: Any, name: str, side: _Side) -> float:
    root = math.sqrt(side.p)
    return min(number(value, name, 1, root * (1 + 1e-12)), root)


def _pair(value: Any, name: str, check: Callable[..., Any], sides: tuple[_Side, _Side]) -> tuple[Any, Any]:
    """One value for each side."""
    values = value if isinstance(value, (tuple, list, np.ndarray)) else (value, value)
    if len(values) != 2:
        raise ValueError(f"{name} must be one number or a pair, for X and Y, not {value!r}")
    checked = [check(v, f"{name} of {s.name}", s) for v, s in zip(values, sides, strict=True)]
    return checked[0], checked[1]


def _correlation(a: Array, b: Array) -> float:
    size = float(np.linalg.norm(a)) * float(np.linalg.norm(b))
    return float(np.clip(a @ b / size, -1, 1)) if size > 0 else 0.0


# ---- the two sides ----------------------------------------------------------------------------------


def _of_y(call: Callable[[], Any]) -> Any:
    """What is said of X is meant of Y."""
    try:
        return call()
    except (TypeError, ValueError) as error:
        raise type(error)(re.sub(r"(?<!\.)\bX\b", "Y", str(error))) from None


def _names(X: Any) -> tuple[str, ...] | None:
    if not is_row_blocks(X):
        return column_names(X)
    return row_blocks(X).names


def _sides(X: Any, Y: Any, scale: bool) -> tuple[_Side, _Side]:
    of = _BlockSide.of if is_row_blocks(X) or is_row_blocks(Y) else _Side.of
    x, y = of(X, scale, "X"), _of_y(lambda: of(Y, scale, "Y"))
    if x.n != y.n:
        raise ValueError(f"X and Y must have the same number of rows, not {x.n} and {y.n}")
    if x.n < 2:
        raise ValueError("at least two rows are needed")
    return x, y


def _weight(problem: Problem) -> Array:
    """What the centred columns are multiplied by."""
    assert problem.diagonal is not None
    unit = problem.range * problem.range
    weight = np.full(problem.p, unit) if problem.scale is None else unit / problem.scale.astype(float)
    weight[problem.diagonal == 0] = 0
    return weight / math.sqrt(max((problem.n_samples or 1) - 1, 1))


def _ridged(matrix: Array, ridge: float) -> Form:
    """With the ridge, a share of the mean diagonal entry."""
    matrix[np.diag_indices(len(matrix))] += ridge * float(matrix.diagonal().mean())
    return Form.of(matrix)


@dataclass(frozen=True)
class _Side:
    """Z - 1 offset', the centred and scaled columns over sqrt(n - 1), Z sparse where there is an offset.

    Columns of a sparse matrix that store every entry are centred in place: with an offset, means that are
    large beside the deviations would cost their digits.  Others deviate by at least mean/sqrt(n).

    `order` permutes the rows. Times `2**exponent`, columns are in the caller's units.
    """

    Z: Any
    offset: Array | None
    order: NDArray[np.intp] | None
    mean: NDArray[Any] | None
    scale: NDArray[Any] | None
    exponent: int
    name: str

    @classmethod
    def of(cls, X: Any, scale: bool, name: str) -> _Side:
        if is_operator(X) or (callable(X) and not hasattr(X, "__array__")):
            raise TypeError("X must have entries; an operator offers only products")
        problem = as_problem(X, scale=scale)
        assert problem.mean is not None
        dtype, weight = problem.operator.dtype, _weight(problem)
        if is_sparse(X):
            Z = compressed(X).tocsr().astype(dtype)
            full = np.bincount(Z.indices, minlength=problem.p) == Z.shape[0]
            if full.any():
                Z.data -= np.where(full, problem.mean, 0)[Z.indices]
            Z = Z.multiply(weight).tocsr().astype(dtype)
            offset = np.where(full, 0, problem.mean) * weight
        else:
            Z = np.array(real_array(X, "X", ndim=2), order="C")
            with np.errstate(under="ignore"):
                Z -= problem.mean
                Z *= weight.astype(dtype)
            offset = None
        return cls(Z, offset, None, problem.mean, problem.scale, problem.exponent // 2, name)

    @property
    def n(self) -> int:
        return self.Z.shape[0]

    @property
    def p(self) -> int:
        return self.Z.shape[1]

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.Z.dtype

    def permuted(self, order: NDArray[np.intp]) -> _Side:
        return _Side(self.Z, self.offset, order, self.mean, self.scale, self.exponent, self.name)

    def image(self, v: Array) -> Array:
        """Z v, of one vector or several."""
        f = np.asarray(self.Z @ v.astype(self.Z.dtype), np.float64)
        if self.offset is not None:
            f = f - self.offset @ v
        return f if self.order is None else f[self.order]

    def back(self, f: Array) -> Array:
        """Z' f."""
        if self.order is not None:
            g = np.empty_like(f)
            g[self.order] = f
            f = g
        v = np.asarray(self.Z.T @ f.astype(self.Z.dtype), np.float64)
        if self.offset is not None:
            v = v - (self.offset * f.sum() if f.ndim == 1 else np.outer(self.offset, f.sum(axis=0)))
        return v

    def metric(self, ridge: float) -> Form:
        """The covariance, and a ridge."""
        form = Form.of(factor=self.Z)
        if self.offset is not None:
            form = form.with_term(self.offset[:, None], np.array([[-float(self.n)]]))
        level = ridge * float(form.diagonal().mean())
        if self.p > SUBMATRIX_ORDER:
            level_form = np.full(self.p, level) if level > 0 else None
            return Form(None, self.Z, level_form, form.unit, form.U, form.K)
        matrix = form.block(np.arange(self.p))
        matrix[np.diag_indices(self.p)] += level
        return Form.of(matrix)


@dataclass(frozen=True)
class _BlockSide(_Side):
    """The same in blocks of rows, of which the operator makes the products, so that Z is None."""

    problem: Problem
    blocks: RowBlocks
    weight: Array

    @classmethod
    def of(cls, X: Any, scale: bool, name: str) -> _Side:
        if not (is_row_blocks(X) or is_sparse(X)):
            X = real_array(X, "X", ndim=2)
        blocks = row_blocks(X).held()
        problem = as_problem(blocks, scale=scale)
        assert problem.mean is not None
        return cls(
            None, None, None, problem.mean, problem.scale, problem.exponent // 2, name, problem, blocks,
            _weight(problem),
        )  # fmt: skip

    @property
    def n(self) -> int:
        return self.blocks.shape[0]

    @property
    def p(self) -> int:
        return self.problem.p

    @property
    def dtype(self) -> np.dtype[Any]:
        return self.problem.operator.dtype

    def image(self, v: Array) -> Array:
        """Z v, of one vector, in one pass."""
        f = self.problem.operator.image_block(v[:, None])[:, 0]
        return f.astype(np.float64) / math.sqrt(self.n - 1)

    def metric(self, ridge: float) -> Form:
        return _ridged(self.problem.operator.submatrix(np.arange(self.p)).astype(np.float64), ridge)

    def cross(self, other: _BlockSide) -> Array:
        """Z'Z of both sides, (p, q), in one pass."""
        if 8 * self.p * other.p > KEPT_BYTES:
            raise ValueError(
                f"X and Y are in blocks of rows, of which products of p q <= {KEPT_BYTES // 8} entries are "
                f"formed, not of {self.p} x {other.p}: choose variables first, or bring both into memory"
            )
        if hasattr(other.blocks, "array") and not hasattr(self.blocks, "array"):  # a dask array goes first
            return other.cross(self).T
        units = [(side.mean, side.weight.astype(side.dtype)) for side in (self, other)]
        return self.blocks.reduced(added, _products, units, each=self.blocks.beside(other.blocks))[0]


def _products(block: Any, other: Any, units: Any) -> tuple[Array]:
    """Of the rows of two blocks, centred and scaled."""
    left, right = prepared(block), prepared(other)
    out = np.zeros((left.shape[1], right.shape[1]))
    entries = max(1, (1 << 22) // max(left.shape[1], right.shape[1]))
    for (_, a), (_, b) in zip(
        dense_rows(left, entries * left.shape[1]), dense_rows(right, entries * right.shape[1]), strict=True
    ):
        (u, v), (w, z) = units
        with np.errstate(under="ignore"):
            out += ((a - u) * v).T @ ((b - w) * z)
    return (out,)


class _Cross:
    """C = X'Y, of whose products X'(Yv) the earlier pairs are taken away; nothing more once `stop` is set."""

    def __init__(self, x: _Side, y: _Side, stop: threading.Event | None = None):
        self.x, self.y, self.stop = x, y, stop
        self.matrix = x.cross(y) if isinstance(x, _BlockSide) and isinstance(y, _BlockSide) else None
        self.terms: list[tuple[float, Array, Array]] = []  # d uv'
        self.factors: list[tuple[Array, Array, Array, Array]] = []  # I - z u', I - v w'

    def times(self, v: Array) -> Array:
        """C v, of one vector or several."""
        self._ask()
        for _, _, own, w in reversed(self.factors):
            v = v - _outer(own, w @ v)
        u = self.x.back(self.y.image(v)) if self.matrix is None else self.matrix @ v
        for own, z, _, _ in self.factors:
            u = u - _outer(z, own @ u)
        for d, own, other in self.terms:
            u = u - _outer(own, d * (other @ v))
        return u

    def back(self, u: Array) -> Array:
        """C' u."""
        self._ask()
        for own, z, _, _ in reversed(self.factors):
            u = u - _outer(own, z @ u)
        v = self.y.back(self.x.image(u)) if self.matrix is None else self.matrix.T @ u
        for _, _, own, w in self.factors:
            v = v - _outer(w, own @ v)
        for d, own, other in self.terms:
            v = v - _outer(other, d * (own @ u))
        return v

    def _ask(self) -> None:
        if self.stop is not None and self.stop.is_set():
            raise InterruptedError("another thread was interrupted")


def _outer(a: Array, b: Any) -> Array:
    return a * b if np.ndim(b) == 0 else np.outer(a, b)


def _leading(cross: _Cross) -> Array | None:
    """The leading right singular vector of C; None if C is zero."""
    q = cross.y.p
    if q <= 64:
        C = cross.times(np.eye(q))
        if not C.any():
            return None
        return np.linalg.eigh(C.T @ C)[1][:, -1].copy()
    from scipy.sparse.linalg import LinearOperator

    v0 = cross.back(cross.times(np.random.default_rng(0).standard_normal(q)))
    if not v0.any():
        return None
    size = float(np.linalg.norm(v0))
    operator = LinearOperator(
        (q, q), dtype=np.float64, matvec=lambda v: cross.back(cross.times(v.ravel())) / size
    )
    _, vectors = largest_eigenpairs(operator, 1, v0=v0 / size, tol=1e-8)
    return vectors[:, 0].copy()


def _max_abs_per_column(cross: _Cross, left: Array, right: Array) -> Array:
    """Of each column of diag(left) C diag(right) the largest magnitude."""
    q = cross.y.p
    reach = np.zeros(q)
    for first in range(0, q, 64):
        E = np.eye(q, min(64, q - first), -first)
        part = slice(first, first + 64)
        reach[part] = np.abs(cross.times(E) * left[:, None]).max(axis=0) * right[part]
    return reach


@dataclass(frozen=True)
class _Pair:
    u: Array
    v: Array
    strength: float
    n_iter: int
    converged: bool


# ---- penalized matrix decomposition -----------------------------------------------------------------


class _PMD:
    """Pairs one after another, by soft thresholds at l1 bounds."""

    def __init__(
        self,
        x: _Side,
        y: _Side,
        bounds: tuple[float, float],
        max_iter: int,
        tol: float,
        stop: threading.Event | None = None,
    ):
        self.cross, self.bounds, self.max_iter, self.tol = _Cross(x, y, stop), bounds, max_iter, tol
        self.noise = 1e-5 if x.dtype == y.dtype == np.float32 else 1e-12

    def next(self, told: ProgressHook | None, starts: list[Array] | None = None) -> _Pair | None:
        runs: list[_Pair] = []
        for v in _starts(self.cross) if starts is None else starts:
            runs.append(self._run(v, told))
            if ended(told):
                break
        if not runs:
            return None
        best = max(runs, key=lambda pair: pair.strength * (1 + 1e-10 * (pair is runs[0])))
        first = self.cross.terms[0][0] if self.cross.terms else 0.0
        if not best.strength > self.noise * first:
            return None
        u, v = best.u, best.v
        if u[np.argmax(np.abs(u))] < 0:
            u, v = -u, -v
        self.cross.terms.append((best.strength, u, v))
        return _Pair(u, v, best.strength, sum(pair.n_iter for pair in runs), best.converged)

    def _run(self, v: Array, told: ProgressHook | None) -> _Pair:
        u, strength, n_iter, converged = np.zeros(self.cross.x.p), 0.0, 0, False
        for n_iter in range(1, self.max_iter + 1):
            u = _bounded(self.cross.times(v), self.bounds[0])
            image = self.cross.back(u)
            v = _bounded(image, self.bounds[1])
            before, strength = strength, float(v @ image)
            enough = told is not None and told(n_iter)
            converged = strength - before <= self.tol * strength
            if converged or enough:
                break
        return _Pair(u, v, strength, n_iter, converged)


def _starts(cross: _Cross) -> list[Array]:
    """The leading singular vector, and the variable of Y with the largest covariance; none if C is zero."""
    v = _leading(cross)
    if v is None:
        return []
    if float(cross.x.n) * cross.x.p * cross.y.p > PAIR_WORK:
        return [v]
    reach = _max_abs_per_column(cross, np.ones(cross.x.p), np.ones(cross.y.p))
    return [v, np.eye(1, cross.y.p, int(np.argmax(reach)))[0]]


def _bounded(a: Array, bound: float) -> Array:
    """The unit vector of bounded l1 norm with the largest product with a."""
    w = np.empty_like(a)
    _core.l1_threshold(np.ascontiguousarray(a), bound, 0, w)
    return w


# ---- generalized eigenproblem -----------------------------------------------------------------------


class _Generalized:
    """Pairs one after another, by the best supports for one side given the other, in turn."""

    def __init__(
        self,
        x: _Side,
        y: _Side,
        counts: tuple[int, int],
        ridges: tuple[float, float],
        max_iter: int,
        tol: float,
    ):
        self.cross, self.max_iter, self.tol = _Cross(x, y), max_iter, tol
        nothing = [Form.of(factor=np.zeros((1, s.p))) for s in (x, y)]
        self.metric = [s.metric(ridge) for s, ridge in zip((x, y), ridges, strict=True)]
        self.empty = any(not (form.diagonal() > 0).any() for form in self.metric)
        if self.empty:
            return
        dtype = np.dtype(np.float32 if x.dtype == y.dtype == np.float32 else np.float64)
        self.pencil = [
            Pencil(A, B, dtype=dtype, advice="use ridge") for A, B in zip(nothing, self.metric, strict=True)
        ]
        self.counts = [min(k, len(pencil.active)) for k, pencil in zip(counts, self.pencil, strict=True)]
        self.first = 0.0
        self.noise = 1e-5 if dtype == np.float32 else 1e-10

    def next(self, told: ProgressHook | None) -> _Pair | None:
        if self.empty:
            return None
        starts = self._starts()
        rough, n_iter = self._from(starts, False, told)
        order = sorted(rough, key=lambda i: -rough[i].strength)
        fine: dict[int, _Pair] = {}
        if not ended(told):
            fine, more = self._from([starts[i] for i in order[:CCA_REFINED_STARTS]], True, told)
            n_iter += more
        best: _Pair | None = None
        for pair in (*fine.values(), *rough.values()):
            if best is None or pair.strength > best.strength * (1 + 1e-10):
                best = pair
        if best is None or not best.strength > self.noise * self.first:
            return None
        self.first = max(self.first, best.strength)
        u, v = best.u, best.v
        if u[np.argmax(np.abs(u))] < 0:
            u, v = -u, -v
        self.cross.factors.append((u, self.metric[0].matvec(u), v, self.metric[1].matvec(v)))
        return _Pair(u, v, best.strength, n_iter, best.converged)

    def _from(
        self, starts: list[Array], exchanges: bool, told: ProgressHook | None
    ) -> tuple[dict[int, _Pair], int]:
        """Where each start leads, unless it meets supports that an earlier one has met; and all turns."""
        pairs, n_iter, seen = dict[int, _Pair](), 0, set[bytes]()
        for i, start in enumerate(starts):
            pair, turns = self._turns(start, exchanges, seen, told)
            n_iter += turns
            if pair is not None:
                pairs[i] = pair
            if pairs and ended(told):
                break
        return pairs, n_iter

    def _starts(self) -> list[Array]:
        """The leading singular vector, made sparse, and the variables of Y most correlated with one of X."""
        cross = self.cross
        v = _leading(cross)
        if v is None:
            return []
        k = self.counts[1]
        sparse = np.zeros_like(v)
        kept = _core.select_largest(v, k)
        sparse[kept] = v[kept]
        starts = [sparse]
        if float(cross.x.n) * cross.x.p * cross.y.p <= PAIR_WORK:
            spread = [np.sqrt(np.maximum(form.diagonal(), 0)) for form in self.metric]
            inverse = [np.where(s > 0, 1 / np.where(s > 0, s, 1), 0) for s in spread]
            reach = _max_abs_per_column(cross, *inverse)
            count = 1 + min(cross.y.p - 1, int(CCA_START_WORK / (float(cross.x.n) * cross.x.p * cross.y.p)))
            for j in np.argsort(-reach, kind="stable")[: min(count, CCA_STARTS)]:
                starts.append(np.eye(1, cross.y.p, j)[0])
        return starts

    def _turns(
        self, v: Array, exchanges: bool, seen: set[bytes], told: ProgressHook | None
    ) -> tuple[_Pair | None, int]:
        """u for v, v for u, then both on their supports, until that raises nothing; and how many turns."""
        supports: list[NDArray[np.intp] | None] = [None, None]
        best: _Pair | None = None
        n_iter = 0
        for n_iter in range(1, self.max_iter + 1):
            x = self._support(0, self.cross.times(v), supports[0], exchanges)
            if x is None:
                return best, n_iter
            u = np.zeros(self.cross.x.p)
            u[x.index] = x.value * self.pencil[0].unit[x.index]
            y = self._support(1, self.cross.back(u), supports[1], exchanges)
            if y is None:
                return best, n_iter
            supports = [x.index, y.index]
            u, v, strength = self._both(x.index, y.index)
            enough = told is not None and told(n_iter)
            if best is not None and strength <= best.strength * (1 + self.tol):
                return _Pair(best.u, best.v, best.strength, n_iter, True), n_iter
            key = x.index.tobytes() + y.index.tobytes()
            if key in seen:
                return None, n_iter
            seen.add(key)
            best = _Pair(u, v, strength, n_iter, False)
            if enough:
                break
        return best, n_iter

    def _support(
        self, side: int, g: Array, earlier: NDArray[np.intp] | None, exchanges: bool
    ) -> Solution | None:
        """The best on the supports that a forward search, and exchanges from it and the earlier one, find."""
        pencil, k = self.pencil[side], self.counts[side]
        g = np.where(pencil.unit > 0, g, 0)
        if not g.any():
            return None
        pencil = pencil.with_numerator(Form.of(factor=g[None]))
        if k == len(pencil.active):
            if side == 0:
                return pencil.leading(pencil.active, 0)
            return Solution(pencil.active, np.zeros(k), 0.0, 0, True)  # its values are not asked for
        found = [forward_search(pencil, k, None)]
        if earlier is not None and not np.array_equal(earlier, found[0].index):
            found.append(pencil.leading(earlier, 0))
        if exchanges:
            found = [swap_search(pencil, x, None) for x in found]
        return max(found, key=lambda x: x.objective)

    def _both(self, S: NDArray[np.intp], T: NDArray[np.intp]) -> tuple[Array, Array, float]:
        """The best values on two supports."""
        W = []
        for side, index in ((0, S), (1, T)):
            pencil = self.pencil[side]
            mu, U = np.linalg.eigh(pencil.B.block(index))
            kept = mu > pencil.null * mu[-1]
            full = np.zeros((pencil.B.p, np.count_nonzero(kept)))
            full[index] = U[:, kept] / np.sqrt(mu[kept]) * pencil.unit[index, None]
            W.append(full)
        left, value, right = np.linalg.svd(W[0].T @ self.cross.times(W[1]), full_matrices=False)
        return W[0] @ left[:, 0], W[1] @ right[0], float(value[0])
