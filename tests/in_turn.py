"""What the default run leaves out: pairs in a checkerboard, and examples of properties."""

import pytest
from hypothesis import settings


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
    """So many of a property where profiles draw a hundred; a quarter by default."""
    return max(n * min(settings.default.max_examples, 100) // 100, 2)
