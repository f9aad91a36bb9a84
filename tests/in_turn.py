"""Pairs in a checkerboard: what differs by one of two is met by all the others, at a part of the cost."""

import pytest


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
