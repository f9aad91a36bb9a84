/* l1_rotate.c - the rotation that minimizes the sum of magnitudes, by planar rotations.
 *
 * Turn the columns x and y to x cos t + y sin t and y cos t - x sin t.  A row of length r_i and
 * angle phi_i then adds r_i (|cos(t - phi_i)| + |sin(t - phi_i)|).  This has the period pi/2 and is
 * concave but at t = phi_i mod pi/2, where one of the two terms is zero.  So the sum is concave
 * between these breakpoints, and its minimum over all t lies at one of them.
 *
 * By multiples of pi/2 every row is turned into (a_i, b_i), a_i > 0, b_i >= 0, which does not
 * change the sum
 *
 *     f(t) = cos t (A - B_< + B_>) + sin t (B + A_< - A_>),    A = sum a_i, B = sum b_i,
 *
 * where A_< and B_< are over the rows whose breakpoint is at or before t, and A_> and B_> over the
 * others.  Nothing is sorted at first: b/(a + b), which grows with the breakpoint, puts the rows
 * into BINS.  Their sums give f at all ends of bins.  Inside a bin [s, t], the rows outside of it
 * make a concave function, and those in it have a total length of at least m = hypot(sum a, sum b),
 * so that
 *
 *     f >= min(f(s) - g(s), f(t) - g(t)) + m,    g the part of the rows in the bin.
 *
 * Only bins whose bound is below the best end are looked into, and their rows sorted.  So a read of
 * the two columns and little more finds the minimum exactly. */
#include "planar.h"
#include <stdlib.h>

enum { BINS = 512 };
#define FAINT                                                                                      \
    0x1p-900 /* rows below it are taken times a power of two: no subnormal norm is exact */

/* A row: its place b/(a + b), a and b. */
typedef struct {
    double q, a, b;
} row_t;

/* (a, b) with a > 0, b >= 0: (x, y) turned by a multiple of pi/2; (0, 0) stays. */
static inline void first_quadrant(double x, double y, double *a, double *b)
{
    /* in the second and fourth quadrant: a quarter turn more */
    int turned = (x < 0) != (y < 0) && y != 0;
    double u = fabs(x), v = fabs(y);
    *a = turned ? v : u;
    *b = turned ? u : v;
    if (*a == 0) { /* on the other axis */
        *a = *b;
        *b = 0;
    }
}

/* For qsort: b/(a + b) ascending. */
static int by_place(const void *x, const void *y)
{
    double a = ((const row_t *)x)->q, b = ((const row_t *)y)->q;
    return (a > b) - (a < b);
}

/* f in the direction (c, s), given the sums a, b of the rows before it and A, B of all. */
static double at_direction(double c, double s, double a, double b, double A, double B)
{
    return (c * (A - b + (B - b)) + s * (B + a - (A - a))) / hypot(c, s);
}

/* What rows with the sums a, b add to f in a direction after all of their breakpoints, and before
 * all of them. */
static double after(double c, double s, double a, double b)
{
    return ((c + s) * a + (s - c) * b) / hypot(c, s);
}

static double before(double c, double s, double a, double b)
{
    return ((c - s) * a + (s + c) * b) / hypot(c, s);
}

/* The bin of a row: floor(BINS b/(a + b)). */
static int bin_of(double a, double b)
{
    int bin = (int)(b / (a + b) * BINS);
    return bin < BINS ? bin : BINS - 1;
}

/* The direction (c, s) of the minimum for columns x and y; (1, 0) where that lowers f by no more
 * than tol times f.  rows (p): scratch. */
static spca_status best_turn(spca_int p, const real *x, const real *y, double tol, row_t *rows,
                             double *c, double *s)
{
    double sum_a[BINS] = {0}, sum_b[BINS] = {0}, A = 0, B = 0, a, b, now, limit, least;
    double edge[BINS + 1];
    int wanted[BINS], any = 0;
    *c = 1;
    *s = 0;
    for (spca_int i = 0; i < p; i++) {
        int bin;
        first_quadrant((double)x[i], (double)y[i], &a, &b);
        if (a == 0) continue;
        if (!(a + b <= DBL_MAX)) return SPCA_NONFINITE; /* it has no bin */
        bin = bin_of(a, b);
        sum_a[bin] += a;
        sum_b[bin] += b;
    }
    for (int k = 0; k < BINS; k++) {
        A += sum_a[k];
        B += sum_b[k];
    }
    /* f at the ends of bins, and bounds inside */
    now = A + B;
    if (!(now <= (double)REAL_MAX)) return SPCA_NONFINITE;
    limit = now * (1 - fmax(tol, 4 * (double)REAL_EPSILON));
    least = limit;
    a = b = 0;
    for (int k = 0;; k++) {
        edge[k] = at_direction(BINS - k, k, a, b, A, B);
        least = fmin(least, edge[k] * (1 + 1e-12));
        if (k == BINS) break;
        a += sum_a[k];
        b += sum_b[k];
    }
    for (int k = 0; k < BINS; k++) {
        double from = edge[k] - before(BINS - k, k, sum_a[k], sum_b[k]);
        double to = edge[k + 1] - after(BINS - k - 1, k + 1, sum_a[k], sum_b[k]);
        wanted[k] = fmin(from, to) + hypot(sum_a[k], sum_b[k]) < least;
        any |= wanted[k];
    }
    if (!any) return SPCA_OK;
    /* the breakpoints in the bins that may have the minimum */
    spca_int count = 0;
    for (spca_int i = 0; i < p; i++) {
        first_quadrant((double)x[i], (double)y[i], &a, &b);
        if (a > 0 && wanted[bin_of(a, b)]) rows[count++] = (row_t){b / (a + b), a, b};
    }
    qsort(rows, (size_t)count, sizeof *rows, by_place);
    a = b = 0;
    spca_int i = 0;
    for (int k = 0; k < BINS; k++) {
        double inside_a = a, inside_b = b;
        for (; wanted[k] && i < count && bin_of(rows[i].a, rows[i].b) == k; i++) {
            double f, up = rows[i].a + rows[i].b < FAINT ? 1 / FAINT : 1;
            inside_a += rows[i].a;
            inside_b += rows[i].b;
            f = at_direction(rows[i].a * up, rows[i].b * up, inside_a, inside_b, A, B);
            if (f < limit) {
                limit = f;
                *c = rows[i].a * up;
                *s = rows[i].b * up;
            }
        }
        a += sum_a[k];
        b += sum_b[k];
    }
    if (*s > *c) { /* a quarter turn less, so that the columns keep their places */
        a = *c;
        *c = *s;
        *s = -a;
    }
    a = hypot(*c, *s);
    *c /= a;
    *s /= a;
    return SPCA_OK;
}

spca_status SPCA(l1_sweeps)(spca_int p, spca_int r, spca_int max_iter, double tol, spca_stop stop,
                            void *ctx, real *Y, double *work, spca_int *iwork, double *R,
                            spca_int *n_iter)
{
    /* when each column was last turned, and each pair last seen */
    spca_int *turned = iwork, *seen = iwork + r, now = 1;
    for (spca_int i = 0; i < r + r * r; i++) iwork[i] = i < r;
    for (spca_int sweep = 0; sweep < max_iter; sweep++) {
        int resting = 1;
        ++*n_iter;
        for (spca_int a = 0; a < r; a++)
            for (spca_int b = a + 1; b < r; b++) {
                double c, s;
                spca_status status;
                if (seen[a * r + b] >= turned[a] && seen[a * r + b] >= turned[b]) continue;
                if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
                status = best_turn(p, Y + a * p, Y + b * p, tol, (row_t *)work, &c, &s);
                if (status < 0) return status;
                if (s != 0) {
                    resting = 0;
                    turned[a] = turned[b] = ++now;
                    SPCA(turn_pair)(p, r, c, s, Y + a * p, Y + b * p, R + a * r, R + b * r);
                }
                seen[a * r + b] = now; /* a pair that was turned is at its best */
            }
        if (resting) return SPCA_OK;
    }
    return SPCA_NOT_CONVERGED;
}
