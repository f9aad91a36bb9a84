"""Variance explained by loadings that need not be orthogonal, and values re-fitted on a support."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from .._limits import VARIANCE_LEFT
from .._messages import counted
from .._validation import check_bool, check_choice, real_array
from ..linalg.orthogonal import fix_sign, orthogonal_part, orthonormal, unit
from ..operators.inputs import as_problem
from ..operators.problem import Problem, warn_out_of_range
from ..solvers.refitting import leading_vector

VARIANCE_DEFINITIONS = ("cumulative", "adjusted", "raw")


def explained_variance(
    X: Any, loadings: Any, definition: str = "cumulative", *,
    ratio: bool = False,
    kind: str = "data", center: Any = True, scale: Any = False,
    n_features: int | None = None,
) -> NDArray[np.float64]:  # fmt: skip
    """Variance that each loading explains, in one of three definitions.

    With unit columns `v_t` of V and the covariance matrix A:

    * "cumulative": `q_t'A q_t`, where q_t is the normalized part of v_t orthogonal to the earlier
      loadings. The sum over t is the variance of the projection onto their span,
      `Tr(A V (V'V)^-1 V')`, at most that of as many principal components. Shen and Huang's
      cumulative percentage, Mackey's additional variance.
    * "adjusted": `R_tt^2`, from the QR decomposition of the scores `A^(1/2) V = QR`; what a score adds
      to the earlier scores (Zou, Hastie and Tibshirani). It depends on the order.
    * "raw": `v_t'A v_t`. Correlated components are counted more than once.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, LinearOperator or callable
        Data or, with ``kind="covariance"``, a symmetric matrix, as in `sparse_pca`.
    loadings : array-like of shape (p, r)
        Columns are normalized here; a zero column explains nothing.
    definition : {"cumulative", "adjusted", "raw"}, default "cumulative"
    ratio : bool, default False
        As proportions of the total variance `Tr A`.
    kind, center, scale, n_features
        As in `sparse_pca`.

    Returns
    -------
    ndarray of shape (r,), float64
        In the units of A, that is squared units of X.

    Raises
    ------
    ValueError
        For invalid input, or `ratio` where only products with A are known.

    References
    ----------
    H. Shen and J. Z. Huang (2008). Sparse principal component analysis via regularized low rank
    matrix approximation. Journal of Multivariate Analysis 99, section 2.3. L. Mackey (2008).
    Deflation methods for sparse PCA, section 3. H. Zou, T. Hastie and R. Tibshirani (2006). Sparse
    principal component analysis. Journal of Computational and Graphical Statistics 15, section 3.4.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> V = spcacore.sparse_pca(A, 2, cardinality=4, kind="covariance").loadings
    >>> for definition in ("cumulative", "adjusted", "raw"):
    ...     print(definition, spcacore.explained_variance(A, V, definition, kind="covariance").round(4))
    cumulative [2.9375 2.2801]
    adjusted [2.9375 2.0026]
    raw [2.9375 2.2801]
    """
    check_choice(definition, "definition", VARIANCE_DEFINITIONS)
    problem = as_problem(X, kind=kind, center=center, scale=scale, n_features=n_features, definite=False)
    V = checked_loadings(loadings, problem.p)
    if check_bool(ratio, "ratio"):
        if problem.diagonal is None:
            raise ValueError("ratio=True needs the total variance, which an operator does not tell")
        total = float(problem.diagonal.sum())
        if not total > 0:
            raise ValueError("ratio=True needs a positive total variance")
        return operator_variances(problem, V, definition) / total
    inside = operator_variances(problem, V, definition)
    variances = problem.in_units(inside)
    warn_out_of_range(inside, variances, stacklevel=2)
    return variances


def checked_loadings(loadings: Any, p: int, ndim: int | tuple[int, ...] = 2) -> NDArray[np.float64]:
    """As float64, with columns of unit norm, or zero."""
    V = real_array(loadings, "loadings", ndim=ndim).astype(np.float64)
    one = V.ndim == 1
    V = V[:, None] if one else V
    if V.shape[0] != p:
        raise ValueError(f"loadings have {counted(V.shape[0], 'row')} for {counted(p, 'variable')}")
    for t in range(V.shape[1]):
        v = unit(V[:, t])
        V[:, t] = 0 if v is None else v
    return V[:, 0] if one else V


def operator_variances(problem: Problem, V: NDArray[Any], definition: str) -> NDArray[np.float64]:
    """The variances in the operator's own units; V has unit or zero columns."""
    op = problem.operator
    if definition == "adjusted":
        return _adjusted(op, V)
    used = np.flatnonzero(V.any(axis=1))
    if len(used) == 0:
        return np.zeros(V.shape[1])
    V = V[used]
    if definition == "cumulative":
        V = orthonormal(V)
    out = np.zeros(V.shape[1])
    for t, v in enumerate(V.T):
        index = used[v != 0]
        if len(index):
            value = v[v != 0].astype(op.dtype)
            f = op.image(index, value).astype(np.float64)
            out[t] = value @ f[index] if op.covariance else f @ f / max(op.n - 1, 1)
    return out


def _adjusted(op: _core.Operator, V: NDArray[Any]) -> NDArray[np.float64]:
    """Squared diagonal of R in A^(1/2) V = QR; 0 where a score lies in the span of the earlier ones."""
    out = np.zeros(V.shape[1])
    images = np.zeros((V.shape[1], op.m))
    for t, v in enumerate(V.T):
        index = np.flatnonzero(v)
        if len(index):
            images[t] = op.image(index, v[index].astype(op.dtype))
    if not op.covariance:
        basis: list[NDArray[Any]] = []
        for t, f in enumerate(images):
            q = orthogonal_part(f, basis)
            if q is not None:
                out[t] = (q @ f) ** 2 / max(op.n - 1, 1)
                basis.append(q)
        return out
    M = images @ V  # Cholesky elimination of V'AV
    M = (M + M.T) / 2
    rounding = VARIANCE_LEFT.of(op.dtype)
    tiny = rounding * M.diagonal() * len(M)
    for t in range(len(M)):
        if M[t, t] > tiny[t]:
            out[t] = M[t, t]
            M = M - np.outer(M[:, t], M[t]) / M[t, t]
    return out


def renormalize(
    X: Any,
    loadings: Any,
    *,
    kind: str = "data",
    center: Any = True,
    scale: Any = False,
    n_features: int | None = None,
) -> NDArray[Any]:
    """Keep each loading's support and replace its values by the leading eigenvector of A there.

    Variational renormalization; it never lowers `x'Ax`.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, LinearOperator or callable
        Data or, with ``kind="covariance"``, a symmetric matrix, as in `sparse_pca`.
    loadings : array-like of shape (p,) or (p, r)
        Columns are treated one by one; a zero column stays zero.
    kind, center, scale, n_features
        As in `sparse_pca`.

    Returns
    -------
    ndarray of the shape of `loadings`
        Unit columns, in each the entry of largest magnitude positive, in the dtype of the solver.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, an asymmetric covariance, or shapes that do not match.

    References
    ----------
    B. Moghaddam, Y. Weiss and S. Avidan (2006). Spectral bounds for sparse PCA: exact and greedy
    algorithms. Advances in Neural Information Processing Systems 18, section 2.

    Examples
    --------
    >>> import spcacore
    >>> spcacore.renormalize([[2.0, 1.0], [1.0, 2.0]], [0.6, 0.8], kind="covariance").round(4)
    array([0.7071, 0.7071])
    """
    problem = as_problem(X, kind=kind, center=center, scale=scale, n_features=n_features, definite=False)
    op = problem.operator
    V = checked_loadings(loadings, problem.p, (1, 2))
    one = V.ndim == 1
    V = V[:, None] if one else V
    out = np.zeros(V.shape, op.dtype)
    for t, v in enumerate(V.T):
        index = np.flatnonzero(v)
        if len(index):
            value, _ = leading_vector(op, index, v[index].astype(op.dtype))
            out[index, t] = fix_sign(value)
    return out[:, 0] if one else out
