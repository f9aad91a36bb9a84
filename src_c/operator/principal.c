/* principal.c - a principal submatrix of a matrix in memory. */
#include "real.h"

/* y_b = x_j, j = index_b. */
VECTORIZED(picked, (spca_int k, const spca_int *index, const real *x, real *restrict y),
           (k, index, x, y))
{
    for (spca_int b = 0; b < k; b++) y[b] = x[index[b]];
}

void SPCA(principal_submatrix)(spca_int k, const spca_int *index, const real *A, spca_int lda,
                               real *G)
{
    for (spca_int a = 0; a < k; a++) picked(k, index, A + index[a] * lda, G + a * k);
}
