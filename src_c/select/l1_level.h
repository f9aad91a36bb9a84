/* l1_level.h - private: the level of the soft threshold of bounded l1 norm. */
#ifndef SPCA_L1_LEVEL_H
#define SPCA_L1_LEVEL_H
#include "real.h"

/* The magnitudes that are searched: |x| scale or, nonnegative, x_+ scale; scale is a power of two.
 * With nonnegative = 1 a NaN counts as 0; with 2, an entry that is NaN or infinite has the
 * magnitude NaN. */
typedef struct {
    spca_int p;
    const real *x;
    int nonnegative;
    real scale;
    spca_run run;
} magnitudes_t;

/* Over the magnitudes a_i >= level: their count, sum of (a_i - level), and square = sum of (a_i -
 * level)^2. */
typedef struct {
    double level, count, sum, square;
} sums_t;

/* low <= L < high; each is one of the magnitudes, but low may be 0 and high REAL_MAX.  above: the
 * sums at high. */
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
