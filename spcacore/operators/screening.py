"""Exact screening of dense data: whether it pays, what it needs, what it read (src_c/operator/screen.c)."""

from __future__ import annotations

import math
import os
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

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
from ..linalg.scaling import beyond_range, eps_of
from .problem import Screening

if TYPE_CHECKING:
    from .problem import Problem


MODES = ("auto", "gram", "working_set", "both", "shadow", "references", "none")
_SMALLEST_NORMAL = 2.0**-1022


@record
class Plan:
    """What is to be made of one matrix: `shadow` is filled by the pass for its statistics."""

    mode: str
    shadow: NDArray[np.int8] | None

    @property
    def references(self) -> bool:
        return self.mode != "shadow"


def plan(a: AnyArray, screening: str) -> Plan | None:
    """How to screen the dense data `a`; None is the plain path."""
    n, p = a.shape
    if screening == "none":
        return None
    ld = -(-n // _core.SHADOW_BLOCK) * _core.SHADOW_BLOCK
    if screening == "auto":
        if n < SCREENED_ROWS or a.size < SCREENED_ENTRIES:
            return None
        small = (
            a.nbytes <= SCREENING_FREE_BYTES
            or ld + SCREENING_COLUMN_BYTES <= SCREENING_SHARE * n * a.itemsize
        )
        small = small and p * ld <= available_memory() / 2
        screening = "both" if small else "references"
        try:
            return Plan(screening, _empty_shadow(p, ld) if small else None)
        except MemoryError:
            return Plan("references", None)
    return Plan(screening, None if screening == "references" else _empty_shadow(p, ld))


def _empty_shadow(p: int, ld: int) -> NDArray[np.int8]:
    """Rows that begin with a line of memory, of which as few as can be are then read."""
    room = np.empty(p * ld + MEMORY_LINE - 1, np.int8)
    first = -room.ctypes.data % MEMORY_LINE
    return room[first : first + p * ld].reshape(p, ld)


def available_memory() -> float:
    """Bytes that can be had without swapping; infinite where the system does not say."""
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
    """The problem of the dense data `a` with an operator that screens its columns.

    `sums` and `size` are what `_core.dense_statistics` returned.
    """
    screen = _screen(problem, plan, a, sums, size)
    operator = problem.operator.screened(screen)
    tell = partial(_report, plan.mode, screen, a.nbytes, a.nbytes // a.shape[1])
    return replace(problem, operator=operator, screening=tell)


def _screen(
    problem: Problem, plan: Plan, a: AnyArray, sums: Array, size: NDArray[np.float32]
) -> _core.Screen:
    """The bounds of each column z = factor (x - mean) that screen.c asks for."""
    mean, diagonal, moment = problem.mean, problem.diagonal, problem.moment
    assert diagonal is not None
    assert moment is not None
    n, p = a.shape
    up = 1 + 2.0**-18  # more than a rounding to float32
    rounding = 4 * (n / 4 + 128 // a.itemsize + 12) * eps_of(a.dtype) / 2
    smallest = 2.0 ** (-40 if a.dtype == np.float32 else -100)
    underflow = 2 * (n + 2) * (float(np.finfo(a.dtype).smallest_subnormal) / smallest)
    largest = max(-float(sums[2].min()), float(sums[3].max()), _SMALLEST_NORMAL)
    greatest = float(np.finfo(a.dtype).max) / largest / (8 * math.sqrt(n) * problem.range)
    degrees = max(n - 1, 1)
    factor: Any = problem.range**2
    if problem.weight is not None:
        factor = factor * problem.weight.astype(np.float64)
    with beyond_range():
        slack = np.sqrt(degrees * moment) * rounding
        slack += underflow * (1 + problem.range + factor / problem.range)
        if mean is not None:  # the statistics have a mean of their own, in double precision
            slack += np.abs(mean - sums[0]) * (math.sqrt(n) * factor)
        step = None
        if plan.shadow is None:
            norm = np.sqrt(degrees * diagonal) * up + slack
        else:
            step = (sums[4] * factor).astype(np.float32)
            norm = step * size.astype(np.float64)
            slack += sums[5] * factor + norm * 2.0**-22  # the second for the rounding of step
            tiny = (norm < 2.0**-100) | (step < 2.0**-100)
            slack[tiny] += up * norm[tiny]
            norm[tiny] = step[tiny] = 0
        slack[~(slack <= np.finfo(np.float32).max)] = np.inf
        norm = np.multiply(norm, up).astype(np.float32)
        slack = np.add(np.multiply(slack, up), np.finfo(np.float32).tiny).astype(np.float32)
    row_major = a.strides[1] == a.itemsize
    widest = float(size.max()) if plan.shadow is not None else 1.0
    return _core.Screen(
        n,
        p,
        row_major,
        a.dtype,
        plan.shadow,
        step,
        norm,
        slack,
        max(widest, 1.0),
        smallest,
        greatest,
        plan.references,
    )


def _report(mode: str, screen: _core.Screen, a_bytes: int, column_bytes: int) -> Screening:
    """What has been read so far, the pass for the statistics and the shadow it wrote included."""
    questions, shadow_columns, columns = screen.counts
    read = a_bytes + screen.shadow_bytes + shadow_columns * screen.ld + columns * column_bytes
    return Screening(mode, read / a_bytes, columns, questions)
