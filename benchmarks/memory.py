"""Peak memory of calls in processes of their own.

python memory.py FAMILY N P DTYPE ORDER SCREENING: that of one `sparse_pca` call above X, as a fraction of X.
"""

import subprocess
import sys
from pathlib import Path


def status(field):
    """VmRSS or VmHWM in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(field))


def above(call):
    """Bytes of the peak of resident memory above what there was before, and what the call returns."""
    with open("/proc/self/clear_refs", "w") as reset:
        reset.write("5")  # VmHWM starts anew from the present size, which the system may lower at any time
    before = status("VmRSS")
    result = call()
    return max(status("VmHWM") - before, 0), result  # the counts are some hundred KB apart


def in_process(file, *arguments, **options):
    """What a script prints in a fresh process."""
    command = [sys.executable, str(Path(file).resolve()), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout


def peak(family, n, p, dtype, order, screening):
    """Run this file in a fresh process."""
    return float(in_process(__file__, family, n, p, dtype, order, screening))


def main(family, n, p, dtype, order, screening):
    import numpy as np
    from families import K, R, make

    from spcacore import TPower, sparse_pca

    # Libraries are loaded and BLAS has its buffers before the count begins
    small = make("noise", 40, 2 * K * R)
    small.T @ small[:, 0]
    sparse_pca(small, 2, cardinality=3)
    X = make(family, int(n), int(p), np.dtype(dtype), order)
    method = TPower(screening=screening)
    print(above(lambda: sparse_pca(X, R, K, method=method))[0] / X.nbytes)


if __name__ == "__main__":
    main(*sys.argv[1:])
