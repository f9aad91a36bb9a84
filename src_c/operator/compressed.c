/* compressed.c - CSR and CSC data, and symmetric matrices: products with one vector, and columns.
 *
 * A line is a row of CSR or a column of CSC.  Products go along the lines, y_l = line_l . x, or
 * across them, y += x_l line_l.  No processor foresees which places the next entries need, so these
 * are fetched ahead. */
#include "centring.h"

enum {
    NEXT = 16,      /* places are fetched this many entries ahead, */
    LINES = 8,      /* and the first entries of lines this many lines */
    NEAR = 1 << 17, /* a vector of no more bytes stays in the first caches */
    SIDE = 4        /* lines whose sums are made side by side */
};
/* bytes of an entry with its index; entries of a part */
enum { ENTRY = sizeof(real) + 4, PART = SPCA_PART / 16 };
#define READ ((spca_int)1 << 22) /* entries between two looks at stop */

/* A loop over lines from first to last, all or those of a list.  Along (y_l = line_l . x), a part
 * has about PART entries and lines or, with a list, `step` lines.  Across (y += x_l line_l), a part
 * has one of `parts` stretches of y. */
typedef struct {
    const operator_t *A;
    const spca_int *list;
    const real *x;
    real *y;
    spca_int first, last, parts; /* of the lines, or of places in the list */
    spca_int step;               /* lines of a part along a list */
    spca_int k;                  /* how many columns `columns` is asked for */
} lines_t;

/* By bisection: the first line before which `much` has been read since s->first, where each entry
 * and each line counts as 1. */
static spca_int line_after(const lines_t *s, spca_int much)
{
    spca_int low = s->first, high = s->last, start = at(s->A->indptr, s->A->wide, low) + low;
    while (low < high) {
        spca_int l = low + (high - low) / 2;
        if (at(s->A->indptr, s->A->wide, l) + l - start < much)
            low = l + 1;
        else
            high = l;
    }
    return low;
}

/* The first line of a part. */
static spca_int line_of(const lines_t *s, spca_int part)
{
    return part < s->parts ? line_after(s, part * PART) : s->last;
}

/* sum plus the entries q to last of a line times x.  Where x is larger than the first caches (far),
 * the places that the next entries need are fetched ahead. */
INLINE real along_line(const operator_t *A, const real *x, const int wide, const int far,
                       spca_int q, spca_int last, spca_int end, real sum)
{
    for (; q < last; q++) {
        if (far && q + NEXT < end) FETCH(x + at(A->indices, wide, q + NEXT));
        sum += A->data[q] * x[at(A->indices, wide, q)];
    }
    return sum;
}

/* The line at place l. */
static inline spca_int line_at(const lines_t *s, spca_int l)
{
    return s->list ? s->list[l] : l;
}

/* y[l] = line_l . x for places l to l1.  SIDE lines go side by side, so that no sum waits for
 * another: all of them advance by the entries that the shortest has left, and then the next line
 * takes its place. */
INLINE void along_lines(const lines_t *s, const int wide, const int far, spca_int l, spca_int l1)
{
    const operator_t *A = s->A;
    const real *x = s->x;
    spca_int end = at(A->indptr, wide, A->row_major ? A->m : A->p);
    spca_int q[SIDE], last[SIDE], place[SIDE];
    real sum[SIDE];
    int side = 0;
    for (; l < l1; l++) {
        spca_int common = end;
        if (l + LINES < l1) fetch_line(A, wide, line_at(s, l + LINES));
        q[side] = at(A->indptr, wide, line_at(s, l));
        last[side] = at(A->indptr, wide, line_at(s, l) + 1);
        place[side] = l;
        sum[side] = 0;
        if (q[side] == last[side])
            s->y[l] = 0;
        else
            side++;
        if (side < SIDE) continue;
        for (int b = 0; b < SIDE; b++) common = min_int(common, last[b] - q[b]);
        for (spca_int i = 0; i < common; i++)
            for (int b = 0; b < SIDE; b++) {
                if (far && q[b] + i + NEXT < end) FETCH(x + at(A->indices, wide, q[b] + i + NEXT));
                sum[b] += A->data[q[b] + i] * x[at(A->indices, wide, q[b] + i)];
            }
        side = 0;
        for (int b = 0; b < SIDE; b++) {
            q[b] += common;
            if (q[b] == last[b]) {
                s->y[place[b]] = sum[b];
                continue;
            }
            q[side] = q[b], last[side] = last[b], place[side] = place[b], sum[side] = sum[b];
            side++;
        }
    }
    for (int b = 0; b < side; b++)
        s->y[place[b]] = along_line(A, x, wide, far, q[b], last[b], end, sum[b]);
}

static void along_part(void *context, spca_int part)
{
    const lines_t *s = context;
    spca_int l = part * s->step, l1 = min_int(s->last, l + s->step);
    spca_int length = s->A->row_major ? s->A->p : s->A->m;
    int far = length * (spca_int)sizeof(real) > NEAR;
    if (!s->list) l = line_of(s, part), l1 = line_of(s, part + 1);
    if (s->A->wide)
        far ? along_lines(s, 1, 1, l, l1) : along_lines(s, 1, 0, l, l1);
    else
        far ? along_lines(s, 0, 1, l, l1) : along_lines(s, 0, 0, l, l1);
}

/* y += sum of x_l line_l, at the entries of y from j to j1; where y is one part, all of them.  The
 * places that the next entries need are fetched ahead. */
static inline void across_lines(const lines_t *s, const int wide, spca_int j, spca_int j1)
{
    const operator_t *A = s->A;
    spca_int end = at(A->indptr, wide, A->row_major ? A->m : A->p);
    for (spca_int a = s->first; a < s->last; a++) {
        spca_int l = s->list ? s->list[a] : a;
        spca_int q = at(A->indptr, wide, l), last = at(A->indptr, wide, l + 1);
        real xl = s->x[a];
        if (s->parts > 1) {
            q = place_of(A->indices, wide, q, last, j);
            last = end = place_of(A->indices, wide, q, last, j1);
        }
        for (; q < last; q++) {
            if (q + NEXT < end) FETCH_TO_WRITE(s->y + at(A->indices, wide, q + NEXT));
            s->y[at(A->indices, wide, q)] += A->data[q] * xl;
        }
    }
}

static void across_part(void *context, spca_int part)
{
    const lines_t *s = context;
    spca_int length = s->A->row_major ? s->A->p : s->A->m,
             step = (length + s->parts - 1) / s->parts;
    if (s->A->wide)
        across_lines(s, 1, part * step, (part + 1) * step);
    else
        across_lines(s, 0, part * step, (part + 1) * step);
}

/* y = lines . x for the first k lines, or for the k lines of a list. */
static spca_status lines_along(const operator_t *A, spca_int k, const spca_int *list, const real *x,
                               spca_stop stop, void *ctx, real *y)
{
    lines_t s = {.A = A, .list = list, .x = x, .y = y, .last = k};
    spca_int much = k;
    for (spca_int a = 0; list && a < k; a++)
        much += at(A->indptr, A->wide, list[a] + 1) - at(A->indptr, A->wide, list[a]);
    if (!list) much += at(A->indptr, A->wide, k);
    s.parts = much / PART + 1;
    s.step = k / s.parts + 1;
    return do_parts(A->run, (double)much * ENTRY, along_part, &s, s.parts, stop, ctx);
}

/* y += sum of x_l line_l, for the first k lines or those of a list.  Stretches of y are so long
 * that some entries of a line lie in each; bisection finds where they begin, which needs ascending
 * indices. */
static spca_status lines_across(const operator_t *A, spca_int k, const spca_int *list,
                                const real *x, spca_stop stop, void *ctx, real *y)
{
    spca_int lines = A->row_major ? A->m : A->p, threads = threads_of(A->run), next;
    spca_int entries = at(A->indptr, A->wide, lines) / lines, step;
    lines_t s = {.A = A, .list = list, .x = x, .y = y, .parts = 1};
    spca_status status = SPCA_OK;
    if (threads > 1) s.parts = min_int(4 * threads, entries / SPCA_LEAST(64) + 1);
    step = READ / (entries + 1) + 1;
    for (; s.first < k && status >= 0; s.first = next) {
        s.last = next = min_int(k, s.first + step);
        status = do_parts(A->run, (double)(next - s.first) * (double)entries * ENTRY, across_part,
                          &s, s.parts, stop, ctx);
    }
    return status;
}

/* f = F v.  Lines across read only the lines where v is not 0, but the rows of CSR need a dense v.
 */
static spca_status forward(const operator_t *A, vector_t v, spca_stop stop, void *ctx,
                           real *scratch, real *f)
{
    /* then only lines where v is not 0 are read */
    int by_lines = A->symmetric_form || !A->row_major;
    real shift = weighted(A, v, !by_lines, scratch);
    spca_status status;
    for (spca_int i = 0; i < A->m; i++) f[i] = 0;
    status = by_lines ? lines_across(A, v.nnz, v.index, scratch, stop, ctx, f)
                      : lines_along(A, A->m, NULL, scratch, stop, ctx, f);
    finish_forward(A, shift, f);
    return status;
}

/* y = X'f, weighted and centered, at the columns of the list, which is given only for CSC. */
static spca_status backward(const operator_t *A, const real *f, real total, spca_int count,
                            const spca_int *list, spca_stop stop, void *ctx, real *y)
{
    spca_status status;
    for (spca_int a = 0; a < count; a++) y[a] = 0;
    status = A->row_major ? lines_across(A, A->m, NULL, f, stop, ctx, y)
                          : lines_along(A, count, list, f, stop, ctx, y);
    finish_backward(A, total, count, list, y);
    return status;
}

/* A part of W = F[:, list]: some rows of it for CSR data, otherwise one column.  It begins as -mean
 * s, the entries of X are added, and the weights multiply it. */
static void columns_part(void *context, spca_int part)
{
    const lines_t *s = context;
    const operator_t *A = s->A;
    int by_rows = A->row_major && !A->symmetric_form;
    spca_int a0 = by_rows ? 0 : part, a1 = by_rows ? s->k : part + 1;
    spca_int i0 = by_rows ? line_of(s, part) : 0, i1 = by_rows ? line_of(s, part + 1) : A->m;
    for (spca_int a = a0; a < a1; a++) {
        real mean = A->mean ? A->mean[s->list[a]] * A->range : 0;
        for (spca_int i = i0; i < i1; i++) s->y[a * A->m + i] = -mean;
    }
    for (spca_int l = by_rows ? i0 : s->list[part], l1 = by_rows ? i1 : l + 1; l < l1; l++) {
        spca_int last = at(A->indptr, A->wide, l + 1);
        for (spca_int q = at(A->indptr, A->wide, l); q < last; q++) {
            spca_int k = at(A->indices, A->wide, q), i = by_rows ? l : k;
            spca_int a = by_rows ? (spca_int)s->x[k] - 1 : part;
            if (a >= 0) s->y[a * A->m + i] += A->data[q] * A->range * before_center(A, i);
        }
    }
    for (spca_int a = a0; a < a1; a++) {
        real weight = column_weight(A, s->list[a]);
        for (spca_int i = i0; i < i1; i++) s->y[a * A->m + i] *= row_center(A, i) * weight;
        for (spca_int i = i0; A->symmetric_form && A->weight && i < i1; i++)
            s->y[a * A->m + i] *= A->weight[i];
    }
}

/* W (m x k by columns) = F[:, index]: of CSR, all rows go by once, and each entry finds its column
 * by `scratch`. */
static spca_status columns(const operator_t *A, spca_int k, const spca_int *index, spca_stop stop,
                           void *ctx, real *scratch, real *W)
{
    /* x[j] = 1 + position of column j in the list, 0 where it is not there; REAL holds it exactly
     * up to 1/epsilon columns */
    lines_t s = {.A = A, .list = index, .x = scratch, .y = W, .k = k, .parts = k};
    double bytes = (double)A->m * (double)k * sizeof(real);
    if (A->row_major && !A->symmetric_form) {
        spca_int much = at(A->indptr, A->wide, A->m) + A->m;
        for (spca_int j = 0; j < A->p; j++) scratch[j] = 0;
        for (spca_int a = 0; a < k; a++) scratch[index[a]] = (real)(a + 1);
        s.last = A->m;
        s.parts = much / PART + 1;
        bytes += (double)much * ENTRY;
    }
    return do_parts(A->run, bytes, columns_part, &s, s.parts, stop, ctx);
}

void SPCA(use_compressed)(operator_t *A)
{
    A->forward = forward;
    A->backward = backward;
    A->columns = columns;
    A->block = SPCA(compressed_block);
    A->block_work = SPCA(compressed_block_work);
    A->gram = SPCA(compressed_gram);
    A->gram_work = SPCA(compressed_gram_work);
}
