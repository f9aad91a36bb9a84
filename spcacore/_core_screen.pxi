# ---- exact screening ------------------------------------------------------------------------------

SHADOW_BLOCK = <int> SPCA_QUANTIZED_BLOCK


def screen_bounds(Py_ssize_t n, bint single, double range, const double[:, ::1] statistics, const float[::1] size,
                  const double[::1] mean, const double[::1] weight, const double[::1] diagonal,
                  const double[::1] moment):
    """(step, norm, slack, widest, smallest, greatest) of dense data; step is None without size (spca_double.h)."""
    cdef Py_ssize_t p = diagonal.shape[0]
    cdef float[:, ::1] out = np.empty((3, p), np.float32)
    cdef double[::1] limits = np.empty(3)
    cdef const float *length = NULL if size is None else &size[0]
    cdef const double *m = NULL if mean is None else &mean[0]
    cdef const double *w = NULL if weight is None else &weight[0]
    with nogil:
        spca_screen_bounds(n, p, single, range, &statistics[0, 0], length, m, w, &diagonal[0], &moment[0], &out[0, 0],
                           &out[1, 0], &out[2, 0], &limits[0])
    step, norm, slack = np.asarray(out)
    return None if size is None else step, norm, slack, *np.asarray(limits).tolist()


cdef class Screen:
    """What exact screening knows of dense data (spca.h); it is made for one call, and threads must not share it.

    step, norm, slack and the three numbers after them come from `screen_bounds`.
    """
    cdef spca_screen s
    cdef spca_column_cache cache    # for data in C order
    cdef object refs
    cdef readonly Py_ssize_t shadow_bytes, ld

    def __cinit__(self, Py_ssize_t n, Py_ssize_t p, bint row_major, dtype, const int8_t[:, ::1] shadow,
                  const float[::1] step, const float[::1] norm, const float[::1] slack, double widest,
                  double smallest, double greatest, bint references):
        cdef Py_ssize_t ld = shadow.shape[1] if shadow is not None else 0
        cdef Py_ssize_t capacity = max(1, min(p, max(p // 192, 256))) if row_major else 0
        cdef double[:, ::1] rows = np.zeros((3 * SPCA_REFERENCES + 2, n))
        cdef Py_ssize_t kept_products = SPCA_REFERENCES + 1 if references else 0
        cdef float[:, ::1] columns = np.empty((kept_products + 3 + references, p), np.float32)
        cdef int[::1] last_list = np.zeros(p if references else 1, np.intc)
        cdef Py_ssize_t[::1] lists = np.empty(p + p // SPCA_GUESS_SHARE + 1, np.intp)
        cdef Py_ssize_t[:, ::1] places = np.full((4, max(capacity, 1)), -1, np.intp)
        cdef Py_ssize_t[::1] slot = np.full(p if row_major else 1, -1, np.intp)
        cdef int16_t[::1] rounded = np.zeros(max(ld, 1), np.int16)
        cdef char[::1] kept = np.empty(max(capacity * n * dtype.itemsize, 1), np.int8)
        self.refs = (shadow, step, norm, slack, rows, columns, lists, places, slot, rounded, kept, last_list)
        self.shadow_bytes, self.ld = p * ld, ld
        self.s.quantized = &shadow[0, 0] if shadow is not None else NULL
        self.s.ld, self.s.widest = ld, widest
        self.s.smallest, self.s.greatest = smallest, greatest
        self.s.step = &step[0] if step is not None else NULL
        self.s.norm, self.s.slack = &norm[0], &slack[0]
        self.s.known = self.s.used = self.s.newest = self.s.lists = 0
        self.s.direction = &rows[0, 0] if references else NULL
        self.s.basis = &rows[SPCA_REFERENCES, 0]
        self.s.unit, self.s.outside = &rows[2 * SPCA_REFERENCES, 0], &rows[2 * SPCA_REFERENCES + 1, 0]
        self.s.bound, self.s.estimate, self.s.lower = &columns[0, 0], &columns[1, 0], &columns[2, 0]
        if references:
            self.s.residual, self.s.product = &columns[3, 0], &columns[4, 0]
            self.s.last_product, self.s.last_list = &columns[4 + SPCA_REFERENCES, 0], &last_list[0]
            self.s.list_of = &rows[2 * SPCA_REFERENCES + 2, 0]
        self.s.list, self.s.guess = &lists[0], &lists[p]
        self.s.rounded = &rounded[0]
        self.cache.capacity, self.cache.cursor, self.cache.batch = capacity, -1, 0
        self.cache.owner, self.cache.stamp = &places[0, 0], &places[1, 0]
        self.cache.slot_list, self.cache.missing = &places[2, 0], &places[3, 0]
        self.cache.slot, self.cache.kept = &slot[0], &kept[0]
        self.s.queries = self.s.quantized_columns = self.s.columns = 0

    @property
    def counts(self):
        """(queries, columns of the quantized copy that were read for them, columns of X that were read)."""
        return self.s.queries, self.s.quantized_columns, self.s.columns
