"""For `defaults.py`: what searches reach by default and otherwise, in percent of the best that is known.

The best is proved (branch and bound), or what starts from every variable or every option lead to.
"""

import numpy as np

import spcacore

BOUNDS = (1.5, 3.0)  # on the l1 norm of a unit vector, or the root of p if that is less
RESTARTS = (1, 5, 20, 100)  # of K-means
SINGLE = {
    "tpower": {}, "tpower, one start": {"method": spcacore.TPower(n_starts=1)},
    "greedy": {"method": "greedy"},
    **{
        f"greedy, {s}": {"method": spcacore.Greedy(strategy=s)}
        for s in ("forward", "gradient", "backward", "bidirectional")
    },
    "thresholding": {"method": "thresholding"}, "dspca": {"method": "dspca"},
}  # fmt: skip
LEAST_SQUARES = ("auto", "forward", "backward", "bidirectional", "projection")
RATIOS = ("auto", "forward", "backward", "bidirectional", "rough")


def root(p):
    return int(np.ceil(np.sqrt(p)))


def percent(values, best=None):
    """Of the best of them, or of a value that is known."""
    best = max(values) if best is None else best
    return [f"{100 * value / best:.1f}" for value in values]


def one_component(X):
    """Of sqrt(p) variables: the variance, in percent of the optimum or of its upper bound."""
    exact = spcacore.branch_and_bound(X, root(X.shape[1]), options=spcacore.BranchAndBound(time_limit=5.0))
    found = [
        spcacore.sparse_pca(X, 1, cardinality=root(X.shape[1]), **way).explained_variance[0]
        for way in SINGLE.values()
    ]
    best = exact.value if exact.optimal else max(*found, exact.value)
    return percent(found, best)


def under_bound(X, name):
    """x'Ax of `pmd` or `scotlass`, without values fitted anew, in percent of the best from any variable."""
    function, record = getattr(spcacore, name), {"pmd": spcacore.PMD, "scotlass": spcacore.SCoTLASS}[name]
    A = np.cov(X.T)
    shares = []
    for bound in BOUNDS:
        starts = [
            {},
            {"start": "eigenvector"},
            {"start": "diagonal"},
            *({"start": e} for e in np.eye(len(A))),
        ]
        found = []
        for start in starts:
            x = function(X, min(bound, np.sqrt(len(A))), options=record(renormalize=False, **start)).loading
            found.append(x @ A @ x)
        shares.append([100 * value / max(found) for value in found[:3]])
    return [", ".join(f"{value:.1f}" for value in column) for column in zip(*shares, strict=True)]


def least_squares(X):
    """What a component of sqrt(p) variables leaves of X, as explained variance, by strategy."""
    values = [
        spcacore.least_squares_component(
            X, root(X.shape[1]), options=spcacore.LeastSquares(strategy=strategy)
        ).value
        for strategy in LEAST_SQUARES
    ]
    return percent(values)


def ratios(X, y):
    """The first value of `sparse_lda`, which `sparse_eigen` finds, by strategy."""
    ways = [spcacore.RatioSearch(strategy=strategy) for strategy in RATIOS]
    k = min(10, X.shape[1])
    return percent([spcacore.sparse_lda(X, y, 1, cardinality=k, options=way).values[0] for way in ways])


def restarts(X, y):
    """The objective of `sparse_kmeans` with so many starts."""
    bound = max(1.2, X.shape[1] ** 0.25)
    return percent(
        [spcacore.sparse_kmeans(X, len(np.unique(y)), bound, n_init=n, rng=0).objective for n in RESTARTS]
    )
