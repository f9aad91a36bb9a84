/* threshold.c - the soft threshold, and the soft threshold of bounded l1 norm.
 *
 * maximize w'a subject to ||w|| <= 1, ||w||_1 <= c: w = S(a, L)/||S(a, L)|| (l1_level.c).  When m
 * entries tie for the largest magnitude and c < sqrt(m), every w that has the signs of a, is 0 but
 * on the ties, and has ||w||_1 = c and ||w|| <= 1 is optimal.  The one of unit norm is returned
 * whose first entry is alpha and whose others are beta <= alpha. */
#include "l1_level.h"

/* w_i = sign(a_i) (|a_i| - high + d)_+ factor, where b = |a_i| - high + d and d <= high - low.
 * Adding 0 makes -0 into 0. */
static inline real entry(real x, real b, real factor)
{
    b = b > 0 ? b : 0;
    return copysign(b * factor, x) + 0;
}

/* All w_i by `entry`; w may be m->x.  Each case has a loop of its own, so that the compiler may use
 * vectors. */
VECTORIZED(assign_some, (const magnitudes_t *m, real high, real d, real factor, real *w),
           (m, high, d, factor, w))
{
    const real *x = m->x;
    real scale = m->scale;
    spca_int p = m->p;
    if (m->nonnegative && w == x)
        for (spca_int i = 0; i < p; i++) w[i] = entry(w[i], w[i] * scale - high + d, factor);
    else if (m->nonnegative)
        for (spca_int i = 0; i < p; i++) w[i] = entry(x[i], x[i] * scale - high + d, factor);
    else if (w == x)
        for (spca_int i = 0; i < p; i++) w[i] = entry(w[i], fabs(w[i]) * scale - high + d, factor);
    else
        for (spca_int i = 0; i < p; i++) w[i] = entry(x[i], fabs(x[i]) * scale - high + d, factor);
}

typedef struct {
    const magnitudes_t *m;
    real high, d, factor, *w;
} assigned_t;

enum { STEP = SPCA_PART / sizeof(real) };

static void assign_part(void *context, spca_int part)
{
    const assigned_t *s = context;
    magnitudes_t m = *s->m;
    m.x += part * STEP;
    m.p = min_int(STEP, m.p - part * STEP);
    assign_some(&m, s->high, s->d, s->factor, s->w + part * STEP);
}

/* All w_i, by parts. */
static void assign(const magnitudes_t *m, real high, real d, real factor, real *w)
{
    assigned_t s = {m, high, d, factor, w};
    (void)do_parts(m->run, (double)m->p * sizeof(real), assign_part, &s, (m->p + STEP - 1) / STEP,
                   NULL, NULL);
}

spca_status SPCA(l1_threshold)(spca_int p, const real *a, double bound, int nonnegative,
                               spca_run run, real *work, real *w, double *level)
{
    magnitudes_t m = {p, a, nonnegative, 1, run};
    bracket_t b;
    double d, norm, j, slack;
    spca_status status = SPCA(l1_level)(&m, bound, work, &b, &d, &norm);
    if (status < 0) return status;
    j = b.above.count;
    slack = j - bound * bound;
    *level = (b.above.level - d) / (double)m.scale;
    /* more entries tie than the bound leaves room for: with one common value the norm would be
     * below 1 */
    if (b.high > 0 && b.above.sum == 0 && slack > 0) {
        double q = sqrt(slack / (j - 1));
        double alpha = (bound + (j - 1) * q) / j;
        double beta = (bound - 1) * (bound + 1) / ((j - 1) * (bound + q));
        spca_int first = 0;
        /* a NaN is passed over */
        while (!((nonnegative ? a[first] : fabs(a[first])) * m.scale >= b.high)) first++;
        real range = b.high - b.low, top_entry = (real)(a[first] > 0 ? alpha : -alpha);
        /* w may be a, so a_first is read before */
        assign(&m, b.high, range, (real)beta / range, w);
        w[first] = top_entry;
        *level = b.above.level / (double)m.scale;
    } else
        assign(&m, b.high, (real)d, norm > 0 ? (real)(1 / norm) : 0, w);
    return SPCA_OK;
}

void SPCA(soft_threshold)(spca_int p, const real *a, real level, spca_run run, real *out)
{
    const magnitudes_t m = {p, a, 0, 1, run};
    assign(&m, level, 0, 1, out);
}
