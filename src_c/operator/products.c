/* products.c - f = F v, y = F'g/range and columns of F, for each way to store X or a covariance.
 *
 * F = (X - 1 mean') diag(weight) range^2 for data; diag(weight) A0 diag(weight) range^2 for a
 * covariance.  Nothing of X is ever copied: with w = range weight v,
 *     f = range (u (X w) - (mean'w) s),    y = range weight (X'g - total mean);
 * operator.c makes g and total of the row weights u and the row centers s (centring.h). */
#include "centring.h"

#define BLOCK ((spca_int)1 << 23) /* entries read between two looks at stop */
#define TILE ((spca_int)1 << 15)  /* of a long vector that is added to, line after line */
#define AHEAD 16                  /* entries of compressed storage */

#ifdef __GNUC__
#define FETCH(address) __builtin_prefetch((const void *)(address), 1, 3)
#else
#define FETCH(address) ((void)(address))
#endif

/* ---- what the storages share ---------------------------------------------------------------- */

static void finish_forward(const operator_t *A, real shift, real *f)
{
    if (A->covariance && A->weight)
        for (spca_int j = 0; j < A->p; j++) f[j] *= A->range * A->weight[j];
    else
        finish_rows(A, 0, A->m, shift, f);
}

/* What a column j of F is multiplied by besides the first range. */
static real column_weight(const operator_t *A, spca_int j)
{
    return A->range * (A->weight ? A->weight[j] : 1);
}

static real row_weight(const operator_t *A, spca_int i)
{
    return A->row_weight ? A->row_weight[i] : 1;
}

static real row_center(const operator_t *A, spca_int i)
{
    return A->row_center ? A->row_center[i] : 1;
}

/* ---- dense ---------------------------------------------------------------------------------- */

/* Lines are the contiguous vectors of the storage: rows in C order, columns in Fortran order.  Two
 * loops read them, and always in the same order of additions, whatever the number of threads, the
 * processor, or which other lines are asked for:
 *     along:  line . x, by STRANDS partial sums that are then added pairwise;
 *     across: y += sum of w_l line_l, four lines in one addition. */

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

spca_status SPCA(dense_forward)(const operator_t *A, vector_t v, spca_stop stop, void *ctx,
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
    } else if (A->screen && count <= A->screen->capacity) {
        status = SPCA(keep_columns)(A, count, list, stop, ctx);
        if (status < 0) return status;
        status =
            lines_across(A->screen->kept, A->n, count, A->screen->slot_list, A->n, w, stop, ctx, f);
    } else {
        status = rows_gather(A, count, list, w, stop, ctx, f);
    }
    finish_forward(A, shift, f);
    return status;
}

spca_status SPCA(dense_backward)(const operator_t *A, const real *f, real total, spca_int count,
                                 const spca_int *list, spca_stop stop, void *ctx, real *y)
{
    spca_status status = SPCA_OK;
    if (!A->row_major) {
        status = lines_along(A->data, A->ld, count, list, A->n, f, stop, ctx, y);
    } else if (!list) {
        status = lines_across(A->data, A->ld, A->n, NULL, A->p, f, stop, ctx, y);
    } else {
        spca_int room = A->screen->capacity;
        for (spca_int a = 0; a < count; a += room) {
            spca_int c = min_int(room, count - a);
            status = SPCA(keep_columns)(A, c, list + a, stop, ctx);
            if (status < 0) return status;
            grouped_dots(c, A->screen->slot_list, A->screen->kept, A->n, f, y + a);
        }
    }
    finish_backward(A, total, count, list, y);
    return status;
}

spca_status SPCA(dense_columns)(const operator_t *A, spca_int k, const spca_int *index,
                                spca_stop stop, void *ctx, real *scratch, real *W)
{
    spca_int across = A->row_major ? A->ld : 1, down = A->row_major ? 1 : A->ld;
    const real *data = A->data;
    const spca_int *place = index;
    (void)scratch;
    if (A->screen && A->row_major && k <= A->screen->capacity) {
        spca_status status = SPCA(keep_columns)(A, k, index, stop, ctx);
        if (status < 0) return status;
        data = A->screen->kept;
        place = A->screen->slot_list;
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

/* ---- compressed: CSR by rows, CSC by columns, a symmetric matrix either way -------------------
 */

/* y[l] = line_l . x, or, across, y += x_l line_l for each line of the list (all if NULL), with
 * `wide` known to the compiler.  Places in x or y that the next entries need are fetched ahead. */
static inline spca_status line_products(const operator_t *A, const int wide, const int along,
                                        spca_int k, const spca_int *list, const real *x,
                                        spca_stop stop, void *ctx, real *y)
{
    spca_int read = 0, lines = list ? k : A->row_major ? A->m : A->p;
    spca_int end = at(A->indptr, wide, A->row_major ? A->m : A->p);
    const real *place = along ? x : y;
    for (spca_int a = 0; a < lines; a++) {
        spca_int l = list ? list[a] : a;
        spca_int first = at(A->indptr, wide, l), last = at(A->indptr, wide, l + 1);
        real sum = 0, xl = along ? 0 : x[a];
        for (spca_int q = first; q < last; q++) {
            spca_int j = at(A->indices, wide, q);
            if (q + AHEAD < end) FETCH(place + at(A->indices, wide, q + AHEAD));
            if (along)
                sum += A->data[q] * x[j];
            else
                y[j] += A->data[q] * xl;
        }
        if (along) y[l] = sum;
        if ((read += last - first + 16) > BLOCK / 2) {
            read = 0;
            if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        }
    }
    return SPCA_OK;
}

static spca_status compressed_product(const operator_t *A, int along, spca_int k,
                                      const spca_int *list, const real *x, spca_stop stop,
                                      void *ctx, real *y)
{
    if (A->wide)
        return along ? line_products(A, 1, 1, k, list, x, stop, ctx, y)
                     : line_products(A, 1, 0, k, list, x, stop, ctx, y);
    return along ? line_products(A, 0, 1, k, list, x, stop, ctx, y)
                 : line_products(A, 0, 0, k, list, x, stop, ctx, y);
}

spca_status SPCA(compressed_forward)(const operator_t *A, vector_t v, spca_stop stop, void *ctx,
                                     real *scratch, real *f)
{
    int by_lines = A->covariance || !A->row_major; /* then only the lines of v are read */
    real shift = weighted(A, v, !by_lines, scratch);
    spca_status status;
    for (spca_int i = 0; i < A->m; i++) f[i] = 0;
    status = by_lines ? compressed_product(A, 0, v.nnz, v.index, scratch, stop, ctx, f)
                      : compressed_product(A, 1, 0, NULL, scratch, stop, ctx, f);
    finish_forward(A, shift, f);
    return status;
}

spca_status SPCA(compressed_backward)(const operator_t *A, const real *f, real total,
                                      spca_int count, const spca_int *list, spca_stop stop,
                                      void *ctx, real *y)
{
    spca_status status;
    for (spca_int j = 0; j < A->p; j++) y[j] = 0;
    status = compressed_product(A, !A->row_major, 0, NULL, f, stop, ctx, y);
    finish_backward(A, total, count, list, y);
    return status;
}

spca_status SPCA(compressed_columns)(const operator_t *A, spca_int k, const spca_int *index,
                                     spca_stop stop, void *ctx, real *scratch, real *W)
{
    /* place[j] = 1 + position of column j in the list, in scratch: exact up to 1/epsilon columns */
    real *place = scratch;
    for (spca_int a = 0; a < k; a++) {
        real mean = A->mean ? A->mean[index[a]] * A->range : 0;
        for (spca_int i = 0; i < A->m; i++) W[a * A->m + i] = -mean * row_center(A, i);
    }
    if (A->row_major && !A->covariance) {
        spca_int read = 0;
        for (spca_int j = 0; j < A->p; j++) place[j] = 0;
        for (spca_int a = 0; a < k; a++) place[index[a]] = (real)(a + 1);
        for (spca_int i = 0; i < A->n; i++) {
            spca_int first = at(A->indptr, A->wide, i), last = at(A->indptr, A->wide, i + 1);
            for (spca_int q = first; q < last; q++) {
                spca_int a = (spca_int)place[at(A->indices, A->wide, q)];
                if (a) W[(a - 1) * A->m + i] += A->data[q] * A->range * row_weight(A, i);
            }
            if ((read += last - first + 16) > BLOCK / 2) {
                read = 0;
                if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
            }
        }
    } else {
        for (spca_int a = 0; a < k; a++) {
            spca_int last = at(A->indptr, A->wide, index[a] + 1);
            if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
            for (spca_int q = at(A->indptr, A->wide, index[a]); q < last; q++) {
                spca_int i = at(A->indices, A->wide, q);
                W[a * A->m + i] += A->data[q] * A->range * row_weight(A, i);
            }
        }
    }
    for (spca_int a = 0; a < k; a++) {
        real weight = column_weight(A, index[a]);
        for (spca_int i = 0; i < A->m; i++) W[a * A->m + i] *= weight;
        for (spca_int i = 0; A->covariance && A->weight && i < A->m; i++)
            W[a * A->m + i] *= A->weight[i];
    }
    return SPCA_OK;
}

/* ---- operators known by their products ------------------------------------------------------- */

spca_status SPCA(columns_by_products)(const operator_t *A, spca_int k, const spca_int *index,
                                      spca_stop stop, void *ctx, real *scratch, real *W)
{
    const real one = 1;
    for (spca_int a = 0; a < k; a++) {
        vector_t unit = {1, index + a, &one};
        spca_status status = A->forward(A, unit, stop, ctx, scratch, W + a * A->m);
        if (status < 0) return status;
    }
    return SPCA_OK;
}
