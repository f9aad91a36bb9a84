"""The table of calls is whole, and holds of denormal numbers."""

import re
import warnings

import calls
import numpy as np
import pytest


def test_every_public_function_is_there():
    assert calls.without_a_call() == set()
    assert len({c.name for c in calls.CALLS}) == len(calls.CALLS)


@pytest.mark.parametrize("dtype", [np.float32, np.float64], ids=["f32", "f64"])
@pytest.mark.parametrize("call", calls.CALLS, ids=repr)
def test_every_call_answers_and_repeats(call, dtype):
    """In finite numbers, the same to the bit a second time, and the caller's array stays as it was."""
    X = call.clean(dtype)
    before = X.tobytes()
    first, second = (calls.numbers(call.run(X)) for _ in range(2))
    assert X.tobytes() == before
    assert first
    for name, value in first.items():
        assert not np.isnan(value).any(), name
        assert value.tobytes() == second[name].tobytes(), name


def test_every_method_of_a_result_is_there():
    assert calls.without_an_argument() == set()


REFUSED = "varies too little to be divided|bandwidth is too small|beyond the number range"
WITH_UNITS = {
    "gpower",
    "ppca",
    "spca, penalty",
    "sparse_pca, gpower",
}  # a penalty, or loadings that have some


@pytest.mark.parametrize(("dtype", "exponent"), [(np.float32, -140), (np.float64, -1060)], ids=["f32", "f64"])
@pytest.mark.parametrize("call", calls.CALLS, ids=repr)
def test_denormal_numbers(call, dtype, exponent):
    """Integers times a power of two that leaves them denormal: the same loadings, but for rounding."""
    X = np.round(4 * call.clean(dtype))
    X[X == 0] = 1
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", ".*(converge|fewer than|left after|without nonzeros)", RuntimeWarning
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
        np.testing.assert_allclose(V, W, atol=2e-3)
