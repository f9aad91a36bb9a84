# cython: language_level=3, boundscheck=False, wraparound=False
from cython cimport floating
from cython.parallel cimport prange, threadid
from libc.string cimport memcpy, memset
from spcacore._core cimport (
    spca_column_statistics, spca_deflate_data_projection, spca_explained_data, spca_refit_data, spca_tpower_data,
)
import numpy as np


cdef int one(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t k, Py_ssize_t r, floating *loadings,
             floating *variance, floating *work, double *dwork, Py_ssize_t *iwork) noexcept nogil:
    """r components of X (n, p) in C order, each removed from a copy of X before the next one is sought."""
    cdef floating *Z = work
    cdef floating *mean = Z + n * p
    cdef floating *rest = mean + p
    cdef floating value
    cdef floating *x
    cdef Py_ssize_t t, j, first, n_iter
    cdef int status = 0
    memcpy(Z, X, n * p * sizeof(floating))
    memset(loadings, 0, r * p * sizeof(floating))
    for t in range(r):
        x = loadings + t * p
        status = spca_column_statistics(n, p, Z, p, True, dwork + p, mean, dwork)
        if status < 0:
            return status
        first = 0  # start from the variable of largest variance
        for j in range(p):
            if dwork[j] > dwork[first]:
                first = j
        x[first] = 1
        status = spca_tpower_data(n, p, Z, p, True, mean, <floating *> NULL, k, False, 1000, <floating> 1e-8,
                                  NULL, NULL, x, rest, iwork, &value, &n_iter)
        if status < 0:
            return status
        status = spca_refit_data(n, p, Z, p, True, mean, <floating *> NULL, x, rest, iwork, &value)
        if status < 0:
            return status
        status = spca_deflate_data_projection(n, p, Z, p, True, x, rest, iwork)
        if status < 0:
            return status
    status = spca_column_statistics(n, p, X, p, True, dwork + p, mean, dwork)
    if status < 0:
        return status
    return spca_explained_data(n, p, X, p, True, mean, <floating *> NULL, r, loadings, rest, variance)


def components(const floating[:, :, ::1] X, Py_ssize_t n_components, Py_ssize_t cardinality, int n_threads=1):
    """Loadings (m, p, r) and variances (m, r) of m matrices X (m, n, p)."""
    cdef Py_ssize_t m = X.shape[0], n = X.shape[1], p = X.shape[2], i, k = cardinality, r = n_components
    if m == 0 or n == 0 or not 1 <= k <= p or not 1 <= r <= p or n_threads < 1:
        raise ValueError("X is empty, or n_components, cardinality or n_threads is out of range")
    dtype = np.float32 if floating is float else np.float64
    loadings, variance, status = np.empty((m, r, p), dtype), np.empty((m, r), dtype), np.empty(m, np.intc)
    cdef floating[:, :, ::1] V = loadings
    cdef floating[:, ::1] out = variance
    cdef int[::1] failed = status
    cdef Py_ssize_t room = n * p + p + max(n + 5 * p, k * k + 28 * k + n * k + p, p * (2 * r + 1) + n)
    cdef floating[:, ::1] work = np.empty((n_threads, room), dtype)
    cdef double[:, ::1] dwork = np.empty((n_threads, 4 * p))
    cdef Py_ssize_t[:, ::1] iwork = np.empty((n_threads, 2 * p + 12 * k), np.intp)
    for i in prange(m, nogil=True, num_threads=n_threads, schedule="dynamic"):
        failed[i] = one(n, p, &X[i, 0, 0], k, r, &V[i, 0, 0], &out[i, 0], &work[threadid(), 0],
                        &dwork[threadid(), 0], &iwork[threadid(), 0])
    if status.any():
        raise ValueError(f"matrix {status.argmin()} has no {r} components: status {status.min()}")
    return loadings.transpose(0, 2, 1), variance
