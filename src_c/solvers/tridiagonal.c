/* tridiagonal.c - reduces a symmetric matrix to a tridiagonal one, and takes vectors back, for
 * eigenpairs of many variables.
 *
 * Householder reflections are made by panels (Dongarra, Sorensen & Hammarling 1989, J. Comput.
 * Appl. Math. 27).  Within a panel only its own rows are brought up to date.  Products with the
 * rest use it as it was at the beginning of the panel, and are corrected.  At the end of the panel,
 * one pass over the rest removes v w' + w v' of each reflection.  LAPACK does the same by products
 * of BLAS, which round by its number of threads; its solver of the tridiagonal problem (stemr) uses
 * no threads. */
#include "real.h"

enum { PANEL = 16 };  /* reflections of a panel, between passes over the rest */
enum { AT_ONCE = 8 }; /* vectors that are taken back together */
/* ROWS: rows that are read together. */
enum { ROWS = 4, LANES = sizeof(lanes_t) / sizeof(real) };
/* squares below this, beside those near 1, count as 0 */
#define LEAST (REAL_LEAST / REAL_EPSILON)

/* Row j, from column j on, less v w' + w v' of the reflections from `first` to before `end`. */
INLINE void bring_up_to_date(spca_int k, spca_int first, spca_int end, spca_int j, real *A,
                             const real *W)
{
    real *restrict row = A + j * k;
    for (spca_int l = first; l < end; l++) {
        const real *restrict v = A + l * k, *restrict w = W + (l - first) * k;
        real a = v[j], b = w[j];
        for (spca_int i = j; i < k; i++) row[i] -= a * w[i] + b * v[i];
    }
}

/* bring_up_to_date for ROWS rows from row j, each from column j on: what stands before the diagonal
 * is not read again. */
INLINE void bring_rows_up_to_date(spca_int k, spca_int first, spca_int end, spca_int j, real *A,
                                  const real *W)
{
    spca_int i = j;
    for (; i + LANES <= k; i += LANES) {
        lanes_t rest[ROWS];
        for (int r = 0; r < ROWS; r++) rest[r] = *(const lanes_t *)(A + (j + r) * k + i);
        for (spca_int l = first; l < end; l++) {
            const real *v = A + l * k, *w = W + (l - first) * k;
            lanes_t x = *(const lanes_t *)(v + i), y = *(const lanes_t *)(w + i);
            for (int r = 0; r < ROWS; r++) rest[r] -= v[j + r] * y + w[j + r] * x;
        }
        for (int r = 0; r < ROWS; r++) *(lanes_t *)(A + (j + r) * k + i) = rest[r];
    }
    for (; i < k; i++)
        for (int r = 0; r < ROWS; r++)
            for (spca_int l = first; l < end; l++)
                A[(j + r) * k + i] -= A[l * k + j + r] * W[(l - first) * k + i] +
                                      W[(l - first) * k + j + r] * A[l * k + i];
}

/* w += A v for rows j to j + count - 1 and the columns that mirror them, by the upper half of A. */
INLINE void add_rows(spca_int k, spca_int j, int count, const real *A, const real *restrict v,
                     real *restrict w)
{
    lanes_t sum[ROWS];
    real rest[ROWS] = {0};
    spca_int i = j + count;
    for (int r = 0; r < count; r++) {
        sum[r] = (lanes_t){0};
        const real *row = A + (j + r) * k + j;
        w[j + r] += row[r] * v[j + r];
        for (int c = r + 1; c < count; c++) {
            w[j + c] += row[c] * v[j + r];
            rest[r] += row[c] * v[j + c];
        }
    }
    for (; i + LANES <= k; i += LANES) {
        lanes_t x = *(const lanes_t *)(v + i), y = *(const lanes_t *)(w + i);
        for (int r = 0; r < count; r++) {
            lanes_t entries = *(const lanes_t *)(A + (j + r) * k + i);
            y += entries * v[j + r];
            sum[r] += entries * x;
        }
        *(lanes_t *)(w + i) = y;
    }
    for (; i < k; i++)
        for (int r = 0; r < count; r++) {
            w[i] += A[(j + r) * k + i] * v[j + r];
            rest[r] += A[(j + r) * k + i] * v[i];
        }
    for (int r = 0; r < count; r++) {
        for (int l = 0; l < LANES; l++) rest[r] += ((const real *)(sum + r))[l];
        w[j + r] += rest[r];
    }
}

/* A panel: the reflections from `first` to before `end`, whose v stay in their rows, then the
 * update of all rows below.  W: the w of each reflection. */
VECTORIZED(reduce, (spca_int k, spca_int first, spca_int end, real *A, real *tau, real *e, real *W),
           (k, first, end, A, tau, e, W))
{
    for (spca_int m = first; m < end; m++) {
        real *v = A + m * k, *w = W + (m - first) * k, rest = 0;
        spca_int n = k - m - 1;
        bring_up_to_date(k, first, m, m, A, W);
        e[m] = n > 0 ? v[m + 1] : 0;
        tau[m] = 0;
        for (spca_int i = m + 1; i < k; i++) w[i] = 0;
        if (n > 1) rest = strands_dot(n - 1, v + m + 2, v + m + 2);
        if (!(rest >= LEAST)) continue;
        real size = sqrt(e[m] * e[m] + rest);
        v[m + 1] += e[m] > 0 ? size : -size;
        e[m] = e[m] > 0 ? -size : size;
        tau[m] = 2 / (v[m + 1] * v[m + 1] + rest);
        for (spca_int j = m + 1; j < k; j += ROWS)
            if (j + ROWS <= k)
                add_rows(k, j, ROWS, A, v, w);
            else
                for (; j < k; j++) add_rows(k, j, 1, A, v, w);
        for (spca_int l = first; l < m; l++) {
            const real *old = A + l * k, *image = W + (l - first) * k;
            real a = strands_dot(n, image + m + 1, v + m + 1);
            real b = strands_dot(n, old + m + 1, v + m + 1);
            for (spca_int i = m + 1; i < k; i++) w[i] -= a * old[i] + b * image[i];
        }
        for (spca_int i = m + 1; i < k; i++) w[i] *= tau[m];
        real inner = strands_dot(n, w + m + 1, v + m + 1);
        for (spca_int i = m + 1; i < k; i++) w[i] -= tau[m] / 2 * inner * v[i];
    }
    spca_int j = end;
    for (; j + ROWS <= k; j += ROWS) bring_rows_up_to_date(k, first, end, j, A, W);
    for (; j < k; j++) bring_up_to_date(k, first, end, j, A, W);
}

/* Copies the lower triangle to the upper one. */
static void mirror(spca_int k, real *A)
{
    for (spca_int first = 0; first < k; first += PANEL)
        for (spca_int j = 0; j < k; j++)
            for (spca_int i = first > j ? first : j + 1; i < k && i < first + PANEL; i++)
                A[j * k + i] = A[i * k + j];
}

spca_status SPCA(tridiagonal)(spca_int k, spca_stop stop, void *ctx, real *A, real *work, real *tau,
                              real *d, real *e)
{
    mirror(k, A);
    if (!is_finite(k * k, A)) return SPCA_NONFINITE;
    for (spca_int first = 0; first < k; first += PANEL) {
        if (stop && stop(ctx)) return SPCA_STOPPED;
        reduce(k, first, min_int(first + PANEL, k), A, tau, e, work);
    }
    for (spca_int m = 0; m < k; m++) d[m] = A[m * (k + 1)];
    return SPCA_OK;
}

/* x <- H_0 H_1 .. x for r rows x of V. */
VECTORIZED(turn, (spca_int k, spca_int r, const real *A, const real *tau, real *V),
           (k, r, A, tau, V))
{
    for (spca_int m = k - 3; m >= 0; m--)
        for (spca_int t = 0; tau[m] != 0 && t < r; t++) {
            const real *v = A + m * k + m + 1;
            real *x = V + t * k + m + 1;
            subtract_multiple(k - m - 1, tau[m] * strands_dot(k - m - 1, v, x), v, x);
        }
}

spca_status SPCA(untridiagonal)(spca_int k, spca_int r, const real *A, const real *tau,
                                spca_stop stop, void *ctx, real *V)
{
    for (spca_int t = 0; t < r; t += AT_ONCE) {
        if (stop && stop(ctx)) return SPCA_STOPPED;
        turn(k, min_int(AT_ONCE, r - t), A, tau, V + t * k);
    }
    return SPCA_OK;
}
