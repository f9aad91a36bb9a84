/* dspca.c - the semidefinite relaxation of sparse PCA, with its dual bound.
 *
 * For M = xx', the squared l1 norm of a unit x is 1'|M|1 = 1 + s(M), s(M) the sum of |M_ij| off the
 * diagonal.  Dropping rank M = 1 leaves (d'Aspremont, El Ghaoui, Jordan & Lanckriet 2007, SIAM
 * Review 49, equations 2.4 and 2.7), over Tr M = 1, M semidefinite,
 *     penalized    max Tr(AM) - rho s(M)             = min lambda_max(A - Y),  |Y_ij| <= rho,
 *     constrained  max Tr(AM) subject to s(M) <= r   = min lambda_max(A - Y) + r max |Y_ij|,
 * where Y is symmetric with zero diagonal.  Any such Y bounds the relaxation, hence sparse PCA: r =
 * k - 1 holds for every unit x with k nonzeros.
 *
 * The two sets of M are handled in turn, by Douglas-Rachford splitting over-relaxed by alpha (the
 * alternating direction method of multipliers; Boyd et al. 2011, Foundations and Trends in Machine
 * Learning 3, sections 3.4.1 and 3.4.3):
 *     N = Z - C,  C = Z clipped to [-t, t] off the diagonal;  t = rho/sigma, or such that s(N) = r,
 *     M = projection of N - C + A/sigma on the semidefinite matrices of trace 1,
 *     Z <- Z + alpha (M - N).
 * Y = sigma C is feasible for the dual at every step.  M keeps the few eigenvalues above a level,
 * so a part of the spectrum is enough.  Symmetric matrices are stored by columns, and only their
 * upper triangles are read. */
#include "spectrum.h"

static const double OVER_RELAXATION = 1.6;
/* a variable without products is in a solution if it has this share of the trace */
static const double PRESENT = 1e-3;
static const double TIED =
    1e-6; /* share by which variances differ that single precision may tell */
enum {
    CHECKED_EVERY = 10, /* iterations between bounds, and between changes of sigma */
    /* after SLOWER_AFTER, sigma changes a tenth as often, so that the steps converge */
    SLOWER_AFTER = 100
};

/* max(-t, min(z, t)). */
static double clipped(double z, double t)
{
    return z > t ? t : z < -t ? -t : z;
}

/* S = N - C + A/sigma, where C = Z - N. */
static void gradient_step(spca_int p, const double *A, const double *Z, const double *N,
                          double sigma, double *S)
{
    for (spca_int j = 0; j < p; j++)
        for (spca_int i = 0; i <= j; i++) {
            spca_int a = i + j * p;
            S[a] = 2 * N[a] - Z[a] + A[a] / sigma;
        }
}

/* M = argmin ||M - N + C - A/sigma||_F over semidefinite M of trace 1.  *rank: that of the last M
 * before, of this M after.  A few eigenvalues more than the last rank are found; if all of them are
 * above the level, twice as many. */
static spca_status project(spectrum_t *e, const double *A, const double *Z, const double *N,
                           double sigma, spca_int *rank, double *M)
{
    spca_int p = e->p, count = *rank + 2;
    double level;
    for (;;) {
        spca_status status;
        if (count > p / 5) count = p; /* then finding all of them takes less time */
        gradient_step(p, A, Z, N, sigma, M);
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

/* t >= 0 with sum over i < j of (|Z_ij| - t)_+ = half, by Newton's method from the guess t; 0 where
 * the sum is less.  The sum is convex and piecewise linear in t, so all steps but the first ascend,
 * and they end. */
static double level_of(spca_int p, const double *Z, double half, double t)
{
    for (int pass = 0;; pass++) {
        double sum = 0, next;
        spca_int count = 0;
        for (spca_int j = 1; j < p; j++)
            for (spca_int i = 0; i < j; i++) {
                double z = fabs(Z[i + j * p]);
                sum += z > t ? z : 0;
                count += z > t;
            }
        next = count > 0 ? (sum - half) / (double)count : 0;
        if (next < 0) next = 0;
        if (pass > 0 && next <= t) return t;
        if (next == t) return t;
        t = next;
    }
}

/* N = Z - C; returns ||N - N before||_F. */
static double shrink(spca_int p, const double *Z, double t, double *N)
{
    double change = 0;
    for (spca_int j = 0; j < p; j++)
        for (spca_int i = 0; i <= j; i++) {
            spca_int a = i + j * p;
            double new = i == j ? Z[a] : Z[a] - clipped(Z[a], t);
            change += (new - N[a]) * (new - N[a]) * (i == j ? 1 : 2);
            N[a] = new;
        }
    return sqrt(change);
}

/* The best feasible matrix near M: M without the variables that N has left out, with trace 1, and
 * mixed with the best single variable (top) until s(M) <= r.  It becomes `best` where its objective
 * is above *primal.  present (p): scratch. */
static void improve(spca_int p, const double *A, const double *M, const double *N, int constrained,
                    double limit, spca_int top, double *present, double *best, double *primal)
{
    double trace = 0, off = 0, product = 0, share = 0, objective;
    for (spca_int j = 0; j < p; j++) present[j] = N[j + j * p] > PRESENT;
    for (spca_int j = 1; j < p; j++)
        for (spca_int i = 0; i < j; i++)
            if (N[i + j * p] != 0) present[i] = present[j] = 1;
    for (spca_int j = 0; j < p; j++) {
        if (present[j] == 0) continue;
        for (spca_int i = 0; i < j; i++) {
            double m = present[i] * M[i + j * p];
            product += 2 * A[i + j * p] * m;
            off += 2 * fabs(m);
        }
        trace += M[j + j * p];
        product += A[j + j * p] * M[j + j * p];
    }
    product /= trace; /* NaN where no variable is left, which is not above *primal */
    off /= trace;
    if (!constrained)
        objective = product - limit * off;
    else {
        if (off > limit) share = 1 - limit / off;
        objective = (1 - share) * product + share * A[top + top * p];
    }
    if (!(objective > *primal)) return;
    *primal = objective;
    for (spca_int j = 0; j < p; j++)
        for (spca_int i = 0; i <= j; i++)
            best[i + j * p] = present[i] * present[j] * M[i + j * p] * (1 - share) / trace;
    best[top + top * p] += share;
}

/* The dual bound of Y = sigma C; lowers *dual where it is less.  S: scratch. */
static spca_status bound_by(spectrum_t *e, const double *A, const double *Z, const double *N,
                            double sigma, int constrained, double limit, double *S, double *dual)
{
    spca_int p = e->p;
    double largest = 0, bound;
    spca_status status;
    for (spca_int j = 0; j < p; j++) {
        for (spca_int i = 0; i < j; i++) {
            spca_int a = i + j * p;
            double y = sigma * (Z[a] - N[a]);
            if (!constrained) y = clipped(y, limit);
            largest = fmax(largest, fabs(y));
            S[a] = A[a] - y;
        }
        S[j + j * p] = A[j + j * p];
    }
    status = eigenvalue_bound(e, S, &bound);
    if (constrained) bound += limit * largest * (1 + 4 * DBL_EPSILON);
    *dual = fmin(*dual, bound);
    return status;
}

/* The dual bound of Y = A off the diagonal or, penalized, of A clipped to [-rho, rho] there, by
 * Gershgorin's circles. */
static double first_bound(spca_int p, const double *A, int constrained, double limit)
{
    double largest = 0, bound = A[0];
    for (spca_int j = 0; j < p; j++) {
        double radius = 0;
        for (spca_int i = 0; i < p; i++) {
            double a = i == j ? 0 : fabs(A[i + j * p]);
            largest = fmax(largest, a);
            radius += a > limit ? a - limit : 0;
        }
        if (constrained) radius = 0;
        bound = fmax(bound, A[j + j * p] + radius * (1 + 2 * (double)p * DBL_EPSILON));
    }
    return constrained ? bound + limit * largest * (1 + 4 * DBL_EPSILON) : bound;
}

/* ||M||_F of a symmetric M by its upper triangle. */
static double size_of(spca_int p, const double *M)
{
    double square = 0;
    for (spca_int j = 0; j < p; j++)
        square += 2 * strands_dot(j, M + j * p, M + j * p) + M[j + j * p] * M[j + j * p];
    return sqrt(square);
}

/* Z <- Z + alpha (M - N); returns ||M - N||_F. */
static double advance(spca_int p, const double *M, const double *N, double *Z)
{
    double square = 0;
    for (spca_int j = 0; j < p; j++)
        for (spca_int i = 0; i <= j; i++) {
            spca_int a = i + j * p;
            double difference = M[a] - N[a];
            square += difference * difference * (i == j ? 1 : 2);
            Z[a] += OVER_RELAXATION * difference;
        }
    return sqrt(square);
}

/* Changes sigma, while N and Y = sigma C stay, and returns the factor, 2 or 1/2.  A larger sigma
 * makes the distance of M from N (apart) small at the expense of the steps of N (change); each is
 * taken relative to the size of N or C.  Twice the second should equal the first: over counts,
 * correlations and noise, that took the fewest iterations. */
static double rebalance(spca_int p, double apart, double change, const double *N, double *Z)
{
    double square = 0, scale;
    for (spca_int j = 1; j < p; j++)
        for (spca_int i = 0; i < j; i++) {
            double c = Z[i + j * p] - N[i + j * p];
            square += 2 * c * c;
        }
    scale = apart * sqrt(square) > 2 * change * size_of(p, N) ? 2 : 0.5;
    for (spca_int j = 1; j < p; j++)
        for (spca_int i = 0; i < j; i++) {
            spca_int a = i + j * p;
            Z[a] = N[a] + (Z[a] - N[a]) / scale;
        }
    return scale;
}

spca_status spca_dspca(spca_int p, const double *A, int constrained, double limit, double tol,
                       spca_int max_iter, spca_stop stop, void *ctx, double *work, blas_int *iwork,
                       double *best, double *primal, double *dual, spca_int *n_iter)
{
    double *Z = work, *N = Z + p * p, *M = N + p * p, *present = M + (2 * p + 27) * p;
    spectrum_t e = {p, M + p * p, M + 2 * p * p, M + (2 * p + 1) * p, iwork};
    double sigma, t = 0;
    spca_int top = 0, rank = 1;
    spca_status status;
    /* begins with the variable of largest variance alone, the first of a tie */
    for (spca_int j = 0; j < p; j++)
        if (A[j + j * p] > A[top + top * p] + TIED * fabs(A[top + top * p])) top = j;
    for (spca_int a = 0; a < p * p; a++) best[a] = Z[a] = N[a] = 0;
    best[top + top * p] = Z[top + top * p] = N[top + top * p] = 1;
    *primal = sigma = A[top + top * p];
    *dual = first_bound(p, A, constrained, limit);
    for (*n_iter = 0;; ++*n_iter) {
        double apart, change;
        int last = *n_iter == max_iter;
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        /* both bounds, now and then */
        if (*n_iter > 0 && (*n_iter <= 3 || *n_iter % CHECKED_EVERY == 0 || last)) {
            improve(p, A, M, N, constrained, limit, top, present, best, primal);
            status = bound_by(&e, A, Z, N, sigma, constrained, limit, M, dual);
            if (status < 0) return status;
        }
        status = *dual - *primal <= tol * *dual ? SPCA_OK : SPCA_NOT_CONVERGED;
        if (status == SPCA_OK || last) break;

        /* the step */
        status = project(&e, A, Z, N, sigma, &rank, M);
        if (status < 0) return status;
        apart = advance(p, M, N, Z);
        t = constrained ? level_of(p, Z, limit / 2, t) : limit / sigma;
        change = shrink(p, Z, t, N);
        if (*n_iter % CHECKED_EVERY == CHECKED_EVERY - 1 &&
            (*n_iter < SLOWER_AFTER || *n_iter % SLOWER_AFTER == SLOWER_AFTER - 1)) {
            double scale = rebalance(p, apart, change, N, Z);
            sigma *= scale;
            t /= scale;
        }
    }
    for (spca_int j = 0; j < p; j++)
        for (spca_int i = 0; i < j; i++) best[j + i * p] = best[i + j * p];
    return status;
}
