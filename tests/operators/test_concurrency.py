"""Threads, signals, forks and pickles: what happens around a call rather than in it."""

import multiprocessing
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from calls import pca
from numpy.testing import assert_allclose, assert_array_equal
from oracles import normal
from processes import output_of
from scipy.sparse.linalg import LinearOperator
from threadpoolctl import threadpool_limits

import spcacore
from spcacore import sparse_pca
from spcacore.operators.inputs import as_problem

N, P, K, R = 60, 90, 7, 3


X0 = normal(0, N, P) * np.linspace(1, 3, P)


def test_error_in_one_thread_stays_there():
    chosen = threading.local()
    calls = []

    class Mine(Exception):
        pass

    def matvec(v):
        if getattr(chosen, "fails", None) is not None:
            chosen.fails -= 1
            if chosen.fails < 0:
                raise Mine(threading.get_ident())
        calls.append(threading.get_ident())
        return X0 @ v

    X = LinearOperator(X0.shape, matvec=matvec, rmatvec=lambda f: X0.T @ f, dtype=np.float64)
    with threadpool_limits(1):
        expected = sparse_pca(X, R, cardinality=K).loadings
        start = threading.Barrier(8)

        def run(i):
            chosen.fails = 10 * i if i % 4 == 3 else None
            start.wait(30)
            try:
                return sparse_pca(X, R, cardinality=K).loadings
            except Mine as error:
                return error.args[0] == threading.get_ident()
            finally:
                chosen.fails = None

        with ThreadPoolExecutor(8) as pool:
            outs = list(pool.map(run, range(8)))
    for i, out in enumerate(outs):
        if i % 4 == 3:
            assert out is True
        else:
            assert_array_equal(out, expected)
    assert len(set(calls)) > 1


def test_callbacks_of_threads_are_their_own():
    def run(i):
        seen = []

        def callback(progress):
            seen.append((i, progress.component))
            if progress.component == i % R and progress.value is not None:
                raise StopIteration

        out = sparse_pca(X0, R, cardinality=K, callback=callback)
        return out.n_components, {who for who, _ in seen}

    with ThreadPoolExecutor(8) as pool:
        for i, (r, who) in enumerate(pool.map(run, range(12))):
            assert r == i % R + 1
            assert who == {i}


def test_other_threads_run_meanwhile():
    """The GIL is released inside of the kernels: others run during a single call of one."""
    operator = as_problem(normal(3, 800, 8000)).operator
    ticks, done, most = [], threading.Event(), 0

    def tick():
        while not done.wait(0.001):
            ticks.append(None)

    thread = threading.Thread(target=tick)
    thread.start()
    for _ in range(50):  # one may be enough, if the machine is not busy
        before = len(ticks)
        operator.outer()
        most = max(most, len(ticks) - before)
        if most > 3:
            break
    done.set()
    thread.join()
    assert most > 3


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Child processes must import the installed package, not the source tree."""
    monkeypatch.chdir(tmp_path)


# ---- processes -----------------------------------------------------------------------------------------


def test_spawn():
    """A new process unpickles a result before it has called anything."""
    expected = sparse_pca(X0, 2, cardinality=K)
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        read = pool.apply_async(getattr, (expected, "loadings")).get(60)
        out = pool.apply_async(sparse_pca, (X0, 2), {"cardinality": K}).get(60)
    assert read.tobytes() == expected.loadings.tobytes()
    assert_allclose(out.loadings, expected.loadings, atol=1e-12)


# ---- results travel ------------------------------------------------------------------------------------


def test_results_hold_nothing_of_the_input():
    """Neither the matrix nor a view of it is kept alive, and pickles stay small."""
    X = normal(0, 2000, 30)
    r = sparse_pca(X, 2, cardinality=3, scale=True)
    assert len(pickle.dumps(replace(r, scores=None))) < X.nbytes / 50
    for value in vars(r).values():
        assert not (isinstance(value, np.ndarray) and np.shares_memory(value, X))


def test_scipy_sparse_imported_meanwhile():
    """While another thread imports it, the module is there without its names."""
    script = """
import sys, threading, types, numpy as np, spcacore._validation as i
a = np.eye(3)
for name in ("scipy.sparse", "scipy.sparse.linalg"):
    whole = sys.modules.pop(name, None)
    sys.modules[name] = types.ModuleType(name)
    assert not i.is_sparse(a) and not i.is_operator(a)
    sys.modules.pop(name)
    if whole is not None:
        sys.modules[name] = whole
import spcacore
failed = []
def dense():
    try:
        for _ in range(200):
            spcacore.truncate(a[0], 1)
            spcacore.explained_variance(a, a[:, :1], kind="covariance")
    except Exception as error:
        failed.append(repr(error))
threads = [threading.Thread(target=dense) for _ in range(4)]
for t in threads:
    t.start()
import scipy.sparse, scipy.sparse.linalg
for t in threads:
    t.join()
print(failed)
"""
    assert output_of(script).strip() == "[]"


@contextmanager
def filters_refused(monkeypatch):
    """Filters are the whole process's: another thread would hear of its own warnings as errors."""

    def refused(*_, **__):
        raise AssertionError("a filter for all threads")

    with monkeypatch.context() as during_test:
        for name in ("simplefilter", "filterwarnings", "catch_warnings"):
            during_test.setattr(warnings, name, refused)
        yield


def test_pre_images_leave_the_warning_filters_alone(monkeypatch):
    X = normal(0, 20, 3)
    with filters_refused(monkeypatch):
        result = spcacore.kernel_pca(X, 2, ridge=1.0)
        back = result.inverse_transform(result.scores)
    assert np.isfinite(back).all()
    with (
        filters_refused(monkeypatch),
        pytest.raises(ValueError, match=r"nearly singular|not positive definite"),
    ):
        spcacore.kernel_pca(X, 2, kernel="linear", ridge=1e-300)


def test_refits_leave_the_warning_filters_alone(monkeypatch):
    import scipy.optimize  # noqa: F401, whose import has a filter

    X = normal(0, 20, 6)
    with filters_refused(monkeypatch):
        spcacore.stability(X, pca(1, 2), n_resamples=4, rng=0)
        spcacore.select_sparsity(X, spcacore.sca, [1.0, 1.5], n_folds=2, rng=0)
        spcacore.select_prior(X, partial(spcacore.oppca, n_components=1), {"none": spcacore.Prior(rng=0)})


def test_refits_are_silent_in_their_threads_alone():
    """A resample that does not converge is not told of, and the same call of another thread is."""
    X = normal(0, 30, 8)
    started, told = threading.Event(), threading.Event()

    def callback(progress):
        started.set()
        told.wait(20)

    refits = threading.Thread(
        target=lambda: spcacore.stability(
            X,
            partial(spcacore.spca, cardinality=3, max_iter=1, tol=0.0),
            n_resamples=4,
            rng=0,
            callback=callback,
        )
    )
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        refits.start()
        started.wait(20)
        before = len(heard)  # of the fit of all the data, not of the resamples
        spcacore.spca(X, 1, cardinality=3, max_iter=1, tol=0.0)
        assert len(heard) == before + 1
        told.set()
        refits.join()
    assert len(heard) == before + 1
    assert heard[-1].filename == __file__


# ---- the ends of processes and of interpreters ----------------------------------------------------------

AROUND = """
import atexit, multiprocessing, os, signal, sys, threading, time, warnings
import numpy as np, spcacore
warnings.simplefilter("ignore", DeprecationWarning)
spcacore.set_num_threads(4)
X = np.random.default_rng(0).standard_normal((300, 1800))  # beyond what one thread keeps to itself

def solve(*_):
    method = spcacore.TPower(screening="none", n_starts=1)
    return spcacore.sparse_pca(X, 2, 20, method=method).loadings.tobytes()

def right(*_):
    return solve() == expected

def meanwhile(do):  # what it gives while another thread is in calls
    ended = threading.Event()
    def calls():
        while not ended.is_set():
            assert right()
    thread = threading.Thread(target=calls)
    thread.start()
    time.sleep(0.05)
    given = do()
    ended.set()
    thread.join()
    return given

def forked():
    pid = os.fork()
    if pid == 0:
        os._exit(0 if right() else 1)
    return os.waitpid(pid, 0)[1] == 0

expected = solve()
if os.path.isdir("/proc/self/task"):
    assert len(os.listdir("/proc/self/task")) > 3
"""
ENDS = {  # what runs, and what it prints; or the signal that ends it
    "multiprocessing forks while another thread calls": (
        """
with multiprocessing.get_context("fork").Pool(2) as pool:
    print(meanwhile(lambda: pool.map_async(right, range(4)).get(60)) == [True] * 4)""",
        "True",
    ),
    "a fork of another thread while the first one calls": (
        """
told = []
thread = threading.Thread(target=lambda: told.append(forked()))
thread.start()
while thread.is_alive():
    assert right()
print(told)""",
        "[True]",
    ),
    "forks of two threads, and of a forked process": (
        """
told = []
both = [threading.Thread(target=lambda: told.append(forked())) for _ in range(2)]
[thread.start() for thread in both]
[thread.join() for thread in both]
pid = os.fork()
if pid == 0:
    os._exit(0 if right() and forked() else 1)
print(told, os.waitpid(pid, 0)[1], right())""",
        "[True, True] 0 True",
    ),
    "forks in the middle of a call": (
        """
forks = []
def callback(progress):
    if len(forks) < 2:
        forks.append(os.fork())
        if forks[-1] == 0:
            forks.extend([0] * 2)
method = spcacore.TPower(screening="none", n_starts=1)
same = spcacore.sparse_pca(X, 2, 20, method=method, callback=callback).loadings.tobytes() == expected
if 0 in forks:
    os._exit(0 if same else 1)
print(same, len(forks), [os.waitpid(pid, 0)[1] for pid in forks], right())""",
        "True 2 [0, 0] True",
    ),
    "the interpreter ends while a thread that it waits for calls": (
        """
threading.Thread(target=lambda: (time.sleep(0.1), print(right()))).start()
sys.exit(0)""",
        "True",
    ),
    "calls by atexit, and of a thread that nobody waits for": (
        """
atexit.register(lambda: print(right()))
threading.Thread(target=solve, daemon=True).start()""",
        "True",
    ),
    "a process that leaves at once": (
        """
threading.Thread(target=lambda: [solve() for _ in range(99)], daemon=True).start()
time.sleep(0.1)
print(True, flush=True)
os._exit(0)""",
        "True",
    ),
    "a signal that ends the process": (
        """
threading.Thread(target=lambda: [solve() for _ in range(999)], daemon=True).start()
time.sleep(0.1)
os.kill(os.getpid(), signal.SIGTERM)
time.sleep(60)""",
        -signal.SIGTERM,
    ),
    "Ctrl-C while another thread calls": (
        """
def interrupted():
    try:
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(60)
    except KeyboardInterrupt:
        return True
signal.signal(signal.SIGINT, signal.default_int_handler)
print(meanwhile(interrupted), right())""",
        "True True",
    ),
    "signals whose handler goes on": (
        """
heard = []
signal.signal(signal.SIGALRM, lambda *_: heard.append(1))
signal.setitimer(signal.ITIMER_REAL, 0.001, 0.001)
same = [right() for _ in range(20)]
signal.setitimer(signal.ITIMER_REAL, 0)
print(all(same), len(heard) > 10)""",
        "True True",
    ),
    "a handler that calls": (
        """
told = []
signal.signal(signal.SIGALRM, lambda *_: told.append(right()))
signal.setitimer(signal.ITIMER_REAL, 0.01)
while not told:
    assert right()
print(told)""",
        "[True]",
    ),
}


@pytest.mark.share(6)
@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="no forks and timers here")
@pytest.mark.parametrize("name", ENDS)
def test_the_pool_and_the_ends_of_processes(name):
    code, said = ENDS[name]
    command = [sys.executable, "-c", AROUND + code]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    expected = (said, "") if isinstance(said, int) else (0, said)
    assert (done.returncode, done.stdout.strip()) == expected, done.stderr


INTERPRETERS = """
import sys, numpy as np
try:
    import _interpreters as interpreters
except ImportError:
    import _xxsubinterpreters as interpreters
code = "import numpy as np, spcacore; spcacore.tpower(np.eye(9)[:5], 3)"

def inside():
    other = interpreters.create(**isolated)
    try:  # which NumPy, or an editable install, may refuse
        interpreters.run_string(other, code)
    except interpreters.RunFailedError as error:
        assert "ImportError" in str(error) or "RuntimeError" in str(error), error

isolated = {} if sys.version_info >= (3, 13) else {"isolated": False}
"""


@pytest.mark.share(4)
@pytest.mark.parametrize("order", ["inside()\nimport spcacore", "import spcacore\ninside()\ninside()"])
def test_another_interpreter_of_the_process(order):
    """It is served or refused in words, before the first one or after it, which goes on."""
    ends = "\nprint(spcacore.tpower(np.eye(9)[:5], 3).value > 0)"
    assert output_of(INTERPRETERS + order + ends).split()[-1] == "True"
