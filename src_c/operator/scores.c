/* scores.c - (X[:, index] - 1 mean') V in one read of these columns.
 *
 * Entries are centered before they are multiplied, so that no digit is lost to a large mean.  In C
 * order, TOGETHER rows at a time become columns for that, some of them at a time, which stay in the
 * first cache.  In Fortran order, the scores of some rows stay there while a few columns at a time
 * are added.  A score has the same bits whatever the other rows are. */
#include "products.h"

enum {
    LANES = sizeof(lanes_t) / sizeof(real),
    DEPTH = SPCA_LEAST(128), /* C order: columns at a time */
    SHORT = 3 * TOGETHER,    /* C order: rows at a time */
    AHEAD = 2,               /* C order: groups of rows are fetched this many ahead */
    DENSE = 4,               /* C order: rows are fetched where ld is no more than this times k */
    STRETCH = SPCA_LEAST(4096 / sizeof(real)), /* Fortran order: rows at a time */
    PIECE_ROWS = 8 * TOGETHER,                 /* Fortran order: of these, rows of a piece */
    SOME = 4,                                  /* Fortran order: columns of X at a time */
    MOST = 5,                                  /* Fortran order: columns of V at a time, at most */
    FEW = TOGETHER, /* columns of V in a group, whose scores stay in cache */
    LONGEST = SHORT < STRETCH ? STRETCH : SHORT,
    APART = LONGEST + TOGETHER, /* from one score to the next of a row: not a power of two, so that
                                   they do not share places of a cache */
    PART = 3 * LONGEST,         /* rows of a part */
    PART_ROWS = 4 * SHORT,      /* rows of a part in C order, where entries are far apart */
    FAR = 8 /* for do_parts: FAR neighboring entries come in the time of one from far away */
};

typedef struct {
    spca_int n, k, r;
    const real *X;
    spca_int ld;
    int row_major;
    const spca_int *index;
    const real *mean, *V; /* V: by groups of FEW columns */
    real *out;
} scores_t;

/* y_ac = x_cj - mean_a for TOGETHER rows c, j = index_a (or a), a < k. */
VECTORIZED(turned,
           (spca_int k, const spca_int *index, const real *x, spca_int ld, const real *mean,
            real *restrict y),
           (k, index, x, ld, mean, y))
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

/* y_b += sum_c V_cb (x_c - mean_c) for SOME columns x_c of X and `count` columns b of V. */
INLINE void add_piece(const int count, spca_int rows, const real *const *x, const real *mean,
                      const real *const *V, real *restrict y)
{
    for (spca_int i = 0; i < rows; i++) {
        real a = x[0][i] - mean[0], b = x[1][i] - mean[1];
        real c = x[2][i] - mean[2], d = x[3][i] - mean[3];
        for (int l = 0; l < count; l++)
            y[l * APART + i] += (V[0][l] * a + V[1][l] * b) + (V[2][l] * c + V[3][l] * d);
    }
}

/* add_piece for all rows, by pieces of PIECE_ROWS rows; those of the next columns are fetched
 * ahead. */
INLINE void add_columns(const int count, spca_int rows, const real *const *x, const uintptr_t *next,
                        const real *mean, const real *const *V, real *restrict y)
{
    for (spca_int i = 0; i < rows; i += PIECE_ROWS) {
        const real *z[SOME] = {x[0] + i, x[1] + i, x[2] + i, x[3] + i};
        for (int c = 0; c < SOME; c++)
            for (spca_int l = i; l < i + PIECE_ROWS; l += TOGETHER)
                FETCH(next[c] + (uintptr_t)l * sizeof(real));
        add_piece(count, min_int(PIECE_ROWS, rows - i), z, mean, V, y + i);
    }
}

/* W = the centered entries of `rows` rows from i and `depth` used columns from a, by groups of
 * TOGETHER rows; zeros fill the last group. */
static void fill(const scores_t *s, spca_int i, spca_int rows, spca_int a, spca_int depth, real *W)
{
    const spca_int *index = s->index ? s->index + a : NULL, whole = rows / TOGETHER * TOGETHER;
    const real *X = s->X + (index ? 0 : a);
    for (spca_int l = 0; l < whole; l += TOGETHER)
        turned(depth, index, X + (i + l) * s->ld, s->ld, s->mean + a, W + l * depth);
    for (spca_int b = 0; b < depth; b++)
        for (spca_int l = whole; l < (whole < rows ? whole + TOGETHER : rows); l++)
            W[whole * depth + b * TOGETHER + l - whole] =
                l < rows ? X[(i + l) * s->ld + (index ? index[b] : b)] - s->mean[a + b] : 0;
}

/* Y = the scores of `rows` rows from i for `count` columns of V from c, in C order. */
static void by_rows(const scores_t *s, spca_int i, spca_int rows, spca_int c, spca_int count,
                    real *Y)
{
    _Alignas(64) real W[DEPTH * SHORT];
    for (spca_int a = 0; a < s->k; a += DEPTH) {
        spca_int depth = min_int(DEPTH, s->k - a);
        fill(s, i, rows, a, depth, W);
        for (spca_int l = 0; l < rows; l += TILE)
            SPCA(add_tile)(IN_GROUPS, 0, count, min_int(TILE, rows - l), depth,
                           s->V + c * s->k + a * TOGETHER, s->k, W + l * depth, depth, a > 0, Y + l,
                           APART);
    }
}

/* The column of X that is used a-th. */
static inline const real *column(const scores_t *s, spca_int a)
{
    return s->X + (s->index ? s->index[a] : a) * s->ld;
}

/* Y as by_rows makes it, in Fortran order.  The last SOME columns may be fewer: then the last one
 * is taken again, with zeros of V. */
VECTORIZED(by_columns,
           (const scores_t *s, spca_int i, spca_int rows, spca_int c, spca_int count, real *Y),
           (s, i, rows, c, count, Y))
{
    const real zeros[FEW] = {0};
    for (spca_int b = 0; b < count; b++)
        for (spca_int l = 0; l < rows; l++) Y[b * APART + l] = 0;
    for (spca_int a = 0; a < s->k; a += SOME) {
        const real *x[SOME], *V[SOME];
        uintptr_t next[SOME];
        real mean[SOME];
        for (spca_int l = 0; l < SOME; l++) {
            spca_int q = min_int(a + l, s->k - 1), z = a + SOME + l;
            x[l] = column(s, q) + i;
            next[l] =
                (uintptr_t)(column(s, z % s->k) + i) + (z < s->k ? 0 : STRETCH * sizeof(real));
            mean[l] = s->mean[q];
            V[l] = a + l < s->k ? s->V + c * s->k + q * FEW : zeros;
        }
        for (spca_int b = 0; b < count; b += MOST) {
            real *y = Y + b * APART;
            const real *v[SOME] = {V[0] + b, V[1] + b, V[2] + b, V[3] + b};
            switch (min_int(MOST, count - b)) {
            case 1:
                add_columns(1, rows, x, next, mean, v, y);
                break;
            case 2:
                add_columns(2, rows, x, next, mean, v, y);
                break;
            case 3:
                add_columns(3, rows, x, next, mean, v, y);
                break;
            case 4:
                add_columns(4, rows, x, next, mean, v, y);
                break;
            default:
                add_columns(MOST, rows, x, next, mean, v, y);
            }
        }
    }
}

/* The scores of the rows of a part. */
static void scores_part(void *context, spca_int part)
{
    const scores_t *s = context;
    const spca_int most = s->row_major ? SHORT : STRETCH, step = s->row_major ? PART_ROWS : PART;
    spca_int end = min_int(s->n, (part + 1) * step);
    real Y[FEW * APART];
    for (spca_int i = part * step; i < end; i += most)
        for (spca_int c = 0; c < s->r; c += FEW) {
            spca_int rows = min_int(most, end - i);
            spca_int count = min_int(FEW, s->r - c);
            if (s->row_major)
                by_rows(s, i, rows, c, count, Y);
            else
                by_columns(s, i, rows, c, count, Y);
            for (spca_int l = 0; l < rows; l++)
                for (spca_int b = 0; b < count; b++)
                    s->out[(i + l) * s->r + c + b] = Y[b * APART + l];
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
    spca_int step = row_major ? PART_ROWS : PART;
    double entries = (double)n * (double)k * (row_major && index ? FAR : 1);
    return do_parts(run, entries * sizeof(real), scores_part, &s, (n + step - 1) / step, stop, ctx);
}
