/* pool.c - threads for the parts of a loop, which sleep on a condition variable between loops.
 *
 * Parts are handed out one after the other to whoever asks next.  They write to places of their
 * own, so results do not depend on who did which.  The caller takes parts like the others, and it
 * alone asks stop; the others read a flag.  A caller that finds the threads busy does all parts by
 * itself, because a second set of threads would only fight for the cores.
 *
 * On a busy machine a thread may lose its core in the middle of a part, and the caller waits for
 * it.  After a loop in which that took long, the caller does the next loops alone: 1, then 3, 7,
 * ... as long as waits stay long.
 *
 * Before a fork the threads leave their loop and end, and its caller goes on alone.  So neither
 * process has a thread that the other lacks, nor a part that nobody does. */
#ifndef _WIN32
#define _POSIX_C_SOURCE 200809L
#endif
#include "pool.h"
#include "native_threads.h"
#include <fenv.h>

enum { MOST_ALONE = 256 }; /* the most loops that are done alone in a row */
#define WAIT 1e-4          /* in seconds; a thread that has its core wakes up and ends in less */

/* One loop, on the stack of its caller. */
typedef struct {
    spca_task task;
    void *context;
    spca_int count;
    fenv_t floating; /* the caller's modes of rounding and of subnormal numbers */
    /* the next part; parts are handed out until `ended` */
    counter_t next;
    flag_t ended;
    int wanted, active; /* how many threads may still join, and how many are at work; guarded by the
                           pool's lock */
} loop_t;

static struct {
    lock_t ending; /* held while threads are ended; always taken before `lock` */
    lock_t lock;
    condition_t work, done;
    thread_t thread[SPCA_MOST_THREADS];
    int threads, busy; /* how many there are; whether a loop has them */
    int alone, spell;  /* how many of the next loops are done alone, and how many were when this was
                          last set */
    loop_t *loop;
    flag_t limit, leaving; /* leaving: threads are to end */
} pool = {.ending = LOCK_INITIALIZER,
          .lock = LOCK_INITIALIZER,
          .work = CONDITION_INITIALIZER,
          .done = CONDITION_INITIALIZER,
          .limit = 1};
OF_THREAD int own_limit; /* of this thread, or 0 for none */

/* The next part, or count where there is none. */
static spca_int take(loop_t *loop)
{
    spca_int part = loop->count;
    if (!get(&loop->ended)) part = count_up(&loop->next);
    return part < loop->count ? part : loop->count;
}

/* What a thread does: waits for a loop that wants it, takes parts until there are none, and waits
 * again; until all threads are to leave. */
static void serve(void)
{
    lock(&pool.lock);
    for (;;) {
        loop_t *loop = pool.loop;
        if (get(&pool.leaving)) break;
        if (!loop || loop->wanted == 0) {
            wait_for(&pool.work, &pool.lock);
            continue;
        }
        loop->wanted--;
        loop->active++;
        unlock(&pool.lock);
        fesetenv(&loop->floating);
        while (!get(&pool.leaving)) {
            spca_int part = take(loop);
            if (part == loop->count) break;
            loop->task(loop->context, part);
        }
        lock(&pool.lock);
        if (--loop->active == 0) wake_one(&pool.done);
    }
    unlock(&pool.lock);
}

/* Ends all threads.  Both locks are held at the return, so that no thread is made until `release`.
 */
static void end_threads(void)
{
    int threads;
    lock(&pool.ending);
    lock(&pool.lock);
    set(&pool.leaving, 1);
    threads = pool.threads;
    wake_all(&pool.work);
    unlock(&pool.lock);
    for (int i = 0; i < threads; i++) join(pool.thread[i]);
    lock(&pool.lock);
    pool.threads = 0;
    set(&pool.leaving, 0);
}

/* Ends what end_threads has begun: threads may be made again. */
static void release(void)
{
    unlock(&pool.lock);
    unlock(&pool.ending);
}

#ifdef _WIN32
static DWORD WINAPI begin(void *unused)
{
    (void)unused;
    serve();
    return 0;
}

static int start(thread_t *thread)
{
    *thread = CreateThread(NULL, 0, begin, NULL, 0, NULL);
    return *thread != NULL;
}

static void make_threads(int wanted)
{
    while (pool.threads < wanted && start(pool.thread + pool.threads)) pool.threads++;
}

static void watch_forks_once(void) {}

#else
static void *begin(void *unused)
{
    (void)unused;
    serve();
    return NULL;
}

/* In the child of a fork: other callers do not exist, but the locks and conditions may be as these
 * left them.  So they begin anew. */
static void forget(void)
{
    const lock_t of_none = LOCK_INITIALIZER;
    const condition_t condition = CONDITION_INITIALIZER;
    pool.ending = pool.lock = of_none;
    pool.work = pool.done = condition;
    pool.busy = 0;
    pool.loop = NULL;
}

static void watch_forks(void)
{
    pthread_atfork(end_threads, release, forget);
}

static void watch_forks_once(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, watch_forks);
}

/* Makes threads until there are as many as wanted, or no more can be made.  They block all signals,
 * which are for the program's own threads.  A tile of a product takes 130 KB of stack; musl gives a
 * thread 128 KB unless asked for more. */
static void make_threads(int wanted)
{
    sigset_t all, old;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes)) return;
    pthread_attr_setstacksize(&attributes, (size_t)1 << 20);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    while (pool.threads < wanted &&
           pthread_create(pool.thread + pool.threads, &attributes, begin, NULL) == 0)
        pool.threads++;
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attributes);
}
#endif

/* Calls helpers to the loop; 0 where there are none to call, so that the caller works alone. */
static int open_loop(loop_t *loop, int helpers)
{
    int open = 0;
    if (helpers < 1) return 0;
    watch_forks_once();
    fegetenv(&loop->floating);
    lock(&pool.lock);
    if (pool.alone > 0 && !pool.busy) {
        pool.alone--;
    } else if (!pool.busy && !get(&pool.leaving)) {
        open = pool.busy = 1;
        if (pool.threads < helpers) make_threads(helpers);
        loop->wanted = helpers;
        pool.loop = loop;
        if (helpers < pool.threads)
            for (int i = 0; i < helpers; i++) wake_one(&pool.work);
        else
            wake_all(&pool.work);
    }
    unlock(&pool.lock);
    return open;
}

/* Waits until no helper is at work.  Where the wait was long (more than WAIT and half the time of
 * the loop), the next loops are done alone. */
static void close_loop(loop_t *loop, double opened)
{
    double worked = now(), waited;
    lock(&pool.lock);
    pool.loop = NULL;
    while (loop->active > 0) wait_for(&pool.done, &pool.lock);
    waited = now() - worked;
    if (waited <= WAIT || waited <= (worked - opened) / 2)
        pool.spell = 0;
    else
        pool.alone = pool.spell = pool.spell < MOST_ALONE / 2 ? 2 * pool.spell + 1 : MOST_ALONE;
    pool.busy = 0;
    unlock(&pool.lock);
}

int spca_pool_run(spca_task task, void *context, spca_int count, spca_stop stop, void *ctx)
{
    loop_t loop = {.task = task, .context = context, .count = count};
    int limit = own_limit > 0 ? own_limit : get(&pool.limit), stopped = 0, open;
    double opened;
    if (count == 0) return limit;
    opened = now();
    open = open_loop(&loop, (count < limit ? (int)count : limit) - 1);
    for (;;) {
        spca_int part = take(&loop);
        if (part == count) break;
        stopped = stop && stop(ctx);
        if (stopped) {
            set(&loop.ended, 1);
            break;
        }
        task(context, part);
    }
    if (open) close_loop(&loop, opened);
    return stopped;
}

void spca_pool_set_limit(int threads)
{
    set(&pool.limit, threads < 1 ? 1 : threads > SPCA_MOST_THREADS ? SPCA_MOST_THREADS : threads);
}

int spca_pool_limit(void)
{
    return get(&pool.limit);
}

int spca_pool_own_limit(int threads)
{
    int before = own_limit;
    own_limit = threads < SPCA_MOST_THREADS ? threads : SPCA_MOST_THREADS;
    return before;
}

void spca_pool_end(void)
{
    end_threads();
    release();
}
