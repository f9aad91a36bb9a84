"""Sparse canonical correlation: few variables of X and few of Y whose combinations go together.

One pair after another, by penalized matrix decomposition or as a generalized eigenproblem, both in
cca_alternation.py.
"""

from __future__ import annotations

import math
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from .._limits import CCA_ROUNDS, CCA_TOL
from .._messages import counted, few, warn
from .._records import NO_PANDAS, filled, frozen_record
from .._types import AnyArray, Array, Index, Mask, MatrixLike, Names, Weights
from .._validation import (
    LARGEST,
    aligned,
    check_bool,
    check_choice,
    default_cardinality,
    framed,
    integer,
)
from ..choice import Choice
from ..linalg.scaling import beyond_range
from ..operators.transform import scores
from ..progress import Callback, check_callback
from ..readable import HasLoadings, Side
from ..solvers.base import as_ended, found_in_turn, progress_hook
from ..solvers.certificates import OptimalityBound
from ..supports.admissible import knowledge
from .canonical_sides import (
    Pair,
    both_sides,
    l1_bound_of,
    named,
    one_of_each,
    pair_of,
    ridge_of,
    speaking_of_y,
)
from .cca_alternation import Alternation, PenalizedDecomposition
from .eigen import DEFLATIONS
from .pencil import common_dtype, refuse_many

if TYPE_CHECKING:
    from pandas import DataFrame


@filled(
    {
        "example": """\
Examples
--------
>>> import numpy as np, spcacore
>>> rng = np.random.default_rng(0)
>>> X, Y = rng.standard_normal((60, 20)), rng.standard_normal((60, 10))
>>> X[:, :3] += Y[:, :1]
>>> result = spcacore.sparse_cca(X, Y, l1_bound=1.5)""",
        "no_pandas": NO_PANDAS,
    }
)
@frozen_record
class SparseCCAResult(HasLoadings):
    """Pairs of sparse canonical vectors.

    Attributes
    ----------
    loadings_x, loadings_y : ndarray of shape (p, r) and (q, r)
        Columns of unit 2-norm, for the centered and scaled variables. In each of X the entry of largest
        magnitude is positive. Columns of Y have the sign that makes the covariance of the scores positive.
    scores_x, scores_y : ndarray of shape (n, r)
        The centered and scaled data times the loadings.
    correlations : ndarray of shape (r,)
        The correlation of the two scores of each pair.
    strengths : ndarray of shape (r,)
        The objective that was maximized. For "pmd" it is the covariance `u'Cv`; for "generalized" it is
        `u'Cv` over `sqrt(u'B_x u v'B_y v)`. The earlier pairs are removed from C (and, with deflation
        "generalized", from B).
    cardinality_x, cardinality_y : ndarray of shape (r,), int
    mean_x, mean_y, scale_x, scale_y : ndarray of shape (p,) or (q,), or None
        The mean is subtracted from each column, which is then divided by the scale.
    n_iter : ndarray of shape (r,), int
    converged : ndarray of shape (r,), bool
    method : {"pmd", "generalized"}
    deflation : str
    names_x, names_y : tuple of str or None
        Names of the variables, if the input had any.
    upper_bound : ndarray of shape (r,) or None
        With ``certify=True``: no weights of these cardinalities have a larger strength, once the earlier
        pairs are removed.

    {example}
    >>> result.loadings_x.shape, int(abs(result.loadings_y[:, 0]).argmax())
    ((20, 1), 0)
    """

    loadings_x: AnyArray
    loadings_y: AnyArray
    scores_x: AnyArray
    scores_y: AnyArray
    correlations: Array
    strengths: Array
    cardinality_x: Index
    cardinality_y: Index
    mean_x: AnyArray | None
    mean_y: AnyArray | None
    scale_x: AnyArray | None
    scale_y: AnyArray | None
    names_x: Names
    names_y: Names
    n_iter: Index
    converged: Mask
    method: str
    deflation: str
    upper_bound: Array | None = None

    @property
    def n_components(self) -> int:
        """Number of pairs."""
        return self.loadings_x.shape[1]

    def transform(self, X: MatrixLike, Y: MatrixLike) -> tuple[AnyArray, AnyArray]:
        """Scores of new rows of both sides.

        Parameters
        ----------
        X, Y : array-like or sparse matrix of shape (m, p) and (m, q)

        Returns
        -------
        tuple of ndarray of shape (m, r); for dataframes, dataframes with the indices of X and Y

        {example}
        >>> scores_x, scores_y = result.transform(X[:5], Y[:5])
        >>> scores_x.shape, scores_y.shape
        ((5, 1), (5, 1))
        """
        X_, Y_ = aligned(X, self.names_x), aligned(Y, self.names_y, "Y")
        return (
            framed(X, scores(X_, self.loadings_x, self.mean_x, self.scale_x)),
            framed(Y, speaking_of_y(lambda: scores(Y_, self.loadings_y, self.mean_y, self.scale_y))),
        )

    def to_frame(self) -> tuple[DataFrame, DataFrame]:
        """The loadings of each side as a pandas DataFrame, with the names of the variables.

        Returns
        -------
        tuple of pandas.DataFrame of shape (p, r) and (q, r)
            The indices have the names, or x1, x2, ...; the columns are component_1, component_2, ...

        {no_pandas}

        {example}
        >>> x_frame, y_frame = result.to_frame()
        >>> x_frame.shape, y_frame.shape
        ((20, 1), (10, 1))
        """
        x, y = (side.frame() for side in self._sides())
        return x, y

    def _sides(self) -> list[Side]:
        return [Side("X", self.loadings_x, self.names_x), Side("Y", self.loadings_y, self.names_y)]

    def _facts(self) -> list[str]:
        pairs = zip(self.cardinality_x.tolist(), self.cardinality_y.tolist(), strict=True)
        return [
            f"method={self.method!r}", f"p={len(self.loadings_x)}", f"q={len(self.loadings_y)}",
            counted(self.n_components, "pair"), f"cardinality={few(pairs)}",
            f"correlations={few(self.correlations.round(3).tolist())}",
        ]  # fmt: skip


def sparse_cca(
    X: MatrixLike, Y: MatrixLike, n_components: int = 1,
    cardinality: int | tuple[int, int] | None = None, *,
    l1_bound: float | tuple[float, float] | None = None,
    method: Literal["pmd", "generalized"] | None = None, ridge: float | tuple[float, float] = 0.0,
    choice: Choice | tuple[Choice | None, Choice | None] | None = None,
    deflation: str | None = None, certify: bool = False,
    max_iter: int = 1000, scale: bool = True, sample_weight: Weights = None,
    callback: Callback | None = None,
) -> SparseCCAResult:  # fmt: skip
    """Sparse canonical correlation analysis.

    "pmd" searches `max u'X'Yv` over u and v of unit 2-norm with `||u||_1 <= c_x` and `||v||_1 <= c_y`.
    "generalized" searches `max u'X'Yv / sqrt(u'B_x u v'B_y v)` over u and v with at most k_x and k_y
    nonzeros, with the covariances of both sides, to which a ridge may be added. The columns are centered. No
    product of X and Y is formed as a matrix, nor, for more than 1024 variables, a covariance, unless a side
    is in blocks of rows.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, RowBlocks or dask array
        CSR and CSC matrices are centered implicitly; dense data are copied once. float32 stays float32. If
        either side is in blocks of rows, both are read in blocks, and X'Y is formed (p q at most 2^27);
        "generalized" also forms both covariances (at most 16,384 variables). The blocks of the two need not
        match.
    Y : array-like of shape (n, q), sparse matrix, RowBlocks or dask array
    n_components : int, default 1
        r, in [1, min(n, p, q)].
    cardinality : int or pair of ints, optional
        For "generalized": k_x in [1, p] and k_y in [1, q]; one number for both, or ``(k_x, k_y)``. Default
        with that method: the square roots of p and q, rounded up.
    l1_bound : float or pair of floats, optional
        For "pmd": c_x in [1, sqrt(p)] and c_y in [1, sqrt(q)]. Default: the l1 norms of unit vectors with as
        many equal entries as the square roots of p and q, rounded up. `sparse_cca_permutation` chooses among
        several bounds.
    method : {"pmd", "generalized"}, optional
        Default: "generalized" if there is a `cardinality`, else "pmd".
    ridge : float or pair of floats, default 0
        For "generalized": this multiple of the mean diagonal entry of a covariance is added to its diagonal.
    choice : Choice or pair of Choices, optional
        What you know about the variables, as in ``(Choice(exclude=[0]), Choice(signs=1))``; None means
        nothing. An l1 bound does not count the included variables, and applies to the sum of the norms of
        groups.
    deflation : str, optional
        How a pair is removed from `C = X'Y`, in the metrics of the sides: "hotelling", "projection", "schur",
        "orthogonalized_hotelling", "orthogonalized_projection", "orthogonalized_schur" or, for method
        "generalized" only, "generalized", which maximizes what a pair adds: u and v are measured without
        their parts in the span of the earlier ones. Default: "hotelling" for "pmd", "projection" for
        "generalized".
    certify : bool, default False
        For "generalized": compute an upper bound on each strength, see `sparse_cca_bound`, here with the
        earlier pairs removed. Both sides together may have up to 500 variables. Not with deflation
        "generalized".
    max_iter : int, default 1000
        Iterations for each pair with "pmd"; with "generalized" the number of turns, at most 100.
    scale : bool, default True
        Divide each column by its standard deviation.
    sample_weight : array-like of shape (n,), optional
        How many samples each row stands for, at least 0: the pairs are the same as if each row were repeated
        that often. The sum must be above 1. `scores_x` and `scores_y` have one row for each row of X.
    callback : callable or True, optional
        Called with a `Progress` after each iteration, and with the correlation once a pair is found.
        Raising StopIteration ends the search early, see `Progress`.

    Returns
    -------
    SparseCCAResult
        `loadings_x` (p, r), `loadings_y` (q, r), `scores_x`, `scores_y` (n, r), `correlations` (r,), ...
        Fewer pairs, and a RuntimeWarning, where nothing is left to correlate.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, sides with different numbers of rows, fewer than two rows, or an
        option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    D. M. Witten, R. Tibshirani and T. Hastie (2009). A penalized matrix decomposition, with applications to
    sparse principal components and canonical correlation analysis. Biostatistics 10(3), 515-534, section 3.

    K. M. Tan, Z. Wang, H. Liu and T. Zhang (2018). Sparse generalized eigenvalue problem: optimal
    statistical rates via truncated Rayleigh flow. Journal of the Royal Statistical Society B 80, 1057-1086,
    section 2.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> rng = np.random.default_rng(0)
    >>> X, Y = rng.standard_normal((200, 300)), rng.standard_normal((200, 200))
    >>> common = rng.standard_normal(200)
    >>> X[:, :4] += common[:, None]
    >>> Y[:, 5:8] -= common[:, None]
    >>> result = spcacore.sparse_cca(X, Y, 1, (4, 3))
    >>> result
    SparseCCAResult(method='generalized', p=300, q=200, 1 pair, cardinality=[(4, 3)], correlations=[0.783])
    >>> np.flatnonzero(result.loadings_x), np.flatnonzero(result.loadings_y)
    (array([0, 1, 2, 3]), array([5, 6, 7]))
    """
    # Options and sides
    if method is None:
        method = "pmd" if cardinality is None else "generalized"
    check_choice(method, "method", ("pmd", "generalized"))
    check_bool(scale, "scale")
    choices = pair_of(choice, "choice")
    known = tuple(named(side, partial(knowledge, one)) for side, one in zip("xy", choices, strict=True))
    if method == "pmd" and any(one is not None and one.count != "groups" for one in choices):
        raise ValueError("count='variables' says what a cardinality counts; 'pmd' takes l1_bound")
    x, y = sides = both_sides(X, Y, scale, known, sample_weight)
    if check_bool(certify, "certify"):
        if method == "pmd":
            raise ValueError("certify=True requires method='generalized'")
        refuse_many(x.p + y.p)
    r = integer(n_components, "n_components", 1, min(x.n, x.p, y.p))
    max_iter = integer(max_iter, "max_iter", 1, LARGEST)
    hook = check_callback(callback)
    if deflation is None:
        deflation = "hotelling" if method == "pmd" else "projection"
    solver = _solver(sides, method, l1_bound, cardinality, ridge, deflation, certify, max_iter)
    # Pairs
    found: list[Pair] = found_in_turn(
        r, lambda _, report: solver.next(report), hook, "pair", attrgetter("correlation")
    )
    if not found:
        warn("X and Y have nothing in common")
    # Loadings of unit length and scores of each side; strengths in the caller's units
    dtype, each = common_dtype(x, y), dict[str, Any]()
    for letter, side, vectors in (("x", x, [f.u for f in found]), ("y", y, [f.v for f in found])):
        unit = np.array([w / np.linalg.norm(w) + 0.0 for w in vectors])
        loadings = unit.reshape(len(found), side.p).T.astype(dtype, order="F")
        one = side.problem
        own = {
            "loadings": loadings, "scores": scores(side.rows, loadings, one.mean, one.scale),
            "cardinality": np.count_nonzero(loadings, axis=0), "mean": one.mean, "scale": one.scale,
            "names": one.names,
        }  # fmt: skip
        each |= {f"{name}_{letter}": value for name, value in own.items()}
    strengths = np.array([f.strength for f in found])
    if method == "pmd":
        with beyond_range():
            inside, strengths = strengths, np.ldexp(strengths, x.exponent + y.exponent)
        if not np.isfinite(strengths).all() or ((strengths == 0) & (inside > 0)).any():
            warn("strengths are beyond the number range, and given as inf or 0: rescale X or Y")
    return SparseCCAResult(
        **each, correlations=np.array([f.correlation for f in found]), strengths=strengths,
        **as_ended(found), method=method, deflation=deflation,
        upper_bound=np.array([f.bound for f in found]) if certify else None,
    )  # fmt: skip


_SPARSITY = {"pmd": "l1_bound", "generalized": "cardinality"}


def _solver(
    sides: tuple[Any, Any], method: str, l1_bound: Any, cardinality: Any, ridge: Any, deflation: str,
    certify: bool, max_iter: int,
) -> PenalizedDecomposition | Alternation:  # fmt: skip
    """Return what finds one pair after another, for the options of a method, which must go together."""
    x, y = sides
    given = {"l1_bound": l1_bound, "cardinality": cardinality}
    for elsewhere, name in _SPARSITY.items():
        if elsewhere != method and given[name] is not None:
            raise ValueError(
                f"{name} is for method={elsewhere!r}; method={method!r} takes {_SPARSITY[method]}"
            )
    usual = default_cardinality(x.p), default_cardinality(y.p)
    removal = DEFLATIONS[check_choice(deflation, "deflation", DEFLATIONS)]
    if removal.quotient and method == "pmd":
        raise ValueError("deflation='generalized' requires method='generalized'")
    if removal.quotient and certify:
        raise ValueError("certify=True cannot be combined with deflation='generalized', whose metric changes")
    for side in sides:
        if removal.quotient and side.supports.signs is not None:
            raise ValueError(
                f"signs of {side.name} cannot be combined with deflation='generalized': leave one out"
            )
    ridges = one_of_each(ridge, "ridge", ridge_of, sides)
    if method == "pmd":
        if any(ridges):
            raise ValueError("ridge requires method='generalized'")
        l1_bound = (math.sqrt(usual[0]), math.sqrt(usual[1])) if l1_bound is None else l1_bound
        return PenalizedDecomposition(
            x, y, one_of_each(l1_bound, "l1_bound", l1_bound_of, sides), max_iter, CCA_TOL, removal
        )
    cardinality = usual if cardinality is None else cardinality
    counts = one_of_each(cardinality, "cardinality", lambda v, name, s: s.count(v, name), sides)
    return Alternation(x, y, counts, ridges, min(max_iter, CCA_ROUNDS), CCA_TOL, removal, certify)


def sparse_cca_bound(
    X: MatrixLike,
    Y: MatrixLike,
    cardinality: int | ArrayLike,
    *,
    ridge: float | ArrayLike = 0.0,
    node_limit: int = 2000,
    scale: bool = True,
    callback: Callback | None = None,
) -> OptimalityBound:
    """An upper bound on the correlation of combinations of k_x variables of X and k_y of Y.

    The bound is on `u'X'Yv / sqrt(u'B_x u v'B_y v)`, which `sparse_cca` with method "generalized" maximizes;
    B_x and B_y are the covariances of both sides, with the ridge. It is the smallest of the bounds of
    `sparse_eigen_bound`. All of these except "spectral" need covariances of full rank and so, without a
    ridge, fewer variables than rows.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, RowBlocks or dask array
    Y : array-like of shape (n, q), sparse matrix, RowBlocks or dask array
    cardinality : int or pair of ints
        k_x in [1, p] and k_y in [1, q].
    ridge : float or pair of floats, default 0
        This multiple of the mean diagonal entry of a covariance is added to its diagonal.
    node_limit : int, default 2000
        Nodes of each search tree; there are at most five trees.
    scale : bool, default True
        Divide each column by its standard deviation; this matters only with a ridge.
    callback : callable or True, optional
        As in `sparse_eigen_bound`.

    Returns
    -------
    OptimalityBound
        `upper_bound`, `which` and `bounds`; 0 where a side is constant.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, sides with different numbers of rows, fewer than two rows, more than
        500 variables of both sides, or an option out of range.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    W. Dinkelbach (1967). On nonlinear fractional programming. Management Science 13, 492-498.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> rng = np.random.default_rng(2)
    >>> X, Y = rng.standard_normal((100, 20)), rng.standard_normal((100, 10))
    >>> Y[:, :2] += X[:, :2]
    >>> best = spcacore.sparse_cca_bound(X, Y, (2, 2))
    >>> found = spcacore.sparse_cca(X, Y, method="generalized", cardinality=(2, 2))
    >>> round(best.upper_bound, 4), found.correlations.round(4)
    (0.7146, array([0.7146]))
    """
    check_bool(scale, "scale")
    x, y = sides = both_sides(X, Y, scale)
    counts = one_of_each(cardinality, "cardinality", lambda v, name, s: integer(v, name, 1, s.p), sides)
    ridges = one_of_each(ridge, "ridge", ridge_of, sides)
    nodes = integer(node_limit, "node_limit", 1)
    hook = progress_hook(callback)
    refuse_many(x.p + y.p)
    solver = Alternation(x, y, counts, ridges, 100, 1e-10)
    return OptimalityBound.smallest(solver.bounds(nodes, hook), hook=hook)
