/* dense.c - products and columns of dense data and covariances, in C or Fortran order.
 *
 * F = (X - 1 mean') diag(weight) range^2 for data; diag(weight) A0 diag(weight) range^2 for a
 * covariance.  Nothing of X is ever copied, but columns of C order that come back (column_cache.c).
 *
 * Lines are the contiguous vectors of the storage: rows in C order, columns in Fortran order.  Two
 * loops read them, and always in the same order of additions, whatever the number of threads, the
 * processor, or which other lines are asked for:
 *     along:  line . x, by STRANDS partial sums that are then added pairwise;
 *     across: y += sum of w_l line_l, four lines in one addition.
 * Threads share the first by lines and the second by stretches of y. */
#include "centring.h"

/* How loops are cut; none of these numbers changes a bit of a result.  Lines across are added to
 * STRETCH entries of y at a time by one thread.  Where threads share y, each has between SHORTEST
 * and LONGEST entries at a time. */
enum {
    STRETCH = 1 << 15,
    SHORTEST = SPCA_LEAST(1 << 7), /* shorter pieces are read more slowly */
    LONGEST = SPCA_LEAST(1 << 13)
};
/* Pieces of lines of fewer than SHORT bytes are fetched AHEAD lines before their turn. */
enum { SHORT = 1 << 12, AHEAD = 8 };
enum { LONG = SPCA_LEAST(3 << 12) }; /* longer lines, in bytes, are read four at a time */
/* Costs, for do_parts.  LINE: bytes that memory brings together; C order may need one entry of
 * them.  FAR: so many neighboring lines come in the time of one from far away.  COPIED: bytes that
 * come while one entry is written to new memory. */
enum { LINE = 64 };
enum { FAR = 4 };
enum { COPIED = 4 * sizeof(real) };
/* Rows of W = F[:, index] in a part, in C order: neighbors in a row share lines of memory, which
 * stay in cache from column to column. */
enum { ROWS = 32 };
/* Bytes of lines that are added to all of y before the next lines are. */
#define REGION ((spca_int)SPCA_LEAST(1 << 25))

/* y_b = line_b . x for four lines side by side, each with the bits of strands_dot.  Long lines come
 * faster from several places at a time. */
INLINE void four_dots(spca_int length, const real *const *line, const real *x, real *y)
{
    enum { LANES = sizeof(lanes_t) / sizeof(real), PARTS = STRANDS / LANES };
    const lanes_t zero = {0};
    lanes_t sum[4][PARTS];
    spca_int whole = length - length % STRANDS;
    for (int b = 0; b < 4; b++)
        for (int q = 0; q < PARTS; q++) sum[b][q] = zero;
    for (spca_int i = 0; i < whole; i += STRANDS)
        for (int b = 0; b < 4; b++)
            for (int q = 0; q < PARTS; q++)
                sum[b][q] += *(const lanes_t *)(line[b] + i + q * LANES) *
                             *(const lanes_t *)(x + i + q * LANES);
    for (int b = 0; b < 4; b++) {
        real strands[STRANDS];
        for (int q = 0; q < PARTS; q++) *(lanes_t *)(strands + q * LANES) = sum[b][q];
        for (spca_int i = whole; i < length; i++) strands[i - whole] += line[b][i] * x[i];
        y[b] = add_strands(strands);
    }
}

/* y[a] = line(list_a) . x */
VECTORIZED(dots,
           (spca_int count, const spca_int *list, const real *data, spca_int ld, spca_int length,
            const real *x, real *y),
           (count, list, data, ld, length, x, y))
{
    spca_int a = 0;
    for (; length * (spca_int)sizeof(real) >= LONG && a + 4 <= count; a += 4) {
        const real *line[4];
        for (int b = 0; b < 4; b++) line[b] = data + (list ? list[a + b] : a + b) * ld;
        four_dots(length, line, x, y + a);
    }
    for (; a < count; a++) y[a] = strands_dot(length, data + (list ? list[a] : a) * ld, x);
}

/* y += w_0 l0 + w_1 l1 + w_2 l2 + w_3 l3, in one addition: two pairs, then their sum. */
VECTORIZED(add_four,
           (spca_int length, const real *l0, const real *l1, const real *l2, const real *l3,
            const real *w, real *restrict y),
           (length, l0, l1, l2, l3, w, y))
{
    real w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
    for (spca_int i = 0; i < length; i++)
        y[i] += (w0 * l0[i] + w1 * l1[i]) + (w2 * l2[i] + w3 * l3[i]);
}

/* add_four with the same bits, for pieces of lines so short that the processor does not foresee the
 * next ones; `next` says where these are. */
VECTORIZED(add_pieces,
           (spca_int length, const real *const *line, const real *const *next, const real *w,
            real *restrict y),
           (length, line, next, w, y))
{
    enum { LANES = sizeof(lanes_t) / sizeof(real), BESIDE = LINE / sizeof(real) };
    const lanes_t zero = {0};
    lanes_t w0 = w[0] - zero, w1 = w[1] - zero, w2 = w[2] - zero, w3 = w[3] - zero;
    spca_int i = 0;
    for (; i + BESIDE <= length; i += BESIDE) {
        for (int b = 0; b < 4; b++) FETCH(next[b] + i);
        for (spca_int q = i; q < i + BESIDE; q += LANES) {
            lanes_t z0 = *(const lanes_t *)(line[0] + q), z1 = *(const lanes_t *)(line[1] + q);
            lanes_t z2 = *(const lanes_t *)(line[2] + q), z3 = *(const lanes_t *)(line[3] + q);
            *(lanes_t *)(y + q) += (w0 * z0 + w1 * z1) + (w2 * z2 + w3 * z3);
        }
    }
    for (; i < length; i++)
        y[i] += (w[0] * line[0][i] + w[1] * line[1][i]) + (w[2] * line[2][i] + w[3] * line[3][i]);
}

/* y_a = column list_a . x for columns copied from C order (column_cache.c), which lie side by side.
 * The additions are in the order of lines_across, so that y_a has the bits of a product with all
 * columns. */
static void grouped_dots(spca_int count, const spca_int *list, const real *data, spca_int length,
                         const real *x, real *y)
{
    for (spca_int a = 0; a < count; a++) {
        const real *z = data + list[a] * length;
        real sum = 0;
        spca_int i = 0;
        for (; i + 4 <= length; i += 4)
            sum +=
                (x[i] * z[i] + x[i + 1] * z[i + 1]) + (x[i + 2] * z[i + 2] + x[i + 3] * z[i + 3]);
        for (; i < length; i++) sum += x[i] * z[i];
        y[a] = sum;
    }
}

/* A loop over lines, all or those of a list.  Along: a part has `step` lines, and y_a = line_a . x.
 * Across: a part has `step` entries of y, and adds x_l line_l of the lines from first to count. */
typedef struct {
    const real *data, *x;
    const spca_int *list;
    spca_int ld, first, count, length, step;
    real *y;
    int fetched; /* whether pieces of lines are fetched ahead */
} lines_t;

/* y_a = line_a . x of the lines of a part. */
static void along_part(void *context, spca_int part)
{
    const lines_t *s = context;
    spca_int a = part * s->step, c = min_int(s->step, s->count - a);
    if (s->list)
        dots(c, s->list + a, s->data, s->ld, s->length, s->x, s->y + a);
    else
        dots(c, NULL, s->data + a * s->ld, s->ld, s->length, s->x, s->y + a);
}

/* y (count) = lines . x.  A part has about SPCA_PART bytes, and a multiple of four lines. */
static spca_status lines_along(spca_run run, const real *data, spca_int ld, spca_int count,
                               const spca_int *list, spca_int length, const real *x, spca_stop stop,
                               void *ctx, real *y)
{
    spca_int bytes = length * (spca_int)sizeof(real), step = (SPCA_PART / bytes / 4 + 1) * 4;
    lines_t s = {data, x, list, ld, 0, count, length, step, y, 0};
    return do_parts(run, (double)count * (double)bytes, along_part, &s, (count + step - 1) / step,
                    stop, ctx);
}

/* y += sum of w_l line_l over lines from first to count, at the entries of y of a part, which stay
 * in cache. */
static void across_part(void *context, spca_int part)
{
    const lines_t *s = context;
    spca_int i0 = part * s->step, n = min_int(s->step, s->length - i0), a = s->first;
    const real *data = s->data + i0, *w = s->x;
    real *y = s->y + i0;
    for (; a + 4 <= s->count; a += 4) {
        const real *line[4], *next[4];
        for (int b = 0; b < 4; b++) {
            spca_int later = min_int(a + b + AHEAD, s->count - 1);
            line[b] = data + (s->list ? s->list[a + b] : a + b) * s->ld;
            next[b] = data + (s->list ? s->list[later] : later) * s->ld;
        }
        if (s->fetched)
            add_pieces(n, line, next, w + a, y);
        else
            add_four(n, line[0], line[1], line[2], line[3], w + a, y);
    }
    for (; a < s->count; a++) {
        const real *line = data + (s->list ? s->list[a] : a) * s->ld;
        for (spca_int i = 0; i < n; i++) y[i] += w[a] * line[i];
    }
}

/* y (length) = sum of w_l line_l over `count` lines.  Each thread has entries of y of its own, so
 * no sum depends on their number. */
static spca_status lines_across(spca_run run, const real *data, spca_int ld, spca_int count,
                                const spca_int *list, spca_int length, const real *w,
                                spca_stop stop, void *ctx, real *y)
{
    spca_int threads = threads_of(run), step = (length / threads + 63) / 64 * 64;
    spca_int lines = REGION / (length * (spca_int)sizeof(real)) / 4 * 4;
    lines_t s = {.data = data, .x = w, .list = list, .ld = ld, .length = length, .y = y};
    spca_status status = SPCA_OK;
    if (threads == 1)
        s.step = STRETCH;
    else
        s.step = step < SHORTEST ? SHORTEST : min_int(step, LONGEST);
    if (lines < SPCA_LEAST(64)) lines = SPCA_LEAST(64);
    for (spca_int i = 0; i < length; i++) y[i] = 0;
    for (; s.first < count && status >= 0; s.first = s.count) {
        double bytes;
        s.count = min_int(s.first + lines, count);
        bytes = (double)(s.count - s.first) * (double)length * sizeof(real);
        s.fetched =
            s.step < length && s.step * (spca_int)sizeof(real) < SHORT && bytes > SPCA_ALONE;
        status = do_parts(run, bytes, across_part, &s, (length + s.step - 1) / s.step, stop, ctx);
    }
    return status;
}

/* Products with some columns of X (rows_gather), and copies of them (columns), by rows.  place_a is
 * where column index_a lies in `data`; across and down are the distances from row to row and from
 * column to column there. */
typedef struct {
    const operator_t *A;
    spca_int k, rows; /* rows of a part */
    const spca_int *index, *place;
    const real *w, *data;
    spca_int across, down;
    real *out;
} gather_t;

/* f_i = sum of w_a X_ij, j = list_a, for the rows of a part. */
static void gather_part(void *context, spca_int part)
{
    const gather_t *s = context;
    const operator_t *A = s->A;
    const spca_int *list = s->index;
    const real *w = s->w;
    real *f = s->out;
    for (spca_int i = part * s->rows; i < min_int(A->n, (part + 1) * s->rows); i++) {
        const real *row = A->data + i * A->ld;
        spca_int a = 0;
        f[i] = 0;
        for (; a + 4 <= s->k; a += 4)
            f[i] += (w[a] * row[list[a]] + w[a + 1] * row[list[a + 1]]) +
                    (w[a + 2] * row[list[a + 2]] + w[a + 3] * row[list[a + 3]]);
        for (; a < s->k; a++) f[i] += w[a] * row[list[a]];
    }
}

/* f_i = sum of w_a X_ij over the columns j = list_a, in C order and with the additions of
 * lines_across. */
static spca_status rows_gather(const operator_t *A, spca_int k, const spca_int *list, const real *w,
                               spca_stop stop, void *ctx, real *f)
{
    spca_int rows = SPCA_PART / (LINE * (k + 1)) + 1;
    gather_t s = {.A = A, .k = k, .rows = rows, .index = list, .w = w, .out = f};
    return do_parts(A->run, (double)A->n * (double)k * (LINE * FAR), gather_part, &s,
                    (A->n + rows - 1) / rows, stop, ctx);
}

/* f = F v.  Lines across read only the columns of v; in C order its columns come from the cache, if
 * that has room, or entry by entry.  Where v has many nonzeros, all of X is read (`all`). */
static spca_status forward(const operator_t *A, vector_t v, spca_stop stop, void *ctx,
                           real *scratch, real *f)
{
    int all = !v.index || v.nnz > A->p / (A->symmetric_form ? 2 : 8);
    real *w = scratch, shift = weighted(A, v, all, w);
    spca_int count = all ? A->p : v.nnz;
    const spca_int *list = all ? NULL : v.index;
    spca_status status;
    if (!A->symmetric_form && !A->row_major) {
        status = lines_across(A->run, A->data, A->ld, count, list, A->m, w, stop, ctx, f);
    } else if (all) {
        status = lines_along(A->run, A->data, A->ld, A->m, NULL, A->p, w, stop, ctx, f);
    } else if (A->symmetric_form) {
        status = lines_across(A->run, A->data, A->ld, count, list, A->m, w, stop, ctx, f);
    } else if (A->cache && count <= A->cache->capacity) {
        status = SPCA(keep_columns)(A, count, list, stop, ctx);
        if (status < 0) return status;
        status = lines_across(A->run, A->cache->kept, A->n, count, A->cache->slot_list, A->n, w,
                              stop, ctx, f);
    } else {
        status = rows_gather(A, count, list, w, stop, ctx, f);
    }
    finish_forward(A, shift, f);
    return status;
}

/* y = F'f at a list of columns (NULL: all).  In C order with a list, columns come by way of the
 * cache, as many at a time as it holds. */
static spca_status backward(const operator_t *A, const real *f, real total, spca_int count,
                            const spca_int *list, spca_stop stop, void *ctx, real *y)
{
    spca_status status = SPCA_OK;
    if (!A->row_major) {
        status = lines_along(A->run, A->data, A->ld, count, list, A->n, f, stop, ctx, y);
    } else if (!list) {
        status = lines_across(A->run, A->data, A->ld, A->n, NULL, A->p, f, stop, ctx, y);
    } else {
        spca_int room = A->cache->capacity;
        for (spca_int a = 0; a < count; a += room) {
            spca_int c = min_int(room, count - a);
            status = SPCA(keep_columns)(A, c, list + a, stop, ctx);
            if (status < 0) return status;
            grouped_dots(c, A->cache->slot_list, A->cache->kept, A->n, f, y + a);
        }
    }
    finish_backward(A, total, count, list, y);
    return status;
}

/* W = F[:, index] at the rows of a part, which stay in cache from column to column. */
static void columns_part(void *context, spca_int part)
{
    const gather_t *s = context;
    const operator_t *A = s->A;
    spca_int i0 = part * s->rows, i1 = min_int(A->m, i0 + s->rows), across = s->across;
    for (spca_int a = 0; a < s->k; a++) {
        const real *x = s->data + s->place[a] * s->down;
        const real *next = s->data + s->place[min_int(a + AHEAD, s->k - 1)] * s->down;
        real *w = s->out + a * A->m, range = A->range, weight = column_weight(A, s->index[a]);
        real mean = A->mean ? A->mean[s->index[a]] * range : 0;
        for (spca_int i = i0; across > 1 && i < i1; i++) FETCH(next + i * across);
        if (A->row_weight)
            for (spca_int i = i0; i < i1; i++)
                w[i] = row_center(A, i) * (before_center(A, i) * x[i * across] * range - mean) *
                       weight;
        else
            for (spca_int i = i0; i < i1; i++) w[i] = (x[i * across] * range - mean) * weight;
        if (A->symmetric_form && A->weight)
            for (spca_int i = i0; i < i1; i++) w[i] *= A->weight[i];
    }
}

/* W (m x k) = F[:, index], from the column cache where that has room. */
static spca_status columns(const operator_t *A, spca_int k, const spca_int *index, spca_stop stop,
                           void *ctx, real *scratch, real *W)
{
    gather_t s = {.A = A,
                  .k = k,
                  .rows = SPCA_LEAST(A->row_major ? ROWS : 128),
                  .index = index,
                  .place = index,
                  .data = A->data,
                  .out = W};
    s.across = A->row_major ? A->ld : 1;
    s.down = A->row_major ? 1 : A->ld;
    (void)scratch;
    if (A->cache && A->row_major && k <= A->cache->capacity) {
        spca_status status = SPCA(keep_columns)(A, k, index, stop, ctx);
        if (status < 0) return status;
        s.data = A->cache->kept;
        s.place = A->cache->slot_list;
        s.across = 1;
        s.down = A->n;
    }
    return do_parts(A->run, (double)A->m * (double)k * (s.across > 1 ? LINE * FAR : COPIED),
                    columns_part, &s, (A->m + s.rows - 1) / s.rows, stop, ctx);
}

void SPCA(use_dense)(operator_t *A)
{
    A->forward = forward;
    A->backward = backward;
    A->columns = columns;
    A->block = SPCA(dense_block);
    A->block_work = SPCA(dense_block_work);
    A->gram = SPCA(dense_gram);
    A->gram_work = SPCA(dense_gram_work);
}
