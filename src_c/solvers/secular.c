/* secular.c - the largest eigenvalue of a diagonal matrix that is bordered, or restricted to a
 * subspace.
 *
 * Bordered, with eigenvalues lambda_1 >= lambda_2 >= ... on the diagonal:
 *
 *     diag(lambda)  e
 *     e'            alpha
 *
 * has the largest eigenvalue lambda_1 + tau, where tau >= 0 is the largest root of (Golub 1973,
 * SIAM Review 15, 318-334)
 *
 *     tau + lambda_1 - alpha = sum_l e_l^2/(tau + lambda_1 - lambda_l),
 *
 * or 0 if all roots are negative.  On the subspace w'z = 0 it is lambda_2 + tau with
 *
 *     w_1^2/(lambda_1 - lambda_2 - tau) = sum_{l > 1} w_l^2/(tau + lambda_2 - lambda_l).
 *
 * Call the right hand side psi(tau).  1/psi is concave, since psi is 1 over a weighted harmonic
 * mean of affine functions.  So the hyperbola s/(tau + q) that meets psi and its slope at some
 * point is nowhere above psi.  The left hand side ascends, hence it meets the hyperbola at a lower
 * bound of the root.  These bounds ascend to the root quadratically; next to a lambda_l even their
 * logarithms do. */
#include "secular.h"

static const double NONE = 1e-290; /* squares of numbers near 1 that are no larger count as 0 */

/* The left hand side of an equation above. */
typedef struct {
    int leaving;
    double offset;      /* bordered (joining): it is tau + offset */
    double head, width; /* on a subspace (leaving): it is head/(width - tau) */
} side_t;

/* The larger root tau of left(tau) = s/(tau + q), without cancellation. */
static double meeting(const side_t *left, double s, double q)
{
    if (left->leaving) return (s * left->width - left->head * q) / (s + left->head);
    double half = (left->offset + q) / 2, apart = (left->offset - q) / 2;
    double root = sqrt(apart * apart + s);
    return half > 0 ? (s - left->offset * q) / (half + root) : root - half;
}

/* The root tau >= 0 of left(tau) = sum_l square_l/(tau + gap_l), or 0.  gap ascends from 0 or more,
 * squares are above NONE, and all of them are near 1 or below. */
static double secular_root(const side_t *left, spca_int count, const double *gap,
                           const double *square)
{
    double total = 0, low, high;
    if (count == 0) return left->leaving ? 0 : fmax(0, -left->offset);
    for (spca_int l = 0; l < count; l++) total += square[l];
    high = meeting(left, total, gap[0]);
    if (!(high > 0)) return 0;
    low = fmax(meeting(left, square[0], gap[0]), meeting(left, total, gap[count - 1]));
    low = fmin(fmax(low, 0), high); /* it is above 0 where gap[0] is 0 */
    while (high - low > DBL_EPSILON) {
        double sum = 0, slope = 0, next;
#pragma omp simd reduction(+ : sum, slope)
        for (spca_int l = 0; l < count; l++) {
            double inverse = 1 / (low + gap[l]), term = square[l] * inverse;
            sum += term;
            slope += term * inverse;
        }
        next = meeting(left, sum * (sum / slope), fmax(sum / slope - low, gap[0]));
        if (!(next > low * (1 + 4 * DBL_EPSILON))) break;
        low = fmin(next, high);
    }
    return low;
}

double spca_unit_of(double x)
{
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, exponent < -1020 ? 1020 : -exponent);
}

double spca_bordered_eigenvalue(spca_int w, const double *eigenvalues, const double *e,
                                double corner, double *work)
{
    double *gap = work, *square = work + w, size = eigenvalues[0] - eigenvalues[w - 1], unit;
    side_t left = {.offset = eigenvalues[0] - corner};
    spca_int count = 0;
    for (spca_int l = 0; l < w; l++) size = fmax(size, fabs(e[l]));
    size = fmax(size, fabs(left.offset));
    if (size == 0) return eigenvalues[0];
    unit = spca_unit_of(size);
    for (spca_int l = 0; l < w; l++) {
        double entry = e[l] * unit;
        gap[count] = (eigenvalues[0] - eigenvalues[l]) * unit;
        square[count] = entry * entry;
        count += square[count] > NONE;
    }
    left.offset *= unit;
    return eigenvalues[0] + secular_root(&left, count, gap, square) / unit;
}

/* x_i = 0 is w'z = 0 for row w of W.  Rows are scaled near 1; a row whose first entry counts as 0
 * leaves lambda_1 as it is. */
spca_status spca_deleted_eigenvalues(spca_int k, spca_int w, const double *eigenvalues,
                                     const double *W, spca_stop stop, void *ctx, double *work,
                                     double *value)
{
    double *gap = work, *square = work + w, width = w > 1 ? eigenvalues[0] - eigenvalues[1] : 0;
    double unit = width > 0 ? spca_unit_of(eigenvalues[0] - eigenvalues[w - 1]) : 1;
    for (spca_int i = 0; i < k; i++) {
        double size = 0, row;
        spca_int count = 0;
        side_t left = {.leaving = 1, .width = width * unit};
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (spca_int l = 0; l < w; l++) size = fmax(size, fabs(W[i + l * k]));
        row = size > 0 ? W[i] * spca_unit_of(size) : 0;
        left.head = row * row;
        value[i] = eigenvalues[0];
        if (left.head <= NONE) continue;
        if (w == 1) value[i] = -HUGE_VAL;
        if (width == 0) continue;
        for (spca_int l = 1; l < w; l++) {
            row = W[i + l * k] * spca_unit_of(size);
            gap[count] = (eigenvalues[1] - eigenvalues[l]) * unit;
            square[count] = row * row;
            count += square[count] > NONE;
        }
        value[i] =
            fmin(eigenvalues[0], eigenvalues[1] + secular_root(&left, count, gap, square) / unit);
    }
    return SPCA_OK;
}
