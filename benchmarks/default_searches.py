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


def with_each(B, M, T):
    """The largest eigenvalue of M_S'B_SS^-1 M_S, S = T and each other variable: x'MM'x / x'Bx at its best."""
    W = np.linalg.solve(B[np.ix_(T, T)], np.hstack([M[T], B[T]]))
    inside, across = np.split(W, [M.shape[1]], axis=1)
    left = B.diagonal() - np.einsum("ij,ij->j", B[T], across)
    rest = (M - across.T @ M[T]) / np.sqrt(np.where(left > 1e-10 * B.diagonal(), left, np.inf))[:, None]
    value = np.linalg.eigvalsh(M[T].T @ inside + rest[:, :, None] * rest[:, None, :])[:, -1]
    value[T] = -np.inf
    return value


def exchanged(B, M, S):
    """The ratio, and its variables, when no exchange of one for another raises it."""
    best = -np.inf
    while True:
        others = [[j for j in S if j != i] for i in S]
        values = [with_each(B, M, T) for T in others]
        i = int(np.argmax([value.max() for value in values]))
        if values[i].max() <= best * (1 + 1e-9):
            return best, S
        best, S = float(values[i].max()), [*others[i], int(values[i].argmax())]


def pair_of_supports(C, k, ends=10, starts=100):
    """The best correlation of k variables of each side, C = (C_xx, C_yy, C_xy), from the best pairs."""
    across = [C[2], C[2].T]

    def grown(side, S):
        """The variables of this side, one more, given those of both."""
        return [*S[side], int(with_each(C[side], explained(side, S), S[side]).argmax())]

    def explained(side, S):
        T = S[1 - side]
        value, vectors = np.linalg.eigh(C[1 - side][np.ix_(T, T)])
        return across[side][:, T] @ vectors / np.sqrt(value)

    found = []
    for place in np.argsort(-np.abs(C[2]).ravel(), kind="stable")[:starts]:
        S = [[int(place) // C[2].shape[1]], [int(place) % C[2].shape[1]]]
        while len(S[1]) < k:
            S[0] = grown(0, S)
            S[1] = grown(1, S)
        found.append((with_each(C[1], explained(1, S), S[1][:-1]).max(), S))
    best = 0.0
    for value, S in sorted(found, key=lambda one: -one[0])[:ends]:
        before = 0.0
        while value > before * (1 + 1e-9):
            before = value
            for side in (0, 1):
                value, S[side] = exchanged(C[side], explained(side, S), S[side])
        best = max(best, value)
    return float(np.sqrt(best))


def ratio_from_all_starts(B, M, k, ends=20):
    """The best x'MM'x / x'Bx of k variables that forward search from each variable, and exchanges, find."""
    found = {}
    for j in range(len(B)):
        S = [j]
        while len(S) < k:
            value = with_each(B, M, S)
            S.append(int(value.argmax()))
        found[tuple(sorted(S))] = float(value.max())
    return max(exchanged(B, M, list(S))[0] for S in sorted(found, key=found.get)[-ends:])


def discriminant_short(X, y, k):
    """How far the first ratio of `sparse_lda` is below that, in percent."""
    found = spcacore.sparse_lda(X, y, 1, cardinality=k)
    classes = [X[y == label] for label in np.unique(y)]
    means = [np.sqrt(len(part) / len(X)) * (part.mean(axis=0) - X.mean(axis=0)) for part in classes]
    B = sum(np.cov(part.T, bias=True) * (len(part) / len(X)) for part in classes)
    B = (1 - found.shrinkage) * B + found.shrinkage * np.diag(B.diagonal())
    return 100 * (float(found.values[0]) / ratio_from_all_starts(B, np.stack(means, axis=1), k) - 1)


def pair_short(X, k, ridge):
    """How far the first correlation of `sparse_cca` between every other variable and the rest is below the
    best that is known, in percent."""
    X = (X - X.mean(axis=0)) / X.std(axis=0, ddof=1)
    Z = [np.ascontiguousarray(X[:, first::2]) for first in (0, 1)]
    value = float(spcacore.sparse_cca(*Z, 1, cardinality=k, ridge=ridge).strengths[0])
    C = [z.T @ z / (len(X) - 1) + ridge * np.eye(z.shape[1]) for z in Z]
    return 100 * (value / pair_of_supports([*C, Z[0].T @ Z[1] / (len(X) - 1)], k) - 1)
