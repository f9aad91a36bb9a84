/* branch_and_bound.c - what branch and bound asks of one node.
 *
 * max x'Ax over ||x|| = 1 with at most k nonzeros exceeds a level exactly when some principal
 * submatrix N_SS, |S| = k, of N = level I - A is not positive semidefinite.  A node is the supports
 * S = I + T with I given and m = k - |I| members of T to be chosen among the candidates C.
 *
 * 1. Reduction.  N_II = R'R, Y = R^-T N_IC.  N_SS >= 0 for all S of the node when Z_TT >= 0 for
 *    all T, Z = N_CC - Y'Y (Schur complement): a node is a problem of order |C| with m nonzeros.
 * 2. Scaling.  With z = diag Z > 0 and H_jl = -Z_jl/sqrt(z_j z_l), H_jj = 0, that is the same as
 *    lambda_1(H_TT) <= 1, whatever the variances were.
 * 3. Bounds on lambda_1(H_TT) over T.  Let r_j, f_j be the sums of the m - 1 largest |H_jl|,
 *    H_jl^2 of a row, and r-_j, f-_j those of the m - 2 largest.
 *      discs (Gershgorin)    max_j r_j, and the root of max_j of the m - 1 largest |H_jl| r_l;
 *      Frobenius             the root of (m - 1)/m times the m largest f_j, since tr H_TT = 0;
 *      threshold             (m - 1) rho + lambda_1(S(H_CC, rho)), S the soft threshold: of
 *                            H = U + S(H, rho), x'Ux <= rho (||x||_1^2 - 1) for x with m nonzeros
 *                            (d'Aspremont et al. 2007, section 2.4); rho = 0 is lambda_1(H_CC).
 * 4. Elimination.  lambda_1(H_TT) <= 1 for all T that hold j when, d being such a bound for m - 1
 * nonzeros, f_j <= 1 - d                              (bordered: lambda_1 [0 s; s d] <= 1, s^2 =
 * f_j), or r-_l + |H_lj| r_j <= 1 for all l          (discs with the weight r_j for x_j).
 *
 * Moghaddam, Weiss & Avidan (2006), Advances in Neural Information Processing Systems 18, and
 * Berk & Bertsimas (2019), Mathematical Programming Computation 11, branch in this way, with
 * bounds from the eigenvalues and the discs of A itself.
 *
 * Rounding.  1 is the first |I| steps of a Cholesky factorization of N_SS, so the computed Z is
 * that of N + E, |E| <= gamma_{k+1} (|R'||R| bordered by Y), whose entries are at most the largest
 * n_jj of N (Higham 2002, Accuracy and Stability of Numerical Algorithms, theorem 10.3), however
 * ill-conditioned N_II is.  2 and the sums of 3 err by a few m u relative to z_j <= n_jj.  Together
 * that is a matrix of norm at most 8 (k + 4)^2 u max n_jj, and the caller adds more than that to
 * the diagonal of N: then what is ruled out is at most that much above the level.  lambda_1 of
 * order c is bounded by a factorization that exists, and by c (c + 1) u more (theorem 10.7). */
#include "real.h"

enum { OUT = 0, CANDIDATE = 1, IN = 2 };
/* LEVELS: thresholds that are tried.  HALVINGS: of the excess of a bound. */
enum { LEVELS = 4, HALVINGS = 4 };
/* WHOLE: the most candidates whose matrices are factored.  PIVOTS: pivots that are subtracted
 * together. */
enum { WHOLE = 512, PIVOTS = 4 };
/* TILE: rows whose largest entries are found together. */
enum { TILE = 8 };
/* TRIALS: steps by which a vector may show that a matrix is indefinite. */
enum { TRIALS = 4 };

/* A node: its candidates, the matrix H of step 2 and what is known of it. */
typedef struct {
    /* ld: p rounded up to TILEs; m: members to be chosen; count: candidates left */
    spca_int p, ld, m, count;
    spca_int *at;                 /* (p): which variables the candidates are */
    double *H, *z;                /* H (p x ld by rows), symmetric; z (p) = diag Z */
    double *r, *less, *f, *lessf; /* (p): r, r-, f and f- of step 3 */
    double *x;                    /* (p): a vector with a large x'Hx, or zero */
    double *top, *rest;           /* scratch (k TILE) and (p^2) */
    double most;                  /* an excess beyond which no sharper bound is sought */
    spca_stop stop;
    void *ctx;
    int stopped;
} node_t;

/* Whether the caller has said stop, now or before; once it has, it is not asked again. */
static int halted(node_t *node)
{
    return node->stopped = node->stopped || asked_to_stop(node->stop, node->ctx);
}

/* Whether G (n x n; the upper triangle by rows, leading dimension ld) is positive definite, by
 * Cholesky in place.  Rows beyond PIVOTS pivots are read once for all of these, which are
 * subtracted in turn. */
VECTORIZED_TO(int, definite, (spca_int n, spca_int ld, double *G), (n, ld, G))
{
    for (spca_int i = 0; i < n; i += PIVOTS) {
        const spca_int end = min_int(i + PIVOTS, n);
        const double *w = G + i * ld, *x = w + ld, *y = x + ld, *z = y + ld;
        for (spca_int b = i; b < end; b++) {
            double *row = G + b * ld, pivot;
            for (spca_int a = i; a < b; a++)
                subtract_multiple(n - b, G[a * ld + b], G + a * ld + b, row + b);
            pivot = row[b];
            if (!(pivot > 0)) return 0;
            pivot = sqrt(pivot);
            for (spca_int j = b; j < n; j++) row[j] /= pivot;
        }
        for (spca_int l = end; l < n; l++) {
            double *row = G + l * ld, a = w[l], b = x[l], c = y[l], d = z[l];
            if (a == 0 && b == 0 && c == 0 && d == 0) continue;
            for (spca_int j = l; j < n; j++)
                row[j] = (((row[j] - a * w[j]) - b * x[j]) - c * y[j]) - d * z[j];
        }
    }
    return 1;
}

/* top = the s largest |H_lj| w_l over l, descending, for TILE columns j from `first` (H is
 * symmetric: they are rows too); column j has its own lane. */
VECTORIZED(largest_of_tile, (const node_t *node, spca_int first, const double *w, spca_int s),
           (node, first, w, s))
{
    double *top = node->top, *least = top + (s - 1) * TILE;
    for (spca_int a = 0; a < s * TILE; a++) top[a] = 0;
    for (spca_int l = 0; l < node->count; l++) {
        const double *row = node->H + l * node->ld + first;
        double value[TILE];
        int64_t above = 0;
#pragma omp simd reduction(| : above)
        for (int j = 0; j < TILE; j++) {
            value[j] = fabs(row[j]) * w[l];
            above |= value[j] > least[j];
        }
        if (!above) continue;
        for (double *t = top; t <= least; t += TILE)
#pragma omp simd
            for (int j = 0; j < TILE; j++) {
                double larger = t[j] > value[j] ? t[j] : value[j];
                double smaller = t[j] > value[j] ? value[j] : t[j];
                t[j] = larger;
                value[j] = smaller;
            }
    }
}

/* The sum of the s largest of n >= s magnitudes |x_l|.  top (s): scratch. */
static double sum_of_largest(spca_int n, const double *x, spca_int s, double *top)
{
    spca_int have = 0;
    double sum = 0;
    for (spca_int l = 0; l < n; l++) {
        double value = fabs(x[l]);
        spca_int a;
        if (have == s && value <= top[s - 1]) continue;
        have += have < s;
        for (a = have - 1; a > 0 && top[a - 1] < value; a--) top[a] = top[a - 1];
        top[a] = value;
    }
    for (spca_int a = 0; a < s; a++) sum += top[a];
    return sum;
}

/* Step 1: Z into the upper triangle of H, and z.  Returns 0 where N_II is not definite, or the
 * caller stopped. */
static int reduce(spca_int p, spca_int given, const double *N, const spca_int *in, double *R,
                  double *Y, node_t *node)
{
    spca_int c = node->count;
    for (spca_int a = 0; a < given; a++)
        for (spca_int b = a; b < given; b++) R[a * given + b] = N[in[a] * p + in[b]];
    if (!definite(given, given, R)) return 0;
    for (spca_int a = 0; a < given; a++) {
        double *y = Y + a * c;
        for (spca_int j = 0; j < c; j++) y[j] = N[in[a] * p + node->at[j]];
        for (spca_int b = 0; b < a; b++) subtract_multiple(c, R[b * given + a], Y + b * c, y);
        for (spca_int j = 0; j < c; j++) y[j] /= R[a * given + a];
    }
    for (spca_int j = 0; j < c && !halted(node); j++) {
        double *row = node->H + j * node->ld;
        const double *n = N + node->at[j] * p;
        for (spca_int l = j; l < c; l++) row[l] = n[node->at[l]];
        for (spca_int a = 0; a < given; a++)
            subtract_multiple(c - j, Y[a * c + j], Y + a * c + j, row + j);
        node->z[j] = row[j];
    }
    return !node->stopped;
}

/* Step 2: H from the upper triangle of Z; rows with z_j <= 0 become zero. */
static void scale(node_t *node)
{
    spca_int ld = node->ld, c = node->count;
    double *w = node->rest;
    for (spca_int j = 0; j < c; j++) {
        w[j] = node->z[j] > 0 ? 1 / sqrt(node->z[j]) : 0;
        node->x[j] = 0;
    }
    for (spca_int j = 0; j < c; j++) {
        double *row = node->H + j * ld;
        row[j] = 0;
        for (spca_int l = j + 1; l < c; l++) row[l] *= -w[j] * w[l];
        for (spca_int l = j + 1; l < c; l++) node->H[l * ld + j] = row[l];
        for (spca_int l = c; l < ld; l++) row[l] = 0;
    }
}

/* Drops candidate j; the last candidate takes its place in all arrays. */
static void drop(node_t *node, spca_int j)
{
    spca_int ld = node->ld, last = --node->count;
    if (j == last) return;
    node->at[j] = node->at[last];
    node->z[j] = node->z[last];
    node->x[j] = node->x[last];
    for (spca_int l = 0; l < last; l++) node->H[j * ld + l] = node->H[last * ld + l];
    node->H[j * ld + j] = 0;
    for (spca_int l = 0; l < last; l++) node->H[l * ld + j] = node->H[j * ld + l];
}

/* y = S x with S = S(H_CC, rho) and x = node->x; returns x'Sx/x'x, 0 for x = 0. */
VECTORIZED_TO(double, multiply_thresholded, (const node_t *node, double rho, double *restrict y),
              (node, rho, y))
{
    spca_int c = node->count;
    const double *restrict x = node->x;
    double form = 0, square = 0;
    for (spca_int l = 0; l < c; l++) y[l] = 0;
    for (spca_int j = 0; j < c; j++) {
        const double *row = node->H + j * node->ld;
        for (spca_int l = 0; l < c; l++) {
            double over = fabs(row[l]) - rho;
            over = over > 0 ? over : 0;
            y[l] += x[j] * (row[l] > 0 ? over : -over);
        }
    }
    for (spca_int l = 0; l < c; l++) {
        form += x[l] * y[l];
        square += x[l] * x[l];
    }
    return square > 0 ? form / square : 0;
}

/* Whether some x shows that lambda_1(S(H_CC, rho)) > level: the x of an earlier question, or that
 * after a few steps of the power method with S + level I. */
static int exceeds(node_t *node, double level, double rho)
{
    double *x = node->x, *y = node->rest;
    for (int trial = 0; trial < TRIALS; trial++) {
        double size = 0;
        if (multiply_thresholded(node, rho, y) > level) return 1;
        for (spca_int l = 0; l < node->count; l++) {
            y[l] += level * x[l];
            size = fmax(size, fabs(y[l]));
        }
        if (!(size > 0)) return 0;
        for (spca_int l = 0; l < node->count; l++) x[l] = y[l] / size;
    }
    return 0;
}

/* G = the upper triangle of diagonal I - S(H_CC, rho), by rows of c numbers. */
VECTORIZED(subtract_thresholded, (const node_t *node, double diagonal, double rho, double *G),
           (node, diagonal, rho, G))
{
    spca_int c = node->count;
    for (spca_int j = 0; j < c; j++) {
        const double *row = node->H + j * node->ld;
        double *restrict g = G + j * c;
        for (spca_int l = j; l < c; l++) {
            double over = fabs(row[l]) - rho;
            over = over > 0 ? over : 0;
            g[l] = row[l] > 0 ? -over : over;
        }
        g[j] = diagonal;
    }
}

/* Whether step 3 with some threshold shows that lambda_1(H_TT) <= bound: for rho = share/(m - 1),
 * whether lambda_1(S(H_CC, rho)) <= bound - share. */
static int within(node_t *node, double bound)
{
    spca_int c = node->count, s = node->m - 1;
    double rounding = (double)(c * (c + 2)) * DBL_EPSILON * bound;
    for (int level = 0; level < (s > 0 ? LEVELS : 1); level++) {
        double share = bound * (double)level / LEVELS, rho = s > 0 ? share / (double)s : 0;
        if (halted(node)) return 0;
        if (exceeds(node, bound - share, rho)) continue;
        subtract_thresholded(node, bound - share - rounding, rho, node->rest);
        if (definite(c, c, node->rest)) return 1;
    }
    return 0;
}

/* Step 4 with discs: whether r-_l + |H_lj| r_j <= 1 for all l. */
static int discs_within(const node_t *node, spca_int j)
{
    const double *row = node->H + j * node->ld, r = node->r[j];
    for (spca_int l = 0; l < node->count; l++)
        if (!(node->less[l] + fabs(row[l]) * r <= 1)) return 0;
    return 1;
}

/* The candidate to branch on where none is infeasible: the one of largest f_j. */
static spca_int branching(const node_t *node)
{
    spca_int best = 0;
    for (spca_int j = 1; j < node->count; j++)
        if (node->f[j] > node->f[best] ||
            (node->f[j] == node->f[best] && node->at[j] < node->at[best]))
            best = j;
    return best;
}

/* r, r-, f and f- of all candidates, from the m - 1 largest entries of each row. */
static void sum_rows(node_t *node)
{
    spca_int c = node->count, s = node->m - 1;
    double *ones = node->rest;
    for (spca_int j = 0; j < c; j++) ones[j] = 1;
    for (spca_int j = 0; j < c; j++) {
        const double *top = node->top + j % TILE;
        double r = 0, f = 0, last = 0;
        if (j % TILE == 0) largest_of_tile(node, j, ones, s);
        for (spca_int a = 0; a < s; a++) {
            last = top[a * TILE];
            r += last;
            f += last * last;
        }
        node->r[j] = r;
        node->f[j] = f;
        node->less[j] = r - last;
        node->lessf[j] = f - last * last;
    }
}

/* max over j of the sum of the m - 1 largest |H_jl| r_l; its root is a bound (discs). */
static double weighted_disc(node_t *node)
{
    spca_int s = node->m - 1;
    double most = 0;
    for (spca_int j = 0; j < node->count; j++) {
        double sum = 0;
        if (j % TILE == 0) largest_of_tile(node, j, node->r, s);
        for (spca_int a = 0; a < s; a++) sum += node->top[a * TILE + j % TILE];
        most = fmax(most, sum);
    }
    return most;
}

/* A bound on lambda_1(H_TT), after all candidates that step 4 eliminates are dropped; DBL_MAX where
 * no more than m are left, or the caller stopped.  Each elimination makes the bounds smaller, so it
 * is repeated until none is dropped. */
static double bound_after_elimination(node_t *node)
{
    for (;;) {
        spca_int m = node->m, c = node->count, s = m - 1;
        double bound, fewer, disc = 0, disc_less = 0, order = (double)m, *out = node->rest;
        if (c <= m || halted(node)) return DBL_MAX;
        sum_rows(node);
        for (spca_int j = 0; j < c; j++) {
            disc = fmax(disc, node->r[j]);
            disc_less = fmax(disc_less, node->less[j]);
        }
        bound = sqrt((order - 1) / order * sum_of_largest(c, node->f, m, node->top));
        bound = fmin(bound, disc);
        fewer = sqrt((order - 2) / (order - 1) * sum_of_largest(c, node->lessf, s, node->top));
        fewer = fmin(disc_less, fewer);
        if (bound <= 1) return bound;
        for (spca_int j = 0; j < c; j++) out[j] = node->f[j] <= 1 - fewer || discs_within(node, j);
        for (spca_int j = c - 1; j >= 0; j--)
            if (out[j] != 0) drop(node, j);
        if (node->count == c) {
            spca_int first = branching(node);
            if (node->x[first] == 0) node->x[first] = 1;
            return fmin(bound, sqrt(weighted_disc(node)));
        }
    }
}

/* Writes a child: with candidate `with` included or, for with < 0, none; `all`: every candidate is
 * included. */
static void write_child(const node_t *node, spca_int given, const spca_int *in, spca_int with,
                        int all, uint8_t *child)
{
    uint8_t others = all ? IN : node->m == 1 && with >= 0 ? OUT : CANDIDATE;
    for (spca_int i = 0; i < node->p; i++) child[i] = OUT;
    for (spca_int a = 0; a < given; a++) child[in[a]] = IN;
    for (spca_int j = 0; j < node->count; j++) child[node->at[j]] = others;
    if (with >= 0) child[node->at[with]] = IN;
}

/* A candidate with z_j <= 0, where N is not definite on I and j alone; -1 where there is none. */
static spca_int infeasible_candidate(const node_t *node)
{
    for (spca_int j = 0; j < node->count; j++)
        if (!(node->z[j] > 0)) return j;
    return -1;
}

/* Writes the children of one node and returns how many.  known: whether Z is known, i.e. N_II is
 * definite.  Each child has one more candidate included, which is then left out of the next ones:
 * so the children have no support in common.  The last child (of `room`) has all that remains. */
static spca_int divide(node_t *node, spca_int given, const spca_int *in, int known, spca_int room,
                       const spca_int *empty, uint8_t *pool, double *excess)
{
    spca_int children = 0, m = node->m;
    double sharp = DBL_MAX; /* a bound on lambda_1(H_TT) over all candidates that are left */
    for (;;) {
        uint8_t *child = pool + empty[children] * node->p;
        spca_int with = 0;
        int infeasible;
        /* with one member to choose, only j with z_j <= 0 can make N indefinite */
        for (spca_int j = node->count - 1; known && m == 1 && j >= 0; j--)
            if (node->z[j] > 0) drop(node, j);
        if (known) with = infeasible_candidate(node);
        infeasible = with >= 0;
        excess[children] = DBL_MAX;
        if (node->count > m && !infeasible) {
            /* no children where a bound is at most 1; else the smallest bound that is quickly
             * found, halving its excess over 1 */
            double bound = bound_after_elimination(node), widest = 0;
            if (bound <= 1 || node->stopped) return children;
            if (node->count > m) {
                int factored = node->count <= WHOLE, halvings = HALVINGS;
                for (spca_int j = 0; j < node->count; j++) widest = fmax(widest, node->z[j]);
                if (sharp == DBL_MAX) {
                    double half = bound, most = 1 + node->most / widest;
                    for (; half > most && halvings > 0; halvings--) half = (1 + half) / 2;
                    factored = factored && half <= most && (half == bound || within(node, half));
                    if (factored) bound = half;
                }
                if (factored && within(node, 1)) return children;
                for (; halvings > 0 && factored && sharp == DBL_MAX; halvings--) {
                    double half = (1 + bound) / 2;
                    if (!within(node, half)) break;
                    bound = half;
                }
                bound = sharp = fmin(sharp, bound);
                excess[children] = (bound - 1) * widest;
                with = branching(node);
            }
        }
        if (node->stopped) return children;
        /* a single support */
        if (node->count <= m) {
            if (!infeasible && within(node, 1)) return children;
            write_child(node, given, in, -1, 1, child);
            excess[children] = -1;
            return children + 1;
        }
        /* the last child, or one with `with` included */
        if (children == room - 1) {
            write_child(node, given, in, -1, 0, child);
            return room;
        }
        write_child(node, given, in, with, 0, child);
        if (m == 1) excess[children] = -1;
        drop(node, with);
        children++;
    }
}

spca_int spca_branch_work(spca_int p, spca_int k)
{
    return p * (2 * p + TILE) + (k + 6) * p + k * k + k * TILE;
}

spca_status spca_branch(spca_int p, spca_int k, const double *N, double most, spca_int count,
                        const spca_int *which, spca_int room, const spca_int *empty, spca_stop stop,
                        void *ctx, uint8_t *pool, double *work, spca_int *iwork,
                        spca_int *n_children, double *excess)
{
    node_t node = {.p = p, .at = iwork, .most = most, .stop = stop, .ctx = ctx};
    node.ld = (p + TILE - 1) / TILE * TILE;
    spca_int *in = iwork + p;
    double *R = work, *Y = R + k * k;
    node.H = Y + k * p;
    node.rest = node.H + p * node.ld;
    node.z = node.rest + p * p;
    node.r = node.z + p;
    node.less = node.r + p;
    node.f = node.less + p;
    node.lessf = node.f + p;
    node.x = node.lessf + p;
    node.top = node.x + p;
    for (spca_int b = 0; b < count; b++) {
        const uint8_t *state = pool + which[b] * p;
        spca_int given = 0;
        int known;
        node.count = 0;
        for (spca_int i = 0; i < p; i++) {
            if (state[i] == IN) in[given++] = i;
            if (state[i] == CANDIDATE) node.at[node.count++] = i;
        }
        node.m = k - given;
        known = reduce(p, given, N, in, R, Y, &node);
        if (node.stopped) return SPCA_STOPPED;
        if (known) scale(&node);
        n_children[b] =
            divide(&node, given, in, known, room, empty + b * room, pool, excess + b * room);
        if (halted(&node)) return SPCA_STOPPED;
    }
    return SPCA_OK;
}
