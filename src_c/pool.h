/* pool.h - threads for the parts of a loop: the one place with a state of its own beside the BLAS
 * table and the clone that runs, and no kernel; kernels are given spca_pool_run, or NULL. */
#ifndef SPCA_POOL_H
#define SPCA_POOL_H
#include "spca.h"

enum { SPCA_MOST_THREADS = 1024 };

/* An spca_run: by the caller and as many threads as the limit leaves it.  Alone, where another call
 * has them, and where the limit is 1. */
int spca_pool_run(spca_task task, void *context, spca_int count, spca_stop stop, void *ctx);

/* How many threads a loop may have, its caller among them; 1 at first. */
void spca_pool_set_limit(int threads);
int spca_pool_limit(void);

/* The same for the loops of the calling thread, whatever it is for others; 0: as for all.  Returns
 * what it was. */
int spca_pool_own_limit(int threads);

/* Ends the threads; the next loop makes new ones. */
void spca_pool_end(void);
#endif
