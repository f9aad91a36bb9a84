/* check_greedy.c - eigenvalues when a variable joins or leaves a support, or comes in the place of
 * another, against those of each submatrix. */
#include "core.h"

/* W and eigenvalues (descending) of the pencil (A, B) on a support: W'BW = I, W'AW =
 * diag(eigenvalues). */
static void pencil(trial_t *t, spca_int p, const double *A, const double *B, spca_int k,
                   const spca_int *index, double *eigenvalues, double *W)
{
    double *G = zeros(t, k * k), *V = zeros(t, k * k), *values = zeros(t, k),
           *root = zeros(t, k * k);
    for (spca_int a = 0; a < k * k; a++) G[a] = B[index[a % k] + index[a / k] * p];
    CHECK(t, jacobi(k, G, values, V)); /* root = B^-1/2 */
    for (spca_int a = 0; a < k * k; a++)
        for (spca_int l = 0; l < k; l++)
            root[a] += V[a % k + l * k] * V[a / k + l * k] / sqrt(values[l]);
    for (spca_int a = 0; a < k * k; a++) {
        G[a] = 0;
        for (spca_int i = 0; i < k; i++)
            for (spca_int l = 0; l < k; l++)
                G[a] += root[a % k + i * k] * A[index[i] + index[l] * p] * root[l + a / k * k];
    }
    for (spca_int b = 0; b < k; b++)
        for (spca_int a = 0; a < b; a++) G[b + a * k] = G[a + b * k];
    CHECK(t, jacobi(k, G, values, V));
    for (spca_int l = 0; l < k; l++) {
        eigenvalues[l] = values[k - 1 - l];
        for (spca_int i = 0; i < k; i++) {
            W[i + l * k] = 0;
            for (spca_int m = 0; m < k; m++)
                W[i + l * k] += root[i + m * k] * V[m + (k - 1 - l) * k];
        }
    }
}

/* The first place of a support that a candidate may take to raise the eigenvalue above a level. */
static void exchanging(trial_t *t, spca_int p, const double *A, const double *B, double size,
                       spca_int k, const spca_int *support, spca_int count,
                       const spca_int *candidate, const real *C, const double *diagonal,
                       const double *eigenvalues, const double *U)
{
    spca_int first = -1, entering = -1, *leaving = SCRATCH(t, k, spca_int),
             *other = SCRATCH(t, k, spca_int), *row = SCRATCH(t, k, spca_int);
    double near = (SINGLE ? 1e-4 : 1e-8) * size * (double)k, value = 0;
    double level = eigenvalues[0] + size * (double)below(t, 30) / 100 + 1e-10 * size;
    if (level - eigenvalues[1] <= 1e-8 * fabs(level)) return;
    for (spca_int i = 0; i < k; i++) leaving[i] = k - 1 - (row[i] = i);
    CHECK(t, SPCA(exchange)(p, k, k, leaving, count, candidate, C, row, diagonal, eigenvalues, U,
                            level, SINGLE ? 1e-4 : 1e-9, 1e-12, NULL, NULL,
                            SCRATCH(t, k * (k + 1) + 64 * (2 * k + 3), double),
                            SCRATCH(t, count, spca_int), &first, &entering, &value) == SPCA_OK);
    CHECK(t, first >= 0 && first <= k);
    for (spca_int b = 0; b <= first && b < k; b++) {
        double best = -HUGE_VAL, got = -HUGE_VAL;
        for (spca_int a = 0; a < count; a++) {
            memcpy(other, support, (size_t)k * sizeof *other);
            other[leaving[b]] = candidate[a];
            double want = largest_eigenvalue(t, p, A, B, k, other);
            best = fmax(best, want);
            if (candidate[a] == entering) got = want;
        }
        if (b < first) {
            CHECK(t, best <= level + near);
            continue;
        }
        CHECK(t, got >= best - near && value > level && fabs(value - got) <= near);
    }
}

/* Swaps until none helps: the eigenvalue is that of the support, and no variable raises it. */
static void swapping(trial_t *t, spca_int p, const double *A, const double *B, double size,
                     spca_int k, const spca_int *support, const double *diagonal)
{
    spca_int *index = SCRATCH(t, k, spca_int), *other = SCRATCH(t, k, spca_int), made = -1;
    real *copy = WORK(t, p * p);
    double near = (SINGLE ? 1e-4 : 1e-8) * size * (double)k, value = 0;
    double slack = chance(t, 50) ? 0.25
                   : SINGLE      ? 1e-4
                                 : 1e-9; /* nor does a wide one overlook any */
    int ended = -1;
    memcpy(index, support, (size_t)k * sizeof *index);
    for (spca_int a = 0; a < p * p; a++) copy[a] = (real)A[a];
    CHECK(t, SPCA(swap)(p, k, copy, diagonal, 1e-10, 1e-8, slack, 1e-12, 100, NULL, NULL,
                        SCRATCH(t, 3 * k * k + 130 * k + 192, double), SCRATCH(t, 12 * k, blas_int),
                        SCRATCH(t, 2 * p + k, spca_int), index, SCRATCH(t, k, double), &value,
                        &made, &ended) == SPCA_OK);
    for (spca_int a = 1; a < k; a++) CHECK(t, index[a - 1] < index[a]);
    CHECK(t, made >= 0 && fabs(value - largest_eigenvalue(t, p, A, B, k, index)) <= near);
    CHECK(t, made > 0 || !memcmp(index, support, (size_t)k * sizeof *index));
    for (spca_int i = 0; ended && i < k; i++)
        for (spca_int j = 0; j < p; j++) {
            int used = 0;
            for (spca_int a = 0; a < k; a++) used |= index[a] == j;
            if (used) continue;
            memcpy(other, index, (size_t)k * sizeof *other);
            other[i] = j;
            CHECK(t, largest_eigenvalue(t, p, A, B, k, other) <= value + near);
        }
}

/* Of the identity every support is as good, and the two leading eigenvalues of each tie: no swap is
 * sought. */
static void no_swap_of_ties(trial_t *t, spca_int p)
{
    spca_int k = between(t, 2, p), made = -1, *index = SCRATCH(t, k, spca_int);
    real *A = WORK(t, p * p);
    double *diagonal = SCRATCH(t, p, double), value = 0;
    int ended = -1;
    for (spca_int a = 0; a < p * p; a++) A[a] = a % (p + 1) == 0;
    for (spca_int a = 0; a < p; a++) diagonal[a] = 1;
    for (spca_int a = 0; a < k; a++) index[a] = a;
    CHECK(t, SPCA(swap)(p, k, A, diagonal, 1e-10, 1e-8, SINGLE ? 1e-4 : 1e-9, 1e-12, 100, NULL,
                        NULL, SCRATCH(t, 3 * k * k + 130 * k + 192, double),
                        SCRATCH(t, 12 * k, blas_int), SCRATCH(t, 2 * p + k, spca_int), index,
                        SCRATCH(t, k, double), &value, &made, &ended) == SPCA_OK);
    CHECK(t, made == 0 && !ended && value == 1);
}

/* Of diag(1, l) and a variable beside the second one, which may take the place of the first where
 * c^2 > (1 - l)(1 - a): the bound of it is met to the last bit. */
static void swapping_at_the_bound(trial_t *t)
{
    double l = (double)below(t, 16) / 16, a = (double)below(t, 16) / 16, value = 0;
    double more = SINGLE ? 1e-3 : chance(t, 50) ? 1e-9 : 1e-2, slack = chance(t, 50) ? 0.25 : 1e-9;
    double c = sqrt((1 - l) * (1 - a) * (1 + more)), diagonal[3] = {1, l, a};
    const real A[9] = {1, 0, 0, 0, (real)l, (real)c, 0, (real)c, (real)a};
    spca_int index[2] = {0, 1}, made = -1, iwork[8];
    blas_int blas_work[24];
    int ended = -1;
    CHECK(t, SPCA(swap)(3, 2, A, diagonal, 1e-12, 1e-8, slack, 1e-12, 9, NULL, NULL,
                        SCRATCH(t, 464, double), blas_work, iwork, index, SCRATCH(t, 2, double),
                        &value, &made, &ended) == SPCA_OK);
    CHECK(t, made > 0 && index[0] == 1 && index[1] == 2);
    CHECK(t, NEAR(value, (l + a) / 2 + hypot((l - a) / 2, c), 9));
}

/* The larger eigenvalue of A on the span of x without its entry i, and of e_j. */
static double bound(spca_int p, const double *A, spca_int k, const spca_int *index, const real *x,
                    spca_int i, spca_int j)
{
    long double a = 0, g = 0, rest = 0, own = (long double)A[j * (p + 1)];
    for (spca_int b = 0; b < k; b++) {
        if (b == i) continue;
        rest += (long double)x[b] * (long double)x[b];
        g += (long double)x[b] * (long double)A[index[b] * p + j];
        for (spca_int c = 0; c < k; c++)
            if (c != i)
                a +=
                    (long double)x[b] * (long double)x[c] * (long double)A[index[b] * p + index[c]];
    }
    if (!(rest > 1.1e-3L)) return -HUGE_VAL; /* it stays */
    a /= rest;
    return (double)((a + own) / 2 + sqrtl((a - own) * (a - own) / 4 + g * g / rest));
}

/* Swaps by what a vector tells: x'Ax is no less than of the start, and no pair promises more. */
static void swapping_quickly(trial_t *t, spca_int p, const double *A, double size, spca_int k,
                             const spca_int *support)
{
    spca_int *index = SCRATCH(t, k, spca_int), made = -1, most = between(t, 0, 3) * 50;
    real *copy = WORK(t, p * p), *x = WORK(t, k), rise = (real)(SINGLE ? 1e-5 : 1e-10);
    double near = (SINGLE ? 1e-5 : 1e-10) * size * (double)k, value = 0, form = 0, begun = 0;
    memcpy(index, support, (size_t)k * sizeof *index);
    for (spca_int a = 0; a < p * p; a++) copy[a] = (real)A[a];
    for (spca_int a = 0; a < k; a++) x[a] = 1;
    for (spca_int a = 0; a < k; a++)
        for (spca_int b = 0; b < k; b++) begun += A[support[a] * p + support[b]] / (double)k;
    CHECK(t, SPCA(quick_swaps)(p, k, copy, rise, most, NULL, NULL, WORK(t, 2 * p + k * k + 2 * k),
                               index, x, &value, &made) == SPCA_OK);
    CHECK(t, made >= 0 && made <= most && value >= begun - near);
    CHECK(t, made > 0 || !memcmp(index, support, (size_t)k * sizeof *index));
    digest(t, &value, sizeof value);
    for (spca_int a = 0; a < k; a++) {
        CHECK(t, index[a] >= 0 && index[a] < p && (a == 0 || index[a - 1] < index[a]));
        for (spca_int b = 0; b < k; b++)
            form += (double)x[a] * (double)x[b] * A[index[a] * p + index[b]];
    }
    CHECK(t, fabs(form - value) <= near);
    for (spca_int j = 0; made < most && j < p; j++) {
        int used = 0;
        for (spca_int a = 0; a < k; a++) used |= index[a] == j;
        for (spca_int i = 0; !used && i < k; i++)
            CHECK(t, bound(p, A, k, index, x, i, j) <= value + (double)rise * fabs(value) + near);
    }
}

/* All eigenpairs of A by the method of small matrices. */
static void decomposing(trial_t *t, spca_int p, const double *A, double size)
{
    double *copy = zeros(t, p * p), *V = zeros(t, p * p), *values = zeros(t, p),
           *U = zeros(t, p * p);
    double *got = zeros(t, p), near = 1e-13 * size * (double)p;
    memcpy(copy, A, (size_t)(p * p) * sizeof *A);
    CHECK(t, jacobi(p, copy, values, V));
    memcpy(copy, A, (size_t)(p * p) * sizeof *A);
    CHECK(t, spca_small_eigen(p, copy, SCRATCH(t, p * p + 4 * p, double), got, U) == SPCA_OK);
    digest(t, got, (size_t)p * sizeof *got);
    for (spca_int l = 0; l < p; l++) {
        CHECK(t, fabs(got[l] - values[p - 1 - l]) <= near);
        for (spca_int i = 0; i < p; i++) {
            double sum = 0;
            for (spca_int j = 0; j < p; j++) sum += A[i * p + j] * U[l * p + j];
            CHECK(t, fabs(sum - got[l] * U[l * p + i]) <= near);
        }
    }
}

/* Beside the first of two eigenvectors alone, what a candidate promises is its very eigenvalue: the
 * best is not passed over, by as little as it may be above the others. */
static void passing_over_none(trial_t *t)
{
    enum { P = 9 };
    spca_int count = between(t, 1, P - 2), candidate[P];
    double eigenvalues[2] = {2, 1 + (double)below(t, 8) / 8}, W[4] = {1, 0, 0, 1};
    double diagonal[P], norm[P], value[P], best = -HUGE_VAL, found = -HUGE_VAL;
    real C[2 * P] = {0};
    for (spca_int a = 0; a < count; a++) {
        spca_int j = candidate[a] = a + 2;
        double b = (double)(C[j] = (real)between(t, 1, 20) / 7);
        diagonal[j] = (double)between(t, -9, 9) / 7;
        norm[j] = b * b;
        best = fmax(best, (2 + diagonal[j]) / 2 + hypot((2 - diagonal[j]) / 2, b));
    }
    CHECK(t, SPCA(bordered_eigenvalues)(P, 2, 2, 0, count, candidate, C, diagonal, eigenvalues, W,
                                        norm, NULL, NULL, 0, 0, NULL, NULL,
                                        SCRATCH(t, P + 64 * 6 + 6, double), value) == SPCA_OK);
    for (spca_int a = 0; a < count; a++) found = fmax(found, value[a]);
    CHECK(t, fabs(found - best) <= 1e-14 * best);
}

void SPCA(check_greedy)(trial_t *t)
{
    spca_int p = between(t, 2, chance(t, 15) ? 90 : 14), k = between(t, 1, p - 1 < 8 ? p - 1 : 8),
             w = k;
    spca_int directions = chance(t, 50) ? 0 : between(t, 1, 3), count = 0,
             *larger = SCRATCH(t, k + 1, spca_int);
    style_t style = SPCA(style)(t, 1);
    double *A = zeros(t, p * p), *B = zeros(t, p * p), size = 0,
           strength = (double)below(t, 30) / 10;
    double *diagonal = SCRATCH(t, p, double), *eigenvalues = SCRATCH(t, w, double),
           *W = SCRATCH(t, k * w, double);
    double *norm = SCRATCH(t, p, double), *Q = SCRATCH(t, directions * p, double);
    double *R = SCRATCH(t, w * directions, double), best = -HUGE_VAL, found = -HUGE_VAL;
    const spca_int *support = SPCA(subset)(t, p, k);
    spca_int *candidate = SCRATCH(t, p - k, spca_int);
    real *C = WORK(t, k * p);
    int pruned = directions == 0 && chance(t, 50);
    SPCA(symmetric)(t, p, style, chance(t, 70), A);
    for (spca_int a = 0; a < directions * p;
         a++) /* orthogonal: rows of a Hadamard matrix, or nearly */
        Q[a] = (__builtin_popcountll((unsigned long long)((a / p + 1) & (a % p))) & 1 ? -1 : 1) /
               sqrt((double)p);
    for (spca_int a = 0; a < p * p; a++) {
        B[a] = a % p == a / p;
        for (spca_int l = 0; l < directions; l++)
            B[a] += strength * Q[a % p + l * p] * Q[a / p + l * p];
        size = fmax(size, fabs(A[a]));
    }
    if (p <= 64) decomposing(t, p, A, size);
    passing_over_none(t);
    pencil(t, p, A, B, k, support, eigenvalues, W);
    for (spca_int j = 0, a = 0; j < p; j++) {
        diagonal[j] = A[j + j * p];
        norm[j] = 0;
        for (spca_int i = 0; i < k; i++) {
            C[i * p + j] = (real)A[support[i] + j * p];
            norm[j] += A[support[i] + j * p] * A[support[i] + j * p];
        }
        if (a < k && support[a] == j)
            a++;
        else if (chance(t, 90))
            candidate[count++] = j;
    }
    for (spca_int l = 0; l < w; l++)
        for (spca_int m = 0; m < directions; m++) {
            R[l + m * w] = 0;
            for (spca_int i = 0; i < k; i++) R[l + m * w] += W[i + l * k] * Q[support[i] + m * p];
        }
    double *value = SCRATCH(t, count, double), *deleted = SCRATCH(t, k, double);
    spca_int room = p + 64 * (k + directions + 2 * w) + 3 * w;
    CHECK(t, SPCA(bordered_eigenvalues)(p, k, w, directions, count, candidate, C, diagonal,
                                        eigenvalues, W, pruned ? norm : NULL, Q, R, strength, 1e-10,
                                        NULL, NULL, SCRATCH(t, room, double), value) == SPCA_OK);
    digest(t, value, (size_t)count * sizeof *value);
    for (int exact = 1; exact >= 0; exact--)
        for (spca_int a = 0; a < count; a++) {
            double want;
            memcpy(larger, support, (size_t)k * sizeof *larger);
            larger[k] = candidate[a];
            want = largest_eigenvalue(t, p, A, B, k + 1, larger);
            if (exact)
                best = fmax(best, want);
            else if (pruned && isinf(value[a]))
                CHECK(t, value[a] < 0);
            else
                CHECK(t, fabs(value[a] - want) <=
                             (SINGLE ? 1e-4 : 1e-8) * size * (double)(k + 1) * (1 + strength));
            found = fmax(found, value[a]);
        }
    CHECK(t, count == 0 || found >= best - (SINGLE ? 1e-4 : 1e-8) * size * (double)(k + 1) *
                                               (1 + strength)); /* the best is among them */
    if (directions == 0 && k > 1 && count > 0)
        exchanging(t, p, A, B, size, k, support, count, candidate, C, diagonal, eigenvalues, W);
    if (directions == 0 && k > 1) swapping(t, p, A, B, size, k, support, diagonal);
    if (p > 1) no_swap_of_ties(t, p);
    swapping_at_the_bound(t);
    if (directions == 0 && k > 1) swapping_quickly(t, p, A, size, k, support);
    CHECK(t, spca_deleted_eigenvalues(k, w, eigenvalues, W, NULL, NULL, SCRATCH(t, 2 * w, double),
                                      deleted) == SPCA_OK);
    digest(t, deleted, (size_t)k * sizeof *deleted);
    for (spca_int i = 0; i < k; i++) {
        if (k == 1) {
            CHECK(t, isinf(deleted[i]) && deleted[i] < 0);
            continue;
        }
        for (spca_int a = 0, b = 0; a < k; a++)
            if (a != i) larger[b++] = support[a];
        CHECK(t, fabs(deleted[i] - largest_eigenvalue(t, p, A, B, k - 1, larger)) <=
                     1e-8 * size * (double)k * (1 + strength));
    }
}
