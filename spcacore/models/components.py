"""Several sparse components by any solver and any deflation."""

from __future__ import annotations

import math
from dataclasses import field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._asked import as_method, sparsity_asked
from .._limits import ACROSS_EXCESS
from .._records import frozen_record, replaced
from .._types import (
    AnyArray,
    Array,
    Bounded,
    Deflation,
    Index,
    Kind,
    Mask,
    MethodName,
    OperatorLike,
    Support,
    Switch,
    Weights,
)
from .._validation import integer
from ..choice import Choice, Explained, Total
from ..linalg.scaling import eps_of
from ..methods import Method
from ..operators.gram import formed, is_rounding
from ..operators.inputs import as_fitted
from ..operators.problem import Problem, Screening
from ..progress import Callback, check_callback
from ..readable import when_asked
from ..solvers.base import as_ended, hook_of_component
from ..solvers.solution import Solution, Tally
from ..solvers.table import SOLVERS
from .alternation import check_sparsities, make_solver, prepare, problem_of, search
from .joint_search import as_matrix, pairs_of
from .joint_supports import bounds_together
from .request import Request
from .variance import DEFINITIONS, VariancesResult, nonzeros_of, operator_variances


@frozen_record(kw_only=True)
class SparsePCAResult(VariancesResult):
    """Sparse principal components, in the order in which they were found.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        A column of unit length for each component. In each column the entry of largest magnitude is positive.
    explained_variance : ndarray of shape (r,)
        Additional variance of each component given the earlier ones: definition "cumulative" of the function
        `explained_variance`, or "regression" with method "least_squares". The sum is the variance that
        the components explain together.
    explained_variance_ratio : ndarray of shape (r,) or None
        The same as a proportion of the total variance. None if the total is unknown, because X is known only
        by its products.
    total_variance : float or None
        Trace of the covariance matrix.
    cardinality : ndarray of shape (r,), int
        Number of nonzeros of each loading.
    mean, scale : ndarray of shape (p,) or None
        What was subtracted from each column, and what then divided it. None if not applied.
    given : tuple of str
        Which of "center" and "scale" were vectors of the caller, so that `mean` or `scale` repeats them.
    n_iter : ndarray of shape (r,), int
    n_starts, n_ends, n_best : ndarray of shape (r,), int
        How many starts the search of each component made, how many of their runs it carried to their ends,
        and how many of these ended at the best value, to a millionth. If only one of many did, more starts
        (`n_starts=`) may find a better component; `summary()` says so. 1, 1 and 1 where the method has one
        start, and of components that were found together or changed by ``refine=True``.
    converged : ndarray of shape (r,), bool
    upper_bound : ndarray of shape (r,) or None
        With ``certify=True``: no loading of the cardinality asked for (of its own, where none was asked)
        has more variance in the deflated matrix; with deflation "generalized", more additional variance.
        Compare by `gap`: `explained_variance` may be more than the bound, as it is of the whole matrix.
        Where branch and bound ends, it is the variance that was found, as the precision of X rounds it (of
        float32 by a few millionths). `optimality_bound` adds what rounding may hide.
    gap : ndarray of shape (r,) or None
        How far each component may be below its upper bound, as a proportion of the bound. 0 is a proof.
    method, deflation, kind : str
    n_samples : int or None
        None for a covariance.
    missing_entries : int
        How many entries of X were NaN.
    names : tuple of str or None
        Names of the variables, if the input had any.
    screening : Screening
        How much of the data was read.
    options : record
        The other options of the call, checked, which `extend` uses again.
    dense_ratio : ndarray of shape (r,) or None
        Shares of the variance of r ordinary principal components. None if they would take long to compute.
    joint_bound : float or None
        With ``certify="jointly"``, or for a common support by branch and bound: no such loadings explain
        more variance together.
    joint_gap : float or None
        How far the sum of `explained_variance` is below `joint_bound`, as a proportion of the bound.
    scores : ndarray of shape (n, r) or None
        Scores of the fitted data, as `transform` gives them; missing entries count as the mean. None for a
        covariance, for results along a path, and for rows in blocks, which would have to be read again.

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(100, 50, cardinality=5, rng=0)
    >>> result = spcacore.sparse_pca(X, 2, cardinality=5, certify=True)
    >>> result.loadings.shape, result.scores.shape, result.cardinality.tolist()
    ((50, 2), (100, 2), [5, 5])
    >>> bool((result.gap < 0.001).all())  # no five variables give 0.1 % more variance
    True
    """

    n_iter: Index
    converged: Mask
    deflation: str
    screening: Screening
    options: Request = field(repr=False)
    upper_bound: Array | None = None
    gap: Array | None = None
    dense_ratio: Any = when_asked()
    joint_bound: float | None = None
    joint_gap: float | None = None
    missing_entries: int = 0
    n_starts: Index
    n_ends: Index
    n_best: Index

    def extend(
        self,
        X: OperatorLike,
        more: int,
        cardinality: float | ArrayLike | Explained | None = None,
        *,
        callback: Callback | None = None,
    ) -> SparsePCAResult:
        """Add components without computing the first ones again.

        The result is the same as by one call for all components.

        Parameters
        ----------
        X : the matrix that this result was computed from
        more : int
            Number of components to add.
        cardinality : number, sequence of `more` numbers or Explained, optional
            Of the new components; for a method that takes an l1 bound or a penalty, this. Default: the
            earlier one, if it was one number.
        callback : callable or True, optional
            As in `sparse_pca`.

        Returns
        -------
        SparsePCAResult

        Examples
        --------
        >>> import spcacore
        >>> A = spcacore.datasets.load_pitprops().correlation
        >>> result = spcacore.sparse_pca(A, 2, cardinality=4, kind="covariance")
        >>> result.extend(A, 1, 3).cardinality.tolist()
        [4, 4, 3]
        """
        X = as_fitted(X, self.kind, self.names)
        # X and the options must be those of the result
        request = self.options
        if request.attempts:
            raise ValueError(
                "refined loadings depend on one another: call sparse_pca for all of them at once"
            )
        problem = problem_of(X, request)
        hook = check_callback(callback)
        before, p = self.n_components, len(self.loadings)
        if problem.p != p or problem.n_samples != self.n_samples:
            raise ValueError(
                f"X is {problem.n_samples} x {problem.p}, samples by variables; this result came from "
                f"{self.n_samples} x {p}"
            )
        if request.together:
            raise ValueError("the supports were chosen together: call sparse_pca for all components at once")
        if getattr(request.method, "block", False):
            raise ValueError("block=True found all components at once; call sparse_pca for more of them")
        # How sparse the new components are
        more = integer(more, "more", 1, problem.most_components - before)
        earlier = request.sparsity[:before]
        if cardinality is None:
            if len(set(earlier)) != 1:
                raise ValueError(
                    f"{request.method.sparsity} must be given: the earlier components have different ones, "
                    "or none is left"
                )
            cardinality = earlier[0]
        request.refuse_sparsity(cardinality)
        later = check_sparsities(request.solver, cardinality, more, problem)
        request = replaced(request, sparsity=earlier + later, total_share=None)
        # The search, which begins after the known components
        given = np.asarray(self.loadings, problem.operator.dtype)
        counts = (one.tolist() for one in (self.n_starts, self.n_ends, self.n_best))
        known = [
            Solution(index, entries, 0.0, n_iter, converged, tally=Tally(*runs))
            for (index, entries), n_iter, converged, *runs in zip(
                nonzeros_of(given), self.n_iter.tolist(), self.converged.tolist(), *counts, strict=True
            )
        ]
        solver = make_solver(problem, request)
        problem = formed(problem, hook_of_component(hook, before, before + more))
        found = search(problem, solver, request, known, before + more, hook)
        return components_result(problem, found, request, X)

    def _facts(self) -> list[str]:
        return [f"method={self.method!r}", f"deflation={self.deflation!r}", *self._sizes(), *self._share()]


def sparse_pca(
    X: OperatorLike, n_components: int | float,
    cardinality: int | ArrayLike | Explained | Total | None = None, *,
    method: MethodName | Method = "tpower", choice: Choice | None = None, deflation: Deflation | None = None,
    support: Support = "free",
    refine: bool | int = False, certify: bool | float | Bounded = False,
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    callback: Callback | None = None,
) -> SparsePCAResult:  # fmt: skip
    """Sparse principal components: unit loadings with few nonzeros and large variance.

    Each component maximizes `x'Ax` subject to `||x|| = 1` and a limit on its nonzeros. `A` is the covariance
    matrix from which a deflation has removed the earlier components. With method "least_squares" a
    component maximizes `x'A^2 x / x'Ax` instead. The data are neither copied nor changed: centering, scaling
    and deflation are implicit.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix or LinearOperator
        Data, one row per sample. With ``kind="covariance"``, a symmetric positive semidefinite (p, p) matrix
        (covariance, correlation or Gram), or a LinearOperator; for at most 256 variables the matrix is
        formed from an operator by p products. float32 and float64 arrays in C or Fortran order, memory maps,
        and CSR and CSC matrices are not copied; float32 stays float32. Dataframes supply the names of the
        variables. Dask arrays are processed where their blocks are stored; `row_blocks` does the same for
        files.
    n_components : int or float
        An int r in [1, min(n, p)]. Or a share of the total variance between 0 and 1: the call then finds as
        many components as are needed to explain this share together, by the definition that matches the
        objective (see the function `explained_variance`).
    cardinality : int, sequence of r ints, Explained or Total, optional
        The number of nonzeros: one for all components, or one for each. ``Explained(share)``: as many as each
        needs to explain this share of what an ordinary component explains. ``Total(count)``: the number of
        nonzeros of all loadings together. Default: the square root of the number of variables, rounded up.
        Methods that take an l1 bound or a penalty instead have it in their record, as in ``method=PMD(2.5)``.
    method : str or record of a method, default "tpower"
        The name of a method, for its defaults, or a record with its options, as in ``TPower(n_starts=20)``.
        "tpower" (`TPower`): truncated power iteration. "greedy" (`Greedy`): adds one variable at a time.
        "branch_and_bound" (`BranchAndBound`): the optimum of each component, one after another; its limits
        hold for each component (with support "common", for all together). "dspca" (`DSPCA`): the semidefinite
        relaxation, for up to 2000 variables. "gpower" (`GPower`): the generalized power method, for a
        penalty. "pmd" (`PMD`): penalized matrix decomposition, for an l1 bound. "scotlass" (`SCoTLASS`): the
        same, with loadings orthogonal to the earlier ones except under deflation "generalized".
        "least_squares" (`LeastSquares`): maximizes `x'A^2 x / x'Ax`, the variance of all variables that a
        regression on the score explains, instead of `x'Ax`. On a deflated matrix this is the variance of the
        deflated variables; with deflation "schur", it is what the score adds to the earlier ones.
        "thresholding" (`Thresholding`): the leading eigenvector, truncated; a baseline for the others.
    choice : Choice, optional
        What you know about the variables: which ones every component must have, which none may have, which go
        together, and their signs. See the guide on choice.
    deflation : str, optional
        Default: "projection", or "schur" for method "least_squares". One of "hotelling", "projection",
        "schur", "orthogonalized_hotelling", "orthogonalized_projection", "orthogonalized_schur",
        "generalized" and "naive"; see `deflate`. "generalized" maximizes the additional variance directly:
        `max x'Ax` subject to `x'Bx = 1`, where `B` is the projection away from the earlier loadings. An l1
        bound then holds for x divided by its length, and the l1 penalty of "gpower" applies to this x.
        "thresholding" chooses supports as with "projection", and only fits the values to this problem. Method
        "least_squares" needs a deflation that leaves no negative variances, so neither "hotelling" nor
        "orthogonalized_hotelling". "naive" keeps the residual `X - d u x'` of "pmd"; it differs from
        "projection" where u has a bound or entries are missing. "schur" with ``renormalize=False`` keeps the
        scores orthogonal. Two constraints take the place of a deflation: "orthogonal", loadings are
        orthogonal to the earlier ones, `x'x_s = 0`; and "uncorrelated", components are uncorrelated with the
        earlier ones, `x'A x_s = 0`. After t components, a support of more than t variables always allows
        this; a smaller one may not.
    support : {"free", "common", "disjoint"}, default "free"
        "common" and "disjoint" find all components at once, without deflation. They need method "tpower",
        whose `max_iter` then limits the number of swaps, or for "common" also "branch_and_bound". "common":
        one set of `cardinality` variables for all components. The loadings are the leading eigenvectors of A
        on this set, hence orthogonal. The search maximizes the sum of their eigenvalues by swaps of one
        variable, from several starts. Method "branch_and_bound" proves how good the set is, as `joint_bound`
        reports; `tol`, `time_limit` and `node_limit` are then limits of the whole search. "disjoint": no
        variable belongs to two components. The search maximizes the sum of the variances by swaps, also
        between components, and by choosing each component again given the others; the cardinality may be a
        `Total`. For up to about 15 variables it tries all supports; ``certify="jointly"`` shows this. With
        more than 1000 variables both searches begin among a part of them, and end when no other variable
        would enter. "common" takes a choice with `include` and `groups`, "disjoint" with `groups` and
        `signs`, both with up to 1000 variables.
    refine : bool or int, default False
        Solve for each loading again, given all the others. This raises the variance that the loadings
        explain together; see the function `refine`. A single loading is sought again by truncated power from
        all starts, with swaps, at the cardinality that it has. A number says how many attempts are
        made; the best is kept.
    certify : bool, float, "bounds" or "jointly", default False
        Compute an upper bound for each component, and how far the component may be below it. True: with up to
        3000 variables, `branch_and_bound` starts from each component, for at most two seconds, or as many as
        a number says; "tpower" returns a better component if that search finds one. If that proves nothing,
        also the bound of `optimality_bound` for the deflated matrix; for "dspca", the bound of the
        relaxation. "bounds": without that search, whose outcome depends on the machine. "jointly": one bound
        instead, on the variance that any r loadings of these cardinalities explain together (with
        ``deflation="orthogonal"``, any orthogonal ones). Up to 1000 variables it uses the semidefinite
        relaxation, which takes seconds for 100 variables. Supports chosen together, and a `Total`, accept
        only "jointly". For support "common" it bounds all sets of as many variables. For "disjoint" it is the
        bound on orthogonal loadings. For a total it holds however the total is divided; it then uses only the
        number of nonzero rows, without the relaxation.
    kind : {"data", "covariance"}, default "data"
        Whether X holds data or a covariance matrix.
    center : bool or array-like of shape (p,), default True
        Subtract the column means, or these numbers. True is ignored for a covariance.
    scale : bool or array-like of shape (p,), default False
        Divide each column by its standard deviation, or by these positive numbers. If `center` is False or an
        array, the deviation is the root mean square about 0 or about it, with divisor n - 1. True turns a
        covariance into the correlation.
    sample_weight : array-like of shape (n,), optional
        How many samples each row stands for, at least 0. Means and covariances are the same as if each row
        were repeated that often. The divisor ``sum(sample_weight) - 1`` must be positive. Rows of weight 0
        are left out. X is not copied, and dense X is not screened.
    callback : callable or True, optional
        Called with a `Progress` after each component, and at most twenty times a second in between; with
        ``refine=True`` after each round too. Raising StopIteration ends the search early, see `Progress`.
        True draws a progress bar: of tqdm or rich where one is installed, else a line.

    Returns
    -------
    SparsePCAResult
        `loadings` (p, r), `scores` (n, r), `explained_variance` and `_ratio` (r,), `total_variance`,
        `cardinality`, `mean`, `scale`, `n_iter`, `converged`; methods `transform`, `reconstruct` and
        `extend`. If no variance is left, it has fewer than `n_components` components, with a RuntimeWarning.

    Raises
    ------
    ValueError
        For NaN (allowed only in dense data, with "tpower" and "pmd"), infinite or empty input, a covariance
        that is not symmetric positive semidefinite (for more than 1500 variables only its 2 x 2 minors are
        checked), or an option out of range.
    TypeError
        For input that is not real numbers, masked arrays, or an option of the wrong type.

    References
    ----------
    X.-T. Yuan and T. Zhang (2013). Truncated power method for sparse eigenvalue problems. Journal of
    Machine Learning Research 14, 899-925. M. Journee, Yu. Nesterov, P. Richtarik and R. Sepulchre
    (2010). Generalized power method for sparse principal component analysis. Journal of Machine
    Learning Research 11, 517-553. L. Mackey (2008). Deflation methods for sparse PCA.
    Advances in Neural Information Processing Systems 21.

    Examples
    --------
    >>> import spcacore
    >>> pitprops = spcacore.datasets.load_pitprops()
    >>> result = spcacore.sparse_pca(pitprops.correlation, 3, cardinality=[7, 4, 4], kind="covariance")
    >>> result
    SparsePCAResult(method='tpower', deflation='projection', p=13, 3 components, cardinality=[7, 4, 4], 60.2 % of the variance explained)
    >>> result.explained_variance_ratio.round(3)
    array([0.307, 0.157, 0.138])
    >>> spcacore.sparse_pca(
    ...     pitprops.correlation, 0.6, spcacore.Explained(0.95), method="least_squares", kind="covariance"
    ... )
    SparsePCAResult(method='least_squares', deflation='schur', p=13, 3 components, cardinality=[3, 3, 3], 62.4 % of the variance explained)
    """  # noqa: E501
    record = as_method(method)
    problem, solver, r, (request,) = prepare(
        X, n_components, [sparsity_asked(record, cardinality)], method=record, choice=choice,
        deflation=deflation, support=support, refine=refine, certify=certify, kind=kind, center=center,
        scale=scale, sample_weight=sample_weight,
    )  # fmt: skip
    hook = check_callback(callback)
    problem = formed(problem, hook_of_component(hook, 0, r))
    found = search(problem, solver, request, [], r, hook)
    return components_result(problem, found, request, X)


def loadings_of(problem: Problem, solutions: list[Solution]) -> AnyArray:
    """Return the solutions as the columns of a (p, r) array."""
    return as_matrix(problem, pairs_of(solutions)).astype(problem.operator.dtype)


def explained_together(problem: Problem, found: list[Solution]) -> float:
    """Return Tr(Q'AQ), the variance that the components explain together, in the operator's units."""
    return float(operator_variances(problem, loadings_of(problem, found), "cumulative").sum())


def components_result(
    problem: Problem, found: list[Solution], request: Request, rows: Any = None
) -> SparsePCAResult:
    """Return the result of `sparse_pca`; `rows` is the X to compute scores from, or None."""
    # Variances, from the data where a formed A has lost their digits
    screening, problem, method = problem.screening(), problem.unscreened(), request.method.name
    V = loadings_of(problem, found)
    definition = DEFINITIONS[SOLVERS[method].objective]
    variances = operator_variances(problem, V, definition)
    if problem.data is not None and is_rounding(problem, variances.min(initial=math.inf)):
        variances = operator_variances(problem.data, V, definition)
    # Bounds: one on what all explain together, or one for each component
    bounds: dict[str, Any] = {}
    proved = found[0].upper_bound if found and request.together else None
    if found and (request.certify == "jointly" or (proved and method == "branch_and_bound")):
        limits = {} if request.certify is False else bounds_together(problem, found, request)
        most = min([*limits.values(), math.inf if proved is None else proved])
        explained = float(variances.sum())
        gap = 1 - explained / most if most > explained else 0.0
        if proved and gap <= ACROSS_EXCESS.of(problem.operator.dtype):
            gap = 0.0
        bounds = {"joint_bound": float(problem.in_units(max(most, explained))), "joint_gap": gap}
    elif request.certify:
        upper = np.array([f.upper_bound for f in found])
        bounds["gap"] = 1 - np.array([f.objective for f in found]) / upper
        hidden = variances <= upper * (1 + 64 * eps_of(problem.operator.dtype))  # an excess that is rounding
        np.maximum(upper, variances, out=upper, where=hidden)
        bounds["upper_bound"] = np.asarray(problem.in_units(upper))
    # How much was searched
    tallies = np.array([f.tally for f in found], np.intp).reshape(-1, 3).T.copy()
    return SparsePCAResult.of(
        problem,
        V,
        variances,
        rows,
        **as_ended(found),
        method=method,
        deflation=request.constraint or request.removal,
        screening=screening,
        options=request,
        **bounds,
        **dict(zip(("n_starts", "n_ends", "n_best"), tallies, strict=True)),
    )
