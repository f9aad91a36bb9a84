/* small_eigen.c - all eigenpairs of a small symmetric matrix, for which LAPACK takes several times
 * as long: Householder reflections H_m to a tridiagonal matrix, then the implicit QL method
 * (Bowdler, Martin, Reinsch & Wilkinson 1968, Numerische Mathematik 11); and the leading ones of a
 * large matrix. */
#include "real.h"

enum { SWEEPS = 60 }; /* sweeps for an eigenvalue, which mostly takes two */
enum { SMALL = 64 };  /* up to this order LAPACK takes longer to begin than to compute */
#define LEAST (DBL_MIN / DBL_EPSILON) /* squares below this, beside those near 1, count as 0 */

/* A <- H A H for each H = I - tau v v' in turn; v_m stays in row m, and e_m = A_m,m+1. */
VECTORIZED(reduce, (spca_int k, double *A, double *tau, double *w, double *e), (k, A, tau, w, e))
{
    for (spca_int m = 0; m + 2 < k; m++) {
        double *v = A + m * k, rest = 0, size, first = v[m + 1], inner = 0;
        for (spca_int i = m + 2; i < k; i++) rest += v[i] * v[i];
        e[m] = first;
        tau[m] = 0;
        if (rest < LEAST) continue;
        size = sqrt(first * first + rest);
        e[m] = first > 0 ? -size : size;
        v[m + 1] = first - e[m];
        tau[m] = 2 / (v[m + 1] * v[m + 1] + rest);
        for (spca_int i = m + 1; i < k; i++) w[i] = 0;
        for (spca_int j = m + 1; j < k; j++)
            for (spca_int i = m + 1; i < k; i++) w[i] += tau[m] * v[j] * A[j * k + i];
        for (spca_int i = m + 1; i < k; i++) inner += w[i] * v[i];
        for (spca_int i = m + 1; i < k; i++) w[i] -= tau[m] / 2 * inner * v[i];
        for (spca_int j = m + 1; j < k; j++)
            for (spca_int i = m + 1; i < k; i++) A[j * k + i] -= v[j] * w[i] + w[j] * v[i];
    }
    if (k > 1) e[k - 2] = A[(k - 2) * k + k - 1];
    e[k - 1] = 0;
}

/* Q = H_0 H_1 ..., by rows. */
VECTORIZED(multiply_out, (spca_int k, const double *A, const double *tau, double *w, double *Q),
           (k, A, tau, w, Q))
{
    for (spca_int i = 0; i < k * k; i++) Q[i] = 0;
    for (spca_int i = 0; i < k; i++) Q[i * (k + 1)] = 1;
    for (spca_int m = k - 3; m >= 0; m--) {
        const double *v = A + m * k;
        for (spca_int i = m + 1; i < k; i++) w[i] = 0;
        for (spca_int j = m + 1; j < k; j++)
            for (spca_int i = m + 1; i < k; i++) w[i] += v[j] * Q[j * k + i];
        for (spca_int j = m + 1; j < k; j++)
            for (spca_int i = m + 1; i < k; i++) Q[j * k + i] -= tau[m] * v[j] * w[i];
    }
}

/* x, y <- c x - s y, s x + c y. */
static inline void turn(spca_int k, double c, double s, double *restrict x, double *restrict y)
{
    for (spca_int i = 0; i < k; i++) {
        double z = y[i];
        y[i] = s * x[i] + c * z;
        x[i] = c * x[i] - s * z;
    }
}

/* d <- the eigenvalues of the tridiagonal matrix (d, e); its rotations turn the columns of U too.
 */
VECTORIZED_TO(spca_status, iterate, (spca_int k, double *d, double *e, double *U), (k, d, e, U))
{
    double size = 0;
    for (spca_int l = 0; l < k; l++) size = fmax(size, fabs(d[l]) + fabs(e[l]));
    for (spca_int l = 0; l < k; l++)
        for (int sweep = 0;; sweep++) {
            double g, r, s = 1, c = 1, p = 0;
            spca_int m = l, i;
            while (m < k - 1 && fabs(e[m]) > DBL_EPSILON * size) m++;
            if (m == l) break;
            if (sweep == SWEEPS) return SPCA_LAPACK_FAILED;
            g = (d[l + 1] - d[l]) / (2 * e[l]);
            r = sqrt(g * g + 1);
            g = d[m] - d[l] + e[l] / (g + (g < 0 ? -r : r));
            for (i = m - 1; i >= l; i--) {
                double f = s * e[i], b = c * e[i];
                r = f * f + g * g;
                r = r < LEAST ? hypot(f, g) : sqrt(r);
                e[i + 1] = r;
                if (r == 0) {
                    d[i + 1] -= p;
                    e[m] = 0;
                    break;
                }
                s = f / r;
                c = g / r;
                g = d[i + 1] - p;
                r = (d[i] - g) * s + 2 * c * b;
                p = s * r;
                d[i + 1] = g + p;
                g = c * r - b;
                turn(k, c, s, U + i * k, U + (i + 1) * k);
            }
            if (i >= l) continue;
            d[l] -= p;
            e[l] = g;
            e[m] = 0;
        }
    return SPCA_OK;
}

/* Sorts eigenvalues so that sign times them descends, with their vectors, the columns of U (k x k).
 */
static void sort_pairs(spca_int k, int sign, double *d, double *U)
{
    for (spca_int i = 0; i < k; i++) {
        spca_int best = i;
        double x = d[i];
        for (spca_int j = i + 1; j < k; j++) best = sign * d[j] > sign * d[best] ? j : best;
        d[i] = d[best];
        d[best] = x;
        for (spca_int a = 0; best != i && a < k; a++) {
            x = U[i * k + a];
            U[i * k + a] = U[best * k + a];
            U[best * k + a] = x;
        }
    }
}

spca_status spca_small_eigen(spca_int k, double *A, double *work, double *eigenvalues, double *U)
{
    double *tau = work, *w = tau + k, *e = w + k, *d = e + k, *Q = d + k, size;
    int exponent = 0;
    spca_status status;
    if (!is_finite(k * k, A)) return SPCA_LAPACK_FAILED;
    /* so that squares neither over- nor underflow */
    (void)frexp(largest_magnitude(k * k, A), &exponent);
    size = ldexp(1, exponent < -1000 ? -1000 : exponent);
    for (spca_int i = 0; i < k * k; i++) A[i] *= 1 / size;
    reduce(k, A, tau, w, e);
    for (spca_int i = 0; i < k; i++) d[i] = A[i * (k + 1)];
    multiply_out(k, A, tau, w, Q);
    for (spca_int j = 0; j < k; j++)
        for (spca_int i = 0; i < k; i++) U[j * k + i] = Q[i * k + j];
    status = iterate(k, d, e, U);
    if (status < 0) return status;
    sort_pairs(k, 1, d, U);
    for (spca_int i = 0; i < k; i++) eigenvalues[i] = d[i] * size;
    return SPCA_OK;
}

spca_status spca_leading_eigenpairs(spca_int k, spca_int r, double *A, double *work,
                                    blas_int *iwork, double *values, double *vectors)
{
    double *tau = work, *d = tau + k, *e = d + k, *kept = e + k, *rest = kept + 2 * k, unused = 0;
    blas_int n = (blas_int)k, first = (blas_int)(k - r + 1), room = (blas_int)r, found = 0;
    blas_int lwork = (blas_int)(18 * k), liwork = (blas_int)(10 * k), accurate = 1, info = 0;
    int exponent = 0;
    double largest = 0;
    for (spca_int j = 0; j < k; j++) /* only the upper triangle is read */
        largest = fmax(largest, largest_magnitude(j + 1, A + j * k));
    (void)frexp(largest, &exponent);
    for (spca_int j = 0; exponent != 0 && j < k; j++)
        for (spca_int i = 0; i <= j; i++) A[i + j * k] = ldexp(A[i + j * k], -exponent);
    if (spca_dtridiagonal(k, NULL, NULL, A, rest, tau, d, e) < 0) return SPCA_LAPACK_FAILED;
    for (spca_int i = 0; i < 2 * k; i++) kept[i] = d[i];
    spca_dblas.stemr(vectors ? "V" : "N", r < k ? "I" : "A", &n, d, e, &unused, &unused, &first, &n,
                     &found, values, vectors ? vectors : rest, &n, &room, iwork + 10 * k, &accurate,
                     rest, &lwork, iwork, &liwork, &info);
    if ((info != 0) | (found != room)) { /* as for some matrices of low rank; QL finds all pairs */
        if (vectors == NULL || r < k) return SPCA_LAPACK_FAILED;
        for (spca_int i = 0; i < k * k; i++) vectors[i] = i % (k + 1) == 0;
        if (iterate(k, kept, kept + k, vectors) < 0) return SPCA_LAPACK_FAILED;
        sort_pairs(k, -1, kept, vectors);
        for (spca_int i = 0; i < k; i++) values[i] = kept[i];
    }
    for (spca_int a = 0; a < r; a++) values[a] = ldexp(values[a], exponent);
    return vectors ? spca_duntridiagonal(k, r, A, tau, NULL, NULL, vectors) : SPCA_OK;
}

spca_status spca_eigen(spca_int k, double *A, double *work, blas_int *blas_work,
                       double *eigenvalues, double *U)
{
    double *ascending = work + 26 * k, *vectors = ascending + k;
    spca_status status;
    if (k <= SMALL) return spca_small_eigen(k, A, work, eigenvalues, U);
    status = spca_leading_eigenpairs(k, k, A, work, blas_work, ascending, vectors);
    for (spca_int m = 0; m < k; m++) {
        eigenvalues[m] = ascending[k - 1 - m];
        for (spca_int a = 0; a < k; a++) U[a + m * k] = vectors[a + (k - 1 - m) * k];
    }
    return status;
}
