/* thresholded_vector.c - the leading eigenvector of a soft-thresholded matrix.
 *
 * Lanczos vectors V from B s, orthogonalized in full, and T = V'BV.  Where the residual of the
 * leading Ritz vector is too large after BASIS products, the KEPT best Ritz vectors and the
 * residual begin the next basis (Wu & Simon 2000, SIAM J. Matrix Anal. Appl. 22(2)), which is the
 * same space as that of an implicit restart.  Where few entries are left, they are kept as lists of
 * each row. */
#include "real.h"

enum { BASIS = 20, KEPT = 10 };

typedef struct {
    spca_int p;
    int listed;
    const real *entry, *diagonal; /* all entries by rows, or those of the lists; 0 and b_ii there */
    const int32_t *place;         /* columns of the lists */
    const spca_int *end;          /* (p), of the list of each row */
} matrix_t;

/* sign(c) (|c| - level)_+ */
INLINE real soft(real c, real level)
{
    real size = fabs(c) - level;
    return size > 0 ? (c < 0 ? -size : size) : 0;
}

/* How many entries are above the level. */
VECTORIZED_TO(spca_int, count_above, (spca_int n, const real *c, real level), (n, c, level))
{
    spca_int count = 0;
    for (spca_int i = 0; i < n; i++) count += fabs(c[i]) > level;
    return count;
}

/* Rows of b_ij = s_i s_j soft(c_ij). */
VECTORIZED(fill, (spca_int p, const real *C, const real *scale, real level, real *B),
           (p, C, scale, level, B))
{
    for (spca_int i = 0; i < p; i++) {
        for (spca_int j = 0; j < p; j++)
            B[i * p + j] = scale[i] * scale[j] * soft(C[i * p + j], level);
        B[i * p + i] = 0;
    }
}

/* The same without zeros. */
static void list(spca_int p, const real *C, const real *scale, real level, real *entry,
                 int32_t *place, spca_int *end)
{
    spca_int n = 0;
    for (spca_int i = 0; i < p; i++) {
        for (spca_int j = 0; j < p; j++) { /* no branch: it is random */
            real c = C[i * p + j];
            entry[n] = c;
            place[n] = (int32_t)j;
            n += (fabs(c) > level) & (j != i);
        }
        end[i] = n;
    }
    for (spca_int i = 0, a = 0; i < p; i++)
        for (; a < end[i]; a++) entry[a] = scale[i] * scale[place[a]] * soft(entry[a], level);
}

/* y = B v */
VECTORIZED(multiply, (const matrix_t *B, const real *v, real *y), (B, v, y))
{
    for (spca_int i = 0, a = 0; i < B->p; i++) {
        if (B->listed) {
            real sum[4] = {0};
            for (; a + 4 <= B->end[i]; a += 4)
                for (int l = 0; l < 4; l++) sum[l] += B->entry[a + l] * v[B->place[a + l]];
            for (; a < B->end[i]; a++) sum[0] += B->entry[a] * v[B->place[a]];
            y[i] = (sum[0] + sum[1]) + (sum[2] + sum[3]);
        } else
            y[i] = strands_dot(B->p, B->entry + i * B->p, v);
        y[i] += B->diagonal[i] * v[i];
    }
}

/* w -= V V'w, twice, and h = V'w. */
VECTORIZED(orthogonalize, (spca_int p, spca_int count, const real *V, real *w, double *h),
           (p, count, V, w, h))
{
    for (spca_int l = 0; l < count; l++) h[l] = 0;
    for (int pass = 0; pass < 2; pass++)
        for (spca_int l = 0; l < count; l++) {
            real c = strands_dot(p, V + l * p, w);
            subtract_multiple(p, c, V + l * p, w);
            h[l] += (double)c;
        }
}

/* x = sum of s_l V_l */
static void combine(spca_int p, spca_int count, const real *V, const double *s, real *x)
{
    for (spca_int i = 0; i < p; i++) x[i] = 0;
    for (spca_int l = 0; l < count; l++) subtract_multiple(p, -(real)s[l], V + l * p, x);
}

/* All eigenvalues of T (m x m), descending, and their vectors. */
static spca_status ritz(spca_int m, const double *T, double *work, double *value, double *vectors)
{
    double *copy = work, *rest = copy + m * m;
    for (spca_int b = 0; b < m; b++)
        for (spca_int a = 0; a <= b; a++) copy[a + b * m] = copy[b + a * m] = T[a + b * BASIS];
    return spca_small_eigen(m, copy, rest, value, vectors);
}

/* The Ritz vectors of the kept values, and the residual after them, in the place of V (m + 1). */
static void restart(spca_int p, spca_int m, const double *vectors, real *V, real *room)
{
    for (spca_int i = 0; i < p; i++) {
        for (spca_int a = 0; a < KEPT; a++) {
            double sum = 0;
            for (spca_int l = 0; l < m; l++) sum += (double)V[l * p + i] * vectors[l + a * m];
            room[a] = (real)sum;
        }
        for (spca_int a = 0; a < KEPT; a++) V[a * p + i] = room[a];
        V[KEPT * p + i] = V[m * p + i];
    }
}

/* From the unit vector V_0 to the leading Ritz vector. */
static spca_status lanczos(const matrix_t *B, real tol, spca_int max_iter, spca_stop stop,
                           void *ctx, real *V, double *dwork, real *vector)
{
    double *T = dwork, *vectors = T + BASIS * BASIS, *value = vectors + BASIS * BASIS;
    double *work = value + BASIS;
    spca_int p = B->p, kept = 0;
    real room[KEPT];
    for (spca_int n_iter = 0;; n_iter++) {
        spca_int m = kept;
        spca_status status;
        double beta = 0;
        while (m < BASIS) {
            real *w = V + (m + 1) * p;
            double size = 0, *h = T + m * BASIS;
            if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
            multiply(B, V + m * p, w);
            if (!is_finite(p, w)) return SPCA_NONFINITE;
            orthogonalize(p, ++m, V, w, h);
            beta = (double)to_unit(p, w);
            for (spca_int l = 0; l < m; l++) size = fmax(size, fabs(h[l]));
            if (beta > 4 * (double)REAL_EPSILON * size) continue;
            beta = 0; /* V spans an invariant space */
            break;
        }
        status = ritz(m, T, work, value, vectors);
        if (status < 0) return status;
        if (beta * fabs(vectors[m - 1]) <= (double)tol * fabs(*value) || n_iter == max_iter) {
            combine(p, m, V, vectors, vector);
            if (to_unit(p, vector) == 0) return SPCA_ZERO_VECTOR;
            return n_iter == max_iter ? SPCA_NOT_CONVERGED : SPCA_OK;
        }
        restart(p, m, vectors, V, room);
        for (spca_int a = 0; a < BASIS * BASIS; a++) T[a] = 0;
        for (spca_int a = 0; a < KEPT; a++) T[a + a * BASIS] = value[a];
        kept = KEPT;
    }
}

spca_status SPCA(thresholded_vector)(spca_int p, const real *C, const real *scale, real level,
                                     real tol, spca_int max_iter, spca_stop stop, void *ctx,
                                     real *work, double *dwork, int32_t *place, spca_int *end,
                                     real *vector)
{
    real *entry = work, *diagonal = work + p * p, *V = diagonal + p;
    matrix_t B = {p, count_above(p * p, C, level) <= p * p / 10, entry, diagonal, place, end};
    for (spca_int i = 0; i < p; i++) {
        diagonal[i] = scale[i] * scale[i] * C[i * p + i];
    }
    if (B.listed)
        list(p, C, scale, level, entry, place, end);
    else
        fill(p, C, scale, level, entry);
    multiply(&B, scale, V);
    if (to_unit(p, V) == 0) return SPCA_ZERO_VECTOR;
    return lanczos(&B, tol, max_iter, stop, ctx, V, dwork, vector);
}
