"""What many tests run over, and what the default run leaves out of it: pairs in a checkerboard, examples."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

SEEDS = st.integers(0, 2**32)
each_dtype = pytest.mark.parametrize("dtype", [np.float32, np.float64])
each_order = pytest.mark.parametrize("order", ["C", "F"])
each_kind = pytest.mark.parametrize("kind", ["data", "covariance"])
scaled_or_not = pytest.mark.parametrize("scale", [False, True])


def in_turn(calls, others):
    """Each call with one of the others by default, in turn; its other pairs are slow."""
    return [
        pytest.param(
            call, other, id=f"{call}-{getattr(other, '__name__', other)}",
            marks=[] if (i + j) % len(others) == 0 else pytest.mark.slow,
        )
        for i, call in enumerate(calls)
        for j, other in enumerate(others)
    ]  # fmt: skip


def examples(n):
    """So many of a property where profiles draw a hundred; a fifth by default."""
    return max(n * min(settings.default.max_examples, 100) // 100, 2)


def of_examples(n, /, *places, **names):
    """A property of random examples: of `examples(n)`, by these strategies."""
    return lambda test: settings(max_examples=examples(n))(given(*places, **names)(test))
