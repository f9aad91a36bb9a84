/* check_screen.c - a screen changes no bit of an answer, whatever was asked before. */
#include "core.h"

/* Some of it as before, so that references have something to say. */
static vector_t next_direction(trial_t *t, spca_int p, vector_t before, int again)
{
    if (!again || !before.index) return SPCA(sparse)(t, PLAIN, p, between(t, 1, p), chance(t, 20));
    real *value = SPCA(copy_of)(t, before.nnz, before.value);
    value[below(t, before.nnz)] *= (real)0.75;
    return (vector_t){before.nnz, before.index, value};
}

static void ask_both(trial_t *t, problem_t *q, spca_screen *s, vector_t v)
{
    operator_t *A = &q->A;
    spca_int p = A->p, k = between(t, 0, chance(t, 80) ? p / SPCA_GUESS_SHARE : p);
    spca_int *index[2], count[2] = {k, k}, room = SPCA(query_work)(A);
    real *value[2], quadratic[2] = {0, 0}, tau = (real)below(t, 60) / 30;
    int above = chance(t, 40), relative = chance(t, 70), nonnegative = chance(t, 30);
    spca_status status[2];
    spca_run before = A->run;
    for (int screened = 0; screened < 2; screened++) {
        A->screen = screened ? s : NULL;
        if (screened && p % 2) A->run = spca_pool_run;
        index[screened] = SCRATCH(t, above ? p : k, spca_int);
        value[screened] = WORK(t, above ? p : k);
        status[screened] =
            above ? SPCA(above)(A, v, tau, relative, NULL, NULL, WORK(t, room), count + screened,
                                index[screened], value[screened], quadratic + screened)
                  : SPCA(largest)(A, v, k, nonnegative, NULL, NULL, WORK(t, room), index[screened],
                                  value[screened], quadratic + screened);
    }
    A->screen = NULL;
    A->run = before;
    CHECK(t, status[0] == status[1]);
    if (status[0] < 0) return;
    CHECK(t, count[0] == count[1] && quadratic[0] == quadratic[1]);
    for (spca_int a = 0; a < count[0]; a++)
        CHECK(t, index[0][a] == index[1][a] && value[0][a] == value[1][a]);
    SPCA(digest)(t, status[1], count[1], value[1]);
}

void SPCA(check_screen)(trial_t *t)
{
    problem_t q;
    vector_t v = {0, NULL, NULL};
    SPCA(problem_of)(t, &q, SCREENED | (chance(t, 50) ? DEFLATED : 0));
    int quantized = chance(t, 70);
    spca_screen *s = SPCA(screen_of)(t, &q, quantized, !quantized || chance(t, 60));
    spca_int n = q.A.n, p = q.A.p, stops;
    for (spca_int i = between(t, 1, 9); i > 0; i--) {
        v = next_direction(t, p, v, chance(t, 60));
        if (chance(t, 15) && q.A.span_weight == 0)
            q.A.shift = (real)(q.size * (double)below(t, 4) / 2);
        ask_both(t, &q, s, v);
    }
    CHECK(t, s->queries > 0);
    /* stopped wherever it asks, the screen still tells the truth */
    q.A.screen = s;
    for (stops = 0;; stops++) {
        stop_t stop = {0, stops};
        real quadratic;
        spca_status status =
            SPCA(largest)(&q.A, v, 1, 0, stop_at, &stop, WORK(t, SPCA(query_work)(&q.A)),
                          SCRATCH(t, 1, spca_int), WORK(t, 1), &quadratic);
        if (stop.asked <= stops) break;
        CHECK(t, status == SPCA_STOPPED);
    }
    ask_both(t, &q, s, v);
    if (!q.A.row_major) return;
    q.A.screen = s;
    const spca_column_cache *cache = q.A.cache;
    spca_int count = between(t, 1, cache->capacity);
    const spca_int *list = SPCA(subset)(t, p, count);
    CHECK(t, SPCA(keep_columns)(&q.A, count, list, NULL, NULL) == SPCA_OK);
    for (spca_int a = 0; a < count; a++) {
        const real *kept = (const real *)cache->kept + cache->slot_list[a] * n;
        CHECK(t, cache->slot_list[a] >= 0 && cache->slot_list[a] < cache->capacity);
        for (spca_int i = 0; i < n; i++) CHECK(t, kept[i] == q.A.data[i * q.A.ld + list[a]]);
    }
    spca_int cursor = cache->cursor; /* what is there is not copied again */
    CHECK(t, SPCA(keep_columns)(&q.A, count, list, NULL, NULL) == SPCA_OK);
    CHECK(t, cache->cursor == cursor);
    operator_t plain = q.A; /* and has the bits of what is read from X */
    real *W = WORK(t, n * count), *other = WORK(t, n * count);
    plain.cache = NULL;
    CHECK(t, SPCA(images)(&q.A, count, list, NULL, NULL, WORK(t, p), W) == SPCA_OK);
    CHECK(t, SPCA(images)(&plain, count, list, NULL, NULL, WORK(t, p), other) == SPCA_OK);
    CHECK(t, memcmp(W, other, (size_t)(n * count) * sizeof *W) == 0);
}

/* The query below largest and above: the list holds all that it may not leave out. */
void SPCA(check_screened)(trial_t *t)
{
    problem_t q;
    SPCA(problem_of)(t, &q, SCREENED | DEFLATED);
    operator_t *A = &q.A;
    spca_int n = A->n, p = A->p, k = between(t, 0, p), count = -1, at = 0;
    vector_t v = SPCA(sparse)(t, PLAIN, p, between(t, 1, p), 0);
    spca_screen *s = SPCA(screen_of)(t, &q, chance(t, 70), 1);
    real *y = WORK(t, p), *z = WORK(t, p), *f = WORK(t, n), *c = WORK(t, A->t),
         tau = (real)below(t, 40) / 20;
    const spca_int *list;
    A->shift = 0;
    CHECK(t, SPCA(subtracted)(A) ==
                 (A->deflation == SPCA_NO_DEFLATION || A->deflation == SPCA_SCHUR ? 0 : A->t));
    if (SPCA(forward)(A, v, NULL, NULL, WORK(t, p), f) < 0 || !SPCA(are_finite)(n, f)) return;
    for (spca_int i = 0; i < A->t; i++) c[i] = (real)below(t, 20) / 10 - 1;
    CHECK(t, A->backward(A, f, total_of(A, f), p, NULL, NULL, NULL, z) == SPCA_OK);
    if (!SPCA(are_finite)(p, z)) return;
    real *before = SPCA(copy_of)(t, p, z);
    SPCA(subtract)(A, v, c, p, NULL, z);
    for (spca_int j = 0; q.exact && j < p; j++) {
        double want = (double)before[j], size = fabs(want) + 1;
        for (spca_int i = 0; i < SPCA(subtracted)(A); i++)
            for (spca_int a = 0; a < A->direction[i].nnz; a++)
                if ((A->direction[i].index ? A->direction[i].index[a] : a) == j)
                    want -= (double)c[i] * (double)A->direction[i].value[a];
        CHECK(t, NEAR(z[j], want, size));
    }
    A->screen = s;
    CHECK(t, SPCA(screened)(A, v, f, c, k, k > 0 ? 0 : tau, 0, NULL, NULL, WORK(t, p), &count,
                            &list, y) == SPCA_OK);
    CHECK(t, count >= 0 && count <= p && (list || count == p));
    for (spca_int j = 0; j < p; j++) {
        spca_int larger = 0;
        if (at < count && (list ? list[at] : at) == j) {
            CHECK(t, y[at++] == z[j]);
            continue;
        }
        for (spca_int l = 0; l < p; l++)
            larger += fabs(z[l]) > fabs(z[j]) || (l < j && fabs(z[l]) == fabs(z[j]));
        CHECK(t, k > 0 ? larger >= k : fabs(z[j]) <= tau);
    }
    CHECK(t, at == count);
    SPCA(digest)(t, SPCA_OK, count, y);
    if (s->used != 1) return;
    double length = 0; /* what the reference leaves of the others, by Pythagoras */
    for (spca_int i = 0; i < n; i++) length += pow(s->direction[s->newest * n + i], 2);
    for (spca_int j = 0; j < p; j++) {
        double norm = (double)s->norm[j], far = 1e-3 * norm + 2 * (double)s->slack[j] + 1e-20,
               along = fabs((double)s->product[s->newest * p + j]) / sqrt(length), left;
        if (!(norm < 1e15)) continue; /* squares of floats leave the range */
        left = sqrt(fmax(norm * norm - along * along, 0));
        along = fmax(along - far, 0);
        CHECK(t, (double)s->residual[j] >= left);
        CHECK(t, (double)s->residual[j] <= sqrt(norm * norm - along * along) + far);
    }
}

/* Bounds by references that nearly depend on one another, whose products are as far off as slack
 * allows: an error of each counts by its weight, which is large then. */
void SPCA(check_reference_bounds)(trial_t *t)
{
    enum { APART = 20 };
    problem_t q;
    SPCA(problem_of)(t, &q, SCREENED | TAMED);
    operator_t *A = &q.A;
    spca_int n = A->n, p = A->p, count;
    spca_screen *s = SPCA(screen_of)(t, &q, 0, 1);
    real *f[2] = {SPCA(copy_of)(t, n, SPCA(numbers)(t, PLAIN, n)),
                  SPCA(copy_of)(t, n, SPCA(numbers)(t, PLAIN, n))};
    real *between_them = WORK(t, n), *third = WORK(t, n), *y = WORK(t, p), *z = WORK(t, p);
    float *slack = SCRATCH(t, p, float);
    const spca_int *list;
    vector_t none = {0, NULL, NULL};
    double norm = 0, size[2] = {0, 0};
    if (!q.exact || A->quotient || A->span_weight != 0 || n < 4) return;
    A->shift = 0;
    A->screen = s;
    for (spca_int j = 0; j < p; j++) slack[j] = s->slack[j] + s->norm[j] * 0x1p-8f;
    s->slack = slack;
    f[0][0] += 1; /* none is zero */
    for (spca_int i = 0; i < n; i++) {
        f[1][i] = f[0][i] + f[1][i] / APART;
        third[i] = (real)(i % 3 == 0 ? 1 : i % 3 - 2);
        for (int l = 0; l < 2; l++) size[l] += (double)f[l][i] * (double)f[l][i];
    }
    for (spca_int i = 0; i < n; i++) {
        between_them[i] = (real)((double)f[0][i] / sqrt(size[0]) - (double)f[1][i] / sqrt(size[1]));
        norm += (double)between_them[i] * (double)between_them[i];
    }
    if (!(norm > 1e-6)) return;
    norm = sqrt(norm) / (double)A->range;
    for (int l = 0; l < 2; l++)
        CHECK(t, SPCA(screened)(A, none, f[l], NULL, 0, 0, 0, NULL, NULL, WORK(t, p), &count, &list,
                                y) == SPCA_OK);
    if (s->known < 2) return; /* a direction of another size is not screened */
    for (int l = 0; l < 2; l++)
        for (spca_int j = 0; j < p; j++)
            s->product[(s->newest - l + SPCA_REFERENCES) % SPCA_REFERENCES * p + j] +=
                (l == j % 2 ? 1 : -1) * 0.75f * slack[j];
    CHECK(t, SPCA(screened)(A, none, third, NULL, 0, 0, 0, NULL, NULL, WORK(t, p), &count, &list,
                            y) == SPCA_OK);
    CHECK(t, A->backward(A, between_them, total_of(A, between_them), p, NULL, NULL, NULL, z) ==
                 SPCA_OK);
    for (spca_int j = 0; j < p; j++) {
        real tau = (real)fabs((double)z[j]);
        int asked = 0;
        if (!(tau > 0)) continue;
        CHECK(t, SPCA(screened)(A, none, between_them, NULL, 0, tau, 0, NULL, NULL, WORK(t, p),
                                &count, &list, y) == SPCA_OK);
        for (spca_int a = 0; a < count; a++) asked |= (list ? list[a] : a) == j;
        CHECK(t, asked);
        if (!list) return; /* it was a new reference */
    }
}
