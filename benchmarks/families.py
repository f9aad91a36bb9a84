"""Six kinds of large dense data, by which the cost of a whole `sparse_pca` call is judged.

They differ in how many iterations ten components of 100 nonzeros take (500 x 100,000, in passes over X),
in how the variances of the columns are spread, and in the tails that coarse arithmetic has to survive.
A matrix depends on family, shape and seed alone: order and dtype change how it is stored.
"""

import numpy as np

K = 100  # nonzeros of a planted component
R = 10
_BLOCK = 1000  # columns made at a time

FAMILIES = {
    "weak": "spiked, ten components of variance 16 to 9 in unit noise",
    "medium": "spiked, ten components of variance 30 to 10 in unit noise",
    "strong": "spiked, ten components of variance 60 to 20 in unit noise",
    "gene": "dense rank 20 and noise with the tails of Student's t (3), each column on a scale of its own",
    "counts": "log(1 + Poisson counts), mostly zeros; ten programs of 100 genes modulate the rates",
    "noise": "standard normal entries, nothing planted: the worst case",
}
_SPIKES = {"weak": (16, 9), "medium": (30, 10), "strong": (60, 20)}


def make(family, n=500, p=100_000, dtype=np.float64, order="C", seed=0):
    """The (n, p) matrix of a family; its columns are not centered.

    Made in blocks of columns, so that little memory beyond X is used.
    """
    rng = np.random.default_rng([seed, list(FAMILIES).index(family)])
    X = np.empty((n, p), dtype) if order == "C" else np.empty((p, n), dtype).T
    support = rng.choice(p, R * K, replace=False)
    component = np.full(p, -1)
    component[support] = np.arange(R * K) // K
    block = _maker(family, n, rng)
    for first in range(0, p, _BLOCK):
        X[:, first : first + _BLOCK] = block(component[first : first + _BLOCK]).T
    return X


def _maker(family, n, rng):
    """A function from the planted component of each column (-1: none) to these columns, as rows."""
    if family == "noise":
        return lambda component: rng.standard_normal((len(component), n))

    if family in _SPIKES:
        variance = np.linspace(*_SPIKES[family], R)
        scores = rng.standard_normal((R, n)) * np.sqrt((variance - 1) / K)[:, None]

        def spiked(component):
            rows = rng.standard_normal((len(component), n))
            rows[component >= 0] += scores[component[component >= 0]]
            return rows

        return spiked

    if family == "gene":
        factors = rng.standard_normal((20, n))

        def gene(component):
            rows = rng.standard_t(3, (len(component), n))
            rows += rng.standard_normal((len(component), 20)) @ factors
            rows *= np.exp(0.5 * rng.standard_normal(len(component)))[:, None]
            return rows

        return gene

    depth = np.exp(0.3 * rng.standard_normal(n))
    program = np.exp(1.5 * np.linspace(1, 0.6, R)[:, None] * rng.standard_normal((R, n)))

    def counts(component):
        rate = rng.gamma(0.3, 0.5 / 0.3, len(component))
        planted = component >= 0
        rate[planted] = np.maximum(rate[planted], 1)
        rows = rate[:, None] * depth
        rows[planted] *= program[component[planted]]
        return np.log1p(rng.poisson(rows))

    return counts
