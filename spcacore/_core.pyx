# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# cython: freethreading_compatible=True
"""The one extension: thin wrappers of src_c that release the GIL.  They decide nothing and check no arguments.

A wrapper makes the scratch that spca_proto.h or spca_double.h asks for, and calls the kernel of the precision of its
arrays; formulas and sizes are there.
"""
from cpython.ref cimport PyObject
from cython cimport floating
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.float cimport DBL_EPSILON, FLT_EPSILON
from libc.math cimport INFINITY, log2, rint, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset
cimport scipy.linalg.cython_blas as blas
cimport scipy.linalg.cython_lapack as lapack
include "_blas_int.pxi"
import os
import numpy as np
from . import _limits


cdef extern from "spca.h" nogil:
    ctypedef Py_ssize_t spca_int
    ctypedef int (*spca_stop)(void *) noexcept nogil
    ctypedef void (*spca_task)(void *, spca_int) noexcept nogil
    ctypedef int (*spca_run)(spca_task, void *, spca_int, spca_stop, void *) noexcept nogil
    ctypedef enum spca_status:
        SPCA_OK
        SPCA_NOT_CONVERGED
        SPCA_STOPPED
        SPCA_ZERO_VECTOR
        SPCA_NONFINITE
        SPCA_PRODUCT_FAILED
        SPCA_LAPACK_FAILED
    ctypedef enum spca_deflation:
        SPCA_NO_DEFLATION
        SPCA_HOTELLING
        SPCA_PROJECTION
        SPCA_SCHUR

    enum:
        SPCA_OUTER_BLOCK, SPCA_TURNED, SPCA_SPARE
        SPCA_QUANTIZED_BLOCK, SPCA_LANES
        SPCA_REFERENCES
        SPCA_GUESS_SHARE, SPCA_GRAM_MOST
        SPCA_INT8, SPCA_UINT8, SPCA_INT16, SPCA_UINT16, SPCA_SINGLES, SPCA_DOUBLES
    ctypedef enum spca_block:
        SPCA_FORWARD
        SPCA_BACKWARD
        SPCA_BOTH
    ctypedef struct spca_column_cache:
        spca_int capacity, cursor, batch
        void *kept
        spca_int *owner
        spca_int *stamp
        spca_int *slot_list
        spca_int *missing
        spca_int *slot
    ctypedef struct spca_search_plan:
        spca_int starts, rounds
        spca_int *steps
        spca_int *keep
        spca_int *width
        spca_int max_iter
        double tol
        spca_int ends, tried, swapped
        double rise, gap, slack, tie
        spca_int nodes
        double hopeless
        spca_int exact
        spca_run run
    ctypedef struct spca_supports:
        spca_int p, units
        const spca_int *unit
        const spca_int *size
        const uint8_t *allowed
        const uint8_t *included
        const int8_t *signs
        int sized
    ctypedef struct spca_rule:
        spca_supports of
        int step
        spca_int count
        double level
        spca_int t
        const double *Q
    ctypedef struct spca_search_counts:
        spca_int starts, ends, n_iter, nodes
        int proved
    ctypedef struct spca_screen:
        const int8_t *quantized
        spca_int ld
        const float *step
        const float *norm
        const float *slack
        double widest, smallest, greatest
        int known, newest, used
        double *direction
        double *basis
        float *product
        float *residual
        int lists
        double *list_of
        float *last_product
        int *last_list
        float *bound
        float *estimate
        float *lower
        spca_int *list
        spca_int *guess
        double *unit
        double *outside
        int16_t *rounded
        spca_int queries, quantized_columns, columns

include "_externs.pxi"

cdef extern from "pool.h" nogil:
    int spca_pool_run(spca_task, void *, spca_int, spca_stop, void *) noexcept
    void spca_pool_set_limit(int) noexcept
    int spca_pool_limit() noexcept
    int spca_pool_own_limit(int) noexcept
    void spca_pool_end() noexcept

cdef extern from "clones.h" nogil:
    int spca_clone
    const char *spca_clone_name(int) noexcept
    int spca_last_clone() noexcept
    int spca_choose_clone(const char *) noexcept


cdef extern from *:
    """
    #include <time.h>
    static double spca_now(void)
    {
        struct timespec t;
    #ifdef CLOCK_MONOTONIC
        clock_gettime(CLOCK_MONOTONIC, &t);
    #else
        timespec_get(&t, TIME_UTC);
    #endif
        return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
    }
    """
    double spca_now() noexcept nogil

cdef extern from "Python.h":
    int PyErr_CheckSignals() except -1


# A cimported function already is a pointer in C: no '&'.
spca_sblas.axpy, spca_dblas.axpy = blas.saxpy, blas.daxpy
spca_sblas.scal, spca_dblas.scal = blas.sscal, blas.dscal
spca_sblas.nrm2, spca_dblas.nrm2 = blas.snrm2, blas.dnrm2
(<void **> &spca_sblas.stemr)[0] = <void *> lapack.sstemr  # one of whose integers SciPy declares as bint
(<void **> &spca_dblas.stemr)[0] = <void *> lapack.dstemr


# ---- processors ------------------------------------------------------------------------------------

def clones():
    """The names of the clones of the kernels that are compiled and that this processor can run."""
    return tuple([spca_clone_name(clone).decode() for clone in range(spca_last_clone() + 1)])


def clone():
    """The name of the clone that runs."""
    return spca_clone_name(spca_clone).decode()


cdef int _choose_clone() except -1:
    """Run the clone that the environment asks for, or the best one."""
    asked = os.environ.get("SPCACORE_CLONE", "")
    cdef bytes name = asked.encode("utf-8", "surrogateescape")
    cdef int chosen = spca_choose_clone(name)
    if chosen == 0:
        raise ImportError(f"SPCACORE_CLONE is {asked!r}, which is none of generic, avx2 and avx512")
    if chosen < 0:
        raise ImportError(
            f"SPCACORE_CLONE is {asked!r}, which this processor or this build of spcacore lacks; "
            f"it has {' and '.join(clones())}"
        )
    return 0


_choose_clone()


# ---- threads ---------------------------------------------------------------------------------------

def set_threads(int threads):
    """How many threads a loop over the matrix may have, at least 1."""
    spca_pool_set_limit(threads)


def threads():
    """The limit that `set_threads` has set."""
    return spca_pool_limit()


def shares_loops():
    """How many threads a loop of this thread may have."""
    return spca_pool_run(NULL, NULL, 0, NULL, NULL)


def limit_own(int threads):
    """How many threads a loop of this thread may have from now on; 0: the limit of all.  Returns what it was."""
    return spca_pool_own_limit(threads)


def end_threads():
    """End the threads of the pool, at the exit of the interpreter; another loop would make new ones."""
    with nogil:
        spca_pool_end()


# ---- one call: interrupts, progress, and errors raised inside a kernel -----------------------------

# What the kernel hands back to `on_stop`: plain C, since no GIL is held.
cdef struct call_t:
    double due, pause   # when to look at signals next, and how long not to
    spca_int n_iter
    PyObject *call

cdef class Call:
    """What belongs to one call of a kernel: its hook, its error and its steps.  So shared operators stay read-only."""
    cdef call_t c
    cdef object progress, error
    cdef Py_ssize_t steps   # made before the progress hook ended the search

    def __cinit__(self, progress=None, double pause=0.05):
        self.c.due = 0 if getattr(progress, "ended", False) else spca_now() + pause
        self.c.pause = pause
        self.c.n_iter = 0
        self.c.call = <PyObject *> self
        self.progress = progress

    cdef bint again(self, spca_status status) noexcept:
        """Whether the hook ended the search; then the caller calls the kernel once more, for no step from where it was."""
        if status != SPCA_STOPPED or self.error is not None:
            return False
        self.progress = None
        self.steps, self.c.n_iter = self.c.n_iter, 0  # check adds them to those of the call that follows, if any
        return True

    cdef bint finished(self, spca_status status, Py_ssize_t *max_iter) except -1:
        """Whether the kernel is not to be called again; otherwise max_iter is set to 0."""
        if self.again(status):
            max_iter[0] = 0
            return False
        self.check(status)
        return True

    cdef int check(self, spca_status status) except -1:
        """Raise for a status without a result, but for SPCA_ZERO_VECTOR, which the caller judges."""
        self.c.n_iter += self.steps
        if status == SPCA_STOPPED or status == SPCA_PRODUCT_FAILED:
            raise self.error
        if status == SPCA_NONFINITE:
            raise ValueError("a product with the matrix is not finite: its entries are too large, "
                             "or the operator returned NaN or infinity")
        if status == SPCA_LAPACK_FAILED:
            raise np.linalg.LinAlgError("no eigenvectors of the submatrix of the support could be found")
        return 0

cdef int on_stop(void *ctx) noexcept nogil:
    """The stop of all kernels: twenty times a second, or as often as the call says, it looks at signals and then calls
    the progress hook.  Nonzero where either ends the call; an exception is kept for `check` to raise."""
    cdef call_t *c = <call_t *> ctx
    cdef double now = spca_now()
    if now < c.due:
        return 0
    with gil:
        call = <Call> c.call
        try:
            PyErr_CheckSignals()
            if call.progress is not None and call.progress(c.n_iter) is True:
                return 1
        except BaseException as error:
            call.error = error
            return 1
        c.due = spca_now() + c.pause
    return 0


# ---- operators known by their products -------------------------------------------------------------

cdef int call_products(PyObject *owner, void *ctx, str method, Py_ssize_t b, const floating *x, Py_ssize_t length,
                       floating *out, Py_ssize_t out_length) noexcept:
    """out = the owner's product of this name with X (length x b by columns); b = 0: with a vector.  -1: it raised, and
    the call keeps the exception."""
    cdef Py_ssize_t columns = max(b, 1)
    try:
        x_shape, out_shape = ([b, length], [b, out_length]) if b else ([length], [out_length])
        argument = np.array(<floating[:columns * length]> <floating *> x).reshape(x_shape).T
        result = getattr(<object> owner, method)(argument)
        if list(result.T.shape) != out_shape:
            raise ValueError("a product of the operator has the wrong length")
        np.asarray(<floating[:columns * out_length]> out).reshape(out_shape)[...] = result.T
        return 0
    except BaseException as error:
        (<Call> (<call_t *> ctx).call).error = error
        return -1

cdef spca_status call_forward(const floating *value, spca_int nnz, const spca_int *index, PyObject *owner, spca_int p,
                              spca_int m, spca_stop stop, void *ctx, floating *scratch, floating *f) noexcept nogil:
    """f = owner.forward(v), for the `forward` of a storage; v becomes dense in the scratch (p)."""
    cdef Py_ssize_t a
    if index == NULL:
        memcpy(scratch, value, p * sizeof(floating))
    else:
        for a in range(p):
            scratch[a] = 0
        for a in range(nnz):
            scratch[index[a]] = value[a]
    if stop(ctx):
        return SPCA_STOPPED
    with gil:
        return SPCA_OK if call_products(owner, ctx, "forward", 0, scratch, p, f, m) == 0 else SPCA_PRODUCT_FAILED

cdef spca_status call_backward(const floating *f, PyObject *owner, spca_int p, spca_int m, spca_stop stop, void *ctx,
                               floating *y) noexcept nogil:
    """y = owner.backward(f), for the `backward` of a storage."""
    if stop(ctx):
        return SPCA_STOPPED
    with gil:
        return SPCA_OK if call_products(owner, ctx, "backward", 0, f, m, y, p) == 0 else SPCA_PRODUCT_FAILED

cdef spca_status call_block(const floating *V, spca_int b, PyObject *owner, spca_int p, spca_int m, spca_stop stop,
                            void *ctx, floating *f) noexcept nogil:
    """f = owner.block(V), for the `block` of a storage."""
    if stop(ctx):
        return SPCA_STOPPED
    with gil:
        return SPCA_OK if call_products(owner, ctx, "block", b, V, p, f, m) == 0 else SPCA_PRODUCT_FAILED

cdef spca_status scall_forward(const spca_soperator *A, spca_svector v, spca_stop stop, void *ctx, float *scratch,
                               float *f) noexcept nogil:
    return call_forward(v.value, v.nnz, v.index, <PyObject *> A.owner, A.p, A.m, stop, ctx, scratch, f)

cdef spca_status dcall_forward(const spca_doperator *A, spca_dvector v, spca_stop stop, void *ctx, double *scratch,
                               double *f) noexcept nogil:
    return call_forward(v.value, v.nnz, v.index, <PyObject *> A.owner, A.p, A.m, stop, ctx, scratch, f)

cdef spca_status scall_backward(const spca_soperator *A, const float *f, float total, spca_int count,
                                const spca_int *listed, spca_stop stop, void *ctx, float *y) noexcept nogil:
    return call_backward(f, <PyObject *> A.owner, A.p, A.m, stop, ctx, y)

cdef spca_status dcall_backward(const spca_doperator *A, const double *f, double total, spca_int count,
                                const spca_int *listed, spca_stop stop, void *ctx, double *y) noexcept nogil:
    return call_backward(f, <PyObject *> A.owner, A.p, A.m, stop, ctx, y)

cdef spca_status scall_block(const spca_soperator *A, spca_block what, spca_int b, const float *V, spca_stop stop,
                             void *ctx, float *work, float *f) noexcept nogil:
    return call_block(V, b, <PyObject *> A.owner, A.p, A.m, stop, ctx, f)

cdef spca_status dcall_block(const spca_doperator *A, spca_block what, spca_int b, const double *V, spca_stop stop,
                             void *ctx, double *work, double *f) noexcept nogil:
    return call_block(V, b, <PyObject *> A.owner, A.p, A.m, stop, ctx, f)

# A block product is known for F V alone; it needs no work, but 0 would say that there is none.
cdef spca_int scall_block_work(const spca_soperator *A, spca_block what, spca_int b) noexcept nogil:
    return what == SPCA_FORWARD

cdef spca_int dcall_block_work(const spca_doperator *A, spca_block what, spca_int b) noexcept nogil:
    return what == SPCA_FORWARD


include "_core_screen.pxi"
include "_core_operator.pxi"
include "_core_kernels.pxi"
include "_core_interface.pxi"
include "_table.pxi"
