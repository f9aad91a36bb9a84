"""Several processes of tests have one BLAS thread each, unless told otherwise."""

import os

if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
