/* gram.c - all of A = F'F factor, or A[index, index], in one pass over data without deflation.
 *
 * Dense data: F itself, some rows at a time that stay in cache, centered before they are
 * multiplied, so that no digit is lost to a large mean; then BLAS syrk, each block's sums being
 * added in double precision.
 *
 * Compressed data: with x_ij = range^2 weight_j u_i X_ij and m_j = range^2 weight_j mean_j,
 *     A_ab / factor = sum_i x_ia x_ib - t_a m_b - m_a t_b + (s's) m_a m_b,   t_a = sum_i s_i x_ia,
 * which loses the digits that a second moment has above the variance: the caller judges those.  The
 * products of pairs are scattered from the entries of a row.  A block of rows is copied first, with
 * the places of each column's entries in it: then row a of the sums stays in the first cache while
 * all rows of the block with an entry a are added to it.  Where a quarter of the entries are
 * stored, the rows are made dense instead. */
#include "centring.h"
#include <string.h>

enum {
    CACHED = 1 << 20,  /* bytes of F at a time, */
    FEWEST = 512,      /* but no fewer rows, for which syrk is fast */
    MOST = 1024,       /* and no more: their sums are in single precision, if the data are */
    PLACES = 4096,     /* compressed rows at a time, and */
    ENTRIES = 1 << 18, /* their entries */
    SHARE = 4          /* of the entries that are stored: then dense rows are faster */
};

typedef struct {
    const operator_t *A;
    spca_int k, rows; /* variables; rows of W at most */
    const spca_int *index;
    double *G;
    real *mean, *weight; /* (k): range mean, range weight */
    real *W;             /* rows x k */
    real *part;          /* k x k, in single precision: the sums of one block */
} products_t;

static spca_int rows_of(const operator_t *A, spca_int k)
{
    spca_int rows = CACHED / (k * (spca_int)sizeof(real));
    rows = rows < FEWEST ? FEWEST : min_int(rows, MOST);
    return min_int(rows, A->n);
}

/* Reals: mean, weight, W and part. */
static spca_int products_work(const operator_t *A, spca_int k)
{
    return k * (2 + rows_of(A, k) + (sizeof(real) < sizeof(double) ? k : 0));
}

static products_t products_of(const operator_t *A, spca_int k, const spca_int *index, real *work,
                              double *G)
{
    spca_int rows = rows_of(A, k);
    products_t g = {A, k, rows, index, G, work, work + k, work + 2 * k, work + (2 + rows) * k};
    for (spca_int a = 0; a < k; a++) {
        spca_int j = index ? index[a] : a;
        g.mean[a] = A->mean ? A->mean[j] * A->range : 0;
        g.weight[a] = column_weight(A, j);
    }
    memset(G, 0, (size_t)(k * k) * sizeof(*G));
    return g;
}

/* G += W W', W k x rows by columns, or W'W, rows x k: the entries b >= a of each row a. */
static void add_products(const products_t *g, spca_int rows, int by_columns)
{
    blas_int k = (blas_int)g->k, r = (blas_int)rows;
    real one = 1, zero = 0;
    void *G = g->G;
    int single = sizeof(real) < sizeof(double);
    SPCA(blas).syrk("L", by_columns ? "T" : "N", &k, &r, &one, g->W, by_columns ? &r : &k,
                    single ? &zero : &one, single ? g->part : (real *)G, &k);
    for (spca_int a = 0; single && a < g->k; a++)
        for (spca_int b = a; b < g->k; b++) g->G[a * g->k + b] += (double)g->part[a * g->k + b];
}

/* Times factor, and both triangles. */
static spca_status finish_products(const products_t *g)
{
    spca_int k = g->k;
    double factor = (double)g->A->factor;
    int bad = 0;
    for (spca_int a = 0; a < k; a++)
        for (spca_int b = a; b < k; b++) {
            double x = g->G[a * k + b] * factor;
            bad |= !(fabs(x) <= (double)REAL_MAX);
            g->G[a * k + b] = g->G[b * k + a] = x;
        }
    return bad ? SPCA_NONFINITE : SPCA_OK;
}

/* ---- dense ------------------------------------------------------------------------------------
 */

/* y_a = (u x_a - s mean_a) weight_a */
VECTORIZED static void centered(spca_int k, const spca_int *index, const real *x, real u, real s,
                                const real *mean, const real *weight, real *restrict y)
{
    if (index)
        for (spca_int a = 0; a < k; a++) y[a] = (u * x[index[a]] - s * mean[a]) * weight[a];
    else
        for (spca_int a = 0; a < k; a++) y[a] = (u * x[a] - s * mean[a]) * weight[a];
}

spca_status SPCA(dense_gram)(const operator_t *A, spca_int k, const spca_int *index, spca_stop stop,
                             void *ctx, void *work, double *G)
{
    products_t g = products_of(A, k, index, work, G);
    for (spca_int i0 = 0; i0 < A->n; i0 += g.rows) {
        spca_int rows = min_int(g.rows, A->n - i0);
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (spca_int i = i0; A->row_major && i < i0 + rows; i++)
            centered(k, index, A->data + i * A->ld, row_weight(A, i) * A->range, row_center(A, i),
                     g.mean, g.weight, g.W + (i - i0) * k);
        for (spca_int a = 0; !A->row_major && a < k; a++) {
            const real *x = A->data + (index ? index[a] : a) * A->ld + i0;
            real *y = g.W + a * rows, m = g.mean[a], w = g.weight[a];
            for (spca_int i = 0; i < rows; i++)
                y[i] = (x[i] * A->range * row_weight(A, i0 + i) - m * row_center(A, i0 + i)) * w;
        }
        add_products(&g, rows, !A->row_major);
    }
    return finish_products(&g);
}

spca_int SPCA(dense_gram_work)(const operator_t *A, spca_int k)
{
    return products_work(A, k) * (spca_int)sizeof(real);
}

/* ---- compressed -------------------------------------------------------------------------------
 */

typedef struct {
    spca_int capacity; /* entries of a block */
    double *total;     /* (k): t */
    spca_int *next;    /* (k), of CSC: the first entry of each column that is not read yet */
    real *value;       /* (capacity): the entries of a block, row by row, */
    uint16_t *place;   /* and which of the k variables each is of */
    int32_t *first;    /* (PLACES + 1): of a row */
    int32_t *where;    /* (capacity): the entries variable by variable, */
    int32_t *last;     /* and the end of the row of each */
    int32_t *start;    /* (k + 1): of a variable */
    int32_t *position; /* (p): of a variable in the list, or -1 */
    int32_t *length;   /* (n), of CSC: entries of a row */
    real *work;        /* of products_of */
} scatter_t;

static spca_int entries_of(const operator_t *A)
{
    return at(A->indptr, A->wide, A->row_major ? A->n : A->p);
}

static int is_full(const operator_t *A)
{
    return entries_of(A) >= A->n / SHARE * A->p;
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
    CUT(work, products_work(A, k));
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

/* Entry q of X, in row i and of variable a, becomes entry e of the block. */
static inline void copy_entry(const products_t *g, const scatter_t *s, spca_int q, spca_int i,
                              spca_int a, spca_int e)
{
    const operator_t *A = g->A;
    s->value[e] = A->data[q] * A->range * row_weight(A, i) * g->weight[a];
    s->place[e] = (uint16_t)a;
    s->total[a] += (double)s->value[e] * (double)row_center(A, i);
}

static void copy_rows(const products_t *g, const scatter_t *s, spca_int i0, spca_int rows)
{
    const operator_t *A = g->A;
    int32_t e = 0;
    for (spca_int i = i0; i < i0 + rows; i++) {
        spca_int last = at(A->indptr, A->wide, i + 1);
        s->first[i - i0] = e;
        for (spca_int q = at(A->indptr, A->wide, i); q < last; q++) {
            spca_int a = s->position[at(A->indices, A->wide, q)];
            if (a >= 0) copy_entry(g, s, q, i, a, e++);
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
            copy_entry(g, s, s->next[a], i, a, end[i - i0]++);
        }
    }
}

/* G_ab += x_ia x_ib for b >= a */
static void scatter_pairs(const products_t *g, const scatter_t *s, spca_int rows)
{
    int32_t *start = s->start, entries = s->first[rows];
    memset(start, 0, (size_t)(g->k + 1) * sizeof(*start));
    for (int32_t e = 0; e < entries; e++) start[s->place[e] + 1]++;
    for (spca_int a = 0; a < g->k; a++) start[a + 1] += start[a];
    for (spca_int i = 0; i < rows; i++)
        for (int32_t e = s->first[i]; e < s->first[i + 1]; e++) {
            int32_t t = start[s->place[e]]++;
            s->where[t] = e;
            s->last[t] = s->first[i + 1];
        }
    for (spca_int a = 0; a < g->k; a++) {
        double *row = g->G + a * g->k;
        for (int32_t t = a ? start[a - 1] : 0; t < start[a]; t++) {
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

/* The rows of the block, centered, into W and from there to G. */
static void add_dense_rows(const products_t *g, const scatter_t *s, spca_int i0, spca_int rows)
{
    for (spca_int r = 0; r < rows; r++) {
        real *y = g->W + r * g->k, center = row_center(g->A, i0 + r);
        for (spca_int a = 0; a < g->k; a++) y[a] = -center * g->mean[a] * g->weight[a];
        for (int32_t e = s->first[r]; e < s->first[r + 1]; e++) y[s->place[e]] += s->value[e];
    }
    add_products(g, rows, 0);
}

static void remove_means(const products_t *g, const scatter_t *s)
{
    double count = 0;
    for (spca_int i = 0; i < g->A->n; i++) {
        double center = (double)row_center(g->A, i);
        count += center * center;
    }
    for (spca_int a = 0; g->A->mean && a < g->k; a++) {
        double m = (double)g->mean[a] * (double)g->weight[a], rest = count * m - s->total[a];
        for (spca_int b = a; b < g->k; b++)
            g->G[a * g->k + b] +=
                rest * ((double)g->mean[b] * (double)g->weight[b]) - m * s->total[b];
    }
}

spca_status SPCA(compressed_gram)(const operator_t *A, spca_int k, const spca_int *index,
                                  spca_stop stop, void *ctx, void *work, double *G)
{
    scatter_t s;
    products_t g;
    int full = is_full(A);
    cut(A, k, work, &s);
    g = products_of(A, k, index, s.work, G);
    memset(s.total, 0, (size_t)k * sizeof(*s.total));
    for (spca_int j = 0; j < A->p; j++) s.position[j] = index ? -1 : (int32_t)j;
    for (spca_int a = 0; index && a < k; a++) s.position[index[a]] = (int32_t)a;
    if (!A->row_major) {
        memset(s.length, 0, (size_t)A->n * sizeof(*s.length));
        for (spca_int a = 0; a < k; a++) {
            spca_int j = index ? index[a] : a, last = at(A->indptr, A->wide, j + 1);
            s.next[a] = at(A->indptr, A->wide, j);
            for (spca_int q = s.next[a]; q < last; q++) s.length[at(A->indices, A->wide, q)]++;
        }
    }
    for (spca_int i0 = 0, rows; i0 < A->n; i0 += rows) {
        rows = rows_from(A, &s, full ? g.rows : PLACES, i0);
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        if (A->row_major)
            copy_rows(&g, &s, i0, rows);
        else
            copy_columns(&g, &s, i0, rows);
        if (full)
            add_dense_rows(&g, &s, i0, rows);
        else
            scatter_pairs(&g, &s, rows);
    }
    if (!full) remove_means(&g, &s);
    return finish_products(&g);
}
