/* pivot.h - private: where to split numbers when searching by partition, and the integers that
 * count them. */
#ifndef SPCA_PIVOT_H
#define SPCA_PIVOT_H
#include "real.h"

#ifdef SPCA_SINGLE
typedef int32_t whole; /* as wide as real; otherwise counting would not be vectorized */
#else
typedef int64_t whole;
#endif

/* The median of three. */
static inline real middle(real a, real b, real c)
{
    return a < b ? (b < c ? b : a < c ? c : a) : (a < c ? a : b < c ? c : b);
}

/* An entry of a (n >= 1) near the median: the median of three medians of three entries, evenly
 * spaced. */
static inline real pivot_of(spca_int n, const real *a)
{
    spca_int step = (n - 1) / 8;
    return middle(middle(a[0], a[step], a[2 * step]), middle(a[3 * step], a[4 * step], a[5 * step]),
                  middle(a[6 * step], a[7 * step], a[n - 1]));
}
#endif
