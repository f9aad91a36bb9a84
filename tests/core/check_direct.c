/* check_direct.c - what callers with arrays get, against plain loops. */
#include "core.h"

/* A covariance, or data with or without means and weights. */
typedef struct {
    spca_int n, p, ld;
    int row_major;
    const real *data, *mean, *weight;
    style_t style;
    double *dense, size; /* p x p */
} plain_t;

static plain_t plain_of(trial_t *t)
{
    plain_t d = {.p = between(t, 1, 12), .row_major = chance(t, 50)};
    int covariance = chance(t, 40), fill;
    spca_int p = d.p, lines, width;
    real *data;
    double *F;
    d.n = covariance ? 0 : between(t, 1, 20);
    d.style = SPCA(style)(t, 0);
    lines = covariance ? p : d.row_major ? d.n : p;
    width = covariance || d.row_major ? p : d.n;
    d.ld = width + below(t, 4);
    const real *values = SPCA(numbers)(t, d.style, lines * width);
    data = input(t, (lines - 1) * d.ld + width, sizeof *data, &fill);
    for (spca_int l = 0; fill && l < lines; l++)
        for (spca_int a = 0; a < (l + 1 < lines ? d.ld : width); a++)
            data[l * d.ld + a] = a >= width            ? (real)NAN
                                 : covariance && a < l ? values[a * width + l]
                                                       : values[l * width + a];
    d.data = data;
    d.dense = zeros(t, p * p);
    if (!covariance && chance(t, 50)) d.mean = SPCA(numbers)(t, PLAIN, p);
    if (!covariance && chance(t, 30)) d.weight = SPCA(numbers)(t, PLAIN, p);
    if (covariance) {
        for (spca_int a = 0; a < p * p; a++) d.dense[a] = (double)data[a / p * d.ld + a % p];
    } else {
        F = zeros(t, d.n * p);
        for (spca_int j = 0; j < p; j++)
            for (spca_int i = 0; i < d.n; i++)
                F[i + j * d.n] = ((double)data[d.row_major ? i * d.ld + j : j * d.ld + i] -
                                  (d.mean ? (double)d.mean[j] : 0)) *
                                 (d.weight ? (double)d.weight[j] : 1);
        for (spca_int a = 0; a < p * p; a++)
            for (spca_int i = 0; i < d.n; i++)
                d.dense[a] +=
                    F[i + a % p * d.n] * F[i + a / p * d.n] / (double)(d.n > 1 ? d.n - 1 : 1);
    }
    for (spca_int a = 0; a < p * p; a++) d.size = fmax(d.size, fabs(d.dense[a]));
    d.size = d.size * (double)(p + d.n) + (d.mean || d.weight ? 10 : 0);
    return d;
}

static double form(const plain_t *d, const real *x)
{
    double sum = 0;
    for (spca_int b = 0; b < d->p; b++)
        for (spca_int a = 0; a < d->p; a++)
            sum += (double)x[a] * d->dense[a + b * d->p] * (double)x[b];
    return sum;
}

static void check_unit(trial_t *t, spca_int p, const real *x)
{
    double norm = 0;
    spca_int top = 0;
    for (spca_int j = 0; j < p; j++) {
        norm = hypot(norm, (double)x[j]);
        if (fabs(x[j]) > fabs(x[top])) top = j;
    }
    CHECK(t, NEAR(norm, 1, 1) && x[top] > 0);
}

/* Entries beyond whose squares numbers end, which are where the last rows and columns are alone. */
static void far_entries(trial_t *t)
{
    enum { N = 40, LD = 5 };
    const real large = (real)0.9 * REAL_MAX, huge = ldexp((real)1, SINGLE ? 90 : 900);
    real A[3 * LD], X[2 * N], value = 0;
    spca_int n_iter, *iwork = SCRATCH(t, 5, spca_int);
    for (spca_int a = 0; a < 3 * LD; a++)
        A[a] = a % LD > 2 ? (real)NAN : a / LD * (a % LD) == 0 ? 0 : large;
    real x[3] = {0, 1, 0};
    CHECK(t, SPCA(tpower_covariance)(3, A, LD, 2, 0, 99, 0, NULL, NULL, x, WORK(t, 16), iwork,
                                     &value, &n_iter) == SPCA_OK);
    CHECK(t, x[0] == 0 && NEAR(x[1], sqrt(0.5), 1) && NEAR(x[2], sqrt(0.5), 1));
    CHECK(t, isinf(value)); /* 1.8 times the largest number */
    for (int row_major = 0; row_major < 2; row_major++) {
        real y[2] = {1, 0};
        for (spca_int a = 0; a < 2 * N; a++) X[a] = a == 2 * N - 1 ? huge : 0;
        if (!row_major) X[N - 1] = huge; /* the last sample alone, in both variables */
        if (row_major) X[2 * N - 2] = huge;
        CHECK(t, SPCA(tpower_data)(N, 2, X, row_major ? 2 : N, row_major, NULL, NULL, 2, 0, 99, 0,
                                   NULL, NULL, y, WORK(t, 3 * 2 + N + 4), iwork, &value,
                                   &n_iter) == SPCA_OK);
        CHECK(t, NEAR(y[0], sqrt(0.5), 1e3) && NEAR(y[1], sqrt(0.5), 1e3));
    }
}

void SPCA(check_direct)(trial_t *t)
{
    far_entries(t);
    plain_t d = plain_of(t);
    spca_int n = d.n, p = d.p, k = between(t, 1, p), most = chance(t, 20) ? 0 : between(t, 1, 40),
             n_iter = -1, nnz = 0, at = 0;
    const real *start = SPCA(numbers)(t, chance(t, 10) ? SPARSE : chance(t, 20) ? TIES : PLAIN, p);
    real *x = SPCA(copy_of)(t, p, start), value = 0, *gathered = WORK(t, p);
    int nonnegative = chance(t, 20), data = n > 0, tame = d.style < SPREAD;
    spca_int *index = SCRATCH(t, p, spca_int);
    vector_t v = {SPCA(gather)(p, x, index, gathered), index, gathered};
    for (spca_int j = 0; j < p; j++)
        if (x[j] != 0) CHECK(t, at < v.nnz && v.index[at] == j && v.value[at++] == x[j]);
    CHECK(t, at == v.nnz);
    spca_status status =
        data ? SPCA(tpower_data)(n, p, d.data, d.ld, d.row_major, d.mean, d.weight, k, nonnegative,
                                 most, (real)1e-5, NULL, NULL, x, WORK(t, 3 * p + n + 2 * k),
                                 SCRATCH(t, p + k, spca_int), &value, &n_iter)
             : SPCA(tpower_covariance)(p, d.data, d.ld, k, nonnegative, most, (real)1e-5, NULL,
                                       NULL, x, WORK(t, 4 * p + 2 * k), SCRATCH(t, p + k, spca_int),
                                       &value, &n_iter);
    SPCA(digest)(t, status, p, x);
    if (status < 0) {
        CHECK(t, status == SPCA_ZERO_VECTOR || (status == SPCA_NONFINITE && !tame));
        CHECK(t, memcmp(x, start, (size_t)p * sizeof *x) == 0);
    } else if (tame) {
        for (spca_int j = 0; j < p; j++) {
            nnz += x[j] != 0;
            CHECK(t, !nonnegative || n_iter == 0 || x[j] >= 0);
        }
        check_unit(t, p, x);
        CHECK(t, nnz <= k && NEAR(value, form(&d, x), d.size));
    }
    if (tame && status >= 0 && !d.mean && !d.weight) { /* in units whose squares are subnormal */
        spca_int size = data ? (d.row_major ? n - 1 : p - 1) * d.ld + (d.row_major ? p : n)
                             : (p - 1) * d.ld + p;
        real *scaled = SPCA(copy_of)(t, size, d.data), *z = SPCA(copy_of)(t, p, start);
        for (spca_int a = 0; a < size; a++) scaled[a] = ldexp(scaled[a], SINGLE ? -68 : -520);
        CHECK(t,
              (data ? SPCA(tpower_data)(n, p, scaled, d.ld, d.row_major, NULL, NULL, k, nonnegative,
                                        most, (real)1e-5, NULL, NULL, z, WORK(t, 3 * p + n + 2 * k),
                                        SCRATCH(t, p + k, spca_int), &value, &n_iter)
                    : SPCA(tpower_covariance)(p, scaled, d.ld, k, nonnegative, most, (real)1e-5,
                                              NULL, NULL, z, WORK(t, 4 * p + 2 * k),
                                              SCRATCH(t, p + k, spca_int), &value, &n_iter)) ==
                  status);
        CHECK(t, memcmp(z, x, (size_t)p * sizeof *x) == 0);
    }
    real pair[] = {-1, 1}, unit[] = {1, 0, 0, 1}; /* of two equal, the first is positive */
    CHECK(t, SPCA(tpower_covariance)(2, unit, 2, 2, 0, 0, 0, NULL, NULL, pair, WORK(t, 12),
                                     SCRATCH(t, 4, spca_int), &value, &n_iter) >= 0);
    CHECK(t, pair[0] > 0 && pair[1] < 0);
    for (spca_int i = 0;; i++) { /* stopped wherever it asks */
        stop_t stop = {0, i};
        real *again = SPCA(copy_of)(t, p, start);
        spca_status stopped =
            data ? SPCA(tpower_data)(n, p, d.data, d.ld, d.row_major, d.mean, d.weight, k,
                                     nonnegative, 3, (real)1e-5, stop_at, &stop, again,
                                     WORK(t, 3 * p + n + 2 * k), SCRATCH(t, p + k, spca_int),
                                     &value, &n_iter)
                 : SPCA(tpower_covariance)(p, d.data, d.ld, k, nonnegative, 3, (real)1e-5, stop_at,
                                           &stop, again, WORK(t, 4 * p + 2 * k),
                                           SCRATCH(t, p + k, spca_int), &value, &n_iter);
        CHECK(t, (stopped == SPCA_STOPPED) == (stop.asked > i));
        if (stop.asked <= i) break;
    }
}

/* Several components, by either search: unit loadings of k variables, and zeros behind them. */
static void check_components(trial_t *t, const plain_t *d)
{
    spca_int p = d->p, k = between(t, 1, p), r = between(t, 1, p), count = -1;
    spca_deflation how = (spca_deflation)between(t, SPCA_HOTELLING, SPCA_SCHUR);
    spca_search_plan plan = {.max_iter = 20, .tol = 1e-5};
    real *V = WORK(t, p * r), *variance = WORK(t, r);
    if (chance(t, 50))
        plan = (spca_search_plan){.starts = p,
                                  .rounds = 1,
                                  .steps = {2},
                                  .keep = {2},
                                  .width = {2 * k},
                                  .max_iter = 20,
                                  .tol = 1e-5,
                                  .ends = 2,
                                  .swapped = 2,
                                  .rise = 1e-10,
                                  .gap = 1e-8,
                                  .slack = 1e-4,
                                  .tie = 1e-6,
                                  .nodes = 3,
                                  .hopeless = 1};
    char *work = SCRATCH(t, (spca_int)SPCA(components_work)(d->n, p, k, r, &plan), char);
    spca_status status =
        d->n ? SPCA(components_data)(d->n, p, d->data, d->ld, d->row_major, d->mean, d->weight, r,
                                     k, how, &plan, NULL, NULL, work, V, variance, &count)
             : SPCA(components_covariance)(p, d->data, d->ld, r, k, how, &plan, NULL, NULL, work, V,
                                           variance, &count);
    CHECK(t, status >= 0 || d->style >= SPREAD);
    for (spca_int c = 0; c < r && d->style < SPREAD; c++) {
        spca_int nnz = 0;
        for (spca_int j = 0; j < p; j++) nnz += V[j + c * p] != 0;
        if (c < count) check_unit(t, p, V + c * p);
        CHECK(t, c < count ? nnz <= k : nnz == 0 && variance[c] == 0);
    }
}

/* The l1 solver: within the bound, and its value. */
static void check_bounded(trial_t *t, const plain_t *d)
{
    spca_int p = d->p, n_iter;
    double bound = 1 + (sqrt((double)p) - 1) / (double)between(t, 1, 4), sum = 0;
    real *x = SPCA(copy_of)(t, p, SPCA(numbers)(t, PLAIN, p)), value;
    spca_status status =
        d->n ? SPCA(pmd_data)(d->n, p, d->data, d->ld, d->row_major, d->mean, d->weight, bound, 0,
                              9, (real)1e-5, NULL, NULL, x, WORK(t, 4 * p + d->n + p),
                              SCRATCH(t, 2 * p, spca_int), &value, &n_iter)
             : SPCA(pmd_covariance)(p, d->data, d->ld, bound, 0, 9, (real)1e-5, NULL, NULL, x,
                                    WORK(t, 5 * p), SCRATCH(t, 2 * p, spca_int), &value, &n_iter);
    CHECK(t, status >= 0 || status == SPCA_ZERO_VECTOR || d->style >= SPREAD);
    if (status < 0 || d->style >= SPREAD) return;
    for (spca_int j = 0; j < p; j++) sum += (double)fabs(x[j]);
    check_unit(t, p, x);
    CHECK(t, sum <= bound * (1 + 1e-5) && NEAR(value, form(d, x), d->size));
}

void SPCA(check_refit)(trial_t *t)
{
    plain_t d = plain_of(t);
    spca_int n = d.n, p = d.p, r = between(t, 1, p), k = 0;
    vector_t v = SPCA(sparse)(t, PLAIN, p, between(t, 1, p), 0);
    const real *V = SPCA(numbers)(t, chance(t, 50) ? TIES : PLAIN, p * r);
    real *x = WORK(t, p), value = 0, *variance = WORK(t, r);
    int data = n > 0, tame = d.style < SPREAD;
    spca_int *support = SCRATCH(t, p, spca_int);
    spca_status status;
    for (spca_int j = 0; j < p; j++) x[j] = 0;
    for (spca_int a = 0; a < v.nnz; a++) x[v.index[a]] = v.value[a];
    for (spca_int j = 0; j < p; j++)
        if (x[j] != 0) support[k++] = j;
    spca_int more = data ? n * k + p : 28 * k > 2 * p ? 28 * k : 2 * p;
    if (data && more < 28 * k) more = 28 * k;
    real *work = WORK(t, k * k + k + more);
    spca_int *iwork = SCRATCH(t, p + 12 * k, spca_int);
    status = data ? SPCA(refit_data)(n, p, d.data, d.ld, d.row_major, d.mean, d.weight, x, work,
                                     iwork, &value)
                  : SPCA(refit_covariance)(p, d.data, d.ld, x, work, iwork, &value);
    SPCA(digest)(t, status, 1, &value);
    CHECK(t, status == SPCA_OK || !tame);
    if (tame && k > 0) {
        CHECK(t, NEAR(value, largest_eigenvalue(t, p, d.dense, NULL, k, support), d.size));
        check_unit(t, p, x);
        CHECK(t, NEAR(form(&d, x), value, d.size));
    }
    status = data ? SPCA(explained_data)(n, p, d.data, d.ld, d.row_major, d.mean, d.weight, r, V,
                                         WORK(t, 2 * p * r + n + p), variance)
                  : SPCA(explained_covariance)(p, d.data, d.ld, r, V, WORK(t, 2 * p * r + 2 * p),
                                               variance);
    SPCA(digest)(t, status, r, variance);
    CHECK(t, status == SPCA_OK || (status == SPCA_NONFINITE && !tame));
    check_components(t, &d);
    check_bounded(t, &d);
    if (!tame) return;
    double *Q = zeros(t, p * r);
    spca_int rank = 0;
    for (spca_int s = 0; s < r; s++) { /* Gram-Schmidt in double */
        double *q = Q + rank * p, norm = 0, left = 0, want = 0;
        for (spca_int j = 0; j < p; j++) q[j] = (double)V[j + s * p];
        for (spca_int j = 0; j < p; j++) norm = hypot(norm, q[j]);
        for (int pass = 0; pass < 3; pass++)
            for (spca_int l = 0; l < rank; l++) {
                double c = 0;
                for (spca_int j = 0; j < p; j++) c += q[j] * Q[j + l * p];
                for (spca_int j = 0; j < p; j++) q[j] -= c * Q[j + l * p];
            }
        for (spca_int j = 0; j < p; j++) left = hypot(left, q[j]);
        if (left <= 1e-7 * norm) {
            CHECK(t, variance[s] == 0);
            continue;
        }
        if (left <= 1e-1 * norm) return; /* near the span: what is left is mostly rounding */
        for (spca_int j = 0; j < p; j++) q[j] /= left;
        for (spca_int b = 0; b < p; b++)
            for (spca_int a = 0; a < p; a++) want += q[a] * d.dense[a + b * p] * q[b];
        CHECK(t, NEAR(variance[s], want, d.size * 100));
        rank++;
    }
}

/* q_t by Gram-Schmidt in long double: of columns whose part orthogonal to the earlier ones is no
 * small share of them, or which are a sum of two earlier ones, as they are rounded, and then have
 * none.  Columns are of any size. */
void SPCA(check_orthogonal_parts)(trial_t *t)
{
    spca_int p = between(t, 1, 40), r = between(t, 1, p < 9 ? p : 9);
    real epsilon = chance(t, 50) ? REAL_EPSILON : (real)0x1p-18;
    const real *given = SPCA(numbers)(t,
                                      chance(t, 30)   ? TIES
                                      : chance(t, 30) ? SPARSE
                                                      : PLAIN,
                                      p * r);
    real *V = SPCA(copy_of)(t, p * r, given), *Q = WORK(t, p * r);
    long double *exact = SCRATCH(t, p * r, long double);
    spca_int parts = 0; /* the columns of exact, unit vectors */
    int *empty = SCRATCH(t, r, int), plain = 1, near = chance(t, 20); /* the second to the first */
    for (spca_int s = 0; s < r; s++) {
        int size, in_span = s >= 2 && chance(t, 30),
                  e = (int)between(t, SINGLE ? -100 : -900, SINGLE ? 100 : 900);
        for (spca_int j = 0; j < p; j++) {
            real *v = V + s * p + j;
            if (near && s == 1) *v = given[j] + given[p + j] / 64;
            if (in_span) *v = near ? given[p + j] : given[j] + 3 * given[p + j];
            real share = frexp(*v, &size);
            *v = ldexp((real)(rint((double)share / (double)epsilon) * (double)epsilon), size);
        }
        long double *q = exact + parts * p, norm = 0, left = 0;
        for (spca_int j = 0; j < p; j++) q[j] = (long double)V[s * p + j];
        for (spca_int j = 0; j < p; j++) norm = hypotl(norm, q[j]);
        for (int pass = 0; pass < 3; pass++)
            for (spca_int l = 0; l < parts; l++) {
                long double c = 0;
                for (spca_int j = 0; j < p; j++) c += q[j] * exact[j + l * p];
                for (spca_int j = 0; j < p; j++) q[j] -= c * exact[j + l * p];
            }
        for (spca_int j = 0; j < p; j++) left = hypotl(left, q[j]);
        empty[s] = in_span || left <= 0;
        plain &= (empty[s] && !(near && s == 1)) || left > (near && s == 1 ? 1e-3L : 0.1L) * norm;
        if (!empty[s])
            for (spca_int j = 0; j < p; j++) exact[j + parts * p] = q[j] / left;
        parts += !empty[s];
        for (spca_int j = 0; j < p; j++) V[s * p + j] = ldexp(V[s * p + j], e);
    }
    CHECK(t, SPCA(orthogonal_parts)(p, r, V, epsilon, WORK(t, p * r), Q) == SPCA_OK);
    SPCA(digest)(t, SPCA_OK, p * r, Q);
    parts = 0;
    for (spca_int s = 0; plain && s < r; s++) {
        for (spca_int j = 0; j < p; j++) {
            long double want = empty[s] ? 0 : exact[j + parts * p];
            CHECK(t, empty[s] ? Q[s * p + j] == 0
                              : fabsl((long double)Q[s * p + j] - want) <=
                                    1e4L * (near ? 64 : 1) * (long double)epsilon);
        }
        parts += !empty[s];
    }
    V[below(t, p * r)] = chance(t, 50) ? (real)NAN : (real)HUGE_VAL;
    CHECK(t, SPCA(orthogonal_parts)(p, r, V, epsilon, WORK(t, p * r), Q) == SPCA_NONFINITE);
}

/* The very entries, of a matrix that need not be symmetric, in the order asked for. */
void SPCA(check_principal_submatrix)(trial_t *t)
{
    spca_int p = between(t, 1, 70), k = between(t, 1, 70), ld = p + below(t, 4);
    const real *A = SPCA(numbers)(t, ANY, (p - 1) * ld + p);
    spca_int *index = SCRATCH(t, k, spca_int);
    real *G = WORK(t, k * k);
    for (spca_int a = 0; a < k; a++) index[a] = below(t, p);
    SPCA(principal_submatrix)(k, index, A, ld, G);
    SPCA(digest)(t, SPCA_OK, k * k, G);
    for (spca_int a = 0; a < k * k; a++)
        CHECK(t, memcmp(G + a, A + index[a / k] * ld + index[a % k], sizeof *G) == 0);
}

/* H T H' is the matrix, whose upper triangle is not read; the reflections of a panel and of
 * several. */
void SPCA(check_tridiagonal)(trial_t *t)
{
    spca_int k = between(t, 1, 50);
    const real *numbers = SPCA(numbers)(t, PLAIN, k * k);
    real *A = WORK(t, k * k), *V = WORK(t, k * k), *tau = WORK(t, k), *d = WORK(t, k),
         *e = WORK(t, k);
    double size = 0;
    for (spca_int a = 0; a < k * k; a++) {
        A[a] = numbers[a];
        V[a] = a / k + a % k == k - 1; /* the identity, its columns in reverse */
        size = fmax(size, fabs(numbers[a]));
    }
    CHECK(t, SPCA(tridiagonal)(k, NULL, NULL, A, WORK(t, 16 * k), tau, d, e) == SPCA_OK);
    CHECK(t, e[k - 1] == 0);
    CHECK(t, SPCA(untridiagonal)(k, k, A, tau, NULL, NULL, V) == SPCA_OK);
    SPCA(digest)(t, SPCA_OK, k, d);
    for (spca_int a = 0; a < k; a++)
        for (spca_int b = 0; b <= a; b++) {
            double sum = 0;
            for (spca_int i = 0, at = k - 1; i < k; i++, at--) { /* H_i is column `at` of V */
                double beside = i > 0 ? (double)e[i - 1] * (double)V[(at + 1) * k + b] : 0;
                beside += i + 1 < k ? (double)e[i] * (double)V[(at - 1) * k + b] : 0;
                sum += (double)V[at * k + a] * ((double)d[i] * (double)V[at * k + b] + beside);
            }
            CHECK(t, NEAR(sum, numbers[a * k + b], size * (double)k));
        }
    A[k * k - 1] = (real)NAN;
    CHECK(t, SPCA(tridiagonal)(k, NULL, NULL, A, WORK(t, 16 * k), tau, d, e) == SPCA_NONFINITE);
}
