/* joint.h - private: several sparse loadings, and one of them given the others (joint_column.c).
 *
 * Loadings V explain Tr(A V (V'V)^-1 V') together.  With Q an orthonormal basis of all but one of
 * them that is Tr(Q'AQ) + x'Nx/x'Mx, M = I - QQ' and N = MAM, of the remaining x.  Let F = AQ -
 * QC/2, C = Q'AQ; then N = A - QF' - FQ'. */
#ifndef SPCA_JOINT_H
#define SPCA_JOINT_H
#include "real.h"

#define JOINT_SPAN 1e-9   /* of a squared norm outside of a span, below which nothing is */
enum { JOINT_TRIED = 8 }; /* exchanges whose value is computed */

/* Loadings by their nonzeros: nnz (r), index and value (r x room), index ascending. */
typedef struct {
    spca_int *nnz, *index;
    double *value;
} loadings_t;

/* The problem, the loadings V that change, their images A v (r x p), and one of them given the
 * others: Q and F (m x p), the diagonals of N and M. */
typedef struct {
    spca_int p, r, room, m;
    const real *A;
    const double *diagonal;
    const spca_int *size; /* (r): most nonzeros */
    spca_stop stop;
    void *ctx;
    loadings_t V;
    double *image;
    double *Q, *F, *variance, *left; /* variance: diagonal of N; left: of M */
    double rest;                     /* Tr C */
    double *C, *L;                   /* (r x r) */
    double *score, *row, *gain;      /* (p) */
    spca_int n_used, *used;          /* (p): the variables of Q */
    spca_int *inside, *list;         /* (p), (room) */
    double *fit, *entry;             /* (room^2 + (2 r + 9) room), (3 room) */
    spca_int *trial;                 /* (2 room + r) */
    double spent;                    /* multiplications, about */
} joint_t;

/* A x (p). */
void SPCA(joint_image)(joint_t *o, spca_int nnz, const spca_int *index, const double *x, double *y);
/* The others of loading t, those with no nonzeros left out. */
void SPCA(joint_given)(joint_t *o, spca_int t);
/* Where loading t ascends: x (nnz nonzeros) and x'Nx/x'Mx, which is returned; nnz may be fewer than
 * `size`, at first.  thorough: variables exchanged, too. */
double SPCA(joint_ascend)(joint_t *o, spca_int size, int thorough, spca_int *nnz, spca_int *index,
                          double *x);
/* The `size` variables of largest |y| (p), ascending, and these entries; ties to the first. */
void SPCA(joint_select)(joint_t *o, spca_int size, const double *y, spca_int *index, double *x);
/* x'y over the nonzeros that both have. */
double SPCA(joint_product)(const joint_t *o, const loadings_t *V, spca_int s, spca_int t);
#endif
