"""Refinement of several loadings from fewer random starts, where a test is about something else."""

from contextlib import contextmanager
from unittest.mock import patch

from spcacore.models import many_starts, refinement


@contextmanager
def few():
    with (
        patch.multiple(many_starts, MANY_STARTS=8, GENERATIONS=3),
        patch.multiple(refinement, PERTURBATIONS=3, TRANSFERS=10),
    ):
        yield
