/* check_pool.c - the pool does each part once, as its caller would have done it. */
#define _POSIX_C_SOURCE 200809L
#include "core.h"
#include <fenv.h>
#include <time.h>

enum { PARTS = 200 };

typedef struct {
    int done[PARTS], inner[PARTS], rounding[PARTS];
    int nested, slow;
} work_t;

static void inner_part(void *context, spca_int part)
{
    ((int *)context)[part]++;
}

static void one_part(void *context, spca_int part)
{
    const struct timespec moment = {0, 100000};
    work_t *w = context;
    if (w->slow) nanosleep(&moment, NULL); /* so that others come */
    w->done[part]++;
    w->rounding[part] = fegetround();
    if (w->nested && part == 0) (void)spca_pool_run(inner_part, w->inner, PARTS, NULL, NULL);
}

void spca_dcheck_pool(trial_t *t)
{
    spca_int count = between(t, 1, PARTS), left = 0;
    int rounding = fegetround(), other = chance(t, 50) ? FE_UPWARD : FE_DOWNWARD;
    work_t *w = scratch(t, 1, sizeof *w);
    stop_t stop = {0, below(t, 5)};
    memset(w, 0, sizeof *w);
    w->nested = chance(t, 50);
    w->slow = !t->shared && chance(t, 50);
    if (!t->shared && chance(t, 10)) spca_pool_end(); /* and threads are made anew */
    fesetround(other);
    other = fegetround(); /* WebAssembly has but one */
    CHECK(t, spca_pool_run(one_part, w, count, NULL, NULL) == 0);
    fesetround(rounding);
    for (spca_int i = 0; i < PARTS; i++) {
        CHECK(t, w->done[i] == (i < count));
        CHECK(t, w->inner[i] == w->nested);
        CHECK(t, i >= count || w->rounding[i] == other);
    }
    CHECK(t, spca_pool_run(NULL, NULL, 0, NULL, NULL) == spca_pool_limit());
    CHECK(t, spca_pool_own_limit(1) == 0);
    CHECK(t, spca_pool_run(NULL, NULL, 0, NULL, NULL) == 1);
    CHECK(t, spca_pool_own_limit(7) == 1);
    CHECK(t, spca_pool_run(NULL, NULL, 0, NULL, NULL) == 7);
    CHECK(t, spca_pool_own_limit(0) == 7);
    memset(w, 0, sizeof *w);
    w->slow = !t->shared;
    if (spca_pool_run(one_part, w, PARTS, stop_at, &stop)) {
        CHECK(t, stop.asked == stop.at + 1);
        for (spca_int i = 0; i < PARTS; i++) left += w->done[i] == 0;
        CHECK(t, left > 0);
    } else {
        CHECK(t, stop.asked <= stop.at); /* the others were faster */
        for (spca_int i = 0; i < PARTS; i++) CHECK(t, w->done[i] == 1);
    }
    digest_int(t, count);
}
