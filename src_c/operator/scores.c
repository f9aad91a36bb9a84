/* scores.c - (X - 1 mean') V, of which some columns of X are used: one read of them.
 *
 * Some entries are centered and turned to columns before they are multiplied, so that no digit is
 * lost to a large mean, and stay in the first cache.  A score has the same bits whatever the other
 * rows are. */
#include "products.h"

enum {
    DEPTH = SPCA_LEAST(128), /* in C order: columns, */
    SHORT = 3 * TOGETHER,    /* and rows at a time; */
    SOME = SPCA_LEAST(16),   /* in Fortran order: columns, */
    STRETCH = 192,           /* and rows at a time */
    FEW = SPCA_LEAST(16),    /* columns of V at a time */
    PART = 2304              /* rows of a part: a multiple of both */
};

typedef struct {
    spca_int n, k, r;
    const real *X;
    spca_int ld;
    int row_major;
    const spca_int *index;
    const real *mean, *V;
    real *out;
} scores_t;

/* y_ac = x_ca - mean_a of TOGETHER rows, of the columns of the list if there is one. */
VECTORIZED static void turned(spca_int k, const spca_int *index, const real *x, spca_int ld,
                              const real *mean, real *restrict y)
{
    for (spca_int a = 0; a < k; a++) {
        const real *z = x + (index ? index[a] : a);
        for (int c = 0; c < TOGETHER; c++) y[a * SHORT + c] = z[c * ld] - mean[a];
    }
}

/* y_i = x_i - mean of a stretch of one column. */
VECTORIZED static void shifted(spca_int rows, const real *x, real mean, real *restrict y)
{
    for (spca_int i = 0; i < rows; i++) y[i] = x[i] - mean;
}

/* The centered entries of `rows` rows from i and `depth` used columns from a, by columns. */
static void fill(const scores_t *s, spca_int i, spca_int rows, spca_int a, spca_int depth, real *W)
{
    spca_int l = 0;
    for (; s->row_major && l + TOGETHER <= rows; l += TOGETHER)
        turned(depth, s->index ? s->index + a : NULL, s->X + (i + l) * s->ld + (s->index ? 0 : a),
               s->ld, s->mean + a, W + l);
    for (; s->row_major && l < rows; l++)
        for (spca_int b = 0; b < depth; b++) {
            spca_int j = s->index ? s->index[a + b] : a + b;
            W[b * SHORT + l] = s->X[(i + l) * s->ld + j] - s->mean[a + b];
        }
    for (spca_int b = 0; !s->row_major && b < depth; b++)
        shifted(rows, s->X + (s->index ? s->index[a + b] : a + b) * s->ld + i, s->mean[a + b],
                W + b * STRETCH);
}

/* Some rows. */
static void scores_part(void *context, spca_int part)
{
    const scores_t *s = context;
    const spca_int most = s->row_major ? SHORT : STRETCH, deep = s->row_major ? DEPTH : SOME;
    real W[DEPTH * SHORT > SOME * STRETCH ? DEPTH * SHORT : SOME * STRETCH], Y[FEW * STRETCH];
    for (spca_int i = part * PART; i < min_int(s->n, (part + 1) * PART); i += most)
        for (spca_int c = 0; c < s->r; c += FEW) {
            spca_int rows = min_int(most, s->n - i), count = min_int(FEW, s->r - c);
            for (spca_int a = 0; a < s->k; a += deep) {
                spca_int depth = min_int(deep, s->k - a);
                fill(s, i, rows, a, depth, W);
                for (spca_int l = 0; l < rows; l += TILE)
                    SPCA(add_tile)(ACROSS, 0, count, min_int(TILE, rows - l), depth,
                                   s->V + a * s->r + c, s->r, W + l, most, a > 0, Y + l, most);
            }
            for (spca_int l = 0; l < rows; l++)
                for (spca_int b = 0; b < count; b++)
                    s->out[(i + l) * s->r + c + b] = Y[b * most + l];
        }
}

spca_status SPCA(scores)(spca_int n, spca_int k, spca_int r, const real *X, spca_int ld,
                         int row_major, const spca_int *index, const real *mean, const real *V,
                         spca_run run, spca_stop stop, void *ctx, real *out)
{
    scores_t s = {n, k, r, X, ld, row_major, index, mean, V, out};
    return do_parts(run, (double)n * (double)k * sizeof(real), scores_part, &s,
                    (n + PART - 1) / PART, stop, ctx);
}
