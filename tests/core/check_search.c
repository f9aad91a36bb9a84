/* check_search.c - searches for supports against enumeration, and convex problems against their
 * conditions of optimality. */
#include "core.h"

/* A symmetric p x p matrix in real, definite or not, and in double. */
static real *symmetric(trial_t *t, spca_int p, style_t style, int definite, double *dense)
{
    const real *x = SPCA(numbers)(t, style, p * p);
    real *A = WORK(t, p * p);
    for (spca_int b = 0; b < p; b++)
        for (spca_int a = 0; a <= b; a++) {
            double sum = (double)x[a + b * p];
            for (spca_int i = 0; definite && i < p; i++)
                sum += i == 0 ? (double)x[a * p] * (double)x[b * p] - sum
                              : (double)x[a * p + i] * (double)x[b * p + i];
            A[a + b * p] = A[b + a * p] = (real)sum;
        }
    for (spca_int a = 0; a < p * p; a++) dense[a] = (double)A[a];
    return A;
}

/* W and pole (descending) of the pencil (A, B) on a support: W'BW = I, W'AW = diag(pole). */
static void pencil(trial_t *t, spca_int p, const double *A, const double *B, spca_int k,
                   const spca_int *index, double *pole, double *W)
{
    double *G = zeros(t, k * k), *V = zeros(t, k * k), *values = zeros(t, k),
           *root = zeros(t, k * k);
    for (spca_int a = 0; a < k * k; a++) G[a] = B[index[a % k] + index[a / k] * p];
    CHECK(t, jacobi(k, G, values, V)); /* root = B^-1/2 */
    for (spca_int a = 0; a < k * k; a++)
        for (spca_int l = 0; l < k; l++)
            root[a] += V[a % k + l * k] * V[a / k + l * k] / sqrt(values[l]);
    for (spca_int a = 0; a < k * k; a++) {
        G[a] = 0;
        for (spca_int i = 0; i < k; i++)
            for (spca_int l = 0; l < k; l++)
                G[a] += root[a % k + i * k] * A[index[i] + index[l] * p] * root[l + a / k * k];
    }
    for (spca_int b = 0; b < k; b++)
        for (spca_int a = 0; a < b; a++) G[b + a * k] = G[a + b * k];
    CHECK(t, jacobi(k, G, values, V));
    for (spca_int l = 0; l < k; l++) {
        pole[l] = values[k - 1 - l];
        for (spca_int i = 0; i < k; i++) {
            W[i + l * k] = 0;
            for (spca_int m = 0; m < k; m++)
                W[i + l * k] += root[i + m * k] * V[m + (k - 1 - l) * k];
        }
    }
}

void SPCA(check_greedy)(trial_t *t)
{
    spca_int p = between(t, 2, chance(t, 15) ? 90 : 14), k = between(t, 1, p - 1 < 8 ? p - 1 : 8),
             w = k;
    spca_int directions = chance(t, 50) ? 0 : between(t, 1, 3), count = 0,
             *larger = SCRATCH(t, k + 1, spca_int);
    style_t style = SPCA(style)(t, 1);
    double *A = zeros(t, p * p), *B = zeros(t, p * p), size = 0,
           strength = (double)below(t, 30) / 10;
    double *diagonal = SCRATCH(t, p, double), *pole = SCRATCH(t, w, double),
           *W = SCRATCH(t, k * w, double);
    double *norm = SCRATCH(t, p, double), *Q = SCRATCH(t, directions * p, double);
    double *R = SCRATCH(t, w * directions, double), best = -HUGE_VAL;
    const spca_int *support = SPCA(subset)(t, p, k);
    spca_int *candidate = SCRATCH(t, p - k, spca_int);
    real *C = WORK(t, k * p);
    int pruned = directions == 0 && chance(t, 50);
    symmetric(t, p, style, chance(t, 70), A);
    for (spca_int a = 0; a < directions * p;
         a++) /* orthogonal: rows of a Hadamard matrix, or nearly */
        Q[a] = (__builtin_popcountll((unsigned long long)((a / p + 1) & (a % p))) & 1 ? -1 : 1) /
               sqrt((double)p);
    for (spca_int a = 0; a < p * p; a++) {
        B[a] = a % p == a / p;
        for (spca_int l = 0; l < directions; l++)
            B[a] += strength * Q[a % p + l * p] * Q[a / p + l * p];
        size = fmax(size, fabs(A[a]));
    }
    pencil(t, p, A, B, k, support, pole, W);
    for (spca_int j = 0, a = 0; j < p; j++) {
        diagonal[j] = A[j + j * p];
        norm[j] = 0;
        for (spca_int i = 0; i < k; i++) {
            C[i * p + j] = (real)A[support[i] + j * p];
            norm[j] += A[support[i] + j * p] * A[support[i] + j * p];
        }
        if (a < k && support[a] == j)
            a++;
        else if (chance(t, 90))
            candidate[count++] = j;
    }
    for (spca_int l = 0; l < w; l++)
        for (spca_int m = 0; m < directions; m++) {
            R[l + m * w] = 0;
            for (spca_int i = 0; i < k; i++) R[l + m * w] += W[i + l * k] * Q[support[i] + m * p];
        }
    double *value = SCRATCH(t, count, double), *deleted = SCRATCH(t, k, double);
    spca_int room = p + 64 * (k + directions + 2 * w) + 3 * w;
    CHECK(t, SPCA(bordered_eigenvalues)(p, k, w, directions, count, candidate, C, diagonal, pole, W,
                                        pruned ? norm : NULL, Q, R, strength, 1e-10, NULL, NULL,
                                        SCRATCH(t, room, double), value) == SPCA_OK);
    digest(t, value, (size_t)count * sizeof *value);
    for (int exact = 1; exact >= 0; exact--)
        for (spca_int a = 0; a < count; a++) {
            double want;
            memcpy(larger, support, (size_t)k * sizeof *larger);
            larger[k] = candidate[a];
            want = largest_eigenvalue(t, p, A, B, k + 1, larger);
            if (exact)
                best = fmax(best, want);
            else if (pruned && isinf(value[a]))
                CHECK(t, value[a] < 0 && want <= best + 1e-9 * size);
            else
                CHECK(t, fabs(value[a] - want) <=
                             (SINGLE ? 1e-4 : 1e-8) * size * (double)(k + 1) * (1 + strength));
        }
    CHECK(t, SPCA(deleted_eigenvalues)(k, w, pole, W, NULL, NULL, SCRATCH(t, 2 * w, double),
                                       deleted) == SPCA_OK);
    digest(t, deleted, (size_t)k * sizeof *deleted);
    for (spca_int i = 0; i < k; i++) {
        if (k == 1) {
            CHECK(t, isinf(deleted[i]) && deleted[i] < 0);
            continue;
        }
        for (spca_int a = 0, b = 0; a < k; a++)
            if (a != i) larger[b++] = support[a];
        CHECK(t, fabs(deleted[i] - largest_eigenvalue(t, p, A, B, k - 1, larger)) <=
                     1e-8 * size * (double)k * (1 + strength));
    }
    for (spca_int at = 0;; at++) {
        stop_t stop = {0, at};
        spca_status status = SPCA(bordered_eigenvalues)(
            p, k, w, directions, count, candidate, C, diagonal, pole, W, pruned ? norm : NULL, Q, R,
            strength, 1e-10, stop_at, &stop, SCRATCH(t, room, double), value);
        CHECK(t, status == (stop.asked > at ? SPCA_STOPPED : SPCA_OK));
        if (stop.asked <= at) break;
    }
}

/* Whether the support is one of the node. */
static int belongs(spca_int p, spca_int k, const uint8_t *node, const spca_int *support)
{
    spca_int at = 0;
    for (spca_int i = 0; i < p; i++) {
        int held = at < k && support[at] == i;
        at += held;
        if (held ? node[i] == 0 : node[i] == 2) return 0;
    }
    return 1;
}

/* -(the least eigenvalue) of N on the support. */
static double indefinite(trial_t *t, spca_int p, const double *N, spca_int k,
                         const spca_int *support)
{
    double *M = zeros(t, p * p);
    for (spca_int a = 0; a < p * p; a++) M[a] = -N[a];
    return largest_eigenvalue(t, p, M, NULL, k, support);
}

void SPCA(check_branch)(trial_t *t)
{
    spca_int p = between(t, 1, 7), k = between(t, 1, p), room = between(t, 2, 5), nodes = 2,
             given = 0;
    double *A = zeros(t, p * p), *N = zeros(t, p * p), level, size = 1;
    real *n = WORK(t, p * p);
    symmetric(t, p, SPCA(style)(t, 1), 1, A);
    spca_int *which = SCRATCH(t, nodes, spca_int), *empty = SCRATCH(t, nodes * room, spca_int);
    spca_int *born = SCRATCH(t, nodes, spca_int), *support = SCRATCH(t, k, spca_int);
    int most = chance(t, 50) ? 30 : 80; /* percent */
    uint8_t *pool = SCRATCH(t, p * nodes * (room + 1), uint8_t);
    real *excess = WORK(t, nodes * room);
    for (spca_int j = 0; j < p; j++) size = fmax(size, A[j + j * p]);
    for (spca_int a = 0; a < k; a++) support[a] = a;
    level = 0;
    do
        level =
            fmax(level, largest_eigenvalue(t, p, A, NULL, k, support)); /* the least that is safe */
    while (next_support(p, k, support));
    level *= (double)between(t, 70, 105) / 100;
    for (spca_int a = 0; a < p * p; a++) {
        N[a] = (a % p == a / p ? level : 0) - A[a];
        n[a] = (real)N[a];
        N[a] = (double)n[a];
    }
    for (spca_int b = 0; b < nodes; b++) {
        which[b] = b * (room + 1);
        for (spca_int c = 0; c < room; c++) empty[b * room + c] = b * (room + 1) + 1 + c;
        given = 0;
        for (spca_int i = 0; i < p; i++) {
            uint8_t *state = pool + which[b] * p + i;
            *state = 1;
            if (b == 1 && given < k - 1 && chance(t, most)) *state = 2;
            if (b == 1 && *state == 1 && chance(t, 15)) *state = 0;
            given += *state == 2;
        }
    }
    spca_int work = SPCA(branch_work)(p, k);
    spca_status status = SPCA(branch)(p, k, n, nodes, which, room, empty, NULL, NULL, pool,
                                      WORK(t, work), SCRATCH(t, p + k, spca_int), born, excess);
    CHECK(t, status == SPCA_OK);
    digest(t, born, (size_t)nodes * sizeof *born);
    for (spca_int b = 0; b < nodes; b++) {
        CHECK(t, born[b] >= 0 && born[b] <= room);
        for (spca_int a = 0; a < k; a++) support[a] = a;
        do {
            double worst;
            int found = 0;
            if (!belongs(p, k, pool + which[b] * p, support)) continue;
            worst = indefinite(t, p, N, k, support);
            for (spca_int c = 0; c < born[b]; c++) {
                double over = (double)excess[b * room + c];
                if (!belongs(p, k, pool + empty[b * room + c] * p, support)) continue;
                found = 1;
                if (over >= 0) CHECK(t, worst <= over + 1e3 * EPSILON * size * (double)(k * k));
            }
            CHECK(t, found || worst <= 1e3 * EPSILON * size * (double)(k * k));
        } while (next_support(p, k, support));
    }
    for (spca_int at = 0; at < 30; at++) {
        stop_t stop = {0, at};
        uint8_t *again = SCRATCH(t, p * nodes * (room + 1), uint8_t);
        memcpy(again, pool, (size_t)(p * nodes * (room + 1)));
        status = SPCA(branch)(p, k, n, nodes, which, room, empty, stop_at, &stop, again,
                              WORK(t, work), SCRATCH(t, p + k, spca_int), born, excess);
        CHECK(t, (status == SPCA_STOPPED) == (stop.asked > at));
        if (stop.asked <= at) break;
    }
}

/* r = c - (G + ridge I) b is level sign(b_j) where b_j is not 0 to rounding, and within it
 * elsewhere. */
static void check_optimal(trial_t *t, spca_int p, const double *G, const real *c, double ridge,
                          const double *b, double level, double size)
{
    for (spca_int j = 0; j < p; j++) {
        double r = (double)c[j] - ridge * b[j];
        for (spca_int i = 0; i < p; i++) r -= G[j + i * p] * b[i];
        if (fabs(b[j]) > 1e3 * EPSILON * size) /* else it has only just joined */
            CHECK(t, NEAR(r, copysign(level, b[j]), size * 1e2));
        else
            CHECK(t, fabs(r) <= level + 1e5 * EPSILON * size);
    }
}

void SPCA(check_elastic_net)(trial_t *t)
{
    spca_int p = between(t, 1, 12), limit = between(t, 1, p), guess = 0, count = -1, support = 0;
    double *dense = zeros(t, p * p), size = 1;
    style_t style = SPCA(style)(t, 1);
    real *G = symmetric(t, p, style, 1, dense), ridge = (real)below(t, 20) / 10, level = -1;
    const real *c = SPCA(numbers)(t, style == REPEATED ? PLAIN : style, p);
    real floor = (real)below(t, 40) / 40, least = (real)(1e3 * EPSILON), *value = WORK(t, limit);
    spca_int *index = SCRATCH(t, limit, spca_int);
    if (chance(t, 30)) {
        guess = between(t, 1, limit);
        const spca_int *some = SPCA(subset)(t, p, guess);
        for (spca_int a = 0; a < guess; a++) {
            index[a] = some[a];
            value[a] = c[some[a]];
        }
    }
    spca_status status = SPCA(elastic_net)(p, limit, G, c, ridge, floor, least, guess, NULL, NULL,
                                           index, value, WORK(t, limit * limit + 3 * limit + 2 * p),
                                           SCRATCH(t, limit + p, spca_int), &count, &level);
    digest_int(t, count);
    SPCA(digest)(t, status, count > 0 ? count : 0, value);
    CHECK(t, status == SPCA_OK || status == SPCA_NOT_CONVERGED);
    CHECK(t, count >= 0 && count <= limit && level >= floor);
    double *b = zeros(t, p);
    for (spca_int a = 0; a < count; a++) {
        CHECK(t, index[a] >= 0 && index[a] < p && b[index[a]] == 0);
        b[index[a]] = (double)value[a];
        size = fmax(size, fabs((double)value[a]));
        support += value[a] != 0;
    }
    for (spca_int a = 0; a < p * p; a++) size = fmax(size, fabs(dense[a]));
    size *= size;
    if (style != PLAIN || ridge < (real)0.1) return; /* definite: one solution, well determined */
    CHECK(t, status == SPCA_OK);
    check_optimal(t, p, dense, c, (double)ridge, b, (double)level, size);
    CHECK(t, level == floor || support <= limit);
    for (spca_int at = 0;; at++) {
        stop_t stop = {0, at};
        status = SPCA(elastic_net)(p, limit, G, c, ridge, floor, least, 0, stop_at, &stop, index,
                                   value, WORK(t, limit * limit + 3 * limit + 2 * p),
                                   SCRATCH(t, limit + p, spca_int), &count, &level);
        CHECK(t, status == (stop.asked > at ? SPCA_STOPPED : SPCA_OK));
        if (stop.asked <= at) break;
    }
}

void SPCA(check_dspca)(trial_t *t)
{
    spca_int p = between(t, 1, 7), k = between(t, 1, p), n_iter = -1,
             *support = SCRATCH(t, k, spca_int);
    int constrained = chance(t, 50);
    double *A = zeros(t, p * p), size = 0, trace = 0, off = 0, product = 0, *G = zeros(t, p * p),
           best = 0;
    double *values = zeros(t, p), *vectors = zeros(t, p * p), slack;
    real *a = symmetric(t, p, SPCA(style)(t, 1), chance(t, 70), A), limit, primal = 0, dual = 0;
    real *M = WORK(t, p * p), tol = (real)1e-3;
    for (spca_int i = 0; i < p * p; i++) size = fmax(size, fabs(A[i]));
    if (chance(t, 95) || !(a[0] > 0)) a[0] = (real)(A[0] = fabs(A[0]) + 1); /* one is positive */
    size += 1;
    limit = constrained ? (real)(k - 1) : (real)(size * (double)below(t, 50) / 50);
    spca_status status = SPCA(dspca)(p, a, constrained, limit, tol, between(t, 0, 200), NULL, NULL,
                                     WORK(t, 4 * p * p + 28 * p), SCRATCH(t, 12 * p, blas_int), M,
                                     &primal, &dual, &n_iter);
    SPCA(digest)(t, status, p * p, M);
    CHECK(t, status == SPCA_OK || status == SPCA_NOT_CONVERGED);
    slack = 1e3 * EPSILON * size * (double)p;
    for (spca_int j = 0; j < p; j++)
        for (spca_int i = 0; i < p; i++) {
            double m = (double)M[i + j * p];
            CHECK(t, M[i + j * p] == M[j + i * p]);
            G[i + j * p] = m;
            product += m * A[i + j * p];
            if (i == j) trace += m;
            if (i != j) off += fabs(m);
        }
    CHECK(t, jacobi(p, G, values, vectors) && values[0] >= -1e3 * EPSILON && NEAR(trace, 1, p));
    CHECK(t, !constrained || off <= (double)limit * (1 + 1e3 * EPSILON) + 1e-300);
    CHECK(t,
          fabs((double)primal - (constrained ? product : product - (double)limit * off)) <= slack);
    CHECK(t, (double)primal <= (double)dual + slack);
    CHECK(t,
          status != SPCA_OK || (double)dual - (double)primal <= (double)tol * (double)dual + slack);
    for (spca_int i = 0; i < k; i++) support[i] = i;
    do best = fmax(best, largest_eigenvalue(t, p, A, NULL, k, support)); /* of k variables */
    while (next_support(p, k, support));
    if (constrained) CHECK(t, (double)dual >= best - slack);
    for (spca_int at = 0;; at++) {
        stop_t stop = {0, at};
        status = SPCA(dspca)(p, a, constrained, limit, tol, 6, stop_at, &stop,
                             WORK(t, 4 * p * p + 28 * p), SCRATCH(t, 12 * p, blas_int), M, &primal,
                             &dual, &n_iter);
        CHECK(t, (status == SPCA_STOPPED) == (stop.asked > at));
        if (stop.asked <= at) break;
    }
}

/* What a guess of the support may be, and a variable that stays at the level. */
typedef struct {
    spca_int p, limit, count;
    const real *G, *c;
    real ridge, floor, level;
    spca_int *index;
    real *value;
    stop_t stop;
} path_t;

static void follow(trial_t *t, path_t *e, spca_int guess)
{
    e->stop = (stop_t){0, -1};
    CHECK(t, SPCA(elastic_net)(e->p, e->limit, e->G, e->c, e->ridge, e->floor,
                               (real)(1e3 * EPSILON), guess, stop_at, &e->stop, e->index, e->value,
                               WORK(t, e->limit * e->limit + 3 * e->limit + 2 * e->p),
                               SCRATCH(t, e->limit + e->p, spca_int), &e->count,
                               &e->level) == SPCA_OK);
    digest_int(t, e->count);
    SPCA(digest)(t, SPCA_OK, e->count, e->value);
}

void SPCA(check_guesses)(trial_t *t)
{
    spca_int p = between(t, 2, 10), first;
    double *dense = zeros(t, p * p), *b = zeros(t, p), share = (double)below(t, 90) / 100;
    real *G = symmetric(t, p, PLAIN, 1, dense),
         *c = SPCA(copy_of)(t, p, SPCA(numbers)(t, PLAIN, p));
    path_t e = {.p = p,
                .limit = between(t, 1, p),
                .G = G,
                .c = c,
                .ridge = (real)(0.1 + share),
                .floor = (real)below(t, 40) / 200,
                .index = SCRATCH(t, p, spca_int),
                .value = WORK(t, p)};
    /* The answer, guessed, is taken: no step is made, although the next variable is at the level
     * when `limit` are in. */
    follow(t, &e, 0);
    first = e.count;
    for (spca_int a = 0; a < first; a++)
        if (fabs(e.value[a]) <= (real)(1e4 * EPSILON)) first = 0; /* of no sure sign */
    if (first > 0) {
        real level = e.level;
        follow(t, &e, first);
        CHECK(t, e.stop.asked == 0 && e.count == first && NEAR(e.level, level, 10));
    }
    /* x_j = w_j x_0 + what is orthogonal to it and the others, w_j >= 3, and c_j >= w_j c_0: beside
     * a support of x_0 alone the others are beyond every level. */
    for (spca_int j = 0; j < p; j++) {
        real sign = chance(t, 50) ? 1 : -1;
        b[j] = j == 0 ? 1 : (double)between(t, 3, 6) * (double)sign;
        c[j] = (real)(b[j] * (j == 0 ? 2 : 2 + (double)below(t, 10) / 8));
    }
    for (spca_int a = 0; a < p * p; a++) {
        dense[a] = b[a % p] * b[a / p] + (a % p == a / p && a > 0 ? 1 : 0);
        G[a] = (real)dense[a];
    }
    e.ridge = (real)share;
    e.floor = (real)(2 * share);
    e.index[0] = 0;
    e.value[0] = 1;
    follow(t, &e, 1);
    for (spca_int j = 0; j < p; j++) b[j] = 0;
    for (spca_int a = 0; a < e.count; a++) b[e.index[a]] = (double)e.value[a];
    check_optimal(t, p, dense, c, (double)e.ridge, b, (double)e.level, 1e4);
    /* x_j = x_0 + what is orthogonal to x_0, and c_j = c_0: r_j = r_0 at every level, so that none
     * joins, and the path of one variable goes down to the floor. */
    real size = (real)(1 + fabs(number(PLAIN, scramble(&t->state), SINGLE)));
    for (spca_int a = 0; a < p * p; a++) G[a] = a % p == a / p && a > 0 ? 3 * size : size;
    for (spca_int j = 0; j < p; j++) c[j] = j > 0 ? c[0] : 1 + (real)below(t, 1 << 20) / (1 << 20);
    e.limit = 1;
    e.ridge = 0;
    e.floor = c[0] * (real)(0.05 + share);
    follow(t, &e, 0);
    CHECK(t, e.count == 1 && e.index[0] == 0 && e.level == e.floor);
    CHECK(t, NEAR(e.value[0], ((double)c[0] - (double)e.floor) / (double)size, 1));
}

/* A matrix that is indefinite by less than a unit of rounding, exactly: N = I - h (J - I) with
 * h (p - 1) > 1 has the eigenvalue 1 - h (p - 1) < 0.  It may not be ruled out. */
void SPCA(check_singular)(trial_t *t)
{
    enum { ROOM = 3 };
    spca_int p = between(t, 2, 40), which = ROOM, empty[ROOM] = {0, 1, 2}, born = -1;
    real h = 1 / (real)(p - 1), unit = ldexp((real)1, 2 * (int)between(t, -3, 3)), excess[ROOM];
    real *N = WORK(t, p * p), *sign = WORK(t, p);
    uint8_t *pool = SCRATCH(t, (ROOM + 1) * p, uint8_t);
    while (!(fma(h, (real)(p - 1), (real)-1) > 0)) h = nextafter(h, (real)2);
    for (spca_int i = 0; i < p; i++) sign[i] = chance(t, 50) ? 1 : -1;
    for (spca_int a = 0; a < p * p; a++)
        N[a] = unit * (a % p == a / p ? 1 : -h * sign[a % p] * sign[a / p]);
    memset(pool + ROOM * p, 1, (size_t)p);
    CHECK(t, SPCA(branch)(p, p, N, 1, &which, ROOM, empty, NULL, NULL, pool,
                          WORK(t, SPCA(branch_work)(p, p)), SCRATCH(t, 2 * p, spca_int), &born,
                          excess) == SPCA_OK);
    digest_int(t, born);
    CHECK(t, born == 1);
}

/* Dual bounds that the optimum attains are above it all the same. */
void SPCA(check_tight_bounds)(trial_t *t)
{
    int bits = SINGLE ? FLT_MANT_DIG : DBL_MANT_DIG;
    spca_int p = between(t, 2, 9), k = between(t, 1, p), most = between(t, 0, 12), n_iter = -1;
    double *dense = zeros(t, p * p), *values = zeros(t, p), *vectors = zeros(t, p * p), top = 0;
    real *A = WORK(t, p * p), primal = 0, dual = 0;
    long double best;
    int kind = (int)below(t, 4);
    /* a, and a level below it, with all digits */
    long double a = 1 + (long double)(scramble(&t->state) >> (64 - bits)) / ldexpl(1, bits - 1) / 2;
    long double level = (long double)(scramble(&t->state) >> (67 - bits)) / ldexpl(1, bits - 1);
    for (spca_int i = 0; i < p * p; i++) A[i] = (real)a;
    a = (long double)A[0];
    level = (long double)(real)level;
    if (kind == 0) /* the relaxation by Y = level off the diagonal: 11'/p attains it */
        best = a + (long double)(p - 1) * (a - level);
    else if (kind == 1) /* constrained by k - 1: 11'/k of k variables attains it */
        best = a * (long double)k;
    else if (kind == 2) { /* the same, nearly all of it off the diagonal */
        most *= 20;
        for (spca_int i = 0; i < p * p; i++) A[i] = i % (p + 1) ? (real)a : (real)0x1p-9;
        best = 0x1p-9L + a * (long double)(k - 1);
    } else if (SINGLE) { /* the largest eigenvalue; in double from others */
        A = symmetric(t, p, PLAIN, 1, dense);
        CHECK(t, jacobi(p, dense, values, vectors));
        best = (long double)(values[p - 1] * (1 - 1e-13));
        level = 0;
    } else { /* xx' of integers */
        for (spca_int i = 0; i < p; i++) {
            vectors[i] = (double)between(t, 1, 99);
            top += vectors[i] * vectors[i];
        }
        for (spca_int i = 0; i < p * p; i++) A[i] = (real)(vectors[i % p] * vectors[i / p]);
        best = (long double)top;
        level = 0;
    }
    CHECK(t, SPCA(dspca)(p, A, kind == 1 || kind == 2,
                         kind == 1 || kind == 2 ? (real)(k - 1) : (real)level, 0, most, NULL, NULL,
                         WORK(t, 4 * p * p + 28 * p), SCRATCH(t, 12 * p, blas_int), WORK(t, p * p),
                         &primal, &dual, &n_iter) >= 0);
    SPCA(digest)(t, SPCA_OK, 1, &dual);
    CHECK(t, (long double)dual >= best);
    if (n_iter == 0 && kind < 3) CHECK(t, NEAR(dual, best, best)); /* and by rounding alone */
    if (kind < 2) { /* where the splitting ends, whatever the first bound was */
        A[0] *= (real)1.5;
        CHECK(t, SPCA(dspca)(p, A, kind == 1, kind == 1 ? (real)(k - 1) : (real)level, (real)1e-3,
                             2000, NULL, NULL, WORK(t, 4 * p * p + 28 * p),
                             SCRATCH(t, 12 * p, blas_int), WORK(t, p * p), &primal, &dual,
                             &n_iter) == SPCA_OK);
    }
}
