"""How close to the best: values, bounds and times on the matrices of the literature.

python benchmarks/quality.py -o docs/measured/quality.md. One BLAS thread; CPU time, median of three below a
second.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import warnings

import numpy as np
import pages

import spcacore

CARDINALITIES = (5, 10)
COMPONENTS = 4


def matrices():
    from sklearn.datasets import load_wine

    wine = load_wine().data
    uci = pages.arrays("uci_correlations.npz")
    return {
        "pit props": spcacore.datasets.load_pitprops().correlation,
        "wine, correlation": np.corrcoef(wine.T),
        "wine, covariance": np.cov(wine.T),
        "geography": uci["geography"],
        "communities": uci["communities"],
        "gait": uci["gait"],
        "S&P 500": pages.arrays("snp500_correlation.npz")["A"],
        "Drosophila": np.cov(pages.arrays("drosophila_atlas.npz")["X"].astype(np.float64).T),
    }


def timed(call):
    """Median seconds of three calls, or of one that takes long, and the result."""
    return pages.timed(call, 3, enough=1.0)


def ms(seconds):
    return f"{1e3 * seconds:.1f}" if seconds < 0.1 else f"{1e3 * seconds:.0f}"


def one_component():
    lines = pages.head(
        "matrix", "p", "k", "optimum (proved)", "greedy", "one start", "all starts", "with swaps", "ms",
        "branch and bound, ms", "bound above optimum", "relaxation above",
    )  # fmt: skip
    for name, A in matrices().items():
        for k in CARDINALITIES:
            slow, exact = timed(
                lambda A=A, k=k: spcacore.branch_and_bound(
                    A, k, kind="covariance", options=spcacore.BranchAndBound(time_limit=300)
                )
            )
            assert exact.optimal
            best = exact.value
            calls = (
                lambda A=A, k=k: spcacore.greedy(
                    A, k, kind="covariance", options=spcacore.Greedy(strategy="forward")
                ),
                lambda A=A, k=k: spcacore.tpower(
                    A, k, kind="covariance", options=spcacore.TPower(start="diagonal")
                ),
                lambda A=A, k=k: spcacore.tpower(
                    A, k, kind="covariance", options=spcacore.TPower(swaps=False)
                ),
                lambda A=A, k=k: spcacore.tpower(A, k, kind="covariance"),
            )
            found = [timed(call) for call in calls]
            share = " | ".join(f"{x.value / best:.4f}" for _, x in found)
            bounds = spcacore.optimality_bound(A, k, kind="covariance", relaxation=True).bounds
            cheap = min(v for n, v in bounds.items() if n != "relaxation") / best - 1
            lines.append(
                f"| {name} | {len(A)} | {k} | {best:.8g} | {share} | {ms(found[-1][0])} | {ms(slow)} "
                f"| {100 * cheap:.2f} % | {100 * (bounds['relaxation'] / best - 1):.2f} % |"
            )
    return lines


def several_components():
    lines = pages.head(
        "matrix", "k", "projection", "with swaps", "branch and bound", "generalized", "refined", "ms",
        "orthogonal, refined", "dense",
    )  # fmt: skip
    for name, A in matrices().items():
        trace = np.trace(A)
        dense = np.linalg.eigvalsh(A)[::-1][:COMPONENTS].sum() / trace
        for k in CARDINALITIES:

            def share(A=A, k=k, **options):
                result = spcacore.sparse_pca(A, COMPONENTS, k, kind="covariance", **options)
                return result.explained_variance.sum() / np.trace(A)

            seconds, refined = timed(lambda share=share: share(deflation="generalized", refine=True))
            cells = [
                share(method=spcacore.TPower(swaps=False)), share(),
                share(method=spcacore.BranchAndBound(time_limit=60)),
                share(deflation="generalized"), refined,
            ]  # fmt: skip
            row = " | ".join(f"{100 * c:.2f}" for c in cells)
            orthogonal = 100 * share(deflation="orthogonal", refine=True)
            lines.append(f"| {name} | {k} | {row} | {ms(seconds)} | {orthogonal:.2f} | {100 * dense:.2f} |")
    return lines


def sp500():
    """Published: near-orthogonal loadings (violation at most 1e-4), and without a constraint."""
    A = matrices()["S&P 500"]
    published = {
        5: (0.0347, 0.0417), 10: (0.0639, 0.0660), 15: (0.0758, 0.0832), 20: (0.0930, 0.0986),
        25: (0.0953, 0.1083), 30: (0.1113, 0.1025), 35: (0.1142, 0.1051),
    }  # fmt: skip
    lines = [
        "| k | published, near-orthogonal | here, orthogonal | violation | published, free | here, refined |",
        "| ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for k, (near, free) in published.items():
        options = {"kind": "covariance", "refine": True}
        V = spcacore.sparse_pca(A, 4, k, deflation="orthogonal", **options).loadings
        W = spcacore.sparse_pca(A, 4, k, deflation="generalized", **options)
        violation = np.abs(np.triu(V.T @ V, 1)).sum()
        lines.append(
            f"| {k} | {near:.4f} | {np.trace(V.T @ A @ V) / np.trace(A):.4f} | {violation:.0e} | {free:.4f} "
            f"| {W.explained_variance_ratio.sum():.4f} |"
        )
    return lines


PAGE = """# How close to the best

## Summary

* One component: on every problem of the first table, the default search found the best component that exists,
  and branch and bound proved it. Greedy search, and a search from one start alone, sometimes end far below
  the best.
* Several components: the best component at each turn is not the best set of components. `refine=True`
  improves them jointly, and explains the same or more on every matrix of the second table.
* S&P 500: exactly orthogonal loadings explain more here than the published ones, which are nearly orthogonal.

## One component

`branch_and_bound` proves the optimum, the largest variance of any component of k variables. The next four
columns divide what a search found by that optimum; 1.0000 is the best possible. "Greedy" is forward greedy
search. "One start" is truncated power from the variable of largest variance. "All starts" tries several, and
"with swaps" then exchanges variables one for one; this is the default, and the next column has its time. The
last two columns are [upper bounds](../glossary.md#upper-bound) by `optimality_bound`, which needs no search:
the best of the cheap ones, and the semidefinite relaxation.

{one}

## Four components

What four components explain together, in percent of the total variance, with k nonzeros each:

* "projection" is truncated power with projection deflation, without swaps; "with swaps" is the default;
* "branch and bound" has the best component at each turn;
* "generalized" uses generalized deflation; "refined" improves that jointly (`refine=True`), in the time
  beside it;
* "orthogonal, refined" has orthogonal loadings;
* "dense" is what ordinary components explain, a limit that no sparse ones can exceed.

Where "refined" is above "branch and bound", taking the best component at each turn was not best for the set.

{several}

## Several components of many matrices

Matrices that are made (factor models, autoregression, blocks, random walks, noise, curves, sparse spikes)
and real ones. `refine=True` was tuned on half of them, and not on the others. The best known is the best that
this search or another one found in a long run. "Default" is what components sought one after another explain,
"refined" what `refine=True` makes of them, both in percent below the best known, with the seconds of the
whole call.

<!-- joint -->
{joint}
<!-- end -->

*Written by `python benchmarks/joint.py CACHE -o docs/measured/quality.md`.*

## S&P 500, four loadings

Variance as a share of the total: `Tr(V'AV)` of orthogonal loadings, and of the span of free ones. The
published figures for free loadings are raw variances, which count shared variance twice. "Violation" is the
sum of the inner products of different loadings.

{sp500}

Times are CPU times of one thread.

{origin}
"""


def page():
    warnings.simplefilter("ignore", RuntimeWarning)
    tables = {"one": one_component(), "several": several_components(), "sp500": sp500()}
    parts = {name: "\n".join(lines) for name, lines in tables.items()}
    before = (pages.DOCS / "measured/quality.md").read_text(encoding="utf-8")  # that part is joint.py's
    parts["joint"] = before.partition("<!-- joint -->\n")[2].partition("\n<!-- end -->")[0]
    return PAGE.format(**parts, origin=pages.origin("quality", "quality"))


if __name__ == "__main__":
    pages.main(page, __doc__)
