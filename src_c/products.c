/* products.c - matrix products by tiles.  One thread makes a tile, whose shape depends on the shape
 * of the product alone, so the bits do not depend on threads.
 *
 * A tile is fastest where the rows that are multiplied lie across memory.  Where they lie along it,
 * some of the depth is copied by groups first, unless so few rows are multiplied that this takes
 * longer. */
#include "products.h"

/* FEWEST: rows and depth from which on copying pays. */
enum { FEWEST = SPCA_LEAST(24), LANES = sizeof(lanes_t) / sizeof(real) };
/* the depth at a time where nothing is copied; it looks at stop between */
#define SLAB ((spca_int)1 << 16)

/* A product, for one slab of its depth. */
typedef struct {
    int across, symmetric; /* symmetric: b is a, so half of C is made and mirrored */
    spca_int m, n, depth, lda, ldb, ldc;
    const real *a, *b;
    /* keep: C is added to; ends: the last slab, after which factor and mirror follow */
    int keep, ends;
    real factor;
    real *C, *turned; /* A, then B unless it is A, by groups; or NULL */
} products_t;

/* y_lc = x_cl for TOGETHER rows c of x. */
VECTORIZED(turn_together,
           (spca_int depth, const real *x, spca_int ldx, real *restrict y, spca_int ldy),
           (depth, x, ldx, y, ldy))
{
    for (spca_int l = 0; l < depth; l++)
        for (int c = 0; c < TOGETHER; c += LANES) {
#define ENTRY(i) x[(c + (i)) * ldx + l]
            *(lanes_t *)(y + l * ldy + c) = LANES_OF(ENTRY);
#undef ENTRY
        }
}

/* C <- C factor, and mirror = C' where the product is symmetric. */
static void end_tile(const products_t *s, int half, spca_int m, spca_int n, real *C, real *mirror)
{
    spca_int r = 0;
    for (spca_int i = 0; i < m; i++)
        for (spca_int c = half ? i : 0; c < n; c++) C[i * s->ldc + c] *= s->factor;
    if (!s->symmetric) return;
    for (; !half && r + TOGETHER <= m; r += TOGETHER)
        turn_together(n, C + r * s->ldc, s->ldc, mirror + r, s->ldc);
    for (; r < m; r++)
        for (spca_int c = half ? r : 0; c < n; c++) mirror[c * s->ldc + r] = C[r * s->ldc + c];
}

/* One tile of C; in a symmetric product, none below the diagonal. */
static void tile_part(void *context, spca_int part)
{
    const products_t *s = context;
    spca_int tiles = tiles_of(s->n), i = part / tiles * TILE, j = part % tiles * TILE;
    spca_int m = min_int(TILE, s->m - i), n = min_int(TILE, s->n - j);
    real *C = s->C + i * s->ldc + j, *mirror = s->C + j * s->ldc + i;
    spca_int of_b = s->symmetric ? j : j + filled(s->m); /* where the rows of B begin in `turned` */
    int half = s->symmetric && i == j;
    if (s->symmetric && j < i) return;
    for (spca_int c = 0; s->ends && s->symmetric && c < n; c++)
        for (spca_int r = 0; r < m; r += TOGETHER) FETCH_TO_WRITE(mirror + c * s->ldc + r);
    if (s->turned)
        SPCA(add_tile)(IN_GROUPS, half, m, n, s->depth, s->turned + i * s->depth, s->depth,
                       s->turned + of_b * s->depth, s->depth, s->keep, C, s->ldc);
    else
        SPCA(add_tile)(s->across, half, m, n, s->depth, s->a + i * (s->across ? 1 : s->lda), s->lda,
                       s->b + j * (s->across ? 1 : s->ldb), s->ldb, s->keep, C, s->ldc);
    if (s->ends) end_tile(s, half, m, n, C, mirror);
}

/* Copies a tile of rows of A, or of B, by groups, with zeros below the last row. */
static void turn_part(void *context, spca_int part)
{
    const products_t *s = context;
    spca_int of_b = part >= tiles_of(s->m), i = (part - (of_b ? tiles_of(s->m) : 0)) * TILE;
    spca_int width = min_int(TILE, (of_b ? s->n : s->m) - i), ld = of_b ? s->ldb : s->lda, c = 0;
    const real *x = (of_b ? s->b : s->a) + i * ld;
    real *y = s->turned + (i + (of_b ? filled(s->m) : 0)) * s->depth;
    for (; c + TOGETHER <= width; c += TOGETHER)
        turn_together(s->depth, x + c * ld, ld, y + c * s->depth, TOGETHER);
    for (spca_int l = 0; c < width && l < s->depth; l++)
        for (spca_int r = 0; r < TOGETHER; r++)
            y[c * s->depth + l * TOGETHER + r] = c + r < width ? x[(c + r) * ld + l] : 0;
}

spca_status SPCA(matrix_product)(int across, spca_int m, spca_int n, spca_int depth, const real *A,
                                 spca_int lda, const real *B, spca_int ldb, real factor, int add,
                                 spca_run run, spca_stop stop, void *ctx, spca_int room, real *work,
                                 real *C, spca_int ldc)
{
    /* with B == A otherwise, B has more rows than A, or fewer */
    int symmetric = A == B && m == n && lda == ldb;
    spca_int rows = filled(m) + (symmetric ? 0 : filled(n));
    spca_int turned = min_int(SPCA_TURNED, (room - TOGETHER) / (rows > 0 ? rows : 1));
    int turning = !across && min_int(m, n) >= FEWEST && turned >= FEWEST;
    spca_int slab = turning ? turned : SLAB, tiles = tiles_of(m) * tiles_of(n);
    spca_status status = SPCA_OK;
    for (spca_int l = 0; l < depth && status >= 0; l += slab) {
        products_t s = {.across = across,
                        .symmetric = symmetric,
                        .m = m,
                        .n = n,
                        .lda = lda,
                        .ldb = ldb,
                        .ldc = ldc};
        double reads = (double)rows * (double)min_int(slab, depth - l) * sizeof(real);
        s.depth = min_int(slab, depth - l);
        s.a = A + l * (across ? lda : 1);
        s.b = B + l * (across ? ldb : 1);
        s.factor = factor;
        s.ends = l + slab >= depth;
        s.keep = add || l > 0;
        s.C = C;
        s.turned = turning ? cache_line(work) : NULL;
        if (turning)
            status = do_parts(run, reads, turn_part, &s,
                              tiles_of(m) + (symmetric ? 0 : tiles_of(n)), stop, ctx);
        if (status >= 0)
            status = do_parts(run, reads + as_bytes((double)m * (double)n * (double)s.depth),
                              tile_part, &s, tiles, stop, ctx);
    }
    return status;
}
