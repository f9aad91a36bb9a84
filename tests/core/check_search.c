/* check_search.c - branch and bound against enumeration; and with the convex problems of
 * check_convex.c where it is stopped, and at corners; of double alone. */
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
 * of it is the second try, and all vectors come from QL then. */
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
            CHECK(t, status == SPCA_LAPACK_FAILED || status >= 0);
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
