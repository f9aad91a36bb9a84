/* unit_net.c - the elastic net by units and signs, at a level and by a cardinality.
 *
 * For K = G + ridge I and products c it minimizes over b of the given signs
 *
 *     b'Kb - 2 c'b + 2 t sum ||b_u||,   u the units that are not included,
 *
 * by turns: proximal steps, one unit after the other, which say which entries are zero, and Newton
 * steps for the other entries, which are exact where units are single variables. */
#include "real.h"

#define ENDED 1e-9 /* a share of c, or of a level, that no longer counts */
enum { ROUNDS = 1000, BISECTIONS = 60 };

/* The problem, and scratch. */
typedef struct {
    const spca_supports *o;
    const double *K, *c;
    double enough;
    double *r, *rest, *trial, *d, *slope, *norm, *step, *H;
    spca_int *first, *member, *index; /* member: the variables of unit u from first[u] on; index:
                                         entries that are not zero */
    spca_stop stop;
    void *ctx;
} net_t;

spca_int spca_unit_net_work(const spca_supports *o)
{
    return o->p * o->p + 5 * o->p + 2 * o->units;
}

/* Cuts the work, lists the variables of each unit, and finds the steps: ||K_uu|| or more. */
static net_t net_of(const spca_supports *o, const double *K, const double *c, spca_stop stop,
                    void *ctx, double *work, spca_int *iwork)
{
    spca_int p = o->p, m = o->units;
    net_t net = {.o = o, .K = K, .c = c, .stop = stop, .ctx = ctx};
    net.r = work;
    net.rest = net.r + p;
    net.trial = net.rest + p;
    net.d = net.trial + p;
    net.slope = net.d + p;
    net.norm = net.slope + p;
    net.step = net.norm + m;
    net.H = net.step + m;
    net.first = iwork;
    net.member = iwork + m + 1;
    net.index = net.member + p;
    net.enough = ENDED * largest_magnitude(p, c);
    for (spca_int u = 0; u <= m; u++) net.first[u] = 0;
    for (spca_int j = 0; j < p; j++) net.first[o->unit[j] + 1]++;
    for (spca_int u = 0; u < m; u++) net.first[u + 1] += net.first[u];
    for (spca_int j = p - 1; j >= 0; j--) net.member[--net.first[o->unit[j] + 1]] = j;
    for (spca_int u = 0; u < m; u++) net.first[u] = net.first[u + 1];
    net.first[m] = p;
    /* no eigenvalue of K_uu is larger than the largest sum of magnitudes of a row */
    for (spca_int u = 0; u < m; u++) {
        net.step[u] = 0;
        for (spca_int a = net.first[u]; a < net.first[u + 1]; a++) {
            const double *row = K + net.member[a] * p;
            double sum = 0;
            for (spca_int b = net.first[u]; b < net.first[u + 1]; b++)
                sum += fabs(row[net.member[b]]);
            net.step[u] = fmax(net.step[u], sum);
        }
    }
    return net;
}

/* r = c - K b. */
static void residual(const net_t *net, const double *b, double *r)
{
    spca_int p = net->o->p;
    for (spca_int j = 0; j < p; j++) r[j] = net->c[j];
    for (spca_int j = 0; j < p; j++)
        if (b[j] != 0) subtract_multiple(p, b[j], net->K + j * p, r);
}

/* What is minimized, at b. */
static double objective(const net_t *net, double level, const double *b)
{
    const spca_supports *o = net->o;
    double value = 0;
    residual(net, b, net->rest);
    spca_unit_norms(o, b, net->norm);
    for (spca_int j = 0; j < o->p; j++) value -= b[j] * (net->c[j] + net->rest[j]);
    for (spca_int u = 0; u < o->units; u++)
        if (!o->included[u]) value += 2 * level * net->norm[u];
    return value;
}

/* A proximal step for each unit in turn; returns the largest change, times its step. */
static double sweep(const net_t *net, double level, double *b)
{
    const spca_supports *o = net->o;
    double most = 0;
    residual(net, b, net->r);
    for (spca_int u = 0; u < o->units; u++) {
        double step = net->step[u], square = 0, share = 1;
        const spca_int *member = net->member + net->first[u];
        spca_int n = net->first[u + 1] - net->first[u];
        if (!o->allowed[u] || !(step > 0)) continue;
        for (spca_int a = 0; a < n; a++) {
            spca_int j = member[a];
            double x = b[j] + net->r[j] / step;
            if (o->signs && x * o->signs[j] < 0) x = 0;
            net->d[a] = x;
            square += x * x;
        }
        if (!o->included[u] && square > 0) share = fmax(0, 1 - level / (step * sqrt(square)));
        for (spca_int a = 0; a < n; a++) {
            spca_int j = member[a];
            double moved = share * net->d[a] - b[j];
            if (moved == 0) continue;
            subtract_multiple(o->p, moved, net->K + j * o->p, net->r);
            b[j] = share * net->d[a];
            most = fmax(most, step * fabs(moved));
        }
    }
    return most;
}

/* H: half the Hessian for the entries that are not zero, factored, and slope: b_u/||b_u|| there.
 * Returns how many there are, or -1 where H is not definite. */
static spca_int curvature(const net_t *net, double level, const double *b)
{
    const spca_supports *o = net->o;
    double most = 0, *H = net->H;
    spca_int s = 0;
    spca_unit_norms(o, b, net->norm);
    for (spca_int j = 0; j < o->p; j++) {
        if (b[j] == 0) continue;
        net->slope[s] = o->included[o->unit[j]] ? 0 : b[j] / net->norm[o->unit[j]];
        net->index[s++] = j;
        most = fmax(most, net->K[j * (o->p + 1)]);
    }
    for (spca_int a = 0; a < s; a++) {
        double *row = H + a * s;
        spca_int j = net->index[a], u = o->unit[j];
        for (spca_int i = 0; i <= a; i++) {
            row[i] = net->K[j * o->p + net->index[i]];
            if (o->unit[net->index[i]] == u && !o->included[u])
                row[i] += level / net->norm[u] * ((i == a) - net->slope[a] * net->slope[i]);
        }
        row[a] += 8 * DBL_EPSILON * (double)s * most;
        for (spca_int i = 0; i < a; i++)
            row[i] = (row[i] - strands_dot(i, row, H + i * s)) / H[i * (s + 1)];
        row[a] -= strands_dot(a, row, row);
        if (!(row[a] > 0)) return -1;
        row[a] = sqrt(row[a]);
    }
    return s;
}

/* x <- H^-1 x. */
static void solve(const net_t *net, spca_int s, double *x)
{
    for (spca_int i = 0; i < s; i++)
        x[i] = (x[i] - strands_dot(i, net->H + i * s, x)) / net->H[i * (s + 1)];
    for (spca_int i = s - 1; i >= 0; i--) {
        x[i] /= net->H[i * (s + 1)];
        subtract_multiple(i, x[i], net->H + i * s, x);
    }
}

/* A Newton step for the entries that are not zero, halved until the objective does not rise; it
 * ends where the first entry would change its sign. */
static void newton(const net_t *net, double level, double *b)
{
    const spca_supports *o = net->o;
    double length = 1, before, *d = net->d;
    spca_int s = curvature(net, level, b);
    if (s <= 0) return;
    residual(net, b, net->r);
    for (spca_int i = 0; i < s; i++) d[i] = net->r[net->index[i]] - level * net->slope[i];
    solve(net, s, d);
    for (spca_int i = 0; i < s; i++) { /* slope_i: the length at which entry i is zero */
        spca_int j = net->index[i], u = o->unit[j];
        int alone = net->first[u + 1] - net->first[u] == 1 && !o->included[u];
        int kept = alone || (o->signs && o->signs[j]);
        net->slope[i] = kept && d[i] * b[j] < 0 ? -b[j] / d[i] : DBL_MAX;
        length = fmin(length, net->slope[i]);
    }
    before = objective(net, level, b);
    for (; length > DBL_EPSILON; length /= 2) {
        for (spca_int j = 0; j < o->p; j++) net->trial[j] = b[j];
        for (spca_int i = 0; i < s; i++)
            net->trial[net->index[i]] =
                net->slope[i] <= length ? 0 : b[net->index[i]] + length * d[i];
        if (objective(net, level, net->trial) > before + 8 * DBL_EPSILON * fabs(before)) continue;
        for (spca_int j = 0; j < o->p; j++) b[j] = net->trial[j];
        return;
    }
}

/* b <- the minimizer at a level, from b. */
static spca_status minimize(const net_t *net, double level, double *b)
{
    spca_project_units(net->o, b);
    for (spca_int round = 0; round < ROUNDS; round++) {
        if (asked_to_stop(net->stop, net->ctx)) return SPCA_STOPPED;
        if (sweep(net, level, b) <= net->enough) return SPCA_OK;
        newton(net, level, b);
    }
    return SPCA_NOT_CONVERGED;
}

spca_status spca_unit_net(const spca_supports *o, const double *K, const double *c, double level,
                          spca_stop stop, void *ctx, double *work, spca_int *iwork, double *b)
{
    net_t net = net_of(o, K, c, stop, ctx, work, iwork);
    return minimize(&net, level, b);
}

/* ---- the lowest level of a cardinality ------------------------------------------------------ */

/* The cardinality of b together with what is included. */
static spca_int count_of(const net_t *net, const double *b)
{
    const spca_supports *o = net->o;
    spca_int count = 0;
    spca_unit_norms(o, b, net->norm);
    for (spca_int u = 0; u < o->units; u++)
        if (o->included[u] || net->norm[u] > 0) count += o->size[u];
    return count;
}

/* The largest norm of r + shift w on a unit outside of b, without entries of wrong signs. */
static double largest_outside(const net_t *net, const double *r, double shift, const double *w)
{
    const spca_supports *o = net->o;
    double most = 0;
    for (spca_int u = 0; u < o->units; u++) {
        double square = 0;
        if (!o->allowed[u] || o->included[u] || net->norm[u] > 0) continue;
        for (spca_int a = net->first[u]; a < net->first[u + 1]; a++) {
            spca_int j = net->member[a];
            double x = r[j] + shift * w[j];
            if (!o->signs || x * o->signs[j] >= 0) square += x * x;
        }
        most = fmax(most, square);
    }
    return sqrt(most);
}

/* The level below this one at which the next unit would enter, if the entries went on along their
 * tangent; by bisection. */
static double entry_of(const net_t *net, double level, const double *b)
{
    spca_int p = net->o->p, s = curvature(net, level, b);
    double low = 0, high = level, *w = net->trial;
    residual(net, b, net->r);
    for (spca_int j = 0; j < p; j++) w[j] = 0;
    if (s > 0) solve(net, s, net->slope);
    for (spca_int i = 0; i < s; i++)
        subtract_multiple(p, -net->slope[i], net->K + net->index[i] * p, w);
    for (int turn = 0; turn < BISECTIONS; turn++) {
        double middle = (low + high) / 2;
        if (largest_outside(net, net->r, middle - level, w) <= middle)
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* best <- the minimizer where nothing enters beside what is included, and *level, the lowest such
 * level. */
static spca_status from_above(net_t *net, double *best, double *level)
{
    spca_status status;
    for (spca_int j = 0; j < net->o->p; j++) best[j] = 0;
    status = minimize(net, DBL_MAX / 4, best);
    if (status == SPCA_STOPPED) return status;
    residual(net, best, net->r);
    spca_unit_norms(net->o, best, net->norm);
    *level = largest_outside(net, net->r, 0, net->r) * (1 + ENDED);
    return SPCA_OK;
}

spca_status spca_unit_net_path(const spca_supports *o, const double *K, const double *c,
                               spca_int count, spca_stop stop, void *ctx, double *work,
                               spca_int *iwork, double *b, double *beyond, double *level)
{
    net_t net = net_of(o, K, c, stop, ctx, work, iwork);
    double low = 0, high = *level, *best = work + spca_unit_net_work(o), *new = best + o->p;
    spca_int p = o->p;
    spca_status status;
    for (spca_int j = 0; j < p; j++) best[j] = b[j];
    /* the given level, or one from which only included units have entries */
    if ((status = minimize(&net, high, best)) == SPCA_STOPPED) return status;
    for (spca_int j = 0; j < p; j++) beyond[j] = best[j];
    if (high == 0 || count_of(&net, best) > count) {
        low = high;
        if ((status = from_above(&net, best, &high)) == SPCA_STOPPED) return status;
    }
    /* between low, where there are too many units, and high: close to where the next unit should
     * enter, then the middle */
    while (high - low > ENDED * high) {
        double entry = entry_of(&net, high, best);
        double trial[4] = {0, entry * (1 + ENDED / 4), entry * (1 - ENDED / 4), (low + high) / 2};
        for (int i = entry <= ENDED * high ? 0 : 1; i < 4; i++) {
            if (i > 0 && !(low < trial[i] && trial[i] < high)) continue;
            for (spca_int j = 0; j < p; j++) new[j] = best[j];
            if ((status = minimize(&net, trial[i], new)) == SPCA_STOPPED) return status;
            if (count_of(&net, new) <= count) {
                high = trial[i];
                for (spca_int j = 0; j < p; j++) best[j] = new[j];
                if (i == 0) break;
            } else if (i > 0) {
                low = trial[i];
                for (spca_int j = 0; j < p; j++) beyond[j] = new[j];
            }
        }
        if (high == 0) {
            for (spca_int j = 0; j < p; j++) beyond[j] = best[j];
            break;
        }
    }
    for (spca_int j = 0; j < p; j++) b[j] = best[j];
    *level = high;
    return SPCA_OK;
}
