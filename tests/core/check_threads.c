/* check_threads.c - who does the parts of a loop, and in which order, changes no bit. */
#include "core.h"

/* Every product of the problem with v, and with three columns V; into out. */
static spca_int products(trial_t *t, const problem_t *q, vector_t v, const real *V, const real *U,
                         const spca_int *index, spca_int k, real *out)
{
    const operator_t *A = &q->A;
    spca_int p = A->p, m = A->m, most = SPCA(block_work)(A, 3), length = 0;
    real *work = WORK(t, most > k * m + 2 * p + A->t ? most : k * m + 2 * p + A->t);
    memset(out, 0, (size_t)(5 * p + 5 * m + m * k + k * k + 3 * p) * sizeof *out);
    (void)SPCA(forward)(A, v, NULL, NULL, work, out);
    length += m;
    (void)SPCA(apply)(A, v, NULL, NULL, work, out + length);
    length += p;
    if (!A->symmetric_form) {
        (void)SPCA(backward)(A, U, NULL, NULL, work, out + length);
        length += p;
    }
    (void)SPCA(apply_block)(A, 3, V, NULL, NULL, work, out + length);
    length += 3 * p;
    (void)SPCA(forward_block)(A, 3, V, NULL, NULL, work, out + length);
    length += 3 * m;
    if (!A->symmetric_form) {
        (void)SPCA(backward_block)(A, 3, U, NULL, NULL, work, out + length);
        length += 3 * p;
    }
    CHECK(t, A->columns(A, k, index, NULL, NULL, work, out + length) == SPCA_OK);
    length += m * k;
    if (A->shift == 0 && !A->quotient) {
        (void)SPCA(submatrix)(A, k, index, NULL, NULL, p, work, out + length);
        length += k * k;
    }
    return length;
}

static const spca_run runs[] = {NULL, backwards, spca_pool_run};

/* Thresholds, and a rotation of rows enough for it to go by passes. */
static void check_vectors(trial_t *t)
{
    spca_int p = between(t, 2, 3000), rows = chance(t, 20) ? between(t, 4096, 5000) : 2, n_iter;
    spca_int r = between(t, 2, 3), work = SPCA(orthomax_work)(rows, r);
    const real *a = SPCA(numbers)(t, PLAIN, p), *X = SPCA(numbers)(t, PLAIN, rows * r);
    double bound = 1 + (sqrt((double)p) - 1) * (double)below(t, 101) / 100;
    double gamma = (double)below(t, 2), level[3][2];
    real *w[3], *soft[3], *Y[3];
    double *R = SCRATCH(t, r * r, double);
    for (int i = 0; i < 3; i++) {
        w[i] = WORK(t, p);
        soft[i] = WORK(t, p);
        Y[i] = SPCA(copy_of)(t, rows * r, X);
        CHECK(t,
              SPCA(l1_threshold)(p, a, bound, 0, runs[i], WORK(t, p), w[i], level[i]) == SPCA_OK);
        level[i][1] = SPCA(l1_ball_level)(p, a, bound, 0, runs[i]);
        SPCA(soft_threshold)(p, a, (real)level[i][1], runs[i], soft[i]);
        CHECK(t, SPCA(orthomax)(rows, r, gamma, 9, 1e-6, runs[i], NULL, NULL, Y[i],
                                SCRATCH(t, work, double), R, &n_iter) >= 0);
        CHECK(t, memcmp(w[i], w[0], (size_t)p * sizeof(real)) == 0);
        CHECK(t, memcmp(soft[i], soft[0], (size_t)p * sizeof(real)) == 0);
        CHECK(t, memcmp(level[i], level[0], sizeof *level) == 0);
        CHECK(t, memcmp(Y[i], Y[0], (size_t)(rows * r) * sizeof(real)) == 0);
    }
    SPCA(digest)(t, SPCA_OK, rows * r, Y[0]);
}

void SPCA(check_threads)(trial_t *t)
{
    problem_t q;
    spca_int p, m, k, length[3];
    const spca_int *index;
    const real *V, *U;
    real *out[3];
    vector_t v;
    SPCA(problem_of)(t, &q, TAMED | (chance(t, 50) ? DEFLATED : 0));
    p = q.A.p;
    m = q.A.m;
    k = between(t, 1, p);
    index = SPCA(subset)(t, p, k);
    v = SPCA(sparse)(t, PLAIN, p, between(t, 1, p), chance(t, 50));
    V = SPCA(numbers)(t, PLAIN, 3 * p);
    U = SPCA(numbers)(t, PLAIN, 3 * m);
    int few = chance(t, 20); /* trials have each part alone, which takes long */
    for (int i = 0; i < 3; i++) {
        q.A.run = i == 1 && few ? apart(t) : runs[i];
        out[i] = WORK(t, 8 * p + 5 * m + m * k + k * k);
        length[i] = products(t, &q, v, V, U, index, k, out[i]);
        CHECK(t, memcmp(out[i], out[0], (size_t)length[0] * sizeof(real)) == 0);
    }
    SPCA(digest)(t, SPCA_OK, length[0], out[0]);
    check_vectors(t);
}
