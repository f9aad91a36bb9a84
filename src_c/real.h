/* real.h - private: the real type of this compilation, small vector operations, and BLAS with
 * arguments by value.  This is the only place that narrows a size to the BLAS integer; longer
 * vectors go in pieces. */
#ifndef SPCA_REAL_H
#define SPCA_REAL_H
#include "spca.h"
#include <float.h>
#include <tgmath.h> /* fabs, sqrt pick the right precision */

#ifdef SPCA_SINGLE
typedef float real;
#define REAL_MAX FLT_MAX
#define REAL_LEAST FLT_MIN
#define REAL_EPSILON FLT_EPSILON
#define SPCA(name) spca_s##name
#else
typedef double real;
#define REAL_MAX DBL_MAX
#define REAL_LEAST DBL_MIN
#define REAL_EPSILON DBL_EPSILON
#define SPCA(name) spca_d##name
#endif
typedef SPCA(operator) operator_t;
typedef SPCA(vector) vector_t;
#include "simd.h"

enum { STRANDS = 128 / sizeof(real) }; /* partial sums of a dot product */

#define PIECE ((spca_int)1 << 30) /* longest vector handed to one BLAS call */

static inline spca_int min_int(spca_int a, spca_int b)
{
    return a < b ? a : b;
}

static inline spca_int max_int(spca_int a, spca_int b)
{
    return a > b ? a : b;
}

/* Whether the caller wants to stop; stop may be NULL. */
static inline int asked_to_stop(spca_stop stop, void *ctx)
{
    return stop && stop(ctx);
}

/* How many threads share a loop.  It may decide how a loop is cut only where that changes no bit.
 */
static inline int threads_of(spca_run run)
{
    return run ? run(NULL, NULL, 0, NULL, NULL) : 1;
}

/* Does the parts 0 .. count - 1 of a loop that reads about `bytes` bytes: by `run`, or one after
 * the other where there is no run or threads are not worth it.  SPCA_STOPPED where stop said so.  A
 * task is named NAME_part, and its context has the arguments of the loop. */
static inline spca_status do_parts(spca_run run, double bytes, spca_task task, void *context,
                                   spca_int count, spca_stop stop, void *ctx)
{
    if (run && count > 1 && bytes > SPCA_ALONE)
        return run(task, context, count, stop, ctx) ? SPCA_STOPPED : SPCA_OK;
    for (spca_int part = 0; part < count; part++) {
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        task(context, part);
    }
    return SPCA_OK;
}

/* The sum of the partial sums of a dot product, added pairwise; sum is overwritten. */
static inline real add_strands(real *sum)
{
    for (int half = STRANDS / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++) sum[l] += sum[l + half];
    return sum[0];
}

/* x'y by STRANDS partial sums: sum l has the terms i = l modulo STRANDS.  The order of additions is
 * fixed, and such that compilers vectorize it without changing it. */
static inline real strands_dot(spca_int n, const real *x, const real *y)
{
    real sum[STRANDS] = {0};
    spca_int i = 0;
    for (; i + STRANDS <= n; i += STRANDS)
        for (int l = 0; l < STRANDS; l++) sum[l] += x[i + l] * y[i + l];
    for (int l = 0; i < n; i++, l++) sum[l] += x[i] * y[i];
    return add_strands(sum);
}

/* y -= a x.  Unlike BLAS, it rounds each entry in the same way, wherever x is cut into pieces. */
static inline void subtract_multiple(spca_int n, real a, const real *x, real *y)
{
    for (spca_int i = 0; i < n; i++) y[i] -= a * x[i];
}

/* Whether no x_i is NaN or infinite. */
static inline int is_finite(spca_int n, const real *x)
{
    int bad = 0;
    for (spca_int i = 0; i < n; i++) bad |= !(fabs(x[i]) <= REAL_MAX);
    return !bad;
}

/* max |x_i|, 0 for n = 0; NaN counts as 0. */
static inline real largest_magnitude(spca_int n, const real *x)
{
    real top[STRANDS] = {0};
    spca_int i = 0;
    for (; i + STRANDS <= n; i += STRANDS)
        for (int l = 0; l < STRANDS; l++) {
            real size = fabs(x[i + l]);
            top[l] = size > top[l] ? size : top[l];
        }
    for (int l = 0; i < n; i++, l++) {
        real size = fabs(x[i]);
        top[l] = size > top[l] ? size : top[l];
    }
    for (int l = 1; l < STRANDS; l++) top[0] = top[l] > top[0] ? top[l] : top[0];
    return top[0];
}

/* ||x||, without over- or underflow in the squares. */
static inline real nrm2(spca_int n, const real *x)
{
    real norm = 0;
    for (spca_int i = 0; i < n; i += PIECE) {
        blas_int m = (blas_int)min_int(PIECE, n - i), one = 1;
        norm = hypot(norm, SPCA(blas).nrm2(&m, (real *)x + i, &one));
    }
    return norm;
}

/* x <- a x */
static inline void scal(spca_int n, real a, real *x)
{
    for (spca_int i = 0; i < n; i += PIECE) {
        blas_int m = (blas_int)min_int(PIECE, n - i), one = 1;
        SPCA(blas).scal(&m, &a, x + i, &one);
    }
}

/* x <- x/||x|| and returns ||x||; x = 0 stays 0.  The inverse of a subnormal norm would overflow,
 * so such an x is first made larger. */
static inline real to_unit(spca_int n, real *x)
{
    real norm = nrm2(n, x);
    if (norm > 0 && norm < REAL_LEAST) {
        scal(n, 1 / REAL_EPSILON, x);
        scal(n, 1 / nrm2(n, x), x);
    } else if (norm != 0)
        scal(n, 1 / norm, x);
    return norm;
}

/* y += a x */
static inline void axpy(spca_int n, real a, const real *x, real *y)
{
    for (spca_int i = 0; i < n; i += PIECE) {
        blas_int m = (blas_int)min_int(PIECE, n - i), one = 1;
        SPCA(blas).axpy(&m, &a, (real *)x + i, &one, y + i, &one);
    }
}

/* x'v for a dense v. */
static inline real sparse_dot(vector_t x, const real *v)
{
    real sum = 0;
    if (!x.index) return strands_dot(x.nnz, x.value, v);
    for (spca_int a = 0; a < x.nnz; a++) sum += x.value[a] * v[x.index[a]];
    return sum;
}

/* v += a x for a dense v. */
static inline void sparse_axpy(real a, vector_t x, real *v)
{
    if (!x.index) {
        axpy(x.nnz, a, x.value, v);
        return;
    }
    for (spca_int i = 0; i < x.nnz; i++) v[x.index[i]] += a * x.value[i];
}
#endif
