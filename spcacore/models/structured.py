"""Probabilistic components one at a time, with a prior that says what loadings look like.

The centered data are `T = x w' + noise` with weights x (n), noise of variance s2, and a loading w with prior
N(0, C). Variational EM raises the free energy

    F = E_q log p(T | x, w, s2) + E_q log p(w) + entropy of q = log p(T | x, s2) at the best q

over normal q(w) = N(m, S), x and s2 by turns. With Z the deflated data, `K = (|x|^2/s2) I + C^-1`, and Q an
orthonormal basis of the earlier means:

    S = K^-1 - K^-1 Q (Q'K^-1 Q)^-1 Q'K^-1,   m = S Z'x/s2,
    x = Z m/e,   s2 = (|Z|^2 - m'Z'Z m/e)/(n p),   e = m'm + Tr S.

All of that depends on Z through Z'Z alone, so an iteration needs one product with the covariance matrix. Two
steps accelerate it and never lower F: w is rescaled so that E w'C^-1 w is its dimension (and x inversely),
and m is replaced by the best combination of itself and the two before it, where that raises F.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import linalg

from .._limits import PRIOR_UNIT, STRUCTURED_TOL
from .._messages import counted, warn
from .._types import Groups, Kind, MatrixLike, RandomSource, Variables, Weights
from .._validation import (
    Hook,
    aligned,
    as_seed,
    check_callback,
    check_choice,
    framed,
    integer,
    number,
    per_component,
)
from ..linalg.orthogonal import column_span, fix_sign
from ..operators.choice import knowledge
from ..operators.deflation import DEFLATIONS, DeflatedOperator
from ..operators.inputs import as_problem
from ..operators.problem import Problem, warn_out_of_range
from ..operators.transform import scores
from ..progress import Callback, Progress
from ..results import LoadingsResult
from ..solvers.base import Ended
from ..solvers.parameters import shared_parameters
from ..solvers.truncated_power import TruncatedPower
from .priors import Banded, Prior, as_prior
from .probabilistic import samples_of, total_variance
from .variance import operator_variances
from .variational import Component, Residual, Search, regressors

__all__ = ["StructuredPCAResult", "oppca", "soppca"]
__dir__ = __all__.copy

_DEFLATIONS = ("orthogonal", "naive", "constrained")


@dataclass(frozen=True, eq=False)
class StructuredPCAResult(LoadingsResult):
    """Components with their posteriors, from `oppca` or `soppca`.

    `transform` gives weights, and `reconstruct` the weighted sum of `means`.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        The posterior means at unit length; in each, the entry of largest magnitude is positive.
    means : ndarray of shape (p, r)
        The posterior means as the scale of the prior has them.
    posterior_precision : ndarray of shape (r,)
        a: the posterior of component t has precision `a_t I + C^-1`, restricted to its support and, where
        the means are orthogonal, to the complement of the earlier ones.
    posterior_trace : ndarray of shape (r,)
        Trace of each posterior covariance.
    scores : ndarray of shape (n, r) or None
        The weights x of the samples; None for a covariance.
    noise_variance : float
        s2 after the last component, in the units of the covariance.
    noise_variances : ndarray of shape (r,)
        After each component.
    explained_variance : ndarray of shape (r,)
        Additional variance of each loading given the earlier ones (`explained_variance`, "cumulative").
    explained_variance_ratio : ndarray of shape (r,)
    total_variance : float
    free_energy : tuple of r ndarrays
        F after each iteration; it never falls. The prior is restricted as the posterior is, so that
        `select_prior` can compare priors. C times a number gives the same F.
    gain : ndarray of shape (r,)
        The last F, less that of noise alone with the variance of the deflated data, less log(p)/2 for each of
        the n weights, and for `soppca` less the logarithm of the number of supports. Positive: worth having.
    cardinality : ndarray of shape (r,), int
    mean, scale : ndarray of shape (p,) or None
        Subtracted from, then divides, each column; None if not applied.
    n_iter : ndarray of shape (r,), int
    converged : ndarray of shape (r,), bool
    method : {"oppca", "soppca"}
    deflation, kind : str
    n_samples : int
    names : tuple of str or None
        Names of the variables, when the input had any.
    options : dict
        The remaining options of the call, with the prior, which `extend` repeats.
    """

    loadings: NDArray[Any]
    means: NDArray[np.float64]
    posterior_precision: NDArray[np.float64]
    posterior_trace: NDArray[np.float64]
    scores: NDArray[Any] | None
    noise_variance: float
    noise_variances: NDArray[np.float64]
    explained_variance: NDArray[np.float64]
    explained_variance_ratio: NDArray[np.float64]
    total_variance: float
    free_energy: tuple[NDArray[np.float64], ...]
    gain: NDArray[np.float64]
    cardinality: NDArray[np.intp]
    n_iter: NDArray[np.intp]
    converged: NDArray[np.bool_]
    method: str
    deflation: str
    mean: NDArray[Any] | None
    scale: NDArray[Any] | None
    kind: str
    n_samples: int
    names: tuple[str, ...] | None
    options: dict[str, Any] = field(repr=False)

    def transform(self, X: MatrixLike) -> NDArray[Any]:
        """Weights of the rows of X, one component after the other; of the data themselves, `scores`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
            For a result from a covariance, which has no mean, X is used as it is. Columns with names are
            taken in the order of `names`.

        Returns
        -------
        ndarray of shape (m, r), or a dataframe with the index of X where X is one of pandas or polars
        """
        return framed(X, self._weights(aligned(X, self.names)))

    def _rows_of_scores(self) -> NDArray[Any]:
        return self.means.T

    def _weights(self, X: Any) -> NDArray[Any]:
        energy = np.sum(self.means**2, axis=0) + self.posterior_trace
        B = regressors(self.means, energy, self.deflation)
        return scores(X, B.astype(self.loadings.dtype), self.mean, self.scale)

    def posterior_covariance(self, component: int, index: Iterable[int] | None = None) -> NDArray[np.float64]:
        """Covariance of the posterior of one component.

        Parameters
        ----------
        component : int
        index : array-like of int, optional
            The variables asked for. Default: those of the support, so for `oppca` all.

        Returns
        -------
        ndarray of shape (len(index), len(index))
            Zero where a variable is not in the support.
        """
        t = integer(component, "component", 0, self.n_components - 1)
        p = len(self.loadings)
        support = np.arange(p) if self.method == "oppca" else np.flatnonzero(self.means[:, t])
        chosen = support if index is None else [integer(j, "index", 0, p - 1) for j in index]
        wanted = np.array(chosen, np.intp)
        prior, unit = as_prior(
            self.options["prior_covariance"], self.options["prior_precision"], p, self.options["seed"]
        )
        Q = np.zeros((p, 0))
        if t > 0 and (self.deflation == "constrained" or (prior.p == p and self._constrained)):
            Q = linalg.qr(self.means[:, :t], mode="economic")[0][support]
            Q = column_span(Q)
        else:
            Q = Q[support]
        inner: Prior | Banded = prior if len(support) == p else prior.restricted(support)
        a = float(self.posterior_precision[t] / unit)
        position = {int(j): i for i, j in enumerate(support)}
        inside = [i for i, j in enumerate(wanted) if int(j) in position]
        rows = [position[int(wanted[i])] for i in inside]
        E = np.zeros((len(support), len(inside)))
        E[rows, np.arange(len(inside))] = 1
        columns = inner.solve(a, E)
        if Q.shape[1]:
            Y = inner.solve(a, Q)
            columns -= Y @ np.linalg.solve(Q.T @ Y, Y.T @ E)
        out = np.zeros((len(wanted), len(wanted)))
        out[np.ix_(inside, inside)] = columns[rows] / unit
        return (out + out.T) / 2

    @property
    def _constrained(self) -> bool:
        return self.method == "oppca" and self.deflation == "orthogonal"

    def extend(self, X: MatrixLike, more: int, *, cardinality: int | ArrayLike | None = None,
               callback: Callback | None = None) -> StructuredPCAResult:  # fmt: skip
        """Add components without recomputing these; the same result as asking for all at once.

        Parameters
        ----------
        X : the matrix that this result was computed from
        more : int
            Number of components to add.
        cardinality : int or sequence of `more` ints, optional
            `soppca` only. Default: that of the earlier components, if it was one number.
        callback : callable, optional
            As in `oppca`.

        Returns
        -------
        StructuredPCAResult
        """
        return _extended(self, X, more, cardinality, callback)

    def __repr__(self) -> str:
        p, r = self.loadings.shape
        sizes = "" if self.method == "oppca" else f", cardinality={self.cardinality.tolist()}"
        return (
            f"StructuredPCAResult(method={self.method!r}, p={p}, {counted(r, 'component')}{sizes}, "
            f"noise_variance={self.noise_variance:.6g}, "
            f"{100 * float(self.explained_variance_ratio.sum()):.1f} % of the variance explained)"
        )


@shared_parameters
def oppca(
    X: MatrixLike, n_components: int | None, *,
    prior_covariance: MatrixLike | None = None, prior_precision: MatrixLike | None = None,
    deflation: Literal["orthogonal", "naive"] = "orthogonal", max_iter: int = 500, tol: float | None = None,
    kind: Kind = "data", center: bool = True, scale: bool = False, sample_weight: Weights = None,
    n_samples: int | None = None, rng: RandomSource = None, callback: Callback | None = None,
) -> StructuredPCAResult:  # fmt: skip
    """Probabilistic components with a prior, one at a time, with orthogonal posterior means.

    Maximizes, over normal distributions q of the loading w, weights x and the noise variance s2, the free
    energy of `T = x w' + noise`, w ~ N(0, C), by variational EM; T is the centered data, deflated by the
    earlier components. Each q is supported on the complement of the earlier means. With C = I the loadings
    are the principal components.

    Parameters
    ----------
    X : array-like of shape (n, p) or sparse matrix
        Data, one row per sample; with ``kind="covariance"`` a symmetric positive semidefinite (p, p) matrix. Not
        copied.
    n_components : int or None
        r, at most the rank of the centered data. None: as many as raise the free energy, those before the
        first without `gain`, but one at least.
    prior_covariance : array-like of shape (p, p), optional
        C, nonsingular. Only its shape matters: C times a number gives the same loadings.
    prior_precision : sparse matrix or array-like of shape (p, p), optional
        C^-1, sparse for large p; it may be singular, as `grid_laplacian` is: its smallest eigenvalue is
        raised to 1e-6 of the mean of its diagonal, so that the prior is proper. Beyond 1000 variables a
        sparse one is never decomposed; that much is added to its diagonal, and traces and determinants are
        estimated from random vectors. Default of both: C = I.
    deflation : {"orthogonal", "naive"}, default "orthogonal"
        "naive" subtracts `x m'` from the data and asks no more of later components.
    max_iter : int, default 500
        Iterations of each component.
    tol : float, optional
        A component ends when an EM step changes the direction of its mean by at most `tol`, or can
        raise the free energy no more. Default 1e-8 for float64, 1e-4 for float32.
    kind : {"data", "covariance"}, default "data"
    center : bool, default True
        Subtract the column means, implicitly. Ignored for a covariance.
    scale : bool, default False
        Divide each column by its standard deviation, implicitly. For a covariance: use the correlation.
    sample_weight : array-like of shape (n,), optional
        How many samples each row stands for, not negative: the components are those of rows repeated that many times.
    n_samples : int, optional
        What a covariance, divided by `n_samples - 1`, was computed from; needed to weigh it against the prior.
    rng : None, int or numpy Generator, optional
        For the start, and for the random vectors; None is a fixed seed.
    {each_iteration}

    Returns
    -------
    StructuredPCAResult
        `loadings` (p, r), `means` and their posteriors, `noise_variance`, `explained_variance` (r,), `scores`
        (n, r), `free_energy`; `.transform`, `.extend`, `.posterior_covariance`.

    Raises
    ------
    ValueError
        For a singular or indefinite prior covariance, an indefinite precision, more components than the
        rank, a single sample, no variance, a constant variable with ``scale=True``, NaN, infinite or empty
        input, or an option out of range.
    TypeError
        For input that is not real numbers, masked arrays, or an option of the wrong type.

    References
    ----------
    R. Khanna, J. Ghosh, R. Poldrack and O. Koyejo (2017). A deflation method for structured probabilistic
    PCA. SIAM International Conference on Data Mining, equations 3.9 and 3.10. S. Ubaru, J. Chen and Y. Saad
    (2017). Fast estimation of tr(f(A)) via stochastic Lanczos quadrature. SIAM Journal on Matrix Analysis
    and Applications 38(4), 1075-1099.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> rng = np.random.default_rng(0)
    >>> bump = np.exp(-0.5 * ((np.arange(60) - 20) / 5) ** 2)
    >>> X = np.outer(rng.standard_normal(15), bump) + rng.standard_normal((15, 60))
    >>> smooth = spcacore.oppca(X, 1, prior_precision=spcacore.grid_laplacian((60,)))
    >>> plain = spcacore.oppca(X, 1)
    >>> [round(float(bump @ v / np.linalg.norm(bump)), 2) for v in (smooth.loadings[:, 0], plain.loadings[:, 0])]
    [0.94, 0.66]
    """  # noqa: E501
    options = {"prior_covariance": prior_covariance, "prior_precision": prior_precision, "max_iter": max_iter}
    options |= {"tol": tol, "center": center, "scale": scale, "n_samples": n_samples, "seed": as_seed(rng)}
    options["sample_weight"] = sample_weight
    check_choice(deflation, "deflation", _DEFLATIONS[:2])
    return _fit(X, n_components, None, "oppca", deflation, kind, options, [], callback)


def soppca(
    X: MatrixLike, n_components: int | None, cardinality: int | ArrayLike, *,
    prior_covariance: MatrixLike | None = None, prior_precision: MatrixLike | None = None,
    deflation: Literal["orthogonal", "naive", "constrained"] = "orthogonal", max_iter: int = 500,
    tol: float | None = None, include: Variables = None, exclude: Variables = None, groups: Groups = None,
    kind: Kind = "data", center: bool = True, scale: bool = False, sample_weight: Weights = None,
    n_samples: int | None = None, rng: RandomSource = None, callback: Callback | None = None,
) -> StructuredPCAResult:  # fmt: skip
    """Sparse probabilistic components with a prior, one at a time.

    As `oppca`, with each posterior supported on k variables: those, found greedily, that maximize
    `r_S'(K_S)^-1 r_S - log det K_S`, `r = Z'x/s2`, which is the free energy of the best posterior on S. With
    C = I this is truncated power with orthogonalized projection deflation.

    Parameters
    ----------
    X, n_components
        As in `oppca`.
    cardinality : int or sequence of r ints
        k, the number of nonzeros of each loading.
    prior_covariance, prior_precision : optional
        As in `oppca`. Restricted to a support S, the precision is `(C^-1)_SS`: what is left out is zero.
    deflation : {"orthogonal", "naive", "constrained"}, default "orthogonal"
        "orthogonal" projects the data onto the complement of the earlier means, which leaves later means
        free to overlap with them; "constrained" makes the means orthogonal, too; "naive" subtracts `x m'`.
    max_iter, tol, kind, center, scale, sample_weight, n_samples, rng, callback
        As in `oppca`. `max_iter` bounds the iterations on one support, and the changes of support.
    include, exclude, groups : optional
        As in `sparse_pca`; the cardinality counts groups. The loading of an excluded variable is zero, as of
        any outside a support.

    Returns
    -------
    StructuredPCAResult
        As of `oppca`; `cardinality` (r,) has the nonzeros of each loading.

    Raises
    ------
    ValueError, TypeError
        As in `oppca`, and for a cardinality out of range.

    References
    ----------
    R. Khanna, J. Ghosh, R. Poldrack and O. Koyejo (2017). A deflation method for structured probabilistic
    PCA. SIAM International Conference on Data Mining, equations 4.14 and 4.15. R. Khanna, J. Ghosh,
    R. Poldrack and O. Koyejo (2015). Sparse submodular probabilistic PCA. AISTATS.

    Examples
    --------
    >>> import spcacore
    >>> X, planted = spcacore.datasets.make_spiked(200, 500, rng=0)
    >>> result = spcacore.soppca(X, 2, 10)
    >>> bool(((result.loadings != 0) == (planted != 0)).all())
    True
    """
    options = {"prior_covariance": prior_covariance, "prior_precision": prior_precision, "max_iter": max_iter}
    options |= {"tol": tol, "center": center, "scale": scale, "n_samples": n_samples, "seed": as_seed(rng)}
    options["sample_weight"] = sample_weight
    check_choice(deflation, "deflation", _DEFLATIONS)
    known = {"choice": knowledge(include, exclude, groups, False)}
    return _fit(X, n_components, cardinality, "soppca", deflation, kind, options | known, [], callback)


# ---- several components -----------------------------------------------------------------------------


def _problem_of(X: Any, kind: str, options: dict[str, Any]) -> Problem:
    treatment = {name: options[name] for name in ("center", "scale", "sample_weight")}
    return as_problem(X, kind=kind, choice=options.get("choice"), **treatment)


def _fit(
    X: Any, n_components: Any, cardinality: Any, method: str, deflation: str, kind: str,
    options: dict[str, Any], known: list[Component], callback: Callback | None,
) -> StructuredPCAResult:  # fmt: skip
    """The components after the known ones, and the result of all."""
    problem = _problem_of(X, kind, options)
    options = options | {"choice": problem.choice}
    if options["sample_weight"] is not None:
        options["sample_weight"] = np.array(options["sample_weight"])  # the caller's may change
    max_iter = integer(options["max_iter"], "max_iter", 1)
    tol = options["tol"]
    tol = STRUCTURED_TOL.of(problem.operator.dtype) if tol is None else number(tol, "tol", 0)
    hook = check_callback(callback)
    n = samples_of(problem, options["n_samples"])
    if n is None:
        raise ValueError("kind='covariance' needs n_samples, which says how it weighs against the prior")
    stop, most = n_components is None, min(problem.p, n if problem.n_samples is None else problem.n_samples)
    r = most if stop else integer(n_components, "n_components", 1, most)
    total_variance(problem)
    sizes: tuple[int, ...] | None = None
    if method == "soppca":
        sizes = per_component(
            cardinality, "cardinality", r, partial(TruncatedPower.check_sparsity, problem=problem)
        )
    prior, unit = as_prior(
        options["prior_covariance"], options["prior_precision"], problem.p, options["seed"]
    )
    if not 1 / PRIOR_UNIT < unit < PRIOR_UNIT:
        raise ValueError(
            f"the precision of the prior is about {unit:.0e}: scale the prior, as its scale is free"
        )

    def start_search(residual: Residual, t: int, report: Callable[[], None]) -> Search:
        return Search(problem, residual, prior, n, max_iter, tol, [options["seed"], t + 1], report)

    components = _fit_components(problem, n, r, stop, sizes, deflation, unit, start_search, known, hook)
    if stop and components and not components[0].gain > 0:
        warn("not even the first component raises the free energy")
    unconverged = [t for t, c in enumerate(components) if not c.converged]
    if unconverged:
        warn(f"component{'s' * (len(unconverged) > 1)} {', '.join(map(str, unconverged))} not converged in "
            f"{counted(max_iter, 'iteration')}")  # fmt: skip
    return _result(X, problem, components, n, method, deflation, kind, options | {"cardinality": sizes})


def _fit_components(
    problem: Problem,
    n: float,
    r: int,
    stop: bool,
    sizes: tuple[int, ...] | None,
    deflation: str,
    unit: float,
    start_search: Callable[[Residual, int, Callable[[], None]], Search],
    known: list[Component],
    hook: Hook | None,
) -> list[Component]:
    """Up to r components, each in the scale of the caller's prior, whose precision is `unit` times L.

    With `stop`, no more than raise the free energy, but one at least.
    """
    op, root = problem.operator, math.sqrt(unit)
    residual = Residual(problem, n, deflation != "naive")
    removal = DEFLATIONS["orthogonalized_projection" if residual.orthogonal else "naive"]
    state = DeflatedOperator.from_problem(problem, removal)
    sparse_state: DeflatedOperator | None = state
    rounding = (30 if op.single else 1e3) * float(np.finfo(op.dtype).eps)
    components: list[Component] = []
    for t in range(r):
        if residual.square <= rounding * residual.total:
            if stop:
                break
            raise ValueError(f"X has rank {t}, to rounding, so n_components must be at most {t}, not {r}")
        if t < len(known):
            new = known[t]
        else:
            try:
                search = start_search(residual, t, _step_counter(hook, t, r))
                if sizes is None:
                    new = search.on_all(
                        residual.basis if deflation == "orthogonal" else residual.basis[:, :0]
                    )
                else:
                    new = search.on_support(sizes[t], sparse_state, deflation == "constrained")
            except Ended:
                break
            new = replace(
                new, m=fix_sign(new.m) / root, a=new.a * unit, trace=new.trace / unit,
                free_energy=new.free_energy - n * problem.n_variables * problem.exponent * math.log(2) / 2,
                gain=search.gain(float(new.free_energy[-1]), problem.p if sizes is None else sizes[t]),
            )  # fmt: skip
        if stop and components and not new.gain > 0:
            break
        components.append(new)
        residual.remove(new.m * root, (float(new.m @ new.m) + new.trace) * unit)
        if sizes is not None and sparse_state is not None and t + 1 < r:
            index = np.flatnonzero(new.m)
            loading = new.m[index] / np.linalg.norm(new.m[index])
            sparse_state = sparse_state.deflate(index, loading.astype(op.dtype), problem.noise)
        if hook is not None and t >= len(known):
            loading = new.m / np.linalg.norm(new.m)
            variance = float(problem.in_units(loading @ op.apply(None, loading.astype(op.dtype))))
            if hook(Progress(t, r, len(new.free_energy), variance)):
                break
    return components


def _step_counter(hook: Hook | None, t: int, r: int) -> Callable[[], None]:
    """To be called after each iteration of component t."""
    steps = 0

    def report() -> None:
        nonlocal steps
        steps += 1
        if hook is not None and hook(Progress(t, r, steps)):
            raise Ended

    return report


def _result(
    X: Any, problem: Problem, components: list[Component], n: float, method: str, deflation: str, kind: str,
    options: dict[str, Any],
) -> StructuredPCAResult:  # fmt: skip
    op, p, r = problem.operator, problem.p, len(components)
    means, loadings = np.zeros((p, r)), np.zeros((p, r), op.dtype)
    for t, c in enumerate(components):
        means[:, t] = c.m
        loadings[:, t] = (c.m / np.linalg.norm(c.m)).astype(op.dtype)
    variances = operator_variances(problem, loadings.astype(np.float64), "cumulative")
    assert problem.diagonal is not None
    explained = np.asarray(problem.in_units(variances))
    warn_out_of_range(variances, explained)
    noises = np.array([float(problem.in_units(c.noise)) for c in components])
    result = StructuredPCAResult(
        loadings=loadings,
        means=means,
        posterior_precision=np.array([c.a for c in components]),
        posterior_trace=np.array([c.trace for c in components]),
        scores=None,
        noise_variance=float(noises[-1]) if r else math.nan,
        noise_variances=noises,
        explained_variance=explained,
        explained_variance_ratio=variances / float(problem.diagonal.sum()),
        total_variance=float(problem.total_variance or 0.0),
        free_energy=tuple(c.free_energy for c in components),
        gain=np.array([c.gain for c in components]),
        cardinality=np.array([np.count_nonzero(v) for v in loadings.T], np.intp),
        mean=problem.mean,
        scale=problem.scale,
        n_iter=np.array([len(c.free_energy) for c in components], np.intp),
        converged=np.array([c.converged for c in components], np.bool_),
        method=method,
        deflation=deflation,
        kind=kind,
        n_samples=int(n) if problem.n_samples is None else problem.n_samples,
        names=problem.names,
        options=options,
    )
    return result if op.symmetric_form else replace(result, scores=result._weights(X))


def _extended(
    result: StructuredPCAResult, X: Any, more: Any, cardinality: Any, callback: Callback | None
) -> StructuredPCAResult:
    X = X if result.kind == "covariance" else aligned(X, result.names)
    before, p = result.n_components, len(result.loadings)
    more = integer(more, "more", 1, min(p, result.n_samples) - before)
    options = {name: value for name, value in result.options.items() if name != "cardinality"}
    sizes: Any = None
    if result.method == "soppca":
        earlier = result.options["cardinality"][:before]
        if cardinality is None:
            if len(set(earlier)) != 1:
                raise ValueError("cardinality must be given: the earlier components have different ones")
            cardinality = earlier[0]
        sizes = earlier + per_component(
            cardinality, "cardinality", more, lambda v, name: integer(v, name, 1, p)
        )
    elif cardinality is not None:
        raise TypeError("oppca takes no cardinality")
    problem = _problem_of(X, result.kind, options)
    rows = p if result.kind == "covariance" else result.n_samples
    shape = problem.p if problem.n_samples is None else problem.n_samples, problem.p
    if shape != (rows, p):
        raise ValueError(f"X has shape {shape}; this result came from one of {(rows, p)}")
    known = [
        Component(
            result.means[:, t], float(result.posterior_precision[t]), float(result.posterior_trace[t]),
            float(problem.from_units(result.noise_variances[t])), result.free_energy[t],
            bool(result.converged[t]), float(result.gain[t]),
        )
        for t in range(before)
    ]  # fmt: skip
    return _fit(
        X, before + more, sizes, result.method, result.deflation, result.kind, options, known, callback
    )
