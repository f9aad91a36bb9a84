/* rotate.c - orthomax rotations by planar rotations.
 *
 * Kaiser (1958), Psychometrika 23(3), 187-200 (gamma = 1); Clarkson & Jennrich (1988),
 * Psychometrika 53(2), 251-259 (the family).  Take two columns x and y as complex numbers x + iy.
 * Turning the pair by phi, x' + iy' = exp(-i phi) (x + iy), multiplies z = (x + iy)^2 = u + iv by
 * exp(-2i phi), and
 *
 *     x^4 + y^4 = (3 |z|^2 + Re z^2)/4,
 *     (sum x^2)^2 + (sum y^2)^2 = (sum |z|)^2/2 + (|S|^2 + Re S^2)/4,    S = sum z.
 *
 * So the part of the criterion that depends on phi is Re(exp(-4i phi) W)/4 with
 *
 *     W = D + iN = sum z^2 - (gamma/p) S^2,
 *
 * which is largest at 4 phi = arg W = atan2(N, D), and nowhere else in |phi| <= pi/4.  The gain,
 * (|W| - D)/4, is never negative.  Columns stored in finite precision change W by a few epsilon sum
 * |z|^2; an N or a negative D below that is no reason to turn.
 *
 * Everything below is divided by 1 + gamma, so that |W| <= sum |z|^2 for every gamma. */
#include "planar.h"

/* rows that are summed before they are added to the totals, so that errors stay near epsilon for
 * any p */
#define TILE 2048

/* Sums over rows, of the numbers named (v is halved). */
typedef struct {
    double u, v, uu, vv, uv;
} sums_t;

/* The sums of u, v/2, u^2, v^2/4 and uv/2 over the rows of range (x, y), in double for float too.
 */
VECTORIZED_TO(sums_t, pair_sums,
              (spca_int p, const real *restrict x, const real *restrict y, double range),
              (p, x, y, range))
{
    sums_t total = {0, 0, 0, 0, 0};
    for (spca_int start = 0; start < p; start += TILE) {
        spca_int end = min_int(p, start + TILE);
        double su = 0, sv = 0, suu = 0, svv = 0, suv = 0;
#pragma omp simd reduction(+ : su, sv, suu, svv, suv)
        for (spca_int i = start; i < end; i++) {
            double a = (double)x[i] * range, b = (double)y[i] * range;
            double u = (a - b) * (a + b), v = a * b;
            su += u;
            sv += v;
            suu += u * u;
            svv += v * v;
            suv += u * v;
        }
        total.u += su;
        total.v += sv;
        total.uu += suu;
        total.vv += svv;
        total.uv += suv;
    }
    return total;
}

/* *phi: the angle for the pair, or 0 where turning gains no more than tol says.  SPCA_NONFINITE
 * where Y has overflowed. */
static spca_status pair_angle(spca_int p, const real *x, const real *y, double gamma, double tol,
                              double *phi)
{
    double energy, share = gamma / (1 + gamma) / (double)p, D, N;
    sums_t sum = pair_sums(p, x, y, 1);
    *phi = 0;
    energy = sum.uu + 4 * sum.vv;
    if (!(energy > 1e-250 && energy < 1e250)) { /* again, with the columns times a power of two */
        int exponent;
        double largest = (double)fmax(largest_magnitude(p, x), largest_magnitude(p, y));
        if (largest == 0) return SPCA_OK;
        if (!(largest <= (double)REAL_MAX)) return SPCA_NONFINITE;
        (void)frexp(largest, &exponent);
        exponent = exponent > 1000 ? 1000 : exponent < -1000 ? -1000 : exponent;
        sum = pair_sums(p, x, y, ldexp(1.0, -exponent));
        energy = sum.uu + 4 * sum.vv;
        if (!(energy < 1e250)) return SPCA_NONFINITE;
    }
    D = (sum.uu - 4 * sum.vv) / (1 + gamma) - share * (sum.u - 2 * sum.v) * (sum.u + 2 * sum.v);
    N = 4 * (sum.uv / (1 + gamma) - share * sum.u * sum.v);
    if (!rests(D, N, 0, energy, tol)) *phi = atan2(N, D) / 4;
    return SPCA_OK;
}

/* x, y <- c x + s y, c y - s x. */
VECTORIZED(turn, (spca_int p, real c, real s, real *restrict x, real *restrict y), (p, c, s, x, y))
{
    for (spca_int i = 0; i < p; i++) {
        real a = x[i], b = y[i];
        x[i] = c * a + s * b;
        y[i] = c * b - s * a;
    }
}

void SPCA(turn_pair)(spca_int p, spca_int r, double c, double s, real *x, real *y, double *u,
                     double *v)
{
    turn(p, (real)c, (real)s, x, y);
    for (spca_int i = 0; i < r; i++) {
        double a = u[i], b = v[i];
        u[i] = c * a + s * b;
        v[i] = c * b - s * a;
    }
}

spca_status SPCA(planar_sweeps)(spca_int p, spca_int r, double gamma, spca_int max_iter, double tol,
                                spca_stop stop, void *ctx, real *Y, double *R, spca_int *n_iter)
{
    spca_int resting = 0; /* pairs, one after another, that were left as they are */
    for (spca_int sweep = 0; sweep < max_iter; sweep++) {
        ++*n_iter;
        for (spca_int a = 0; a < r; a++)
            for (spca_int b = a + 1; b < r; b++) {
                double phi;
                spca_status status;
                if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
                status = pair_angle(p, Y + a * p, Y + b * p, gamma, tol, &phi);
                if (status < 0) return status;
                if (phi == 0) {
                    if (++resting == r * (r - 1) / 2) return SPCA_OK;
                    continue;
                }
                resting = 0;
                SPCA(turn_pair)(p, r, cos(phi), sin(phi), Y + a * p, Y + b * p, R + a * r,
                                R + b * r);
            }
    }
    return SPCA_NOT_CONVERGED;
}
