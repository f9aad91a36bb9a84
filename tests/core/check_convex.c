/* check_convex.c - convex problems against their conditions of optimality and against vectors that
 * they are to bound; of double alone. */
#include "core.h"

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
