"""The one-component solvers by name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from .._messages import counted, listed
from .._validation import integer
from ..operators.deflation import DeflatedOperator
from ..operators.problem import Problem
from . import exact
from . import generalized_power as gpower
from . import greedy_search as greedy
from . import lasso_component as scotlass
from . import penalized_decomposition as pmd
from . import semidefinite as dspca
from . import truncated_power as tpower
from .base import Solution

SPARSITY = {
    "cardinality": "the number of nonzeros of each component",
    "l1_bound": "the l1 norm of each component, between 1 and the root of the number of variables",
    "penalty": "how much each component must gain by a variable",
}


@dataclass(frozen=True, eq=False, repr=False)
class Method:
    """How `sparse_pca` calls a one-component solver.

    Attributes
    ----------
    sparsity : {"cardinality", "l1_bound", "penalty"}
    check_sparsity : callable
        (value, name, problem) -> value
    check_options : callable
        (problem, *, renormalize, ...) -> what `solve` wants; its other keywords are the method's options.
    solve : callable
        See `_search`.
    generalized : bool
        Whether it maximizes x'Ax/x'Bx itself; others re-fit the values on the support that they find.
    check_together : callable, optional
        (options, sparsity of all components) -> None; raises where they do not go together.
    solve_block : callable, optional
        (problem, sparsity of all components, options, seed, told) -> the components, all at once; for
        options with `block`.
    orthogonal : bool
        Whether its loadings are orthogonal to the earlier ones, so that there may be none.
    whole : callable
        (options) -> whether its steps need whole products, which screening does not help.
    missing : bool
        Whether dense data may have NaN entries.
    image : callable or None
        (state, found, options) -> what takes the place of F x in the residual of the data, or None.
    """

    sparsity: str
    check_sparsity: Callable[[Any, str, Problem], Any]
    check_options: Callable[..., Any]
    solve: Callable[..., Solution | None]
    generalized: bool = False
    check_together: Callable[[Any, tuple[Any, ...]], None] | None = None
    solve_block: Callable[..., list[Solution]] | None = None
    orthogonal: bool = False
    whole: Callable[[dict[str, Any]], bool] = lambda options: False
    missing: bool = False
    image: Callable[[DeflatedOperator, Solution, Any], NDArray[Any] | None] | None = None


def _cardinality(value: Any, name: str, problem: Problem) -> int:
    return integer(value, name, 1, problem.p, f": X has {counted(problem.p, 'variable')}")


METHODS = {
    "tpower": Method("cardinality", _cardinality, tpower.check_options, tpower.solve, generalized=True),
    "gpower": Method(
        "penalty", gpower.check_penalty, gpower.check_options, gpower.solve,
        check_together=gpower.check_together, solve_block=gpower.solve_block,
        whole=lambda options: options.get("block") is True,
    ),
    "greedy": Method(
        "cardinality", _cardinality, greedy.check_options, greedy.solve, generalized=True,
        whole=lambda options: options.get("strategy") != "gradient",
    ),
    "pmd": Method(
        "l1_bound", pmd.check_bound, pmd.check_options, pmd.solve, missing=True, image=pmd.image,
        whole=lambda options: "sample_l1_bound" in options,
    ),
    "scotlass": Method(
        "l1_bound", pmd.check_bound, scotlass.check_options, scotlass.solve, orthogonal=True,
        whole=lambda options: True,
    ),
    "dspca": Method(
        "cardinality", _cardinality, dspca.check_options, dspca.solve, whole=lambda options: True
    ),
    "branch_and_bound": Method(
        "cardinality", _cardinality, exact.check_options, exact.solve, generalized=True,
        whole=lambda options: True,
    ),
}  # fmt: skip


def methods_of(sparsity: str) -> str:
    return listed(repr(name) for name in METHODS if METHODS[name].sparsity == sparsity)
