/* check_race.c - the search of a matrix in memory: its races against those by plain loops, what it
 * finds against eigenvalues of submatrices, and truncated power of a matrix. */
#include "core.h"

/* The norms of the k largest entries of each row, one after another by search. */
static void norms(trial_t *t, spca_int p, const double *A, double size)
{
    spca_int k = between(t, 1, p), *row = SCRATCH(t, p, spca_int);
    real *copy = WORK(t, p * p), *found = WORK(t, p);
    double *left = zeros(t, p);
    for (spca_int a = 0; a < p * p; a++) copy[a] = (real)A[a];
    for (spca_int i = 0; i < p; i++) row[i] = p - 1 - i;
    SPCA(largest_norms)(p, k, p, row, copy, WORK(t, p), SCRATCH(t, k, spca_int), found);
    for (spca_int i = 0; i < p; i++) {
        double square = 0;
        for (spca_int j = 0; j < p; j++) left[j] = fabs((double)copy[row[i] * p + j]);
        for (spca_int a = 0; a < k; a++) {
            spca_int most = 0;
            for (spca_int j = 1; j < p; j++) most = left[j] > left[most] ? j : most;
            square += left[most] * left[most];
            left[most] = -1;
        }
        CHECK(t, NEAR((double)found[i], sqrt(square), size * (double)p));
    }
}

/* max ||T_k(a_j)||^2/a_jj, which the best of all columns is not below where A is definite; or the
 * least of those columns whose ||T_k(a_j)|| is nearly the largest. */
static double best_column(trial_t *t, spca_int p, spca_int k, const double *A, int all)
{
    double best = 0, largest = 0, least = HUGE_VAL, *left = zeros(t, p), *norm = zeros(t, p);
    for (spca_int i = 0; i < p; i++) {
        double square = 0;
        for (spca_int j = 0; j < p; j++) left[j] = fabs(A[i * p + j]);
        for (spca_int a = 0; a < k; a++) {
            spca_int most = 0;
            for (spca_int j = 1; j < p; j++) most = left[j] > left[most] ? j : most;
            square += left[most] * left[most];
            left[most] = -1;
        }
        norm[i] = square;
        largest = fmax(largest, square);
        if (A[i * (p + 1)] > 0) best = fmax(best, square / A[i * (p + 1)]);
    }
    for (spca_int i = 0; i < p; i++)
        if (norm[i] >= largest * (1 - 1e-4) && A[i * (p + 1)] > 0)
            least = fmin(least, norm[i] / A[i * (p + 1)]);
    return all ? best : fmin(least, best);
}

/* The best support of a search by hand, of a matrix by rows. */
static spca_int best_by(trial_t *t, spca_int p, spca_int k, const double *rows, double *scores,
                        const spca_search_plan *plan, spca_int *index, spca_search_counts *counts)
{
    spca_int *runs = SCRATCH(t, plan->ends, spca_int), count = -1, reached = 0;
    real *A = WORK(t, p * p), *score = WORK(t, p);
    double *value = SCRATCH(t, plan->ends, double);
    spca_int bytes = (spca_int)SPCA(search_work)(p, k, scores != NULL, plan);
    for (spca_int a = 0; a < p * p; a++) A[a] = (real)rows[a];
    for (spca_int j = 0; j < p; j++) score[j] = scores ? (real)scores[j] : (real)NAN;
    CHECK(t, SPCA(search)(p, k, A, score, scores != NULL, plan, NULL, NULL,
                          SCRATCH(t, bytes / 8 + 1, double), index, value, runs, &count,
                          counts) == SPCA_OK);
    for (spca_int e = 0; e < count; e++) reached += runs[e];
    CHECK(t, counts->n_iter > 0 && runs[0] > 0 && reached <= counts->starts);
    for (spca_int j = 0; scores && j < p; j++) scores[j] = (double)score[j];
    return count;
}

/* Of two that tie the first, which is the second best by rounding; which columns start, and which
 * of them go on. */
static void by_hand(trial_t *t)
{
    const double more = 1 + 4 * EPSILON;
    const double single[9] = {1, 0, 0, 0, more, 0, 0, 0, 0.5};
    const double pairs[9] = {1, 0.5, 0.5 * more, 0.5, 1, 0, 0.5 * more, 0, 1};
    const double beside[9] = {0.1, 3, 0, 3, 0.1, 0, 0, 0, 1}; /* norms of columns mislead */
    const spca_int expected[] = {0, 1, 2, 0, 1, 0, 2};
    double growing[64] = {0}, scores[8] = {0};
    spca_search_plan plan = {.starts = 3, .max_iter = 9, .ends = 4, .tie = 1e-5, .exact = 8};
    spca_int index[8];
    spca_search_counts counts;
    for (spca_int k = 1; k <= 2; k++) {
        CHECK(t, best_by(t, 3, k, k == 1 ? single : pairs, NULL, &plan, index, &counts) == 4 - k);
        for (spca_int a = 0; a < (4 - k) * k; a++) CHECK(t, index[a] == expected[3 * (k - 1) + a]);
    }
    plan.rounds = plan.steps[0] = plan.keep[0] = 1;
    CHECK(t, best_by(t, 3, 1, beside, NULL, &plan, index, &counts) == 1 && index[0] == 2);
    for (spca_int j = 0; j < 8; j++) growing[9 * j] = (double)(j + 1);
    plan.rounds = 0;
    plan.starts = 1;
    CHECK(t, best_by(t, 8, 1, growing, NULL, &plan, index, &counts) == 1 && index[0] == 7);
    plan.starts = 4; /* the best of the five that are looked at, by scores: the last, or all tie */
    for (plan.exact = 7; plan.exact <= 8; plan.exact++)
        for (spca_int last = 0; last <= 3; last += 3) {
            for (spca_int j = 0; j < 8; j++) scores[j] = last && j >= last;
            CHECK(t, best_by(t, 8, 1, growing, scores, &plan, index, &counts) == 4);
            for (spca_int e = 0; e < 4; e++)
                CHECK(t, index[e] == last + 4 - e && counts.starts == 4);
            for (spca_int j = 0; j < 8; j++)
                CHECK(t, scores[j] == (j >= last && j < last + 5 ? (double)(j + 1) : 0));
        }
}

/* Of ends whose values nearly tie with the best, at any scale, the one whose variables come first;
 * the others by their values. */
static void first_of_ties(trial_t *t)
{
    const double tie = SINGLE ? 1e-3 : 1e-6;
    spca_int p = between(t, 4, 9), k = between(t, 2, 3), first = 0, index[27];
    spca_search_plan plan = {.starts = p, .max_iter = 60, .ends = 9, .tie = tie, .exact = 9};
    spca_search_counts counts;
    double A[81], value[9], best = 0, size = ldexp(1, (int)between(t, -8, 8));
    for (spca_int i = 0; i < p; i++)
        for (spca_int j = 0; j <= i; j++) {
            double off = tie * ((double)below(t, 41) / 10 - 2);
            A[i * p + j] = A[j * p + i] = size * (i == j ? 1 : 0.5) * (1 + off);
        }
    spca_int count = best_by(t, p, k, A, NULL, &plan, index, &counts);
    for (spca_int e = 0; e < count; e++) {
        value[e] = largest_eigenvalue(t, p, A, NULL, k, index + e * k);
        best = fmax(best, value[e]);
        CHECK(t, e < 2 || value[e] <= value[e - 1] * (1 + 1e-2 * tie));
    }
    for (spca_int e = 0; e < count; e++) {
        const spca_int *a = index + first * k, *b = index + e * k;
        spca_int at = 0;
        double off = (best - value[e]) / (tie * best);
        if (fabs(off - 1) < 1e-2) return; /* rounding may decide */
        while (at < k && a[at] == b[at]) at++;
        if (e > 0 && off < 1 && (at == k || b[at] < a[at])) first = e;
    }
    CHECK(t, first == 0 && value[0] >= best * (1 - tie * (1 + 1e-2)));
}

/* A search that is stopped at its queries: what it has found by then, the more the later. */
static void stopping(trial_t *t, spca_int p, const double *A, double size, spca_int k,
                     const spca_search_plan *plan)
{
    spca_int *index = SCRATCH(t, plan->ends * k, spca_int),
             *runs = SCRATCH(t, plan->ends, spca_int);
    spca_int bytes = (spca_int)SPCA(search_work)(p, k, 0, plan);
    double *value = SCRATCH(t, plan->ends, double), *work = SCRATCH(t, bytes / 8 + 1, double);
    double near = (SINGLE || p > plan->exact ? 1e-4 : 1e-8) * size * (double)p, before = -HUGE_VAL;
    real *copy = WORK(t, p * p), *score = WORK(t, p);
    spca_search_counts counts;
    for (spca_int a = 0; a < p * p; a++) copy[a] = (real)A[a];
    for (spca_int at = 0;; at += 1 + below(t, 4)) {
        stop_t stop = {0, at};
        spca_int count = -1;
        spca_status status = SPCA(search)(p, k, copy, score, 0, plan, stop_at, &stop, work, index,
                                          value, runs, &count, &counts);
        CHECK(t, status == (stop.asked > at ? SPCA_STOPPED : SPCA_OK) && count <= plan->ends);
        CHECK(t, (count > 0 ? value[0] : -HUGE_VAL) >= before - near);
        before = count > 0 ? value[0] : -HUGE_VAL;
        for (spca_int e = 0; e < count; e++)
            CHECK(t, value[e] <= largest_eigenvalue(t, p, A, NULL, k, index + e * k) + near);
        if (stop.asked <= at) return;
    }
}

/* The search of a matrix in memory: different supports, the best first, and their eigenvalues;
 * where that is proved, the best of all. */
static void searching(trial_t *t, spca_int p, const double *A, double size, spca_int k,
                      int definite)
{
    int swaps = chance(t, 60);
    spca_search_plan plan = {.starts = between(t, 1, p + 5),
                             .rounds = between(t, 0, 2),
                             .steps = {between(t, 1, 3), 2},
                             .keep = {between(t, 1, p), between(t, 1, 4)},
                             .width = {chance(t, 50) ? 0 : between(t, 0, p + 5), between(t, 0, p)},
                             .max_iter = between(t, 1, 60),
                             .tol = SINGLE ? 1e-5 : 1e-9,
                             .ends = between(t, 1, 6),
                             .tried = swaps ? between(t, 0, p + 8) : 0,
                             .swapped = swaps ? p + 8 : 0,
                             .rise = 1e-10,
                             .gap = 1e-8,
                             .slack = SINGLE ? 1e-4 : 1e-9,
                             .tie = 1e-12,
                             .exact = chance(t, 50) ? 0 : p,
                             .nodes = chance(t, 50) ? 0 : between(t, 1, 40),
                             .hopeless = 0.5};
    spca_int *index = SCRATCH(t, plan.ends * k, spca_int), *runs = SCRATCH(t, plan.ends, spca_int);
    spca_int count = -1, known = chance(t, 50);
    double *value = SCRATCH(t, plan.ends, double);
    real *copy = WORK(t, p * p), *score = WORK(t, p);
    spca_search_counts counts;
    size_t bytes = SPCA(search_work)(p, k, (int)known, &plan);
    for (spca_int a = 0; a < p * p; a++) copy[a] = (real)A[a];
    for (spca_int j = 0; j < p; j++) score[j] = (real)below(t, 9);
    CHECK(t, SPCA(search)(p, k, copy, score, (int)known, &plan, NULL, NULL,
                          SCRATCH(t, (spca_int)bytes / 8 + 1, double), index, value, runs, &count,
                          &counts) == SPCA_OK);
    CHECK(t, count >= 0 && count <= plan.ends && counts.starts <= p + 1);
    CHECK(t, counts.nodes <= plan.nodes && counts.ends <= counts.starts);
    digest(t, value, (size_t)count * sizeof *value);
    digest_int(t, count > 0 ? counts.n_iter : 0);
    for (spca_int e = 0; e < count; e++) {
        const spca_int *S = index + e * k;
        for (spca_int a = 0; a < k; a++)
            CHECK(t, S[a] >= 0 && S[a] < p && (a == 0 || S[a] > S[a - 1]));
        double off = value[e] - largest_eigenvalue(t, p, A, NULL, k, S);
        CHECK(t, (swaps ? fabs(off) : off) <= (SINGLE || !swaps ? 1e-4 : 1e-8) * size * (double)p);
        CHECK(t, value[e] <= value[0] + 1e-11 * size * (double)p);
        CHECK(t, e < 2 || value[e] <= value[e - 1]);
        CHECK(t, e == 0 || memcmp(S, S - k, (size_t)k * sizeof *S));
    }
    if (definite && (plan.starts >= p || !known) &&
        (plan.rounds == 0 || max_int(plan.width[0], plan.rounds > 1 ? plan.width[1] : 0) <= k))
        CHECK(t, count > 0
                     ? value[0] >= best_column(t, p, k, A, plan.starts >= p) -
                                       (SINGLE || p > plan.exact ? 1e-4 : 1e-8) * size * (double)p
                     : size == 0);
    by_hand(t);
    first_of_ties(t);
    if (p <= 14) stopping(t, p, A, size, k, &plan);
    for (unsigned of = 0; counts.proved && p <= 10 && of < 1U << p; of++) { /* none is better */
        if (__builtin_popcount(of) != k) continue;
        for (spca_int j = 0, a = 0; j < p; j++)
            if (of >> j & 1) index[a++] = j;
        CHECK(t, largest_eigenvalue(t, p, A, NULL, k, index) <=
                     value[0] + (SINGLE ? 1e-4 : 1e-8) * size * (double)p);
    }
}

/* x <- T_k(y)/||.||, dense, and its support in a mask; 0 where rounding could choose another. */
static int truncated(spca_int p, spca_int k, const double *y, double *x, uint8_t *mask)
{
    double square = 0, least = HUGE_VAL, outside = 0;
    for (spca_int i = 0; i < p; i++) {
        spca_int larger = 0;
        for (spca_int j = 0; j < p; j++)
            larger += fabs(y[j]) > fabs(y[i]) || (j < i && fabs(y[j]) == fabs(y[i]));
        mask[i] = larger < k;
        x[i] = mask[i] ? y[i] : 0;
        square += x[i] * x[i];
        if (mask[i])
            least = fmin(least, fabs(y[i]));
        else
            outside = fmax(outside, fabs(y[i]));
    }
    for (spca_int i = 0; i < p; i++) x[i] /= square > 0 ? sqrt(square) : 1;
    return square > 0 && least - outside > 1e-6 * sqrt(square);
}

/* A race by plain loops: runs x (n x p), their supports and values, best first; different ones. */
typedef struct {
    spca_int p, n;
    const double *A;
    double *x, *value;
    uint8_t *mask;
} plain_race_t;

static int plain_steps(trial_t *t, plain_race_t *o, spca_int steps, spca_int k)
{
    spca_int p = o->p;
    double *y = zeros(t, p);
    for (spca_int run = 0; run < o->n; run++)
        for (spca_int step = 0; step <= steps; step++) { /* the last is for the value alone */
            double *x = o->x + run * p;
            o->value[run] = 0;
            for (spca_int i = 0; i < p; i++) {
                y[i] = 0;
                for (spca_int j = 0; j < p; j++) y[i] += o->A[i * p + j] * x[j];
                o->value[run] += x[i] * y[i];
            }
            if (step < steps && !truncated(p, k, y, x, o->mask + run * p)) return 0;
        }
    return 1;
}

static int plain_best(trial_t *t, plain_race_t *o, spca_int keep)
{
    spca_int p = o->p, found = 0, *order = SCRATCH(t, o->n, spca_int);
    plain_race_t old = *o;
    o->x = zeros(t, old.n * p);
    o->value = zeros(t, old.n);
    o->mask = SCRATCH(t, old.n * p, uint8_t);
    for (spca_int i = 0; i < old.n; i++) {
        spca_int at = 0;
        for (spca_int j = 0; j < old.n; j++) {
            int same = !memcmp(old.mask + i * p, old.mask + j * p, (size_t)p);
            if (i != j && fabs(old.value[i] - old.value[j]) <= 1e-6 * fabs(old.value[i]) && !same)
                return 0;
            at += old.value[j] > old.value[i] || (j < i && old.value[j] == old.value[i]);
        }
        order[at] = i;
    }
    for (spca_int i = 0; i < old.n && found < keep; i++) {
        int known = 0;
        for (spca_int l = 0; l < found; l++)
            known |= !memcmp(o->mask + l * p, old.mask + order[i] * p, (size_t)p);
        if (known) continue;
        memcpy(o->x + found * p, old.x + order[i] * p, (size_t)p * sizeof *o->x);
        memcpy(o->mask + found * p, old.mask + order[i] * p, (size_t)p);
        o->value[found++] = old.value[order[i]];
    }
    o->n = found;
    return 1;
}

/* The race against that by plain loops, where nothing in it is nearly a tie. */
static void racing(trial_t *t, spca_int p, const double *A, spca_int k)
{
    spca_search_plan plan = {.starts = between(t, 1, p + 2),
                             .rounds = between(t, 0, 2),
                             .steps = {between(t, 1, 3), between(t, 1, 2)},
                             .keep = {between(t, 1, p), between(t, 1, 4)},
                             .width = {between(t, 0, p + 2), between(t, 0, p)},
                             .tol = 0};
    spca_int starts = min_int(p, plan.starts), wide = k, count = -1, most = 1;
    if (plan.rounds > 0) wide = max_int(k, min_int(p, plan.width[0]));
    plain_race_t o = {p, p, A, zeros(t, p * p), zeros(t, p), SCRATCH(t, p * p, uint8_t)};
    double *norm = zeros(t, p);
    int plain = !SINGLE;
    real *copy = WORK(t, p * p), *score = WORK(t, p), *value = WORK(t, starts * wide);
    spca_int *index = SCRATCH(t, starts * wide, spca_int), *n_iter = SCRATCH(t, starts, spca_int);
    spca_int bytes = (spca_int)SPCA(race_work)(p, k, 0, &plan);
    for (spca_int a = 0; a < p * p; a++) copy[a] = (real)A[a];
    CHECK(t, SPCA(race)(p, k, copy, score, 0, &plan, NULL, NULL, SCRATCH(t, bytes / 8 + 1, double),
                        index, value, n_iter, &count) == SPCA_OK);
    CHECK(t, count >= 0 && count <= starts);
    digest(t, index, (size_t)(count * k) * sizeof *index);
    for (spca_int i = 0; i < p && plain; i++) {
        plain = truncated(p, wide, A + i * p, o.x + i * p, o.mask + i * p);
        for (spca_int j = 0; j < p; j++) norm[i] += o.x[i * p + j] * A[i * p + j];
    }
    for (spca_int i = 0, kept = 0; i < p && plain; i++) { /* those of the largest norms */
        spca_int larger = 0;
        for (spca_int j = 0; j < p; j++) {
            larger += norm[j] > norm[i];
            plain &= i == j || fabs(norm[i] - norm[j]) > 1e-6 * norm[i];
        }
        if (larger >= starts) continue;
        memmove(o.x + kept * p, o.x + i * p, (size_t)p * sizeof *o.x);
        memmove(o.mask + kept++ * p, o.mask + i * p, (size_t)p);
        o.n = kept;
    }
    if (!plain || !plain_steps(t, &o, 0, wide)) return;
    for (spca_int r = 0; r < plan.rounds; r++) {
        spca_int steps = plan.steps[r] - (r == 0);
        if (o.n <= plan.keep[r]) continue;
        most += steps;
        if (r > 0 && steps > 0) wide = max_int(k, min_int(wide, plan.width[r]));
        if (!plain_steps(t, &o, steps, wide) || !plain_best(t, &o, plan.keep[r])) return;
    }
    most += wide > k;
    if (!plain_steps(t, &o, wide > k, k) || !plain_best(t, &o, o.n)) return;
    CHECK(t, count == o.n);
    for (spca_int e = 0; e < count; e++) {
        CHECK(t, n_iter[e] >= 1 && n_iter[e] <= most);
        for (spca_int i = 0, a = 0; i < p; i++) {
            if (!o.mask[e * p + i]) continue;
            CHECK(t, index[e * k + a] == i);
            double got = (double)value[e * k + a++], want = o.x[e * p + i];
            CHECK(t, fabs(k > 1 ? got - want : fabs(got) - 1) <= 1e-5);
        }
    }
}

/* Truncated power of a matrix in memory from a support: a unit vector, and its quadratic form; and
 * the steps by plain loops, where nothing is nearly a tie. */
static void powering(trial_t *t, spca_int p, const double *A, double size, spca_int k,
                     const spca_int *support, int definite)
{
    spca_int nnz = k, n_iter = -1, most = between(t, 1, 40), *index = SCRATCH(t, k, spca_int);
    real *copy = WORK(t, p * p), *value = WORK(t, k), objective = 0;
    double sum = 0, form = 0;
    spca_status status;
    for (spca_int a = 0; a < p * p; a++) copy[a] = (real)A[a];
    for (spca_int a = 0; a < k; a++) value[a] = 1;
    memcpy(index, support, (size_t)k * sizeof *index);
    status = SPCA(truncated_power_of_matrix)(p, k, copy, most, (real)1e-6, NULL, NULL, &nnz, index,
                                             value, WORK(t, 3 * p + k * k + 2 * k),
                                             SCRATCH(t, 2 * k, spca_int), &objective, &n_iter);
    CHECK(t, status == SPCA_OK || status == SPCA_NOT_CONVERGED || status == SPCA_ZERO_VECTOR);
    if (status < 0) return;
    CHECK(t, nnz == k && n_iter >= 0 && n_iter <= most);
    for (spca_int a = 0; a < k; a++) {
        CHECK(t, index[a] >= 0 && index[a] < p && (a == 0 || index[a - 1] < index[a]));
        sum += (double)value[a] * (double)value[a];
        for (spca_int b = 0; b < k; b++)
            form += (double)value[a] * (double)value[b] * A[index[a] + index[b] * p];
    }
    CHECK(t, NEAR(sum, 1, 1) && NEAR(objective, form, size * (double)p));
    plain_race_t o = {p, 1, A, zeros(t, p), &form, SCRATCH(t, p, uint8_t)};
    for (spca_int a = 0; a < k; a++) o.x[support[a]] = 1;
    if (SINGLE || !definite || !plain_steps(t, &o, n_iter, k)) return;
    for (spca_int a = 0; n_iter > 0 && a < k; a++)
        CHECK(t, fabs(fabs((double)value[a]) - fabs(o.x[index[a]])) <= 1e-5);
}

/* A variable far larger than those of the support, whose product with the start is 0: it joins as
 * soon as the entries differ. */
static void leaving_a_support(trial_t *t)
{
    spca_int big = below(t, 3), one = (big + 1) % 3, two = (big + 2) % 3, nnz = 2, n_iter = 0;
    spca_int index[2] = {min_int(one, two), max_int(one, two)}, iwork[4];
    real A[9], value[2] = {1, 1}, work[17], objective = 0;
    A[big * 4] = 5000, A[one * 4] = (real)1.2, A[two * 4] = 1;
    A[one * 3 + two] = A[two * 3 + one] = (real)0.9;
    A[big * 3 + one] = A[one * 3 + big] = 20;
    A[big * 3 + two] = A[two * 3 + big] = -20;
    CHECK(t, SPCA(truncated_power_of_matrix)(3, 2, A, 50, (real)1e-6, NULL, NULL, &nnz, index,
                                             value, work, iwork, &objective, &n_iter) == SPCA_OK);
    CHECK(t, objective > 5000 && (index[0] == big || index[1] == big));
}

void SPCA(check_race)(trial_t *t)
{
    spca_int p = between(t, 2, chance(t, 15) ? 90 : 14), k = between(t, 1, p - 1 < 8 ? p - 1 : 8);
    style_t style = SPCA(style)(t, 1);
    double *A = zeros(t, p * p), size = 0;
    const spca_int *support = SPCA(subset)(t, p, k);
    int definite = chance(t, 70);
    SPCA(symmetric)(t, p, style, definite, A);
    for (spca_int a = 0; a < p * p; a++) size = fmax(size, fabs(A[a]));
    powering(t, p, A, size, k, support, definite);
    norms(t, p, A, size);
    leaving_a_support(t);
    searching(t, p, A, size, k, definite);
    if (definite && p <= 14) racing(t, p, A, k);
}
