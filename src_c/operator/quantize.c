/* quantize.c - an int8 copy of the columns, from which products are estimated at an eighth (double)
 * or a quarter (float) of the bytes.
 *
 * x_j - mean_j = step_j (q_j + r_j), step_j = max |x_ij - mean_j|/127, q_j the nearest integers,
 * and error_j >= step_j ||r_j|| is measured, not estimated: whatever rounding there is in q_j is in
 * r_j. The quotient v = q + r is kept in float; the difference v - q is exact.  For double data it
 * is taken in double, which leaves the rounding to float, 127 2^-24 < 2^-17.  For float data it is
 * ((x - m) - rest) inverse in float, with u = 2^-24, m = mean rounded, rest = mean - m rounded.
 * With L = max |x_ij - mean_j|, |mean - m| <= 2L, since between two floats that differ lies half of
 * a gap; so the first difference is off by 3uL, the second by 3uL more, rest by 2uL, inverse and
 * the product by 2u of it: 127 11u < 2^-13. */
#include "real.h"
#include <string.h>

enum { SIDE = SPCA_QUANTIZED_BLOCK, STRIP = 512, LINE = 64 / sizeof(real) };
enum { TOGETHER = 4 /* rows whose bytes make a word */, WORDS = SIDE / TOGETHER };
enum { BLOCKS = 4 /* blocks of columns side by side */ };
#define NEAREST 12582912.0f /* 1.5 2^23: adding and subtracting it rounds a float to an integer */
#ifdef SPCA_SINGLE
#define ROUNDED 0x1p-13
#else
#define ROUNDED 0x1p-17
#endif

/* How SIDE columns are scaled: v = ((x - mean) - rest) inverse. */
typedef struct {
    real mean[SIDE], rest[SIDE], inverse[SIDE];
} scaling_t;

/* 127/largest, by which a column is multiplied; 0 where the column is constant or something would
 * overflow. */
static inline double inverse_of(double largest)
{
    const double most = (double)REAL_MAX / 8;
    double inverse = largest > 0 && largest <= most ? 127 / largest : 0;
    return inverse <= most ? inverse : 0;
}

/* step_j, error_j and size_j of a column, given the sums of q^2 in *step and of r^2 in *error. */
static void finish(spca_int n, double largest, double *step, double *error, float *size)
{
    double rows = sqrt((double)n);
    *size = (float)(sqrt(*step) * (1 + 0x1p-20));
    if (inverse_of(largest) > 0) {
        *step = largest / 127;
        *error = *step * (sqrt(*error) * (1 + 1e-4) + rows * ROUNDED);
    } else {
        *step = 0;
        *error = rows * largest;
    }
}

/* v = q + r of an entry. */
INLINE float scaled(real x, real mean, real rest, real inverse)
{
    real d = x - mean;
    return (float)((sizeof(real) > 4 ? d : d - rest) * inverse);
}

/* Rounds SIDE entries of a column or fewer; adds the squares of r and of q, each lane to a sum of
 * its own. */
INLINE void round_some(spca_int count, const real *x, const scaling_t *s, int8_t *q, float *r2,
                       float *q2)
{
    for (spca_int l = 0; l < count; l++) {
        float v = scaled(x[l], s->mean[l], s->rest[l], s->inverse[l]);
        float nearest = (v + NEAREST) - NEAREST, rest = v - nearest;
        q[l] = (int8_t)(int32_t)nearest;
        r2[l] += rest * rest;
        q2[l] += nearest * nearest;
    }
}

/* Quantizes column j (of its block) in Fortran order; q is 0 beyond its n entries.  STRIP entries
 * at a time, because their sums of squares of integers are exact in float. */
VECTORIZED_WIDE(column,
                (spca_int n, const real *x, const scaling_t *all, spca_int j, spca_int quantized_ld,
                 int8_t *q, double *miss, double *square),
                (n, x, all, j, quantized_ld, q, miss, square))
{
    scaling_t s;
    for (int l = 0; l < SIDE; l++) {
        s.mean[l] = all->mean[j];
        s.rest[l] = all->rest[j];
        s.inverse[l] = all->inverse[j];
    }
    for (spca_int i0 = 0; i0 < n; i0 += STRIP) {
        spca_int end = min_int(n, i0 + STRIP), i = i0;
        float r2[SIDE] = {0}, q2[SIDE] = {0};
        for (; i + SIDE <= end; i += SIDE) round_some(SIDE, x + i, &s, q + i, r2, q2);
        round_some(end - i, x + i, &s, q + i, r2, q2);
        for (int half = SIDE / 2; half > 0; half /= 2)
            for (int l = 0; l < half; l++) {
                r2[l] += r2[l + half];
                q2[l] += q2[l + half];
            }
        *miss += (double)r2[0];
        *square += (double)q2[0];
    }
    for (spca_int i = n; i < quantized_ld; i++) q[i] = 0;
}

/* How far to shift the byte that is b-th in memory within a word; it depends on the order of bytes.
 */
INLINE int shift_of(int b)
{
    const uint32_t one = 1;
    unsigned char first;
    memcpy(&first, &one, 1);
    return 8 * (first ? b : TOGETHER - 1 - b);
}

/* Rounds at most TOGETHER rows of SIDE columns or fewer: the word of a column has one byte for each
 * row.  Adds the squares as round_some does. */
INLINE void round_rows(int rows, spca_int count, const real *x, spca_int ld, const scaling_t *s,
                       uint32_t *word, float *r2, float *q2)
{
    for (spca_int l = 0; l < count; l++) {
        float miss = 0, square = 0;
        uint32_t bytes = 0;
        for (int b = 0; b < rows; b++) {
            float v = scaled(x[b * ld + l], s->mean[l], s->rest[l], s->inverse[l]);
            float shifted = v + NEAREST, nearest = shifted - NEAREST, rest = v - nearest;
            uint32_t bits; /* their last byte is q */
            memcpy(&bits, &shifted, sizeof bits);
            bytes |= (bits & 255) << shift_of(b);
            miss += rest * rest;
            square += nearest * nearest;
        }
        word[l] = bytes;
        r2[l] += miss;
        q2[l] += square;
    }
}

/* to = the perfect shuffle of `from`.  It rotates the bits of an index by one, so that log2(WORDS)
 * of them transpose WORDS x SIDE words. */
static inline void shuffle(const uint32_t *restrict from, uint32_t *restrict to)
{
    enum { HALF = WORDS * SIDE / 2 };
    for (int i = 0; i < HALF; i++) {
        to[2 * i] = from[i];
        to[2 * i + 1] = from[i + HALF];
    }
}

/* columns = rows transposed; rows are overwritten. */
static inline void transpose_words(uint32_t *rows, uint32_t *columns)
{
    shuffle(rows, columns); /* three: WORDS = 8 */
    shuffle(columns, rows);
    shuffle(rows, columns);
}

/* Quantizes r <= SIDE rows and c <= SIDE columns of C order: rounds TOGETHER rows at a time, then
 * transposes, so that q is by columns. */
VECTORIZED_WIDE(block,
                (spca_int r, spca_int c, const real *X, spca_int ld, const scaling_t *s,
                 spca_int quantized_ld, int8_t *q, double *miss, double *square),
                (r, c, X, ld, s, quantized_ld, q, miss, square))
{
    uint32_t rows[WORDS][SIDE], columns[SIDE][WORDS];
    float r2[SIDE] = {0}, q2[SIDE] = {0};
    spca_int l = 0;
    if (r < SIDE || c < SIDE) memset(rows, 0, sizeof rows);
    for (; l + TOGETHER <= r; l += TOGETHER) {
        const real *x = X + l * ld;
        for (int t = 0; t < TOGETHER; t++)
            for (int b = 0; b < SIDE; b += LINE) /* of the next block */
                FETCH_CLOSE((uintptr_t)(x + t * ld + b) + (uintptr_t)(SIDE * ld) * sizeof(real));
        if (c == SIDE)
            round_rows(TOGETHER, SIDE, x, ld, s, rows[l / TOGETHER], r2, q2);
        else
            round_rows(TOGETHER, c, x, ld, s, rows[l / TOGETHER], r2, q2);
    }
    if (l < r) round_rows((int)(r - l), c, X + l * ld, ld, s, rows[l / TOGETHER], r2, q2);
    transpose_words(rows[0], columns[0]);
    for (spca_int j = 0; j < c; j++) {
        memcpy(q + j * quantized_ld, columns[j], SIDE);
        FETCH_TO_WRITE((uintptr_t)(q + j * quantized_ld) + SIDE);
        miss[j] += (double)r2[j];
        square[j] += (double)q2[j];
    }
}

/* Sets how w <= SIDE columns are scaled, and the largest magnitude in each after centering. */
static void scale(spca_int w, const double *mean, const double *low, const double *high,
                  scaling_t *s, double *largest)
{
    for (spca_int l = 0; l < w; l++) {
        double center = mean ? mean[l] : 0, inverse;
        largest[l] = fmax(high[l] - center, center - low[l]);
        inverse = inverse_of(largest[l]);
        if (!(inverse > 0)) center = 0; /* q_j = 0, though the mean left the range */
        s->mean[l] = (real)center;
        s->rest[l] = (real)(center - (double)s->mean[l]);
        s->inverse[l] = (real)inverse;
    }
}

void SPCA(quantize)(spca_int n, spca_int c, const real *X, spca_int ld, int row_major,
                    const double *mean, const double *low, const double *high,
                    spca_int quantized_ld, int8_t *quantized, double *step, double *error,
                    float *size)
{
    double *miss = error, *square = step; /* step and error hold sums until the end */
    for (spca_int j = 0; j < c; j++) miss[j] = square[j] = 0;
    for (spca_int j0 = 0; j0 < c; j0 += BLOCKS * SIDE) {
        spca_int end = min_int(c, j0 + BLOCKS * SIDE);
        double largest[BLOCKS * SIDE];
        scaling_t s[BLOCKS];
        for (spca_int j = j0, b = 0; j < end; j += SIDE, b++)
            scale(min_int(SIDE, end - j), mean ? mean + j : NULL, low + j, high + j, s + b,
                  largest + b * SIDE);
        /* row by row of blocks, so that few pages are in use at a time */
        for (spca_int i = 0; row_major && i < n; i += SIDE)
            for (spca_int j = j0, b = 0; j < end; j += SIDE, b++)
                block(min_int(SIDE, n - i), min_int(SIDE, end - j), X + i * ld + j, ld, s + b,
                      quantized_ld, quantized + j * quantized_ld + i, miss + j, square + j);
        for (spca_int j = j0; !row_major && j < end; j++)
            column(n, X + j * ld, s + (j - j0) / SIDE, (j - j0) % SIDE, quantized_ld,
                   quantized + j * quantized_ld, miss + j, square + j);
        for (spca_int j = j0; j < end; j++)
            finish(n, largest[j - j0], step + j, error + j, size + j);
    }
}
