/* race.h - private: runs of truncated power on a matrix in memory, which a race and a search share.
 */
#ifndef SPCA_RACE_H
#define SPCA_RACE_H
#include "real.h"
#include "room.h"

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
static inline void runs_room(runs_t *r, room_t *room)
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

/* Threads share the runs by parts.  Each part has scratch of its own, so no bit depends on who does
 * which.  TURN: runs of a part between two looks at stop.  PARTED: fewer variables have one part.
 */
enum { PARTS = 8, TURN = 2, PARTED = SPCA_LEAST(256) };

/* The scratch of the parts, and what each returned. */
typedef struct {
    spca_int p, k, parts; /* k: the most nonzeros of a run */
    const real *A;
    real *work; /* of each part 3 p + k^2 + 2 k reals, and 2 k integers */
    spca_int *iwork;
    spca_status status[PARTS];
} parts_t;

/* Room for the parts; their number depends on p alone. */
static inline void parts_room(parts_t *s, spca_int p, spca_int k, room_t *room)
{
    s->p = p;
    s->k = k;
    s->parts = p < PARTED ? 1 : PARTS;
    s->work = TAKE(room, s->parts * (3 * p + k * k + 2 * k), real);
    s->iwork = TAKE(room, s->parts * 2 * k, spca_int);
}

/* The most runs that the race leaves, of so many starts. */
static inline spca_int left_of(const spca_search_plan *plan, spca_int starts)
{
    for (spca_int r = 0; r < plan->rounds; r++) starts = min_int(starts, plan->keep[r]);
    return starts;
}

/* Moves the best runs of different supports among the first n of order, at most `most`, to its
 * front, and returns how many.  Each gets the count of all runs with its support. */
spca_int SPCA(different_runs)(runs_t *r, spca_int n, spca_int most);

/* Truncated power on the runs `first` to `end` of order, `steps` steps each, to k nonzeros; TURN
 * runs of each part between two looks at stop. */
spca_status SPCA(continue_runs)(parts_t *of, runs_t *runs, real *value, spca_int k, spca_int first,
                                spca_int end, spca_int steps, double tol, spca_run run,
                                spca_stop stop, void *ctx);
#endif
