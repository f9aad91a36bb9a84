/* pool.c - threads for the parts of a loop, which sleep on a condition variable between loops.
 *
 * Parts are handed out one after the other to whoever asks next.  They write to places of their
 * own, so that results do not depend on who had which.  The caller takes parts like the others, and
 * it alone asks stop; the others read a flag.  A caller who finds the threads busy does all by
 * itself: a second set of threads would only fight for the cores.
 *
 * On a busy machine a thread may lose its core in the middle of a part, and the caller waits for
 * it. After a loop in which that took long, the next ones are the caller's own, twice as many each
 * time.
 *
 * Before a fork the threads leave their loop and end, and its caller goes on alone: neither side
 * has a thread that the other lacks, nor a part that nobody does. */
#ifndef _WIN32
#define _POSIX_C_SOURCE 200809L
#endif
#include "pool.h"

#ifdef _WIN32

int spca_pool_run(spca_task task, void *context, spca_int count, spca_stop stop, void *ctx)
{
    if (count == 0) return 1;
    for (spca_int part = 0; part < count; part++) {
        if (stop && stop(ctx)) return 1;
        task(context, part);
    }
    return 0;
}

void spca_pool_set_limit(int threads)
{
    (void)threads;
}

int spca_pool_limit(void)
{
    return 1;
}

void spca_pool_alone(int alone)
{
    (void)alone;
}

void spca_pool_end(void) {}

#else
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

enum { MOST_ALONE = 256 }; /* loops */
#define WAIT 1e-4 /* seconds: a thread that has its core is woken and done in less */

/* One loop, on the stack of its caller. */
typedef struct {
    spca_task task;
    void *context;
    spca_int count;
    fenv_t floating; /* rounding and subnormal numbers as the caller has them */
    atomic_ptrdiff_t next;
    atomic_int ended;
    int wanted, active; /* threads that may still come, and that are there; of the pool's lock */
} loop_t;

static struct {
    pthread_mutex_t ending; /* of those who end the threads; taken before the lock */
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    pthread_t thread[SPCA_MOST_THREADS];
    int threads, busy;
    int alone, spell; /* loops that the next callers do alone, and how many they were last */
    loop_t *loop;
    atomic_int limit, leaving;
} pool = {.ending = PTHREAD_MUTEX_INITIALIZER,
          .lock = PTHREAD_MUTEX_INITIALIZER,
          .work = PTHREAD_COND_INITIALIZER,
          .done = PTHREAD_COND_INITIALIZER,
          .limit = 1};
static _Thread_local int stays_alone;

/* The next part, or count where there is none. */
static spca_int take(loop_t *loop)
{
    spca_int part = loop->count;
    if (!atomic_load_explicit(&loop->ended, memory_order_relaxed))
        part = atomic_fetch_add_explicit(&loop->next, 1, memory_order_relaxed);
    return part < loop->count ? part : loop->count;
}

static void *serve(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&pool.lock);
    for (;;) {
        loop_t *loop = pool.loop;
        if (atomic_load(&pool.leaving)) break;
        if (!loop || loop->wanted == 0) {
            pthread_cond_wait(&pool.work, &pool.lock);
            continue;
        }
        loop->wanted--;
        loop->active++;
        pthread_mutex_unlock(&pool.lock);
        fesetenv(&loop->floating);
        while (!atomic_load(&pool.leaving)) {
            spca_int part = take(loop);
            if (part == loop->count) break;
            loop->task(loop->context, part);
        }
        pthread_mutex_lock(&pool.lock);
        if (--loop->active == 0) pthread_cond_signal(&pool.done);
    }
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* All threads have left and ended, and until `release` none is made. */
static void end_threads(void)
{
    int threads;
    pthread_mutex_lock(&pool.ending);
    pthread_mutex_lock(&pool.lock);
    atomic_store(&pool.leaving, 1);
    threads = pool.threads;
    pthread_cond_broadcast(&pool.work);
    pthread_mutex_unlock(&pool.lock);
    for (int i = 0; i < threads; i++) pthread_join(pool.thread[i], NULL);
    pthread_mutex_lock(&pool.lock);
    pool.threads = 0;
    atomic_store(&pool.leaving, 0);
}

static void release(void)
{
    pthread_mutex_unlock(&pool.lock);
    pthread_mutex_unlock(&pool.ending);
}

/* Other callers do not exist here, though what they waited for does. */
static void forget(void)
{
    const pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    const pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
    pool.ending = pool.lock = lock;
    pool.work = pool.done = condition;
    pool.busy = 0;
    pool.loop = NULL;
}

static void watch_forks(void)
{
    pthread_atfork(end_threads, release, forget);
}

/* Signals are for the threads of the program. */
static void make_threads(int wanted)
{
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (pool.threads < wanted) {
        if (pthread_create(pool.thread + pool.threads, NULL, serve, NULL)) break;
        pool.threads++;
    }
    pthread_sigmask(SIG_SETMASK, &old, NULL);
}

/* Whether others are called to the loop. */
static int open_loop(loop_t *loop, int helpers)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    int open = 0;
    if (helpers < 1) return 0;
    pthread_once(&once, watch_forks);
    fegetenv(&loop->floating);
    pthread_mutex_lock(&pool.lock);
    if (pool.alone > 0 && !pool.busy) {
        pool.alone--;
    } else if (!pool.busy && !atomic_load(&pool.leaving)) {
        open = pool.busy = 1;
        if (pool.threads < helpers) make_threads(helpers);
        loop->wanted = helpers;
        pool.loop = loop;
        if (helpers < pool.threads)
            for (int i = 0; i < helpers; i++) pthread_cond_signal(&pool.work);
        else
            pthread_cond_broadcast(&pool.work);
    }
    pthread_mutex_unlock(&pool.lock);
    return open;
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void close_loop(loop_t *loop, double opened)
{
    double worked = now(), waited;
    pthread_mutex_lock(&pool.lock);
    pool.loop = NULL;
    while (loop->active > 0) pthread_cond_wait(&pool.done, &pool.lock);
    waited = now() - worked;
    if (waited <= WAIT || waited <= (worked - opened) / 2)
        pool.spell = 0;
    else
        pool.alone = pool.spell = pool.spell < MOST_ALONE / 2 ? 2 * pool.spell + 1 : MOST_ALONE;
    pool.busy = 0;
    pthread_mutex_unlock(&pool.lock);
}

int spca_pool_run(spca_task task, void *context, spca_int count, spca_stop stop, void *ctx)
{
    loop_t loop = {.task = task, .context = context, .count = count};
    int limit = stays_alone ? 1 : atomic_load(&pool.limit), stopped = 0, open;
    double opened;
    if (count == 0) return limit;
    opened = now();
    open = open_loop(&loop, (count < limit ? (int)count : limit) - 1);
    for (;;) {
        spca_int part = take(&loop);
        if (part == count) break;
        stopped = stop && stop(ctx);
        if (stopped) {
            atomic_store(&loop.ended, 1);
            break;
        }
        task(context, part);
    }
    if (open) close_loop(&loop, opened);
    return stopped;
}

void spca_pool_set_limit(int threads)
{
    atomic_store(&pool.limit, threads < 1                   ? 1
                              : threads > SPCA_MOST_THREADS ? SPCA_MOST_THREADS
                                                            : threads);
}

int spca_pool_limit(void)
{
    return atomic_load(&pool.limit);
}

void spca_pool_alone(int alone)
{
    stays_alone = alone;
}

void spca_pool_end(void)
{
    end_threads();
    release();
}
#endif
