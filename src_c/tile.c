/* tile.c - one tile of a matrix product, by one thread.
 *
 * Sums are made in order of depth or, where rows lie along memory (ALONG), as the partial sums of
 * 64 bytes.  So vectors of any length make the same bits.  This file and dense_columns.c are
 * compiled with products and sums fused where the processor can do that, which rounds once and
 * takes half the time. */
#include "products.h"

#ifdef __GNUC__
typedef real long_t __attribute__((vector_size(64), aligned(sizeof(real)), may_alias));
#endif

enum {
    LONG = TOGETHER,
    LANES = sizeof(lanes_t) / sizeof(real),
    WIDE = 3 * LONG,         /* columns of a strip of b */
    DEPTH = SPCA_LEAST(128), /* depth at a time; a strip with it stays in the first cache */
    TALL = 8,                /* the most rows of a block, whose sums are in registers, */
    MOST = WIDE / LANES,     /* and the most vectors of a row of it */
    SIDE = 4 /* ALONG: rows of either matrix whose dot products go side by side, at most */
};

/* The arguments of add_tile; grouped: IN_GROUPS. */
typedef struct {
    int grouped, half, keep;
    spca_int m, n, depth, lda, ldb, ldc;
    real *C;
} tile_t;

#define NAMED(name) name##_short
#define vector_t lanes_t
#include "tile_loops.h"

typedef void (*add_t)(int layout, const tile_t *t, const real *a, const real *b);

#ifdef SPCA_CLONES
#define NAMED(name) name##_long
#define vector_t long_t
#include "tile_loops.h"

/* 16 registers of 32 bytes: 4 rows with 3 vectors. */
FOR_AVX2 static void add_fused(int layout, const tile_t *t, const real *a, const real *b)
{
    if (layout != ALONG)
        add_across_short(4, 3, t, a, b);
    else
        add_along_short(2, t, a, b);
}

/* 32 registers of 64 bytes: 8 rows with 3 vectors. */
FOR_AVX512 static void add_long(int layout, const tile_t *t, const real *a, const real *b)
{
    if (layout != ALONG)
        add_across_long(8, 3, t, a, b);
    else
        add_along_long(4, t, a, b);
}
#endif

#if defined(__x86_64__) || defined(__i386__) /* only 16 registers, or 8, of 16 bytes */
enum { AT_ONCE = 1 };
#else
enum { AT_ONCE = 2 };
#endif

/* For any other processor. */
static void add_plain(int layout, const tile_t *t, const real *a, const real *b)
{
    if (layout != ALONG)
        add_across_short(4, AT_ONCE, t, a, b);
    else
        add_along_short(2, t, a, b);
}

#ifdef SPCA_CLONES
static const add_t CLONES[] = {add_plain, add_fused, add_long};
#else
static const add_t CLONES[] = {add_plain};
#endif

/* DEPTH of the depth at a time, in order. */
void SPCA(add_tile)(int layout, int half, spca_int m, spca_int n, spca_int depth, const real *a,
                    spca_int lda, const real *b, spca_int ldb, int keep, real *C, spca_int ldc)
{
    tile_t t = {layout == IN_GROUPS, half, keep, m, n, 0, lda, ldb, ldc, C};
    spca_int one = layout == IN_GROUPS ? LONG : 1, l = 0;
    do {
        t.depth = min_int(layout == ALONG ? 4 * DEPTH : DEPTH, depth - l);
        CLONES[spca_clone](layout, &t, a + l * (layout == ACROSS ? lda : one),
                           b + l * (layout == ACROSS ? ldb : one));
        t.keep = 1;
        l += t.depth;
    } while (l < depth);
}
