/* penalized_decomposition.c - the penalized matrix decomposition of rank one.
 *
 * maximize u'F v subject to ||u|| = ||v|| = 1, ||v||_1 <= c, and in the two-way form ||u||_1 <= c_u
 * (Witten, Tibshirani & Hastie 2009, Biostatistics 10(3), sections 2.2 and 3.2).  By turns u
 * maximizes u'(F v) and v maximizes (F'u)'v.  Each is a soft threshold at the level that its bound
 * sets (threshold.c) or, without a bound, the vector over its norm.
 *
 * Without a bound on u, F'u is A v over a number.  So v <- argmax (A v)'w needs A alone, and for
 * positive semidefinite A its objective v'Av never decreases (ascent.h).
 *
 * With a quotient v'Av/v'Bv (operator.c), A v has the multiple of QQ'v that makes the same step
 * raise it.  In the two-way form d = u'F v/sqrt(v'Bv) is maximized.  Let b = v'Bv.  Over unit w,
 * u'F w > d sqrt(w'Bw) follows from u'F w > d (w'Bw + b)/(2 sqrt(b)), hence from a step that raises
 * w'F'u + (u'F v/b) w'QQ'v.
 *
 * The entries of A v below the level do not matter, and the entries above any tau give the level,
 * or a better tau.  Let L be the level that they give by themselves.  If L >= tau, it is the level
 * of all.  Otherwise the level of all is at least L, because a further entry, smaller than all
 * others, raises ||s||_1/||s||: with S = sum s_i, Q = sum s_i^2 and x <= min s_i <= Q/S, (S +
 * x)^2/(Q + x^2) >= S^2/Q. */
#include "ascent.h"

typedef struct {
    double bound;
    int nonnegative;
    double *level, *change; /* the last level, and by which share it moved */
} bound_t;

/* Drops the zeros of x (n), and writes the positions of the others, in the list or 0 .. n - 1, to
 * index; returns how many there are. */
static spca_int compress(spca_int n, const spca_int *list, real *x, spca_int *index)
{
    spca_int nnz = 0;
    for (spca_int a = 0; a < n; a++)
        if (x[a] != 0) {
            index[nnz] = list ? list[a] : a;
            x[nnz++] = x[a];
        }
    return nnz;
}

/* Whether v, of unit norm, is feasible, so that its objective may be compared with those of later
 * vectors. */
static int satisfies(vector_t v, double bound, int nonnegative)
{
    double sum = 0;
    int negative = 0;
    for (spca_int a = 0; a < v.nnz; a++) {
        sum += (double)fabs(v.value[a]);
        negative |= v.value[a] < 0;
    }
    return sum <= bound * (1 + 64 * (double)REAL_EPSILON) && !(nonnegative && negative);
}

/* Divides a start by its norm or, where no iteration will follow (final), makes it feasible. */
static spca_status prepare(spca_int *nnz, spca_int *index, real *value, double bound,
                           int nonnegative, int final, real *work)
{
    double level;
    (void)to_unit(*nnz, value);
    if (final && !satisfies((vector_t){*nnz, index, value}, bound, nonnegative)) {
        spca_status status =
            SPCA(l1_threshold)(*nnz, value, bound, nonnegative, NULL, work, value, &level);
        if (status < 0) return status;
        *nnz = compress(*nnz, index, value, index);
    }
    return *nnz > 0 ? SPCA_OK : SPCA_ZERO_VECTOR;
}

/* next = argmax (A v)'w over the feasible w, by its nnz nonzeros.  *level in: a guess of the level,
 * or 0 for none, when some of the largest entries give one; out: the level. */
static spca_status maximize(const operator_t *A, vector_t v, double bound, int nonnegative,
                            spca_stop stop, void *ctx, real *work, double *level, spca_int *nnz,
                            spca_int *index, real *next, real *quadratic)
{
    real tau = (real)*level;
    spca_int count = 4 * (spca_int)ceil(bound * bound);
    int some = tau == 0 && count < A->p;
    for (;;) {
        spca_status status;
        if (some)
            status =
                SPCA(largest)(A, v, count, nonnegative, stop, ctx, work, index, next, quadratic);
        else
            status = SPCA(above)(A, v, tau, 0, stop, ctx, work, &count, index, next, quadratic);
        if (status < 0) return status;
        for (spca_int a = 0; some && a < count; a++)
            tau = a == 0 ? fabs(next[a]) : fmin(tau, fabs(next[a]));
        *level = 0;
        if (count > 0) /* finite entries always have a level */
            (void)SPCA(l1_threshold)(count, next, bound, nonnegative, A->run, work, next, level);
        if (tau == 0 || *level >= (double)tau) {
            *nnz = compress(count, index, next, index);
            return SPCA_OK;
        }
        *level *= 1 - 64 * (double)REAL_EPSILON; /* a little less, against rounding */
        tau = some || *level < 0.999 * (double)tau ? (real)*level : 0;
        some = 0;
    }
}

/* next = argmax (A v)'w, with a level guessed from the last one and its change. */
static spca_status step(ascent_t *s, const void *solver)
{
    const bound_t *o = solver;
    vector_t v = {*s->nnz, s->index, s->value};
    /* below what is expected, so that one pass is enough most often */
    double level = *o->level * (1 - fmin(0.3, fmax(0.01, 4 * *o->change)));
    real quadratic;
    spca_status status = maximize(&s->A, v, o->bound, o->nonnegative, s->stop, s->ctx, s->work,
                                  &level, &s->count, s->next_index, s->next, &quadratic);
    if (status < 0) return status;
    *o->change = level > 0 ? fabs(*o->level - level) / level : 1;
    *o->level = level;
    set_objective(s, quadratic);
    s->feasible = s->feasible || satisfies(v, o->bound, o->nonnegative);
    return s->count > 0 ? SPCA_OK : SPCA_ZERO_VECTOR;
}

spca_status SPCA(pmd)(const operator_t *A, double bound, int nonnegative, spca_int max_iter,
                      real tol, spca_stop stop, void *ctx, spca_int *nnz, spca_int *index,
                      real *value, real *work, spca_int *iwork, real *objective, spca_int *n_iter)
{
    double level = 0, change = 1;
    const bound_t bounded = {bound, nonnegative, &level, &change};
    ascent_t s = {*A,    max_iter, tol,  stop,        ctx,       nnz,          index,
                  value, iwork,    work, work + A->p, objective, .previous = 0};
    spca_status status = prepare(nnz, index, value, bound, nonnegative, max_iter == 0, s.work);
    *n_iter = 0;
    return status < 0 ? status : ascend(&s, step, &bounded, n_iter);
}

spca_status SPCA(pmd_two_way)(const operator_t *A, double bound, double sample_bound,
                              int nonnegative, spca_int max_iter, real tol, spca_stop stop,
                              void *ctx, spca_int *nnz, spca_int *index, real *value, real *work,
                              spca_int *iwork, real *u, real *objective, spca_int *n_iter)
{
    real *next = work, *f = next + A->p, *rest = f + A->m, previous = 0;
    int feasible = 0, same = 0, rests;
    shortest_t shortest = {0};
    spca_status status = prepare(nnz, index, value, bound, nonnegative, max_iter == 0, rest);
    *n_iter = 0;
    if (status < 0) return status;
    for (;;) {
        vector_t v = {*nnz, index, value};
        spca_int count;
        double level;
        real product, enough, outside = SPCA(outside)(A, v);
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        status = SPCA(forward)(A, v, stop, ctx, rest, f);
        if (status < 0) return status;
        status = SPCA(l1_threshold)(A->m, f, sample_bound, 0, A->run, rest, u, &level);
        if (status < 0) return status;
        product = strands_dot(A->m, u, f);
        *objective = product / sqrt(outside);
        if (!(*objective > 0)) return SPCA_ZERO_VECTOR;
        enough = (same ? fmax(tol, ROUNDING) : ROUNDING) * previous;
        rests = feasible && *objective - previous <= enough;
        if (rests && (tol >= ROUNDING || *n_iter == max_iter)) return SPCA_OK;
        if (*n_iter == max_iter) return SPCA_NOT_CONVERGED;

        status = SPCA(backward)(A, u, stop, ctx, rest, next);
        if (status < 0) return status;
        SPCA(add_span)(A, A->factor * product / outside, v, next);
        (void)SPCA(l1_threshold)(A->p, next, bound, nonnegative, A->run, rest, next, &level);
        if ((count = compress(A->p, NULL, next, iwork)) == 0) return SPCA_ZERO_VECTOR;
        if (rests && stands_still(&shortest, tol, v, (vector_t){count, iwork, next}))
            return SPCA_OK;
        feasible = feasible || satisfies(v, bound, nonnegative);
        previous = *objective;
        same = same_support(*nnz, index, count, iwork);
        replace(count, iwork, next, nnz, index, value);
        ++*n_iter;
    }
}
