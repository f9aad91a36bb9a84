"""SCoTLASS: one component of bounded l1 norm, orthogonal to the earlier loadings."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._labels import columns_of
from .._limits import REFIT_RISE
from .._records import record
from .._types import AnyArray, Array, Index, Kind, Names, OperatorLike, Switch, Weights
from .._validation import real_array
from ..choice import Choice
from ..linalg.orthogonal import unit_columns
from ..methods import SCoTLASS
from ..operators.deflation import DeflatedOperator
from ..progress import Callback
from ..results import SparseComponent
from .base import Needs, Solver, begun, shared_parameters
from .penalized_decomposition import BoundedSolver
from .refitting import Step, Steps, best_of_bounded
from .solution import Solution


@record
class LassoComponent(BoundedSolver):
    """SCoTLASS: the l1 bound and orthogonality to the earlier loadings, met exactly in each step."""

    name = "scotlass"
    usual_needs: ClassVar[Needs] = Needs(whole_products=True, working_set=True)
    orthogonal = True

    def solve(self, state: DeflatedOperator, l1_bound: float) -> Solution | None:
        op, tol = state.operator, self.tolerance(state.operator)
        if not state.quotient:
            state = state.orthogonal()
        Q, supports = _columns_of(state), state.supports

        def run(
            operator: _core.Operator, index: Index, entries: AnyArray, _: tuple[int, ...]
        ) -> Solution | None:
            steps = Steps(supports, Step.L1_BOUND, level=l1_bound, Q=Q if operator is op else Q[:, :0])
            return steps.ascend(operator, index, entries, self.max_iter, tol, state.hook)[0]

        begin = partial(self.begin, state, l1_bound)
        signed = supports.signs is not None and state.constrained
        best = best_of_bounded(state, begin, run, self.renormalize and not signed)
        if signed and self.renormalize and best is not None:
            steps = Steps(supports.only(best.index), Step.L1_BOUND, level=math.sqrt(op.p), Q=Q)
            x, _ = steps.ascend(op, best.index, best.entries, self.max_iter, tol, state.hook)
            if x is not None and x.objective > best.objective:
                best = replace(best, index=x.index, entries=x.entries, objective=x.objective)
        return best

    def among_some(self, state: DeflatedOperator, l1_bound: float) -> tuple[Solver, Any] | None:
        """Orthogonality to earlier loadings, all in the set, takes nothing from a product outside of it."""
        found = super().among_some(replace(state, constraint=None), l1_bound)
        return None if state.constraint == "uncorrelated" else found

    def level(self, state: DeflatedOperator, x: Solution, l1_bound: float) -> float | None:
        """That of b = A x - Q mu, with ||s|| w_S + level sign(w_S) = b_S for the next w."""
        op, Q = state.operator, _columns_of(state.orthogonal())
        dense = np.zeros(op.p, op.dtype)
        dense[x.index] = x.entries
        y = op.apply(x.index, np.ascontiguousarray(x.entries))
        status, w, _, _ = op.scotlass(dense, Q, l1_bound, 1, self.tolerance(op), None)
        S = np.flatnonzero(w)
        if status < 0 or len(S) == 0:
            return None
        unknown = np.column_stack([w[S], np.sign(w[S]), Q[S]])
        b = y - Q @ np.linalg.lstsq(unknown, y[S], rcond=None)[0][2:]
        again = np.empty_like(y)
        level = _core.l1_threshold(np.ascontiguousarray(b), l1_bound, 0, again)
        return level if np.abs(again - w).max() <= REFIT_RISE.of(op.dtype) ** 0.5 else None


@shared_parameters
def scotlass(
    X: OperatorLike, l1_bound: float | None = None, *,
    earlier: ArrayLike | None = None,
    options: SCoTLASS | None = None, choice: Choice | None = None,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    callback: Callback | None = None,
) -> SparseComponent:  # fmt: skip
    """One sparse principal component of bounded l1 norm, orthogonal to earlier loadings.

    Searches `max v'Av` subject to `||v|| = 1`, `||v||_1 <= l1_bound` and `v'x = 0` for every earlier
    loading x, where `A` is the covariance matrix. Each iteration maximizes `(Av)'w` over these w
    exactly. The objective never decreases along a run; the best run from several starts is
    returned. Without earlier loadings it is the criterion of `pmd`.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix or LinearOperator
        Data, one row per sample; with ``kind="covariance"`` a symmetric (p, p) matrix, which may be
        indefinite (the iteration then works on a shifted matrix), or a LinearOperator.
        float32 and float64 arrays in C or Fortran order, and CSR and CSC matrices, are not copied.
    l1_bound : float
        Bound on the l1 norm of the loading, in [1, sqrt(p)]. Near 1 only nearly single variables
        meet it, and none of them may be orthogonal to the earlier loadings.
    earlier : array-like of shape (p, t), optional
        The earlier loadings, of any norm.
    options : SCoTLASS, optional
        Options of the search, which the documentation of the record explains.
    {common}

    Returns
    -------
    SparseComponent
        `loading` (p,), `value`, `cardinality`, `n_iter`, `converged`, `method`. For a matrix
        without any variance the loading is the first unit vector, the value 0, and a RuntimeWarning is given.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, an asymmetric covariance, an option out of range, or where
        no start leads to a unit vector that is within the bound and orthogonal to the earlier
        loadings.
    {type_error}

    References
    ----------
    I. T. Jolliffe, N. T. Trendafilov and M. Uddin (2003). A modified principal component technique
    based on the LASSO. Journal of Computational and Graphical Statistics 12(3), 531-547,
    equations 4 to 6.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> x = spcacore.scotlass(A, 1.8, kind="covariance", options=spcacore.SCoTLASS(renormalize=False))
    >>> y = spcacore.scotlass(
    ...     A,
    ...     1.8,
    ...     earlier=x.loading[:, None],
    ...     kind="covariance",
    ...     options=spcacore.SCoTLASS(renormalize=False),
    ... )
    >>> x.cardinality, y.cardinality, round(x.value, 4), round(y.value, 4)
    (5, 6, 2.6446, 2.1679)
    >>> bool(abs(x.loading @ y.loading) < 1e-10)
    True
    """

    run = begun(
        LassoComponent, options, X, l1_bound, choice, callback, kind, center, scale, sample_weight
    )  # fmt: skip
    state = replace(run.state, constraint="orthogonal")
    for x in _columns(earlier, state.p, columns_of(X)):
        x = np.where(state.supports.excluded, 0, x)
        index = np.flatnonzero(x)
        state = state.deflate(index, x[index].astype(state.operator.dtype), noise=lambda index: 0.0)
    run = replace(run, state=state, found=run.solver.find(state, run.cardinality))
    if run.found is None and run.state.basis:
        raise ValueError(
            f"no unit vector of l1 norm at most {l1_bound:g} that is orthogonal to the earlier loadings was "
            "found; raise l1_bound"
        )
    return run.component()


def _columns(earlier: Any, p: int, names: Names) -> Array:
    """Its columns, as rows of unit norm."""
    if earlier is None:
        return np.empty((0, p))
    E = real_array(earlier, "earlier", ndim=2, shape=(p, "t"), empty=True, labels=names).astype(np.float64)
    used = E.any(axis=0)
    if not used.all():
        raise ValueError(f"column {int(np.argmin(used))} of earlier is the zero vector")
    return unit_columns(E).T


def _columns_of(state: DeflatedOperator) -> AnyArray:
    """Q."""
    return np.array(state.basis, state.operator.dtype).reshape(-1, state.p).T
