# cython: language_level=3
"""Kernels for other Cython packages: `from spcacore._core cimport spca_tpower_covariance`.

Every function runs without the GIL, allocates nothing, keeps no state and may be called from many
threads at once.  `floating` is float or double, one of them throughout a call.  Sizes and lengths
are numbers of entries.  Functions return a status; where it is negative there is no result, and vectors and
matrices that the function would change are as they were.  Signatures do not change within a major version.

Matrices: symmetric A (p, p) has all its entries, rows ld >= p apart.  Data X (n, p) are in C order
(row_major, rows ld >= p apart) or in Fortran order (columns ld >= n apart) and stand for
A = F'F/(n - 1), F = (X - mean) * weight, with 1 in place of n - 1 if n = 1; mean (p) and weight (p) may be
NULL.  Without a weight, entries of any size are scaled by a power of two, that of the largest entry of X or of
the diagonal of A, so that nothing overflows on the way; with one, F should be of ordinary size.  Vectors x (p)
are dense.  They may have any norm, except in deflations.  The entry of largest magnitude of a result is positive.

NaN and infinity: every entry of a vector must be finite, and so must what the function multiplies of a matrix.
Otherwise the status is SPCACORE_NONFINITE.  A function does not read what it does not need: all deflations except
Schur's read and change only the rows and columns of A, or the columns of X, where x is not zero.

A may be zero or indefinite.  Arrays must not overlap, unless a comment says that they may.  A call takes at most
16 KB of stack, including the stack that BLAS takes with one thread (measured with OpenBLAS).

stop may be NULL; otherwise it is called with ctx once in each iteration, and every few milliseconds of long ones.
A nonzero result ends the call.  It runs without the GIL.
"""
from cython cimport floating

cdef enum:
    SPCACORE_OK = 0
    SPCACORE_NOT_CONVERGED = 1  # after max_iter iterations: the result so far
    SPCACORE_STOPPED = -1
    SPCACORE_ZERO_VECTOR = -2   # x, or A x, is zero
    SPCACORE_NONFINITE = -3     # a product, or the input, is NaN or infinite
    SPCACORE_LAPACK_FAILED = -5  # no longer returned
    SPCACORE_INVALID = -6       # a size or parameter out of range; nothing was done
    SPCACORE_HOTELLING = 1      # deflations of spca_components_*
    SPCACORE_PROJECTION = 2
    SPCACORE_SCHUR = 3

# x <- x with its k entries of largest magnitude alone, ties to the lower index, 0 <= k <= p.  work (p)
cdef int spca_truncate(Py_ssize_t p, Py_ssize_t k, floating *x, floating *work) noexcept nogil

# out_i <- sign(a_i) max(|a_i| - level, 0), level >= 0.  out may be a
cdef int spca_soft_threshold(Py_ssize_t p, const floating *a, floating level, floating *out) noexcept nogil

# w <- argmax w'a over ||w|| <= 1, ||w||_1 <= bound, bound >= 1, and, nonnegative, w >= 0: the soft
# threshold of a at the level, normalized; zero for a = 0.  w may be a, work (p) may be w if w is not a
cdef int spca_l1_threshold(Py_ssize_t p, const floating *a, double bound, bint nonnegative, floating *work,
                           floating *w, double *level) noexcept nogil

# Y <- Y R, R (r, r) orthogonal, maximizing sum_j [sum_i y_ij^4 - (gamma/p) (sum_i y_ij^2)^2]: varimax with
# gamma = 1, quartimax with 0.  Y (p, r) and R in Fortran order.  Columns are turned until no turn by more
# than about tol radians is left (1e-6 is usual).  work (spca_varimax_work)
cdef int spca_varimax(Py_ssize_t p, Py_ssize_t r, double gamma, Py_ssize_t max_iter, double tol,
                      int (*stop)(void *) noexcept nogil, void *ctx, floating *Y, double *work, double *R,
                      Py_ssize_t *n_iter) noexcept nogil
cdef Py_ssize_t spca_varimax_work(Py_ssize_t p, Py_ssize_t r) noexcept nogil

# In place, for unit x; the matrix is unchanged unless the status is SPCACORE_OK.
# A <- A - (x'A x) xx', may become indefinite.  work (p), iwork (p)
cdef int spca_deflate_hotelling(Py_ssize_t p, floating *A, Py_ssize_t ld, const floating *x, floating *work,
                                Py_ssize_t *iwork) noexcept nogil
# A <- (I - xx') A (I - xx').  work (3p), iwork (p)
cdef int spca_deflate_projection(Py_ssize_t p, floating *A, Py_ssize_t ld, const floating *x, floating *work,
                                 Py_ssize_t *iwork) noexcept nogil
# A <- A - A xx'A/(x'A x); A stays as it was, with SPCACORE_OK, if |x'A x| <= 4 eps k max |A_ii|, x with k nonzeros.
# work (2p), iwork (p)
cdef int spca_deflate_schur(Py_ssize_t p, floating *A, Py_ssize_t ld, const floating *x, floating *work,
                            Py_ssize_t *iwork) noexcept nogil
# X <- X (I - xx'); means become mean - (mean'x) x.  work (n + p), iwork (p)
cdef int spca_deflate_data_projection(Py_ssize_t n, Py_ssize_t p, floating *X, Py_ssize_t ld, bint row_major,
                                      const floating *x, floating *work, Py_ssize_t *iwork) noexcept nogil
# X <- (I - uu') X, u = (X - mean) x normalized; means stay.  X stays as it was, with SPCACORE_OK, if
# ||(X - mean) x|| <= 4 eps sqrt(kn) max |x_ij - mean_j|.  work (n + 2p), iwork (p)
cdef int spca_deflate_data_schur(Py_ssize_t n, Py_ssize_t p, floating *X, Py_ssize_t ld, bint row_major,
                                 const floating *mean, const floating *x, floating *work,
                                 Py_ssize_t *iwork) noexcept nogil

# Means (p) and variances (p) over n - 1.  A variance is exactly 0 where a column is constant, as it is in a single
# sample.  X is read once.  work (3p)
cdef int spca_column_statistics(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                                double *work, floating *mean, double *variance) noexcept nogil

# x <- T_k(A x)/||.|| (nonnegative: of its positive part) from the start x, of any norm, until the support is
# stable and x'A x grows by no more than a fraction tol; 1 <= k <= p.  value = x'A x, infinite or 0 where that
# leaves the number range.  Where A is indefinite, the value may be negative: then refit x.
# Yuan & Zhang (2013), JMLR 14, algorithm 1.  It finds a good support near the start: try several starts.
# work (6p; data: n + 5p), iwork (2p)
cdef int spca_tpower_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, Py_ssize_t k, bint nonnegative,
                                Py_ssize_t max_iter, floating tol, int (*stop)(void *) noexcept nogil, void *ctx,
                                floating *x, floating *work, Py_ssize_t *iwork, floating *value,
                                Py_ssize_t *n_iter) noexcept nogil
cdef int spca_tpower_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                          const floating *mean, const floating *weight, Py_ssize_t k, bint nonnegative,
                          Py_ssize_t max_iter, floating tol, int (*stop)(void *) noexcept nogil, void *ctx,
                          floating *x, floating *work, Py_ssize_t *iwork, floating *value,
                          Py_ssize_t *n_iter) noexcept nogil

# x <- the leading eigenvector of A on the k variables where x is not zero; value = x'A x, never less than
# before.  Variables with only zeros in that block of A have no loading; but where the others have only negative
# eigenvalues, the first of them has all of it, and value = 0.  work (k*k + 28k + 2p; data: k*k + 28k + n*k + p), iwork (p + 12k)
cdef int spca_refit_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, floating *x, floating *work,
                               Py_ssize_t *iwork, floating *value) noexcept nogil
cdef int spca_refit_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                         const floating *mean, const floating *weight, floating *x, floating *work,
                         Py_ssize_t *iwork, floating *value) noexcept nogil

# variance_t = q_t'A q_t, where q_t is the part of loading v_t orthogonal to v_1 .. v_(t-1), normalized.  Their sum is
# the variance of the projection onto the span of V (p, r), which is in Fortran order; 0 <= r <= p.  variance_t is 0
# where rounding the entries of V by eps could make every entry of that part.
# work (p*(2r + 2); data: p*(2r + 1) + n)
cdef int spca_explained_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, Py_ssize_t r, const floating *V,
                                   floating *work, floating *variance) noexcept nogil
cdef int spca_explained_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                             const floating *mean, const floating *weight, Py_ssize_t r, const floating *V,
                             floating *work, floating *variance) noexcept nogil

# x <- argmax (A x)'w over ||w|| <= 1, ||w||_1 <= bound (nonnegative: and w >= 0) from the start x, again and again, until
# x'A x grows by no more than a fraction tol; bound >= 1.  value = x'A x.  The l1 solver: Witten, Tibshirani &
# Hastie (2009), Biostatistics 10(3), section 3.2.  work (5p; data: n + 4p), iwork (2p)
cdef int spca_pmd_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, double bound, bint nonnegative,
                             Py_ssize_t max_iter, floating tol, int (*stop)(void *) noexcept nogil, void *ctx,
                             floating *x, floating *work, Py_ssize_t *iwork, floating *value,
                             Py_ssize_t *n_iter) noexcept nogil
cdef int spca_pmd_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                       const floating *mean, const floating *weight, double bound, bint nonnegative,
                       Py_ssize_t max_iter, floating tol, int (*stop)(void *) noexcept nogil, void *ctx,
                       floating *x, floating *work, Py_ssize_t *iwork, floating *value,
                       Py_ssize_t *n_iter) noexcept nogil

# Q (p, r): the parts q_t of spca_explained_*, 0 where the variance is 0; V and Q in Fortran order, 0 <= r <= p.  For
# orthogonal deflation, append the new loading to V, and remove the last column of Q.  work (p*r)
cdef int spca_orthogonal_parts(Py_ssize_t p, Py_ssize_t r, const floating *V, floating *work, floating *Q) noexcept nogil

# Up to r components of k variables each, one after another: the support is searched, the best values on it are found,
# and the component is removed, by a deflation, from a copy of A.  thorough: the search of sparse_pca, by races, swaps and
# a brief tree (r = 1: of one component); else truncated power from the variable of largest variance.  count: how many
# components were found; fewer than r where nothing but rounding is left.  From there on V (p, r), in
# Fortran order, and variance (r), that of spca_explained_*, are 0.  1 <= k <= p, 0 <= r <= p.
# From data, A (p, p) is formed, so that p should be small.  But where the search is not thorough, the deflation is not
# Hotelling's, and n < p or p > 10 + 20 r, the data are copied and multiplied as they are.  work (spca_components_work
# bytes, aligned for double; n = 0 for a covariance)
cdef int spca_components_covariance(Py_ssize_t p, const floating *A, Py_ssize_t ld, Py_ssize_t r, Py_ssize_t k,
                                    int deflation, bint thorough, Py_ssize_t max_iter, floating tol,
                                    int (*stop)(void *) noexcept nogil, void *ctx, void *work, floating *V,
                                    floating *variance, Py_ssize_t *count) noexcept nogil
cdef int spca_components_data(Py_ssize_t n, Py_ssize_t p, const floating *X, Py_ssize_t ld, bint row_major,
                              const floating *mean, const floating *weight, Py_ssize_t r, Py_ssize_t k, int deflation,
                              bint thorough, Py_ssize_t max_iter, floating tol, int (*stop)(void *) noexcept nogil,
                              void *ctx, void *work, floating *V, floating *variance, Py_ssize_t *count) noexcept nogil
cdef Py_ssize_t spca_components_work(Py_ssize_t n, Py_ssize_t p, Py_ssize_t r, Py_ssize_t k, bint thorough) noexcept nogil
