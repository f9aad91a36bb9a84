# cython: language_level=3, boundscheck=False, wraparound=False
from cpython.exc cimport PyErr_CheckSignals
from cython cimport floating
from cython.parallel cimport prange, threadid
from spcacore._core cimport spca_tpower_covariance
import numpy as np


cdef int on_stop(void *ctx) noexcept nogil:
    """Whether a signal is to end the call; ctx is the list of what is to be raised."""
    with gil:
        if not <list> ctx:
            try:
                PyErr_CheckSignals()  # runs signal handlers in the main thread, and nothing in another
            except BaseException as error:
                (<list> ctx).append(error)
        return len(<list> ctx) > 0


def best_value(const floating[:, ::1] A, Py_ssize_t cardinality, int n_threads=1):
    """The largest x'A x that a search from a single variable finds."""
    cdef Py_ssize_t p = A.shape[0], j, k = cardinality
    if p == 0 or A.shape[1] != p or not 1 <= k <= p or n_threads < 1:
        raise ValueError("A is not square, or cardinality or n_threads is out of range")
    dtype = np.float32 if floating is float else np.float64
    starts, values, status = np.eye(p, dtype=dtype), np.full(p, -np.inf, dtype), np.zeros(p, np.intc)
    cdef floating[:, ::1] x = starts, work = np.empty((n_threads, 6 * p), dtype)
    cdef floating[::1] value = values
    cdef Py_ssize_t[:, ::1] iwork = np.empty((n_threads, 2 * p + 1), np.intp)
    cdef int[::1] failed = status
    raised = []
    cdef void *ctx = <void *> raised
    for j in prange(p, nogil=True, num_threads=n_threads, schedule="dynamic"):
        failed[j] = spca_tpower_covariance(
            p, &A[0, 0], p, k, False, 100000, <floating> 0, on_stop, ctx, &x[j, 0], &work[threadid(), 0],
            &iwork[threadid(), 0], &value[j], &iwork[threadid(), 2 * p],
        )
    if raised:
        raise raised[0]
    return values[status >= 0].max(initial=0)
