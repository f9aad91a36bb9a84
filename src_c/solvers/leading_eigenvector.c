/* leading_eigenvector.c - the largest eigenvalue of a symmetric matrix in memory, and its vector.
 *
 * There are three steps: Householder reflections H_m to a tridiagonal T, each with one pass over
 * what is left of the matrix; bisection by the signs of the pivots of T - x I; and inverse
 * iteration with h I - T, h just above the eigenvalue, whose Cholesky factors exist without
 * pivoting.  Where the signs of T's off-diagonal entries are turned positive, the vector has no
 * negative entries (Perron and Frobenius).  So a positive start has a part along it, and solving
 * adds only positive numbers.
 *
 * LAPACK's syevr rounds by the number of threads of BLAS, and takes 23 KB of stack with some
 * kernels of OpenBLAS.  With few variables it takes longer to begin than this takes to end. */
#include "real.h"

enum { SOLVES = 3 };
/* squares below this, beside those near 1, count as 0 */
#define LEAST (REAL_LEAST / REAL_EPSILON)

/* G <- H G H for each H = I - tau v v' in turn.  The update v w' + w v' of the last reflection is
 * subtracted while the next row is read, so that each step makes one pass.  v_m stays in row m; d
 * and e become the entries of T. */
VECTORIZED(reduce, (spca_int k, real *G, real *tau, real *d, real *e, real *w, real *next),
           (k, G, tau, d, e, w, next))
{
    const real *before = NULL; /* v of the reflection before, or NULL */
    for (spca_int m = 0; m < k; m++) {
        real *v = G + m * k, rest = 0, inner = 0, *old = w;
        if (before)
            for (spca_int i = m; i < k; i++) v[i] -= before[m] * w[i] + w[m] * before[i];
        d[m] = v[m];
        tau[m] = 0;
        e[m] = m + 1 < k ? v[m + 1] : 0;
        for (spca_int i = m + 2; i < k; i++) rest += v[i] * v[i];
        if (rest >= LEAST) {
            real size = sqrt(e[m] * e[m] + rest);
            v[m + 1] += e[m] > 0 ? size : -size;
            e[m] = e[m] > 0 ? -size : size;
            tau[m] = 2 / (v[m + 1] * v[m + 1] + rest);
        }
        for (spca_int i = m + 1; i < k; i++) next[i] = 0;
        for (spca_int j = m + 1; j < k; j++) {
            real *row = G + j * k, share = tau[m] * v[j];
            if (before)
                for (spca_int i = m + 1; i < k; i++) row[i] -= before[j] * w[i] + w[j] * before[i];
            if (tau[m] != 0)
                for (spca_int i = m + 1; i < k; i++) next[i] += share * row[i];
        }
        before = tau[m] != 0 ? v : NULL;
        for (spca_int i = m + 1; i < k; i++) inner += next[i] * v[i];
        for (spca_int i = m + 1; i < k; i++) next[i] -= tau[m] / 2 * inner * v[i];
        w = next;
        next = old;
    }
}

/* The first pivot of T - x I that is not negative; k where x is above all eigenvalues (Sturm). */
static spca_int first_above(spca_int k, const real *d, const real *e, double x)
{
    double pivot = -1, off = 0;
    for (spca_int i = 0; i < k; i++) {
        pivot = (double)d[i] - x - off * off / pivot;
        if (!(pivot < 0)) return i;
        off = (double)e[i];
    }
    return k;
}

/* Encloses the largest eigenvalue of T, whose entries are near 1, between numbers as close as
 * rounding.  Tiny e_i become 0, which cuts T into blocks; returns where the first block that has
 * the eigenvalue begins. */
static spca_int enclose(spca_int k, const real *d, real *e, double *lower, double *upper)
{
    double low = -HUGE_VAL, high = -HUGE_VAL, size = 0;
    spca_int block;
    for (spca_int i = 0; i < k; i++) {
        double beside = (double)fabs(e[i]) + (i > 0 ? (double)fabs(e[i - 1]) : 0);
        low = fmax(low, (double)d[i]);
        high = fmax(high, (double)d[i] + beside);
        size = fmax(size, (double)fabs(d[i]) + beside);
    }
    for (spca_int i = 0; i < k; i++)
        if ((double)fabs(e[i]) <= DBL_EPSILON / 4 * size) e[i] = 0;
    high += DBL_EPSILON * size + DBL_MIN;
    for (double width = high - low; width > DBL_EPSILON * size;) {
        double middle = low + width / 2;
        if (first_above(k, d, e, middle) == k)
            high = middle;
        else
            low = middle;
        if (!(high - low < width)) break;
        width = high - low;
    }
    *lower = low;
    *upper = high;
    block = min_int(first_above(k, d, e, low - 2 * DBL_EPSILON * size), k - 1);
    while (block > 0 && e[block - 1] != 0) block--;
    return block;
}

/* z: the eigenvector of T for its eigenvalue just below `high`, in the block that begins there; 0
 * elsewhere. */
static void solve(spca_int k, const real *d, const real *e, double high, spca_int block,
                  real *pivot, real *z)
{
    spca_int end = block;
    double last = 1, least = DBL_EPSILON / 4; /* the least pivot, beside entries near 1 */
    for (spca_int i = 0; i < k; i++) z[i] = 0;
    do { /* h I - T = L D L', whose pivots are positive */
        double off = end > block ? (double)e[end - 1] : 0;
        last = fmax(high - (double)d[end] - off * off / last, least);
        pivot[end] = (real)last;
        z[end] = 1;
    } while (e[end++] != 0);
    for (int t = 0; t < SOLVES; t++) {
        for (spca_int i = block + 1; i < end; i++) z[i] += fabs(e[i - 1]) / pivot[i - 1] * z[i - 1];
        z[end - 1] /= pivot[end - 1];
        for (spca_int i = end - 2; i >= block; i--)
            z[i] = (z[i] + fabs(e[i]) * z[i + 1]) / pivot[i];
        real top = largest_magnitude(k, z);
        for (spca_int i = block; i < end; i++) z[i] /= top;
    }
    for (spca_int i = block + 1, negative = 0; i < end; i++) {
        negative ^= e[i - 1] < 0;
        if (negative) z[i] = -z[i];
    }
}

/* Moves the part of G without zero rows together; used (k) says which variables it has.  Returns
 * how many. */
static spca_int without_zeros(spca_int k, real *G, real *used)
{
    spca_int c = 0, d = 0;
    for (spca_int b = 0; b < k; b++) {
        int any = 0;
        for (spca_int a = 0; a < k; a++) any |= G[a + b * k] != 0;
        used[b] = (real)any;
        c += any;
    }
    for (spca_int b = 0; c < k && b < k; b++)
        for (spca_int a = 0; a < k; a++)
            if (used[a] != 0 && used[b] != 0) G[d++] = G[a + b * k];
    return c;
}

/* The largest eigenvalue of G, which has no zero row, and its vector x = H_0 H_1 .. z. */
static real leading(spca_int k, real *G, real *work, real *x)
{
    real *tau = work, *d = tau + k, *e = d + k, *w = e + k;
    int exponent = 0;
    double low, high;
    spca_int block;
    /* so that squares neither over- nor underflow */
    (void)frexp(largest_magnitude(k * k, G), &exponent);
    for (spca_int i = 0; i < k * k; i++) G[i] = ldexp(G[i], -exponent);
    reduce(k, G, tau, d, e, w, w + k);
    block = enclose(k, d, e, &low, &high);
    solve(k, d, e, high, block, w, x);
    for (spca_int m = k - 3; m >= 0; m--)
        if (tau[m] != 0) {
            const real *v = G + m * k + m + 1;
            subtract_multiple(k - m - 1, tau[m] * strands_dot(k - m - 1, v, x + m + 1), v,
                              x + m + 1);
        }
    (void)to_unit(k, x);
    return (real)ldexp(low, exponent);
}

spca_status SPCA(leading_eigenvector)(spca_int k, real *G, real *work, real *value, real *vector)
{
    real *used = work + 5 * k;
    spca_int c, zero = -1;
    if (!is_finite(k * k, G)) return SPCA_NONFINITE;
    c = without_zeros(k, G, used);
    *value = c > 0 ? leading(c, G, work, vector) : 0;
    for (spca_int b = k - 1, last = c; b >= 0; b--) {
        vector[b] = used[b] != 0 ? vector[--last] : 0;
        if (used[b] == 0) zero = b;
    }
    /* all other eigenvalues are negative, so that 0 is the largest */
    if (zero >= 0 && (c == 0 || *value < 0)) {
        for (spca_int b = 0; b < k; b++) vector[b] = b == zero;
        *value = 0;
    }
    return SPCA_OK;
}
