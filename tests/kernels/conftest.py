"""Nothing is written behind scratch."""

import pytest
from c_functions import (
    GUARDED,
)  # fmt: skip


@pytest.fixture(autouse=True)
def nothing_is_written_behind_scratch():
    GUARDED.clear()
    yield
    for whole, size in GUARDED:
        assert (whole[size:] == 77).all(), size
