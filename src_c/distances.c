/* distances.c - differences between samples, variable by variable, for sparse clustering.
 *
 * T holds the data by columns, t_j of length n; pairs i < i' are in the order of
 * scipy.spatial.distance.pdist.  Column j of the matrix D of Witten and Tibshirani (2010, JASA 105,
 * 713-726, section 4) is d(t_ij, t_i'j) over the pairs, with d(x, y) = |x - y| or (x - y)^2. Both
 * products with D form it anew as they go, n^2/2 differences a column:
 *
 *     D w     one i at a time, GROUP columns together, vectorized over i';
 *     D'u     LANES columns together, vectorized over them, so that each u is read once for all.
 *
 * For squares D'u is a matrix product, and not made here.  Sums are made in an order that the width
 * of vectors does not change, over the pairs in two levels, so that rounding adds up to some 2n
 * units at most.  D w is kept in double, since there may be many columns.
 */
#include "real.h"

enum { GROUP = 8, LANES = SPCA_LANES };

/* d_m += sum_l w_l |t_l[m] - from_l|, or of the squares */
VECTORIZED static void add_differences(spca_int count, const real *const *t, const real *from,
                                       const real *w, int squared, double *restrict d)
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

spca_status SPCA(add_distances)(spca_int n, spca_int b, const real *T, const real *w, int squared,
                                spca_stop stop, void *ctx, double *D)
{
    for (spca_int j = 0; j < b; j += GROUP) {
        const real *t[GROUP];
        real weight[GROUP], from[GROUP];
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (int l = 0; l < GROUP; l++) {
            t[l] = T + n * min_int(j + l, b - 1);
            weight[l] = j + l < b ? w[j + l] : 0;
        }
        double *d = D;
        for (spca_int i = 0; i < n - 1; i++) {
            for (int l = 0; l < GROUP; l++) from[l] = *t[l]++;
            add_differences(n - 1 - i, t, from, weight, squared, d);
            d += n - 1 - i;
        }
    }
    return SPCA_OK;
}

/* sum_l += sum_m u_m |x_ml - from_l| */
VECTORIZED static void add_products(spca_int count, const real *u, const real *x, const real *from,
                                    double *sum)
{
    real part[LANES] = {0};
    for (spca_int m = 0; m < count; m++, x += LANES)
        for (int l = 0; l < LANES; l++) part[l] += u[m] * fabs(x[l] - from[l]);
    for (int l = 0; l < LANES; l++) sum[l] += (double)part[l];
}

spca_status SPCA(absolute_products)(spca_int n, spca_int b, const real *T, const real *u,
                                    spca_stop stop, void *ctx, real *work, double *y)
{
    for (spca_int j = 0; j < b; j += LANES) {
        double sum[LANES] = {0};
        const real *pair = u;
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (int l = 0; l < LANES; l++) {
            const real *t = T + n * min_int(j + l, b - 1);
            for (spca_int i = 0; i < n; i++) work[i * LANES + l] = t[i];
        }
        for (spca_int i = 0; i < n - 1; i++) {
            const real *row = work + i * LANES;
            add_products(n - 1 - i, pair, row + LANES, row, sum);
            pair += n - 1 - i;
        }
        for (int l = 0; l < LANES && j + l < b; l++) y[j + l] = sum[l];
    }
    return SPCA_OK;
}
