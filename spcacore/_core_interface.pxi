# ---- for other Cython packages: documented in _core.pxd, frozen by tests/c_functions.py ---------------------
# Each function checks its sizes and parameters, and calls the kernel of its name.

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

cdef int spca_pmd_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, double bound, bint nonnegative,
                             Py_ssize_t max_iter, floating tol, int (*stop)(void *) noexcept nogil, void *ctx,
                             floating *x, floating *work, Py_ssize_t *iwork, floating *value,
                             Py_ssize_t *n_iter) noexcept nogil:
    if p < 1 or ld < p or not bound >= 1 or max_iter < 0 or not tol >= 0:
        return SPCACORE_INVALID
    bound = min(bound, sqrt(<double> p))
    return kernel_pmd_covariance(p, A, ld, bound, nonnegative, max_iter, tol, stop, ctx, x, work, iwork, value, n_iter)

cdef int spca_pmd_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                       const floating *mean, const floating *weight, double bound, bint nonnegative,
                       Py_ssize_t max_iter, floating tol, int (*stop)(void *) noexcept nogil, void *ctx,
                       floating *x, floating *work, Py_ssize_t *iwork, floating *value,
                       Py_ssize_t *n_iter) noexcept nogil:
    if n < 1 or p < 1 or ld < (p if row_major else n) or not bound >= 1 or max_iter < 0 or not tol >= 0:
        return SPCACORE_INVALID
    bound = min(bound, sqrt(<double> p))
    return kernel_pmd_data(n, p, X, ld, row_major, mean, weight, bound, nonnegative, max_iter, tol, stop, ctx, x, work,
                           iwork, value, n_iter)

cdef int spca_orthogonal_parts(Py_ssize_t p, Py_ssize_t r, const floating *V, floating *work, floating *Q) noexcept nogil:
    if p < 1 or not 0 <= r <= p:
        return SPCACORE_INVALID
    return kernel_orthogonal_parts(p, r, V, <floating> (FLT_EPSILON if floating is float else DBL_EPSILON), work, Q)


# What solvers/matrix_search chooses for the search of a matrix, for functions that run without the GIL: the rounds of the race
# with more variables (0) and with few (1), and numbers of `_limits`.
cdef struct rounds_t:
    Py_ssize_t count
    Py_ssize_t steps[4]
    double keep[4]
    double width[4]

cdef rounds_t _rounds[2]
cdef int _deep, _round
for _deep in range(2):
    _race = (_limits.RACE, _limits.DEEP_RACE)[_deep]
    _rounds[_deep].count = len(_race)
    for _round in range(len(_race)):
        _rounds[_deep].steps[_round], _rounds[_deep].keep[_round], _rounds[_deep].width[_round] = _race[_round]
cdef Py_ssize_t _race_starts = _limits.RACE_STARTS, _race_all = _limits.RACE_ALL, _race_ends = _limits.RACE_ENDS
cdef Py_ssize_t _tried_ends = _limits.QUICKLY_SWAPPED_ENDS, _swapped_ends = _limits.SWAPPED_ENDS
cdef Py_ssize_t _brief_order = _limits.BRIEF_ORDER, _race_exact = _limits.RACE_EXACT
cdef Py_ssize_t _brief_nodes = _limits.BRIEF_NODES
cdef double _brief_work = _limits.BRIEF_WORK, _hopeless = _limits.BRIEF_HOPELESS, _swap_work = _limits.SWAP_WORK
cdef double _rise = _limits.RISE, _gap = _limits.SWAP_GAP
cdef double[2] _slack = _limits.EXACT_SLACK, _tie = _limits.TIE  # double and single

cdef spca_search_plan plan_of(Py_ssize_t p, Py_ssize_t k, bint thorough, bint single, Py_ssize_t max_iter,
                              double tol) noexcept nogil:
    """The plan of a thorough search of k among p variables, or without starts where it is not thorough."""
    cdef spca_search_plan way
    cdef Py_ssize_t a
    cdef rounds_t *rounds = &_rounds[p <= _race_all]
    memset(&way, 0, sizeof(way))
    way.max_iter, way.tol = max_iter, tol
    if not thorough:
        return way
    way.starts, way.rounds, way.ends = min(_race_starts, p), rounds.count, _race_ends
    for a in range(rounds.count):
        way.steps[a] = rounds.steps[a]
        way.width[a] = <Py_ssize_t> (rounds.width[a] * k)
        way.keep[a] = max(<Py_ssize_t> (rounds.keep[a] * way.starts if rounds.keep[a] < 1 else rounds.keep[a]), way.ends)
    if 20.0 * k * k * k * k <= _swap_work:
        way.tried, way.swapped = _tried_ends, _swapped_ends
        if p <= _brief_order:
            way.nodes = <Py_ssize_t> min(<double> _brief_nodes, _brief_work / (<double> p * k) ** 2)
    way.hopeless, way.exact = _hopeless * log2(way.nodes + 1.0), _race_exact
    way.rise, way.gap, way.slack, way.tie = _rise, _gap, _slack[single], _tie[single]
    return way

cdef int spca_components_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, Py_ssize_t r, Py_ssize_t k,
                                    int deflation, bint thorough, Py_ssize_t max_iter, floating tol,
                                    int (*stop)(void *) noexcept nogil, void *ctx, void *work, floating *V,
                                    floating *variance, Py_ssize_t *count) noexcept nogil:
    cdef spca_search_plan way
    if (p < 1 or ld < p or not 0 <= r <= p or not 1 <= k <= p or not SPCACORE_HOTELLING <= deflation <= SPCACORE_SCHUR
            or max_iter < 0 or not tol >= 0):
        return SPCACORE_INVALID
    way = plan_of(p, k, thorough, sizeof(floating) == 4, max_iter, tol)
    return kernel_components_covariance(p, A, ld, r, k, <spca_deflation> deflation, &way, stop, ctx, work, V, variance,
                                        count)

cdef int spca_components_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                              const floating *mean, const floating *weight, Py_ssize_t r, Py_ssize_t k, int deflation,
                              bint thorough, Py_ssize_t max_iter, floating tol, int (*stop)(void *) noexcept nogil,
                              void *ctx, void *work, floating *V, floating *variance, Py_ssize_t *count) noexcept nogil:
    cdef spca_search_plan way
    if (n < 1 or p < 1 or ld < (p if row_major else n) or not 0 <= r <= p or not 1 <= k <= p
            or not SPCACORE_HOTELLING <= deflation <= SPCACORE_SCHUR or max_iter < 0 or not tol >= 0):
        return SPCACORE_INVALID
    way = plan_of(p, k, thorough, sizeof(floating) == 4, max_iter, tol)
    return kernel_components_data(n, p, X, ld, row_major, mean, weight, r, k, <spca_deflation> deflation, &way, stop, ctx,
                                  work, V, variance, count)

cdef Py_ssize_t spca_components_work(Py_ssize_t n, Py_ssize_t p, Py_ssize_t r, Py_ssize_t k, bint thorough) noexcept nogil:
    cdef spca_search_plan way
    if n < 0 or p < 1 or not 0 <= r <= p or not 1 <= k <= p:
        return 0
    way = plan_of(p, k, thorough, False, 1, 0)
    return max(spca_dcomponents_work(n, p, k, r, &way), spca_scomponents_work(n, p, k, r, &way))


# ---- many matrices ---------------------------------------------------------------------------------

# A call of components_of_each: its matrices, options and results, without types for both precisions.
cdef struct batch_t:
    Py_ssize_t n, p, r, k, max_iter
    int deflation
    bint covariance, center, scale, thorough
    double tol
    size_t size
    const void *X
    void *V
    void *variance
    void *mean
    void *weight
    double *spread      # variances of columns, (p) a matrix
    Py_ssize_t *count
    int *status

cdef int one_of_batch(batch_t *b, Py_ssize_t i, const floating *X, void *work) noexcept nogil:
    """Find the components of matrix i; where it is data, its statistics come first, with the same scratch."""
    cdef Py_ssize_t j, n = b.n, p = b.p
    cdef floating *mean = <floating *> b.mean + i * p
    cdef floating *weight = <floating *> b.weight + i * p
    cdef floating *V = <floating *> b.V + i * p * b.r
    cdef floating *variance = <floating *> b.variance + i * b.r
    cdef double *spread = b.spread + i * p
    cdef int status
    if b.covariance:
        for j in range(p):
            spread[j] = X[i * p * p + j * (p + 1)]
        return spca_components_covariance(p, X + i * p * p, p, b.r, b.k, b.deflation, b.thorough, b.max_iter,
                                          <floating> b.tol, NULL, NULL, work, V, variance, b.count + i)
    status = spca_column_statistics(n, p, X + i * n * p, p, True, <double *> work, mean, spread)
    if status < 0:
        return status
    for j in range(p):
        if not b.center:  # about zero
            spread[j] += <double> mean[j] * mean[j] * n / max(n - 1, 1)
            mean[j] = 0
        if b.scale:
            weight[j] = <floating> (1 / sqrt(spread[j])) if spread[j] > 0 else 0
            spread[j] = 1 if spread[j] > 0 else 0
    return spca_components_data(n, p, X + i * n * p, p, True, mean if b.center else NULL, weight if b.scale else NULL, b.r,
                                b.k, b.deflation, b.thorough, b.max_iter, <floating> b.tol, NULL, NULL, work, V,
                                variance, b.count + i)

# Tasks of a loop over matrices, one for each precision: a part is a matrix, and allocates its scratch.
cdef void single_of_batch(void *context, spca_int i) noexcept nogil:
    cdef batch_t *b = <batch_t *> context
    cdef void *work = malloc(b.size)
    b.status[i] = SPCA_PRODUCT_FAILED if work == NULL else one_of_batch(b, i, <const float *> b.X, work)
    free(work)

cdef void double_of_batch(void *context, spca_int i) noexcept nogil:
    cdef batch_t *b = <batch_t *> context
    cdef void *work = malloc(b.size)
    b.status[i] = SPCA_PRODUCT_FAILED if work == NULL else one_of_batch(b, i, <const double *> b.X, work)
    free(work)


def components_of_each(const floating[:, :, ::1] X, bint covariance, bint center, bint scale, Py_ssize_t r,
                       Py_ssize_t k, int deflation, bint thorough, Py_ssize_t max_iter, double tol):
    """(loadings (m, r, p), variances (m, r), means, weights and variances of columns (m, p), counts and statuses (m))."""
    cdef Call call = Call()
    cdef int stopped
    cdef batch_t b
    cdef Py_ssize_t m = X.shape[0]
    dtype = np.float32 if floating is float else np.float64
    b.n, b.p, b.r, b.k, b.max_iter, b.tol = X.shape[1], X.shape[2], r, k, max_iter, tol
    b.covariance, b.center, b.scale, b.thorough, b.deflation = covariance, center, scale, thorough, deflation
    b.size = max(spca_components_work(0 if covariance else b.n, b.p, r, k, thorough), 3 * b.p * <Py_ssize_t> sizeof(double))
    cdef floating[:, :, ::1] V = np.empty((m, r, b.p), dtype)
    cdef floating[:, ::1] variance = np.empty((m, r), dtype), mean = np.zeros((m, b.p), dtype)
    cdef floating[:, ::1] weight = np.ones((m, b.p), dtype)
    cdef double[:, ::1] spread = np.empty((m, b.p))
    cdef Py_ssize_t[::1] count = np.zeros(m, np.intp)
    cdef int[::1] status = np.zeros(m, np.intc)
    b.X, b.V, b.variance, b.mean, b.weight = &X[0, 0, 0], &V[0, 0, 0], &variance[0, 0], &mean[0, 0], &weight[0, 0]
    b.spread, b.count, b.status = &spread[0, 0], &count[0], &status[0]
    with nogil:
        stopped = spca_pool_run(single_of_batch if floating is float else double_of_batch, &b, m, on_stop, &call.c)
    if stopped:
        call.check(SPCA_STOPPED)
    if (np.asarray(status) == SPCA_PRODUCT_FAILED).any():
        raise MemoryError
    return (np.asarray(V), np.asarray(variance), np.asarray(mean), np.asarray(weight), np.asarray(spread), np.asarray(count),
            np.asarray(status))
