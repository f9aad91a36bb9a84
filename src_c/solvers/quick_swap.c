/* quick_swap.c - swaps of a support by what its vector tells, without eigenvalues of others.
 *
 * Let x be a unit vector on the support, l = x'Ax and y = Ax.  Of vectors in the span of x without
 * its entry i, and of e_j, the best has the larger eigenvalue of
 *
 *     ( a  g   )        a = (l - 2 x_i y_i + x_i^2 a_ii)/(1 - x_i^2),
 *     ( g  a_jj),       g = (y_j - x_i a_ij)/(1 - x_i^2)^(1/2),
 *
 * so that the support with j in the place of i has at least that: a pass over the rows of A on the
 * support tells it for all i and j.  The best pair is swapped, x is raised by steps of the power
 * method on the new support, and so on.  exchange.c finds what is left. */
#include "real.h"

enum { STEPS = 5 /* of the power method, after a swap */ };
#define LEAST ((real)1e-3) /* that x has besides an entry that may leave: less is rounding */

/* The bound for j in the place of i; own: a_jj, open: 0 on the support, else 1. */
typedef struct {
    spca_int p;
    const real *y, *row, *own, *open;
    real x, a, scale; /* x_i, a, and (1 - x_i^2)^(-1/2) */
} place_t;

/* All of them, which are low on the support, and the largest. */
VECTORIZED_TO(real, bounds, (const place_t *o, real *restrict bound), (o, bound))
{
    const real *y = o->y, *row = o->row, *own = o->own, *open = o->open;
    real x = o->x, a = o->a, scale = o->scale, top[STRANDS];
    spca_int j = 0;
    for (int l = 0; l < STRANDS; l++) top[l] = -REAL_MAX;
    for (; j + STRANDS <= o->p; j += STRANDS)
        for (int l = 0; l < STRANDS; l++) {
            real g = (y[j + l] - x * row[j + l]) * scale, half = (a - own[j + l]) / 2;
            real b = (a + own[j + l]) / 2 + sqrt(half * half + g * g);
            bound[j + l] = b = b * open[j + l] + (open[j + l] - 1) * REAL_MAX;
            top[l] = b > top[l] ? b : top[l];
        }
    for (int l = 0; j < o->p; j++, l++) {
        real g = (y[j] - x * row[j]) * scale, half = (a - own[j]) / 2;
        real b = (a + own[j]) / 2 + sqrt(half * half + g * g);
        bound[j] = b * open[j] + (open[j] - 1) * REAL_MAX;
        top[l] = bound[j] > top[l] ? bound[j] : top[l];
    }
    for (int l = 1; l < STRANDS; l++) top[0] = top[l] > top[0] ? top[l] : top[0];
    return top[0];
}

typedef struct {
    spca_int p, k, *index;
    const real *A;
    real *x, *y, *own, *open, *bound, *best, *inside, *image, *kept;
    real value;
} swaps_t;

/* A between the a-th variable and the others. */
static void gather(swaps_t *s, spca_int a)
{
    const real *row = s->A + s->index[a] * s->p;
    for (spca_int b = 0; b < s->k; b++)
        s->inside[a * s->k + b] = s->inside[b * s->k + a] = row[s->index[b]];
}

/* image = A_SS x, with x'A_SS x. */
VECTORIZED_TO(real, multiply_inside, (const swaps_t *s), (s))
{
    spca_int k = s->k;
    real *restrict image = s->image, value = 0;
    for (spca_int a = 0; a < k; a++) image[a] = 0;
    for (spca_int b = 0; b < k; b++) {
        const real *row = s->inside + b * k;
        real x = s->x[b];
        for (spca_int a = 0; a < k; a++) image[a] += x * row[a];
    }
    for (spca_int a = 0; a < k; a++) value += image[a] * s->x[a];
    return value;
}

/* x after some steps of the power method on the support, as long as they raise x'Ax. */
static void raise_value(swaps_t *s)
{
    spca_int k = s->k;
    s->value = multiply_inside(s);
    for (int step = 0; step < STEPS; step++) {
        real value;
        for (spca_int a = 0; a < k; a++) {
            s->kept[a] = s->x[a];
            s->x[a] = s->image[a];
        }
        (void)to_unit(k, s->x);
        value = multiply_inside(s);
        if (!(value > s->value)) {
            for (spca_int a = 0; a < k; a++) s->x[a] = s->kept[a];
            return;
        }
        s->value = value;
    }
}

/* y = A x */
VECTORIZED(multiply, (const swaps_t *s), (s))
{
    real *restrict y = s->y;
    for (spca_int j = 0; j < s->p; j++) y[j] = 0;
    for (spca_int a = 0; a < s->k; a++) {
        const real *row = s->A + s->index[a] * s->p;
        real x = s->x[a];
        for (spca_int j = 0; j < s->p; j++) y[j] += x * row[j];
    }
}

/* The place of the best pair, whose variables' bounds are then in s->best; k where none is above
 * the level. */
static spca_int best_place(swaps_t *s, real level, real *top)
{
    spca_int found = s->k;
    *top = level;
    for (spca_int a = 0; a < s->k; a++) {
        spca_int i = s->index[a];
        real x = s->x[a], rest = 1 - x * x, b, *other = s->bound;
        place_t place = {s->p, s->y, s->A + i * s->p, s->own, s->open, x, 0, 0};
        if (!(rest > LEAST)) continue;
        place.a = (s->value - 2 * x * s->y[i] + x * x * s->own[i]) / rest;
        place.scale = 1 / sqrt(rest);
        b = bounds(&place, s->bound);
        if (!(b > *top)) continue;
        *top = b;
        found = a;
        s->bound = s->best;
        s->best = other;
    }
    return found;
}

/* The best vector of the span, whose entry in the place is that of j. */
static void enter(swaps_t *s, spca_int place, spca_int j, real value)
{
    spca_int i = s->index[place];
    real left = s->x[place], rest = sqrt(1 - left * left);
    real g = (s->y[j] - left * s->A[i * s->p + j]) / rest, across = value - s->own[j];
    real down = value - (s->value - 2 * left * s->y[i] + left * left * s->own[i]) / (rest * rest);
    int mostly_new = down > across; /* then (g, down) is known to more digits than (across, g) */
    s->open[i] = 1;
    s->open[j] = 0;
    s->index[place] = j;
    for (spca_int a = 0; a < s->k; a++) s->x[a] *= (mostly_new ? g : across) / rest;
    s->x[place] = mostly_new ? down : g;
    if (to_unit(s->k, s->x) == 0) s->x[place] = 1;
    gather(s, place);
}

/* The variables in ascending order, with their entries. */
static void sort(swaps_t *s)
{
    for (spca_int a = 1; a < s->k; a++) {
        spca_int j = s->index[a], b = a;
        real x = s->x[a];
        for (; b > 0 && s->index[b - 1] > j; b--) {
            s->index[b] = s->index[b - 1];
            s->x[b] = s->x[b - 1];
        }
        s->index[b] = j;
        s->x[b] = x;
    }
}

spca_status SPCA(quick_swaps)(spca_int p, spca_int k, const real *A, real rise, spca_int most,
                              spca_stop stop, void *ctx, real *work, spca_int *index, real *value,
                              double *objective, spca_int *made)
{
    swaps_t s = {.p = p, .k = k, .index = index, .A = A, .x = value, .y = work};
    spca_status status = SPCA_OK;
    real top;
    s.own = s.y + p, s.open = s.own + p, s.bound = s.open + p, s.best = s.bound + p;
    s.inside = s.best + p, s.image = s.inside + k * k, s.kept = s.image + k;
    for (spca_int j = 0; j < p; j++) {
        s.own[j] = A[j * (p + 1)];
        s.open[j] = 1;
    }
    for (spca_int a = 0; a < k; a++) {
        s.open[index[a]] = 0;
        gather(&s, a);
    }
    (void)to_unit(k, value);
    raise_value(&s);
    for (*made = 0; *made < most;) {
        spca_int place, j = 0;
        real before = s.value;
        if (asked_to_stop(stop, ctx)) {
            status = SPCA_STOPPED;
            break;
        }
        multiply(&s);
        place = best_place(&s, before + rise * fabs(before), &top);
        if (place == k) break;
        while (s.best[j] != top) j++;
        enter(&s, place, j, top);
        raise_value(&s);
        ++*made;
        if (!(s.value > before)) break; /* rounding */
    }
    sort(&s);
    *objective = (double)s.value;
    return status;
}
