/* joint_select.c - the support on which a vector is largest: of variables, or of units (units.c).
 */
#include "joint.h"

/* Units of largest norms, of y or -y, whichever the signs leave more of.  A score falls a little
 * with its place, so that the first of nearly equal ones is larger. */
static spca_int select_units(joint_t *o, spca_int size, const double *y, spca_int *index, double *x)
{
    const spca_supports *of = o->of;
    double *z = o->gain, balance = 0;
    spca_int found = 0;
    for (spca_int i = 0; of->signs && i < o->p; i++) balance += of->signs[i] * y[i] * fabs(y[i]);
    for (spca_int i = 0; i < o->p; i++) z[i] = balance < 0 ? -y[i] : y[i];
    spca_project_units(of, z);
    for (spca_int u = 0; u < of->units; u++) o->norm[u] = 0;
    for (spca_int i = 0; i < o->p; i++) o->norm[of->unit[i]] += z[i] * z[i];
    for (spca_int u = 0; u < of->units; u++)
        o->norm[u] = sqrt(o->norm[u]) * (1 - JOINT_TIES * (double)u / (double)of->units);
    spca_largest_units(of, o->norm, size, o->unit_work, o->unit_iwork, o->kept);
    for (spca_int i = 0; i < o->p; i++)
        if (o->kept[of->unit[i]]) {
            x[found] = z[i];
            index[found++] = i;
        }
    return found;
}

/* The k-th largest of n scores w; the k largest are put first. */
static double reorder(double *w, spca_int n, spca_int k)
{
    spca_int low = 0, high = n - 1;
    while (low < high) {
        double pivot = w[low + (high - low) / 2];
        spca_int a = low, b = high;
        while (a <= b) {
            while (w[a] > pivot) a++;
            while (w[b] < pivot) b--;
            if (a <= b) {
                double swap = w[a];
                w[a++] = w[b];
                w[b--] = swap;
            }
        }
        if (k - 1 <= b)
            high = b;
        else if (k - 1 >= a)
            low = a;
        else
            break;
    }
    return w[k - 1];
}

/* score_i = |y_i|, a little less for later variables, so that the first of nearly equal ones is
 * larger. */
VECTORIZED(scores, (spca_int p, double tie, const double *y, double *restrict score),
           (p, tie, y, score))
{
    for (spca_int i = 0; i < p; i++) score[i] = fabs(y[i]) * (1 - tie * (double)i);
}

/* Scores above the level are collected; when there are 2 size of them, the size largest stay and
 * raise the level. */
spca_int SPCA(joint_select)(joint_t *o, spca_int size, const double *y, spca_int *index, double *x)
{
    spca_int p = o->p, n = 0, found = 0, equal = size;
    double *w = o->row, *score = o->gain, level = -1;
    if (o->of) return select_units(o, size, y, index, x);
    scores(p, JOINT_TIES / (double)p, y, score);
    if (o->n_near == size) { /* the smallest score of `near` is a level that `size` scores reach */
        level = score[o->near[0]];
        for (spca_int a = 1; a < size; a++) level = fmin(level, score[o->near[a]]);
        level = level > 0 ? level * (1 - JOINT_TIES / (double)(2 * p)) : -1;
    }
    for (spca_int i = 0; i < p; i++) {
        if (!(score[i] > level)) continue;
        w[n++] = score[i];
        if (n < 2 * size) continue;
        level = reorder(w, n, size);
        n = size;
    }
    level = reorder(w, n, size);
    for (spca_int a = 0; a < size; a++) equal -= w[a] > level;
    for (spca_int i = 0; i < p && found < size; i++) {
        if (!(score[i] > level) && (score[i] < level || equal-- <= 0)) continue;
        x[found] = y[i];
        index[found++] = i;
    }
    return found;
}
