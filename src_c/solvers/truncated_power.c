/* truncated_power.c - the truncated power method.
 *
 * x <- T_k(A x)/||T_k(A x)|| (Yuan & Zhang 2013, algorithm 1).  For positive semidefinite A the
 * objective x'Ax never decreases (their proposition 1).  Hotelling deflation can leave A
 * indefinite; the authors advise the shift of ascent.h.  Over x >= 0 the same holds with the
 * positive part of A x: both maximize y'x, y = A x, over the feasible vectors, and x'Ax is convex.
 *
 * Of a matrix in memory, the support S of x stays the same in most steps.  Let y = A x for an
 * earlier x with this support, and let R be the largest norm of A_jS over j outside of S.  Then
 * outside of S |(A z)_j| <= |y_j| + R ||z - x|| for any z with this support.  So where the entries
 * of A_SS z are all larger than that, S stays, and A_SS z is all that is needed of A z. */
#include "ascent.h"

/* What `step` is asked for. */
typedef struct {
    spca_int k;
    int nonnegative;
} sparsity_t;

/* next = T_k(A x)/||T_k(A x)||, or T_k of the positive part. */
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
    /* without a step to make it sparse, the start itself is truncated */
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

/* The method on a matrix in memory, and what is known of products (see the top). */
typedef struct {
    spca_int p, k;
    const real *A;
    real *y, *square;  /* (p): A x of the last full product, and the sums of A_jS^2 */
    real *x, *inside;  /* (k): the earlier x; (k x k): A_SS */
    spca_int *support; /* (k): S; outside = max |y_j| and reach = R, over j outside of S */
    real outside, reach;
    int stays, bounded; /* stays: whether S stayed at the last full product; bounded: whether x,
                           outside and reach are known */
    spca_int left;      /* products that may follow the one being made */
} matrix_t;

/* y = sum of w_a line_a over the nnz lines at index, with the additions of dense.c; with `squares`,
 * also square_i = sum of A_ai^2. */
VECTORIZED(add_lines,
           (const matrix_t *o, spca_int nnz, const spca_int *index, const real *w, int squares),
           (o, nnz, index, w, squares))
{
    real *restrict y = o->y, *restrict square = o->square;
    spca_int p = o->p, a = 0;
    for (spca_int i = 0; i < p; i++) y[i] = square[i] = 0;
    for (; a + 4 <= nnz; a += 4) {
        const real *l0 = o->A + index[a] * p, *l1 = o->A + index[a + 1] * p;
        const real *l2 = o->A + index[a + 2] * p, *l3 = o->A + index[a + 3] * p;
        real w0 = w[a], w1 = w[a + 1], w2 = w[a + 2], w3 = w[a + 3];
        if (squares)
            for (spca_int i = 0; i < p; i++) {
                y[i] += (w0 * l0[i] + w1 * l1[i]) + (w2 * l2[i] + w3 * l3[i]);
                square[i] += (l0[i] * l0[i] + l1[i] * l1[i]) + (l2[i] * l2[i] + l3[i] * l3[i]);
            }
        else
            for (spca_int i = 0; i < p; i++)
                y[i] += (w0 * l0[i] + w1 * l1[i]) + (w2 * l2[i] + w3 * l3[i]);
    }
    for (; a < nnz; a++) {
        const real *line = o->A + index[a] * p;
        for (spca_int i = 0; i < p; i++) y[i] += w[a] * line[i];
        for (spca_int i = 0; squares && i < p; i++) square[i] += line[i] * line[i];
    }
}

/* z = A_SS x, with the additions of add_lines, so that z has the bits of a full product. */
VECTORIZED(multiply_inside, (spca_int k, const real *inside, const real *x, real *restrict z),
           (k, inside, x, z))
{
    spca_int b = 0;
    for (spca_int a = 0; a < k; a++) z[a] = 0;
    for (; b + 4 <= k; b += 4) {
        const real *l = inside + b * k;
        for (spca_int a = 0; a < k; a++)
            z[a] += (x[b] * l[a] + x[b + 1] * l[k + a]) +
                    (x[b + 2] * l[2 * k + a] + x[b + 3] * l[3 * k + a]);
    }
    for (; b < k; b++)
        for (spca_int a = 0; a < k; a++) z[a] += x[b] * inside[b * k + a];
}

/* max |y_i|, or infinity where some y_i is not finite. */
VECTORIZED_TO(real, largest_of, (spca_int p, const real *y), (p, y))
{
    return is_finite(p, y) ? largest_magnitude(p, y) : (real)INFINITY;
}

/* value_a = y at the support, where y becomes 0, so that what is left is outside; returns the least
 * of their magnitudes. */
static real take(spca_int k, const spca_int *index, real *y, real *value)
{
    real least = (real)INFINITY;
    for (spca_int a = 0; a < k; a++) {
        value[a] = y[index[a]];
        y[index[a]] = 0;
        if (!(fabs(value[a]) >= least)) least = fabs(value[a]);
    }
    return least;
}

/* Keeps A_SS, x and the bounds of products outside of S, after a product that left S as it is. */
static void keep(matrix_t *o, spca_int k, const spca_int *index, const real *x, real outside)
{
    for (spca_int a = 0; a < k; a++) o->square[index[a]] = 0;
    o->reach = sqrt(largest_magnitude(o->p, o->square));
    o->outside = outside;
    for (spca_int b = 0; b < k; b++) {
        o->support[b] = index[b];
        o->x[b] = x[b];
        for (spca_int a = 0; a < k; a++) o->inside[b * k + a] = o->A[index[b] * o->p + index[a]];
    }
    o->bounded = 1;
}

/* z = A_SS x; whether its entries are larger than any entry of A x outside of S can be, so that S
 * stays. */
static int remain(const matrix_t *o, const spca_int *index, const real *x, real *z)
{
    real distance = 0, slack = (real)(2 * o->k + 16) * REAL_EPSILON, bound;
    if (!same_support(o->k, index, o->k, o->support)) return 0;
    for (spca_int a = 0; a < o->k; a++) distance += (x[a] - o->x[a]) * (x[a] - o->x[a]);
    bound = o->outside + o->reach * (1 + slack) * (sqrt(distance) + slack);
    multiply_inside(o->k, o->inside, x, z);
    for (spca_int a = 0; a < o->k; a++)
        if (!(fabs(z[a]) > bound && fabs(z[a]) <= REAL_MAX)) return 0;
    return 1;
}

/* At the last product: whether the objective has risen by more than `enough`, which A_SS tells.
 * Then the ascent ends by max_iter, and no full product is needed. */
static int rises(ascent_t *s, const matrix_t *o)
{
    spca_int k = o->k;
    real quadratic = 0;
    if (!(o->bounded && same_support(k, s->index, k, o->support)))
        for (spca_int b = 0; b < k; b++)
            for (spca_int a = 0; a < k; a++)
                o->inside[b * k + a] = o->A[s->index[b] * o->p + s->index[a]];
    multiply_inside(k, o->inside, s->value, s->next);
    for (spca_int a = 0; a < k; a++) quadratic += s->value[a] * s->next[a];
    set_objective(s, quadratic);
    s->feasible = 1;
    s->count = k;
    for (spca_int a = 0; a < k; a++) s->next_index[a] = s->index[a];
    return *s->objective - s->previous > fmax(s->tol * s->scale, s->noise);
}

/* next = T_k((A + shift I) x)/||.||: by A_SS x where S stays for sure, else by a full product.
 * Where the entries at S are then larger than all others, S stays too. */
static spca_status matrix_step(ascent_t *s, const void *solver)
{
    matrix_t *o = *(matrix_t *const *)solver;
    spca_int k = o->k, nnz = *s->nnz;
    const spca_int *index = s->index;
    const real *x = s->value;
    real *z = s->next, quadratic = 0, shift = s->A.shift;
    /* A_SS x may tell that S stays, or, at the last product, that the objective rises */
    int stays = nnz == k && o->bounded && shift == 0 && remain(o, index, x, z);
    if (--o->left == 0 && !stays && nnz == k && s->feasible && shift == 0) {
        if (rises(s, o)) return SPCA_OK;
        o->bounded = 0;
    }
    /* a full product: its largest entries are the next vector */
    if (!stays) {
        int squares = nnz == k && o->stays && o->left > 1;
        real least = 0, outside = (real)INFINITY;
        add_lines(o, nnz, index, x, squares);
        for (spca_int a = 0; shift != 0 && a < nnz; a++) o->y[index[a]] += shift * x[a];
        if (nnz == k) {
            least = take(k, index, o->y, z);
            outside = largest_of(o->p, o->y);
            for (spca_int a = 0; a < k; a++) o->y[index[a]] = z[a];
        }
        stays = least > outside && least <= REAL_MAX;
        if (!stays && !is_finite(o->p, o->y)) return SPCA_NONFINITE;
        if (stays && squares) keep(o, k, index, x, outside);
        if (!stays) {
            for (spca_int a = 0; a < nnz; a++) quadratic += x[a] * o->y[index[a]];
            if (nnz == k)
                SPCA(select_reaching)(o->p, o->y, k, least, s->work, s->next_index);
            else
                SPCA(select_largest)(o->p, o->y, k, s->work, s->next_index);
            for (spca_int a = 0; a < k; a++) z[a] = o->y[s->next_index[a]];
        }
        o->stays = stays;
    }
    /* S stays: the next vector is A_SS x */
    for (spca_int a = 0; stays && a < k; a++) {
        s->next_index[a] = index[a];
        quadratic += x[a] * z[a];
    }
    set_objective(s, quadratic);
    s->feasible = nnz <= k;
    s->count = k;
    return to_unit(k, z) == 0 ? SPCA_ZERO_VECTOR : SPCA_OK;
}

spca_status SPCA(truncated_power_of_matrix)(spca_int p, spca_int k, const real *A,
                                            spca_int max_iter, real tol, spca_stop stop, void *ctx,
                                            spca_int *nnz, spca_int *index, real *value, real *work,
                                            spca_int *iwork, real *objective, spca_int *n_iter)
{
    matrix_t o = {.p = p,
                  .k = k,
                  .A = A,
                  .y = work,
                  .square = work + p,
                  .support = iwork + k,
                  .left = max_iter + 1};
    matrix_t *solver = &o;
    ascent_t s = {
        {.p = p},     max_iter,         tol,       stop,         ctx, nnz, index, value, iwork,
        work + 2 * p, work + 2 * p + k, objective, .previous = 0};
    o.x = s.work + p;
    o.inside = o.x + k;
    /* a start of k nonzeros is a run that goes on, whose support mostly stays */
    o.stays = *nnz == k;
    (void)to_unit(*nnz, value);
    return ascend(&s, matrix_step, &solver, n_iter);
}
