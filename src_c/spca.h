/* spca.h - the map of the C core: shared types, then every prototype, for float and for double or
 * for double alone.
 *
 * Kernels are plain C11.  They never allocate or print, and keep no state but the BLAS table and
 * the number of the clone that runs, which are set once at import.  They take every size as
 * spca_int, and may be called from many threads at once.  Order of arguments: sizes, inputs
 * (const), parameters, stop and ctx, what is changed in place, work, outputs.
 *
 * In comments, x (n) is an array of n numbers, A (m x n) has m rows and n columns, and "by columns"
 * or "by rows" says which of them are contiguous.  work (n) and iwork (n) are scratch of n numbers
 * that the caller gives; their contents mean nothing before or after a call, unless a comment says
 * so.  A' is the transpose, e_j the j-th unit vector, (x)_+ = max(x, 0), S(x, t) the soft
 * threshold, T_k(x) the vector of the k entries of x largest in magnitude. */
#ifndef SPCA_H
#define SPCA_H
#include <stddef.h>
#include <stdint.h>

typedef ptrdiff_t spca_int;
#ifdef SPCA_BLAS_ILP64
typedef int64_t blas_int;
#else
typedef int blas_int;
#endif
#ifndef BLAS_NOTHING /* what a subroutine of BLAS returns; int where f2c has made it (Pyodide) */
#define BLAS_NOTHING void
#endif

typedef enum {
    SPCA_OK = 0,
    SPCA_NOT_CONVERGED = 1, /* above 0: the result is usable */
    /* below 0: there is no result, unless a comment says otherwise; this one: stop said so */
    SPCA_STOPPED = -1,
    SPCA_ZERO_VECTOR = -2, /* the operator maps the vector to zero */
    SPCA_NONFINITE = -3,   /* a product is NaN or infinite */
    SPCA_PRODUCT_FAILED = -4,
    SPCA_LAPACK_FAILED = -5
} spca_status;

/* Kernels call it once in each outer iteration, and between blocks of a long product; nonzero means
 * that they are to stop. */
typedef int (*spca_stop)(void *ctx);

/* Does one part of a loop.  Parts write to places of their own, so neither their order nor who does
 * them matters. */
typedef void (*spca_task)(void *context, spca_int part);

/* Does the parts 0 .. count - 1 of a task, by threads or not, and calls stop meanwhile; returns
 * nonzero, with some parts left out, where stop said so.  With count = 0 it returns how many
 * threads there are.  NULL in its place: one part after the other.  pool.h has one with threads. */
typedef int (*spca_run)(spca_task task, void *context, spca_int count, spca_stop stop, void *ctx);

/* The largest magnitude of whole numbers that whole.c adds products of exactly; and how they are
 * stored. */
enum { SPCA_WHOLE = 2047 };
enum { SPCA_INT8, SPCA_UINT8, SPCA_INT16, SPCA_UINT16, SPCA_SINGLES, SPCA_DOUBLES };

typedef enum {
    SPCA_NO_DEFLATION = 0,
    SPCA_HOTELLING = 1,
    SPCA_PROJECTION = 2,
    SPCA_SCHUR = 3
} spca_deflation;

/* Columns of a block of `outer`; matrix_product: the depth that is turned at a time, and spare
 * room. */
enum { SPCA_OUTER_BLOCK = 320, SPCA_TURNED = 512, SPCA_SPARE = 31 };
enum { SPCA_LANES = 32 }; /* columns whose sums over pairs go side by side (distances.c) */
enum {
    SPCA_SIGNED = 12
    /* On up to SPCA_SIGNED variables, signed.c finds the best vector of given signs. */
};

/* SPCA_PART: bytes that a part of a loop reads.  SPCA_ALONE: loops over no more bytes are not worth
 * waking threads.  SPCA_LEAST(n): n, or 8 with SPCA_TINY, which makes all of these so small that
 * small problems have many parts, for the checks. */
#ifdef SPCA_TINY
enum { SPCA_PART = 64, SPCA_ALONE = 0 };
#define SPCA_LEAST(count) 8
#else
enum { SPCA_PART = 1 << 18, SPCA_ALONE = 1 << 22 };
#define SPCA_LEAST(count) (count)
#endif
/* Columns of a block that share one read of dense X (dense_block.c). */
enum { SPCA_TOGETHER = SPCA_LEAST(24) };
/* Bytes of a row of a block whose columns share one read of compressed X
 * (compressed_block.c). */
enum { SPCA_MANY = 160 };
/* Variables of a Gram matrix of compressed data, at most, whose places are kept in 16 bits. */
enum { SPCA_GRAM_MOST = 1 << 16 };
/* screen.c: columns of the quantized copy are padded to a multiple of the first; how many
 * references there are; it screens for no more than p over the third. */
enum { SPCA_QUANTIZED_BLOCK = 32, SPCA_REFERENCES = 4, SPCA_GUESS_SHARE = 8 };

/* What `block` of a storage is asked for: F V, F'U, or both one after the other. */
typedef enum { SPCA_FORWARD, SPCA_BACKWARD, SPCA_BOTH } spca_block;

/* Columns of C-ordered data that were used last, copied next to each other (column_cache.c).  All
 * arrays are the caller's.  It belongs to one call, since every product may change it. */
typedef struct {
    /* places for columns; the place that was given last; the number of the last call */
    spca_int capacity, cursor, batch;
    void *kept;      /* (n x capacity by columns), of the data's type */
    spca_int *owner; /* (capacity): the column in a place, -1 where there is none */
    /* (capacity): the last call that used a place; the places of a list; places that are to be
     * filled */
    spca_int *stamp, *slot_list, *missing;
    spca_int *slot; /* (p): the place of a column, -1 where it is not kept */
} spca_column_cache;

/* What exact screening knows of dense data Z = F (screen.c).  All arrays are the caller's.  It
 * belongs to one call, since answering a query changes it. */
typedef struct {
    /* the quantized copy z_j ~ step_j q_j; zeros pad its columns to ld, a multiple of
     * SPCA_QUANTIZED_BLOCK */
    const int8_t *quantized; /* (p x ld), or NULL: there are references alone */
    spca_int ld;
    const float *step;  /* (p), or NULL without a quantized copy */
    const float *norm;  /* (p) >= ||step_j q_j||; without a quantized copy, >= ||z_j|| */
    const float *slack; /* (p) >= ||z_j - step_j q_j|| plus what rounding does to a product */
    double widest;      /* >= the largest ||q_j|| */
    double smallest, greatest; /* slack holds for directions with norms between these */
    /* references: unit directions, and the product of every column with each of them */
    int known, newest, used;
    int chosen[SPCA_REFERENCES]; /* the references that span the basis, newest first */
    double *direction; /* (n x SPCA_REFERENCES by columns), or NULL: there is the quantized copy
                          alone */
    double *basis;     /* (n x SPCA_REFERENCES by columns), orthonormal */
    double triangle[SPCA_REFERENCES][SPCA_REFERENCES]; /* basis_m = sum_l chosen_l triangle_lm */
    float *product;                                    /* (p x SPCA_REFERENCES by columns) */
    float *residual; /* (p) >= the norm of what a column has outside of the span of the basis */
    /* long lists of columns: their unit directions, and for each column its product with the
     * direction of the last list that it was in */
    int lists;           /* lists so far; list l has direction l % SPCA_REFERENCES */
    double *list_of;     /* (n x SPCA_REFERENCES by columns) */
    float *last_product; /* (p) */
    int *last_list;      /* (p): the number of that list, 0 where there was none */
    /* scratch */
    float *bound, *estimate, *lower; /* (p) */
    spca_int *list;                  /* (p) */
    spca_int *guess;                 /* (p/SPCA_GUESS_SHARE) */
    double *unit, *outside;          /* (n) */
    int16_t *rounded;                /* (ld) */
    /* counts: queries, and columns read to answer them */
    spca_int queries, quantized_columns, columns;
} spca_screen;

/* How a search of a matrix in memory is made, and what it has done (search.c). */
enum { SPCA_ROUNDS = 4 };
typedef struct {
    spca_int starts; /* columns that start the race: those whose width[0] largest entries have the
                        largest norm */
    /* of each round: steps of a run, and how many runs go on after it */
    spca_int rounds, steps[SPCA_ROUNDS], keep[SPCA_ROUNDS];
    spca_int width[SPCA_ROUNDS]; /* of each round: nonzeros of a run, if more than k; no more than
                                    width[0] */
    spca_int max_iter;           /* the most steps of a run to its end */
    double tol;                  /* a run ends where a step gains no more than this share */
    spca_int ends;               /* how many different supports are asked for */
    /* how many ends quick swaps improve; and how many of these all swaps */
    spca_int tried, swapped;
    /* the arguments of `swap`; tie also decides which of equal ends comes first */
    double rise, gap, slack, tie;
    spca_int nodes;  /* nodes of a tree, at most; 0: no tree */
    double hopeless; /* the tree is given up where its bound exceeds the value by a larger share */
    spca_int exact;  /* with more variables than this, the race is in single precision */
    spca_run run;    /* does the parts of loops over runs, or NULL; the bits are the same */
} spca_search_plan;
typedef struct {
    spca_int starts, ends, n_iter, nodes; /* n_iter: the steps of the best run */
    int proved;
} spca_search_counts;

/* Which supports are allowed: whole units of variables, of given signs (units.c). */
typedef struct {
    spca_int p, units;
    const spca_int *unit; /* (p): the unit of each variable */
    const spca_int *size; /* (units): what each unit counts in a cardinality */
    /* (units): whether a unit may be, and must be, in a support */
    const uint8_t *allowed, *included;
    const int8_t *signs; /* (p): an entry of 1 is not to be negative, of -1 not positive; 0 either;
                            NULL: all 0 */
    int sized;           /* whether some size is not 1 */
} spca_supports;
typedef enum {
    SPCA_UNITS_TRUNCATED = 0,
    SPCA_UNITS_L0 = 1,
    SPCA_UNITS_L1 = 2,
    SPCA_UNITS_BOUND = 3
} spca_unit_rule;
/* What a step of an iteration does with A x (units.c). */
typedef struct {
    spca_supports of;
    int step;        /* a spca_unit_rule */
    spca_int count;  /* the cardinality, of a truncation */
    double level;    /* the penalty, or the bound */
    spca_int t;      /* with a bound: the result is orthogonal to the t columns of Q, */
    const double *Q; /* orthonormal (p x t) */
} spca_rule;

#define SPCA_TILE 256 /* rows of the tiles of moments.c */

#define REAL float
#define SPCA(name) spca_s##name
#include "spca_proto.h"
#undef REAL
#undef SPCA
#define REAL double
#define SPCA(name) spca_d##name
#include "spca_proto.h"
#undef REAL
#undef SPCA
#include "spca_double.h"
#endif
