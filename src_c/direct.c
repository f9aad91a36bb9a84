/* direct.c - components for callers who hold plain arrays.  An operator is made on the stack, and
 * vectors are dense.  Other Cython packages get these functions by _core.pxd.
 *
 * A power of two brings the entries near 1, as linalg/scaling.py does for the Python functions. */
#include "real.h"
#include "room.h"

/* h with 4^h near the largest entry; 0 where that is 0 or not finite. */
static int half_exponent(real largest)
{
    int e = 0;
    if (largest > 0 && largest <= REAL_MAX) (void)frexp(largest, &e);
    return e / 2;
}

/* max |x_ij|. */
VECTORIZED_TO(real, largest_entry, (spca_int lines, spca_int length, spca_int ld, const real *X),
              (lines, length, ld, X))
{
    real largest = 0;
    for (spca_int a = 0; a < lines; a++)
        largest = fmax(largest, largest_magnitude(length, X + a * ld));
    return largest;
}

/* An operator of A: its values times 4^h are those that A has. */
static operator_t of_covariance(spca_int p, const real *A, spca_int ld, int *h)
{
    operator_t op = {.n = p,
                     .p = p,
                     .m = p,
                     .symmetric_form = 1,
                     .row_major = 1,
                     .data = A,
                     .ld = ld,
                     .factor = 1};
    SPCA(use_dense)(&op);
    *h = half_exponent(largest_entry(p, 1, ld + 1, A));
    op.range = ldexp((real)1, -*h);
    return op;
}

/* An operator of data: its values times 16^h are those of F'F/(n - 1). */
static operator_t of_data(spca_int n, spca_int p, const real *X, spca_int ld, int row_major,
                          const real *mean, const real *weight, int *h)
{
    operator_t op = {.n = n,
                     .p = p,
                     .m = n,
                     .row_major = row_major,
                     .data = X,
                     .ld = ld,
                     .mean = mean,
                     .weight = weight,
                     .factor = 1 / (real)(n > 1 ? n - 1 : 1)};
    SPCA(use_dense)(&op);
    *h = weight ? 0 : half_exponent(largest_entry(row_major ? n : p, row_major ? p : n, ld, X));
    op.range = ldexp((real)1, -*h);
    return op;
}

/* Whether all x_i are finite, vectorized. */
VECTORIZED_TO(int, finite_all, (spca_int n, const real *x), (n, x))
{
    return is_finite(n, x);
}

int SPCA(all_finite)(spca_int n, const real *x)
{
    return finite_all(n, x);
}

spca_int SPCA(gather)(spca_int p, const real *x, spca_int *index, real *value)
{
    spca_int nnz = 0;
    for (spca_int j = 0; j < p; j++)
        if (x[j] != 0) {
            index[nnz] = j;
            value[nnz++] = x[j];
        }
    return nnz;
}

/* x (p) <- the vector with these nonzeros, its entry of largest magnitude, the first if tied,
 * positive. */
static void scatter(spca_int p, spca_int nnz, const spca_int *index, const real *value, real *x)
{
    spca_int top = 0;
    real sign;
    for (spca_int a = 1; a < nnz; a++)
        if (fabs(value[a]) > fabs(value[top])) top = a;
    sign = value[top] < 0 ? -1 : 1;
    for (spca_int j = 0; j < p; j++) x[j] = 0;
    for (spca_int a = 0; a < nnz; a++) x[index[a]] = sign * value[a];
}

/* The nonzeros of x; SPCA_NONFINITE or SPCA_ZERO_VECTOR where they are not finite or there are
 * none. */
static spca_status nonzeros(spca_int p, const real *x, spca_int *nnz, spca_int *index, real *value)
{
    *nnz = SPCA(gather)(p, x, index, value);
    if (!is_finite(*nnz, value)) return SPCA_NONFINITE;
    return *nnz == 0 ? SPCA_ZERO_VECTOR : SPCA_OK;
}

/* An ascent from x: truncated power to at most k nonzeros or, where k is 0, pmd within the bound.
 * The objective is in the caller's units, 2^exponent times that of A. */
static spca_status ascend(const operator_t *A, int exponent, spca_int k, double bound,
                          int nonnegative, spca_int max_iter, real tol, spca_stop stop, void *ctx,
                          real *x, real *work, spca_int *iwork, real *objective, spca_int *n_iter)
{
    spca_int *index = iwork, nnz, p = A->p;
    spca_status status = nonzeros(p, x, &nnz, index, work);
    *objective = 0;
    *n_iter = 0;
    if (status < 0) return status;
    status = k > 0 ? SPCA(truncated_power)(A, k, nonnegative, max_iter, tol, stop, ctx, &nnz, index,
                                           work, work + p, iwork + p, objective, n_iter)
                   : SPCA(pmd)(A, bound, nonnegative, max_iter, tol, stop, ctx, &nnz, index, work,
                               work + p, iwork + p, objective, n_iter);
    *objective = ldexp(*objective, exponent);
    if (status >= 0) scatter(p, nnz, index, work, x);
    return status;
}

/* G = W'W factor for W (m x k by columns), without matrix_product, whose tiles take 125 KB of
 * stack. */
VECTORIZED(multiply, (spca_int m, spca_int k, const real *W, real factor, real *G),
           (m, k, W, factor, G))
{
    for (spca_int b = 0; b < k; b++)
        for (spca_int a = 0; a <= b; a++)
            G[a + b * k] = G[b + a * k] = factor * strands_dot(m, W + a * m, W + b * m);
}

/* G (k x k) = A[index, index]. */
static spca_status block_of(const operator_t *A, spca_int k, const spca_int *index, real *work,
                            real *G)
{
    real *W = work, *rest = W + A->m * k;
    spca_status status;
    if (A->symmetric_form) return SPCA(submatrix)(A, k, index, NULL, NULL, A->p, work, G);
    status = A->columns(A, k, index, NULL, NULL, rest, W);
    if (status < 0) return status;
    multiply(A->m, k, W, A->factor, G);
    return is_finite(k * k, G) ? SPCA_OK : SPCA_NONFINITE;
}

/* x <- the leading eigenvector of A on the support of x, and *objective, its eigenvalue. */
static spca_status refit(const operator_t *A, real *x, real *work, spca_int *iwork, real *objective)
{
    spca_int *index = iwork, k;
    spca_status status = nonzeros(A->p, x, &k, index, work);
    real *G = work, *vector = G + k * k, *rest = vector + k;
    *objective = 0;
    if (status < 0) return status;
    status = block_of(A, k, index, rest, G);
    if (status < 0) return status;
    status = SPCA(leading_eigenvector)(k, G, rest, objective, vector);
    if (status >= 0) scatter(A->p, k, index, vector, x);
    return status;
}

/* q = v/||v|| at any scale, and *inverse = 1/||v||; returns whether v is not zero. */
static int over_norm(spca_int p, const real *v, real *q, real *inverse)
{
    int e = 0;
    real norm;
    (void)frexp(largest_magnitude(p, v), &e);
    for (spca_int j = 0; j < p; j++) q[j] = ldexp(v[j], -e);
    norm = to_unit(p, q);
    *inverse = norm > 0 ? ldexp(1 / norm, -e) : 0;
    return norm > 0;
}

/* Rounding is counted in units of this, so that squares keep their digits. */
#define GRAIN (REAL_EPSILON * REAL_EPSILON)

/* sum_j += (share a x_j)^2; the order of products matters, since a x_j may overflow. */
INLINE void add_squares(spca_int p, real share, real a, const real *x, real *sum)
{
    for (spca_int j = 0; j < p; j++) sum[j] += share * (a * x[j]) * (share * (a * x[j]));
}

/* Decides what of q = v + V w is more than rounding; V w is over those of the t earlier columns
 * that have a part in Q.  Returns whether any entry is.  Roundings add up as their squares do, and
 * 16 times the root of these is no less than their sum for up to 256 columns.  `doubt` has the
 * squares for v and for multiples of Q; those for V and then for the coefficients are added here.
 * Entries within 4 times the root become zero where they are more than the rest.  Otherwise they
 * stay, since a column that depends on v would miss them. */
INLINE int settle(spca_int p, spca_int t, const real *V, const real *Q, const real *w, real share,
                  real *doubt, real *q)
{
    real doubtful = 0, rest = 0;
    int any = 0;
    for (spca_int s = 0; s < t; s++)
        if (largest_magnitude(p, Q + s * p) > 0) add_squares(p, share, *w++, V + s * p, doubt);
    for (spca_int j = 0; j < p; j++) doubt[j] = fmin(doubt[j], 1 / (GRAIN * GRAIN));
    for (spca_int s = 0; s < t; s++) {
        const real *b = Q + s * p;
        real sum = 0;
        for (spca_int j = 0; j < p; j++) sum += doubt[j] * (b[j] * b[j]);
        add_squares(p, 1, sqrt(sum), b, doubt);
    }
    for (spca_int j = 0; j < p; j++) {
        real square = q[j] / GRAIN * (q[j] / GRAIN);
        any |= square > 256 * doubt[j];
        doubt[j] = square > 16 * doubt[j];
        *(doubt[j] != 0 ? &rest : &doubtful) += square;
    }
    for (spca_int j = 0; j < p; j++)
        if (!any || (doubt[j] == 0 && doubtful > rest)) q[j] = 0;
    return any;
}

/* Gram-Schmidt, twice is enough (Parlett 1980, The Symmetric Eigenvalue Problem, section 6.9).
 * What may be rounding alone becomes zero, and then q is made orthogonal once more.  A part is a
 * sum of columns of V, whose multipliers w are kept with their signs, because bounds made of bounds
 * of earlier parts would grow by a factor with each column.  work (p r) has room for this triangle:
 * the last column needs none, and no column has a part after p that have one. */
VECTORIZED_TO(spca_status, parts_of,
              (spca_int p, spca_int r, const real *V, real epsilon, real *work, real *Q),
              (p, r, V, epsilon, work, Q))
{
    const real share = epsilon / GRAIN, most = REAL_MAX * REAL_EPSILON;
    real *doubt = work, *w = work + p, own;
    spca_int rank = 0;
    for (spca_int a = 0; a < p * r; a++) Q[a] = 0;
    for (spca_int t = 0; t < r; t++) {
        real *q = Q + t * p, norm = 1;
        if (!is_finite(p, V + t * p)) return SPCA_NONFINITE;
        if (rank == p || !over_norm(p, V + t * p, q, &own)) continue;
        for (spca_int j = 0; j < p; j++) doubt[j] = 0;
        add_squares(p, share, 1, q, doubt);
        for (spca_int i = 0; i < rank; i++) w[i] = 0;
        for (int pass = 0; rank > 0 && pass < 3; pass++) {
            const real *u = work + p;
            for (spca_int s = 0, m = 0; s < t; s++) {
                const real *b = Q + s * p;
                real c = strands_dot(p, b, q);
                if (largest_magnitude(p, b) == 0) continue;
                m++;
                for (spca_int j = 0; j < p; j++) q[j] -= c * b[j];
                for (spca_int i = 0; pass < 2 && i < m; i++) w[i] -= c * u[i];
                if (pass == 0) add_squares(p, share, c, b, doubt);
                u += m;
            }
            if (pass == 1 && !settle(p, t, V, Q, w, share, doubt, q)) break;
            if (pass > 0) norm *= to_unit(p, q);
        }
        if (t + 1 == r || largest_magnitude(p, q) == 0) continue;
        w[rank++] = own;
        for (spca_int i = 0; i < rank; i++) w[i] = fmax(-most, fmin(w[i] / norm, most));
        w += rank;
    }
    return SPCA_OK;
}

spca_status SPCA(orthogonal_parts)(spca_int p, spca_int r, const real *V, real epsilon, real *work,
                                   real *Q)
{
    return parts_of(p, r, V, epsilon, work, Q);
}

/* variance_t = q_t'A q_t for the orthogonal parts q_t of V; 0 where there is no part. */
static spca_status explained(const operator_t *A, spca_int r, const real *V, real *work,
                             real *variance)
{
    spca_int p = A->p;
    real *Q = work, *f = Q + 2 * p * r, *scratch = f + A->m;
    spca_status status = SPCA(orthogonal_parts)(p, r, V, REAL_EPSILON, Q + p * r, Q);
    for (spca_int t = 0; t < r; t++) variance[t] = 0;
    for (spca_int t = 0; t < r && status >= 0; t++) {
        real *q = Q + t * p;
        vector_t dense = {p, NULL, q};
        if (largest_magnitude(p, q) == 0) continue; /* in the span of earlier columns */
        /* of a dense array, and without stop, it cannot fail */
        (void)SPCA(forward)(A, dense, NULL, NULL, scratch, f);
        variance[t] =
            A->symmetric_form ? strands_dot(p, q, f) : A->factor * strands_dot(A->m, f, f);
        if (!is_finite(1, variance + t)) status = SPCA_NONFINITE;
    }
    return status;
}

/* ---- several components: a support is searched, the best values on it are found, and the
 * component is removed from a copy of A, until there are as many as asked for, or nothing is left
 * but rounding.  A search from one start multiplies the data themselves where that is less work
 * than to form A, which takes n p^2/2 against about 10 n p for a component, or where n < p ---- */

/* Whether A is not formed, so that components are removed from a copy of the data. */
static int unformed(spca_int n, spca_int p, spca_int r, const spca_search_plan *plan)
{
    return plan->starts == 0 && n > 0 && (n < p || p > 10 + 20 * r);
}

typedef struct {
    spca_int n, p, k; /* n: rows of the copied data; 0 where it is a matrix */
    const spca_search_plan *plan;
    operator_t left; /* with copied data: the operator of what is left of A */
    /* B: what is left of A (p x p), or of the data (n x p) */
    real *B, *G, *score, *vector, *value, *work;
    spca_int *index, *iwork, *runs;
    double *objective;
    void *search_work;
} components_t;

/* Cuts the work, or only counts it. */
static void components_room(components_t *c, spca_int n, spca_int r, room_t *room)
{
    spca_int p = c->p, k = c->k, ends = c->plan->starts ? c->plan->ends : 1;
    spca_int forming = n > 0 ? n * p + p : 2 * p, ascent = max_int(n, k * k) + 4 * p + 2 * k;
    spca_int most = max_int(6 * k, p * (2 * r + 1) + max_int(n, p));
    size_t search = c->plan->starts ? SPCA(search_work)(p, k, 0, c->plan) : 0;
    c->B = TAKE(room, p * (unformed(n, p, r, c->plan) ? max_int(n, p) : p), real);
    c->G = TAKE(room, k * k, real);
    c->score = TAKE(room, p, real);
    c->vector = TAKE(room, k, real);
    c->value = TAKE(room, p, real);
    c->work = TAKE(room, max_int(most, max_int(forming, ascent)), real);
    c->index = TAKE(room, max_int(ends * k, p), spca_int);
    c->iwork = TAKE(room, 2 * k, spca_int);
    c->runs = TAKE(room, ends, spca_int);
    c->objective = TAKE(room, ends, double);
    c->search_work = take(room, (spca_int)search, 1);
}

size_t SPCA(components_work)(spca_int n, spca_int p, spca_int k, spca_int r,
                             const spca_search_plan *plan)
{
    components_t c = {.p = p, .k = k, .plan = plan};
    room_t room = {NULL, 0};
    components_room(&c, n, r, &room);
    return room.used;
}

/* sum_j = sum_i x_ij^2 (n x p by rows). */
VECTORIZED(sums_of_squares, (spca_int n, spca_int p, const real *X, real *restrict sum),
           (n, p, X, sum))
{
    for (spca_int j = 0; j < p; j++) sum[j] = 0;
    for (spca_int i = 0; i < n; i++)
        for (spca_int j = 0; j < p; j++) sum[j] += X[i * p + j] * X[i * p + j];
}

/* The largest entry that is left of A, and *at, the variable of largest variance.  That is the same
 * number, but where Hotelling's deflation leaves an indefinite matrix. */
static real what_is_left(const components_t *c, spca_int *at)
{
    spca_int p = c->p, step = c->n ? 1 : p + 1;
    const real *variance = c->n ? c->score : c->B;
    if (c->n) sums_of_squares(c->n, p, c->B, c->score);
    *at = 0;
    for (spca_int j = 1; j < p; j++)
        if (variance[j * step] > variance[*at * step]) *at = j;
    return c->n ? c->left.factor * variance[*at] : largest_entry(p, p, p, c->B);
}

/* The support of the next component: *nnz variables in c->index. */
static spca_status support(components_t *c, spca_int top, spca_stop stop, void *ctx, spca_int *nnz)
{
    spca_search_counts counts;
    spca_int p = c->p, k = c->k, found = 0, n_iter;
    real objective;
    spca_status status;
    *nnz = 1;
    c->index[0] = top;
    c->value[0] = 1;
    if (c->n)
        return SPCA(truncated_power)(&c->left, k, 0, c->plan->max_iter, (real)c->plan->tol, stop,
                                     ctx, nnz, c->index, c->value, c->work, c->iwork, &objective,
                                     &n_iter);
    if (c->plan->starts == 0)
        return SPCA(truncated_power_of_matrix)(p, k, c->B, c->plan->max_iter, (real)c->plan->tol,
                                               stop, ctx, nnz, c->index, c->value, c->work,
                                               c->iwork, &objective, &n_iter);
    status = SPCA(search)(p, k, c->B, c->score, 0, c->plan, stop, ctx, c->search_work, c->index,
                          c->objective, c->runs, &found, &counts);
    *nnz = found > 0 ? k : 0;
    return status;
}

/* Removes a component from the copy. */
static spca_status remove(components_t *c, spca_deflation deflation, vector_t x)
{
    if (c->n && deflation == SPCA_SCHUR)
        return SPCA(deflate_data_schur)(c->n, c->p, c->p, 1, NULL, x, c->B, c->work);
    if (c->n) return SPCA(deflate_data_projection)(c->n, c->p, 1, x, c->B, c->work);
    if (deflation == SPCA_HOTELLING) return SPCA(deflate_hotelling)(c->p, x, c->B);
    if (deflation == SPCA_SCHUR) return SPCA(deflate_schur)(c->p, c->p, x, c->B, c->work);
    return SPCA(deflate_projection)(c->p, c->p, x, c->B, c->work);
}

/* X (n x p by rows) = range (data - mean) weight. */
VECTORIZED(copy_data, (const operator_t *A, real *restrict X), (A, X))
{
    spca_int down = A->row_major ? A->ld : 1, across = A->row_major ? 1 : A->ld;
    for (spca_int i = 0; i < A->n; i++) {
        const real *row = A->data + i * down;
        real *x = X + i * A->p;
        for (spca_int j = 0; j < A->p; j++) x[j] = A->range * row[j * across];
        for (spca_int j = 0; A->mean && j < A->p; j++) x[j] -= A->range * A->mean[j];
        for (spca_int j = 0; A->weight && j < A->p; j++) x[j] *= A->weight[j];
    }
}

/* Copies A, or its data, to remove components from. */
static spca_status copied(components_t *c, const operator_t *A, int as_data)
{
    spca_int p = c->p, n = as_data ? A->n : p;
    spca_status status = SPCA_OK;
    int h;
    if (as_data) {
        copy_data(A, c->B);
        c->n = n;
        c->left = of_data(n, p, c->B, p, 1, NULL, NULL, &h);
    } else {
        for (spca_int j = 0; j < p; j++) c->index[j] = j;
        status = block_of(A, p, c->index, c->work, c->B);
    }
    return status >= 0 && !finite_all(n * p, c->B) ? SPCA_NONFINITE : status;
}

/* Up to r components, as spca_proto.h says, in the units of A.  n = 0: A is a covariance. */
static spca_status components(const operator_t *A, spca_int n, spca_int r, spca_int k,
                              spca_deflation deflation, const spca_search_plan *plan,
                              spca_stop stop, void *ctx, void *work, real *V, real *variance,
                              spca_int *count)
{
    spca_int p = A->p, top, nnz;
    components_t c = {.p = p, .k = k, .plan = plan};
    room_t room = {work, 0};
    spca_status status;
    real floor = 0, value;
    int late = 0;
    components_room(&c, n, r, &room);
    *count = 0;
    for (spca_int a = 0; a < p * r; a++) V[a] = 0;
    for (spca_int t = 0; t < r; t++) variance[t] = 0;
    status = copied(&c, A, unformed(n, p, r, plan) && deflation != SPCA_HOTELLING);
    if (status < 0) return status;
    /* each component: its support, its values there, and what is left without it */
    for (; *count < r; ++*count) {
        real most = what_is_left(&c, &top);
        if (*count == 0) floor = 4 * REAL_EPSILON * (real)k * most;
        if (!(most > floor)) break;
        status = support(&c, top, stop, ctx, &nnz);
        if (status == SPCA_ZERO_VECTOR || nnz == 0) break;
        if (status < 0) return status;
        late |= status == SPCA_NOT_CONVERGED;
        if (c.n)
            status = block_of(&c.left, nnz, c.index, c.work, c.G);
        else
            SPCA(principal_submatrix)(nnz, c.index, c.B, p, c.G);
        if (status < 0) return status;
        status = SPCA(leading_eigenvector)(nnz, c.G, c.work, &value, c.vector);
        if (status < 0) return status;
        if (!(value > floor)) break;
        scatter(p, nnz, c.index, c.vector, V + *count * p);
        if (*count + 1 < r) status = remove(&c, deflation, (vector_t){nnz, c.index, c.vector});
        if (status < 0) return status;
    }
    status = explained(A, *count, V, c.work, variance);
    return status == SPCA_OK && late ? SPCA_NOT_CONVERGED : status;
}

spca_status SPCA(tpower_covariance)(spca_int p, const real *A, spca_int ld, spca_int k,
                                    int nonnegative, spca_int max_iter, real tol, spca_stop stop,
                                    void *ctx, real *x, real *work, spca_int *iwork, real *value,
                                    spca_int *n_iter)
{
    int h;
    operator_t op = of_covariance(p, A, ld, &h);
    return ascend(&op, 2 * h, k, 0, nonnegative, max_iter, tol, stop, ctx, x, work, iwork, value,
                  n_iter);
}

spca_status SPCA(tpower_data)(spca_int n, spca_int p, const real *X, spca_int ld, int row_major,
                              const real *mean, const real *weight, spca_int k, int nonnegative,
                              spca_int max_iter, real tol, spca_stop stop, void *ctx, real *x,
                              real *work, spca_int *iwork, real *value, spca_int *n_iter)
{
    int h;
    operator_t op = of_data(n, p, X, ld, row_major, mean, weight, &h);
    return ascend(&op, 4 * h, k, 0, nonnegative, max_iter, tol, stop, ctx, x, work, iwork, value,
                  n_iter);
}

spca_status SPCA(pmd_covariance)(spca_int p, const real *A, spca_int ld, double bound,
                                 int nonnegative, spca_int max_iter, real tol, spca_stop stop,
                                 void *ctx, real *x, real *work, spca_int *iwork, real *value,
                                 spca_int *n_iter)
{
    int h;
    operator_t op = of_covariance(p, A, ld, &h);
    return ascend(&op, 2 * h, 0, bound, nonnegative, max_iter, tol, stop, ctx, x, work, iwork,
                  value, n_iter);
}

spca_status SPCA(pmd_data)(spca_int n, spca_int p, const real *X, spca_int ld, int row_major,
                           const real *mean, const real *weight, double bound, int nonnegative,
                           spca_int max_iter, real tol, spca_stop stop, void *ctx, real *x,
                           real *work, spca_int *iwork, real *value, spca_int *n_iter)
{
    int h;
    operator_t op = of_data(n, p, X, ld, row_major, mean, weight, &h);
    return ascend(&op, 4 * h, 0, bound, nonnegative, max_iter, tol, stop, ctx, x, work, iwork,
                  value, n_iter);
}

spca_status SPCA(refit_covariance)(spca_int p, const real *A, spca_int ld, real *x, real *work,
                                   spca_int *iwork, real *value)
{
    int h;
    operator_t op = of_covariance(p, A, ld, &h);
    spca_status status = refit(&op, x, work, iwork, value);
    *value = ldexp(*value, 2 * h);
    return status;
}

spca_status SPCA(refit_data)(spca_int n, spca_int p, const real *X, spca_int ld, int row_major,
                             const real *mean, const real *weight, real *x, real *work,
                             spca_int *iwork, real *value)
{
    int h;
    operator_t op = of_data(n, p, X, ld, row_major, mean, weight, &h);
    spca_status status = refit(&op, x, work, iwork, value);
    *value = ldexp(*value, 4 * h);
    return status;
}

spca_status SPCA(explained_covariance)(spca_int p, const real *A, spca_int ld, spca_int r,
                                       const real *V, real *work, real *variance)
{
    int h;
    operator_t op = of_covariance(p, A, ld, &h);
    spca_status status = explained(&op, r, V, work, variance);
    for (spca_int t = 0; t < r; t++) variance[t] = ldexp(variance[t], 2 * h);
    return status;
}

spca_status SPCA(explained_data)(spca_int n, spca_int p, const real *X, spca_int ld, int row_major,
                                 const real *mean, const real *weight, spca_int r, const real *V,
                                 real *work, real *variance)
{
    int h;
    operator_t op = of_data(n, p, X, ld, row_major, mean, weight, &h);
    spca_status status = explained(&op, r, V, work, variance);
    for (spca_int t = 0; t < r; t++) variance[t] = ldexp(variance[t], 4 * h);
    return status;
}

spca_status SPCA(components_covariance)(spca_int p, const real *A, spca_int ld, spca_int r,
                                        spca_int k, spca_deflation deflation,
                                        const spca_search_plan *plan, spca_stop stop, void *ctx,
                                        void *work, real *V, real *variance, spca_int *count)
{
    int h;
    operator_t op = of_covariance(p, A, ld, &h);
    spca_status status =
        components(&op, 0, r, k, deflation, plan, stop, ctx, work, V, variance, count);
    for (spca_int t = 0; t < r; t++) variance[t] = ldexp(variance[t], 2 * h);
    return status;
}

spca_status SPCA(components_data)(spca_int n, spca_int p, const real *X, spca_int ld, int row_major,
                                  const real *mean, const real *weight, spca_int r, spca_int k,
                                  spca_deflation deflation, const spca_search_plan *plan,
                                  spca_stop stop, void *ctx, void *work, real *V, real *variance,
                                  spca_int *count)
{
    int h;
    operator_t op = of_data(n, p, X, ld, row_major, mean, weight, &h);
    spca_status status =
        components(&op, n, r, k, deflation, plan, stop, ctx, work, V, variance, count);
    for (spca_int t = 0; t < r; t++) variance[t] = ldexp(variance[t], 4 * h);
    return status;
}

spca_status SPCA(column_statistics)(spca_int n, spca_int p, const real *X, spca_int ld,
                                    int row_major, double *work, real *mean, double *variance)
{
    double *average = work, *low = work + p, *high = low + p;
    int bad = 0;
    (void)SPCA(dense_statistics)(n, p, X, ld, row_major, 1, 0, NULL, NULL, average, variance, low,
                                 high, NULL, NULL, NULL, NULL);
    for (spca_int j = 0; j < p; j++) {
        mean[j] = (real)average[j];
        variance[j] /= (double)(n > 1 ? n - 1 : 1);
        bad |= !(fabs(average[j]) <= (double)REAL_MAX) || !isfinite(variance[j]);
    }
    return bad ? SPCA_NONFINITE : SPCA_OK;
}
