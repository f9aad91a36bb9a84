"""Packages that call the C functions, from Cython, C, C++, ctypes and numba; many matrices by one call."""

import ctypes
import doctest
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from c_functions import (
    FROZEN,
    HERE,
    INVALID,
    NONFINITE,
    OK,
    PXD,
    SCRIPT,
    TEXT,
    data,
)  # fmt: skip
from in_turn import each_dtype
from numpy.testing import assert_allclose, assert_array_equal
from oracles import covariance, largest_on, normal

import spcacore
from spcacore import _core, explained_variance, kernels, sparse_pca

PAGE = HERE.parent / "docs" / "developer" / "downstream.md"


def block(language, contains):
    """The one code block of the page that contains a text."""
    (text,) = (
        b
        for b in re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S)
        if contains in b
    )
    return text


def test_the_page_shows_the_package_that_is_tested():
    for name, contains in (("_many", "cdef int one"), ("_starts", "on_stop")):
        source = (HERE / "downstream" / "manypca" / f"{name}.pyx").read_text(encoding="utf-8")
        assert block("cython", contains) == source
    assert block("meson", "extension_module") == (HERE / "downstream" / "meson.build").read_text(
        encoding="utf-8"
    )
    assert block("c", "PyMODINIT_FUNC") == (HERE / "downstream" / "keep.c").read_text(encoding="utf-8")
    names = set(re.findall(r"`(spca_\w+)`", PAGE.read_text(encoding="utf-8")))
    assert names == {line.split(":")[0] for line in FROZEN.split("\n") if line.startswith("spca_")}


def test_the_examples_of_the_page():
    result = doctest.testfile(str(PAGE), module_relative=False)
    assert result.attempted > 3
    assert result.failed == 0


def test_numba():
    pytest.importorskip("numba", reason="numba is not installed")
    scope = {}
    exec(block("python", "import numba"), scope)
    rows = normal(0, 50, 40)
    expected = rows.copy()
    for row in expected:
        row[np.argsort(-abs(row), kind="stable")[3:]] = 0
    for wrong in (rows.astype(np.float32), np.asfortranarray(rows), rows[:, ::2]):
        before = wrong.copy()
        with pytest.raises(TypeError, match="No matching definition"):
            scope["truncate_rows"](wrong, 3)
        assert_array_equal(wrong, before)
    assert scope["truncate_rows"](rows, 3) == OK
    assert_array_equal(rows, expected)
    assert scope["truncate_rows"](np.full((1, 4), np.nan), 3) == NONFINITE
    with pytest.raises(scope["numba"].TypingError, match="ArrayCTypes"):  # without a signature, too
        scope["numba"].njit(scope["truncate_rows"].py_func)(rows.astype(np.float32), 3)


def test_arrays_of_the_wrong_kind_are_refused():
    a, work = np.arange(4.0), np.zeros(4)
    constant = a.copy()
    constant.flags.writeable = False
    for wrong, message in (
        (a.astype(np.float32), "an array of float64 is needed, not one of float32"), (a[::2], "side by side"),
        (a[::-1], "side by side"), (constant, "read-only"), ([1.0, 2.0], "an array of float64 is needed"),
    ):  # fmt: skip
        with pytest.raises(ctypes.ArgumentError, match=message):
            kernels.float64.truncate(2, 1, wrong, work)
    assert kernels.float64.soft_threshold(4, constant, 1.0, work) == OK
    assert work.tolist() == [0, 0, 1, 2]
    with pytest.raises(AttributeError, match=r"no kernel 'trunkate', but .* truncate"):
        kernels.float64.trunkate  # noqa: B018


NEWER = "int (*dadded)(spcacore_int p);\n} spcacore_table;"


@pytest.mark.share(3)
@pytest.mark.parametrize(
    ("compiler", "change", "works"),
    [
        ("cc", (r"", ""), True),
        ("c++", (r"", ""), True),
        ("cc", (r"    int \(\*spmd_covariance\).*?(?=\} spcacore_table)", ""), True),
        ("cc", (r"\} spcacore_table;", NEWER), False),
        ("cc", (r"TABLE_VERSION 1", "TABLE_VERSION 2"), False),
    ],
    ids=["C", "C++", "built with an older table", "built with a newer table", "of another version"],
)
def test_an_extension_in_c(compiler, change, works, tmp_path):
    """What was built with a header before some functions were added works, and what asks for more says so."""
    headers = Path(sysconfig.get_path("include"))
    if not (shutil.which(compiler) and (headers / "Python.h").exists()):
        pytest.skip(f"{compiler} and the headers of Python are needed")
    header = SCRIPT.for_c(TEXT)
    changed = re.sub(*change, header, flags=re.S) if change[0] else header
    assert (changed == header) == (change[0] == "")
    (tmp_path / "spcacore.h").write_text(changed, encoding="utf-8")
    language = ["-x", "c++"] if compiler == "c++" else ["-std=c11", "-Wpedantic"]
    built = tmp_path / f"keep{sysconfig.get_config_var('EXT_SUFFIX')}"
    command = [
        compiler,
        *language,
        "-Wall",
        "-Wextra",
        "-Werror",
        "-Wno-missing-field-initializers",
        "-shared",
        "-fPIC",
    ]
    paths = [f"-I{headers}", f"-I{tmp_path}", str(HERE / "downstream" / "keep.c"), "-o", str(built)]
    done = subprocess.run([*command, *paths], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    spec = importlib.util.spec_from_file_location("keep", built)
    if not works:
        with pytest.raises(ImportError, match="built for a table of spcacore of version"):
            importlib.util.module_from_spec(spec)
        return
    keep = importlib.util.module_from_spec(spec).keep
    row = np.array([3.0, -5.0, 4.0])
    assert (keep(row, 1), keep(row, 4)) == (OK, INVALID)
    assert row.tolist() == [0, -5, 0]


def test_the_header_is_where_it_says():
    """But of an editable install, which has none."""
    if Path(_core.__file__).with_name("_core.pxd").exists():
        assert (Path(kernels.get_include()) / "spcacore.h").read_text(encoding="utf-8") == SCRIPT.for_c(TEXT)
    else:
        with pytest.raises(FileNotFoundError, match="editable"):
            kernels.get_include()


@pytest.mark.share(8)
@each_dtype
@pytest.mark.parametrize(
    "kind", ["data", "about zero", "scaled", "scaled about zero", "covariance", "scaled covariance"]
)
@pytest.mark.parametrize("deflation", ["hotelling", "projection", "schur"])
@pytest.mark.parametrize("p", [15, 80])  # of 80, no matrix is formed for one start
def test_components_of_each_are_those_of_one(p, kind, deflation, dtype):
    """Those of `sparse_pca`, and the same bits alone, among others and by any number of threads."""
    X = np.stack([data(p * 3 // 2 + 8, p, dtype, seed) for seed in range(300 // p)])
    X[:, :, 3] = 0.1  # constant
    options = {"scale": "scaled" in kind, "deflation": deflation}
    options["center"] = "zero" not in kind
    tight = 1e-9 if dtype == np.float64 else 1e-3
    if "covariance" in kind:
        X, options["kind"] = np.stack([covariance(x).astype(dtype) for x in X]), "covariance"
    for thorough, method in ((True, "tpower"), (False, spcacore.TPower(start="diagonal"))):
        results = []
        for threads in (1, 2, 3):
            with spcacore.limit_threads(threads):
                results.append(kernels.sparse_pca_each(X, 3, 4, thorough=thorough, **options))
        results.append(kernels.sparse_pca_each(X[2:], 3, 4, thorough=thorough, **options))
        for result in results[1:]:
            for got, first in zip(result, results[0], strict=True):
                assert_array_equal(got, first[-len(got) :])
        for i, x in enumerate(X if thorough or not options["scale"] else []):  # where all variances are 1
            expected = sparse_pca(x, 3, 4, method=method, **options)
            for name in ("loadings", "explained_variance", "total_variance", "mean", "scale"):
                known, got = getattr(expected, name), getattr(results[0], name)[i]
                if known is not None:
                    assert_allclose(got, known, rtol=tight, atol=100 * tight, err_msg=name)


def test_components_of_each_where_no_variance_is_left():
    """Hotelling's deflation leaves negative variances, but blocks have positive eigenvalues."""
    A = np.array([[8.0, -6, 5, -4], [-6, 8, -8, 6], [5, -8, 13, -4], [-4, 6, -4, 13]])
    left = A.copy()
    result = kernels.sparse_pca_each(A[None], 4, 3, kind="covariance", deflation="hotelling")
    for x in result.loadings[0].T:
        best = max(largest_on(left, list(S)) for S in combinations(range(4), 3))
        assert_allclose(x @ left @ x, best)
        left -= best * np.outer(x, x)
    assert result.n_components == 4


def test_what_each_refuses():
    X = np.ones((3, 5, 4))
    X[:2] = data(10, 4).reshape(2, 5, 4)
    result = kernels.sparse_pca_each(X, 2)
    assert result.n_components.tolist() == [2, 2, 0]
    assert not kernels.sparse_pca_each(X, 2, center=False).mean.any()
    assert not result.loadings[2].any()
    huge = X.copy()
    huge[1, 0, 0] = 1e308
    huge[1, 1, 0] = -1e308
    for arguments, message in (
        ((X[0], 2), "X must have 3 dimensions"),
        ((X, 5), "n_components"),
        ((X, 2, 5), "cardinality"),
        ((huge, 1), "matrix 1 of X leaves"),
        ((np.full((2, 2, 2), np.nan), 1), "NaN"),
    ):
        with pytest.raises(ValueError, match=message):
            kernels.sparse_pca_each(*arguments)
    for options, message in (({"kind": "covariance"}, "square"), ({"deflation": "naive"}, "deflation")):
        with pytest.raises(ValueError, match=message):
            kernels.sparse_pca_each(X, 1, **options)


@pytest.fixture(scope="module", params=["installed", "older"])
def manypca(request, tmp_path_factory):
    """The package in tests/downstream, built with the declarations that are installed, or those of 0.2.0."""
    for module in ("mesonpy", "Cython"):
        pytest.importorskip(module, reason=f"{module} is needed to build a Cython package")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    if not (shutil.which("ninja", path=path) and shutil.which("meson", path=path)):
        pytest.skip("meson and ninja are needed to build a Cython package")
    if not PXD.exists() or PXD.parent == HERE.parent / "spcacore":
        pytest.skip("Cython finds no .pxd in an editable install")
    place = tmp_path_factory.mktemp("downstream")
    source = shutil.copytree(HERE / "downstream", place / "source")
    if request.param == "older":  # Cython looks beside the package first
        shutil.move(source / "older" / "spcacore", source)
        assert "spca_pmd_data" not in (source / "spcacore" / "_core.pxd").read_text(encoding="utf-8")
    command = [sys.executable, "-m", "pip", "install", "--no-build-isolation", "--no-deps", "--no-index"]
    done = subprocess.run(
        [*command, "--target", str(place / "site"), str(source)],
        capture_output=True, text=True, cwd=place, env={**os.environ, "PATH": path},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    sys.path.insert(0, str(place / "site"))
    import manypca

    yield manypca
    sys.path.remove(str(place / "site"))
    for name in [name for name in sys.modules if name.startswith("manypca")]:
        del sys.modules[name]


@pytest.mark.slow
@each_dtype
def test_a_package_that_runs_the_kernels_in_its_own_loop(manypca, dtype):
    m, n, p, k, r = 40, 40, 20, 5, 3
    X = np.stack([data(n, p, dtype, seed) for seed in range(m)])
    loadings, variance = manypca.components(X, r, k)
    assert loadings.dtype == variance.dtype == dtype
    tight = 1e-12 if dtype == np.float64 else 1e-4
    for i in range(m):
        expected = sparse_pca(X[i], r, cardinality=k, method=spcacore.TPower(start="diagonal", tol=1e-8))
        assert_array_equal(loadings[i] != 0, expected.loadings != 0)
        assert_allclose(loadings[i], expected.loadings, atol=tight)
        assert_allclose(variance[i], explained_variance(X[i], loadings[i]), rtol=tight)
    for n_threads in (2, 3):
        again, variance_again = manypca.components(X, r, k, n_threads=n_threads)
        assert_array_equal(again, loadings)
        assert_array_equal(variance_again, variance)


@pytest.mark.slow
def test_a_package_hears_of_statuses(manypca):
    X = data(20, 6)[None].copy()
    with pytest.raises(ValueError, match="matrix 1 has no 2 components: status -2"):
        manypca.components(np.concatenate([X, np.ones_like(X)]), 2, 3)
    X[0, 3, 2] = np.nan
    with pytest.raises(ValueError, match="status -3"):
        manypca.components(X, 2, 3)


INTERRUPTED = """
import os, signal, sys, threading, time
import numpy as np
sys.path.insert(0, sys.argv[1])
from manypca._starts import best_value

A = np.random.default_rng(0).standard_normal((600, 600))
A = A @ A.T
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's job in the background ignores it
threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
try:
    best_value(np.kron(A, np.eye(2)), 300, int(sys.argv[2]))
except KeyboardInterrupt:
    print("interrupted", end=" ")
print(best_value(np.diag([1.0, 3.0, 2.0]), 1))
"""


@pytest.mark.slow
@pytest.mark.parametrize("n_threads", [1, 2])
def test_ctrl_c_ends_a_package_s_loop(manypca, n_threads):
    """By the exception of the handler, in the thread that called; and the next call works."""
    site = str(Path(manypca.__file__).parent.parent)
    done = subprocess.run(
        [sys.executable, "-c", INTERRUPTED, site, str(n_threads)],
        capture_output=True, text=True, timeout=60, cwd=site,  # where no source hides what is installed
    )  # fmt: skip
    assert (done.returncode, done.stdout, done.stderr) == (0, "interrupted 3.0\n", "")
