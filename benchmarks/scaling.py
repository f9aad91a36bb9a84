"""How loops over the matrix scale with threads, on whatever machine this runs.

python scaling.py [THREADS ...]: times of each loop over those of one thread, and what a model of three
constants expects: bytes over the bandwidth of so many threads, arithmetic over the threads, and a waking for
each loop. By default 1, 2, 4, ... threads, up to the cores that the process may use.
"""

import sys
import time

import numpy as np
import scipy.sparse as sp

from spcacore import _core, set_num_threads, sparse_pca
from spcacore.linalg.threads import available_cores
from spcacore.operators.inputs import as_problem

SHAPE = (500, 50_000)
ROUNDS = 9


def loops(shape):
    """name: (bytes that a call reads, the call, loops that it takes)."""
    n, p = shape
    rng = np.random.default_rng(0)
    found = {}
    for order in "CF":
        X = np.asarray(rng.standard_normal(shape), order=order)
        operator, X_F = as_problem(X).operator, X
        u, v, V = np.ones(n), np.ones(p), np.ones((p, 4), order="F")
        blocks = max(1, X.nbytes >> 22)
        found |= {
            f"F v, {order}": (X.nbytes, lambda A=operator, v=v: A.forward(None, v), 1),
            f"F'u, {order}": (X.nbytes, lambda A=operator, u=u: A.backward(u), 1),
            f"A V of 4, {order}": (X.nbytes, lambda A=operator, V=V: A.apply_block(V), 2 * blocks),
        }
    for layout in ("csr", "csc"):
        X = sp.random(n, p, 0.1, layout, random_state=1)
        operator, u, v = as_problem(X).operator, np.ones(n), np.ones(p)
        read = X.data.nbytes + X.indices.nbytes
        V = np.ones((p, 20), order="F")
        found[f"A V of 20, {layout}"] = (read, lambda A=operator, V=V: A.apply_block(V), 4)
        found[f"F v, {layout}"] = (read, lambda A=operator, v=v: A.forward(None, v), 1)
        found[f"F'u, {layout}"] = (read, lambda A=operator, u=u: A.backward(u), 1)
        found[f"statistics, {layout}"] = (read, lambda X=X: as_problem(X), 1)
    T = rng.standard_normal((200, min(n, 2000)))
    found["sparse_pca, screened"] = (X_F.nbytes, lambda: sparse_pca(X_F, 2, cardinality=50), 40)
    pairs = np.zeros(T.shape[1] * (T.shape[1] - 1) // 2)
    found["distances"] = (T.nbytes, lambda: _core.add_distances(T, np.ones(200), True, pairs), 1)
    return found


def least(calls, counts, rounds=ROUNDS):
    """Seconds of each call by each number of threads: minima of rounds in turn."""
    times = {(name, count): np.inf for name in calls for count in counts}
    for _ in range(rounds):
        for name, (_, call, _) in calls.items():
            for count in counts:
                set_num_threads(count)
                start = time.perf_counter()
                call()
                times[name, count] = min(times[name, count], time.perf_counter() - start)
    return times


def waking():
    """Seconds that a loop takes longer for calling another thread: of parts that are nearly nothing."""
    X = np.ones((64, 5000))  # just beyond what one thread does alone
    operator, u = as_problem(X).operator, np.ones(64)
    times = least({"": (X.nbytes, lambda: operator.backward(u), 1)}, [1, 2], 200)
    return max(0.0, times["", 2] - times["", 1] / 2)


def report(counts, shape=SHAPE):
    """The constants, and the curve beside the model."""
    calls = loops(shape)
    times, wake = least(calls, counts), waking()
    read = "F'u, F"  # its arithmetic is hidden behind the reads
    bandwidth = {count: calls[read][0] / times[read, count] for count in counts}
    lines = [
        f"{shape[0]} x {shape[1]}; a loop wakes others in {wake * 1e6:.0f} us; reads in GB/s, by threads:",
        "  ".join(f"{count}: {rate / 1e9:.1f}" for count, rate in bandwidth.items()),
        "",
        f"{'time over one thread (model)':36s}" + "".join(f"{count:>14d}" for count in counts),
    ]
    for name, (size, _, n_loops) in calls.items():
        alone = times[name, 1]
        line = f"{name:36s}"
        for count in counts:
            model = max(size / bandwidth[count], alone / count) + (n_loops * wake if count > 1 else 0)
            line += f"{times[name, count] / alone:7.2f} ({model / alone:.2f})".rjust(14)
        lines.append(line)
    return "\n".join(lines)


def counts(asked=()):
    """1 and what is asked for; by default the powers of two up to the cores."""
    return sorted({1, *(asked or [2**i for i in range(11) if 2**i <= available_cores()])})


if __name__ == "__main__":
    print(report(counts([int(word) for word in sys.argv[1:]])))
