/* joint_values.c - loadings under a constraint: values on their supports, and exchanges there.
 *
 * Over the entries of the supports, maximize Tr V'AV where v_t'v_t = 1, and v_s'C v_t = 0 for every
 * two loadings, C = I (orthogonal) or A (uncorrelated).  Let J be the derivatives of these
 * equations.  A step goes along the part of the gradient that J leaves (conjugate directions, Polak
 * & Ribiere 1969), as far as the second derivatives of the Lagrangian tell.  Then steps -J'(JJ')^-1
 * e of least norm bring the errors e to zero (Gauss-Newton).  A step that does not raise the
 * variance is halved.
 *
 * An exchange of units, or a unit that finds room, is tried where a quotient of first and second
 * derivatives promises most. */
#include "joint.h"

#define EXACT 2e-15 /* an equation with no larger error holds */
#define HOLDS 1e-13 /* also, where rounding leaves no less */
/* an equation is entailed by others where less than this share of its diagonal entry of JJ' is left
 */
#define PIVOT 1e-11
#define LONGEST 0.5 /* the longest step */
#define NEAR 3e-3   /* no exchanges are tried from this share below the best on */
#define STILL 1e-12 /* share that a step must gain to be followed by others */
#define RISE 1e-8   /* share by which an exchange raises the variance */
#define TINY 1e-13  /* an entry that counts as zero */
enum { CORRECTIONS = 30, CHORDS = 6, HALVINGS = 8 };
enum { ROUGH = 6, STEPS = 60, TRIED = 16, TRIAL = 3, PASSES = 60 };

/* The number of the equation of loadings s and t. */
static spca_int pair_of(spca_int s, spca_int t)
{
    return s < t ? t * (t + 1) / 2 + s : s * (s + 1) / 2 + t;
}

/* Finds which variables the loadings have, o->used (n_used), and the place of each nonzero there;
 * where they are few, copies A between them. */
static void unite(joint_t *o)
{
    spca_int n = 0;
    for (spca_int i = 0; i < o->p; i++) o->inside[i] = 0;
    for (spca_int t = 0; t < o->r; t++)
        for (spca_int a = 0; a < o->V.nnz[t]; a++) o->inside[o->V.index[t * o->room + a]] = 1;
    for (spca_int i = 0; i < o->p; i++)
        if (o->inside[i]) {
            o->used[n] = i;
            o->inside[i] = n++;
        }
    o->n_used = n;
    for (spca_int t = 0; t < o->r; t++)
        for (spca_int a = 0; a < o->V.nnz[t]; a++)
            o->place[t * o->room + a] = o->inside[o->V.index[t * o->room + a]];
    if (o->p < JOINT_WHOLE * n) return;
    for (spca_int i = 0; i < n; i++) {
        const real *line = o->A + o->used[i] * o->p;
        for (spca_int j = 0; j < n; j++) o->within[i * n + j] = line[o->used[j]];
    }
    o->spent += 2 * (double)n * (double)n;
}

/* W (r x n_used) = the loadings with entries z, and Y = A times these, at the variables in use. */
static void spread(joint_t *o, const double *z, double *W, double *Y)
{
    spca_int n = o->n_used;
    const spca_int *used = o->used;
    for (spca_int j = 0; j < o->r * n; j++) W[j] = 0;
    for (spca_int t = 0; t < o->r; t++) {
        const spca_int *index = o->V.index + t * o->room, *place = o->place + t * o->room;
        const double *x = z + t * o->room;
        double *y = Y + t * n;
        for (spca_int a = 0; a < o->V.nnz[t]; a++) W[t * n + place[a]] = x[a];
        if (o->p < JOINT_WHOLE * n) {
            SPCA(joint_image)(o, o->V.nnz[t], index, x, o->row);
            for (spca_int j = 0; j < n; j++) y[j] = o->row[used[j]];
        } else {
            SPCA(joint_rows)(n, o->within, o->V.nnz[t], place, x, y);
            o->spent += (double)(o->V.nnz[t] * (n + 16 * o->r)) / 2;
        }
    }
}

/* sum of x_a g_j over the nonzeros a of loading t, j its place in g (n_used). */
static double along(const joint_t *o, spca_int t, const double *x, const double *g)
{
    const spca_int *place = o->place + t * o->room;
    double sum = 0;
    for (spca_int a = 0; a < o->V.nnz[t]; a++) sum += x[a] * g[place[a]];
    return sum;
}

/* C times the loadings, but for the weight: W or Y. */
static const double *constrained(const joint_t *o, const double *W, const double *Y)
{
    return o->constraint == JOINT_UNCORRELATED ? Y : W;
}

/* What that is to be multiplied by. */
static double weight(const joint_t *o)
{
    return o->constraint == JOINT_UNCORRELATED ? 1 / o->scale : 1;
}

/* The errors e of the equations at z, for which Q and F become W and Y (spread); returns the
 * largest magnitude. */
static double errors(joint_t *o, const double *z)
{
    const double *G = constrained(o, o->Q, o->F);
    double most = 0, w = weight(o);
    spread(o, z, o->Q, o->F);
    for (spca_int t = 0, e = 0; t < o->r; t++)
        for (spca_int s = 0; s <= t; s++, e++) {
            const double *x = z + t * o->room;
            o->error[e] = s < t ? w * along(o, t, x, G + s * o->n_used)
                                : along(o, t, x, o->Q + t * o->n_used) - 1;
            most = fmax(most, fabs(o->error[e]));
        }
    return most;
}

/* The derivative of the equation of s and t by entry a of loading t; G = constrained(), w =
 * weight(). */
static double derivative(const joint_t *o, const double *G, double w, spca_int s, spca_int t,
                         spca_int a)
{
    spca_int j = o->place[t * o->room + a];
    return s == t ? 2 * o->Q[t * o->n_used + j] : w * G[s * o->n_used + j];
}

/* K = L, JJ' = LL'.  An equation that others entail gets the pivot 0, and is left out. */
static void factor(joint_t *o)
{
    spca_int r = o->r, m = r * (r + 1) / 2;
    const double *G = constrained(o, o->Q, o->F);
    double *K = o->K, *column = o->fit, w = weight(o);
    for (spca_int e = 0; e < m * m; e++) K[e] = 0;
    for (spca_int t = 0; t < r; t++) {
        spca_int n = o->V.nnz[t];
        for (spca_int s = 0; s < r; s++)
            for (spca_int a = 0; a < n; a++) column[s * n + a] = derivative(o, G, w, s, t, a);
        for (spca_int s = 0; s < r; s++)
            for (spca_int u = 0; u <= s; u++) {
                spca_int e = pair_of(s, t), f = pair_of(u, t);
                double sum = 0;
                for (spca_int a = 0; a < n; a++) sum += column[s * n + a] * column[u * n + a];
                K[(e > f ? e * m + f : f * m + e)] += sum;
            }
        o->spent += (double)(4 * r * (r + 1) * n);
    }
    for (spca_int e = 0; e < m; e++) {
        double *row = K + e * m, whole = row[e], left = whole;
        for (spca_int f = 0; f < e; f++) {
            const double *earlier = K + f * m;
            double l = row[f];
            for (spca_int c = o->first[f]; c < f; c++) l -= row[c] * earlier[c];
            row[f] = earlier[f] > 0 ? l / earlier[f] : 0;
            left -= row[f] * row[f];
        }
        o->first[e] = 0;
        while (o->first[e] < e && row[o->first[e]] == 0) o->first[e]++;
        row[e] = left > PIVOT * whole ? sqrt(left) : 0;
    }
    o->spent += (double)(m * m * (m + 40)) / 3;
}

/* b <- (JJ')^-1 b. */
static void solve(const joint_t *o, double *b)
{
    spca_int m = o->r * (o->r + 1) / 2;
    for (spca_int e = 0; e < m; e++) {
        for (spca_int f = o->first[e]; f < e; f++) b[e] -= o->K[e * m + f] * b[f];
        b[e] = o->K[e * m + e] > 0 ? b[e] / o->K[e * m + e] : 0;
    }
    for (spca_int e = m - 1; e >= 0; e--) {
        if (!(o->K[e * m + e] > 0)) continue;
        b[e] /= o->K[e * m + e];
        for (spca_int f = o->first[e]; f < e; f++) b[f] -= o->K[e * m + f] * b[e];
    }
}

/* x -= J'b; returns ||J'b||^2. */
static double subtract_derivatives(const joint_t *o, const double *b, double *x)
{
    const double *G = constrained(o, o->Q, o->F);
    double w = weight(o), square = 0;
    for (spca_int t = 0; t < o->r; t++)
        for (spca_int a = 0; a < o->V.nnz[t]; a++) {
            double sum = 0;
            for (spca_int s = 0; s < o->r; s++)
                sum += b[pair_of(s, t)] * derivative(o, G, w, s, t, a);
            x[t * o->room + a] -= sum;
            square += sum * sum;
        }
    return square;
}

/* x <- the part of x that J leaves, x - J'b; b: the multipliers of the rest. */
static void project(const joint_t *o, double *x, double *b)
{
    const double *G = constrained(o, o->Q, o->F);
    double w = weight(o);
    for (spca_int t = 0, e = 0; t < o->r; t++)
        for (spca_int s = 0; s <= t; s++, e++) {
            b[e] = 0;
            for (spca_int a = 0; a < o->V.nnz[t]; a++)
                b[e] += x[t * o->room + a] * derivative(o, G, w, s, t, a);
            for (spca_int a = 0; s < t && a < o->V.nnz[s]; a++)
                b[e] += x[s * o->room + a] * derivative(o, G, w, t, s, a);
        }
    solve(o, b);
    (void)subtract_derivatives(o, b, x);
}

/* Moves z to a solution of the equations near it; returns 0 where there is none near.  factored: K
 * may be of a point not far away, which is used as long as errors fall fast. */
static int corrected(joint_t *o, double *z, int factored)
{
    double before = (double)INFINITY;
    for (int pass = 0; pass < CORRECTIONS; pass++) {
        double most = errors(o, z);
        if (most <= EXACT) return 1;
        if (!(most < 0.5 * before)) {
            if (most <= HOLDS) return 1;
            if (pass > CHORDS && !(most < 2 * before)) return 0;
        }
        if (!factored || !(most < 0.2 * before)) factor(o);
        factored = 1;
        before = most;
        solve(o, o->error);
        if (!(subtract_derivatives(o, o->error, z) <= 1)) return 0;
    }
    return 0;
}

/* Tr V'AV at z, for which Q and F are set. */
static double variance_at(const joint_t *o, const double *z)
{
    double sum = 0;
    for (spca_int t = 0; t < o->r; t++) sum += along(o, t, z + t * o->room, o->F + t * o->n_used);
    return sum;
}

/* D'HD/2, where H has the second derivatives of the Lagrangian with the multipliers b. */
static double curvature(joint_t *o, const double *D, const double *b)
{
    double *W = o->image, *Y = W + o->r * o->p, w = weight(o), sum = 0;
    const double *G = constrained(o, W, Y);
    spca_int n = o->n_used;
    spread(o, D, W, Y);
    for (spca_int t = 0; t < o->r; t++) {
        const double *d = D + t * o->room;
        sum += along(o, t, d, Y + t * n) - b[pair_of(t, t)] * along(o, t, d, W + t * n);
        for (spca_int s = 0; s < t; s++) sum -= b[pair_of(s, t)] * w * along(o, t, d, G + s * n);
    }
    return sum;
}

/* The inner product of two sets of entries. */
static double inner(const joint_t *o, const double *x, const double *y)
{
    double sum = 0;
    for (spca_int t = 0; t < o->r; t++)
        for (spca_int a = 0; a < o->V.nnz[t]; a++) sum += x[t * o->room + a] * y[t * o->room + a];
    return sum;
}

/* o->moved = z + step D, moved to the equations; returns what that explains, or -1. */
static double moved(joint_t *o, const double *z, double step, const double *D)
{
    for (spca_int t = 0; t < o->r; t++)
        for (spca_int a = t * o->room; a < t * o->room + o->V.nnz[t]; a++)
            o->moved[a] = z[a] + step * D[a];
    return corrected(o, o->moved, 1) ? variance_at(o, o->moved) : -1;
}

/* to = from, the entries of all loadings. */
static void set(const joint_t *o, const double *from, double *to)
{
    for (spca_int t = 0; t < o->r; t++)
        for (spca_int a = t * o->room; a < t * o->room + o->V.nnz[t]; a++) to[a] = from[a];
}

/* At most `steps` conjugate steps from o->V, which solves the equations and explains `value`;
 * returns what it explains then.  Q and F are those of o->V before and after. */
static double climb(joint_t *o, double value, int steps)
{
    double *z = o->V.value, *P = o->gradient, *D = o->direction, *b = o->multiplier;
    double before = 0, reach = 0;
    int still = 0;
    for (int step = 0; step < steps && still < 2; step++) {
        double square, slope, bend, length, new = -1, share = 0;
        /* the gradient, without what J takes */
        factor(o);
        for (spca_int t = 0; t < o->r; t++)
            for (spca_int a = 0; a < o->V.nnz[t]; a++)
                P[t * o->room + a] = 2 * o->F[t * o->n_used + o->place[t * o->room + a]];
        slope = inner(o, P, P);
        project(o, P, b);
        square = inner(o, P, P);
        if (!(square > 1e-20 * slope)) break;
        if (step > 0) {
            project(o, D, o->error);
            share = fmax(0, (square - inner(o, P, o->earlier)) / before);
        }
        /* the conjugate direction, or, where it does not rise, the gradient alone */
        for (int fresh = 0; fresh < 2 && !(new > value); fresh++) {
            if (fresh && share == 0) break;
            if (fresh) share = 0;
            for (spca_int t = 0; t < o->r; t++)
                for (spca_int a = t * o->room; a < t * o->room + o->V.nnz[t]; a++)
                    D[a] = P[a] + (share > 0 ? share * D[a] : 0);
            slope = inner(o, P, D);
            if (!(slope > 0)) continue;
            reach = sqrt(inner(o, D, D));
            bend = curvature(o, D, b);
            length = bend < 0 ? slope / (-2 * bend) : (double)INFINITY;
            length = fmin(length, LONGEST / reach);
            for (int half = 0; half < HALVINGS && !(new > value); half++, length /= 2)
                new = moved(o, z, length, D);
        }
        if (!(new > value)) {
            spread(o, z, o->Q, o->F);
            break;
        }
        still = new - value > STILL *value ? 0 : still + 1;
        value = new;
        set(o, o->moved, z);
        set(o, P, o->earlier);
        before = square;
    }
    return value;
}

/* ---- exchanges ------------------------------------------------------------------------------- */

/* An exchange of units of one loading, and what it promises. */
typedef struct {
    double gain;
    spca_int loading, leaving, entering; /* units; leaving < 0: none leaves */
} exchange_t;

/* How many units there are: variables, where no supports are given. */
static spca_int units_of(const joint_t *o)
{
    return o->of ? o->of->units : o->p;
}

/* The unit of variable i. */
static spca_int unit_of(const joint_t *o, spca_int i)
{
    return o->of ? o->of->unit[i] : i;
}

/* What unit u counts in a cardinality. */
static spca_int size_of(const joint_t *o, spca_int u)
{
    return o->of ? o->of->size[u] : 1;
}

/* Puts an exchange in its place among the TRIED best; returns how many there are. */
static int keep_best(exchange_t *best, int count, exchange_t new)
{
    int b;
    if (count == TRIED && !(new.gain > best[count - 1].gain)) return count;
    b = count < TRIED ? count++ : TRIED - 1;
    for (; b > 0 && best[b - 1].gain * (1 + JOINT_TIES) < new.gain; b--) best[b] = best[b - 1];
    best[b] = new;
    return count;
}

/* Finds the most promising exchanges, by falling gain; returns how many.  With y = half the
 * gradient of the Lagrangian at loading t and m its multiplier, an entry at i gains y_i^2/(m -
 * a_ii), and an entry x_i costs x_i^2 (m - a_ii). */
static int promising(joint_t *o, exchange_t *best)
{
    spca_int p = o->p, r = o->r, units = units_of(o);
    double *gain = o->score, *loss = o->gain, w = weight(o);
    int count = 0;
    for (spca_int t = 0; t < r; t++)
        SPCA(joint_image)(o, o->V.nnz[t], o->V.index + t * o->room, o->V.value + t * o->room,
                          o->image + t * p);
    for (spca_int t = 0; t < r; t++) {
        const spca_int *index = o->V.index + t * o->room;
        double *y = o->row, own = o->multiplier[pair_of(t, t)], least;
        spca_int left = o->size[t];
        for (spca_int i = 0; i < p; i++) y[i] = o->image[t * p + i];
        /* y: half the gradient of the Lagrangian at loading t, without m x */
        for (spca_int s = 0; s < r; s++) {
            double b = o->multiplier[pair_of(s, t)] * w / 2;
            if (s == t) continue;
            if (o->constraint == JOINT_UNCORRELATED)
                for (spca_int i = 0; i < p; i++) y[i] -= b * o->image[s * p + i];
            else
                for (spca_int a = 0; a < o->V.nnz[s]; a++)
                    y[o->V.index[s * o->room + a]] -= b * o->V.value[s * o->room + a];
        }
        /* what units gain or lose, and the room that is left */
        least = 0.1 * fabs(own);
        for (spca_int u = 0; u < units; u++) gain[u] = loss[u] = 0;
        for (spca_int i = 0; i < p; i++) {
            double below = fmax(own - o->diagonal[i], least);
            gain[unit_of(o, i)] += below > 0 ? y[i] * y[i] / below : 0;
            o->inside[i] = 0;
        }
        for (spca_int a = 0; a < o->V.nnz[t]; a++) {
            spca_int u = unit_of(o, index[a]);
            double x = o->V.value[t * o->room + a];
            left -= o->inside[u] ? 0 : size_of(o, u);
            o->inside[u] = 1;
            loss[u] += x * x * fmax(own - o->diagonal[index[a]], least);
        }
        /* units that enter: where there is room, or in the place of another */
        for (spca_int v = 0; v < units; v++) {
            if (o->inside[v] || (o->of && !o->of->allowed[v])) continue;
            if (size_of(o, v) <= left)
                count = keep_best(best, count, (exchange_t){gain[v], t, -1, v});
            for (spca_int a = 0; a < o->V.nnz[t]; a++) {
                spca_int u = unit_of(o, index[a]);
                if ((a > 0 && unit_of(o, index[a - 1]) == u) || (o->of && o->of->included[u]))
                    continue;
                if (size_of(o, v) > left + size_of(o, u)) continue;
                count = keep_best(best, count, (exchange_t){gain[v] - loss[u], t, u, v});
            }
        }
    }
    return count;
}

/* Loading t with one unit for another, whose entries are zero at first; returns 0 where there is no
 * room, or nothing is left. */
static int put(joint_t *o, exchange_t one)
{
    spca_int t = one.loading, n = o->V.nnz[t], found = 0, *index = o->V.index + t * o->room;
    const spca_int *old = o->V.index + (o->r + t) * o->room;
    const double *x = o->V.value + (o->r + t) * o->room;
    double square = 0;
    for (spca_int i = 0, a = 0; i < o->p; i++) {
        spca_int u = unit_of(o, i);
        int in = a < n && old[a] == i;
        if (u == one.entering || (in && u != one.leaving)) {
            if (found == o->room) return 0;
            index[found] = i;
            o->V.value[t * o->room + found] = in ? x[a] : 0;
            square += in ? x[a] * x[a] : 0;
            found++;
        }
        a += in;
    }
    for (spca_int a = 0; a < found; a++)
        o->V.value[t * o->room + a] /= square > 0 ? sqrt(square) : 1;
    o->V.nnz[t] = found;
    return square > 0;
}

/* Copies all loadings from place `from` to place `to`. */
static void copy_loadings(joint_t *o, spca_int from, spca_int to)
{
    for (spca_int t = 0; t < o->r; t++) {
        spca_int n = o->V.nnz[to + t] = o->V.nnz[from + t];
        for (spca_int a = 0; a < n; a++) {
            o->V.index[(to + t) * o->room + a] = o->V.index[(from + t) * o->room + a];
            o->V.value[(to + t) * o->room + a] = o->V.value[(from + t) * o->room + a];
        }
    }
}

/* Moves the loadings to the equations and makes some steps from there; returns what they explain,
 * -1 where there are no solutions near. */
static double feasible_ascent(joint_t *o, int steps)
{
    unite(o);
    if (!corrected(o, o->V.value, 0)) return -1;
    return climb(o, variance_at(o, o->V.value), steps);
}

/* Exchanges of units as long as one of those that are tried raises the variance. */
static spca_status exchange(joint_t *o, double *value)
{
    spca_int r = o->r;
    for (int pass = 0; pass < PASSES; pass++) {
        exchange_t tried[TRIED];
        int count = promising(o, tried), found = 0;
        if (asked_to_stop(o->stop, o->ctx)) return SPCA_STOPPED;
        copy_loadings(o, 0, r);
        for (int b = 0; b < count && !found; b++) {
            double new = put(o, tried[b]) ? feasible_ascent(o, TRIAL) : -1;
            found = new > *value * (1 + RISE);
            if (found)
                *value = climb(o, new, STEPS);
            else
                copy_loadings(o, r, 0);
        }
        if (!found) break;
    }
    return SPCA_OK;
}

spca_status SPCA(joint_settle)(joint_t *o, double bar, double *explained)
{
    spca_status status = SPCA_OK;
    *explained = feasible_ascent(o, ROUGH);
    if (!(*explained > bar * (1 - 3 * NEAR))) return status;
    *explained = climb(o, *explained, STEPS);
    if (*explained > bar * (1 - NEAR)) status = exchange(o, explained);
    for (spca_int t = 0; t < o->r; t++)
        for (spca_int a = t * o->room; a < t * o->room + o->V.nnz[t]; a++)
            if (fabs(o->V.value[a]) < TINY) o->V.value[a] = 0;
    return status;
}
