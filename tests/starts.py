"""Refinement of several loadings from fewer random starts, where a test is about something else."""

from contextlib import contextmanager
from unittest.mock import patch

from spcacore.models import many_starts, refinement


@contextmanager
def few():
    with (
        patch.multiple(many_starts, MANY_STARTS=8, GENERATIONS=2),
        patch.multiple(
            refinement,
            PERTURBATIONS=2,
            TRANSFERS=3,
            COMBINATION_ROUNDS=1,
            GENERATION_ROUNDS=1,
            GENERATION_REFINED=1,
        ),
    ):
        yield
