/* statistics.c - one read of the input: means, sums of squared deviations, extremes; and how far a
 * matrix is from symmetric positive semidefinite.
 *
 * Tiles small enough for the cache are centred at their own mean and merged (Chan, Golub & LeVeque
 * 1983: M = M_a + M_b + d^2 n_a n_b/(n_a + n_b)), so a large mean costs no digits. */
#include "real.h"

enum { TILE_ROWS = 64, TILE_COLUMNS = 256 };

static void merge(double n_a, double n_b, double mean_b, double square_b, double *mean,
                  double *square)
{
    double d = mean_b - *mean, n = n_a + n_b;
    *mean += d * (n_b / n);
    *square += square_b + d * d * (n_a * (n_b / n));
}

/* Tile of r rows and c columns; rows of the tile are `down` apart, columns `across`. */
static void tile(spca_int r, spca_int c, const real *X, spca_int down, spca_int across,
                 double range, double done, int center, double *mean, double *square, double *low,
                 double *high)
{
    double sum[TILE_COLUMNS], squares[TILE_COLUMNS];
    for (spca_int j = 0; j < c; j++) sum[j] = squares[j] = 0;
    if (across == 1) {
        for (spca_int i = 0; i < r; i++)
            for (spca_int j = 0; j < c; j++) {
                double x = (double)X[i * down + j];
                low[j] = x < low[j] ? x : low[j];
                high[j] = x > high[j] ? x : high[j];
                sum[j] += x * range * range;
            }
        for (spca_int j = 0; j < c; j++) sum[j] = center ? sum[j] / (double)r : 0;
        for (spca_int i = 0; i < r; i++)
            for (spca_int j = 0; j < c; j++) {
                double d = (double)X[i * down + j] * range * range - sum[j];
                squares[j] += d * d;
            }
    } else {
        for (spca_int j = 0; j < c; j++) {
            const real *x = X + j * across;
            double s[4] = {0}, q[4] = {0}, lo = low[j], hi = high[j];
            for (spca_int i = 0; i < r; i++) {
                double v = (double)x[i * down];
                lo = v < lo ? v : lo;
                hi = v > hi ? v : hi;
                s[i & 3] += v * range * range;
            }
            low[j] = lo;
            high[j] = hi;
            sum[j] = center ? (s[0] + s[1] + s[2] + s[3]) / (double)r : 0;
            for (spca_int i = 0; i < r; i++) {
                double d = (double)x[i * down] * range * range - sum[j];
                q[i & 3] += d * d;
            }
            squares[j] = q[0] + q[1] + q[2] + q[3];
        }
    }
    for (spca_int j = 0; j < c; j++) merge(done, (double)r, sum[j], squares[j], mean + j, square + j);
}

static void begin(spca_int p, double *mean, double *square, double *low, double *high)
{
    for (spca_int j = 0; j < p; j++) {
        mean[j] = square[j] = 0;
        low[j] = INFINITY;
        high[j] = -INFINITY;
    }
}

spca_status SPCA(dense_statistics)(spca_int n, spca_int p, const real *X, spca_int ld,
                                   int row_major, int center, double range, spca_stop stop,
                                   void *ctx, double *mean, double *square, double *low,
                                   double *high)
{
    spca_int down = row_major ? ld : 1, across = row_major ? 1 : ld;
    spca_int rows = row_major ? TILE_ROWS : 4096, columns = row_major ? TILE_COLUMNS : 1;
    begin(p, mean, square, low, high);
    if (row_major) {
        for (spca_int i = 0; i < n; i += rows) {
            for (spca_int j = 0; j < p; j += columns) {
                if (j % 65536 == 0 && asked_to_stop(stop, ctx)) return SPCA_STOPPED;
                tile(min_int(rows, n - i), min_int(columns, p - j), X + i * down + j * across, down,
                     across, range, (double)i, center, mean + j, square + j, low + j, high + j);
            }
        }
    } else {
        for (spca_int j = 0; j < p; j++) {
            if (j % 64 == 0 && asked_to_stop(stop, ctx)) return SPCA_STOPPED;
            for (spca_int i = 0; i < n; i += rows) {
                if (i > 0 && i % (rows * 256) == 0 && asked_to_stop(stop, ctx)) return SPCA_STOPPED;
                tile(min_int(rows, n - i), 1, X + i * down + j * across, down, across, range,
                     (double)i, center, mean + j, square + j, low + j, high + j);
            }
        }
    }
    return SPCA_OK;
}

static inline spca_int at(const void *array, int wide, spca_int q)
{
    return wide ? (spca_int)((const int64_t *)array)[q] : (spca_int)((const int32_t *)array)[q];
}

/* Stored entries first, by Welford's update; the zeros are merged at the end as one more tile. */
spca_status SPCA(compressed_statistics)(spca_int n, spca_int p, const real *data,
                                        const void *indptr, const void *indices, int wide,
                                        int row_major, int center, double range, spca_stop stop,
                                        void *ctx, double *mean, double *square, double *low,
                                        double *high, double *count)
{
    spca_int lines = row_major ? n : p, read = 0;
    begin(p, mean, square, low, high);
    for (spca_int j = 0; j < p; j++) count[j] = 0;
    for (spca_int l = 0; l < lines; l++) {
        spca_int first = at(indptr, wide, l), last = at(indptr, wide, l + 1);
        for (spca_int q = first; q < last; q++) {
            spca_int j = row_major ? at(indices, wide, q) : l;
            double x = (double)data[q], v = x * range * range, d = v - mean[j];
            low[j] = x < low[j] ? x : low[j];
            high[j] = x > high[j] ? x : high[j];
            count[j]++;
            if (center) {
                mean[j] += d / count[j];
                square[j] += d * (v - mean[j]);
            } else
                square[j] += v * v;
            if (!(fabs(x) <= DBL_MAX)) mean[j] = NAN;
        }
        if ((read += last - first + 16) > (1 << 22)) {
            read = 0;
            if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        }
    }
    for (spca_int j = 0; j < p; j++) {
        double zeros = (double)n - count[j];
        if (zeros == 0) continue;
        low[j] = low[j] < 0 ? low[j] : 0;
        high[j] = high[j] > 0 ? high[j] : 0;
        if (center) merge(count[j], zeros, 0, 0, mean + j, square + j);
    }
    return SPCA_OK;
}

spca_status SPCA(symmetry)(spca_int p, const real *A, spca_int ld, spca_stop stop, void *ctx,
                           double *largest, double *asymmetry, double *excess)
{
    double most = 0, apart = 0, over = 0, bad = 0;
    for (spca_int i0 = 0; i0 < p; i0 += TILE_ROWS) {
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (spca_int j0 = 0; j0 <= i0; j0 += TILE_ROWS)
            for (spca_int i = i0; i < min_int(p, i0 + TILE_ROWS); i++) {
                double a_ii = (double)A[i * ld + i];
                for (spca_int j = j0; j < min_int(i + 1, j0 + TILE_ROWS); j++) {
                    double a = (double)A[i * ld + j], b = (double)A[j * ld + i];
                    double size = fmax(fabs(a), fabs(b)), a_jj = (double)A[j * ld + j];
                    bad += (a - a) + (b - b); /* NaN unless both are finite */
                    most = size > most ? size : most;
                    apart = fabs(a - b) > apart ? fabs(a - b) : apart;
                    size -= sqrt(fmax(a_ii, 0)) * sqrt(fmax(a_jj, 0));
                    over = size > over ? size : over;
                }
            }
    }
    *largest = bad == 0 ? most : (double)NAN;
    *asymmetry = apart;
    *excess = over;
    return SPCA_OK;
}
