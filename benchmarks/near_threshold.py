"""Signals near the threshold of detection: what share of the planted variables the searches find.

    python benchmarks/near_threshold.py                              the default, 30 draws of each problem
    python benchmarks/near_threshold.py --search default,starts256 --draws 10 --first 100    other draws
    python benchmarks/near_threshold.py --problems "p = 5000"        those whose name begins so

A spike of 20 equal loadings with random signs on unit noise, 500 samples. "truth" starts at the planted
support and swaps, which is as much as the data tell. It prints the mean recall with its standard error, and
median CPU seconds of one thread.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("OMP_NUM_THREADS", "1")
import argparse

import numpy as np
import pages

import spcacore

N, K = 500, 20
PROBLEMS = {  # variables, variance of the spike, scaled; the least recall that the default should have
    "p = 1000, 1.27": (1000, 1.27, False, 0.75),
    "p = 1000, 1.42": (1000, 1.42, False, 0.87),
    "p = 5000, 1.7": (5000, 1.7, False, 0.80),
    "p = 20000, 1.8": (20_000, 1.8, False, 0.65),
    "scaled p = 2000, 1.9": (2000, 1.9, True, 0.95),
    "scaled p = 5000, 2.0": (5000, 2.0, True, 0.90),
}
SEARCHES = {
    "default": {}, "starts64": {"n_starts": 64}, "starts256": {"n_starts": 256},
    "gram": {"screening": "gram"}, "truth": {"swaps": True},
}  # fmt: skip


def weak_signal(p, spike, seed):
    rng = np.random.default_rng(seed)
    support = rng.choice(p, K, replace=False)
    v = np.zeros(p)
    v[support] = rng.choice([-1, 1], K) / np.sqrt(K)
    return rng.standard_normal((N, p)) + np.sqrt(spike) * rng.standard_normal((N, 1)) * v, v


def figures(problem, search, seeds):
    p, spike, scaled, _ = PROBLEMS[problem]
    recall, seconds = [], []
    for seed in seeds:
        X, v = weak_signal(p, spike, seed)
        method = spcacore.TPower(**SEARCHES[search], start=v if search == "truth" else None)
        time, found = pages.timed(
            lambda X=X, method=method: spcacore.tpower(X, K, options=method, scale=scaled)
        )
        recall.append(np.count_nonzero(found.loading[v != 0]) / K)
        seconds.append(time)
    return np.mean(recall), np.std(recall) / np.sqrt(len(recall)), np.median(seconds)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--search", default="default", help="of " + ", ".join(SEARCHES))
    parser.add_argument("--problems", default="", help="those whose name begins so")
    parser.add_argument("--draws", type=int, default=30)
    parser.add_argument("--first", type=int, default=0, help="the seed of the first draw")
    options = parser.parse_args()
    spcacore.set_num_threads(1)
    seeds = range(options.first, options.first + options.draws)
    for problem in PROBLEMS:
        if problem.startswith(options.problems):
            for search in options.search.split(","):
                mean, error, seconds = figures(problem, search, seeds)
                aim = f"(aim {PROBLEMS[problem][-1]:.2f})" if search == "default" else ""
                print(
                    f"{problem:22s} {search:10s} {mean:.3f} ± {error:.3f} {seconds:7.3f} s {aim}", flush=True
                )


if __name__ == "__main__":
    main()
