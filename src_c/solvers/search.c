/* search.c - k variables of a symmetric matrix in memory with a large leading eigenvalue.
 *
 * For x = T_k(a_j)/||.||, a_j a column, x'Ax >= ||T_k(a_j)||^2/a_jj where A is semidefinite.  So
 * the columns whose k largest entries have the largest norms start a race of truncated power.  All
 * of them make a step, the best of different supports go on, and the last of these run to their
 * ends.  The best ends are improved by swaps.  In the first rounds a run may have more nonzeros
 * than k, because these tell weak signals better.
 *
 * Where variables are few, a tree comes first (tree.c), from one start: if it proves the best,
 * there is no race.  It goes on after the race, unless its first nodes say that no proof is near.
 */
#include "real.h"
#include "room.h"
#include "tree.h"

/* LEADING: a leading vector of LEADING k variables starts the first run. */
enum { LEADING = 4, POWER_STEPS = 20 };
enum {
    /* FIRST_NODES: nodes that are divided before the race.  SWAPS: swaps of one call. */
    FIRST_NODES = 8,
    SWAPS = 64,
    QUICK_SWAPS = 400
};

/* ---- runs ----------------------------------------------------------------------------------- */

/* Runs of truncated power, or ends of such runs.  `order` lists them, the best first once it is
 * ranked. */
typedef struct {
    /* nonzeros of a run now, and at most; how many runs there is room for */
    spca_int k, widest, count;
    spca_int *index; /* (count x widest): the support of each run, ascending */
    double *objective;
    spca_int *n_iter, *runs; /* steps of a run, and how many runs had its support */
    spca_int *order, *spare; /* (count): which runs are left, and scratch */
    /* a hash table of supports; its size is a power of two, at least twice the count */
    spca_int *table, size;
} runs_t;

/* Room for r->count runs. */
static void runs_room(runs_t *r, room_t *room)
{
    for (r->size = 4; r->size < 2 * r->count; r->size *= 2) continue;
    r->index = TAKE(room, r->count * r->widest, spca_int);
    r->objective = TAKE(room, r->count, double);
    r->n_iter = TAKE(room, r->count, spca_int);
    r->runs = TAKE(room, r->count, spca_int);
    r->order = TAKE(room, r->count, spca_int);
    r->spare = TAKE(room, r->count, spca_int);
    r->table = TAKE(room, r->size, spca_int);
}

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

/* Moves the best runs of different supports among the first n of order, at most `most`, to its
 * front, and returns how many.  Each gets the count of all runs with its support. */
static spca_int different(runs_t *r, spca_int n, spca_int most)
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

/* ---- the race ------------------------------------------------------------------------------- */

/* The most runs that the race leaves, of so many starts. */
static spca_int left_of(const spca_search_plan *plan, spca_int starts)
{
    for (spca_int r = 0; r < plan->rounds; r++) starts = min_int(starts, plan->keep[r]);
    return starts;
}

/* Nonzeros of a run in a round: plan->width, but at least k, and no more than in the first round.
 */
static spca_int width_of(const spca_search_plan *plan, spca_int round, spca_int p, spca_int k)
{
    spca_int widest = plan->rounds > 0 ? max_int(k, min_int(p, plan->width[0])) : k;
    return round > 0 ? max_int(k, min_int(widest, plan->width[round])) : widest;
}

/* Threads share the runs by parts.  Each part has scratch of its own, so no bit depends on who does
 * which.  TURN: runs of a part between two looks at stop.  PARTED: fewer variables have one part.
 */
enum { PARTS = 8, TURN = 2, PARTED = 256 };
enum { LINE = 64 }; /* for do_parts: bytes that memory brings for one entry of x'Ax */

/* The scratch of the parts, and what each returned. */
typedef struct {
    spca_int p, k, parts; /* k: the most nonzeros of a run */
    const real *A;
    real *work; /* of each part 3 p + k^2 + 2 k reals, and 2 k integers */
    spca_int *iwork;
    spca_status status[PARTS];
} parts_t;

/* Room for the parts; their number depends on p alone. */
static void parts_room(parts_t *s, spca_int p, spca_int k, room_t *room)
{
    s->p = p;
    s->k = k;
    s->parts = p < PARTED ? 1 : PARTS;
    s->work = TAKE(room, s->parts * (3 * p + k * k + 2 * k), real);
    s->iwork = TAKE(room, s->parts * 2 * k, spca_int);
}

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

/* Truncated power on the runs `first` to `end` of order, `steps` steps each, to k nonzeros; TURN
 * runs of each part between two looks at stop. */
static spca_status run_all(parts_t *of, runs_t *runs, real *value, spca_int k, spca_int first,
                           spca_int end, spca_int steps, double tol, spca_run run, spca_stop stop,
                           void *ctx)
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
            status = run_all(&race.parts, runs, race.value, width_of(plan, r, p, k), 0, n, steps,
                             plan->tol, plan->run, stop, ctx);
        if (status < 0 && status != SPCA_STOPPED) return status;
        n = different(runs, n, keep);
    }
    /* k nonzeros in the end, and different supports again */
    if (runs->k > k && status >= 0)
        status =
            run_all(&race.parts, runs, race.value, k, 0, n, 1, plan->tol, plan->run, stop, ctx);
    if (status < 0 && status != SPCA_STOPPED) return status;
    n = different(runs, n, n);
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

/* ---- the search ----------------------------------------------------------------------------- */

/* The search of one call.  Its ends are supports of k variables. */
typedef struct {
    spca_int p, k;
    const spca_search_plan *plan;
    spca_stop stop;
    void *ctx;
    const real *A;
    double *diagonal;
    runs_t ends;
    parts_t parts;
    real *value, *work; /* (ends x k): the vector of each end; scratch of one run */
    spca_int *iwork;
    spca_int n, used, nodes; /* ends in `order`, places of ends in use, and nodes that the tree may
                                still divide */
    spca_tree tree;
    real *begin, *inside, *image; /* of `lead`: a vector, A at its variables, and their product */
    spca_int *among;
    double *swap_work, *vector;
    spca_int *swap_iwork;
    blas_int *blas_work;
    real *score, *quick;
    void *race_work;
#ifndef SPCA_SINGLE
    /* A, scores and vectors in single precision, or NULL */
    float *rough, *rough_score, *rough_value;
#endif
} search_t;

/* Cuts the work of a search, or only counts it. */
static void search_room(search_t *s, int known, room_t *room)
{
    spca_int p = s->p, k = s->k, wide = min_int(p, LEADING * k), widest = wide > k ? wide : k;
    spca_int last = left_of(s->plan, min_int(p, s->plan->starts));
    s->nodes = s->plan->nodes;
    s->ends.k = s->ends.widest = k;
    s->ends.count = last + 3; /* the start of `lead`, and the best of the tree, twice */
    runs_room(&s->ends, room);
    s->value = TAKE(room, s->ends.count * k, real);
    parts_room(&s->parts, p, k, room);
    s->parts.A = s->A;
    s->work = s->parts.work;
    s->iwork = TAKE(room, 2 * k, spca_int);
    s->diagonal = TAKE(room, p, double);
    s->begin = TAKE(room, widest, real);
    s->image = TAKE(room, wide, real);
    s->inside = TAKE(room, s->nodes > 0 ? wide * wide : 0, real);
    s->among = TAKE(room, widest, spca_int);
    s->swap_work = TAKE(room, 3 * k * k + 130 * k + 192, double);
    s->vector = TAKE(room, k, double);
    s->swap_iwork = TAKE(room, 2 * p + k, spca_int);
    s->blas_work = TAKE(room, 12 * k, blas_int);
    s->score = TAKE(room, p, real);
    s->quick = TAKE(room, 2 * p + k * k + 2 * k, real);
    s->tree = (spca_tree){.p = p, .k = k, .most = s->nodes, .hopeless = s->plan->hopeless};
    if (s->nodes > 0) spca_tree_room(&s->tree, room);
#ifndef SPCA_SINGLE
    s->rough = NULL;
    if (p > s->plan->exact) {
        s->rough = TAKE(room, p * p, float);
        s->rough_score = TAKE(room, p, float);
        s->rough_value = TAKE(room, last * k, float);
        s->race_work = take(room, (spca_int)spca_srace_work(p, k, known, s->plan), 1);
        return;
    }
#endif
    s->race_work = take(room, (spca_int)SPCA(race_work)(p, k, known, s->plan), 1);
}

/* The first end.  POWER_STEPS steps of the power method on the LEADING k columns of largest norm
 * give a vector; truncated power runs from there to its end. */
static spca_status lead(search_t *s)
{
    spca_int p = s->p, k = s->k, wide = min_int(p, LEADING * k), nnz = wide, made = 0;
    real *x = s->begin, *y = s->image, objective = 0;
    spca_status status;
    for (spca_int j = 0; j < p; j++) {
        const real *a = s->A + j * p;
        s->score[j] = sqrt(strands_dot(p, a, a));
    }
    SPCA(select_largest)(p, s->score, wide, s->work, s->among);
    for (spca_int a = 0; a < wide; a++) {
        for (spca_int b = 0; b < wide; b++)
            s->inside[a * wide + b] = s->A[s->among[a] * p + s->among[b]];
        x[a] = s->score[s->among[a]];
    }
    for (int step = 0; step < POWER_STEPS; step++) {
        (void)to_unit(wide, x);
        for (spca_int a = 0; a < wide; a++) y[a] = strands_dot(wide, s->inside + a * wide, x);
        for (spca_int a = 0; a < wide; a++) x[a] = y[a];
    }
    status = SPCA(truncated_power_of_matrix)(p, k, s->A, s->plan->max_iter, (real)s->plan->tol,
                                             NULL, NULL, &nnz, s->among, x, s->work, s->iwork,
                                             &objective, &made);
    if (status < 0) return status == SPCA_ZERO_VECTOR ? SPCA_OK : status;
    for (spca_int a = 0; a < k; a++) {
        s->ends.index[a] = s->among[a];
        s->value[a] = x[a];
    }
    s->ends.objective[0] = (double)objective;
    s->ends.n_iter[0] = made;
    s->ends.runs[0] = 1;
    s->ends.order[0] = 0;
    s->n = s->used = 1;
    return SPCA_OK;
}

/* Improves an end by swaps that are found quickly (quick_swap.c), with its vector and value. */
static spca_status improve_quickly(search_t *s, spca_int run)
{
    spca_int made;
    if (s->k == 1) return SPCA_OK;
    return SPCA(quick_swaps)(s->p, s->k, s->A, (real)fmax(s->plan->rise, 64 * (double)REAL_EPSILON),
                             QUICK_SWAPS, s->stop, s->ctx, s->quick, s->ends.index + run * s->k,
                             s->value + run * s->k, s->ends.objective + run, &made);
}

/* Improves an end by swaps until none raises its value, which is an eigenvalue then. */
static spca_status improve(search_t *s, spca_int run)
{
    spca_int made = SWAPS, *index = s->ends.index + run * s->k;
    spca_status status = SPCA_OK;
    if (s->k == 1) {
        s->ends.objective[run] = s->diagonal[*index];
        return SPCA_OK;
    }
    for (int ended = 0; !ended && made == SWAPS && status >= 0;)
        status =
            SPCA(swap)(s->p, s->k, s->A, s->diagonal, s->plan->rise, s->plan->gap, s->plan->slack,
                       s->plan->tie, SWAPS, s->stop, s->ctx, s->swap_work, s->blas_work,
                       s->swap_iwork, index, s->vector, s->ends.objective + run, &made, &ended);
    return status;
}

/* Adds the best support of the tree as one more end; it counts no run, and the steps of the best
 * end. */
static void add_best_of_tree(search_t *s)
{
    spca_int run = s->used++;
    for (spca_int a = 0; a < s->k; a++) s->ends.index[run * s->k + a] = s->tree.index[a];
    s->ends.objective[run] = s->tree.value;
    s->ends.n_iter[run] = s->ends.n_iter[s->ends.order[0]];
    s->ends.runs[run] = 0;
    s->ends.order[s->n++] = run;
}

/* Divides at most `nodes` nodes of the tree, as long as a proof is not far, and sets *proved where
 * none is left.  s->nodes = 0: the tree is given up. */
static spca_status prove(search_t *s, spca_int nodes, int *proved)
{
    spca_tree *tree = &s->tree;
    spca_status status = SPCA_OK;
    double begun = tree->value, upper;
    for (; nodes > 0 && s->nodes > 0 && status >= 0; nodes--) {
        status = spca_tree_divide(tree, 1, s->stop, s->ctx);
        upper = spca_tree_upper(tree);
        *proved = upper <= tree->level;
        if (*proved) break;
        s->nodes--;
        if (upper - tree->value > s->plan->hopeless * fabs(tree->value) ||
            tree->waiting > s->nodes) /* each node that waits would have to be divided */
            s->nodes = 0;
    }
    if (tree->value > begun) add_best_of_tree(s);
    return status;
}

/* Begins the tree on N = -(A + A')/2, with the first end, improved, as its best support. */
static spca_status begin_tree(search_t *s)
{
    spca_int p = s->p;
    spca_status status = SPCA_OK;
    for (spca_int j = 0; j < p; j++) {
        s->tree.diagonal[j] = (double)s->A[j * (p + 1)];
        for (spca_int i = 0; i < p; i++)
            s->tree.N[j * p + i] = -((double)s->A[j * p + i] + (double)s->A[i * p + j]) / 2;
    }
    spca_tree_begin(&s->tree);
    if (s->plan->swapped > 0) status = improve_quickly(s, 0);
    if (status >= 0 && s->plan->swapped > 0) status = improve(s, 0);
    if (status >= 0) spca_tree_offer(&s->tree, s->ends.index, s->ends.objective[0]);
    return status;
}

/* Adds the ends of the race, each run to its end: where the race leaves k variables, truncated
 * power goes on in the precision of A. */
static spca_status race(search_t *s, int known, real *score, spca_int *starts)
{
    spca_int first = s->used, count = 0, k = s->k, *index = s->ends.index + first * k;
    spca_status status;
    *starts += min_int(s->p, s->plan->starts);
#ifndef SPCA_SINGLE
    if (s->rough) {
        for (spca_int i = 0; i < s->p * s->p; i++) s->rough[i] = (float)s->A[i];
        for (spca_int j = 0; known && j < s->p; j++) s->rough_score[j] = (float)score[j];
        status = spca_srace(s->p, k, s->rough, s->rough_score, known, s->plan, s->stop, s->ctx,
                            s->race_work, index, s->rough_value, s->ends.n_iter + first, &count);
        for (spca_int a = 0; a < count * k; a++)
            s->value[first * k + a] = (double)s->rough_value[a];
        for (spca_int j = 0; j < s->p; j++) score[j] = (real)s->rough_score[j];
    } else
#endif
        status = SPCA(race)(s->p, k, s->A, score, known, s->plan, s->stop, s->ctx, s->race_work,
                            index, s->value + first * k, s->ends.n_iter + first, &count);
    if (status < 0 && status != SPCA_STOPPED) return status;
    for (spca_int run = first; run < first + count; run++) {
        s->ends.runs[run] = 1;
        /* until it has run to its end; -infinity where that is not reached */
        s->ends.objective[run] = (double)NAN;
        s->ends.order[s->n++] = s->used++;
    }
    if (status >= 0)
        status = run_all(&s->parts, &s->ends, s->value, k, s->n - count, s->n, s->plan->max_iter,
                         s->plan->tol, s->plan->run, s->stop, s->ctx);
    for (spca_int run = first; run < first + count; run++)
        if (isnan(s->ends.objective[run])) s->ends.objective[run] = -HUGE_VAL;
    return status;
}

/* Ranks the ends.  Of those that tie with the best, to the share plan->tie, the one whose variables
 * come first is put first. */
static void put_in_order(search_t *s)
{
    spca_int first = 0, *order;
    s->n = different(&s->ends, s->n, s->n);
    order = s->ends.order;
    for (spca_int i = 1; i < s->n; i++) {
        double best = s->ends.objective[order[0]];
        const spca_int *a = s->ends.index + order[first] * s->k,
                       *b = s->ends.index + order[i] * s->k;
        spca_int at = 0;
        if (best - s->ends.objective[order[i]] > s->plan->tie * fabs(best)) break;
        while (at < s->k - 1 && a[at] == b[at]) at++;
        if (b[at] < a[at]) first = i;
    }
    if (first == 0) return;
    for (spca_int chosen = order[first]; first >= 0; first--)
        order[first] = first > 0 ? order[first - 1] : chosen;
}

size_t SPCA(search_work)(spca_int p, spca_int k, int known, const spca_search_plan *plan)
{
    search_t s = {.p = p, .k = k, .plan = plan};
    room_t room = {NULL, 0};
    search_room(&s, known, &room);
    return room.used;
}

spca_status SPCA(search)(spca_int p, spca_int k, const real *A, real *score, int known,
                         const spca_search_plan *plan, spca_stop stop, void *ctx, void *work,
                         spca_int *index, double *value, spca_int *runs, spca_int *count,
                         spca_search_counts *counts)
{
    search_t s = {.p = p, .k = k, .plan = plan, .stop = stop, .ctx = ctx, .A = A};
    room_t room = {work, 0};
    spca_status status = SPCA_OK;
    int proved = 0;
    /* 1. the start of `lead` and the first nodes of a tree */
    search_room(&s, known, &room);
    *counts = (spca_search_counts){0};
    for (spca_int j = 0; j < p; j++) s.diagonal[j] = (double)A[j * (p + 1)];
    if (s.nodes > 0) status = lead(&s);
    counts->starts = s.n;
    if (s.n == 0) s.nodes = 0;
    if (status >= 0 && s.nodes > 0) status = begin_tree(&s);
    if (status >= 0 && s.nodes > 0) status = prove(&s, FIRST_NODES, &proved);
    if (status < 0 && status != SPCA_STOPPED) return status;
    /* 2. the race, quick swaps of the best ends, and all swaps of the best of these */
    if (status >= 0 && !proved) {
        spca_int before = s.n, first = s.used, tried, swapped;
        status = race(&s, known, score, &counts->starts);
        if (status < 0 && status != SPCA_STOPPED) return status;
        counts->ends = s.n - before;
        s.n = different(&s.ends, s.n, s.n);
        tried = min_int(s.n, plan->tried);
        /* the ends before the race are improved already */
        for (spca_int i = 0; i < tried && status >= 0; i++)
            if (s.ends.order[i] >= first) status = improve_quickly(&s, s.ends.order[i]);
        if (status >= 0) s.n = different(&s.ends, s.n, s.n);
        swapped = min_int(s.n, plan->swapped);
        for (spca_int i = 0; i < swapped && status >= 0; i++) status = improve(&s, s.ends.order[i]);
        if (status < 0 && status != SPCA_STOPPED) return status;
    }
    /* 3. the rest of the tree */
    put_in_order(&s);
    if (status >= 0 && !proved && s.nodes > 0 && s.n > 0) {
        spca_int best = s.ends.order[0];
        spca_tree_offer(&s.tree, s.ends.index + best * k, s.ends.objective[best]);
        status = prove(&s, s.nodes, &proved);
        if (status < 0 && status != SPCA_STOPPED) return status;
        put_in_order(&s);
    }
    /* what is returned */
    counts->ends += counts->starts > 0 && plan->nodes > 0;
    counts->proved = proved;
    counts->nodes = s.tree.divided;
    *count = min_int(s.n, plan->ends);
    for (spca_int i = 0; i < *count; i++) {
        spca_int run = s.ends.order[i];
        for (spca_int a = 0; a < k; a++) index[i * k + a] = s.ends.index[run * k + a];
        value[i] = s.ends.objective[run];
        runs[i] = s.ends.runs[run];
        if (i == 0) counts->n_iter = s.ends.n_iter[run];
    }
    return status;
}
