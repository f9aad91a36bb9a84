/* ascent.c - orthomax rotations of many rows: all pairs of columns are turned at once.
 *
 * A planar rotation of the pair (a, b) by phi changes the criterion by Re((exp(-4i phi) - 1)(D +
 * iN))/4 (rotate.c).  So N_ab is its derivative, and -4 D_ab its second derivative.  One read of
 * the rows, which are rotated in tiles and summed (moments.c), gives N and D of all pairs: the
 * gradient on the orthogonal group and the diagonal of the Hessian.  Hence a step of the
 * limited-memory BFGS method (Nocedal & Wright 2006, Numerical Optimization, algorithm 7.4) from
 * the inverse Hessian 1/(4|D + iN|).  It gives angles phi_ab, which are made one after the other as
 * planar rotations; that is a retraction.  In simple structure the Hessian is close to its
 * diagonal, and from a good start three or four reads suffice.
 *
 * The start is the rotation of the rows of largest norm, which decide a sum of fourth powers.  If
 * it is not better than no rotation, or if a step does not ascend, a sweep of planar rotations over
 * the rows takes its place; that always ascends.
 *
 * Steps are found in single precision for double too, in tiles whose sums are added in double; the
 * rows are only read.  At rest, the rows are rotated.  Whether all pairs of the rotated rows rest
 * is decided with the rounding of N, NOISE times the energy of the pair, counted against it.  Where
 * that leaves a doubt, all sums are in double from then on.  Columns so far below the others that
 * their fourth powers would be lost are left to sweeps, which scale each pair. */
#include "passes.h"
#include "planar.h"
#include <string.h>

#define MEMORY 8
#define SUBSET_SWEEPS 40
#define NOISE 0x1p-23
#define FAINT 0x1p-80 /* fourth powers below this, where the largest entry is near 1, are lost */

/* How many rows the start is found from. */
static spca_int subset_rows(spca_int p, spca_int r)
{
    return min_int(p / 20, 400 * r) > 20 * r ? min_int(p / 20, 400 * r) : 20 * r;
}

/* Rows of the start come from every s-th tile: s, so that 40 candidates stand for one row that is
 * taken. */
static spca_int tile_stride(spca_int p, spca_int r)
{
    spca_int stride = p / (40 * subset_rows(p, r));
    return stride > 1 ? stride : 1;
}

/* The most rows that every s-th tile has together. */
static spca_int candidates(spca_int p, spca_int r)
{
    return (p / SPCA_TILE / tile_stride(p, r) + 1) * SPCA_TILE;
}

/* ---- passes --------------------------------------------------------------------------------- */

/* x'y. */
static double inner(spca_int n, const double *restrict x, const double *restrict y)
{
    double sum = 0;
#pragma omp simd reduction(+ : sum)
    for (spca_int i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* C = A'B, all r x r by columns. */
static void cross(spca_int r, const double *A, const double *B, double *C)
{
    for (spca_int b = 0; b < r; b++)
        for (spca_int a = 0; a < r; a++) C[b * r + a] = inner(r, A + a * r, B + b * r);
}

/* A pass: the criterion, and N, D and energy of all pairs, for the rotation R. */
static spca_status evaluate(state_t *s, pass_t pass, const double *R)
{
    spca_int r = s->r, q = 0;
    spca_status status;
    cross(r, s->done, R, s->local);
    status = SPCA(sum_moments)(s, pass);
    if (status < 0) return status;
    if (pass == ROTATE || pass == PRECISE) memcpy(s->done, R, (size_t)(r * r) * sizeof(double));
    if (pass != PRECISE && s->share > 0) {
        cross(r, s->G0, R, s->half);
        cross(r, R, s->half, s->G);
    }
    s->f = s->level = 0;
    s->faint = 0;
    for (spca_int a = 0; a < r; a++) {
        double sa = s->S[a * r + a], ga = s->G[a * r + a];
        s->f += s->part * sa - s->share * ga * ga;
        s->level += sa;
        for (spca_int b = a + 1; b < r; b++, q++) {
            double sb = s->S[b * r + b], sab = s->S[a * r + b], v = s->G[a * r + b];
            double u = ga - s->G[b * r + b];
            s->energy[q] = sa + sb + 2 * sab;
            s->D[q] = s->part * (sa + sb - 6 * sab) - s->share * (u - 2 * v) * (u + 2 * v);
            s->N[q] = 4 * (s->part * s->U[a * r + b] - s->share * u * v);
            if (s->energy[q] < FAINT) {
                s->energy[q] = s->D[q] = s->N[q] = 0;
                s->faint = 1;
            }
            s->level += 2 * sab;
        }
    }
    return s->level <= DBL_MAX ? SPCA_OK : SPCA_NONFINITE; /* |f| is below p times that */
}

/* The power of two that brings the largest entry among every stride-th tile near 1; 0 where there
 * is none, or all are subnormal. */
static double unit(const state_t *s, spca_int stride)
{
    real top = 0;
    int exponent, least = sizeof(real) == sizeof(float) ? FLT_MIN_EXP : DBL_MIN_EXP;
    for (spca_int a = 0; a < s->r; a++)
        for (spca_int start = 0; start < s->p; start += stride * SPCA_TILE)
            top = fmax(
                top, largest_magnitude(min_int(SPCA_TILE, s->p - start), s->Y + a * s->p + start));
    (void)frexp((double)top, &exponent);
    return top > 0 && exponent > least ? ldexp(1.0, -exponent) : 0;
}

/* Copies rows of large norm to subset (by columns); returns how many.  They are the largest among
 * every stride-th tile; where more of them tie, as when all are equal, every second, third, ... of
 * these is taken. */
static spca_int gather(const state_t *s, spca_int stride, spca_int room, float *norm, float *work,
                       spca_int *index, real *subset)
{
    spca_int rows = 0, count = 0, seen = 0, chosen = 0, every, ties;
    float bound;
    place_t at = place_of(s, 0);
    for (spca_int start = 0; start < s->p; start += stride * SPCA_TILE) {
        spca_int n = min_int(SPCA_TILE, s->p - start);
        SPCA(load_single)(s, start, n, (float *)at.y);
        (void)spca_stile_norms(s->r, (float *)at.y, (float *)at.square);
        memcpy(norm + rows, at.square, (size_t)n * sizeof(float));
        rows += n;
    }
    bound = spca_skth_largest(rows, norm, room, work, &ties);
    for (spca_int i = 0; i < rows; i++) count += norm[i] >= bound;
    every = (count + room - 1) / room;
    for (spca_int i = 0; i < rows; i++)
        if (norm[i] >= bound && seen++ % every == 0)
            index[chosen++] = i / SPCA_TILE * stride * SPCA_TILE + i % SPCA_TILE;
    for (spca_int a = 0; a < s->r; a++)
        for (spca_int k = 0; k < chosen; k++) subset[a * chosen + k] = s->Y[a * s->p + index[k]];
    return chosen;
}

/* ---- steps ---------------------------------------------------------------------------------- */

typedef struct {
    int surely, maybe; /* whether all pairs rest, whatever the rounding; and but for rounding */
    int saddle;        /* whether all pairs that do not rest are at minima */
} rest_t;

/* Whether all pairs rest, with the rounding of N for and against it. */
static rest_t pairs_at_rest(const state_t *s, pass_t pass, double tol)
{
    rest_t rest = {1, 1, 1};
    for (spca_int q = 0; q < s->pairs; q++) {
        double E = s->energy[q], noise = pass == PRECISE ? 0 : NOISE * E;
        double N = fmax(fabs(s->N[q]) - noise, 0);
        if (rests(s->D[q], s->N[q], noise, E, tol)) continue;
        rest.surely = 0;
        if (rests(s->D[q], N, 0, E, tol)) continue;
        rest.maybe = 0;
        if (s->D[q] >= 0) rest.saddle = 0;
    }
    return rest;
}

/* 4 |D + iN|, bounded from below: minus the second derivative at the maximum over one pair. */
static double stiffness(const state_t *s, spca_int q)
{
    return 4 * fmax(hypot(s->D[q], s->N[q]), 1e-3 * s->energy[q]);
}

/* sum of N^2/(2 stiffness): what a step by the diagonal of the Hessian would gain. */
static double expected_gain(const state_t *s)
{
    double sum = 0;
    for (spca_int q = 0; q < s->pairs; q++)
        if (s->energy[q] > 0) sum += s->N[q] * s->N[q] / stiffness(s, q);
    return sum / 2;
}

/* The angles of the next step, by the two loops of BFGS; `kept` differences of angles and gradients
 * are in the rings X and V.  The largest angle is at most 1/2. */
static void direction(const state_t *s, spca_int kept, spca_int newest, const double *X,
                      const double *V, double *angle)
{
    spca_int n = s->pairs;
    double c[MEMORY], largest = 0;
    memcpy(angle, s->N, (size_t)n * sizeof(double));
    for (spca_int k = 0; k < kept; k++) {
        spca_int at = (newest - k + MEMORY) % MEMORY;
        const double *x = X + at * n, *v = V + at * n;
        c[k] = inner(n, x, angle) / inner(n, x, v);
        for (spca_int q = 0; q < n; q++) angle[q] -= c[k] * v[q];
    }
    for (spca_int q = 0; q < n; q++)
        if (kept == 0 && s->D[q] < 0)
            angle[q] = atan2(s->N[q], s->D[q]) / 4;
        else
            angle[q] = s->energy[q] > 0 ? angle[q] / stiffness(s, q) : 0;
    for (spca_int k = kept - 1; k >= 0; k--) {
        spca_int at = (newest - k + MEMORY) % MEMORY;
        const double *x = X + at * n, *v = V + at * n;
        double d = c[k] - inner(n, v, angle) / inner(n, x, v);
        for (spca_int q = 0; q < n; q++) angle[q] += d * x[q];
    }
    for (spca_int q = 0; q < n; q++) largest = fmax(largest, fabs(angle[q]));
    if (largest > 0.5)
        for (spca_int q = 0; q < n; q++) angle[q] *= 0.5 / largest;
}

/* R <- R times the planar rotations by angle_ab, pair after pair. */
static void turn_all(spca_int r, const double *angle, double *R)
{
    for (spca_int a = 0; a < r; a++)
        for (spca_int b = a + 1; b < r; b++, angle++)
            SPCA(turn_pair)(0, r, cos(*angle), sin(*angle), NULL, NULL, R + a * r, R + b * r);
}

/* ---- the iteration -------------------------------------------------------------------------- */

/* A search for the rotation. */
typedef struct {
    state_t s;
    float *norm, *work;
    spca_int *index;
    real *subset;
    double *before, *slope, *angle; /* R and N before the step, and the angles of the step */
    double *X, *V;                  /* rings of differences of angles, and of -N */
    spca_int kept, newest;          /* how many differences there are, and where the newest is */
    double gamma, tol, *R;
    spca_int max_iter, *n_iter;
    pass_t pass, usual; /* the pass that made the sums as they are, and the usual next one */
    /* the square root of the factor by which the last step lowered the expected gain */
    double shrink;
} search_t;

/* Cuts work into the arrays of a search; *used: their length. */
static search_t lay_out(spca_int p, spca_int r, double *work, spca_int *used)
{
    search_t m;
    spca_int n = r * r, pairs = r * (r - 1) / 2, size = (spca_int)sizeof(real), place;
    (void)place_in(r, NULL, &place);
    memset(&m, 0, sizeof m);
    *used = 0;
    m.s.done = take(work, used, n);
    m.s.local = take(work, used, n);
    m.s.G0 = take(work, used, n);
    m.s.G = take(work, used, n);
    m.s.S = take(work, used, n);
    m.s.U = take(work, used, n);
    m.s.half = take(work, used, n);
    m.s.N = take(work, used, pairs);
    m.s.D = take(work, used, pairs);
    m.s.energy = take(work, used, pairs);
    m.before = take(work, used, n);
    m.slope = take(work, used, pairs);
    m.angle = take(work, used, pairs);
    m.X = take(work, used, MEMORY * pairs);
    m.V = take(work, used, MEMORY * pairs);
    m.norm = (float *)take(work, used, candidates(p, r) / 2);
    m.work = (float *)take(work, used, candidates(p, r) / 2);
    m.index = (spca_int *)take(work, used, subset_rows(p, r));
    m.subset = (real *)take(work, used, subset_rows(p, r) * r * size / 8 + 1);
    m.s.scratch = take(work, used, places(p) * place);
    return m;
}

/* Whether planar sweeps alone take less time. */
static int few_rows(spca_int p, spca_int r)
{
    return r == 1 || p < 4096 || p < 80 * r;
}

spca_int SPCA(orthomax_work)(spca_int p, spca_int r)
{
    spca_int used = 1;
    if (!few_rows(p, r)) (void)lay_out(p, r, NULL, &used);
    return used;
}

/* At most `most` sweeps of planar rotations of the rows. */
static spca_status sweeps(search_t *m, spca_int most)
{
    state_t *s = &m->s;
    return SPCA(planar_sweeps)(s->p, s->r, m->gamma, most, m->tol, s->stop, s->ctx, s->Y, m->R,
                               m->n_iter);
}

/* Rotates the rows by what of R is still to apply. */
static spca_status finish(search_t *m)
{
    state_t *s = &m->s;
    if (memcmp(s->done, m->R, (size_t)(s->r * s->r) * sizeof(double)) == 0) return SPCA_OK;
    return evaluate(s, ROTATE, m->R);
}

/* R <- the rotation of the rows of largest norm, with its sums.  Where it is no better than none, R
 * <- I and *better = 0. */
static spca_status start(search_t *m, int *better)
{
    state_t *s = &m->s;
    spca_int r = s->r, stride = tile_stride(s->p, r), ignored = 0;
    spca_int chosen =
        gather(s, stride, subset_rows(s->p, r), m->norm, m->work, m->index, m->subset);
    double unrotated;
    spca_status status = SPCA(planar_sweeps)(chosen, r, m->gamma, SUBSET_SWEEPS, fmax(m->tol, 1e-4),
                                             s->stop, s->ctx, m->subset, m->R, &ignored);
    if (status < 0) return status;
    status = evaluate(s, START, m->R);
    if (status == SPCA_STOPPED) return status;
    if (status == SPCA_NONFINITE || s->level > 0x1p100) {
        s->range = unit(s, 1); /* the largest rows are in tiles that were left out */
        status = evaluate(s, START, m->R);
    }
    if (status < 0) return status;
    unrotated = s->part * s->fourth;
    for (spca_int a = 0; a < r; a++) unrotated -= s->share * s->G0[a * r + a] * s->G0[a * r + a];
    *better = !(s->f <= unrotated + 1e-6 * s->level);
    if (!*better) memcpy(m->R, s->done, (size_t)(r * r) * sizeof(double));
    return SPCA_OK;
}

/* Makes one sweep over the rows, and the sums after it; SPCA_OK means that no pair was turned. */
static spca_status sweep_once(search_t *m)
{
    state_t *s = &m->s;
    spca_status status = finish(m);
    if (status < 0) return status;
    status = sweeps(m, 1);
    if (status <= 0) return status;
    memcpy(s->done, m->R, (size_t)(s->r * s->r) * sizeof(double));
    m->kept = 0;
    status = evaluate(s, m->pass = m->usual, m->R);
    return status < 0 ? status : SPCA_NOT_CONVERGED;
}

/* Adds the angles of the step to the ring X and the change of -N to V, where their product is
 * clearly positive. */
static void remember(search_t *m)
{
    spca_int n = m->s.pairs, next = (m->newest + 1) % MEMORY;
    double *x = m->X + next * n, *v = m->V + next * n;
    memcpy(x, m->angle, (size_t)n * sizeof(double));
    for (spca_int q = 0; q < n; q++) v[q] = m->slope[q] - m->s.N[q];
    if (!(inner(n, x, v) > 1e-10 * sqrt(inner(n, x, x) * inner(n, v, v)))) return;
    m->newest = next;
    m->kept = m->kept < MEMORY ? m->kept + 1 : MEMORY;
}

/* Makes a quasi-Newton step, or a quarter of it; *ascended = 0 where neither ascends.  Where single
 * precision cannot decide that, the sums are in double from then on. */
static spca_status step(search_t *m, int *ascended)
{
    state_t *s = &m->s;
    spca_int n = s->pairs;
    size_t matrix = (size_t)(s->r * s->r) * sizeof(double);
    double f = s->f, left = expected_gain(s), gain;
    direction(s, m->kept, m->newest, m->X, m->V, m->angle);
    gain = inner(n, s->N, m->angle);
    memcpy(m->before, m->R, matrix);
    memcpy(m->slope, s->N, (size_t)n * sizeof(double));
    *ascended = 1;
    for (int attempt = 0; attempt < 2 && *m->n_iter < m->max_iter; attempt++) {
        double noise = s->level * (m->usual == PRECISE ? 1e-14 : 1e-7), now;
        int last = left * m->shrink * m->shrink <= m->tol * m->tol * s->level;
        spca_status status;
        turn_all(s->r, m->angle, m->R);
        ++*m->n_iter;
        m->pass = m->usual == TRIAL && last ? ROTATE : m->usual;
        status = evaluate(s, m->pass, m->R);
        if (status < 0) return status;
        now = expected_gain(s);
        if (gain > noise ? s->f > f : now < left) {
            m->shrink = sqrt(now / left);
            remember(m);
            return SPCA_OK;
        }
        memcpy(m->R, m->before, matrix);
        if (gain <= noise && m->usual == TRIAL) {
            m->kept = 0;
            return evaluate(s, m->pass = m->usual = PRECISE, m->R);
        }
        gain /= 4;
        for (spca_int q = 0; q < n; q++) m->angle[q] /= 4;
    }
    *ascended = 0;
    return SPCA_OK;
}

/* Makes steps, or sweeps where a step does not ascend, until all pairs rest. */
static spca_status ascend(search_t *m)
{
    state_t *s = &m->s;
    int ascended;
    spca_status status;
    memcpy(s->done, m->R, (size_t)(s->r * s->r) * sizeof(double));
    s->range = unit(s, tile_stride(s->p, s->r));
    if (s->range == 0) s->range = unit(s, 1);
    if (s->range == 0) return sweeps(m, m->max_iter);
    status = start(m, &ascended);
    while (status >= 0 && *m->n_iter < m->max_iter) {
        rest_t rest = pairs_at_rest(s, m->pass, m->tol);
        if (ascended && rest.surely && m->pass > TRIAL)
            return s->faint ? sweeps(m, m->max_iter - *m->n_iter) : SPCA_OK;
        if (ascended && rest.maybe) { /* whether the pairs of the rotated rows rest too */
            m->usual = rest.surely ? m->usual : PRECISE;
            m->pass = rest.surely ? ROTATE : PRECISE;
            status = evaluate(s, m->pass, m->R);
        } else if (!ascended || rest.saddle) {
            status = sweep_once(m);
            if (status == SPCA_OK) return status;
            ascended = 1;
        } else
            status = step(m, &ascended);
    }
    if (status >= 0) status = finish(m);
    return status < 0 ? status : SPCA_NOT_CONVERGED;
}

spca_status SPCA(orthomax)(spca_int p, spca_int r, double gamma, spca_int max_iter, double tol,
                           spca_run run, spca_stop stop, void *ctx, real *Y, double *work,
                           double *R, spca_int *n_iter)
{
    spca_int used;
    search_t m;
    for (spca_int i = 0; i < r * r; i++) R[i] = i % (r + 1) == 0;
    *n_iter = 0;
    if (r == 1) return SPCA_OK;
    if (max_iter == 0) return SPCA_NOT_CONVERGED;
    if (few_rows(p, r))
        return SPCA(planar_sweeps)(p, r, gamma, max_iter, tol, stop, ctx, Y, R, n_iter);
    m = lay_out(p, r, work, &used);
    m.s.p = p;
    m.s.r = r;
    m.s.pairs = r * (r - 1) / 2;
    m.s.part = 1 / (1 + gamma);
    m.s.share = gamma / (1 + gamma) / (double)p;
    m.s.run = run;
    m.s.stop = stop;
    m.s.ctx = ctx;
    m.s.Y = Y;
    m.gamma = gamma;
    m.tol = tol;
    m.R = R;
    m.max_iter = max_iter;
    m.n_iter = n_iter;
    m.pass = START;
    m.usual = TRIAL;
    m.shrink = 0.05;
    memset(m.s.G, 0, (size_t)(r * r) * sizeof(double));
    return ascend(&m);
}
