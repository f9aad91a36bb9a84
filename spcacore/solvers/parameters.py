"""Paragraphs that the docstrings of the solvers and of the models share."""

from __future__ import annotations

from .._docstrings import filled

__all__ = ["SHARED", "shared_parameters"]

_WEIGHT = """\
sample_weight : array-like of shape (n,), optional
    How many samples each row stands for, at least 0. Means and covariances are the same as if each row were
    repeated that often. The divisor ``sum(sample_weight) - 1`` must be positive. Rows of weight 0 are
    left out. X is not copied, and dense X is not screened."""
_STANDARDIZATION = """\
kind : {"data", "covariance"}, default "data"
    Whether X holds data or a covariance matrix.
center : bool or array-like of shape (p,), default True
    Subtract the column means, or these numbers, implicitly. True is ignored for a covariance.
scale : bool or array-like of shape (p,), default False
    Divide each column by its standard deviation, or by these positive numbers, implicitly. If `center` is an
    array, the deviation is the root mean square about it, with divisor n - 1. Constant columns are divided
    by 1. True turns a covariance into the correlation."""
SHARED = {
    "standardization": _STANDARDIZATION,
    "sample_weight": _WEIGHT,
    "each_iteration": """\
callback : callable or True, optional
    Called with a `Progress` after each iteration. Raising StopIteration ends the search early,
    see `Progress`.""",
    "switches": """\
kind : {"data", "covariance"}, default "data"
    Whether X holds data or a covariance matrix.
center : bool, default True
    Subtract the column means, implicitly. Ignored for a covariance.
scale : bool, default False
    Divide each column by its standard deviation, implicitly. Turns a covariance into the correlation.""",
    "oppca_example": """\
Examples
--------
>>> import numpy as np, spcacore
>>> X, planted = spcacore.datasets.make_spiked(100, 30, cardinality=5, rng=0)
>>> result = spcacore.oppca(X, 2)""",
    "matrix": f"{_STANDARDIZATION}\n{_WEIGHT}",
    "choice": """\
choice : Choice, optional
    What is known of the variables: those that the component must have, may not have, which go together, and
    with which sign.""",
    "callback": """\
callback : callable or True, optional
    Called with a `Progress` at most twenty times a second, and once at the end.
    Raising StopIteration ends the search early, see `Progress`.""",
    "type_error": """\
TypeError
    For input that is not real numbers, masked arrays, or an option of the wrong type.""",
    "pitprops": """\
Examples
--------
>>> import spcacore
>>> pitprops = spcacore.datasets.load_pitprops()""",
}
SHARED["common"] = "\n".join(SHARED[name] for name in ("choice", "matrix", "callback"))
shared_parameters = filled(SHARED)
