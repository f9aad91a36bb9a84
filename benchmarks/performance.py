"""Measure every performance target and write docs/measured/performance.md.

python benchmarks/performance.py [--quick] [--rows 2,3] [--peers] [-o docs/measured/performance.md]

Times are ratios: of medians taken alternately in one process, on the same array and with the same number
of threads, over a unit that is named. Measurements can be kept with --save and written anew, or
completed, with --load.
"""

import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from datetime import date
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from itertools import cycle
from pathlib import Path

import memory
import numpy as np
import pages
import peers
import threadpoolctl
from bench_rotation import planted, svd_iteration
from families import FAMILIES, K, R, make
from performance_page import N, document

import spcacore
from spcacore import _core, deflate, l1_threshold, sparse_pca, varimax
from spcacore.operators.deflation import DeflatedOperator as Deflated
from spcacore.operators.inputs import as_problem

SAMPLES = 3  # how often whole calls are timed,
LONG = 10  # but for those that take so many seconds, once


def race(options, functions, samples, share=1.0):
    """Median seconds of each function, timed in turn; `samples` rounds, or more while time is left."""
    times = [[] for _ in functions]
    for f in functions:
        f()
    begin = time.perf_counter()
    while len(times[0]) < samples or time.perf_counter() - begin < share * options.least:
        for f, seconds in zip(functions, times, strict=True):
            start = options.clock()
            f()
            seconds.append(options.clock() - start)
    return [statistics.median(t) for t in times]


def say(*words):
    print(*words, file=sys.stderr, flush=True)


# ---- rows ---------------------------------------------------------------------------------------------
# Each measures into a dict of numbers; with two threads again where the target says so.


def same_bits(a, b):
    return all(
        np.array_equal(np.asarray(x).view(np.uint8), np.asarray(y).view(np.uint8))
        for x, y in (
            (np.ascontiguousarray(a.loadings), np.ascontiguousarray(b.loadings)),
            (a.explained_variance, b.explained_variance),
            (a.n_iter, b.n_iter),
        )
    )


def whole_call(X, screening="auto"):
    return sparse_pca(X, R, cardinality=K, method=spcacore.TPower(screening=screening))


STORAGE = [(dtype, order) for dtype in ("float64", "float32") for order in "CF"]


def rows_1_to_3(options):
    """Screened against plain: bits, reads, and time in X.T @ u; by family, dtype and order."""
    results = {}
    for family in FAMILIES:
        for dtype, order in STORAGE:
            samples = options.samples if dtype == "float64" else 1
            results[f"{family} {dtype} {order}"] = r = screened(family, dtype, order, samples, options)
            say("   ", family, dtype, order, r)
    return results


def screened(family, dtype, order, samples, options):
    X = make(family, N, options.p, np.dtype(dtype), order)
    u = np.ones(N, X.dtype)
    calls = {"g": lambda: X.T @ u, "auto": lambda: whole_call(X), "none": lambda: whole_call(X, "none")}
    seconds = {name: [] for name in calls}
    results = {}
    X.T @ u
    for name in ["auto", "none"] + (samples - 1) * ["auto"]:
        if seconds[name] and seconds[name][0] > LONG:
            continue
        for one in [*5 * ["g"], name]:
            start = options.clock()
            results[one] = calls[one]()
            seconds[one].append(options.clock() - start)
    g, auto, none = (statistics.median(times) for times in seconds.values())
    screening = results["auto"].screening
    return {
        "equal": same_bits(results["auto"], results["none"]),
        "mode": screening.mode,
        "passes": int(results["none"].n_iter.sum() + R),
        "reads": screening.reads,
        "time": auto / g,
        "plain": none / g,
        "g": g,
    }


def all_modes_equal():
    """The other ways of screening, on fewer columns."""
    equal = {}
    for family in FAMILIES:
        for dtype, order in STORAGE:
            X = make(family, N, 20_000, np.dtype(dtype), order)
            plain = whole_call(X, "none")
            for mode in ("shadow", "references", "both"):
                equal[f"{family} {dtype} {order} {mode}"] = same_bits(whole_call(X, mode), plain)
    return equal


def row_4(options):
    """One iteration without screening: the next vector from the nonzeros of this one."""
    return {f"{dtype} {order}": iteration(dtype, order, options) for dtype, order in STORAGE}


def iteration(dtype, order, options):
    X = make("noise", N, options.p, np.dtype(dtype), order)
    u = np.ones(N, X.dtype)
    operator = as_problem(X).operator
    index = np.sort(np.random.default_rng(0).choice(options.p, K, replace=False))
    value = np.full(K, K**-0.5, X.dtype)
    g, t = race(options, [lambda: X.T @ u, lambda: operator.largest(index, value, K)], 30)
    return t / g


def sparse_loading(p, rng):
    x = np.zeros(p)
    x[rng.choice(p, K, replace=False)] = rng.standard_normal(K)
    return x / np.linalg.norm(x)


def row_5(options):
    return {order: data_deflation(order, options) for order in "CF"}


def data_deflation(order, options):
    """The public function, and its kernel; another loading every time."""
    X = make("noise", N, options.p, np.float64, order)
    u = np.ones(N)
    rng = np.random.default_rng(0)
    loadings = [sparse_loading(options.p, rng) for _ in range(100)]
    nonzeros = [(S, x[S]) for x in loadings for S in [np.flatnonzero(x)]]
    whole, kernel = cycle(loadings), cycle(nonzeros)
    g, call, inner = race(
        options,
        [
            lambda: X.T @ u,
            lambda: deflate(X, next(whole), kind="data", overwrite=True),
            lambda: _core.deflate_data("projection", X, *next(kernel), None),
        ],
        30,
    )
    return {"call": call / g, "kernel": inner / g}


def row_6(options):
    p = 10_000
    rng = np.random.default_rng(0)
    B = rng.standard_normal((50, p))
    A = B.T @ B
    A.flat[:: p + 1] += 1
    v = np.ones(p)
    problem = as_problem(A, kind="covariance", definite=False)
    state = Deflated.from_problem(problem)
    x = sparse_loading(p, rng)
    loading = np.flatnonzero(x), x[x != 0]
    deflated = state.deflate(*loading, noise=lambda _: 0.0).operator
    index = np.sort(rng.choice(p, K, replace=False))
    value = np.full(K, K**-0.5)
    g, update, before, after = race(
        options,
        [
            lambda: A @ v,
            lambda: state.deflate(*loading, noise=lambda _: 0.0),
            lambda: problem.operator.largest(index, value, K),
            lambda: deflated.largest(index, value, K),
        ],
        50,
    )
    return {"update": update / g, "product": max(after - before, 0.0) / g, "plain product": before / g}


def row_7(options):
    p = 10**6
    rng = np.random.default_rng(0)
    normal = rng.standard_normal(p)
    vectors = {
        "normal": normal,
        "uniform": rng.uniform(-1, 1, p),
        "t (2)": rng.standard_t(2, p),
        "Cauchy": rng.standard_cauchy(p),
        "exponential": rng.exponential(size=p),
        "sorted": np.sort(normal),
        "integers": np.round(3 * normal),
        "few large": np.where(np.arange(p) % 1000, 1e-3, 1.0) * normal,
        "nearly constant": 1 + 1e-6 * normal,
    }
    bounds = [1.0, 1.5, 3.0, 10.0, 30.0, 100.0, 300.0, 500.0, 700.0, 780.0, 797.0, 860.0, 990.0, 1000.0]
    results = {}
    for dtype in ("float64", "float32"):
        ratios = {}
        for name, vector in vectors.items():
            a = vector.astype(dtype)
            out = np.empty_like(a)
            for c in bounds:
                calls = [partial(np.copyto, out, a), partial(l1_threshold, a, c)]
                copy, t = race(options, calls, 7, 1 / 50)
                ratios[f"{name}, c = {c:g}"] = t / copy
        worst = max(ratios, key=ratios.get)
        results[dtype] = {
            "worst": ratios[worst],
            "where": worst,
            "median": statistics.median(ratios.values()),
            "over": sum(r > 8 for r in ratios.values()),
            "cases": len(ratios),
        }
    return results


def varimax_criterion(y):
    y2 = np.square(y)
    return float(np.sum(y2**2) - np.sum(np.sum(y2, axis=0) ** 2) / len(y))


def row_8(options):
    results = {}
    for p, r in ((1_000_000, 10), (20_000, 50)):
        L = planted(p, r, np.float64)
        samples = 3 if options.quick else 5
        work = L.copy(order="F")
        reads, times = [], []
        for _ in range(samples):
            work[:] = L
            for _ in range(5):
                start = options.clock()
                np.sum(L)
                reads.append(options.clock() - start)
            start = options.clock()
            varimax(work, overwrite=True)
            times.append(options.clock() - start)
        unit = statistics.median(reads)
        results[f"{p} x {r}"] = {"reads": statistics.median(times) / unit}
        if not options.quick:
            start = options.clock()
            other = svd_iteration(L)[0]
            results[f"{p} x {r}"]["numpy"] = (options.clock() - start) / unit
            results[f"{p} x {r}"]["optimum"] = varimax_criterion(work) / varimax_criterion(other)
    return results


def row_9(options):
    """Blocks of 1 to 8 columns."""
    if not hasattr(_core.Operator, "apply_block"):
        return None
    return {f"{order} {c}": block for order in "CF" for c, block in blocks(order, options)}


def blocks(order, options):
    X = make("noise", N, options.p, np.float64, order)
    u = np.ones(N)
    operator = as_problem(X).operator
    W = np.random.default_rng(0).standard_normal((8, options.p))
    for c in range(1, 9):
        V = W[:c].T
        calls = [lambda: X.T @ u, partial(operator.apply_block, V), partial(lambda V: X.T @ (X @ V), V)]
        g, block, blas = race(options, calls, 5, 1 / 4)
        yield c, {"block": block / g, "blas": blas / g}


def row_10(options):
    families = ["medium"] if options.quick else ["medium", "gene", "noise"]
    return {
        f"{family} {dtype} {order}": memory.peak(family, N, options.p, dtype, order, "auto")
        for family in families
        for dtype in ("float64", "float32")
        for order in "CF"
    }


IMPORT = """
import numpy, scipy.linalg, time
start = time.process_time()
from spcacore import sparse_pca
print(time.process_time() - start)
"""


def row_11(options):
    """Milliseconds, in fresh processes away from the sources."""
    with tempfile.TemporaryDirectory() as elsewhere:
        times = [
            float(
                subprocess.run(
                    [sys.executable, "-c", IMPORT], capture_output=True, check=True, cwd=elsewhere
                ).stdout
            )
            for _ in range(15)
        ]
    return {"ms": 1e3 * statistics.median(times)}


MEASURE = {3: rows_1_to_3, 4: row_4, 5: row_5, 6: row_6, 7: row_7, 8: row_8, 9: row_9, 10: row_10, 11: row_11}


# ---- main -----------------------------------------------------------------------------------------------


def machine():
    with open("/proc/cpuinfo") as lines:
        fields = dict((part.strip() for part in line.split(":", 1)) for line in lines if ":" in line)
    blas = "; ".join(
        sorted(
            {
                f"{i['internal_api']} {i['version']} ({i.get('architecture')})"
                for i in threadpoolctl.threadpool_info()
                if i["version"]
            }
        )
    )
    model = fields.get("model name", platform.processor())
    if "cpu family" in fields:
        model += f" (family {fields['cpu family']}, model {fields['model']})"
    return (
        f"{model}, {len(os.sched_getaffinity(0))} cores, {platform.system()} {platform.machine()}; "
        f"spcacore {version('spcacore')}, Python {platform.python_version()}, NumPy {np.__version__}, "
        f"SciPy {version('scipy')}, {blas}"
    )


def measure_peers(m, options):
    m["limit"] = options.limit
    m["peers"] = {}
    for name in peers.SETS:
        for package in peers.PACKAGES:
            say("peers:", name, package)
            m["peers"][f"{package} {name}"] = peers.run(package, name, options.limit)
            say("   ", m["peers"][f"{package} {name}"])
    X, _ = peers.draw("large", 0)
    u = np.ones(len(X))
    (m["unit large"],) = race(options, [lambda: X.T @ u], 20)
    m["peer versions"] = {}
    for name in ("scikit-learn", "abess", "sparsepca"):
        try:
            m["peer versions"][name] = version(name)
        except PackageNotFoundError:
            m["peer versions"][name] = "absent"


def main():
    parser = pages.parser(__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer columns and samples, one thread")
    parser.add_argument("--rows", default="1-11", help="e.g. 2,3,7-9, or none")
    parser.add_argument("--peers", action="store_true", help="other packages too")
    parser.add_argument("--limit", type=float, default=120, help="CPU seconds a package may take on one set")
    parser.add_argument("--load", help="start from measurements saved earlier")
    parser.add_argument("--save", help="keep the measurements as JSON")
    options = parser.parse_args()
    options.p = 30_000 if options.quick else 100_000
    options.samples = 2 if options.quick else SAMPLES
    options.least = 0.2 if options.quick else 2.0
    rows = set()
    for part in options.rows.split(",") if options.rows != "none" else ():
        first, _, last = part.partition("-")
        rows |= set(range(int(first), int(last or first) + 1))
    if rows & {1, 2}:  # measured together
        rows = rows - {1, 2} | {3}
    m = json.loads(Path(options.load).read_text()) if options.load else {}
    if m and m["quick"] != options.quick:
        parser.error("--load: those were measured " + ("with" if m["quick"] else "without") + " --quick")
    if rows or options.peers or not m:
        m |= {"date": date.today().isoformat(), "machine": machine(), "quick": options.quick, "p": options.p}
    for row, measure in MEASURE.items():
        if row not in rows:
            continue
        for threads in (1, 2) if row in (3, 4) and not options.quick else (1,):
            if threads > len(os.sched_getaffinity(0)):
                continue
            say(f"row {row}" if row != 3 else "rows 1-3", f"({threads} threads)")
            start = time.perf_counter()
            # Of one thread the CPU's time, which other processes on the machine disturb less
            options.clock = time.process_time if threads == 1 else time.perf_counter
            with threadpoolctl.threadpool_limits(threads):
                m[f"{row} threads {threads}" if row in (3, 4) else str(row)] = measure(options)
                if row == 3 and threads == 1 and not options.quick:
                    m["modes"] = all_modes_equal()
            say(f"    {time.perf_counter() - start:.0f} s")
    if options.peers:
        options.clock = time.process_time
        with threadpoolctl.threadpool_limits(1):
            measure_peers(m, options)
    if options.save:
        Path(options.save).write_text(json.dumps(m, indent=1))
    pages.write(document(m), options.output)


if __name__ == "__main__":
    main()
