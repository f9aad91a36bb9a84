"""Probabilistic components one at a time, with a prior that says what loadings look like.

The centered data are `T = x w' + noise` with weights x (n), noise of variance s2, and a loading w with prior
N(0, C). Variational EM raises the free energy

    F = E_q log p(T | x, w, s2) + E_q log p(w) + entropy of q = log p(T | x, s2) at the best q

over normal q(w) = N(m, S), x and s2 by turns. With Z the deflated data, `K = (|x|^2/s2) I + C^-1`, and Q an
orthonormal basis of the earlier means:

    S = K^-1 - K^-1 Q (Q'K^-1 Q)^-1 Q'K^-1,   m = S Z'x/s2,
    x = Z m/e,   s2 = (|Z|^2 - m'Z'Z m/e)/(n p),   e = m'm + Tr S.

All of this depends on Z through Z'Z alone, so an iteration needs one product with the covariance matrix.

Two steps accelerate the iteration and never lower F. The loading w is rescaled so that E w'C^-1 w is its
dimension, and x inversely. And m is replaced by the fixed point in the span of all m so far, if this raises
F. The rest of the span begins the span of the next component. If there are many iterations, as among noise,
the span also gets steps by the inverse of Z'Z - t K, which serves all later components (linalg/eigen). All
components at once, without deflation, are in `under_prior`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import field, replace
from functools import partial
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg

from .._limits import PRIOR_UNIT, STRUCTURED_TOL
from .._messages import counted, warn, warn_not_converged
from .._records import frozen_record
from .._types import AnyArray, Array, Index, Kind, Mask, MatrixLike, Weights
from .._validation import (
    aligned,
    as_seed,
    check_choice,
    framed,
    integer,
    iteration_limits,
    per_component,
)
from ..choice import Choice, Prior
from ..linalg.orthogonal import column_span, orthonormal, symmetrized, unit_columns
from ..operators.inputs import as_fitted, as_problem, in_order
from ..operators.problem import Problem, usual_cardinality
from ..operators.transform import scores
from ..progress import Callback, check_callback
from ..solvers.base import check_sparsity, shared_parameters
from ..solvers.solution import ProgressHook
from ..solvers.truncated_power import TruncatedPower
from ..supports.admissible import knowledge
from .priors import as_prior, independent, variances_of
from .probabilistic import samples_of, total_variance
from .residual import Residual
from .under_prior import fit_at_once, fit_in_turn
from .variance import VariancesResult, operator_variances
from .variational import Component, Search

_Sparse: TypeAlias = Literal["orthogonal", "naive", "constrained"]
_Dense: TypeAlias = Literal["orthogonal", "naive", "joint"]


@shared_parameters
@frozen_record(kw_only=True)
class StructuredPCAResult(VariancesResult):
    """Components with their posteriors, from `oppca` or `soppca`.

    `transform` gives scores, and `reconstruct` the sum of `means` weighted by scores.

    Attributes
    ----------
    loadings : ndarray of shape (p, r)
        The posterior means at unit length. In each, the entry of largest magnitude is positive.
    means : ndarray of shape (p, r)
        The posterior means, on the scale of the prior.
    posterior_precision : ndarray of shape (r,)
        The posterior of component t has precision `a_t I + C^-1`; this is a. The precision is restricted to
        the support and, if means are orthogonal, to the complement of the earlier ones.
    posterior_trace : ndarray of shape (r,)
        Trace of each posterior covariance.
    scores : ndarray of shape (n, r) or None
        The scores x of the samples; None for a covariance.
    noise_variance, noise_variances : float and ndarray of shape (r,)
        s2 after the last (without any, of all the data) and after each component, in units of the covariance.
    explained_variance : ndarray of shape (r,)
        Additional variance of each loading given the earlier ones (`explained_variance`, "cumulative").
    explained_variance_ratio : ndarray of shape (r,)
    total_variance : float
    free_energy : tuple of r ndarrays
        F after each iteration; it never falls, and is inf where it is unbounded. The prior is restricted like
        the posterior, so that `select_prior` can compare priors. Multiples of C give the same F. With
        ``deflation="joint"`` all r are the log-density of the data under all components.
    gain : ndarray of shape (r,)
        The last F minus the F of noise alone, minus log(p)/2 for each of the n scores, and for `soppca` minus
        the logarithm of the number of supports. A component with a positive gain is worth keeping. With
        ``deflation="joint"`` each has an equal part of the gain of all.
    cardinality : ndarray of shape (r,), int
    mean, scale : ndarray of shape (p,) or None
        What was subtracted from each column, and what then divided it. None if not applied.
    given : tuple of str
        As in `SparsePCAResult`.
    n_iter, converged : ndarray of shape (r,), int and bool
    method : {"oppca", "soppca"}
    deflation, kind : str
    n_samples : int
    names : tuple of str or None
        Names of the variables, if the input had any.
    options : dict
        The other options of the call, with the prior, which `extend` uses again.

    {oppca_example}
    >>> result.means.shape, result.scores.shape
    ((30, 2), (100, 2))
    """

    means: Array
    posterior_precision: Array
    posterior_trace: Array
    noise_variance: float
    noise_variances: Array
    free_energy: tuple[Array, ...]
    gain: Array
    n_iter: Index
    converged: Mask
    deflation: str
    n_samples: int
    options: dict[str, Any] = field(repr=False)

    def transform(self, X: MatrixLike) -> AnyArray:
        """Scores of the rows of X. For the fitted data these are `scores`.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (m, p)
            A result from a covariance has no mean and uses X as it is. Named columns are matched by name.

        Returns
        -------
        ndarray of shape (m, r); for a dataframe of pandas or polars, a dataframe with its index

        {oppca_example}
        >>> np.allclose(result.transform(X), result.scores)
        True
        """
        return framed(X, self._weights(aligned(X, self.names)))

    def _rows_of_scores(self) -> AnyArray:
        return self.means.T

    def _weights(self, X: Any) -> AnyArray:
        """Return the scores of rows: the weights X B that the model gives them."""
        B = _regressors(self.means, self.posterior_trace, self.deflation)
        return scores(X, B.astype(self.loadings.dtype), self.mean, self.scale)

    def posterior_covariance(self, component: int, index: Iterable[int] | None = None) -> Array:
        """Covariance of the posterior of one component.

        Parameters
        ----------
        component : int
        index : array-like of int, optional
            The variables to return. Default: the support; for `oppca` all variables.

        Returns
        -------
        ndarray of shape (len(index), len(index))
            Zero for a variable outside of the support.

        {oppca_example}
        >>> result.posterior_covariance(0, [3, 4]).shape
        (2, 2)
        """
        # The support, and the precision K = a I + L there
        t = integer(component, "component", 0, self.n_components - 1)
        p = len(self.loadings)
        support = np.arange(p) if self.method == "oppca" else np.flatnonzero(self.means[:, t])
        chosen = support if index is None else [integer(j, "index", 0, p - 1) for j in index]
        prior, unit = as_prior(self.options["prior"], p, self.names, self.options["seed"])
        signs = None if self.method == "oppca" else self.options["choice"].signs
        inner = prior if len(support) == p else prior.restricted(support)
        a = float(self.posterior_precision[t] / unit)
        if a == math.inf:
            return np.zeros(2 * (len(chosen),))
        E = np.equal.outer(support, chosen).astype(np.float64)
        if signs is not None:
            m = self.means[support, t] * math.sqrt(unit)
            return E.T @ (variances_of(m, a + inner.diagonal, signs[support])[:, None] * E) / unit
        # K^-1 or, with the earlier means Q, K^-1 - K^-1 Q (Q'K^-1 Q)^-1 Q'K^-1
        columns = inner.solve(a, E)
        dense = self.method == "oppca" and self.deflation == "orthogonal"
        if t > 0 and (dense or self.deflation == "constrained"):  # orthogonal to the earlier means
            Q = column_span(linalg.qr(self.means[:, :t], mode="economic")[0][support])
            Y = inner.solve(a, Q)
            columns -= Y @ np.linalg.solve(Q.T @ Y, Y.T @ E)
        out = E.T @ columns / unit
        return symmetrized(out)

    def extend(self, X: MatrixLike, more: int, *, cardinality: int | ArrayLike | None = None,
               callback: Callback | None = None) -> StructuredPCAResult:  # fmt: skip
        """Add components without computing the first ones again; the result is as by one call, to `tol`.

        Parameters
        ----------
        X : the matrix that this result was computed from
        more : int
            Number of components to add.
        cardinality : int or sequence of `more` ints, optional
            `soppca` only. Default: the earlier one, if it was one number.
        callback : callable or True, optional
            As in `oppca`.

        Returns
        -------
        StructuredPCAResult

        {oppca_example}
        >>> result.extend(X, 1).loadings.shape
        (30, 3)
        """
        if self.deflation == "joint":
            raise ValueError("components found jointly change with their number: fit anew, with more")
        X = as_fitted(X, self.kind, self.names)
        before, p = self.n_components, len(self.loadings)
        more = integer(more, "more", 1, min(p, self.n_samples) - before)
        options = {name: value for name, value in self.options.items() if name != "cardinality"}
        sizes: Any = None
        if self.method == "soppca":
            earlier = self.options["cardinality"][:before]
            if cardinality is None:
                if len(set(earlier)) != 1:
                    raise ValueError("cardinality must be given: the earlier components have different ones")
                cardinality = earlier[0]
            sizes = earlier + per_component(
                cardinality, "cardinality", more, lambda v, name: integer(v, name, 1, p)
            )
        elif cardinality is not None:
            raise TypeError("oppca takes no cardinality")
        known = [
            Component(
                self.means[:, t], float(self.posterior_precision[t]), float(self.posterior_trace[t]),
                float(self.noise_variances[t]), self.free_energy[t], bool(self.converged[t]),
                float(self.gain[t]),
            )
            for t in range(before)
        ]  # fmt: skip
        return _fit(X, before + more, sizes, callback, known, **options)

    def _facts(self) -> list[str]:
        sizes = self._sizes()[: 2 if self.method == "oppca" else None]
        noise = f"noise_variance={self.noise_variance:.6g}"
        return [f"method={self.method!r}", *sizes, noise, *self._share()]


@shared_parameters
def oppca(
    X: MatrixLike, n_components: int | None, *,
    prior: Prior | None = None,
    deflation: _Dense = "orthogonal", max_iter: int = 500,
    tol: float | None = None,
    kind: Kind = "data", center: bool = True, scale: bool = False, sample_weight: Weights = None,
    n_samples: int | None = None, callback: Callback | None = None,
) -> StructuredPCAResult:  # fmt: skip
    """Probabilistic components with a prior, one at a time, with orthogonal posterior means.

    The model is `T = x w' + noise`, w ~ N(0, C), where T is the centered data, deflated by the earlier
    components. Variational EM maximizes its free energy over normal distributions q of the loading w, scores
    x and the noise variance s2. Each q is supported on the complement of the earlier means. With C = I the
    loadings are the principal components.

    Parameters
    ----------
    X : array-like of shape (n, p) or sparse matrix
        Data, one row per sample; with ``kind="covariance"`` a positive semidefinite matrix. Not copied.
    n_components : int or None
        r, at most the rank of the centered data. None: stop before the first component without a positive
        `gain`, but return at least one. Where the last component explains all that is left, as at the rank it
        may, no variance is left for the noise. The free energy is then unbounded, with a RuntimeWarning, and
        the component is the limit as the noise goes to 0.
    prior : Prior, optional
        The covariance C of a loading, or its inverse, as in ``Prior(precision=L)``. Default: C = I.
    deflation : {"orthogonal", "naive", "joint"}, default "orthogonal"
        "orthogonal" projects the data onto the complement of the earlier means. "naive" subtracts `x m'`, and
        does not make later means orthogonal. The paper subtracts, and restricts the later posteriors; the
        rows "soPPCA, prior" and "naive deflation" of docs/measured/probabilistic.md differ by at most 0.3 of
        a percent of the variance. "joint" does not deflate: it finds all components at once, see Notes.
    max_iter : int, default 500
        Iterations of each component, or of all together if they are found jointly.
    tol : float, optional
        The iteration for a component ends when an EM step changes the direction of its mean by at most `tol`,
        or cannot raise the free energy. Default 1e-8 for float64, 1e-4 for float32.
    {switches}
    sample_weight : array-like of shape (n,), optional
        How many samples each row stands for, at least 0. Components are the same as if each row were repeated
        that often.
    n_samples : int, optional
        Number of samples behind a covariance with divisor `n_samples - 1`; it weighs data against the prior.
    {each_iteration}

    Returns
    -------
    StructuredPCAResult
        `loadings` (p, r), `means` and their posteriors, `noise_variance`, `explained_variance` (r,), `scores`
        (n, r), `free_energy`; methods `transform`, `extend` and `posterior_covariance`.

    Raises
    ------
    ValueError
        For a singular or indefinite prior covariance, an indefinite precision, more components than the
        rank, a single sample, no variance, NaN, infinite or empty input, or an option out of range.
    {type_error}

    Notes
    -----
    Jointly, the model is `T = X W + noise`, where the rows of W (r x p) are independent N(0, C). EM maximizes
    the density of T over X and the noise variance, with W integrated out; this density stands in
    `free_energy`. X is determined up to a rotation. It is chosen so that the scores are orthogonal, because the
    posteriors of the rows are independent then. The means need not be orthogonal, and change with r. With
    C = I the loadings are the principal components, and `scores.T @ scores` has the r leading eigenvalues of
    `T @ T.T / p`, each less the noise variance.

    References
    ----------
    R. Khanna, J. Ghosh, R. Poldrack and O. Koyejo (2017). A deflation method for structured probabilistic
    PCA. SIAM International Conference on Data Mining, equations 3.9 and 3.10; "joint" is the model of its
    section 3 without deflation. M. E. Tipping and C. M. Bishop (1999). Probabilistic principal component
    analysis. Journal of the Royal Statistical Society B 61(3), 611-622 (joint EM for C = I). S. Ubaru, J. Chen and Y. Saad
    (2017). Fast estimation of tr(f(A)) via stochastic Lanczos quadrature. SIAM Journal on Matrix Analysis
    and Applications 38(4), 1075-1099.

    Examples
    --------
    >>> import numpy as np, spcacore
    >>> rng = np.random.default_rng(0)
    >>> bump = np.exp(-0.5 * ((np.arange(60) - 20) / 5) ** 2)
    >>> X = np.outer(rng.standard_normal(15), bump) + rng.standard_normal((15, 60))
    >>> smooth = spcacore.oppca(X, 1, prior=spcacore.Prior(precision=spcacore.grid_laplacian((60,))))
    >>> plain = spcacore.oppca(X, 1)
    >>> [round(float(bump @ v / np.linalg.norm(bump)), 2) for v in (smooth.loadings[:, 0], plain.loadings[:, 0])]
    [0.94, 0.66]
    """  # noqa: E501
    return _fit(
        X, n_components, None, callback, method="oppca",
        deflation=check_choice(deflation, "deflation", _Dense), prior=prior, max_iter=max_iter, tol=tol,
        kind=kind, center=center, scale=scale, sample_weight=sample_weight, n_samples=n_samples,
    )  # fmt: skip


def soppca(
    X: MatrixLike, n_components: int | None, cardinality: int | ArrayLike | None = None, *,
    prior: Prior | None = None, choice: Choice | None = None,
    deflation: _Sparse = "orthogonal", max_iter: int = 500,
    tol: float | None = None,
    kind: Kind = "data", center: bool = True, scale: bool = False, sample_weight: Weights = None,
    n_samples: int | None = None, callback: Callback | None = None,
) -> StructuredPCAResult:  # fmt: skip
    """Sparse probabilistic components with a prior, one at a time.

    Like `oppca`, but each posterior is supported on k variables. A greedy search for these maximizes the free
    energy of the best posterior on a support S, `r_S'(K_S)^-1 r_S - log det K_S`, `r = Z'x/s2`. With C = I
    this is truncated power with orthogonalized projection deflation.

    Parameters
    ----------
    X, n_components
        As in `oppca`.
    cardinality : int or sequence of r ints, optional
        k, the number of nonzeros of each loading, or of groups. Default: the square root of the number of
        variables, rounded up.
    prior : Prior, optional
        As in `oppca`. On a support S the precision is `(C^-1)_SS`: all other loadings are zero.
    choice : Choice, optional
        What you know about the variables. The loading of an excluded variable is zero. Signs need a diagonal
        prior, as the default is, see Notes.
    deflation : {"orthogonal", "naive", "constrained"}, default "orthogonal"
        "orthogonal" projects the data onto the complement of the earlier means; later means may still
        overlap with them. "constrained" makes the means orthogonal, too, and takes no signs. "naive"
        subtracts `x m'`.
    max_iter, tol, kind, center, scale, sample_weight, n_samples, callback
        As in `oppca`. `max_iter` limits the iterations on one support, and the changes of support.

    Returns
    -------
    StructuredPCAResult
        As from `oppca`; `cardinality` (r,) has the number of nonzeros of each loading.

    Raises
    ------
    ValueError, TypeError
        As in `oppca`, and for a cardinality out of range.

    Notes
    -----
    The posterior on S is the information projection of the one on all variables, N(m, K^-1): the restriction
    `N(D (Km)_S, D)`, ``D = inv(K[np.ix_(S, S)])``. Where signs are given it is restricted to these, too.
    Under a diagonal prior the loadings are independent normal
    variables, each truncated at 0: means, variances and mass have closed forms, and F is exact. For dependent
    loadings, the mass on given signs has no closed form, so other priors are refused.

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
    known = knowledge(choice)
    if check_choice(deflation, "deflation", _Sparse) == "constrained" and known.get("signs") is not None:
        raise ValueError(
            "signs cannot be combined with deflation='constrained': orthogonal loadings of the same "
            "variables cannot all have given signs"
        )
    return _fit(
        X, n_components, cardinality, callback, method="soppca", deflation=deflation, choice=known,
        prior=prior, max_iter=max_iter, tol=tol, kind=kind, center=center, scale=scale,
        sample_weight=sample_weight, n_samples=n_samples,
    )  # fmt: skip


# ---- several components -----------------------------------------------------------------------------


def _fit(
    X: Any, n_components: Any, cardinality: Any, callback: Callback | None, known: Sequence[Component] = (),
    **options: Any,
) -> StructuredPCAResult:  # fmt: skip
    """Find the components after the `known` ones, and return the result of all.

    `options` are those of the call; the result keeps them, because `extend` repeats them.
    """
    # Options and data
    given, method, deflation = options["prior"], options["method"], options["deflation"]
    if given is not None and not isinstance(given, Prior):
        raise TypeError(f"prior must be Prior(covariance=...) or Prior(precision=...), not {given!r:.60}")
    if "seed" not in options:  # a number, which can be kept, for the source of random numbers
        options["seed"] = as_seed(None if given is None else given.rng)
    names = ("center", "scale", "sample_weight")
    treatment = dict(zip(names, in_order(X, *(options[name] for name in names)), strict=True))
    problem = as_problem(X, kind=options["kind"], choice=options.get("choice"), form=True, **treatment)
    shape = problem.p if problem.n_samples is None else problem.n_samples, problem.p
    if options.setdefault("shape", shape) != shape:
        raise ValueError(f"X has shape {shape}; this result came from data of shape {options['shape']}")
    options |= {**treatment, "choice": problem.supports}
    if options["sample_weight"] is not None:
        options["sample_weight"] = np.array(options["sample_weight"])  # the caller's may change
    # How many components, and of which size
    usual = STRUCTURED_TOL.of(problem.operator.dtype)
    max_iter, tol = iteration_limits(options["max_iter"], options["tol"], usual)
    hook = check_callback(callback)
    n = samples_of(problem, options["n_samples"])
    if n is None:
        raise ValueError("kind='covariance' needs n_samples, to weigh the data against the prior")
    if n_components is None and deflation == "joint":
        raise ValueError("deflation='joint' finds all components at once, so n_components cannot be None")
    stop, most = n_components is None, min(problem.p, n if problem.n_samples is None else problem.n_samples)
    r = most if stop else integer(n_components, "n_components", 1, most)
    total_variance(problem)
    sizes: tuple[int, ...] | None = None
    if method == "soppca":
        cardinality = usual_cardinality(problem) if cardinality is None else cardinality
        check = partial(check_sparsity, TruncatedPower, problem=problem)
        sizes = per_component(cardinality, "cardinality", r, check)
    # The prior
    prior, unit = as_prior(given, problem.p, problem.names, options["seed"])
    if not 1 / PRIOR_UNIT < unit < PRIOR_UNIT:
        raise ValueError(
            f"the precision of the prior is about {unit:.0e}: rescale it; multiples give the same loadings"
        )
    if problem.supports.signs is not None and not independent(prior):
        raise ValueError(
            "signs need a diagonal prior, as the default is: the mass of dependent loadings on given signs "
            "has no closed form"
        )

    # The search
    if deflation == "joint":
        components = fit_at_once(problem, n, r, prior, unit, max_iter, tol, hook)
        max_iter = len(components[0].free_energy)
    else:
        basis = prior if sizes is None else None
        residual = Residual(problem, n, deflation != "naive", 8 if stop else r, basis)
        search = Search(residual, prior, max_iter, tol, [options["seed"]], ProgressHook(hook, 0, r))
        components = fit_in_turn(search, r, stop, sizes, deflation, unit, known, hook)
    if stop and components and not components[0].gain > 0:
        warn("not even the first component raises the free energy")
    warn_not_converged([c.converged for c in components], counted(max_iter, "iteration"))
    return _result(X, problem, components, n, options | {"cardinality": sizes})


def _result(
    X: Any, problem: Problem, components: list[Component], n: float, options: dict[str, Any]
) -> StructuredPCAResult:
    """Return the result for the components."""
    op, r = problem.operator, len(components)
    means = np.array([c.m for c in components]).reshape(r, problem.p).T.copy()
    numbers = np.array([(c.a, c.trace, c.noise, c.gain) for c in components]).reshape(r, 4).T.copy()
    loadings = unit_columns(means).astype(op.dtype)
    variances = operator_variances(problem, loadings.astype(np.float64), "cumulative")
    total = problem.total_variance or 0.0
    result = StructuredPCAResult.of(
        problem,
        loadings,
        variances,
        means=means,
        posterior_precision=numbers[0],
        posterior_trace=numbers[1],
        noise_variance=float(numbers[2, -1] if r else total * (n - 1) / (n * problem.n_variables)),
        noise_variances=numbers[2],
        free_energy=tuple(c.free_energy for c in components),
        gain=numbers[3],
        n_iter=np.array([len(c.free_energy) for c in components], np.intp),
        converged=np.array([c.converged for c in components], np.bool_),
        method=options["method"],
        deflation=options["deflation"],
        n_samples=int(n) if problem.n_samples is None else problem.n_samples,
        options=options,
    )
    return result if op.symmetric_form else replace(result, scores=result._weights(X))


def _regressors(means: Array, traces: Array, deflation: str) -> Array:
    """Return B with X = T B, the weights of all components, given their posterior means and Tr S."""
    G = means.T @ means
    if deflation not in ("joint", "naive"):
        Q = orthonormal(means)
        return Q * np.sum(Q * means, axis=0) / (G.diagonal() + traces)
    # Joint: B (M'M + D) = M, where D has the traces d_t. Naive: (m_t'm_t + d_t) b_t is m_t less the sum of
    # (m_s'm_t) b_s over s < t, a triangular system
    system = np.diag(traces) + (G if deflation == "joint" else np.triu(G))
    return np.asarray(np.linalg.solve(system.T, means.T).T)
