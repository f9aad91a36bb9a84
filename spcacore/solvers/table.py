"""The one-component solvers by name."""

from __future__ import annotations

from .base import Solver
from .exact import ExactSearch
from .generalized_power import GeneralizedPower
from .greedy_search import GreedySearch
from .lasso_component import LassoComponent
from .leading_eigenvector import TruncatedEigenvector
from .least_squares import LeastSquaresSolver
from .penalized_decomposition import PenalizedDecomposition
from .semidefinite import SemidefiniteRelaxation
from .truncated_power import TruncatedPower

__all__ = ["SOLVERS"]

SOLVERS: dict[str, type[Solver]] = {
    solver.name: solver
    for solver in (
        TruncatedPower,
        GeneralizedPower,
        GreedySearch,
        PenalizedDecomposition,
        LassoComponent,
        SemidefiniteRelaxation,
        ExactSearch,
        LeastSquaresSolver,
        TruncatedEigenvector,
    )
}
