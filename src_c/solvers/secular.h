/* secular.h - private: eigenvalues of bordered diagonal matrices, in double for both precisions. */
#ifndef SPCA_SECULAR_H
#define SPCA_SECULAR_H
#include "real.h"

/* Largest eigenvalue of diag(eigenvalues), descending, bordered by e and corner.  work (2w). */
double spca_bordered_eigenvalue(spca_int w, const double *eigenvalues, const double *e,
                                double corner, double *work);
/* The power of two that brings x near 1. */
double spca_unit_of(double x);
#endif
