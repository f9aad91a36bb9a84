# ---- the operator ----------------------------------------------------------------------------------

cdef inline const spca_int *positions_of(Py_ssize_t[::1] index) noexcept nogil:
    """NULL for None, which stands for all positions."""
    return &index[0] if index is not None else NULL

cdef inline const void *first(const floating[::1] x) noexcept nogil:
    """NULL for None, and where x is empty."""
    return &x[0] if x is not None and x.shape[0] else NULL


cdef class UnitRule:
    """Which supports of units and signs (0: either) are allowed, and a step: 0 truncation, 1 l0, 2 l1, 3 l1 bound (units.c)."""
    cdef spca_rule c
    cdef object refs

    def __init__(self, const Py_ssize_t[::1] unit, const Py_ssize_t[::1] size, const uint8_t[::1] allowed,
                 const uint8_t[::1] included, const int8_t[::1] signs=None, int step=0, Py_ssize_t count=0,
                 double level=0, const double[::1, :] Q=None):
        cdef Py_ssize_t u
        self.refs = unit, size, allowed, included, signs, Q
        self.c.of.p, self.c.of.units = unit.shape[0], allowed.shape[0]
        self.c.of.unit, self.c.of.size = &unit[0], &size[0]
        self.c.of.allowed, self.c.of.included = &allowed[0], &included[0]
        self.c.of.signs = &signs[0] if signs is not None else NULL
        self.c.of.sized = 0
        for u in range(size.shape[0]):
            self.c.of.sized |= size[u] != 1
        self.c.step, self.c.count, self.c.level = step, count, level
        self.c.t = Q.shape[1] if Q is not None else 0
        self.c.Q = &Q[0, 0] if self.c.t else NULL

    def largest(self, const double[::1] norm):
        """A mask of the units that are included or, up to the cardinality, have the largest norms."""
        kept = np.zeros(self.c.of.units, np.uint8)
        cdef uint8_t[::1] out = kept
        cdef double[::1] work = np.empty(spca_unit_work(&self.c.of, self.c.count))
        cdef Py_ssize_t[::1] iwork = np.empty(self.c.of.units, np.intp)
        with nogil:
            spca_largest_units(&self.c.of, &norm[0], self.c.count, &work[0], &iwork[0], &out[0])
        return kept.view(bool)

    def step(self, const double[::1] y, double quadratic):
        """The next vector from y = A x, of any norm, and a mask of its units; quadratic = x'Ax."""
        x, kept = np.array(y), np.zeros(self.c.of.units, np.uint8)
        cdef uint8_t[::1] units = kept
        cdef double[::1] out = x, work = np.empty(spca_step_work(&self.c))
        cdef Py_ssize_t[::1] iwork = np.empty(self.c.of.units, np.intp)
        with nogil:
            spca_unit_step(&self.c, quadratic, &out[0], &work[0], &iwork[0], &units[0])
        return x, kept.view(bool)


cdef unit_ascent(Operator A, UnitRule rule, const double[::1] start, Py_ssize_t max_iter, double tol, progress,
                 floating[::1] precision):
    """`unit_ascend` in one precision; `precision` is None, and only says which."""
    cdef Call call = Call(progress)
    cdef spca_status status
    cdef double objective = 0, quadratic = 0
    x, units = np.zeros(A.p), np.zeros(rule.c.of.units, np.uint8)
    cdef double[::1] best = x, dwork = np.empty(2 * A.p + spca_step_work(&rule.c))
    cdef uint8_t[::1] support = units, kept = np.zeros(rule.c.of.units, np.uint8)
    cdef floating[::1] work = np.empty(A.work(), A.dtype)
    cdef Py_ssize_t[::1] iwork = np.empty(A.p, np.intp)
    while True:
        with nogil:
            status = kernel_unit_ascent(A.pointer(), &rule.c, max_iter, tol, on_stop, &call.c, &start[0], &work[0],
                                        &dwork[0], &iwork[0], &kept[0], &best[0], &support[0], &objective, &quadratic,
                                        &call.c.n_iter)
        if not call.again(status):
            break
        if objective > -np.inf:
            status = SPCA_NOT_CONVERGED
            break
        max_iter = 0
    call.check(status)
    return <int> status, x, units.view(bool), objective, quadratic, call.c.n_iter


cdef class Operator:
    """The symmetric p x p operator that solvers see (spca_proto.h); immutable, shared by threads.

    Made by `dense`, `compressed` or `products`; `deflated` returns a new one.
    """
    cdef spca_soperator s
    cdef spca_doperator d
    cdef void *steps        # t directions, t images, t coefficients, in the precision in use
    cdef object refs, plain
    cdef readonly bint single
    cdef readonly Py_ssize_t n, p, m, t
    cdef readonly bint symmetric_form
    cdef readonly object dtype

    def __dealloc__(self):
        free(self.steps)

    cdef Py_ssize_t work(self):
        """The length of work that `largest`, `above` and most solvers need."""
        return 2 * self.p + self.m + self.t

    cdef void set_shape(self, Py_ssize_t n, Py_ssize_t p, bint symmetric_form, double range_,
                        double factor, bint single):
        """What does not depend on the storage."""
        self.n, self.p, self.m, self.symmetric_form, self.single = n, p, p if symmetric_form else n, symmetric_form, single
        self.dtype = np.dtype(np.float32 if single else np.float64)
        if single:
            self.s.n, self.s.p, self.s.m, self.s.symmetric_form = n, p, self.m, symmetric_form
            self.s.range, self.s.factor = <float> range_, <float> factor
        else:
            self.d.n, self.d.p, self.d.m, self.d.symmetric_form = n, p, self.m, symmetric_form
            self.d.range, self.d.factor = range_, factor

    def screened(self, Screen screen):
        """This operator, with `largest` and `above` answered by exact screening; for data without row weights."""
        if self.s.row_weight != NULL or self.d.row_weight != NULL:
            raise TypeError("screening needs data without row weights")
        cdef Operator B = self.copy()
        B.refs, B.plain = (self.refs, screen), self
        B.s.screen = B.d.screen = &screen.s
        B.s.cache = B.d.cache = &screen.cache if screen.cache.capacity else NULL
        return B

    def with_quotient(self):
        """A + rho(v) QQ', rho = v'Av/v'(I - QQ')v, where A is deflated by projection with orthonormal directions Q."""
        cdef Operator B = self.copy()
        B.s.quotient = B.d.quotient = 1
        return B

    def with_penalty(self, double weight):
        """A - weight QQ' + weight I, where A is deflated by projection with orthonormal directions Q."""
        cdef Operator B = self.copy()
        B.s.span_weight, B.d.span_weight, B.s.shift, B.d.shift = <float> -weight, -weight, <float> weight, weight
        return B

    def row_weighted(self, const floating[::1] weight, bint centered=False):
        """Data with F = diag(weight) (X - 1 mean') diag(column weights); not centered: (diag(weight) X - 1 mean') ..."""
        if self.symmetric_form or not self.in_memory:
            raise TypeError("row weights need data in memory")
        cdef Operator B = self.copy()
        B.refs = (self, weight)
        B.s.screen = B.d.screen = NULL
        B.s.cache = B.d.cache = NULL
        if floating is float:
            B.s.row_weight, B.s.centered = &weight[0], centered
        else:
            B.d.row_weight, B.d.centered = &weight[0], centered
        return B

    def unit_ascend(self, UnitRule rule, const double[::1] start, Py_ssize_t max_iter, double tol, progress=None):
        """Steps of a rule from a dense start: (status, x, mask of its units, objective, x'Ax, n_iter)."""
        if self.single:
            return unit_ascent[float](self, rule, start, max_iter, tol, progress, None)
        return unit_ascent[double](self, rule, start, max_iter, tol, progress, None)

    @property
    def in_memory(self):
        """Whether it reads arrays, rather than asking an owner for products."""
        return self.s.owner == NULL

    @property
    def by_passes(self):
        """Whether each product is a pass over blocks of rows, so that one more in the pass costs little: no."""
        return False

    @property
    def factored(self):
        """Whether A is factor F'F and no more: of data, without a quotient, a penalty and Hotelling's deflation."""
        return not (self.symmetric_form or self.d.quotient or self.d.span_weight or
                    (self.t and self.d.deflation == SPCA_HOTELLING))

    @property
    def factor(self):
        """The factor in A = factor F'F, of data."""
        return self.s.factor if self.single else self.d.factor

    cdef const void *pointer(self) noexcept nogil:
        """The operator of the precision in use, for the kernels of a fused type."""
        return <const void *> &self.s if self.single else <const void *> &self.d

    cdef void set_arrays(self, const void *data, bint row_major, const void *mean, const void *weight):
        """Set the arrays of both operators; only the one of the precision in use reads them."""
        self.s.data, self.s.mean, self.s.weight = <const float *> data, <const float *> mean, <const float *> weight
        self.d.data, self.d.mean, self.d.weight = <const double *> data, <const double *> mean, <const double *> weight
        self.s.row_major = self.d.row_major = row_major

    cdef Operator copy(self):
        """A copy that shares the directions, which this operator owns."""
        cdef Operator B = Operator()
        B.n, B.p, B.m, B.symmetric_form, B.single, B.dtype = self.n, self.p, self.m, self.symmetric_form, self.single, self.dtype
        B.s, B.d, B.t, B.refs = self.s, self.d, self.t, self
        return B

    @property
    def dense(self):
        """Whether the entries are in one array."""
        return self.s.data != NULL and self.s.indptr == NULL

    def unscreened(self):
        """The operator that `screened` was called on, or this one."""
        return self if self.plain is None else self.plain

    def forward(self, Py_ssize_t[::1] index, floating[::1] value):
        """F v, length m, with deflations but for Hotelling's; index None for a dense v."""
        cdef Call call = Call()
        cdef spca_status status
        cdef floating[::1] f = np.empty(self.m, self.dtype), scratch = np.empty(self.p, self.dtype)
        with nogil:
            status = kernel_forward(self.pointer(), value.shape[0], positions_of(index), &value[0], on_stop, &call.c,
                                    &scratch[0], &f[0])
        call.check(status)
        return np.asarray(f)

    def apply(self, Py_ssize_t[::1] index, floating[::1] value):
        """A v, length p; index None for a dense v."""
        cdef Call call = Call()
        cdef spca_status status
        cdef floating[::1] y = np.empty(self.p, self.dtype), work = np.empty(self.m + self.t, self.dtype)
        with nogil:
            status = kernel_apply(self.pointer(), value.shape[0], positions_of(index), &value[0], on_stop, &call.c,
                                  &work[0], &y[0])
        call.check(status)
        return np.asarray(y)

    def apply_at(self, Py_ssize_t[::1] index, floating[::1] value, Py_ssize_t[::1] columns, floating[::1] image=None):
        """The entries of A v at some variables, for data in CSC (`reads_columns`); image: `forward` of v, if it is known."""
        if not self.reads_columns:
            raise TypeError("this needs data in CSC")
        cdef Call call = Call()
        cdef spca_status status
        cdef floating[::1] y = np.empty(columns.shape[0], self.dtype)
        cdef floating[::1] work = np.empty(self.m + self.t + self.p, self.dtype)
        cdef floating *f = NULL
        if columns.shape[0] == 0:
            return np.asarray(y)
        if image is not None:
            if image.shape[0] != self.m:
                raise ValueError(f"the image has {image.shape[0]} rows, not {self.m}")
            f = &image[0]
        with nogil:
            status = kernel_apply_at(self.pointer(), value.shape[0], positions_of(index), &value[0], f, columns.shape[0],
                                     &columns[0], on_stop, &call.c, &work[0], &y[0])
        call.check(status)
        return np.asarray(y)

    @property
    def reads_columns(self):
        """Whether reading a few columns of X takes no longer than these columns: for data in CSC."""
        return self.s.indptr != NULL and not self.symmetric_form and not self.s.row_major

    def apply_block(self, V):
        """A V (p, b) for V (p, b), in Fortran order; each column has the bits of `apply`."""
        return self.block(V, 0)

    def forward_block(self, V):
        """F V (m, b) for V (p, b), of data."""
        return self.block(V, 1)

    def backward_block(self, U):
        """F'U factor (p, b) for U (m, b), of data."""
        return self.block(U, 2)

    cdef block(self, V, int what):
        """A V (what = 0), F V (1) or F'V factor (2)."""
        cdef Call call = Call()
        cdef spca_status status
        cdef Py_ssize_t b
        V = np.asfortranarray(V, self.dtype)
        b = V.shape[1]
        if V.shape[0] != (self.m if what == 2 else self.p):
            raise ValueError(f"V has {V.shape[0]} rows for {self.p} variables")
        Y = np.empty((self.m if what == 1 else self.p, b), self.dtype, order="F")
        if b == 0:
            return Y
        if self.single:
            status = block_product[float](self, call, what, V, np.empty(spca_sblock_work(&self.s, b), self.dtype), Y)
        else:
            status = block_product[double](self, call, what, V, np.empty(spca_dblock_work(&self.d, b), self.dtype), Y)
        call.check(status)
        return Y

    def backward(self, floating[::1] u):
        """F'u factor, length p, of data with deflations."""
        cdef Call call = Call()
        cdef spca_status status
        cdef floating[::1] y = np.empty(self.p, self.dtype), work = np.empty(self.m + self.t, self.dtype)
        with nogil:
            status = kernel_backward(self.pointer(), &u[0], on_stop, &call.c, &work[0], &y[0])
        call.check(status)
        return np.asarray(y)

    def largest(self, Py_ssize_t[::1] index, floating[::1] value, Py_ssize_t k, bint nonnegative=False):
        """(positions, values) of the k largest |A v|, or of the k largest entries of its positive part, and v'A v."""
        cdef Call call = Call()
        cdef spca_status status
        cdef floating[::1] entries = np.empty(k, self.dtype), work = np.empty(self.work(), self.dtype)
        cdef Py_ssize_t[::1] positions = np.empty(k, np.intp)
        cdef floating quadratic = 0
        with nogil:
            status = kernel_largest(self.pointer(), value.shape[0], positions_of(index), &value[0], k, nonnegative,
                                    on_stop, &call.c, &work[0], &positions[0], &entries[0], &quadratic)
        call.check(status)
        return np.asarray(positions), np.asarray(entries), quadratic

    def above(self, Py_ssize_t[::1] index, floating[::1] value, floating tau, bint relative=False):
        """(positions, values) of the entries with |A v| > tau or, relative, > tau sqrt(v'A v)."""
        cdef Call call = Call()
        cdef spca_status status
        cdef floating[::1] entries = np.empty(self.p, self.dtype), work = np.empty(self.work(), self.dtype)
        cdef Py_ssize_t[::1] positions = np.empty(self.p, np.intp)
        cdef Py_ssize_t count = 0
        cdef floating quadratic
        with nogil:
            status = kernel_above(self.pointer(), value.shape[0], positions_of(index), &value[0], tau, relative,
                                  on_stop, &call.c, &work[0], &count, &positions[0], &entries[0], &quadratic)
        call.check(status)
        return np.asarray(positions)[:count].copy(), np.asarray(entries)[:count].copy()

    def submatrix(self, Py_ssize_t[::1] index):
        """A[index, index]."""
        cdef Call call = Call()
        cdef spca_status status
        cdef Py_ssize_t k = index.shape[0]
        G = np.empty((k, k), self.dtype)
        cdef Py_ssize_t room = max(self.p, min(self.m, SPCA_TURNED) * (k + SPCA_SPARE))
        work = np.empty(self.work() if self.symmetric_form else self.m * k + room, self.dtype)
        if self.single:
            status = submatrix_into[float](self, call, index, room, work, G)
        else:
            status = submatrix_into[double](self, call, index, room, work, G)
        call.check(status)
        return G

    def columns(self, Py_ssize_t[::1] index, out=None):
        """F[:, index]': columns of the deflated data as rows, in `out` if that is given."""
        cdef Call call = Call()
        cdef spca_status status
        C = np.empty((index.shape[0], self.m), self.dtype) if out is None else out
        if C.shape != (index.shape[0], self.m):
            raise ValueError(f"out has the shape {C.shape}, not {(index.shape[0], self.m)}")
        if self.single:
            status = columns_into[float](self, call, index, np.empty(self.p, self.dtype), C)
        else:
            status = columns_into[double](self, call, index, np.empty(self.p, self.dtype), C)
        call.check(status)
        return C

    def gram(self, Py_ssize_t[::1] index=None, progress=None, rows=None):
        """A[index[:rows], index], or all of A without an index, in double precision, for data that are not deflated.

        None where the progress hook ends the pass.
        """
        if self.symmetric_form or self.t or not self.in_memory:
            raise TypeError("this needs data in memory, without deflation")
        cdef Call call = Call(progress)
        cdef spca_status status
        cdef Py_ssize_t k = self.p if index is None else index.shape[0]
        cdef Py_ssize_t m = k if rows is None else rows
        if k > SPCA_GRAM_MOST and not self.dense:
            return self.gram_by_blocks(np.arange(k) if index is None else np.asarray(index), m, progress)
        G = np.empty((m, k))
        if G.size == 0:
            return G
        cdef double[:, ::1] out = G
        cdef double[::1] work
        if self.single:
            work = np.empty(self.s.gram_work(&self.s, k) // 8 + 1)
            with nogil:
                status = self.s.gram(&self.s, m, k, positions_of(index), on_stop, &call.c, &work[0], &out[0, 0])
        else:
            work = np.empty(self.d.gram_work(&self.d, k) // 8 + 1)
            with nogil:
                status = self.d.gram(&self.d, m, k, positions_of(index), on_stop, &call.c, &work[0], &out[0, 0])
        if call.again(status):
            return None
        call.check(status)
        return G

    cdef gram_by_blocks(self, index, Py_ssize_t m, progress):
        """`gram` for more variables than its kernel takes: of half as many rows and columns at a time."""
        cdef Py_ssize_t size = SPCA_GRAM_MOST // 2, r, c, some
        G = np.empty((m, len(index)))
        for r in range(0, m, size):
            rows = index[r : min(m, r + size)]
            for c in range(0, len(index), size):
                columns, some = index[c : c + size], 0 if c == r else len(rows)
                block = self.gram(np.append(rows[:some], columns), progress, len(rows))
                if block is None:
                    return None
                G[r : r + size, c : c + size] = block[:, some:]
        return G

    def rough_gram(self, Py_ssize_t[::1] index):
        """A[index, index] in single precision, for compressed data that are not deflated (spca_proto.h)."""
        if self.symmetric_form or self.t or not self.in_memory or self.dense:
            raise TypeError("this needs compressed data, without deflation")
        cdef Py_ssize_t k = index.shape[0]
        G = np.empty((k, k), np.float32)
        cdef float[:, ::1] out = G
        cdef double[::1] work
        if self.single:
            work = np.empty(spca_srough_gram_work(&self.s, k) // 8 + 1)
            with nogil:
                spca_srough_gram(&self.s, k, &index[0], &work[0], &out[0, 0])
        else:
            work = np.empty(spca_drough_gram_work(&self.d, k) // 8 + 1)
            with nogil:
                spca_drough_gram(&self.d, k, &index[0], &work[0], &out[0, 0])
        return G

    def moments(self):
        """(the rows of `dense_statistics`, (X - 1 mean')' (X - 1 mean')), in one read of dense X."""
        cdef Call call = Call()
        cdef spca_status status
        sums, G = np.empty((4, self.p)), np.empty((self.p, self.p))
        cdef double[:, ::1] o = sums, out = G
        cdef double[::1] work
        if self.single:
            work = np.empty(spca_sdense_gram_work(&self.s, self.p) // 8)
            with nogil:
                status = spca_sdense_moments(&self.s, on_stop, &call.c, &work[0], &o[0, 0], &o[1, 0], &o[2, 0],
                                             &o[3, 0], &out[0, 0])
        else:
            work = np.empty(spca_ddense_gram_work(&self.d, self.p) // 8)
            with nogil:
                status = spca_ddense_moments(&self.d, on_stop, &call.c, &work[0], &o[0, 0], &o[1, 0], &o[2, 0],
                                             &o[3, 0], &out[0, 0])
        call.check(status)
        return sums, G

    def outer(self):
        """FF' factor (m, m) of data, without Hotelling's deflation."""
        cdef Call call = Call()
        cdef spca_status status
        K = np.empty((self.m, self.m), self.dtype)
        work = np.empty(self.m * SPCA_OUTER_BLOCK + self.p, self.dtype)
        cdef Py_ssize_t[::1] iwork = np.empty(SPCA_OUTER_BLOCK, np.intp)
        if self.single:
            status = outer_into[float](self, call, work, iwork, K)
        else:
            status = outer_into[double](self, call, work, iwork, K)
        call.check(status)
        return K

    def deflated(self, str method, Py_ssize_t[::1] index, floating[::1] value, floating[::1] image,
                 floating coefficient):
        """This operator with one more direction removed; spca_proto.h says what image and coefficient are."""
        cdef Operator B = self.copy()
        cdef Py_ssize_t t = self.t, size = sizeof(spca_dvector) + sizeof(void *) + sizeof(double)
        cdef char *images
        cdef char *coefficients
        B.t, B.refs = t + 1, (self.refs, index, value, image)
        B.steps = malloc((t + 1) * size)
        if B.steps == NULL:
            raise MemoryError
        images = <char *> B.steps + (t + 1) * sizeof(spca_dvector)
        coefficients = images + (t + 1) * sizeof(void *)
        if t > 0:
            memcpy(B.steps, self.d.direction, t * sizeof(spca_dvector))
            memcpy(images, self.d.image, t * sizeof(void *))
            memcpy(coefficients, self.d.coefficient, t * sizeof(floating))
        if floating is float:
            (<spca_svector *> B.steps)[t] = svector(value.shape[0], positions_of(index), &value[0])
        else:
            (<spca_dvector *> B.steps)[t] = dvector(value.shape[0], positions_of(index), &value[0])
        (<const void **> images)[t] = first(image)
        (<floating *> coefficients)[t] = coefficient
        B.s.deflation = B.d.deflation = {"hotelling": SPCA_HOTELLING, "projection": SPCA_PROJECTION,
                                         "schur": SPCA_SCHUR}[method]
        B.s.t = B.d.t = t + 1
        B.s.direction, B.d.direction = <spca_svector *> B.steps, <spca_dvector *> B.steps
        B.s.image, B.d.image = <const float *const *> images, <const double *const *> images
        B.s.coefficient, B.d.coefficient = <const float *> coefficients, <const double *> coefficients
        return B

    def truncated_power(self, Py_ssize_t[::1] index, floating[::1] value, Py_ssize_t k,
                        Py_ssize_t max_iter, floating tol, progress=None, bint nonnegative=False):
        """Truncated power from a start with these nonzeros: (status, index, value, objective, n_iter)."""
        cdef Call call = Call(progress)
        cdef spca_status status
        cdef Py_ssize_t nnz = index.shape[0], room = max(nnz, k)
        cdef floating objective = 0
        if not 1 <= k <= self.p:
            raise ValueError(f"{k} nonzeros of {self.p} variables")
        cdef Py_ssize_t[::1] positions = np.empty(room, np.intp), iwork = np.empty(k, np.intp)
        cdef floating[::1] values = np.empty(room, self.dtype)
        cdef floating[::1] work = np.empty(self.work() + 2 * k, self.dtype)
        positions[:nnz] = index
        values[:nnz] = value
        while True:
            with nogil:
                status = kernel_truncated_power(self.pointer(), k, nonnegative, max_iter, tol, on_stop, &call.c, &nnz,
                                                &positions[0], &values[0], &work[0], &iwork[0], &objective,
                                                &call.c.n_iter)
            if call.finished(status, &max_iter):
                break
        return <int> status, np.asarray(positions)[:nnz], np.asarray(values)[:nnz], objective, call.c.n_iter

    def gpower(self, Py_ssize_t[::1] index, floating[::1] value, bint l0, floating gamma, Py_ssize_t max_iter,
               floating tol, progress=None):
        """Generalized power from a start with these nonzeros: (status, index, value, objective, w'Aw, n_iter)."""
        cdef Call call = Call(progress)
        cdef spca_status status
        cdef Py_ssize_t nnz = index.shape[0]
        cdef floating objective = 0, quadratic = 0
        cdef Py_ssize_t[::1] positions = np.empty(self.p, np.intp), iwork = np.empty(self.p, np.intp)
        cdef floating[::1] values = np.empty(self.p, self.dtype)
        cdef floating[::1] work = np.empty(self.work() + self.p, self.dtype)
        positions[:nnz] = index
        values[:nnz] = value
        while True:
            with nogil:
                status = kernel_gpower(self.pointer(), l0, gamma, max_iter, tol, on_stop, &call.c, &nnz,
                                       &positions[0], &values[0], &work[0], &iwork[0], &objective, &quadratic,
                                       &call.c.n_iter)
            if call.finished(status, &max_iter):
                break
        return (<int> status, np.asarray(positions)[:nnz].copy(), np.asarray(values)[:nnz].copy(), objective, quadratic,
                call.c.n_iter)

    def pmd(self, Py_ssize_t[::1] index, floating[::1] value, double bound, double sample_bound,
            Py_ssize_t max_iter, floating tol, progress=None, bint nonnegative=False):
        """Penalized decomposition from a start with these nonzeros: (status, index, value, objective, n_iter).

        The objective is v'A v where sample_bound is 0, which means none, and otherwise u'F v.
        """
        cdef Call call = Call(progress)
        cdef spca_status status
        cdef Py_ssize_t nnz = index.shape[0]
        cdef floating objective = 0
        cdef Py_ssize_t[::1] positions = np.empty(self.p, np.intp), iwork = np.empty(self.p, np.intp)
        cdef floating[::1] values = np.empty(self.p, self.dtype), u = np.empty(self.m, self.dtype)
        cdef floating[::1] work = np.empty(self.work() + max(self.p, 2 * self.m), self.dtype)
        positions[:nnz] = index
        values[:nnz] = value
        while True:
            with nogil:
                if sample_bound > 0:
                    status = kernel_pmd_two_way(self.pointer(), bound, sample_bound, nonnegative, max_iter, tol, on_stop,
                                                &call.c, &nnz, &positions[0], &values[0], &work[0], &iwork[0], &u[0],
                                                &objective, &call.c.n_iter)
                else:
                    status = kernel_pmd(self.pointer(), bound, nonnegative, max_iter, tol, on_stop, &call.c, &nnz,
                                        &positions[0], &values[0], &work[0], &iwork[0], &objective, &call.c.n_iter)
            if call.finished(status, &max_iter):
                break
        return <int> status, np.asarray(positions)[:nnz].copy(), np.asarray(values)[:nnz].copy(), objective, call.c.n_iter

    def scotlass(self, floating[::1] start, floating[::1, :] Q, double bound, Py_ssize_t max_iter,
                 floating tol, progress=None):
        """SCoTLASS from a dense start, orthogonal to the columns of Q: (status, v, objective, n_iter)."""
        cdef Call call = Call(progress)
        cdef spca_status status
        cdef Py_ssize_t t = Q.shape[1]
        cdef floating objective = 0
        cdef floating[::1] v = np.array(start), work = np.empty(2 * self.p + max(3 * self.p, self.m + self.t), self.dtype)
        cdef double[::1] dwork = np.empty(t * t + 5 * t + 1)
        cdef const floating *basis = &Q[0, 0] if t > 0 else NULL
        while True:
            with nogil:
                status = kernel_scotlass(self.pointer(), t, basis, bound, max_iter, tol, on_stop, &call.c, &v[0],
                                         &work[0], &dwork[0], &objective, &call.c.n_iter)
            if call.finished(status, &max_iter):
                break
        return <int> status, np.asarray(v), objective, call.c.n_iter


cdef spca_status block_product(Operator A, Call call, int what, const floating[::1, :] V, floating[::1] work,
                               floating[::1, :] Y):
    """Y = A V, F V (what = 1) or F'V factor (2)."""
    cdef const void *pointer = A.pointer()
    cdef Py_ssize_t b = V.shape[1]
    with nogil:
        if what == 0:
            return kernel_apply_block(pointer, b, &V[0, 0], on_stop, &call.c, &work[0], &Y[0, 0])
        if what == 1:
            return kernel_forward_block(pointer, b, &V[0, 0], on_stop, &call.c, &work[0], &Y[0, 0])
        return kernel_backward_block(pointer, b, &V[0, 0], on_stop, &call.c, &work[0], &Y[0, 0])

cdef spca_status submatrix_into(Operator A, Call call, Py_ssize_t[::1] index, Py_ssize_t room, floating[::1] work,
                                floating[:, ::1] G):
    """G = A[index, index]."""
    cdef const void *pointer = A.pointer()
    with nogil:
        return kernel_submatrix(pointer, index.shape[0], &index[0], on_stop, &call.c, room, &work[0], &G[0, 0])

cdef spca_status columns_into(Operator A, Call call, Py_ssize_t[::1] index, floating[::1] scratch, floating[:, ::1] C):
    """C = F[:, index]'."""
    cdef const void *pointer = A.pointer()
    with nogil:
        return kernel_images(pointer, index.shape[0], positions_of(index), on_stop, &call.c, &scratch[0], &C[0, 0])

cdef spca_status outer_into(Operator A, Call call, floating[::1] work, Py_ssize_t[::1] iwork, floating[:, ::1] K):
    """K = FF' factor."""
    cdef const void *pointer = A.pointer()
    with nogil:
        return kernel_outer(pointer, on_stop, &call.c, &work[0], &iwork[0], &K[0, 0])


def dense(const floating[:, :] X, bint symmetric_form, const floating[::1] mean=None,
          const floating[::1] weight=None, double range_=1, double factor=1):
    """An operator of data X in C or Fortran order or, in symmetric form, of a covariance; X is not copied."""
    cdef Operator A = Operator()
    cdef bint row_major = X.strides[1] == sizeof(floating)
    cdef Py_ssize_t ld = X.strides[0 if row_major else 1] // <Py_ssize_t> sizeof(floating)
    A.set_shape(X.shape[0], X.shape[1], symmetric_form, range_, factor, sizeof(floating) == 4)
    A.refs = (X, mean, weight)
    spca_suse_dense(&A.s)
    spca_duse_dense(&A.d)
    A.set_arrays(&X[0, 0], row_major, first(mean), first(weight))
    A.s.ld = A.d.ld = ld
    A.s.run = A.d.run = spca_pool_run
    return A


ctypedef fused index_t:
    int32_t
    int64_t


def compressed(Py_ssize_t n, Py_ssize_t p, bint row_major, const floating[::1] data,
               const index_t[::1] indices, const index_t[::1] indptr, bint symmetric_form,
               const floating[::1] mean, const floating[::1] weight, double range_, double factor):
    """An operator of CSR (row_major) or CSC arrays, which are not copied."""
    cdef Operator A = Operator()
    A.set_shape(n, p, symmetric_form, range_, factor, sizeof(floating) == 4)
    A.refs = (data, indices, indptr, mean, weight)
    spca_suse_compressed(&A.s)
    spca_duse_compressed(&A.d)
    A.set_arrays(first(data), row_major, first(mean), first(weight))
    A.s.indices = A.d.indices = &indices[0] if indices.shape[0] else NULL
    A.s.indptr = A.d.indptr = &indptr[0]
    A.s.wide = A.d.wide = sizeof(index_t) == 8
    A.s.run = A.d.run = spca_pool_run
    return A


def operator(X, bint symmetric_form=False, mean=None, weight=None, double range_=1, double factor=1):
    """`dense` of an array, or `compressed` of a matrix in CSR or CSC."""
    affine = symmetric_form, mean, weight, range_, factor
    if not hasattr(X, "indptr"):
        return dense(X, *affine)
    return compressed(*X.shape, X.format == "csr", X.data, X.indices, X.indptr, *affine)


def products(owner, Py_ssize_t n, Py_ssize_t p, bint symmetric_form, double factor, bint single):
    """An operator that asks its owner for products, in the operator's dtype.

    owner.forward(v) -> F v (m) and, for data, owner.backward(f) -> F'f (p).  Where it has block(V) -> F V (m, b) for
    V (p, b), blocks of products are asked for together.
    """
    cdef Operator A = Operator()
    A.set_shape(n, p, symmetric_form, 1, factor, single)
    A.refs = owner
    A.s.forward, A.s.backward, A.s.columns = scall_forward, scall_backward, spca_scolumns_by_products
    A.d.forward, A.d.backward, A.d.columns = dcall_forward, dcall_backward, spca_dcolumns_by_products
    if hasattr(owner, "block"):
        A.s.block, A.s.block_work, A.d.block, A.d.block_work = scall_block, scall_block_work, dcall_block, dcall_block_work
    A.s.owner = A.d.owner = <void *> owner
    return A


def leading_eigenvector(floating[:, ::1] G):
    """(largest eigenvalue, its unit eigenvector) of symmetric G, which is destroyed."""
    cdef Py_ssize_t k = G.shape[0]
    cdef Call call = Call()
    cdef spca_status status
    cdef floating value = 0
    dtype = np.float32 if floating is float else np.float64
    cdef floating[::1] vector = np.empty(k, dtype), work = np.empty(6 * k, dtype)
    with nogil:
        status = kernel_leading_eigenvector(k, &G[0, 0], &work[0], &value, &vector[0])
    call.check(status)
    return value, np.asarray(vector)


def tridiagonal(floating[:, ::1] A):
    """(d, e, tau): T = H'AH has the diagonal d, and e beside it; symmetric A is overwritten, and has H with tau
    (spca_proto.h)."""
    cdef Py_ssize_t k = A.shape[0]
    cdef Call call = Call()
    cdef spca_status status
    dtype = np.float32 if floating is float else np.float64
    cdef floating[::1] work = np.empty(16 * k, dtype), tau = np.empty(k, dtype), d = np.empty(k, dtype)
    cdef floating[::1] e = np.empty(k, dtype)
    with nogil:
        status = kernel_tridiagonal(k, on_stop, &call.c, &A[0, 0], &work[0], &tau[0], &d[0], &e[0])
    call.check(status)
    return np.asarray(d), np.asarray(e)[:-1], np.asarray(tau)


def untridiagonal(const floating[:, ::1] A, const floating[::1] tau, floating[:, ::1] V):
    """x <- H x for each row x of V; A and tau are of `tridiagonal`."""
    cdef Call call = Call()
    cdef spca_status status
    with nogil:
        status = kernel_untridiagonal(A.shape[0], V.shape[0], &A[0, 0], &tau[0], on_stop, &call.c, &V[0, 0])
    call.check(status)
