/* spca_proto.h - every prototype once; spca.h includes it per precision with REAL and SPCA() set.
 */

/* ---- BLAS and LAPACK: SciPy's, filled once by _core.pyx ------------------------------------- */

typedef struct {
    BLAS_NOTHING (*axpy)(blas_int *, REAL *, REAL *, blas_int *, REAL *, blas_int *);
    BLAS_NOTHING (*scal)(blas_int *, REAL *, REAL *, blas_int *);
    REAL (*nrm2)(blas_int *, REAL *, blas_int *);
    BLAS_NOTHING (*stemr)(char *, char *, blas_int *, REAL *, REAL *, REAL *, REAL *, blas_int *,
                          blas_int *, blas_int *, REAL *, REAL *, blas_int *, blas_int *,
                          blas_int *, blas_int *, REAL *, blas_int *, blas_int *, blas_int *,
                          blas_int *);
} SPCA(blas_table);
extern SPCA(blas_table) SPCA(blas);

/* ---- vectors and the operator --------------------------------------------------------------- */

/* A vector by its nonzeros, index ascending; index NULL means dense (nnz = p). */
typedef struct {
    spca_int nnz;
    const spca_int *index;
    const REAL *value;
} SPCA(vector);

/* The symmetric p x p operator A that every solver sees.
 *
 * Data X (n x p, m = n):  F = (diag(u) X - s mean') diag(weight) range^2,  A = F'F factor, where u
 *                         is row_weight and s row_center, each 1 if NULL.
 * Covariance (m = p):     F = A0 range^2,                          A = F.
 * range is a power of two that brings the entries near 1, applied once before and once after each
 * product, so that neither over- nor underflows: values of A carry range^4 (data) or range^2
 * (covariance), which the caller takes out.  Then come the deflations (operator.c).  Read-only:
 * threads may share it; all scratch belongs to the call. */
typedef struct SPCA(operator) SPCA(operator);
struct SPCA(operator) {
    /* ---- what a storage is: its functions.  Nothing else asks how X or A0 is kept.  Each takes
     * stop (NULL: none) and ctx, and may return SPCA_STOPPED, SPCA_PRODUCT_FAILED or SPCA_OK; none
     * checks that what it returns is finite.  centring.h has the terms beside the product with X.
     */

    /* f = F v (m).  scratch (p). */
    spca_status (*forward)(const SPCA(operator) * A, SPCA(vector) v, spca_stop stop, void *ctx,
                           REAL *scratch, REAL *f);
    /* Data: y_a = (F'f)_list_a (count), given g = range u f (n) and total = range s'f; of all
     * columns where list is NULL, which it is unless the data are dense or in CSC. */
    spca_status (*backward)(const SPCA(operator) * A, const REAL *g, REAL total, spca_int count,
                            const spca_int *list, spca_stop stop, void *ctx, REAL *y);
    /* W = F[:, index], m x k by columns.  scratch (p). */
    spca_status (*columns)(const SPCA(operator) * A, spca_int k, const spca_int *index,
                           spca_stop stop, void *ctx, REAL *scratch, REAL *W);
    /* For b columns together, each with the bits that it has alone: SPCA_FORWARD: out (m x b) = F V
     * without deflations; SPCA_BACKWARD: out (p x b) = factor F'U of V = U (n x b); SPCA_BOTH: out
     * (p x b) = A V, all that apply does.  work (block_work).  NULL: a column at a time. */
    spca_status (*block)(const SPCA(operator) * A, spca_block what, spca_int b, const REAL *V,
                         spca_stop stop, void *ctx, REAL *work, REAL *out);
    /* Its work, or 0 where it has no such product of A as it is deflated. */
    spca_int (*block_work)(const SPCA(operator) * A, spca_block what, spca_int b);
    /* What SPCA(dense_gram) says, of data; NULL: nothing but products is known.  The bytes of its
     * work. */
    spca_status (*gram)(const SPCA(operator) * A, spca_int m, spca_int k, const spca_int *index,
                        spca_stop stop, void *ctx, void *work, double *G);
    spca_int (*gram_work)(const SPCA(operator) * A, spca_int k);

    spca_int n, p, m;
    int symmetric_form; /* m = p and A = F */
    int row_major;      /* dense: C order; compressed: CSR */
    const REAL *data;
    spca_int ld;         /* dense: leading dimension */
    const void *indptr;  /* compressed: int32 or, when wide, int64 */
    const void *indices; /* of the same width */
    int wide;
    const REAL *mean;       /* (p) or NULL */
    const REAL *weight;     /* (p) or NULL */
    const REAL *row_weight; /* u (n) or NULL; data without a screen */
    const REAL *row_center; /* s (n) or NULL; beside a row_weight alone */
    REAL range, factor;
    REAL shift; /* A + shift I; solvers raise it where A is indefinite */
    /* After projection deflation by orthonormal directions Q, with B = I - QQ': products with
     * A + span_weight QQ'; or, with quotient, with A + rho QQ', rho = v'Av/v'Bv, where quadratic
     * forms v'Av are rho v'v.  A solver that subtracts l1_price ||v||_1 from sqrt(v'Av) sets that:
     * then rho is less by l1_price ||v||_1 sqrt(v'Av)/v'Bv in the product (operator.c). */
    REAL span_weight, l1_price;
    int quotient;
    void *owner;  /* for products made by a callback */
    spca_run run; /* the parts of loops over X, or NULL; the result has the same bits */
    /* deflation by t directions x_i: image_i = g_i = F x_i of the operator before that step, for
     * Schur over its norm (data) or over sqrt |x_i'g_i| (covariance) */
    spca_deflation deflation;
    spca_int t;
    const SPCA(vector) * direction;
    const REAL *const *image;
    spca_screen *screen;      /* dense data, or NULL */
    spca_column_cache *cache; /* dense data in C order, or NULL */
    const REAL *coefficient;  /* Hotelling: x_i'A x_i; Schur: its sign */
};

/* The functions of dense arrays (dense.c, dense_block.c, gram.c) and of compressed ones
 * (compressed.c, compressed_gram.c). */
void SPCA(use_dense)(SPCA(operator) * A);
void SPCA(use_compressed)(SPCA(operator) * A);
spca_status SPCA(dense_block)(const SPCA(operator) * A, spca_block what, spca_int b, const REAL *V,
                              spca_stop stop, void *ctx, REAL *work, REAL *out);
spca_int SPCA(dense_block_work)(const SPCA(operator) * A, spca_block what, spca_int b);

/* G (m x k) = A[index[:m], index] of data without deflation, in one pass: k <= 65536 different
 * variables, or NULL for all, m = k = p.  Entries of F are rounded to REAL; blocks of their
 * products are added in double precision (gram.c).  work (A->gram_work bytes, aligned for double).
 */
spca_status SPCA(dense_gram)(const SPCA(operator) * A, spca_int m, spca_int k,
                             const spca_int *index, spca_stop stop, void *ctx, void *work,
                             double *G);
spca_int SPCA(dense_gram_work)(const SPCA(operator) * A, spca_int k);
/* In one read of dense X, whatever A makes of it: what dense_statistics says, to roundings
 * in REAL of what is left of X by a shift near the mean, and G = (X - 1 mean')' (X - 1 mean').
 * Squares in REAL may leave the number range: then G is not to be used (gram.c).  work
 * (dense_gram_work bytes). */
spca_status SPCA(dense_moments)(const SPCA(operator) * A, spca_stop stop, void *ctx, void *work,
                                double *mean, double *square, double *low, double *high, double *G);
spca_status SPCA(compressed_gram)(const SPCA(operator) * A, spca_int m, spca_int k,
                                  const spca_int *index, spca_stop stop, void *ctx, void *work,
                                  double *G);
spca_int SPCA(compressed_gram_work)(const SPCA(operator) * A, spca_int k);
/* G (k x k) = A[index, index] of compressed data without deflation, in single precision: errors are
 * as of sums of products of X in that precision, before means are taken from them (rough_gram.c).
 * work (rough_gram_work bytes). */
void SPCA(rough_gram)(const SPCA(operator) * A, spca_int k, const spca_int *index, void *work,
                      float *G);
spca_int SPCA(rough_gram_work)(const SPCA(operator) * A, spca_int k);

/* columns by k products with unit vectors, for operators known by their products alone. */
spca_status SPCA(columns_by_products)(const SPCA(operator) *, spca_int, const spca_int *, spca_stop,
                                      void *, REAL *, REAL *);

/* f (m) = F v with the deflations that act on the right; what apply, scores and images need. */
spca_status SPCA(forward)(const SPCA(operator) * A, SPCA(vector) v, spca_stop stop, void *ctx,
                          REAL *scratch /* p */, REAL *f);

/* W (m x k) = F[:, index] with these deflations. */
spca_status SPCA(images)(const SPCA(operator) * A, spca_int k, const spca_int *index,
                         spca_stop stop, void *ctx, REAL *scratch /* p */, REAL *W);

/* y = A v.  work (m + t).  Entries are checked to be finite. */
spca_status SPCA(apply)(const SPCA(operator) * A, SPCA(vector) v, spca_stop stop, void *ctx,
                        REAL *work, REAL *y /* p */);

/* y_a = (A v)_list_a (count) of data in CSC, list ascending, with the bits of apply.  image (m) = F
 * v, as forward gives it, or NULL.  work (m + t + p). */
spca_status SPCA(apply_at)(const SPCA(operator) * A, SPCA(vector) v, const REAL *image,
                           spca_int count, const spca_int *list, spca_stop stop, void *ctx,
                           REAL *work, REAL *y);

/* Y = A V (p x b by columns, no overlap).  Dense data are read once, or twice where no block of
 * rows stays in cache, for SPCA_TOGETHER columns; compressed data without deflation once, in CSC
 * order twice, for SPCA_MANY/sizeof(REAL); other operators for each.  Every column has the bits
 * that apply gives it.  work (block_work). */
spca_status SPCA(apply_block)(const SPCA(operator) * A, spca_int b, const REAL *V, spca_stop stop,
                              void *ctx, REAL *work, REAL *Y);
spca_int SPCA(block_work)(const SPCA(operator) * A, spca_int b);

/* The two halves, of data: f (n x b) = F V, and Y (p x b) = factor F'U; by columns, with the bits
 * of forward and backward.  work (block_work). */
spca_status SPCA(forward_block)(const SPCA(operator) * A, spca_int b, const REAL *V, spca_stop stop,
                                void *ctx, REAL *work, REAL *f);
spca_status SPCA(backward_block)(const SPCA(operator) * A, spca_int b, const REAL *U,
                                 spca_stop stop, void *ctx, REAL *work, REAL *Y);

/* The k entries of A v largest in magnitude (nonnegative: largest, and those below 0 count as 0),
 * index ascending, ties to the lower index, and quadratic = v'A v.  work (2p + m + t).  Where A has
 * a screen, not all of X is read, with the same result to the last bit. */
spca_status SPCA(largest)(const SPCA(operator) * A, SPCA(vector) v, spca_int k, int nonnegative,
                          spca_stop stop, void *ctx, REAL *work, spca_int *index /* k */,
                          REAL *value /* k */, REAL *quadratic);

/* v'Bv/v'v of an operator with quotient; 1 of another, and where v lies in the span of Q. */
REAL SPCA(outside)(const SPCA(operator) * A, SPCA(vector) v);
/* y += weight QQ'v, of an operator with quotient. */
void SPCA(add_span)(const SPCA(operator) * A, REAL weight, SPCA(vector) v, REAL *y /* p */);

/* The entries of A v with magnitude above tau or, relative, above tau sqrt(v'(A - shift I)v), with
 * quotient without what it adds there, index ascending, and quadratic = v'A v.  With A = F'F and
 * unit v, the second is |F_j'u| > tau for u = F v/||F v||.  work (2p + m + t). */
spca_status SPCA(above)(const SPCA(operator) * A, SPCA(vector) v, REAL tau, int relative,
                        spca_stop stop, void *ctx, REAL *work, spca_int *count,
                        spca_int *index /* p */, REAL *value /* p */, REAL *quadratic);

/* y = F'u of the deflated data, times factor.  work (m + t). */
spca_status SPCA(backward)(const SPCA(operator) * A, const REAL *u, spca_stop stop, void *ctx,
                           REAL *work, REAL *y /* p */);

/* How many directions are subtracted from F'f. */
spca_int SPCA(subtracted)(const SPCA(operator) * A);

/* y_a -= sum_i c_i x_i - shift v at list_a: what is left to do after F'f = (y_a).  list ascending,
 * or NULL for all p. */
void SPCA(subtract)(const SPCA(operator) * A, SPCA(vector) v, const REAL *c, spca_int count,
                    const spca_int *list, REAL *y);

/* Exact values y_a of A v at a list of columns (ascending, A->screen->list, or all: *list NULL)
 * that holds the k largest in magnitude (nonnegative: with negative entries taken for 0) and every
 * one above tau; f = range factor F v and c the coefficients of the directions.  k = 0: tau alone.
 * work (p). */
spca_status SPCA(screened)(const SPCA(operator) * A, SPCA(vector) v, const REAL *f, const REAL *c,
                           spca_int k, REAL tau, int nonnegative, spca_stop stop, void *ctx,
                           REAL *work, spca_int *count, const spca_int **list, REAL *y /* p */);

/* Copies columns of C-ordered data (count <= capacity) next to each other, if they are not there
 * yet; their places go to A->cache->slot_list. */
spca_status SPCA(keep_columns)(const SPCA(operator) * A, spca_int count, const spca_int *list,
                               spca_stop stop, void *ctx);

/* C_ij = factor sum_l a_il b_jl, or factor (C_ij + sum_l ...) to add (m x n, at C[i ldc + j]),
 * where a_il is A[i lda + l] or, across, A[i + l lda], and likewise b.  B == A, m == n: symmetric,
 * to the bit.  The same bits for any number of threads (products.c).  work (room): faster where
 * room is SPCA_TURNED (m + n + SPCA_SPARE), without n if B == A; across: none. */
spca_status SPCA(matrix_product)(int across, spca_int m, spca_int n, spca_int depth, const REAL *A,
                                 spca_int lda, const REAL *B, spca_int ldb, REAL factor, int add,
                                 spca_run run, spca_stop stop, void *ctx, spca_int room, REAL *work,
                                 REAL *C, spca_int ldc);

/* G = A[index, index], k x k; A without shift or span_weight.  work (data: m*k + room, room >= p
 * and best SPCA_TURNED (k + SPCA_SPARE); covariance: 2p + t). */
spca_status SPCA(submatrix)(const SPCA(operator) * A, spca_int k, const spca_int *index,
                            spca_stop stop, void *ctx, spca_int room, REAL *work, REAL *G);

/* G = A[index, index], k x k, of a matrix by rows. */
void SPCA(principal_submatrix)(spca_int k, const spca_int *index, const REAL *A, spca_int lda,
                               REAL *G);

/* K = FF' factor (m x m) of data, but for Hotelling's deflation, which has no F.  work
 * (m*SPCA_OUTER_BLOCK + p), iwork (SPCA_OUTER_BLOCK). */
spca_status SPCA(outer)(const SPCA(operator) * A, spca_stop stop, void *ctx, REAL *work,
                        spca_int *iwork, REAL *K);

/* Largest eigenvalue and unit eigenvector of symmetric G (k x k, destroyed), whose bits no number
 * of threads changes (leading_eigenvector.c).  Variables with zeros alone in G have no loading,
 * whatever rounding says, but the first of them where all other eigenvalues are negative.  work
 * (6k). */
spca_status SPCA(leading_eigenvector)(spca_int k, REAL *G, REAL *work, REAL *value, REAL *vector);

/* Symmetric A (k x k, entries near 1, of which the lower triangle is read, overwritten) = H T H', T
 * tridiagonal with d (k) and e (k, the last one 0), by additions of one order (tridiagonal.c); H is
 * in A and tau (k) then.  work (16k). */
spca_status SPCA(tridiagonal)(spca_int k, spca_stop stop, void *ctx, REAL *A, REAL *work, REAL *tau,
                              REAL *d, REAL *e);
/* x <- H x, of each row of V (r x k). */
spca_status SPCA(untridiagonal)(spca_int k, spca_int r, const REAL *A, const REAL *tau,
                                spca_stop stop, void *ctx, REAL *V);

/* ---- statistics of the input (statistics.c) ------------------------------------------------- */

/* Per column: mean, sum of squared deviations from it, smallest and largest entry.  In double for
 * both precisions; mean or square is NaN or infinite where the data are, or where squares overflow.
 * Stable at any mean; one read of X.  With a quantized copy (p x quantized_ld by columns; else
 * NULL), each column is quantized about its mean (or about 0) while it is in cache: x_j - mean ~
 * step_j q_j. */
spca_status SPCA(dense_statistics)(spca_int n, spca_int p, const REAL *X, spca_int ld,
                                   int row_major, int center, spca_int quantized_ld, spca_stop stop,
                                   void *ctx, double *mean, double *square, double *low,
                                   double *high, int8_t *quantized, double *step, double *error,
                                   float *size);
/* The same, to the bit, by threads (statistics_parts.c). */
spca_status SPCA(shared_statistics)(spca_int n, spca_int p, const REAL *X, spca_int ld,
                                    int row_major, int center, spca_int quantized_ld, spca_run run,
                                    spca_stop stop, void *ctx, double *mean, double *square,
                                    double *low, double *high, int8_t *quantized, double *step,
                                    double *error, float *size);
/* out (n x r, by rows) = (X[:, index[:k]] - 1 mean') V, index NULL: the first k columns.  V
 * (k x r) is by rows.  k > 0.  The same bits for any number of threads (scores.c).
 * work: k (r + 15). */
spca_status SPCA(scores)(spca_int n, spca_int k, spca_int r, const REAL *X, spca_int ld,
                         int row_major, const spca_int *index, const REAL *mean, const REAL *V,
                         spca_run run, spca_stop stop, void *ctx, REAL *work, REAL *out);
/* The quantized copy of c columns, given their mean (NULL: 0), smallest and largest entry: q_j =
 * (x_j - mean_j)/step_j rounded to int8, error_j >= ||x_j - mean_j - step_j q_j|| but for rounding
 * in the differences, size_j >= ||q_j||. */
void SPCA(quantize)(spca_int n, spca_int c, const REAL *X, spca_int ld, int row_major,
                    const double *mean, const double *low, const double *high,
                    spca_int quantized_ld, int8_t *quantized, double *step, double *error,
                    float *size);
/* Mean, squares and spread, which is 0 exactly where the column is constant. */
spca_status SPCA(compressed_statistics)(spca_int n, spca_int p, const REAL *data,
                                        const void *indptr, const void *indices, int wide,
                                        int row_major, spca_run run, spca_stop stop, void *ctx,
                                        double *mean, double *square, double *spread,
                                        double *count /* p */, double *first /* p */);
/* As these, each row counted by its weight (n), of which some is not 0; low and high of rows of a
 * weight.  A column with an entry that is not finite has the mean NaN (weighted.c).  work (3p). */
spca_status SPCA(weighted_statistics)(spca_int n, spca_int p, const REAL *X, spca_int ld,
                                      int row_major, const double *weight, spca_stop stop,
                                      void *ctx, double *mean, double *square, double *low,
                                      double *high);
spca_status SPCA(weighted_compressed)(spca_int n, spca_int p, const REAL *data, const void *indptr,
                                      const void *indices, int wide, int row_major,
                                      const double *weight, spca_stop stop, void *ctx, double *mean,
                                      double *square, double *low, double *high, double *work);
/* X (n x p, as above; NaN where an entry is missing) less the means of what is observed in each
 * column, if `center`, and over the standard deviations, if `scale` (1 where that is 0); 0 where an
 * entry is missing, and in a column whose entries are all the same.  SPCA_NONFINITE: column *bad
 * has an infinite entry, or none that is observed (missing.c).  work (16n). */
spca_status SPCA(fill_missing)(spca_int n, spca_int p, const REAL *X, spca_int ld, int row_major,
                               int center, int scale, spca_stop stop, void *ctx, double *work,
                               double *mean, double *deviation,
                               REAL *filled /* n x p, by columns */, spca_int *bad);
/* Largest |a_ij|, largest |a_ij - a_ji|, the largest excess |a_ij| - sqrt(a_ii a_jj) of a 2 x 2
 * minor that is not positive semidefinite; largest is NaN when any entry is not finite. */
spca_status SPCA(symmetry)(spca_int p, const REAL *A, spca_int ld, spca_stop stop, void *ctx,
                           double *largest, double *asymmetry, double *excess);
/* The same of compressed storage, the indices of each line ascending.  next, root (p). */
spca_status SPCA(compressed_symmetry)(spca_int p, const REAL *data, const void *indptr,
                                      const void *indices, int wide, spca_stop stop, void *ctx,
                                      spca_int *next, double *root, double *largest,
                                      double *asymmetry, double *excess);

/* ---- selection and thresholds --------------------------------------------------------------- */

/* The k-th largest |x| (k >= 1), and how many of its ties belong to the k largest.  work (p). */
REAL SPCA(kth_largest)(spca_int p, const REAL *x, spca_int k, REAL *work, spca_int *ties);

/* Positions of the k largest |x|, ascending, ties to the lower index.  0 <= k <= p.  work (p). */
void SPCA(select_largest)(spca_int p, const REAL *x, spca_int k, REAL *work, spca_int *index);
/* The same, given a level that is reached by at least k of |x|, and better by few more. */
void SPCA(select_reaching)(spca_int p, const REAL *x, spca_int k, REAL level, REAL *work,
                           spca_int *index);

/* T_k(x) in place.  work (p). */
void SPCA(truncate)(spca_int p, spca_int k, REAL *x, REAL *work);

/* S(a, level)_i = sign(a_i) (|a_i| - level)_+; out may be a. */
void SPCA(soft_threshold)(spca_int p, const REAL *a, REAL level, spca_run run, REAL *out);

/* argmax w'a, ||w|| <= 1, ||w||_1 <= bound, 1 <= bound <= sqrt(p): w = S(a, level)/||.||.
 * nonnegative: 1, of the positive part of a (whose other part is not looked at, NaN or not); 2, the
 * same, but SPCA_NONFINITE for that part too.
 * w may be a; work (p) may be w if w is not a.  SPCA_NONFINITE: w is not written but as work.
 * Witten, Tibshirani & Hastie (2009), Biostatistics 10(3), lemma 2.2. */
spca_status SPCA(l1_threshold)(spca_int p, const REAL *a, double bound, int nonnegative,
                               spca_run run, REAL *work, REAL *w, double *level);

/* The level at which sum_i (|a_i| - level)_+ = bound, by Newton's method on that convex function of
 * the level from `start`, which decides nothing but the time; 0 where sum |a_i| <= bound.  Duchi,
 * Shalev-Shwartz, Singer & Chandra (2008), ICML (l1_level.c). */
double SPCA(l1_ball_level)(spca_int p, const REAL *a, double bound, double start, spca_run run);

/* The largest |a_i| such that the magnitudes from it upwards sum to more than bound; 0 if none.
 * work (p). */
REAL SPCA(l1_kept_level)(spca_int p, const REAL *a, double bound, REAL *work);

/* ---- solvers -------------------------------------------------------------------------------- */

/* norm_i = ||T_k(a_j)||, j = row_i, of rows of A (p x p): of x = T_k(a_j)/norm_i, x'A e_j = norm_i,
 * so that x'A x >= norm_i^2/a_jj if A is semidefinite.  work (p), iwork (k). */
void SPCA(largest_norms)(spca_int p, spca_int k, spca_int rows, const spca_int *row, const REAL *A,
                         REAL *work, spca_int *iwork, REAL *norm);

/* x <- T_k(A x)/||.||, or T_k of its positive part.  Yuan & Zhang (2013), JMLR 14, algorithm 1. The
 * start x (nnz nonzeros, of any norm, more than k allowed) is overwritten by the result; index and
 * value hold max(nnz, k). work (2p + m + t + 2k), iwork (k). */
spca_status SPCA(truncated_power)(const SPCA(operator) * A, spca_int k, int nonnegative,
                                  spca_int max_iter, REAL tol, spca_stop stop, void *ctx,
                                  spca_int *nnz, spca_int *index, REAL *value, REAL *work,
                                  spca_int *iwork, REAL *objective, spca_int *n_iter);

/* The same of a symmetric matrix A (p x p) in memory, with the same bits where no more than p/2
 * nonzeros are multiplied; max_iter > 0 where more than k start.  work (3p + k^2 + 2k), iwork (2k).
 */
spca_status SPCA(truncated_power_of_matrix)(spca_int p, spca_int k, const REAL *A,
                                            spca_int max_iter, REAL tol, spca_stop stop, void *ctx,
                                            spca_int *nnz, spca_int *index, REAL *value, REAL *work,
                                            spca_int *iwork, REAL *objective, spca_int *n_iter);

/* Over unit w: max sqrt(w'Aw) - gamma ||w||_1 or, l0, w'Aw - gamma ||w||_0, where objective ends;
 * with quotient over w'Bw = 1, and quadratic is w'Aw there.
 * Journee, Nesterov, Richtarik & Sepulchre (2010), JMLR 11, algorithms 2 and 3.  The start w (nnz
 * nonzeros, of any norm) is overwritten by the result; index and value hold p.  quadratic = w'Aw.
 * SPCA_ZERO_VECTOR where every entry falls under the threshold.  work (3p + m + t), iwork (p). */
spca_status SPCA(gpower)(const SPCA(operator) * A, int l0, REAL gamma, spca_int max_iter, REAL tol,
                         spca_stop stop, void *ctx, spca_int *nnz, spca_int *index, REAL *value,
                         REAL *work, spca_int *iwork, REAL *objective, REAL *quadratic,
                         spca_int *n_iter);
/* The same for units and signs, truncated or with a bound, too (unit_ascent.c): from start (p), of
 * any norm, best (p) and its units, support (units), with the objective and x'Ax; also where
 * stopped, unless the objective is minus infinity.  work (2p + m + t), dwork (2p + step_work),
 * iwork (p), kept (units). */
spca_status SPCA(unit_ascent)(const SPCA(operator) * A, const spca_rule *rule, spca_int max_iter,
                              double tol, spca_stop stop, void *ctx, const double *start,
                              REAL *work, double *dwork, spca_int *iwork, uint8_t *kept,
                              double *best, uint8_t *support, double *objective, double *quadratic,
                              spca_int *n_iter);
/* v <- argmax (A v)'w over ||w|| = 1, ||w||_1 <= bound (and w >= 0), which maximizes v'Av.  Witten,
 * Tibshirani & Hastie (2009), Biostatistics 10(3), section 3.2 (penalized_decomposition.c).  The
 * start v (nnz nonzeros, of any norm) is overwritten by the result; index and value hold p.  work
 * (3p + m + t), iwork (p).
 */
spca_status SPCA(pmd)(const SPCA(operator) * A, double bound, int nonnegative, spca_int max_iter,
                      REAL tol, spca_stop stop, void *ctx, spca_int *nnz, spca_int *index,
                      REAL *value, REAL *work, spca_int *iwork, REAL *objective, spca_int *n_iter);

/* max u'F v with ||u||_1 <= sample_bound besides, of data not deflated by Hotelling; objective is
 * u'F v, with quotient u'F v/sqrt(v'Bv), and u belongs to v.  work (p + m + max(p, m + t)), iwork
 * (p). */
spca_status SPCA(pmd_two_way)(const SPCA(operator) * A, double bound, double sample_bound,
                              int nonnegative, spca_int max_iter, REAL tol, spca_stop stop,
                              void *ctx, spca_int *nnz, spca_int *index, REAL *value, REAL *work,
                              spca_int *iwork, REAL *u /* m */, REAL *objective, spca_int *n_iter);

/* v <- argmax (A v)'w over ||w|| = 1, ||w||_1 <= bound, Q'w = 0, Q (p x t by columns) orthonormal,
 * which maximizes v'Av.  Jolliffe, Trendafilov & Uddin (2003), JCGS 12(3) (scotlass.c).  v: a start
 * of any norm, then the result.  SPCA_ZERO_VECTOR: also where no unit vector is feasible.  work (2p
 * + max(3p, m + A->t)), dwork (t^2 + 5t). */
spca_status SPCA(scotlass)(const SPCA(operator) * A, spca_int t, const REAL *Q, double bound,
                           spca_int max_iter, REAL tol, spca_stop stop, void *ctx, REAL *v /* p */,
                           REAL *work, double *dwork, REAL *objective, spca_int *n_iter);

/* w = argmax a'w over the same set; SPCA_ZERO_VECTOR where that is not of unit norm.  mu (t): a
 * start and the solution of the dual.  work (3p), dwork (t^2 + 4t). */
spca_status SPCA(orthogonal_l1_threshold)(spca_int p, spca_int t, const REAL *a, const REAL *Q,
                                          double bound, spca_stop stop, void *ctx, double *mu,
                                          REAL *work, double *dwork, REAL *w);
/* ---- greedy search (greedy.c) --------------------------------------------------------------- */

/* Largest eigenvalue of the pencil (A, I + strength QQ') on a support of k variables and each of
 * the candidates (ascending) more.  C (k x p by rows): A at the support; diagonal (p): of A; W (k x
 * w by columns) and eigenvalues (w, descending): of the pencil on the support; Q (t x p by rows), R
 * (w x t by columns): W'Q at the support.  A direction that the candidate adds counts if its square
 * in the metric is above least.  t = 0: plain A; then norm (p), the squared norms of the columns of
 * C, or NULL: with these, candidates that others surpass may get -infinity. work (p + 64 (k + t +
 * 2w) + 3w). */
spca_status SPCA(bordered_eigenvalues)(spca_int p, spca_int k, spca_int w, spca_int t,
                                       spca_int count, const spca_int *candidate, const REAL *C,
                                       const double *diagonal, const double *eigenvalues,
                                       const double *W, const double *norm, const double *Q,
                                       const double *R, double strength, double least,
                                       spca_stop stop, void *ctx, double *work,
                                       double *value /* count */);

/* The first of n_leaving places of a support of k > 1, in the order given, that one of the
 * candidates (ascending) may take so that the largest eigenvalue of A on the support rises above
 * level; and the candidate, the first of the best to rounding, with that eigenvalue.  *first >=
 * n_leaving: none.  Row row_a of C (by rows of p) is A at the support's a-th; diagonal (p): of A;
 * eigenvalues (k, descending, the first no more than the level, but for rounding, and the second
 * less) and U (k x k by columns): of A on the support.  slack: the share of each term of a bound
 * that rounding may hide; tie: the share by which values differ.  work (k (k + 1) + 64 (2k + 3)),
 * iwork (count) (exchange.c). */
spca_status SPCA(exchange)(spca_int p, spca_int k, spca_int n_leaving, const spca_int *leaving,
                           spca_int count, const spca_int *candidate, const REAL *C,
                           const spca_int *row, const double *diagonal, const double *eigenvalues,
                           const double *U, double level, double slack, double tie, spca_stop stop,
                           void *ctx, double *work, spca_int *iwork, spca_int *first,
                           spca_int *entering, double *value);

/* Swaps for as long as exchange finds one, at most so many; how many it made.  A (p x p) symmetric,
 * diagonal (p): its own; index (k > 1, ascending): the support, then the new one, with its leading
 * eigenvector and eigenvalue.  A swap raises that by more than the share rise of the largest
 * magnitude of an eigenvalue.  *ended: whether no other does; 0 too where the two largest
 * eigenvalues are within the share gap, which exchange does not allow.  work (3 k^2 + 130 k + 192),
 * blas_work (12 k), iwork (2 p + k) (exchange.c). */
spca_status SPCA(swap)(spca_int p, spca_int k, const REAL *A, const double *diagonal, double rise,
                       double gap, double slack, double tie, spca_int most, spca_stop stop,
                       void *ctx, double *work, blas_int *blas_work, spca_int *iwork,
                       spca_int *index, double *vector, double *value, spca_int *made, int *ended);

/* Swaps that the vector of a support tells to raise its leading eigenvalue by more than the share
 * rise, the best first, at most so many; how many were made.  index (k > 1), value (k): the support
 * and a vector there, then the new one, ascending, and a unit vector of x'Ax = *objective, nearly
 * its eigenvalue.  Others may raise that further.  work (2 p + k^2 + 2 k) (quick_swap.c). */
spca_status SPCA(quick_swaps)(spca_int p, spca_int k, const REAL *A, REAL rise, spca_int most,
                              spca_stop stop, void *ctx, REAL *work, spca_int *index, REAL *value,
                              double *objective, spca_int *made);

/* ---- the search of a matrix in memory (search.c) --------------------------------------------- */

/* Supports of k variables with a large leading eigenvalue of symmetric A (p x p): at most
 * plan->ends different ones, each ascending, the best first (of ties, to the share plan->tie, that
 * whose variables come first), with their values, and how many runs reached each.  A value is the
 * eigenvalue itself of those that were improved by swaps (k > 1).  score (p): scratch, or, if
 * known, the norms of the largest entries, plan->width[0] or k, of each row of a matrix much like
 * A; then they are those of A where that may matter, if fewer columns start than there are.
 * SPCA_STOPPED: with what was found so far.  work (search_work bytes, aligned for double). */
spca_status SPCA(search)(spca_int p, spca_int k, const REAL *A, REAL *score, int known,
                         const spca_search_plan *plan, spca_stop stop, void *ctx, void *work,
                         spca_int *index, double *value, spca_int *runs, spca_int *count,
                         spca_search_counts *counts);
size_t SPCA(search_work)(spca_int p, spca_int k, int known, const spca_search_plan *plan);

/* The race alone: where it leaves runs of different supports, the best first, at most the last of
 * plan->keep or all starts; n_iter: the steps of each. */
spca_status SPCA(race)(spca_int p, spca_int k, const REAL *A, REAL *score, int known,
                       const spca_search_plan *plan, spca_stop stop, void *ctx, void *work,
                       spca_int *index, REAL *value, spca_int *n_iter, spca_int *count);
size_t SPCA(race_work)(spca_int p, spca_int k, int known, const spca_search_plan *plan);

/* ---- several loadings together (joint.c) ---------------------------------------------------- */

/* Loadings V (p x r), at most size_t nonzeros in each, that explain much together: max Tr(A V
 * (V'V)^-1 V') for symmetric semidefinite A.  Each ascends given the others, by truncated power on
 * x'PAPx/x'Px, P the projection away from these (Mackey 2008, section 3.3; Yuan & Zhang 2013), and
 * by exchanges of variables; moves change the best ones known, and each such ascent follows.
 *
 * The population: `members` places of loadings by their nonzeros, nnz (members x r), index
 * ascending and value (members x r x room), room = max size, and what they explain, in descending
 * order.  First the `given` loadings in the first places ascend; then come at most so many moves,
 * until `patience` of them, one after another, raised nothing, or some limit of multiplications is
 * spent.  Kept between calls: random (the generator's), state (3: moves made, moves that raised
 * nothing, places taken), spent, and subspace (2r (p + 1) + p); all 0 at first.  diagonal (p): that
 * of A.  `of`: which supports are allowed, size their cardinality and room the most variables of
 * one; NULL: any.  constraint 1: V'V = I, or 2: V'AV diagonal, and Tr V'AV is raised.  work
 * (joint_work), iwork (joint_iwork), turned (p r). */
spca_status SPCA(joint)(spca_int p, spca_int r, spca_int room, const REAL *A,
                        const double *diagonal, const spca_int *size, int constraint,
                        const spca_supports *of, spca_int members, spca_int given, spca_int moves,
                        spca_int patience, double limit, spca_stop stop, void *ctx,
                        uint64_t *random, spca_int *state, double *spent, double *subspace,
                        spca_int *nnz, spca_int *index, double *value, double *explained,
                        double *work, spca_int *iwork, REAL *turned);
spca_int SPCA(joint_work)(spca_int p, spca_int r, spca_int room, int constraint,
                          const spca_supports *of);
spca_int SPCA(joint_iwork)(spca_int p, spca_int r, spca_int room);

/* ---- rotations ------------------------------------------------------------------------------ */

/* Orthogonal R (r x r by columns, always double) maximizing
 * sum_j [sum_i y_ij^4 - (gamma/p) (sum_i y_ij^2)^2], Y <- Y R in place (p x r by columns).  A
 * planar rotation that would raise the criterion by no more than (1 + gamma) tol^2 sum_i (y_ia^2 +
 * y_ib^2)^2 is not worth making; when none is, all is done.  At most max_iter sweeps, or steps that
 * turn all pairs at once.  work (SPCA(orthomax_work)) (ascent.c). */
spca_status SPCA(orthomax)(spca_int p, spca_int r, double gamma, spca_int max_iter, double tol,
                           spca_run run, spca_stop stop, void *ctx, REAL *Y, double *work,
                           double *R, spca_int *n_iter);
spca_int SPCA(orthomax_work)(spca_int p, spca_int r);

/* The same by sweeps over the pairs of columns alone.  R is multiplied by the rotations made, and
 * n_iter grows by the sweeps made (rotate.c). */
spca_status SPCA(planar_sweeps)(spca_int p, spca_int r, double gamma, spca_int max_iter, double tol,
                                spca_stop stop, void *ctx, REAL *Y, double *R, spca_int *n_iter);

/* The same for the sum of |y_ij|, to be minimized: turns pairs of columns until none lowers its
 * share by more than tol times that.  R is multiplied by the rotations made, and n_iter grows by
 * the sweeps made.  work (3p), iwork (r + r^2) (l1_rotate.c). */
spca_status SPCA(l1_sweeps)(spca_int p, spca_int r, spca_int max_iter, double tol, spca_stop stop,
                            void *ctx, REAL *Y, double *work, spca_int *iwork, double *R,
                            spca_int *n_iter);

/* Tiles of SPCA_TILE rows by columns, with one more column of zeros if r is odd (moments.c). */
/* z = y R. */
void SPCA(tile_turn)(spca_int r, const double *R, const REAL *y, REAL *z);
/* Upper triangles, row by row: S += sums of z_a^2 z_b^2, U += sums of (z_a^2 - z_b^2) z_a z_b,
 * G += sums of z_a z_b.  square is scratch of the size of z. */
void SPCA(tile_moments)(spca_int r, const REAL *z, REAL *square, double *S, double *U);
void SPCA(tile_gram)(spca_int r, const REAL *z, double *G);
/* Squared norms of the rows; returns the sum of z^4. */
double SPCA(tile_norms)(spca_int r, const REAL *z, REAL *norm /* SPCA_TILE */);

/* ---- sparse clustering (distances.c) ----------------------------------------------------------
 */

/* D_ii' += sum_j w_j |t_ij - t_i'j|, or of the squared differences: n(n-1)/2 pairs i < i', row by
 * row, for b columns T (n x b by columns). */
spca_status SPCA(add_distances)(spca_int n, spca_int b, const REAL *T, const REAL *w, int squared,
                                spca_run run, spca_stop stop, void *ctx, double *D);
/* y_j = sum_{i < i'} u_ii' |t_ij - t_i'j|.  work (n b), b rounded up to SPCA_LANES. */
spca_status SPCA(absolute_products)(spca_int n, spca_int b, const REAL *T, const REAL *u,
                                    spca_run run, spca_stop stop, void *ctx, REAL *work, double *y);

/* ---- in-place deflation (deflate.c) --------------------------------------------------------- */

/* All of them: SPCA_NONFINITE, and the matrix unchanged, where A x, or of data and Schur
 * complements X'u, is not finite. */

/* A <- A - lambda x x', lambda = x'A x: only the rows and columns of the support.  A full
 * symmetric, leading dimension ld. */
spca_status SPCA(deflate_hotelling)(spca_int ld, SPCA(vector) x, REAL *A);
/* A <- (I - xx') A (I - xx'): only the rows and columns of the support.  work (2p). */
spca_status SPCA(deflate_projection)(spca_int p, spca_int ld, SPCA(vector) x, REAL *A, REAL *work);
/* A <- A - A xx'A / (x'A x); A unchanged if x'A x is zero to rounding.  work (p). */
spca_status SPCA(deflate_schur)(spca_int p, spca_int ld, SPCA(vector) x, REAL *A, REAL *work);
/* X <- X (I - xx'): only the columns of the support.  work (n). */
spca_status SPCA(deflate_data_projection)(spca_int n, spca_int ld, int row_major, SPCA(vector) x,
                                          REAL *X, REAL *work);
/* X <- (I - uu') X, u = (X - 1 mean') x normalized; X unchanged if u is zero to rounding.  mean may
 * be NULL.  work (n + p). */
spca_status SPCA(deflate_data_schur)(spca_int n, spca_int p, spca_int ld, int row_major,
                                     const REAL *mean, SPCA(vector) x, REAL *X, REAL *work);

/* ---- for callers who hold arrays (direct.c) -------------------------------------------------- */

/* A (p x p) is symmetric, of leading dimension ld; data X (n x p), F = (X - 1 mean') diag(weight),
 * mean and weight (p) may be NULL, stand for A = F'F/(n - 1).  Without a weight, entries of any
 * size are brought near 1 first.  Vectors are dense, and the entry of largest magnitude of a result
 * is positive.  SPCA_ZERO_VECTOR, with x as it was: x or A x is zero. */

/* truncated_power from x: unit, k nonzeros at most, value = x'A x.  work (4p + 2k; data: 3p + n +
 * 2k), iwork (p + k). */
spca_status SPCA(tpower_covariance)(spca_int p, const REAL *A, spca_int ld, spca_int k,
                                    int nonnegative, spca_int max_iter, REAL tol, spca_stop stop,
                                    void *ctx, REAL *x, REAL *work, spca_int *iwork, REAL *value,
                                    spca_int *n_iter);
spca_status SPCA(tpower_data)(spca_int n, spca_int p, const REAL *X, spca_int ld, int row_major,
                              const REAL *mean, const REAL *weight, spca_int k, int nonnegative,
                              spca_int max_iter, REAL tol, spca_stop stop, void *ctx, REAL *x,
                              REAL *work, spca_int *iwork, REAL *value, spca_int *n_iter);

/* pmd from x in place of it, 1 <= bound <= sqrt(p).  work (5p; data: 4p + n), iwork (2p). */
spca_status SPCA(pmd_covariance)(spca_int p, const REAL *A, spca_int ld, double bound,
                                 int nonnegative, spca_int max_iter, REAL tol, spca_stop stop,
                                 void *ctx, REAL *x, REAL *work, spca_int *iwork, REAL *value,
                                 spca_int *n_iter);
spca_status SPCA(pmd_data)(spca_int n, spca_int p, const REAL *X, spca_int ld, int row_major,
                           const REAL *mean, const REAL *weight, double bound, int nonnegative,
                           spca_int max_iter, REAL tol, spca_stop stop, void *ctx, REAL *x,
                           REAL *work, spca_int *iwork, REAL *value, spca_int *n_iter);

/* x <- leading_eigenvector of A on the support of x, of k variables.  work (k^2 + k + max(6k, 2p;
 * data: nk + p)), iwork (p). */
spca_status SPCA(refit_covariance)(spca_int p, const REAL *A, spca_int ld, REAL *x, REAL *work,
                                   spca_int *iwork, REAL *value);
spca_status SPCA(refit_data)(spca_int n, spca_int p, const REAL *X, spca_int ld, int row_major,
                             const REAL *mean, const REAL *weight, REAL *x, REAL *work,
                             spca_int *iwork, REAL *value);

/* variance_t = q_t'A q_t, q_t of orthogonal_parts; V (p x r by columns).  work (2pr + 2p; data: 2pr
 * + n + p). */
spca_status SPCA(explained_covariance)(spca_int p, const REAL *A, spca_int ld, spca_int r,
                                       const REAL *V, REAL *work, REAL *variance);
spca_status SPCA(explained_data)(spca_int n, spca_int p, const REAL *X, spca_int ld, int row_major,
                                 const REAL *mean, const REAL *weight, spca_int r, const REAL *V,
                                 REAL *work, REAL *variance);

/* Up to r components of k variables: V (p x r by columns), 0 from the count on, which is less than
 * r where no variable has more variance left than rounding.  Each is refitted and removed before
 * the next is sought: by the search of the plan (spca_dsearch, spca_ssearch) or, where it has no
 * starts, by truncated power from the variable of largest variance.  Variances as explained.  work
 * (components_work bytes, aligned for double; n = 0: covariance). */
spca_status SPCA(components_covariance)(spca_int p, const REAL *A, spca_int ld, spca_int r,
                                        spca_int k, spca_deflation deflation,
                                        const spca_search_plan *plan, spca_stop stop, void *ctx,
                                        void *work, REAL *V, REAL *variance, spca_int *count);
spca_status SPCA(components_data)(spca_int n, spca_int p, const REAL *X, spca_int ld, int row_major,
                                  const REAL *mean, const REAL *weight, spca_int r, spca_int k,
                                  spca_deflation deflation, const spca_search_plan *plan,
                                  spca_stop stop, void *ctx, void *work, REAL *V, REAL *variance,
                                  spca_int *count);
size_t SPCA(components_work)(spca_int n, spca_int p, spca_int k, spca_int r,
                             const spca_search_plan *plan);

/* q_t: the unit part of v_t orthogonal to v_1 .. v_(t-1); zero where entries rounded to a share
 * epsilon may have no such part.  V, Q (p x r by columns), work (p x r).  SPCA_NONFINITE: an entry
 * of V is. */
spca_status SPCA(orthogonal_parts)(spca_int p, spca_int r, const REAL *V, REAL epsilon, REAL *work,
                                   REAL *Q);

/* Whether all are finite. */
int SPCA(all_finite)(spca_int n, const REAL *x);

/* Means, and variances with n - 1, of constant columns exactly 0.  work (3p). */
spca_status SPCA(column_statistics)(spca_int n, spca_int p, const REAL *X, spca_int ld,
                                    int row_major, double *work, REAL *mean, double *variance);

/* The nonzeros of x, and how many; index and value hold p. */
spca_int SPCA(gather)(spca_int p, const REAL *x, spca_int *index, REAL *value);
