/* check_early.c - solvers that are stopped at every one of their queries, and what small problems
 * meet too rarely: inputs longer than what is read at a time, sizes at which another way is taken,
 * numbers that leave the range on the way. */
#include "core.h"

typedef struct {
    problem_t *q;
    spca_int p, r; /* of what is no operator */
    stop_t stop;
    int kind;
    const real *X;
    const double *w;
    double tol;
    spca_int most; /* iterations */
    int seldom;    /* stopped at few of many queries */
    spca_status status;
} early_t;

typedef void run_t(trial_t *, early_t *);

/* For at = 0, 1, 2, 3, ..., or seldom 0, 1, 3, 7, ...: stopped at that query, until none is left.
 */
static void each_query(trial_t *t, run_t *run, early_t *e)
{
    size_t kept = t->own.count;
    for (spca_int at = 0;; at += e->seldom ? at + 1 : 1, trial_release(t, kept)) {
        e->stop = (stop_t){0, at};
        if (e->q) e->q->fails = (stop_t){0, -1};
        run(t, e);
        digest_int(t, e->status);
        if (e->stop.asked <= at) return;
        CHECK(t, e->status == SPCA_STOPPED);
    }
}

static void start_of(trial_t *t, const early_t *e, spca_int **index, real **value, spca_int *nnz)
{
    spca_int p = e->q->A.p, room = p;
    *nnz = 1 + (p - 1) / 2;
    *index = SCRATCH(t, room, spca_int);
    *value = WORK(t, room);
    for (spca_int a = 0; a < *nnz; a++) {
        (*index)[a] = a;
        (*value)[a] = (real)(a % 3 ? 1 : -2);
    }
}

static void run_power(trial_t *t, early_t *e)
{
    const operator_t *A = &e->q->A;
    spca_int nnz, *index, n_iter, k = 1 + A->p / 4;
    real *value, objective;
    start_of(t, e, &index, &value, &nnz);
    e->status = SPCA(truncated_power)(A, k, e->kind, 20, 0, stop_at, &e->stop, &nnz, index, value,
                                      WORK(t, SPCA(query_work)(A) + 2 * k), SCRATCH(t, k, spca_int),
                                      &objective, &n_iter);
}

static void run_gpower(trial_t *t, early_t *e)
{
    const operator_t *A = &e->q->A;
    spca_int nnz, *index, n_iter;
    real *value, objective, quadratic;
    start_of(t, e, &index, &value, &nnz);
    e->status = SPCA(gpower)(A, e->kind, (real)0.1, 20, 0, stop_at, &e->stop, &nnz, index, value,
                             WORK(t, 3 * A->p + A->m + A->t), SCRATCH(t, A->p, spca_int),
                             &objective, &quadratic, &n_iter);
}

static void run_pmd(trial_t *t, early_t *e)
{
    const operator_t *A = &e->q->A;
    spca_int nnz, *index, n_iter;
    real *value, objective;
    start_of(t, e, &index, &value, &nnz);
    e->status = SPCA(pmd)(A, fmin(1.3, sqrt((double)A->p)), e->kind, 20, 0, stop_at, &e->stop, &nnz,
                          index, value, WORK(t, 3 * A->p + A->m + A->t), SCRATCH(t, A->p, spca_int),
                          &objective, &n_iter);
}

static void run_pmd_two_way(trial_t *t, early_t *e)
{
    const operator_t *A = &e->q->A;
    spca_int nnz, *index, n_iter, most = A->p > A->m + A->t ? A->p : A->m + A->t;
    real *value, objective;
    e->status = SPCA_OK;
    if (A->symmetric_form || A->deflation == SPCA_HOTELLING || A->shift != 0) return;
    start_of(t, e, &index, &value, &nnz);
    e->status =
        SPCA(pmd_two_way)(A, fmin(1.3, sqrt((double)A->p)), fmin(1.5, sqrt((double)A->m)), e->kind,
                          20, 0, stop_at, &e->stop, &nnz, index, value, WORK(t, A->p + A->m + most),
                          SCRATCH(t, A->p, spca_int), WORK(t, A->m), &objective, &n_iter);
}

static void run_scotlass(trial_t *t, early_t *e)
{
    const operator_t *A = &e->q->A;
    spca_int n_iter, p = A->p, k = A->p > 2 ? 1 + e->kind : 0, rest = A->m + A->t;
    real *Q = WORK(t, k * p), *v = WORK(t, p), objective;
    for (spca_int i = 0; i < k * p; i++) Q[i] = 0;
    for (spca_int l = 0; l < k; l++) {
        Q[l * p + l] = (real)0.6;
        Q[l * p + p - 1 - (l == p - 1)] += l ? 0 : (real)0.8;
        if (l) Q[l * p + l] = 1;
    }
    for (spca_int i = 0; i < p; i++) v[i] = (real)(i % 3 ? 1 : -2);
    e->status = SPCA(scotlass)(A, k, Q, fmin(1.4, sqrt((double)p)), 10, 0, stop_at, &e->stop, v,
                               WORK(t, 2 * p + (3 * p > rest ? 3 * p : rest)),
                               SCRATCH(t, k * k + 5 * k, double), &objective, &n_iter);
}

static void run_submatrix(trial_t *t, early_t *e)
{
    operator_t A = e->q->A;
    spca_int k = e->kind ? 1 : A.p, room = A.symmetric_form ? 2 * A.p + A.t : A.m * k + A.p, *index;
    index = SCRATCH(t, k, spca_int);
    for (spca_int a = 0; a < k; a++) index[a] = a;
    if (e->q->storage == ROWS && !A.symmetric_form && A.t == 0 && !A.row_weight && e->kind)
        A.screen = SPCA(screen_of)(t, e->q, 1, 1), A.cache = e->q->A.cache;

    e->status =
        SPCA(submatrix)(&A, k, index, stop_at, &e->stop, A.p, WORK(t, room), WORK(t, k * k));
}

static run_t *const SOLVERS[] = {run_power,       run_gpower,   run_pmd,
                                 run_pmd_two_way, run_scotlass, run_submatrix};

static void run_direct(trial_t *t, early_t *e)
{
    spca_int p = e->p, k = 1 + p / 3, n_iter;
    real *x = WORK(t, p), value;
    for (spca_int j = 0; j < p; j++) x[j] = (real)(1 + j % 4);
    e->status = e->kind ? SPCA(tpower_data)(e->r, p, e->X, p, 1, NULL, NULL, k, 0, 9, 0, stop_at,
                                            &e->stop, x, WORK(t, 3 * p + e->r + 2 * k),
                                            SCRATCH(t, p + k, spca_int), &value, &n_iter)
                        : SPCA(tpower_covariance)(p, e->X, p, k, 0, 9, 0, stop_at, &e->stop, x,
                                                  WORK(t, 4 * p + 2 * k),
                                                  SCRATCH(t, p + k, spca_int), &value, &n_iter);
}

static void run_orthomax(trial_t *t, early_t *e)
{
    spca_int n_iter, work = SPCA(orthomax_work)(e->p, e->r);
    e->status = SPCA(orthomax)(e->p, e->r, e->kind & 1, e->most, e->tol, NULL, stop_at, &e->stop,
                               SPCA(copy_of)(t, e->p * e->r, e->X), SCRATCH(t, work, double),
                               SCRATCH(t, e->r * e->r, double), &n_iter);
}

static void run_l1_sweeps(trial_t *t, early_t *e)
{
    spca_int n_iter = 0, r = e->r;
    double *R = zeros(t, r * r);
    for (spca_int a = 0; a < r; a++) R[a * r + a] = 1;
    e->status =
        SPCA(l1_sweeps)(e->p, r, 5, 0, stop_at, &e->stop, SPCA(copy_of)(t, e->p * r, e->X),
                        SCRATCH(t, 3 * e->p, double), SCRATCH(t, r + r * r, spca_int), R, &n_iter);
}

static void run_bordered(trial_t *t, early_t *e)
{
    spca_int p = e->p, k = 2;
    spca_int *candidate = SCRATCH(t, p, spca_int);
    for (spca_int j = 0; j < p; j++) candidate[j] = j;
    e->status = SPCA(bordered_eigenvalues)(
        p, k, k, 0, p, candidate, e->X, e->w + 6, e->w, e->w + 2, e->w + 6, NULL, NULL, 0, 0,
        stop_at, &e->stop, SCRATCH(t, p + 64 * 3 * k + 3 * k, double), SCRATCH(t, p, double));
}

static void run_exchange(trial_t *t, early_t *e)
{
    spca_int p = e->p, k = 2, leaving[2] = {1, 0}, row[2] = {0, 1}, first, entering;
    spca_int *candidate = SCRATCH(t, p, spca_int);
    double value;
    for (spca_int j = 0; j < p; j++) candidate[j] = j;
    e->status = SPCA(exchange)(p, k, k, leaving, p, candidate, e->X, row, e->w + 6, e->w, e->w + 2,
                               2.5 + (double)e->kind, 1e-9, 1e-12, stop_at, &e->stop,
                               SCRATCH(t, k * (k + 1) + 64 * (2 * k + 3), double),
                               SCRATCH(t, p, spca_int), &first, &entering, &value);
}

static void run_distances(trial_t *t, early_t *e)
{
    spca_int n = e->p, b = e->r;
    double *D = zeros(t, n * (n - 1) / 2 + b);
    e->status = e->kind == 2
                    ? SPCA(absolute_products)(n, b, e->X, e->X, backwards, stop_at, &e->stop,
                                              WORK(t, n * (b + SPCA_LANES)), D)
                    : SPCA(add_distances)(n, b, e->X, e->X, e->kind, NULL, stop_at, &e->stop, D);
}

static void run_symmetry(trial_t *t, early_t *e)
{
    double largest, asymmetry, excess;
    (void)t;
    e->status = SPCA(symmetry)(e->p, e->X, e->p, stop_at, &e->stop, &largest, &asymmetry, &excess);
}

static run_t *const OTHERS[] = {run_direct,   run_orthomax,  run_l1_sweeps, run_bordered,
                                run_exchange, run_distances, run_symmetry};

void SPCA(check_early)(trial_t *t)
{
    problem_t q;
    early_t e = {.q = &q};
    spca_int p = between(t, 3, 20);
    double *w;
    real *G;
    SPCA(problem_of)(t, &q, chance(t, 60) ? TAMED | DEFLATED : TAMED);
    for (size_t i = 0; i < sizeof SOLVERS / sizeof *SOLVERS; i++)
        for (e.kind = 0; e.kind < 2; e.kind++) each_query(t, SOLVERS[i], &e);
    G = SPCA(copy_of)(t, (p + 1) * p, SPCA(numbers)(t, PLAIN, (p + 1) * p));
    w = zeros(t, 6 + p);
    w[0] = 2, w[1] = 1, w[2] = w[5] = 0.8, w[3] = 0.6, w[4] = -0.6;
    for (spca_int b = 0; b < p; b++) {
        w[6 + b] = 3;
        for (spca_int a = 0; a < b; a++) G[b + a * p] = G[a + b * p] /= (real)p;
        G[b + b * p] = 1;
    }
    e = (early_t){.p = p, .r = 3, .X = G, .w = w, .most = 9};
    for (size_t i = 0; i < sizeof OTHERS / sizeof *OTHERS; i++)
        for (e.kind = 0; e.kind < 3; e.kind++) each_query(t, OTHERS[i], &e);
}

/* ---- long inputs ----------------------------------------------------------------------------- */

enum { LINES = 300001, WIDE = 3 };

static void run_statistics(trial_t *t, early_t *e)
{
    double *out = SCRATCH(t, 4 * e->r, double);
    e->status = SPCA(dense_statistics)(e->p, e->r, e->X, e->kind ? e->r : e->p, e->kind, 1, 0,
                                       stop_at, &e->stop, out, out + e->r, out + 2 * e->r,
                                       out + 3 * e->r, NULL, NULL, NULL, NULL);
}

static void run_compressed(trial_t *t, early_t *e)
{
    const operator_t *A = &e->q->A;
    real *W = WORK(t, A->m * WIDE), *v = WORK(t, WIDE);
    double *out = SCRATCH(t, 5 * WIDE, double);
    spca_int index[WIDE] = {0, 1, 2};
    v[0] = v[1] = v[2] = 1;
    if (e->kind == 0)
        e->status = SPCA(compressed_statistics)(A->n, A->p, A->data, A->indptr, A->indices, 0, 1,
                                                NULL, stop_at, &e->stop, out, out + WIDE,
                                                out + 2 * WIDE, out + 3 * WIDE, out + 4 * WIDE);
    else if (e->kind == 1)
        e->status = A->columns(A, WIDE, index, stop_at, &e->stop, v, W);
    else
        e->status = A->forward(A, (vector_t){WIDE, NULL, v}, stop_at, &e->stop, WORK(t, WIDE), W);
    for (spca_int i = 0; e->status == SPCA_OK && e->kind && i < A->m; i++)
        if (W[i] != (i % WIDE == 0 || e->kind == 2)) CHECK(t, 0);
}

void SPCA(check_lengths)(trial_t *t)
{
    problem_t q;
    early_t e = {.q = &q, .seldom = 1}; /* parts are tiny, and here there are many */
    int fill;
    int32_t *indptr = input(t, LINES + 1, sizeof *indptr, &fill);
    int32_t *indices = input(t, LINES, sizeof *indices, &fill);
    real *data = input(t, LINES * 16, sizeof *data, &fill);
    for (int32_t i = 0; fill && i <= LINES; i++) indptr[i] = i;
    for (int32_t i = 0; fill && i < LINES; i++) indices[i] = i % WIDE;
    for (spca_int i = 0; fill && i < LINES * 16; i++) data[i] = 1;
    memset(&q, 0, sizeof q);
    q.A = (operator_t){.n = LINES,
                       .m = LINES,
                       .p = WIDE,
                       .row_major = 1,
                       .data = data,
                       .indptr = indptr,
                       .indices = indices,
                       .range = 1,
                       .factor = 1};
    SPCA(use_compressed)(&q.A);
    for (e.kind = 0; e.kind < 3; e.kind++) each_query(t, run_compressed, &e);
    e = (early_t){.p = LINES, .r = 16, .X = data};
    for (e.kind = 0; e.kind < 2; e.kind++) each_query(t, run_statistics, &e);
}

/* ---- many rows to be rotated ------------------------------------------------------------------
 */

/* Rows in simple structure but for a turn of the large ones by 30 degrees in two columns, and of
 * the others by 45 in two more, where the criterion of these is least. */
static real *saddle(trial_t *t, spca_int p)
{
    real *Y = WORK(t, 4 * p);
    for (spca_int i = 0; i < 4 * p; i++) Y[i] = 0;
    for (spca_int i = 0; i < p; i++) {
        spca_int first = i < p / 10 ? 0 : 2;
        double angle = first ? 0.7853981633974483 : 0.5235987755982988;
        if (i % 2) angle += 1.5707963267948966;
        Y[first * p + i] = (real)((first ? 1 : 10) * cos(angle));
        Y[(first + 1) * p + i] = (real)((first ? 1 : 10) * sin(angle));
    }
    return Y;
}

void SPCA(check_rows)(trial_t *t)
{
    static const double odd[] = {(double)NAN, HUGE_VAL, 0};
    early_t e = {.p = 4096 + below(t, 300), .r = between(t, 2, 4)};
    real *Y = SPCA(copy_of)(t, e.p * e.r, SPCA(numbers)(t, PLAIN, e.p * e.r));
    e.X = Y;
    for (e.kind = 0; e.kind < 4; e.kind++) {
        e.tol = e.kind < 2 ? 0 : 1e-6;
        e.most = e.kind & 2 ? 1 : 30;
        each_query(t, run_orthomax, &e);
    }
    e.kind = 0;
    for (int i = 0; i < 36; i++) { /* ended before or after what a tolerance asks for */
        e.most = 1 + i / 3;
        e.tol = i % 3 == 0 ? 0 : i % 3 == 1 ? 1e-6 : 1e-2;
        e.stop = (stop_t){0, -1};
        run_orthomax(t, &e);
        CHECK(t, e.status >= 0);
    }
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        Y[e.p / 2] = (real)odd[i];
        e.stop = (stop_t){0, -1};
        run_orthomax(t, &e);
        CHECK(t, (e.status < 0) == (i < 2));
    }
    for (spca_int i = 0; i < e.p * e.r; i++) Y[i] *= SINGLE ? (real)1e-40 : (real)1e-310;
    run_orthomax(t, &e);
    CHECK(t, e.status >= 0);
    e.r = 4;
    e.X = saddle(t, e.p);
    each_query(t, run_orthomax, &e);
    Y = SPCA(copy_of)(t, e.p * e.r, SPCA(numbers)(t, PLAIN, e.p * e.r));
    for (spca_int i = 0; i < e.p * e.r; i++) /* columns that single precision hardly sees */
        Y[i] *= i / e.p < 2 ? 1 : (real)0.01;
    e.X = Y;
    e.tol = 0;
    each_query(t, run_orthomax, &e);
    CHECK(t, SPCA(orthomax_work)(e.p, e.p / 70) == 1);
    e = (early_t){
        .p = 70000, .r = 2, .most = 9, .stop = {0, -1}}; /* every second tile is looked at first */
    Y = WORK(t, e.p * e.r);
    for (spca_int i = 0; i < e.p * e.r; i++) Y[i] = i % e.p / SPCA_TILE % 2 ? (real)1e9 : 1;
    e.X = Y;
    run_orthomax(t, &e);
    CHECK(t, e.status >= 0);
}

/* ---- corners -----------------------------------------------------------------------------------
 */

/* Candidates to a support of three: leading entries that are zero or all of a border, subnormal
 * numbers, and none that may surpass the best. */
static void bordering(trial_t *t)
{
    enum { K = 3, P = 65 };
    static const double pole[K] = {20, 19, 10};
    double *W = zeros(t, K * K), value[P], diagonal[P], norm[P];
    real *C = WORK(t, K * P);
    spca_int candidate[P];
    for (spca_int l = 0; l < K; l++) W[l * K + l] = 1;
    for (spca_int j = 0; j < P; j++) candidate[j] = j;
    for (int style = 0; style < 4; style++) {
        double scale = style == 1 ? 0x1p-1060 : 1;
        double poles[K];
        for (spca_int i = 0; i < K * P; i++)
            C[i] = (real)(i < P ? style == 2 ? 3 : 0 : sqrt(0.5 + 0.1 * (double)(i / P)) * scale);
        for (spca_int l = 0; l < K; l++) poles[l] = style == 1 ? 0 : pole[l];
        for (spca_int j = 0; j < P; j++) {
            diagonal[j] = style == 1 ? 0 : style == 2 && j == P - 1 ? -1e6 : 19;
            norm[j] = 0;
            for (spca_int i = 0; i < K; i++) norm[j] += (double)C[i * P + j] * (double)C[i * P + j];
        }
        CHECK(t, SPCA(bordered_eigenvalues)(P, K, K, 0, P, candidate, C, diagonal, poles, W,
                                            style == 2 ? norm : NULL, NULL, NULL, 0, 0, NULL, NULL,
                                            SCRATCH(t, P + 64 * 3 * K + 3 * K, double),
                                            value) == SPCA_OK);
        for (spca_int j = 0; j < P; j++) {
            double G[(K + 1) * (K + 1)] = {0}, values[K + 1], vectors[(K + 1) * (K + 1)];
            for (spca_int l = 0; l < K; l++) {
                G[l * (K + 2)] = poles[l];
                G[l + K * (K + 1)] = G[K + l * (K + 1)] = (double)C[l * P + j];
            }
            G[K * (K + 2)] = diagonal[j];
            CHECK(t, jacobi(K + 1, G, values, vectors));
            CHECK(t, value[j] <= -DBL_MAX
                         ? style == 2 && j == P - 1
                         : fabs(value[j] - values[K]) <= 1e-12 * fabs(values[K]) + DBL_MIN);
        }
    }
}

/* What does not fit into the range of numbers, or is not a number. */
static void out_of_range(trial_t *t)
{
    const real huge = REAL_MAX, nan = (real)NAN;
    real Y[] = {huge, huge, huge, huge}, Z[] = {1, nan, 1, 1}, value, vector[2];
    real G[] = {1, nan, nan, 1}, unit[] = {1, 0, 0, 1}, x[] = {1, 1}, work[64];
    spca_int wide[28];
    double R[] = {1, 0, 0, 1}, dwork[6];
    spca_int iwork[6], n_iter = 0;
    CHECK(t,
          SPCA(l1_sweeps)(2, 2, 5, 0, NULL, NULL, Y, dwork, iwork, R, &n_iter) == SPCA_NONFINITE);
    CHECK(t, SPCA(planar_sweeps)(2, 2, 1, 5, 0, NULL, NULL, Z, R, &n_iter) == SPCA_NONFINITE);
    CHECK(t, SPCA(leading_eigenvector)(2, G, work, &value, vector) == SPCA_NONFINITE);
    CHECK(t, SPCA(explained_covariance)(2, unit, 2, 1, Y, work, &value) == SPCA_OK &&
                 NEAR(value, 1, 1)); /* of any unit vector, whatever the norm of the loading */
    CHECK(t, SPCA(explained_covariance)(2, unit, 2, 1, Z, work, &value) == SPCA_NONFINITE);
    x[0] = x[1] = 0;
    CHECK(t, SPCA(refit_covariance)(2, unit, 2, x, work, wide, &value) == SPCA_ZERO_VECTOR);
}

/* Starts that need no iteration, have no image or are not numbers. */
static void starts(trial_t *t)
{
    enum { P = 4, K = 2 };
    real X[P * P] = {0}, value[P], work[4 * P], u[P], objective, quadratic;
    spca_int index[P], iwork[P], nnz, n_iter;
    operator_t A = {
        .n = P, .p = P, .m = P, .row_major = 1, .data = X, .ld = P, .range = 1, .factor = 1};
    SPCA(use_dense)(&A);
    for (spca_int i = 1; i < P; i++) X[i * (P + 1)] = 1; /* the first column is zero */
#define START(count, x)                                                                            \
    for (nnz = 0; nnz < (count); nnz++) {                                                          \
        index[nnz] = nnz;                                                                          \
        value[nnz] = (real)(x);                                                                    \
    }
    START(P, nnz)
    CHECK(t, SPCA(truncated_power)(&A, K, 0, 0, 0, NULL, NULL, &nnz, index, value, work, iwork,
                                   &objective, &n_iter) == SPCA_NOT_CONVERGED);
    CHECK(t, nnz == K && index[0] == 2 && index[1] == 3 && NEAR(value[1], 3 / sqrt(13), 1));
    for (int l0 = 0; l0 < 2; l0++) {
        START(1, 1)
        CHECK(t, SPCA(gpower)(&A, l0, 1, 9, 0, NULL, NULL, &nnz, index, value, work, iwork,
                              &objective, &quadratic, &n_iter) == SPCA_ZERO_VECTOR);
    }
    START(P, nnz % 2 ? (real)NAN : 1)
    CHECK(t, SPCA(pmd)(&A, 1.2, 0, 0, 0, NULL, NULL, &nnz, index, value, work, iwork, &objective,
                       &n_iter) == SPCA_NONFINITE);
    START(P, nnz % 2 ? (real)NAN : 1)
    CHECK(t, SPCA(pmd_two_way)(&A, 1.2, 1.2, 0, 0, 0, NULL, NULL, &nnz, index, value, work, iwork,
                               u, &objective, &n_iter) == SPCA_NONFINITE);
    START(P, -1)
    CHECK(t, SPCA(pmd)(&A, 1.2, 1, 0, 0, NULL, NULL, &nnz, index, value, work, iwork, &objective,
                       &n_iter) == SPCA_ZERO_VECTOR);
    START(1, 1)
    CHECK(t, SPCA(pmd_two_way)(&A, 1.2, 1.2, 0, 9, 0, NULL, NULL, &nnz, index, value, work, iwork,
                               u, &objective, &n_iter) == SPCA_ZERO_VECTOR);
    START(P, -1)
    CHECK(t, SPCA(pmd_two_way)(&A, 1.2, 1.2, 1, 9, 0, NULL, NULL, &nnz, index, value, work, iwork,
                               u, &objective, &n_iter) == SPCA_ZERO_VECTOR);
    X[P + 1] = REAL_MAX;
    X[P + 2] = REAL_MAX;
    START(P, 1)
    CHECK(t, SPCA(pmd_two_way)(&A, 1.2, 1.2, 0, 9, 0, NULL, NULL, &nnz, index, value, work, iwork,
                               u, &objective, &n_iter) == SPCA_NONFINITE);
#undef START
}

/* Steps of the dual whose matrix is singular, and bounds at which magnitudes tie. */
static void duals(trial_t *t)
{
    enum { P = 6, T = 2 };
    real Q[T * P], a[P], work[3 * P], w[P], v[P] = {(real)NAN, 1, 1, 1, 1, 1}, objective;
    double mu[T], dwork[T * T + 5 * T];
    spca_int n_iter;
    for (int trial = 0; trial < 300; trial++) {
        double c = sqrt((double)between(t, 1, P)), angle = (double)below(t, 1000) / 100;
        if (chance(t, 60)) c *= 1 - ldexp(1, -(int)between(t, 4, SINGLE ? 22 : 50));
        for (spca_int i = 0; i < T * P; i++) Q[i] = 0;
        for (spca_int l = 0; l < T; l++) {
            Q[l * P + 2 * l] = (real)cos(angle);
            Q[l * P + 2 * l + 1] = (real)sin(angle);
        }
        for (spca_int i = 0; i < P; i++)
            a[i] = chance(t, 50) ? (real)between(t, -2, 2)
                                 : (real)number(PLAIN, scramble(&t->state), SINGLE);
        mu[0] = mu[1] = 0;
        if (SPCA(orthogonal_l1_threshold)(P, T, a, Q, fmax(c, 1), NULL, NULL, mu, work, dwork, w) ==
            SPCA_OK)
            for (spca_int l = 0; l < T; l++)
                CHECK(t, fabs((double)strands_dot(P, w, Q + l * P)) <= 1e-3);
    }
    a[0] = (real)1e300;
    a[1] = (real)1e299;
    mu[0] = 0;
    Q[0] = (real)0.6;
    Q[1] = (real)0.8;
    if (!SINGLE)
        CHECK(t, SPCA(orthogonal_l1_threshold)(2, 1, a, Q, 1, NULL, NULL, mu, work, dwork, w) ==
                     SPCA_NONFINITE);
    operator_t A = {.p = P};
    CHECK(t, SPCA(scotlass)(&A, 0, NULL, 2, 0, 0, NULL, NULL, v, SCRATCH(t, 5 * P, real), dwork,
                            &objective, &n_iter) == SPCA_NONFINITE);
}

void SPCA(check_corners)(trial_t *t)
{
    bordering(t);
    out_of_range(t);
    starts(t);
    duals(t);
}
