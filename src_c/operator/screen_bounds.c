/* screen_bounds.c - the step, norm and slack that the argument of screen.c needs of each column z =
 * f (x - mean), f = range^2 weight.  Each is rounded up. */
#include "../real.h"

void spca_screen_bounds(spca_int n, spca_int p, int single, double range, const double *statistics,
                        const float *size, const double *mean, const double *weight,
                        const double *diagonal, const double *moment, float *step, float *norm,
                        float *slack, double *limits)
{
    /* rounding: that of sums of products, relative; underflow: its absolute share */
    const double *low = statistics + 2 * p, *high = statistics + 3 * p, *steps = statistics + 4 * p,
                 *errors = statistics + 5 * p;
    double up = 1 + 0x1p-18; /* more than a rounding to float */
    double rounding = 4 * ((double)n / 4 + (single ? 32 : 16) + 12) *
                      (single ? (double)FLT_EPSILON : DBL_EPSILON) / 2;
    double smallest = single ? 0x1p-40 : 0x1p-100;
    double underflow = 2 * ((double)n + 2) * ((single ? 0x1p-149 : 0x1p-1074) / smallest);
    double largest = DBL_MIN, widest = 1, root = sqrt((double)n),
           degrees = n > 1 ? (double)(n - 1) : 1;
    for (spca_int j = 0; j < p; j++) {
        largest = fmax(largest, fmax(-low[j], high[j]));
        double factor = range * range * (weight ? weight[j] : 1);
        double rest = sqrt(degrees * moment[j]) * rounding;
        rest += underflow * (1 + range + factor / range);
        if (mean) /* the statistics have a mean of their own, in double precision */
            rest += fabs(mean[j] - statistics[j]) * (root * factor);
        /* norm_j and slack_j: without a quantized copy, of z_j itself; with one, of step_j q_j and
         * of what that leaves of z_j */
        double length;
        if (!size)
            length = sqrt(degrees * diagonal[j]) * up + rest;
        else {
            widest = fmax(widest, (double)size[j]);
            step[j] = (float)(steps[j] * factor);
            length = (double)step[j] * (double)size[j];
            rest += errors[j] * factor + length * 0x1p-22; /* the latter for the rounding of step */
            /* so small that its estimates might underflow: all of it is slack */
            if (length < 0x1p-100 || step[j] < 0x1p-100f) {
                rest += up * length;
                length = 0, step[j] = 0;
            }
        }
        slack[j] = rest * up < (double)FLT_MAX ? (float)(rest * up + (double)FLT_MIN) : INFINITY;
        norm[j] = (float)(length * up);
    }
    limits[0] = widest, limits[1] = smallest;
    limits[2] = (single ? (double)FLT_MAX : DBL_MAX) / largest / (8 * root * range);
}
