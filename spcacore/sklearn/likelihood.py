"""The likelihood of rows, given the span of the components.

What `score` of components is, and a grid search maximizes. The variance of new rows that components explain
grows with every variable that they may use; their likelihood does not. Let U be an orthonormal basis of the
span of the loadings, turned to where the scores of the training rows are uncorrelated with variances
l_1 >= ... >= l_q. Among the normal distributions of covariance W W' + s2 I with W in this span, the
likelihood of the training rows is largest for

    W = U diag(l_j - s2)^(1/2),   s2 = (total variance - sum l_j)/(p - q),

which is probabilistic PCA (Tipping and Bishop 1999) with the span given instead of estimated; directions
with l_j below s2 are left to the noise. A new row y, less the mean, with t = U'y has the log-density

    -1/2 (p log 2 pi + sum log l_j + (p - q) log s2 + sum t_j^2/l_j + ||y - U t||^2/s2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from .._docstrings import filled
from .._limits import ESTIMATOR_ENTRIES
from .._records import record
from .._types import MatrixLike
from .._validation import is_row_blocks, is_sparse
from ..linalg.orthogonal import orthonormal
from ..operators.block_tasks import finite
from ..operators.partition import row_blocks
from ..operators.sparse_format import canonical_arrays
from ..operators.transform import products_of_scores
from .base import PARAGRAPHS, Invertible

__all__ = ["Density", "Likelihood"]


@record
class Density:
    """The normal distribution above, of centered and scaled rows; U in the variables that it uses."""

    p: int
    used: NDArray[np.intp]
    U: NDArray[np.float64]
    along: NDArray[np.float64]
    noise: float
    mean: NDArray[Any] | None
    scale: NDArray[Any] | None

    @classmethod
    def of(
        cls, X: Any, V: NDArray[Any], mean: Any, scale: Any, total: float, sample_weight: Any = None
    ) -> Density:
        """The likeliest one for the rows of X in the span of V; total is their variance."""
        weight = None if sample_weight is None else np.asarray(sample_weight, np.float64)
        degrees = (
            max(getattr(X, "n_samples", X.shape[0]) - 1, 1) if weight is None else float(weight.sum()) - 1
        )

        def variances(Q: NDArray[np.float64]) -> NDArray[np.float64]:
            # SciPy would copy all entries of X to the precision of Q
            given = Q.astype(X.dtype) if is_sparse(X) and X.dtype.kind == "f" else Q
            return products_of_scores(X, given, mean, scale, weight) / degrees

        return cls.in_span(V, variances, mean, scale, total)

    @classmethod
    def in_span(
        cls,
        V: NDArray[Any],
        variances: Callable[[NDArray[np.float64]], NDArray[np.float64]],
        mean: Any,
        scale: Any,
        total: float,
    ) -> Density:
        """The likeliest one in the span of V, of rows with the covariances `variances(Q)` of their scores."""
        p = V.shape[0]
        used = np.flatnonzero(V.any(axis=1))
        Q = orthonormal(V[used])
        Q = Q[:, Q.any(axis=0)]
        full = np.zeros((p, Q.shape[1]))
        full[used] = Q
        with np.errstate(over="ignore", under="ignore", invalid="ignore"):
            D = variances(full)
        if not np.isfinite(D).all():
            raise ValueError("the variances of the components exceed the number range; rescale X")
        values, vectors = np.linalg.eigh(D)
        values, vectors = np.maximum(values[::-1], 0), vectors[:, ::-1]
        rounding = 10 * p * float(np.finfo(V.dtype).eps)
        q, noise = len(values), 0.0
        while True:
            rest = total - float(values[:q].sum())
            noise = rest / (p - q) if q < p and rest > rounding * total else 0.0
            if q == 0 or values[q - 1] > noise:
                break
            q -= 1
        return cls(p, used, Q @ vectors[:, :q], values[:q], noise, mean, scale)

    def log_density(self, X: Any) -> NDArray[np.float64]:
        q = len(self.along)
        if self.noise == 0 and q < self.p:
            raise ValueError(
                "the covariance is singular, so there is no density: the components leave no noise; "
                "fit fewer of them"
            )
        if is_row_blocks(X):
            found: NDArray[np.float64] = row_blocks(X).mapped(_log_density, (), np.dtype(np.float64), self)
            return found
        parts = [self._squares(rows) for rows in self._rows(X)]
        square = np.concatenate([s for s, _ in parts])
        rest = np.concatenate([r for _, r in parts])
        determinant = float(np.log(self.along).sum())
        if q < self.p:
            determinant += (self.p - q) * math.log(self.noise)
            with np.errstate(over="ignore", under="ignore"):
                square += rest / self.noise
        if self.scale is not None:
            determinant += 2 * float(np.log(self.scale.astype(np.float64)).sum())
        return -0.5 * (self.p * math.log(2 * math.pi) + determinant + square)

    def covariance(self) -> NDArray[np.float64]:
        C = np.zeros((self.p, self.p))
        C[np.ix_(self.used, self.used)] = (self.U * (self.along - self.noise)) @ self.U.T
        C[np.diag_indices(self.p)] += self.noise
        return C if self.scale is None else C * np.outer(self.scale, self.scale)

    def _rows(self, X: Any) -> Any:
        entries = self.p
        if is_sparse(X):
            X = canonical_arrays(X)[0].tocsr()
            entries = max(1, len(self.used), 4 * X.nnz // X.shape[0])
        step = max(1, ESTIMATOR_ENTRIES // entries)
        for start in range(0, X.shape[0], step):
            yield X[start : start + step]

    def _squares(self, rows: Any) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """`sum t_j^2/l_j` and `||y - U t||^2` of each row; only the variables in use have a part of U t."""
        sparse = is_sparse(rows)
        m = np.zeros(self.p) if self.mean is None else self.mean.astype(np.float64)
        s = np.ones(self.p) if self.scale is None else self.scale.astype(np.float64)
        Y = rows[:, self.used].toarray().astype(np.float64) if sparse else rows.astype(np.float64)
        columns = self.used if sparse else slice(None)
        Y -= m[columns]
        Y /= s[columns]
        near = Y if sparse else Y[:, self.used]
        t = near @ self.U
        left = near - t @ self.U.T
        with np.errstate(over="ignore", under="ignore"):
            if sparse:  # elsewhere y is -m/s but for the entries stored
                rest = np.einsum("ij,ij->i", left, left) + self._unused(rows, m, s)
            else:
                Y[:, self.used] = left
                rest = np.einsum("ij,ij->i", Y, Y)
            return np.sum((t / np.sqrt(self.along)) ** 2, axis=1), rest

    def _unused(self, rows: Any, m: NDArray[np.float64], s: NDArray[np.float64]) -> NDArray[np.float64]:
        """Squares of sparse rows in the variables that U does not use."""
        weight = np.ones(self.p)
        weight[self.used] = 0
        base = weight * (m / s) ** 2
        column = rows.indices
        row = np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr))
        entry = weight[column] * ((rows.data - m[column]) / s[column]) ** 2
        seen = np.bincount(row, entry, rows.shape[0])
        return seen + np.maximum(base.sum() - np.bincount(row, base[column], rows.shape[0]), 0)


def _log_density(block: Any, density: Density) -> NDArray[np.float64]:
    return density.log_density(finite(block))


@filled(PARAGRAPHS)
class Likelihood(Invertible):
    """`score` and `score_samples` of components."""

    _density: Density

    def score_samples(self, X: MatrixLike) -> NDArray[np.float64]:
        """Log-density of each row of X in the model of the components and noise.

        The model has covariance `W W' + s2 I`, with W in the span of the components. W and s2 are fitted to
        the training data. With ``scale=True`` this is the covariance of the scaled variables.

        {rows_to}
        ndarray of shape (m,)

        Raises
        ------
        ValueError
            If the components leave no noise, so that the covariance is singular.

        {spca_example}
        >>> model.score_samples(X[:5]).shape
        (5,)
        """
        X = self._new(X)
        return self._density.log_density(X)

    def score(self, X: MatrixLike, y: object = None) -> float:
        """Mean log-density of the rows of X, see `score_samples`.

        For held-out rows, it is largest near the right number of variables. Components with too few variables
        leave variance to the noise; components with too many overfit the training rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
        y : ignored

        Returns
        -------
        float

        {spca_example}
        >>> bool(model.score(X) > SparsePCA(1).fit(X).score(X))
        True
        """
        return float(np.mean(self.score_samples(X)))

    def get_covariance(self) -> NDArray[Any]:
        """The covariance of the model that `score` uses.

        {covariance}

        {spca_example}
        >>> model.get_covariance().shape
        (30, 30)
        """
        check_is_fitted(self)
        return self._density.covariance()
