"""Refinement of several loadings by fewer moves, where a test is about something else."""

from contextlib import contextmanager
from unittest.mock import patch

from spcacore.models import joint_search


@contextmanager
def few():
    with patch.multiple(joint_search, JOINT_PATIENCE=5, JOINT_COMBINED_PATIENCE=5, JOINT_AGREEING=1):
        yield
