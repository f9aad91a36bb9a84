/* scotlass.c - one component of bounded l1 norm, orthogonal to the earlier loadings.
 *
 * maximize v'Av subject to ||v|| = 1, ||v||_1 <= c, Q'v = 0 (Jolliffe, Trendafilov & Uddin 2003,
 * Journal of Computational and Graphical Statistics 12(3), equations 4 to 6), where Q is an
 * orthonormal basis of the earlier loadings.  Each step maximizes a'w, a = A v, over ||w|| <= 1,
 * ||w||_1 <= c, Q'w = 0, a convex problem.  An indefinite A is shifted (ascent.h).
 *
 * The step has t constraints and is solved by its dual in R^t: minimize over mu
 *
 *     h(mu) = max w'b,   b = a - Q mu,   over ||w|| <= 1, ||w||_1 <= c,
 *
 * whose maximizer w(mu) is a soft threshold (threshold.c).  h is convex with gradient -Q'w.  Let S
 * be the support of w, j its size, sigma the signs there, and s = S(b, level), so that w_S =
 * s/||s|| = (c/j) sigma + r u with u orthogonal to sigma, ||u|| = 1, r^2 = 1 - c^2/j.  Then
 *
 *     h'' = Q_S'(I - sigma sigma'/j - uu') Q_S/||s||,   or Q_S'(I - ww') Q_S/||s|| at level 0,
 *
 * and Newton steps, damped as Levenberg and Marquardt do, end where Q'w = 0.  There w is optimal.
 *
 * Where no unit vector attains the maximum, the magnitudes of b tie and w(mu) jumps, so the steps
 * do not come to an end with Q'w = 0. */
#include "ascent.h"

/* Newton steps, at most. */
enum { STEPS = 200 };

/* The dual at one mu. */
typedef struct {
    double value, largest; /* h, and the largest |q_l'w| */
} dual_t;

/* b = a - Q mu. */
static void subtract_span(spca_int p, spca_int t, const real *Q, const real *a, const double *mu,
                          real *b)
{
    for (spca_int i = 0; i < p; i++) b[i] = a[i];
    for (spca_int l = 0; l < t; l++) axpy(p, (real)-mu[l], Q + l * p, b);
}

/* At mu: b = a - Q mu, w = w(mu) and its level, the gradient -Q'w, and h.  work (p). */
static spca_status evaluate(spca_int p, spca_int t, const real *Q, const real *a, const double *mu,
                            double bound, real *b, real *w, real *work, double *level,
                            double *gradient, dual_t *h)
{
    spca_status status;
    subtract_span(p, t, Q, a, mu, b);
    status = SPCA(l1_threshold)(p, b, bound, 0, NULL, work, w, level);
    if (status < 0) return status;
    *h = (dual_t){0, 0};
    for (spca_int i = 0; i < p; i++) h->value += (double)w[i] * (double)b[i];
    for (spca_int l = 0; l < t; l++) {
        double sum = 0;
        for (spca_int i = 0; i < p; i++) sum += (double)Q[l * p + i] * (double)w[i];
        gradient[l] = -sum;
        h->largest = fmax(h->largest, fabs(sum));
    }
    return SPCA_OK;
}

/* H (t x t, its lower triangle) = h'' ||s||; returns ||s|| or, where all nonzeros of w are at the
 * level so that s = 0, the norm of b there.  z (t): scratch. */
static double curvature(spca_int p, spca_int t, const real *Q, const real *b, const real *w,
                        double level, double bound, const double *gradient, double *z, double *H)
{
    double norm = 0, all = 0, j = 0;
    for (spca_int l = 0; l < t; l++) z[l] = 0;
    for (spca_int l = 0; l < t * t; l++) H[l] = 0;
    for (spca_int i = 0; i < p; i++) {
        double s = fabs((double)b[i]) - level;
        if (w[i] == 0) continue;
        norm += s * s;
        all += (double)b[i] * (double)b[i];
        j++;
        for (spca_int l = 0; l < t; l++) {
            double q = (double)Q[l * p + i];
            z[l] += w[i] > 0 ? q : -q;
            for (spca_int m = 0; m <= l; m++) H[l + m * t] += q * (double)Q[m * p + i];
        }
    }
    if (level > 0) {
        double square = 1 - bound * bound / j;
        for (spca_int l = 0; l < t; l++)
            for (spca_int m = 0; m <= l; m++) {
                double g = -gradient[l] - bound / j * z[l], e = -gradient[m] - bound / j * z[m];
                H[l + m * t] -= z[l] * z[m] / j;
                if (square > (double)REAL_EPSILON) H[l + m * t] -= g * e / square;
            }
    } else
        for (spca_int l = 0; l < t; l++)
            for (spca_int m = 0; m <= l; m++) H[l + m * t] -= gradient[l] * gradient[m];
    return sqrt(norm > 0 ? norm : all);
}

spca_status SPCA(orthogonal_l1_threshold)(spca_int p, spca_int t, const real *a, const real *Q,
                                          double bound, spca_stop stop, void *ctx, double *mu,
                                          real *work, double *dwork, real *w)
{
    const double exact = 64 * (double)REAL_EPSILON;
    const double enough = fmax(exact, pow((double)REAL_EPSILON, 0.75));
    real *b = work, *scratch = b + p, *trial = scratch + p;
    double *gradient = dwork, *next = gradient + t, *step = next + t, *z = step + t, *H = z + t;
    double level, damping = 1e-10;
    dual_t h;
    spca_status status = evaluate(p, t, Q, a, mu, bound, b, w, scratch, &level, gradient, &h);
    if (status < 0) return status;
    for (int i = 0; i < STEPS && h.largest > exact; i++) {
        double norm, new_level, slope = 0;
        dual_t new;
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        /* a damped Newton step */
        norm = curvature(p, t, Q, b, w, level, bound, gradient, z, H);
        for (spca_int l = 0; l < t; l++) step[l] = -norm * gradient[l];
        if (!spca_solve_damped(t, damping, H, step)) {
            damping *= 10;
            continue;
        }
        for (spca_int l = 0; l < t; l++) {
            slope += gradient[l] * step[l];
            step[l] += mu[l];
        }
        /* a step is kept if it lowers h enough, or halves the largest |q_l'w|; otherwise it is
         * damped more */
        status = evaluate(p, t, Q, a, step, bound, b, trial, scratch, &new_level, next, &new);
        if (status < 0) return status;
        if (new.value <= h.value + slope / 4 || new.largest <= h.largest / 2) {
            for (spca_int l = 0; l < t; l++) {
                mu[l] = step[l];
                gradient[l] = next[l];
            }
            for (spca_int l = 0; l < p; l++) w[l] = trial[l];
            h = new;
            level = new_level;
            damping = fmax(damping / 10, 1e-12);
        } else {
            if (damping > 1e8) break;
            damping *= 10;
            subtract_span(p, t, Q, a, mu, b);
        }
    }
    return h.largest <= enough && !(h.value <= 0) ? SPCA_OK : SPCA_ZERO_VECTOR;
}

spca_status SPCA(scotlass)(const operator_t *A, spca_int t, const real *Q, double bound,
                           spca_int max_iter, real tol, spca_stop stop, void *ctx, real *v,
                           real *work, double *dwork, real *objective, spca_int *n_iter)
{
    operator_t shifted = *A;
    spca_int p = A->p;
    real *a = work, *next = a + p, *rest = next + p, previous = 0;
    double *mu = dwork;
    int feasible = 0;
    shortest_t shortest = {0};
    *n_iter = 0;
    (void)to_unit(p, v);
    for (spca_int l = 0; l < t; l++) mu[l] = 0;
    if (max_iter == 0) { /* the start itself, made feasible */
        spca_status status =
            SPCA(orthogonal_l1_threshold)(p, t, v, Q, bound, stop, ctx, mu, rest, dwork + t, next);
        if (status < 0) return status;
        for (spca_int i = 0; i < p; i++) v[i] = next[i];
    }
    for (;;) {
        vector_t x = {p, NULL, v};
        real gain, size, noise;
        int same = 1, rests;
        spca_status status;
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        status = SPCA(apply)(&shifted, x, stop, ctx, rest, a);
        if (status < 0) return status;
        *objective = strands_dot(p, v, a) - shifted.shift;
        gain = *objective - previous;
        size = fabs(*objective) + shifted.shift;
        noise = ROUNDING * size;
        rests = feasible && at_rest(&shifted, gain, noise, noise, previous);
        if (rests && (tol >= ROUNDING || *n_iter == max_iter)) return SPCA_OK;
        if (*n_iter == max_iter) return SPCA_NOT_CONVERGED;

        for (spca_int l = 0; l < t && *n_iter == 0; l++)
            mu[l] = (double)strands_dot(p, Q + l * p, a);
        status =
            SPCA(orthogonal_l1_threshold)(p, t, a, Q, bound, stop, ctx, mu, rest, dwork + t, next);
        /* v is feasible, but no unit vector attains the maximum of the step */
        if (status == SPCA_ZERO_VECTOR && feasible) return rests ? SPCA_OK : SPCA_NOT_CONVERGED;
        if (status < 0) return status;
        for (spca_int i = 0; i < p; i++) same = same && (next[i] == 0) == (v[i] == 0);
        rests = rests || (feasible && same && gain >= -noise && gain <= tol * size);
        if (rests && stands_still(&shortest, tol, x, (vector_t){p, NULL, next})) return SPCA_OK;
        for (spca_int i = 0; i < p; i++) v[i] = next[i];
        feasible = 1;
        previous = *objective;
        ++*n_iter;
    }
}
