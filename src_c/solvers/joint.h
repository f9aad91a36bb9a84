/* joint.h - private: several sparse loadings together, and one of them given the others
 * (joint_given.c, joint_column.c).
 *
 * Loadings V explain Tr(A V (V'V)^-1 V') together.  Let Q be an orthonormal basis of all but one of
 * them, x the remaining one, M = I - QQ' and N = MAM.  Then they explain Tr(Q'AQ) + x'Nx/x'Mx.
 * With F = AQ - QC/2 and C = Q'AQ, N = A - QF' - FQ'.
 *
 * Under a constraint v_s'C v_t = 0, where C = I or A over a scale, Q is C times the others, F =
 * penalty/2 Q and M = I.  That is a penalty on the squares of these products (Cory-Wright &
 * Pauphilet 2022), which grows until the equations are solved (joint_values.c). */
#ifndef SPCA_JOINT_H
#define SPCA_JOINT_H
#include "real.h"

#define JOINT_TIES 1e-10 /* share by which the first of equal scores counts as larger */
#define JOINT_RISE 1e-9  /* share by which the quotient must rise for a support to change */
/* share of a squared norm outside of a span, below which it counts as nothing */
#define JOINT_SPAN 1e-9
enum { JOINT_STEPS = 6 }; /* steps of conjugate directions on a support that is tried */
enum { JOINT_TRIED = 8 }; /* exchanges whose value is computed */
/* rows of A are used whole where p is less than this times the variables in use */
enum { JOINT_WHOLE = 2 };
/* the constraints: v_s'v_t = 0, v_s'Av_t = 0 */
enum { JOINT_ORTHOGONAL = 1, JOINT_UNCORRELATED = 2 };

/* Loadings by their nonzeros: nnz (r), index and value (r x room), index ascending. */
typedef struct {
    spca_int *nnz, *index;
    double *value;
} loadings_t;

/* The problem; the loadings V that change, and their images A v (r x p), both followed by r more
 * places; one loading given the others: Q and F (m x p), and the diagonals of N and M.  The rest is
 * scratch, which the caller of joint gives. */
typedef struct {
    spca_int p, r, room, m;
    const real *A;
    const double *diagonal;
    const spca_int *size;    /* (r): the most nonzeros, or the cardinality in units */
    const spca_supports *of; /* which supports are allowed; NULL: any */
    spca_stop stop;
    void *ctx;
    loadings_t V;
    double *image;
    double *drift; /* (r): how far the others have moved since a loading ascended */
    double *Q, *F, *variance, *left; /* (p): variance is the diagonal of N, left of M */
    double rest;                     /* what the others explain: Tr C, or less the penalty */
    double *C, *L;                   /* (r x r) */
    double *compact;                 /* (r x p): Q at the variables in use */
    double *score, *row, *gain;      /* (p) */
    spca_int n_used, *used;          /* (p): the variables where Q has entries */
    spca_int *inside, *list;         /* (p), (room) */
    spca_int n_near; /* of joint_select: variables that may be the largest, or none */
    const spca_int *near;
    double *fit, *entry;      /* (room^2 + (2 r + 9) room), (3 room) */
    spca_int *trial;          /* (2 room + r) */
    double *norm, *unit_work; /* (units), (unit_work) */
    spca_int *unit_iwork;     /* (units) */
    uint8_t *kept;            /* (units) */
    double *signed_x;         /* (room) both: a vector of the given signs */
    spca_int *signed_index;
    double spent;                   /* multiplications so far, about */
    int constraint, apart;          /* apart: Q is of joint_apart, orthonormal */
    double projected;               /* 1: Q spans what is removed; 0 under a constraint */
    double penalty, scale;          /* scale: the mean variance of the loadings */
    spca_int *place, *first;        /* of joint_values.c: (r x room), (equations) */
    double *K, *error, *multiplier; /* (equations^2), (equations) */
    double *gradient, *direction, *earlier, *moved; /* (r x room) */
    real *within; /* (joint_within squared): A between the variables in use, if they are few */
} joint_t;

/* y (p) = sum of x_a A_i, i = index_a, over nnz rows of A (p columns). */
void SPCA(joint_rows)(spca_int p, const real *A, spca_int nnz, const spca_int *index,
                      const double *x, double *y);
/* y (p) = A x, whose work is counted. */
void SPCA(joint_image)(joint_t *o, spca_int nnz, const spca_int *index, const double *x, double *y);
/* Sets Q, F, rest and the diagonals for loading t given the others; loadings with no nonzeros are
 * left out. */
void SPCA(joint_given)(joint_t *o, spca_int t);
/* Under a constraint, for a loading t that begins anew: Q is an orthonormal basis of what it must
 * be orthogonal to, and N = PAP, P = I - QQ'. */
void SPCA(joint_apart)(joint_t *o, spca_int t);
/* Raises x (nnz nonzeros at index) as loading t, after joint_given or joint_apart; returns
 * x'Nx/x'Mx.  nnz may be less than `size` at first.  thorough: exchanges variables, too. */
double SPCA(joint_ascend)(joint_t *o, spca_int size, int thorough, spca_int *nnz, spca_int *index,
                          double *x);
/* y += a x, n entries. */
void SPCA(joint_add)(spca_int n, double a, const double *x, double *y);
/* y += a x (p), where x and y are 0 where Q has no entries. */
void SPCA(joint_add_used)(const joint_t *o, double a, const double *x, double *y);
/* o->score (p) = (N + rho QQ') x. */
void SPCA(joint_apply)(joint_t *o, double rho, spca_int nnz, const spca_int *index,
                       const double *x);
/* Improves x on a support of n variables, with the given signs, to nearly the unit vector of the
 * largest quotient, which is returned; -1: there is none.  It ends sooner where the quotient seems
 * to stay below a level. */
double SPCA(joint_fitted)(joint_t *o, spca_int n, const spca_int *index, int steps, double level,
                          double *x);
/* Makes the best of the exchanges that are tried, of variables or of units; returns the quotient
 * after it, or as it was. */
double SPCA(joint_exchanged)(joint_t *o, double value, spca_int size, spca_int *nnz,
                             spca_int *index, double *x);
/* Under a constraint: moves the loadings to ones near that meet it, and raises these, with
 * exchanges; *explained is what they explain, -1 where there are none near.  It gives up where that
 * stays behind the bar. */
spca_status SPCA(joint_settle)(joint_t *o, double bar, double *explained);
/* The support on which y (p) is largest: its variables, ascending, and the entries of y there, with
 * the given signs; ties to the first.  Returns how many. */
spca_int SPCA(joint_select)(joint_t *o, spca_int size, const double *y, spca_int *index, double *x);
/* x'y, by four sums. */
INLINE double joint_dot(spca_int n, const double *x, const double *y)
{
    double s0 = 0, s1 = 0, s2 = 0, s3 = 0;
    spca_int i = 0;
    for (; i + 4 <= n; i += 4) {
        s0 += x[i] * y[i];
        s1 += x[i + 1] * y[i + 1];
        s2 += x[i + 2] * y[i + 2];
        s3 += x[i + 3] * y[i + 3];
    }
    for (; i < n; i++) s0 += x[i] * y[i];
    return (s0 + s1) + (s2 + s3);
}
/* -1 where the given sign of a variable is negative, else 1. */
static inline double joint_sign(const joint_t *o, spca_int i)
{
    return o->of && o->of->signs && o->of->signs[i] < 0 ? -1 : 1;
}
/* The most variables between which A is copied to `within`. */
static inline spca_int joint_within(spca_int p, spca_int r, spca_int room)
{
    return min_int(p / JOINT_WHOLE, r * room);
}
/* Whether two supports are the same. */
static inline int joint_same(spca_int n, const spca_int *a, spca_int m, const spca_int *b)
{
    while (n == m && n > 0 && a[n - 1] == b[n - 1]) m = --n;
    return n == 0 && m == 0;
}
/* Copies a vector of n nonzeros. */
static inline void joint_take(spca_int n, const spca_int *from, const double *y, spca_int *index,
                              double *x)
{
    for (spca_int a = 0; a < n; a++) {
        index[a] = from[a];
        x[a] = y[a];
    }
}
/* v_s'v_t of two loadings, over the nonzeros that both have. */
double SPCA(joint_product)(const joint_t *o, const loadings_t *V, spca_int s, spca_int t);

/* ---- the search ----------------------------------------------------------------------------- */

/* A search: the population of the best loadings known, and what moves need. */
typedef struct {
    joint_t o;
    spca_int members, *held; /* members of the population: at most, and now */
    loadings_t population;
    double *explained;
    uint64_t *random;
    double *U, *eigenvalue; /* (l x p), (l): the leading subspace, l = min(p, 2r) */
    real *turned;           /* (p x r) */
    double *promise;        /* (p) */
    spca_int *order;        /* (2r) */
    spca_int *thorough;     /* (r): whether a loading's last ascent was thorough */
    double *G, *H, *T;      /* (2r x 2r) */
} joint_search_t;

/* A random number: a counter, scrambled (Steele, Lea & Flood 2014, SplitMix64). */
static inline uint64_t joint_draw(joint_search_t *s)
{
    uint64_t z = *s->random += 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

/* A random number in [0, 1). */
static inline double joint_uniform(joint_search_t *s)
{
    return (double)(joint_draw(s) >> 11) * 0x1p-53;
}

/* A random number of 0 .. n - 1. */
static inline spca_int joint_below(joint_search_t *s, spca_int n)
{
    return (spca_int)(joint_draw(s) % (uint64_t)n);
}

/* A random number with mean 0 and variance 1/4, nearly normal. */
static inline double joint_centered(joint_search_t *s)
{
    return joint_uniform(s) + joint_uniform(s) + joint_uniform(s) - 1.5;
}

/* The first n places of s->order become a random permutation of 0 .. n - 1. */
static inline void joint_permute(joint_search_t *s, spca_int n)
{
    for (spca_int a = 0; a < n; a++) {
        spca_int b = joint_below(s, a + 1);
        s->order[a] = s->order[b];
        s->order[b] = a;
    }
}

/* Copies loading t of `from` to loading u of `to`. */
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

/* Where a sweep gained little, goes on with its step D as far as that gains.  The loadings before
 * the sweep are in the last r places, with their images.  Returns what is explained then. */
double SPCA(joint_further)(joint_search_t *s, double explained);
/* The loadings become r of the 2r loadings of themselves and another member, such that no exchange
 * of one explains more. */
void SPCA(joint_combine)(joint_search_t *s, loadings_t other);
/* Loading t becomes the largest entries of y (p), rounded to float, so that it does not depend on
 * the order of additions in y; if all are 0, it has no nonzeros. */
void SPCA(joint_truncate)(joint_search_t *s, spca_int t, const double *y);
/* R becomes a random orthogonal matrix (n x n). */
void SPCA(joint_rotation)(joint_search_t *s, spca_int n, double *R);
/* Nearly the leading l-dimensional subspace of A: s->U and s->eigenvalue, the vectors and
 * eigenvalues of A within it.  Y (2r x p): scratch. */
spca_status SPCA(joint_subspace)(joint_search_t *s, spca_int l, double *Y);
/* Loadings from the leading subspace: turned by varimax or at random, and truncated.  weighted: of
 * principal components times their standard deviations, of all l of them unless by varimax;
 * otherwise of r of them. */
spca_status SPCA(joint_from_subspace)(joint_search_t *s, int weighted, int varimax, spca_int l);
#endif
