"""What `stability` and `cross_validated_eigenvalues` promise: true and false variables, bounds, ranks, time.

Writes docs/measured/stability.md: python benchmarks/stability.py -o docs/measured/stability.md.
"""

import time
from dataclasses import replace
from functools import partial

import numpy as np
import pages
import scipy.sparse

import spcacore

N, P, K, RESAMPLES = 100, 500, 10, 100


def planted_rows(repeats=6):
    """Ten true variables of 500, by the variance along their direction, 1 along all others."""
    for variance in (2, 4, 8, 12, 20):
        frequency, stable, bounds, thresholds = [], [], [], []
        for seed in range(repeats):
            X, V = spcacore.datasets.make_spiked(N, P, cardinality=K, variances=(variance,), rng=seed)
            found = spcacore.stability(
                X, partial(spcacore.sparse_pca, cardinality=K), n_resamples=RESAMPLES, rng=seed
            )
            true = V[:, 0] != 0
            frequency.append([found.selection_frequency[part, 0].mean() for part in (true, ~true)])
            stable.append([np.count_nonzero(found.stable[part, 0]) for part in (true, ~true)])
            bounds.append(found.expected_false[0])
            thresholds.append(found.threshold[0])
        (often, seldom), (right, wrong) = np.mean(frequency, axis=0), np.mean(stable, axis=0)
        yield [
            variance, f"{often:.2f}", f"{seldom:.3f}", f"{right:.1f}", f"{wrong:.1f}",
            f"{np.mean(thresholds):.2f}", f"{np.mean(bounds):.2f}",
        ]  # fmt: skip


def noise_rows(repeats=20, n=50, p=200, k=10):
    """Normal noise: every variable is false."""
    kinds = {
        "complementary pairs": {}, "half-samples": {"resampling": "half"},
        "complementary pairs, warm starts": {"warm_start": True},
    }  # fmt: skip
    for name, options in kinds.items():
        found = [
            spcacore.stability(
                np.random.default_rng(seed).standard_normal((n, p)),
                partial(spcacore.sparse_pca, cardinality=k), n_resamples=RESAMPLES, rng=seed, **options,
            )
            for seed in range(repeats)
        ]  # fmt: skip
        for threshold in (0.55, 0.6, 0.7, 0.8, 0.9):
            count = np.mean([np.count_nonzero(one.selection_frequency >= threshold) for one in found])
            bounds = [
                f"{replace(found[0], assumption=one).false_selections(threshold):.2f}"
                if one == "none" or found[0].resampling == "complementary"
                else ""
                for one in ("none", "unimodal")
            ]
            yield [name, threshold, f"{count:.2f}", *bounds]


def ratio_rows(repeats=3):
    """200 bootstrap resamples over one fit, in CPU time."""
    X, _ = spcacore.datasets.make_spiked(200, 5000, cardinality=20, rng=0)
    golub = np.log(np.maximum(pages.arrays("golub_leukemia.npz")["X"].astype(np.float64), 20))
    for name, data in (("planted, 200 × 5000", X), ("leukemia, 72 × 7129, logarithms", golub)):
        spcacore.stability(
            data,
            partial(spcacore.sparse_pca, n_components=3, cardinality=20),
            resampling="bootstrap",
            n_resamples=2,
        )  # imports
        fits, resamples = [], []
        for _ in range(repeats):
            for times, call in (
                (fits, lambda data=data: spcacore.sparse_pca(data, 3, cardinality=20)),
                (
                    resamples,
                    lambda data=data: spcacore.stability(
                        data,
                        partial(spcacore.sparse_pca, n_components=3, cardinality=20),
                        resampling="bootstrap",
                        n_resamples=200,
                    ),
                ),
            ):
                start = time.process_time()
                call()
                times.append(time.process_time() - start)
        yield [
            name,
            f"{1000 * min(fits):.0f}",
            f"{1000 * min(resamples):.0f}",
            f"{min(resamples) / min(fits):.0f}",
        ]


def block_model(n, blocks, ratio, degree, rng, power_law=False):
    """A graph of blocks drawn at random, so many times as dense inside as between.

    With `power_law`, node i has edges in proportion to t_i >= 1, of density `4 t^-5`.
    """
    block = rng.integers(blocks, size=n)
    probability = np.where(block[:, None] == block, ratio, 1.0)
    if power_law:
        share = (1 - rng.random(n)) ** -0.25
        probability *= share[:, None] * share
    probability *= degree / probability.sum(axis=1).mean()
    A = np.triu(rng.random((n, n)) < probability, 1).astype(float)
    return scipy.sparse.csr_array(A + A.T)


def rank_rows(repeats=10, n=1000, blocks=5):
    """How often each rank is found."""
    for degree in (10, 20, 30, 40, 60):
        chosen = [
            spcacore.cross_validated_eigenvalues(
                block_model(n, blocks, 3, degree, np.random.default_rng(seed)), 10, kind="graph", rng=seed
            ).chosen
            for seed in range(repeats)
        ]
        counts = np.bincount(chosen, minlength=blocks + 2)
        yield [degree, *(counts[: blocks + 1]), counts[blocks + 1 :].sum()]


def degree_rows(repeats=20, n=2000, blocks=10):
    """Ranks found with equal and unequal degrees."""
    for degree in (10, 20, 30, 40, 60):
        for power_law, scale in ((False, False), (True, False), (True, "degree")):
            chosen = [
                spcacore.cross_validated_eigenvalues(
                    block_model(n, blocks, 5, degree, np.random.default_rng(seed), power_law),
                    15,
                    kind="graph",
                    scale=scale,
                    rng=seed,
                ).chosen
                for seed in range(repeats)
            ]
            counts = np.bincount(np.sign(np.array(chosen) - blocks) + 1, minlength=3)
            kind = "power law" if power_law else "equal"
            yield [degree, kind, f'`"{scale}"`' if scale else "", f"{np.mean(chosen):.1f}", *counts]


def page():
    lines = [
        "# Which variables, and how many components",
        "",
        "The number of false variables stayed below its bound in every row of this page. Where the shared",
        "direction is weak, true variables are missed, and false ones do not take their place.",
        "",
        "## True and false variables",
        "",
        "Are the variables that `stability` calls stable the true ones? Here 10 of 500 variables share a",
        "direction, and we know which. The first column is the variance along that direction; it is 1",
        "along all others. `stability(X, partial(sparse_pca, cardinality=10))` saw 100 samples, and fitted",
        "100 complementary halves of them. Each row is the mean of 6 data sets. A variable is stable when it",
        "is chosen so often that at most one false one is expected (the threshold); the last column is",
        "the number expected at that threshold.",
        "",
        pages.table(
            ["variance", "frequency: true", "false", "stable: true", "false", "threshold", "bound"],
            planted_rows(),
        ),
        "",
        "## Noise alone",
        "",
        "Pure noise is the hard test: no variable is true, and everything that is chosen is false. The",
        "data are 50 samples of 200 normal variables. Ten variables are chosen from each half-sample, in",
        "100 resamples; each row is the mean of 20 data sets. The bounds are on the expected number of",
        "false variables, by what they assume of the frequencies of these variables.",
        "",
        "With warm starts, a search may find the component of all the data again in both halves of a",
        "pair. The bounds do not allow for that, so `stability` does not use warm starts by default where",
        "it gives a bound.",
        "",
        pages.table(
            ["resamples", "frequency at least", "false selections", "bound: none", "unimodal"],
            noise_rows(),
        ),
        "",
        "## Time",
        "",
        "Resampling costs less than as many fits, because the resamples share work. The table has CPU",
        "milliseconds of `sparse_pca(X, 3, cardinality=20)`, and of 200 bootstrap resamples of it.",
        "",
        pages.table(["data", "one fit", "200 resamples", "ratio"], ratio_rows()),
        "",
        "## Ranks of block models",
        "",
        "`cross_validated_eigenvalues` finds the number of blocks of a graph, once its nodes have enough",
        "neighbors. These graphs have 1000 nodes in 5 blocks, and are three times as dense inside a block",
        "as between two. Each row says how many of 10 graphs got each rank. The page of the R package",
        "gdim has the same kind of graphs, and finds rank 5 at an expected degree of 40. Where degrees",
        "are too small, no method can detect a block, and it is right not to count it.",
        "",
        pages.table(["expected degree", "0", "1", "2", "3", "4", "5", "more"], rank_rows()),
        "",
        "In most graphs a few nodes have many more neighbors than others. The degree-corrected block model",
        "multiplies the probability of an edge by a number of either node. In these graphs of 2000 nodes in",
        "10 blocks, five times as dense inside a block as between two, the numbers are equal, or their",
        "density falls as the fifth power. With unequal degrees, the leading directions of the counts",
        "are single nodes of high degree, and the search ends before it has found all blocks.",
        '`scale="degree"` divides by the roots of the degrees, and finds the rank no later than with equal',
        "degrees. The last columns say how many of 20 graphs got a rank below 10, of 10, and above 10.",
        "",
        pages.table(
            ["expected degree", "degrees", "`scale`", "mean rank", "below", "10", "above"], degree_rows()
        ),
        "",
        pages.origin("stability", "stability"),
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    pages.main(page, __doc__)
