/* centring.h - private: the terms beside a product with X, for the files that make one.
 *
 * With w = range weight v,  F v = range (X w - (mean'w) 1),  F'g/range = range weight (X'g - (1'g)
 * mean); row weights are products.c's and operator.c's. */
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

/* 1'f, in the order of strands_dot. */
static inline real sum_of(spca_int n, const real *f)
{
    real sum[STRANDS] = {0};
    for (spca_int i = 0; i < n; i++) sum[i % STRANDS] += f[i];
    return add_strands(sum);
}

/* From X'f: y <- range weight (y - (1'f) mean) at the columns of the list. */
static inline void finish_backward(const operator_t *A, real sum, spca_int count,
                                   const spca_int *list, real *y)
{
    if (A->mean)
        for (spca_int a = 0; a < count; a++) y[a] -= sum * A->mean[list ? list[a] : a];
    if (A->weight)
        for (spca_int a = 0; a < count; a++) y[a] *= A->weight[list ? list[a] : a];
    if (A->range != 1) scal(count, A->range, y);
}
#endif
