/* dense_columns.c - sums of products of the rows of CSR, where variables with many entries are made
 * dense.
 *
 * Variables that have an entry in many rows are put first.  Dense rows of them are kept by strips
 * of STRIP variables.  For each variable a and each strip, the sums of x_ia times row i of the
 * strip stay in registers over all entries of a in a slice of the rows; the strip of a slice stays
 * in the first cache.  That takes less time than scattering as many pairs of entries.  Where nearly
 * all entries of some variables are stored, products of matrices take still less.  This file is
 * compiled with products and sums fused, as tile.c is. */
#include "scatter.h"
#include <string.h>

enum {
    LANES = sizeof(lanes_t) / sizeof(real),
    CHUNK = SPCA_LEAST(128), /* variables whose sums with a strip stay in cache */
    SAMPLE = 1 << 18,        /* about SAMPLE entries are counted, to see how full columns are */
    LEVELS = 20              /* LEVELS shares are tried, from which on a column is made dense; */
};

static const double STEP = 0.85, /* each is this much of the one before */
    OFTEN = 0.25, /* share of rows with an entry from which products of matrices are faster */
    BESIDE = 4,   /* the time of an entry with a strip, */
    VISIT = 0.3,  /* of a variable with a strip, for each row, both in the time of a pair; */
    CLEAR = 0.8;  /* and the share of the time of all pairs that the rest may take */

/* count_a: the entries of variable a in some of the rows, evenly spaced, of about SAMPLE entries in
 * all.  Returns how many rows these are. */
static spca_int count_entries(const products_t *g, const scatter_t *s, int32_t *count)
{
    const operator_t *A = g->A;
    spca_int step = entries_of(A) / SAMPLE + 1, rows = 0;
    memset(count, 0, (size_t)g->k * sizeof(*count));
    for (spca_int i = 0; i < A->n; i += step, rows++)
        for (spca_int q = at(A->indptr, A->wide, i), last = at(A->indptr, A->wide, i + 1); q < last;
             q++) {
            spca_int a = s->position[at(A->indices, A->wide, q)];
            if (a >= 0) count[a]++;
        }
    return rows;
}

/* The number of counted entries from which on a variable is made dense so that a row takes the
 * least time; 0 where none should be.  With `all` and `rest` the entries of a row, and of its
 * sparse variables, and d dense variables, a row takes rest^2/2 for pairs and d/STRIP (BESIDE (all
 * + rest)/2 + VISIT (k - d/2)) for strips. */
static double least_entries(const products_t *g, const int32_t *count, spca_int rows)
{
    double all = 0, best = 0, cost, level = (double)rows;
    for (spca_int a = 0; a < g->k; a++) all += (double)count[a] / (double)rows;
    cost = CLEAR * all * all / 2;
    for (int l = 0; l < LEVELS; l++) {
        double d = 0, rest = all, time;
        level *= STEP;
        for (spca_int a = 0; a < g->k; a++)
            if ((double)count[a] >= level) {
                d++;
                rest -= (double)count[a] / (double)rows;
            }
        time = rest * rest / 2 +
               d / STRIP * (BESIDE * (all + rest) / 2 + VISIT * ((double)g->k - d / 2));
        if (d >= STRIP && time < cost) {
            cost = time;
            best = level;
        }
    }
    return best;
}

products_t SPCA(choose_dense)(products_t *g, scatter_t *s)
{
    products_t dense = *g;
    int32_t *count = s->start;
    spca_int rows = count_entries(g, s, count), most;
    double least = least_entries(g, count, rows), often = fmax(least, OFTEN * (double)rows);
    s->dense = s->stored = s->moved = 0;
    if (least == 0) return dense;
    for (spca_int a = 0; a < g->k; a++) s->list[a] = a;
    /* first those for products of matrices, then the others, each by an exchange of places; whole
     * strips alone are stored */
    for (int kind = 0; kind < 2; kind++) {
        for (spca_int a = s->moved; a < g->k; a++) {
            spca_int b = s->list[a];
            if ((double)count[b] < (kind == 0 ? often : least)) continue;
            s->list[a] = s->list[s->moved];
            s->list[s->moved] = b;
            s->from[s->moved++] = a;
        }
        s->stored = s->moved / STRIP * STRIP;
        if (kind == 0) s->dense = s->stored;
    }
    /* the products in the new order, of all variables (g) and of the first ones (dense), with as
     * many rows of a block as there is room for */
    for (spca_int a = 0; g->index && a < g->k; a++) s->list[a] = g->index[s->list[a]];
    most = g->rows * filled(g->k) / s->stored / SPCA_GROUP * SPCA_GROUP;
    *g = SPCA(products_of)(g->A, g->m, g->k, s->list, s->work, g->G);
    for (spca_int a = 0; a < g->k; a++) s->position[s->list[a]] = (int32_t)a;
    dense = *g;
    dense.m = dense.k = s->dense;
    dense.side = min_int(STRIP, TILE);
    dense.layout = IN_STRIPS;
    dense.width = s->stored;
    dense.rows = max_int(g->rows, min_int(most, SLICES * SLICE));
    return dense;
}

/* Row r of the dense block (its first strip), and *apart: how far the strips are from each other.
 */
static real *row_of(const products_t *dense, const scatter_t *s, spca_int r, spca_int *apart)
{
    spca_int group = r / SPCA_GROUP * SPCA_GROUP;
    *apart = STRIP * min_int(SPCA_GROUP, s->rows - group);
    return dense->W + group * dense->width + (r - group) * STRIP;
}

/* begin_a: where the entries of variable a in a slice (rows i to end) go; the first goes to
 * `entries`.  Returns where they end. */
static int32_t begin_slice(const operator_t *A, const scatter_t *s, spca_int i, spca_int end,
                           spca_int k, int32_t entries, int32_t *begin)
{
    memset(begin, 0, (size_t)(k + 1) * sizeof(*begin));
    for (spca_int q = at(A->indptr, A->wide, i), last = at(A->indptr, A->wide, end); q < last; q++)
        begin[s->position[at(A->indices, A->wide, q)] + 1]++;
    begin[0] = entries;
    for (spca_int a = 0; a < k; a++) begin[a + 1] += begin[a];
    return begin[k];
}

/* Copies row i: each entry x_ia goes to its place by slice and variable, and either into the dense
 * strips or to place e of the row's sparse entries; returns the next e.  No processor can guess
 * which of the two it is, so it is written to both without a branch: into `beside` where it is not
 * dense, and to place e, which the next entry overwrites, where it is. */
static int32_t copy_row(const products_t *g, const scatter_t *s, const section_t *f, spca_int i,
                        spca_int in_slice, int32_t *next, real *y, spca_int apart, int32_t e)
{
    const operator_t *A = g->A;
    double center = (double)row_center(A, i);
    real beside;
    for (spca_int q = at(A->indptr, A->wide, i), last = at(A->indptr, A->wide, i + 1); q < last;
         q++) {
        spca_int a = s->position[at(A->indices, A->wide, q)];
        real x, *to;
        int32_t t;
        if (a < 0) continue;
        x = scaled(g, q, i, a);
        t = next[a]++;
        f->total[a] += (double)x * center;
        to = a < s->stored ? y + a / STRIP * apart + a % STRIP : &beside;
        *to = x;
        s->entry[t] = s->value[e] = x;
        s->row[t] = (uint8_t)in_slice;
        s->place[e] = (uint16_t)a;
        e += a >= s->stored;
    }
    return e;
}

void SPCA(copy_slices)(const products_t *g, const products_t *dense, const scatter_t *s,
                       const section_t *f)
{
    int32_t e = f->first[0], entries = e;
    for (spca_int r0 = f->r0; r0 < f->r0 + f->rows; r0 += SLICE) {
        spca_int rows = min_int(SLICE, f->r0 + f->rows - r0), apart;
        int32_t *begin = s->begin + r0 / SLICE * (g->k + 1);
        real *y = row_of(dense, s, r0, &apart);
        entries = begin_slice(g->A, s, s->i0 + r0, s->i0 + r0 + rows, g->k, entries, begin);
        memcpy(f->start, begin, (size_t)g->k * sizeof(*begin));
        for (spca_int c = 0; c < s->stored / STRIP; c++)
            memset(y + c * apart, 0, (size_t)(rows * STRIP) * sizeof(*y));
        for (spca_int r = 0; r < rows; r++) {
            f->first[r0 - f->r0 + r] = e;
            e = copy_row(g, s, f, s->i0 + r0 + r, r, f->start, y + r * STRIP, apart, e);
        }
    }
    f->first[f->rows] = e;
}

/* A part of add_dense. */
typedef struct {
    const products_t *g, *dense;
    const scatter_t *s;
    spca_int chunks; /* of the variables */
} across_t;

/* sum_c += x_ia w_ic over the entries of variable a in a slice, for the columns c of a strip. */
INLINE void add_entries(const real *entry, const uint8_t *row, int32_t count, const real *w,
                        lanes_t *sum)
{
    enum { COUNT = STRIP / LANES };
    lanes_t z[COUNT];
    for (int v = 0; v < COUNT; v++) z[v] = sum[v];
    for (int32_t t = 0; t < count; t++) {
        const lanes_t *y = (const lanes_t *)(w + (uintptr_t)row[t] * STRIP);
        for (int v = 0; v < COUNT; v++) z[v] += entry[t] * y[v];
    }
    for (int v = 0; v < COUNT; v++) sum[v] = z[v];
}

/* G_ac += sum of x_ia x_ic for one strip of variables c and one chunk of variables a >= c, without
 * the pairs that products of matrices cover.  Each section of the rows is summed in REAL. */
VECTORIZED(add_part, (const across_t *f, spca_int part), (f, part))
{
    const scatter_t *s = f->s;
    spca_int k = f->g->k, c0 = part / f->chunks * STRIP;
    spca_int a0 = part % f->chunks * CHUNK, a1 = min_int(k, a0 + CHUNK);
    _Alignas(64) lanes_t sums[CHUNK * STRIP / LANES];
    a0 = max_int(a0, max_int(c0, s->dense));
    for (spca_int q = 0; q < sections_of(s) && a0 < a1; q++) {
        section_t z = section_of(s, q, k);
        memset(sums, 0, (size_t)((a1 - a0) * STRIP) * sizeof(real));
        for (spca_int r = z.r0; r < z.r0 + z.rows; r += SLICE) {
            spca_int apart;
            const int32_t *begin = s->begin + r / SLICE * (k + 1);
            const real *w = row_of(f->dense, s, r, &apart) + c0 / STRIP * apart;
            for (spca_int a = a0; a < a1; a++)
                if (begin[a] < begin[a + 1])
                    add_entries(s->entry + begin[a], s->row + begin[a], begin[a + 1] - begin[a], w,
                                sums + (a - a0) * (STRIP / LANES));
        }
        for (spca_int a = a0; a < a1; a++) {
            const real *x = (const real *)sums + (a - a0) * STRIP;
            double *G = f->g->G + a * k + c0;
            for (spca_int c = 0; c < min_int(STRIP, a - c0 + 1); c++) G[c] += (double)x[c];
        }
    }
}

static void across_part(void *context, spca_int part)
{
    add_part(context, part);
}

spca_status SPCA(add_dense)(products_t *dense, const products_t *g, const scatter_t *s,
                            spca_stop stop, void *ctx)
{
    across_t f = {g, dense, s, (g->k - 1) / CHUNK + 1};
    double numbers = (double)s->entries * (double)s->stored / 2;
    spca_int parts = s->stored / STRIP * f.chunks;
    spca_status status = do_parts(g->A->run, as_bytes(numbers), across_part, &f, parts, stop, ctx);
    return status < 0 || !s->dense ? status : SPCA(add_products)(dense, stop, ctx);
}

/* Exchanges x and y. */
static void swap(double *x, double *y)
{
    double z = *x;
    *x = *y;
    *y = z;
}

void SPCA(restore_order)(const scatter_t *s, spca_int k, double *G)
{
    for (spca_int a = 0; a < k; a++)
        for (spca_int t = s->moved - 1; t >= 0; t--) swap(G + a * k + t, G + a * k + s->from[t]);
    for (spca_int t = s->moved - 1; t >= 0; t--)
        for (spca_int b = 0; b < k && s->from[t] != t; b++)
            swap(G + t * k + b, G + s->from[t] * k + b);
}
