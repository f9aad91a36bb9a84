/* spca.h - the map of the C core: shared types, then every prototype for float and for double.
 *
 * Kernels are plain C11: they never allocate, print or keep state (but the BLAS table, filled once
 * at import), take every size as spca_int, and may be called from many threads at once.  Order of
 * arguments: sizes, inputs (const), parameters, stop and ctx, in/out, work, outputs. */
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

typedef enum {
    SPCA_NO_DEFLATION = 0,
    SPCA_HOTELLING = 1,
    SPCA_PROJECTION = 2,
    SPCA_SCHUR = 3
} spca_deflation;

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
#endif
