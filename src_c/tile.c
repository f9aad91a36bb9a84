/* tile.c - one tile of a matrix product, by one thread.
 *
 * Sums are made in order of depth or, along rows, as the partial sums of 64 bytes: vectors of any
 * length make the same bits.  This file alone is compiled with products and sums fused where the
 * processor can, which rounds once and takes half the time. */
#include "products.h"

#ifdef __GNUC__
typedef real long_t __attribute__((vector_size(64), aligned(sizeof(real)), may_alias));
#endif

enum {
    LONG = 64 / sizeof(real),
    WIDE = 3 * LONG,         /* columns of a strip, which is copied, */
    DEPTH = SPCA_LEAST(128), /* with so much of the depth: it stays in the first cache */
    TALL = 8,                /* rows of a block, whose sums are in registers, */
    MOST = 3,                /* and vectors, at most */
    SIDE = 4                 /* rows of either matrix whose dot products are made side by side */
};

typedef struct {
    int half, keep;
    spca_int m, n, depth, lda, ldb, ldc;
    real *C;
} tile_t;

#define NAMED(name) name##_short
#define vector_t lanes_t
#include "tile_loops.h"

typedef void (*add_t)(int across, const tile_t *t, const real *a, const real *b);

#ifdef SPCA_CLONES
#define NAMED(name) name##_long
#define vector_t long_t
#include "tile_loops.h"

__attribute__((target("fma"))) static void add_fused(int across, const tile_t *t, const real *a,
                                                     const real *b)
{
    if (across)
        add_across_short(4, 3, t, a, b);
    else
        add_along_short(2, t, a, b);
}

__attribute__((target("avx512f"))) static void add_long(int across, const tile_t *t, const real *a,
                                                        const real *b)
{
    if (across)
        add_across_long(8, 3, t, a, b);
    else
        add_along_long(4, t, a, b);
}
#endif

#if defined(__x86_64__) || defined(__i386__) /* registers of half the length, and few */
enum { AT_ONCE = 1 };
#else
enum { AT_ONCE = 2 };
#endif

static void add_plain(int across, const tile_t *t, const real *a, const real *b)
{
    if (across)
        add_across_short(4, AT_ONCE, t, a, b);
    else
        add_along_short(2, t, a, b);
}

static add_t best(void)
{
#ifdef SPCA_CLONES
    if (__builtin_cpu_supports("avx512f")) return add_long;
    if (__builtin_cpu_supports("fma")) return add_fused;
#endif
    return add_plain;
}

void SPCA(add_tile)(int across, int half, spca_int m, spca_int n, spca_int depth, const real *a,
                    spca_int lda, const real *b, spca_int ldb, int keep, real *C, spca_int ldc)
{
    tile_t t = {half, keep, m, n, 0, lda, ldb, ldc, C};
    add_t add = best();
    spca_int l = 0;
    do {
        t.depth = min_int(across ? DEPTH : 4 * DEPTH, depth - l);
        add(across, &t, a + l * (across ? lda : 1), b + l * (across ? ldb : 1));
        t.keep = 1;
        l += t.depth;
    } while (l < depth);
}
