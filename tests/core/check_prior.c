/* check_prior.c - supports under a sparse precision, against the objective of each larger support.
 */
#include "core.h"

enum { MOST = 24 };

/* r_S'K_S^-1 r_S - log det K_S by a Cholesky factor of K_S, K = aI + L. */
static double objective(trial_t *t, spca_int p, const double *L, double a, const double *r,
                        spca_int k, const spca_int *S)
{
    double G[MOST * MOST], y[MOST], value = 0;
    for (spca_int i = 0; i < k; i++) {
        y[i] = r[S[i]];
        for (spca_int j = 0; j <= i; j++) {
            double x = L[S[i] * p + S[j]] + (i == j ? a : 0);
            for (spca_int l = 0; l < j; l++) x -= G[i * MOST + l] * G[j * MOST + l];
            if (i == j) CHECK(t, x > 0);
            G[i * MOST + j] = i == j ? sqrt(x) : x / G[j * MOST + j];
        }
        for (spca_int l = 0; l < i; l++) y[i] -= G[i * MOST + l] * y[l];
        y[i] /= G[i * MOST + i];
        value += y[i] * y[i] - 2 * log(G[i * MOST + i]);
    }
    return value;
}

void SPCA(check_prior_support)(trial_t *t)
{
    spca_int p = between(t, 1, MOST), k = between(t, 1, p), nnz = 0, count = 0;
    spca_int *indptr = SCRATCH(t, p + 1, spca_int), *indices = SCRATCH(t, p * p, spca_int);
    spca_int *chosen = SCRATCH(t, k, spca_int), *larger = SCRATCH(t, k, spca_int), room;
    double *L = zeros(t, p * p), *data = SCRATCH(t, p * p, double), *r = zeros(t, p);
    double a = ldexp(1, (int)below(t, 12) - 6), size = 1;
    for (spca_int edge = below(t, 4 * p); edge > 0; edge--) { /* w (e_i - e_j)(e_i - e_j)' */
        spca_int i = below(t, p), j = below(t, p);
        double w = (double)between(t, 1, 4) / 4;
        if (i == j) continue;
        L[i * p + i] += w, L[j * p + j] += w, L[i * p + j] -= w, L[j * p + i] -= w;
    }
    for (spca_int i = 0; i < p; i++) {
        r[i] = (double)below(t, 1000) / 100 - 5;
        size += r[i] * r[i] / a;
        indptr[i] = nnz;
        for (spca_int j = p - 1; j >= 0; j--) {
            if (L[i * p + j] == 0) continue;
            indices[nnz] = j;
            data[nnz++] = L[i * p + j];
        }
    }
    indptr[p] = nnz;
    for (room = chance(t, 50) ? 1 : p * k;; room *= 4) {
        stop_t stop = {0, chance(t, 10) ? below(t, k) : -1};
        spca_status status = spca_prior_support(
            p, indptr, indices, data, r, a, k, room, stop_at, &stop, SCRATCH(t, 4 * p + 1, double),
            SCRATCH(t, room, double), SCRATCH(t, 3 * p + k + 1, spca_int),
            SCRATCH(t, 3 * room, spca_int), chosen, &count);
        digest_int(t, status);
        CHECK(t, (status == SPCA_STOPPED) == (stop.at >= 0 && stop.asked > stop.at));
        CHECK(t, status != SPCA_NOT_CONVERGED || (room < p * k && count <= k));
        if (status == SPCA_STOPPED) return;
        if (status == SPCA_OK) break;
    }
    CHECK(t, count == k);
    for (spca_int s = 0; s < k; s++) { /* none would have raised it more */
        double best = -HUGE_VAL, found;
        digest_int(t, chosen[s]);
        memcpy(larger, chosen, (size_t)s * sizeof *larger);
        for (spca_int j = 0; j < p; j++) {
            int taken = 0;
            for (spca_int l = 0; l < s; l++) taken |= chosen[l] == j;
            larger[s] = j;
            if (!taken) best = fmax(best, objective(t, p, L, a, r, s + 1, larger));
        }
        for (spca_int l = 0; l < s; l++) CHECK(t, chosen[l] != chosen[s]);
        found = objective(t, p, L, a, r, s + 1, chosen);
        CHECK(t, found >= best - 1e-8 * size);
    }
}
