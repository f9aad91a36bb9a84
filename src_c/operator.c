/* operator.c - the questions a solver asks of the symmetric operator A: products, their largest
 * entries, a submatrix; with implicit deflation.
 *
 * Deflation by directions x_1..x_t (Mackey 2008) never rewrites the matrix.  With
 * g_i = F_{i-1} x_i, the image of direction i before it was removed,
 *   projection         F_t v = F_0 v - sum_i (x_i'v) g_i,
 *                      data:        A_t v = F_0'f - sum_i (g_i'f) x_i,   f = F_t v,
 *                      covariance:  A_t v = (I - x_t x_t') .. (I - x_1 x_1') f,
 *   Schur complement   data:        f <- f - g_i (g_i'f)/||g_i||^2,
 *                      covariance:  f <- f - g_i (g_i'v)/(x_i'g_i),
 *   Hotelling          A_t v = A_0 v - sum_i amount_i (x_i'v) x_i.
 * The orthogonalized forms are Hotelling and projection with orthonormal directions.  Cost
 * O(t (k + m)) a product. */
#include "real.h"

SPCA(blas_table) SPCA(blas);

/* x'v of two vectors with ascending indices; either may be dense. */
static real vector_dot(vector_t x, vector_t v)
{
    real sum = 0;
    if (!v.index) return sparse_dot(x, v.value);
    if (!x.index) return sparse_dot(v, x.value);
    for (spca_int a = 0, b = 0; a < x.nnz && b < v.nnz;) {
        spca_int i = x.index[a], j = v.index[b];
        if (i == j) sum += x.value[a] * v.value[b];
        a += i <= j;
        b += j <= i;
    }
    return sum;
}

/* The deflations that act on f = F v. */
static void deflate_image(const operator_t *A, vector_t v, real *f)
{
    if (A->deflation == SPCA_NO_DEFLATION || A->deflation == SPCA_HOTELLING) return;
    for (spca_int i = 0; i < A->t; i++) {
        real c;
        if (A->deflation == SPCA_PROJECTION)
            c = vector_dot(A->direction[i], v);
        else if (A->covariance)
            c = sparse_dot(v, A->image[i]) * A->amount[i];
        else
            c = dot(A->m, A->image[i], f) * A->amount[i];
        axpy(A->m, -c, A->image[i], f);
    }
}

spca_status SPCA(image)(const operator_t *A, vector_t v, spca_stop stop, void *ctx, real *scratch,
                        real *f)
{
    spca_status status = A->forward(A, v, stop, ctx, scratch, f);
    if (status < 0) return status;
    deflate_image(A, v, f);
    return SPCA_OK;
}

static spca_status check_finite(spca_int p, const real *y)
{
    int bad = 0;
    for (spca_int j = 0; j < p; j++) bad |= !(fabs(y[j]) <= REAL_MAX);
    return bad ? SPCA_NONFINITE : SPCA_OK;
}

spca_status SPCA(apply)(const operator_t *A, vector_t v, spca_stop stop, void *ctx, real *work,
                        real *y)
{
    real *f = work, *c = work + A->m;
    spca_status status;
    if (A->covariance) { /* y = f, and work serves as scratch */
        status = SPCA(image)(A, v, stop, ctx, work, y);
        if (status < 0) return status;
        for (spca_int i = 0; A->deflation == SPCA_PROJECTION && i < A->t; i++)
            sparse_axpy(-sparse_dot(A->direction[i], y), A->direction[i], y);
    } else {
        status = SPCA(image)(A, v, stop, ctx, y, f);
        if (status < 0) return status;
        scal(A->m, A->factor, f);
        for (spca_int i = 0; A->deflation == SPCA_PROJECTION && i < A->t; i++)
            c[i] = dot(A->m, A->image[i], f);
        status = A->backward(A, stop, ctx, f, y);
        if (status < 0) return status;
        for (spca_int i = 0; A->deflation == SPCA_PROJECTION && i < A->t; i++)
            sparse_axpy(-c[i], A->direction[i], y);
    }
    for (spca_int i = 0; A->deflation == SPCA_HOTELLING && i < A->t; i++)
        sparse_axpy(-A->amount[i] * vector_dot(A->direction[i], v), A->direction[i], y);
    if (A->shift != 0) sparse_axpy(A->shift, v, y);
    return check_finite(A->p, y);
}

spca_status SPCA(largest)(const operator_t *A, vector_t v, spca_int k, spca_stop stop, void *ctx,
                          real *work, spca_int *index, real *value, real *quadratic)
{
    real *y = work, *rest = work + A->p;
    spca_status status = SPCA(apply)(A, v, stop, ctx, rest, y);
    if (status < 0) return status;
    *quadratic = sparse_dot(v, y);
    SPCA(select_largest)(A->p, y, k, rest, index);
    for (spca_int a = 0; a < k; a++) value[a] = y[index[a]];
    return SPCA_OK;
}

spca_status SPCA(above)(const operator_t *A, vector_t v, real tau, spca_stop stop, void *ctx,
                        real *work, spca_int *count, spca_int *index, real *value)
{
    real *y = work;
    spca_status status = SPCA(apply)(A, v, stop, ctx, work + A->p, y);
    spca_int found = 0;
    if (status < 0) return status;
    for (spca_int j = 0; j < A->p; j++)
        if (fabs(y[j]) > tau) {
            index[found] = j;
            value[found++] = y[j];
        }
    *count = found;
    return SPCA_OK;
}

spca_status SPCA(submatrix)(const operator_t *A, spca_int k, const spca_int *index, spca_stop stop,
                            void *ctx, real *work, real *G)
{
    const real unit = 1;
    spca_status status;
    if (A->covariance) {
        real *y = work;
        for (spca_int b = 0; b < k; b++) {
            vector_t e = {1, index + b, &unit};
            status = SPCA(apply)(A, e, stop, ctx, work + A->p, y);
            if (status < 0) return status;
            for (spca_int a = 0; a < k; a++) G[a + b * k] = y[index[a]];
        }
        return SPCA_OK;
    }
    real *W = work, beta = 0, factor = A->factor;
    blas_int n = (blas_int)A->m, k_ = (blas_int)k;
    status = A->columns(A, k, index, stop, ctx, work + A->m * k, W);
    if (status < 0) return status;
    for (spca_int a = 0; a < k; a++) {
        vector_t e = {1, index + a, &unit};
        deflate_image(A, e, W + a * A->m);
    }
    SPCA(blas).syrk("U", "T", &k_, &n, &factor, W, &n, &beta, G, &k_);
    for (spca_int i = 0; A->deflation == SPCA_HOTELLING && i < A->t; i++)
        for (spca_int b = 0; b < k; b++) {
            vector_t e = {1, index + b, &unit};
            real xb = vector_dot(A->direction[i], e);
            for (spca_int a = 0; xb != 0 && a <= b; a++) {
                vector_t d = {1, index + a, &unit};
                G[a + b * k] -= A->amount[i] * xb * vector_dot(A->direction[i], d);
            }
        }
    for (spca_int b = 0; b < k; b++) {
        if (A->shift != 0) G[b + b * k] += A->shift;
        for (spca_int a = 0; a < b; a++) G[b + a * k] = G[a + b * k];
    }
    return check_finite(k * k, G);
}

spca_status SPCA(leading_eigenvector)(spca_int k, real *G, real *work, blas_int *iwork, real *value,
                                      real *vector)
{
    blas_int n = (blas_int)k, lwork = (blas_int)(26 * k), liwork = (blas_int)(10 * k);
    blas_int found = 0, info = 0, *isuppz = iwork + 10 * k;
    real unused = 0, *eigenvalues = work;
    SPCA(blas).syevr("V", "I", "U", &n, G, &n, &unused, &unused, &n, &n, &unused, &found,
                     eigenvalues, vector, &n, isuppz, work + k, &lwork, iwork, &liwork, &info);
    if (info != 0 || found != 1) return SPCA_LAPACK_FAILED;
    *value = eigenvalues[0];
    return SPCA_OK;
}
