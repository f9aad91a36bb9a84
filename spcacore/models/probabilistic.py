"""Probabilistic principal component analysis, also with missing entries.

Each row is `x = W z + mu + noise`, z standard normal and the noise normal with variance s2 in every variable,
so that the covariance of x is `W W' + s2 I`. With eigenvalues l_1 >= ... >= l_p of the sample covariance, the
likelihood is largest for `s2 = mean(l_j, j > r)` and `W = U diag(l_j - s2)^(1/2)`, U the r leading
eigenvectors (Tipping and Bishop 1999, equations 7 and 8). Then `W'W + s2 I = diag(l_1, ..., l_r)`.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import linalg

from .._limits import COPIED_ENTRIES, LANCZOS_SHARE, PPCA_ORDER
from .._messages import counted
from .._validation import (
    aligned,
    as_seed,
    check_callback,
    column_names,
    framed,
    integer,
    is_operator,
    is_row_blocks,
    is_sparse,
    number,
    real_array,
    refuse_not_finite,
)
from ..linalg.eigen import largest_eigenpairs, products_of
from ..linalg.lapack import interruptible
from ..operators.blocks import prepared
from ..operators.inputs import as_problem
from ..operators.partition import row_blocks
from ..operators.problem import Problem, warn_out_of_range
from ..operators.sparse_format import compressed
from ..progress import Callback, Progress
from ..results import Named

_LOG_2PI = math.log(2 * math.pi)


@dataclass(frozen=True, eq=False)
class PPCAResult(Named):
    """A normal distribution with covariance `W W' + s2 I`, fitted by `ppca`.

    With ``scale=True`` loadings, variances and noise are those of `(x - mean) / scale`; likelihoods, samples
    and filled entries are always of x itself.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        W: orthogonal columns of squared length `explained_variance - noise_variance`, the longest first; in
        each, the entry of largest magnitude is positive. `directions` has them at unit length.
    noise_variance : float
        s2, in the units of the covariance; 0 when r is the rank of the data.
    mean : ndarray of shape (p,) or None
        None if not subtracted, or for a covariance.
    scale : ndarray of shape (p,) or None
    explained_variance : ndarray of shape (r,)
        Variance of x along each direction, noise included.
    log_likelihood : float or None
        Of all observed entries; inf where the likelihood is unbounded; None for a covariance of an unknown
        number of samples.
    bic : float or None
        `-2 log_likelihood + log(n) n_parameters`; smaller is better.
    n_parameters : int
        Free parameters: `p r - r (r - 1) / 2 + 1`, and p for the mean.
    trace : ndarray of shape (n_iter,)
        Log-likelihood before each iteration where entries are missing, else empty.
    n_iter : int
        0 without missing entries, where there is nothing to iterate.
    converged : bool
    n_samples : int or None
    names : tuple of str or None
        Names of the variables, when the input had any.
    method : {"eigendecomposition", "em"}
    """

    loadings: NDArray[Any]
    noise_variance: float
    mean: NDArray[Any] | None
    scale: NDArray[Any] | None
    explained_variance: NDArray[np.float64]
    log_likelihood: float | None
    bic: float | None
    n_parameters: int
    trace: NDArray[np.float64]
    n_iter: int
    converged: bool
    n_samples: int | None
    names: tuple[str, ...] | None
    method: str

    @property
    def directions(self) -> NDArray[Any]:
        """The loadings at unit length, (p, r); zero where a variance is that of the noise."""
        return self._axes().astype(self.loadings.dtype)

    def _axes(self) -> NDArray[np.float64]:
        W = self.loadings.astype(np.float64)
        size = np.abs(W).max(axis=0)
        W /= np.where(size > 0, size, 1)
        norm = np.linalg.norm(W, axis=0)
        return W / np.where(norm > 0, norm, 1)

    def transform(self, X: Any) -> NDArray[Any]:
        """Posterior means `(W'W + s2 I)^-1 W'(x - mean)` of z, from the observed entries of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
            NaN entries are missing. For a result from a covariance, which knows no mean, X is used as it is.

        Returns
        -------
        ndarray of shape (m, r), or a dataframe with the index of X where X is one of pandas or polars
        """
        dtype = np.result_type(self.loadings, np.float32)
        if is_row_blocks(X):
            return self._by_blocks("transform", X, (self.n_components,), dtype)
        return framed(X, np.concatenate([_posterior(self, rows)[0] for rows in self._rows(X)]).astype(dtype))

    def posterior_covariance(self, X: Any = None) -> NDArray[np.float64]:
        """Posterior covariance `s2 (W'W + s2 I)^-1` of z.

        Parameters
        ----------
        X : array-like of shape (m, p), optional
            Rows whose NaN entries are missing. Default: of any row without missing entries.

        Returns
        -------
        ndarray of shape (r, r), or (m, r, r)
        """
        if X is None:
            with np.errstate(under="ignore"):
                return np.diag(self.noise_variance / self.explained_variance)
        if is_row_blocks(X):
            return self._by_blocks("posterior_covariance", X, 2 * (self.n_components,))
        return np.concatenate([_posterior(self, rows)[1] for rows in self._rows(X)])

    def score_samples(self, X: Any) -> NDArray[np.float64]:
        """Log-density of the observed entries of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
            NaN entries are missing; a row without observed entries has 0.

        Returns
        -------
        ndarray of shape (m,)

        Raises
        ------
        ValueError
            When the covariance is singular: r is the rank of the data, and below p.
        """
        if self.noise_variance == 0 and self.n_components < len(self.loadings):
            raise ValueError("the covariance is singular, so there is no density; fit fewer components")
        if is_row_blocks(X):
            return self._by_blocks("score_samples", X, ())
        return np.concatenate([_log_density(self, rows) for rows in self._rows(X)])

    def score(self, X: Any) -> float:
        """Mean log-density of the rows of X, as `score_samples` gives it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)

        Returns
        -------
        float
        """
        return float(self.score_samples(X).mean())

    def covariance(self) -> NDArray[Any]:
        """The covariance `W W' + s2 I` of the model, (p, p)."""
        W = self.loadings.astype(np.float64)
        C = W @ W.T
        C[np.diag_indices(len(C))] += self.noise_variance
        if self.scale is not None:
            C *= np.outer(self.scale, self.scale)
        return C.astype(self.loadings.dtype)

    def impute(self, X: Any) -> NDArray[Any]:
        """X with each NaN entry replaced by its expectation given the observed entries of its row.

        Parameters
        ----------
        X : array-like of shape (m, p)

        Returns
        -------
        ndarray of shape (m, p), or a dataframe with the index of X, and the columns of the fit, where X is
            one of pandas or polars
        """
        a = real_array(aligned(X, self.names), "X", ndim=2, finite=False)
        out, start = a.copy(order="C"), 0
        W = self.loadings.astype(np.float64)
        for rows in self._rows(a):
            filled = _posterior(self, rows)[0] @ W.T
            if self.scale is not None:
                filled *= self.scale
            if self.mean is not None:
                filled += self.mean
            part = out[start : start + len(rows)]
            np.copyto(part, filled.astype(a.dtype), where=np.isnan(part))
            start += len(rows)
        return framed(X, out, self.names or column_names(X))

    def sample(self, n_samples: int, *, rng: Any = None) -> NDArray[Any]:
        """Rows drawn from the model.

        Parameters
        ----------
        n_samples : int
        rng : None, int or numpy Generator, optional
            None is a fixed seed.

        Returns
        -------
        ndarray of shape (n_samples, p)
        """
        n = integer(n_samples, "n_samples", 1)
        draw = np.random.default_rng(as_seed(rng))
        p, r = self.loadings.shape
        Z = draw.standard_normal((n, r))
        X = Z @ self.loadings.T.astype(np.float64)
        X += math.sqrt(self.noise_variance) * draw.standard_normal((n, p))
        if self.scale is not None:
            X *= self.scale
        if self.mean is not None:
            X += self.mean
        return X.astype(self.loadings.dtype)

    def _by_blocks(self, method: str, X: Any, tail: tuple[int, ...], dtype: Any = np.float64) -> Any:
        """A method of each block of rows."""
        blocks = row_blocks(X)
        if blocks.shape[1] != len(self.loadings):
            raise ValueError(f"X has shape {blocks.shape} where (m, {len(self.loadings)}) is needed")
        return blocks.mapped(_of_block, tail, np.dtype(dtype), self, method, tail, dtype)

    def _rows(self, X: Any) -> Iterator[NDArray[np.float64]]:
        """The rows of X, centred and scaled, some at a time."""
        p, X = len(self.loadings), aligned(X, self.names)
        if is_sparse(X):
            a = compressed(X).tocsr()
            refuse_not_finite(a.data, "X.data")
        elif is_operator(X):
            raise TypeError("X must have entries; an operator offers only products")
        else:
            a = real_array(X, "X", ndim=2, finite=False)
            refuse_infinite(a)
        if a.shape[1] != p:
            raise ValueError(f"X has shape {a.shape} where (m, {p}) is needed")
        step = max(1, COPIED_ENTRIES // p)
        for start in range(0, a.shape[0], step):
            part = a[start : start + step]
            rows = part.toarray().astype(np.float64) if is_sparse(a) else part.astype(np.float64)
            if self.mean is not None:
                rows -= self.mean
            if self.scale is not None:
                rows /= self.scale
            yield rows

    def __repr__(self) -> str:
        p, r = self.loadings.shape
        likelihood = "" if self.log_likelihood is None else f", log_likelihood={self.log_likelihood:.6g}"
        state = ""
        if self.method == "em":
            state = f", {'' if self.converged else 'not '}converged in {counted(self.n_iter, 'iteration')}"
        return (
            f"PPCAResult(p={p}, {counted(r, 'component')}, noise_variance={self.noise_variance:.6g}"
            f"{likelihood}{state})"
        )


def _of_block(
    block: Any, result: PPCAResult, method: str, tail: tuple[int, ...], dtype: np.dtype[Any]
) -> NDArray[Any]:
    X = prepared(block)
    if np.isinf(X.data if is_sparse(X) else X).any():
        raise ValueError("X has entries that are infinite")
    return getattr(result, method)(X) if X.shape[0] else np.empty((0, *tail), dtype)


def ppca(
    X: Any,
    n_components: int,
    *,
    kind: str = "data",
    center: Any = True,
    scale: Any = False,
    sample_weight: Any = None,
    n_samples: int | None = None,
    ddof: int = 1,
    max_iter: int = 1000,
    tol: float = 1e-9,
    callback: Callback | None = None,
) -> PPCAResult:
    """Probabilistic principal components by maximum likelihood.

    Maximizes `sum_i log N(x_i; mu, W W' + s2 I)` over mu, W (p x r) and s2: in closed form from the
    eigenvalues of the covariance, of which only the smaller of X'X and XX' is formed, or, where entries
    are missing, the likelihood of the observed ones by an EM algorithm that never lowers it.

    Parameters
    ----------
    X : array-like of shape (n, p) or sparse matrix
        Data, one row a sample; with ``kind="covariance"`` a symmetric positive semidefinite (p, p) matrix.
        Dense data may have NaN entries, missing at random; then X is copied, as float64, about three times.
    n_components : int
        r, at most the rank of the centred data. At the rank, nothing is left for the noise: for r = p the
        covariance is that of the sample, otherwise the likelihood is unbounded (a RuntimeWarning).
    kind : {"data", "covariance"}, default "data"
    center : bool or array-like of shape (p,), default True
        Estimate the mean; False takes it to be 0, an array to be that. True is ignored for a covariance.
    scale : bool or array-like of shape (p,), default False
        Divide each variable first by its standard deviation, or by these positive numbers: the noise then is
        a share of each variance. For a covariance: use the correlation.
    sample_weight : array-like of shape (n,), optional
        How many samples each row of data stands for, not negative: the mean and covariance are those of rows
        repeated so often, divided by ``sum(sample_weight) - 1``, which must be positive. Rows of weight 0 are
        left out. Not with missing entries.
    n_samples : int, optional
        What a covariance, divided by `n_samples - 1`, was computed from; needed for its likelihood.
    ddof : {0, 1}, default 1
        Sums of squares are divided by `n - ddof`: 1 is the covariance of the rest of this package and
        scikit-learn's, 0 is maximum likelihood proper. The result for 1 is that for 0 with W W' and s2
        times `n/(n - 1)`.
    max_iter, tol : int and float, default 1000 and 1e-9
        With missing entries: stop when an iteration raises the log-likelihood by at most `tol` an observed
        entry.
    callback : callable, optional
        With missing entries: called with a `Progress` after each iteration.
        Raising StopIteration ends the search early, see `Progress`.

    Returns
    -------
    PPCAResult
        `loadings` W (p, r), `noise_variance`, `mean`, `explained_variance` (r,), `log_likelihood`, `bic`;
        `.transform`, `.posterior_covariance`, `.score`, `.score_samples`, `.sample`, `.impute`,
        `.covariance`.

    Raises
    ------
    ValueError
        For more components than the rank, a single sample, no variance, a constant variable with
        ``scale=True``, infinite or empty input, NaN other than in dense data, a variable without observed
        entries, a covariance that is not positive semidefinite, or an option out of range.
    TypeError
        For input that is not real numbers, masked arrays, or an option of the wrong type.

    Notes
    -----
    s2 is the mean of the `p - r` smallest eigenvalues, those that are 0 for n < p included. scikit-learn
    averages the `min(n, p) - r` that it computes, so for n <= p its noise is larger, and no maximum of the
    likelihood.

    References
    ----------
    M. E. Tipping and C. M. Bishop (1999). Probabilistic principal component analysis. Journal of the Royal
    Statistical Society B 61(3), 611-622, equations 7 and 8. A. Ilin and T. Raiko (2010). Practical
    approaches to principal component analysis in the presence of missing values. Journal of Machine
    Learning Research 11, 1957-2000, section 4. C. Liu, D. B. Rubin and Y. N. Wu (1998). Parameter
    expansion to accelerate EM: the PX-EM algorithm. Biometrika 85(4), 755-770.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> X, planted = spcacore.datasets.make_spiked(200, 30, variances=(9, 4), rng=0)
    >>> result = spcacore.ppca(X, 2)
    >>> round(result.noise_variance, 2), result.explained_variance.round(1)
    (0.99, array([9.3, 3.6]))
    >>> [spcacore.ppca(X, r).bic > result.bic for r in (1, 3)]
    [True, True]
    >>> Y = X.copy()
    >>> Y[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    >>> round(spcacore.ppca(Y, 2).noise_variance, 2)
    0.98
    """
    problem = as_problem(X, kind=kind, center=center, scale=scale, sample_weight=sample_weight, missing=True)
    covariance = problem.n_samples is None
    ddof = integer(ddof, "ddof", 0, 1)
    max_iter, tol = integer(max_iter, "max_iter", 1), number(tol, "tol", 0)
    tell = check_callback(callback)
    n = samples_of(problem, n_samples)
    if n is None and ddof == 0:
        raise ValueError("ddof=0 needs n_samples: a covariance is taken to be divided by n_samples - 1")
    r = integer(n_components, "n_components", 1, min(problem.p, problem.n_samples or n or problem.p))
    center = not covariance and np.ndim(center) == 0 and bool(center)  # whether the mean is estimated
    total = total_variance(problem)
    if problem.filled is not None:
        return _fit_missing(problem, r, ddof, max_iter, tol, tell)
    values, U, rest = _leading(problem, X, r, total)
    noise = rest / (problem.p - r) if r < problem.p else 0.0
    if rest == 0 and r < problem.p:
        warnings.warn(
            f"X has rank {r}, so {counted(r, 'component')} can leave no noise, "
            "and the likelihood is unbounded: it is given as inf", RuntimeWarning, stacklevel=2,
        )  # fmt: skip
    likelihood = None
    if n is not None:
        if ddof == 0:
            values, noise = values * ((n - 1) / n), noise * ((n - 1) / n)
        likelihood = _log_likelihood(problem, values, noise, n, ddof)
    return _result(problem, U, values, noise, n, likelihood, np.zeros(0), True, "eigendecomposition", center)


def samples_of(problem: Problem, n_samples: Any) -> Any:
    """The number of samples, the sum of their weights; of a covariance as the caller says, or None."""
    if problem.n_samples is None:
        return None if n_samples is None else integer(n_samples, "n_samples", 2)
    if n_samples is not None:
        raise ValueError("n_samples goes with kind='covariance'; data tell it themselves")
    if problem.n_samples < 2:
        raise ValueError("X has a single sample; at least 2 are needed")
    return problem.n_samples if problem.row_weight is None else problem.total_weight


def total_variance(problem: Problem) -> float:
    """The total variance, which must be known and positive."""
    if problem.diagonal is None:
        raise ValueError("X must have entries: the noise needs the total variance")
    if not problem.diagonal.any():
        raise ValueError("X has no variance: all variables are constant")
    if problem.scale is not None and not problem.diagonal.all():
        j = int(np.argmin(problem.diagonal))
        raise ValueError(f"variable {j} is constant, so scale=True cannot give it unit variance; drop it")
    return float(problem.diagonal.sum())


# ---- eigenvalues and eigenvectors -------------------------------------------------------------------


def _leading(
    problem: Problem, X: Any, r: int, total: float
) -> tuple[NDArray[np.float64], NDArray[np.float64], float]:
    """The r leading eigenvalues (operator's units), their vectors, and the sum of all others.

    A matrix of products knows eigenvalues to eps times the largest. Where that is too coarse, dense data are
    multiplied as float64, and then decomposed themselves.
    """
    op, p = problem.operator, problem.p
    eps = float(np.finfo(op.dtype).eps)
    dense = not (op.covariance or is_sparse(X) or is_operator(X))
    order = p if op.covariance else min(op.n, p)
    if order > PPCA_ORDER or not (dense or p == order):
        values, U = _by_lanczos(op, r)
    elif not dense:
        values, U = _eigenvectors(op.submatrix(np.arange(p)).astype(np.float64), r)
    else:
        values, U = _by_products(problem, X, r, op.dtype)
    rest, exact = total - float(values.sum()), 10 * eps * order

    def coarse(eps: float, digits: float) -> bool:
        return dense and order <= PPCA_ORDER and min(values[-1], rest) < digits * eps * values[0]

    if op.single and coarse(eps, 1e5):
        eps = float(np.finfo(np.float64).eps)
        values, U = _by_products(problem, X, r, np.dtype(np.float64))
        rest, exact = total - float(values.sum()), 10 * eps * order
    if coarse(eps, 1e6) and not (op.single and eps > 1e-10):
        F = _centred(problem, X, slice(None), slice(None), np.dtype(np.float64))
        _, s, Vt = interruptible(
            lambda: linalg.svd(F, full_matrices=False, overwrite_a=True, check_finite=False)
        )
        squares = s**2 / max(op.n - 1, 1)
        values, U, rest = squares[:r], Vt[:r].T, float(squares[r:].sum())
        exact = (eps * max(op.n, p)) ** 2
        assert problem.moment is not None  # what was subtracted may have been larger
        exact += 16 * float(np.finfo(op.dtype).eps) ** 2 * float(problem.moment.sum() / values[0])
    rank = int(np.count_nonzero(values > exact * values[0]))
    if rank < r:
        raise ValueError(f"X has rank {rank}, so n_components must be at most {rank}, not {r}")
    if r == p or rest <= exact * values[0] * (order - r + 1):
        rest = 0.0
    return values, U, rest


def _eigenvectors(A: NDArray[Any], r: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The r largest eigenvalues and their vectors: by Lanczos where they are few of many, else by LAPACK."""
    m = len(A)
    found = _few(A, r) if m > LANCZOS_SHARE * r and m > 500 else None
    if found is None:
        found = interruptible(
            lambda: linalg.eigh(A, subset_by_index=[m - r, m - 1], overwrite_a=True, check_finite=False)
        )
    values, U = found
    return np.maximum(values[::-1], 0).astype(np.float64), U[:, ::-1].astype(np.float64)


def _few(A: NDArray[Any], r: int) -> tuple[NDArray[Any], NDArray[Any]] | None:
    """To rounding; None where that takes too many products."""
    from scipy.sparse.linalg import ArpackNoConvergence

    try:
        return largest_eigenpairs(
            A, r, v0=np.random.default_rng(0).standard_normal(len(A)).astype(A.dtype), maxiter=60
        )
    except ArpackNoConvergence:
        return None


def _by_products(
    problem: Problem, X: Any, r: int, dtype: np.dtype[Any]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """From the smaller of F'F and FF', summed in float64 over blocks multiplied in `dtype`."""
    n, p = problem.operator.n, problem.p
    all_, step = slice(None), max(1, COPIED_ENTRIES // min(n, p))
    G = np.zeros((min(n, p),) * 2)
    if p <= n:
        for start in range(0, n, step):
            F = _centred(problem, X, slice(start, start + step), all_, dtype)
            G += interruptible(partial(np.matmul, F.T, F))
        G /= n - 1
        return _eigenvectors(G.astype(dtype), r)
    blocks = [slice(start, start + step) for start in range(0, p, step)]
    for columns in blocks:
        F = _centred(problem, X, all_, columns, dtype)
        G += interruptible(partial(np.matmul, F, F.T))
    G /= n - 1
    values, Z = _eigenvectors(G.astype(dtype), r)
    U = np.empty((p, r))
    for columns in blocks:
        if len(blocks) > 1:
            F = _centred(problem, X, all_, columns, dtype)
        U[columns] = F.T @ Z.astype(dtype)
    norm = np.linalg.norm(U, axis=0)
    return values, U / np.where(norm > 0, norm, 1)


def _by_lanczos(op: Any, r: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if r >= op.p - 1:
        raise ValueError(f"n_components must be below {op.p - 1} for so large a matrix, not {r}")
    start = np.random.default_rng(0).standard_normal(op.p).astype(op.dtype)
    values, U = largest_eigenpairs(products_of(op), r, v0=start)
    return values[::-1].astype(np.float64), U[:, ::-1].astype(np.float64)


def _centred(problem: Problem, X: Any, rows: slice, columns: slice, dtype: np.dtype[Any]) -> NDArray[Any]:
    """F: what the operator multiplies by, as an array."""
    a = real_array(X, "X", ndim=2, finite=False)[rows, columns].astype(dtype)
    with np.errstate(under="ignore"):
        if problem.mean is not None:
            a -= problem.mean[columns]
        if problem.weight is not None:
            a *= problem.weight[columns]
        if problem.range != 1:
            a *= problem.range
            a *= problem.range
        if problem.row_weight is not None:
            a *= problem.row_weight[rows, None]
    return a


# ---- the result -------------------------------------------------------------------------------------


def _log_likelihood(
    problem: Problem, values: NDArray[np.float64], noise: float, n: float, ddof: int
) -> float:
    """At the closed form: `-n/2 (p log 2 pi + log det C) - (n - ddof)/2 p`."""
    p, r = problem.p, len(values)
    if noise == 0 and r < p:
        return math.inf
    determinant = float(np.log(values).sum()) + (p - r) * (math.log(noise) if r < p else 0.0)
    determinant += p * problem.exponent * math.log(2)
    if problem.scale is not None:
        determinant += 2 * float(np.log(problem.scale.astype(np.float64)).sum())
    return -0.5 * n * (p * _LOG_2PI + determinant) - 0.5 * (n - ddof) * p


def _result(
    problem: Problem,
    U: NDArray[np.float64],
    values: NDArray[np.float64],
    noise: float,
    n: int | None,
    likelihood: float | None,
    trace: NDArray[np.float64],
    converged: bool,
    method: str,
    center: bool,
    mean: NDArray[Any] | None = None,
) -> PPCAResult:
    """From orthonormal directions, and variances in the operator's units."""
    p, r = U.shape
    U = U * np.where(U[np.abs(U).argmax(axis=0), np.arange(r)] < 0, -1, 1)
    with np.errstate(under="ignore", over="ignore"):
        W = U * np.ldexp(np.sqrt(np.maximum(values - noise, 0)), problem.exponent // 2)
        loadings = W.astype(problem.operator.dtype)
    explained, s2 = np.asarray(problem.in_units(values)), float(problem.in_units(noise))
    warn_out_of_range(np.append(values, noise), np.append(explained, s2), stacklevel=3)
    free = p * r - r * (r - 1) // 2 + (r < p) + (p if center else 0)
    return PPCAResult(
        loadings=loadings,
        noise_variance=s2,
        mean=problem.mean if mean is None else mean,
        scale=problem.scale,
        explained_variance=explained,
        log_likelihood=likelihood,
        bic=None if likelihood is None or n is None else -2 * likelihood + math.log(n) * free,
        n_parameters=free,
        trace=trace,
        n_iter=len(trace),
        converged=converged,
        n_samples=n,
        names=problem.names,
        method=method,
    )


# ---- rows and their posteriors ----------------------------------------------------------------------


def refuse_infinite(a: NDArray[Any]) -> None:
    """NaN may stand for what is missing, infinity for nothing."""
    step = max(1, COPIED_ENTRIES // max(1, a.shape[1]))
    for start in range(0, len(a), step):
        if np.isinf(a[start : start + step]).any():
            refuse_not_finite(np.where(np.isnan(a), 0, a), "X")


def _patterns(missing: NDArray[np.bool_]) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """The different rows of a mask, and which of them each row is."""
    _, first, which = np.unique(np.packbits(missing, axis=1), axis=0, return_index=True, return_inverse=True)
    return missing[first], which.reshape(-1)


def _posterior(model: PPCAResult, Y: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Means and covariances of z given the rows of Y, NaN where missing."""
    W, noise = model.loadings.astype(np.float64), model.noise_variance
    r = W.shape[1]
    whole = np.diag(noise / model.explained_variance)
    missing = np.isnan(Y)
    if not missing.any():
        return Y @ (W / model.explained_variance), np.broadcast_to(whole, (len(Y), r, r))
    mean, spread = np.empty((len(Y), r)), np.empty((len(Y), r, r))
    patterns, which = _patterns(missing)
    for g, absent in enumerate(patterns):
        rows, seen = np.flatnonzero(which == g), ~absent
        part = W[seen]
        if noise > 0:
            inverse = linalg.pinvh(part.T @ part + noise * np.eye(r))
            back, spread[rows] = part @ inverse, noise * inverse
        else:
            back = np.linalg.pinv(part).T
            spread[rows] = np.eye(r) - part.T @ back
        mean[rows] = Y[np.ix_(rows, seen)] @ back
    return mean, spread


def _log_density(model: PPCAResult, Y: NDArray[np.float64]) -> NDArray[np.float64]:
    """Of each row, over its observed entries, in the caller's units."""
    p = len(model.loadings)
    noise, values = model.noise_variance, model.explained_variance
    missing = np.isnan(Y)
    scale = np.zeros(p) if model.scale is None else np.log(model.scale.astype(np.float64))
    out = -0.5 * _LOG_2PI * (~missing).sum(axis=1) - (~missing) @ scale
    W = model.loadings.astype(np.float64)
    complete = not missing.any()
    patterns, which = (missing[:1], np.zeros(len(Y), np.intp)) if complete else _patterns(missing)
    for g, absent in enumerate(patterns):
        rows, seen = np.flatnonzero(which == g), ~absent
        if not seen.any():
            continue
        y = Y if complete else Y[np.ix_(rows, seen)]
        if seen.all():
            U = model._axes()
            kept = U.any(axis=0)
            U, along = U[:, kept], values[kept]
        elif noise > 0:
            U, s, _ = linalg.svd(W[seen], full_matrices=False)
            along = s**2 + noise
        else:
            along, U = linalg.eigh(W[seen] @ W[seen].T)
        t = y @ U
        determinant = np.log(along).sum()
        with np.errstate(over="ignore", under="ignore"):  # of rows far away
            square = ((t / np.sqrt(along)) ** 2).sum(axis=1)
            if U.shape[1] < y.shape[1]:
                determinant += (y.shape[1] - U.shape[1]) * math.log(noise)
                square += ((y - t @ U.T) ** 2).sum(axis=1) / noise
        out[rows] -= 0.5 * (determinant + square)
    return out


# ---- missing entries --------------------------------------------------------------------------------


def _fit_missing(problem: Problem, r: int, ddof: int, max_iter: int, tol: float, tell: Any) -> PPCAResult:
    """EM for the likelihood of the observed entries, with an expanded model.

    Per row, with its observed variables o: `M = W_o'W_o + s2 I`, `E z = M^-1 W_o'(x_o - mu_o)`, covariance
    `s2 M^-1`. Then each variable is regressed on the expected z and 1 over the rows that observe it, and s2
    is the mean of what is left. The expanded model lets z have any mean and covariance, which are estimated
    too and then absorbed by mu and W (PX-EM): the likelihood never falls, and rises faster.
    """
    filled = problem.filled
    assert filled is not None
    n, p = filled.array.shape
    seen = (~np.isnan(filled.source)).astype(np.float64)
    Y = np.ascontiguousarray(filled.array, np.float64) * (filled.range * filled.range)
    center = problem.mean is not None
    count = float(seen.sum())
    rows = int(seen.any(axis=1).sum())
    if rows < 2:
        raise ValueError("X has fewer than 2 samples with observed entries")
    if r > min(rows - center, p):
        raise ValueError(f"X has at most rank {min(rows - center, p)}; n_components is {r}")
    patterns, which = _patterns(seen == 0)
    masks = (~patterns).astype(np.float64)
    values, U = _by_lanczos_or_dense(Y, r)
    floor = float(np.sum(Y**2)) / count
    noise = max((float(np.sum(Y**2)) / n - values.sum()) / p, 1e-3 * floor)
    W, mu = U * np.sqrt(np.maximum(values, noise)), np.zeros(p)
    trace: list[float] = []
    converged = False
    for _ in range(max_iter):
        likelihood, W, mu, s2 = _em_step(Y, seen, masks, which, W, mu, noise, center)
        trace.append(likelihood)
        fell = len(trace) > 1 and trace[-1] < trace[-2] and noise < 1e-8 * floor  # by rounding
        if fell or not s2 > 1e-13 * floor:
            raise ValueError(
                f"too few entries are observed for {counted(r, 'component')}: "
                "these leave no noise, and the likelihood is unbounded; ask for fewer"
            )
        noise = s2
        enough = tell is not None and tell(Progress(0, 1, len(trace)))
        converged = len(trace) > 1 and trace[-1] - trace[-2] <= tol * count
        if converged or enough:
            break
    if not converged:
        warnings.warn(f"not converged in {counted(len(trace), 'iteration')}", RuntimeWarning, stacklevel=3)
    if ddof:
        W, noise = W * math.sqrt(n / (n - 1)), noise * n / (n - 1)
    likelihood = _em_step(Y, seen, masks, which, W, mu, noise, center)[0]
    shift = 0.5 * problem.exponent * math.log(2) * count
    if problem.scale is not None:
        shift += float(seen.sum(axis=0) @ np.log(problem.scale.astype(np.float64)))
    U, s, _ = linalg.svd(W, full_matrices=False)
    mean = None
    if center:
        assert problem.mean is not None
        change = np.ldexp(mu, problem.exponent // 2)
        mean = problem.mean + change * (1 if problem.scale is None else problem.scale)
        mean = mean.astype(problem.operator.dtype)
    path = np.array(trace) - shift
    return _result(
        problem, U, s**2 + noise, noise, n, likelihood - shift, path, converged, "em", center, mean
    )


def _by_lanczos_or_dense(Y: NDArray[np.float64], r: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Leading eigenvalues of Y'Y/n and their vectors."""
    n, p = Y.shape
    wide = n < p
    G = Y @ Y.T if wide else Y.T @ Y
    m = len(G)
    values, V = linalg.eigh(G, subset_by_index=[m - r, m - 1], overwrite_a=True)
    values, V = values[::-1], V[:, ::-1]
    if wide:
        V = linalg.qr(Y.T @ V, mode="economic")[0]
    return np.maximum(values, 0) / n, V


def _em_step(
    Y: NDArray[np.float64],
    seen: NDArray[np.float64],
    masks: NDArray[np.float64],
    which: NDArray[np.intp],
    W: NDArray[np.float64],
    mu: NDArray[np.float64],
    noise: float,
    center: bool,
) -> tuple[float, NDArray[np.float64], NDArray[np.float64], float]:
    """The log-likelihood of (W, mu, noise), and the next three."""
    n, p = Y.shape
    r = W.shape[1]
    q = r + center
    M = (masks @ (W[:, :, None] * W[:, None, :]).reshape(p, r * r)).reshape(-1, r, r) + noise * np.eye(r)
    inverse = np.linalg.inv(M)
    right = Y @ W - seen @ (mu[:, None] * W)
    Z = np.einsum("ia,iab->ib", right, inverse[which])
    left = Y - seen * (Z @ W.T + mu)
    observed = masks.sum(axis=1)
    determinant = (observed - r) * math.log(noise) + np.linalg.slogdet(M)[1]
    square = np.sum(left**2) / noise + np.sum(Z**2)
    likelihood = -0.5 * (_LOG_2PI * seen.sum() + determinant[which].sum() + square)

    moment, b = np.zeros((p, q * q)), np.zeros((p, q))
    whole = np.zeros((r, r))
    step = max(1, COPIED_ENTRIES // (q * q + p))
    for rows in (slice(start, start + step) for start in range(0, n, step)):
        z, spread = Z[rows], noise * inverse[which[rows]]
        full = np.concatenate((z, np.ones((len(z), 1))), axis=1) if center else z
        outer = full[:, :, None] * full[:, None, :]
        outer[:, :r, :r] += spread
        whole += outer[:, :r, :r].sum(axis=0)
        moment += seen[rows].T @ outer.reshape(len(z), q * q)
        b += Y[rows].T @ full
    theta = np.linalg.solve(moment.reshape(p, q, q), b[:, :, None])[:, :, 0]
    V, shift = theta[:, :r], theta[:, r] if center else mu
    left = Y - seen * (Z @ V.T + shift)
    spread = noise * (masks @ (V[:, :, None] * V[:, None, :]).reshape(p, r * r)).reshape(-1, r, r)
    rest = np.sum(left**2) + np.sum(spread * inverse, axis=(1, 2))[which].sum()
    mean = Z.mean(axis=0) if center else np.zeros(r)
    root = np.linalg.cholesky(whole / n - np.outer(mean, mean))
    return float(likelihood), V @ root, shift + V @ mean, float(rest / seen.sum())
