"""Two threads against one: the targets, and how loops go on with more; of docs/measured/threads.md.

python benchmarks/two_threads.py [--quick] [--write]: over ten minutes on a machine that does nothing else.
With --write the measured parts of the page are written anew. Times are wall times, alternately in one
process, minima; BLAS has one thread unless said.
"""

import argparse
import contextlib
import gc
import os
import platform
import subprocess
import sys
import threading
import time
from datetime import date
from functools import partial

import numpy as np
import pages
import rotated
import scaling
from families import K, R, make
from threadpoolctl import threadpool_limits

import spcacore
from spcacore import _core, limit_threads, sca, set_num_threads, sparse_pca, stability
from spcacore.linalg.threads import available_cores
from spcacore.operators.inputs import as_problem

FAMILIES = ("medium", "gene", "noise")
STORAGE = [(dtype, order) for dtype in ("float64", "float32") for order in "CF"]
BUSY = """
import numpy as np
A = np.ones((500, 500))
print("", flush=True)
while True: A @ A
"""


def seconds(call):
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def one_and_two(call, least=5, enough=0.5):
    """Seconds by one and by two threads, at least so often and until enough time has passed."""
    times, begin = {1: [], 2: []}, time.perf_counter()
    for n_threads in (1, 2):
        with limit_threads(n_threads):
            call()
    while len(times[1]) < least or time.perf_counter() - begin < enough:
        for n_threads in (1, 2):
            with limit_threads(n_threads):
                times[n_threads].append(seconds(call))
    return [min(t) for t in times.values()]


def row(what, target, one, two, ratio, met):
    print(f"{what:60s} {target:>10s} {1e3 * one:10.2f} {1e3 * two:10.2f} {ratio:6.2f}", flush=True)
    return [
        what,
        target,
        f"{1e3 * one:.3g}",
        f"{1e3 * two:.3g}",
        f"{ratio:.2f}",
        {True: "met", False: "**missed**", None: ""}[met],
    ]


def at_most(what, limit, call, **options):
    one, two = one_and_two(call, **options)
    return row(what, f"≤ {limit}", one, two, two / one, two <= limit * one)


# ---- the rows -----------------------------------------------------------------------------------------


def screened(p):
    """Whole calls of ten components."""
    for family in FAMILIES:
        X = make(family, p=p)
        for dtype, order in STORAGE:
            Y = np.asarray(X, dtype, order)
            call = lambda Y=Y: sparse_pca(Y, R, cardinality=K)  # noqa: E731
            yield at_most(f"`sparse_pca`, screened, {family}, {dtype}, {order}", 0.75, call, least=3)
            del Y, call
            gc.collect()


def arithmetic(p):
    """What is bound by arithmetic."""
    rng = np.random.default_rng(0)
    few = np.sort(rng.choice(p, 400, replace=False))
    for order in "CF":
        X = np.asarray(rng.standard_normal((500, p)), order=order)
        operator = as_problem(X).operator
        for width in (4, 8):
            V = np.asfortranarray(rng.standard_normal((p, width)))
            yield at_most(f"X'(XV), {width} columns, {order}", 0.6, lambda V=V, A=operator: A.apply_block(V))
        yield at_most(f"Gram matrix of 400 columns, {order}", 0.6, lambda A=operator: A.submatrix(few))
    Y = rng.standard_normal((1000, p // 25))
    out = np.empty((1000, 1000))
    yield at_most("Gram matrix of 1,000 rows", 0.6, lambda: _core.matrix_product(Y, None, 1.0, out))
    T = rng.standard_normal((200, 2000))
    pairs = np.zeros(T.shape[1] * (T.shape[1] - 1) // 2)
    yield at_most("distances", 0.6, lambda: _core.add_distances(T, np.ones(200), True, pairs))


def bandwidth(n_threads, x):
    """Bytes a second that so many threads of Python read at the same time, by BLAS of one thread."""
    stretches = np.array_split(x, n_threads)
    best = 0.0
    for _ in range(9):
        others = [threading.Thread(target=np.dot, args=(part, part)) for part in stretches[1:]]
        start = time.perf_counter()
        for thread in others:
            thread.start()
        np.dot(stretches[0], stretches[0])
        for thread in others:
            thread.join()
        best = max(best, x.nbytes / (time.perf_counter() - start))
    return best


def streaming(p):
    """The share of the bandwidth that products with one vector reach, by one thread and two."""
    x = np.ones(500 * p)
    rate = {n_threads: bandwidth(n_threads, x) for n_threads in (1, 2)}
    print(f"read bandwidth in GB/s: {rate[1] / 1e9:.1f}, {rate[2] / 1e9:.1f}")
    del x
    for dtype, order in STORAGE:
        X = np.asarray(np.random.default_rng(0).standard_normal((500, p)), dtype, order)
        operator, u, v = as_problem(X).operator, np.ones(500, dtype), np.ones(p, dtype)
        calls = {
            "X'u": lambda A=operator, u=u: A.backward(u),
            "Xv": lambda A=operator, v=v: A.forward(None, v),
        }
        for name, call in calls.items():
            one, two = one_and_two(call)
            share = X.nbytes / two / rate[2]
            what = f"{name}, {dtype}, {order}: share of the bandwidth of two threads"
            yield row(what, "≥ 0.85", one, two, share, share >= 0.85)


def against_blas(p):
    """Both with two threads."""
    X = make("noise", p=p)
    u, index, value = np.ones(500), np.arange(0, p, p // K)[:K], np.full(K, K**-0.5)
    for order in "CF":
        Y = np.asarray(X, order=order)
        operator = as_problem(Y).operator
        times = {"g": [], "own": []}
        for _ in range(30):
            with threadpool_limits(2, user_api="blas"):
                times["g"].append(seconds(lambda Y=Y: Y.T @ u))
            with limit_threads(2), threadpool_limits(1, user_api="blas"):
                times["own"].append(seconds(lambda A=operator: A.largest(index, value, K)))
        g, own = (min(t) for t in times.values())
        yield row(
            f"a plain iteration over g of two BLAS threads, {order}", "≤ 1.1", g, own, own / g, own <= 1.1 * g
        )


def against_numpy(n, p, rounds):
    """`sca` and the iteration as one would write it, as many times."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((n, p))
    for t, size in enumerate(np.linspace(9, 3, rotated.R)):
        X[:, 20 * t : 20 * t + 20] += np.outer(rng.standard_normal(n), np.full(20, size / 5))
    bound, times = 2.0 * rotated.R, {"sca": [], "NumPy": []}
    with threadpool_limits(2, user_api="blas"), limit_threads(2):
        sca(X[:50, :300], rotated.R, l1_bound=bound, tol=0.1)
        rotated.plain(X[:50, :300], bound, 2)  # libraries are loaded
        for _ in range(rounds):
            start = time.perf_counter()
            n_iter = sca(X, rotated.R, l1_bound=bound).n_iter
            times["sca"].append(time.perf_counter() - start)
            times["NumPy"].append(seconds(lambda n_iter=n_iter: rotated.plain(X, bound, n_iter)))
    numpy, own = min(times["NumPy"]), min(times["sca"])
    yield row(
        "NumPy over `sca`, dense, both with two threads", "≥ 1.5", numpy, own, numpy / own, numpy >= 1.5 * own
    )


def tiles():
    """Gram matrices by tiles and by BLAS: CPU time of one thread."""
    for n in (100, 500, 1000):
        A, out = np.random.default_rng(0).standard_normal((n, 2000)), np.empty((n, n))
        calls = {
            "BLAS": lambda A=A: A @ A.T,
            "own": lambda A=A, out=out: _core.matrix_product(A, None, 1.0, out),
        }
        times = {name: [] for name in calls}
        for _ in range(9):
            for name, call in calls.items():
                with limit_threads(1):
                    start = time.process_time()
                    call()
                    times[name].append(time.process_time() - start)
        blas, own = (min(t) for t in times.values())
        what = f"Gram matrix of {n} rows, ours over the BLAS, CPU time of one thread"
        yield row(what, "≤ 1.1", blas, own, own / blas, own <= 1.1 * blas)


def jobs():
    """Resamples by a thread each, beside loops that have two."""
    model = partial(sparse_pca, n_components=2, cardinality=8)
    for n, p in ((60, 30), (200, 1200)):
        X = np.random.default_rng(0).standard_normal((n, p))
        times = {1: [], 2: []}
        for _ in range(5):
            for n_jobs, found in times.items():
                with limit_threads(2):
                    found.append(seconds(partial(stability, X, model, n_resamples=20, n_jobs=n_jobs)))
        one, two = (min(t) for t in times.values())
        yield row(f"`stability`, {n} × {p}, by `n_jobs` of 2 over 1", "", one, two, two / one, None)


def small():
    """Calls around the size from which on loops are shared."""
    rng = np.random.default_rng(0)
    for n, p in ((30, 50), (100, 500), (100, 2000), (200, 1500), (100, 4000)):
        X = rng.standard_normal((n, p))
        call = lambda X=X: sparse_pca(X, 2, cardinality=10, method=spcacore.TPower(screening="none"))  # noqa: E731
        yield at_most(f"`sparse_pca`, {n} × {p}, of {X.nbytes / 1e6:.2g} MB", 1.05, call, least=20)


@contextlib.contextmanager
def busy(blas):
    """Another process multiplies matrices."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(blas)}
    other = subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE, env=environment)
    try:
        other.stdout.readline()
        yield
    finally:
        other.kill()
        other.wait()


def disturbed(p):
    """Medians, since a minimum would be of a moment when the other rests."""
    X = make("medium", p=p // 4)
    operator, u = as_problem(X).operator, np.ones(500)
    calls = {
        "`sparse_pca`, screened": lambda: sparse_pca(X, 2, cardinality=K),
        "X'u": lambda: operator.backward(u),
    }
    for blas in (1, 2):
        for name, call in calls.items():
            times = {1: [], 2: []}
            with busy(blas):
                for i in range(60 if name == "X'u" else 12):
                    for n_threads in (1, 2) if i % 2 else (2, 1):
                        with limit_threads(n_threads):
                            times[n_threads].append(seconds(call))
            one, two = (float(np.median(t)) for t in times.values())
            what = f"{name} beside a process whose BLAS has {blas} thread{'s' * (blas > 1)}"
            yield row(what, "≤ 1.05", one, two, two / one, two <= 1.05 * one)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a tenth of the columns")
    parser.add_argument(
        "--write", action="store_true", help="write the parts of docs/measured/threads.md anew"
    )
    options = parser.parse_args()
    p = 10_000 if options.quick else 100_000
    set_num_threads(available_cores())
    rows = []
    with threadpool_limits(1, user_api="blas"):
        for part in (
            screened(p),
            arithmetic(p // 2),
            streaming(p // 2),
            tiles(),
            small(),
            jobs(),
            disturbed(p // 2),
        ):
            rows += part
    rows += against_blas(p // 2)
    rows += against_numpy(*((300, 3000) if options.quick else (1000, 10_000)), 1 if options.quick else 2)
    header = ["what", "target", "one thread, or the other: ms", "two threads: ms", "ratio", ""]
    where = f"{date.today().isoformat()}, {platform.machine()}, {available_cores()} cores"
    text = f"Measured on {where}{', a quick run' * options.quick}.\n\n{pages.table(header, rows)}"
    with threadpool_limits(1, user_api="blas"):
        curve = scaling.report(scaling.counts(), (500, p // 2))
    print(curve)
    if options.write:
        pages.rewrite("measured/threads.md", "targets", text)
        pages.rewrite("measured/threads.md", "curve", f"```text\n{curve}\n```")


if __name__ == "__main__":
    main()
