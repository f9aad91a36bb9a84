/* column_products.c - sums of products of the columns of CSC, some of them made dense. */
#include "scatter.h"
#include <string.h>

enum { GROUPED = WIDE * sizeof(double) / sizeof(doubles_t) }; /* vectors that hold WIDE numbers */

/* ---- few variables, of CSC: d_ia = u_i x_ia of a block of rows, and u_i s_i in the last place */

typedef struct {
    const products_t *g;
    const scatter_t *s;
    spca_int a0, count, lanes; /* d has variables from a0 on, and `lanes` numbers in a row */
    spca_int i0, rows, step;   /* the rows of the block; the variables of a part */
} few_t;

/* d = a block of rows of the few variables. */
static void fill_few(const few_t *f)
{
    const products_t *g = f->g;
    const operator_t *A = g->A;
    double *d = f->s->few;
    memset(d, 0, (size_t)(f->rows * f->lanes) * sizeof(*d));
    for (spca_int i = 0; i < f->rows; i++)
        d[i * f->lanes + f->count] =
            (double)row_weight(A, f->i0 + i) * (double)row_center(A, f->i0 + i);
    for (spca_int c = 0; c < f->count; c++) {
        spca_int a = f->a0 + c, j = g->index ? g->index[a] : a;
        for (spca_int q = f->s->next[a], last = at(A->indptr, A->wide, j + 1); q < last; q++) {
            spca_int i = at(A->indices, A->wide, q) - f->i0;
            if (i >= f->rows) break;
            d[i * f->lanes + c] =
                (double)scaled(g, q, f->i0 + i, a) * (double)row_weight(A, f->i0 + i);
        }
    }
}

/* result_c = sum of weight x_i d_ic over the entries x_i of a column in the block, which begin at
 * q; returns where they end. */
INLINE spca_int add_few(const few_t *f, const int wide, const int groups, spca_int q, spca_int last,
                        real weight, double *result)
{
    const operator_t *A = f->g->A;
    const doubles_t *d = (const doubles_t *)f->s->few;
    /* two sums, so that none waits for another */
    doubles_t sum[GROUPED] = {0}, other[GROUPED] = {0};
    spca_int end = place_of(A->indices, wide, q, last, f->i0 + f->rows);
    for (; q + 2 <= end; q += 2) {
        const doubles_t *y = d + (at(A->indices, wide, q) - f->i0) * groups;
        const doubles_t *z = d + (at(A->indices, wide, q + 1) - f->i0) * groups;
        double x0 = (double)(A->data[q] * A->range * weight);
        double x1 = (double)(A->data[q + 1] * A->range * weight);
        for (int c = 0; c < groups; c++) sum[c] += x0 * y[c];
        for (int c = 0; c < groups; c++) other[c] += x1 * z[c];
    }
    if (q < end) {
        const doubles_t *y = d + (at(A->indices, wide, q) - f->i0) * groups;
        double x = (double)(A->data[q] * A->range * weight);
        for (int c = 0; c < groups; c++) sum[c] += x * y[c];
    }
    for (int c = 0; c < groups; c++) ((doubles_t *)result)[c] = sum[c] + other[c];
    return end;
}

/* add_few with a constant number of vectors. */
INLINE spca_int add_lanes(const few_t *f, const int wide, spca_int q, spca_int last, real weight,
                          double *result)
{
    if (f->lanes == WIDE / 4) return add_few(f, wide, GROUPED / 4, q, last, weight, result);
    if (f->lanes == WIDE / 2) return add_few(f, wide, GROUPED / 2, q, last, weight, result);
    return add_few(f, wide, GROUPED, q, last, weight, result);
}

/* G_ab += sum of x_ia x_ib over the block, for all few variables a and the variables b of a part.
 * do_parts is given few_part, because i686 cannot take the address of such a function. */
VECTORIZED(add_block, (const few_t *f, spca_int part), (f, part))
{
    const products_t *g = f->g;
    const operator_t *A = g->A;
    for (spca_int b = part * f->step; b < min_int(g->k, (part + 1) * f->step); b++) {
        spca_int j = g->index ? g->index[b] : b, q = f->s->next[b];
        spca_int last = at(A->indptr, A->wide, j + 1);
        double sum[WIDE];
        real weight = g->weight[b];
        f->s->next[b] =
            A->wide ? add_lanes(f, 1, q, last, weight, sum) : add_lanes(f, 0, q, last, weight, sum);
        for (spca_int c = 0; c < f->count; c++) g->G[(f->a0 + c) * g->k + b] += sum[c];
        if (f->a0 == 0) f->s->total[b] += sum[f->count];
    }
}

static void few_part(void *context, spca_int part)
{
    add_block(context, part);
}

/* WIDE - 1 variables at a time, since the last place has the centers; all rows are read for each of
 * these groups. */
spca_status SPCA(multiply_few)(const products_t *g, const scatter_t *s, spca_stop stop, void *ctx)
{
    const operator_t *A = g->A;
    few_t f = {.g = g, .s = s, .step = g->k / PARTS + 1};
    double entries = (double)entries_of(A) / (double)A->p * (double)g->k / (double)A->n;
    for (; f.a0 < g->m; f.a0 += f.count) {
        f.count = min_int(WIDE - 1, g->m - f.a0);
        f.lanes = WIDE / (f.count < WIDE / 4 ? 4 : f.count < WIDE / 2 ? 2 : 1);
        first_entries(g, s);
        for (f.i0 = 0; f.i0 < A->n; f.i0 += f.rows) {
            spca_status status;
            f.rows = min_int(PLACES, A->n - f.i0);
            fill_few(&f);
            status = do_parts(A->run, entries * (double)(f.rows * f.lanes) * PAIR, few_part, &f,
                              (g->k + f.step - 1) / f.step, stop, ctx);
            if (status < 0) return status;
        }
    }
    return SPCA_OK;
}

/* ---- some entries, of CSC: strips of WIDE variables of a block of rows made dense ------------ */

typedef struct {
    const products_t *g;
    const scatter_t *s;
    spca_int i0, rows; /* the rows of the block */
} strips_t;

/* The strips of a block of rows, the totals, and where the entries of each variable in it end. */
static void fill_strips(const strips_t *f)
{
    const products_t *g = f->g;
    const scatter_t *s = f->s;
    const operator_t *A = g->A;
    memset(s->strips, 0, (size_t)(f->rows * WIDE * strips_of(g->k)) * sizeof(*s->strips));
    for (spca_int a = 0; a < g->k; a++) {
        spca_int j = g->index ? g->index[a] : a, last = at(A->indptr, A->wide, j + 1);
        spca_int q = s->next[a];
        double *d = s->strips + a / WIDE * WIDE * f->rows + a % WIDE, total = 0;
        for (; q < last; q++) {
            spca_int i = at(A->indices, A->wide, q);
            double x = (double)scaled(g, q, i, a);
            if (i >= f->i0 + f->rows) break;
            d[(i - f->i0) * WIDE] = x;
            total += x * (double)row_center(A, i);
        }
        s->total[a] += total;
        s->end[a] = q;
    }
}

/* result_b = sum of x_ia d_ib over the entries of variable a in the block, for the variables b of a
 * strip. */
INLINE void add_entries(const strips_t *f, const int wide, spca_int a, const double *d,
                        double *result)
{
    const operator_t *A = f->g->A;
    doubles_t sum[GROUPED] = {0};
    for (spca_int q = f->s->next[a], end = f->s->end[a]; q < end; q++) {
        spca_int i = at(A->indices, wide, q);
        const doubles_t *y = (const doubles_t *)(d + (i - f->i0) * WIDE);
        double x = (double)scaled(f->g, q, i, a);
        for (int c = 0; c < GROUPED; c++) sum[c] += x * y[c];
    }
    for (int c = 0; c < GROUPED; c++) ((doubles_t *)result)[c] = sum[c];
}

/* G_ab += sum of x_ia x_ib over the block, for the variables b of a strip and all variables a up to
 * them. */
VECTORIZED(add_strip, (const strips_t *f, spca_int part), (f, part))
{
    const products_t *g = f->g;
    spca_int b = part * WIDE, width = min_int(WIDE, g->k - b);
    const double *d = f->s->strips + b * f->rows;
    for (spca_int a = 0; a < min_int(g->m, b + width); a++) {
        double sum[WIDE];
        if (f->s->next[a] == f->s->end[a]) continue;
        if (g->A->wide)
            add_entries(f, 1, a, d, sum);
        else
            add_entries(f, 0, a, d, sum);
        for (spca_int c = 0; c < width; c++) g->G[a * g->k + b + c] += sum[c];
    }
}

static void strip_part(void *context, spca_int part)
{
    add_strip(context, part);
}

spca_status SPCA(multiply_strips)(const products_t *g, const scatter_t *s, spca_stop stop,
                                  void *ctx)
{
    const operator_t *A = g->A;
    strips_t f = {.g = g, .s = s};
    double entries = (double)entries_of(A) / (double)A->p * (double)g->m / (double)A->n;
    first_entries(g, s);
    for (; f.i0 < A->n; f.i0 += f.rows) {
        spca_status status;
        f.rows = min_int(SHORT, A->n - f.i0);
        fill_strips(&f);
        status = do_parts(A->run, entries * (double)(f.rows * g->k), strip_part, &f,
                          strips_of(g->k), stop, ctx);
        if (status < 0) return status;
        for (spca_int a = 0; a < g->k; a++) s->next[a] = s->end[a];
    }
    return SPCA_OK;
}
