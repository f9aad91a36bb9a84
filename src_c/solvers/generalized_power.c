/* generalized_power.c - the generalized power method for one component.
 *
 * Over unit w (Journee, Nesterov, Richtarik & Sepulchre 2010, sections 2.1 and 2.2, A = F'F):
 *   l1   max sqrt(w'Aw) - gamma ||w||_1  = max sqrt(sum_i (|F_i'u| - gamma)_+^2),
 *   l0   max w'Aw - gamma ||w||_0        = max sum_i ((F_i'u)^2 - gamma)_+
 * over unit u.  Their algorithms 2 and 3 iterate in u; since the best u for w is F w/||F w||, the
 * same iterates are w <- S(F'u, gamma)/||.|| or the entries of F'u beyond sqrt(gamma) over their
 * norm, with F'u = A w/sqrt(w'Aw), and A alone is needed.  The objective never decreases.
 *
 * Hotelling deflation can leave A indefinite; when the objective falls, A + shift I takes over in
 * the step, with shift doubled until it no longer does.  For l0 that only adds shift to the
 * objective.  For l1 it is a proximal step of length 1/shift along the gradient of
 * sqrt(w'Aw). */
#include "real.h"

/* The entries of y = (A + shift I) w that stay, of those listed, with their new values. */
static spca_int threshold(int l0, real level, spca_int count, spca_int *index, real *y)
{
    spca_int kept = 0;
    for (spca_int a = 0; a < count; a++) {
        real size = fabs(y[a]);
        if (!(size > level)) continue;
        index[kept] = index[a];
        y[kept++] = l0 ? y[a] : copysign(size - level, y[a]);
    }
    return kept;
}

spca_status SPCA(gpower)(const operator_t *A, int l0, real gamma, spca_int max_iter, real tol,
                         spca_stop stop, void *ctx, spca_int *nnz, spca_int *index, real *value,
                         real *work, spca_int *iwork, real *objective, real *quadratic,
                         spca_int *n_iter)
{
    operator_t shifted = *A;
    real *next = work, *rest = work + A->p, tau = l0 ? sqrt(gamma) : gamma;
    real previous = 0, rounding = 64 * REAL_EPSILON;
    *n_iter = 0;
    scal(*nnz, 1 / nrm2(*nnz, value), value);
    for (;;) {
        vector_t w = {*nnz, index, value};
        real level, scale, noise, penalty = 0, norm;
        spca_int count;
        int same;
        spca_status status;
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        status = SPCA(above)(&shifted, w, tau, 1, stop, ctx, rest, &count, iwork, next, quadratic);
        if (status < 0) return status;
        level = tau * sqrt(fmax(*quadratic - (l0 ? 0 : shifted.shift), (real)0));
        *quadratic -= shifted.shift;
        scale = fabs(*quadratic) + shifted.shift;
        noise = rounding * scale;
        if (l0) {
            penalty = gamma * (real)*nnz;
            *objective = *quadratic - penalty;
        } else {
            for (spca_int a = 0; a < *nnz; a++) penalty += fabs(value[a]);
            *objective = copysign(sqrt(fabs(*quadratic)), *quadratic) - gamma * penalty;
            scale = sqrt(scale);
            if (noise > 0) noise /= sqrt(fmax(fabs(*quadratic), noise)); /* of the root */
        }
        count = threshold(l0, level, count, iwork, next);
        if (count == 0) return SPCA_ZERO_VECTOR;
        norm = nrm2(count, next);

        same = *nnz == count;
        for (spca_int a = 0; same && a < count; a++) same = index[a] == iwork[a];
        if (*n_iter > 0) {
            real gain = *objective - previous;
            if (gain < -noise)
                shifted.shift = 2 * shifted.shift + fabs(*quadratic) / 2;
            else if (gain <= (same ? fmax(tol * scale, noise) : noise))
                return SPCA_OK;
        }
        if (*n_iter == max_iter) return SPCA_NOT_CONVERGED;
        previous = *objective;
        *nnz = count;
        for (spca_int a = 0; a < count; a++) {
            index[a] = iwork[a];
            value[a] = next[a] / norm;
        }
        ++*n_iter;
    }
}
