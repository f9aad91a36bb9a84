/* signed.c - the unit vector of given signs that maximizes x'Gx.
 *
 * If the best vector has no zeros, it is the leading eigenvector of G.  So the best on k variables
 * is the leading eigenvector, where that has the signs, or the best on some k - 1 of them.  Let M
 * be G without the entries with g_ij s_i s_j < 0.  Then x'Gx <= x'Mx, so the largest eigenvalue of
 * M rules out sets of variables, as that of G does.  Of many variables not all sets are tried; the
 * vector is then a fixed point of x <- (G x)_+/||.||, by signs. */
#include "real.h"

#define ALMOST 1e-12 /* an entry of a wrong sign up to this is rounding */
enum { STEPS = 10 }; /* steps of an ascent where all sets are tried after it */

/* The problem, and scratch. */
typedef struct {
    spca_int k;
    const double *G;
    const int8_t *signs;
    double *copy, *U, *eigenvalues, *work, *vector; /* vector: on some variables, with the signs */
    blas_int *blas_work;
} signed_t;

/* The eigenpairs of M on the n variables listed, descending, into o->eigenvalues and o->U. */
static spca_status solve(const signed_t *o, const double *M, spca_int n, const spca_int *list)
{
    for (spca_int a = 0; a < n; a++)
        for (spca_int b = 0; b < n; b++) o->copy[a * n + b] = M[list[a] * o->k + list[b]];
    return spca_eigen(n, o->copy, o->work, o->blas_work, o->eigenvalues, o->U);
}

/* Whether the first eigenvector, or its negative, has the signs but for rounding; then it becomes
 * o->vector. */
static int has_signs(const signed_t *o, spca_int n, const spca_int *list)
{
    for (int sign = 1; sign >= -1; sign -= 2) {
        double square = 0;
        int good = 1;
        for (spca_int a = 0; a < n; a++) {
            double x = sign * o->U[a], s = o->signs[list[a]];
            good &= x * s >= -ALMOST;
            o->vector[a] = x * s < 0 ? 0 : x;
            square += o->vector[a] * o->vector[a];
        }
        for (spca_int a = 0; good && a < n; a++) o->vector[a] /= sqrt(square);
        if (good) return 1;
    }
    return 0;
}

/* x <- x without entries of wrong signs, over its norm, which is returned. */
static double projected(const signed_t *o, double *x)
{
    double square = 0;
    for (spca_int j = 0; j < o->k; j++) {
        if (x[j] * o->signs[j] < 0) x[j] = 0;
        square += x[j] * x[j];
    }
    for (spca_int j = 0; square > 0 && j < o->k; j++) x[j] /= sqrt(square);
    return sqrt(square);
}

/* y = G x; returns x'y. */
static double multiply(const signed_t *o, const double *x, double *y)
{
    double value = 0;
    for (spca_int i = 0; i < o->k; i++) y[i] = 0;
    for (spca_int j = 0; j < o->k; j++)
        if (x[j] != 0) axpy(o->k, x[j], o->G + j * o->k, y);
    for (spca_int i = 0; i < o->k; i++) value += x[i] * y[i];
    return value;
}

/* x <- (G x + shift x) without entries of wrong signs, over its norm, until x'Gx rises no more;
 * returns x'Gx.  The shift makes G semidefinite, so that no step falls. */
static double ascend(const signed_t *o, double shift, double *x, double *y, spca_stop stop,
                     void *ctx, int *stopped)
{
    spca_int most = o->k <= SPCA_SIGNED ? STEPS : 100 * o->k + 1000;
    double value = -DBL_MAX;
    for (spca_int step = 0; step < most; step++) {
        double before = value, size;
        value = multiply(o, x, y);
        if ((*stopped = asked_to_stop(stop, ctx))) break;
        for (spca_int j = 0; j < o->k; j++) y[j] += shift * x[j];
        size = projected(o, y);
        if (!(value - before > 1e-15 * fabs(value)) || !(size > 0)) break;
        for (spca_int j = 0; j < o->k; j++) x[j] = y[j];
    }
    return multiply(o, x, y);
}

/* best: the best end of ascents from the leading eigenvector and the variable of largest g_jj, each
 * with both signs, and from begin; *most: its value. */
static spca_status best_ascent(const signed_t *o, const double *begin, spca_stop stop, void *ctx,
                               double *starts, double *y, double *best, double *most)
{
    spca_int k = o->k, first = 0;
    double shift = fmax(0, -o->eigenvalues[k - 1]);
    int stopped = 0;
    for (spca_int j = 0; j < k; j++) {
        first = o->G[j * (k + 1)] > o->G[first * (k + 1)] ? j : first;
        starts[j] = o->U[j];
    }
    for (int way = 0; way < (begin ? 5 : 4); way++) {
        double *x = starts + k, value;
        for (spca_int j = 0; j < k; j++)
            x[j] = way == 4 ? begin[j] : (way % 2 ? -1 : 1) * (way < 2 ? starts[j] : j == first);
        if (!(projected(o, x) > 0)) continue;
        value = ascend(o, shift, x, y, stop, ctx, &stopped);
        if (stopped) return SPCA_STOPPED;
        if (!(value > *most)) continue;
        *most = value;
        for (spca_int j = 0; j < k; j++) best[j] = x[j];
    }
    return SPCA_OK;
}

/* best (k) <- o->vector on the variables listed, else 0. */
static void scatter(const signed_t *o, spca_int n, const spca_int *list, double *best)
{
    for (spca_int j = 0; j < o->k; j++) best[j] = 0;
    for (spca_int a = 0; a < n; a++) best[list[a]] = o->vector[a];
}

/* Tries all sets of variables, from the whole to smaller ones, and keeps the best above *most.  A
 * set is given up where G or M there has no eigenvalue above *most.  Sets are bits of a number. */
static spca_status search(const signed_t *o, double *masked, spca_int *list, double *best,
                          double *most)
{
    spca_int k = o->k, waiting[SPCA_SIGNED * SPCA_SIGNED + 1], count = 1;
    uint8_t seen[1 << SPCA_SIGNED] = {0};
    for (spca_int j = 0; j < k; j++)
        for (spca_int i = 0; i < k; i++) {
            double g = o->G[j * k + i];
            masked[j * k + i] = g * o->signs[i] * o->signs[j] < 0 ? 0 : g;
        }
    waiting[0] = ((spca_int)1 << k) - 1;
    while (count > 0) {
        spca_int set = waiting[--count], n = 0;
        double enough = *most + 1e-14 * fabs(*most);
        for (spca_int j = 0; j < k; j++)
            if (set >> j & 1) list[n++] = j;
        if (solve(o, masked, n, list) < 0) return SPCA_LAPACK_FAILED;
        if (!(o->eigenvalues[0] > enough)) continue;
        if (solve(o, o->G, n, list) < 0) return SPCA_LAPACK_FAILED;
        if (!(o->eigenvalues[0] > enough)) continue;
        if (has_signs(o, n, list)) {
            *most = o->eigenvalues[0];
            scatter(o, n, list, best);
            continue;
        }
        for (spca_int a = 0; n > 1 && a < n; a++) {
            spca_int fewer = set & ~((spca_int)1 << list[a]);
            if (o->signs[list[a]] == 0 || seen[fewer]) continue;
            seen[fewer] = 1;
            waiting[count++] = fewer;
        }
    }
    return SPCA_OK;
}

spca_status spca_signed_vector(spca_int k, const double *G, const int8_t *signs,
                               const double *begin, spca_stop stop, void *ctx, double *work,
                               blas_int *blas_work, spca_int *iwork, double *best, double *value)
{
    signed_t o = {.k = k, .G = G, .signs = signs, .copy = work, .blas_work = blas_work};
    double *masked = work + 2 * k * k, *starts, *y, most = -DBL_MAX;
    spca_int n = 0;
    spca_status status;
    o.U = work + k * k;
    o.eigenvalues = masked + k * k;
    o.vector = o.eigenvalues + k;
    starts = o.vector + k;
    y = starts + 2 * k;
    o.work = y + k;
    for (spca_int j = 0; j < k; j++) iwork[j] = j;
    if (solve(&o, G, k, iwork) < 0) return SPCA_LAPACK_FAILED;
    if (has_signs(&o, k, iwork)) {
        *value = o.eigenvalues[0];
        scatter(&o, k, iwork, best);
        return SPCA_OK;
    }
    status = best_ascent(&o, begin, stop, ctx, starts, y, best, &most);
    if (status < 0) return status;
    for (spca_int j = 0; j < k; j++)
        if (best[j] != 0) iwork[n++] = j;
    if (solve(&o, G, n, iwork) < 0) return SPCA_LAPACK_FAILED;
    if (o.eigenvalues[0] >= most - 1e-14 * fabs(most) && has_signs(&o, n, iwork)) {
        most = o.eigenvalues[0];
        scatter(&o, n, iwork, best);
    }
    if (k <= SPCA_SIGNED && search(&o, masked, iwork, best, &most) < 0) return SPCA_LAPACK_FAILED;
    *value = multiply(&o, best, y);
    return SPCA_OK;
}
