"""Ctrl-C and other signals during a call: it ends soon, leaves all as it was, and says KeyboardInterrupt."""

import signal
import subprocess
import sys
import textwrap
import time

import calls
import pytest
from processes import output_of


@pytest.fixture(autouse=True)
def elsewhere(tmp_path, monkeypatch):
    """Child processes must import the installed package, not the source tree."""
    monkeypatch.chdir(tmp_path)


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
               "refine(X, V, cardinality=200, n_restarts=10**6)"),
    "spca": ("X = normal(600, 3000)", "spca(X, 5, penalty=0.5, **FOREVER)"),
    "sca": ("X = normal(1500, 3000)", "sca(X, 5, l1_bound=30.0, **FOREVER)"),
    "sca, covariance": ("X = covariance(3000)", "sca(X, 5, l1_bound=30.0, kind='covariance', **FOREVER)"),
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


@pytest.mark.share(8)
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
