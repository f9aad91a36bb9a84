/* check_solvers.c - one component: what comes out is feasible, its objective is its own, no better
 * than the best there is and no worse than the start; the same with a screen; and wherever it is
 * stopped or a product fails, it says so. */
#include "core.h"

typedef enum { POWER, GPOWER_L1, GPOWER_L0, PMD, TWO_WAY, SCOTLASS, SOLVERS } solver_t;

typedef struct {
    solver_t solver;
    spca_int k, max_iter, t;
    int nonnegative;
    double bound, sample_bound;
    real gamma, tol;
    const real *Q;
    vector_t start;
} task_t;

typedef struct {
    spca_int nnz, n_iter, *index;
    real *value, objective, quadratic, *u;
} result_t;

static spca_status run(trial_t *t, problem_t *q, const task_t *task, result_t *r)
{
    operator_t *A = &q->A;
    spca_stop stop = q->stops.at >= 0 ? stop_at : NULL;
    void *ctx = &q->stops;
    spca_int p = A->p, m = A->m, room = 2 * p + m + A->t, nnz = task->start.nnz;
    spca_int k = task->k, most = task->solver == POWER ? (nnz > k ? nnz : k) : p;
    spca_int *iwork = SCRATCH(t, task->solver == POWER ? k : p, spca_int);
    const real tol = task->tol;
    r->index = SCRATCH(t, most, spca_int);
    r->value = WORK(t, most);
    r->nnz = nnz;
    r->u = WORK(t, m);
    r->objective = r->quadratic = 0;
    r->n_iter = -1;
    for (spca_int a = 0; a < nnz; a++) {
        r->index[a] = task->start.index ? task->start.index[a] : a;
        r->value[a] = task->start.value[a];
    }
    switch (task->solver) {
    case POWER:
        return SPCA(truncated_power)(A, k, task->nonnegative, task->max_iter, tol, stop, ctx,
                                     &r->nnz, r->index, r->value, WORK(t, room + 2 * k), iwork,
                                     &r->objective, &r->n_iter);
    case GPOWER_L1:
    case GPOWER_L0:
        return SPCA(gpower)(A, task->solver == GPOWER_L0, task->gamma, task->max_iter, tol, stop,
                            ctx, &r->nnz, r->index, r->value, WORK(t, room + p), iwork,
                            &r->objective, &r->quadratic, &r->n_iter);
    case PMD:
        return SPCA(pmd)(A, task->bound, task->nonnegative, task->max_iter, tol, stop, ctx, &r->nnz,
                         r->index, r->value, WORK(t, room + p), iwork, &r->objective, &r->n_iter);
    case TWO_WAY:
        return SPCA(pmd_two_way)(A, task->bound, task->sample_bound, task->nonnegative,
                                 task->max_iter, tol, stop, ctx, &r->nnz, r->index, r->value,
                                 WORK(t, p + m + (p > m + A->t ? p : m + A->t)), iwork, r->u,
                                 &r->objective, &r->n_iter);
    default:
        for (spca_int j = 0; j < p; j++) r->value[j] = 0;
        for (spca_int a = 0; a < nnz; a++)
            r->value[task->start.index ? task->start.index[a] : a] = task->start.value[a];
        for (spca_int j = 0; j < p; j++) r->index[j] = j;
        r->nnz = p;
        return SPCA(scotlass)(A, task->t, task->Q, task->bound, task->max_iter, tol, stop, ctx,
                              r->value, WORK(t, 2 * p + (3 * p > m + A->t ? 3 * p : m + A->t)),
                              SCRATCH(t, task->t * task->t + 5 * task->t, double), &r->objective,
                              &r->n_iter);
    }
}

/* count orthonormal columns of length p: unit vectors of different variables, or of pairs. */
static const real *orthonormal(trial_t *t, spca_int p, spca_int count)
{
    int fill;
    real *Q = input(t, p * count, sizeof *Q, &fill);
    int paired = 2 * count <= p && chance(t, 70);
    double angle = (double)below(t, 100) / 16;
    for (spca_int a = 0; fill && a < count; a++)
        for (spca_int j = 0; j < p; j++)
            Q[j + a * p] = (real)(!paired          ? j == a
                                  : j == 2 * a     ? cos(angle)
                                  : j == 2 * a + 1 ? sin(angle)
                                                   : 0);
    return Q;
}

static task_t task_of(trial_t *t, const problem_t *q)
{
    spca_int p = q->A.p, m = q->A.m;
    task_t task = {.solver = (solver_t)below(t, SOLVERS), .k = between(t, 1, p), .tol = (real)1e-4};
    if (task.solver == TWO_WAY && q->A.deflation == SPCA_HOTELLING) task.solver = PMD;
    if (task.solver == TWO_WAY && q->A.symmetric_form) task.solver = PMD;
    task.max_iter = chance(t, 20) ? 0 : between(t, 1, 60);
    task.nonnegative =
        (task.solver == POWER || task.solver == PMD || task.solver == TWO_WAY) && chance(t, 30);
    task.bound = 1 + (double)below(t, 101) / 100 * (sqrt((double)p) - 1);
    task.sample_bound = 1 + (double)below(t, 101) / 100 * (sqrt((double)m) - 1);
    task.gamma =
        (real)((double)below(t, 60) / 100 * (task.solver == GPOWER_L0 ? q->size : sqrt(q->size)));
    task.t = task.solver == SCOTLASS ? below(t, p < 4 ? p : 4) : 0;
    task.Q = orthonormal(t, p, task.t);
    task.start = SPCA(sparse)(t, PLAIN, p, between(t, 1, p), chance(t, 30));
    return task;
}

static double square(double x)
{
    return x * x;
}

static void check_result(trial_t *t, const problem_t *q, const task_t *task, const result_t *r)
{
    const operator_t *A = &q->A;
    spca_int p = A->p;
    double norm = 0, sum = 0, quadratic = 0, root, size = q->size * (double)p, *x = zeros(t, p);
    int l1 = task->solver >= PMD;
    CHECK(t,
          r->nnz >= 1 && r->n_iter >= 0 && r->n_iter <= task->max_iter && isfinite(r->objective));
    CHECK(t, task->solver == GPOWER_L1 || task->solver == GPOWER_L0 || l1 || r->nnz <= task->k);
    for (spca_int a = 0; a < r->nnz; a++) {
        CHECK(t, r->index[a] >= 0 && r->index[a] < p && (a == 0 || r->index[a] > r->index[a - 1]));
        CHECK(t, !task->nonnegative || task->max_iter == 0 || r->n_iter == 0 || r->value[a] >= 0);
        norm = hypot(norm, (double)r->value[a]);
        sum += fabs((double)r->value[a]);
        CHECK(t, (task->solver != PMD && task->solver != TWO_WAY) || r->value[a] != 0);
        x[r->index[a]] = (double)r->value[a];
    }
    CHECK(t, NEAR(norm, 1, 1));
    if (l1 && (r->n_iter > 0 || task->max_iter == 0))
        CHECK(t, sum <= task->bound * (1 + 1e3 * EPSILON));
    for (spca_int l = 0; task->solver == SCOTLASS && l < task->t; l++) {
        double product = 0;
        for (spca_int j = 0; j < p; j++) product += x[j] * (double)task->Q[j + l * p];
        if (r->n_iter > 0) CHECK(t, fabs(product) <= 1e2 * pow(EPSILON, 0.75));
    }
    if (!q->exact) return;
    for (spca_int b = 0; b < p; b++)
        for (spca_int a = 0; a < p; a++)
            quadratic += x[a] * (q->dense[a + b * p] - (a == b ? (double)A->shift : 0)) * x[b];
    root = sqrt(fabs(quadratic));
    switch (task->solver) {
    case GPOWER_L1: /* the root of what is near 0 tells its rounding */
        CHECK(t, NEAR(r->quadratic, quadratic, size));
        quadratic = square(copysign(fabs(root), quadratic) - (double)task->gamma * sum -
                           (double)r->objective);
        CHECK(t, quadratic <= 1e4 * EPSILON * size || NEAR(sqrt(quadratic), 0, size / root));
        return;
    case GPOWER_L0:
        CHECK(t, NEAR(r->objective, quadratic - (double)task->gamma * (double)r->nnz, size * 4));
        return;
    case TWO_WAY:
        sum = norm = 0;
        for (spca_int i = 0; i < A->m; i++) {
            sum += fabs((double)r->u[i]);
            norm = hypot(norm, (double)r->u[i]);
        }
        CHECK(t, NEAR(norm, 1, 1) && sum <= task->sample_bound * (1 + 1e3 * EPSILON));
        if (quadratic > 1e-3 * size) /* u'F v <= ||F v|| */
            CHECK(t, square((double)r->objective) * (double)A->factor <=
                         quadratic * (1 + 1e4 * EPSILON * size / quadratic));
        return;
    default:
        CHECK(t, NEAR(r->objective, quadratic, size));
    }
    if (p > 9 || r->nnz > 4) return;
    spca_int support[4] = {0, 1, 2, 3};
    double best = -HUGE_VAL;
    do best = fmax(best, largest_eigenvalue(t, p, q->dense, NULL, r->nnz, support));
    while (next_support(p, r->nnz, support));
    CHECK(t, (double)r->objective + (double)A->shift <= best + 1e3 * EPSILON * size);
}

void SPCA(check_solvers)(trial_t *t)
{
    problem_t q;
    SPCA(problem_of)(t, &q,
                     (chance(t, 70) ? TAMED | SMALL_ONE : 0) | (chance(t, 60) ? DEFLATED : 0));
    task_t task = task_of(t, &q), none = task;
    result_t r, first;
    spca_status status = run(t, &q, &task, &r);
    digest_int(t, r.n_iter);
    SPCA(digest)(t, status, r.nnz, r.value);
    SPCA(digest)(t, status, 1, &r.objective);
    CHECK(t, status == SPCA_OK || status == SPCA_NOT_CONVERGED || status == SPCA_ZERO_VECTOR ||
                 (status == SPCA_NONFINITE && q.style >= SPREAD));
    if (status < 0) return;
    if (q.style < SPREAD) check_result(t, &q, &task, &r);
    /* of a semidefinite operator it never descends, once it is feasible */
    if (!q.exact || q.covariance || q.A.deflation == SPCA_HOTELLING || q.A.span_weight != 0 ||
        r.n_iter < 2)
        return;
    none.max_iter = 1;
    if (task.solver != GPOWER_L1 && run(t, &q, &none, &first) >= 0)
        CHECK(t, r.objective >= first.objective - (real)(1e3 * EPSILON * q.size * (double)q.A.p));
}

void SPCA(check_screened_solvers)(trial_t *t)
{
    problem_t q;
    SPCA(problem_of)(t, &q, SCREENED | (chance(t, 60) ? DEFLATED : 0));
    task_t task = task_of(t, &q);
    result_t plain, screened;
    spca_status status = run(t, &q, &task, &plain);
    q.A.screen = SPCA(screen_of)(t, &q, chance(t, 60), 1);
    CHECK(t, run(t, &q, &task, &screened) == status);
    if (status < 0) return;
    SPCA(digest)(t, status, plain.nnz, screened.value);
    CHECK(t, plain.nnz == screened.nnz && plain.objective == screened.objective);
    CHECK(t, plain.n_iter == screened.n_iter && plain.quadratic == screened.quadratic);
    for (spca_int a = 0; a < plain.nnz; a++)
        CHECK(t, plain.index[a] == screened.index[a] && plain.value[a] == screened.value[a]);
}

void SPCA(check_stopped_solvers)(trial_t *t)
{
    problem_t q;
    SPCA(problem_of)(t, &q, TAMED | SMALL_ONE | DEFLATED);
    task_t task = task_of(t, &q);
    result_t r;
    if (task.max_iter > 4) task.max_iter = 4;
    for (int failing = 0; failing < 2; failing++)
        for (spca_int at = 0;; at++) {
            stop_t *s = failing ? &q.fails : &q.stops;
            q.fails = q.stops = (stop_t){0, -1};
            s->at = at;
            spca_status status = run(t, &q, &task, &r);
            digest_int(t, status);
            if (s->asked <= at) {
                CHECK(t, status != SPCA_STOPPED && status != SPCA_PRODUCT_FAILED);
                break;
            }
            CHECK(t, status == (failing ? SPCA_PRODUCT_FAILED : SPCA_STOPPED));
        }
}

/* min over levels of c level + ||S(b, level)||, which is the largest w'b over the set. */
static double support_function(spca_int p, const double *b, double c)
{
    double low = 0, high = 0;
    for (spca_int j = 0; j < p; j++) high = fmax(high, fabs(b[j]));
    for (int i = 0; i < 200; i++) {
        double at = (low + high) / 2, sum = 0, norm = 0;
        for (spca_int j = 0; j < p; j++) {
            double over = fmax(fabs(b[j]) - at, 0);
            sum += over;
            norm = hypot(norm, over);
        }
        if (sum > c * norm)
            low = at;
        else
            high = at;
    }
    double norm = 0;
    for (spca_int j = 0; j < p; j++) norm = hypot(norm, fmax(fabs(b[j]) - high, 0));
    return c * high + norm;
}

/* ||a - QQ'a||/||a||, or 0 for a = 0. */
static double outside(trial_t *t, spca_int p, spca_int count, const real *a, const real *Q)
{
    double *rest = zeros(t, p), size = 0, norm = 0;
    for (spca_int j = 0; j < p; j++) {
        rest[j] = (double)a[j];
        size = hypot(size, rest[j]);
    }
    for (spca_int l = 0; l < count; l++) {
        double along = 0;
        for (spca_int j = 0; j < p; j++) along += (double)Q[j + l * p] * (double)a[j];
        for (spca_int j = 0; j < p; j++) rest[j] -= along * (double)Q[j + l * p];
    }
    for (spca_int j = 0; j < p; j++) norm = hypot(norm, rest[j]);
    return size > 0 ? norm / size : 0;
}

/* Of ones, orthogonal to some of the variables: where all are at the level at first. */
static void threshold_of_ones(trial_t *t)
{
    spca_int p = between(t, 3, 24), count = between(t, 1, min_int(p - 2, 3));
    /* not near a root of an integer, where the maximizer is nearly a corner */
    double bound = sqrt((double)between(t, 1, p) + (double)between(t, 1, 9) / 10), product = 0;
    double *mu = zeros(t, count);
    real *a = WORK(t, p), *w = WORK(t, p), *Q = WORK(t, p * count);
    for (spca_int i = 0; i < p * count; i++) Q[i] = i % p == i / p;
    for (spca_int j = 0; j < p; j++) a[j] = chance(t, 50) ? 1 : -1;
    CHECK(t, SPCA(orthogonal_l1_threshold)(p, count, a, Q, bound, NULL, NULL, mu, WORK(t, 3 * p),
                                           SCRATCH(t, count * count + 4 * count, double),
                                           w) == SPCA_OK);
    for (spca_int j = 0; j < p; j++) product += (double)a[j] * (double)w[j];
    CHECK(t, fabs(product - fmin(bound, sqrt((double)(p - count)))) <= 1e2 * pow(EPSILON, 0.75));
}

void SPCA(check_orthogonal_threshold)(trial_t *t)
{
    threshold_of_ones(t);
    spca_int p = between(t, 1, 24), count = below(t, p < 4 ? p : 4), asked;
    style_t style = SPCA(style)(t, 1);
    const real *a = SPCA(numbers)(t, style, p), *Q = orthonormal(t, p, count);
    double bound = 1 + (double)below(t, 101) / 100 * (sqrt((double)p) - 1), size = 0, sum = 0,
           norm = 0;
    double product = 0, *b = zeros(t, p), *mu = SCRATCH(t, count, double);
    real *w = WORK(t, p);
    int free = chance(t, 25); /* of the bound: then w is a projection */
    if (free) bound = sqrt((double)p);
    for (spca_int l = 0; l < count; l++) mu[l] = 0;
    spca_status status =
        SPCA(orthogonal_l1_threshold)(p, count, a, Q, bound, NULL, NULL, mu, WORK(t, 3 * p),
                                      SCRATCH(t, count * count + 4 * count, double), w);
    SPCA(digest)(t, status, p, w);
    CHECK(t, status == SPCA_OK || status == SPCA_ZERO_VECTOR);
    /* the rounding of a - Qmu, a share of ||a||, may hide no more than a short projection */
    CHECK(t, status == SPCA_OK || !free || outside(t, p, count, a, Q) <= 2 * pow(EPSILON, 0.25));
    for (asked = 0;; asked++) {
        stop_t stop = {0, asked};
        double *again = SCRATCH(t, count, double);
        for (spca_int l = 0; l < count; l++) again[l] = 0;
        spca_status stopped = SPCA(orthogonal_l1_threshold)(
            p, count, a, Q, bound, stop_at, &stop, again, WORK(t, 3 * p),
            SCRATCH(t, count * count + 4 * count, double), WORK(t, p));
        CHECK(t, stopped == (stop.asked > asked ? SPCA_STOPPED : status));
        if (stop.asked <= asked || asked > 6) break;
    }
    if (free && status == SPCA_OK) { /* Newton's steps where there is no kink */
        stop_t steps = {0, -1};
        double *again = zeros(t, count);
        CHECK(t, SPCA(orthogonal_l1_threshold)(
                     p, count, a, Q, bound, stop_at, &steps, again, WORK(t, 3 * p),
                     SCRATCH(t, count * count + 4 * count, double), WORK(t, p)) == SPCA_OK);
        CHECK(t, steps.asked <= 20);
    }
    if (status < 0) return;
    for (spca_int j = 0; j < p; j++) {
        size = fmax(size, fabs((double)a[j]));
        sum += fabs((double)w[j]);
        norm = hypot(norm, (double)w[j]);
        b[j] = (double)a[j];
        product += (double)a[j] * (double)w[j];
    }
    CHECK(t, NEAR(norm, 1, 1) && sum <= bound * (1 + 1e3 * EPSILON));
    for (spca_int l = 0; l < count; l++) {
        double along = 0;
        for (spca_int j = 0; j < p; j++) {
            along += (double)w[j] * (double)Q[j + l * p];
            b[j] -= mu[l] * (double)Q[j + l * p];
        }
        CHECK(t, fabs(along) <= 2 * pow(EPSILON, 0.75));
        size = fmax(size, fabs(mu[l]));
    }
    CHECK(t,
          product >= support_function(p, b, bound) - 1e2 * pow(EPSILON, 0.75) * size * (double)p);
}

/* Where one direction n is orthogonal to Q, the answer is n or -n if its l1 norm is within the
 * bound, and there is none else.  Q and n are the columns of I - 2uu'. */
void SPCA(check_only_direction)(trial_t *t)
{
    spca_int p = between(t, 2, 6), count = p - 1;
    const real *x = SPCA(numbers)(t, PLAIN, p), *a = SPCA(numbers)(t, PLAIN, p);
    real *Q = WORK(t, p * p), *n = Q + p * count, *w = WORK(t, p), value[2] = {0, 1}, objective = 9;
    double *mu = zeros(t, count), norm = 0, sum = 0, along = 0, size = 0;
    double bound = 1 + (double)below(t, 101) / 100 * (sqrt((double)p) - 1);
    spca_int n_iter = 0;
    for (spca_int j = 0; j < p; j++) norm += square((double)x[j]);
    if (norm < 1e-2) return;
    for (spca_int b = 0; b < p * p; b++)
        Q[b] = (real)((b % p == b / p) - 2 * (double)x[b % p] * (double)x[b / p] / norm);
    for (spca_int j = 0; j < p; j++) {
        sum += fabs((double)n[j]);
        along += (double)n[j] * (double)a[j];
        size = hypot(size, (double)a[j]);
    }
    if (fabs(along) <= 1e-2 * size || fabs(sum - bound) <= 1e-2) return; /* of no sure sign */
    for (spca_int l = 0; l < count; l++) mu[l] = (double)strands_dot(p, Q + l * p, a);
    spca_status status =
        SPCA(orthogonal_l1_threshold)(p, count, a, Q, bound, NULL, NULL, mu, WORK(t, 3 * p),
                                      SCRATCH(t, count * count + 4 * count, double), w);
    SPCA(digest)(t, status, p, w);
    CHECK(t, status == (sum <= bound ? SPCA_OK : SPCA_ZERO_VECTOR));
    for (spca_int j = 0; status == SPCA_OK && j < p; j++)
        CHECK(t, fabs((double)w[j] - copysign((double)n[j], along * (double)n[j])) <=
                     1e3 * pow(EPSILON, 0.75));
    /* From e_2 to e_1, the one direction orthogonal to Q = e_2, whose product e_2 is in its span:
     * there is no next step, and e_1 stands. */
    const real A0[] = {0, 1, 1, -1};
    operator_t A = {.n = 2,
                    .p = 2,
                    .m = 2,
                    .symmetric_form = 1,
                    .row_major = 1,
                    .data = A0,
                    .ld = 2,
                    .range = 1,
                    .factor = 1};
    SPCA(use_dense)(&A);
    CHECK(t,
          SPCA(scotlass)(&A, 1, (const real[]){0, 1}, sqrt(2), 9, 0, NULL, NULL, value, WORK(t, 10),
                         SCRATCH(t, 6, double), &objective, &n_iter) == SPCA_NOT_CONVERGED);
    CHECK(t, value[0] == 1 && value[1] == 0 && objective == 0 && n_iter == 1);
}

/* Of data in another unit, by a power of two, the same steps with the same bits. */
static void in_another_unit(trial_t *t, const problem_t *q, task_t task)
{
    problem_t other = *q;
    result_t plain, same;
    real root = q->A.symmetric_form ? 16 : 256; /* A is range^2 or range^4 */
    spca_status status;
    if (q->storage == CALLBACK) return;
    task.tol = chance(t, 50) ? 0 : task.tol;
    status = run(t, &other, &task, &plain);
    other.A.range *= 16;
    task.gamma *= task.solver == GPOWER_L0 ? root * root : root;
    CHECK(t, run(t, &other, &task, &same) == status);
    if (status < 0) return;
    CHECK(t, plain.n_iter == same.n_iter && plain.nnz == same.nnz);
    for (spca_int a = 0; a < plain.nnz; a++)
        CHECK(t, plain.index[a] == same.index[a] && plain.value[a] == same.value[a]);
}

/* Of a semidefinite operator every iteration ends, and begins nowhere else than where it ended: it
 * goes on for gains alone, or ten steps in vain.  It does not end at its first step from a start
 * that is not feasible. */
void SPCA(check_at_rest)(trial_t *t)
{
    problem_t q;
    result_t r, again;
    SPCA(problem_of)(t, &q, TAMED | SMALL_ONE);
    task_t task = task_of(t, &q);
    double sum = 0, norm = 0, least = 1;
    in_another_unit(t, &q, task);
    if (q.covariance || !q.exact) return;
    task.max_iter = 5000;
    task.tol = 0;
    task.t = 0;
    spca_status status = run(t, &q, &task, &r);
    digest_int(t, status);
    if (status < 0) return;
    CHECK(t, status == SPCA_OK);
    for (spca_int a = 0; a < task.start.nnz; a++) {
        sum += fabs((double)task.start.value[a]);
        norm = hypot(norm, (double)task.start.value[a]);
    }
    if (task.solver >= PMD && sum > 1.01 * norm * task.bound) CHECK(t, r.n_iter >= 2);
    task.start = (vector_t){r.nnz, r.index, r.value};
    CHECK(t, run(t, &q, &task, &again) == SPCA_OK);
    CHECK(t, again.n_iter <= 12 || again.objective > r.objective * (1 + 32 * REAL_EPSILON));
    task.max_iter = again.n_iter; /* as many steps as it takes are enough */
    CHECK(t, run(t, &q, &task, &again) == SPCA_OK);
    /* no bound is active and any gain is small: where it began and one step */
    task.k = q.A.p;
    task.gamma = 0;
    task.bound = sqrt((double)q.A.p);
    task.sample_bound = sqrt((double)q.A.m);
    task.tol = 1;
    task.max_iter = 5000;
    if (q.style != PLAIN || task.nonnegative || run(t, &q, &task, &r) < 0) return;
    /* but for an entry of rounding errors alone, which now is there and now is 0 */
    for (spca_int a = 0; a < r.nnz; a++) least = fmin(least, fabs((double)r.value[a]));
    CHECK(t, r.n_iter <= 2 || (task.solver != POWER && (r.nnz < q.A.p || least <= 1e3 * EPSILON)));
}

static spca_status counted_forward(const operator_t *A, vector_t v, spca_stop stop, void *ctx,
                                   real *work, real *f)
{
    operator_t plain = *A;
    SPCA(use_dense)(&plain);
    stop_at(A->owner);
    return plain.forward(&plain, v, stop, ctx, work, f);
}

/* One query of the 12 largest entries tells a level below them, and one of those above that
 * level all: a third is never asked, although the level may be rounded up. */
void SPCA(check_queries)(trial_t *t)
{
    enum { P = 60, FIRST = 12 };
    real *A0 = SCRATCH(t, P * P, real), value[P] = {1}, objective;
    spca_int index[P] = {0}, iwork[P], nnz = 1, n_iter;
    stop_t asked = {0, -1};
    for (spca_int a = 0; a < P * P; a++) A0[a] = 0;
    A0[0] = 1;
    for (spca_int j = 1; j < FIRST; j++)
        A0[j] = A0[j * P] = (real)(0.06 + 1e-3 * number(PLAIN, scramble(&t->state), SINGLE));
    operator_t A = {.forward = counted_forward,
                    .n = P,
                    .p = P,
                    .m = P,
                    .symmetric_form = 1,
                    .row_major = 1,
                    .data = A0,
                    .ld = P,
                    .range = 1,
                    .factor = 1,
                    .owner = &asked};
    CHECK(t, SPCA(pmd)(&A, 1.5, 0, 0, 0, NULL, NULL, &nnz, index, value, SCRATCH(t, 4 * P, real),
                       iwork, &objective, &n_iter) == SPCA_NOT_CONVERGED);
    CHECK(t, asked.asked == 2);
}
