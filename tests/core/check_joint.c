/* check_joint.c - a joint search of loadings: what its members explain, against plain projections,
 * eigenvalues and, of one loading, every support. */
#include "core.h"
#include "solvers/joint.h"

/* Tr(A V (V'V)^-1 V') of loadings by their nonzeros, with modified Gram-Schmidt; under a constraint
 * Tr V'AV. */
static double explained_by(trial_t *t, spca_int p, spca_int r, spca_int room, int constraint,
                           const double *A, const spca_int *nnz, const spca_int *index,
                           const double *value)
{
    double *Q = zeros(t, r * p), sum = 0;
    for (spca_int a = 0; a < r; a++) {
        double *q = Q + a * p, square = 0;
        for (spca_int b = 0; b < nnz[a]; b++) q[index[a * room + b]] = value[a * room + b];
        for (int twice = 0; twice < 2; twice++)
            for (spca_int b = 0; b < a && !constraint; b++) {
                double along = 0;
                for (spca_int i = 0; i < p; i++) along += q[i] * Q[b * p + i];
                for (spca_int i = 0; i < p; i++) q[i] -= along * Q[b * p + i];
            }
        for (spca_int i = 0; i < p; i++) square += q[i] * q[i];
        for (spca_int i = 0; i < p && !constraint; i++)
            q[i] = square > 1e-9 ? q[i] / sqrt(square) : 0;
        for (spca_int i = 0; i < p; i++)
            for (spca_int j = 0; j < p; j++) sum += q[i] * A[i * p + j] * q[j];
    }
    return sum;
}

typedef struct {
    spca_int p, r, room, members;
    const real *A;
    double *diagonal;
    spca_int *size;
    int constraint;
    const spca_supports *of;
    uint64_t random;
    spca_int patience, state[3], *nnz, *index;
    double spent, *subspace, *value, *explained;
} searched_t;

static void begin(trial_t *t, searched_t *s)
{
    spca_int r = s->r, places = s->members * r;
    s->nnz = SCRATCH(t, places, spca_int);
    s->index = SCRATCH(t, places * s->room, spca_int);
    s->value = SCRATCH(t, places * s->room, double);
    s->explained = SCRATCH(t, s->members, double);
    s->subspace = zeros(t, 2 * r * (s->p + 1) + s->p);
    s->state[0] = s->state[1] = s->state[2] = 0;
    s->spent = 0;
    s->patience = 1000;
    s->random = 3;
}

static spca_status go_on(trial_t *t, searched_t *s, spca_int given, spca_int moves, spca_stop stop,
                         void *ctx)
{
    spca_int p = s->p, r = s->r, room = s->room;
    return SPCA(joint)(p, r, room, s->A, s->diagonal, s->size, s->constraint, s->of, s->members,
                       given, moves, s->patience, 1e9, stop, ctx, &s->random, s->state, &s->spent,
                       s->subspace, s->nnz, s->index, s->value, s->explained,
                       SCRATCH(t, SPCA(joint_work)(p, r, room, s->constraint, s->of), double),
                       SCRATCH(t, SPCA(joint_iwork)(p, r, room), spca_int), WORK(t, p * r));
}

static void check_member(trial_t *t, const searched_t *s, const double *dense, double size,
                         spca_int a)
{
    spca_int r = s->r, room = s->room;
    const spca_int *nnz = s->nnz + a * r, *index = s->index + a * r * room;
    const double *value = s->value + a * r * room;
    for (spca_int l = 0; l < r; l++) {
        double square = 0;
        CHECK(t, nnz[l] >= 1 && nnz[l] <= s->size[l]);
        for (spca_int b = 0; b < nnz[l]; b++) {
            CHECK(t, index[l * room + b] >= 0 && index[l * room + b] < s->p);
            CHECK(t, b == 0 || index[l * room + b - 1] < index[l * room + b]);
            square += value[l * room + b] * value[l * room + b];
        }
        CHECK(t, fabs(square - 1) <= 1e-12);
    }
    CHECK(t, fabs(s->explained[a] - explained_by(t, s->p, r, room, s->constraint, dense, nnz, index,
                                                 value)) <= 1e-7 * size);
    for (spca_int l = 0; s->constraint && l < r; l++) /* v'Cw */
        for (spca_int m = 0; m < l; m++) {
            double sum = 0;
            for (spca_int b = 0; b < nnz[l]; b++)
                for (spca_int c = 0; c < nnz[m]; c++) {
                    spca_int i = index[l * room + b], j = index[m * room + c];
                    sum += (s->constraint == 1 ? (double)(i == j) : dense[i * s->p + j] / size) *
                           value[l * room + b] * value[m * room + c];
                }
            CHECK(t, fabs(sum) <= 1e-9 + EPSILON);
        }
    CHECK(t, a == 0 || s->explained[a] <= s->explained[a - 1]);
}

/* Among units and of given signs: what is found has whole units, no more than may be. */
static void check_units(trial_t *t, searched_t s, spca_int moves)
{
    spca_int p = s.p, n = between(t, 1, p);
    spca_int *unit = SCRATCH(t, p, spca_int), *size = SCRATCH(t, n, spca_int);
    uint8_t *allowed = SCRATCH(t, n, uint8_t), *included = SCRATCH(t, n, uint8_t);
    int8_t *signs = SCRATCH(t, p, int8_t);
    spca_supports of = {p, n, unit, size, allowed, included, below(t, 2) ? signs : NULL, 0};
    for (spca_int i = 0; i < p; i++) {
        unit[i] = i < n ? i : below(t, n);
        signs[i] = (int8_t)(below(t, 3) - 1);
    }
    for (spca_int u = 0; u < n; u++) {
        size[u] = allowed[u] = 1;
        included[u] = u == 0 && below(t, 2) == 0;
    }
    for (spca_int l = 0; l < s.r; l++) s.size[l] = between(t, 1, n);
    s.of = &of;
    s.room = p;
    begin(t, &s);
    if (s.constraint) of.signs = NULL;
    CHECK(t, go_on(t, &s, 0, moves, NULL, NULL) == SPCA_OK);
    digest(t, s.explained, (size_t)s.state[2] * sizeof *s.explained);
    for (spca_int a = 0; a < s.state[2] * s.r; a++) {
        const spca_int *index = s.index + a * p, nnz = s.nnz[a];
        spca_int units = 0, whole = 0;
        for (spca_int u = 0; u < n; u++) {
            spca_int has = 0, of_all = 0;
            for (spca_int i = 0; i < p; i++) of_all += unit[i] == u;
            for (spca_int b = 0; b < nnz; b++) has += unit[index[b]] == u;
            units += has > 0;
            whole += has > 0 && has == of_all;
            CHECK(t, nnz == 0 || has > 0 || !included[u]);
        }
        CHECK(t, units == whole && units <= s.size[a % s.r]);
        for (spca_int b = 0; of.signs && b < nnz; b++)
            CHECK(t, s.value[a * p + b] * signs[index[b]] >= 0);
    }
}

/* The largest entries of y, the first of equal ones, whatever is known of where they are. */
static void check_select(trial_t *t)
{
    spca_int p = between(t, 1, 40), size = between(t, 1, p), kind = below(t, 3);
    spca_int *near = SCRATCH(t, size, spca_int), *index = SCRATCH(t, size, spca_int);
    double *y = SCRATCH(t, p, double), *x = SCRATCH(t, size, double);
    joint_t o = {.p = p, .row = zeros(t, p), .gain = zeros(t, p), .near = near};
    for (spca_int i = 0; i < p; i++)
        y[i] = kind == 0 ? (double)(below(t, 7) - 3) : (double)(below(t, 1 << 20) - (1 << 19));
    for (spca_int a = 0; a < size; a++) near[a] = kind == 1 ? p - 1 - a : a;
    o.n_near = kind == 2 ? 0 : size;
    CHECK(t, SPCA(joint_select)(&o, size, y, index, x) == size);
    for (spca_int i = 0, at = 0; i < p; i++) {
        spca_int before = 0;
        for (spca_int j = 0; j < p; j++)
            before += fabs(y[j]) > fabs(y[i]) || (j < i && fabs(y[j]) == fabs(y[i]));
        if (before < size) {
            CHECK(t, index[at] == i && x[at] == y[i]);
            at++;
        }
    }
}

/* Of whole units those of the largest sum of squares that have room: no set of units has a larger
 * one. */
static void check_select_units(trial_t *t)
{
    spca_int p = between(t, 1, 14), n = between(t, 1, p < 8 ? p : 8), room = between(t, 1, p);
    spca_int *unit = SCRATCH(t, p, spca_int), *size = SCRATCH(t, n, spca_int), found, used = 0;
    uint8_t *allowed = SCRATCH(t, n, uint8_t), *included = SCRATCH(t, n, uint8_t);
    spca_supports of = {p, n, unit, size, allowed, included, NULL, 1};
    double *y = SCRATCH(t, p, double), *x = SCRATCH(t, p, double), sum = 0, most = 0;
    spca_int *index = SCRATCH(t, p, spca_int);
    for (spca_int u = 0; u < n; u++) size[u] = included[u] = 0;
    for (spca_int u = 0; u < n; u++) allowed[u] = !chance(t, 20);
    for (spca_int i = 0; i < p; i++) {
        unit[i] = i < n ? i : below(t, n);
        size[unit[i]]++;
        y[i] = (double)(below(t, 15) - 7) / 8;
    }
    joint_t o = {.p = p, .of = &of, .gain = zeros(t, p), .norm = zeros(t, n)};
    o.unit_work = SCRATCH(t, spca_unit_work(&of, room), double);
    o.unit_iwork = SCRATCH(t, n, spca_int);
    o.kept = SCRATCH(t, n, uint8_t);
    found = SPCA(joint_select)(&o, room, y, index, x);
    for (spca_int a = 0; a < found; a++) {
        sum += x[a] * x[a];
        used += allowed[unit[index[a]]] && fabs(x[a]) == fabs(y[index[a]]);
    }
    CHECK(t, used == found && found <= room);
    for (uint32_t set = 0; set < 1u << n; set++) {
        double value = 0;
        spca_int taken = 0, good = 1;
        for (spca_int i = 0; i < p; i++) {
            if (!(set >> unit[i] & 1)) continue;
            value += y[i] * y[i];
            taken++;
            good &= allowed[unit[i]];
        }
        if (good && taken <= room) most = fmax(most, value);
    }
    CHECK(t, sum >= most * (1 - 1e-6));
}

/* The best unit vector on three variables or fewer, of which steps see all directions. */
static void check_fitted(trial_t *t)
{
    spca_int n = between(t, 1, 3), p = n + below(t, 3), index[3];
    double *dense = zeros(t, p * p), x[3], size = 0, square = 0, form = 0, value, want, near;
    joint_t o = {.p = p, .r = 1, .fit = zeros(t, n * n + 9 * n)};
    o.A = SPCA(symmetric)(t, p, SPCA(style)(t, 1), 1, dense);
    for (spca_int i = 0; i < p * p; i++) size = fmax(size, fabs(dense[i]));
    for (spca_int a = 0; a < n; a++) {
        index[a] = p - n + a;
        x[a] = (double)(below(t, 1 << 20) - (1 << 19)) + 0.5;
    }
    want = largest_eigenvalue(t, p, dense, NULL, n, index);
    value = SPCA(joint_fitted)(&o, n, index, 2, 0, x);
    for (spca_int a = 0; a < n; a++) {
        square += x[a] * x[a];
        for (spca_int b = 0; b < n; b++) form += x[a] * x[b] * dense[index[a] * p + index[b]];
    }
    near = (1e-8 + 10 * EPSILON) * size;
    CHECK(t, NEAR(square, 1, 1) && fabs(value - want) <= near && fabs(form - value) <= near);
}

/* (A - QF' - FQ' + rho QQ') x, entry by entry. */
static void check_apply(trial_t *t)
{
    spca_int p = between(t, 1, 9), m = below(t, 3), nnz = between(t, 1, p);
    const spca_int *index = SPCA(subset)(t, p, nnz);
    double *dense = zeros(t, p * p), x[9], rho = (double)below(t, 9) / 4;
    joint_t o = {.p = p, .m = m, .n_used = p, .projected = (double)below(t, 2)};
    o.A = SPCA(symmetric)(t, p, PLAIN, 1, dense);
    o.Q = zeros(t, m * p);
    o.F = zeros(t, m * p);
    o.score = zeros(t, p);
    o.used = SCRATCH(t, p, spca_int);
    for (spca_int i = 0; i < p; i++) o.used[i] = i;
    for (spca_int a = 0; a < m * p; a++) {
        o.Q[a] = (double)(below(t, 9) - 4) / 4;
        o.F[a] = (double)(below(t, 9) - 4) / 4;
    }
    for (spca_int a = 0; a < nnz; a++) x[a] = (double)(below(t, 9) - 4) / 4;
    SPCA(joint_apply)(&o, rho, nnz, index, x);
    for (spca_int i = 0; i < p; i++) {
        double want = 0, size = 0;
        for (spca_int b = 0; b < nnz; b++) {
            double entry = dense[i * p + index[b]];
            for (spca_int a = 0; a < m; a++) {
                const double *q = o.Q + a * p, *f = o.F + a * p;
                spca_int j = index[b];
                entry += o.projected * rho * q[i] * q[j] - q[i] * f[j] - f[i] * q[j];
            }
            want += entry * x[b];
            size += fabs(dense[i * p + index[b]]) + 9;
        }
        CHECK(t, NEAR(o.score[i], want, size));
    }
}

/* A longer step along what a sweep has changed: loadings of length one, what they explain, and
 * their images; loadings whose support has changed stay. */
static void check_further(trial_t *t)
{
    enum { R = 2, K = 2, P = 5 };
    spca_int nnz[2 * R] = {K, K, K, K}, index[2 * R * K] = {0, 1, 2, 3, 0, 1, 2, 4};
    double value[2 * R * K], *dense = zeros(t, P * P), *G = zeros(t, 4 * R * R);
    double *H = zeros(t, 4 * R * R), before, after, x, y, size = 0;
    joint_search_t s = {.G = G, .H = H, .T = zeros(t, 4 * R * R)};
    joint_t *o = &s.o;
    *o = (joint_t){.p = P, .r = R, .room = K, .V = {nnz, index, value}};
    o->A = SPCA(symmetric)(t, P, PLAIN, 1, dense);
    o->image = zeros(t, 2 * R * P);
    o->drift = zeros(t, R);
    for (spca_int a = 0; a < P * P; a++) size += fabs(dense[a]);
    for (spca_int a = 0; a < 2 * R; a++) {
        double angle = (double)below(t, 64) / 64 + (a < R ? 0 : 0.1);
        value[a * K] = cos(angle);
        value[a * K + 1] = sin(angle);
        SPCA(joint_image)(o, K, index + a * K, value + a * K, o->image + a * P);
    }
    x = value[R], y = value[R + 1];
    before = explained_by(t, P, R, K, 0, dense, nnz, index, value);
    after = SPCA(joint_further)(&s, before);
    CHECK(t, after >= before && value[R] == x && value[R + 1] == y);
    CHECK(t, fabs(after - explained_by(t, P, R, K, 0, dense, nnz, index, value)) <=
                 1e2 * DBL_EPSILON * size);
    for (spca_int a = 0; a < R; a++) {
        CHECK(t, NEAR(hypot(value[a * K], value[a * K + 1]), 1, 1));
        for (spca_int i = 0; i < P; i++) {
            double image = 0;
            for (spca_int b = 0; b < K; b++)
                image += dense[i * P + index[a * K + b]] * value[a * K + b];
            CHECK(t, fabs(o->image[a * P + i] - image) <= 1e2 * DBL_EPSILON * size);
        }
    }
}

/* Two loadings of the four that two members have, such that no exchange explains more. */
static void check_combine(trial_t *t)
{
    enum { R = 2, K = 2, P = 6, N = 2 * R };
    spca_int nnz[N] = {K, K, K, K}, index[N * K], size[R] = {K, K}, order[N], place[R];
    double value[N * K], pool[N * K], *dense = zeros(t, P * P), two[R * K];
    uint64_t random = (uint64_t)below(t, 1 << 20);
    spca_int two_nnz[R] = {K, K}, two_index[R * K], all[N * K];
    joint_search_t s = {.G = zeros(t, N * N), .H = zeros(t, N * N), .T = SCRATCH(t, N * N, double)};
    joint_t *o = &s.o;
    *o = (joint_t){.p = P, .r = R, .room = K, .size = size, .V = {nnz, index, value}};
    s.random = &random;
    s.order = order;
    o->A = SPCA(symmetric)(t, P, PLAIN, 1, dense);
    o->image = zeros(t, N * P);
    for (spca_int a = 0; a < N; a++) {
        const spca_int *support = SPCA(subset)(t, P, K);
        double angle = (double)below(t, 64);
        pool[a * K] = cos(angle);
        pool[a * K + 1] = sin(angle);
        for (spca_int b = 0; b < K; b++) all[a * K + b] = support[b];
    }
    memcpy(value, pool, sizeof pool);
    memcpy(index, all, sizeof all);
    SPCA(joint_combine)(&s, (loadings_t){nnz + R, all + R * K, pool + R * K});
    for (spca_int a = 0; a < R; a++) {
        place[a] = N;
        for (spca_int j = 0; j < N; j++)
            if (!memcmp(value + a * K, pool + j * K, K * sizeof *pool) &&
                !memcmp(index + a * K, all + j * K, K * sizeof *all))
                place[a] = j;
        CHECK(t, place[a] < N);
    }
    CHECK(t, place[0] != place[1]);
    double most = explained_by(t, P, R, K, 0, dense, nnz, index, value);
    for (spca_int a = 0; a < R; a++)
        for (spca_int j = 0; j < N; j++) {
            double along = 0;
            if (j == place[0] || j == place[1]) continue;
            for (spca_int b = 0; b < R; b++) {
                spca_int of = b == a ? j : place[b];
                memcpy(two + b * K, pool + of * K, K * sizeof *two);
                memcpy(two_index + b * K, all + of * K, K * sizeof *two_index);
            }
            for (spca_int b = 0; b < K; b++)
                for (spca_int c = 0; c < K; c++)
                    along += two_index[b] == two_index[K + c] ? two[b] * two[K + c] : 0;
            if (1 - along * along <= 2e-2) continue; /* nearly in its span */
            CHECK(t, explained_by(t, P, R, K, 0, dense, two_nnz, two_index, two) <=
                         most * (1 + 2e-7) + 1e2 * EPSILON);
        }
}

void SPCA(check_joint)(trial_t *t)
{
    spca_int p = between(t, 1, 9), r = between(t, 1, p < 3 ? p : 3), moves = below(t, 24),
             whole = 0;
    double *dense = zeros(t, p * p), size = 0, trace = 0, before = 0, at_most = 0, near;
    searched_t s = {.p = p, .r = r, .members = between(t, 1, 5)}, again;
    s.constraint = (int)below(t, 3);
    s.A = SPCA(symmetric)(t, p, SPCA(style)(t, 1), 1, dense);
    s.diagonal = zeros(t, p);
    s.size = SCRATCH(t, r, spca_int);
    for (spca_int i = 0; i < p; i++) trace += s.diagonal[i] = dense[i * p + i];
    for (spca_int i = 0; i < p * p; i++) size = fmax(size, fabs(dense[i]));
    size *= (double)p;
    near = (1e-9 + 1e2 * EPSILON) * size; /* rounding leaves A indefinite */
    for (spca_int l = 0; l < r; l++) {
        s.size[l] = between(t, 1, p);
        s.room = s.size[l] > s.room ? s.size[l] : s.room;
        whole += s.size[l] == p;
    }
    begin(t, &s);
    again = s;
    begin(t, &again);
    for (spca_int l = 0; l < r; l++) { /* loadings of one variable to begin with */
        s.nnz[l] = 1;
        s.index[l * s.room] = l;
        s.value[l * s.room] = 1;
    }
    before = explained_by(t, p, r, s.room, s.constraint, dense, s.nnz, s.index, s.value);
    CHECK(t, go_on(t, &s, 1, 0, NULL, NULL) == SPCA_OK && s.state[0] == 0);
    if (s.constraint < 2) CHECK(t, s.state[2] == 1 && s.explained[0] >= before - near);
    CHECK(t, go_on(t, &s, 0, moves, NULL, NULL) == SPCA_OK && s.state[0] == moves);
    digest(t, s.explained, (size_t)s.state[2] * sizeof *s.explained);
    for (spca_int a = 0; a < s.state[2]; a++) check_member(t, &s, dense, size, a);
    double *values = zeros(t, p), *vectors = zeros(t, p * p), *copy = zeros(t, p * p);
    memcpy(copy, dense, (size_t)(p * p) * sizeof *copy);
    CHECK(t, jacobi(p, copy, values, vectors));
    for (spca_int l = 0; l < r; l++) at_most += values[p - 1 - l];
    if (moves > 0) { /* the first move has found eigenvalues, in a subspace or of all */
        double most = s.subspace[2 * r * p];
        CHECK(t, most <= values[p - 1] + near);
        if (2 * r >= p) CHECK(t, most >= values[p - 1] - (1e-7 + 1e2 * EPSILON) * size);
    }
    if (s.state[2] == 0) s.explained[0] = 0; /* none were found that are uncorrelated */
    CHECK(t, s.explained[0] <= fmin(trace, at_most) + near);
    /* a loading of one variable that is an eigenvector stays, until a move */
    if (whole == r && s.state[2] > 0 && moves > (s.constraint ? 18 : 0))
        CHECK(t, s.explained[0] >= at_most - 1e-5 * size);
    if (r == 1) { /* every support */
        spca_int *support = SCRATCH(t, s.room, spca_int);
        double most = 0;
        for (spca_int a = 0; a < s.room; a++) support[a] = a;
        do most = fmax(most, largest_eigenvalue(t, p, dense, NULL, s.room, support));
        while (next_support(p, s.room, support));
        CHECK(t, s.explained[0] <= most + near);
        if (moves > 18) CHECK(t, s.explained[0] >= most - 1e-6 * size);
    }
    spca_int cut = below(t, moves + 1); /* in two calls: the same, to the last bit */
    for (spca_int l = 0; l < r; l++) {
        again.nnz[l] = 1;
        again.index[l * s.room] = l;
        again.value[l * s.room] = 1;
    }
    CHECK(t, go_on(t, &again, 1, cut, NULL, NULL) == SPCA_OK);
    CHECK(t, go_on(t, &again, 0, moves - cut, NULL, NULL) == SPCA_OK);
    CHECK(t, again.random == s.random && again.state[2] == s.state[2]);
    CHECK(t, !memcmp(again.explained, s.explained, (size_t)s.state[2] * sizeof *s.explained));
    stop_t stop = {0, below(t, 40)}; /* what the population holds then is whole */
    spca_status status = go_on(t, &again, 0, 5, stop_at, &stop);
    CHECK(t, status == (stop.asked > stop.at ? SPCA_STOPPED : SPCA_OK));
    for (spca_int a = 0; a < again.state[2]; a++) check_member(t, &again, dense, size, a);
    spca_int made = s.state[0]; /* it ends where so many moves have gained nothing */
    s.patience = s.state[1] + below(t, 3);
    CHECK(t, go_on(t, &s, 0, 5, NULL, NULL) == SPCA_OK && s.state[1] <= s.patience);
    CHECK(t, s.state[1] == s.patience || s.state[0] == made + 5);
    check_units(t, s, moves);
    check_select(t);
    check_apply(t);
    check_further(t);
    check_combine(t);
    check_select_units(t);
    check_fitted(t);
}
