/* makers.c - numbers of every kind, and operators of every kind with what they stand for. */
#include "core.h"

style_t SPCA(style)(trial_t *t, int tame)
{
    return (style_t)below(t, tame ? SPREAD : STYLES);
}

const real *SPCA(numbers)(trial_t *t, style_t style, spca_int count)
{
    uint64_t state = (uint64_t)below(t, 1 << 20);
    int fill;
    real *x = input(t, count, sizeof *x, &fill);
    for (spca_int i = 0; fill && i < count; i++) {
        uint64_t bits = scramble(&state);
        if (t->left) bits = (uint64_t)below(t, 256) << 56 | (uint64_t)below(t, 256);
        x[i] = (real)number(style, bits, SINGLE);
    }
    return x;
}

real *SPCA(copy_of)(trial_t *t, spca_int count, const real *x)
{
    real *y = WORK(t, count);
    for (spca_int i = 0; i < count; i++) y[i] = x[i];
    return y;
}

int SPCA(are_finite)(spca_int count, const real *x)
{
    for (spca_int i = 0; i < count; i++)
        if (!isfinite(x[i])) return 0;
    return 1;
}

void SPCA(digest)(trial_t *t, spca_status status, spca_int count, const real *x)
{
    const real nan = (real)NAN; /* WebAssembly leaves the sign of another open */
    digest_int(t, status);
    for (spca_int i = 0; status >= 0 && i < count; i++)
        digest(t, x[i] == x[i] ? x + i : &nan, sizeof *x);
}

const spca_int *SPCA(subset)(trial_t *t, spca_int n, spca_int count)
{
    int fill;
    uint64_t state = (uint64_t)below(t, 1 << 20);
    spca_int *index = input(t, count, sizeof *index, &fill), found = 0;
    for (spca_int i = 0; fill && i < n; i++) /* Knuth's algorithm S */
        if ((spca_int)(scramble(&state) % (uint64_t)(n - i)) < count - found) index[found++] = i;
    return index;
}

vector_t SPCA(sparse)(trial_t *t, style_t style, spca_int p, spca_int nnz, int dense)
{
    const spca_int *index = dense ? NULL : SPCA(subset)(t, p, nnz);
    vector_t v = {dense ? p : nnz, index, SPCA(numbers)(t, style, dense ? p : nnz)};
    for (spca_int a = 0; a < v.nnz; a++)
        if (v.value[a] != 0) return v;
    real *value = SPCA(copy_of)(t, v.nnz, v.value); /* bytes may make the zero vector */
    value[0] = 1;
    v.value = value;
    return v;
}

/* ---- operators known by their products --------------------------------------------------------
 */

/* F of the callback: a copy in real, m x p by columns, and when to fail. */
typedef struct {
    const real *F;
    stop_t *fails;
} owner_t;

static spca_status called_forward(const operator_t *A, vector_t v, spca_stop stop, void *ctx,
                                  real *work, real *f)
{
    const owner_t *o = A->owner;
    if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
    if (stop_at(o->fails)) return SPCA_PRODUCT_FAILED;
    for (spca_int j = 0; j < A->p; j++) work[j] = 0; /* all of it may be used */
    for (spca_int i = 0; i < A->m; i++) f[i] = 0;
    for (spca_int a = 0; a < v.nnz; a++) {
        const real *column = o->F + (v.index ? v.index[a] : a) * A->m;
        for (spca_int i = 0; i < A->m; i++) f[i] += column[i] * v.value[a];
    }
    return SPCA_OK;
}

static spca_status called_backward(const operator_t *A, const real *g, real total, spca_int count,
                                   const spca_int *list, spca_stop stop, void *ctx, real *y)
{
    (void)total;
    const owner_t *o = A->owner;
    if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
    if (stop_at(o->fails)) return SPCA_PRODUCT_FAILED;
    for (spca_int a = 0; a < count; a++) {
        const real *column = o->F + (list ? list[a] : a) * A->m;
        y[a] = 0;
        for (spca_int i = 0; i < A->m; i++) y[a] += column[i] * g[i];
    }
    return SPCA_OK;
}

/* ---- problems ----------------------------------------------------------------------------------
 */

/* X (m x p by rows, in double for convenience) to be stored: the numbers as they are in real. */
static real *entries(trial_t *t, style_t style, spca_int m, spca_int p, int symmetric)
{
    const real *x = SPCA(numbers)(t, style, m * p);
    real *X = WORK(t, m * p);
    for (spca_int i = 0; i < m; i++)
        for (spca_int j = 0; j < p; j++)
            X[i * p + j] = symmetric && j < i ? x[j * p + i] : x[i * p + j];
    if (style != REPEATED) return X;
    for (spca_int j = 0; j < p; j++) /* columns alike; of data some constant */
        for (spca_int i = 0; i < m; i++)
            if (symmetric)
                X[i * p + j] = x[i % 2 + 2 * (j % 2)] + x[j % 2 + 2 * (i % 2)];
            else
                X[i * p + j] = j % 3 == 2 ? x[j] : x[i * p + j % 3];
    return X;
}

static void store_dense(trial_t *t, problem_t *q, const real *X)
{
    operator_t *A = &q->A;
    spca_int lines = A->row_major ? A->m : A->p, width = A->row_major ? A->p : A->m;
    int fill;
    real *data;
    A->ld = width + below(t, 4);
    data = input(t, (lines - 1) * A->ld + width, sizeof *data, &fill);
    A->data = data;
    SPCA(use_dense)(A);
    for (spca_int l = 0; fill && l < lines; l++)
        for (spca_int a = 0; a < (l + 1 < lines ? A->ld : width); a++) /* NaN between the lines */
            data[l * A->ld + a] = a >= width     ? (real)NAN
                                  : A->row_major ? X[l * A->p + a]
                                                 : X[a * A->p + l];
}

static void store_compressed(trial_t *t, problem_t *q, const real *X)
{
    operator_t *A = &q->A;
    spca_int lines = A->row_major ? A->m : A->p, width = A->row_major ? A->p : A->m, nnz = 0,
             at = 0;
    int fill, zeros_too = chance(t, 20);
    size_t size;
    real *data;
    char *indptr, *indices;
    A->wide = chance(t, 50);
    size = A->wide ? sizeof(int64_t) : sizeof(int32_t);
    for (spca_int a = 0; a < A->m * A->p; a++) nnz += zeros_too || X[a] != 0;
    data = input(t, nnz, sizeof *data, &fill);
    indptr = input(t, lines + 1, size, &fill);
    indices = input(t, nnz, size, &fill);
    A->data = data;
    A->indptr = indptr;
    A->indices = indices;
    SPCA(use_compressed)(A);
    for (spca_int l = 0; fill && l <= lines; l++) {
        int32_t narrow = (int32_t)at;
        int64_t wide = at;
        memcpy(indptr + (size_t)l * size, A->wide ? (void *)&wide : &narrow, size);
        for (spca_int a = 0; l < lines && a < width; a++) {
            real x = A->row_major ? X[l * A->p + a] : X[a * A->p + l];
            if (!zeros_too && x == 0) continue;
            narrow = (int32_t)a;
            wide = a;
            memcpy(indices + (size_t)at * size, A->wide ? (void *)&wide : &narrow, size);
            data[at++] = x;
        }
    }
}

static void store_callback(trial_t *t, problem_t *q)
{
    operator_t *A = &q->A;
    int fill;
    real *F = input(t, A->m * A->p, sizeof *F, &fill);
    owner_t *o = scratch(t, 1, sizeof *o);
    for (spca_int a = 0; fill && a < A->m * A->p; a++) F[a] = (real)q->F[a];
    *o = (owner_t){F, &q->fails};
    A->owner = o;
    A->forward = called_forward;
    A->backward = called_backward;
    A->columns = SPCA(columns_by_products);
}

static const real *positive(trial_t *t, spca_int n)
{
    uint64_t state = (uint64_t)below(t, 256);
    int fill;
    real *x = input(t, n, sizeof *x, &fill);
    for (spca_int i = 0; fill && i < n; i++)
        x[i] = (real)(1.5 + number(PLAIN, scramble(&state), SINGLE));
    return x;
}

static const real *means(trial_t *t, spca_int n, spca_int p, const real *X)
{
    int fill;
    real *mean = input(t, p, sizeof *mean, &fill);
    for (spca_int j = 0; fill && j < p; j++) {
        double sum = 0;
        for (spca_int i = 0; i < n; i++) sum += (double)X[i * p + j] / (double)n;
        mean[j] = (real)sum;
    }
    return mean;
}

/* dense and its size from F. */
static void multiply(trial_t *t, problem_t *q)
{
    spca_int p = q->A.p, m = q->A.m;
    double factor = (double)q->A.factor, shift = (double)q->A.shift;
    q->dense = zeros(t, p * p);
    q->size = fabs(shift);
    for (spca_int b = 0; b < p; b++)
        for (spca_int a = 0; a < p; a++) {
            double sum = 0, size = 0;
            for (spca_int i = 0; i < m && !q->covariance; i++) {
                double x = q->F[i + a * m] * q->F[i + b * m] * factor;
                sum += x;
                size += fabs(x);
            }
            if (q->covariance) sum = q->F[a + b * m], size = fabs(sum);
            q->dense[a + b * p] = sum;
            q->size = fmax(q->size, size);
        }
}

void SPCA(problem_of)(trial_t *t, problem_t *q, int fixed)
{
    static const spca_int odd[] = {1, 2, 3, 4, 5, 7, 8, 9, 15, 16, 17, 31, 32, 33, 40, 65};
    operator_t *A = &q->A;
    spca_int most = t->left || (fixed & SMALL_ONE) ? 7 : chance(t, 15) ? 16 : 11;
    real *X;
    double range;
    memset(q, 0, sizeof *q);
    q->fails.at = q->stops.at = -1;
    q->style = SPCA(style)(t, fixed & TAMED);
    if ((fixed & SCREENED) && (q->style == ANY || (q->style == LARGE && !SINGLE)))
        q->style = SPREAD;
    q->storage = (storage_t)below(t, fixed & SCREENED ? CSR : STORAGES);
    if (fixed & THIN) {
        q->style = SPARSE;
        q->storage = chance(t, 50) ? CSR : CSC;
        most = t->left ? 7 : 16;
    }
    int full = (fixed & THIN) && !t->left && chance(t, 30); /* some variables, not most rows */
    q->covariance = A->symmetric_form = !(fixed & (SCREENED | THIN)) && chance(t, 30);
    A->p = fixed & SCREENED ? between(t, 1,
                                      t->left         ? 48
                                      : chance(t, 20) ? 400
                                                      : 90)
                            : odd[below(t, most)];
    A->n = A->m = q->covariance ? A->p : odd[below(t, most)];
    if (full) A->p = chance(t, 30) ? 260 : 100, A->n = A->m = between(t, 20, 90);
    A->row_major = q->storage == ROWS || q->storage == CSR;
    /* with a screen, up to norms whose squares overflow in float */
    A->range =
        q->storage == CALLBACK ? 1 : ldexp((real)1, (int)between(t, -2, fixed & SCREENED ? 11 : 2));
    if (q->storage != CALLBACK && (q->style == LARGE || q->style == SMALL) && chance(t, 80)) {
        int exponent = q->style == LARGE ? SINGLE ? FLT_MAX_EXP : DBL_MAX_EXP
                       : SINGLE          ? FLT_MIN_EXP - 10
                                         : DBL_MIN_EXP - 10;
        A->range = ldexp((real)1, -exponent / 2);
    }
    A->run = (A->n + A->p) % 2 ? backwards : NULL;
    A->factor = q->covariance ? 1 : 1 / (real)(A->n > 1 ? A->n - 1 : 1);
    X = entries(t, q->style, A->m, A->p, q->covariance);
    for (spca_int a = 0; (fixed & THIN) && a < A->m * A->p; a++)
        if (full)
            X[a] = chance(t, a % A->p % 2 ? 3 : 30) ? (real)between(t, 1, 3) : 0;
        else if ((a / A->p + a % A->p) % 3)
            X[a] = 0;
    if (q->storage != CALLBACK && !q->covariance && chance(t, 70))
        A->mean = fixed & SCREENED ? means(t, A->n, A->p, X)
                                   : SPCA(numbers)(t, q->style == ANY ? PLAIN : q->style, A->p);
    if (q->storage != CALLBACK && chance(t, 50)) A->weight = positive(t, A->p);
    if (q->storage != CALLBACK && !q->covariance && !(fixed & SCREENED) && chance(t, 30)) {
        A->row_weight = positive(t, A->n);
        A->centered = chance(t, 50);
    }
    range = (double)A->range * (double)A->range;
    q->F = zeros(t, A->m * A->p);
    for (spca_int j = 0; j < A->p; j++)
        for (spca_int i = 0; i < A->m; i++) {
            double x = (double)X[i * A->p + j], weight = A->weight ? (double)A->weight[j] : 1;
            if (A->row_weight && !A->centered) x *= (double)A->row_weight[i];
            if (A->mean) x -= (double)A->mean[j];
            if (A->row_weight && A->centered) x *= (double)A->row_weight[i];
            if (A->weight && q->covariance) weight *= (double)A->weight[i];
            q->F[i + j * A->m] = x * weight * range;
        }
    if (q->storage == ROWS || q->storage == COLUMNS)
        store_dense(t, q, X);
    else if (q->storage == CALLBACK)
        store_callback(t, q);
    else
        store_compressed(t, q, X);
    multiply(t, q);
    q->exact = q->style < SPREAD;
    if (!(fixed & DEFLATED) || !chance(t, 60)) return;
    spca_deflation deflation = (spca_deflation)between(t, SPCA_HOTELLING, SPCA_SCHUR);
    int orthogonal = deflation == SPCA_PROJECTION && chance(t, 50);
    spca_int steps = between(t, 1, 3), first = 0;
    for (spca_int i = 0; i < steps && first < A->p; i++) {
        spca_int left = A->p - first, nnz = between(t, 1, left < 4 ? left : 4), *index;
        vector_t x = SPCA(sparse)(t, PLAIN, A->p, nnz, !orthogonal && chance(t, 15));
        if (orthogonal) { /* one after the other */
            index = SCRATCH(t, nnz, spca_int);
            for (spca_int a = 0; a < nnz; a++) index[a] = first++;
            x.index = index;
        }
        SPCA(deflate)(t, q, deflation, x);
    }
    if (orthogonal && A->t > 0 && chance(t, 50)) {
        double *QQ = zeros(t, A->p * A->p), size = q->size;
        if (chance(t, 50)) {
            A->quotient = 1; /* A v depends on v: compared elsewhere */
            q->exact = 0;
            return;
        }
        A->span_weight = (real)size / 2;
        A->shift = A->span_weight;
        for (spca_int i = 0; i < A->t; i++)
            for (spca_int a = 0; a < A->direction[i].nnz; a++)
                for (spca_int b = 0; b < A->direction[i].nnz; b++)
                    QQ[A->direction[i].index[a] + A->direction[i].index[b] * A->p] +=
                        (double)A->direction[i].value[a] * (double)A->direction[i].value[b];
        for (spca_int a = 0; a < A->p; a++) {
            q->dense[a + a * A->p] += (double)A->shift;
            for (spca_int b = 0; b < A->p; b++)
                q->dense[a + b * A->p] += (double)A->span_weight * QQ[a + b * A->p];
        }
        q->size += 2 * (double)A->shift;
    }
}

/* As deflation.py does it: x over its norm, its image, and the coefficient. */
void SPCA(deflate)(trial_t *t, problem_t *q, spca_deflation deflation, vector_t x)
{
    operator_t *A = &q->A;
    spca_int p = A->p, steps = A->t + 1;
    vector_t *directions = scratch(t, steps, sizeof *directions);
    const real **images = scratch(t, steps, sizeof *images);
    real *coefficients = WORK(t, steps), *value = SPCA(copy_of)(t, x.nnz, x.value), *g, *y,
         coefficient;
    double *w = zeros(t, p), *u = zeros(t, p), norm = 0, variance = 0;
    spca_status status;
    for (spca_int a = 0; a < x.nnz; a++) norm = hypot(norm, (double)value[a]);
    if (!(norm > 0)) return;
    for (spca_int a = 0; a < x.nnz; a++) {
        value[a] = (real)((double)value[a] / norm);
        u[x.index ? x.index[a] : a] = (double)value[a];
    }
    x.value = value;
    y = WORK(t, p);
    if (SPCA(apply)(A, x, NULL, NULL, WORK(t, A->m + A->t), y) < 0) return;
    for (spca_int j = 0; j < p; j++) {
        for (spca_int l = 0; l < p; l++) w[j] += q->dense[j + l * p] * u[l];
        variance += u[j] * w[j];
    }
    coefficient = sparse_dot(x, y);
    if (deflation != SPCA_HOTELLING && !(fabs(variance) > 1e-3 * q->size)) return;
    g = WORK(t, A->m);
    status = SPCA(forward)(A, x, NULL, NULL, WORK(t, p), g);
    if (status < 0) return;
    if (deflation != SPCA_HOTELLING) {
        real sign = A->symmetric_form ? copysign((real)1, coefficient) : 1;
        if (deflation == SPCA_SCHUR) {
            real size = A->symmetric_form ? sqrt(fabs(coefficient)) : nrm2(A->m, g);
            for (spca_int i = 0; i < A->m; i++) g[i] /= size;
        }
        coefficient = sign;
    } else
        g = NULL;
    for (spca_int i = 0; i < A->t; i++) {
        directions[i] = A->direction[i];
        images[i] = A->image[i];
        coefficients[i] = A->coefficient[i];
    }
    directions[A->t] = x;
    images[A->t] = g;
    coefficients[A->t] = coefficient;
    A->deflation = deflation;
    A->direction = directions;
    A->image = images;
    A->coefficient = coefficients;
    A->t = steps;
    for (spca_int b = 0; b < p; b++)
        for (spca_int a = 0; a < p; a++) {
            double *z = q->dense + a + b * p;
            if (deflation == SPCA_HOTELLING)
                *z -= variance * u[a] * u[b];
            else if (deflation == SPCA_PROJECTION)
                *z -= u[a] * w[b] + w[a] * u[b] - variance * u[a] * u[b];
            else
                *z -= w[a] / variance * w[b];
        }
    if (deflation == SPCA_SCHUR) /* which may enlarge the entries, and what rounding did to them */
        for (spca_int a = 0; a < p * p; a++) q->size = fmax(q->size, fabs(q->dense[a]));
    q->size *= 1 + (deflation == SPCA_SCHUR ? q->size / fabs(variance) : 1);
}

spca_int SPCA(query_work)(const operator_t *A)
{
    return 2 * A->p + A->m + A->t;
}

/* As _screening.py and _core.Screen do it; but where they scale Z near 1, its norms here may be
 * large enough for Z'f to overflow by them. */
spca_screen *SPCA(screen_of)(trial_t *t, problem_t *q, int quantized, int references)
{
    operator_t *A = &q->A;
    spca_screen *s = scratch(t, 1, sizeof *s);
    spca_column_cache *cache = scratch(t, 1, sizeof *cache);
    spca_int n = A->n, p = A->p,
             ld = (n + SPCA_QUANTIZED_BLOCK - 1) / SPCA_QUANTIZED_BLOCK * SPCA_QUANTIZED_BLOCK;
    spca_int capacity = A->row_major ? between(t, 1, p) : 0, room = capacity > 1 ? capacity : 1;
    int8_t *bytes = quantized ? SCRATCH(t, p * ld, int8_t) : NULL;
    double *mean = SCRATCH(t, p, double), *square = SCRATCH(t, p, double);
    double *low = SCRATCH(t, p, double), *high = SCRATCH(t, p, double);
    double *step = quantized ? SCRATCH(t, p, double) : NULL,
           *error = quantized ? SCRATCH(t, p, double) : NULL;
    float *size = quantized ? SCRATCH(t, p, float) : NULL, *norms = SCRATCH(t, p, float);
    float *slacks = SCRATCH(t, p, float), *steps = quantized ? SCRATCH(t, p, float) : NULL;
    double up = 1 + 0x1p-18, range = (double)A->range, largest = DBL_MIN, widest = 1,
           longest = DBL_MIN;
    double rounding = 4 * ((double)n / 4 + STRANDS + 12) * EPSILON / 2;
    double smallest = SINGLE ? 0x1p-40 : 0x1p-100, tiny = SINGLE ? 0x1p-149 : 0x1p-1074;
    double underflow = 2 * (double)(n + 2) * (tiny / smallest);
    CHECK(t, SPCA(dense_statistics)(n, p, A->data, A->ld, A->row_major, A->mean != NULL, ld, NULL,
                                    NULL, mean, square, low, high, bytes, step, error,
                                    size) == SPCA_OK);
    memset(s, 0, sizeof *s);
    memset(cache, 0, sizeof *cache);
    for (spca_int j = 0; j < p; j++) {
        double factor = range * range * (A->weight ? (double)A->weight[j] : 1), x2 = 0, z2 = 0,
               slack;
        double norm;
        for (spca_int i = 0; i < n; i++) {
            double x = (double)A->data[A->row_major ? i * A->ld + j : j * A->ld + i];
            x2 += x * x;
            z2 += q->F[i + j * n] * q->F[i + j * n];
        }
        slack = sqrt(x2) * range * range * (A->weight ? (double)A->weight[j] : 1) * rounding;
        slack += underflow * (1 + range + factor / range);
        if (A->mean) slack += fabs((double)A->mean[j] - mean[j]) * (sqrt((double)n) * factor);
        if (!quantized)
            norm = sqrt(z2) * up + slack;
        else {
            steps[j] = (float)(step[j] * factor);
            norm = (double)steps[j] * (double)size[j];
            slack += error[j] * factor + norm * 0x1p-22;
            if (norm < 0x1p-100 || (double)steps[j] < 0x1p-100) {
                slack += up * norm;
                norm = 0;
                steps[j] = 0;
            }
            widest = fmax(widest, (double)size[j]);
        }
        longest = fmax(longest, norm + slack);
        norms[j] = (float)(norm * up);
        slacks[j] =
            slack <= (double)FLT_MAX / up ? (float)(slack * up + (double)FLT_MIN) : INFINITY;
        largest = fmax(largest, fmax(-low[j], high[j]));
    }
    s->quantized = bytes;
    s->ld = quantized ? ld : 0;
    s->step = steps;
    s->norm = norms;
    s->slack = slacks;
    s->widest = chance(t, 30) ? ldexp(widest, (int)between(t, 12, 20)) : widest; /* rounds more */
    s->smallest = smallest;
    s->greatest = fmin((double)REAL_MAX / largest / (8 * sqrt((double)n) * range),
                       (double)REAL_MAX / (8 * longest));
    s->direction = references ? SCRATCH(t, n * SPCA_REFERENCES, double) : NULL;
    s->basis = SCRATCH(t, n * SPCA_REFERENCES, double);
    s->product = references ? SCRATCH(t, p * SPCA_REFERENCES, float) : NULL;
    s->residual = references ? SCRATCH(t, p, float) : NULL;
    s->list_of = SCRATCH(t, n * SPCA_REFERENCES, double);
    s->last_product = SCRATCH(t, p, float);
    s->last_list = SCRATCH(t, p, int);
    for (spca_int i = 0; i < n * SPCA_REFERENCES; i++) s->list_of[i] = 0;
    for (spca_int j = 0; j < p; j++) s->last_list[j] = 0;
    cache->capacity = capacity;
    cache->cursor = -1;
    cache->kept = scratch(t, n * capacity, sizeof(real));
    cache->owner = SCRATCH(t, room, spca_int);
    cache->stamp = SCRATCH(t, room, spca_int);
    cache->slot_list = SCRATCH(t, room, spca_int);
    cache->missing = SCRATCH(t, room, spca_int);
    cache->slot = SCRATCH(t, A->row_major ? p : 1, spca_int);
    for (spca_int a = 0; a < room; a++) cache->owner[a] = cache->stamp[a] = -1;
    for (spca_int j = 0; j < (A->row_major ? p : 1); j++) cache->slot[j] = -1;
    A->cache = capacity ? cache : NULL;
    s->bound = SCRATCH(t, p, float);
    s->estimate = SCRATCH(t, p, float);
    s->lower = SCRATCH(t, p, float);
    s->list = SCRATCH(t, p, spca_int);
    s->guess = SCRATCH(t, p / SPCA_GUESS_SHARE, spca_int);
    s->unit = SCRATCH(t, n, double);
    s->outside = SCRATCH(t, n, double);
    s->rounded = SCRATCH(t, ld, int16_t);
    return s;
}

real *SPCA(symmetric)(trial_t *t, spca_int p, style_t style, int definite, double *dense)
{
    const real *x = SPCA(numbers)(t, style, p * p);
    real *A = WORK(t, p * p);
    for (spca_int b = 0; b < p; b++)
        for (spca_int a = 0; a <= b; a++) {
            double sum = (double)x[a + b * p];
            for (spca_int i = 0; definite && i < p; i++)
                sum += i == 0 ? (double)x[a * p] * (double)x[b * p] - sum
                              : (double)x[a * p + i] * (double)x[b * p + i];
            A[a + b * p] = A[b + a * p] = (real)sum;
        }
    for (spca_int a = 0; a < p * p; a++) dense[a] = (double)A[a];
    return A;
}
