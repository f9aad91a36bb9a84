"""Progress, interruption, pipes, and the installed command."""

import contextlib
import errno
import io
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from cli_tools import COMMAND, results, saved
from numpy.testing import assert_array_equal
from oracles import normal

import spcacore
import spcacore.cli

P = 12  # columns of X


@pytest.mark.parametrize("argv", [["fit", "-k5"], ["path", "-k1:9", "--select", "cv"], ["certify", "-k1:5"]])
def test_a_bar_is_drawn_in_a_terminal(run, tmp_path, X, argv, monkeypatch):
    path = saved(tmp_path / "m.npy", X)
    assert run(argv[0], path, *argv[1:])[2] == ""
    monkeypatch.setattr(sys, "stderr", terminal := io.StringIO())
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    if argv[0] != "certify":
        assert run(argv[0], path, *argv[1:], "-q")[0] == 0
        assert terminal.getvalue() == ""
    assert run(argv[0], path, *argv[1:])[0] == 0
    assert re.search(r"\d/\d", terminal.getvalue())


@pytest.mark.usefixtures("interruptible")
def test_interrupt_ends_long_work(tmp_path):
    """Ctrl-C in a terminal, once its bar is there."""
    termios = pytest.importorskip("termios", reason="there are no terminals here")
    path, leader, follower = tmp_path / "m.npy", *os.openpty()
    termios.tcsetwinsize(follower, (24, 100))
    np.save(path, normal(0, 600, 1200))
    argv = [*COMMAND, "fit", path, "-n", "500", "-k", "20", "-o", tmp_path / "r.npz"]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=follower, text=True, cwd=tmp_path) as process:
        os.close(follower)
        try:
            shown = os.read(leader, 1000)
            while b"iteration" not in shown:
                shown += os.read(leader, 1000)
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(OSError):  # which tells that the process has closed its end
                while text := os.read(leader, 1000):
                    shown += text
            out = process.communicate(timeout=60)[0]
        finally:
            process.kill()
            os.close(leader)
    assert (process.returncode, out) == (130, "")
    assert shown.splitlines()[-1] == b"spcacore: interrupted"
    assert b"Traceback" not in shown
    assert not (tmp_path / "r.npz").exists()


@pytest.fixture(params=["buffered", "unbuffered"])
def environment(request):
    """With and without buffers, in which output waits until the command is about to exit."""
    others = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    return others | ({"PYTHONUNBUFFERED": "1"} if request.param == "unbuffered" else {})


@pytest.mark.share(8)
@pytest.mark.parametrize("argv", [[], ["fit", "m.npy", "-o", "r.npz"], ["--version"]])
def test_broken_pipe_is_silent_and_results_are_written(tmp_path, X, argv, environment):
    np.save(tmp_path / "m.npy", X)
    reader, writer = os.pipe()
    os.close(reader)
    done = subprocess.run(
        [*COMMAND, *argv], stdout=writer, stderr=subprocess.PIPE, cwd=tmp_path, env=environment
    )
    os.close(writer)
    assert (done.returncode, done.stderr) == (0, b"")
    if "-o" in argv:
        expected = spcacore.sparse_pca(X, 5).loadings
        assert_array_equal(results(tmp_path / "r.npz")["loadings"], expected)


@pytest.mark.parametrize(("platform", "status"), [("win32", 0), ("linux", 2)])
def test_a_closed_pipe_on_windows(monkeypatch, platform, status):
    """There the error is EINVAL: https://bugs.python.org/issue35754."""

    def write(text):
        raise OSError(errno.EINVAL, "Invalid argument")

    closed = io.StringIO()
    closed.write = write
    monkeypatch.setattr(sys, "stdout", closed)
    monkeypatch.setattr(sys, "platform", platform)
    assert spcacore.cli.main(["--version"]) == status


@pytest.mark.share(2)
def test_a_full_disk_on_stdout_is_one_line(tmp_path, environment):
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            COMMAND, stdout=full, stderr=subprocess.PIPE, cwd=tmp_path, text=True, env=environment
        )
    assert done.returncode == 2
    assert done.stderr == "spcacore: error: cannot write to the standard output: No space left on device\n"


def test_the_installed_command(tmp_path, X):
    np.save(tmp_path / "m.npy", X)
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    (tmp_path / "n.txt").write_text("\n".join(f"größe{j}" for j in range(12)), encoding="utf-8")
    argv = ["fit", "m.npy", "--names", "n.txt", "-n1", "-k3"]
    done = subprocess.run([*COMMAND, *argv], capture_output=True, cwd=tmp_path, text=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert "gr\\xf6\\xdfe" in done.stdout
