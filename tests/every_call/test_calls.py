"""The table of calls is whole, and holds of denormal numbers."""

import contextlib
import copy
import dataclasses
import inspect
import pickle
import re
import sys
import warnings
from contextvars import ContextVar

import calls
import numpy as np
import pytest
import scipy.sparse as sp
from in_turn import in_turn
from kinds import untouched
from numpy.testing import assert_allclose

import spcacore
from spcacore._validation import Hook
from spcacore.progress import check_callback

pytestmark = pytest.mark.usefixtures("few_starts")


def test_every_public_function_is_there():
    assert calls.without_a_call() == set()
    assert len({c.name for c in calls.CALLS}) == len(calls.CALLS)


@pytest.mark.share(200)
@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("call", calls.CALLS, ids=repr)
def test_every_call_answers_and_repeats(call, dtype):
    """In finite numbers, the same to the bit a second time, and the caller's array stays as it was.

    The largest entry of a loading is positive: the first of those that tie; of canonical pairs in x.
    """
    X = call.clean(dtype)
    with untouched(X):
        first, second = calls.numbers(calls.answer(call, dtype)), calls.numbers(call.run(X))
    assert first
    for name, value in first.items():
        assert not np.isnan(value).any(), name
        assert value.tobytes() == second[name].tobytes(), name
        if name.split(".")[-1] in ("loading", "loadings", "loadings_x"):
            V = value.reshape(len(value), -1)
            largest = ((1 - 1e-12) * np.abs(V).max(axis=0) <= np.abs(V)).argmax(axis=0)
            assert (V[largest, np.arange(V.shape[1])] > 0).all(), name


@pytest.mark.share(10)
@pytest.mark.parametrize("call", [c for c in calls.CALLS if c.sparse], ids=repr)
def test_no_number_is_longer_than_double(call):
    for form in (np.asarray, sp.csr_array, sp.csc_array):
        for name, value in calls.numbers(call.run(form(call.clean(np.longdouble)))).items():
            assert value.dtype.itemsize <= 8, (form, name)


def test_every_method_of_a_result_is_there():
    assert calls.without_an_argument() == set()


PATHS = {"n_iter", "n_starts", "n_ends", "n_best", "trace", "free_energy"}  # whose ends rounding decides


def assert_near(out, expected, tolerance, left_out=()):
    """All numbers that both have, relative to the largest entry of each."""
    for name in out.keys() & expected.keys():
        if {*name.split(".")}.isdisjoint({*PATHS, *left_out}):
            size = np.abs(expected[name]).max(initial=0)
            assert_allclose(out[name], expected[name], 0, tolerance * size, err_msg=name)


@pytest.mark.share(10)
@pytest.mark.parametrize("call", calls.CALLS, ids=repr)
def test_single_precision_is_near_double(call):
    single, double = (calls.answer(call, dtype) for dtype in (np.float32, np.float64))
    for name in ("loading", "loadings", "loadings_x", "loadings_y", "sample_loading", "centers"):
        if call.function != "sparse_eigen":  # whose other matrix is in double precision
            assert getattr(getattr(single, name, None), "dtype", np.float32) == np.float32, name
    assert_near(calls.numbers(single), calls.numbers(double), 2e-2)


SCATTER = {"sparse_pca, gpower", "spca", "spca, penalty", "pmd"}  # with penalties or strengths in its unit
VARIANCES = {"explained_variance", "adjusted_variance", "value", "total_variance"}
OF_SAMPLES = {"bic", "n_parameters"}  # of which the mean is one parameter a variable


@pytest.mark.share(4)
@pytest.mark.parametrize("call", [c for c in calls.CALLS if c.name.endswith(", covariance")], ids=repr)
def test_a_covariance_gives_what_its_data_give(call):
    if call.function == "deflate":
        pytest.skip("the results are matrices of different kinds")
    name = call.name.removesuffix(", covariance")
    expected = calls.numbers(calls.answer(next(c for c in calls.CALLS if c.name == name)))
    factor = calls.N - 1 if name in SCATTER else 1
    out = calls.numbers(call.run(calls.COVARIANCE * factor))
    out |= {name: value / factor for name, value in out.items() if name in VARIANCES}
    assert_near(out, expected, 1e-7, OF_SAMPLES)


def copies(result):
    yield copy.copy(result)
    yield copy.deepcopy(result)
    for protocol in range(2, pickle.HIGHEST_PROTOCOL + 1):
        yield pickle.loads(pickle.dumps(result, protocol))


def assert_same_bits(out, expected):
    assert list(out) == list(expected)
    for name, value in expected.items():
        assert out[name].dtype == value.dtype, name
        assert out[name].tobytes() == value.tobytes(), name


@pytest.mark.share(5)
@pytest.mark.parametrize("call", calls.CALLS, ids=repr)
def test_results_are_frozen_copied_and_pickled(call):
    result = calls.answer(call)
    if dataclasses.is_dataclass(result):
        with pytest.raises(AttributeError):
            setattr(result, dataclasses.fields(result)[0].name, None)
    for again in [result, *copies(result)]:
        assert type(again) is type(result)
        arrays = [v for v in getattr(again, "__dict__", {}).values() if isinstance(v, np.ndarray)]
        assert not any(array.flags.writeable for array in arrays)
        assert repr(again) == repr(result)
        assert_same_bits(calls.numbers(again), calls.numbers(result))


@pytest.mark.parametrize("call", [c for c in calls.ARGUMENTS if "." in c.function], ids=repr)
def test_methods_of_copies_give_the_same(call, monkeypatch):
    X, found = call.clean(), calls.found
    expected = calls.numbers(call.run(X))
    for again in copies(found(call.of)):
        monkeypatch.setattr(calls, "found", lambda _, again=again: again)
        assert_same_bits(calls.numbers(call.run(X)), expected)


REFUSED = "varies too little to be divided|bandwidth is too small|(beyond|exceed) the number range"
WITH_UNITS = {
    "gpower",
    "oblimin",
    "ppca",
    "promax",
    "spca, penalty",
    "sparse_pca, gpower",
}  # a penalty, or loadings that have some


@pytest.mark.share(5)
@pytest.mark.parametrize(("call", "dtype"), in_turn(calls.CALLS, [np.float32, np.float64]))
def test_denormal_numbers(call, dtype):
    """Integers times a power of two that leaves them denormal: the same loadings, but for rounding."""
    exponent = -140 if dtype == np.float32 else -1060
    X = np.round(4 * call.clean(dtype))
    X[X == 0] = 1
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore",
            ".*(converge|fewer than|left after|without nonzeros|below the number range)",
            RuntimeWarning,
        )
        try:
            out = call.run(np.ldexp(X, exponent))
        except ValueError as error:
            if not re.search(REFUSED, str(error)):
                raise
            return
        clean = call.run(X)
    for value in calls.numbers(out).values():
        assert not np.isnan(value).any()
    V, W = (getattr(r, "loadings", getattr(r, "loading", None)) for r in (out, clean))
    if V is not None and call.name.removesuffix(", covariance") not in WITH_UNITS:
        assert_allclose(V, W, atol=2e-3)


# ---- callbacks that end the search ---------------------------------------------------------------------

FOUND_TOGETHER = {"sparse_pca, common", "oppca, joint", "spca", "sca", "sma"}
IN_TURN = {"sparse_pca", "oppca", "soppca", "SparsePCAResult.extend", "StructuredPCAResult.extend"}
CHOOSING = {
    "select_sparsity", "select_n_components", "select_prior", "sparse_cca_permutation",
    "sparse_dissimilarity_gap", "sparse_kmeans_gap",
}  # fmt: skip


BOUNDS = {"optimality_bound", "sparse_eigen_bound", "sparse_cca_bound"}


def takes_callback(call):
    owner = spcacore
    for part in call.function.split("."):
        owner = getattr(owner, part)
    return "callback" in inspect.signature(owner).parameters


WITH_CALLBACK = [c for c in (*calls.CALLS, *calls.ARGUMENTS) if takes_callback(c)]


def test_every_function_with_a_callback_is_there():
    functions = {
        n for n in spcacore.__all__
        if inspect.isfunction(f := getattr(spcacore, n)) and "callback" in inspect.signature(f).parameters
    }  # fmt: skip
    assert functions - calls.APART <= {c.function for c in WITH_CALLBACK}


GIVEN = ContextVar("GIVEN", default=None)


@pytest.fixture(scope="module", autouse=True)
def hooks_of_the_context():
    """Of calls without a callback, what `given` makes, in the thread of the test and in those it starts."""
    present = check_callback

    def hook(callback):
        made = GIVEN.get()
        return present(callback) if made is None or callback is not None else made()

    with pytest.MonkeyPatch.context() as patch:
        for name, module in list(sys.modules.items()):
            if name.startswith("spcacore") and vars(module).get("check_callback") is present:
                patch.setattr(module, "check_callback", hook)
        yield


@contextlib.contextmanager
def given(callback, ended=False):
    """The callback to every public function of the table; `ended` as if it had ended the search before."""

    def made():
        hook = Hook(callback)
        hook.ended = ended
        return hook

    token = GIVEN.set(made)
    try:
        yield
    finally:
        GIVEN.reset(token)


def check_found(call, result, whole):
    """Unit loadings, fewer than asked for where they are found in turn; a bound not below the whole one."""
    if call.function in {"sparsity_path", *CHOOSING}:
        return
    if call.function in BOUNDS:
        assert whole.upper_bound * (1 - 1e-9) <= result.upper_bound < np.inf
        return
    for one in result if isinstance(result, list) else [result]:
        found = calls.numbers(one)
        for name, value in found.items():
            assert not np.isnan(value).any() or name == "noise_variance", name
        V = next(found[n] for n in ("loadings", "loading", "loadings_x", "weights", "") if n in found)
        if call.function not in {"ppca", "sca", "sma"}:
            norm = np.linalg.norm(V, axis=0)
            assert_allclose(norm[norm > 0], 1, rtol=1e-6)


def ended(call, words):
    """What a call gives whose search was ended, or None where it must refuse in these words to choose."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        if call.function not in CHOOSING or "sparseness" in call.name:
            return call.run(call.clean())
        with pytest.raises(RuntimeError, match=words):
            call.run(call.clean())


PROGRESS = {  # what is reported of each component that is found, where it is not its value
    "sparse_pca": "explained_variance", "oppca": "explained_variance", "soppca": "explained_variance",
    "sparse_lda": "values", "sparse_eigen": "values", "sparse_cca": "correlations",
}  # fmt: skip


@pytest.mark.share(8)
@pytest.mark.parametrize(
    "call", [c for c in calls.CALLS if takes_callback(c) and "refined" not in c.name], ids=repr
)
def test_progress_ends_with_what_is_found(call):
    X, seen = call.clean(), []
    with given(seen.append):
        result = call.run(X)
    assert seen or call.function == "ppca"
    begun = calls.R if call.function.endswith("extend") else 0
    assert all(begun <= p.component < p.n_components for p in seen if hasattr(p, "component"))
    assert call.function == "ppca" or getattr(seen[0], "component", begun) == begun
    values = getattr(result, PROGRESS.get(call.function, "value"), None)
    if values is not None:
        finished = [p.value for p in seen if p.value is not None]
        assert len(finished) == np.size(values)
        first = slice(1 if call.function == "sparse_pca" else None)  # of the others, the matrix is deflated
        assert_allclose(finished[first], np.ravel(values)[first], rtol=1e-12)
        assert seen[-1].n_iter == np.ravel(result.n_iter)[-1]


@pytest.mark.share(10)
@pytest.mark.parametrize("call", WITH_CALLBACK, ids=repr)
def test_stop_iteration_returns_what_was_found(call):
    told = []

    def callback(progress):
        told.append(progress)
        raise StopIteration

    whole = call.run(call.clean())  # what it extends or refines is made without the callback
    with given(callback):
        result = ended(call, "the callback ended the selection before two")
    if result is not None:
        check_found(call, result, whole)
    assert len(told) == (call.function != "ppca")  # a closed form reports no progress


@pytest.mark.share(5)
@pytest.mark.parametrize("call", WITH_CALLBACK, ids=repr)
def test_stop_iteration_before_the_first_step(call):
    """What no clock can bring about in a short call: the search is ended when it begins."""
    whole = call.run(call.clean())
    with given(lambda progress: None, ended=True):
        result = ended(call, "nothing is chosen")
    if result is None:
        return
    check_found(call, result, whole)
    if call.function == "sparsity_path":
        assert len(result.results) == 1
    elif call.function in IN_TURN and call.function.endswith("extend"):
        assert result.n_components == calls.R
    elif call.function in IN_TURN and "joint" not in call.name:
        assert result.n_components == 0
    elif call.function not in {"refine", "ppca", *CHOOSING, *BOUNDS}:
        for one in result if isinstance(result, list) else [result]:
            assert not np.any(one.converged)


@pytest.mark.parametrize("call", [c for c in WITH_CALLBACK if c.name in FOUND_TOGETHER], ids=repr)
def test_components_found_together_are_the_best_so_far(call):
    def callback(progress):
        raise StopIteration

    with given(callback), pytest.warns(RuntimeWarning, match="not converged in ") as told:
        result = call.run(call.clean())
    assert result.n_components == calls.R
    assert not np.any(result.converged)
    made = re.search(r"not converged in (\d+) iteration", str(told[0].message))
    assert int(made[1]) == np.max(result.n_iter) < 100


@pytest.mark.share(20)
@pytest.mark.parametrize("call", WITH_CALLBACK, ids=repr)
def test_what_else_a_callback_raises_reaches_the_caller(call):
    if call.function == "ppca":
        pytest.skip("a closed form reports no progress")
    X = call.clean()
    call.run(X)
    kinds = LookupError, ValueError, MemoryError, KeyboardInterrupt, SystemExit, GeneratorExit, BaseException
    for raised in [kind("mine") for kind in kinds]:

        def callback(progress, raised=raised):
            raise raised

        with given(callback), untouched(X), pytest.raises(type(raised)) as caught:
            call.run(X)
        assert caught.value is raised
