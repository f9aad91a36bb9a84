/* products.h - private: one tile of a matrix product by BLAS, in pieces that are too small for its
 * own threads: then its bits do not depend on their number, and threads of a loop may each have a
 * tile.
 *
 * OpenBLAS shares a product of m x n x l from 2^18 multiplications on, and one that it makes by
 * gemv from 9216 entries on. */
#ifndef SPCA_PRODUCTS_H
#define SPCA_PRODUCTS_H
#include "real.h"

enum { TILE = SPCA_LEAST(80), TILE_WORK = 256000, TILE_ENTRIES = 9000 };
enum { TOGETHER = 64 / sizeof(real) }; /* rows that become columns, by cache lines of memory */

static inline spca_int tiles_of(spca_int count)
{
    return (count + TILE - 1) / TILE;
}

/* The bytes of loops like those that do_parts knows which take as long as so many products. */
static inline double as_bytes(double products)
{
    return products * (double)sizeof(real) / 16;
}

/* C_ij (m x n) = factor sum_l a_il b_jl + keep C_ij, with a_il at a[i lda + l], or across at
 * a[i + l lda]. */
static inline void add_tile(int across, spca_int m, spca_int n, spca_int depth, real factor,
                            const real *a, spca_int lda, const real *b, spca_int ldb, real keep,
                            real *C, spca_int ldc)
{
    spca_int piece = min_int(TILE_WORK / (m * n), TILE_ENTRIES / (m > n ? m : n)), l = 0;
    blas_int rows = (blas_int)n, columns = (blas_int)m; /* of BLAS, to which C is C' */
    blas_int ldx = (blas_int)ldb, ldy = (blas_int)lda, ldz = (blas_int)ldc;
    do {
        blas_int count = (blas_int)min_int(piece, depth - l);
        SPCA(blas).gemm(across ? "N" : "T", across ? "T" : "N", &rows, &columns, &count, &factor,
                        (real *)b + l * (across ? ldb : 1), &ldx,
                        (real *)a + l * (across ? lda : 1), &ldy, &keep, C, &ldz);
        keep = 1;
        l += piece;
    } while (l < depth);
}
#endif
