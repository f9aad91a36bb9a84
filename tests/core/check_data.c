/* check_data.c - what is asked of arrays: statistics, quantized copies, deflation in place,
 * distances. */
#include "core.h"

/* X (n x p) as it lies, with NaN between the lines, and its entries. */
typedef struct {
    spca_int n, p, ld, size;
    int row_major;
    style_t style;
    const real *X;
} table_t;

static spca_int place(const table_t *d, spca_int i, spca_int j)
{
    return d->row_major ? i * d->ld + j : j * d->ld + i;
}

static double entry(const table_t *d, spca_int i, spca_int j)
{
    return (double)d->X[place(d, i, j)];
}

static table_t table_of(trial_t *t, int tame, int large)
{
    table_t d = {.n = between(t, 1, 40), .p = between(t, 1, 40), .row_major = chance(t, 50)};
    spca_int lines, width;
    int fill, repeated;
    real *X;
    if (large && !t->left && chance(t, 20)) d.n = 200 + below(t, 400);
    if (large && !t->left && chance(t, 20)) d.p = 200 + below(t, 200);
    d.style = SPCA(style)(t, tame);
    repeated = d.style == REPEATED;
    lines = d.row_major ? d.n : d.p;
    width = d.row_major ? d.p : d.n;
    d.ld = width + below(t, 5);
    d.size = (lines - 1) * d.ld + width;
    const real *values = SPCA(numbers)(t, d.style, d.n * d.p);
    X = input(t, d.size, sizeof *X, &fill);
    d.X = X;
    for (spca_int a = 0; fill && a < d.size; a++) X[a] = (real)NAN;
    for (spca_int i = 0; fill && i < d.n; i++)
        for (spca_int j = 0; j < d.p; j++)
            X[place(&d, i, j)] = values[repeated && j % 3 == 2 ? j : i * d.p + j];
    return d;
}

/* Whatever the length, and wherever the first entry that is not finite. */
static void check_all_finite(const trial_t *t, spca_int n, const real *x)
{
    spca_int first = 0;
    while (first < n && isfinite(x[first])) first++;
    CHECK(t, SPCA(all_finite)(first, x));
    CHECK(t, first == n || !SPCA(all_finite)(first + 1, x));
    CHECK(t, first == n || !SPCA(all_finite)(n, x));
}

/* Rows that count several times or not at all, of dense data or of compressed ones. */
static void check_weights(trial_t *t, spca_int n, spca_int p, const table_t *d, const operator_t *A)
{
    double *weight = SCRATCH(t, n, double), *out = SCRATCH(t, 12 * p, double), total = 0;
    spca_int first = below(t, 2 * n), last = first + below(t, n); /* these do not count */
    table_t with = {0};
    for (spca_int i = 0; i < n; i++)
        total += weight[i] = i < first || i > last ? (double)below(t, 4) : 0;
    if (!(total > 0)) total = weight[0] = 1;
    if (d) { /* what does not count may be large */
        real *X = SPCA(copy_of)(t, d->size, d->X);
        for (spca_int i = 0; i < n; i++)
            for (spca_int j = 0; !(weight[i] > 0) && j < p; j++) X[place(d, i, j)] += (real)0x1p30;
        with = *d;
        with.X = X;
        d = &with;
    }
    if (d)
        CHECK(t, SPCA(weighted_statistics)(n, p, d->X, d->ld, d->row_major, weight, NULL, NULL, out,
                                           out + p, out + 2 * p, out + 3 * p) == SPCA_OK);
    else
        CHECK(t, SPCA(weighted_compressed)(n, p, A->data, A->indptr, A->indices, A->wide,
                                           A->row_major, weight, NULL, NULL, out, out + p,
                                           out + 2 * p, out + 3 * p, out + 4 * p) == SPCA_OK);
    for (spca_int j = 0; j < p; j++) {
        double sum = 0, squares = 0, least = HUGE_VAL, most = -HUGE_VAL, top = 1;
        real *column = WORK(t, n);
        if (d)
            for (spca_int i = 0; i < n; i++) column[i] = (real)entry(d, i, j);
        else
            CHECK(t, A->columns(A, 1, &j, NULL, NULL, WORK(t, p), column) == SPCA_OK);
        for (spca_int i = 0; i < n; i++) {
            double x = (double)column[i];
            sum += weight[i] * x / total;
            if (!(weight[i] > 0)) continue;
            top = fmax(top, fabs(x));
            least = fmin(least, x);
            most = fmax(most, x);
        }
        for (spca_int i = 0; i < n; i++)
            squares += weight[i] * ((double)column[i] - sum) * ((double)column[i] - sum);
        CHECK(t, fabs(out[j] - sum) <= 1e-13 * top);
        CHECK(t, fabs(out[j + p] - squares) <= 1e-12 * total * top * top);
        CHECK(t, out[j + 2 * p] == least && out[j + 3 * p] == most);
        CHECK(t, least < most || (out[j] == least && !(out[j + p] > 0)));
    }
}

void SPCA(check_missing)(trial_t *t)
{
    table_t d = table_of(t, 0, 0);
    spca_int n = d.n, p = d.p, bad = -1;
    int center = chance(t, 50), scale = chance(t, 50), whole = 1;
    real *X = SPCA(copy_of)(t, d.size, d.X), *filled = WORK(t, n * p);
    double *mean = SCRATCH(t, p, double), *deviation = SCRATCH(t, p, double);
    stop_t stop = {0, chance(t, 10) ? below(t, 3) : -1};
    for (spca_int i = 0; i < n; i++)
        for (spca_int j = 0; j < p; j++)
            if (chance(t, 30)) X[place(&d, i, j)] = (real)NAN;
    d.X = X;
    spca_status status =
        SPCA(fill_missing)(n, p, X, d.ld, d.row_major, center, scale, stop_at, &stop,
                           SCRATCH(t, 16 * n, double), mean, deviation, filled, &bad);
    digest_int(t, status);
    CHECK(t, (status == SPCA_STOPPED) == (stop.at >= 0 && stop.asked > stop.at));
    if (status == SPCA_STOPPED) return;
    CHECK(t, (status == SPCA_OK) == (bad == p));
    for (spca_int j = 0; j < p && j <= bad; j++) {
        double count = 0, sum = 0, squares = 0, top = 0, first = 0;
        int same = 1, finite = 1;
        for (spca_int i = 0; i < n; i++) {
            double x = entry(&d, i, j);
            if (isnan(x)) continue;
            first = count > 0 ? first : x;
            count++, sum += x, same &= x == first, finite &= fabs(x) <= DBL_MAX;
            top = fmax(top, fabs(x));
        }
        whole = count > 0 && finite;
        CHECK(t, whole == (j < bad));
        if (!whole || d.style >= SPREAD) continue;
        double about = center ? sum / count : 0;
        for (spca_int i = 0; i < n; i++) {
            double x = entry(&d, i, j) - about;
            squares += isnan(x) || (center && same) ? 0 : x * x;
        }
        double by = scale && squares > 1e-20 * top * top ? sqrt(squares / fmax(count - 1, 1)) : 1;
        CHECK(t, fabs(mean[j] - about) <= 1e-13 * top);
        if (scale && squares > 1e-6 * top * top) CHECK(t, fabs(deviation[j] - by) <= 1e-9 * by);
        if (scale && squares <= 1e-6 * top * top && squares > 0) continue; /* rounding decides */
        for (spca_int i = 0; i < n; i++) {
            double x = (entry(&d, i, j) - about) / by;
            if (isnan(x) || (center && same)) x = 0;
            CHECK(t, NEAR(filled[j * n + i], x, 1e3 * (top / by + 1)));
        }
    }
    SPCA(digest)(t, status, n * bad, filled);
}

void SPCA(check_statistics)(trial_t *t)
{
    table_t d = table_of(t, 0, 1);
    spca_int n = d.n, p = d.p,
             ld = (n + SPCA_QUANTIZED_BLOCK - 1) / SPCA_QUANTIZED_BLOCK * SPCA_QUANTIZED_BLOCK;
    double *mean = SCRATCH(t, p, double), *square = SCRATCH(t, p, double),
           *low = SCRATCH(t, p, double);
    double *high = SCRATCH(t, p, double), *step = SCRATCH(t, p, double),
           *error = SCRATCH(t, p, double);
    float *size = SCRATCH(t, p, float);
    int8_t *quantized = SCRATCH(t, p * ld, int8_t);
    int center = chance(t, 60), quantizing = chance(t, 70) && d.style != ANY;
    real *means = WORK(t, p);
    double *variances = SCRATCH(t, p, double);
    check_all_finite(t, d.size, d.X);
    spca_status status;
    CHECK(t, SPCA(dense_statistics)(n, p, d.X, d.ld, d.row_major, center, ld, NULL, NULL, mean,
                                    square, low, high, quantizing ? quantized : NULL, step, error,
                                    size) == SPCA_OK);
    digest(t, mean, (size_t)p * sizeof *mean);
    for (int by = 0; by < 3; by++) { /* cut by columns: the same bits, but of what is NaN */
        spca_run run = by == 0 ? NULL : by == 1 ? backwards : spca_pool_run;
        double *again = SCRATCH(t, 6 * p, double);
        int8_t *copy = SCRATCH(t, p * ld, int8_t);
        float *sizes = SCRATCH(t, p, float);
        CHECK(t, SPCA(shared_statistics)(n, p, d.X, d.ld, d.row_major, center, ld, run, NULL, NULL,
                                         again, again + p, again + 2 * p, again + 3 * p,
                                         quantizing ? copy : NULL, again + 4 * p, again + 5 * p,
                                         sizes) == SPCA_OK);
        for (spca_int j = 0; j < p; j++) {
            if (!isfinite(mean[j]) || !isfinite(square[j])) continue;
            CHECK(t, mean[j] == again[j] && square[j] == again[j + p]);
            CHECK(t, low[j] == again[j + 2 * p] && high[j] == again[j + 3 * p]);
            if (!quantizing) continue;
            CHECK(t, memcmp(quantized + j * ld, copy + j * ld, (size_t)ld) == 0);
            CHECK(t, step[j] == again[j + 4 * p] && error[j] == again[j + 5 * p]);
            CHECK(t, size[j] == sizes[j]);
        }
    }
    if (d.style < SPREAD) check_weights(t, n, p, &d, NULL);
    status = SPCA(column_statistics)(n, p, d.X, d.ld, d.row_major, SCRATCH(t, 3 * p, double), means,
                                     variances);
    SPCA(digest)(t, status, p, means);
    CHECK(t, d.style >= SPREAD || status == SPCA_OK);
    for (spca_int j = 0; j < p; j++) {
        double sum = 0, squares = 0, least = HUGE_VAL, most = -HUGE_VAL, top = 0, miss = 0,
               norm = 0;
        int finite = 1;
        for (spca_int i = 0; i < n; i++) {
            double x = entry(&d, i, j);
            finite &= isfinite(x) != 0;
            least = fmin(least, x);
            most = fmax(most, x);
            top = fmax(top, fabs(x));
            sum += x / (double)n;
        }
        for (spca_int i = 0; i < n; i++)
            squares += (entry(&d, i, j) - sum) * (entry(&d, i, j) - sum);
        if (!finite) {
            CHECK(t, !isfinite(mean[j]) || !isfinite(square[j]));
            CHECK(t, status == SPCA_NONFINITE);
            continue;
        }
        CHECK(t, low[j] == least && high[j] == most && (least < most || !(square[j] > 0)));
        if (top < 1e150) {
            CHECK(t, fabs(mean[j] - sum) <= 1e-13 * top + DBL_MIN);
            CHECK(t, fabs(square[j] - squares) <= 1e-12 * (double)n * top * top + 1e-300);
        }
        if (status >= 0 && top < 1e150 && top > 1e-30) {
            CHECK(t, NEAR(means[j], sum, top));
            CHECK(t, fabs(variances[j] * (double)(n > 1 ? n - 1 : 1) - squares) <=
                         1e-12 * (double)n * top * top + 1e-300);
        }
        if (!quantizing || !isfinite(mean[j]) || top > 1e300) continue;
        for (spca_int i = 0; i < n; i++) {
            double q = quantized[j * ld + i], x = entry(&d, i, j) - (center ? mean[j] : 0);
            CHECK(t, fabs(q) <= 127);
            miss = hypot(miss, x - step[j] * q);
            norm += q * q;
        }
        for (spca_int i = n; i < ld; i++) CHECK(t, quantized[j * ld + i] == 0);
        CHECK(t, miss <= error[j] * (1 + 1e-9) + 1e-13 * top * (double)n &&
                     sqrt(norm) <= (double)size[j]);
    }
    if (!quantizing) return;
    /* by itself, over some columns, it writes the same */
    spca_int first = below(t, p), c = between(t, 1, p - first);
    int8_t *again = SCRATCH(t, c * ld, int8_t);
    double *steps = SCRATCH(t, c, double), *errors = SCRATCH(t, c, double);
    SPCA(quantize)(n, c, d.X + place(&d, 0, first), d.ld, d.row_major, center ? mean + first : NULL,
                   low + first, high + first, ld, again, steps, errors, SCRATCH(t, c, float));
    CHECK(t, memcmp(again, quantized + first * ld, (size_t)(c * ld)) == 0);
    CHECK(t, memcmp(steps, step + first, (size_t)c * sizeof *steps) == 0);
}

void SPCA(check_compressed_statistics)(trial_t *t)
{
    problem_t q;
    SPCA(problem_of)(t, &q, TAMED);
    operator_t *A = &q.A;
    if (q.covariance || (q.storage != CSR && q.storage != CSC)) return;
    spca_int n = A->n, p = A->p;
    double *mean = SCRATCH(t, p, double), *square = SCRATCH(t, p, double),
           *spread = SCRATCH(t, p, double);
    CHECK(t, SPCA(compressed_statistics)(n, p, A->data, A->indptr, A->indices, A->wide,
                                         A->row_major, A->run, NULL, NULL, mean, square, spread,
                                         SCRATCH(t, p, double), SCRATCH(t, p, double)) == SPCA_OK);
    digest(t, mean, (size_t)p * sizeof *mean);
    A->mean = A->weight = A->row_weight = NULL;
    A->range = 1;
    for (spca_int j = 0; j < p; j++) {
        real *column = WORK(t, n);
        double sum = 0, squares = 0;
        int constant = 1;
        CHECK(t, A->columns(A, 1, &j, NULL, NULL, WORK(t, p), column) == SPCA_OK);
        for (spca_int i = 0; i < n; i++) {
            sum += (double)column[i] / (double)n;
            constant &= column[i] == column[0];
        }
        for (spca_int i = 0; i < n; i++)
            squares += ((double)column[i] - sum) * ((double)column[i] - sum);
        CHECK(t, fabs(mean[j] - sum) <= 1e-13 && fabs(square[j] - squares) <= 1e-12 * (double)n);
        CHECK(t, (spread[j] == 0) == constant);
    }
    check_weights(t, n, p, NULL, A);
}

void SPCA(check_symmetry)(trial_t *t)
{
    spca_int p = between(t, 1, chance(t, 20) ? 140 : 30), ld = p + below(t, 3);
    style_t style = SPCA(style)(t, 0);
    const real *A = SPCA(numbers)(t, style, (p - 1) * ld + p);
    double largest, asymmetry, excess, most = 0, apart = 0, over = 0;
    int finite = 1;
    CHECK(t, SPCA(symmetry)(p, A, ld, NULL, NULL, &largest, &asymmetry, &excess) == SPCA_OK);
    for (spca_int i = 0; i < p; i++)
        for (spca_int j = 0; j < p; j++) {
            double a = (double)A[i * ld + j], b = (double)A[j * ld + i], x = (double)A[i * ld + i];
            double size =
                fmax(fabs(a), fabs(b)) - sqrt(fmax(x, 0)) * sqrt(fmax((double)A[j * ld + j], 0));
            finite &= isfinite(a) != 0;
            most = fmax(most, fabs(a));
            apart = fmax(apart, fabs(a - b));
            over = fmax(over, size);
        }
    CHECK(t, finite ? largest == most && asymmetry == apart && excess == over : isnan(largest));
    digest(t, &asymmetry, sizeof asymmetry);
    /* the same of some of these entries, as compressed storage */
    real *B = WORK(t, p * p), *data = WORK(t, p * p);
    int32_t *indptr = SCRATCH(t, p + 1, int32_t), *indices = SCRATCH(t, p * p, int32_t);
    int density = (int)below(t, 101);
    for (spca_int i = 0, q = indptr[0] = 0; i < p; indptr[++i] = (int32_t)q)
        for (spca_int j = 0; j < p; j++) {
            B[i * p + j] = chance(t, density) ? A[i * ld + j] : 0;
            if (B[i * p + j] == 0) continue;
            data[q] = B[i * p + j];
            indices[q++] = (int32_t)j;
        }
    CHECK(t, SPCA(symmetry)(p, B, p, NULL, NULL, &most, &apart, &over) == SPCA_OK);
    CHECK(t, SPCA(compressed_symmetry)(p, data, indptr, indices, 0, NULL, NULL,
                                       SCRATCH(t, p, spca_int), SCRATCH(t, p, double), &largest,
                                       &asymmetry, &excess) == SPCA_OK);
    CHECK(t, isnan(most) ? isnan(largest) : largest == most);
    CHECK(t, isnan(most) || (asymmetry == apart && excess == over));
}

/* A unit vector: what is deflated by. */
static vector_t unit_vector(trial_t *t, spca_int p)
{
    vector_t x = SPCA(sparse)(t, PLAIN, p, between(t, 1, p), 0);
    real *value = SPCA(copy_of)(t, x.nnz, x.value), norm = nrm2(x.nnz, value);
    for (spca_int a = 0; a < x.nnz; a++) value[a] /= norm;
    x.value = value;
    return x;
}

void SPCA(check_deflation)(trial_t *t)
{
    spca_int p = between(t, 1, 30), ld = p + below(t, 3), room = (p - 1) * ld + p;
    style_t style = SPCA(style)(t, 0);
    const real *values = SPCA(numbers)(t, style, room);
    spca_deflation which = (spca_deflation)between(t, SPCA_HOTELLING, SPCA_SCHUR);
    real *A = SPCA(copy_of)(t, room, values), *before;
    vector_t x = unit_vector(t, p);
    double *w = zeros(t, p), *u = zeros(t, p), variance = 0, size = 1e-300, least;
    spca_status status;
    for (spca_int a = 0; a < x.nnz; a++) u[x.index[a]] = (double)x.value[a];
    for (spca_int i = 0; i < p; i++)
        for (spca_int j = 0; j < i; j++) A[i * ld + j] = A[j * ld + i];
    before = SPCA(copy_of)(t, room, A);
    for (spca_int i = 0; i < p; i++) {
        for (spca_int j = 0; j < p; j++) {
            w[i] += (double)A[i * ld + j] * u[j];
            size = fmax(size, fabs((double)A[i * ld + j]));
        }
        variance += w[i] * u[i];
    }
    status = which == SPCA_HOTELLING    ? SPCA(deflate_hotelling)(ld, x, A)
             : which == SPCA_PROJECTION ? SPCA(deflate_projection)(p, ld, x, A, WORK(t, 2 * p))
                                        : SPCA(deflate_schur)(p, ld, x, A, WORK(t, p));
    SPCA(digest)(t, status, room, A);
    CHECK(t, status == SPCA_OK || (status == SPCA_NONFINITE && style >= SPREAD));
    if (status < 0) CHECK(t, memcmp(A, before, (size_t)room * sizeof *A) == 0);
    least = fabs(variance) / size;
    if (style >= SPREAD || (which == SPCA_SCHUR && least < 1e-2)) return;
    for (spca_int i = 0; i < p; i++)
        for (spca_int j = 0; j < p; j++) {
            double want = (double)before[i * ld + j], scale = size * (double)p;
            if (which == SPCA_HOTELLING)
                want -= variance * u[i] * u[j];
            else if (which == SPCA_PROJECTION)
                want -= u[i] * w[j] + w[i] * u[j] - variance * u[i] * u[j];
            else {
                want -= w[i] / variance * w[j];
                scale *= (double)p / least / least;
            }
            CHECK(t, A[i * ld + j] == A[j * ld + i] && NEAR(A[i * ld + j], want, scale));
        }
}

/* A direction that has no variance but for rounding is left where it is, x'u = 0 and A = uu'; one
 * that has some leaves nothing, in any unit. */
void SPCA(check_no_variance)(trial_t *t)
{
    spca_int p = between(t, 2, 12), index[] = {0, 1};
    const real *u = SPCA(numbers)(t, PLAIN, p);
    real unit = ldexp((real)1, (int)between(t, -60, 20)), *A = WORK(t, p * p), x[2];
    double norm = hypot((double)u[0], (double)u[1]);
    if (norm < 0.1) return;
    x[0] = (real)((double)u[1] / norm);
    x[1] = (real)(-(double)u[0] / norm);
    for (spca_int a = 0; a < p * p; a++) A[a] = u[a % p] * u[a / p] * unit;
    real *before = SPCA(copy_of)(t, p * p, A);
    CHECK(t, SPCA(deflate_schur)(p, p, (vector_t){2, index, x}, A, WORK(t, p)) == SPCA_OK);
    CHECK(t, memcmp(A, before, (size_t)(p * p) * sizeof *A) == 0);
    x[0] = (real)((double)u[0] / norm);
    x[1] = (real)((double)u[1] / norm);
    CHECK(t, SPCA(deflate_schur)(p, p, (vector_t){2, index, x}, A, WORK(t, p)) == SPCA_OK);
    for (spca_int a = 0; a < p * p; a++) CHECK(t, NEAR(A[a] / unit, 0, 1 / (norm * norm)));
}

void SPCA(check_data_deflation)(trial_t *t)
{
    table_t d = table_of(t, 0, 0);
    spca_int n = d.n, p = d.p;
    vector_t x = unit_vector(t, p);
    real *X = SPCA(copy_of)(t, d.size, d.X);
    const real *mean = chance(t, 50) ? SPCA(numbers)(t, PLAIN, p) : NULL;
    int schur = chance(t, 50);
    double *u = zeros(t, n), *product = zeros(t, p), norm = 0, size = 1;
    spca_status status;
    if (!schur) mean = NULL;
    for (spca_int i = 0; i < n; i++) {
        for (spca_int a = 0; a < x.nnz; a++) {
            double z = entry(&d, i, x.index[a]) - (mean ? (double)mean[x.index[a]] : 0);
            u[i] += z * (double)x.value[a];
            size = fmax(size, fabs(z));
        }
        norm = hypot(norm, u[i]);
    }
    status = schur ? SPCA(deflate_data_schur)(n, p, d.ld, d.row_major, mean, x, X, WORK(t, n + p))
                   : SPCA(deflate_data_projection)(n, d.ld, d.row_major, x, X, WORK(t, n));
    digest_int(t, status);
    CHECK(t, status == SPCA_OK || (status == SPCA_NONFINITE && d.style >= SPREAD));
    if (status < 0) CHECK(t, memcmp(X, d.X, (size_t)d.size * sizeof *X) == 0);
    if (d.style >= SPREAD || (schur && norm < 1e-2 * size)) return;
    for (spca_int j = 0; schur && j < p; j++)
        for (spca_int i = 0; i < n; i++) product[j] += u[i] / norm * entry(&d, i, j);
    for (spca_int j = 0; j < p; j++) {
        double along = 0;
        for (spca_int a = 0; a < x.nnz; a++)
            if (x.index[a] == j) along = (double)x.value[a];
        for (spca_int i = 0; i < n; i++) {
            double want = entry(&d, i, j) - (schur ? u[i] / norm * product[j] : u[i] * along);
            CHECK(t, NEAR(X[place(&d, i, j)], want,
                          size * (double)(n + p) * size / (schur ? norm : 1)));
        }
    }
}

void SPCA(check_matrix_product)(trial_t *t)
{
    static const spca_run runs[] = {NULL, backwards, spca_pool_run};
    int across = chance(t, 50), add = chance(t, 50), symmetric = chance(t, 50);
    spca_int m = between(t, 1, 30), n = symmetric ? m : between(t, 1, 30);
    spca_int depth = between(t, 1, 40);
    spca_int lda = between(t, 0, 3) + (across ? m : depth), ldb = between(t, 0, 3);
    spca_int ldc = n + between(t, 0, 3), rows = symmetric ? m : m + n;
    spca_int room = chance(t, 50) ? SPCA_TURNED * (rows + SPCA_SPARE) : between(t, 0, 40 * rows);
    const real *A = SPCA(numbers)(t, PLAIN, lda * (across ? depth : m)), *B = A;
    const real *of_C = SPCA(numbers)(t, PLAIN, m * ldc);
    real *first = NULL;
    ldb = symmetric ? lda : ldb + (across ? n : depth);
    if (!symmetric) B = SPCA(numbers)(t, PLAIN, ldb * (across ? depth : n));
    for (int by = 0; by < 3; by++) {
        real *C = WORK(t, m * ldc);
        memcpy(C, of_C, (size_t)(m * ldc) * sizeof *C);
        for (spca_int i = 0; symmetric && i < m; i++)
            for (spca_int j = 0; j < i; j++) C[i * ldc + j] = C[j * ldc + i];
        CHECK(t, SPCA(matrix_product)(across, m, n, depth, A, lda, B, ldb, 2, add, runs[by], NULL,
                                      NULL, room, WORK(t, room), C, ldc) == SPCA_OK);
        for (spca_int i = 0; i < m; i++)
            for (spca_int j = 0; j < n; j++) {
                spca_int c = symmetric && j < i ? j * ldc + i : i * ldc + j;
                double sum = add ? 2 * (double)of_C[c] : 0;
                for (spca_int l = 0; l < depth; l++)
                    sum += 2 * (double)A[across ? l * lda + i : i * lda + l] *
                           (double)B[across ? l * ldb + j : j * ldb + l];
                CHECK(t, NEAR(C[i * ldc + j], sum, 4 * depth));
                CHECK(t, !symmetric || C[i * ldc + j] == C[j * ldc + i]);
            }
        for (spca_int i = 0; i < m; i++) /* what lies between the rows */
            CHECK(t,
                  memcmp(C + i * ldc + n, of_C + i * ldc + n, (size_t)(ldc - n) * sizeof *C) == 0);
        if (by == 0) first = C;
        CHECK(t, memcmp(C, first, (size_t)(m * ldc) * sizeof *C) == 0);
    }
    SPCA(digest)(t, SPCA_OK, m * ldc, first);
    for (spca_int asked = 0;; asked++) {
        stop_t stop = {0, asked};
        spca_status status = SPCA(matrix_product)(across, m, n, depth, A, lda, B, ldb, 1, 0, NULL,
                                                  stop_at, &stop, room, WORK(t, room), first, ldc);
        CHECK(t, status == (stop.asked > asked ? SPCA_STOPPED : SPCA_OK));
        if (status == SPCA_OK) break;
    }
}

/* Scores by three ways of doing the parts, against sums in double; some rows alone have the same
 * bits. */
void SPCA(check_scores)(trial_t *t)
{
    static const spca_run runs[] = {NULL, backwards, spca_pool_run};
    int row_major = chance(t, 50), listed = chance(t, 70), tall = chance(t, 3);
    spca_int p = between(t, 1, tall ? 3 : 150), k = listed ? between(t, 1, p) : p;
    spca_int n = tall ? between(t, 2300, 2500) : between(t, 1, 210), r = between(t, 1, 20);
    spca_int ld = (row_major ? p : n) + between(t, 0, 3), step = row_major ? ld : 1;
    const real *X = SPCA(numbers)(t, PLAIN, ld * (row_major ? n : p));
    const real *mean = SPCA(numbers)(t, PLAIN, k), *V = SPCA(numbers)(t, PLAIN, k * r);
    const spca_int *index = listed ? SPCA(subset)(t, p, k) : NULL;
    spca_int from = between(t, 0, n - 1), rows = between(t, 1, n - from);
    real *first = WORK(t, n * r), *out = WORK(t, n * r), *work = WORK(t, k * (r + 15));
    CHECK(t, SPCA(scores)(n, k, r, X, ld, row_major, index, mean, V, NULL, NULL, NULL, work,
                          first) == SPCA_OK);
    for (spca_int i = 0; i < n; i++)
        for (spca_int c = 0; c < r; c++) {
            double sum = 0;
            for (spca_int a = 0; a < k; a++) {
                spca_int j = index ? index[a] : a;
                double x = (double)(row_major ? X[i * ld + j] : X[j * ld + i]);
                sum += (x - (double)mean[a]) * (double)V[a * r + c];
            }
            CHECK(t, NEAR(first[i * r + c], sum, 8 * k));
        }
    for (int by = 1; by < 3; by++) {
        CHECK(t, SPCA(scores)(n, k, r, X, ld, row_major, index, mean, V, runs[by], NULL, NULL, work,
                              out) == SPCA_OK);
        CHECK(t, memcmp(out, first, (size_t)(n * r) * sizeof *out) == 0);
    }
    CHECK(t, SPCA(scores)(rows, k, r, X + from * step, ld, row_major, index, mean, V, NULL, NULL,
                          NULL, work, out) == SPCA_OK);
    CHECK(t, memcmp(out, first + from * r, (size_t)(rows * r) * sizeof *out) == 0);
    SPCA(digest)(t, SPCA_OK, n * r, first);
    for (spca_int asked = 0;; asked++) {
        stop_t stop = {0, asked};
        spca_status status = SPCA(scores)(n, k, r, X, ld, row_major, index, mean, V, NULL, stop_at,
                                          &stop, work, out);
        CHECK(t, status == (stop.asked > asked ? SPCA_STOPPED : SPCA_OK));
        if (status == SPCA_OK) break;
    }
}

void SPCA(check_distances)(trial_t *t)
{
    spca_int n = between(t, 1, 20), b = between(t, 1, 70), pairs = n * (n - 1) / 2, at = 0;
    style_t style = SPCA(style)(t, 1);
    const real *T = SPCA(numbers)(t, style, n * b), *w = SPCA(numbers)(t, PLAIN, b);
    const real *u = SPCA(numbers)(t, PLAIN, pairs);
    double *D = zeros(t, pairs), *y = SCRATCH(t, b, double), *exact = SCRATCH(t, pairs, double);
    int squared = chance(t, 50);
    spca_int room = (b + SPCA_LANES - 1) / SPCA_LANES * SPCA_LANES;
    spca_run run = b % 3 == 0 ? NULL : b % 3 == 1 ? backwards : spca_pool_run;
    for (spca_int a = 0; a < pairs; a++) D[a] = exact[a] = (double)a;
    double *sums = zeros(t, b);
    CHECK(t, SPCA(add_distances)(n, b, T, w, squared, run, NULL, NULL, D) == SPCA_OK);
    CHECK(t, SPCA(absolute_products)(n, b, T, u, run, NULL, NULL, WORK(t, n * room), y) == SPCA_OK);
    for (spca_int i = 0; i < n; i++)
        for (spca_int l = i + 1; l < n; l++, at++)
            for (spca_int j = 0; j < b; j++) {
                double gap = fabs((double)T[i + j * n] - (double)T[l + j * n]);
                exact[at] += (double)w[j] * (squared ? gap * gap : gap);
                sums[j] += (double)u[at] * gap;
            }
    for (spca_int a = 0; a < pairs; a++) CHECK(t, NEAR(D[a], exact[a], 100 + b));
    for (spca_int j = 0; j < b; j++) CHECK(t, NEAR(y[j], sums[j], 1 + pairs));
    digest(t, y, (size_t)b * sizeof *y);
    for (spca_int asked = 0;; asked++) {
        stop_t stop = {0, asked};
        spca_status status = SPCA(add_distances)(n, b, T, w, squared, NULL, stop_at, &stop, D);
        if (stop.asked > asked) {
            CHECK(t, status == SPCA_STOPPED);
            continue;
        }
        stop = (stop_t){0, 0};
        CHECK(t, SPCA(absolute_products)(n, b, T, u, NULL, stop_at, &stop, WORK(t, n * room), y) ==
                     SPCA_STOPPED);
        break;
    }
}
