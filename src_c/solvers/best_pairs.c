/* best_pairs.c - the pairs of variables with the largest x'Ax/x'Bx.
 *
 * For a pair (i, j) where B is regular, that is the larger root of (b_i b_j - B_ij^2) l^2 - (a_i
 * b_j + a_j b_i - 2 A_ij B_ij) l + a_i a_j - A_ij^2, with a and b the diagonals. */
#include "real.h"

/* The larger root for A = [a A; A c] and B = [b B; B d]; -infinity where B is singular to the share
 * `least`. */
static double value_of(double a, double c, double A, double b, double d, double B, double least)
{
    double square = b * d - B * B, middle = a * d / 2 + b * c / 2 - A * B, last = a * c - A * A;
    double root = middle * middle - square * last;
    if (!(square > least * (b * d))) return -HUGE_VAL;
    return (middle + (root > 0 ? sqrt(root) : 0)) / square;
}

spca_status spca_best_pairs(spca_int p, const double *A, const double *B, double least,
                            const spca_int *part, spca_int most, spca_stop stop, void *ctx,
                            double *work, spca_int *used, spca_int *pair, spca_int *count)
{
    spca_int at = 0;
    for (spca_int i = 0; i < p; i++) {
        used[i] = 0;
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        for (spca_int j = i + 1; j < p; j++, at++)
            work[at] = part && part[i] == part[j]
                           ? -HUGE_VAL
                           : value_of(A[i * p + i], A[j * p + j], A[i * p + j], B[i * p + i],
                                      B[j * p + j], B[i * p + j], least);
    }
    /* the best pair that is left, until a variable is in two; pairs i < j stand row by row in work
     */
    for (*count = 0; *count < most; ++*count, pair += 2) {
        double best = -HUGE_VAL;
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        at = 0;
        for (spca_int i = 0; i < p; at += p - ++i) {
            if (used[i] == 2) continue;
            for (spca_int j = i + 1; j < p; j++)
                if (work[at + j - i - 1] > best && used[j] < 2) {
                    best = work[at + j - i - 1];
                    pair[0] = i, pair[1] = j;
                }
        }
        if (!(best > -HUGE_VAL)) return SPCA_OK;
        at = pair[0] * p - pair[0] * (pair[0] + 1) / 2 + pair[1] - pair[0] - 1;
        work[at] = -HUGE_VAL;
        used[pair[0]]++, used[pair[1]]++;
    }
    return SPCA_OK;
}
