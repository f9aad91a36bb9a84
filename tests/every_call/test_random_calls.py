"""Random calls of random functions: `tests/soak.py` makes more, of the command and the estimators too."""

import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import drawn_calls
import numpy as np
import pytest
from extras import skipping
from in_turn import examples
from numpy.testing import assert_allclose

from spcacore import _core

pytest.importorskip("pandas", reason="pandas is not installed")
pytest.importorskip("matplotlib", reason="matplotlib is not installed")
pytest.importorskip("click", reason="click is not installed")
pytest.importorskip("sklearn", reason="scikit-learn is not installed")
soak = pytest.importorskip("soak")


@pytest.fixture(autouse=True)
def the_table_of_calls():
    """As it was, since random shapes take its place."""
    kept = dict(vars(soak.calls))
    yield
    vars(soak.calls).update(kept)


@pytest.mark.parametrize(("task", "n"), [("declared_options", 1400), ("estimator", 75), ("commands", 100)])
def test_random_calls(task, n):
    """A fifth of them by default; the seed of a call is [7, its number], which the message has."""
    heard = []
    for number in range(examples(n)):
        rng = np.random.default_rng([7, number])
        with warnings.catch_warnings(record=True) as caught, skipping():
            warnings.simplefilter("always")
            try:
                heard.append(getattr(soak, task)(rng))
            except (TypeError, ValueError) as error:
                if not soak.traced_to_a_check(error):
                    raise AssertionError(f"call {number}") from error
            except Exception as error:
                raise AssertionError(f"call {number}") from error
        said = [str(one.message) for one in caught]
        assert all(map(soak.WARNINGS.search, said)), (number, said)
    assert len(set(heard)) > {"declared_options": 10, "estimator": 3, "commands": 1}[task]


def test_clones():
    """Of random calls: the same bits by AVX2 and AVX-512, the same supports and values by plain loops."""
    script, answers = Path(drawn_calls.__file__), {}
    for clone in _core.clones():
        if clone == _core.clone():
            with warnings.catch_warnings(action="ignore"):
                answers[clone] = json.loads(json.dumps([*drawn_calls.answers(5, 0, examples(6))]))
            continue
        environment = os.environ | {
            "SPCACORE_CLONE": clone,
            "PYTHONPATH": str(script.parent),
            "OPENBLAS_NUM_THREADS": "1",
        }
        command = [sys.executable, "-P", script, "5", "0", str(examples(6))]
        done = subprocess.run(
            command, env=environment, capture_output=True, text=True, check=True, timeout=500
        )
        answers[clone] = json.loads(done.stdout)
    plain, *wide = answers.values()
    assert all(one == wide[0] for one in wide)
    for number, (a, b) in enumerate(zip(plain, wide[0] if wide else plain, strict=True)):
        name, generic, _, support, values = a
        if generic and name != "sma":  # whose many local optima rounding chooses among
            assert support == b[3], (number, name)
            assert_allclose(values, b[4], rtol=1e-9, err_msg=f"{number}, {name}")
