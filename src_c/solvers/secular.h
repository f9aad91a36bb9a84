/* secular.h - private: largest eigenvalues of bordered diagonal matrices, in double for both
 * precisions. */
#ifndef SPCA_SECULAR_H
#define SPCA_SECULAR_H
#include "real.h"

/* The largest eigenvalue of diag(eigenvalues) (w, descending) bordered by e (w) and the corner.
 * work (2w). */
double spca_bordered_eigenvalue(spca_int w, const double *eigenvalues, const double *e,
                                double corner, double *work);
/* The power of two that brings x near 1, as far as it can. */
double spca_unit_of(double x);
#endif
