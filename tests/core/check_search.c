/* check_search.c - branch and bound against enumeration, and convex problems against their
 * conditions of optimality; of double alone. */
#include "core.h"
#include "solvers/tree.h"

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

/* N of few small numbers; a node is then given most of its variables. */
static void whole_numbers(trial_t *t, spca_int p, double *N)
{
    const double diagonal[] = {1, 1, 2, 0.5}, off[] = {0, 0, 0, 0, 0, 0, 1, -1};
    for (spca_int i = 0; i < p; i++)
        for (spca_int j = 0; j <= i; j++)
            N[i + j * p] = N[j + i * p] = i == j ? diagonal[below(t, 4)] : off[below(t, 8)];
}

/* Of N = I, but for two given variables that are indefinite together, the second beyond the first
 * four: what has both is not ruled out. */
static void linked(trial_t *t)
{
    enum { P = 7, K = 6, ROOM = 3 };
    spca_int first = below(t, 4), which = ROOM, empty[ROOM] = {0, 1, 2}, n_children = 0;
    double *N = WORK(t, P * P), excess[ROOM];
    uint8_t *pool = SCRATCH(t, (ROOM + 1) * P, uint8_t);
    for (spca_int a = 0; a < P * P; a++) N[a] = a % (P + 1) == 0;
    N[4 * (P + 1)] = 0.5;
    N[first * P + 4] = N[4 * P + first] = chance(t, 50) ? 1 : -1;
    for (spca_int j = 0; j < P; j++) pool[ROOM * P + j] = j < K - 1 ? 2 : 1;
    CHECK(t, spca_branch(P, K, N, HUGE_VAL, 1, &which, ROOM, empty, NULL, NULL, pool,
                         WORK(t, spca_branch_work(P, K)), SCRATCH(t, P + K, spca_int), &n_children,
                         excess) == SPCA_OK);
    CHECK(t, n_children > 0);
}

void SPCA(check_branch)(trial_t *t)
{
    int whole = chance(t, 40);
    spca_int p = whole ? between(t, 6, 9) : between(t, 1, 7);
    spca_int k = between(t, whole ? p - 2 : 1, p), room = between(t, 2, 5), nodes = 2, given = 0;
    double *A = zeros(t, p * p), *N = zeros(t, p * p), level, size = 1;
    double *n = WORK(t, p * p);
    SPCA(symmetric)(t, p, SPCA(style)(t, 1), 1, A);
    spca_int *which = SCRATCH(t, nodes, spca_int), *empty = SCRATCH(t, nodes * room, spca_int);
    spca_int *n_children = SCRATCH(t, nodes, spca_int), *support = SCRATCH(t, k, spca_int);
    spca_int *own = SCRATCH(t, p, spca_int);
    int most = whole ? 95 : chance(t, 50) ? 30 : 80; /* percent */
    uint8_t *pool = SCRATCH(t, p * nodes * (room + 1), uint8_t);
    double *excess = WORK(t, nodes * room);
    for (spca_int j = 0; j < p; j++) size = fmax(size, A[j + j * p]);
    for (spca_int a = 0; a < k; a++) support[a] = a;
    level = 0;
    do
        level =
            fmax(level, largest_eigenvalue(t, p, A, NULL, k, support)); /* the least that is safe */
    while (next_support(p, k, support));
    level *= (double)between(t, 70, chance(t, 30) ? 200 : 105) / 100;
    for (spca_int a = 0; a < p * p; a++) {
        N[a] = (a % p == a / p ? level : 0) - A[a];
        n[a] = (double)N[a];
        N[a] = (double)n[a];
    }
    if (whole) {
        whole_numbers(t, p, N);
        memcpy(n, N, (size_t)(p * p) * sizeof *n);
        size = fmax(size, 2);
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
    spca_int work = spca_branch_work(p, k);
    spca_status status =
        spca_branch(p, k, n, HUGE_VAL, nodes, which, room, empty, NULL, NULL, pool, WORK(t, work),
                    SCRATCH(t, p + k, spca_int), n_children, excess);
    CHECK(t, status == SPCA_OK);
    digest(t, n_children, (size_t)nodes * sizeof *n_children);
    for (spca_int b = 0; b < nodes; b++) {
        CHECK(t, n_children[b] >= 0 && n_children[b] <= room);
        given = 0;
        for (spca_int i = 0; i < p; i++)
            if (pool[which[b] * p + i] > 0) own[given++] = i;
        if (given >= k && indefinite(t, p, N, given, own) < -1e-6 * size)
            CHECK(t, n_children[b] == 0); /* N of all that are left is definite */
        for (spca_int a = 0; a < k; a++) support[a] = a;
        do {
            double worst;
            int found = 0;
            if (!belongs(p, k, pool + which[b] * p, support)) continue;
            worst = indefinite(t, p, N, k, support);
            for (spca_int c = 0; c < n_children[b]; c++) {
                double over = (double)excess[b * room + c];
                if (!belongs(p, k, pool + empty[b * room + c] * p, support)) continue;
                found = 1;
                if (over >= 0) CHECK(t, worst <= over + 1e3 * EPSILON * size * (double)(k * k));
            }
            CHECK(t, found || worst <= 1e3 * EPSILON * size * (double)(k * k));
        } while (next_support(p, k, support));
    }
    linked(t);
}

/* r = c - (G + ridge I) b is level sign(b_j) where b_j is not 0 to rounding, and within it
 * elsewhere. */
static void check_optimal(trial_t *t, spca_int p, const double *G, const double *c, double ridge,
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
    double *G = SPCA(symmetric)(t, p, style, 1, dense), ridge = (double)below(t, 20) / 10,
           level = -1;
    const double *c = SPCA(numbers)(t, style == REPEATED ? PLAIN : style, p);
    double floor = (double)below(t, 40) / 40, least = 1e3 * EPSILON, *value = WORK(t, limit);
    spca_int *index = SCRATCH(t, limit, spca_int);
    if (chance(t, 30)) {
        guess = between(t, 1, limit);
        const spca_int *some = SPCA(subset)(t, p, guess);
        for (spca_int a = 0; a < guess; a++) {
            index[a] = some[a];
            value[a] = c[some[a]];
        }
    }
    spca_status status = spca_elastic_net(p, limit, G, c, ridge, floor, least, guess, NULL, NULL,
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
    if (style != PLAIN || ridge < (double)0.1) return; /* definite: one solution, well determined */
    CHECK(t, status == SPCA_OK);
    check_optimal(t, p, dense, c, (double)ridge, b, (double)level, size);
    CHECK(t, level == floor || support <= limit);
}

void SPCA(check_dspca)(trial_t *t)
{
    spca_int p = between(t, 1, 7), k = between(t, 1, p), n_iter = -1,
             *support = SCRATCH(t, k, spca_int);
    int constrained = chance(t, 50);
    double *A = zeros(t, p * p), size = 0, trace = 0, off = 0, product = 0, *G = zeros(t, p * p),
           best = 0;
    double *values = zeros(t, p), *vectors = zeros(t, p * p), slack;
    double *a = SPCA(symmetric)(t, p, SPCA(style)(t, 1), chance(t, 70), A), limit, primal = 0,
           dual = 0;
    double *M = WORK(t, p * p), tol = (double)1e-3;
    for (spca_int i = 0; i < p * p; i++) size = fmax(size, fabs(A[i]));
    if (chance(t, 95) || !(a[0] > 0)) a[0] = (double)(A[0] = fabs(A[0]) + 1); /* one is positive */
    size += 1;
    limit = constrained ? (double)(k - 1) : (double)(size * (double)below(t, 50) / 50);
    spca_status status = spca_dspca(p, a, constrained, limit, tol, between(t, 0, 200), NULL, NULL,
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
    for (spca_int j = 0; j < p; j++) CHECK(t, primal >= A[j + j * p]); /* of one variable alone */
    CHECK(t,
          status != SPCA_OK || (double)dual - (double)primal <= (double)tol * (double)dual + slack);
    for (spca_int i = 0; i < k; i++) support[i] = i;
    do best = fmax(best, largest_eigenvalue(t, p, A, NULL, k, support)); /* of k variables */
    while (next_support(p, k, support));
    if (constrained) CHECK(t, (double)dual >= best - slack);
    if (!constrained || p == 1) return;
    /* the same as units of a variable each */
    double *weight = SCRATCH(t, p * p, double), *diagonal = SCRATCH(t, p, double);
    double *lowest = SCRATCH(t, p * p, double), bound = 0;
    spca_int *unit = SCRATCH(t, p, spca_int);
    size *= (double)p; /* no eigenvalue is larger */
    for (spca_int i = 0; i < p * p; i++) {
        a[i] /= size;
        weight[i] = i % (p + 1) != 0;
    }
    for (spca_int j = 0; j < p; j++) {
        unit[j] = j;
        diagonal[j] = (double)(1 - k);
    }
    status = spca_shaped(p, p, a, unit, weight, diagonal, NULL, 1, 0, 1000, tol, NULL, NULL,
                         WORK(t, 6 * p * p + 28 * p), SCRATCH(t, 12 * p, blas_int), M, lowest,
                         &primal, &bound, &n_iter);
    CHECK(t, status == SPCA_OK || status == SPCA_NOT_CONVERGED);
    CHECK(t, bound * size >= best - slack && bound * size <= (double)dual + 5 * tol * size);
}

/* The relaxation under groups and signs, with a cardinality or a penalty, against vectors that have
 * them: of each set of units its leading eigenvector, or any of the signs. */
void SPCA(check_shaped)(trial_t *t)
{
    spca_int p = between(t, 1, 7), units = between(t, 1, p), K = 0, n_iter = 0;
    spca_int *unit = SCRATCH(t, p, spca_int), *S = SCRATCH(t, p, spca_int);
    double *A = zeros(t, p * p), *m = zeros(t, units), *weight = zeros(t, units * units), *x;
    double *d = zeros(t, p), *M = WORK(t, p * p), *lowest = WORK(t, p * p), *G = zeros(t, p * p);
    double *values = zeros(t, p), *V = zeros(t, p * p), size = 1e-300, cost = 0, trace = 0;
    double primal = 0, dual = 0, tol = 1e-3, product = 0;
    int constrained = chance(t, 50), sized = chance(t, 50);
    int8_t *signs = chance(t, 50) ? SCRATCH(t, p, int8_t) : NULL;
    double penalty = constrained ? 0 : (double)below(t, 50) / 100;
    SPCA(symmetric)(t, p, SPCA(style)(t, 1), chance(t, 70), A);
    for (spca_int a = 0; a < p * p; a++) size = fmax(size, (double)p * fabs(A[a]));
    for (spca_int a = 0; a < p * p; a++) A[a] /= size;
    for (spca_int j = 0; j < p; j++) {
        unit[j] = j < units ? j : below(t, units);
        m[unit[j]] = sized ? m[unit[j]] + 1 : 1;
        if (signs) signs[j] = (int8_t)(below(t, 3) - 1);
    }
    for (spca_int u = 0; u < units; u++) {
        if (chance(t, 15)) m[u] = 0; /* included */
        K += (spca_int)m[u];
    }
    K = between(t, 0, K);
    for (spca_int u = 0; u < units * units; u++)
        weight[u] = u % (units + 1) == 0 ? 0 : sqrt(m[u % units] * m[u / units]);
    for (spca_int j = 0; j < p; j++) d[j] = m[unit[j]] - (constrained ? (double)K : 0);
    spca_status status =
        spca_shaped(p, units, A, unit, weight, d, signs, constrained, penalty, between(t, 0, 200),
                    tol, NULL, NULL, WORK(t, 5 * p * p + 28 * p + units * units),
                    SCRATCH(t, 12 * p, blas_int), M, lowest, &primal, &dual, &n_iter);
    CHECK(t, status == SPCA_OK || status == SPCA_NOT_CONVERGED);
    CHECK(t, status != SPCA_OK || dual - primal <= tol * fabs(dual) + 1e-12);
    for (spca_int u = 0; u < units * units; u++) {
        double square = 0;
        for (spca_int a = 0; a < p * p; a++)
            if (unit[a % p] == u % units && unit[a / p] == u / units) square += M[a] * M[a];
        cost += weight[u] * sqrt(square);
    }
    for (spca_int a = 0; a < p * p; a++) {
        product += A[a] * M[a];
        trace += a % (p + 1) == 0 ? M[a] : 0;
        cost += a % (p + 1) == 0 ? d[a / p] * M[a] : 0;
        CHECK(t, M[a] == M[a % p * p + a / p]);
        G[a] = lowest[a];
    }
    CHECK(t, NEAR(trace, 1, p));
    if (n_iter > 0) CHECK(t, fabs(primal - product + penalty * cost) <= 1e-10);
    CHECK(t, jacobi(p, G, values, V) && values[p - 1] <= dual + 1e-12);
    memcpy(G, A, (size_t)(p * p) * sizeof *G);
    CHECK(t, jacobi(p, G, values, V) && dual <= values[p - 1] + 1e-10);
    x = values;
    for (unsigned of = 1; of < 1U << units; of++) {
        double count = 0, square = 0, form = 0;
        spca_int n = 0;
        for (spca_int u = 0; u < units; u++) count += of >> u & 1 ? m[u] : 0;
        if (constrained && count > (double)K) continue;
        for (spca_int j = 0; j < p; j++) {
            x[j] = of >> unit[j] & 1 ? (double)(below(t, 21) - 10) / 10 : 0;
            if (signs && signs[j] != 0) x[j] = fabs(x[j]) * signs[j];
            square += x[j] * x[j];
            if (of >> unit[j] & 1) S[n++] = j;
        }
        if (constrained && !signs)
            CHECK(t, dual >= largest_eigenvalue(t, p, A, NULL, n, S) - 1e-12);
        if (!(square > 0)) continue;
        for (spca_int a = 0; a < p * p; a++) form += A[a] * x[a % p] * x[a / p] / square;
        for (spca_int u = 0; u < units * units && !constrained; u++) {
            double one = 0, other = 0;
            for (spca_int j = 0; j < p; j++) {
                one += unit[j] == u % units ? x[j] * x[j] / square : 0;
                other += unit[j] == u / units ? x[j] * x[j] / square : 0;
            }
            form -= penalty * weight[u] * sqrt(one * other);
        }
        for (spca_int j = 0; j < p; j++) form -= penalty * d[j] * x[j] * x[j] / square;
        CHECK(t, dual >= form - 1e-12);
    }
}

/* What a guess of the support may be, and a variable that stays at the level. */
typedef struct {
    spca_int p, limit, count;
    const double *G, *c;
    double ridge, floor, level;
    spca_int *index;
    double *value;
    stop_t stop;
} path_t;

static void follow(trial_t *t, path_t *e, spca_int guess)
{
    e->stop = (stop_t){0, -1};
    CHECK(t,
          spca_elastic_net(e->p, e->limit, e->G, e->c, e->ridge, e->floor, 1e3 * EPSILON, guess,
                           stop_at, &e->stop, e->index, e->value,
                           WORK(t, e->limit * e->limit + 3 * e->limit + 2 * e->p),
                           SCRATCH(t, e->limit + e->p, spca_int), &e->count, &e->level) == SPCA_OK);
    digest_int(t, e->count);
    SPCA(digest)(t, SPCA_OK, e->count, e->value);
}

void SPCA(check_guesses)(trial_t *t)
{
    spca_int p = between(t, 2, 10), first;
    double *dense = zeros(t, p * p), *b = zeros(t, p), share = (double)below(t, 90) / 100;
    double *G = SPCA(symmetric)(t, p, PLAIN, 1, dense),
           *c = SPCA(copy_of)(t, p, SPCA(numbers)(t, PLAIN, p));
    path_t e = {.p = p,
                .limit = between(t, 1, p),
                .G = G,
                .c = c,
                .ridge = (double)(0.1 + share),
                .floor = (double)below(t, 40) / 200,
                .index = SCRATCH(t, p, spca_int),
                .value = WORK(t, p)};
    /* The answer, guessed, is taken: no step is made, although the next variable is at the level
     * when `limit` are in. */
    follow(t, &e, 0);
    first = e.count;
    for (spca_int a = 0; a < first; a++)
        if (fabs(e.value[a]) <= (double)(1e4 * EPSILON)) first = 0; /* of no sure sign */
    if (first > 0) {
        double level = e.level;
        follow(t, &e, first);
        CHECK(t, e.stop.asked == 0 && e.count == first && NEAR(e.level, level, 10));
    }
    /* x_j = w_j x_0 + what is orthogonal to it and the others, w_j >= 3, and c_j >= w_j c_0: beside
     * a support of x_0 alone the others are beyond every level. */
    for (spca_int j = 0; j < p; j++) {
        double sign = chance(t, 50) ? 1 : -1;
        b[j] = j == 0 ? 1 : (double)between(t, 3, 6) * (double)sign;
        c[j] = (double)(b[j] * (j == 0 ? 2 : 2 + (double)below(t, 10) / 8));
    }
    for (spca_int a = 0; a < p * p; a++) {
        dense[a] = b[a % p] * b[a / p] + (a % p == a / p && a > 0 ? 1 : 0);
        G[a] = (double)dense[a];
    }
    e.ridge = (double)share;
    e.floor = (double)(2 * share);
    e.index[0] = 0;
    e.value[0] = 1;
    follow(t, &e, 1);
    for (spca_int j = 0; j < p; j++) b[j] = 0;
    for (spca_int a = 0; a < e.count; a++) b[e.index[a]] = (double)e.value[a];
    check_optimal(t, p, dense, c, (double)e.ridge, b, (double)e.level, 1e4);
    /* x_j = x_0 + what is orthogonal to x_0, and c_j = c_0: r_j = r_0 at every level, so that none
     * joins, and the path of one variable goes down to the floor. */
    double size = (1 + fabs(number(PLAIN, scramble(&t->state), 0)));
    for (spca_int a = 0; a < p * p; a++) G[a] = a % p == a / p && a > 0 ? 3 * size : size;
    for (spca_int j = 0; j < p; j++)
        c[j] = j > 0 ? c[0] : 1 + (double)below(t, 1 << 20) / (1 << 20);
    e.limit = 1;
    e.ridge = 0;
    e.floor = c[0] * (double)(0.05 + share);
    follow(t, &e, 0);
    CHECK(t, e.count == 1 && e.index[0] == 0 && e.level == e.floor);
    CHECK(t, NEAR(e.value[0], ((double)c[0] - (double)e.floor) / (double)size, 1));
}

/* A tree from any support, some nodes at a time: no support is above its bound, and in the end none
 * above its value. */
void SPCA(check_tree)(trial_t *t)
{
    spca_int p = between(t, 2, 9), k = between(t, 1, p - 1), whole = 400;
    double *A = zeros(t, p * p), best = -HUGE_VAL, size = 0, near;
    spca_int *support = SCRATCH(t, k, spca_int);
    const spca_int *begin = SPCA(subset)(t, p, k);
    spca_tree tree = {.p = p, .k = k, .most = chance(t, 50) ? whole : between(t, 1, 20)};
    room_t room = {NULL, 0};
    SPCA(symmetric)(t, p, SPCA(style)(t, 1), (int)chance(t, 70), A);
    for (spca_int a = 0; a < p * p; a++) size = fmax(size, fabs(A[a]));
    near = 1e-11 * size;
    for (spca_int a = 0; a < k; a++) support[a] = a;
    do best = fmax(best, largest_eigenvalue(t, p, A, NULL, k, support));
    while (next_support(p, k, support));
    spca_tree_room(&tree, &room);
    room = (room_t){(char *)SCRATCH(t, (spca_int)room.used / 8 + 1, double), 0};
    spca_tree_room(&tree, &room);
    for (spca_int a = 0; a < p * p; a++) tree.N[a] = -A[a];
    for (spca_int j = 0; j < p; j++) tree.diagonal[j] = A[j + j * p];
    spca_tree_begin(&tree);
    spca_tree_offer(&tree, begin, largest_eigenvalue(t, p, A, NULL, k, begin));
    for (spca_int slots = tree.unused + tree.waiting, before = -1; tree.divided > before;) {
        before = tree.divided;
        CHECK(t, spca_tree_divide(&tree, between(t, 1, 3), NULL, NULL) >= 0);
        CHECK(t, spca_tree_upper(&tree) >= best - near && tree.value <= best + near);
        CHECK(t, fabs(largest_eigenvalue(t, p, A, NULL, k, tree.index) - tree.value) <= near);
        CHECK(t, tree.unused + tree.waiting == slots);
        for (spca_int a = 1; a < tree.waiting; a++) /* the first is the largest */
            CHECK(t, tree.heap[a].bound <= tree.heap[0].bound);
    }
    CHECK(t, tree.divided <= tree.most && spca_tree_upper(&tree) >= fmax(best, tree.value));
    CHECK(t, tree.most < whole || (tree.divided < whole && tree.value >= best - near));
}

/* A matrix that is indefinite by less than a unit of rounding, exactly: N = I - h (J - I) with
 * h (p - 1) > 1 has the eigenvalue 1 - h (p - 1) < 0.  It may not be ruled out. */
void SPCA(check_singular)(trial_t *t)
{
    enum { ROOM = 3 };
    spca_int p = between(t, 2, 40), which = ROOM, empty[ROOM] = {0, 1, 2}, n_children = -1;
    double h = 1 / (double)(p - 1), unit = ldexp((double)1, 2 * (int)between(t, -3, 3)),
           excess[ROOM];
    double *N = WORK(t, p * p), *sign = WORK(t, p);
    uint8_t *pool = SCRATCH(t, (ROOM + 1) * p, uint8_t);
    while (!(fma(h, (double)(p - 1), (double)-1) > 0)) h = nextafter(h, (double)2);
    for (spca_int i = 0; i < p; i++) sign[i] = chance(t, 50) ? 1 : -1;
    for (spca_int a = 0; a < p * p; a++)
        N[a] = unit * (a % p == a / p ? 1 : -h * sign[a % p] * sign[a / p]);
    memset(pool + ROOM * p, 1, (size_t)p);
    CHECK(t, spca_branch(p, p, N, HUGE_VAL, 1, &which, ROOM, empty, NULL, NULL, pool,
                         WORK(t, spca_branch_work(p, p)), SCRATCH(t, 2 * p, spca_int), &n_children,
                         excess) == SPCA_OK);
    digest_int(t, n_children);
    CHECK(t, n_children == 1);
}

/* Dual bounds that the optimum attains are above it all the same. */
void SPCA(check_tight_bounds)(trial_t *t)
{
    const int bits = DBL_MANT_DIG;
    spca_int p = between(t, 2, 9), k = between(t, 1, p), most = between(t, 0, 12), n_iter = -1;
    double *x = zeros(t, p), top = 0;
    double *A = WORK(t, p * p), primal = 0, dual = 0;
    long double best;
    int kind = (int)below(t, 4);
    /* a, and a level below it, with all digits */
    long double a = 1 + (long double)(scramble(&t->state) >> (64 - bits)) / ldexpl(1, bits - 1) / 2;
    long double level = (long double)(scramble(&t->state) >> (67 - bits)) / ldexpl(1, bits - 1);
    for (spca_int i = 0; i < p * p; i++) A[i] = (double)a;
    a = (long double)A[0];
    level = (long double)(double)level;
    if (kind == 0) /* the relaxation by Y = level off the diagonal: 11'/p attains it */
        best = a + (long double)(p - 1) * (a - level);
    else if (kind == 1) /* constrained by k - 1: 11'/k of k variables attains it */
        best = a * (long double)k;
    else if (kind == 2) { /* the same, nearly all of it off the diagonal */
        most *= 20;
        for (spca_int i = 0; i < p * p; i++) A[i] = i % (p + 1) ? (double)a : (double)0x1p-9;
        best = 0x1p-9L + a * (long double)(k - 1);
    } else { /* xx' of integers */
        for (spca_int i = 0; i < p; i++) {
            x[i] = (double)between(t, 1, 99);
            top += x[i] * x[i];
        }
        for (spca_int i = 0; i < p * p; i++) A[i] = (double)(x[i % p] * x[i / p]);
        best = (long double)top;
        level = 0;
    }
    CHECK(t, spca_dspca(p, A, kind == 1 || kind == 2,
                        kind == 1 || kind == 2 ? (double)(k - 1) : (double)level, 0, most, NULL,
                        NULL, WORK(t, 4 * p * p + 28 * p), SCRATCH(t, 12 * p, blas_int),
                        WORK(t, p * p), &primal, &dual, &n_iter) >= 0);
    SPCA(digest)(t, SPCA_OK, 1, &dual);
    CHECK(t, (long double)dual >= best);
    if (n_iter == 0 && kind < 3) CHECK(t, NEAR(dual, best, best)); /* and by rounding alone */
    if (kind < 2) { /* where the splitting ends, whatever the first bound was */
        A[0] *= (double)1.5;
        CHECK(t, spca_dspca(p, A, kind == 1, kind == 1 ? (double)(k - 1) : (double)level,
                            (double)1e-3, 2000, NULL, NULL, WORK(t, 4 * p * p + 28 * p),
                            SCRATCH(t, 12 * p, blas_int), WORK(t, p * p), &primal, &dual,
                            &n_iter) == SPCA_OK);
    }
}

/* r = c - K b: on each unit what the level makes of the norm, of the signs. */
static void check_net(trial_t *t, const spca_supports *o, const double *K, const double *c,
                      const double *b, double level, double size)
{
    double *r = zeros(t, o->p), *norm = WORK(t, o->units), *rest = zeros(t, o->units);
    spca_unit_norms(o, b, norm);
    for (spca_int j = 0; j < o->p; j++) {
        double s = o->signs ? o->signs[j] : 0;
        CHECK(t, b[j] * s >= 0);
        r[j] = c[j];
        for (spca_int i = 0; i < o->p; i++) r[j] -= K[j * o->p + i] * b[i];
        rest[o->unit[j]] = hypot(rest[o->unit[j]], r[j] * s < 0 ? 0 : r[j]);
    }
    for (spca_int u = 0; u < o->units; u++)
        if (!o->included[u] && norm[u] == 0) CHECK(t, rest[u] <= level + 1e-6 * size);
    for (spca_int j = 0; j < o->p; j++) {
        spca_int u = o->unit[j];
        double slope = r[j], s = o->signs ? o->signs[j] : 0;
        if (!o->included[u] && !(norm[u] > 1e-4 * size)) continue; /* it has only just joined */
        if (!o->included[u]) slope -= level * b[j] / norm[u];
        if (b[j] != 0 || s == 0)
            CHECK(t, fabs(slope) <= 1e-4 * size);
        else
            CHECK(t, slope * s <= 1e-4 * size);
    }
}

void SPCA(check_unit_net)(trial_t *t)
{
    spca_int p = between(t, 1, 10), units = between(t, 1, p), *unit = SCRATCH(t, p, spca_int);
    double *dense = zeros(t, p * p), size = 1, level, *K = WORK(t, p * p), *b = WORK(t, p);
    double *G = SPCA(symmetric)(t, p, PLAIN, 1, dense), ridge = (double)between(t, 1, 20) / 10;
    double *c = SPCA(copy_of)(t, p, SPCA(numbers)(t, PLAIN, p));
    int copied = chance(t, 20); /* the last variable, of the first: K is singular */
    if (copied) c[p - 1] = c[0];
    uint8_t *allowed = SCRATCH(t, units, uint8_t), *included = SCRATCH(t, units, uint8_t);
    int8_t *signs = SCRATCH(t, p, int8_t);
    spca_int *count = SCRATCH(t, units, spca_int), most = between(t, 1, units), used = 0, in = 0;
    for (spca_int u = 0; u < units; u++) {
        allowed[u] = 1;
        count[u] = 1;
        included[u] = (uint8_t)chance(t, 15);
        in += included[u];
    }
    for (spca_int j = 0; j < p; j++) {
        unit[j] = j < units ? j : below(t, units);
        signs[j] = (int8_t)between(t, -1, 1);
        b[j] = 0;
        size = fmax(size, fabs(c[j]));
    }
    for (spca_int a = 0; a < p * p; a++) {
        K[a] = G[a] + (a % (p + 1) == 0 ? ridge : 0);
        size = fmax(size, fabs(K[a]));
    }
    for (spca_int i = 0; i < p && copied; i++) K[i * p + p - 1] = K[i * p];
    for (spca_int i = 0; i < p && copied; i++) K[(p - 1) * p + i] = K[i];
    spca_supports o = {.p = p,
                       .units = units,
                       .unit = unit,
                       .size = count,
                       .allowed = allowed,
                       .included = included,
                       .signs = chance(t, 50) ? signs : NULL};
    spca_int room = spca_unit_net_work(&o);
    level = size * (double)between(t, 0, 20) / 40;
    stop_t asked = {0, -1};
    spca_status status = spca_unit_net(&o, K, c, level, stop_at, &asked, WORK(t, room),
                                       SCRATCH(t, 2 * p + units + 1, spca_int), b);
    CHECK(t, status == SPCA_OK || status == SPCA_NOT_CONVERGED);
    /* of single variables, Newton's steps are exact, until an entry is zero */
    CHECK(t, units < p || o.signs || asked.asked <= 8 + p);
    if (status == SPCA_OK) check_net(t, &o, K, c, b, level, size);
    SPCA(digest)(t, status, p, b);
    level = chance(t, 50) ? 0 : level;
    asked.asked = 0;
    status = spca_unit_net_path(&o, K, c, most, stop_at, &asked, WORK(t, room + 2 * p),
                                SCRATCH(t, 2 * p + units + 1, spca_int), b, WORK(t, p), &level);
    CHECK(t, units < p || o.signs || asked.asked <= 200); /* and so is where the next one enters */
    CHECK(t, status == SPCA_OK && level >= 0);
    for (spca_int u = 0; u < units; u++) {
        int has = included[u];
        for (spca_int j = 0; j < p; j++) has |= unit[j] == u && b[j] != 0;
        used += has;
    }
    CHECK(t, used <= most || used <= in);
    check_net(t, &o, K, c, b, level, size);
    SPCA(digest)(t, status, p, b);
}

/* ---- stopped at each question ------------------------------------------------------------------
 */

static spca_status relaxed(trial_t *t, spca_int p, const double *A, int penalized, stop_t *stop)
{
    double primal, dual;
    spca_int n_iter;
    return spca_dspca(p, A, !penalized, 1, 0, 4, stop_at, stop, WORK(t, (4 * p + 28) * p),
                      SCRATCH(t, 12 * p, blas_int), WORK(t, p * p), &primal, &dual, &n_iter);
}

static spca_status path(trial_t *t, spca_int p, const double *G, int kind, stop_t *stop)
{
    spca_int count;
    double level;
    (void)kind;
    return spca_elastic_net(p, p, G, G + p, 1, 0, 0, 0, stop_at, stop, SCRATCH(t, p, spca_int),
                            WORK(t, p), WORK(t, p * p + 5 * p), SCRATCH(t, 2 * p, spca_int), &count,
                            &level);
}

static spca_status branched(trial_t *t, spca_int p, const double *N, int kind, stop_t *stop)
{
    enum { ROOM = 4 };
    spca_int k = 3, which = ROOM, empty[ROOM] = {0, 1, 2, 3}, n_children;
    uint8_t *pool = SCRATCH(t, (ROOM + 1) * p, uint8_t);
    (void)kind;
    memset(pool + ROOM * p, 1, (size_t)p);
    return spca_branch(p, k, N, HUGE_VAL, 1, &which, ROOM, empty, stop_at, stop, pool,
                       WORK(t, spca_branch_work(p, k)), SCRATCH(t, p + k, spca_int), &n_children,
                       WORK(t, ROOM));
}

static spca_status deleted(trial_t *t, spca_int p, const double *G, int kind, stop_t *stop)
{
    static const double eigenvalues[] = {2, 1}, W[] = {0.8, 0.6, -0.6, 0.8};
    (void)p, (void)G, (void)kind;
    return spca_deleted_eigenvalues(2, 2, eigenvalues, W, stop_at, stop, SCRATCH(t, 4, double),
                                    SCRATCH(t, 2, double));
}

typedef spca_status search_t(trial_t *, spca_int, const double *, int, stop_t *);

void SPCA(check_early_searches)(trial_t *t)
{
    static search_t *const SEARCHES[] = {relaxed, path, branched, deleted};
    spca_int p = between(t, 3, 20);
    double *G = SPCA(copy_of)(t, (p + 1) * p, SPCA(numbers)(t, PLAIN, (p + 1) * p));
    for (spca_int b = 0; b < p; b++) {
        for (spca_int a = 0; a < b; a++) G[b + a * p] = G[a + b * p] /= (double)p;
        G[b + b * p] = 1;
    }
    for (size_t i = 0; i < sizeof SEARCHES / sizeof *SEARCHES; i++)
        for (int kind = 0; kind < 2; kind++)
            for (spca_int at = 0;; at++) {
                stop_t stop = {0, at};
                spca_status status = SEARCHES[i](t, p, G, kind, &stop);
                digest_int(t, status);
                if (stop.asked <= at) break;
                CHECK(t, status == SPCA_STOPPED && stop.asked == at + 1);
            }
}

/* ---- corners -----------------------------------------------------------------------------------
 */

/* A node of many candidates, of which no matrix is factored. */
static void many_candidates(trial_t *t)
{
    spca_int p = 520;
    double *N = WORK(t, p * p);
    for (spca_int i = 0; i < p * p; i++) N[i] = i % (p + 1) ? (double)((i % p + i / p) % 5) / 4 : 1;
    CHECK(t, branched(t, p, N, 0, &(stop_t){0, -1}) == SPCA_OK);
}

/* Matrices of which LAPACK finds no eigenvalues.  Where a part of the spectrum was asked for, all
 * of it is the second try. */
static void relaxations(trial_t *t)
{
    for (spca_int p = 2; p <= 20; p += 18)
        for (spca_int at = 0;; at++) {
            spca_status status;
            double *A = WORK(t, p * p);
            for (spca_int i = 0; i < p * p; i++) A[i] = i % (p + 1) ? 0.1 : 1;
            lapack_fails = at;
            status = relaxed(t, p, A, 0, &(stop_t){0, -1});
            if (lapack_fails >= 0) break;
            CHECK(t, status == SPCA_LAPACK_FAILED || (p > 2 && status >= 0));
        }
    lapack_fails = -1;
}

/* Variables that are nearly combinations of others, and guesses of the wrong support. */
static void paths(trial_t *t)
{
    for (int trial = 0; trial < 300; trial++) {
        spca_int p = between(t, 1, 8), limit = between(t, 1, p), guess = below(t, limit + 1), count;
        spca_int *index = SCRATCH(t, limit, spca_int);
        double *G = WORK(t, p * p), *c = WORK(t, p), *value = WORK(t, limit), level, floor;
        double *B = WORK(t, p * p), least = chance(t, 50) ? 0.3 : 1e-5;
        for (spca_int i = 0; i < p * p; i++)
            B[i] =
                (chance(t, 50) ? (double)between(t, -1, 1) : number(PLAIN, scramble(&t->state), 0));
        for (spca_int b = 0; b < p; b++) {
            c[b] = number(PLAIN, scramble(&t->state), 0);
            for (spca_int a = 0; a < p; a++) G[a + b * p] = strands_dot(p, B + a * p, B + b * p);
        }
        for (spca_int a = 0; a < guess; a++) {
            index[a] = a;
            value[a] = chance(t, 50) ? 1 : -1;
        }
        floor = chance(t, 50) ? 0 : 0.1;
        CHECK(t,
              spca_elastic_net(p, limit, G, c, chance(t, 50) ? 0 : 0.01, floor, least, guess, NULL,
                               NULL, index, value, WORK(t, limit * limit + 3 * limit + 2 * p),
                               SCRATCH(t, limit + p, spca_int), &count, &level) == SPCA_OK);
        CHECK(t, count <= limit && level >= floor);
    }
}

/* A support of three, of which the second variable has nothing. */
static void without(trial_t *t)
{
    static const double eigenvalues[] = {20, 19, 10}, W[] = {1, 0, 0, 0, 0, 0, 0, 0, 1};
    double value[3];
    CHECK(t, spca_deleted_eigenvalues(3, 3, eigenvalues, W, NULL, NULL, SCRATCH(t, 6, double),
                                      value) == SPCA_OK);
    CHECK(t, value[0] == 19 && value[1] == 20 && value[2] == 20);
}

void SPCA(check_search_corners)(trial_t *t)
{
    many_candidates(t);
    relaxations(t);
    paths(t);
    without(t);
}
