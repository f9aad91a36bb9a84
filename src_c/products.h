/* products.h - private: one tile of a matrix product. */
#ifndef SPCA_PRODUCTS_H
#define SPCA_PRODUCTS_H
#include "real.h"

enum { TOGETHER = 64 / sizeof(real) }; /* rows that become columns, by cache lines of memory */
enum { TILE = SPCA_LEAST(96) < TOGETHER ? TOGETHER : SPCA_LEAST(96) }; /* a multiple of it */

/* Of a matrix in a product: entry l of row i at [i ld + l], [i + l ld], or, by groups of TOGETHER
 * rows with zeros below the last, [i / TOGETHER * TOGETHER ld + l TOGETHER + i % TOGETHER]. */
enum { ALONG, ACROSS, IN_GROUPS };

static inline spca_int tiles_of(spca_int count)
{
    return (count + TILE - 1) / TILE;
}

/* The first place from x that begins a cache line, up to TOGETHER - 1 behind. */
static inline real *cache_line(real *x)
{
    return x + (64 - (uintptr_t)x % 64) % 64 / sizeof(real);
}

/* Rows of whole groups. */
static inline spca_int filled(spca_int rows)
{
    return (rows + TOGETHER - 1) / TOGETHER * TOGETHER;
}

/* The bytes of loops like those that do_parts knows which take as long as so many products. */
static inline double as_bytes(double products)
{
    return products * (double)sizeof(real) / 16;
}

/* C_ij (m x n, TILE at most) = sum_l a_il b_jl, added to C_ij to keep that, of either layout.  Of
 * half a tile, what is below the diagonal may be anything. */
void SPCA(add_tile)(int layout, int half, spca_int m, spca_int n, spca_int depth, const real *a,
                    spca_int lda, const real *b, spca_int ldb, int keep, real *C, spca_int ldc);
#endif
