"""How close the bounds come: several loadings together, ratios and canonical correlations, wide data.

python benchmarks/certificates.py -o docs/measured/certificates.md. One BLAS thread; CPU time.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import warnings

import numpy as np
import pages
import quality

import spcacore

HEAD = """# Certificates measured

An [upper bound](../glossary.md#upper-bound) says how far an answer may be from the best. These tables show
how close the bounds come, and how long they take. Where a column says 0.00 %, the answer is proved to be the
best. "s" is CPU time in seconds, of one thread on a machine that does other work.

"""


def above(bound, value):
    return f"{round(100 * (bound / value - 1), 2) + 0.0:.2f} %"  # and never -0.00


def jointly():
    rows, gaps = [], []
    for name, A in quality.matrices().items():
        if name == "wine, covariance":
            continue
        spread = np.sqrt(A.diagonal())
        A = A if name == "S&P 500" else A / np.outer(spread, spread)
        for r in (2, 3, 6):
            for k in quality.CARDINALITIES:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found = spcacore.sparse_pca(
                        A, r, cardinality=k, kind="covariance", refine=True, deflation="generalized"
                    )
                value = float(found.explained_variance.sum())
                row = [name, len(A), r, k, f"{100 * value / A.trace():.2f}"]
                for constraint in (None, "orthogonal"):
                    seconds, best = pages.timed(
                        lambda A=A, r=r, k=k, c=constraint: spcacore.optimality_bound(
                            A, k, n_components=r, constraint=c, relaxation=True, kind="covariance"
                        )
                    )
                    gaps.append((constraint, best.upper_bound / value - 1))
                    row += [above(best.upper_bound, value), f"{seconds:.1f}"]
                rows.append([*row, above(np.linalg.eigvalsh(A)[-r:].sum(), value)])
    means = [100 * np.mean([gap for c, gap in gaps if c == one]) for one in (None, "orthogonal")]
    head = ["matrix", "p", "r", "k", "refined, %", "bound above", "s", "orthogonal above", "s", "dense above"]
    return (
        "## Several loadings together\n\n"
        '"Refined" is the percentage of the variance that r loadings of k variables explain together\n'
        "(`refine=True` after generalized deflation). The other columns say how far above it these limits\n"
        "are: the bound on any such loadings, the bound on orthogonal ones, and r ordinary components. On\n"
        f"average over {len(rows)} rows, no loadings can explain more than {means[0]:.2f} % above what was\n"
        f"found, and no orthogonal ones more than {means[1]:.2f} %.\n\n" + pages.table(head, rows) + "\n\n"
    )


def returns():
    """Four loadings under each constraint, for the cardinalities of other published tables."""
    A, rows = quality.matrices()["S&P 500"], []
    for k in (5, 10, 20):
        row = [k]
        for constraint in ("orthogonal", "uncorrelated"):
            found = spcacore.sparse_pca(A, 4, k, kind="covariance", deflation=constraint, refine=True)
            value = float(np.einsum("it,ij,jt", found.loadings, A, found.loadings))
            seconds, best = pages.timed(
                lambda k=k, c=constraint: spcacore.optimality_bound(
                    A, k, n_components=4, constraint=c, relaxation=True, kind="covariance"
                )
            )
            row += [f"{100 * value / A.trace():.2f}", above(best.upper_bound, value), f"{seconds:.1f}"]
        rows.append(row)
    head = ["k", "orthogonal, %", "bound above", "s", "uncorrelated, %", "bound above", "s"]
    return (
        "Four loadings of the S&P 500 returns, orthogonal, and with uncorrelated scores: the sum of their\n"
        "variances, and how far above it the bound under the same constraint is.\n\n"
        + pages.table(head, rows)
        + "\n\n"
    )


def ratios():
    rows = []
    for n, p, k in ((300, 30, 5), (400, 100, 5), (400, 100, 10)):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.6 * rng.standard_normal((p, p)) / np.sqrt(p))
        y = rng.integers(0, 3, n)
        X[y == 1, :6] += 0.7
        X[y == 2, 4:9] -= 0.7
        seconds, found = pages.timed(
            lambda X=X, y=y, k=k: spcacore.sparse_lda(X, y, 1, cardinality=k, certify=True)
        )
        plain = spcacore.sparse_lda(X, y, 1, cardinality=k).upper_bound[0]
        value = found.values[0]
        rows.append([f"discriminant, n = {n}", p, k, f"{value:.4f}", above(plain, value),
                     above(found.upper_bound[0], value), f"{seconds:.1f}"])  # fmt: skip
    for n, p, k in ((300, 20, 3), (300, 50, 3), (300, 50, 5)):
        rng = np.random.default_rng(1)
        X, Y, z = rng.standard_normal((n, p)), rng.standard_normal((n, p)), rng.standard_normal((n, 1))
        X[:, :4] += 0.5 * z
        Y[:, :4] += 0.5 * z
        seconds, found = pages.timed(
            lambda X=X, Y=Y, k=k: spcacore.sparse_cca(X, Y, method="generalized", cardinality=k, certify=True)
        )
        value = found.strengths[0]
        dense = spcacore.sparse_cca_bound(X, Y, k, node_limit=1).bounds["spectral"]
        rows.append([f"canonical pair, n = {n}", f"{p} + {p}", f"{k}, {k}", f"{value:.4f}",
                     above(dense, value), above(found.upper_bound[0], value), f"{seconds:.1f}"])  # fmt: skip
    head = ["problem", "p", "k", "found", "dense above", "bound above", "s"]
    return (
        "## Ratios and canonical correlations\n\n"
        "Simulated classes (`sparse_lda`) and simulated sides (`sparse_cca`). Times are for the\n"
        "call with `certify=True`.\n\n" + pages.table(head, rows) + "\n\n"
    )


def wide():
    X = pages.arrays("golub_leukemia.npz")["X"].astype(np.float64)
    rows = []
    for k in (10, 50, 200):
        value = spcacore.tpower(X, k, scale=True).value
        seconds, best = pages.timed(lambda k=k: spcacore.optimality_bound(X, k, scale=True))
        rows.append(
            [
                k,
                f"{value:.4f}",
                above(best.bounds["diagonal"], value),
                above(best.upper_bound, value),
                f"{seconds:.1f}",
            ]
        )
    proved = []
    for k in (5, 10, 20):
        seconds, x = pages.timed(
            lambda k=k: spcacore.branch_and_bound(
                X, k, scale=True, options=spcacore.BranchAndBound(time_limit=300)
            )
        )
        heuristic = spcacore.tpower(X, k, scale=True).value
        state = "yes" if x.optimal else above(x.upper_bound, x.value)
        proved.append([k, f"{x.value:.4f}", state, f"{heuristic / x.value:.4f}", f"{seconds:.1f}"])
    return (
        "## Standardized genes\n\n"
        'Leukemia data: 72 samples of 7129 genes, scaled to unit variance. "Found" is what truncated\n'
        'power finds. The next columns say how far above it the cheap bound "diagonal" and the best\n'
        "bound are.\n\n"
        + pages.table(["k", "found", "diagonal above", "bound above", "s"], rows)
        + "\n\nWhat branch and bound finds, and what truncated power finds as a share of it. With this many\n"
        "variables the default search can be several percent below the best.\n\n"
        + pages.table(["k", "value", "proved", "truncated power", "s"], proved)
        + "\n"
    )


def spiked():
    """100,000 variables, 50 of which share a signal, by 500 samples."""
    rows = []
    for variance in (400, 100, 50):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((500, 100_000))
        X[:, :50] += np.sqrt(variance / 50) * rng.standard_normal((500, 1))
        seconds, best = pages.timed(lambda X=X: spcacore.optimality_bound(X, 50))
        value = spcacore.tpower(X, 50).value
        others = min(b for name, b in best.bounds.items() if name != "strong variables")
        rows.append(
            [variance, f"{value:.2f}", above(others, value), above(best.upper_bound, value), f"{seconds:.1f}"]
        )
    return (
        "\n## A signal of few variables among 100,000\n\n"
        "500 samples of 100,000 variables of unit variance; 50 of them share a signal of the variance\n"
        'given. The last bound is "strong variables" where it helps.\n\n'
        + pages.table(["signal", "found", "other bounds above", "bound above", "s"], rows)
        + "\n"
    )


def page():
    return (
        HEAD
        + jointly()
        + returns()
        + ratios()
        + wide()
        + spiked()
        + "\n"
        + pages.origin("certificates", "certificates")
        + "\n"
    )


if __name__ == "__main__":
    pages.main(page, __doc__)
