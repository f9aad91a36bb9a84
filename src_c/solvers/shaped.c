/* shaped.c - the semidefinite relaxation with groups and signs of variables, with its dual bound.
 *
 * Let the units u of variables have weights m_u (0 for included ones), and let K be what a
 * cardinality leaves.  M = xx' meets
 *     sum_{u != v} sqrt(m_u m_v) ||M_uv||_F + sum_i d_i M_ii <= 0,    d_i = m_u - K,
 * and M_ij s_i s_j >= 0 for entries of signs s.  Let Y = r (G + D) - N, where ||G_uv||_F <=
 * sqrt(m_u m_v), D is the diagonal of the second sum, and N_ij s_i s_j >= 0.  Then Tr YM <= 0, so
 * the largest eigenvalue of A - Y is a bound.  A penalty r costs r times the sums instead.
 *
 * Alternating directions (Boyd et al. 2011) go between matrices M of trace 1 and matrices Z of the
 * constraint, with Y = rho U. */
#include "spectrum.h"

enum { CHECKED_EVERY = 10 }; /* iterations between bounds, and changes of rho */

/* The constraint. */
typedef struct {
    spca_int p, units;
    const spca_int *unit; /* (p) */
    /* weight (units x units): sqrt(m_u m_v), 0 for u = v; diagonal (p): d */
    const double *weight, *diagonal;
    const int8_t *signs; /* (p) or NULL */
    double *norm;        /* (units x units) scratch */
} constraint_t;

/* Whether v, at (i, j), has a sign that the constraint forbids. */
static int has_wrong_sign(const constraint_t *c, spca_int i, spca_int j, double v)
{
    return c->signs && i != j && v * c->signs[i] * c->signs[j] < 0;
}

/* c->norm: the norms of the blocks of V, of all entries or of those that have no wrong sign. */
static void block_norms(const constraint_t *c, const double *V, int all)
{
    for (spca_int b = 0; b < c->units * c->units; b++) c->norm[b] = 0;
    for (spca_int j = 0; j < c->p; j++) {
        double *norm = c->norm + c->unit[j] * c->units;
        for (spca_int i = 0; i < c->p; i++) {
            double v = V[i + j * c->p];
            if (all || !has_wrong_sign(c, i, j, v)) norm[c->unit[i]] += v * v;
        }
    }
    for (spca_int b = 0; b < c->units * c->units; b++) c->norm[b] = sqrt(c->norm[b]);
}

/* The level r with sum of w (norm - r w)_+ + linear - r square = 0 over blocks, 0 where that is
 * negative at 0.  The function is convex and falls, so Newton's method ascends to the root from the
 * left. */
static double level_of(const constraint_t *c, double linear, double square)
{
    double level = 0, before = -1;
    while (level > before) {
        double excess = 0, slope = square;
        for (spca_int b = 0; b < c->units * c->units; b++) {
            double w = c->weight[b], over = c->norm[b] - level * w;
            if (!(over > 0)) continue;
            excess += w * over;
            slope += w * w;
        }
        before = level;
        level += fmax((excess + linear - level * square) / (slope != 0 ? slope : 1), 0);
    }
    return level;
}

/* Z <- the nearest matrix to V that meets the constraint or, with a penalty of this level, that of
 * least squared distance/2 and cost. */
static void nearest(const constraint_t *c, const double *V, int constrained, double level,
                    double *Z)
{
    spca_int p = c->p;
    double linear = 0, square = 0;
    block_norms(c, V, 0);
    for (spca_int i = 0; i < p; i++) {
        linear += V[i + i * p] * c->diagonal[i];
        square += c->diagonal[i] * c->diagonal[i];
    }
    if (constrained) level = level_of(c, linear, square);
    for (spca_int b = 0; b < c->units * c->units; b++) { /* the share that is left of each block */
        double w = c->weight[b];
        c->norm[b] = !(c->norm[b] > 0) ? 0 : w > 0 ? fmax(1 - level * w / c->norm[b], 0) : 1;
    }
    for (spca_int j = 0; j < p; j++) {
        const double *share = c->norm + c->unit[j] * c->units;
        for (spca_int i = 0; i < p; i++) {
            double v = V[i + j * p];
            Z[i + j * p] = has_wrong_sign(c, i, j, v) ? 0 : v * share[c->unit[i]];
        }
        Z[j + j * p] -= level * c->diagonal[j];
    }
}

/* What M costs with a penalty of 1: the sums of the constraint. */
static double charge(const constraint_t *c, const double *M)
{
    double sum = 0;
    block_norms(c, M, 1);
    for (spca_int b = 0; b < c->units * c->units; b++) sum += c->weight[b] * c->norm[b];
    for (spca_int i = 0; i < c->p; i++) sum += M[i + i * c->p] * c->diagonal[i];
    return sum;
}

/* M <- the nearest semidefinite matrix of trace 1 to Z - U + A/rho.  *rank: that of the last M
 * before, of this M after (as project of dspca.c). */
static spca_status project(spectrum_t *e, const double *A, const double *Z, const double *U,
                           double rho, spca_int *rank, double *M)
{
    spca_int p = e->p, count = *rank + 2;
    double level = 0;
    for (;;) {
        spca_status status;
        if (count > p / 5) count = p; /* then finding all of them takes less time */
        for (spca_int a = 0; a < p * p; a++) M[a] = Z[a] - U[a] + A[a] / rho;
        status = leading_part(e, 1, count, M);
        if (status < 0 && count == p) return status;
        if (status == SPCA_OK) {
            level = trace_level(count, e->values, rank);
            if (*rank < count || count == p) break;
        }
        count = status < 0 ? p : 2 * count;
    }
    return composed(e, count, level, *rank, M);
}

/* The dual bound of Y = rho U; where it is the least so far, it becomes *bound, and A - Y lowest.
 * S: scratch. */
static spca_status bound_by(spectrum_t *e, const double *A, const double *U, double rho, double *S,
                            double *bound, double *lowest)
{
    spca_int p = e->p;
    double found = 0;
    spca_status status;
    for (spca_int a = 0; a < p * p; a++) S[a] = A[a] - rho * U[a];
    status = eigenvalue_bound(e, S, &found);
    if (status < 0 || !(found < *bound)) return status;
    *bound = found;
    for (spca_int a = 0; a < p * p; a++) lowest[a] = A[a] - rho * U[a];
    return status;
}

spca_status spca_shaped(spca_int p, spca_int units, const double *A, const spca_int *unit,
                        const double *weight, const double *diagonal, const int8_t *signs,
                        int constrained, double penalty, spca_int max_iter, double tol,
                        spca_stop stop, void *ctx, double *work, blas_int *iwork, double *M,
                        double *lowest, double *primal, double *dual, spca_int *n_iter)
{
    double *Z = work, *before = Z + p * p, *U = before + p * p, *V = U + p * p, rho = 1;
    double *vectors = V + p * p, *values = vectors + p * p, *norm = values + 27 * p, *other;
    constraint_t c = {p, units, unit, weight, diagonal, signs, norm};
    spectrum_t e = {p, vectors, values, values + p, iwork};
    spca_int rank = 1;
    spca_status status;
    for (spca_int a = 0; a < p * p; a++) {
        M[a] = Z[a] = a % (p + 1) == 0 ? 1 / (double)p : 0;
        U[a] = 0;
    }
    *primal = -HUGE_VAL;
    *dual = HUGE_VAL;
    *n_iter = 0;
    /* Y = 0 is the first bound */
    status = bound_by(&e, A, U, 0, V, dual, lowest);
    while (status >= 0 && *n_iter < max_iter) {
        double gap = 0, moved = 0, product = 0;
        int stopped = asked_to_stop(stop, ctx);
        ++*n_iter;
        /* a step: M, Z and U */
        status = project(&e, A, Z, U, rho, &rank, M);
        if (status < 0) break;
        for (spca_int j = 0; j < p; j++)
            for (spca_int i = 0; i < j; i++) M[j + i * p] = M[i + j * p];
        other = before, before = Z, Z = other;
        for (spca_int a = 0; a < p * p; a++) V[a] = M[a] + U[a];
        nearest(&c, V, constrained, penalty / rho, Z);
        for (spca_int a = 0; a < p * p; a++) U[a] = V[a] - Z[a];
        /* now and then: both bounds, whether it may end, and rho, which keeps the two distances
         * alike */
        if (*n_iter % CHECKED_EVERY && *n_iter < max_iter && !stopped) continue;
        for (spca_int a = 0; a < p * p; a++) {
            gap += (M[a] - Z[a]) * (M[a] - Z[a]);
            moved += (Z[a] - before[a]) * (Z[a] - before[a]);
            product += A[a] * M[a];
        }
        gap = sqrt(gap);
        moved = rho * sqrt(moved);
        status = bound_by(&e, A, U, rho, V, dual, lowest);
        if (status < 0) break;
        *primal = product - (constrained ? 0 : penalty * charge(&c, M));
        if (*dual - *primal <= tol * fabs(*dual) && gap <= tol) return SPCA_OK;
        if (stopped) return SPCA_STOPPED;
        if (gap > 5 * moved || moved > 5 * gap) {
            double factor = gap > moved ? 2 : 0.5;
            rho *= factor;
            for (spca_int a = 0; a < p * p; a++) U[a] /= factor;
        }
    }
    return status < 0 ? status : SPCA_NOT_CONVERGED;
}
