"""The same numbers again: in another run, process, layout, or with another BLAS kernel or number of threads.

To the bit where nothing but the run differs. A processor that lacks the instructions of a kernel skips it.
"""

import functools
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import blas_kernels
import numpy as np
import pytest
from blas_kernels import FLAGS, lacking
from calls import CALLS, numbers
from extras import optional
from threadpoolctl import threadpool_info

pd = optional("pandas")

DTYPES = [np.float64, np.float32]
ids = {"ids": lambda v: getattr(v, "__name__", None) or repr(v)}
SUPPORTS = ("loading", "loadings", "loadings_x", "loadings_y", "labels", "best", "cardinality")
OBJECTIVES = (
    *("value", "explained_variance", "total_variance", "adjusted_variance", "upper_bound", "bound", "dual"),
    *("path_value", "values", "correlations", "objective", "strength"),
)

DUMP = """
import sys
sys.path.insert(0, sys.argv[2])
import numpy as np
from calls import CALLS, numbers, planted
from spcacore import greedy, pmd, sparse_pca, spca, tpower
from spcacore.datasets import load_pitprops
from starts import few
from threadpoolctl import threadpool_info

out = {}
for dtype in (np.float64, np.float32):
    with few():
        for i, call in enumerate(CALLS):
            for name, value in numbers(call.run(call.clean(dtype))).items():
                out[f"{i}/{np.dtype(dtype)}/{name}"] = value
    X = planted(300, 500).astype(dtype)  # large enough for BLAS to have its threads
    A = (X - X.mean(axis=0)).T @ (X - X.mean(axis=0)) / 299 if dtype == np.float64 else None
    for i, (M, options) in enumerate([(X, {}), (A, {"kind": "covariance"})]):
        if M is not None:
            calls = [
                sparse_pca(M, 3, cardinality=20, **options), tpower(M, 20, **options),
                greedy(M, 10, **options), pmd(M, 4.0, **options), spca(M, 2, cardinality=20, **options),
            ]
            for j, result in enumerate(calls):
                for name, value in numbers(result).items():
                    out[f"large {i} {j}/{np.dtype(dtype)}/{name}"] = value
wood = load_pitprops().correlation  # among random draws, what is taken must not hang on rounding
settings = [(4, 4, "generalized"), (5, 4, "generalized"), (6, 3, "projection"), (6, 4, "generalized")]
for i, (r, k, deflation) in enumerate(settings[: int(sys.argv[3])]):
    refined = sparse_pca(wood, r, cardinality=k, kind="covariance", deflation=deflation, refine=True)
    out[f"large {9 + i} 0/float64/loadings"] = refined.loadings
kernels = {i["architecture"] for i in threadpool_info() if i.get("internal_api") == "openblas"}
np.savez(sys.argv[1], kernels=np.array(sorted(kernels)), **out)
"""


@functools.cache
def dumped(folder, kernel, threads, again=0, refined=4):
    """All numbers of all calls, from a process of its own."""
    path = Path(folder) / f"{kernel}-{threads}-{again}-{refined}.npz"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads)}
    environment.pop("OPENBLAS_CORETYPE", None)
    if kernel is not None:
        environment["OPENBLAS_CORETYPE"] = kernel
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DUMP, str(path), str(Path(__file__).parent), str(refined)],
        capture_output=True, text=True, timeout=300, env=environment, cwd=folder, check=False,
    )  # fmt: skip
    if done.returncode == -signal.SIGILL and kernel is not None and lacking(kernel):
        pytest.skip(f"for the kernels of {kernel} this processor lacks {' '.join(lacking(kernel))}")
    assert done.returncode == 0, done.stderr
    with np.load(path) as file:
        return dict(file)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("numbers")


openblas = pytest.mark.skipif(
    all(i.get("internal_api") != "openblas" for i in threadpool_info()), reason="BLAS is not OpenBLAS"
)


def of(name):
    call, dtype, number = name.split("/")
    return (repr(CALLS[int(call)]) if call.isdigit() else call), dtype, number.split(".")[-1]


@openblas
@pytest.mark.slow
def test_another_process_gives_the_same_bits(folder):
    first, second = (dumped(folder, None, 1, i) for i in range(2))
    assert list(first) == list(second)
    for name, value in first.items():
        assert value.tobytes() == second[name].tobytes(), of(name)


LIMIT = {"float64": 1e-12, "float32": 1e-5}
SETTINGS = [(k, t, 4) for k in FLAGS for t in (1, 2, 4)]


@openblas
@pytest.mark.slow
@pytest.mark.parametrize(
    ("kernel", "threads", "refined"),
    [("Nehalem", 2, 1), *SETTINGS],
)
def test_another_kernel_of_blas_gives_the_same_answer(folder, kernel, threads, refined):
    """Supports and choices are the same; objectives to 1e-12, of float32 to 1e-5."""
    expected = dumped(folder, None, 1, refined=refined)
    out = dumped(folder, kernel, threads, refined=refined)
    worst = {"float64": 0.0, "float32": 0.0}
    for name, value in expected.items():
        if name == "kernels":
            continue
        call, dtype, number = of(name)
        if number in SUPPORTS:
            assert out[name].shape == value.shape, (call, dtype, number)
            assert ((out[name] != 0) == (value != 0)).all(), (call, dtype, number)
        if number in OBJECTIVES and np.isfinite(value).all():
            a, b = (v if number != "objective" else np.ravel(v)[-1:] for v in (out[name], value))
            apart = float(np.max(np.abs(a - b) / np.maximum(np.abs(b).max(initial=0), 1e-300), initial=0))
            worst[dtype] = max(worst[dtype], apart)
            assert apart < LIMIT[dtype], (call, dtype, number)
    used = ", ".join(out["kernels"])
    assert used == kernel or (kernel, used) == ("Zen", "Haswell")  # many builds have the same for both
    print(f"determinism: {kernel} ({used} in use), {threads} threads: {worst}")


@openblas
def test_blas_is_what_the_environment_asks_for():
    asked, threads = (os.environ.get(f"OPENBLAS_{name}") for name in ("CORETYPE", "NUM_THREADS"))
    for info in threadpool_info():
        if info.get("internal_api") == "openblas" and re.search("numpy|scipy[._]", info["filepath"]):
            if asked in FLAGS:
                assert info["architecture"] in (asked, "Haswell" if asked == "Zen" else asked)
            if info["threading_layer"] != "disabled" and threads and int(threads) <= os.cpu_count():
                assert info["num_threads"] == int(threads)


def test_kernels_that_are_chosen_run_or_are_named(monkeypatch, capsys):
    def choose(used, lacking):
        monkeypatch.setattr(blas_kernels, "used", used)
        monkeypatch.setattr(blas_kernels, "lacking", lacking)
        blas_kernels.main()
        return capsys.readouterr().out.splitlines()

    assert choose(
        lambda k: "Haswell" if k == "Zen" else k, lambda k: ["avx512f", "avx512vl"] if k == "SkylakeX" else []
    ) == [
        "run Nehalem", "run Sandybridge", "run Haswell", "skip Zen: for it BLAS runs the kernels of Haswell",
        "skip SkylakeX: this processor lacks avx512f avx512vl",
    ]  # fmt: skip
    with pytest.raises(SystemExit, match="asked for the kernels of Nehalem, BLAS runs those of Haswell"):
        choose(lambda k: "Haswell", lambda k: [])
    with pytest.raises(SystemExit, match="the instructions of none"):
        choose(lambda k: k, lambda k: ["any"])


@pytest.mark.parametrize("name", ["SIGSEGV", "SIGILL"])
def test_a_crash_is_no_skip(folder, name, monkeypatch):
    monkeypatch.setitem(globals(), "DUMP", f"import signal; signal.raise_signal(signal.{name})")
    with pytest.raises((AssertionError, pytest.skip.Exception)) as ended:
        dumped(folder, None, 1, name)
    assert ended.type is AssertionError


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES, **ids)
@pytest.mark.parametrize("call", CALLS, ids=repr)
def test_ten_runs_give_the_same_bits(call, dtype):
    X = call.clean(dtype)
    first = numbers(call.run(X))
    for _ in range(9):
        for name, value in numbers(call.run(X.copy())).items():
            assert value.tobytes() == first[name].tobytes(), name


# ---- layouts --------------------------------------------------------------------------------------------
