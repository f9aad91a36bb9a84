"""A bound on x'Ax for wide data, of whose covariances only the large ones are kept.

Let S(A, rho) be A with its entries off the diagonal moved towards 0 by rho, and to 0 where they are smaller.
What is left out is at most rho in magnitude, so that unit vectors x with at most k nonzeros have

    x'Ax <= lambda_1(S(A, rho)) + rho (k - 1)

(d'Aspremont et al. 2007, section 2.4), and lambda_1(S) <= max_i (|S|w)_i / w_i for any positive w (Collatz).
The same matrix, split into blocks, serves Del Pia, Zhou and Zhu (2025).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .._limits import THRESHOLD_COLUMNS, THRESHOLD_ENTRIES, THRESHOLD_LEVELS, THRESHOLD_STEPS
from ..operators.submatrix import columns_of

__all__ = ["LargeEntries", "large_entries", "threshold_bound"]


class LargeEntries(NamedTuple):
    """Magnitudes off the diagonal that exceed a level, with rows and columns, and that level."""

    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    sizes: NDArray[np.float64]
    level: float


def threshold_bound(diagonal: NDArray[np.float64], k: int, large: LargeEntries) -> float:
    """The least bound over levels at which few entries are kept."""
    rows, columns, sizes, level = large
    best, levels = np.inf, np.linspace(level, max(float(sizes.max(initial=0.0)), level), THRESHOLD_LEVELS)
    while True:
        values = [_bound(rows, columns, sizes, diagonal, k, float(rho)) for rho in levels]
        i = int(np.argmin(values))
        if not values[i] < best * (1 - 1e-4):
            return min(best, values[i])
        best = values[i]
        low, high = levels[max(i - 1, 0)], levels[min(i + 1, len(levels) - 1)]
        levels = np.linspace(low, high, THRESHOLD_LEVELS)


def _bound(
    rows: NDArray[np.intp], columns: NDArray[np.intp], sizes: NDArray[np.float64],
    diagonal: NDArray[np.float64], k: int, rho: float,
) -> float:  # fmt: skip
    """lambda_1(S(A, rho)) + rho (k - 1), the eigenvalue by power iteration on magnitudes."""
    kept = sizes > rho
    r, c, over = rows[kept], columns[kept], sizes[kept] - rho
    used, at = np.unique(np.concatenate([r, c]), return_inverse=True)
    r, c, own = at[: len(r)], at[len(r) :], diagonal[used]
    rest = np.delete(diagonal, used)
    alone = float(rest.max(initial=0.0))
    w = np.ones(len(used))
    most = np.inf
    for _ in range(THRESHOLD_STEPS if len(used) else 0):
        y = own * w + np.bincount(r, over * w[c], len(w))
        ratio = float((y / w).max())
        if not ratio < most * (1 - 1e-6):
            most = min(most, ratio)
            break
        most = ratio
        w = np.maximum(y / y.max(), 1e-9)
    return max(alone, most if len(used) else 0.0) + rho * (k - 1)


def large_entries(op: Any) -> LargeEntries:
    """As many as memory allows; A is formed some columns at a time."""
    p, level, count = op.p, 0.0, 0
    parts: list[tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.float64]]] = []
    for start in range(0, p, THRESHOLD_COLUMNS):
        block = np.arange(start, min(p, start + THRESHOLD_COLUMNS))
        W = np.abs(columns_of(op, block).astype(np.float64))
        W[block, np.arange(len(block))] = 0
        i, j = np.nonzero(level < W)
        parts.append((i, block[j], W[i, j]))
        count += len(i)
        while count > THRESHOLD_ENTRIES:
            level = float(np.median(np.concatenate([size for *_, size in parts])))
            parts = [(i[size > level], j[size > level], size[size > level]) for i, j, size in parts]
            count = sum(len(size) for *_, size in parts)
    i, j, size = (np.concatenate(x) for x in zip(*parts, strict=True))
    return LargeEntries(i, j, size, level)
