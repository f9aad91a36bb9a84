/* deflate.c - rank-one deflation in place, touching only what the support of x reaches (Mackey
 * 2008).
 *
 * The orthogonalized forms are the same updates with q = (I - QQ')x/||.|| in place of x.  A is full
 * and symmetric, so rows and columns may be exchanged: every loop runs along a line. */
#include "real.h"

/* w = A x */
static void symmetric_product(spca_int p, spca_int ld, vector_t x, const real *A, real *w)
{
    for (spca_int j = 0; j < p; j++) w[j] = 0;
    for (spca_int a = 0; a < x.nnz; a++) axpy(p, x.value[a], A + x.index[a] * ld, w);
}

/* x'A x = sum over the k x k block */
void SPCA(deflate_hotelling)(spca_int p, spca_int ld, vector_t x, real *A)
{
    real lambda = 0;
    (void)p;
    for (spca_int a = 0; a < x.nnz; a++) lambda += x.value[a] * sparse_dot(x, A + x.index[a] * ld);
    for (spca_int a = 0; a < x.nnz; a++)
        for (spca_int b = 0; b < x.nnz; b++)
            A[x.index[a] * ld + x.index[b]] -= lambda * (x.value[a] * x.value[b]);
}

/* A - x w' - w x' + lambda x x' = A - (x z' + z x'),  w = A x, lambda = x'w, z = w - lambda x/2;
 * the sum is taken before it is subtracted, so that both triangles round alike. */
void SPCA(deflate_projection)(spca_int p, spca_int ld, vector_t x, real *A, real *work)
{
    real *z = work, *dense = work + p;
    symmetric_product(p, ld, x, A, z);
    sparse_axpy(-sparse_dot(x, z) / 2, x, z);
    for (spca_int j = 0; j < p; j++) dense[j] = 0;
    sparse_axpy(1, x, dense);
    for (spca_int i = 0; i < p; i++) {
        real *row = A + i * ld;
        if (dense[i] == 0)
            sparse_axpy(-z[i], x, row);
        else
            for (spca_int j = 0; j < p; j++) row[j] -= dense[i] * z[j] + z[i] * dense[j];
    }
}

/* A - w w'/lambda, entry by entry the same in both triangles */
void SPCA(deflate_schur)(spca_int p, spca_int ld, vector_t x, real *A, real *work)
{
    real *w = work, lambda;
    symmetric_product(p, ld, x, A, w);
    lambda = sparse_dot(x, w);
    if (lambda == 0) return;
    for (spca_int i = 0; i < p; i++)
        for (spca_int j = 0; j <= i; j++) A[i * ld + j] -= w[i] / lambda * w[j];
    for (spca_int i = 0; i < p; i++)
        for (spca_int j = 0; j < i; j++) A[j * ld + i] = A[i * ld + j];
}

/* u = (X - 1 mean') x */
static void scores(spca_int n, spca_int ld, int row_major, const real *mean, vector_t x,
                   const real *X, real *u)
{
    real shift = mean ? sparse_dot(x, mean) : 0;
    for (spca_int i = 0; i < n; i++) u[i] = row_major ? sparse_dot(x, X + i * ld) - shift : -shift;
    for (spca_int a = 0; !row_major && a < x.nnz; a++) axpy(n, x.value[a], X + x.index[a] * ld, u);
}

spca_status SPCA(deflate_data_projection)(spca_int n, spca_int p, spca_int ld, int row_major,
                                          vector_t x, real *X, real *work)
{
    real *u = work;
    int bad = 0;
    (void)p;
    scores(n, ld, row_major, NULL, x, X, u);
    for (spca_int i = 0; i < n; i++) bad |= !(fabs(u[i]) <= REAL_MAX);
    if (bad) return SPCA_NONFINITE;
    for (spca_int i = 0; row_major && i < n; i++) sparse_axpy(-u[i], x, X + i * ld);
    for (spca_int a = 0; !row_major && a < x.nnz; a++) axpy(n, -x.value[a], u, X + x.index[a] * ld);
    return SPCA_OK;
}

void SPCA(deflate_data_schur)(spca_int n, spca_int p, spca_int ld, int row_major, const real *mean,
                              vector_t x, real *X, real *work)
{
    real *u = work, *y = work + n, norm;
    scores(n, ld, row_major, mean, x, X, u);
    if ((norm = nrm2(n, u)) == 0) return;
    for (spca_int i = 0; i < n; i++) u[i] /= norm;
    if (!row_major) {
        for (spca_int j = 0; j < p; j++) axpy(n, -dot(n, u, X + j * ld), u, X + j * ld);
        return;
    }
    for (spca_int j = 0; j < p; j++) y[j] = 0;
    for (spca_int i = 0; i < n; i++) axpy(p, u[i], X + i * ld, y);
    for (spca_int i = 0; i < n; i++) axpy(p, -u[i], y, X + i * ld);
}
