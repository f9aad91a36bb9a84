/* greedy.c - the largest eigenvalue when one variable joins or leaves a support.
 *
 * Greedy search (Moghaddam, Weiss & Avidan 2006, NIPS 18; d'Aspremont, Bach & El Ghaoui 2008, JMLR
 * 9, 1269-1294, algorithm 1) asks for it at every variable, in every step.  For the pencil (A, B),
 * B = I + strength QQ', let the columns of W on the support S have W'B_S W = I and W'A_S W =
 * diag(lambda), lambda_1 >= lambda_2 >= ...  Without Q, W holds the eigenvectors of A_S.
 *
 * Joining: with b = W'A_Sj, d = W'B_Sj and sigma = B_jj - d'd, the pencil on S and j is that of
 *
 *     diag(lambda)  e         e = (b - lambda d)/sqrt(sigma),
 *     e'            alpha,    alpha = (a_jj - 2 d'b + sum lambda_l d_l^2)/sigma,
 *
 * whose largest eigenvalue is lambda_1 + tau, tau >= 0 the largest root of (Golub 1973, SIAM Review
 * 15, 318-334)
 *
 *     tau + lambda_1 - alpha = sum_l e_l^2/(tau + lambda_1 - lambda_l),
 *
 * or 0 if all are negative.  Leaving: x_i = 0 is w'z = 0 for row w of W, and the largest eigenvalue
 * left is lambda_2 + tau with
 *
 *     w_1^2/(lambda_1 - lambda_2 - tau) = sum_{l > 1} w_l^2/(tau + lambda_2 - lambda_l).
 *
 * The right hand side psi is 1 over a weighted harmonic mean of affine functions, so 1/psi is
 * concave, and the hyperbola s/(tau + q) that meets psi and its slope at any one point lies nowhere
 * above it.  The left hand side ascends; hence where the hyperbola meets it is a lower bound of the
 * root, and these bounds ascend to the root quadratically; next to a pole even their logarithms do.
 */
#include "real.h"

enum { TILE = 64 };                /* candidates whose products are formed together */
static const double NONE = 1e-290; /* squares, of numbers near 1, that count as 0 */

typedef struct {
    int leaving;
    double offset;      /* joining: tau + offset */
    double head, width; /* leaving: head/(width - tau) */
} side_t;

/* The larger root of left(tau) = s/(tau + q). */
static double meeting(const side_t *left, double s, double q)
{
    if (left->leaving) return (s * left->width - left->head * q) / (s + left->head);
    double half = (left->offset + q) / 2, apart = (left->offset - q) / 2;
    double root = sqrt(apart * apart + s);
    return half > 0 ? (s - left->offset * q) / (half + root) : root - half;
}

/* The root tau >= 0, or 0; gap ascending from 0 at least, square above NONE, all of them near 1 or
 * below. */
static double secular_root(const side_t *left, spca_int count, const double *gap,
                           const double *square)
{
    double total = 0, low, high;
    if (count == 0) return left->leaving ? 0 : fmax(0, -left->offset);
    for (spca_int l = 0; l < count; l++) total += square[l];
    high = meeting(left, total, gap[0]);
    if (!(high > 0)) return 0;
    low = fmax(meeting(left, square[0], gap[0]), meeting(left, total, gap[count - 1]));
    low = fmin(fmax(low, 0), high); /* above 0 where gap[0] is 0 */
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

/* The power of two that brings x near 1. */
static double unit_of(double x)
{
    int exponent;
    frexp(x, &exponent);
    return ldexp(1, exponent < -1020 ? 1020 : -exponent);
}

/* Largest eigenvalue of diag(pole) bordered by e and corner.  work (2w). */
static double bordered(spca_int w, const double *pole, const double *e, double corner, double *work)
{
    double *gap = work, *square = work + w, size = pole[0] - pole[w - 1], unit;
    side_t left = {.offset = pole[0] - corner};
    spca_int count = 0;
    for (spca_int l = 0; l < w; l++) size = fmax(size, fabs(e[l]));
    size = fmax(size, fabs(left.offset));
    if (size == 0) return pole[0];
    unit = unit_of(size);
    for (spca_int l = 0; l < w; l++) {
        double entry = e[l] * unit;
        gap[count] = (pole[0] - pole[l]) * unit;
        square[count] = entry * entry;
        count += square[count] > NONE;
    }
    left.offset *= unit;
    return pole[0] + secular_root(&left, count, gap, square) / unit;
}

/* y = sum_i x_i C_i. */
VECTORIZED static void combine(spca_int k, spca_int p, const real *C, const double *x,
                               spca_int start, spca_int end, double *y)
{
    for (spca_int j = start; j < end; j++) y[j] = 0;
    for (spca_int i = 0; i < k; i++)
        for (spca_int j = start; j < end; j++) y[j] += x[i] * (double)C[i * p + j];
}

/* Tiles by rows: out_l = sum_i M_il in_i, or M_li where transposed; M has leading dimension ld. */
VECTORIZED static void turn(spca_int k, spca_int w, const double *M, spca_int ld, int transposed,
                            const double *in, double *out)
{
    for (spca_int l = 0; l < w; l++) {
        double *y = out + l * TILE;
        for (int a = 0; a < TILE; a++) y[a] = 0;
        for (spca_int i = 0; i < k; i++) {
            double m = transposed ? M[l + i * ld] : M[i + l * ld];
            const double *x = in + i * TILE;
            for (int a = 0; a < TILE; a++) y[a] += m * x[a];
        }
    }
}

/* Whether the eigenvalue stays below best, as if all poles but the first were the second. */
static int surpassed(const double *pole, double lead, double norm, double corner, double best,
                     double *work)
{
    double e[2] = {lead, sqrt(fmax(norm * (1 + 1e-12) - lead * lead, 0))};
    double upper = bordered(2, pole, e, corner, work);
    return upper < best - 1e-11 * (fabs(pole[0]) + fabs(upper));
}

spca_status SPCA(bordered_eigenvalues)(spca_int p, spca_int k, spca_int w, spca_int t,
                                       spca_int count, const spca_int *candidate, const real *C,
                                       const double *diagonal, const double *pole, const double *W,
                                       const double *norm, const double *Q, const double *R,
                                       double strength, double least, spca_stop stop, void *ctx,
                                       double *work, double *value)
{
    double *lead = work, *c = lead + p, *q = c + k * TILE, *b = q + t * TILE, *d = b + w * TILE;
    double *border = d + w * TILE, *rest = border + w, best = -HUGE_VAL;
    spca_int place[TILE], held = 0;
    for (spca_int start = 0; norm && start < p; start += 8 * TILE) {
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        combine(k, p, C, W, start, min_int(p, start + 8 * TILE), lead);
    }
    for (spca_int a = 0; norm && a < count; a++) {
        spca_int j = candidate[a];
        best = fmax(best, bordered(1, pole, lead + j, diagonal[j], rest));
    }
    for (spca_int a = 0; a < count; a++) {
        spca_int j = candidate[a];
        value[a] = -HUGE_VAL;
        if (!norm || w == 1 || !surpassed(pole, lead[j], norm[j], diagonal[j], best, rest))
            place[held++] = a;
        if (held < TILE && a + 1 < count) continue;
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (spca_int h = 0; h < TILE; h++) {
            spca_int column = h < held ? candidate[place[h]] : -1;
            for (spca_int i = 0; i < k; i++)
                c[i * TILE + h] = column < 0 ? 0 : (double)C[i * p + column];
            for (spca_int i = 0; i < t; i++) q[i * TILE + h] = column < 0 ? 0 : Q[i * p + column];
        }
        if (held > 0) turn(k, w, W, k, 0, c, b);
        if (held > 0 && t > 0) turn(t, w, R, w, 1, q, d);
        for (spca_int h = 0; h < held; h++) {
            double corner = diagonal[candidate[place[h]]], *out = value + place[h];
            double sigma = 1, root = 1;
            for (spca_int i = 0; i < t; i++) sigma += strength * q[i * TILE + h] * q[i * TILE + h];
            for (spca_int l = 0; l < w; l++) {
                double bl = b[l * TILE + h], dl = t > 0 ? strength * d[l * TILE + h] : 0;
                sigma -= dl * dl;
                corner += dl * (pole[l] * dl - 2 * bl);
                border[l] = bl - pole[l] * dl;
            }
            if (t > 0) {
                if (!(sigma > least)) { /* nothing that S does not have already */
                    *out = pole[0];
                    continue;
                }
                root = sqrt(sigma);
                corner /= sigma;
                for (spca_int l = 0; l < w; l++) border[l] /= root;
            }
            *out = bordered(w, pole, border, corner, rest);
            best = fmax(best, *out);
        }
        held = 0;
    }
    return SPCA_OK;
}

spca_status SPCA(deleted_eigenvalues)(spca_int k, spca_int w, const double *pole, const double *W,
                                      spca_stop stop, void *ctx, double *work, double *value)
{
    double *gap = work, *square = work + w, width = w > 1 ? pole[0] - pole[1] : 0;
    double unit = width > 0 ? unit_of(pole[0] - pole[w - 1]) : 1;
    for (spca_int i = 0; i < k; i++) {
        double size = 0, row;
        spca_int count = 0;
        side_t left = {.leaving = 1, .width = width * unit};
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (spca_int l = 0; l < w; l++) size = fmax(size, fabs(W[i + l * k]));
        row = size > 0 ? W[i] * unit_of(size) : 0;
        left.head = row * row;
        value[i] = pole[0];
        if (left.head <= NONE) continue;
        if (w == 1) value[i] = -HUGE_VAL;
        if (width == 0) continue;
        for (spca_int l = 1; l < w; l++) {
            row = W[i + l * k] * unit_of(size);
            gap[count] = (pole[1] - pole[l]) * unit;
            square[count] = row * row;
            count += square[count] > NONE;
        }
        value[i] = fmin(pole[0], pole[1] + secular_root(&left, count, gap, square) / unit);
    }
    return SPCA_OK;
}
