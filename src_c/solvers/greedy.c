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
 * whose largest eigenvalue secular.c finds.  Leaving is secular.c alone: x_i = 0 is w'z = 0 for row
 * w of W. */
#include "secular.h"

enum { TILE = 64 }; /* candidates whose products are made together */

/* y = sum_i x_i C_i over the k rows of C, for the columns start to end. */
VECTORIZED(combine,
           (spca_int k, spca_int p, const real *C, const double *x, spca_int start, spca_int end,
            double *y),
           (k, p, C, x, start, end, y))
{
    for (spca_int j = start; j < end; j++) y[j] = 0;
    for (spca_int i = 0; i < k; i++)
        for (spca_int j = start; j < end; j++) y[j] += x[i] * (double)C[i * p + j];
}

/* For TILE columns (tiles by rows): out_l = sum_i M_il in_i, l < w and i < k, or with M_li where
 * `transposed`; M has leading dimension ld. */
VECTORIZED(turn,
           (spca_int k, spca_int w, const double *M, spca_int ld, int transposed, const double *in,
            double *out),
           (k, w, M, ld, transposed, in, out))
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

/* The largest eigenvalue that some candidate reaches beside the first eigenvector alone, which is a
 * lower bound of the best: that of
 *     first  lead
 *     lead   corner. */
static double best_of_pairs(spca_int count, const spca_int *candidate, double first,
                            const double *lead, const double *diagonal)
{
    double best = -HUGE_VAL, size = fabs(first), unit;
    for (spca_int a = 0; a < count; a++) {
        double beside = fabs(lead[candidate[a]]), corner = fabs(diagonal[candidate[a]]);
        size = size > beside ? size : beside;
        size = size > corner ? size : corner;
    }
    unit = spca_unit_of(size);
    /* candidates that are not surpassed, TILE at a time */
    for (spca_int a = 0; a < count; a++) {
        double corner = diagonal[candidate[a]] * unit, beside = lead[candidate[a]] * unit;
        double half = (first * unit - corner) / 2, value;
        value = (first * unit + corner) / 2 + sqrt(half * half + beside * beside);
        best = best > value ? best : value;
    }
    return best / unit;
}

/* Whether a candidate's eigenvalue stays below `best`.  It is bounded as if all eigenvalues but the
 * first were the second; that bound is below `best` where the secular function, which falls, is
 * negative there. */
static int surpassed(const double *eigenvalues, double lead, double norm, double corner,
                     double best)
{
    double most = best - 1e-11 * (fabs(eigenvalues[0]) + fabs(best)), gap = most - eigenvalues[0];
    double others = norm - lead * lead, sum = corner - most + 1e-11 * fabs(corner);
    if (!(gap > 0)) return 0;
    sum += lead / gap * lead;
    if (others > 0) sum += others / (most - eigenvalues[1]);
    return sum < 0;
}

spca_status SPCA(bordered_eigenvalues)(spca_int p, spca_int k, spca_int w, spca_int t,
                                       spca_int count, const spca_int *candidate, const real *C,
                                       const double *diagonal, const double *eigenvalues,
                                       const double *W, const double *norm, const double *Q,
                                       const double *R, double strength, double least,
                                       spca_stop stop, void *ctx, double *work, double *value)
{
    double *lead = work, *c = lead + p, *q = c + k * TILE, *b = q + t * TILE, *d = b + w * TILE;
    double *border = d + w * TILE, *rest = border + w, best = -HUGE_VAL;
    spca_int place[TILE], held = 0;
    /* a lower bound of the best, from the first eigenvector */
    for (spca_int start = 0; norm && start < p; start += 8 * TILE) {
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        combine(k, p, C, W, start, min_int(p, start + 8 * TILE), lead);
    }
    if (norm) best = best_of_pairs(count, candidate, eigenvalues[0], lead, diagonal);
    for (spca_int a = 0; a < count; a++) {
        spca_int j = candidate[a];
        value[a] = -HUGE_VAL;
        if (!norm || w == 1 || !surpassed(eigenvalues, lead[j], norm[j], diagonal[j], best))
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
                corner += dl * (eigenvalues[l] * dl - 2 * bl);
                border[l] = bl - eigenvalues[l] * dl;
            }
            if (t > 0) {
                if (!(sigma > least)) { /* the candidate adds no direction */
                    *out = eigenvalues[0];
                    continue;
                }
                root = sqrt(sigma);
                corner /= sigma;
                for (spca_int l = 0; l < w; l++) border[l] /= root;
            }
            *out = spca_bordered_eigenvalue(w, eigenvalues, border, corner, rest);
            best = fmax(best, *out);
        }
        held = 0;
    }
    return SPCA_OK;
}
