/* missing.c - columns with missing entries, centered and scaled by what is observed.
 *
 * Each column is first brought near 1 by the square of a power of two, so that no square leaves the
 * number range.  Some columns at a time are copied, since X may be stored by rows. */
#include "../real.h"

enum { COLUMNS = 16, SUMS = 8 };

/* sum of x_i^power (power 1 or 2) over the entries that are not missing. */
static double sum_of(spca_int n, const double *x, int power)
{
    double sum[SUMS] = {0};
    for (spca_int i = 0; i < n; i++)
        if (!isnan(x[i])) sum[i % SUMS] += power == 2 ? x[i] * x[i] : x[i];
    for (int half = SUMS / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) sum[l] += sum[l + half];
    return sum[0];
}

/* The power of two whose square brings numbers of this size near 1, as far as it can. */
static double unit_of(double size)
{
    int e;
    if (!(size > 0)) return 1;
    frexp(size, &e);
    int half = e < 0 ? (1 - e) / 2 : -(e / 2);
    return ldexp(1.0, half < 511 ? half : 511);
}

/* Fills one column in place, and finds its mean and deviation; returns 0 where an entry is infinite
 * or none is observed. */
static int fill(spca_int n, int center, int scale, double *x, double *mean, double *deviation)
{
    spca_int count = 0;
    double size = 0, first = 0, square;
    int constant = 1;
    for (spca_int i = 0; i < n; i++) {
        if (isnan(x[i])) continue;
        if (count++ == 0) first = x[i];
        constant &= x[i] == first;
        size = fabs(x[i]) > size ? fabs(x[i]) : size;
    }
    if (count == 0 || size > DBL_MAX) return 0;
    double unit = unit_of(size), back = scale ? 1 : unit;
    for (spca_int i = 0; i < n; i++) x[i] = x[i] * unit * unit;
    *mean = center ? sum_of(n, x, 1) / (double)count : 0;
    for (spca_int i = 0; i < n; i++) x[i] = center && constant ? 0 : x[i] - *mean;
    *deviation = 1;
    if (scale) {
        square = sum_of(n, x, 2) / (double)max_int(count - 1, 1);
        *deviation = square == 0 ? 1 : sqrt(square);
        for (spca_int i = 0; i < n; i++) x[i] /= *deviation;
        if (square > 0) *deviation = *deviation / unit / unit;
    }
    for (spca_int i = 0; i < n; i++) x[i] = isnan(x[i]) ? 0 : x[i] / back / back;
    *mean = *mean / unit / unit;
    return 1;
}

spca_status SPCA(fill_missing)(spca_int n, spca_int p, const real *X, spca_int ld, int row_major,
                               int center, int scale, spca_stop stop, void *ctx, double *work,
                               double *mean, double *deviation, real *filled, spca_int *bad)
{
    spca_int down = row_major ? ld : 1, across = row_major ? 1 : ld;
    for (spca_int first = 0; first < p; first += COLUMNS) {
        spca_int c = min_int(COLUMNS, p - first);
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (spca_int i = 0; i < n; i++)
            for (spca_int j = 0; j < c; j++)
                work[j * n + i] = (double)X[i * down + (first + j) * across];
        for (spca_int j = 0; j < c; j++) {
            double *x = work + j * n;
            *bad = first + j;
            if (!fill(n, center, scale, x, &mean[*bad], &deviation[*bad])) return SPCA_NONFINITE;
            for (spca_int i = 0; i < n; i++) filled[*bad * n + i] = (real)x[i];
        }
    }
    *bad = p;
    return SPCA_OK;
}
