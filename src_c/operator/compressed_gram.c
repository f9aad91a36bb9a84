/* compressed_gram.c - A[index[:m], index] of data in CSR and CSC, in one pass.
 *
 * With x_ij = range^2 weight_j u_i X_ij and m_j = range^2 weight_j mean_j,
 *     A_ab / factor = sum_i x_ia x_ib - t_a m_b - m_a t_b + (s's) m_a m_b,   t_a = sum_i s_i x_ia.
 * This loses the digits that a second moment has above the variance; the caller judges whether that
 * matters.
 *
 * There are five ways to the sums, by how many entries of these columns are stored:
 *     - pairs: the products of the entries of each row are scattered.  A block of rows is copied
 *       first, with the places of each column's entries in it.  Then row a of the sums stays in the
 *       first cache while all rows of the block with an entry a are added to it;
 *     - pairs, but in CSR the fullest variables are made dense (dense_columns.c);
 *     - a quarter is stored: all rows are made dense, centered, and multiplied as dense data;
 *     - a twelfth is stored, in CSC: the rows of some variables at a time are dense, and entry x_ia
 *       adds x_ia times row i to row a of the sums, which stays in registers (column_products.c);
 *     - few variables are asked for, in CSC: these are dense, and every column is multiplied with
 *       them (column_products.c). */
#include "scatter.h"
#include <string.h>

enum {
    BLOCK = 4 * SPCA_LEAST(2048),       /* rows of a block, at most, */
    ENTRIES = 64 * SPCA_LEAST(1 << 14), /* and entries, unless one row has more */
    ENTRY = 3 * PAIR, /* bytes, for do_parts, that take as long as copying an entry */
    AHEAD = 3,        /* a variable's rows are fetched this many before their turn */
    SHARE = 4,        /* rows are dense where 1/SHARE of the entries is stored, */
    SAMPLE = 1 << 18, /* which about SAMPLE entries of CSR show; */
    SPARSE = 12,      /* by strips where 1/SPARSE is, in CSC; */
    FEW = 3           /* and `few` are less than FEW WIDE variables */
};

/* The share of the entries of these columns that is stored; in CSR, a sample of the first rows
 * shows it.  position (p): which columns they are. */
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

/* Cuts the work into arrays, or without work only counts; returns their bytes. */
static spca_int cut(const operator_t *A, spca_int k, char *work, scatter_t *s)
{
    spca_int across = !A->row_major, rows = across ? 0 : k, bytes = 0;
    s->capacity = A->p > ENTRIES ? A->p : ENTRIES;
#define CUT(field, count)                                                                          \
    s->field = work ? (void *)(work + bytes) : NULL;                                               \
    bytes += ((spca_int)sizeof(*s->field) * (count) + 15) / 16 * 16
    CUT(total, k);
    CUT(part, SECTIONS * k);
    CUT(next, across ? k : 0);
    CUT(work, SPCA(products_work)(A, k));
    CUT(few, across ? min_int(PLACES, A->n) * WIDE : 0);
    CUT(strips, across ? min_int(SHORT, A->n) * WIDE * strips_of(k) : 0);
    CUT(end, across ? k : 0);
    CUT(value, s->capacity);
    CUT(where, s->capacity);
    CUT(last, s->capacity);
    CUT(first, BLOCK + SECTIONS);
    CUT(start, SECTIONS * (k + 2));
    CUT(position, A->p);
    CUT(length, across ? A->n : 0);
    CUT(place, s->capacity);
    CUT(from, rows);
    CUT(list, rows);
    CUT(begin, across ? 0 : SLICES * (k + 1));
    CUT(entry, across ? 0 : s->capacity);
    CUT(row, across ? 0 : s->capacity);
#undef CUT
    return bytes;
}

spca_int SPCA(compressed_gram_work)(const operator_t *A, spca_int k)
{
    scatter_t s;
    return cut(A, k, NULL, &s);
}

/* The block from row i0: at most `most` rows with at most `capacity` entries, but one row at least.
 */
static void begin_block(const operator_t *A, scatter_t *s, spca_int most, spca_int i0)
{
    spca_int i = i0, entries = 0;
    s->entries = 0;
    for (; i < A->n && i - i0 < most; i++) {
        entries +=
            A->row_major ? at(A->indptr, A->wide, i + 1) - at(A->indptr, A->wide, i) : s->length[i];
        if (i > i0 && entries > s->capacity) break;
        s->entries = entries;
    }
    s->i0 = i0;
    s->rows = i - i0;
    s->step = (s->rows - 1) / SECTIONS + 1;
    if (s->stored) s->step = (s->step + SLICE - 1) / SLICE * SLICE;
}

/* Entry q of X, in row i and of variable a, becomes entry e of the block. */
static inline void copy_entry(const products_t *g, const scatter_t *s, const section_t *f,
                              spca_int q, spca_int i, spca_int a, spca_int e)
{
    s->value[e] =
        s->full ? g->A->data[q] * g->A->range * before_center(g->A, i) : scaled(g, q, i, a);
    s->place[e] = (uint16_t)a;
    f->total[a] += (double)s->value[e] * (double)row_center(g->A, i);
}

/* CSR: the entries of a section, row by row; in each row, those of the first m variables come
 * first, which order_entries relies on. */
static void copy_rows(const products_t *g, const scatter_t *s, const section_t *f)
{
    const operator_t *A = g->A;
    int32_t e = f->first[0];
    for (spca_int r = 0; r < f->rows; r++) {
        spca_int i = s->i0 + f->r0 + r;
        spca_int start = at(A->indptr, A->wide, i), last = at(A->indptr, A->wide, i + 1);
        f->first[r] = e;
        for (spca_int q = start; q < last; q++) {
            spca_int a = s->position[at(A->indices, A->wide, q)];
            if (a >= 0 && a < g->m) copy_entry(g, s, f, q, i, a, e++);
        }
        for (spca_int q = start; g->m < g->k && q < last; q++) {
            spca_int a = s->position[at(A->indices, A->wide, q)];
            if (a >= g->m) copy_entry(g, s, f, q, i, a, e++);
        }
    }
    f->first[f->rows] = e;
}

/* CSC: the entries of a section, row by row, column after column.  A row without an entry of the
 * first m variables makes no pairs, so only its share of the totals is taken. */
static void copy_columns(const products_t *g, const scatter_t *s, const section_t *f)
{
    const operator_t *A = g->A;
    spca_int i0 = s->i0 + f->r0;
    int32_t *end = f->first + 1; /* end_r: where the next entry of row r goes */
    end[0] = f->first[0];
    for (spca_int r = 1; r < f->rows; r++) end[r] = end[r - 1] + s->length[i0 + r - 1];
    for (spca_int a = 0; a < g->k; a++) {
        spca_int j = g->index ? g->index[a] : a, last = at(A->indptr, A->wide, j + 1);
        spca_int q = s->next[a];
        if (f->r0 > 0) q = place_of(A->indices, A->wide, q, min_int(last, q + f->r0), i0);
        for (; q < last; q++) {
            spca_int i = at(A->indices, A->wide, q);
            if (i >= i0 + f->rows) break;
            if (s->length[i])
                copy_entry(g, s, f, q, i, a, end[i - i0]++);
            else
                f->total[a] += (double)scaled(g, q, i, a) * (double)row_center(A, i);
        }
        if (f->r0 + f->rows == s->rows) s->end[a] = q;
    }
}

/* Lists the entries of the first m variables in a section, variable by variable (a counting sort);
 * returns the number of pairs. */
static double order_entries(const products_t *g, const scatter_t *s, const section_t *f)
{
    int32_t *start = f->start + 1, entries = f->first[f->rows];
    double pairs = 0;
    memset(f->start, 0, (size_t)(g->m + 2) * sizeof(*start));
    for (int32_t e = f->first[0]; e < entries; e++)
        if (s->place[e] < g->m) start[s->place[e] + 1]++;
    f->start[0] = start[0] = f->first[0];
    for (spca_int a = 0; a < g->m; a++) start[a + 1] += start[a];
    for (spca_int r = 0; r < f->rows; r++) {
        int32_t last = f->first[r + 1];
        for (int32_t e = f->first[r]; e < last && s->place[e] < g->m; e++) {
            int32_t t = start[s->place[e]]++;
            s->where[t] = e;
            s->last[t] = last;
            pairs += last - e;
        }
    }
    return pairs;
}

/* The rows of a section, dense and centered, into W. */
static void fill_rows(const products_t *g, const scatter_t *s, const section_t *f)
{
    for (spca_int r = 0; r < f->rows; r++) {
        real *y = g->W + (f->r0 + r) * g->k, center = row_center(g->A, s->i0 + f->r0 + r);
        for (spca_int a = 0; a < g->k; a++) y[a] = -g->mean[a];
        for (int32_t e = f->first[r]; e < f->first[r + 1]; e++) y[s->place[e]] += s->value[e];
        for (spca_int a = 0; a < g->k; a++) y[a] *= center * g->weight[a];
    }
}

/* A block of rows. */
typedef struct {
    const products_t *g, *dense;
    const scatter_t *s;
    spca_int step; /* variables of a part */
    double pairs[SECTIONS];
} block_t;

/* Copies a section of the block, after as many entries as the rows before it have. */
static void section_part(void *context, spca_int part)
{
    block_t *b = context;
    const products_t *g = b->g;
    const scatter_t *s = b->s;
    section_t f = section_of(s, part, g->k);
    spca_int entries = 0;
    if (g->A->row_major)
        entries = at(g->A->indptr, g->A->wide, s->i0 + f.r0) - at(g->A->indptr, g->A->wide, s->i0);
    else
        for (spca_int r = 0; r < f.r0; r++) entries += s->length[s->i0 + r];
    f.first[0] = (int32_t)entries;
    memset(f.total, 0, (size_t)g->k * sizeof(*f.total));
    if (!g->A->row_major)
        copy_columns(g, s, &f);
    else if (s->stored)
        SPCA(copy_slices)(g, b->dense, s, &f);
    else
        copy_rows(g, s, &f);
    if (s->full)
        fill_rows(g, s, &f);
    else
        b->pairs[part] = order_entries(g, s, &f);
}

/* row_b += x_ia x_ib for variable a (row is G's row a), over its entries t to `end` in a section,
 * and for each of these over the entries b from it to the end of its row. */
static void add_pairs(const scatter_t *s, int32_t t, int32_t end, double *row)
{
    for (; t < end; t++) {
        const real *value = s->value;
        const uint16_t *place = s->place;
        int32_t e = s->where[t], last = s->last[t];
        double x = (double)value[e];
        int32_t next = s->where[t + AHEAD < end ? t + AHEAD : t];
        for (int line = 0; line < 2; line++) {
            FETCH_CLOSE((uintptr_t)(value + next) + (uintptr_t)(64 * line));
            FETCH_CLOSE((uintptr_t)(place + next) + (uintptr_t)(64 * line));
        }
        for (; e + 4 <= last;
             e += 4) { /* four different places, so that no sum waits for another */
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

/* The rows of G of a part of the variables, section by section in order. */
static void pairs_part(void *context, spca_int part)
{
    const block_t *b = context;
    const products_t *g = b->g;
    for (spca_int a = part * b->step; a < min_int(g->m, (part + 1) * b->step); a++)
        for (spca_int q = 0; q < sections_of(b->s); q++) {
            const int32_t *start = section_of(b->s, q, g->k).start + a;
            add_pairs(b->s, start[0], start[1], g->G + a * g->k);
        }
}

/* G += the products of a block; the totals += its sums. */
static spca_status add_block(products_t *g, products_t *dense, scatter_t *s, spca_stop stop,
                             void *ctx)
{
    block_t b = {g, dense, s, g->m / PARTS + 1, {0}};
    double pairs = 0;
    spca_status status = do_parts(g->A->run, (double)s->entries * ENTRY, section_part, &b,
                                  sections_of(s), stop, ctx);
    if (status < 0) return status;
    for (spca_int q = 0; q < sections_of(s); q++) {
        pairs += b.pairs[q];
        for (spca_int a = 0; a < g->k; a++) s->total[a] += s->part[q * g->k + a];
    }
    for (spca_int a = 0; !g->A->row_major && a < g->k; a++) s->next[a] = s->end[a];
    g->rows = dense->rows = s->rows;
    if (s->full) return SPCA(add_products)(g, stop, ctx);
    status =
        do_parts(g->A->run, pairs * PAIR, pairs_part, &b, (g->m + b.step - 1) / b.step, stop, ctx);
    if (status < 0 || !s->stored) return status;
    return SPCA(add_dense)(dense, g, s, stop, ctx);
}

/* Subtracts the means, by the formula at the top.  Before that, the triangles are added: the
 * entries of a row of CSR are in order of column, not of the list, so a pair may have been added
 * below the diagonal. */
static void remove_means(const products_t *g, const scatter_t *s)
{
    double count = 0;
    for (spca_int a = 0; g->index && g->A->row_major && a < g->m; a++)
        for (spca_int b = max_int(a + 1, s->dense); b < g->m; b++)
            g->G[a * g->k + b] += g->G[b * g->k + a];
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
    scatter_t s = {0};
    products_t g, dense = {0};
    int few;
    spca_int most;
    spca_status status;
    double share;
    cut(A, k, work, &s);
    g = SPCA(products_of)(A, m, k, index, s.work, G);
    memset(s.total, 0, (size_t)k * sizeof(*s.total));
    for (spca_int j = 0; j < A->p; j++) s.position[j] = index ? -1 : (int32_t)j;
    for (spca_int a = 0; index && a < k; a++) s.position[index[a]] = (int32_t)a;
    /* which of the ways */
    share = share_of(A, k, index, s.position);
    s.full = SHARE * share >= 1;
    few = m < FEW * WIDE && 4 * m <= k;
    if (!A->row_major && !s.full && (few || SPARSE * share >= 1)) {
        status =
            few ? SPCA(multiply_few)(&g, &s, stop, ctx) : SPCA(multiply_strips)(&g, &s, stop, ctx);
        if (status < 0) return status;
        remove_means(&g, &s);
        return SPCA(finish_products)(&g);
    }
    /* CSC by blocks of rows: the length of each row */
    if (!A->row_major) {
        memset(s.length, 0, (size_t)A->n * sizeof(*s.length));
        first_entries(&g, &s);
        for (spca_int a = 0; a < k; a++) {
            spca_int j = index ? index[a] : a, last = at(A->indptr, A->wide, j + 1);
            for (spca_int q = s.next[a]; q < last; q++) {
                int32_t *length = s.length + at(A->indices, A->wide, q);
                *length += s.full || a < m || *length;
            }
        }
    }
    /* the products, block by block */
    most = s.full ? SPCA_GROUP : BLOCK;
    if (A->row_major && !s.full && m == k) dense = SPCA(choose_dense)(&g, &s);
    if (s.stored) most = min_int(most, dense.rows);
    for (spca_int i0 = 0; i0 < A->n; i0 += s.rows) {
        begin_block(A, &s, most, i0);
        status = add_block(&g, &dense, &s, stop, ctx);
        if (status < 0) return status;
    }
    if (!s.full) remove_means(&g, &s);
    status = SPCA(finish_products)(&g);
    if (s.stored) SPCA(restore_order)(&s, k, G);
    return status;
}
