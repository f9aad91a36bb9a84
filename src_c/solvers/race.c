/* race.c - a race of truncated power between the columns of a symmetric matrix in memory.
 *
 * For x = T_k(a_j)/||.||, a_j a column, x'Ax >= ||T_k(a_j)||^2/a_jj where A is semidefinite.  So
 * the columns whose k largest entries have the largest norms start.  All of them make a step, the
 * best of different supports go on, and few are left.  In the first rounds a run may have more
 * nonzeros than k, because these tell weak signals better. */
#include "race.h"

/* Sorts the first n of order by decreasing objective; equal ones keep their order.  It merges lists
 * of 1, 2, 4, ... runs. */
static void rank(runs_t *r, spca_int n)
{
    for (spca_int width = 1; width < n; width *= 2) {
        spca_int *from = r->order, *to = r->spare;
        for (spca_int start = 0; start < n; start += 2 * width) {
            spca_int a = start, middle = min_int(start + width, n), b = middle, at = start;
            spca_int end = min_int(start + 2 * width, n);
            while (a < middle || b < end) {
                int later =
                    a == middle || (b < end && r->objective[from[b]] > r->objective[from[a]]);
                to[at++] = later ? from[b++] : from[a++];
            }
        }
        r->order = to;
        r->spare = from;
    }
}

/* Whether two supports of k variables are the same. */
static int same(spca_int k, const spca_int *a, const spca_int *b)
{
    for (spca_int i = 0; i < k; i++)
        if (a[i] != b[i]) return 0;
    return 1;
}

spca_int SPCA(different_runs)(runs_t *r, spca_int n, spca_int most)
{
    spca_int found = 0, mask = r->size - 1;
    rank(r, n);
    for (spca_int i = 0; i < r->size; i++) r->table[i] = -1;
    for (spca_int i = 0; i < n; i++) {
        spca_int run = r->order[i], *support = r->index + run * r->widest, at;
        uint64_t hash = 0;
        if (!(r->objective[run] > -HUGE_VAL)) break;
        for (spca_int a = 0; a < r->k; a++)
            hash = (hash ^ (uint64_t)support[a]) * 0x9E3779B97F4A7C15u ^ hash >> 29;
        at = (spca_int)(hash >> 32) & mask;
        while (r->table[at] >= 0 && !same(r->k, r->index + r->table[at] * r->widest, support))
            at = (at + 1) & mask;
        if (r->table[at] >= 0)
            r->runs[r->table[at]] += r->runs[run];
        else if (found < most)
            r->order[found++] = r->table[at] = run;
    }
    return found;
}

/* Nonzeros of a run in a round: plan->width, but at least k, and no more than in the first round.
 */
static spca_int width_of(const spca_search_plan *plan, spca_int round, spca_int p, spca_int k)
{
    spca_int widest = plan->rounds > 0 ? max_int(k, min_int(p, plan->width[0])) : k;
    return round > 0 ? max_int(k, min_int(widest, plan->width[round])) : widest;
}

enum { LINE = 64 }; /* for do_parts: bytes that memory brings for one entry of x'Ax */

/* The reals of a part. */
static real *work_of(const parts_t *s, spca_int part)
{
    return s->work + part * (3 * s->p + s->k * s->k + 2 * s->k);
}

/* More steps for the runs `first` to `end` of order, to k nonzeros. */
typedef struct {
    parts_t *of;
    runs_t *runs;
    real *value;
    spca_int k, first, end, steps;
    double tol;
} steps_t;

/* The race of one call. */
typedef struct {
    spca_int starts, tried; /* tried: the columns whose norms are computed, a quarter more than
                               start where scores are known */
    runs_t runs;
    parts_t parts;
    real *value, *norm, *score;
    spca_int *order; /* (p): columns, those that are tried first */
} race_t;

/* Cuts the work of a race, or only counts it. */
static void race_room(race_t *race, spca_int p, spca_int k, int known, const spca_search_plan *plan,
                      room_t *room)
{
    race->starts = min_int(p, plan->starts);
    race->tried = known ? min_int(p, race->starts + race->starts / 4) : race->starts;
    race->runs.k = race->runs.widest = k = width_of(plan, 0, p, k);
    race->runs.count = race->tried;
    runs_room(&race->runs, room);
    race->value = TAKE(room, race->tried * k, real);
    race->norm = TAKE(room, race->tried, real);
    race->order = TAKE(room, p, spca_int);
    parts_room(&race->parts, p, k, room);
}

/* score_j = ||T_k(a_j)|| for the columns of a part. */
static void norms_part(void *context, spca_int part)
{
    race_t *race = context;
    const parts_t *s = &race->parts;
    spca_int first = s->p * part / s->parts, end = s->p * (part + 1) / s->parts;
    SPCA(largest_norms)(s->p, s->k, end - first, race->order + first, s->A, work_of(s, part),
                        s->iwork + part * 2 * s->k, race->score + first);
}

/* The first vector x = T_k(a_j)/||.|| of each run of a part, j = order_run, and norm_run =
 * ||T_k(a_j)||. */
static void first_part(void *context, spca_int part)
{
    race_t *race = context;
    const parts_t *s = &race->parts;
    for (spca_int run = part; run < race->tried; run += s->parts) {
        spca_int k = s->k, *index = race->runs.index + run * k;
        const real *a = s->A + race->order[run] * s->p;
        real *value = race->value + run * k;
        SPCA(select_largest)(s->p, a, k, work_of(s, part), index);
        for (spca_int l = 0; l < k; l++) value[l] = a[index[l]];
        race->runs.n_iter[run] = race->runs.runs[run] = 1;
        race->norm[run] = to_unit(k, value);
    }
}

/* x'Ax for x with k nonzeros, from one triangle of A. */
static real form(spca_int p, spca_int k, const real *A, const spca_int *index, const real *value)
{
    real sum = 0;
    for (spca_int b = 0; b < k; b++) {
        const real *row = A + index[b] * p;
        real part = 0;
        for (spca_int a = 0; a < b; a++) part += value[a] * row[index[a]];
        sum += value[b] * (2 * part + value[b] * row[index[b]]);
    }
    return sum;
}

/* The objectives x'Ax of the runs that start, of a part. */
static void forms_part(void *context, spca_int part)
{
    race_t *race = context;
    runs_t *runs = &race->runs;
    spca_int k = runs->k;
    for (spca_int i = part; i < race->starts; i += race->parts.parts) {
        spca_int run = runs->order[i];
        if (runs->objective[run] > -HUGE_VAL)
            runs->objective[run] = (double)form(race->parts.p, k, race->parts.A,
                                                runs->index + run * k, race->value + run * k);
    }
}

/* Truncated power on one run: at most `steps` steps, the first of which truncates it to k nonzeros.
 * Sets its objective, -infinity where the matrix maps its vector to zero; only SPCA_NONFINITE is
 * returned. */
static spca_status run_on(spca_int p, spca_int k, const real *A, runs_t *runs, real *value,
                          spca_int run, spca_int steps, double tol, real *work, spca_int *iwork)
{
    spca_int nnz = runs->k, made = 0, *index = runs->index + run * runs->widest;
    real objective = 0;
    spca_status status =
        SPCA(truncated_power_of_matrix)(p, k, A, steps, (real)tol, NULL, NULL, &nnz, index,
                                        value + run * runs->widest, work, iwork, &objective, &made);
    runs->objective[run] = status < 0 ? -HUGE_VAL : (double)objective;
    runs->n_iter[run] += made;
    return status == SPCA_NONFINITE ? status : SPCA_OK;
}

/* The runs of a part: every parts-th.  A run that has failed is left as it is. */
static void steps_part(void *context, spca_int part)
{
    steps_t *s = context;
    parts_t *of = s->of;
    for (spca_int i = s->first + part; i < s->end; i += of->parts) {
        spca_int run = s->runs->order[i];
        spca_status status = SPCA_OK;
        if (s->runs->objective[run] != -HUGE_VAL)
            status = run_on(of->p, s->k, of->A, s->runs, s->value, run, s->steps, s->tol,
                            work_of(of, part), of->iwork + part * 2 * of->k);
        if (status < 0) of->status[part] = status;
    }
}

spca_status SPCA(continue_runs)(parts_t *of, runs_t *runs, real *value, spca_int k, spca_int first,
                                spca_int end, spca_int steps, double tol, spca_run run,
                                spca_stop stop, void *ctx)
{
    spca_status status = SPCA_OK;
    for (spca_int part = 0; part < of->parts; part++) of->status[part] = SPCA_OK;
    for (spca_int most = TURN * of->parts; first < end && status >= 0; first += most) {
        steps_t s = {of, runs, value, k, first, min_int(end, first + most), steps, tol};
        double bytes = (double)(s.end - first) * (double)(steps * runs->k) * (double)of->p;
        status = do_parts(run, bytes * sizeof(real), steps_part, &s, of->parts, stop, ctx);
        for (spca_int part = 0; part < of->parts; part++)
            if (of->status[part] < 0) return of->status[part];
    }
    if (status >= 0) runs->k = k;
    return status;
}

/* Chooses the columns that start: those with the largest ||T_k(a_j)||, ranked in runs->order.
 * Norms that are not `known` are computed for all columns.  Known ones belong to a matrix much like
 * A, so they are computed anew for the `tried` columns. */
static spca_int choose(race_t *race, real *score, int known, spca_run run)
{
    spca_int p = race->parts.p, starts = race->starts, tried = race->tried;
    spca_int *order = race->order;
    runs_t *runs = &race->runs;
    double bytes = (double)p * sizeof(real);
    race->score = score;
    for (spca_int j = 0; j < p; j++) order[j] = j;
    if (starts < p && !known)
        (void)do_parts(run, bytes * (double)p, norms_part, race, race->parts.parts, NULL, NULL);
    if (starts < p) SPCA(select_largest)(p, score, tried, race->parts.work, order);
    (void)do_parts(run, bytes * (double)tried, first_part, race, race->parts.parts, NULL, NULL);
    for (spca_int i = 0; i < tried; i++) {
        if (starts < p) score[order[i]] = race->norm[i];
        runs->objective[i] = race->norm[i] > 0 ? (double)race->norm[i] : -HUGE_VAL;
        runs->order[i] = i;
    }
    rank(runs, tried);
    return starts;
}

size_t SPCA(race_work)(spca_int p, spca_int k, int known, const spca_search_plan *plan)
{
    race_t race;
    room_t room = {NULL, 0};
    race_room(&race, p, k, known, plan, &room);
    return room.used;
}

spca_status SPCA(race)(spca_int p, spca_int k, const real *A, real *score, int known,
                       const spca_search_plan *plan, spca_stop stop, void *ctx, void *work,
                       spca_int *index, real *value, spca_int *n_iter, spca_int *count)
{
    race_t race;
    room_t room = {work, 0};
    runs_t *runs = &race.runs;
    spca_int n;
    spca_status status = SPCA_OK;
    /* the columns that start, and their objectives (the first step) */
    race_room(&race, p, k, known, plan, &room);
    race.parts.A = A;
    n = choose(&race, score, known, plan->run);
    (void)do_parts(plan->run, (double)(n * runs->k) * (double)(runs->k * LINE), forms_part, &race,
                   race.parts.parts, NULL, NULL);
    /* the rounds: steps, then the best of different supports */
    for (spca_int r = 0; r < plan->rounds; r++) {
        spca_int steps = plan->steps[r] - (r == 0), keep = plan->keep[r];
        if (n <= keep) continue;
        if (steps > 0 && status >= 0)
            status = SPCA(continue_runs)(&race.parts, runs, race.value, width_of(plan, r, p, k), 0,
                                         n, steps, plan->tol, plan->run, stop, ctx);
        if (status < 0 && status != SPCA_STOPPED) return status;
        n = SPCA(different_runs)(runs, n, keep);
    }
    /* k nonzeros in the end, and different supports again */
    if (runs->k > k && status >= 0)
        status = SPCA(continue_runs)(&race.parts, runs, race.value, k, 0, n, 1, plan->tol,
                                     plan->run, stop, ctx);
    if (status < 0 && status != SPCA_STOPPED) return status;
    n = SPCA(different_runs)(runs, n, n);
    *count = n;
    for (spca_int i = 0; i < n; i++) {
        spca_int run = runs->order[i];
        for (spca_int a = 0; a < k; a++) {
            index[i * k + a] = runs->index[run * runs->widest + a];
            value[i * k + a] = race.value[run * runs->widest + a];
        }
        n_iter[i] = runs->n_iter[run];
    }
    return status;
}
