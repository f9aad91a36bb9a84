/* joint_start.c - loadings that a joint search begins from: those of the leading subspace of A,
 * turned by varimax or at random, and truncated. */
#include "joint.h"

enum { PASSES = 6 }; /* passes of subspace iteration */

void SPCA(joint_truncate)(joint_search_t *s, spca_int t, const double *y)
{
    joint_t *o = &s->o;
    double *x = o->V.value + t * o->room, square = 0;
    spca_int n = SPCA(joint_select)(o, o->size[t], y, o->V.index + t * o->room, x);
    for (spca_int a = 0; a < n; a++) {
        x[a] = (double)(float)x[a];
        square += x[a] * x[a];
    }
    for (spca_int a = 0; a < n && square > 0; a++) x[a] /= sqrt(square);
    o->V.nnz[t] = square > 0 ? n : 0;
}

void SPCA(joint_rotation)(joint_search_t *s, spca_int n, double *R)
{
    for (spca_int a = 0; a < n; a++) {
        double *row = R + a * n, square = 0;
        while (!(square > 1e-3)) {
            square = 0;
            for (spca_int i = 0; i < n; i++) row[i] = joint_centered(s);
            for (spca_int b = 0; b < a; b++) {
                double along = 0;
                for (spca_int i = 0; i < n; i++) along += row[i] * R[b * n + i];
                for (spca_int i = 0; i < n; i++) row[i] -= along * R[b * n + i];
            }
            for (spca_int i = 0; i < n; i++) square += row[i] * row[i];
        }
        for (spca_int i = 0; i < n; i++) row[i] /= sqrt(square);
    }
}

/* Y (l x p) = U A. */
VECTORIZED(multiply, (spca_int p, spca_int l, const real *A, const double *U, double *restrict Y),
           (p, l, A, U, Y))
{
    for (spca_int i = 0; i < l * p; i++) Y[i] = 0;
    for (spca_int j = 0; j < p; j++) {
        const real *line = A + j * p;
        for (spca_int a = 0; a < l; a++) {
            double u = U[a * p + j], *y = Y + a * p;
            for (spca_int i = 0; i < p; i++) y[i] += u * (double)line[i];
        }
    }
}

/* x'y. */
static double product(spca_int p, const double *x, const double *y)
{
    double sum[4] = {0};
    spca_int i = 0;
    for (; i + 4 <= p; i += 4)
        for (int a = 0; a < 4; a++) sum[a] += x[i + a] * y[i + a];
    for (; i < p; i++) sum[0] += x[i] * y[i];
    return (sum[0] + sum[1]) + (sum[2] + sum[3]);
}

/* Makes the l rows of U orthonormal; a row that earlier ones span becomes zero. */
static void orthonormalize(spca_int p, spca_int l, double *U)
{
    for (spca_int a = 0; a < l; a++) {
        double *u = U + a * p, whole = product(p, u, u), square;
        for (int twice = 0; twice < 2; twice++)
            for (spca_int b = 0; b < a; b++) {
                double along = product(p, u, U + b * p);
                for (spca_int i = 0; i < p; i++) u[i] -= along * U[b * p + i];
            }
        square = product(p, u, u);
        for (spca_int i = 0; i < p; i++)
            u[i] = square > 1e-20 * whole && square > 0 ? u[i] / sqrt(square) : 0;
    }
}

spca_status SPCA(joint_subspace)(joint_search_t *s, spca_int l, double *Y)
{
    joint_t *o = &s->o;
    spca_int p = o->p;
    double *H = s->G, *vectors = s->H, *work = s->T;
    spca_status status;
    for (spca_int i = 0; i < l * p; i++) s->U[i] = joint_centered(s);
    for (int pass = 0; pass < PASSES; pass++) {
        double *swap = s->U;
        if (asked_to_stop(o->stop, o->ctx)) return SPCA_STOPPED;
        orthonormalize(p, l, s->U);
        multiply(p, l, o->A, s->U, Y);
        if (pass == PASSES - 1) break;
        for (spca_int i = 0; i < l * p; i++) swap[i] = Y[i];
    }
    for (spca_int a = 0; a < l; a++)
        for (spca_int b = 0; b <= a; b++)
            H[a * l + b] = H[b * l + a] = product(p, Y + a * p, s->U + b * p);
    status = spca_small_eigen(l, H, work, s->eigenvalue, vectors);
    if (status < 0) return status;
    for (spca_int a = 0; a < l; a++) {
        for (spca_int i = 0; i < p; i++) Y[a * p + i] = 0;
        for (spca_int b = 0; b < l; b++)
            for (spca_int i = 0; i < p; i++) Y[a * p + i] += vectors[a * l + b] * s->U[b * p + i];
    }
    for (spca_int i = 0; i < l * p; i++) s->U[i] = Y[i];
    o->spent += (double)(PASSES * l * p) * (double)(p + 2 * l);
    return SPCA_OK;
}

spca_status SPCA(joint_from_subspace)(joint_search_t *s, int weighted, int varimax, spca_int l)
{
    joint_t *o = &s->o;
    spca_int p = o->p, r = o->r, n_iter = 0, width = varimax || !weighted ? min_int(r, l) : l;
    double *R = s->T;
    if (varimax) {
        for (spca_int a = 0; a < width; a++) {
            double weight = weighted ? sqrt(fmax(s->eigenvalue[a], 0)) : 1;
            for (spca_int i = 0; i < p; i++)
                s->turned[a * p + i] = (real)(weight * s->U[a * p + i]);
            for (spca_int b = 0; b < width; b++) R[a * width + b] = a == b;
        }
        spca_status status =
            SPCA(planar_sweeps)(p, width, 1, 50, 1e-4, o->stop, o->ctx, s->turned, R, &n_iter);
        if (status < 0) return status;
    } else if (!weighted)
        SPCA(joint_rotation)(s, width, R);
    for (spca_int t = 0; t < r; t++) {
        for (spca_int i = 0; i < p; i++) o->score[i] = 0;
        if (varimax)
            for (spca_int i = 0; i < p && t < width; i++)
                o->score[i] = (double)s->turned[t * p + i];
        else
            for (spca_int a = 0; a < width; a++) {
                double c = weighted ? sqrt(fmax(s->eigenvalue[a], 0)) * joint_centered(s)
                                    : (t < width ? R[t * width + a] : joint_centered(s));
                for (spca_int i = 0; i < p; i++) o->score[i] += c * s->U[a * p + i];
            }
        SPCA(joint_truncate)(s, t, o->score);
    }
    return SPCA_OK;
}
