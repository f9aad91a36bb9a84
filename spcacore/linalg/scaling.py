"""Powers of two that bring entries near 1."""

from __future__ import annotations

import math
from typing import Any

import numpy as np


def power_of_two_scale(largest: float, dtype: Any = np.float64) -> float:
    """The power of two whose square brings `largest` near 1, or as near as that square can be had."""
    most = np.finfo(dtype).maxexp // 2 - 1
    return 2.0 ** min(-(math.frexp(largest)[1] // 2), most) if largest > 0 else 1.0


def exponent_of(range_: float) -> int:
    """The logarithm of a power of two."""
    return math.frexp(range_)[1] - 1
