/* spca_double.h - prototypes of what is compiled for double alone; included by spca.h. */

/* ---- fingerprints (fingerprint.c) ------------------------------------------------------------ */

/* Of each column of X (n x p) the sum modulo 2^64 of its words, of size 1, 2, 4 or 8 bytes, each
 * times the low half of the key of its row, but what is above 32 bits times the high half.  From a
 * row to the next, or from a column, it is ld words. */
void spca_fingerprint(spca_int n, spca_int p, spca_int ld, int row_major, int size, const void *x,
                      const uint64_t *keys /* n */, uint64_t *sums /* p */);

/* ---- compressed storage (lines.c) ------------------------------------------------------------ */

/* Whether kernels may follow the lines of compressed storage, of which so many entries are stored:
 * 2 where the indices of each ascend, all in [0, length), 1 where they do not ascend, and 0 where
 * they or indptr (lines + 1) point outside. */
int spca_line_order(spca_int lines, spca_int length, spca_int stored, const void *indptr,
                    const void *indices, int wide);

/* ---- what a screen is made from (screen_bounds.c) -------------------------------------------- */

/* The step, norm and slack of each column (spca_screen) of dense data of one precision, as the
 * operator centers and scales them: from the rows of shared_statistics, of which the last two are
 * read with `size` (p), the norms of quantized columns, or NULL where there are none.  mean, weight
 * (p) or NULL; diagonal and moment (p): of the operator.  limits (3): widest, smallest, greatest.
 */
void spca_screen_bounds(spca_int n, spca_int p, int single, double range,
                        const double *statistics /* 4 or 6 x p */, const float *size,
                        const double *mean, const double *weight, const double *diagonal,
                        const double *moment, float *step, float *norm, float *slack,
                        double *limits);

/* ---- pencils (best_pairs.c) ------------------------------------------------------------------ */

/* The pairs of variables whose x'Ax/x'Bx (both p x p) is largest, at most so many, the best first,
 * ties to the first, each variable in two of them at most; those where B is singular, to the share
 * least, are left out, and with `part` (p), or NULL, those of one part.  work (p (p - 1)/2), used
 * (p). */
spca_status spca_best_pairs(spca_int p, const double *A, const double *B, double least,
                            const spca_int *part, spca_int most, spca_stop stop, void *ctx,
                            double *work, spca_int *used, spca_int *pair /* most x 2 */,
                            spca_int *count);

/* ---- whole numbers (whole.c) ----------------------------------------------------------------- */

/* Bytes. */
spca_int spca_whole_work(spca_int p, spca_run run);
/* Of columns of X (n x p) whose entries are whole numbers of size SPCA_WHOLE at most, stored as
 * `kind` says: the lowest and the highest, X'1 and X'X, exactly.  SPCA_NOT_CONVERGED: some entry is
 * no such number, and nothing is told.  From a row to the next, or from a column, it is ld entries.
 */
spca_status spca_whole_moments(spca_int n, spca_int p, spca_int ld, int row_major, int kind,
                               const void *X, spca_run run, spca_stop stop, void *ctx, void *work,
                               int64_t *low /* p */, int64_t *high /* p */, int64_t *sum /* p */,
                               int64_t *G /* p x p */);

/* ---- greedy search (secular.c) -------------------------------------------------------------- */

/* Largest eigenvalue of the pencil of SPCA(bordered_eigenvalues) on the support without each of its
 * k variables; -infinity where nothing is left.  work (2w). */
spca_status spca_deleted_eigenvalues(spca_int k, spca_int w, const double *eigenvalues,
                                     const double *W, spca_stop stop, void *ctx, double *work,
                                     double *value /* k */);

/* All eigenvalues of symmetric A (k x k, overwritten), descending, and their unit vectors, the
 * columns of U.  SPCA_LAPACK_FAILED as of LAPACK, which is for large matrices.  work (k^2 + 4k)
 * (small_eigen.c). */
spca_status spca_small_eigen(spca_int k, double *A, double *work, double *eigenvalues /* k */,
                             double *U);
/* The r largest eigenvalues of symmetric A (k x k, whose upper triangle by columns is read,
 * overwritten), ascending, and their unit vectors (k x r) unless NULL, with the same bits for any
 * number of threads of BLAS: a tridiagonal form, of which LAPACK finds them.  work (21k), iwork
 * (12k). */
spca_status spca_leading_eigenpairs(spca_int k, spca_int r, double *A, double *work,
                                    blas_int *iwork, double *values, double *vectors);
/* All, as small_eigen finds them, of any order.  work (k^2 + 27k), blas_work (12k). */
spca_status spca_eigen(spca_int k, double *A, double *work, blas_int *blas_work,
                       double *eigenvalues /* k */, double *U);

/* Of unit vectors with x_j s_j >= 0 one that maximizes x'Gx, and that; of more than SPCA_SIGNED
 * variables where an ascent ends.  begin (k) starts another ascent, or NULL.  work (4k^2 + 32k),
 * blas_work (12k), iwork (k) (signed.c). */
spca_status spca_signed_vector(spca_int k, const double *G, const int8_t *signs,
                               const double *begin, spca_stop stop, void *ctx, double *work,
                               blas_int *blas_work, spca_int *iwork, double *best, double *value);

/* ---- convex problems ------------------------------------------------------------------------ */

/* max Tr(AM) - rho s(M), or (constrained) max Tr(AM) subject to s(M) <= limit, over Tr M = 1, M
 * semidefinite, s(M) the sum of |M_ij| off the diagonal; limit = rho or the bound.  A (p x p) is
 * symmetric, of any definiteness, with a positive diagonal entry.  The best M found, its objective
 * and an upper bound of the relaxation, rounding included; SPCA_OK where they are within tol of
 * each other, relative to the bound.  work (4p^2 + 28p), iwork (12p) (dspca.c). */
spca_status spca_dspca(spca_int p, const double *A, int constrained, double limit, double tol,
                       spca_int max_iter, spca_stop stop, void *ctx, double *work, blas_int *iwork,
                       double *M /* p x p */, double *primal, double *dual, spca_int *n_iter);
/* The same under what is known of the variables, whose constraint has these units, weights,
 * diagonal and signs (shaped.c); a penalty, where it is not constrained.  A has eigenvalues in [-1,
 * 1]. lowest (p x p): the A - Y of which dual bounds the largest eigenvalue.  work (5p^2 + 28p +
 * units^2), iwork (12p). */
spca_status spca_shaped(spca_int p, spca_int units, const double *A, const spca_int *unit,
                        const double *weight, const double *diagonal, const int8_t *signs,
                        int constrained, double penalty, spca_int max_iter, double tol,
                        spca_stop stop, void *ctx, double *work, blas_int *iwork, double *M,
                        double *lowest, double *primal, double *dual, spca_int *n_iter);

/* The naive elastic net of level floor, b'(G + ridge I)b - 2 c'b + 2 floor ||b||_1 least, or, where
 * its path has limit < p variables first, the last such point before one more joins, at *level.  G
 * (p x p) is symmetric semidefinite.  A guess of the support (guess variables at index, with the
 * signs of value) is tried first.  Pivots below least (of 1) count as 0.  Variables of the support
 * in order of joining at index, value (limit).  work (limit^2 + 3 limit + 2p), iwork (limit + p)
 * (elastic_net.c). */
spca_status spca_elastic_net(spca_int p, spca_int limit, const double *G, const double *c,
                             double ridge, double floor, double least, spca_int guess,
                             spca_stop stop, void *ctx, spca_int *index, double *value,
                             double *work, spca_int *iwork, spca_int *count, double *level);

/* ---- supports under a prior (prior_support.c) ----------------------------------------------- */

/* The k variables that, greedily, maximize r_S'K_S^-1 r_S - log det K_S, K = aI + L, in the order
 * of joining; L (p x p) is symmetric, in CSR with its indices in any order.  SPCA_NOT_CONVERGED,
 * after count < k of them, where the factor of K_S has more than `room` entries beside its diagonal
 * and rows of S.  work (4p + p/64 + 1), value (room), iwork (3p + k + 1), entries (3 room). */
spca_status spca_prior_support(spca_int p, const spca_int *indptr, const spca_int *indices,
                               const double *data, const double *r, double a, spca_int k,
                               spca_int room, spca_stop stop, void *ctx, double *work,
                               double *value, spca_int *iwork, spca_int *entries,
                               spca_int *chosen /* k */, spca_int *count);

/* ---- supports of units, and signs (units.c) ------------------------------------------------- */

/* kept (units): those that are included and, up to the cardinality, those of largest norms (units):
 * of sizes that differ, of largest sum of squares.  Ties to the first.  work (unit_work), iwork
 * (units). */
void spca_largest_units(const spca_supports *o, const double *norm, spca_int count, double *work,
                        spca_int *iwork, uint8_t *kept);
spca_int spca_unit_work(const spca_supports *o, spca_int count);
spca_int spca_step_work(const spca_rule *rule);
/* norm (units): of the entries of x of each unit. */
void spca_unit_norms(const spca_supports *o, const double *x, double *norm);
/* x (p) <- without entries of a wrong sign or of units that are not allowed. */
void spca_project_units(const spca_supports *o, double *x);
/* x (p): from A v the next vector, of any norm, and kept (units) its units; quadratic = v'Av.
 * Zeros where no unit vector that is orthogonal to Q attains the largest product.  work
 * (step_work), iwork (units). */
void spca_unit_step(const spca_rule *rule, double quadratic, double *x, double *work,
                    spca_int *iwork, uint8_t *kept);
/* The same of a rule with Q (unit_orthogonal.c); work (orthogonal_work), scratch (unit_work). */
void spca_orthogonal_unit_step(const spca_rule *rule, double *a, double *work, double *scratch,
                               spca_int *iwork, uint8_t *kept);
spca_int spca_orthogonal_work(const spca_supports *o, spca_int t);
/* x (t) <- (H + damping I)^-1 x by Cholesky, L in place of the lower triangle of H; 0 if
 * indefinite. */
int spca_solve_damped(spca_int t, double damping, double *H, double *x);
/* What the steps raise, of unit x: x'Ax, or that, or its root, less the penalty.  work (units). */
double spca_unit_objective(const spca_rule *rule, double quadratic, const double *x, double *work);

/* The elastic net among such supports: b'Kb - 2 c'b + 2 level sum ||b_u|| least over b of the
 * signs, u the units that are not included, from b (p).  K (p x p) is symmetric semidefinite.  The
 * second takes the lowest level of which at most count units, included ones among them, have
 * entries, near *level where that is not 0; beyond (p) is the minimizer where one more has.  work
 * (unit_net_work; 2p more), iwork (2p + units + 1) (unit_net.c). */
spca_status spca_unit_net(const spca_supports *o, const double *K, const double *c, double level,
                          spca_stop stop, void *ctx, double *work, spca_int *iwork, double *b);
spca_status spca_unit_net_path(const spca_supports *o, const double *K, const double *c,
                               spca_int count, spca_stop stop, void *ctx, double *work,
                               spca_int *iwork, double *b, double *beyond, double *level);
spca_int spca_unit_net_work(const spca_supports *o);

/* ---- branch and bound (branch_and_bound.c) -------------------------------------------------- */

/* Which supports of k variables may make a principal submatrix of symmetric N (p x p) indefinite.
 * A node is p bytes of the pool: 0 left out, 1 candidate, 2 included.  Divides each of the nodes
 * `which` (count) into n_children_b <= room children, whose union has all such supports of the
 * node; they are written to the nodes `empty` (count x room, room >= 2).  excess (count x room) of
 * a child: -1 where it is a single support; else N + excess I is definite on all of its supports,
 * DBL_MAX where no such number is known.  None below `most` is sought where that is none.  work
 * (branch_work), iwork (p + k). */
spca_status spca_branch(spca_int p, spca_int k, const double *N, double most, spca_int count,
                        const spca_int *which, spca_int room, const spca_int *empty, spca_stop stop,
                        void *ctx, uint8_t *pool, double *work, spca_int *iwork,
                        spca_int *n_children, double *excess);
spca_int spca_branch_work(spca_int p, spca_int k);
