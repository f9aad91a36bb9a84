/* statistics.c - one read of the input: mean, sum of squared deviations and range of each column;
 * and how far a matrix is from symmetric positive semidefinite.
 *
 * A tile of at most TILE_ROWS rows is shifted by its own first row, d = x - x_0, so that
 * sum d^2 - (sum d)^2/r loses at most log2(TILE_ROWS) bits whatever the mean: x_0 being one of the
 * r entries, sum d^2 <= r M.  Tiles are merged by Chan, Golub & LeVeque (1983), M = M_a + M_b + d^2
 * n_a n_b/(n_a + n_b). */
#include "centring.h"

enum { TILE_ROWS = 256, TILE_COLUMNS = 1024 / sizeof(real), WAYS = 16, GROUP = 32 };
/* AHEAD: bytes that are fetched before their turn.  PANEL: bytes of a panel of columns.  LINE:
 * entries in a line of memory. */
enum { AHEAD = 4096, PANEL = 1 << 18, LINE = 64 / sizeof(real) };

/* What is found of each column. */
typedef struct {
    double *mean, *square, *low, *high;
} columns_t;

/* Merges n_b numbers of this mean and this sum of squared deviations with n_a others, in place. */
INLINE void merge(double n_a, double n_b, double mean_b, double square_b, double *mean,
                  double *square)
{
    double d = mean_b - *mean, n = n_a + n_b;
    *mean += d * (n_b / n);
    *square += n_a > 0 ? square_b + d * d * (n_a * (n_b / n)) : square_b;
}

/* Merges a tile's r entries of column j with the `done` ones before it; sum and square are of d = x
 * - shift.  It is inline, since a call from a clone would save and restore its registers for every
 * column. */
INLINE void add_tile(columns_t out, spca_int j, double done, spca_int r, double shift, double sum,
                     double square, double low, double high)
{
    double mean = sum / (double)r;
    merge(done, (double)r, shift + mean, square - mean * sum, out.mean + j, out.square + j);
    if (done == 0 || low < out.low[j]) out.low[j] = low;
    if (done == 0 || high > out.high[j]) out.high[j] = high;
}

/* Adds four rows of C order to the sums at once, so that sums are read and written less often. */
INLINE void four_rows(spca_int c, const real *x0, spca_int ld, const double *shift, double *sum,
                      double *square, real *low, real *high)
{
    const real *x1 = x0 + ld, *x2 = x1 + ld, *x3 = x2 + ld;
    for (spca_int j = 0; j < c; j++) {
        double s = shift[j], a = (double)x0[j] - s, b = (double)x1[j] - s;
        double d = (double)x2[j] - s, e = (double)x3[j] - s;
        real least = x0[j] < x1[j] ? x0[j] : x1[j], most = x0[j] > x1[j] ? x0[j] : x1[j];
        least = x2[j] < least ? x2[j] : least;
        most = x2[j] > most ? x2[j] : most;
        least = x3[j] < least ? x3[j] : least;
        most = x3[j] > most ? x3[j] : most;
        low[j] = least < low[j] ? least : low[j];
        high[j] = most > high[j] ? most : high[j];
        sum[j] += (a + b) + (d + e);
        square[j] += (a * a + b * b) + (d * d + e * e);
    }
}

/* A tile of r rows and c columns in C order, merged with the `done` rows before it; its first
 * column is j0. */
VECTORIZED_WIDE(tile,
                (spca_int r, spca_int c, const real *X, spca_int ld, double done, columns_t out,
                 spca_int j0),
                (r, c, X, ld, done, out, j0))
{
    double shift[TILE_COLUMNS], sum[TILE_COLUMNS], square[TILE_COLUMNS];
    real low[TILE_COLUMNS], high[TILE_COLUMNS];
    spca_int i = 1;
    for (spca_int j = 0; j < c; j++) {
        shift[j] = (double)X[j];
        low[j] = high[j] = X[j];
        sum[j] = square[j] = 0;
    }
    for (; i + 4 <= r; i += 4)
        for (spca_int j = 0; j < c; j += GROUP) {
            const real *x = X + i * ld + j;
            for (int l = 0; l < 4; l++)
                for (int b = 0; b < GROUP; b += LINE)
                    FETCH_CLOSE((uintptr_t)(x + l * ld + b) + (uintptr_t)(4 * ld) * sizeof(real));
            if (j + GROUP <= c)
                four_rows(GROUP, x, ld, shift + j, sum + j, square + j, low + j, high + j);
            else
                four_rows(c - j, x, ld, shift + j, sum + j, square + j, low + j, high + j);
        }
    for (; i < r; i++)
        for (spca_int j = 0; j < c; j++) {
            real x = X[i * ld + j];
            double d = (double)x - shift[j];
            sum[j] += d;
            square[j] += d * d;
            low[j] = x < low[j] ? x : low[j];
            high[j] = x > high[j] ? x : high[j];
        }
    for (spca_int j = 0; j < c; j++)
        add_tile(out, j0 + j, done, r, shift[j], sum[j], square[j], (double)low[j],
                 (double)high[j]);
}

/* r contiguous entries of column j, merged with the `done` ones before.  WAYS sums side by side, so
 * that none waits for another. */
VECTORIZED_WIDE(stretch, (spca_int r, const real *x, double done, columns_t out, spca_int j),
                (r, x, done, out, j))
{
    double shift = (double)x[0], sum[WAYS] = {0}, square[WAYS] = {0};
    real low[WAYS], high[WAYS];
    spca_int i = 0;
    for (int l = 0; l < WAYS; l++) low[l] = high[l] = x[0];
    for (; i + WAYS <= r; i += WAYS) {
        for (int l = 0; l < WAYS; l += LINE) FETCH((uintptr_t)(x + i + l) + AHEAD);
        for (int l = 0; l < WAYS; l++) {
            real a = x[i + l];
            double d = (double)a - shift;
            sum[l] += d;
            square[l] += d * d;
            low[l] = a < low[l] ? a : low[l];
            high[l] = a > high[l] ? a : high[l];
        }
    }
    for (; i < r; i++) {
        double d = (double)x[i] - shift;
        sum[0] += d;
        square[0] += d * d;
        low[0] = x[i] < low[0] ? x[i] : low[0];
        high[0] = x[i] > high[0] ? x[i] : high[0];
    }
    for (int half = WAYS / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) {
            sum[l] += sum[l + half];
            square[l] += square[l + half];
            low[l] = low[l + half] < low[l] ? low[l + half] : low[l];
            high[l] = high[l + half] > high[l] ? high[l + half] : high[l];
        }
    add_tile(out, j, done, r, shift, sum[0], square[0], (double)low[0], (double)high[0]);
}

spca_status SPCA(dense_statistics)(spca_int n, spca_int p, const real *X, spca_int ld,
                                   int row_major, int center, spca_int quantized_ld, spca_stop stop,
                                   void *ctx, double *mean, double *square, double *low,
                                   double *high, int8_t *quantized, double *step, double *error,
                                   float *size)
{
    /* panels of columns of about PANEL bytes, so that the quantized copy finds them in cache */
    spca_int width = PANEL / (n * (spca_int)sizeof(real)) / TILE_COLUMNS * TILE_COLUMNS, read = 0;
    columns_t out = {mean, square, low, high};
    width = width < TILE_COLUMNS        ? TILE_COLUMNS
            : width > 16 * TILE_COLUMNS ? 16 * TILE_COLUMNS
                                        : width;
    for (spca_int j = 0; j < p; j++) mean[j] = square[j] = 0;
    for (spca_int j0 = 0; j0 < p; j0 += width) {
        spca_int j1 = min_int(p, j0 + width);
        for (spca_int i = 0; row_major && i < n; i += TILE_ROWS)
            for (spca_int j = j0; j < j1; j += TILE_COLUMNS) {
                spca_int r = min_int(TILE_ROWS, n - i), c = min_int(TILE_COLUMNS, j1 - j);
                tile(r, c, X + i * ld + j, ld, (double)i, out, j);
                if ((read += r * c) > (1 << 22)) {
                    read = 0;
                    if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
                }
            }
        for (spca_int j = j0; j < j1; j++) {
            for (spca_int i = 0; !row_major && i < n; i += TILE_ROWS) {
                spca_int r = min_int(TILE_ROWS, n - i);
                stretch(r, X + j * ld + i, (double)i, out, j);
                if ((read += r) > (1 << 22)) {
                    read = 0;
                    if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
                }
            }
            if (quantized && !row_major)
                SPCA(quantize)(n, 1, X + j * ld, ld, 0, center ? mean + j : NULL, low + j, high + j,
                               quantized_ld, quantized + j * quantized_ld, step + j, error + j,
                               size + j);
        }
        if (quantized && row_major)
            SPCA(quantize)(n, j1 - j0, X + j0, ld, 1, center ? mean + j0 : NULL, low + j0,
                           high + j0, quantized_ld, quantized + j0 * quantized_ld, step + j0,
                           error + j0, size + j0);
    }
    return SPCA_OK;
}

/* Compressed data, cut into parts by columns; CSR is read by the rows l0 to l1 at a time. */
typedef struct {
    const real *data;
    const void *indptr, *indices;
    int wide;
    columns_t out; /* low: the first stored entry (CSC: the lowest); high: the spread */
    double *count;
    spca_int p, step, parts, l0, l1;
} stored_t;

/* The stored entries of a part's columns of CSC, which lie side by side. */
static void columns_part(void *context, spca_int part)
{
    const stored_t *s = context;
    columns_t out = s->out;
    for (spca_int j = part * s->step; j < min_int(s->p, (part + 1) * s->step); j++) {
        spca_int start = at(s->indptr, s->wide, j), end = at(s->indptr, s->wide, j + 1);
        for (spca_int q = start; q < end; q += TILE_ROWS)
            stretch(min_int(TILE_ROWS, end - q), s->data + q, (double)(q - start), out, j);
        s->count[j] = (double)(end - start);
        out.high[j] = out.low[j] == out.high[j] ? 0 : fmax(fabs(out.low[j]), fabs(out.high[j]));
    }
}

/* The stored entries of CSR rows l0 to l1 in a part's columns, by Welford's update. */
static void lines_part(void *context, spca_int part)
{
    const stored_t *s = context;
    double *mean = s->out.mean, *first = s->out.low, *spread = s->out.high, *count = s->count;
    spca_int last = part + 1 < s->parts ? (part + 1) * s->step : s->p;
    for (spca_int l = s->l0; l < s->l1; l++) {
        spca_int q = at(s->indptr, s->wide, l), end = at(s->indptr, s->wide, l + 1);
        if (part > 0) q = place_of(s->indices, s->wide, q, end, part * s->step);
        for (; q < end; q++) {
            spca_int j = at(s->indices, s->wide, q);
            double x = (double)s->data[q], d, apart;
            if (j >= last) break;
            d = x - mean[j];
            if (count[j] == 0) first[j] = x;
            apart = x != first[j] ? fabs(x) + fabs(first[j]) : 0; /* x may be a stored 0 */
            if (!(apart <= spread[j])) spread[j] = apart;
            count[j]++;
            mean[j] += d / count[j];
            s->out.square[j] += d * (x - mean[j]);
        }
    }
}

/* Stored entries come first; zeros that are not stored are merged at the end, as one more tile.
 * spread is at least the largest magnitude, but 0 where all entries are the same. */
spca_status SPCA(compressed_statistics)(spca_int n, spca_int p, const real *data,
                                        const void *indptr, const void *indices, int wide,
                                        int row_major, spca_run run, spca_stop stop, void *ctx,
                                        double *mean, double *square, double *spread, double *count,
                                        double *first)
{
    stored_t s = {data, indptr, indices, wide, {mean, square, first, spread}, count, .p = p};
    spca_int lines = row_major ? n : p, entries = at(indptr, wide, lines),
             threads = threads_of(run);
    spca_status status = SPCA_OK;
    for (spca_int j = 0; j < p; j++) mean[j] = square[j] = spread[j] = count[j] = first[j] = 0;
    s.parts = row_major ? min_int(threads > 1 ? 2 * threads : 1, entries / (SPCA_LEAST(16) * n) + 1)
                        : min_int(p, entries / (SPCA_PART / 8) + 1);
    s.step = (p + s.parts - 1) / s.parts;
    if (!row_major)
        status =
            do_parts(run, (double)entries * sizeof(real), columns_part, &s, s.parts, stop, ctx);
    for (; row_major && s.l0 < n && status >= 0; s.l0 = s.l1) {
        spca_int start = at(indptr, wide, s.l0), l = s.l0 + 1;
        while (l < n && at(indptr, wide, l) + 16 * (l - s.l0) < start + (1 << 22)) l++;
        s.l1 = l;
        status = do_parts(run, (double)(at(indptr, wide, l) - start) * 16, lines_part, &s, s.parts,
                          stop, ctx);
    }
    for (spca_int j = 0; j < p; j++) {
        double zeros = (double)n - count[j];
        if (zeros == 0) continue;
        if (first[j] != 0 && spread[j] == 0) spread[j] = fabs(first[j]);
        merge(count[j], zeros, 0, 0, mean + j, square + j);
    }
    return status;
}

/* By tiles, so that a_ij and a_ji are both in cache. */
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

/* Line j has been compared up to next[j]: an entry before that was compared with its opposite,
 * which stands in an earlier line or is missing there.  While line i is read, next[j] goes up to
 * column i, so that every entry is met twice and no search is made. */
spca_status SPCA(compressed_symmetry)(spca_int p, const real *data, const void *indptr,
                                      const void *indices, int wide, spca_stop stop, void *ctx,
                                      spca_int *next, double *root, double *largest,
                                      double *asymmetry, double *excess)
{
    double most = 0, apart = 0, over = 0, bad = 0;
    for (spca_int i = 0; i < p; i++) {
        spca_int q = at(indptr, wide, i), last = at(indptr, wide, i + 1), d;
        d = place_of(indices, wide, q, last, i);
        next[i] = q;
        root[i] = d < last && at(indices, wide, d) == i ? sqrt(fmax((double)data[d], 0)) : 0;
    }
    for (spca_int i = 0; i < p; i++) {
        if (i % TILE_ROWS == 0 && asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (spca_int q = at(indptr, wide, i), last = at(indptr, wide, i + 1); q < last; q++) {
            spca_int j = at(indices, wide, q), end = at(indptr, wide, j + 1);
            double a = (double)data[q], size = fabs(a), opposite = 0;
            bad += a - a; /* NaN unless it is finite */
            most = size > most ? size : most;
            over = size - root[i] * root[j] > over ? size - root[i] * root[j] : over;
            if (j == i || (j < i && q < next[i])) continue;
            for (; j > i && next[j] < end && at(indices, wide, next[j]) <= i; next[j]++) {
                double b = (double)data[next[j]];
                if (at(indices, wide, next[j]) == i)
                    opposite = b;
                else
                    apart = fabs(b) > apart ? fabs(b) : apart;
            }
            apart = fabs(a - opposite) > apart ? fabs(a - opposite) : apart;
        }
    }
    *largest = bad == 0 ? most : (double)NAN;
    *asymmetry = apart;
    *excess = over;
    return SPCA_OK;
}
