# ---- for other Cython packages: documented in _core.pxd, frozen by tests/test_downstream.py ----------

cdef int spca_truncate(Py_ssize_t p, Py_ssize_t k, floating *x, floating *work) noexcept nogil:
    if p < 0 or not 0 <= k <= p:
        return SPCACORE_INVALID
    if not kernel_all_finite(p, x):
        return SPCACORE_NONFINITE
    kernel_truncate(p, k, x, work)
    return SPCACORE_OK

cdef int spca_soft_threshold(Py_ssize_t p, const floating *a, floating level, floating *out) noexcept nogil:
    if p < 0 or not level >= 0:
        return SPCACORE_INVALID
    if not kernel_all_finite(p, a):
        return SPCACORE_NONFINITE
    kernel_soft_threshold(p, a, level, NULL, out)
    return SPCACORE_OK

cdef int spca_l1_threshold(Py_ssize_t p, const floating *a, double bound, bint nonnegative, floating *work,
                           floating *w, double *level) noexcept nogil:
    if p < 1 or not bound >= 1:
        return SPCACORE_INVALID
    bound = min(bound, sqrt(<double> p))
    return kernel_l1_threshold(p, a, bound, 2 * nonnegative, NULL, work, w, level)

cdef Py_ssize_t spca_varimax_work(Py_ssize_t p, Py_ssize_t r) noexcept nogil:
    return max(spca_sorthomax_work(p, r), spca_dorthomax_work(p, r)) if p > 0 and r > 0 else 0

cdef int spca_varimax(Py_ssize_t p, Py_ssize_t r, double gamma, Py_ssize_t max_iter, double tol,
                      int (*stop)(void *) noexcept nogil, void *ctx, floating *Y, double *work, double *R,
                      Py_ssize_t *n_iter) noexcept nogil:
    if p < 1 or r < 1 or max_iter < 0 or not 0 <= gamma < INFINITY or not tol >= 0:
        return SPCACORE_INVALID
    n_iter[0] = 0
    if not kernel_all_finite(p * r, Y):
        return SPCACORE_NONFINITE
    return kernel_orthomax(p, r, gamma, max_iter, tol, NULL, stop, ctx, Y, work, R, n_iter)

cdef int spca_deflate_hotelling(Py_ssize_t p, floating *A, Py_ssize_t ld, const floating *x, floating *work,
                                Py_ssize_t *iwork) noexcept nogil:
    if p < 1 or ld < p:
        return SPCACORE_INVALID
    cdef Py_ssize_t nnz = kernel_gather(p, x, iwork, work)
    return kernel_deflate_hotelling(ld, nnz, iwork, work, A)

cdef int spca_deflate_projection(Py_ssize_t p, floating *A, Py_ssize_t ld, const floating *x, floating *work,
                                 Py_ssize_t *iwork) noexcept nogil:
    if p < 1 or ld < p:
        return SPCACORE_INVALID
    cdef Py_ssize_t nnz = kernel_gather(p, x, iwork, work)
    return kernel_deflate_projection(p, ld, nnz, iwork, work, A, work + p)

cdef int spca_deflate_schur(Py_ssize_t p, floating *A, Py_ssize_t ld, const floating *x, floating *work,
                            Py_ssize_t *iwork) noexcept nogil:
    if p < 1 or ld < p:
        return SPCACORE_INVALID
    cdef Py_ssize_t nnz = kernel_gather(p, x, iwork, work)
    return kernel_deflate_schur(p, ld, nnz, iwork, work, A, work + p)

cdef int spca_deflate_data_projection(Py_ssize_t n, Py_ssize_t p, floating *X, Py_ssize_t ld, bint row_major,
                                      const floating *x, floating *work, Py_ssize_t *iwork) noexcept nogil:
    if n < 1 or p < 1 or ld < (p if row_major else n):
        return SPCACORE_INVALID
    cdef Py_ssize_t nnz = kernel_gather(p, x, iwork, work)
    return kernel_deflate_data_projection(n, ld, row_major, nnz, iwork, work, X, work + p)

cdef int spca_deflate_data_schur(Py_ssize_t n, Py_ssize_t p, floating *X, Py_ssize_t ld, bint row_major,
                                 const floating *mean, const floating *x, floating *work,
                                 Py_ssize_t *iwork) noexcept nogil:
    if n < 1 or p < 1 or ld < (p if row_major else n):
        return SPCACORE_INVALID
    cdef Py_ssize_t nnz = kernel_gather(p, x, iwork, work)
    return kernel_deflate_data_schur(n, p, ld, row_major, mean, nnz, iwork, work, X, work + p)

cdef int spca_column_statistics(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                                double *work, floating *mean, double *variance) noexcept nogil:
    if n < 1 or p < 1 or ld < (p if row_major else n):
        return SPCACORE_INVALID
    return kernel_column_statistics(n, p, X, ld, row_major, work, mean, variance)

cdef int spca_tpower_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, Py_ssize_t k, bint nonnegative,
                                Py_ssize_t max_iter, floating tol, int (*stop)(void *) noexcept nogil, void *ctx,
                                floating *x, floating *work, Py_ssize_t *iwork, floating *value,
                                Py_ssize_t *n_iter) noexcept nogil:
    if p < 1 or ld < p or not 1 <= k <= p or max_iter < 0 or not tol >= 0:
        return SPCACORE_INVALID
    return kernel_tpower_covariance(p, A, ld, k, nonnegative, max_iter, tol, stop, ctx, x, work, iwork, value, n_iter)

cdef int spca_tpower_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                          const floating *mean, const floating *weight, Py_ssize_t k, bint nonnegative,
                          Py_ssize_t max_iter, floating tol, int (*stop)(void *) noexcept nogil, void *ctx,
                          floating *x, floating *work, Py_ssize_t *iwork, floating *value,
                          Py_ssize_t *n_iter) noexcept nogil:
    if (n < 1 or p < 1 or ld < (p if row_major else n) or not 1 <= k <= p or max_iter < 0
            or not tol >= 0):
        return SPCACORE_INVALID
    return kernel_tpower_data(n, p, X, ld, row_major, mean, weight, k, nonnegative, max_iter, tol, stop, ctx, x, work,
                              iwork, value, n_iter)

cdef int spca_refit_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, floating *x, floating *work,
                               Py_ssize_t *iwork, floating *value) noexcept nogil:
    if p < 1 or ld < p:
        return SPCACORE_INVALID
    return kernel_refit_covariance(p, A, ld, x, work, iwork, value)

cdef int spca_refit_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                         const floating *mean, const floating *weight, floating *x, floating *work,
                         Py_ssize_t *iwork, floating *value) noexcept nogil:
    if n < 1 or p < 1 or ld < (p if row_major else n):
        return SPCACORE_INVALID
    return kernel_refit_data(n, p, X, ld, row_major, mean, weight, x, work, iwork, value)

cdef int spca_explained_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, Py_ssize_t r, const floating *V,
                                   floating *work, floating *variance) noexcept nogil:
    if p < 1 or ld < p or not 0 <= r <= p:
        return SPCACORE_INVALID
    return kernel_explained_covariance(p, A, ld, r, V, work, variance)

cdef int spca_explained_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                             const floating *mean, const floating *weight, Py_ssize_t r, const floating *V,
                             floating *work, floating *variance) noexcept nogil:
    if n < 1 or p < 1 or ld < (p if row_major else n) or not 0 <= r <= p:
        return SPCACORE_INVALID
    return kernel_explained_data(n, p, X, ld, row_major, mean, weight, r, V, work, variance)
