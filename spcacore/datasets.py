"""Embedded real data, and generators; nothing is downloaded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ._messages import counted
from ._validation import integer, number, real_array


@dataclass(frozen=True, eq=False)
class Correlation:
    """A correlation matrix with the names of its variables.

    Attributes
    ----------
    correlation : ndarray of shape (p, p), float64
    names : tuple of str
    n_samples : int
    """

    correlation: NDArray[np.float64]
    names: tuple[str, ...]
    n_samples: int

    def __repr__(self) -> str:
        return f"Correlation({counted(len(self.names), 'variable')}, {counted(self.n_samples, 'sample')})"


def load_pitprops() -> Correlation:
    """Correlations of 13 measurements of 180 pit props, the classic example of the field.

    Corsican pine grown in East Anglia and cut for use in mines; sizes, moisture, specific gravity,
    rings, bow and knots of each prop.

    Returns
    -------
    Correlation
        `correlation` (13, 13), `names`, `n_samples`.

    References
    ----------
    J. N. R. Jeffers (1967). Two case studies in the application of principal component analysis.
    Applied Statistics 16, 225-236.

    Examples
    --------
    >>> import spcacore
    >>> spcacore.datasets.load_pitprops()
    Correlation(13 variables, 180 samples)
    """
    import csv
    from importlib.resources import files

    with (files(__package__) / "pitprops.csv").open(encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    return Correlation(np.array([row[1:] for row in rows], np.float64), tuple(header[1:]), 180)


def make_spiked(
    n_samples: int,
    n_features: int,
    *,
    cardinality: int = 10,
    variances: Any = (400.0, 300.0),
    noise: float = 1.0,
    dtype: Any = np.float64,
    rng: Any = None,
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Gaussian data with sparse planted components.

    Component t has equal loadings on variables `t * cardinality` to `(t + 1) * cardinality - 1` and
    variance `variances[t]`; in every other direction the variance is `noise`. The default is the
    design of Shen and Huang.

    Parameters
    ----------
    n_samples, n_features : int
    cardinality : int, default 10
        Nonzeros of each component.
    variances : sequence of float, default (400, 300)
        Variance along each component, at least `noise`.
    noise : float, default 1
        Variance in the other directions.
    dtype : float32 or float64, default float64
    rng : None, int or numpy Generator, optional

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
    loadings : ndarray of shape (n_features, r)
        The planted components.

    Raises
    ------
    ValueError
        If the components do not fit, or a variance is below the noise.

    References
    ----------
    H. Shen and J. Z. Huang (2008). Sparse principal component analysis via regularized low rank
    matrix approximation. Journal of Multivariate Analysis 99, section 4.1.

    Examples
    --------
    >>> import spcacore
    >>> X, V = spcacore.datasets.make_spiked(50, 500, rng=0)
    >>> result = spcacore.sparse_pca(X, 2, cardinality=10)
    >>> abs(V.T @ result.loadings).max(axis=1).round(2)
    array([1., 1.])
    """
    n = integer(n_samples, "n_samples", 1)
    p = integer(n_features, "n_features", 1)
    k = integer(cardinality, "cardinality", 1, p)
    spikes = real_array(variances, "variances", ndim=1)
    noise = number(noise, "noise", 0)
    if len(spikes) * k > p:
        raise ValueError(
            f"{counted(len(spikes), 'component')} of {counted(k, 'variable')} do not fit into {p}"
        )
    if spikes.min() < noise:
        raise ValueError(f"variances must be at least the noise, {noise:g}")
    dtype = np.dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, not {dtype}")
    generator = np.random.default_rng(rng)
    loadings = np.zeros((p, len(spikes)), dtype)
    for t in range(len(spikes)):
        loadings[t * k : (t + 1) * k, t] = k**-0.5
    X = generator.standard_normal((n, p), dtype=dtype)
    X *= dtype.type(noise**0.5)
    for t, variance in enumerate(spikes):
        block = slice(t * k, (t + 1) * k)
        scores = generator.standard_normal(n) * (variance - noise) ** 0.5
        X[:, block] += np.outer(scores, loadings[block, t]).astype(dtype)
    return X, loadings
