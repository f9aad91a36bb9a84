/* generalized_power.c - the generalized power method for one component.
 *
 * Over unit w (Journee, Nesterov, Richtarik & Sepulchre 2010, sections 2.1 and 2.2, A = F'F):
 *     l1   max sqrt(w'Aw) - gamma ||w||_1  = max sqrt(sum_i (|F_i'u| - gamma)_+^2),
 *     l0   max w'Aw - gamma ||w||_0        = max sum_i ((F_i'u)^2 - gamma)_+
 * over unit u.  Their algorithms 2 and 3 iterate in u.  The best u for w is F w/||F w||, so the
 * same iterates are w <- S(F'u, gamma)/||.||, or the entries of F'u beyond sqrt(gamma) over their
 * norm, with F'u = A w/sqrt(w'Aw): A alone is needed.  The objective never decreases.
 *
 * The shift of an indefinite A (ascent.h) only adds to the objective for l0.  For l1, with q =
 * w'Aw, it is a proximal step of length sqrt|q|/shift along the gradient of the root with its sign,
 * A w/sqrt|q|: S((A + shift I) w, gamma sqrt|q|).  Without a threshold where q < 0, q rises but the
 * objective falls, until the rounding of a large shift hides it.  A step that would leave
 * nothing is made without it.
 *
 * With a quotient rho = w'Aw/w'Bw (operator.c),
 *     l1   max (sqrt(w'Aw) - gamma ||w||_1)/sqrt(w'Bw) = max sqrt(rho) - gamma ||w||_1/sqrt(w'Bw),
 *     l0   max w'Aw/w'Bw - gamma ||w||_0
 * by the same thresholds, applied to A w and the multiple of QQ'w that the operator adds.  For l0,
 * let a = w'Aw and b = w'Bw.  For x of any norm
 *     x'Ax/x'Bx >= (2 sqrt(a) sqrt(x'Ax) - (a/b) x'Bx)/b
 *               >= (2 x'(A w + rho QQ'w) - rho x'x)/b + const,
 * and the maximum of the last line less gamma ||x||_0 has the entries of A w + rho QQ'w beyond
 * sqrt(gamma a). */
#include "ascent.h"

typedef struct {
    int l0;
    real gamma, tau; /* tau = gamma; for l0, its root */
    real *quadratic;
} penalty_t;

/* Of `count` entries y of (A + shift I) w, listed by index, keeps those above the level, with their
 * new values; returns how many. */
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

/* next = the entries of A w beyond tau sqrt(w'Aw), for l1 diminished by that, over their norm. */
static spca_status step(ascent_t *s, const void *solver)
{
    const penalty_t *o = solver;
    vector_t w = {*s->nnz, s->index, s->value};
    real plain, level, norm, l1 = 0, outside, *quadratic = o->quadratic;
    spca_status status = SPCA(above)(&s->A, w, o->tau, 1, s->stop, s->ctx, s->work, &s->count,
                                     s->next_index, s->next, quadratic);
    if (status < 0) return status;
    outside = SPCA(outside)(&s->A, w);
    plain = *quadratic - (o->l0 ? 0 : s->A.shift);
    level = o->tau * sqrt((o->l0 ? fmax(plain, (real)0) : fabs(plain)) * outside);
    if (plain < 0 && level >= largest_magnitude(s->count, s->next)) level = 0;
    set_objective(s, *quadratic);
    s->raise = *quadratic = *s->objective;
    s->feasible = 1;
    if (o->l0)
        *s->objective = *quadratic - o->gamma * (real)w.nnz;
    else {
        for (spca_int a = 0; a < w.nnz; a++) l1 += fabs(w.value[a]);
        *s->objective =
            copysign(sqrt(fabs(*quadratic)), *quadratic) - o->gamma * l1 / sqrt(outside);
        s->scale = sqrt(s->scale);
        /* the noise of the root */
        if (s->noise > 0) s->noise /= sqrt(fmax(fabs(*quadratic), s->noise));
    }
    s->count = threshold(o->l0, level, s->count, s->next_index, s->next);
    if (s->count == 0) return SPCA_ZERO_VECTOR;
    norm = nrm2(s->count, s->next);
    for (spca_int a = 0; a < s->count; a++) s->next[a] /= norm;
    return SPCA_OK;
}

spca_status SPCA(gpower)(const operator_t *A, int l0, real gamma, spca_int max_iter, real tol,
                         spca_stop stop, void *ctx, spca_int *nnz, spca_int *index, real *value,
                         real *work, spca_int *iwork, real *objective, real *quadratic,
                         spca_int *n_iter)
{
    const penalty_t penalty = {l0, gamma, l0 ? sqrt(gamma) : gamma, quadratic};
    ascent_t s = {*A,    max_iter, tol,  stop,        ctx,       nnz,          index,
                  value, iwork,    work, work + A->p, objective, .previous = 0};
    s.A.l1_price = l0 ? 0 : gamma;
    (void)to_unit(*nnz, value);
    return ascend(&s, step, &penalty, n_iter);
}
