/* products.h - private: how matrix products are cut into tiles, and one tile. */
#ifndef SPCA_PRODUCTS_H
#define SPCA_PRODUCTS_H
#include "real.h"

/* numbers in a cache line: so many rows become columns together */
enum { TOGETHER = 64 / sizeof(real) };
/* rows and columns of a tile, a multiple of TOGETHER */
enum { TILE = SPCA_LEAST(96) < TOGETHER ? TOGETHER : SPCA_LEAST(96) };

/* The layout of a matrix in a product.  Entry l of row i stands at
 *     ALONG      [i ld + l],
 *     ACROSS     [i + l ld],
 *     IN_GROUPS  [i / TOGETHER * TOGETHER ld + l TOGETHER + i % TOGETHER]:
 *                groups of TOGETHER rows, with zeros below the last row. */
enum { ALONG, ACROSS, IN_GROUPS };

/* How many tiles so many rows have. */
static inline spca_int tiles_of(spca_int count)
{
    return (count + TILE - 1) / TILE;
}

/* The first place from x on that begins a cache line, at most TOGETHER - 1 numbers later. */
static inline real *cache_line(real *x)
{
    return x + (64 - (uintptr_t)x % 64) % 64 / sizeof(real);
}

/* `rows` rounded up to whole groups. */
static inline spca_int filled(spca_int rows)
{
    return (rows + TOGETHER - 1) / TOGETHER * TOGETHER;
}

/* What do_parts counts as the bytes of a loop that makes so many products. */
static inline double as_bytes(double products)
{
    return products * (double)sizeof(real) / 16;
}

/* C_ij = sum_l a_il b_jl (m, n <= TILE, depth sums), plus C_ij where `keep`; a and b have the same
 * layout.  Where `half`, what is below the diagonal may be anything. */
void SPCA(add_tile)(int layout, int half, spca_int m, spca_int n, spca_int depth, const real *a,
                    spca_int lda, const real *b, spca_int ldb, int keep, real *C, spca_int ldc);
#endif
