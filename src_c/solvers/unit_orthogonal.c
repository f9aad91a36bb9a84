/* unit_orthogonal.c - the step of an l1 bound among units, orthogonal to earlier loadings.
 *
 * It maximizes a'w over ||w|| <= 1, sum of ||w_u|| <= c over units that are not included, the
 * signs, and Q'w = 0.  Let b = a - Q mu without entries of a wrong sign, s_u = max(1 - l/||b_u||,
 * 0) b_u, and s_u = b_u for included units.  The dual is to minimize over mu and the level l >= 0
 *
 *     h = ||s|| + c l,    dh/dmu = -Q'w,    w = s/||s||,
 *
 * where units.c knows l for each mu.  Let e = b_u/||b_u|| on the m free units that are not zero, D
 * = (1 - l/||b_u||) I + l/||b_u|| ee' there, and cost = e'w.  Then
 *
 *     h_mumu = Q'(D - ww')Q/||s||,  h_mul = Q'(e - cost w)/||s||,  h_ll = (m - cost^2)/||s||,
 *
 * and mu is sought by Newton steps on h_mumu - h_mul h_mul'/h_ll, or on h_mumu at level 0, damped
 * as in scotlass.c. */
#include "real.h"

enum { STEPS = 200 };
static const double EXACT = 64 * DBL_EPSILON;
/* the longest step, in units of the largest |a_j|, where h is flat */
static const double FAR = 1e6;

/* A point of the dual: mu (t), its s (p) and support, h, and left = Q'w (t) with its largest entry;
 * size = ||s||. */
typedef struct {
    double *mu, *s, *left, value, largest, size;
    uint8_t *kept;
} point_t;

/* The problem, and scratch. */
typedef struct {
    const spca_rule *rule; /* the step without Q */
    const double *a, *Q;   /* (p), (p x t) */
    spca_int t, *iwork;
    double *b, *norms, *sizes, *along, *work; /* (p), (units), (units), (t x units), (unit_work) */
} dual_t;

/* b = a - Q mu, without entries of a wrong sign. */
static void subtract_span(const dual_t *d, const double *mu, double *b)
{
    spca_int p = d->rule->of.p;
    for (spca_int j = 0; j < p; j++) b[j] = d->a[j];
    for (spca_int l = 0; l < d->t; l++)
        for (spca_int j = 0; j < p; j++) b[j] -= mu[l] * d->Q[l * p + j];
    spca_project_units(&d->rule->of, b);
}

/* s, h, Q'w and the support of x->mu. */
static void evaluate(const dual_t *d, point_t *x)
{
    spca_int p = d->rule->of.p;
    double square = 0, product = 0;
    subtract_span(d, x->mu, d->b);
    for (spca_int j = 0; j < p; j++) x->s[j] = d->b[j];
    spca_unit_step(d->rule, 1, x->s, d->work, d->iwork, x->kept);
    for (spca_int j = 0; j < p; j++) {
        square += x->s[j] * x->s[j];
        product += x->s[j] * d->b[j];
    }
    x->size = sqrt(square);
    x->value = product / x->size; /* NaN where s is 0, which nobody asks for */
    x->largest = 0;
    for (spca_int l = 0; l < d->t; l++) {
        double sum = 0;
        for (spca_int j = 0; j < p; j++) sum += d->Q[l * p + j] * x->s[j];
        x->left[l] = sum / x->size;
        x->largest = fmax(x->largest, fabs(x->left[l]));
    }
}

/* H (t x t, its lower triangle) = ||s|| times the second derivatives of h, where the level follows
 * mu.  z (t): scratch. */
static void curvature(const dual_t *d, const point_t *x, double *z, double *H)
{
    const spca_supports *o = &d->rule->of;
    spca_int p = o->p, t = d->t, free = 0;
    double level = 0, cost = 0, corner;
    subtract_span(d, x->mu, d->b);
    spca_unit_norms(o, d->b, d->norms);
    spca_unit_norms(o, x->s, d->sizes);
    for (spca_int u = 0; u < o->units; u++) {
        if (o->included[u] || !(d->sizes[u] > 0)) continue;
        free++;
        level += d->norms[u] - d->sizes[u];
        cost += d->sizes[u] / x->size;
    }
    level = free ? level / (double)free : 0;
    for (spca_int l = 0; l < t * o->units; l++) d->along[l] = 0;
    for (spca_int l = 0; l < t; l++) z[l] = -cost * x->left[l];
    for (spca_int l = 0; l < t; l++)
        for (spca_int m = 0; m <= l; m++) H[l + m * t] = -x->left[l] * x->left[m];
    for (spca_int j = 0; j < p; j++) {
        spca_int u = o->unit[j];
        int is_free = !o->included[u] && d->sizes[u] > 0;
        double share = is_free ? level / d->norms[u] : 0, e = is_free ? x->s[j] / d->sizes[u] : 0;
        if (x->s[j] == 0) continue;
        for (spca_int l = 0; l < t; l++) {
            double q = d->Q[l * p + j];
            z[l] += q * e;
            d->along[u * t + l] += e * q;
            for (spca_int m = 0; m <= l; m++) H[l + m * t] += (1 - share) * q * d->Q[m * p + j];
        }
    }
    for (spca_int u = 0; u < o->units; u++) {
        const double *along = d->along + u * t;
        if (o->included[u] || !(d->sizes[u] > 0)) continue;
        for (spca_int l = 0; l < t; l++)
            for (spca_int m = 0; m <= l; m++)
                H[l + m * t] += level / d->norms[u] * along[l] * along[m];
    }
    corner = (double)free - cost * cost;
    for (spca_int l = 0; l < t && level > 0 && corner > EXACT; l++)
        for (spca_int m = 0; m <= l; m++) H[l + m * t] -= z[l] * z[m] / corner;
}

int spca_solve_damped(spca_int t, double damping, double *H, double *x)
{
    for (spca_int l = 0; l < t; l++) {
        double pivot = H[l + l * t] + damping;
        for (spca_int m = 0; m < l; m++) pivot -= H[l + m * t] * H[l + m * t];
        if (!(pivot > 0)) return 0;
        H[l + l * t] = sqrt(pivot);
        for (spca_int i = l + 1; i < t; i++) {
            for (spca_int m = 0; m < l; m++) H[i + l * t] -= H[i + m * t] * H[l + m * t];
            H[i + l * t] /= H[l + l * t];
        }
    }
    for (spca_int l = 0; l < t; l++) {
        for (spca_int m = 0; m < l; m++) x[l] -= H[l + m * t] * x[m];
        x[l] /= H[l + l * t];
    }
    for (spca_int l = t - 1; l >= 0; l--) {
        for (spca_int m = l + 1; m < t; m++) x[l] -= H[m + l * t] * x[m];
        x[l] /= H[l + l * t];
    }
    return 1;
}

/* A damped Newton step from x and its slope; returns whether it leads down, and not too far. */
static int newton(const dual_t *d, const point_t *x, double damping, double *z, double *H,
                  double *step, double *slope)
{
    double most = 0, far = 0;
    curvature(d, x, z, H);
    for (spca_int l = 0; l < d->t; l++) step[l] = x->size * x->left[l];
    if (!spca_solve_damped(d->t, damping, H, step)) return 0;
    for (spca_int j = 0; j < d->rule->of.p; j++) far = fmax(far, FAR * fabs(d->a[j]));
    *slope = 0;
    for (spca_int l = 0; l < d->t; l++) {
        *slope += x->left[l] * step[l];
        most = fmax(most, fabs(step[l]));
    }
    return *slope > 0 && most <= far;
}

spca_int spca_orthogonal_work(const spca_supports *o, spca_int t)
{
    return t ? 4 * o->p + (3 + t) * o->units + (7 + t) * t : 0;
}

void spca_orthogonal_unit_step(const spca_rule *rule, double *a, double *work, double *scratch,
                               spca_int *iwork, uint8_t *kept)
{
    const double enough = pow(DBL_EPSILON, 0.75);
    const spca_supports *o = &rule->of;
    spca_int p = o->p, t = rule->t;
    spca_rule plain = *rule;
    dual_t d = {.rule = &plain, .a = work, .Q = rule->Q, .t = t, .iwork = iwork, .b = work + p};
    point_t x, new, better;
    double *z, *H, *step, slope, damping = 1e-10;
    plain.t = 0;
    x.s = d.b + p, new.s = x.s + p;
    d.norms = new.s + p, d.sizes = d.norms + o->units, d.along = d.sizes + o->units;
    x.mu = d.along + t * o->units, x.left = x.mu + t, new.mu = x.left + t, new.left = new.mu + t;
    z = new.left + t, step = z + t, H = step + t;
    d.work = scratch;
    x.kept = kept, new.kept = (uint8_t *)(H + t * t);
    for (spca_int j = 0; j < p; j++) work[j] = a[j];
    for (spca_int l = 0; l < t; l++) {
        x.mu[l] = 0;
        for (spca_int j = 0; j < p; j++) x.mu[l] += rule->Q[l * p + j] * a[j];
    }
    /* begins at mu = Q'a */
    evaluate(&d, &x);
    for (int i = 0; i < STEPS && x.largest > EXACT && damping <= 1e8 && x.size > 0; i++) {
        if (!newton(&d, &x, damping, z, H, step, &slope)) {
            damping *= 10;
            continue;
        }
        for (spca_int l = 0; l < t; l++) new.mu[l] = x.mu[l] + step[l];
        evaluate(&d, &new);
        if (new.value <= x.value - slope / 4 || new.largest <= x.largest / 2) {
            better = new, new = x, x = better;
            damping = fmax(damping / 10, 1e-12);
        } else if (x.largest <= enough) { /* nothing but rounding is left */
            break;
        } else
            damping *= 10;
    }
    for (spca_int j = 0; j < p; j++) a[j] = x.largest <= enough ? x.s[j] : 0;
    for (spca_int u = 0; u < o->units && x.kept != kept; u++) kept[u] = x.kept[u];
}
