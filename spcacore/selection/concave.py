"""The largest tail of a frequency whose distribution is r-concave (Shah and Samworth 2013, section 3.3).

A distribution f on 0, ..., B is r-concave for r < 0 where f^r is convex on its support. With a mean m below
B/2, the largest P(X >= t) for t > 2m is reached by one of

    f(i) = c (a + i)^(1/r) for i <= k,    0 <= f(k + 1) <= c (a + k + 1)^(1/r),    mean m

(appendix A.4 there), a path on which a falls from a_k, where f(k + 1) is 0, to a_(k+1). Its ends suffice:
with `w_i = (a + i)^(1/r)` and t <= k + 1

    P(X < t) = (k + 1 - m) sum_(i<t) w_i / sum_(i<=k) (k + 1 - i) w_i,

which exceeds C where `sum_(i<=k) ([i < t] - c (k + 1 - i)) w_i > 0`. The bracket changes its sign from - to +
to - at most. So does the sum as a grows, since (a + i)^(1/r) is totally positive: P(X < t) has no minimum
between.
"""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from .._limits import TAIL_CACHE, TAIL_ENTRIES
from .._types import Array, Index

__all__ = ["HALVINGS", "largest_tails"]

HALVINGS = 60  # of an interval of log a that is 100 wide


@lru_cache(maxsize=TAIL_CACHE)
def largest_tails(mean: float, size: int, power: int) -> Array:
    """The largest P(X >= t/B) of X on 0, 1/B, ..., 1 of at most this mean, (B + 1,), for r = -1/power.

    1 up to `t = ceil(2 mean B)`.
    """
    m = mean * size
    first = math.ceil(2 * m) + 1
    out = np.ones(size + 1)
    out[first:] = 0
    step = max(1, TAIL_ENTRIES // (size + 1))
    for begin in range(first, size + 1, step):
        k = np.arange(begin, min(begin + step, size + 1))
        weights = _of_mean(m, k, power)
        tail = weights[:, ::-1].cumsum(axis=1)[:, ::-1]
        tail /= tail[:, :1]
        t = np.arange(first, tail.shape[1])
        out[t] = np.maximum(out[t], tail[:, t].max(axis=0))
    out.flags.writeable = False
    return out


def _of_mean(m: float, k: Index, power: int) -> Array:
    """`(a_k/(a_k + i))^power` on 0, ..., k, a row for each k; the mean grows with a."""
    low, high = np.full(len(k), -50.0), np.full(len(k), 50.0)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        weights = _weights(np.exp(middle), k, power)
        above = weights @ np.arange(weights.shape[1]) > m * weights.sum(axis=1)
        low, high = np.where(above, low, middle), np.where(above, middle, high)
    return _weights(np.exp(high), k, power)


def _weights(a: Array, k: Index, power: int) -> Array:
    i = np.arange(k.max() + 1)
    ratio = a[:, None] / (a[:, None] + i)
    ratio[i > k[:, None]] = 0
    out: Array = ratio**power
    return out
