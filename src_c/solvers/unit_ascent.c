/* unit_ascent.c - x <- the step of units.c from A x, over its norm, until the objective rises no
 * more.
 *
 * Only vectors that a step has made are compared; the best of them is returned. */
#include "real.h"

/* ||x||. */
static double norm_of(spca_int p, const double *x)
{
    double square = 0;
    for (spca_int j = 0; j < p; j++) square += x[j] * x[j];
    return sqrt(square);
}

/* x <- x or -x, whichever has the larger norm without entries of a wrong sign; returns that norm.
 * other (p): scratch. */
static double orient(const spca_supports *o, double *x, double *other)
{
    double size, rest;
    for (spca_int j = 0; j < o->p; j++) other[j] = -x[j];
    spca_project_units(o, x);
    spca_project_units(o, other);
    size = norm_of(o->p, x);
    rest = norm_of(o->p, other);
    for (spca_int j = 0; o->signs && rest > size && j < o->p; j++) x[j] = other[j];
    return o->signs ? fmax(size, rest) : size;
}

/* y = A x, and *quadratic = x'y. */
static spca_status product(const operator_t *A, const double *x, spca_stop stop, void *ctx,
                           real *work, spca_int *index, double *y, double *quadratic)
{
    real *value = work + A->m + A->t, *image = value + A->p;
    spca_int nnz = 0;
    spca_status status;
    for (spca_int j = 0; j < A->p; j++)
        if (x[j] != 0) {
            index[nnz] = j;
            value[nnz++] = (real)x[j];
        }
    status = SPCA(apply)(A, (vector_t){nnz, index, value}, stop, ctx, work, image);
    if (status < 0) return status;
    *quadratic = 0;
    for (spca_int a = 0; a < nnz; a++) *quadratic += (double)value[a] * (double)image[index[a]];
    for (spca_int j = 0; j < A->p; j++) y[j] = (double)image[j];
    return SPCA_OK;
}

spca_status SPCA(unit_ascent)(const operator_t *A, const spca_rule *rule, spca_int max_iter,
                              double tol, spca_stop stop, void *ctx, const double *start,
                              real *work, double *dwork, spca_int *iwork, uint8_t *kept,
                              double *best, uint8_t *support, double *objective, double *quadratic,
                              spca_int *n_iter)
{
    const spca_supports *o = &rule->of;
    spca_int p = o->p;
    double *x = dwork, *y = x + p, *scratch = y + p, size, now;
    spca_status status;
    *objective = -(double)INFINITY;
    *n_iter = 0;
    for (spca_int j = 0; j < p; j++) x[j] = start[j];
    size = orient(o, x, y);
    if (!(size > 0)) return SPCA_ZERO_VECTOR;
    if (max_iter == 0) {
        spca_unit_step(rule, size * size, x, scratch, iwork, kept);
        size = norm_of(p, x);
        if (!(size > 0)) return SPCA_ZERO_VECTOR;
    }
    for (;; ++*n_iter) {
        for (spca_int j = 0; j < p; j++) x[j] /= size;
        status = product(A, x, stop, ctx, work, iwork, y, &now);
        if (status < 0) return status;
        if (*n_iter > 0 || max_iter == 0) {
            double value = spca_unit_objective(rule, now, x, scratch), rise = value - *objective;
            if (rise > 0) {
                *objective = value;
                *quadratic = now;
                for (spca_int j = 0; j < p; j++) best[j] = x[j];
                for (spca_int u = 0; u < o->units; u++) support[u] = kept[u];
            }
            if (!(rise > tol * fabs(now))) return SPCA_OK;
        }
        if (*n_iter == max_iter) return SPCA_NOT_CONVERGED;
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (spca_int j = 0; j < p; j++) x[j] = y[j];
        spca_unit_step(rule, now, x, scratch, iwork, kept);
        size = norm_of(p, x);
        if (!(size > 0))
            return *objective > -(double)INFINITY ? SPCA_NOT_CONVERGED : SPCA_ZERO_VECTOR;
    }
}
