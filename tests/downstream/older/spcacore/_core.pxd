# cython: language_level=3
# What version 0.2.0 declared: packages that were built with it go on to work.
from cython cimport floating

cdef enum:
    SPCACORE_OK = 0
    SPCACORE_NOT_CONVERGED = 1
    SPCACORE_STOPPED = -1
    SPCACORE_ZERO_VECTOR = -2
    SPCACORE_NONFINITE = -3
    SPCACORE_LAPACK_FAILED = -5
    SPCACORE_INVALID = -6

cdef int spca_truncate(Py_ssize_t p, Py_ssize_t k, floating *x, floating *work) noexcept nogil
cdef int spca_soft_threshold(Py_ssize_t p, const floating *a, floating level, floating *out) noexcept nogil
cdef int spca_l1_threshold(Py_ssize_t p, const floating *a, double bound, bint nonnegative, floating *work,
                           floating *w, double *level) noexcept nogil
cdef int spca_varimax(Py_ssize_t p, Py_ssize_t r, double gamma, Py_ssize_t max_iter, double tol,
                      int (*stop)(void *) noexcept nogil, void *ctx, floating *Y, double *work, double *R,
                      Py_ssize_t *n_iter) noexcept nogil
cdef Py_ssize_t spca_varimax_work(Py_ssize_t p, Py_ssize_t r) noexcept nogil
cdef int spca_deflate_hotelling(Py_ssize_t p, floating *A, Py_ssize_t ld, const floating *x, floating *work,
                                Py_ssize_t *iwork) noexcept nogil
cdef int spca_deflate_projection(Py_ssize_t p, floating *A, Py_ssize_t ld, const floating *x, floating *work,
                                 Py_ssize_t *iwork) noexcept nogil
cdef int spca_deflate_schur(Py_ssize_t p, floating *A, Py_ssize_t ld, const floating *x, floating *work,
                            Py_ssize_t *iwork) noexcept nogil
cdef int spca_deflate_data_projection(Py_ssize_t n, Py_ssize_t p, floating *X, Py_ssize_t ld, bint row_major,
                                      const floating *x, floating *work, Py_ssize_t *iwork) noexcept nogil
cdef int spca_deflate_data_schur(Py_ssize_t n, Py_ssize_t p, floating *X, Py_ssize_t ld, bint row_major,
                                 const floating *mean, const floating *x, floating *work,
                                 Py_ssize_t *iwork) noexcept nogil
cdef int spca_column_statistics(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                                double *work, floating *mean, double *variance) noexcept nogil
cdef int spca_tpower_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, Py_ssize_t k, bint nonnegative,
                                Py_ssize_t max_iter, floating tol, int (*stop)(void *) noexcept nogil, void *ctx,
                                floating *x, floating *work, Py_ssize_t *iwork, floating *value,
                                Py_ssize_t *n_iter) noexcept nogil
cdef int spca_tpower_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                          const floating *mean, const floating *weight, Py_ssize_t k, bint nonnegative,
                          Py_ssize_t max_iter, floating tol, int (*stop)(void *) noexcept nogil, void *ctx,
                          floating *x, floating *work, Py_ssize_t *iwork, floating *value,
                          Py_ssize_t *n_iter) noexcept nogil
cdef int spca_refit_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, floating *x, floating *work,
                               Py_ssize_t *iwork, floating *value) noexcept nogil
cdef int spca_refit_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                         const floating *mean, const floating *weight, floating *x, floating *work,
                         Py_ssize_t *iwork, floating *value) noexcept nogil
cdef int spca_explained_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, Py_ssize_t r, const floating *V,
                                   floating *work, floating *variance) noexcept nogil
cdef int spca_explained_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                             const floating *mean, const floating *weight, Py_ssize_t r, const floating *V,
                             floating *work, floating *variance) noexcept nogil
