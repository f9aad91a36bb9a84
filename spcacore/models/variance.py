"""Variance explained by loadings that need not be orthogonal, and values re-fitted on a support."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Self, get_args

import numpy as np
from numpy.typing import DTypeLike

from .. import _core
from .._labels import reordered, row_labels
from .._limits import PENCIL_SCHUR, VARIANCE_LEFT
from .._messages import counted
from .._records import frozen_record
from .._types import AnyArray, Array, Definition, Index, Kind, Names, OperatorLike, Switch, Weights
from .._validation import check_bool, check_choice, real_array
from ..linalg.orthogonal import fix_sign, orthogonal_part, orthonormal, symmetrized, unit_columns
from ..linalg.scaling import eps_of
from ..operators.gram import largest_submatrix, shares_when_asked
from ..operators.inputs import as_problem
from ..operators.problem import Problem
from ..operators.transform import fitted_scores, used_variables
from ..readable import as_result, loadings_in, when_asked
from ..results import LoadingsResult, check_names
from ..solvers.refitting import leading_vector

VARIANCE_DEFINITIONS: tuple[str, ...] = get_args(Definition)
# The definition that goes with each objective
DEFINITIONS = {"variance": "cumulative", "least_squares": "regression"}


def explained_variance(
    X: OperatorLike, loadings: object, definition: Definition = "cumulative", *,
    ratio: bool = False,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
) -> Array:  # fmt: skip
    """Variance that each loading explains, by one of four definitions.

    With unit columns `v_t` of V and the covariance matrix A:

    * "cumulative": `q_t'A q_t`, where q_t is the normalized part of v_t orthogonal to the earlier
      loadings. The sum over t is the variance of the projection onto their span,
      `Tr(A V (V'V)^-1 V')`, at most the variance of r principal components. Shen and Huang call it the
      cumulative percentage, Mackey the additional variance.
    * "adjusted": `R_tt^2`, from the QR decomposition of the scores `A^(1/2) V = QR`. This is what a score
      adds to the earlier scores (Zou, Hastie and Tibshirani). It depends on the order.
    * "raw": `v_t'A v_t`. Variance that correlated components share is counted more than once.
    * "regression": what each score adds to a least squares regression of all variables on the earlier scores:
      `|A_t v_t|^2 / v_t'A_t v_t`, where A_t is the Schur complement of the earlier loadings. The sum is
      `Tr(A V (V'AV)^+ V'A)`, at most the variance of r principal components, and at least the cumulative one.
      It depends only on the span of V. This is Rao's redundancy index of the scores, and Merola's variance
      explained, which method "least_squares" of `sparse_pca` maximizes.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix or LinearOperator
        Data or, with ``kind="covariance"``, a symmetric matrix, as in `sparse_pca`.
    loadings : array-like of shape (p, r), result or fitted estimator
        The columns are normalized here; a zero column explains nothing.
    definition : {"cumulative", "adjusted", "raw", "regression"}, default "cumulative"
    ratio : bool, default False
        Return proportions of the total variance `Tr A`.
    kind, center, scale, sample_weight
        As in `sparse_pca`. Say them again for a result: ``scale=True`` if it was fitted to scaled data.

    Returns
    -------
    ndarray of shape (r,), float64
        In the units of A, that is, squared units of X.

    Raises
    ------
    ValueError
        For invalid input, or for `ratio` if only products with A are known.

    References
    ----------
    H. Shen and J. Z. Huang (2008). Sparse principal component analysis via regularized low rank
    matrix approximation. Journal of Multivariate Analysis 99, section 2.3. L. Mackey (2008).
    Deflation methods for sparse PCA, section 3. H. Zou, T. Hastie and R. Tibshirani (2006). Sparse
    principal component analysis. Journal of Computational and Graphical Statistics 15, section 3.4.
    C. R. Rao (1964). The use and interpretation of principal component analysis in applied research.
    Sankhya A 26, 329-358. G. M. Merola (2015). Least squares sparse principal component analysis: a
    backward elimination approach to attain large loadings. Australian & New Zealand Journal of Statistics
    57, 391-429.

    Examples
    --------
    >>> import spcacore
    >>> A = spcacore.datasets.load_pitprops().correlation
    >>> V = spcacore.sparse_pca(A, 2, cardinality=4, kind="covariance").loadings
    >>> for definition in ("cumulative", "adjusted", "raw", "regression"):
    ...     print(definition, spcacore.explained_variance(A, V, definition, kind="covariance").round(4))
    cumulative [2.9375 2.2801]
    adjusted [2.9375 2.0026]
    raw [2.9375 2.2801]
    regression [3.8434 2.1667]
    """
    check_choice(definition, "definition", VARIANCE_DEFINITIONS)
    problem = as_problem(X, kind, center, scale, sample_weight, definite=False)
    V = checked_loadings(loadings, problem.p, problem.names)
    given = real_array(loadings_in(as_result(loadings)), "loadings", ndim=2).dtype
    if check_bool(ratio, "ratio"):
        if problem.diagonal is None:
            raise ValueError("ratio=True needs the total variance, which an operator does not provide")
        if not problem.trace > 0:
            raise ValueError("ratio=True needs a positive total variance")
        return operator_variances(problem, V, definition, given) / problem.trace
    return problem.reported(operator_variances(problem, V, definition, given))


def checked_loadings(loadings: Any, p: int, names: Names, ndim: int | tuple[int, ...] = 2) -> Array:
    """Return loadings as float64 columns of unit norm or zero, in the order of the variables of X.

    `loadings` may be an array, a dataframe, a result or an estimator. `names` are those of the variables.
    """
    source = as_result(loadings)
    found = loadings_in(source)
    V = real_array(found, "loadings", ndim=ndim, labels=names).astype(np.float64)
    if found is not loadings:
        V = reordered(V, getattr(source, "names", None), names, "loadings")
    V = V.reshape(len(V), -1)
    if len(V) != p:
        raise ValueError(f"loadings have {counted(V.shape[0], 'row')} for {counted(p, 'variable')}")
    return unit_columns(V)


def operator_variances(
    problem: Problem, V: AnyArray, definition: str, given: DTypeLike = np.float64
) -> Array:
    """Return the variance that each loading explains, by a definition, in the operator's units.

    V has unit or zero columns. What is new of a loading counts only beyond rounding: the rounding of the
    operator's entries, or of the type `given` that the loadings had.
    """
    op = problem.operator
    used = used_variables(V)
    if len(used) == 0:
        return np.zeros(V.shape[1])
    whole, V = V, V[used]
    # Q: what each loading adds to the span of the earlier ones, normalized (V itself for "raw")
    if definition != "raw":
        V = orthonormal(V, max(eps_of(t) for t in (op.dtype, np.dtype(given))))
    Q = np.zeros(whole.shape)
    Q[used] = V
    # R_tt^2: v_t is c q_t plus earlier loadings, so this is c^2 times R_tt^2 of the scores of Q
    if definition == "adjusted":
        return (Q * whole).sum(axis=0) ** 2 * _adjusted(op, Q)
    if definition == "regression":
        return _by_regression(op, Q)
    # q_t'A q_t
    if op.by_passes and len(used) <= largest_submatrix(op):  # one pass over blocks
        A = op.submatrix(used).astype(np.float64)
        return np.asarray(((A @ V) * V).sum(axis=0))
    # One column at a time, since F v may have many entries
    out = np.zeros(V.shape[1])
    for t, (index, entries) in enumerate(nonzeros_of(Q)):
        if len(index):
            value = np.ascontiguousarray(entries, op.dtype)
            f = op.forward(index, value).astype(np.float64)
            out[t] = value @ f[index] if op.symmetric_form else f @ f / max(op.n - 1, 1)
    return out


def images_of(op: _core.Operator, V: AnyArray) -> Array:
    """Return F v, or A v if the operator is a matrix, for each column v of V, as rows.

    Only what the nonzeros of v multiply is read.
    """
    images = np.zeros((V.shape[1], op.m))
    for t, (index, entries) in enumerate(nonzeros_of(V)):
        if len(index):
            images[t] = op.forward(index, entries.astype(op.dtype))
    return images


def nonzeros_of(V: AnyArray) -> list[tuple[Index, AnyArray]]:
    """Return the positions and the values of the nonzeros of each column."""
    return [(index, v[index]) for v in V.T for index in v.nonzero()]


def _by_regression(op: _core.Operator, Q: AnyArray) -> Array:
    """Return what each score adds to a regression of all variables on the scores of the columns before.

    It is |A_t q|^2 / q'A_t q, where A_t = A - WW' and W has the A_s q_s / sqrt(q_s'A_s q_s) of the columns
    before.
    """
    basis, images, out = list[AnyArray](), list[Array](), np.zeros(Q.shape[1])
    for t, x in enumerate(Q.T):
        q = orthogonal_part(x, basis)
        if q is None:
            continue
        basis.append(q)
        # A_t q = Aq - W W'q
        index = np.flatnonzero(q)
        value = np.ascontiguousarray(q[index], op.dtype)
        w = op.apply(index, value).astype(np.float64)
        before = float(w[index] @ value)
        for b in images:
            w -= b * (b[index] @ value)
        left = float(w[index] @ value)
        if left > PENCIL_SCHUR.of(op.dtype) * abs(before):
            images.append(w / math.sqrt(left))
            out[t] = float(w @ w) / left
    return out


def _adjusted(op: _core.Operator, V: AnyArray) -> Array:
    """Return the squared diagonal of R in A^(1/2) V = QR: what each score adds to the earlier scores.

    It is 0 where a score lies in the span of the earlier ones.
    """
    images, out = images_of(op, V), np.zeros(V.shape[1])
    if not op.symmetric_form:
        Q = orthonormal(images.T, eps_of(op.dtype))
        return (Q.T * images).sum(axis=1) ** 2 / max(op.n - 1, 1)
    M = symmetrized(images @ V)  # R'R = V'AV, by elimination
    tiny = VARIANCE_LEFT.of(op.dtype) * M.diagonal() * len(M)
    for t in range(len(M)):
        if M[t, t] > tiny[t]:
            out[t] = M[t, t]
            M = M - np.outer(M[:, t], M[t]) / M[t, t]
    return out


def renormalize(
    X: OperatorLike,
    loadings: object,
    *,
    kind: Kind = "data",
    center: Switch = True,
    scale: Switch = False,
    sample_weight: Weights = None,
) -> AnyArray:
    """Keep the support of each loading, and re-fit its values.

    The new values are the leading eigenvector of A restricted to the support. This is known as variational
    renormalization; it never lowers `x'Ax`.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix or LinearOperator
        Data or, with ``kind="covariance"``, a symmetric matrix, as in `sparse_pca`.
    loadings : array-like of shape (p,) or (p, r), result or fitted estimator
        Each column is treated by itself; a zero column stays zero.
    kind, center, scale, sample_weight
        As in `sparse_pca`.

    Returns
    -------
    ndarray of the shape of `loadings`
        Unit columns, in the dtype of the solver. In each the entry of largest magnitude is positive.

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
    problem = as_problem(X, kind, center, scale, sample_weight, definite=False)
    op = problem.operator
    V = checked_loadings(loadings, problem.p, problem.names, (1, 2))
    out = np.zeros(V.shape, op.dtype)
    for t, (index, entries) in enumerate(nonzeros_of(V)):
        if len(index):
            value, _ = leading_vector(op, index, entries.astype(op.dtype))
            if not value.any():  # variables without covariance are best
                value = np.where(op.submatrix(index).any(axis=0), 0, entries)
                value = value / np.linalg.norm(value)
            out[index, t] = fix_sign(value)
    return out[:, 0] if np.ndim(loadings_in(as_result(loadings))) == 1 else out


# ---- loadings of any other program, with what they explain of X -----------------------------------------


@frozen_record(kw_only=True)
class VariancesResult(LoadingsResult):
    """Loadings of unit length, with what they explain of X and how X was read."""

    loadings: AnyArray
    explained_variance: Array
    explained_variance_ratio: Array | None
    total_variance: float | None
    cardinality: Index
    mean: AnyArray | None
    scale: AnyArray | None
    kind: str
    n_samples: int | None
    names: Names
    method: str
    given: tuple[str, ...] = ()
    scores: AnyArray | None = None

    @classmethod
    def of(cls, problem: Problem, V: Array, variances: Array, rows: Any = None, **more: Any) -> Self:
        """Return the result for loadings V that explain `variances`, in the operator's units.

        `rows` is the X to compute scores from, or None. `more` are the other fields of the class.
        """
        V, ratio = V.astype(problem.operator.dtype, copy=False), None
        if problem.diagonal is not None:
            trace = problem.trace
            ratio = variances / trace if trace > 0 else variances
        common: dict[str, Any] = {
            "loadings": V, "explained_variance": problem.reported(variances),
            "explained_variance_ratio": ratio, "total_variance": problem.total_variance,
            "cardinality": np.array([np.count_nonzero(v) for v in V.T], np.intp), "mean": problem.mean,
            "scale": problem.scale, "given": problem.given, "n_samples": problem.n_samples,
            "names": problem.names, "kind": problem.kind,
            "scores": None if rows is None else fitted_scores(rows, problem, V),
        }  # fmt: skip
        if hasattr(cls, "missing_entries"):
            common["missing_entries"] = problem.missing_entries
        if hasattr(cls, "dense_ratio"):
            common["dense_ratio"] = shares_when_asked(problem, V.shape[1])
        return cls(**common | more)


@frozen_record(kw_only=True)
class GivenLoadings(VariancesResult):
    """Loadings of another program and the variance that they explain, from `from_loadings`.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        At unit length, or zero, in the order and with the signs that were given.
    method : str
        The label that the caller gave.
    explained_variance, explained_variance_ratio, total_variance, cardinality, mean, scale, given, kind
        As in `SparsePCAResult`.
    n_samples, names, dense_ratio, scores
        As in `SparsePCAResult`.

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
    >>> result = spcacore.from_loadings(planted, X, label="planted")
    >>> result.method, result.cardinality.tolist(), result.transform(X).shape
    ('planted', [5, 5], (100, 2))
    """

    dense_ratio: Array | None = when_asked()


def from_loadings(
    loadings: object,
    X: OperatorLike,
    *,
    kind: Kind = "data",
    center: Switch = True,
    scale: Switch = False,
    sample_weight: Weights = None,
    names: Iterable[str] | None = None,
    label: str = "given",
) -> GivenLoadings:
    """Turn loadings of any other program into a result with variances, scores, summaries and pictures.

    Parameters
    ----------
    loadings : array-like of shape (p, r) or (p,), result or fitted estimator
        Columns of any length, orthogonal or not. They are normalized here, and keep their signs. If a
        dataframe has the names of the variables as its index, its rows are put in the order of the variables
        of X.
    X : array-like of shape (n, p), sparse matrix or LinearOperator
        What the loadings belong to: data or, with ``kind="covariance"``, a symmetric matrix, as in
        `sparse_pca`. Not copied.
    kind, center, scale, sample_weight
        How to read X, as in `sparse_pca`.
    names : sequence of p str, optional
        Names of the variables. Default: the names in X, else the index of `loadings` if that holds words.
    label : str, default "given"
        Where the loadings come from. It becomes the `method` of the result, which tables show.

    Returns
    -------
    GivenLoadings

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, shapes that do not match, or other names than in X.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    See Also
    --------
    compare : Several results side by side.

    References
    ----------
    H. Shen and J. Z. Huang (2008). Sparse principal component analysis via regularized low rank
    matrix approximation. Journal of Multivariate Analysis 99, section 2.3: the variance explained.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> props = spcacore.datasets.load_pitprops()
    >>> V = np.zeros((13, 1))
    >>> V[[0, 1]] = 2  # the sum of length and diameter, by judgment
    >>> result = spcacore.from_loadings(V, props.correlation, kind="covariance", names=props.names)
    >>> print(result.summary())
    GivenLoadings by given: 1 component of 13 variables, 15.0 % of the variance
    <BLANKLINE>
    component  nonzeros  variance     %  cumulative %  ordinary, cumulative %
    1                 2     1.954  15.0          15.0                    32.5
    <BLANKLINE>
    contributions, % of the sum of magnitudes
    1: topdiam 50.0, length 50.0
    """
    problem = as_problem(X, kind, center, scale, sample_weight, definite=False)
    if not isinstance(label, str):
        raise TypeError(f"label must be a string, not {label!r}")
    own = problem.names if names is None else check_names(names, problem.p)
    V = checked_loadings(loadings, problem.p, own, (1, 2))
    own = _names_of(loadings) if own is None else own
    variances = operator_variances(problem, V, "cumulative")
    return GivenLoadings.of(problem, V, variances, X, names=own, method=label)


def _names_of(loadings: Any) -> Names:
    """Return the names of the variables of a result, or the row labels of a dataframe if they are strings."""
    source = as_result(loadings)
    if loadings_in(source) is not loadings:
        return getattr(source, "names", None)
    index = row_labels(loadings)
    return tuple(index) if index is not None and all(isinstance(name, str) for name in index) else None
