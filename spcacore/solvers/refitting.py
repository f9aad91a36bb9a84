"""The best values on a given support, the comparison of runs by them, and the ascents of the solvers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from enum import IntEnum
from functools import cached_property, partial
from typing import Any

import numpy as np

from .. import _core
from .._limits import CONTINUATION, QUOTIENT_NULL, REFIT_RISE
from .._records import record, replaced
from .._types import AnyArray, Array, Index, Mask
from ..linalg.eigen import largest_eigenpairs, raised_ratio, signed_vector
from ..linalg.scaling import with_entries
from ..operators.deflation import DeflatedOperator
from ..operators.gram import largest_submatrix
from ..supports.admissible import Supports
from .solution import Report, Solution, Tally, agreeing, ended

Run = Callable[[_core.Operator, Index, AnyArray], Solution | None]


def penalty_continuation(
    state: DeflatedOperator, x: Solution, run: Run, weights: tuple[float, ...] = CONTINUATION
) -> Solution | None:
    """Follow a run by runs with a growing penalty on the span of Q, and return the best x with Q'x = 0.

    x is what the run without a penalty found; without a constraint it is returned as it is. Each run starts
    from the last one and ascends x'(A - weight QQ')x, so that its support settles near one that has a
    feasible vector. Each new support is re-fitted under the constraint. None if no support has a feasible
    vector.
    """
    if not state.constrained:
        return x
    if not x.objective > 0:  # rounding is all that is left
        return None
    best, met, scale = refit(state, x), {x.index.tobytes()}, x.objective
    total, new = x.n_iter, x
    for weight in weights:
        penalized = run(state.operator.with_penalty(weight * scale), new.index, new.entries)
        if penalized is None:
            break
        new, total = penalized, total + penalized.n_iter
        if new.index.tobytes() in met:
            continue
        met.add(new.index.tobytes())
        best = max(best, refit(state, new), key=lambda one: one.objective)
    return None if best.objective == -np.inf else replaced(best, n_iter=total)


def same_support(x: Solution, y: Solution) -> bool:
    """Whether two components have the same variables."""
    return x.index.tobytes() == y.index.tobytes()


def is_better(state: DeflatedOperator, new: Solution, best: Solution, tol: float) -> bool:
    """Whether `new` has the larger objective or, where the two tie, the support that comes first.

    Runs end within `tol` of their limits. Where two are that close, their re-fitted values are compared.
    """
    values = new.objective, best.objective
    if same_support(new, best):
        return values[0] > values[1]
    if tol > 0 and abs(values[0] - values[1]) <= 100 * tol * abs(values[1]):
        values = refit(state, new).objective, refit(state, best).objective
    rounding = REFIT_RISE.of(state.operator.dtype)
    if abs(values[0] - values[1]) > rounding * abs(values[1]):
        return values[0] > values[1]
    return tuple(new.index) < tuple(best.index)


def best_run(
    state: DeflatedOperator, starts: Iterable[tuple[Any, ...]], run: Callable[..., Solution | None],
    tol: float = 0,
) -> Solution | None:  # fmt: skip
    """Return the best of the runs from all starts, or from the first ones if the callback ends the search.

    None if no run found a component. The tally tells how many runs ended at the same value.
    """
    best, values = None, list[float]()
    for start in starts:
        if best is not None and ended(state.hook):
            break
        new = run(*start)
        if new is None:
            continue
        values.append(new.objective)
        if best is None or is_better(state, new, best, tol):
            best = new
    if best is None:
        return None
    same = agreeing(((value, 1) for value in values), best.objective)
    return replaced(best, tally=Tally(len(values), len(values), same))


def best_of_bounded(
    state: DeflatedOperator, starts: Callable[[], Iterable[tuple[Any, ...]]],
    run: Callable[..., Solution | None], renormalize: bool,
) -> Solution | None:  # fmt: skip
    """Return the best run from all starts, re-fitted if asked; `run` takes the operator, and then a start.

    Under generalized deflation these runs are followed by runs that raise x'Ax/x'Bx, from the starts and from
    where the best run ended. If values are re-fitted, runs are compared after that, so that the best support
    counts.
    """

    def fitted(*start: Any) -> Solution | None:
        x = run(*start)
        return refit(state, x) if renormalize and x is not None else x

    plain = best_run(state, starts(), partial(fitted if state.quotient else run, state.operator))
    if plain is None or not state.quotient:
        return refit(state, plain) if renormalize and plain is not None else plain
    running = state.operator.with_quotient()
    feasible = plain.objective > -np.inf
    begin = itertools.chain([(plain.index, plain.entries, ())] if feasible else [], starts())
    best = best_run(state, begin, partial(fitted, running))
    if best is None or (renormalize and not state.supports.positive and plain.objective > best.objective):
        best = plain
    return best


def refit(state: DeflatedOperator, x: Solution) -> Solution:
    """Return x with the best values on its support (variational renormalization, Moghaddam et al. 2006).

    They maximize x'Ax over unit vectors, subject to Q'x = 0 where the state is constrained, or x'Ax/x'Bx
    under generalized deflation. The objective is -inf where no vector of this support is feasible.
    """
    signs = state.supports.signs
    if signs is not None:
        value, objective = _signed_vector(state, x, signs[x.index])
    else:
        value, objective = leading_vector(state.operator, x.index, x.entries, _feasible_span(state, x.index))
    return replaced(x, entries=value, objective=objective)


def fitted_on(state: DeflatedOperator, support: Index, n_iter: int = 0, converged: bool = True) -> Solution:
    """Return the component of the best values on a support, where no values are known yet."""
    ones = np.ones(len(support), state.operator.dtype)
    return refit(state, Solution(support, ones, 0.0, n_iter, converged))


Span = tuple[Array, Array]  # Y and s of W = I + Y diag(s) Y'


def _feasible_span(state: DeflatedOperator, index: Index) -> Span | None:
    """Return Y and s of W = I + Y diag(s) Y', such that x = W z are the feasible vectors on a support.

    Let Q_S = Y diag(h)^(1/2) E' be the rows of Q there. Under a constraint W = I - YY'. Under generalized
    deflation W = B_S^(-1/2), B_S = I - Y diag(h) Y', and zero on what lies in the span of Q, to rounding.
    None if every vector is feasible.
    """
    if not (state.quotient or state.constrained):
        return None
    Q = np.stack([q[index] for q in state.basis], axis=1)
    Y, root, _ = np.linalg.svd(Q, full_matrices=False)
    if state.constrained:
        Y = Y[:, root > 1e-11]
        return Y, np.full(Y.shape[1], -1.0)
    outside = 1 - root**2
    kept = outside > QUOTIENT_NULL.of(state.operator.dtype)
    with np.errstate(invalid="ignore", divide="ignore"):
        return Y, np.where(kept, 1 / np.sqrt(outside), 0) - 1


def leading_vector(
    op: _core.Operator, index: Index, value: AnyArray, span: Span | None = None
) -> tuple[AnyArray, float]:
    """Return the leading eigenvector of A[index, index], and its eigenvalue.

    With a span: the unit vector W z for the leading eigenvector z of W A[index, index] W. The entries of
    variables without any covariance are zero. `value` is where Lanczos starts, if the submatrix is too large
    to form.
    """
    k = len(index)
    if k <= largest_submatrix(op):
        G = op.submatrix(index)
        unused = ~G.any(axis=0)  # rounding must not give these variables a loading
        if span is not None:
            G = _within(span, _within(span, G).T).astype(op.dtype)
        eigenvalue, vector = _core.leading_eigenvector(np.ascontiguousarray(G))
        if span is not None:
            return _feasible(span, vector, unused, eigenvalue)
        vector[unused] = 0
        return vector, eigenvalue
    from scipy.sparse.linalg import LinearOperator

    def product(z: AnyArray) -> AnyArray:
        x = z.ravel() if span is None else _within(span, z.ravel())
        y = op.apply(index, np.ascontiguousarray(x, op.dtype))[index]
        return y if span is None else _within(span, y)

    restricted = LinearOperator((k, k), dtype=op.dtype, matvec=product)
    eigenvalues, vectors = largest_eigenpairs(restricted, 1, v0=value)
    if span is not None:
        return _feasible(span, vectors[:, 0], np.zeros(k, bool), float(eigenvalues[0]))
    return np.ascontiguousarray(vectors[:, 0], op.dtype), float(eigenvalues[0])


def _within(span: Span, z: AnyArray) -> Array:
    """Return W z."""
    Y, s = span
    return z + Y @ ((s if z.ndim == 1 else s[:, None]) * (Y.T @ z))


def _feasible(span: Span, z: AnyArray, unused: Mask, objective: float) -> tuple[AnyArray, float]:
    """Return W z as a unit vector, and the objective.

    That is -inf where W maps z to zero, so that z stands for no feasible vector.
    """
    x = _within(span, z.astype(np.float64))
    norm = float(np.linalg.norm(x))
    if norm < 1e-6:
        return np.zeros_like(z), -np.inf
    x /= norm
    if not (span[1] == -1).all():
        x[unused] = 0
        if not x.any():
            return np.zeros_like(z), -np.inf
        x /= np.linalg.norm(x)
    elif unused.any() or z.dtype == np.float32:  # project once more, since rounding counts here
        x = _within(span, x)
    return x.astype(z.dtype), objective


def _signed_vector(
    state: DeflatedOperator, x: Solution, signs: AnyArray
) -> tuple[AnyArray, float]:  # fmt: skip
    """Return the best vector on the support of x whose entries have these signs, and its objective.

    It ascends from x: x'Ax, or under generalized deflation the ratio x'Ax/x'Bx, may have several maxima under
    signs. On a support too large for its submatrix, x stays as it is.
    """
    op = state.operator
    if len(x.index) > largest_submatrix(op):
        return x.entries, state.objective(x.index, x.entries)
    G, begin = op.submatrix(x.index).astype(np.float64), x.entries.astype(np.float64)
    if not state.quotient:
        vector, objective = signed_vector(G, signs, begin)
        return vector.astype(op.dtype), objective
    begin = np.where(begin * signs < 0, 0, begin)
    Q = np.stack([q[x.index] for q in state.basis], axis=1)
    B, dtype = np.eye(len(G)) - Q @ Q.T, op.dtype
    size, least = float(begin @ B @ begin), QUOTIENT_NULL.of(dtype)
    usable = size > least * float(begin @ begin)
    ratio = max(float(begin @ G @ begin) / size, 0.0) if usable else 0.0
    vector, _ = raised_ratio(G, B, signs, begin, ratio, REFIT_RISE.of(dtype), least)
    if not vector.any():
        return vector.astype(dtype), -math.inf
    value = (vector / np.linalg.norm(vector)).astype(dtype)
    return value, state.objective(x.index, value)


# ---- ascents ------------------------------------------------------------------------------------------


class Step(IntEnum):
    """What a step keeps of y = A x. The numbers are those of spca.h."""

    TRUNCATION, L0, L1, L1_BOUND = range(4)


@record
class Steps:
    """The iteration x <- step(A x), over its norm: a truncation to `count`, or a penalty or bound at `level`.

    Single variables have a kernel for each step. Groups and given signs share one kernel (unit_ascent.c).
    With an l1 bound and Q, x stays orthogonal to the columns of Q. With a bound on `samples` too, the
    objective is u'F v, and that bounds the l1 norm of u.
    """

    supports: Supports
    step: Step
    count: int = 0
    level: float = 0.0
    Q: AnyArray | None = None
    samples: float = 0.0

    @cached_property
    def rule(self) -> _core.UnitRule:
        """The step over units, as the kernels take it (units.c, unit_orthogonal.c)."""
        return self.supports.rule(self.step, self.count, self.level, self.Q)

    def ascend(
        self, op: _core.Operator, index: Index, entries: AnyArray, max_iter: int, tol: float,
        hook: Report | None,
    ) -> tuple[Solution | None, float]:  # fmt: skip
        """Iterate until the objective no longer rises: the component, and the objective that rose.

        With a penalty the component has x'Ax, which is not that objective. None where A maps a vector to
        zero.
        """
        limits, penalized = (max_iter, tol, hook), self.step in (Step.L0, Step.L1)
        positive, variance = self.supports.positive, 0.0
        if self.supports.shapes:
            x = self.start(op, index, entries)
            status, x, units, objective, variance, n_iter = op.unit_ascend(self.rule, x, *limits)
            index = self.supports.index(units)
            entries = x[index].astype(op.dtype)
        elif penalized:
            status, index, entries, objective, variance, n_iter = op.gpower(
                index, entries, self.step == Step.L0, self.level, *limits
            )
        elif self.step == Step.TRUNCATION:
            status, index, entries, objective, n_iter = op.truncated_power(
                index, entries, self.count, *limits, positive
            )
        elif self.Q is None:
            status, index, entries, objective, n_iter = op.pmd(
                index, entries, self.level, self.samples, *limits, positive
            )
        else:
            dense = with_entries(op.p, index, entries, op.dtype)
            status, v, objective, n_iter = op.scotlass(dense, self.Q, self.level, *limits)
            index = np.flatnonzero(v)
            entries = v[index]
        if status < 0:
            return None, -math.inf
        value = variance if penalized else objective
        return Solution(index, entries, value, n_iter, status == 0), objective

    def start(self, op: _core.Operator, index: Index, entries: AnyArray) -> Array:
        """Return the start as a dense vector; a single variable stands for its group."""
        x, members = with_entries(op.p, index, entries), index
        if self.supports.grouped and len(index) == 1:
            members = self.supports.index(self.supports.mask(index))
        if 1 < len(members) <= largest_submatrix(op) and len(index) == 1:
            x[members] = np.linalg.eigh(op.submatrix(members).astype(np.float64))[1][:, -1]
        return x
