"""Several processes of tests have one BLAS thread each; properties have 20 examples, or 100, or 5,000."""

import gc
import os
import signal
import zlib

import numpy as np
import pytest
from hypothesis import Phase, settings

if "PYTEST_XDIST_WORKER" in os.environ:
    from threadpoolctl import threadpool_limits

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    threadpool_limits(int(os.environ["OPENBLAS_NUM_THREADS"]), "blas")  # for what a plugin has loaded before

# Where a test does not say how many: `--hypothesis-profile thorough`, with `--hypothesis-seed` for others.
settings.register_profile("repeatable", max_examples=100, deadline=None, derandomize=True)
settings.register_profile("few", max_examples=20, deadline=None, derandomize=True)
settings.register_profile("thorough", max_examples=5000, deadline=None, derandomize=False)
# Of tests/mutants.py: what fails need not be made small.
settings.register_profile(
    "unshrunk", settings.get_profile("repeatable"), phases=(Phase.explicit, Phase.generate)
)
settings.load_profile("few")


def pytest_addoption(parser):
    parser.addoption("--all-cases", action="store_true", help="cases that the mark `share` leaves out, too")


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector):
    """Of a test with the mark `share(n)`, one case in n and each value of a parameter; others are slow.

    Where no slow ones are asked for, these go at once: without them all that follows has a fifth to do.
    """
    items, config = (yield), collector.config
    if not isinstance(items, list) or any("[" in argument for argument in config.args):
        return items  # all, or those that are named
    if not config.getoption("all_cases"):
        for case in beyond_share([item for item in items if not item.get_closest_marker("slow")]):
            case.add_marker("slow")
    if config.option.markexpr != "not slow":
        return items
    return [item for item in items if not item.get_closest_marker("slow")] or items


def beyond_share(cases):
    """Those of the cases of a test that its share leaves out."""
    shares = [mark for case in cases[:1] if (mark := case.get_closest_marker("share"))]
    if not shares:
        return
    names = [mark.args[0] for mark in cases[0].iter_markers("parametrize")]
    firsts = [name.split(",")[0].strip() if isinstance(name, str) else name[0] for name in names]
    met, chosen = set(), 0
    # An order that parameters do not decide, and that of the tests does not change
    for i, case in enumerate(sorted(cases, key=lambda case: zlib.crc32(case.name.encode()))):
        values = {(first, id(case.callspec.params[first])) for first in firsts}
        if shares[0].args[0] * chosen <= i or (len(firsts) > 1 and not values <= met):
            met, chosen = met | values, chosen + 1
        else:
            yield case


def pytest_collection_modifyitems(items):
    """Tests that ask how many `examples` there are count as properties: `-m hypothesis`."""
    for item in items:
        if "examples" in getattr(getattr(item.obj, "__code__", None), "co_names", ()):
            item.add_marker("hypothesis")


def pytest_configure():
    gc.disable()  # until all tests are there, of which each pass would go through more


def pytest_collection_finish():
    gc.enable()
    gc.freeze()  # each collection of garbage would go through all tests, which stay


@pytest.fixture
def seed():
    """Of a test with random data; many have several, as a parameter of this name."""
    return 0


@pytest.fixture
def rng(seed):
    """Random numbers for a test, which are the same in each run."""
    return np.random.default_rng(seed)


@pytest.fixture
def with_limits(monkeypatch):
    """A function of a module and its limits by name, which have other values in this test."""

    def change(module, **values):
        for name, value in values.items():
            monkeypatch.setattr(module, name, value)

    return change


@pytest.fixture(scope="module")
def few_starts():
    """Of joint refinement, where a test is about something else."""
    from starts import few

    with few():
        yield


@pytest.fixture(scope="module")
def never_formed():
    """The covariance matrix by default, as if there were too many variables."""
    from spcacore.operators import base, block_operator

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(base, "GRAM_ORDER", 0)
        patch.setattr(block_operator, "GRAM_BLOCKS_ORDER", 0)
        yield


@pytest.fixture(scope="module")
def small_sets(never_formed):
    """Working sets for small matrices too, which begin with few variables."""
    from spcacore.operators import inputs
    from spcacore.solvers import starts, truncated_power

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inputs, "WORKING_SET_COST", 0)
        for module in (starts, truncated_power):
            patch.setattr(module, "WORKING_SET_FACTOR", 2)
        yield patch


@pytest.fixture
def interruptible():
    """Ctrl-C interrupts, here and in new processes, also where a shell in the background ignores it."""
    old = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, old)
