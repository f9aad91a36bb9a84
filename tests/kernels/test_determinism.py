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
from calls import CALLS
from in_turn import examples
from threadpoolctl import threadpool_info

from spcacore import _core

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
kernels = {i["architecture"] for i in threadpool_info() if i.get("internal_api") == "openblas"}
np.savez(sys.argv[1], kernels=np.array(sorted(kernels)), **out)
"""

REFINED = """
import sys
import numpy as np
from spcacore import sparse_pca
from spcacore.datasets import load_pitprops

def answer(A, r, k, **options):
    found = sparse_pca(A, r, cardinality=k, kind="covariance", refine=True, **options)
    print(np.packbits(found.loadings != 0).tobytes().hex(), *map(float.hex, found.loadings.ravel()))

wood = load_pitprops().correlation
answer(wood, 6, 4)
answer(wood, 6, 4, deflation="generalized")
for seed in range(int(sys.argv[1])):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(10, 70))
    X = rng.standard_normal((90, 5)) @ rng.standard_normal((5, p)) + rng.standard_normal((90, p))
    answer(np.round(np.corrcoef(X.T), 6), 3, 4)
"""


@functools.cache
def refined(kernel, clone, threads, count):
    """What is found in a process of its own: of each matrix the supports, then the bits of the values."""
    environment = {"OPENBLAS_CORETYPE": kernel, "SPCACORE_CLONE": clone, "OPENBLAS_NUM_THREADS": str(threads)}
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", REFINED, str(count)], env={**os.environ, **environment},
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@functools.cache
def dumped(folder, kernel, threads, again=0, clone=""):
    """All numbers of all calls, from a process of its own."""
    path = Path(folder) / f"{kernel}-{threads}-{again}-{clone}.npz"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": str(threads), "SPCACORE_CLONE": clone}
    environment.pop("OPENBLAS_CORETYPE", None)
    if kernel is not None:
        environment["OPENBLAS_CORETYPE"] = kernel
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", DUMP, str(path), str(Path(__file__).parents[1])],
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


@openblas
@pytest.mark.slow
@pytest.mark.parametrize("threads", [1, 2, 4])
@pytest.mark.parametrize("kernel", FLAGS)
def test_another_kernel_of_blas_gives_the_same_answer(folder, kernel, threads):
    """Supports and choices are the same; objectives to 1e-12, of float32 to 1e-5."""
    expected = dumped(folder, None, 1)
    out = dumped(folder, kernel, threads)
    worst = compared(out, expected)
    used = ", ".join(out["kernels"])
    assert used == kernel or (kernel, used) == ("Zen", "Haswell")  # many builds have the same for both
    print(f"determinism: {kernel} ({used} in use), {threads} threads: {worst}")


@pytest.mark.slow
@pytest.mark.parametrize("clone", _core.clones())
def test_another_clone_gives_the_same_answer(folder, clone):
    """Of the kernels here."""
    print(f"determinism: {clone}: {compared(dumped(folder, None, 1, clone=clone), dumped(folder, None, 1))}")


def compared(out, expected):
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
    return worst


@openblas
@pytest.mark.parametrize(
    ("kernel", "clone"),
    [
        pytest.param(kernel, clone, marks=pytest.mark.slow if i else ())
        for i, kernel in enumerate(k for k in FLAGS if k != "Zen" and not lacking(k))
        for clone in _core.clones()
    ][1:],
)
def test_refined_answers_have_the_same_bits_on_every_processor(kernel, clone):
    """Of a matrix: whatever kernels BLAS runs, and which clone of those here."""
    first, count = _core.clones()[0], examples(10) - 2
    expected = refined("Nehalem", first, 1, count)
    assert len(expected) == 2 + count
    assert refined(kernel, clone, 1 + (kernel == "Haswell"), count) == expected


@openblas
def test_blas_is_what_the_environment_asks_for():
    asked, threads = (os.environ.get(f"OPENBLAS_{name}") for name in ("CORETYPE", "NUM_THREADS"))
    for info in threadpool_info():
        if info.get("internal_api") == "openblas" and re.search("numpy|scipy[._]", info["filepath"]):
            if asked in FLAGS:
                assert info["architecture"] in (asked, "Haswell" if asked == "Zen" else asked)
            if info["threading_layer"] != "disabled" and threads and int(threads) <= os.cpu_count():
                assert info["num_threads"] == int(threads)


def test_the_clone_is_what_the_environment_asks_for():
    asked = os.environ.get("SPCACORE_CLONE") or _core.clones()[-1]
    assert _core.clone() == asked
    (info,) = (i for i in threadpool_info() if i["internal_api"] == "spcacore")
    assert info["architecture"] == asked


def test_clones_are_those_that_the_processor_can_run():
    """By what Linux says of the processor: a build without clones, or for another one, has but the first."""
    here, names = _core.clones(), ("generic", "avx2", "avx512")
    assert here == names[: len(here)]
    if len(here) > 1:
        known = [not lacking(kernel) for kernel in ("Nehalem", "Haswell", "SkylakeX")]
        assert here == tuple(name for name, can in zip(names, known, strict=True) if can)


@pytest.mark.share(4)
@pytest.mark.parametrize(
    ("name", "said"),
    [("AVX2", "none of generic, avx2 and avx512"), ("avx512 ", "none of"), ("\udcff", "none of"), (None, "")],
)
def test_a_clone_that_is_not_there_is_refused(name, said):
    """At the import, so that nobody takes the numbers of another one for those of this."""
    if name is None:
        name, said = "avx512", "this processor or this build of spcacore lacks; it has generic"
        if name in _core.clones():
            pytest.skip("this processor lacks none")
    done = subprocess.run(
        [sys.executable, "-P", "-c", "import spcacore"], env={**os.environ, "SPCACORE_CLONE": name},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert f"ImportError: SPCACORE_CLONE is {name!r}, which" in done.stderr
    assert said in done.stderr


@pytest.mark.parametrize(
    ("used", "lacks", "clones", "plan"),
    [
        (
            lambda k: {"Zen": "Haswell", "": "SkylakeX"}.get(k, k), {}, ("generic", "avx2", "avx512"),
            ["skip Zen: for it BLAS runs the kernels of Haswell", "run Nehalem generic all",
             "run Sandybridge generic", "run Haswell avx2 all",
             "skip SkylakeX with avx512: the default run has them"],
        ),
        (  # kernels of BLAS are few: what is left of the clones runs beside the last of them
            lambda k: k, dict.fromkeys(["Sandybridge", "Haswell", "Zen", "SkylakeX"], ("x",)),
            ("generic", "avx2", "avx512"),
            [*(f"skip {k}: this processor lacks x" for k in ("Sandybridge", "Haswell", "Zen", "SkylakeX")),
             "run Nehalem generic all", "run Nehalem avx2 all", "run Nehalem avx512 all"],
        ),
        (  # another processor, or a build without clones
            lambda k: k, dict.fromkeys(["Sandybridge", "Zen", "SkylakeX"], ("x",)), ("generic",),
            [*(f"skip {k}: this processor lacks x" for k in ("Sandybridge", "Zen", "SkylakeX")),
             "run Nehalem generic all", "run Haswell generic",
             *(f"skip the clone {c}: this processor, or this build, lacks it" for c in ("avx2", "avx512"))],
        ),
    ],
)  # fmt: skip
def test_kernels_that_are_chosen_run_or_are_named(used, lacks, clones, plan, monkeypatch, capsys):
    monkeypatch.setattr(blas_kernels, "used", used)
    monkeypatch.setattr(blas_kernels, "lacking", lambda k: lacks.get(k, []))
    monkeypatch.setattr(blas_kernels._core, "clones", lambda: clones)
    blas_kernels.main(own=False)
    assert capsys.readouterr().out.splitlines() == plan


@pytest.mark.parametrize(
    ("used", "lacks", "said"),
    [
        ("Haswell", [], "asked for the kernels of Nehalem, BLAS runs those of Haswell"),
        ("", ["any"], "the instructions of none"),
    ],
)
def test_kernels_that_are_not_there(used, lacks, said, monkeypatch):
    monkeypatch.setattr(blas_kernels, "used", lambda k: used)
    monkeypatch.setattr(blas_kernels, "lacking", lambda k: lacks)
    with pytest.raises(SystemExit, match=said):
        blas_kernels.main(own=True)


# ---- layouts --------------------------------------------------------------------------------------------


BY_THREADS = """
import hashlib
import sys
import warnings
import numpy as np
import spcacore
from spcacore import GPower, gpower, tpower
from calls import numbers

def told(*arrays):
    return hashlib.sha1(b"".join(np.ascontiguousarray(a).tobytes() for a in arrays)).hexdigest()

for n, p in ((209, 224), (90, 250)):
    X = np.random.default_rng(p).standard_normal((n, p))
    wide = gpower(X, 0.1, options=GPower(renormalize=False))
    assert wide.cardinality >= 200
    few = gpower(X, 0.3, options=GPower(relative=True)).loading, tpower(X, 40).loading
    print(told(wide.loading, *few), np.flatnonzero(gpower(X, 0.1).loading).tolist())

for n, p in eval(sys.argv[1]):
    X = np.random.default_rng(p).integers(-9, 9, (n, p)).astype(float)
    A = X.T @ X / 1024  # exact
    for M, options in ((X, {}), (A, {"kind": "covariance"})):
        print(p, "spca", told(*numbers(spcacore.spca(M, 2, cardinality=20, max_iter=20, **options)).values()))
        print(p, "ppca", told(*numbers(spcacore.ppca(M, 3, **options)).values()))
        print(p, "bound", told(spcacore.optimality_bound(M, 5, **options).upper_bound))
    y, B = np.arange(n) % 3, np.eye(p) + 1 / 8
    print(p, "lda", told(*numbers(spcacore.sparse_lda(X + (y[:, None] == 1), y, 2, 5)).values()))
    print(p, "eigen", told(*numbers(spcacore.sparse_eigen(A, B, 2, 5)).values()))
    print(p, "dspca", told(*numbers(spcacore.dspca(X, 9, options=spcacore.DSPCA(max_iter=12))).values()))
    pair = spcacore.sparse_cca(X, X[::-1, ::-1] * 3, 1, 6, method="generalized", ridge=0.1, max_iter=9)
    print(p, "cca", told(*numbers(pair).values()))
    for weight in (None, np.arange(n) % 3 + 1.0):
        features = spcacore.kernel_pca(X, 3, random_features=p, sample_weight=weight)
        print(p, "features", told(*numbers(features).values(), features.transform(X)))
    for solver in ("lapack", "lanczos"):
        print(p, solver, told(*numbers(spcacore.kernel_pca(X, 3, solver=solver)).values()))
"""


@openblas
@pytest.mark.parametrize(
    ("kernel", "sizes"),
    [
        (None, "[(210, 240)]"),
        pytest.param(None, "[(600, 520)]", marks=pytest.mark.slow),
        pytest.param("Haswell", "[(210, 300), (600, 520)]", marks=pytest.mark.slow),
    ],
)
def test_threads_of_blas_change_no_bit(kernel, sizes):
    """LAPACK, which threads enter from there on, decides about values alone. From there on it has but the
    tridiagonal form of a matrix whose eigenvectors are wanted."""
    if kernel is not None and lacking(kernel):
        pytest.skip("for these kernels the processor lacks something")
    told = []
    for threads in ("1", "2"):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": threads}
        environment |= {"PYTHONPATH": str(Path(__file__).parents[1])}
        environment |= {} if kernel is None else {"OPENBLAS_CORETYPE": kernel}
        command = [sys.executable, "-W", "ignore", "-c", BY_THREADS, sizes]
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=300, env=environment, cwd="/", check=True
        )
        told.append(done.stdout)
    assert told[0].splitlines() == told[1].splitlines()
