"""The one-component solvers by name."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from .._records import record
from ..operators.deflation import DeflatedOperator
from .exact import ExactSearch
from .generalized_power import GeneralizedPower
from .greedy_search import GreedySearch
from .l1_bounded import LassoComponent, PenalizedDecomposition
from .least_squares import LeastSquaresSolver
from .refitting import leading_vector, refit
from .semidefinite import SemidefiniteRelaxation
from .solution import Ended, Solution, ended
from .solver import Needs, Solver
from .starts import power_start
from .truncated_power import TruncatedPower

# ---- simple thresholding: the leading eigenvector, truncated; the baseline of every other method --------


@record
class _TruncatedEigenvector(Solver):
    """The `cardinality` entries of the leading eigenvector that are largest in magnitude.

    J. Cadima and I. T. Jolliffe (1995). Loadings and correlations in the interpretation of principal
    components. Journal of Applied Statistics 22(2), 203-214, which warns of it.
    """

    name = "thresholding"
    usual_needs: ClassVar[Needs] = Needs(whole_products=True)

    def solve(self, state: DeflatedOperator, cardinality: int) -> Solution | None:
        if ended(state.hook):
            raise Ended
        op = state.operator
        dense, _ = leading_vector(op, np.arange(op.p), power_start(op, np.random.default_rng(state.seed)))
        dense = state.supports.oriented(dense)
        index = state.supports.truncated(dense, cardinality)
        entries, renormalize = dense[index], self.renormalize or state.constrained
        if not entries.any():
            if not state.supports.included.any():
                return None
            # what is included has the other sign in the eigenvector: only its support counts
            entries, renormalize = state.supports.ones(index), True
        entries = entries / np.linalg.norm(entries)
        x = Solution(index, entries, state.quadratic(index, entries))
        return refit(state, x) if renormalize else x


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
        _TruncatedEigenvector,
    )
}
