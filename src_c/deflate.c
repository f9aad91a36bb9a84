/* deflate.c - rank-one deflation in place, which touches only what the support of x reaches (Mackey
 * 2008).
 *
 * The orthogonalized forms are the same updates with q = (I - QQ')x/||.|| in place of x.  A is full
 * and symmetric, so a column is a row, and every loop runs along a line of memory. */
#include "real.h"

/* w = A x. */
static void symmetric_product(spca_int p, spca_int ld, vector_t x, const real *A, real *w)
{
    for (spca_int j = 0; j < p; j++) w[j] = 0;
    for (spca_int a = 0; a < x.nnz; a++) axpy(p, x.value[a], A + x.index[a] * ld, w);
}

/* lambda = x'A x is a sum over the k x k block of the support. */
spca_status SPCA(deflate_hotelling)(spca_int ld, vector_t x, real *A)
{
    real lambda = 0;
    for (spca_int a = 0; a < x.nnz; a++) lambda += x.value[a] * sparse_dot(x, A + x.index[a] * ld);
    if (!is_finite(1, &lambda)) return SPCA_NONFINITE;
    for (spca_int a = 0; a < x.nnz; a++)
        for (spca_int b = 0; b < x.nnz; b++)
            A[x.index[a] * ld + x.index[b]] -= lambda * (x.value[a] * x.value[b]);
    return SPCA_OK;
}

/* A - x w' - w x' + lambda x x' = A - (x z' + z x'),  w = A x, lambda = x'w, z = w - lambda x/2.
 * The sum is taken before it is subtracted, so that both triangles round alike. */
spca_status SPCA(deflate_projection)(spca_int p, spca_int ld, vector_t x, real *A, real *work)
{
    real *z = work, *dense = work + p;
    symmetric_product(p, ld, x, A, z);
    sparse_axpy(-sparse_dot(x, z) / 2, x, z);
    if (!is_finite(p, z)) return SPCA_NONFINITE;
    for (spca_int j = 0; j < p; j++) dense[j] = 0;
    sparse_axpy(1, x, dense);
    for (spca_int i = 0; i < p; i++) {
        real *row = A + i * ld;
        if (dense[i] == 0)
            sparse_axpy(-z[i], x, row);
        else
            for (spca_int j = 0; j < p; j++) row[j] -= dense[i] * z[j] + z[i] * dense[j];
    }
    return SPCA_OK;
}

/* A - w w'/lambda, w = A x, with the same entries in both triangles; A stays where lambda is
 * rounding. */
spca_status SPCA(deflate_schur)(spca_int p, spca_int ld, vector_t x, real *A, real *work)
{
    real *w = work, lambda, largest = 0;
    symmetric_product(p, ld, x, A, w);
    lambda = sparse_dot(x, w);
    if (!is_finite(p, w) || !is_finite(1, &lambda)) return SPCA_NONFINITE;
    for (spca_int i = 0; i < p; i++) largest = fmax(largest, fabs(A[i * ld + i]));
    if (fabs(lambda) <= 4 * REAL_EPSILON * (real)x.nnz * largest) return SPCA_OK;
    for (spca_int i = 0; i < p; i++)
        for (spca_int j = 0; j <= i; j++) A[i * ld + j] -= w[i] / lambda * w[j];
    for (spca_int i = 0; i < p; i++)
        for (spca_int j = 0; j < i; j++) A[j * ld + i] = A[i * ld + j];
    return SPCA_OK;
}

/* u = (X - 1 mean') x. */
static void scores(spca_int n, spca_int ld, int row_major, const real *mean, vector_t x,
                   const real *X, real *u)
{
    real shift = mean ? sparse_dot(x, mean) : 0;
    for (spca_int i = 0; i < n; i++) u[i] = row_major ? sparse_dot(x, X + i * ld) - shift : -shift;
    for (spca_int a = 0; !row_major && a < x.nnz; a++) axpy(n, x.value[a], X + x.index[a] * ld, u);
}

spca_status SPCA(deflate_data_projection)(spca_int n, spca_int ld, int row_major, vector_t x,
                                          real *X, real *work)
{
    real *u = work;
    scores(n, ld, row_major, NULL, x, X, u);
    if (!is_finite(n, u)) return SPCA_NONFINITE;
    for (spca_int i = 0; row_major && i < n; i++) sparse_axpy(-u[i], x, X + i * ld);
    for (spca_int a = 0; !row_major && a < x.nnz; a++) axpy(n, -x.value[a], u, X + x.index[a] * ld);
    return SPCA_OK;
}

/* max |x_ij - mean_j|, in the order of memory. */
static real largest_deviation(spca_int n, spca_int p, spca_int ld, int row_major, const real *mean,
                              const real *X)
{
    real largest = 0;
    for (spca_int l = 0; l < (row_major ? n : p); l++)
        for (spca_int q = 0; q < (row_major ? p : n); q++)
            largest = fmax(largest, fabs(X[l * ld + q] - (mean ? mean[row_major ? q : l] : 0)));
    return largest;
}

spca_status SPCA(deflate_data_schur)(spca_int n, spca_int p, spca_int ld, int row_major,
                                     const real *mean, vector_t x, real *X, real *work)
{
    real *u = work, *y = work + n, norm, rounding;
    scores(n, ld, row_major, mean, x, X, u);
    norm = nrm2(n, u);
    if (!is_finite(1, &norm)) return SPCA_NONFINITE;
    rounding = 4 * REAL_EPSILON * sqrt((real)x.nnz) * sqrt((real)n);
    if (norm <= rounding * largest_deviation(n, p, ld, row_major, mean, X)) return SPCA_OK;
    for (spca_int i = 0; i < n; i++) u[i] /= norm;
    for (spca_int j = 0; j < p; j++) y[j] = row_major ? 0 : strands_dot(n, u, X + j * ld);
    for (spca_int i = 0; row_major && i < n; i++) axpy(p, u[i], X + i * ld, y);
    if (!is_finite(p, y)) return SPCA_NONFINITE;
    for (spca_int i = 0; row_major && i < n; i++) axpy(p, -u[i], y, X + i * ld);
    for (spca_int j = 0; !row_major && j < p; j++) axpy(n, -y[j], u, X + j * ld);
    return SPCA_OK;
}
