"""Maximum likelihood for probabilistic components; posteriors and densities.

If all entries are known, the maximum needs the leading eigenvalues and the sum of the others; else EM finds
it.

For a row x with the observed variables o, `M = W_o'W_o + s2 I`, `E z = M^-1 W_o'(x_o - mu_o)`, and the
covariance of z is `s2 M^-1`. Rows that observe the same variables share M: they have one pattern.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy import linalg

from .._limits import COPIED_ENTRIES, LANCZOS_SHARE, LAPACK_ORDER, PPCA_ORDER, ROUNDING_LEFT, slices
from .._messages import counted, warn
from .._types import AnyArray, Array, Index, Mask
from .._validation import Hook
from ..linalg.eigen import (
    interruptible,
    leading_eigenpairs,
    leading_eigenvectors,
)
from ..linalg.orthogonal import inner_products, tall_product, unit_columns
from ..linalg.scaling import EPS, LOG_2PI, beyond_range, eps_of
from ..operators.problem import Problem
from ..progress import Progress


def _missing_patterns(missing: Mask) -> tuple[Mask, Index]:
    """Return the distinct rows of a mask, and which of them each row is."""
    if not missing.any():
        return missing[:1], np.zeros(len(missing), np.intp)
    _, first, which = np.unique(np.packbits(missing, axis=1), axis=0, return_index=True, return_inverse=True)
    return missing[first], which.reshape(-1)


def _by_pattern(Y: Array) -> Iterator[tuple[Index, Mask]]:
    """Yield the rows of each pattern, and the variables that they observe."""
    patterns, which = _missing_patterns(np.isnan(Y))
    for g, absent in enumerate(patterns):
        yield np.flatnonzero(which == g), ~absent


def posterior(W: Array, variances: Array, noise: float, Y: Array) -> tuple[Array, Array]:
    """Return the means and the covariances of z, given the rows of Y; NaN entries are missing.

    `variances` are diag(W'W) + noise.
    """
    r = W.shape[1]
    if not np.isnan(Y).any():
        return tall_product(Y, W / variances), np.broadcast_to(np.diag(noise / variances), (len(Y), r, r))
    mean, covariance = np.empty((len(Y), r)), np.empty((len(Y), r, r))
    for rows, observed in _by_pattern(Y):
        part = W[observed]
        if noise > 0:
            inverse = linalg.pinvh(part.T @ part + noise * np.eye(r))
            weights, covariance[rows] = part @ inverse, noise * inverse
        else:
            weights = np.linalg.pinv(part).T
            covariance[rows] = np.eye(r) - part.T @ weights
        mean[rows] = Y[np.ix_(rows, observed)] @ weights
    return mean, covariance


def log_density(W: Array, axes: Array, variances: Array, noise: float, log_scale: Array, Y: Array) -> Array:
    """Return the log density of the observed entries of each row, less their `log_scale`.

    It is -1/2 (m log 2 pi + log det C + y'C^-1 y) for m observed entries and C = W_o W_o' + noise I. With the
    eigenvectors U of C in the span of W_o, y'C^-1 y = sum (U'y)^2 / eigenvalues + |y - UU'y|^2 / noise.
    `axes` are the columns of W at unit length.
    """
    seen = ~np.isnan(Y)
    out = -0.5 * LOG_2PI * seen.sum(axis=1) - seen @ log_scale
    for rows, observed in _by_pattern(Y):
        if not observed.any():
            continue
        y = Y if observed.all() and len(rows) == len(Y) else Y[np.ix_(rows, observed)]
        if observed.all():
            kept = axes.any(axis=0)
            U, values = axes[:, kept], variances[kept]
        elif noise > 0:
            U, s, _ = linalg.svd(W[observed], full_matrices=False)
            values = s**2 + noise
        else:
            values, U = linalg.eigh(W[observed] @ W[observed].T)
        t = y @ U
        determinant = np.log(values).sum()
        with beyond_range():  # rows may be far from the mean
            square = ((t / np.sqrt(values)) ** 2).sum(axis=1)
            if U.shape[1] < y.shape[1]:
                determinant += (y.shape[1] - U.shape[1]) * math.log(noise)
                square += ((y - t @ U.T) ** 2).sum(axis=1) / noise
        out[rows] -= 0.5 * (determinant + square)
    return out


class Fit(NamedTuple):
    """Orthonormal directions, variances in the operator's units, the likelihood and its path."""

    U: Array
    variances: Array
    noise: float
    n_samples: Any
    log_likelihood: float | None
    trace: Array
    converged: bool
    mean: AnyArray | None


def fit_missing(problem: Problem, r: int, ddof: int, max_iter: int, tol: float, hook: Hook) -> Fit:
    """Maximize the likelihood of the observed entries, by EM with an expanded model.

    Given the posteriors of z, each variable is regressed on the expected z and 1 over the rows that observe
    it, and s2 is the mean squared residual. The expanded model lets z have any mean and covariance. These are
    estimated too, and then absorbed by mu and W (PX-EM), so the likelihood never falls, and rises faster.
    """
    # The observed entries
    filled = problem.filled
    assert filled is not None
    n, p = filled.array.shape
    seen = (~np.isnan(filled.source)).astype(np.float64)
    Y = np.ascontiguousarray(filled.array, np.float64) * (filled.range * filled.range)
    center = problem.mean is not None
    count = float(seen.sum())
    rows = int(seen.any(axis=1).sum())
    if rows < 2:
        raise ValueError("X has fewer than 2 samples with observed entries")
    if r > min(rows - center, p):
        raise ValueError(f"X has at most rank {min(rows - center, p)}; n_components is {r}")
    # Begin with the eigenvectors of the data whose missing entries are the means
    patterns, which = _missing_patterns(seen == 0)
    masks = (~patterns).astype(np.float64)
    U = leading_eigenvectors(problem.operator, r)[1].astype(np.float64)
    values = np.sum((Y @ U) ** 2, axis=0) / n
    square = float(np.sum(Y**2))
    floor = square / count
    noise = max((square / n - values.sum()) / p, 1e-3 * floor)
    # T = (W, mu), or W alone
    T = np.column_stack([U * np.sqrt(np.maximum(values, noise)), *np.zeros((int(center), p))])
    # EM, until the likelihood no longer rises
    trace: list[float] = []
    converged, likelihood = False, -math.inf
    for _ in range(max_iter):
        before = likelihood
        likelihood, T, s2 = _em_step(Y, seen, masks, which, T, noise, r)
        trace.append(likelihood)
        # The likelihood falls only by rounding
        if (likelihood < before and noise < 1e-8 * floor) or not s2 > 1e-13 * floor:
            raise ValueError(
                f"too few entries are observed for {counted(r, 'component')}: "
                "these leave no noise, and the likelihood is unbounded; use fewer"
            )
        noise = s2
        converged = likelihood - before <= tol * count
        if hook(Progress(0, 1, len(trace))) or converged:
            break
    if not converged:
        warn(f"not converged in {counted(len(trace), 'iteration')}")
    # In the caller's units; a row without observed entries is no sample
    if ddof:
        T[:, :r] *= math.sqrt(rows / (rows - 1))
        noise *= rows / (rows - 1)
    likelihood = _em_step(Y, seen, masks, which, T, noise, r)[0]
    shift = 0.5 * problem.exponent * math.log(2) * count
    if problem.scale is not None:
        shift += float(seen.sum(axis=0) @ np.log(problem.scale.astype(np.float64)))
    U, s, _ = linalg.svd(T[:, :r], full_matrices=False)
    mean = None
    if problem.mean is not None:
        change = np.ldexp(T[:, r], problem.exponent // 2)
        mean = problem.mean + change * (1 if problem.scale is None else problem.scale)
        mean = mean.astype(problem.operator.dtype)
    return Fit(U, s**2 + noise, noise, rows, likelihood - shift, np.array(trace) - shift, converged, mean)


def _em_step(
    Y: Array, seen: Array, masks: Array, which: Index, T: Array, noise: float, r: int
) -> tuple[float, Array, float]:
    """One step: return the log likelihood of T = (W, mu), or W alone, and the next T and noise."""
    (n, p), q, W = Y.shape, T.shape[1], T[:, :r]

    def by_pattern(V: AnyArray) -> Array:
        """V_o'V_o of the observed variables of each pattern."""
        return (masks @ (V[:, :, None] * V[:, None, :]).reshape(p, r * r)).reshape(-1, r, r)

    # Posteriors, and the likelihood by them
    M = by_pattern(W) + noise * np.eye(r)
    inverse = np.linalg.inv(M)
    right = Y @ W - seen @ (T[:, r:].sum(axis=1, keepdims=True) * W)
    full = np.ones((n, q))
    full[:, :r] = Z = np.einsum("ia,iab->ib", right, inverse[which])
    determinant = (masks.sum(axis=1) - r) * math.log(noise) + np.linalg.slogdet(M)[1]
    square = np.sum((Y - seen * (full @ T.T)) ** 2) / noise + np.sum(Z**2)
    likelihood = -0.5 * (LOG_2PI * seen.sum() + determinant[which].sum() + square)

    # Sums of E zz' and E z: over the rows that observe each variable (moment), and over all rows (whole)
    moment, whole = np.zeros((p, q * q)), np.zeros((r, r))
    for rows in slices(n, q * q + p, COPIED_ENTRIES):
        outer = full[rows, :, None] * full[rows, None, :]
        outer[:, :r, :r] += noise * inverse[which[rows]]
        whole += outer[:, :r, :r].sum(axis=0)
        moment += seen[rows].T @ outer.reshape(-1, q * q)
    # Regressions and noise; the mean and covariance of z go into W and mu
    theta = np.linalg.solve(moment.reshape(p, q, q), (Y.T @ full)[:, :, None])[:, :, 0]
    rest = np.sum((Y - seen * (full @ theta.T)) ** 2)
    rest += noise * np.sum(by_pattern(theta[:, :r]) * inverse, axis=(1, 2))[which].sum()
    turn, mean = np.eye(q), Z.mean(axis=0) if q > r else np.zeros(r)
    turn[:r, :r] = np.linalg.cholesky(whole / n - np.outer(mean, mean))
    turn[:r, r:] = mean[:, None]
    return float(likelihood), theta @ turn, float(rest / seen.sum())


# ---- all entries are known ----------------------------------------------------------------------------


def leading_and_rest(problem: Problem, r: int, total: float) -> tuple[Array, Array, float]:
    """Return the r leading eigenvalues (operator's units), their vectors, and the sum of all others.

    Eigenvalues of F'F or FF' have errors of EPS times the largest. If that is too inaccurate, they are
    squared singular values of F, for dense data.
    """
    # By products, or by the smaller of F'F and FF'
    op, p = problem.operator, problem.p
    dense = op.dense and op.in_memory and not op.symmetric_form
    order = p if op.symmetric_form else min(op.n, p)
    if order > PPCA_ORDER or not (dense or p == order):
        values, U = leading_eigenvectors(op, r)
    elif p == order:
        values, U = _eigenvectors(op.gram() if dense else op.submatrix(np.arange(p)), r)
    else:
        values, Z = _eigenvectors(op.outer(), r)
        U = unit_columns(op.backward_block(Z).astype(np.float64))
    # float32: the eigenpairs again, with products in float64
    if dense and op.single:
        values, U, total = _refined(op, U)
    # What may be rounding: a share of the largest eigenvalue in each (exact), and in the sum of the others
    rest, exact = total - float(values.sum()), 10 * EPS * order
    in_sum = exact * values[0] * (order - r + 1)
    if op.single and not dense:
        exact = ROUNDING_LEFT.of(op.dtype)
        in_sum = exact * total
    if dense and order <= PPCA_ORDER and min(values[-1], rest) < 1e6 * EPS * values[0]:
        F = op.columns(np.arange(p)).astype(np.float64)  # one row for each variable
        U, s, _ = interruptible(
            lambda: linalg.svd(F, full_matrices=False, overwrite_a=True, check_finite=False)
        )
        squares = s**2 * op.factor
        values, U, rest = squares[:r], U[:, :r], float(squares[r:].sum())
        exact = (EPS * max(op.n, p)) ** 2
        exact += 16 * eps_of(op.dtype) ** 2 * float(problem.known_moment.sum() / values[0])
        in_sum = exact * values[0] * (order - r + 1)
    # The rank; a rest of rounding is 0
    rank = int(np.count_nonzero(values > exact * values[0]))
    if rank < r:
        raise ValueError(f"X has rank {rank}, so n_components must be at most {rank}, not {r}")
    if r == p or rest <= in_sum:
        rest = 0.0
    return values, U, rest


def _eigenvectors(A: Any, r: int) -> tuple[Array, Array]:
    """Return the r largest eigenvalues and their vectors, by Lanczos if they are few of many."""
    A, m = A.astype(np.float64, copy=False), len(A)
    few = m > LANCZOS_SHARE * r and m > LAPACK_ORDER
    start = np.random.default_rng(0).standard_normal(m)
    values, U, _ = leading_eigenpairs(A, r, A if few else None, v0=start, maxiter=60)
    return np.maximum(values, 0), U


def _refined(op: Any, U: Array) -> tuple[Array, Array, float]:
    """Return the eigenpairs in the span of U, with products in float64, and the sum of all eigenvalues."""
    scores, total = np.zeros((op.n, U.shape[1])), 0.0
    for part in slices(op.p, op.n, COPIED_ENTRIES):
        F = op.columns(np.arange(part.start, part.stop)).astype(np.float64)
        scores, total = scores + F.T @ U[part], total + float(np.sum(F * F))
    values, turn, _ = leading_eigenpairs(inner_products(scores) * op.factor, U.shape[1])
    return values, U @ turn, total * op.factor
