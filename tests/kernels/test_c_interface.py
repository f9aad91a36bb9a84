"""What the C functions of `spcacore._core` promise: signatures, statuses, refusals, scratch and stack."""

import ctypes
import os
import re
import sys
import threading

import numpy as np
import pytest
from c_functions import (
    ARGUMENTS,
    CALLED,
    DTYPES,
    FROZEN,
    INVALID,
    NONFINITE,
    NOT_CONVERGED,
    OK,
    STATUS,
    STOP,
    STOPPED,
    TEXT,
    ZERO_VECTOR,
    data,
    prepared,
    run,
    unit_vector,
)  # fmt: skip
from in_turn import each_dtype
from numpy.testing import assert_array_equal
from oracles import covariance

from spcacore import _core


def exported():
    """Signature by name; of the fused ones by the names that every version of Cython gives them."""
    name_of = ctypes.pythonapi.PyCapsule_GetName
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    return {name: name_of(c).decode() for name, c in _core.__pyx_capi__.items() if "[" not in name}


def frozen():
    signatures = {}
    for line in FROZEN.split("\n")[1:-1]:
        name, signature = line.split(": ")
        if not re.search(r"\bT\b", signature):
            signatures[name] = signature
        else:
            for i, real in enumerate(("float", "double")):
                signatures[f"__pyx_fuse_{i}{name}"] = re.sub(r"\bT\b", real, signature)
    return signatures


def test_signatures_are_frozen():
    assert exported() == frozen(), (
        "The C functions that other packages were compiled against have changed. Give what is new another "
        "name, and add its line to FROZEN; a line may go only with a new major version."
    )
    in_order = [line.split(":")[0].removeprefix("spca_") for line in FROZEN.split("\n")[1:-1]]
    assert list(ARGUMENTS) == in_order  # of the table in the header


def test_statuses_are_frozen():
    named = dict(re.findall(r"^    (SPCACORE_\w+) = (-?\d+)", TEXT.partition("cdef enum:\n\n")[0], re.M))
    assert {name: named[name] for name in STATUS} == {name: str(code) for name, code in STATUS.items()}


RNG = np.random.default_rng(0)
N, P, R = 6, 4, 2
X = RNG.standard_normal((N, P))
USUAL = {
    "X": X,
    "A": X.T @ X,
    "mean": X.mean(axis=0),
    "weight": np.array([1, 2, 0.5, 1]),
    "a": RNG.standard_normal(P),
    "x": np.array([0.6, 0.8, 0, 0]),
    "V": RNG.standard_normal((R, P)),
    "Y": RNG.standard_normal((R, P)),
}
DEFLATIONS = [name for name in CALLED if name.startswith("deflate")]
SEARCHES = [name for name in CALLED if name.startswith(("tpower", "pmd"))]
WRITTEN = {"X", "A", "x", "V", "Y"}  # where it is no input alone, which the call may not change either


def usual(name, **changed):
    """Arguments of the function that it takes, its arrays by name."""
    inputs = {
        a: v
        for a, v in USUAL.items()
        if any(a == x and ("const" in d or a in "XAxY") for x, d in ARGUMENTS[name].items())
    }
    if name == "truncate":
        inputs["x"] = USUAL["a"]
    return {**inputs, **{a: v for a, v in changed.items() if a in ARGUMENTS[name]}}


ENDED = dict.fromkeys(SEARCHES, ZERO_VECTOR)
TOLD = {name: STOPPED for name in CALLED if "stop" in ARGUMENTS[name]}
SAYS_STOP = STOP(lambda _: 1)
CONDITIONS = {  # what is changed, and the statuses that are not OK
    "nothing": ({}, {}),
    "x zero": ({"x": np.zeros(P)}, {**ENDED, "refit_covariance": ZERO_VECTOR, "refit_data": ZERO_VECTOR}),
    "x of one variable": ({"x": unit_vector(P, 1)}, {}),
    "x nearly underflows": ({"x": np.array([3e-45, 3e-45, 0, 0])}, {}),
    "A zero": ({"A": np.zeros((P, P)), "X": np.tile(USUAL["mean"], (N, 1))}, ENDED),
    "A negative": ({"A": -np.eye(P) - 1}, {}),
    "one sample": ({"X": X[:1]}, {}),
    "one sample, about itself": ({"X": X[:1], "mean": X[0], "A": np.zeros((P, P))}, ENDED),
    "entries nearly overflow": (
        {"A": 1e37 * USUAL["A"], "X": 1e18 * X, "mean": 0 * X[0], "weight": np.ones(P)},
        {},
    ),
    "entries nearly underflow": ({"A": 1e-37 * USUAL["A"], "X": 1e-18 * X, "mean": 0 * X[0]}, {}),
    "loadings zero": ({"V": np.zeros((R, P)), "Y": np.zeros((R, P))}, {}),
    "loadings in one line": ({"V": np.ones((R, P)), "Y": np.ones((R, P))}, {}),
    "no loadings": ({"V": np.zeros((0, P))}, {}),
    "one variable": (
        {
            "X": X[:, :1],
            "A": np.ones((1, 1)),
            "mean": X[0, :1],
            "weight": np.ones(1),
            "a": np.ones(1),
            "x": np.ones(1),
            "V": np.ones((1, 1)),
            "Y": np.ones((1, 1)),
            "k": 1,
            "r": 1,
        },
        {},
    ),
    "all variables": ({"k": P, "bound": 9.0, "r": P, "V": np.eye(P), "Y": np.eye(P)}, {}),
    "no iteration": ({"max_iter": 0}, dict.fromkeys((*SEARCHES, "varimax"), NOT_CONVERGED)),
    "stop says so": ({"stop": SAYS_STOP}, TOLD),
}


@pytest.mark.parametrize("name", CALLED)
@pytest.mark.parametrize("condition", CONDITIONS)
def test_status(name, condition):
    changed, promised = CONDITIONS[condition]
    for dtype in DTYPES:
        for order in "CF":
            out = run(name, dtype, order, **usual(name, **changed))
            assert out.status == promised.get(name, OK), (dtype, order)
            if out.status < 0:
                for argument in WRITTEN & set(vars(out)) & set(usual(name)):
                    assert_array_equal(getattr(out, argument), usual(name, **changed)[argument].astype(dtype))


OUT_OF_RANGE = {
    "n": [0],
    "p": [0, -1],
    "ld": [1],
    "k": [0, P + 1],
    "r": [-1, P + 1],
    "bound": [0.5, np.nan],
    "tol": [-1, np.nan],
    "max_iter": [-1],
    "level": [-1, np.nan],
    "gamma": [-1, np.inf],
    "deflation": [0, 4],
    ("truncate", "p"): [-1],
    ("truncate", "k"): [-1, P + 1],
    ("soft_threshold", "p"): [-1],
    ("varimax", "r"): [0, -1],
}


@pytest.mark.parametrize("name", CALLED)
def test_what_is_out_of_range_or_not_finite_is_refused_and_nothing_is_changed(name):
    """NaN in an entry that the function needs, wherever that is: x is not zero in the first two variables."""
    given = usual(name)
    refused = [
        ({argument: value}, INVALID)
        for argument, declared in ARGUMENTS[name].items()
        if "*" not in declared
        for value in OUT_OF_RANGE.get((name, argument), OUT_OF_RANGE.get(argument, ()))
    ]
    for argument, array in given.items():
        for bad, place in ((np.nan, 0), (np.inf, 1), (-np.inf, 0)):
            spoiled = array.copy()
            spoiled.flat[place] = bad
            refused.append(({argument: spoiled}, NONFINITE))
    assert len(refused) >= 4
    for changed, status in refused:
        for dtype in DTYPES:
            for order in "CF":
                out = run(name, dtype, order, **{**given, **changed})
                assert out.status == status, (changed, dtype, order)
                for argument, array in {**given, **changed}.items():
                    if isinstance(array, np.ndarray):
                        assert_array_equal(getattr(out, argument), array.astype(dtype))


def test_schur_deflation_of_data_is_refused_before_a_column_is_changed():
    for order in "CF":
        out = run("deflate_data_schur", order=order, X=np.array([[3, np.nan], [3, 2]]), x=np.array([1.0, 0]))
        assert out.status == NONFINITE
        assert_array_equal(out.X, [[3, np.nan], [3, 2]])


def test_a_rotation_is_refused_before_a_column_is_turned():
    """Of one column, which has none to turn with, and of three, where the others could turn."""
    for Y in (np.full((1, P), np.inf), np.vstack([USUAL["Y"], np.full((1, P), np.nan)])):
        out = run("varimax", Y=Y)
        assert out.status == NONFINITE
        assert_array_equal(out.Y, Y)


def stack_used(call):
    """Bytes of stack below the frame that makes a call, in a thread of its own."""
    room, near, out = 1 << 18, 2048, []
    libc = ctypes.CDLL(None)
    libc.getcontext.argtypes = [ctypes.c_void_p]

    def body():
        context = ctypes.create_string_buffer(4096)
        libc.getcontext(context)
        pointer = int.from_bytes(context.raw[160:168], sys.byteorder)  # rsp, of x86-64
        ctypes.memset(pointer - room, 0x5A, room - near)
        call()
        left = ctypes.string_at(pointer - room, room)
        out.append(room - (len(left) - len(left.lstrip(b"\x5a"))))

    before = threading.stack_size(1 << 20)
    try:
        thread = threading.Thread(target=body)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    return out[0]


@pytest.mark.skipif(
    not (sys.platform == "linux" and os.uname().machine == "x86_64"), reason="reads a register of x86-64"
)
@each_dtype
@pytest.mark.parametrize("name", CALLED)
def test_stack(name, dtype, rng):
    """At most 16 KB, of what searches, selections and products of every size take."""
    n, p, r = 240, 130, 4
    long, V = rng.standard_normal(20000), rng.standard_normal((r, p))
    large = {
        "X": data(n, p),
        "mean": np.ones(p),
        "weight": np.ones(p),
        "V": V,
        "Y": V,
        "a": long,
        "bound": 3.0,
    }
    large.update(A=covariance(large["X"]), x=V[0] / np.linalg.norm(V[0]), max_iter=9)
    changes = [{"k": 5}, {"k": 60, "thorough": 0}, {"k": p, "r": 1}]
    if name == "truncate":
        changes = [{"x": long[:size], "k": k} for size in (130, 3000, 20000) for k in (9, size // 4)]
    elif "a" in ARGUMENTS[name]:
        changes = [{"a": long[:size]} for size in (130, 3000, 20000)]
    elif name.startswith("refit"):
        changes = [{"x": np.where(np.arange(p) < k, large["x"], 0)} for k in (5, 60, p)]
    used = []
    for changed in changes if "k" in ARGUMENTS[name] or "x" in changes[0] or "a" in changes[0] else [{}]:
        for order in "CF" if "X" in ARGUMENTS[name] else "C":
            given = usual(name, **{**large, **changed})
            used.append(stack_used(prepared(name, dtype, order, **given)[0]))
    assert max(used) <= 16384
