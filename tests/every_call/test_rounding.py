"""The digits that the page of reliability promises, under the other modes of rounding and other last bits."""

import numpy as np
import pytest
import rounding
from calls import CALLS

pytestmark = pytest.mark.skipif(not rounding.HERE, reason="the numbers of rounding modes are of x86-64")


@pytest.mark.share(12)
@pytest.mark.parametrize("call", CALLS, ids=repr)
def test_digits_and_supports(call):
    """Two digits fewer may be the processor's."""
    for found, told in zip(rounding.kept(call), rounding.rows()[call.function], strict=True):
        if found is not None:
            assert found is True if told == "same" else found >= int(told) - 2


def test_modes_are_what_they_are_called_and_all_functions_have_a_row():
    third = {}
    for name, mode in {"nearest": 0, **rounding.MODES}.items():
        with rounding.rounding(mode):
            third[name] = (
                float(np.divide(np.float64(1), np.float64(3))),
                float(np.divide(np.float64(-1), 3.0)),
            )
    assert third["up"][0] > third["down"][0] == third["to zero"][0]
    assert third["down"][1] < third["up"][1] == third["to zero"][1]
    functions = {call.function for call in CALLS}
    assert rounding.rows().keys() == functions, "python tests/rounding.py writes the table"
