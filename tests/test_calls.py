"""The table of calls is whole."""

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
