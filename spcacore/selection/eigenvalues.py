"""How many components there are: singular values of one part of the data in directions of another.

The data are split into two independent parts with proportional expectations, X = X_1 + X_2 with
`E X_2 = share E X`. Counts are thinned: X_2 is binomial given X, and for Poisson counts both parts are
Poisson and independent. For normal entries with variance s^2, and W standard normal,

    X_1 = (1 - share) X + sqrt(share (1 - share)) s W,   X_2 = share X - sqrt(share (1 - share)) s W.

With u, v singular vectors of X_1, `u'X_2 v/share` is a cross-validated singular value. If u and v are noise,
then `u'E X_2 v = 0`, and `u'X_2 v` is normal with a known variance: `share sum u_i^2 v_j^2 X_ij` for counts
(each edge of a graph counted once), `share s^2` for normal entries. The estimate for counts is too large for
directions of few rows and columns that are there because some counts are large by chance. Then the p-value is
too large, too.
"""

from __future__ import annotations

import math
from typing import Any, Literal, TypeAlias

import numpy as np

from .._limits import ALL_VECTORS_ORDER
from .._messages import counted
from .._records import NO_PANDAS, filled, frozen_record
from .._types import Array, MatrixLike, RandomSource
from .._validation import (
    as_dense,
    as_seed,
    check_choice,
    integer,
    is_sparse,
    positive,
    refuse_products,
    require_memory,
    stored,
)
from ..linalg.scaling import descending, exponent_above, largest_magnitude
from ..operators.sparse import as_finite
from ..progress import ProgressCounter, SelectionCallback, check_callback
from ..readable import Listing, Tabular

_Entries: TypeAlias = Literal["counts", "graph", "normal"]


@filled(
    {
        "example": """\
Examples
--------
>>> import numpy as np, spcacore
>>> means = np.kron([[9.0, 1.0], [1.0, 9.0]], np.ones((30, 20)))
>>> X = np.random.default_rng(0).poisson(means)
>>> found = spcacore.cross_validated_eigenvalues(X, 4)""",
        "no_pandas": NO_PANDAS,
    }
)
@frozen_record
class CrossValidatedEigenvalues(Tabular):
    """Singular values of directions in data that did not choose them, from `cross_validated_eigenvalues`.

    `to_frame()` has a row for each direction, from 1: value, statistic, p_value, chosen.

    Attributes
    ----------
    values : ndarray of shape (r,)
        The averages over the splits, in the units of the singular values of X.
    statistic : ndarray of shape (r,)
        The values over their standard errors, averaged over the splits: at most normal(0, 1) for noise.
    p_value : ndarray of shape (r,)
        The one-sided p-value for the hypothesis that a direction is noise.
    chosen : int
        The number of leading directions before the first whose p-value exceeds `level`.
    level : float
    scores : ndarray of shape (splits, r)
        The statistics of each split.
    kind : {"counts", "graph", "normal"}
    noise : float or None
        s, of normal entries.

    {example}
    >>> found.chosen, found.values.shape
    (2, (4,))
    """

    values: Array
    statistic: Array
    p_value: Array
    chosen: int
    level: float
    scores: Array
    kind: str
    noise: float | None

    def _facts(self) -> list[str]:
        return [
            f"kind={self.kind!r}", counted(len(self.values), "component"),
            counted(len(self.scores), "split"), f"chosen={self.chosen}",
        ]  # fmt: skip

    def _table(self) -> Listing:
        columns = {
            "value": self.values, "statistic": self.statistic, "p_value": self.p_value,
            "chosen": np.arange(len(self.values)) < self.chosen,
        }  # fmt: skip
        return Listing("component", range(1, len(self.values) + 1), columns)


def cross_validated_eigenvalues(
    X: MatrixLike, n_components: int, *,
    kind: _Entries = "counts", scale: bool | str = False,
    noise: float | None = None,
    share: float = 0.1, n_splits: int = 10, level: float = 0.05,
    rng: RandomSource = None, callback: SelectionCallback | None = None,
) -> CrossValidatedEigenvalues:  # fmt: skip
    """How many components, by p-values of cross-validated eigenvalues.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix
        Counts (whole numbers of at least 0), sparse or dense; with "graph" square and symmetric, such as an
        adjacency matrix; with "normal" real numbers, dense. Thinning assumes that entries are independent
        given their expectations, and Poisson (rare edges are nearly so) or normal.
    n_components : int
        r, the largest number to consider, in [1, min(n, p) - 1].
    kind : {"counts", "graph", "normal"}, default "counts"
        Columns of "normal" are centered; counts are not, so that the first component is mostly the mean.
    scale : {False, "degree"}, default False
        "degree": directions are found in X_1 with entries divided by the square roots of the sums of their
        row and column, regularized as in `sca`. For unequal degrees.
    noise : float, optional
        Positive, s of "normal". Default: from the median singular value, as if at most half of the
        directions were more than noise (Gavish and Donoho 2014).
    share : float, default 0.1
        The share of the data, in (0, 1), that tests the directions.
    n_splits : int, default 10
        The number of splits over which the statistics are averaged.
    level : float, default 0.05
        In (0, 1). The tests are made in order up to the first that is not significant, so that r tests
        need no adjustment.
    rng : None, int or numpy Generator, optional
        Seed of the splits; None is a fixed seed.
    callback : callable or True, optional
        Called with a `SelectionProgress` after each split. Raising StopIteration ends the search early, with
        the splits made.

    Returns
    -------
    CrossValidatedEigenvalues
        `values` (r,), `statistic` (r,), `p_value` (r,), `chosen`.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, entries that are not counts, a graph that is not symmetric, or an
        option out of range.
    TypeError
        For an operator, blocks of rows, or an option of the wrong type.

    References
    ----------
    F. Chen, S. Roch, K. Rohe and S. Yu (2021). Estimating graph dimension with cross-validated eigenvalues.
    arXiv:2108.03336. M. Gavish and D. L. Donoho (2014). The optimal hard threshold for singular values is
    4/sqrt(3). IEEE Transactions on Information Theory 60, 5040-5053.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> rng = np.random.default_rng(0)
    >>> block = np.repeat(np.eye(3), 40, axis=0)
    >>> X = rng.poisson(block @ np.diag([1.0, 2, 3]) @ block.T + 0.2)
    >>> spcacore.cross_validated_eigenvalues(X, 6).chosen
    3
    """
    from scipy.special import ndtr

    check_choice(kind, "kind", _Entries)
    if scale is not False:
        check_choice(scale, "scale", ("degree",))
        if kind == "normal":
            raise ValueError("scale='degree' is for counts and graphs")
    if noise is not None:
        if kind != "normal":
            raise ValueError("noise is for kind='normal': counts have a variance of their own")
        noise = positive(noise, "noise")
    share, level = positive(share, "share", 1), positive(level, "level", 1)
    n_splits = integer(n_splits, "n_splits", 1)
    counter = ProgressCounter(check_callback(callback), n_splits)
    # The data, in units in which no product leaves the number range
    rows = _checked(X, kind)
    r = integer(n_components, "n_components", 1, min(rows.shape) - 1)
    unit, inside = 0, noise
    if kind == "normal":
        unit = exponent_above(max(largest_magnitude(rows), noise or 0.0))
        rows = np.ldexp(rows, -unit)
        rows -= rows.mean(axis=0)
        inside = _noise_of(rows) if noise is None else math.ldexp(noise, -unit)
        if inside == 0:
            raise ValueError("X has no noise: half of its singular values are 0; give noise")
        noise = math.ldexp(inside, unit)
    # Splits
    seed = as_seed(rng)
    splits = []
    for i in range(n_splits):
        rng = np.random.default_rng([seed, 3, i])
        splits.append(_split_scores(rows, kind, r, share, inside, scale, rng))
        if counter(i + 1):
            break
    # Tests in order, up to the first that is not significant
    values, scores = np.swapaxes(splits, 0, 1)
    statistic = scores.mean(axis=0)
    p = ndtr(-statistic)
    chosen = int(np.argmax(np.append(p > level, True)))
    return CrossValidatedEigenvalues(
        np.ldexp(values.mean(axis=0), unit), statistic, p, chosen, level, scores, kind, noise
    )


def _checked(X: Any, kind: str) -> Any:
    """Return X as a float64 array or a CSR matrix; raise an error if it is not of this kind."""
    refuse_products(X, "X", "entries to split")
    require_memory(X, "splits need")
    if is_sparse(X) and kind == "normal":
        raise TypeError("kind='normal' is for dense X: all of its entries have noise")
    rows = as_finite(X).astype(np.float64)
    entries = stored(rows)
    if min(rows.shape) < 2:
        raise ValueError(f"X must have at least two rows and two columns, not shape {rows.shape}")
    if kind == "normal":
        return rows
    if (entries < 0).any() or (entries != np.floor(entries)).any():
        raise ValueError("X must have counts, whole numbers from 0 on; for real numbers, use kind='normal'")
    if entries.max(initial=0) >= 2**53:
        raise ValueError("X has counts of 2^53 or more, which float64 does not hold")
    if not entries.any():
        raise ValueError("X has only zeros")
    if kind == "graph":
        if rows.shape[0] != rows.shape[1]:
            raise ValueError(f"a graph must be square, not of shape {rows.shape}; use kind='counts'")
        if (abs(rows - rows.T)).max() > 0:
            raise ValueError("a graph must be symmetric; for a directed graph, use kind='counts'")
    return rows


def _split_scores(
    X: Any, kind: str, r: int, share: float, noise: float | None, scale: bool | str, rng: Any
) -> tuple[Array, Array]:
    """Return the cross-validated singular values of one split, and the values over their standard errors."""
    # Normal entries
    if kind == "normal":
        assert noise is not None
        W = rng.standard_normal(X.shape)
        W -= W.mean(axis=0)
        W *= math.sqrt(share * (1 - share)) * noise
        U, V = _leading(X * (1 - share) + W, r, rng)
        values = np.einsum("ij,ij->j", U, (X * share - W) @ V)
        return values / share, values / (math.sqrt(share) * noise)
    # Counts
    test = _thinned(X, kind, share, rng)
    train = X - test
    U, V = _leading(_degree_scaled(train) if scale else train, r, rng)
    values = np.einsum("ij,ij->j", U, np.asarray(test @ V))
    variance = np.einsum("ij,ij->j", U**2, np.asarray(X @ V**2))
    # An edge stands at two places, a loop at one
    if kind == "graph":
        variance = 2 * variance - np.asarray(X.diagonal()) @ (U**2 * V**2)
    error = np.sqrt(share * np.maximum(variance, 0))
    scores = np.divide(values, error, out=np.zeros_like(values), where=error > 0)
    return values / share, scores


def _thinned(X: Any, kind: str, share: float, rng: Any) -> Any:
    """Return a part of the counts: each of the things counted is drawn with probability `share`."""
    if kind == "graph":  # an edge, at both of its places
        from scipy import sparse

        triu = sparse.triu if is_sparse(X) else np.triu
        upper = _thinned(triu(X), "counts", share, rng)
        return upper + triu(upper, 1).T
    test = X.copy()
    entries = stored(test)
    entries[...] = rng.binomial(entries.astype(np.int64), share)
    return test


def _degree_scaled(X: Any) -> Any:
    """Return X_ij over the square roots of its row sum and column sum, to which the mean sums are added."""
    row, column = (np.asarray(X.sum(axis=axis), np.float64).ravel() for axis in (1, 0))
    row, column = ((d + d.mean()) ** -0.5 for d in (row, column))
    if is_sparse(X):
        from scipy.sparse import diags_array

        return diags_array(row) @ X @ diags_array(column)
    return X * row[:, None] * column


def _leading(X: Any, r: int, rng: Any) -> tuple[Array, Array]:
    """Return the r leading left and right singular vectors."""
    if min(X.shape) <= ALL_VECTORS_ORDER or r >= min(X.shape) - 1:
        U, _, Vt = np.linalg.svd(as_dense(X), full_matrices=False)
        return U[:, :r], Vt[:r].T
    from scipy.sparse.linalg import svds

    U, s, Vt = svds(X, r, v0=rng.standard_normal(min(X.shape)), solver="arpack")
    order = descending(s)
    return U[:, order], Vt[order].T


def _noise_of(X: Array) -> float:
    """Return the standard deviation s of the noise in centered data, by the median of their singular values.

    There are min(m, p) singular values that need not be 0, with m = n - 1. For noise alone, their squares
    over `s^2 max(m, p)` follow the law of Marchenko and Pastur, whose median is known.
    """
    m, p = X.shape[0] - 1, X.shape[1]
    gram = X.T @ X if p <= m else X @ X.T
    squares = np.linalg.eigvalsh(gram)[-min(m, p) :]
    beta = min(m, p) / max(m, p)
    return math.sqrt(max(float(np.median(squares)), 0.0) / (max(m, p) * _median_of_noise(beta)))


def _median_of_noise(beta: float) -> float:
    """Return the median of the Marchenko-Pastur law with ratio beta and variance 1.

    It comes from the density on a grid. With x = 1 + beta + 2 sqrt(beta) cos t the density is proportional to
    `sin(t)^2/x dt`, which is smooth.
    """
    t = (np.arange(20_000) + 0.5) * (math.pi / 20_000)
    x = 1 + beta + 2 * math.sqrt(beta) * np.cos(t)
    weight = np.sin(t) ** 2 / x
    mass = np.cumsum(weight[::-1])
    return float(np.interp(0.5 * mass[-1], mass, x[::-1]))
