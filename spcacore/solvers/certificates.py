"""How good an answer can be: upper bounds on x'Ax over sparse unit vectors.

For any orthonormal V (p x m), with H = V'AV = diag(theta), R = AV - VH (so V'R = 0) and P = I - VV',
every unit vector x with at most k nonzeros has

    x'Ax = sum_l theta_l t_l + 2 sum_l (v_l'x) (r_l'x) + x'PAPx,    t_l = (v_l'x)^2,

where t_l is at most the sum u_l of the k largest v_lj^2, sum_l t_l <= 1, |r_l'x| <= rho_l, the norm of the
k largest entries of r_l, and x'PAPx is at most tau (1 - sum_l t_l), tau >= the largest eigenvalue of PAP,
and, A being semidefinite, at most the sum of the k largest diagonal entries of PAP. So V need not be exact,
and a few Lanczos vectors serve at any p; what they miss is accounted for by R and by the diagonal.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .._limits import BOUND_ENTRIES, BOUND_ORDER, BOUND_ROWS, BOUND_VECTORS
from .._validation import check_bool, integer
from ..linalg.orthogonal import project_out
from ..operators.deflation import DeflatedOperator
from ..operators.inputs import as_problem
from ..operators.problem import Problem
from .parameters import shared_parameters
from .semidefinite import dual_bound


@dataclass(frozen=True)
class OptimalityBound:
    """An upper bound on the variance that a sparse loading can have.

    Attributes
    ----------
    bound : float
        The smallest of the bounds.
    which : str
        Its name.
    bounds : dict
        All that were computed, by name.
    """

    bound: float
    which: str
    bounds: dict[str, float] = field(repr=False)


@shared_parameters
def optimality_bound(
    X: Any, cardinality: int, *,
    kind: str = "data", center: Any = True, scale: Any = False, relaxation: bool = False,
) -> OptimalityBound:  # fmt: skip
    """An upper bound on `x'Ax` over unit vectors with at most k nonzeros.

    The smallest of

    - "spectral": the largest eigenvalue;
    - "diagonal": the sum of the k largest diagonal entries;
    - "row sums": the largest sum of k magnitudes in one row (Gershgorin); beyond 2000 variables of the rows
      that may hold it, as many as are cheap, with `|a_ij| <= sqrt(a_ii a_jj)` for the others;
    - "knapsack": the largest `sum_l lambda_l t_l` over `0 <= t_l <=` (sum of the k largest squares of the
      l-th eigenvector), `sum_l t_l <= 1`; beyond 2000 variables with two dozen Lanczos vectors, their
      residuals and a bound on the rest;
    - "relaxation", if asked for: the dual of the semidefinite relaxation, see `dspca`, mostly the tightest.

    Rounding is allowed for, so that no bound is below the optimum. No p x p matrix is formed beyond 2000
    variables.

    Parameters
    ----------
    X : array-like of shape (n, p) or sparse matrix
        Data; with ``kind="covariance"`` a symmetric positive semidefinite (p, p) matrix.
    cardinality : int
        k, in [1, p].
    {standardization}
    relaxation : bool, default False
        Solve the semidefinite relaxation too; at most 2000 variables may remain in it.

    Returns
    -------
    OptimalityBound
        `bound`, `which` and `bounds`, in the units of the covariance.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, a covariance that is not positive semidefinite, a cardinality out
        of range, or an operator known by its products alone.
    TypeError
        For input that is not real numbers.

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
    >>> best.which, round(best.bound, 3)
    ('row sums', 3.171)
    >>> round(spcacore.optimality_bound(A, 4, kind="covariance", relaxation=True).bound, 3)
    3.017
    >>> round(spcacore.tpower(A, 4, kind="covariance").value, 3)
    2.937
    """
    problem = as_problem(X, kind=kind, center=center, scale=scale)
    k = integer(cardinality, "cardinality", 1, problem.p)
    if problem.diagonal is None:
        raise ValueError("an optimality bound needs the entries of X; an operator offers only products")
    bounds = upper_bounds(problem, DeflatedOperator.from_problem(problem), k)
    if check_bool(relaxation, "relaxation"):
        bounds["relaxation"] = dual_bound(DeflatedOperator.from_problem(problem), k)
    bounds = {name: float(problem.in_units(value)) for name, value in bounds.items()}
    which = min(bounds, key=lambda name: bounds[name])
    return OptimalityBound(bounds[which], which, bounds)


def upper_bounds(problem: Problem, state: DeflatedOperator, k: int) -> dict[str, float]:
    """Bounds on the objective of the next component, in the operator's units, by name."""
    if state.diagonal is None:
        return {}
    p, op = problem.p, state.operator
    whole = p <= BOUND_ORDER and (op.covariance or op.m * p <= BOUND_ENTRIES)
    if not whole:
        if not state.deflation.semidefinite:  # it only lowers A, but may leave it indefinite
            state = replace(state, operator=state.original, diagonal=problem.diagonal)
        bounds = _from_few_vectors(problem, state, k)
    else:
        bounds = _from_all_entries(op.submatrix(np.arange(p)).astype(np.float64), k)
    if state.quotient:  # x'Ax/x'Bx, B = I - QQ', knows no bound by the support; A = BAB
        bounds = {"spectral": bounds["spectral"]}
    return {name: bound + _rounding(problem, whole, name, k) for name, bound in bounds.items()}


def _rounding(problem: Problem, whole: bool, name: str, k: int) -> float:
    """No bound is off by more, in the operator's units.

    fl(F'(Fv)) differs from F'Fv by at most gamma ||F||_F^2 (Higham 2002, section 3.5), gamma not above m + 64
    roundings, and an entry a_ij by gamma ||F_i|| ||F_j||; LAPACK's eigenvalues are off by a multiple of p
    roundings of ||A||. ||A|| and ||F||_F^2 are at most the trace. Variances of data come from a pass in
    double; a covariance that was rounded is semidefinite but for a rounding of the trace.
    """
    op, eps = problem.operator, float(np.finfo(np.float64).eps)
    exact = op.t == 0 and (op.covariance if whole else name == "diagonal" and not op.covariance)
    products = 0.0 if exact else (op.m + 64 + k) * float(np.finfo(op.dtype).eps)
    decomposition = 8 * (problem.p if whole else BOUND_VECTORS) * eps
    assert problem.moment is not None
    moment = np.abs(problem.moment)
    size = float(moment.sum())
    if name == "row sums":
        root = np.sqrt(moment)
        return products * float(root.max() * _largest_sum(root, k)) + decomposition * size
    return (products + decomposition) * size


def _largest_sum(a: NDArray[Any], k: int, axis: int = 0) -> NDArray[Any]:
    """Sum of the k largest entries along an axis."""
    n = a.shape[axis]
    if k >= n:
        return a.sum(axis=axis)
    part = np.partition(a, n - k, axis=axis)
    return np.take(part, range(n - k, n), axis=axis).sum(axis=axis)


def _knapsack(values: NDArray[Any], caps: NDArray[Any], tail: float) -> float:
    """max sum_l values_l t_l + tail (1 - sum_l t_l), 0 <= t_l <= caps_l, sum_l t_l <= 1, tail >= 0."""
    room, total = 1.0, 0.0
    for l in np.argsort(-values):
        if values[l] <= tail or room <= 0:
            break
        t = min(room, float(caps[l]))
        total += t * float(values[l])
        room -= t
    return total + max(room, 0.0) * tail


def _from_all_entries(A: NDArray[np.float64], k: int) -> dict[str, float]:
    """From the whole symmetric matrix, which may be indefinite."""
    values, vectors = np.linalg.eigh(A)
    magnitude = np.abs(A)
    diagonal = np.diagonal(A).copy()
    np.fill_diagonal(magnitude, 0)
    rows = diagonal + (_largest_sum(magnitude, k - 1, axis=1) if k > 1 else 0)
    caps = np.minimum(_largest_sum(vectors**2, k), 1)
    bounds = {
        "spectral": float(values[-1]),
        "row sums": float(rows.max()),
        "knapsack": _knapsack(values, caps, 0.0),
    }
    lowest = min(0.0, float(values[0]))  # A - lowest I is semidefinite
    bounds["diagonal"] = float(_largest_sum(diagonal - lowest, k)) + lowest
    return bounds


def _from_few_vectors(problem: Problem, state: DeflatedOperator, k: int) -> dict[str, float]:
    """From Lanczos vectors and the diagonal of a semidefinite operator."""
    assert state.diagonal is not None
    op, diagonal = state.operator, np.maximum(state.diagonal, 0)
    V = _lanczos(op, min(BOUND_VECTORS, problem.p - 1, max(1, op.m - 1)))
    AV = op.apply_block(V).astype(np.float64)
    V, triangle = np.linalg.qr(np.asarray(V, np.float64))
    AV = AV @ np.linalg.inv(triangle)
    H = V.T @ AV
    theta, E = np.linalg.eigh((H + H.T) / 2)
    V, AV = V @ E, AV @ E
    R = AV - V * theta
    rest = np.maximum(diagonal - (V**2) @ theta - 2 * np.sum(V * R, axis=1), 0)  # of PAP
    caps = np.minimum(_largest_sum(V**2, k), 1)
    cross = 2 * float(np.sqrt(_largest_sum(R**2, k).sum()))
    trace, kept = float(rest.sum()), float(_largest_sum(rest, k))
    whole = float(np.linalg.norm(R, 2))
    return {
        "row sums": _row_sums(op, diagonal, k),
        "spectral": max(float(theta[-1]), trace) + whole,
        "diagonal": float(_largest_sum(diagonal, k)),
        "knapsack": min(_knapsack(theta, caps, 0.0) + kept, _knapsack(theta, caps, trace)) + cross,
    }


def _row_sums(op: Any, diagonal: NDArray[np.float64], k: int) -> float:
    """The largest sum of k magnitudes in a row, or a bound on it: rows that can be largest are formed."""
    root = np.sqrt(diagonal)
    order = np.argsort(-root, kind="stable")
    top = np.zeros(op.p, bool)
    top[order[: k - 1]] = True
    others = root[order[: k - 1]].sum() + np.where(top, root[order[k - 1]] - root, 0)
    bound = diagonal + root * others  # falls with root
    most = 0.0
    for start in range(0, min(BOUND_ROWS, op.p), 4):
        part = order[start : start + 4]
        if bound[part[0]] <= most:
            return most
        V = np.zeros((op.p, len(part)), op.dtype, order="F")
        V[part, np.arange(len(part))] = 1
        rows = np.abs(op.apply_block(V).astype(np.float64))
        rows[part, np.arange(len(part))] = 0
        sums = diagonal[part] + (_largest_sum(rows, k - 1) if k > 1 else 0)
        most = max(most, float(sums.max()))
    rest = order[min(BOUND_ROWS, op.p) :]
    return max(most, float(bound[rest].max(initial=0)))


def _lanczos(op: Any, count: int) -> NDArray[Any]:
    """An orthonormal basis of the Krylov space of a random vector."""
    rng = np.random.default_rng(0)
    V = np.zeros((op.p, count), order="F")
    w = rng.standard_normal(op.p)
    for i in range(count):
        w = project_out(w, V[:, :i])
        norm = np.linalg.norm(w)
        if not norm > 1e-10 * np.abs(V[:, :i]).max(initial=0):  # the space is invariant: on with any vector
            w = rng.standard_normal(op.p)
            w -= V[:, :i] @ (V[:, :i].T @ w)
            norm = np.linalg.norm(w)
        V[:, i] = w / norm
        if i + 1 < count:
            w = op.apply(None, V[:, i].astype(op.dtype)).astype(np.float64)
    return V.astype(op.dtype)
