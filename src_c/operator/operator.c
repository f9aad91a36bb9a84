/* operator.c - the queries a solver asks of the symmetric operator A: products, their largest
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
 * O(t (k + m)) a product.
 *
 * Generalized deflation seeks max x'Ax/x'Bx with B = I - QQ', Q = (x_1 .. x_t) orthonormal, A the
 * projected matrix.  At the quotient rho of v, A - rho B + rho I = A + rho QQ' is semidefinite, so
 * a step that raises its quadratic form over unit vectors raises x'(A - rho B)x above 0, hence the
 * quotient (Dinkelbach 1967, Management Science 13, for ratios).  A constant span_weight < 0 with a
 * shift punishes what of x lies in the span of Q instead.
 *
 * With a price gamma of the l1 norm, f(x) = (sqrt(x'Ax) - gamma ||x||_1)/sqrt(x'Bx) is sought.  Let
 * a = v'Av, b = v'Bv.  Where f(v) >= 0, f(x) > f(v) follows over unit x from
 *   sqrt(x'Ax) - gamma ||x||_1 > f(v) (x'Bx + b)/(2 sqrt(b)) >= f(v) sqrt(x'Bx),
 * and what is convex there, sqrt(x'Ax) and -x'Bx = x'QQ'x - 1, is above its tangent at v: a step
 * that raises x'(Av + sqrt(a/b) f(v) QQ'v)/sqrt(a) - gamma ||x||_1 raises f.  Hence the weight
 * sqrt(a/b) f(v) = a/b - gamma ||v||_1 sqrt(a)/b of QQ'v. */
#include "centring.h"
#include <string.h>

/* v counts as lying in the span of Q where ||Bv||^2 is no more than this share of ||QQ'v||^2,
 * because then it may be rounding alone. */
#define SPAN_TOLERANCE (64 * REAL_EPSILON)

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

/* f <- F_t v from f = F_0 v: the terms of projections and Schur complements, as above.  Hotelling's
 * deflation has no such term.  The image of a Schur complement is scaled, so that its coefficient
 * is a sign (or, for data, 1). */
static void deflate_image(const operator_t *A, vector_t v, real *f)
{
    if (A->deflation == SPCA_NO_DEFLATION || A->deflation == SPCA_HOTELLING) return;
    for (spca_int i = 0; i < A->t; i++) {
        real c;
        if (A->deflation == SPCA_PROJECTION)
            c = vector_dot(A->direction[i], v);
        else if (A->symmetric_form)
            c = sparse_dot(v, A->image[i]) * A->coefficient[i];
        else
            c = strands_dot(A->m, A->image[i], f) * A->coefficient[i];
        if (c != 0)
            subtract_multiple(A->m, c, A->image[i],
                              f); /* the supports of most components are disjoint */
    }
}

/* f = F v of the deflated operator; the storage's own product, then the terms of the deflation. */
spca_status SPCA(forward)(const operator_t *A, vector_t v, spca_stop stop, void *ctx, real *scratch,
                          real *f)
{
    spca_status status = A->forward(A, v, stop, ctx, scratch, f);
    if (status < 0) return status;
    deflate_image(A, v, f);
    return SPCA_OK;
}

/* SPCA_NONFINITE where some y_i (i < p) is NaN or infinite. */
static spca_status check_finite(spca_int p, const real *y)
{
    return is_finite(p, y) ? SPCA_OK : SPCA_NONFINITE;
}

/* y = F_0'f, or its entries at a list (NULL: all), given range f in place of f.  Row weights
 * overwrite f, which is why `total`, which needs it, is taken first. */
static spca_status transposed(const operator_t *A, real *f, spca_int count, const spca_int *list,
                              spca_stop stop, void *ctx, real *y)
{
    real total = total_of(A, f);
    weight_rows(A, 0, A->n, f);
    return A->backward(A, f, total, count, list, stop, ctx, y);
}

/* The number of directions whose multiples are taken from F'f.  Hotelling takes lambda_i (x_i'v)
 * x_i.  Projection of data takes (g_i'f) x_i; a projected covariance has done that already
 * (finish_form), and needs multiples of x_i only for what weigh_span adds. */
spca_int SPCA(subtracted)(const operator_t *A)
{
    int projected = A->deflation == SPCA_PROJECTION &&
                    (!A->symmetric_form || A->quotient || A->span_weight != 0);
    return A->deflation == SPCA_HOTELLING || projected ? A->t : 0;
}

/* ||Q'v||^2, Q = (x_1 .. x_t). */
static real inside_of(const operator_t *A, vector_t v)
{
    real inside = 0;
    for (spca_int i = 0; i < A->t; i++) {
        real xv = vector_dot(A->direction[i], v);
        inside += xv * xv;
    }
    return inside;
}

/* v'Bv, given square = v'v; 0 where v counts as lying in the span of Q. */
static real outside_of(const operator_t *A, vector_t v, real square)
{
    real inside = inside_of(A, v), outside = square - inside;
    return outside > SPAN_TOLERANCE * inside ? outside : 0;
}

/* v'Bv/v'v, B = I - QQ'; 1 where there is no quotient. */
real SPCA(outside)(const operator_t *A, vector_t v)
{
    real square, outside;
    if (!A->quotient || A->deflation != SPCA_PROJECTION) return 1;
    square = strands_dot(v.nnz, v.value, v.value);
    outside = outside_of(A, v, square);
    return outside > 0 ? outside / square : 1;
}

/* y += weight QQ'v. */
void SPCA(add_span)(const operator_t *A, real weight, vector_t v, real *y)
{
    if (!A->quotient || A->deflation != SPCA_PROJECTION) return;
    for (spca_int i = 0; i < A->t; i++)
        sparse_axpy(weight * vector_dot(A->direction[i], v), A->direction[i], y);
}

/* max(a - gamma ||v||_1 sqrt(a), 0), where a = v'Av and gamma is the l1 price: with b = v'Bv, this
 * over b is the weight of QQ'v at the top of the file. */
static real less_price(const operator_t *A, vector_t v, real a)
{
    real l1 = 0;
    if (!(A->l1_price > 0 && a > 0)) return a;
    for (spca_int i = 0; i < v.nnz; i++) l1 += fabs(v.value[i]);
    return fmax(a - A->l1_price * l1 * sqrt(a), (real)0);
}

/* Adds weight QQ'v to the product: c_i -= weight x_i'v, since c_i x_i is subtracted later.  The
 * weight is span_weight, or the quotient rho of v.  *quadratic is v'Av of the projected matrix at
 * first; it becomes v'(A + weight QQ')v, which is rho v'v for a quotient. */
static void weigh_span(const operator_t *A, vector_t v, real *c, real *quadratic)
{
    real span_weight = A->span_weight;
    if (A->deflation != SPCA_PROJECTION || (!A->quotient && span_weight == 0)) return;
    if (A->quotient) {
        real square = strands_dot(v.nnz, v.value, v.value), outside = outside_of(A, v, square);
        if (!(outside > 0)) return;
        span_weight = less_price(A, v, *quadratic) / outside;
        *quadratic *= square / outside;
    } else
        *quadratic += span_weight * inside_of(A, v);
    for (spca_int i = 0; i < A->t; i++) c[i] -= span_weight * vector_dot(A->direction[i], v);
}

/* Data, between the two products.  f is F_t v at first and then range factor F_t v, from which
 * `transposed` goes on; c_i is the coefficient of x_i that is to be subtracted from A v; quadratic
 * = v'A v = factor ||F_t v||^2, less Hotelling's terms, plus what weigh_span and the shift add. */
static void weigh_image(const operator_t *A, vector_t v, real *f, real *c, real *quadratic)
{
    *quadratic = strands_dot(A->m, f, f) * A->factor;
    scal(A->m, A->factor, f);
    for (spca_int i = 0; i < SPCA(subtracted)(A); i++) {
        if (A->deflation == SPCA_PROJECTION) {
            c[i] = strands_dot(A->m, A->image[i], f);
        } else {
            real xv = vector_dot(A->direction[i], v);
            c[i] = A->coefficient[i] * xv;
            *quadratic -= c[i] * xv;
        }
    }
    weigh_span(A, v, c, quadratic);
    if (A->shift != 0) *quadratic += A->shift * strands_dot(v.nnz, v.value, v.value);
    scal(A->m, A->range, f);
}

/* The first half of a product of data: weigh_image after f = F_t v. */
static spca_status project(const operator_t *A, vector_t v, spca_stop stop, void *ctx,
                           real *scratch, real *f, real *c, real *quadratic)
{
    spca_status status = SPCA(forward)(A, v, stop, ctx, scratch, f);
    if (status >= 0) weigh_image(A, v, f, c, quadratic);
    return status;
}

/* y_a += c x_j for j = list_a, or for j = a where list is NULL. */
static void add_at(real c, vector_t x, spca_int count, const spca_int *list, real *y)
{
    if (!x.index) { /* without BLAS, whose rounding may differ from that of a list */
        for (spca_int a = 0; a < count; a++) y[a] += c * x.value[list ? list[a] : a];
        return;
    }
    if (!list) {
        sparse_axpy(c, x, y);
        return;
    }
    for (spca_int a = 0, b = 0; a < count && b < x.nnz;) {
        spca_int i = x.index[b], j = list[a];
        if (i == j) y[a] += c * x.value[b];
        a += j <= i;
        b += i <= j;
    }
}

void SPCA(subtract)(const operator_t *A, vector_t v, const real *c, spca_int count,
                    const spca_int *list, real *y)
{
    for (spca_int i = 0; i < SPCA(subtracted)(A); i++)
        add_at(-c[i], A->direction[i], count, list, y);
    if (A->shift != 0) add_at(A->shift, v, count, list, y);
}

/* Covariance: y = A v from y = A_0 v: the terms of the images, then (I - x_i x_i') from the left
 * for projections, then what is subtracted.  c (t) is scratch.  quadratic = v'Av where the operator
 * has a quotient; otherwise it is not used. */
static void finish_form(const operator_t *A, vector_t v, real *c, real *y, real *quadratic)
{
    deflate_image(A, v, y);
    for (spca_int i = 0; A->deflation == SPCA_PROJECTION && i < A->t; i++)
        sparse_axpy(-sparse_dot(A->direction[i], y), A->direction[i], y);
    for (spca_int i = 0; i < SPCA(subtracted)(A); i++)
        c[i] = A->deflation == SPCA_PROJECTION ? 0
                                               : A->coefficient[i] * vector_dot(A->direction[i], v);
    *quadratic = A->quotient ? sparse_dot(v, y) : 0;
    weigh_span(A, v, c, quadratic);
    SPCA(subtract)(A, v, c, A->p, NULL, y);
}

/* y = A v, for data and covariances, with v'Av of data, or of an operator with quotient.  work (m +
 * t). */
static spca_status apply_form(const operator_t *A, vector_t v, spca_stop stop, void *ctx,
                              real *work, real *y, real *quadratic)
{
    spca_status status;
    if (A->symmetric_form) { /* y = f, and work serves as scratch */
        status = A->forward(A, v, stop, ctx, work, y);
        if (status < 0) return status;
        finish_form(A, v, work + A->m, y, quadratic);
    } else {
        status = project(A, v, stop, ctx, y, work, work + A->m, quadratic);
        if (status < 0) return status;
        status = transposed(A, work, A->p, NULL, stop, ctx, y);
        if (status < 0) return status;
        SPCA(subtract)(A, v, work + A->m, A->p, NULL, y);
    }
    return check_finite(A->p, y);
}

spca_status SPCA(apply)(const operator_t *A, vector_t v, spca_stop stop, void *ctx, real *work,
                        real *y)
{
    real quadratic;
    return apply_form(A, v, stop, ctx, work, y, &quadratic);
}

/* The entries of A v at a list of columns: the same steps as apply_form for data, in the same
 * order, so that each entry has the same bits. */
spca_status SPCA(apply_at)(const operator_t *A, vector_t v, const real *image, spca_int count,
                           const spca_int *list, spca_stop stop, void *ctx, real *work, real *y)
{
    real *f = work, *c = work + A->m, quadratic;
    spca_status status = SPCA_OK;
    if (image)
        memcpy(f, image, (size_t)A->m * sizeof(*f));
    else
        status = SPCA(forward)(A, v, stop, ctx, c + A->t, f);
    if (status < 0) return status;
    weigh_image(A, v, f, c, &quadratic);
    status = transposed(A, f, count, list, stop, ctx, y);
    if (status < 0) return status;
    SPCA(subtract)(A, v, c, count, list, y);
    return check_finite(count, y);
}

/* The first half of F'u: f = factor u without its parts along the images of Schur complements (the
 * last one first, since these are transposed), and c_i = g_i'f, the coefficients of projection. */
static void begin_backward(const operator_t *A, const real *u, real *f, real *c)
{
    for (spca_int i = 0; i < A->m; i++) f[i] = u[i];
    for (spca_int i = A->t - 1; A->deflation == SPCA_SCHUR && i >= 0; i--)
        subtract_multiple(A->m, strands_dot(A->m, A->image[i], f) * A->coefficient[i], A->image[i],
                          f);
    scal(A->m, A->factor, f);
    for (spca_int i = 0; i < SPCA(subtracted)(A); i++)
        c[i] = A->deflation == SPCA_PROJECTION ? strands_dot(A->m, A->image[i], f) : 0;
}

/* The second half of F'u: subtracts the directions.  The shift belongs to A, not to F', so it is
 * left out. */
static spca_status end_backward(const operator_t *A, const real *c, real *y)
{
    operator_t plain = *A;
    vector_t none = {0, NULL, NULL};
    plain.shift = 0;
    SPCA(subtract)(&plain, none, c, A->p, NULL, y);
    return check_finite(A->p, y);
}

spca_status SPCA(backward)(const operator_t *A, const real *u, spca_stop stop, void *ctx,
                           real *work, real *y)
{
    real *f = work, *c = work + A->m;
    spca_status status;
    begin_backward(A, u, f, c);
    scal(A->m, A->range, f);
    status = transposed(A, f, A->p, NULL, stop, ctx, y);
    return status < 0 ? status : end_backward(A, c, y);
}

/* ---- blocks: the storage's own, or column by column -------------------------------------------
 */

/* The scratch of the storage's own block product; 0 where it has none for this operator. */
static spca_int own_work(const operator_t *A, spca_block what, spca_int b)
{
    return A->block ? A->block_work(A, what, b) : 0;
}

/* Enough for a block of any kind, by the storage or a column at a time. */
spca_int SPCA(block_work)(const operator_t *A, spca_int b)
{
    spca_int most = (A->m > A->p ? A->m : A->p) + A->t;
    for (int what = SPCA_FORWARD; what <= SPCA_BOTH; what++) {
        spca_int work = own_work(A, (spca_block)what, b);
        if (work > most) most = work;
    }
    return most;
}

/* Three ways: the storage does all of A V (whole); it does A_0 V of a covariance, and finish_form
 * the rest (form); or each column goes through apply. */
spca_status SPCA(apply_block)(const operator_t *A, spca_int b, const real *V, spca_stop stop,
                              void *ctx, real *work, real *Y)
{
    int whole = own_work(A, SPCA_BOTH, b) > 0,
        form = A->symmetric_form && own_work(A, SPCA_FORWARD, b);
    spca_status status = SPCA_OK;
    if (whole || form)
        status = A->block(A, whole ? SPCA_BOTH : SPCA_FORWARD, b, V, stop, ctx, work, Y);
    for (spca_int c = 0; !whole && status >= 0 && c < b; c++) {
        vector_t v = {A->p, NULL, V + c * A->p};
        real quadratic;
        if (form)
            finish_form(A, v, work, Y + c * A->p, &quadratic);
        else
            status = SPCA(apply)(A, v, stop, ctx, work, Y + c * A->p);
    }
    return status < 0 ? status : check_finite(A->p * b, Y);
}

spca_status SPCA(forward_block)(const operator_t *A, spca_int b, const real *V, spca_stop stop,
                                void *ctx, real *work, real *f)
{
    spca_status status = SPCA_OK;
    if (A->t == 0 && own_work(A, SPCA_FORWARD, b))
        return A->block(A, SPCA_FORWARD, b, V, stop, ctx, work, f);
    for (spca_int c = 0; status >= 0 && c < b; c++) {
        vector_t v = {A->p, NULL, V + c * A->p};
        status = SPCA(forward)(A, v, stop, ctx, work, f + c * A->m);
    }
    return status;
}

/* Where the storage has a block product (whole), it has made Y = factor F_0'U, and begin_backward
 * is asked again for the coefficients of the directions alone. */
spca_status SPCA(backward_block)(const operator_t *A, spca_int b, const real *U, spca_stop stop,
                                 void *ctx, real *work, real *Y)
{
    int whole = A->deflation != SPCA_SCHUR && own_work(A, SPCA_BACKWARD, b) > 0;
    spca_status status = SPCA_OK;
    if (whole) status = A->block(A, SPCA_BACKWARD, b, U, stop, ctx, work, Y);
    for (spca_int c = 0; status >= 0 && c < b; c++) {
        const real *u = U + c * A->m;
        real *y = Y + c * A->p;
        if (whole) begin_backward(A, u, work, work + A->m);
        status = whole ? end_backward(A, work + A->m, y) : SPCA(backward)(A, u, stop, ctx, work, y);
    }
    return status;
}

/* Column a is F e_j, j = index_a. */
spca_status SPCA(columns_by_products)(const operator_t *A, spca_int k, const spca_int *index,
                                      spca_stop stop, void *ctx, real *scratch, real *W)
{
    const real one = 1;
    for (spca_int a = 0; a < k; a++) {
        vector_t unit = {1, index + a, &one};
        spca_status status = A->forward(A, unit, stop, ctx, scratch, W + a * A->m);
        if (status < 0) return status;
    }
    return SPCA_OK;
}

/* ---- queries ----------------------------------------------------------------------------------
 */

/* sqrt(v'(A - shift I)v), without what a quotient adds to v'Av; 0 where rounding makes that
 * negative. */
static real root_of(const operator_t *A, vector_t v, real quadratic)
{
    if (A->shift != 0) quadratic -= A->shift * strands_dot(v.nnz, v.value, v.value);
    if (A->quotient) quadratic *= SPCA(outside)(A, v);
    return sqrt(quadratic > 0 ? quadratic : 0);
}

/* What a caller wants from the product A v: its k largest entries or, with k = 0, those above tau.
 * With `relative`, tau is a multiple of root_of until `answer` has multiplied it. */
typedef struct {
    spca_int k;
    int nonnegative, relative;
    real tau;
} query_t;

/* Values y_a of A v at a list of columns (*list NULL: all p) that holds the ones asked for, and
 * quadratic = v'Av.  Without a screen, that is every column; with one, see `screened`.  work (m + t
 * + p). */
static spca_status answer(const operator_t *A, vector_t v, query_t *ask, spca_stop stop, void *ctx,
                          real *work, spca_int *count, const spca_int **list, real *y,
                          real *quadratic)
{
    real *f = work, *c = work + A->m, *rest = c + A->t;
    spca_status status;
    *count = A->p;
    *list = NULL;
    if (A->symmetric_form) {
        status = apply_form(A, v, stop, ctx, work, y, quadratic);
        if (status < 0) return status;
        if (!A->quotient)
            *quadratic = sparse_dot(v, y);
        else if (A->shift != 0)
            *quadratic += A->shift * strands_dot(v.nnz, v.value, v.value);
        if (ask->relative) ask->tau *= root_of(A, v, *quadratic);
        return SPCA_OK;
    }
    status = project(A, v, stop, ctx, rest, f, c, quadratic);
    if (status < 0) return status;
    if (ask->relative) ask->tau *= root_of(A, v, *quadratic);
    if (A->screen) {
        status = SPCA(screened)(A, v, f, c, ask->k, ask->tau, ask->nonnegative, stop, ctx, rest,
                                count, list, y);
        if (status < 0) return status;
    } else {
        status = transposed(A, f, A->p, NULL, stop, ctx, y);
        if (status < 0) return status;
        SPCA(subtract)(A, v, c, A->p, NULL, y);
    }
    return check_finite(*count, y);
}

/* min |y_j| over the support of v. */
static real least_of(vector_t v, const real *y)
{
    real least = (real)INFINITY;
    for (spca_int a = 0; a < v.nnz; a++) least = fmin(least, fabs(y[v.index[a]]));
    return least;
}

/* Once v has k nonzeros, its support changes little from step to step.  So the smallest magnitude
 * on its support is a level that k entries reach, and few more: the selection begins there. */
spca_status SPCA(largest)(const operator_t *A, vector_t v, spca_int k, int nonnegative,
                          spca_stop stop, void *ctx, real *work, spca_int *index, real *value,
                          real *quadratic)
{
    real *y = work, *rest = work + A->p;
    query_t ask = {.k = k, .nonnegative = nonnegative};
    const spca_int *list;
    spca_int count;
    spca_status status = answer(A, v, &ask, stop, ctx, rest, &count, &list, y, quadratic);
    if (status < 0) return status;
    for (spca_int a = 0; nonnegative && a < count; a++) y[a] = y[a] > 0 ? y[a] : 0;
    if (!list && v.index && v.nnz == k)
        SPCA(select_reaching)(count, y, k, least_of(v, y), rest, index);
    else
        SPCA(select_largest)(count, y, k, rest, index);
    for (spca_int a = 0; a < k; a++) value[a] = y[index[a]];
    for (spca_int a = 0; list && a < k; a++) index[a] = list[index[a]];
    return SPCA_OK;
}

/* Compacts, in place, what `answer` returns. */
spca_status SPCA(above)(const operator_t *A, vector_t v, real tau, int relative, spca_stop stop,
                        void *ctx, real *work, spca_int *count, spca_int *index, real *value,
                        real *quadratic)
{
    real *y = work;
    query_t ask = {.relative = relative, .tau = tau};
    const spca_int *list;
    spca_int candidates, found = 0;
    spca_status status =
        answer(A, v, &ask, stop, ctx, work + A->p, &candidates, &list, y, quadratic);
    if (status < 0) return status;
    for (spca_int a = 0; a < candidates; a++)
        if (fabs(y[a]) > ask.tau) {
            index[found] = list ? list[a] : a;
            value[found++] = y[a];
        }
    *count = found;
    return SPCA_OK;
}

/* W = F_t[:, index] from the columns of F_0; the image of e_j is deflated as any other. */
spca_status SPCA(images)(const operator_t *A, spca_int k, const spca_int *index, spca_stop stop,
                         void *ctx, real *scratch, real *W)
{
    const real unit = 1;
    spca_status status = A->columns(A, k, index, stop, ctx, scratch, W);
    for (spca_int a = 0; status >= 0 && a < k; a++) {
        vector_t e = {1, index + a, &unit};
        deflate_image(A, e, W + a * A->m);
    }
    return status;
}

/* Covariance: column b is A e_j, of which the k rows are kept.  Data: W = F[:, index], G = W'W
 * factor, less Hotelling's terms in the upper triangle, which is then copied to the lower one. */
spca_status SPCA(submatrix)(const operator_t *A, spca_int k, const spca_int *index, spca_stop stop,
                            void *ctx, spca_int room, real *work, real *G)
{
    const real unit = 1;
    spca_status status;
    if (A->symmetric_form) {
        real *y = work;
        for (spca_int b = 0; b < k; b++) {
            vector_t e = {1, index + b, &unit};
            status = SPCA(apply)(A, e, stop, ctx, work + A->p, y);
            if (status < 0) return status;
            for (spca_int a = 0; a < k; a++) G[a + b * k] = y[index[a]];
        }
        return SPCA_OK;
    }
    real *W = work;
    status = SPCA(images)(A, k, index, stop, ctx, work + A->m * k, W);
    if (status < 0) return status;
    status = SPCA(matrix_product)(0, k, k, A->m, W, A->m, W, A->m, A->factor, 0, A->run, stop, ctx,
                                  room, W + A->m * k, G, k);
    if (status < 0) return status;
    for (spca_int i = 0; A->deflation == SPCA_HOTELLING && i < A->t; i++)
        for (spca_int b = 0; b < k; b++) {
            vector_t e = {1, index + b, &unit};
            real xb = vector_dot(A->direction[i], e);
            for (spca_int a = 0; xb != 0 && a <= b; a++) {
                vector_t d = {1, index + a, &unit};
                G[a + b * k] -= A->coefficient[i] * xb * vector_dot(A->direction[i], d);
            }
        }
    for (spca_int b = 0; b < k; b++)
        for (spca_int a = 0; a < b; a++) G[b + a * k] = G[a + b * k];
    return check_finite(k * k, G);
}

/* K = sum of W W' over blocks W of SPCA_OUTER_BLOCK columns of F.  matrix_product adds to K and
 * then multiplies by its factor, so that factor is applied with the last block alone. */
spca_status SPCA(outer)(const operator_t *A, spca_stop stop, void *ctx, real *work, spca_int *iwork,
                        real *K)
{
    real *W = work;
    for (spca_int first = 0; first < A->p; first += SPCA_OUTER_BLOCK) {
        spca_int k = min_int(SPCA_OUTER_BLOCK, A->p - first);
        real factor = first + k < A->p ? 1 : A->factor;
        spca_status status;
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (spca_int a = 0; a < k; a++) iwork[a] = first + a;
        status = SPCA(images)(A, k, iwork, stop, ctx, work + A->m * SPCA_OUTER_BLOCK, W);
        if (status < 0) return status;
        status = SPCA(matrix_product)(1, A->m, A->m, k, W, A->m, W, A->m, factor, first > 0, A->run,
                                      stop, ctx, 0, NULL, K, A->m);
        if (status < 0) return status;
    }
    return check_finite(A->m * A->m, K);
}
