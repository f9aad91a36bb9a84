"""Slow, obvious NumPy versions of the kernels."""

import math

import numpy as np


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


def check_dual(a, bound, w, level):
    """Feasible to 4 ulp sqrt(p), and optimal: no w'a exceeds ||S(a, t)|| + bound t, here at t = `level`."""
    eps, exact, v = float(np.finfo(a.dtype).eps), a.astype(np.longdouble), np.asarray(w, np.longdouble)
    slack = 4 * eps * math.sqrt(a.size)
    assert w.dtype == a.dtype
    assert 0 <= level <= np.abs(a.astype(float)).max()
    assert np.sqrt(v @ v) <= 1 + slack
    assert np.abs(v).sum() <= bound * (1 + slack)
    excess = np.maximum(np.abs(exact) - level, 0)
    value = np.sqrt(excess @ excess) + bound * np.longdouble(level)
    assert v @ exact >= value * (1 - slack - 8 * eps)
    assert (w * np.sign(a) >= 0).all()
