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
    uint8_t *pool = SCRATCH(t, p * nodes * (room + 1), uint8_t);
    real *excess = WORK(t, nodes * room);
    for (spca_int j = 0; j < p; j++) size = fmax(size, A[j + j * p]);
    level = size * (1 + (double)below(t, 100) / 100 * (double)(k - 1));
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
            if (b == 1 && given < k - 1 && chance(t, 30)) *state = 2;
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
    double *b = zeros(t, p), *r = zeros(t, p);
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
    for (spca_int j = 0; j < p; j++) {
        r[j] = (double)c[j] - (double)ridge * b[j];
        for (spca_int i = 0; i < p; i++) r[j] -= dense[j + i * p] * b[i];
        if (b[j] != 0)
            CHECK(t, NEAR(r[j], copysign((double)level, b[j]), size * 1e2));
        else
            CHECK(t, fabs(r[j]) <= (double)level + 1e5 * EPSILON * size);
    }
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
