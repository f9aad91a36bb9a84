/* core.h - what the checks of the C core share.
 *
 * A check draws a small problem from a trial, calls entry points of spca_proto.h on it, and
 * compares with plain loops in double or with what must hold of any result.  The numbers of a trial
 * come from a seed or from the bytes of a fuzzer; the checks are the same.  Every array has exactly
 * the documented size and is an allocation of its own, so that a sanitizer sees any step beyond it.
 *
 * Inputs are made once a trial: when it is repeated by many threads, they share them.  All that a
 * check learns goes into a digest, which must not depend on threads or on what scratch held before.
 */
#ifndef SPCA_TESTS_CORE_H
#define SPCA_TESTS_CORE_H
#include "centring.h"
#include "pool.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    void **at;
    size_t *bytes, count, room;
} arrays_t;

typedef struct {
    const char *name;
    uint64_t seed, state, digest;
    const uint8_t *bytes; /* of a fuzzer, used first; NULL: none */
    size_t left;
    int poison; /* the byte that scratch holds at first; < 0: it is not written */
    arrays_t own, inputs;
    size_t next; /* of the inputs */
    int shared;  /* the inputs are those of an earlier trial, already filled */
} trial_t;

void trial_end(trial_t *t);   /* frees what is its own */
void inputs_free(trial_t *t); /* and the inputs */
/* Frees what is its own but the first arrays. */
void trial_release(trial_t *t, size_t kept);
void failed(const trial_t *t, const char *file, int line, const char *what);
#define CHECK(t, truth)                                                                            \
    do {                                                                                           \
        if (!(truth)) failed(t, __FILE__, __LINE__, #truth);                                       \
    } while (0)

uint64_t scramble(uint64_t *state);
spca_int below(trial_t *t, spca_int n);                    /* 0 .. n - 1 */
spca_int between(trial_t *t, spca_int low, spca_int high); /* both included */
int chance(trial_t *t, int percent);
void digest(trial_t *t, const void *data, size_t size);
void digest_int(trial_t *t, spca_int value);

/* Scratch, of n > 0 or 0 entries, with nothing useful in it. */
void *scratch(trial_t *t, spca_int n, size_t size);
#define SCRATCH(t, n, type) ((type *)scratch(t, n, sizeof(type)))
/* An input to be filled unless *fill is 0: then it is there already. */
void *input(trial_t *t, spca_int n, size_t size, int *fill);

/* The reference LAPACK finds no eigenvalues when it is called once more after so many times; never,
 * if that is negative. */
extern _Thread_local spca_int lapack_fails;

/* A vector of doubles, zero. */
double *zeros(trial_t *t, spca_int n);

/* Asked to stop: at the query `at`, never if that is negative. */
typedef struct {
    spca_int asked, at;
} stop_t;
int stop_at(void *ctx);

/* An spca_run: the parts from the last to the first. */
int backwards(spca_task task, void *context, spca_int count, spca_stop stop, void *ctx);

/* An spca_run that sees races: each part begins with the trial's arrays as they were before the
 * loop, and no two parts change the same byte of these.  Scratch that is not written at first is
 * left to `backwards`, since it is compared. */
spca_run apart(trial_t *t);

typedef enum {
    PLAIN,    /* in [-1, 1) */
    TIES,     /* small integers */
    SPARSE,   /* mostly zeros */
    REPEATED, /* a few different columns, some constant; of a vector as PLAIN */
    SPREAD,   /* many magnitudes; the styles before are near 1 */
    LARGE,    /* near the largest number */
    SMALL,    /* subnormal or nearly */
    ANY,      /* all of these, and NaN and infinities */
    STYLES
} style_t;
double number(style_t style, uint64_t bits, int single);

/* The eigenvalues (ascending) and vectors of symmetric G (n x n) by Jacobi's rotations; G is
 * destroyed.  0 where it is not finite. */
int jacobi(spca_int n, double *G, double *values, double *vectors);
/* The largest eigenvalue of x'Ax/x'Bx over the support (B NULL: I). */
double largest_eigenvalue(trial_t *t, spca_int p, const double *A, const double *B, spca_int k,
                          const spca_int *index);
/* The next of the supports of k among p; 0 after the last.  The first is 0 .. k - 1. */
int next_support(spca_int p, spca_int k, spca_int *index);

void spca_sreference_blas(void), spca_dreference_blas(void);
typedef void check_t(trial_t *);

/* ---- of one precision ------------------------------------------------------------------------ */

#define WORK(t, n) SCRATCH(t, n, real)
#define EPSILON ((double)REAL_EPSILON)
#define SINGLE (sizeof(real) == sizeof(float))
/* Whether x is y, but for rounding of something of that size. */
#define NEAR(x, y, size) (fabs((double)(x) - (double)(y)) <= 1e3 * EPSILON * (double)(size))

/* ---- numbers (makers.c) ---- */
style_t SPCA(style)(trial_t *t, int tame);
const real *SPCA(numbers)(trial_t *t, style_t style, spca_int count);
real *SPCA(copy_of)(trial_t *t, spca_int count, const real *x);
int SPCA(are_finite)(spca_int count, const real *x);
void SPCA(digest)(trial_t *t, spca_status status, spca_int count, const real *x);
/* Sorted positions, count of n. */
const spca_int *SPCA(subset)(trial_t *t, spca_int n, spca_int count);
/* A vector by its nonzeros or, where dense, by all of its entries. */
vector_t SPCA(sparse)(trial_t *t, style_t style, spca_int p, spca_int nnz, int dense);

/* A symmetric p x p matrix, definite or not, and the same in double. */
real *SPCA(symmetric)(trial_t *t, spca_int p, style_t style, int definite, double *dense);

/* ---- problems: an operator, and what it stands for in double (makers.c) ---- */
typedef enum { ROWS, COLUMNS, CSR, CSC, CALLBACK, STORAGES } storage_t;

typedef struct {
    operator_t A;
    storage_t storage;
    style_t style;
    int covariance;
    double *F;     /* m x p by columns */
    double *dense; /* p x p: A with its deflations */
    double size;   /* of the entries of A before any deflation: what rounding is measured by */
    int exact;     /* whether dense can be compared with: tame data, no tiny pivots */
    stop_t fails;  /* a callback fails at this query */
    stop_t stops;
} SPCA(problem);
typedef SPCA(problem) problem_t;

/* What of it is fixed; for a screen: dense data, wider, about their means. */
/* THIN: compressed data, of whose rows most have but a few entries. */
enum { TAMED = 1, DEFLATED = 2, SCREENED = 4, SMALL_ONE = 8, THIN = 16 };
void SPCA(problem_of)(trial_t *t, problem_t *q, int fixed);
void SPCA(deflate)(trial_t *t, problem_t *q, spca_deflation deflation, vector_t x);
/* A screen of dense data without deflation or row weights; its answers are those of the plain A. */
/* The operator gets a cache of columns with it. */
spca_screen *SPCA(screen_of)(trial_t *t, problem_t *q, int quantized, int references);
spca_int SPCA(query_work)(const operator_t *A); /* 2p + m + t */
#endif
