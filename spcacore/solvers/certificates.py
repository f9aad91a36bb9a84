"""Upper bounds on x'Ax over sparse unit vectors: how good an answer can be.

Take any orthonormal V (p x m). Let H = V'AV = diag(theta), R = AV - VH (so V'R = 0) and P = I - VV'. Then
every unit vector x with at most k nonzeros has

    x'Ax = sum_l theta_l t_l + 2 sum_l (v_l'x) (r_l'x) + x'PAPx,    t_l = (v_l'x)^2.

Each part has a bound. t_l is at most the sum u_l of the k largest v_lj^2, and sum_l t_l <= 1. |r_l'x| is at
most rho_l, the norm of the k largest entries of r_l. x'PAPx is at most tau (1 - sum_l t_l), where tau is at
least the largest eigenvalue of PAP; and, because A is semidefinite, at most the sum of the k largest diagonal
entries of PAP. So V need not be exact, and a few Lanczos vectors serve at any p: R and the diagonal account
for what they miss.

Several loadings span a space whose projection Q is zero outside the K rows that any of them uses. Tr(QA) is
the same sum with t_l = v_l'Qv_l, which is at most the sum of the K largest v_lj^2; sum_l t_l <= r, and
sum_l |v_l'Qr_l| <= (r sum_l rho_l^2)^(1/2). joint_bound.py has further bounds for several loadings.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .. import _core
from .._limits import (
    BLOCK_NODES,
    BOUND_ENTRIES,
    BOUND_ORDER,
    BOUND_SHARE,
    BOUND_SPEED,
    BOUND_VECTORS,
    EXACT_ORDER,
    JOINT_ORDER,
    LEADING_ORDER,
    REDUCED_ORDER,
    RELAXATION_SPEED,
    RELAXATION_WORK,
    SYMMETRY,
    THRESHOLD_WORK,
    WIDE_SAMPLES,
)
from .._types import AnyArray, Array, Index, Kind, MatrixLike, Switch, Weights
from .._validation import check_bool, check_choice, integer, per_component, require_entries
from ..choice import Choice
from ..linalg.eigen import leading_eigenpairs
from ..linalg.orthogonal import project_out, symmetrized
from ..linalg.scaling import EPS, beyond_range, eps_of, largest_magnitude
from ..operators.deflation import DeflatedOperator
from ..operators.gram import columns_cost, is_given, product_error, symmetric_submatrix
from ..operators.inputs import as_problem
from ..operators.problem import Problem
from ..operators.sparse import is_indefinite
from ..progress import Callback
from ..readable import Listing, Tabular
from ..supports.admissible import Supports, knowledge
from .base import progress_hook, shared_parameters
from .joint_bound import most_together, relaxed_bound
from .semidefinite import dual_bound, shaped_bound
from .solution import ProgressHook, Report
from .wide_bounds import (
    BlockSearch,
    knapsack,
    large_entries,
    row_sums,
    strong_variables_bound,
    threshold_bound,
)


@dataclass(frozen=True, repr=False)
class OptimalityBound(Tabular):
    """An upper bound on the variance that a sparse loading can have, or several together.

    `to_frame()` has a row for each bound: upper_bound, smallest.

    Attributes
    ----------
    upper_bound : float
        The smallest of the bounds.
    which : str
        Its name.
    bounds : dict
        All bounds that were computed, by name.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> bound = spcacore.optimality_bound(A, 4, kind="covariance")
    >>> bound.which in bound.bounds, bound.upper_bound == min(bound.bounds.values())
    (True, True)
    """

    upper_bound: float
    which: str
    bounds: dict[str, float] = field(repr=False)

    @classmethod
    def smallest(
        cls, bounds: dict[str, float], exponent: int = 0, hook: ProgressHook | None = None
    ) -> OptimalityBound:
        """Return the record of these bounds, times `2**exponent`, and tell the hook."""
        with beyond_range():
            bounds = {name: float(np.ldexp(value, exponent)) for name, value in bounds.items()}
        which = min(bounds, key=lambda name: bounds[name])
        if hook is not None:
            hook(0, bounds[which])
        return cls(bounds[which], which, bounds)

    @property
    def bound(self) -> float:
        """`upper_bound`, by a shorter name."""
        return self.upper_bound

    def _facts(self) -> list[str]:
        return [f"upper_bound={self.upper_bound:.6g}", f"which={self.which!r}"]

    def _table(self) -> Listing:
        columns = {
            "upper_bound": list(self.bounds.values()),
            "smallest": [n == self.which for n in self.bounds],
        }
        return Listing("name", list(self.bounds), columns)


@shared_parameters
def optimality_bound(
    X: MatrixLike, cardinality: int | ArrayLike, n_components: int = 1, *,
    constraint: Literal["orthogonal"] | None = None,
    choice: Choice | None = None,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    relaxation: bool = False, callback: Callback | None = None,
) -> OptimalityBound:  # fmt: skip
    """An upper bound on `x'Ax` over unit vectors with at most k nonzeros.

    The smallest of

    - "spectral": the largest eigenvalue; beyond 3000 variables and 2000 samples a bound on it;
    - "diagonal": the sum of the k largest diagonal entries;
    - "row sums", up to 2000 variables: the largest sum of k magnitudes in one row (Gershgorin);
    - "knapsack": the largest `sum_l lambda_l t_l` over `0 <= t_l <=` (sum of the k largest squares of the
      l-th eigenvector), `sum_l t_l <= 1`; beyond 2000 variables with two dozen eigenvectors and the next
      eigenvalue, or Lanczos vectors, their residuals and a bound on the rest;
    - "threshold", beyond 2000 variables, where the whole of A takes at most 1e10 multiplications: the largest
      eigenvalue of A with its entries off the diagonal moved towards 0 by a level, and k - 1 times the level;
    - "blocks", where "threshold" is: the largest sum of what j variables of one block reach and k - j times a
      level, which no covariance of two blocks exceeds; by short trees in the blocks;
    - "strong variables", beyond 2000 variables, where some have more variance than others: what j of the 128
      of largest variance, or of a component found, reach with k - j of the others, whose variances and
      covariances with the strong ones, and if need be within groups, are known;
    - "relaxation", if requested: the dual of the semidefinite relaxation, see `dspca`, usually the tightest.

    With `n_components` r > 1, the bound is on what any r loadings explain together: the variance of the
    projection onto their span (`explained_variance`, "cumulative"). Then "spectral" is the sum of the r
    largest eigenvalues; "diagonal" and "knapsack" count the nonzeros of all loadings, with `sum_l t_l <= r`;
    and "row sums", up to 2000 variables, and "relaxation" combine what loadings and the variables that
    several share can reach.

    Rounding is allowed for, so that no bound is below the optimum. No p x p matrix is formed beyond 3000
    variables.

    Parameters
    ----------
    X : array-like of shape (n, p) or sparse matrix
        Data; with ``kind="covariance"`` a symmetric positive semidefinite (p, p) matrix.
    cardinality : int or sequence of r int
        k, in [1, p]: one number for all loadings, or one for each.
    n_components : int, default 1
        r, in [1, p].
    constraint : {None, "orthogonal", "uncorrelated"}, default None
        For several loadings: bound the sum of variances, `Tr(V'AV)`, of orthogonal loadings, `V'V = I`, or of
        uncorrelated components, whose `V'AV` is diagonal. This bound is lower. Loadings of uncorrelated
        components that are not orthogonal may explain more together than this sum.
    choice : Choice, optional
        What you know about the variables; the bound is on loadings that respect it. Excluded variables and
        groups lower every bound: groups by the number of variables that they can have together. Included
        variables and signs lower the bound of one component with up to 2000 variables; "relaxation" is then
        the bound of `dspca` with this choice, for up to 500 variables that are not excluded.
    {matrix}
    relaxation : bool, default False
        Solve the semidefinite relaxation too; at most 2000 variables may remain in it, or 1000 in all for
        several loadings.
    callback : callable or True, optional
        As in `sparse_eigen_bound`.

    Returns
    -------
    OptimalityBound
        `upper_bound`, `which` and `bounds`, in the units of the covariance.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, a covariance that is not positive semidefinite, a cardinality out
        of range, or an operator known by its products alone.
    TypeError
        For input that is not real numbers.

    Notes
    -----
    Orthogonal loadings are bounded by `Tr Z + sum_t F(k_t)`, where Z is any semidefinite matrix and F(m)
    bounds `x'(A - Z)x` for m nonzeros. Z is chosen by cutting planes: supports on which `A - Z` is large come
    in one by one, and a short search by branch and bound proves F. For uncorrelated components Z is
    `A^(1/2) X A^(1/2)`, and F(k) times the r largest eigenvalues of X takes the place of `Tr Z`. Loadings
    without a constraint may share s variables. Without these, which make up at least 2s of the nonzeros, the
    loadings have disjoint supports, and together with the s variables they span all that the loadings span.
    So the bound adds the variances of the s variables and lowers the k_t; the largest over all s counts. A
    tree over the at most `sum_t k_t - 1` variables that they have together may show that it is less. For
    "row sums" Z is zero, and F(m) the largest sum of m magnitudes in a row.

    References
    ----------
    D. Berk and D. Bertsimas (2019). Certifiably optimal sparse principal component analysis. Mathematical
    Programming Computation 11, 381-420. B. Moghaddam, Y. Weiss and S. Avidan (2006). Spectral bounds for
    sparse PCA. Advances in Neural Information Processing Systems 18.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> best = spcacore.optimality_bound(A, 4, kind="covariance")
    >>> best.which, round(best.upper_bound, 3)
    ('row sums', 3.171)
    >>> round(spcacore.optimality_bound(A, 4, kind="covariance", relaxation=True).upper_bound, 3)
    3.017
    >>> round(spcacore.tpower(A, 4, kind="covariance").value, 3)
    2.937
    >>> best = spcacore.optimality_bound(A, 5, n_components=3, relaxation=True, kind="covariance")
    >>> V = spcacore.sparse_pca(A, 3, cardinality=5, refine=True, kind="covariance").loadings
    >>> both = spcacore.explained_variance(A, V, kind="covariance").sum(), best.upper_bound
    >>> print("{:.1f} of at most {:.1f}".format(*both))
    7.9 of at most 8.2
    """
    problem = as_problem(X, kind, center, scale, sample_weight, choice=knowledge(choice))
    r = integer(n_components, "n_components", 1, problem.p)
    sizes = per_component(cardinality, "cardinality", r, problem.supports.count)
    asked = sizes[0]
    sizes = tuple(problem.supports.most_variables(k) for k in sizes)
    if constraint is not None:
        check_choice(constraint, "constraint", ("orthogonal", "uncorrelated"))
    require_entries(problem, "an optimality bound")
    relaxed, hook = check_bool(relaxation, "relaxation"), progress_hook(callback)
    if r > 1:
        bounds = joint_bounds(problem, sizes, constraint, relaxed, hook=hook)
    else:
        state = replace(DeflatedOperator.from_problem(problem), hook=hook)
        bounds = upper_bounds(state, sizes[0])
        if relaxed:
            bounds["relaxation"] = min(dual_bound(state, sizes[0]), shaped_bound(state, asked))
    return OptimalityBound.smallest(bounds, problem.exponent, hook)


def may_be_formed(op: _core.Operator, order: int) -> bool:
    """Whether A has at most `order` variables, and takes little more than its entries to form."""
    return op.p <= order and (op.symmetric_form or op.m * op.p <= BOUND_ENTRIES)


def joint_bounds(
    problem: Problem, sizes: tuple[int, ...], constraint: str | None, relaxation: bool,
    rows: int | None = None, hook: Report | None = None,
) -> dict[str, float]:  # fmt: skip
    """Return bounds on what several loadings explain together, in the operator's units, by name.

    If `rows` is given, all loadings together use no more variables than that.
    """
    p, r, op = problem.p, len(sizes), problem.operator
    if relaxation and p > JOINT_ORDER:
        raise ValueError(f"the relaxation of several loadings takes at most {JOINT_ORDER} variables, not {p}")
    whole = may_be_formed(op, BOUND_ORDER)
    state, K = DeflatedOperator.from_problem(problem), min(rows or sum(sizes), p)
    if not whole:
        bounds = _from_few_vectors(state, K, r)
    else:
        A = symmetric_submatrix(op)
        bounds = _from_all_entries(A, K, r)
        levels = np.append(0.0, row_sums(A, max(sizes)))
        bounds["row sums"] = (
            float(levels[list(sizes)].sum()) if constraint else most_together(levels, A.diagonal(), sizes)
        )
        if relaxation:
            bounds["relaxation"] = relaxed_bound(A, sizes, constraint, hook)
    excess = r * rounding_of_bound(problem, whole, "spectral", K)
    return {name: bound + excess for name, bound in bounds.items()}


def bounds_without_search(state: DeflatedOperator, k: int, seconds: float) -> Iterator[float]:
    """Yield upper bounds on the objective of the next component, the quick ones first.

    It yields those for which there is time; without a limit of time a relaxation takes a few seconds. If the
    hook returns true, the relaxation ends with the bound that it has. A covariance need not be semidefinite.
    """
    # Bounds without a relaxation; those by thresholds need all columns of A
    p, op = state.p, state.problem.operator
    work = p**3 / 6 if may_be_formed(op, LEADING_ORDER) else 8 * BOUND_VECTORS * state.problem.cost
    if state.diagonal is None or not work <= seconds * BOUND_SPEED:
        return
    thresholds = work + columns_cost(state.problem) <= seconds * BOUND_SPEED
    definite = not op.symmetric_form or p > EXACT_ORDER or _is_semidefinite(op)
    if definite or p <= BOUND_ORDER:
        yield min(upper_bounds(state, k, thresholds).values())
    if REDUCED_ORDER < p <= BOUND_ORDER and state.operator.t == 0:
        large = large_entries(op)
        bound = threshold_bound(state.diagonal, k, large)
        yield bound + rounding_of_bound(state.problem, True, "threshold", k)
    # The relaxation
    if definite:
        share = 1 if p <= EXACT_ORDER else BOUND_SHARE  # of many variables, most must be left out by then
        work = RELAXATION_WORK if seconds == np.inf else seconds * RELAXATION_SPEED * share
        with suppress(ValueError):  # too many variables may remain
            yield dual_bound(state, k, work, columns_cost(state.problem) / p)


def _is_semidefinite(op: Any) -> bool:
    """Whether A is semidefinite, except for the rounding that a covariance may have."""
    A = symmetric_submatrix(op)
    largest = largest_magnitude(A)
    return largest == 0 or not is_indefinite(A / largest, SYMMETRY.of(op.dtype))


def upper_bounds(state: DeflatedOperator, k: int, thresholds: bool = True) -> dict[str, float]:
    """Return bounds on the objective of the next component, in the operator's units, by name.

    For many variables, the bounds of `thresholds` take all columns of A.
    """
    if state.diagonal is None:
        return {}
    p, op, k, strong, problem = state.p, state.operator, state.reach(k), np.inf, state.problem
    # Few vectors and the diagonal for many variables, all of A for few
    whole = may_be_formed(op, BOUND_ORDER)
    if not whole:
        if not state.deflation.semidefinite:  # deflation lowers A, perhaps to an indefinite matrix: bound A
            state = replace(DeflatedOperator.from_problem(problem), hook=state.hook)
        bounds = _from_few_vectors(state, k)
        op = state.operator
        if thresholds and op.t == 0 and columns_cost(problem) <= THRESHOLD_WORK:
            diagonal, large = np.maximum(state.variances, 0), large_entries(op)
            bounds["threshold"] = threshold_bound(diagonal, k, large)
            blocks = BlockSearch(op, diagonal, k, large)
            blocks.run(0.0, BLOCK_NODES, state.hook)
            bounds["blocks"] = blocks.upper()
        strong, _ = by_strong_variables(state, k, min(bounds.values()))
    else:
        A = op.submatrix(np.arange(p)).astype(np.float64)
        bounds = _from_all_entries(A, k)
        if state.supports.shapes and not state.quotient:
            bounds = _with_choice(
                state.supports, A, k, bounds, rounding_of_bound(state.problem, whole, "included", k)
            )
    bounds = {
        name: bound + rounding_of_bound(state.problem, whole, name, k) for name, bound in bounds.items()
    }
    return bounds | ({"strong variables": strong} if strong < np.inf else {})


def _with_choice(
    choice: Supports, A: Array, k: int, bounds: dict[str, float], rounding: float
) -> dict[str, float]:
    """Return the bounds, lowered by the signs and the included variables.

    x'Ax is at most x'Mx, where M is A without the entries that x of these signs makes negative. If x has the
    variables I, and A + delta I is semidefinite, x'Ax is at most the sum of three parts: the largest
    eigenvalue of A on I, a bound for k - |I| of the other variables, and delta.
    """
    I = choice.wanted
    if choice.signs is not None:
        s = choice.signs.astype(np.float64)
        lower = _from_all_entries(np.where(A * np.outer(s, s) < 0, 0, A), k)
        bounds = {name: min(bound, lower[name]) for name, bound in bounds.items()}
    if len(I):
        delta = max(0.0, -float(np.linalg.eigvalsh(A)[0]))
        rest = np.delete(np.arange(len(A)), I)
        others = min(_from_all_entries(A[np.ix_(rest, rest)], k - len(I)).values()) if k > len(I) else 0.0
        own = float(np.linalg.eigvalsh(A[np.ix_(I, I)])[-1])
        bounds["included"] = own + max(others, 0.0) + delta + 2 * rounding
    return bounds


def rounding_of_bound(problem: Problem, whole: bool, name: str, k: int) -> float:
    """Return by how much rounding may have lowered the bound of this name, in the operator's units.

    fl(F'(Fv)) differs from F'Fv by at most gamma ||F||_F^2 (Higham 2002, section 3.5), where gamma is at most
    m + 64 roundings. An entry a_ij is off by gamma ||F_i|| ||F_j||, so a row of k entries by gamma max_i
    ||F_i|| times the k largest ||F_j||. LAPACK's eigenvalues are off by a multiple of p roundings of ||A||.
    ||A|| and ||F||_F^2 are at most the trace. Variances of data come from a pass in double precision. Entries
    of a covariance were rounded to its precision by at most u |a_ij|, so that a submatrix may exceed its
    trace by 2 u trace.
    """
    op, moment = problem.operator, np.abs(problem.known_moment)
    size, order = float(moment.sum()), problem.p if whole else max(BOUND_VECTORS, min(op.m, LEADING_ORDER))
    decomposition = 8 * order * EPS * size
    if name == "strong variables":  # this bound allows for other rounding itself; data are semidefinite
        return decomposition if op.symmetric_form else 0.0
    blocks, root = name == "blocks", np.sqrt(moment)  # blocks allow for their decompositions themselves
    margin = 0.0 if blocks else decomposition
    given = is_given(op) if whole or blocks else name == "diagonal"  # no products: entries or variances
    if given and op.t == 0:
        return margin + (eps_of(op.dtype) * size if op.symmetric_form and not (whole or blocks) else 0.0)
    rows = blocks or name in ("row sums", "threshold")
    return margin + product_error(op, k) * (float(root.max() * _largest_sum(root, k)) if rows else size)


def _largest_sum(a: AnyArray, k: int) -> AnyArray:
    """Return the sum of the k largest entries; of a matrix, for each column."""
    return (a if k >= len(a) else np.partition(a, len(a) - k, axis=0)[len(a) - k :]).sum(axis=0)


def _from_all_entries(A: Array, k: int, r: int = 1) -> dict[str, float]:
    """Return bounds from the whole symmetric matrix, which may be indefinite.

    r loadings have k nonzeros in all.
    """
    values, vectors = np.linalg.eigh(A)
    caps = _largest_sum(vectors**2, k)
    bounds = {
        "spectral": float(values[-r:].sum()),
        "row sums": r * float(row_sums(A, k)[-1]),
        "knapsack": knapsack(values, caps, 0.0, r),
    }
    lowest = min(0.0, float(values[0]))  # A - lowest I is semidefinite
    bounds["diagonal"] = float(_largest_sum(A.diagonal() - lowest, k)) + lowest
    return bounds


def by_strong_variables(state: DeflatedOperator, k: int, below: float, *search: Any) -> tuple[float, Index]:
    """Return a bound by the variables of largest variance, and the variables that are not left out.

    The bound is infinity if the variances alone show that it is not below `below`, or if the hook returns
    true. `search` is what else `strong_variables_bound` takes.
    """
    diagonal, problem = np.maximum(state.variances, 0).astype(np.float64), state.problem
    root, error = np.sqrt(np.abs(problem.known_moment)), product_error(state.operator, k)
    bound, kept = strong_variables_bound(state.operator, diagonal, root, k, error, below, state.hook, *search)
    return bound + rounding_of_bound(problem, False, "strong variables", k), kept


def _from_few_vectors(state: DeflatedOperator, k: int, r: int = 1) -> dict[str, float]:
    """Return bounds from Lanczos vectors and the diagonal of a semidefinite operator.

    r loadings have k nonzeros in all. The argument is in the docstring of this module.
    """
    # V, and H = V'AV = diag(theta), R = AV - VH
    op, diagonal = state.operator, np.maximum(state.variances, 0)
    count = min(BOUND_VECTORS, state.p - 1, max(1, op.m - 1))
    spectrum, V = _eigenpairs(state, count) or (None, _lanczos(op, count))
    AV = op.apply_block(V).astype(np.float64)
    V, triangle = np.linalg.qr(np.asarray(V, np.float64))
    AV = AV @ np.linalg.inv(triangle)
    H = V.T @ AV
    theta, E = np.linalg.eigh(symmetrized(H))
    V, AV = V @ E, AV @ E
    R = AV - V * theta
    # The diagonal of PAP, u_l, and the bound of sum_l |v_l'x| |r_l'x|
    rest = np.maximum(diagonal - (V**2) @ theta - 2 * np.sum(V * R, axis=1), 0)
    caps = _largest_sum(V**2, k)
    cross = 2 * float(np.sqrt(r * _largest_sum(R**2, k).sum()))
    # tau and the largest eigenvalue
    tail, kept = float(rest.sum()), float(_largest_sum(rest, k))
    whole = float(np.linalg.norm(R, 2))
    largest = max(float(theta[-1]), tail) + whole
    if spectrum is not None:
        off = whole + rounding_of_bound(state.problem, False, "spectral", k)
        tail = min(tail, _largest_beyond(theta[::-1], spectrum, off))
        largest = float(spectrum[:r].sum()) + max(0, r - len(spectrum)) * float(spectrum[-1])
    else:
        largest *= r
    return {
        "spectral": largest,
        "diagonal": float(_largest_sum(diagonal, k)),
        "knapsack": min(knapsack(theta, caps, 0.0, r) + kept, knapsack(theta, caps, tail, r)) + cross,
    }


def _largest_beyond(theta: Array, spectrum: Array, off: float) -> float:
    """Return a bound on the largest eigenvalue of PAP.

    `theta` has the eigenvalues of H, and `spectrum` one more of A; both descend. The eigenvalues of H and of
    W'AW together, where W is the complement of V, are within ||R|| of those of A. So at most h of them exceed
    lambda_(h+1) + ||R||, and if H has h of these, PAP has none. `off` is ||R|| and what rounding can add,
    because the last bit would decide where theta_h is lambda_(h+1).
    """
    beyond = np.append(spectrum, 0)[: len(theta) + 1] + off
    taken = [h for h in range(len(beyond)) if h == 0 or theta[h - 1] > beyond[h]]
    return float(beyond[max(taken)])


def _eigenpairs(state: DeflatedOperator, count: int) -> tuple[Array, AnyArray] | None:
    """Return the largest eigenvalues, one more than vectors, by LAPACK; None if that takes too long.

    They are those of A, or of FF' where samples are few.
    """
    op, p = state.operator, state.p
    if may_be_formed(op, LEADING_ORDER):
        values, V, _ = leading_eigenpairs(op.submatrix(np.arange(p)).astype(np.float64), count + 1)
        return values, V[:, :count].astype(op.dtype)
    if op.symmetric_form or op.m > min(WIDE_SAMPLES, p) or state.problem.filled or state.deflation.residual:
        return None
    values, U, _ = leading_eigenpairs(op.outer().astype(np.float64), min(count + 1, op.m))
    least = max(1e-9, op.m * eps_of(op.dtype)) * values[0]  # below it vectors may be rounding alone
    count = min(count, int(np.count_nonzero(values > least)))
    if count == 0:
        return None
    V = op.backward_block(np.asfortranarray(U[:, :count], op.dtype))
    for v in V.T:
        v /= np.linalg.norm(v)
    return values, V


def _lanczos(op: Any, count: int) -> AnyArray:
    """Return an orthonormal basis of the Krylov space of a random vector."""
    rng = np.random.default_rng(0)
    V = np.zeros((op.p, count), order="F")
    w = rng.standard_normal(op.p)
    for i in range(count):
        w = project_out(w, V[:, :i])
        norm = np.linalg.norm(w)
        if not norm > 1e-10 * np.abs(V[:, :i]).max(initial=0):  # the space is invariant: take any vector
            w = rng.standard_normal(op.p)
            w -= V[:, :i] @ (V[:, :i].T @ w)
            norm = np.linalg.norm(w)
        V[:, i] = w / norm
        if i + 1 < count:
            w = op.apply(None, V[:, i].astype(op.dtype)).astype(np.float64)
    return V.astype(op.dtype)
