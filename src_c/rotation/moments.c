/* moments.c - tiles of rows in the arithmetic of this compilation: they are rotated, and the sums
 * over rows are made that decide every planar rotation of their columns (rotate.c, ascent.c).
 *
 * A tile is SPCA_TILE rows by columns; rows missing at the end of a matrix are zeros.  Columns are
 * taken two by two, so that each loop keeps its eight sums in registers, and a column is read from
 * cache once for two others.  An odd last column is paired with zeros. */
#include "real.h"

#define ROWS SPCA_TILE

/* z0 += sum of c_l y_l and z1 += sum of d_l y_l over four columns y_l. */
VECTORIZED(turn_block,
           (const double *c, const double *d, const real *restrict y, real *restrict z0,
            real *restrict z1),
           (c, d, y, z0, z1))
{
    const real *y1 = y + ROWS, *y2 = y1 + ROWS, *y3 = y2 + ROWS;
    real c0 = (real)c[0], c1 = (real)c[1], c2 = (real)c[2], c3 = (real)c[3];
    real d0 = (real)d[0], d1 = (real)d[1], d2 = (real)d[2], d3 = (real)d[3];
    for (spca_int i = 0; i < ROWS; i++) {
        z0[i] += (c0 * y[i] + c1 * y1[i]) + (c2 * y2[i] + c3 * y3[i]);
        z1[i] += (d0 * y[i] + d1 * y1[i]) + (d2 * y2[i] + d3 * y3[i]);
    }
}

/* z0 += c y, z1 += d y. */
VECTORIZED(turn_rest,
           (double c, double d, const real *restrict y, real *restrict z0, real *restrict z1),
           (c, d, y, z0, z1))
{
    real c0 = (real)c, d0 = (real)d;
    for (spca_int i = 0; i < ROWS; i++) {
        z0[i] += c0 * y[i];
        z1[i] += d0 * y[i];
    }
}

void SPCA(tile_turn)(spca_int r, const double *R, const real *y, real *z)
{
    for (spca_int b = 0; b < r; b += 2) { /* for an odd r, the last column is made twice */
        const double *c = R + b * r, *d = R + min_int(b + 1, r - 1) * r;
        real *z0 = z + b * ROWS, *z1 = z0 + ROWS;
        spca_int a = 0;
        for (spca_int i = 0; i < 2 * ROWS; i++) z0[i] = 0;
        for (; a + 4 <= r; a += 4) turn_block(c + a, d + a, y + a * ROWS, z0, z1);
        for (; a < r; a++) turn_rest(c[a], d[a], y + a * ROWS, z0, z1);
    }
    if (r % 2)
        for (spca_int i = 0; i < ROWS; i++) z[r * ROWS + i] = 0;
}

/* For two columns x and two others y, X and Y their squares: the sums of x^2 y^2 and of (X - Y) x
 * y, each in the order 00, 01, 10, 11. */
VECTORIZED(block_sums,
           (const real *restrict x, const real *restrict X, const real *restrict y,
            const real *restrict Y, double *out),
           (x, X, y, Y, out))
{
    const real *x1 = x + ROWS, *X1 = X + ROWS, *y1 = y + ROWS, *Y1 = Y + ROWS;
    real s00 = 0, s01 = 0, s10 = 0, s11 = 0, u00 = 0, u01 = 0, u10 = 0, u11 = 0;
#pragma omp simd reduction(+ : s00, s01, s10, s11, u00, u01, u10, u11)
    for (spca_int i = 0; i < ROWS; i++) {
        real t00 = x[i] * y[i], t01 = x[i] * y1[i], t10 = x1[i] * y[i], t11 = x1[i] * y1[i];
        s00 += t00 * t00;
        s01 += t01 * t01;
        s10 += t10 * t10;
        s11 += t11 * t11;
        u00 += (X[i] - Y[i]) * t00;
        u01 += (X[i] - Y1[i]) * t01;
        u10 += (X1[i] - Y[i]) * t10;
        u11 += (X1[i] - Y1[i]) * t11;
    }
    out[0] = (double)s00;
    out[1] = (double)s01;
    out[2] = (double)s10;
    out[3] = (double)s11;
    out[4] = (double)u00;
    out[5] = (double)u01;
    out[6] = (double)u10;
    out[7] = (double)u11;
}

/* For a pair of neighbors x and x1: the sums of x^2 x1^2 and (X - X1) x x1, and of their fourth
 * powers. */
VECTORIZED(pair_sums, (const real *restrict x, const real *restrict X, double *out), (x, X, out))
{
    const real *x1 = x + ROWS, *X1 = X + ROWS;
    real s = 0, u = 0, f0 = 0, f1 = 0;
#pragma omp simd reduction(+ : s, u, f0, f1)
    for (spca_int i = 0; i < ROWS; i++) {
        real t = x[i] * x1[i];
        s += t * t;
        u += (X[i] - X1[i]) * t;
        f0 += X[i] * X[i];
        f1 += X1[i] * X1[i];
    }
    out[0] = (double)s;
    out[1] = (double)u;
    out[2] = (double)f0;
    out[3] = (double)f1;
}

/* Z_i = z_i^2. */
VECTORIZED(squares, (spca_int n, const real *restrict z, real *restrict Z), (n, z, Z))
{
    for (spca_int i = 0; i < n; i++) Z[i] = z[i] * z[i];
}

void SPCA(tile_moments)(spca_int r, const real *z, real *square, double *S, double *U)
{
    double sum[8];
    squares((r + r % 2) * ROWS, z, square);
    for (spca_int a = 0; a < r; a += 2) {
        const real *x = z + a * ROWS, *X = square + a * ROWS;
        pair_sums(x, X, sum);
        S[a * r + a] += sum[2];
        if (a + 1 == r) break;
        S[(a + 1) * r + a + 1] += sum[3];
        S[a * r + a + 1] += sum[0];
        U[a * r + a + 1] += sum[1];
        for (spca_int b = a + 2; b < r; b += 2) {
            block_sums(x, X, z + b * ROWS, square + b * ROWS, sum);
            for (spca_int i = 0; i < 4; i++) {
                spca_int place = (a + i / 2) * r + b + i % 2;
                if (b + i % 2 == r) continue;
                S[place] += sum[i];
                U[place] += sum[4 + i];
            }
        }
    }
}

/* The sums of x y for two columns x and two others y, in the order 00, 01, 10, 11. */
VECTORIZED(block_products, (const real *restrict x, const real *restrict y, double *out),
           (x, y, out))
{
    const real *x1 = x + ROWS, *y1 = y + ROWS;
    real g00 = 0, g01 = 0, g10 = 0, g11 = 0;
#pragma omp simd reduction(+ : g00, g01, g10, g11)
    for (spca_int i = 0; i < ROWS; i++) {
        g00 += x[i] * y[i];
        g01 += x[i] * y1[i];
        g10 += x1[i] * y[i];
        g11 += x1[i] * y1[i];
    }
    out[0] = (double)g00;
    out[1] = (double)g01;
    out[2] = (double)g10;
    out[3] = (double)g11;
}

/* norm_i += z_i^2; returns the sum of z_i^4. */
VECTORIZED_TO(double, add_squares, (const real *restrict z, real *restrict norm), (z, norm))
{
    real sum = 0;
#pragma omp simd reduction(+ : sum)
    for (spca_int i = 0; i < ROWS; i++) {
        real Z = z[i] * z[i];
        norm[i] += Z;
        sum += Z * Z;
    }
    return (double)sum;
}

void SPCA(tile_gram)(spca_int r, const real *z, double *G)
{
    double sum[4];
    for (spca_int a = 0; a < r; a += 2)
        for (spca_int b = a; b < r; b += 2) {
            block_products(z + a * ROWS, z + b * ROWS, sum);
            for (spca_int i = 0; i < 4; i++)
                if (a + i / 2 < r && b + i % 2 < r) G[(a + i / 2) * r + b + i % 2] += sum[i];
        }
}

double SPCA(tile_norms)(spca_int r, const real *z, real *norm)
{
    double fourth = 0;
    for (spca_int i = 0; i < ROWS; i++) norm[i] = 0;
    for (spca_int a = 0; a < r; a++) fourth += add_squares(z + a * ROWS, norm);
    return fourth;
}
