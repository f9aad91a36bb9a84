"""Bounds of a sparse canonical correlation, chosen by permutation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from .._limits import TIE
from .._messages import counted
from .._records import frozen_record
from .._types import Array, Index, MatrixLike, RandomSource
from .._validation import (
    LARGEST,
    as_seed,
    check_bool,
    integer,
    iteration_limits,
    require_memory,
    several,
)
from ..linalg.threads import Report, check_jobs, in_threads
from ..progress import ProgressCounter, SelectionCallback, check_callback, refuse_ended
from ..readable import Listing, Tabular
from .canonical_sides import CrossCovariance, both_sides, l1_bound_of, one_of_each
from .cca_alternation import PenalizedDecomposition, pair_starts


@frozen_record
class CCAPermutation(Tabular):
    """How far each choice of the bounds raises the correlation above the one for permuted rows.

    `to_frame()` has a row for each choice, from 0: l1_bound_x, l1_bound_y, correlation, permuted (the mean),
    z, p_value, chosen.

    Attributes
    ----------
    l1_bounds : ndarray of shape (m, 2)
        The two bounds of each choice, for X and for Y.
    correlations : ndarray of shape (m,)
        The correlation of the first pair.
    permuted : ndarray of shape (m, n_permutations)
        The same correlation after the rows of X are permuted, for each permutation.
    z : ndarray of shape (m,)
        `(f(correlation) - mean f(permuted)) / sd f(permuted)`, f = artanh.
    p_values : ndarray of shape (m,)
        `(1 + number of permuted correlations at least as large) / (1 + n_permutations)`.
    best : int
        The index of the choice with the largest z.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.standard_normal((60, 20)), rng.standard_normal((60, 10))
    >>> X[:, :3] += Y[:, :1]
    >>> found = spcacore.sparse_cca_permutation(X, Y, l1_bounds=[1.2, 1.7, 2.5], n_permutations=20)
    >>> found.z.shape, found.l1_bounds[found.best].tolist() == list(found.l1_bound)
    ((3,), True)
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

    def _facts(self) -> list[str]:
        x, y = self.l1_bound
        return [
            counted(len(self.z), "choice"), counted(self.permuted.shape[1], "permutation"),
            f"l1_bound=({x:.4g}, {y:.4g})", f"z={self.z[self.best]:.3g}", f"p={self.p_values[self.best]:.3g}",
        ]  # fmt: skip

    def _table(self) -> Listing:
        index = range(len(self.z))
        columns = {
            "l1_bound_x": self.l1_bounds[:, 0], "l1_bound_y": self.l1_bounds[:, 1],
            "correlation": self.correlations, "permuted": self.permuted.mean(axis=1), "z": self.z,
            "p_value": self.p_values, "chosen": [i == self.best for i in index],
        }  # fmt: skip
        return Listing("choice", index, columns)


def sparse_cca_permutation(
    X: MatrixLike,
    Y: MatrixLike,
    l1_bounds: Sequence[Any],
    *,
    n_permutations: int = 25,
    max_iter: int = 1000,
    tol: float = 1e-10,
    scale: bool = True,
    n_jobs: int = 1,
    rng: RandomSource = None,
    callback: SelectionCallback | None = None,
) -> CCAPermutation:
    """Choose the bounds of `sparse_cca` by permutation.

    For each choice the correlation of the first pair, `max u'X'Yv` under the bounds, is compared with the
    correlations found after the rows of X are permuted. The function takes the choice whose correlation
    stands out most.

    Parameters
    ----------
    X : array-like of shape (n, p), or sparse matrix
        In memory, since rows are permuted.
    Y : array-like of shape (n, q), or sparse matrix
    l1_bounds : sequence of floats or of pairs of floats
        The choices of `l1_bound` to compare.
    n_permutations : int, default 25
        At least 2. All choices see the same permutations.
    max_iter, scale
        As in `sparse_cca`.
    tol : float, default 1e-10
        An iteration ends when it raises the correlation by no more than this share.
    n_jobs : int, default 1
        Threads; -1: one for each processor. The result does not depend on it.
    rng : None, int or numpy Generator, optional
        For the permutations; None is a fixed seed.
    callback : callable or True, optional
        Called with a `SelectionProgress` after the data and after each permutation. Raising StopIteration
        ends the search early, with the permutations that are finished; a RuntimeError if there are fewer
        than two.

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
    CCAPermutation(4 choices, 25 permutations, l1_bound=(1.5, 1.5), z=7.05, p=0.0385)
    """
    check_bool(scale, "scale")
    for M, name in ((X, "X"), (Y, "Y")):
        require_memory(M, "permutations need", name)
    sides = both_sides(X, Y, scale)
    x, y = sides
    given = several(l1_bounds, "l1_bounds", "bounds")
    bounds = [one_of_each(b, f"l1_bounds[{i}]", l1_bound_of, sides) for i, b in enumerate(given)]
    count = integer(n_permutations, "n_permutations", 2)
    max_iter, tol = iteration_limits(max_iter, tol, most=LARGEST)
    threads, counter = check_jobs(n_jobs), ProgressCounter(check_callback(callback), 1 + count)
    generator = np.random.default_rng(as_seed(rng))
    orders = [None, *(generator.permutation(x.n) for _ in range(count))]

    def permuted_by(order: Index | None, report: Report) -> list[float]:
        side = replace(x, order=order)
        starts = pair_starts(CrossCovariance(side, y))
        values = []
        for bound in bounds:
            pair = PenalizedDecomposition(side, y, bound, max_iter, tol).next(lambda _: report(), starts)
            values.append(0.0 if pair is None else pair.correlation)
        report(max(values))
        return values

    done = in_threads(permuted_by, orders, threads, counter)
    refuse_ended(len(done) - 1, "permutations")
    table = np.array(done).T
    own, permuted = table[:, 0], table[:, 1:]
    fisher = np.arctanh(np.clip(table, -1 + TIE.double, 1 - TIE.double))
    deviation = fisher[:, 1:].std(axis=1, ddof=1)
    apart = fisher[:, 0] - fisher[:, 1:].mean(axis=1)
    differ = deviation > TIE.double
    z = np.where(differ, apart / np.where(differ, deviation, 1), 0.0)
    p_values = (1 + (permuted >= own[:, None] - TIE.double).sum(axis=1)) / len(done)
    return CCAPermutation(np.array(bounds), own, permuted, z, p_values, int(np.argmax(z)))
