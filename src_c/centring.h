/* centring.h - private: the terms beside a product with X, for the files that make such products.
 *
 * With row weights u and centers of rows s (ones, or u), w = range weight v and g = range f,
 *     F v = range (u (X w) - (mean'w) s),    F'f = range weight (X'(u g) - (s'g) mean). */
#ifndef SPCA_CENTRING_H
#define SPCA_CENTRING_H
#include "real.h"

/* w = range weight v, and returns mean'w.  w is dense (p) where `dense` asks for it or v is dense;
 * else w_a belongs to variable index_a of v. */
static inline real weighted(const operator_t *A, vector_t v, int dense, real *w)
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

/* array[q] of compressed storage: an int64 where the indices are wide, else an int32. */
static inline spca_int at(const void *array, int wide, spca_int q)
{
    return wide ? (spca_int)((const int64_t *)array)[q] : (spca_int)((const int32_t *)array)[q];
}

/* Fetches the first entries of line l into the cache; the processor foresees the others. */
static inline void fetch_line(const operator_t *A, const int wide, spca_int l)
{
    enum { FIRST = 512, REALS = 64 / sizeof(real) };
    spca_int q = at(A->indptr, wide, l), last = at(A->indptr, wide, l + 1);
    spca_int size = wide ? 8 : 4;
    if (last > q + FIRST) last = q + FIRST;
    for (spca_int i = q; i < last; i += REALS) FETCH(A->data + i);
    for (spca_int i = q; i < last; i += 64 / size) FETCH((const char *)A->indices + i * size);
}

/* By bisection: the first place q in [first, last) whose index is at least j, or last.  The indices
 * ascend. */
static inline spca_int place_of(const void *indices, const int wide, spca_int first, spca_int last,
                                spca_int j)
{
    while (first < last) {
        spca_int q = first + (last - first) / 2;
        if (at(indices, wide, q) < j)
            first = q + 1;
        else
            last = q;
    }
    return first;
}

/* 1'f, with the additions in the order of strands_dot. */
static inline real sum_of(spca_int n, const real *f)
{
    real sum[STRANDS] = {0};
    for (spca_int i = 0; i < n; i++) sum[i % STRANDS] += f[i];
    return add_strands(sum);
}

/* s'f in that order too; 0 where there are no means, since nothing asks for it then. */
static inline real total_of(const operator_t *A, const real *f)
{
    if (!A->mean) return 0;
    return A->row_weight && A->centered ? strands_dot(A->n, A->row_weight, f) : sum_of(A->n, f);
}

/* f <- range (u f - shift s): rows of F v from rows of X w (at i0, `rows` of them), where shift =
 * mean'w. */
static inline void finish_rows(const operator_t *A, spca_int i0, spca_int rows, real shift, real *f)
{
    const real *u = A->row_weight ? A->row_weight + i0 : NULL;
    if (!u)
        for (spca_int i = 0; i < rows; i++) f[i] = A->range * (f[i] - shift);
    else if (!A->centered)
        for (spca_int i = 0; i < rows; i++) f[i] = A->range * (u[i] * f[i] - shift);
    else
        for (spca_int i = 0; i < rows; i++) f[i] = A->range * (u[i] * (f[i] - shift));
}

/* f <- u f at `rows` rows from i0. */
static inline void weight_rows(const operator_t *A, spca_int i0, spca_int rows, real *f)
{
    for (spca_int i = 0; A->row_weight && i < rows; i++) f[i] *= A->row_weight[i0 + i];
}

/* y <- range weight (y - total mean) at the columns of the list (NULL: all): entries of F'f from y
 * = X'(u g), where total = s'g. */
static inline void finish_backward(const operator_t *A, real total, spca_int count,
                                   const spca_int *list, real *y)
{
    if (A->mean)
        for (spca_int a = 0; a < count; a++) y[a] -= total * A->mean[list ? list[a] : a];
    if (A->weight)
        for (spca_int a = 0; a < count; a++) y[a] *= A->weight[list ? list[a] : a];
    for (spca_int a = 0; A->range != 1 && a < count; a++) y[a] *= A->range;
}

/* f (m) <- F v from the product with w: of X, as finish_rows has it; of a covariance, range weight
 * f. */
static inline void finish_forward(const operator_t *A, real shift, real *f)
{
    if (A->symmetric_form && A->weight)
        for (spca_int j = 0; j < A->p; j++) f[j] *= A->range * A->weight[j];
    else
        finish_rows(A, 0, A->m, shift, f);
}

/* The factor of column j of F beside the first range, which has been applied to entries of X. */
static inline real column_weight(const operator_t *A, spca_int j)
{
    return A->range * (A->weight ? A->weight[j] : 1);
}

/* u_i, 1 without row weights. */
static inline real row_weight(const operator_t *A, spca_int i)
{
    return A->row_weight ? A->row_weight[i] : 1;
}

/* s_i. */
static inline real row_center(const operator_t *A, spca_int i)
{
    return A->centered ? row_weight(A, i) : 1;
}

/* What entries of row i are multiplied by before their mean is subtracted: u_i / s_i.  s_i is
 * applied last, so that no digit is lost to a large mean. */
static inline real before_center(const operator_t *A, spca_int i)
{
    return A->centered ? 1 : row_weight(A, i);
}
#endif
