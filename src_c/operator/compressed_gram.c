/* compressed_gram.c - A[index[:m], index] of data in CSR and CSC, in one pass.
 *
 * With x_ij = range^2 weight_j u_i X_ij and m_j = range^2 weight_j mean_j,
 *     A_ab / factor = sum_i x_ia x_ib - t_a m_b - m_a t_b + (s's) m_a m_b,   t_a = sum_i s_i x_ia,
 * which loses the digits that a second moment has above the variance: the caller judges those.  The
 * products of pairs are scattered from the entries of a row.  A block of rows is copied first, with
 * the places of each column's entries in it: then row a of the sums stays in the first cache while
 * all rows of the block with an entry a are added to it.  Where a quarter of the entries of these
 * columns are stored, the rows are made dense instead; where a twelfth is, of data stored by
 * columns, the rows of some variables at a time are dense, and entry x_ia adds x_ia times row i to
 * row a of the sums, which stays in registers.  Where few variables are asked for of data stored by
 * columns, they are made dense, and every column is multiplied with them. */
#include "gram.h"
#include <string.h>

enum {
    PLACES = 4096,     /* compressed rows at a time, and */
    ENTRIES = 1 << 18, /* their entries */
    PARTS = 64,        /* of the variables of a block, */
    PAIR = 8,          /* and bytes of loops that do_parts knows which take as long as a pair */
    SHARE = 4,         /* of the entries that are stored: then dense rows are faster, */
    SAMPLE = 1 << 18,  /* as so many entries of CSR show */
    SPARSE = 12,       /* then rows of some variables are; */
    SHORT = 256,       /* of so many samples: a strip stays in the first cache */
    WIDE = 16,         /* variables made dense at a time, and the centers of rows, */
    FEW = 3,           /* times at most, */
    GROUPED = WIDE * sizeof(double) / sizeof(doubles_t) /* as so many vectors */
};

typedef struct {
    spca_int capacity; /* entries of a block */
    double *total;     /* (k): t */
    spca_int *next;    /* (k), of CSC: the first entry of each column that is not read yet */
    real *value;       /* (capacity): the entries of a block, row by row, */
    uint16_t *place;   /* and which of the k variables each is of */
    int32_t *first;    /* (PLACES + 1): of a row */
    int32_t *where;    /* (capacity): the entries variable by variable, */
    int32_t *last;     /* and the end of the row of each */
    int32_t *start;    /* (m + 1): of a variable */
    int32_t *position; /* (p): of a variable in the list, or -1 */
    int32_t *length;   /* (n), of CSC: entries of a row; 0 if none is of the first m variables */
    double *few;       /* (PLACES x WIDE), of CSC: a block of rows of few variables */
    double *strips;    /* (strips x SHORT x WIDE), of CSC: of all, WIDE of them in a strip */
    spca_int *end;     /* (k), of CSC: where the entries in the block end */
    real *work;        /* of products_of */
} scatter_t;

static spca_int strips_of(spca_int k)
{
    return (k - 1) / WIDE + 1;
}

static spca_int entries_of(const operator_t *A)
{
    return at(A->indptr, A->wide, A->row_major ? A->n : A->p);
}

/* Which share of the entries of these columns is stored; position (p) says which they are. */
static double share_of(const operator_t *A, spca_int k, const spca_int *index,
                       const int32_t *position)
{
    spca_int entries = 0, rows = 0, last;
    if (!index) return (double)entries_of(A) / ((double)A->n * (double)A->p);
    if (!A->row_major) {
        for (spca_int a = 0; a < k; a++)
            entries += at(A->indptr, A->wide, index[a] + 1) - at(A->indptr, A->wide, index[a]);
        return (double)entries / ((double)A->n * (double)k);
    }
    while (rows < A->n && at(A->indptr, A->wide, rows) < SAMPLE) rows++;
    last = at(A->indptr, A->wide, rows);
    for (spca_int q = 0; q < last; q++) entries += position[at(A->indices, A->wide, q)] >= 0;
    return (double)entries / ((double)rows * (double)k);
}

/* Cuts the work into its arrays; returns their bytes. */
static spca_int cut(const operator_t *A, spca_int k, char *work, scatter_t *s)
{
    spca_int across = !A->row_major, bytes = 0;
    s->capacity = A->p > ENTRIES ? A->p : ENTRIES;
#define CUT(field, count)                                                                          \
    s->field = work ? (void *)(work + bytes) : NULL;                                               \
    bytes += ((spca_int)sizeof(*s->field) * (count) + 15) / 16 * 16
    CUT(total, k);
    CUT(next, across ? k : 0);
    CUT(work, SPCA(products_work)(A, k));
    CUT(few, across ? min_int(PLACES, A->n) * WIDE : 0);
    CUT(strips, across ? min_int(SHORT, A->n) * WIDE * strips_of(k) : 0);
    CUT(end, across ? k : 0);
    CUT(value, s->capacity);
    CUT(where, s->capacity);
    CUT(last, s->capacity);
    CUT(first, PLACES + 1);
    CUT(start, k + 1);
    CUT(position, A->p);
    CUT(length, across ? A->n : 0);
    CUT(place, s->capacity);
#undef CUT
    return bytes;
}

spca_int SPCA(compressed_gram_work)(const operator_t *A, spca_int k)
{
    scatter_t s;
    return cut(A, k, NULL, &s);
}

/* Which rows from i0 make a block: fewer than it has room for, but one. */
static spca_int rows_from(const operator_t *A, const scatter_t *s, spca_int most, spca_int i0)
{
    spca_int i = i0, entries = 0;
    for (; i < A->n && i - i0 < most; i++) {
        entries +=
            A->row_major ? at(A->indptr, A->wide, i + 1) - at(A->indptr, A->wide, i) : s->length[i];
        if (i > i0 && entries > s->capacity) break;
    }
    return i - i0;
}

/* u_i x_ia of entry q of X, in row i and of variable a. */
static inline real scaled(const products_t *g, spca_int q, spca_int i, spca_int a)
{
    return g->A->data[q] * g->A->range * row_weight(g->A, i) * g->weight[a];
}

/* That becomes entry e of the block. */
static inline void copy_entry(const products_t *g, const scatter_t *s, spca_int q, spca_int i,
                              spca_int a, spca_int e)
{
    s->value[e] = scaled(g, q, i, a);
    s->place[e] = (uint16_t)a;
    s->total[a] += (double)s->value[e] * (double)row_center(g->A, i);
}

/* Of each row, the entries of the first m variables are first. */
static void copy_rows(const products_t *g, const scatter_t *s, spca_int i0, spca_int rows)
{
    const operator_t *A = g->A;
    int32_t e = 0;
    for (spca_int i = i0; i < i0 + rows; i++) {
        spca_int start = at(A->indptr, A->wide, i), last = at(A->indptr, A->wide, i + 1);
        s->first[i - i0] = e;
        for (spca_int q = start; q < last; q++) {
            spca_int a = s->position[at(A->indices, A->wide, q)];
            if (a >= 0 && a < g->m) copy_entry(g, s, q, i, a, e++);
        }
        for (spca_int q = start; g->m < g->k && q < last; q++) {
            spca_int a = s->position[at(A->indices, A->wide, q)];
            if (a >= g->m) copy_entry(g, s, q, i, a, e++);
        }
    }
    s->first[rows] = e;
}

static void copy_columns(const products_t *g, const scatter_t *s, spca_int i0, spca_int rows)
{
    const operator_t *A = g->A;
    int32_t *end = s->where; /* of what is copied of each row */
    s->first[0] = 0;
    for (spca_int i = 0; i < rows; i++) {
        end[i] = s->first[i];
        s->first[i + 1] = s->first[i] + s->length[i0 + i];
    }
    for (spca_int a = 0; a < g->k; a++) {
        spca_int j = g->index ? g->index[a] : a, last = at(A->indptr, A->wide, j + 1);
        for (; s->next[a] < last; s->next[a]++) {
            spca_int i = at(A->indices, A->wide, s->next[a]);
            if (i >= i0 + rows) break;
            if (s->length[i])
                copy_entry(g, s, s->next[a], i, a, end[i - i0]++);
            else
                s->total[a] += (double)scaled(g, s->next[a], i, a) * (double)row_center(A, i);
        }
    }
}

/* The entries of the first m variables in the block, variable by variable; how many pairs. */
static double order_entries(const products_t *g, const scatter_t *s, spca_int rows)
{
    int32_t *start = s->start, entries = s->first[rows];
    double pairs = 0;
    memset(start, 0, (size_t)(g->m + 1) * sizeof(*start));
    for (int32_t e = 0; e < entries; e++)
        if (s->place[e] < g->m) start[s->place[e] + 1]++;
    for (spca_int a = 0; a < g->m; a++) start[a + 1] += start[a];
    for (spca_int i = 0; i < rows; i++) {
        int32_t last = s->first[i + 1];
        for (int32_t e = s->first[i]; e < last && s->place[e] < g->m; e++) {
            int32_t t = start[s->place[e]]++;
            s->where[t] = e;
            s->last[t] = last;
            pairs += last - e;
        }
    }
    return pairs;
}

typedef struct {
    const products_t *g;
    const scatter_t *s;
    spca_int step; /* variables of a part */
} pairs_t;

/* G_ab += x_ia x_ib of some a, for the entries b from that of a in a row */
static void pairs_part(void *context, spca_int part)
{
    const pairs_t *q = context;
    const products_t *g = q->g;
    const scatter_t *s = q->s;
    for (spca_int a = part * q->step; a < min_int(g->m, (part + 1) * q->step); a++) {
        double *row = g->G + a * g->k;
        for (int32_t t = a ? s->start[a - 1] : 0; t < s->start[a]; t++) {
            const real *value = s->value;
            const uint16_t *place = s->place;
            int32_t e = s->where[t], last = s->last[t];
            double x = (double)value[e];
            for (; e + 4 <= last; e += 4) { /* four different places: no sum waits for another */
                double y0 = row[place[e]] + x * (double)value[e];
                double y1 = row[place[e + 1]] + x * (double)value[e + 1];
                double y2 = row[place[e + 2]] + x * (double)value[e + 2];
                double y3 = row[place[e + 3]] + x * (double)value[e + 3];
                row[place[e]] = y0;
                row[place[e + 1]] = y1;
                row[place[e + 2]] = y2;
                row[place[e + 3]] = y3;
            }
            for (; e < last; e++) row[place[e]] += x * (double)value[e];
        }
    }
}

static spca_status scatter_pairs(const products_t *g, const scatter_t *s, spca_int rows,
                                 spca_stop stop, void *ctx)
{
    pairs_t q = {g, s, g->m / PARTS + 1};
    double pairs = order_entries(g, s, rows);
    return do_parts(g->A->run, pairs * PAIR, pairs_part, &q, (g->m + q.step - 1) / q.step, stop,
                    ctx);
}

/* The rows of the block, centered, into W and from there to G. */
static spca_status add_dense_rows(products_t *g, const scatter_t *s, spca_int i0, spca_int rows,
                                  spca_stop stop, void *ctx)
{
    g->rows = rows;
    for (spca_int r = 0; r < rows; r++) {
        real *y = g->W + r * g->k, center = row_center(g->A, i0 + r);
        for (spca_int a = 0; a < g->k; a++) y[a] = -center * g->mean[a] * g->weight[a];
        for (int32_t e = s->first[r]; e < s->first[r + 1]; e++) y[s->place[e]] += s->value[e];
    }
    return SPCA(add_products)(g, stop, ctx);
}

/* ---- few variables, of CSC: d_ia = u_i x_ia of a block of rows, and u_i s_i in the last place */

typedef struct {
    const products_t *g;
    const scatter_t *s;
    spca_int a0, count, lanes; /* of d: variables from a0, and numbers of a row */
    spca_int i0, rows, step;   /* of the block; variables of a part */
} few_t;

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

/* sum_c += weight x_i d_ic over the entries of a column in the block; returns where they end. */
INLINE spca_int add_few(const few_t *f, const int wide, const int groups, spca_int q, spca_int last,
                        real weight, double *result)
{
    const operator_t *A = f->g->A;
    const doubles_t *d = (const doubles_t *)f->s->few;
    doubles_t sum[GROUPED] = {0}, other[GROUPED] = {0}; /* no sum waits for another */
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

INLINE spca_int add_lanes(const few_t *f, const int wide, spca_int q, spca_int last, real weight,
                          double *result)
{
    if (f->lanes == WIDE / 4) return add_few(f, wide, GROUPED / 4, q, last, weight, result);
    if (f->lanes == WIDE / 2) return add_few(f, wide, GROUPED / 2, q, last, weight, result);
    return add_few(f, wide, GROUPED, q, last, weight, result);
}

/* G_ab += sum of x_ia x_ib over the block, of all few a and some b; i686 has no address of it. */
VECTORIZED static void add_block(const few_t *f, spca_int part)
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

static void first_entries(const products_t *g, const scatter_t *s)
{
    for (spca_int a = 0; a < g->k; a++)
        s->next[a] = at(g->A->indptr, g->A->wide, g->index ? g->index[a] : a);
}

static spca_status multiply_few(const products_t *g, const scatter_t *s, spca_stop stop, void *ctx)
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
    spca_int i0, rows; /* of the block */
} strips_t;

/* The block, and where the entries of each variable end there. */
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

/* sum_b += x_ia d_ib over the entries of variable a in the block */
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

/* G_ab += sum_i x_ia x_ib over the block, of the variables b of a strip and all a up to them. */
VECTORIZED static void add_strip(const strips_t *f, spca_int part)
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

static spca_status add_rows(const products_t *g, const scatter_t *s, spca_stop stop, void *ctx)
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

/* And the triangles become one: the entries of a row are in order of column, not of a list. */
static void remove_means(const products_t *g, const scatter_t *s)
{
    double count = 0;
    for (spca_int a = 0; g->index && g->A->row_major && a < g->m; a++)
        for (spca_int b = a + 1; b < g->m; b++) g->G[a * g->k + b] += g->G[b * g->k + a];
    for (spca_int i = 0; i < g->A->n; i++) {
        double center = (double)row_center(g->A, i);
        count += center * center;
    }
    for (spca_int a = 0; g->A->mean && a < g->m; a++) {
        double m = (double)g->mean[a] * (double)g->weight[a], rest = count * m - s->total[a];
        for (spca_int b = a; b < g->k; b++)
            g->G[a * g->k + b] +=
                rest * ((double)g->mean[b] * (double)g->weight[b]) - m * s->total[b];
    }
}

spca_status SPCA(compressed_gram)(const operator_t *A, spca_int m, spca_int k,
                                  const spca_int *index, spca_stop stop, void *ctx, void *work,
                                  double *G)
{
    scatter_t s;
    products_t g;
    int full, few;
    double share;
    cut(A, k, work, &s);
    g = SPCA(products_of)(A, m, k, index, s.work, G);
    memset(s.total, 0, (size_t)k * sizeof(*s.total));
    for (spca_int j = 0; j < A->p; j++) s.position[j] = index ? -1 : (int32_t)j;
    for (spca_int a = 0; index && a < k; a++) s.position[index[a]] = (int32_t)a;
    share = share_of(A, k, index, s.position);
    full = SHARE * share >= 1;
    few = m < FEW * WIDE && 4 * m <= k;
    if (!A->row_major && !full && (few || SPARSE * share >= 1)) {
        spca_status status = few ? multiply_few(&g, &s, stop, ctx) : add_rows(&g, &s, stop, ctx);
        if (status < 0) return status;
        remove_means(&g, &s);
        return SPCA(finish_products)(&g);
    }
    if (!A->row_major) {
        memset(s.length, 0, (size_t)A->n * sizeof(*s.length));
        first_entries(&g, &s);
        for (spca_int a = 0; a < k; a++) {
            spca_int j = index ? index[a] : a, last = at(A->indptr, A->wide, j + 1);
            for (spca_int q = s.next[a]; q < last; q++) {
                int32_t *length = s.length + at(A->indices, A->wide, q);
                *length += full || a < m || *length;
            }
        }
    }
    for (spca_int i0 = 0, rows; i0 < A->n; i0 += rows) {
        spca_status status;
        rows = rows_from(A, &s, full ? SPCA_GROUP : PLACES, i0);
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        if (A->row_major)
            copy_rows(&g, &s, i0, rows);
        else
            copy_columns(&g, &s, i0, rows);
        if (full)
            status = add_dense_rows(&g, &s, i0, rows, stop, ctx);
        else
            status = scatter_pairs(&g, &s, rows, stop, ctx);
        if (status < 0) return status;
    }
    if (!full) remove_means(&g, &s);
    return SPCA(finish_products)(&g);
}
