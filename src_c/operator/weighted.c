/* weighted.c - mean, sum of squared deviations and range of each column, where each row counts by
 * its weight.
 *
 * In a tile of rows of total weight W, let x_0 be its first row whose weight is not 0.  Then
 *     m = x_0 + sum w (x - x_0)/W,   r = sum w (x - m),
 *     mean = m + r/W,   square = sum w (x - m)^2 - r^2/W,
 * so that neither a large mean nor a small weight of x_0 costs digits.  Tiles are merged as in
 * statistics.c.  An entry that is not finite makes the mean NaN, whatever its weight, since 0 times
 * it is NaN. */
#include "centring.h"
#include <string.h>

enum {
    TILE_ROWS = SPCA_LEAST(256),
    COLUMNS = 16,
    VECTORS = COLUMNS * sizeof(double) / sizeof(doubles_t)
};

/* sum_j = sum w (x - shift), and the range, of each column of a tile by rows. */
VECTORIZED(sums,
           (spca_int r, const double *restrict x, const double *w, const double *restrict shift,
            double *restrict sum, double *restrict low, double *restrict high),
           (r, x, w, shift, sum, low, high))
{
    for (spca_int i = 0; i < r; i++, x += COLUMNS) {
        for (int j = 0; j < COLUMNS; j++) sum[j] += w[i] * (x[j] - shift[j]);
        for (int j = 0; w[i] > 0 && j < COLUMNS; j++) {
            low[j] = x[j] < low[j] ? x[j] : low[j];
            high[j] = x[j] > high[j] ? x[j] : high[j];
        }
    }
}

/* rest_j = sum w (x - m) and square_j = sum w (x - m)^2. */
VECTORIZED(squares,
           (spca_int r, const double *restrict x, const double *w, const double *restrict m,
            double *restrict rest, double *restrict square),
           (r, x, w, m, rest, square))
{
    doubles_t first[VECTORS], second[VECTORS];
    memset(first, 0, sizeof first);
    memset(second, 0, sizeof second);
    for (spca_int i = 0; i < r; i++, x += COLUMNS)
        for (int v = 0; v < VECTORS; v++) {
            doubles_t d = ((const doubles_t *)x)[v] - ((const doubles_t *)m)[v];
            first[v] += w[i] * d;
            second[v] += w[i] * d * d;
        }
    memcpy(rest, first, sizeof first);
    memcpy(square, second, sizeof second);
}

/* Copies r rows of c columns to a tile; a whole tile has a constant number of columns, which
 * compilers vectorize. */
VECTORIZED(copy_rows, (spca_int r, spca_int c, const real *X, spca_int ld, double *restrict tile),
           (r, c, X, ld, tile))
{
    for (spca_int i = 0; i < r; i++, tile += COLUMNS)
        if (c == COLUMNS)
            for (int j = 0; j < COLUMNS; j++) tile[j] = (double)X[i * ld + j];
        else
            for (spca_int j = 0; j < c; j++) tile[j] = (double)X[i * ld + j];
}

/* Merges a tile of r rows and c columns, by rows (COLUMNS apart), with the rows of total weight
 * `done` before it. */
static void add_tile(spca_int r, spca_int c, const double *x, const double *w, double done,
                     double *mean, double *square, double *low, double *high)
{
    double total = 0, sum[COLUMNS] = {0}, rest[COLUMNS], square_b[COLUMNS];
    double shift[COLUMNS] = {0}, m[COLUMNS], least[COLUMNS], most[COLUMNS];
    spca_int first = r;
    for (spca_int i = r - 1; i >= 0; i--) {
        total += w[i];
        if (w[i] > 0) first = i;
    }
    for (int j = 0; j < COLUMNS; j++) {
        if (first < r) shift[j] = x[first * COLUMNS + j];
        least[j] = HUGE_VAL;
        most[j] = -HUGE_VAL;
    }
    sums(r, x, w, shift, sum, least, most);
    if (first == r) { /* no weight: sum is 0, or NaN */
        for (spca_int j = 0; j < c; j++) mean[j] += sum[j];
        return;
    }
    for (int j = 0; j < COLUMNS; j++) m[j] = shift[j] + sum[j] / total;
    squares(r, x, w, m, rest, square_b);
    for (spca_int j = 0; j < c; j++) {
        double mean_b = m[j] + rest[j] / total;
        double more = fmax(square_b[j] - rest[j] * rest[j] / total, 0);
        double d = mean_b - mean[j], n = done + total;
        mean[j] = done > 0 ? mean[j] + d * (total / n) : mean[j] + mean_b;
        square[j] = done > 0 ? square[j] + (more + d * d * (done * (total / n))) : more;
        if (done == 0 || least[j] < low[j]) low[j] = least[j];
        if (done == 0 || most[j] > high[j]) high[j] = most[j];
    }
}

spca_status SPCA(weighted_statistics)(spca_int n, spca_int p, const real *X, spca_int ld,
                                      int row_major, const double *weight, spca_stop stop,
                                      void *ctx, double *mean, double *square, double *low,
                                      double *high)
{
    /* beside the last columns of X it keeps what was there */
    double tile[TILE_ROWS * COLUMNS] = {0};
    double done = 0;
    for (spca_int j = 0; j < p; j++) mean[j] = square[j] = low[j] = high[j] = 0;
    for (spca_int i0 = 0; i0 < n; i0 += TILE_ROWS) { /* these rows stay in cache */
        spca_int r = min_int(TILE_ROWS, n - i0);
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (spca_int j0 = 0; j0 < p; j0 += COLUMNS) {
            spca_int c = min_int(COLUMNS, p - j0);
            if (row_major) copy_rows(r, c, X + i0 * ld + j0, ld, tile);
            for (spca_int i = 0; !row_major && i < r; i++)
                for (spca_int j = 0; j < c; j++)
                    tile[i * COLUMNS + j] = (double)X[i0 + i + (j0 + j) * ld];
            add_tile(r, c, tile, weight + i0, done, mean + j0, square + j0, low + j0, high + j0);
        }
        for (spca_int i = 0; i < r; i++) done += weight[i0 + i];
    }
    return SPCA_OK;
}

/* sum + rest <- sum + rest + x, in nearly twice the digits of a double (Neumaier 1974). */
static inline void add_to(double x, double *sum, double *rest)
{
    double before = *sum, after = before + x;
    *rest += fabs(before) >= fabs(x) ? before - after + x : x - after + before;
    *sum = after;
}

/* What is known of a column by its stored entries; `rest` and `square` are of a second pass. */
typedef struct {
    double mean, square, low, high, stored, less, present, rest;
} column_t;

/* Adds an entry of weight w. */
static inline void add_entry(int pass, double x, double w, column_t *c)
{
    double d = x - c->mean;
    if (pass) {
        c->rest += w * d;
        c->square += w * d * d;
        return;
    }
    add_to(w, &c->stored, &c->less);
    c->mean += w * x;
    if (!(w > 0)) return;
    c->present++;
    c->low = x < c->low ? x : c->low;
    c->high = x > c->high ? x : c->high;
}

spca_status SPCA(weighted_compressed)(spca_int n, spca_int p, const real *data, const void *indptr,
                                      const void *indices, int wide, int row_major,
                                      const double *weight, spca_stop stop, void *ctx, double *mean,
                                      double *square, double *low, double *high, double *work)
{
    column_t *columns = (column_t *)work;
    double total = 0, beyond = 0, counts = 0;
    spca_int lines = row_major ? n : p;
    for (spca_int i = 0; i < n; i++) {
        add_to(weight[i], &total, &beyond);
        counts += weight[i] > 0;
    }
    for (spca_int j = 0; j < p; j++) columns[j] = (column_t){.low = HUGE_VAL, .high = -HUGE_VAL};
    /* first the means of what is stored over the total weight, then the squares about them */
    for (int pass = 0; pass < 2; pass++) {
        for (spca_int l = 0; l < lines; l++) {
            spca_int end = at(indptr, wide, l + 1);
            column_t own = row_major ? columns[0] : columns[l]; /* in registers */
            if (l % TILE_ROWS == 0 && asked_to_stop(stop, ctx)) return SPCA_STOPPED;
            for (spca_int q = at(indptr, wide, l); q < end; q++) {
                spca_int other = at(indices, wide, q);
                if (row_major)
                    add_entry(pass, (double)data[q], weight[l], columns + other);
                else
                    add_entry(pass, (double)data[q], weight[other], &own);
            }
            if (!row_major) columns[l] = own;
        }
        for (spca_int j = 0; pass == 0 && j < p; j++) columns[j].mean /= total;
    }
    /* the entries that are not stored, 0 each, of weight `absent` together, which may be small */
    for (spca_int j = 0; j < p; j++) {
        column_t c = columns[j];
        int some = c.present < counts; /* whether a row of a weight has no entry stored */
        double absent = some ? fmax(total - c.stored + (beyond - c.less), 0) : 0;
        low[j] = some ? fmin(c.low, 0) : c.low;
        high[j] = some ? fmax(c.high, 0) : c.high;
        c.rest -= absent * c.mean;
        c.square += absent * c.mean * c.mean - c.rest * c.rest / total;
        square[j] = c.square < 0 ? 0 : c.square;
        mean[j] = low[j] == high[j] && isfinite(c.mean) ? low[j] : c.mean + c.rest / total;
    }
    return SPCA_OK;
}
