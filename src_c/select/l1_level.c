/* l1_level.c - the level of the soft threshold for a bound on the l1 norm.
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
 * Everything is kept as an excess over high: differences of neighboring numbers are exact, and all
 * sums are of nonnegative terms, so near-ties lose nothing.
 *
 * The level is approached from a sample (Floyd & Rivest 1975, in spirit): it gives a guess, one
 * pass the exact sums there, and these with the sample, which then only stands for the entries
 * between the guess and L, a bracket that few entries lie in.  The next pass collects them. Nothing
 * but the time depends on the sample: every bracket is checked against exact sums. */
#include "l1_level.h"
#include "pivot.h"
#include <stdlib.h>
#include <string.h>

enum {
    LANES = 64 / sizeof(real),
    BLOCK = 16 * LANES, /* a power of two (sweep relies on it) */
    /* entries whose sums are in REAL before they are added in double */
    STRETCH = 8 * BLOCK,
    SAMPLE = 896,
    WHOLE = SAMPLE, /* a set up to this size is its own sample */
    FEW = 100,      /* a bracket is collected when it holds up to 1/FEW of the sample */
    ATTEMPTS = 8,
    MOST = 64 /* parts, at most */
};

/* A sample of a set: each of its magnitudes stands for `weight` of the set.  rest: what its sums
 * lack of the exact ones, at rest.level. */
typedef struct {
    spca_int size;
    double weight, value[SAMPLE];
    sums_t rest;
} sample_t;

/* a[BLOCK] = the magnitudes from start on, then zeros. */
static inline void load(const magnitudes_t *m, spca_int start, real *restrict a)
{
    const real *x = m->x + start;
    real scale = m->scale, rest[BLOCK];
    if (m->p - start < BLOCK) {
        memset(rest, 0, sizeof rest);
        x = memcpy(rest, x, (size_t)(m->p - start) * sizeof *x);
    }
    if (m->nonnegative == 2) /* adds 0 x, which is NaN where x is not finite */
        for (int i = 0; i < BLOCK; i++) a[i] = (x[i] > 0 ? x[i] : 0) * scale + 0 * x[i];
    else if (m->nonnegative)
        for (int i = 0; i < BLOCK; i++) a[i] = (x[i] > 0 ? x[i] : 0) * scale;
    else
        for (int i = 0; i < BLOCK; i++) a[i] = fabs(x[i]) * scale;
}

/* *t = the sums at high.  If low < high, also writes the magnitudes with low < a < high to out,
 * which may be m->x, and returns how many.  There is no branch, and each lane has a sum, for
 * vectors.  Short sums are in REAL, long ones in double, so that the error hardly grows with p. */
VECTORIZED_TO(spca_int, sweep, (const magnitudes_t *m, real low, real high, real *out, sums_t *t),
              (m, low, high, out, t))
{
    spca_int found = 0;
    int plain = !m->nonnegative && m->scale == 1 && m->x != out;
    real room[BLOCK];
    *t = (sums_t){(double)high, 0, 0, 0};
    for (spca_int start = 0; start < m->p;) {
        real sum[LANES] = {0}, square[LANES] = {0};
        whole count[LANES] = {0};
        spca_int end = min_int(start + STRETCH, m->p);
        for (; start < end; start += BLOCK) {
            const real *a = m->x + start;
            int n = (int)min_int(BLOCK, m->p - start);
            if (!plain || n < BLOCK) {
                load(m, start, room);
                a = room;
            }
            if (low >= high) {
                for (int i = 0; i < BLOCK; i += LANES)
#pragma omp simd
                    for (int l = 0; l < LANES; l++) {
                        /* NaN stays NaN */
                        real y = fabs(a[i + l]), b = (high > y ? high : y) - high;
                        count[l] += y >= high;
                        sum[l] += b;
                        square[l] += b * b;
                    }
                continue;
            }
            whole above[LANES] = {0}, inside[LANES] = {0}, any = 0;
            for (int i = 0; i < BLOCK; i += LANES)
#pragma omp simd
                for (int l = 0; l < LANES; l++) {
                    real y = fabs(a[i + l]), b = (high > y ? high : y) - high;
                    above[l] += y >= high;
                    inside[l] += y > low;
                    sum[l] += b;
                    square[l] += b * b;
                }
            for (int l = 0; l < LANES; l++) {
                count[l] += above[l];
                inside[l] -= above[l];
                any |= inside[l];
            }
            if (!any) continue;
            for (int l = 0; l < LANES; l++) {
                if (!inside[l]) continue; /* most lanes have none to collect */
                for (int i = l; i < n; i += LANES) {
                    real y = fabs(a[i]);
                    out[found] = y;
                    found += (y > low) & (y < high);
                }
            }
        }
        for (int l = 0; l < LANES; l++) {
            t->count += (double)count[l];
            t->sum += (double)sum[l];
            t->square += (double)square[l];
        }
    }
    /* without the zeros that load() added */
    if (high == 0) t->count -= (double)(-m->p & (BLOCK - 1));
    return found;
}

/* Entries of a part of p: at most MOST parts, whose number depends on p alone. */
static spca_int step_of(spca_int p)
{
    spca_int least = SPCA_PART / (spca_int)sizeof(real);
    return (p / MOST > least ? p / MOST : least) / LANES * LANES + LANES;
}

typedef struct {
    const magnitudes_t *m;
    real low, high, *out;
    spca_int step, found[MOST];
    sums_t sums[MOST];
} parts_t;

/* The sweep of a part's entries; what it collects goes to where these entries begin in out. */
static void sweep_part(void *context, spca_int part)
{
    parts_t *s = context;
    spca_int start = part * s->step;
    magnitudes_t m = *s->m;
    m.p = min_int(s->step, m.p - start);
    m.x += start;
    s->found[part] = sweep(&m, s->low, s->high, s->out ? s->out + start : NULL, s->sums + part);
}

/* The sweep of all entries by parts, whose sums are added in order; what they collect is moved
 * together. */
static spca_int sweep_all(const magnitudes_t *m, real low, real high, real *out, sums_t *t)
{
    parts_t s = {.m = m, .low = low, .high = high, .out = out, .step = step_of(m->p)};
    spca_int found = 0;
    (void)do_parts(m->run, (double)m->p * sizeof(real), sweep_part, &s,
                   (m->p + s.step - 1) / s.step, NULL, NULL);
    *t = (sums_t){(double)high, 0, 0, 0};
    for (spca_int part = 0; part * s.step < m->p; part++) {
        t->count += s.sums[part].count;
        t->sum += s.sums[part].sum;
        t->square += s.sums[part].square;
        if (s.found[part] > 0)
            memmove(out + found, out + part * s.step, (size_t)s.found[part] * sizeof(real));
        found += s.found[part];
    }
    return found;
}

/* Moves the sums t from their level down to `level`, given `between`, the sums at `level` of the
 * entries between: with gap = t->level - level, sum (b + gap)^2 = square + 2 gap sum + gap^2 count.
 */
static void move(sums_t *t, double level, const sums_t *between)
{
    double gap = t->level - level; /* may be huge where t is empty */
    t->square += gap * (gap * t->count + 2 * t->sum) + between->square;
    t->sum += gap * t->count + between->sum;
    t->count += between->count;
    t->level = level;
}

/* Whether f(t->level) >= c.  f is at least 1, which rounding may hide. */
static int reaches(const sums_t *t, double c)
{
    return t->sum > 0 && (c <= 1 || t->sum * t->sum >= c * c * t->square);
}

/* Compares f(pivot) with c, moves low or high to the pivot, and keeps the magnitudes of a (n) that
 * are still between; returns how many. */
static spca_int split(real pivot, double c, spca_int n, real *a, bracket_t *b)
{
    spca_int kept = 0;
    sums_t between, at_pivot = b->above;
    sweep(&(magnitudes_t){n, a, 0, 1, NULL}, pivot, pivot, NULL, &between);
    move(&at_pivot, (double)pivot, &between);
    if (reaches(&at_pivot, c)) {
        b->low = pivot;
        for (spca_int i = 0; i < n; i++) {
            real t = a[i];
            a[kept] = t;
            kept += t > pivot;
        }
    } else {
        b->high = pivot;
        b->above = at_pivot;
        for (spca_int i = 0; i < n; i++) {
            real t = a[i];
            a[kept] = t;
            kept += t < pivot;
        }
    }
    return kept;
}

/* A sample of m: entries at equal strides, with a phase that moves on, against periods in the data;
 * returns the largest magnitude. */
static double sample_magnitudes(const magnitudes_t *m, sample_t *s)
{
    double top = 0;
    spca_int wanted = m->p / 16 < WHOLE / 2 ? WHOLE / 2 : min_int(m->p / 16, SAMPLE);
    spca_int stride = m->p <= WHOLE ? 1 : (m->p + wanted - 1) / wanted;
    s->size = m->p / stride;
    s->weight = (double)m->p / (double)s->size;
    s->rest = (sums_t){0};
    for (spca_int i = 0, phase = 0; i < s->size; i++) {
        real x = m->x[i * stride + phase];
        double a = (double)((m->nonnegative && !(x > 0) ? 0 : fabs(x)) * m->scale);
        s->value[i] = a;
        top = a > top ? a : top;
        if (++phase == stride) phase = 0;
    }
    return top;
}

/* The estimated sums at t: those of the sample times its weight, and rest. */
VECTORIZED_TO(sums_t, estimate, (const sample_t *s, double t), (s, t))
{
    enum { WIDTH = 8 };
    double sum[WIDTH] = {0}, square[WIDTH] = {0};
    int64_t count[WIDTH] = {0};
    sums_t e = {t, 0, 0, 0}, rest = s->rest;
    spca_int i = 0;
    for (; i + WIDTH <= s->size; i += WIDTH)
#pragma omp simd
        for (int l = 0; l < WIDTH; l++) {
            double a = s->value[i + l], b = (t > a ? t : a) - t;
            count[l] += a >= t;
            sum[l] += b;
            square[l] += b * b;
        }
    for (; i < s->size; i++) {
        double a = s->value[i], b = (t > a ? t : a) - t;
        count[0] += a >= t;
        sum[0] += b;
        square[0] += b * b;
    }
    for (int l = 0; l < WIDTH; l++) {
        e.count += s->weight * (double)count[l];
        e.sum += s->weight * sum[l];
        e.square += s->weight * square[l];
    }
    move(&rest, t, &e);
    return rest;
}

/* rest = exact sums - estimated ones, at exact->level.  Near that level, estimates are good then.
 */
static void calibrate(sample_t *s, const sums_t *exact)
{
    sums_t e;
    s->rest = (sums_t){0};
    e = estimate(s, exact->level);
    s->rest = (sums_t){exact->level, exact->count - e.count, exact->sum - e.sum,
                       exact->square - e.square};
}

/* The level high - d of the closed form at the top, for the entries that t sums. */
static double closed_form(const sums_t *t, double c)
{
    double mean = t->sum / t->count, deviations = t->square - t->sum * mean,
           slack = t->count - c * c;
    return t->level -
           (deviations > 0 && slack > 0 ? c * sqrt(deviations / (t->count * slack)) - mean : 0);
}

/* The level L by the estimates, from low upwards: with too many entries the closed form is too low,
 * so each step goes up, and entries are left out until none is. */
static double predict(const sample_t *s, double c, double low)
{
    double t = low, count = -1;
    for (;;) {
        sums_t e = estimate(s, t);
        double next = closed_form(&e, c);
        if (e.count == count || !reaches(&e, c) || !(next > t)) return t;
        count = e.count;
        t = next;
    }
}

/* Moves the ends of b to entries of the sample inside b: the nearest at or below `low`, and the
 * nearest at or above `high`. */
VECTORIZED(snap_to_sample, (const sample_t *s, double low, double high, bracket_t *b),
           (s, low, high, b))
{
    double below = (double)b->low, above = (double)b->high, least = below, most = above;
    for (spca_int i = 0; i < s->size; i++) {
        double a = s->value[i];
        below = ((a <= low) & (a > below) & (a < most)) ? a : below;
        above = ((a >= high) & (a < above) & (a > least)) ? a : above;
    }
    b->low = (real)below;
    b->high = (real)above;
}

/* How many of the sample are strictly between the ends of b. */
VECTORIZED_TO(spca_int, inside, (const sample_t *s, const bracket_t *b), (s, b))
{
    double low = (double)b->low, high = (double)b->high;
    int64_t n = 0;
    for (spca_int i = 0; i < s->size; i++) n += (s->value[i] > low) & (s->value[i] < high);
    return (spca_int)n;
}

/* A single level, low == high: the upper end of `near` if that is new in b, otherwise the lower. */
static bracket_t one_level(bracket_t near, bracket_t b)
{
    if (near.high < b.high)
        near.low = near.high;
    else
        near.high = near.low;
    return near;
}

/* Where to look next within b: a bracket with few entries or, where that would be bold, a single
 * level, low == high.  anchored: the sample was calibrated by sums of its own set. */
static bracket_t choose(const sample_t *s, double c, int anchored, bracket_t b)
{
    bracket_t near = b;
    double least = (double)b.low, most = (double)b.high, at = predict(s, c, least);
    if (s->weight == 1)
        snap_to_sample(s, at, at, &near);
    else if (anchored) { /* the estimates are off by a small share of what the sample adds */
        double margin = fabs(at - s->rest.level) / 4;
        snap_to_sample(s, at - margin, at + margin, &near);
    } else /* f of the sample alone, which is sqrt(weight) times smaller, is off by about 1/2 */
        snap_to_sample(s, predict(s, c + 2 * sqrt(s->weight), least), most, &near);
    if (s->weight == 1 || inside(s, &near) * FEW <= s->size) return near;
    if (at == 0) return (bracket_t){0};
    near = b;
    snap_to_sample(s, at, at, &near);
    return one_level(near, b);
}

/* Narrows b until no magnitude is strictly between b->low and b->high; high = 0 where even f(0) <
 * c.  s: a sample of m.  work (p).  SPCA_NONFINITE: some sum is not finite. */
static spca_status locate(const magnitudes_t *m, double c, sample_t *s, real *work, bracket_t *b)
{
    magnitudes_t set = *m;
    sums_t outer = {0}; /* the sums of the entries above the set */
    int anchored = 0;
    *b = (bracket_t){.high = REAL_MAX};
    for (int attempt = 0;; attempt++) {
        int last = set.p <= BLOCK || attempt == ATTEMPTS;
        bracket_t near = last ? *b : choose(s, c, anchored, *b);
        /* what is collected goes beside the set, which is needed again unless L is in between */
        real *out = set.x == work && 2 * set.p <= m->p ? work + set.p : work;
        sums_t t, between;
        spca_int n;
        if (set.x == out && !last) near = one_level(near, *b);
        n = sweep_all(&set, near.low, near.high, out, &between);
        t = outer;
        move(&t, (double)near.high, &between);
        if (!isfinite(t.square)) return SPCA_NONFINITE;
        anchored = 1;
        if (near.high < b->high && reaches(&t, c)) { /* L is above */
            b->low = near.high;
            calibrate(s, &t);
            continue;
        }
        b->high = near.high;
        b->above = t;
        if (near.low < near.high) {
            sweep(&(magnitudes_t){n, out, 0, 1, NULL}, near.low, near.low, NULL, &between);
            move(&t, (double)near.low, &between);
            if (!isfinite(t.square)) return SPCA_NONFINITE;
            if ((near.low > b->low || near.low == 0) && !reaches(&t, c)) { /* L is below */
                b->high = near.low;
                b->above = t; /* only the count lacks the entries at low */
            } else {
                b->low = near.low;
                outer = b->above;
                if (out != work) memcpy(work, out, (size_t)n * sizeof *work);
                set = (magnitudes_t){n, work, 0, 1, NULL};
                if (last || n == 0) break;
                sample_magnitudes(&set, s);
                anchored = 0;
                t = outer;
            }
        }
        if (b->high == 0) return SPCA_OK;
        calibrate(s, &t);
    }
    while (set.p > 0) set.p = split(pivot_of(set.p, work), c, set.p, work, b);
    return SPCA_OK;
}

/* The largest magnitude; NaN if an entry is not finite. */
VECTORIZED_TO(real, largest, (const magnitudes_t *m), (m))
{
    real top[LANES] = {0}, bad[LANES] = {0}, a[BLOCK];
    for (spca_int start = 0; start < m->p; start += BLOCK) {
        load(m, start, a);
        for (int i = 0; i < BLOCK; i += LANES)
            for (int l = 0; l < LANES; l++) {
                top[l] = a[i + l] > top[l] ? a[i + l] : top[l];
                bad[l] += a[i + l] * 0;
            }
    }
    for (int l = 1; l < LANES; l++) {
        top[0] = top[l] > top[0] ? top[l] : top[0];
        bad[0] += bad[l];
    }
    return top[0] + bad[0];
}

/* The power of two that brings `top` near 1 where it is so large or small that squares might over-
 * or underflow; otherwise 1. */
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

/* How far L lies below b->high, by the closed form; *norm = ||S(a, L)||. */
static double descent(const bracket_t *b, double c, double *norm)
{
    const sums_t *t = &b->above;
    double j = t->count, slack = j - c * c, d = 0;
    if (b->high > 0) {
        double mean = t->sum / j, deviations = t->square - t->sum * mean;
        d = deviations > 0 && slack > 0 ? c * sqrt(deviations / (j * slack)) - mean : HUGE_VAL;
        d = fmin(fmax(d, 0), t->level - (double)b->low);
    }
    *norm = sqrt(t->square + 2 * d * t->sum + d * d * j);
    return d;
}

spca_status SPCA(l1_level)(magnitudes_t *m, double c, real *work, bracket_t *b, double *d,
                           double *norm)
{
    sample_t s;
    double top = sample_magnitudes(m, &s);
    *b = (bracket_t){0};
    *d = *norm = 0;
    for (int exact = 0;; exact = 1) {
        spca_status status = SPCA_NONFINITE;
        if (top > 0 && isfinite(top)) {
            m->scale = scale_of((real)top);
            if (m->scale != 1) sample_magnitudes(m, &s);
            status = locate(m, c, &s, work, b);
            *d = descent(b, c, norm);
        }
        if (exact || status == SPCA_OK) return SPCA_OK; /* sums at low are finite, hence the norm */
        m->scale = 1; /* the sample missed the range, or there are entries that are not finite */
        top = (double)largest(m);
        if (!isfinite(top)) return SPCA_NONFINITE;
        if (top == 0) return SPCA_OK;
        sample_magnitudes(m, &s);
    }
}

/* *count = the number of |a_i| > level, *sum = sum of (|a_i| - level) over these, in double. */
VECTORIZED(add_excess, (spca_int p, const real *a, double level, double *count, double *sum),
           (p, a, level, count, sum))
{
    enum { WIDTH = 8, TILE = 4096 };
    *count = *sum = 0;
    for (spca_int start = 0; start < p; start += TILE) {
        spca_int end = min_int(p, start + TILE), i = start;
        double s[WIDTH] = {0}, n[WIDTH] = {0};
        for (; i + WIDTH <= end; i += WIDTH)
#pragma omp simd
            for (int l = 0; l < WIDTH; l++) {
                double b = (double)fabs(a[i + l]) - level;
                s[l] += b > 0 ? b : 0;
                n[l] += b > 0 ? 1 : 0;
            }
        for (int l = 0; i < end; i++, l++) {
            double b = (double)fabs(a[i]) - level;
            s[l] += b > 0 ? b : 0;
            n[l] += b > 0 ? 1 : 0;
        }
        for (int l = 0; l < WIDTH; l++) {
            *count += n[l];
            *sum += s[l];
        }
    }
}

typedef struct {
    spca_int p, step;
    const real *a;
    double level, count[MOST], sum[MOST];
} excess_t;

static void excess_part(void *context, spca_int part)
{
    excess_t *s = context;
    spca_int start = part * s->step;
    add_excess(min_int(s->step, s->p - start), s->a + start, s->level, s->count + part,
               s->sum + part);
}

/* add_excess by parts, whose sums are added in order. */
static void excess_over(spca_int p, const real *a, double level, spca_run run, double *count,
                        double *sum)
{
    excess_t s = {.p = p, .step = step_of(p), .a = a, .level = level};
    (void)do_parts(run, (double)p * sizeof(real), excess_part, &s, (p + s.step - 1) / s.step, NULL,
                   NULL);
    *count = *sum = 0;
    for (spca_int part = 0; part * s.step < p; part++) {
        *count += s.count[part];
        *sum += s.sum[part];
    }
}

/* Newton's method: next = level + (sum - bound)/count.  From below the root, sets of entries only
 * shrink, so each step but the last loses an entry; from above it, one step leads below.  A bound
 * below the rounding of the largest entry leaves no entry.  Where the bound equals the sum but for
 * rounding, the root from below may be none from above, which is why a level from below is final;
 * and a step that leads down from there is rounding, which would go back and forth among near-ties.
 */
double SPCA(l1_ball_level)(spca_int p, const real *a, double bound, double start, spca_run run)
{
    double level = start > 0 && start <= (double)REAL_MAX ? start : 0, before = -1;
    for (;;) {
        double count, sum, next;
        excess_over(p, a, level, run, &count, &sum);
        if (count == 0 && before >= 0) return level;
        next = count > 0 ? level + (sum - bound) / count : 0;
        if (!(next > 0)) {
            if (level == 0 || before >= 0) return level;
            next = 0;
        } else if (count == before || (before >= 0 && next < level) ||
                   fabs(next - level) <= 2 * DBL_EPSILON * level)
            return next;
        before = next > level ? count : -1;
        level = next;
    }
}

/* By partition: the level is the pivot where the magnitudes above it do not exceed the bound, but
 * those and its ties do.  Where rounding sums the magnitudes above one pivot to more than the
 * bound, and the same ones, by other pivots, to no more, it is the least of them. */
real SPCA(l1_kept_level)(spca_int p, const real *a, double bound, real *work)
{
    double above = 0; /* the sum of entries that are known to be kept */
    real least = 0;
    for (spca_int i = 0; i < p; i++) work[i] = fabs(a[i]);
    while (p > 0) {
        real pivot = pivot_of(p, work);
        double more = 0, ties = 0;
        spca_int left = 0;
        int lower;
        for (spca_int i = 0; i < p; i++) {
            more += work[i] > pivot ? (double)work[i] : 0;
            ties += work[i] == pivot;
        }
        ties *= (double)pivot;
        lower = above + more <= bound; /* the level is the pivot or below */
        if (lower && above + more + ties > bound) return pivot;
        if (lower) above = above + more + ties; /* rounded as it was compared */
        for (spca_int i = 0; i < p; i++) {
            real x = work[i];
            work[left] = x;
            left += lower ? x < pivot : x > pivot;
        }
        p = left;
        for (spca_int i = 0; !lower && i < p; i++) least = i > 0 ? fmin(least, work[i]) : work[0];
    }
    return least;
}
