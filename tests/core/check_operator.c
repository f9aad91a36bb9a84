/* check_operator.c - products, queries and submatrices of every storage against plain loops. */
#include <float.h>
#include "core.h"

static spca_stop stop_of(problem_t *q)
{
    return q->stops.at >= 0 ? stop_at : NULL;
}

/* The forward, backward and columns of a storage, as the operator has them. */
static void check_halves(trial_t *t, problem_t *q, vector_t v, const real *g)
{
    operator_t *A = &q->A;
    spca_int p = A->p, m = A->m, k = between(t, 1, p), *index;
    real *f = WORK(t, m), *y = WORK(t, p), *W = WORK(t, m * k), *part = WORK(t, k),
         sized = A->range;
    double size = 0, mean = 0;
    const spca_int *list = SPCA(subset)(t, p, k);
    spca_status status = A->forward(A, v, NULL, NULL, WORK(t, p), f);
    SPCA(digest)(t, status, m, f);
    CHECK(t, status == SPCA_OK);
    index = SCRATCH(t, k, spca_int);
    for (spca_int a = 0; a < k; a++) index[a] = list[a];
    CHECK(t, A->columns(A, k, index, NULL, NULL, WORK(t, p), W) == SPCA_OK);
    if (!A->symmetric_form) {
        real *weighted = SPCA(copy_of)(t, m, g), total = total_of(A, g);
        weight_rows(A, 0, m, weighted);
        CHECK(t, A->backward(A, weighted, total, p, NULL, NULL, NULL, y) == SPCA_OK);
        if ((q->storage == COLUMNS) || q->storage == CALLBACK) {
            CHECK(t, A->backward(A, weighted, total, k, index, NULL, NULL, part) == SPCA_OK);
            for (spca_int a = 0; a < k && SPCA(are_finite)(p, y); a++)
                CHECK(t, part[a] == y[index[a]]);
        }
    }
    if (!q->exact) return;
    for (spca_int a = 0; A->mean && a < p; a++) {
        double shift = fabs((double)A->mean[a] * (A->weight ? (double)A->weight[a] : 1));
        if (shift > mean) mean = shift;
    }
    for (spca_int a = 0; a < p * m; a++) size = fmax(size, fabs(q->F[a]));
    size = (size + mean * (double)(sized * sized)) * (double)(p + m);
    for (spca_int i = 0; i < m; i++) {
        double sum = 0;
        for (spca_int a = 0; a < v.nnz; a++)
            sum += q->F[i + (v.index ? v.index[a] : a) * m] * (double)v.value[a];
        CHECK(t, NEAR(f[i], sum, size));
        for (spca_int a = 0; a < k; a++) CHECK(t, NEAR(W[i + a * m], q->F[i + index[a] * m], size));
    }
    for (spca_int j = 0; !A->symmetric_form && j < p; j++) {
        double sum = 0;
        for (spca_int i = 0; i < m; i++) sum += q->F[i + j * m] * (double)g[i];
        CHECK(t, NEAR(y[j], sum / (double)A->range, size / (double)A->range * 2));
    }
}

/* y = A v by the dense matrix. */
static double *product(trial_t *t, const problem_t *q, vector_t v)
{
    double *y = zeros(t, q->A.p);
    for (spca_int a = 0; a < v.nnz; a++)
        for (spca_int j = 0; j < q->A.p; j++)
            y[j] += q->dense[j + (v.index ? v.index[a] : a) * q->A.p] * (double)v.value[a];
    return y;
}

static double norm_of(vector_t v)
{
    double norm = 0;
    for (spca_int a = 0; a < v.nnz; a++) norm = hypot(norm, (double)v.value[a]);
    return norm;
}

/* apply, largest and above; then the rest that can be asked. */
static void check_queries(trial_t *t, problem_t *q, vector_t v)
{
    operator_t *A = &q->A;
    spca_int p = A->p, k = between(t, 0, p), room = SPCA(query_work)(A), count = -1, found = 0;
    spca_int *index = SCRATCH(t, k, spca_int), *over = SCRATCH(t, p, spca_int);
    real *y = WORK(t, p), *value = WORK(t, k), *values = WORK(t, p), quadratic = 0, again = 0, tau;
    double want = 0, size = q->size * (double)p * fmax(norm_of(v), 1);
    const double *exact = product(t, q, v);
    int nonnegative = chance(t, 30), relative = chance(t, 50);
    spca_status status = SPCA(apply)(A, v, NULL, NULL, WORK(t, A->m + A->t), y);
    SPCA(digest)(t, status, p, y);
    CHECK(t, status == SPCA_OK || (q->style >= SPREAD && status == SPCA_NONFINITE));
    for (spca_int j = 0; q->exact && j < p; j++) CHECK(t, NEAR(y[j], exact[j], size));
    CHECK(t, status < 0 || SPCA(are_finite)(p, y));
    CHECK(t, SPCA(largest)(A, v, k, nonnegative, NULL, NULL, WORK(t, room), index, value,
                           &quadratic) == status);
    SPCA(digest)(t, status, k, value);
    tau = (real)below(t, 50) / 25;
    CHECK(t, SPCA(above)(A, v, tau, relative, NULL, NULL, WORK(t, room), &count, over, values,
                         &again) == status);
    if (status < 0) return;
    digest_int(t, count);
    SPCA(digest)(t, status, count, values);
    CHECK(t, memcmp(&quadratic, &again, sizeof again) == 0);
    for (spca_int a = 0; a < k; a++) {
        real x = y[index[a]], least;
        CHECK(t, index[a] >= 0 && index[a] < p && (a == 0 || index[a] > index[a - 1]));
        CHECK(t, value[a] == (nonnegative && !(x > 0) ? 0 : x));
        least = fabs(value[a]);
        for (spca_int j = 0; j < p; j++) { /* nothing larger is left out, nor a tie before it */
            int chosen = 0;
            real other = nonnegative ? (y[j] > 0 ? y[j] : 0) : fabs(y[j]);
            for (spca_int b = 0; b < k; b++) chosen |= index[b] == j;
            CHECK(t, chosen || other < least || (other == least && j > index[a]));
        }
    }
    for (spca_int a = 0; a < v.nnz; a++)
        want += exact[v.index ? v.index[a] : a] * (double)v.value[a];
    if (q->exact) CHECK(t, NEAR(quadratic, want, size * (double)p));
    if (relative) {
        real rest = quadratic;
        if (A->shift != 0) rest -= A->shift * strands_dot(v.nnz, v.value, v.value);
        if (A->quotient) rest *= SPCA(outside)(A, v);
        tau *= sqrt(rest > 0 ? rest : 0);
    }
    for (spca_int j = 0; j < p; j++) {
        if (!(fabs(y[j]) > tau)) continue;
        CHECK(t, found < count && over[found] == j && values[found] == y[j]);
        found++;
    }
    CHECK(t, found == count);
}

/* weight QQ'v is added. */
static void check_span(trial_t *t, problem_t *q, vector_t v)
{
    operator_t *A = &q->A;
    spca_int p = A->p;
    real *y = WORK(t, p), weight = (real)between(t, 1, 9);
    double *want = zeros(t, p), size = norm_of(v);
    if (!A->quotient || A->deflation != SPCA_PROJECTION || q->style == ANY) return;
    for (spca_int j = 0; j < p; j++) y[j] = (real)(want[j] = (double)j);
    for (spca_int i = 0; i < A->t; i++) {
        vector_t x = A->direction[i];
        double dot = 0, *dense = zeros(t, p);
        for (spca_int a = 0; a < x.nnz; a++) dense[x.index ? x.index[a] : a] = (double)x.value[a];
        for (spca_int a = 0; a < v.nnz; a++)
            dot += dense[v.index ? v.index[a] : a] * (double)v.value[a];
        for (spca_int j = 0; j < p; j++) want[j] += (double)weight * dot * dense[j];
    }
    SPCA(add_span)(A, weight, v, y);
    for (spca_int j = 0; j < p; j++)
        CHECK(t, NEAR(y[j], want[j], ((double)weight * size + (double)p) * (double)(p + A->t)));
}

/* The bits of apply at some columns. */
static void check_entries(trial_t *t, problem_t *q, vector_t v)
{
    operator_t *A = &q->A;
    spca_int p = A->p, count = 0, *list = SCRATCH(t, p, spca_int);
    real *all = WORK(t, p), *some = WORK(t, p), *image = NULL;
    spca_status status;
    if (q->storage != CSC || A->symmetric_form) return;
    int share = (int)between(t, 0, 100);
    for (spca_int j = 0; j < p; j++)
        if (chance(t, share)) list[count++] = j;
    status = SPCA(apply)(A, v, NULL, NULL, WORK(t, A->m + A->t), all);
    if (status < 0) return;
    if (chance(t, 50)) {
        image = WORK(t, A->m);
        CHECK(t, SPCA(forward)(A, v, NULL, NULL, WORK(t, p), image) == SPCA_OK);
    }
    CHECK(t, SPCA(apply_at)(A, v, image, count, list, NULL, NULL, WORK(t, A->m + A->t + p), some) ==
                 SPCA_OK);
    for (spca_int a = 0; a < count; a++) CHECK(t, some[a] == all[list[a]]);
    SPCA(digest)(t, SPCA_OK, count, some);
}

/* Blocks have the bits of single products. */
static void check_blocks(trial_t *t, problem_t *q)
{
    operator_t *A = &q->A;
    spca_int p = A->p, m = A->m, b = between(t, 1, t->left ? 6 : 45), room = SPCA(block_work)(A, b);
    style_t style = q->style == ANY && chance(t, 50) ? ANY : PLAIN;
    const real *V = SPCA(numbers)(t, style, p * b), *U = SPCA(numbers)(t, style, m * b);
    real *Y = WORK(t, p * b), *f = WORK(t, m * b), *y = WORK(t, p), *work = WORK(t, A->m + A->t);
    spca_status status = SPCA(apply_block)(A, b, V, NULL, NULL, WORK(t, room), Y), single = SPCA_OK;
    for (spca_int c = 0; c < b; c++) {
        spca_status one = SPCA(apply)(A, (vector_t){p, NULL, V + c * p}, NULL, NULL, work, y);
        if (one < 0) single = one;
        if (status >= 0) CHECK(t, memcmp(y, Y + c * p, (size_t)p * sizeof *y) == 0);
    }
    CHECK(t, status == single);
    SPCA(digest)(t, status, p * b, Y);
    if (A->symmetric_form) return;
    CHECK(t, SPCA(forward_block)(A, b, V, NULL, NULL, WORK(t, room), f) == SPCA_OK);
    status = SPCA(backward_block)(A, b, U, NULL, NULL, WORK(t, room), Y);
    single = SPCA_OK;
    for (spca_int c = 0; c < b; c++) {
        real *one = WORK(t, m);
        spca_status back = SPCA(backward)(A, U + c * m, NULL, NULL, work, y);
        CHECK(t, SPCA(forward)(A, (vector_t){p, NULL, V + c * p}, NULL, NULL, WORK(t, p), one) ==
                     SPCA_OK);
        if (SPCA(are_finite)(m, one))
            CHECK(t, memcmp(one, f + c * m, (size_t)m * sizeof *one) == 0);
        if (back < 0) single = back;
        if (status >= 0) CHECK(t, memcmp(y, Y + c * p, (size_t)p * sizeof *y) == 0);
    }
    CHECK(t, status == single);
    SPCA(digest)(t, status, p * b, Y);
}

/* A = factor F'F of the deflated columns, where a deflation leaves such a form. */
static void check_images(trial_t *t, problem_t *q)
{
    operator_t *A = &q->A;
    spca_int p = A->p, m = A->m, k = between(t, 1, p < 12 ? p : 12);
    const spca_int *index = SPCA(subset)(t, p, k);
    real *W = WORK(t, m * k);
    if (A->symmetric_form) return;
    CHECK(t, SPCA(images)(A, k, index, NULL, NULL, WORK(t, p), W) == SPCA_OK);
    if (!q->exact || A->quotient || A->span_weight != 0 || A->deflation == SPCA_HOTELLING) return;
    for (spca_int a = 0; a < k * k; a++) {
        double sum = 0;
        for (spca_int i = 0; i < m; i++) sum += (double)W[i + a % k * m] * (double)W[i + a / k * m];
        CHECK(t, NEAR(sum * (double)A->factor, q->dense[index[a % k] + index[a / k] * p],
                      q->size * (double)p));
    }
}

static void check_submatrix(trial_t *t, problem_t *q)
{
    operator_t *A = &q->A;
    spca_int p = A->p, m = A->m, k = between(t, 1, p < 12 ? p : 12), n = A->n;
    const spca_int *index = SPCA(subset)(t, p, k);
    real *G = WORK(t, k * k), value = 0, *vector = WORK(t, k), *copy, *K;
    spca_status status = SPCA(submatrix)(A, k, index, NULL, NULL, p,
                                         WORK(t, A->symmetric_form ? 2 * p + A->t : m * k + p), G);
    double *exact = zeros(t, k * k), *vectors = zeros(t, k * k), *values = zeros(t, k);
    SPCA(digest)(t, status, k * k, G);
    CHECK(t, status == SPCA_OK || (q->style >= SPREAD && status == SPCA_NONFINITE));
    if (status < 0) return;
    for (spca_int a = 0; a < k * k; a++) {
        exact[a] = (double)G[a];
        if (q->exact && !A->quotient && A->span_weight == 0)
            CHECK(t, NEAR(G[a], q->dense[index[a % k] + index[a / k] * p], q->size * (double)p));
    }
    copy = SPCA(copy_of)(t, k * k, G);
    CHECK(t, SPCA(leading_eigenvector)(k, G, WORK(t, 6 * k), &value, vector) == SPCA_OK);
    if (q->exact) {
        CHECK(t, NEAR(norm_of((vector_t){k, NULL, vector}), 1, 1));
        for (spca_int a = 0; a < k; a++)
            CHECK(t, NEAR(strands_dot(k, copy + a * k, vector), value * vector[a],
                          q->size * (double)k));
        for (spca_int b = 0; b < k; b++)
            for (spca_int a = 0; a < b; a++) exact[b + a * k] = exact[a + b * k];
        CHECK(t, jacobi(k, exact, values, vectors));
        CHECK(t, NEAR(value, values[k - 1], q->size * (double)k));
    }
    if (A->symmetric_form || A->t > 0) return;
    K = WORK(t, n * n);
    status = SPCA(outer)(A, NULL, NULL, WORK(t, n * SPCA_OUTER_BLOCK + p),
                         SCRATCH(t, SPCA_OUTER_BLOCK, spca_int), K);
    SPCA(digest)(t, status, n * n, K);
    for (spca_int a = 0; q->exact && a < n * n; a++) {
        double sum = 0, size = q->size * (double)(p + n);
        for (spca_int j = 0; j < p; j++) sum += q->F[a % n + j * n] * q->F[a / n + j * n];
        CHECK(t, NEAR(K[a], sum * (double)A->factor, size));
    }
}

/* All of A, or A[list[:m], list], from one pass. */
static void products_of_all(trial_t *t, problem_t *q)
{
    const operator_t *A = &q->A;
    if (A->symmetric_form || A->t || !A->gram || !q->exact) return;
    spca_int p = A->p, k = chance(t, 50) ? p : between(t, 1, p), bytes = A->gram_work(A, k);
    spca_int m = chance(t, 50) ? k : between(t, 1, chance(t, 50) ? k : k / 4 + 1);
    if (m > k) m = k;
    int alone = chance(t, 50);
    spca_int *list = SCRATCH(t, p, spca_int);
    double *G = SCRATCH(t, k * k, double);
    for (spca_int a = 0; a < k; a++) list[a] = a + p - k;
    for (spca_int a = 0; m < k && a < k; a++) {
        spca_int b = between(t, 0, a), at = list[a];
        list[a] = list[b];
        list[b] = at;
    }
    spca_status status = A->gram(A, m, k, m == p && chance(t, 50) ? NULL : list, NULL, NULL,
                                 SCRATCH(t, bytes / 8 + 1, double), G);
    CHECK(t, status == SPCA_OK);
    for (int by = 0; by < 2; by++) {
        operator_t B = *A;
        double *H = SCRATCH(t, k * k, double);
        B.run = by ? spca_pool_run : alone ? apart(t) : backwards;
        status = B.gram(&B, m, k, list, NULL, NULL, SCRATCH(t, bytes / 8 + 1, double), H);
        CHECK(t, status == SPCA_OK && memcmp(G, H, (size_t)(m * k) * sizeof *G) == 0);
    }
    float *rough[2] = {NULL, NULL}; /* of compressed data, in single precision */
    for (int by = 0; by < 2 && A->gram == SPCA(compressed_gram); by++) {
        operator_t B = *A;
        B.run = by ? spca_pool_run : alone ? apart(t) : backwards;
        rough[by] = SCRATCH(t, k * k, float);
        SPCA(rough_gram)(&B, k, list, SCRATCH(t, SPCA(rough_gram_work)(&B, k), char), rough[by]);
        CHECK(t, memcmp(rough[0], rough[by], (size_t)(k * k) * sizeof(float)) == 0);
    }
    if (rough[0] && !A->row_major) { /* of many rows, some at a time */
        operator_t many = *A, more = *A;
        many.n = 1 << 20, more.n = 1 << 24;
        CHECK(t, SPCA(rough_gram_work)(&many, k) == SPCA(rough_gram_work)(&more, k));
    }
    for (spca_int a = 0; a < m * k; a++) {
        const double *x = q->F + list[a / k] * A->n, *y = q->F + list[a % k] * A->n;
        double sum = 0, size = (q->size + 100) * (double)(p + A->n);
        for (spca_int i = 0; i < A->n; i++) sum += x[i] * y[i];
        sum *= (double)A->factor;
        CHECK(t, NEAR(G[a], sum, size));
        if (rough[0]) CHECK(t, fabs((double)rough[0][a] - sum) <= 2 * (double)FLT_EPSILON * size);
    }
}

void SPCA(check_gram)(trial_t *t)
{
    problem_t q;
    SPCA(problem_of)(t, &q, THIN);
    for (int again = 0; again < 2; again++) products_of_all(t, &q);
}

/* Statistics of dense X and its products about its means, from one read. */
static void check_moments(trial_t *t, problem_t *q)
{
    operator_t A = q->A;
    if (A.gram != SPCA(dense_gram) || A.symmetric_form || !q->exact) return;
    spca_int n = A.n, p = A.p, by_row = A.row_major ? A.ld : 1, by_column = A.row_major ? 1 : A.ld;
    spca_int room = SPCA(dense_gram_work)(&A, p) / 8;
    double *sums[3], *G[3];
    for (int by = 0; by < 3; by++) {
        double *o = sums[by] = SCRATCH(t, 4 * p, double);
        G[by] = SCRATCH(t, p * p, double);
        A.run = by == 0 ? NULL : by == 1 ? backwards : spca_pool_run;
        CHECK(t, SPCA(dense_moments)(&A, NULL, NULL, SCRATCH(t, room, double), o, o + p, o + 2 * p,
                                     o + 3 * p, G[by]) == SPCA_OK);
        CHECK(t, memcmp(sums[0], o, (size_t)(4 * p) * sizeof *o) == 0);
        CHECK(t, memcmp(G[0], G[by], (size_t)(p * p) * sizeof *o) == 0);
    }
    for (spca_int a = 0; a < p * p; a++) {
        const real *x = A.data + a / p * by_column, *y = A.data + a % p * by_column;
        double mean = 0, other = 0, sum = 0, size = 0, least = HUGE_VAL, most = -HUGE_VAL;
        for (spca_int i = 0; i < n; i++) {
            mean += (double)x[i * by_row] / (double)n;
            other += (double)y[i * by_row] / (double)n;
            least = fmin(least, (double)x[i * by_row]);
            most = fmax(most, (double)x[i * by_row]);
        }
        for (spca_int i = 0; i < n; i++) {
            double u = (double)x[i * by_row] - mean, v = (double)y[i * by_row] - other;
            sum += u * v;
            size += u * u + v * v + EPSILON * (mean * mean + other * other);
        }
        if (size < (SINGLE ? 1e25 : 1e250)) /* and no square of it is lost */
            CHECK(t, NEAR(G[0][a], sum, size * (double)(n + 10) + (SINGLE ? 1e-25 : 1e-250)));
        CHECK(t, G[0][a] == G[0][a % p * p + a / p]);
        if (a % p != a / p) continue;
        double top = fmax(fabs(least), fabs(most)), *o = sums[0] + a / p;
        CHECK(t, NEAR(o[0], mean, top) && NEAR(o[2 * p], least, top) && NEAR(o[3 * p], most, top));
        CHECK(t, o[p] == G[0][a] && (o[2 * p] < o[3 * p]) == (least < most));
    }
}

void SPCA(check_operator)(trial_t *t)
{
    problem_t q;
    SPCA(problem_of)(t, &q, chance(t, 70) ? DEFLATED : 0);
    spca_int p = q.A.p, nnz = between(t, 1, p);
    style_t style = q.style == ANY ? ANY : PLAIN;
    vector_t v = SPCA(sparse)(t, style, p, nnz, chance(t, 40));
    const real *g = SPCA(numbers)(t, style, q.A.m);
    check_halves(t, &q, v, g);
    check_queries(t, &q, v);
    check_entries(t, &q, v);
    check_blocks(t, &q);
    check_images(t, &q);
    check_submatrix(t, &q);
    products_of_all(t, &q);
    check_moments(t, &q);
    check_span(t, &q, v);
    if (!q.exact || q.A.symmetric_form) return;
    real *y = WORK(t, p), *u = SPCA(copy_of)(t, q.A.m, g);
    CHECK(t, SPCA(backward)(&q.A, u, NULL, NULL, WORK(t, q.A.m + q.A.t), y) == SPCA_OK);
    SPCA(digest)(t, SPCA_OK, p, y);
    if (q.A.t == 0) {
        for (spca_int j = 0; j < p; j++) {
            double sum = 0;
            for (spca_int i = 0; i < q.A.m; i++) sum += q.F[i + j * q.A.m] * (double)g[i];
            CHECK(t, NEAR(y[j], sum * (double)q.A.factor, (q.size + 100) * (double)(p + q.A.m)));
        }
    } else if (q.A.deflation != SPCA_HOTELLING) { /* image and transpose belong together */
        real *f = WORK(t, q.A.m);
        double left = 0, right = 0;
        CHECK(t, SPCA(forward)(&q.A, v, NULL, NULL, WORK(t, p), f) == SPCA_OK);
        for (spca_int i = 0; i < q.A.m; i++) left += (double)f[i] * (double)g[i];
        for (spca_int a = 0; a < v.nnz; a++)
            right += (double)y[v.index ? v.index[a] : a] * (double)v.value[a];
        CHECK(t, NEAR(left * (double)q.A.factor, right, (q.size + 100) * (double)(p * q.A.m + p)));
    }
}

/* Every query that is stopped, or whose product fails, says so and nothing else; then it is
 * asked to the end, with the result of the one that was never stopped. */
typedef spca_status ask_t(trial_t *t, problem_t *q, vector_t v);

static spca_status ask_apply(trial_t *t, problem_t *q, vector_t v)
{
    real *y = WORK(t, q->A.p);
    spca_status status = SPCA(apply)(&q->A, v, stop_of(q), &q->stops, WORK(t, q->A.m + q->A.t), y);
    if (status == SPCA_OK) CHECK(t, SPCA(are_finite)(q->A.p, y));
    return status;
}

static spca_status ask_largest(trial_t *t, problem_t *q, vector_t v)
{
    spca_int k = q->A.p < 3 ? 1 : 3;
    real quadratic;
    return SPCA(largest)(&q->A, v, k, 0, stop_of(q), &q->stops, WORK(t, SPCA(query_work)(&q->A)),
                         SCRATCH(t, k, spca_int), WORK(t, k), &quadratic);
}

static spca_status ask_above(trial_t *t, problem_t *q, vector_t v)
{
    spca_int count;
    real quadratic;
    return SPCA(above)(&q->A, v, (real)0.25, 1, stop_of(q), &q->stops,
                       WORK(t, SPCA(query_work)(&q->A)), &count, SCRATCH(t, q->A.p, spca_int),
                       WORK(t, q->A.p), &quadratic);
}

typedef spca_status block_t(const SPCA(operator) * A, spca_int r, const real *V, spca_stop stop,
                            void *ctx, real *work, real *Y);

/* Three vectors of length `in`, and of length `out` back. */
static spca_status ask_three(trial_t *t, problem_t *q, block_t *ask, spca_int in, spca_int out)
{
    real *V = WORK(t, 3 * in);
    for (spca_int j = 0; j < 3 * in; j++) V[j] = (real)(j % 7 - 3);
    return ask(&q->A, 3, V, stop_of(q), &q->stops, WORK(t, SPCA(block_work)(&q->A, 3)),
               WORK(t, 3 * out));
}

static spca_status ask_block(trial_t *t, problem_t *q, vector_t v)
{
    (void)v;
    return ask_three(t, q, SPCA(apply_block), q->A.p, q->A.p);
}

static spca_status ask_images(trial_t *t, problem_t *q, vector_t v)
{
    (void)v;
    if (q->A.symmetric_form || q->A.t > 0) return SPCA_OK;
    return ask_three(t, q, SPCA(forward_block), q->A.p, q->A.m);
}

static spca_status ask_transposed(trial_t *t, problem_t *q, vector_t v)
{
    (void)v;
    if (q->A.symmetric_form || q->A.t > 0) return SPCA_OK;
    return ask_three(t, q, SPCA(backward_block), q->A.m, q->A.p);
}

static spca_status ask_submatrix(trial_t *t, problem_t *q, vector_t v)
{
    spca_int p = q->A.p, room = q->A.symmetric_form ? 2 * p + q->A.t : q->A.m * v.nnz + p;
    if (!v.index) return SPCA_OK;
    return SPCA(submatrix)(&q->A, v.nnz, v.index, stop_of(q), &q->stops, q->A.p, WORK(t, room),
                           WORK(t, v.nnz * v.nnz));
}

static spca_status ask_outer(trial_t *t, problem_t *q, vector_t v)
{
    spca_int n = q->A.n;
    (void)v;
    if (q->A.symmetric_form || q->A.t > 0) return SPCA_OK;
    return SPCA(outer)(&q->A, stop_of(q), &q->stops, WORK(t, n * SPCA_OUTER_BLOCK + q->A.p),
                       SCRATCH(t, SPCA_OUTER_BLOCK, spca_int), WORK(t, n * n));
}

static ask_t *const ASKED[] = {ask_apply,  ask_largest,    ask_above,     ask_block,
                               ask_images, ask_transposed, ask_submatrix, ask_outer};

void SPCA(check_stops)(trial_t *t)
{
    problem_t q;
    SPCA(problem_of)(t, &q, TAMED | DEFLATED);
    vector_t v = SPCA(sparse)(t, PLAIN, q.A.p, between(t, 1, q.A.p), chance(t, 40));
    for (size_t i = 0; i < sizeof ASKED / sizeof *ASKED; i++)
        for (int failing = 0; failing < 2; failing++)
            for (spca_int at = 0;; at++) {
                stop_t *s = failing ? &q.fails : &q.stops;
                spca_status status;
                q.fails = q.stops = (stop_t){0, -1};
                s->at = at;
                status = ASKED[i](t, &q, v);
                digest_int(t, status);
                if (s->asked <= at) { /* never reached */
                    CHECK(t, status == SPCA_OK);
                    break;
                }
                CHECK(t, status == (failing ? SPCA_PRODUCT_FAILED : SPCA_STOPPED));
            }
}
