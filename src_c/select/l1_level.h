/* l1_level.h - private: the level of the soft threshold of bounded l1 norm. */
#ifndef SPCA_L1_LEVEL_H
#define SPCA_L1_LEVEL_H
#include "real.h"

/* What is searched: |x|, or the positive part of x, times a power of two. */
typedef struct {
    spca_int p;
    const real *x;
    int nonnegative;
    real scale;
    spca_run run;
} magnitudes_t;

/* Of the entries >= level: the count, the sum and the sum of squares of their excess over level. */
typedef struct {
    double level, count, sum, square;
} sums_t;

/* low <= L < high, both entries unless 0 and REAL_MAX; the sums at high. */
typedef struct {
    real low, high;
    sums_t above;
} bracket_t;

/* The level L of *m, whose scale is chosen here, for ||S(a, L)||_1/||S(a, L)|| = c: L =
 * b->above.level - *d and *norm = ||S(a, L)||, where b->high = 0 if c is no bound.  SPCA_NONFINITE:
 * not all entries are finite.  work (p). */
spca_status SPCA(l1_level)(magnitudes_t *m, double c, real *work, bracket_t *b, double *d,
                           double *norm);
#endif
