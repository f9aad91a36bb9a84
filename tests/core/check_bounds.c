/* check_bounds.c - bounds of the columns of a screen, and pairs of variables of large values. */
#include "core.h"

/* A number in [-1, 1]. */
static double share(trial_t *t)
{
    return (double)below(t, 2001) / 1000 - 1;
}

void SPCA(check_screen_bounds)(trial_t *t)
{
    spca_int n = between(t, 1, 40), p = between(t, 1, 20);
    spca_int ld = (n + SPCA_QUANTIZED_BLOCK - 1) / SPCA_QUANTIZED_BLOCK * SPCA_QUANTIZED_BLOCK;
    int centered = chance(t, 50), weighted = chance(t, 50), shadowed = chance(t, 60);
    double unit = chance(t, 20) ? 0x1p-105 : 1, range = ldexp(1, (int)below(t, 7) - 3);
    double *X = zeros(t, n * p), *rows = zeros(t, 6 * p);
    double *mean = zeros(t, p), *weight = zeros(t, p), *diagonal = zeros(t, p);
    double *moment = zeros(t, p), limits[3], other[3];
    float *size = SCRATCH(t, p, float), *step = SCRATCH(t, p, float), *norm = SCRATCH(t, p, float);
    float *slack = SCRATCH(t, p, float), *more = SCRATCH(t, p, float);
    int8_t *q = SCRATCH(t, p * ld, int8_t);
    for (spca_int a = 0; a < n * p; a++) X[a] = unit * (share(t) + (double)(3 * (a % 2)));
    CHECK(t, spca_dshared_statistics(n, p, X, n, 0, centered, ld, NULL, NULL, NULL, rows, rows + p,
                                     rows + 2 * p, rows + 3 * p, q, rows + 4 * p, rows + 5 * p,
                                     size) == SPCA_OK);
    for (spca_int j = 0; j < p; j++) {
        weight[j] = weighted ? (double)below(t, 3) : 1;
        mean[j] = centered ? rows[j] : 0;
        for (spca_int i = 0; i < n; i++) {
            double f = range * range * weight[j] / sqrt(n > 1 ? (double)(n - 1) : 1);
            double z = (X[j * n + i] - mean[j]) * f, x = fabs(X[j * n + i] * f) + fabs(mean[j] * f);
            diagonal[j] += z * z, moment[j] += x * x;
        }
    }
    spca_screen_bounds(n, p, 0, range, rows, shadowed ? size : NULL, centered ? mean : NULL,
                       weighted ? weight : NULL, diagonal, moment, step, norm, slack, limits);
    for (spca_int j = 0; j < p; j++) {
        double left = 0, length = 0;
        for (spca_int i = 0; i < n; i++) {
            double z = (X[j * n + i] - mean[j]) * range * range * weight[j];
            double near = shadowed ? (double)step[j] * q[j * ld + i] : z;
            left += (z - near) * (z - near), length += near * near;
        }
        CHECK(t, sqrt(left) <= (double)slack[j] && sqrt(length) <= (double)norm[j]);
        CHECK(t, !shadowed || (double)size[j] <= limits[0]);
    }
    CHECK(t, limits[0] >= 1 && limits[1] > 0 && limits[1] < limits[2]);
    spca_screen_bounds(n, p, 1, range, rows, shadowed ? size : NULL, centered ? mean : NULL,
                       weighted ? weight : NULL, diagonal, moment, step, norm, more, other);
    for (spca_int j = 0; j < p; j++) { /* n + 2 products may underflow, of directions that small */
        double lost = ldexp((double)(n + 2), -148) / other[1] * (1 + range * (1 + weight[j]));
        CHECK(t, more[j] >= slack[j] && (double)more[j] >= lost);
    }
    CHECK(t, other[1] > limits[1] && (other[2] < limits[2] || isinf(other[2])));
    digest(t, slack, (size_t)p * sizeof *slack);
}

/* The larger root of a pair, by a Cholesky factor of B; -infinity where that is singular. */
static double value_of(spca_int p, const double *A, const double *B, double least, spca_int i,
                       spca_int j)
{
    double b = B[i * p + i], l = B[i * p + j] / b, d = B[j * p + j] - l * l * b;
    if (d < least * B[j * p + j]) return -HUGE_VAL;
    double x = A[i * p + i] / b, y = (A[i * p + j] - l * A[i * p + i]) / sqrt(b * d);
    double z = (A[j * p + j] - 2 * l * A[i * p + j] + l * l * A[i * p + i]) / d;
    return (x + z) / 2 + hypot((x - z) / 2, y);
}

void SPCA(check_best_pairs)(trial_t *t)
{
    spca_int p = between(t, 1, 12), most = between(t, 1, 20), count = -1;
    double *A = zeros(t, p * p), *B = zeros(t, p * p);
    spca_int *part = SCRATCH(t, p, spca_int), *used = SCRATCH(t, p, spca_int);
    spca_int *pair = SCRATCH(t, 2 * most + 2, spca_int), times[12] = {0};
    int parted = chance(t, 40), taken[12][12] = {{0}};
    stop_t stop = {0, chance(t, 10) ? below(t, p + most) : -1};
    double least = chance(t, 50) ? 0.4 : 1e-9, unit = ldexp(1, (int)between(t, -9, 9));
    for (spca_int i = 0; i < p; i++) {
        part[i] = below(t, 2);
        for (spca_int j = 0; j <= i; j++) {
            A[i * p + j] = A[j * p + i] = share(t) * (i == j ? 3 : 1);
            B[i * p + j] = unit * (i == j ? 1 : chance(t, 20) ? 1 : 0.9 * share(t));
            B[j * p + i] = B[i * p + j];
        }
    }
    spca_status status = spca_best_pairs(p, A, B, least, parted ? part : NULL, most, stop_at, &stop,
                                         SCRATCH(t, p * (p - 1) / 2, double), used, pair, &count);
    digest_int(t, status);
    CHECK(t, (status == SPCA_STOPPED) == (stop.at >= 0 && stop.asked > stop.at));
    if (status == SPCA_STOPPED) return;
    CHECK(t, status == SPCA_OK && count >= 0 && count <= most);
    for (spca_int c = 0; c <= count && c < most; c++) {
        double best = -HUGE_VAL;
        for (spca_int i = 0; i < p; i++)
            for (spca_int j = i + 1; j < p; j++)
                if (!taken[i][j] && times[i] < 2 && times[j] < 2 && !(parted && part[i] == part[j]))
                    best = fmax(best, value_of(p, A, B, least, i, j));
        if (c == count) {
            CHECK(t, !(best > -HUGE_VAL));
            break;
        }
        spca_int i = pair[2 * c], j = pair[2 * c + 1];
        CHECK(t, i >= 0 && i < j && j < p && !taken[i][j] && times[i] < 2 && times[j] < 2);
        CHECK(t, !(parted && part[i] == part[j]));
        CHECK(t, value_of(p, A, B, least, i, j) >= best - 1e-9 * (1 + fabs(best)));
        taken[i][j] = 1, times[i]++, times[j]++;
    }
    digest(t, pair, (size_t)(2 * count) * sizeof *pair);
}
