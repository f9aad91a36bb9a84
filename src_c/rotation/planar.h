/* planar.h - private: rotations of two columns. */
#ifndef SPCA_PLANAR_H
#define SPCA_PLANAR_H
#include "real.h"

/* x, y <- c x + s y, c y - s x (p rows), and the same for the columns u and v of R (r). */
void SPCA(turn_pair)(spca_int p, spca_int r, double c, double s, real *x, real *y, double *u,
                     double *v);

/* Whether a pair with W = D + iN (rotate.c), where N is known to noise, gains no more than tol^2
 * energy by turning. */
static inline int rests(double D, double N, double noise, double energy, double tol)
{
    double n = fabs(N) + noise, W = hypot(D, n);
    if ((D < 0 ? W : n) <= 4 * (double)REAL_EPSILON * energy) return 1;
    return (D < 0 ? W - D : n * (n / (W + D))) / 4 <= tol * tol * energy;
}
#endif
