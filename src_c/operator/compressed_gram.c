/* compressed_gram.c - A[index[:m], index] of data in CSR and CSC, in one pass.
 *
 * With x_ij = range^2 weight_j u_i X_ij and m_j = range^2 weight_j mean_j,
 *     A_ab / factor = sum_i x_ia x_ib - t_a m_b - m_a t_b + (s's) m_a m_b,   t_a = sum_i s_i x_ia,
 * which loses the digits that a second moment has above the variance: the caller judges those.  The
 * products of pairs are scattered from the entries of a row.  A block of rows is copied first, with
 * the places of each column's entries in it: then row a of the sums stays in the first cache while
 * all rows of the block with an entry a are added to it.  In CSR, some variables may be dense
 * (dense_columns.c).  Where a quarter of the entries of these columns are stored, all rows are;
 * where a twelfth is, of data stored by columns, the rows of some variables at a time are dense,
 * and entry x_ia adds x_ia times row i to row a of the sums, which stays in registers.  Where few
 * variables are asked for of data stored by columns, they are made dense, and every column is
 * multiplied with them. */
#include "scatter.h"
#include <string.h>

enum {
    BLOCK = 8192,      /* rows at a time, and */
    ENTRIES = 1 << 20, /* their entries */
    AHEAD = 3,         /* rows of a variable whose first entries are fetched before their turn */
    SHARE = 4,         /* of the entries that are stored: then dense rows are faster, */
    SAMPLE = 1 << 18,  /* as so many entries of CSR show */
    SPARSE = 12,       /* then rows of some variables are; */
    FEW = 3            /* times WIDE variables at most */
};

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
    spca_int across = !A->row_major, dense = across ? 0 : most_dense(k), bytes = 0;
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
    CUT(first, BLOCK + 1);
    CUT(start, k + 1);
    CUT(position, A->p);
    CUT(length, across ? A->n : 0);
    CUT(place, s->capacity);
    CUT(list, dense);
    CUT(among, dense ? k : 0);
    CUT(row, dense ? s->capacity : 0);
    CUT(entry, dense ? s->capacity : 0);
    CUT(begin, dense ? k : 0);
    CUT(end_of, dense ? k : 0);
    CUT(across, k * dense);
    CUT(inside, dense * dense);
    CUT(room, dense ? SPCA(products_work)(A, dense) : 0);
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

/* That becomes entry e of the block. */
static inline void copy_entry(const products_t *g, const scatter_t *s, spca_int q, spca_int i,
                              spca_int a, spca_int e)
{
    s->value[e] = scaled(g, q, i, a);
    s->place[e] = (uint16_t)a;
    s->total[a] += (double)s->value[e] * (double)row_center(g->A, i);
}

/* With the entries of dense variables in rows of their own. */
static void copy_mixed_rows(const products_t *g, const products_t *dense, const scatter_t *s,
                            spca_int i0)
{
    const operator_t *A = g->A;
    int32_t e = 0;
    memset(dense->W, 0, (size_t)(dense->rows * dense->k) * sizeof(real));
    for (spca_int r = 0; r < dense->rows; r++) {
        real *y = dense->W + r * dense->k;
        spca_int i = i0 + r, last = at(A->indptr, A->wide, i + 1);
        s->first[r] = e;
        for (spca_int q = at(A->indptr, A->wide, i); q < last; q++) {
            spca_int a = s->position[at(A->indices, A->wide, q)], c = a < 0 ? -1 : s->among[a];
            if (c >= 0) {
                y[c] = scaled(g, q, i, a);
                s->total[a] += (double)y[c] * (double)row_center(A, i);
            } else if (a >= 0) {
                copy_entry(g, s, q, i, a, e++);
            }
        }
    }
    s->first[dense->rows] = e;
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
            if (!s->dense) continue;
            s->row[t] = (int32_t)i;
            s->entry[t] = s->value[e];
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
            int32_t next = s->where[t + AHEAD < s->start[a] ? t + AHEAD : t];
            for (int line = 0; line < 2; line++) {
                FETCH_CLOSE((uintptr_t)(value + next) + (uintptr_t)(64 * line));
                FETCH_CLOSE((uintptr_t)(place + next) + (uintptr_t)(64 * line));
            }
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

/* All of the data in CSR, some variables being made dense. */
static spca_status scatter_mixed(const products_t *g, products_t *dense, const scatter_t *s,
                                 spca_stop stop, void *ctx)
{
    spca_int most = min_int(BLOCK, dense->rows);
    for (spca_int i0 = 0; i0 < g->A->n; i0 += dense->rows) {
        spca_status status;
        dense->rows = rows_from(g->A, s, most, i0);
        copy_mixed_rows(g, dense, s, i0);
        status = scatter_pairs(g, s, dense->rows, stop, ctx);
        if (status >= 0) status = SPCA(add_across)(dense, s, g->k, stop, ctx);
        if (status < 0) return status;
    }
    SPCA(join_dense)(g, s);
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
    scatter_t s = {0};
    products_t g, dense;
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
        spca_status status =
            few ? SPCA(multiply_few)(&g, &s, stop, ctx) : SPCA(multiply_strips)(&g, &s, stop, ctx);
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
    if (A->row_major && !full && m == k) dense = SPCA(choose_dense)(&g, &s);
    if (s.dense) {
        spca_status status = scatter_mixed(&g, &dense, &s, stop, ctx);
        if (status < 0) return status;
    }
    for (spca_int i0 = 0, rows; !s.dense && i0 < A->n; i0 += rows) {
        spca_status status;
        rows = rows_from(A, &s, full ? SPCA_GROUP : BLOCK, i0);
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
