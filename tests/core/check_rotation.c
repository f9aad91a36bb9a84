/* check_rotation.c - rotations are orthogonal, turn the rows as they say, and never make it worse;
 * tiles against plain sums. */
#include "core.h"

/* sum_j [sum_i y_ij^4 - (gamma/p) (sum_i y_ij^2)^2], or the sum of |y_ij|. */
static double criterion(spca_int p, spca_int r, double gamma, int l1, double unit, const real *Y)
{
    double total = 0;
    for (spca_int j = 0; j < r; j++) {
        double squares = 0, fourth = 0;
        for (spca_int i = 0; i < p; i++) {
            double y = (double)Y[i + j * p] / unit;
            squares += y * y;
            fourth += l1 ? fabs(y) : y * y * y * y;
        }
        total += fourth - (l1 ? 0 : gamma / (double)p * squares * squares);
    }
    return total;
}

typedef enum { ORTHOMAX, PLANAR, L1, ROTATIONS } rotation_t;

static spca_status rotate(trial_t *t, rotation_t which, spca_int p, spca_int r, double gamma,
                          spca_int most, stop_t *stop, real *Y, double *R, spca_int *n_iter)
{
    spca_stop asked = stop ? stop_at : NULL;
    const double tol = 1e-6;
    *n_iter = 0;
    for (spca_int i = 0; which != ORTHOMAX && i < r * r; i++) R[i] = i % (r + 1) == 0;
    switch (which) {
    case ORTHOMAX:
        return SPCA(orthomax)(p, r, gamma, most, tol, spca_pool_run, asked, stop, Y,
                              SCRATCH(t, SPCA(orthomax_work)(p, r), double), R, n_iter);
    case PLANAR:
        return SPCA(planar_sweeps)(p, r, gamma, most, tol, asked, stop, Y, R, n_iter);
    default:
        return SPCA(l1_sweeps)(p, r, most, tol, asked, stop, Y, SCRATCH(t, 3 * p, double),
                               SCRATCH(t, r + r * r, spca_int), R, n_iter);
    }
}

static void check_rotated(trial_t *t, rotation_t which, spca_int p, spca_int r, double gamma,
                          style_t style)
{
    const real *X = SPCA(numbers)(t, style, p * r);
    real *Y = SPCA(copy_of)(t, p * r, X);
    double *R = SCRATCH(t, r * r, double), unit = 0, before, after;
    spca_int n_iter, most = between(t, 0, 40);
    spca_status status = rotate(t, which, p, r, gamma, most, NULL, Y, R, &n_iter);
    SPCA(digest)(t, status, p * r, Y);
    if (style >= SPREAD) {
        CHECK(t, status >= 0 || status == SPCA_NONFINITE);
        return;
    }
    CHECK(t, status == SPCA_OK || (status == SPCA_NOT_CONVERGED && n_iter == most));
    CHECK(t, n_iter <= most + 1);
    for (spca_int a = 0; a < r; a++)
        for (spca_int b = 0; b < r; b++) {
            double product = 0;
            for (spca_int l = 0; l < r; l++) product += R[l + a * r] * R[l + b * r];
            CHECK(t, fabs(product - (a == b)) <= 1e-11);
        }
    unit = (double)largest_magnitude(p * r, X);
    if (unit == 0) return;
    for (spca_int j = 0; j < r; j++)
        for (spca_int i = 0; i < p; i++) {
            double want = 0;
            for (spca_int l = 0; l < r; l++) want += (double)X[i + l * p] * R[l + j * r];
            CHECK(t, NEAR(Y[i + j * p], want, unit * (double)(r * (n_iter + 1))));
        }
    before = criterion(p, r, gamma, which == L1, unit, X);
    after = criterion(p, r, gamma, which == L1, unit, Y);
    if (which == L1) before = -before, after = -after;
    CHECK(t, after >= before - 1e3 * EPSILON * (double)(p * r));
    if (which != ORTHOMAX && r == 2) /* by at most an eighth: the columns keep their places */
        CHECK(t, R[0] >= fabs(R[1]) - 1e-6 && R[3] >= fabs(R[2]) - 1e-6);
    /* of data in another unit, the same rotation */
    for (int sign = -1; sign <= 1; sign += 2) {
        real *Z = SPCA(copy_of)(t, p * r, X);
        double *T = SCRATCH(t, r * r, double);
        spca_int as_many;
        for (spca_int i = 0; i < p * r; i++) Z[i] = ldexp(Z[i], 20 * sign);
        CHECK(t, rotate(t, which, p, r, gamma, most, NULL, Z, T, &as_many) == status);
        CHECK(t, as_many == n_iter && memcmp(T, R, (size_t)(r * r) * sizeof *R) == 0);
    }
    if (status != SPCA_OK) return;
    for (spca_int a = 0; a < r; a++) /* no pair can be turned to gain */
        for (spca_int b = a + 1; b < r; b++) {
            double gain[32], now;
            real *Z = WORK(t, 2 * p), *pair = WORK(t, 2 * p);
            for (int step = 0; step < 32; step += p > 100 ? 8 : 1) {
                double angle = step * 1.5707963267948966 / 32, c = cos(angle), s = sin(angle);
                for (spca_int i = 0; i < p; i++) {
                    pair[i] = Y[i + a * p];
                    pair[i + p] = Y[i + b * p];
                    Z[i] = (real)(c * (double)pair[i] + s * (double)pair[i + p]);
                    Z[i + p] = (real)(c * (double)pair[i + p] - s * (double)pair[i]);
                }
                gain[step] = criterion(p, 2, gamma, which == L1, unit, Z) -
                             criterion(p, 2, gamma, which == L1, unit, pair);
                if (which == L1) gain[step] = -gain[step];
                CHECK(t, gain[step] <= (SINGLE ? 1e-4 : 1e-5) * (double)(2 * p));
            }
            if (which == L1) continue;
            now = -gain[16] / 2; /* the gain is now (cos(4 angle) - 1) + c sin(4 angle) */
            CHECK(t, hypot(now, (gain[8] - gain[24]) / 2) - now <= 1e-7 * (double)p);
        }
}

void SPCA(check_rotation)(trial_t *t)
{
    rotation_t which = (rotation_t)below(t, ROTATIONS);
    spca_int p = between(t, 1, 70), r = between(t, 1, p < 9 ? p : 9);
    double gamma = (double)below(t, 5) / 4 * (chance(t, 10) ? (double)r : 1);
    check_rotated(t, which, p, r, gamma, SPCA(style)(t, 0));
}

/* So many rows that tiles are summed. */
void SPCA(check_ascent)(trial_t *t)
{
    spca_int r = between(t, 2, 6), p = 4096 + below(t, 600), repeat = between(t, 1, 300), asked,
             n_iter;
    style_t style = SPCA(style)(t, 1);
    double gamma = (double)below(t, 3) / 2, *R = SCRATCH(t, r * r, double);
    if (chance(t, 70)) {
        check_rotated(t, ORTHOMAX, p, r, gamma, style);
        return;
    }
    const real *X = SPCA(numbers)(t, style, p * r);
    for (asked = 0; asked < 40; asked += 1 + below(t, 8)) {
        stop_t stop = {0, asked};
        real *Y = SPCA(copy_of)(t, p * r, X);
        for (spca_int i = 0; i < p * r; i++) Y[i] *= i % p < repeat ? 4 : (real)0x1p-40; /* faint */
        spca_status status = rotate(t, ORTHOMAX, p, r, gamma, 30, &stop, Y, R, &n_iter);
        CHECK(t, stop.asked > asked ? status == SPCA_STOPPED : status >= 0);
        if (stop.asked <= asked) break;
    }
}

/* Rows in simple structure but for noise, turned: few reads of them suffice (three or four,
 * rarely six). */
void SPCA(check_few_reads)(trial_t *t)
{
    spca_int r = between(t, 2, 5), p = 4096 + below(t, 600), n_iter;
    real *Y = WORK(t, p * r);
    double *R = SCRATCH(t, r * r, double);
    for (spca_int i = 0; i < p * r; i++)
        Y[i] =
            (real)(number(PLAIN, scramble(&t->state), SINGLE) / 2 + (double)(i % p % r == i / p));
    for (spca_int a = 0; a + 1 < r; a++) {
        double angle = number(PLAIN, scramble(&t->state), SINGLE);
        for (spca_int i = 0; i < p; i++) {
            real c = (real)cos(angle), s = (real)sin(angle), x = Y[i + a * p],
                 y = Y[i + (a + 1) * p];
            Y[i + a * p] = c * x + s * y;
            Y[i + (a + 1) * p] = c * y - s * x;
        }
    }
    CHECK(t, rotate(t, ORTHOMAX, p, r, (double)below(t, 2), 40, NULL, Y, R, &n_iter) == SPCA_OK);
    SPCA(digest)(t, SPCA_OK, p * r, Y);
    CHECK(t, n_iter <= 8);
    for (spca_int i = 0; i < p; i++) Y[i] *= (real)0x1p40; /* the first column alone is large */
    CHECK(t, rotate(t, ORTHOMAX, p, r, 0, 40, NULL, Y, R, &n_iter) >= 0);
}

/* The l1 norm of columns x and y is least where some row lies on an axis; none of these is lower.
 */
static void no_lower_pair(trial_t *t, spca_int p, const real *x, const real *y)
{
    double now = 0;
    for (spca_int i = 0; i < p; i++) now += fabs((double)x[i]) + fabs((double)y[i]);
    for (spca_int i = 0; i < p; i++) {
        double h = hypot((double)x[i], (double)y[i]), c = (double)x[i], s = (double)y[i], sum = 0;
        for (spca_int l = 0; h > 0 && l < p; l++)
            sum += fabs(c * (double)x[l] + s * (double)y[l]) +
                   fabs(c * (double)y[l] - s * (double)x[l]);
        CHECK(t, !(h > 0) || sum / h >= now * (1 - 1e2 * EPSILON));
    }
}

/* The sum of magnitudes. */
static double magnitudes(spca_int count, const real *x)
{
    double sum = 0;
    for (spca_int i = 0; i < count; i++) sum += fabs((double)x[i]);
    return sum;
}

/* Rotations of the rounding errors alone, which would not end. */
void SPCA(check_rest)(trial_t *t)
{
    spca_int p = between(t, 2, 20), r = between(t, 2, 3), n_iter = 0;
    double *R = zeros(t, r * r);
    const real *X = SPCA(numbers)(t, PLAIN, p * r);
    real *Y = SPCA(copy_of)(t, p * r, X);
    for (spca_int i = 0; i < r; i++) R[i * (r + 1)] = 1;
    /* one row: z^2 - S^2 = 0, so that no angle is better than another */
    CHECK(t, SPCA(planar_sweeps)(1, r, 1, 9, 0, NULL, NULL, Y, R, &n_iter) == SPCA_OK);
    CHECK(t, n_iter == 1 && memcmp(X, Y, (size_t)r * sizeof *X) == 0);
    /* two rows of length one: as they are, or the second on an axis, the sum is the same */
    real pair[] = {1, cos(X[0]), 0, sin(X[0])};
    real same[] = {pair[0], pair[1], pair[2], pair[3]};
    double turned[] = {1, 0, 0, 1};
    n_iter = 0;
    CHECK(t, SPCA(l1_sweeps)(2, 2, 9, 0, NULL, NULL, pair, SCRATCH(t, 6, double),
                             SCRATCH(t, 6, spca_int), turned, &n_iter) == SPCA_OK);
    CHECK(t, n_iter == 1 && memcmp(pair, same, sizeof same) == 0);
    /* rows on the axes, turned a little: back to them */
    real *Z = WORK(t, p * r);
    real c = cos((real)1e-3), small = sin((real)1e-3);
    for (spca_int i = 0; i < p * r; i++) Z[i] = 0;
    for (spca_int i = 0; i < p; i++) {
        Z[i] = i % 2 ? -small : c;
        Z[i + p] = i % 2 ? c : small;
    }
    double rows[4] = {1, 0, 0, 1};
    CHECK(t, SPCA(l1_sweeps)(p, 2, 9, 0, NULL, NULL, Z, SCRATCH(t, 3 * p, double),
                             SCRATCH(t, 6, spca_int), rows, &n_iter) >= 0);
    for (spca_int i = 0; i < p; i++) CHECK(t, NEAR(Z[i], 1 - i % 2, 1) && NEAR(Z[i + p], i % 2, 1));
    n_iter = 0; /* with no tolerance */
    CHECK(t, SPCA(planar_sweeps)(p, r, 1, 1000, 0, NULL, NULL, Y, R, &n_iter) == SPCA_OK);
    SPCA(digest)(t, SPCA_OK, p * r, Y);
    double now = magnitudes(p * r, Y), before;
    spca_status status;
    do { /* sweeps may gain little each, but they gain */
        before = now;
        status = SPCA(l1_sweeps)(p, r, 1000, 0, NULL, NULL, Y, SCRATCH(t, 3 * p, double),
                                 SCRATCH(t, r + r * r, spca_int), R, &n_iter);
        now = magnitudes(p * r, Y);
    } while (status == SPCA_NOT_CONVERGED && now < before);
    CHECK(t, status == SPCA_OK);
    SPCA(digest)(t, SPCA_OK, p * r, Y);
    for (spca_int a = 0; a < r; a++) /* no row of a pair on an axis lowers the sum */
        for (spca_int b = 0; b < a; b++) no_lower_pair(t, p, Y + a * p, Y + b * p);
}

void SPCA(check_stopped_rotation)(trial_t *t)
{
    rotation_t which = (rotation_t)below(t, ROTATIONS);
    spca_int p = between(t, 1, 20), r = between(t, 1, p < 4 ? p : 4), n_iter;
    const real *X = SPCA(numbers)(t, SPCA(style)(t, 1), p * r);
    double *R = SCRATCH(t, r * r, double);
    for (spca_int at = 0;; at++) {
        stop_t stop = {0, at};
        spca_status status =
            rotate(t, which, p, r, 1, 5, &stop, SPCA(copy_of)(t, p * r, X), R, &n_iter);
        digest_int(t, status);
        if (stop.asked <= at) {
            CHECK(t, status >= 0);
            break;
        }
        CHECK(t, status == SPCA_STOPPED);
    }
}

void SPCA(check_tiles)(trial_t *t)
{
    enum { TILE = SPCA_TILE };
    spca_int r = between(t, 1, 9), padded = r + r % 2;
    const real *numbers = SPCA(numbers)(t, SPCA(style)(t, 1), TILE * r),
               *m = SPCA(numbers)(t, PLAIN, r * r);
    real *y = WORK(t, TILE * padded), *z = WORK(t, TILE * padded), *square = WORK(t, TILE * padded);
    real *norm = WORK(t, TILE);
    double *R = zeros(t, r * r), *S = zeros(t, r * r), *U = zeros(t, r * r), *G = zeros(t, r * r),
           fourth;
    double want = 0;
    for (spca_int i = 0; i < TILE * padded; i++) y[i] = i < TILE * r ? numbers[i] : 0;
    for (spca_int i = 0; i < r * r; i++) R[i] = (double)m[i];
    SPCA(tile_turn)(r, R, y, z);
    for (spca_int b = 0; b < padded; b++)
        for (spca_int i = 0; i < TILE; i++) {
            double sum = 0;
            for (spca_int a = 0; b < r && a < r; a++) sum += (double)y[i + a * TILE] * R[a + b * r];
            CHECK(t, NEAR(z[i + b * TILE], sum, 2 * r));
        }
    SPCA(tile_moments)(r, z, square, S, U);
    SPCA(tile_gram)(r, z, G);
    fourth = SPCA(tile_norms)(r, z, norm);
    SPCA(digest)(t, SPCA_OK, TILE, norm);
    digest(t, S, (size_t)(r * r) * sizeof *S);
    for (spca_int a = 0; a < r; a++)
        for (spca_int b = a; b < r; b++) {
            double s = 0, u = 0, g = 0, size = 0;
            for (spca_int i = 0; i < TILE; i++) {
                double x = (double)z[i + a * TILE], w = (double)z[i + b * TILE];
                s += x * x * w * w;
                u += (x * x - w * w) * x * w;
                g += x * w;
                size += (x * x + w * w) * (1 + x * x + w * w);
            }
            CHECK(t, NEAR(S[a * r + b], s, size) && (a == b || NEAR(U[a * r + b], u, size)));
            CHECK(t, NEAR(G[a * r + b], g, size));
            if (a == b) want += s;
        }
    CHECK(t, NEAR(fourth, want, want));
    for (spca_int i = 0; i < TILE; i++) {
        double sum = 0;
        for (spca_int a = 0; a < r; a++) sum += (double)z[i + a * TILE] * (double)z[i + a * TILE];
        CHECK(t, NEAR(norm[i], sum, sum));
    }
}
