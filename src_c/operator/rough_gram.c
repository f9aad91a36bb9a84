/* rough_gram.c - A[index, index] of data in CSR and CSC in single precision, where searches race.
 *
 * Variables are put in order of the number of their entries, the fullest first.  In a block of
 * rows, a strip of variables is made dense, and each entry x_ia of a variable that is not fuller
 * adds x_ia times row i of the strip to the sums of a, which stay in registers.  So full variables
 * meet few strips, and those that meet many have few entries.  Sums of a block are made in single
 * precision, and added to those of the blocks before.  The means, which compressed_gram.c explains,
 * follow in double precision; a caller has to see that they hide no variance. */
#include "../centring.h"
#include "../room.h"
#include <stdlib.h>
#include <string.h>

#ifdef __GNUC__
typedef float floats_t __attribute__((vector_size(32), aligned(sizeof(float)), may_alias));
#else
typedef float floats_t;
#endif

enum {
    STRIP = SPCA_LEAST(64), /* variables of a strip */
    COUNT = STRIP * sizeof(float) / sizeof(floats_t),
    LEAST = SPCA_LEAST(256), /* rows of a block, at least; and at most */
    MOST = 16 * LEAST,
    MANY = 32,   /* on average, a variable should have MANY entries in a block */
    ENTRY = 40,  /* bytes, for do_parts, that take as long as an entry with a strip */
    WORKERS = 8, /* parts that have a strip each at a time */
    SQUARE = 32, /* side of the squares that are mirrored at a time */
    /* a strip with less than 1/EMPTIED of its places filled is emptied entry by entry */
    EMPTIED = 16,
    LINE = 64
};

typedef struct {
    const operator_t *A;
    spca_int k, most, i0, rows; /* variables; the most rows of a block; the block */
    /* (k): columns, the fullest first; their places in the caller's index */
    spca_int *list, *order;
    int64_t *key;         /* (k): keys that order them */
    spca_int *next;       /* (k), CSC: the first entry that is not read yet */
    int32_t *position;    /* (p), CSR: the place of a column in the list, or -1 */
    int32_t *start;       /* (k + 2): where the entries of each variable in the block begin */
    real *weight;         /* (k) */
    double *mean, *total; /* (k): m and t of compressed_gram.c */
    /* (most x k): the entries of the block; (WORKERS x most x STRIP): strips */
    float *value, *strips;
    uint16_t *row; /* (most x k): the row of each entry in the block */
    float *held;   /* (2 k): two rows, while the order is restored */
    float *G;
} rough_t;

/* Cuts the work into arrays, and chooses how many rows a block has: sparser data have more. */
static size_t cut(const operator_t *A, spca_int k, char *work, rough_t *s)
{
    room_t room = {work, 0};
    spca_int lines = A->row_major ? A->n : A->p, entries = at(A->indptr, A->wide, lines);
    double rows = MANY * (double)A->n * (double)A->p / (double)(entries + 1);
    s->most = min_int(A->n, rows < LEAST ? LEAST : rows < MOST ? (spca_int)rows : MOST);
    s->strips = TAKE(&room, WORKERS * s->most * STRIP, float);
    s->list = TAKE(&room, k, spca_int);
    s->order = TAKE(&room, k, spca_int);
    s->key = TAKE(&room, k, int64_t);
    s->next = TAKE(&room, k, spca_int);
    s->position = TAKE(&room, A->p, int32_t);
    s->start = TAKE(&room, k + 2, int32_t);
    s->weight = TAKE(&room, k, real);
    s->mean = TAKE(&room, k, double);
    s->total = TAKE(&room, k, double);
    s->value = TAKE(&room, s->most * k, float);
    s->row = TAKE(&room, s->most * k, uint16_t);
    s->held = TAKE(&room, 2 * k, float);
    return room.used;
}

spca_int SPCA(rough_gram_work)(const operator_t *A, spca_int k)
{
    rough_t s;
    return (spca_int)cut(A, k, NULL, &s) + LINE;
}

/* For qsort: ascending keys. */
static int by_key(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

/* The list of columns, the fullest first; of columns with as many entries, the first of the index.
 * The number of entries and the place make one key. */
static void put_in_order(rough_t *s, const spca_int *index)
{
    const operator_t *A = s->A;
    memset(s->position, 0, (size_t)A->p * sizeof(*s->position));
    for (spca_int q = 0, last = A->row_major ? at(A->indptr, A->wide, A->n) : 0; q < last; q++)
        s->position[at(A->indices, A->wide, q)]++;
    for (spca_int a = 0; a < s->k; a++) {
        spca_int j = index[a], entries = s->position[j];
        if (!A->row_major) entries = at(A->indptr, A->wide, j + 1) - at(A->indptr, A->wide, j);
        s->key[a] = (int64_t)(A->n - entries) * s->k + a;
    }
    qsort(s->key, (size_t)s->k, sizeof(*s->key), by_key);
    for (spca_int j = 0; j < A->p; j++) s->position[j] = -1;
    for (spca_int a = 0; a < s->k; a++) {
        spca_int b = (spca_int)(s->key[a] % s->k), j = index[b];
        s->order[a] = b;
        s->list[a] = j;
        s->position[j] = (int32_t)a;
        s->weight[a] = column_weight(A, j);
        s->mean[a] = A->mean ? (double)(A->mean[j] * A->range) * (double)s->weight[a] : 0;
        s->total[a] = 0;
        if (!A->row_major) s->next[a] = at(A->indptr, A->wide, j);
    }
}

/* Entry q of X, in row i and of variable a, becomes entry e of the block. */
static inline void copy_entry(const rough_t *s, spca_int q, spca_int i, spca_int a, int32_t e)
{
    real x = s->A->data[q] * s->A->range * row_weight(s->A, i) * s->weight[a];
    s->value[e] = (float)x;
    s->row[e] = (uint16_t)(i - s->i0);
    s->total[a] += (double)x * (double)row_center(s->A, i);
}

/* CSC: the entries of the block, variable by variable. */
static void copy_columns(const rough_t *s)
{
    const operator_t *A = s->A;
    int32_t e = 0;
    for (spca_int a = 0; a < s->k; a++) {
        spca_int q = s->next[a], last = at(A->indptr, A->wide, s->list[a] + 1);
        s->start[a] = e;
        for (; q < last; q++) {
            spca_int i = at(A->indices, A->wide, q);
            if (i >= s->i0 + s->rows) break;
            copy_entry(s, q, i, a, e++);
        }
        s->next[a] = q;
    }
    s->start[s->k] = e;
}

/* CSR: the entries of the block, variable by variable, by a counting sort. */
static void copy_rows(const rough_t *s)
{
    const operator_t *A = s->A;
    int32_t *start = s->start + 1; /* start_a: where the next entry of variable a goes */
    spca_int first = at(A->indptr, A->wide, s->i0);
    spca_int last = at(A->indptr, A->wide, s->i0 + s->rows);
    memset(s->start, 0, (size_t)(s->k + 2) * sizeof(*start));
    for (spca_int q = first; q < last; q++) {
        int32_t a = s->position[at(A->indices, A->wide, q)];
        if (a >= 0) start[a + 1]++;
    }
    for (spca_int a = 0; a < s->k; a++) start[a + 1] += start[a];
    for (spca_int i = s->i0; i < s->i0 + s->rows; i++)
        for (spca_int q = at(A->indptr, A->wide, i), end = at(A->indptr, A->wide, i + 1); q < end;
             q++) {
            int32_t a = s->position[at(A->indices, A->wide, q)];
            if (a >= 0) copy_entry(s, q, i, a, start[a]++);
        }
}

/* sum_c += x_ia d_ic over the entries of variable a in the block, for the columns c of a strip. */
INLINE void add_entries(const float *value, const uint16_t *row, int32_t count, const float *d,
                        floats_t *sum)
{
    floats_t z[COUNT] = {0};
    for (int32_t t = 0; t < count; t++) {
        const floats_t *y = (const floats_t *)(d + (uintptr_t)row[t] * STRIP);
        for (spca_int c = 0; c < (spca_int)COUNT; c++) z[c] += value[t] * y[c];
    }
    for (spca_int c = 0; c < (spca_int)COUNT; c++) sum[c] += z[c];
}

/* G_ac += sum of x_ia d_ic for the variables c of a strip d from c0 and all variables a from there
 * on, which are not fuller. */
VECTORIZED(add_strip, (const rough_t *s, spca_int c0, const float *d), (s, c0, d))
{
    spca_int width = min_int(STRIP, s->k - c0);
    for (spca_int a = c0; a < s->k; a++) {
        int32_t first = s->start[a], count = s->start[a + 1] - first;
        float *G = s->G + a * s->k + c0;
        if (count == 0) continue;
        if (width == STRIP) {
            add_entries(s->value + first, s->row + first, count, d, (floats_t *)G);
        } else {
            _Alignas(32) float sum[STRIP] = {0};
            add_entries(s->value + first, s->row + first, count, d, (floats_t *)sum);
            for (spca_int c = 0; c < width; c++) G[c] += sum[c];
        }
    }
}

/* Every WORKERS-th strip of the block: made dense, multiplied, emptied. */
static void strips_part(void *context, spca_int part)
{
    const rough_t *s = context;
    float *d = s->strips + part * s->most * STRIP;
    size_t size = (size_t)(s->rows * STRIP) * sizeof(*d);
    memset(d, 0, size);
    for (spca_int c0 = part * STRIP; c0 < s->k; c0 += WORKERS * STRIP) {
        spca_int c1 = min_int(s->k, c0 + STRIP);
        int32_t first = s->start[c0], end = s->start[c1];
        if (first == end) continue;
        for (spca_int c = c0; c < c1; c++)
            for (int32_t e = s->start[c]; e < s->start[c + 1]; e++)
                d[s->row[e] * STRIP + c - c0] = s->value[e];
        add_strip(s, c0, d);
        if ((spca_int)(end - first) * EMPTIED > s->rows * STRIP)
            memset(d, 0, size);
        else
            for (spca_int c = c0; c < c1; c++)
                for (int32_t e = s->start[c]; e < s->start[c + 1]; e++)
                    d[s->row[e] * STRIP + c - c0] = 0;
    }
}

/* Subtracts the means, multiplies by factor, and fills the other triangle. */
static void finish(const rough_t *s)
{
    const operator_t *A = s->A;
    double count = 0, factor = (double)A->factor;
    spca_int k = s->k;
    for (spca_int i = 0; i < A->n; i++)
        count += (double)row_center(A, i) * (double)row_center(A, i);
    for (spca_int a0 = 0; a0 < k; a0 += SQUARE)
        for (spca_int b0 = 0; b0 <= a0; b0 += SQUARE)
            for (spca_int a = a0; a < min_int(k, a0 + SQUARE); a++) {
                double rest = count * s->mean[a] - s->total[a];
                for (spca_int b = b0; b < min_int(a + 1, b0 + SQUARE); b++) {
                    double x = (double)s->G[a * k + b] + rest * s->mean[b];
                    x = (x - s->mean[a] * s->total[b]) * factor;
                    s->G[a * k + b] = s->G[b * k + a] = (float)x;
                }
            }
}

/* Puts rows and columns of G in the order of the index.  Along each cycle of places, a row is
 * written to its own place, and the one that was there is held next. */
static void restore_order(const rough_t *s)
{
    spca_int k = s->k;
    float *held = s->held, *other = held + k;
    int32_t *done = s->start;
    memset(done, 0, (size_t)k * sizeof(*done));
    for (spca_int first = 0; first < k; first++) {
        if (done[first]) continue;
        memcpy(held, s->G + first * k, (size_t)k * sizeof(*held));
        for (spca_int a = first, to; !done[a]; a = to) {
            float *row = s->G + (to = s->order[a]) * k, *rest = other;
            memcpy(rest, row, (size_t)k * sizeof(*rest));
            for (spca_int b = 0; b < k; b++) row[s->order[b]] = held[b];
            done[a] = 1;
            other = held;
            held = rest;
        }
    }
}

void SPCA(rough_gram)(const operator_t *A, spca_int k, const spca_int *index, void *work, float *G)
{
    rough_t s = {.A = A, .k = k, .G = G};
    char *begin = (char *)work + (LINE - (uintptr_t)work % LINE) % LINE;
    (void)cut(A, k, begin, &s);
    put_in_order(&s, index);
    memset(G, 0, (size_t)(k * k) * sizeof(*G));
    for (s.i0 = 0; s.i0 < A->n; s.i0 += s.rows) {
        s.rows = min_int(s.most, A->n - s.i0);
        A->row_major ? copy_rows(&s) : copy_columns(&s);
        (void)do_parts(A->run, (double)s.start[k] * (double)k / STRIP * ENTRY, strips_part, &s,
                       min_int(WORKERS, (k - 1) / STRIP + 1), NULL, NULL);
    }
    finish(&s);
    restore_order(&s);
}
