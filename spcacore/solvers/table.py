"""The one-component solvers by name."""

from __future__ import annotations

from .._messages import listed
from .base import Solver
from .exact import BranchAndBound
from .generalized_power import GeneralizedPower
from .greedy_search import GreedySearch
from .lasso_component import LassoComponent
from .leading_eigenvector import Thresholding
from .least_squares import LeastSquares
from .penalized_decomposition import PenalizedDecomposition
from .semidefinite import SemidefiniteRelaxation
from .truncated_power import TruncatedPower

__all__ = ["SOLVERS", "SPARSITY", "methods_of"]
__dir__ = __all__.copy

SPARSITY = {
    "cardinality": "the number of nonzeros of each component",
    "l1_bound": "the l1 norm of each component, between 1 and the root of the number of variables",
    "penalty": "how much each component must gain by a variable",
}
SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        TruncatedPower,
        GeneralizedPower,
        GreedySearch,
        PenalizedDecomposition,
        LassoComponent,
        SemidefiniteRelaxation,
        BranchAndBound,
        LeastSquares,
        Thresholding,
    )
}


def methods_of(sparsity: str) -> str:
    """The methods that take a sparsity, for a message."""
    return listed(repr(name) for name in SOLVERS if SOLVERS[name].sparsity == sparsity)
