# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The one extension: thin wrappers of src_c that release the GIL.  No policy, no validation."""
from cpython.ref cimport PyObject
from cython cimport floating
from libc.stdint cimport int8_t, int16_t, int32_t, int64_t, uint8_t
from libc.math cimport INFINITY, sqrt
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy
cimport scipy.linalg.cython_blas as blas
cimport scipy.linalg.cython_lapack as lapack
include "_blas_int.pxi"
import numpy as np


cdef extern from "spca.h" nogil:
    ctypedef Py_ssize_t spca_int
    ctypedef int (*spca_stop)(void *) noexcept nogil
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
        SPCA_OUTER_BLOCK
        SPCA_SHADOW_BLOCK, SPCA_LANES
        SPCA_REFERENCES
        SPCA_GUESS_SHARE
    ctypedef struct spca_screen:
        const int8_t *shadow
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
        spca_int capacity, cursor, batch
        void *kept
        spca_int *owner
        spca_int *stamp
        spca_int *slot_list
        spca_int *missing
        spca_int *slot
        float *bound
        float *estimate
        float *lower
        spca_int *list
        spca_int *guess
        double *unit
        double *outside
        int16_t *rounded
        spca_int questions, shadow_columns, columns

    ctypedef struct spca_sblas_table:
        void (*syrk)(char *, char *, blas_int *, blas_int *, float *, float *, blas_int *, float *, float *, blas_int *) noexcept nogil
        void (*axpy)(blas_int *, float *, float *, blas_int *, float *, blas_int *) noexcept nogil
        void (*scal)(blas_int *, float *, float *, blas_int *) noexcept nogil
        float (*nrm2)(blas_int *, float *, blas_int *) noexcept nogil
        void (*syevr)(char *, char *, char *, blas_int *, float *, blas_int *, float *, float *, blas_int *, blas_int *, float *, blas_int *, float *, float *, blas_int *, blas_int *, float *, blas_int *, blas_int *, blas_int *, blas_int *) noexcept nogil
    ctypedef struct spca_dblas_table:
        void (*syrk)(char *, char *, blas_int *, blas_int *, double *, double *, blas_int *, double *, double *, blas_int *) noexcept nogil
        void (*axpy)(blas_int *, double *, double *, blas_int *, double *, blas_int *) noexcept nogil
        void (*scal)(blas_int *, double *, double *, blas_int *) noexcept nogil
        double (*nrm2)(blas_int *, double *, blas_int *) noexcept nogil
        void (*syevr)(char *, char *, char *, blas_int *, double *, blas_int *, double *, double *, blas_int *, blas_int *, double *, blas_int *, double *, double *, blas_int *, blas_int *, double *, blas_int *, blas_int *, blas_int *, blas_int *) noexcept nogil
    spca_sblas_table spca_sblas
    spca_dblas_table spca_dblas

    ctypedef struct spca_svector:
        spca_int nnz
        const spca_int *index
        const float *value
    ctypedef struct spca_dvector:
        spca_int nnz
        const spca_int *index
        const double *value

    ctypedef struct spca_soperator:
        spca_status (*forward)(const spca_soperator *, spca_svector, spca_stop, void *, float *, float *) noexcept nogil
        spca_status (*backward)(const spca_soperator *, const float *, spca_int, const spca_int *, spca_stop, void *, float *) noexcept nogil
        spca_status (*columns)(const spca_soperator *, spca_int, const spca_int *, spca_stop, void *, float *, float *) noexcept nogil
        spca_int n, p, m
        int covariance, row_major
        const float *data
        spca_int ld
        const void *indptr
        const void *indices
        int wide
        const float *mean
        const float *weight
        const float *row_weight
        float range, factor, shift, credit
        int quotient
        void *owner
        spca_deflation deflation
        spca_int t
        const spca_svector *direction
        const float *const *image
        spca_screen *screen
        const float *amount
    ctypedef struct spca_doperator:
        spca_status (*forward)(const spca_doperator *, spca_dvector, spca_stop, void *, double *, double *) noexcept nogil
        spca_status (*backward)(const spca_doperator *, const double *, spca_int, const spca_int *, spca_stop, void *, double *) noexcept nogil
        spca_status (*columns)(const spca_doperator *, spca_int, const spca_int *, spca_stop, void *, double *, double *) noexcept nogil
        spca_int n, p, m
        int covariance, row_major
        const double *data
        spca_int ld
        const void *indptr
        const void *indices
        int wide
        const double *mean
        const double *weight
        const double *row_weight
        double range, factor, shift, credit
        int quotient
        void *owner
        spca_deflation deflation
        spca_int t
        const spca_dvector *direction
        const double *const *image
        spca_screen *screen
        const double *amount

    spca_status spca_sdense_forward(const spca_soperator *, spca_svector, spca_stop, void *, float *, float *) noexcept
    spca_status spca_ddense_forward(const spca_doperator *, spca_dvector, spca_stop, void *, double *, double *) noexcept
    spca_status spca_sdense_backward(const spca_soperator *, const float *, spca_int, const spca_int *, spca_stop, void *, float *) noexcept
    spca_status spca_ddense_backward(const spca_doperator *, const double *, spca_int, const spca_int *, spca_stop, void *, double *) noexcept
    spca_status spca_sdense_columns(const spca_soperator *, spca_int, const spca_int *, spca_stop, void *, float *, float *) noexcept
    spca_status spca_ddense_columns(const spca_doperator *, spca_int, const spca_int *, spca_stop, void *, double *, double *) noexcept
    spca_status spca_scompressed_forward(const spca_soperator *, spca_svector, spca_stop, void *, float *, float *) noexcept
    spca_status spca_dcompressed_forward(const spca_doperator *, spca_dvector, spca_stop, void *, double *, double *) noexcept
    spca_status spca_scompressed_backward(const spca_soperator *, const float *, spca_int, const spca_int *, spca_stop, void *, float *) noexcept
    spca_status spca_dcompressed_backward(const spca_doperator *, const double *, spca_int, const spca_int *, spca_stop, void *, double *) noexcept
    spca_status spca_scompressed_columns(const spca_soperator *, spca_int, const spca_int *, spca_stop, void *, float *, float *) noexcept
    spca_status spca_dcompressed_columns(const spca_doperator *, spca_int, const spca_int *, spca_stop, void *, double *, double *) noexcept
    spca_status spca_scolumns_by_products(const spca_soperator *, spca_int, const spca_int *, spca_stop, void *, float *, float *) noexcept
    spca_status spca_dcolumns_by_products(const spca_doperator *, spca_int, const spca_int *, spca_stop, void *, double *, double *) noexcept

    spca_status spca_simage(const spca_soperator *, spca_svector, spca_stop, void *, float *, float *) noexcept
    spca_status spca_dimage(const spca_doperator *, spca_dvector, spca_stop, void *, double *, double *) noexcept
    spca_status spca_sapply(const spca_soperator *, spca_svector, spca_stop, void *, float *, float *) noexcept
    spca_status spca_dapply(const spca_doperator *, spca_dvector, spca_stop, void *, double *, double *) noexcept
    spca_status spca_sapply_block(const spca_soperator *, spca_int, const float *, spca_stop, void *, float *, float *) noexcept
    spca_status spca_dapply_block(const spca_doperator *, spca_int, const double *, spca_stop, void *, double *, double *) noexcept
    spca_int spca_sblock_work(const spca_soperator *, spca_int) noexcept
    spca_status spca_simage_block(const spca_soperator *, spca_int, const float *, spca_stop, void *, float *, float *) noexcept
    spca_status spca_stransposed_block(const spca_soperator *, spca_int, const float *, spca_stop, void *, float *, float *) noexcept
    spca_int spca_dblock_work(const spca_doperator *, spca_int) noexcept
    spca_status spca_dimage_block(const spca_doperator *, spca_int, const double *, spca_stop, void *, double *, double *) noexcept
    spca_status spca_dtransposed_block(const spca_doperator *, spca_int, const double *, spca_stop, void *, double *, double *) noexcept
    spca_status spca_slargest(const spca_soperator *, spca_svector, spca_int, int, spca_stop, void *, float *, spca_int *, float *, float *) noexcept
    spca_status spca_dlargest(const spca_doperator *, spca_dvector, spca_int, int, spca_stop, void *, double *, spca_int *, double *, double *) noexcept
    spca_status spca_sabove(const spca_soperator *, spca_svector, float, int, spca_stop, void *, float *, spca_int *, spca_int *, float *, float *) noexcept
    spca_status spca_dabove(const spca_doperator *, spca_dvector, double, int, spca_stop, void *, double *, spca_int *, spca_int *, double *, double *) noexcept
    spca_status spca_sapply_transposed(const spca_soperator *, const float *, spca_stop, void *, float *, float *) noexcept
    spca_status spca_dapply_transposed(const spca_doperator *, const double *, spca_stop, void *, double *, double *) noexcept
    spca_status spca_souter(const spca_soperator *, spca_stop, void *, float *, spca_int *, float *) noexcept
    spca_status spca_douter(const spca_doperator *, spca_stop, void *, double *, spca_int *, double *) noexcept
    spca_status spca_ssubmatrix(const spca_soperator *, spca_int, const spca_int *, spca_stop, void *, float *, float *) noexcept
    spca_status spca_dsubmatrix(const spca_doperator *, spca_int, const spca_int *, spca_stop, void *, double *, double *) noexcept
    spca_status spca_sleading_eigenvector(spca_int, float *, float *, blas_int *, float *, float *) noexcept
    spca_status spca_dleading_eigenvector(spca_int, double *, double *, blas_int *, double *, double *) noexcept

    spca_status spca_sdense_statistics(spca_int, spca_int, const float *, spca_int, int, int, spca_int, spca_stop, void *, double *, double *, double *, double *, int8_t *, double *, double *, float *) noexcept
    spca_status spca_ddense_statistics(spca_int, spca_int, const double *, spca_int, int, int, spca_int, spca_stop, void *, double *, double *, double *, double *, int8_t *, double *, double *, float *) noexcept
    spca_status spca_scompressed_statistics(spca_int, spca_int, const float *, const void *, const void *, int, int, spca_stop, void *, double *, double *, double *, double *, double *) noexcept
    spca_status spca_dcompressed_statistics(spca_int, spca_int, const double *, const void *, const void *, int, int, spca_stop, void *, double *, double *, double *, double *, double *) noexcept
    spca_status spca_ssymmetry(spca_int, const float *, spca_int, spca_stop, void *, double *, double *, double *) noexcept
    spca_status spca_dsymmetry(spca_int, const double *, spca_int, spca_stop, void *, double *, double *, double *) noexcept

    void spca_sselect_largest(spca_int, const float *, spca_int, float *, spca_int *) noexcept
    void spca_dselect_largest(spca_int, const double *, spca_int, double *, spca_int *) noexcept
    void spca_struncate(spca_int, spca_int, float *, float *) noexcept
    void spca_dtruncate(spca_int, spca_int, double *, double *) noexcept
    void spca_ssoft_threshold(spca_int, const float *, float, float *) noexcept
    void spca_dsoft_threshold(spca_int, const double *, double, double *) noexcept
    spca_status spca_sl1_threshold(spca_int, const float *, double, int, float *, float *, double *) noexcept
    spca_status spca_dl1_threshold(spca_int, const double *, double, int, double *, double *, double *) noexcept

    spca_status spca_struncated_power(const spca_soperator *, spca_int, int, spca_int, float, spca_stop, void *, spca_int *, spca_int *, float *, float *, spca_int *, float *, spca_int *) noexcept
    spca_status spca_dtruncated_power(const spca_doperator *, spca_int, int, spca_int, double, spca_stop, void *, spca_int *, spca_int *, double *, double *, spca_int *, double *, spca_int *) noexcept

    spca_status spca_sgpower(const spca_soperator *, int, float, spca_int, float, spca_stop, void *, spca_int *, spca_int *, float *, float *, spca_int *, float *, float *, spca_int *) noexcept
    spca_status spca_dgpower(const spca_doperator *, int, double, spca_int, double, spca_stop, void *, spca_int *, spca_int *, double *, double *, spca_int *, double *, double *, spca_int *) noexcept
    spca_status spca_spmd(const spca_soperator *, double, int, spca_int, float, spca_stop, void *, spca_int *, spca_int *, float *, float *, spca_int *, float *, spca_int *) noexcept
    spca_status spca_dpmd(const spca_doperator *, double, int, spca_int, double, spca_stop, void *, spca_int *, spca_int *, double *, double *, spca_int *, double *, spca_int *) noexcept
    spca_status spca_spmd_two_way(const spca_soperator *, double, double, int, spca_int, float, spca_stop, void *, spca_int *, spca_int *, float *, float *, spca_int *, float *, float *, spca_int *) noexcept
    spca_status spca_dpmd_two_way(const spca_doperator *, double, double, int, spca_int, double, spca_stop, void *, spca_int *, spca_int *, double *, double *, spca_int *, double *, double *, spca_int *) noexcept

    spca_status spca_sscotlass(const spca_soperator *, spca_int, const float *, double, spca_int, float, spca_stop, void *, float *, float *, double *, float *, spca_int *) noexcept
    spca_status spca_dscotlass(const spca_doperator *, spca_int, const double *, double, spca_int, double, spca_stop, void *, double *, double *, double *, double *, spca_int *) noexcept
    spca_status spca_sbordered_eigenvalues(spca_int, spca_int, spca_int, spca_int, spca_int, const spca_int *, const float *, const double *, const double *, const double *, const double *, const double *, const double *, double, double, spca_stop, void *, double *, double *) noexcept
    spca_status spca_dbordered_eigenvalues(spca_int, spca_int, spca_int, spca_int, spca_int, const spca_int *, const double *, const double *, const double *, const double *, const double *, const double *, const double *, double, double, spca_stop, void *, double *, double *) noexcept
    spca_status spca_ddeleted_eigenvalues(spca_int, spca_int, const double *, const double *, spca_stop, void *, double *, double *) noexcept
    spca_status spca_ddspca(spca_int, const double *, int, double, double, spca_int, spca_stop, void *, double *, blas_int *, double *, double *, double *, spca_int *) noexcept
    spca_status spca_delastic_net(spca_int, spca_int, const double *, const double *, double, double, double, spca_int, spca_stop, void *, spca_int *, double *, double *, spca_int *, spca_int *, double *) noexcept
    spca_status spca_dbranch(spca_int, spca_int, const double *, spca_int, const spca_int *, spca_int, const spca_int *, spca_stop, void *, uint8_t *, double *, spca_int *, spca_int *, double *) noexcept
    spca_int spca_dbranch_work(spca_int, spca_int) noexcept

    double spca_sl1_ball_level(spca_int, const float *, double, double) noexcept
    float spca_sl1_kept_level(spca_int, const float *, double, float *) noexcept
    spca_status spca_sl1_sweeps(spca_int, spca_int, spca_int, double, spca_stop, void *, float *, double *, spca_int *, double *, spca_int *) noexcept
    spca_status spca_sorthomax(spca_int, spca_int, double, spca_int, double, spca_stop, void *, float *, double *, double *, spca_int *) noexcept
    spca_int spca_sorthomax_work(spca_int, spca_int) noexcept
    double spca_dl1_ball_level(spca_int, const double *, double, double) noexcept
    double spca_dl1_kept_level(spca_int, const double *, double, double *) noexcept
    spca_status spca_dl1_sweeps(spca_int, spca_int, spca_int, double, spca_stop, void *, double *, double *, spca_int *, double *, spca_int *) noexcept
    spca_status spca_dorthomax(spca_int, spca_int, double, spca_int, double, spca_stop, void *, double *, double *, double *, spca_int *) noexcept
    spca_int spca_dorthomax_work(spca_int, spca_int) noexcept

    spca_status spca_sadd_distances(spca_int, spca_int, const float *, const float *, int, spca_stop, void *, double *) noexcept
    spca_status spca_sabsolute_products(spca_int, spca_int, const float *, const float *, spca_stop, void *, float *, double *) noexcept
    spca_status spca_dadd_distances(spca_int, spca_int, const double *, const double *, int, spca_stop, void *, double *) noexcept
    spca_status spca_dabsolute_products(spca_int, spca_int, const double *, const double *, spca_stop, void *, double *, double *) noexcept

    spca_status spca_sdeflate_hotelling(spca_int, spca_svector, float *) noexcept
    spca_status spca_ddeflate_hotelling(spca_int, spca_dvector, double *) noexcept
    spca_status spca_sdeflate_projection(spca_int, spca_int, spca_svector, float *, float *) noexcept
    spca_status spca_ddeflate_projection(spca_int, spca_int, spca_dvector, double *, double *) noexcept
    spca_status spca_sdeflate_schur(spca_int, spca_int, spca_svector, float *, float *) noexcept
    spca_status spca_ddeflate_schur(spca_int, spca_int, spca_dvector, double *, double *) noexcept
    spca_status spca_sdeflate_data_projection(spca_int, spca_int, int, spca_svector, float *, float *) noexcept
    spca_status spca_ddeflate_data_projection(spca_int, spca_int, int, spca_dvector, double *, double *) noexcept
    spca_status spca_sdeflate_data_schur(spca_int, spca_int, spca_int, int, const float *, spca_svector, float *, float *) noexcept
    spca_status spca_ddeflate_data_schur(spca_int, spca_int, spca_int, int, const double *, spca_dvector, double *, double *) noexcept

    spca_status spca_stpower_covariance(spca_int, const float *, spca_int, spca_int, int, spca_int, float, spca_stop, void *, float *, float *, spca_int *, float *, spca_int *) noexcept
    spca_status spca_dtpower_covariance(spca_int, const double *, spca_int, spca_int, int, spca_int, double, spca_stop, void *, double *, double *, spca_int *, double *, spca_int *) noexcept
    spca_status spca_stpower_data(spca_int, spca_int, const float *, spca_int, int, const float *, const float *, spca_int, int, spca_int, float, spca_stop, void *, float *, float *, spca_int *, float *, spca_int *) noexcept
    spca_status spca_dtpower_data(spca_int, spca_int, const double *, spca_int, int, const double *, const double *, spca_int, int, spca_int, double, spca_stop, void *, double *, double *, spca_int *, double *, spca_int *) noexcept
    spca_status spca_srefit_covariance(spca_int, const float *, spca_int, float *, float *, spca_int *, float *) noexcept
    spca_status spca_drefit_covariance(spca_int, const double *, spca_int, double *, double *, spca_int *, double *) noexcept
    spca_status spca_srefit_data(spca_int, spca_int, const float *, spca_int, int, const float *, const float *, float *, float *, spca_int *, float *) noexcept
    spca_status spca_drefit_data(spca_int, spca_int, const double *, spca_int, int, const double *, const double *, double *, double *, spca_int *, double *) noexcept
    spca_status spca_sexplained_covariance(spca_int, const float *, spca_int, spca_int, const float *, float *, float *) noexcept
    spca_status spca_dexplained_covariance(spca_int, const double *, spca_int, spca_int, const double *, double *, double *) noexcept
    spca_status spca_sexplained_data(spca_int, spca_int, const float *, spca_int, int, const float *, const float *, spca_int, const float *, float *, float *) noexcept
    spca_status spca_dexplained_data(spca_int, spca_int, const double *, spca_int, int, const double *, const double *, spca_int, const double *, double *, double *) noexcept
    spca_status spca_scolumn_statistics(spca_int, spca_int, const float *, spca_int, int, double *, float *, double *) noexcept
    spca_status spca_dcolumn_statistics(spca_int, spca_int, const double *, spca_int, int, double *, double *, double *) noexcept
    spca_svector spca_sgather(spca_int, const float *, spca_int *, float *) noexcept
    spca_dvector spca_dgather(spca_int, const double *, spca_int *, double *) noexcept


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
spca_sblas.syrk, spca_dblas.syrk = blas.ssyrk, blas.dsyrk
spca_sblas.axpy, spca_dblas.axpy = blas.saxpy, blas.daxpy
spca_sblas.scal, spca_dblas.scal = blas.sscal, blas.dscal
spca_sblas.nrm2, spca_dblas.nrm2 = blas.snrm2, blas.dnrm2
spca_sblas.syevr, spca_dblas.syevr = lapack.ssyevr, lapack.dsyevr


# ---- one call: interrupts, progress, and errors raised inside a kernel -----------------------------

cdef struct call_t:
    double due, pause   # when to look at signals next, and how long not to
    spca_int n_iter
    PyObject *call

cdef class Call:
    """What belongs to one call of a kernel: shared operators stay read-only."""
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
        """Whether the hook ended the search: the caller asks once more, for no step from where it was."""
        if status != SPCA_STOPPED or self.error is not None:
            return False
        self.progress = None
        self.steps = self.c.n_iter
        return True

    cdef int check(self, spca_status status) except -1:
        """Raise for a status without a result; SPCA_ZERO_VECTOR is the caller's to judge."""
        self.c.n_iter += self.steps
        if status == SPCA_STOPPED or status == SPCA_PRODUCT_FAILED:
            raise self.error
        if status == SPCA_NONFINITE:
            raise ValueError("a product with the matrix is not finite: its entries are too large, "
                             "or the operator returned NaN or infinity")
        if status == SPCA_LAPACK_FAILED:
            raise np.linalg.LinAlgError("LAPACK syevr failed on the submatrix of the support")
        return 0

cdef int on_stop(void *ctx) noexcept nogil:
    """Twenty times a second, or as often as the call says: signals, then the caller's progress hook."""
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

cdef int call_products(PyObject *owner, void *ctx, bint forward, const floating *x, Py_ssize_t length,
                       floating *out, Py_ssize_t out_length) noexcept:
    cdef floating[::1] result
    cdef Py_ssize_t i
    try:
        argument = np.array(<floating[:length]> <floating *> x)
        products = <object> owner
        result = products.forward(argument) if forward else products.backward(argument)
        if result.shape[0] != out_length:
            raise ValueError("a product of the operator has the wrong length")
        for i in range(out_length):
            out[i] = result[i]
        return 0
    except BaseException as error:
        (<Call> (<call_t *> ctx).call).error = error
        return -1

cdef spca_status scall_forward(const spca_soperator *A, spca_svector v, spca_stop stop, void *ctx,
                               float *scratch, float *f) noexcept nogil:
    cdef Py_ssize_t a
    if v.index == NULL:
        memcpy(scratch, v.value, A.p * sizeof(float))
    else:
        for a in range(A.p):
            scratch[a] = 0
        for a in range(v.nnz):
            scratch[v.index[a]] = v.value[a]
    if stop(ctx):
        return SPCA_STOPPED
    with gil:
        if call_products(<PyObject *> A.owner, ctx, True, scratch, A.p, f, A.m) < 0:
            return SPCA_PRODUCT_FAILED
    return SPCA_OK

cdef spca_status dcall_forward(const spca_doperator *A, spca_dvector v, spca_stop stop, void *ctx,
                               double *scratch, double *f) noexcept nogil:
    cdef Py_ssize_t a
    if v.index == NULL:
        memcpy(scratch, v.value, A.p * sizeof(double))
    else:
        for a in range(A.p):
            scratch[a] = 0
        for a in range(v.nnz):
            scratch[v.index[a]] = v.value[a]
    if stop(ctx):
        return SPCA_STOPPED
    with gil:
        if call_products(<PyObject *> A.owner, ctx, True, scratch, A.p, f, A.m) < 0:
            return SPCA_PRODUCT_FAILED
    return SPCA_OK

cdef spca_status scall_backward(const spca_soperator *A, const float *f, spca_int count, const spca_int *listed,
                                spca_stop stop, void *ctx, float *y) noexcept nogil:
    if stop(ctx):
        return SPCA_STOPPED
    with gil:
        if call_products(<PyObject *> A.owner, ctx, False, f, A.m, y, A.p) < 0:
            return SPCA_PRODUCT_FAILED
    return SPCA_OK

cdef spca_status dcall_backward(const spca_doperator *A, const double *f, spca_int count, const spca_int *listed,
                                spca_stop stop, void *ctx, double *y) noexcept nogil:
    if stop(ctx):
        return SPCA_STOPPED
    with gil:
        if call_products(<PyObject *> A.owner, ctx, False, f, A.m, y, A.p) < 0:
            return SPCA_PRODUCT_FAILED
    return SPCA_OK


# ---- the operator ----------------------------------------------------------------------------------

SHADOW_BLOCK = <int> SPCA_SHADOW_BLOCK

cdef class Screen:
    """What exact screening keeps of dense data (spca.h); made for one call, and not to be shared by threads.

    slack (p) and, with a shadow, norm and step are the caller's; see `_screening._screen`.
    """
    cdef spca_screen s
    cdef object refs
    cdef readonly Py_ssize_t shadow_bytes, ld

    def __cinit__(self, Py_ssize_t n, Py_ssize_t p, bint row_major, dtype, const int8_t[:, ::1] shadow,
                  const float[::1] step, const float[::1] norm, const float[::1] slack, double widest,
                  double smallest, double greatest, bint references):
        cdef Py_ssize_t ld = shadow.shape[1] if shadow is not None else 0
        cdef Py_ssize_t capacity = max(1, min(p, max(p // 192, 256))) if row_major else 0
        cdef double[:, ::1] rows = np.empty((2 * SPCA_REFERENCES + 2, n))
        cdef Py_ssize_t kept_products = SPCA_REFERENCES + 1 if references else 0
        cdef float[:, ::1] columns = np.empty((kept_products + 3, p), np.float32)
        cdef Py_ssize_t[::1] lists = np.empty(p + p // SPCA_GUESS_SHARE + 1, np.intp)
        cdef Py_ssize_t[:, ::1] places = np.full((4, max(capacity, 1)), -1, np.intp)
        cdef Py_ssize_t[::1] slot = np.full(p if row_major else 1, -1, np.intp)
        cdef int16_t[::1] rounded = np.zeros(max(ld, 1), np.int16)
        cdef char[::1] kept = np.empty(max(capacity * n * dtype.itemsize, 1), np.int8)
        self.refs = (shadow, step, norm, slack, rows, columns, lists, places, slot, rounded, kept)
        self.shadow_bytes, self.ld = p * ld, ld
        self.s.shadow = &shadow[0, 0] if shadow is not None else NULL
        self.s.ld, self.s.widest = ld, widest
        self.s.smallest, self.s.greatest = smallest, greatest
        self.s.step = &step[0] if step is not None else NULL
        self.s.norm, self.s.slack = &norm[0], &slack[0]
        self.s.known = self.s.used = self.s.newest = 0
        self.s.direction = &rows[0, 0] if references else NULL
        self.s.basis = &rows[SPCA_REFERENCES, 0]
        self.s.unit, self.s.outside = &rows[2 * SPCA_REFERENCES, 0], &rows[2 * SPCA_REFERENCES + 1, 0]
        self.s.bound, self.s.estimate, self.s.lower = &columns[0, 0], &columns[1, 0], &columns[2, 0]
        if references:
            self.s.residual, self.s.product = &columns[3, 0], &columns[4, 0]
        self.s.list, self.s.guess = &lists[0], &lists[p]
        self.s.capacity, self.s.cursor, self.s.batch = capacity, -1, 0
        self.s.owner, self.s.stamp, self.s.slot_list, self.s.missing = &places[0, 0], &places[1, 0], &places[2, 0], &places[3, 0]
        self.s.slot, self.s.rounded, self.s.kept = &slot[0], &rounded[0], &kept[0]
        self.s.questions = self.s.shadow_columns = self.s.columns = 0

    @property
    def counts(self):
        """(products asked for, columns of the shadow read, columns of X read)."""
        return self.s.questions, self.s.shadow_columns, self.s.columns


cdef class Operator:
    """The symmetric p x p operator that solvers see (spca_proto.h); immutable, shared by threads.

    Made by `dense`, `compressed` or `products`; `deflated` returns a new one.
    """
    cdef spca_soperator s
    cdef spca_doperator d
    cdef void *steps        # t directions, t images, t amounts
    cdef object refs, plain
    cdef readonly bint single
    cdef readonly Py_ssize_t n, p, m, t
    cdef readonly bint covariance
    cdef readonly object dtype

    def __dealloc__(self):
        free(self.steps)

    cdef Py_ssize_t work(self):
        return 2 * self.p + self.m + self.t

    cdef void set_shape(self, Py_ssize_t n, Py_ssize_t p, bint covariance, double range_,
                        double factor, bint single):
        self.n, self.p, self.m, self.covariance, self.single = n, p, p if covariance else n, covariance, single
        self.dtype = np.dtype(np.float32 if single else np.float64)
        if single:
            self.s.n, self.s.p, self.s.m, self.s.covariance = n, p, self.m, covariance
            self.s.range, self.s.factor = <float> range_, <float> factor
        else:
            self.d.n, self.d.p, self.d.m, self.d.covariance = n, p, self.m, covariance
            self.d.range, self.d.factor = range_, factor

    def screened(self, Screen screen):
        """This operator, answering `largest` and `above` by exact screening."""
        cdef Operator B = Operator()
        B.n, B.p, B.m, B.covariance, B.single, B.dtype = self.n, self.p, self.m, self.covariance, self.single, self.dtype
        B.s, B.d, B.t, B.refs, B.plain = self.s, self.d, 0, (self.refs, screen), self
        B.s.screen = B.d.screen = &screen.s
        return B

    def with_quotient(self):
        """A + rho(v) QQ', rho = v'Av/v'(I - QQ')v, of the operator deflated by orthonormal directions Q."""
        cdef Operator B = self.copy()
        B.s.quotient = B.d.quotient = 1
        return B

    def with_penalty(self, double weight):
        """A - weight QQ', shifted by weight, of the operator deflated by orthonormal directions Q."""
        cdef Operator B = self.copy()
        B.s.credit, B.d.credit, B.s.shift, B.d.shift = <float> -weight, -weight, <float> weight, weight
        return B

    def row_weighted(self, const floating[::1] weight):
        """The same of diag(weight) X, before the means are subtracted; data that are not deflated."""
        cdef Operator B = self.copy()
        B.refs = (self, weight)
        if floating is float:
            B.s.row_weight = &weight[0]
        else:
            B.d.row_weight = &weight[0]
        return B

    cdef Operator copy(self):
        """Sharing the directions, which this one owns."""
        cdef Operator B = Operator()
        B.n, B.p, B.m, B.covariance, B.single, B.dtype = self.n, self.p, self.m, self.covariance, self.single, self.dtype
        B.s, B.d, B.t, B.refs = self.s, self.d, self.t, self
        return B

    @property
    def dense(self):
        """Whether the entries are in one array."""
        if self.single:
            return self.s.data != NULL and self.s.indptr == NULL
        return self.d.data != NULL and self.d.indptr == NULL

    def unscreened(self):
        """The operator that `screened` was called on, or this one."""
        return self if self.plain is None else self.plain

    def image(self, Py_ssize_t[::1] index, floating[::1] value):
        """F v, length m, of the deflated operator."""
        cdef Call call = Call()
        cdef spca_status status
        cdef floating[::1] f = np.empty(self.m, self.dtype), scratch = np.empty(self.p, self.dtype)
        with nogil:
            if floating is float:
                status = spca_simage(&self.s, svector(index, value), on_stop, &call.c, &scratch[0], &f[0])
            else:
                status = spca_dimage(&self.d, dvector(index, value), on_stop, &call.c, &scratch[0], &f[0])
        call.check(status)
        return np.asarray(f)

    def apply(self, Py_ssize_t[::1] index, floating[::1] value):
        """A v, length p; index None for a dense v."""
        cdef Call call = Call()
        cdef spca_status status
        cdef floating[::1] y = np.empty(self.p, self.dtype), work = np.empty(self.m + self.t, self.dtype)
        with nogil:
            if floating is float:
                status = spca_sapply(&self.s, svector(index, value), on_stop, &call.c, &work[0], &y[0])
            else:
                status = spca_dapply(&self.d, dvector(index, value), on_stop, &call.c, &work[0], &y[0])
        call.check(status)
        return np.asarray(y)

    def apply_block(self, V):
        """A V for V (p, b), in Fortran order; the bits of `apply` to each column."""
        return self.block(V, 0)

    def image_block(self, V):
        """F V (m, b) for V (p, b), of data that are not deflated."""
        return self.block(V, 1)

    def transposed_block(self, U):
        """F'U times factor (p, b) for U (m, b), of data that are not deflated."""
        return self.block(U, 2)

    cdef block(self, V, int what):
        cdef Call call = Call()
        cdef spca_status status
        cdef Py_ssize_t b
        cdef const float[::1, :] sV
        cdef const double[::1, :] dV
        cdef float[::1, :] sY
        cdef double[::1, :] dY
        cdef float[::1] swork
        cdef double[::1] dwork
        V = np.asfortranarray(V, self.dtype)
        b = V.shape[1]
        if V.shape[0] != (self.m if what == 2 else self.p):
            raise ValueError(f"V has {V.shape[0]} rows for {self.p} variables")
        Y = np.empty((self.m if what == 1 else self.p, b), self.dtype, order="F")
        if b == 0:
            return Y
        work = np.empty(spca_sblock_work(&self.s, b) if self.single else spca_dblock_work(&self.d, b), self.dtype)
        if self.single:
            sV, sY, swork = V, Y, work
            with nogil:
                if what == 0:
                    status = spca_sapply_block(&self.s, b, &sV[0, 0], on_stop, &call.c, &swork[0], &sY[0, 0])
                elif what == 1:
                    status = spca_simage_block(&self.s, b, &sV[0, 0], on_stop, &call.c, &swork[0], &sY[0, 0])
                else:
                    status = spca_stransposed_block(&self.s, b, &sV[0, 0], on_stop, &call.c, &swork[0], &sY[0, 0])
        else:
            dV, dY, dwork = V, Y, work
            with nogil:
                if what == 0:
                    status = spca_dapply_block(&self.d, b, &dV[0, 0], on_stop, &call.c, &dwork[0], &dY[0, 0])
                elif what == 1:
                    status = spca_dimage_block(&self.d, b, &dV[0, 0], on_stop, &call.c, &dwork[0], &dY[0, 0])
                else:
                    status = spca_dtransposed_block(&self.d, b, &dV[0, 0], on_stop, &call.c, &dwork[0], &dY[0, 0])
        call.check(status)
        return Y

    def apply_transposed(self, floating[::1] u):
        """F'u times factor, length p, of the deflated data."""
        cdef Call call = Call()
        cdef spca_status status
        cdef floating[::1] y = np.empty(self.p, self.dtype), work = np.empty(self.m + self.t, self.dtype)
        with nogil:
            if floating is float:
                status = spca_sapply_transposed(&self.s, &u[0], on_stop, &call.c, &work[0], &y[0])
            else:
                status = spca_dapply_transposed(&self.d, &u[0], on_stop, &call.c, &work[0], &y[0])
        call.check(status)
        return np.asarray(y)

    def largest(self, Py_ssize_t[::1] index, floating[::1] value, Py_ssize_t k, bint nonnegative=False):
        """Positions and values of the k largest |A v|, or of the positive part, and v'A v."""
        cdef Call call = Call()
        cdef spca_status status
        cdef floating[::1] entries = np.empty(k, self.dtype), work = np.empty(self.work(), self.dtype)
        cdef Py_ssize_t[::1] positions = np.empty(k, np.intp)
        cdef floating quadratic = 0
        with nogil:
            if floating is float:
                status = spca_slargest(&self.s, svector(index, value), k, nonnegative, on_stop, &call.c, &work[0],
                                       &positions[0], &entries[0], &quadratic)
            else:
                status = spca_dlargest(&self.d, dvector(index, value), k, nonnegative, on_stop, &call.c, &work[0],
                                       &positions[0], &entries[0], &quadratic)
        call.check(status)
        return np.asarray(positions), np.asarray(entries), quadratic

    def above(self, Py_ssize_t[::1] index, floating[::1] value, floating tau, bint relative=False):
        """Positions and values of the entries |A v| > tau, or tau sqrt(v'A v)."""
        cdef Call call = Call()
        cdef spca_status status
        cdef floating[::1] entries = np.empty(self.p, self.dtype), work = np.empty(self.work(), self.dtype)
        cdef Py_ssize_t[::1] positions = np.empty(self.p, np.intp)
        cdef Py_ssize_t count = 0
        cdef floating quadratic
        with nogil:
            if floating is float:
                status = spca_sabove(&self.s, svector(index, value), tau, relative, on_stop, &call.c, &work[0],
                                     &count, &positions[0], &entries[0], &quadratic)
            else:
                status = spca_dabove(&self.d, dvector(index, value), tau, relative, on_stop, &call.c, &work[0],
                                     &count, &positions[0], &entries[0], &quadratic)
        call.check(status)
        return np.asarray(positions)[:count].copy(), np.asarray(entries)[:count].copy()

    def submatrix(self, Py_ssize_t[::1] index):
        """A[index, index]."""
        cdef Call call = Call()
        cdef spca_status status
        cdef Py_ssize_t k = index.shape[0]
        G = np.empty((k, k), self.dtype)
        work = np.empty(self.work() if self.covariance else self.m * k + self.p, self.dtype)
        cdef float[:, ::1] sG
        cdef double[:, ::1] dG
        cdef float[::1] swork
        cdef double[::1] dwork
        if self.single:
            sG, swork = G, work
            with nogil:
                status = spca_ssubmatrix(&self.s, k, &index[0], on_stop, &call.c, &swork[0], &sG[0, 0])
        else:
            dG, dwork = G, work
            with nogil:
                status = spca_dsubmatrix(&self.d, k, &index[0], on_stop, &call.c, &dwork[0], &dG[0, 0])
        call.check(status)
        return G

    def outer(self):
        """F F' factor (m, m) of data without deflation."""
        cdef Call call = Call()
        cdef spca_status status
        K = np.empty((self.m, self.m), self.dtype)
        work = np.empty(self.m * SPCA_OUTER_BLOCK + self.p, self.dtype)
        cdef Py_ssize_t[::1] iwork = np.empty(SPCA_OUTER_BLOCK, np.intp)
        cdef float[:, ::1] sK
        cdef double[:, ::1] dK
        cdef float[::1] swork
        cdef double[::1] dwork
        if self.single:
            sK, swork = K, work
            with nogil:
                status = spca_souter(&self.s, on_stop, &call.c, &swork[0], &iwork[0], &sK[0, 0])
        else:
            dK, dwork = K, work
            with nogil:
                status = spca_douter(&self.d, on_stop, &call.c, &dwork[0], &iwork[0], &dK[0, 0])
        call.check(status)
        return K

    def deflated(self, str method, Py_ssize_t[::1] index, floating[::1] value, floating[::1] image,
                 floating amount):
        """This operator with one more direction removed (spca_proto.h says what image and amount are)."""
        cdef Operator B = Operator()
        cdef Py_ssize_t t = self.t, size = sizeof(spca_dvector) + sizeof(void *) + sizeof(double)
        cdef spca_svector *sdirections
        cdef spca_dvector *ddirections
        cdef void **images
        cdef float *samounts
        cdef double *damounts
        cdef spca_deflation code = {"hotelling": SPCA_HOTELLING, "projection": SPCA_PROJECTION,
                                    "schur": SPCA_SCHUR}[method]
        B.n, B.p, B.m, B.covariance, B.single, B.dtype = self.n, self.p, self.m, self.covariance, self.single, self.dtype
        B.s, B.d, B.t = self.s, self.d, t + 1
        B.refs = (self.refs, index, value, image)
        B.steps = malloc((t + 1) * size)
        if B.steps == NULL:
            raise MemoryError
        images = <void **> (<char *> B.steps + (t + 1) * sizeof(spca_dvector))
        if floating is float:
            sdirections = <spca_svector *> B.steps
            samounts = <float *> (images + t + 1)
            if t > 0:
                memcpy(sdirections, self.s.direction, t * sizeof(spca_svector))
                memcpy(images, self.s.image, t * sizeof(void *))
                memcpy(samounts, self.s.amount, t * sizeof(float))
            sdirections[t] = svector(index, value)
            samounts[t] = amount
            images[t] = &image[0] if image is not None else NULL
            B.s.deflation, B.s.t, B.s.direction = code, t + 1, sdirections
            B.s.image, B.s.amount = <const float *const *> images, samounts
        else:
            ddirections = <spca_dvector *> B.steps
            damounts = <double *> (images + t + 1)
            if t > 0:
                memcpy(ddirections, self.d.direction, t * sizeof(spca_dvector))
                memcpy(images, self.d.image, t * sizeof(void *))
                memcpy(damounts, self.d.amount, t * sizeof(double))
            ddirections[t] = dvector(index, value)
            damounts[t] = amount
            images[t] = &image[0] if image is not None else NULL
            B.d.deflation, B.d.t, B.d.direction = code, t + 1, ddirections
            B.d.image, B.d.amount = <const double *const *> images, damounts
        return B

    def truncated_power(self, Py_ssize_t[::1] index, floating[::1] value, Py_ssize_t k,
                        Py_ssize_t max_iter, floating tol, progress=None, bint nonnegative=False):
        """From a start with the given nonzeros: (status, index, value, objective, n_iter)."""
        cdef Call call = Call(progress)
        cdef spca_status status
        cdef Py_ssize_t nnz = index.shape[0], room = max(nnz, k)
        cdef floating objective = 0
        cdef Py_ssize_t[::1] positions = np.empty(room, np.intp), iwork = np.empty(k, np.intp)
        cdef floating[::1] values = np.empty(room, self.dtype)
        cdef floating[::1] work = np.empty(self.work() + 2 * k, self.dtype)
        positions[:nnz] = index
        values[:nnz] = value
        while True:
            with nogil:
                if floating is float:
                    status = spca_struncated_power(&self.s, k, nonnegative, max_iter, tol, on_stop, &call.c, &nnz, &positions[0],
                                                   &values[0], &work[0], &iwork[0], &objective, &call.c.n_iter)
                else:
                    status = spca_dtruncated_power(&self.d, k, nonnegative, max_iter, tol, on_stop, &call.c, &nnz, &positions[0],
                                                   &values[0], &work[0], &iwork[0], &objective, &call.c.n_iter)
            if not call.again(status):
                break
            max_iter = 0
        call.check(status)
        return <int> status, np.asarray(positions)[:nnz], np.asarray(values)[:nnz], objective, call.c.n_iter

    def gpower(self, Py_ssize_t[::1] index, floating[::1] value, bint l0, floating gamma, Py_ssize_t max_iter,
               floating tol, progress=None):
        """From a start with the given nonzeros: (status, index, value, objective, w'Aw, n_iter)."""
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
                if floating is float:
                    status = spca_sgpower(&self.s, l0, gamma, max_iter, tol, on_stop, &call.c, &nnz, &positions[0], &values[0],
                                          &work[0], &iwork[0], &objective, &quadratic, &call.c.n_iter)
                else:
                    status = spca_dgpower(&self.d, l0, gamma, max_iter, tol, on_stop, &call.c, &nnz, &positions[0], &values[0],
                                          &work[0], &iwork[0], &objective, &quadratic, &call.c.n_iter)
            if not call.again(status):
                break
            max_iter = 0
        call.check(status)
        return (<int> status, np.asarray(positions)[:nnz].copy(), np.asarray(values)[:nnz].copy(), objective, quadratic,
                call.c.n_iter)

    def pmd(self, Py_ssize_t[::1] index, floating[::1] value, double bound, double sample_bound,
            Py_ssize_t max_iter, floating tol, progress=None, bint nonnegative=False):
        """From a start with the given nonzeros: (status, index, value, objective, n_iter).

        sample_bound 0: none, and the objective is v'A v; otherwise it is u'F v.
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
                if floating is float:
                    if sample_bound > 0:
                        status = spca_spmd_two_way(&self.s, bound, sample_bound, nonnegative, max_iter, tol, on_stop, &call.c,
                                                   &nnz, &positions[0], &values[0], &work[0], &iwork[0], &u[0], &objective,
                                                   &call.c.n_iter)
                    else:
                        status = spca_spmd(&self.s, bound, nonnegative, max_iter, tol, on_stop, &call.c, &nnz, &positions[0],
                                           &values[0], &work[0], &iwork[0], &objective, &call.c.n_iter)
                else:
                    if sample_bound > 0:
                        status = spca_dpmd_two_way(&self.d, bound, sample_bound, nonnegative, max_iter, tol, on_stop, &call.c,
                                                   &nnz, &positions[0], &values[0], &work[0], &iwork[0], &u[0], &objective,
                                                   &call.c.n_iter)
                    else:
                        status = spca_dpmd(&self.d, bound, nonnegative, max_iter, tol, on_stop, &call.c, &nnz, &positions[0],
                                           &values[0], &work[0], &iwork[0], &objective, &call.c.n_iter)
            if not call.again(status):
                break
            max_iter = 0
        call.check(status)
        return <int> status, np.asarray(positions)[:nnz].copy(), np.asarray(values)[:nnz].copy(), objective, call.c.n_iter

    def scotlass(self, floating[::1] start, floating[::1, :] Q, double bound, Py_ssize_t max_iter,
                 floating tol, progress=None):
        """From a dense start, orthogonal to the columns of Q: (status, v, objective, n_iter)."""
        cdef Call call = Call(progress)
        cdef spca_status status
        cdef Py_ssize_t t = Q.shape[1]
        cdef floating objective = 0
        cdef floating[::1] v = np.array(start), work = np.empty(2 * self.p + max(3 * self.p, self.m + self.t), self.dtype)
        cdef double[::1] dwork = np.empty(t * t + 5 * t + 1)
        cdef const floating *basis = &Q[0, 0] if t > 0 else NULL
        while True:
            with nogil:
                if floating is float:
                    status = spca_sscotlass(&self.s, t, basis, bound, max_iter, tol, on_stop, &call.c, &v[0], &work[0], &dwork[0],
                                            &objective, &call.c.n_iter)
                else:
                    status = spca_dscotlass(&self.d, t, basis, bound, max_iter, tol, on_stop, &call.c, &v[0], &work[0], &dwork[0],
                                            &objective, &call.c.n_iter)
            if not call.again(status):
                break
            max_iter = 0
        call.check(status)
        return <int> status, np.asarray(v), objective, call.c.n_iter


cdef spca_svector svector(Py_ssize_t[::1] index, const float[::1] value) noexcept nogil:
    cdef spca_svector v
    v.nnz, v.value = value.shape[0], &value[0]
    v.index = &index[0] if index is not None else NULL
    return v

cdef spca_dvector dvector(Py_ssize_t[::1] index, const double[::1] value) noexcept nogil:
    cdef spca_dvector v
    v.nnz, v.value = value.shape[0], &value[0]
    v.index = &index[0] if index is not None else NULL
    return v


def dense(const floating[:, :] X, bint covariance, const floating[::1] mean, const floating[::1] weight,
          double range_, double factor):
    """X in C or Fortran order, by reference; or, symmetric, a covariance."""
    cdef Operator A = Operator()
    cdef bint row_major = X.strides[1] == sizeof(floating)
    cdef Py_ssize_t ld = X.strides[0 if row_major else 1] // <Py_ssize_t> sizeof(floating)
    A.set_shape(X.shape[0], X.shape[1], covariance, range_, factor, sizeof(floating) == 4)
    A.refs = (X, mean, weight)
    if floating is float:
        A.s.forward, A.s.backward, A.s.columns = spca_sdense_forward, spca_sdense_backward, spca_sdense_columns
        A.s.data, A.s.row_major, A.s.ld = &X[0, 0], row_major, ld
        A.s.mean = &mean[0] if mean is not None else NULL
        A.s.weight = &weight[0] if weight is not None else NULL
    else:
        A.d.forward, A.d.backward, A.d.columns = spca_ddense_forward, spca_ddense_backward, spca_ddense_columns
        A.d.data, A.d.row_major, A.d.ld = &X[0, 0], row_major, ld
        A.d.mean = &mean[0] if mean is not None else NULL
        A.d.weight = &weight[0] if weight is not None else NULL
    return A


ctypedef fused index_t:
    int32_t
    int64_t


def compressed(Py_ssize_t n, Py_ssize_t p, bint row_major, const floating[::1] data,
               const index_t[::1] indices, const index_t[::1] indptr, bint covariance,
               const floating[::1] mean, const floating[::1] weight, double range_, double factor):
    """CSR (row_major) or CSC arrays, by reference."""
    cdef Operator A = Operator()
    cdef const void *indices_ = &indices[0] if indices.shape[0] else NULL
    A.set_shape(n, p, covariance, range_, factor, sizeof(floating) == 4)
    A.refs = (data, indices, indptr, mean, weight)
    if floating is float:
        A.s.forward, A.s.backward, A.s.columns = spca_scompressed_forward, spca_scompressed_backward, spca_scompressed_columns
        A.s.data = &data[0] if data.shape[0] else NULL
        A.s.indices, A.s.indptr, A.s.wide, A.s.row_major = indices_, &indptr[0], sizeof(index_t) == 8, row_major
        A.s.mean = &mean[0] if mean is not None else NULL
        A.s.weight = &weight[0] if weight is not None else NULL
    else:
        A.d.forward, A.d.backward, A.d.columns = spca_dcompressed_forward, spca_dcompressed_backward, spca_dcompressed_columns
        A.d.data = &data[0] if data.shape[0] else NULL
        A.d.indices, A.d.indptr, A.d.wide, A.d.row_major = indices_, &indptr[0], sizeof(index_t) == 8, row_major
        A.d.mean = &mean[0] if mean is not None else NULL
        A.d.weight = &weight[0] if weight is not None else NULL
    return A


def products(owner, Py_ssize_t n, Py_ssize_t p, bint covariance, double factor, bint single):
    """owner.forward(v) -> F v (m) and, for data, owner.backward(f) -> F'f (p), in the operator's dtype."""
    cdef Operator A = Operator()
    A.set_shape(n, p, covariance, 1, factor, single)
    A.refs = owner
    A.s.forward, A.s.backward, A.s.columns = scall_forward, scall_backward, spca_scolumns_by_products
    A.d.forward, A.d.backward, A.d.columns = dcall_forward, dcall_backward, spca_dcolumns_by_products
    A.s.owner = A.d.owner = <void *> owner
    return A


def leading_eigenvector(floating[:, ::1] G):
    """Largest eigenvalue and its unit eigenvector of symmetric G, which is destroyed."""
    cdef Py_ssize_t k = G.shape[0]
    cdef Call call = Call()
    cdef spca_status status
    cdef floating value = 0
    dtype = np.float32 if floating is float else np.float64
    cdef floating[::1] vector = np.empty(k, dtype), work = np.empty(27 * k, dtype)
    cdef char[::1] iwork = np.empty(12 * k * sizeof(blas_int), np.int8)
    with nogil:
        if floating is float:
            status = spca_sleading_eigenvector(k, &G[0, 0], &work[0], <blas_int *> &iwork[0], &value, &vector[0])
        else:
            status = spca_dleading_eigenvector(k, &G[0, 0], &work[0], <blas_int *> &iwork[0], &value, &vector[0])
    call.check(status)
    return value, np.asarray(vector)


# ---- statistics of the input -----------------------------------------------------------------------

def dense_statistics(const floating[:, :] X, bint center, int8_t[:, ::1] shadow=None):
    """Rows: mean, sum of squared deviations, lowest, highest entry of each column (spca_proto.h).

    With a shadow, which is filled: also its steps, its errors and the norms of its columns.
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
        if floating is float:
            status = spca_sdense_statistics(n, p, &X[0, 0], ld, row_major, center, shadow_ld, on_stop, &call.c, &o[0, 0],
                                            &o[1, 0], &o[2, 0], &o[3, 0], q, step, error, &size[0])
        else:
            status = spca_ddense_statistics(n, p, &X[0, 0], ld, row_major, center, shadow_ld, on_stop, &call.c, &o[0, 0],
                                            &o[1, 0], &o[2, 0], &o[3, 0], q, step, error, &size[0])
    call.check(status)
    return out, np.asarray(size)


def compressed_statistics(Py_ssize_t n, Py_ssize_t p, bint row_major, const floating[::1] data,
                          const index_t[::1] indices, const index_t[::1] indptr):
    """The same of CSR or CSC arrays."""
    cdef Call call = Call()
    cdef spca_status status
    out = np.empty((5, p))
    cdef double[:, ::1] o = out
    cdef const floating *x = &data[0] if data.shape[0] else NULL
    cdef const void *i = &indices[0] if indices.shape[0] else NULL
    cdef bint wide = sizeof(index_t) == 8
    with nogil:
        if floating is float:
            status = spca_scompressed_statistics(n, p, x, &indptr[0], i, wide, row_major, on_stop, &call.c,
                                                 &o[0, 0], &o[1, 0], &o[2, 0], &o[3, 0], &o[4, 0])
        else:
            status = spca_dcompressed_statistics(n, p, x, &indptr[0], i, wide, row_major, on_stop, &call.c,
                                                 &o[0, 0], &o[1, 0], &o[2, 0], &o[3, 0], &o[4, 0])
    call.check(status)
    return out[:3]


def symmetry(const floating[:, :] A):
    """(largest |a_ij|, largest |a_ij - a_ji|, largest excess over a semidefinite 2 x 2 minor)."""
    cdef Call call = Call()
    cdef spca_status status
    cdef double largest = 0, asymmetry = 0, excess = 0
    cdef Py_ssize_t ld = max(A.strides[0], A.strides[1]) // <Py_ssize_t> sizeof(floating)
    with nogil:
        if floating is float:
            status = spca_ssymmetry(A.shape[0], &A[0, 0], ld, on_stop, &call.c, &largest, &asymmetry, &excess)
        else:
            status = spca_dsymmetry(A.shape[0], &A[0, 0], ld, on_stop, &call.c, &largest, &asymmetry, &excess)
    call.check(status)
    return largest, asymmetry, excess


# ---- selection and thresholds ----------------------------------------------------------------------

def select_largest(const floating[::1] x, Py_ssize_t k):
    """Positions of the k largest |x|, ascending, ties to the lower index; any positions after them where NaN leave too few."""
    cdef Py_ssize_t[::1] index = np.zeros(max(k, 1), np.intp)
    cdef floating[::1] work = np.empty(x.shape[0], np.float32 if floating is float else np.float64)
    with nogil:
        if floating is float:
            spca_sselect_largest(x.shape[0], &x[0], k, &work[0], &index[0])
        else:
            spca_dselect_largest(x.shape[0], &x[0], k, &work[0], &index[0])
    return np.asarray(index)[:k]


def truncate(floating[::1] x, Py_ssize_t k):
    """T_k(x), in place."""
    cdef floating[::1] work = np.empty(x.shape[0], np.float32 if floating is float else np.float64)
    with nogil:
        if floating is float:
            spca_struncate(x.shape[0], k, &x[0], &work[0])
        else:
            spca_dtruncate(x.shape[0], k, &x[0], &work[0])


def soft_threshold(const floating[::1] a, double level, floating[::1] out):
    """S(a, level); out may be a."""
    with nogil:
        if floating is float:
            spca_ssoft_threshold(a.shape[0], &a[0], <float> level, &out[0])
        else:
            spca_dsoft_threshold(a.shape[0], &a[0], level, &out[0])


def l1_threshold(const floating[::1] a, double bound, int nonnegative, floating[::1] w):
    """The level, or None if an entry is not finite; the maximizer goes to w, which may be a."""
    cdef floating[::1] work = w
    cdef double level
    cdef spca_status status
    if &w[0] == &a[0]:
        work = np.empty(a.shape[0], np.float32 if floating is float else np.float64)
    with nogil:
        if floating is float:
            status = spca_sl1_threshold(a.shape[0], &a[0], bound, nonnegative, &work[0], &w[0], &level)
        else:
            status = spca_dl1_threshold(a.shape[0], &a[0], bound, nonnegative, &work[0], &w[0], &level)
    return level if status == SPCA_OK else None


def l1_ball_level(const floating[::1] a, double bound, double start=0):
    """Where sum (|a| - level)_+ is the bound; 0 where the magnitudes sum to no more."""
    cdef double level
    with nogil:
        if floating is float:
            level = spca_sl1_ball_level(a.shape[0], &a[0], bound, start)
        else:
            level = spca_dl1_ball_level(a.shape[0], &a[0], bound, start)
    return level


def l1_kept_level(const floating[::1] a, double bound):
    """The largest magnitude from which on the magnitudes sum to more than the bound, or 0."""
    cdef floating level
    cdef floating[::1] work = np.empty(a.shape[0], np.float32 if floating is float else np.float64)
    with nogil:
        if floating is float:
            level = spca_sl1_kept_level(a.shape[0], &a[0], bound, &work[0])
        else:
            level = spca_dl1_kept_level(a.shape[0], &a[0], bound, &work[0])
    return level


# ---- greedy search -----------------------------------------------------------------------------------

def bordered_eigenvalues(const floating[:, ::1] C, Py_ssize_t[::1] candidate, const double[::1] diagonal,
                         const double[::1] pole, const double[::1, :] W, const double[::1] norm=None,
                         const double[:, ::1] Q=None, const double[::1, :] R=None, double strength=0, double least=0):
    """Largest eigenvalue on the support with each candidate more (spca_proto.h)."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t k = C.shape[0], p = C.shape[1], w = pole.shape[0], t = 0 if Q is None else Q.shape[0]
    cdef Py_ssize_t count = candidate.shape[0]
    cdef const double *norm_ = &norm[0] if norm is not None else NULL
    cdef const double *Q_ = &Q[0, 0] if t > 0 else NULL
    cdef const double *R_ = &R[0, 0] if t > 0 else NULL
    cdef double[::1] value = np.empty(count), work = np.empty(p + 64 * (k + t + 2 * w) + 3 * w)
    if count == 0:
        return np.asarray(value)
    with nogil:
        if floating is float:
            status = spca_sbordered_eigenvalues(p, k, w, t, count, &candidate[0], &C[0, 0], &diagonal[0], &pole[0],
                                                &W[0, 0], norm_, Q_, R_, strength, least, on_stop, &call.c, &work[0], &value[0])
        else:
            status = spca_dbordered_eigenvalues(p, k, w, t, count, &candidate[0], &C[0, 0], &diagonal[0], &pole[0],
                                                &W[0, 0], norm_, Q_, R_, strength, least, on_stop, &call.c, &work[0], &value[0])
    call.check(status)
    return np.asarray(value)


def deleted_eigenvalues(const double[::1] pole, const double[::1, :] W):
    """The same without each variable of the support."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t k = W.shape[0], w = pole.shape[0]
    cdef double[::1] value = np.empty(k), work = np.empty(2 * w)
    with nogil:
        status = spca_ddeleted_eigenvalues(k, w, &pole[0], &W[0, 0], on_stop, &call.c, &work[0], &value[0])
    call.check(status)
    return np.asarray(value)
# ---- the semidefinite relaxation --------------------------------------------------------------------


def dspca(const double[:, ::1] A, bint constrained, double limit, double tol, Py_ssize_t max_iter, progress=None):
    """(status, M, objective, bound, n_iter) of symmetric A; see spca_proto.h for what limit is."""
    cdef Call call = Call(progress)
    cdef spca_status status
    cdef Py_ssize_t p = A.shape[0], i, j
    cdef double primal = 0, dual = 0
    cdef double[:, ::1] M = np.empty((p, p))
    cdef double[::1] work = np.empty(4 * p * p + 28 * p)
    cdef char[::1] iwork = np.empty(12 * p * sizeof(blas_int), np.int8)
    with nogil:
        status = spca_ddspca(p, &A[0, 0], constrained, limit, tol, max_iter, on_stop, &call.c, &work[0],
                             <blas_int *> &iwork[0], &M[0, 0], &primal, &dual, &call.c.n_iter)
    if call.again(status):
        status = SPCA_NOT_CONVERGED
        for j in range(p):
            for i in range(j):
                M[i, j] = M[j, i]
    call.check(status)
    return <int> status, np.asarray(M), primal, dual, call.c.n_iter

# ---- elastic net -----------------------------------------------------------------------------------


def elastic_net(const double[:, ::1] G, const double[::1] c, Py_ssize_t limit, double ridge, double floor,
                double least, const Py_ssize_t[::1] index, const double[::1] value):
    """(status, index, value, level) from a guess of the support and its signs; see spca_proto.h."""
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
        status = spca_delastic_net(p, limit, &G[0, 0], &c[0], ridge, floor, least, guess, on_stop, &call.c,
                                   &chosen[0], &values[0], &work[0], &iwork[0], &count, &level)
    call.check(status)
    return <int> status, np.asarray(chosen)[:count], np.asarray(values)[:count], level


# ---- branch and bound ------------------------------------------------------------------------------

def branch(const double[:, ::1] N, Py_ssize_t k, uint8_t[:, ::1] pool, Py_ssize_t[::1] which,
           Py_ssize_t[:, ::1] empty, double[::1] work, progress=None):
    """(born, excess) of the children of some nodes of the pool (spca_proto.h), written to its empty rows."""
    cdef Call call = Call(progress, 0.01)  # which keeps a limit of time
    cdef spca_status status
    cdef Py_ssize_t p = N.shape[0], count = which.shape[0], room = empty.shape[1]
    cdef Py_ssize_t[::1] born = np.empty(count, np.intp), iwork = np.empty(p + k, np.intp)
    cdef double[:, ::1] excess = np.empty((count, room))
    with nogil:
        status = spca_dbranch(p, k, &N[0, 0], count, &which[0], room, &empty[0, 0], on_stop, &call.c, &pool[0, 0],
                              &work[0], &iwork[0], &born[0], &excess[0, 0])
    call.check(status)
    return np.asarray(born), np.asarray(excess)


def branch_work(Py_ssize_t p, Py_ssize_t k):
    """The length of `work`."""
    return spca_dbranch_work(p, k)


# ---- sparse clustering -------------------------------------------------------------------------------

def add_distances(const floating[:, ::1] T, const floating[::1] w, bint squared, double[::1] D):
    """D += the weighted distances between samples in the variables T (b x n), by pairs."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t b = T.shape[0], n = T.shape[1]
    with nogil:
        if floating is float:
            status = spca_sadd_distances(n, b, &T[0, 0], &w[0], squared, on_stop, &call.c, &D[0])
        else:
            status = spca_dadd_distances(n, b, &T[0, 0], &w[0], squared, on_stop, &call.c, &D[0])
    call.check(status)


def absolute_products(const floating[:, ::1] T, const floating[::1] u):
    """Of each variable, sum u_ii' |t_i - t_i'| over the pairs of samples."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t b = T.shape[0], n = T.shape[1]
    cdef floating[::1] work = np.empty(SPCA_LANES * n, np.float32 if floating is float else np.float64)
    cdef double[::1] y = np.empty(b)
    with nogil:
        if floating is float:
            status = spca_sabsolute_products(n, b, &T[0, 0], &u[0], on_stop, &call.c, &work[0], &y[0])
        else:
            status = spca_dabsolute_products(n, b, &T[0, 0], &u[0], on_stop, &call.c, &work[0], &y[0])
    call.check(status)
    return np.asarray(y)


# ---- rotations -------------------------------------------------------------------------------------

def orthomax(floating[::1, :] Y, double gamma, Py_ssize_t max_iter, double tol):
    """Y <- Y R in place: (status, R in double, n_iter)."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t p = Y.shape[0], r = Y.shape[1]
    cdef double[::1, :] R = np.empty((r, r), order="F")
    cdef double[::1] work
    if floating is float:
        work = np.empty(spca_sorthomax_work(p, r))
        with nogil:
            status = spca_sorthomax(p, r, gamma, max_iter, tol, on_stop, &call.c, &Y[0, 0], &work[0], &R[0, 0], &call.c.n_iter)
    else:
        work = np.empty(spca_dorthomax_work(p, r))
        with nogil:
            status = spca_dorthomax(p, r, gamma, max_iter, tol, on_stop, &call.c, &Y[0, 0], &work[0], &R[0, 0], &call.c.n_iter)
    call.check(status)
    return <int> status, np.asarray(R), call.c.n_iter


def l1_sweeps(floating[::1, :] Y, Py_ssize_t max_iter, double tol, double[::1, :] R):
    """Y <- Y T in place, R <- R T, for the sum of magnitudes: (status, n_iter)."""
    cdef Call call = Call()
    cdef spca_status status
    cdef Py_ssize_t p = Y.shape[0], r = Y.shape[1]
    cdef double[::1] work = np.empty(3 * p)
    cdef Py_ssize_t[::1] iwork = np.empty(r + r * r, np.intp)
    with nogil:
        if floating is float:
            status = spca_sl1_sweeps(p, r, max_iter, tol, on_stop, &call.c, &Y[0, 0], &work[0], &iwork[0], &R[0, 0], &call.c.n_iter)
        else:
            status = spca_dl1_sweeps(p, r, max_iter, tol, on_stop, &call.c, &Y[0, 0], &work[0], &iwork[0], &R[0, 0], &call.c.n_iter)
    call.check(status)
    return <int> status, call.c.n_iter


# ---- deflation in place ----------------------------------------------------------------------------

def deflate_covariance(str method, floating[:, :] A, Py_ssize_t[::1] index, floating[::1] value):
    """Hotelling, projection or Schur complement deflation of a full symmetric A.

    False, and A unchanged, if A x is not finite.
    """
    cdef Py_ssize_t p = A.shape[0], ld = max(A.strides[0], A.strides[1]) // <Py_ssize_t> sizeof(floating)
    cdef floating[::1] work = np.empty(2 * p, np.float32 if floating is float else np.float64)
    cdef int code = ["hotelling", "projection", "schur"].index(method)
    cdef spca_status status
    with nogil:
        if floating is float:
            if code == 0:
                status = spca_sdeflate_hotelling(ld, svector(index, value), &A[0, 0])
            elif code == 1:
                status = spca_sdeflate_projection(p, ld, svector(index, value), &A[0, 0], &work[0])
            else:
                status = spca_sdeflate_schur(p, ld, svector(index, value), &A[0, 0], &work[0])
        else:
            if code == 0:
                status = spca_ddeflate_hotelling(ld, dvector(index, value), &A[0, 0])
            elif code == 1:
                status = spca_ddeflate_projection(p, ld, dvector(index, value), &A[0, 0], &work[0])
            else:
                status = spca_ddeflate_schur(p, ld, dvector(index, value), &A[0, 0], &work[0])
    return status == SPCA_OK


def deflate_data(str method, floating[:, :] X, Py_ssize_t[::1] index, floating[::1] value, const floating[::1] mean):
    """Projection or Schur complement deflation of data in C or Fortran order.

    False, and X unchanged, if X x is not finite.
    """
    cdef Py_ssize_t n = X.shape[0], p = X.shape[1]
    cdef bint row_major = X.strides[1] == sizeof(floating)
    cdef Py_ssize_t ld = X.strides[0 if row_major else 1] // <Py_ssize_t> sizeof(floating)
    cdef floating[::1] work = np.empty(n + p, np.float32 if floating is float else np.float64)
    cdef const floating *mean_ = &mean[0] if mean is not None else NULL
    cdef bint projection = method == "projection"
    cdef spca_status status
    with nogil:
        if floating is float:
            if projection:
                status = spca_sdeflate_data_projection(n, ld, row_major, svector(index, value), &X[0, 0], &work[0])
            else:
                status = spca_sdeflate_data_schur(n, p, ld, row_major, mean_, svector(index, value), &X[0, 0], &work[0])
        else:
            if projection:
                status = spca_ddeflate_data_projection(n, ld, row_major, dvector(index, value), &X[0, 0], &work[0])
            else:
                status = spca_ddeflate_data_schur(n, p, ld, row_major, mean_, dvector(index, value), &X[0, 0], &work[0])
    return status == SPCA_OK


# ---- for other Cython packages: documented in _core.pxd, frozen by tests/test_downstream.py ----------

cdef int spca_truncate(Py_ssize_t p, Py_ssize_t k, floating *x, floating *work) noexcept nogil:
    if p < 0 or not 0 <= k <= p:
        return SPCACORE_INVALID
    if floating is float:
        spca_struncate(p, k, x, work)
    else:
        spca_dtruncate(p, k, x, work)
    return SPCACORE_OK

cdef int spca_soft_threshold(Py_ssize_t p, const floating *a, floating level, floating *out) noexcept nogil:
    if p < 0 or not level >= 0:
        return SPCACORE_INVALID
    if floating is float:
        spca_ssoft_threshold(p, a, level, out)
    else:
        spca_dsoft_threshold(p, a, level, out)
    return SPCACORE_OK

cdef int spca_l1_threshold(Py_ssize_t p, const floating *a, double bound, bint nonnegative, floating *work,
                           floating *w, double *level) noexcept nogil:
    if p < 1 or not bound >= 1:
        return SPCACORE_INVALID
    bound = min(bound, sqrt(<double> p))
    if floating is float:
        return spca_sl1_threshold(p, a, bound, 2 * nonnegative, work, w, level)
    else:
        return spca_dl1_threshold(p, a, bound, 2 * nonnegative, work, w, level)

cdef Py_ssize_t spca_varimax_work(Py_ssize_t p, Py_ssize_t r) noexcept nogil:
    return max(spca_sorthomax_work(p, r), spca_dorthomax_work(p, r)) if p > 0 and r > 0 else 0

cdef int spca_varimax(Py_ssize_t p, Py_ssize_t r, double gamma, Py_ssize_t max_iter, double tol,
                      int (*stop)(void *) noexcept nogil, void *ctx, floating *Y, double *work, double *R,
                      Py_ssize_t *n_iter) noexcept nogil:
    if p < 1 or r < 1 or max_iter < 0 or not 0 <= gamma < INFINITY or not tol >= 0:
        return SPCACORE_INVALID
    n_iter[0] = 0
    if floating is float:
        return spca_sorthomax(p, r, gamma, max_iter, tol, stop, ctx, Y, work, R, n_iter)
    else:
        return spca_dorthomax(p, r, gamma, max_iter, tol, stop, ctx, Y, work, R, n_iter)

cdef int spca_deflate_hotelling(Py_ssize_t p, floating *A, Py_ssize_t ld, const floating *x, floating *work,
                                Py_ssize_t *iwork) noexcept nogil:
    if p < 1 or ld < p:
        return SPCACORE_INVALID
    if floating is float:
        return spca_sdeflate_hotelling(ld, spca_sgather(p, x, iwork, work), A)
    else:
        return spca_ddeflate_hotelling(ld, spca_dgather(p, x, iwork, work), A)

cdef int spca_deflate_projection(Py_ssize_t p, floating *A, Py_ssize_t ld, const floating *x, floating *work,
                                 Py_ssize_t *iwork) noexcept nogil:
    if p < 1 or ld < p:
        return SPCACORE_INVALID
    if floating is float:
        return spca_sdeflate_projection(p, ld, spca_sgather(p, x, iwork, work), A, work + p)
    else:
        return spca_ddeflate_projection(p, ld, spca_dgather(p, x, iwork, work), A, work + p)

cdef int spca_deflate_schur(Py_ssize_t p, floating *A, Py_ssize_t ld, const floating *x, floating *work,
                            Py_ssize_t *iwork) noexcept nogil:
    if p < 1 or ld < p:
        return SPCACORE_INVALID
    if floating is float:
        return spca_sdeflate_schur(p, ld, spca_sgather(p, x, iwork, work), A, work + p)
    else:
        return spca_ddeflate_schur(p, ld, spca_dgather(p, x, iwork, work), A, work + p)

cdef int spca_deflate_data_projection(Py_ssize_t n, Py_ssize_t p, floating *X, Py_ssize_t ld, bint row_major,
                                      const floating *x, floating *work, Py_ssize_t *iwork) noexcept nogil:
    if n < 1 or p < 1 or ld < (p if row_major else n):
        return SPCACORE_INVALID
    if floating is float:
        return spca_sdeflate_data_projection(n, ld, row_major, spca_sgather(p, x, iwork, work), X, work + p)
    else:
        return spca_ddeflate_data_projection(n, ld, row_major, spca_dgather(p, x, iwork, work), X, work + p)

cdef int spca_deflate_data_schur(Py_ssize_t n, Py_ssize_t p, floating *X, Py_ssize_t ld, bint row_major,
                                 const floating *mean, const floating *x, floating *work,
                                 Py_ssize_t *iwork) noexcept nogil:
    if n < 1 or p < 1 or ld < (p if row_major else n):
        return SPCACORE_INVALID
    if floating is float:
        return spca_sdeflate_data_schur(n, p, ld, row_major, mean, spca_sgather(p, x, iwork, work), X, work + p)
    else:
        return spca_ddeflate_data_schur(n, p, ld, row_major, mean, spca_dgather(p, x, iwork, work), X, work + p)

cdef int spca_column_statistics(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                                double *work, floating *mean, double *variance) noexcept nogil:
    if n < 1 or p < 1 or ld < (p if row_major else n):
        return SPCACORE_INVALID
    if floating is float:
        return spca_scolumn_statistics(n, p, X, ld, row_major, work, mean, variance)
    else:
        return spca_dcolumn_statistics(n, p, X, ld, row_major, work, mean, variance)

cdef int spca_tpower_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, Py_ssize_t k, bint nonnegative,
                                Py_ssize_t max_iter, floating tol, int (*stop)(void *) noexcept nogil, void *ctx,
                                floating *x, floating *work, Py_ssize_t *iwork, floating *value,
                                Py_ssize_t *n_iter) noexcept nogil:
    if p < 1 or ld < p or not 1 <= k <= p or max_iter < 0 or not tol >= 0:
        return SPCACORE_INVALID
    if floating is float:
        return spca_stpower_covariance(p, A, ld, k, nonnegative, max_iter, tol, stop, ctx, x, work, iwork, value, n_iter)
    else:
        return spca_dtpower_covariance(p, A, ld, k, nonnegative, max_iter, tol, stop, ctx, x, work, iwork, value, n_iter)

cdef int spca_tpower_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                          const floating *mean, const floating *weight, Py_ssize_t k, bint nonnegative,
                          Py_ssize_t max_iter, floating tol, int (*stop)(void *) noexcept nogil, void *ctx,
                          floating *x, floating *work, Py_ssize_t *iwork, floating *value,
                          Py_ssize_t *n_iter) noexcept nogil:
    if (n < 1 or p < 1 or ld < (p if row_major else n) or not 1 <= k <= p or max_iter < 0
            or not tol >= 0):
        return SPCACORE_INVALID
    if floating is float:
        return spca_stpower_data(n, p, X, ld, row_major, mean, weight, k, nonnegative, max_iter, tol, stop, ctx, x,
                                 work, iwork, value, n_iter)
    else:
        return spca_dtpower_data(n, p, X, ld, row_major, mean, weight, k, nonnegative, max_iter, tol, stop, ctx, x,
                                 work, iwork, value, n_iter)

cdef int spca_refit_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, floating *x, floating *work,
                               Py_ssize_t *iwork, floating *value) noexcept nogil:
    if p < 1 or ld < p:
        return SPCACORE_INVALID
    if floating is float:
        return spca_srefit_covariance(p, A, ld, x, work, iwork, value)
    else:
        return spca_drefit_covariance(p, A, ld, x, work, iwork, value)

cdef int spca_refit_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                         const floating *mean, const floating *weight, floating *x, floating *work,
                         Py_ssize_t *iwork, floating *value) noexcept nogil:
    if n < 1 or p < 1 or ld < (p if row_major else n):
        return SPCACORE_INVALID
    if floating is float:
        return spca_srefit_data(n, p, X, ld, row_major, mean, weight, x, work, iwork, value)
    else:
        return spca_drefit_data(n, p, X, ld, row_major, mean, weight, x, work, iwork, value)

cdef int spca_explained_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, Py_ssize_t r, const floating *V,
                                   floating *work, floating *variance) noexcept nogil:
    if p < 1 or ld < p or not 0 <= r <= p:
        return SPCACORE_INVALID
    if floating is float:
        return spca_sexplained_covariance(p, A, ld, r, V, work, variance)
    else:
        return spca_dexplained_covariance(p, A, ld, r, V, work, variance)

cdef int spca_explained_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                             const floating *mean, const floating *weight, Py_ssize_t r, const floating *V,
                             floating *work, floating *variance) noexcept nogil:
    if n < 1 or p < 1 or ld < (p if row_major else n) or not 0 <= r <= p:
        return SPCACORE_INVALID
    if floating is float:
        return spca_sexplained_data(n, p, X, ld, row_major, mean, weight, r, V, work, variance)
    else:
        return spca_dexplained_data(n, p, X, ld, row_major, mean, weight, r, V, work, variance)
