/* truncated_power.c - the truncated power method.
 *
 * x <- T_k(A x)/||T_k(A x)|| (Yuan & Zhang 2013, algorithm 1).  For positive semidefinite A the
 * objective x'Ax never decreases (their proposition 1).  Hotelling deflation can leave A
 * indefinite; when the objective falls, A + shift I takes over, with shift doubled until it no
 * longer does, as the authors advise.  Every product tells the objective of the vector it was
 * applied to, so the result is the last vector whose objective is known.
 *
 * Over x >= 0 the same holds with the positive part of A x: both maximize y'x, y = A x, over the
 * feasible vectors, and x'Ax is convex. */
#include "real.h"

spca_status SPCA(truncated_power)(const operator_t *A, spca_int k, int nonnegative,
                                  spca_int max_iter, real tol, spca_stop stop, void *ctx,
                                  spca_int *nnz, spca_int *index, real *value, real *work,
                                  spca_int *iwork, real *objective, spca_int *n_iter)
{
    operator_t shifted = *A;
    real *next = work, *rest = work + k, previous = 0, rounding = 64 * REAL_EPSILON;
    int feasible = 0; /* whether previous is the objective of a k-sparse vector */
    *n_iter = 0;
    scal(*nnz, 1 / nrm2(*nnz, value), value);
    if (max_iter == 0 && *nnz > k) {
        SPCA(select_largest)(*nnz, value, k, rest, iwork);
        for (spca_int a = 0; a < k; a++) {
            index[a] = index[iwork[a]];
            value[a] = value[iwork[a]];
        }
        *nnz = k;
        scal(k, 1 / nrm2(k, value), value);
    }
    for (;;) {
        vector_t x = {*nnz, index, value};
        real quadratic, norm, gain, level;
        int same;
        spca_status status;
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        status =
            SPCA(largest)(&shifted, x, k, nonnegative, stop, ctx, rest, iwork, next, &quadratic);
        if (status < 0) return status;
        quadratic -= shifted.shift;
        *objective = quadratic;
        if ((norm = nrm2(k, next)) == 0) return SPCA_ZERO_VECTOR;
        scal(k, 1 / norm, next);

        same = *nnz == k;
        for (spca_int a = 0; same && a < k; a++) same = index[a] == iwork[a];
        gain = quadratic - previous;
        level = fabs(quadratic) + shifted.shift;
        if (feasible) {
            if (gain < -rounding * level)
                shifted.shift = 2 * shifted.shift + fabs(previous) / 2;
            else if (gain <= (same ? fmax(tol, rounding) : rounding) * level)
                return SPCA_OK;
        }
        if (*n_iter == max_iter) return SPCA_NOT_CONVERGED;
        feasible = *nnz <= k;
        previous = quadratic;
        *nnz = k;
        for (spca_int a = 0; a < k; a++) {
            index[a] = iwork[a];
            value[a] = next[a];
        }
        ++*n_iter;
    }
}
