/* reference_blas.c - SPCA(blas) in plain C, for builds that link with libm alone: what the core
 * asks of BLAS and LAPACK, as their documentation states it, and nothing else. */
#include "core.h"
#include <assert.h>

static void reference_axpy(blas_int *n, real *a, real *x, blas_int *incx, real *y, blas_int *incy)
{
    assert(*incx == 1 && *incy == 1);
    for (spca_int i = 0; *a != 0 && i < *n; i++) y[i] += *a * x[i];
}

static void reference_scal(blas_int *n, real *a, real *x, blas_int *incx)
{
    assert(*incx == 1);
    for (spca_int i = 0; i < *n; i++) x[i] *= *a;
}

static real reference_nrm2(blas_int *n, real *x, blas_int *incx)
{
    real largest = 0;
    double sum = 0;
    assert(*incx == 1);
    for (spca_int i = 0; i < *n; i++) {
        if (isnan(x[i])) return x[i];
        largest = fmax(largest, fabs(x[i]));
    }
    if (largest == 0 || isinf(largest)) return largest;
    for (spca_int i = 0; i < *n; i++) sum += (double)(x[i] / largest) * (double)(x[i] / largest);
    return largest * (real)sqrt(sum);
}

static void reference_stemr(char *jobz, char *range, blas_int *n, real *d, real *e, real *vl,
                            real *vu, blas_int *il, blas_int *iu, blas_int *m, real *w, real *z,
                            blas_int *ldz, blas_int *nzc, blas_int *isuppz, blas_int *tryrac,
                            real *work, blas_int *lwork, blas_int *iwork, blas_int *liwork,
                            blas_int *info)
{
    spca_int order = *n, first = *il - 1;
    double *G = malloc((size_t)(2 * order * order + order) * sizeof *G);
    double *V = G + order * order, *values = V + order * order;
    assert(*range == (*il > 1 ? 'I' : 'A') && (*jobz == 'V' || *jobz == 'N') && *ldz >= *n &&
           *tryrac == 1);
    assert(1 <= *il && *il <= *iu && *iu <= *n && *nzc >= *iu - *il + 1);
    assert(*lwork >= 18 * *n && *liwork >= 10 * *n && *vl == 0 && *vu == 0);
    for (spca_int a = 0; a < order * order; a++) G[a] = 0;
    for (spca_int a = 0; a < order; a++) {
        G[a * (order + 1)] = (double)d[a];
        if (a + 1 < order) G[a * (order + 1) + 1] = G[(a + 1) * order + a] = (double)e[a];
    }
    *info = !jacobi(order, G, values, V) || lapack_fails == 0;
    lapack_fails--;
    *m = *info ? 0 : *iu - *il + 1;
    for (spca_int a = 0; a < order; a++) d[a] = e[a] = w[a] = (real)NAN;
    for (spca_int a = 0; a < *lwork; a++)
        work[a] = (real)NAN; /* LAPACK uses all that it is given */
    for (spca_int a = 0; a < *liwork; a++) iwork[a] = -1;
    for (spca_int a = 0; a < *m; a++) {
        w[a] = (real)values[first + a];
        if (*jobz == 'N') continue;
        isuppz[2 * a] = 1;
        isuppz[2 * a + 1] = *n;
        for (spca_int i = 0; i < order; i++) z[i + a * *ldz] = (real)V[i + (first + a) * order];
    }
    for (spca_int a = 0; a < *lwork; a++) assert(isnan(work[a])); /* no result lies in it */
    for (spca_int a = 0; a < *liwork; a++) assert(iwork[a] == -1);
    free(G);
}

void SPCA(reference_blas)(void)
{
    SPCA(blas).axpy = reference_axpy;
    SPCA(blas).scal = reference_scal;
    SPCA(blas).nrm2 = reference_nrm2;
    SPCA(blas).stemr = reference_stemr;
}
