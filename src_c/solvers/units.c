/* units.c - steps of power iterations among supports of whole units and of given signs.
 *
 * A unit is a group of variables, or a single variable.  From y = A x, a step removes the entries
 * of a wrong sign and of units that are excluded.  Then, with n_u the norm of unit u and I the
 * included units, each rule does as follows:
 *     truncation  keeps I and the units of largest norms up to a cardinality; where sizes differ,
 *                 those of largest sum of n_u^2 that have room;
 *     l0, l1      keep I and the units with n_u > sqrt(gamma x'Ax), or n_u > gamma sqrt(x'Ax); l1
 *                 diminishes n_u by that (Journee, Nesterov, Richtarik & Sepulchre 2010, by units);
 *     l1 bound    diminishes the norms beside I until they sum to at most c times the norm of all.
 * Each maximizes y's over such s, or that less the penalty, so for semidefinite A the objective
 * rises. */
#include "real.h"

/* So few units, 24, are packed exactly at once, which costs no more than to look for what is sure.
 */
enum { FEW = SPCA_LEAST(30) - 6 };
/* The exact way is taken up to so many units times room. */
enum { CELLS = 8 * SPCA_LEAST(1 << 15) };

/* ---- sorting: pairs of a key and a place, by falling keys, ties by place --------------------- */

/* Whether pair a (key, place) comes before b. */
static int comes_first(const double *a, const double *b)
{
    return a[0] != b[0] ? a[0] > b[0] : a[1] < b[1];
}

/* Exchanges two pairs. */
static void swap_pairs(double *a, double *b)
{
    double key = a[0], place = a[1];
    a[0] = b[0];
    a[1] = b[1];
    b[0] = key;
    b[1] = place;
}

/* Heap sort: the pair at `at` sinks to its place among n. */
static void sink(double *pair, spca_int at, spca_int n)
{
    for (spca_int child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && comes_first(pair + 2 * child, pair + 2 * child + 2)) child++;
        if (!comes_first(pair + 2 * at, pair + 2 * child)) return;
        swap_pairs(pair + 2 * at, pair + 2 * child);
    }
}

/* Sorts n pairs. */
static void sort(spca_int n, double *pair)
{
    for (spca_int i = n / 2 - 1; i >= 0; i--) sink(pair, i, n);
    for (spca_int i = n - 1; i > 0; i--) {
        swap_pairs(pair, pair + 2 * i);
        sink(pair, 0, i);
    }
}

/* ---- which units are kept ------------------------------------------------------------------- */

/* Keeps the units, among n, of largest total value whose sizes fit in `room`: the best value of
 * each room, unit after unit (Bellman).  best (room + 1), taken (n x (room + 1)): scratch. */
static void fill_exactly(spca_int n, const spca_int *unit, const double *value,
                         const spca_int *size, spca_int room, double *best, uint8_t *taken,
                         uint8_t *kept)
{
    const spca_int width = room + 1;
    for (spca_int r = 0; r <= room; r++) best[r] = 0;
    for (spca_int i = 0; i < n; i++) {
        uint8_t *row = taken + i * width;
        spca_int m = size[unit[i]];
        for (spca_int r = room; r >= 0; r--) {
            row[r] = r >= m && best[r - m] + value[unit[i]] > best[r];
            if (row[r]) best[r] = best[r - m] + value[unit[i]];
        }
    }
    for (spca_int i = n - 1; i >= 0; i--)
        if (taken[i * width + room]) {
            kept[unit[i]] = 1;
            room -= size[unit[i]];
        }
}

/* Keeps units one after another, those of large value first, or of large value over size, each if
 * it has a value and room; returns their total value.  The pairs have that order. */
static double fill_in_turn(spca_int n, const spca_int *unit, const double *value,
                           const spca_int *size, int over_size, spca_int room, double *pair,
                           uint8_t *kept)
{
    double total = 0;
    for (spca_int i = 0; i < n; i++) {
        pair[2 * i] = value[unit[i]] / (over_size ? (double)size[unit[i]] : 1);
        pair[2 * i + 1] = (double)unit[i];
    }
    sort(n, pair);
    for (spca_int i = 0; i < n; i++) {
        spca_int u = (spca_int)pair[2 * i + 1];
        kept[u] = value[u] > 0 && size[u] <= room;
        if (!kept[u]) continue;
        room -= size[u];
        total += value[u];
    }
    return total;
}

/* Keeps units, among n, of large total value that fit in `room`.  Few are packed exactly.  Many are
 * packed by value over size, or by value, whichever is better.  With the last unit in part, the sum
 * by value over size is an upper bound (Dantzig 1957).  A unit whose change costs that bound more
 * than its excess over the better way is in or out for sure; the others are packed exactly where
 * they are few enough. */
static void pack(spca_int n, spca_int *unit, const double *value, const spca_int *size,
                 spca_int room, double *pair, double *best, uint8_t *taken, uint8_t *kept)
{
    double most = 0, by_value, by_share, last = -1, slack, space = (double)room;
    spca_int left = 0, others = room;
    if (n <= FEW) {
        fill_exactly(n, unit, value, size, room, best, taken, kept);
        return;
    }
    /* by value, then by value over size, whose order is needed below */
    by_value = fill_in_turn(n, unit, value, size, 0, room, pair, kept);
    by_share = fill_in_turn(n, unit, value, size, 1, room, pair, kept);
    /* Dantzig's bound: the value over size where the room ends */
    for (spca_int i = 0; i < n && last < 0; i++) {
        spca_int u = (spca_int)pair[2 * i + 1];
        if ((double)size[u] > space)
            last = pair[2 * i];
        else {
            most += value[u];
            space -= (double)size[u];
        }
    }
    if (last < 0) return; /* all have room */
    most += space * last;
    /* units that are in for sure take their room */
    slack = most - fmax(by_share, by_value) + 1e-12 * most;
    for (spca_int i = 0; i < n; i++) {
        spca_int u = unit[i];
        if (fabs(value[u] - last * (double)size[u]) > slack)
            others -= value[u] > last * (double)size[u] ? size[u] : 0;
        else
            left++;
    }
    /* the others, exactly; else the better way */
    if (left * (others + 1) <= CELLS) {
        left = 0;
        for (spca_int i = 0; i < n; i++) {
            spca_int u = unit[i];
            int sure = fabs(value[u] - last * (double)size[u]) > slack;
            kept[u] = sure && value[u] > last * (double)size[u];
            if (!sure) unit[left++] = u;
        }
        fill_exactly(left, unit, value, size, others, best, taken, kept);
    } else if (by_value > by_share)
        (void)fill_in_turn(n, unit, value, size, 0, room, pair, kept);
}

spca_int spca_unit_work(const spca_supports *o, spca_int count)
{
    spca_int cells = FEW * (count + 1) > CELLS ? FEW * (count + 1) : CELLS;
    return 5 * o->units + count + 1 + (o->sized ? cells / (spca_int)sizeof(double) + 1 : 0);
}

void spca_largest_units(const spca_supports *o, const double *norm, spca_int count, double *work,
                        spca_int *iwork, uint8_t *kept)
{
    double *value = work, *pair = value + o->units, *best = pair + 2 * o->units;
    spca_int n = 0, room = count;
    for (spca_int u = 0; u < o->units; u++) {
        kept[u] = o->included[u];
        if (kept[u]) room -= o->size[u];
    }
    for (spca_int u = 0; u < o->units; u++)
        if (o->allowed[u] && !kept[u]) {
            value[u] = norm[u] * norm[u];
            pair[2 * n] = norm[u];
            pair[2 * n + 1] = (double)u;
            iwork[n++] = u;
        }
    if (room <= 0) return;
    if (o->sized) {
        pack(n, iwork, value, o->size, room, pair, best, (uint8_t *)(best + count + 1), kept);
        return;
    }
    sort(n, pair);
    for (spca_int i = 0; i < n && i < room; i++) kept[(spca_int)pair[2 * i + 1]] = 1;
}

/* ---- steps ---------------------------------------------------------------------------------- */

void spca_unit_norms(const spca_supports *o, const double *x, double *norm)
{
    for (spca_int u = 0; u < o->units; u++) norm[u] = 0;
    for (spca_int j = 0; j < o->p; j++) norm[o->unit[j]] += x[j] * x[j];
    for (spca_int u = 0; u < o->units; u++) norm[u] = sqrt(norm[u]);
}

void spca_project_units(const spca_supports *o, double *x)
{
    for (spca_int j = 0; j < o->p; j++)
        if (!o->allowed[o->unit[j]] || (o->signs && x[j] * o->signs[j] < 0)) x[j] = 0;
}

/* The level l by which to diminish the norms beside I, so that their sum is at most the bound times
 * the norm of all.  Let the m largest have the sum s and the squares v about their mean s/m, and
 * `square` be the sum of the squares of I.  Then m^2 (s/m - l)^2 = bound^2 (v + m (s/m - l)^2 +
 * square).  v is summed about the mean: where the norms tie it is exactly 0, and l their norm,
 * while a difference of sums of squares would leave 1e-8. */
static double level_of(const spca_supports *o, const double *norm, double bound, double *pair)
{
    double square = 0, s = 0, q = 0;
    spca_int n = 0;
    for (spca_int u = 0; u < o->units; u++) {
        if (o->included[u]) {
            square += norm[u] * norm[u];
            continue;
        }
        pair[2 * n] = norm[u];
        pair[2 * n + 1] = (double)u;
        n++;
    }
    sort(n, pair);
    for (spca_int i = 0; i < n; i++) {
        double m = (double)(i + 1), lower = i + 1 < n ? pair[2 * i + 2] : 0, middle, rest;
        s += pair[2 * i];
        q += pair[2 * i] * pair[2 * i];
        rest = fmax(q - 2 * lower * s + m * lower * lower, 0) + square;
        if (!(s - m * lower > bound * sqrt(rest))) continue;
        if (!(m - bound * bound > 1e-12 * m)) return lower;
        middle = s / m;
        rest = square;
        for (spca_int a = 0; a <= i; a++) rest += (pair[2 * a] - middle) * (pair[2 * a] - middle);
        rest = middle - bound * sqrt(rest / (m * (m - bound * bound)));
        return fmin(fmax(rest, lower), pair[2 * i]);
    }
    return 0;
}

/* share_u: the share of the norm of each unit that is left, and which units are kept, for a penalty
 * or a bound. */
static void threshold(const spca_rule *rule, double quadratic, double *norm, double *share,
                      double *pair, uint8_t *kept)
{
    const spca_supports *o = &rule->of;
    double root = sqrt(fmax(quadratic, DBL_MIN)), level = rule->level * root, cut;
    double most = 0, beside = 0;
    spca_int first = -1;
    if (rule->step == SPCA_UNITS_L0) level = sqrt(rule->level) * root;
    if (rule->step == SPCA_UNITS_BOUND) level = level_of(o, norm, rule->level, pair);
    cut = rule->step == SPCA_UNITS_BOUND ? level * (1 + 1e-12) : level;
    for (spca_int u = 0; u < o->units; u++) {
        kept[u] = o->included[u] || (o->allowed[u] && norm[u] > cut);
        share[u] = 1;
        if (!o->included[u] && kept[u] && rule->step != SPCA_UNITS_L0)
            share[u] = 1 - level / norm[u];
        if (o->included[u])
            beside = fmax(beside, norm[u]);
        else if (norm[u] > most) {
            most = norm[u];
            first = u;
        }
    }
    if (rule->step == SPCA_UNITS_BOUND && beside == 0 && first >= 0)
        kept[first] = 1; /* even where norms tie and the bound leaves none */
}

spca_int spca_step_work(const spca_rule *rule)
{
    return spca_unit_work(&rule->of, rule->count) + spca_orthogonal_work(&rule->of, rule->t);
}

void spca_unit_step(const spca_rule *rule, double quadratic, double *x, double *work,
                    spca_int *iwork, uint8_t *kept)
{
    const spca_supports *o = &rule->of;
    double *norm = work, *share = norm + o->units, size = 0, left = 0;
    if (rule->t > 0) {
        double *rest = work + spca_unit_work(o, rule->count);
        spca_orthogonal_unit_step(rule, x, rest, work, iwork, kept);
        return;
    }
    spca_project_units(o, x);
    spca_unit_norms(o, x, norm);
    if (rule->step == SPCA_UNITS_TRUNCATED) {
        spca_largest_units(o, norm, rule->count, share, iwork, kept);
        for (spca_int u = 0; u < o->units; u++) {
            size = fmax(size, norm[u]);
            left = fmax(left, kept[u] ? norm[u] : 0);
        }
        /* only units that have no room have entries: any others do */
        if (size > 0 && !(left > 0)) {
            for (spca_int u = 0; u < o->units; u++) norm[u] = o->size[u] <= rule->count;
            spca_largest_units(o, norm, rule->count, share, iwork, kept);
            for (spca_int j = 0; j < o->p; j++) x[j] = o->signs && o->signs[j] < 0 ? -1 : 1;
        }
        for (spca_int j = 0; j < o->p; j++) x[j] = kept[o->unit[j]] ? x[j] : 0;
        return;
    }
    threshold(rule, quadratic, norm, share, share + o->units, kept);
    for (spca_int j = 0; j < o->p; j++) x[j] = kept[o->unit[j]] ? x[j] * share[o->unit[j]] : 0;
}

double spca_unit_objective(const spca_rule *rule, double quadratic, const double *x, double *work)
{
    const spca_supports *o = &rule->of;
    double cost = 0;
    if (rule->step == SPCA_UNITS_TRUNCATED || rule->step == SPCA_UNITS_BOUND) return quadratic;
    spca_unit_norms(o, x, work);
    for (spca_int u = 0; u < o->units; u++)
        if (!o->included[u]) cost += rule->step == SPCA_UNITS_L0 ? work[u] > 0 : work[u];
    return (rule->step == SPCA_UNITS_L0 ? quadratic : sqrt(fmax(quadratic, 0))) -
           rule->level * cost;
}
