"""Code in a Python process of its own, away from the sources."""

import subprocess
import sys


def output_of(code, *argv, cwd="/", timeout=120):
    """What it prints; a process that fails, or takes more seconds, fails the test."""
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, argv)],
        capture_output=True, text=True, timeout=timeout, cwd=cwd, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout
