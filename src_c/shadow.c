/* shadow.c - an int8 copy of the columns, from which products are estimated at an eighth (double)
 * or a quarter (float) of the bytes.
 *
 * x_j - mean_j = step_j (q_j + r_j), step_j = max |x_ij - mean_j|/127, q_j the nearest integers,
 * and error_j >= step_j ||r_j|| is measured, not estimated: whatever rounding there is in q_j is in
 * r_j. The quotient v = q + r is taken in double and kept in float, which moves an entry by at most
 * 127 2^-24 < 2^-17; the difference v - q is exact. */
#include "real.h"
#include <string.h>

enum { ROWS = SPCA_SHADOW_BLOCK, COLUMNS = 64 };
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

/* One block of a column, zero beyond its n entries; adds to the sums of r^2 and q^2. */
static inline void round_block(spca_int n, const float *v, int8_t *q, double *miss, double *square)
{
    float r2[ROWS] = {0}, q2[ROWS] = {0};
    for (spca_int i = 0; i < n; i++) {
        float nearest = (v[i] + NEAREST) - NEAREST, r = v[i] - nearest;
        q[i] = (int8_t)(int32_t)nearest;
        r2[i] = r * r;
        q2[i] = nearest * nearest;
    }
    for (int half = ROWS / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) {
            r2[l] += r2[l + half];
            q2[l] += q2[l + half];
        }
    for (spca_int i = n; i < ROWS; i++) q[i] = 0;
    *miss += (double)r2[0];
    *square += (double)q2[0];
}

VECTORIZED static void column(spca_int n, const real *x, double mean, double inverse, int8_t *q,
                              double *miss, double *square)
{
    for (spca_int i = 0; i < n; i += ROWS) {
        spca_int r = min_int(ROWS, n - i);
        float v[ROWS];
        if (r == ROWS) {
            for (int l = 0; l < ROWS; l++) v[l] = (float)(((double)x[i + l] - mean) * inverse);
            round_block(ROWS, v, q + i, miss, square);
        } else {
            for (int l = 0; l < r; l++) v[l] = (float)(((double)x[i + l] - mean) * inverse);
            round_block(r, v, q + i, miss, square);
        }
    }
}

/* Transposes ROWS x COLUMNS bytes: with both a power of two, that rotates the bits of an index, and
 * each round rotates them by one. */
static inline void transpose_bytes(const int8_t *from, int8_t *to)
{
    enum { HALF = ROWS * COLUMNS / 2 };
    int8_t other[2 * HALF];
    memcpy(other, from, sizeof other);
    for (int round = 1; round < ROWS; round *= 2) {
        for (int i = 0; i < HALF; i++) {
            to[2 * i] = other[i];
            to[2 * i + 1] = other[i + HALF];
        }
        memcpy(other, to, sizeof other);
    }
}

/* c <= COLUMNS columns and r <= ROWS rows of C order are rounded, then turned into columns. */
VECTORIZED static void block(spca_int r, spca_int c, const real *X, spca_int ld, const double *mean,
                             const double *inverse, spca_int shadow_ld, int8_t *q, double *miss,
                             double *square)
{
    int8_t rounded[ROWS * COLUMNS] = {0}, columns[ROWS * COLUMNS];
    float r2[COLUMNS] = {0}, q2[COLUMNS] = {0};
    for (spca_int l = 0; l < r; l++) {
        const real *x = X + l * ld;
        for (spca_int j = 0; j < c; j++) {
            float v = (float)(((double)x[j] - mean[j]) * inverse[j]);
            float nearest = (v + NEAREST) - NEAREST, rest = v - nearest;
            rounded[l * COLUMNS + j] = (int8_t)(int32_t)nearest;
            r2[j] += rest * rest;
            q2[j] += nearest * nearest;
        }
    }
    transpose_bytes(rounded, columns);
    for (spca_int j = 0; j < c; j++) {
        memcpy(q + j * shadow_ld, columns + j * ROWS, ROWS);
        miss[j] += (double)r2[j];
        square[j] += (double)q2[j];
    }
}

void SPCA(shadow)(spca_int n, spca_int c, const real *X, spca_int ld, int row_major,
                  const double *mean, const double *low, const double *high, spca_int shadow_ld,
                  int8_t *shadow, double *step, double *error, float *size)
{
    double *miss = error, *square = step; /* until the end */
    for (spca_int j = 0; j < c; j++) miss[j] = square[j] = 0;
    for (spca_int i = 0; i < n; i += row_major ? ROWS : n)
        for (spca_int j0 = 0; j0 < c; j0 += COLUMNS) {
            spca_int w = min_int(COLUMNS, c - j0);
            double center[COLUMNS], inverse[COLUMNS];
            for (spca_int j = 0; j < w; j++) {
                center[j] = mean ? mean[j0 + j] : 0;
                inverse[j] = inverse_of(largest_of(center[j], low[j0 + j], high[j0 + j]));
            }
            if (row_major)
                block(min_int(ROWS, n - i), w, X + i * ld + j0, ld, center, inverse, shadow_ld,
                      shadow + j0 * shadow_ld + i, miss + j0, square + j0);
            for (spca_int j = j0; !row_major && j < j0 + w; j++)
                column(n, X + j * ld, center[j - j0], inverse[j - j0], shadow + j * shadow_ld,
                       miss + j, square + j);
        }
    for (spca_int j = 0; j < c; j++)
        finish(n, largest_of(mean ? mean[j] : 0, low[j], high[j]), step + j, error + j, size + j);
}
