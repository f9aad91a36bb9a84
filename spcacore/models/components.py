"""Several sparse components by any solver and any deflation."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Any, Literal, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .._docstrings import hands_on
from .._limits import ACROSS_EXCESS
from .._messages import counted
from .._types import (
    Constraint,
    Counted,
    Deflation,
    Groups,
    Kind,
    Method,
    MethodOptions,
    Objective,
    OperatorLike,
    RandomSource,
    ScreeningMode,
    ShareOf,
    Switch,
    Variables,
    Weights,
)
from .._validation import aligned, check_callback, integer
from ..operators.deflation import DEFLATIONS
from ..operators.gram import formed, is_rounding
from ..operators.leading import cheap_dense_shares
from ..operators.problem import Problem, Screening, warn_out_of_range
from ..operators.transform import fitted_scores
from ..progress import Callback
from ..results import LoadingsResult
from ..solvers.base import Solution, hook_of_component
from ..solvers.table import SOLVERS
from .across import are_together, bounds_together
from .alternation import (
    check_sparsities,
    make_solver,
    prepare,
    problem_of,
    refine_all,
    refuse_sparsity,
    search,
    with_defaults,
)
from .variance import DEFINITIONS, operator_variances

__all__ = ["SparsePCAResult", "components_result", "extend", "sparse_pca"]
__dir__ = __all__.copy


@dataclass(frozen=True, eq=False, repr=False)
class SparsePCAResult(LoadingsResult):
    """Sparse principal components, in the order in which they were found.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        One unit column a component; in each, the entry of largest magnitude is positive.
    explained_variance : ndarray of shape (r,)
        Additional variance of each component given the earlier ones (`explained_variance`,
        definition "cumulative" or, with objective "least_squares", "regression"); the sum is the variance
        explained together.
    explained_variance_ratio : ndarray of shape (r,) or None
        As a proportion of the total; None where the total is unknown (products alone).
    total_variance : float or None
        Trace of the covariance matrix.
    cardinality : ndarray of shape (r,), int
        Nonzeros of each loading.
    mean, scale : ndarray of shape (p,) or None
        Subtracted from, then divides, each column; None if not applied.
    n_iter : ndarray of shape (r,), int
    converged : ndarray of shape (r,), bool
    upper_bound : ndarray of shape (r,) or None
        With ``certify=True``: no loading of that cardinality has more variance in the deflated matrix, or
        with deflation "generalized" more additional variance.
    gap : ndarray of shape (r,) or None
        How far each component may be below that, as a proportion of the bound; 0 is a proof.
    method, deflation, kind : str
    n_samples : int or None
        None for a covariance.
    names : tuple of str or None
        Names of the variables, when the input had any.
    screening : Screening
        How much of the data was read.
    options : dict
        The remaining options of the call, which `extend` repeats.
    dense_ratio : ndarray of shape (r,) or None
        Shares of as many ordinary principal components, where they take but milliseconds to compute.
    joint_bound : float or None
        With ``certify="jointly"``, or of a common support by branch and bound: no such loadings explain more
        variance together.
    joint_gap : float or None
        How far the sum of `explained_variance` is below that, as a proportion of the bound.
    scores : ndarray of shape (n, r) or None
        `transform` of the data of the fit, with missing entries taken as the mean. None for a covariance, for
        rows in blocks, which that would read once more, and for results along a path.
    """

    loadings: NDArray[Any]
    explained_variance: NDArray[Any]
    explained_variance_ratio: NDArray[Any] | None
    total_variance: float | None
    cardinality: NDArray[np.intp]
    mean: NDArray[Any] | None
    scale: NDArray[Any] | None
    n_iter: NDArray[np.intp]
    converged: NDArray[np.bool_]
    method: str
    deflation: str
    kind: str
    n_samples: int | None
    names: tuple[str, ...] | None
    screening: Screening
    options: dict[str, Any] = field(repr=False)
    upper_bound: NDArray[Any] | None = None
    gap: NDArray[Any] | None = None
    dense_ratio: NDArray[Any] | None = None
    joint_bound: float | None = None
    joint_gap: float | None = None
    scores: NDArray[Any] | None = None

    def extend(
        self,
        X: OperatorLike,
        more: int,
        *,
        cardinality: int | ArrayLike | None = None, explained: float | ArrayLike | None = None,
        explained_of: ShareOf = "variance",
        l1_bound: float | ArrayLike | None = None, penalty: float | ArrayLike | None = None,
        callback: Callback | None = None,
    ) -> SparsePCAResult:  # fmt: skip
        """Add components without recomputing these; the same result as asking for all at once.

        Parameters
        ----------
        X : the matrix that this result was computed from
        more : int
            Number of components to add.
        cardinality, explained, l1_bound, penalty : number or sequence of `more` numbers, optional
            What the method takes. Default: that of the call that made this result, if it was one number.
        explained_of : {"variance", "score"}, default "variance"
            With `explained`, as in `sparse_pca`.
        callback : callable, optional
            As in `sparse_pca`.

        Returns
        -------
        SparsePCAResult
        """
        sparsity = {
            "cardinality": cardinality, "explained": explained, "explained_of": explained_of,
            "l1_bound": l1_bound, "penalty": penalty,
        }  # fmt: skip
        return extend(self, X, more, sparsity, callback)

    def __repr__(self) -> str:
        r = self.n_components
        share = ""
        if self.explained_variance_ratio is not None:
            share = f", {100 * float(self.explained_variance_ratio.sum()):.1f} % of the variance explained"
        return (
            f"SparsePCAResult(method={self.method!r}, deflation={self.deflation!r}, p={len(self.loadings)}, "
            f"{counted(r, 'component')}, cardinality={self.cardinality.tolist()}{share})"
        )


@hands_on(MethodOptions)
def sparse_pca(
    X: OperatorLike, n_components: int | float, *,
    cardinality: int | ArrayLike | None = None, explained: float | ArrayLike | None = None,
    explained_of: ShareOf = "variance",
    l1_bound: float | ArrayLike | None = None, penalty: float | ArrayLike | None = None,
    objective: Objective | None = None, method: Method | None = None, deflation: Deflation | None = None,
    constraint: Constraint | None = None,
    refine: bool = False, n_restarts: int = 0, certify: bool | Literal["jointly"] = False,
    support: Literal["free", "common", "disjoint"] = "free", total_cardinality: int | None = None,
    start: Literal["diagonal", "eigenvector"] | None = None, n_starts: int | None = None,
    max_iter: int | None = None,
    tol: float | None = None, renormalize: bool = True,
    include: Variables = None, exclude: Variables = None, groups: Groups = None, nonnegative: Switch = False,
    count: Counted = "groups",
    kind: Kind = "data", center: Switch = True, scale: Switch = False, sample_weight: Weights = None,
    screening: ScreeningMode = "auto", n_features: int | None = None, rng: RandomSource = None,
    callback: Callback | None = None,
    **options: Unpack[MethodOptions],
) -> SparsePCAResult:  # fmt: skip
    """Sparse principal components: unit loadings with few nonzeros and large variance.

    Each component maximizes `x'Ax` subject to `||x|| = 1` and its cardinality, where `A` is the
    covariance matrix from which the earlier components have been removed by the deflation, or, with
    objective "least_squares", `x'A^2 x / x'Ax`. The data are neither copied nor changed: centering, scaling
    and deflation are implicit.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, LinearOperator or callable
        Data, one row per sample; with ``kind="covariance"`` a symmetric positive semidefinite (p, p)
        matrix (covariance, correlation or Gram), or a callable `v -> A v`, of which up to 256 variables make
        a matrix, by as many products. float32 and float64 arrays
        in C or Fortran order, memory maps, and CSR and CSC matrices are not copied; float32 stays
        float32. Dataframes bring the names of the variables. Dask arrays are worked on where their blocks
        are; `row_blocks` does so with files.
    n_components : int or float
        In [1, min(n, p)]; or a share of the total variance between 0 and 1: as many components as
        explain it together, by the definition that goes with the objective (see `explained_variance` below).
    cardinality, l1_bound, penalty : number or sequence of numbers, optional
        How sparse the components should be, by one number for all or one for each. Give the one that the
        method takes. `l1_bound`, for "pmd" and "scotlass": the l1 norm. `penalty`, for "gpower": compares
        with the norms of the columns of the centered X, with norm="l0" with their squares (the diagonal of
        `X'X`, in whose place a covariance stands). `cardinality`, for the others: the number of nonzeros.
    explained : number or sequence of numbers, optional
        Instead of `cardinality`: the fewest variables, of those supports that the method finds, whose component
        explains this share, in (0, 1], of what the first principal component of the deflated matrix explains;
        one share for all, or one for each. The number of variables is found by bisection, or on the path of a
        greedy search.
    explained_of : {"variance", "score"}, default "variance"
        What `explained` is a share of: the variance, or the score of that principal component (R^2, the
        squared correlation of both scores). With objective "least_squares" and "score", the component is
        what a regression of that score on the variables predicts.
    objective : {"variance", "least_squares"}, optional
        "variance": `x'Ax`, the variance of the score. "least_squares": `x'A^2 x / x'Ax`, the variance of all
        variables that a regression on the score explains; on a deflated matrix, that of the deflated variables,
        which under "schur" is what the score adds to the earlier ones. Default: that of the method.
    method : str, optional
        Default: "tpower", or "least_squares" for that objective. "tpower": truncated power iteration.
        "greedy": one variable at a time. "branch_and_bound": the optimum of each component in its turn, with
        limits for each (with support "common", of all). "dspca": the semidefinite relaxation, of up to
        2000 variables. "gpower": the generalized power method. "pmd": penalized matrix decomposition.
        "scotlass": the same with loadings orthogonal to the earlier ones, but under "generalized". See the
        functions of these names. "least_squares": see `least_squares_component`. "thresholding": the leading
        eigenvector, truncated, which the others are compared with.
    deflation : str, optional
        Default: "projection", or "schur" for objective "least_squares". "hotelling", "projection", "schur",
        "orthogonalized_hotelling", "orthogonalized_projection", "orthogonalized_schur", "generalized" or
        "naive", see `deflate`. "generalized" seeks the greatest additional variance itself, `max x'Ax`
        subject to `x'Bx = 1` with `B` the projection away from the earlier loadings: under the l1 bound of a
        unit vector, or less the penalty of "gpower" (l1: on that x). "scotlass" is not orthogonal then. Only
        of "thresholding" the values alone are re-fitted so, on supports sought as under the projection.
        Least squares components need a deflation that leaves no negative variances: neither of Hotelling's.
        "naive" is the residual `X - d u x'` of "pmd", which differs from the projection where u has a
        bound or entries are missing; "schur" with ``renormalize=False`` keeps the scores orthogonal.
    constraint : {None, "orthogonal", "uncorrelated"}, default None
        Instead of a deflation: loadings orthogonal to the earlier ones, `x'x_s = 0`, or components
        uncorrelated with them, `x'A x_s = 0`. After t components a support of more than t variables
        always has room for that; smaller ones may have none.
    refine : bool, default False
        Solve each loading again given all the others, which raises the variance that they explain together;
        see the function `refine`.
    n_restarts : int, default 0
        With ``refine=True``, further attempts at that, as in the function `refine`.
    certify : bool or "jointly", default False
        Put an upper bound, and how far the component may be below it, on each component: see
        `optimality_bound`, here of the deflated matrix; of "dspca" with the relaxation. "jointly": instead on
        what all explain together, of any as many loadings with as many nonzeros (with
        ``constraint="orthogonal"``, of orthogonal ones); up to 1000 variables by the semidefinite relaxation,
        in seconds for 100 variables. With `support` and `total_cardinality` only this: "common" bounds all
        sets of so many variables; the bound on orthogonal loadings holds for disjoint ones; and of a total it
        holds however that is divided, from its number of rows alone, without the relaxation.
    support : {"free", "common", "disjoint"}, default "free"
        Of "tpower" with `max_iter` alone, the number of exchanges. "common": one set of `cardinality`
        variables for all components, whose loadings are the leading eigenvectors of A on it, orthogonal: the sum of
        their eigenvalues is maximized, from several starts by exchanges of one variable. With method
        "branch_and_bound" the set is proved, `joint_bound` has how far, and `tol`, `time_limit` and
        `node_limit` are those of the search of all components. "disjoint": no variable belongs to two
        components; the sum of their variances is maximized, by exchanges, also between components, and by
        choosing each anew given the others; with about 15 variables or fewer, by trying all supports, which
        ``certify="jointly"`` says. Both find all components at once, without deflation. Beyond 1000 variables
        they search among some, until the products of the loadings with all others show none that would enter.
    total_cardinality : int, optional
        Instead of `cardinality`: nonzeros of all loadings together, at least one each, divided so that they
        explain most variance together; also with ``support="disjoint"``. Single nonzeros move between
        loadings as long as that gains, each loading solved again given the others.
    start : None, "diagonal" or "eigenvector", optional
    n_starts, max_iter, tol : optional
        As in the function of the method.
    renormalize : bool, default True
        Re-fit the values on each support, see `renormalize`. Their l1 norm may then exceed `l1_bound`.
    kind : {"data", "covariance"}, default "data"
    center : bool or array-like of shape (p,), default True
        Subtract the column means, or these numbers. True is ignored for a covariance.
    scale : bool or array-like of shape (p,), default False
        Divide each column by its standard deviation (with `center` given, by the root mean square
        about it, with divisor n - 1), or by these positive numbers; a covariance becomes the correlation.
    sample_weight : array-like of shape (n,), optional
        How many samples each row stands for, at least 0. Means and covariances are those of data in which
        each row is repeated that often, with divisor ``sum(sample_weight) - 1``, which must be positive. Rows
        of weight 0 are left out. X is not copied, and dense X is not screened.
    include, exclude : sequence of names or indices, optional
        Variables that every component must have, and variables that none may have: the result is as if these
        columns were not in X. See the guide on choice. Included ones cost nothing under a penalty or an l1
        bound; their entries may be zero where nothing else is best. Every method excludes; "dspca",
        "scotlass" and "least_squares" include nothing.
    groups : sequence of p labels, or mapping of names to labels, optional
        Variables of the same label are in a component or out of it together, and a penalty or bound is on the
        norms of groups. For "tpower", "gpower", "pmd", "thresholding", "branch_and_bound" and forward "greedy".
    nonnegative : bool or array-like of shape (p,), default False
        Only loadings without negative entries; or the sign of each variable: 1, -1, or 0 for any. For the
        same methods.
    count : {"groups", "variables"}, default "groups"
        What the cardinality counts where there are groups. With "variables" a component has whole groups, of at
        most so many variables together. Not for "gpower" and "pmd".
    screening : {"auto", "gram", "working_set", "both", "shadow", "references", "none"}, default "auto"
        How to avoid reading all of X for every product. "none" reads it. "gram" forms `A` itself, in double
        precision, and then reads no more; only components with less than 1e-5 (float32: 1e-3) of the largest
        variance of a variable are still found on the data. If the search is the same, so is the result, up to
        rounding; but products are cheap then, and "tpower" makes more starts and swaps. "auto" does this for
        tall data of up to a few thousand variables, including sparse data and blocks of rows (in one pass), but
        not if a sparse column has a mean 100 times its deviation. The next three are for dense data, and give
        the same result as "none" to the last bit. "shadow"
        makes an int8 copy of X, an eighth (float32: a quarter) of its size, and reads only the columns
        of X that the copy cannot rule out; "references" rules out columns by their products with
        earlier vectors; "both" does both; "auto" decides by the size of X and the memory available, and
        takes at most two fifths of X above 64 MB. "working_set", of "tpower", "gpower" (not in blocks), "pmd"
        (not two-way), "scotlass" and forward "greedy", searches on the Gram matrix of a few hundred columns,
        from more starts, until no other column would enter the support. The result is a fixed point of the
        iteration over all columns, often a better one than that of "none"; that of "greedy" is the same, to
        rounding; "branch_and_bound" takes its first solution from there. If the set would not fit, or if an
        earlier component, a constraint or a start needs all columns, the search goes on among all columns.
        "auto" does so for large data that are not screened, sparse ones and blocks of rows included; CSR data
        are copied by columns for that, if memory allows. Methods whose
        steps need whole products ("scotlass", "dspca", "branch_and_bound", "greedy" except by gradient,
        blocks of "gpower", two-way "pmd") do not accept "shadow", "references" or "both", and two-way "pmd"
        does not accept "gram" either. `result.screening` says what was used, and how much was read.
    n_features : int, optional
        p. Needed when X is a bare callable; otherwise it must be the number of columns of X.
    rng : None, int or numpy Generator, optional
        For random starts and for probing operators without entries; None is a fixed seed, so results
        repeat.
    callback : callable, optional
        Called with a `Progress` after each component, and at most twenty times a second in between; with
        ``refine=True`` after each round too.
        Raising StopIteration ends the search early, see `Progress`.
    strategy, swaps, nonnegative, sample_l1_bound, time_limit, node_limit : optional
        Further options of the method, as in its function, and only those of the method.
    norm, relative, block, mu : optional
        Of "gpower". With ``relative=True`` a penalty is a fraction of the largest column norm of what the
        earlier components have left (l0: its square). ``block=True`` finds all components at once, without
        deflation, and re-fits the values on all supports together. `mu` has a positive weight for each
        component found so (default 1), and orders components that would otherwise be found up to rotation.

    Returns
    -------
    SparsePCAResult
        `loadings` (p, r), `scores` (n, r), `explained_variance` and `_ratio` (r,), `total_variance`,
        `cardinality`, `mean`, `scale`, `n_iter`, `converged`; `.transform`, `.reconstruct`, `.extend`. It has fewer
        than `n_components` components, and a RuntimeWarning is given, when no variance is left.

    Raises
    ------
    ValueError
        For NaN (but in dense data for "tpower" and "pmd"), infinite or empty input, a covariance that is not symmetric
        positive semidefinite (beyond 1500 variables only its 2 x 2 minors are looked at), or an option out of
        range.
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
    >>> spcacore.sparse_pca(pitprops.correlation, 0.6, explained=0.95, objective="least_squares", kind="covariance")
    SparsePCAResult(method='least_squares', deflation='schur', p=13, 3 components, cardinality=[3, 3, 3], 62.4 % of the variance explained)
    """  # noqa: E501
    chosen, removal = with_defaults(method, objective, deflation, constraint)
    given = {
        "cardinality": cardinality, "explained": explained, "explained_of": explained_of,
        "l1_bound": l1_bound, "penalty": penalty,
    }  # fmt: skip
    problem, solver, r, (settings,) = prepare(
        X, n_components, [given],
        method=chosen, deflation=removal, constraint=constraint, renormalize=renormalize, refine=refine,
        n_restarts=n_restarts, certify=certify, support=support, total_cardinality=total_cardinality,
        kind=kind, center=center, scale=scale,
        sample_weight=sample_weight, start=start, n_starts=n_starts, max_iter=max_iter, tol=tol,
        include=include, exclude=exclude, groups=groups, nonnegative=nonnegative,
        count=count,
        screening=screening, n_features=n_features, rng=rng, **options,
    )  # fmt: skip
    hook = check_callback(callback)
    problem = formed(problem, hook_of_component(hook, 0, r))
    found = search(problem, solver, DEFLATIONS[removal], settings, [], r, hook)
    if refine and len(found) > 1:
        found = refine_all(problem, found, settings, hook)
    read, problem = problem.screening(), problem.unscreened()  # frees the shadow
    result = components_result(problem, found, read, chosen, removal, kind, settings)
    return replace(result, scores=fitted_scores(X, problem, result.loadings))


def extend(
    result: SparsePCAResult, X: Any, more: int, sparsity: dict[str, Any], callback: Callback | None
) -> SparsePCAResult:
    """Continue `result`, which came from this X; see `SparsePCAResult.extend`."""
    X = X if result.kind == "covariance" else aligned(X, result.names)
    settings = dict(result.options)
    if settings["refine"]:
        raise ValueError("refined loadings depend on one another: ask sparse_pca for all of them at once")
    method, deflation = SOLVERS[result.method], DEFLATIONS[result.deflation]
    problem = problem_of(X, method, result.kind, settings)
    hook = check_callback(callback)
    before, p = result.n_components, len(result.loadings)
    if problem.p != p or problem.n_samples != result.n_samples:
        raise ValueError(
            f"X is {problem.n_samples} x {problem.p}, samples by variables; this result came from "
            f"{result.n_samples} x {p}"
        )
    if are_together(settings):
        raise ValueError("the supports were chosen together: ask sparse_pca for all components at once")
    if settings["options"].get("block"):
        raise ValueError("block=True found all components at once; ask sparse_pca for more of them")
    more = integer(more, "more", 1, min(p, problem.n_samples or p) - before)
    settings.pop("total_share", None)
    earlier = settings[method.sparsity][:before]
    if all(value is None for name, value in sparsity.items() if name != "explained_of"):
        if len(set(earlier)) != 1:
            raise ValueError(
                f"{method.sparsity} must be given: the earlier components have different ones, or none is "
                "left"
            )
        sparsity = sparsity | {method.sparsity: earlier[0]}
    refuse_sparsity(method, sparsity)
    settings[method.sparsity] = earlier + check_sparsities(method, sparsity, more, problem)
    known = [
        Solution(np.flatnonzero(x), x[x != 0], 0.0, int(result.n_iter[t]), bool(result.converged[t]))
        for t, x in enumerate(np.asarray(result.loadings, problem.operator.dtype).T)
    ]
    solver = make_solver(problem, method, deflation, settings)
    solver.check_together(settings[method.sparsity])
    problem = formed(problem, hook_of_component(hook, before, before + more))
    found = search(problem, solver, deflation, settings, known, before + more, hook)
    read, problem = problem.screening(), problem.unscreened()
    longer = components_result(problem, found, read, result.method, result.deflation, result.kind, settings)
    return replace(longer, scores=fitted_scores(X, problem, longer.loadings))


def components_result(
    problem: Problem,
    found: list[Solution],
    screening: Screening,
    method: str,
    deflation: str,
    kind: str,
    settings: dict[str, Any],
    quiet: bool = False,
) -> SparsePCAResult:
    V = np.zeros((problem.p, len(found)), problem.operator.dtype)
    for t, f in enumerate(found):
        V[f.index, t] = f.entries
    definition = DEFINITIONS[SOLVERS[method].objective]
    variances = operator_variances(problem, V, definition)
    if problem.data is not None and any(is_rounding(problem, variance) for variance in variances):
        variances = operator_variances(problem.data, V, definition)
    ratio = None
    if problem.diagonal is not None:
        total = float(problem.diagonal.sum())
        ratio = variances / total if total > 0 else variances
    upper_bound = gap = joint_bound = joint_gap = None
    proved = found[0].upper_bound if found and are_together(settings) else None
    if found and (settings["certify"] == "jointly" or (proved and method == "branch_and_bound")):
        limits = {} if settings["certify"] is False else bounds_together(problem, found, settings)
        most = min([*limits.values(), math.inf if proved is None else proved])
        explained = float(variances.sum())
        joint_bound = float(problem.in_units(max(most, explained)))
        joint_gap = 1 - explained / most if most > explained else 0.0
        if proved and joint_gap <= ACROSS_EXCESS.of(problem.operator.dtype):
            joint_gap = 0.0
    elif settings["certify"]:
        bounds = np.array([f.upper_bound for f in found])
        upper_bound = np.asarray(problem.in_units(bounds))
        gap = 1 - np.array([f.objective for f in found]) / bounds
    in_units = np.asarray(problem.in_units(variances))
    if not quiet:
        warn_out_of_range(variances, in_units)
    return SparsePCAResult(
        loadings=V,
        explained_variance=in_units,
        explained_variance_ratio=ratio,
        total_variance=problem.total_variance,
        cardinality=np.array([np.count_nonzero(v) for v in V.T], np.intp),
        mean=problem.mean,
        scale=problem.scale,
        n_iter=np.array([f.n_iter for f in found], np.intp),
        converged=np.array([f.converged for f in found], np.bool_),
        method=method,
        deflation=deflation,
        kind=kind,
        n_samples=problem.n_samples,
        names=problem.names,
        screening=screening,
        options=settings,
        upper_bound=upper_bound,
        gap=gap,
        dense_ratio=cheap_dense_shares(problem, len(found)),
        joint_bound=joint_bound,
        joint_gap=joint_gap,
    )
