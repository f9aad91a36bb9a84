/* pool.h - threads for the parts of a loop: the one place with a state of its own beside the BLAS
 * table, and no kernel; kernels are given spca_pool_run, or NULL. */
#ifndef SPCA_POOL_H
#define SPCA_POOL_H
#include "spca.h"

enum { SPCA_MOST_THREADS = 1024 };

/* An spca_run: by the caller and as many threads as the limit leaves it.  Alone, where another call
 * has them, where the limit is 1, and in a thread that is to stay alone. */
int spca_pool_run(spca_task task, void *context, spca_int count, spca_stop stop, void *ctx);

/* How many threads a loop may have, its caller among them; 1 at first, and always where there are
 * no POSIX threads. */
void spca_pool_set_limit(int threads);
int spca_pool_limit(void);

/* Whether this thread runs its loops alone, since it is one of several that the caller made. */
void spca_pool_alone(int alone);

/* Ends the threads; the next loop makes new ones. */
void spca_pool_end(void);
#endif
