/* distances.c - differences between samples, variable by variable, for sparse clustering.
 *
 * T holds the data by columns t_j of length n; pairs i < i' are in the order of
 * scipy.spatial.distance.pdist.  Column j of the matrix D of Witten and Tibshirani (2010, JASA 105,
 * 713-726, section 4) is d(t_ij, t_i'j) over the pairs, with d(x, y) = |x - y| or (x - y)^2.  Both
 * products with D form it anew as they go, n^2/2 differences for a column:
 *
 *     D w     one i at a time, GROUP columns together, vectorized over i';
 *     D'u     LANES columns together, vectorized over them, so that each u is read once for all.
 *
 * For squares D'u is a matrix product, which is made elsewhere.  Sums have an order that the width
 * of vectors does not change: over the pairs in two levels, so that rounding adds up to about 2n
 * units at most.  D w is kept in double, since there may be many columns. */
#include "real.h"

/* GROUP: columns of T together.  PAIRS: pairs of a part. */
enum { GROUP = 8, LANES = SPCA_LANES, PAIRS = SPCA_PART / 8 };

/* d_m += sum_l w_l |t_l[m] - from_l| over GROUP columns, or with the squares. */
VECTORIZED(add_differences,
           (spca_int count, const real *const *t, const real *from, const real *w, int squared,
            double *restrict d),
           (count, t, from, w, squared, d))
{
    if (squared)
        for (spca_int m = 0; m < count; m++) {
            real sum = 0;
            for (int l = 0; l < GROUP; l++) {
                real x = t[l][m] - from[l];
                sum += w[l] * (x * x);
            }
            d[m] += (double)sum;
        }
    else
        for (spca_int m = 0; m < count; m++) {
            real sum = 0;
            for (int l = 0; l < GROUP; l++) sum += w[l] * fabs(t[l][m] - from[l]);
            d[m] += (double)sum;
        }
}

/* The arguments of either product. */
typedef struct {
    spca_int n, b;
    const real *T, *w, *u;
    int squared;
    real *work;
    double *out;
} pairs_t;

/* The number of pairs before those of sample i with later samples. */
static spca_int pairs_before(spca_int n, spca_int i)
{
    return i * n - i * (i + 1) / 2;
}

/* By bisection: the first sample before which there are so many pairs. */
static spca_int sample_after(spca_int n, spca_int pairs)
{
    spca_int low = 0, high = n - 1;
    while (low < high) {
        spca_int i = low + (high - low) / 2;
        if (pairs_before(n, i) < pairs)
            low = i + 1;
        else
            high = i;
    }
    return low;
}

/* The pairs of a part, for all variables; the sums stay in cache. */
static void distances_part(void *context, spca_int part)
{
    const pairs_t *s = context;
    spca_int n = s->n, first = sample_after(n, part * PAIRS),
             last = sample_after(n, (part + 1) * PAIRS);
    for (spca_int j = 0; j < s->b; j += GROUP) {
        double *d = s->out + pairs_before(n, first);
        const real *t[GROUP];
        real weight[GROUP], from[GROUP];
        for (int l = 0; l < GROUP; l++) {
            t[l] = s->T + n * min_int(j + l, s->b - 1) + first;
            weight[l] = j + l < s->b ? s->w[j + l] : 0;
        }
        for (spca_int i = first; i < last; i++) {
            for (int l = 0; l < GROUP; l++) from[l] = *t[l]++;
            add_differences(n - 1 - i, t, from, weight, s->squared, d);
            d += n - 1 - i;
        }
    }
}

spca_status SPCA(add_distances)(spca_int n, spca_int b, const real *T, const real *w, int squared,
                                spca_run run, spca_stop stop, void *ctx, double *D)
{
    pairs_t s = {.n = n, .b = b, .T = T, .w = w, .squared = squared, .out = D};
    double pairs = (double)n * (double)n / 2;
    return do_parts(run, pairs * (double)b * sizeof(real), distances_part, &s,
                    pairs_before(n, n) / PAIRS + 1, stop, ctx);
}

/* sum_l += sum_m u_m |x_ml - from_l| for LANES columns. */
VECTORIZED(add_products,
           (spca_int count, const real *u, const real *x, const real *from, double *sum),
           (count, u, x, from, sum))
{
    real part[LANES] = {0};
    for (spca_int m = 0; m < count; m++, x += LANES)
        for (int l = 0; l < LANES; l++) part[l] += u[m] * fabs(x[l] - from[l]);
    for (int l = 0; l < LANES; l++) sum[l] += (double)part[l];
}

/* y_j for the LANES variables of a part; work has them by rows. */
static void products_part(void *context, spca_int part)
{
    const pairs_t *s = context;
    spca_int n = s->n, j = part * LANES;
    double sum[LANES] = {0};
    const real *pair = s->u;
    real *work = s->work + j * n;
    for (int l = 0; l < LANES; l++) {
        const real *t = s->T + n * min_int(j + l, s->b - 1);
        for (spca_int i = 0; i < n; i++) work[i * LANES + l] = t[i];
    }
    for (spca_int i = 0; i < n - 1; i++) {
        const real *row = work + i * LANES;
        add_products(n - 1 - i, pair, row + LANES, row, sum);
        pair += n - 1 - i;
    }
    for (int l = 0; l < LANES && j + l < s->b; l++) s->out[j + l] = sum[l];
}

spca_status SPCA(absolute_products)(spca_int n, spca_int b, const real *T, const real *u,
                                    spca_run run, spca_stop stop, void *ctx, real *work, double *y)
{
    pairs_t s = {.n = n, .b = b, .T = T, .u = u, .work = work, .out = y};
    return do_parts(run, (double)n * (double)n / 2 * (double)b * sizeof(real), products_part, &s,
                    (b + LANES - 1) / LANES, stop, ctx);
}
