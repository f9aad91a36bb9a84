/* joint_exchange.c - exchanges variables, or units, of one sparse loading, given others.
 *
 * With variable i in the place of a, the quotient is at least that of the best combination of e_i
 * and of x without its entry a, the larger root of a quadratic equation. */
#include "joint.h"
/* an exchange may raise the quotient by this share more than two vectors tell \ */
#define NEAR 3e-2
enum { UNITS_TRIED = 16 }; /* exchanges of units that are tried */

/* An exchange; leaving is a place of the support, or a unit. */
typedef struct {
    double rise;
    spca_int leaving, entering;
} exchange_t;

/* rise_i: what variable i may raise the quotient by in the place of another: the larger root of (d
 * + rise mu)(D_i + rise m_i) = u_i^2, u = w - x_a K_a, D_i = value m_i - variance_i. */
VECTORIZED(rises,
           (spca_int p, double xa, double d, double mu, double value, const double *variance,
            const double *left, const double *score, const double *K, double *restrict rise),
           (p, xa, d, mu, value, variance, left, score, K, rise))
{
    for (spca_int i = 0; i < p; i++) {
        double m = left[i], D = value * m - variance[i], u = score[i] - xa * K[i];
        double b = d * m + D * mu, a = 2 * mu * m, under = b * b - 2 * a * (d * D - u * u);
        rise[i] = (sqrt(under > 0 ? under : 0) - b) / (a > 1e-12 ? a : 1e-12);
    }
}

/* o->row = row K_i of N - value M, without its diagonal entry: A_i - sum_q (Q_qi F_q + (F_qi -
 * value Q_qi) Q_q). */
static void row_of(joint_t *o, spca_int i, double value)
{
    spca_int p = o->p, one = i;
    double unit = 1;
    SPCA(joint_image)(o, 1, &one, &unit, o->row);
    for (spca_int a = 0; a < o->m; a++) {
        const double *q = o->Q + a * p, *f = o->F + a * p;
        SPCA(joint_add_used)(o, o->projected * value * q[i] - f[i], q, o->row);
        if (q[i] != 0) SPCA(joint_add)(p, -q[i], f, o->row);
    }
}

/* Finds the most promising exchanges of variables, by decreasing rise; returns how many. */
static int promising(joint_t *o, double value, spca_int n, const spca_int *index, const double *x,
                     exchange_t *best)
{
    spca_int p = o->p;
    int count = 0;
    SPCA(joint_apply)(o, value, n, index, x);
    for (spca_int i = 0; i < p; i++) o->inside[i] = o->left[i] <= JOINT_SPAN * 10;
    for (spca_int a = 0; a < n; a++) o->inside[index[a]] = 1;
    for (spca_int a = 0; a < n; a++) {
        spca_int i = index[a];
        double m = o->left[i], own = value * m - o->variance[i], Mx = x[a], norm = 1, d, mu, bar;
        for (spca_int b = 0; b < o->m; b++) {
            double along = 0;
            for (spca_int c = 0; c < n; c++) along += o->Q[b * p + index[c]] * x[c];
            norm -= o->projected * along * along;
            Mx -= o->projected * along * o->Q[b * p + i];
        }
        d = 2 * x[a] * (o->score[i] - value * x[a]) + x[a] * x[a] * own;
        mu = norm - 2 * x[a] * Mx + x[a] * x[a] * m;
        if (!(mu > JOINT_SPAN * 10) || !(d > 0)) continue;
        row_of(o, i, value);
        rises(p, x[a], d, mu, value, o->variance, o->left, o->score, o->row, o->gain);
        bar = count < JOINT_TRIED ? -NEAR * value : best[count - 1].rise;
        for (spca_int j = 0; j < p; j++) {
            int b;
            if (!(o->gain[j] > bar) || o->inside[j]) continue;
            b = count < JOINT_TRIED ? count++ : JOINT_TRIED - 1;
            for (; b > 0 && best[b - 1].rise < o->gain[j]; b--) best[b] = best[b - 1];
            best[b].rise = o->gain[j];
            best[b].leaving = a;
            best[b].entering = j;
            if (count == JOINT_TRIED) bar = best[JOINT_TRIED - 1].rise + JOINT_TIES * value;
        }
    }
    o->spent += (double)(n * p * (12 + o->m / 2));
    return count;
}

/* Finds exchanges of units: those of large products first, in the place of those of small norms;
 * returns how many. */
static int promising_units(joint_t *o, double value, spca_int size, spca_int n,
                           const spca_int *index, const double *x, exchange_t *best)
{
    const spca_supports *of = o->of;
    double *own = o->unit_work; /* (units): squared norms of x */
    spca_int room = size;
    int count = 0;
    SPCA(joint_apply)(o, value, n, index, x);
    for (spca_int u = 0; u < of->units; u++) o->kept[u] = of->included[u], o->norm[u] = own[u] = 0;
    for (spca_int a = 0; a < n; a++) {
        o->kept[of->unit[index[a]]] = 1;
        own[of->unit[index[a]]] += x[a] * x[a];
    }
    spca_project_units(of, o->score);
    for (spca_int i = 0; i < o->p; i++) o->norm[of->unit[i]] += o->score[i] * o->score[i];
    for (spca_int u = 0; u < of->units; u++) room -= o->kept[u] ? of->size[u] : 0;
    for (spca_int u = 0; u < of->units; u++)
        for (spca_int v = 0; o->kept[u] && !of->included[u] && v < of->units; v++) {
            double rise = o->norm[v] / (own[u] + JOINT_TIES);
            int b;
            if (o->kept[v] || !of->allowed[v] || of->size[v] > room + of->size[u]) continue;
            if (count == UNITS_TRIED && !(rise > best[count - 1].rise * (1 + JOINT_TIES))) continue;
            b = count < UNITS_TRIED ? count++ : UNITS_TRIED - 1;
            for (; b > 0 && best[b - 1].rise * (1 + JOINT_TIES) < rise; b--) best[b] = best[b - 1];
            best[b] = (exchange_t){rise, u, v};
        }
    return count;
}

/* Makes the best of the exchanges of units that are tried; returns the quotient after it, or as it
 * was. */
static double exchanged_units(joint_t *o, double value, spca_int size, spca_int *nnz,
                              spca_int *index, double *x)
{
    exchange_t tried[UNITS_TRIED];
    const spca_supports *of = o->of;
    spca_int *best = o->trial + o->room, found = 0;
    double *entries = o->entry + o->room, most = value * (1 + JOINT_RISE * 100);
    int count = promising_units(o, value, size, *nnz, index, x, tried);
    for (int b = 0; b < count; b++) {
        double new;
        spca_int n = 0;
        for (spca_int i = 0, a = 0; i < o->p; i++) {
            spca_int u = of->unit[i];
            int in = a < *nnz && index[a] == i;
            if (u == tried[b].entering || (in && u != tried[b].leaving)) {
                o->entry[n] = in ? x[a] : 0;
                o->trial[n++] = i;
            }
            a += in;
        }
        if (n > o->room) continue;
        new = SPCA(joint_fitted)(o, n, o->trial, JOINT_STEPS, most, o->entry);
        if (!(new > most)) continue;
        most = new * (1 + JOINT_TIES);
        value = new;
        found = n;
        joint_take(n, o->trial, o->entry, best, entries);
    }
    if (found > 0) {
        joint_take(found, best, entries, index, x);
        *nnz = found;
    }
    return value;
}

/* Makes the best of the exchanges of variables that are tried; returns the quotient after it, or as
 * it was. */
static double exchanged(joint_t *o, double value, spca_int n, spca_int *index, double *x)
{
    exchange_t tried[JOINT_TRIED];
    spca_int *best = o->trial + n;
    double *entries = o->entry + n, most = value * (1 + JOINT_RISE * 100);
    int count = promising(o, value, n, index, x, tried), found = 0;
    for (int b = 0; b < count; b++) {
        double new;
        spca_int a = tried[b].leaving, j = tried[b].entering;
        if (found && value + tried[b].rise < most * 0.99) break;
        joint_take(n, index, x, o->trial, o->entry);
        for (; a > 0 && o->trial[a - 1] > j; a--) {
            o->trial[a] = o->trial[a - 1];
            o->entry[a] = o->entry[a - 1];
        }
        for (; a < n - 1 && o->trial[a + 1] < j; a++) {
            o->trial[a] = o->trial[a + 1];
            o->entry[a] = o->entry[a + 1];
        }
        o->trial[a] = j;
        o->entry[a] = 0;
        new = SPCA(joint_fitted)(o, n, o->trial, JOINT_STEPS, most, o->entry);
        if (!(new > most)) continue;
        most = new * (1 + JOINT_TIES);
        value = new;
        found = 1;
        joint_take(n, o->trial, o->entry, best, entries);
    }
    if (found) joint_take(n, best, entries, index, x);
    return value;
}

double SPCA(joint_exchanged)(joint_t *o, double value, spca_int size, spca_int *nnz,
                             spca_int *index, double *x)
{
    return o->of ? exchanged_units(o, value, size, nnz, index, x)
                 : exchanged(o, value, *nnz, index, x);
}
