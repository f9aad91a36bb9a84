/* exchange.c - exchanges a variable of a support for another, to raise its largest eigenvalue.
 *
 * Let A_SS = U diag(lambda) U', lambda_1 >= lambda_2 >= .., and M = level I - A_SS, which is
 * semidefinite.  With variable j in the place of i, the eigenvalue exceeds the level where, by the
 * Schur complement, c'(M without i)^-1 c > level - a_jj, c = A_Sj without c_i.  Let u be the first
 * eigenvector, e = level - lambda_1, N the inverse of M on the other eigenvectors, s = u'c and t =
 * N c.  Then that is
 *
 *     w (c't + a_jj - level) + N_ii s^2 - e t_i^2 - 2 u_i s t_i > 0,    w = e N_ii + u_i^2,
 *
 * where c_i does not matter.  e t_i^2, which is small, is left out, and what rounding may hide is
 * added: then no exchange is overlooked.
 *
 * Most j need only k products: by Cauchy-Schwarz |t_i| <= (N_ii c't)^(1/2), and c't <= F = (||c||^2
 * - s^2)/(level - lambda_2), so that it can hold for some i only if
 *
 *     F^(1/2) + |s| max_i (N_ii/w)^(1/2) > (level - a_jj)^(1/2). */
#include "real.h"

/* COLUMNS: columns of A at a time.  STEPS: of Newton's method, at most. */
enum { COLUMNS = 64, STEPS = 100 };

/* s_j = sum_i u_i c_ij and square_j = sum_i c_ij^2 for the columns start .. end - 1; c_i is row
 * row_i of C. */
VECTORIZED(along,
           (spca_int k, spca_int p, const real *C, const spca_int *row, const double *u,
            spca_int start, spca_int end, double *s, double *square),
           (k, p, C, row, u, start, end, s, square))
{
    for (spca_int j = 0; j < end - start; j++) s[j] = square[j] = 0;
    for (spca_int i = 0; i < k; i++) {
        const real *c = C + row[i] * p + start;
        for (spca_int j = 0; j < end - start; j++) {
            double x = (double)c[j];
            s[j] += u[i] * x;
            square[j] += x * x;
        }
    }
}

/* N = sum over m > 1 of u_m u_m'/(level - lambda_m). */
VECTORIZED(invert,
           (spca_int k, const double *U, const double *eigenvalues, double level, double *N),
           (k, U, eigenvalues, level, N))
{
    for (spca_int a = 0; a < k * k; a++) N[a] = 0;
    for (spca_int m = 1; m < k; m++) {
        const double *u = U + m * k;
        for (spca_int i = 0; i < k; i++) {
            double c = u[i] / (level - eigenvalues[m]);
            for (spca_int l = 0; l < k; l++) N[i * k + l] += c * u[l];
        }
    }
}

/* t = N c for `count` columns c (k x COLUMNS by rows); row k of t has the c't. */
VECTORIZED(solve, (spca_int k, spca_int count, const double *N, const double *c, double *t),
           (k, count, N, c, t))
{
    double *form = t + k * COLUMNS;
    for (spca_int a = 0; a < count; a++) form[a] = 0;
    for (spca_int i = 0; i < k; i++) {
        double *y = t + i * COLUMNS;
        for (spca_int a = 0; a < count; a++) y[a] = 0;
        for (spca_int l = 0; l < k; l++) {
            const double *x = c + l * COLUMNS;
            double m = N[i * k + l];
            for (spca_int a = 0; a < count; a++) y[a] += m * x[a];
        }
        for (spca_int a = 0; a < count; a++) form[a] += y[a] * c[i * COLUMNS + a];
    }
}

/* A search for exchanges: who may leave (in order), and who may enter. */
typedef struct {
    /* held: columns that wait for `enter`; count: variables in `entering` */
    spca_int k, p, n_leaving, count, held;
    const spca_int *leaving;
    const real *C;
    const spca_int *row; /* (k): the row of C of each variable of the support */
    const double *diagonal, *eigenvalues, *U, *N, *width;
    double level, slack;
    spca_int place[COLUMNS], first;
    double lead[COLUMNS]; /* s of the columns held; place: which they are; first: the first place in
                             `leaving` that some may take */
    spca_int *entering;
} search_t;

/* Whether column a (held) may enter for the b-th that may leave: the inequality at the top, where
 * excess = c't + a_jj - level. */
static int may_enter(const search_t *x, spca_int a, spca_int b, const double *t, double excess)
{
    spca_int i = x->leaving[b];
    double s = x->lead[a], own = x->N[i * x->k + i] * s * s * (1 + 2 * x->slack);
    return x->width[b] * excess + own - 2 * x->U[i] * s * t[i * COLUMNS + a] > 0;
}

/* Of the columns held, adds to `entering` those that may take the first place so far; where one may
 * take an earlier place, that becomes the first. */
static void enter(search_t *x, const double *c, double *t)
{
    solve(x->k, x->held, x->N, c, t);
    for (spca_int a = 0; a < x->held; a++) {
        double form = t[x->k * COLUMNS + a], excess = form + x->diagonal[x->place[a]] - x->level;
        spca_int b = 0, end = min_int(x->first + 1, x->n_leaving);
        excess += x->slack * (fabs(excess) + fabs(x->level) + form);
        while (b < end && !may_enter(x, a, b, t, excess)) b++;
        if (b == end) continue;
        if (b < x->first) x->count = 0;
        x->first = b;
        x->entering[x->count++] = x->place[a];
    }
    x->held = 0;
}

/* b (k) = U'c for column j; b has room for c behind. */
static void rotate(const search_t *x, spca_int j, double *b)
{
    spca_int k = x->k, m = 0;
    for (spca_int a = 0; a < k; a++) b[k + a] = (double)x->C[x->row[a] * x->p + j];
    for (; m + 4 <= k; m += 4) {
        const double *u = x->U + m * k, *c = b + k;
        double b0 = 0, b1 = 0, b2 = 0, b3 = 0;
        for (spca_int l = 0; l < k; l++) {
            b0 += u[l] * c[l];
            b1 += u[k + l] * c[l];
            b2 += u[2 * k + l] * c[l];
            b3 += u[3 * k + l] * c[l];
        }
        b[m] = b0, b[m + 1] = b1, b[m + 2] = b2, b[m + 3] = b3;
    }
    for (; m < k; m++) {
        b[m] = 0;
        for (spca_int l = 0; l < k; l++) b[m] += x->U[l + m * k] * b[k + l];
    }
}

/* The largest eigenvalue with j in the place of i if it is above `begin` >= level, else `begin`.
 * It is the root of value - a_jj = q(value), where q is the sum at the top over w as a function of
 * the level.  q falls and is convex, so Newton's method from the left ascends to the root.  b (2k):
 * scratch. */
static double exchanged(const search_t *x, spca_int i, spca_int j, double begin, double *b)
{
    spca_int k = x->k;
    const double *lam = x->eigenvalues, *U = x->U;
    double value = begin;
    rotate(x, j, b);
    for (int step = 0; step < STEPS; step++) {
        double e = fmax(value - lam[0], 0), s = b[0], u = U[i], form = 0, own = 0, t = 0;
        double form_slope = 0, own_slope = 0, t_slope = 0;
        for (spca_int m = 1; m < k; m++) {
            double inverse = 1 / (value - lam[m]), v = U[i + m * k];
            double bb = b[m] * b[m] * inverse, vv = v * v * inverse, vb = v * b[m] * inverse;
            form += bb;
            own += vv;
            t += vb;
            form_slope -= bb * inverse;
            own_slope -= vv * inverse;
            t_slope -= vb * inverse;
        }
        double width = e * own + u * u, above = own * s * s - e * t * t - 2 * u * s * t;
        double width_slope = own + e * own_slope;
        double above_slope = own_slope * s * s - t * t - 2 * e * t * t_slope - 2 * u * s * t_slope;
        double q = form + above / width;
        double slope = form_slope + (above_slope - above / width * width_slope) / width;
        double rise = (q + x->diagonal[j] - value) / (1 - slope);
        if (!(rise > DBL_EPSILON * fabs(value))) break;
        value += rise;
    }
    return value;
}

/* Finds the first of the places, in order, that some candidate may take, x->first (n_leaving:
 * none), and the candidates that may take it.  steep: max_i (N_ii/w)^(1/2). */
static spca_status look(search_t *x, double steep, spca_int count, const spca_int *candidate,
                        spca_stop stop, void *ctx, double *c)
{
    double *t = c + x->k * COLUMNS, *s = t + (x->k + 1) * COLUMNS, *square = s + COLUMNS;
    double gap = x->level - x->eigenvalues[1];
    x->first = x->n_leaving;
    x->count = 0;
    for (spca_int start = 0, next = 0; next < count; start += COLUMNS) {
        spca_int end = min_int(x->p, start + COLUMNS);
        if (candidate[next] >= end) continue;
        if (asked_to_stop(stop, ctx)) return SPCA_STOPPED;
        along(x->k, x->p, x->C, x->row, x->U, start, end, s, square);
        for (; next < count && candidate[next] < end; next++) {
            spca_int j = candidate[next];
            double lead = s[j - start], rest = square[j - start] * (1 + 1e-12) - lead * lead;
            double reach = sqrt(fmax(rest, 0) / gap) + (lead != 0 ? fabs(lead) * steep : 0);
            double left = x->level - x->diagonal[j];
            double room = x->slack * (fabs(left) + fabs(x->level));
            if ((1 + 2 * x->slack) * reach * reach + room < left) continue;
            for (spca_int i = 0; i < x->k; i++)
                c[i * COLUMNS + x->held] = (double)x->C[x->row[i] * x->p + j];
            x->lead[x->held] = lead;
            x->place[x->held++] = j;
            if (x->held == COLUMNS) enter(x, c, t);
        }
    }
    enter(x, c, t);
    return SPCA_OK;
}

spca_status SPCA(exchange)(spca_int p, spca_int k, spca_int n_leaving, const spca_int *leaving,
                           spca_int count, const spca_int *candidate, const real *C,
                           const spca_int *row, const double *diagonal, const double *eigenvalues,
                           const double *U, double level, double slack, double tie, spca_stop stop,
                           void *ctx, double *work, spca_int *iwork, spca_int *first,
                           spca_int *entering, double *value)
{
    double *N = work, *width = N + k * k, *c = width + k, steep = 0;
    double e = fmax(level - eigenvalues[0], 0);
    search_t x = {
        .p = p, .k = k, .C = C, .row = row, .N = N, .U = U, .width = width, .entering = iwork};
    x.leaving = leaving, x.n_leaving = n_leaving;
    x.diagonal = diagonal, x.eigenvalues = eigenvalues;
    x.level = level, x.slack = slack;
    /* N, w of each place, and the largest N_ii/w */
    invert(k, U, eigenvalues, level, N);
    for (spca_int b = 0; b < n_leaving; b++) {
        spca_int i = leaving[b];
        width[b] = e * N[i * k + i] + U[i] * U[i];
        steep = fmax(steep, sqrt(N[i * k + i] / width[b]));
    }
    *value = level;
    /* place after place: the best of those that may enter, by its eigenvalue; rounding may leave
     * none */
    for (*first = 0; *first < n_leaving; ++*first) {
        spca_status status = look(&x, steep, count, candidate, stop, ctx, c);
        if (status < 0) return status;
        *first += x.first;
        for (spca_int a = 0; a < x.count; a++) {
            double least = *value + (*value > level ? tie * fabs(*value) : 0);
            double new = exchanged(&x, x.leaving[x.first], x.entering[a], least, c);
            if (!(new > least)) continue;
            *value = new;
            *entering = x.entering[a];
        }
        if (*value > level || x.first == x.n_leaving) break;
        x.leaving += x.first + 1;
        x.width += x.first + 1;
        x.n_leaving -= x.first + 1;
    }
    return SPCA_OK;
}

/* The eigenvalues of A on a support, descending, and its eigenvectors, the columns of U.  G (k x
 * k), work (k^2 + 27 k): scratch. */
static spca_status decompose(spca_int p, spca_int k, const real *A, const spca_int *index,
                             double *G, double *work, blas_int *blas_work, double *eigenvalues,
                             double *U)
{
    for (spca_int b = 0; b < k; b++)
        for (spca_int a = 0; a <= b; a++)
            G[a + b * k] =
                ((double)A[index[a] * p + index[b]] + (double)A[index[b] * p + index[a]]) / 2;
    for (spca_int b = 0; b < k; b++)
        for (spca_int a = 0; a < b; a++) G[b + a * k] = G[a + b * k];
    return spca_eigen(k, G, work, blas_work, eigenvalues, U);
}

/* The places of a support by increasing |u|, ties in order: whose loading is small is tried first.
 */
static void by_weight(spca_int k, const double *u, spca_int *place)
{
    for (spca_int a = 0; a < k; a++) {
        spca_int b = a;
        for (; b > 0 && fabs(u[place[b - 1]]) > fabs(u[a]); b--) place[b] = place[b - 1];
        place[b] = a;
    }
}

/* Puts j in the place of index_i and keeps the support ascending. */
static void put(spca_int k, spca_int i, spca_int j, spca_int *index)
{
    for (; i > 0 && index[i - 1] > j; i--) index[i] = index[i - 1];
    for (; i < k - 1 && index[i + 1] < j; i++) index[i] = index[i + 1];
    index[i] = j;
}

spca_status SPCA(swap)(spca_int p, spca_int k, const real *A, const double *diagonal, double rise,
                       double gap, double slack, double tie, spca_int most, spca_stop stop,
                       void *ctx, double *work, blas_int *blas_work, spca_int *iwork,
                       spca_int *index, double *vector, double *value, spca_int *made, int *ended)
{
    double *U = work, *eigenvalues = U + k * k, *G = eigenvalues + k, *more = G + k * k;
    spca_int *leaving = iwork, *candidate = leaving + k, *rest = candidate + p, place, entering;
    spca_status status = decompose(p, k, A, index, G, more, blas_work, eigenvalues, U);
    *ended = 0;
    for (*made = 0; status >= 0; ++*made) {
        /* where A is indefinite, the smallest may have a larger magnitude */
        double least = fabs(eigenvalues[k - 1]), new;
        double level = eigenvalues[0] + rise * fmax(fabs(eigenvalues[0]), least);
        spca_int count = 0, left;
        *value = eigenvalues[0];
        for (spca_int a = 0; a < k; a++) vector[a] = U[a];
        if (*made == most || !(level - eigenvalues[1] > gap * fmax(fabs(level), least))) break;
        by_weight(k, U, leaving);
        for (spca_int j = 0, a = 0; j < p; j++)
            if (a < k && index[a] == j)
                a++;
            else
                candidate[count++] = j;
        status =
            SPCA(exchange)(p, k, k, leaving, count, candidate, A, index, diagonal, eigenvalues, U,
                           level, slack, tie, stop, ctx, more, rest, &place, &entering, &new);
        if (status < 0) break;
        *ended = place >= k;
        if (*ended) break;
        left = index[leaving[place]];
        put(k, leaving[place], entering, index);
        status = decompose(p, k, A, index, G, more, blas_work, eigenvalues, U);
        if (status < 0 || eigenvalues[0] > level) continue;
        /* no more than rounding: undo it */
        for (place = 0; index[place] != entering; place++) continue;
        put(k, place, left, index);
        break;
    }
    return status;
}
