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

void SPCA(check_units)(trial_t *t)
{
    spca_int units = between(t, 1, MOST), p = between(t, units, 2 * MOST), count = 0, least = 0;
    spca_int *unit = SCRATCH(t, p, spca_int), *size = SCRATCH(t, units, spca_int);
    uint8_t *allowed = SCRATCH(t, units, uint8_t), *included = SCRATCH(t, units, uint8_t);
    uint8_t *kept = SCRATCH(t, units, uint8_t);
    int8_t *signs = SCRATCH(t, p, int8_t);
    spca_supports of = {.p = p, .units = units, .unit = unit, .size = size};
    double *x = SCRATCH(t, p, double), *y = SCRATCH(t, p, double);
    double *norm = SCRATCH(t, units, double);
    long double sum = 0, want;
    spca_rule rule = {.step = SPCA_UNITS_TRUNCATED};
    of.sized = chance(t, 50);
    for (spca_int u = 0; u < units; u++) size[u] = of.sized ? 0 : 1;
    for (spca_int j = 0; j < p; j++) {
        unit[j] = j < units ? j : below(t, units);
        if (of.sized) size[unit[j]]++;
        signs[j] = (int8_t)(below(t, 3) - 1);
        x[j] = (double)(below(t, 21) - 10) / 4;
    }
    for (spca_int u = 0; u < units; u++) {
        allowed[u] = u == 0 || !chance(t, 20);
        included[u] = allowed[u] && chance(t, 15);
        least += included[u] ? size[u] : 0;
    }
    of.allowed = allowed, of.included = included, of.signs = chance(t, 50) ? signs : NULL;
    count = between(t, least, p);
    memcpy(y, x, (size_t)p * sizeof *y);
    spca_project_units(&of, y);
    for (spca_int j = 0; j < p; j++) {
        int wrong = of.signs && (double)signs[j] * x[j] < 0;
        CHECK(t, y[j] == (allowed[unit[j]] && !wrong ? x[j] : 0));
    }
    spca_unit_norms(&of, y, norm);
    for (spca_int u = 0; u < units; u++) {
        long double square = 0;
        for (spca_int j = 0; j < p; j++)
            square += unit[j] == u ? (long double)y[j] * (long double)y[j] : 0;
        CHECK(t, NEAR(norm[u], (double)sqrtl(square), 10));
    }
    want = best_of_sets(&of, norm, count);
    rule.of = of, rule.count = count;
    spca_unit_step(&rule, 1, x, SCRATCH(t, spca_unit_work(&of, count), double),
                   SCRATCH(t, units, spca_int), kept);
    for (spca_int u = 0; u < units; u++)
        sum += kept[u] ? (long double)norm[u] * (long double)norm[u] : 0;
    CHECK(t, fabsl(sum - want) <= 1e-12L * (1 + want));
    for (spca_int u = 0; u < units; u++) CHECK(t, kept[u] ? allowed[u] : !included[u]);
    for (spca_int j = 0; want > 0 && j < p; j++) /* else something, so that an ascent goes on */
        CHECK(t, x[j] == (kept[unit[j]] ? y[j] : 0));
    digest(t, kept, (size_t)units);
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
