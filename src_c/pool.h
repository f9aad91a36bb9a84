/* pool.h - threads for the parts of a loop.  This is no kernel: it is the one place with a state of
 * its own, beside the BLAS table and the number of the clone that runs.  Kernels are given
 * spca_pool_run as their `run`, or NULL. */
#ifndef SPCA_POOL_H
#define SPCA_POOL_H
#include "spca.h"

enum { SPCA_MOST_THREADS = 1024 };

/* An spca_run.  The parts are done by the caller and by as many other threads as the limit allows.
 * The caller does all of them where the limit is 1, or where another call has the threads. */
int spca_pool_run(spca_task task, void *context, spca_int count, spca_stop stop, void *ctx);

/* The limit: how many threads a loop may have, its caller among them; 1 at first. */
void spca_pool_set_limit(int threads);
int spca_pool_limit(void);

/* A limit for the loops of the calling thread alone, whatever the limit of all is; 0: it has none
 * of its own.  Returns the one it had. */
int spca_pool_own_limit(int threads);

/* Ends the threads; the next loop makes new ones. */
void spca_pool_end(void);
#endif
