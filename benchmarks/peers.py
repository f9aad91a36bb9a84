"""What users of Python can run today on spiked data, in CPU seconds of one thread and recall.

A process of its own, which a limit may end: python peers.py PACKAGE SET SECONDS writes JSON lines, one
for each fit and one for each draw. Sparsity is matched: packages that take a cardinality are given the
planted one; a penalty is bisected until the nonzeros agree to 5 %, and the time is that of the last fit
alone.
"""

import json
import os
import resource
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np

R = 5
DRAWS = 5
MEMORY = 5 << 30  # address space a package may use
# (n, p, nonzeros of each, variances): on the small set random starts find a third to a half of the supports,
# and single starts by variance nearly all
SETS = {
    "small": (200, 5_000, 20, (8, 7.5, 7, 6.5, 6)),
    "large": (500, 50_000, 30, (12, 11, 10, 9, 8)),
}


def draw(name, seed):
    from spcacore.datasets import make_spiked

    n, p, k, variances = SETS[name]
    return make_spiked(n, p, cardinality=k, variances=variances, rng=seed)


def recall(V, planted):
    """Fraction of the planted supports that is found, components matched to do best."""
    from scipy.optimize import linear_sum_assignment

    common = (planted != 0).T.astype(float) @ (V != 0)
    rows, columns = linear_sum_assignment(-common)
    return float(common[rows, columns].sum() / np.count_nonzero(planted))


# ---- packages: each returns p x r loadings -----------------------------------------------------------


def spcacore(X, k):
    from spcacore import sparse_pca

    return sparse_pca(X, R, cardinality=k).loadings


def expert_numpy(X, k, tol=1e-8):
    """Truncated power as an expert writes it: centering and deflation implicit, supports gathered.

    Starts from the k variables of largest variance, weighted by it.
    """
    n, p = X.shape
    mean = X.mean(axis=0)
    variance = np.einsum("ij,ij->j", X, X) - n * mean**2
    found = []

    def top(y):
        index = np.argpartition(np.abs(y), p - k)[p - k :]
        return index, y[index] / np.linalg.norm(y[index])

    for _ in range(R):
        index, value = top(np.maximum(variance, 0))
        before = 0.0
        while True:
            v = np.zeros(p)
            v[index] = value
            for S, x, _ in reversed(found):
                v[S] -= x * (x @ v[S])
            S = np.flatnonzero(v)
            u = X[:, S] @ v[S]
            u -= u.mean()
            now = u @ u
            if now <= before * (1 + tol):
                break
            before = now
            y = u @ X
            for S, x, _ in found:
                y[S] -= x * (x @ y[S])
            index, value = top(y)
        product = y[index]
        variance[index] += value * (now * value - 2 * product)
        found.append((index, value, now))
    V = np.zeros((p, R))
    for t, (index, value, _) in enumerate(found):
        V[index, t] = value
    return V


def fifteen_lines_numpy(X, k):
    """Truncated power and projection deflation, as one first writes them."""
    X = X - X.mean(axis=0)
    V = np.zeros((X.shape[1], R))
    for t in range(R):
        x = X.var(axis=0)
        before = 0.0
        while True:
            x[np.argsort(np.abs(x))[:-k]] = 0
            x /= np.linalg.norm(x)
            u = X @ x
            if u @ u <= before * (1 + 1e-8):
                break
            before = u @ u
            x = X.T @ u
        V[:, t] = x
        X -= np.outer(u, x)
    return V


def sklearn_sparse_pca(X, k, penalty):
    from sklearn.decomposition import SparsePCA

    return SparsePCA(R, alpha=penalty, random_state=0).fit(X).components_.T


def sklearn_minibatch(X, k, penalty):
    from sklearn.decomposition import MiniBatchSparsePCA

    return MiniBatchSparsePCA(R, alpha=penalty, random_state=0).fit(X).components_.T


def abess(X, k):
    from abess.decomposition import SparsePCA

    V = np.asarray(SparsePCA(support_size=k).fit(X, number=R).coef_)
    if (V == 1).all():  # what version 0.4.11 answers without having searched
        raise RuntimeError("no answer where n < p")
    return V


def sparsepca(X, k, penalty):
    from sparsepca import spca

    return spca(X - X.mean(axis=0), np.full((R, 1), penalty), np.inf, k=R, normalize=False)["loadings"]


# function, first guess of the penalty or None
PACKAGES = {
    "spcacore": (spcacore, None),
    "expert NumPy": (expert_numpy, None),
    "fifteen lines of NumPy": (fifteen_lines_numpy, None),
    "scikit-learn SparsePCA": (sklearn_sparse_pca, 10.0),
    "scikit-learn MiniBatchSparsePCA": (sklearn_minibatch, 3.0),
    "abess SparsePCA": (abess, None),
    "sparsepca (AManPG)": (sparsepca, 10.0),
}


# ---- measuring --------------------------------------------------------------------------------------


def matched(fit, X, k, penalty, max_fits=14):
    """Loadings with R k nonzeros to 5 %, seconds of that fit, fits made, and the nonzeros."""
    low, high, best = 0.0, np.inf, None
    for fits in range(1, max_fits + 1):  # noqa: B007
        start = time.process_time()
        V = fit(X, k) if penalty is None else fit(X, k, penalty)
        seconds = time.process_time() - start
        nonzeros = int(np.count_nonzero(V))
        print(json.dumps({"fit": seconds, "penalty": penalty, "nonzeros": nonzeros}), flush=True)
        miss = abs(nonzeros - R * k)
        if best is None or miss < best[0]:
            best = miss, V, seconds, nonzeros
        if penalty is None or miss <= 0.05 * R * k:
            break
        low, high = (penalty, high) if nonzeros > R * k else (low, penalty)
        penalty = 3 * low if high == np.inf else high / 3 if low == 0 else float(np.sqrt(low * high))
    return best[1], best[2], fits, best[3]


def main(package, name, limit):
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit), int(limit) + 1))
    fit, penalty = PACKAGES[package]
    for seed in range(DRAWS):
        X, planted = draw(name, seed)
        X.T @ X[:, 0]
        V, seconds, fits, nonzeros = matched(fit, X, SETS[name][2], penalty)
        line = {"seconds": seconds, "fits": fits, "nonzeros": nonzeros, "recall": recall(V, planted)}
        print(json.dumps(line), flush=True)


def explain(code, errors, limit):
    if code == -signal.SIGXCPU:
        return f"over {limit:g} s"
    if code < 0:
        return f"ended by signal {-code}"
    kind, _, text = errors.strip().splitlines()[-1].partition(": ")
    if "MemoryError" in kind:
        return "out of memory"
    return text if kind == "RuntimeError" else kind


def run(package, name, limit):
    """Medians over the draws finished in `limit` CPU seconds, or what kept the first from finishing."""
    single = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    command = [sys.executable, str(Path(__file__).resolve()), package, name, str(int(limit))]
    failure = None
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=10 * limit, env={**os.environ, **single}, check=False
        )
        output = done.stdout
        if done.returncode:
            failure = explain(done.returncode, done.stderr.decode(), limit)
    except subprocess.TimeoutExpired as expired:
        output = expired.stdout or b""
        failure = f"over {limit:g} s"
    lines = [json.loads(line) for line in output.decode().splitlines() if line.endswith("}")]
    draws = [line for line in lines if "recall" in line]
    if not draws:
        one = {"fit": statistics.median(line["fit"] for line in lines)} if lines else {}
        return {"failure": failure, **one}
    return {
        "seconds": float(np.median([d["seconds"] for d in draws])),
        "fits": float(np.median([d["fits"] for d in draws])),
        "recall": float(np.mean([d["recall"] for d in draws])),
        "nonzeros": float(np.mean([d["nonzeros"] for d in draws])),
        "draws": len(draws),
    }


if __name__ == "__main__":
    main(*sys.argv[1:])
