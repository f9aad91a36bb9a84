/* weighted.c - mean, sum of squared deviations and range of each column, rows counted by weights.
 *
 * Of a tile of rows of the total weight W, with x_0 its first row of a weight that is not 0:
 *     m = x_0 + sum w (x - x_0)/W,   r = sum w (x - m),
 *     mean = m + r/W,   square = sum w (x - m)^2 - r^2/W,
 * so that neither a large mean nor a small weight of x_0 costs digits.  Tiles are merged as in
 * statistics.c.  What is not finite makes a mean NaN whatever its weight, since 0 times it is. */
#include "centring.h"

enum { TILE_ROWS = 256, COLUMNS = 16 };

/* Tile of r rows and c columns, by rows (COLUMNS apart), into the sums so far, of weight `done`. */
static void add_tile(spca_int r, spca_int c, const double *x, const double *w, double done,
                     double *mean, double *square, double *low, double *high)
{
    double total = 0;
    spca_int first = r;
    for (spca_int i = r - 1; i >= 0; i--) {
        total += w[i];
        if (w[i] > 0) first = i;
    }
    for (spca_int j = 0; j < c; j++) {
        double sum = 0, m, rest = 0, squares = 0, least = HUGE_VAL, most = -HUGE_VAL, d, n;
        double shift = first < r ? x[first * COLUMNS + j] : 0;
        for (spca_int i = 0; i < r; i++) {
            double value = x[i * COLUMNS + j];
            sum += w[i] * (value - shift);
            if (w[i] > 0) {
                least = value < least ? value : least;
                most = value > most ? value : most;
            }
        }
        if (first == r) { /* which adds nothing but NaN */
            mean[j] += sum;
            continue;
        }
        m = shift + sum / total;
        for (spca_int i = 0; i < r; i++) {
            d = x[i * COLUMNS + j] - m;
            rest += w[i] * d;
            squares += w[i] * d * d;
        }
        m = least == most ? shift : m + rest / total;
        squares = fmax(squares - rest * rest / total, 0);
        d = m - mean[j];
        n = done + total;
        mean[j] = done > 0 ? mean[j] + d * (total / n) : mean[j] + m;
        square[j] = done > 0 ? square[j] + (squares + d * d * (done * (total / n))) : squares;
        if (done == 0 || least < low[j]) low[j] = least;
        if (done == 0 || most > high[j]) high[j] = most;
    }
}

spca_status SPCA(weighted_statistics)(spca_int n, spca_int p, const real *X, spca_int ld,
                                      int row_major, const double *weight, spca_stop stop,
                                      void *ctx, double *mean, double *square, double *low,
                                      double *high)
{
    double tile[TILE_ROWS * COLUMNS];
    spca_int by_row = row_major ? ld : 1, by_column = row_major ? 1 : ld;
    double done = 0;
    for (spca_int j = 0; j < p; j++) mean[j] = square[j] = low[j] = high[j] = 0;
    for (spca_int i0 = 0; i0 < n; i0 += TILE_ROWS) { /* which stay in cache */
        spca_int r = min_int(TILE_ROWS, n - i0);
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (spca_int j0 = 0; j0 < p; j0 += COLUMNS) {
            spca_int c = min_int(COLUMNS, p - j0);
            for (spca_int i = 0; row_major && i < r; i++)
                for (spca_int j = 0; j < c; j++)
                    tile[i * COLUMNS + j] = (double)X[(i0 + i) * by_row + j0 + j];
            for (spca_int j = 0; !row_major && j < c; j++)
                for (spca_int i = 0; i < r; i++)
                    tile[i * COLUMNS + j] = (double)X[i0 + i + (j0 + j) * by_column];
            add_tile(r, c, tile, weight + i0, done, mean + j0, square + j0, low + j0, high + j0);
        }
        for (spca_int i = 0; i < r; i++) done += weight[i0 + i];
    }
    return SPCA_OK;
}

spca_status SPCA(weighted_compressed)(spca_int n, spca_int p, const real *data, const void *indptr,
                                      const void *indices, int wide, int row_major,
                                      const double *weight, spca_stop stop, void *ctx, double *mean,
                                      double *square, double *low, double *high, double *work)
{
    double *stored = work, *present = stored + p, *rest = present + p, total = 0, counts = 0;
    spca_int lines = row_major ? n : p;
    for (spca_int i = 0; i < n; i++) {
        total += weight[i];
        counts += weight[i] > 0;
    }
    for (spca_int j = 0; j < p; j++) {
        mean[j] = square[j] = stored[j] = present[j] = rest[j] = 0;
        low[j] = HUGE_VAL;
        high[j] = -HUGE_VAL;
    }
    for (int pass = 0; pass < 2; pass++) {
        for (spca_int l = 0; l < lines; l++) {
            spca_int end = at(indptr, wide, l + 1);
            if (l % TILE_ROWS == 0 && asked_to_stop(stop, ctx)) return SPCA_STOPPED;
            for (spca_int q = at(indptr, wide, l); q < end; q++) {
                spca_int other = at(indices, wide, q), j = row_major ? other : l;
                double x = (double)data[q], w = weight[row_major ? l : other], d = x - mean[j];
                if (pass) {
                    rest[j] += w * d;
                    square[j] += w * d * d;
                    continue;
                }
                stored[j] += w;
                mean[j] += w * x;
                if (!(w > 0)) continue;
                present[j]++;
                low[j] = x < low[j] ? x : low[j];
                high[j] = x > high[j] ? x : high[j];
            }
        }
        for (spca_int j = 0; pass == 0 && j < p; j++) mean[j] /= total;
    }
    for (spca_int j = 0; j < p; j++) {
        int some = present[j] < counts; /* not every entry is stored */
        double absent = some ? fmax(total - stored[j], 0) : 0;
        if (some) {
            low[j] = fmin(low[j], 0);
            high[j] = fmax(high[j], 0);
        }
        rest[j] -= absent * mean[j];
        square[j] += absent * mean[j] * mean[j] - rest[j] * rest[j] / total;
        square[j] = square[j] < 0 ? 0 : square[j];
        mean[j] = low[j] == high[j] ? low[j] : mean[j] + rest[j] / total;
    }
    return SPCA_OK;
}
