/* joint.h - private: several sparse loadings, and one of them given the others (joint_column.c).
 *
 * Loadings V explain Tr(A V (V'V)^-1 V') together.  With Q an orthonormal basis of all but one of
 * them that is Tr(Q'AQ) + x'Nx/x'Mx, M = I - QQ' and N = MAM, of the remaining x.  Let F = AQ -
 * QC/2, C = Q'AQ; then N = A - QF' - FQ'.
 *
 * Under a constraint v_s'Cv_t = 0, C = I or A over a scale, Q are the others times C, F = penalty/2
 * Q and M = I: a penalty on the squares of these products (Cory-Wright & Pauphilet 2022), which
 * grows until the equations are solved (joint_values.c). */
#ifndef SPCA_JOINT_H
#define SPCA_JOINT_H
#include "real.h"

#define JOINT_TIES 1e-10  /* share by which the first of equal scores is larger */
#define JOINT_RISE 1e-9   /* of the quotient, for which a support changes */
#define JOINT_SPAN 1e-9   /* of a squared norm outside of a span, below which nothing is */
enum { JOINT_STEPS = 6 }; /* of conjugate directions on a support that is tried */
enum { JOINT_TRIED = 8 }; /* exchanges whose value is computed */
enum { JOINT_WHOLE = 2 }; /* variables over those in use, below which rows of A are used whole */
enum { JOINT_ORTHOGONAL = 1, JOINT_UNCORRELATED = 2 }; /* constraints */

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
    const spca_int *size;    /* (r): most nonzeros, or units */
    const spca_supports *of; /* which supports are allowed; NULL: any */
    spca_stop stop;
    void *ctx;
    loadings_t V;
    double *image;
    double *drift;                   /* (r): of the others, since a loading ascended */
    double *Q, *F, *variance, *left; /* variance: diagonal of N; left: of M */
    double rest;                     /* Tr C */
    double *C, *L;                   /* (r x r) */
    double *compact;                 /* (r x p) */
    double *score, *row, *gain;      /* (p) */
    spca_int n_used, *used;          /* (p): the variables of Q */
    spca_int *inside, *list;         /* (p), (room) */
    spca_int n_near;                 /* variables that may be the largest, or none */
    const spca_int *near;
    double *fit, *entry;      /* (room^2 + (2 r + 9) room), (3 room) */
    spca_int *trial;          /* (2 room + r) */
    double *norm, *unit_work; /* (units), (unit_work) */
    spca_int *unit_iwork;     /* (units) */
    uint8_t *kept;            /* (units) */
    double *signed_x;         /* (room), and below (room): of the signs that are given */
    spca_int *signed_index;
    double spent;                   /* multiplications, about */
    int constraint, apart;          /* apart: Q is orthonormal, and has nothing of what begins */
    double projected;               /* 1: Q spans what is removed; 0: under a constraint */
    double penalty, scale;          /* the mean variance of the loadings */
    spca_int *place, *first;        /* (r x room), (equations) */
    double *K, *error, *multiplier; /* (equations^2), (equations) */
    double *gradient, *direction, *earlier, *moved; /* (r x room) */
    real *within; /* A between the variables in use, if they are few: (joint_within, squared) */
} joint_t;

/* y (p) = the rows of A (p columns) at index, times x (nnz) */
void SPCA(joint_rows)(spca_int p, const real *A, spca_int nnz, const spca_int *index,
                      const double *x, double *y);
/* A x (p). */
void SPCA(joint_image)(joint_t *o, spca_int nnz, const spca_int *index, const double *x, double *y);
/* The others of loading t, those with no nonzeros left out. */
void SPCA(joint_given)(joint_t *o, spca_int t);
/* The same under a constraint, from which a loading begins: Q an orthonormal basis of what it must
 * be orthogonal to, and N = PAP, P = I - QQ'. */
void SPCA(joint_apart)(joint_t *o, spca_int t);
/* Where loading t ascends: x (nnz nonzeros) and x'Nx/x'Mx, which is returned; nnz may be fewer than
 * `size`, at first.  thorough: variables exchanged, too. */
double SPCA(joint_ascend)(joint_t *o, spca_int size, int thorough, spca_int *nnz, spca_int *index,
                          double *x);
/* y += a x, both (n) */
void SPCA(joint_add)(spca_int n, double a, const double *x, double *y);
/* y += a x, both of entries where Q has some, and none elsewhere */
void SPCA(joint_add_used)(const joint_t *o, double a, const double *x, double *y);
/* score = (N + rho QQ') x */
void SPCA(joint_apply)(joint_t *o, double rho, spca_int nnz, const spca_int *index,
                       const double *x);
/* The best unit x on a support, of the signs that are given, near that of the largest quotient,
 * which is returned; -1: none.  Ends sooner where it seems to stay below a level. */
double SPCA(joint_fitted)(joint_t *o, spca_int n, const spca_int *index, int steps, double level,
                          double *x);
/* The best of the exchanges that are tried, of variables, or of units; the quotient after it, or as
 * it was. */
double SPCA(joint_exchanged)(joint_t *o, double value, spca_int size, spca_int *nnz,
                             spca_int *index, double *x);
/* Under a constraint: loadings near these that meet it, with the best values and exchanges to which
 * they ascend, and what they explain; -1: there are none near.  Given up where that stays behind
 * the bar. */
spca_status SPCA(joint_settle)(joint_t *o, double bar, double *explained);
/* The largest support of y (p): its variables, ascending, how many, and their entries, of the signs
 * that are given; ties to the first. */
spca_int SPCA(joint_select)(joint_t *o, spca_int size, const double *y, spca_int *index, double *x);
/* 1, or -1 where the sign of a variable is given so. */
static inline double joint_sign(const joint_t *o, spca_int i)
{
    return o->of && o->of->signs && o->of->signs[i] < 0 ? -1 : 1;
}
/* The most variables between which A is copied. */
static inline spca_int joint_within(spca_int p, spca_int r, spca_int room)
{
    return min_int(p / JOINT_WHOLE, r * room);
}
static inline int joint_same(spca_int n, const spca_int *a, spca_int m, const spca_int *b)
{
    while (n == m && n > 0 && a[n - 1] == b[n - 1]) m = --n;
    return n == 0 && m == 0;
}
static inline void joint_take(spca_int n, const spca_int *from, const double *y, spca_int *index,
                              double *x)
{
    for (spca_int a = 0; a < n; a++) {
        index[a] = from[a];
        x[a] = y[a];
    }
}
/* x'y over the nonzeros that both have. */
double SPCA(joint_product)(const joint_t *o, const loadings_t *V, spca_int s, spca_int t);

/* ---- the search ----------------------------------------------------------------------------- */

typedef struct {
    joint_t o;
    spca_int members, *held; /* of the population: at most, and now */
    loadings_t population;
    double *explained;
    uint64_t *random;
    double *U, *eigenvalue; /* (l x p), (l): the leading subspace, l = min(p, 2r) */
    real *turned;           /* (p x r) */
    double *promise;        /* (p) */
    spca_int *order;        /* (2r) */
    spca_int *thorough;     /* (r): whether its last ascent was */
    double *G, *H, *T;      /* (2r x 2r) */
} joint_search_t;

/* A counter, scrambled (Steele, Lea & Flood 2014, SplitMix64). */
static inline uint64_t joint_draw(joint_search_t *s)
{
    uint64_t z = *s->random += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline double joint_uniform(joint_search_t *s)
{
    return (double)(joint_draw(s) >> 11) * 0x1p-53;
}

static inline spca_int joint_below(joint_search_t *s, spca_int n)
{
    return (spca_int)(joint_draw(s) % (uint64_t)n);
}

static inline double joint_centered(joint_search_t *s)
{
    return joint_uniform(s) + joint_uniform(s) + joint_uniform(s) - 1.5;
}

/* The first n places of the order become a permutation. */
static inline void joint_permute(joint_search_t *s, spca_int n)
{
    for (spca_int a = 0; a < n; a++) {
        spca_int b = joint_below(s, a + 1);
        s->order[a] = s->order[b];
        s->order[b] = a;
    }
}

/* Loading u of `to` becomes loading t of `from`. */
static inline void joint_copy(const joint_t *o, const loadings_t *from, spca_int t, loadings_t *to,
                              spca_int u)
{
    spca_int room = o->room;
    to->nnz[u] = from->nnz[t];
    for (spca_int a = 0; a < from->nnz[t]; a++) {
        to->index[u * room + a] = from->index[t * room + a];
        to->value[u * room + a] = from->value[t * room + a];
    }
}

/* Where a sweep gained little, its step D goes on as far as that gains: the loadings before are in
 * the last r places, with their images.  What is explained then. */
double SPCA(joint_further)(joint_search_t *s, double explained);
/* The best combination of the loadings, the first r of 2r of o.V, and of another member. */
void SPCA(joint_combine)(joint_search_t *s, loadings_t other);
/* Loading t becomes the largest entries of y (p), each to the digits of float, which the order of
 * additions does not reach; zeros alone: nothing. */
void SPCA(joint_truncate)(joint_search_t *s, spca_int t, const double *y);
/* An orthogonal matrix (n x n) at random. */
void SPCA(joint_rotation)(joint_search_t *s, spca_int n, double *R);
/* The leading subspace of A, nearly: eigenvalues and vectors of A within it.  Y (2r x p). */
spca_status SPCA(joint_subspace)(joint_search_t *s, spca_int l, double *Y);
/* Loadings from the leading subspace: after varimax, or turned at random; weighted: of the
 * principal components times their standard deviations, or of twice as many. */
spca_status SPCA(joint_from_subspace)(joint_search_t *s, int weighted, int varimax, spca_int l);
#endif
