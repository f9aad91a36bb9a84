"""Probabilistic principal component analysis, also with missing entries.

Each row is `x = W z + mu + noise`, z standard normal and the noise normal with variance s2 in every variable,
so that the covariance of x is `W W' + s2 I`. With eigenvalues l_1 >= ... >= l_p of the sample covariance, the
likelihood is largest for `s2 = mean(l_j, j > r)` and `W = U diag(l_j - s2)^(1/2)`, U the r leading
eigenvectors (Tipping and Bishop 1999, equations 7 and 8). Then `W'W + s2 I = diag(l_1, ..., l_r)`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from .._limits import COPIED_ENTRIES
from .._messages import convergence, counted, warn
from .._records import filled, frozen_record
from .._types import AnyArray, Array, Kind, MatrixLike, Names, RandomSource, Switch, Weights
from .._validation import (
    aligned,
    as_seed,
    check_shape,
    column_names,
    framed,
    integer,
    is_row_blocks,
    is_sparse,
    iteration_limits,
    real_array,
    refuse_not_finite,
    refuse_products,
)
from ..linalg.orthogonal import fix_signs
from ..linalg.scaling import LOG_2PI, below_range, beyond_range, divisor, roots
from ..operators.blocks import as_kernel_input, dense_rows, finite
from ..operators.inputs import as_problem
from ..operators.partition import row_blocks
from ..operators.problem import Problem
from ..operators.sparse import compressed
from ..progress import Callback, check_callback
from ..results import LoadingsResult, to_data_units
from .maximum_likelihood import (
    Fit,
    fit_missing,
    leading_and_rest,
    log_density,
    posterior,
)


@filled(
    {
        "example": """\
Examples
--------
>>> import numpy as np, spcacore
>>> X, planted = spcacore.datasets.make_spiked(200, 30, variances=(9, 4), rng=0)""",
    }
)
@frozen_record
class PPCAResult(LoadingsResult):
    """A normal distribution with covariance `W W' + s2 I`, fitted by `ppca`.

    `reconstruct` gives the means `W z + mean` of rows with given z.

    With ``scale=True``, loadings, variances and noise describe `(x - mean) / scale`. Likelihoods, samples and
    filled entries always describe x itself.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        W: orthogonal columns of squared length `explained_variance - noise_variance`, the longest first. In
        each column the entry of largest magnitude is positive. `directions` has them at unit length.
    noise_variance : float
        s2, in the units of the covariance; 0 if r is the rank of the data.
    mean : ndarray of shape (p,) or None
        None for a covariance, or if no mean was subtracted.
    scale : ndarray of shape (p,) or None
    given : tuple of str
        As in `SparsePCAResult`.
    explained_variance : ndarray of shape (r,)
        Variance of x along each direction, noise included.
    log_likelihood : float or None
        Log-likelihood of all observed entries. inf if the likelihood is unbounded. None for a covariance
        from an unknown number of samples.
    bic : float or None
        `-2 log_likelihood + log(n) n_parameters`; smaller is better.
    n_parameters : int
        Free parameters: `p r - r (r - 1) / 2 + 1`, and p for the mean.
    trace : ndarray of shape (n_iter,)
        Log-likelihood before each iteration if entries are missing, else empty.
    n_iter : int
        0 without missing entries: the solution then has a closed form.
    converged : bool
    n_samples : int or None
        Rows without observed entries do not count.
    names : tuple of str or None
        Names of the variables, if the input had any.
    method : {"eigendecomposition", "em"}
    kind : {"data", "covariance"}
    scores : ndarray of shape (n, r) or None
        Scores of the fitted data, as `transform` gives them. None for a covariance, and for rows in blocks.

    {example}
    >>> result = spcacore.ppca(X, 2)
    >>> result.loadings.shape, result.n_parameters, round(result.noise_variance, 1)
    ((30, 2), 90, 1.0)
    """

    loadings: AnyArray
    noise_variance: float
    mean: AnyArray | None
    scale: AnyArray | None
    explained_variance: Array
    log_likelihood: float | None
    bic: float | None
    n_parameters: int
    trace: Array
    n_iter: int
    converged: bool
    n_samples: int | None
    names: Names
    method: str
    scores: AnyArray | None = None
    given: tuple[str, ...] = ()
    kind: str = "data"

    @property
    def directions(self) -> AnyArray:
        """The loadings at unit length, (p, r). A column is zero if its variance is only noise."""
        return self._axes().astype(self.loadings.dtype)

    def _axes(self) -> Array:
        """Return the columns of W at unit length, or zero."""
        W = self.loadings.astype(np.float64)
        size = np.abs(W).max(axis=0)
        W /= divisor(size)
        norm = np.linalg.norm(W, axis=0)
        return W / divisor(norm)

    def transform(self, X: MatrixLike) -> AnyArray:
        """Posterior means `(W'W + s2 I)^-1 W'(x - mean)` of z, from the observed entries of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
            NaN entries are missing. For a result from a covariance, which has no mean, X is used as it is.

        Returns
        -------
        ndarray of shape (m, r); for a dataframe of pandas or polars, a dataframe with its index

        {example}
        >>> result = spcacore.ppca(X, 2)
        >>> np.allclose(result.transform(X), result.scores)
        True
        """
        dtype = np.result_type(self.loadings, np.float32)
        if is_row_blocks(X):
            return self._by_blocks("transform", X, (self.n_components,), dtype)
        return framed(X, np.concatenate([self._posterior(rows)[0] for rows in self._rows(X)]).astype(dtype))

    def _rows_of_scores(self) -> AnyArray:
        return self.loadings.T

    def posterior_covariance(self, X: MatrixLike | None = None) -> Array:
        """Posterior covariance `s2 (W'W + s2 I)^-1` of z.

        Parameters
        ----------
        X : array-like of shape (m, p), optional
            Rows; NaN entries are missing. Default: the covariance for any row without missing entries.

        Returns
        -------
        ndarray of shape (r, r), or (m, r, r)

        {example}
        >>> result = spcacore.ppca(X, 2)
        >>> result.posterior_covariance().shape, result.posterior_covariance(X[:5]).shape
        ((2, 2), (5, 2, 2))
        """
        if X is None:
            with below_range():
                return np.diag(self.noise_variance / self.explained_variance)
        if is_row_blocks(X):
            return self._by_blocks("posterior_covariance", X, 2 * (self.n_components,))
        return np.concatenate([self._posterior(rows)[1] for rows in self._rows(X)])

    def score_samples(self, X: MatrixLike) -> Array:
        """Log-density of the observed entries of each row.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
            NaN entries are missing. The log-density of a row without observed entries is 0.

        Returns
        -------
        ndarray of shape (m,)

        Raises
        ------
        ValueError
            If the covariance is singular, because r is the rank of the data and below p.

        {example}
        >>> density = spcacore.ppca(X, 2).score_samples(X)
        >>> density.shape, bool(density[0] > spcacore.ppca(X, 2).score_samples(X[:1] + 9)[0])
        ((200,), True)
        """
        if self.noise_variance == 0 and self.n_components < len(self.loadings):
            raise ValueError("the covariance is singular, so there is no density; fit fewer components")
        if is_row_blocks(X):
            return self._by_blocks("score_samples", X, ())
        W, axes = self.loadings.astype(np.float64), self._axes()
        variances, noise = self.explained_variance, self.noise_variance
        log_scale = np.zeros(len(W)) if self.scale is None else np.log(self.scale.astype(np.float64))
        return np.concatenate(
            [log_density(W, axes, variances, noise, log_scale, rows) for rows in self._rows(X)]
        )

    def score(self, X: MatrixLike) -> float:
        """Mean over the rows of X of the log-density from `score_samples`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)

        Returns
        -------
        float

        {example}
        >>> two, one = spcacore.ppca(X[:100], 2), spcacore.ppca(X[:100], 1)
        >>> two.score(X[100:]) > one.score(X[100:])  # two components predict new rows better
        True
        """
        return float(self.score_samples(X).mean())

    def covariance(self) -> AnyArray:
        """The covariance `W W' + s2 I` of the model, in the units of X.

        Returns
        -------
        ndarray of shape (p, p)

        {example}
        >>> spcacore.ppca(X, 2).covariance().shape
        (30, 30)
        """
        W = self.loadings.astype(np.float64)
        C = W @ W.T
        C[np.diag_indices(len(C))] += self.noise_variance
        if self.scale is not None:
            C *= np.outer(self.scale, self.scale)
        return C.astype(self.loadings.dtype)

    def impute(self, X: MatrixLike) -> AnyArray:
        """X with each NaN entry replaced by its expectation, given the observed entries of its row.

        Parameters
        ----------
        X : array-like of shape (m, p)

        Returns
        -------
        ndarray of shape (m, p), or a dataframe
            For a dataframe of pandas or polars, a dataframe with the index of X and the columns of the fit.

        Examples
        --------
        >>> import numpy as np, spcacore
        >>> X, planted = spcacore.datasets.make_spiked(200, 30, variances=(90, 40), rng=0)
        >>> Y = X.copy()
        >>> Y[:, 3] = np.where(np.arange(200) < 20, np.nan, X[:, 3])
        >>> filled = spcacore.ppca(Y, 2).impute(Y)
        >>> bool(np.corrcoef(filled[:20, 3], X[:20, 3])[0, 1] > 0.9)
        True
        """
        a = real_array(aligned(X, self.names), "X", ndim=2, finite=False)
        out, start = a.copy(order="C"), 0
        W = self.loadings.astype(np.float64)
        for rows in self._rows(a):
            filled = to_data_units(self._posterior(rows)[0] @ W.T, self.mean, self.scale)
            part = out[start : start + len(rows)]
            np.copyto(part, filled.astype(a.dtype), where=np.isnan(part))
            start += len(rows)
        return framed(X, out, self.names or column_names(X))

    def sample(self, n_samples: int, *, rng: RandomSource = None) -> AnyArray:
        """Rows drawn from the model.

        Parameters
        ----------
        n_samples : int
            Number of rows.
        rng : None, int or numpy Generator, optional
            None is a fixed seed.

        Returns
        -------
        ndarray of shape (n_samples, p)

        {example}
        >>> spcacore.ppca(X, 2).sample(4, rng=0).shape
        (4, 30)
        """
        n = integer(n_samples, "n_samples", 1)
        draw = np.random.default_rng(as_seed(rng))
        p, r = self.loadings.shape
        Z = draw.standard_normal((n, r))
        X = Z @ self.loadings.T.astype(np.float64)
        X += math.sqrt(self.noise_variance) * draw.standard_normal((n, p))
        return to_data_units(X, self.mean, self.scale).astype(self.loadings.dtype)

    def _posterior(self, rows: Array) -> tuple[Array, Array]:
        """Return the posterior means and covariances of the scores of centered and scaled rows."""
        return posterior(self.loadings.astype(np.float64), self.explained_variance, self.noise_variance, rows)

    def _by_blocks(self, method: str, X: Any, tail: tuple[int, ...], dtype: Any = np.float64) -> Any:
        """Apply a method to each block of rows; `tail` is the shape of its result for one row."""
        blocks = row_blocks(X)
        check_shape(blocks, "X", "m", len(self.loadings))
        return blocks.mapped(_of_block, tail, np.dtype(dtype), self, method)

    def _rows(self, X: Any) -> Iterator[Array]:
        """Yield the rows of X, centered and scaled, a part at a time."""
        p, X = len(self.loadings), aligned(X, self.names)
        if is_sparse(X):
            a = compressed(X).tocsr()
            refuse_not_finite(a.data, "X.data")
        else:
            refuse_products(X, "X")
            a = real_array(X, "X", ndim=2, finite=False)
        check_shape(a, "X", "m", p)
        for _, part in dense_rows(a, COPIED_ENTRIES):
            if np.isinf(part).any():  # NaN is missing
                refuse_not_finite(np.where(np.isnan(a), 0, a), "X")
            rows = part.astype(np.float64)
            if self.mean is not None:
                rows -= self.mean
            if self.scale is not None:
                rows /= self.scale
            yield rows

    def _facts(self) -> list[str]:
        facts = [*self._sizes()[:2], f"noise_variance={self.noise_variance:.6g}"]
        if self.log_likelihood is not None:
            facts.append(f"log_likelihood={self.log_likelihood:.6g}")
        if self.method == "em":
            facts.append(convergence(self))
        return facts


def _of_block(block: Any, result: PPCAResult, method: str) -> AnyArray:
    """Return the result of a method for one block."""
    X = finite(block) if result.method == "given span" else as_kernel_input(block)
    return np.asarray(getattr(result, method)(X))


def ppca(
    X: MatrixLike, n_components: int, *,
    max_iter: int = 1000, tol: float = 1e-9,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    n_samples: int | None = None,
    ddof: int = 1,
    callback: Callback | None = None,
) -> PPCAResult:  # fmt: skip
    """Probabilistic principal components by maximum likelihood.

    Maximizes `sum_i log N(x_i; mu, W W' + s2 I)` over mu, W (p x r) and s2. The solution has a closed form,
    from the eigenvalues of the covariance; only the smaller of X'X and XX' is formed. If entries are missing,
    an EM algorithm maximizes the likelihood of the observed ones, and never lowers it.

    Parameters
    ----------
    X : array-like of shape (n, p) or sparse matrix
        Data, one row per sample; with ``kind="covariance"`` a symmetric positive semidefinite (p, p) matrix.
        Dense data may have NaN entries, missing at random. X is then copied about three times as float64.
    n_components : int
        r, at most the rank of the centered data. At the rank, no variance is left for the noise: for r = p
        the covariance is the sample covariance; otherwise the likelihood is unbounded, with a RuntimeWarning.
    max_iter, tol : int and float, default 1000 and 1e-9
        With missing entries: stop when an iteration raises the log-likelihood by at most `tol` per observed
        entry.
    kind : {"data", "covariance"}, default "data"
    center : bool or array-like of shape (p,), default True
        Estimate the mean. False assumes a mean of 0; an array is used as the mean. True is ignored for a
        covariance.
    scale : bool or array-like of shape (p,), default False
        First divide each variable by its standard deviation, or by these positive numbers. The noise is then
        a share of each variance. True turns a covariance into the correlation.
    sample_weight : array-like of shape (n,), optional
        How many samples each row stands for, at least 0. Means and covariances are the same as if each row
        were repeated that often. The divisor ``sum(sample_weight) - 1`` must be positive. Rows of weight 0
        are left out. Not with missing entries.
    n_samples : int, optional
        The number of samples from which a covariance, with divisor `n_samples - 1`, was computed. Needed for
        its likelihood.
    ddof : {0, 1}, default 1
        Sums of squares are divided by `n - ddof`. 1 is the covariance of scikit-learn and of the rest of this
        package; 0 is maximum likelihood. For 1, W W' and s2 are `n/(n - 1)` times those for 0.
    callback : callable or True, optional
        With missing entries: called with a `Progress` after each iteration. Raising StopIteration ends the
        search early, see `Progress`.

    Returns
    -------
    PPCAResult
        `loadings` W (p, r), `noise_variance`, `mean`, `explained_variance` (r,), `log_likelihood`, `bic`;
        methods `transform`, `posterior_covariance`, `score`, `score_samples`, `sample`, `impute` and
        `covariance`.

    Raises
    ------
    ValueError
        For more components than the rank, a single sample, no variance,
        infinite or empty input, NaN except in dense data, a variable without observed
        entries, a covariance that is not positive semidefinite, or an option out of range.
    TypeError
        For input that is not real numbers, masked arrays, or an option of the wrong type.

    Notes
    -----
    s2 is the mean of the `p - r` smallest eigenvalues, including those that are 0 for n < p. scikit-learn
    averages only the `min(n, p) - r` eigenvalues that it computes. For n <= p its noise variance is therefore
    larger, and does not maximize the likelihood.

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
    problem = as_problem(X, kind, center, scale, sample_weight, missing=True)
    covariance = problem.n_samples is None
    ddof = integer(ddof, "ddof", 0, 1)
    max_iter, tol = iteration_limits(max_iter, tol)
    hook = check_callback(callback)
    n = samples_of(problem, n_samples)
    if n is None and ddof == 0:
        raise ValueError("ddof=0 needs n_samples: a covariance is taken to be divided by n_samples - 1")
    r = integer(n_components, "n_components", 1, min(problem.p, problem.n_samples or n or problem.p))
    center = not covariance and np.ndim(center) == 0 and bool(center)  # whether the mean is estimated
    total = total_variance(problem)
    if problem.filled is not None:
        return _result(problem, X, fit_missing(problem, r, ddof, max_iter, tol, hook), "em", center)
    values, U, rest = leading_and_rest(problem, r, total)
    noise = rest / (problem.p - r) if r < problem.p else 0.0
    if rest == 0 and r < problem.p:
        warn(f"X has rank {r}, so {counted(r, 'component')} leave no noise, "
            "and the likelihood is unbounded: it is reported as inf")  # fmt: skip
    likelihood = None
    if n is not None:
        if ddof == 0:
            values, noise = values * ((n - 1) / n), noise * ((n - 1) / n)
        likelihood = _log_likelihood(problem, values, noise, n, ddof)
    fit = Fit(U, values, noise, n, likelihood, np.zeros(0), True, problem.mean)
    return _result(problem, X, fit, "eigendecomposition", center)


def samples_of(problem: Problem, n_samples: Any) -> Any:
    """Return the number of samples, or the sum of their weights.

    For a covariance it is what the caller says, or None.
    """
    if problem.n_samples is None:
        return None if n_samples is None else integer(n_samples, "n_samples", 2)
    if n_samples is not None:
        raise ValueError("n_samples is only for kind='covariance'; for data it is the number of rows")
    if problem.n_samples < 2:
        raise ValueError("X has a single sample; at least 2 are needed")
    return problem.total_weight


def total_variance(problem: Problem) -> float:
    """Return the total variance; raise an error if it is not known or zero."""
    if problem.diagonal is None:
        raise ValueError("X must have entries: the noise needs the total variance")
    if not problem.diagonal.any():
        raise ValueError("X has no variance: all variables are constant")
    return problem.trace


def _log_likelihood(problem: Problem, values: Array, noise: float, n: float, ddof: int) -> float:
    """Return the likelihood of the closed form: `-n/2 (p log 2 pi + log det C) - (n - ddof)/2 p`."""
    p, r = problem.p, len(values)
    if noise == 0 and r < p:
        return math.inf
    determinant = float(np.log(values).sum()) + (p - r) * (math.log(noise) if r < p else 0.0)
    determinant += p * problem.exponent * math.log(2)
    if problem.scale is not None:
        determinant += 2 * float(np.log(problem.scale.astype(np.float64)).sum())
    return -0.5 * n * (p * LOG_2PI + determinant) - 0.5 * (n - ddof) * p


def _result(problem: Problem, X: Any, fit: Fit, method: str, center: bool) -> PPCAResult:
    """Return the result for orthonormal directions U, and variances in the operator's units."""
    U, values, noise, n, likelihood, trace, converged, mean = fit
    p, r = U.shape
    varies = problem.variances[:, None] != 0  # elsewhere LAPACK leaves rounding
    U = np.where(varies, fix_signs(U), 0)
    with beyond_range():
        W = U * roots(values - noise)
        loadings = np.ldexp(W, problem.exponent // 2).astype(problem.operator.dtype)
    *explained, s2 = problem.reported(np.append(values, noise)).tolist()
    free = p * r - r * (r - 1) // 2 + (r < p) + (p if center else 0)
    result = PPCAResult(
        loadings=loadings,
        noise_variance=s2,
        mean=mean,
        scale=problem.scale,
        explained_variance=np.array(explained),
        log_likelihood=likelihood,
        bic=None if likelihood is None or n is None else -2 * likelihood + math.log(n) * free,
        n_parameters=free,
        trace=trace,
        n_iter=len(trace),
        converged=converged,
        n_samples=n,
        names=problem.names,
        method=method,
        given=problem.given,
        kind=problem.kind,
    )
    if problem.n_samples is None or is_row_blocks(X):
        return result
    rows = (np.ldexp(part, -(problem.exponent // 2)) for part in result._rows(X))
    with beyond_range():
        means = np.concatenate([posterior(W, values, noise, part)[0] for part in rows])
    return replace(result, scores=means.astype(np.result_type(loadings, np.float32)))
