/* centring.h - private: the terms beside a product with X, for the files that make one.
 *
 * With row weights u and row centers s (NULL: ones), w = range weight v and g = range f,
 *     F v = range (u (X w) - (mean'w) s),    F'f = range weight (X'(u g) - (s'g) mean). */
#ifndef SPCA_CENTRING_H
#define SPCA_CENTRING_H
#include "real.h"

/* w = range weight v: dense into w (p) if asked or if v is dense, else value by value.  Returns
 * mean'w. */
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

/* An index of compressed storage. */
static inline spca_int at(const void *array, int wide, spca_int q)
{
    return wide ? (spca_int)((const int64_t *)array)[q] : (spca_int)((const int32_t *)array)[q];
}

/* The first entries of a line into the cache; a processor foresees the others. */
static inline void fetch_line(const operator_t *A, const int wide, spca_int l)
{
    enum { FIRST = 512, REALS = 64 / sizeof(real) };
    spca_int q = at(A->indptr, wide, l), last = at(A->indptr, wide, l + 1);
    spca_int size = wide ? 8 : 4;
    if (last > q + FIRST) last = q + FIRST;
    for (spca_int i = q; i < last; i += REALS) FETCH(A->data + i);
    for (spca_int i = q; i < last; i += 64 / size) FETCH((const char *)A->indices + i * size);
}

/* The first place between first and last whose index is at least j. */
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

/* 1'f, in the order of strands_dot. */
static inline real sum_of(spca_int n, const real *f)
{
    real sum[STRANDS] = {0};
    for (spca_int i = 0; i < n; i++) sum[i % STRANDS] += f[i];
    return add_strands(sum);
}

/* s'f, in that order too; 0 where no mean needs it. */
static inline real total_of(const operator_t *A, const real *f)
{
    if (!A->mean) return 0;
    return A->row_center ? strands_dot(A->n, A->row_center, f) : sum_of(A->n, f);
}

/* f <- range (u f - shift s) at rows from i0. */
static inline void finish_rows(const operator_t *A, spca_int i0, spca_int rows, real shift, real *f)
{
    const real *u = A->row_weight ? A->row_weight + i0 : NULL;
    const real *s = A->row_center ? A->row_center + i0 : NULL;
    if (!u)
        for (spca_int i = 0; i < rows; i++) f[i] = A->range * (f[i] - shift);
    else if (!s)
        for (spca_int i = 0; i < rows; i++) f[i] = A->range * (u[i] * f[i] - shift);
    else
        for (spca_int i = 0; i < rows; i++) f[i] = A->range * (u[i] * f[i] - shift * s[i]);
}

/* f <- u f at rows from i0. */
static inline void weight_rows(const operator_t *A, spca_int i0, spca_int rows, real *f)
{
    for (spca_int i = 0; A->row_weight && i < rows; i++) f[i] *= A->row_weight[i0 + i];
}

/* From X'(u f): y <- range weight (y - total mean) at the columns of the list. */
static inline void finish_backward(const operator_t *A, real total, spca_int count,
                                   const spca_int *list, real *y)
{
    if (A->mean)
        for (spca_int a = 0; a < count; a++) y[a] -= total * A->mean[list ? list[a] : a];
    if (A->weight)
        for (spca_int a = 0; a < count; a++) y[a] *= A->weight[list ? list[a] : a];
    for (spca_int a = 0; A->range != 1 && a < count; a++) y[a] *= A->range;
}

static inline void finish_forward(const operator_t *A, real shift, real *f)
{
    if (A->symmetric_form && A->weight)
        for (spca_int j = 0; j < A->p; j++) f[j] *= A->range * A->weight[j];
    else
        finish_rows(A, 0, A->m, shift, f);
}

/* What a column j of F is multiplied by besides the first range. */
static inline real column_weight(const operator_t *A, spca_int j)
{
    return A->range * (A->weight ? A->weight[j] : 1);
}

static inline real row_weight(const operator_t *A, spca_int i)
{
    return A->row_weight ? A->row_weight[i] : 1;
}

static inline real row_center(const operator_t *A, spca_int i)
{
    return A->row_center ? A->row_center[i] : 1;
}
#endif
