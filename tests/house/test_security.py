"""What SECURITY.md promises: what sources do not use, what files cannot do, how the extension is built."""

import ast
import re
import shutil
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import numpy as np
import pytest
from extras import optional

import spcacore
from spcacore import _core
from spcacore.cli import main

PACKAGE = Path(spcacore.__file__).parent
MODULES = {
    "pickle", "dill", "cloudpickle", "joblib", "marshal", "shelve", "tempfile", "socket", "ssl", "http",
    "urllib", "requests", "ftplib", "smtplib", "subprocess", "multiprocessing", "ctypes", "cffi", "code",
    "codeop", "runpy",
}  # fmt: skip
CALLS = {"eval", "exec", "compile", "__import__", "input", "breakpoint"}
ATTRIBUTES = {"system", "popen", "fork", "execv", "spawnv", "read_pickle", "to_pickle", "mkstemp", "mkdtemp"}


# ---- the sources -------------------------------------------------------------------------------------


def offences(source):
    """What a module uses of the above, none of which needs an exception."""
    for node in ast.walk(ast.parse(source)):
        names = []
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and not node.level:
            names = [node.module]
        elif isinstance(node, ast.Attribute) and node.attr in ATTRIBUTES:
            yield node.attr
        elif isinstance(node, ast.Call):
            if isinstance(node.func, ast.Name) and node.func.id in CALLS:
                yield node.func.id
            names = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
            names = names if "import_module" in ast.unparse(node.func) else []
            pickled = [k.value for k in node.keywords if k.arg == "allow_pickle"]
            if any(ast.unparse(value) != "False" for value in pickled):
                yield "allow_pickle"
        yield from (name for name in names if name.partition(".")[0] in MODULES)


def test_no_module_runs_code_or_leaves_the_process():
    found = {str(p.relative_to(PACKAGE)): list(offences(p.read_text("utf-8"))) for p in PACKAGE.rglob("*.py")}
    assert len(found) > 40
    assert {name: uses for name, uses in found.items() if uses} == {
        "kernels.py": ["ctypes"]
    }  # addresses for others


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import os, urllib.request",
        "from subprocess import run",
        "import os; os.system('true')",
        "eval('1')",
        "importlib.import_module('ctypes.util')",
        "np.load('a', allow_pickle=True)",
    ],
)
def test_what_is_looked_for_is_found(source):
    assert list(offences(source))
    assert list(offences("import re; re.compile('pickle'); np.load('a', allow_pickle=False)")) == []


# ---- files -------------------------------------------------------------------------------------------


class Trap:
    """Unpickled, it leaves a file."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


def with_pickles(folder, trap):
    """Files of all kinds with a trap in the place of a number."""
    objects = np.array([[trap, 1.0], [2.0, 3.0]], object)
    np.save(folder / "X.npy", objects)
    np.savez(folder / "X.npz", X=objects)
    np.savez(folder / "one.npz", X=np.eye(2), names=objects)
    np.savez(
        folder / "sparse.npz", format=objects, shape=objects, data=objects, indices=objects, indptr=objects
    )
    for name in ("X.pkl", "X.joblib", "X.pickle"):
        (folder / name).write_bytes(objects.dumps())
    for name in ("bare.npy", "bare.npz", "bare.csv", "bare.mtx", "bare.parquet", "bare.h5ad"):
        (folder / name).write_bytes(objects.dumps())


def test_no_file_runs_code(tmp_path, capsys):
    pytest.importorskip("click")
    pytest.importorskip("pandas")
    sprung = tmp_path / "sprung"
    with_pickles(tmp_path, Trap(sprung))
    files = [path for path in sorted(tmp_path.iterdir()) if path.name != "one.npz"]
    assert len(files) == 12
    for path in files:
        for command in ("fit", "info"):
            assert main([command, str(path)]) == 2, path
            assert re.fullmatch(r"spcacore: error: .*\n", capsys.readouterr().err)
    main(["fit", str(tmp_path / "one.npz")])  # the numbers in it are read
    assert not sprung.exists()
    np.load(tmp_path / "X.npy", allow_pickle=True)
    assert sprung.exists()  # the trap does work


def npy_header(shape):
    text = repr({"descr": "<f8", "fortran_order": False, "shape": shape}).encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text


def h5ad(path, shape):
    with optional("h5py").File(path, "w") as file:
        group = file.create_group("X")
        group.attrs["encoding-type"], group.attrs["shape"] = "csr_matrix", shape
        for name, values in (("data", [1.0]), ("indices", [0]), ("indptr", [0, 1])):
            group[name] = np.array(values)


@pytest.mark.parametrize("kind", ["npy", "npz", "mtx", "coordinate.mtx", "h5ad"])
@pytest.mark.parametrize("size", [10**9, 10**13])
def test_files_that_say_they_are_huge(kind, size, tmp_path, capsys):
    """Matrices beyond any memory, and fewer numbers in the file than it says."""
    pytest.importorskip("click")
    pytest.importorskip("pandas")
    path = tmp_path / f"X.{kind}"
    if kind == "npy":
        path.write_bytes(npy_header((size, size)) + b"\0" * 800)
    elif kind == "npz":
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("X.npy", npy_header((size, size)) + b"\0" * 800)
    elif kind == "mtx":
        path.write_text(f"%%MatrixMarket matrix array real general\n{size} {size}\n1.0\n")
    elif kind == "coordinate.mtx":
        path.write_text(f"%%MatrixMarket matrix coordinate real general\n{10**14} {size} {size}\n1 1 1.0\n")
    else:
        h5ad(path, (size, size))
    assert main(["info", str(path)]) == 2
    assert re.fullmatch(r"spcacore: error: .*\n", capsys.readouterr().err)


# ---- the extension -----------------------------------------------------------------------------------


def said(*command):
    if not sys.platform.startswith("linux") or shutil.which(command[0]) is None:
        pytest.skip(f"needs {command[0]}, on Linux")
    return subprocess.run([*command, _core.__file__], capture_output=True, text=True, check=True).stdout


def test_the_extension_is_hardened():
    imported = said("nm", "-D", "--undefined-only")
    if re.search("__(asan|ubsan|tsan|gcov)_", imported):
        pytest.skip("built for a sanitizer or coverage")
    assert [line.split()[-1] for line in said("nm", "-D", "--defined-only").splitlines()] == ["PyInit__core"]
    assert "__stack_chk_fail" in imported
    segments = {line.split()[0]: line.split() for line in said("readelf", "-lW").splitlines() if line.split()}
    assert "GNU_RELRO" in segments
    assert "E" not in segments["GNU_STACK"][6]
    dynamic = said("readelf", "-dW")
    assert "NOW" in dynamic
    assert not re.search(r"\((TEXTREL|RPATH|RUNPATH)\)", dynamic)


def test_positions_of_the_largest_are_positions():
    """They are indices, also of numbers that are none."""
    x = np.full(9, np.nan)
    x[4] = 1
    for a in (x, x.astype(np.float32)):
        index = _core.select_largest(a, 5)
        assert index[0] == 4
        assert ((index >= 0) & (index < 9)).all()
