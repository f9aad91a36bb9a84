# ---- statistics of the input -----------------------------------------------------------------------

def dense_statistics(const floating[:, :] X, bint center, int8_t[:, ::1] shadow=None):
    """(rows, norms).  Rows: mean, sum of squared deviations, lowest, highest entry of each column (spca_proto.h).

    A shadow, if given, is filled with the quantized columns; then steps and errors are two more rows, and norms are
    those of its columns.
    """
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t n = X.shape[0], p = X.shape[1]
    cdef bint row_major = X.strides[1] == sizeof(floating)
    cdef Py_ssize_t ld = X.strides[0 if row_major else 1] // <Py_ssize_t> sizeof(floating)
    cdef bint shadowed = shadow is not None
    out = np.empty((6 if shadowed else 4, p))
    cdef double[:, ::1] o = out
    cdef float[::1] size = np.empty(p if shadowed else 1, np.float32)
    cdef Py_ssize_t shadow_ld = shadow.shape[1] if shadowed else 0
    cdef int8_t *q = &shadow[0, 0] if shadowed else NULL
    cdef double *step = &o[4, 0] if shadowed else NULL
    cdef double *error = &o[5, 0] if shadowed else NULL
    with nogil:
        status = kernel_shared_statistics(n, p, &X[0, 0], ld, row_major, center, shadow_ld, spca_pool_run, on_stop,
                                          &call.c, &o[0, 0], &o[1, 0], &o[2, 0], &o[3, 0], q, step, error, &size[0])
    call.check(status)
    return out, np.asarray(size)


def compressed_statistics(Py_ssize_t n, Py_ssize_t p, bint row_major, const floating[::1] data,
                          const index_t[::1] indices, const index_t[::1] indptr):
    """Rows: mean, sum of squared deviations and spread of each column, of CSR or CSC arrays (spca_proto.h)."""
    cdef Call call = Call()
    cdef spca_status status
    out = np.empty((5, p))
    cdef double[:, ::1] o = out
    cdef const floating *x = &data[0] if data.shape[0] else NULL
    cdef const void *i = &indices[0] if indices.shape[0] else NULL
    cdef bint wide = sizeof(index_t) == 8
    with nogil:
        status = kernel_compressed_statistics(n, p, x, &indptr[0], i, wide, row_major, spca_pool_run, on_stop,
                                              &call.c, &o[0, 0], &o[1, 0], &o[2, 0], &o[3, 0], &o[4, 0])
    call.check(status)
    return out[:3]


def weighted_statistics(const floating[:, :] X, const double[::1] weight):
    """The rows of `dense_statistics`, where each row of X counts by its weight; some weight is not 0."""
    cdef Call call = Call()
    cdef spca_status status
    cdef bint row_major = X.strides[1] == sizeof(floating)
    cdef Py_ssize_t ld = X.strides[0 if row_major else 1] // <Py_ssize_t> sizeof(floating)
    out = np.empty((4, X.shape[1]))
    cdef double[:, ::1] o = out
    with nogil:
        status = kernel_weighted_statistics(X.shape[0], X.shape[1], &X[0, 0], ld, row_major, &weight[0], on_stop,
                                            &call.c, &o[0, 0], &o[1, 0], &o[2, 0], &o[3, 0])
    call.check(status)
    return out


def weighted_compressed(Py_ssize_t p, bint row_major, const floating[::1] data, const index_t[::1] indices,
                        const index_t[::1] indptr, const double[::1] weight):
    """The rows of `weighted_statistics`, of CSR or CSC arrays."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t n = weight.shape[0]
    out = np.empty((4, p))
    cdef double[:, ::1] o = out
    cdef double[::1] work = np.empty(8 * p)
    cdef const floating *x = &data[0] if data.shape[0] else NULL
    cdef const void *i = &indices[0] if indices.shape[0] else NULL
    cdef bint wide = sizeof(index_t) == 8
    with nogil:
        status = kernel_weighted_compressed(n, p, x, &indptr[0], i, wide, row_major, &weight[0], on_stop, &call.c,
                                            &o[0, 0], &o[1, 0], &o[2, 0], &o[3, 0], &work[0])
    call.check(status)
    return out


def statistics(X, weight=None):
    """Rows: mean, sum of squared deviations, lowest, highest entry of each column, of an array, or of CSR or CSC.

    Of CSR and CSC, lowest and highest only bound the magnitude, and tell whether a column is constant.
    """
    if not hasattr(X, "indptr"):
        return dense_statistics(X, True)[0] if weight is None else weighted_statistics(X, weight)
    row_major, arrays = X.format == "csr", (X.data, X.indices, X.indptr)
    if weight is not None:
        return weighted_compressed(X.shape[1], row_major, *arrays, weight)
    mean, square, spread = compressed_statistics(*X.shape, row_major, *arrays)
    return mean, square, np.where(spread == 0, mean, -spread), np.where(spread == 0, mean, spread)


def fill_missing(const floating[:, :] X, bint center, bint scale):
    """(mean, deviation, filled, bad): bad is the first column that is not finite, or p (spca_proto.h)."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t n = X.shape[0], p = X.shape[1], bad = 0
    cdef bint row_major = X.strides[1] == sizeof(floating)
    cdef Py_ssize_t ld = X.strides[0 if row_major else 1] // <Py_ssize_t> sizeof(floating)
    cdef double[::1] work = np.empty(16 * n), mean = np.zeros(p), deviation = np.ones(p)
    cdef floating[::1, :] filled = np.empty((n, p), np.float32 if floating is float else np.float64, order="F")
    with nogil:
        status = kernel_fill_missing(n, p, &X[0, 0], ld, row_major, center, scale, on_stop, &call.c, &work[0], &mean[0],
                                     &deviation[0], &filled[0, 0], &bad)
    if status != SPCA_NONFINITE:
        call.check(status)
    return np.asarray(mean), np.asarray(deviation), np.asarray(filled), bad


def symmetry(A):
    """(largest |a_ij|, largest |a_ij - a_ji|, largest excess over a semidefinite 2 x 2 minor) of a square matrix."""
    return compressed_symmetry(A.data, A.indices, A.indptr) if hasattr(A, "indptr") else dense_symmetry(A)


def line_order(Py_ssize_t length, Py_ssize_t stored, const index_t[::1] indptr, const index_t[::1] indices):
    """2 where the lines of compressed storage are sound and indices ascend, 1 where they do not, else 0 (spca_double.h)."""
    cdef const void *i = &indices[0] if indices.shape[0] else NULL
    cdef int order
    with nogil:
        order = spca_line_order(indptr.shape[0] - 1, length, stored, &indptr[0], i, sizeof(index_t) == 8)
    return order


def compressed_symmetry(const floating[::1] data, const index_t[::1] indices, const index_t[::1] indptr):
    """`symmetry` of compressed storage with ascending indices."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t p = indptr.shape[0] - 1
    cdef double largest = 0, asymmetry = 0, excess = 0
    cdef double[::1] root = np.empty(p)
    cdef Py_ssize_t[::1] following = np.empty(p, np.intp)
    cdef const floating *x = &data[0] if data.shape[0] else NULL
    cdef const void *i = &indices[0] if indices.shape[0] else NULL
    cdef bint wide = sizeof(index_t) == 8
    with nogil:
        status = kernel_compressed_symmetry(p, x, &indptr[0], i, wide, on_stop, &call.c, &following[0], &root[0],
                                            &largest, &asymmetry, &excess)
    call.check(status)
    return largest, asymmetry, excess


def dense_symmetry(const floating[:, :] A):
    """`symmetry` of an array in C or Fortran order."""
    cdef Call call = Call()
    cdef spca_status status
    cdef double largest = 0, asymmetry = 0, excess = 0
    cdef Py_ssize_t ld = max(A.strides[0], A.strides[1]) // <Py_ssize_t> sizeof(floating)
    with nogil:
        status = kernel_symmetry(A.shape[0], &A[0, 0], ld, on_stop, &call.c, &largest, &asymmetry, &excess)
    call.check(status)
    return largest, asymmetry, excess


def scores(const floating[:, :] X, Py_ssize_t[::1] index, const floating[::1] mean, const floating[:, ::1] V,
           floating[:, ::1] out):
    """out = (X[:, index] - mean) @ V; index None: all columns."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t n = X.shape[0], k = V.shape[0], r = V.shape[1]
    cdef bint row_major = X.strides[1] == sizeof(floating)
    cdef Py_ssize_t ld = X.strides[0 if row_major else 1] // <Py_ssize_t> sizeof(floating)
    if n == 0 or k == 0 or r == 0:
        out[:] = 0
        return
    cdef floating[::1] work = np.empty(k * (r + 15), np.float32 if floating is float else np.float64)
    with nogil:
        status = kernel_scores(n, k, r, &X[0, 0], ld, row_major, positions_of(index), &mean[0], &V[0, 0], spca_pool_run,
                               on_stop, &call.c, &work[0], &out[0, 0])
    call.check(status)


ctypedef fused word:
    uint8_t
    uint16_t
    uint32_t
    uint64_t


def fingerprint(const word[:, :] X, const uint64_t[::1] keys, uint64_t[::1] sums):
    """sums = the sums of the columns modulo 2^64, each word times the key of its row; rows or columns are contiguous."""
    cdef Py_ssize_t n = X.shape[0], p = X.shape[1]
    cdef bint row_major = X.strides[1] == sizeof(word)
    cdef Py_ssize_t ld = X.strides[0 if row_major else 1] // <Py_ssize_t> sizeof(word)
    if n == 0 or p == 0:
        sums[:] = 0
        return
    with nogil:
        spca_fingerprint(n, p, ld, row_major, sizeof(word), &X[0, 0], &keys[0], &sums[0])


ctypedef fused small:
    int8_t
    uint8_t
    int16_t
    uint16_t
    float
    double


def whole_moments(const small[:, :] X):
    """(lowest, highest, sums, X'X) of small whole numbers, as int64; None where some entry is no such number."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t n = X.shape[0], p = X.shape[1]
    cdef bint row_major = X.strides[1] == sizeof(small)
    cdef Py_ssize_t ld = X.strides[0 if row_major else 1] // <Py_ssize_t> sizeof(small)
    cdef int kind
    if small is int8_t:
        kind = SPCA_INT8
    elif small is uint8_t:
        kind = SPCA_UINT8
    elif small is int16_t:
        kind = SPCA_INT16
    elif small is uint16_t:
        kind = SPCA_UINT16
    elif small is float:
        kind = SPCA_SINGLES
    else:
        kind = SPCA_DOUBLES
    cdef int64_t[:, ::1] o = np.empty((3, p), np.int64)
    cdef int64_t[:, ::1] G = np.empty((p, p), np.int64)
    cdef uint8_t[::1] work = np.empty(spca_whole_work(p, spca_pool_run), np.uint8)
    with nogil:
        status = spca_whole_moments(n, p, ld, row_major, kind, &X[0, 0], spca_pool_run, on_stop, &call.c, work.shape[0],
                                    &work[0], &o[0, 0], &o[1, 0], &o[2, 0], &G[0, 0])
    call.check(status)
    return None if status > 0 else (*np.asarray(o), np.asarray(G))


def orthogonal_parts(const floating[:, ::1] V, double epsilon):
    """Rows: the part of each row of V orthogonal to those before, normalized; zero where rounding to epsilon may leave none."""
    cdef Py_ssize_t r = V.shape[0], p = V.shape[1]
    cdef Call call = Call()
    cdef spca_status status
    dtype = np.float32 if floating is float else np.float64
    cdef floating[:, ::1] Q = np.empty((r, p), dtype)
    cdef floating[::1] work = np.empty(r * p, dtype)
    if r == 0 or p == 0:
        return np.asarray(Q)
    with nogil:
        status = kernel_orthogonal_parts(p, r, &V[0, 0], epsilon, &work[0], &Q[0, 0])
    call.check(status)
    return np.asarray(Q)


# ---- selection and thresholds ----------------------------------------------------------------------

def select_largest(const floating[::1] x, Py_ssize_t k):
    """Positions of the k largest |x|, ascending, ties to the lower index.  Where NaN leave too few, others follow them."""
    if not 0 <= k <= x.shape[0]:
        raise ValueError(f"{k} nonzeros of {x.shape[0]} variables")
    cdef Py_ssize_t[::1] index = np.zeros(max(k, 1), np.intp)
    cdef floating[::1] work = np.empty(x.shape[0], np.float32 if floating is float else np.float64)
    with nogil:
        kernel_select_largest(x.shape[0], &x[0], k, &work[0], &index[0])
    return np.asarray(index)[:k]


def truncate(floating[::1] x, Py_ssize_t k):
    """x <- T_k(x), its k largest magnitudes."""
    cdef floating[::1] work = np.empty(x.shape[0], np.float32 if floating is float else np.float64)
    with nogil:
        kernel_truncate(x.shape[0], k, &x[0], &work[0])


def soft_threshold(const floating[::1] a, double level, floating[::1] out):
    """out = S(a, level), the soft threshold; out may be a."""
    with nogil:
        kernel_soft_threshold(a.shape[0], &a[0], level, spca_pool_run, &out[0])


def l1_threshold(const floating[::1] a, double bound, int nonnegative, floating[::1] w):
    """The level, or None if an entry is not finite; the maximizer goes to w, which may be a."""
    cdef floating[::1] work = w
    cdef double level
    cdef spca_status status
    if &w[0] == &a[0]:
        work = np.empty(a.shape[0], np.float32 if floating is float else np.float64)
    with nogil:
        status = kernel_l1_threshold(a.shape[0], &a[0], bound, nonnegative, spca_pool_run, &work[0], &w[0],
                                     &level)
    return level if status == SPCA_OK else None


def l1_ball_level(const floating[::1] a, double bound, double start=0):
    """The level where sum (|a| - level)_+ is the bound; 0 where the magnitudes sum to no more."""
    cdef double level
    with nogil:
        level = kernel_l1_ball_level(a.shape[0], &a[0], bound, start, spca_pool_run)
    return level


def l1_kept_level(const floating[::1] a, double bound):
    """The largest magnitude from which on the magnitudes sum to more than the bound, or 0."""
    cdef floating level
    cdef floating[::1] work = np.empty(a.shape[0], np.float32 if floating is float else np.float64)
    with nogil:
        level = kernel_l1_kept_level(a.shape[0], &a[0], bound, &work[0])
    return level


# ---- greedy search -----------------------------------------------------------------------------------

def bordered_eigenvalues(const floating[:, ::1] C, Py_ssize_t[::1] candidate, const double[::1] diagonal,
                         const double[::1] eigenvalues, const double[::1, :] W, const double[::1] norm=None,
                         const double[:, ::1] Q=None, const double[::1, :] R=None, double strength=0, double least=0):
    """The largest eigenvalue on the support and one candidate, for each candidate (spca_proto.h)."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t k = C.shape[0], p = C.shape[1], w = eigenvalues.shape[0], t = 0 if Q is None else Q.shape[0]
    cdef Py_ssize_t count = candidate.shape[0]
    cdef const double *norm_ = &norm[0] if norm is not None else NULL
    cdef const double *Q_ = &Q[0, 0] if t > 0 else NULL
    cdef const double *R_ = &R[0, 0] if t > 0 else NULL
    cdef double[::1] value = np.empty(count), work = np.empty(p + 64 * (k + t + 2 * w) + 3 * w)
    if count == 0:
        return np.asarray(value)
    with nogil:
        status = kernel_bordered_eigenvalues(p, k, w, t, count, &candidate[0], &C[0, 0], &diagonal[0], &eigenvalues[0], &W[0,
                                             0], norm_, Q_, R_, strength, least, on_stop, &call.c, &work[0], &value[0])
    call.check(status)
    return np.asarray(value)


def exchange(const floating[:, ::1] C, const Py_ssize_t[::1] leaving, const Py_ssize_t[::1] candidate,
             const double[::1] diagonal, const double[::1] eigenvalues, const double[::1, :] U, double level,
             double slack, double tie):
    """(place, variable, eigenvalue) of an exchange that raises the largest eigenvalue above the level, or None (spca_proto.h)."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t k = C.shape[0], p = C.shape[1], n_leaving = leaving.shape[0], count = candidate.shape[0]
    cdef Py_ssize_t first = 0, entering = 0
    cdef Py_ssize_t[::1] iwork = np.empty(count, np.intp), row = np.arange(k)
    cdef double[::1] work = np.empty(k * (k + 1) + 64 * (2 * k + 3))
    cdef double value = 0
    if n_leaving == 0 or count == 0:
        return None
    with nogil:
        status = kernel_exchange(p, k, n_leaving, &leaving[0], count, &candidate[0], &C[0, 0], &row[0],
                                 &diagonal[0], &eigenvalues[0], &U[0, 0], level, slack, tie, on_stop, &call.c, &work[0],
                                 &iwork[0], &first, &entering, &value)
    call.check(status)
    return (first, entering, value) if first < n_leaving else None


def largest_norms(const floating[:, ::1] A, const Py_ssize_t[::1] rows, Py_ssize_t k):
    """For each of these rows of a matrix, the norm of its k largest entries (spca_proto.h)."""
    cdef Py_ssize_t p = A.shape[1], count = rows.shape[0]
    dtype = np.float32 if floating is float else np.float64
    cdef floating[::1] work = np.empty(p, dtype), norm = np.empty(count, dtype)
    cdef Py_ssize_t[::1] iwork = np.empty(k, np.intp)
    if count > 0:
        with nogil:
            kernel_largest_norms(p, k, count, &rows[0], &A[0, 0], &work[0], &iwork[0], &norm[0])
    return np.asarray(norm)


def truncated_power_of_matrix(const floating[:, ::1] A, const Py_ssize_t[:, ::1] index, const floating[:, ::1] value,
                              Py_ssize_t k, Py_ssize_t max_iter, floating tol, progress=None):
    """Truncated power from each of s starts, whose nonzeros are rows: (index, value, objective, n_iter, status).

    index and value are (s, k), the others (s,).  The objective is -infinity where A maps a vector to zero or the hook
    ended the search before.  status: 0 converged, 1 not, -2 failed.
    """
    cdef Call call = Call(progress)
    cdef spca_status status = SPCA_OK
    cdef Py_ssize_t p = A.shape[0], s = index.shape[0], w = index.shape[1], nnz, i
    if not 1 <= k <= p:
        raise ValueError(f"{k} nonzeros of {p} variables")
    dtype = np.float32 if floating is float else np.float64
    cdef Py_ssize_t[::1] place = np.empty(max(k, w), np.intp), iwork = np.empty(2 * k, np.intp)
    cdef floating[::1] entry = np.empty(max(k, w), dtype), work = np.empty(3 * p + k * k + 2 * k, dtype)
    positions, values, objectives = np.zeros((s, k), np.intp), np.zeros((s, k), dtype), np.full(s, -np.inf, dtype)
    cdef Py_ssize_t[:, ::1] positions_out = positions
    cdef floating[:, ::1] values_out = values
    cdef floating[::1] objective = objectives
    cdef Py_ssize_t[::1] steps = np.zeros(s, np.intp)
    cdef int[::1] ends = np.zeros(s, np.intc)
    cdef floating found = 0
    with nogil:
        for i in range(s):
            if on_stop(&call.c):
                status = SPCA_STOPPED
                break
            memcpy(&place[0], &index[i, 0], w * sizeof(Py_ssize_t))
            memcpy(&entry[0], &value[i, 0], w * sizeof(floating))
            nnz = w
            status = kernel_truncated_power_of_matrix(p, k, &A[0, 0], max_iter, tol, NULL, NULL, &nnz, &place[0],
                                                      &entry[0], &work[0], &iwork[0], &found, &steps[i])
            ends[i] = status
            if status >= 0:
                objective[i] = found
                memcpy(&positions_out[i, 0], &place[0], k * sizeof(Py_ssize_t))
                memcpy(&values_out[i, 0], &entry[0], k * sizeof(floating))
            elif status != SPCA_ZERO_VECTOR:
                break
    if status != SPCA_ZERO_VECTOR and not call.again(status):
        call.check(status)
    return positions, values, objectives, np.asarray(steps), np.asarray(ends)


def swap(const floating[:, ::1] A, const Py_ssize_t[::1] support, const double[::1] diagonal, double rise, double gap,
         double slack, double tie, Py_ssize_t most):
    """(support, leading vector, eigenvalue, whether no swap is left) after at most `most` swaps (spca_proto.h)."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t p = A.shape[0], k = support.shape[0], made = 0
    cdef Py_ssize_t[::1] index = np.array(support), iwork = np.empty(2 * p + k, np.intp)
    cdef double[::1] vector = np.empty(k), work = np.empty(3 * k * k + 130 * k + 192)
    cdef char[::1] blas_work = np.empty(12 * k * sizeof(blas_int), np.int8)
    cdef double value = 0
    cdef int ended = 0
    with nogil:
        status = kernel_swap(p, k, &A[0, 0], &diagonal[0], rise, gap, slack, tie, most, on_stop, &call.c, &work[0],
                             <blas_int *> &blas_work[0], &iwork[0], &index[0], &vector[0], &value, &made, &ended)
    call.check(status)
    return np.asarray(index), np.asarray(vector), value, bool(ended)


def search(const floating[:, ::1] A, Py_ssize_t k, plan, floating[::1] score=None, bint known=False, progress=None):
    """(supports, values, runs, (starts, ends, iterations, nodes, proved)): the best ends, and counts (spca_proto.h).

    The plan has (starts, rounds, max_iter, tol, ends, tried, swapped, (rise, gap, slack, tie), exact, nodes, hopeless); each
    round has (steps, runs that go on, nonzeros of a run).
    """
    cdef Call call = Call(progress)
    cdef spca_status status
    cdef spca_search_plan way
    cdef spca_search_counts counts
    cdef Py_ssize_t p = A.shape[0], found = 0, r
    cdef size_t size
    if not 1 <= k <= p:
        raise ValueError(f"{k} nonzeros of {p} variables")
    way.starts, rounds, way.max_iter, way.tol, way.ends, way.tried, way.swapped, limits, way.exact, way.nodes, way.hopeless = plan
    way.rise, way.gap, way.slack, way.tie = limits
    way.run = spca_pool_run
    way.rounds = len(rounds)
    for r in range(way.rounds):
        way.steps[r], way.keep[r], way.width[r] = rounds[r]
    if score is None:
        score = np.empty(p, np.float32 if floating is float else np.float64)
    index, values, runs = np.empty((way.ends, k), np.intp), np.empty(way.ends), np.empty(way.ends, np.intp)
    cdef Py_ssize_t[:, ::1] index_out = index
    cdef double[::1] values_out = values, work
    cdef Py_ssize_t[::1] runs_out = runs
    if floating is float:
        size = spca_ssearch_work(p, k, known, &way)
    else:
        size = spca_dsearch_work(p, k, known, &way)
    work = np.empty((size + 7) // 8)
    with nogil:
        status = kernel_search(p, k, &A[0, 0], &score[0], known, &way, on_stop, &call.c, &work[0],
                               &index_out[0, 0], &values_out[0], &runs_out[0], &found, &counts)
    if not call.again(status):
        call.check(status)
    told = counts.starts, counts.ends, counts.n_iter, counts.nodes, bool(counts.proved)
    return index[:found], values[:found], runs[:found], told


def signed_vector(const double[:, ::1] G, const int8_t[::1] signs, const double[::1] begin=None):
    """(x, x'Gx): a unit vector of these signs (0: either) that maximizes x'Gx (spca_double.h)."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t k = G.shape[0]
    cdef double value = 0
    x = np.zeros(k)
    cdef double[::1] best = x, work = np.empty(4 * k * k + 32 * k)
    cdef Py_ssize_t[::1] iwork = np.empty(k, np.intp)
    cdef int8_t[::1] room = np.empty(12 * k * sizeof(blas_int), np.int8)
    cdef const double *start = &begin[0] if begin is not None else NULL
    with nogil:
        status = spca_signed_vector(k, &G[0, 0], &signs[0], start, on_stop, &call.c, &work[0], <blas_int *> &room[0],
                                    &iwork[0], &best[0], &value)
    call.check(status)
    return x, value


def small_eigen(const double[:, ::1] A):
    """(eigenvalues, vectors by rows) of a small symmetric matrix, descending (spca_double.h)."""
    cdef Call call = Call()
    cdef Py_ssize_t k = A.shape[0]
    cdef spca_status status
    values, vectors = np.empty(k), np.empty((k, k))
    cdef double[:, ::1] copy = np.array(A), U = vectors
    cdef double[::1] work = np.empty(k * k + 4 * k), eigenvalues = values
    with nogil:
        status = spca_small_eigen(k, &copy[0, 0], &work[0], &eigenvalues[0], &U[0, 0])
    call.check(status)
    return values, vectors


def deleted_eigenvalues(const double[::1] eigenvalues, const double[::1, :] W):
    """The largest eigenvalue on the support without each of its variables (spca_double.h)."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t k = W.shape[0], w = eigenvalues.shape[0]
    cdef double[::1] value = np.empty(k), work = np.empty(2 * w)
    with nogil:
        status = spca_deleted_eigenvalues(k, w, &eigenvalues[0], &W[0, 0], on_stop, &call.c, &work[0], &value[0])
    call.check(status)
    return np.asarray(value)


# ---- the semidefinite relaxation --------------------------------------------------------------------

def dspca(const double[:, ::1] A, bint constrained, double limit, double tol, Py_ssize_t max_iter, progress=None):
    """(status, M, objective, bound, n_iter) for symmetric A; spca_double.h says what limit is."""
    cdef Call call = Call(progress)
    cdef spca_status status
    cdef Py_ssize_t p = A.shape[0], i, j
    cdef double primal = 0, dual = 0
    cdef double[:, ::1] M = np.empty((p, p))
    cdef double[::1] work = np.empty(4 * p * p + 28 * p)
    cdef char[::1] iwork = np.empty(12 * p * sizeof(blas_int), np.int8)
    with nogil:
        status = spca_dspca(p, &A[0, 0], constrained, limit, tol, max_iter, on_stop, &call.c, &work[0],
                            <blas_int *> &iwork[0], &M[0, 0], &primal, &dual, &call.c.n_iter)
    if call.again(status):
        status = SPCA_NOT_CONVERGED
        for j in range(p):
            for i in range(j):
                M[i, j] = M[j, i]
    call.check(status)
    return <int> status, np.asarray(M), primal, dual, call.c.n_iter


def shaped(const double[:, ::1] A, const Py_ssize_t[::1] unit, const double[:, ::1] weight, const double[::1] diagonal,
           const int8_t[::1] signs, bint constrained, double penalty, Py_ssize_t max_iter, double tol, progress=None):
    """(status, M, objective, bound, n_iter, A - Y) for groups and signs of variables (spca_double.h)."""
    cdef Call call = Call(progress)
    cdef spca_status status
    cdef Py_ssize_t p = A.shape[0], units = weight.shape[0]
    cdef double primal = 0, dual = 0
    cdef double[:, ::1] M = np.empty((p, p)), lowest = np.empty((p, p))
    cdef double[::1] work = np.empty(5 * p * p + 28 * p + units * units)
    cdef char[::1] iwork = np.empty(12 * p * sizeof(blas_int), np.int8)
    cdef const int8_t *s = &signs[0] if signs is not None else NULL
    with nogil:
        status = spca_shaped(p, units, &A[0, 0], &unit[0], &weight[0, 0], &diagonal[0], s, constrained, penalty,
                             max_iter, tol, on_stop, &call.c, &work[0], <blas_int *> &iwork[0], &M[0, 0],
                             &lowest[0, 0], &primal, &dual, &call.c.n_iter)
    if call.again(status):
        status = SPCA_NOT_CONVERGED
    call.check(status)
    return <int> status, np.asarray(M), primal, dual, call.c.n_iter, np.asarray(lowest)


# ---- elastic net -----------------------------------------------------------------------------------

def elastic_net(const double[:, ::1] G, const double[::1] c, Py_ssize_t limit, double ridge, double floor,
                double least, const Py_ssize_t[::1] index, const double[::1] value):
    """(status, index, value, level), with a guess of the support and its signs (spca_double.h)."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t p = G.shape[0], guess = index.shape[0], count = 0
    cdef double level = 0
    cdef Py_ssize_t[::1] chosen = np.empty(limit, np.intp), iwork = np.empty(limit + p, np.intp)
    cdef double[::1] values = np.empty(limit), work = np.empty(limit * limit + 3 * limit + 2 * p)
    if guess > limit:
        guess = 0
    chosen[:guess] = index[:guess]
    values[:guess] = value[:guess]
    with nogil:
        status = spca_elastic_net(p, limit, &G[0, 0], &c[0], ridge, floor, least, guess, on_stop, &call.c,
                                  &chosen[0], &values[0], &work[0], &iwork[0], &count, &level)
    call.check(status)
    return <int> status, np.asarray(chosen)[:count], np.asarray(values)[:count], level


def unit_net(UnitRule rule, const double[:, ::1] K, const double[::1] c, const double[::1] start, double near=0):
    """(b, level, beyond) from start: the elastic net of the rule's level or, where the rule is a truncation, of its
    cardinality, sought from the level `near` on; beyond has at least one unit more (spca_double.h)."""
    cdef Call call = Call()
    cdef spca_status status
    cdef spca_supports *o = &rule.c.of
    cdef double level = near
    b, more = np.array(start), np.zeros(o.p)
    cdef double[::1] out = b, beyond = more, work = np.empty(spca_unit_net_work(o) + 2 * o.p)
    cdef Py_ssize_t[::1] iwork = np.empty(2 * o.p + o.units + 1, np.intp)
    with nogil:
        if rule.c.step == 0:  # a truncation
            status = spca_unit_net_path(o, &K[0, 0], &c[0], rule.c.count, on_stop, &call.c, &work[0], &iwork[0],
                                        &out[0], &beyond[0], &level)
        else:
            level = rule.c.level
            status = spca_unit_net(o, &K[0, 0], &c[0], level, on_stop, &call.c, &work[0], &iwork[0], &out[0])
    call.check(status)
    return b, level, more


# ---- pencils ---------------------------------------------------------------------------------------

def best_pairs(const double[:, ::1] A, const double[:, ::1] B, double least, Py_ssize_t most,
               const Py_ssize_t[::1] part=None):
    """Rows: the pairs of variables with the largest x'Ax/x'Bx, the best first (spca_double.h)."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t p = A.shape[0], count = 0
    cdef const Py_ssize_t *of = NULL if part is None else &part[0]
    cdef double[::1] work = np.empty(max(p * (p - 1) // 2, 1))
    cdef Py_ssize_t[::1] used = np.empty(p, np.intp)
    cdef Py_ssize_t[:, ::1] pair = np.empty((most + 1, 2), np.intp)
    with nogil:
        status = spca_best_pairs(p, &A[0, 0], &B[0, 0], least, of, most, on_stop, &call.c, &work[0], &used[0],
                                 &pair[0, 0], &count)
    call.check(status)
    return np.asarray(pair)[:count]


# ---- supports under a prior ------------------------------------------------------------------------

def prior_support(const Py_ssize_t[::1] indptr, const Py_ssize_t[::1] indices, const double[::1] data,
                  const double[::1] r, double a, Py_ssize_t k):
    """The support in the order of joining, given the arrays of a CSR matrix (spca_double.h)."""
    cdef Call call = Call()
    cdef spca_status status = SPCA_NOT_CONVERGED
    cdef Py_ssize_t p = r.shape[0], room = p + 16 * k, count = 0
    cdef const Py_ssize_t *i = &indices[0] if indices.shape[0] else NULL
    cdef const double *x = &data[0] if data.shape[0] else NULL
    cdef double[::1] work = np.empty(4 * p + p // 64 + 1), value
    cdef Py_ssize_t[::1] iwork = np.empty(3 * p + k + 1, np.intp), chosen = np.empty(k, np.intp), entries
    while status == SPCA_NOT_CONVERGED:
        value, entries = np.empty(room), np.empty(3 * room, np.intp)
        with nogil:
            status = spca_prior_support(p, &indptr[0], i, x, &r[0], a, k, room, on_stop, &call.c, &work[0], &value[0],
                                        &iwork[0], &entries[0], &chosen[0], &count)
        room *= 4
    call.check(status)
    return np.asarray(chosen)


# ---- branch and bound ------------------------------------------------------------------------------

def branch(const double[:, ::1] N, Py_ssize_t k, uint8_t[:, ::1] pool, Py_ssize_t[::1] which,
           Py_ssize_t[:, ::1] empty, double[::1] work, progress=None):
    """(n_children, excess) after some nodes of the pool are divided; children go to its empty rows (spca_double.h)."""
    cdef Call call = Call(progress, 0.01)  # which keeps a limit of time
    cdef spca_status status
    cdef Py_ssize_t p = N.shape[0], count = which.shape[0], room = empty.shape[1]
    cdef Py_ssize_t[::1] n_children = np.empty(count, np.intp), iwork = np.empty(p + k, np.intp)
    cdef double[:, ::1] excess = np.empty((count, room))
    with nogil:
        status = spca_branch(p, k, &N[0, 0], INFINITY, count, &which[0], room, &empty[0, 0], on_stop, &call.c, &pool[0, 0],
                             &work[0], &iwork[0], &n_children[0], &excess[0, 0])
    call.check(status)
    return np.asarray(n_children), np.asarray(excess)


def branch_work(Py_ssize_t p, Py_ssize_t k):
    """The length of the `work` of `branch`."""
    return spca_branch_work(p, k)


# ---- sparse clustering -------------------------------------------------------------------------------

def add_distances(const floating[:, ::1] T, const floating[::1] w, bint squared, double[::1] D):
    """D += the weighted distances between samples in the variables T (b x n), by pairs."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t b = T.shape[0], n = T.shape[1]
    with nogil:
        status = kernel_add_distances(n, b, &T[0, 0], &w[0], squared, spca_pool_run, on_stop, &call.c, &D[0])
    call.check(status)


def absolute_products(const floating[:, ::1] T, const floating[::1] u):
    """For each variable, the sum of u_ii' |t_i - t_i'| over pairs of samples."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t b = T.shape[0], n = T.shape[1]
    cdef Py_ssize_t lanes = (b + SPCA_LANES - 1) // SPCA_LANES * SPCA_LANES
    cdef floating[::1] work = np.empty(lanes * n, np.float32 if floating is float else np.float64)
    cdef double[::1] y = np.empty(b)
    with nogil:
        status = kernel_absolute_products(n, b, &T[0, 0], &u[0], spca_pool_run, on_stop, &call.c, &work[0],
                                          &y[0])
    call.check(status)
    return np.asarray(y)


# ---- several loadings together ---------------------------------------------------------------------

cdef class Population:
    """The population of a search for loadings, and its state (`joint` of spca_proto.h).

    It begins from loadings that are given, rounded to so many bits.  A rule says which supports are allowed.
    """
    cdef object A
    cdef UnitRule rule
    cdef int constraint
    cdef uint64_t random
    cdef double used
    cdef Py_ssize_t[3] state
    cdef Py_ssize_t[::1] size
    cdef Py_ssize_t[:, ::1] nnz
    cdef Py_ssize_t[:, :, ::1] index
    cdef double[:, :, ::1] value
    cdef const double[::1] diagonal
    cdef double[::1] subspace, most

    def __init__(self, A, const Py_ssize_t[::1] size, Py_ssize_t room, Py_ssize_t members, starts, int bits,
                 uint64_t seed, Py_ssize_t moved, int constraint, UnitRule rule=None):
        cdef Py_ssize_t p = A.shape[0], r = size.shape[0], m, t, i
        cdef double length, unit = 2.0**bits
        cdef const Py_ssize_t[::1] at
        cdef const double[::1] x
        self.A, self.rule, self.constraint, self.random, self.used = A, rule, constraint, seed, 0
        self.state[0], self.state[1], self.state[2] = moved, 0, 0
        self.size, self.diagonal = np.minimum(size, p), np.ascontiguousarray(A.diagonal(), np.float64)
        self.subspace, self.most = np.zeros(2 * r * (p + 1) + p), np.zeros(members)
        self.nnz, self.index = np.zeros((members, r), np.intp), np.zeros((members, r, room), np.intp)
        self.value = np.zeros((members, r, room))
        for m, loadings in enumerate(starts):
            for t, (index, value) in enumerate(loadings):
                at, x, length = index, np.ascontiguousarray(value, np.float64), np.linalg.norm(value)
                self.nnz[m, t] = at.shape[0]
                for i in range(at.shape[0]):
                    self.index[m, t, i], self.value[m, t, i] = at[i], rint(x[i] / length * unit) / unit
        self.go_on(0, 1, INFINITY, len(starts))

    @property
    def spent(self):
        """How many multiplications the search has made, about."""
        return self.used

    def go_on(self, Py_ssize_t moves, Py_ssize_t patience, double limit, Py_ssize_t given=0):
        """Make at most so many more moves; False once the search has ended."""
        if self.A.dtype == np.float32:
            _moved[float](self, self.A, given, moves, patience, limit)
        else:
            _moved[double](self, self.A, given, moves, patience, limit)
        return self.state[1] < patience and self.used < limit

    def best(self, Py_ssize_t count):
        """What the best members explain, and their loadings as positions and values of nonzeros."""
        out = []
        for m in range(min(count, self.state[2])):
            loadings = []
            for t in range(self.size.shape[0]):
                n = self.nnz[m, t]
                index, value = np.array(self.index[m, t, :n]), np.array(self.value[m, t, :n])
                loadings.append((index[value != 0], value[value != 0]))
            out.append((self.most[m], loadings))
        return out


cdef _moved(Population s, const floating[:, ::1] A, Py_ssize_t given, Py_ssize_t moves, Py_ssize_t patience,
            double limit):
    """Make the next moves, in place."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t p = A.shape[0], r = s.size.shape[0], room = s.index.shape[2], members = s.nnz.shape[0]
    cdef const spca_supports *of = NULL if s.rule is None else &s.rule.c.of
    cdef double[::1] work = np.empty(spca_djoint_work(p, r, room, s.constraint, of))
    cdef Py_ssize_t[::1] iwork = np.empty(spca_djoint_iwork(p, r, room), np.intp)
    cdef floating[::1] turned = np.empty(p * r, np.float32 if floating is float else np.float64)
    with nogil:
        status = kernel_joint(p, r, room, &A[0, 0], &s.diagonal[0], &s.size[0], s.constraint, of, members, given, moves,
                              patience, limit, on_stop, &call.c, &s.random, &s.state[0], &s.used, &s.subspace[0],
                              &s.nnz[0, 0], &s.index[0, 0, 0], &s.value[0, 0, 0], &s.most[0], &work[0], &iwork[0],
                              &turned[0])
    call.check(status)


# ---- products of matrices --------------------------------------------------------------------------

def matrix_product(const floating[:, ::1] A, const floating[:, ::1] B, floating factor, floating[:, :] out):
    """out = factor A B', or factor A A' where B is None; the rows of out are contiguous."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t m = A.shape[0], n = m if B is None else B.shape[0], depth = A.shape[1]
    cdef Py_ssize_t room = min(depth, SPCA_TURNED) * ((m if B is None else m + n) + SPCA_SPARE)
    cdef Py_ssize_t ld = out.strides[0] // sizeof(floating)
    cdef floating[::1] work
    cdef const floating *b
    if m == 0 or n == 0:
        return
    work = np.empty(room, np.float32 if floating is float else np.float64)
    b = &A[0, 0] if B is None else &B[0, 0]
    with nogil:
        status = kernel_matrix_product(0, m, n, depth, &A[0, 0], depth, b, depth, factor, 0, spca_pool_run, on_stop,
                                       &call.c, room, &work[0], &out[0, 0], ld)
    call.check(status)


def principal_submatrix(const floating[:, :] A, const Py_ssize_t[::1] index):
    """A[index, index] of a matrix with contiguous rows; the indices are not checked."""
    cdef Py_ssize_t k = index.shape[0], ld = A.strides[0] // <Py_ssize_t> sizeof(floating)
    cdef floating[:, ::1] G = np.empty((k, k), np.float32 if floating is float else np.float64)
    if k > 0:
        with nogil:
            kernel_principal_submatrix(k, &index[0], &A[0, 0], ld, &G[0, 0])
    return np.asarray(G)


# ---- rotations -------------------------------------------------------------------------------------

def orthomax(floating[::1, :] Y, double gamma, Py_ssize_t max_iter, double tol):
    """Y <- Y R in place, by an orthomax rotation: (status, R in double, n_iter)."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t p = Y.shape[0], r = Y.shape[1]
    cdef double[::1, :] R = np.empty((r, r), order="F")
    cdef double[::1] work = np.empty(spca_sorthomax_work(p, r) if sizeof(floating) == 4 else spca_dorthomax_work(p, r))
    with nogil:
        status = kernel_orthomax(p, r, gamma, max_iter, tol, spca_pool_run, on_stop, &call.c, &Y[0, 0], &work[0],
                                 &R[0, 0], &call.c.n_iter)
    call.check(status)
    return <int> status, np.asarray(R), call.c.n_iter


def l1_sweeps(floating[::1, :] Y, Py_ssize_t max_iter, double tol, double[::1, :] R):
    """Y <- Y T in place and R <- R T, where T makes the sum of magnitudes least: (status, n_iter)."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t p = Y.shape[0], r = Y.shape[1]
    cdef double[::1] work = np.empty(3 * p)
    cdef Py_ssize_t[::1] iwork = np.empty(r + r * r, np.intp)
    with nogil:
        status = kernel_l1_sweeps(p, r, max_iter, tol, on_stop, &call.c, &Y[0, 0], &work[0], &iwork[0], &R[0, 0],
                                  &call.c.n_iter)
    call.check(status)
    return <int> status, call.c.n_iter


# ---- deflation in place ----------------------------------------------------------------------------

def deflate_covariance(str method, floating[:, :] A, Py_ssize_t[::1] index, floating[::1] value):
    """Deflate a full symmetric A in place, by Hotelling's method, projection or a Schur complement.

    False, and A unchanged, if A x is not finite.
    """
    cdef Py_ssize_t p = A.shape[0], ld = max(A.strides[0], A.strides[1]) // <Py_ssize_t> sizeof(floating)
    cdef floating[::1] work = np.empty(2 * p, np.float32 if floating is float else np.float64)
    cdef int code = ["hotelling", "projection", "schur"].index(method)
    cdef Py_ssize_t nnz = index.shape[0]
    cdef spca_status status
    with nogil:
        if code == 0:
            status = kernel_deflate_hotelling(ld, nnz, &index[0], &value[0], &A[0, 0])
        elif code == 1:
            status = kernel_deflate_projection(p, ld, nnz, &index[0], &value[0], &A[0, 0], &work[0])
        else:
            status = kernel_deflate_schur(p, ld, nnz, &index[0], &value[0], &A[0, 0], &work[0])
    return status == SPCA_OK


def deflate_data(str method, floating[:, :] X, Py_ssize_t[::1] index, floating[::1] value, const floating[::1] mean):
    """Deflate data in C or Fortran order in place, by projection or a Schur complement.

    False, and X unchanged, if X x is not finite.
    """
    cdef Py_ssize_t n = X.shape[0], p = X.shape[1]
    cdef bint row_major = X.strides[1] == sizeof(floating)
    cdef Py_ssize_t ld = X.strides[0 if row_major else 1] // <Py_ssize_t> sizeof(floating)
    cdef floating[::1] work = np.empty(n + p, np.float32 if floating is float else np.float64)
    cdef const floating *mean_ = &mean[0] if mean is not None else NULL
    cdef bint projection = method == "projection"
    cdef Py_ssize_t nnz = index.shape[0]
    cdef spca_status status
    with nogil:
        if projection:
            status = kernel_deflate_data_projection(n, ld, row_major, nnz, &index[0], &value[0], &X[0, 0], &work[0])
        else:
            status = kernel_deflate_data_schur(n, p, ld, row_major, mean_, nnz, &index[0], &value[0], &X[0, 0], &work[0])
    return status == SPCA_OK
