/* search.c - k variables of a symmetric matrix in memory with a large leading eigenvalue.
 *
 * The runs that a race leaves (race.c) go on to their ends, and the best ends are improved by
 * swaps.
 *
 * Where variables are few, a tree comes first (tree.c), from one start: if it proves the best,
 * there is no race.  It goes on after the race, unless its first nodes say that no proof is near.
 */
#include "race.h"
#include "tree.h"

/* LEADING: a leading vector of LEADING k variables starts the first run. */
enum { LEADING = 4, POWER_STEPS = 20 };
enum {
    /* FIRST_NODES: nodes that are divided before the race.  SWAPS: swaps of one call. */
    FIRST_NODES = 8,
    SWAPS = 64,
    QUICK_SWAPS = 400
};

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
        status =
            SPCA(continue_runs)(&s->parts, &s->ends, s->value, k, s->n - count, s->n,
                                s->plan->max_iter, s->plan->tol, s->plan->run, s->stop, s->ctx);
    for (spca_int run = first; run < first + count; run++)
        if (isnan(s->ends.objective[run])) s->ends.objective[run] = -HUGE_VAL;
    return status;
}

/* Ranks the ends.  Of those that tie with the best, to the share plan->tie, the one whose variables
 * come first is put first. */
static void put_in_order(search_t *s)
{
    spca_int first = 0, *order;
    s->n = SPCA(different_runs)(&s->ends, s->n, s->n);
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
        s.n = SPCA(different_runs)(&s.ends, s.n, s.n);
        tried = min_int(s.n, plan->tried);
        /* the ends before the race are improved already */
        for (spca_int i = 0; i < tried && status >= 0; i++)
            if (s.ends.order[i] >= first) status = improve_quickly(&s, s.ends.order[i]);
        if (status >= 0) s.n = SPCA(different_runs)(&s.ends, s.n, s.n);
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
