"""What every one-component solver shares.

A solver is a module with `Options` of its own and a function

    solve(problem, state, sparsity, options, seed, told) -> Found or None

that seeks a component of the deflated operator `state.operator`, and returns None where no variance,
or nothing feasible, is left.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._messages import counted
from .._validation import LARGEST, Hook, check_callback, integer, number
from ..linalg.orthogonal import fix_sign
from ..operators.problem import Problem, warn_out_of_range
from ..progress import Callback, Progress
from ..results import SparseComponent


class Ended(Exception):
    """The callback ended the search, and the component under way is not wanted."""


class ProgressHook:
    """Reports of component t of r, by numbers of iterations; True where the search is to end.

    Of components found in turn only finished ones are returned: with `whole` it raises `Ended` instead.
    """

    def __init__(self, hook: Hook, t: int, r: int, whole: bool = False):
        self.hook, self.t, self.r, self.whole = hook, t, r, whole

    @property
    def ended(self) -> bool:
        return self.hook.ended

    def __call__(self, n_iter: int, value: float | None = None) -> bool:
        ended = self.hook(Progress(self.t, self.r, n_iter, value))
        if ended and self.whole:
            raise Ended
        return ended


def ended(told: Callable[[int], object] | None) -> bool:
    """Whether the callback has ended the search."""
    return isinstance(told, ProgressHook) and told.ended


@dataclass(frozen=True, eq=False, repr=False)
class Solution:
    """One component in the units of the operator."""

    index: NDArray[np.intp]
    value: NDArray[Any]
    objective: float
    n_iter: int
    converged: bool
    upper_bound: float | None = None


def default_tol(op: _core.Operator, tol: float | None) -> float:
    """The tolerance of an iteration, by precision where it is not given."""
    return tol if tol is not None else 1e-5 if op.single else 1e-8


def check_iterations(max_iter: Any, tol: Any) -> tuple[int, float | None]:
    """Validate when an iteration ends."""
    return integer(max_iter, "max_iter", 0, LARGEST), None if tol is None else number(tol, "tol", 0)


def hook_of_component(tell: Hook | None, t: int, r: int, whole: bool = False) -> ProgressHook | None:
    """`Told`, where there is a callback."""
    return None if tell is None else ProgressHook(tell, t, r, whole)


def progress_hook(callback: Callback | None) -> ProgressHook | None:
    """Progress of a single component."""
    return hook_of_component(check_callback(callback), 0, 1)


def component_result(
    problem: Problem, found: Solution | None, method: str, told: ProgressHook | None, max_iter: int | None
) -> SparseComponent:
    """The result of a one-component function, with its warnings."""
    if found is None or abs(found.objective) <= problem.noise(found.index):
        warnings.warn("X has no variance: the loading is the first unit vector", RuntimeWarning, stacklevel=3)
        one = np.ones(1, problem.operator.dtype)
        found = Solution(np.zeros(1, np.intp), one, 0.0, 0, True)
    if ended(told):
        found, max_iter = replace(found, converged=False), found.n_iter
    if not found.converged:
        warnings.warn(f"not converged in {counted(max_iter or 0, 'iteration')}", RuntimeWarning, stacklevel=3)
    value = float(problem.in_units(found.objective))
    warn_out_of_range(found.objective, value, stacklevel=3)
    if told is not None:
        told(found.n_iter, value)
    loading = np.zeros(problem.p, problem.operator.dtype)
    loading[found.index] = found.value
    return SparseComponent(
        loading, value, int(np.count_nonzero(loading)), found.n_iter, found.converged, method,
        problem.screening(), names=problem.names,
    )  # fmt: skip


def drop_zeros(found: Solution | None) -> Solution | None:
    """Without entries that are zero, and with its sign; None if nothing is left."""
    if found is None or not found.objective > -np.inf:
        return None
    kept = np.flatnonzero(found.value)
    if len(kept) == 0:  # a deflated matrix may be zero, and yet no product with it, by rounding
        return None
    return replace(
        found, index=found.index[kept], value=fix_sign(found.value[kept]), objective=float(found.objective)
    )
