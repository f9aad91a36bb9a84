/* spca_proto.h - every prototype once; spca.h includes it for each precision with REAL and SPCA()
 * set, and says what the notation means. */

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

/* A vector by its nonzeros: nnz of them, at ascending index; index NULL means dense, nnz = p. */
typedef struct {
    spca_int nnz;
    const spca_int *index;
    const REAL *value;
} SPCA(vector);

/* The symmetric p x p operator A that every solver sees.
 *
 * Data X (n x p, m = n):  F = (diag(u) X - s mean') diag(weight) range^2,  A = F'F factor, where u
 *                         is row_weight, 1 if NULL, and s = u if `centered`, else 1.
 * Covariance (m = p):     F = A0 range^2,                          A = F.
 *
 * range is a power of two that brings the entries near 1.  It is applied once before and once after
 * each product, so that neither over- nor underflows.  So values of A carry range^4 (data) or
 * range^2 (covariance), which the caller takes out.  Then come the deflations (operator.c).  The
 * operator is read-only: threads may share it, since all scratch belongs to the call. */
typedef struct SPCA(operator) SPCA(operator);
struct SPCA(operator) {
    /* ---- what a storage is: its functions.  Nothing else asks how X or A0 is kept.  Each takes
     * stop (NULL: none) and ctx, and may return SPCA_STOPPED, SPCA_PRODUCT_FAILED or SPCA_OK.  None
     * checks that its result is finite, and none but `block` knows of deflations.  centring.h has
     * the terms beside the product with X. */

    /* f (m) = F v.  scratch (p). */
    spca_status (*forward)(const SPCA(operator) * A, SPCA(vector) v, spca_stop stop, void *ctx,
                           REAL *scratch, REAL *f);
    /* Data: y_a = (F'f)_j, j = list_a, a < count, given g = range u f (n) and total = range s'f.
     * list NULL: all p columns; it is NULL unless the data are dense or in CSC. */
    spca_status (*backward)(const SPCA(operator) * A, const REAL *g, REAL total, spca_int count,
                            const spca_int *list, spca_stop stop, void *ctx, REAL *y);
    /* W (m x k by columns) = F[:, index].  scratch (p). */
    spca_status (*columns)(const SPCA(operator) * A, spca_int k, const spca_int *index,
                           spca_stop stop, void *ctx, REAL *scratch, REAL *W);
    /* For b vectors together, by columns, each with the bits that it has alone.  SPCA_FORWARD: out
     * (m x b) = F V without deflations.  SPCA_BACKWARD: out (p x b) = factor F'U without
     * deflations, where V is U (n x b).  SPCA_BOTH: out (p x b) = A V with deflations and shift.
     * work (block_work).  NULL: there is none; the caller takes a column at a time. */
    spca_status (*block)(const SPCA(operator) * A, spca_block what, spca_int b, const REAL *V,
                         spca_stop stop, void *ctx, REAL *work, REAL *out);
    /* The work of `block`, in reals; 0 where it has no such product for this operator. */
    spca_int (*block_work)(const SPCA(operator) * A, spca_block what, spca_int b);
    /* Data: what SPCA(dense_gram) says.  NULL: only products are known.  gram_work: the bytes of
     * its work. */
    spca_status (*gram)(const SPCA(operator) * A, spca_int m, spca_int k, const spca_int *index,
                        spca_stop stop, void *ctx, void *work, double *G);
    spca_int (*gram_work)(const SPCA(operator) * A, spca_int k);

    spca_int n, p, m;
    int symmetric_form; /* a covariance: m = p and A = F */
    int row_major;      /* dense: C order (else Fortran order); compressed: CSR (else CSC) */
    /* entries of X or A0, or of compressed storage */
    const REAL *data;
    spca_int ld;         /* dense: leading dimension */
    const void *indptr;  /* compressed: int32 or, if wide, int64 */
    const void *indices; /* compressed: of the same width */
    int wide;
    const REAL *mean;       /* (p) or NULL */
    const REAL *weight;     /* (p) or NULL */
    const REAL *row_weight; /* u (n) or NULL; of data without a screen */
    int centered;           /* rows are weighted after they are centered, not before */
    REAL range, factor;
    REAL shift; /* products are with A + shift I; solvers raise it where A is indefinite */
    /* After projection deflation by orthonormal directions Q, with B = I - QQ', products are with A
     * + span_weight QQ'.  With quotient, they are with A + rho QQ', rho = v'Av/v'Bv, and quadratic
     * forms v'Av are rho v'v.  A solver that subtracts l1_price ||v||_1 from sqrt(v'Av) sets
     * l1_price: then rho is less by l1_price ||v||_1 sqrt(v'Av)/v'Bv in the product (operator.c).
     */
    REAL span_weight, l1_price;
    int quotient;
    void *owner;  /* for products that a callback makes */
    spca_run run; /* does the parts of loops over X, or NULL; the bits are the same */
    /* Deflation by t directions x_i.  image_i (m) is g_i = F x_i of the operator before that step;
     * for Schur complements over its norm (data) or over sqrt |x_i'g_i| (covariance). */
    spca_deflation deflation;
    spca_int t;
    const SPCA(vector) * direction;
    const REAL *const *image;
    spca_screen *screen;      /* dense data, or NULL */
    spca_column_cache *cache; /* dense data in C order, or NULL */
    const REAL *coefficient;  /* Hotelling: x_i'A x_i; Schur: the sign of x_i'g_i */
};

/* Fill in the functions of dense arrays (dense.c, dense_block.c, gram.c), and of compressed storage
 * (compressed.c, compressed_block.c, compressed_gram.c). */
void SPCA(use_dense)(SPCA(operator) * A);
void SPCA(use_compressed)(SPCA(operator) * A);
spca_status SPCA(dense_block)(const SPCA(operator) * A, spca_block what, spca_int b, const REAL *V,
                              spca_stop stop, void *ctx, REAL *work, REAL *out);
spca_int SPCA(dense_block_work)(const SPCA(operator) * A, spca_block what, spca_int b);
spca_status SPCA(compressed_block)(const SPCA(operator) * A, spca_block what, spca_int b,
                                   const REAL *V, spca_stop stop, void *ctx, REAL *work, REAL *out);
spca_int SPCA(compressed_block_work)(const SPCA(operator) * A, spca_block what, spca_int b);

/* G (m x k by rows) = A[index[:m], index] of data without deflation, in one pass: k different
 * variables, of compressed data SPCA_GRAM_MOST at most; or index NULL for all, m = k = p.  Entries
 * of F are rounded to REAL; sums of blocks of products are added in double precision (gram.c).
 * SPCA_NONFINITE: an entry is not finite in REAL.  work (A->gram_work bytes, aligned for double).
 */
spca_status SPCA(dense_gram)(const SPCA(operator) * A, spca_int m, spca_int k,
                             const spca_int *index, spca_stop stop, void *ctx, void *work,
                             double *G);
spca_int SPCA(dense_gram_work)(const SPCA(operator) * A, spca_int k);
/* In one read of dense X, whatever means and weights A has: mean, square, low and high (p each) as
 * dense_statistics has them, to roundings in REAL of what is left of X by a shift near the mean;
 * and G (p x p) = (X - 1 mean')' (X - 1 mean').  Squares in REAL may leave the number range: then G
 * is not to be used (gram.c).  work (dense_gram_work bytes). */
spca_status SPCA(dense_moments)(const SPCA(operator) * A, spca_stop stop, void *ctx, void *work,
                                double *mean, double *square, double *low, double *high, double *G);
spca_status SPCA(compressed_gram)(const SPCA(operator) * A, spca_int m, spca_int k,
                                  const spca_int *index, spca_stop stop, void *ctx, void *work,
                                  double *G);
spca_int SPCA(compressed_gram_work)(const SPCA(operator) * A, spca_int k);
/* G (k x k) = A[index, index] of compressed data without deflation, in single precision.  Its
 * errors are those of sums of products of X in that precision, before means are taken from them
 * (rough_gram.c).  work (rough_gram_work bytes). */
void SPCA(rough_gram)(const SPCA(operator) * A, spca_int k, const spca_int *index, void *work,
                      float *G);
spca_int SPCA(rough_gram_work)(const SPCA(operator) * A, spca_int k);

/* A->columns by k products with unit vectors, for operators that know only products. */
spca_status SPCA(columns_by_products)(const SPCA(operator) *, spca_int, const spca_int *, spca_stop,
                                      void *, REAL *, REAL *);

/* f (m) = F v with deflations, but for Hotelling's, which acts on A v alone.  apply, scores and
 * images need it. */
spca_status SPCA(forward)(const SPCA(operator) * A, SPCA(vector) v, spca_stop stop, void *ctx,
                          REAL *scratch /* p */, REAL *f);

/* W (m x k by columns) = F[:, index] with these deflations. */
spca_status SPCA(images)(const SPCA(operator) * A, spca_int k, const spca_int *index,
                         spca_stop stop, void *ctx, REAL *scratch /* p */, REAL *W);

/* y (p) = A v with all deflations and the shift.  SPCA_NONFINITE: an entry is not finite.  work (m
 * + t). */
spca_status SPCA(apply)(const SPCA(operator) * A, SPCA(vector) v, spca_stop stop, void *ctx,
                        REAL *work, REAL *y /* p */);

/* y_a = (A v)_j, j = list_a ascending, a < count, of data in CSC, with the bits of apply.  image
 * (m): F v, as forward gives it, or NULL.  work (m + t + p). */
spca_status SPCA(apply_at)(const SPCA(operator) * A, SPCA(vector) v, const REAL *image,
                           spca_int count, const spca_int *list, spca_stop stop, void *ctx,
                           REAL *work, REAL *y);

/* Y (p x b by columns, apart from V) = A V.  Dense data are read once for SPCA_TOGETHER columns, or
 * twice where no block of rows stays in cache.  Compressed data without deflation are read once for
 * SPCA_MANY/sizeof(REAL) columns, twice in CSC order.  Other operators make a product for each
 * column.  Every column has the bits that apply gives it.  work (block_work). */
spca_status SPCA(apply_block)(const SPCA(operator) * A, spca_int b, const REAL *V, spca_stop stop,
                              void *ctx, REAL *work, REAL *Y);
spca_int SPCA(block_work)(const SPCA(operator) * A, spca_int b);

/* The two halves of that, of data: f (n x b) = F V, and Y (p x b) = factor F'U; by columns, with
 * the bits of forward and backward.  work (block_work). */
spca_status SPCA(forward_block)(const SPCA(operator) * A, spca_int b, const REAL *V, spca_stop stop,
                                void *ctx, REAL *work, REAL *f);
spca_status SPCA(backward_block)(const SPCA(operator) * A, spca_int b, const REAL *U,
                                 spca_stop stop, void *ctx, REAL *work, REAL *Y);

/* The k entries of A v largest in magnitude (nonnegative: largest, where entries below 0 count as
 * 0), at ascending index, ties to the lower index; and quadratic = v'A v.  work (2p + m + t).
 * Where A has a screen, not all of X is read; the bits are the same. */
spca_status SPCA(largest)(const SPCA(operator) * A, SPCA(vector) v, spca_int k, int nonnegative,
                          spca_stop stop, void *ctx, REAL *work, spca_int *index /* k */,
                          REAL *value /* k */, REAL *quadratic);

/* v'Bv/v'v, for an operator with quotient; 1 for another, and where v lies in the span of Q. */
REAL SPCA(outside)(const SPCA(operator) * A, SPCA(vector) v);
/* y (p) += weight QQ'v, for an operator with quotient; else nothing. */
void SPCA(add_span)(const SPCA(operator) * A, REAL weight, SPCA(vector) v, REAL *y /* p */);

/* The `count` entries of A v with magnitude above tau or, relative, above tau sqrt(v'(A - shift
 * I)v), where a quotient's addition to v'Av is left out; at ascending index.  quadratic = v'A v.
 * For A = F'F and unit v, relative means |F_j'u| > tau for u = F v/||F v||.  work (2p + m + t). */
spca_status SPCA(above)(const SPCA(operator) * A, SPCA(vector) v, REAL tau, int relative,
                        spca_stop stop, void *ctx, REAL *work, spca_int *count,
                        spca_int *index /* p */, REAL *value /* p */, REAL *quadratic);

/* y (p) = factor F'u with deflations.  work (m + t). */
spca_status SPCA(backward)(const SPCA(operator) * A, const REAL *u, spca_stop stop, void *ctx,
                           REAL *work, REAL *y /* p */);

/* How many directions are subtracted from F'f. */
spca_int SPCA(subtracted)(const SPCA(operator) * A);

/* y_a -= (sum_i c_i x_i - shift v)_j, j = list_a ascending (NULL: all p): what is left to do after
 * y = F'f. */
void SPCA(subtract)(const SPCA(operator) * A, SPCA(vector) v, const REAL *c, spca_int count,
                    const spca_int *list, REAL *y);

/* Exact values y_a of A v at a list of columns that holds the k largest in magnitude (nonnegative:
 * where negative entries count as 0), and every one above tau.  *list is ascending, in
 * A->screen->list, or NULL for all columns; *count: how many.  f = range factor F v, and c has the
 * coefficients of the directions.  k = 0: tau alone.  work (p) (screen.c). */
spca_status SPCA(screened)(const SPCA(operator) * A, SPCA(vector) v, const REAL *f, const REAL *c,
                           spca_int k, REAL tau, int nonnegative, spca_stop stop, void *ctx,
                           REAL *work, spca_int *count, const spca_int **list, REAL *y /* p */);

/* Copies `count` <= capacity columns of C-ordered data next to each other, if they are not there
 * yet; A->cache->slot_list gets their places. */
spca_status SPCA(keep_columns)(const SPCA(operator) * A, spca_int count, const spca_int *list,
                               spca_stop stop, void *ctx);

/* C_ij (m x n, at C[i ldc + j]) = factor sum_l a_il b_jl or, with `add`, factor (C_ij + sum_l a_il
 * b_jl), over `depth` products.  a_il is A[i lda + l] or, across, A[i + l lda]; likewise b.  Where
 * B == A and m == n, C is symmetric to the bit.  The bits are the same for any number of threads
 * (products.c).  work (room): it is faster where room is SPCA_TURNED (m + n + SPCA_SPARE), without
 * n if B == A; across needs none. */
spca_status SPCA(matrix_product)(int across, spca_int m, spca_int n, spca_int depth, const REAL *A,
                                 spca_int lda, const REAL *B, spca_int ldb, REAL factor, int add,
                                 spca_run run, spca_stop stop, void *ctx, spca_int room, REAL *work,
                                 REAL *C, spca_int ldc);

/* G (k x k) = A[index, index]; A has no shift or span_weight.  work (data: m k + room, room >= p
 * and best SPCA_TURNED (k + SPCA_SPARE); covariance: 2p + t). */
spca_status SPCA(submatrix)(const SPCA(operator) * A, spca_int k, const spca_int *index,
                            spca_stop stop, void *ctx, spca_int room, REAL *work, REAL *G);

/* G (k x k) = A[index, index] of a matrix by rows, leading dimension lda. */
void SPCA(principal_submatrix)(spca_int k, const spca_int *index, const REAL *A, spca_int lda,
                               REAL *G);

/* K (m x m) = FF' factor of data, with deflations but for Hotelling's, which has no F.  work (m
 * SPCA_OUTER_BLOCK + p), iwork (SPCA_OUTER_BLOCK). */
spca_status SPCA(outer)(const SPCA(operator) * A, spca_stop stop, void *ctx, REAL *work,
                        spca_int *iwork, REAL *K);

/* The largest eigenvalue and its unit eigenvector (k) of symmetric G (k x k, destroyed), whose bits
 * no number of threads changes (leading_eigenvector.c).  Variables with only zeros in G have no
 * loading, whatever rounding says; but where all other eigenvalues are negative, the first of them
 * has all of it.  work (6k). */
spca_status SPCA(leading_eigenvector)(spca_int k, REAL *G, REAL *work, REAL *value, REAL *vector);

/* Symmetric A (k x k, entries near 1; its lower triangle is read, and A overwritten) = H T H',
 * where T is tridiagonal with d (k) and e (k, the last one 0), by additions of one order
 * (tridiagonal.c).  H is in A and tau (k) then.  work (16k). */
spca_status SPCA(tridiagonal)(spca_int k, spca_stop stop, void *ctx, REAL *A, REAL *work, REAL *tau,
                              REAL *d, REAL *e);
/* x <- H x for each row x of V (r x k by rows). */
spca_status SPCA(untridiagonal)(spca_int k, spca_int r, const REAL *A, const REAL *tau,
                                spca_stop stop, void *ctx, REAL *V);

/* ---- statistics of the input (statistics.c) ------------------------------------------------- */

/* For each column of X (n x p): mean, sum of squared deviations from it (square), smallest and
 * largest entry (low, high).  These are in double for both precisions; mean or square is NaN or
 * infinite where the data are, or where squares overflow.  It is stable at any mean, and reads X
 * once.  With a quantized copy (p x quantized_ld, a column of X in each row; else NULL), each
 * column is quantized about its mean (center) or about 0 while it is in cache: x_j - mean ~ step_j
 * q_j, as `quantize` does. */
spca_status SPCA(dense_statistics)(spca_int n, spca_int p, const REAL *X, spca_int ld,
                                   int row_major, int center, spca_int quantized_ld, spca_stop stop,
                                   void *ctx, double *mean, double *square, double *low,
                                   double *high, int8_t *quantized, double *step, double *error,
                                   float *size);
/* dense_statistics, to the bit, by threads (statistics_parts.c). */
spca_status SPCA(shared_statistics)(spca_int n, spca_int p, const REAL *X, spca_int ld,
                                    int row_major, int center, spca_int quantized_ld, spca_run run,
                                    spca_stop stop, void *ctx, double *mean, double *square,
                                    double *low, double *high, int8_t *quantized, double *step,
                                    double *error, float *size);
/* out (n x r by rows) = (X[:, index] - 1 mean') V for k > 0 columns; index NULL: the first k.  mean
 * (k) and V (k x r by rows) belong to these.  The bits are the same for any number of threads
 * (scores.c).  work (k (r + 15)). */
spca_status SPCA(scores)(spca_int n, spca_int k, spca_int r, const REAL *X, spca_int ld,
                         int row_major, const spca_int *index, const REAL *mean, const REAL *V,
                         spca_run run, spca_stop stop, void *ctx, REAL *work, REAL *out);
/* The quantized copy of c columns, given their mean (NULL: 0), smallest and largest entry: q_j =
 * (x_j - mean_j)/step_j rounded to int8; error_j >= ||x_j - mean_j - step_j q_j||, but for rounding
 * in the differences; size_j >= ||q_j||. */
void SPCA(quantize)(spca_int n, spca_int c, const REAL *X, spca_int ld, int row_major,
                    const double *mean, const double *low, const double *high,
                    spca_int quantized_ld, int8_t *quantized, double *step, double *error,
                    float *size);
/* mean, square and spread (p) of the columns of compressed data; spread is 0 exactly where the
 * column is constant.  count, first (p): scratch. */
spca_status SPCA(compressed_statistics)(spca_int n, spca_int p, const REAL *data,
                                        const void *indptr, const void *indices, int wide,
                                        int row_major, spca_run run, spca_stop stop, void *ctx,
                                        double *mean, double *square, double *spread,
                                        double *count /* p */, double *first /* p */);
/* mean and square where each row counts by its weight (n), not all of which are 0; low and high
 * over rows of a weight.  A column with an entry that is not finite has the mean NaN (weighted.c).
 * work (8p). */
spca_status SPCA(weighted_statistics)(spca_int n, spca_int p, const REAL *X, spca_int ld,
                                      int row_major, const double *weight, spca_stop stop,
                                      void *ctx, double *mean, double *square, double *low,
                                      double *high);
spca_status SPCA(weighted_compressed)(spca_int n, spca_int p, const REAL *data, const void *indptr,
                                      const void *indices, int wide, int row_major,
                                      const double *weight, spca_stop stop, void *ctx, double *mean,
                                      double *square, double *low, double *high, double *work);
/* filled (n x p by columns): X (NaN where an entry is missing) less the mean of what is observed in
 * each column, if `center`, and over its standard deviation, if `scale` (1 where that is 0); 0
 * where an entry is missing, and in a column whose entries are all the same.  SPCA_NONFINITE:
 * column *bad has an infinite entry, or none is observed; else *bad = p (missing.c).  work (16n).
 */
spca_status SPCA(fill_missing)(spca_int n, spca_int p, const REAL *X, spca_int ld, int row_major,
                               int center, int scale, spca_stop stop, void *ctx, double *work,
                               double *mean, double *deviation,
                               REAL *filled /* n x p, by columns */, spca_int *bad);
/* How far A is from symmetric and semidefinite: the largest |a_ij| (NaN where an entry is not
 * finite), the largest |a_ij - a_ji|, and the largest excess |a_ij| - sqrt(a_ii a_jj) of a 2 x 2
 * minor, which is above 0 where that is not positive semidefinite. */
spca_status SPCA(symmetry)(spca_int p, const REAL *A, spca_int ld, spca_stop stop, void *ctx,
                           double *largest, double *asymmetry, double *excess);
/* `symmetry` of compressed storage whose indices ascend in each line.  next, root (p): scratch. */
spca_status SPCA(compressed_symmetry)(spca_int p, const REAL *data, const void *indptr,
                                      const void *indices, int wide, spca_stop stop, void *ctx,
                                      spca_int *next, double *root, double *largest,
                                      double *asymmetry, double *excess);

/* ---- selection and thresholds --------------------------------------------------------------- */

/* Returns the k-th largest |x_i| (k >= 1); ties: how many entries equal to it belong to the k
 * largest.  work (p). */
REAL SPCA(kth_largest)(spca_int p, const REAL *x, spca_int k, REAL *work, spca_int *ties);

/* index (k): the positions of the k largest |x_i|, ascending, ties to the lower index; 0 <= k <= p.
 * NaN only where no others are left, after them.  work (p). */
void SPCA(select_largest)(spca_int p, const REAL *x, spca_int k, REAL *work, spca_int *index);
/* select_largest, given a level that at least k of |x_i| reach, and best only few more. */
void SPCA(select_reaching)(spca_int p, const REAL *x, spca_int k, REAL level, REAL *work,
                           spca_int *index);

/* x <- T_k(x).  work (p). */
void SPCA(truncate)(spca_int p, spca_int k, REAL *x, REAL *work);

/* out (p) = S(a, level): sign(a_i) (|a_i| - level)_+; out may be a. */
void SPCA(soft_threshold)(spca_int p, const REAL *a, REAL level, spca_run run, REAL *out);

/* w = argmax w'a over ||w|| <= 1, ||w||_1 <= bound, 1 <= bound <= sqrt(p): w = S(a, level)/||.||.
 * nonnegative = 1: of the positive part of a, whose other part is not looked at, NaN or not; 2: of
 * the positive part too, but SPCA_NONFINITE where the other part is not finite.  w may be a; work
 * (p) may be w if w is not a.  After SPCA_NONFINITE w is as it was, unless it is work.  Witten,
 * Tibshirani & Hastie (2009), Biostatistics 10(3), lemma 2.2. */
spca_status SPCA(l1_threshold)(spca_int p, const REAL *a, double bound, int nonnegative,
                               spca_run run, REAL *work, REAL *w, double *level);

/* Returns the level at which sum_i (|a_i| - level)_+ = bound; 0 where sum |a_i| <= bound.  Newton's
 * method on that convex function of the level begins at `start`, which decides only the time.
 * Duchi, Shalev-Shwartz, Singer & Chandra (2008), ICML (l1_level.c). */
double SPCA(l1_ball_level)(spca_int p, const REAL *a, double bound, double start, spca_run run);

/* Returns the largest |a_i| such that the magnitudes from it upwards sum to more than bound; 0 if
 * there is none.  work (p). */
REAL SPCA(l1_kept_level)(spca_int p, const REAL *a, double bound, REAL *work);

/* ---- solvers -------------------------------------------------------------------------------- */

/* norm_i = ||T_k(a_j)||, j = row_i, for rows a_j of A (p x p).  With x = T_k(a_j)/norm_i, x'A e_j =
 * norm_i, so that x'A x >= norm_i^2/a_jj if A is semidefinite.  work (p), iwork (k). */
void SPCA(largest_norms)(spca_int p, spca_int k, spca_int rows, const spca_int *row, const REAL *A,
                         REAL *work, spca_int *iwork, REAL *norm);

/* The truncated power method: x <- T_k(A x)/||.||, or T_k of the positive part.  Yuan & Zhang
 * (2013), JMLR 14, algorithm 1.  x: nnz nonzeros at index, value: a start of any norm, with more
 * than k nonzeros or fewer, is overwritten by the result; index and value have room for max(nnz,
 * k).  objective = x'Ax; n_iter: steps.  work (2p + m + t + 2k), iwork (k). */
spca_status SPCA(truncated_power)(const SPCA(operator) * A, spca_int k, int nonnegative,
                                  spca_int max_iter, REAL tol, spca_stop stop, void *ctx,
                                  spca_int *nnz, spca_int *index, REAL *value, REAL *work,
                                  spca_int *iwork, REAL *objective, spca_int *n_iter);

/* truncated_power of a symmetric matrix A (p x p) in memory, with the same bits where no more than
 * p/2 nonzeros are multiplied; max_iter > 0 where more than k start.  work (3p + k^2 + 2k), iwork
 * (2k). */
spca_status SPCA(truncated_power_of_matrix)(spca_int p, spca_int k, const REAL *A,
                                            spca_int max_iter, REAL tol, spca_stop stop, void *ctx,
                                            spca_int *nnz, spca_int *index, REAL *value, REAL *work,
                                            spca_int *iwork, REAL *objective, spca_int *n_iter);

/* The generalized power method: over unit w, max sqrt(w'Aw) - gamma ||w||_1 or, l0, max w'Aw -
 * gamma ||w||_0.  objective is that at the end, quadratic = w'Aw; with quotient both are for w with
 * w'Bw = 1.  Journee, Nesterov, Richtarik & Sepulchre (2010), JMLR 11, algorithms 2 and 3.  w: a
 * start of any norm, nnz nonzeros, is overwritten by the result; index and value have room for p.
 * SPCA_ZERO_VECTOR: every entry falls below the threshold.  work (3p + m + t), iwork (p). */
spca_status SPCA(gpower)(const SPCA(operator) * A, int l0, REAL gamma, spca_int max_iter, REAL tol,
                         spca_stop stop, void *ctx, spca_int *nnz, spca_int *index, REAL *value,
                         REAL *work, spca_int *iwork, REAL *objective, REAL *quadratic,
                         spca_int *n_iter);
/* Iterations with any rule, for units and signs (unit_ascent.c).  start (p) is of any norm.  best
 * (p) and its units, support (units), with the objective and quadratic = x'Ax; also where it was
 * stopped, unless the objective is minus infinity.  work (2p + m + t), dwork (2p + step_work),
 * iwork (p), kept (units): scratch. */
spca_status SPCA(unit_ascent)(const SPCA(operator) * A, const spca_rule *rule, spca_int max_iter,
                              double tol, spca_stop stop, void *ctx, const double *start,
                              REAL *work, double *dwork, spca_int *iwork, uint8_t *kept,
                              double *best, uint8_t *support, double *objective, double *quadratic,
                              spca_int *n_iter);
/* v <- argmax (A v)'w over ||w|| = 1, ||w||_1 <= bound (and w >= 0), which maximizes objective =
 * v'Av.  Witten, Tibshirani & Hastie (2009), Biostatistics 10(3), section 3.2
 * (penalized_decomposition.c).  v: a start of any norm, nnz nonzeros, is overwritten by the result;
 * index and value have room for p.  work (3p + m + t), iwork (p). */
spca_status SPCA(pmd)(const SPCA(operator) * A, double bound, int nonnegative, spca_int max_iter,
                      REAL tol, spca_stop stop, void *ctx, spca_int *nnz, spca_int *index,
                      REAL *value, REAL *work, spca_int *iwork, REAL *objective, spca_int *n_iter);

/* pmd of both sides: max u'F v where ||u||_1 <= sample_bound, too, for data not deflated by
 * Hotelling.  objective is u'F v, with quotient u'F v/sqrt(v'Bv), and u (m) belongs to v.  work (p
 * + m + max(p, m + t)), iwork (p). */
spca_status SPCA(pmd_two_way)(const SPCA(operator) * A, double bound, double sample_bound,
                              int nonnegative, spca_int max_iter, REAL tol, spca_stop stop,
                              void *ctx, spca_int *nnz, spca_int *index, REAL *value, REAL *work,
                              spca_int *iwork, REAL *u /* m */, REAL *objective, spca_int *n_iter);

/* v <- argmax (A v)'w over ||w|| = 1, ||w||_1 <= bound, Q'w = 0, Q (p x t by columns) orthonormal,
 * which maximizes objective = v'Av.  Jolliffe, Trendafilov & Uddin (2003), JCGS 12(3) (scotlass.c).
 * v: a start of any norm, then the result.  SPCA_ZERO_VECTOR: also where no unit vector is
 * feasible.  work (2p + max(3p, m + A->t)), dwork (t^2 + 5t). */
spca_status SPCA(scotlass)(const SPCA(operator) * A, spca_int t, const REAL *Q, double bound,
                           spca_int max_iter, REAL tol, spca_stop stop, void *ctx, REAL *v /* p */,
                           REAL *work, double *dwork, REAL *objective, spca_int *n_iter);

/* w (p) = argmax a'w over ||w|| <= 1 and these constraints; SPCA_ZERO_VECTOR where it does not have
 * unit norm.  mu (t): a start, and then the solution of the dual.  work (3p), dwork (t^2 + 4t). */
spca_status SPCA(orthogonal_l1_threshold)(spca_int p, spca_int t, const REAL *a, const REAL *Q,
                                          double bound, spca_stop stop, void *ctx, double *mu,
                                          REAL *work, double *dwork, REAL *w);
/* ---- greedy search (greedy.c) --------------------------------------------------------------- */

/* value (count): the largest eigenvalue of the pencil (A, I + strength QQ') on a support of k
 * variables and one candidate (ascending) more, for each of these.  C (k x p by rows): A at the
 * support; diagonal (p): of A.  W (k x w by columns) and eigenvalues (w, descending) are of the
 * pencil on the support.  Q (t x p by rows); R (w x t by columns): W'Q at the support.  A direction
 * that the candidate adds counts if its square in the metric is above least.  t = 0: plain A; then
 * norm (p) has the squared norms of the columns of C, or is NULL: with these, candidates that
 * others surpass may get -infinity.  work (p + 64 (k + t + 2w) + 3w). */
spca_status SPCA(bordered_eigenvalues)(spca_int p, spca_int k, spca_int w, spca_int t,
                                       spca_int count, const spca_int *candidate, const REAL *C,
                                       const double *diagonal, const double *eigenvalues,
                                       const double *W, const double *norm, const double *Q,
                                       const double *R, double strength, double least,
                                       spca_stop stop, void *ctx, double *work,
                                       double *value /* count */);

/* Finds an exchange of variables that raises the largest eigenvalue of A on a support of k > 1
 * variables above level.  *first: the first of the n_leaving places, in the order given, that some
 * candidate (ascending) may take; >= n_leaving: none.  *entering: the candidate for it with the
 * largest eigenvalue, *value, the first of equal ones to rounding.  Row row_a of C (by rows of p)
 * is A at the a-th variable of the support; diagonal (p): of A.  eigenvalues (k, descending, the
 * first no more than the level, but for rounding, and the second less) and U (k x k by columns) are
 * of A on the support.  slack: the share of each term of a bound that rounding may hide; tie: the
 * share by which values differ.  work (k (k + 1) + 64 (2k + 3)), iwork (count) (exchange.c). */
spca_status SPCA(exchange)(spca_int p, spca_int k, spca_int n_leaving, const spca_int *leaving,
                           spca_int count, const spca_int *candidate, const REAL *C,
                           const spca_int *row, const double *diagonal, const double *eigenvalues,
                           const double *U, double level, double slack, double tie, spca_stop stop,
                           void *ctx, double *work, spca_int *iwork, spca_int *first,
                           spca_int *entering, double *value);

/* Makes swaps for as long as exchange finds one, at most `most`; *made: how many.  A (p x p)
 * symmetric, diagonal (p): its own.  index (k > 1, ascending): the support, then the new one, with
 * its leading eigenvector (k) and eigenvalue, *value.  A swap raises that by more than the share
 * rise of the largest magnitude of an eigenvalue.  *ended: whether no other swap does; it is 0,
 * too, where the two largest eigenvalues are within the share gap, which exchange does not allow.
 * work (3 k^2 + 130 k + 192), blas_work (12 k), iwork (2 p + k) (exchange.c). */
spca_status SPCA(swap)(spca_int p, spca_int k, const REAL *A, const double *diagonal, double rise,
                       double gap, double slack, double tie, spca_int most, spca_stop stop,
                       void *ctx, double *work, blas_int *blas_work, spca_int *iwork,
                       spca_int *index, double *vector, double *value, spca_int *made, int *ended);

/* Makes swaps that the vector of a support tells to raise its leading eigenvalue by more than the
 * share rise, the best first, at most `most`; *made: how many.  index (k > 1), value (k): the
 * support and a vector there, then the new one, ascending, and a unit vector with x'Ax =
 * *objective, which is nearly its eigenvalue.  Other swaps may raise that further.  work (2 p + k^2
 * + 2 k) (quick_swap.c). */
spca_status SPCA(quick_swaps)(spca_int p, spca_int k, const REAL *A, REAL rise, spca_int most,
                              spca_stop stop, void *ctx, REAL *work, spca_int *index, REAL *value,
                              double *objective, spca_int *made);

/* ---- the search of a matrix in memory (search.c) --------------------------------------------- */

/* Supports of k variables with a large leading eigenvalue of symmetric A (p x p): *count <=
 * plan->ends different ones in index (plan->ends x k), each ascending, the best first (of those
 * that tie, to the share plan->tie, the one whose variables come first), with their values, and how
 * many runs reached each.  A value is the eigenvalue itself where swaps improved it (k > 1).  score
 * (p): scratch or, if known, the norms of the plan->width[0] or k largest entries of each row of a
 * matrix much like A; if fewer columns start than there are, those that may matter become the norms
 * for A.  SPCA_STOPPED: with what was found so far.  work (search_work bytes, aligned for double).
 */
spca_status SPCA(search)(spca_int p, spca_int k, const REAL *A, REAL *score, int known,
                         const spca_search_plan *plan, spca_stop stop, void *ctx, void *work,
                         spca_int *index, double *value, spca_int *runs, spca_int *count,
                         spca_search_counts *counts);
size_t SPCA(search_work)(spca_int p, spca_int k, int known, const spca_search_plan *plan);

/* The race of `search` alone: the *count different supports where it leaves its runs, the best
 * first; at most the last of plan->keep, or all starts.  index (count x k), value (count x k):
 * their vectors; n_iter: the steps of each. */
spca_status SPCA(race)(spca_int p, spca_int k, const REAL *A, REAL *score, int known,
                       const spca_search_plan *plan, spca_stop stop, void *ctx, void *work,
                       spca_int *index, REAL *value, spca_int *n_iter, spca_int *count);
size_t SPCA(race_work)(spca_int p, spca_int k, int known, const spca_search_plan *plan);

/* ---- several loadings together (joint.c) ---------------------------------------------------- */

/* Loadings V (p x r), at most size_t nonzeros in loading t, that explain much together: max Tr(A V
 * (V'V)^-1 V') for symmetric semidefinite A.  Each loading ascends given the others, by truncated
 * power on x'PAPx/x'Px, P the projection away from these (Mackey 2008, section 3.3; Yuan & Zhang
 * 2013), and by exchanges of variables.  Moves change the best loadings known, and an ascent
 * follows each move.
 *
 * The population: `members` places for loadings by their nonzeros, nnz (members x r), ascending
 * index and value (members x r x room), room = max size, and what each member explains, in
 * descending order.  First the `given` loadings in the first places ascend.  Then come at most
 * `moves` moves, until `patience` of them, one after another, raised nothing, or *spent
 * multiplications exceed limit.
 *
 * Kept between calls, all 0 at first: random (the generator's), state (3: moves made, moves that
 * raised nothing, places taken), spent, and subspace (2r (p + 1) + p).  diagonal (p): that of A.
 * of: which supports are allowed; size is their cardinality then, and room the most variables of
 * one; given loadings have a place for included variables; NULL: any.  constraint 1: V'V = I, or 2:
 * V'AV diagonal, and Tr V'AV is raised; 0: none. work (joint_work), iwork (joint_iwork), turned (p
 * r). */
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
 *     sum_j [sum_i y_ij^4 - (gamma/p) (sum_i y_ij^2)^2],
 * and Y <- Y R in place (p x r by columns).  A planar rotation that would raise the criterion by no
 * more than (1 + gamma) tol^2 sum_i (y_ia^2 + y_ib^2)^2 is not worth making; when none is, it ends.
 * At most max_iter sweeps, or steps that turn all pairs at once.  work (SPCA(orthomax_work))
 * (ascent.c). */
spca_status SPCA(orthomax)(spca_int p, spca_int r, double gamma, spca_int max_iter, double tol,
                           spca_run run, spca_stop stop, void *ctx, REAL *Y, double *work,
                           double *R, spca_int *n_iter);
spca_int SPCA(orthomax_work)(spca_int p, spca_int r);

/* orthomax by sweeps over the pairs of columns alone.  R is multiplied by the rotations made, and
 * n_iter grows by the sweeps made (rotate.c). */
spca_status SPCA(planar_sweeps)(spca_int p, spca_int r, double gamma, spca_int max_iter, double tol,
                                spca_stop stop, void *ctx, REAL *Y, double *R, spca_int *n_iter);

/* The rotation that minimizes sum |y_ij|: turns pairs of columns until none lowers its share by
 * more than tol times that.  R is multiplied by the rotations made, and n_iter grows by the sweeps
 * made.  work (3p), iwork (r + r^2) (l1_rotate.c). */
spca_status SPCA(l1_sweeps)(spca_int p, spca_int r, spca_int max_iter, double tol, spca_stop stop,
                            void *ctx, REAL *Y, double *work, spca_int *iwork, double *R,
                            spca_int *n_iter);

/* Tiles of SPCA_TILE rows by columns; an odd r has one more column of zeros (moments.c). */
/* z = y R, of a tile. */
void SPCA(tile_turn)(spca_int r, const double *R, const REAL *y, REAL *z);
/* Adds sums over the rows of a tile to the upper triangles (r x r by rows) S_ab += z_a^2 z_b^2,
 * U_ab += (z_a^2 - z_b^2) z_a z_b and G_ab += z_a z_b.  square: scratch of the size of z. */
void SPCA(tile_moments)(spca_int r, const REAL *z, REAL *square, double *S, double *U);
void SPCA(tile_gram)(spca_int r, const REAL *z, double *G);
/* norm: the squared norms of the rows of a tile; returns the sum of z_ij^4. */
double SPCA(tile_norms)(spca_int r, const REAL *z, REAL *norm /* SPCA_TILE */);

/* ---- sparse clustering (distances.c) ----------------------------------------------------------
 */

/* D_ii' += sum_j w_j |t_ij - t_i'j|, or w_j (t_ij - t_i'j)^2 (squared), for n(n-1)/2 pairs i < i',
 * row by row, over b columns of T (n x b by columns). */
spca_status SPCA(add_distances)(spca_int n, spca_int b, const REAL *T, const REAL *w, int squared,
                                spca_run run, spca_stop stop, void *ctx, double *D);
/* y_j = sum_{i < i'} u_ii' |t_ij - t_i'j| for b columns; u as D above.  work (n b), b rounded up to
 * SPCA_LANES. */
spca_status SPCA(absolute_products)(spca_int n, spca_int b, const REAL *T, const REAL *u,
                                    spca_run run, spca_stop stop, void *ctx, REAL *work, double *y);

/* ---- in-place deflation (deflate.c) --------------------------------------------------------- */

/* All of these return SPCA_NONFINITE, and leave the matrix as it is, where A x is not finite, or,
 * for data, X x, or X'u of a Schur complement. */

/* A <- A - lambda x x', lambda = x'A x: only rows and columns of the support change.  A is full and
 * symmetric, with leading dimension ld. */
spca_status SPCA(deflate_hotelling)(spca_int ld, SPCA(vector) x, REAL *A);
/* A <- (I - xx') A (I - xx'): only rows and columns of the support change.  work (2p). */
spca_status SPCA(deflate_projection)(spca_int p, spca_int ld, SPCA(vector) x, REAL *A, REAL *work);
/* A <- A - A xx'A / (x'A x); A stays as it is if x'A x is zero to rounding.  work (p). */
spca_status SPCA(deflate_schur)(spca_int p, spca_int ld, SPCA(vector) x, REAL *A, REAL *work);
/* X <- X (I - xx'): only columns of the support change.  work (n). */
spca_status SPCA(deflate_data_projection)(spca_int n, spca_int ld, int row_major, SPCA(vector) x,
                                          REAL *X, REAL *work);
/* X <- (I - uu') X, where u is (X - 1 mean') x over its norm; X stays as it is if u is zero to
 * rounding.  mean may be NULL.  work (n + p). */
spca_status SPCA(deflate_data_schur)(spca_int n, spca_int p, spca_int ld, int row_major,
                                     const REAL *mean, SPCA(vector) x, REAL *X, REAL *work);

/* ---- for callers who hold arrays (direct.c) -------------------------------------------------- */

/* A (p x p) is symmetric, with leading dimension ld.  Data X (n x p), with F = (X - 1 mean')
 * diag(weight), stand for A = F'F/(n - 1); mean and weight (p) may be NULL.  Without a weight,
 * entries of any size are brought near 1 first.  Vectors are dense, and the entry of largest
 * magnitude of a result is positive.  SPCA_ZERO_VECTOR, with x as it was: x or A x is zero. */

/* truncated_power from x (p), in its place: a unit vector with k nonzeros at most, and value = x'A
 * x.  work (4p + 2k; data: 3p + n + 2k), iwork (p + k). */
spca_status SPCA(tpower_covariance)(spca_int p, const REAL *A, spca_int ld, spca_int k,
                                    int nonnegative, spca_int max_iter, REAL tol, spca_stop stop,
                                    void *ctx, REAL *x, REAL *work, spca_int *iwork, REAL *value,
                                    spca_int *n_iter);
spca_status SPCA(tpower_data)(spca_int n, spca_int p, const REAL *X, spca_int ld, int row_major,
                              const REAL *mean, const REAL *weight, spca_int k, int nonnegative,
                              spca_int max_iter, REAL tol, spca_stop stop, void *ctx, REAL *x,
                              REAL *work, spca_int *iwork, REAL *value, spca_int *n_iter);

/* pmd from x (p), in its place, 1 <= bound <= sqrt(p); value = x'A x.  work (5p; data: 4p + n),
 * iwork (2p). */
spca_status SPCA(pmd_covariance)(spca_int p, const REAL *A, spca_int ld, double bound,
                                 int nonnegative, spca_int max_iter, REAL tol, spca_stop stop,
                                 void *ctx, REAL *x, REAL *work, spca_int *iwork, REAL *value,
                                 spca_int *n_iter);
spca_status SPCA(pmd_data)(spca_int n, spca_int p, const REAL *X, spca_int ld, int row_major,
                           const REAL *mean, const REAL *weight, double bound, int nonnegative,
                           spca_int max_iter, REAL tol, spca_stop stop, void *ctx, REAL *x,
                           REAL *work, spca_int *iwork, REAL *value, spca_int *n_iter);

/* x (p) <- the leading eigenvector of A on the support of x, of k variables, and value, its
 * eigenvalue.  work (k^2 + k + max(6k, 2p; data: nk + p)), iwork (p). */
spca_status SPCA(refit_covariance)(spca_int p, const REAL *A, spca_int ld, REAL *x, REAL *work,
                                   spca_int *iwork, REAL *value);
spca_status SPCA(refit_data)(spca_int n, spca_int p, const REAL *X, spca_int ld, int row_major,
                             const REAL *mean, const REAL *weight, REAL *x, REAL *work,
                             spca_int *iwork, REAL *value);

/* variance_t = q_t'A q_t, with q_t of orthogonal_parts; V (p x r by columns).  work (2pr + 2p;
 * data: 2pr + n + p). */
spca_status SPCA(explained_covariance)(spca_int p, const REAL *A, spca_int ld, spca_int r,
                                       const REAL *V, REAL *work, REAL *variance);
spca_status SPCA(explained_data)(spca_int n, spca_int p, const REAL *X, spca_int ld, int row_major,
                                 const REAL *mean, const REAL *weight, spca_int r, const REAL *V,
                                 REAL *work, REAL *variance);

/* Up to r components of k variables: V (p x r by columns), zero from column *count on, which is
 * less than r where nothing but rounding is left.  Each component is refitted
 * and removed before the next is sought: by the search of the plan (spca_dsearch, spca_ssearch) or,
 * where that has no starts, by truncated power from the variable of largest variance.  variance (r)
 * as `explained`.  work (components_work bytes, aligned for double; n = 0: covariance). */
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

/* q_t: the part of v_t orthogonal to v_1 .. v_(t-1), normalized; zero where entries that are
 * rounded to a share epsilon may have no such part.  V, Q (p x r by columns), work (p x r).
 * SPCA_NONFINITE: an entry of V is not finite. */
spca_status SPCA(orthogonal_parts)(spca_int p, spca_int r, const REAL *V, REAL epsilon, REAL *work,
                                   REAL *Q);

/* Whether all x_i, i < n, are finite. */
int SPCA(all_finite)(spca_int n, const REAL *x);

/* mean and variance (p) of the columns, over n - 1, exactly 0 for constant columns.  work (3p). */
spca_status SPCA(column_statistics)(spca_int n, spca_int p, const REAL *X, spca_int ld,
                                    int row_major, double *work, REAL *mean, double *variance);

/* Lists the nonzeros of x (p) and returns how many; index and value have room for p. */
spca_int SPCA(gather)(spca_int p, const REAL *x, spca_int *index, REAL *value);
