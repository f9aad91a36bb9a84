"""What the tests of faults share: forms of the inputs, and an allocator of NumPy that refuses."""

import contextlib
import ctypes
import functools
import shutil
import subprocess
import sysconfig
import tempfile
from pathlib import Path

import calls
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.sparse.linalg import aslinearoperator

try:
    from numpy._core import _multiarray_umath as umath
except ImportError:  # before NumPy 2
    from numpy.core import _multiarray_umath as umath


def sparse(X):
    return sp.csr_array(np.where(np.abs(X) > 0.3, X, 0))


FORMS = {
    "f64": lambda call: call.clean(),
    "f32": lambda call: call.clean(np.float32),
    "csr": lambda call: sparse(call.clean()),
    "csr f32": lambda call: sparse(call.clean(np.float32)),
    "operator": lambda call: aslinearoperator(call.clean()),
}


def outcome(call, X):
    """The bits of a result; of a form that the function refuses, the error."""
    try:
        result = call.run(X)
    except (TypeError, ValueError) as error:
        return type(error).__name__, str(error)
    return {name: value.tobytes() for name, value in calls.numbers(result).items()}


# ---- the data of arrays (NEP 49) ------------------------------------------------------------------------

NAME = ctypes.c_char_p(b"mem_handler")  # a capsule keeps the pointer alone
SOURCE = r"""
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

static _Atomic long asked, live, first = -1, last = -1, refused;

void refuse_from(long i, long j) { asked = 0; refused = 0; first = i; last = j; }
long counted(int which) { return which == 0 ? asked : which == 1 ? live : refused; }

static int refuse(void)
{
    long i = asked++;
    if (i < first || i >= last) return 0;
    refused++;
    return 1;
}

static void *keep(void *block)
{
    live += block != NULL;
    return block;
}

static void *new(void *ctx, size_t size) { return refuse() ? NULL : keep(malloc(size)); }
static void *zeros(void *ctx, size_t n, size_t size) { return refuse() ? NULL : keep(calloc(n, size)); }
static void *resize(void *ctx, void *block, size_t size)
{
    return refuse() ? NULL : block ? realloc(block, size) : keep(malloc(size));
}
static void drop(void *ctx, void *block, size_t size)
{
    live -= block != NULL;
    free(block);
}

struct {
    char name[127];
    uint8_t version;
    struct {
        void *ctx;
        void *(*malloc)(void *, size_t), *(*calloc)(void *, size_t, size_t);
        void *(*realloc)(void *, void *, size_t);
        void (*free)(void *, void *, size_t);
    } allocator;
} handler = {"refusing", 1, {0, new, zeros, resize, drop}};
"""


@functools.cache
def _library():
    compiler = shutil.which("cc") or shutil.which((sysconfig.get_config_var("CC") or "gcc").split()[0])
    if compiler is None:
        pytest.skip("needs a C compiler")
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "refusing.c"), Path(folder, "refusing.so")
        source.write_text(SOURCE)
        subprocess.run([compiler, "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        return ctypes.CDLL(str(library))


class Allocations:
    """The allocations by one thread: `asked` and `refused` of the last `refusing`, blocks that `live`."""

    def __init__(self, library):
        self.library = library
        self.asked = self.refused = 0

    @property
    def live(self):
        return self.library.counted(1)

    @contextlib.contextmanager
    def refusing(self, first, stop):
        """Those from `first` on are refused, until `stop`."""
        self.library.refuse_from(first, stop)
        try:
            yield
        finally:
            self.asked, self.refused = self.library.counted(0), self.library.counted(2)
            self.library.refuse_from(-1, -1)


@contextlib.contextmanager
def allocations():
    """Arrays made inside, by this thread, have their data from an allocator that counts and can refuse."""
    library = _library()
    library.counted.restype = ctypes.c_long
    library.refuse_from.argtypes = [ctypes.c_long, ctypes.c_long]
    new, get = ctypes.pythonapi.PyCapsule_New, ctypes.pythonapi.PyCapsule_GetPointer
    new.restype, new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    api = ctypes.cast(get(umath._ARRAY_API, None), ctypes.POINTER(ctypes.c_void_p))
    install = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.py_object)(api[304])  # PyDataMem_SetHandler
    before = install(new(ctypes.addressof(ctypes.c_char.in_dll(library, "handler")), NAME, None))
    try:
        yield Allocations(library)
    finally:
        install(before)
