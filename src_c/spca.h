/* spca.h - the map of the C core: shared types, then every prototype, for float and for
 * double or for double alone.
 *
 * Kernels are plain C11: they never allocate, print or keep state (but the BLAS table and
 * the clone that runs, set once at import), take every size as spca_int, and may be called from
 * many threads at once.  Order of arguments: sizes, inputs (const), parameters, stop and ctx,
 * in/out, work, outputs. */
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
#ifndef BLAS_NOTHING /* what a subroutine of BLAS returns: an int where f2c made it (Pyodide) */
#define BLAS_NOTHING void
#endif

typedef enum {
    SPCA_OK = 0,
    SPCA_NOT_CONVERGED = 1, /* > 0: the result is usable */
    SPCA_STOPPED = -1,      /* < 0: no result; the stop callback said so */
    SPCA_ZERO_VECTOR = -2,  /* the operator maps the vector to zero */
    SPCA_NONFINITE = -3,    /* a product is NaN or infinite */
    SPCA_PRODUCT_FAILED = -4,
    SPCA_LAPACK_FAILED = -5
} spca_status;

/* Asked once an outer iteration, and between blocks of a long product; nonzero means stop. */
typedef int (*spca_stop)(void *ctx);

/* One of the parts of a loop.  Parts write to places of their own: neither their order nor who does
 * them matters. */
typedef void (*spca_task)(void *context, spca_int part);

/* Does the parts 0 .. count - 1, by threads or not, and asks stop meanwhile; nonzero, with parts
 * left out, where that said so.  NULL: one part after the other (pool.h has another).
 * Of no parts: how many threads there are. */
typedef int (*spca_run)(spca_task task, void *context, spca_int count, spca_stop stop, void *ctx);

/* Whole numbers of which sums of products are exact: the largest, and how they are stored. */
enum { SPCA_WHOLE = 2047 };
enum { SPCA_INT8, SPCA_UINT8, SPCA_INT16, SPCA_UINT16, SPCA_SINGLES, SPCA_DOUBLES };

typedef enum {
    SPCA_NO_DEFLATION = 0,
    SPCA_HOTELLING = 1,
    SPCA_PROJECTION = 2,
    SPCA_SCHUR = 3
} spca_deflation;

enum { SPCA_OUTER_BLOCK = 320, SPCA_TURNED = 512, SPCA_SPARE = 31 };
enum { SPCA_LANES = 32 }; /* columns whose sums over pairs stand side by side (distances.c) */
enum {
    SPCA_SIGNED = 12
}; /* variables up to which values of given signs are the best ones (signed.c) */

/* Bytes that a part of a loop reads, bytes up to which threads are not worth their waking, and the
 * least of what is counted otherwise; SPCA_TINY: so little that small problems have many parts, for
 * the checks. */
#ifdef SPCA_TINY
enum { SPCA_PART = 64, SPCA_ALONE = 0 };
#define SPCA_LEAST(count) 8
#else
enum { SPCA_PART = 1 << 18, SPCA_ALONE = 1 << 22 };
#define SPCA_LEAST(count) (count)
#endif
/* Columns of a block that share one read of X (dense_block.c). */
enum { SPCA_TOGETHER = SPCA_LEAST(24) };
enum { SPCA_MANY = 160 }; /* bytes of a row of a block that share one (compressed.c) */
enum { SPCA_QUANTIZED_BLOCK = 32, SPCA_REFERENCES = 4, SPCA_GUESS_SHARE = 8 };

/* What the block of a storage is asked for. */
typedef enum { SPCA_FORWARD, SPCA_BACKWARD, SPCA_BOTH } spca_block;

/* Columns of C-ordered data, the ones used last, copied next to each other (column_cache.c).  All
 * arrays are the caller's; it belongs to one call. */
typedef struct {
    spca_int capacity, cursor, batch;
    void *kept;                            /* n x capacity, of the data's type */
    spca_int *owner;                       /* (capacity), -1 where free */
    spca_int *stamp, *slot_list, *missing; /* (capacity) */
    spca_int *slot;                        /* (p), -1 where not kept */
} spca_column_cache;

/* What exact screening keeps of dense data Z = F (screen.c).  All arrays are the caller's; it
 * belongs to one call, since answering a query changes it. */
typedef struct {
    /* the quantized copy z_j ~ step_j q_j; columns padded by zeros to ld, a multiple of
     * SPCA_QUANTIZED_BLOCK
     */
    const int8_t *quantized; /* NULL: references alone */
    spca_int ld;
    const float *step;  /* (p) or NULL */
    const float *norm;  /* (p) >= ||step_j q_j||, without a quantized copy >= ||z_j|| */
    const float *slack; /* (p) >= ||z_j - step_j q_j|| plus what rounding does to a product */
    double widest;      /* >= the largest ||q_j|| */
    double smallest, greatest; /* norms of directions for which slack holds */
    /* references: unit directions and the product of every column with them */
    int known, newest, used;
    int chosen[SPCA_REFERENCES]; /* the used ones that span the basis, newest first */
    double *direction;           /* n x SPCA_REFERENCES, or NULL: the quantized copy alone */
    double *basis;               /* n x SPCA_REFERENCES, orthonormal */
    double triangle[SPCA_REFERENCES][SPCA_REFERENCES]; /* basis_m = sum_l chosen_l triangle_lm */
    float *product;                                    /* p x SPCA_REFERENCES */
    float *residual; /* (p) >= what of a column is outside of the basis */
    /* long lists of columns: their unit directions, and of each column the last product with one */
    int lists;           /* so far; list l has direction l % SPCA_REFERENCES */
    double *list_of;     /* n x SPCA_REFERENCES */
    float *last_product; /* (p) */
    int *last_list;      /* (p), 0 where there was none */
    /* scratch */
    float *bound, *estimate, *lower; /* (p) */
    spca_int *list;                  /* (p) */
    spca_int *guess;                 /* (p/SPCA_GUESS_SHARE) */
    double *unit, *outside;          /* (n) */
    int16_t *rounded;                /* (ld) */
    /* counts: products asked for, and columns read to answer them */
    spca_int queries, quantized_columns, columns;
} spca_screen;

/* How a search of a matrix in memory goes on, and what it has done (search.c). */
enum { SPCA_ROUNDS = 4 };
typedef struct {
    spca_int starts; /* columns that start: of largest norms of the width[0] largest entries */
    spca_int rounds, steps[SPCA_ROUNDS], keep[SPCA_ROUNDS]; /* runs of the race that go on */
    spca_int width[SPCA_ROUNDS]; /* nonzeros of a run, if more than k, and no more than width[0] */
    spca_int max_iter;           /* steps of a run to its end */
    double tol;
    spca_int ends;                /* different ends that are asked for */
    spca_int tried, swapped;      /* those that quick swaps improve, and of these all swaps */
    double rise, gap, slack, tie; /* of swaps */
    spca_int nodes;               /* of a tree from one start; 0: no tree */
    double hopeless;              /* excess of its bound over the value, as a share, that ends it */
    spca_int exact;               /* variables beyond which the race is in single precision */
    spca_run run;                 /* the parts of loops over runs, or NULL; the same bits */
} spca_search_plan;
typedef struct {
    spca_int starts, ends, n_iter, nodes; /* n_iter: of the best run */
    int proved;
} spca_search_counts;

/* Which supports are allowed: units of variables, and signs (units.c). */
typedef struct {
    spca_int p, units;
    const spca_int *unit;              /* (p): of each variable */
    const spca_int *size;              /* (units): what a cardinality counts of each */
    const uint8_t *allowed, *included; /* (units) */
    const int8_t *signs; /* (p): 1: not negative, -1: not positive, 0: either; NULL: all 0 */
    int sized;           /* whether sizes are not all 1 */
} spca_supports;
typedef enum {
    SPCA_UNITS_TRUNCATED = 0,
    SPCA_UNITS_L0 = 1,
    SPCA_UNITS_L1 = 2,
    SPCA_UNITS_BOUND = 3
} spca_unit_rule;
typedef struct {
    spca_supports of;
    int step;        /* a spca_unit_rule */
    spca_int count;  /* cardinality of a truncation */
    double level;    /* penalty or bound */
    spca_int t;      /* of a bound: what it makes is orthogonal to the t columns of Q, */
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
