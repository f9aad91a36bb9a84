"""Threads, signals, forks and pickles: what happens around a call rather than in it."""

import multiprocessing
import pickle
import signal
import subprocess
import sys
import textwrap
import threading
import time
import warnings
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import calls
import numpy as np
import pytest
from calls import pca
from numpy.testing import assert_allclose, assert_array_equal
from processes import output_of
from scipy.sparse.linalg import LinearOperator
from threadpoolctl import threadpool_limits

import spcacore
from spcacore import sparse_pca
from spcacore.operators.inputs import as_problem

N, P, K, R = 60, 90, 7, 3


X0 = np.random.default_rng(0).standard_normal((N, P)) * np.linspace(1, 3, P)


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
    operator = as_problem(np.random.default_rng(3).standard_normal((800, 8000))).operator
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


# ---- Ctrl-C -------------------------------------------------------------------------------------------

INTERRUPTED = """
import os, signal, sys, threading, time, warnings
import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator
from functools import partial
from spcacore import *

signal.signal(signal.SIGINT, signal.default_int_handler)
warnings.simplefilter("ignore")
FOREVER = {{"tol": 0, "max_iter": 10**6}}

def normal(n, p):
    return np.random.default_rng(0).standard_normal((n, p))

def covariance(p):
    X = normal(p, p)
    return X @ X.T / p

def long(X, r=50, k=80, **options):
    sparse_pca(X, r, cardinality=k, method=TPower(n_starts=10**6, **FOREVER), **options)

{setup}
sent = []
def interrupt():
    time.sleep({delay})
    sent.append((time.perf_counter(), time.process_time()))
    os.kill(os.getpid(), signal.SIGINT)
before = X.tobytes() if isinstance(X, np.ndarray) and X.size < 10**7 else b""
threading.Thread(target=interrupt, daemon=True).start()
try:
    while True:
        {call}
except KeyboardInterrupt:
    latency = time.perf_counter() - sent[0][0], time.process_time() - sent[0][1]
else:
    raise SystemExit("not interrupted")
assert not before or before == X.tobytes()
assert [t for t in threading.enumerate() if not t.daemon] == [threading.main_thread()]
Y = np.random.default_rng(0).standard_normal((30, 8))
again = sparse_pca(Y, 2, cardinality=3)
assert again.n_components == 2 and np.isfinite(again.loadings).all()
try:
    sparse_pca(Y, 2, cardinality=3, callback=lambda p: (_ for _ in ()).throw(KeyError("mine")))
except KeyError:
    pass
print(*latency)
"""

LONG = [
    ("sparse_pca, 2000 x 20000", "X = np.random.default_rng(0).standard_normal((2000, 20000))",
     "long(X)", 1.5),
    ("float32, F order", "X = np.random.default_rng(0).standard_normal((8000, 2000), np.float32).T",
     "long(X)", 0.4),
    ("csr", "X = sp.random(5000, 10000, 0.01, 'csr', random_state=np.random.default_rng(0))", "long(X)", 0.4),
    ("covariance", "Z = np.random.default_rng(0).standard_normal((3000, 3000)); X = Z @ Z.T",
     "long(X, kind='covariance')", 0.7),
    ("statistics, C order", "X = np.zeros((20000, 20000), np.float32)",
     "explained_variance(X, np.eye(20000, 1))", 0.3),
    ("statistics, F order", "X = np.zeros((20000, 20000), np.float32, order='F')",
     "explained_variance(X, np.eye(20000, 1))", 0.3),
    ("symmetry", "X = np.zeros((20000, 20000), np.float32)",
     "explained_variance(X, np.eye(20000, 1), kind='covariance')", 0.3),
    ("callable", "Z = np.random.default_rng(0).standard_normal((800, 800)); Z = Z @ Z.T; "
     "X = aslinearoperator(Z)", "long(X, kind='covariance')", 0.5),
    ("operator", "Z = np.random.default_rng(0).standard_normal((500, 3000)); X = aslinearoperator(Z)",
     "long(X)", 0.5),
    ("elastic nets", "X = np.random.default_rng(0).standard_normal((1200, 900))",
     "spca(X, 5, cardinality=200, ridge=1.0, tol=0, max_iter=10**6)", 0.4),
    ("LAPACK", "X = np.random.default_rng(0).standard_normal((2500, 20))",
     "kernel_pca(X, 5, solver='lapack')", 0.4),
    ("callback", "X = np.random.default_rng(0).standard_normal((2000, 4000)); seen = []",
     "long(X, callback=seen.append)", 0.7),
]  # fmt: skip


SWIFT = {  # in time that one pass over the data takes
    "truncate", "soft_threshold", "l1_threshold", "prs", "row_blocks", "random_fourier_features",
    "from_loadings", "compare", "select_prior", "sparse_eigen_bound", "sparse_cca_bound", "promax", "oblimin",
    "information_projection",
}  # fmt: skip
LONGER = {  # what is slow to set up, or like what is above
    "tpower": ("X = normal(400, 5000)", "tpower(X, 500, options=TPower(n_starts=10**6, **FOREVER))"),
    "gpower": (
        "X = normal(400, 5000)",
        "gpower(X, 0.05, options=GPower(relative=True, n_starts=10**6, **FOREVER))",
    ),
    "gpower, block": (
        "X = normal(400, 5000)",
        "sparse_pca(X, 5, method=GPower(9.0, block=True, **FOREVER))",
    ),
    "pmd": (
        "X = normal(400, 5000)",
        "pmd(X, 20.0, options=PMD(sample_l1_bound=10.0, n_starts=10**6, **FOREVER))",
    ),
    "scotlass": ("X = normal(400, 3000)", "scotlass(X, 20.0, options=SCoTLASS(n_starts=10**6, **FOREVER))"),
    "greedy": ("X = normal(1000, 3000)", "greedy(X, 900)"),
    "greedy, backward": (
        "X = covariance(1500)",
        "greedy(X, 5, options=Greedy(strategy='backward'), kind='covariance')",
    ),
    "greedy, bidirectional": (
        "X = covariance(1500)",
        "greedy(X, 200, options=Greedy(strategy='bidirectional'), kind='covariance')",
    ),
    "least_squares_component": ("X = normal(300, 3000)", "least_squares_component(X, 200)"),
    "branch_and_bound": ("X = covariance(3000)", "branch_and_bound(X, 20, kind='covariance')"),
    "branch_and_bound, tree": ("X = normal(1000, 400)", "branch_and_bound(X, 20)"),
    "dspca": ("X = covariance(1500)", "dspca(X, 20, kind='covariance', options=DSPCA(**FOREVER))"),
    "optimality_bound": ("X = covariance(500)", "optimality_bound(X, 9, relaxation=True, kind='covariance')"),
    "optimality_bound, Lanczos": ("X = covariance(2500)", "optimality_bound(X, 20, kind='covariance')"),
    "refine": ("X = normal(300, 2000); V = sparse_pca(X, 4, cardinality=200).loadings",
               "refine(X, V, cardinality=200, **FOREVER)"),
    "spca": ("X = normal(600, 3000)", "spca(X, 5, penalty=0.5, **FOREVER)"),
    "sca": ("X = normal(1500, 3000)", "sca(X, 5, l1_bound=30.0, **FOREVER)"),
    "sca, covariance": ("X = covariance(3000)", "sca(X, 5, l1_bound=30.0, kind='covariance', **FOREVER)"),
    "sca_path": ("X = normal(1500, 3000)", "sca_path(X, 5, [10.0, 20.0, 30.0], **FOREVER)"),
    "sma": ("X = normal(1500, 3000)", "sma(X, 5, l1_bound=30.0, sample_l1_bound=30.0, **FOREVER)"),
    "oppca": ("X = normal(1000, 3000)", "oppca(X, 20, **FOREVER)"),
    "soppca": ("X = normal(1000, 3000)", "soppca(X, 10, 300, **FOREVER)"),
    "ppca": ("X = normal(2500, 4000)", "ppca(X, 20)"),
    "ppca, covariance": ("X = covariance(3000)", "ppca(X, 20, kind='covariance', n_samples=500)"),
    "varimax": ("X = normal(20000, 60)", "varimax(X, **FOREVER)"),
    "orthomax": ("X = normal(1200, 1000)", "orthomax(X, 0.5, normalize=True, **FOREVER)"),
    "l1_rotation": ("X = normal(20000, 60)", "l1_rotation(X, **FOREVER)"),
    "kernel_pca": ("X = normal(12000, 20)", "kernel_pca(X, 5)"),
    "kernel_pca, features": ("X = normal(20000, 50)", "kernel_pca(X, 5, random_features=2000)"),
    "sparse_lda": ("X = normal(1500, 1500)", "sparse_lda(X, np.arange(1500) % 4, cardinality=200)"),
    "sparse_cca": (
        "X = normal(600, 3000)",
        "sparse_cca(X, X[::-1], 3, l1_bound=(20.0, 20.0), max_iter=10**6)",
    ),
    "sparse_cca, generalized": (
        "X = normal(600, 1500)",
        "sparse_cca(X, X[::-1], 1, method='generalized', cardinality=(200, 200), ridge=0.1)",
    ),
    "sparse_cca_permutation": (
        "X = normal(300, 2000)",
        "sparse_cca_permutation(X, X[::-1], [5.0, 20.0], n_permutations=1000, n_jobs=2)",
    ),
    "sparse_dissimilarity": ("X = normal(2000, 3000)", "sparse_dissimilarity(X, 10.0, **FOREVER)"),
    "sparse_dissimilarity, absolute": (
        "X = normal(2000, 3000)", "sparse_dissimilarity(X, 10.0, 'absolute', **FOREVER)"
    ),
    "sparse_dissimilarity_gap": (
        "X = normal(600, 3000)", "sparse_dissimilarity_gap(X, [10.0, 30.0], n_permutations=100, n_jobs=2)"
    ),
    "sparse_kmeans": ("X = normal(2000, 3000)", "sparse_kmeans(X, 5, 10.0, n_init=20)"),
    "sparse_kmeans_gap": (
        "X = normal(1000, 2000)", "sparse_kmeans_gap(X, 5, [10.0, 30.0], n_permutations=100, n_jobs=2)"
    ),
    "sparse_eigen": ("X = covariance(1500)", "sparse_eigen(X, X + np.eye(1500), cardinality=200)"),
    "sparsity_path": (
        "X = normal(500, 3000)",
        "sparsity_path(X, partial(sparse_pca, n_components=5), range(1000, 5, -5))",
    ),
    "select_sparsity": (
        "X = normal(500, 3000)", "select_sparsity(X, sparse_pca, [500, 300, 100], n_folds=10, n_jobs=2)"
    ),
    "select_n_components": (
        "X = normal(500, 3000)", "select_n_components(X, partial(sparse_pca, cardinality=100), 8, n_folds=5)"
    ),
    "explained_variance": (
        "X = normal(3000, 6000)", "explained_variance(X, np.eye(6000, 300) + 0.01, 'adjusted')"
    ),
    "renormalize": ("X = normal(3000, 6000)", "renormalize(X, np.eye(6000, 300) + 0.01)"),
    "deflate": ("X = np.zeros((10000, 10000)); X.flat[::10001] = 1",
                "deflate(X, np.ones(10000), 'schur', kind='covariance')"),
    "sparse_pca, blocks": ("X = normal(3000, 5000)", "long(row_blocks(X), 5)"),
    "sparse_pca, orthogonal": ("X = normal(400, 3000)", "long(X, deflation='orthogonal')"),
    "sparse_pca, uncorrelated": ("X = normal(400, 3000)", "long(X, deflation='uncorrelated')"),
    "sparse_pca, generalized": ("X = normal(400, 3000)", "long(X, deflation='generalized')"),
}  # fmt: skip
OFTEN = {  # one of each way to be asked: in passes over data, Python, LAPACK, folds and trees
    "float32, F order", "statistics, C order", "csr", "callable", "elastic nets", "LAPACK",
    "branch_and_bound", "select_sparsity",
}  # fmt: skip


def interrupted():
    """A few by default."""
    for case in [*LONG, *((name, *lines, 0.5 if name in OFTEN else 1.0) for name, lines in LONGER.items())]:
        yield pytest.param(case, id=case[0], marks=[] if case[0] in OFTEN else pytest.mark.slow)


def test_every_long_function_is_interrupted():
    assert {c.function for c in calls.CALLS} - SWIFT <= {
        *(name.split(",")[0] for name in LONGER), "sparse_pca", "SparsePCAResult.transform",
    }  # fmt: skip


@pytest.mark.share(4)
@pytest.mark.parametrize("case", list(interrupted()))
def test_ctrl_c(case, record_property):
    """The bar is 0.2 s; a busy machine may take longer, but not for more than a second's work."""
    _, setup, call, delay = case
    code = INTERRUPTED.format(setup=setup, call=call, delay=delay)
    latency, work = map(float, output_of(code).split())
    record_property("latency", latency)
    print(f"Ctrl-C, {case[0]}: {latency:.3f} s")
    assert work < 1


def test_the_end_of_a_process_waits_for_what_was_interrupted():
    """A thread inside LAPACK at the end of a process would find its buffers gone, and crash it."""
    code = """
    import os, signal, threading, time, numpy as np
    from spcacore.linalg.eigen import interruptible
    signal.signal(signal.SIGINT, signal.default_int_handler)
    def interrupt():
        time.sleep(0.1)
        os.kill(os.getpid(), signal.SIGINT)
    def call():
        time.sleep(0.6)
        print("ended", flush=True)
    threading.Thread(target=interrupt, daemon=True).start()
    try:
        interruptible(call)
    except KeyboardInterrupt:
        print("interrupted", flush=True)
    """
    assert output_of(textwrap.dedent(code)).split() == ["interrupted", "ended"]


@pytest.mark.usefixtures("interruptible")
def test_ctrl_c_kills_an_unhandled_process_properly():
    code = """
    import sys, numpy as np
    from spcacore import TPower, sparse_pca
    X = np.random.default_rng(0).standard_normal((500, 2000))
    method = TPower(tol=0, max_iter=10**6, n_starts=10**6)
    print("ready", flush=True)
    sparse_pca(X, 100, cardinality=100, method=method)
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline().strip() == "ready"
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == -signal.SIGINT
    assert "KeyboardInterrupt" in errors


def test_signal_handler_that_returns_does_not_stop_the_call():
    seen = []
    old = signal.signal(signal.SIGUSR1, lambda *_: seen.append(1))
    stop = threading.Event()
    main = threading.main_thread().ident

    def shoot():
        while not stop.is_set():
            signal.pthread_kill(main, signal.SIGUSR1)
            time.sleep(0.005)

    X = np.random.default_rng(3).standard_normal((400, 8000))
    expected = sparse_pca(X, 2, cardinality=20).loadings
    thread = threading.Thread(target=shoot)
    thread.start()
    try:
        out = sparse_pca(X, 2, cardinality=20)
    finally:
        stop.set()
        thread.join()
        signal.signal(signal.SIGUSR1, old)
    assert seen
    assert_allclose(out.loadings, expected, atol=1e-12)


# ---- processes -----------------------------------------------------------------------------------------


def test_spawn():
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        out = pool.apply_async(sparse_pca, (X0, 2), {"cardinality": K}).get(60)
    assert_allclose(out.loadings, sparse_pca(X0, 2, cardinality=K).loadings, atol=1e-12)


# ---- results travel ------------------------------------------------------------------------------------


def test_results_hold_nothing_of_the_input():
    """Neither the matrix nor a view of it is kept alive, and pickles stay small."""
    X = np.random.default_rng(0).standard_normal((2000, 30))
    r = sparse_pca(X, 2, cardinality=3, scale=True)
    assert len(pickle.dumps(replace(r, scores=None))) < X.nbytes / 50
    for value in vars(r).values():
        assert not (isinstance(value, np.ndarray) and np.shares_memory(value, X))


def test_results_are_unpickled_in_a_new_process(tmp_path):
    r = sparse_pca(X0, 2, cardinality=K)
    (tmp_path / "r").write_bytes(pickle.dumps(r))
    code = "import pickle, sys; r = pickle.load(open(sys.argv[1], 'rb')); print(r.loadings.tobytes().hex())"
    assert output_of(code, tmp_path / "r", timeout=60).strip() == r.loadings.tobytes().hex()


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
    X = np.random.default_rng(0).standard_normal((20, 3))
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

    X = np.random.default_rng(0).standard_normal((20, 6))
    with filters_refused(monkeypatch):
        spcacore.stability(X, pca(1, 2), n_resamples=4, rng=0)
        spcacore.select_sparsity(X, spcacore.sca, [1.0, 1.5], n_folds=2, rng=0)
        spcacore.select_prior(X, partial(spcacore.oppca, n_components=1), {"none": spcacore.Prior(rng=0)})


def test_refits_are_silent_in_their_threads_alone():
    """A resample that does not converge is not told of, and the same call of another thread is."""
    X = np.random.default_rng(0).standard_normal((30, 8))
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


@pytest.mark.parametrize("order", ["inside()\nimport spcacore", "import spcacore\ninside()\ninside()"])
def test_another_interpreter_of_the_process(order):
    """It is served or refused in words, before the first one or after it, which goes on."""
    ends = "\nprint(spcacore.tpower(np.eye(9)[:5], 3).value > 0)"
    assert output_of(INTERPRETERS + order + ends).split()[-1] == "True"
