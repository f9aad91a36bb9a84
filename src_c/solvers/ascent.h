/* ascent.h - private: the loop that the power methods share.
 *
 * Each step takes the unit vector v to the feasible w that maximizes (A v)'w or a bound of that
 * kind.  For positive semidefinite A the objective never decreases, since w'Aw >= v'Av + 2 (A v)'(w
 * - v).  Where A is indefinite it may fall; then A + shift I takes over, with shift doubled until
 * it no longer does.  Each product gives the objective of the vector it was applied to, so that the
 * result is the last vector whose objective is known. */
#ifndef SPCA_ASCENT_H
#define SPCA_ASCENT_H
#include "real.h"

#define ROUNDING (64 * REAL_EPSILON) /* of an objective, relative to its terms */

typedef struct {
    operator_t A; /* with its shift */
    spca_int max_iter;
    real tol;
    spca_stop stop;
    void *ctx;
    spca_int *nnz, *index; /* v */
    real *value;
    spca_int *next_index; /* the next vector, of count nonzeros */
    real *next, *work, *objective;
    spca_int count;
    real previous;     /* objective, of the vector before */
    real noise, scale; /* what rounding does to the objective; what tol is relative to */
    real raise;        /* twice the first shift */
    int feasible;      /* whether v is feasible */
} ascent_t;

/* The product with v, its objective, and the next vector. */
typedef spca_status step_t(ascent_t *s, const void *solver);

/* Whether the objective has gained no more than enough.  Where it fell by more than noise, shift <-
 * 2 shift + |raise|/2 instead. */
static inline int at_rest(operator_t *A, real gain, real noise, real enough, real raise)
{
    if (gain < -noise) {
        A->shift = 2 * A->shift + fabs(raise) / 2;
        return 0;
    }
    return gain <= enough;
}

/* objective = v'Av = quadratic - shift */
static inline void set_objective(ascent_t *s, real quadratic)
{
    *s->objective = quadratic - s->A.shift;
    s->scale = fabs(*s->objective) + s->A.shift;
    s->noise = ROUNDING * s->scale;
    s->raise = s->previous;
}

static inline int same_support(spca_int nnz, const spca_int *index, spca_int count,
                               const spca_int *next_index)
{
    int same = nnz == count;
    for (spca_int a = 0; same && a < count; a++) same = index[a] == next_index[a];
    return same;
}

/* v <- next */
static inline void replace(spca_int count, const spca_int *next_index, const real *next,
                           spca_int *nnz, spca_int *index, real *value)
{
    *nnz = count;
    for (spca_int a = 0; a < count; a++) {
        index[a] = next_index[a];
        value[a] = next[a];
    }
}

static inline spca_status ascend(ascent_t *s, step_t *step, const void *solver, spca_int *n_iter)
{
    for (*n_iter = 0;; ++*n_iter) {
        int comparable = s->feasible;
        real enough;
        spca_status status;
        if (asked_to_stop(s->stop, s->ctx)) return SPCA_STOPPED;
        status = step(s, solver);
        if (status < 0) return status;
        enough = s->noise;
        if (same_support(*s->nnz, s->index, s->count, s->next_index))
            enough = fmax(s->tol * s->scale, s->noise);
        if (comparable && at_rest(&s->A, *s->objective - s->previous, s->noise, enough, s->raise))
            return SPCA_OK;
        if (*n_iter == s->max_iter) return SPCA_NOT_CONVERGED;
        s->previous = *s->objective;
        replace(s->count, s->next_index, s->next, s->nnz, s->index, s->value);
    }
}
#endif
