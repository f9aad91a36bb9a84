/* check_units.c - which units are kept, against every set of them, and vectors of given signs,
 * against every face of the cone. */
#include "core.h"

enum { MOST = 9, FACES = 6 };

/* The largest sum of squares of norms over the sets of allowed units that have the included ones
 * and no more variables, or units, than count; -1 where the included are too many. */
static long double best_of_sets(const spca_supports *o, const double *norm, spca_int count)
{
    long double best = -1;
    for (uint32_t set = 0; set < 1u << o->units; set++) {
        long double sum = 0;
        spca_int size = 0;
        int good = 1;
        for (spca_int u = 0; u < o->units; u++) {
            int in = set >> u & 1;
            good &= in ? o->allowed[u] : !o->included[u];
            size += in ? o->size[u] : 0;
            sum += in ? (long double)norm[u] * (long double)norm[u] : 0;
        }
        if (good && size <= count && sum > best) best = sum;
    }
    return best;
}

/* The same for the better of two ways that need not be the best: units with entries one after
 * another into the room that is left, by square or by square over size. */
static long double best_in_turn(const spca_supports *o, const double *norm, spca_int count)
{
    long double best = 0;
    for (int over_size = 0; over_size < 2; over_size++) {
        long double sum = 0;
        spca_int room = count;
        uint32_t left = 0;
        for (spca_int u = 0; u < o->units; u++) {
            if (o->allowed[u] && !o->included[u] && norm[u] > 0) left |= 1u << u;
            room -= o->included[u] ? o->size[u] : 0;
            sum += o->included[u] ? (long double)norm[u] * (long double)norm[u] : 0;
        }
        while (left) {
            spca_int first = -1;
            double most = -1;
            for (spca_int u = 0; u < o->units; u++) {
                double key = norm[u] * norm[u] / (over_size ? (double)o->size[u] : 1);
                if (!(left >> u & 1) || key <= most) continue;
                most = key;
                first = u;
            }
            left &= ~(1u << first);
            if (o->size[first] > room) continue;
            room -= o->size[first];
            sum += (long double)norm[first] * (long double)norm[first];
        }
        best = sum > best ? sum : best;
    }
    return best;
}

/* A rule of units among p variables, and what those that are included count. */
static spca_rule rule_of(trial_t *t, int step, spca_int units, spca_int p, spca_int *least)
{
    spca_int *unit = SCRATCH(t, p, spca_int), *size = SCRATCH(t, units, spca_int);
    uint8_t *allowed = SCRATCH(t, units, uint8_t), *included = SCRATCH(t, units, uint8_t);
    int8_t *signs = SCRATCH(t, p, int8_t);
    spca_supports of = {.p = p, .units = units, .unit = unit, .size = size};
    of.sized = chance(t, 50);
    *least = 0;
    for (spca_int u = 0; u < units; u++) size[u] = of.sized ? 0 : 1;
    for (spca_int j = 0; j < p; j++) {
        unit[j] = j < units ? j : below(t, units);
        if (of.sized) size[unit[j]]++;
        signs[j] = (int8_t)(below(t, 3) - 1);
    }
    for (spca_int u = 0; u < units; u++) {
        allowed[u] = u == 0 || !chance(t, 20);
        included[u] = allowed[u] && chance(t, 15);
        *least += included[u] ? size[u] : 0;
    }
    of.allowed = allowed, of.included = included, of.signs = chance(t, 50) ? signs : NULL;
    return (spca_rule){.of = of, .step = step, .level = (double)below(t, 40) / 16};
}

/* Of x what has the signs, and the norms of its units. */
static double *norms_of(trial_t *t, const spca_supports *o, const double *x, double *y)
{
    double *norm = SCRATCH(t, o->units, double);
    memcpy(y, x, (size_t)o->p * sizeof *y);
    spca_project_units(o, y);
    for (spca_int j = 0; j < o->p; j++) {
        int wrong = o->signs && (double)o->signs[j] * x[j] < 0;
        CHECK(t, y[j] == (o->allowed[o->unit[j]] && !wrong ? x[j] : 0));
    }
    spca_unit_norms(o, y, norm);
    for (spca_int u = 0; u < o->units; u++) {
        long double square = 0;
        for (spca_int j = 0; j < o->p; j++)
            square += o->unit[j] == u ? (long double)y[j] * (long double)y[j] : 0;
        CHECK(t, NEAR(norm[u], (double)sqrtl(square), 10));
    }
    return norm;
}

static double *step_of(trial_t *t, const spca_rule *rule, double quadratic, const double *x,
                       uint8_t *kept)
{
    double *out = SCRATCH(t, rule->of.p, double);
    memcpy(out, x, (size_t)rule->of.p * sizeof *out);
    spca_unit_step(rule, quadratic, out, SCRATCH(t, spca_step_work(rule), double),
                   SCRATCH(t, rule->of.units, spca_int), kept);
    for (spca_int u = 0; u < rule->of.units; u++)
        CHECK(t, kept[u] ? rule->of.allowed[u] : !rule->of.included[u]);
    digest(t, kept, (size_t)rule->of.units);
    return out;
}

void SPCA(check_units)(trial_t *t)
{
    spca_int units = between(t, 1, MOST), p = between(t, units, 4 * MOST), least;
    spca_rule rule = rule_of(t, SPCA_UNITS_TRUNCATED, units, p, &least);
    uint8_t *kept = SCRATCH(t, units, uint8_t);
    double *x = SCRATCH(t, p, double), *y = SCRATCH(t, p, double), *norm;
    long double sum = 0, want;
    int any = 0, fits = 0, found = 0, exact, few = chance(t, 30) ? 85 : 0; /* percent of zeros */
    for (spca_int j = 0; j < p; j++) x[j] = chance(t, few) ? 0 : (double)(below(t, 21) - 10) / 4;
    rule.count = between(t, least, p);
    norm = norms_of(t, &rule.of, x, y);
    want = best_of_sets(&rule.of, norm, rule.count);
    x = step_of(t, &rule, 1, x, kept);
    for (spca_int u = 0; u < units; u++) {
        if (want > 0 && rule.of.sized) /* nothing but what has entries */
            CHECK(t, norm[u] > 0 || !kept[u] || rule.of.included[u]);
        sum += kept[u] ? (long double)norm[u] * (long double)norm[u] : 0;
    }
    /* so many units and so much room may be too many for the exact way */
    exact = !rule.of.sized || units * (rule.count + 1) <= 64;
    CHECK(t, sum <= want + 1e-12L * (1 + want));
    if (!exact) want = best_in_turn(&rule.of, norm, rule.count);
    CHECK(t, sum >= want - 1e-12L * (1 + want));
    for (spca_int j = 0; want > 0 && j < p; j++)
        CHECK(t, x[j] == (kept[rule.of.unit[j]] ? y[j] : 0));
    for (spca_int u = 0; u < units; u++) {
        any |= norm[u] > 0;
        fits |= rule.of.allowed[u] && rule.of.size[u] <= rule.count;
    }
    for (spca_int j = 0; j < p; j++) found |= x[j] != 0;
    CHECK(t, found == (any && fits)); /* something is kept, so that an ascent goes on */
}

/* The sum of the norms beside the units that are included, and the norm of all. */
static double beside(const spca_supports *o, const double *norm, double *all)
{
    double sum = 0, square = 0;
    for (spca_int u = 0; u < o->units; u++) {
        sum += o->included[u] ? 0 : norm[u];
        square += norm[u] * norm[u];
    }
    *all = sqrt(square);
    return sum;
}

/* Penalties and bounds of the norms n_u of a vector y: what a step makes of them is the best.
 *   l0     keeps each n_u^2 above its cost, which is the best of all sets;
 *   l1     is the least of |z - y|^2/2 + level sum n_u(z): of z a unit's slope is 0, or less at 0;
 *   bound  has the largest y'z/|z| with sum n_u(z) <= bound |z|: no random z more, but for ties. */
void SPCA(check_unit_steps)(trial_t *t)
{
    spca_int units = between(t, 1, MOST), p = between(t, units, 2 * MOST), least;
    int step = (int)between(t, SPCA_UNITS_L0, SPCA_UNITS_BOUND);
    spca_rule rule = rule_of(t, step, units, p, &least);
    const spca_supports *o = &rule.of;
    uint8_t *kept = SCRATCH(t, units, uint8_t);
    double *x = SCRATCH(t, p, double), *y = SCRATCH(t, p, double), *z = zeros(t, p), *norm, *new;
    double quadratic = (double)below(t, 40) / 4, root = sqrt(quadratic), all = 0, rest, product = 0;
    double most = 0;
    spca_int ties = 0;
    /* of few levels many tie, those of tenths but for rounding */
    int levels = chance(t, 25) ? 3 : chance(t, 30) ? 7 : 21;
    for (spca_int j = 0; j < p; j++)
        x[j] = (double)(below(t, levels) - levels / 2) / (levels == 7 ? 10 : 4);
    if (step == SPCA_UNITS_BOUND) rule.level = 1 + (double)below(t, 33) / 16;
    norm = norms_of(t, o, x, y);
    x = step_of(t, &rule, quadratic, x, kept);
    new = SCRATCH(t, units, double);
    spca_unit_norms(o, x, new);
    for (spca_int j = 0; j < p; j++) { /* nothing but shares of y */
        spca_int u = o->unit[j];
        CHECK(t, !kept[u] || norm[u] == 0 || NEAR(x[j] * norm[u], y[j] * new[u], 100));
        CHECK(t, kept[u] || x[j] == 0);
        product += x[j] * y[j];
    }
    for (spca_int u = 0; u < units && step != SPCA_UNITS_BOUND; u++) {
        double level = rule.level * root, cost = rule.level * quadratic;
        double share = o->included[u] || step == SPCA_UNITS_L0 ? norm[u] : norm[u] - level;
        if (!o->allowed[u]) share = 0;
        if (step == SPCA_UNITS_L0 && !o->included[u] && norm[u] * norm[u] < cost * (1 - 1e-9))
            CHECK(t, !kept[u]);
        if (step == SPCA_UNITS_L0 && o->allowed[u] && norm[u] * norm[u] > cost * (1 + 1e-9))
            CHECK(t, kept[u]);
        CHECK(t, NEAR(new[u], kept[u] ? fmax(share, 0) : 0, 10));
        CHECK(t,
              kept[u] || !o->allowed[u] || step == SPCA_UNITS_L0 || norm[u] <= level * (1 + 1e-9));
    }
    if (step != SPCA_UNITS_BOUND) return;
    for (spca_int u = 0; u < units;
         u++) { /* an ascent goes on, and not with what rounding leaves */
        CHECK(t, product > 0 || norm[u] == 0);
        CHECK(t, !kept[u] || o->included[u] || new[u] > 1e-13 * norm[u]);
    }
    if (product == 0) return;
    rest = beside(o, new, &all);
    CHECK(t, rest <= rule.level * all * (1 + 1e-9));
    product /= all;
    for (spca_int u = 0; u < units; u++) {
        if (o->included[u]) continue;
        if (norm[u] > most * (1 + 1e-12)) {
            most = norm[u];
            ties = 0;
        }
        ties += norm[u] >= most * (1 - 1e-12);
    }
    if (ties > 1) return; /* where the bound leaves fewer than tie, the first one is kept */
    for (int trial = 0; trial < 30; trial++) {
        double level = norm[below(t, units)] * (double)below(t, 17) / 16, length, value = 0;
        for (spca_int u = 0; u < units; u++) {
            double share = norm[u] > 0 ? fmax(1 - level / norm[u], 0) : 0;
            new[u] = o->included[u] ? 1 : chance(t, 80) ? share : (double)below(t, 3) / 2;
        }
        for (spca_int j = 0; j < p; j++) {
            z[j] = y[j] * new[o->unit[j]];
            value += z[j] * y[j];
        }
        spca_unit_norms(o, z, new);
        rest = beside(o, new, &length);
        if (length > 0 && rest <= rule.level * length)
            CHECK(t, value / length <= product * (1 + 1e-9));
    }
}

/* By itself, and the solution of its Newton steps. */
static void check_one_step(trial_t *t, const spca_rule *rule, const double *start, uint8_t *kept)
{
    spca_int p = rule->of.p, room = spca_unit_work(&rule->of, rule->count);
    double *x = step_of(t, rule, 1, start, kept), *y = SCRATCH(t, p, double);
    double *work = SCRATCH(t, spca_orthogonal_work(&rule->of, rule->t), double);
    double L[16] = {0}, H[16] = {0}, b[4] = {0}, want[4], damping = (double)below(t, 3);
    spca_int n = between(t, 1, 4);
    memcpy(y, start, (size_t)p * sizeof *y);
    spca_orthogonal_unit_step(rule, y, work, SCRATCH(t, room, double),
                              SCRATCH(t, rule->of.units, spca_int), kept);
    CHECK(t, memcmp(x, y, (size_t)p * sizeof *x) == 0);
    for (spca_int j = 0; j < p; j++) y[j] = ldexp(start[j], -60); /* the same in another unit */
    spca_orthogonal_unit_step(rule, y, work, SCRATCH(t, room, double),
                              SCRATCH(t, rule->of.units, spca_int), kept);
    for (spca_int j = 0; j < p; j++) CHECK(t, y[j] == ldexp(x[j], -60));
    for (spca_int i = 0; i < n; i++) { /* LL' less the damping */
        want[i] = (double)(below(t, 9) - 4);
        for (spca_int l = 0; l <= i; l++)
            L[i * n + l] = i == l ? (double)between(t, 2, 4) : (double)(below(t, 5) - 2);
    }
    for (spca_int i = 0; i < n; i++)
        for (spca_int l = 0; l < n; l++) {
            double sum = 0;
            for (spca_int m = 0; m < n; m++) sum += L[i * n + m] * L[l * n + m];
            b[i] += sum * want[l];
            if (l <= i) H[i + l * n] = sum - (i == l ? damping : 0);
        }
    CHECK(t, spca_solve_damped(n, damping, H, b));
    for (spca_int i = 0; i < n; i++) CHECK(t, fabs(b[i] - want[i]) <= 1e-10);
}

/* The steps in turn: a feasible unit vector, its own objective, no less than after one step, and
 * no more than without any rule; and wherever it is stopped, it says so. */
void SPCA(check_unit_ascent)(trial_t *t)
{
    problem_t q;
    SPCA(problem_of)(t, &q, TAMED | SMALL_ONE | (chance(t, 50) ? DEFLATED : 0));
    operator_t *A = &q.A;
    spca_int p = A->p, units = between(t, 1, p), least, n_iter = 0;
    spca_rule rule = rule_of(t, (int)below(t, 4), units, p, &least);
    const spca_supports *o = &rule.of;
    spca_int room = 2 * p + A->m + A->t, max_iter = chance(t, 30) ? 0 : between(t, 1, 40);
    double *start = SCRATCH(t, p, double), *best = SCRATCH(t, p, double), *norm, *x;
    double scale = q.size, objective = 0, quadratic = 0, square = 0, form = 0, sum, all;
    uint8_t *support = SCRATCH(t, units, uint8_t), *kept = SCRATCH(t, units, uint8_t);
    spca_status status;
    for (spca_int j = 0; j < p; j++) start[j] = (double)(below(t, 9) - 4);
    rule.count = between(t, least > 0 ? least : 1, p);
    if (rule.step == SPCA_UNITS_BOUND) rule.level = 1 + (double)below(t, 33) / 16;
    if (rule.step == SPCA_UNITS_BOUND && p > 1 && chance(t, 50)) {
        double *Q = zeros(t, p), size = 0; /* an earlier loading */
        for (spca_int j = 0; j < p; j++) {
            Q[j] = (double)(1 + below(t, 4));
            size += Q[j] * Q[j];
        }
        for (spca_int j = 0; j < p; j++) Q[j] /= sqrt(size);
        rule.t = 1;
        rule.Q = Q;
    }
    if (rule.step == SPCA_UNITS_L0) rule.level *= scale / 16;
    if (rule.step == SPCA_UNITS_L1) rule.level *= sqrt(scale) / 16;
    q.stops.at = chance(t, 20) ? below(t, 6) : -1;
    status = SPCA(unit_ascent)(
        A, &rule, max_iter, 1e-9, q.stops.at >= 0 ? stop_at : NULL, &q.stops, start, WORK(t, room),
        SCRATCH(t, 2 * p + spca_step_work(&rule), double), SCRATCH(t, p, spca_int), kept, best,
        support, &objective, &quadratic, &n_iter);
    digest_int(t, status);
    digest_int(t, n_iter);
    if (rule.t) check_one_step(t, &rule, start, kept);
    CHECK(t, status == SPCA_OK || status == SPCA_NOT_CONVERGED || status == SPCA_ZERO_VECTOR ||
                 (status == SPCA_STOPPED && q.stops.at >= 0 && q.stops.asked > q.stops.at));
    CHECK(t, n_iter >= 0 && n_iter <= max_iter);
    if (status == SPCA_ZERO_VECTOR || !isfinite(objective)) return;
    digest(t, &objective, sizeof objective);
    x = SCRATCH(t, p, double);
    norm = norms_of(t, o, best, x);
    for (spca_int j = 0; j < p; j++) {
        CHECK(t, x[j] == best[j] && (support[o->unit[j]] || best[j] == 0));
        square += best[j] * best[j];
        for (spca_int i = 0; i < p; i++) form += best[i] * q.dense[i + j * p] * best[j];
    }
    CHECK(t, NEAR(square, 1, 10));
    for (spca_int l = 0; l < rule.t; l++) {
        double product = 0;
        for (spca_int j = 0; j < p; j++) product += rule.Q[l * p + j] * best[j];
        CHECK(t, fabs(product) < 1e-10);
    }
    sum = beside(o, norm, &all);
    if (rule.step == SPCA_UNITS_BOUND) CHECK(t, sum <= rule.level * (1 + 1e-9));
    if (rule.step == SPCA_UNITS_TRUNCATED) {
        spca_int used = 0;
        for (spca_int u = 0; u < units; u++) used += support[u] ? o->size[u] : 0;
        CHECK(t, used <= rule.count);
    }
    if (!q.exact || scale == 0) return; /* of constant columns, rounding of their means is left */
    CHECK(t, fabs(form - quadratic) <= 1e4 * EPSILON * scale * (double)p);
    sum = quadratic; /* what the rule maximizes */
    if (rule.step == SPCA_UNITS_L1 || rule.step == SPCA_UNITS_L0) {
        sum = rule.step == SPCA_UNITS_L1 ? sqrt(fmax(quadratic, 0)) : quadratic;
        for (spca_int u = 0; u < units; u++)
            if (!o->included[u])
                sum -= rule.level * (rule.step == SPCA_UNITS_L1 ? norm[u] : norm[u] > 0);
    }
    CHECK(t, NEAR(objective, sum, fabs(sum) + fabs(quadratic) + rule.level * (double)units));
}

/* The best x'Gx over unit vectors of a face: an eigenvector of a part of G that has the signs. */
static double best_of_faces(trial_t *t, spca_int k, const double *G, const int8_t *signs)
{
    double part[FACES * FACES], values[FACES], V[FACES * FACES], best = -HUGE_VAL;
    for (uint32_t face = 1; face < 1u << k; face++) {
        spca_int S[FACES], n = 0;
        for (spca_int j = 0; j < k; j++)
            if (face >> j & 1) S[n++] = j;
        for (spca_int a = 0; a < n; a++)
            for (spca_int b = 0; b < n; b++) part[a + b * n] = G[S[a] + S[b] * k];
        CHECK(t, jacobi(n, part, values, V));
        for (spca_int l = 0; l < n; l++)
            for (int side = -1; side <= 1; side += 2) {
                int good = 1;
                for (spca_int a = 0; a < n; a++) good &= side * signs[S[a]] * V[a + l * n] >= 0;
                if (good) best = fmax(best, values[l]);
            }
    }
    return best;
}

void SPCA(check_signed_vector)(trial_t *t)
{
    spca_int k = between(t, 1, FACES);
    int8_t *signs = SCRATCH(t, k, int8_t);
    double *G = zeros(t, k * k), *begin = SCRATCH(t, k, double), *best = SCRATCH(t, k, double);
    double value = 0, form = 0, square = 0, size = 0;
    SPCA(symmetric)(t, k, SPCA(style)(t, 1), chance(t, 50), G);
    for (spca_int a = 0; a < k * k; a++) size = fmax(size, fabs(G[a]));
    for (spca_int j = 0; j < k; j++) {
        signs[j] = (int8_t)(below(t, 3) - 1);
        begin[j] = (double)(below(t, 9) - 4);
    }
    CHECK(t,
          spca_signed_vector(k, G, signs, chance(t, 50) ? begin : NULL, NULL, NULL,
                             SCRATCH(t, 4 * k * k + 32 * k, double), SCRATCH(t, 12 * k, blas_int),
                             SCRATCH(t, k, spca_int), best, &value) == SPCA_OK);
    for (spca_int a = 0; a < k; a++) {
        CHECK(t, signs[a] * best[a] >= 0);
        square += best[a] * best[a];
        for (spca_int b = 0; b < k; b++) form += best[a] * best[b] * G[a + b * k];
    }
    CHECK(t, NEAR(square, 1, 10) && fabs(form - value) <= 1e-12 * size * (double)k);
    CHECK(t, value >= best_of_faces(t, k, G, signs) - 1e-9 * size * (double)k);
    digest(t, &value, sizeof value);
}
