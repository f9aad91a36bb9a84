/* spca_double.h - prototypes of what is compiled for double alone; included by spca.h. */

/* ---- fingerprints (fingerprint.c) ------------------------------------------------------------ */

/* sums_j: for column j of X (n x p) the sum modulo 2^64 of its words, of `size` 1, 2, 4 or 8 bytes:
 * the low 32 bits of a word times the low half of the key of its row and, of 8 bytes, the high 32
 * bits times the high half.  ld: words from a row to the next (row_major), or from a column to the
 * next.  x may be at any address. */
void spca_fingerprint(spca_int n, spca_int p, spca_int ld, int row_major, int size, const void *x,
                      const uint64_t *keys /* n */, uint64_t *sums /* p */);

/* ---- compressed storage (lines.c) ------------------------------------------------------------ */

/* Whether kernels may follow the lines of compressed storage, which has `stored` entries: 2 where
 * all indices are in [0, length) and ascend in each line; 1 where they do not ascend; 0 where they,
 * or indptr (lines + 1), point outside. */
int spca_line_order(spca_int lines, spca_int length, spca_int stored, const void *indptr,
                    const void *indices, int wide);

/* ---- what a screen is made from (screen_bounds.c) -------------------------------------------- */

/* The step, norm and slack of each column (spca_screen) of dense data, in float (single) or double,
 * as the operator centers and scales them.  statistics: the rows of shared_statistics: mean,
 * square, low, high and, with a quantized copy, step and error.  size (p): norms of the quantized
 * columns, or NULL without a copy.  mean, weight (p) or NULL, diagonal and moment (p): of the
 * operator.  limits (3): widest, smallest, greatest. */
void spca_screen_bounds(spca_int n, spca_int p, int single, double range,
                        const double *statistics /* 4 or 6 x p */, const float *size,
                        const double *mean, const double *weight, const double *diagonal,
                        const double *moment, float *step, float *norm, float *slack,
                        double *limits);

/* ---- pencils (best_pairs.c) ------------------------------------------------------------------ */

/* The pairs of variables with the largest x'Ax/x'Bx over vectors on the pair (A, B: p x p), at most
 * `most`, the best first, ties to the first; each variable is in two of them at most.  Pairs where
 * B is singular, to the share least, are left out, and with `part` (p), unless NULL, pairs of one
 * part.  work (p (p - 1)/2), used (p). */
spca_status spca_best_pairs(spca_int p, const double *A, const double *B, double least,
                            const spca_int *part, spca_int most, spca_stop stop, void *ctx,
                            double *work, spca_int *used, spca_int *pair /* most x 2 */,
                            spca_int *count);

/* ---- whole numbers (whole.c) ----------------------------------------------------------------- */

/* The bytes of its work with as many threads as there are now. */
spca_int spca_whole_work(spca_int p, spca_run run);
/* For columns of X (n x p) whose entries are whole numbers of size SPCA_WHOLE at most, stored as
 * `kind` says: the lowest and the highest entry of each, X'1 and X'X, exactly.  SPCA_NOT_CONVERGED:
 * some entry is no such number, and nothing is written.  ld: entries from a row to the next, or
 * from a column to the next.  work (room bytes): no more threads come than there is room for, since
 * another thread may have changed their number. */
spca_status spca_whole_moments(spca_int n, spca_int p, spca_int ld, int row_major, int kind,
                               const void *X, spca_run run, spca_stop stop, void *ctx,
                               spca_int room, void *work, int64_t *low /* p */,
                               int64_t *high /* p */, int64_t *sum /* p */, int64_t *G /* p x p */);

/* ---- greedy search (secular.c) -------------------------------------------------------------- */

/* value_i: the largest eigenvalue of the pencil of SPCA(bordered_eigenvalues) on the support
 * without its i-th variable, i < k; -infinity where nothing is left.  W (k x w by columns),
 * eigenvalues (w).  work (2w). */
spca_status spca_deleted_eigenvalues(spca_int k, spca_int w, const double *eigenvalues,
                                     const double *W, spca_stop stop, void *ctx, double *work,
                                     double *value /* k */);

/* All eigenvalues of symmetric A (k x k, overwritten), descending, and their unit vectors, the
 * columns of U.  For small k: LAPACK takes less time for large ones.  SPCA_LAPACK_FAILED: it has
 * not converged, or A is not finite.  work (k^2 + 4k) (small_eigen.c). */
spca_status spca_small_eigen(spca_int k, double *A, double *work, double *eigenvalues /* k */,
                             double *U);
/* The r largest eigenvalues of symmetric A (k x k; its upper triangle by columns is read, and
 * overwritten), ascending, and their unit vectors (k x r by columns) unless NULL.  LAPACK finds
 * them from a tridiagonal form, so no number of threads of BLAS changes a bit.  work (23k), iwork
 * (12k). */
spca_status spca_leading_eigenpairs(spca_int k, spca_int r, double *A, double *work,
                                    blas_int *iwork, double *values, double *vectors);
/* All eigenvalues and vectors, as of small_eigen, for any k.  work (k^2 + 27k), blas_work (12k). */
spca_status spca_eigen(spca_int k, double *A, double *work, blas_int *blas_work,
                       double *eigenvalues /* k */, double *U);

/* best (k): a unit vector with x_j signs_j >= 0 that maximizes x'Gx, and value: that maximum.  With
 * more than SPCA_SIGNED variables it is the end of an ascent.  begin (k) starts one more ascent, or
 * is NULL.  work (4k^2 + 32k), blas_work (12k), iwork (k) (signed.c). */
spca_status spca_signed_vector(spca_int k, const double *G, const int8_t *signs,
                               const double *begin, spca_stop stop, void *ctx, double *work,
                               blas_int *blas_work, spca_int *iwork, double *best, double *value);

/* ---- convex problems ------------------------------------------------------------------------ */

/* max Tr(AM) - rho s(M) or, constrained, max Tr(AM) subject to s(M) <= limit, over semidefinite M
 * with Tr M = 1; s(M) is the sum of |M_ij| off the diagonal, and limit = rho or the bound.  A (p x
 * p) is symmetric, of any definiteness, with a positive diagonal entry.  M (p x p): the best one
 * found; primal: its objective; dual: an upper bound of the relaxation, rounding included.  SPCA_OK
 * where these are within tol of each other, relative to the bound.  work (4p^2 + 28p), iwork (12p)
 * (dspca.c). */
spca_status spca_dspca(spca_int p, const double *A, int constrained, double limit, double tol,
                       spca_int max_iter, spca_stop stop, void *ctx, double *work, blas_int *iwork,
                       double *M /* p x p */, double *primal, double *dual, spca_int *n_iter);
/* This relaxation with groups and signs of variables (shaped.c has its constraint): unit (p),
 * weight (units x units), diagonal (p), signs (p) or NULL.  It has a penalty where it is not
 * constrained.  A has eigenvalues in [-1, 1].  lowest (p x p): the A - Y whose largest eigenvalue
 * is bounded by dual.  work (5p^2 + 28p + units^2), iwork (12p). */
spca_status spca_shaped(spca_int p, spca_int units, const double *A, const spca_int *unit,
                        const double *weight, const double *diagonal, const int8_t *signs,
                        int constrained, double penalty, spca_int max_iter, double tol,
                        spca_stop stop, void *ctx, double *work, blas_int *iwork, double *M,
                        double *lowest, double *primal, double *dual, spca_int *n_iter);

/* Minimizes b'(G + ridge I)b - 2 c'b + 2 floor ||b||_1, the naive elastic net.  Where its path has
 * limit < p variables before the level has fallen to floor, it gives the last point of the path
 * before one more joins.  *level is the level it has reached.  G (p x p) is symmetric semidefinite.
 * A guess of the support (guess <= limit variables at index, with the signs of value) is tried
 * first.  Pivots below the share least count as 0.  index, value (limit): the `count` variables of
 * the support in order of joining, and b there.  work (limit^2 + 3 limit + 2p), iwork (limit + p)
 * (elastic_net.c). */
spca_status spca_elastic_net(spca_int p, spca_int limit, const double *G, const double *c,
                             double ridge, double floor, double least, spca_int guess,
                             spca_stop stop, void *ctx, spca_int *index, double *value,
                             double *work, spca_int *iwork, spca_int *count, double *level);

/* ---- supports under a prior (prior_support.c) ----------------------------------------------- */

/* chosen (k): the variables that, greedily, maximize r_S'K_S^-1 r_S - log det K_S, K = aI + L, in
 * the order of joining.  L (p x p) is symmetric, in CSR with its indices in any order; r (p).
 * SPCA_NOT_CONVERGED, after count < k of them, where the factor of K_S has more than `room` entries
 * beside its diagonal and the rows of S.  work (4p + p/64 + 1), value (room), iwork (3p + k + 1),
 * entries (3 room). */
spca_status spca_prior_support(spca_int p, const spca_int *indptr, const spca_int *indices,
                               const double *data, const double *r, double a, spca_int k,
                               spca_int room, spca_stop stop, void *ctx, double *work,
                               double *value, spca_int *iwork, spca_int *entries,
                               spca_int *chosen /* k */, spca_int *count);

/* ---- supports of units, and signs (units.c) ------------------------------------------------- */

/* kept (units): which units are included or, up to the cardinality `count`, have the largest norms
 * (units); where sizes differ, the largest sum of squares.  Ties to the first.  work (unit_work),
 * iwork (units). */
void spca_largest_units(const spca_supports *o, const double *norm, spca_int count, double *work,
                        spca_int *iwork, uint8_t *kept);
spca_int spca_unit_work(const spca_supports *o, spca_int count);
spca_int spca_step_work(const spca_rule *rule);
/* norm (units): the norm of the entries of x (p) of each unit. */
void spca_unit_norms(const spca_supports *o, const double *x, double *norm);
/* x (p) <- x without entries of a wrong sign, or of units that are not allowed. */
void spca_project_units(const spca_supports *o, double *x);
/* x (p): A v, and then the next vector, of any norm; kept (units): its units.  quadratic = v'Av.  x
 * becomes zero where no unit vector that is orthogonal to Q attains the largest product.  work
 * (step_work), iwork (units). */
void spca_unit_step(const spca_rule *rule, double quadratic, double *x, double *work,
                    spca_int *iwork, uint8_t *kept);
/* spca_unit_step for a rule with Q (unit_orthogonal.c), on a (p).  work (orthogonal_work), scratch
 * (unit_work), iwork (units). */
void spca_orthogonal_unit_step(const spca_rule *rule, double *a, double *work, double *scratch,
                               spca_int *iwork, uint8_t *kept);
spca_int spca_orthogonal_work(const spca_supports *o, spca_int t);
/* x (t) <- (H + damping I)^-1 x by Cholesky; the factor takes the place of the lower triangle of H
 * (t x t by columns).  Returns 0 where that is not definite. */
int spca_solve_damped(spca_int t, double damping, double *H, double *x);
/* What the steps raise, for unit x with quadratic = x'Ax: x'Ax, or x'Ax or its root less the
 * penalty.  work (units). */
double spca_unit_objective(const spca_rule *rule, double quadratic, const double *x, double *work);

/* The elastic net among such supports: minimizes b'Kb - 2 c'b + 2 level sum ||b_u|| over b of the
 * given signs, u the units that are not included, from b (p).  K (p x p) is symmetric semidefinite.
 * work (unit_net_work), iwork (2p + units + 1) (unit_net.c).
 *
 * spca_unit_net_path takes the lowest level at which at most `count` units, included ones among
 * them, have entries; it begins at *level unless that is 0.  beyond (p): a minimizer just below
 * that level, where more units have entries; b itself where the level is 0.  Its work has 2p more.
 */
spca_status spca_unit_net(const spca_supports *o, const double *K, const double *c, double level,
                          spca_stop stop, void *ctx, double *work, spca_int *iwork, double *b);
spca_status spca_unit_net_path(const spca_supports *o, const double *K, const double *c,
                               spca_int count, spca_stop stop, void *ctx, double *work,
                               spca_int *iwork, double *b, double *beyond, double *level);
spca_int spca_unit_net_work(const spca_supports *o);

/* ---- branch and bound (branch_and_bound.c) -------------------------------------------------- */

/* Divides nodes of branch and bound: which supports of k variables may make a principal submatrix
 * of symmetric N (p x p) indefinite?  A node is p bytes of the pool: 0 left out, 1 candidate, 2
 * included.  Each of the `count` nodes `which` is divided into n_children_b <= room children, which
 * together have all such supports of the node.  They are written to the nodes `empty` (count x
 * room, room >= 2).  excess (count x room) of a child: -1 where it is a single support; otherwise N
 * + excess I is definite on all of its supports, DBL_MAX where no such number is known.  Where the
 * excess is sure to be above `most`, it is not made sharper.  work (branch_work), iwork (p + k). */
spca_status spca_branch(spca_int p, spca_int k, const double *N, double most, spca_int count,
                        const spca_int *which, spca_int room, const spca_int *empty, spca_stop stop,
                        void *ctx, uint8_t *pool, double *work, spca_int *iwork,
                        spca_int *n_children, double *excess);
spca_int spca_branch_work(spca_int p, spca_int k);
