/* elastic_net.c - the path of the elastic net, given the matrix of products.
 *
 * For K = G + ridge I and targets c (of data: G = X'X, c = X'y) it minimizes over b
 *
 *     b'Kb - 2 c'b + 2 t ||b||_1
 *
 * as the level t falls (LARS-EN: Zou & Hastie 2005, Journal of the Royal Statistical Society B 67,
 * section 3.4, for the naive elastic net).  With residual products r = c - Kb, b is optimal where
 * r_j = t sign(b_j) on its support S and |r_j| <= t elsewhere.  While S and its signs s stay,
 *
 *     b_S = g - t d,   K_S g = c_S,   K_S d = s,
 *     r_j = u_j + t w_j,   u = c - G_S g,   w = G_S d.
 *
 * So each support serves an interval of levels, which ends below where a variable joins, u_j + t
 * w_j = t or -t, or where one leaves, g_i = t d_i.  Both are computed anew for each support, from
 * the Cholesky factor K_S = R'R; only R is carried along the path.
 *
 * A variable that is a combination of the support, to rounding, is barred from joining. */
#include "real.h"

/* States of a variable. One that has just left has r_j = t s_j still, but |r_j| falls faster than
 * the level. */
enum { OUTSIDE, INSIDE, BARRED };

/* A support in order of joining, its factor, and its line. */
typedef struct {
    spca_int p, room, count;
    const double *G;
    double ridge, least; /* least: the smallest pivot, in units of K_jj */
    spca_int *index, *place;
    double *R, *sign, *g, *d, *u, *w;
} support_t;

/* Appends variable j to the support; returns 0 where it is a combination of the others. */
static int append(support_t *S, spca_int j, double sign)
{
    double *r = S->R + S->count * S->room, pivot = S->G[j + j * S->p] + S->ridge;
    double least = S->least * pivot;
    for (spca_int i = 0; i < S->count; i++) {
        const double *ri = S->R + i * S->room;
        r[i] = (S->G[S->index[i] + j * S->p] - strands_dot(i, ri, r)) / ri[i];
        pivot -= r[i] * r[i];
    }
    if (!(pivot > least)) return 0;
    r[S->count] = sqrt(pivot);
    S->sign[S->count] = sign;
    S->place[j] = INSIDE;
    S->index[S->count++] = j;
    return 1;
}

/* Takes out the variable at place i of the support. */
static void leave(support_t *S, spca_int i)
{
    spca_int last = S->count;
    S->place[S->index[i]] = OUTSIDE;
    S->count = i;
    for (spca_int a = i + 1; a < last; a++) {
        /* it joins again, unless it has become a combination of the others */
        S->place[S->index[a]] = BARRED;
        (void)append(S, S->index[a], S->sign[a]);
    }
}

/* x <- K_S^-1 x. */
static void solve(const support_t *S, double *x)
{
    for (spca_int i = 0; i < S->count; i++) {
        const double *r = S->R + i * S->room;
        x[i] = (x[i] - strands_dot(i, r, x)) / r[i];
    }
    for (spca_int i = S->count - 1; i >= 0; i--) {
        const double *r = S->R + i * S->room;
        x[i] /= r[i];
        subtract_multiple(i, x[i], r, x);
    }
}

/* u -= g G_j and w += d G_j, p entries. */
VECTORIZED(accumulate, (spca_int p, const double *Gj, double g, double d, double *u, double *w),
           (p, Gj, g, d, u, w))
{
    for (spca_int j = 0; j < p; j++) {
        u[j] -= g * Gj[j];
        w[j] += d * Gj[j];
    }
}

/* The line of a support: g = K_S^-1 c_S, d = K_S^-1 s, u = c - G_S g, w = G_S d. */
static void line_of(support_t *S, const double *c)
{
    for (spca_int i = 0; i < S->count; i++) {
        S->g[i] = c[S->index[i]];
        S->d[i] = S->sign[i];
    }
    solve(S, S->g);
    solve(S, S->d);
    for (spca_int j = 0; j < S->p; j++) {
        S->u[j] = c[j];
        S->w[j] = 0;
    }
    for (spca_int i = 0; i < S->count; i++)
        accumulate(S->p, S->G + S->index[i] * S->p, S->g[i], S->d[i], S->u, S->w);
}

/* Where the interval of levels of a support ends below. */
typedef struct {
    double level;
    /* the variable that joins, or the place in the support that leaves; else -1 */
    spca_int joins, leaves;
    double sign;
} end_t;

/* The first event as the level falls from t to floor; none where it reaches the floor. */
static end_t end_of(const support_t *S, double t, double floor)
{
    const double parallel = 64 * DBL_EPSILON;
    end_t end = {floor, -1, -1, 0};
    for (spca_int j = 0; j < S->p; j++)
        for (int side = 1; side >= -1 && S->place[j] == OUTSIDE; side -= 2) {
            double u = (double)side * S->u[j], slope = 1 - (double)side * S->w[j];
            double at = fmin(slope > parallel ? u / slope : -1, t);
            if (at > end.level) end = (end_t){at, j, -1, (double)side};
        }
    for (spca_int i = 0; i < S->count; i++) {
        double at = fmin(S->sign[i] * S->d[i] < 0 ? S->g[i] / S->d[i] : -1, t);
        if (at > end.level) end = (end_t){at, -1, i, 0};
    }
    return end;
}

/* Whether the support is the one of level t, to rounding: no b_i has the other sign, and no |r_j|
 * is above t. */
static int serves(const support_t *S, double t)
{
    const double above = t * (1 + 1024 * DBL_EPSILON);
    for (spca_int i = 0; i < S->count; i++)
        if (!(S->sign[i] * (S->g[i] - t * S->d[i]) >= 0)) return 0;
    for (spca_int j = 0; j < S->p; j++)
        if (S->place[j] == OUTSIDE && !(fabs(S->u[j] + t * S->w[j]) <= above)) return 0;
    return 1;
}

/* Appends a guessed support; returns whether it is the answer: the one of level floor, or one of
 * `limit` variables whose interval a joining variable ends. */
static int guessed(support_t *S, spca_int limit, const double *c, double floor, spca_int guess,
                   const spca_int *index, const double *value, double *t)
{
    end_t end;
    for (spca_int i = 0; i < guess; i++)
        if (!append(S, index[i], value[i] > 0 ? 1 : -1)) return 0;
    line_of(S, c);
    end = end_of(S, DBL_MAX, floor);
    *t = end.level;
    if (end.leaves >= 0 || (end.joins >= 0 && guess < limit)) return 0;
    return serves(S, *t);
}

spca_status spca_elastic_net(spca_int p, spca_int limit, const double *G, const double *c,
                             double ridge, double floor, double least, spca_int guess,
                             spca_stop stop, void *ctx, spca_int *index, double *value,
                             double *work, spca_int *iwork, spca_int *count, double *level)
{
    spca_int most = 8 * p + 64; /* steps, at most; few variables leave */
    support_t S = {.p = p,
                   .room = limit,
                   .G = G,
                   .ridge = ridge,
                   .least = least,
                   .index = iwork,
                   .place = iwork + limit,
                   .R = work};
    double t = 0;
    end_t end;
    S.sign = work + limit * limit;
    S.g = S.sign + limit;
    S.d = S.g + limit;
    S.u = S.d + limit;
    S.w = S.u + p;
    for (spca_int j = 0; j < p; j++) S.place[j] = OUTSIDE;
    if (guess == 0 || !guessed(&S, limit, c, floor, guess, index, value, &t)) {
        /* the path from the largest level on */
        S.count = 0;
        for (spca_int j = 0; j < p; j++) S.place[j] = OUTSIDE;
        t = DBL_MAX;
        for (;; most--) {
            if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
            line_of(&S, c);
            end = end_of(&S, t, floor);
            t = end.level;
            if (end.joins < 0 && end.leaves < 0) break;
            /* Rounding could let variables join and leave for ever; no input is known where it
             * does. */
            if (most == 0) break; /* GCOVR_EXCL_BR_LINE */
            if (end.leaves >= 0)
                leave(&S, end.leaves);
            else if (S.count == limit)
                break;
            else if (!append(&S, end.joins, end.sign))
                S.place[end.joins] = BARRED;
        }
    }
    for (spca_int i = 0; i < S.count; i++) {
        index[i] = S.index[i];
        value[i] = S.g[i] - t * S.d[i];
    }
    *count = S.count;
    *level = t;
    return most == 0 ? SPCA_NOT_CONVERGED : SPCA_OK; /* GCOVR_EXCL_BR_LINE */
}
