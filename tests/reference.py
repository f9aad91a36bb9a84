"""Slow, obvious NumPy versions of the kernels."""

import math

import numpy as np


def truncate(x, k):
    keep = np.argsort(-np.abs(x), kind="stable")[:k]
    out = np.zeros_like(x)
    out[keep] = x[keep]
    return out


def soft_threshold(a, level):
    return np.sign(a) * np.maximum(np.abs(a) - level, 0)


def norm(a):
    """The 2-norm, rounded twice: halves of a double have exact products, and `fsum` adds them exactly."""
    a = np.asarray(a, np.float64)
    high = a * (2.0**27 + 1)
    high -= high - a
    low = a - high
    return math.sqrt(math.fsum(np.concatenate([high * high, 2 * high * low, low * low])))


def l1_threshold(a, bound):
    """(w, level) by bisection of the level in extended precision; needs one largest entry, clearly."""
    a = np.asarray(a, np.longdouble)
    low, high = np.longdouble(0), np.abs(a).max()
    a, scale = a / high, high
    high = np.longdouble(1)

    def direction(level):
        s = soft_threshold(a, level)
        return s / np.sqrt(s @ s)

    if np.abs(direction(low)).sum() <= bound:
        return direction(low), 0.0
    for _ in range(200):
        middle = (low + high) / 2
        if middle in (low, high):
            break
        if np.abs(direction(middle)).sum() > bound:
            low = middle
        else:
            high = middle
    return direction(low), float(low * scale)


def l1_value(a, bound):
    """max w'a over ||w|| <= 1, ||w||_1 <= bound, by duality: min over t >= 0 of ||S(a, t)|| + bound t.

    Convex and piecewise smooth in t, hence the minimum of the minima between neighboring magnitudes.
    """
    a = np.abs(np.asarray(a, np.longdouble))
    top = a.max()
    if top == 0:
        return np.longdouble(0)
    a = np.sort(a / top)

    def dual(t):
        s = np.maximum(a - t, 0)
        return np.sqrt(s @ s) + bound * t

    points = np.unique(np.append(a, 0))
    low, high = 0, len(points) - 1
    while high - low > 1000:  # at the end, where the dual is flat to rounding, all are looked at
        third = (high - low) // 3
        i, j = low + third, high - third
        if dual(points[i]) <= dual(points[j]):
            high = j
        else:
            low = i
    least = low + int(np.argmin([dual(t) for t in points[low : high + 1]]))
    low, high = max(least - 1, 0), min(least + 1, len(points) - 1)
    t, u = points[low], points[high]
    for _ in range(110):
        i, j = t + (u - t) / 3, u - (u - t) / 3
        if dual(i) <= dual(j):
            u = j
        else:
            t = i
    return min(dual(t), dual(u), dual((t + u) / 2), dual(points[least])) * top


def check_dual(a, bound, w, level, value=None):
    """Feasible to 4 ulp sqrt(p), and as good as the dual, w'a <= ||S(a, t)|| + bound t, at t = `level`."""
    eps, exact, v = float(np.finfo(a.dtype).eps), a.astype(np.longdouble), np.asarray(w, np.longdouble)
    slack = 4 * eps * math.sqrt(a.size)
    assert w.dtype == a.dtype
    assert 0 <= level <= np.abs(a.astype(float)).max()
    assert np.sqrt(v @ v) <= 1 + slack
    assert np.abs(v).sum() <= bound * (1 + slack)
    if value is None:
        excess = np.maximum(np.abs(exact) - level, 0)
        value = np.sqrt(excess @ excess) + bound * np.longdouble(level)
    assert v @ exact >= value * (1 - slack - 8 * eps)
    assert (w * np.sign(a) >= 0).all()
