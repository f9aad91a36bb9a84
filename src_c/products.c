/* products.c - f = F v, y = F'f and columns of F, for each way to store X or a covariance.
 *
 * F = (X - 1 mean') diag(weight) range^2 for data; diag(weight) A0 diag(weight) range^2 for a
 * covariance.  Nothing of X is ever copied: with w = range weight v,
 *     f = range (X w - (mean'w) 1),    y = range weight (X'f - (1'f) mean). */
#include "real.h"

#define BLOCK ((spca_int)1 << 25) /* entries read between two looks at stop: 256 MB of double */

/* ---- what the storages share ---------------------------------------------------------------- */

/* w = range weight v: dense into w (p) if asked or if v is dense, else value by value.  Returns
 * mean'w. */
static real weighted(const operator_t *A, vector_t v, int dense, real *w)
{
    real shift = 0;
    if (v.index && dense)
        for (spca_int j = 0; j < A->p; j++) w[j] = 0;
    for (spca_int a = 0; a < v.nnz; a++) {
        spca_int j = v.index ? v.index[a] : a;
        real x = v.value[a] * A->range * (A->weight ? A->weight[j] : 1);
        w[dense ? j : a] = x;
        if (A->mean) shift += A->mean[j] * x;
    }
    return shift;
}

static void finish_forward(const operator_t *A, real shift, real *f)
{
    if (A->covariance && A->weight)
        for (spca_int j = 0; j < A->p; j++) f[j] *= A->range * A->weight[j];
    else
        for (spca_int i = 0; i < A->m; i++) f[i] = A->range * (f[i] - shift);
}

/* f <- range f; returns 1'f. */
static real begin_backward(const operator_t *A, real *f)
{
    real sum = 0;
    for (spca_int i = 0; i < A->n; i++) sum += f[i] *= A->range;
    return sum;
}

static void finish_backward(const operator_t *A, real sum, real *y)
{
    if (A->mean)
        for (spca_int j = 0; j < A->p; j++) y[j] -= sum * A->mean[j];
    if (A->weight)
        for (spca_int j = 0; j < A->p; j++) y[j] *= A->weight[j];
    if (A->range != 1) scal(A->p, A->range, y);
}

/* What a column j of F is multiplied by besides the first range. */
static real column_weight(const operator_t *A, spca_int j)
{
    return A->range * (A->weight ? A->weight[j] : 1);
}

/* ---- dense ---------------------------------------------------------------------------------- */

/* Lines are the contiguous vectors of the storage: rows in C order, columns in Fortran order.
 * along: y (lines) = line . x.  across: y (length) = sum of x_l line_l. */
static spca_status lines_product(const operator_t *A, int along, const real *x, spca_stop stop,
                                 void *ctx, real *y)
{
    spca_int lines = A->row_major ? A->m : A->p, length = A->row_major ? A->p : A->m;
    spca_int piece = min_int(length, BLOCK), step = BLOCK / piece, ld = A->ld;
    if (ld > PIECE) step = 1; /* a leading dimension that BLAS could not be told */
    for (spca_int i = 0, size = along ? lines : length; i < size; i++) y[i] = 0;
    for (spca_int l = 0; l < lines; l += step) {
        for (spca_int q = 0; q < length; q += piece) {
            spca_int n = min_int(step, lines - l), m = min_int(piece, length - q);
            const real *block = A->data + l * ld + q;
            if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
            if (along)
                gemv('T', m, n, block, n == 1 ? m : ld, x + q, 1, y + l);
            else
                gemv('N', m, n, block, n == 1 ? m : ld, x + l, 1, y + q);
        }
    }
    return SPCA_OK;
}

/* f += sum_a w_a line(index_a), four lines at a time so that f is written less often. */
static spca_status add_lines(const operator_t *A, spca_int k, const spca_int *index, const real *w,
                             spca_int length, spca_stop stop, void *ctx, real *restrict f)
{
    spca_int a = 0;
    for (; a + 4 <= k; a += 4) {
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        const real *l0 = A->data + index[a] * A->ld, *l1 = A->data + index[a + 1] * A->ld;
        const real *l2 = A->data + index[a + 2] * A->ld, *l3 = A->data + index[a + 3] * A->ld;
        real w0 = w[a], w1 = w[a + 1], w2 = w[a + 2], w3 = w[a + 3];
        for (spca_int i = 0; i < length; i++)
            f[i] += (w0 * l0[i] + w1 * l1[i]) + (w2 * l2[i] + w3 * l3[i]);
    }
    for (; a < k; a++) {
        const real *line = A->data + index[a] * A->ld;
        for (spca_int i = 0; i < length; i++) f[i] += w[a] * line[i];
    }
    return SPCA_OK;
}

spca_status SPCA(dense_forward)(const operator_t *A, vector_t v, spca_stop stop, void *ctx,
                                real *scratch, real *f)
{
    spca_status status = SPCA_OK;
    real *w = scratch, shift;
    if (!v.index || v.nnz > A->p / 8) {
        shift = weighted(A, v, 1, w);
        status = lines_product(A, A->row_major, w, stop, ctx, f);
    } else {
        shift = weighted(A, v, 0, w);
        if (A->covariance || !A->row_major) {
            for (spca_int i = 0; i < A->m; i++) f[i] = 0;
            status = add_lines(A, v.nnz, v.index, w, A->m, stop, ctx, f);
        } else {
            for (spca_int i = 0; i < A->n; i++) {
                const real *row = A->data + i * A->ld;
                real even = 0, odd = 0;
                spca_int a = 0;
                if (i % 4096 == 0 && asked_to_stop(stop, ctx)) return SPCA_STOPPED;
                for (; a + 2 <= v.nnz; a += 2) {
                    even += w[a] * row[v.index[a]];
                    odd += w[a + 1] * row[v.index[a + 1]];
                }
                if (a < v.nnz) even += w[a] * row[v.index[a]];
                f[i] = even + odd;
            }
        }
    }
    finish_forward(A, shift, f);
    return status;
}

spca_status SPCA(dense_backward)(const operator_t *A, spca_stop stop, void *ctx, real *f, real *y)
{
    real sum = begin_backward(A, f);
    spca_status status = lines_product(A, !A->row_major, f, stop, ctx, y);
    finish_backward(A, sum, y);
    return status;
}

spca_status SPCA(dense_columns)(const operator_t *A, spca_int k, const spca_int *index,
                                spca_stop stop, void *ctx, real *scratch, real *W)
{
    spca_int across = A->row_major ? A->ld : 1, down = A->row_major ? 1 : A->ld;
    (void)scratch;
    for (spca_int i0 = 0; i0 < A->m; i0 += 256) { /* rows stay in cache from column to column */
        spca_int i1 = min_int(A->m, i0 + 256);
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (spca_int a = 0; a < k; a++) {
            const real *x = A->data + index[a] * down;
            real weight = column_weight(A, index[a]), range = A->range;
            real mean = A->mean ? A->mean[index[a]] * range : 0;
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

static inline spca_int at(const void *array, int wide, spca_int q)
{
    return wide ? (spca_int)((const int64_t *)array)[q] : (spca_int)((const int32_t *)array)[q];
}

/* y[l] = line_l . x, or, across, y += x_l line_l for each line of the list (all if NULL). */
static spca_status compressed_product(const operator_t *A, int along, spca_int k,
                                      const spca_int *list, const real *x, spca_stop stop,
                                      void *ctx, real *y)
{
    spca_int read = 0, lines = list ? k : A->row_major ? A->m : A->p;
    for (spca_int a = 0; a < lines; a++) {
        spca_int l = list ? list[a] : a;
        spca_int first = at(A->indptr, A->wide, l), last = at(A->indptr, A->wide, l + 1);
        if (along) {
            real sum = 0;
            for (spca_int q = first; q < last; q++)
                sum += A->data[q] * x[at(A->indices, A->wide, q)];
            y[l] = sum;
        } else {
            real xl = x[a];
            for (spca_int q = first; q < last; q++)
                y[at(A->indices, A->wide, q)] += A->data[q] * xl;
        }
        if ((read += last - first + 16) > BLOCK / 8) {
            read = 0;
            if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        }
    }
    return SPCA_OK;
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

spca_status SPCA(compressed_backward)(const operator_t *A, spca_stop stop, void *ctx, real *f,
                                      real *y)
{
    real sum = begin_backward(A, f);
    spca_status status;
    for (spca_int j = 0; j < A->p; j++) y[j] = 0;
    status = compressed_product(A, !A->row_major, 0, NULL, f, stop, ctx, y);
    finish_backward(A, sum, y);
    return status;
}

spca_status SPCA(compressed_columns)(const operator_t *A, spca_int k, const spca_int *index,
                                     spca_stop stop, void *ctx, real *scratch, real *W)
{
    /* place[j] = 1 + position of column j in the list, in scratch: exact up to 1/epsilon columns */
    real *place = scratch;
    for (spca_int a = 0; a < k; a++) {
        real mean = A->mean ? A->mean[index[a]] * A->range : 0;
        for (spca_int i = 0; i < A->m; i++) W[a * A->m + i] = -mean;
    }
    if (A->row_major && !A->covariance) {
        spca_int read = 0;
        for (spca_int j = 0; j < A->p; j++) place[j] = 0;
        for (spca_int a = 0; a < k; a++) place[index[a]] = (real)(a + 1);
        for (spca_int i = 0; i < A->n; i++) {
            spca_int first = at(A->indptr, A->wide, i), last = at(A->indptr, A->wide, i + 1);
            for (spca_int q = first; q < last; q++) {
                spca_int a = (spca_int)place[at(A->indices, A->wide, q)];
                if (a) W[(a - 1) * A->m + i] += A->data[q] * A->range;
            }
            if ((read += last - first + 16) > BLOCK / 8) {
                read = 0;
                if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
            }
        }
    } else {
        for (spca_int a = 0; a < k; a++) {
            spca_int last = at(A->indptr, A->wide, index[a] + 1);
            if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
            for (spca_int q = at(A->indptr, A->wide, index[a]); q < last; q++)
                W[a * A->m + at(A->indices, A->wide, q)] += A->data[q] * A->range;
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
