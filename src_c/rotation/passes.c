/* passes.c - the sums over all rows from which a step of ascent.c is found.  A part has some tiles;
 * sums of parts are added in order. */
#include "passes.h"
#include "products.h"
#include <string.h>

/* A part has PART_TILES tiles where there are few columns; otherwise PART_PAIRS tiles times pairs
 * of columns, which take a twentieth of a second. */
enum { PART_TILES = 32, PART_PAIRS = SPCA_LEAST(1 << 17) };

/* y = range x, in single precision. */
VECTORIZED(narrow, (spca_int n, double range, const real *restrict x, float *restrict y),
           (n, range, x, y))
{
    real scale = (real)range;
    for (spca_int i = 0; i < n; i++) y[i] = (float)(x[i] * scale);
}

/* y = range x, in double. */
VECTORIZED(widen, (spca_int n, double range, const real *restrict x, double *restrict y),
           (n, range, x, y))
{
    for (spca_int i = 0; i < n; i++) y[i] = (double)x[i] * range;
}

void SPCA(load_single)(const state_t *s, spca_int start, spca_int n, float *y)
{
    for (spca_int a = 0; a < s->r; a++) {
        narrow(n, s->range, s->Y + a * s->p + start, y + a * SPCA_TILE);
        for (spca_int i = n; i < SPCA_TILE; i++) y[a * SPCA_TILE + i] = 0;
    }
    if (s->r % 2) memset(y + s->r * SPCA_TILE, 0, SPCA_TILE * sizeof(float));
}

/* n rows of Y from start on, times local: z, written back to Y. */
static void rotate_rows(const state_t *s, spca_int start, spca_int n, real *y, real *z)
{
    for (spca_int a = 0; a < s->r; a++) {
        memcpy(y + a * SPCA_TILE, s->Y + a * s->p + start, (size_t)n * sizeof(real));
        for (spca_int i = n; i < SPCA_TILE; i++) y[a * SPCA_TILE + i] = 0;
    }
    SPCA(tile_turn)(s->r, s->local, y, z);
    for (spca_int a = 0; a < s->r; a++)
        memcpy(s->Y + a * s->p + start, z + a * SPCA_TILE, (size_t)n * sizeof(real));
}

typedef struct {
    const state_t *s;
    pass_t pass;
    spca_int start, step; /* the first row of part 0, and the rows of a part */
} span_t;

/* The sums of moments.c over the rows of a part, times local, as the pass says (passes.h). */
static void moments_part(void *context, spca_int part)
{
    const span_t *span = context;
    const state_t *s = span->s;
    pass_t pass = span->pass;
    place_t at = place_of(s, part);
    float *w = (float *)at.w;
    spca_int r = s->r, size = (r + r % 2) * SPCA_TILE;
    spca_int first = span->start + part * span->step, end = min_int(first + span->step, s->p);
    /* S, U, G and fourth are side by side */
    memset(at.S, 0, (size_t)(3 * r * r + 1) * sizeof(double));
    for (spca_int start = first; start < end; start += SPCA_TILE) {
        spca_int n = min_int(SPCA_TILE, end - start);
        if (pass == START || pass == TRIAL) {
            SPCA(load_single)(s, start, n, (float *)at.y);
            if (pass == START) *at.fourth += spca_stile_norms(r, (float *)at.y, (float *)at.square);
            if (pass == START && s->share > 0) spca_stile_gram(r, (float *)at.y, at.G);
            spca_stile_turn(r, s->local, (float *)at.y, w);
        } else {
            rotate_rows(s, start, n, (real *)at.y, (real *)at.z);
            if (pass == PRECISE)
                widen(size, s->range, (real *)at.z, at.w);
            else
                narrow(size, s->range, (real *)at.z, w);
        }
        if (pass == PRECISE) {
            spca_dtile_moments(r, at.w, at.square, at.S, at.U);
            if (s->share > 0) spca_dtile_gram(r, at.w, at.G);
        } else {
            spca_stile_moments(r, w, (float *)at.square, at.S, at.U);
        }
    }
}

/* sum += x, n numbers. */
static void add(spca_int n, const double *x, double *sum)
{
    for (spca_int i = 0; i < n; i++) sum[i] += x[i];
}

/* The sums over all rows: places(p) parts at a time, whose sums are added in order. */
spca_status SPCA(sum_moments)(state_t *s, pass_t pass)
{
    spca_int r = s->r, tiles = PART_PAIRS / (r * r);
    size_t matrix = (size_t)(r * r) * sizeof(double);
    double *G = pass == START ? s->G0 : s->G;
    span_t span = {s, pass, 0, SPCA_TILE * (tiles < 1 ? 1 : min_int(tiles, PART_TILES))};
    memset(s->S, 0, matrix);
    memset(s->U, 0, matrix);
    if (pass == START || pass == PRECISE) memset(G, 0, matrix);
    if (pass == START) s->fourth = 0;
    for (; span.start < s->p; span.start += places(s->p) * span.step) {
        spca_int rows = min_int(places(s->p) * span.step, s->p - span.start);
        spca_int parts = (rows + span.step - 1) / span.step;
        spca_status status = do_parts(s->run, as_bytes(2 * (double)rows * (double)(r * r)),
                                      moments_part, &span, parts, s->stop, s->ctx);
        if (status < 0) return status;
        for (spca_int part = 0; part < parts; part++) {
            place_t at = place_of(s, part);
            add(r * r, at.S, s->S);
            add(r * r, at.U, s->U);
            if (pass == START || pass == PRECISE) add(r * r, at.G, G);
            if (pass == START) s->fourth += *at.fourth;
        }
    }
    if (pass == START)
        for (spca_int a = 0; a < r; a++)
            for (spca_int b = 0; b < a; b++) G[a * r + b] = G[b * r + a];
    return SPCA_OK;
}
