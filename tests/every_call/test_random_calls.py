"""Random calls of random functions: `tests/soak.py` makes more, of the command and the estimators too."""

import warnings

import numpy as np
import pytest
from extras import skipping
from in_turn import examples

pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")
soak = pytest.importorskip("soak")


def test_random_calls():
    """A quarter of 2,000 by default; the seed of a call is [7, its number], which the message has."""
    heard = []
    for number in range(examples(2000)):
        rng = np.random.default_rng([7, number])
        with warnings.catch_warnings(record=True) as caught, skipping():
            warnings.simplefilter("always")
            try:
                heard.append(soak.declared_options(rng))
            except (TypeError, ValueError) as error:
                if not soak.traced_to_a_check(error):
                    raise AssertionError(f"call {number}") from error
            except Exception as error:
                raise AssertionError(f"call {number}") from error
        assert all(soak.WARNINGS.search(str(one.message)) for one in caught), (number, caught)
    assert len(set(heard)) > 10
