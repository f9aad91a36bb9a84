/* dense.c - products and columns of dense data and covariances, in C or Fortran order.
 *
 * F = (X - 1 mean') diag(weight) range^2 for data; diag(weight) A0 diag(weight) range^2 for a
 * covariance.  Nothing of X is ever copied, but columns of C order that come back (column_cache.c).
 *
 * Lines are the contiguous vectors of the storage: rows in C order, columns in Fortran order.  Two
 * loops read them, and always in the same order of additions, whatever the number of threads, the
 * processor, or which other lines are asked for:
 *     along:  line . x, by STRANDS partial sums that are then added pairwise;
 *     across: y += sum of w_l line_l, four lines in one addition. */
#include "centring.h"

#define BLOCK ((spca_int)1 << 23) /* entries read between two looks at stop */
#define TILE ((spca_int)1 << 15)  /* of a long vector that is added to, line after line */

/* y[a] = line(list_a) . x */
VECTORIZED static void dots(spca_int count, const spca_int *list, const real *data, spca_int ld,
                            spca_int length, const real *x, real *y)
{
    for (spca_int a = 0; a < count; a++)
        y[a] = strands_dot(length, data + (list ? list[a] : a) * ld, x);
}

VECTORIZED static void add_four(spca_int length, const real *l0, const real *l1, const real *l2,
                                const real *l3, const real *w, real *restrict y)
{
    real w0 = w[0], w1 = w[1], w2 = w[2], w3 = w[3];
    for (spca_int i = 0; i < length; i++)
        y[i] += (w0 * l0[i] + w1 * l1[i]) + (w2 * l2[i] + w3 * l3[i]);
}

/* y_a = column list_a . x for columns copied from C order, with the additions of lines_across. */
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

static spca_status lines_along(const real *data, spca_int ld, spca_int count, const spca_int *list,
                               spca_int length, const real *x, spca_stop stop, void *ctx, real *y)
{
    spca_int step = BLOCK / length + 1;
    for (spca_int a = 0; a < count; a += step) {
        spca_int c = min_int(step, count - a);
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        if (list)
            dots(c, list + a, data, ld, length, x, y + a);
        else
            dots(c, NULL, data + a * ld, ld, length, x, y + a);
    }
    return SPCA_OK;
}

/* y (length) is overwritten; tiles keep it in cache. */
static spca_status lines_across(const real *data, spca_int ld, spca_int count, const spca_int *list,
                                spca_int length, const real *w, spca_stop stop, void *ctx, real *y)
{
    spca_int read = BLOCK;
    for (spca_int i0 = 0; i0 < length; i0 += TILE) {
        spca_int n = min_int(TILE, length - i0), a = 0;
        for (spca_int i = i0; i < i0 + n; i++) y[i] = 0;
        for (; a + 4 <= count; a += 4) {
            const real *line[4];
            if ((read += 4 * n) > BLOCK) {
                read = 0;
                if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
            }
            for (int b = 0; b < 4; b++) line[b] = data + (list ? list[a + b] : a + b) * ld + i0;
            add_four(n, line[0], line[1], line[2], line[3], w + a, y + i0);
        }
        for (; a < count; a++) {
            const real *line = data + (list ? list[a] : a) * ld + i0;
            for (spca_int i = 0; i < n; i++) y[i0 + i] += w[a] * line[i];
        }
    }
    return SPCA_OK;
}

/* f_i = row_i . w over the columns of the list: in C order, with the additions of lines_across. */
static spca_status rows_gather(const operator_t *A, spca_int k, const spca_int *list, const real *w,
                               spca_stop stop, void *ctx, real *f)
{
    for (spca_int i = 0; i < A->n; i++) {
        const real *row = A->data + i * A->ld;
        spca_int a = 0;
        f[i] = 0;
        if (i % 4096 == 0 && asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (; a + 4 <= k; a += 4)
            f[i] += (w[a] * row[list[a]] + w[a + 1] * row[list[a + 1]]) +
                    (w[a + 2] * row[list[a + 2]] + w[a + 3] * row[list[a + 3]]);
        for (; a < k; a++) f[i] += w[a] * row[list[a]];
    }
    return SPCA_OK;
}

static spca_status forward(const operator_t *A, vector_t v, spca_stop stop, void *ctx,
                           real *scratch, real *f)
{
    int all = !v.index || v.nnz > A->p / 8;
    real *w = scratch, shift = weighted(A, v, all, w);
    spca_int count = all ? A->p : v.nnz;
    const spca_int *list = all ? NULL : v.index;
    spca_status status;
    if (!A->covariance && !A->row_major) {
        status = lines_across(A->data, A->ld, count, list, A->m, w, stop, ctx, f);
    } else if (all) {
        status = lines_along(A->data, A->ld, A->m, NULL, A->p, w, stop, ctx, f);
    } else if (A->covariance) {
        status = lines_across(A->data, A->ld, count, list, A->m, w, stop, ctx, f);
    } else if (A->cache && count <= A->cache->capacity) {
        status = SPCA(keep_columns)(A, count, list, stop, ctx);
        if (status < 0) return status;
        status =
            lines_across(A->cache->kept, A->n, count, A->cache->slot_list, A->n, w, stop, ctx, f);
    } else {
        status = rows_gather(A, count, list, w, stop, ctx, f);
    }
    finish_forward(A, shift, f);
    return status;
}

static spca_status backward(const operator_t *A, const real *f, real total, spca_int count,
                            const spca_int *list, spca_stop stop, void *ctx, real *y)
{
    spca_status status = SPCA_OK;
    if (!A->row_major) {
        status = lines_along(A->data, A->ld, count, list, A->n, f, stop, ctx, y);
    } else if (!list) {
        status = lines_across(A->data, A->ld, A->n, NULL, A->p, f, stop, ctx, y);
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

static spca_status columns(const operator_t *A, spca_int k, const spca_int *index, spca_stop stop,
                           void *ctx, real *scratch, real *W)
{
    spca_int across = A->row_major ? A->ld : 1, down = A->row_major ? 1 : A->ld;
    const real *data = A->data;
    const spca_int *place = index;
    (void)scratch;
    if (A->cache && A->row_major && k <= A->cache->capacity) {
        spca_status status = SPCA(keep_columns)(A, k, index, stop, ctx);
        if (status < 0) return status;
        data = A->cache->kept;
        place = A->cache->slot_list;
        across = 1;
        down = A->n;
    }
    for (spca_int i0 = 0; i0 < A->m; i0 += 256) { /* rows stay in cache from column to column */
        spca_int i1 = min_int(A->m, i0 + 256);
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (spca_int a = 0; a < k; a++) {
            const real *x = data + place[a] * down;
            real weight = column_weight(A, index[a]), range = A->range;
            real mean = A->mean ? A->mean[index[a]] * range : 0;
            if (A->row_weight)
                for (spca_int i = i0; i < i1; i++)
                    W[a * A->m + i] =
                        (A->row_weight[i] * x[i * across] * range - mean * row_center(A, i)) *
                        weight;
            else
                for (spca_int i = i0; i < i1; i++)
                    W[a * A->m + i] = (x[i * across] * range - mean) * weight;
            if (A->covariance && A->weight)
                for (spca_int i = i0; i < i1; i++) W[a * A->m + i] *= A->weight[i];
        }
    }
    return SPCA_OK;
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
