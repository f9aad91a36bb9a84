"""Exact screening of dense data: whether it pays, what it needs, and what it has read (screen.c)."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import (
    MEMORY_LINE,
    SCREENED_ENTRIES,
    SCREENED_ROWS,
    SCREENING_COLUMN_BYTES,
    SCREENING_FREE_BYTES,
    SCREENING_SHARE,
)
from .._records import record
from .._types import AnyArray, Array
from .problem import Screening

if TYPE_CHECKING:
    from .problem import Problem


@record
class Plan:
    """How one matrix is to be screened. The pass for its statistics fills `shadow`, the quantized copy."""

    mode: str
    shadow: NDArray[np.int8] | None


def plan(a: AnyArray, screening: str) -> Plan | None:
    """Return how to screen the dense data `a`; None if its products are to be plain."""
    n, p = a.shape
    if screening == "none":
        return None
    ld = -(-n // _core.SHADOW_BLOCK) * _core.SHADOW_BLOCK
    auto = screening == "auto"
    if auto:
        if n < SCREENED_ROWS or a.size < SCREENED_ENTRIES:
            return None
        small = (
            a.nbytes <= SCREENING_FREE_BYTES
            or ld + SCREENING_COLUMN_BYTES <= SCREENING_SHARE * n * a.itemsize
        )
        small = small and p * ld <= available_memory() / 2
        screening = "both" if small else "references"
    try:
        return Plan(screening, None if screening == "references" else _empty_shadow(p, ld))
    except MemoryError:
        if not auto:
            raise
        return Plan("references", None)


def _empty_shadow(p: int, ld: int) -> NDArray[np.int8]:
    """Return an empty quantized copy whose rows begin with a line of memory, so that few lines are read."""
    room = np.empty(p * ld + MEMORY_LINE - 1, np.int8)
    first = -room.ctypes.data % MEMORY_LINE
    return room[first : first + p * ld].reshape(p, ld)


def available_memory() -> float:
    """Return the bytes that are free without swapping; infinite where the system does not tell."""
    try:
        with open("/proc/meminfo", encoding="ascii") as file:
            for line in file:
                if line.startswith("MemAvailable:"):
                    return 1024.0 * int(line.split()[1])
    except (OSError, ValueError):
        pass
    try:
        return float(os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return math.inf


def screened(problem: Problem, plan: Plan, a: AnyArray, sums: Array, size: NDArray[np.float32]) -> Problem:
    """Return the problem of the dense data `a` with an operator that screens its columns.

    `sums` and `size` are what `_core.dense_statistics` returned.
    """
    n, p = a.shape
    single, row_major = a.dtype == np.float32, a.strides[1] == a.itemsize
    mean, weight = (None if x is None else x.astype(np.float64) for x in problem.affine[:2])
    bounds = _core.screen_bounds(
        n, single, problem.affine.range, sums, None if plan.shadow is None else size, mean, weight,
        problem.variances, problem.known_moment,
    )  # fmt: skip
    screen = _core.Screen(n, p, row_major, a.dtype, plan.shadow, *bounds, plan.mode != "shadow")
    operator = problem.operator.screened(screen)
    tell = partial(_report, plan.mode, screen, a.nbytes, a.nbytes // p)
    return replace(problem, operator=operator, screening=tell)


def _report(mode: str, screen: _core.Screen, a_bytes: int, column_bytes: int) -> Screening:
    """Return what has been read so far, with the pass for the statistics and the shadow that it wrote."""
    questions, shadow_columns, columns = screen.counts
    read = a_bytes + screen.shadow_bytes + shadow_columns * screen.ld + columns * column_bytes
    return Screening(mode, read / a_bytes, columns, questions)
