/* truncated_power.c - the truncated power method.
 *
 * x <- T_k(A x)/||T_k(A x)|| (Yuan & Zhang 2013, algorithm 1).  For positive semidefinite A the
 * objective x'Ax never decreases (their proposition 1); Hotelling deflation can leave A indefinite,
 * and the authors advise the shift of ascent.h.
 *
 * Over x >= 0 the same holds with the positive part of A x: both maximize y'x, y = A x, over the
 * feasible vectors, and x'Ax is convex. */
#include "ascent.h"

typedef struct {
    spca_int k;
    int nonnegative;
} sparsity_t;

/* next = T_k(A x)/||T_k(A x)|| */
static spca_status step(ascent_t *s, const void *solver)
{
    const sparsity_t *o = solver;
    vector_t x = {*s->nnz, s->index, s->value};
    real quadratic;
    spca_status status = SPCA(largest)(&s->A, x, o->k, o->nonnegative, s->stop, s->ctx, s->work,
                                       s->next_index, s->next, &quadratic);
    if (status < 0) return status;
    set_objective(s, quadratic);
    s->feasible = *s->nnz <= o->k;
    s->count = o->k;
    return to_unit(o->k, s->next) == 0 ? SPCA_ZERO_VECTOR : SPCA_OK;
}

spca_status SPCA(truncated_power)(const operator_t *A, spca_int k, int nonnegative,
                                  spca_int max_iter, real tol, spca_stop stop, void *ctx,
                                  spca_int *nnz, spca_int *index, real *value, real *work,
                                  spca_int *iwork, real *objective, spca_int *n_iter)
{
    const sparsity_t sparsity = {k, nonnegative};
    ascent_t s = {*A,    max_iter, tol,  stop,     ctx,       nnz,          index,
                  value, iwork,    work, work + k, objective, .previous = 0};
    (void)to_unit(*nnz, value);
    if (max_iter == 0 && *nnz > k) {
        SPCA(select_largest)(*nnz, value, k, s.work, iwork);
        for (spca_int a = 0; a < k; a++) {
            index[a] = index[iwork[a]];
            value[a] = value[iwork[a]];
        }
        *nnz = k;
        (void)to_unit(k, value);
    }
    return ascend(&s, step, &sparsity, n_iter);
}
