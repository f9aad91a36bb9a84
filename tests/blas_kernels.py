"""The kernels that OpenBLAS may choose by processor, and which of them this processor has instructions for.

Run as a program: for each, its name and what is to be done with it, beside which clone of the kernels here.
With an argument, also for what this processor chooses itself.
"""

import os
import subprocess
import sys
from pathlib import Path

from spcacore import _core

FLAGS = {  # as /proc/cpuinfo names them
    "Nehalem": {"sse4_2", "popcnt"},
    "Sandybridge": {"avx"},
    "Haswell": {"avx2", "fma"},
    "Zen": {"avx2", "fma"},
    "SkylakeX": {"avx512f", "avx512cd", "avx512bw", "avx512dq", "avx512vl"},
}
# Beside which processors have them: the clone of the kernels here
BESIDE = {
    "Nehalem": "generic",
    "Sandybridge": "generic",
    "Haswell": "avx2",
    "Zen": "avx2",
    "SkylakeX": "avx512",
}
USED = """
import numpy as np, scipy.linalg, threadpoolctl
A = np.eye(200)
scipy.linalg.eigh(A @ A)
blas = [i for i in threadpoolctl.threadpool_info() if i["user_api"] == "blas"]
print(*sorted({i.get("architecture", i["internal_api"]) for i in blas}))
"""


def lacking(kernel):
    """The instructions of a kernel that this processor is not known to have."""
    path = Path("/proc/cpuinfo")
    return sorted(FLAGS[kernel] - set(path.read_text().split() if path.exists() else ()))


def used(kernel):
    """What NumPy's and SciPy's BLAS say that they run where this kernel is asked for."""
    done = subprocess.run(
        [sys.executable, "-c", USED], env={**os.environ, "OPENBLAS_CORETYPE": kernel},
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def main(own):
    """`run KERNEL CLONE` for each, `skip NAME: why`; an error where BLAS runs something else than asked for.

    `all` after the first run with a clone: the tests of what clones do are to be run, too. Without `own`,
    what this processor runs where nothing is asked for is left to the default run of the tests.
    """
    tried = {}
    for kernel in FLAGS:
        if missing := lacking(kernel):
            print(f"skip {kernel}: this processor lacks {' '.join(missing)}")
        elif (name := used(kernel)) in tried:
            print(f"skip {kernel}: for it BLAS runs the kernels of {tried[name]}")
        elif name != kernel:
            raise SystemExit(f"asked for the kernels of {kernel}, BLAS runs those of {name}")
        else:
            tried[name] = kernel
    if not tried:
        raise SystemExit("this processor has the instructions of none")
    here = _core.clones()
    plan = [(kernel, BESIDE[kernel] if BESIDE[kernel] in here else here[-1]) for kernel in tried.values()]
    plan += [(plan[-1][0], clone) for clone in here if clone not in {other for _, other in plan}]
    seen = set()
    for kernel, clone in plan:
        if not own and (used(""), here[-1]) == (kernel, clone):
            print(f"skip {kernel} with {clone}: the default run has them")
            continue
        print(f"run {kernel} {clone}{'' if clone in seen else ' all'}")
        seen.add(clone)
    for clone in sorted({*BESIDE.values()} - {*here}):
        print(f"skip the clone {clone}: this processor, or this build, lacks it")


if __name__ == "__main__":
    main(own=len(sys.argv) > 1)
