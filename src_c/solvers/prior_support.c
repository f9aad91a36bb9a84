/* prior_support.c - the support of a loading whose normal prior has a sparse precision.
 *
 * It maximizes r_S'K_S^-1 r_S - log det K_S, K = aI + L, over supports S, greedily.  Let K_S = GG',
 * with G by rows in the order of joining.  A variable j outside S adds
 *
 *     rest_j^2/d_j - log d_j,   rest_j = r_j - g_j'G^-1 r_S,   d_j = K_jj - g_j'g_j,   Gg_j = K_Sj.
 *
 * When i joins, each g_j gets one more entry, (K_ij - g_i'g_j)/sqrt(d_i).  These entries die away
 * with the distance of i and j among the neighbors in L.  So the columns of all g_j are kept
 * sparse, and linked by variable as well; an entry below DROP sqrt(d_j) is left out, since it
 * changes d_j by its square alone.
 *
 * Source: Khanna, Ghosh, Poldrack & Koyejo (2015, AISTATS), Sparse submodular probabilistic PCA. */
#include "real.h"

#define DROP 1e-10
enum { GROUP = 64 }; /* variables of a group, whose largest gain is kept */

/* The gain of each variable, -infinity in S, and the largest of each group. */
typedef struct {
    spca_int p;
    double *gain, *greatest;
} gains_t;

/* The largest gain of a group, computed anew. */
static void compare(const gains_t *g, spca_int group)
{
    spca_int end = min_int(g->p, (group + 1) * GROUP);
    double best = -HUGE_VAL;
    for (spca_int j = group * GROUP; j < end; j++) best = g->gain[j] > best ? g->gain[j] : best;
    g->greatest[group] = best;
}

/* The first variable of the largest gain. */
static spca_int best_variable(const gains_t *g)
{
    spca_int groups = (g->p + GROUP - 1) / GROUP, group = 0;
    for (spca_int b = 1; b < groups; b++)
        if (g->greatest[b] > g->greatest[group]) group = b;
    spca_int j = group * GROUP, last = min_int(g->p, j + GROUP) - 1;
    /* the end stops it where a gain is NaN */
    while (j < last && g->gain[j] != g->greatest[group]) j++;
    return j;
}

/* A row that is gathered: its entries at variables outside S, listed in `touched`; stamp: the step
 * of the last row that had a variable. */
typedef struct {
    const double *gain;
    double *row;
    spca_int *stamp, *touched, count;
} row_t;

/* row_j += x, unless j is in S. */
static inline void add(row_t *w, spca_int j, double x, spca_int step)
{
    if (w->gain[j] == -HUGE_VAL) return;
    if (w->stamp[j] != step) {
        w->stamp[j] = step;
        w->row[j] = 0;
        w->touched[w->count++] = j;
    }
    w->row[j] += x;
}

spca_status spca_prior_support(spca_int p, const spca_int *indptr, const spca_int *indices,
                               const double *data, const double *r, double a, spca_int k,
                               spca_int room, spca_stop stop, void *ctx, double *work,
                               double *value, spca_int *iwork, spca_int *entries, spca_int *chosen,
                               spca_int *count)
{
    double *rest = work, *d = rest + p;
    gains_t g = {p, d + p, d + 3 * p};
    row_t w = {g.gain, d + 2 * p, iwork, iwork + p, 0};
    spca_int *head = iwork + 2 * p, *start = head + p;
    spca_int *variable = entries, *next = entries + room, *column = entries + 2 * room, used = 0;
    /* gains of single variables */
    for (spca_int j = 0; j < p; j++) {
        rest[j] = r[j];
        d[j] = a;
        head[j] = w.stamp[j] = -1;
        for (spca_int e = indptr[j]; e < indptr[j + 1]; e++)
            if (indices[e] == j) d[j] += data[e];
        g.gain[j] = rest[j] * rest[j] / d[j] - log(d[j]);
    }
    for (spca_int b = 0; b * GROUP < p; b++) compare(&g, b);
    for (spca_int s = 0; s < k; s++) {
        spca_int i = best_variable(&g);
        double root = sqrt(d[i]);
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        if (!(g.gain[i] > -HUGE_VAL)) return SPCA_NONFINITE;
        /* i joins */
        start[s] = used;
        chosen[s] = i;
        *count = s + 1;
        g.gain[i] = -HUGE_VAL;
        w.count = 0;
        compare(&g, i / GROUP);
        /* row_j = K_ij - g_i'g_j where it may differ from 0 */
        for (spca_int e = indptr[i]; e < indptr[i + 1]; e++) add(&w, indices[e], data[e], s);
        for (spca_int e = head[i]; e >= 0; e = next[e])
            for (spca_int f = start[column[e]]; f < start[column[e] + 1]; f++)
                add(&w, variable[f], -value[e] * value[f], s);
        /* one more entry of each g_j: rest_j, d_j and gains change */
        if (used + w.count > room) return SPCA_NOT_CONVERGED;
        for (spca_int t = 0; t < w.count; t++) {
            spca_int j = w.touched[t];
            double x = w.row[j] / root;
            if (!(fabs(x) > DROP * sqrt(d[j]))) continue;
            rest[j] -= x * (rest[i] / root);
            d[j] -= x * x;
            g.gain[j] = rest[j] * rest[j] / d[j] - log(d[j]);
            compare(&g, j / GROUP);
            variable[used] = j;
            value[used] = x;
            column[used] = s;
            next[used] = head[j];
            head[j] = used++;
        }
        start[s + 1] = used;
    }
    return SPCA_OK;
}
