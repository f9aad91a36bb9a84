/* check_select.c - selection and thresholds against sorting and duality. */
#include "core.h"

static int descending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a < b) - (a > b);
}

/* Sizes around the ends of blocks, strides and samples. */
static spca_int length_of(trial_t *t)
{
    static const spca_int ends[] = {1,   2,   4,   8,    16,   32,   64,   128,  192,
                                    256, 512, 960, 1024, 1088, 2048, 4096, 4224, 8192};
    if (t->left || chance(t, 50)) return between(t, 1, 40);
    spca_int n = ends[below(t, sizeof ends / sizeof *ends)] + between(t, -2, 2);
    return n > 0 ? n : 1;
}

/* No NaN: who selects has checked for it.  Half of the time, a level that the sample misjudges. */
static real *selectable(trial_t *t, spca_int p, style_t *style)
{
    real *x;
    *style = SPCA(style)(t, 0);
    x = SPCA(copy_of)(t, p, SPCA(numbers)(t, *style, p));
    for (spca_int i = 0; i < p; i++)
        if (isnan(x[i])) x[i] = 0;
    if (p > 1000 && chance(t, 30))
        for (spca_int i = 0; i < p; i++) x[i] = i % 2 ? 0 : x[i];
    return x;
}

void SPCA(check_select)(trial_t *t)
{
    spca_int p = length_of(t), k = between(t, 0, p), ties = -1, above = 0, equal = 0, kept = 0;
    style_t style;
    real *x = selectable(t, p, &style), *y = SPCA(copy_of)(t, p, x), level = (real)INFINITY;
    spca_int *index = SCRATCH(t, k, spca_int);
    double *sorted = zeros(t, p);
    for (spca_int i = 0; i < p; i++) sorted[i] = (double)fabs(x[i]);
    qsort(sorted, (size_t)p, sizeof *sorted, descending);
    if (k > 0) {
        level = SPCA(kth_largest)(p, x, k, WORK(t, p), &ties);
        CHECK(t, (double)level == sorted[k - 1]);
        for (spca_int i = 0; i < p; i++) {
            above += fabs(x[i]) > level;
            equal += fabs(x[i]) == level;
        }
        CHECK(t, ties == k - above && ties >= 1 && ties <= equal);
    }
    SPCA(select_largest)(p, x, k, WORK(t, p), index);
    SPCA(truncate)(p, k, y, WORK(t, p));
    equal = 0;
    for (spca_int i = 0; i < p; i++) {
        int tie = fabs(x[i]) == level, stays = fabs(x[i]) > level || (tie && equal++ < ties);
        if (stays) CHECK(t, kept < k && index[kept++] == i);
        CHECK(t, k == p || (stays ? y[i] == x[i] : y[i] == 0));
    }
    CHECK(t, kept == k);
    digest(t, index, (size_t)k * sizeof *index);
    { /* given the level of a lower rank, or one that fewer reach, which costs time alone */
        spca_int *again = SCRATCH(t, k, spca_int), rank = between(t, chance(t, 20) ? 0 : k, p);
        real hint = rank > 0 ? (real)sorted[rank - 1] : (real)INFINITY;
        SPCA(select_reaching)(p, x, k, hint, WORK(t, p), again);
        for (spca_int a = 0; a < k; a++) CHECK(t, again[a] == index[a]);
    }
    { /* NaN where no others are left */
        spca_int wrong = between(t, 0, p), left = k;
        for (spca_int i = 0; i < wrong; i++) x[i] = (real)NAN;
        SPCA(select_largest)(p, x, k, WORK(t, p), index);
        for (spca_int a = 0; a < k; a++) {
            CHECK(t, index[a] >= 0 && index[a] < p);
            left -= index[a] >= wrong;
        }
        CHECK(t, left == (k > p - wrong ? k - (p - wrong) : 0));
    }
}

/* c level + ||S(a, level)||, of a over top. */
static double dual(spca_int p, const real *a, int nonnegative, double level, double c, double top)
{
    double norm = 0;
    for (spca_int i = 0; i < p; i++) {
        double x = nonnegative ? (double)a[i] : fabs((double)a[i]);
        if (x > level) norm = hypot(norm, x / top - level / top);
    }
    return norm + c * (level / top);
}

/* By weak duality w'a <= c level + ||S(a, level)|| for every feasible w and every level >= 0. */
void SPCA(check_l1_threshold)(trial_t *t)
{
    spca_int p = length_of(t);
    style_t style = SPCA(style)(t, 0);
    const real *a = SPCA(numbers)(t, style, p);
    int nonnegative = (int)below(t, 3), inside = chance(t, 30), bad = 0;
    double root = sqrt((double)p), share = (double)below(t, 101) / 100;
    double c = chance(t, 10) ? 1 : 1 + share * share * (root - 1), level = -1;
    double product = 0, sum = 0, norm = 0, top = 0, least;
    real *w = inside ? SPCA(copy_of)(t, p, a) : WORK(t, p),
         *work = chance(t, 50) && !inside ? w : WORK(t, p);
    spca_status status =
        SPCA(l1_threshold)(p, inside ? w : a, c, nonnegative, spca_pool_run, work, w, &level);
    SPCA(digest)(t, status, p, w);
    for (spca_int i = 0; i < p; i++) {
        bad |= (nonnegative == 1 ? isnan(a[i]) ? 0 : a[i] > REAL_MAX : !isfinite(a[i])) != 0;
        if ((a[i] > 0 || !nonnegative) && fabs((double)a[i]) > top) top = fabs((double)a[i]);
    }
    if (bad) {
        CHECK(t, status == SPCA_NONFINITE);
        return;
    }
    CHECK(t, status == SPCA_OK && SPCA(are_finite)(p, w) && level >= 0);
    for (spca_int i = 0; i < p; i++) {
        CHECK(t, !nonnegative || w[i] >= 0);
        CHECK(t, w[i] == 0 || (w[i] > 0) == (a[i] > 0));
        if (w[i] != 0) product += (double)w[i] * ((double)a[i] / top);
        sum += fabs((double)w[i]);
        norm = hypot(norm, (double)w[i]);
    }
    if (top == 0) {
        CHECK(t, norm == 0);
        return;
    }
    CHECK(t, sum <= c * (1 + (double)(64 + p) * EPSILON) && NEAR(norm, 1, 1));
    least = dual(p, a, nonnegative, level, c, top);
    if (top > DBL_MIN * 0x1p60) /* else the level is rounded to a subnormal number */
        CHECK(t, fabs(product - least) <= 1e4 * EPSILON * (1 + c));
}

/* One entry among zeros, which a sample hardly sees, or few equal ones. */
void SPCA(check_lone_entries)(trial_t *t)
{
    spca_int p = length_of(t), few = between(t, 1, p > 3 ? 3 : p > 1 ? p - 1 : 1);
    real *a = WORK(t, p), *w = WORK(t, p), size = chance(t, 50) ? 1 : (real)between(t, 1, 99);
    if (chance(t, 20)) size = REAL_MAX;
    double level = -1, bound = sqrt((double)few) + (double)between(t, 1, 50) / 50;
    const spca_int *place = SPCA(subset)(t, p, few);
    for (spca_int i = 0; i < p; i++) a[i] = 0;
    for (spca_int k = 0; k < few; k++) a[place[k]] = k % 2 ? -size : size;
    CHECK(t, SPCA(l1_threshold)(p, a, fmin(bound, sqrt((double)p)), 0, NULL, WORK(t, p), w,
                                &level) == SPCA_OK);
    SPCA(digest)(t, SPCA_OK, p, w);
    for (spca_int i = 0; i < p; i++)
        CHECK(t, NEAR(w[i], (double)a[i] / (double)size / sqrt((double)few), 1));
}

void SPCA(check_levels)(trial_t *t)
{
    spca_int p = length_of(t);
    style_t style = SPCA(style)(t, 1);
    const real *a = SPCA(numbers)(t, style, p), limit = (real)below(t, 200) / 100;
    real *out = WORK(t, p), kept;
    double *sorted = zeros(t, p), total = 0, bound, level, sum = 0, above = 0, want = 0;
    SPCA(soft_threshold)(p, a, limit, spca_pool_run, out);
    SPCA(digest)(t, SPCA_OK, p, out);
    for (spca_int i = 0; i < p; i++) {
        real size = fabs(a[i]) - limit;
        CHECK(t, out[i] == (size > 0 ? copysign(size, a[i]) : 0));
        sorted[i] = fabs((double)a[i]);
        total += sorted[i];
    }
    bound = total * (double)below(t, 110) / 100;
    level = SPCA(l1_ball_level)(p, a, bound, chance(t, 50) ? 0 : (double)below(t, 400) / 100,
                                spca_pool_run);
    digest(t, &level, sizeof level);
    for (spca_int i = 0; i < p; i++) sum += fmax(sorted[i] - level, 0);
    CHECK(t, level >= 0 && fabs(sum - fmin(bound, total)) <= 1e-12 * total + 1e-300);
    qsort(sorted, (size_t)p, sizeof *sorted, descending);
    kept = SPCA(l1_kept_level)(p, a, bound, WORK(t, p));
    SPCA(digest)(t, SPCA_OK, 1, &kept);
    for (spca_int i = 0; i < p && want == 0; i++) {
        above += sorted[i];
        if (above > bound * (1 + 1e-12)) want = sorted[i];
    }
    if (style == TIES) CHECK(t, (double)kept == want || fabs(above - bound) <= 1e-9 * total);
    sum = 0;
    for (spca_int i = 0; i < p; i++) sum += sorted[i] >= (double)kept ? sorted[i] : 0;
    CHECK(t, kept == 0 ? total <= bound * (1 + 1e-12) : sum > bound * (1 - 1e-12));
    sum = 0;
    for (spca_int i = 0; i < p; i++) sum += sorted[i] > (double)kept ? sorted[i] : 0;
    CHECK(t, sum <= bound * (1 + 1e-12));
}
