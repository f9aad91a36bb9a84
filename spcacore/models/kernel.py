"""Kernel PCA, from the kernel matrix or from random Fourier features.

With K the n x n matrix of k(x_i, x_j) and H = I - 11'/n, kernel PCA is the eigendecomposition of the doubly
centered HKH = U diag(lambda) U'. The scores are U diag(lambda)^(1/2), like those of PCA in the space that the
kernel maps to. A row y has the scores (k(y, x_i) - mean_l k(x_l, x_i))_i U diag(lambda)^(-1/2): terms that
are the same for all i vanish, because 1'U = 0 (Schoelkopf, Smola and Mueller 1998, appendix A). For the same
reason a constant may be subtracted from K. The Gaussian kernel is computed as exp(-d) - 1, which keeps its
digits where the bandwidth is large.
"""

from __future__ import annotations

import math
from dataclasses import field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._labels import joined
from .._limits import KERNEL_BYTES, SPARSE_MEAN
from .._messages import brief, counted
from .._records import filled, frozen_record
from .._types import AnyArray, Array, EigenSolver, MatrixLike, Names, RandomSource, Weights
from .._validation import (
    aligned,
    as_seed,
    check_choice,
    check_sample_weight,
    check_shape,
    column_names,
    float_type,
    framed,
    integer,
    is_sparse,
    number,
    positive,
    require_memory,
    stored,
)
from ..linalg.orthogonal import fix_signs, sign_of
from ..linalg.scaling import beyond_range, eps_of, exponent_above, largest_magnitude
from ..operators.blocks import concatenated, naming_not_finite
from ..operators.moments import column_means, merged_moments
from ..operators.problem import warn_out_of_range
from ..readable import Listing, Tabular
from ..results import check_scores
from .kernel_matrix import (
    Kernel,
    KernelFunction,
    KernelMatrix,
    Rows,
    expanded,
    large,
    leading,
    preimages,
)
from .random_features import (
    RandomFeatures,
    as_rows,
    drawn_features,
    feature_moments,
    feature_scores,
    finite_rows,
    median_distance,
    of_block,
    sampled_rows,
)

_OPTIONS: dict[str, tuple[str, ...]] = {
    "linear": (),
    "polynomial": ("degree", "gamma", "coef0"),
    "rbf": ("bandwidth",),
    "sigmoid": ("gamma", "coef0"),
    "precomputed": (),
}


@filled(
    {
        "example": """\
Examples
--------
>>> import numpy as np, spcacore
>>> X, planted = spcacore.datasets.make_spiked(60, 8, cardinality=4, variances=(9, 4), rng=0)""",
    }
)
@frozen_record
class KernelPCAResult(Tabular):
    """Components of kernel PCA, in order of their variance.

    `to_frame()` has a row for each component, from 1: eigenvalue, variance, explained_variance_ratio.

    Attributes
    ----------
    scores : ndarray of shape (n, r)
        Scores of the samples. In each column the entry of largest magnitude is positive.
    eigenvalues : ndarray of shape (r,)
        Eigenvalues of the doubly centered kernel matrix: the sum of squares of each column of scores, each as
        often as its sample weight says.
    explained_variance_ratio : ndarray of shape (r,) or None
        Eigenvalues divided by the trace of that matrix. Negative eigenvalues of an indefinite kernel count in
        the trace, so the sum may exceed 1. None if the trace is not positive.
    kernel : str
        Name of the kernel; for a callable, the name of the function.
    bandwidth, degree, gamma, coef0 : number or None
        Parameters of the kernel, as given or as found. None if the kernel has no such parameter.
    solver : {"lapack", "lanczos"}
        The algorithm that found the eigenvectors.
    coefficients : ndarray of shape (n, r), or (m, r)
        The scores of a row are its kernel with the samples (or its m features), less `kernel_mean`, times
        these coefficients.
    kernel_mean : ndarray of shape (n,), or (m,)
        Means of the columns of the kernel matrix (for "rbf" less 1), or of the features.
    features : RandomFeatures or None
        The map, if random features were used.
    total_weight : float or None
        The sum of the sample weights, if there were any.
    names : tuple of str or None
        Names of the variables (for a precomputed kernel, of the samples), if the input had any.

    {example}
    >>> result = spcacore.kernel_pca(X, 2, kernel="linear")
    >>> result.scores.shape, bool(result.explained_variance_ratio.sum() < 1)
    ((60, 2), True)
    """

    scores: AnyArray
    eigenvalues: Array
    explained_variance_ratio: Array | None
    kernel: str
    bandwidth: float | None
    degree: int | None
    gamma: float | None
    coef0: float | None
    solver: str
    coefficients: AnyArray
    kernel_mean: AnyArray
    features: RandomFeatures | None = None
    _samples: tuple[Kernel, Rows] | None = field(default=None, repr=False)
    _preimages: tuple[Kernel, Rows, AnyArray] | None = field(default=None, repr=False)
    names: Names = None
    total_weight: float | None = None

    @property
    def n_components(self) -> int:
        """Number of components."""
        return self.scores.shape[1]

    @property
    def explained_variance(self) -> Array:
        """Variance of each column of scores, `eigenvalues / (n - 1)`, n the sum of sample weights."""
        return self.eigenvalues / ((self.total_weight or len(self.scores)) - 1)

    def transform(self, X: MatrixLike) -> AnyArray:
        """Scores of new rows, centered with the means of the training rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (l, p)
            With ``kernel="precomputed"`` the kernel between new and training rows, of shape (l, n).

        Returns
        -------
        ndarray of shape (l, r); for a dataframe of pandas or polars, a dataframe with its index

        {example}
        >>> result = spcacore.kernel_pca(X, 2)
        >>> np.allclose(result.transform(X), result.scores)
        True
        """
        rows = as_rows(aligned(X, self.names))
        dtype = float_type(rows.dtype)
        if self.features is not None:
            check_shape(rows, "X", "n", len(self.features.weights))
            task = partial(feature_scores, self.features)
        else:
            assert self._samples is not None
            dtype, task = np.result_type(dtype, self.coefficients), partial(expanded, *self._samples)
        by = self.kernel_mean, self.coefficients
        return framed(X, rows.mapped(of_block, (self.n_components,), dtype, task, *by))

    def inverse_transform(self, scores: ArrayLike) -> AnyArray:
        """Approximate pre-images: rows whose scores are near the given ones.

        Uses kernel ridge regression of the training rows on their scores, with the same kernel. This needs
        the option `ridge` of `kernel_pca`.

        Parameters
        ----------
        scores : array-like of shape (l, r)

        Returns
        -------
        ndarray of shape (l, p)

        {example}
        >>> result = spcacore.kernel_pca(X, 2, kernel="linear", ridge=1e-3)
        >>> result.inverse_transform(result.scores).shape
        (60, 8)
        """
        if self._preimages is None:
            raise ValueError("pre-images need kernel_pca(.., ridge=)")
        S = check_scores(scores, self.n_components)
        kernel, rows, dual = self._preimages
        out = expanded(kernel, rows, S, np.zeros(len(dual), dual.dtype), dual)
        return out + dual.sum(axis=0) if kernel.function == "rbf" else out

    def _facts(self) -> list[str]:
        n, r = self.scores.shape
        facts = [f"kernel={brief(self.kernel)!r}"]
        for name in ("bandwidth", "degree", "gamma", "coef0"):
            if (value := getattr(self, name)) is not None:
                facts.append(f"{name}={value:.6g}")
        if self.features is not None:
            facts.append(f"{self.features.n_features} random features")
        facts += [f"n={n}", counted(r, "component")]
        if self.explained_variance_ratio is not None:
            facts.append(
                f"{100 * float(self.explained_variance_ratio.sum()):.1f} % of the variance explained"
            )
        return facts

    def _table(self) -> Listing:
        columns: dict[str, Any] = {"eigenvalue": self.eigenvalues, "variance": self.explained_variance}
        if self.explained_variance_ratio is not None:
            columns["explained_variance_ratio"] = self.explained_variance_ratio
        return Listing("component", range(1, self.n_components + 1), columns)


def kernel_pca(
    X: MatrixLike,
    n_components: int,
    *,
    kernel: str | KernelFunction = "rbf",
    bandwidth: float | None = None,
    degree: int | None = None,
    gamma: float | None = None,
    coef0: float | None = None,
    random_features: int | RandomFeatures | None = None,
    ridge: float | None = None,
    solver: EigenSolver | None = None,
    memory_limit: float | None = None,
    sample_weight: Weights = None,
    rng: RandomSource = None,
) -> KernelPCAResult:
    """Kernel PCA: the principal components of the data in the space that a kernel maps to.

    Solves `HKH U = U diag(eigenvalues)` for the largest eigenvalues, where K holds the kernel between all
    pairs of samples and H = I - 11'/n centers. Scores are `U diag(eigenvalues)^(1/2)`. Kernels:

    * "linear": `x'y`, which gives the scores of PCA.
    * "polynomial": `(gamma x'y + coef0)^degree`.
    * "rbf": `exp(-||x - y||^2 / (2 bandwidth^2))`; a given `gamma` of other packages is
      ``bandwidth=(2 * gamma) ** -0.5``.
    * "sigmoid": `tanh(gamma x'y + coef0)`, which is indefinite.
    * "precomputed": X is the kernel matrix.
    * a callable `k(A, B)` from blocks of rows, (a, p) and (b, p), to the matrix (a, b) of kernels.

    Only components with positive eigenvalues are returned, whether or not the kernel is semidefinite.

    Parameters
    ----------
    X : array-like of shape (n, p), sparse matrix
        Data with at least two rows; with ``kernel="precomputed"`` a symmetric (n, n) matrix. With
        `random_features` also RowBlocks, dask arrays, or anything with `shape` and `dtype` that gives rows by
        slices, such as a `np.memmap`. X is then read twice, in blocks of rows, after a sample for the
        bandwidth, and no copy is kept.
    n_components : int
        r, in [1, n - 1], and at most the rank of the centered matrix (or m).
    kernel : str or callable, default "rbf"
    bandwidth : float, optional
        For "rbf": positive, in the units of X. Default: the median distance between rows, among at most 1000
        rows drawn at random.
    degree : int, optional
        For "polynomial": at least 1. Default: 3.
    gamma : float, optional
        For "polynomial" and "sigmoid": positive. Default: 1 / p.
    coef0 : float, optional
        For "polynomial" and "sigmoid". Default: 1.
    random_features : int or RandomFeatures, optional
        Approximate the "rbf" kernel by this number m of random features, or by these features. The time is
        then proportional to n m (m + p). Memory holds m x m numbers and a block of rows, besides X and the
        scores.
    ridge : float, optional
        Positive. Makes `inverse_transform` possible, at the cost of a second n x n system. Known as `alpha`
        in kernel ridge regression. Default: no such system is solved.
    solver : {"lapack", "lanczos"}, optional
        Default: "lapack" for at most 500 samples or more than n / 10 components. If Lanczos does not
        converge, LAPACK takes over.
    memory_limit : float, optional
        Bytes that the kernel matrix may have, default 2^31. More samples need `random_features`.
    sample_weight : array-like of shape (n,), optional
        How many samples each row stands for, at least 0: components are the same as if each row were repeated
        that often, but `coefficients` has one row for all of them. The sum must be above 1. `scores` has a
        row for each row of X, also where its weight is 0.
    rng : None, int or numpy Generator, optional
        For the sample for the bandwidth, the random features, and the start of Lanczos. None is a fixed seed.

    Returns
    -------
    KernelPCAResult
        `scores` (n, r), `eigenvalues` (r,), `explained_variance_ratio` (r,), and the methods `transform` and
        `inverse_transform`. It keeps a copy of the rows of X, except with `random_features`.

    Raises
    ------
    ValueError
        For NaN, infinite or empty input, a single row, X without variance, more components than the matrix
        has positive eigenvalues, an asymmetric kernel matrix, an option out of range or one that the kernel
        does not use.
    TypeError
        For input that is not real numbers, or an option of the wrong type.

    References
    ----------
    B. Schoelkopf, A. Smola and K.-R. Mueller (1998). Nonlinear component analysis as a kernel eigenvalue
    problem. Neural Computation 10, 1299-1319 (centering: appendix A). G. Bakir, J. Weston and B. Schoelkopf
    (2003). Learning to find pre-images. Advances in Neural Information Processing Systems 16. A. Rahimi and
    B. Recht (2007). Random features for large-scale kernel machines. Advances in Neural Information
    Processing Systems 20, algorithm 1.

    Examples
    --------
    Two rings, one around the other, which no straight line separates:

    >>> import numpy as np, spcacore
    >>> angle = np.concatenate([np.arange(50) / 50, np.arange(150) / 150]) * 2 * np.pi
    >>> radius = np.repeat([1.0, 3.0], [50, 150])[:, None]
    >>> X = radius * np.column_stack([np.cos(angle), np.sin(angle)])
    >>> result = spcacore.kernel_pca(X, 1, bandwidth=1.0)
    >>> inner, outer = result.scores[:50, 0], result.scores[50:, 0]
    >>> print(inner.min().round(2), outer.max().round(2))
    0.55 -0.18
    >>> print(result.transform([[0.0, 1.1], [0.0, 2.9]]).round(2).ravel())
    [ 0.51 -0.17]
    """
    # Options
    name = kernel if callable(kernel) else check_choice(kernel, "kernel", tuple(_OPTIONS))
    given = {"bandwidth": bandwidth, "degree": degree, "gamma": gamma, "coef0": coef0}
    options = _check_options(name, given)
    ridge = None if ridge is None else positive(ridge, "ridge")
    if solver is not None:
        check_choice(solver, "solver", EigenSolver)
    limit = KERNEL_BYTES if memory_limit is None else number(memory_limit, "memory_limit", 0)
    if random_features is not None:
        if name != "rbf":
            raise ValueError("random_features approximate the kernel 'rbf' alone")
        for option, value in {"ridge": ridge, "solver": solver, "memory_limit": memory_limit}.items():
            if value is not None:
                raise ValueError(f"{option} needs the kernel matrix, which random_features do not form")
        return _kernel_pca_by_features(X, n_components, random_features, options, sample_weight, rng)
    instead = ": use random_features, which read one block at a time" if name == "rbf" else ""
    require_memory(X, "a kernel matrix of all pairs of rows needs", instead=instead)
    seed = as_seed(rng)
    # Data, and the size of the matrix
    data = finite_rows(X, square=name == "precomputed")
    n = data.shape[0]
    weight = check_sample_weight(joined(X, sample_weight, "sample_weight"), n)
    r = _check_components(n_components, n, weight=weight)
    if ridge is not None and name == "precomputed":
        raise ValueError("ridge needs data: a precomputed kernel has no pre-images")
    size = n * n * data.dtype.itemsize
    if size > limit:
        other = instead or ": raise it"
        raise ValueError(f"the kernel matrix has {size} bytes, and memory_limit is {limit:g}{other}")
    # Defaults that depend on the data
    if name == "rbf" and options["bandwidth"] is None:
        sample = sampled_rows(as_rows(data), np.random.default_rng(seed), weight)
        options["bandwidth"] = median_distance(*sample)
    if name in ("polynomial", "sigmoid") and options["gamma"] is None:
        options["gamma"] = 1 / data.shape[1]
    # The eigenvectors
    k = _build_kernel(name, options, data)
    matrix = KernelMatrix(k, k.rows(data), data.dtype, weight)
    dense = solver == "lapack" if solver is not None else not large(n, r)
    values, U, trace, used = matrix.components(r, dense, seed)
    _check_rank(values, matrix.noise(values[0]))
    scores, coefficients, eigenvalues, mean = _in_units(k, matrix, values, U, data)
    warn_out_of_range(values, eigenvalues)
    return KernelPCAResult(
        scores=scores,
        eigenvalues=eigenvalues,
        explained_variance_ratio=values / trace if trace > 0 else None,
        kernel=name if isinstance(name, str) else getattr(name, "__name__", type(name).__name__),
        **options,
        solver=used,
        coefficients=coefficients,
        kernel_mean=mean,
        _samples=(k, matrix.rows if name != "precomputed" else Rows(None, None, n)),
        _preimages=None if ridge is None else preimages(name, options, scores, data, ridge, weight),
        names=column_names(X),
        total_weight=None if weight is None else float(weight.sum()),
    )


# ---- options ----------------------------------------------------------------------------------------


def _check_options(name: str | KernelFunction, given: dict[str, Any]) -> dict[str, Any]:
    """Return the options of the kernel, checked; one that it does not use is an error."""
    used = _OPTIONS[name] if isinstance(name, str) else ()
    for option, value in given.items():
        if value is not None and option not in used:
            hint = "; bandwidth is (2 gamma)^(-1/2)" if (name, option) == ("rbf", "gamma") else ""
            what = f"kernel={name!r}" if isinstance(name, str) else "a callable kernel"
            raise ValueError(f"{what} takes no {option}{hint}")
    options = dict(given)
    for option in ("bandwidth", "gamma"):
        if options[option] is not None:
            options[option] = positive(options[option], option)
    if "degree" in used:
        options["degree"] = 3 if given["degree"] is None else integer(given["degree"], "degree", 1)
    if "coef0" in used:
        options["coef0"] = 1.0 if given["coef0"] is None else number(given["coef0"], "coef0", -1e300, 1e300)
    return options


def _check_components(n_components: Any, n: int, most: int | None = None, weight: Any = None) -> int:
    """Return the number of components, checked; rows of weight 0 do not count."""
    n = n if weight is None else int(np.count_nonzero(weight))
    if n < 2:
        raise ValueError("X has a single sample; kernel PCA needs at least two")
    return integer(n_components, "n_components", 1, n - 1 if most is None else min(n - 1, most))


def _check_rank(values: Array, noise: float) -> None:
    """Raise ValueError if fewer eigenvalues than asked for exceed rounding."""
    rank = int(np.count_nonzero(values > noise))
    if rank == 0:
        raise ValueError(
            "X has no variance under this kernel: no eigenvalue of the centered kernel matrix is positive;"
            " rows may all be equal, or bandwidth, gamma or the size of X make the kernel constant"
        )
    if rank < len(values):
        raise ValueError(
            f"n_components is {len(values)}; the centered kernel matrix has only"
            f" {counted(rank, 'positive eigenvalue')}"
        )


# ---- the kernel --------------------------------------------------------------------------------------


def _build_kernel(name: str | KernelFunction, options: dict[str, Any], data: Any) -> Kernel:
    """Return the kernel, with a shift and scaling of rows that reduce rounding and change no component."""
    sparse, shift, factor = is_sparse(data), None, 1.0
    if name == "linear":
        factor = 2.0 ** -max(exponent_above(largest_magnitude(stored(data))), -1000)
    elif name == "rbf":
        factor = 1 / options["bandwidth"]
    if not math.isfinite(factor):
        raise ValueError(f"bandwidth is too small: {options['bandwidth']:g}")
    if name in ("linear", "rbf"):
        shift = column_means(data)
    if sparse and shift is not None:  # dense only where the mean hides distances
        with beyond_range():
            square, spread = (shift * factor) ** 2, 1.0  # rows differ by about the squared distance `spread`
            if name == "linear":
                scaled = data.astype(np.float64) * factor
                spread = float((column_means(scaled.multiply(scaled)) - square).sum())
            sparse = bool(square.sum() <= SPARSE_MEAN.of(data.dtype) * spread)
        shift = None if sparse else shift
    return Kernel(name, data.shape[1], **options, shift=shift, factor=factor, sparse=sparse)


# ---- random features --------------------------------------------------------------------------------


def _in_units(
    k: Any, matrix: KernelMatrix, values: Array, U: AnyArray, data: Any
) -> tuple[AnyArray, AnyArray, Array, AnyArray]:
    """Return scores, coefficients of the columns of K, eigenvalues and column means, in the caller's units.

    Rows of weight 0 get their scores from the kernel.
    """
    n, weight, half = matrix.rows.n, matrix.weight, matrix.half_exponent
    root = np.ones((n, 1)) if weight is None else np.sqrt(weight)[:, None]
    U = U - root * (root.T @ U / np.sum(root * root))  # rounding, which offsets of the kernel would multiply
    U = fix_signs(np.divide(U, root, out=np.zeros_like(U), where=root > 0))
    with beyond_range():
        scores = (U * np.ldexp(np.sqrt(values), half)).astype(data.dtype)
        coefficients = (U * root * root * np.ldexp(1 / np.sqrt(values), half - matrix.exponent)).astype(
            data.dtype
        )
        eigenvalues = np.ldexp(values, 2 * half)
    mean, none = matrix.mean.astype(data.dtype), np.flatnonzero(root == 0)
    if len(none):
        scores[none] = expanded(k, matrix.rows, data[none], mean, coefficients)
    return scores, coefficients, eigenvalues, mean


def _moments_of_block(block: Any, weight: Any, features: RandomFeatures) -> Any:
    """Return the moments of the random features of a block of rows."""
    return of_block(block, feature_moments, features, weight)


def _kernel_pca_by_features(
    X: Any, n_components: Any, random_features: Any, options: dict[str, Any], sample_weight: Any, rng: Any
) -> KernelPCAResult:
    """Return the result for random features, from two passes over blocks of rows."""
    # Rows and features
    given, bandwidth = isinstance(random_features, RandomFeatures), options["bandwidth"]
    if given and bandwidth is not None:
        raise ValueError("random_features have a bandwidth of their own; give one of the two")
    given_rows = as_rows(X, len(random_features.weights) if given else None)
    weight = check_sample_weight(joined(X, sample_weight, "sample_weight"), given_rows.shape[0])
    with naming_not_finite(given_rows):
        rows = given_rows.held()
        m = random_features.n_features if given else integer(random_features, "random_features", 1)
        r = _check_components(n_components, rows.shape[0], m, weight)
        features = random_features if given else drawn_features(rows, m, bandwidth, rng, weight)
        # Moments of the features, their eigenvectors, and scores
        each = rows.split(weight)
        found, C = rows.reduced(merged_moments, _moments_of_block, features, each=each)
        n, mean, trace = found.n, found.mean, float(C.diagonal().sum())
        values, V, solver = leading(C, r, not large(m, r), 0)
        rounding = 100 * eps_of(float_type(rows.dtype))
        _check_rank(values, rounding * max(values.max(initial=0), math.sqrt(n)))
        scores = rows.reduced(concatenated, of_block, partial(feature_scores, features), mean, V)
    # Signs, which rows of weight 0 do not decide
    heavy = scores if weight is None else scores[weight > 0]
    sign = np.array([sign_of(z) for z in heavy.T], scores.dtype)
    scores *= sign
    return KernelPCAResult(
        scores=scores, eigenvalues=values, explained_variance_ratio=values / trace, kernel="rbf",
        **options | {"bandwidth": features.bandwidth}, solver=solver,
        coefficients=V * sign, kernel_mean=mean, features=features,
        names=rows.names, total_weight=None if weight is None else n,
    )  # fmt: skip
