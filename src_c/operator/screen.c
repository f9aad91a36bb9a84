/* screen.c - which columns of dense data can answer a query, from a fraction of the bytes of X.
 *
 * The query is for the entries of y = Z'f largest in magnitude, or above a level; z_j, the
 * columns of Z = F, are known up to bounds, and only those that may belong to the answer are
 * multiplied exactly, by the loops of the plain product.  So the answer is the plain one to the
 * last bit, if no bound is too small.  Let f have unit norm, and let bar z_j stand for step_j q_j
 * where there is a quantized copy, for z_j otherwise.
 *
 * 1. References D = (d_1 .. d_M), directions of earlier queries for which S_j = D'bar z_j is
 * known. For any b, with w = f - D b and an orthonormal basis Q of the references (Cauchy-Schwarz),
 *        |bar z_j'f| <= |S_j'b| + ||(I - QQ') bar z_j|| ||w|| + ||bar z_j|| ||Q'w||.
 *    The same holds of one direction alone, whose product is known for some columns: the latest
 * long list that a column was in. Then w = f - b d, and the last term is gone.
 * 2. The quantized copy: with f~ = f rounded to int16, bar z_j'f~ is a sum of integers, exact, and
 *        |z_j'f - bar z_j'f~| <= ||z_j - bar z_j|| + ||bar z_j|| ||f - f~||.
 *    A product with the whole copy becomes a reference, the oldest goes.
 * 3. The level: the k-th largest |y_j| among k columns multiplied exactly, those of v, or the k-th
 *    largest lower bound of 2 where that is higher.  What reaches the level is multiplied exactly.
 *    A shift of A moves the entries of v alone: then these are the columns multiplied exactly, and
 *    the bounds, which do not know of it, are for the others.
 *
 * Rounding.  With u the unit roundoff of REAL, the plain products add n terms through at most
 * h = n/4 + STRANDS + 4 additions (dense.c), so that fl(x'g) differs from x'g by at most
 * gamma_{h+1} ||x|| ||g||, gamma_m = m u/(1 - m u) (Higham 2002, Accuracy and Stability of
 * Numerical Algorithms, section 4.2), likewise fl(1'g), and ||mean 1|| <= ||x||.  The remaining
 * four operations of y_j = range weight_j (x_j'g - (1'g) mean_j) add 4u.  slack_j holds twice that,
 *        slack_j >= ||z_j - bar z_j|| + 4 (n/4 + STRANDS + 12) u range^2 weight_j ||x_j||,
 * and was computed in double.  Bounds are taken in float, from products rounded to float: each of
 * the at most SPCA_REFERENCES + 5 roundings moves them by 2^-24 of a sum that is at most (1 + sum
 * |b_m|) ||bar z_j|| + slack_j; GRAIN = 2^-20 times that is added.  Subtracting t directions, c_i
 * x_ij at a time, in REAL in the plain product and in float here, is off by less than (t + 8) 2^-22
 * (||bar z_j|| + sum_i |c_i x_ij|).  Levels are lowered by a factor 1 - 2^-18, and the smallest
 * normal float is added to slack_j, against underflow in the bounds.
 *
 * Underflow in REAL moves a product by half of the smallest subnormal number eta each time: y_j by
 * less than 2 (n + 2) eta (1 + range (1 + weight_j)), with fewer than 2n directions.  slack_j holds
 * that over s->smallest, and a direction whose norm is smaller is not screened; nor is one whose
 * norm is above s->greatest: there a product may overflow on the way, which is to be reported.
 *
 * Overflow in float, as of the squares of norms above 2^64, makes a residual and a bound infinite
 * or NaN.  Neither is below a level, so the column is kept.  An infinite lower bound counts as 0,
 * since the estimate alone may have overflowed. */
#include "centring.h"

#define GRAIN 0x1p-20f
#define STRIP 1024 /* columns whose estimates stay in L1 */
enum { M = SPCA_REFERENCES, AHEAD = 12 /* columns */, GROUP = 64 };
/* bytes that memory brings in the time that the bounds of a column take; a cost for do_parts */
enum { COLUMN = 8 * (M + 6) };

/* A column of a list costs as much as so many columns read one after the other. */
enum { LISTED = 3 };

/* When to give up: all columns are read where more than p/share are left.  QUANTIZED_SHARE: of the
 * quantized copy, since a list costs three times as much a column, and leaves no reference.
 * EXACT_SHARE: of X, and EXACT_SHARE_ROWS in C order.  A list of more than p/LONG_SHARE is long.
 * One group in SAMPLE_SHARE is tried first. */
enum { QUANTIZED_SHARE = 8, EXACT_SHARE = 2, EXACT_SHARE_ROWS = 64 };
enum { LONG_SHARE = 128, SAMPLE_SHARE = 64 };

/* ---- references ----------------------------------------------------------------------------- */

/* x'y in double; its rounding is within the margins. */
static double dot_of(spca_int n, const double *x, const double *y)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (spca_int i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* What `residuals` needs: products S_l of the references, T_lm of the basis, and how far off the
 * products with the basis are. */
typedef struct {
    const spca_screen *s;
    const float *product[M];
    float T[M][M], error, share;
    spca_int p, step;
} span_t;

/* residual_j^2 = ||bar z_j||^2 - sum_m (q_m'bar z_j)^2, rounded up: its 2 M + 2 roundings are below
 * GRAIN ||bar z_j||^2; q_m'bar z_j = sum_l S_jl T_lm is off by at most error ||bar z_j|| + share
 * slack_j, for every m.  What underflow takes from the squares is below 2^-140. */
VECTORIZED(residuals,
           (spca_int first, spca_int last, int used, const float *const *product,
            const float (*T)[M], float error, float share, const float *norm, const float *slack,
            float *restrict residual),
           (first, last, used, product, T, error, share, norm, slack, residual))
{
    float q[STRIP];
    for (spca_int j0 = first; j0 < last; j0 += STRIP) {
        spca_int n = min_int(STRIP, last - j0);
        float *square = residual + j0;
        for (spca_int j = 0; j < n; j++) square[j] = norm[j0 + j] * norm[j0 + j] * (1 + GRAIN);
        for (int m = 0; m < used; m++) {
            for (spca_int j = 0; j < n; j++) q[j] = product[0][j0 + j] * T[0][m];
            for (int l = 1; l <= m; l++)
                for (spca_int j = 0; j < n; j++) q[j] += product[l][j0 + j] * T[l][m];
            for (spca_int j = 0; j < n; j++) {
                float at_least = fabsf(q[j]) - (error * norm[j0 + j] + share * slack[j0 + j]);
                q[j] = at_least > 0 ? at_least : 0;
            }
            for (spca_int j = 0; j < n; j++) square[j] -= q[j] * q[j];
        }
        for (spca_int j = 0; j < n; j++) q[j] = square[j] < 0 ? 0 : square[j];
        for (spca_int j = 0; j < n; j++) square[j] = sqrtf(q[j]) + 0x1p-70f;
    }
}

static void residuals_part(void *context, spca_int part)
{
    const span_t *span = context;
    const spca_screen *s = span->s;
    residuals(part * span->step, min_int(span->p, (part + 1) * span->step), s->used, span->product,
              span->T, span->error, span->share, s->norm, s->slack, s->residual);
}

/* After a new direction and its products: an orthonormal basis, newest first so that it counts in
 * full; directions nearly within the span of newer ones are left out. */
static void rebuild(const operator_t *A)
{
    spca_screen *s = A->screen;
    span_t span = {.s = s, .p = A->p, .step = SPCA_PART / COLUMN + 1};
    spca_int n = A->n;
    float total = 0;
    s->used = 0;
    for (int age = 0; age < s->known; age++) {
        int l = (s->newest - age + M) % M, m = s->used;
        double *d = s->direction + l * n, *q = s->basis + m * n, coefficient[M] = {0}, norm;
        for (spca_int i = 0; i < n; i++) q[i] = d[i];
        for (int pass = 0; pass < 2; pass++)
            for (int i = 0; i < m; i++) {
                double c = dot_of(n, s->basis + i * n, q);
                for (spca_int k = 0; k < n; k++) q[k] -= c * s->basis[i * n + k];
                for (int k = 0; k <= i; k++) coefficient[k] -= c * s->triangle[k][i];
            }
        norm = sqrt(dot_of(n, q, q));
        if (!(norm > 1e-2)) continue;
        coefficient[m] = 1;
        for (spca_int i = 0; i < n; i++) q[i] /= norm;
        for (int k = 0; k <= m; k++) s->triangle[k][m] = coefficient[k] / norm;
        s->chosen[s->used++] = l;
    }
    for (int m = 0; m < s->used; m++) {
        span.product[m] = s->product + s->chosen[m] * A->p;
        for (int l = 0; l <= m; l++) {
            span.T[l][m] = (float)s->triangle[l][m];
            total += fabsf(span.T[l][m]);
        }
    }
    span.error = (2 + total) * GRAIN;
    span.share = s->quantized ? 0 : total;
    (void)do_parts(A->run, (double)A->p * COLUMN, residuals_part, &span,
                   (A->p + span.step - 1) / span.step, NULL, NULL);
}

/* A query, cut into parts by its columns: all p, or the `count` of a list. */
typedef struct {
    const operator_t *A;
    /* The coefficients of the directions that are subtracted, and the norm of F v factor; bounds
     * and level are in units of that norm. */
    const real *c;
    double norm;
    float level;
    const spca_int *list;
    spca_int count, step;
    /* by_references (argument 1), and by_lists */
    const float *product[M];
    float b[M], outside, within, loose;
    float along[M], beside[M];
    /* by_copy (argument 2): the unit of estimates, and near >= ||f - f~|| */
    float unit, near;
    float *reference; /* where these products become a reference, or NULL */
    int nonnegative, long_list;
} query_t;

/* Does the parts of a query that reads `bytes` bytes for each column. */
static spca_status do_query(query_t *q, double bytes, spca_task task, spca_stop stop, void *ctx)
{
    q->step = (spca_int)(SPCA_PART / bytes) + 1;
    return do_parts(q->A->run, bytes * (double)q->count, task, q,
                    (q->count + q->step - 1) / q->step, stop, ctx);
}

/* bound_j >= |z_j'f|/||f|| by the references, over columns [j0, j1), at most STRIP: |S_j'b| +
 * outside residual_j + within norm_j + loose slack_j. */
VECTORIZED(strip_bounds,
           (spca_int j0, spca_int j1, int used, const float *const *product, const float *b,
            float outside, float within, float loose, const float *residual, const float *norm,
            const float *slack, float *bound),
           (j0, j1, used, product, b, outside, within, loose, residual, norm, slack, bound))
{
    float estimate[STRIP] = {0};
    spca_int n = j1 - j0;
    for (int m = 0; m < used; m++)
        for (spca_int j = 0; j < n; j++) estimate[j] += b[m] * product[m][j0 + j];
    for (spca_int j = 0; j < n; j++)
        bound[j0 + j] = (fabsf(estimate[j]) + outside * residual[j0 + j]) +
                        (within * norm[j0 + j] + loose * slack[j0 + j]);
}

/* The numbers of argument 1 that strip_bounds needs: b, outside = ||w||, and within = sum of
 * |q_m'w|, a bound of ||Q'w||. */
static void by_references(query_t *q)
{
    const spca_screen *s = q->A->screen;
    float sum_b = 0;
    double within = 0, *w = s->outside;
    spca_int n = q->A->n;
    for (spca_int i = 0; i < n; i++) w[i] = s->unit[i];
    for (int m = 0; m < s->used; m++) q->b[m] = 0;
    for (int m = 0; m < s->used; m++) {
        double a = dot_of(n, s->basis + m * n, s->unit);
        for (int l = 0; l <= m; l++) q->b[l] += (float)(a * s->triangle[l][m]);
    }
    for (int l = 0; l < s->used; l++) {
        const double *d = s->direction + s->chosen[l] * n;
        q->product[l] = s->product + s->chosen[l] * q->A->p;
        sum_b += fabsf(q->b[l]);
        for (spca_int i = 0; i < n; i++) w[i] -= (double)q->b[l] * d[i];
    }
    for (int m = 0; m < s->used; m++) within += fabs(dot_of(n, s->basis + m * n, w));
    q->outside = (float)sqrt(dot_of(n, w, w));
    q->within = (float)within + (2 + sum_b) * GRAIN;
    q->loose = s->quantized ? 1 : 1 + sum_b;
}

/* The bound of argument 1 by one direction d of a long list: along = |b|, b = f'd, and beside = ||f
 * - b d||, rounded up. */
static void by_lists(query_t *q)
{
    const spca_screen *s = q->A->screen;
    spca_int n = q->A->n;
    for (int l = 0; l < M; l++) {
        const double *d = s->list_of + l * n;
        double b = dot_of(n, d, s->unit), square = 0;
        for (spca_int i = 0; i < n; i++)
            square += (s->unit[i] - b * d[i]) * (s->unit[i] - b * d[i]);
        q->along[l] = (float)fabs(b);
        q->beside[l] = (float)sqrt(square) + (2 + q->along[l]) * GRAIN;
    }
}

/* ---- the quantized copy --------------------------------------------------------------------- */

/* f~ = rounded 2^-exponent, and returns ||f - f~|| of the unit vector f.  The scale is so that
 * ||rounded|| widest < 2^31: by Cauchy-Schwarz no sum of products of rounded and q_j, in any order,
 * leaves int32.  Where the scale is 1, at most four entries are not 0. */
static double round_direction(spca_int n, spca_screen *s, const double *unit, int *exponent)
{
    double most = 0, scale, miss = 0;
    for (spca_int i = 0; i < n; i++) most = fmax(most, fabs(unit[i]));
    frexp(fmax(1, fmin(32767 / most, 0x1.fp30 / s->widest - 0.5 * sqrt((double)n))), exponent);
    scale = ldexp(1.0, --*exponent);
    for (spca_int i = 0; i < n; i++) {
        double r = nearbyint(unit[i] * scale);
        s->rounded[i] = (int16_t)r;
        miss += (unit[i] - r / scale) * (unit[i] - r / scale);
    }
    for (spca_int i = n; i < s->ld; i++) s->rounded[i] = 0;
    return sqrt(miss);
}

/* estimate_a = bar z_j'f~ for j = list_a, or j = a where list is NULL.  Processors do not foresee
 * the next columns of a list, and do not run far enough ahead in an array, so columns are fetched
 * AHEAD. */
VECTORIZED_WIDE(estimates,
                (spca_int count, const spca_int *list, spca_int ld, const int8_t *quantized,
                 const float *step, float unit, const int16_t *f, float *estimate),
                (count, list, ld, quantized, step, unit, f, estimate))
{
    for (spca_int a = 0; a < count; a++) {
        spca_int j = list ? list[a] : a;
        const int8_t *q = quantized + j * ld;
        int32_t sum = 0;
        spca_int later = min_int(a + AHEAD, count - 1);
        const int8_t *next = quantized + (list ? list[later] : later) * ld;
        for (spca_int i = 0; i < ld; i += 64) FETCH(next + i);
        for (spca_int i = 0; i < ld; i++) sum += (int32_t)q[i] * (int32_t)f[i];
        estimate[a] = (float)sum * (step[j] * unit);
    }
}

/* ---- queries ------------------------------------------------------------------------------- */

/* Writes to `out` the columns (of the list, or first + a) whose bound is not below the level, and
 * returns how many; out may be the list.  Most groups of GROUP columns have none, which one pass
 * without branches shows. */
VECTORIZED_TO(spca_int, collect,
              (spca_int n, const float *bound, float level, spca_int first, const spca_int *list,
               spca_int *out),
              (n, bound, level, first, list, out))
{
    spca_int count = 0;
    for (spca_int a0 = 0; a0 < n; a0 += GROUP) {
        spca_int end = min_int(n, a0 + GROUP);
        int some = end - a0 < GROUP;
        if (!some)
            for (int i = 0; i < GROUP; i++) some |= !(bound[a0 + i] < level);
        for (spca_int a = a0; some && a < end; a++) {
            out[count] = list ? list[a] : first + a;
            count += !(bound[a] < level);
        }
    }
    return count;
}

/* The first place of a list from a on whose column is at least j, or last; by doubling steps and
 * bisection. */
static spca_int place_from(const spca_int *list, spca_int a, spca_int last, spca_int j)
{
    spca_int high = a;
    for (spca_int step = 1; high < last && list[high] < j; step *= 2) {
        a = high + 1;
        high += step;
    }
    if (high > last) high = last;
    while (a < high) {
        spca_int b = a + (high - a) / 2;
        if (list[b] < j)
            a = b + 1;
        else
            high = b;
    }
    return a;
}

/* Subtracting directions moves y_a by -c_i x_ij, over the norm of f.  Adds that to estimate_a for
 * first <= a < last, and how far off it may be to margin_a; or, without estimates, the most that it
 * may move y_a to margin_a. */
static void move(const query_t *q, spca_int first, spca_int last, const spca_int *list,
                 float *estimate, float *margin)
{
    const operator_t *A = q->A;
    const float *size = A->screen->norm;
    float grain = (float)(A->t + 8) * 0x1p-22f;
    if (first == last) return;
    for (spca_int i = 0; i < SPCA(subtracted)(A); i++) {
        vector_t x = A->direction[i];
        spca_int from = list ? list[first] : first; /* its first nonzero there */
        spca_int b = x.index ? place_from(x.index, 0, x.nnz, from) : min_int(from, x.nnz);
        for (spca_int a = first; b < x.nnz; b++) {
            spca_int j = x.index ? x.index[b] : b;
            float moved = (float)(-(double)q->c[i] / q->norm * (double)x.value[b]);
            a = list ? place_from(list, a, last, j) : j;
            if (a >= last) break;
            if (list && list[a] != j) continue;
            if (estimate) estimate[a] += moved;
            margin[a] += estimate ? grain * (fabsf(moved) + size[j]) : fabsf(moved) * (1 + grain);
        }
    }
}

/* Drops the columns of the list that the bounds of by_lists rule out, in place; returns how many
 * are left.  Each column has the product with the last long list that it was in; of M lists the
 * directions are kept. */
static spca_int drop(const query_t *q, spca_int count, spca_int *list, float *bound)
{
    const spca_screen *s = q->A->screen;
    for (spca_int a = 0; a < count; a++) {
        spca_int j = list[a];
        int l = s->last_list[j] % M;
        int known = (s->last_list[j] > 0) & (s->last_list[j] > s->lists - M);
        float far =
            q->along[l] * fabsf(s->last_product[j]) + q->beside[l] * s->norm[j] + s->slack[j];
        bound[a] = known ? far : HUGE_VALF;
    }
    move(q, 0, count, list, NULL, bound);
    return collect(count, bound, q->level, 0, list, list);
}

/* The columns of [first, last) that neither the references nor the long lists rule out, written to
 * s->list from place `first` on; returns how many. */
static spca_int left_by_bounds(const query_t *q, spca_int first, spca_int last)
{
    spca_screen *s = q->A->screen;
    spca_int *list = s->list + first, found;
    for (spca_int j = first; j < last; j += STRIP)
        strip_bounds(j, min_int(last, j + STRIP), s->used, q->product, q->b, q->outside, q->within,
                     q->loose, s->residual, s->norm, s->slack, s->bound);
    move(q, first, last, NULL, NULL, s->bound);
    found = collect(last - first, s->bound + first, q->level, first, NULL, list);
    return s->lists > 0 ? drop(q, found, list, s->estimate + first) : found;
}

/* left_by_bounds of a part; -1 ends what it leaves. */
static void bounds_part(void *context, spca_int part)
{
    const query_t *q = context;
    spca_int first = part * q->step, last = min_int(q->count, first + q->step);
    spca_int found = left_by_bounds(q, first, last);
    if (found < last - first) q->A->screen->list[first + found] = -1;
}

/* Whether the bounds leave more than half of the columns, by a sample of groups: then it is not
 * worth asking the others. */
static int leave_most(const query_t *q)
{
    spca_int found = 0, asked = 0;
    for (spca_int first = 0; first < q->count; first += GROUP * SAMPLE_SHARE) {
        spca_int last = min_int(q->count, first + GROUP);
        found += left_by_bounds(q, first, last);
        asked += last - first;
    }
    return found > asked / 2;
}

/* Closes the gaps between what the parts have left in the list; returns how many columns there are.
 */
static spca_int join(const query_t *q, spca_int *list)
{
    spca_int count = 0;
    for (spca_int first = 0; first < q->count; first += q->step)
        for (spca_int a = first; a < min_int(q->count, first + q->step) && list[a] >= 0; a++)
            list[count++] = list[a];
    return count;
}

/* The places for a new reference, the direction (n) and its products (p, returned), in place of the
 * oldest. */
static float *new_reference(spca_int n, spca_int p, spca_screen *s, double **direction)
{
    s->newest = (s->newest + 1) % M;
    if (s->known < M) s->known++;
    *direction = s->direction + s->newest * n;
    return s->product + s->newest * p;
}

/* The estimates of a part. */
static void estimates_part(void *context, spca_int part)
{
    const query_t *q = context;
    spca_screen *s = q->A->screen;
    spca_int a = part * q->step, first = q->list ? 0 : a;
    estimates(min_int(q->step, q->count - a), q->list ? q->list + a : NULL, s->ld,
              s->quantized + first * s->ld, s->step + first, q->unit, s->rounded, s->estimate + a);
}

/* margin_a = slack_j + near norm_j (argument 2), without the moves of directions. */
VECTORIZED(margins,
           (spca_int first, spca_int last, const spca_int *list, float near, const float *norm,
            const float *slack, float *restrict margin),
           (first, last, list, near, norm, slack, margin))
{
    for (spca_int a = first; a < last; a++) {
        spca_int j = list ? list[a] : a;
        margin[a] = slack[j] + near * norm[j];
    }
}

/* lower_a: the magnitude (nonnegative: value) that y_a has at least, 0 where that is negative or
 * has overflowed. */
VECTORIZED(lower_bounds,
           (spca_int first, spca_int last, int nonnegative, const float *estimate,
            const float *margin, float *restrict lower),
           (first, last, nonnegative, estimate, margin, lower))
{
    for (spca_int a = first; a < last; a++) {
        float low = (nonnegative ? estimate[a] : fabsf(estimate[a])) - margin[a];
        lower[a] = ((low > 0) & (low <= FLT_MAX)) ? low : 0;
    }
}

/* After the estimates of a part: they are kept as a reference or for the long list, then directions
 * are subtracted, and lower bounds taken.  s->bound holds the margins. */
static void lower_part(void *context, spca_int part)
{
    const query_t *q = context;
    spca_screen *s = q->A->screen;
    spca_int first = part * q->step, last = min_int(q->count, first + q->step);
    float *estimate = s->estimate, *margin = s->bound;
    for (spca_int a = first; q->reference && a < last; a++) q->reference[a] = estimate[a];
    for (spca_int a = first; q->long_list && a < last; a++) {
        s->last_list[q->list[a]] = s->lists;
        s->last_product[q->list[a]] = estimate[a];
    }
    margins(first, last, q->list, q->near, s->norm, s->slack, margin);
    move(q, first, last, q->list, estimate, margin);
    lower_bounds(first, last, q->nonnegative, estimate, margin, s->lower);
}

/* Upper bounds, |estimate| + margin, and the columns of the part that reach the level. */
static void upper_part(void *context, spca_int part)
{
    const query_t *q = context;
    spca_screen *s = q->A->screen;
    spca_int first = part * q->step, last = min_int(q->count, first + q->step), found;
    spca_int *list = s->list + first;
    for (spca_int a = first; a < last; a++) s->bound[a] += fabsf(s->estimate[a]);
    found = collect(last - first, s->bound + first, q->level, first, q->list ? list : NULL, list);
    if (found < last - first) list[found] = -1;
}

/* Argument 2: narrows the list (NULL: all columns) by the quantized copy, and raises the level to
 * the k-th largest lower bound where that is higher.  scratch (count floats). */
static spca_status by_copy(query_t *q, spca_int k, spca_stop stop, void *ctx, float *scratch)
{
    const operator_t *A = q->A;
    spca_screen *s = A->screen;
    int exponent;
    spca_status status;
    q->near = (float)round_direction(A->n, s, s->unit, &exponent);
    q->near += (1 + q->near) * GRAIN;
    q->unit = ldexpf(1, -exponent);
    status = do_query(q, (double)s->ld * (q->list ? LISTED : 1), estimates_part, stop, ctx);
    if (status < 0) return status;
    s->quantized_columns += q->count;
    if (s->direction && q->count > A->p / LONG_SHARE) {
        double *direction = NULL;
        q->long_list = q->list != NULL;
        if (q->long_list)
            direction = s->list_of + (++s->lists % M) * A->n;
        else
            q->reference = new_reference(A->n, A->p, s, &direction);
        for (spca_int i = 0; i < A->n; i++) direction[i] = ldexp((double)s->rounded[i], -exponent);
    }
    (void)do_query(q, COLUMN, lower_part, NULL, NULL);
    if (q->reference) rebuild(A);
    if (k > 0 && q->count >= k && A->shift == 0) { /* a shift may lower what v holds */
        spca_int ties;
        float lowest = spca_skth_largest(q->count, s->lower, k, scratch, &ties) * (1 - 0x1p-18f);
        if (lowest > q->level) q->level = lowest;
    }
    (void)do_query(q, COLUMN, upper_part, NULL, NULL);
    q->count = join(q, s->list);
    q->list = s->list;
    return SPCA_OK;
}

/* The exact product with all columns, *list = NULL.  Without a quantized copy, it becomes a
 * reference (norm > 0). */
static spca_status everything(const operator_t *A, vector_t v, const real *f, const real *c,
                              double norm, spca_stop stop, void *ctx, spca_int *count,
                              const spca_int **list, real *y)
{
    spca_screen *s = A->screen;
    spca_status status = A->backward(A, f, total_of(A, f), A->p, NULL, stop, ctx, y);
    if (status < 0) return status;
    s->columns += A->p;
    if (!s->quantized && norm > 0) {
        double *direction;
        float *product = new_reference(A->n, A->p, s, &direction);
        for (spca_int i = 0; i < A->n; i++) direction[i] = s->unit[i];
        for (spca_int j = 0; j < A->p; j++) product[j] = (float)((double)y[j] / norm);
        rebuild(A);
    }
    SPCA(subtract)(A, v, c, A->p, NULL, y);
    *list = NULL;
    *count = A->p;
    return SPCA_OK;
}

/* unit = f/||f||, and returns the norm of f/range = factor F v; 0 where f is 0 or not finite. */
static double normalize(const operator_t *A, const real *f, double *unit)
{
    double most = (double)largest_magnitude(A->n, f), norm;
    if (!(most > 0) || !(most <= DBL_MAX)) return 0;
    for (spca_int i = 0; i < A->n; i++) unit[i] = (double)f[i] / most;
    norm = sqrt(dot_of(A->n, unit, unit));
    for (spca_int i = 0; i < A->n; i++) unit[i] /= norm;
    return norm * most / (double)A->range;
}

spca_status SPCA(screened)(const operator_t *A, vector_t v, const real *f, const real *c,
                           spca_int k, real tau, int nonnegative, spca_stop stop, void *ctx,
                           real *work, spca_int *count, const spca_int **list, real *y)
{
    spca_screen *s = A->screen;
    spca_int p = A->p, guesses = 0, few = p / (A->row_major ? EXACT_SHARE_ROWS : EXACT_SHARE);
    real *known = y + p - k;
    real total = total_of(A, f);
    double norm = normalize(A, f, s->unit);
    query_t q = {.A = A, .c = c, .norm = norm, .count = p, .nonnegative = nonnegative};
    spca_status status;
    /* 0. whether the bounds hold at all for this direction, and are worth it */
    s->queries++;
    *count = p;
    *list = NULL;
    if (!(norm >= s->smallest && norm <= s->greatest) || k > p / SPCA_GUESS_SHARE ||
        (A->shift != 0 && (!v.index || v.nnz > k)))
        return everything(A, v, f, c, 0, stop, ctx, count, list, y);
    /* 1. a level: the smallest of k exact values, at the largest entries of v.  They stand at the
     * end of y, which nothing else reaches before they are merged: at most p/2 < p - 2k other
     * columns are multiplied */
    if (k > 0 && v.index && v.nnz >= k) {
        spca_int ties;
        guesses = k;
        SPCA(select_largest)(v.nnz, v.value, k, work, s->guess);
        for (spca_int a = 0; a < k; a++) s->guess[a] = v.index[s->guess[a]];
        status = A->backward(A, f, total, k, s->guess, stop, ctx, known);
        if (status < 0) return status;
        s->columns += k;
        SPCA(subtract)(A, v, c, k, s->guess, known);
        tau = SPCA(kth_largest)(k, known, k, work, &ties);
        for (spca_int a = 0; nonnegative && a < k; a++)
            if (known[a] <= 0) tau = 0;
    }
    q.level = (float)((double)tau / norm) * (1 - 0x1p-18f);
    if (!(q.level > 0x1p-100f)) q.level = 0;

    /* 2. columns that references and long lists leave, unless too many */
    if (s->used > 0 && q.level > 0) {
        spca_int found;
        by_references(&q);
        if (s->lists > 0) by_lists(&q);
        int most = leave_most(&q);
        if (!most) (void)do_query(&q, COLUMN, bounds_part, NULL, NULL);
        found = most ? p : join(&q, s->list);
        if (found <= (s->quantized ? p / QUANTIZED_SHARE : few)) {
            q.count = found;
            q.list = s->list;
        }
    }
    /* 3. columns that the quantized copy leaves of these */
    if (s->quantized) {
        status = by_copy(&q, k, stop, ctx, (float *)(void *)work);
        if (status < 0) return status;
    }
    *list = q.list;
    *count = q.count;
    if (!*list || *count > few) return everything(A, v, f, c, norm, stop, ctx, count, list, y);

    /* 4. the exact values of these; then the two ascending lists are merged from the end, in place
     */
    spca_int *columns = s->list, left = 0;
    for (spca_int a = 0, b = 0; a < *count; a++) { /* those that are not known yet */
        while (b < guesses && s->guess[b] < columns[a]) b++;
        if (b == guesses || s->guess[b] != columns[a]) columns[left++] = columns[a];
    }
    status = A->backward(A, f, total, left, columns, stop, ctx, y);
    if (status < 0) return status;
    s->columns += left;
    SPCA(subtract)(A, v, c, left, columns, y);
    *count = left + guesses;
    for (spca_int a = left - 1, b = guesses - 1, to = *count - 1; b >= 0; to--) {
        int from_columns = a >= 0 && columns[a] > s->guess[b];
        y[to] = from_columns ? y[a] : known[b];
        columns[to] = from_columns ? columns[a--] : s->guess[b--];
    }
    return SPCA_OK;
}
