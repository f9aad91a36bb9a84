/* ascent.h - private: the loop that the power methods share.
 *
 * Each step takes the unit vector v to the feasible w that maximizes (A v)'w, or a bound of that
 * kind.  For positive semidefinite A the objective never decreases, since w'Aw >= v'Av + 2 (A v)'(w
 * - v).  Where A is indefinite it may fall.  Then A + shift I takes over, and shift is doubled
 * until the objective no longer falls.  Each product gives the objective of the vector it was
 * applied to, so the result is the last vector whose objective is known. */
#ifndef SPCA_ASCENT_H
#define SPCA_ASCENT_H
#include "real.h"

#define ROUNDING (64 * REAL_EPSILON) /* the rounding of an objective, relative to its terms */
#define STILL ((real)0x1p-28)        /* the square of a step that is none, in single precision */

enum { VAIN = 10 };

/* The shortest of the steps that gained nothing: its square, and how many such steps since. */
typedef struct {
    real square;
    int vain;
} shortest_t;

/* The state of an ascent; the arguments of the solvers are kept by pointers. */
typedef struct {
    operator_t A; /* its shift is raised here */
    spca_int max_iter;
    real tol;
    spca_stop stop;
    void *ctx;
    spca_int *nnz, *index; /* the vector v */
    real *value;
    spca_int *next_index; /* the next vector, of `count` nonzeros */
    real *next, *work, *objective;
    spca_int count;
    real previous;     /* the objective of the vector before */
    real noise, scale; /* what rounding does to the objective; what tol is relative to */
    real raise;        /* twice the first shift */
    int feasible;      /* whether v is feasible */
    shortest_t shortest;
} ascent_t;

/* A step: the product with v, the objective of v, and the next vector.  It sets objective, noise,
 * scale, raise, feasible, count and next. */
typedef spca_status step_t(ascent_t *s, const void *solver);

/* Whether the ascent may end: the objective has gained no more than `enough`.  Where it fell by
 * more than noise, it raises the shift instead: shift <- 2 shift + |raise|/2. */
static inline int at_rest(operator_t *A, real gain, real noise, real enough, real raise)
{
    if (gain < -noise) {
        A->shift = 2 * A->shift + fabs(raise) / 2;
        return 0;
    }
    return gain <= enough;
}

/* The objective v'Av of unit v, where quadratic = v'(A + shift I)v, and what goes with it. */
static inline void set_objective(ascent_t *s, real quadratic)
{
    *s->objective = quadratic - s->A.shift;
    s->scale = fabs(*s->objective) + s->A.shift;
    s->noise = ROUNDING * s->scale;
    s->raise = s->previous;
}

/* Whether two vectors have the same support. */
static inline int same_support(spca_int nnz, const spca_int *index, spca_int count,
                               const spca_int *next_index)
{
    int same = nnz == count;
    for (spca_int a = 0; same && a < count; a++) same = index[a] == next_index[a];
    return same;
}

/* Whether a step from one vector to the next tells that the ascent is over, once the objective
 * gains no more than tol or its rounding.  Where rounding, a share of ROUNDING, hides a gain of
 * tol, the squared length of the step stands in for the gain, which is of that order.  Steps that
 * have not become shorter VAIN times in a row lead nowhere: where A is negative, vectors alternate.
 */
static inline int stands_still(shortest_t *shortest, real tol, vector_t v, vector_t next)
{
    real sum = 0;
    if (tol >= ROUNDING) return 1;
    for (spca_int a = 0, b = 0; a < v.nnz || b < next.nnz;) {
        spca_int i = v.index && a < v.nnz ? v.index[a] : a;
        spca_int j = next.index && b < next.nnz ? next.index[b] : b;
        int first = b == next.nnz || (a < v.nnz && i <= j);
        int second = a == v.nnz || (b < next.nnz && j <= i);
        real step = (first ? v.value[a] : 0) - (second ? next.value[b] : 0);
        sum += step * step;
        a += first;
        b += second;
    }
    shortest->vain = shortest->vain > 0 && sum >= shortest->square ? shortest->vain + 1 : 1;
    if (shortest->vain == 1) shortest->square = sum;
    return sum <= fmax(tol, STILL) || shortest->vain > VAIN;
}

/* v <- next. */
static inline void replace(spca_int count, const spca_int *next_index, const real *next,
                           spca_int *nnz, spca_int *index, real *value)
{
    *nnz = count;
    for (spca_int a = 0; a < count; a++) {
        index[a] = next_index[a];
        value[a] = next[a];
    }
}

/* Steps until the objective is at rest, at most max_iter of them after the first product.  While
 * the support changes, only a gain below rounding ends it; tol counts once the support stays. */
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
        if (comparable && at_rest(&s->A, *s->objective - s->previous, s->noise, enough, s->raise) &&
            stands_still(&s->shortest, s->tol, (vector_t){*s->nnz, s->index, s->value},
                         (vector_t){s->count, s->next_index, s->next}))
            return SPCA_OK;
        if (*n_iter == s->max_iter) return SPCA_NOT_CONVERGED;
        s->previous = *s->objective;
        replace(s->count, s->next_index, s->next, s->nnz, s->index, s->value);
    }
}
#endif
