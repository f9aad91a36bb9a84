/* quantize.c - an int8 copy of the columns, from which products are estimated at an eighth (double)
 * or a quarter (float) of the bytes.
 *
 * x_j - mean_j = step_j (q_j + r_j), step_j = max |x_ij - mean_j|/127, q_j the nearest integers,
 * and error_j >= step_j ||r_j|| is measured, not estimated: whatever rounding there is in q_j is in
 * r_j. The quotient v = q + r is taken in double and kept in float, which moves an entry by at most
 * 127 2^-24 < 2^-17; the difference v - q is exact. */
#include "real.h"
#include <string.h>

enum { LANES = 32, SIDE = SPCA_QUANTIZED_BLOCK, WIDTH = 1024, STRIP = 512 };
#define NEAREST 12582912.0f /* 1.5 2^23: adding and subtracting it rounds a float to an integer */

static inline double largest_of(double mean, double low, double high)
{
    return fmax(high - mean, mean - low);
}

/* What a column is divided by; 0 where it is constant or the quotient would overflow. */
static inline double inverse_of(double largest)
{
    double inverse = largest > 0 ? 127 / largest : 0;
    return inverse <= DBL_MAX ? inverse : 0;
}

/* From the sums of q^2 in step and of r^2 in error. */
static void finish(spca_int n, double largest, double *step, double *error, float *size)
{
    double rows = sqrt((double)n);
    *size = (float)(sqrt(*step) * (1 + 0x1p-20));
    if (inverse_of(largest) > 0) {
        *step = largest / 127;
        *error = *step * (sqrt(*error) * (1 + 1e-4) + rows * 0x1p-17);
    } else {
        *step = 0;
        *error = rows * largest;
    }
}

/* A column of Fortran order, zero beyond its n entries.  Sums of STRIP squares of integers are
 * exact in float. */
VECTORIZED static void column(spca_int n, const real *x, double mean, double inverse,
                              spca_int quantized_ld, int8_t *q, double *miss, double *square)
{
    for (spca_int i0 = 0; i0 < n; i0 += STRIP) {
        spca_int end = min_int(n, i0 + STRIP), i = i0;
        float r2[LANES] = {0}, q2[LANES] = {0};
        for (; i + LANES <= end; i += LANES)
            for (int l = 0; l < LANES; l++) {
                float v = (float)(((double)x[i + l] - mean) * inverse);
                float nearest = (v + NEAREST) - NEAREST, rest = v - nearest;
                q[i + l] = (int8_t)(int32_t)nearest;
                r2[l] += rest * rest;
                q2[l] += nearest * nearest;
            }
        for (int l = 0; i < end; i++, l++) {
            float v = (float)(((double)x[i] - mean) * inverse);
            float nearest = (v + NEAREST) - NEAREST, rest = v - nearest;
            q[i] = (int8_t)(int32_t)nearest;
            r2[l] += rest * rest;
            q2[l] += nearest * nearest;
        }
        for (int half = LANES / 2; half > 0; half /= 2)
            for (int l = 0; l < half; l++) {
                r2[l] += r2[l + half];
                q2[l] += q2[l + half];
            }
        *miss += (double)r2[0];
        *square += (double)q2[0];
    }
    for (spca_int i = n; i < quantized_ld; i++) q[i] = 0;
}

/* The perfect shuffle rotates the bits of an index by one; log2(SIDE) of them transpose SIDE x SIDE
 * bytes.  The result is in columns; rows are overwritten. */
static inline void shuffle(const int8_t *restrict from, int8_t *restrict to)
{
    enum { HALF = SIDE * SIDE / 2 };
    for (int i = 0; i < HALF; i++) {
        to[2 * i] = from[i];
        to[2 * i + 1] = from[i + HALF];
    }
}

static inline void transpose_bytes(int8_t *rows, int8_t *columns)
{
    shuffle(rows, columns); /* five: SIDE = 32 */
    shuffle(columns, rows);
    shuffle(rows, columns);
    shuffle(columns, rows);
    shuffle(rows, columns);
}

/* r <= SIDE rows and c <= WIDTH columns of C order are rounded row by row, then turned. */
VECTORIZED static void block(spca_int r, spca_int c, const real *X, spca_int ld, const double *mean,
                             const double *inverse, spca_int quantized_ld, int8_t *q, double *miss,
                             double *square)
{
    int8_t rounded[SIDE][WIDTH], rows[SIDE][SIDE], columns[SIDE][SIDE];
    float v[WIDTH], r2[WIDTH] = {0}, q2[WIDTH] = {0};
    for (spca_int l = 0; l < r; l++) {
        const real *x = X + l * ld;
        for (spca_int j = 0; j < c; j++) v[j] = (float)(((double)x[j] - mean[j]) * inverse[j]);
        for (spca_int j = 0; j < c; j++) {
            float nearest = (v[j] + NEAREST) - NEAREST, rest = v[j] - nearest;
            r2[j] += rest * rest;
            q2[j] += nearest * nearest;
            v[j] = nearest;
        }
        for (spca_int j = 0; j < c; j++) rounded[l][j] = (int8_t)(int32_t)v[j];
    }
    for (spca_int l = r; l < SIDE; l++) memset(rounded[l], 0, WIDTH);
    for (spca_int j0 = 0; j0 < c; j0 += SIDE) {
        spca_int w = min_int(SIDE, c - j0);
        for (int l = 0; l < SIDE; l++)
            memcpy(rows[l], rounded[l] + j0, SIDE); /* in full, for speed */
        transpose_bytes(rows[0], columns[0]);
        for (spca_int j = 0; j < w; j++) memcpy(q + (j0 + j) * quantized_ld, columns[j], SIDE);
    }
    for (spca_int j = 0; j < c; j++) {
        miss[j] += (double)r2[j];
        square[j] += (double)q2[j];
    }
}

void SPCA(quantize)(spca_int n, spca_int c, const real *X, spca_int ld, int row_major,
                    const double *mean, const double *low, const double *high,
                    spca_int quantized_ld, int8_t *quantized, double *step, double *error,
                    float *size)
{
    double *miss = error, *square = step; /* until the end */
    for (spca_int j = 0; j < c; j++) miss[j] = square[j] = 0;
    for (spca_int i = 0; i < n; i += row_major ? SIDE : n)
        for (spca_int j0 = 0; j0 < c; j0 += WIDTH) {
            spca_int w = min_int(WIDTH, c - j0);
            double center[WIDTH], inverse[WIDTH];
            for (spca_int j = 0; j < w; j++) {
                center[j] = mean ? mean[j0 + j] : 0;
                inverse[j] = inverse_of(largest_of(center[j], low[j0 + j], high[j0 + j]));
                if (!(inverse[j] > 0)) center[j] = 0; /* q_j = 0, though the mean left the range */
            }
            if (row_major)
                block(min_int(SIDE, n - i), w, X + i * ld + j0, ld, center, inverse, quantized_ld,
                      quantized + j0 * quantized_ld + i, miss + j0, square + j0);
            for (spca_int j = j0; !row_major && j < j0 + w; j++)
                column(n, X + j * ld, center[j - j0], inverse[j - j0], quantized_ld,
                       quantized + j * quantized_ld, miss + j, square + j);
        }
    for (spca_int j = 0; j < c; j++)
        finish(n, largest_of(mean ? mean[j] : 0, low[j], high[j]), step + j, error + j, size + j);
}
