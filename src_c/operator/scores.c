/* scores.c - (X - 1 mean') V, of which some columns of X are used: one read of them.
 *
 * Some entries are centered and turned to columns before they are multiplied, so that no digit is
 * lost to a large mean, and stay in the first cache.  A score has the same bits whatever the other
 * rows are. */
#include "products.h"

enum {
    LANES = sizeof(lanes_t) / sizeof(real),
    DEPTH = SPCA_LEAST(128), /* in C order: columns, */
    SHORT = 3 * TOGETHER,    /* and rows at a time; */
    AHEAD = 2,               /* groups of rows that are fetched before their turn */
    DENSE = 4,               /* where so few columns are used that most of a line is read */
    SOME = SPCA_LEAST(32),   /* in Fortran order: columns, */
    STRETCH = 192,           /* and rows at a time */
    FEW = TOGETHER,          /* columns of V at a time */
    PART = 2304              /* rows of a part: a multiple of both */
};

typedef struct {
    spca_int n, k, r;
    const real *X;
    spca_int ld;
    int row_major;
    const spca_int *index;
    const real *mean, *V; /* V: by groups of columns */
    real *out;
} scores_t;

/* y_ac = x_ca - mean_a of TOGETHER rows, of the columns of the list if there is one. */
VECTORIZED static void turned(spca_int k, const spca_int *index, const real *x, spca_int ld,
                              const real *mean, real *restrict y)
{
    for (spca_int a = 0; a < k; a++) {
        const real *z = x + (index ? index[a] : a);
        if (ld <= DENSE * k) FETCH((uintptr_t)x + (uintptr_t)((AHEAD * ld + a) * 64));
        for (int c = 0; c < TOGETHER; c += LANES) {
#define ENTRY(l) z[(c + (l)) * ld]
            *(lanes_t *)(y + a * TOGETHER + c) = LANES_OF(ENTRY) - mean[a];
#undef ENTRY
        }
    }
}

/* y_i = x_i - mean of a stretch of one column, by groups that are `apart`. */
VECTORIZED static void shifted(spca_int groups, const real *x, real mean, spca_int apart,
                               real *restrict y)
{
    for (spca_int g = 0; g < groups; g++) {
        FETCH((uintptr_t)(x + g * TOGETHER) + (uintptr_t)STRETCH * sizeof(real));
        for (int c = 0; c < TOGETHER; c++) y[g * apart + c] = x[g * TOGETHER + c] - mean;
    }
}

/* The centered entries of `rows` rows from i and `depth` used columns from a, by groups of rows. */
static void fill(const scores_t *s, spca_int i, spca_int rows, spca_int a, spca_int depth, real *W)
{
    const spca_int *index = s->index ? s->index + a : NULL, whole = rows / TOGETHER * TOGETHER;
    const real *X = s->X + (index ? 0 : a * (s->row_major ? 1 : s->ld));
    for (spca_int l = 0; s->row_major && l < whole; l += TOGETHER)
        turned(depth, index, X + (i + l) * s->ld, s->ld, s->mean + a, W + l * depth);
    for (spca_int b = 0; b < depth; b++) {
        spca_int j = index ? index[b] : b;
        if (!s->row_major)
            shifted(whole / TOGETHER, X + j * s->ld + i, s->mean[a + b], TOGETHER * depth,
                    W + b * TOGETHER);
        for (spca_int l = whole; l < (whole < rows ? whole + TOGETHER : rows); l++)
            W[whole * depth + b * TOGETHER + l - whole] =
                l < rows
                    ? X[s->row_major ? (i + l) * s->ld + j : j * s->ld + i + l] - s->mean[a + b]
                    : 0;
    }
}

/* Some rows. */
static void scores_part(void *context, spca_int part)
{
    const scores_t *s = context;
    const spca_int most = s->row_major ? SHORT : STRETCH, deep = s->row_major ? DEPTH : SOME;
    _Alignas(64) real W[DEPTH * SHORT > SOME * STRETCH ? DEPTH * SHORT : SOME * STRETCH];
    real Y[FEW * STRETCH];
    for (spca_int i = part * PART; i < min_int(s->n, (part + 1) * PART); i += most)
        for (spca_int c = 0; c < s->r; c += FEW) {
            spca_int rows = min_int(most, s->n - i), count = min_int(FEW, s->r - c);
            for (spca_int a = 0; a < s->k; a += deep) {
                spca_int depth = min_int(deep, s->k - a);
                fill(s, i, rows, a, depth, W);
                for (spca_int l = 0; l < rows; l += TILE)
                    SPCA(add_tile)(IN_GROUPS, 0, count, min_int(TILE, rows - l), depth,
                                   s->V + c * s->k + a * TOGETHER, s->k, W + l * depth, depth,
                                   a > 0, Y + l, most);
            }
            for (spca_int l = 0; l < rows; l++)
                for (spca_int b = 0; b < count; b++)
                    s->out[(i + l) * s->r + c + b] = Y[b * most + l];
        }
}

spca_status SPCA(scores)(spca_int n, spca_int k, spca_int r, const real *X, spca_int ld,
                         int row_major, const spca_int *index, const real *mean, const real *V,
                         spca_run run, spca_stop stop, void *ctx, real *work, real *out)
{
    scores_t s = {n, k, r, X, ld, row_major, index, mean, work, out};
    for (spca_int c = 0; c < r; c += TOGETHER)
        for (spca_int a = 0; a < k; a++)
            for (int b = 0; b < TOGETHER; b++)
                work[c * k + a * TOGETHER + b] = c + b < r ? V[a * r + c + b] : 0;
    return do_parts(run, (double)n * (double)k * sizeof(real), scores_part, &s,
                    (n + PART - 1) / PART, stop, ctx);
}
