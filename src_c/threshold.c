/* threshold.c - the soft threshold, and its level for a bound on the l1 norm.
 *
 * maximize w'a subject to ||w|| <= 1, ||w||_1 <= c.  Solution (Witten, Tibshirani & Hastie 2009,
 * Biostatistics 10(3), lemma 2.2): w = S(a, L)/||S(a, L)||, where L = 0 if that is feasible and
 * otherwise the root of
 *
 *     f(L) = ||S(a, L)||_1/||S(a, L)|| = c,       f continuous and decreasing on [0, max|a|).
 *
 * A search over the breakpoints |a_i| ends with low <= L < high, no breakpoint between.  Let the j
 * active entries, |a_i| >= high, exceed high by b_i, with mean mu and ss = sum (b_i - mu)^2.  Then
 *
 *     L = high - d,   d = c sqrt(ss/(j (j - c^2))) - mu,   S(a, L)_i = sign(a_i) (b_i + d).
 *
 * Everything is kept as an excess over high: differences of neighbouring numbers are exact, and all
 * sums are of nonnegative terms, so near-ties lose nothing.
 *
 * When m entries tie for the largest magnitude, f >= sqrt(m).  If c < sqrt(m), every w of the sign
 * of a, supported on the ties, with ||w||_1 = c and ||w|| <= 1 is optimal: returned is the one of
 * unit norm whose first entry is alpha and whose others are beta <= alpha. */
#include "pivot.h"
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 256, LANES = 16, COLUMNS = 32, SAMPLE = 8192, ATTEMPTS = 3, MARGIN = 2 };

/* What is searched: |x|, or the positive part of x, times a power of two. */
typedef struct {
    spca_int p;
    const real *x;
    int nonnegative;
    real scale;
} magnitudes_t;

/* low <= L < high, and of the entries >= high: the count, the sum and the sum of squares of their
 * excess over high. */
typedef struct {
    real low, high;
    double count, sum, square;
} bracket_t;

/* a[BLOCK] = magnitudes from start on, then zeros. */
static void load(const magnitudes_t *m, spca_int start, real *restrict a)
{
    const real *x = m->x + start;
    real scale = m->scale, rest[BLOCK];
    if (m->p - start < BLOCK) {
        memset(rest, 0, sizeof rest);
        x = memcpy(rest, x, (size_t)(m->p - start) * sizeof *x);
    }
    if (m->nonnegative)
        for (int i = 0; i < BLOCK; i++) a[i] = (x[i] > 0 ? x[i] : 0) * scale;
    else
        for (int i = 0; i < BLOCK; i++) a[i] = fabs(x[i]) * scale;
}

/* Adds the entries >= level of a[BLOCK] to t.  No branch and a sum a lane, for vectors; short sums
 * in `real`, long ones in double, so that the error hardly grows with p. */
static void add_excess(const real *a, real level, bracket_t *t)
{
    real count[LANES] = {0}, sum[LANES] = {0}, square[LANES] = {0};
    for (int i = 0; i < BLOCK; i += LANES)
        for (int l = 0; l < LANES; l++) {
            real b = a[i + l] - level;
            count[l] += copysign((real)0.5, b);
            b += fabs(b);
            sum[l] += b;
            square[l] += b * b;
        }
    t->count += BLOCK / 2;
    for (int l = 0; l < LANES; l++) {
        t->count += (double)count[l];
        t->sum += (double)sum[l] / 2;
        t->square += (double)square[l] / 4;
    }
}

/* top_l = the largest of top_l and column l of a[BLOCK], by rows. */
static void column_tops(const real *restrict a, real *restrict top)
{
    for (int i = 0; i < BLOCK; i += COLUMNS)
        for (int l = 0; l < COLUMNS; l++) top[l] = a[i + l] > top[l] ? a[i + l] : top[l];
}

/* Collects low < a < high into out, and sums the rest above in t. */
VECTORIZED static spca_int collect(const magnitudes_t *m, real low, real high, real *out,
                                   bracket_t *t)
{
    spca_int found = 0;
    *t = (bracket_t){low, high, 0, 0, 0};
    for (spca_int start = 0; start < m->p; start += BLOCK) {
        real a[BLOCK], rest[BLOCK], top[COLUMNS] = {0};
        int whole = m->p - start >= BLOCK; /* or the padding would be written past the end of out */
        real *to = whole ? out + found : rest;
        spca_int n = 0;
        load(m, start, a);
        add_excess(a, high, t);
        for (int i = 0; i < BLOCK; i++) a[i] = a[i] < high ? a[i] : 0;
        column_tops(a, top);
        for (int l = 0; l < COLUMNS; l++) {
            if (top[l] <= low) continue; /* most columns hold no candidate */
            for (int i = l; i < BLOCK; i += COLUMNS) {
                to[n] = a[i];
                n += a[i] > low;
            }
        }
        if (!whole) memcpy(out + found, rest, (size_t)n * sizeof *rest);
        found += n;
    }
    return found;
}

/* Moves the level at which b sums down to `level`, given what lies in between, summed at `level`.
 */
static void lower(bracket_t *b, real level, const bracket_t *between)
{
    double gap = (double)b->high - (double)level;
    b->square += 2 * gap * b->sum + gap * gap * b->count + between->square;
    b->sum += gap * b->count + between->sum;
    b->count += between->count;
    b->high = level;
}

/* f(b->high) >= c */
static int feasible_above(const bracket_t *b, double c)
{
    return b->sum > 0 && b->sum * b->sum >= c * c * b->square;
}

/* Compares f(pivot) with c, moves low or high there, and keeps those of a (n) still inside. */
VECTORIZED static spca_int split(real pivot, double c, spca_int n, real *a, bracket_t *b)
{
    spca_int kept = 0;
    bracket_t between = {0}, at_pivot = *b;
    for (spca_int start = 0; start < n; start += BLOCK) {
        if (n - start >= BLOCK)
            add_excess(a + start, pivot, &between);
        else {
            real rest[BLOCK];
            load(&(magnitudes_t){n, a, 0, 1}, start, rest);
            add_excess(rest, pivot, &between);
        }
    }
    lower(&at_pivot, pivot, &between);
    if (feasible_above(&at_pivot, c)) {
        b->low = pivot;
        for (spca_int i = 0; i < n; i++) {
            real t = a[i];
            a[kept] = t;
            kept += t > pivot;
        }
    } else {
        *b = at_pivot;
        for (spca_int i = 0; i < n; i++) {
            real t = a[i];
            a[kept] = t;
            kept += t < pivot;
        }
    }
    return kept;
}

static void search(double c, spca_int n, real *a, bracket_t *b)
{
    while (n > 0) n = split(pivot_of(n, a), c, n, a, b);
}

/* A bracket [low, high) inside b that holds L most likely: the same problem for a sample, and
 * some ranks up and down.  work (2 size). */
static void guess(const magnitudes_t *m, double c, const bracket_t *b, spca_int size, real *work,
                  real *low, real *high)
{
    spca_int n = 0, rank = 0, stride = m->p / size, ties;
    double part = (double)size / (double)m->p;
    bracket_t s = {b->low, b->high, part * b->count, part * b->sum, part * b->square};
    for (spca_int i = 0; i < size; i++) {
        real t = m->x[i * stride + i % stride];
        t = (m->nonnegative && t < 0 ? 0 : fabs(t)) * m->scale;
        work[n] = t;
        n += t > b->low && t < b->high;
    }
    for (spca_int i = 0; i < n; i++) work[size + i] = work[i];
    search(c * sqrt(part), n, work + size, &s);
    for (spca_int i = 0; i < n; i++) rank += work[i] >= s.high;
    spca_int margin = 8 + (spca_int)(MARGIN * sqrt((double)rank));
    *low =
        rank + margin <= n ? SPCA(kth_largest)(n, work, rank + margin, work + size, &ties) : b->low;
    *high = rank > margin ? SPCA(kth_largest)(n, work, rank - margin, work + size, &ties) : b->high;
}

/* Ends with no entry strictly between b->low and b->high; high = 0 when even f(0) < c. */
static spca_status locate(const magnitudes_t *m, double c, real *work, bracket_t *b)
{
    spca_int size = m->p < 16 * SAMPLE ? m->p / 16 : SAMPLE;
    for (int attempt = 0;; attempt++) {
        real low = b->low, high = b->high;
        bracket_t above;
        spca_int n;
        if (size >= BLOCK && attempt < ATTEMPTS) guess(m, c, b, size, work, &low, &high);
        n = collect(m, low, high, work, &above);
        if (isnan(above.sum)) return SPCA_NONFINITE;
        above.low = b->low;
        if (high < b->high && feasible_above(&above, c)) {
            b->low = high; /* the sample misled: L is above */
            continue;
        }
        *b = above;
        if (low > b->low || low == 0) {
            n = split(low, c, n, work, b);
            if (b->high == low && low > 0)
                continue; /* L is below: the sums lack the entries at low */
        }
        if (b->high > 0) search(c, n, work, b);
        return SPCA_OK;
    }
}

VECTORIZED static real largest(const magnitudes_t *m)
{
    real top[COLUMNS] = {0}, a[BLOCK];
    for (spca_int start = 0; start < m->p; start += BLOCK) {
        load(m, start, a);
        column_tops(a, top);
    }
    for (int l = 1; l < COLUMNS; l++) top[0] = top[l] > top[0] ? top[l] : top[0];
    return top[0];
}

/* The power of two that brings a far off `top` near 1, so that squares neither over- nor underflow.
 */
static real scale_of(real top)
{
    const int limit = sizeof(real) == sizeof(double) ? DBL_MAX_EXP : FLT_MAX_EXP;
    int exponent;
    (void)frexp(top, &exponent);
    if (abs(exponent) < limit / 4) return 1;
    return ldexp((real)1, exponent < 2 - limit    ? limit - 2
                          : -exponent > 2 - limit ? -exponent
                                                  : 2 - limit);
}

/* w_i = sign(a_i) (|a_i| - high + d)_+ factor, d <= high - low.  The 0 makes -0 into 0. */
static inline real entry(real x, real b, real factor)
{
    b = b > 0 ? b : 0;
    return copysign(b * factor, x) + 0;
}

/* w may be m->x.  A loop for each case, so that the compiler may use vectors. */
VECTORIZED static void assign(const magnitudes_t *m, real high, real d, real factor, real *w)
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

spca_status SPCA(l1_threshold)(spca_int p, const real *a, double bound, int nonnegative, real *work,
                               real *w, double *level)
{
    magnitudes_t m = {p, a, nonnegative, 1};
    real top = largest(&m);
    bracket_t b = {0};
    *level = 0;
    if (isinf(top)) return SPCA_NONFINITE;
    if (top == 0) {
        for (spca_int i = 0; i < p; i++)
            if (isnan(a[i])) return SPCA_NONFINITE;
        assign(&m, 0, 0, 0, w);
        return SPCA_OK;
    }
    m.scale = scale_of(top);
    b.high = 2 * top * m.scale;
    if (locate(&m, bound, work, &b) == SPCA_NONFINITE) return SPCA_NONFINITE;
    double j = b.count, slack = j - bound * bound, d = 0;
    if (b.high > 0 && b.sum == 0 && slack > 0) { /* j ties, too many */
        double q = sqrt(slack / (j - 1));
        double alpha = (bound + (j - 1) * q) / j;
        double beta = (bound - 1) * (bound + 1) / ((j - 1) * (bound + q));
        spca_int first = 0;
        while ((nonnegative ? a[first] : fabs(a[first])) * m.scale < b.high) first++;
        real range = b.high - b.low, top_entry = (real)(a[first] > 0 ? alpha : -alpha);
        assign(&m, b.high, range, (real)beta / range, w); /* w may be a */
        w[first] = top_entry;
    } else {
        if (b.high > 0) {
            double mean = b.sum / j, spread = b.square - b.sum * mean;
            d = spread > 0 && slack > 0 ? bound * sqrt(spread / (j * slack)) - mean : HUGE_VAL;
            d = fmin(fmax(d, 0), (double)b.high - (double)b.low);
        }
        assign(&m, b.high, (real)d, (real)(1 / sqrt(b.square + 2 * d * b.sum + d * d * j)), w);
    }
    *level = ((double)b.high - d) / (double)m.scale;
    return SPCA_OK;
}

void SPCA(soft_threshold)(spca_int p, const real *a, real level, real *out)
{
    const magnitudes_t m = {p, a, 0, 1};
    assign(&m, level, 0, 1, out);
}
