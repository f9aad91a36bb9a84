"""Random calls of the whole API in one process: memory stays, results hold, and errors are named.

    python tests/soak.py --minutes 60 --seed 0        # exit status 1 if anything is amiss
    python tests/soak.py --seed 0 --replay 1234       # the call of that number again

Needs the extra "test-all"; with OPENBLAS_NUM_THREADS=1 it leaves the other processors alone.
"""

import argparse
import collections
import contextlib
import ctypes
import dataclasses
import functools
import gc
import inspect
import io
import itertools
import json
import re
import statistics
import sys
import tempfile
import time
import traceback
import warnings
from pathlib import Path

import calls
import drawn_calls
import matplotlib
import random_calls

matplotlib.use("Agg")

import numpy as np
import pandas as pd
import scipy.io
import scipy.sparse as sp
from matplotlib import pyplot

import spcacore
from spcacore import plot
from spcacore.cli import main as command

INTERVAL = 10.0  # seconds between two looks at the memory
SMALL, LARGE = 2, 60  # of n and p
OTHER_LENGTHS = "PPCAResult", "StructuredPCAResult", "RotatedResult", "Comparison", "ObliqueRotation"
PATIENCE = 20.0  # seconds of the processor that a call may take
SHARE, BYTES = 0.02, 5e6  # what the memory may grow by, whichever is more
WARNINGS = re.compile(
    "not converged|did not converge|has no variance|found only|in common|nothing is left|is left after|vanish"
    "|fewer than|is too large|leaves? no noise|ill-conditioned|without nonzeros|did not finish"
    "|exceeds the number|constant column|is symmetric, as a covariance|X has a single sample"
)


class Interruption(Exception):
    """What a callback raises."""


# ---- random matrices ---------------------------------------------------------------------------------


def resize(rng):
    """The table of calls for matrices of a random shape."""
    n, p = (int(m) for m in rng.integers(SMALL, LARGE + 1, 2))
    r = int(rng.integers(1, min(n, p, 4) + 1))
    X = drawn_calls.structured(rng, n, p)
    V = rng.standard_normal((p, r))
    with np.errstate(all="ignore"):
        A = np.cov(X, rowvar=False).reshape(p, p)
    sizes = {"N": n, "P": p, "R": r, "K": int(rng.integers(1, min(p, 6) + 1))}
    clean = {"data": X, "covariance": A, "loadings": V, "vector": V[:, 0].copy()}
    mask = np.arange(p)[:, None] % max(2, p // 3) == np.arange(r)
    made = {"V0": V, "SPARSE": np.where(mask, V, 0), "LABELS": np.arange(n) % 3, "CLEAN": clean}
    vars(calls).update(sizes | made)
    return X


# ---- what holds of any result ------------------------------------------------------------------------


def unit(V, tol):
    norms = np.linalg.norm(np.asarray(V, np.float64), axis=0)
    return bool(np.all((np.abs(norms - 1) < tol) | (norms == 0)))


def check(result, total=None):
    """Numbers that are none, loadings of another length than 1, and variance from nowhere are amiss."""
    for name, value in calls.numbers(result).items():
        assert not np.isnan(value).any(), f"NaN in {name}"
    if isinstance(result, (tuple, list)):
        for part in result:
            check(part)
        return
    kind = type(result).__name__
    V = getattr(result, "loadings", getattr(result, "loading", None))
    if V is None or kind in OTHER_LENGTHS:
        return
    assert np.isfinite(V).all(), "loadings are not finite"
    tol = 1e-4 if V.dtype == np.float32 else 1e-9
    if kind not in ("SparseEigenResult", "SparseLDAResult", "SparseCCAResult"):
        assert unit(V, tol), "loadings are not of unit length"
    if hasattr(result, "cardinality"):
        assert np.array_equal(np.count_nonzero(V, axis=0), np.atleast_1d(result.cardinality)), (
            "cardinality is not the count"
        )
    if hasattr(result, "value"):
        bound = result.upper_bound
        assert bound is None or result.value <= bound * (1 + tol), "value above its upper bound"
        assert total is None or result.value <= total * (1 + 10 * tol), "value above the total variance"
    if kind in ("SparsePCAResult", "SPCAResult") and result.total_variance is not None:
        explained = result.explained_variance
        if np.isfinite(result.total_variance) and np.isfinite(explained).all():
            assert explained.sum() <= result.total_variance * (1 + 10 * tol), "more than the total variance"
            assert (explained >= -tol * result.total_variance).all(), "negative variance"


def total_variance(call, X):
    if call.takes == "covariance":
        return float(np.trace(X))
    with np.errstate(over="ignore", under="ignore"):
        total = float(np.sum(np.var(X, axis=0, ddof=1)))
    return total if np.isfinite(total) and total > 1e-280 else None


# ---- the kinds of call -------------------------------------------------------------------------------


def one_of_the_table(rng):
    """A function as the table of calls has it, for a matrix of another shape."""
    resize(rng)
    call = calls.CALLS[rng.integers(len(calls.CALLS))]
    X = calls.CLEAN[call.takes]
    check(call.run(X), total_variance(call, X))
    return call.function


REPORTING = [
    call
    for call in calls.CALLS
    if "callback" in inspect.signature(getattr(calls, call.function, check)).parameters
]


def interrupted(rng):
    """A callback that raises: the exception comes through as it is."""
    resize(rng)
    countdown = itertools.count(int(rng.integers(0, 6)), -1)
    error = Interruption(rng.integers(100))

    def callback(progress):
        if next(countdown) == 0:
            raise error

    call = REPORTING[rng.integers(len(REPORTING))]
    function = getattr(calls, call.function)
    setattr(calls, call.function, functools.partial(function, callback=callback))
    try:
        check(call.run(calls.CLEAN[call.takes]))
    except Interruption as caught:
        if caught is not error:
            raise
        return "interrupted"
    finally:
        setattr(calls, call.function, function)
    return "a callback"


def estimator(rng):
    return random_calls.ask_an_estimator(rng, resize(rng), check)


def picture(rng):
    X = resize(rng)
    result = spcacore.sparse_pca(X, max(2, calls.R) if min(X.shape) > 1 else 1, cardinality=calls.K)
    draws = [
        lambda: plot.bars(result),
        lambda: plot.heatmap(result),
        lambda: plot.scree(result, X),
        lambda: plot.biplot(result, X),
        lambda: plot.path(spcacore.sparsity_path(X, spcacore.sparse_pca, [1, 2])),
        lambda: plot.images(result, (1, X.shape[1])),
    ]
    which = rng.integers(len(draws))
    try:
        axes = draws[which]()
        axes.figure.canvas.draw()
    finally:
        pyplot.close("all")
    return "plot"


def commands(rng):
    """The command in this process, on a file of some kind, with options that may be nonsense."""
    X = resize(rng)
    with tempfile.TemporaryDirectory() as folder:
        kind = str(rng.choice(["npy", "npz", "csv", "mtx", "parquet", "bad.npy", "bad.csv"]))
        file = Path(folder) / f"X.{kind}"
        if kind == "npy":
            np.save(file, X)
        elif kind == "npz":
            np.savez(file, X=X)
        elif kind == "csv":
            pd.DataFrame(X).to_csv(file, index=False)
        elif kind == "mtx":
            scipy.io.mmwrite(file, sp.csr_array(X))
        elif kind == "parquet":
            pd.DataFrame(X, columns=[f"v{j}" for j in range(X.shape[1])]).to_parquet(file)
        else:
            file.write_bytes(rng.bytes(int(rng.integers(300))))
        task = str(rng.choice([*random_calls.COMMANDS]))
        argv = [task, str(file)]
        if task in ("transform", "compare"):
            pd.DataFrame(calls.V0).to_csv(Path(folder) / "V.csv", index=False)
            argv += ["--loadings", str(Path(folder) / "V.csv")]
        elif task != "info":
            argv += ["-k", "1,2" if task != "fit" else str(calls.K)]
        if task == "fit":
            argv += ["-n", str(calls.R), "-o", str(Path(folder) / "out.npz")]
            argv += ["--scores", str(Path(folder) / "scores.csv")] if rng.random() < 0.5 else []
        argv += [a for a in ("--json", "--scale", "--float32", "--nonsense", "--orientation=columns")
                 if rng.random() < 0.05]  # fmt: skip
        argv += random_calls.flags(rng, task)
        with (
            contextlib.redirect_stdout(io.StringIO()) as out,
            contextlib.redirect_stderr(io.StringIO()) as err,
        ):
            status = command(argv)
        assert status in (0, 2), f"{argv} ended with {status}"
        assert status == 0 or err.getvalue().startswith("spcacore: "), err.getvalue()
        if status == 0 and "--json" in argv:
            json.loads(out.getvalue())
    return f"command, {status}"


def declared_options(rng):
    """Any function, by its declared options, on an odd array, now and then with hardly any entry, or none."""
    n, p = (int(m) for m in (rng.integers(0, 3, 2) if rng.random() < 0.1 else rng.integers(1, 25, 2)))
    return random_calls.ask(rng, drawn_calls.structured(rng, n, p), check)


TASKS = [
    (declared_options, 60),
    (one_of_the_table, 40),
    (interrupted, 12),
    (estimator, 6),
    (picture, 1),
    (commands, 4),
]


def run(seed, number):
    """Call `number`; what it was."""
    rng = np.random.default_rng([seed, number])
    weights = np.array([weight for _, weight in TASKS], float)
    task = TASKS[rng.choice(len(TASKS), p=weights / weights.sum())][0]
    try:
        return task(rng)
    except (TypeError, ValueError) as error:  # options that do not go together, or with so small a matrix
        if not traced_to_a_check(error):
            raise
        return f"refused: {type(error).__name__}"


def traced_to_a_check(error):
    """Whether it was raised by a `raise` of spcacore, not by what met something that it did not expect."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    compiled = last.filename.endswith((".pyx", ".pxi"))
    ours = {"spcacore", "sklearn"} & set(Path(last.filename).parts)
    return compiled or (bool(ours) and "raise" in (last.line or ""))


# ---- memory ------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Sample:
    seconds: float
    resident: int  # bytes
    blocks: int  # of memory, that Python objects have


def sample(started):
    """What the allocator keeps for later is given back first: it depends on the order of the calls."""
    gc.collect()
    with contextlib.suppress(AttributeError, OSError):  # of another C library
        ctypes.CDLL(None).malloc_trim(0)
    with open("/proc/self/status") as lines:
        resident = next(int(line.split()[1]) * 1024 for line in lines if line.startswith("VmRSS"))
    return Sample(time.monotonic() - started, resident, sys.getallocatedblocks())


def growth(samples):
    """Medians of the second and the last quarter: the first warms up."""
    quarter = max(1, len(samples) // 4)
    parts = samples[quarter : 2 * quarter] or samples, samples[-quarter:]
    return {
        name: tuple(statistics.median(getattr(s, name) for s in part) for part in parts)
        for name in ("resident", "blocks")
    }


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--minutes", type=float, default=60)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--calls", type=int, default=10**9, help="the most of them")
    options.add_argument("--replay", type=int, help="the number of one call")
    args = options.parse_args()

    unexpected = []

    def heard(message, category, filename, lineno, file=None, line=None):
        if category not in (RuntimeWarning, UserWarning) or not WARNINGS.search(str(message)):
            unexpected.append(f"{category.__name__}: {message} ({filename}:{lineno})")

    warnings.simplefilter("always")
    warnings.showwarning = heard
    if args.replay is not None:
        print(run(args.seed, args.replay), *unexpected, sep="\n")
        return len(unexpected) > 0

    counts, failures, samples = collections.Counter(), [], []
    started = time.monotonic()
    for number in itertools.count():
        now = time.monotonic() - started
        if now >= len(samples) * INTERVAL:
            samples.append(sample(started))
            s = samples[-1]
            print(f"{s.seconds:6.0f} s  {number:8d} calls  {s.resident / 1e6:7.1f} MB  {s.blocks:8d} blocks  "
                  f"{len(failures)} failures", flush=True)  # fmt: skip
        if now > 60 * args.minutes or number >= args.calls:
            break
        busy = time.process_time()
        try:
            counts[run(args.seed, number)] += 1
            if unexpected:
                raise AssertionError(f"not a documented warning: {unexpected}")
            if time.process_time() - busy > PATIENCE:
                raise AssertionError(f"it took {time.process_time() - busy:.0f} s")
        except Exception as error:
            failures.append(f"{type(error).__name__}: {error}")
            print(f"FAILED --seed {args.seed} --replay {number}\n{traceback.format_exc()}", flush=True)
        unexpected.clear()

    for name, count in sorted(counts.items()):
        print(f"{count:8d}  {name}")
    print(f"{number} calls, {number / now:.1f} a second")
    grown = False
    for name, (before, after) in growth(samples).items():
        allowed = max(SHARE * before, BYTES if name == "resident" else 0)
        grown |= after - before > allowed
        print(f"{name}: {before:.0f} in the second quarter, {after:.0f} in the last, {after - before:+.0f}")
    print(f"{len(failures)} failures; memory {'grows' if grown else 'stays'}")
    return not counts or bool(failures) or grown


if __name__ == "__main__":
    sys.exit(main())
