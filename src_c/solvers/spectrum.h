/* spectrum.h - private: the largest eigenvalues of a symmetric matrix, and the nearest matrix that
 * is semidefinite and has trace 1, for dspca.c and shaped.c.  Matrices are by columns; only upper
 * triangles are read and written. */
#ifndef SPCA_SPECTRUM_H
#define SPCA_SPECTRUM_H
#include "real.h"

/* Room for eigenvectors (p x p), values (p), and scratch. */
typedef struct {
    spca_int p;
    double *vectors, *values, *work;
    blas_int *iwork;
} spectrum_t;

/* The `count` largest eigenvalues of S (destroyed), ascending, into e->values, and their vectors if
 * `vectors`. */
static inline spca_status leading_part(spectrum_t *e, int vectors, spca_int count, double *S)
{
    return spca_leading_eigenpairs(e->p, count, S, e->work, e->iwork, e->values,
                                   vectors ? e->vectors : NULL);
}

/* An upper bound on the largest eigenvalue of S (destroyed).  The computed eigenvalues are those of
 * S + E, where ||E|| is a modest multiple of epsilon ||S||; p epsilon ||S||_F is far more than is
 * ever seen. */
static inline spca_status eigenvalue_bound(spectrum_t *e, double *S, double *bound)
{
    double square = 0;
    spca_status status;
    for (spca_int j = 0; j < e->p; j++) {
        square += 2 * strands_dot(j, S + j * e->p, S + j * e->p);
        square += S[j + j * e->p] * S[j + j * e->p];
    }
    status = leading_part(e, 0, 1, S);
    *bound = e->values[0] + (double)e->p * DBL_EPSILON * sqrt(square);
    return status;
}

/* The level c with sum of (values - c)_+ = 1 over `count` ascending values; *rank: how many exceed
 * it.  *rank = count means that more values may be needed. */
static inline double trace_level(spca_int count, const double *ascending, spca_int *rank)
{
    double sum = 0, level = 0;
    *rank = 0;
    for (spca_int a = count - 1; a >= 0; a--) {
        double next = (sum + ascending[a] - 1) / (double)(*rank + 1);
        if (!(ascending[a] > next)) break;
        sum += ascending[a];
        level = next;
        ++*rank;
    }
    return level;
}

/* M = sum of (value - level) vv' over the `rank` largest of `count` eigenvalues. */
static inline spca_status composed(spectrum_t *e, spca_int count, double level, spca_int rank,
                                   double *M)
{
    spca_int p = e->p;
    const double *last = e->vectors + (count - rank) * p;
    for (spca_int a = count - rank; a < count; a++)
        scal(p, sqrt(e->values[a] - level), e->vectors + a * p);
    return spca_dmatrix_product(1, p, p, rank, last, p, last, p, 1, 0, NULL, NULL, NULL, 0, NULL, M,
                                p);
}
#endif
