"""Peak memory of one `sparse_pca` call above X, as a fraction of X.

A process of its own: python memory.py FAMILY N P DTYPE ORDER SCREENING
"""

import subprocess
import sys
from pathlib import Path


def status(field):
    """VmRSS or VmHWM in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def peak(family, n, p, dtype, order, screening):
    """Run this file in a fresh process."""
    arguments = [str(a) for a in (family, n, p, dtype, order, screening)]
    done = subprocess.run(
        [sys.executable, str(Path(__file__).resolve()), *arguments],
        capture_output=True,
        text=True,
        check=True,
    )
    return float(done.stdout)


def main(family, n, p, dtype, order, screening):
    import numpy as np
    from families import K, R, make

    from spcacore import sparse_pca

    # Libraries are loaded and BLAS has its buffers before the count begins
    small = make("noise", 40, 2 * K * R)
    small.T @ small[:, 0]
    sparse_pca(small, 2, cardinality=3)
    X = make(family, int(n), int(p), np.dtype(dtype), order)
    before = status("VmRSS")
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")  # VmHWM starts anew from the present size
    sparse_pca(X, R, cardinality=K, screening=screening)
    print((status("VmHWM") - before) / X.nbytes)


if __name__ == "__main__":
    main(*sys.argv[1:])
