"""Several sparse components: a one-component solver and a deflation, in turn."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import dspca, exact, gpower, greedy, pmd, scotlass, tpower
from ._input import Hook, aligned, choice, flag, hook, integer, per_component, seed_of
from ._messages import counted, instead_of, listed
from ._operator import Problem, as_problem, warn_out_of_range
from ._result import Callback, Progress, Screening, SparsePCAResult
from ._screening import MODES as SCREENING
from ._search import Ended, Found, Warm, ended, fix_sign, telling
from .certificates import upper_bounds
from .deflation import METHODS as DEFLATIONS
from .deflation import Deflated
from .refinement import NOT_CONVERGED, refined
from .variance import operator_variances

SPARSITY = {
    "cardinality": "the number of nonzeros of each component",
    "l1_bound": "the l1 norm of each component, between 1 and the root of the number of variables",
    "penalty": "how much each component must gain by a variable",
}
CONSTRAINTS = ("orthogonal", "uncorrelated")

_ROUNDS = 500  # of refinement


@dataclass(frozen=True, eq=False, repr=False)
class Method:
    """How `sparse_pca` calls a one-component solver.

    Attributes
    ----------
    sparsity : {"cardinality", "l1_bound", "penalty"}
    check_sparsity : callable
        (value, name, problem) -> value
    check_options : callable
        (problem, *, renormalize, ...) -> what `solve` wants; its other keywords are the method's options.
    solve : callable
        See `_search`.
    generalized : bool
        Whether it maximizes x'Ax/x'Bx itself; others re-fit the values on the support that they find.
    check_together : callable, optional
        (options, sparsity of all components) -> None; raises where they do not go together.
    solve_block : callable, optional
        (problem, sparsity of all components, options, seed, told) -> the components, all at once; for
        options with `block`.
    orthogonal : bool
        Whether its loadings are orthogonal to the earlier ones, so that there may be none.
    whole : callable
        (options) -> whether its steps need whole products, which screening does not help.
    missing : bool
        Whether dense data may have NaN entries.
    image : callable or None
        (state, found, options) -> what takes the place of F x in the residual of the data, or None.
    """

    sparsity: str
    check_sparsity: Callable[[Any, str, Problem], Any]
    check_options: Callable[..., Any]
    solve: Callable[..., Found | None]
    generalized: bool = False
    check_together: Callable[[Any, tuple[Any, ...]], None] | None = None
    solve_block: Callable[..., list[Found]] | None = None
    orthogonal: bool = False
    whole: Callable[[dict[str, Any]], bool] = lambda options: False
    missing: bool = False
    image: Callable[[Deflated, Found, Any], NDArray[Any] | None] | None = None


def _cardinality(value: Any, name: str, problem: Problem) -> int:
    return integer(value, name, 1, problem.p, f": X has {counted(problem.p, 'variable')}")


METHODS = {
    "tpower": Method("cardinality", _cardinality, tpower.check_options, tpower.solve, generalized=True),
    "gpower": Method(
        "penalty", gpower.check_penalty, gpower.check_options, gpower.solve,
        check_together=gpower.check_together, solve_block=gpower.solve_block,
        whole=lambda options: options.get("block") is True,
    ),
    "greedy": Method(
        "cardinality", _cardinality, greedy.check_options, greedy.solve, generalized=True,
        whole=lambda options: options.get("strategy") != "gradient",
    ),
    "pmd": Method(
        "l1_bound", pmd.check_bound, pmd.check_options, pmd.solve, missing=True, image=pmd.image,
        whole=lambda options: "sample_l1_bound" in options,
    ),
    "scotlass": Method(
        "l1_bound", pmd.check_bound, scotlass.check_options, scotlass.solve, orthogonal=True,
        whole=lambda options: True,
    ),
    "dspca": Method(
        "cardinality", _cardinality, dspca.check_options, dspca.solve, whole=lambda options: True
    ),
    "branch_and_bound": Method(
        "cardinality", _cardinality, exact.check_options, exact.solve, generalized=True,
        whole=lambda options: True,
    ),
}  # fmt: skip


def sparse_pca(
    X: Any,
    n_components: int,
    *,
    cardinality: Any = None,
    l1_bound: Any = None,
    penalty: Any = None,
    method: str = "tpower",
    deflation: str = "projection",
    constraint: str | None = None,
    renormalize: bool = True,
    refine: bool = False,
    certify: bool = False,
    kind: str = "data",
    center: bool = True,
    scale: bool = False,
    start: str | None = None,
    n_starts: int | None = None,
    max_iter: int | None = None,
    tol: float | None = None,
    screening: str = "auto",
    n_features: int | None = None,
    rng: Any = None,
    callback: Callback | None = None,
    **options: Any,
) -> SparsePCAResult:
    """Sparse principal components: unit loadings with few nonzeros and large variance.

    Each component maximizes `x'Ax` subject to `||x|| = 1` and its cardinality, where `A` is the
    covariance matrix from which the earlier components have been removed by the deflation. The data
    are neither copied nor changed: centring, scaling and deflation are implicit.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix, LinearOperator or callable
        Data, one row a sample; with ``kind="covariance"`` a symmetric positive semidefinite (p, p)
        matrix (covariance, correlation or Gram), or a callable `v -> A v`, of which up to 256 variables make
        a matrix, by as many products. float32 and float64 arrays
        in C or Fortran order, memory maps, and CSR and CSC matrices are not copied; float32 stays
        float32. Dataframes bring the names of the variables. Dask arrays are worked on where their blocks
        are; `row_blocks` does so with files.
    n_components : int
        In [1, min(n, p)].
    cardinality, l1_bound, penalty : number or sequence of numbers, optional
        How sparse every component, or each, is to be: just the one that the method takes. `l1_bound`, for
        "pmd" and "scotlass": the l1 norm. `penalty`, for "gpower": compares with the norms of the columns of
        the centred X, with norm="l0" with their squares (the diagonal of `X'X`, in whose place a covariance
        stands). `cardinality`, for the others: the number of nonzeros.
    method : str, default "tpower"
        "tpower": truncated power iteration. "greedy": one variable at a time. "branch_and_bound": the optimum
        of each component in its turn, with limits for each. "dspca": the semidefinite relaxation, of up to
        2000 variables. "gpower": the generalized power method. "pmd": penalized matrix decomposition.
        "scotlass": the same with loadings orthogonal to the earlier ones, whatever the deflation. See the
        functions of these names.
    deflation : str, default "projection"
        "hotelling", "projection", "schur", "orthogonalized_hotelling", "orthogonalized_projection",
        "generalized" or "naive", see `deflate`. "generalized" seeks the greatest additional variance
        itself, `max x'Ax` subject to `x'Bx = 1` with `B` the projection away from the earlier loadings. So do
        "tpower", "greedy" and "branch_and_bound"; of "pmd", "gpower", "dspca" and "scotlass" only the values
        are re-fitted so, on supports that they seek as under "orthogonalized_projection".
        "naive" is the residual `X - d u x'` of "pmd", which differs from the projection where u has a
        bound or entries are missing; "schur" with ``renormalize=False`` keeps the scores orthogonal.
    constraint : {None, "orthogonal", "uncorrelated"}, default None
        Instead of a deflation: loadings orthogonal to the earlier ones, `x'x_s = 0`, or components
        uncorrelated with them, `x'A x_s = 0`. After t components a support of more than t variables
        always has room for that; smaller ones may have none.
    renormalize : bool, default True
        Re-fit the values on each support, see `renormalize`. Their l1 norm may then exceed `l1_bound`.
    refine : bool, default False
        Solve each loading again given all the others, which raises the variance that they explain together;
        see the function `refine`.
    certify : bool, default False
        Put an upper bound, and how far the component may be below it, on each component: see
        `optimality_bound`, here of the deflated matrix.
    kind : {"data", "covariance"}, default "data"
    center : bool, default True
        Subtract the column means. Ignored for a covariance.
    scale : bool, default False
        Divide each column by its standard deviation; a covariance becomes the correlation.
    start : None, "diagonal" or "eigenvector", optional
    n_starts, max_iter, tol : optional
        As in the function of the method.
    screening : {"auto", "both", "shadow", "references", "none"}, default "auto"
        Keep dense data from being read for every product, with the same result to the last bit. "shadow"
        makes an int8 copy of X, an eighth (float32: a quarter) of its size, and reads only the columns
        of X that the copy cannot rule out; "references" rules out columns by their products with
        earlier vectors; "both" does both; "auto" decides by the size of X and the memory available, and
        takes at most a fifth of X above 64 MB. Other input than dense data takes no notice. Methods whose
        steps need whole products ("scotlass", "dspca", "branch_and_bound", "greedy" but for its gradient,
        blocks of "gpower", two-way "pmd") go with "auto" and "none", which are the same there.
        `result.screening` says what was used and read.
    n_features : int, optional
        p, needed when X is a bare callable; of anything else, it must be its number of columns.
    rng : None, int or numpy Generator, optional
        For random starts and for probing operators without entries; None is a fixed seed, so results
        repeat.
    callback : callable, optional
        Called with a `Progress` after each component, and at most twenty times a second in between; with
        ``refine=True`` after each round too.
        Raising StopIteration ends the search early, see `Progress`.
    **options
        Further options of the method, as in its function. "gpower": with `relative=True` a penalty is a
        fraction of the largest column norm of what the earlier components have left (l0: its square);
        `block=True` finds all components at once, without deflation, the values on all supports
        re-fitted together; `mu`, a sequence of positive weights of the components there (default 1),
        orders components that would otherwise be found up to rotation.

    Returns
    -------
    SparsePCAResult
        `loadings` (p, r), `explained_variance` and `_ratio` (r,), `total_variance`, `cardinality`,
        `mean`, `scale`, `n_iter`, `converged`; `.transform`, `.reconstruct`, `.extend`. It has fewer
        than `n_components` components, and a RuntimeWarning is given, when no variance is left.

    Raises
    ------
    ValueError
        For NaN (but in dense data for "pmd"), infinite or empty input, a covariance that is not symmetric
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
    """  # noqa: E501
    problem, r, (settings,) = prepared(
        X, n_components, [{"cardinality": cardinality, "l1_bound": l1_bound, "penalty": penalty}],
        method=method, deflation=deflation, constraint=constraint, renormalize=renormalize, refine=refine,
        certify=certify, kind=kind, center=center, scale=scale, start=start, n_starts=n_starts,
        max_iter=max_iter, tol=tol, screening=screening, n_features=n_features, rng=rng, **options,
    )  # fmt: skip
    tell = hook(callback)
    found = _search(problem, method, deflation, settings, [], r, tell)
    if refine and len(found) > 1:
        found = _refined(problem, found, settings, tell)
    read, problem = problem.screening(), problem.unscreened()  # frees the shadow
    return _result(problem, found, read, method, deflation, kind, settings)


def prepared(
    X: Any,
    n_components: Any,
    sparsities: list[dict[str, Any]],
    *,
    method: str = "tpower",
    deflation: str = "projection",
    constraint: str | None = None,
    renormalize: bool = True,
    refine: bool = False,
    certify: bool = False,
    kind: str = "data",
    center: bool = True,
    scale: bool = False,
    start: str | None = None,
    n_starts: int | None = None,
    max_iter: int | None = None,
    tol: float | None = None,
    screening: str = "auto",
    n_features: int | None = None,
    rng: Any = None,
    **options: Any,
) -> tuple[Problem, int, list[dict[str, Any]]]:
    """All that `sparse_pca` is given, checked: the problem, r, and settings for each choice of sparsity."""
    settings: dict[str, Any] = {
        "renormalize": renormalize, "center": center, "scale": scale, "n_features": n_features,
        "screening": screening, "constraint": constraint, "certify": flag(certify, "certify"),
        "refine": flag(refine, "refine"),
    }  # fmt: skip
    chosen = METHODS[choice(method, "method", tuple(METHODS))]
    choice(deflation, "deflation", DEFLATIONS)
    if constraint is not None:
        choice(constraint, "constraint", CONSTRAINTS)
        if deflation != "projection":
            raise ValueError("a constraint takes the place of a deflation; leave deflation='projection'")
    if refine and (not renormalize or constraint == "uncorrelated" or options.get("nonnegative")):
        raise ValueError("refine=True goes with renormalize=True, without nonnegative or uncorrelated")
    if start is not None:
        choice(start, "start", ("diagonal", "eigenvector"))
    options |= {"start": start, "n_starts": n_starts, "max_iter": max_iter, "tol": tol}
    options = {name: value for name, value in options.items() if value is not None}
    _refuse_options(method, options)
    for given in sparsities:
        _refuse_sparsity(method, given)
    settings["screening"] = choice(screening, "screening", SCREENING)
    if chosen.whole(options) and screening != "none":
        if screening != "auto":
            raise ValueError(
                f"screening={screening!r} does not help {method} with these options: leave it out"
            )
        settings["screening"] = "none"
    problem = as_problem(
        X, kind=kind, center=center, scale=scale, n_features=n_features, screening=settings["screening"],
        missing=chosen.missing,
    )  # fmt: skip
    size = counted(problem.p, "variable")
    if problem.n_samples:
        size = f"{counted(problem.n_samples, 'row')} of {size}"
    most = min(problem.p, problem.n_samples or problem.p)
    r = integer(n_components, "n_components", 1, most, f": X has {size}")
    settings["options"] = options
    several = [_sparsity(chosen, given[chosen.sparsity], r, problem) for given in sparsities]
    settings["seed"] = seed_of(rng)
    return problem, r, [settings | {chosen.sparsity: sparsity} for sparsity in several]


def _refuse_options(method: str, options: dict[str, Any]) -> None:
    takes = {name: [*inspect.signature(one.check_options).parameters][1:] for name, one in METHODS.items()}
    allowed = [name for name in takes[method] if name != "renormalize"]
    for name in options:
        if name in allowed:
            continue
        others = [repr(other) for other in takes if name in takes[other]]
        if others:
            raise TypeError(f"{name} is no option of method {method!r}, but of {listed(others, 'and')}")
        known = {n: n for n in (*inspect.signature(sparse_pca).parameters, *allowed)}
        for sparsity in SPARSITY:
            if sparsity != METHODS[method].sparsity:
                known[sparsity] = f"{sparsity} (with method={_methods_of(sparsity)})"
        hint = instead_of(name, known) or f", which takes {listed(allowed, 'and')}"
        raise TypeError(f"{name} is no option of method {method!r}{hint}")


def _methods_of(sparsity: str) -> str:
    return listed(repr(name) for name in METHODS if METHODS[name].sparsity == sparsity)


def _refuse_sparsity(method: str, given: dict[str, Any]) -> None:
    wanted = METHODS[method].sparsity
    for name, value in given.items():
        if name != wanted and value is not None:
            raise TypeError(
                f"method {method!r} takes {wanted}, not {name}, which goes with method={_methods_of(name)}"
            )
    if given[wanted] is None:
        raise TypeError(f"method {method!r} needs {wanted}, {SPARSITY[wanted]}")


def _sparsity(method: Method, value: Any, r: int, problem: Problem) -> tuple[Any, ...]:
    return per_component(
        value, method.sparsity, r, lambda one, name: method.check_sparsity(one, name, problem)
    )


def extend(
    result: SparsePCAResult, X: Any, more: int, sparsity: dict[str, Any], callback: Callback | None
) -> SparsePCAResult:
    """Continue `result`, which came from this X; see `SparsePCAResult.extend`."""
    X = X if result.kind == "covariance" else aligned(X, result.names)
    settings = dict(result.options)
    if settings["refine"]:
        raise ValueError("refined loadings depend on one another: ask sparse_pca for all of them at once")
    method = METHODS[result.method]
    problem = as_problem(
        X,
        kind=result.kind,
        center=settings["center"],
        scale=settings["scale"],
        n_features=settings["n_features"],
        screening=settings["screening"],
        missing=method.missing,
    )
    tell = hook(callback)
    before, p = result.n_components, len(result.loadings)
    if problem.p != p or problem.n_samples != result.n_samples:
        raise ValueError(
            f"X is {problem.n_samples} x {problem.p}; this result came from {result.n_samples} x {p}"
        )
    if settings["options"].get("block"):
        raise ValueError("block=True found all components at once; ask sparse_pca for more of them")
    more = integer(more, "more", 1, min(p, problem.n_samples or p) - before)
    earlier = settings[method.sparsity][:before]
    if all(value is None for value in sparsity.values()):
        if len(set(earlier)) != 1:
            raise ValueError(
                f"{method.sparsity} must be given: the earlier components have different ones, or none is "
                "left"
            )
        sparsity = sparsity | {method.sparsity: earlier[0]}
    _refuse_sparsity(result.method, sparsity)
    settings[method.sparsity] = earlier + _sparsity(method, sparsity[method.sparsity], more, problem)
    known = [
        Found(np.flatnonzero(x), x[x != 0], 0.0, int(result.n_iter[t]), bool(result.converged[t]))
        for t, x in enumerate(np.asarray(result.loadings, problem.operator.dtype).T)
    ]
    found = _search(problem, result.method, result.deflation, settings, known, before + more, tell)
    read, problem = problem.screening(), problem.unscreened()
    return _result(problem, found, read, result.method, result.deflation, result.kind, settings)


def _search(
    problem: Problem,
    method: str,
    deflation: str,
    settings: dict[str, Any],
    known: list[Found],
    r: int,
    tell: Hook | None,
    near: Sequence[Found] = (),
    quick: bool = False,
    quiet: bool = False,
) -> list[Found]:
    """Components up to the r-th after the known ones.

    Those of a problem `near` are starts too; `quick` spares the single variables beside them.
    """
    solver, constraint = METHODS[method], settings["constraint"]
    sparsity = settings[solver.sparsity]
    options = solver.check_options(problem, renormalize=settings["renormalize"], **settings["options"])
    if not settings["renormalize"] and (
        constraint is not None or (deflation == "generalized" and not solver.generalized)
    ):
        what = f"deflation={deflation!r} of {method}" if constraint is None else f"constraint={constraint!r}"
        raise ValueError(f"{what} needs renormalize=True: it re-fits the values on the supports found")
    if constraint is not None and settings["options"].get("nonnegative"):
        raise ValueError("a constraint cannot be met by nonnegative loadings; drop one of the two")
    if solver.check_together is not None:
        solver.check_together(options, sparsity)
    block = solver.solve_block if getattr(options, "block", False) else None
    if block is not None and (deflation != "projection" or constraint is not None):
        raise ValueError("block=True finds all components at once; leave deflation and constraint out")
    if block is not None and settings["certify"]:
        raise ValueError("certify=True bounds one component after another; block=True finds all at once")
    state = Deflated.nothing(problem, deflation, constraint)
    found: list[Found] = []
    if settings["certify"] and problem.diagonal is None:
        raise ValueError("certify=True needs the entries of X; an operator offers only products")
    try:
        if block is not None:
            told = telling(tell, 0, r)
            found = block(problem, sparsity, options, [settings["seed"], 0], told)
            if ended(told):
                found = [replace(f, converged=False) for f in found]
                options = replace(options, max_iter=max((f.n_iter for f in found), default=0))
            if len(found) < r and not quiet:
                warnings.warn(
                    f"{r - len(found)} of the {counted(r, 'component')} vanished under the penalty",
                    RuntimeWarning, stacklevel=3,
                )  # fmt: skip
            for t, f in enumerate(found):
                if tell is not None:
                    tell(Progress(t, r, f.n_iter, float(problem.in_units(f.objective))))
        for t in range(r if block is None else 0):
            if t < len(known):
                new: Found | None = known[t]
            else:
                told = telling(tell, t, r, whole=True)
                here = options
                if t < len(near) and getattr(options, "start", "none") is None:
                    here = replace(options, start=Warm(near[t].index, near[t].value))
                    if quick and options.n_starts is None:
                        here = replace(here, n_starts=1)
                new = solver.solve(problem, state, sparsity[t], here, [settings["seed"], t], told)
                if new is not None and not new.objective > problem.noise(new.index, deflation):
                    new = None
            if new is None:
                what = "no variance" if constraint is None and not solver.orthogonal else "nothing feasible"
                if solver.sparsity == "penalty" and what == "no variance":
                    what += " above the penalty"
                if not quiet:
                    warnings.warn(
                        f"{what} is left after {t} of the {counted(r, 'component')} asked for",
                        RuntimeWarning,
                        stacklevel=3,
                    )
                break
            if settings["certify"]:
                new = _certified(problem, state, new)
            found.append(new)
            if t + 1 < r:
                image = None
                if deflation == "naive" and solver.image is not None:
                    image = solver.image(state, new, options)
                state = state.without(
                    new.index, new.value, lambda index: problem.noise(index, deflation), image
                )
            if tell is not None and t >= len(known):
                variance = float(problem.in_units(new.objective))
                if tell(Progress(t, r, new.n_iter, variance)):
                    break
    except Ended:
        pass
    finally:
        if problem.filled is not None:
            problem.filled.restore()
    if not quiet and not all(f.converged for f in found):
        some = [t for t, f in enumerate(found) if not f.converged]
        limit = (
            "the limits given"
            if method == "branch_and_bound"
            else f"{counted(options.max_iter, 'iteration')}"
        )
        warnings.warn(
            f"component{'s' * (len(some) > 1)} {', '.join(map(str, some))} not converged in {limit}",
            RuntimeWarning, stacklevel=3,
        )  # fmt: skip
    return found


def _refined(
    problem: Problem,
    found: list[Found],
    settings: dict[str, Any],
    tell: Hook | None,
    quiet: bool = False,
) -> list[Found]:
    """The components solved again, each given all the others."""
    if tell is not None and tell.ended:
        return [replace(x, converged=False) for x in found]
    sizes = settings.get("cardinality", tuple(len(x.index) for x in found))
    start = [(x.index, x.value) for x in found]
    loadings, converged = refined(
        problem, start, sizes, settings["constraint"], 0, _ROUNDS, 1e-7, settings["seed"], tell
    )
    if not (converged or quiet or (tell is not None and tell.ended)):
        warnings.warn(NOT_CONVERGED.format(_ROUNDS), RuntimeWarning, stacklevel=3)
    state = Deflated.nothing(problem, "generalized")
    out = []
    for x, (index, value) in zip(found, loadings, strict=True):
        new = replace(x, index=index, value=fix_sign(value), converged=x.converged and converged)
        if settings["certify"]:
            new = _certified(problem, state, new)
            state = state.without(new.index, new.value, problem.noise)
        out.append(new)
    return out


def _certified(problem: Problem, state: Deflated, x: Found) -> Found:
    """With the objective of the deflated matrix, and an upper bound on it."""
    value = np.ascontiguousarray(x.value)
    objective = float(value @ state.operator.apply(x.index, value)[x.index])
    if state.quotient:
        objective /= 1 - sum(float(q[x.index] @ value) ** 2 for q in state.basis)
    bound = min(upper_bounds(problem, state, len(x.index)).values())
    return replace(x, objective=objective, upper_bound=max(bound, objective))


def _result(
    problem: Problem,
    found: list[Found],
    screening: Screening,
    method: str,
    deflation: str,
    kind: str,
    settings: dict[str, Any],
    quiet: bool = False,
) -> SparsePCAResult:
    V = np.zeros((problem.p, len(found)), problem.operator.dtype)
    for t, f in enumerate(found):
        V[f.index, t] = f.value
    variances = operator_variances(problem, V, "cumulative")
    ratio = None
    if problem.diagonal is not None:
        total = float(problem.diagonal.sum())
        ratio = variances / total if total > 0 else variances
    upper_bound = gap = None
    if settings["certify"]:
        bounds = np.array([f.upper_bound for f in found])
        upper_bound = np.asarray(problem.in_units(bounds))
        gap = 1 - np.array([f.objective for f in found]) / bounds
    in_units = np.asarray(problem.in_units(variances))
    if not quiet:
        warn_out_of_range(variances, in_units, stacklevel=3)
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
    )
